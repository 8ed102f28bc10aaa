"""How the plan of one hypothesis is found, and how beliefs are made smaller."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from cheesebench.interfaces import RUNNING
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.beliefs import (
    Node,
    Solver,
    World,
    sampled,
    signature,
)
from cheesebench.paradigms.arena.audit.hypotheses import Hypothesis
from cheesebench.paradigms.arena.audit.search import Found
from tests.arenas import examine_text

#: A success is a tour of the zones in one order. An entry too early ends the trial.
TOUR = """
version: 1
paradigm: tour
arena:
  map: |
    #########
    #A#.C.#B#
    #.......#
    #...S...#
    #########
  legend: {A: left, B: right, C: middle, S: box}
  groups: {arm: [%s]}
start: {at: box, face: N}
trial:
  limit: 60
  start: one
  states:
    one: {rules: [{enter: %s, go: two}, {enter: arm, end: wrong}]}
    two: {rules: [{enter: %s, go: three}, {enter: arm, end: wrong}]}
    three: {rules: [{enter: %s, end: right}, {enter: arm, end: wrong}]}
schedule: {main: {sessions: 1, trials: 1}}
success: last == right
"""
ARMS = ("left", "middle", "right")


def begun(paradigm: ArenaParadigm) -> tuple[World, Hypothesis]:
    world = World(paradigm, Lesion.parse("intact"))
    node, _ = next(iter(next(iter(world.begin(world.prior()).values()))))
    return world, world.nodes.life(node, 0)


def tour(arms: tuple[str, ...], order: tuple[str, ...]) -> tuple[Found, Hypothesis]:
    specification, found = examine_text(
        TOUR % (", ".join(arms), *order), "tour.protocol.yaml"
    )
    assert specification is not None, found
    paradigm = ArenaParadigm(specification)
    _, life = begun(paradigm)
    before = life.pose, life.steps
    result = Found()
    Solver(paradigm.program, specification).keep_on(life, result)
    assert (life.pose, life.steps) == before
    return result, life


@pytest.mark.parametrize("order", list(itertools.permutations(ARMS)))
def test_what_no_one_action_does_may_be_a_tour_from_any_member_either_way(
    order: tuple[str, ...],
) -> None:
    found, life = tour(ARMS, order)
    assert found.shortest is not None
    assert found.shortest.moves == tuple(("go to", arm) for arm in order)
    status = RUNNING
    for action in found.shortest.actions:
        assert status == RUNNING
        _, _, status = life.step(action)
    assert status != RUNNING
    assert life.is_success()


def test_a_pair_is_no_round() -> None:
    found, _ = tour(ARMS[:2], ("left", "right", "left"))
    assert found.shortest is None


def test_a_sample_has_the_weight_of_all_in_order(new: Callable[..., Node]) -> None:
    one, two, three, four = new(), new(), new(), new()
    cloud = {one: 0.5, two: 0.25, three: 0.125, four: 0.125}
    assert sampled(cloud, 4) is cloud
    assert sampled(cloud, 2) == {one: 0.5, three: 0.5}
    heavy = {one: 0.75, two: 0.0625, three: 0.125, four: 0.0625}
    assert sampled(heavy, 1) == {one: 1.0}
    assert sampled(heavy, 2) == {one: 0.5, two: 0.5}
    assert sampled(heavy, 3) == pytest.approx({one: 2 / 3, three: 1 / 3})


def test_equal_beliefs_have_one_signature_whatever_their_weight(
    new: Callable[..., Node],
) -> None:
    one, two = new(), new()
    whole = signature({one: 0.75, two: 0.25})
    assert whole == signature({two: 1.0, one: 3.0})
    assert whole == signature({one: 0.75 + 1e-12, two: 0.25})
    assert whole != signature({one: 0.25, two: 0.75})
    assert whole != signature({one: 0.75})
