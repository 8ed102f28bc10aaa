"""The lanes of a vector environment, one subject each; numpy steps those on which no event is possible.

Only ``life.ArenaSubject`` implements the clauses of the language. On most steps no event is possible: pose and reward
are then one look-up each, and numpy does these look-ups for all lanes together. Where an event is possible, the lane's
environment is synchronised and executes the step itself. ``jit.vector`` does the same, compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cheesebench.interfaces import RUNNING, TERMINATED, View
from cheesebench.paradigms.arena.environment import beginning, ending
from cheesebench.paradigms.arena.infos import gather
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.pages import Album, Pages
from cheesebench.paradigms.arena.program import Program

#: Number of steps whose traces are kept for all lanes before the subjects take over their parts.
TRACE_ROWS = 256

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Infos = dict[str, Any]


class Steps(NamedTuple):
    """The results of one action in every lane; arrays of shape ``(num_envs,)``."""

    rewards: Floats
    terminated: Bools
    truncated: Bools
    infos: Infos


class Lanes(Protocol):
    """Many subjects that are stepped together."""

    @property
    def album(self) -> Album:
        """What the lanes see, by number."""
        ...

    @property
    def places(self) -> NDArray[np.int64]:
        """Where each lane is in the album."""
        ...

    def live(self, seeds: Sequence[int], first: int) -> None:
        """Start new subjects, with a seed each, numbered from ``first``.

        After a run-time error of the protocol no other method may be called: only some lanes have done that step.
        """
        ...

    def begin(self) -> Infos:
        """Begin the next trial in every lane; return the infos."""
        ...

    def step(self, actions: NDArray[np.int64]) -> Steps:
        """Execute one action in every lane; a lane whose trial has ended begins the next one instead."""
        ...


class ScalarLanes:
    """Lanes implemented with ``ArenaSubject``."""

    def __init__(self, program: Program, view: View, num_envs: int) -> None:
        self._program, self._view, self._count = program, view, num_envs
        self.album = Pages(program, program.gallery(view))
        self._traced = program.reads_trace
        #: Where every lane has been, page + pose + action; the first row is that of this value of the clock.
        self._trace, self._traced_from = np.zeros((TRACE_ROWS if self._traced else 0, num_envs), np.int64), 0
        self._subjects: list[ArenaSubject] = []
        #: Steps of the whole batch so far; of what follows every entry is about one lane.
        self._clock = 0
        #: Value of the clock when the trial began, and up to which value the subject has caught up.
        self._began, self._caught_up = [0] * num_envs, [0] * num_envs
        self._over = [False] * num_envs
        #: Where the lane stands: first entry of its page, and page + pose.
        self._page, self.places = [0] * num_envs, np.zeros(num_envs, np.int64)
        #: Value of the clock at which a timer or the limit may matter, and the state's name.
        self._wake = np.zeros(num_envs, np.int64)
        self._states = np.full(num_envs, None, dtype=object)

    def live(self, seeds: Sequence[int], first: int) -> None:
        """Start new subjects, with a seed each, numbered from ``first``."""
        program, view = self._program, self._view
        self._subjects = [ArenaSubject(program, view, seed, first + lane) for lane, seed in enumerate(seeds)]
        self._over = [True] * self._count  # a new subject has nothing to catch up with

    def begin(self) -> Infos:
        """Begin the next trial in every lane; return the infos."""
        self._catch_up_all()  # a trial may begin where the last one was when it was broken off
        lanes = range(self._count)
        infos = {lane: self._begin(lane) for lane in lanes}
        if self.album.full:
            self.album.forget_pages()
        self._settle(lanes)
        return gather(self._count, infos)

    def step(self, actions: NDArray[np.int64]) -> Steps:
        """Execute one action in every lane; a lane whose trial has ended begins the next one instead."""
        self._make_room()
        index = self.places + actions  # 6
        self.places = self.album.moves.take(index)  # 7
        self._clock += 1
        if self._traced:
            self._trace[self._clock - self._traced_from] = self.places + actions
        steps = Steps(self.album.rewards.take(index), np.zeros(self._count, bool), np.zeros(self._count, bool), {})
        happening = self.album.alarms.take(index) | (self._wake <= self._clock)
        if happening.any():
            steps.infos.update(self._step_subjects(happening.nonzero()[0], index, steps))
        else:
            self._add_states(steps.infos, [])
        return steps

    # -- lanes on which something can happen

    def _step_subjects(self, lanes: NDArray[np.intp], index: NDArray[np.int64], steps: Steps) -> Infos:
        """Let the lives of these lanes execute the step, write down what came of it, and return the infos."""
        ended: dict[int, Infos] = {}
        begun: dict[int, Infos] = {}
        before = self._clock - 1
        for lane, entry in zip(lanes.tolist(), index[lanes].tolist(), strict=True):
            if self._over[lane]:
                begun[lane] = self._begin(lane)
                steps.rewards[lane] = 0.0
                continue
            life, offset = self._subjects[lane], entry - self._page[lane]
            self._catch_up(lane, offset & ~3, before)
            _, steps.rewards[lane], status = life.step(offset & 3)
            self._caught_up[lane] = self._clock
            if status != RUNNING:
                self._over[lane] = True
                (steps.terminated if status == TERMINATED else steps.truncated)[lane] = True
                ended[lane] = ending(life)
        self._settle(lanes.tolist())
        infos = gather(self._count, ended) | gather(self._count, begun)
        self._add_states(infos, list(begun))
        return infos

    def _add_states(self, infos: Infos, begun: list[int]) -> None:
        """Add the names of the states; as in the scalar environment the first observation of a trial has none."""
        states, known = self._states.copy(), np.ones(self._count, bool)
        states[begun], known[begun] = None, False
        infos["state"], infos["_state"] = states, known

    def _begin(self, lane: int) -> Infos:
        life = self._subjects[lane]
        life.begin_next_trial()
        self._over[lane] = False
        self._began[lane] = self._caught_up[lane] = self._clock
        return beginning(life)

    def _catch_up(self, lane: int, pose: int, clock: int) -> None:
        """Transfer the steps of a lane to its ``ArenaSubject``, up to this value of the clock."""
        trace: Sequence[int] = ()
        if self._traced and clock > self._caught_up[lane]:
            rows = slice(self._caught_up[lane] + 1 - self._traced_from, clock + 1 - self._traced_from)
            trace = (self._trace[rows, lane] - self._page[lane]).tolist()
        self._subjects[lane].fast_forward(pose, clock - self._began[lane], trace)
        self._caught_up[lane] = clock

    def _catch_up_all(self) -> None:
        for lane, at in enumerate(self.places.tolist()):
            if not self._over[lane]:
                self._catch_up(lane, at - self._page[lane], self._clock)

    def _settle(self, lanes: Sequence[int]) -> None:
        """Read the subjects' poses, and the steps until which no timed event is possible."""
        at, wake, states = [], [], []
        for lane in lanes:
            life = self._subjects[lane]
            look, state, reward_only, step_to_wake = life.next_event()
            page = self._page[lane] = self.album.page(look, state, reward_only)
            at.append(page + life.pose)
            wake.append(self._began[lane] + step_to_wake)
            states.append(life.state)
        self.places[lanes], self._wake[lanes], self._states[lanes] = at, wake, states

    def _make_room(self) -> None:
        if self.album.full:
            self._catch_up_all()
            self.album.forget_pages()
            self._settle(range(self._count))
        if self._traced and self._clock + 1 - self._traced_from == TRACE_ROWS:
            self._catch_up_all()
            self._traced_from = self._clock + 1
