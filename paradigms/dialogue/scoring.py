"""Scores an answer against its key: correct or not, and the kind of failure. Pure functions, linear in the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from cheesebench.interfaces import Value
from cheesebench.paradigms.dialogue.answers import Answer
from cheesebench.paradigms.dialogue.edges import score_edges
from cheesebench.paradigms.dialogue.language.specification import ConditionSpec, Item
from cheesebench.paradigms.dialogue.language.worlds import World

#: Possible outcomes of an answer, in order of precedence: the first that applies is the outcome.
OUTCOMES = (
    "correct",
    "no answer",
    "several answers",
    "wrong form",
    "unknown node",
    "wrong start",
    "hallucinated edge",
    "loop",
    "wrong goal",
    "too long",
    "missing edge",
    "wrong path",
)


@dataclass(frozen=True, slots=True)
class Score:
    """``path`` is the way that was answered, its start included; ``measures`` are the flags, 0 or 1 and counts."""

    success: bool
    outcome: str
    path: tuple[str | None, ...] = ()
    measures: Mapping[str, Value] = field(default_factory=dict)


def score(answer: Answer, condition: ConditionSpec, item: Item, first: World) -> Score:
    """Score an answer; ``first`` is the world before all edits, whose lost edges count as blocked."""
    if condition.form == "number":
        return _score_number(answer, item)
    if condition.form == "edges":
        listed, found = score_edges(answer, condition.world, condition.directed)
        return Score(listed, "correct" if listed else _outcome(found), (), found)
    path, wrong_form = _path(answer, condition, item)
    complete: tuple[str, ...] = tuple(node for node in path if node is not None)
    sound = bool(path) and len(complete) == len(path) and not (answer.several or wrong_form)
    success = sound and condition.right(item, complete)
    flags = _flags(answer, path, condition, item, first)
    flags["wrong_form"] = int(wrong_form)
    return Score(success, "correct" if success else _outcome(flags), path, flags)


def _score_number(answer: Answer, item: Item) -> Score:
    success = answer.number is not None and answer.number == item.number
    flags: dict[str, Value] = {
        "no_answer": int(answer.empty),
        "several_answers": int(answer.several),
        "error": None if answer.number is None or item.number is None else answer.number - item.number,
    }
    outcome = "correct" if success else _first(flags, {"no_answer": "no answer", "several_answers": "several answers"})
    return Score(success, outcome or "wrong number", (), flags)


def _path(answer: Answer, condition: ConditionSpec, item: Item) -> tuple[tuple[str | None, ...], bool]:
    """Return the intended path, start included, and whether the answer has the wrong form."""
    nodes = answer.nodes
    if condition.form == "first_step":
        onward = nodes[1:] if len(nodes) > 1 and nodes[0] == item.start else nodes
        # One node was asked for: a whole way, or two nodes, name no first step.
        return ((item.start, *onward) if onward else ()), len(onward) > 1
    if nodes and nodes[0] != item.start and not condition.include_start:
        return (item.start, *nodes), False
    return nodes, False


def _flags(
    answer: Answer, path: tuple[str | None, ...], condition: ConditionSpec, item: Item, first: World
) -> dict[str, Value]:
    steps = list(pairwise(path))
    arcs = set(condition.world.arcs)
    illegal = [number for number, step in enumerate(steps, start=1) if step not in arcs]
    blocked = set(first.arcs) - arcs
    whole = condition.form == "path" and bool(path)
    recognised = [node for node in path if node is not None]
    shortest = min((len(key) for key in item.keys), default=0)
    reaches = whole and path[-1] in item.goals
    return {
        "no_answer": int(answer.empty),
        "several_answers": int(answer.several),
        "unknown_nodes": sum(node is None for node in path),
        "wrong_start": int(whole and path[0] != item.start),
        "wrong_goal": int(whole and not reaches),
        "hallucinated_edges": len(illegal),
        "hallucinated_fraction": len(illegal) / len(steps) if steps else None,
        "first_illegal_step": illegal[0] if illegal else None,
        "blocked_edge": int(any(step in blocked for step in steps)),
        "loop": int(len(set(recognised)) < len(recognised)),
        "excess_length": max(0, len(path) - shortest) if reaches else None,
    }


def _outcome(flags: Mapping[str, Value]) -> str:
    words = {
        "no_answer": "no answer",
        "several_answers": "several answers",
        "wrong_form": "wrong form",
        "unknown_nodes": "unknown node",
        "wrong_start": "wrong start",
        "hallucinated_edges": "hallucinated edge",
        "loop": "loop",
        "wrong_goal": "wrong goal",
        "excess_length": "too long",
        "missing_edges": "missing edge",
    }
    return _first(flags, words) or "wrong path"


def _first(flags: Mapping[str, Value], words: Mapping[str, str]) -> str:
    return next((word for flag, word in words.items() if flags.get(flag)), "")
