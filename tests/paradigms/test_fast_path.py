"""The fast path of a step equals the slow path without an event: in shipped protocols,
the zoo, and changed ones.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cheesebench.errors import ProtocolError, StepAfterEndError
from cheesebench.interfaces import RUNNING
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from fuzz.protocols import Protocols
from tests.paradigms.zoo import ZOO, load

SHIPPED = Catalogue(installed_plugins().protocol_directories)
#: All shipped protocols, including the classics.
FILES = SHIPPED.files | {
    path.name.split(".")[0]: path
    for path in sorted(SHIPPED.folders["classics"].glob("*.protocol.yaml"))
}
changes = cache(Protocols)
#: Weights of the actions, for subjects that get somewhere.
WEIGHTS = [(1, 1, 1, 1), (6, 1, 1, 0), (3, 1, 0, 1), (0, 0, 0, 1)]


class Slow(ArenaSubject):
    """A subject that evaluates all clauses on every step, draws every picture anew, and
    is never copied.
    """

    def __init__(self, specification: Specification, *arguments: Any) -> None:
        program = Program(specification)
        program.states = {
            name: replace(one, busy=True, steady=False)
            for name, one in program.states.items()
        }
        super().__init__(program, *arguments)

    def _look_around(self) -> None:
        super()._look_around()
        self._frames = [None] * len(self._frames)


class Fast(ArenaSubject):
    """A subject with copies on the way: one continues alone, the other one like the
    subject.
    """

    def __init__(self, specification: Specification, *arguments: Any) -> None:
        super().__init__(Program(specification), *arguments)
        self._chance, self._copied = random.Random(0), False

    def step(self, action: int) -> tuple[str, float, int]:
        if self._copied or self._chance.random() > 0.05:
            return super().step(action)
        other, same = self.twin(), self.twin()
        other._copied = same._copied = True
        with suppress(ProtocolError, StepAfterEndError):
            for _ in range(4):
                other.step(self._chance.randrange(4))
        expected = same.step(action)
        result = super().step(action)
        assert repr(result) == repr(expected)
        return result


def play(
    kind: type[Slow | Fast], specification: Specification, seed: int, steps: int
) -> list[Any]:
    """Play some trials; return observations, rewards and records, or the protocol's
    mistake that ended them.
    """
    chance, lived = random.Random(seed), list[Any]()
    weights = chance.choice(WEIGHTS)
    try:
        life = kind(specification, installed_plugins().view("ascii_2d"), seed, seed % 7)
        while len(lived) < steps:
            lived.append(life.begin_next_trial())
            status = RUNNING
            while status == RUNNING and len(lived) < steps:
                [action] = chance.choices(range(4), weights)
                lived.append(life.step(action))
                status = lived[-1][2]
            if status != RUNNING:
                lived.append((life.result(), life.life_over))
    except ProtocolError as error:
        lived.append(str(error))
    return lived


def assert_same(specification: Specification, seed: int, steps: int) -> None:
    # Compared as text, because NaN does not equal itself, and records distinguish 1,
    # 1.0 and True.
    assert repr(play(Fast, specification, seed, steps)) == repr(
        play(Slow, specification, seed, steps)
    )


@pytest.mark.parametrize("name", [*FILES, *ZOO])
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**40))
def test_nothing_differs_in_a_known_protocol(name: str, seed: int) -> None:
    assert_same(
        load(name) if name in ZOO else with_arena(SHIPPED.load(FILES[name])), seed, 600
    )


@pytest.mark.parametrize("number", range(25))
def test_nothing_differs_in_a_changed_protocol(number: int) -> None:
    changed = changes()
    specification = changed.load(changed.draw(random.Random(number)))
    if specification is not None:
        assert_same(specification, number, 300)
