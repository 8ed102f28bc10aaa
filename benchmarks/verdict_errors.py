"""How often verdicts are wrong, and how soon they come: the tables of docs/reference/verdicts.md, by simulation.

The rules are the package's own; only their subjects are made up here. Run it as
``python -m benchmarks.verdict_errors --write`` (some ten minutes; ``--runs 400`` for a quick look).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cheesebench.experiment.records import Measured, ReferenceValue
from cheesebench.statistics.bounds import p_values
from cheesebench.statistics.comparison import Question
from cheesebench.statistics.means import Student
from cheesebench.statistics.power import fixed_verdicts
from cheesebench.statistics.regression import LOSS, PAIR_LOOKS, flip_p_values
from cheesebench.statistics.sequential import futile
from cheesebench.statistics.spending import ALPHA, FULL, LOOKS, looks_until, symmetric_tails, tails

#: Where the tables stand, each between two comments.
PAGE = Path(__file__).parents[1] / "docs/reference/verdicts.md"
_PLACE = r"<!-- simulated: (\w+) -->\n(.*?)<!-- end -->"
MARGIN, MOST = 0.1, LOOKS[-1]
RUNS = 4000
ICCS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.6)
REFERENCES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
TRIALS = (1, 10, 40, 100)
FIXED = (2, 3, 4, 5, 6, 10, 20, 40, 60)
#: A probability of .05 is simulated with so many standard errors around it.
ALLOWED_ERRORS = 2

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Players:
    """How subjects differ: by a beta distribution with an ICC, or as two kinds (rates low and high)."""

    name: str
    icc: float = 0.0
    kinds: tuple[float, float] | None = None
    share: float | None = None
    """Of those of the first kind, where the second follows from the mean; None where both kinds are fixed."""

    def rates(self, random: np.random.Generator, mean: float, shape: tuple[int, int]) -> Floats | None:
        """Return true rates with that mean; None where there are none."""
        if self.kinds is not None:
            low, high = self.kinds
            share = self.share
            if share is not None:
                low, high = self.kinds[0], (mean - share * self.kinds[0]) / (1 - share)
            else:
                share = (high - mean) / (high - low)
            if not (0 <= share <= 1 and 0 <= high <= 1):
                return None
            return np.where(random.random(shape) < share, low, high)
        if not 0 < mean < 1 or not self.icc:
            return np.full(shape, mean)
        spread = 1 / self.icc - 1
        return random.beta(mean * spread, (1 - mean) * spread, shape)


PLAYERS = (
    *(Players(f"ICC {icc:g}", icc) for icc in ICCS),
    Players("learn or do not (.05, .95)", kinds=(0.05, 0.95)),
    Players("all or none (0, 1)", kinds=(0.0, 1.0)),
    Players("two kinds (.4, .95)", kinds=(0.4, 0.95)),
    *(
        Players(f"one in {round(1 / share)} never succeeds", kinds=(0.0, 1.0), share=share)
        for share in (0.02, 0.05, 0.1)
    ),
    *(
        Players(f"one in {round(1 / share)} always succeeds", kinds=(1.0, 0.0), share=share)
        for share in (0.02, 0.05, 0.1)
    ),
)


def observed(
    players: Players, mean: float, trials: int, subjects: int, runs: int, random: np.random.Generator, unequal: bool
) -> Floats | None:
    """Return observed rates of shape [runs, subjects]; unequal numbers of trials lie between a third and all."""
    own = players.rates(random, mean, (runs, subjects))
    if own is None:
        return None
    numbers = random.integers(max(1, trials // 3), trials + 1, (runs, subjects)) if unequal else trials
    return np.asarray(random.binomial(numbers, own) / numbers)


def sequential(rates: Floats, question: Question, give_up: bool = True) -> tuple[Flags, Flags, NDArray[np.int64]]:
    """Return which runs PASS, which FAIL, and at how many subjects each stopped, as ``sequential.decide`` has it.

    ``rates`` are those of subjects, or their means of a measure; of shape ``[runs, subjects]``.

    Without ``give_up`` nothing is futile: errors can only be more frequent then.
    """
    looks = looks_until(rates.shape[1])
    passed, failed = np.zeros(len(rates), dtype=bool), np.zeros(len(rates), dtype=bool)
    stopped, living = np.full(len(rates), looks[-1]), np.arange(len(rates))
    means = question.means
    for look, tail in zip(looks, means.tails(looks), strict=True):
        seen = rates[living, :look]
        above, below = question.bars(seen.mean(axis=1), tail)
        passes = means.p_values(seen, above, above=True) < tail
        fails = means.p_values(seen, below, above=False) < tail
        passed[living[passes]] = failed[living[fails]] = True
        over = passes | fails
        if give_up and look < looks[-1]:
            over |= futile(question, seen, look, looks)
        stopped[living[over]] = look
        living = living[~over]
    return passed, failed, stopped


def worst_errors(runs: int, seed: int = 1) -> Iterator[tuple[str, list[tuple[float, str]]]]:
    """Yield players and their largest errors: sequential PASS and FAIL, fixed PASS and FAIL, each with where it was."""
    for players in PLAYERS:
        worst = [(0.0, "")] * 4
        for reference in REFERENCES:
            question = Question(ReferenceValue(value=reference), -MARGIN, -MARGIN)
            for trials in TRIALS:
                random = np.random.default_rng([seed, int(reference * 100), trials])
                rates = observed(players, reference - MARGIN, trials, MOST, runs, random, unequal=trials == 10)
                if rates is None:
                    continue
                place = f"{reference:g}, {trials} trials"
                passed, failed, _ = sequential(rates, question, give_up=False)
                found = [(0, passed, ""), (1, failed, "")]
                for subjects in FIXED:
                    passes, fails = fixed_verdicts(rates[:, :subjects], question.reference, MARGIN)
                    found += [(2, passes, f", {subjects} subjects"), (3, fails, f", {subjects} subjects")]
                for column, wrong, where in found:
                    worst[column] = max(worst[column], (float(wrong.mean()), place + where))
        yield players.name, worst


@dataclass(frozen=True)
class Outcome:
    """A model with a true rate, against a reference: what the sequential rule makes of it with 40 trials a subject."""

    rate: float
    reference: float
    icc: float
    passes: float
    by_sixty: float
    """Of ``passes``, those within 60 subjects."""
    fails: float
    subjects: float

    @property
    def disagree(self) -> float:
        """Probability that two runs get different verdicts."""
        return 1 - self.passes**2 - self.fails**2 - (1 - self.passes - self.fails) ** 2


CASES = (
    (0.0, 0.8, 0.0),
    (0.5, 0.8, 0.3),
    (0.7, 0.8, 0.1),
    (0.8, 0.8, 0.02),
    (0.8, 0.8, 0.1),
    (0.8, 0.8, 0.3),
    (0.9, 0.8, 0.3),
    (0.95, 0.8, 0.1),
    (1.0, 0.8, 0.0),
    (0.7, 0.7, 0.3),
    (0.9, 0.9, 0.1),
    (0.9, 0.9, 0.3),
)


def outcomes(runs: int, seed: int = 2) -> Iterator[Outcome]:
    """Yield what becomes of models."""
    for rate, reference, icc in CASES:
        random = np.random.default_rng([seed, int(100 * rate), int(100 * reference), int(100 * icc)])
        rates = observed(Players("", icc), rate, 40, MOST, runs, random, unequal=False)
        assert rates is not None
        question = Question(ReferenceValue(value=reference), -MARGIN, -MARGIN)
        passed, failed, stopped = sequential(rates, question)
        early = passed & (stopped <= FULL)
        yield Outcome(rate, reference, icc, *(float(one.mean()) for one in (passed, early, failed, stopped)))


def pairs(
    kind: str, baseline: float, lost: float, correlation: float, shape: tuple[int, int], random: np.random.Generator
) -> Floats:
    """Return differences new - baseline of subjects whose true rates are correlated, with 40 trials each."""
    from scipy.stats import beta, norm

    shared, first, second = random.standard_normal((3, *shape))
    places = [norm.cdf(correlation**0.5 * shared + (1 - correlation) ** 0.5 * own) for own in (first, second)]
    rates = []
    for place, mean in zip(places, (baseline, baseline - lost), strict=True):
        if kind == "bimodal":
            rates.append(np.where(place < (0.95 - mean) / 0.9, 0.05, 0.95))
        else:
            spread = 1 / 0.3 - 1
            rates.append(beta.ppf(place, mean * spread, (1 - mean) * spread))
    before, after = (random.binomial(40, rate) / 40 for rate in rates)
    return np.asarray(after - before)


def regression(differences: Floats, loss: float = LOSS, tests: int = 1) -> tuple[Flags, Flags, NDArray[np.int64]]:
    """Return which runs are worse, which are not worse, and at how many pairs each stopped, as ``between`` has it."""
    looks = looks_until(differences.shape[1], PAIR_LOOKS)
    worse, cleared = np.zeros(len(differences), dtype=bool), np.zeros(len(differences), dtype=bool)
    stopped, living = np.full(len(differences), looks[-1]), np.arange(len(differences))
    for look, tail, symmetric in zip(looks, tails(looks), symmetric_tails(looks, ALPHA / tests), strict=True):
        seen = differences[living, :look]
        bad = flip_p_values(seen) < symmetric
        good = ~bad & (p_values((1 + seen) / 2, (1 - loss) / 2) < tail)
        worse[living[bad]] = cleared[living[good]] = True
        stopped[living[bad | good]] = look
        living = living[~(bad | good)]
    return worse, cleared, stopped


@dataclass(frozen=True)
class Regression:
    """A new run against its baseline, when so many protocols are compared; the least favourable over correlations.

    For an unchanged model that is the most ``worse`` and the least ``cleared``; for one that has lost, the least
    ``worse`` and the most ``cleared``; and the largest mean number of pairs.
    """

    kind: str
    baseline: float
    lost: float
    pairs: int
    protocols: int
    worse: float
    cleared: float
    stopped: float


CORRELATIONS = (0.0, 0.3, 0.6, 0.9)


def regressions(runs: int, seed: int = 3) -> Iterator[Regression]:
    """Yield what becomes of unchanged and of worse models."""
    for kind, baseline, most, lost in product(("beta", "bimodal"), (0.9, 0.7), (20, 60), (0.0, 0.3)):
        made = []
        for correlation in CORRELATIONS:
            random = np.random.default_rng([seed, int(baseline * 100), int(lost * 100), int(correlation * 10)])
            made.append(pairs(kind, baseline, lost, correlation, (runs, most), random))
        for protocols in (1, 9):
            found = [[float(values.mean()) for values in regression(one, tests=protocols)] for one in made]
            worse, cleared, stopped = zip(*found, strict=True)
            extremes = (min(worse), max(cleared)) if lost else (max(worse), min(cleared))
            yield Regression(kind, baseline, lost, most, protocols, *extremes, max(stopped))


def row(*cells: object) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def error_table(runs: int) -> str:
    """Return the table of errors."""
    lines = [
        row("subjects differ by", "sequential: false PASS", "false FAIL", "fixed: false PASS", "false FAIL"),
        row("---", *["---:"] * 4),
    ]
    lines += [row(name, *(f"{error:.3f}" for error, _ in worst)) for name, worst in worst_errors(runs)]
    return "\n".join(lines)


def outcome_table(runs: int) -> str:
    """Return the table of what becomes of models."""
    lines = [
        row("true rate", "reference", "ICC", "PASS", "PASS by 60", "FAIL", "mean subjects", "two runs disagree"),
        row(*["---:"] * 8),
    ]
    for one in outcomes(runs):
        rates = (f"{share:.2f}" for share in (one.passes, one.by_sixty, one.fails))
        shown = (*rates, f"{one.subjects:.0f}", f"{one.disagree:.2f}")
        lines.append(row(f"{one.rate:g}", f"{one.reference:g}", f"{one.icc:g}", *shown))
    return "\n".join(lines)


def regression_table(runs: int) -> str:
    """Return the table of comparisons with a baseline (a quarter of the runs: sign flips take their time)."""
    lines = [
        row("subjects", "baseline", "points lost", "pairs at most", "protocols", "worse", "not worse", "mean pairs"),
        row("---", *["---:"] * 7),
    ]
    for one in regressions(runs // 4):
        shown = (f"{one.worse:.3f}", f"{one.cleared:.3f}", f"{one.stopped:.0f}")
        lines.append(row(one.kind, f"{one.baseline:g}", f"{100 * one.lost:.0f}", one.pairs, one.protocols, *shown))
    return "\n".join(lines)


#: How subjects' means of a measure are distributed: to have a mean of 0 and a standard deviation of 1.
SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "uniform": lambda random, shape: (random.random(shape) - 0.5) * 12**0.5,
    "two kinds": lambda random, shape: np.where(random.random(shape) < 0.5, 1.0, -1.0),
    "exponential": lambda random, shape: random.exponential(1, shape) - 1,
    "log-normal (0.5)": lambda random, shape: _log_normal(random, 0.5, shape),
    "log-normal (1)": lambda random, shape: _log_normal(random, 1.0, shape),
    "one in 10 far off": lambda random, shape: np.where(random.random(shape) < 0.1, 3.0, -1 / 3),
}
#: The model's standard deviation in those of the animals, and the number of animals.
SPREADS = ((0.5, 12), (1.0, 12), (1.0, 50), (1.5, 50), (2.0, 50))
#: Numbers of subjects of fixed designs: with fewer a measure without a range gets no verdict.
FIXED_BY_T = (6, 10, 20, 40, 60)


def _log_normal(random: np.random.Generator, sigma: float, shape: tuple[int, int]) -> Floats:
    mean, square = np.exp(sigma**2 / 2), np.exp(sigma**2)
    return np.asarray((random.lognormal(0, sigma, shape) - mean) / (mean * (square - 1) ** 0.5))


def of_measures(runs: int, seed: int = 4) -> Iterator[tuple[str, float, int, list[float]]]:
    """Yield shape, spread, animals and errors of verdicts by t, for a model that is worse by exactly the margin.

    The errors are of sequential PASS and FAIL, and of the same with the worst fixed number of subjects. Each shape is
    tried in both directions, because either side of a measure may be the better one. The animals' standard deviation is
    1, and their mean is drawn, too.
    """
    for (shape, draw), (spread, animals) in product(SHAPES.items(), SPREADS):
        random = np.random.default_rng([seed, int(10 * spread), animals])
        own, rodents = draw(random, (runs, MOST)) * spread, random.normal(0, animals**-0.5, (runs, 1))
        reference = ReferenceValue(value=0.0, sd=1.0, n_animals=animals, measured=Measured(name="measure"))
        means, worst = Student(1.0), [0.0] * 4
        for direction in (1, -1):
            rates = direction * own - rodents  # t does not mind where zero is
            wrong = [sequential(rates, Question(reference, 0.0, 0.0, means), give_up=False)[:2]]
            wrong += [fixed_verdicts(rates[:, :subjects], reference, 0.0, means=means) for subjects in FIXED_BY_T]
            for number, found in enumerate(wrong):
                for side, flags in enumerate(found):
                    column = side + 2 * (number > 0)
                    worst[column] = max(worst[column], float(flags.mean()))
        yield shape, spread, animals, worst


def measure_table(runs: int) -> str:
    """Return the table of errors of verdicts about a measure without a range."""
    lines = [
        row("subjects' means", "their SD / the animals'", "animals", "sequential: false PASS", "false FAIL",
            "fixed: false PASS", "false FAIL"),
        row("---", *["---:"] * 6),
    ]  # fmt: skip
    for shape, spread, animals, errors in of_measures(runs):
        shown = (f"{error:.3f}" for error in errors)
        lines.append(row(shape, f"{spread:g}", animals, *shown))
    return "\n".join(lines)


TABLES = {
    "errors": error_table,
    "outcomes": outcome_table,
    "regression": regression_table,
    "measures": measure_table,
}


def tables_of(page: str) -> dict[str, str]:
    """Return the tables that stand in a page, by name."""
    return {name: table.strip() for name, table in re.findall(_PLACE, page, re.DOTALL)}


def put(page: str, name: str, table: str) -> str:
    """Return the page with another table of that name."""
    return re.sub(
        _PLACE,
        lambda found: f"<!-- simulated: {name} -->\n{table}\n<!-- end -->" if found[1] == name else found[0],
        page,
        flags=re.DOTALL,
    )


def main() -> None:
    """Print the tables that are asked for, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(TABLES)}; all by default")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--write", action="store_true", help=f"write them into {PAGE}")
    options = parser.parse_args()
    for name in options.tables or TABLES:
        table = TABLES[name](options.runs)
        if options.write:
            PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), name, table), encoding="utf-8")
        else:
            print(f"{name}\n\n{table}\n", flush=True)


if __name__ == "__main__":
    main()
