"""Lives as an adversary imagines them: each draw may have any possible outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any, NamedTuple, Self, TypeVar

from cheesebench.interfaces import TaskEvent, View
from cheesebench.paradigms.arena.audit.relevance import Relevance
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import NEVER, Program, Rule, names_in
from cheesebench.paradigms.arena.schedule import Row, Schedule, Stream, as_sets, dealt
from cheesebench.protocol.documents import Scope
from cheesebench.protocol.expressions import RuntimeValue
from cheesebench.protocol.specification import DrawSpec

# -- lives whose draws are hypotheses


#: Name (an empty string) of the pseudo-measure that grades success from 0 to 1.
GRADED = ""

T = TypeVar("T")


class Script(Stream):
    """A random stream whose choices can be prescribed. Each choice has alternatives
    with probabilities, and a script says which alternative is taken.

    After the end of the script, the likeliest alternative is taken. ``happens`` and
    ``below`` are choices, too.
    """

    def __init__(self) -> None:
        self.written: list[int] = []
        self.taken: list[tuple[int, Sequence[float]]] = []
        #: Whether choices are left out, because they do not matter.
        self.is_mute = False
        #: Whether one heading stands for all possible ones when the subject is placed.
        self.faces_alike = False

    def choose(self, chances: Sequence[float]) -> int:
        """Return the number of the alternative that is taken."""
        number = len(self.taken)
        likeliest = max(range(len(chances)), key=chances.__getitem__)
        if self.is_mute:
            return likeliest
        choice = self.written[number] if number < len(self.written) else likeliest
        self.taken.append((choice, chances))
        return choice

    def below(self, n: int, key: str) -> int:
        return 0 if self.is_mute else self.choose((1 / n,) * n)

    def happens(self, p: float, key: str) -> bool:
        """Return whether an event of probability ``p`` happens. If ``p`` is 0 or 1,
        this is not a choice.
        """
        if p >= 1 or not p > 0:
            return p >= 1
        return self.choose((p, 1 - p)) == 0

    def all_of(self, do: Callable[[], T]) -> Iterator[tuple[float, T]]:
        """Run ``do`` once for each combination of the choices that it makes. Yield the
        probability and the result of each run.

        ``do`` must start from the same situation every time. The first run takes the
        likeliest choices.
        """
        done: set[tuple[int, ...]] = set()
        pending: list[tuple[int, ...]] = [()]
        while pending:
            prefix = pending.pop()
            self.written, self.taken = list(prefix), []
            result = do()
            taken, self.written = self.taken, []
            choices = tuple(choice for choice, _ in taken)
            assert choices not in done
            done.add(choices)
            for number in range(len(taken) - 1, len(prefix) - 1, -1):
                choice, chances = taken[number]
                pending += [
                    (*choices[:number], other)
                    for other, p in enumerate(chances)
                    if other != choice and p > 0
                ]
            yield math.prod(chances[choice] for choice, chances in taken), result


class OpenSequence:
    """The possible rows of a draw: like ``DrawSequence``, but the script makes the
    random choices.
    """

    def __init__(self, spec: DrawSpec, script: Script) -> None:
        self._spec, self._script = spec, script
        self.count = 0
        self._row: Row | None = None
        self._left: tuple[int, ...] = ()
        self._run: tuple[RuntimeValue, ...] = ()
        if spec.pick is None or spec.sample is not None:
            self.rows: Sequence[Row] = spec.rows
        else:
            self.rows = [
                as_sets(subset) for subset in combinations(spec.rows, spec.pick)
            ]

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def next(self, dealt: Sequence[RuntimeValue] = (), subject: int = 0) -> Row:
        """Draw the next row. ``dealt`` holds the members from which a draw with
        ``sample`` takes its values.
        """
        rows, order = self.rows, self._spec.order
        if self._spec.sample is not None:
            if self._spec.pick is None:
                rows = list(permutations(dealt, len(self._spec.columns)))
            else:
                rows = [
                    as_sets([(member,) for member in few])
                    for few in combinations(dealt, self._spec.pick)
                ]
            self.count += 1
            return rows[self._script.choose((1 / len(rows),) * len(rows))]
        if order == "by_subject":
            row = self._row = (
                rows[subject % len(rows)] if self._row is None else self._row
            )
        elif order == "cycle":
            row = rows[self.count % len(rows)]
        else:
            chances = self._shuffled() if order == "shuffle" else self._independent()
            choice = self._script.choose(chances) if len(rows) > 1 else 0
            row = rows[choice]
            if order == "shuffle":
                self._left = (
                    *self._left[:choice],
                    self._left[choice] - 1,
                    *self._left[choice + 1 :],
                )
        self.count += 1
        if self._spec.max_run:
            self._run = (*self._run, row[0])[-self._spec.max_run :]
        return row

    def once(self) -> Row:
        """Return a row of a draw whose rows do not depend on each other."""
        return self.rows[self._script.choose((1 / len(self.rows),) * len(self.rows))]

    def _independent(self) -> Sequence[float]:
        allowed = [not self._too_long(row) for row in self.rows]
        return [is_allowed / sum(allowed) for is_allowed in allowed]

    def _too_long(self, row: Row) -> bool:
        longest = self._spec.max_run
        return (
            longest is not None
            and len(self._run) == longest
            and {*self._run} == {row[0]}
        )

    def _shuffled(self) -> Sequence[float]:
        """Return the chance of each row to be next: the share of the remaining
        permutations that begin with it.
        """
        rows = self.rows
        if self.count % (len(rows) * self._spec.copies) == 0:
            self._left = (self._spec.copies,) * len(rows)
        firsts = tuple(row[0] for row in rows)
        run = next(
            (
                n
                for n, value in enumerate(reversed(self._run))
                if value != self._run[-1]
            ),
            len(self._run),
        )
        weights = [
            float(often)
            * _ways(firsts, _without(self._left, n), row[0], *self._after(row, run))
            if often and not self._too_long(row)
            else 0.0
            for n, (row, often) in enumerate(zip(rows, self._left, strict=True))
        ]
        # If no permutation satisfies `max_run`, the draw builds its order in another
        # way, and any remaining row may come next.
        return (
            [w / sum(weights) for w in weights]
            if sum(weights)
            else [n / sum(self._left) for n in self._left]
        )

    def _after(self, row: Row, run: int) -> tuple[int, int | None]:
        same = bool(self._run) and self._run[-1] == row[0]
        return (run + 1 if same else 1), self._spec.max_run

    def key(self) -> Hashable:
        """Return a key of everything that the next rows depend on."""
        order = self._spec.order
        if order == "shuffle":
            size = len(self.rows) * self._spec.copies
            return self.count % size, self._left, self._run, bool(self.count)
        return (
            (self.count % len(self.rows) if order == "cycle" else 0),
            self._row,
            self._run,
            bool(self.count),
        )


def _without(left: tuple[int, ...], n: int) -> tuple[int, ...]:
    return (*left[:n], left[n] - 1, *left[n + 1 :])


@lru_cache(maxsize=100_000)
def _ways(
    firsts: tuple[RuntimeValue, ...],
    left: tuple[int, ...],
    last: RuntimeValue,
    run: int,
    most: int | None,
) -> float:
    """Return the number of permutations of the remaining rows that satisfy ``max_run``,
    after ``last`` has come ``run`` times in a row. Without a maximum, 1 stands for
    their number.
    """
    if most is None or not any(left):
        return 1.0
    total = 0.0
    for n, often in enumerate(left):
        longer = run + 1 if firsts[n] == last else 1
        if often and longer <= most:
            total += often * _ways(firsts, _without(left, n), firsts[n], longer, most)
    return total


class Hypothesis(ArenaSubject):
    """A life that a subject may be leading. Its copies can begin further trials, and do
    not affect it.
    """

    def __init__(
        self,
        program: Program,
        view: View,
        script: Script,
        relevance: Relevance,
        subject: int = 0,
    ) -> None:
        super().__init__(program, view, 0, subject)
        self._script, self._relevance = script, relevance
        self._stream = script
        self._plan = Schedule(program.specification.schedule)
        # This schedule is empty, so that nothing is recorded at the end of a trial. A
        # copy records the end when it begins the next trial.
        self._schedule = Schedule(())
        self._open = [
            (draw, OpenSequence(draw, script)) for draw in program.specification.draws
        ]
        #: ``_number`` is the subject's number, or None if it is unknown. ``_numbers``
        #: is the size of the range from which an unknown number is drawn.
        self._number = subject if relevance.subject else None
        self._numbers = math.lcm(
            *(len(one.rows) for draw, one in self._open if draw.order == "by_subject")
        )
        self._counts = [0] * len(relevance.timed_places)

    def _noting(self) -> Callable[[int], None]:
        if self._relevance.trace:
            return self._trace.entries.append
        return self._count if self._counts else _forget

    def _count(self, entry: int) -> None:
        for number, inside in enumerate(self._relevance.timed):
            self._counts[number] += inside[entry]

    def time(self, place: Any) -> int:
        if self._relevance.trace:
            return super().time(place)
        number = self._relevance.timed_places.get(tuple(names_in(place)))
        # Time is counted only in places whose time may be read.
        return 0 if number is None else self._counts[number]

    def twin(self) -> Self:
        """Return an independent copy, which may begin further trials."""
        twin = object.__new__(type(self))
        held = twin.__dict__
        held.update(self.__dict__)
        held["values"] = self.values.copy()
        if self.occupied:
            held["occupied"] = self.occupied.copy()
        if self._relevance.trace:
            trace = held["_trace"] = self._trace.copy()
            held["_note"] = trace.entries.append
        elif self._counts:
            held["_counts"] = self._counts.copy()
            held["_note"] = twin._count
        return twin

    def begin_trial(self) -> str | None:
        plan = self._plan.copy()
        if self._ended and self.outcome is not None:
            plan.note(self.noted)
        self._plan = self._schedule = plan
        self._open = [(draw, sequence.copy()) for draw, sequence in self._open]
        self._trace = type(self._trace)(self._geometry)
        self._counts = [0] * len(self._counts)
        self._note = self._noting()
        self._fired = 0
        try:
            return super().begin_trial()
        finally:
            self._schedule = _DEAF

    def _place_at_start(self, session_begins: bool) -> None:
        self._script.is_mute = self._relevance.placed_on_entry
        super()._place_at_start(session_begins)
        self._script.is_mute = False

    def _facing(self, key: str) -> int:
        script = self._script
        was_mute, script.is_mute = script.is_mute, script.is_mute or script.faces_alike
        heading = super()._facing(key)
        script.is_mute = was_mute
        return heading

    def _enter(self, name: str) -> float:
        for draw, sequence in self._open:
            if (
                draw.name in self._relevance.late[self.block].get(name, ())
                and self.values[draw.columns[0]] is None
            ):
                self.values.update(zip(draw.columns, sequence.once(), strict=True))
        was_mute, self._script.is_mute = (
            self._script.is_mute,
            name in self._relevance.stuck,
        )
        reward = super()._enter(name)
        self._script.is_mute = was_mute
        return reward

    def _draw_rows(self, began: set[Scope]) -> None:
        late = {
            name
            for names in self._relevance.late[self.block].values()
            for name in names
        }
        for draw, sequence in self._open:
            if draw.name in late:
                self.values.update(dict.fromkeys(draw.columns))
            elif draw.per in began:
                keep_if = self._program.keep_if.get(draw.name)
                if not (sequence.count and keep_if is not None and keep_if(self)):
                    members = dealt(draw, self._geometry.arena.groups, self.values)
                    if draw.order == "by_subject" and self._number is None:
                        self._number = self._script.below(self._numbers, "subject")
                    self._script.is_mute = (
                        draw.name in self._relevance.unread[self.block]
                    )
                    row = sequence.next(members, self._number or 0)
                    self.values.update(zip(draw.columns, row, strict=True))
                    self._script.is_mute = False

    def drawn_later(self) -> tuple[int, ...]:
        """Return the number of rows of each draw that is made later in this trial."""
        late = self._relevance.late[self.block].values()
        names = {name for names in late for name in names}
        return tuple(
            [len(rows.rows) for draw, rows in self._open if draw.name in names]
        )

    def _fire(self, rule: Rule) -> float:
        self._fired += 1
        return self._apply(rule.effects, "place")

    def _test_finish(self) -> float:
        reward = super()._test_finish()
        self._events = []
        return reward

    @property
    def happenings(self) -> int:
        return self._fired

    @property
    def events(self) -> Sequence[TaskEvent]:
        return ()

    def can_branch(self, action: int) -> bool:
        """Return whether the next step may depend on chance."""
        mask, by_itself = self._relevance.chance[self.state]
        return bool(
            self._bits[self._pose + action] & mask
            or (by_itself and self.steps + 1 >= self._wake)
        )

    @property
    def named(self) -> dict[str, RuntimeValue]:
        """The values of the variables that matter."""
        return {
            name: self.values[name]
            for name in self._relevance.variables
            if name in self.values
        }

    @property
    def kind(self) -> int:
        """A number that stands for the draws, and for all else that stays fixed and
        still matters in this trial.
        """
        return self._relevance.tabulated(self)

    @property
    def matters(self) -> Hashable:
        """Everything that the rest of the trial, and what it passes on to later trials,
        depend on, except the pose, the clocks and the step limit.
        """
        return (
            self.state,
            self.kind,
            self._relevance.live(self),
            *self.occupied.values(),
            *self._counts,
            *self._told,
        )

    @property
    def shared(self) -> Hashable:
        """``matters`` without the draws (``kind``)."""
        return (
            self.state,
            self._relevance.live(self),
            *self.occupied.values(),
            *self._counts,
            *self._told,
        )

    @property
    def due(self) -> int:
        """Steps until a clock of the state fires (without a clock, more than any trial
        has), or 0 if something may happen in every step.
        """
        state = self._current
        if state.busy:
            return 0
        durations = [
            math.ceil(max(timer(self), 0))
            for timer in state.timers
            if math.isfinite(timer(self))
        ]
        due: int = min(state.due, *durations, NEVER)
        return self._entered + due - self.steps

    @property
    def entered(self) -> int:
        """The step in which the state was entered."""
        return self._entered

    def clocks(self, ahead: int) -> tuple[int, int]:
        """Return the steps since the state was entered, and the steps of the trial,
        after ``ahead`` further steps without an event. Each is 0 if nothing depends on
        it.
        """
        steps = self.steps + ahead
        return (
            steps - self._entered if self._current.timed else 0,
            steps if self._relevance.clock else 0,
        )

    def quietly(self, pose: int, ahead: int, action: int) -> int | None:
        """Return the next pose if the step that follows ``ahead`` quiet steps has no
        event. Return None if it has one, or leads to a place where time counts.
        """
        if (
            self._bits[pose + action] & self._listen
            or self.steps + ahead + 1 >= self._wake
        ):
            return None
        there = self._moves[pose + action]
        return None if self._counts and self._relevance.counts_at(there) else there

    def seen_from(self, pose: int) -> tuple[str, float, bool]:
        """Return observation, reward and whether the subject waits, after a quiet step
        to a pose.
        """
        return (
            self._frames[pose >> 2] or self._gallery.draw(self._look, pose),
            self._pay,
            self.waiting,
        )

    def further(self, pose: int, ahead: int) -> Self:
        """Return a copy at a pose, ``ahead`` steps later, with no event since."""
        twin = self.twin()
        twin._pose, twin.steps = pose, twin.steps + ahead
        return twin

    def shorten(self, limit: int) -> None:
        """Reduce the limit of the trial."""
        self._limit, self._wake = limit, min(self._wake, limit)

    def at(self, steps: int, limit: int) -> Self:
        """Return a copy that has taken ``steps`` steps and has this limit. The clocks
        of states keep their values.
        """
        twin = self.twin()
        twin._entered += steps - twin.steps
        twin.steps, twin._limit = steps, limit
        twin._look_around()
        return twin

    @property
    def stage(self) -> Hashable:
        """The state, and the parts of the date (block, session and trial) that rules
        read. The date matters, because in some blocks no trial can succeed.
        """
        return self.state, *[getattr(self, name) for name in self._relevance.dates]

    def beginning(self) -> tuple[Schedule, Hashable]:
        """Return the schedule as it is once the next trial has begun, and a key of
        everything that the beginning of the trial depends on. The key is None if the
        schedule is over.
        """
        plan = self._plan.copy()
        if self._ended and self.outcome is not None:
            plan.note(self.noted)
        position = plan.next()
        if position is None:
            return plan, None
        numbers = (
            (position.session, position.trial)
            if {"session", "trial"} & {*self._relevance.dates}
            else ()
        )
        began = position.block.name, frozenset(position.began), numbers
        recent = self.last if self._relevance.last else None
        return plan, (
            began,
            self.history.key[1],
            self.kept(),
            self.held(),
            recent,
            self.whereabouts,
        )

    @property
    def whereabouts(self) -> Hashable:
        """Pose and state at the end of a trial, as far as the next trial may depend on
        them.
        """
        return (
            (self._pose, self.state, *self.occupied.values())
            if self._relevance.carry
            else None
        )

    @property
    def history(self) -> History:
        """What stays the same for the whole trial: the schedule and the draws."""
        plan, sequences = self._plan, tuple([sequence for _, sequence in self._open])
        return History(
            plan,
            sequences,
            (plan.key(), tuple([sequence.key() for sequence in sequences])),
        )

    def resting(self, history: History, held: tuple[RuntimeValue, ...]) -> Self:
        """Return a copy after its trial, with this history and these values of
        ``Relevance.held``.
        """
        twin = self.twin()
        twin.values.update(zip(self._relevance.held, held, strict=True))
        twin._plan = history.plan
        twin._open = [
            (draw, sequence)
            for (draw, _), sequence in zip(self._open, history.sequences, strict=True)
        ]
        return twin

    @property
    def worth(self) -> float:
        """The score of the ended trial from 0 to 1: 1 for a success, or the value of
        the graded pseudo-measure. A value out of range scores 1. A missing value scores
        1, too, or NaN if trials without a value have a neutral grade.
        """
        if self._program.success is None or GRADED not in self._program.measures:
            return float(self.is_success())
        worth = float(self._program.success(self))
        if self._relevance.neutral is not None and not math.isfinite(worth):
            return math.nan
        return worth if 0 <= worth <= 1 else 1.0

    def unhurried(self) -> Self:
        """Remove the step limit from this life's trial, and return the life. The caller
        counts the steps.
        """
        self._limit = NEVER
        self._look_around()
        return self

    def kept(self) -> Hashable:
        """Return the values that later trials depend on and this trial may change."""
        return *[self.values.get(name) for name in self._relevance.kept], *self._told

    def held(self) -> tuple[RuntimeValue, ...]:
        """Return the values that later trials depend on but this trial cannot
        change.
        """
        return tuple([self.values.get(name) for name in self._relevance.held])

    @property
    def _told(self) -> tuple[tuple[bool, ...], ...]:
        """The histories that `recent()` reads, or nothing if they do not matter."""
        return self._past if self._relevance.past else ()


class History(NamedTuple):
    """The schedule and the draws of a life, which stay the same through a trial.
    ``key`` identifies them.
    """

    plan: Schedule
    sequences: tuple[OpenSequence, ...]
    key: tuple[Hashable, Hashable]


_DEAF = Schedule(())


def _forget(_: int) -> None:
    """Ignore a step, because no place is timed."""
