"""The memoryless: a table from what is seen to what is done, found by climbing from random beginnings."""

from __future__ import annotations

import random
from collections.abc import Sequence

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.beliefs import World
from cheesebench.paradigms.arena.audit.lesions.living import Lived, lived_trial
from cheesebench.paradigms.arena.audit.ways import NO_WAY, events_of, ways_of
from cheesebench.paradigms.arena.life import ArenaSubject

#: Steps that a search may take for an effort of 1; lives that a table is tried on, and trials of each.
STEPS, LIVES, TRIALS = 4_000_000, 30, 2
#: Lives by which a tour is made: so many beginnings are known to it.
STARTS = 500
#: A table that has not become better in so many tries is given up for a new one.
PATIENCE = 60
Table = dict[str, int]


class Climber:
    """Looks for a table; a table lacks what was never seen, and STAY is done there."""

    def __init__(self, paradigm: ArenaParadigm, lesion: Lesion, effort: float, seed: str) -> None:
        self.view = World(paradigm, lesion).view
        self._program = paradigm.program
        self._ways, self._events = ways_of(paradigm.program), events_of(paradigm.program)
        self._chance = random.Random(seed)
        self._left = STEPS * effort

    def climb(self) -> Table:
        """Return the best table that is found."""
        best: Table = {}
        best_score = self._score(best)
        tours = sorted(self._tours(), key=self._score)
        while self._left > 0 and best_score < 1:
            table: Table = tours.pop() if tours else {}
            score, vain = self._score(table), 0
            while self._left > 0 and vain < PATIENCE and score < 1:
                other = self._changed(table)
                there = self._score(other)
                vain = 0 if there > score else vain + 1
                if there >= score:
                    table, score = other, there
            if score > best_score:
                best, best_score = table, score
        return best

    def lives(self, number: int = LIVES) -> list[ArenaSubject]:
        """Return the lives that tables are selected on: never those that they are measured on."""
        return [ArenaSubject(self._program, self.view, 77_000 + one, one) for one in range(number)]

    def _score(self, table: Table) -> float:
        """Return the share of successes, and a little for what is paid: it leads there."""
        passed, paid, number = 0, 0.0, 0
        for life in self.lives():
            for _ in range(TRIALS):
                if (observation := life.begin_trial()) is None:
                    break
                status, reward, number = RUNNING, 0.0, number + 1
                while status == RUNNING:
                    action = STAY if life.waiting else table.get(observation, STAY)
                    observation, gain, status = life.step(action)
                    reward += gain
                self._left -= life.steps
                passed += life.is_success()
                paid += reward
        return min(1.0, (passed + 1e-3 * paid / (1 + abs(paid))) / max(1, number))

    def _tours(self) -> list[Table]:
        """Return tables that lead through the members of each group in turn, either way round."""
        groups = self._program.geometry.arena.groups.values()
        orders = [order for group in groups for order in (list(group), list(group)[::-1]) if len(order) > 1]
        return [self._tour(order) for order in orders]

    def _tour(self, order: Sequence[str]) -> Table:
        """Return a table that goes from place to place; what was seen on the way before is done again."""
        table: Table = {}
        for life in self.lives(STARTS):
            for _ in range(TRIALS):
                if (observation := life.begin_trial()) is None:
                    break
                status, target = RUNNING, 0
                while status == RUNNING:
                    way = self._ways.to(life.tables, self._program.states[life.state].listen, order[target])
                    led = way.actions[life.pose >> 2]
                    action = STAY
                    if not life.waiting and led != NO_WAY:
                        action = table.setdefault(observation, led)
                    elif not life.waiting:
                        action = table.setdefault(observation, STAY)
                    if led == NO_WAY or way.last[life.pose >> 2]:
                        target = (target + 1) % len(order)
                    observation, _, status = life.step(action)
                self._left -= life.steps
        return table

    def _changed(self, table: Table) -> Table:
        """Return the table with other ways: from somewhere on a life that it leads, some place is gone to."""
        chance, other = self._chance, dict(table)
        life = chance.choice(self.lives())
        for _ in range(chance.randrange(TRIALS) + 1):
            observation = life.begin_trial()
            if observation is None:
                return other
            turning = chance.randrange(1 + min(life.limit, 60))
            status, target = RUNNING, None
            while status == RUNNING:
                if life.waiting:
                    observation, _, status = life.step(STAY)
                    continue
                action = other.get(observation)
                if target is None and (life.steps == turning or action is None):
                    places = self._events.of_state[life.state] or self._events.everywhere
                    target = chance.choice(places) if places else None
                if target is not None:
                    way = self._ways.to(life.tables, self._program.states[life.state].listen, target)
                    led = way.actions[life.pose >> 2]
                    if led == NO_WAY:
                        target = None
                    else:
                        action = other[observation] = led
                        if way.last[life.pose >> 2]:
                            target = None
                if action is None:
                    action = other[observation] = chance.randrange(4)
                observation, _, status = life.step(action)
            self._left -= life.steps
        return other


def live_by_table(
    paradigm: ArenaParadigm, lesion: Lesion, seeds: Sequence[tuple[int, int]], effort: float
) -> list[list[Lived]]:
    """Find a table, and lead real lives by it."""
    climber = Climber(paradigm, lesion, effort, f"{seeds}")
    table, over = climber.climb(), paradigm.specification.blocks_after_judged
    lives = []
    for seed, subject in seeds:
        life = ArenaSubject(paradigm.program, climber.view, seed, subject)
        trials: list[Lived] = []
        while (observation := life.begin_trial()) is not None and life.block not in over:
            status = RUNNING
            while status == RUNNING:
                action = STAY if life.waiting else table.get(observation, STAY)
                observation, _, status = life.step(action)
            trials.append(lived_trial(life, len(trials), paradigm.specification))
        lives.append(trials)
    return lives
