"""The schedule of a subject (language page, clause 1): block, repeat, session, trial."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from cheesebench.protocol.specification import BlockSpec, UntilSpec
from cheesebench.protocol.values import Scope

Noted = tuple[str | None, str | None]
"""How a trial ended, for ``until`` of a block and of its ``repeat``: its outcome, or whether it met a condition."""


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
        #: How many trials there are; 0 where that depends on how they end.
        self._planned = 0 if any(block.criteria for block in blocks) else sum(block.planned for block in blocks)
        self._begin({"subject"})

    def _begin(self, began: set[Scope]) -> None:
        #: Block, its repetition, and the trials of it so far (None: it has not begun).
        self._block, self._repetition = 0, 0
        self._number: int | None = None
        self._began = began
        self._trials = 0
        self._open_block()
        self._recent: deque[str | None] = deque(maxlen=1)

    def _open_block(self) -> None:
        #: Trials of all repetitions of the block, and how these ended.
        self._total = 0
        self._ended: tuple[str | None, ...] = ()
        self._last: str | None = None

    def next(self) -> Position | None:
        """Return the next trial, or None at the end of the schedule."""
        while self._block < len(self._blocks):
            block = self._blocks[self._block]
            if self._number is None:
                self._number = 0
                self._began = self._began | {"block"}
                self._recent = deque(maxlen=block.until.of if block.until else 1)
            is_spent = block.most is not None and self._total >= block.most
            is_over = is_spent or _met(block.until, self._recent)
            if self._number < block.sessions * block.trials and not is_over:
                session, trial = divmod(self._number, block.trials)
                self._number, self._total = self._number + 1, self._total + 1
                self._trials += 1
                began: set[Scope] = self._began | ({"session", "trial"} if trial == 0 else {"trial"})
                self._began = set()
                return Position(block, session + 1, trial + 1, began)
            # This repetition is over; with ``until``, the rest of it is skipped.
            self._number = None
            self._repetition += 1
            if block.ends is not None:
                self._ended = (*self._ended, self._last)[-block.ends.of :]
                self._last = None
            if self._repetition == block.repeat or is_spent or _met(block.ends, self._ended):
                self._block, self._repetition = self._block + 1, 0
                self._open_block()
        return None

    def note(self, noted: Noted) -> None:
        """Record how the trial ended."""
        self._recent.append(noted[0])
        self._last = noted[1]

    def repeat(self) -> None:
        """Restart the schedule for the same subject."""
        self._begin(set())

    def copy(self) -> Schedule:
        """Return an independent copy at the same trial."""
        other = copy.copy(self)
        other._recent = self._recent.copy()
        return other

    @property
    def over(self) -> bool:
        """Whether no trial follows the latest one, as far as is known: a block with ``until`` reads how it ended."""
        return self._trials == self._planned if self._planned else self.copy().next() is None

    @property
    def left(self) -> int:
        """Trials that are planned after this one; fewer where a block has ``until``."""
        rest = sum(block.planned for block in self._blocks[self._block + 1 :])
        if self._block == len(self._blocks):
            return 0
        block = self._blocks[self._block]
        each = block.sessions * block.trials
        planned = (block.repeat - self._repetition) * each - (self._number or 0)
        return rest + (planned if block.most is None else min(planned, block.most - self._total))

    @property
    def block(self) -> str:
        """Name of the block of the latest trial."""
        return self._blocks[self._block].name

    @property
    def counts_outcomes(self) -> bool:
        """Whether the rest of the schedule depends on how trials end."""
        return self._block < len(self._blocks) and bool(self._blocks[self._block].criteria)

    def key(self) -> Hashable:
        """Return what the rest of the schedule depends on."""
        place = self._block, self._repetition, self._number
        if self._block == len(self._blocks):
            return place
        block = self._blocks[self._block]
        recent = block.until.still_counts(self._recent) if block.until is not None else ()
        ended = block.ends.still_counts(self._ended) if block.ends is not None else ()
        return *place, recent, ended, self._total if block.most is not None else 0


def _met(until: UntilSpec | None, noted: Iterable[str | None]) -> bool:
    return until is not None and until.met(noted)
