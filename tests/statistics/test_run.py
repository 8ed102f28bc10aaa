"""Results of a model over its protocols: average, profile, gate and list of FAILs; and
their JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from cheesebench.records import GOAL, CellPlan, TrialRecord
from cheesebench.statistics import (
    RunSummary,
    Verdict,
    summarise_run,
    summarise_subjects,
)
from cheesebench.statistics.run import e_bh

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]

GOOD, FAIR, POOR = (
    "++++-++++-++++-++++-",
    "++-+-++-+-++-+-++-++",
    "-+--+---+--+---+--+-",
)
DIMENSIONS = {"a": "spatial learning", "b": "spatial learning", "c": "working memory"}


@pytest.fixture
def run(plan: MakePlan, cohort: MakeTrials) -> Callable[..., RunSummary]:
    """Run protocols a, b, c with the given life for each of forty subjects (or the
    given list of lives).
    """

    def make(goal: float = GOAL, **lives: str | list[str]) -> RunSummary:
        plans = [
            plan(
                protocol=name,
                dimension=DIMENSIONS.get(name, "inhibition"),
                title=name.upper(),
                subjects=40,
                goal=goal,
            )
            for name in lives
        ]
        trials = [
            record
            for name, life in lives.items()
            for record in cohort(
                *([life] * 40 if isinstance(life, str) else life), protocol=name
            )
        ]
        return summarise_run({"seed": 0}, plans, trials)

    return make


Run = Callable[..., RunSummary]


def test_overall_and_profile_by_hand(run: Run) -> None:
    summary = run(a=GOOD, b=FAIR, c=POOR)
    (model,) = summary.models
    ends = [(cell.rate or 0, *(cell.interval or ())) for cell in summary.cells]
    larger = [max(rate - low, high - rate) for rate, low, high in ends]
    half = sum(one**2 for one in larger) ** 0.5 / 3
    assert model.overall is not None
    assert model.overall.mean == pytest.approx((0.8 + 0.65 + 0.3) / 3)
    mean = model.overall.mean
    assert model.overall.interval == pytest.approx((mean - half, mean + half))
    assert list(model.profile) == ["spatial learning", "working memory"]
    assert model.profile["spatial learning"].mean == pytest.approx(0.725)
    assert model.profile["spatial learning"].protocols == 2
    assert model.profile["working memory"].interval == pytest.approx(ends[2][1:])


def test_a_mean_of_perfect_cells_has_no_limit_above_1(run: Run) -> None:
    overall = run(a="+" * 20, b="+" * 20).models[0].overall
    assert overall is not None
    assert (overall.mean, overall.interval[1]) == (1, 1)


def test_gate_passes_when_all_pass(run: Run) -> None:
    (model,) = run(a=GOOD, b=GOOD, c="+" * 20).models
    assert (model.gate, model.failed) == (Verdict.PASS, ())
    assert model.gate_reason == "All 3 protocols passed, which needs no correction."


def test_gate_of_a_single_protocol(run: Run) -> None:
    (model,) = run(a=GOOD).models
    assert model.gate_reason == "The protocol passed."


def test_gate_fails_on_a_failure(run: Run) -> None:
    (model,) = run(a=GOOD, b=POOR, c=GOOD).models
    assert (model.gate, model.failed) == (Verdict.FAIL, ("b",))
    assert (
        model.gate_reason
        == "2 of 3 protocols passed; b failed; corrected for 3 protocols (e-BH): all."
    )


def test_a_failure_that_is_not_listed_is_one_all_the_same(run: Run) -> None:
    """Its test is red and pytest exits with 1, so the gate says FAIL; the corrected
    result is beside it.
    """
    lives = ["+" * k + "-" * (20 - k) for k in [9] * 8 + [14] * 32]
    summary = run(a=GOOD, b=lives, c=GOOD)
    game = summary.cells[1].game
    assert summary.cells[1].verdict is Verdict.FAIL
    assert game is not None
    assert 20 <= game.failing < 60
    (model,) = summary.models
    assert (model.gate, model.failed) == (Verdict.FAIL, ())
    assert model.gate_reason == (
        "2 of 3 protocols passed; b failed; not corrected for 3 protocols (--familywise "
        "does that)."
    )
    (model,) = run(a=POOR, b=lives, c=GOOD, d=GOOD, e=GOOD).models
    assert model.gate_reason == (
        "3 of 5 protocols passed; a, b failed; corrected for 5 protocols (e-BH): a; not "
        "corrected: b (--familywise corrects all)."
    )


def test_verdicts_of_a_familywise_run_are_corrected_already(run: Run) -> None:
    (model,) = run(goal=60.0, a=GOOD, b=POOR, c=GOOD).models
    assert model.gate_reason.endswith(
        "; corrected for 3 protocols (--familywise): all."
    )


def test_the_list_is_longer_where_more_evidence_is_large() -> None:
    assert e_bh({"a": 30.0, "b": 1.0, "c": 30.0}) == ("a", "c"), "20 * 3 / 2"
    assert e_bh({"a": 30.0, "b": 1.0, "c": 29.0}) == ()
    assert e_bh({"a": 60.0, "b": 1.0, "c": 29.0}) == ("a",)
    assert e_bh({}) == ()


def test_a_cell_that_broke_down_is_no_failure(run: Run) -> None:
    (model,) = run(a=GOOD, b=[GOOD[:10] + "!" * 10] * 40, c=GOOD).models
    assert (model.gate, model.failed) == (Verdict.ERROR, ())
    (both,) = run(a=POOR, b="!" * 20, c=GOOD).models
    assert both.gate is Verdict.FAIL
    assert both.gate_reason.endswith("; 1 could not be measured.")


def test_gate_is_an_error_where_something_could_not_be_measured(run: Run) -> None:
    (model,) = run(a=GOOD, b="!" * 20, c=GOOD).models
    assert model.gate is Verdict.ERROR
    assert model.overall is not None
    assert model.overall.protocols == 2


def test_nothing_measured_has_no_average(run: Run) -> None:
    (model,) = run(a="!!").models
    assert (model.overall, dict(model.profile), model.gate) == (None, {}, Verdict.ERROR)


def test_inconclusive_gate(run: Run) -> None:
    (model,) = run(a=GOOD, b="+++++++---" * 2).models
    assert model.gate is Verdict.INCONCLUSIVE


def test_models_and_views_are_kept_apart(plan: MakePlan, cohort: MakeTrials) -> None:
    keys = [("m", "one"), ("m", "two"), ("n", "one")]
    plans = [plan(model=model, view=view) for model, view in keys]
    trials = [
        r for model, view in keys for r in cohort(*[GOOD] * 10, model=model, view=view)
    ]
    summary = summarise_run({}, plans, trials)
    assert [(model.model, model.view) for model in summary.models] == keys
    assert [best.model for best in summary.best_of_views] == ["m"]


def test_summary_goes_to_json_and_records_of_unplanned_cells_do_not_matter(
    run: Run, cohort: MakeTrials
) -> None:
    summary = run(a=GOOD, b=POOR, c="!!")
    plain = summary.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    cells = plain["cells"]
    assert isinstance(cells, list)
    assert [cell["verdict"] for cell in cells] == ["PASS", "FAIL", "ERROR"]
    assert cells[0]["plan"]["reference"]["value"] == 0.8
    again = summarise_run(
        {"seed": 0},
        [c.plan for c in summary.cells[:1]],
        cohort(*[GOOD] * 40, protocol="a"),
    )
    assert again.to_dict()["cells"] == cells[:1]


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, cheesebench.statistics;"
        "print([m for m in ('numpy', 'scipy', 'statsmodels', 'pandas', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_run_is_read_one_life_at_a_time(plan: MakePlan, life: MakeTrials) -> None:
    def kept(subjects: int) -> int:
        """Return the most bytes in use while the lives of a run are read."""
        most = 0

        def lives() -> Iterator[list[TrialRecord]]:
            nonlocal most
            for subject in range(subjects):
                yield life(subject, "+-" * 50)
            most = tracemalloc.get_traced_memory()[1]

        planned = plan(subjects=subjects, trials=100)
        tracemalloc.start()
        summarise_subjects({}, [planned], lambda _: lives())
        tracemalloc.stop()
        return most

    kept(250)  # imports and caches do not count
    # With more than MOST_KEPT trials, the digests of their beginnings are not kept.
    per_life = (kept(250) - kept(150)) / 100
    assert per_life < sys.getsizeof(life(0, "+")[0]) * 100 / 10


def test_the_gap_to_its_published_protocol_is_said_beside_a_twin(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    public, held_out = (
        plan(protocol="maze"),
        plan(protocol="maze@twin_1", twin_of="maze"),
    )
    records = [
        *cohort(*["+" * 10] * 20, protocol="maze"),
        *cohort(*["-" * 10] * 20, protocol="maze@twin_1"),
    ]
    one, other = summarise_run({}, [public, held_out], records).cells
    assert one.remarks == ()
    [text] = other.remarks
    assert text.startswith("The published maze minus this twin: +100 points (")
    assert 50 < float(text.split("(")[1].split(" to ")[0]) < 100
