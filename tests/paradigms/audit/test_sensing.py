"""Percepts that tell hypotheses apart, for a blind subject that knows its goal in the
first draft of the star maze.

Its alleys lead to N, E, SE, SW and W; a trial begins at the end of one of the four that
are not the goal.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.beliefs import Node, World, mistaken, tell_apart
from website.attacks import load

ALLEYS = ("N", "E", "SE", "SW", "W")
#: More than the number of hypotheses.
ALL = 1_000_000


@cache
def blind() -> tuple[World, dict[tuple[str, str], list[Node]]]:
    """Return a blind subject's world, and its hypotheses by goal and start: one for
    each heading, clockwise.
    """
    world = World(ArenaParadigm(load("star_maze")), Lesion.parse("blind"))
    found: dict[tuple[str, str], dict[int, Node]] = defaultdict(dict)
    for part in world.begin(world.prior()).values():
        for node, _ in part:
            values = world.nodes.life(node, 0).values
            goal = int(values["goal_arm"][-1]) - 1
            start = (goal + values["turn"]) % len(ALLEYS)
            found[ALLEYS[goal], ALLEYS[start]][
                world.program.geometry.heading(node.pose)
            ] = node
    return world, {
        key: [nodes[heading] for heading in range(8)] for key, nodes in found.items()
    }


def is_alive(node: Node, steps: int) -> bool:
    """Return whether no wrong alley was entered."""
    return not blind()[0].nodes.life(node, steps).values["wrong_arms"]


def told(goal: str, first: str, second: str, quarters: int) -> tuple[int, ...]:
    """Return the actions that tell two starts apart, if one heading is rotated by
    ``quarters`` quarter turns from the other.
    """
    world, starts = blind()
    pair = starts[goal, first][0], starts[goal, second][2 * quarters]
    return tell_apart(world.nodes, pair, 0, is_alive, pairs=ALL, asked=ALL)[0]


@pytest.mark.parametrize(("goal", "quarters"), [("N", 0), ("N", 2), ("E", 1), ("W", 1)])
def test_what_is_felt_in_time_is_found(goal: str, quarters: int) -> None:
    world, starts = blind()
    actions = told(goal, "SE", "SW", quarters)
    assert actions
    here, there = starts[goal, "SE"][0], starts[goal, "SW"][2 * quarters]
    felt = []
    for steps, action in enumerate(actions):
        _, one, here = world.nodes.leads(here, action, steps)[0]
        _, other, there = world.nodes.leads(there, action, steps)[0]
        felt.append(one == other)
    assert felt == [True] * (len(actions) - 1) + [False]
    assert is_alive(here, len(actions))
    assert is_alive(there, len(actions))


def test_to_the_north_two_starts_feel_alike_until_it_is_too_late() -> None:
    # A quarter turn maps one alley to the other, with everything that can be felt
    # around it, except the goal.
    assert told("N", "SE", "SW", 1) == ()


def test_whoever_would_fail_by_the_plan_is_asked_about() -> None:
    world, starts = blind()
    leader, rival, other = (
        starts["N", "SE"][0],
        starts["N", "SW"][2],
        starts["N", "SW"][0],
    )
    plan = world.plans.of(world.nodes.life(leader, 0))
    assert plan.success
    cloud = {leader: 0.5, other: 0.2, rival: 0.3}
    # The rival, with its own heading, bumps into the wall before it reaches an alley.
    assert mistaken(world.nodes, cloud, leader, plan.actions, 0, is_alive) == [rival]
