"""`info["life_over"]`: the trial that has ended was the last one of the subject's schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cheesebench.interfaces import RUNNING
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from fuzz.kernel import Lanes, assert_equal, classes_of, lanes_of
from tests.paradigms.zoo import ZOO, load

#: Blocks that end on a criterion, that are repeated, up to a number of trials, or neither; short lives.
SHORT = ("doors_and_draws", "repeated", "scopes", "left_over")
#: Most trials of a life that are played.
TRIALS = 60


@pytest.mark.parametrize("name", ZOO)
def test_it_is_true_where_the_schedule_has_no_further_trial(name: str) -> None:
    program = ArenaParadigm(load(name)).program
    life = ArenaSubject(program, installed_plugins().view("ascii_2d"), seed=3, subject=1)
    random = np.random.default_rng(3)
    observation = life.begin_trial()
    for _ in range(TRIALS):
        while life.step(int(random.integers(3)))[2] == RUNNING:
            pass
        over = life.life_over
        observation = life.begin_trial()
        assert over is (observation is None)
        if over:
            assert life.life_over
            return


@pytest.mark.parametrize("compiled", [False, True], ids=["lives", "compiled"])
@pytest.mark.parametrize("name", SHORT)
def test_lanes_say_when_their_life_is_over(name: str, compiled: bool) -> None:
    scalar, batched = classes_of(load(name))
    subjects, vector = Lanes(scalar, 3, 0), lanes_of(batched, 3, compiled)
    assert_equal(vector, vector.reset(seed=1), subjects.reset(1))
    random, lives = np.random.default_rng(1), np.zeros(3, int)
    for _ in range(3000):
        actions = random.integers(0, 3, 3)
        stepped = vector.step(actions)
        assert_equal(vector, stepped, subjects.step(actions))
        infos: dict[str, Any] = stepped[-1]
        if "life_over" in infos:
            assert infos["life_over"].dtype == bool
            assert not (infos["life_over"] & ~infos["_life_over"]).any()
            lives += infos["life_over"]
        if (lives >= 2).all():
            return
    raise AssertionError(f"lives that ended: {lives}")
