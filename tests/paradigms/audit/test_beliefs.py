"""How the plan of one hypothesis is found, and how beliefs are made smaller."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from cheesebench.interfaces import RUNNING, STAY, Scene, Tile
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import beliefs
from cheesebench.paradigms.arena.audit.beliefs import (
    IN_VAIN,
    Belief,
    Everything,
    Node,
    Plan,
    Solver,
    World,
    _generalised,
    _instance,
    sampled,
    signature,
)
from cheesebench.paradigms.arena.audit.hypotheses import GRADED, Hypothesis
from cheesebench.paradigms.arena.audit.relevance import NEUTRAL
from cheesebench.paradigms.arena.audit.search import Found
from cheesebench.protocol import expressions as ex
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


Plant = Callable[..., ArenaParadigm]


def test_a_plan_is_found_once_and_told_by_the_names_of_variables(plant: Plant) -> None:
    world, life = begun(plant())
    side = str(life.values["side"])
    other = {"left": "right", "right": "left"}[side]
    plan = world.plans.of(life)
    assert plan.success
    assert world.plans.of(life) is plan
    assert plan.actions[:3] == (STAY,) * 3, "the cue lasts for three steps"
    moves = (("go to", side), ("go to", other), ("wait", ""))
    general = (("go to", "=side"), ("go to", other), ("wait", ""))
    assert _generalised(moves, life) == general
    assert _instance(general, life) == moves


def test_where_nothing_helps_the_known_failures_are_tried_and_then_time_passes(
    plant: Plant,
) -> None:
    world, life = begun(plant())
    plans, side = world.plans, str(life.values["side"])
    waits = Plan((STAY,) * 40, False)
    before = plans.work
    assert plans._wait(life) == waits
    assert plans.work == before + 4 * 40
    assert plans._fail(life) == waits
    found = plans._search(life).shortest
    assert found is not None
    wrong = {"left": "right", "right": "left"}[side]
    failing = tuple((kind, wrong if place else "") for kind, place in found.moves)
    short = plans._follow(life, failing)
    assert short is not None
    assert (short.success, len(short.actions) < 40) == (False, True)
    # Moves that do not end the trial, or name no place, are no plan.
    assert plans._follow(life, ()) is None
    assert plans._follow(life, (("go to", "nowhere"),)) is None
    assert plans._follow(life, (("always go to", wrong),)) is None
    plans._failures[life.stage] = [(), failing]
    assert plans._fail(life) == short
    assert life.steps == 0


def test_a_search_is_vain_if_it_is_too_late_or_has_often_failed(plant: Plant) -> None:
    world, life = begun(plant())
    plans = world.plans
    life = life.twin().at(30, 40)
    assert not plans._is_vain(life)
    plans._searched_in_vain[life.stage] = IN_VAIN - 1
    assert not plans._is_vain(life)
    plans._searched_in_vain[life.stage] = IN_VAIN
    assert plans._is_vain(life)
    plans._soonest[life.stage] = 10
    assert not plans._is_vain(life)
    plans._soonest[life.stage] = 11
    assert plans._is_vain(life)


def shares(parts: dict[int | None, Belief]) -> list[list[float]]:
    return [[round(one, 9) for one in part.values()] for part in parts.values()]


@pytest.mark.parametrize("limit", ["MOST_NODES", "MOST_LIVES", "MOST_BEGINNINGS"])
def test_what_is_forgotten_to_save_memory_is_found_again(
    plant: Plant, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(plant(), Lesion.parse("intact"))
    prior = world.prior()
    first = world.begin(prior)
    monkeypatch.setattr(beliefs, limit, -1)
    world._room = min(world._room, beliefs.MOST_BEGINNINGS)
    again = world.begin(prior)
    assert shares(again) == shares(first)
    old, new = (
        {node for part in one.values() for node, _ in part} for one in (first, again)
    )
    assert not old & new
    assert max(node.number for node in old) < min(node.number for node in new)


def test_the_least_likely_hypotheses_of_too_many_are_left_out(
    plant: Plant, new: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(plant(), Lesion.parse("intact"))
    rare, likely, second = ((new(), 0) for _ in range(3))
    belief = {rare: 0.125, likely: 0.5, second: 0.375}
    assert world.likeliest(belief) is belief
    told = [(world.has_dropped, world.is_partial)]
    monkeypatch.setattr(beliefs, "MOST", 2)
    assert world.likeliest(belief) == {likely: 0.5, second: 0.375}
    told.append((world.has_dropped, world.is_partial))
    world.begin(world.prior())
    told.append((world.has_dropped, world.is_partial))
    assert told == [(False, False), (True, False), (True, True)]


def test_trials_without_a_value_have_the_neutral_grade(
    plant: Plant, new: Callable[..., Node]
) -> None:
    nodes = World(plant(), Lesion.parse("intact")).nodes
    good, weak, none = new(success=1.0), new(success=0.25), new(success=math.nan)
    assert nodes.succeeded({good: 0.5, weak: 0.25}) == 0.5625
    nodes._relevance.neutral = 0.5
    assert nodes.succeeded({good: 0.5, weak: 0.25}) == 0.5625
    assert nodes.succeeded({weak: 0.5}) == 0.25
    assert nodes.succeeded({none: 0.5}) == 0.25
    assert nodes.succeeded({none: 0.5, weak: 0.25}) == 0.75


@pytest.mark.parametrize(
    ("grade", "neutral", "worth"),
    [
        (ex.Number(0.25), None, 0.25),
        (ex.Number(7), None, 1.0),
        (ex.Number(-1), None, 1.0),
        (ex.Binary("/", ex.Number(0), ex.Number(0)), None, 1.0),
        (ex.Binary("/", ex.Number(0), ex.Number(0)), ex.Number(0.5), math.nan),
        (ex.Number(0.25), ex.Number(0.5), 0.25),
    ],
)
def test_an_ended_trial_is_worth_its_grade(
    plant: Plant, grade: ex.Expression, neutral: ex.Expression | None, worth: float
) -> None:
    plain = plant().specification
    measures = {GRADED: grade} | ({} if neutral is None else {NEUTRAL: neutral})
    graded = replace(plain, success=grade, measures=measures)
    for specification, value in ((graded, worth), (plain, 0.0)):
        _, life = begun(ArenaParadigm(specification))
        life = life.twin().at(0, 5)
        while life.step(STAY)[2] == RUNNING:
            pass
        assert life.worth == pytest.approx(value, nan_ok=True)


def test_everything_tells_scenes_and_poses_apart_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = Everything("intact")
    one, two, three = (Scene(((Tile("floor", glyph),),), ()) for glyph in "abc")
    assert view.name == "everything intact"
    assert view.render(one, 3, 2, 1) == "0 3 2 1"
    assert view.render(two, 3, 2, 1) == "1 3 2 1"
    assert view.render(Scene(one.tiles, ()), 3, 2, 0) == "0 3 2 0"
    assert len("99999999 999 999 7") <= view.max_length(one)
    monkeypatch.setattr(beliefs, "MOST_SCENES", 2)
    assert view.render(three, 0, 0, 0) == "2 0 0 0"
    assert len(view._kept) == 1
    assert view.render(two, 0, 0, 0) == "1 0 0 0"
