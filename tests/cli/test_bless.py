"""What ``bless`` warns of, and what it says to do next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.commands.bless import _floor, _misleading, _next, _nothing_to_lose
from cheesebench.records import AbilityScale
from cheesebench.statistics.comparison import CellCounts, CountedRun, count_cell
from cheesebench.statistics.sample import SubjectScore
from tests.reports.conftest import plan_of


def counts(subjects: int, passed: int = 10, **changes: Any) -> CellCounts:
    found = count_cell(plan_of(), ())
    scores = {n: SubjectScore(passed, 20, 0, f"{n}") for n in range(subjects)}
    return replace(found, subjects=scores, **changes)


def run(*cells: CellCounts) -> CountedRun:
    return CountedRun(name="main", seed=7, cells=cells)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([counts(20)], []),
        ([counts(20), counts(20, sequential=True)], ["the run stopped because of its results"]),
        (
            [counts(20), counts(2, protocol="maze"), counts(1, protocol="box")],
            ["even if nothing changes: box (1, at least 12 are needed), maze (2, at least 12 are needed). Comparisons"],
        ),
        ([counts(12)], []),
        ([counts(12, silent=(5, 100))], []),
        ([counts(12, silent=(6, 100))], ["6 of the 100 replies that count on pool named no action, so this"]),
        ([counts(12, silent=(1204, 2408))], ["1,204 of the 2,408 replies that count on pool named no action, so this"]),
        ([counts(11)], ["Bless a run with more --subjects (20 for a usual model)."]),
    ],
)  # fmt: skip
def test_a_baseline_that_misleads_is_warned_of(
    cells: list[CellCounts], said: list[str]
) -> None:
    found = list(_misleading(run(*cells)))
    assert len(found) == len(said)
    for line, part in zip(found, said, strict=True):
        assert part in line


@pytest.mark.parametrize(
    ("passed", "floor", "said"),
    [
        (10, None, []),
        (10, (0.4, "moving at random"), []),
        (10, (0.5, "moving at random"), ["pool (50 %; moving at random 50 %)"]),
        (1, (0.25, "without the ability at most"), ["pool (5 %; without the ability at most 25 %)"]),
    ],
)  # fmt: skip
def test_a_cell_without_ability_has_nothing_to_lose(
    passed: int, floor: tuple[float, str] | None, said: list[str]
) -> None:
    cell = counts(4, passed)
    key = (cell.model, cell.protocol, cell.view, cell.variant)
    assert list(_nothing_to_lose(run(cell), {key: floor})) == said
    empty = replace(cell, subjects={0: SubjectScore(0, 0, 20, "0")})
    assert list(_nothing_to_lose(run(empty, counts(0)), {key: floor})) == []
    assert list(_nothing_to_lose(run(cell), {})) == []


def test_the_floor_is_a_proved_ceiling_or_random_moves() -> None:
    able = plan_of(ability=AbilityScale(without=0.25, ideal=0.95), chance=0.1)
    assert _floor(able) == (0.25, "without the ability at most")
    assert _floor(plan_of(chance=0.1)) == (0.1, "moving at random")
    assert _floor(plan_of(chance=None)) is None


@pytest.mark.parametrize(
    ("designs", "said"),
    [
        (["cohort"], "--compare main"),
        (["flat-15", "cohort"], "--compare main --design flat-15"),
        (["flat-15", "flat-3"], "--compare main"),
    ],
)
def test_the_next_commands_have_the_design(designs: list[str], said: str) -> None:
    cells = [counts(2, design=design) for design in designs]
    commit, compare = _next(run(*cells), Path("baselines/main.json")).split("\n")
    assert commit == "Commit it: git add baselines/main.json"
    assert compare.endswith(f"pytest --model NAME {said}")
