"""The table of models-of-what.md must agree with the protocols and their audits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cheesebench.protocol import Catalogue, Specification, arenas
from cheesebench.protocol.validation import ability_scale, simple_subjects

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "models-of-what.md"
#: Names of paradigms on the page, if they differ from the file's name.
NAMES = {"t_maze": "T-maze", "barnes_maze": "Barnes maze", "dnms": "dnms", "morris_water_maze": "Morris water maze"}  # fmt: skip
THE_NINE = list(arenas(Catalogue([ROOT / "protocols"]).select()))


def table() -> dict[str, list[str]]:
    text = PAGE.read_text(encoding="utf-8").split("| | without the ability")[1]
    lines = text.split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: cells for name, *cells in rows}


def two(value: float) -> str:
    return f"{value + 1e-9:.2f}".removeprefix("0")


def test_the_nine_have_a_row_each() -> None:
    named = {NAMES.get(one.name, one.name.replace("_", " ")) for one in THE_NINE}
    assert set(table()) == named


@pytest.mark.parametrize("one", THE_NINE, ids=lambda one: one.name)
def test_a_row_has_the_zero_the_bar_and_the_animals(one: Specification) -> None:
    scale, judged = ability_scale(one), one.judged
    assert scale is not None
    assert judged is not None
    name = NAMES.get(one.name, one.name.replace("_", " "))
    without, _, bar, animals = table()[name]
    nature = "" if judged.nature == "measured" else f" {judged.nature}"
    assert without == two(scale.without)
    assert bar == two(one.bar or 0.0)
    assert animals == two(judged.value) + nature


@pytest.mark.parametrize("one", THE_NINE, ids=lambda one: one.name)
def test_what_one_bit_has_is_no_less_than_what_an_audit_found(
    one: Specification,
) -> None:
    cell = table()[NAMES.get(one.name, one.name.replace("_", " "))][1]
    found = [own.rate for own in simple_subjects(one) if own.states == 2]
    named = [float(rate) for rate in re.findall(r"\.\d\d", cell)]
    assert found
    if "the ability" not in cell:
        assert max(found) <= max(named) + 0.005
