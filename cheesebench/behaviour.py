"""The behaviour of subjects: curves and strategies session by session, and their tracks
through the arena.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment import replay
from cheesebench.records import LARGEST, Measured

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import Ground
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan, Frame, TrialRecord
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
#: Units of these curves.
UNITS: Mapping[str, str] = {"latency": "steps", "path length": "squares"}


@dataclass(frozen=True, slots=True)
class Track:
    """The track of one trial: its squares step by step (the first is the start), its
    last goals, and by how many degrees the landmarks were turned (``Pose.turn``).
    """

    subject: int
    session: int
    trial: int
    success: bool | None
    squares: tuple[Square, ...]
    goals: frozenset[Square]
    turn: int = 0

    @classmethod
    def of(cls, plan: CellPlan, record: TrialRecord, frames: Sequence[Frame]) -> Track:
        places = [frame.at for frame in frames if frame.at is not None]
        goals = (frame.goals for frame in reversed(frames) if frame.goals)
        return cls(
            record.subject,
            record.session,
            record.trial,
            # In an idle session, such as a probe, nothing can succeed.
            None if record.session in plan.idle else record.success,
            tuple((at.x, at.y) for at in places),
            next(goals, frozenset()),
            places[0].turn if places else 0,
        )


class Room:
    """The floor of a cell, seen from the room: if the maze is turned between trials,
    its tracks are turned back.
    """

    def __init__(self, ground: Ground, tracks: Iterable[Track]) -> None:
        self.ground = ground
        self._tiles = {
            (x + ground.left, y + ground.top): tile
            for y, row in enumerate(ground.scene.tiles)
            for x, tile in enumerate(row)
        }
        self._known: dict[tuple[Square, int], Square] = {}
        found: dict[int, set[frozenset[Square]]] = {}
        turns: set[int] = set()
        for track in tracks:
            turns.add(track.turn)
            if track.goals:
                goals = self._goals(track.goals, -track.turn)
                found.setdefault(track.subject, set()).add(goals)
        self.targets = {
            subject: next(iter(goals))
            for subject, goals in found.items()
            if len(goals) == 1
        }
        """Subject -> its goal, for each subject with the same goal in all trials."""
        self._aligned = {
            subject: self._way_to_first(goals, turns)
            for subject, goals in self.targets.items()
        }

    @staticmethod
    def floor(log: RunLog, plugins: PluginManager, plan: CellPlan) -> Ground | None:
        """Return the arena of a cell from above, or None if there is none."""
        return plugins.compile(replay.recorded_protocol(log, plan, plugins)).ground()

    def _way_to_first(self, goals: frozenset[Square], turns: Iterable[int]) -> int:
        first = next(iter(self.targets.values()))
        ways = (turn for turn in sorted(turns) if self._goals(goals, turn) == first)
        return next(ways, 0)

    def way(self, track: Track, together: bool) -> int:
        """Return by how many degrees a track is turned to be in its room or, with
        ``together``, so that all subjects have the target of the first one.
        """
        return (self._aligned.get(track.subject, 0) if together else 0) - track.turn

    def squares(self, track: Track, together: bool = False) -> list[Square]:
        way = self.way(track, together)
        return [self._turned(square, way) for square in track.squares]

    def occupancy(self, found: Iterable[Track]) -> Mapping[Square, int]:
        """Return, for each square, how many steps of all subjects ended there."""
        return Counter(
            square for track in found for square in self.squares(track, True)[1:]
        )

    def goals(self, track: Track, together: bool = False) -> frozenset[Square]:
        """Return the target of a track's subject, even for a trial without reward, such
        as a probe. If the subject's goals differ between trials, return the goals of
        the track's trial.
        """
        target = self.targets.get(track.subject)
        if target is None:
            return self._goals(track.goals, -track.turn)
        return self._goals(target, self.way(track, together) + track.turn)

    def _goals(self, goals: frozenset[Square], way: int) -> frozenset[Square]:
        """Return the goals turned by ``way`` degrees. If they are a place of the
        protocol, return the nearest place of the same size.
        """
        zones = self.ground.zones.values()
        if not way or goals not in zones:
            return frozenset(self._turned(square, way) for square in goals)
        x, y = self._exactly(_middle(goals), way)
        alike = [one for one in zones if len(one) == len(goals)]
        return min(alike, key=lambda one: math.dist(_middle(one), (x, y)))

    def _turned(self, square: Square, way: int) -> Square:
        """Return the square of the same kind that is nearest to the turned one."""
        if not way % 360:
            return square
        if (square, way) not in self._known:
            there = self._exactly(square, way)
            tile = self._tiles[square]
            alike = (one for one, other in self._tiles.items() if other == tile)
            self._known[square, way] = min(alike, key=lambda one: math.dist(one, there))
        return self._known[square, way]

    def _exactly(self, at: tuple[float, float], way: int) -> tuple[float, float]:
        if self.ground.centre is None:
            return at
        (x, y), (middle, height) = at, self.ground.centre
        sine, cosine = math.sin(math.radians(way)), math.cos(math.radians(way))
        across, down = x - middle, y - height
        return (
            middle + across * cosine - down * sine,
            height + across * sine + down * cosine,
        )


def _middle(squares: frozenset[Square]) -> tuple[float, float]:
    columns, rows = zip(*squares, strict=True)
    return sum(columns) / len(columns), sum(rows) / len(rows)


@dataclass(slots=True)
class Behaviour:
    """Behaviour of a cell's subjects. A point of a curve is a session, or a group of
    trials, as in ``CellResult.curve``.
    """

    plan: CellPlan
    unit: str
    curves: dict[str, dict[int, dict[int, float]]] = field(default_factory=dict)
    """Means over a subject's trials, by name of the curve, subject and point."""
    strategies: dict[str, dict[int, Counter[str]]] = field(default_factory=dict)
    """Numbers of trials, by categorical measure of the protocol, point and class."""

    units: Mapping[str, str] = field(default_factory=lambda: UNITS)
    """Unit of each curve that is not a measure of the protocol."""

    @property
    def points(self) -> range:
        last = max(
            (max(own) for lines in self.curves.values() for own in lines.values()),
            default=0,
        )
        return range(1, last + 1)

    def mean(self, curve: str) -> dict[int, float]:
        """Return the mean of a curve over subjects, by point."""
        found: dict[int, list[float]] = {}
        for own in self.curves.get(curve, {}).values():
            for point, value in own.items():
                found.setdefault(point, []).append(value)
        return {
            point: sum(values) / len(values) for point, values in sorted(found.items())
        }


class _Reader:
    """Reads the values of a trial, by the names of their curves."""

    def __init__(self, cell: CellResult) -> None:
        self._plan = cell.plan
        reported = cell.plan.animals_by_measure
        self._measures = {
            name: one.animals.measured or Measured(name=name, range=(-LARGEST, LARGEST))
            for name, one in reported.items()
        } | {
            # The protocol's own latency goes before ours, without animals as well.
            one.name: Measured(name=one.name, range=(-LARGEST, LARGEST))
            for one in cell.measures
            if one.name in CURVES and one.name not in reported
        }
        # A judged measure is read where it is judged, even in an idle session such as a
        # probe.
        self._judged = (
            () if cell.judged is None else {one.session for one in cell.judged.curve}
        )

    @property
    def units(self) -> Mapping[str, str]:
        """The units of the curves that are ours: a protocol's measure has any unit."""
        return {name: u for name, u in UNITS.items() if name not in self._measures}

    def is_idle(self, record: TrialRecord) -> bool:
        """Return whether nothing can be reached in the trial's session. The trials of
        such a session last to their limit, and must not count as failures.
        """
        return record.session in self._plan.idle

    def values(self, record: TrialRecord, idle: bool) -> Iterator[tuple[str, float]]:
        if not idle:
            for name, read in CURVES.items():
                if name not in self._measures and (number := read(record)) is not None:
                    yield name, number
        if not idle or record.session in self._judged:
            yield from self._of_measure(record)

    def _of_measure(self, record: TrialRecord) -> Iterator[tuple[str, float]]:
        """Yield the measures that have a curve. Like in the verdict, a value
        of the judged one beyond the range counts as the end of the range.
        """
        for measured in self._measures.values():
            low, high = measured.range
            if (value := measured.value_in(record)) is not None:
                yield measured.name, min(high, max(low, value))


def behaviour(cell: CellResult, subjects: Iterable[Iterable[TrialRecord]]) -> Behaviour:
    """Return the behaviour in a cell's trials. ``subjects`` is read once."""
    reader = _Reader(cell)
    found = Behaviour(cell.plan, cell.curve_unit, units=reader.units)
    size = 0 if cell.curve_unit == "session" else int(cell.curve_unit.split()[0])
    for life in subjects:
        sums: dict[tuple[str, int], list[float]] = {}
        for place, record in enumerate(one for one in life if not one.missing):
            point = place // size + 1 if size else record.session
            idle = not size and reader.is_idle(record)
            for name, number in reader.values(record, idle):
                sums.setdefault((name, point), []).append(number)
            classes = {} if idle else record.measures
            for name, value in classes.items():
                if isinstance(value, str):
                    found.strategies.setdefault(name, {}).setdefault(point, Counter())[
                        value
                    ] += 1
        for (name, point), values in sums.items():
            found.curves.setdefault(name, {}).setdefault(record.subject, {})[point] = (
                sum(values) / len(values)
            )
    return found


def tracks(
    log: RunLog, plugins: PluginManager, plan: CellPlan, most: int
) -> Iterator[list[Track]]:
    """Yield the tracks subject by subject, as long as they have at most ``most`` steps
    in all. Yield nothing if there is no arena.

    Raise RunLogError for the first trial that differs from its record.
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
            own.append(Track.of(plan, record, frames))
        if not any(track.squares for track in own):
            return
        yield own
