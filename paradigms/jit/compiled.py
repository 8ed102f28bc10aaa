"""What marks a function as one that numba compiles, with the types it had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

#: Nothing here allocates memory, so no references need be counted (``_nrt``): that would take half of the time.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function when it is first called, for the types of that call.

    For inner functions: nothing is cached on disk, which is the business of the entry point that calls them. Dividing
    by zero does not raise (as in numpy), and neither does an index out of bounds, which writes where it should not.
    """
    return cast(F, numba.njit(**OPTIONS)(function))
