"""The compact set and mapping behave as Python's own do."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.experiment.numbered import NumberCounts, NumberSet

NUMBERS = st.integers(0, 40)
STEPS = st.lists(st.tuples(st.booleans(), NUMBERS, st.integers(0, 9)))


@given(STEPS)
def test_a_set(steps: list[tuple[bool, int, int]]) -> None:
    ours, known = NumberSet(), set[int]()
    for adds, number, _ in steps:
        (ours.add if adds else ours.discard)(number)
        (known.add if adds else known.discard)(number)
        assert list(ours) == sorted(known)
        assert len(ours) == len(known)
        assert bool(ours) is bool(known)
        assert [number in ours for number in (*range(45), -1)] == [number in known for number in (*range(45), -1)]


@given(STEPS)
def test_counts(steps: list[tuple[bool, int, int]]) -> None:
    ours, known = NumberCounts(), dict[int, int]()
    for adds, number, count in steps:
        if adds:
            ours[number] = known[number] = count
        else:
            assert ours.pop(number, None) == known.pop(number, None)
        assert dict(ours) == known
        assert list(ours) == sorted(known)
        assert (len(ours), ours.total) == (len(known), sum(known.values()))
    with pytest.raises(KeyError):
        ours[1000]
    assert dict(NumberCounts(known)) == known


def test_a_million_subjects_are_few_bytes() -> None:
    million = range(1_000_000)
    ended, trials = NumberSet(million), NumberCounts(dict.fromkeys(million, 40))
    assert sys.getsizeof(ended._marks) < 2_000_000
    assert sys.getsizeof(trials._counts) < 17_000_000
