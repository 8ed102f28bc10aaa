"""Q-learning in plain numpy: one table, taught by many subjects at once, over the text
of the observation.

    # the environments below, in seconds
    python q_learning.py
    # one that a table does not learn
    python q_learning.py --environment cheesebench/TMaze-v1
    # writes easy.TMaze-v1.policy.json: see conftest.py
    python q_learning.py --save .
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import easy  # noqa: F401  # registers the environments, those of cheesebench included
import gymnasium
import numpy as np
from numpy.typing import NDArray

ENVIRONMENTS = ("easy/TMaze-v1", "easy/ShuttleBox-v1")
#: ``SUBJECTS`` is the number of subjects that live at once, ``POINT`` the number of
#: trials of which a point of the learning curve is the mean.
SUBJECTS, POINT = 32, 100
#: Learning rate, discount per step, and the share of random actions.
ALPHA, GAMMA, EPSILON = 0.3, 0.95, 0.05
#: What every action is worth before it has been tried: enough that all are tried, too
#: little to be sought for itself.
OPTIMISM = 0.5

Values = NDArray[np.float64]


class Table:
    """The values of the four actions, in a row for each text."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.values: Values = np.full((1024, 4), OPTIMISM)

    def find(self, texts: tuple[str, ...]) -> NDArray[np.intp]:
        """Return the rows of texts; a new text gets the next row."""
        found = np.array([self.rows.setdefault(text, len(self.rows)) for text in texts])
        if len(self.rows) > len(self.values):
            self.values = np.concatenate(
                [self.values, np.full_like(self.values, OPTIMISM)]
            )
        return found


@dataclass(frozen=True)
class Learnt:
    """What came of learning: the table, and the success of each trial in the order in
    which trials ended.
    """

    table: Table
    successes: list[bool]

    def curve(self) -> list[float]:
        """Return the rate of success in each ``POINT`` trials."""
        whole = len(self.successes) // POINT * POINT
        return [
            float(rate)
            for rate in np.reshape(self.successes[:whole], (-1, POINT)).mean(axis=1)
        ]


def learn(name: str, trials: int, seed: int, epsilon: float = EPSILON) -> Learnt:
    """Learn for this many trials of all subjects together; ``epsilon=1`` is the random
    agent.
    """
    environment: Any = gymnasium.make_vec(name, num_envs=SUBJECTS)
    environment.set_attr("subject", list(range(SUBJECTS)))
    table = Table()
    chance = np.random.default_rng(seed)
    successes: list[bool] = []
    over = np.zeros(SUBJECTS, bool)
    here = table.find(environment.reset(seed=[seed] * SUBJECTS)[0])
    while len(successes) < trials:
        # The noise decides between equals.
        actions = (table.values[here] + 1e-9 * chance.random((SUBJECTS, 4))).argmax(
            axis=1
        )
        actions = np.where(
            chance.random(SUBJECTS) < epsilon,
            chance.integers(4, size=SUBJECTS),
            actions,
        )
        texts, rewards, terminated, truncated, infos = environment.step(actions)
        there = table.find(texts)
        values = table.values
        future = np.where(terminated, 0.0, values[there].max(axis=1))
        error = rewards + GAMMA * future - values[here, actions]
        # The step after the last one of a trial only shows how the next one begins: its
        # action was ignored.
        alive = ~over
        values[here[alive], actions[alive]] += ALPHA * error[alive]
        over = terminated | truncated
        successes += [bool(infos["success"][subject]) for subject in over.nonzero()[0]]
        here = there
    return Learnt(table, successes)


def save(learnt: Learnt, path: Path) -> None:
    """Write the values of the four actions by text."""
    known = zip(learnt.table.rows, learnt.table.values.round(6).tolist(), strict=False)
    path.write_text(
        json.dumps(dict(known), ensure_ascii=False, indent=0), encoding="utf-8"
    )


def main() -> None:
    """Print learning curves, and the level of random actions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environment", action="append", help="may be repeated")
    parser.add_argument("--trials", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--save",
        type=Path,
        metavar="DIR",
        help="write what was learnt into this directory",
    )
    options = parser.parse_args()
    for name in options.environment or ENVIRONMENTS:
        chance = learn(name, POINT * 2, options.seed, epsilon=1.0)
        learnt = learn(name, options.trials, options.seed)
        curve = " ".join(f"{rate:.0%}" for rate in learnt.curve())
        print(
            f"{name}: at random {np.mean(chance.successes):.1%}; learning, by {POINT} trials: {curve}"
        )
        if options.save:
            path = options.save / f"{name.replace('/', '.')}.policy.json"
            save(learnt, path)
            print(f"written: {path} ({len(learnt.table.rows)} texts)")


if __name__ == "__main__":
    main()
