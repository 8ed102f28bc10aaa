"""The built-in views: one module each."""

from __future__ import annotations

from collections.abc import Iterable
from pkgutil import resolve_name

from cheesebench import View, hookimpl

#: Module and class of each view, in the order in which they are listed.
VIEWS = (
    "ascii_2d:Ascii2D",
    "ascii_2d_fpv:Ascii2DFpv",
    "ascii_3d:Ascii3D",
    "topdown_2d:Topdown2D",
)


@hookimpl
def cheesebench_views() -> Iterable[View]:
    return [resolve_name(f"{__name__}.{view}")() for view in VIEWS]
