"""The trials of a run as data for the page's player: selected,
replayed and compressed.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from PIL import Image

from cheesebench.amounts import dollars, duration
from cheesebench.behaviour import Room, Track
from cheesebench.chat import Picture
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.replay import recorded_protocol
from cheesebench.records import Frame
from cheesebench.reports.cells import clean, visible
from cheesebench.statistics.sample import enter_estimand

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import Ground
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CallRecord, CellPlan, ReplayedCall, TrialRecord

#: Maximum number of characters of a question, a reply, its reasoning or its learnings
#: on the page.
LONGEST_REPLY = 20_000


def call_of(replayed: ReplayedCall) -> dict[str, Any]:
    """Return a call and its place in the trial, as JSON values."""
    record = replayed.record
    return {
        "step": replayed.step,
        "asked": visible(record.asked, LONGEST_REPLY),
        "reply": visible(record.reply.text, LONGEST_REPLY),
        "reasoning": visible(record.reply.reasoning, LONGEST_REPLY),
        "learnings": visible(replayed.learnings, LONGEST_REPLY),
        "usage": clean(_usage(record)),
    }


def _usage(record: CallRecord) -> str:
    """Return tokens, duration, cost and other facts about a call as one line."""
    used = record.reply.usage
    shares = {"cached": used.cached, "written to the cache": used.written}
    replayed = ", ".join(
        f"{tokens:,} {what}" for what, tokens in shares.items() if tokens
    )
    parts = [f"{used.prompt:,} prompt tokens" + (f" ({replayed})" if replayed else "")]
    parts.append(
        f"{used.completion:,} reply tokens"
        + (f" ({used.reasoning:,} reasoning)" if used.reasoning else "")
    )
    parts.append(duration(record.seconds))
    if record.attempts > 1:
        parts.append(f"{record.attempts} attempts")
    if record.reply.finish == "length":
        parts.append("cut off at the limit")
    if record.cost is not None:
        parts.append(dollars(record.cost))
    if record.reply.model:
        parts.append(record.reply.model)
    return ", ".join(parts)


#: Maximum number of steps that are replayed for one page. Replaying them takes a few
#: seconds and 130 MB.
MAX_STEPS = 2_000_000
#: Maximum number of characters of an observation on the page.
LONGEST = 10_000


@dataclass(slots=True)
class Shelf:
    """The trials of one cell that a page can show.

    ``trials`` has one JSON object for each trial, in the order of preference.
    ``played`` is the number of trials that were run (on the page of one subject or
    trial, only these), and ``failed`` is how many of them failed. ``problem`` says why
    no trial can be shown, and ``note`` why replies cannot be shown.
    """

    plan: CellPlan
    played: int = 0
    failed: int = 0
    trials: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""
    note: str = ""
    packed: str = ""
    """The first ``shown`` trials, as ``pack`` writes them, or "" before they are
    packed.
    """
    shown: int = 0
    """Number of trials on the page."""
    ground: dict[str, Any] | None = None
    """The floor of the arena seen from above, for the page, or None if there is no map.
    """

    @property
    def shown_failed(self) -> int:
        """Number of failed trials on the page."""
        return sum(trial["success"] is False for trial in self.trials[: self.shown])

    @property
    def scored(self) -> bool:
        """Whether some trial on the page can pass or fail."""
        return any(trial["success"] is not None for trial in self.trials[: self.shown])

    @property
    def complete(self) -> bool:
        """Whether every trial that was run is on the page."""
        return self.shown == self.played


def shelves(
    log: RunLog,
    plugins: PluginManager,
    plans: Sequence[CellPlan],
    budget: int = MAX_STEPS,
) -> list[Shelf]:
    """Return one shelf for each cell, in the order of ``plans``. Together they replay
    at most ``budget`` steps, each cell an equal part of them.

    If the budget is too small for all trials, failed trials come first.
    """
    return [
        _fill(log, plugins, plan, budget // len(plans), range(plan.subjects))
        for plan in plans
    ]


def subject_shelf(
    log: RunLog,
    plugins: PluginManager,
    plan: CellPlan,
    subject: int,
    budget: int = MAX_STEPS,
) -> Shelf:
    """Return the shelf of one subject, with as many trials as ``budget`` steps allow.
    The run may be in progress.
    """
    return _fill(log, plugins, plan, budget, range(subject, subject + 1))


def one_trial(
    log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, trial: int
) -> Shelf:
    """Return a shelf that holds only one recorded trial. Raise CheeseBenchError if it
    cannot be shown.
    """
    record = next(
        one
        for one in log.trials(plan, subject)
        if one.trial == trial and not one.missing
    )
    success = _success(plan, record.session, record.success)
    shelf = Shelf(plan, 1, int(success is False))
    shelf.trials = list(
        _replayed(log, plugins, shelf, [Sketch(subject, trial, record.steps, success)])
    )
    shelf.shown, shelf.packed = len(shelf.trials), pack(shelf.trials)
    return shelf


def make_room(filled: Sequence[Shelf], room: int) -> None:
    """Set ``packed`` and ``shown`` of all shelves so that together they take at most
    ``room`` characters.
    """
    for shelf in filled:
        shelf.packed = pack(shelf.trials) if shelf.trials else ""
    share = fair_share([len(shelf.packed) for shelf in filled], room)
    for shelf in filled:
        if len(shelf.packed) > share:
            shelf.shown = _most(shelf.trials, share)
            shelf.packed = pack(shelf.trials[: shelf.shown]) if shelf.shown else ""


def _most(trials: Sequence[Mapping[str, Any]], share: int) -> int:
    """Return the number of trials that can be packed into ``share`` characters."""
    return max(
        0,
        bisect_right(
            range(len(trials) + 1), share, key=lambda count: len(pack(trials[:count]))
        )
        - 1,
    )


def fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the largest limit such that the sum of ``sizes``, each cut to the limit,
    fits into ``room``, or ``room`` if nothing need be cut.
    """
    left = room
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return share
        left -= size
    return room


class Sketch(NamedTuple):
    """The facts about a trial that decide whether it is shown."""

    subject: int
    trial: int
    steps: int
    success: bool | None


@dataclass(frozen=True, slots=True)
class _Subjects:
    """Iterates over a cell's trials, subject by subject, any number of times. Only one
    subject is in memory.
    """

    log: RunLog
    plan: CellPlan
    numbers: range

    def __iter__(self) -> Iterator[list[Sketch]]:
        found = self.log.stream(
            "SELECT subject, trial, steps, success, session FROM trials WHERE model = ? AND protocol = ? AND view = ? AND "
            "variant = ? AND subject >= ? AND subject < ? AND missing = '' ORDER BY subject, trial",
            (*self.plan.key, self.numbers.start, self.numbers.stop),
        )
        sketches = (
            Sketch(subject, trial, steps, _success(self.plan, session, success))
            for subject, trial, steps, success, session in found
        )
        for _, subjects in groupby(sketches, lambda sketch: sketch.subject):
            yield list(subjects)


def _success(plan: CellPlan, session: int, success: int | None) -> bool | None:
    """Return whether a trial is a success, or None if the protocol has no success. In a
    session in which nothing can succeed, such as a probe, a trial is no failure, so
    this is None, too.
    """
    return None if success is None or session in plan.idle else bool(success)


def choose(subjects: Iterable[Sequence[Sketch]], budget: int) -> list[Sketch]:
    """Return the trials to show, failed ones first, within ``budget`` steps.

    ``subjects`` are in ascending order, and are iterated twice. To replay a trial, all
    earlier trials of its subject must be replayed too.
    """
    reached: dict[int, int] = {}
    chosen = []
    for failed in (True, False):
        for sketches in subjects:
            for sketch, end in zip(
                sketches, accumulate(sketch.steps for sketch in sketches), strict=True
            ):
                if (sketch.success is False) is not failed:
                    continue
                before = reached.get(sketch.subject, 0)
                cost = max(0, end - before)
                if cost <= budget:
                    budget -= cost
                    reached[sketch.subject] = before + cost
                    chosen.append(sketch)
    return chosen


def _fill(
    log: RunLog, plugins: PluginManager, plan: CellPlan, budget: int, numbers: range
) -> Shelf:
    subjects = _Subjects(log, plan, numbers)
    chosen = choose(subjects, budget)
    shelf = Shelf(plan)
    for sketches in subjects:
        shelf.played += len(sketches)
        shelf.failed += sum(sketch.success is False for sketch in sketches)
    try:
        replayed = {
            (trial["subject"], trial["trial"]): trial
            for trial in _replayed(log, plugins, shelf, chosen)
        }
    except Exception as error:
        # Every error is caught, because the rest of the page is useful even if a
        # plugin's view or family fails.
        shelf.problem = (
            str(error)
            if isinstance(error, CheeseBenchError)
            else f"{type(error).__name__}: {error}"
        )
    else:
        shelf.trials = [replayed[sketch.subject, sketch.trial + 1] for sketch in chosen]
        shelf.shown = len(chosen)
    return shelf


def _replayed(
    log: RunLog, plugins: PluginManager, shelf: Shelf, chosen: Iterable[Sketch]
) -> Iterator[dict[str, Any]]:
    """Yield the chosen trials as JSON values, in which equal observations are the same
    object. Set ``ground`` and ``note`` of the shelf.
    """
    plan = shelf.plan
    wanted: dict[int, set[int]] = {}
    for sketch in chosen:
        wanted.setdefault(sketch.subject, set()).add(sketch.trial)
    if not wanted:
        return
    known: dict[str, Any] = {}
    floor = Room.floor(log, plugins, plan)
    shelf.ground = None if floor is None else _ground(floor)
    family = plugins.family(recorded_protocol(log, plan, plugins))
    judged = {subject: _judged(log, plan, subject) for subject in wanted}
    replayed: list[tuple[Track, dict[str, Any]]] = []
    for trial in family.watch(log, plugins, plan, wanted):
        shelf.note = shelf.note or trial.note
        calls = [*map(call_of, trial.calls)]
        enters = trial.record.trial in judged[trial.record.subject]
        success = _success(plan, trial.record.session, trial.record.success)
        shown = (
            _trial(log, trial.record, trial.frames, known, enters)
            | {"success": success}
            | ({"calls": calls} if calls else {})
        )
        replayed.append((Track.of(plan, trial.record, trial.frames), shown))
    _add_rooms(floor, replayed)
    yield from (shown for _, shown in replayed)


def _add_rooms(
    floor: Ground | None, replayed: Sequence[tuple[Track, dict[str, Any]]]
) -> None:
    """Add to each trial the squares and goals in the room, for the maps of behaviour:
    for the trial alone, and with all subjects turned to one goal.
    """
    if floor is None:
        return
    room = Room(floor, [track for track, _ in replayed])
    for track, shown in replayed:
        shown["room"], shown["together"] = (
            {
                "goals": sorted(room.goals(track, together)),
                "turn": room.way(track, together),
                # Without a turn, the squares are those of the trial itself, which the
                # page has.
                **(
                    {"at": list(chain.from_iterable(room.squares(track, together)))}
                    if room.way(track, together)
                    else {}
                ),
            }
            for together in (False, True)
        )


def _ground(found: Ground) -> dict[str, Any]:
    """Return the arena for the page: a letter for each square, holes, glyphs that tell
    squares apart, landmarks, and its place and centre.
    """
    tiles = found.scene.tiles
    return {
        "centre": found.centre,
        "left": found.left,
        "top": found.top,
        "rows": ["".join(tile.kind[0] for tile in row) for row in tiles],
        "holes": sorted(found.holes),
        "signs": [[*at, clean(glyph)] for at, glyph in sorted(found.signs.items())],
        "marks": [
            [x + found.left, y + found.top, clean(tile.glyph)]
            for y, row in enumerate(tiles)
            for x, tile in enumerate(row)
            if tile.kind == "landmark"
        ],
    }


def _judged(log: RunLog, plan: CellPlan, subject: int) -> set[int]:
    """Return the numbers of a subject's trials that enter the pass rate (or the judged
    measure). In an unfinished life, ``last:K`` counts from the end of the planned
    schedule.
    """
    life = log.trials(plan, subject)
    if life and subject not in log.completed_subjects(plan):
        coming = range(life[-1].trial + 1, plan.trials)
        life += [
            replace(
                life[-1],
                trial=trial,
                block=block,
                missing="not run",
                compared=compared,
            )
            for trial in coming
            for block, _, compared in [plan.place_of(trial)]
        ]
    return {record.trial for record in enter_estimand(plan.estimand, life)}


def _where(frames: Sequence[Frame]) -> dict[str, Any]:
    """Return column, row and heading of every frame, and the goals for each step at
    which they change, or an empty mapping outside an arena.
    """
    poses = [frame.at for frame in frames if frame.at is not None]
    if len(poses) < len(frames):
        return {}
    changes = [
        step
        for step, frame in enumerate(frames)
        if not step or frame.goals != frames[step - 1].goals
    ]
    return {
        "at": [number for at in poses for number in (at.x, at.y, at.heading)],
        "goals": [[step, sorted(frames[step].goals)] for step in changes],
    }


def _trial(
    log: RunLog,
    record: TrialRecord,
    frames: Sequence[Frame],
    known: dict[str, Any],
    enters: bool,
) -> dict[str, Any]:
    counted = [(name, count) for name, count in record.tally.items() if count]
    return _where(frames) | {
        "subject": record.subject,
        "trial": record.trial + 1,
        "block": clean(record.block),
        "session": record.session,
        # "error" would look like a technical fault.
        "outcome": "wrong choice"
        if record.outcome == "error"
        else clean(record.outcome),
        "compared": enters,
        "actions": "".join(frame.action for frame in frames),
        "observations": [_observation(frame.observation, known) for frame in frames],
        "rewards": {
            step: _value(frame.reward)
            for step, frame in enumerate(frames)
            if frame.reward
        },
        "events": [
            [event.step, clean(event.state), clean(event.event)]
            for event in log.events(record)
        ],
        "measures": {
            clean(name): _value(value)
            for name, value in (*record.measures.items(), *counted)
        },
    }


def _observation(observation: str, known: dict[str, Any]) -> Any:
    """Return an observation for the page: text, or a picture and its text."""
    if observation not in known:
        text = visible(str(observation), LONGEST)
        known[observation] = text
        if isinstance(observation, Picture):
            picture = base64.b64encode(_small(observation.png)).decode("ascii")
            known[observation] = {"webp": picture, "text": text}
    return known[observation]


def _small(png: bytes) -> bytes:
    """Return a PNG picture as lossless WebP, which takes about a tenth of the bytes."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        picture.save(small, format="WEBP", lossless=True, method=1, quality=20)
    return small.getvalue()


def _value(value: object) -> object:
    """Return a measure as valid JSON (no NaN or infinity), with texts cleaned. A list
    becomes one text.
    """
    if isinstance(value, list):
        return ", ".join(map(clean, value))
    if isinstance(value, str) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        return clean(value)
    return value


def pack(trials: Sequence[Mapping[str, Any]]) -> str:
    """Return trials as JSON, compressed with gzip and encoded in Base64, so that the
    text is small and contains no HTML.

    Each observation is written once, and trials refer to it by its number.
    """
    numbers: dict[int, int] = {}
    observations: list[Any] = []
    for trial in trials:
        for observation in trial["observations"]:
            if id(observation) not in numbers:
                numbers[id(observation)] = len(observations)
                observations.append(observation)
    packed = io.BytesIO()
    # Trials are written one at a time, because the JSON of all of them may take several
    # hundred megabytes.
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.write(b'{"observations":%b,"trials":[' % _json(observations))
        # The order is by subject and trial, as in the player's list.
        for place, trial in enumerate(
            sorted(trials, key=lambda trial: (trial["subject"], trial["trial"]))
        ):
            shown = [numbers[id(observation)] for observation in trial["observations"]]
            file.write(b"," * (place > 0) + _json({**trial, "observations": shown}))
        file.write(b"]}")
    return base64.b64encode(packed.getvalue()).decode("ascii")


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
