"""Runs that are killed at random moments, again and again: nothing received is lost or
paid twice.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.signals import reset_signals

#: Maximum number of calls in flight.
CONCURRENCY = 4
#: Number of calls: six subjects of conftest.py on one protocol of twenty trials, with
#: one call each.
CALLS = 6 * 20
#: Number of kills of a run, and the seeds of two such stories.
KILLS, SEEDS = 25, (1, 2)
#: Both runs need the same seed, which would otherwise be drawn.
SEEDED = "--cheese-seed=7"
GENTLE = tuple(
    getattr(signal, f"SIG{name}")
    for name in ("INT", "TERM", "HUP", "QUIT", "XCPU", "ALRM", "USR1", "USR2")
)


def walk(call: Call) -> str:
    """Walk straight on. The seed decides who waits, because equal subjects would be
    copies.
    """
    wait = "STAY, " if call.body.get("seed", 0) % 2 else ""
    return f"LEARNINGS: the way out is ahead\nACTIONS: {wait}FORWARD, FORWARD"


def command(server: FakeServer, *others: str) -> list[str]:
    return [
        *(
            sys.executable,
            "-m",
            "pytest",
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            *others,
        ),
        *("--cheese-concurrency", str(CONCURRENCY), "lab/east.protocol.yaml"),
    ]


def started(project: pytest.Pytester, words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words,
        cwd=project.path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(os.environ, COLUMNS="100"),
        preexec_fn=reset_signals,
    )


def recorded(directory: Path) -> dict[tuple[int, int, int], str]:
    """Return the replies in the log, by subject, trial and call; nothing if there is no
    log yet.
    """
    try:
        with RunLog.open_read_only(directory) as log:
            (plan,) = log.plans()
            found = [
                (subject, one)
                for subject in range(plan.subjects)
                for one in log.calls.of_life(plan, subject)
            ]
            return {
                (subject, one.trial, one.call): f"{one.digest} {one.reply}"
                for subject, one in found
            }
    except (RunLogError, ValueError):
        return {}


def dump(directory: Path) -> list[str]:
    with RunLog.open_read_only(directory) as log:
        return list(log.dump())


def until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not holds() and process.poll() is None:
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_ended_again_and_again(
    project: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    chance, results = random.Random(seed), project.path / "results"
    with FakeServer(walk, latency=0.05) as server:
        subprocess.run(
            command(server, "--cheese-run-id=whole", SEEDED),
            cwd=project.path,
            check=True,
            capture_output=True,
        )
        assert len(recorded(results / "whole")) == CALLS
        known: dict[tuple[int, int, int], str] = {}
        first, hard = server.count, 0
        options = ["--cheese-run-id=one", SEEDED]
        for kill in range(KILLS):
            process = started(project, command(server, *options))
            # Kill while it starts, while it asks (after a share of the remaining calls,
            # so that some are left), or in between.
            more = chance.randrange(1 + (CALLS - len(known)) // (KILLS - kill))
            before = server.count
            if chance.random() < 0.2:
                time.sleep(chance.random())
            else:
                until(lambda: server.count > before + more, process)  # noqa: B023 - called here
                time.sleep(0.1 * chance.random())
            number = chance.choice((*GENTLE, *(signal.SIGKILL,) * len(GENTLE)))
            process.send_signal(number)
            output, _ = process.communicate()
            hard += number not in GENTLE
            now = recorded(results / "one")
            assert known.items() <= now.items(), "what was recorded stays as it was"
            if (
                number in GENTLE
                and now
                and process.returncode == pytest.ExitCode.INTERRUPTED
            ):
                assert b"--resume one" in output, output
            # Before there is a session, Python itself reports the interruption.
            assert (
                b"Traceback" not in output.partition(b"cheesebench: openai/tiny")[2]
            ), output
            known, options = (
                now,
                (["--resume", "one"] if (results / "one").exists() else options),
            )
        finished = subprocess.run(
            command(server, *options),
            cwd=project.path,
            capture_output=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout
        # The short question at the beginning of a resumed session has no life's seed.
        answers = Counter(
            call.body["seed"]
            for call in list(server.calls)[first:]
            if call.ended and call.body.get("seed")
        )
    assert dump(results / "one") == dump(results / "whole")
    assert recorded(results / "one").keys() == recorded(results / "whole").keys()
    assert len(answers) == CALLS
    # A call may be made twice only if it was in flight when its process was killed
    # outright (SIGKILL).
    assert sum(answers.values()) - CALLS <= hard * CONCURRENCY
    texts = []
    monkeypatch.chdir(project.path)
    for run in ("whole", "one"):
        assert main(["report", run, "--format", "text"]) == 0
        texts.append(capsys.readouterr().out.replace(run, "RUN").splitlines())
    differing = [lines for lines in zip(*texts, strict=True) if lines[0] != lines[1]]
    assert len(differing) <= 1, differing


#: Waits for calls in flight until somebody hurries it, and reports when it begins to.
PATIENT = """
import pathlib, cheesebench.experiment.session as session

session.LANDING_SECONDS = 3600.0
close = session.RunSession.close

def closing(self):
    pathlib.Path("closing").touch()
    close(self)

session.RunSession.close = closing
"""


def test_a_second_interrupt_waits_for_nothing(project: pytest.Pytester) -> None:
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(PATIENT)
    with FakeServer(
        lambda call: Answer(fault="hang") if call.number >= 15 else walk(call)
    ) as server:
        process = started(project, command(server, "--cheese-run-id=one"))
        until(lambda: len(recorded(project.path / "results/one")) >= 15, process)
        process.send_signal(signal.SIGINT)
        until(lambda: (project.path / "closing").exists(), process)
        time.sleep(1.0)
        assert process.poll() is None, "it waits for what is on its way"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert b"--resume one" in output
    assert b"Traceback" not in output
    with FakeServer(walk) as server:
        before = len(recorded(project.path / "results/one"))
        again = started(project, command(server, "--resume", "one"))
        output, _ = again.communicate()
        assert again.returncode == 0, output
        assert before == 15
        assert server.count == CALLS - before


#: Moments at which a conftest.py signals its own process, each with the final message.
MOMENTS = {
    "KILL": "interrupted before the run began; nothing was run",
    "def pytest_configure(): KILL": "interrupted before the run began; nothing was run",
    "def pytest_collection_modifyitems(): KILL": "interrupted before the run began; nothing was run",
    "def pytest_runtest_setup(): KILL": "--resume one",
    "def pytest_keyboard_interrupt(): KILL; KILL\ndef pytest_runtest_setup(): KILL": "--resume one",
    "def pytest_sessionfinish(): KILL": "1 inconclusive in",
}


@pytest.mark.parametrize(
    ("moment", "number"), list(zip(MOMENTS, GENTLE[2:], strict=True))
)
def test_whenever_a_signal_comes_a_line_says_how_to_go_on(
    project: pytest.Pytester, moment: str, number: signal.Signals
) -> None:
    project.makeconftest(
        f"import os\n{moment.replace('KILL', f'os.kill(os.getpid(), {int(number)})')}"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--model",
        "random",
        "--cheese-run-id",
        "one",
        "lab",
        "-k",
        "east",
    ]
    process = subprocess.run(
        command,
        cwd=project.path,
        capture_output=True,
        text=True,
        preexec_fn=reset_signals,
    )
    said = process.stdout + process.stderr
    assert "Traceback" not in said
    assert MOMENTS[moment] in said
