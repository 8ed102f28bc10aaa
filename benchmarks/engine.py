"""Measures the engine alone, under random actions in ascii_2d: loading, compiling,
beginning trials, and stepping.

Steps include the resets between trials. ``reset`` is the median of begin_trial. Each
figure is the best of several repetitions.
"""

from __future__ import annotations

import random
import statistics
import time

import common

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification, load_protocol

STEPS = 300_000
RESETS = 600


def measure(specification: Specification) -> common.Row:
    """Return the figures of one protocol."""
    view = installed_plugins().view("ascii_2d")

    def first_trial() -> None:
        ArenaSubject(ArenaParadigm(specification).program, view, 0, 0).begin_trial()

    life = ArenaSubject(ArenaParadigm(specification).program, view, 1, 0)
    actions = random.Random(0).choices(range(4), k=STEPS)
    run(life, actions)  # From here on, all pictures are cached.
    return {
        "steps/s": common.cpu_times(lambda: run(life, actions)).each(STEPS),
        "reset us": common.Times(
            tuple(middle_reset_time(life) for _ in range(common.REPETITIONS))
        ),
        "load ms": common.cpu_times(lambda: load_protocol(specification.path)),
        "compile ms": common.cpu_times(first_trial),
    }


def run(life: ArenaSubject, actions: list[int]) -> None:
    """Take these steps, through as many trials as they need."""
    step = life.step
    life.begin_next_trial()
    for action in actions:
        if step(action)[2]:
            life.begin_next_trial()


def middle_reset_time(life: ArenaSubject) -> float:
    """Return the median time for beginning the next trial, in seconds."""
    times = []
    for _ in range(RESETS):
        start = time.perf_counter()
        life.begin_next_trial()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.report(
        "engine",
        {s.name: measure(s) for s in common.specifications(options.protocols)},
        options.json,
    )
