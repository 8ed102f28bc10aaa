"""Two whole runs compared: who meets whom, what is refused, and what the answers hold up to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from cheesebench.errors import ComparisonError
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.statistics.counts import CountedRun, count_cell
from cheesebench.statistics.runs import RunComparison, compare_runs
from cheesebench.statistics.sample import trials_by_subject

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]
MakeRun = Callable[..., CountedRun]

EVEN = ["++++++++++----------"] * 10


@pytest.fixture
def run(plan: MakePlan, cohort: MakeTrials) -> MakeRun:
    """Make a run from the lives of each protocol; ``changes`` are of the plan."""

    def make(name: str, protocols: Mapping[str, list[str]], seed: int = 0, **changes: object) -> CountedRun:
        cells = []
        for protocol, results in protocols.items():
            cell = plan(protocol=protocol, **changes)
            cells.append(count_cell(cell, trials_by_subject(cohort(*results, protocol=protocol)).values()))
        return CountedRun(name=name, seed=seed, cells=tuple(cells))

    return make


def drawn(rate: float, seed: int, protocols: int = 9) -> dict[str, list[str]]:
    random = np.random.default_rng(seed)
    return {
        f"maze_{k}": ["".join("+" if x < rate else "-" for x in random.random(20)) for _ in range(10)]
        for k in range(protocols)
    }


def test_a_run_is_identical_to_itself(run: MakeRun) -> None:
    (model,) = compare_runs(run("a", drawn(0.7, 1)), run("b", drawn(0.7, 1))).models
    assert set(model.answers) == {"indistinguishable"}
    assert all(cell.identical for cell in model.cells)
    assert (model.overall.difference, model.overall.p_value) == (0, 1)


def test_settled_trials_are_not_missing(run: MakeRun) -> None:
    before = run("before", {"x": ["++--"] * 6}, trials=4)
    (cell,) = before.cells
    subjects = {n: replace(one, scored=2, missing=2, settled=2) for n, one in cell.subjects.items()}
    subjects[0] = replace(subjects[0], settled=0)
    stopped = replace(before, name="after", cells=(replace(cell, subjects=subjects),))
    (found,) = compare_runs(stopped, before).models[0].cells
    assert (found.missing, found.settled) == ((2, 0), (10, 0))


def test_a_regression_of_15_points_is_worse(run: MakeRun) -> None:
    found = compare_runs(run("after", drawn(0.55, 1)), run("before", drawn(0.70, 2)))
    (model,) = found.models
    assert (model.overall.answer, found.worse) == ("worse", True)
    assert model.overall.difference == pytest.approx(-0.15, abs=0.04)
    low, high = model.overall.interval or (0, 0)
    assert -0.2 < low < -0.15 < high < -0.1
    turned = compare_runs(run("before", drawn(0.70, 2)), run("after", drawn(0.55, 1)))
    assert (turned.models[0].overall.answer, turned.worse) == ("better", False)


def test_equal_models_are_rarely_told_apart_on_any_of_nine_protocols(run: MakeRun) -> None:
    runs = [run(str(seed), drawn(0.7, seed)) for seed in range(40)]
    answers = [compare_runs(*pair).models[0].answers for pair in zip(runs[::2], runs[1::2], strict=True)]
    assert sum(any(answer != "indistinguishable" for answer in one[1:]) for one in answers) <= 4, (
        "5 % of 40, and chance"
    )
    assert sum(one[0] != "indistinguishable" for one in answers) <= 4


def test_overall_gives_protocols_the_same_weight(run: MakeRun) -> None:
    few, many = ["++--"] * 10, ["+" * 20] * 10
    found = compare_runs(run("a", {"x": many, "y": few}), run("b", {"x": EVEN, "y": few})).models[0]
    assert found.overall.difference == pytest.approx(0.25)
    assert [cell.paired.difference for cell in found.cells] == [0.5, 0]


def test_holm_takes_back_what_one_protocol_would_say_alone(run: MakeRun) -> None:
    low = ["+++++---------------"] * 6 + EVEN[:4]
    alone = compare_runs(run("a", {"x": low}), run("b", {"x": EVEN})).models[0].cells[0]
    assert (alone.answer, alone.paired.p_value, alone.adjusted_p) == ("worse", 2 / 2**6, 2 / 2**6)
    others = {f"y{k}": EVEN for k in range(8)}
    among = compare_runs(run("a", {"x": low} | others), run("b", {"x": EVEN} | others)).models[0].cells[0]
    assert among.answer == "indistinguishable"
    assert among.adjusted_p == pytest.approx(9 * 2 / 2**6)
    assert "not after correcting" in among.reason


def test_what_cannot_be_paired_is_refused_and_named(run: MakeRun) -> None:
    before = run("before", {"x": EVEN, "y": EVEN})
    changed = run("after", {"x": EVEN, "y": EVEN}, sha256="1" * 64)
    with pytest.raises(ComparisonError, match=r"protocol x differs \(11111111 and 00000000\).*protocol y differs"):
        compare_runs(changed, before)
    mixed = replace(before, cells=(before.cells[0], changed.cells[1]))
    with pytest.raises(ComparisonError, match=r"protocol y differs") as error:
        compare_runs(mixed, before)
    assert "protocol x" not in str(error.value)
    assert compare_runs(mixed, before, protocols=["x"]).models[0].cells[0].protocol == "x"
    with pytest.raises(ComparisonError, match="seed of after is 1, that of before is 0"):
        compare_runs(run("after", {"x": EVEN}, seed=1), before)
    with pytest.raises(ComparisonError, match=r"x has 2 trials in one \(design smoke\) and 20 in the other"):
        compare_runs(run("after", {"x": EVEN}, trials=2, design="smoke"), before)
    with pytest.raises(ComparisonError, match="no protocol in the same view in common"):
        compare_runs(run("after", {"z": EVEN}), before)
    with pytest.raises(ComparisonError, match="has no protocol 'z', only x, y"):
        compare_runs(before, before, protocols=["z"])


def met(found: RunComparison) -> list[tuple[str, str]]:
    return [(model.first_model, model.second_model) for model in found.models]


def test_models_meet_by_name_or_where_there_is_one(run: MakeRun) -> None:
    one, two = run("r", {"x": EVEN}, model="one"), run("r", {"x": EVEN}, model="two")
    both = replace(one, cells=(*one.cells, *two.cells))
    assert [(m.first_model, m.second_model) for m in compare_runs(one, two).models] == [("one", "two")]
    assert [(m.first_model, m.second_model) for m in compare_runs(both, both).models] == [
        ("one", "one"),
        ("two", "two"),
    ]
    within = compare_runs(both, both, models=("one", "two"))
    assert [(m.first_model, m.second_model) for m in within.models] == [("one", "two")]
    half = compare_runs(both, replace(two, name="s"))
    assert [(m.first_model, m.second_model) for m in half.models] == [("two", "two")]
    assert half.left_out == ("one: only in r",)
    third = run("t", {"x": EVEN}, model="three")
    with pytest.raises(ComparisonError, match="no model is in both"):
        compare_runs(both, third)
    with pytest.raises(ComparisonError, match="has no model 'four', only one, two"):
        compare_runs(both, third, models=("four", None))


def test_missing_trials_may_decide_nothing(run: MakeRun) -> None:
    poor = ["+-------------------"] * 10
    lost = ["+!!!!!!!!!!!!!!!!!!!"] * 10
    found = compare_runs(run("a", {"x": lost}), run("b", {"x": poor}))
    (cell,) = found.models[0].cells
    assert (cell.answer, cell.missing) == ("indistinguishable", (190, 0))
    assert "depends on missing trials" in cell.reason
    assert found.models[0].overall.answer == "indistinguishable"


def test_a_subject_that_was_not_measured_at_all_still_counts_against_certainty(run: MakeRun) -> None:
    good, poor = ["+" * 20] * 10, EVEN
    sure = compare_runs(run("a", {"x": good[:6]}), run("b", {"x": poor[:6]})).models[0].cells[0]
    assert (sure.answer, sure.paired.pairs) == ("better", 6)
    unsure = compare_runs(run("a", {"x": [*good[:6], *["!" * 20] * 4]}), run("b", {"x": poor})).models[0].cells[0]
    assert (unsure.answer, unsure.paired.pairs, unsure.missing) == ("indistinguishable", 6, (80, 0))


def test_what_only_one_run_has_is_named(run: MakeRun) -> None:
    found = compare_runs(run("a", {"x": EVEN, "y": EVEN}), run("b", {"x": EVEN, "z": EVEN}))
    assert found.left_out == ("y (ascii_2d): only in a", "z (ascii_2d): only in b")


def test_losses_in_several_views_are_told_apart(run: MakeRun) -> None:
    """In a JUnit file, two cases of one name would be one."""

    def seen(name: str, lives: list[str], *views: str) -> CountedRun:
        made = [run(name, {"x": lives}, view=view) for view in views]
        return replace(made[0], cells=tuple(cell for one in made for cell in one.cells))

    nothing = ["-" * 20] * 10
    titles = [title for title, _, _ in compare_runs(seen("a", nothing, "v", "w"), seen("b", EVEN, "v", "w")).losses]
    assert titles[0].startswith("worse than b: ")
    assert titles[0].endswith(" (v) on x")
    assert len(set(titles)) == len(titles) == 4
    (alone, _) = compare_runs(seen("a", nothing, "v"), seen("b", EVEN, "v")).losses
    assert "(v)" not in alone[0]


def test_what_else_has_changed_is_told(run: MakeRun) -> None:
    new = replace(run("a", {"x": EVEN}, settings={"history": 1}), manifest={"versions": {"numpy": "2"}})
    old = replace(run("b", {"x": EVEN}, settings={"history": 9}), manifest={"versions": {"numpy": "1"}})
    assert compare_runs(new, old).changed == (("numpy version", "2", "1"), ("setting history", "1", "9"))
