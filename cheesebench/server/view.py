"""``cheesebench view``: the pages of a results directory. All of them only read."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from cheesebench.errors import ComparisonError, RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import find_runs
from cheesebench.plugin_manager import PluginManager
from cheesebench.server import pages, states, trends
from cheesebench.server.door import HEADERS, NOTHING, Door, Serving
from cheesebench.server.overview import Overview, to_json
from cheesebench.strict_json import strict_json

if TYPE_CHECKING:
    from aiohttp import web

    from cheesebench.experiment.records import CellPlan

#: Seconds between two looks at a log, and what share of a processor looking may take.
INTERVAL, SHARE = 0.5, 0.25
#: Pages that may be kept up to date at once.
STREAMS = 32
#: Seconds after which a page that hears nothing new is told that it is still connected.
HEARTBEAT = 10.0

T = TypeVar("T")


@runtime_checkable
class SubjectReporter(Protocol):
    """Optional interface of the reporter ``html``: a page with the player for one subject."""

    def render_subject(self, log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, back: str = "") -> str:
        """Return the page; ``back`` is the address that it leads back to."""
        ...


class Viewer:
    """Answers the requests for the pages of one directory; everything slow is done in one thread beside the loop."""

    def __init__(self, results: Path, plugins: PluginManager) -> None:
        self._overview = Overview(results)
        self._plugins = plugins
        self._busy = asyncio.Lock()
        self._streams = 0

    def serving(self, door: Door) -> Serving:
        """Return the server of these pages."""
        routes = {
            "": self.list_page,
            "lines": self.list_events,
            "compare": self.compare_page,
            "trend": self.trend_page,
            "run/{run}/": self.run_page,
            "run/{run}/states": self.run_events,
            "run/{run}/subjects": self.subjects,
            "run/{run}/subject": self.subject_page,
            "run/{run}/report": self.report_page,
        }
        return Serving(door, [("GET", path, handler) for path, handler in routes.items()])

    # ---- pages

    async def list_page(self, request: web.Request) -> web.StreamResponse:
        """The list of runs; the page asks for the lines itself."""
        where = str(self._overview.results)
        return pages.page("list.html.jinja", scripts=["stream.js", "list.js"], styles=["view.css"], where=where)

    async def run_page(self, request: web.Request) -> web.StreamResponse:
        """One run, kept up to date by ``run_events``."""
        name, _ = self._find(request)
        return pages.page("run.html.jinja", scripts=["stream.js", "run.js"], styles=["view.css"], run=name)

    async def compare_page(self, request: web.Request) -> web.StreamResponse:
        """Two runs, subject by subject."""
        first, second = request.query.get("a", ""), request.query.get("b", "")
        names = (request.query.get("ma") or None, request.query.get("mb") or None)
        runs = find_runs(self._overview.results)
        if first not in runs or second not in runs:
            raise _nowhere()
        try:
            found, problem = await self._aside(lambda: states.compare(runs[first], runs[second], names)), ""
        except ComparisonError as error:
            found, problem = None, str(error)
        return pages.page(
            "compare.html.jinja", styles=["view.css"], found=found, problem=problem, first=first, second=second
        )

    async def trend_page(self, request: web.Request) -> web.StreamResponse:
        """One model over the runs of the directory."""
        model = request.query.get("model", "")
        lines = await self._aside(lambda: list(self._overview.lines()))
        if model not in {name for line in lines for name in line.models}:
            raise _nowhere()
        rows = trends.of_model(lines, model)
        return pages.page("trend.html.jinja", styles=["view.css"], model=model, rows=rows, width=trends.WIDTH)

    async def subject_page(self, request: web.Request) -> web.StreamResponse:
        """The player with the trials of one subject, as far as it has come."""
        _, path = self._find(request)
        cell, subject = _number(request, "cell"), _number(request, "subject")

        def render() -> str:
            reporter = self._plugins.reporter("html")
            with RunLog.open_read_only(path) as log, log.snapshot():
                plans = log.plans()
                if cell >= len(plans) or not isinstance(reporter, SubjectReporter):
                    raise _nowhere()
                return reporter.render_subject(log, self._plugins, plans[cell], subject, "./")

        return pages.finished_page(await self._aside(render))

    async def report_page(self, request: web.Request) -> web.StreamResponse:
        """The whole HTML report, made now."""
        _, path = self._find(request)
        return pages.finished_page(await self._aside(lambda: states.report(path, self._plugins)))

    # ---- data

    async def subjects(self, request: web.Request) -> web.StreamResponse:
        """The subjects of a cell: trials, successes, failures, whether complete."""
        _, path = self._find(request)
        cell = _number(request, "cell")

        def read() -> list[dict[str, Any]]:
            with RunLog.open_read_only(path) as log, log.snapshot():
                plans = log.plans()
                if cell >= len(plans):
                    raise _nowhere()
                return states.subjects(log, plans[cell])

        return _json(await self._aside(read))

    async def list_events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: a line for each run, and again whenever it changes."""
        sent: dict[str, str] = {}

        async def tell(send: Callable[[str, object], Any]) -> None:
            lines = await self._aside(lambda: self._overview.lines())
            here = set()
            while (line := await self._aside(lambda: next(lines, None))) is not None:
                here.add(line.run_id)
                text = json.dumps(to_json(line))
                if sent.get(line.run_id) != text:
                    sent[line.run_id] = text
                    await send("line", to_json(line))
            for gone in set(sent) - here:
                del sent[gone]
                await send("gone", gone)
            await send("whole", len(here))

        return await self._stream(request, tell, pause=2.0)

    async def run_events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: the state of a run, whenever it changes."""
        _, path = self._find(request)

        async def tell(send: Callable[[str, object], Any]) -> None:
            await send("state", states.to_json(await self._aside(lambda: self._overview.watch(path).look())))

        return await self._stream(request, tell)

    # ---- helpers

    def _find(self, request: web.Request) -> tuple[str, Path]:
        """Return the run that a request names: one of those that are there, never a path made of what was asked."""
        name = request.match_info["run"]
        path = find_runs(self._overview.results).get(name)
        if path is None:
            raise _nowhere()
        return name, path

    async def _aside(self, work: Callable[[], T]) -> T:
        """Do something slow in a thread, one at a time, so that memory stays bounded and the loop free."""

        async def alone() -> T:
            async with self._busy:
                return await asyncio.to_thread(work)

        # A thread goes on when its page has been closed; the next one must wait for it.
        task = asyncio.create_task(alone())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _stream(
        self, request: web.Request, tell: Callable[[Callable[[str, object], Any]], Any], pause: float = INTERVAL
    ) -> web.StreamResponse:
        """Call ``tell`` again and again; what it sends, and has not sent just before, goes to the page."""
        from aiohttp import web

        if self._streams >= STREAMS:
            raise web.HTTPServiceUnavailable(text=f"{STREAMS} pages are open already. Close one.")
        response = web.StreamResponse(
            headers={**HEADERS, "Content-Security-Policy": NOTHING, "Content-Type": "text/event-stream"}
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
                except RunLogError as error:  # removed, or being written for the first time: it may come back
                    await send("trouble", str(error))
                if time.monotonic() - heard > HEARTBEAT:
                    heard = time.monotonic()
                    await response.write(b": here\n\n")
                await asyncio.sleep(max(pause, (time.process_time() - began) / SHARE))
        except ConnectionResetError:
            return response
        finally:
            self._streams -= 1


def _json(value: object) -> web.Response:
    from aiohttp import web

    return web.Response(text=strict_json(value), content_type="application/json")


def _number(request: web.Request, name: str) -> int:
    text = request.query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise _nowhere()
    return int(text)


def _nowhere() -> Exception:
    from aiohttp import web

    return web.HTTPNotFound(text="There is nothing here.")
