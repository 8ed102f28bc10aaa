"""``cheesebench view``: its pages agree with the log, and strangers are locked out."""

from __future__ import annotations

import html
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import pytest

from cheesebench.chat import ModelEntry, Price
from cheesebench.cli import main
from cheesebench.experiment.calling import Limits
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import (
    CallOptions,
    LanguageModels,
    read_flight,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import claim
from cheesebench.experiment.replay import film, recorded_protocol
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Specification
from cheesebench.server import http_guard
from cheesebench.server.http_guard import RequestGuard, Serving
from cheesebench.server.view import Viewer
from cheesebench.server.watch import RunWatch
from cheesebench.statistics import judge
from cheesebench.statistics.judgement import judge_set
from cheesebench.testing.fake_server import Call, FakeServer
from fuzz.run_logs import rewritten
from tests.signals import reset_signals

if TYPE_CHECKING:
    from playwright import sync_api as playwright

Scheme = Literal["light", "dark"]
Serve = Callable[[Serving], str]
Lived = Callable[..., RunLog]
Check = Callable[["playwright.Page"], None]
Open = Callable[..., "playwright.Page"]

TOKEN = "a-token-that-is-known"
LATENCY = 0.3
#: A model's text that tries to take over the page.
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
ENTRY = ModelEntry(
    name="walker",
    backend="openai",
    id="w",
    price=Price(prompt=400.0, completion=1600.0, on=date(2026, 1, 1)),
)


class Gate:
    """A model server that pauses before certain calls, so that a run can be examined at
    leisure.
    """

    def __init__(self, *stops: int) -> None:
        self.stops = dict.fromkeys(stops)
        self.reached = threading.Semaphore(0)
        self.onward = threading.Semaphore(0)

    def __call__(self, call: Call) -> str:
        if call.number in self.stops:
            self.reached.release()
            self.onward.acquire(timeout=120)
        # Each subject takes a path of its own, because copies would be no evidence.
        aside = ("", "STAY, ", "ROTATE_LEFT, ROTATE_RIGHT, ")[call.number % 3]
        return f"{HOSTILE}\nACTIONS: {aside}FORWARD, FORWARD, FORWARD, FORWARD"


@contextmanager
def going_on(
    results: Path,
    maze: Specification,
    gate: Gate,
    name: str = "live",
    subjects: int = 6,
) -> Iterator[RunLog]:
    """Run a model in the maze, in the background, like a session of pytest."""
    plugins = PluginManager()
    with FakeServer(gate, latency=LATENCY) as server:
        model = language_model(
            plugins, ENTRY, settings={"actions": 6}, base_url=server.base_url
        )
        design = find_design("sequential", subjects)
        plan = plan_cell(
            maze,
            "walker",
            "ascii_2d",
            design,
            agent=model.agent.name,
            settings=model.settings,
        )
        cells = [(plan, maze)]
        options = {"seed": 3, "design": "sequential"}
        with RunLog.create(results, name, cells, options=options) as log:
            lock = claim(log.path)
            language = LanguageModels(
                log,
                {"walker": model},
                CallOptions(concurrency=8, limits=Limits(cost=1500.0)),
            )
            session = RunSession(
                log,
                plugins,
                cells,
                seed=3,
                processes=0,
                language=language,
                judge=judge_set,
            )
            try:
                with session:
                    session.start()
                    yield log
                    session.finish()
            finally:
                lock.close()


def viewer(results: Path) -> Any:
    return Viewer(results, PluginManager()).serving(RequestGuard(token=TOKEN))


def state_of(page: playwright.Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        page.evaluate("document.body.dataset.state || '{}'")
    )
    return found


def shown_as(
    page: playwright.Page, wanted: Callable[[], Mapping[str, object]]
) -> dict[str, Any]:
    """Wait until the page shows these values; return its whole state."""
    for _ in range(300):
        values, state = wanted(), state_of(page)
        if {name: state.get(name) for name in values} == values == wanted():
            return state
        page.wait_for_timeout(100)
    pytest.fail(f"the page shows {state_of(page)}, not {wanted()}")


def counts_of(log: RunLog) -> dict[str, object]:
    done = sum(not record.missing for record in log.trials())
    return {"calls": log.calls.totals().calls, "done": done}


def agree(page: playwright.Page, log: RunLog) -> dict[str, Any]:
    """Check that the page agrees with the log; return the page's state."""
    state = shown_as(page, lambda: counts_of(log))
    calls = log.calls.totals()
    [plan] = log.plans()
    [cell] = state["cells"]
    judged = judge(plan, log.trials_and_gaps())
    assert state["cost"] == pytest.approx(calls.cost)
    assert state["tokens"] == calls.prompt + calls.completion
    assert cell["verdict"] == judged.verdict
    assert cell["rate"] == judged.rate
    assert cell["done"] == state["done"]
    budget = " of $1,500.00" if state["in_flight"] is not None else ""
    assert page.locator("#cost").inner_text() == f"${calls.cost:,.2f}{budget}"
    assert (
        page.locator("#trials").inner_text()
        == f"{state['done']} of {state['done'] + state['left']}"
    )
    return state


def film_of(log: RunLog, about: str) -> str:
    """Return the last picture of the trial that the page names."""
    [(subject, trial)] = [
        map(int, found) for found in re.findall(r"subject (\d+), trial (\d+):", about)
    ]
    [plan] = log.plans()
    plugins = PluginManager()
    record = log.trials(plan, subject)[trial - 1]
    paradigm = plugins.compile(recorded_protocol(log, plan, plugins))
    return film(log, paradigm, plugins.view("ascii_2d"), record)[-1].observation


class Listener:
    """Hears every state of a run that the server sends."""

    def __init__(self, base: str, run: str) -> None:
        parts = urlsplit(base)
        self.states: list[dict[str, Any]] = []
        self._connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=60
        )
        self._connection.request("GET", f"{parts.path}run/{run}/states")
        self._thread = threading.Thread(
            target=self._listen, args=[self._connection.getresponse()], daemon=True
        )
        self._thread.start()

    def _listen(self, response: http.client.HTTPResponse) -> None:
        kind = b""
        while not (self.states and self.states[-1]["status"] == "finished") and (
            line := response.readline()
        ):
            kind = line if line.startswith(b"event:") else kind
            if line.startswith(b"data:") and kind == b"event: state\n":
                self.states.append(json.loads(line[5:]))

    def all(self) -> list[dict[str, Any]]:
        """Wait until the run is finished; return everything that was sent."""
        self._thread.join(60)
        self._connection.close()
        return self.states


@pytest.mark.browser
def test_a_run_that_goes_on_is_watched_to_its_verdict(
    tmp_path: Path, maze: Specification, serve: Serve, open_page: Open
) -> None:
    gate = Gate(7, 15, 27)
    base = serve(viewer(tmp_path))
    lists = open_page(base)
    lists.locator("#nothing").wait_for()
    with going_on(tmp_path, maze, gate) as log:
        listener = Listener(base, "live")
        page = open_page(f"{base}run/live/")
        for _ in gate.stops:
            assert gate.reached.acquire(timeout=60)
            state = agree(page, log)
            assert state["status"] == "running"
            assert 0 < state["in_flight"] <= state["limit"]
            assert not state["cells"][0]["decided"]
            assert state["cells"][0]["standing"] is None, "trials are still to come"
            done, left = state["done"], state["left"]
            # The set of six subjects, with six trials each.
            assert done + left == 6 * 6
            if done:
                # The terminal's estimate, rounded to seconds: elapsed time per trial
                # times remaining trials.
                assert state["seconds_left"] == pytest.approx(
                    state["seconds"] / done * left, abs=1 + left / done
                )
                assert state["cost_left"] == pytest.approx(state["cost"] / done * left)
                # The newest trial is played, and its last picture is that of its log.
                # Both are read together, because the next trial begins when this one
                # has ended.
                about, film = page.wait_for_function(
                    """() => {
                        const about = document.getElementById("film-about").textContent;
                        const film = document.getElementById("film").textContent;
                        return /, trial .: (found|timeout)$/.test(about) && [about, film];
                    }"""
                ).json_value()
                assert film == film_of(log, about)
                assert page.locator("#film .agent").count() == 1
                assert (
                    page.locator("#unreadable").inner_text()
                    == f"0 % of {state['asked']}"
                )
            assert HOSTILE in page.locator("#replies").inner_text()
            assert page.evaluate("window.hacked") is None
            gate.onward.release()
        lists.locator("#lines .pill.running").wait_for()
        page.locator("#cells button:enabled").first.click()
        page.locator("#subjects-list a").first.click()
        page.locator(
            "#sentence", has_text="Step 0 of 6"
        ).wait_for()  # it is played while the run is in progress
        page.get_by_role("button", name="Next trial").focus()
        page.keyboard.press("End")
        page.locator("#sentence", has_text="The trial ends: found.").wait_for()
        assert HOSTILE in page.locator("#call-reply").inner_text()
        page.go_back()
        page.locator("#status.running, #status.finished").wait_for()
    page.locator("#status.finished").wait_for()  # nothing changes from here on
    with RunLog.open_read_only(tmp_path / "live") as log:
        state = agree(page, log)
        costs = [
            cost for (cost,) in log.select("SELECT cost FROM calls ORDER BY rowid")
        ]
    heard = listener.all()
    assert len(heard) > 5
    for before, after in pairwise(heard):
        assert before["calls"] <= after["calls"]
        assert before["done"] <= after["done"]
    for one in heard:  # at every moment: the exact cost of the calls so far
        assert one["cost"] == pytest.approx(sum(costs[: one["calls"]]))
        assert one["done"] == one["cells"][0]["done"]
        assert len(json.dumps(one)) < 20_000  # however many trials there are
    shown_as(page, lambda: {"status": "finished", "left": 0})
    verdict = state["cells"][0]["verdict"]
    page.locator("#cells .verdict", has_text=verdict).wait_for()
    assert page.locator("#decided").inner_text() == f"1 of 1: 1 {verdict}"
    assert state_of(page)["in_flight"] is None
    assert list((tmp_path / "live").glob("calls-*")) == []
    lists.locator("#lines .pill.finished").wait_for()
    lists.locator("#lines .verdict", has_text=f"1 {verdict}").wait_for()


@pytest.fixture
def finished(tmp_path: Path, maze: Specification, lived: Lived) -> Path:
    results = tmp_path / "results"
    for name, model in (
        ("monday", "random"),
        ("tuesday", "random"),
        ("wednesday", "tabular-ql"),
    ):
        lived(results, maze, name, model).close()
    (tmp_path / "secret").mkdir()
    lived(tmp_path / "secret", maze, "private").close()
    return results


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "dark"), (1400, "light"), (1920, "dark")]
)
def test_pages_fit_and_lead_to_one_another(
    finished: Path,
    serve: Serve,
    open_page: Open,
    check_axe: Check,
    width: int,
    scheme: Scheme,
) -> None:
    page = open_page(serve(viewer(finished)), width=width, scheme=scheme)
    visited = set()

    def fits() -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
        back = page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
        )
        assert (sum(back) < 200) == (scheme == "dark")
        check_axe(page)
        visited.add(page.url.rpartition("/")[0])

    page.locator("#lines tr").nth(2).wait_for()
    fits()
    bottoms = "row => [...row.cells].map(cell => Math.round(cell.getBoundingClientRect().bottom))"
    # One line below the row.
    assert len(set(page.locator("#lines tr").first.evaluate(bottoms))) == 1
    page.get_by_label("Compare monday").check()
    page.get_by_label("Compare wednesday").check()
    page.get_by_role("button", name="Compare the two runs").click()
    page.get_by_role("heading", name="random against tabular-ql").wait_for()
    fits()
    page.get_by_role("link", name="CheeseBench").click()
    page.locator("#trends a", has_text="random").click()
    page.locator("svg.trend circle").nth(1).wait_for()
    fits()
    page.get_by_role("link", name="All runs").click()
    page.locator("#trends a", has_text="random").click()
    page.get_by_role("link", name="tuesday").click()
    page.locator("#status.finished").wait_for()
    fits()
    page.get_by_role("button", name="Watch trials of random").click()
    page.locator("#subjects-list a").nth(3).click()
    page.locator("#sentence", has_text="Step 0 of").wait_for()
    fits()
    page.get_by_role("link", name="tuesday").click()
    page.get_by_role("link", name="Full report").click()
    page.get_by_role("heading", name="As good as the rodent?").wait_for()
    assert len(visited) == 2  # below the token, and below the run


@pytest.mark.browser
def test_runs_appear_and_vanish_and_can_be_filtered(
    finished: Path, maze: Specification, lived: Lived, serve: Serve, open_page: Open
) -> None:
    page = open_page(serve(viewer(finished)))
    page.locator("#lines tr").nth(2).wait_for()
    lived(finished, maze, "thursday").close()
    page.get_by_role("link", name="thursday").wait_for()
    broken = finished / "tuesday" / "run.sqlite"
    broken.write_bytes(b"no log")
    page.locator(".problem", has_text="not a run log").wait_for()
    for path in (finished / "thursday").iterdir():
        path.unlink()
    (finished / "thursday").rmdir()
    page.get_by_role("link", name="thursday").wait_for(state="detached")
    page.locator("#filter").fill("tabular")
    assert page.locator("#lines tr:visible").count() == 1


def ask(
    base: str, path: str = "", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], str]:
    """Return status, headers and body of a request that no browser would make (the path
    is sent unchanged).
    """
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=30
    )
    try:
        connection.putrequest(method, path or parts.path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        return (
            response.status,
            dict(response.getheaders()),
            response.read(200_000).decode(),
        )
    finally:
        connection.close()


def test_nobody_else_gets_in(finished: Path, serve: Serve) -> None:
    base = serve(viewer(finished))
    host, below = urlsplit(base).netloc, f"/{TOKEN}/"
    port = host.partition(":")[2]
    assert ask(base)[0] == 200
    assert ask(base, Host=f"localhost:{port}")[0] == 200
    for wrong in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1.evil.example:{port}",
        "",
    ):
        assert ask(base, Host=wrong)[0] == 421, wrong
    for path in (
        "/",
        "/wrong/",
        f"/{TOKEN}x/",
        f"/{TOKEN[:-1]}/",
        "/run/monday/",
        f"//{TOKEN}/",
        "/%00/",
        "/%C3%A9/",
    ):
        assert ask(base, path)[0] == 404, path
    for method in (
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "ANYTHING",
    ):
        status, _, body = ask(base, below, method)
        assert status in (400, 405), method
        assert "monday" not in body
    assert ask(base, below, Origin="http://evil.example")[0] == 403
    assert ask(base, below, Origin="null")[0] == 403
    assert (
        ask(base, below, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0]
        == 403
    )
    assert (
        ask(base, below, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0]
        == 200
    )


def half(base: str, said: bytes = b"GET /") -> socket.socket:
    """Return a connection with an unfinished request."""
    parts = urlsplit(base)
    connection = socket.create_connection(
        (parts.hostname or "", parts.port or 0), timeout=30
    )
    connection.sendall(said)
    return connection


def wait_for_end(connection: socket.socket) -> None:
    with suppress(ConnectionResetError):
        assert connection.recv(1) == b""


def test_a_request_that_does_not_arrive_is_not_waited_for(
    finished: Path, serve: Serve
) -> None:
    serving = viewer(finished)
    serving.patience = 0.2
    base = serve(serving)
    parts = urlsplit(base)
    visitor = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    for _ in range(2):
        visitor.request("GET", parts.path)
        assert visitor.getresponse().read()
        # A client that has asked for a page may send the next request as late as
        # servers usually allow.
        with half(base) as one, half(base, b"") as silent:
            wait_for_end(one)
            wait_for_end(silent)
    visitor.close()
    with half(base, b"GET /nothing HTTP/1.1\r\nHost: evil\r\n\r\n") as stranger:
        while stranger.recv(4096):
            pass  # it ends, because strangers' connections are not kept


def test_many_who_say_nothing_shut_nobody_out(
    finished: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_guard, "WAITING", 2)
    base = serve(viewer(finished))
    with ExitStack() as stack:
        connections = [stack.enter_context(half(base)) for _ in range(5)]
        for connection in connections[:3]:
            wait_for_end(connection)
        assert ask(base)[0] == 200


def test_no_path_leads_out_of_the_directory(finished: Path, serve: Serve) -> None:
    base = serve(viewer(finished))
    names = [
        "../secret/private",
        "..%2Fsecret%2Fprivate",
        "%2e%2e/secret/private",
        "..%5csecret%5cprivate",
        "....//private",
        "%2Fetc",
        "..",
        ".",
        "%2e%2e",
        "monday%00",
        "monday/../../secret/private",
        "nothing",
        "~",
        "C:%5C",
    ]
    for name in names:
        for page in (
            "",
            "states",
            "subject?cell=0&subject=0",
            "report",
            "subjects?cell=0",
        ):
            status, _, body = ask(base, f"/{TOKEN}/run/{name}/{page}")
            assert status == 404, (name, page)
            assert "private" not in body
    for query in ("a=monday&b=../secret/private", "a=..&b=monday", "a=monday", ""):
        assert ask(base, f"/{TOKEN}/compare?{query}")[0] == 404, query
    for query in (
        "cell=9&subject=0",
        "cell=-1&subject=0",
        "cell=0",
        "cell=x&subject=0",
        "cell=0&subject=1e3",
        "",
    ):
        assert ask(base, f"/{TOKEN}/run/monday/subject?{query}")[0] == 404, query
    assert ask(base, f"/{TOKEN}/trend?model=nobody")[0] == 404


def test_a_forged_log_is_told_where_runs_are_compared(
    finished: Path, serve: Serve
) -> None:
    base, page = serve(viewer(finished)), f"/{TOKEN}/compare?a=monday&b=tuesday"
    assert "Replayed: monday" in ask(base, page)[2]
    with rewritten(finished / "monday" / "run.sqlite") as connection:
        connection.execute("UPDATE trials SET success = 1 - success")
    status, _, body = ask(base, page)
    assert status == 200
    assert "differs from the record" in body
    with sqlite3.connect(finished / "tuesday" / "run.sqlite") as connection:
        connection.execute("UPDATE trials SET success = 1")
    assert "is damaged" in ask(base, page)[2]


def test_the_comparison_warns_on_every_surface_of_the_same(
    finished: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    base = serve(viewer(finished))
    for name, passed in (("monday", "subject = 0"), ("tuesday", "subject + trial = 0")):
        with rewritten(finished / name / "run.sqlite") as connection:
            connection.execute(f"UPDATE trials SET success = {passed}")
            plugins = json.dumps({"acme": name})
            connection.execute(
                "UPDATE manifest SET value = ? WHERE key = 'plugins'", (plugins,)
            )
            connection.execute(
                "UPDATE manifest SET value = json_set(value, '$.cheesebench', '0.0.1') WHERE key = 'versions'"
            )
    said = {}
    for form in ("json", "text", "markdown"):
        assert (
            main(
                [
                    "compare",
                    "monday",
                    "tuesday",
                    "--results",
                    str(finished),
                    "--format",
                    form,
                ]
            )
            == 0
        )
        said[form] = capsys.readouterr().out
    status, _, body = ask(base, f"/{TOKEN}/compare?a=monday&b=tuesday")
    assert status == 200
    said["page"] = html.unescape(body)
    found = json.loads(said["json"])
    assert found["warnings"]
    assert ["plugin acme", "monday", "tuesday"] in found["changed"]
    for text in said.values():
        words = " ".join(re.sub(r"\\(?=\W)", "", text).split())
        assert all(warning in words for warning in found["warnings"])
        assert "plugin acme" in words


def test_every_reply_forbids_what_it_can(finished: Path, serve: Serve) -> None:
    base = serve(viewer(finished))
    paths = [
        "",
        "run/monday/",
        "run/monday/subject?cell=0&subject=0",
        "run/monday/report",
        "run/monday/subjects?cell=0",
    ]
    for path in [*paths, "compare?a=monday&b=tuesday", "trend?model=random", "nothing"]:
        status, headers, _ = ask(base, f"/{TOKEN}/{path}")
        assert status == (404 if path == "nothing" else 200)
        policy = headers["Content-Security-Policy"]
        for rule in (
            "default-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ):
            assert rule in policy, path
        assert "http" not in policy
        assert not [
            name for name in headers if name.lower().startswith("access-control-")
        ]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.browser
def test_a_page_of_another_origin_reads_nothing(
    finished: Path, serve: Serve, browser: playwright.Browser
) -> None:
    base = serve(viewer(finished))
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler
    ) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page = browser.new_context().new_page()
        page.route(
            "**/evil",
            lambda route: route.fulfill(body="<p>evil</p>", content_type="text/html"),
        )
        page.goto(f"http://localhost:{other.server_port}/evil")
        for mode in ("cors", "no-cors"):
            code = "([url, mode]) => fetch(url, {mode}).then((r) => r.text()).then((t) => t.length).catch(() => -1)"
            assert page.evaluate(code, [base, mode]) <= 0
        stream = """(url) => new Promise((done) => {
            const source = new EventSource(url);
            source.addEventListener("line", () => done("read"));
            source.onerror = () => { source.close(); done("refused"); };
        })"""
        assert page.evaluate(stream, f"{base}lines") == "refused"
        frame = """(url) => new Promise((done) => {
            const frame = document.createElement("iframe");
            const read = () => (frame.contentDocument === null ? "closed" : frame.contentDocument.body.innerText);
            frame.onload = () => { try { done(read()); } catch (error) { done("closed"); } };
            frame.src = url;
            document.body.append(frame);
        })"""
        assert "Runs" not in page.evaluate(frame, base)
        assert all(
            "Runs" not in (one.content() if one.url.startswith("http://127") else "")
            for one in page.frames
        )
        page.context.close()
        other.shutdown()


def test_a_long_run_is_read_in_bounded_memory_and_only_where_it_changes(
    tmp_path: Path, maze: Specification, lived: Lived
) -> None:
    with lived(tmp_path, maze, "long", subjects=400) as log:
        [plan] = log.plans()
        watch = RunWatch(log.path)
        tracemalloc.start()
        state = watch.poll()
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert state.done == 400 * 6
        assert peak < 30_000_000, kept
        judged = judge(plan, log.trials_and_gaps())
        assert state.cells[0].result.verdict is judged.verdict
        before = state.cells[0].result
        log.note("warning", "something else was written")
        again = watch.poll().cells[0].result
        assert replace(again, calls=None) is not before
        assert again.curve is before.curve  # the cell was not judged again


def test_calls_in_flight_of_several_processes_are_added_up(tmp_path: Path) -> None:
    assert read_flight(tmp_path) is None
    for name, text in (
        ("1", '{"calls": 3, "limit": 16}'),
        ("2", '{"calls": 4, "limit": 8, "budget": 2.5}'),
        ("3", "{"),
        ("4", "[]"),
        ("5", '{"calls": Infinity, "limit": 8}'),
        ("6", "[" * 4000),
        ("7", '{"calls": 1, "limit": 1}' + " " * 5000),
    ):
        (tmp_path / f"calls-{name}.json").write_text(text, encoding="utf-8")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "calls-8.json")
    assert read_flight(tmp_path) == (7, 24, 2.5)
    # The leftover of a killed process.
    os.utime(tmp_path / "calls-2.json", (1, 1))
    assert read_flight(tmp_path) == (3, 16, None)


def test_the_pace_of_a_continued_run_is_that_of_its_present_session(
    tmp_path: Path, maze: Specification, lived: Lived
) -> None:
    with lived(tmp_path, maze, "twice") as log:
        [plan] = log.plans()
        assert RunWatch(log.path).poll().status == "finished"
        log.note("started", "again", plan)
        watch = RunWatch(log.path)
        assert watch.poll().status == "interrupted"
        lock = claim(log.path)
        state = watch.poll()
        assert state.status == "running"
        with log.transaction() as connection:
            # Pretend that the last subject has two more trials.
            connection.execute("DELETE FROM lives WHERE subject = 3")
            connection.execute("DELETE FROM trials WHERE subject = 3 AND trial >= 4")
        state = watch.poll()
        assert state.left == 2
        # No trial has ended during the watch, so its duration is unknown.
        assert state.seconds_left is None
        assert not state.cells[0].decided
        lock.close()


def test_the_command_serves_until_it_is_stopped(finished: Path) -> None:
    command = [sys.executable, "-m", "cheesebench", "view", "--results", str(finished)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=reset_signals
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert ask(address)[0] == 200
        assert urlsplit(address).hostname == "127.0.0.1"
        assert len(urlsplit(address).path.strip("/")) >= 32
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize(("arguments", "said"), [
    (["--results", "nowhere"], "There is no directory nowhere"),
    (["--port", "70000"], "ports go up to 65535"),
])  # fmt: skip
def test_mistakes_are_explained(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["view", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(finished: Path, serve: Serve) -> None:
    port = urlsplit(serve(viewer(finished))).port
    command = [
        sys.executable,
        "-m",
        "cheesebench",
        "view",
        "--results",
        str(finished),
        "--port",
        str(port),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_runs_lists_the_same(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (finished / "tuesday" / "run.sqlite").write_bytes(b"no log")
    shutil.copytree(finished / "wednesday", finished / "friday")
    with rewritten(finished / "friday" / "run.sqlite") as connection:
        connection.execute("UPDATE journal SET time = 'noon'")
    assert main(["runs", "--results", str(finished), "--json"]) == 0
    found = {line["run"]: line for line in json.loads(capsys.readouterr().out)}
    assert set(found) == {"monday", "tuesday", "wednesday", "friday"}
    assert found["tuesday"]["problem"]
    assert "'noon'" in found["friday"]["problem"]
    assert found["monday"]["trials"] == 4 * 6
    assert sum(found["monday"]["verdicts"].values()) == 1
    assert main(["runs", "--results", str(finished), "--model", "random"]) == 0
    printed = capsys.readouterr().out
    assert "monday" in printed
    assert "wednesday" not in printed
    assert main(["runs", "--results", str(finished), "--model", "nobody"]) == 0
    assert "no runs of 'nobody'" in capsys.readouterr().out


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_runs_breaks_no_word(
    tmp_path: Path,
    maze: Specification,
    lived: Lived,
    width: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = tmp_path / "results"
    for name in ("20261123-040809-d4d7", "broken"):
        lived(results, maze, name, "hippocampal-ql").close()
    (results / "broken" / "run.sqlite").write_bytes(b"no log")
    assert main(["runs", "--results", str(results), "--json"]) == 0
    found = {line["run"]: line for line in json.loads(capsys.readouterr().out)}
    monkeypatch.setenv("COLUMNS", width)
    assert main(["runs", "--results", str(results)]) == 0
    printed = capsys.readouterr().out
    # The path to the broken run may exceed the terminal's width, and stays whole.
    assert max(len(line) for line in printed.splitlines() if "/" not in line) <= int(
        width
    )
    assert str(results / "broken" / "run.sqlite") in printed
    run = found["20261123-040809-d4d7"]
    verdict = next(name for name, count in run["verdicts"].items() if count)
    words = {
        run["run"],
        run["created"][:10],
        run["created"][11:16],
        "hippocampal-ql",
        "finished",
        verdict,
    }
    assert words <= set(printed.replace(";", " ").split())
    assert (
        " ".join(printed.split()).count(
            " ".join(found["broken"]["problem"].split()[-8:])
        )
        == 1
    )
