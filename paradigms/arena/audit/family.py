"""The family of blind policies by name: those judged against the ceiling, and those only reported."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from functools import partial

from cheesebench.interfaces import ACTION_LETTERS, FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY
from cheesebench.paradigms.arena.audit.policies import (
    Bump,
    Cycle,
    Factory,
    Policy,
    Replay,
    Switch,
    SwitchWithin,
    Wall,
    Weighted,
    WinStayAction,
    WinStayString,
    spelt,
)

_Pool = Callable[[random.Random], list[Policy]]
#: Prefix of a fixed cycle's name, before the letters of its actions.
CYCLE = "cycle "
#: Names of turns, by eighths.
TURNS = {1: "45", 2: "90", 3: "135", 4: "180", 0: "any"}
SIDES = {"L": ROTATE_LEFT, "R": ROTATE_RIGHT}
#: Longest straight piece of the systematic cycles, and number of the random ones.
STRAIGHT, RANDOM_CYCLES = 10, 240
#: Steps without reward after which a way of moving is given up within a trial.
PATIENCE = 40


def cycles(seed: int, most: int) -> list[str]:
    """Return the names of fixed cycles: short ones, laps and zigzags, and random longer ones; ``most`` of them.

    The constant actions are always among them.
    """
    sequences = [list(actions) for length in (1, 2, 3) for actions in itertools.product(range(4), repeat=length)]
    for straight in range(1, STRAIGHT + 1):
        for turn in (1, 2, 3, 4):
            left, right = [ROTATE_LEFT] * turn, [ROTATE_RIGHT] * turn
            forward = [FORWARD] * straight
            sequences += [forward + left, forward + right, forward + left + forward + right]
            # There and back again, and then on to what is beside it.
            sequences += [forward + [ROTATE_RIGHT] * 4 + forward + right]
    chance = random.Random(f"{seed}|cycles")
    for _ in range(RANDOM_CYCLES):
        weights = chance.choice(((5, 2, 2, 0), (5, 2, 0, 0), (3, 1, 1, 1)))
        sequences.append(chance.choices(range(4), weights, k=chance.randrange(4, 24)))
    # Two that are rotations of one another differ in where they begin only; both may matter in a short trial.
    moving = (actions for actions in sequences if set(actions) != {STAY} or len(actions) == 1)
    names = list(dict.fromkeys(CYCLE + spelt(actions) for actions in moving))
    constant, others = names[: len(ACTION_LETTERS)], names[len(ACTION_LETTERS) :]
    return names if len(names) <= most else constant + chance.sample(others, most - len(constant))


def judged() -> dict[str, Factory]:
    """Return the policies that must stay under the ceiling (without the cycles)."""
    found: dict[str, Factory] = {"uniform": partial(Weighted, weights=(1, 1, 1, 1))}
    for weight in (4, 8, 16):
        found[f"forward {weight}:1:1"] = partial(Weighted, weights=(weight, 1, 1, 0))
    found |= _bumps()
    for shift in (1.0, 0.5, 0.2):
        found[f"win-stay action, shift {shift:g}"] = partial(WinStayAction, shift=shift)
    for name, pool in _pools().items():
        found[f"win-stay, lose-shift {name}"] = _switching(pool, contrary=False)
        found[f"win-stay within trials {name}"] = _switching_within(pool, contrary=False)
    for name, inner in _inner().items():
        found[f"replay, else {name}"] = _around(inner, partial(Replay, loop=False))
        found[f"replay in a loop, else {name}"] = _around(inner, partial(Replay, loop=True))
        found[f"win-stay string, else {name}"] = _around(inner, WinStayString)
    return found


def reported() -> dict[str, Factory]:
    """Return policies that remember by touch what the task asks to remember: named, not judged.

    They turn the other way after a reward: to a task that rewards alternation they are alternation, with blocked
    steps in the place of sight.
    """
    found: dict[str, Factory] = {}
    for name, pool in _pools().items():
        found[f"win-shift within trials {name}"] = _switching_within(pool, contrary=True)
        found[f"win-shift, lose-stay {name}"] = _switching(pool, contrary=True)
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
        found[f"along the wall {TURNS[eighths]} {side}"] = partial(Wall, eighths=eighths, side=turn)
    return found


def _pools() -> dict[str, _Pool]:
    """Return the sets of ways of moving that win-stay policies choose from."""
    pools: dict[str, _Pool] = {f"bump {TURNS[eighths]} L/R": _turns(eighths) for eighths in (1, 2, 3)}
    pools["bump, any turn"] = _turns(1, 2, 3, 4)
    return pools


def _turns(*eighths: int) -> _Pool:
    return lambda chance: [Bump(chance, number, side) for number in eighths for side in SIDES]


def _inner() -> dict[str, Factory]:
    found: dict[str, Factory] = {
        "uniform": partial(Weighted, weights=(1, 1, 1, 1)),
        "forward 4:1:1": partial(Weighted, weights=(4, 1, 1, 0)),
    }
    return found | {f"bump {TURNS[k]}": partial(Bump, eighths=k, side="randomly") for k in (1, 2, 3)}


def _switching(pool: _Pool, *, contrary: bool) -> Factory:
    return lambda chance: Switch(chance, pool(chance), contrary)


def _switching_within(pool: _Pool, *, contrary: bool) -> Factory:
    return lambda chance: SwitchWithin(chance, pool(chance), PATIENCE, contrary)


def _around(inner: Factory, outer: Callable[[Policy], Policy]) -> Factory:
    return lambda chance: outer(inner(chance))


def policy(name: str, chance: random.Random) -> Policy:
    """Return a new policy by its name."""
    if name.startswith(CYCLE):
        return Cycle([ACTION_LETTERS.index(letter) for letter in name.removeprefix(CYCLE)])
    return (judged() | reported())[name](chance)


def variations(seed: int) -> Iterator[list[int]]:
    """Yield random action strings without end, for a search that starts with them."""
    chance = random.Random(f"{seed}|strings")
    while True:
        yield chance.choices(range(4), (6, 2, 2, 1), k=chance.randrange(5, 30))


def mutated(actions: list[int], chance: random.Random) -> list[int]:
    """Return the string with one to three small changes: some actions in, some out, or one changed."""
    result = list(actions)
    for _ in range(chance.choice((1, 1, 2, 3))):
        kind, at = chance.random(), chance.randrange(len(result) + 1)
        if kind < 0.4:
            result[at:at] = chance.choices(range(4), (5, 2, 2, 1)) * chance.choice((1, 1, 2, 4, 8))
        elif kind < 0.7 and len(result) > 3:
            del result[at : at + chance.choice((1, 1, 2, 3))]
        elif at < len(result):
            result[at] = chance.choices(range(4), (5, 2, 2, 1))[0]
    return result[:80] or [FORWARD]
