"""A comparison of two runs and the summary of a rich run, whole."""

from __future__ import annotations

from typing import Any

from cheesebench.files import strict_json
from cheesebench.reports import comparison as reports
from cheesebench.statistics import summarise_run, to_plain
from cheesebench.statistics.comparison import CountedRun, RunComparison, compare_runs
from cheesebench.statistics.gate import (
    kept,
    loss,
    other_settings,
    sentence,
    to_decide,
)
from tests.reports.conftest import MANIFEST, plan_of, trials_of
from tests.reports.test_rich_run import LATENCY, rich_run
from tests.statistics.test_comparison import EVEN, cell
from tests.stored import check_stored

MEASURED: dict[str, Any] = {"measured": LATENCY, "margin": 5.0, "animals": 30.0}
#: Of the settings of a model, three are named, and how many more there are.
ASKED: dict[str, Any] = {
    "agent": "llm",
    "settings": {"a": 1, "b": 2, "c": 3, "d": 4, "same": 0},
}
NOW: dict[str, Any] = {
    "agent": "llm",
    "settings": {"a": 2, "b": 3, "c": 4, "d": 5, "same": 0},
}


def old_and_new() -> RunComparison:
    """Cells that are better, worse, the same, undecided, lost, measured, or in one run
    alone.
    """
    new = (
        cell([18] * 20, "better", **NOW),
        cell([2] * 20, "worse", **NOW, doubts=("9 % of replies empty",)),
        cell(EVEN, "same", **NOW),
        cell([4, 16] * 3, "undecided"),
        cell([0] * 20, "lost", missing=20),
        cell([12, 9, 11, 8] * 5, "partly", missing=3),
        cell([12, 9, 11, 8] * 5, "latency", **MEASURED),
        cell([15, 14] * 10, "other", model="second"),
        cell(EVEN, "alone"),
    )
    old = (
        cell(EVEN, "better", **ASKED),
        cell(EVEN, "worse", **ASKED),
        cell(EVEN, "same", **ASKED),
        cell(EVEN[:6], "undecided"),
        cell(EVEN, "lost"),
        cell([11, 9, 10, 9] * 5, "partly"),
        cell([13, 9, 12, 10] * 5, "latency", **MEASURED),
        cell([14] * 20, "other", model="second", sequential=True),
        cell(EVEN, "gone"),
    )
    newer = {**MANIFEST, "versions": {"python": "3.12.1", "cheesebench": "0.2.0"}}
    return compare_runs(
        CountedRun(name="new", seed=7, cells=new, manifest=newer),
        CountedRun(name="an-older-run", seed=7, cells=old, manifest=MANIFEST),
    )


def test_a_comparison_is_compared_with_what_is_stored() -> None:
    found = old_and_new()
    check_stored("comparison.json", strict_json(to_plain(found), indent=1) + "\n")


def test_an_exit_code_is_explained_by_what_was_lost() -> None:
    found = old_and_new()
    [settings] = other_settings(found)
    assert settings == (
        "not run with the settings of an-older-run "
        "(a 2, not 1; b 3, not 2; c 4, not 3 and 1 more)"
    )
    lost = "worse than an-older-run on worse, latency"
    assert loss(found, "") == lost
    assert kept(found, True) == f"{lost}, which this --compare-fail ignores"
    assert kept(found, False) == f"{lost}, which fails only with --compare-fail"
    assert sentence(1, True, [lost, settings]) == (
        f"Exit code 1, the gate is red: {lost}; {settings}."
    )
    assert sentence(0, True, ["fine"]) == "Exit code 0, the gate is green: fine."
    assert sentence(0, False, ["fine"]) == "Exit code 0: fine."


def of(new: list[int], *, missing: int = 0) -> RunComparison:
    pair = (cell(new, missing=missing), cell(EVEN[: len(new)]))
    first, second = (
        CountedRun(name=name, seed=0, cells=(one,))
        for name, one in zip(("new", "old"), pair, strict=True)
    )
    return compare_runs(first, second)


def test_without_a_loss_it_is_said_what_is_excluded_or_open() -> None:
    assert other_settings(of(EVEN)) == []
    assert kept(of(EVEN), True) == "no loss of 30 points against old on 1 protocol"
    assert kept(of([18] * 20), True) == "no loss against old on 1 protocol"
    few, why = of([4, 16] * 3), "undecided whether it is worse than old on maze"
    [(_, one)] = few.cells
    assert loss(few, "") == why + (f" ({one.rule})" if one.rule else "")
    gone = of([0] * 20, missing=20)
    assert loss(gone, " (budget)") == (
        f"{why}, where 400 of the trials that count could not be run (budget)"
    )


def test_a_rule_and_a_remedy_fit_what_is_undecided() -> None:
    def against(new: list[list[int]], old: list[list[int]]) -> RunComparison:
        first, second = (
            CountedRun(
                name=name,
                seed=0,
                cells=tuple(cell(own, f"maze{n}") for n, own in enumerate(lives)),
            )
            for name, lives in (("new", new), ("old", old))
        )
        return compare_runs(first, second)

    unseen = against([EVEN, EVEN], [EVEN])
    assert to_decide(unseen, "Resume.") == (
        "Compare two runs that both have results for every protocol, view and model of new."
    )
    few = against([[4, 16] * 3] * 2, [EVEN[:6]] * 2)
    assert to_decide(few, "Resume.").startswith("More subjects would decide")
    assert "on maze0, maze1 (on maze0, 'no loss of " in loss(few, "")


def test_a_rich_run_and_a_leaderboard_are_compared_with_what_is_stored() -> None:
    check_stored("run.json", reports.plain_json(rich_run()))
    rates = {"good": 0.95, "like": 0.9, "weak": 0.3}
    plans = {
        plan_of(name, model=model, design="leaderboard", subjects=12): rate
        for model, rate in rates.items()
        for name in ("pool", "barnes_maze")
    }
    manifest = {**MANIFEST, "options": {"against": "claude-opus-4.7"}}
    trials = [one for plan, rate in plans.items() for one in trials_of(plan, rate)]
    found = summarise_run(manifest, list(plans), trials)
    boards = {"boards": found.leaderboards, "contrasts": found.contrasts}
    check_stored("leaderboard.json", strict_json(to_plain(boards), indent=1) + "\n")
