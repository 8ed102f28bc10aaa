"""The step kernel: one subject in an arena. Clause numbers in comments refer to the
language page.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cheesebench.errors import ProtocolError, StepAfterEndError
from cheesebench.interfaces import (
    FORWARD,
    HEADINGS,
    RUNNING,
    TERMINATED,
    TRUNCATED,
    Pose,
    Scene,
    TaskEvent,
    TrialResult,
    Value,
    View,
)
from cheesebench.paradigms.arena import schedule
from cheesebench.paradigms.arena.program import (
    NEVER,
    Effects,
    Finish,
    Function,
    Program,
    Rule,
    State,
    names_in,
    plain_name,
    read_place,
)
from cheesebench.paradigms.arena.scenes import Gallery, Look, LookKey, squares_of
from cheesebench.paradigms.arena.tables import Geometry, Tables
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.documents import Scope
from cheesebench.protocol.names import TIMEOUT
from cheesebench.protocol.specification import MET, BlockSpec


class Ending(NamedTuple):
    """The results at the end of a trial, as in Gymnasium's ``info`` (see
    ``TrialResult``).
    """

    outcome: str
    success: bool | None
    measures: dict[str, Value]
    counters: dict[str, int]


class ArenaSubject:
    """The environment of one subject: ``begin_trial``, then ``step`` until TERMINATED
    or TRUNCATED, for each trial.

    Compiled expressions (see ``program``) read the public attributes.
    """

    def __init__(self, program: Program, view: View, seed: int, subject: int) -> None:
        specification = program.specification
        self._program = program
        self._gallery = program.gallery(view)
        self._geometry = program.geometry
        self._stream = schedule.Stream(seed, specification.paradigm, subject)
        self._draws = [
            (draw, schedule.DrawSequence(draw, self._stream, subject))
            for draw in specification.draws
        ]
        self._schedule = schedule.Schedule(specification.schedule)
        self._trial_number = -1
        self._session_number = 0
        self._start_at = read_place(specification.start.at)
        # The values of variables, counters and columns, for expressions.
        self.values: dict[str, Any] = {}
        self.it: str | None = None
        self.last: str | None = None
        self.block = ""
        self.session = 0
        self.trial = 0
        self.subject = subject
        self.steps = 0
        self.state = ""
        self.occupied: dict[str, str | None] = {}
        self._past: tuple[tuple[bool, ...], ...] = ((),) * len(program.recents)
        self.noted: schedule.Noted = (None, None)
        # The attributes of the current trial.
        self.waiting = False
        self.outcome: str | None = None
        self._pose = 0
        self._ended = True
        #: Step, state, rule, `it` (if the rule has a target) and source of each event.
        #: TaskEvents are made from these on demand.
        self._events: list[tuple[int, str, str, str | None, str]] = []
        self._trace = Trace(self._geometry)
        self._placings = 0
        self._considered: dict[str, int] = {}
        self._limit = 0
        self._entered = 0
        self._current: State = next(iter(program.states.values()))
        self._look: Look
        # These make a step without events fast: tables, drawn observations, events with
        # rules, the next step that a timer or the limit makes a slow one, and the
        # constant reward.
        self._moves: list[int] = []
        self._bits: list[int] = []
        self._frames: list[str | None] = []
        self._listen = 0
        self._wake = 0
        self._pay = 0.0
        self._note = self._trace.entries.append

    # -- the schedule and the start of a trial

    def repeat_schedule(self) -> None:
        """Restart the schedule for the same subject, so that training can continue."""
        self._schedule.repeat()

    @property
    def life_over(self) -> bool:
        """Whether this trial is the last of the schedule. If that depends on outcomes,
        the answer is final only after the end of the trial.
        """
        return self._schedule.over

    def begin_next_trial(self) -> str:
        """Begin the next trial like ``begin_trial``, restarting the schedule at its
        end.
        """
        observation = self.begin_trial()
        if observation is None:
            self.repeat_schedule()
            observation = self.begin_trial()
        assert observation is not None
        return observation

    def begin_trial(self) -> str | None:
        """Advance the schedule and return the first observation, or None when the
        schedule is over. Raise ProtocolError for a mistake that shows only now, such as
        an invalid limit.
        """
        position = self._schedule.next()
        if position is None:
            return None
        block, self.session, self.trial, began = position
        self._trial_number += 1
        self._session_number += "session" in began
        self.block = block.name
        self.steps = self._entered = 0
        self.outcome, self.it, self._ended = None, None, False
        self._events, self._considered, self._placings = [], {}, 0
        self._trace.clear()
        self._begin_scopes(block, began)
        self._draw_rows(began)
        limit = self._program.specification.limit
        self._limit = (
            limit if isinstance(limit, int) else self._held_limit(self.values[limit])
        )
        self._place_at_start("session" in began)
        for guard, initial in self._program.entry:  # clause 5
            if guard is None or guard(self):
                self._enter(initial)
                break
        self._trace.first = self._pose
        self._look_around()
        return self._observation()

    def _begin_scopes(self, block: BlockSpec, began: set[Scope]) -> None:
        """Clause 2: set counters to 0, and variables whose scope begins to their
        initial value. Then set what the block sets: all of it when the block begins,
        later only variables whose scope begins.
        """
        values = self.values
        values.update(dict.fromkeys(self._program.specification.counters, 0))
        for name, variable in self._program.specification.variables.items():
            if variable.per in began:
                values[name] = variable.initial
        for name, value in block.set:
            if (
                "block" in began
                or self._program.specification.variables[name].per in began
            ):
                values[name] = value

    def _draw_rows(self, began: set[Scope]) -> None:
        """Clause 3: make the draws whose scope begins, in the order of the file. After
        its first time, a draw whose ``keep_if`` holds keeps its values.
        """
        for draw, sequence in self._draws:
            if draw.per not in began:
                continue
            keep_if = self._program.keep_if.get(draw.name)
            if not (sequence.count and keep_if is not None and keep_if(self)):
                members = schedule.dealt(draw, self._geometry.arena.groups, self.values)
                self.values.update(
                    zip(draw.columns, sequence.next(members), strict=True)
                )

    def _held_limit(self, limit: float) -> int:
        if not 1 <= limit < math.inf:
            raise self._mistake(
                f"The limit of the trial is {limit}",
                "Set its variable to a finite number of at least 1.",
            )
        return int(min(limit, NEVER))

    def _mistake(self, sentence: str, remedy: str) -> ProtocolError:
        """Return the error for a mistake. Its sentence names the state, except before
        the trial's first step.
        """
        where = f", in the state '{self.state}'" if self.steps else ""
        return ProtocolError(
            f"{self._program.specification.path}: {sentence}{where}. {remedy}"
        )

    def _no_floor(self, place: str, remedy: str) -> ProtocolError:
        return self._mistake(
            f"The subject would be placed at {place}, which is not floor", remedy
        )

    def _place_at_start(self, session_begins: bool) -> None:
        """Clause 4: place the subject at ``start.at``, facing ``start.face``. With
        ``carry``, do so only on the first trial of a session.
        """
        self.occupied = dict.fromkeys(self._geometry.member_at)
        if self._program.specification.start.carry and not session_begins:
            self._update_occupied(self._geometry.cell(self._pose))
        else:
            self._place(self._start_at(self), f"start|{self._trial_number}")

    def _place(self, name: ex.RuntimeValue, key: str) -> None:
        cells = self._cells(name)
        if not cells:
            raise self._no_floor(f"'{plain_name(name)}'", "Name a zone.")
        cell = (
            cells[self._stream.below(len(cells), key)] if len(cells) > 1 else cells[0]
        )
        self._pose = self._geometry.pose(cell, self._facing(key))
        self._update_occupied(cell)

    def _put(self, column: float, row: float) -> None:
        cell = self._geometry.cell_at(column, row)
        if cell is None:
            raise self._no_floor(
                f"column {column:g}, row {row:g}",
                "Give the column and the row of a floor square.",
            )
        self._pose = self._geometry.pose(cell, self._geometry.heading(self._pose))
        self._update_occupied(cell)
        self._trace.placed[self.steps] = self._pose

    def _cells(self, place: Any) -> tuple[int, ...]:
        return self._geometry.cells_of(tuple(names_in(place)))

    def _facing(self, key: str) -> int:
        if self._program.face is not None:
            return self._program.face
        start = self._program.specification.start
        face = (
            plain_name(self.values[start.face]) if start.face_variable else start.face
        )
        headings = self._geometry.arena.headings
        if face == "random":
            return headings[self._stream.below(len(headings), f"{key}|face")]
        known = [HEADINGS[heading] for heading in headings]
        if face not in known:
            sentence = f"'start: face' is '{face}', which is not a heading here"
            raise self._mistake(
                sentence, f"Set its variable to {', '.join(known)} or random."
            )
        return HEADINGS.index(face)

    # -- steps

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action. Return the observation, the reward, and RUNNING,
        TERMINATED or TRUNCATED. Raise StepAfterEndError if the trial has ended, and
        ProtocolError for a mistake that shows only now, such as an infinite reward.
        """
        index = self._pose + action
        self.steps = steps = self.steps + 1  # clause 6
        self._pose = pose = self._moves[index]  # clause 7
        self._note(pose + action)
        if self._bits[index] & self._listen or steps >= self._wake:
            return self._happen(self._bits[index])
        return self._frames[pose >> 2] or self._observation(), self._pay, RUNNING

    def _happen(self, bits: int) -> tuple[str, float, int]:
        """Clauses 8 to 17: the slow path, for a step in which more than movement may
        happen.
        """
        if self._ended:
            self.steps -= 1
            self._trace.entries.pop()
            raise StepAfterEndError("This trial has ended. Call reset() before step().")
        state = self._current
        if bits & self._program.where_mask:  # clause 9
            self._update_occupied(self._geometry.cell(self._pose))
        reward = self._fire_rules(bits)  # clauses 10 to 14
        status = RUNNING if self.outcome is None else TERMINATED
        if self.outcome is None and self.steps >= self._limit:  # clause 15
            self.outcome, status = TIMEOUT, TRUNCATED
        if self.outcome is None:  # clause 16
            now = self._current
            reward += self._apply_each(now) if now.busy else now.pay
            if not state.steady or self._entered == self.steps:
                self._look_around()
        else:
            self._ended = True
            self._close()
            self._schedule.note(self.noted)
            self._look_around()
        return self._observation(), reward, status  # clause 17

    def _fire_rules(self, bits: int) -> float:
        """Clauses 10 to 14: fire all rules of `watch` that hold, and the first rule of
        the state that holds. If any rule has fired and the trial goes on, test
        `finish`. Return the reward.
        """
        state, watch = self._current, self._program.watch
        reward, fired = self._fire_watch(watch, bits) if watch else (0.0, False)
        for number, rule in enumerate(state.rules):  # clause 11
            if (not rule.mask or bits & rule.mask) and self._holds(
                rule, bits, state.name, number
            ):
                fired = True
                reward += self._fire(rule)  # clause 12
                if rule.end is not None:
                    self.outcome = rule.end
                elif rule.go is not None:
                    reward += self._enter(rule.go)  # clause 13
                break
        if fired and self.outcome is None:
            reward += self._test_finish()  # clause 14
        return reward

    def _fire_watch(self, watch: Sequence[Rule], bits: int) -> tuple[float, bool]:
        """Clause 10: return the reward, and whether a rule has fired."""
        reward, fired = 0.0, False
        for number, rule in enumerate(watch):
            if (not rule.mask or bits & rule.mask) and self._holds(
                rule, bits, "watch", number
            ):
                fired = True
                reward += self._fire(rule)
        return reward, fired

    def _apply_each(self, state: State) -> float:
        """Clause 16: apply the `each` effects of the state and of the protocol. Return
        their reward.
        """
        return self._apply(state.each, "each") + self._apply(self._program.each, "each")

    def _holds(self, rule: Rule, bits: int, where: str, number: int) -> bool:
        """Return whether trigger, ``if`` and ``p`` hold, tested in this order. Set
        ``it`` if the rule has a target.
        """
        if rule.after is not None:
            # A duration of NaN is never over.
            if not self.steps - self._entered >= rule.after(self):
                return False
        elif rule.who is not None:
            self.it = rule.who(self, bits)
            if self.it is None:
                return False
        if rule.guard is not None and not rule.guard(self):
            return False
        if rule.p is None:
            return True
        key = f"p|{self._trial_number}|{where}|{number}"
        times = self._considered[key] = self._considered.get(key, 0) + 1
        return self._stream.happens(rule.p(self), f"{key}|{times}")

    def _fire(self, rule: Rule) -> float:
        self._events.append(
            (
                self.steps,
                self.state,
                rule.text,
                None if rule.who is None else self.it,
                rule.source,
            )
        )
        return self._apply(rule.effects, "place")

    def _apply(self, effects: Effects, purpose: str) -> float:
        """Clause 12: apply set (all at once), add, remove, count, reward, place and
        put. Return the reward.
        """
        if effects.nothing:
            return 0.0
        if effects.assigns:
            effects.assign(self)
        reward = effects.constant or 0.0
        if effects.reward is not None and effects.constant is None:
            reward = float(effects.reward(self))
            if not math.isfinite(reward):
                raise self._mistake(f"A reward is {reward}", "Keep it finite.")
        if effects.place is not None:
            # The count gives two placements in one step different keys.
            self._place(
                effects.place(self),
                f"{purpose}|{self._trial_number}|{self.steps}|{self._placings}",
            )
            self._placings += 1
            self._trace.placed[self.steps] = self._pose
        if effects.put is not None:
            self._put(*[number(self) for number in effects.put])
        return reward

    def _enter(self, name: str) -> float:
        """Clause 13: enter a state, restart its clock, and apply the effects of the
        entry. Return their reward.
        """
        self.state = name
        self._current = self._program.states[name]
        self._entered = self.steps
        return self._apply(self._current.entry, "place")

    def _test_finish(self) -> float:
        """Clause 14: the first entry of `finish` that holds ends the trial, or leads to
        another state. Return the reward of entering that state.
        """
        if (found := self._finishing()) is None:
            return 0.0
        _, self.outcome, go, source = found
        self._events.append(
            (self.steps, self.state, f"finish {self.outcome or go}", None, source)
        )
        return 0.0 if go is None else self._enter(go)

    def _finishing(self) -> Finish | None:
        """Return the first entry of `finish` that holds, or None. Entries that lead to
        the present state do not count.
        """
        for entry in self._program.finish:
            guard, _, go, _ = entry
            if go != self.state and (guard is None or guard(self)):
                return entry
        return None

    def _close(self) -> None:
        self.last = self.outcome
        if self._program.recents:
            self._remember()
        self.noted = self.outcome, self.outcome
        if (criteria := self._program.criteria.get(self.block)) is not None:
            of_trial, of_repetition = criteria
            self.noted = self._as_noted(of_trial), self._as_noted(of_repetition)

    def _as_noted(self, criterion: Function | None) -> str | None:
        return self.outcome if criterion is None else MET if criterion(self) else None

    def _remember(self) -> None:
        """Add this trial to the histories of recent trials. Histories of an outcome are
        updated before histories of success, because success may depend on them.
        """
        for noted in sorted(self._program.recents, key=lambda one: one.outcome is None):
            number = self._program.recents[noted]
            so = (
                self.is_success()
                if noted.outcome is None
                else self.outcome == noted.outcome
            )
            now = (*self._past[number], so)[-noted.trials :]
            self._past = (*self._past[:number], now, *self._past[number + 1 :])

    def _update_occupied(self, cell: int) -> None:
        for group, member_at in self._geometry.member_at.items():
            if member_at[cell] is not None:
                self.occupied[group] = member_at[cell]

    # -- functions for expressions (clause 8). A place is a zone, a group, or a set of
    # zones. For `column` and `row` it may also be a solid.

    def time(self, place: Any) -> int:
        """Return the number of steps spent in these places in this trial."""
        return self._trace.steps_in(tuple(names_in(place)))

    def entries(self, place: Any) -> int:
        """Return how often the subject walked into these places, from outside all of
        them, in this trial.
        """
        return self._trace.entries_into(tuple(names_in(place)))

    def departure_error(self, place: Any) -> float:
        return self._trace.departure_error(tuple(names_in(place)))

    def distance(self, place: Any) -> float:
        return distance(self._geometry, self._pose, tuple(names_in(place)))

    def bearing_error(self, place: Any) -> float:
        return bearing_error(self._geometry, self._pose, tuple(names_in(place)))

    def column(self, place: Any) -> float:
        return self._geometry.middle(tuple(names_in(place)))[0]

    def row(self, place: Any) -> float:
        return self._geometry.middle(tuple(names_in(place)))[1]

    @property
    def x(self) -> int:
        """Column of the subject, from 0 in the west."""
        return self._geometry.arena.cells[self._geometry.cell(self._pose)][0]

    @property
    def y(self) -> int:
        """Row of the subject, from 0 in the north."""
        return self._geometry.arena.cells[self._geometry.cell(self._pose)][1]

    @property
    def heading(self) -> int:
        """Heading of the subject, in degrees clockwise from north."""
        return degrees(self._geometry, self._pose)

    @property
    def moves(self) -> int:
        """Number of FORWARDs that moved the subject in this trial."""
        return self._trace.path()[0]

    def success(self) -> bool | None:
        """Return whether the ended trial is a success, or None if the protocol has no
        `success`.
        """
        success = self._program.success
        return None if success is None else bool(success(self))

    def is_success(self) -> bool:
        return bool(self.success())

    def recent(self, what: ex.Recent) -> int:
        """Return how many of the latest trials ended as ``what`` says. The present
        trial counts once it has ended.
        """
        return sum(self._past[self._program.recents[what]])

    # -- for authors' tools and the audit

    @property
    def pose(self) -> int:
        """Cell and heading of the subject, as an index into the tables (see
        ``tables``).
        """
        return self._pose

    @property
    def look(self) -> Look:
        return self._look

    @property
    def tables(self) -> Tables:
        """The present movement tables, for the doors and the freezing of the current
        state.
        """
        return self._look.tables

    @property
    def placed(self) -> bool:
        """Whether the latest step placed the subject (`place` or `put`)."""
        return self.steps in self._trace.placed

    def foreseen(self, action: int) -> str:
        """Return the picture after this action, as if its only effect were movement."""
        pose = self._moves[self._pose + action]
        return self._frames[pose >> 2] or self._gallery.draw(self._look, pose)

    @property
    def events(self) -> Sequence[TaskEvent]:
        """The rules and the entries of `finish` that have fired in this trial, in
        order.
        """
        return [
            TaskEvent(step, state, what if it is None else f"{what} ({it})", source)
            for step, state, what, it, source in self._events
        ]

    def scene_of(self, state: str) -> Scene:
        return self._gallery.look(self._program.states[state].read_look(self)).scene

    @property
    def location(self) -> Pose:
        return Pose(self.x, self.y, self.heading, self.state, self._turn)

    @property
    def _turn(self) -> int:
        turning = self._program.turning
        if turning is None:
            return 0
        return turning.degrees.get(self.values[turning.variable], 0)

    @property
    def goals(self) -> frozenset[tuple[int, int]]:
        """Squares where an event (`enter`, `inside` or `press`) would bring the largest
        reward now, if chance allows it. A reward that must be computed counts as the
        largest. The set is empty if no event would bring a reward.
        """
        found: dict[float, set[tuple[int, int]]] = {}
        arena, held = self._program.specification.arena, self.it
        for (trigger, name), bit in self._geometry.bit.items():
            if trigger not in ("enter", "inside", "press"):
                continue
            for rule in self._paying_rules(bit):
                squares = found.setdefault(rule.effects.constant or math.inf, set())
                squares.update(squares_of(arena, name))
        self.it = held
        return frozenset(found[max(found)]) if found else frozenset()

    def _paying_rules(self, bit: int) -> Iterator[Rule]:
        """Yield the rules that an event would fire and that may pay: all such rules of
        `watch`, and the state's first rule that would fire. Set ``it`` for each.
        """
        for rule in self._program.watch:
            if rule.effects.may_pay and self._would_fire(rule, bit):
                yield rule
        for rule in self._current.rules:
            if self._would_fire(rule, bit):
                if rule.effects.may_pay:
                    yield rule
                return

    def _would_fire(self, rule: Rule, bit: int) -> bool:
        """Return whether an event would fire a rule if chance (``p``) allowed it. Set
        ``it``.
        """
        if rule.who is None or not rule.mask & bit:
            return False
        self.it = rule.who(self, bit)
        return self.it is not None and (rule.guard is None or bool(rule.guard(self)))

    def force(self, state: str) -> str:
        """Enter a state without an event, and return its picture."""
        self._enter(state)
        self._look_around()
        return self._observation()

    @property
    def standing(self) -> tuple[int, int, int]:
        """Column, row and heading (0-7) of the subject in the picture."""
        return self._gallery.stand(self._pose)

    # -- for the fast path of a step

    def _look_around(self) -> None:
        state = self._current
        look = self._look = self._gallery.look(self._appearance(state))
        self._moves, self._bits, self._frames = (
            look.tables.moves,
            look.tables.events,
            look.frames,
        )
        self._listen, self._pay, self.waiting = state.listen, state.pay, state.waits
        if self._ended:
            # A step after the end of the trial is an error, and moves nothing.
            self._moves = self._geometry.still
        if self._ended or state.busy:
            self._wake = 0
            return
        wake = min(self._limit, self._entered + state.due)
        for timer in state.timers:
            if math.isfinite(duration := max(timer(self), 0)):
                wake = min(wake, self._entered + math.ceil(duration))
        self._wake = wake

    def _appearance(self, state: State) -> LookKey:
        key: LookKey = state.look if state.look is not None else state.read_look(self)
        return key

    def drawn_in(self, gallery: Gallery) -> str:
        """Return the present observation as another gallery draws it."""
        return gallery.draw(gallery.look(self._look.key), self._pose)

    def _observation(self) -> str:
        return self._frames[self._pose >> 2] or self._gallery.draw(
            self._look, self._pose
        )

    # -- independent copies (for ``audit``)

    def twin(self) -> Self:
        """Return an independent copy, which cannot begin another trial.

        Copies that take the same actions have the same results.
        """
        twin = object.__new__(type(self))
        held = twin.__dict__
        held.update(self.__dict__)
        held["values"] = self.values.copy()
        held["occupied"] = self.occupied.copy()
        held["_events"] = self._events.copy()
        held["_considered"] = self._considered.copy()
        trace = held["_trace"] = self._trace.copy()
        held["_note"] = trace.entries.append
        held["_schedule"] = schedule.Schedule(())
        return twin

    def heir(self) -> Self:
        """Return an independent copy that can begin further trials."""
        heir = self.twin()
        heir._schedule = self._schedule.copy()
        heir._draws = [(draw, copy.copy(sequence)) for draw, sequence in self._draws]
        return heir

    def carried(self) -> Hashable:
        """Return what the rest of this subject's life depends on at the beginning of a
        trial, except its draws.
        """
        values = tuple(sorted(self.values.items()))
        return self._schedule.key(), values, self.last, self._past, self.pose

    def course(self) -> Hashable:
        """Return everything that the rest of a trial depends on, except its path."""
        told = tuple(sorted(self.values.items())), tuple(sorted(self.occupied.items()))
        before = self.last, self._past, tuple(sorted(self._considered.items()))
        now = self.state, self._pose, self.steps, self._entered, self.it
        return now, told, before

    @property
    def happenings(self) -> int:
        return len(self._events)

    @property
    def limit(self) -> int:
        return self._limit

    def use_alternative_stream(self, number: int) -> None:
        """Draw every `p` from random stream ``number`` from now on. Everything else
        stays the same.
        """
        self._stream = schedule.AlternativeStream(self._stream, number)

    # -- after the trial

    def ending(self) -> Ending:
        """Clause 18: evaluate ``success`` and ``measures`` with the final variables.
        Raise StepAfterEndError if the trial has not ended.
        """
        if not self._ended or self.outcome is None:
            raise StepAfterEndError(
                "The trial has not ended yet. Step it to its end first."
            )
        program = self._program
        return Ending(
            self.outcome,
            self.success(),
            {
                name: plain_value(measure(self))
                for name, measure in program.measures.items()
            },
            {name: self.values[name] for name in program.specification.counters},
        )

    def result(self) -> TrialResult:
        outcome, success, measures, counters = self.ending()
        path_length, bumps = self._trace.path()
        return TrialResult(
            block=self.block,
            session=self._session_number,
            outcome=outcome,
            success=success,
            compared=self._program.where is None or bool(self._program.where(self)),
            counters=counters,
            measures=measures,
            variables={
                name: plain_value(value)
                for name, value in self.values.items()
                if name not in counters
            },
            path_length=path_length,
            bumps=bumps,
            events=self.events,
        )


def plain_value(value: Any) -> Value:
    """Return a value for records: sets as sorted lists, and numbers that are undefined
    or infinite as None.
    """
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    recorded: Value = value
    return recorded


#: Distance, in cells, at which the first direction of a path is measured. A shorter
#: path has few possible directions.
DEPARTURE = 3.0
#: Array of indices into tables. An index is a pose plus an action.
Entries = NDArray[np.intp]
_NONE: Entries = np.zeros(0, np.intp)
#: A displacement: columns to the east, rows to the south.
Way = tuple[float, float]


@dataclass(slots=True)
class Trace:
    """The poses of a trial so far.

    ``entries`` has, for each step, the pose after it plus the action. ``first`` is the
    pose at the beginning. ``placed`` has the steps that placed the subject, each with
    the pose after it. Steps are counted from 1; 0 is the entry into the first state.
    """

    geometry: Geometry
    first: int = 0
    entries: list[int] = field(default_factory=list)
    placed: dict[int, int] = field(default_factory=dict)
    _before: Entries = field(default_factory=lambda: _NONE)
    _after: Entries = field(default_factory=lambda: _NONE)
    _placings: int = 0

    def clear(self) -> None:
        self.entries.clear()
        self.placed.clear()
        self._before = self._after = _NONE

    def copy(self) -> Trace:
        return Trace(self.geometry, self.first, self.entries.copy(), self.placed.copy())

    def steps_in(self, places: tuple[str, ...]) -> int:
        return int(np.count_nonzero(self.geometry.inside(places)[self._steps()[1]]))

    def entries_into(self, places: tuple[str, ...]) -> int:
        """Return the number of steps into places from outside all of them."""
        inside = self.geometry.inside(places)
        before, after = self._steps()
        return int(np.count_nonzero(inside[after] & ~inside[before]))

    def path(self) -> tuple[int, int]:
        """Return the number of FORWARDs that moved the subject, and the number of
        bumps: FORWARDs that did not move it and pressed nothing.
        """
        before, after = self._steps()
        forward = after & 3 == FORWARD
        same = after >> 2 == before >> 2
        bumped = forward & same & ~self.geometry.pressing[before]
        return int(np.count_nonzero(forward & ~same)), int(np.count_nonzero(bumped))

    def departure_error(self, places: tuple[str, ...]) -> float:
        """Return the angle (0 to 180 degrees) between the first direction walked and
        the direction of the centre of places.

        Both are measured from the beginning of the trial, or from the latest placement.
        The angle is NaN until the subject is ``DEPARTURE`` cells away, or if either
        direction is undefined.
        """
        since = max(self.placed, default=0)
        origin = _square(self.geometry, self.placed.get(since, self.first))
        far = self.geometry.entries_beyond(origin, DEPARTURE)
        out = next((entry for entry in self.entries[since:] if entry in far), None)
        if out is None:
            return math.nan
        way = _way(origin, _square(self.geometry, out))
        return _between(
            _bearing(way), _bearing(_way(origin, self.geometry.middle(places)))
        )

    def _steps(self) -> tuple[Entries, Entries]:
        """Return two arrays: for each step the pose before it (plus any action), and
        the pose after it (plus the action). A placement is not a step.

        The arrays are kept until the next step, because several measures use them.
        """
        if len(self._after) != len(self.entries) or self._placings != len(self.placed):
            self._after = np.array(self.entries, np.intp)
            self._before = np.array([self.first, *self.entries[:-1]], np.intp)[
                : len(self.entries)
            ]
            for number, pose in self.placed.items():
                self._before[number : number + 1] = pose
            self._placings = len(self.placed)
        return self._before, self._after


def distance(geometry: Geometry, pose: int, places: tuple[str, ...]) -> float:
    """Return the distance, in cells, to the nearest cell of places, or NaN if there is
    none.
    """
    here = _square(geometry, pose)
    squares = [geometry.arena.cells[cell] for cell in geometry.cells_of(places)]
    return min((math.dist(here, square) for square in squares), default=math.nan)


def bearing_error(geometry: Geometry, pose: int, places: tuple[str, ...]) -> float:
    """Return the angle (0 to 180 degrees) between the heading and the direction of the
    centre of places. It is NaN if the subject is at that centre, or the places have
    none.
    """
    way = _way(_square(geometry, pose), geometry.middle(places))
    return _between(degrees(geometry, pose), _bearing(way))


def degrees(geometry: Geometry, pose: int) -> int:
    return 45 * geometry.heading(pose)


def _square(geometry: Geometry, pose: int) -> Way:
    return geometry.arena.cells[geometry.cell(pose)]


def _way(origin: Way, target: Way) -> Way:
    return target[0] - origin[0], target[1] - origin[1]


def _bearing(way: Way) -> float:
    """Return the direction of a displacement in degrees clockwise from north, or NaN if
    its length is 0.
    """
    return math.degrees(math.atan2(way[0], -way[1])) if any(way) else math.nan


def _between(one: float, other: float) -> float:
    return abs((one - other + 180) % 360 - 180)
