"""Many lanes at once: what the scalar kernel, numpy and compiled code make of the same lives is equal to the bit."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cheesebench.errors import ProtocolError
from cheesebench.paradigms.arena.batch import OBSERVATIONS, ArenaVectorEnvironment, vector_class
from cheesebench.paradigms.arena.environment import ArenaEnvironment, environment_class
from cheesebench.paradigms.arena.jit.vocabulary import UntranslatableError
from cheesebench.protocol import Specification
from fuzz.protocols import ProtocolCases, of_case

T = TypeVar("T")
#: A scalar class and a vector class which share one compiled paradigm.
Classes = tuple[type[ArenaEnvironment], type[ArenaVectorEnvironment]]
#: Most steps of a life.
STEPS = 150
#: How often each action is taken, for subjects that get somewhere.
WEIGHTS = [(1, 1, 1, 1), (6, 1, 1, 0), (3, 1, 0, 1), (0, 0, 0, 1)]


class Kernel(ProtocolCases):
    """Cases are protocols, with a seed for lanes and actions."""

    name = "kernel"

    def __init__(self) -> None:
        super().__init__()
        self._ways = (False, True) if find_spec("numba") else (False,)
        self.warm_up()

    def check(self, case: bytes) -> None:
        """Step the lanes in each way, beside scalar environments."""
        seed, text = of_case(case)
        specification = self._protocols.load(text)
        if specification is None:
            return
        chance = random.Random(seed)
        plan = {
            "count": chance.randint(1, 4),
            "first": chance.randint(0, 9),
            "seed": seed,
            "luck": seed,
            "weights": chance.choice(WEIGHTS),
            "steps": STEPS,
            "again": chance.randint(0, 2 * STEPS),
            "observations": chance.choice(OBSERVATIONS),
        }
        kinds = classes_of(specification)
        for compiled in self._ways:
            assert_same_lives(kinds, plan, compiled)


def classes_of(specification: Specification) -> Classes:
    """Return the scalar class and the vector class of a protocol."""
    scalar = environment_class(specification)
    return scalar, vector_class(specification, scalar.paradigm)


def lane(infos: dict[str, Any], number: int) -> dict[str, Any]:
    """Return what the infos of a batch say of one lane."""
    return {
        key: lane(value, number) if isinstance(value, dict) else value[number]
        for key, value in infos.items()
        if not key.startswith("_") and infos[f"_{key}"][number]
    }


class Lanes:
    """Scalar environments, one for each lane, reset in the step after the end of a trial."""

    def __init__(self, scalar: type[ArenaEnvironment], count: int, first: int) -> None:
        self.environments = [scalar(subject=first + number) for number in range(count)]
        self.over = [False] * count

    def reset(self, seed: int | None) -> list[tuple[Any, ...]]:
        """Begin the next trial of each; with a seed, a new life."""
        self.over = [False] * len(self.environments)
        return [environment.reset(seed=seed) for environment in self.environments]

    def step(self, actions: NDArray[Any]) -> list[tuple[Any, ...]]:
        """Execute an action in each."""
        found: list[tuple[Any, ...]] = []
        for number, (environment, action) in enumerate(zip(self.environments, actions.tolist(), strict=True)):
            if self.over[number]:
                observation, info = environment.reset()
                found.append((observation, 0.0, False, False, info))
            else:
                found.append(environment.step(action))
            self.over[number] = found[-1][2] or found[-1][3]
        return found


def assert_equal(vector: ArenaVectorEnvironment, batched: tuple[Any, ...], expected: list[tuple[Any, ...]]) -> None:
    """Check what a batch returned against what the scalar environments did."""
    observations, *arrays, infos = batched
    texts = observations if isinstance(observations, tuple) else vector.texts[observations]
    for number, (observation, *scalars, info) in enumerate(expected):
        assert texts[number] == observation
        assert [array[number] for array in arrays] == scalars
        assert lane(infos, number) == info
    assert_types(infos, [(number, scalars[-1]) for number, (_, *scalars) in enumerate(expected)])


def assert_types(infos: dict[str, Any], expected: list[tuple[int, dict[str, Any]]]) -> None:
    """Check that 1, 1.0 and True, which are equal, are told apart: by the array's kind, or in an array of objects."""
    for key, array in infos.items():
        if key.startswith("_"):
            assert array.dtype == bool
            continue
        values = [(number, info[key]) for number, info in expected if key in info]
        if isinstance(array, dict):
            assert_types(array, values)
            continue
        if not values:  # as `state` where every lane begins a trial
            continue
        kinds = {type(value) for _, value in values}
        wanted = "i" if kinds == {int} else "f" if kinds <= {int, float} else "b" if kinds == {bool} else "O"
        assert array.dtype.kind == wanted, key
        if wanted == "O":
            assert [type(array[number]) for number, _ in values] == [type(value) for _, value in values], key


def attempt(call: Callable[..., T], *arguments: Any, **options: Any) -> T | str:
    """Return what a call returns, or what a mistake of the protocol's author is told."""
    try:
        return call(*arguments, **options)
    except ProtocolError as error:
        return str(error)


def lanes_of(kind: type[ArenaVectorEnvironment], count: int, compiled: bool, **options: Any) -> ArenaVectorEnvironment:
    """Return a vector environment; what cannot be compiled (see ``UNTRANSLATABLE``) is led by its lives."""
    with contextlib.suppress(UntranslatableError):
        return kind(count, compiled=compiled, **options)
    return kind(count, compiled=False, **options)


def assert_same_lives(kinds: Classes, plan: dict[str, Any], compiled: bool) -> str | None:
    """Check that lanes live as scalar environments do, to the end of the plan or the first mistake; return that one."""
    count, first, weights = plan["count"], plan["first"], np.array(plan["weights"], float)
    random = np.random.default_rng(plan["luck"])
    subjects = Lanes(kinds[0], count, first)
    vector = lanes_of(kinds[1], count, compiled, subject=first, observations=plan["observations"])
    expected: Any = attempt(subjects.reset, plan["seed"])
    batched: Any = attempt(vector.reset, seed=plan["seed"])
    for step in range(plan["steps"] + 1):
        if isinstance(expected, str):
            assert batched == expected
            return expected
        assert not isinstance(batched, str), batched
        assert_equal(vector, batched, expected)
        if step == plan["again"]:  # breaks the trial off
            expected, batched = attempt(subjects.reset, None), attempt(vector.reset)
        else:
            actions = random.choice(4, count, p=weights / weights.sum())
            expected, batched = attempt(subjects.step, actions), attempt(vector.step, actions)
    return None
