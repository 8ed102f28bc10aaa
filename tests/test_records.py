"""Records: sets, sums, places in a schedule, and keys of cells."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields, replace

import pytest

from cheesebench.chat import ChatReply, Usage
from cheesebench.records import (
    GOAL,
    LARGEST,
    MOST_SUBJECTS,
    AbilityScale,
    CallRecord,
    CallTotals,
    Ceilings,
    CellCalls,
    CellPlan,
    Construct,
    Frame,
    LesionClaim,
    Measured,
    ReferenceValue,
    Reported,
    TrialRecord,
    Variant,
    is_measurement,
    sets_until,
)
from tests.stored import check_stored

PLAN = CellPlan(
    model="m", protocol="p", view="v", title="P", dimension="d", species="s", sha256="0", design="cohort",
    subjects=10, trials=20, memory="life",
)  # fmt: skip


@pytest.mark.parametrize(
    ("most", "sets"),
    [
        (1, (1,)),
        (6, (6,)),
        (7, (6, 7)),
        (30, (6, 10, 14, 18, 24, 30)),
        (40, (6, 10, 14, 18, 24, 30, 40)),
        (45, (6, 10, 14, 18, 24, 30, 40, 45)),
    ],
)
def test_sets_end_with_the_most(most: int, sets: tuple[int, ...]) -> None:
    assert sets_until(most) == sets
    assert (GOAL, MOST_SUBJECTS) == (20.0, 120)


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        (LARGEST, True), (-LARGEST, True), (0, True), (1.1e30, False), (-1.1e30, False), (math.inf, False),
        (math.nan, False), ("1", False), (None, False),
    ],
)  # fmt: skip
def test_a_measurement_is_a_number_of_a_size(value: object, is_one: bool) -> None:
    assert is_measurement(value) is is_one


def test_totals_are_added_and_subtracted_field_by_field() -> None:
    one = CallTotals(calls=1, attempts=2, prompt=3, completion=4, cost=0.5)
    two = CallTotals(
        calls=10, cached=7, reasoning=8, seconds=2.0, written=9, malformed=1
    )
    both = CallTotals(
        calls=11, attempts=2, prompt=3, completion=4, cost=0.5, cached=7, reasoning=8, seconds=2.0, written=9,
        malformed=1,
    )  # fmt: skip
    assert one + two == both
    assert both - two == one


@pytest.mark.parametrize("cost", [None, 0.25])
def test_a_call_counts_once_with_all_its_attempts(cost: float | None) -> None:
    usage = Usage(prompt=5, completion=6, cached=3, reasoning=2, written=1)
    call = CallRecord(
        trial=0, call=0, digest="", system="", asked="", reply=ChatReply(text="", usage=usage), cost=cost,
        seconds=1.5, attempts=3, malformed=2,
    )  # fmt: skip
    assert call.totals == CallTotals(
        calls=1, attempts=3, prompt=5, completion=6, cached=3, reasoning=2, cost=cost or 0.0, seconds=1.5, written=1,
        malformed=2,
    )  # fmt: skip


def test_a_trial_has_its_place_in_the_schedule() -> None:
    plan = replace(PLAN, blocks=(("a", 2, 3, True), ("b", 1, 2, False)))
    places = [("a", 1, True)] * 3 + [("a", 2, True)] * 3 + [("b", 3, False)] * 2
    assert [plan.place_of(trial) for trial in range(8)] == places
    assert plan.place_of(8) == ("", 0, True)
    assert PLAN.place_of(0) == ("", 0, True)


def test_what_a_verdict_compares_with() -> None:
    rate = ReferenceValue(value=0.8)
    measured = replace(rate, measured=Measured(name="latency"))
    assert PLAN.measured is None
    assert not PLAN.comparable
    assert replace(PLAN, reference=rate).comparable
    assert replace(PLAN, reference=rate).measured is None
    found = replace(PLAN, reference=measured).measured
    assert found == Measured(name="latency", better="higher", range=(0.0, 1.0))
    chance = replace(PLAN, against="chance")
    assert not replace(chance, reference=rate).comparable
    assert replace(chance, chance=0.0).comparable


def test_a_variant_is_in_the_names_and_keys_of_its_cell() -> None:
    plain = replace(PLAN, twin_of="original")
    assert (plain.label, plain.series, plain.control) == ("p", "", "")
    assert plain.key == plain.plain_key == ("m", "p", "v", "")
    assert plain.public_key == ("m", "original", "v", "")
    varied = replace(
        plain, variant=Variant(settings=(("history", "1"),), control="yoked:r")
    )
    assert (varied.label, varied.control) == ("p", "yoked:r")
    assert varied.series == str(varied.variant) == varied.key[3]
    assert varied.plain_key == ("m", "p", "v", "history=1")
    assert varied.public_key == ("m", "original", "v", str(varied.variant))
    asked = replace(plain, variant=Variant(condition="map"))
    assert asked.label == "p[map]"
    assert asked.series == ""
    for temperature, series in ((0.5, "temperature 0.5"), (0, "temperature 0")):
        assert replace(asked, settings={"temperature": temperature}).series == series


def test_a_trial_has_the_key_of_its_cell() -> None:
    record = TrialRecord(
        model="m", protocol="p", view="v", variant="x", subject=1, trial=2
    )
    assert record.key == ("m", "p", "v", "x")
    assert (record.compared, record.success, record.steps) == (True, None, 0)


def test_a_variant_is_written_and_read_back() -> None:
    one = Variant((("history", "1"), ("prompt", "cot")), "yoked:r", "map")
    for variant in (
        Variant(), one, replace(one, condition=""), replace(one, control=""), replace(one, settings=()),
    ):  # fmt: skip
        assert Variant.parse(str(variant)) == variant
        assert bool(variant) is (variant != Variant())
    commas = Variant((("history", "1,2"), ("x", "")), "yoked:a,b=c", "map,line")
    assert Variant.parse("map,line,history=1,2,x=,control=yoked:a,b=c") == commas
    assert Variant.parse("map") == Variant(condition="map")


def test_what_is_assumed_unless_a_record_says_otherwise() -> None:
    kinds = (
        AbilityScale, CallRecord, CallTotals, Ceilings, CellCalls, CellPlan, Construct, Frame, LesionClaim, Measured,
        ReferenceValue, Reported, TrialRecord,
    )  # fmt: skip
    lines = []
    for kind in kinds:
        lines.append(f"{kind.__name__}:")
        for one in fields(kind):
            default = (
                one.default if one.default_factory is MISSING else one.default_factory()
            )
            lines.append(
                f"  {one.name}: {'needed' if default is MISSING else repr(default)}"
            )
    check_stored("records.txt", "\n".join([*lines, ""]))
