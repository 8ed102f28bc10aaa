"""Plays given actions in the published package and prints the results. The Python of an
environment with the package executes this file.

Reads one JSON object from standard input: ``task``, the name of a class; ``pictures``,
whether to return pictures unchanged; ``lives``, each a list of trials, each a dict of
``start`` (what was drawn for it) and ``actions``. Writes for every trial the picture at
its start and a list of steps: reward, whether the trial ended, its success, and the
picture.
"""

# The imported module is another package of our name, which type checkers cannot see
# here.
# mypy: ignore-errors

import hashlib
import json
import sys
from functools import lru_cache

import numpy as np
from cheesebench.environments import base_env

from cheesebench import environments

HEADINGS = ["E", "NE", "N", "NW", "W", "SW", "S", "SE"]
#: The package's numbers for our four actions.
ACTIONS = [0, 2, 3, 7]


class Rounded:
    """numpy without the rounding errors of sine and cosine (one of the allowed
    differences).
    """

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def cos(angle):
        return round(float(np.cos(angle)), 12) + 0.0

    @staticmethod
    def sin(angle):
        return round(float(np.sin(angle)), 12) + 0.0


base_env.np = Rounded()


def turn(env, start):
    env.agent.angle = HEADINGS.index(start["heading"])


def star(env, start):
    env.goal_arm = ["goal_e", "goal_n", None, "goal_sw", "goal_s"].index(start["goal"])
    env.goal_x, env.goal_y = env.arm_ends[env.goal_arm]


def dnms(env, start):
    env.sample_stimulus = "●■".index(start["shown"])
    env.choice_stimuli = ["●■".index(start["on_left"]), "●■".index(start["on_right"])]
    env.correct_choice = ["left", "right"].index(start["novel"])


def operant(env, start):
    env.active_lever = ["left_lever", "right_lever"].index(start["active"])


def shuttle(env, start):
    env.current_chamber = env.shock_chamber = start["shocked"]
    env.agent.x = [-1.0, 1.0][start["shocked"]]
    env.agent.angle = [0.0, np.pi][start["shocked"]]


def preference(env, start):
    env.agent.angle = {"E": 0.0, "W": np.pi}[start["facing"]]


#: Setters that put draws into the package's environment; it makes all other choices
#: itself.
DRAWN = {
    "BarnesMaze": turn,
    "RadialArmMaze": turn,
    "StarMaze": star,
    "DNMSTask": dnms,
    "OperantChamber": operant,
    "ShuttleBox": shuttle,
    "PlacePreference": preference,
}


def cut(picture):
    """Return a picture without its margins; tests/peer has the same function."""
    rows = [row for row in picture.split("\n") if row.strip()]
    left = min(len(row) - len(row.lstrip()) for row in rows)
    return "\n".join(row[left:].rstrip() for row in rows)


@lru_cache(maxsize=100_000)
def digest(picture):
    return hashlib.blake2b(cut(picture).encode(), digest_size=8).hexdigest()


#: The dependencies of each picture, if there are few. Such pictures are cached, because
#: drawing takes long.
SEEN = {
    "MorrisWaterMaze": lambda env: (),
    "BarnesMaze": lambda env: (),
    "RadialArmMaze": lambda env: tuple(env.rewards_collected),
}


def drawn_once(env, task):
    """Let an environment draw every picture once."""
    draw, known = env._render_ascii_2d, {}

    def render():
        key = (env.agent.x, env.agent.y, env.agent.angle, *SEEN[task](env))
        if key not in known:
            known[key] = draw()
        return known[key]

    env._render_ascii_2d = render


def begin(env, task, start, first):
    """Begin a trial as the package's runner does, with these draws."""
    if first:
        env.reset()
    elif env.is_done:
        env.session.criterion_met = False
        env.session.max_trials = max(
            env.session.max_trials, env.session.current_trial + 100
        )
        env.start_new_trial()
    if task in DRAWN:
        DRAWN[task](env, start)
    return env._get_observation()


def live(task, trials, shown):
    env = getattr(environments, task)(view_mode=base_env.ViewMode.ASCII_2D)
    if task in SEEN:
        drawn_once(env, task)
    told = []
    for number, trial in enumerate(trials):
        steps = []
        told.append([shown(begin(env, task, trial["start"], number == 0)), steps])
        for action in trial["actions"]:
            ended = len(env.session.trial_results)
            picture, reward = env.step(ACTIONS[action])
            ended = len(env.session.trial_results) > ended
            success = bool(env.session.trial_results[-1].success) if ended else None
            # The picture after the last step is the first one of the next trial, so it
            # is not compared.
            steps.append(
                [float(reward), ended, success, None if ended else shown(picture)]
            )
            if ended:
                break
    return told


def main():
    asked = json.load(sys.stdin)
    shown = cut if asked["pictures"] else digest
    json.dump(
        [live(asked["task"], trials, shown) for trials in asked["lives"]], sys.stdout
    )


if __name__ == "__main__":
    main()
