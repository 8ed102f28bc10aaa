"""Language models in a pytest session, against a real server."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from cheesebench.cli import main
from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import claim
from cheesebench.experiment.provenance import made_here
from cheesebench.options import BY_KEY, OPTIONS
from cheesebench.plugin_manager import installed_plugins
from cheesebench.server.view import to_json
from cheesebench.server.watch import RunWatch
from cheesebench.statistics import summarise_subjects
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from fuzz.run_logs import rewritten
from tests.signals import reset_signals

#: Number of calls: six subjects of conftest.py in all three protocols, with one call
#: for each trial.
CALLS = 6 * (20 + 2 + 20)


def walk(call: Call) -> str:
    """Walk straight on. The seed decides whether a trial begins with a wait, because
    equal subjects would be copies.
    """
    wait = "STAY, " if call.body.get("seed", 0) % 2 else ""
    return f"LEARNINGS: the way out is ahead\nACTIONS: {wait}FORWARD, FORWARD"


def dump(project: pytest.Pytester, run: str) -> list[str]:
    with RunLog.open_read_only(project.path / "results" / run) as log:
        return list(log.dump())


def calls(project: pytest.Pytester, run: str) -> int:
    with RunLog.open_read_only(project.path / "results" / run) as log:
        return log.calls.totals().calls


def options(server: FakeServer, *others: str, run: str = "one") -> tuple[str, ...]:
    return (
        "--model",
        "openai/tiny",
        "--base-url",
        server.base_url,
        "--cheese-run-id",
        run,
        *others,
        "lab",
    )


def test_a_model_that_walks_on_passes_and_its_calls_are_reported(
    project: pytest.Pytester,
) -> None:
    with FakeServer(walk) as server:
        result = project.runpytest(*options(server, "--junitxml=junit.xml"))
        result.assert_outcomes(passed=2)
        result.stdout.fnmatch_lines(
            [f"Calls: {CALLS} calls, {CALLS} attempts, * prompt tokens,*"]
        )
        assert server.count == CALLS, "one call for each trial, and no other"
        bodies = [call.body for call in server.calls]
    assert {body["temperature"] for body in bodies} == {0.7}
    assert len({body["seed"] for body in bodies}) == CALLS, (
        "every call has a seed of its own"
    )
    report = (project.path / "results/one/report.md").read_text(encoding="utf-8")
    assert "### Calls to the model" in report
    assert "Answered by tiny." in report
    junit = (project.path / "junit.xml").read_text(encoding="utf-8")
    assert 'name="cheesebench.calls.calls" value="120"' in junit
    assert 'name="cheesebench.agent.unparsed" value="0"' in junit


def test_a_prompt_from_a_file_is_what_the_model_is_told(
    project: pytest.Pytester,
) -> None:
    (project.path / "mine.txt").write_text(
        "Do as you like.\nAt most $actions actions.", encoding="utf-8"
    )
    with FakeServer(walk) as server:
        result = project.runpytest(
            *options(server, "--prompt", "mine.txt", "--design", "smoke")
        )
        told = {
            body["messages"][0]["content"]
            for body in [call.body for call in server.calls][1:]
        }
    said = " ".join(" ".join(result.outlines).split())
    assert re.search(r"Connected: [1-9]\d* calls answered, 0 unparsed\.", said)
    assert told == {"Do as you like.\nAt most 8 actions."}


def test_a_call_that_was_refused_is_not_answered(project: pytest.Pytester) -> None:
    refused = Answer(status=400, error={"code": "content_filter"})
    with FakeServer(lambda call: refused) as server:
        result = project.runpytest(*options(server, "--design", "smoke"))
        assert server.count > 1
    said = " ".join(" ".join(result.outlines).split())
    assert "content filter" in said
    assert "Connected" not in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize("name", ["fifo.txt", "zero.txt"])
def test_a_prompt_that_never_ends_is_refused(
    project: pytest.Pytester, name: str
) -> None:
    os.mkfifo(project.path / "fifo.txt")
    (project.path / "zero.txt").symlink_to("/dev/zero")
    with FakeServer(walk) as server:
        result = project.runpytest(*options(server, "--prompt", name))
        assert server.count == 0
    result.stderr.fnmatch_lines(
        [f"ERROR: --prompt {name} cannot be read: it is not a file. Name a text file."]
    )


def test_a_dead_server_is_an_error_of_nobody(project: pytest.Pytester) -> None:
    with FakeServer(walk) as server:
        gone = server.base_url
    result = project.runpytest("--model", "openai/tiny", "--base-url", gone, "lab")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: The model 'openai/tiny' does not answer: connection: *"]
    )
    assert list((project.path / "results").iterdir()) == [], (
        "nothing was run, so nothing is left behind"
    )


def test_a_server_that_dies_is_an_error_and_no_failure(
    project: pytest.Pytester,
) -> None:
    def script(call: Call) -> str | Answer:
        return walk(call) if call.number < 10 else Answer(status=401)

    with FakeServer(script) as server:
        result = project.runpytest(
            *options(server, "--cheese-concurrency=1", "-k", "east or west")
        )
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        [
            "*could not be run: *authentication: *",
            "This says nothing about the model. *--resume one*",
        ]
    )
    with FakeServer(walk) as server:
        # Recorded calls are not repeated; only the base URL is new.
        result = project.runpytest(
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            "--resume",
            "one",
            "lab",
            "-k",
            "east or west",
        )
        result.assert_outcomes(passed=2)
        assert server.count == 2 * 120 - 10
        project.runpytest(
            *options(server, "-k", "east or west", run="undisturbed")
        ).assert_outcomes(passed=2)
    assert dump(project, "one") == dump(project, "undisturbed")


def _surfaces(project: pytest.Pytester) -> dict[str, str]:
    """Return the text of each written report: Markdown, HTML, JUnit, JSON."""
    with RunLog.open_read_only(project.path / "results/one") as log:
        summary = summarise_subjects(
            log.manifest,
            log.plans(),
            log.trials_by_subject,
            log.calls.by_cell(),
            log.causes(),
        )
        plugins = installed_plugins()
        return {
            name: plugins.report(name, summary, log)
            for name in ("markdown", "html", "json", "text")
        } | {"junit": (project.path / "junit.xml").read_text(encoding="utf-8")}


def _letters(text: str) -> str:
    """Return the letters alone, so that line breaks and escapes make no difference."""
    return re.sub(r"[^a-z]", "", text)


def test_a_server_that_never_answers_in_time_is_an_error_with_its_cause(
    project: pytest.Pytester,
) -> None:
    with FakeServer(Answer(status=503, text="the GPUs are on fire")) as server:
        result = project.runpytest(
            *options(server, "--max-minutes=0.1", "--junitxml=junit.xml", "-k", "east")
        )
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = _surfaces(project) | {"terminal": str(result.stdout)}
    for name, text in said.items():
        assert _letters("overload: ") in _letters(text), name
        assert _letters("no reply came before") in _letters(text), name


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ("I cannot say.", "20 % of all replies without a readable answer"),
        (
            Answer(text="", usage={"prompt_tokens": 9, "completion_tokens": 3}),
            "20 % of all replies empty",
        ),
        (
            Answer(text="LEARNINGS: I wonder", finish="length"),
            "20 % of all replies cut off (raise --reply-tokens, now 256)",
        ),
    ],
)
def test_replies_that_are_no_answer_are_said_beside_the_verdict(
    project: pytest.Pytester, odd: str | Answer, said: str
) -> None:
    def script(call: Call) -> str | Answer:
        return odd if call.number % 5 == 2 else walk(call)

    with FakeServer(script) as server:
        result = project.runpytest(
            *options(
                server, "--junitxml=junit.xml", "-k", "east", "--cheese-concurrency=1"
            )
        )
    for name, text in (_surfaces(project) | {"terminal": str(result.stdout)}).items():
        assert _letters(said) in _letters(text), name


def test_where_a_run_is_only_mentioned_its_doubts_are_too(
    project: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Outputs other than reports: a comment, an annotation, lists of runs, comparisons,
    the live page.
    """
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.chdir(project.path)

    def script(call: Call) -> str | Answer:
        return "I cannot say." if call.number % 5 == 2 else walk(call)

    def run(name: str, script: Callable[[Call], str | Answer]) -> str:
        with FakeServer(script) as server:
            result = project.runpytest(
                *options(server, "-k", "east", "--cheese-concurrency=1", run=name)
            )
        capsys.readouterr()
        return next((line for line in result.outlines if line.startswith("::")), "")

    def printed(*words: str) -> str:
        main(list(words))
        return capsys.readouterr().out

    annotation, none = run("one", script), run("sound", walk)
    assert annotation.startswith("::warning ")
    said = "20 % of all replies without a readable answer"
    state = to_json(RunWatch(project.path / "results/one").poll())
    printed("bless", "one", "base")
    surfaces = {
        "annotation": annotation.replace("%25", "%"),
        "comment": (project.path / "results/one/comment.md").read_text(
            encoding="utf-8"
        ),
        "view": state["cells"][0]["reason"],
        "compare": printed("compare", "sound", "one"),
        "compare --json": printed("compare", "one", "sound", "--json"),
        "compare with a baseline": printed("compare", "sound", "base"),
    }
    for name, text in surfaces.items():
        # A comparison has only the replies in trials that count.
        of = "of replies" if name.startswith("compare") else "of all replies"
        assert _letters(said.replace("of all replies", of)) in _letters(text), name
    assert "1 PASS (1 doubtful)" in " ".join(printed("runs").split())
    assert {
        one["run"]: one["doubtful"] for one in json.loads(printed("runs", "--json"))
    } == {"one": 1, "sound": 0}
    assert none == ""
    assert "oubtful" not in (project.path / "results/sound/comment.md").read_text(
        encoding="utf-8"
    )


RARE = {
    7: (Answer(text="I cannot say."), "of all replies without a readable answer"),
    17: (
        Answer(text="ACTIONS: FORWARD, FORWARD", finish="length"),
        "of all replies cut off",
    ),
    27: (
        Answer(body={"choices": [{"message": {"content": 5}}]}),
        "of answers malformed",
    ),
}


@pytest.mark.parametrize("kinds", [(7,), (17,), (27,), (7, 17, 27)])
def test_kinds_of_no_answer_that_are_rare_each_count_together(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kinds: tuple[int, ...]
) -> None:
    monkeypatch.setattr("cheesebench.experiment.calling.FIRST_PAUSE", 0.01)

    def script(call: Call) -> str | Answer:
        return RARE[call.number % 40][0] if call.number % 40 in kinds else walk(call)

    with FakeServer(script) as server:
        result = project.runpytest(
            *options(
                server, "--junitxml=junit.xml", "-k", "east", "--cheese-concurrency=1"
            )
        )
    for name, text in (_surfaces(project) | {"terminal": str(result.stdout)}).items():
        for kind, (_, said) in RARE.items():
            told = len(kinds) > 1 and kind in kinds
            assert (_letters(said) in _letters(text)) == told, (name, said)


def test_the_header_shows_a_name_as_text(project: pytest.Pytester) -> None:
    with FakeServer(walk) as server:
        result = project.runpytest(
            "--model",
            "openai/\x1b[31mred",
            "--base-url",
            server.base_url,
            "lab",
            "-k",
            "east",
        )
    result.stdout.fnmatch_lines(["cheesebench: openai/*red; view *"])
    assert "\x1b" not in str(result.stdout)


HOSTILE = "openai/::error \u202e\x1b[31m @root https://x.example ##[error]y"


def test_hostile_text_is_text_on_every_surface(
    project: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def script(call: Call) -> str:
        return f"::set-output name=a::b\n{walk(call)} \x1b]0;title\x07"

    with FakeServer(script) as server:
        given = (
            "--model",
            HOSTILE,
            "--base-url",
            server.base_url,
            "--cheese-run-id",
            "one",
            "--max-tokens=900",
        )
        result = project.runpytest(
            *given, "--junitxml=junit.xml", "lab", "-k", "east", "-v", "-rA"
        )
    said = _surfaces(project) | {"terminal": str(result.stdout)}
    monkeypatch.chdir(project.path)
    for arguments in (
        ["show", "one"],
        ["show", "one", "--call", "1"],
        ["report", "one"],
    ):
        assert main(arguments) == 0
        said[" ".join(arguments)] = capsys.readouterr().out
    for name, text in said.items():
        odd = re.search(".{0,80}[\x1b\x07\u202e].{0,80}", text)
        assert odd is None, (name, odd)
        assert name in ("html", "json") or not re.search(r"(?m)^\s*::|##\[", text), name
        assert name not in ("markdown", "report one") or not re.search(
            "@root|https://x", text
        ), name
    # Pasted into a shell, the continuation command still means that model.
    line = next(
        line for line in result.outlines if line.startswith("  pytest --model ")
    )
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {line}"], capture_output=True, check=True
    ).stdout.decode()
    assert HOSTILE in words.splitlines()


def test_an_error_of_ours_obeys_nobody(project: pytest.Pytester) -> None:
    result = project.runpytest("--study", "\x1b[31mX", "--model", "walker")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: There is no study '?x1b[[]31mX'*"])
    assert "\x1b" not in str(result.stderr)


def test_a_run_is_replayed_by_name(project: pytest.Pytester) -> None:
    with FakeServer(walk) as server:
        project.runpytest(*options(server, "--history=2", "-k", "east"))
        paid = server.count
        result = project.runpytest(
            "--model", "replay:one", "--cheese-run-id", "two", "lab", "-k", "east"
        )
        result.assert_outcomes(passed=1)
        assert server.count == paid
    assert dump(project, "one") == dump(project, "two")
    assert calls(project, "two") == 0
    result = project.runpytest("--model", "replay:one", "--actions=3", "lab")
    result.stderr.fnmatch_lines(
        [
            "ERROR: --model replay:one: that run was made without --actions. Remove --actions,*"
        ]
    )
    result = project.runpytest("--model", "replay:one", "--history=3", "lab")
    result.stderr.fnmatch_lines(
        ["ERROR: --model replay:one: that run was made with --history 2, not 3.*"]
    )


def test_the_run_of_a_stranger_that_no_run_writes_is_one_line(
    project: pytest.Pytester,
) -> None:
    with FakeServer(walk) as server:
        project.runpytest(*options(server, "-k", "east"))
    with (
        contextlib.closing(
            sqlite3.connect(project.path / "results" / "one" / "run.sqlite")
        ) as log,
        log,
    ):
        log.execute(
            "UPDATE manifest SET value = json_set(value, '$.model', 7) WHERE key = 'options'"
        )
    result = project.runpytest_subprocess("--model", "replay:one", "lab")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "The log was changed, or CheeseBench has a bug" in str(result.stderr)
    assert "Traceback" not in f"{result.stdout}{result.stderr}"


@pytest.fixture
def finished(project: pytest.Pytester) -> Iterator[tuple[FakeServer, tuple[str, ...]]]:
    """The server of a run that ended early, and the arguments that resume the run
    without the server's address.
    """
    with FakeServer(
        lambda call: walk(call) if call.number < 5 else Answer(status=401)
    ) as first:
        project.runpytest(*options(first, "-k", "east"))
    with FakeServer(walk) as server:
        yield server, ("--model", "openai/tiny", "--resume", "one", "lab", "-k", "east")


def _set_option(project: pytest.Pytester, **changes: object) -> None:
    with rewritten(project.path / "results/one/run.sqlite") as log:
        (recorded,) = log.execute(
            "SELECT value FROM manifest WHERE key = 'options'"
        ).fetchone()
        changed = json.dumps(json.loads(recorded) | changes)
        log.execute("UPDATE manifest SET value = ? WHERE key = 'options'", (changed,))


GUARDED = [
    "prompt",
    "study",
    *(
        option.key
        for option in OPTIONS
        if option.trusted_only and option.key != "model"
    ),
]


@pytest.mark.parametrize("key", GUARDED)
def test_a_changed_manifest_sends_no_key_and_starts_nothing(
    project: pytest.Pytester, finished: tuple[FakeServer, tuple[str, ...]], key: str
) -> None:
    server, resume = finished
    hostile: dict[str, object] = {
        "prompt": "mine.txt",
        "study": "mine.study.yaml",
        "base_url": server.base_url,
        "backend_option": [f"base_url={server.base_url}", "api_key_env=SECRET"],
    }
    typed = {
        "base_url": server.base_url,
        "backend_option": f"base_url={server.base_url}",
    }
    _set_option(project, **{"base_url": None, key: hostile[key]})
    result = project.runpytest(*resume)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    refusal = f"ERROR: --resume one: that run was not made by you on this machine, so --{BY_KEY[key].name} *"
    result.stderr.fnmatch_lines([refusal])
    assert server.count == 0
    if key in typed:
        project.runpytest(*resume, BY_KEY[key].long, typed[key])
        assert server.count > 0, "what is typed is meant"


def test_a_replay_reads_no_file_that_a_stranger_s_run_names(
    project: pytest.Pytester,
) -> None:
    (project.path / "mine.study.yaml").write_text("secret", encoding="utf-8")
    with FakeServer(walk) as server:
        project.runpytest(*options(server, "-k", "east"))
    _set_option(project, study="mine.study.yaml", prompt="mine.study.yaml")
    replay = ("--model", "replay:one", "lab", "-k", "east")
    result = project.runpytest(*replay)
    result.stderr.fnmatch_lines(
        [
            "ERROR: --model replay:one: that run was not made by you on this machine, so --study mine.study.yaml is not used.*"
        ]
    )
    _set_option(project, study=None)  # A replay reads no prompt.
    project.runpytest(*replay).assert_outcomes(passed=1)


def test_a_run_made_elsewhere_says_where_nothing_is(
    project: pytest.Pytester,
    finished: tuple[FakeServer, tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, resume = finished
    monkeypatch.setenv("XDG_STATE_HOME", str(project.path / "another user"))
    result = project.runpytest(*resume)
    result.stderr.fnmatch_lines(
        ["ERROR: --resume one: that run was not made by you on this machine, so *"]
    )
    assert not (project.path / "another user").exists(), "looking makes no key"


def test_without_a_home_to_write_to_it_is_typed_again(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(project.path / "file"))
    with FakeServer(walk) as server:
        project.runpytest(*options(server, "-k", "east")).assert_outcomes(passed=1)
        result = project.runpytest(
            "--model", "openai/tiny", "--resume", "one", "lab", "-k", "east"
        )
        result.stderr.fnmatch_lines(
            ["ERROR: --resume one: that run was not made by you on this machine, so *"]
        )
        again = (
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            "--resume",
            "one",
            "lab",
            "-k",
            "east",
        )
        project.runpytest(*again).assert_outcomes(passed=1)


def test_a_replay_vouches_for_nothing(project: pytest.Pytester) -> None:
    with FakeServer(walk) as server:
        project.runpytest(*options(server, "-k", "east"))
        project.runpytest(
            "--model", "replay:one", "--cheese-run-id", "two", "lab", "-k", "east"
        )
        for run, here in (("one", True), ("two", False)):
            with RunLog.open_read_only(project.path / "results" / run) as log:
                assert made_here(log.manifest) is here


def test_a_budget_that_is_spent_at_once_breaks_nothing(
    project: pytest.Pytester,
) -> None:
    with FakeServer("ACTIONS: STAY") as server:  # after one call no trial is finished
        result = project.runpytest(
            *options(
                server, "--max-tokens=1", "--cheese-concurrency=1", "-k", "east or west"
            )
        )
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes()["inconclusive"] == 2
    said = " ".join(" ".join(result.outlines).split())
    needed = re.search(
        r"([\d,]+) tokens spent so far, at most about ([\d,]+) tokens more needed\.",
        said,
    )
    assert needed is not None, said
    spent, more = (int(found.replace(",", "")) for found in needed.groups())
    assert more > spent, "each trial takes a call at least"
    assert int(re.findall(r"--max-tokens=(\d+)", said)[0]) >= more
    result.stdout.fnmatch_lines(["*To continue, with a larger budget:"])


@pytest.mark.parametrize("budget", [2_000, 6_000, 20_000])
def test_the_budget_that_is_printed_is_enough(
    project: pytest.Pytester, budget: int
) -> None:
    """Prompts grow with the answers that they have, so later trials cost more."""

    def wordy(call: Call) -> str:
        return f"{walk(call)}\nLEARNINGS: {'The food is in the east. ' * 8}"

    with FakeServer(wordy) as server:
        given = options(server, f"--max-tokens={budget}", "-k", "east")
        result = project.runpytest(*given)
        said = " ".join(" ".join(result.outlines).split())
        assert re.search(
            r" tokens spent so far, at most about [\d,]+ tokens more needed\. 1 of 1 protocol",
            said,
        )
        printed = str(result.stdout).partition("with a larger budget:\n  pytest ")[2]
        words = shlex.split(printed.splitlines()[0])
        again = [word for word in words if not word.startswith("--basetemp")]
        project.runpytest(*again).assert_outcomes(passed=1)
        with RunLog.open_read_only(project.path / "results/one") as log:
            spent = log.calls.totals()
    enough = int(
        next(
            re.findall(r"--max-tokens=(\d+)", word)[0]
            for word in again
            if word.startswith("--max-tokens=")
        )
    )
    assert spent.prompt + spent.completion < enough
    assert enough < 4 * (spent.prompt + spent.completion), "and not far too large"


def test_silence_is_told(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cheesebench.model_run.SILENT_SECONDS", 0.5)

    def script(call: Call) -> str | Answer:
        return Answer(text=walk(call), delay=2.0 if call.number == 5 else 0.0)

    with FakeServer(script) as server:
        result = project.runpytest(
            *options(server, "-k", "few", "--cheese-concurrency=1")
        )
    told = [
        line
        for line in result.outlines
        if line.startswith("cheesebench: no reply from 'openai/tiny' for ")
    ]
    assert len(told) == 1


def test_silence_is_told_by_workers(project: pytest.Pytester) -> None:
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nimport cheesebench.model_run\ncheesebench.model_run.SILENT_SECONDS = 0.5\n"
        )

    def script(call: Call) -> str | Answer:
        return Answer(text=walk(call), delay=2.0 if call.number == 5 else 0.0)

    with FakeServer(script) as server:
        result = project.runpytest_subprocess(
            *options(server, "-k", "few", "--cheese-concurrency=1", "-n", "1")
        )
    assert result.parseoutcomes() == {"inconclusive": 1}
    said = [
        line
        for line in result.errlines
        if line.startswith("cheesebench: no reply from 'openai/tiny' for ")
    ]
    assert len(said) == 1


def test_a_spent_budget_is_inconclusive(project: pytest.Pytester) -> None:
    with FakeServer(walk) as server:
        result = project.runpytest(
            *options(server, "--max-tokens=2000", "-rs", "-k", "east")
        )
        assert server.count < 10
    assert result.parseoutcomes()["inconclusive"] == 1
    result.stdout.fnmatch_lines(
        ["1 of 1 protocol is unfinished; finished trials are kept*"]
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_cut_off_is_continued(
    project: pytest.Pytester, number: signal.Signals
) -> None:
    held = False

    def script(call: Call) -> str | Answer:
        return Answer(fault="hang") if held and call.number >= 15 else walk(call)

    with FakeServer(script) as server:
        project.runpytest(*options(server, run="undisturbed"))
    held = True
    with FakeServer(script) as server:
        command = [sys.executable, "-m", "pytest", *options(server), "--seed=0"]
        environment = dict(os.environ, COLUMNS="100")
        with subprocess.Popen(
            command,
            cwd=project.path,
            stdout=subprocess.PIPE,
            env=environment,
            preexec_fn=reset_signals,
        ) as process:
            while _recorded(project) < 15 and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(number)
            output, _ = process.communicate()
        assert number == signal.SIGKILL or b"--resume one" in output
        assert calls(project, "one") == 15
        held = False
        again = (
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            "--resume",
            "one",
            "lab",
        )
        before = server.count
        project.runpytest(*again).assert_outcomes(passed=2)
        assert server.count - before == CALLS - 15
    assert dump(project, "one") == dump(project, "undisturbed")


def test_a_run_that_is_running_is_not_resumed_beside_itself(
    project: pytest.Pytester,
) -> None:
    with FakeServer(walk) as server:
        project.runpytest(*options(server)).assert_outcomes(passed=2)
        lock = claim(project.path / "results" / "one" / "run.sqlite")
        result = project.runpytest("--model", "openai/tiny", "--resume", "one", "lab")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["ERROR: Another process is running 'one'. *"])
        lock.close()
        project.runpytest(
            "--model", "openai/tiny", "--resume", "one", "lab"
        ).assert_outcomes(passed=2)


def _recorded(project: pytest.Pytester) -> int:
    try:
        return calls(project, "one")
    except RunLogError:  # the log is just being made
        return 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--model", "openai/tiny", "--agent", "lm"], "There is no agent 'lm'.*"),
        (
            ["--model", "walker", "--history", "3"],
            "--history applies only to language models, not to walker. *",
        ),
        (["--model", "openai/tiny", "--actions", "0"], "*actions*0*"),
        (["--model", "openai/tiny", "--prompt", "cots"], "*cots*Did you mean 'cot'?*"),
        (
            ["--model", "openai/tiny", "--prompt", "cots.txt"],
            "*--prompt cots.txt cannot be read: No such file*",
        ),
        (
            [
                "--model",
                "openai/tiny",
                "--cheese-agent-option",
                "prompt=Act. It is $5. $action_form",
            ],
            "The prompt has '$action_form', *Did you mean 'actions_form'?*Write $$ for*",
        ),
        (
            ["--model", "openai/tiny", "--max-cost", "0"],
            "--max-cost 0: give a number above 0.",
        ),
        (
            ["--model", "openai/tiny", "--max-cost", "inf"],
            "--max-cost inf: give a finite number above 0.",
        ),
        (
            ["--model", "openai/tiny", "--cheese-timeout", "nan"],
            "--cheese-timeout nan: give a number above 0.",
        ),
        (
            ["--model", "openai/tiny", "--max-cost", "5"],
            "--max-cost 5: no price is known for 'openai/tiny', *",
        ),
        (
            ["--model", "openai/tiny", "--base-url", "http://x/v1?api_key=abc"],
            "The base URL has a user, a query or a fragment *",
        ),
        (
            ["--model", "openai/tiny", "--base-url", "http://a..b/v1"],
            "The base URL 'http://a..b/v1' is not valid. *",
        ),
        (
            ["--model", "openai/sk-proj-0123456789abcdefgh"],
            "--model contains a key, and would be recorded. *",
        ),
        (
            ["--model", "openai/tiny", "--prompt", "/dev/null"],
            "--prompt /dev/null cannot be read: *",
        ),
        (
            ["--model", "openai/tiny", "--cheese-agent-option", "x"],
            "*x: expected NAME=VALUE*",
        ),
        (
            ["--model", "openai/tiny", "--cheese-agent-option", "unparsd=noop"],
            "*Did you mean 'unparsed'?*",
        ),
        (
            ["--model", "openai/tiny", "--cheese-backend-option", "gpus=1"],
            "The backend 'openai' has no option 'gpus'.*",
        ),
        (
            ["--model", "llama-3.1-8b", "--view", "topdown_2d"],
            "--view topdown_2d draws images, but the model *",
        ),
        (
            ["--model", "walker", "--view", "topdown_2d"],
            "--view topdown_2d draws images, but the agent 'walker'*",
        ),
        (["--model", "scripted:nothing.yaml"], "*nothing.yaml*"),
        (["--model", "replay:nothing"], "There is no run 'nothing' in *"),
        (
            ["--model", "replay:a", "--model", "walker"],
            "*give 'replay:RUN' alone, with one run.",
        ),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    project: pytest.Pytester, given: list[str], said: str
) -> None:
    with FakeServer(walk) as server:
        result = project.runpytest("--base-url", server.base_url, *given, "lab")
        assert server.count == 0
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


def test_a_picture_for_a_model_that_reads_none_is_one_error(
    project: pytest.Pytester,
) -> None:
    refusal = Answer(
        status=500,
        error={"message": "image input is not supported - hint: provide the mmproj"},
    )
    with FakeServer(
        lambda call: refusal if "image_url" in str(call.body) else walk(call)
    ) as server:
        result = project.runpytest(*options(server, "--view", "topdown_2d"))
        assert server.count == 1
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: The model 'openai/tiny' does not answer: bad request: *image input is not*"
        ]
    )


def test_a_context_that_is_too_short_is_said_in_one_line_before_the_run(
    project: pytest.Pytester,
) -> None:
    facts = {
        "/props": {"total_slots": 1, "default_generation_settings": {"n_ctx": 700}}
    }
    with FakeServer(walk, facts=facts) as server:
        result = project.runpytest(*options(server, "--design", "smoke"))
    lines = [
        line
        for line in [*result.outlines, *result.errlines]
        if "WARNING" in line and "700 tokens" in line
    ]
    assert len(lines) == 1, result.outlines
    assert "The longest prompt of " in lines[0]
