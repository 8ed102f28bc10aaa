"""`order: balanced`: counterbalanced over subjects, but not predictable from a
subject's number (clause 3).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.interfaces import STAY
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from tests.arenas import examine_text

Film = Callable[..., str]

PROTOCOL = """
version: 1
paradigm: corridor
arena: {map: "S...Z", legend: {S: box, Z: {zone: goal, glyph: Z}}}
start: {at: box, face: E}
draw:
  one: {per: subject, order: balanced, of: {a: [1, 2, 3, 4, 5], b: [v, w, x, y, z]}}
  other: {per: subject, order: balanced, of: {c: [1, 2, 3, 4, 5]}}
  again: {per: trial, order: balanced, of: {d: [1, 2, 3, 4, 5]}}
  pairs: {per: subject, order: balanced, pick: 2, of: {e: [1, 2, 3]}}
trial: {limit: 9, start: run, states: {run: {rules: [{act: STAY, reward: a + c + d, end: again}]}}}
schedule: {one: {trials: 3}}
measures: {b: b, e: e}
"""
SPECIFICATION = examine_text(PROTOCOL, "balanced.protocol.yaml")[0]
assert SPECIFICATION is not None
PARADIGM = ArenaParadigm(SPECIFICATION)
VIEW = installed_plugins().view("ascii_2d")

#: Rows of subjects 0 to 6 for seed 7, which must never change.
PINNED = [
    (4, 2, 4, 1, 1),
    (1, 3, 5, 4, 5),
    (2, 4, 2, 2, 4),
    (5, 5, 3, 3, 2),
    (3, 1, 1, 5, 3),
    (5, 4, 4, 3, 3),
    (3, 5, 2, 1, 1),
]


def rows_of(seed: int, subject: int) -> tuple[int, ...]:
    """Return a, c and three times d of one subject."""
    life = ArenaSubject(PARADIGM.program, VIEW, seed, subject)
    values: list[list[int]] = []
    for _ in range(3):
        life.begin_trial()
        life.step(STAY)
        variables = life.values
        assert variables["b"] == "vwxyz"[variables["a"] - 1]
        values.append([variables[name] for name in "acd"])
    assert len({(a, c) for a, c, _ in values}) == 1
    return (*values[0], values[1][2], values[2][2])


@settings(max_examples=30)
@given(seed=st.integers(0, 2**40), cycle=st.integers(0, 10**6))
def test_every_cycle_of_subjects_has_every_row_once(seed: int, cycle: int) -> None:
    rows = [rows_of(seed, subject) for subject in range(5 * cycle, 5 * cycle + 5)]
    assert [sorted(column) for column in zip(*rows, strict=True)] == [
        [1, 2, 3, 4, 5]
    ] * 5
    pairs = [
        ArenaSubject(PARADIGM.program, VIEW, seed, subject)
        for subject in range(3 * cycle, 3 * cycle + 3)
    ]
    for life in pairs:
        life.begin_trial()
    assert len({frozenset(life.values["e"]) for life in pairs}) == 3


def test_the_number_of_a_subject_does_not_tell_its_row() -> None:
    rows = [rows_of(seed, 0) for seed in range(1000)]
    for column in zip(*rows, strict=True):
        # 200 expected, 4 standard deviations.
        assert all(150 < column.count(value) < 250 for value in range(1, 6))
    # Nor does one draw reveal another.
    assert all(
        150 < sum(row[i] == row[j] for row in rows) < 250
        for i in range(5)
        for j in range(i)
    )
    # Nor does an earlier cycle reveal a later one.
    assert (
        150
        < sum(rows_of(seed, 0)[0] == rows_of(seed, 5)[0] for seed in range(1000))
        < 250
    )


def test_rows_are_the_same_in_any_order_and_process() -> None:
    assert [rows_of(7, subject) for subject in reversed(range(7))] == PINNED[::-1]
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import {__name__.rpartition('.')[2]} as t\n"
    code += "print([t.rows_of(7, subject) for subject in range(7)])"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.strip() == str(PINNED)


def test_film(film: Film, reel: Callable[[str], str]) -> None:
    """The reward reveals the row: each of three subjects has a different one, and keeps
    it.
    """
    told = """
        arena: {map: "S.Z", legend: {S: box, Z: {zone: goal, glyph: Z}}}
        start: {at: box, face: E}
        draw: {d: {per: subject, order: balanced, of: {n: [1, 2, 3]}}}
        trial: {limit: 9, start: run, states: {run: {rules: [{act: STAY, reward: n, end: again}]}}}
    """
    films = [film(told, "S S", subject=subject, seed=4) for subject in range(3)]
    assert films == [
        reel(f"""
        - →.Z 0    run
        S →.Z +{n} again (terminated)
        - →.Z 0    run
        S →.Z +{n} again (terminated)
        """)
        for n in (1, 3, 2)
    ]


@pytest.mark.parametrize(
    ("order", "expected"), [("by_subject", [405]), ("balanced", []), ("random", [])]
)
def test_a_row_that_the_number_tells_is_noted(order: str, expected: list[int]) -> None:
    text = PROTOCOL.replace("order: balanced", f"order: {order}", 1)
    _, found = examine_text(text, "balanced.protocol.yaml")
    assert [one.code for one in found if one.code == 405] == expected
