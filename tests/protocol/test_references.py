"""References: their values, computed from animals or written, verdicts about a measure,
and findings.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.special import stdtrit

from cheesebench.protocol import Catalogue
from cheesebench.protocol.csv_files import MEASURED
from cheesebench.protocol.references import in_words
from cheesebench.protocol.specification import Dose
from tests.arenas import examine as examine_file
from tests.protocol.animals import (
    FOUR,
    HEADER,
    LATENCY,
    MAZE,
    NAMED,
    TWO_MICE,
    found_in,
    loaded,
    written,
)
from tests.protocol.short import RIGHT, SCORED, Check, Examine, Findings, trial

ERRORS = {
    "rate above 1": ("E217", SCORED + "reference: [«{measure: success, value: 80, status: x}]"),
    "a spread in percent": (
        "E217", SCORED + "reference: [{measure: success, value: 0.84, sd: «6, n_animals: 8, status: x}]"
    ),
    "an error in percent": (
        "E217", SCORED + "reference: [{measure: success, value: 0.84, sem: «2.4, n_animals: 8, status: x}]"
    ),
    "interval backwards": ("E217", SCORED + "reference: [«{measure: success, value: 1, interval: [1, 0], status: x}]"),
    "two spreads": (
        "E226",
        SCORED + "reference: [{measure: success, value: 1, sd: 0, «sem: 0, n_animals: 4, status: x}]",
    ),
    "spread without animals": ("E226", SCORED + "reference: [{measure: success, value: 1, «sd: 0.1, status: x}]"),
    "negative spread": ("E226", SCORED + "reference: [«{measure: success, value: 1, sd: -1, n_animals: 4, status: x}]"),
    "spreads without a curve": (
        "E226", SCORED + "reference: [{measure: success, value: 1, curve: [1], «curve_sd: [0, 0], status: x}]"
    ),
    "a curve over sessions of which there may be fewer": (
        "E226", "schedule: {one: {trials: 4, until: {outcome: found, count: 2}, repeat: {at_most: 3, trials: 8}}}\n"
        + SCORED + "reference: [{measure: success, «curve: [0, 1, 1], status: x}]"
    ),
    "no number": ("E226", SCORED + "reference: [«{measure: success, status: x}]"),
    "curve that is too short": (
        "E226", "schedule: {one: {sessions: 2}}\n" + SCORED + "reference: [«{measure: success, curve: [1], status: x}]"
    ),
    "animals and what is computed": (
        "E226", SCORED + "reference: [{measure: success, animals: [[m, 1, 4, 1]], «n_animals: 4, status: x}]"
    ),
    "animals of a measure with trials": (
        "E225", "measures: {m: steps}\nreference: [{measure: m, animals: [«[m, 1, 4, 1]], status: x}]"
    ),
    "an animal that passed too often": (
        "E225", SCORED + "reference: [{measure: success, animals: [«[m, 1, 4, 5]], status: x}]"
    ),
    "an animal twice": (
        "E225", SCORED + "reference: [{measure: success, «animals: [[m, 1, 4, 1], [m, 1, 4, 2]], status: x}]"
    ),
    "no animal": ("E225", SCORED + "reference: [{measure: success, «animals: [], status: x}]"),
    "animals outside": ("E225", SCORED + "reference: [{measure: success, animals: «../a.csv, status: x}]"),
    "animals nowhere": ("E225", SCORED + "reference: [{measure: success, animals: «a.csv, status: x}]"),
    "animals without the sessions that count": (
        "E226", "schedule: {one: {trials: 4}}\n" + SCORED
        + "reference: [«{measure: success, animals: [[m, 3, 4, 1], [n, 3, 4, 2]], status: x}]"
    ),
    "a spread beyond the range of a measure": (
        "E217", "measures: {m: steps}\nreference: [{measure: m, value: 4, sd: «6, n_animals: 8, better: lower, "
        "margin: 1, range: [0, 9], status: x}]"
    ),
    "counts without animals": (
        "E226", SCORED + "measures: {m: steps}\n"
        "reference: [{measure: success, value: 0.5, «counts: {measure: m, at_most: 3}, status: x}]"
    ),
    "counts of a measure": (
        "E226", "measures: {m: steps}\n"
        "reference: [{measure: m, animals: [[a, 1, 4]], «counts: {measure: m, at_most: 3}, status: x}]"
    ),
    "rows of no file are chosen": (
        "E226", SCORED + "reference: [{measure: success, value: 0.5, «only: {group: control}, status: x}]"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


WARNINGS = {
    "an asymptote for all trials": (
        "W325", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, value: «1, curve: [0, 1], status: x}]"
    ),
    "the last session for all trials": (
        "W325", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, over: «last, curve: [0, 1], status: x}]"
    ),
    "a curve that is too long": (
        "W326", SCORED + "reference: [{measure: success, curve: «[0, 1], status: x}]"
    ),
    "a curve with a session for which no trials are left": (
        "W326", "schedule: {one: {trials: 4, repeat: {at_most: 3, trials: 6}}}\n" + SCORED
        + "reference: [{measure: success, curve: «[0, 1, 1], status: x}]"
    ),
    "animals with gaps": (
        "W326", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, animals: «[[m, 1, 40, 20], [n, 1, 40, 21], [o, 1, 40, 20], [p, 1, 40, 21]], status: x}]"
    ),
    "animals without a spread": ("W333", SCORED + "reference: [{measure: success, value: 0.8, n_animals: «12, status: x}]"),
    "one animal": ("W333", SCORED + "reference: [{measure: success, animals: «[[m, 1, 4, 1]], status: x}]"),
    "too few animals": (
        "W334", SCORED + "reference: [{measure: success, animals: «[[m, 1, 4, 1], [n, 1, 4, 4]], status: x}]"
    ),
    "animals in percent": (
        "W335", SCORED + "measures: {quick: steps < 5}\nreference: [«{measure: quick, value: 71, status: x}]"
    ),
    "a counter of one event in percent": (
        "W335", trial("{enter: goal, count: early, end: found}")
        + "measures: {share: early}\nreference: [«{measure: share, value: 29.5, status: x}]"
    ),
    "a variable of 0 and 1 in percent": (
        "W335", "vars: {early: 0}\n" + trial("{enter: goal, set: {early: 1}, end: found}")
        + "measures: {share: early}\nreference: [«{measure: share, value: 29.5, status: x}]"
    ),
    "a column of 0 and 1 in percent": (
        "W335", "draw: {d: {of: {early: [0, 1]}}}\nmeasures: {share: early}\n"
        + "reference: [«{measure: share, value: 29.5, status: x}]"
    ),
    "a share of some trials in percent": (
        "W335", trial("{enter: goal, reward: 1, count: [n, k], end: found}")
        + "measures: {share: n / k / (n > 0)}\nreference: [«{measure: share, value: 29.5, status: x}]"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), WARNINGS.values(), ids=list(WARNINGS))
def test_a_warning_stands_where_its_cause_is(
    code: str, text: str, check_warning: Check
) -> None:
    check_warning(code, text)


@pytest.mark.parametrize(
    "text",
    [
        trial("{enter: goal, count: early}, {act: STAY, end: found}"),
        "vars: {early: 0}\n" + trial("{enter: goal, set: {early: early + 1}}, {act: STAY, end: found}"),
    ],
)  # fmt: skip
def test_what_may_count_further_is_no_share(text: str, findings: Findings) -> None:
    reference = "reference: [{measure: share, value: 29.5, status: x}]"
    found = findings(f"{text}measures: {{share: early}}\n{reference}")
    assert not [one for one in found if one.startswith(("W335", "E"))]


MEASURES = (
    "measures: {latency: steps, kind: [{if: steps > 3, is: slow}, {is: quick}]}\n"
)
BRIEF = "measure: latency, value: 5, sd: 1, n_animals: 8, better: lower, margin: 2"
JUDGED = f"{BRIEF}, range: [0, 9]"


def reference(*keys: str) -> str:
    return (
        f"{MEASURES}reference: [{', '.join(f'{{{own}, status: x}}' for own in keys)}]"
    )


MISTAKES = {
    "better without a margin": (
        reference("measure: latency, value: 5, sd: 1, n_animals: 8, «better: lower"),
        "A verdict about 'latency' needs 'better' and 'margin', but there is no 'margin'",
    ),
    "a margin without better": (reference("measure: latency, value: 5, «margin: 2"), "there is no 'better'"),
    "a range alone": (reference("measure: latency, value: 5, «range: [0, 9]"), "there is no 'better'"),
    "no range": (reference(BRIEF.replace("better", "«better")), "'latency' has no 'range', which a verdict"),
    "names have no mean": (
        reference("measure: kind, value: 1, «better: lower, margin: 1, range: [0, 9]"),
        "The values of 'kind' are names, which have no mean",
    ),
    "a range backwards": (reference(f"{BRIEF}, «range: [9, 0]"), "The range, 9 to 0, is empty or reversed"),
    "a value out of range": (reference(f"{BRIEF}, «range: [6, 9]"), "The animals' value, 5, is not in the range 6 to 9"),
    "a margin to the end of the range": (
        reference("measure: latency, value: 5, better: lower, «margin: 4, range: [0, 9]"),
        "The worst possible value, 9, is within the margin of 4, so no subject could FAIL",
    ),
    "a margin to the other end": (
        reference("measure: latency, value: 5, better: higher, «margin: 5, range: [0, 9]"),
        "The worst possible value, 0, is within the margin of 5, so no subject could FAIL",
    ),
    "a margin over the whole range": (
        reference("measure: latency, value: 0.5, better: lower, «margin: 10, range: [0, 1]"),
        "The worst possible value, 1, is within the margin of 10, so no subject could FAIL",
    ),
    "a margin beyond both ends": (
        reference("measure: latency, value: 5, better: alike, «margin: 5, range: [0, 9]"),
        "All values of the range, 0 to 9, are within the margin of 5, so no subject could FAIL",
    ),
    "better success": (
        "success: last == found\nreference: [{measure: success, value: 0.5, «better: higher, status: x}]",
        "'better' is only for measures: 'success' is a rate from 0 to 1, and more of it is always better",
    ),
    "a margin of success": (
        "success: last == found\nreference: [{measure: success, value: 0.5, «margin: 0.2, status: x}]",
        "the margin of 'success' is the protocol's own key 'margin'",
    ),
    "two verdicts about measures": (
        reference(f"{JUDGED}", f"{JUDGED}").replace("}, {measure", "}, «{measure"),
        "'latency' and 'latency' both ask for it",
    ),
    "a verdict about a measure and about success": (
        "success: last == found\n"
        + reference("measure: success, value: 0.5", JUDGED).replace("reference: [{", "reference: [«{"),
        "'latency' and 'success' both ask for it",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_verdict_about_a_measure_has_what_it_needs(
    text: str,
    said: str,
    examine: Examine,
    complete: Callable[[str], str],
    marked: Callable[[str], str],
) -> None:
    specification, found = examine(complete(text).replace("«", ""))
    assert specification is None
    [only] = [one for one in found if one.severity == "error"]
    assert only.code == 226
    assert said in str(only)
    assert f"{only.position.line}:{only.position.column}" == marked(text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sd: 8", "Write 0.08 for 8 %."),
        ("sem: 4", "Write 0.04 for 4 %."),
        ("sd: 0.9", "Write it in the unit of the measure."),
    ],
)
def test_the_remedy_for_a_spread_in_percent_has_its_number(
    given: str, said: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    text = f"{SCORED}reference: [{{measure: success, value: 0.6, {given}, n_animals: 30, status: x}}]"
    found = examine(complete(text))[1]
    assert [one.remedy for one in found if one.code == 217] == [said]


SHAPES = {
    "an unknown side": (
        reference("measure: latency, value: 5, better: «less, margin: 2"),
        "E123",
    ),
    "a margin of nothing": (
        reference(f"{JUDGED.replace('margin: 2', 'margin: «0')}"),
        "E123",
    ),
    "half a range": (reference(f"{BRIEF}, range: «[0]"), "E123"),
    "a misspelt key": (reference(f"{BRIEF}, «rnage: [0, 9]"), "E121"),
    "an unknown measure": (reference(JUDGED.replace("latency", "«latenzy")), "E201"),
}


@pytest.mark.parametrize(("text", "code"), SHAPES.values(), ids=list(SHAPES))
def test_keys_of_a_verdict_have_their_shape(
    text: str,
    code: str,
    findings: Callable[[str], list[str]],
    marked: Callable[[str], str],
) -> None:
    assert findings(text)[0] == f"{code} {marked(text)}"


def test_what_is_judged(examine: Examine, complete: Callable[[str], str]) -> None:
    specification, found = examine(
        complete(
            "success: last == found\n"
            + reference("measure: steps_, value: 1", JUDGED).replace("steps_", "kind")
        )
    )
    assert specification is not None, found
    assert not [one for one in found if one.code == 402]
    judged = specification.judged
    assert judged is not None
    assert (judged.measure, judged.better, judged.margin, judged.range) == (
        "latency",
        "lower",
        2,
        (0, 9),
    )
    assert specification.reference is None, "there is no number for the pass rate"


@pytest.mark.parametrize(
    ("side", "value", "margin", "bar", "is_stricter"),
    [("lower", 5, 2, 7, -1), ("higher", 5, 2, 3, 1), ("higher", 1.5, 0.5, 1, 1)],
)
def test_a_verdict_asks_for_the_animals_mean_less_the_margin(
    side: str,
    value: float,
    margin: float,
    bar: float,
    is_stricter: int,
    examine: Examine,
    complete: Callable[[str], str],
) -> None:
    keys = f"measure: latency, value: {value}, sd: 1, n_animals: 8, better: {side}"
    text = reference(f"{keys}, margin: {margin}, range: [0, 9]")
    specification, found = examine(complete(text))
    assert specification is not None, found
    # What the mean of eight animals may be off (4 % of the error is theirs).
    off = float(stdtrit(7, 0.96)) / 8**0.5
    assert specification.bar == pytest.approx(bar + is_stricter * off)
    assert specification.judged is not None
    assert specification.judged.bar == bar


@pytest.mark.parametrize(
    ("spread", "known"),
    [
        ("", False),
        (", n_animals: 8", False),
        (", sd: 1, n_animals: 1", False),
        (", sd: 1, n_animals: 2", True),
    ],
)
def test_the_spread_between_animals_is_known_of_two_of_them(
    spread: str, known: bool, examine: Examine, complete: Callable[[str], str]
) -> None:
    text = reference(f"measure: latency, value: 5, kind: analogy{spread}")
    specification, found = examine(complete(text))
    assert specification is not None, found
    (only,) = specification.references
    assert only.has_spread == known
    assert only.nature == ("analogy" if known else "analogy, declared")


def test_where_of_the_judged_reference_says_what_is_compared(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    specification, found = examine(complete(reference(f"{JUDGED}, where: steps < 5")))
    assert specification is not None, found
    assert specification.where is not None


def test_value_spread_and_curve_are_those_of_the_animals(tmp_path: Path) -> None:
    found = loaded(tmp_path, FOUR + NAMED, TWO_MICE).reference
    assert found is not None
    own = [4 / 8, 4 / 6]
    assert (found.value, found.sd) == pytest.approx(
        (statistics.fmean(own), statistics.stdev(own))
    )
    assert (found.n_animals, found.kind, found.over) == (2, "measured", (1, 2))
    assert found.curve == pytest.approx((0.375, 0.875))
    assert found.curve_sd == pytest.approx(
        (statistics.stdev([0.25, 0.5]), statistics.stdev([0.75, 1]))
    )


def test_the_value_is_over_the_trials_of_the_estimand(tmp_path: Path) -> None:
    found = loaded(tmp_path, FOUR + NAMED + "estimand: {last: 4}\n", TWO_MICE).reference
    assert found is not None
    assert (found.value, found.over) == (0.875, (2,))


@pytest.mark.parametrize(
    ("where", "value", "over"),
    [
        ("session == 2", 0.8, (2,)),
        ("session < 2 or trial > 3", (4 * 0.2 + 0.8) / 5, (1, 2)),
        ("steps < 5", 0.5, (1, 2)),
    ],
)
def test_a_curve_gives_the_value_of_the_trials_that_where_takes(
    where: str, value: float, over: tuple[int, ...], tmp_path: Path
) -> None:
    curve = "reference: [{measure: success, curve: [0.2, 0.8], status: x}]"
    found = loaded(tmp_path, f"{FOUR}estimand: {{where: {where}}}\n{curve}").reference
    assert found is not None
    assert found.value == pytest.approx(value)
    assert found.over == over


def test_animals_are_compared_in_the_sessions_that_where_takes(tmp_path: Path) -> None:
    keys = FOUR + NAMED + "estimand: {where: session == 2}\n"
    found = loaded(tmp_path, keys, TWO_MICE).reference
    assert found is not None
    assert (found.value, found.over) == (0.875, (2,))


def test_sessions_of_a_curve_weigh_as_many_trials_as_they_have_in_the_estimand(
    tmp_path: Path,
) -> None:
    keys = (
        FOUR
        + "estimand: {last: 6}\nreference: [{measure: success, curve: [0.2, 0.8], curve_sd: [0.3, 0], "
    )
    found = loaded(tmp_path, keys + "n_animals: 9, status: x}]").reference
    assert found is not None
    assert (found.value, found.sd) == pytest.approx(((2 * 0.2 + 4 * 0.8) / 6, 0.1))


def test_sessions_have_the_trials_that_the_block_has_left(tmp_path: Path) -> None:
    keys = "schedule: {one: {trials: 4, repeat: {at_most: 9, trials: 6}}}\nreference: [{measure: success, status: x, "
    found = loaded(tmp_path, keys + "curve: [0.2, 0.8]}]").reference
    assert found is not None
    assert found.value == pytest.approx((4 * 0.2 + 2 * 0.8) / 6)
    assert found.over == (1, 2)


#: Blocks with an unknown number of sessions.
OPEN = (
    "schedule: {one: {trials: 4, repeat: {at_most: 3, until: {outcome: found, count: 2}}}}\n",
    "schedule: {one: {trials: 4, until: {outcome: found, count: 2}, repeat: {at_most: 9, trials: 8}}}\n",
    "schedule: {one: {sessions: 3, trials: 4, until: {outcome: found, count: 2}}, two: {trials: 4}}\n",
)


@pytest.mark.parametrize("schedule", OPEN)
@pytest.mark.parametrize("given", ["curve: [0.2, 0.8, 0.9]", "animals: animals.csv"])
def test_where_sessions_depend_on_the_subject_the_value_is_written(
    tmp_path: Path, schedule: str, given: str
) -> None:
    keys = schedule + f"reference: [{{measure: success, {given}, status: x}}]"
    specification, found = written(tmp_path, keys, TWO_MICE)
    assert specification is None
    assert [
        (one.code, "depends on the subject" in one.sentence)
        for one in found
        if one.severity == "error"
    ] == [(226, True)]
    assert (
        loaded(
            tmp_path, keys.replace("status", "over: [1, 2], status"), TWO_MICE
        ).reference
        is not None
    )
    if "curve" in given:
        one = loaded(tmp_path, keys.replace("status", "value: 0.4, status")).reference
        assert one is not None
        assert (one.value, len(one.curve)) == (0.4, 3)


def test_a_standard_error_is_a_deviation_over_the_root_of_n(tmp_path: Path) -> None:
    keys = (
        FOUR
        + "reference: [{measure: success, value: 0.775, sem: 0.014, n_animals: 4, status: x}]"
    )
    found = loaded(tmp_path, keys).reference
    assert found is not None
    assert found.sd == pytest.approx(0.014 * math.sqrt(4))


def test_a_number_of_animals_alone_is_declared(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        FOUR + "reference: [{measure: success, value: 0.8, n_animals: 12, status: x}]",
    ).reference
    assert found is not None
    assert (found.kind, found.sd) == ("declared", None)


def test_animals_of_a_measure_have_its_value_in_a_session(tmp_path: Path) -> None:
    csv = "animal,session,value\nm1,1,4\nm1,2,6.5\nm2,2,-1e1\n"
    (found,) = loaded(tmp_path, LATENCY, csv).references
    assert found.value == pytest.approx((5.25 - 10) / 2)
    assert (found.n_animals, found.over) == (2, (1, 2))
    assert found.sd == pytest.approx(statistics.stdev([5.25, -10]))
    assert found.curve == pytest.approx((4, -1.75))
    inline = LATENCY.replace("animals.csv", "[[m1, 1, 4], [m1, 2, 6.5], [m2, 2, -10]]")
    assert loaded(tmp_path, inline).references == (found,)


ALTERNATION = (
    FOUR
    + "measures: {alternation: triads / visits}\n"
    + "reference: [{measure: alternation, animals: animals.csv, better: higher, margin: 12, range: [0, 100], status: x}]\n"
)


COUNTING = MAZE.replace(
    "states:", "watch: [{enter: box, count: [visits, triads]}], states:"
)


@pytest.mark.parametrize(
    ("change", "values", "said"),
    [
        (("", ""), (71.1, 65.5), "'alternation' lies from 0 to 1 here"),
        (("", ""), (0.71, 0.65), "lies from 0 to 1 here"),
        (("triads /", "100 * triads /"), (71.1, 65.5), ""),
        (("12, range: [0, 100]", "0.12, range: [0, 1]"), (0.71, 0.65), ""),
        (("triads / visits", "steps"), (71, 65), ""),
        (("triads / visits", "steps"), (0.71, 0.65), "seems to be in percent"),
        (
            ("triads / visits", "100 * triads / visits"),
            (0.71, 0.65),
            "'alternation' seems to be in percent, but the animals have values up to 0.",
        ),
        (
            ("better: higher, margin: 12, range: [0, 100], ", ""),
            (71.1, 65.5),
            "'alternation' lies from 0 to 1 here",
        ),
    ],
)
def test_percent_and_shares_are_told_apart(
    change: tuple[str, str], values: tuple[float, float], said: str, tmp_path: Path
) -> None:
    rows = "".join(
        f"m{n},{session},{value}\n"
        for n, value in enumerate(values)
        for session in (1, 2)
    )
    (tmp_path / "animals.csv").write_text(f"{','.join(MEASURED)}\n{rows}")
    path = tmp_path / "maze.protocol.yaml"
    text = COUNTING + (ALTERNATION.replace(*change) if change[0] else ALTERNATION)
    path.write_text(text, encoding="utf-8")
    found = [one.sentence for one in examine_file(path)[1] if one.code == 335]
    assert (len(found) == 1 and said in found[0]) if said else not found


def test_an_animal_that_dropped_out_is_told_of_measures_too(tmp_path: Path) -> None:
    head = f"{','.join(MEASURED)}\n"
    early, late = "m1,1,4\nm1,2,5\nm2,1,4\n", "m1,1,4\nm1,2,5\nm2,2,4\n"
    judged = LATENCY.replace(
        "status", "better: lower, margin: 2, range: [0, 9], status"
    )
    told = [
        text for code, text in found_in(tmp_path, judged, head + early) if code == 332
    ]
    assert len(told) == 1
    assert "'m2' session 2" in told[0]
    assert 332 not in [code for code, _ in found_in(tmp_path, judged, head + late)]


def test_a_margin_at_the_wrong_place_is_told_where_it_goes(tmp_path: Path) -> None:
    keys = (
        LATENCY.replace("status", "better: lower, range: [0, 9], status")
        + "margin: 0.2\n"
    )
    rows = f"{','.join(MEASURED)}\nm1,1,4\nm1,2,5\n"
    told = [str(one) for one in written(tmp_path, keys, rows)[1] if one.code == 226]
    assert "Move 'margin' from line 11 to here" in str(told)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            "m1,1,4,1\nm1,2,4,3\nm2,1,4,2\n",
            "judged by their others, if any: 'm2' session 2.",
        ),
        ("M1,1,4,1\nM1,2,4,3\nm1,1,4,2\nm1,2,4,2\n", "count as two animals"),
        ("7,1,4,1\n7,2,4,3\n7.0,1,4,2\n7.0,2,4,2\n", "count as two animals"),
        (
            "m1,1,4,1\nm1,2,4,3\nm2,1,4,2\nm2,2,4,2\nm2,9,4,4\n",
            "'m2' has a session 9, but the schedule has only 2",
        ),
        (
            "".join(f"m{n},{session},4,{n}\n" for n in (1, 2) for session in (1, 2, 4)),
            "'m1' has a session 4, but the schedule has only 2",
        ),
    ],
)
def test_animals_that_are_not_those_that_are_judged(
    tmp_path: Path, rows: str, said: str
) -> None:
    found = found_in(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}")
    assert [code for code, text in found if said in text] == [332]


@pytest.mark.parametrize("name", ["Mean", "average", "Group mean", "total:"])
def test_a_row_that_summarizes_the_animals_is_told(tmp_path: Path, name: str) -> None:
    animals = "ES,1,4,1\nES,2,4,3\nSD,1,4,2\nSD,2,4,2\n"
    summary = f"{name},1,8,3\n{name},2,8,5\n"
    assert "count" not in str(found_in(tmp_path, FOUR + NAMED, f"{HEADER}\n{animals}"))
    found = found_in(tmp_path, FOUR + NAMED, f"{HEADER}\n{animals}{summary}")
    assert (332, f"'{name}', 'SD' count as animals.") in found
    alone = summary + animals.replace("SD", "n2")
    found = found_in(tmp_path, FOUR + NAMED, f"{HEADER}\n{alone}")
    assert (332, f"'{name}' counts as an animal.") in found


def test_a_reversed_range_is_not_the_fault_of_the_data(tmp_path: Path) -> None:
    keys = "measure: latency, animals: animals.csv, better: lower, margin: 1, range: [9, 0]"
    rows = "m1,1,4\nm1,2,4\nm2,1,5\nm2,2,5\n"
    found = found_in(tmp_path, FOUR + reference(keys), f"animal,session,value\n{rows}")
    assert [text for _, text in found] == ["The range, 9 to 0, is empty or reversed."]


def test_all_animals_may_have_gone_on_longer_than_the_schedule(tmp_path: Path) -> None:
    rows = "".join(
        f"m{n},{session},4,{n}\n" for n in (1, 2) for session in (1, 2, 3, 4)
    )
    found = found_in(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}")
    assert [code for code, _ in found] == [334], "two animals are too few, and no more"


@pytest.mark.parametrize(
    ("rows", "code", "said"),
    [
        ("a,1,9,5\na,2,9,6\n", 333, "One animal does not show how animals differ"),
        ("a,1,9,5\na,2,9,5\nb,1,9,5\nb,2,9,5\n", 333, "2 animals that are equal"),
        (
            "a,1,9,5\na,2,9,6\nb,1,9,8\nb,2,9,8\n",
            334,
            "never passes, and none ever fails, however many subjects are run",
        ),
        (
            "".join(f"a{n},{at},9,{6 + n % 3}\n" for n in range(9) for at in (1, 2)),
            334,
            "The mean of 9 animals may be off by 0.064, which the margin of 0.02 does not cover",
        ),
    ],
)
def test_animals_that_cannot_decide_anything(
    tmp_path: Path, rows: str, code: int, said: str
) -> None:
    keys = f"{FOUR}margin: 0.02\n{NAMED}"
    found = found_in(tmp_path, keys, f"{HEADER}\n{rows}")
    assert [one for one, text in found if said in text] == [code]


def test_animals_at_the_ceiling_are_no_spread(tmp_path: Path) -> None:
    rows = "".join(f"m{n},{session},4,4\n" for n in range(3) for session in (1, 2))
    found = loaded(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}").reference
    assert found is not None
    assert (found.value, found.sd, found.kind) == (1.0, None, "declared")


@pytest.mark.parametrize("value", ["240", "-24", "inf", "1e400", "\u0663", "1_0"])
def test_a_value_beyond_the_range_or_that_is_no_number_is_an_error(
    tmp_path: Path, value: str
) -> None:
    keys = (
        FOUR
        + "measures: {latency: steps}\nreference: [{measure: latency, animals: animals.csv, better: lower, "
        "margin: 4, range: [0, 100], status: counted}]\n"
    )
    specification, found = written(
        tmp_path, keys, f"animal,session,value\nm1,1,20\nm1,2,30\nm2,1,{value}\n"
    )
    assert specification is None
    errors = [one for one in found if one.severity == "error"]
    assert {one.code for one in errors} <= {225, 226}
    places = [(Path(one.position.file).name, one.position.line) for one in errors]
    assert places == [("animals.csv", 4)]


def test_sessions_that_the_schedule_lacks_are_named(examine: Examine) -> None:
    curve = "curve: [0.1, 0.2, 0.3, 0.4, 0.5, 0.9]"
    reference = f"reference: [{{measure: success, over: [1, 6], {curve}, status: x}}]"
    (warning,) = [str(one) for one in examine(RIGHT + reference)[1] if one.code == 325]
    assert "; the schedule has no session 6. Remove 'over' to compute" in warning


@pytest.mark.parametrize(
    ("sessions", "words"),
    [
        ([4], "session 4"),
        ([2, 3, 4], "sessions 2 to 4"),
        ([1, 3], "sessions 1, 3"),
    ],
)
def test_sessions_in_words(sessions: list[int], words: str) -> None:
    assert in_words(sessions) == words


@pytest.mark.parametrize(
    ("over", "value", "sessions"),
    [
        ("all", 0.4, (1, 2, 3)),
        ("last", 0.9, (3,)),
        ("last:2", 0.6, (2, 3)),
        ("[3, 1, 3]", 0.45, (1, 3)),
    ],
)
def test_the_sessions_of_a_value(
    over: str, value: float, sessions: tuple[int, ...], tmp_path: Path
) -> None:
    keys = "schedule: {one: {sessions: 3, trials: 4}}\n"
    keys += f"reference: [{{measure: success, curve: [0, 0.3, 0.9], over: {over}, status: x}}]"
    found = loaded(tmp_path, keys).reference
    assert found is not None
    assert found.value == pytest.approx(value)
    assert found.over == sessions


@pytest.mark.parametrize(
    ("keys", "dose"),
    [
        ("over: [2]", Dose(4, 5)),
        ("value: 0.5, over: [9]", None),
        ("over: [2], dose: {before: 7, judged: 8}", Dose(7, 8)),
        ("over: [1]", Dose(0, 4)),
    ],
)
def test_the_training_of_animals_is_a_median(
    keys: str, dose: Dose | None, tmp_path: Path
) -> None:
    rows = "a,1,4,1\na,2,5,3\nb,1,4,1\nb,2,9,3\nc,1,2,2\nc,2,2,2\nd,1,99,9\n"
    named = NAMED.replace("status", f"{keys}, status")
    found = loaded(tmp_path, FOUR + named, f"{HEADER}\n{rows}").reference
    assert found is not None
    assert found.dose == dose


def test_the_training_of_animals_without_rows_is_unknown(tmp_path: Path) -> None:
    named = NAMED.replace("status", "over: [3], status")
    keys = FOUR.replace("sessions: 2", "sessions: 3") + named
    for rows in ("a,3,5,3\n", "a,2,4,1\na,3,5,3\n"):
        found = loaded(tmp_path, keys, f"{HEADER}\n{rows}b,3,5,1\n").reference
        assert found is not None
        assert found.dose is None


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ((1, 2, 3), None),
        ((2, 3), "no animal has session 1: reports and figures show only their mean."),
        ((1, 3), "no animal has session 2: reports and figures show only session 1."),
    ],
)
def test_it_is_said_why_animals_have_no_curve(
    known: tuple[int, ...],
    said: str | None,
    examine: Examine,
    complete: Callable[[str], str],
) -> None:
    rows = ", ".join(
        f"[{name}, {one}, 4, {2 + one % 2}]" for name in "ab" for one in known
    )
    text = f"{SCORED}schedule: {{main: {{sessions: 3, trials: 4}}}}\nestimand: {{where: session > 1}}\n"
    text += (
        f"reference: [{{measure: success, over: [3], animals: [{rows}], status: x}}]"
    )
    found = [one.sentence for one in examine(complete(text))[1] if one.code == 407]
    assert len(found) == (said is not None)
    assert said is None or found[0].endswith(said)


@pytest.mark.parametrize(
    ("margin", "said"),
    [("15", "Write 0.15 for 15 points."), ("1", "Give a smaller margin.")],
)
def test_the_remedy_for_a_margin_in_points_has_its_number(
    margin: str, said: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    text = f"{SCORED}measures: {{share: steps}}\nreference: [{{measure: share, value: 0.5, better: alike, "
    text += f"margin: {margin}, range: [0, 1], status: x}}]"
    found = examine(complete(text))[1]
    assert [one.remedy for one in found if one.code == 226] == [said]


TASK = "trial: {states: {run: {say: GO}}}\n"
CLAIM = "construct: {name: going where one is told}\n"


@pytest.mark.parametrize(
    ("changes", "noted"),
    [
        (TASK + CLAIM, True),
        (TASK, False),
        (CLAIM, False),
        (TASK + CLAIM + "reference: null\n", False),
        (TASK + CLAIM + "reference: [{measure: success, value: 0.5, status: x}]\n", False),
        (TASK + CLAIM + "acknowledged: {I408: their delay was zero}\n", False),
    ],
)  # fmt: skip
def test_an_edition_with_another_task_has_other_animals(
    changes: str, noted: bool, write: Callable[[str, str], Path]
) -> None:
    write(
        "maze",
        SCORED
        + "construct: {name: memory, kind: learning, abolished_by: [{lesion: anhedonia, at_most: 0.4}]}\n"
        + "reference: [{measure: success, value: 0.7, status: x}]\n",
    )
    edition = write(
        "maze.told", f"version: 1\nextends: maze\nparadigm: maze\nedition: told\n{changes}"
    )  # fmt: skip
    found = Catalogue().inspect(edition)[1]
    assert [one.severity for one in found if one.severity == "error"] == []
    assert (408 in [one.code for one in found]) == noted
    assert 343 not in [one.code for one in found]
