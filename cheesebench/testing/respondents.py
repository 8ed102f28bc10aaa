"""What every baseline for dialogues must do."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from cheesebench.dialogue import Puzzle, RespondentSpec
from cheesebench.testing.agents import check_name, untouched_randomness
from cheesebench.testing.rules import DECLARATION, Broken, Rules, assert_none, need

RULES: Rules[RespondentSpec] = Rules()

_ARCS = {"a": ("b", "c"), "b": ("d",), "c": ("e",), "d": (), "e": ()}
_WALKS = (("a", "b", "d"), ("a", "c", "e"))


def _say(way: Sequence[str]) -> str:
    return f"Answer: {', '.join(way[1:])}"


def _puzzle(number: int | None) -> Puzzle:
    rewards = {"d": 1.0, "e": 5.0}
    keys = (_WALKS[1],)
    return Puzzle(start="a", arcs=_ARCS, rewards=rewards, keys=keys, number=number, walks=lambda: _WALKS, say=_say)


#: One asks for a way, one for a number.
_PUZZLES = (_puzzle(None), _puzzle(2))


def broken_respondent_rules(spec: RespondentSpec, *, but: Collection[str] = ()) -> list[Broken]:
    """Return the rules that a baseline for dialogues breaks; ``but`` names rules that are left out."""
    return RULES.broken(spec, but)


def assert_respondent_sound(spec: RespondentSpec, *, but: Collection[str] = ()) -> None:
    """Raise AssertionError with the rules that a baseline for dialogues breaks."""
    assert_none(f"the baseline '{getattr(spec, 'name', spec)}'", broken_respondent_rules(spec, but=but))


@RULES.rule(DECLARATION)
def _declaration(spec: RespondentSpec) -> None:
    check_name(spec.name, spec.memory, spec.summary)


@RULES.rule("answers in words")
def _answers(spec: RespondentSpec) -> None:
    for puzzle in _PUZZLES:
        reply: object = spec.reply(puzzle, "Where to?", 1)
        need(isinstance(reply, str) and reply, f"answers {reply!r}, but text is expected")


@RULES.rule("same seed, same answer")
def _deterministic(spec: RespondentSpec) -> None:
    for puzzle in _PUZZLES:
        for seed in range(8):
            one, other = (spec.reply(puzzle, "Where to?", seed) for _ in range(2))
            need(one == other, "gives two answers to the same question with the same seed")


@RULES.rule("no global randomness")
def _no_global_randomness(spec: RespondentSpec) -> None:
    before = random.getstate()
    try:
        with untouched_randomness():
            for puzzle in _PUZZLES:
                spec.reply(puzzle, "Where to?", 3)
    finally:
        random.setstate(before)
