"""A reference for a verdict about a measure: its requirements, and the findings if one
is missing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scipy.special import stdtrit

from tests.protocol.short import Examine

MEASURES = (
    "measures: {latency: steps, kind: [{if: steps > 3, is: slow}, {is: quick}]}\n"
)
SHORT = "measure: latency, value: 5, sd: 1, n_animals: 8, better: lower, margin: 2"
LATENCY = f"{SHORT}, range: [0, 9]"


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
    "no range": (reference(SHORT.replace("better", "«better")), "'latency' has no 'range', which a verdict"),
    "names have no mean": (
        reference("measure: kind, value: 1, «better: lower, margin: 1, range: [0, 9]"),
        "The values of 'kind' are names, which have no mean",
    ),
    "a range backwards": (reference(f"{SHORT}, «range: [9, 0]"), "The range is empty or reversed"),
    "a value out of range": (reference(f"{SHORT}, «range: [6, 9]"), "The animals' value, 5, is not in the range 6 to 9"),
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
    "better success": (
        "success: last == found\nreference: [{measure: success, value: 0.5, «better: higher, status: x}]",
        "'better' is only for measures: 'success' is a rate from 0 to 1, and more of it is always better",
    ),
    "a margin of success": (
        "success: last == found\nreference: [{measure: success, value: 0.5, «margin: 0.2, status: x}]",
        "the margin of 'success' is the protocol's own key 'margin'",
    ),
    "two verdicts about measures": (
        reference(f"{LATENCY}", f"{LATENCY}").replace("}, {measure", "}, «{measure"),
        "'latency' and 'latency' both ask for it",
    ),
    "a verdict about a measure and about success": (
        "success: last == found\n"
        + reference("measure: success, value: 0.5", LATENCY).replace("reference: [{", "reference: [«{"),
        "'latency' and 'success' both ask for it",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), MISTAKES.values(), ids=list(MISTAKES))
def test_mistakes(
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


SHAPES = {
    "an unknown side": (
        reference("measure: latency, value: 5, better: «less, margin: 2"),
        "E123",
    ),
    "a margin of nothing": (
        reference(f"{LATENCY.replace('margin: 2', 'margin: «0')}"),
        "E123",
    ),
    "half a range": (reference(f"{SHORT}, range: «[0]"), "E123"),
    "a misspelt key": (reference(f"{SHORT}, «rnage: [0, 9]"), "E121"),
    "an unknown measure": (reference(LATENCY.replace("latency", "«latenzy")), "E201"),
}


@pytest.mark.parametrize(("text", "code"), SHAPES.values(), ids=list(SHAPES))
def test_shapes(
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
            + reference("measure: steps_, value: 1", LATENCY).replace("steps_", "kind")
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
    specification, found = examine(complete(reference(f"{LATENCY}, where: steps < 5")))
    assert specification is not None, found
    assert specification.where is not None
