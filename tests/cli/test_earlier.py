"""What earlier runs say of a model's cost, and of the manner of its replies."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import cheesebench
from cheesebench.experiment.log import RunLog
from cheesebench.interfaces import ACTIONS
from cheesebench.planning.earlier import (
    DENSITY,
    MOST_RUNS,
    PICTURED,
    EarlierRuns,
    Manner,
    _actions_of_a_reply,
    _side_by_side,
    _subject_of,
)
from cheesebench.records import CellPlan
from fuzz.run_logs import rewritten

REPLIES = 'seed: 1\nreplies:\n  - say: ["ACTIONS: F, F, F, F", "ACTIONS: L, R, F", "What now?"]\n'


@pytest.fixture
def plan(here: Path) -> CellPlan:
    """The cell of a run of two subjects in ``results/asked``."""
    (here / "replies.yaml").write_text(REPLIES, encoding="utf-8")
    cheesebench.run(
        "scripted:replies.yaml", ["little.protocol.yaml"], design="cohort", subjects=2, seed=0, run_id="asked",
        progress=False,
    )  # fmt: skip
    with RunLog.open_read_only(here / "results" / "asked") as log:
        [plan] = log.plans()
    return plan


def test_a_subject_costs_what_it_did_before(plan: CellPlan, here: Path) -> None:
    found = EarlierRuns(here / "results").subject(plan)
    assert found is not None
    seconds = found.pop("seconds")
    with RunLog.open_read_only(here / "results" / "asked") as log:
        query = "SELECT prompt_tokens, completion_tokens, seconds FROM calls WHERE subject = 0"
        rows = log.select(query, ())
        ((spent,),) = log.select("SELECT sum(seconds) FROM calls", ())
        assert seconds == pytest.approx(spent / 2 / _side_by_side(log))
    prompts = [row[0] for row in rows]
    assert found == {
        "calls": len(rows), "prompt": sum(prompts), "cached": 0, "api": 0, "completion": sum(row[1] for row in rows),
        "longest": max(prompts),
    }  # fmt: skip
    assert found["calls"] == 10
    # The trials that it did not have cost what the last one did: 3 calls each.
    longer = EarlierRuns(here / "results").subject(replace(plan, trials=8))
    assert longer is not None
    assert (longer["calls"], longer["longest"]) == (22, found["longest"])
    assert longer["prompt"] == sum(prompts) + 4 * sum(prompts[-3:])
    # Trials that are not planned cost nothing.
    shorter = EarlierRuns(here / "results").subject(replace(plan, trials=1))
    assert shorter is not None
    assert 0 < shorter["calls"] < found["calls"]
    # The short prompts of a few first trials say little of the others.
    assert EarlierRuns(here / "results").subject(replace(plan, trials=9)) is None


@pytest.mark.parametrize(
    "change", ["model", "agent", "settings", "protocol", "sha256", "view", "variant"]
)
def test_only_the_same_cell_counts_and_any_with_the_same_settings_has_its_manner(
    plan: CellPlan, here: Path, change: str
) -> None:
    other = replace(plan, **{change: {} if change == "settings" else "other"})  # type: ignore[arg-type]
    runs = EarlierRuns(here / "results")
    assert runs.subject(other) is None
    alike = change not in ("model", "agent", "settings")
    assert (runs.manner(other) is not None) is alike


def test_the_manner_of_replies_is_counted(plan: CellPlan, here: Path) -> None:
    found = EarlierRuns(here / "results").manner(plan)
    assert found is not None
    with RunLog.open_read_only(here / "results" / "asked") as log:
        firsts = log.select(
            "SELECT sum(prompt_tokens), sum(length(CAST(asked AS BLOB))) FROM calls WHERE trial + call = 0",
            (),
        )
        ((tokens, asked),) = firsts
        ((system,),) = log.select("SELECT length(CAST(text AS BLOB)) FROM texts", ())
        ((completion,),) = log.select("SELECT sum(completion_tokens) FROM calls", ())
    assert found.replies == 20
    assert found.reply == completion / 20
    assert found.acts == pytest.approx(0.7)
    assert found.actions == pytest.approx((8 * 4 + 6 * 3) / 14)
    assert found.density == pytest.approx(tokens / (2 * system + PICTURED * asked))
    assert (found.asked, found.context) == (False, None)
    assert found.seconds > 0
    assert Manner() == Manner(replies=0, reply=90, acts=1.0, density=DENSITY)
    assert (DENSITY, PICTURED) == (0.25, 1.3)


def test_the_latest_run_goes_first_and_damaged_ones_are_passed_over(
    plan: CellPlan, here: Path
) -> None:
    results = here / "results"
    cheesebench.run(
        "scripted:replies.yaml", ["little.protocol.yaml"], design="cohort", subjects=1, seed=0, run_id="newer",
        progress=False,
    )  # fmt: skip
    with rewritten(results / "newer" / "run.sqlite") as connection:
        connection.execute("UPDATE calls SET completion_tokens = 1000")
    os.utime(results / "newer" / "run.sqlite", (2**32, 2**32))
    found = EarlierRuns(results).subject(plan)
    assert found is not None
    assert found["completion"] == 10_000
    (results / "newer" / "run.sqlite").write_bytes(b"no log")
    os.utime(results / "newer" / "run.sqlite", (2**32, 2**32))
    found = EarlierRuns(results).subject(plan)
    assert found is not None
    assert found["completion"] < 1000
    for number in range(MOST_RUNS):
        path = results / f"damaged{number}" / "run.sqlite"
        path.parent.mkdir()
        path.write_bytes(b"no log")
        os.utime(path, (2**32, 2**32))
    assert EarlierRuns(results).subject(plan) is None
    assert EarlierRuns(here / "nowhere").manner(plan) is None


def test_a_run_without_calls_has_no_manner(results: Path) -> None:
    with RunLog.open_read_only(next(results.iterdir())) as log:
        [plan] = log.plans()
        assert _side_by_side(log) == 1.0
    assert EarlierRuns(results).manner(plan) is None
    assert EarlierRuns(results).subject(plan) is None


@pytest.mark.parametrize(("passed", "beside"), [(5, 2.0), (20, 1.0), (0, 1.0)])
def test_calls_side_by_side_are_those_of_the_run_s_time(
    plan: CellPlan, here: Path, passed: int, beside: float
) -> None:
    path = here / "results" / "asked" / "run.sqlite"
    with rewritten(path) as connection:
        connection.execute("UPDATE calls SET seconds = 0.5")
        connection.execute("DELETE FROM journal")
        for kind, second in (
            ("started", 10),
            ("finished", 10 + passed),
            ("closed", 50),
        ):
            connection.execute(
                "INSERT INTO journal (time, kind, text) VALUES (?, ?, '')",
                (f"2026-01-01T00:00:{second:02}.000+00:00", kind),
            )
    with RunLog.open_read_only(path.parent) as log:
        assert _side_by_side(log) == pytest.approx(beside, abs=1e-4)


def test_a_subject_goes_on_as_in_its_last_trial() -> None:
    trials = [(1.0, 10.0, 2.0, 3.0, 4.0, 100.0), (2.0, 20.0, 4.0, 6.0, 8.0, 90.0)]
    assert _subject_of(trials, 4, 2.0) == {
        "calls": 7, "prompt": 70, "cached": 14, "api": 14, "completion": 21, "seconds": 14, "longest": 100,
    }  # fmt: skip
    fewer = _subject_of([*trials, (9.0,) * 5 + (900.0,)], 1, 1.0)
    assert (fewer["calls"], fewer["prompt"], fewer["longest"]) == (1, 10, 100)


def test_actions_are_counted_in_replies_that_name_any() -> None:
    counts = dict.fromkeys(ACTIONS, 2) | {
        "calls": 9,
        "notes": 1,
        "unparsed": 2,
        "interrupted_actions": 4,
    }
    assert _actions_of_a_reply(counts) == 2.0
    assert _actions_of_a_reply(counts | {"calls": 3}) is None
    nothing = dict.fromkeys([*counts], 0) | {"calls": 3}
    assert _actions_of_a_reply(nothing) is None


def test_tokens_that_a_function_does_not_count_are_estimated_from_its_replies(
    plan: CellPlan, here: Path
) -> None:
    [path] = (here / "results").glob("*/run.sqlite")
    with rewritten(path) as connection:
        connection.execute("UPDATE calls SET prompt_tokens = 0, completion_tokens = 0")
        [(text,)] = connection.execute("SELECT avg(length(reply)) FROM calls")
    found = EarlierRuns(here / "results").manner(plan)
    assert found is not None
    assert found.reply == pytest.approx(text * DENSITY)
    assert found.actions is not None
