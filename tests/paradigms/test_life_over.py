"""`info["life_over"]`: whether the ended trial was the last one of the subject's
schedule.
"""

from __future__ import annotations

import numpy as np
import pytest

from cheesebench.interfaces import RUNNING
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from tests.paradigms.zoo import ZOO, load

#: Maximum number of trials of a life to play.
TRIALS = 60


@pytest.mark.parametrize("name", ZOO)
def test_it_is_true_where_the_schedule_has_no_further_trial(name: str) -> None:
    program = ArenaParadigm(load(name)).program
    life = ArenaSubject(
        program, installed_plugins().view("ascii_2d"), seed=3, subject=1
    )
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
