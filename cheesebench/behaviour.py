"""The behaviour of subjects: curves and strategies session by session, and tracks on
the floor of the arena.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment import replay

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import Ground
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan, TrialRecord
    from cheesebench.statistics import CellResult

Square = tuple[int, int]
#: Value of a trial for each curve, by name; None if the trial has none.
CURVES: dict[str, Callable[[TrialRecord], float | None]] = {
    "pass rate": lambda record: (
        None if record.success is None or not record.compared else float(record.success)
    ),
    "latency": lambda record: float(record.steps),
    "path length": lambda record: float(record.path_length),
}


@dataclass(frozen=True, slots=True)
class Track:
    """One trial on the floor: the squares step by step (the first is the start), and
    the goals at its end.
    """

    subject: int
    session: int
    trial: int
    success: bool | None
    squares: tuple[Square, ...]
    goals: frozenset[Square]


@dataclass(slots=True)
class Behaviour:
    """Behaviour of a cell's subjects. A point is a session, or a group of trials, as in
    ``CellResult.curve``.
    """

    plan: CellPlan
    unit: str
    curves: dict[str, dict[int, dict[int, float]]] = field(default_factory=dict)
    """Name of ``CURVES`` -> subject -> point -> mean over the subject's trials."""
    strategies: dict[str, dict[int, Counter[str]]] = field(default_factory=dict)
    """Categorical measure of the protocol -> point -> number of trials by class."""

    @property
    def points(self) -> range:
        last = max(
            (max(own) for lines in self.curves.values() for own in lines.values()),
            default=0,
        )
        return range(1, last + 1)

    def mean(self, curve: str) -> dict[int, float]:
        """Return, at each point, the mean over subjects."""
        found: dict[int, list[float]] = {}
        for own in self.curves.get(curve, {}).values():
            for point, value in own.items():
                found.setdefault(point, []).append(value)
        return {
            point: sum(values) / len(values) for point, values in sorted(found.items())
        }


def behaviour(cell: CellResult, subjects: Iterable[Iterable[TrialRecord]]) -> Behaviour:
    """Return the behaviour in a cell's trials, in one pass over them."""
    found = Behaviour(cell.plan, cell.curve_unit)
    size = 0 if cell.curve_unit == "session" else int(cell.curve_unit.split()[0])
    for life in subjects:
        sums: dict[tuple[str, int], list[float]] = {}
        for place, record in enumerate(one for one in life if not one.missing):
            point = place // size + 1 if size else record.session
            # A trial with nothing to reach always lasts to its limit, and would count
            # among trials that did not reach it.
            if not size and record.session in cell.plan.idle:
                continue
            for name, read in CURVES.items():
                if (number := read(record)) is not None:
                    sums.setdefault((name, point), []).append(number)
            for name, value in record.measures.items():
                if isinstance(value, str):
                    found.strategies.setdefault(name, {}).setdefault(point, Counter())[
                        value
                    ] += 1
        for (name, point), values in sums.items():
            found.curves.setdefault(name, {}).setdefault(record.subject, {})[point] = (
                sum(values) / len(values)
            )
    return found


def ground(log: RunLog, plugins: PluginManager, plan: CellPlan) -> Ground | None:
    """Return the arena of a cell from above, or None if there is none."""
    return plugins.compile(replay.recorded_protocol(log, plan, plugins)).ground()


def tracks(
    log: RunLog, plugins: PluginManager, plan: CellPlan, most: int
) -> Iterator[list[Track]]:
    """Yield the tracks subject by subject, up to ``most`` steps in all; nothing without
    an arena.

    Raises RunLogError for the first trial that differs from its record.
    """
    try:
        paradigm = replay.steppable(replay.recorded_paradigm(log, plugins, plan), plan)
    except CheeseBenchError:
        return
    # The trial is the same in every view, and this view caches its drawings.
    seed, view = log.manifest["options"]["seed"], plugins.view("ascii_2d")
    for life in log.trials_by_subject(plan):
        played = [record for record in life if not record.missing]
        most -= sum(record.steps for record in played)
        if most < 0:
            return
        environment = paradigm.environment(view, seed, life[0].subject)
        own = []
        for record, frames in zip(
            played, replay.films(environment, played), strict=True
        ):
            places = [
                (frame.at.x, frame.at.y) for frame in frames if frame.at is not None
            ]
            goals = next(
                (frame.goals for frame in reversed(frames) if frame.goals),
                frozenset[Square](),
            )
            own.append(
                Track(
                    record.subject,
                    record.session,
                    record.trial,
                    # In a probe, nothing can succeed.
                    None if record.session in plan.idle else record.success,
                    tuple(places),
                    goals,
                )
            )
        if not any(track.squares for track in own):
            return
        yield own


def occupancy(found: Iterable[Track]) -> Mapping[Square, int]:
    """Return the number of steps that ended on each square."""
    return Counter(square for track in found for square in track.squares[1:])
