"""The texts of the prompts, which are data: see ``prompts.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any


@lru_cache(maxsize=1)
def _data() -> Mapping[str, Any]:
    import yaml

    data: Mapping[str, Any] = yaml.safe_load(
        files("cheesebench.plugins.agents.llm").joinpath("prompts.yaml").read_text(encoding="utf-8")
    )
    return data


def variants() -> tuple[str, ...]:
    """Return the names of all system prompts."""
    return tuple(_data()["variants"])


#: What is filled in, in a prompt of one's own as in the shipped ones.
PLACEHOLDERS = ("reading", "actions", "actions_form", "learnings", "learnings_form", "patience", "changes")


def unknown_placeholders(text: str) -> list[str]:
    """Return the names after a dollar sign (``$NAME``, ``${NAME}``) in a prompt that nothing is filled in for."""
    return [name for name in Template(text).get_identifiers() if name not in PLACEHOLDERS]


@lru_cache(maxsize=64)
def system_prompt(
    variant: str, reading: str, actions: int, learnings: int, changes: bool = False, patience: int = 0
) -> str:
    """Return the system prompt: the same for every paradigm, trial and call.

    ``variant`` is its name, or (what is no name) the prompt itself, in which ``$reading``, ``$actions``,
    ``PLACEHOLDERS`` are filled in.
    ``reading`` is how the view is read ("" for a view that does not say so), ``actions`` the most actions of one
    reply, ``learnings`` the most characters of learnings (0: none asked for), ``patience`` the answers
    without an action after which a trial is waited through (0: it is not); ``changes``: only changes are told.
    """
    data = _data()
    pieces = data["pieces"]
    values: dict[str, Any] = {"actions": actions, "learnings": learnings}
    values["reading"] = reading or data["reading"]
    values["patience"] = "\n" + Template(pieces["patience"]).substitute(patience=patience) if patience else ""
    values["changes"] = pieces["changes"] + " " if changes else ""
    values |= {name: Template(pieces[name]).substitute(values) for name in ("learnings_form", "actions_form")}
    if variant not in data["variants"]:
        return Template(variant).safe_substitute(values)
    text = "\n\n".join(Template(pieces[name]).substitute(values) for name in data["variants"][variant])
    return "\n".join(line for line in text.split("\n") if learnings or not line.startswith("LEARNINGS:"))


def instructions(reading: str) -> str:
    """Return what a person is told: the same, but for the form of the answers; ``reading`` as in ``system_prompt``."""
    data = _data()
    values = {"reading": reading or data["reading"], "patience": ""}
    return "\n\n".join(Template(data["pieces"][name]).substitute(values) for name in data["people"])


@lru_cache(maxsize=1)
def messages() -> Mapping[str, Template]:
    """Return the templates of the messages, by name."""
    return {name: Template(text) for name, text in _data()["messages"].items()}
