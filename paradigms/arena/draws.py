"""Draws: the row of a small table for a trial, session, block or subject (language page, clause 3)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cheesebench.paradigms.arena.streams import Stream
from cheesebench.protocol.specification import DrawSpec, RuntimeValue

#: Maximum attempts at a random permutation that respects ``max_run``.
MAX_ATTEMPTS = 100

Row = tuple[RuntimeValue, ...]


class DrawSequence:
    """The sequence of rows of one draw for one subject."""

    def __init__(self, spec: DrawSpec, stream: Stream, subject: int) -> None:
        self._spec, self._stream, self._subject = spec, stream, subject
        #: Number of draws so far.
        self.count = 0
        self._block: list[Row] = []
        self._run: list[RuntimeValue] = []

    def next(self, dealt: Sequence[RuntimeValue] = ()) -> Row:
        """Draw the next row; ``dealt`` are the members that a draw with ``sample`` assigns."""
        spec, count = self._spec, self.count
        if spec.sample is not None:
            self.count += 1
            shuffled = self._stream.shuffled(dealt, f"{spec.name}|{count}")
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
        """Return the population to draw from: the rows, or (``pick`` in a fixed order) all their subsets."""
        spec = self._spec
        if spec.pick is None or spec.order == "random":
            return spec.rows
        return [as_sets(subset) for subset in itertools.combinations(spec.rows, spec.pick)]

    def _balanced(self, rows: Sequence[Row]) -> Row:
        """Return the subject's row: rows differ within a cycle of subjects; the run's seed gives the order."""
        cycle, place = divmod(self._subject, len(rows))
        key = f"{self._spec.name}|{self.count}|{cycle}"
        return self._stream.of_all_subjects().shuffled(rows, key)[place]

    def _independent(self, rows: Sequence[Row]) -> Row:
        key = f"{self._spec.name}|{self.count}"
        if self._spec.pick is not None:
            subset = sorted(self._stream.shuffled(range(len(rows)), key)[: self._spec.pick])
            return as_sets([rows[index] for index in subset])
        if self._spec.max_run:
            rows = [row for row in rows if not self._too_long([*self._run, row[0]])]
        return rows[self._stream.below(len(rows), key)]

    def _shuffled(self, rows: Sequence[Row]) -> Row:
        size = len(rows) * self._spec.copies
        if self.count % size == 0:
            self._block = self._permuted_block([row for row in rows for _ in range(self._spec.copies)])
        return self._block[self.count % size]

    def _permuted_block(self, items: list[Row]) -> list[Row]:
        """Return a permutation that respects ``max_run``, also across blocks.

        It is uniform among those, unless hardly any permutation qualifies: then one is constructed step by step.
        """
        for attempt in range(MAX_ATTEMPTS):
            block = self._stream.shuffled(items, f"{self._spec.name}|{self.count}|{attempt}")
            if not self._too_long([*self._run, *(row[0] for row in block)]):
                return block
        return self._composed_block(items)

    def _composed_block(self, items: list[Row]) -> list[Row]:
        """Construct a permutation that respects ``max_run`` without leaving too many equal values for the end."""
        left = self._stream.shuffled(items, f"{self._spec.name}|{self.count}|composed")
        block: list[Row] = []
        while left:
            run = [*self._run, *(row[0] for row in block)]
            place = next(n for n, row in enumerate(left) if self._can_go_on([*run, row[0]], left[:n] + left[n + 1 :]))
            block.append(left.pop(place))
        return block

    def _can_go_on(self, values: Sequence[RuntimeValue], left: Sequence[Row]) -> bool:
        """Return whether the remaining rows can be ordered without too long a run: other rows separate runs."""
        longest = self._spec.max_run or len(values) + len(left)
        last, length = values[-1], len(list(itertools.takewhile(lambda value: value == values[-1], reversed(values))))
        return length <= longest and all(
            often <= (len(left) - often) * longest + (longest - length if value == last else longest)
            for value, often in Counter(row[0] for row in left).items()
        )

    def _too_long(self, values: Sequence[RuntimeValue]) -> bool:
        longest = self._spec.max_run
        return longest is not None and any(len(list(run)) > longest for _, run in itertools.groupby(values))


def dealt(spec: DrawSpec, groups: Mapping[str, Sequence[str]], values: Mapping[str, Any]) -> Sequence[RuntimeValue]:
    """Return the members that a draw with ``sample`` assigns: those of a group, or of a set drawn before."""
    if spec.sample is None:
        return ()
    return groups.get(spec.sample) or sorted(values[spec.sample], key=str)


def as_sets(rows: Sequence[Row]) -> Row:
    """Return for each column the set of what the rows have there."""
    return tuple(frozenset(v for v in column if v is not None) for column in zip(*rows, strict=True))
