"""``cheesebench view``: the pages of a results directory. They change nothing in it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from aiohttp import web

from cheesebench.amounts import number, percent
from cheesebench.baselines import compare_files
from cheesebench.errors import ComparisonError, RunLogError
from cheesebench.experiment import replay
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import find_runs
from cheesebench.files import strict_json
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import CellPlan, TrialRecord
from cheesebench.server import pages, watch
from cheesebench.server.http_guard import HEADERS, RequestGuard, Serving
from cheesebench.statistics import CellResult
from cheesebench.statistics.comparison import RunComparison
from cheesebench.statistics.wording import abilities, standing, with_doubts
from cheesebench.summaries import summarise_log
from cheesebench.terminal import printable

#: Width and height of a drawing, and the margin at its edges (SVG units).
WIDTH, HEIGHT, EDGE = 300.0, 60.0, 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run in a drawing: its result, and its position (SVG units)."""

    line: watch.RunLine
    rate: watch.ModelRate
    x: float
    y: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The runs of a model on one protocol in one view and variant, the earliest run
    first.
    """

    protocol: str
    where: str
    points: tuple[Point, ...]
    reference: float | None
    """Position (SVG units) of the animals' rate in the drawing, or None if there is no
    such rate.
    """
    path: str
    """The line through the rates, as SVG points."""
    text: str
    """The curve in words."""


def of_model(lines: Iterable[watch.RunLine], model: str) -> list[Trend]:
    found: dict[tuple[str, str, str], list[tuple[watch.RunLine, watch.ModelRate]]] = {}
    for line in sorted(lines, key=lambda line: (line.created, line.run_id)):
        for rate in line.rates:
            if rate.plan.model == model:
                found.setdefault(rate.plan.key[1:], []).append((line, rate))
    return [_trend(key, runs) for key, runs in sorted(found.items())]


def _trend(
    key: tuple[str, str, str], runs: list[tuple[watch.RunLine, watch.ModelRate]]
) -> Trend:
    protocol, view, variant = key
    step = (WIDTH - 2 * EDGE) / max(1, len(runs) - 1)
    points = tuple(
        Point(
            line=line,
            rate=rate,
            x=round(EDGE + number * step, 1) if len(runs) > 1 else WIDTH / 2,
            y=_y(rate.rate),
            low=_y(rate.interval[0] if rate.interval else None),
            high=_y(rate.interval[1] if rate.interval else None),
        )
        for number, (line, rate) in enumerate(runs)
    )
    rates = [
        percent(rate.rate) if rate.rate is not None else "no rate" for _, rate in runs
    ]
    return Trend(
        protocol=protocol,
        where=", ".join(filter(None, (view, variant))),
        points=points,
        reference=_y(_rodents(runs[-1][1].plan)),
        path=" ".join(
            f"{point.x},{point.y}" for point in points if point.y is not None
        ),
        text=f"Pass rate on {protocol} from the first run to the latest: {', '.join(rates)}",
    )


def _rodents(plan: CellPlan) -> float | None:
    """Return the animals' pass rate, or None if there is no reference, or if the
    verdict is about a measure.
    """
    return (
        None
        if plan.reference is None or plan.measured is not None
        else plan.reference.value
    )


def _y(proportion: float | None) -> float | None:
    return (
        None
        if proportion is None
        else round(EDGE + (HEIGHT - 2 * EDGE) * (1 - proportion), 1)
    )


def to_json(state: watch.RunState) -> dict[str, Any]:
    """Return a run's state for the page. Times are in whole seconds, so that the
    passing of time changes the state at most once a second.
    """
    return {
        "run": pages.shown(state.run_id),
        "created": state.created,
        "status": state.status,
        "design": pages.shown(state.design),
        "cells": [
            _cell(number, cell, state) for number, cell in enumerate(state.cells)
        ],
        "models": [
            {
                "name": pages.shown(one.model),
                "view": pages.shown(one.view),
                "gate": one.gate.value,
                "reason": pages.shown(one.gate_reason),
            }
            for one in state.models
        ],
        "done": state.done,
        "left": state.left,
        "most": sum(cell.most for cell in state.cells),
        **_calls(state),
        "seconds": round(state.seconds),
        "seconds_left": None
        if state.seconds_left is None
        else round(state.seconds_left),
        "latest": _latest(state),
        "replies": [
            {
                "cell": pages.shown(f"{reply.key[0]} on {reply.key[1]}"),
                "subject": reply.subject,
                "trial": reply.trial + 1,
                "text": reply.text.encode("utf-8", "replace").decode(),
                "seconds": round(reply.seconds, 1),
            }
            for reply in state.replies
        ],
    }


def _calls(state: watch.RunState) -> dict[str, Any]:
    """Return what the page shows about a run's calls, such as their number and cost,
    the calls in flight, and faults.
    """
    flight = state.flight
    counts = [
        cell.result.calls.counts
        for cell in state.cells
        if cell.result.calls is not None
    ]
    return {
        "calls": state.calls.calls,
        "tokens": state.calls.prompt + state.calls.completion,
        "cost": state.calls.cost,
        "cost_left": state.cost_left,
        "max_cost": state.max_cost,
        "in_flight": None if flight is None else flight.calls,
        "limit": None if flight is None else flight.limit,
        "asked": sum(one.get("calls", 0) for one in counts),
        "unreadable": sum(one.get("unparsed", 0) for one in counts),
        "faults": state.calls.attempts - state.calls.calls,
    }


def _latest(state: watch.RunState) -> dict[str, int] | None:
    """Return the latest trial, or None if there is none, or the run is not in
    progress.
    """
    if state.latest is None or state.status != "running":
        return None
    key, subject, trial = state.latest
    cell = [one.plan.key for one in state.cells].index(key)
    return {"cell": cell, "subject": subject, "trial": trial}


def _cell(number: int, cell: watch.CellState, state: watch.RunState) -> dict[str, Any]:
    plan, result = cell.plan, cell.result
    game, decided = result.game, not state.is_open(cell)
    return {
        "number": number,
        "model": pages.shown(plan.model),
        "protocol": pages.shown(plan.label),
        "title": pages.shown(plan.title or plan.protocol),
        "view": pages.shown(
            ", ".join(
                filter(None, (plan.view, "" if plan.items else str(plan.variant)))
            )
        ),
        "control": bool(plan.control),
        "verdict": result.verdict and result.verdict.value,
        "decided": decided,
        "finished": cell.decided,
        # While a cell is running, trials that are still to come count as missing. They
        # must not raise doubts.
        "reason": pages.shown(with_doubts(result) if decided else result.reason),
        "rate": result.rate,
        "interval": result.interval,
        "reference": _rodents(plan),
        "margin": plan.margin,
        "measured": _measured(result),
        "ability": abilities(result),
        "subjects": cell.begun,
        "planned": plan.subjects,
        # Trials that are still to come would count as missing here, too.
        "standing": None if game is None or cell.left else standing(game),
        "done": cell.done,
        "left": cell.left,
        "calls": cell.calls.calls,
        "cost": cell.calls.cost,
    }


def _measured(result: CellResult) -> dict[str, str | None] | None:
    """Return the judged measure's mean, interval and reference as text, or None if the
    verdict concerns a pass rate, or there is no reference.
    """
    measured, judged, reference = (
        result.plan.measured,
        result.judged,
        result.plan.reference,
    )
    if measured is None or reference is None:
        return None
    limits = (
        None
        if judged is None or judged.interval is None
        else " to ".join(map(number, judged.interval))
    )
    mean = "–" if judged is None else number(judged.mean)
    return {
        "mean": pages.shown(f"{measured.name} {mean}"),
        "interval": limits,
        "reference": number(reference.value),
    }


def subjects(log: RunLog, plan: CellPlan) -> list[dict[str, Any]]:
    """Return the subjects of a cell that have begun, in order."""
    complete = log.completed_subjects(plan)
    rows = []
    for records in log.recorded_subjects(plan):
        run = [record for record in records if not record.missing]
        rows.append(
            {
                "subject": records[0].subject,
                "trials": len(run),
                "passed": sum(record.success is True for record in run),
                "failed": sum(record.success is False for record in run),
                "complete": records[0].subject in complete,
            }
        )
    return rows


def film(
    log: RunLog, plugins: PluginManager, plan: CellPlan, record: TrialRecord
) -> dict[str, Any]:
    """Return the pictures of a recorded trial, drawn as text from above, and how the
    trial ended.
    """
    paradigm = plugins.compile(replay.recorded_protocol(log, plan, plugins))
    frames = replay.film(log, paradigm, plugins.view("ascii_2d"), record)
    return {
        "title": pages.shown(plan.title or plan.protocol),
        "model": pages.shown(plan.model),
        "subject": record.subject,
        "trial": record.trial + 1,
        "outcome": pages.shown(record.outcome or ""),
        "frames": [
            "\n".join(map(printable, frame.observation.split("\n"))) for frame in frames
        ],
    }


def report(path: Path, plugins: PluginManager) -> str:
    with RunLog.open_read_only(path) as log:
        log.verify()
        with log.snapshot():
            summary = summarise_log(log)
            return plugins.report("html", summary, log)


def compare(
    first: Path, second: Path, models: tuple[str | None, str | None]
) -> tuple[RunComparison, str]:
    """Return the comparison of two runs, and a text on whether they were replayed.
    Comparisons of unchanged logs are cached.

    Raise the errors of ``compare_files``.
    """
    stamps = watch.stamp_of(first), watch.stamp_of(second)
    if None in stamps:
        return _compared(first, second, models)
    return _kept(first, second, models, stamps)


@lru_cache(maxsize=64)
def _kept(
    first: Path, second: Path, models: tuple[str | None, str | None], stamps: object
) -> tuple[RunComparison, str]:
    return _compared(first, second, models)


def _compared(
    first: Path, second: Path, models: tuple[str | None, str | None]
) -> tuple[RunComparison, str]:
    said: list[str] = []
    found = compare_files(first, second, models=models, tell=said.append)
    return found, " ".join(said)


#: ``INTERVAL``: seconds between checks of a log. ``SHARE``: largest share of a
#: processor that the checks may take.
INTERVAL, SHARE = 0.5, 0.25
#: Maximum number of pages that are kept up to date at the same time.
STREAMS = 32
#: After this many seconds without news, a page is told that it is still connected.
KEEP_ALIVE = 10.0

T = TypeVar("T")


@runtime_checkable
class SubjectReporter(Protocol):
    """Optional interface of the reporter ``html``: a page with the player for one
    subject.
    """

    def render_subject(
        self,
        log: RunLog,
        plugins: PluginManager,
        plan: CellPlan,
        subject: int,
        back: str = "",
    ) -> str:
        """Return the page. ``back`` is the address of its link back."""
        ...


class Viewer:
    """Serves the pages of one directory. Slow work is done in one thread beside the
    event loop.
    """

    def __init__(self, results: Path, plugins: PluginManager) -> None:
        self._overview = watch.Overview(results)
        self._plugins = plugins
        self._busy = asyncio.Lock()
        self._streams = 0

    def serving(self, guard: RequestGuard) -> Serving:
        routes = {
            "": self.list_page,
            "lines": self.list_events,
            "compare": self.compare_page,
            "trend": self.trend_page,
            "run/{run}/": self.run_page,
            "run/{run}/states": self.run_events,
            "run/{run}/subjects": self.subjects,
            "run/{run}/subject": self.subject_page,
            "run/{run}/film": self.film,
            "run/{run}/report": self.report_page,
        }
        return Serving(
            guard, [("GET", path, handler) for path, handler in routes.items()]
        )

    # -- pages

    async def list_page(self, request: web.Request) -> web.StreamResponse:
        where = str(self._overview.results)
        return pages.page(
            "list.html.jinja",
            scripts=["stream.js", "list.js"],
            styles=["view.css"],
            where=where,
        )

    async def run_page(self, request: web.Request) -> web.StreamResponse:
        """Return the page of one run, which ``run_events`` keeps up to date."""
        name, _ = self._find(request)
        return pages.page(
            "run.html.jinja",
            scripts=["stream.js", "run.js"],
            styles=["view.css"],
            run=name,
        )

    async def compare_page(self, request: web.Request) -> web.StreamResponse:
        first, second = request.query.get("a", ""), request.query.get("b", "")
        names = (request.query.get("ma") or None, request.query.get("mb") or None)
        runs = find_runs(self._overview.results)
        if first not in runs or second not in runs:
            raise _nowhere()
        logs = runs[first], runs[second]
        found, said, problem = None, "", ""
        try:
            found, said = await self._aside(lambda: compare(*logs, names))
        except (ComparisonError, RunLogError) as error:
            problem = str(error)
        return pages.page(
            "compare.html.jinja",
            styles=["view.css"],
            found=found,
            said=said,
            problem=problem,
            first=first,
            second=second,
        )

    async def trend_page(self, request: web.Request) -> web.StreamResponse:
        """Return the page of one model in all runs of the directory."""
        model = request.query.get("model", "")
        lines = await self._aside(lambda: list(self._overview.lines()))
        if model not in {name for line in lines for name in line.models}:
            raise _nowhere()
        rows = of_model(lines, model)
        return pages.page(
            "trend.html.jinja", styles=["view.css"], model=model, rows=rows, width=WIDTH
        )

    async def subject_page(self, request: web.Request) -> web.StreamResponse:
        """Return the player with the trials of one subject so far."""
        _, path = self._find(request)
        cell, subject = _number(request, "cell"), _number(request, "subject")

        def render() -> str:
            reporter = self._plugins.reporter("html")
            with RunLog.open_read_only(path) as log, log.snapshot():
                plans = log.plans()
                if cell >= len(plans) or not isinstance(reporter, SubjectReporter):
                    raise _nowhere()
                return reporter.render_subject(
                    log, self._plugins, plans[cell], subject, "./"
                )

        return pages.finished_page(await self._aside(render))

    async def report_page(self, request: web.Request) -> web.StreamResponse:
        """Return the whole HTML report, made for this request."""
        _, path = self._find(request)
        return pages.finished_page(
            await self._aside(lambda: report(path, self._plugins))
        )

    # -- data

    async def subjects(self, request: web.Request) -> web.StreamResponse:
        """Return the subjects of a cell: trials, successes, failures, and whether each
        is complete.
        """
        _, path = self._find(request)
        cell = _number(request, "cell")

        def read() -> list[dict[str, Any]]:
            with RunLog.open_read_only(path) as log, log.snapshot():
                plans = log.plans()
                if cell >= len(plans):
                    raise _nowhere()
                return subjects(log, plans[cell])

        return _json(await self._aside(read))

    async def film(self, request: web.Request) -> web.StreamResponse:
        """Return the frames of one trial, and how it ended, as JSON."""
        _, path = self._find(request)
        cell, subject, trial = (
            _number(request, name) for name in ("cell", "subject", "trial")
        )

        def read() -> dict[str, Any]:
            with RunLog.open_read_only(path) as log, log.snapshot():
                plan = next(iter(log.plans()[cell:]), None)
                records = [] if plan is None else log.trials(plan, subject)[trial:]
                if plan is None or not records:
                    raise _nowhere()
                return film(log, self._plugins, plan, records[0])

        return _json(await self._aside(read))

    async def list_events(self, request: web.Request) -> web.StreamResponse:
        """Send events: the line of each run whenever it changes, the names of runs that
        are gone, and the number of runs.
        """
        sent: dict[str, str] = {}

        async def tell(send: Callable[[str, object], Any]) -> None:
            lines = await self._aside(lambda: self._overview.lines())
            here = set()
            while (line := await self._aside(lambda: next(lines, None))) is not None:
                here.add(line.run_id)
                text = json.dumps(watch.line_to_json(line))
                if sent.get(line.run_id) != text:
                    sent[line.run_id] = text
                    await send("line", watch.line_to_json(line))
            for gone in set(sent) - here:
                del sent[gone]
                await send("gone", gone)
            await send("whole", len(here))

        return await self._stream(request, tell, pause=2.0)

    async def run_events(self, request: web.Request) -> web.StreamResponse:
        """Send events: the state of a run, whenever it changes."""
        _, path = self._find(request)

        async def tell(send: Callable[[str, object], Any]) -> None:
            await send(
                "state",
                to_json(await self._aside(lambda: self._overview.watch(path).poll())),
            )

        return await self._stream(request, tell)

    def _find(self, request: web.Request) -> tuple[str, Path]:
        """Return the name and the log of the run that a request names. Raise the HTTP
        error 404 if there is no such run. No path is built from the request.
        """
        name = request.match_info["run"]
        path = find_runs(self._overview.results).get(name)
        if path is None:
            raise _nowhere()
        return name, path

    async def _aside(self, work: Callable[[], T]) -> T:
        """Do slow work in a thread, one task at a time. This bounds the memory, and
        does not hold up the event loop.
        """

        async def alone() -> T:
            async with self._busy:
                return await asyncio.to_thread(work)

        # A thread may outlive its page, so the next thread must wait for it.
        task = asyncio.create_task(alone())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _stream(
        self,
        request: web.Request,
        tell: Callable[[Callable[[str, object], Any]], Any],
        pause: float = INTERVAL,
    ) -> web.StreamResponse:
        """Call ``tell`` from time to time, and send its messages to the page. Repeated
        states are left out.
        """
        if self._streams >= STREAMS:
            raise web.HTTPServiceUnavailable(
                text=f"{STREAMS} pages are open already. Close one."
            )
        response = web.StreamResponse(
            headers={
                **HEADERS,
                "Content-Type": "text/event-stream",
            }
        )
        await response.prepare(request)
        before: dict[str, str] = {}
        heard = time.monotonic()

        async def send(kind: str, value: object) -> None:
            nonlocal heard
            text = strict_json(value)
            if kind in ("state", "whole", "trouble") and before.get(kind) == text:
                return
            before[kind], heard = text, time.monotonic()
            await response.write(f"event: {kind}\ndata: {text}\n\n".encode())

        self._streams += 1
        try:
            while True:
                began = time.process_time()
                try:
                    await tell(send)
                except RunLogError as error:
                    # The log was removed, or is being written for the first time. It
                    # may come back.
                    await send("trouble", str(error))
                if time.monotonic() - heard > KEEP_ALIVE:
                    heard = time.monotonic()
                    await response.write(b": here\n\n")
                await asyncio.sleep(max(pause, (time.process_time() - began) / SHARE))
        except ConnectionResetError:
            return response
        finally:
            self._streams -= 1


def _json(value: object) -> web.Response:
    return web.Response(text=strict_json(value), content_type="application/json")


def _number(request: web.Request, name: str) -> int:
    text = request.query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise _nowhere()
    return int(text)


def _nowhere() -> Exception:
    return web.HTTPNotFound(text="There is nothing at this address.")
