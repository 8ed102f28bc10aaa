"""A campaign's interface, and the trial of a single case within limits of time and
memory.
"""

from __future__ import annotations

import contextlib
import random
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, Protocol

#: Maximum CPU time, in seconds, and memory, in bytes, for one case.
SECONDS, MEMORY = 2.0, 500 * 2**20
CORPUS = Path(__file__).with_name("corpus")


class Campaign(Protocol):
    """One kind of hostile input. A case is a string of bytes, so that it can be stored
    as a file of the corpus.
    """

    name: str

    def draw(self, chance: random.Random) -> bytes:
        """Return a new case."""
        ...

    def check(self, case: bytes) -> None:
        """Try a case. Any exception is a finding."""
        ...


class TooMuchError(Exception):
    """A case took longer than SECONDS, or more memory than MEMORY."""


def attempt(campaign: Campaign, case: bytes) -> Exception | None:
    """Try a case within the limits. Return the error, or None. Only the main thread may
    call this.
    """
    before = _peak()
    try:
        with _alarm(SECONDS):
            campaign.check(case)
    except Exception as error:
        return error
    if _peak() - before > MEMORY:
        return TooMuchError(f"{(_peak() - before) / 2**20:.0f} MB")
    return None


def corpus(name: str) -> list[Path]:
    """Return the files of a campaign's corpus."""
    return sorted(path for path in (CORPUS / name).glob("[!.]*"))


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise TooMuchError after this many seconds of CPU time, however busy the machine
    is; or after thirty times as many seconds of real time.
    """
    clocks = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, 30 * seconds),
    )

    def ring(*_: object) -> NoReturn:
        raise TooMuchError(f"more than {seconds:g} s")

    before = [signal.signal(number, ring) for number, _, _ in clocks]
    for _, timer, limit in clocks:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(clocks, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
