"""Two runs, subject by subject: better, worse, no loss of D, or undecided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from cheesebench.errors import ComparisonError
from cheesebench.options import OPTIONS
from cheesebench.records import (
    CallTotals,
    CellCalls,
    CellPlan,
    Measured,
    ReferenceValue,
    TrialRecord,
)
from cheesebench.statistics import gate
from cheesebench.statistics.comparison import (
    LOSS,
    SILENT,
    CellComparison,
    CellCounts,
    CountedRun,
    RunComparison,
    compare_differences,
    compare_runs,
    count_cell,
    excludes_loss,
    holm,
    paired_differences,
)
from cheesebench.statistics.sample import SubjectScore, trials_by_subject

EVEN = [10] * 20


def cell(
    passed: Sequence[int],
    protocol: str = "maze",
    *,
    missing: int = 0,
    digest: str = "",
    **more: object,
) -> CellCounts:
    """Return the counts of subjects with 20 trials each, given the number of passes."""
    subjects = {
        number: SubjectScore(
            count, 20 - missing, missing, f"{digest or number}-{count}"
        )
        for number, count in enumerate(passed)
    }
    named = {
        "model": "m", "view": "v", "variant": "", "title": "Maze", "sha256": "0", "design": "cohort", "trials": 20,
        "estimand": "all",
    }  # fmt: skip
    return CellCounts(protocol=protocol, subjects=subjects, **(named | more))  # type: ignore[arg-type]


def compared(
    *cells: tuple[Sequence[int], Sequence[int]], seed: int = 0
) -> RunComparison:
    """Compare runs with one protocol for each pair of lists."""
    names = [f"maze{number}" for number in range(len(cells))]
    first = tuple(cell(a, name) for name, (a, _) in zip(names, cells, strict=True))
    second = tuple(cell(b, name) for name, (_, b) in zip(names, cells, strict=True))
    return compare_runs(
        CountedRun(name="new", seed=seed, cells=first),
        CountedRun(name="old", seed=seed, cells=second),
    )


def answers(found: RunComparison) -> list[str]:
    return [one.answer for one in found.models[0].cells]


def test_four_answers() -> None:
    assert answers(compared(([18] * 20, EVEN))) == ["better"]
    assert answers(compared(([2] * 20, EVEN))) == ["worse"]
    assert answers(compared((EVEN, EVEN))) == ["no loss"]
    assert answers(compared(([4, 16] * 3, EVEN[:6]))) == ["undecided"]


def test_what_is_excluded_is_said() -> None:
    (one,) = compared((EVEN, EVEN)).models[0].cells
    assert (one.said, one.identical) == ("no loss of 30 points", True)
    assert compared(([2] * 20, EVEN)).models[0].cells[0].said == "worse"


def test_only_worse_and_undecided_are_reasons_to_fail() -> None:
    same, worse, open_ = (
        compared((EVEN, EVEN)),
        compared(([2] * 20, EVEN)),
        compared(([4, 16] * 3, EVEN[:6])),
    )
    assert (same.worse, same.undecided) == (False, False)
    assert (worse.worse, worse.undecided) == (True, False)
    assert (open_.worse, open_.undecided) == (False, True)
    assert [title for title, _, _ in worse.losses] == ["worse than old: m on maze0"]
    both = compared(([2] * 20, EVEN), ([2] * 20, EVEN))
    assert [title for title, _, _ in both.losses] == [
        "worse than old: m on maze0",
        "worse than old: m on maze1",
        "worse than old: m on all protocols together",
    ]


def test_nothing_that_was_measured_is_undecided() -> None:
    """A gate whose budget is spent must not be green."""
    lost = cell([0] * 20, missing=20)
    found = compare_runs(
        CountedRun(name="new", seed=0, cells=(lost,)),
        CountedRun(name="old", seed=0, cells=(cell(EVEN),)),
    )
    assert found.undecided
    assert found.models[0].cells[0].answer == "undecided"


def test_answers_are_corrected_for_several_protocols() -> None:
    six = [15] * 6, EVEN[:6]
    assert answers(compared(six)) == ["better"]
    many = compared(six, *[(EVEN[:6], EVEN[:6])] * 8)
    assert answers(many)[0] == "undecided"
    assert many.models[0].cells[0].adjusted_p == pytest.approx(9 * 2 / 2**6)
    assert "not after correcting for 9 protocols" in many.models[0].cells[0].reason


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_missing_trials_decide_nothing_by_themselves() -> None:
    a, b = cell([12] * 20, missing=8).subjects, cell(EVEN).subjects
    possible = paired_differences(a, b)
    assert [round(values[0], 2) for values in possible] == [0.5, 0.5, 0.1]
    assert compare_differences(possible, seed=0).answer == "better"
    lost = cell([10] * 20, missing=10).subjects
    assert (
        compare_differences(paired_differences(lost, b), seed=0).answer == "undecided"
    )


@pytest.mark.parametrize(
    ("now", "before", "passed", "said"),
    [
        # The share from which bless warns, however large the loss is.
        ((224, 1508), (0, 3977), 5, True),
        ((51, 1000), (0, 1000), 0, True),
        ((50, 1000), (0, 1000), 5, False),
        ((51, 1000), (40, 1000), 5, True),
        ((51, 1000), (51, 1000), 5, False),
        ((510, 1000), (600, 1000), 5, False),
        ((1000, 1000), (0, 0), 5, True),
    ],
)
def test_a_loss_beside_replies_without_an_action_names_their_number(
    now: tuple[int, int], before: tuple[int, int], passed: int, said: bool
) -> None:
    first, second = cell([passed] * 20, silent=now), cell([14] * 20, silent=before)
    found = compare_runs(
        CountedRun(name="new", seed=0, cells=(first,)),
        CountedRun(name="main", seed=0, cells=(second,)),
    )
    assert found.worse
    assert bool(list(gate.silence(found))) is said
    assert said <= first.is_silent, "bless warns of it as well"


def test_the_page_on_ci_has_the_share_from_which_silence_is_named() -> None:
    page = (Path(__file__).parents[2] / "docs/ci.md").read_text(encoding="utf-8")
    assert f"more than {SILENT:.0%} of the replies".replace("%", " %") in page
    assert f"from the same {SILENT:.0%} on".replace("%", " %") in page


def test_repeats_of_a_pair_are_one() -> None:
    a, b = cell([20] * 8, digest="x"), cell([0] * 8, digest="y")
    found = compare_runs(
        CountedRun(name="a", seed=0, cells=(a,)),
        CountedRun(name="b", seed=0, cells=(b,)),
    )
    assert found.models[0].cells[0].paired.pairs == 1
    assert found.undecided


def test_runs_that_do_not_match_are_refused() -> None:
    one = CountedRun(name="a", seed=0, cells=(cell(EVEN),))
    for other, said in (
        (
            replace(one, name="b", seed=1),
            r"the seed is 0 in a and 1 in b. Run one of them again with the seed of the other\.$",
        ),
        (
            replace(one, name="b", cells=(cell(EVEN, sha256="1"),)),
            "the protocol maze differs",
        ),
        (
            replace(one, name="b", cells=(cell(EVEN, trials=10),)),
            r"20 trials in a .design cohort, judged: all. and 10 in b .*\. Run one of them again with the design of the other\.$",
        ),
        (
            replace(one, name="b", cells=(cell(EVEN, trials=1, design="smoke"),)),
            r"B is of the design smoke, which measures nothing: run it again without --design smoke\.$",
        ),
        (
            replace(one, name="b", cells=(cell(EVEN, protocol="other"),)),
            "no protocol in the same view",
        ),
    ):
        with pytest.raises(ComparisonError, match=said):
            compare_runs(one, other)
    same = cell(EVEN, protocol="same")
    two = replace(one, cells=(same, cell(EVEN)))
    with pytest.raises(
        ComparisonError, match=r"or select shared protocols with --protocols\.$"
    ):
        compare_runs(two, replace(two, cells=(same, cell(EVEN, trials=10))))


def test_a_run_that_stopped_because_of_its_results_is_doubtful() -> None:
    old = CountedRun(name="old", seed=0, cells=(cell(EVEN, sequential=True),))
    found = compare_runs(CountedRun(name="new", seed=0, cells=(cell(EVEN),)), old)
    assert any("old has the design 'sequential'" in line for line in found.warnings)


def test_models_of_one_run_are_compared_as_one_family() -> None:
    low, high = [0] * 8, [20] * 8
    models = {"low": low, "high": high, "middle": [*[0] * 4, *[20] * 4]}
    cells = tuple(
        cell(passed, name, model=model)
        for model, passed in models.items()
        for name in ("one", "two")
    )
    run = CountedRun(name="run", seed=0, cells=cells)
    found = compare_runs(run)
    pairs = [one.names for one in found.models]
    assert pairs == [("low", "high"), ("low", "middle"), ("high", "middle")]
    raw = [cell.paired.p_value or 0.0 for _, cell in found.cells]
    assert [cell.adjusted_p for _, cell in found.cells] == holm(raw)
    assert [one.adjusted_p for one in found.models] == holm(
        [one.overall.p_value or 0.0 for one in found.models]
    )
    assert [one.answer for one in found.models[0].cells] == ["worse", "worse"]
    assert found.rows()[2]["p_holm"] == found.models[0].adjusted_p
    assert not found.left_out
    [alone] = compare_runs(run, models=("low", "high")).models
    assert alone.cells[0].adjusted_p == holm(raw[:2])[0]
    for chosen in ((None, None), ("low", None)):
        with pytest.raises(ComparisonError, match="two models are needed"):
            compare_runs(replace(run, cells=cells[:2]), models=chosen)


def test_an_overall_answer_is_corrected_for_the_pairs_of_models() -> None:
    models = {"a": [20] * 6, "b": [0] * 6, **{name: [20] * 6 for name in "cdef"}}
    run = CountedRun(
        name="run",
        seed=0,
        cells=tuple(cell(passed, model=name) for name, passed in models.items()),
    )
    [first, *_] = compare_runs(run).models
    assert first.overall.answer == "undecided"
    assert first.overall.reason == (
        "Alone it would be better, but not after correcting for 15 comparisons, which takes at least 10 pairs, not 6, "
        "unless others differ more clearly."
    )
    assert first.overall.reason in first.cells[0].reason


def test_a_run_against_itself_is_warned_of() -> None:
    run = CountedRun(name="run", seed=0, cells=(cell(EVEN, digest="d"),))
    [said] = compare_runs(run, run).warnings
    assert "run is compared with itself (m), so nothing can differ." in said


def test_a_protocol_that_the_baseline_lacks_is_undecided() -> None:
    new = CountedRun(
        name="new", seed=0, cells=(cell(EVEN), cell(EVEN, protocol="second"))
    )
    found = compare_runs(new, CountedRun(name="old", seed=0, cells=(cell(EVEN),)))
    assert (found.unseen, found.undecided) == (("second (v)",), True)
    assert any("a loss there would not be seen" in line for line in found.warnings)


def about(
    measured: Measured, new: Sequence[int], old: Sequence[int], **more: Any
) -> CellComparison:
    first, second = (
        CountedRun(name=name, seed=0, cells=(cell(passed, measured=measured, **more),))
        for name, passed in (("new", new), ("old", old))
    )
    (one,) = compare_runs(first, second).models[0].cells
    return one


def test_a_measure_is_compared_in_its_unit() -> None:
    one = about(
        Measured(name="latency", better="lower", range=(0.0, 60.0)),
        [2] * 20,
        EVEN,
        margin=6.0,
    )
    assert (one.answer, one.measure) == ("worse", "latency")
    assert (one.first_rate, one.second_rate, one.paired.difference) == pytest.approx(
        (54, 30, 24)
    )
    assert one.loss == pytest.approx(18)


@pytest.mark.parametrize(
    ("new", "answer"),
    [
        ([2] * 20, "better"),
        ([18] * 20, "worse"),
        ([8, 12] * 10, "no loss"),
        (EVEN, "no loss"),
    ],
)
def test_of_two_that_should_be_like_the_animals_the_nearer_one_is_better(
    new: list[int], answer: str
) -> None:
    """The animals spend a tenth of their time in the open, the old model half of it."""
    one = about(
        Measured(name="open", better="alike", range=(0.0, 1.0)),
        new,
        EVEN,
        margin=0.1,
        animals=0.1,
    )
    assert one.answer == answer


@given(st.lists(st.integers(0, 20), min_size=2, max_size=4), st.integers(0, 20))
@settings(max_examples=50)
def test_no_interval_leaves_what_is_possible(passed: list[int], old: int) -> None:
    found = compared(
        (passed, [old] * len(passed)), (passed, [20 - old] * len(passed))
    ).models[0]
    for one in (found.overall, *(cell.paired for cell in found.cells)):
        assert one.interval is not None
        assert -1 <= one.interval[0] <= one.interval[1] <= 1


@pytest.mark.parametrize("lost", [0.0, LOSS])
def test_errors_of_twenty_pairs(lost: float) -> None:
    """An unchanged model is rarely called worse, and one that lost 30 points rarely
    cleared.
    """
    random = np.random.default_rng(1)
    worse = cleared = 0
    for _ in range(200):
        rates = random.beta(4, 1.5, 20)
        old = random.binomial(20, rates) / 20
        new = random.binomial(20, np.maximum(0, rates - lost)) / 20
        found = compare_differences([list(new - old)], seed=0)
        worse += found.answer == "worse"
        cleared += excludes_loss(list(new - old), lost or LOSS)
    if lost:
        assert worse > 180
        assert cleared <= 16
    else:
        assert worse <= 16
        assert cleared > 180


@pytest.mark.parametrize("number", [22, 30, 60])
def test_a_p_value_that_no_draw_can_show_is_bounded(number: int) -> None:
    """Among 561 comparisons, only one below .0001 survives Holm's correction."""
    sizes = [40 + 3 * (pair % 7) for pair in range(number)]
    ways = np.array([1.0])
    for size in sizes:  # the distribution of the sum over all sign patterns
        ways = np.convolve(ways, np.eye(2 * size + 1)[0] + np.eye(2 * size + 1)[-1])
    assert 2 * ways[-1] == 2
    exact = 2 / ways.sum()
    p_value = compare_differences([[one / 100 for one in sizes]], seed=0).p_value
    assert p_value is not None
    assert exact <= p_value < 0.05 / 561
    total, squares = sum(sizes), sum(one * one for one in sizes)
    assert p_value == pytest.approx(2 * np.exp(-(total**2) / (2 * squares)))


def test_a_p_value_that_draws_can_show_is_drawn() -> None:
    differences = [0.1 + 0.01 * pair for pair in range(12)] + [-0.15] * 8
    found = compare_differences([differences], seed=0).p_value
    assert found is not None
    assert found * 10_000 == pytest.approx(round(found * 10_000))
    assert found > 0.0002


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e6, 1e12])
def test_a_p_value_does_not_depend_on_the_unit(unit: float) -> None:
    differences = [0.37, 0.91, -0.12, 0.58, 0.44, 0.93, 0.71, 0.26]
    found = compare_differences([[unit * one for one in differences]], seed=0)
    assert found.p_value == 4 / 256


@pytest.mark.parametrize("gains", [2.2, 3.2, 4.8])
def test_small_gains_with_a_rare_total_loss_are_seldom_called_better(
    gains: float,
) -> None:
    """Both are equally good: the mean difference is zero."""
    pairs = 100
    gain = gains / pairs
    chances = binom(pairs, gain / (1 + gain))
    found = {
        p_with_imagined([gain] * (pairs - losses) + [-1.0] * losses): losses
        for losses in range(5)
    }
    for most in (0.05, 0.001):
        wrong = [losses for p, losses in found.items() if p <= most]
        assert sum(map(chances.pmf, wrong)) <= most


def p_with_imagined(differences: list[float]) -> float:
    found = compare_differences([differences], seed=0, imagined=1.0).p_value
    assert found is not None
    return found


def test_noise_is_no_rare_loss() -> None:
    differences = [0.06 + 0.3 * (-1) ** n for n in range(200)]
    seen = compare_differences([differences], seed=0).p_value
    assert seen is not None
    assert seen < p_with_imagined(differences) < 0.02


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(2, 9))
def test_differences_of_one_size_have_an_exact_p_value(
    gains: int, losses: int, ties: int
) -> None:
    """It is McNemar's: the number of gains is binomial."""
    differences = [0.5] * gains + [-0.5] * losses + [0.0] * ties
    exact = binomtest(gains, gains + losses).pvalue if gains + losses else 1.0
    assert compare_differences([differences], seed=0).p_value == pytest.approx(exact)


@settings(max_examples=30)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12))
def test_turning_the_runs_around_turns_the_answer(differences: list[float]) -> None:
    one, other = (
        compare_differences([differences], seed=0),
        compare_differences([[-d for d in differences]], seed=0),
    )
    turned = {"better": "worse", "worse": "better", "undecided": "undecided"}
    assert other.answer == turned[one.answer]
    assert one.p_value == pytest.approx(other.p_value)


def test_of_a_program_and_a_language_model_the_settings_are_no_differences() -> None:
    def run(name: str, agent: str, **settings: int) -> CountedRun:
        cells = (cell(EVEN, agent=agent, settings=settings),)
        return CountedRun(name=name, seed=0, cells=cells)

    asked, program = run("new", "llm", history=3), run("old", "")
    assert compare_runs(asked, program).changed == (
        ("agent", "llm", "none: a program"),
    )
    other = run("old", "", rate=2)
    assert compare_runs(run("new", "", rate=1), other).changed == (
        ("setting rate", "1", "2"),
    )
    assert ("setting history", "3", "5") in compare_runs(
        asked, run("old", "llm-tools", history=5)
    ).changed


def test_settings_have_the_names_of_their_options() -> None:
    named = [(one.setting, one.name) for one in OPTIONS if one.setting]
    assert ("max_tokens", "reply-tokens") in named
    for setting, option in named:
        new, old = (cell(EVEN, agent="llm", settings={setting: n}) for n in (1, 2))
        [changed] = runs(new, old).other_settings
        assert changed == (option, "1", "2")


def runs(new: CellCounts, old: CellCounts) -> RunComparison:
    return compare_runs(
        CountedRun(name="new", seed=0, cells=(new,)),
        CountedRun(name="old", seed=0, cells=(old,)),
    )


def test_a_cell_of_which_most_is_missing_is_not_compared() -> None:
    most = cell([1] * 3, missing=15)
    said = "Only 15 of 60 trials that count were measured."
    assert (most.nothing, most.compared) == (said, {})
    one = cell([1], missing=19)
    assert one.nothing == "Only 1 of 20 trials that count was measured."
    half = cell([1], missing=10)
    assert (half.nothing, half.compared) == ("", half.subjects)
    # A sequential run ends before its trials are complete.
    assert cell([1], missing=19, sequential=True).nothing == ""
    assert (
        cell([0], missing=20, untested="It never acted.").nothing == "It never acted."
    )


def test_the_least_pairs_that_exclude_a_loss() -> None:
    least = cell(EVEN).least_subjects
    assert excludes_loss([0.0] * least, LOSS)
    assert not excludes_loss([0.0] * (least - 1), LOSS)


def test_no_pair_is_no_answer() -> None:
    found = compare_differences(([], []), seed=0)
    assert (found.pairs, found.difference) == (0, None)
    assert found.reason


def test_a_comparison_as_text() -> None:
    both = compared(([18] * 20, EVEN), (EVEN, EVEN))
    lines = str(both).splitlines()
    assert [line.split(": ")[:2] for line in lines[:2]] == [
        ["better", "maze0"],
        ["no loss of 30 points", "maze1"],
    ]
    named = str(runs(cell(EVEN), cell(EVEN, model="n"))).splitlines()[0]
    assert named.startswith("no loss of 30 points: maze (m against n): ")
    more = compare_runs(
        CountedRun(name="new", seed=0, cells=(cell(EVEN),)),
        CountedRun(name="old", seed=0, cells=(cell(EVEN), cell(EVEN, "second"))),
    )
    assert more.told[-1] == "Only in old: second (v)."
    assert str(more).endswith(more.told[-1])


def test_who_rarely_succeeds_has_little_to_lose() -> None:
    [said] = compared(([0, 2] * 3, [1] * 6)).warnings
    assert said.startswith("m in old rarely succeeds on maze0 (5 %): it has little")
    assert compared((EVEN, EVEN)).warnings == []


def test_what_is_open_has_a_title() -> None:
    found = compared(([4, 16] * 3, EVEN[:6]), (EVEN, EVEN))
    titles = [(title, protocol) for title, protocol, _ in found.open_questions]
    assert titles == [("not known to be as good as old: m on maze0", "maze0")]


def test_a_control_is_compared_with_its_own_cell() -> None:
    cells = (
        cell(EVEN),
        cell([2] * 20, variant="control=blind"),
        cell(EVEN, variant="twin=1"),
        cell([18] * 20, variant="twin=1,control=shuffled"),
        cell(EVEN, "other", variant="control=blind"),
    )
    found = compare_runs(CountedRun(name="run", seed=0, cells=cells))
    assert {one.names: one.cells[0].answer for one in found.models} == {
        ("m", "m (control=blind)"): "better",
        ("m", "m (control=shuffled)"): "worse",
    }


def test_controls_of_two_models_are_neither_compared_nor_counted() -> None:
    plain = (cell([0] * 6), cell([20] * 6, "maze", model="n"))
    controls = tuple(replace(one, variant="control=blind") for one in plain)
    run = CountedRun(name="run", seed=0, cells=(*plain, *controls))
    [found] = compare_runs(run).models
    alone = compare_runs(replace(run, cells=plain)).models[0]
    assert found == alone
    assert found.cells[0].answer == "worse"
    assert found.cells[0].adjusted_p == pytest.approx(2 * 0.5**6)
    [control] = compare_runs(run, models=("n", None)).models
    assert control.names == ("n", "n (control=blind)")
    with pytest.raises(ComparisonError) as raised:
        compare_runs(run, models=control.names)
    assert str(raised.value) == (
        "run has 'n (control=blind)' only as a control. To compare it with its model: "
        "cheesebench compare run --first-model n"
    )


def test_the_wide_interval_of_a_perfect_difference_is_explained() -> None:
    perfect, nearly = compared(([20] * 12, [0] * 12)), compared(([20] * 12, [0, 1] * 6))
    assert perfect.models[0].cells[0].paired.interval < (0.5, 1)  # type: ignore[operator]
    assert nearly.models[0].cells[0].paired.interval > (0.9, 1)  # type: ignore[operator]
    assert perfect.told[-1] == (
        "All pairs differ by 100 points on maze0: nothing shows how much other pairs may differ, so the interval is wide. "
        "Where differences vary a little, it may be much narrower."
    )
    assert not any("All pairs" in one for one in nearly.told)


def test_a_control_that_has_little_to_lose_is_named() -> None:
    new, old = (
        CountedRun(name=name, seed=0, cells=(cell(passed, variant="control=blind"),))
        for name, passed in (("new", [0, 2] * 3), ("old", [1] * 6))
    )
    [said] = compare_runs(new, old).warnings
    assert said.startswith("m in old rarely succeeds on maze, control=blind (5 %): ")


@pytest.mark.parametrize(
    ("models", "protocols", "said"),
    [
        (("x", None), (), "new has no model 'x', only m."),
        ((None, "x"), (), "old has no model 'x', only n."),
        ((None, None), ("x",), "new has no protocol 'x', only maze."),
    ],
)
def test_what_is_chosen_is_in_the_run(
    models: tuple[str | None, str | None], protocols: Sequence[str], said: str
) -> None:
    new = CountedRun(name="new", seed=0, cells=(cell(EVEN),))
    old = CountedRun(name="old", seed=0, cells=(cell(EVEN, model="n"),))
    with pytest.raises(ComparisonError, match=said):
        compare_runs(new, old, models=models, protocols=protocols)


def test_models_that_are_in_one_run_only() -> None:
    new = CountedRun(name="new", seed=0, cells=(cell(EVEN), cell(EVEN, model="n")))
    old = CountedRun(name="old", seed=0, cells=(cell(EVEN, model="x"),))
    with pytest.raises(ComparisonError, match="new has m, n and old has x: no model"):
        compare_runs(new, old)
    with pytest.raises(ComparisonError, match="old has no cells, so there is nothing"):
        compare_runs(new, replace(old, cells=()))


def test_a_cell_is_counted_by_subject(
    plan: Callable[..., CellPlan], cohort: Callable[..., list[TrialRecord]]
) -> None:
    own = plan(subjects=3, trials=4, settings={"a": 1})
    records = cohort("++--", "+++-", "!!!!")
    lives = trials_by_subject(records).values()
    found = count_cell(own, lives, causes=("The server is down.",))
    scores = {
        n: (one.total, one.scored, one.missing) for n, one in found.subjects.items()
    }
    assert scores == {0: (2, 4, 0), 1: (3, 4, 0), 2: (0, 0, 4)}
    assert (found.measured, found.margin, found.animals) == (None, 0.0, 0.0)
    assert found.doubts == ("33.3 % of trials missing", "The server is down.")
    assert (found.untested, found.nothing, found.sequential) == ("", "", False)
    lost = [*trials_by_subject(cohort("!!!!")).values()]
    nothing = count_cell(plan(subjects=1, trials=4), lost, causes=("It broke.",))
    assert nothing.untested.endswith(" Cause: It broke.")
    asked = CellCalls(totals=CallTotals(calls=3), counts={"calls": 3, "unparsed": 3})
    silent = count_cell(own, lives, asked)
    assert (silent.subjects, silent.doubts) == ({}, ())
    assert silent.untested.startswith("No reply named an action (3 calls)")
    measured = ReferenceValue(
        value=30.0, measured=Measured(name="l", better="lower", range=(0, 60))
    )
    judged = count_cell(plan(measured, margin=5.0), ())
    assert (judged.margin, judged.animals) == (5.0, 30.0)
    # A single set cannot stop because of its result.
    for subjects, stops in ((64, True), (2, False)):
        sets = plan(sequential=True, subjects=subjects)
        assert count_cell(sets, ()).sequential == stops
