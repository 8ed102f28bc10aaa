"""Simulates the operating characteristics of the verdict. It has an engine of its own,
which imports nothing of ``cheesebench.statistics``.

This module implements the rule a second time, for many runs at once, and draws subjects
of eleven kinds for the nine shipped protocols. ``python -m
benchmarks.verdict_simulation --write`` (minutes on one core) stores every figure that
the documentation quotes in ``benchmarks/results/verdict_simulation.json``; tests
compare the pages with that file, and the engine with the rule of the package.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import zlib
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

from benchmarks.places import fill
from cheesebench.protocol import with_arena

if TYPE_CHECKING:
    from cheesebench.protocol.specification import Specification

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

RESULTS = Path(__file__).parent / "results/verdict_simulation.json"
GOAL, LIMIT, MOST = 20.0, 40.0, 120
#: ``STAKES`` are the stakes of the bets. ``SHARES`` are the shares of the wealth behind
#: each.
STAKES = (0.25, 0.5, 0.75, 0.95, 0.12, 0.06, 0.03, 0.015, 0.007)
SHARES = np.array([*[0.2475] * 4, *[0.002] * 5])
SETS = (6, 10, 14, 18, 24, 30, *range(40, MOST + 1, 10))
STALE_FROM = 50
#: The tails of the animals' limits were chosen with seeds from 1; the stored figures
#: use this seed.
SEED = 20261124
#: Default intraclass correlation of subjects in expectations.
ICC = 0.3
_GRID = (np.arange(512) + 0.5) / 512


@dataclass(frozen=True)
class Setting:
    """The parameters of a protocol for the rule; ``sessions`` are the rates and numbers
    of judged trials.

    A verdict about a measure has one session without trials: a subject's score is its
    own mean, from 0 to 1.
    """

    name: str
    reference: float
    margin: float
    sessions: tuple[tuple[float, int], ...]
    animals: int | None = None
    sd: float | None = None
    each: tuple[float, ...] = ()
    """The animals' own rates, if the protocol lists them."""

    @property
    def mean(self) -> float:
        """Mean of a subject that follows the animals' curve."""
        weights = [max(1, trials) for _, trials in self.sessions]
        return float(np.average([rate for rate, _ in self.sessions], weights=weights))


def protocols() -> list[Specification]:
    """Return the nine paradigms."""
    from cheesebench.experiment.cells import Broken, default_protocols
    from cheesebench.interfaces import DEFAULT_EDITION
    from cheesebench.plugin_manager import installed_plugins
    from cheesebench.protocol import Catalogue

    found = default_protocols(
        Catalogue(installed_plugins().protocol_directories), DEFAULT_EDITION
    )
    return [with_arena(one) for one in found if not isinstance(one, Broken)]


def shipped() -> list[Setting]:
    """Return the parameters of a verdict for each of the nine paradigms."""
    from cheesebench.experiment.cells import reference_value

    found = []
    for document in protocols():
        reference = reference_value(document)
        assert reference is not None
        curve, sd, margin = reference.curve, reference.sd, document.document.margin
        animals = reference.n_animals if sd is not None else None
        if (measured := reference.measured) is not None:
            low, high = (
                measured.range if measured.better == "higher" else measured.range[::-1]
            )
            unit, judged = abs(high - low), document.judged
            assert judged is not None
            assert judged.margin is not None
            value, sd = (
                (reference.value - low) / (high - low),
                None if sd is None else sd / unit,
            )
            found.append(
                Setting(
                    document.name,
                    value,
                    judged.margin / unit,
                    ((value, 0),),
                    animals,
                    sd,
                )
            )
            continue
        sessions = tuple(
            (curve[session - 1] if session <= len(curve) else reference.value, trials)
            for session, trials in document.judged_sessions.items()
        )
        each = _each(document, reference.over)
        found.append(
            Setting(document.name, reference.value, margin, sessions, animals, sd, each)
        )
    return found


def _each(document: Specification, sessions: Container[int]) -> tuple[float, ...]:
    rows = next(
        (
            one.animals
            for one in document.document.reference
            if one.measure == "success" and isinstance(one.animals, list)
        ),
        [],
    )
    own: dict[Any, list[float]] = {}
    for animal, session, trials, passed in rows:
        if session in sessions:
            sums = own.setdefault(animal, [0.0, 0.0])
            sums[0], sums[1] = sums[0] + float(passed), sums[1] + float(trials)
    return tuple(passed / trials for passed, trials in own.values())


# -- subjects


@dataclass(frozen=True)
class Kind:
    """Differences between subjects: by a beta distribution with an ICC, or as two kinds
    with these rates.

    ``share`` of the subjects are of the first kind, and the second follows from the
    mean; without it both are fixed.
    """

    name: str
    icc: float = 0.0
    rates: tuple[float, float] | None = None
    share: float | None = None

    def ranks_to_rates(self, rank: Floats, mean: float) -> Floats | None:
        """Return the true rates of subjects with these ranks (0 to 1), or None if no
        such subjects have that mean.
        """
        if self.rates is not None:
            low, high = self.rates
            if self.share is not None:
                share, high = self.share, (mean - self.share * low) / (1 - self.share)
            else:
                share = (high - mean) / (high - low)
            if not (0 <= share <= 1 and 0 <= high <= 1):
                return None
            return np.where(rank < share, low, high)
        if not 0 < mean < 1 or not self.icc:
            return np.full(rank.shape, mean)
        spread = 1 / self.icc - 1
        return np.interp(
            rank, _GRID, betaincinv(mean * spread, (1 - mean) * spread, _GRID)
        )


KINDS = (
    *(Kind(f"ICC {icc:g}", icc) for icc in (0.0, 0.02, 0.1, 0.3, 0.5, 0.6)),
    Kind("learn or do not (.05, .95)", rates=(0.05, 0.95)),
    Kind("all or none (0, 1)", rates=(0.0, 1.0)),
    Kind("two kinds (.4, .95)", rates=(0.4, 0.95)),
    Kind("one in 20 never succeeds", rates=(0.0, 1.0), share=0.05),
    Kind("one in 20 always succeeds", rates=(1.0, 0.0), share=0.05),
)


def shifted(
    sessions: tuple[tuple[float, int], ...], mean: float
) -> tuple[tuple[float, int], ...]:
    """Return the sessions of subjects with another mean: their failures (or successes)
    are scaled.
    """
    now = Setting("", 0, 0, sessions).mean
    if mean <= now:
        return tuple((rate * mean / now, count) for rate, count in sessions)
    return tuple(
        (1 - (1 - rate) * (1 - mean) / (1 - now), count) for rate, count in sessions
    )


def scores(
    kind: Kind,
    sessions: tuple[tuple[float, int], ...],
    random: np.random.Generator,
    runs: int,
    subjects: int = MOST,
    missing: float = 0.0,
    lost: str = "",
    unequal: bool = False,
) -> tuple[Floats, Floats] | None:
    """Return the scores of subjects, of shape [runs, subjects], for the PASS game and
    for the FAIL game.

    ``missing`` trials are lost at random. ``lost``: all "failures" (or "successes") are
    lost. ``unequal``: a session of a subject has any number of trials up to the planned
    one. A subject keeps its rank from session to session.
    """
    rank = random.random((runs, subjects))
    low, high, planned = np.zeros_like(rank), np.zeros_like(rank), np.zeros_like(rank)
    for rate, most in sessions:
        own = kind.ranks_to_rates(rank, rate)
        if own is None:
            return None
        if not most:
            return own, own
        trials = (
            random.integers(1, most + 1, rank.shape)
            if unequal
            else np.full(rank.shape, most)
        )
        passed = random.binomial(trials, own)
        failed = trials - passed
        gone_passed = (
            passed if lost == "successes" else random.binomial(passed, missing)
        )
        gone_failed = failed if lost == "failures" else random.binomial(failed, missing)
        low += passed - gone_passed
        high += passed + gone_failed
        planned += trials
    return low / planned, high / planned


# -- the rule, for many runs at once


def log_wealth(values: Floats, bar: Floats | float) -> Floats:
    """Return the logarithm of the wealth of each bet after each subject, of shape
    [stakes, runs, subjects].
    """
    bars = np.clip(np.asarray(bar, dtype=float), 1e-9, 1 - 1e-9)
    ratio = values / (bars[:, None] if bars.ndim else bars)
    return np.asarray(
        np.cumsum(np.log([1 + stake * (ratio - 1) for stake in STAKES]), axis=2)
    )


def wealth(values: Floats, bar: Floats | float) -> Floats:
    """Return the wealth after each subject, of shape [runs, subjects]."""
    return together(log_wealth(values, bar))


def together(money: Floats) -> Floats:
    """Return the total wealth, given the logarithm of that of each bet."""
    return np.asarray(np.tensordot(SHARES, np.exp(np.minimum(money, 700)), axes=1))


@dataclass(frozen=True)
class Outcome:
    """For each run: whether it is a PASS, whether it is a FAIL, the number of the
    subject that decided (or of the last one), and the number of subjects that were run.
    """

    passed: Flags
    failed: Flags
    stopped: Numbers
    run: Numbers


def play(
    low: Floats,
    high: Floats,
    above: Floats | float,
    below: Floats | float,
    goal: float = GOAL,
) -> Outcome:
    """Return the verdicts; ``low`` and ``high`` are the scores of the PASS and of the
    FAIL game.
    """
    money = (
        log_wealth(low, above),
        log_wealth(1 - high, 1 - np.asarray(below, dtype=float)),
    )
    return settle(money, [together(one) for one in money], goal)


def settle(money: tuple[Floats, Floats], held: list[Floats], goal: float) -> Outcome:
    """Return the verdicts of both games."""
    subjects = held[0].shape[1]
    for one in held:
        one[:, 0] = 0.0  # Nothing is decided before the second subject.
    first = [
        np.where(
            (one >= goal).any(axis=1), (one >= goal).argmax(axis=1) + 1, subjects + 1
        )
        for one in held
    ]
    stale = np.full(len(first[0]), subjects + 1)
    best = np.maximum.accumulate(
        np.maximum(*(one.max(axis=0) for one in money)), axis=1
    )
    for number in reversed([one for one in SETS if STALE_FROM <= one < subjects]):
        stale = np.where(best[:, number - 1] < np.log(2), number, stale)
    passed = (first[0] < first[1]) & (first[0] <= np.minimum(stale, subjects))
    failed = (first[1] < first[0]) & (first[1] <= np.minimum(stale, subjects))
    stopped = np.minimum(np.minimum(*first), np.minimum(stale, subjects))
    sets = np.array([one for one in SETS if one < subjects] + [subjects])
    return Outcome(passed, failed, stopped, sets[np.searchsorted(sets, stopped)])


@dataclass(frozen=True)
class Animals:
    """The animals' value and standard deviation in each run: as published, or drawn
    anew.
    """

    value: Floats
    sd: Floats

    @classmethod
    def of(
        cls,
        setting: Setting,
        runs: int,
        random: np.random.Generator | None = None,
        redrawn: bool = False,
    ) -> Animals:
        """Return the animals of the setting.

        With ``random``, each run has a new group of animals with the setting's mean and
        spread, or with animals ``redrawn`` from its own.
        """
        assert setting.animals is not None
        assert setting.sd is not None
        if random is None:
            return cls(np.full(runs, setting.reference), np.full(runs, setting.sd))
        spread = setting.reference * (1 - setting.reference) / setting.sd**2 - 1
        shape = (runs, setting.animals)
        if redrawn:
            drawn = random.choice(setting.each, shape)
        elif spread < 0.01:  # Each animal has one trial, with the score 0 or 1.
            drawn = (random.random(shape) < setting.reference).astype(float)
        else:
            drawn = random.beta(
                setting.reference * spread, (1 - setting.reference) * spread, shape
            )
        return cls(drawn.mean(axis=1), drawn.std(axis=1, ddof=1))


#: Tail probability of the animals' limit in the PASS game and in the FAIL game.
TAILS = (0.04, 0.01)


def newcombe_bar(
    setting: Setting, animals: Animals, values: Floats, tail: float, sign: int
) -> Floats:
    """Return the bar after each subject, of shape [runs, subjects]."""
    assert setting.animals is not None
    half = -stdtrit(setting.animals - 1, tail) * animals.sd / setting.animals**0.5
    mean = np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1)
    ahead = sign * (mean - animals.value[:, None]) + sign * setting.margin
    inner = np.sqrt(np.maximum(0, ahead**2 - half[:, None] ** 2))
    return np.asarray(mean - sign * inner * (ahead > 0))


def verdicts(
    setting: Setting, low: Floats, high: Floats, animals: Animals | None = None
) -> Outcome:
    """Return the verdicts of the shipped rule. If the animals are a sample, each game
    is played anew.
    """
    if setting.animals is None:
        bar = setting.reference - setting.margin
        return play(low, high, bar, bar)
    animals = animals or Animals.of(setting, len(low))
    bars = (
        newcombe_bar(setting, animals, low, TAILS[0], 1),
        1 - newcombe_bar(setting, animals, high, TAILS[1], -1),
    )
    money = (
        wealth_at_its_mean(low, bars[0]),
        wealth_at_its_mean(1 - high, bars[1]),
    )
    return settle(money, [together(one) for one in money], GOAL)


def wealth_at_its_mean(values: Floats, bars: Floats) -> Floats:
    """Return the logarithm of the wealth of each bet after each subject, played anew
    against the bar of that moment; shape [stakes, runs, subjects].

    Subjects with the same score multiply the wealth by the same factor, so only their
    numbers are needed.
    """
    safe, stakes = np.clip(bars, 1e-9, 1 - 1e-9), np.array(STAKES)[:, None, None]
    money = np.zeros((len(STAKES), *values.shape))
    for value in np.unique(values):
        counts = np.cumsum(values == value, axis=1)
        money += counts * np.log(1 + stakes * (value / safe - 1))
    return money


# -- figures


def mark(setting: Setting) -> int:
    """Return a number for the seeds of a protocol, which does not depend on the other
    simulated protocols.
    """
    return zlib.crc32(setting.name.encode())


#: The case in which animals are drawn from those of the protocol's file.
REDRAWN = "animals redrawn from their files"
#: The cases in which errors are simulated, each with what it changes in the trials of
#: models at the bar.
CASES: dict[str, dict[str, Any]] = {
    "complete": {},
    REDRAWN: {},
    "5 % missing": {"missing": 0.05},
    "all failures missing": {"lost": "failures"},
    "all successes missing": {"lost": "successes"},
    "unequal numbers of trials": {"unequal": True},
}
#: Number of runs in memory at once.
AT_ONCE = 2000


def errors(
    settings: list[Setting], runs: int, cases: Container[str] = frozenset(CASES)
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Return the shares of false PASS and FAIL at the bar, by case, protocol and kind;
    animals are drawn anew.
    """
    found: dict[str, dict[str, dict[str, list[float]]]] = {case: {} for case in CASES}
    for case, options in CASES.items():
        for setting in settings:
            if case not in cases or (case == REDRAWN and not setting.each):
                continue
            for kind in KINDS:
                shares = []
                for part in range(runs // AT_ONCE):
                    random = np.random.default_rng(
                        [
                            SEED,
                            1,
                            list(CASES).index(case),
                            mark(setting),
                            KINDS.index(kind),
                            part,
                        ]
                    )
                    mean = setting.reference - setting.margin
                    drawn = scores(
                        kind,
                        shifted(setting.sessions, mean),
                        random,
                        AT_ONCE,
                        **options,
                    )
                    if drawn is None:
                        break
                    animals = (
                        None
                        if setting.animals is None
                        else Animals.of(setting, AT_ONCE, random, case == REDRAWN)
                    )
                    shares.append(claims(setting, *drawn, animals))
                if shares:
                    found[case].setdefault(setting.name, {})[kind.name] = [
                        *map(float, np.mean(shares, axis=0))
                    ]
    return found


def claims(
    setting: Setting, low: Floats, high: Floats, animals: Animals | None
) -> tuple[float, float]:
    """Return the shares of PASS and FAIL.

    A bar that follows the mean is never easier than the animals' value less the margin,
    and a game against its own mean gains nothing. So runs whose wealth against that
    value stays below the goal need not be played.
    """
    runs = len(low)
    if animals is not None:
        bar = animals.value - setting.margin
        near = np.zeros(runs, dtype=bool)
        for values, fixed in ((low, bar), (1 - high, 1 - bar)):
            money = log_wealth(values.astype(np.float32), fixed.astype(np.float32))
            near |= money.max(axis=(0, 2)) >= np.log(GOAL) - 0.01
        if not near.any():
            return 0.0, 0.0
        low, high = low[near], high[near]
        animals = Animals(animals.value[near], animals.sd[near])
    one = verdicts(setting, low, high, animals)
    return float(one.passed.sum() / runs), float(one.failed.sum() / runs)


def measures(runs: int) -> dict[str, list[float]]:
    """Return the shares for scores of other shapes, at a reference of .5 with a margin
    of .1.
    """
    shapes: dict[str, Callable[..., NDArray[np.float64]]] = {
        "uniform": lambda random, mean, shape: random.uniform(
            mean - 0.2, mean + 0.2, shape
        ),
        "skewed (beta with a spread of .3)": lambda random, mean, shape: random.beta(
            mean * 1.6, (1 - mean) * 1.6, shape
        ),
        "one in 20 is at the end": lambda random, mean, shape: np.where(
            random.random(shape) < 0.05, 1.0, (mean - 0.05) / 0.95
        ),
    }
    setting = Setting("measure", 0.5, 0.1, ((0.5, 1),))
    found = {}
    for at, (name, draw) in enumerate(shapes.items()):
        values = draw(np.random.default_rng([SEED, 2, at]), 0.4, (runs, MOST))
        one = verdicts(setting, values, values)
        found[name] = [float(one.passed.mean()), float(one.failed.mean())]
    return found


#: Assumed truths: name, shift of the mean from the reference (None: random moves), and
#: ICC.
TRUTHS: dict[str, tuple[float | None, float]] = {
    "random": (None, 0.0),
    "30 points worse": (-0.3, ICC),
    "20 points worse": (-0.2, ICC),
    "as good, ICC .1": (0.0, 0.1),
    "as good": (0.0, ICC),
    "10 points better": (0.1, ICC),
    "perfect": (1.0, 0.0),
}


def expectations(
    settings: list[Setting], chances: dict[str, float], runs: int
) -> dict[str, dict[str, dict[str, float]]]:
    """Return by truth and protocol: shares of PASS and FAIL, disagreement, subjects
    until decided, and subjects run.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for number, (name, (shift, icc)) in enumerate(TRUTHS.items()):
        for setting in settings:
            mean = (
                chances[setting.name]
                if shift is None
                else min(1.0, max(0.0, setting.reference + shift))
            )
            random = np.random.default_rng([SEED, 3, number, mark(setting)])
            drawn = scores(Kind("", icc), shifted(setting.sessions, mean), random, runs)
            assert drawn is not None
            one = verdicts(setting, *drawn)
            passed, failed = float(one.passed.mean()), float(one.failed.mean())
            row = {
                "PASS": passed,
                "FAIL": failed,
                "disagree": 1 - passed**2 - failed**2 - (1 - passed - failed) ** 2,
                "decided": float(one.stopped.mean()),
                "run": float(one.run.mean()),
                **{
                    f"PASS by {most}": float(
                        (one.passed & (one.stopped <= most)).mean()
                    )
                    for most in (30, 60, 90)
                },
            }
            found.setdefault(name, {})[setting.name] = row
    return found


def losses(settings: list[Setting], runs: int) -> dict[str, list[float]]:
    """Return the mean shares of PASS and FAIL over the protocols when trials are
    missing.
    """
    cases = {
        "as good, 1 % missing": (0.0, 0.01, ""),
        "as good, 5 % missing": (0.0, 0.05, ""),
        "at the bar, 5 % missing": (None, 0.05, ""),
        "at the bar, all failures missing": (None, 0.0, "failures"),
        "at the bar, all successes missing": (None, 0.0, "successes"),
    }
    found = {}
    for number, (name, (shift, missing, lost)) in enumerate(cases.items()):
        shares = []
        for setting in settings:
            mean = (
                setting.reference - setting.margin
                if shift is None
                else setting.reference + shift
            )
            random = np.random.default_rng([SEED, 4, number, mark(setting)])
            drawn = scores(
                Kind("", ICC),
                shifted(setting.sessions, mean),
                random,
                runs,
                missing=missing,
                lost=lost,
            )
            assert drawn is not None
            one = verdicts(setting, *drawn)
            shares.append((float(one.passed.mean()), float(one.failed.mean())))
        found[name] = [
            float(np.mean([share[side] for share in shares])) for side in (0, 1)
        ]
    return found


def coverage(settings: list[Setting], runs: int) -> dict[str, float]:
    """Return, for each truth, the smallest share over the protocols of intervals that
    hold when the cell stops.
    """
    found = {}
    for number, (name, (shift, icc)) in enumerate(TRUTHS.items()):
        if shift is None:
            continue
        least = 1.0
        for setting in settings:
            mean = min(1.0, setting.reference + shift)
            drawn = scores(
                Kind("", icc),
                shifted(setting.sessions, mean),
                np.random.default_rng([SEED, 5, number, mark(setting)]),
                runs,
            )
            assert drawn is not None
            one, truth = verdicts(setting, *drawn), min(mean, 1 - 1e-9)
            held = wealth(drawn[0], truth), wealth(1 - drawn[1], 1 - truth)
            inside = np.arange(1, MOST + 1) <= one.run[:, None]
            missed = [((each >= LIMIT) & inside)[:, 1:].any(axis=1) for each in held]
            least = min(least, float(1 - (missed[0] | missed[1]).mean()))
        found[name] = least
    return found


#: Drifts of a mean: its size, its duration in subjects, and whether the mean is the bar
#: on average.
DRIFTS = {
    "as good on average, better by 20 points over 60 subjects": (0.2, 60, False),
    "as good on average, worse by 20 points over 60 subjects": (-0.2, 60, False),
    **{
        f"at the bar on average, {word} by {points} points over 120": (
            sign * points / 100,
            120,
            True,
        )
        for word, sign in (("better", 1), ("worse", -1))
        for points in (10, 20, 40)
    },
}


def drift(settings: list[Setting], runs: int) -> dict[str, list[float]]:
    """Return the mean shares of PASS and FAIL for models with a drifting mean that is
    on average as good as the animals, or at the bar.
    """
    found = {}
    for number, (name, (change, over, at_bar)) in enumerate(DRIFTS.items()):
        shares = []
        for setting in settings:
            random, columns = (
                np.random.default_rng([SEED, 6, number, mark(setting)]),
                [],
            )
            for subject in range(MOST):
                moved = change * (min(subject, over) / over - 0.5)
                centre = setting.reference - at_bar * setting.margin
                own = scores(
                    Kind("", ICC),
                    shifted(setting.sessions, min(0.99, max(0.01, centre + moved))),
                    random,
                    runs,
                    1,
                )
                assert own is not None
                columns.append(own[0])
            values = np.concatenate(columns, axis=1)
            one = verdicts(setting, values, values)
            shares.append((float(one.passed.mean()), float(one.failed.mean())))
        found[name] = [
            float(np.mean([share[side] for share in shares])) for side in (0, 1)
        ]
    return found


#: Kinds of subjects, with 20 trials each, of models whose mean is close to a bar of .6.
NEAR = {"ICC .3": Kind("", ICC), "all or none": Kind("", rates=(0.0, 1.0))}


def near(runs: int) -> dict[str, list[float]]:
    """Return the median number of subjects until PASS, by distance above a declared
    bar, for each kind of ``NEAR``.
    """
    bar, block, found = 0.6, 500, {}
    for at, distance in enumerate((0.1, 0.05, 0.02, 0.01)):
        needed = []
        for kind in NEAR.values():
            random = np.random.default_rng([SEED, 8, at])
            money, begun = np.zeros((len(STAKES), runs, 1)), 0
            firsts: list[int] = []
            # The median is known once more than half of the runs are decided.
            while len(firsts) <= runs // 2:
                ranks = random.random((money.shape[1], block))
                rates = kind.ranks_to_rates(ranks, bar + distance)
                assert rates is not None
                money = money + log_wealth(random.binomial(20, rates) / 20, bar)
                grown = together(money) >= GOAL
                over = grown.any(axis=1)
                firsts += (begun + 1 + grown.argmax(axis=1)[over]).tolist()
                money, begun = money[:, ~over, -1:], begun + block
            middle = sorted(firsts)[(runs - 1) // 2 : runs // 2 + 1]
            needed.append(float(np.mean(middle)))
        found[f"{distance:g}"] = needed
    return found


def regression(runs: int) -> dict[str, list[float]]:
    """Return shares of "worse" by sign flips, and of "no loss" by betting, for each
    kind of subjects, points lost, and number of pairs.

    Subjects have 40 trials; a subject has the same rate in both runs, minus the loss.
    """
    found = {}
    kinds = {"ICC .3": Kind("", ICC), "learn or do not": Kind("", rates=(0.05, 0.95))}
    for at, (name, kind) in enumerate(kinds.items()):
        for lost in (0.0, 0.3):
            for pairs in (20, 60):
                random = np.random.default_rng([SEED, 7, at, int(100 * lost), pairs])
                rates = kind.ranks_to_rates(random.random((runs, pairs)), 0.7)
                after = (
                    kind.ranks_to_rates(random.random((runs, pairs)), 0.7 - lost)
                    if lost and kind.rates
                    else rates
                )
                assert rates is not None
                assert after is not None
                old = random.binomial(40, rates) / 40
                new = (
                    random.binomial(
                        40, np.clip(after - (0 if kind.rates else lost), 0, 1)
                    )
                    / 40
                )
                differences, signs = new - old, random.choice([-1.0, 1.0], (999, pairs))
                sums = differences.sum(axis=1)
                p = (
                    1
                    + (
                        np.abs(differences @ signs.T) >= np.abs(sums)[:, None] - 1e-9
                    ).sum(axis=1)
                ) / 1000
                worse = (p < 0.05) & (sums < 0)
                cleared = ~worse & (
                    wealth((1 + differences) / 2, 0.35)[:, 1:].max(axis=1) >= GOAL
                )
                found[f"{name}, {100 * lost:.0f} points lost, {pairs} pairs"] = [
                    worse.mean(),
                    cleared.mean(),
                ]
    return {name: [float(one) for one in shares] for name, shares in found.items()}


def figures(
    runs: int, only: str | None = None, protocols: str | None = None
) -> dict[str, Any]:
    """Return everything that is stored, or one part of it, or that
    of some protocols.
    """
    settings = [
        one
        for one in shipped()
        if protocols is None or one.name in protocols.split(",")
    ]
    steps: dict[str, Any] = {
        "errors": lambda: errors(settings, runs),
        "measures": lambda: measures(runs),
        "expectations": lambda: expectations(settings, chances(), runs // 5),
        "missing": lambda: losses(settings, runs // 5),
        "coverage": lambda: coverage(settings, runs // 5),
        "drift": lambda: drift(settings, runs // 20),
        "near": lambda: near(runs // 5),
        "regression": lambda: regression(runs // 5),
    }
    found: dict[str, Any] = {"runs": runs}
    for name, step in steps.items():
        if only not in (None, name):
            continue
        found[name] = step()
        print(name, "done", flush=True)
    return found


def chances() -> dict[str, float]:
    """Return the pass rate of random moves on each protocol."""
    documents = {one.name: one.document for one in protocols()}
    return {
        name: document.chance.value
        for name, document in documents.items()
        if document.chance is not None
    }


def rounded(value: Any) -> Any:
    """Return figures with four digits."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


# -- tables for the pages


def tables(found: dict[str, Any]) -> dict[str, str]:
    """Return the tables of the documentation, by name."""
    kinds = [kind.name for kind in KINDS]
    complete = found["errors"]["complete"]
    worst = [
        [
            name,
            *(
                f"{max(own[name][side] for own in complete.values() if name in own):.3f}"
                for side in (0, 1)
            ),
        ]
        for name in kinds
    ]
    worst += [
        [f"any of these, {case}", *(f"{max(one[side] for kinds in own.values() for one in kinds.values()):.3f}"
                                    for side in (0, 1))]
        for case, own in found["errors"].items() if case != "complete"
    ]  # fmt: skip
    worst += [
        [f"measure: {name}", *(f"{one:.3f}" for one in own)]
        for name, own in found["measures"].items()
    ]
    expected = []
    for name, own in found["expectations"].items():
        mean = {
            key: float(np.mean([row[key] for row in own.values()]))
            for key in next(iter(own.values()))
        }
        shares = [
            f"{mean[key]:.2f}"
            for key in ("PASS by 30", "PASS by 60", "PASS", "FAIL", "disagree")
        ]
        expected.append([name, *shares, f"{mean['decided']:.0f}", f"{mean['run']:.0f}"])
    good = found["expectations"]["as good"]
    protocols = [
        [
            name,
            f"{own['PASS']:.2f}",
            f"{found['expectations']['as good, ICC .1'][name]['PASS']:.2f}",
            f"{own['run']:.0f}",
        ]
        for name, own in good.items()
    ]
    lost = [
        [name, *(f"{one:.2f}" for one in shares)]
        for name, shares in found["missing"].items()
    ]
    lost += [
        [name, *(f"{one:.2f}" for one in shares)]
        for name, shares in found["drift"].items()
    ]
    near = [
        [f"{100 * float(name):g}", *(_two_digits(one) for one in own)]
        for name, own in found["near"].items()
    ]
    pairs = [
        [name, *(f"{one:.2f}" for one in shares)]
        for name, shares in found["regression"].items()
    ]
    covered = [[name, f"{share:.3f}"] for name, share in found["coverage"].items()]
    return {
        "errors": _table(["subjects", "false PASS", "false FAIL"], worst),
        "expected": _table(
            [
                "model",
                "PASS by 30",
                "by 60",
                "by 120",
                "FAIL",
                "two runs disagree",
                "decided after",
                "subjects run",
            ],
            expected,
        ),
        "protocols": _table(
            ["protocol", "PASS, ICC .3", "PASS, ICC .1", "subjects run, ICC .3"],
            protocols,
        ),
        "missing": _table(["model", "PASS", "FAIL"], lost),
        "near": _table(["points above the bar", *NEAR], near),
        "coverage": _table(["model", "intervals that hold, at least"], covered),
        "regression": _table(["comparison", "worse", "no loss of 30"], pairs),
    }


def _two_digits(subjects: float) -> str:
    return f"{round(subjects, 1 - int(math.log10(subjects))):,.0f}"


def _table(headers: list[str], rows: list[list[str]]) -> str:
    lines = [headers, ["---", *["---:"] * (len(headers) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


#: Page with the tables.
PAGE = Path(__file__).parents[1] / "docs/reference/verdicts.md"


def main() -> None:
    """Simulate, print the figures, and store them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--only", help="only this part of the figures")
    parser.add_argument(
        "--protocols",
        help="only these of the nine, with commas; with --only errors or expectations",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"store the figures in {RESULTS.name} and in the page",
    )
    options = parser.parse_args()
    found = rounded(figures(options.runs, options.only, options.protocols))
    print(json.dumps(found, indent=1))
    if options.write:
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if options.only else {}
        if options.protocols:
            found[options.only] = {
                key: {**known[options.only][key], **own}
                for key, own in found[options.only].items()
            }
        text = json.dumps({**known, **found}, indent=1)
        # Puts each pair on one line.
        pairs = re.sub(r"\[\s+([\d.e-]+),\s+([\d.e-]+)\s+\]", r"[\1, \2]", text)
        RESULTS.write_text(pairs + "\n", encoding="utf-8")
        everything = json.loads(RESULTS.read_text(encoding="utf-8"))
        for name, text in tables(everything).items():
            fill(PAGE, name, f"\n{text}\n")


if __name__ == "__main__":
    main()
