"""Runs the published package's own baselines. The Python of an environment with the
package executes this file.

Standard input is one JSON object with ``agent`` (tabular-ql or bfs-oracle) and one of
two tasks. With ``lives`` (for each seed, the observation and reward before each action
of each trial), the output is the actions of the package's agent. With ``task``,
``seeds``, ``trials`` and ``steps``, the output is the number of successful trials of
each seed in the package's own environment.
"""

# The imported module is another package of our name, which type checkers cannot see
# here.
# mypy: ignore-errors

import json
import sys

import driver
import numpy as np
from cheesebench.cscgql_agent import CSCGQLAgent
from cheesebench.environments import base_env
from cheesebench.heuristic_agent import HeuristicAgent

from cheesebench import environments


def read_once():
    """Let the oracle read every picture once. The result is cached, because it depends
    on nothing else.
    """
    parse, search = HeuristicAgent._parse_grid, HeuristicAgent._bfs
    parsed, found = {}, {}

    def parse_once(self, picture):
        if picture not in parsed:
            parsed[picture] = parse(self, picture)
        return parsed[picture]

    def search_once(self, grid, start, goals):
        # Grids are those of ``parsed``, which keeps them, so their ids stay valid.
        if id(grid) not in found:
            found[id(grid)] = search(self, grid, start, goals)
        return found[id(grid)]

    HeuristicAgent._parse_grid, HeuristicAgent._bfs = parse_once, search_once


class Mind:
    """An agent of the package, reset before every trial, as its runner does."""

    def __init__(self, name, seed):
        self._agent = CSCGQLAgent(seed=seed) if name == "tabular-ql" else None
        self._oracle = HeuristicAgent()

    def begin_trial(self):
        if self._agent:
            self._agent.reset()

    def act(self, picture, reward):
        return (self._agent or self._oracle).get_action(picture, reward)


def replies(name, seed, trials):
    """Return the actions of an agent to pictures and rewards."""
    mind, found = Mind(name, seed), []
    for trial in trials:
        mind.begin_trial()
        found.append(
            [
                driver.ACTIONS.index(mind.act(picture, reward).value)
                for picture, reward in zip(trial["seen"], trial["paid"], strict=True)
            ]
        )
    return found


def successes(name, task, seed, trials, steps):
    """Return the number of successful trials in a fresh environment, counted like the
    package's runner.
    """
    np.random.seed(seed)
    env = getattr(environments, task)(view_mode=base_env.ViewMode.ASCII_2D)
    if task in driver.SEEN:
        driver.drawn_once(env, task)
    mind, found = Mind(name, seed), 0
    picture = env.reset()
    for trial in range(trials):
        mind.begin_trial()
        if trial and env.is_done:
            env.session.criterion_met = False
            if env.session.current_trial >= env.session.max_trials:
                env.session.max_trials = env.session.current_trial + 100
            env._start_trial()
            picture = env.render()
        number, reward = env.session.current_trial, 0.0
        for _ in range(steps):
            picture, reward = env.step(mind.act(picture, reward))
            if env.is_done or env.session.current_trial != number:
                found += bool(env.session.trial_results[-1].success)
                break
    return found


def main():
    asked = json.load(sys.stdin)
    read_once()
    if "lives" in asked:
        told = [
            replies(asked["agent"], seed, trials)
            for seed, trials in enumerate(asked["lives"])
        ]
    else:
        told = [
            successes(
                asked["agent"], asked["task"], seed, asked["trials"], asked["steps"]
            )
            for seed in asked["seeds"]
        ]
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
