"""A comparison in text, Markdown and JSON: its names, sentences and numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cheesebench.reports import comparison
from cheesebench.reports.cells import clean
from cheesebench.statistics.comparison import CountedRun, RunComparison, compare_runs
from tests.statistics.test_comparison import EVEN, cell
from tests.statistics.test_whole_run import old_and_new
from tests.stored import check_stored, without_prose


def test_a_comparison_is_rendered_as_it_is_stored() -> None:
    found = old_and_new()
    # Without its last paragraph, whose wording decides how it is filled.
    told = comparison.text(found).rpartition("\n\n")[0]
    check_stored("comparison.txt", without_prose(told))
    check_stored("comparison.md", without_prose(comparison.markdown(found)))
    whole = json.loads(comparison.json(found))
    assert whole["warnings"] == list(found.warnings)
    assert whole["models"] == json.loads(comparison.plain_json(found))["models"]


def of(
    *cells: tuple[Any, Any], runs: tuple[str, str] = ("new", "old"), **more: Any
) -> RunComparison:
    """Compare pairs of lists of passes of 20 trials."""
    names = [f"maze{number}" for number in range(len(cells))]
    first, second = (
        tuple(
            cell(pair[side], name, **more)
            for name, pair in zip(names, cells, strict=True)
        )
        for side in (0, 1)
    )
    return compare_runs(
        CountedRun(name=runs[0], seed=0, cells=first),
        CountedRun(name=runs[1], seed=0, cells=second),
    )


@pytest.mark.parametrize(
    ("runs", "models", "shown", "title"),
    [
        (("new", "old"), (), ("new", "old"), "new against old"),
        (("new", "a-long-name"), (), ("new", "second"), "new against a-long-name (second)"),
        (("ten-letter", "old"), (), ("ten-letter", "old"), "ten-letter against old"),
        (("this run", "old"), (), ("this run", "old"), "This run against old"),
        (("one", "one"), ("a", "b"), ("a", "b"), "Models of one"),
        (("one", "one"), ("a", "eleven-long"), ("first", "second"), "Models of one"),
        (("one", "one"), ("a", "a"), ("first", "second"), "one (first) against one (second)"),
    ],
)  # fmt: skip
def test_the_names_of_the_sides(
    runs: tuple[str, str],
    models: tuple[str, str],
    shown: tuple[str, str],
    title: str,
) -> None:
    found = of((EVEN, EVEN))
    if models:
        [one] = found.models
        named = replace(one, first_model=models[0], second_model=models[1])
        found = replace(found, models=(named,))
    found = replace(found, first=runs[0], second=runs[1])
    assert comparison.sides(found) == shown
    assert comparison.title(found, clean) == title
    assert comparison.headers(found)[2:4] == shown
    assert f"{shown[0]} minus {shown[1]}" in comparison.how_to_read(found)


def told(found: RunComparison) -> str:
    return comparison.answer(found, found.models[0], clean)


def test_the_answer_in_a_sentence() -> None:
    assert told(of(([18] * 20, EVEN))).startswith(
        "▲ new is better than old: +40 points over 1 protocol (p < .001"
    )
    assert told(of(([2] * 20, EVEN))).startswith("▼ new is worse than old: -40 points")
    same = "= new and old are identical: every subject did exactly the same in both."
    assert told(of((EVEN, EVEN))) == same
    few = told(of(([4, 16] * 3, EVEN[:6]), (EVEN, [9, 11] * 10)))
    assert few.startswith(
        "? Undecided on maze0. No difference between new and old can be shown: "
    )
    assert " over 2 protocols (p = " in few
    assert few.endswith("; no protocol's answer depends on it.")
    like = told(of(([11, 9] * 10, [9, 11] * 10)))
    assert like.startswith("= No difference between new and old can be shown: 0 points")
    lost = of((EVEN, EVEN))
    [model] = lost.models
    gone = replace(model.overall, difference=None, reason="Nothing was run.")
    assert comparison.answer(lost, replace(model, overall=gone), clean) == (
        "? Nothing was run."
    )


def test_reservations_about_a_result_that_shows_nothing() -> None:
    [model] = of(([11, 9] * 10, [9, 11] * 10)).models

    def said(adjusted: float | None = None, **changes: Any) -> str:
        overall = replace(model.overall, reason="It is corrected.", **changes)
        return comparison._reservations(
            replace(model, overall=overall, adjusted_p=adjusted)
        )

    assert said(interval=None) == ""
    assert said(interval=(0.0, 0.1)) == ""
    assert said(interval=(-0.05, 0.1)) == (
        " The mean's 95 % interval is -5 to +10; no protocol's answer depends on it."
    )
    depends = " This result depends on missing trials."
    assert said(0.5, interval=None, p_value=0.01, p_worst=0.05) == depends
    assert said(0.5, interval=None, p_value=0.01, p_worst=0.04) == " It is corrected."
    assert said(0.5, interval=None, p_value=0.01, p_worst=None) == " It is corrected."
    assert said(interval=None, p_value=0.01, p_worst=0.04) == ""
    assert said(0.5, interval=None, p_value=0.05, p_worst=0.2) == ""
    assert said(0.5, interval=None, p_value=None) == ""


def test_trials_that_could_not_be_run_are_counted() -> None:
    found = of((EVEN, EVEN), missing=2)
    [model] = found.models
    assert comparison.lost(model).startswith("80 trials of these subjects could not")
    assert comparison.lost(of((EVEN, EVEN)).models[0]) == ""
    assert "80 trials of these subjects" in " ".join(comparison.text(found).split())
    assert "\n- 80 trials of these subjects" in comparison.markdown(found)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0.0009, "< .001"), (0.001, ".001"), (0.0496, ".050"), (0.5, ".500"), (1.0, "1")],
)  # fmt: skip
def test_p_values(value: float | None, shown: str) -> None:
    assert comparison._p(value) == shown


def test_pairs_are_told_beside_the_subjects() -> None:
    found = of((EVEN, EVEN[:6]))
    [[_, one]] = found.cells
    assert comparison._pairs(one) == "6 of 20"
    assert comparison._pairs(replace(one, subjects=(6, 6))) == "6"


def test_one_protocol_has_no_row_for_all() -> None:
    one, two = of(([18] * 20, EVEN)), of(([18] * 20, EVEN), (EVEN, EVEN))
    [row] = comparison.rows(one, one.models[0])
    assert row[:5] == ("▲ better", "maze0", "90 %", "50 %", "+40")
    *_, same, whole = comparison.rows(two, two.models[0])
    assert same[0].startswith("= ")
    assert (same[4], same[5]) == ("0", "–"), "identical: no interval"
    assert whole[:5] == ("▲ better", "all", "70 %", "50 %", "+20")
    assert whole[-1] == ""


def test_a_remedy_has_commands() -> None:
    found = replace(
        of((EVEN, EVEN)), decision="It is *lost*.", remedy="`a_b`, or `c` now"
    )
    assert comparison.remedy_parts(found) == [
        ("a_b", True), (", or ", False), ("c", True), (" now", False),
    ]  # fmt: skip
    assert r"**It is \*lost\*.** `a_b`, or `c` now" in comparison.markdown(found)
    assert " ".join(comparison.text(found).split()).endswith(" report.md.")
    assert "report.md" not in comparison.text(replace(found, decision=""))


def test_what_differs_between_the_runs_and_what_only_one_has() -> None:
    found = of((EVEN, EVEN))
    assert comparison._notes(found, clean) == []
    changed = (("seed", "1", "2"), ("model", "a", "b"))
    [model] = found.models
    other = replace(model, first_model="a", second_model="b")
    found = replace(
        found, changed=changed, models=(other,), not_run=("pool in v",), unseen=()
    )
    assert comparison._notes(found, clean) == [
        ("Other differences between the runs:", ["seed: 1 against 2"]),
        ("Not compared:", ["pool in v: only in old"]),
    ]
    assert comparison.heading(other, clean) == "a against b in v"
    assert comparison.heading(replace(model, variant="x=1"), clean) == "m in v, x=1"
