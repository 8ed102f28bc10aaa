"""Descriptions of a cell that carry no verdict: outcomes, measures, strategy, learning curve."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from cheesebench.experiment.records import TrialRecord
from cheesebench.interfaces import ACTION_LETTERS, WAITED_LETTER
from cheesebench.statistics.sample import Lives
from cheesebench.statistics.summary import TAXONOMY, CurvePoint, Measure, Unit

#: A life of one session is cut into this many runs of trials for the learning curve.
CURVE_PARTS = 5


def taxonomy(records: Iterable[TrialRecord], not_run: int) -> dict[str, int]:
    """Count what became of the trials, by ``TAXONOMY``; a new cause of missing trials keeps its name."""
    counts = dict.fromkeys(TAXONOMY, 0)
    counts["not run"] = not_run
    for record in records:
        name = _class_of(record)
        counts[name] = counts.get(name, 0) + 1
    return counts


def _class_of(record: TrialRecord) -> str:
    if record.missing:
        return record.missing
    if record.success is None:
        return "unscored"
    if record.success:
        return "success"
    return "timeout" if record.outcome == "timeout" else "wrong choice"


def raw_outcomes(records: Iterable[TrialRecord]) -> dict[str, int]:
    """Count the protocol's own outcome names, most frequent first (ties by name)."""
    counts = Counter(record.outcome for record in records if record.outcome is not None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def own_measures(records: Sequence[TrialRecord]) -> tuple[Measure, ...]:
    """Summarise the protocol's measures that are numbers or yes/no, in the protocol's order."""
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.measures.items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                values.setdefault(name, []).append(float(value))
    return tuple(_summarise(name, numbers) for name, numbers in values.items())


def strategy_measures(records: Sequence[TrialRecord]) -> tuple[Measure, ...]:
    """Summarise how the agent moved; steps that the runner waited through are not the agent's."""
    found = []
    for name, measure in STRATEGY.items():
        numbers = [number for record in records if (number := measure(record)) is not None]
        if numbers:
            found.append(_summarise(name, numbers))
    return tuple(found)


def _summarise(name: str, numbers: Sequence[float]) -> Measure:
    spread = statistics.stdev(numbers) if len(numbers) > 1 else None
    return Measure(name, statistics.fmean(numbers), spread, len(numbers))


def _chosen(record: TrialRecord) -> str:
    return record.actions.replace(WAITED_LETTER, "")


def _entropy(record: TrialRecord) -> float | None:
    chosen = _chosen(record)
    if not chosen:
        return None
    shares = [chosen.count(letter) / len(chosen) for letter in ACTION_LETTERS]
    return sum(-share * math.log2(share) for share in shares if share)


def _share_of(letters: str) -> Callable[[TrialRecord], float | None]:
    def share(record: TrialRecord) -> float | None:
        chosen = _chosen(record)
        return sum(map(chosen.count, letters)) / len(chosen) if chosen else None

    return share


def _repeats(record: TrialRecord) -> float | None:
    chosen = _chosen(record)
    if len(chosen) < 2:
        return None
    return sum(a == b for a, b in itertools.pairwise(chosen)) / (len(chosen) - 1)


#: Name -> value of one trial, or None where the trial has none. Shares are of the agent's own actions.
STRATEGY: dict[str, Callable[[TrialRecord], float | None]] = {
    "action_entropy_bits": _entropy,
    "forward_share": _share_of("F"),
    "turn_share": _share_of("LR"),
    "stay_share": _share_of("S"),
    "repeat_share": _repeats,
    "path_length": lambda record: float(record.path_length),
    "bumps": lambda record: float(record.bumps),
    "steps": lambda record: float(record.steps),
    "reward": lambda record: float(record.reward),
}


def learning_curve(lives: Lives, unit: Unit) -> tuple[str, tuple[CurvePoint, ...]]:
    """Return the unit of the curve and its points: by session, or by runs of trials in a life of one session.

    Every scored trial that the reference is about enters, whatever the estimand.
    """
    scored = {
        subject: [r for r in life if r.compared and not r.missing and r.success is not None]
        for subject, life in lives.items()
    }
    sessions = {record.session for life in scored.values() for record in life}
    longest = max((len(life) for life in scored.values()), default=0)
    if len(sessions) > 1 or longest <= 1:
        return "session", _points({subject: [(r.session, r) for r in life] for subject, life in scored.items()}, unit)
    size = math.ceil(longest / CURVE_PARTS)
    numbered = {subject: [(k // size + 1, r) for k, r in enumerate(life)] for subject, life in scored.items()}
    return ("1 trial" if size == 1 else f"{size} trials"), _points(numbered, unit)


def _points(numbered: dict[int, list[tuple[int, TrialRecord]]], unit: Unit) -> tuple[CurvePoint, ...]:
    from cheesebench.statistics.intervals import rate_limits

    points = []
    for number in sorted({number for life in numbered.values() for number, _ in life}):
        own = [[bool(r.success) for k, r in life if k == number] for life in numbered.values()]
        passed, trials = [sum(life) for life in own if life], [len(life) for life in own if life]
        low, high = rate_limits(passed, trials, 0.025, unit)
        total = sum(trials)
        points.append(CurvePoint(number, sum(passed) / total, float(low), float(high), total))
    return tuple(points)
