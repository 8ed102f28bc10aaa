"""The built-in views."""

from __future__ import annotations

from collections.abc import Iterable

from cheesebench import View, hookimpl
from cheesebench.plugins.views.ascii_2d import Ascii2D
from cheesebench.plugins.views.ascii_2d_fpv import Ascii2DFpv

__all__ = ["Ascii2D", "Ascii2DFpv", "cheesebench_views"]


@hookimpl
def cheesebench_views() -> Iterable[View]:
    """Return the built-in views."""
    return (Ascii2D(), Ascii2DFpv())
