"""What a belief is worth, and which hypothesis is followed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import (
    Manner,
    Worth,
    _kinds,
    _nearest,
    certainty,
    ended,
)
from cheesebench.paradigms.arena.audit.beliefs import Node, Plan, World

NewNode = Callable[..., Node]


@pytest.fixture
def new(plant: Callable[..., ArenaParadigm]) -> NewNode:
    world = World(plant(), Lesion.parse("intact"))
    origin = next(iter(next(iter(world.begin(world.prior()).values()))))[0].origin

    def node(kind: int = 0, lasting: int = 0, success: float = 0.0) -> Node:
        node = Node(0, origin, 40, 0, kind)
        node.lasting, node.success = lasting, success
        return node

    return node


def test_an_end_is_worth_its_successes_and_the_likeliest_guess(new: NewNode) -> None:
    weights = [(0, 1, 0.375), (7, 0, 0.25), (7, 1, 0.25), (3, 0, 0.125)]
    cloud = {
        new(lasting=lasting, success=success): weight
        for lasting, success, weight in weights
    }
    assert certainty(cloud) == 0.5
    assert ended(cloud) == Worth(0.625, 0.5)
    assert certainty({}) == 0.0
    both = Worth(0.25, 0.5)
    both.add(Worth(0.5, 0.125))
    assert both == Worth(0.75, 0.625)


def test_kinds_come_by_weight_each_with_its_likeliest_node(new: NewNode) -> None:
    rare, first, second, tied = new(1), new(2), new(2), new(3)
    cloud = {rare: 0.125, first: 0.125, second: 0.25, tied: 0.375}
    assert _kinds(cloud) == [(0.375, second), (0.375, tied), (0.125, rare)]
    # Rounding does not decide.
    assert _kinds({**cloud, tied: 0.375 + 1e-12})[0][1] is second


def test_a_plan_that_succeeds_goes_first_then_weight_and_length(new: NewNode) -> None:
    def plan(steps: int, *, success: bool = True) -> Plan:
        return Plan((0,) * steps, success)

    likely, short, failing = new(), new(), new()
    choices = [
        (0.9, failing, plan(1, success=False)),
        (0.06, likely, plan(30)),
        (0.04, short, plan(10)),
    ]
    for manner, followed in [
        (Manner(1, 1), short),
        (Manner(0, 1), short),
        (Manner(1, 0), likely),
    ]:
        assert _nearest(choices, manner)[0] is followed
    even = [(0.5, likely, plan(5)), (0.5, short, plan(5))]
    assert _nearest(even, Manner(1, 1))[0] is likely
