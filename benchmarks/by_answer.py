"""Measures how often the check for a preferred answer makes a false remark, and a
justified one.

    python benchmarks/by_answer.py [--runs 300]

Each subject has 20 trials with the same right answer, and each answer is that of
equally many subjects. The subjects' rates have a beta distribution with the mean and
the intraclass correlation of the setting. The program prints the largest share of false
remarks, and the power for subjects whose rates are 100 % for one answer and 50 % for
the other.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator

import numpy as np

from cheesebench.statistics.by_answer import by_answer

MEANS, ICCS, LEVELS, SUBJECTS, TRIALS = (
    (0.7, 0.9),
    (0.1, 0.3, 0.6),
    (2, 3, 4),
    (10, 20, 40),
    20,
)


def false_remarks(runs: int) -> Iterator[tuple[str, float]]:
    """Yield each setting with its share of remarks about subjects without a preferred
    answer.
    """
    for mean, icc, levels, subjects in itertools.product(MEANS, ICCS, LEVELS, SUBJECTS):
        rng = np.random.default_rng([int(100 * mean), int(100 * icc), levels, subjects])
        size = 1 / icc - 1
        rates = rng.beta(mean * size, (1 - mean) * size, (runs, subjects))
        scores = rng.binomial(TRIALS, rates) / TRIALS
        share = _share(scores, levels)
        yield f"mean {mean}, icc {icc}, {levels} levels, {subjects} subjects", share


def told(rates: tuple[float, ...], subjects: int, runs: int) -> float:
    """Return the share of remarks about subjects whose rate depends on the answer."""
    rng = np.random.default_rng([7, subjects, len(rates)])
    own = np.array([rates[k % len(rates)] for k in range(subjects)])
    return _share(rng.binomial(TRIALS, own, (runs, subjects)) / TRIALS, len(rates))


def _share(
    scores: np.ndarray[tuple[int, ...], np.dtype[np.float64]], levels: int
) -> float:
    said = 0
    for number, run in enumerate(scores):
        grouped = by_answer(
            "a", [(k % levels, float(one)) for k, one in enumerate(run)], number
        )
        said += grouped is not None and grouped.is_uneven
    return said / len(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    worst, share = max(false_remarks(runs), key=lambda one: one[1])
    print(f"false remarks: at most {share:.3f} ({worst})")
    for subjects in (10, 20):
        print(
            f"100 against 50 %, {subjects} subjects: told in {told((1.0, 0.5), subjects, runs):.3f}"
        )


if __name__ == "__main__":
    main()
