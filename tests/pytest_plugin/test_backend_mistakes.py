"""Backends that fail before the run begins: one line each, without traceback and
without the key.
"""

from __future__ import annotations

import pytest

from cheesebench.experiment.log import RunLog

KEY = "4u-conformance-0123456789"
BACKEND = """
import os
from cheesebench import BackendSpec, ChatFaultError, ChatReply, OptionError, PluginError

KEY = os.environ["ACME_API_KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}

class Client:
    async def complete(self, request):
        COMPLETE
        wait = "STAY, " if (request.sampling.seed or 0) % 2 else ""  # or subjects were copies
        return ChatReply(text=f"ACTIONS: {wait}FORWARD, FORWARD")
    async def close(self):
        CLOSE
        return None

class Server:
    base_url = "http://127.0.0.1:9/v1"
    def stop(self):
        STOP
        return None

def connect(context):
    CONNECT
    return Client()

def account(context):
    ACCOUNT
    return "acme"

def serve(context):
    context.progress(f"starting with {KEY}")
    SERVE
    return Server()

def cheesebench_backends():
    return [BackendSpec(name="acme", connect=connect, account=account, serve=serve, summary="told too much")]
"""


def run(project: pytest.Pytester, **lines: str) -> pytest.RunResult:
    """Run with a backend into which these lines are inserted at the named places."""
    text = BACKEND
    for place in ("COMPLETE", "CLOSE", "STOP", "CONNECT", "ACCOUNT", "SERVE"):
        text = text.replace(f"    {place}\n", f"    {lines.get(place, 'pass')}\n")
    (project.path / "lab/conftest.py").write_text(text, encoding="utf-8")
    return project.runpytest(
        "--model",
        "acme/any",
        "lab/east.protocol.yaml",
        "--cheese-run-id=one",
        "--full-trace",
    )


@pytest.fixture
def told(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("ACME_API_KEY", KEY)
    return project


@pytest.mark.parametrize(
    ("place", "line", "said"),
    [
        (
            "COMPLETE",
            "raise ChatFaultError('bad_request', f'the connection failed {HEADERS}')",
            "The model 'acme/any' does not answer: bad request: the connection failed *redacted*",
        ),
        (
            "COMPLETE",
            "raise ChatFaultError('authentication', f'Incorrect API key: {KEY}') from RuntimeError(KEY)",
            "The model 'acme/any' does not answer: authentication: Incorrect API key: ?redacted?. Check the environment *",
        ),
        (
            "COMPLETE",
            "raise RuntimeError(f'bad status, key={KEY}')",
            "The backend 'acme' fails while answering the first question: RuntimeError: bad status, key=?redacted? (c*",
        ),
        (
            "COMPLETE",
            "raise SystemExit(f'gone {KEY}')",
            "The backend 'acme' fails while answering the first question: SystemExit: gone ?redacted? (c*",
        ),
        ("CONNECT", "raise OptionError(f'{KEY} is no key')", "?redacted? is no key"),
        (
            "CONNECT",
            "raise LookupError(KEY)",
            "The backend 'acme' fails while connecting: LookupError: ?redacted? (conf*",
        ),
        (
            "ACCOUNT",
            "raise LookupError(KEY)",
            "The backend 'acme' fails while connecting: LookupError: ?redacted? (conf*",
        ),
        (
            "SERVE",
            "raise OSError(KEY)",
            "The backend 'acme' fails while starting its server: OSError: ?redacted? (conf*",
        ),
    ],
)
def test_what_a_backend_raises_is_one_line_without_the_key(
    told: pytest.Pytester, place: str, line: str, said: str
) -> None:
    result = run(told, **{place: line})
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [
        one for one in result.errlines if one and not one.startswith("Exit code 4")
    ]
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
    assert len(errors) == 1
    assert KEY not in "\n".join(result.outlines + result.errlines)
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("place", ["COMPLETE", "SERVE"])
def test_a_server_that_cannot_be_stopped_hides_no_cause(
    told: pytest.Pytester, place: str
) -> None:
    result = run(
        told, **{place: "raise LookupError('why')"}, STOP="raise RuntimeError(KEY)"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: The backend 'acme' fails while *: LookupError: why (conf*"]
    )
    if place == "COMPLETE":  # the other server was never started
        result.stdout.fnmatch_lines(["A model server could not be stopped: ?redacted?"])
    assert list((told.path / "results").iterdir()) == []
    assert KEY not in "\n".join(result.outlines + result.errlines)


def test_what_fails_at_the_end_takes_no_run_down(told: pytest.Pytester) -> None:
    result = run(told, CLOSE="raise RuntimeError(KEY)", STOP="raise RuntimeError(KEY)")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["starting with ?redacted?"])
    result.stderr.fnmatch_lines(
        ["cheesebench: A model server could not be stopped: ?redacted?"]
    )
    assert KEY not in "\n".join(result.outlines + result.errlines)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("return None", "returned NoneType, but a ChatReply is expected. *"),
        ("return 'STAY'", "returned str, but a ChatReply is expected. *"),
        (
            "return ChatReply(text=None)",
            "returned text=None, but a string is expected. *",
        ),
        (
            "return ChatReply(text='', usage=Usage(prompt=-5))",
            "returned usage.prompt=-5, but a number of tokens *",
        ),
        (
            "return ChatReply(text='', usage=Usage(completion='12'))",
            "returned usage.completion='12', but a number of *",
        ),
        (
            "return ChatReply(text='', usage=Usage(prompt=True))",
            "returned usage.prompt=True, but a number of tokens *",
        ),
        (
            "return ChatReply(text='', usage=Usage(reasoning=float('nan')))",
            "returned usage.reasoning=nan, but a number of *",
        ),
        (
            "return ChatReply(text='', usage=Usage(prompt=1, cached=9))",
            "returned usage.cached=9 and usage.written=0, but they are parts of usage.prompt=1. *",
        ),
        (
            "return ChatReply(text='', usage={})",
            "returned usage={}, but a Usage is expected. *",
        ),
        (
            "return ChatReply(text='', finish='done')",
            "returned finish='done', but * expected: stop, length, unread, other. *",
        ),
        (
            "raise ChatFaultError('too_many', KEY)",
            "raised ChatFaultError('too_many', ...), but * rate_limit, overload, *",
        ),
        (
            "raise ChatFaultError('server', KEY, retry_after='5')",
            "raised ChatFaultError(retry_after='5'), but seconds *",
        ),
    ],
)
def test_what_is_no_reply_is_the_backends_mistake(
    told: pytest.Pytester, line: str, said: str
) -> None:
    result = run(told, COMPLETE=f"from cheesebench import Usage; {line}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: The backend 'acme' {said}"])
    assert (
        len(
            [
                one
                for one in result.errlines
                if one and not one.startswith("Exit code 4")
            ]
        )
        == 1
    )
    assert KEY not in "\n".join(result.outlines + result.errlines)


def test_later_calls_are_checked_like_the_first_and_not_repeated(
    told: pytest.Pytester,
) -> None:
    before = "from pathlib import Path; path = Path('asked'); asked = path.read_text() if path.exists() else ''"
    later = "path.write_text(asked + '.')"
    counts = "from cheesebench import Usage; usage = Usage(prompt=-5 if asked else 5)"
    result = run(
        told,
        COMPLETE=f"{before}; {later}; {counts}; return ChatReply(text='ACTIONS: STAY', usage=usage)",
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*The backend 'acme' returned usage.prompt=-5, but a number of tokens is expected*"
        ]
    )
    with RunLog.open_read_only(told.path / "results/one") as log:
        subjects = len({record.subject for record in log.trials()})
        assert log.calls.totals().calls == 1, "the first question was answered"
    assert len((told.path / "asked").read_text(encoding="utf-8")) == 1 + subjects


@pytest.mark.parametrize(
    ("place", "instead", "said"),
    [
        (
            "    async def complete(self, request):\n        COMPLETE\n",
            "    def complete(self, request):\n        return ChatReply(text='x')\n",
            "The backend 'acme': connect returned a Client, whose 'complete' is a 'def'. Write 'async def complete(*",
        ),
        (
            "async def complete",
            "async def compleet",
            "* a Client, which has 'compleet', not 'complete'. Rename it.",
        ),
        (
            "    return Client()\n",
            "    pass\n",
            "The backend 'acme': connect returned None. Return a Connection.",
        ),
        (
            "Client()\n",
            "Client\n",
            "*connect returned the class Client. Return an object of this class, Client(...).",
        ),
        (
            "    return Server()\n",
            "    return 3\n",
            "The backend 'acme': serve returned 3, an int. Return a Server.",
        ),
        (
            "def connect",
            "async def connect",
            "*, whose 'connect' is an 'async def'. Write 'def'.",
        ),
        (
            "def connect(context)",
            "def connect()",
            "*, whose 'connect' takes (), but is called with (BackendContext). *",
        ),
    ],
)
def test_a_backend_of_another_shape_is_one_line(
    told: pytest.Pytester, place: str, instead: str, said: str
) -> None:
    text = BACKEND.replace(place, instead)
    for line in ("COMPLETE", "CLOSE", "STOP", "CONNECT", "ACCOUNT", "SERVE"):
        text = text.replace(f"    {line}\n", "    pass\n")
    (told.path / "lab/conftest.py").write_text(text, encoding="utf-8")
    result = told.runpytest("--model", "acme/any", "lab/east.protocol.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        len(
            [
                one
                for one in result.errlines
                if one and not one.startswith("Exit code 4")
            ]
        )
        == 1
    )
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
