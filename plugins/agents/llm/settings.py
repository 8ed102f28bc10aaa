"""The parameters of the interface between a model and its trials: all are recorded, all can be swept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cheesebench import OptionError, did_you_mean
from cheesebench.plugins.agents.llm.prompts import variants

#: What is done about a reply without a valid action.
NOOP, RETRY, END_TRIAL = "noop", "retry-with-feedback", "end-trial"
#: How observations are told.
FULL, CHANGES = "full", "changes"

SETTINGS: Mapping[str, Any] = {
    # Past pairs of observation and reply in every prompt.
    "history": 5,
    # Most actions of one reply.
    "actions": 8,
    # Which system prompt.
    "prompt": "default",
    "unparsed": NOOP,
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


class _Rule(NamedTuple):
    """What a value must be, in words, and the test of it."""

    wanted: str
    holds: Callable[[Any], bool]


def _whole(least: int) -> _Rule:
    return _Rule(
        f"a whole number from {least} on",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
    )


def _one_of(*known: str) -> _Rule:
    return _Rule(f"one of {', '.join(known)}", lambda value: isinstance(value, str) and value in known)


def _rules() -> dict[str, _Rule]:
    switch = _Rule("true or false", lambda value: isinstance(value, bool))
    return {
        "history": _whole(0),
        "actions": _whole(1),
        "prompt": _one_of(*variants()),
        "unparsed": _one_of(NOOP, RETRY, END_TRIAL),
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
            "a whole number from 1 on, or none to leave it to the server",
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
