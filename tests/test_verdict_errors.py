"""The tables of simulated error rates in the documentation: all there, none above what is promised, and still true."""

from __future__ import annotations

import re

import pytest

from benchmarks import verdict_errors
from benchmarks.verdict_errors import PAGE, PLAYERS, RUNS, SHAPES, SPREADS, TABLES, Players, observed, put, tables_of

SHOWN = tables_of(PAGE.read_text(encoding="utf-8"))


def rows(table: str) -> list[list[str]]:
    """Return the cells of a Markdown table, without its head."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_no_error_that_is_shown_is_above_five_percent() -> None:
    """Each is the largest of many simulated probabilities: three standard errors above what it may be, then."""
    assert set(SHOWN) == set(TABLES)
    allowed = 0.05 + 3 * (0.05 * 0.95 / RUNS) ** 0.5
    errors = rows(SHOWN["errors"])
    assert [name for name, *_ in errors] == [players.name for players in PLAYERS]
    assert all(float(cell) <= allowed for _, *cells in errors for cell in cells)


def test_errors_of_measures_are_below_five_percent_if_subjects_differ_as_the_animals_do() -> None:
    allowed = 0.05 + 3 * (0.05 * 0.95 / RUNS) ** 0.5
    shown = rows(SHOWN["measures"])
    assert {(name, float(spread), int(animals)) for name, spread, animals, *_ in shown} == {
        (name, *more) for name in SHAPES for more in SPREADS
    }
    judged = [cells for cells in shown if float(cells[1]) <= 1]
    assert len(judged) >= 3 * len(SHAPES)
    assert all(float(error) <= allowed for _, _, _, *errors in judged for error in errors)


def test_shapes_have_no_mean_and_a_standard_deviation_of_one() -> None:
    import numpy as np

    for name, draw in SHAPES.items():
        drawn = draw(np.random.default_rng(1), (400, 400))
        assert drawn.mean() == pytest.approx(0, abs=0.02), name
        assert drawn.std() == pytest.approx(1, abs=0.06), name


def test_what_is_promised_of_models() -> None:
    shown = {tuple(cells[:3]): list(map(float, cells[3:])) for cells in rows(SHOWN["outcomes"])}
    assert shown["0", "0.8", "0"][3] == 6, "a hopeless model needs six subjects"
    for icc, least, most in (("0.1", 0.95, 0.1), ("0.3", 0.8, 0.25)):
        _, passes, _, _, disagree = shown["0.8", "0.8", icc]
        assert passes >= least, "within 60 subjects"
        assert disagree <= most


def test_what_is_promised_of_comparisons() -> None:
    noise = 3 * (0.05 * 0.95 / (RUNS // 4)) ** 0.5
    for _, _, lost, _, _, worse, cleared, _ in rows(SHOWN["regression"]):
        assert float(cleared if lost == "30" else worse) <= 0.05 + noise


def test_a_table_is_put_in_its_place() -> None:
    page = "a\n<!-- simulated: x -->\nold\n<!-- end -->\n<!-- simulated: y -->\n<!-- end -->\nb"
    assert tables_of(put(page, "y", "| 1 |")) == {"x": "old", "y": "| 1 |"}


def test_players_have_the_mean_that_they_are_said_to_have() -> None:
    import numpy as np

    random = np.random.default_rng(0)
    for players in PLAYERS:
        found = observed(players, 0.7, 10, 60, 400, random, unequal=True)
        assert found is not None
        assert found.mean() == pytest.approx(0.7, abs=0.015), players.name
    assert observed(Players("", kinds=(0.05, 0.95)), 0.99, 10, 60, 4, random, unequal=False) is None


@pytest.mark.slow
def test_outcomes_are_still_what_is_shown() -> None:
    runs = 1000
    for shown, again in zip(rows(SHOWN["outcomes"]), rows(TABLES["outcomes"](runs)), strict=True):
        for before, after in zip(map(float, shown[3:6]), map(float, again[3:6]), strict=True):
            assert after == pytest.approx(before, abs=0.01 + 4 * (0.25 / runs) ** 0.5), shown
        assert float(again[6]) == pytest.approx(float(shown[6]), abs=2.5), shown


@pytest.mark.slow
def test_errors_are_still_below_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 800
    monkeypatch.setattr(verdict_errors, "TRIALS", (1, 100))
    for name, *cells in rows(TABLES["errors"](runs)):
        assert all(float(cell) <= 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5 for cell in cells), (name, cells)
    assert re.fullmatch(r"\d\.\d{3}", cells[0])


@pytest.mark.slow
def test_errors_of_measures_are_still_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 600
    monkeypatch.setattr(verdict_errors, "SPREADS", ((1.0, 12), (2.0, 50)))
    again = {tuple(cells[:3]): list(map(float, cells[3:])) for cells in rows(TABLES["measures"](runs))}
    shown = {tuple(cells[:3]): list(map(float, cells[3:])) for cells in rows(SHOWN["measures"])}
    for place, errors in again.items():
        noise = [0.02 + 4 * (max(error, 0.05) / runs) ** 0.5 for error in shown[place]]
        for before, after, most in zip(shown[place], errors, noise, strict=True):
            assert after == pytest.approx(before, abs=most), place
