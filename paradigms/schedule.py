"""The schedule of a life (language page, clause 1): block, repeat, session, trial."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cheesebench.protocol.specification import BlockSpec
from cheesebench.protocol.values import Scope


class Position(NamedTuple):
    """A trial's place in the schedule: session in the block and trial in the session count from 1."""

    block: BlockSpec
    session: int
    trial: int
    began: set[Scope]
    """The scopes that begin with this trial."""


class Schedule:
    """The trials of one life, one after the other."""

    def __init__(self, blocks: Sequence[BlockSpec]) -> None:
        self._blocks = blocks
        self._positions = self._walk({"subject"})
        self._recent: deque[str] = deque(maxlen=1)

    def next(self) -> Position | None:
        """Return the next trial, or None when the schedule is over."""
        return next(self._positions, None)

    def note(self, outcome: str) -> None:
        """Tell how the trial ended: ``until`` goes by the latest outcomes."""
        self._recent.append(outcome)

    def repeat(self) -> None:
        """Let the schedule begin again, for the same subject."""
        self._positions = self._walk(set())

    def _walk(self, began: set[Scope]) -> Iterator[Position]:
        for block in self._blocks:
            for _ in range(block.repeat):
                began = began | {"block"}
                self._recent = deque(maxlen=block.until.of if block.until else 1)
                for session, trial in _sessions(block):
                    if self._reached(block):
                        break  # the rest of this block repetition is skipped
                    if trial == 1:
                        began = began | {"session"}
                    yield Position(block, session, trial, began | {"trial"})
                    began = set()

    def _reached(self, block: BlockSpec) -> bool:
        until = block.until
        return until is not None and sum(outcome in until.outcomes for outcome in self._recent) >= until.count


def _sessions(block: BlockSpec) -> Iterator[tuple[int, int]]:
    """Yield session and trial of one repetition of a block, both from 1."""
    for session in range(1, block.sessions + 1):
        for trial in range(1, block.trials + 1):
            yield session, trial
