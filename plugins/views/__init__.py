"""The built-in views. Each has a module of its own."""

from __future__ import annotations

from collections.abc import Iterable

from cheesebench import View, hookimpl
from cheesebench.plugins.views.ascii_2d import Ascii2D
from cheesebench.plugins.views.ascii_2d_fpv import Ascii2DFpv
from cheesebench.plugins.views.ascii_3d import Ascii3D
from cheesebench.plugins.views.topdown_2d import Topdown2D

__all__ = ["cheesebench_views"]

#: The views, in display order.
VIEWS = (Ascii2D, Ascii2DFpv, Ascii3D, Topdown2D)


@hookimpl
def cheesebench_views() -> Iterable[View]:
    return [view() for view in VIEWS]
