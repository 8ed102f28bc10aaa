"""Cells that a merged run lacks, in words."""

from __future__ import annotations

from cheesebench.commands.merge import _cells
from tests.reports.conftest import plan_of


def test_missing_cells_are_named_up_to_a_number() -> None:
    plans = [plan_of(f"maze{n}") for n in range(11)]
    one = f"{plans[0].label} in ascii_2d by walker"
    assert _cells(plans[:1]) == f"1 cell: {one}"
    ten = _cells(plans[:10])
    assert ten.startswith(f"10 cells: {one}, ")
    assert "more" not in ten
    assert _cells(plans) == ten.replace("10 cells", "11 cells") + ", and 1 more"
