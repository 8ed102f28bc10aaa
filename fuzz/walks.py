"""Random walks through what the loader has accepted: only a mistake of the protocol's author may end one."""

from __future__ import annotations

import random

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import RUNNING, Paradigm, SubjectEnvironment, View
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import BaseSpecification

#: Trials and steps of a trial that an accepted protocol is lived for.
TRIALS, STEPS = 3, 60


def walk(specification: BaseSpecification, view: View, seed: int = 0, subject: int = 0) -> list[tuple[str, float, int]]:
    """Return what a subject sees and is given that acts at random, for some trials: observation, reward, status.

    A trial that is longer than STEPS ends the walk, and so does a mistake of the author, which is told in a sentence of
    one line. Whatever else is raised is a fault of the program. What is not walked through has an empty walk.
    """
    chance = random.Random(seed)
    lived: list[tuple[str, float, int]] = []
    try:
        paradigm = installed_plugins().compile(specification)
        if not isinstance(paradigm, Paradigm):
            return lived
        life = paradigm.environment(view, seed, subject)
        for _ in range(TRIALS):
            if (observation := life.begin_trial()) is None:
                break
            lived.append((observation, 0.0, RUNNING))
            if not _trial(life, chance, lived):
                break
    except ProtocolError as error:
        text = str(error)
        assert text.endswith("."), f"no sentence: {text}"
        assert "\n" not in text, text
    return lived


def _trial(life: SubjectEnvironment, chance: random.Random, lived: list[tuple[str, float, int]]) -> bool:
    """Live a trial; return whether it has ended."""
    for _ in range(STEPS):
        lived.append(life.step(chance.randrange(4)))
        if lived[-1][2] != RUNNING:
            life.result()
            return True
    return False
