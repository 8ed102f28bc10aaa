"""Computes the next trial of a subject (language page, clause 1), its draws (clause 3),
and their random numbers.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from cheesebench.protocol.documents import Scope
from cheesebench.protocol.expressions import RuntimeValue
from cheesebench.protocol.specification import BlockSpec, DrawSpec, UntilSpec

T = TypeVar("T")

Noted = tuple[str | None, str | None]
"""What the ``until`` of a block and the ``until`` of its ``repeat`` need to know about
the end of a trial: the outcome, or whether a condition held.
"""


class Position(NamedTuple):
    """A trial's place in the schedule. Sessions are counted from 1 in each repetition
    of a block, and trials from 1 in each session.
    """

    block: BlockSpec
    session: int
    trial: int
    began: set[Scope]
    """The scopes that begin with this trial."""


class Schedule:
    """Iterates over the trials of one subject."""

    def __init__(self, blocks: Sequence[BlockSpec]) -> None:
        self._blocks = blocks
        #: Number of planned trials, or 0 if the number depends on outcomes.
        self._planned = (
            0
            if any(block.criteria for block in blocks)
            else sum(block.planned for block in blocks)
        )
        self._begin({"subject"})

    def _begin(self, began: set[Scope]) -> None:
        #: ``_block`` and ``_repetition`` are the indices of the block and of its
        #: repetition. ``_number`` is the number of trials in this repetition so far
        #: (None before it begins).
        self._block, self._repetition = 0, 0
        self._number: int | None = None
        self._began = began
        self._trials = 0
        self._open_block()
        self._recent: deque[str | None] = deque(maxlen=1)

    def _open_block(self) -> None:
        #: ``_total`` is the number of trials in all repetitions of the block so far.
        #: ``_ended`` has the end of each of the last repetitions, as many as the
        #: block's condition counts.
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
                began: set[Scope] = self._began | (
                    {"session", "trial"} if trial == 0 else {"trial"}
                )
                self._began = set()
                return Position(block, session + 1, trial + 1, began)
            # This repetition is over, or the rest of it is skipped.
            self._number = None
            self._repetition += 1
            if block.ends is not None:
                self._ended = (*self._ended, self._last)[-block.ends.of :]
                self._last = None
            if (
                self._repetition == block.repeat
                or is_spent
                or _met(block.ends, self._ended)
            ):
                self._block, self._repetition = self._block + 1, 0
                self._open_block()
        return None

    def note(self, noted: Noted) -> None:
        self._recent.append(noted[0])
        self._last = noted[1]

    def repeat(self) -> None:
        self._begin(set())

    def copy(self) -> Schedule:
        other = copy.copy(self)
        other._recent = self._recent.copy()
        return other

    @property
    def over(self) -> bool:
        """Whether the latest trial was the last one. In a block with ``until`` this is
        known only when the trial has ended.
        """
        return (
            self._trials == self._planned
            if self._planned
            else self.copy().next() is None
        )

    @property
    def left(self) -> int:
        """Number of trials planned after this one. ``until`` may skip some of them."""
        rest = sum(block.planned for block in self._blocks[self._block + 1 :])
        if self._block == len(self._blocks):
            return 0
        block = self._blocks[self._block]
        each = block.sessions * block.trials
        planned = (block.repeat - self._repetition) * each - (self._number or 0)
        return rest + (
            planned if block.most is None else min(planned, block.most - self._total)
        )

    @property
    def block(self) -> str:
        return self._blocks[self._block].name

    @property
    def counts_outcomes(self) -> bool:
        """Whether the length of the present block depends on how its trials end."""
        return self._block < len(self._blocks) and bool(
            self._blocks[self._block].criteria
        )

    def key(self) -> Hashable:
        """Return everything on which the rest of the schedule depends, at the beginning
        of a trial.
        """
        place = self._block, self._repetition, self._number
        if self._block == len(self._blocks):
            return place
        block = self._blocks[self._block]
        recent = (
            block.until.still_counts(self._recent) if block.until is not None else ()
        )
        ended = block.ends.still_counts(self._ended) if block.ends is not None else ()
        return *place, recent, ended, self._total if block.most is not None else 0


def _met(until: UntilSpec | None, noted: Iterable[str | None]) -> bool:
    return until is not None and until.met(noted)


#: Maximum number of attempts at a random permutation that satisfies ``max_run``.
MAX_ATTEMPTS = 100

Row = tuple[RuntimeValue, ...]


#: Names and orders of draws whose keys would collide with the keys of placements. These
#: draws get other keys.
PLACINGS = {("start", "random"), ("place", "shuffle"), ("each", "shuffle")}


class DrawSequence:
    """The rows of one draw for one subject, one after the other."""

    def __init__(self, spec: DrawSpec, stream: Stream, subject: int) -> None:
        self._spec, self._stream, self._subject = spec, stream, subject
        self._name = (
            f"draw {spec.name}" if (spec.name, spec.order) in PLACINGS else spec.name
        )
        self.count = 0
        self._block: list[Row] = []
        self._run: list[RuntimeValue] = []

    def next(self, dealt: Sequence[RuntimeValue] = ()) -> Row:
        """Draw the next row. ``dealt`` holds the members from which a draw with
        ``sample`` takes its values.
        """
        spec, count = self._spec, self.count
        if spec.sample is not None:
            self.count += 1
            shuffled = self._stream.shuffled(dealt, f"{self._name}|{count}")
            if spec.pick is not None:
                return as_sets([(member,) for member in shuffled[: spec.pick]])
            return tuple(shuffled[: len(spec.columns)])
        rows = self._rows()
        if spec.order == "by_subject":
            row = rows[self._subject % len(rows)]
        elif spec.order == "balanced":
            row = self._balanced(rows)
        elif spec.order == "cycle":
            row = rows[count % len(rows)]
        elif spec.order == "shuffle":
            row = self._shuffled(rows)
        else:
            row = self._independent(rows)
        self.count += 1
        if spec.max_run:
            self._run = [*self._run, row[0]][-spec.max_run :]
        return row

    def _rows(self) -> Sequence[Row]:
        spec = self._spec
        if spec.pick is None or spec.order == "random":
            return spec.rows
        return [
            as_sets(subset) for subset in itertools.combinations(spec.rows, spec.pick)
        ]

    def _balanced(self, rows: Sequence[Row]) -> Row:
        """Return the subject's row. Each cycle of as many subjects as there are rows
        gets every row once, in an order that depends on the run's seed.
        """
        cycle, place = divmod(self._subject, len(rows))
        key = f"{self._spec.name}|{self.count}|{cycle}"
        return self._stream.of_all_subjects().shuffled(rows, key)[place]

    def _independent(self, rows: Sequence[Row]) -> Row:
        key = f"{self._name}|{self.count}"
        if self._spec.pick is not None:
            subset = sorted(
                self._stream.shuffled(range(len(rows)), key)[: self._spec.pick]
            )
            return as_sets([rows[index] for index in subset])
        if self._spec.max_run:
            rows = [row for row in rows if not self._too_long([*self._run, row[0]])]
        return rows[self._stream.below(len(rows), key)]

    def _shuffled(self, rows: Sequence[Row]) -> Row:
        size = len(rows) * self._spec.copies
        if self.count % size == 0:
            self._block = self._permuted_block(
                [row for row in rows for _ in range(self._spec.copies)]
            )
        return self._block[self.count % size]

    def _permuted_block(self, items: list[Row]) -> list[Row]:
        """Return a permutation that satisfies ``max_run``, also across blocks.

        Each such permutation is equally likely. But if ``MAX_ATTEMPTS`` random ones
        fail, one is constructed step by step instead.
        """
        for attempt in range(MAX_ATTEMPTS):
            block = self._stream.shuffled(items, f"{self._name}|{self.count}|{attempt}")
            if not self._too_long([*self._run, *(row[0] for row in block)]):
                return block
        return self._composed_block(items)

    def _composed_block(self, items: list[Row]) -> list[Row]:
        """Construct a permutation that satisfies ``max_run``. Each row is the first of
        the shuffled ones after which the remaining rows can still be ordered.
        """
        left = self._stream.shuffled(items, f"{self._name}|{self.count}|composed")
        block: list[Row] = []
        while left:
            run = [*self._run, *(row[0] for row in block)]
            place = next(
                n
                for n, row in enumerate(left)
                if self._can_go_on([*run, row[0]], left[:n] + left[n + 1 :])
            )
            block.append(left.pop(place))
        return block

    def _can_go_on(self, values: Sequence[RuntimeValue], left: Sequence[Row]) -> bool:
        """Return whether the last run is short enough, and the remaining rows can be
        ordered so that no run is too long: there must be enough other rows to separate
        equal ones.
        """
        longest = self._spec.max_run or len(values) + len(left)
        last, length = (
            values[-1],
            len(
                list(
                    itertools.takewhile(
                        lambda value: value == values[-1], reversed(values)
                    )
                )
            ),
        )
        return length <= longest and all(
            often
            <= (len(left) - often) * longest
            + (longest - length if value == last else longest)
            for value, often in Counter(row[0] for row in left).items()
        )

    def _too_long(self, values: Sequence[RuntimeValue]) -> bool:
        longest = self._spec.max_run
        return longest is not None and any(
            len(list(run)) > longest for _, run in itertools.groupby(values)
        )


def dealt(
    spec: DrawSpec, groups: Mapping[str, Sequence[str]], values: Mapping[str, Any]
) -> Sequence[RuntimeValue]:
    """Return the members from which a draw with ``sample`` takes its values: a group,
    or a set drawn before. Other draws have none.
    """
    if spec.sample is None:
        return ()
    return groups.get(spec.sample) or sorted(values[spec.sample], key=str)


def as_sets(rows: Sequence[Row]) -> Row:
    """Return, for each column, the set of its values in these rows, without None."""
    return tuple(
        frozenset(v for v in column if v is not None)
        for column in zip(*rows, strict=True)
    )


#: Replaces the subject's number in the stream that all subjects share.
ALL_SUBJECTS = "all"


class Stream:
    """All random numbers of one subject's environment, addressed by keys (language
    page, clause 3).

    A number depends neither on the order of the draws nor on the process, and is the
    same in every version of Python.
    """

    def __init__(self, seed: int, protocol: str, subject: int | str) -> None:
        self._seed, self._protocol = seed, protocol
        self._base = hashlib.blake2b(
            f"{seed}|{protocol}|{subject}|".encode(), digest_size=8
        )

    def of_all_subjects(self) -> Stream:
        return Stream(self._seed, self._protocol, ALL_SUBJECTS)

    def bits(self, key: str) -> int:
        """Return a uniform 64-bit number."""
        state = self._base.copy()
        state.update(key.encode())
        return int.from_bytes(state.digest(), "big")

    def below(self, n: int, key: str) -> int:
        """Return a uniform number from 0 to n - 1 (the bias is below n / 2**64)."""
        return self.bits(key) * n >> 64

    def uniform(self, key: str) -> float:
        """Return a uniform number in [0, 1) with 53 bits."""
        return (self.bits(key) >> 11) / (1 << 53)

    def happens(self, p: float, key: str) -> bool:
        return self.uniform(key) < p

    def shuffled(self, items: Sequence[T], key: str) -> list[T]:
        """Return a uniformly random permutation (Fisher-Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1, f"{key}|{last}")
            result[last], result[other] = result[other], result[last]
        return result


class AlternativeStream(Stream):
    """The same stream, except for the numbers that decide `p`."""

    def __init__(self, stream: Stream, number: int) -> None:
        self._seed, self._protocol, self._base, self._number = (
            stream._seed,
            stream._protocol,
            stream._base,
            number,
        )

    def uniform(self, key: str) -> float:
        return super().uniform(f"luck {self._number}|{key}")
