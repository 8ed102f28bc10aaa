"""What all figures share: palette, sizes, the groups that are drawn, and legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.reports.cells import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cheesebench.statistics import CellResult, ModelSummary

#: Okabe and Ito's palette (2008): told apart with any colour vision, and in grey by the
#: marks that go with it.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
RODENT = "#444444"
#: Inches; a page of two columns holds it in full width.
WIDTH, HEIGHT = 10.0, 4.5


@dataclass(frozen=True)
class Group:
    """One model in one view and variant, with a unique label."""

    label: str
    model: ModelSummary
    cells: Sequence[CellResult]

    @property
    def mean(self) -> tuple[float, float] | None:
        """Mean pass rate over the protocols and its standard error; None without a
        rate.
        """
        overall = self.model.overall
        return None if overall is None else (overall.mean, overall.standard_error)


def new(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    # Not pyplot, which keeps figures alive and may look for a display.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def shared_legend(figure: Figure) -> None:
    """Draw one legend for all panels."""
    named = {
        label: line
        for axes in figure.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        named.values(),
        named.keys(),
        loc="outside right upper",
        fontsize="small",
        frameon=False,
    )


def colour(number: int, count: int) -> str | tuple[float, ...]:
    """Return the colour of one of ``count`` series: none of them share one."""
    if count <= len(COLOURS):
        return COLOURS[number]
    import matplotlib

    return tuple(matplotlib.colormaps["turbo"]((number + 0.5) / count))


def plain(text: str) -> str:
    """Return text with ``$`` escaped, which matplotlib would parse as a formula."""
    return clean(text).replace("$", r"\$")
