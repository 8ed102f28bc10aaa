"""Larger budgets for an unfinished run, and the command that continues it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cheesebench
from cheesebench import budgets
from cheesebench.budgets import larger_budgets
from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import installed_plugins
from cheesebench.pytest_session import resuming
from cheesebench.records import CallTotals, CellPlan
from cheesebench.statistics import CellResult, Verdict
from tests.cli.conftest import MAZE

PLUGINS = installed_plugins()
REPLIES = 'seed: 1\nreplies:\n  - say: ["ACTIONS: F, F, F, F", "ACTIONS: L, R, F", "What now?"]\n'


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunLog:
    """A run of two subjects of four trials: 20 calls of 13,608 prompt tokens and 112
    reply tokens.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "little.protocol.yaml").write_text(MAZE, encoding="utf-8")
    (tmp_path / "replies.yaml").write_text(REPLIES, encoding="utf-8")
    cheesebench.run(
        "scripted:replies.yaml", ["little.protocol.yaml"], design="cohort", subjects=2, seed=0, run_id="asked",
        progress=False,
    )  # fmt: skip
    return RunLog.open_read_only(tmp_path / "results" / "asked")


def cell(plan: CellPlan, **changes: Any) -> CellResult:
    return CellResult(plan=plan, verdict=Verdict.ERROR, reason="", n_text="", **changes)


def test_a_trial_to_come_costs_what_the_dearest_has(log: RunLog) -> None:
    [plan] = log.plans()
    with log:
        rows = log.select(
            "SELECT trial, sum(prompt_tokens) / 2.0, count(*) / 2.0, sum(completion_tokens) FROM calls GROUP BY trial",
            (),
        )
        found = budgets._dearest_trial(log, plan, PLUGINS)
        calls = max(row[2] for row in rows)
        completion = max(row[3] / (2 * row[2]) for row in rows)
        assert calls == 3
        assert found.completion == -(-calls * completion // 1)
        # The history of 3 to 7 pairs is full by then, so the longest prompt is a mean.
        longest = max(row[1] / row[2] for row in rows)
        assert found.prompt == -(-calls * longest // 1)
        assert (found.cost, found.calls) == (0.0, 0)
        # Before the window is full, prompts grow.
        wide = replace(plan, settings={**plan.settings, "history": "3-99"})
        assert budgets._dearest_trial(log, wide, PLUGINS).prompt > 5 * found.prompt
        open_end = replace(plan, settings={**plan.settings, "history": "all"})
        assert budgets._dearest_trial(log, open_end, PLUGINS) == found


def test_the_rest_of_a_run_is_estimated_from_its_trials(log: RunLog) -> None:
    [plan] = log.plans()
    with log:
        each = budgets._dearest_trial(log, plan, PLUGINS)
        more = replace(plan, subjects=5)
        assert budgets._still_needed(log, [cell(more)], PLUGINS) == CallTotals(
            prompt=12 * each.prompt, completion=12 * each.completion
        )
        assert budgets._still_needed(log, [], PLUGINS) == CallTotals()
        few = [cell(replace(plan, subjects=1))]
        assert budgets._still_needed(log, few, PLUGINS) == CallTotals()
        outlook = SimpleNamespace(subjects=3)
        game: Any = SimpleNamespace(outlook=outlook)
        assert budgets._subjects(cell(replace(more, sequential=True), game=game)) == 3
        assert budgets._subjects(cell(more, game=game)) == 5
        game.outlook = SimpleNamespace(subjects=9)
        assert budgets._subjects(cell(replace(more, sequential=True), game=game)) == 5


def test_a_spent_budget_is_raised_to_what_is_needed(log: RunLog) -> None:
    [plan] = log.plans()
    with log:
        totals = log.calls.totals()
        spent = totals.prompt + totals.completion
        each = budgets._dearest_trial(log, plan, PLUGINS)
        needed = 12 * (each.prompt + each.completion)
        more = [cell(replace(plan, subjects=5))]
        found, why = larger_budgets(log, {"max_tokens": 15_000}, more, PLUGINS)
        assert found == {"max_tokens": budgets._rounded_up(spent + needed)}
        assert " ".join(why.split()) == (
            f"{spent:,} tokens spent so far, at most about {int(budgets._rounded_up(needed)):,} tokens more needed."
        )
        enough = larger_budgets(log, {"max_tokens": 10**6}, more, PLUGINS)
        assert enough == ({}, "")
        assert larger_budgets(log, {}, more, PLUGINS) == ({}, "")
        # No call has cost anything, so dollars are unknown.
        found, why = larger_budgets(log, {"max_cost": 0.25}, more, PLUGINS)
        assert found == {"max_cost": "0.50"}
        assert (
            why
            == "$0.00 spent so far; what is needed is not known yet, so this budget is doubled."
        )


@pytest.mark.parametrize("limit", [1, 700, 2_000, 5_000, 20_000])
@pytest.mark.parametrize("protocol", ["little.protocol.yaml", "t_maze"])
def test_what_is_said_to_be_enough_is_enough_however_early_the_limit_is_reached(
    log: RunLog, limit: int, protocol: str
) -> None:
    """The first trials are the cheapest: prompts grow, and later trials of the T-maze
    take more calls.
    """
    log.close()
    goes = "seed: 1\nreplies:\n  - say: ['ACTIONS: F, F, F, L, F, F', 'ACTIONS: R, R, F, F, F']\n"
    Path("replies.yaml").write_text(goes, encoding="utf-8")
    for number in range(2):
        run = cheesebench.run(
            "scripted:replies.yaml", [protocol], design="cohort", subjects=2, seed=0, progress=False, max_tokens=limit,
            run_id=None if number else "early", resume="early" if number else None,
        )  # fmt: skip
        with RunLog.open_read_only(Path("results/early")) as early:
            cut = [one for one in run.summary.cells if one.outcomes.get("budget")]
            assert not (cut and number), "the limit that was said was enough"
            found, _ = larger_budgets(early, {"max_tokens": limit}, cut, PLUGINS)
            limit = int(found.get("max_tokens", 20_000))


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (0.123, "0.13"),
        (0.12, "0.12"),
        (1234.0, "1300"),
        (9.91, "10.0"),
        (15_000, "15000"),
        (1e-5, "0.000010"),
    ],
)
def test_budgets_have_two_digits(value: float, rounded: str) -> None:
    assert budgets._rounded_up(value) == rounded


def test_options_are_left_out_with_their_values() -> None:
    words = [
        "--resume",
        "a",
        "-k",
        "x",
        "--resume=b",
        "--results",
        "--results",
        "c",
        "d",
    ]
    assert resuming._without({"--resume", "--results"}, words) == ["-k", "x", "c", "d"]
    assert resuming._without({"--resume"}, ["x", "--resume"]) == ["x"]


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("plain", "plain"), ("two words", "'two words'"), ("it's", "'it'\"'\"'s'"), ("a\nb", "$'a\\nb'"),
        ("a\x1b'\\", "$'a\\x1b\\'\\\\'"),
    ],
)  # fmt: skip
def test_words_are_quoted_for_a_shell(word: str, quoted: str) -> None:
    assert resuming._shell_word(word) == quoted
