"""The progress of a run in one line: verdicts, dollars, share and time left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.experiment.session import Progress
from cheesebench.records import (
    CallTotals,
    CellPlan,
    ReferenceValue,
    TrialRecord,
    Variant,
)
from cheesebench.statistics import Verdict
from cheesebench.tally import Standing, Tally, time_left


def plan(protocol: str) -> CellPlan:
    return CellPlan(
        model="m", protocol=protocol, view="v", title="", dimension="", species="", sha256="0", design="cohort",
        subjects=10, trials=20, memory="life", reference=ReferenceValue(value=0.5),
    )  # fmt: skip


def life(one: CellPlan, subject: int, rate: float) -> list[TrialRecord]:
    return [
        TrialRecord(
            model=one.model, protocol=one.protocol, view=one.view,
            subject=subject, trial=trial, session=1, success=trial < 20 * rate, outcome="end",
            actions="FLRS"[subject % 4] * (1 + subject + trial),
        )
        for trial in range(20)
    ]  # fmt: skip


@dataclass
class Run:
    """What a tally asks of a run, set by hand."""

    over: dict[CellPlan, float] = field(default_factory=dict)
    at: dict[CellPlan, Progress] = field(default_factory=dict)
    cost: float = 0.0
    most: float | None = None
    unreadable: tuple[int, int] | None = None

    @property
    def settings(self) -> Any:
        limits = SimpleNamespace(cost=self.most)
        calls = SimpleNamespace(limits=limits)
        return SimpleNamespace(language=self.cost > 0, calls=calls)

    @property
    def log(self) -> Any:
        totals = CallTotals(cost=self.cost)
        return SimpleNamespace(calls=SimpleNamespace(totals=lambda: totals))

    @property
    def language(self) -> Any:
        found = self.unreadable
        return None if found is None else SimpleNamespace(unreadable=found)

    def is_over(self, one: CellPlan) -> bool:
        return one in self.over

    def progress(self, one: CellPlan) -> Progress:
        return self.at[one]

    def trials_by_subject(self, one: CellPlan) -> list[list[TrialRecord]]:
        return [life(one, subject, self.over[one]) for subject in range(10)]


def progress(done: int, planned: int, to_come: int = 0) -> Progress:
    return Progress(done, planned, to_come=to_come)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_cells_are_counted_as_they_are_decided(clock: list[float]) -> None:
    one, two, three = map(plan, ("a", "b", "c"))
    run: Any = Run(at={p: progress(0, 200) for p in (one, two, three)})
    tally = Tally(run, [one, two, three])
    assert tally.cells == 3
    assert tally.line() == "0 of 3 cells; 0 %"
    run.over, run.at[one] = {one: 1.0}, progress(200, 200)
    run.at[two] = progress(50, 200, 400)
    run.at[three] = progress(60, 30, 40)
    clock[0] += 1.0
    assert tally.line() == "0 of 3 cells; 0 %", "at most a second old"
    assert tally.line(fresh=True) == "1 of 3 cells: 1 PASS; 67 %"
    clock[0] += 9.0
    found = tally.poll()
    assert (found.decided, found.cells, found.trials) == (1, 3, 310)
    assert found.share == 310 / 460
    assert found.verdicts == Counter({Verdict.PASS: 1})
    # 310 trials in 10 s: 150 are planned, and 440 may come.
    assert found.seconds == (10 / 310 * 150, 10 / 310 * 440)
    assert tally.line() == "1 of 3 cells: 1 PASS; 67 %, 5 s to 15 s left"
    run.at |= {two: progress(200, 200), three: progress(199, 200)}
    assert tally.line(fresh=True).partition(",")[0] == "1 of 3 cells: 1 PASS; 99 %"
    run.over |= {two: 0.0, three: 1.0}
    run.at |= {two: progress(200, 200), three: progress(200, 200)}
    assert tally.line(fresh=True) == "3 of 3 cells: 2 PASS, 1 FAIL"
    assert tally.poll().seconds is None
    assert (tally.poll().share, tally.poll().trials) == (1.0, 600)


def test_controls_are_counted_without_a_verdict() -> None:
    plain = plan("a")
    control = replace(plain, variant=Variant(control="blind"), claims=False)
    over = {plain: 1.0, control: 1.0}
    run: Any = Run(over=over, at=dict.fromkeys(over, progress(200, 200)))
    tally = Tally(run, [plain, control])
    assert tally.line() == "2 of 2 cells: 1 PASS, 1 control"


def test_a_resumed_run_says_that_it_replays(clock: list[float]) -> None:
    one = plan("a")
    run: Any = Run(at={one: progress(40, 200)})
    tally = Tally(run, [one], recorded=50)
    assert tally.line() == "0 of 1 cells; replaying, 20 %"
    run.at[one] = progress(50, 200)
    assert tally.line(fresh=True) == "0 of 1 cells; 25 %"


def test_trials_of_earlier_sessions_count_for_no_pace(clock: list[float]) -> None:
    one = plan("a")
    run: Any = Run(at={one: progress(100, 200, 100)})
    tally = Tally(run, [one])
    assert tally.poll().seconds is None
    clock[0] += 10
    assert tally.poll().seconds is None, "nothing was gained"
    run.at[one] = progress(120, 200, 90)
    assert tally.poll(fresh=True).seconds == (40.0, 45.0)


@pytest.mark.parametrize(
    ("seconds", "done", "known"),
    [(5.0, 100, False), (5.1, 100, True), (60.0, 9, False), (60.0, 10, True)],
)
def test_no_time_is_said_too_early(
    clock: list[float], seconds: float, done: int, known: bool
) -> None:
    one = plan("a")
    run: Any = Run(at={one: progress(0, 200, 200)})
    tally = Tally(run, [one])
    tally.poll()
    clock[0] += seconds
    run.at[one] = progress(done, 200, 200)
    assert (tally.poll().seconds is not None) is known


def test_dollars_and_unreadable_replies_are_said(clock: list[float]) -> None:
    one = plan("a")
    run: Any = Run(at={one: progress(0, 0)}, cost=0.12, most=5.0, unreadable=(7, 8))
    tally = Tally(run, [one])
    said = "0 of 1 cells; 7 of 8 replies unreadable; $0.12, $4.88 left; 0 %"
    assert tally.line() == said
    assert (tally.poll().cost, tally.poll().left) == (0.12, 4.88)
    run.cost, run.unreadable = 6.0, (0, 8)
    assert tally.line(fresh=True) == "0 of 1 cells; $6.00, $0.00 left; 0 %"
    run.most = None
    assert tally.poll(fresh=True).dollars_text == "$6.00"
    run.cost = 0.0
    assert tally.poll(fresh=True).dollars_text == ""
    run.most = 2.0
    assert tally.poll(fresh=True).dollars_text == "$0.00, $2.00 left"


def test_a_standing_names_the_verdicts_in_order() -> None:
    verdicts = Counter({Verdict.ERROR: 1, Verdict.PASS: 3, Verdict.FAIL: 0})
    found = Standing(
        decided=4, cells=9, verdicts=verdicts, trials=0, share=0.0, cost=0.0, left=None, seconds=None,
    )  # fmt: skip
    assert found.verdicts_text == "4 of 9 cells: 3 PASS, 1 ERROR"


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [
        (40.0, 40.0, "about 40 s"),
        (39.1, 720.0, "40 s to 12 min"),
        (0.0, 0.5, "about 1 s"),
        (40.0, 12.0, "about 40 s"),
    ],
)
def test_the_time_left_is_a_range_if_sets_may_follow(
    least: float, most: float, said: str
) -> None:
    assert time_left(least, most) == said
