"""Policies that never observe: their success is no evidence of perception.

They get the reward of the last step and whether FORWARD was blocked, which not every view shows.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from cheesebench.interfaces import ACTION_LETTERS, FORWARD, ROTATE_LEFT, ROTATE_RIGHT

#: Rewards above this are wins; smaller ones are step costs.
WIN = 0.05
#: Most actions between two rewards that are kept for being replayed.
MEMORY = 60


class Policy(Protocol):
    """One subject that does not observe; it plays all trials of a life."""

    feels: bool
    """Whether ``act`` uses ``bumped``; finding out costs time."""

    def begin(self) -> None:
        """A trial begins."""
        ...

    def act(self, bumped: bool, reward: float) -> int:
        """Return the next action; ``bumped`` and ``reward`` are results of the last one."""
        ...

    def end(self, total: float) -> None:
        """The trial is over; ``total`` is its reward."""
        ...


Factory = Callable[[random.Random], Policy]


class Blind:
    """Base of all policies here: no memory of trials."""

    feels = False

    def begin(self) -> None:
        """Nothing to prepare."""

    def end(self, total: float) -> None:
        """Nothing to learn."""


class Weighted(Blind):
    """Independent actions with fixed weights (F L R S)."""

    def __init__(self, chance: random.Random, weights: Sequence[int]) -> None:
        self._actions = [action for action, weight in enumerate(weights) for _ in range(weight)]
        self._random = chance.random

    def act(self, bumped: bool, reward: float) -> int:
        """Draw an action."""
        return self._actions[int(self._random() * len(self._actions))]


class Cycle(Blind):
    """A fixed cycle of actions, restarted in every trial."""

    def __init__(self, actions: Sequence[int]) -> None:
        self._actions = tuple(actions)
        self._next = itertools.cycle(self._actions).__next__

    def begin(self) -> None:
        """Start with the first one."""
        self._next = itertools.cycle(self._actions).__next__

    def act(self, bumped: bool, reward: float) -> int:
        """Return the next of the cycle."""
        return self._next()


class Bump(Blind):
    """Straight on; when blocked, turn by ``eighths`` (0: by one to four, drawn) to a side; jitter turns by itself."""

    feels = True

    def __init__(self, chance: random.Random, eighths: int, side: str, jitter: float = 0.0) -> None:
        self._chance, self._eighths, self._side, self._jitter = chance, eighths, side, jitter
        self._turns: list[int] = []
        self._last = ROTATE_RIGHT

    def begin(self) -> None:
        """Discard the planned actions."""
        self._turns = []

    def act(self, bumped: bool, reward: float) -> int:
        """Turn or go on."""
        if bumped:
            self._last = self._choose()
            self._turns = [self._last] * (self._eighths or self._chance.randrange(1, 5))
        elif not self._turns and self._jitter and self._chance.random() < self._jitter:
            self._turns = [self._chance.choice((ROTATE_LEFT, ROTATE_RIGHT))]
        return self._turns.pop() if self._turns else FORWARD

    def _choose(self) -> int:
        if self._side == "L":
            return ROTATE_LEFT
        if self._side == "R":
            return ROTATE_RIGHT
        if self._side == "alternately":
            return ROTATE_LEFT + ROTATE_RIGHT - self._last
        return self._chance.choice((ROTATE_LEFT, ROTATE_RIGHT))


class Wall(Blind):
    """Follows a wall by touch: turns towards it after every step that worked, away from it when blocked."""

    feels = True

    def __init__(self, chance: random.Random, eighths: int, side: int) -> None:
        self._eighths, self._side = eighths, side
        self._plan: list[int] = []

    def begin(self) -> None:
        """Start with a step."""
        self._plan = [FORWARD]

    def act(self, bumped: bool, reward: float) -> int:
        """Turn or go on."""
        if not self._plan:
            turn = ROTATE_LEFT + ROTATE_RIGHT - self._side if bumped else self._side
            self._plan = [FORWARD, *[turn] * self._eighths]
        return self._plan.pop()


class WinStayAction(Blind):
    """Repeats an action while it costs nothing; takes another after a loss (and with ``shift`` after nothing)."""

    def __init__(self, chance: random.Random, shift: float) -> None:
        self._chance, self._shift, self._action = chance, shift, chance.randrange(4)

    def act(self, bumped: bool, reward: float) -> int:
        """Stay or shift."""
        if reward <= WIN and (reward < 0 or self._chance.random() < self._shift):
            self._action = (self._action + self._chance.randrange(1, 4)) % 4
        return self._action


class Switch(Blind):
    """Win-stay, lose-shift from trial to trial between ways of moving; ``contrary`` is win-shift, lose-stay.

    A trial is won if it earned as much as the best one so far, and anything at all.
    """

    feels = True

    def __init__(self, chance: random.Random, pool: Sequence[Policy], contrary: bool = False) -> None:
        self._chance, self._pool, self._contrary = chance, pool, contrary
        self._now, self._best = chance.randrange(len(pool)), -1e300

    def begin(self) -> None:
        """Begin with the way chosen."""
        self._pool[self._now].begin()

    def act(self, bumped: bool, reward: float) -> int:
        """Move that way."""
        return self._pool[self._now].act(bumped, reward)

    def end(self, total: float) -> None:
        """Stay or shift."""
        self._best = max(self._best, total)
        won = total > WIN and total >= self._best - 1e-6
        if won == self._contrary:
            self._now = (self._now + self._chance.randrange(1, len(self._pool))) % len(self._pool)


class SwitchWithin(Blind):
    """Within a trial: a way of moving is kept while it pays, and drawn anew after ``patience`` steps without reward.

    ``contrary`` takes another one after each reward.
    """

    feels = True

    def __init__(self, chance: random.Random, pool: Sequence[Policy], patience: int, contrary: bool = False) -> None:
        self._chance, self._pool, self._patience, self._contrary = chance, pool, patience, contrary
        self._now = self._unpaid = 0

    def begin(self) -> None:
        """Start with the way that was last used."""
        self._unpaid = 0
        self._pool[self._now].begin()

    def act(self, bumped: bool, reward: float) -> int:
        """Move, after a change where it is time for one."""
        self._unpaid += 1
        if reward > WIN:
            self._unpaid = 0
            if self._contrary:
                self._change()
        elif self._unpaid > self._patience:
            self._unpaid = 0
            self._change()
        return self._pool[self._now].act(bumped, reward)

    def _change(self) -> None:
        self._now = (self._now + self._chance.randrange(1, len(self._pool))) % len(self._pool)
        self._pool[self._now].begin()


class Replay(Blind):
    """Plays the actions of the last trial that earned most so far again, then (or before) moves as ``inner`` does."""

    feels = True

    def __init__(self, inner: Policy, loop: bool) -> None:
        self._inner, self._loop = inner, loop
        self._good: list[int] = []
        self._played: list[int] = []
        self._best = WIN

    def begin(self) -> None:
        """Start the string from its beginning."""
        self._inner.begin()
        self._played = []

    def act(self, bumped: bool, reward: float) -> int:
        """Return the next of the string, or what ``inner`` would do."""
        number = len(self._played)
        if self._good and (self._loop or number < len(self._good)):
            action = self._good[number % len(self._good)]
        else:
            action = self._inner.act(bumped, reward)
        self._played.append(action)
        return action

    def end(self, total: float) -> None:
        """Keep the string if it was as good as the best."""
        if total >= self._best - 1e-6:
            self._best, self._good = max(total, self._best), self._played


class WinStayString(Blind):
    """Within a trial: repeats the actions between the last two rewards until they earn nothing any more."""

    feels = True

    def __init__(self, inner: Policy) -> None:
        self._inner = inner
        self._good: list[int] = []
        self._since: list[int] = []
        self._at = 0

    def begin(self) -> None:
        """The string is kept from trial to trial."""
        self._inner.begin()
        self._since, self._at = [], 0

    def act(self, bumped: bool, reward: float) -> int:
        """Return the next of the string, or what ``inner`` would do."""
        if reward > WIN:
            self._good, self._since, self._at = self._since, [], 0
        elif self._at >= 2 * len(self._good):
            self._good, self._at = [], 0
        if self._good:
            action = self._good[self._at % len(self._good)]
            self._at += 1
        else:
            action = self._inner.act(bumped, reward)
        self._since = [*self._since, action][-MEMORY:]
        return action


def spelt(actions: Sequence[int]) -> str:
    """Return actions as letters."""
    return "".join(ACTION_LETTERS[action] for action in actions)
