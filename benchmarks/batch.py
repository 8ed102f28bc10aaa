"""The vector environment under random actions, resets included; steps are counted over all lanes."""

from __future__ import annotations

import common
import numpy as np

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.batch import ArenaVectorEnvironment, vector_class
from cheesebench.protocol import Specification

LANES = (1, 32, 1024)
#: Steps of a batch; with one lane as many as the lives of the others would fill.
STEPS = 400


def measure(specification: Specification) -> common.Row:
    """Return the figures of one protocol."""
    batched = vector_class(specification, ArenaParadigm(specification))
    figures: common.Row = {f"{lanes} lanes, ids: steps/s": speed(batched(lanes, observations="ids")) for lanes in LANES}
    figures[f"{LANES[-1]} lanes, strings: steps/s"] = speed(batched(LANES[-1]))
    figures[f"{LANES[-1]} lanes, ids, not compiled: steps/s"] = speed(
        batched(LANES[-1], observations="ids", compiled=False)
    )
    return figures


def speed(environment: ArenaVectorEnvironment) -> common.Times:
    """Return the time of a step of one lane."""
    lanes = environment.num_envs
    actions = np.random.default_rng(0).integers(0, 4, (STEPS, lanes))
    environment.reset(seed=1)

    def run() -> None:
        step = environment.step
        for row in actions:
            step(row)

    run()  # now everything is drawn
    return common.cpu_times(run, 20).each(STEPS * lanes)


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.report("batch", {s.name: measure(s) for s in common.specifications(options.protocols)}, options.json)
