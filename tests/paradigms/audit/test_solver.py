"""Copies of a life, and the solver that tries moves on them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.paradigms import ArenaParadigm
from cheesebench.paradigms.audit.runs import DARKNESS
from cheesebench.paradigms.audit.search import Search, branch
from cheesebench.paradigms.life import ArenaLife
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue

Plant = Callable[..., ArenaParadigm]

_catalogue = Catalogue(installed_plugins().protocol_directories)


def begun(paradigm: ArenaParadigm, seed: int) -> ArenaLife:
    life = ArenaLife(paradigm.program, DARKNESS, seed, 0)
    assert life.begin_trial() is not None
    return life


@pytest.mark.parametrize("name", list(_catalogue.files))
def test_a_copy_leaves_the_life_alone_and_lives_as_it_would(name: str) -> None:
    paradigm = ArenaParadigm(_catalogue.load(_catalogue.files[name]))
    chance = random.Random(2)
    life, untouched = begun(paradigm, 5), begun(paradigm, 5)
    status = RUNNING
    for _ in range(60):
        actions = [chance.randrange(4) for _ in range(5)]
        twin = branch(life)
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
