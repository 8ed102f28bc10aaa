"""The schedule of a subject (language page, clause 1): block, repeat, session, trial."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Hashable, Sequence
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
    """Iterates over the trials of one subject."""

    def __init__(self, blocks: Sequence[BlockSpec]) -> None:
        self._blocks = blocks
        self._begin({"subject"})

    def _begin(self, began: set[Scope]) -> None:
        #: Block, its repetition, and the trials of it so far (None: it has not begun).
        self._block, self._repetition = 0, 0
        self._number: int | None = None
        self._began = began
        self._recent: deque[str | None] = deque(maxlen=1)

    def next(self) -> Position | None:
        """Return the next trial, or None at the end of the schedule."""
        while self._block < len(self._blocks):
            block = self._blocks[self._block]
            if self._number is None:
                self._number = 0
                self._began = self._began | {"block"}
                self._recent = deque(maxlen=block.until.of if block.until else 1)
            if self._number < block.sessions * block.trials and not self._reached(block):
                session, trial = divmod(self._number, block.trials)
                self._number += 1
                began: set[Scope] = self._began | ({"session", "trial"} if trial == 0 else {"trial"})
                self._began = set()
                return Position(block, session + 1, trial + 1, began)
            # This repetition is over; with ``until``, the rest of it is skipped.
            self._number = None
            self._repetition += 1
            if self._repetition == block.repeat:
                self._block, self._repetition = self._block + 1, 0
        return None

    def note(self, outcome: str | None) -> None:
        """Record how the trial ended, for ``until``: its outcome, or whether it met a condition."""
        self._recent.append(outcome)

    def repeat(self) -> None:
        """Restart the schedule for the same subject."""
        self._begin(set())

    def copy(self) -> Schedule:
        """Return an independent copy at the same trial."""
        other = copy.copy(self)
        other._recent = self._recent.copy()
        return other

    @property
    def left(self) -> int:
        """Trials that are planned after this one; fewer where a block has ``until``."""
        rest = sum(block.repeat * block.sessions * block.trials for block in self._blocks[self._block + 1 :])
        if self._block == len(self._blocks):
            return 0
        block = self._blocks[self._block]
        each = block.sessions * block.trials
        return rest + (block.repeat - self._repetition) * each - (self._number or 0)

    @property
    def block(self) -> str:
        """Name of the block of the latest trial."""
        return self._blocks[self._block].name

    @property
    def counts_outcomes(self) -> bool:
        """Whether the rest of the schedule depends on how trials end."""
        return self._block < len(self._blocks) and self._blocks[self._block].until is not None

    def key(self) -> Hashable:
        """Return what the rest of the schedule depends on."""
        return self._block, self._repetition, self._number, tuple(self._recent) if self.counts_outcomes else ()

    def _reached(self, block: BlockSpec) -> bool:
        until = block.until
        return until is not None and sum(outcome in until.outcomes for outcome in self._recent) >= until.count
