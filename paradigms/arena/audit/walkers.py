"""Agents that know the tables: they walk to events instead of looking for them, which is the chance of *choices*."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence

from cheesebench.interfaces import RUNNING, STAY, TrialResult
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.runs import DARKNESS, Order, Tally, Trial, is_judged, lives_for
from cheesebench.paradigms.arena.audit.ways import NO_WAY, events_of, ways_of
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.protocol import Specification

#: Given the places that can be gone to, the one to go to; None waits until the state changes.
Choice = Callable[[Sequence[str]], str | None]
#: Called with the life whenever a state has just been entered (or the trial begun), and with the observation.
Watcher = Callable[[ArenaSubject, str], None]


class Walker:
    """Goes from event to event, as ``choose`` says, among those that rules of the current state listen to.

    ``everywhere`` also lets it go wherever expressions read where the subject is.
    """

    def __init__(self, program: Program, choose: Choice, *, everywhere: bool = False) -> None:
        self._ways, self._events, self._states = ways_of(program), events_of(program), program.states
        self._choose, self._everywhere = choose, everywhere
        self._place: str | None = None
        self._state = ""
        self._arriving = True

    def begin(self) -> None:
        """A trial begins: a new choice is due."""
        self._state, self._arriving = "", True

    def act(self, life: ArenaSubject) -> int:
        """Return the next action on the way; choose where to go when the last event has happened."""
        tables, listen = life.tables, self._states[life.state].listen
        if self._arriving or life.state != self._state:
            self._state, self._arriving = life.state, False
            names = self._events.everywhere if self._everywhere else self._events.of_state[life.state]
            near = life.pose >> 2
            self._place = self._choose(
                [name for name in names if self._ways.to(tables, listen, name).actions[near] != NO_WAY]
            )
        if self._place is None:
            return STAY
        way = self._ways.to(tables, listen, self._place)
        action = way.actions[life.pose >> 2]
        if action == NO_WAY:  # a door has closed
            self._arriving = True
            return STAY
        self._arriving = way.last[life.pose >> 2]
        return action


def event_random(chance: random.Random) -> Choice:
    """Return the choice of ``event-random``: uniform over what can be gone to."""
    return lambda places: chance.choice(places) if places else None


def always_first(places: Sequence[str]) -> str | None:
    """Choose as ``always-first`` does: the first event in the order of the file."""
    return places[0] if places else None


def wanderer(chance: random.Random) -> Choice:
    """Return a choice that sometimes waits instead, so that it sees all states."""
    return lambda places: chance.choice([*places, None]) if places else None


def walk(
    life: ArenaSubject,
    walker: Walker,
    specification: Specification,
    trials: int,
    watch: Watcher | None = None,
    *,
    every_block: bool = False,
) -> Iterator[tuple[TrialResult, Trial]]:
    """Run a walker until so many trials are judged; yield each trial.

    With ``every_block`` they are so many of each block, spread over its sessions and repetitions: the first ones of
    each session and its last one. The others begin and are passed over.
    """
    blocks = {block.name: block for block in specification.schedule}
    judged = 0
    while every_block or judged < trials:
        if (observation := life.begin_trial()) is None:
            return
        if every_block:
            block = blocks[life.block]
            if math.ceil(trials / (block.sessions * block.repeat)) < life.trial < block.trials:
                continue
        walker.begin()
        status, total, state = RUNNING, 0.0, ""
        while status == RUNNING:
            if watch is not None and life.state != state:
                watch(life, observation)
            state = life.state
            observation, reward, status = life.step(walker.act(life))
            total += reward
        result = life.result()
        trial = Trial(is_judged(result, specification), total, life.steps)
        judged += trial.success is not None
        yield result, trial


def walk_subjects(paradigm: ArenaParadigm, name: str, choice: Callable[[random.Random], Choice], order: Order) -> Tally:
    """Run a walker through as many lives as the order needs; ``choice`` is given the life's random stream."""
    tally = Tally(name)
    for seed, subject, trials in lives_for(paradigm.specification, order.trials, order.seed, judged=True):
        chance = random.Random(f"{order.seed}|{seed}|{subject}|{name}")
        life = ArenaSubject(paradigm.program, DARKNESS, seed, subject)
        walker = Walker(paradigm.program, choice(chance))
        tally.add(list(walk(life, walker, paradigm.specification, trials)))
    return tally
