"""Decorators for functions that numba compiles."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
from numba.core import event

#: Nothing here allocates memory, so reference counting (``_nrt``) is turned off: it would take half of the time.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}

#: Logger that announces compilation, because it takes long.
LOG = logging.getLogger("cheesebench")

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function when it is first called, for the types of that call.

    For inner functions: nothing is cached on disk, which is the business of the entry point that calls them. Dividing
    by zero does not raise (as in numpy), and neither does an index out of bounds, which writes where it should not.
    """
    return cast(F, numba.njit(**OPTIONS)(function))


class _CompilationNotice(event.Listener):
    """Announces once that something is being compiled."""

    def __init__(self) -> None:
        self.announced = False

    def on_start(self, event: object) -> None:
        if not self.announced:
            LOG.warning("Compiling the steps of vector environments. This takes about 20 seconds, once per machine.")
        self.announced = True

    def on_end(self, event: object) -> None:
        """Announces nothing."""


@contextmanager
def announce_compilation() -> Iterator[None]:
    """Announce compilation within the block; functions loaded from the cache are not announced."""
    with event.install_listener("numba:compile", _CompilationNotice()):
        yield
