"""Measures the error rates of ``cheesebench verdict`` for equal models, and for a mean
that is equal to the value, and the power of the command.

    python benchmarks/score_verdicts.py > benchmarks/measured/score_verdicts.json

Items differ in difficulty, and come in clusters whose items share luck; scores of the
two models share the difficulty. Differences of graded scores are skewed: small gains
and rare total failures, whose mean is 0. The program prints JSON. For each design, it
has the share of simulated evaluations with a wrong answer in any task (at most .05 is
promised), and the share with the right answer if there is a difference of 10 points.
For graded scores it also has the shares without the imagined pair (``only_seen``),
whose promise holds only for differences that are symmetric about zero.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cheesebench.interop.verdicts import verdict
from cheesebench.records import GOAL
from cheesebench.statistics.betting import final_wealth
from cheesebench.statistics.comparison import ALPHA, paired_p_value
from cheesebench.statistics.intervals import imagined_pair

#: For each design: the number of tasks, of clusters per task, and of items per cluster,
#: and the share of the variance that lies between clusters.
DESIGNS = (
    (1, 10, 1, 0.0),
    (1, 60, 1, 0.0),
    (1, 30, 5, 0.3),
    (1, 200, 1, 0.0),
    (5, 40, 1, 0.0),
)
LIFT = 0.1
#: Numbers of pairs with graded differences that are symmetric about their mean, and the
#: standard deviation of the differences. The lift is ``LIFT / 2``.
SYMMETRIC, SPREAD = (6, 10, 20, 40, 100), 0.08
#: For each case: the number of pairs, the share of pairs that fail, and the loss in
#: such a pair.
SKEWED = tuple(
    (pairs, share, loss)
    for pairs in (10, 20, 60)
    for share, loss in ((0.1, 0.9), (0.05, 0.95), (0.02, 0.98))
)


def evaluation(
    random: np.random.Generator, rates: np.ndarray, shared: float
) -> np.ndarray:
    """Return scores, 0 or 1, of the shape of ``rates`` [tasks, clusters, items], whose
    means are ``rates``.
    """
    luck = random.uniform(size=(*rates.shape[:2], 1))
    own = np.where(
        random.uniform(size=rates.shape) < shared,
        luck,
        random.uniform(size=rates.shape),
    )
    return (own < rates).astype(float)


def write(path: Path, scores: np.ndarray) -> None:
    """Write scores as CSV."""
    lines = [
        f"t{t},{s},{s}-{i},{scores[t, s, i]:g}" for t, s, i in np.ndindex(scores.shape)
    ]  # The items are sorted by difficulty, because those of a data set may be, too.
    path.write_text("\n".join(["task,subject,item,score", *lines]), encoding="utf-8")


def simulate(
    tasks: int, clusters: int, items: int, shared: float, runs: int, folder: Path
) -> dict[str, float]:
    """Return the rates of wrong and of right answers."""
    random = np.random.default_rng(tasks * 1000 + clusters)
    first, second = folder / "a.csv", folder / "b.csv"
    counts = dict.fromkeys(
        (
            "wrong, compared",
            "wrong PASS",
            "wrong FAIL",
            "right, compared",
            "right PASS",
        ),
        0,
    )
    for _ in range(runs):
        rates = np.sort(random.uniform(0.1, 0.9, (tasks, clusters, items)), axis=1)
        write(second, evaluation(random, rates, shared))
        for kind, lift in (("wrong", 0.0), ("right", LIFT)):
            write(first, evaluation(random, rates + lift, shared))
            compared = [one.answer for one in verdict(first, second).tasks]
            # The value is the mean over all items that could have been drawn.
            valued = [one.answer for one in verdict(first, value=0.5).tasks]
            if kind == "wrong":
                counts["wrong, compared"] += compared.count("undecided") < tasks
                counts["wrong PASS"] += "PASS" in valued
                counts["wrong FAIL"] += "FAIL" in valued
            else:
                counts["right, compared"] += compared[0] == "better"
                counts["right PASS"] += valued[0] == "PASS"
    return {name: round(count / runs, 4) for name, count in counts.items()}


def skewed(pairs: int, share: float, loss: float, runs: int) -> dict[str, float]:
    """Return how often an answer is given although the true mean difference is 0."""
    random, gain = np.random.default_rng(pairs), share * loss / (1 - share)
    drawn = np.where(random.uniform(size=(runs, pairs)) < share, -loss, gain)
    return {name: decided(drawn, only) for name, only in RULES.items()}


def symmetric(pairs: int, lift: float, runs: int) -> dict[str, float]:
    """Return how often an answer is given if differences are symmetric about
    ``lift``.
    """
    drawn = np.random.default_rng(pairs).normal(lift, SPREAD, (runs, pairs))
    return {name: decided(drawn, only) for name, only in RULES.items()}


#: The rules for graded scores, and whether only the pairs seen decide.
RULES = {"one imagined": False, "only seen": True}


def decided(drawn: np.ndarray, only_seen: bool) -> float:
    """Return the share of the rows of differences that get an answer."""
    count = 0
    for own in np.clip(drawn, -1, 1).tolist():
        extra = 0.0 if only_seen else imagined_pair(own)
        count += paired_p_value(own, seed=0, imagined=extra) < ALPHA
    return round(count / len(drawn), 4)


def valued(rate: float, count: int, spread: float, runs: int) -> dict[str, float]:
    """Return how often a mean at the value gets a verdict; ``spread`` is the standard
    deviation of graded scores, 0 for scores of 0 and 1.
    """
    random, passed, failed = np.random.default_rng(count), 0, 0
    for _ in range(runs):
        if spread:
            size = rate * (1 - rate) / spread**2 - 1
            own = random.beta(rate * size, (1 - rate) * size, count)
        else:
            own = (random.uniform(size=count) < rate).astype(float)
        passed += final_wealth(own, rate) >= np.log(GOAL)
        failed += final_wealth(1 - own, 1 - rate) >= np.log(GOAL)
    return {
        "wrong PASS": round(passed / runs, 4),
        "wrong FAIL": round(failed / runs, 4),
    }


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    with TemporaryDirectory() as folder:
        found = [
            {
                "tasks": t,
                "subjects": s,
                "items": i,
                "shared": c,
                **simulate(t, s, i, c, runs, Path(folder)),
            }
            for t, s, i, c in DESIGNS
        ]
    differences = [
        {
            "pairs": pairs,
            "failing": share,
            "loss": loss,
            **skewed(pairs, share, loss, 5 * runs),
        }
        for pairs, share, loss in SKEWED
    ]
    graded = [
        {"pairs": pairs, "lift": lift, **symmetric(pairs, lift, 5 * runs)}
        for pairs in SYMMETRIC
        for lift in (0.0, LIFT / 2)
    ]
    values = [
        {"value": v, "subjects": n, "sd": sd, **valued(v, n, sd, runs)}
        for n in (20, 100, 1000, 10_000, 100_000)
        for v, sd in ((0.5, 0.0), (0.8, 0.0), (0.5, 0.2), (0.8, 0.1))
    ]
    print(
        json.dumps(
            {
                "runs": runs,
                "designs": found,
                "skewed": differences,
                "symmetric": graded,
                "values": values,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
