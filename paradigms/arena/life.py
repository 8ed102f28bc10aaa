"""The scalar step kernel: one subject in an arena. Numbers in comments are clauses of the language page.

It is longer than 400 lines because it is one algorithm: the reference for the clauses, in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from cheesebench.errors import StepAfterEndError
from cheesebench.interfaces import (
    HEADINGS,
    RUNNING,
    TERMINATED,
    TRUNCATED,
    Scene,
    TaskEvent,
    TrialResult,
    View,
)
from cheesebench.paradigms.arena.draws import DrawSequence, dealt
from cheesebench.paradigms.arena.endings import Ending, plain_value
from cheesebench.paradigms.arena.mistakes import bad_face, bad_limit, bad_reward, no_floor
from cheesebench.paradigms.arena.past import Past
from cheesebench.paradigms.arena.path import Path
from cheesebench.paradigms.arena.program import Effects, Finish, Program, Rule, State, names_in, plain_name, read_place
from cheesebench.paradigms.arena.scenes import Look, LookKey
from cheesebench.paradigms.arena.schedule import Schedule
from cheesebench.paradigms.arena.streams import AlternativeStream, Stream
from cheesebench.paradigms.arena.tables import Tables
from cheesebench.paradigms.arena.traces import Trace
from cheesebench.protocol.declare import TIMEOUT
from cheesebench.protocol.specification import BlockSpec, RuntimeValue
from cheesebench.protocol.values import Scope

#: Later than any step; larger values would not fit into the integers of a batch.
NEVER = 2**62


class ArenaSubject(Path, Past):
    """The environment of one subject: ``begin_trial``, then ``step`` until TERMINATED or TRUNCATED, and so on.

    The public attributes are those that expressions read (evaluate.py); do not write them from outside.
    """

    def __init__(self, program: Program, view: View, seed: int, subject: int) -> None:
        specification = program.specification
        self._program = program
        self._gallery = program.gallery(view)
        self._geometry = program.geometry
        self._stream = Stream(seed, specification.paradigm, subject)
        self._draws = [(draw, DrawSequence(draw, self._stream, subject)) for draw in specification.draws]
        self._schedule = Schedule(specification.schedule)
        self._trial_number = -1
        self._session_number = 0
        self._start_at = read_place(specification.start.at)
        # What expressions read.
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
        self._past, self.noted = ((),) * len(program.recents), (None, None)
        # The current trial.
        self.waiting = False
        self.outcome: str | None = None
        self._pose = 0
        self._ended = True
        #: Step, state, rule, `it` (where the rule has one) and source: of TaskEvents, which few ask for.
        self._events: list[tuple[int, str, str, str | None, str]] = []
        self._trace = Trace(self._geometry)
        self._placings = 0
        self._considered: dict[str, int] = {}
        self._limit = 0
        self._entered = 0
        self._current: State = next(iter(program.states.values()))
        self._quarters = 0
        self._look: Look
        # What the fast path of a step reads: current tables, what is listened to, next moment of interest, pay.
        self._moves: list[int] = []
        self._bits: list[int] = []
        self._frames: list[str | None] = []
        self._listen = 0
        self._wake = 0
        self._pay = 0.0
        self._note = self._trace.entries.append

    # -- the schedule and the start of a trial

    def repeat_schedule(self) -> None:
        """Restart the schedule for the same subject (for indefinite training)."""
        self._schedule.repeat()

    @property
    def life_over(self) -> bool:
        """Whether the trial is the last one of the schedule; where that depends on how it ends, known at its end."""
        return self._schedule.over

    def begin_next_trial(self) -> str:
        """Begin the next trial like ``begin_trial``, restarting the schedule at its end."""
        observation = self.begin_trial()
        if observation is None:
            self.repeat_schedule()
            observation = self.begin_trial()
        assert observation is not None
        return observation

    def begin_trial(self) -> str | None:
        """Advance the schedule and return the first observation, or None when the schedule is over."""
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
        self._quarters = self._program.quarters(self)
        limit = self._program.specification.limit
        self._limit = limit if isinstance(limit, int) else self._held_limit(self.values[limit])
        self._place_at_start("session" in began)
        for guard, initial in self._program.entry:  # 5
            if guard is None or guard(self):
                self._enter(initial)
                break
        self._trace.first = self._pose
        self._look_around()
        return self._observation()

    def _begin_scopes(self, block: BlockSpec, began: set[Scope]) -> None:
        """2: variables of the scopes that begin take their initial value, or the one that the block sets."""
        values = self.values
        values.update(dict.fromkeys(self._program.specification.counters, 0))
        for name, variable in self._program.specification.variables.items():
            if variable.per in began:
                values[name] = variable.initial
        for name, value in block.set:
            if "block" in began or self._program.specification.variables[name].per in began:
                values[name] = value

    def _draw_rows(self, began: set[Scope]) -> None:
        """3: draws whose scope begins, in file order."""
        for draw, sequence in self._draws:
            if draw.per not in began:
                continue
            keep_if = self._program.keep_if.get(draw.name)
            if not (sequence.count and keep_if is not None and keep_if(self)):
                members = dealt(draw, self._geometry.arena.groups, self.values)
                self.values.update(zip(draw.columns, sequence.next(members), strict=True))

    def _held_limit(self, limit: float) -> int:
        if not 1 <= limit < math.inf:
            raise bad_limit(self._program, limit, self._state_or_none())
        return int(min(limit, NEVER))

    def _state_or_none(self) -> str | None:
        """Return the current state, or None while a trial begins."""
        return self.state if self.steps else None

    def _place_at_start(self, session_begins: bool) -> None:
        """4: at ``start.at`` facing ``start.face``; with ``carry`` only on the first trial of a session."""
        self.occupied = dict.fromkeys(self._geometry.member_at)
        if self._program.specification.start.carry and not session_begins:
            self._update_occupied(self._geometry.cell(self._pose))
        else:
            self._place(self._start_at(self), f"start|{self._trial_number}")

    def _place(self, name: RuntimeValue, key: str) -> None:
        cells = self._cells(name)
        if not cells:
            raise no_floor(self._program, name, self._state_or_none())
        cell = cells[self._stream.below(len(cells), key)] if len(cells) > 1 else cells[0]
        self._pose = self._geometry.pose(cell, self._facing(key))
        self._update_occupied(cell)

    def _cells(self, place: Any) -> tuple[int, ...]:
        """Return the cells of a zone, group or set of them."""
        return self._geometry.cells_of(tuple(names_in(place)))

    def _facing(self, key: str) -> int:
        start = self._program.specification.start
        face = plain_name(self.values[start.face]) if start.face_variable else start.face
        headings = self._geometry.arena.headings
        if face == "random":
            return headings[self._stream.below(len(headings), f"{key}|face")]
        if face not in [HEADINGS[heading] for heading in headings]:
            raise bad_face(self._program, face, self._state_or_none())
        return HEADINGS.index(face)

    # -- steps

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action; return the observation, the reward and RUNNING, TERMINATED or TRUNCATED."""
        index = self._pose + action
        self.steps = steps = self.steps + 1  # 6
        self._pose = pose = self._moves[index]  # 7
        self._note(pose + action)
        if self._bits[index] & self._listen or steps >= self._wake:
            return self._happen(self._bits[index])
        return self._frames[pose >> 2] or self._observation(), self._pay, RUNNING

    def _happen(self, bits: int) -> tuple[str, float, int]:
        """The slow path of a step on which an event is possible: clauses 8 to 17."""
        if self._ended:
            self.steps -= 1
            self._trace.entries.pop()
            raise StepAfterEndError("This trial has ended. Call reset() before step().")
        program, state, reward, fired = self._program, self._current, 0.0, False
        if bits & program.where_mask:  # 9
            self._update_occupied(self._geometry.cell(self._pose))
        for number, rule in enumerate(program.watch):  # 10
            if (not rule.mask or bits & rule.mask) and self._holds(rule, bits, "watch", number):
                fired = True
                reward += self._fire(rule)
        for number, rule in enumerate(state.rules):  # 11
            if (not rule.mask or bits & rule.mask) and self._holds(rule, bits, state.name, number):
                fired = True
                reward += self._fire(rule)  # 12
                if rule.end is not None:
                    self.outcome = rule.end
                elif rule.go is not None:
                    reward += self._enter(rule.go)  # 13
                break
        if fired and self.outcome is None:
            reward += self._test_finish()  # 14
        status = RUNNING if self.outcome is None else TERMINATED
        if self.outcome is None and self.steps >= self._limit:  # 15
            self.outcome, status = TIMEOUT, TRUNCATED
        if self.outcome is None:  # 16
            now = self._current
            reward += self._apply(now.each, "each") + self._apply(program.each, "each") if now.busy else now.pay
        else:
            self._ended = True
            self._close()
            self._schedule.note(self.noted)
        if self._ended or not state.steady or self._current is not state:
            self._look_around()
        return self._observation(), reward, status  # 17

    def _holds(self, rule: Rule, bits: int, where: str, number: int) -> bool:
        """Return whether trigger, ``if`` and ``p`` hold, in this order; sets ``it``."""
        if rule.after is not None:
            if not self.steps - self._entered >= rule.after(self):  # also when that is no number
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
        self._events.append((self.steps, self.state, rule.text, None if rule.who is None else self.it, rule.source))
        return self._apply(rule.effects, "place")

    def _apply(self, effects: Effects, purpose: str) -> float:
        """12: set (parallel), add, remove, count, reward, place."""
        if effects.nothing:
            return 0.0
        if effects.assigns:
            effects.assign(self)
        reward = effects.constant or 0.0
        if effects.reward is not None and effects.constant is None:
            reward = float(effects.reward(self))
            if not math.isfinite(reward):
                raise bad_reward(self._program, reward, self._state_or_none())
        if effects.place is not None:
            # The count tells two of one step apart: each is placed by a number of its own.
            self._place(effects.place(self), f"{purpose}|{self._trial_number}|{self.steps}|{self._placings}")
            self._placings += 1
            self._trace.placed[self.steps] = self._pose
        if effects.put is not None:
            self._put(*[number(self) for number in effects.put])
        return reward

    def _enter(self, name: str) -> float:
        """13: the clock starts anew, and the entry effects run."""
        self.state = name
        self._current = self._program.states[name]
        self._entered = self.steps
        return self._apply(self._current.entry, "place")

    def _test_finish(self) -> float:
        """14: the first that holds ends the trial, or leads to another state."""
        if (found := self._finishing()) is None:
            return 0.0
        _, self.outcome, go, source = found
        self._events.append((self.steps, self.state, f"finish {self.outcome or go}", None, source))
        return 0.0 if go is None else self._enter(go)

    def _finishing(self) -> Finish | None:
        """Return the first entry of `finish` that holds, and does not lead to the state that the trial is in."""
        for entry in self._program.finish:
            guard, _, go, _ = entry
            if go != self.state and (guard is None or guard(self)):
                return entry
        return None

    def _update_occupied(self, cell: int) -> None:
        for group, member_at in self._geometry.member_at.items():
            if member_at[cell] is not None:
                self.occupied[group] = member_at[cell]

    # -- what authors' tools read

    @property
    def pose(self) -> int:
        """Position and heading of the subject, as an index into the tables (see ``tables.Geometry``)."""
        return self._pose

    @property
    def tables(self) -> Tables:
        """The present movement tables, with the doors and the freeze of the current state."""
        return self._look.tables

    @property
    def events(self) -> Sequence[TaskEvent]:
        """The rules that have fired in this trial, in order."""
        return [
            TaskEvent(step, state, what if it is None else f"{what} ({it})", source)
            for step, state, what, it, source in self._events
        ]

    def scene_of(self, state: str) -> Scene:
        """Return what a state would show with the present variables, without side effects."""
        wanted = self._program.states[state]
        return self._gallery.look(wanted.read_look(self), self._quarters).scene

    @property
    def standing(self) -> tuple[int, int, int]:
        """Column, row and heading (0-7) of the subject in the picture."""
        return self._gallery.stand(self._pose, self._quarters)

    # -- what the fast path reads

    def _look_around(self) -> None:
        """Update doors, picture and the next step of interest for the present state and variables."""
        state = self._current
        look = self._look = self._gallery.look(self._appearance(state), self._quarters)
        self._moves, self._bits, self._frames = look.tables.moves, look.tables.events, look.frames
        self._listen, self._pay, self.waiting = state.listen, state.pay, state.waits
        if self._ended:
            self._moves = self._geometry.still  # a step after the end is an error, and moves nothing
        if self._ended or state.busy:
            self._wake = 0
            return
        wake = self._limit
        if state.timed:
            for rule in state.rules:
                if rule.after is not None and math.isfinite(duration := max(rule.after(self), 0)):
                    wake = min(wake, self._entered + math.ceil(duration))
        self._wake = wake

    def _appearance(self, state: State) -> LookKey:
        """Return the present look of a state, and the doors that it closes."""
        key: LookKey = state.look if state.look is not None else state.read_look(self)
        return key

    def _observation(self) -> str:
        return self._frames[self._pose >> 2] or self._gallery.draw(self._look, self._pose)

    # -- copies that go on by themselves (``audit``)

    def twin(self) -> Self:
        """Return an independent copy in the middle of a trial.

        It is deterministic: copies with the same actions have the same results. A copy cannot begin another trial.
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
        held["_schedule"] = Schedule(())
        return twin

    @property
    def happenings(self) -> int:
        """Number of rules that have fired in this trial."""
        return len(self._events)

    @property
    def limit(self) -> int:
        """Step limit of the trial."""
        return self._limit

    # -- what a batch of lives reads and does (``batch``)

    def fast_forward(self, pose: int, steps: int, trace: Sequence[int] = ()) -> None:
        """Take over steps without events that a batch executed: ``steps`` of this trial so far.

        ``trace`` has pose + action of the steps since the last call; it is not needed if the program reads no trace.
        """
        self._pose, self.steps = pose, steps
        if trace:
            self._trace.entries.extend(trace)

    def next_event(self) -> tuple[Look, State, bool, int]:
        """Return what holds until the next event: look, state, whether ``finish`` is pending, the next timed step."""
        program = self._program
        waits = not program.finish or not (program.finish_ripens or self._finishing() is not None)
        return self._look, self._current, waits, self._wake

    def use_alternative_stream(self, number: int) -> None:
        """From now on, draw every `p` from another random stream, one for each number; all else stays the same."""
        self._stream = AlternativeStream(self._stream, number)

    # -- after the trial

    def ending(self) -> Ending:
        """18: evaluate ``success`` and ``measures`` with the final variables."""
        if not self._ended or self.outcome is None:
            raise StepAfterEndError("The trial has not ended yet. Step it to its end first.")
        program = self._program
        return Ending(
            self.outcome,
            self.success(),
            {name: plain_value(measure(self)) for name, measure in program.measures.items()},
            {name: self.values[name] for name in program.specification.counters},
        )

    def result(self) -> TrialResult:
        """Return the ending, and whatever else is recorded of the trial."""
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
            variables={name: plain_value(value) for name, value in self.values.items() if name not in counters},
            path_length=path_length,
            bumps=bumps,
            events=self.events,
        )
