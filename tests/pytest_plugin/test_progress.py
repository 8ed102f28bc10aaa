"""The line of progress: what it says, and what it leaves out where there is no room."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from cheesebench.experiment.session import Progress
from cheesebench.model_run import ModelRun
from cheesebench.pytest_session.run import _texts
from cheesebench.records import CellPlan
from cheesebench.statistics import Verdict
from cheesebench.tally import EARLY_SECONDS, Standing, Tally, time_left


class Fixed(Tally):
    """The progress of a run that has stopped at one moment."""

    def __init__(self, cells: int, unreadable: str = "", **now: object) -> None:
        super().__init__(cast(ModelRun, None), [cast(CellPlan, None)] * cells)
        self._unreadable = unreadable
        standing: dict[str, object] = {
            "decided": 1, "cells": cells, "verdicts": Counter({Verdict.PASS: 1}), "trials": 50,
            "share": 0.25, "cost": 0.0, "left": None, "seconds": None,
        }  # fmt: skip
        self._now = Standing(**(standing | now))  # type: ignore[arg-type]

    def poll(self, fresh: bool = False) -> Standing:
        return self._now

    @property
    def unreadable(self) -> str:
        return self._unreadable


def texts(tally: Tally | None, seconds: float = 40.0, **changes: object) -> list[str]:
    progress = Progress(**({"done": 20, "planned": 80} | changes))  # type: ignore[arg-type]
    return list(_texts(progress, tally, seconds))


OWN = " 20/80 trials, 40 s"


def test_a_cell_alone_says_its_trials_time_and_cost() -> None:
    left = f"{OWN}, about 2 min left"
    assert texts(None, note="3 calls") == [f"{left}; 3 calls", left, OWN]
    paid = Fixed(1, cost=1.5, left=0.5)
    assert texts(paid, note="3 calls")[0] == f"{left}; 3 calls, $1.50, $0.50 left"
    # Nothing is estimated within ten seconds of the end.
    assert texts(None, done=70, planned=80)[0] == " 70/80 trials, 40 s"
    assert texts(None, done=0)[0] == " 0/80 trials, 40 s"
    # What cannot be read comes first.
    assert texts(Fixed(1, "7 of 8 replies unreadable"))[0].startswith(
        " 7 of 8 replies unreadable; 20/80 trials"
    )


def test_a_sequential_cell_says_how_far_its_sets_may_go() -> None:
    [whole, *_] = texts(None, subjects=10, most=40, to_come=300)
    assert whole == (
        " 10 of at most 40 subjects: 20/80 trials, 40 s, 2 min to 10 min left"
    )


def test_several_cells_come_before_the_one_that_runs() -> None:
    run = " 1 of 3 cells: 1 PASS; 25 %"
    left = f"{OWN}, about 2 min left"
    assert texts(Fixed(3), note="3 calls") == [
        f"{run} |{left}; 3 calls",
        f"{run} |{left}",
        run,
        left,
        OWN,
    ]
    assert texts(Fixed(3, seconds=(120.0, 600.0)))[2] == f"{run}, 2 min to 10 min left"
    over = texts(Fixed(3, decided=3, verdicts=Counter({Verdict.FAIL: 3})))
    assert over[2] == " 3 of 3 cells: 3 FAIL"
    assert texts(Fixed(3, decided=0, verdicts=Counter()))[2] == " 0 of 3 cells; 25 %"
    some = Fixed(3, "1 of 9 replies unreadable", cost=0.25)
    assert texts(some)[2] == (
        " 1 of 3 cells: 1 PASS; 1 of 9 replies unreadable; $0.25; 25 %"
    )


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [
        (40, 40, "about 40 s"),
        (40, 720, "40 s to 12 min"),
        (40, 10, "about 40 s"),
    ],
)
def test_time_left_is_a_range_if_more_sets_may_come(
    least: float, most: float, said: str
) -> None:
    assert time_left(least, most) == said


class Running:
    """A run with trials, which never ends."""

    language = None

    def __init__(self, cost: float | None = None) -> None:
        limits = SimpleNamespace(cost=cost)
        self.settings = SimpleNamespace(
            language=cost is not None, calls=SimpleNamespace(limits=limits)
        )
        totals = SimpleNamespace(cost=1.25)
        self.log = SimpleNamespace(calls=SimpleNamespace(totals=lambda: totals))
        self.done = 10

    def is_over(self, plan: object) -> bool:
        return False

    def progress(self, plan: object) -> Progress:
        return Progress(self.done, 40, to_come=100)


def test_the_pace_is_that_of_this_session_and_no_guess() -> None:
    run = Running()
    tally = Tally(cast(ModelRun, run), [cast(CellPlan, None)] * 2)
    standing = tally.poll()
    assert (standing.decided, standing.cells, standing.trials) == (0, 2, 20)
    assert standing.share == 0.25
    assert (standing.cost, standing.left, standing.seconds) == (0, None, None)
    # Twenty trials were there before.
    assert tally._seconds(20, 80, 60.0) is None
    assert tally._seconds(30, 80, EARLY_SECONDS) is None
    assert tally._seconds(30, 80, 60.0) == (6.0 * 50, 6.0 * 200)
    assert tally._seconds(30, 600, 60.0) is not None
    assert tally._seconds(30, 601, 60.0) is None
    # It is counted anew where now is asked for.
    run.done = 80
    assert tally.poll(fresh=True).share == 1
    assert tally.poll().trials == 160
    assert Tally(cast(ModelRun, run), []).poll().share == 0


def test_what_is_left_of_the_budget_is_never_below_nothing() -> None:
    plans = [cast(CellPlan, None)]
    for most, left in [(2.0, 0.75), (1.0, 0.0)]:
        standing = Tally(cast(ModelRun, Running(most)), plans).poll()
        assert (standing.cost, standing.left) == (1.25, left)
    assert standing.dollars_text == "$1.25, $0.00 left"
