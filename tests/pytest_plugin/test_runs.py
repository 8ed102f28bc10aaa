"""Runs that are interrupted, killed, resumed, or spread over processes: nothing
finished is lost.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cheesebench.cli import main
from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from tests.pytest_plugin.conftest import AGENTS
from tests.signals import reset_signals


def dump(project: pytest.Pytester, run: str) -> list[str]:
    with RunLog.open_read_only(project.path / "results" / run) as log:
        return list(log.dump())


def finished_trials(directory: Path) -> int:
    try:
        with RunLog.open_read_only(directory) as log:
            return len(log.trials())
    except RunLogError:  # the log does not exist yet, or is just being made
        return 0


@contextmanager
def dawdling(
    project: pytest.Pytester, *options: str, output: int
) -> Iterator[subprocess.Popen[bytes]]:
    """A run in its own process, stuck in its third trial."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        *options,
        "--seed=0",
        *(() if "--resume=one" in options else ("--cheese-run-id=one",)),
    ]
    environment = dict(os.environ, DAWDLE="1", COLUMNS="100", TERM="xterm")
    with subprocess.Popen(
        command,
        cwd=project.path,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        preexec_fn=reset_signals,
    ) as process:
        try:
            while (
                finished_trials(project.path / "results" / "one") < 2
                and process.poll() is None
            ):
                time.sleep(0.05)
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_is_resumed(
    project: pytest.Pytester, number: signal.Signals
) -> None:
    command = ("--model", "dawdler", "--cheese-processes=1", "lab", "-k", "east")
    with dawdling(project, *command, output=subprocess.PIPE) as process:
        process.send_signal(number)
        output, _ = process.communicate()
    assert b"/120 trials" not in output, "progress is for terminals only"
    if number != signal.SIGKILL:
        assert process.returncode == pytest.ExitCode.INTERRUPTED
        assert (
            b"pytest --model dawdler --cheese-processes=1 lab -k east --seed=0 --resume one"
            in output
        )
    assert len(dump(project, "one")) == 2

    resumed = project.runpytest(*command, "--resume", "one")
    resumed.assert_outcomes(passed=1, deselected=2)
    resumed.stdout.fnmatch_lines(["Run: results/one"])
    project.runpytest(*command, "--cheese-run-id", "two").assert_outcomes(
        passed=1, deselected=2
    )
    assert dump(project, "one") == dump(project, "two")


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
def test_a_killed_session_leaves_no_verdict_of_an_earlier_one(
    project: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    command = ("--model", "dawdler", "--cheese-processes=1", "lab", "-k", "east")
    directory = project.path / "results" / "one"
    told = "**CheeseBench has no result yet:** the session that began 20"
    with dawdling(project, *command, *workers, output=subprocess.PIPE) as process:
        process.kill()
        process.communicate()
    comment = directory / "comment.md"
    assert comment.read_text("utf-8").startswith(f"<!-- cheesebench -->\n{told}")
    for path in (comment, directory / "report.md"):
        path.write_text("<!-- cheesebench -->\nThe gate is green.", encoding="utf-8")
    with dawdling(
        project, *command, *workers, "--resume=one", output=subprocess.PIPE
    ) as process:
        while told not in comment.read_text("utf-8") and process.poll() is None:
            time.sleep(0.05)
        process.kill()
        process.communicate()
    for path in (comment, directory / "report.md"):
        text = path.read_text(encoding="utf-8")
        assert told in text
        assert "a job that is run again does that by itself" in text
        assert "green" not in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_every_reader_is_told_of_an_interruption(
    project: pytest.Pytester, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("--model=dawdler", "--processes=1", "--subjects=12", "lab", "-k", "east")
    assert project.runpytest(*run, "--seed=0", "--run-id=old").ret == 0
    assert main(["bless", "old", "main"]) == 0
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    gate = ("--compare=main", "--compare-fail=worse,undecided", "--junitxml=junit.xml")
    command = (*run, *gate, "--cheese-html=page.html")
    with dawdling(project, *command, output=subprocess.PIPE) as process:
        process.send_signal(number)
        output, _ = process.communicate()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    decision = (
        f"Exit code 2, interrupted by {number.name}: 1 of 1 protocol is unfinished."
    )
    typed = "Run the job again: that continues the run ({}--resume one{})."
    remedy = typed.format("", "")
    lines = output.decode().splitlines()
    annotations = [line for line in lines if line.startswith("::error")]
    assert annotations == [f"::error title=cheesebench::{decision} {remedy}"]
    assert f"{decision} {remedy}" in " ".join(" ".join(lines).split())
    assert f" Interrupted: {number.name} " in lines[-2]
    assert not [line for line in lines if "KeyboardInterrupt" in line]
    directory = project.path / "results" / "one"
    for path in (
        directory / "comment.md",
        directory / "report.md",
        project.path / "summary.md",
    ):
        text = path.read_text(encoding="utf-8")
        told = re.sub(r"<!--.*?-->\n|\\", "", text).split("\n\n")[1]
        assert told == f"**{decision}** {typed.format('`', '`')}", path
    page = (project.path / "page.html").read_text(encoding="utf-8")
    assert '<p class="gate-says error">INTERRUPTED</p>' in page
    assert f"<strong>{decision}</strong> {typed.format('<code>', '</code>')}" in page
    suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    [case] = [one for one in suite.iter("testcase") if len(one)]
    assert case.get("name") == "interrupted: dawdler on east"
    assert case[0].text == f"{decision} {remedy}"
    found = {one.get("name"): one.get("value") for one in suite[0].iter("property")}
    assert found["cheesebench.exit"] == decision
    assert found["cheesebench.remedy"] == remedy
    # Where nothing was run, there is no report to say so.
    (project.path / "summary.md").unlink()
    project.makeconftest(
        AGENTS
        + """
import signal

def pytest_collection_modifyitems():
    os.kill(os.getpid(), signal.SIGTERM)
"""
    )
    again = project.runpytest_subprocess(*command, "--resume=one")
    why = "Exit code 2, interrupted by SIGTERM before the run began"
    assert again.ret == pytest.ExitCode.INTERRUPTED
    again.stdout.fnmatch_lines([f"::error title=cheesebench::{why}, so nothing *"])
    for path in (directory / "comment.md", project.path / "summary.md"):
        assert f"**{why}" in path.read_text(encoding="utf-8")
    suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
    assert (suite.findtext("testcase/error") or "").startswith(why)


@pytest.mark.skipif(
    not hasattr(os, "openpty"), reason="there are no pseudo-terminals here"
)
def test_a_terminal_shows_live_progress(project: pytest.Pytester) -> None:
    ours, theirs = os.openpty()
    with dawdling(
        project,
        "--model",
        "dawdler",
        "--cheese-processes=1",
        "lab/east.protocol.yaml",
        output=theirs,
    ):
        os.close(theirs)  # so that reading ends if the process ends
        seen = b""
        while b" 2/120 trials, " not in seen:
            seen += os.read(ours, 4096)
    os.close(ours)
    assert b"east.protocol.yaml" in seen


def test_a_run_with_a_long_seed_is_resumed(project: pytest.Pytester) -> None:
    """Seeds that were drawn had up to 39 digits, and a typed one has any length."""
    for digits in (39, 60):
        seed, run = "8" * digits, f"of{digits}"
        given = ("--model", "walker", "lab", "-k", "east")
        project.runpytest(*given, "--seed", seed, "--cheese-run-id", run)
        result = project.runpytest(*given, "--resume", run)
        result.assert_outcomes(passed=1, deselected=2)
        assert seed in re.sub(r"\s", "", result.stdout.str())
        with RunLog.open_read_only(project.path / "results" / run) as log:
            assert log.manifest["options"]["seed"] == int(seed)


def test_a_resumed_run_cannot_become_another(project: pytest.Pytester) -> None:
    project.runpytest(
        "--model", "walker", "--seed", "3", "lab", "--cheese-run-id", "one"
    )

    def told(*options: str) -> str:
        result = project.runpytest("--resume", "one", *options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "Traceback" not in str(result.stderr)
        assert "Run: results/one" not in str(result.stdout), (
            "what was refused reports nothing"
        )
        return str(result.stderr)

    assert "made with --seed 3, not 4" in told(
        "--model", "walker", "--seed", "4", "lab"
    )
    assert "made with --model walker, not statue" in told("--model", "statue", "lab")
    assert "made with --design cohort, not smoke" in told(
        "--model", "walker", "--design", "smoke", "lab"
    )
    assert "made with --subjects 6, not 2" in told(
        "--model", "walker", "--subjects", "2", "lab"
    )
    assert "cannot be combined" in told(
        "--model", "walker", "--cheese-run-id", "two", "lab"
    )
    east = project.path / "lab" / "east.protocol.yaml"
    east.write_text(
        east.read_text(encoding="utf-8").replace("limit: 5", "limit: 6"),
        encoding="utf-8",
    )
    assert "the protocol 'east' has changed" in told("--model", "walker", "lab")
    same = project.runpytest(
        "--model", "walker", "--seed", "3", "lab", "-k", "west", "--resume", "one"
    )
    assert same.ret == pytest.ExitCode.OK


def test_an_existing_run_is_never_overwritten(project: pytest.Pytester) -> None:
    project.runpytest("--model", "walker", "lab", "--cheese-run-id", "one")
    before = dump(project, "one")
    result = project.runpytest("--model", "statue", "lab", "--cheese-run-id", "one")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: Run 'one' already exists in *continue it with --resume one*"]
    )
    assert dump(project, "one") == before


def test_two_workers_give_the_same_records_and_verdicts(
    project: pytest.Pytester,
) -> None:
    project.makeini("[pytest]\n")
    alone = project.runpytest(
        "--model", "walker,random", "lab", "--cheese-run-id", "alone"
    )
    options = (
        "--model",
        "walker,random",
        "lab",
        "-n",
        "2",
        "--junitxml=junit.xml",
        "--cheese-run-id",
        "spread",
    )
    spread = project.runpytest_inprocess(*options)
    assert spread.ret == alone.ret
    assert spread.parseoutcomes() == alone.parseoutcomes()
    spread.stdout.fnmatch_lines(
        ["*= cheesebench =*", "walker in ascii_2d (*", "random in ascii_2d (*"]
    )
    assert sorted(dump(project, "spread")) == sorted(dump(project, "alone"))
    junit = (project.path / "junit.xml").read_text(encoding="utf-8")
    assert '<property name="cheesebench.run_id" value="spread"' in junit
    assert junit.count('<property name="cheesebench.rate"') == 6


def test_workers_resume_and_refuse_as_one_process_does(
    project: pytest.Pytester,
) -> None:
    project.runpytest("--model", "walker", "lab", "--cheese-run-id", "one")
    existing = project.runpytest_inprocess(
        "--model", "walker", "lab", "-n", "1", "--cheese-run-id", "one"
    )
    assert existing.ret == pytest.ExitCode.USAGE_ERROR
    existing.stderr.fnmatch_lines(["ERROR: Run 'one' already exists in *"])
    east = project.path / "lab" / "east.protocol.yaml"
    east.write_text(
        east.read_text(encoding="utf-8").replace("limit: 5", "limit: 6"),
        encoding="utf-8",
    )
    changed = project.runpytest_inprocess(
        "--model", "walker", "lab", "-n", "1", "--resume", "one"
    )
    assert changed.ret == pytest.ExitCode.TESTS_FAILED
    changed.stdout.fnmatch_lines(
        ["*Run 'one' cannot be continued: the protocol 'east' has changed*"]
    )
    assert "INTERNALERROR" not in str(changed.stdout)


def test_what_is_decided_first_ends_a_session_that_stops_at_a_failure(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAWDLE", "1")  # the first test would wait for ever
    result = project.runpytest(
        "--model",
        "dawdler,statue",
        "-x",
        "-k",
        "west",
        "--cheese-processes=12",
        "lab",
        "-v",
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1, deselected=4)
    result.stdout.fnmatch_lines(
        ["*west[[]ascii_2d-statue[]] FAIL*", "1 of 2 cells is unfinished*"]
    )
