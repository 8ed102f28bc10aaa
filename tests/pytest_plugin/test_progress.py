"""The line of progress: what it says, and what it leaves out where there is no room."""

from __future__ import annotations

import io
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.baselines import baseline_text
from cheesebench.errors import ComparisonError
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.session import Progress
from cheesebench.experiment.settings import Settings
from cheesebench.model_run import ModelRun
from cheesebench.pytest_session.run import (
    BEAT,
    WORKER_INPUT,
    Comparing,
    Handed,
    _texts,
    progress_line,
    tell_uncaptured,
)
from cheesebench.records import CellPlan
from cheesebench.statistics import Verdict
from cheesebench.statistics.comparison import (
    CellCounts,
    CountedRun,
    compare_runs,
    count_cell,
)
from cheesebench.statistics.sample import SubjectScore
from cheesebench.tally import EARLY_SECONDS, Standing, Tally, time_left
from tests.reports.conftest import plan_of


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


def baseline(folder: Path, *cells: CellCounts, seed: object = 7) -> Path:
    path = folder / "main.json"
    run = CountedRun(name="main", seed=seed, cells=cells, manifest={})
    path.write_text(baseline_text(run), encoding="utf-8")
    return path


def counts(subjects: int = 20, **changes: Any) -> CellCounts:
    """Return the counts of the cell of ``plan_of``, with that many subjects."""
    found = count_cell(plan_of(subjects=subjects), ())
    scores = {n: SubjectScore(10, 20, 0, f"{n}") for n in range(subjects)}
    return replace(found, subjects=scores, **changes)


def test_a_baseline_is_known_by_its_name_seed_and_cells(tmp_path: Path) -> None:
    found = Comparing(baseline(tmp_path, counts()), fails_if="worse")
    assert (found.name, found.seed, found.run_id) == ("main", 7, None)
    assert found.acted(plan_of()) == "main"
    assert found.acted(plan_of("maze")) == ""
    assert found.acted(plan_of(model="runner")) == ""
    bare = Comparing(baseline(tmp_path, counts(0), seed=None), fails_if="worse")
    assert (bare.acted(plan_of()), bare.seed) == ("", None)


@pytest.mark.parametrize(
    ("fails_if", "plans", "known", "said"),
    [
        ("worse", [plan_of(subjects=2)], [counts(2)], ""),
        ("worse", [plan_of(), plan_of("maze")], [counts()], ""),
        ("undecided", [plan_of(subjects=20)], [counts()], ""),
        ("worse", [plan_of(sequential=True, subjects=20)], [counts()], "A run of the design 'sequential' stops"),
        (
            "worse,undecided", [plan_of(), plan_of("maze")], [counts()],
            "main does not have maze (ascii_2d), so the comparison would be undecided, which fails this run. "
            "Run what it has (--protocols pool), or",
        ),
        (
            "undecided", [plan_of(), plan_of(model="runner")], [counts(), counts(protocol="maze")],
            "main does not have runner, so the comparison would be undecided, which fails this run. "
            "Run what it has (--model walker), or",
        ),
        (
            "undecided", [plan_of(subjects=2)], [counts()],
            "fails this run: 2 of its subjects are in main, and it takes 12 to exclude a loss if nothing differs at "
            "all, 20 for a usual model. To compare, add --subjects 20.",
        ),
        (
            "undecided", [plan_of(subjects=20)], [counts(1)],
            "fails this run: 1 of its subjects is in main, and it takes 12 to exclude a loss if nothing differs at "
            "all, 20 for a usual model. To compare, bless a run of 20 subjects.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_said_before_the_run(
    tmp_path: Path,
    fails_if: str,
    plans: list[CellPlan],
    known: list[CellCounts],
    said: str,
) -> None:
    found = Comparing(baseline(tmp_path, *known), fails_if=fails_if)
    with pytest.raises(ComparisonError) if said else nullcontext() as raised:
        found.check(plans, 7)
    assert said in str(raised and raised.value)


def test_a_run_fails_for_what_it_is_told_to_fail_for(tmp_path: Path) -> None:
    lost = replace(
        counts(), subjects={n: SubjectScore(1, 20, 0, f"{n}x") for n in range(20)}
    )
    new, old = (CountedRun(name=name, seed=7, cells=cells) for name, cells in (
        ("new", (lost, counts(protocol="maze"))), ("old", (counts(),))
    ))  # fmt: skip
    compared = compare_runs(new, old)
    path = baseline(tmp_path, counts())
    blamed = {
        fails_if: [
            title for title, _, _ in Comparing(path, fails_if=fails_if).blamed(compared)
        ]
        for fails_if in ("", "worse", "undecided", "worse,undecided")
    }
    losses = [title for title, _, _ in compared.losses]
    questions = [title for title, _, _ in compared.open_questions]
    assert losses
    assert questions
    assert blamed == {
        "": [],
        "worse": losses,
        "undecided": questions,
        "worse,undecided": [*losses, *questions],
    }


def test_a_beat_comes_each_minute_and_says_how_far_the_run_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, lines = [1000.0], list[str]()
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    plugins = {
        "terminalreporter": SimpleNamespace(
            isatty=False, ensure_newline=lambda: None, write_line=lines.append
        )
    }
    config = cast(
        Any,
        SimpleNamespace(
            stash=pytest.Stash(), pluginmanager=SimpleNamespace(getplugin=plugins.get)
        ),
    )
    progress = Progress(done=20, planned=80, note="3 calls")
    for name, tally in (("a::b::cell", None), ("other", Fixed(3))):
        with progress_line(config, name, tally) as line:
            for seconds in (0.0, BEAT - 1, 1.0, BEAT - 1):
                now[0] += seconds
                line(progress)
        now[0] += 1.0
    assert lines == [
        "cheesebench: cell: 20 of 80 trials; 3 calls",
        "cheesebench: 1 of 3 cells: 1 PASS; 25 %; 3 calls",
        "cheesebench: 1 of 3 cells: 1 PASS; 25 %; 3 calls",
    ]
    lines.clear()
    monkeypatch.setattr(sys, "__stderr__", io.StringIO())
    config.workerinput = {}
    tell_uncaptured(config, "hear\x1b me")
    assert lines == []
    assert cast(Any, sys.__stderr__).getvalue() == "hear\\x1b me\n"


def test_on_a_terminal_the_longest_text_that_fits_is_shown_and_cleared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = SimpleNamespace(isatty=True)
    config = cast(
        Any,
        SimpleNamespace(
            pluginmanager=SimpleNamespace(getplugin={"terminalreporter": terminal}.get),
            option=SimpleNamespace(verbose=0),
        ),
    )
    monkeypatch.delenv("TERM", raising=False)
    monkeypatch.setattr("time.monotonic", lambda: 5.0)
    progress = Progress(done=20, planned=80, note="3 calls")
    long, short = (f" 20/80 trials, 0 s{more}" for more in ("; 3 calls", ""))

    def shown(columns: int, verbose: int = 0) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        config.option.verbose = verbose
        with progress_line(config, "lab::cell", None) as line:
            line(progress)
        return capsys.readouterr().out

    taken = len("lab") + 12
    assert shown(len(long) + taken) == f"\x1b7{long}\x1b[K\x1b8\x1b[K"
    assert shown(len(long) + taken - 1) == f"\x1b7{short}\x1b[K\x1b8\x1b[K"
    assert shown(len(short) + taken - 1) == "\x1b[K"
    # With -v, pytest has written the whole name.
    assert shown(len(long) + taken, 1) == f"\x1b7{short}\x1b[K\x1b8\x1b[K"


@dataclass
class Few:
    """The settings that workers share."""

    calls: CallOptions
    processes: int | None


def test_a_worker_gets_its_share_of_calls_and_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    handed = Handed(
        log="x", seed=1, workers=3, base_urls={}, began=2.5, one_worker=False
    )
    calls = CallOptions(concurrency=10, began=1.0)

    def share(processes: int | None = None, **changes: Any) -> tuple[Any, ...]:
        given = cast(Settings, Few(calls, processes))
        found = replace(handed, **changes).of_worker(given)
        made = found.calls
        return made.concurrency, made.processes, made.began, found.processes

    assert share() == (3, 3, 2.5, 2)
    assert share(processes=5) == (3, 3, 2.5, 5)
    assert share(workers=20) == (1, 20, 2.5, 1)
    assert share(one_worker=True) == (10, 1, 2.5, None)
    plain = cast(pytest.Config, SimpleNamespace())
    worker = cast(
        pytest.Config, SimpleNamespace(workerinput={WORKER_INPUT: vars(handed)})
    )
    other = cast(pytest.Config, SimpleNamespace(workerinput={}))
    assert Handed.to(worker) == handed
    assert (Handed.to(plain), Handed.to(other)) == (None, None)
