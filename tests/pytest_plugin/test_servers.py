"""The address of a server in a pytest session."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from cheesebench.errors import OptionError
from cheesebench.experiment import calling
from cheesebench.experiment.settings import Given, language_models
from cheesebench.plugin_manager import installed_plugins
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.pytest_plugin.test_models import calls, dump, walk

GIVEN = ("--model", "openai/tiny", "lab")


def test_a_server_that_dies_and_the_run_that_goes_on_with_another(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)

    def dying(call: Call) -> str | Answer:
        return walk(call) if call.number < 50 else Answer(fault="reset")

    with FakeServer(dying) as one:
        result = project.runpytest(
            *GIVEN,
            "-k",
            "east or west",
            "--base-url",
            one.base_url,
            "--cheese-run-id=one",
            "--retries=1",
        )
        result.assert_outcomes(errors=2)
        result.stdout.fnmatch_lines(
            [
                "*connection: http://127.0.0.1:*",
                f"*--base-url {one.base_url} * --resume one",
            ]
        )
    with FakeServer(walk) as two:
        before = calls(project, "one")
        again = ("--base-url", two.base_url, "--resume", "one")
        project.runpytest(*GIVEN, "-k", "east or west", *again).assert_outcomes(
            passed=2
        )
        assert two.count == calls(project, "one") - before
        given = ("--base-url", two.base_url, "--cheese-run-id=other")
        project.runpytest(*GIVEN, "-k", "east or west", *given)
    assert dump(project, "one") == dump(project, "other")


@pytest.mark.parametrize(
    ("urls", "error"),
    [
        (
            "http://y/v1?api_key=hunter2",
            "The base URL has a user, a query or a fragment *",
        ),
        (
            "http://me:hunter2@y/v1",
            "The base URL has a user, a query or a fragment *",
        ),
        ("nonsense", "The base URL 'nonsense' is not valid. *"),
        (
            "http://x/v1, http://y/v1",
            "There are 2 base URLs, but a model can have only one. *",
        ),
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


def test_a_run_of_an_earlier_version_recorded_a_list() -> None:
    url = "http://127.0.0.1:9/v1"
    known = installed_plugins(), ["openai/tiny"]
    one = Given({}, recorded={"base_url": [url]})
    found = language_models(*known, one, one.resolve(), Path())
    assert found["openai/tiny"].base_url == url
    two = Given({}, recorded={"base_url": [url, "http://127.0.0.1:8/v1"]})
    with pytest.raises(OptionError, match="load balancer"):
        language_models(*known, two, two.resolve(), Path())


def test_the_address_of_a_stranger_is_not_called(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer(walk) as one, FakeServer(walk) as two:
        given = (*GIVEN, "-k", "east", "--cheese-run-id=one", "--max-tokens=900")
        # The model's name is checked, too; a typed name is trusted.
        project.runpytest(*given, "--base-url", one.base_url)
        monkeypatch.setenv("XDG_STATE_HOME", str(project.path / "another user"))
        before = one.count
        result = project.runpytest(*GIVEN, "-k", "east", "--resume", "one")
        result.stderr.fnmatch_lines(
            [
                f"ERROR: --resume one: *not made by you on this machine, so --base-url {one.base_url} *"
            ]
        )
        assert (one.count, two.count) == (before, 0)
        project.runpytest(
            *GIVEN, "-k", "east", "--resume", "one", "--base-url", two.base_url
        )
        assert one.count == before < before + two.count


#: Replaces vLLM: healthy at once, with a constant reply.
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
