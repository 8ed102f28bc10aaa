"""Reads the runs of a results directory from their logs, while other processes may be
writing them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.language_models import Flight, read_flight
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import (
    FILE_NAME,
    damage_explained,
    find_runs,
    is_claimed,
)
from cheesebench.records import CallTotals, CellKey, CellPlan
from cheesebench.redaction import quoted
from cheesebench.statistics.judgement import judge_sample
from cheesebench.statistics.run import summarise_model, with_causes
from cheesebench.statistics.sample import draw_sample
from cheesebench.statistics.summary import CellResult, ModelSummary, Verdict
from cheesebench.statistics.wording import with_calls
from cheesebench.verification import calls_by_cell

#: ``running``: a process is at work. ``finished``: all cells are finished.
#: ``interrupted``: neither of the two, as after a stop by hand or by the budget.
Status = Literal["running", "finished", "interrupted"]

#: ``REPLIES``: number of latest replies to show. ``LONGEST``: maximum number of
#: characters of each.
REPLIES, LONGEST = 8, 600
#: Resolution of file times in seconds: within it, a file may change again without a new
#: time.
_COARSE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellState:
    """One cell with its result so far.

    ``begun``: number of subjects that have finished a trial. ``done``: number of trials
    that were run. ``left``: number of trials left in the present set. ``most``: number
    of trials left if no verdict comes early. ``decided``: whether the cell is finished.
    """

    result: CellResult
    decided: bool
    begun: int
    done: int
    left: int
    most: int

    @property
    def plan(self) -> CellPlan:
        return self.result.plan

    @property
    def calls(self) -> CallTotals:
        return (
            self.result.calls.totals if self.result.calls is not None else CallTotals()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answered call: its cell, subject and trial, and the reply's text
    (shortened).
    """

    key: CellKey
    subject: int
    trial: int
    text: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run at one moment. ``seconds`` is the duration of this session.
    ``seconds_left`` and ``cost_left`` are estimates.

    ``seconds_left`` is the time for the trials ``left`` at the pace of this session.
    ``cost_left`` is the cost of these trials in dollars, if each costs as much as the
    same model's trials so far. Each is None as long as it is unknown. ``max_cost`` is
    the budget in dollars while the run is in progress.
    """

    run_id: str
    created: str
    design: str
    status: Status
    cells: tuple[CellState, ...]
    models: tuple[ModelSummary, ...]
    calls: CallTotals
    seconds: float
    seconds_left: float | None
    cost_left: float | None
    max_cost: float | None
    flight: Flight | None
    replies: tuple[Reply, ...]
    latest: tuple[CellKey, int, int] | None = None
    """The latest trial written during this watch: its cell, subject and number."""

    @property
    def done(self) -> int:
        return sum(cell.done for cell in self.cells)

    @property
    def left(self) -> int:
        """Number of trials left until the next judgement of each cell."""
        return sum(cell.left for cell in self.cells)

    def is_open(self, cell: CellState) -> bool:
        return self.status == "running" and not cell.decided

    @property
    def names(self) -> tuple[str, ...]:
        """The models, in the order of the plan."""
        return tuple(dict.fromkeys(cell.plan.model for cell in self.cells))


@dataclass(frozen=True, slots=True)
class _Session:
    """Start of the present (or last) session (UNIX time), time of the journal's last
    entry, and whether the session is the run's first one.
    """

    began: float
    last: float
    first: bool


#: Maps a subject to its number of trials that were run, and its number of missing
#: trials.
_Counts = Mapping[int, tuple[int, int]]


@dataclass(slots=True)
class _Known:
    """The results of the last check. They are read again when the files have
    changed.
    """

    stamp: object = None
    cells: dict[CellKey, tuple[tuple[_Counts, object, object], CellResult]] = field(
        default_factory=dict
    )
    states: tuple[CellState, ...] = ()
    models: tuple[ModelSummary, ...] = ()
    session: _Session = _Session(0.0, 0.0, True)
    manifest: Mapping[str, object] = field(default_factory=dict)
    calls: CallTotals = field(default_factory=CallTotals)
    replies: tuple[Reply, ...] = ()
    latest: tuple[CellKey, int, int] | None = None


class RunWatch:
    """Checks one run at each ``poll``. Only changed cells are judged again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = _Known()
        #: The time and the number of trials at the first check of a session that
        #: continues an earlier one.
        self._joined: tuple[float, int] | None = None

    def poll(self) -> RunState:
        """Return the run's state.

        Raise RunLogError for an unreadable log, and for changed rows of a run that is
        not in progress. Not thread-safe.
        """
        stamp = stamp_of(self.path)
        known = self._known
        if stamp is None or stamp != known.stamp:
            with RunLog.open_read_only(self.path) as log:
                # A run in progress is checked twice a second, which is too often to
                # verify all its rows.
                if not is_claimed(self.path):
                    log.verify()
                with log.snapshot():
                    known = self._known = self._read(log, stamp)
        return self._state(known)

    def _read(self, log: RunLog, stamp: object) -> _Known:
        plans, calls, causes = log.plans(), calls_by_cell(log), log.causes()
        with damage_explained(log.path):
            ended, session = _journal(log)
        counts = log.trial_counts()
        known = _Known(
            stamp=stamp,
            session=session,
            manifest=log.manifest,
            latest=self._known.latest,
        )
        states = []
        for plan in plans:
            own = counts.get(plan.key, {})
            complete = log.completed_subjects(plan)
            mark = (own, complete, causes.get(plan.key))
            before = self._known.cells.get(plan.key)
            if before is not None and not plan.items:
                known.latest = _newest(plan.key, own, before[0][0]) or known.latest
            if before is not None and before[0] == mark:
                result = before[1]
            else:
                judged = judge_sample(
                    plan, draw_sample(plan, log.trials_by_subject(plan))
                )
                result = with_causes(judged, causes.get(plan.key, ()))
            known.cells[plan.key] = (mark, result)
            states.append(
                _cell(
                    with_calls(result, calls.get(plan.key)),
                    own,
                    complete,
                    # What the budget stopped is not finished: a resumed run goes on.
                    plan.key in ended and not result.outcomes.get("budget"),
                )
            )
        known.states = tuple(states)
        known.models = _summaries(state.result for state in states)
        known.calls = log.calls.totals()
        known.replies = tuple(
            Reply(
                key=key,
                subject=subject,
                trial=call.trial,
                text=call.reply.text[:LONGEST],
                seconds=call.seconds,
            )
            for key, subject, call in log.calls.latest(REPLIES)
        )
        return known

    def _state(self, known: _Known) -> RunState:
        running = is_claimed(self.path)
        decided = all(state.decided for state in known.states)
        idle: Status = "finished" if decided else "interrupted"
        now = time.time() if running else known.session.last
        left = sum(state.left for state in known.states) if running else 0
        pace = self._pace(known, now, running)
        options = known.manifest.get("options")
        options = options if isinstance(options, Mapping) else {}
        flight = read_flight(self.path.parent) if running else None
        return RunState(
            run_id=str(known.manifest.get("run_id")),
            created=str(known.manifest.get("created")),
            design=str(options.get("design") or ""),
            status="running" if running else idle,
            cells=known.states,
            models=known.models,
            calls=known.calls,
            seconds=max(0.0, now - known.session.began),
            seconds_left=0.0 if not left else left / pace if pace else None,
            cost_left=_cost_left(known.states) if running else 0.0,
            max_cost=None if flight is None else flight.budget,
            flight=flight,
            replies=known.replies,
            latest=known.latest,
        )

    def _pace(self, known: _Known, now: float, running: bool) -> float:
        """Return the number of trials per second in this session."""
        done = sum(state.done for state in known.states)
        began, before = known.session.began, 0
        if running and not known.session.first:
            # The number of trials when the run was resumed is unknown, so the pace is
            # measured from the first check.
            self._joined = self._joined or (now, done)
            began, before = self._joined
        # The number may fall, because trials of stopped subjects can be withdrawn.
        return max(0, done - before) / (now - began) if now > began else 0.0


def _newest(
    key: CellKey, counts: _Counts, before: _Counts
) -> tuple[CellKey, int, int] | None:
    """Return a trial that was run since ``before``: the last one of its subject. Return
    None if there is none.
    """
    grown = [
        subject
        for subject, (run, _) in counts.items()
        if run > before.get(subject, (0, 0))[0]
    ]
    return (key, grown[-1], counts[grown[-1]][0] - 1) if grown else None


def stamp_of(path: Path) -> object:
    """Return a value that changes with every write to a log. Return None while a write
    might leave it unchanged.
    """
    stamps = []
    for file in (path, path.with_name(f"{FILE_NAME}-wal")):
        try:
            status = file.stat()
        except OSError:
            continue
        if time.time() - status.st_mtime < _COARSE:
            return None
        stamps.append((file.name, status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def _journal(log: RunLog) -> tuple[set[CellKey], _Session]:
    """Return the finished cells, and the present (or last) session."""
    kinds = "('created', 'started', 'finished', 'closed')"
    query = f"SELECT time, kind, model, protocol, view, variant FROM journal WHERE kind IN {kinds} ORDER BY id"
    ended, seen = set[CellKey](), set[CellKey]()
    began = last = 0.0
    first = over = True
    for text, kind, *rest in log.select(query):
        model, protocol, view, variant = rest
        key, last = (
            (model, protocol, view, variant),
            datetime.fromisoformat(text).timestamp(),
        )
        if kind == "started":
            if over or key in seen:
                first, began, over = not seen, last, False
            seen.add(key)
            ended.discard(key)
        elif kind == "finished":
            ended.add(key)
        elif kind == "closed":
            over = True
        else:
            began = last
    [(latest,)] = log.select("SELECT max(time) FROM journal")
    last = datetime.fromisoformat(latest).timestamp() if latest else last
    return ended, _Session(began, last, first)


def _cell(
    result: CellResult, counts: _Counts, complete: Mapping[int, int], decided: bool
) -> CellState:
    plan, game = result.plan, result.game
    # A resumed run goes on with the subjects that the budget stopped.
    stopped = result.outcomes.get("budget")
    ended = set(complete) | {
        subject for subject, (_, missing) in counts.items() if missing and not stopped
    }

    def left(subjects: int) -> int:
        return sum(
            plan.trials - counts.get(one, (0, 0))[0]
            for one in range(subjects)
            if one not in ended
        )

    present = game.subjects if game is not None and plan.sequential else plan.subjects
    return CellState(
        result=result,
        decided=decided,
        begun=sum(run > 0 for run, _ in counts.values()),
        done=sum(run for run, _ in counts.values()),
        left=0 if decided else left(present),
        most=0 if decided else left(plan.subjects),
    )


def _summaries(cells: Iterable[CellResult]) -> tuple[ModelSummary, ...]:
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in cells:
        if not cell.plan.control:
            groups.setdefault(
                (cell.plan.model, cell.plan.view, cell.plan.series), []
            ).append(cell)
    return tuple(map(summarise_model, groups.values()))


def _cost_left(cells: Sequence[CellState]) -> float | None:
    """Return the cost of the remaining trials in dollars, if each costs as much as its
    model's trials so far. Return None if all trials of a model still remain.
    """
    cost, done = dict[str, float](), dict[str, int]()
    for cell in cells:
        model = cell.plan.model
        cost[model] = cost.get(model, 0.0) + cell.calls.cost
        done[model] = done.get(model, 0) + cell.done
    total = 0.0
    for cell in cells:
        model = cell.plan.model
        if cell.left and not done[model]:
            return None
        total += cell.left * cost[model] / done[model] if cell.left else 0.0
    return total


#: Maximum number of runs whose cells are kept in memory, so that further checks are
#: quick.
KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRate:
    """The result of one model on one protocol in one run: a point of their trend."""

    plan: CellPlan
    verdict: Verdict | None
    rate: float | None
    interval: tuple[float, float] | None
    decided: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run as a line of a list. ``problem`` says why a log cannot be read. Then all
    other fields except ``run_id`` are empty.
    """

    run_id: str
    created: str = ""
    status: str = ""
    design: str = ""
    models: tuple[str, ...] = ()
    protocols: int = 0
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Number of plain cells by verdict. ``OPEN`` stands for cells that are not decided
    yet.
    """
    doubtful: int = 0
    """Number of plain cells whose numbers are doubtful, because many of their trials or
    replies are missing or unusable.
    """
    gates: tuple[tuple[str, str], ...] = ()
    """Each model (with its view), and its verdict over all protocols."""
    done: int = 0
    left: int = 0
    cost: float = 0.0
    rates: tuple[ModelRate, ...] = ()
    problem: str = ""

    @property
    def verdict_text(self) -> str:
        """The verdicts in words, such as ``3 PASS, 1 FAIL (1 doubtful)``."""
        shown = ", ".join(
            f"{count} {name}" for name, count in self.verdicts.items() if count
        )
        return f"{shown} ({self.doubtful} doubtful)" if self.doubtful else shown


#: The pseudo-verdict of undecided cells.
OPEN = "OPEN"


class Overview:
    """The runs of a directory. Unchanged runs are not read again. The class is not
    thread-safe.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self._lines: dict[str, tuple[object, RunLine]] = {}
        self._watches: OrderedDict[Path, RunWatch] = OrderedDict()

    def lines(self) -> Iterator[RunLine]:
        """Yield a line for each run. The run that changed last comes first, so that
        active runs are at the top.
        """
        runs = find_runs(self.results)
        for gone in set(self._lines) - set(runs):
            del self._lines[gone]
        for name, path in runs.items():
            yield self.line(name, path)

    def line(self, name: str, path: Path) -> RunLine:
        """Return the line of one run, even if its log cannot be read."""
        stamp = stamp_of(path)
        known = self._lines.get(name)
        if (
            known is not None
            and stamp is not None
            and known[0] == stamp
            and known[1].status != "running"
        ):
            return known[1]
        try:
            found = _line(name, self.watch(path).poll())
        except (CheeseBenchError, OSError) as error:
            found = RunLine(run_id=name, problem=quoted(str(error), 1000))
        self._lines[name] = (stamp, found)
        return found

    def watch(self, path: Path) -> RunWatch:
        """Return the watch of a run. The ``KEPT`` watches that were requested last are
        kept.
        """
        found = self._watches.setdefault(path, RunWatch(path))
        self._watches.move_to_end(path)
        while len(self._watches) > KEPT:
            self._watches.popitem(last=False)
        return found


def _line(name: str, state: RunState) -> RunLine:
    plain = [cell for cell in state.cells if not cell.plan.control]
    shown = [
        OPEN if state.is_open(cell) else str(cell.result.verdict) for cell in plain
    ]
    return RunLine(
        run_id=name,
        created=state.created,
        status=state.status,
        design=state.design,
        models=state.names,
        protocols=len({cell.plan.protocol for cell in plain}),
        verdicts={
            verdict: shown.count(verdict)
            for verdict in (*(one.value for one in Verdict), OPEN)
        },
        doubtful=sum(
            bool(cell.result.warnings) and not state.is_open(cell) for cell in plain
        ),
        gates=tuple(
            (f"{one.model} in {one.view}", one.gate.value) for one in state.models
        ),
        done=state.done,
        left=state.left,
        cost=state.calls.cost,
        rates=tuple(map(_rate, plain)),
    )


def _rate(cell: CellState) -> ModelRate:
    judged = cell.result
    return ModelRate(
        plan=cell.plan,
        verdict=judged.verdict,
        rate=judged.rate,
        interval=judged.interval,
        decided=cell.decided,
    )


def line_to_json(line: RunLine) -> dict[str, Any]:
    """Return a line as JSON values (without the rates of its cells)."""
    return {
        "run": line.run_id,
        "created": line.created,
        "status": line.status,
        "design": line.design,
        "models": list(line.models),
        "protocols": line.protocols,
        "verdicts": dict(line.verdicts),
        "doubtful": line.doubtful,
        "gates": [list(gate) for gate in line.gates],
        "trials": line.done,
        "left": line.left,
        "cost": line.cost,
        "problem": line.problem,
    }
