"""Lives in every protocol of the zoo, trial by trial."""

from __future__ import annotations

import random
from collections.abc import Iterator

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import RUNNING
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from tests.paradigms.zoo import ZOO, load
from tests.stored import check_stored

TRIALS, SUBJECTS = 5, 2


def led(name: str, subject: int) -> Iterator[str]:
    """Lead the first trials of a life at random, mostly forward."""
    program = ArenaParadigm(load(name)).program
    life = ArenaSubject(program, installed_plugins().view("ascii_2d"), 5, subject)
    chance = random.Random(f"{name} {subject}")
    for _ in range(TRIALS):
        try:
            if life.begin_trial() is None:
                return
            total, status = 0.0, RUNNING
            while status == RUNNING:
                action = chance.choices(range(4), (5, 2, 2, 1))[0]
                _, reward, status = life.step(action)
                total += reward
        except ProtocolError as error:
            yield f"  {type(error).__name__}"
            return
        one = life.result()
        counts = {key: value for key, value in one.counters.items() if value}
        measures = {key: shown(value) for key, value in one.measures.items()}
        yield (
            f"  {subject} {one.block} {one.session}: {one.outcome} {one.success} "
            f"{one.compared} {life.steps} {total:.6g} {one.path_length} {one.bumps} {counts} {measures}"
        )


def shown(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


def test_lives_in_the_zoo_are_compared_with_what_is_stored() -> None:
    lines = []
    for name in ZOO:
        lines.append(name)
        for subject in range(SUBJECTS):
            lines += led(name, subject)
    check_stored("lives.txt", "\n".join(lines) + "\n")
