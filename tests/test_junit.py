"""The properties that go into a JUnit file."""

from __future__ import annotations

import random

from cheesebench.pytest_session.ci import PREFIX, case_properties, suite_properties
from cheesebench.records import CellPlan, ReferenceValue, TrialRecord
from cheesebench.statistics import RunSummary, summarise_run


def run(reference: ReferenceValue | None, *, missing: str = "") -> RunSummary:
    plan = CellPlan(
        model="walker",
        protocol="pool",
        view="ascii_2d",
        title="Pool",
        dimension="spatial learning",
        species="C57BL/6",
        sha256="0123456789abcdef" * 4,
        design="cohort",
        subjects=10,
        trials=20,
        memory="life",
        reference=reference,
        chance=0.25,
    )
    chance = random.Random(1)
    trials = [
        TrialRecord(
            model="walker",
            protocol="pool",
            view="ascii_2d",
            subject=subject,
            trial=trial,
            missing=missing,
            success=None if missing else chance.random() < 0.5,
            outcome=None if missing else "done",
            actions="".join(chance.choices("FLRS", k=9)),
        )
        for subject in range(10)
        for trial in range(20)
    ]
    manifest = {
        "run_id": "r1",
        "options": {"seed": 7, "design": "cohort", "models": ["walker", "other"]},
        "versions": {"python": "3.11"},
        "git": {"revision": "abc", "dirty": False},
        "protocols": {"pool": {"text": "a long text that has no place here"}},
    }
    return summarise_run(manifest, [plan], trials)


def test_a_case_says_what_was_compared_with_what() -> None:
    (cell,) = run(ReferenceValue(value=0.8)).cells
    found = dict(case_properties(cell))
    assert all(name.startswith(PREFIX) for name in found)
    short = {name.removeprefix(PREFIX): value for name, value in found.items()}
    assert short["model"] == "walker"
    assert short["protocol_sha256"] == "0123456789abcdef" * 4
    assert short["view"] == "ascii_2d"
    assert short["n"] == "10 subjects x 20 trials (200/200 valid)"
    assert short["verdict"] == "FAIL"
    assert short["reference"] == "0.8"
    assert short["reference_declared"] == "true"
    assert short["margin"] == "0.1"
    assert (
        float(short["interval_low"])
        < float(short["rate"])
        < float(short["interval_high"])
    )
    assert len(found) == len(case_properties(cell)), "a name twice"


def test_what_is_unknown_is_left_out() -> None:
    (cell,) = run(None, missing="infrastructure").cells
    names = {name.removeprefix(PREFIX) for name, _ in case_properties(cell)}
    assert not names & {
        "rate",
        "interval_low",
        "interval_high",
        "reference",
        "reference_declared",
        "difference",
    }
    assert {"verdict", "reason", "planned", "valid", "missing"} <= names


def test_the_suite_says_which_run_and_what_each_model_came_to() -> None:
    found = {
        name.removeprefix(PREFIX): value
        for name, value in suite_properties(run(ReferenceValue(value=0.8)))
    }
    assert found["run_id"] == "r1"
    assert found["options.seed"] == "7"
    assert found["options.models"] == "walker,other"
    assert found["git.dirty"] == "false"
    assert found["walker[ascii_2d].gate"] == "FAIL"
    assert 0.4 < float(found["walker[ascii_2d].mean_rate"]) < 0.6
    assert not any("long text" in value for value in found.values())
