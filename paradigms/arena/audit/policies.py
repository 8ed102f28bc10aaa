"""Policies that never observe. If they succeed, a protocol does not need perception.

They are told the reward of the last step, and whether FORWARD was blocked (which not
every view shows).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cheesebench.interfaces import (
    ACTION_LETTERS,
    FORWARD,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    STAY,
)

#: A reward above this is a win. Smaller ones count as no reward.
WIN = 0.05
#: Maximum number of actions since the last reward that ``WinStayString`` remembers.
MEMORY = 60


class Policy:
    """One subject that does not observe. It plays all trials of a life."""

    #: Whether ``act`` uses ``bumped``, which takes time to compute.
    feels = False

    def begin(self) -> None:
        """Begin a trial."""

    def act(self, bumped: bool, reward: float) -> int:
        """Return the next action. ``bumped`` and ``reward`` are the results of the last
        action.
        """
        raise NotImplementedError

    def end(self, total: float) -> None:
        """End a trial with this total reward."""


Factory = Callable[[random.Random], Policy]


class Weighted(Policy):
    """Independent actions with fixed weights (F L R S)."""

    def __init__(self, chance: random.Random, weights: Sequence[int]) -> None:
        self._actions = [
            action for action, weight in enumerate(weights) for _ in range(weight)
        ]
        self._random = chance.random

    def act(self, bumped: bool, reward: float) -> int:
        return self._actions[int(self._random() * len(self._actions))]


class Cycle(Policy):
    """A fixed cycle of actions, restarted in every trial."""

    def __init__(self, actions: Sequence[int]) -> None:
        self._actions = tuple(actions)
        self._next = itertools.cycle(self._actions).__next__

    def begin(self) -> None:
        self._next = itertools.cycle(self._actions).__next__

    def act(self, bumped: bool, reward: float) -> int:
        return self._next()


class Bump(Policy):
    """Goes straight on. When blocked, it turns ``eighths`` times to one side, or, if
    ``eighths`` is 0, one to four times at random. ``jitter`` is the rate of additional
    random turns.
    """

    feels = True

    def __init__(
        self, chance: random.Random, eighths: int, side: str, jitter: float = 0.0
    ) -> None:
        self._chance, self._eighths, self._side, self._jitter = (
            chance,
            eighths,
            side,
            jitter,
        )
        self._turns: list[int] = []
        self._last = ROTATE_RIGHT

    def begin(self) -> None:
        self._turns = []

    def act(self, bumped: bool, reward: float) -> int:
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


class Wall(Policy):
    """Follows a wall by touch: turns towards it after a step, and away from it when
    blocked.
    """

    feels = True

    def __init__(self, chance: random.Random, eighths: int, side: int) -> None:
        self._eighths, self._side = eighths, side
        self._plan: list[int] = []

    def begin(self) -> None:
        self._plan = [FORWARD]

    def act(self, bumped: bool, reward: float) -> int:
        if not self._plan:
            turn = ROTATE_LEFT + ROTATE_RIGHT - self._side if bumped else self._side
            self._plan = [FORWARD, *[turn] * self._eighths]
        return self._plan.pop()


class WinStayAction(Policy):
    """Repeats an action after a reward above ``WIN``. It changes the action after a
    negative reward and, with probability ``shift``, after any other.
    """

    def __init__(self, chance: random.Random, shift: float) -> None:
        self._chance, self._shift, self._action = chance, shift, chance.randrange(4)

    def act(self, bumped: bool, reward: float) -> int:
        if reward <= WIN and (reward < 0 or self._chance.random() < self._shift):
            self._action = (self._action + self._chance.randrange(1, 4)) % 4
        return self._action


class Replay(Policy):
    """Replays the actions of the best trial so far, with ``loop`` again and again. It
    acts as ``inner`` does until a trial earns ``WIN``, and, without ``loop``, after the
    last of these actions.
    """

    feels = True

    def __init__(self, inner: Policy, loop: bool) -> None:
        self._inner, self._loop = inner, loop
        self._good: list[int] = []
        self._played: list[int] = []
        self._best = WIN

    def begin(self) -> None:
        self._inner.begin()
        self._played = []

    def act(self, bumped: bool, reward: float) -> int:
        number = len(self._played)
        if self._good and (self._loop or number < len(self._good)):
            action = self._good[number % len(self._good)]
        else:
            action = self._inner.act(bumped, reward)
        self._played.append(action)
        return action

    def end(self, total: float) -> None:
        if total >= self._best - 1e-6:
            self._best, self._good = max(total, self._best), self._played


class WinStayString(Policy):
    """Repeats the actions that led to the last reward (from the reward before it, or
    from the start of the trial), until two rounds of them earn no reward.
    """

    feels = True

    def __init__(self, inner: Policy) -> None:
        self._inner = inner
        self._good: list[int] = []
        self._since: list[int] = []
        self._at = 0

    def begin(self) -> None:
        """Begin a trial. The actions to repeat are kept from the previous trial."""
        self._inner.begin()
        self._since, self._at = [], 0

    def act(self, bumped: bool, reward: float) -> int:
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
    return "".join(ACTION_LETTERS[action] for action in actions)


# -- names of policies


#: Prefix of a fixed cycle's name, before the letters of its actions.
CYCLE = "cycle "
#: Names of turns, by eighths of a circle (0: a random number of them).
TURNS = {1: "45", 2: "90", 3: "135", 4: "180", 0: "any"}
SIDES = {"L": ROTATE_LEFT, "R": ROTATE_RIGHT}
#: ``STRAIGHT``: length of the longest straight run in systematic cycles.
#: ``RANDOM_CYCLES``: number of random cycles.
STRAIGHT, RANDOM_CYCLES = 10, 240


def cycles(seed: int, most: int) -> list[str]:
    """Return the names of at most ``most`` fixed cycles: short ones, laps and zigzags,
    and random longer ones.

    The constant actions are always included.
    """
    sequences = [
        list(actions)
        for length in (1, 2, 3)
        for actions in itertools.product(range(4), repeat=length)
    ]
    for straight in range(1, STRAIGHT + 1):
        for turn in (1, 2, 3, 4):
            left, right = [ROTATE_LEFT] * turn, [ROTATE_RIGHT] * turn
            forward = [FORWARD] * straight
            sequences += [
                forward + left,
                forward + right,
                forward + left + forward + right,
            ]
            # Go forward and back, then turn to the place beside this one.
            sequences += [forward + [ROTATE_RIGHT] * 4 + forward + right]
    chance = random.Random(f"{seed}|cycles")
    for _ in range(RANDOM_CYCLES):
        weights = chance.choice(((5, 2, 2, 0), (5, 2, 0, 0), (3, 1, 1, 1)))
        sequences.append(chance.choices(range(4), weights, k=chance.randrange(4, 24)))
    # All rotations of a cycle are kept: they differ only in where they begin, but that
    # matters in a short trial.
    moving = (
        actions for actions in sequences if set(actions) != {STAY} or len(actions) == 1
    )
    names = list(dict.fromkeys(CYCLE + spelt(actions) for actions in moving))
    constant, others = names[: len(ACTION_LETTERS)], names[len(ACTION_LETTERS) :]
    return (
        names
        if len(names) <= most
        else constant + chance.sample(others, most - len(constant))
    )


def judged() -> dict[str, Factory]:
    """Return the policies that must stay under the ceiling, except the cycles."""
    found: dict[str, Factory] = {"uniform": partial(Weighted, weights=(1, 1, 1, 1))}
    for weight in (4, 8, 16):
        found[f"forward {weight}:1:1"] = partial(Weighted, weights=(weight, 1, 1, 0))
    found |= _bumps()
    for shift in (1.0, 0.5, 0.2):
        found[f"win-stay action, shift {shift:g}"] = partial(WinStayAction, shift=shift)
    for name, inner in _inner().items():
        found[f"replay, else {name}"] = _around(inner, partial(Replay, loop=False))
        found[f"replay in a loop, else {name}"] = _around(
            inner, partial(Replay, loop=True)
        )
        found[f"win-stay string, else {name}"] = _around(inner, WinStayString)
    return found


def _bumps() -> dict[str, Factory]:
    found: dict[str, Factory] = {}
    for eighths, degrees in TURNS.items():
        for side in ("L", "R", "alternately", "randomly"):
            found[f"bump {degrees} {side}"] = partial(Bump, eighths=eighths, side=side)
        for jitter in (0.05, 0.1, 0.2):
            name = f"bump {degrees} randomly, jitter {jitter:g}"
            found[name] = partial(Bump, eighths=eighths, side="randomly", jitter=jitter)
    for eighths, (side, turn) in itertools.product((1, 2), SIDES.items()):
        found[f"along the wall {TURNS[eighths]} {side}"] = partial(
            Wall, eighths=eighths, side=turn
        )
    return found


def _inner() -> dict[str, Factory]:
    found: dict[str, Factory] = {
        "uniform": partial(Weighted, weights=(1, 1, 1, 1)),
        "forward 4:1:1": partial(Weighted, weights=(4, 1, 1, 0)),
    }
    return found | {
        f"bump {TURNS[k]}": partial(Bump, eighths=k, side="randomly") for k in (1, 2, 3)
    }


def _around(inner: Factory, outer: Callable[[Policy], Policy]) -> Factory:
    return lambda chance: outer(inner(chance))


def policy(name: str, chance: random.Random) -> Policy:
    if name.startswith(CYCLE):
        return Cycle(
            [ACTION_LETTERS.index(letter) for letter in name.removeprefix(CYCLE)]
        )
    return judged()[name](chance)


def variations(seed: int) -> Iterator[list[int]]:
    """Yield random action strings without end, as starting points of a search."""
    chance = random.Random(f"{seed}|strings")
    while True:
        yield chance.choices(range(4), (6, 2, 2, 1), k=chance.randrange(5, 30))


def mutated(actions: list[int], chance: random.Random) -> list[int]:
    """Return the actions with up to three small changes (insertions, removals or
    replacements), cut to at most 80 actions.
    """
    result = list(actions)
    for _ in range(chance.choice((1, 1, 2, 3))):
        kind, at = chance.random(), chance.randrange(len(result) + 1)
        if kind < 0.4:
            result[at:at] = chance.choices(range(4), (5, 2, 2, 1)) * chance.choice(
                (1, 1, 2, 4, 8)
            )
        elif kind < 0.7 and len(result) > 3:
            del result[at : at + chance.choice((1, 1, 2, 3))]
        elif at < len(result):
            result[at] = chance.choices(range(4), (5, 2, 2, 1))[0]
    return result[:80] or [FORWARD]
