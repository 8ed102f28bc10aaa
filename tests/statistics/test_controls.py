"""A control beside its plain cell, and what a lesion says of the construct."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.records import Measured
from cheesebench.statistics.controls import (
    _compare,
    _gain,
    _gains,
    _points,
    contradiction,
    lesion_sentence,
)
from cheesebench.statistics.question import Scale
from cheesebench.statistics.sample import Sample, draw_sample, trials_by_subject
from tests.reports.conftest import plan_of, trials_of


def cell(
    rate: float | None = None,
    interval: tuple[float, float] | None = None,
    *,
    judged: tuple[float, float] | None = None,
    better: str = "lower",
    at_most: float | None = 0.4,
    spared: bool = False,
    **plan: Any,
) -> Any:
    measured = Measured(name="latency", better=cast(Any, better), range=(0.0, 60.0))
    given: dict[str, Any] = {
        "lesion": SimpleNamespace(at_most=at_most, words="without landmarks", spared=spared),
        "construct": SimpleNamespace(name="navigation"),
        "reference": SimpleNamespace(value=30.0, measured=measured),
        "margin": 5.0,
        "measured": measured if judged else None,
    }  # fmt: skip
    result = judged and SimpleNamespace(
        interval=judged, mean=sum(judged) / 2, better=better, measure="latency"
    )
    return SimpleNamespace(
        plan=SimpleNamespace(**(given | plan)),
        rate=rate,
        interval=interval,
        judged=result,
    )


@pytest.mark.parametrize(
    ("one", "against", "said"),
    [
        (cell(0.6, (0.5, 0.7)), True, "60 % of trials succeed without landmarks, but at most 40 % should: this is not nav"),
        (cell(0.3, (0.2, 0.4)), False, "The rate is at most 40 % without landmarks, as it must be if this is navigation."),
        (
            cell(0.4, (0.4, 0.5)), False,
            "40 % of trials succeed without landmarks, and at most 40 % should: whether this is navigation is undecided.",
        ),
        # Of 30 s, 35 s would still pass if less is better.
        (
            cell(judged=(31.0, 34.0)), True,
            "Without landmarks, the mean of latency is 32.5, which would still pass: this is not navigation.",
        ),
        (
            cell(judged=(35.0, 41.0)), False,
            "Without landmarks, the mean of latency is 38, which would not pass, as must be the case if this is navigation.",
        ),
        (
            cell(judged=(33.0, 41.0)), False,
            "Without landmarks, the mean of latency is 37: whether this would pass, and so whether it is navigation, is"
            " undecided.",
        ),
        (cell(judged=(10.0, 20.0)), True, "which would still pass"),
        (cell(judged=(26.0, 29.0), better="higher"), True, "which would still pass"),
        (cell(judged=(15.0, 25.0), better="higher"), False, "which would not pass"),
        (cell(judged=(26.0, 34.0), better="alike"), True, "which would still pass"),
        (cell(judged=(10.0, 20.0), better="alike"), False, "which would not pass"),
        (cell(judged=(35.0, 41.0), better="alike"), False, "which would not pass"),
        (cell(judged=(26.0, 36.0), better="alike"), False, "is undecided"),
        (cell(), False, ""),
        (cell(0.6, (0.5, 0.7), construct=None), False, ""),
        (cell(0.6, (0.5, 0.7), lesion=None), False, ""),
        (
            cell(0.6, (0.5, 0.7), at_most=None), False,
            "The construct, navigation, makes no claim about subjects without landmarks.",
        ),
    ],
)  # fmt: skip
def test_what_remains_under_a_lesion_is_told(
    one: Any, against: bool, said: str
) -> None:
    found = lesion_sentence(one)
    assert said in found
    assert bool(found) == bool(said)
    assert contradiction(one) == (found if against else "")


def test_a_measure_may_contradict_where_the_rate_does_not() -> None:
    both = cell(0.3, (0.2, 0.4), judged=(31.0, 34.0))
    assert contradiction(both).startswith("Without landmarks")
    assert lesion_sentence(both) == contradiction(both)
    neither = cell(0.3, (0.2, 0.4), judged=(35.0, 41.0))
    assert lesion_sentence(neither).count("navigation.") == 2


def test_a_plain_cell_below_the_limit_makes_a_lesion_no_evidence() -> None:
    lesioned, plain = cell(0.16, (0.1, 0.2)), cell(0.38, (0.3, 0.45))
    told = lesion_sentence(lesioned, None, plain)
    assert told == (
        "The rate is at most 40 % without landmarks, but so is the plain rate (38 %): this is no evidence of navigation."
    )
    assert "as it must be" in lesion_sentence(lesioned, None, cell(0.5, (0.4, 0.6)))
    slow, also = cell(judged=(40.0, 50.0)), cell(judged=(36.0, 40.0))
    told = lesion_sentence(slow, None, also)
    assert "nor would the plain mean (38): this is no evidence of navigation." in told
    fast = cell(judged=(29.0, 31.0))
    assert "as must be the case" in lesion_sentence(slow, None, fast)
    # What contradicts the construct does so whatever the plain cell has.
    kept = cell(0.6, (0.5, 0.7))
    assert lesion_sentence(kept, None, plain) == lesion_sentence(kept)


@pytest.mark.parametrize(
    ("answer", "better", "changed"),
    [
        ("better", "lower", True),
        ("worse", "lower", False),
        ("worse", "alike", True),
        ("better", "alike", True),
        ("undecided", "alike", False),
        (None, "lower", False),
    ],
)
def test_a_lesion_that_must_not_matter(
    answer: str | None, better: str, changed: bool
) -> None:
    one = cell(judged=(31.0, 34.0), better=better, spared=True)
    compared = answer and cast(Any, SimpleNamespace(answer=answer))
    said = "The mean of latency changes without landmarks, which must not matter for navigation."
    assert lesion_sentence(one, compared or None) == (said if changed else "")
    plain = cell(0.5, (0.4, 0.6), spared=True, reference=None)
    fell = lesion_sentence(plain, cast(Any, SimpleNamespace(answer="better")))
    assert fell.startswith("The rate falls without landmarks")


def test_curves_are_paired_by_session() -> None:
    plain = [{1: 0.0, 2: 1.0}, {1: 0.5, 2: 0.5, 3: 1.0}]
    control = [{1: 0.0, 2: 0.0}, {2: 0.5, 3: 0.0}]
    found = _points(plain, control)
    assert [(one.session, one.pairs) for one in found] == [(1, 1), (2, 2), (3, 1)]
    assert [(one.plain, one.control, one.difference) for one in found] == [
        (0.0, 0.0, 0.0),
        (0.75, 0.25, 0.5),
        (1.0, 0.0, 1.0),
    ]
    assert _gains(plain, found) == [None, 0.5]
    assert _gains(plain, found[:2]) == [1.0, 0.0]
    assert _gains(plain, found[:1]) == [None, None]
    assert _gain([], Scale()) is None
    gain = _gain([0.0, 1.0], Scale())
    assert gain is not None
    assert gain.mean == 0.5


def sample(*passed: int) -> Sample:
    """Return subjects with 20 trials each, of which so many pass."""
    plan = plan_of(subjects=len(passed))
    records = [
        replace(record, success=record.trial < passed[record.subject])
        for record in trials_of(plan, 0.5)
    ]
    return draw_sample(plan, trials_by_subject(records).values())


@pytest.mark.parametrize(
    ("plain", "control", "said"),
    [
        ([18] * 10, [4] * 10, "+70 points over 10 paired subjects, which is more than chance explains (p = "),
        ([10] * 10, [10] * 10, "0 points over 10 paired subjects, which may be chance (p = 1)."),
    ],
)  # fmt: skip
def test_a_control_is_compared_subject_by_subject(
    plain: list[int], control: list[int], said: str
) -> None:
    found = _compare(plan_of(), sample(*plain), sample(*control))
    assert found.reason.startswith(
        "Plain less control, over the trials of the pass rate:"
    )
    assert said in found.reason
    nobody = _compare(plan_of(), sample(), sample(*control))
    assert nobody.reason == (
        "No subject was measured both with and without the control."
    )
