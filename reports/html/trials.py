"""The trials of a run as data for the page's player: chosen, lived again, packed into little room."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cheesebench.chat import Picture
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.replay import Frame, films, recorded_protocol
from cheesebench.reports.escaping import clean, visible

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.plugin_manager import PluginManager

#: Steps that are lived again for one page, at most: some ten seconds.
LIVED = 5_000_000
#: Characters of an observation, and of a text of a model, that the page shows.
LONGEST_OBSERVATION, LONGEST_TEXT = 10_000, 20_000


@dataclass(slots=True)
class Shelf:
    """The trials of one cell that a page can show.

    ``trials`` holds one JSON object per trial, in the order of preference; ``played`` and ``failed`` count all
    trials of the cell that were run. ``problem`` says why nothing can be shown.
    """

    plan: CellPlan
    played: int = 0
    failed: int = 0
    trials: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""
    packed: str = ""
    """The trials that have found room, as ``pack`` wrote them."""
    shown: int = 0
    """How many have."""

    @property
    def shown_failed(self) -> int:
        """Failed trials among those on the page."""
        return sum(trial["success"] is False for trial in self.trials[: self.shown])

    @property
    def complete(self) -> bool:
        """Whether every trial that was run is on the page."""
        return self.shown == self.played


def shelves(log: RunLog, plugins: PluginManager, room: int, lived: int = LIVED) -> list[Shelf]:
    """Return one shelf per cell, in the order of the run, whose ``packed`` have ``room`` characters together.

    Where there are too many trials (for the room, or to live ``lived`` steps again), failed ones come first.
    """
    plans = log.plans()
    found = [_fill(log, plugins, plan, lived // len(plans)) for plan in plans]
    for shelf in found:
        shelf.packed, shelf.shown = pack(shelf.trials), len(shelf.trials)
    share = fair_share([len(shelf.packed) for shelf in found], room)
    for shelf in found:
        while len(shelf.packed) > share:
            # Texts of models differ in length, so the first guess may still be too many.
            shelf.shown = int(shelf.shown * min(0.95, share / len(shelf.packed)))
            shelf.packed = pack(shelf.trials[: shelf.shown]) if shelf.shown else ""
    return found


def fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the largest size that every one of ``sizes`` can be cut to so that all of them have room."""
    left = room
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return share
        left -= size
    return room


def choose(records: Iterable[TrialRecord], lived: int) -> list[TrialRecord]:
    """Return the trials to be shown, failed ones first, as far as ``lived`` steps lead.

    To live a trial again, all trials of its subject before it must be lived too.
    """
    end_of: dict[tuple[int, int], int] = {}
    length: dict[int, int] = {}
    for record in records:
        if not record.missing:
            length[record.subject] = length.get(record.subject, 0) + record.steps
            end_of[record.subject, record.trial] = length[record.subject]
    ordered = sorted(
        (record for record in records if not record.missing),
        key=lambda record: (record.success is not False, record.subject, record.trial),
    )
    reached: dict[int, int] = {}
    chosen = []
    for record in ordered:
        end = end_of[record.subject, record.trial]
        cost = max(0, end - reached.get(record.subject, 0))
        if cost <= lived:
            lived -= cost
            reached[record.subject] = max(end, reached.get(record.subject, 0))
            chosen.append(record)
    return chosen


def _fill(log: RunLog, plugins: PluginManager, plan: CellPlan, lived: int) -> Shelf:
    records = log.trials(plan)
    played = [record for record in records if not record.missing]
    shelf = Shelf(plan, len(played), sum(record.success is False for record in played))
    chosen = choose(records, lived)
    try:
        told = {(trial["subject"], trial["trial"]): trial for trial in _lived(log, plugins, plan, records, chosen)}
    except CheeseBenchError as error:
        shelf.problem = str(error)
    else:
        shelf.trials = [told[record.subject, record.trial] for record in chosen]
    return shelf


def _lived(
    log: RunLog, plugins: PluginManager, plan: CellPlan, records: Iterable[TrialRecord], chosen: Iterable[TrialRecord]
) -> Iterator[dict[str, Any]]:
    """Yield the chosen trials as JSON values; equal observations are one object."""
    wanted: dict[int, set[int]] = {}
    for record in chosen:
        wanted.setdefault(record.subject, set()).add(record.trial)
    if not wanted:
        return
    paradigm = plugins.compile(recorded_protocol(log, plan))
    view, seed = plugins.view(plan.view), log.manifest["options"]["seed"]
    lives: dict[int, list[TrialRecord]] = {subject: [] for subject in wanted}
    for record in records:
        if record.subject in wanted and record.trial <= max(wanted[record.subject]):
            lives[record.subject].append(record)
    known: dict[tuple[bytes, str], Any] = {}
    for subject, life in lives.items():
        for record, frames in zip(life, films(paradigm.life(view, seed, subject), life), strict=True):
            if record.trial in wanted[subject]:
                yield _trial(log, record, frames, known)


def _trial(
    log: RunLog, record: TrialRecord, frames: Sequence[Frame], known: dict[tuple[bytes, str], Any]
) -> dict[str, Any]:
    return {
        "subject": record.subject,
        "trial": record.trial,
        "block": clean(record.block),
        "session": record.session,
        "outcome": clean(record.outcome),
        "success": record.success,
        "compared": record.compared,
        "actions": record.actions,
        "observations": [_observation(frame.observation, known) for frame in frames],
        "rewards": {step: _value(frame.reward) for step, frame in enumerate(frames) if frame.reward},
        "events": [[event.step, clean(event.state), clean(event.event)] for event in log.events(record)],
        "measures": {clean(name): _value(value) for name, value in record.measures.items()},
    }


def _observation(observation: str, known: dict[tuple[bytes, str], Any]) -> Any:
    """Return what the page shows of an observation: text, or a picture and its text."""
    png = observation.png if isinstance(observation, Picture) else b""
    key = (png, str(observation))
    if key not in known:
        text = visible(str(observation), LONGEST_OBSERVATION)
        known[key] = {"png": base64.b64encode(png).decode("ascii"), "text": text} if png else text
    return known[key]


def _value(value: object) -> object:
    """Return a measure as JSON that no browser refuses, and text as it can be shown."""
    if isinstance(value, float) and value != value or value in (float("inf"), float("-inf")):
        return str(value)
    return ", ".join(map(clean, value)) if isinstance(value, list) else clean(value) if isinstance(value, str) else value


def pack(trials: Sequence[Mapping[str, Any]]) -> str:
    """Return trials as Base64 of gzip of JSON: small, and text in which nothing means anything to a browser.

    Observations are written once each; a trial has their numbers.
    """
    numbers: dict[int, int] = {}
    observations: list[Any] = []
    packed = []
    for trial in trials:
        for observation in trial["observations"]:
            if id(observation) not in numbers:
                numbers[id(observation)] = len(observations)
                observations.append(observation)
        packed.append({**trial, "observations": [numbers[id(observation)] for observation in trial["observations"]]})
    # By subject and trial, as people look for them; the order of preference has done its work.
    packed.sort(key=lambda trial: (trial["subject"], trial["trial"]))
    text = json.dumps({"observations": observations, "trials": packed}, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")
