"""Runs random agents in the published package's environments; executed by the Python of
an environment that has it.

Standard input: ``{"task": CLASS, "seeds": [first, last], "trials": N, "steps": N,
"rounded": bool}``. Standard output: successes of every seed. Pictures are not drawn,
because a random agent does not look. ``rounded`` takes sines and cosines to 12 places,
as driver.py does.
"""

# The imported module is another package of our name, which type checkers cannot see
# here.
# mypy: ignore-errors

import json
import random
import sys

import driver
import numpy as np
from cheesebench.environments import base_env

from cheesebench import environments


def successes(task, seed, trials, steps):
    """Return the number of successful trials in a fresh environment, counted like the
    package's runner.
    """
    np.random.seed(seed)
    chance = random.Random(seed)
    env = getattr(environments, task)(view_mode=base_env.ViewMode.ASCII_2D)
    env._render_ascii_2d = lambda *a, **k: ""
    env.reset()
    found = 0
    for trial in range(trials):
        if trial and env.is_done:
            env.session.criterion_met = False
            if env.session.current_trial >= env.session.max_trials:
                env.session.max_trials = env.session.current_trial + 100
            env._start_trial()
        number = env.session.current_trial
        for _ in range(steps):
            env.step(chance.choice(driver.ACTIONS))
            if env.is_done or env.session.current_trial != number:
                found += bool(env.session.trial_results[-1].success)
                break
    return found


def main():
    asked = json.load(sys.stdin)
    if not asked["rounded"]:
        base_env.np = np
    first, last = asked["seeds"]
    told = [
        successes(asked["task"], seed, asked["trials"], asked["steps"])
        for seed in range(first, last)
    ]
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
