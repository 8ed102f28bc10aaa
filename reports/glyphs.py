"""Bars and columns drawn with block characters."""

from __future__ import annotations

from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"
_PARTS = " ▏▎▍▌▋▊▉"


def bar(proportion: float, width: int = 20) -> str:
    """Return a horizontal bar of ``width`` characters, filled to the proportion (0 to 1) in eighths."""
    eighths = round(min(max(proportion, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    drawn = "█" * full + (_PARTS[part] if part else "")
    return drawn.ljust(width, "░")


def level(proportion: float) -> str:
    """Return the block whose height is nearest to the proportion; 0 is the lowest one, 1 the full one."""
    return LEVELS[round(min(max(proportion, 0.0), 1.0) * (len(LEVELS) - 1))]


def columns(proportions: Sequence[float | None], width: int) -> str:
    """Return a column of ``width`` blocks per proportion (dots for None), separated by spaces."""
    return " ".join(("·" if value is None else level(value)) * width for value in proportions)
