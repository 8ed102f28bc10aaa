"""A sound little protocol, and a way to plant faults in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from cheesebench.interfaces import AuditFinding, AuditSettings
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.beliefs import Node, World
from tests.arenas import examine_text

#: Delayed response: a lamp shows a side, goes out, and then that side must be entered.
SOUND = """
version: 1
paradigm: delayed_response
arena:
  map: |
    #########
    #LL.B.RR#
    #########
  legend: {L: left, R: right, B: box}
  groups: {arm: [left, right]}
draw:
  side: {of: {side: [left, right]}}
start: {at: box, face: random}
trial:
  limit: 40
  start: cue
  states:
    cue: {freeze: true, show: {side: "*"}, rules: [{after: 3, go: choice}]}
    choice:
      rules:
        - {enter: side, reward: 1, end: correct}
        - {enter: arm, end: error}
schedule: {main: {sessions: 2, trials: 10}}
success: last == correct
reference: [{measure: success, value: 0.9, status: made up}]
checks: [{at: choice, hidden: side, chance: 0.5}]
"""

Plant = Callable[..., ArenaParadigm]
Verdicts = Callable[[list[AuditFinding]], dict[str, str]]


@pytest.fixture
def plant() -> Plant:
    """Return a function that replaces pieces of the sound paradigm's text: pairs of old
    and new.
    """

    def plant(*changes: tuple[str, str]) -> ArenaParadigm:
        text = SOUND
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        specification, found = examine_text(text, "planted.protocol.yaml")
        assert specification is not None, found
        return ArenaParadigm(specification)

    return plant


@pytest.fixture
def new(plant: Plant) -> Callable[..., Node]:
    """Return a function that makes nodes without a life of their own."""
    world = World(plant(), Lesion.parse("intact"))
    origin = next(iter(next(iter(world.begin(world.prior()).values()))))[0].origin
    numbers = itertools.count()

    def node(kind: int = 0, lasting: int = 0, success: float = 0.0) -> Node:
        node = Node(next(numbers), origin, 40, 0, kind)
        node.lasting, node.success = lasting, success
        return node

    return node


@pytest.fixture
def verdicts() -> Verdicts:
    """Return the verdict of every rule."""
    return lambda findings: {finding.rule: finding.verdict for finding in findings}


@pytest.fixture
def settings() -> AuditSettings:
    """An audit of some tenths of a second."""
    return AuditSettings(trials=200, seed=0)
