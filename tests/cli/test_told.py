"""The sentences that say what a forecast assumes."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.planning import told
from cheesebench.planning.earlier import Manner
from cheesebench.records import CellPlan, Measured, ReferenceValue
from tests.stored import check_stored


def players(passes: float) -> dict[str, Any]:
    names = ("random", "as the animals", "60 % right")
    return {name: SimpleNamespace(passes=passes) for name in names}


def cell(protocol: str, **changes: Any) -> Any:
    plan = CellPlan(
        model=changes.pop("model", "m"), protocol=protocol, view="v", title="", dimension="", species="", sha256="0",
        design="cohort", subjects=10, trials=20, memory=changes.pop("memory", "life"), agent=changes.pop("agent", "llm"),
        settings={"max_tokens": changes.pop("max_tokens", 500), "actions": 4}, reference=changes.pop("reference", None),
        margin=changes.pop("margin", 0.1),
    )  # fmt: skip
    named = {
        "own": False,
        "measured": False,
        "manner": None,
        "longest": 0.0,
        "context": None,
        "icc": None,
        "icc_basis": "assumed",
        "needed": None,
        "needed_assumed": None,
        "outlooks": players(changes.pop("passes", 1.0)),
    }
    return SimpleNamespace(plan=plan, **(named | changes))


def forecast(*cells: Any, price_of: date | None = None) -> Any:
    return SimpleNamespace(cells=cells, price_of=price_of)


MANNER = Manner(replies=1200, reply=88.5, acts=0.75, actions=2.25)
RUNS = {
    "nothing is known": forecast(cell("a"), cell("b")),
    "own and measured": forecast(
        cell("a", own=True, longest=9_000.0, context=9_000), cell("b", measured=True), cell("a\n\x1b", own=True),
        price_of=date(2026, 1, 2),
    ),
    "all own": forecast(cell("a", own=True, longest=500.0, context=1000)),
    "by earlier replies": forecast(
        cell("a", manner=MANNER, longest=12_345.0, measured=True), cell("b", manner=MANNER, longest=2.0)
    ),
    "by first answers": forecast(
        cell("a", manner=Manner(replies=6, acts=0.0, asked=True)), cell("b", model="n", manner=MANNER)
    ),
    "without calls": forecast(cell("a", agent="")),
}  # fmt: skip


def test_where_numbers_come_from_is_said() -> None:
    lines = []
    for name, found in RUNS.items():
        lines += [f"{name}:", *(f"  {one}" for one in told.sources(found))]
    check_stored("told.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize(
    ("longest", "context", "most", "short"),
    [
        (500, None, 500, False), (500, 1000, 500, False), (501, 1000, 500, True), (1000, 1000, None, False),
        (1001, 1000, 0, True),
    ],
)  # fmt: skip
def test_a_prompt_and_a_reply_must_fit_the_context(
    longest: float, context: int | None, most: int | None, short: bool
) -> None:
    said = told.too_short(cell("a", max_tokens=most).plan, longest, context)
    assert bool(said) is short
    if short:
        assert f" of a in v has about {longest:,} tokens" in said
        assert ("a reply up to 500" in said) is (most == 500)
        assert "the context of m, 1,000 tokens" in said


def test_the_range_is_named_where_it_makes_many_subjects_necessary() -> None:
    wide, narrow = (
        ReferenceValue(
            value=0.7, measured=Measured(name="errors", better="lower", range=(0, high))
        )
        for high in (10, 1)
    )
    few = cell("a", reference=wide, margin=0.5, trials=20)
    assert "errors 0 to 10" in list(told.limits(forecast(few)))[-1]
    assert not list(
        told.limits(forecast(cell("a", reference=narrow, margin=0.5, trials=20)))
    )


SURE = ReferenceValue(value=0.7)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"passes": 0.8}, None),
        ({"passes": 0.79, "needed": 33}, "a 33"),
        ({"passes": 0.1}, "a more than 300"),
        (
            {"passes": 0.1, "needed": 33, "icc": 0.0049, "icc_basis": "animals", "needed_assumed": 56},
            "a 33 (ICC 0.005, from the animals' rows) to 56 (ICC 0.3, assumed)",
        ),
        # The planned ten suffice for subjects that differ as the animals do.
        (
            {"icc": 0.0, "icc_basis": "animals", "needed_assumed": 11},
            "a at most 10 (ICC 0, from the animals' rows) to 11 (ICC 0.3, assumed)",
        ),
        ({"icc": 0.0, "icc_basis": "animals", "needed_assumed": 10}, None),
        (
            {"passes": 0.1, "icc": 0.4, "icc_basis": "animals", "needed_assumed": 290},
            "a 290 (ICC 0.3, assumed) to more than 300 (ICC 0.4, from the animals' rows)",
        ),
        (
            {"icc": 0.0, "icc_basis": "animals"},
            "a at most 10 (ICC 0, from the animals' rows) to more than 300 (ICC 0.3, assumed)",
        ),
    ],
)  # fmt: skip
def test_how_many_subjects_are_needed(changes: Any, said: str | None) -> None:
    found = list(told.needed([cell("a", reference=SURE, **changes)]))
    if said is None:
        assert not found
        return
    [one] = found
    assert f"with about this many subjects: {said}." in one
    both = "A model's subjects need not differ as the animals do, so both numbers are"
    assert (both in one) is (" to " in said)
    assert one.endswith("--design sequential runs as many as the verdict needs, up to 120.")  # fmt: skip


def test_no_number_of_subjects_outweighs_few_animals() -> None:
    unsure = ReferenceValue(value=0.7, sd=0.3, n_animals=3)
    [said] = told.needed([cell("a", passes=0.0, reference=unsure)])
    assert said.startswith("No number of subjects gives a model as good as the animals a PASS in a: ")  # fmt: skip


def test_what_is_assumed_of_subjects() -> None:
    measure = ReferenceValue(value=1, measured=Measured(name="x"))
    of_measure = told.assumed([cell("a", icc=0.5, reference=measure)])
    assert of_measure.startswith(" Where the verdict is about a measure")
    assert "correlation" not in of_measure
    differ = " Subjects as good as the animals differ with an intraclass correlation (ICC) of "
    forgetful = cell("a", icc=0.0, icc_basis="no memory")
    alike = told.assumed([forgetful, cell("b", icc=None)])
    assert alike.startswith(" The agent remembers nothing from trial to trial")
    given, assumed = cell("a", icc=0.1, icc_basis="given"), cell("b", icc=0.3)
    assert told.assumed([given]) == f"{differ}0.1, given (--icc sets another)."
    assert told.assumed([assumed]) == f"{differ}0.3, assumed (--icc sets another)."
    own = [cell(name, icc=0.15049, icc_basis="animals") for name in "cd"]
    assert told.assumed([*own, assumed]) == (
        f"{differ}0.15 (c, d), from the animals' rows; 0.3 (b), assumed (--icc sets another). "
        "'60 % right' is no animal: ICC 0.3, assumed."
    )
    two = told.assumed([own[0], cell("e", icc=0.0, icc_basis="animals")])
    assert f"{differ}0.15 (c), 0 (e), from the animals' rows (" in two
    both = told.assumed([forgetful, cell("b", icc=0.5, reference=measure)])
    assert both == of_measure + alike
    assert told.assumed([]) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "?"), (0, "0"), (9_999, "9,999"), (9_999.6, "10,000"), (10_000, "10 k"), (12_345, "12.3 k"),
        (999_499, "999 k"), (999_500, "1 M"), (4.5e6, "4.5 M"), (2e9, "2 G"), (3.25e12, "3.25 T"), (5e15, "5e+03 T"),
    ],
)  # fmt: skip
def test_large_numbers_have_units(value: float | None, shown: str) -> None:
    assert told.count(value) == shown


def test_shares_are_whole_percents() -> None:
    assert [told.share(one) for one in (0.0, 0.004, 0.005, 0.333, 1.0)] == [
        "0 %", "0 %", "1 %", "33 %", "100 %",
    ]  # fmt: skip
