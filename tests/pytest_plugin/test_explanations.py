"""The text of a failed test: in one line, or with all numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.pytest_session.explanations import explain, missing_trials
from cheesebench.records import CellPlan, Measured, ReferenceValue, TrialRecord
from cheesebench.statistics import CellResult, Verdict
from cheesebench.statistics.summary import JudgedMean
from tests.stored import check_stored

RATE = ReferenceValue(
    value=0.8, species="mouse", source="A paper " * 20, status="made up"
)
LATENCY = ReferenceValue(
    value=4.0, measured=Measured(name="latency", better="lower", range=(0.0, 9.0))
)


def plan(**changes: Any) -> CellPlan:
    named: dict[str, Any] = {
        "model": "m", "protocol": "p", "view": "v", "title": "P", "dimension": "", "species": "", "sha256": "0123456789",
        "design": "cohort", "subjects": 10, "trials": 3, "memory": "life", "reference": RATE, "margin": 0.1,
    }  # fmt: skip
    return CellPlan(**(named | changes))


def trial(
    subject: int, number: int, success: bool | None, **changes: Any
) -> TrialRecord:
    return TrialRecord(
        model="m",
        protocol="p",
        view="v",
        subject=subject,
        trial=number,
        success=success,
        **changes,
    )


LIVES = [
    [trial(0, 0, True), trial(0, 1, None), trial(0, 2, False)],
    [trial(1, 0, False), trial(1, 1, True)],
]


def run(
    verbose: int = 0,
    film: bool = False,
    lives: Any = LIVES,
    causes: tuple[str, ...] = (),
) -> Any:
    def told(*given: Any) -> str:
        return f"film of subject {given[-1].subject}, trial {given[-1].trial}"

    entries = [SimpleNamespace(text=text) for text in causes]
    return SimpleNamespace(
        log=SimpleNamespace(run_id="r1", journal=lambda plan, kind: entries),
        config=SimpleNamespace(option=SimpleNamespace(verbose=verbose)),
        settings=SimpleNamespace(film=film),
        plugins=SimpleNamespace(
            family=lambda specification: SimpleNamespace(explain=told)
        ),
        trials_by_subject=lambda plan: lives,
    )


def result(plan: CellPlan, **changes: Any) -> CellResult:
    named: dict[str, Any] = {
        "verdict": Verdict.FAIL,
        "reason": "It is lower \x1b.",
        "n_text": "10 x 3",
    }
    return CellResult(plan=plan, **(named | changes))


JUDGED = JudgedMean(
    measure="latency",
    better="lower",
    mean=6.25,
    interval=(5.0, 7.5),
    sd=1.0,
    subjects=10,
)
NUMBERS: dict[str, Any] = {
    "rate": 0.5, "interval": (0.4, 0.6), "difference": -0.3, "difference_low": -0.4, "difference_high": -0.2,
}  # fmt: skip
RESULTS = {
    "a rate": result(plan(), **NUMBERS),
    "without an interval": result(plan(), rate=0.5),
    "without a bound": result(plan(), **(NUMBERS | {"difference_high": None})),
    "nothing": result(plan(reference=None)),
    "against chance": result(plan(against="chance", chance=0.125), rate=0.25),
    "against an unknown chance": result(plan(against="chance"), rate=0.25),
    "a measure": result(
        plan(reference=LATENCY, margin=0.5), judged=JUDGED, difference=-2.25, difference_low=-3.0, difference_high=-1.5, rate=0.5
    ),
}  # fmt: skip


def test_cells_are_explained_in_a_line_or_with_all_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    specification: Any = None
    lines = []
    for name, found in RESULTS.items():
        for which, session in (
            ("short", run()),
            ("verbose", run(1)),
            ("film", run(film=True)),
        ):
            lines += [f"== {name}, {which}", explain(session, specification, found)]
    lines += [
        "== all right",
        explain(
            run(1, lives=[[trial(0, 0, True)]]),
            specification,
            RESULTS["a rate"],
        ),
    ]
    monkeypatch.setenv("COLUMNS", "500")
    long = result(plan(reference=None), reason="word " * 60)
    lines += ["== wide", explain(run(-1), specification, long)]
    check_stored("explanations.txt", "\n".join([*lines, ""]))


def test_missing_trials_are_counted_with_their_cause_and_remedy() -> None:
    lives = [
        [trial(0, 0, True), trial(0, 1, None, missing="budget")],
        [trial(1, 0, None, missing="budget")],
    ]
    some = result(plan(), planned=3, missing=2, causes=("no reply.", "another. "))
    noted = (
        "no reply. The answer begins: {1}",
        "no reply. The answer begins: {2}",
        "another.",
    )
    assert missing_trials(run(lives=lives, causes=noted), some) == (
        "2 trials of 3 could not be run: no reply.\n\n"
        "This says nothing about the model. Fix the cause, then run the rest with --resume r1.\n\n"
        "The last error: no reply. The answer begins: {2}"
    )
    in_job = missing_trials(run(lives=lives, causes=noted), some, in_ci=True)
    assert "Fix the cause, then run the job again.\n" in in_job
    few = result(plan(), planned=2, missing=1)
    assert missing_trials(run(lives=lives), few).startswith(
        "2 trials of 3 (1 of the 2 that count) could not be run.\n"
    )
    anew = result(plan(), planned=3, missing=2, outcomes={"run anew": 1})
    lost = missing_trials(run(lives=lives[1:]), anew)
    assert lost.startswith("1 trial of 1 (2 of the 3 that count) ")
    assert "run anew after a stop." in lost
    assert lost.endswith("This says nothing about the model. Start a new run.")
    in_job = missing_trials(run(lives=lives[1:]), anew, in_ci=True)
    assert in_job.endswith(" Start a new run (push a commit).")
