"""The built-in views."""

from __future__ import annotations

from collections.abc import Iterable

from cheesebench import View, hookimpl
from cheesebench.plugins.views.ascii_2d import Ascii2D
from cheesebench.plugins.views.ascii_2d_fpv import Ascii2DFpv
from cheesebench.plugins.views.ascii_3d import Ascii3D
from cheesebench.plugins.views.topdown_2d import Topdown2D

__all__ = ["Ascii2D", "Ascii2DFpv", "Ascii3D", "Topdown2D", "cheesebench_views"]


@hookimpl
def cheesebench_views() -> Iterable[View]:
    """Return the built-in views."""
    return (Ascii2D(), Ascii2DFpv(), Ascii3D(), Topdown2D())
