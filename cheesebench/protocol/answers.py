"""Finds the draws that decide how choices end, and so the right answer of a trial.

The audit tests whether answers are balanced. The statistics test whether a PASS holds
for each right answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from cheesebench.protocol import expressions as ex
from cheesebench.protocol.specification import DrawSpec, Specification

#: Subjects are grouped by an answer only if it has at most this many values.
MOST_LEVELS = 4


def answers(specification: Specification, *, compared_only: bool = False) -> set[str]:
    """Return the variables that decide how a choice ends, and the variables that
    ``checks`` call hidden.

    A variable decides this if a rule's trigger or guard, an entry of ``finish``, or
    ``success`` reads it. Rules with a clock (``after``) are left out, because the
    variables that they read may be the order of phases. With ``compared_only``, return
    only variables that are compared by ``==``, ``!=`` or ``in``.
    """
    rules = [
        rule for state in specification.states.values() for rule in state.rules
    ] + list(specification.watch)
    rules = [rule for rule in rules if rule.after is None]
    trees = [
        specification.success,
        *(rule.guard for rule in rules),
        *(end.guard for end in specification.finish),
    ]
    if compared_only:
        return {name for tree in trees for name in _compared(tree)}
    hidden = {check.hidden for check in specification.document.checks}
    hidden |= {
        rule.target.name
        for rule in rules
        if rule.target is not None and rule.target.variable
    }
    return hidden | {name for tree in trees for name in _read(tree)}


def answers_for_life(specification: Specification) -> tuple[str, ...]:
    """Return the answers that a subject keeps in all of its trials, and that are
    balanced over subjects.

    For each draw this is the first column that is an answer and has from two to
    ``MOST_LEVELS`` values.
    """
    read = _with_sources(specification, answers(specification))
    found = []
    for draw in specification.draws:
        if draw.per == "subject" and draw.order == "balanced":
            found += [name for name in draw.columns if _divides(draw, name, read)][:1]
    return tuple(found)


def _with_sources(specification: Specification, read: set[str]) -> set[str]:
    """Return the variables in ``read``, and the variables from which they get their
    values. For example, a lever may be set to the place that pays.
    """
    states = specification.states.values()
    effects = [specification.each]
    effects += [one for state in states for one in (state.entry, state.each)]
    effects += [rule.effects for state in states for rule in state.rules]
    effects += [rule.effects for rule in specification.watch]
    made = [one for own in effects for one in own.assignments]
    while True:
        sources = {
            name for one in made if one.variable in read for name in _read(one.value)
        }
        if sources <= read:
            return read
        read = read | sources


def _divides(draw: DrawSpec, name: str, read: set[str]) -> bool:
    levels = {row[draw.columns.index(name)] for row in draw.rows}
    return name in read and 1 < len(levels) <= MOST_LEVELS


def _read(tree: ex.Expression | None) -> list[str]:
    return [node.name for node in ex.walk(tree) if isinstance(node, ex.Variable)]


def _compared(tree: ex.Expression | None) -> Iterator[str]:
    for node in ex.walk(tree):
        match node:
            case ex.Binary(("==" | "!=" | "in"), left, right):
                sides = (left, right)
                yield from (one.name for one in sides if isinstance(one, ex.Variable))
