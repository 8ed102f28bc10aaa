"""Functions of numbers: their results, including undefined ones."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from cheesebench.paradigms.arena.environment import environment_class
from tests.arenas import examine_text

NUMBERS = (
    0,
    1,
    2,
    -3,
    7,
    0.5,
    -0.5,
    2.5,
    -2.5,
    0.3,
    1e-9,
    -999999999999999,
    709.5,
    710,
)
PAIRS = list(itertools.product(NUMBERS, NUMBERS))
MEASURES = {
    "abs": "abs(a)", "round": "round(a)", "floor": "floor(a)", "exp": "exp(a)", "log": "log(a)", "rest": "a % b",
    "min": "min(a, b)", "max": "max(a, b, a / b)", "truth": "min(a > b, b)", "nested": "max(min(a, 3) % 4, abs(b - a))",
}  # fmt: skip
PROTOCOL = f"""
version: 1
paradigm: sums
arena: {{map: "####\\n#SZ#\\n####\\n", legend: {{S: box, Z: goal}}}}
draw: {{pair: {{order: cycle, of: {{a: {[a for a, _ in PAIRS]}, b: {[b for _, b in PAIRS]}}}}}}}
start: {{at: box, face: E}}
trial: {{limit: 1, start: run, states: {{run: {{rules: [{{enter: goal, end: found}}]}}}}}}
schedule: {{main: {{trials: {len(PAIRS)}}}}}
measures: {{{", ".join(f"{name}: '{text}'" for name, text in MEASURES.items())}}}
"""


@pytest.fixture(scope="module")
def measured() -> list[dict[str, Any]]:
    specification, found = examine_text(PROTOCOL, "sums.protocol.yaml")
    assert specification is not None, found
    one = environment_class(specification)()
    measured = []
    for number in range(len(PAIRS)):
        one.reset(seed=None if number else 1)
        measured.append(one.step(0)[4]["measures"])
    return measured


def python(name: str, a: float, b: float) -> float:
    """Compute a measure with Python's own functions."""
    match name:
        case "exp":
            return math.exp(a) if a < 709.78 else math.inf
        case "log":
            return math.log(a) if a > 0 else math.nan
        case "rest":
            return math.nan if b == 0 else a % b
        case "abs":
            return abs(a)
    return round(a) if name == "round" else math.floor(a)


@pytest.mark.parametrize("name", ["abs", "round", "floor", "exp", "log", "rest"])
def test_they_are_what_they_are_in_python(
    name: str, measured: list[dict[str, Any]]
) -> None:
    for (a, b), found in zip(PAIRS, measured, strict=True):
        expected = python(name, a, b)
        assert found[name] == (expected if math.isfinite(expected) else None), (a, b)


def test_the_smallest_and_the_largest(measured: list[dict[str, Any]]) -> None:
    for (a, b), found in zip(PAIRS, measured, strict=True):
        assert found["min"] == min(a, b)
        assert found["max"] == (
            None if b == 0 else max(a, b, a / b) if math.isfinite(a / b) else None
        ), (a, b)
        assert found["truth"] == min(a > b, b)
        assert not isinstance(found["truth"], bool)
