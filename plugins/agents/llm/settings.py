"""The parameters of the interface between a model and its trials: all are recorded, all can be swept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cheesebench import OptionError, did_you_mean
from cheesebench.plugins.agents.llm.prompts import PLACEHOLDERS, unknown_placeholders, variants

#: What is done about a reply without a valid action.
NOOP, RETRY, END_TRIAL = "noop", "retry-with-feedback", "end-trial"
#: How observations are shown.
FULL, CHANGES = "full", "changes"

SETTINGS: Mapping[str, Any] = {
    # Past pairs of observation and reply in a prompt: exactly so many, or as many as a Window lets grow.
    "history": "3-7",
    # Most actions of one reply.
    "actions": 8,
    # Which system prompt.
    "prompt": "default",
    "unparsed": NOOP,
    # So many answers without an action in a row end the subject's say in a trial; 0: it is asked to the end.
    "patience": 5,
    # Whether later observations of a message are told in full, or as the lines that have changed.
    "observations": FULL,
    # Most characters of learnings; 0: they are not asked for.
    "learnings": 500,
    "reasoning_in_history": False,
    "images_in_history": True,
    # Of the sampling; whoever calls the model reads them.
    "temperature": 0.7,
    "max_tokens": 512,
}


class Window(NamedTuple):
    """How many past pairs a prompt holds once a life is long enough: from ``least`` to ``most``.

    Pairs are added until there are ``most``; the next one leaves ``least``. In between prompts only grow, so that
    servers read what they have read before from their caches. With ``least`` equal to ``most`` the window slides.
    """

    least: int
    most: int

    @property
    def slides(self) -> bool:
        """Whether every new pair pushes out the oldest one."""
        return self.least == self.most

    def cut(self, pairs: int) -> int:
        """Return how many of this many pairs are dropped."""
        return pairs - self.least if pairs > self.most else 0


def read_history(text: str) -> int | str:
    """Return the setting ``history`` as it is recorded: ``5`` for exactly so many pairs, or ``"3-7"``.

    Raises:
        ValueError: If it is neither.
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", text, re.ASCII)
    if found is None:
        raise ValueError(f"{text!r} is neither a number of past pairs nor a range of them")
    least, most = int(found[1]), int(found[2] or found[1])
    if least > most:
        raise ValueError(f"{text!r} ends before it begins")
    return least if least == most else f"{least}-{most}"


def window(history: int | str) -> Window:
    """Parse a valid setting ``history``."""
    least, _, most = str(history).partition("-")
    return Window(int(least), int(most or least))


class _Rule(NamedTuple):
    """The requirement on a value, in words, and its test."""

    wanted: str
    holds: Callable[[Any], bool]


def _whole(least: int) -> _Rule:
    return _Rule(
        f"a whole number from {least}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
    )


def _is_history(value: Any) -> bool:
    if not isinstance(value, str):
        return _whole(0).holds(value)
    try:
        return read_history(value) == value
    except ValueError:
        return False


def _one_of(*known: str) -> _Rule:
    return _Rule(f"one of {', '.join(known)}", lambda value: isinstance(value, str) and value in known)


def _rules() -> dict[str, _Rule]:
    switch = _Rule("true or false", lambda value: isinstance(value, bool))
    return {
        "history": _Rule('a whole number from 0, or a range such as "3-7"', _is_history),
        "actions": _whole(1),
        "prompt": _Rule(
            f"one of {', '.join(variants())}, a file (with a dot or a slash in its name), or a prompt of several words",
            lambda value: isinstance(value, str) and (value in variants() or len(value.split()) > 1),
        ),
        "unparsed": _one_of(NOOP, RETRY, END_TRIAL),
        "patience": _whole(0),
        "observations": _one_of(FULL, CHANGES),
        "learnings": _whole(0),
        "reasoning_in_history": switch,
        "images_in_history": switch,
        "temperature": _Rule(
            "a number from 0 to 2, or none to leave it to the server",
            lambda value: (
                value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2)
            ),
        ),
        "max_tokens": _Rule(
            "a whole number from 1, or none to leave it to the server",
            lambda value: value is None or _whole(1).holds(value),
        ),
    }


def check(settings: Mapping[str, Any]) -> None:
    """Raise OptionError for an unknown name or a value that makes no sense."""
    rules = _rules()
    for name, value in settings.items():
        if name not in rules:
            raise OptionError(
                f"The agent has no setting '{name}'.{did_you_mean(name, rules)} Known: {', '.join(rules)}."
            )
        if not rules[name].holds(value):
            hint = did_you_mean(value, variants()) if name == "prompt" and isinstance(value, str) else ""
            raise OptionError(f"The setting {name} is {value!r}; it must be {rules[name].wanted}.{hint}")
        if name == "prompt" and (unknown := unknown_placeholders(value)):
            known = ", ".join(f"${one}" for one in PLACEHOLDERS)
            raise OptionError(
                f"The prompt has '${unknown[0]}', but nothing of that name is filled in."
                f"{did_you_mean(unknown[0], PLACEHOLDERS)} Known: {known}. For a dollar sign write $$."
            )
