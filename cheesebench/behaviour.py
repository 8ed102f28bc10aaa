"""The behaviour of subjects: curves and strategies session by session, and their tracks
through the arena.
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
#: For each curve, by name, a function that returns a trial's value, or None if the
#: trial has no value.
CURVES: dict[str, Callable[[TrialRecord], float | None]] = {
    "pass rate": lambda record: (
        None if record.success is None or not record.compared else float(record.success)
    ),
    "latency": lambda record: float(record.steps),
    "path length": lambda record: float(record.path_length),
}


@dataclass(frozen=True, slots=True)
class Track:
    """The track of one trial: its squares step by step (the first is the start), and
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
    """Behaviour of a cell's subjects. A point of a curve is a session, or a group of
    trials, as in ``CellResult.curve``.
    """

    plan: CellPlan
    unit: str
    curves: dict[str, dict[int, dict[int, float]]] = field(default_factory=dict)
    """Means over a subject's trials, by name in ``CURVES``, subject and point."""
    strategies: dict[str, dict[int, Counter[str]]] = field(default_factory=dict)
    """Numbers of trials, by categorical measure of the protocol, point and class."""

    @property
    def points(self) -> range:
        last = max(
            (max(own) for lines in self.curves.values() for own in lines.values()),
            default=0,
        )
        return range(1, last + 1)

    def mean(self, curve: str) -> dict[int, float]:
        """Return the mean over subjects at each point."""
        found: dict[int, list[float]] = {}
        for own in self.curves.get(curve, {}).values():
            for point, value in own.items():
                found.setdefault(point, []).append(value)
        return {
            point: sum(values) / len(values) for point, values in sorted(found.items())
        }


def behaviour(cell: CellResult, subjects: Iterable[Iterable[TrialRecord]]) -> Behaviour:
    """Return the behaviour in a cell's trials. ``subjects`` is read once."""
    found = Behaviour(cell.plan, cell.curve_unit)
    size = 0 if cell.curve_unit == "session" else int(cell.curve_unit.split()[0])
    for life in subjects:
        sums: dict[tuple[str, int], list[float]] = {}
        for place, record in enumerate(one for one in life if not one.missing):
            point = place // size + 1 if size else record.session
            # Without anything to reach, a trial always lasts to its limit. It must not
            # count as one that reached nothing.
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
    """Yield the tracks subject by subject, until they have ``most`` steps in all. Yield
    nothing if there is no arena.

    Raises RunLogError for the first trial that differs from its record.
    """
    try:
        paradigm = replay.steppable(replay.recorded_paradigm(log, plugins, plan), plan)
    except CheeseBenchError:
        return
    # The trial is the same in every view. This one is fast, because it caches drawings.
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
