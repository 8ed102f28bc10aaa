"""Measures the steps of the Gymnasium class under random actions, including resets: by
itself, and in the wrappers of ``gymnasium.make``.
"""

from __future__ import annotations

import random
from typing import Any

import common
import gymnasium

from cheesebench.paradigms.arena.environment import environment_class
from cheesebench.protocol import Specification

STEPS = 200_000


def measure(specification: Specification) -> common.Row:
    """Return the figures of one protocol."""
    environment = environment_class(specification)()
    made = gymnasium.make(
        "cheesebench/Protocol-v1", protocol=specification.path, disable_env_checker=True
    )
    return {"class steps/s": speed(environment), "make() steps/s": speed(made)}


def speed(environment: gymnasium.Env[Any, Any]) -> common.Times:
    """Return the time of a step."""
    actions = random.Random(0).choices(range(4), k=STEPS)
    environment.reset(seed=1)

    def run() -> None:
        step = environment.step
        environment.reset()
        for action in actions:
            _, _, terminated, truncated, _ = step(action)
            if terminated or truncated:
                environment.reset()

    run()  # From here on, all pictures are cached.
    return common.cpu_times(run, 10).each(STEPS)


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.report(
        "gymnasium",
        {s.name: measure(s) for s in common.specifications(options.protocols)},
        options.json,
    )
