"""A set and a mapping of subjects' numbers that take a few bytes for each: a cell may have a million subjects."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSet

#: Marks a number without a count.
_NONE = -1


class NumberSet(MutableSet[int]):
    """A set of small whole numbers: one byte for each up to the largest."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._marks = bytearray()
        self._count = 0
        for number in numbers:
            self.add(number)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and 0 <= number < len(self._marks) and bool(self._marks[number])

    def __iter__(self) -> Iterator[int]:
        at = self._marks.find(1)
        while at >= 0:
            yield at
            at = self._marks.find(1, at + 1)

    def __len__(self) -> int:
        return self._count

    def add(self, value: int) -> None:
        """Add a number."""
        if value >= len(self._marks):
            self._marks.extend(bytes(value + 1 - len(self._marks)))
        self._count += not self._marks[value]
        self._marks[value] = 1

    def discard(self, value: int) -> None:
        """Remove a number if it is there."""
        if value in self:
            self._marks[value] = 0
            self._count -= 1


class NumberCounts(MutableMapping[int, int]):
    """Counts (from 0) by small whole numbers: eight bytes for each up to the largest. ``total`` is their sum."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._counts = array("q")
        self._known = 0
        self.total = 0
        self.update(counts or {})

    def __getitem__(self, number: int) -> int:
        if 0 <= number < len(self._counts) and (found := self._counts[number]) != _NONE:
            return found
        raise KeyError(number)

    def __setitem__(self, number: int, count: int) -> None:
        if number >= len(self._counts):
            self._counts.extend([_NONE] * (number + 1 - len(self._counts)))
        before = self._counts[number]
        self._known += before == _NONE
        self.total += count - max(before, 0)
        self._counts[number] = count

    def __delitem__(self, number: int) -> None:
        self.total -= self[number]
        self._known -= 1
        self._counts[number] = _NONE

    def __iter__(self) -> Iterator[int]:
        return (number for number, count in enumerate(self._counts) if count != _NONE)

    def __len__(self) -> int:
        return self._known
