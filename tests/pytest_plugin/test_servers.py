"""Several servers in a pytest session."""

from __future__ import annotations

import shlex
import sys

import pytest

from cheesebench.chat import ModelAgent  # noqa: F401 - kept loaded, see conftest.py
from cheesebench.experiment import calling
from cheesebench.experiment.cells import RunOptions
from cheesebench.experiment.language_models import language_models
from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import installed_plugins
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.pytest_plugin.test_models import CALLS, calls, dump, walk

GIVEN = ("--model", "openai/tiny", "lab")


def even(*servers: FakeServer) -> bool:
    total = sum(server.count for server in servers)
    return all(
        abs(server.count - total / len(servers)) <= 0.1 * total / len(servers)
        for server in servers
    )


@pytest.mark.parametrize("workers", [False, True], ids=["one process", "two workers"])
def test_several_servers_share_a_run_and_the_manifest_lists_them(
    project: pytest.Pytester, workers: bool
) -> None:
    with (
        FakeServer(walk) as one,
        FakeServer(walk, latency=0.01) as two,
        FakeServer(walk) as alone,
    ):
        urls = [one.base_url, two.base_url]
        given = (*GIVEN, "--cheese-run-id=one")
        if workers:
            result = project.runpytest_inprocess(
                *given, "-n2", *(f"--base-url={url}" for url in urls)
            )
        else:
            result = project.runpytest(*given, "--base-url", ", ".join(urls))
        result.assert_outcomes(passed=2)
        assert one.count + two.count == CALLS + 2, (
            "one call for each trial, and one to each server before anything runs"
        )
        assert even(one, two)
        project.runpytest(*GIVEN, "--base-url", alone.base_url, "--cheese-run-id=alone")
    assert dump(project, "one") == dump(project, "alone")
    with RunLog.open_read_only(project.path / "results/one") as log:
        assert log.manifest["options"]["base_url"] == urls


def test_when_the_last_server_dies_a_line_says_why_and_how_to_go_on(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)

    def first(call: Call) -> str | Answer:
        return walk(call) if call.number < 10 else Answer(fault="reset")

    def second(call: Call) -> str | Answer:
        return walk(call) if call.number < 50 else Answer(fault="reset")

    with FakeServer(first) as one, FakeServer(second) as two:
        urls = f"{one.base_url},{two.base_url}"
        result = project.runpytest(
            *GIVEN,
            "-k",
            "east or west",
            "--base-url",
            urls,
            "--cheese-run-id=one",
            "--retries=1",
        )
        result.assert_outcomes(errors=2)
        result.stdout.fnmatch_lines(
            [
                f"*cheesebench: {one.base_url[:-3]} does not answer any more; its subjects go on with the other one (*",
                f"*cheesebench: {two.base_url[:-3]} does not answer any more; no server is left (*",
                "*none of the 2 servers answers; the last one said: connection: http://127.0.0.1:*",
                f"*--base-url {urls} * --resume one",
            ]
        )
    with FakeServer(walk) as three:
        before = calls(project, "one")
        again = ("--base-url", three.base_url, "--resume", "one")
        project.runpytest(*GIVEN, "-k", "east or west", *again).assert_outcomes(
            passed=2
        )
        assert three.count - 1 == calls(project, "one") - before
        project.runpytest(
            *GIVEN,
            "-k",
            "east or west",
            "--base-url",
            three.base_url,
            "--cheese-run-id=other",
        )
    assert dump(project, "one") == dump(project, "other")


@pytest.mark.parametrize(
    ("urls", "error"),
    [
        (
            "http://x/v1,http://y/v1?api_key=abc",
            "The base URL has a user, a query or a fragment *",
        ),
        (
            "http://x/v1,http://me:hunter2@y/v1",
            "The base URL has a user, a query or a fragment *",
        ),
        ("http://x/v1,nonsense", "The base URL 'nonsense' is not valid. *"),
    ],
)
def test_an_address_that_cannot_be_meant(
    project: pytest.Pytester, urls: str, error: str
) -> None:
    result = project.runpytest(*GIVEN, "--base-url", urls)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {error}"])
    assert "hunter2" not in result.stdout.str() + result.stderr.str()
    assert not list(project.path.glob("results/*"))


def test_a_run_that_recorded_one_address_as_text_goes_on() -> None:
    """Runs of earlier versions did."""
    url = "http://127.0.0.1:9/v1"
    options = RunOptions({}, recorded={"base_url": url})
    assert language_models(installed_plugins(), ["openai/tiny"], options)[
        "openai/tiny"
    ].base_urls == (url,)


def test_the_addresses_of_a_stranger_are_not_called(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer(walk) as one, FakeServer(walk) as two:
        urls = f"{one.base_url},{two.base_url}"
        given = (*GIVEN, "-k", "east", "--cheese-run-id=one", "--max-tokens=900")
        # The model's name is guarded, too: what is typed again is trusted.
        project.runpytest(*given, "--base-url", urls)
        monkeypatch.setenv("XDG_STATE_HOME", str(project.path / "another user"))
        before = one.count + two.count
        result = project.runpytest(*GIVEN, "-k", "east", "--resume", "one")
        result.stderr.fnmatch_lines(
            [
                f"ERROR: --resume one: *not made by you on this machine, so --base-url {urls} *"
            ]
        )
        assert one.count + two.count == before
        project.runpytest(
            *GIVEN, "-k", "east", "--resume", "one", "--base-url", two.base_url
        )
        assert two.count > before - one.count


#: Stands in for vLLM: healthy at once, and always says the same.
STAND_IN = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "ACTIONS: FORWARD, FORWARD"}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def test_what_is_said_while_a_server_starts_is_shown(project: pytest.Pytester) -> None:
    (project.path / "stand_in.py").write_text(STAND_IN, encoding="utf-8")
    command = "--cheese-backend-option=command=" + shlex.join(
        [sys.executable, str(project.path / "stand_in.py")]
    )
    result = project.runpytest(
        "--model", "vllm/org/tiny", command, "--design=smoke", "-k", "few", "lab"
    )
    result.stdout.fnmatch_lines(["vLLM serves org/tiny after *"])
    assert result.ret == 0
