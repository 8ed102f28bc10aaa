"""Counter-based random numbers: a hash of the seed and a key that names their purpose, without global state.

A number does not depend on which other numbers were drawn before it, in which order or in which process, and it is the
same in every version of Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: Replaces the subject's number in the stream that all subjects share.
ALL_SUBJECTS = "all"


class Stream:
    """All random numbers of one subject, addressed by keys (language page, clause 3)."""

    def __init__(self, seed: int, protocol: str, subject: int | str) -> None:
        self._seed, self._protocol = seed, protocol
        self._base = hashlib.blake2b(f"{seed}|{protocol}|{subject}|".encode(), digest_size=8)

    def of_all_subjects(self) -> Stream:
        """Return the stream that all subjects of the run share."""
        return Stream(self._seed, self._protocol, ALL_SUBJECTS)

    def bits(self, key: str) -> int:
        """Return a uniform 64-bit number for a key."""
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
        """Return whether something of probability ``p`` happens."""
        return self.uniform(key) < p

    def shuffled(self, items: Sequence[T], key: str) -> list[T]:
        """Return a uniform permutation (Fisher and Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1, f"{key}|{last}")
            result[last], result[other] = result[other], result[last]
        return result


class AlternativeStream(Stream):
    """The same stream except for the numbers that decide `p`, which are different."""

    def __init__(self, stream: Stream, number: int) -> None:
        self._seed, self._protocol, self._base, self._number = stream._seed, stream._protocol, stream._base, number

    def uniform(self, key: str) -> float:
        """Return a uniform number in [0, 1) that the life itself does not have."""
        return super().uniform(f"luck {self._number}|{key}")
