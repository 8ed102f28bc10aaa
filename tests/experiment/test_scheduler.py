"""The scheduler alone, without event loop, log or process. Random sessions check its
promises.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.experiment.scheduler import (
    CAUTION,
    Admission,
    CellSchedule,
    Queue,
    SubjectState,
)
from cheesebench.records import sets_until


def cell(
    subjects: int,
    trials: int = 3,
    most_calls: int = 0,
    *,
    sequential: bool = False,
    asks_model: bool = False,
    name: str = "c",
) -> CellSchedule:
    """A cell that begins with an empty log."""
    key = ("model", name, "view", "")
    found = CellSchedule(key, subjects, trials, most_calls, asks_model, sequential)
    first = next(iter(sets_until(subjects))) if sequential else subjects
    found.begin({}, first, first)
    return found


@dataclass
class Session:
    """A driver without real jobs: a random draw decides when each
    started subject ends.
    """

    queue: Queue
    cells: list[CellSchedule]
    #: Number of subjects with which each cell is decided.
    decided_at: dict[CellSchedule, int]
    draw: random.Random
    running: list[tuple[CellSchedule, int]] = field(default_factory=list)
    started: list[tuple[CellSchedule, int]] = field(default_factory=list)

    def run(self) -> None:
        for one in self.cells:
            self.go_on(one)
        while self.running:
            self.check()
            self.end(self.running.pop(self.draw.randrange(len(self.running))))
        self.check()

    def end(self, which: tuple[CellSchedule, int]) -> None:
        one, subject = which
        late = one.state(subject) is SubjectState.STOPPED
        ends_set = one.end(subject)
        if not late and self.draw.random() < 0.8:
            one.set_trials(subject, one.trials)
            one.set_complete(subject)
        assert not (late and ends_set), "one that was stopped is not awaited"
        if ends_set:
            self.go_on(one)
        self.queue.end(one, subject)
        self.fill()

    def go_on(self, one: CellSchedule) -> None:
        assert not one.decided, "a cell is decided once"
        while not one.due():
            following = one.following
            if one.asked >= self.decided_at[one] or following is None:
                one.decided = True
                for subject in one.ahead():
                    one.stop(subject)
                return
            one.begin_set(following, following)
        self.queue.put(one)
        self.fill()

    def fill(self) -> None:
        for found in self.queue.start():
            self.add(found)
        for found in self.queue.start_ahead():
            one, subject = found
            assert one.asked <= subject < (one.following or 0), "of the next set"
            assert not any(
                other.state(s) is SubjectState.QUEUED
                for other in self.cells
                for s in other.due()
            ), "what is needed comes first"
            self.add(found)

    def add(self, found: tuple[CellSchedule, int]) -> None:
        assert found not in self.started, "a subject is run once"
        assert not found[0].decided
        self.running.append(found)
        self.started.append(found)

    def check(self) -> None:
        needed = [s for one, s in self.running if not one.is_ahead(s)]
        limit = self.queue.limit
        # Subjects that ran ahead when their set began do not make others wait.
        assert len(needed) <= limit * (1 + self.queue.runs_ahead)
        assert len(self.running) <= 2 * limit
        due = Counter(one.state(s) for one in self.cells for s in one.due())
        assert len(needed) >= limit or not due[SubjectState.QUEUED], "a place is free"
        for one in self.cells:
            assert one.awaits == bool(one.due())


@given(
    st.lists(
        st.tuples(st.integers(1, 24), st.booleans(), st.booleans(), st.integers(1, 24)),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 6),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_every_subject_that_is_needed_runs_once_and_no_other(
    wanted: list[tuple[int, bool, bool, int]], limit: int, ahead: bool, seed: int
) -> None:
    cells = [
        cell(subjects, sequential=sequential, name=str(n), trials=1 + 2 * long)
        for n, (subjects, sequential, long, _) in enumerate(wanted)
    ]
    decided_at = {one: at for one, (*_, at) in zip(cells, wanted, strict=True)}
    queue = Queue(limit, runs_ahead=ahead)
    session = Session(queue, cells, decided_at, random.Random(seed))
    session.run()
    for one in cells:
        assert one.decided
        assert not one.awaits
        assert not one.due()
        ran = {subject for other, subject in session.started if other is one}
        assert set(range(one.asked)) <= ran, "all that were asked for have run"
        assert ahead or len(ran) == one.asked, "and nobody else, unless it ran ahead"
        if one.sequential:
            sets = list(sets_until(one.subjects))
            last = next((n for n in sets if n >= decided_at[one]), sets[-1])
            assert one.asked == last, "sets begin until the cell is decided"
        else:
            assert one.progress()[0] == one.done


@given(st.dictionaries(st.integers(0, 19), st.integers(0, 3)), st.data())
def test_what_the_log_has_is_not_run_again(
    complete: dict[int, int], data: st.DataObject
) -> None:
    rest = [s for s in range(20) if s not in complete]
    given_up = data.draw(
        st.sets(st.sampled_from(rest)) if rest else st.just(set[int]())
    )
    one = CellSchedule(("m", "p", "v", ""), 20, 3)
    one.begin(complete, 20, 20, given_up)
    assert set(one.due()) == set(rest) - given_up
    assert one.done == sum(complete.values())
    left = (20 - len(complete)) * 3
    assert one.progress() == (one.done, one.done + left)
    queue = Queue(100)
    queue.put(one)
    assert [s for _, s in queue.start()] == sorted(set(rest) - given_up)


def test_long_lives_of_models_begin_first_and_others_in_order() -> None:
    short, long = (
        cell(2, name=name, trials=trials, asks_model=True)
        for name, trials in (("short", 2), ("long", 9))
    )
    plain, longer = cell(1, name="plain"), cell(1, name="longer", trials=50)
    queue = Queue(9)
    for one in (plain, longer, short, long):
        queue.put(one)
    assert [(one.key[1], s) for one, s in queue.start()] == [
        ("long", 0),
        ("long", 1),
        ("short", 0),
        ("short", 1),
        ("plain", 0),
        ("longer", 0),
    ]


def test_a_subject_that_ran_ahead_is_not_started_again_when_it_is_needed() -> None:
    one = cell(14, sequential=True)
    queue = Queue(8, runs_ahead=True)
    queue.put(one)
    assert [s for _, s in queue.start()] == [0, 1, 2, 3, 4, 5]
    assert [s for _, s in queue.start_ahead()] == [6, 7]
    assert one.ahead() == [6, 7]
    assert [one.end(s) for s in range(6)] == [False] * 5 + [True]
    for s in range(6):
        queue.end(one, s)
    one.begin_set(10, 10)
    queue.put(one)
    assert [s for _, s in queue.start()] == [8, 9]
    assert one.ahead() == []
    assert [one.end(s) for s in (6, 7, 8, 9)] == [False, False, False, True]


def test_the_end_of_a_subject_counts_once() -> None:
    one = cell(2)
    queue = Queue(2)
    queue.put(one)
    assert len(list(queue.start())) == 2
    assert not one.end(0)
    assert not one.end(0)
    one.set_trials(1, 3)
    assert one.end(1), "before its last trial is written, or after"
    one.set_complete(1)
    one.set_complete(1)
    assert (one.complete, one.done, one.progress()) == (1, 3, (3, 6))


@pytest.mark.parametrize(("spent", "admitted"), [(0.5, 1), (0.002, 2)])
def test_sets_begin_side_by_side_while_the_budget_lasts(
    spent: float, admitted: int
) -> None:
    """Each cell has run one of its 18 trials, for half of the money spent."""
    assert CAUTION * (1 - 0.002) > 2 * 17 * 0.002 / 2
    cells = [
        cell(6, sequential=True, name=name, most_calls=1, asks_model=True)
        for name in "ab"
    ]
    for one in cells:
        one.set_trials(0, 1)
    admission = Admission(cells, lambda: spent)
    for one in cells:
        admission.add(one, spent / 2)
    queue, begun = Queue(100), 0
    while (found := admission.take()) is not None:
        queue.put(found)
        begun += 1
    assert begun == admitted
    for one in cells:
        one.decided = True
    assert admission.take() is None


def test_before_any_call_one_cell_begins_the_one_nearest_to_its_verdict() -> None:
    far, near = (
        cell(20, sequential=True, name=name, most_calls=calls, asks_model=True)
        for name, calls in (("far", 9), ("near", 2))
    )
    admission = Admission([far, near], lambda: 0.0)
    admission.add(far, None)
    admission.add(near, None)
    assert admission.take() is near
    Queue(9).put(near)
    assert admission.take() is None, "its cost is unknown"
