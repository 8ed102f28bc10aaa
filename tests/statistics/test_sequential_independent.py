"""The sequential rule attacked by players of its own kind of trouble, in code that shares nothing with the package's.

The bound is computed here by scipy's B-splines (the density of a Dirichlet-weighted mean is one), the loop over looks
is written once more, and the players are drawn with scipy: beta-binomials, mixtures of two kinds, learners whose
subjects find out at different times, subjects of different lengths, and lives that are partly missing. No cell may be
judged wrongly in more than 5.5 % (and the noise of the simulation).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats
from scipy.interpolate import BSpline

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics import Verdict
from cheesebench.statistics.bounds import p_value
from cheesebench.statistics.comparison import Question, SubjectTrials
from cheesebench.statistics.sequential import decide
from cheesebench.statistics.spending import LOOKS, tails

Floats = NDArray[np.float64]
#: Makes passed trials, trials and missing trials of one run of as many subjects as a cell can have, with a mean rate.
Player = Callable[[np.random.Generator, float, int], tuple[Floats, Floats]]

MOST_WRONG = 0.055


def spline_p_value(rates: list[float], mean: float) -> float:
    """Return Gaffke's p value by integrating the B-spline whose knots are the rates and 0; all must differ."""
    spline = BSpline.basis_element(np.sort([0.0, *rates]), extrapolate=False)
    density = spline.antiderivative()
    knots = np.sort([0.0, *rates])
    whole = float(density(knots[-1] - 1e-15) - density(knots[0]))
    return float(density(mean) - density(knots[0])) / whole


def test_the_bound_is_what_scipys_splines_say() -> None:
    random = np.random.default_rng(1)
    for subjects in (2, 3, 6, 10):
        rates = random.uniform(0.3, 1.0, subjects).tolist()
        for mean in (0.35, 0.5, 0.65):
            if mean < max(rates):
                assert p_value(rates, mean) == pytest.approx(spline_p_value(rates, mean), abs=1e-6)
    for low in (0.0, 0.3):
        kinds = [p_value([0.9] * good + [low] * (10 - good), 0.6) for good in range(11)]
        assert kinds_p_values(10, low, 0.9, 0.6) == pytest.approx(kinds, abs=1e-9)


def beta_binomial(icc: float) -> Player:
    def play(random: np.random.Generator, mean: float, trials: int) -> tuple[Floats, Floats]:
        total = 1 / icc - 1
        passed = stats.betabinom.rvs(trials, mean * total, (1 - mean) * total, size=LOOKS[-1], random_state=random)
        return np.asarray(passed, dtype=float), np.full(LOOKS[-1], float(trials))

    return play


def two_kinds(low: float, high: float) -> Player:
    def play(random: np.random.Generator, mean: float, trials: int) -> tuple[Floats, Floats]:
        if not low < mean < high:
            raise ValueError
        good = stats.bernoulli.rvs((mean - low) / (high - low), size=LOOKS[-1], random_state=random)
        return np.asarray(
            stats.binom.rvs(trials, np.where(good, high, low), random_state=random), dtype=float
        ), np.full(LOOKS[-1], trials)

    return play


def derailed(share: float) -> Player:
    """A few subjects never succeed, all others are a little better than the margin."""

    def play(random: np.random.Generator, mean: float, trials: int) -> tuple[Floats, Floats]:
        if mean / (1 - share) > 1:
            raise ValueError
        lost = stats.bernoulli.rvs(share, size=LOOKS[-1], random_state=random)
        rate = np.where(lost, 0.0, mean / (1 - share))
        return np.asarray(stats.binom.rvs(trials, rate, random_state=random), dtype=float), np.full(LOOKS[-1], trials)

    return play


def late_learners(random: np.random.Generator, mean: float, trials: int) -> tuple[Floats, Floats]:
    """Each finds out after a part of its life, and then hardly fails; lives have different lengths."""
    drawn = stats.randint.rvs(trials // 2, trials + 1, size=LOOKS[-1], random_state=random)
    longest = np.maximum(2, np.asarray(drawn))
    # Of its life, a subject has learnt for a share with this mean; before it succeeds in a fifth.
    share = stats.beta.rvs(2 * (mean - 0.2) / 0.75, 2 * (0.95 - mean) / 0.75, size=LOOKS[-1], random_state=random)
    knowing = np.round(share * longest).astype(int)
    late = stats.binom.rvs(knowing, 0.95, random_state=random)
    early = stats.binom.rvs(longest - knowing, 0.2, random_state=random)
    return np.asarray(late + early, dtype=float), longest.astype(float)


def p_value_here(rates: Floats, mean: float) -> float:
    """Return the p value once more: the race, by its own recursion from the other end, in floats of numpy."""
    ahead = rates[rates > mean] - mean
    behind = np.append(mean - rates[rates < mean], mean)
    if not len(ahead):
        return 1.0
    # Probability that so many stages of the one and of the other are over.
    state = np.zeros((len(ahead) + 1, len(behind) + 1))
    state[0, 0] = 1
    for i in range(len(ahead)):
        for j in range(len(behind)):
            faster = behind[j] / (ahead[i] + behind[j])
            state[i + 1, j] += state[i, j] * faster
            state[i, j + 1] += state[i, j] * (1 - faster)
    return float(state[-1, :-1].sum())


def wrong(player: Player, reference: float, trials: int, runs: int) -> tuple[float, float] | None:
    """Return how often a model at the margin passes and fails; None where there is no such player."""
    random = np.random.default_rng([int(1000 * reference), trials, runs])
    bar, found = reference - 0.1, [0, 0]
    for _ in range(runs):
        try:
            passed, numbers = player(random, bar, trials)
        except ValueError:
            return None
        rates = passed / numbers
        for look, tail in zip(LOOKS, tails(LOOKS), strict=True):
            seen = rates[:look]
            # What cannot be below the tail need not be computed: the mean is not even beyond the bar.
            if seen.mean() > bar and p_value_here(seen, bar) < tail:
                found[0] += 1
                break
            if seen.mean() < bar and p_value_here(1 - seen, 1 - bar) < tail:
                found[1] += 1
                break
    return found[0] / runs, found[1] / runs


PLAYERS: dict[str, Player] = {
    "beta-binomial .1": beta_binomial(0.1),
    "beta-binomial .4": beta_binomial(0.4),
    "all or none": two_kinds(0, 1),
    "learn or do not": two_kinds(0.05, 0.95),
    "two kinds": two_kinds(0.4, 0.95),
    "one in 20 derailed": derailed(0.05),
    "one in 50 derailed": derailed(0.02),
    "late learners": late_learners,
}


def cells(references: list[float], trials: list[int]) -> Iterator[tuple[str, float, int]]:
    for name in PLAYERS:
        for reference in references:
            for number in trials:
                yield name, reference, number


def check(name: str, reference: float, trials: int, runs: int) -> None:
    found = wrong(PLAYERS[name], reference, trials, runs)
    noise = 2.5 * (MOST_WRONG * (1 - MOST_WRONG) / runs) ** 0.5
    assert found is None or max(found) <= MOST_WRONG + noise, found


@pytest.mark.parametrize(
    ("name", "reference"),
    [("one in 20 derailed", 0.8), ("all or none", 0.9), ("two kinds", 0.7), ("late learners", 0.7)],
)
def test_a_model_at_the_margin_is_rarely_judged_wrongly(name: str, reference: float) -> None:
    check(name, reference, 40, 150)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "reference", "trials"), list(cells([0.5, 0.7, 0.8, 0.9, 0.95], [2, 20, 100])))
def test_no_cell_is_judged_wrongly_more_often(name: str, reference: float, trials: int) -> None:
    check(name, reference, trials, 1000)


def kinds_p_values(subjects: int, low: float, high: float, mean: float) -> Floats:
    """Return Gaffke's p values where 0, 1, ... subjects have the rate ``high`` and the others ``low``.

    It is the probability that (high - mean) G(k) < (mean - low) G(n - k) + mean E, of gamma variables and an
    exponential one: without E a beta probability, and where E decides, one of tilted gamma variables.
    """
    k = np.arange(1, subjects)
    below, above = mean - low, high - mean
    found = np.ones(subjects + 1)
    found[-1] = (mean / high) ** subjects
    if low <= 0:
        found[1:-1] = special.betainc(k, subjects - k + 1, mean / high)
    else:
        found[1:-1] = special.betainc(k, subjects - k, below / (below + above)) + (mean / high) ** k * (mean / low) ** (
            subjects - k
        ) * special.betainc(subjects - k, k, above * low / (below * high + above * low))
    return found


@pytest.mark.parametrize("looks", [LOOKS, (6, 10, 14, 18, 24), (6, 7), (5,), (40,)])
def test_two_kinds_of_subjects_are_never_judged_wrongly_too_often(looks: tuple[int, ...]) -> None:
    """Without noise: all kinds (of endless lives) with a mean at the margin, counted through."""
    for bar in (0.1, 0.3, 0.45, 0.7, 0.85):
        for low, high in itertools.product((0, 0.1, 0.3, 0.6, 0.8), (0.15, 0.35, 0.5, 0.75, 0.9, 0.95, 1)):
            if not low < bar < high:
                continue
            state, before, errors = np.ones(1), 0, np.zeros(2)
            for look, tail in zip(looks, tails(looks), strict=True):
                new = stats.binom.pmf(np.arange(look - before + 1), look - before, (bar - low) / (high - low))
                state = np.convolve(state, new)
                passes = kinds_p_values(look, low, high, bar) < tail
                fails = kinds_p_values(look, 1 - high, 1 - low, 1 - bar)[::-1] < tail
                errors += state[passes].sum(), state[fails].sum()
                state, before = np.where(passes | fails, 0, state), look
            assert max(errors) <= 0.05, (bar, low, high, errors)


def test_the_package_decides_as_the_code_here_does() -> None:
    """The same runs, look by look, by both."""
    random = np.random.default_rng(5)
    question = Question(ReferenceValue(value=0.8), -0.1, -0.1)
    looks = LOOKS
    for name, mean in (
        ("beta-binomial .4", 0.8),
        ("late learners", 0.5),
        ("one in 20 derailed", 0.85),
        ("all or none", 0.9),
    ):
        passed, numbers = PLAYERS[name](random, mean, 20)
        subjects = [SubjectTrials(int(k), int(n)) for k, n in zip(passed, numbers, strict=True)]
        for look, tail in zip(looks, tails(looks), strict=True):
            seen = (passed / numbers)[:look]
            ours = (
                Verdict.PASS
                if p_value_here(seen, 0.7) < tail
                else Verdict.FAIL
                if p_value_here(1 - seen, 0.3) < tail
                else Verdict.INCONCLUSIVE
            )
            assert decide(question, subjects, look, looks).verdict is ours, (name, look)
