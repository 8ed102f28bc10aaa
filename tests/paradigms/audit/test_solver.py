"""Copies of a life, and the solver that tries moves on them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.beliefs import EFFORT, POLISH, Solver
from cheesebench.paradigms.arena.audit.runs import DARKNESS
from cheesebench.paradigms.arena.audit.search import (
    Search,
    is_success,
    solve_subjects,
    temptations,
)
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena

Plant = Callable[..., ArenaParadigm]

_catalogue = Catalogue(installed_plugins().protocol_directories)


def begun(paradigm: ArenaParadigm, seed: int) -> ArenaSubject:
    life = ArenaSubject(paradigm.program, DARKNESS, seed, 0)
    assert life.begin_trial() is not None
    return life


@pytest.mark.parametrize("name", list(_catalogue.files))
def test_a_copy_leaves_the_life_alone_and_lives_as_it_would(name: str) -> None:
    paradigm = ArenaParadigm(with_arena(_catalogue.load(_catalogue.files[name])))
    chance = random.Random(2)
    life, untouched = begun(paradigm, 5), begun(paradigm, 5)
    status = RUNNING
    for _ in range(60):
        actions = [chance.randrange(4) for _ in range(5)]
        twin = life.twin()
        seen: list[tuple[str, float, int]] = []
        for action in actions:
            if not seen or seen[-1][2] == RUNNING:
                seen.append(twin.step(action))
        for action, expected in zip(actions, seen, strict=False):
            step = life.step(action)
            assert step == expected == untouched.step(action)
            status = step[2]
        if status != RUNNING:
            break
    while status == RUNNING:
        status = life.step(STAY)[2]
        assert status == untouched.step(STAY)[2]
    assert life.result() == untouched.result()


def test_solutions_are_shortest_and_can_be_played(plant: Plant) -> None:
    paradigm = plant()
    search = Search(paradigm.program, paradigm.specification)
    for seed in range(12):
        life = begun(paradigm, seed)
        turns = abs((life.pose // 4 % 8) - (6 if life.values["side"] == "left" else 2))
        solution = search.solve(life).shortest
        assert solution is not None
        assert life.steps == 0
        # Three frozen steps, the turns, and two steps to the arm.
        assert (solution.steps, solution.waited) == (3 + min(turns, 8 - turns) + 2, 3)
        for action in solution.actions:
            life.step(action)
        assert life.result().success


def test_what_cannot_be_solved_is_not(plant: Plant) -> None:
    paradigm = plant(("limit: 40", "limit: 4"))
    found = Search(paradigm.program, paradigm.specification).solve(begun(paradigm, 0))
    assert found.shortest is None
    assert found.best_failure is not None


#: Moving all through the trial, or keeping still: the action must be held to the end,
#: and pays nothing.
KEPT_UP = (
    (
        "limit: 40",
        "limit: 100\n  watch: [{act: STAY, if: state == choice, count: still}]",
    ),
    (
        "        - {enter: side, reward: 1, end: correct}\n        - {enter: arm, end: error}",
        "        - {after: 40, end: over}",
    ),
    (
        "success: last == correct",
        "success: (side == left and still >= 38) or (side == right and still <= 2)",
    ),
)


@pytest.mark.parametrize("edition", ["shuttle_box", "shuttle_box.rodent"])
def test_a_first_mistake_is_corrected(edition: str) -> None:
    # Only the first of three signals has to be crossed at. A search that mends its last
    # moves first never comes back to it.
    paradigm = ArenaParadigm(with_arena(_catalogue.load(_catalogue.files[edition])))
    solver = Solver(paradigm.program, paradigm.specification)
    for seed in range(3):
        assert solver.look(begun(paradigm, seed), EFFORT, POLISH).shortest is not None


def test_what_has_to_be_kept_up_to_the_end_is_found(plant: Plant) -> None:
    found = solve_subjects(plant(*KEPT_UP), 16, 0)
    assert (found.trials, found.solved, found.in_half) == (16, 16, 16)


#: The first run of a session is not judged; later runs are right on the side opposite
#: to the run before.
ALTERNATION = (
    (
        "draw:\n  side: {of: {side: [left, right]}}",
        "vars: {side: {init: none, per: session}}",
    ),
    (
        "success: last == correct",
        "estimand: {where: trial > 1}\nsuccess: last == correct",
    ),
    ("checks: [{at: choice, hidden: side, chance: 0.5}]", ""),
    ('show: {side: "*"}, ', ""),
    (
        "{enter: side, reward: 1, end: correct}",
        "{enter: arm, if: it != side, set: {side: it}, reward: 1, end: correct}",
    ),
)


def test_runs_that_are_not_judged_are_solved_for_those_that_are(plant: Plant) -> None:
    paradigm = plant(*ALTERNATION)
    life = begun(paradigm, 0)
    assert (
        Search(paradigm.program, paradigm.specification).solve(life, 200).shortest
        is None
    )
    assert (
        Search(paradigm.program, paradigm.specification, is_success)
        .solve(life, 200)
        .shortest
        is not None
    )
    found = solve_subjects(paradigm, 16, 0)
    assert found.solved == found.trials == 16, "eight subjects, two judged trials each"
    assert found.lived == 24, "and the first trial of each, which is not judged"


def test_luck_is_no_temptation(plant: Plant) -> None:
    often = (
        "{enter: side, reward: 1, end: correct}",
        "{enter: side, set: {good: 1}, go: better}",
    )
    seldom = ("{enter: arm, end: error}", "{enter: arm, go: worse}")
    states = (
        "schedule:",
        "    better: {freeze: true, rules: [{after: 1, p: 0.8, reward: 1, end: win}, {after: 1, end: loss}]}\n"
        "    worse: {freeze: true, rules: [{after: 1, p: PAYS, reward: 1, end: win}, {after: 1, end: loss}]}\n"
        "schedule:",
    )
    rest = (
        ("success: last == correct", "vars: {good: 0}\nsuccess: good == 1"),
        often,
        seldom,
        states,
    )
    for pays, tempting in ((0.2, False), (0.95, True)):
        paradigm = plant(*rest, ("PAYS", str(pays)))
        found = list(temptations(paradigm, 100, 0))
        lucky = [
            one
            for one in found
            if one.success and one.failure and one.failure.reward > one.success.reward
        ]
        assert lucky, "in some trials the worse place pays, and the better one does not"
        assert (max(one.gain for one in found) > 0.01) is tempting


def test_only_blocks_that_are_judged_can_tempt(plant: Plant) -> None:
    schedule = (
        "schedule: {main:",
        "estimand: {block: main}\nschedule: {first: {sessions: 3, trials: 10}, main:",
    )
    found = list(temptations(plant(schedule), 16, 0))
    assert [one.where for one in found[:2]] == [
        "seed 0, subject 0, trial 31",
        "seed 0, subject 0, trial 32",
    ]
    assert all(one.success and one.success.reward == 1 for one in found)


def test_enough_judged_trials_can_tempt_whatever_comes_before_them(
    plant: Plant,
) -> None:
    late = (
        "schedule: {main: {sessions: 2, trials: 10}}",
        "estimand: {block: test}\nschedule: {main: {sessions: 2, trials: 10}, test: {trials: 4}}",
    )
    found = [one.where for one in temptations(plant(late), 40, 0)]
    # Two seeds of eight subjects, who have four such trials each.
    assert len(found) == len(set(found)) == 64
    assert (found[0], found[-1]) == (
        "seed 0, subject 0, trial 21",
        "seed 1, subject 7, trial 24",
    )
