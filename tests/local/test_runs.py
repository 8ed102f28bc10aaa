"""Whole runs with a real model: properties of any model, independent of this one's
replies.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.experiment.log import RunLog

pytestmark = pytest.mark.local
#: Short replies, so that a test takes a minute at most on two cores.
SHORT = ("--design", "smoke", "--subjects", "1", "--reply-tokens", "16")


def command(name: str, *options: str) -> list[str]:
    start = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--model",
        "smollm2-135m",
        *SHORT,
    ]
    return [*start, "--run-id", name, *options]


def run(directory: Path, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(name, *options),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def check_counts(directory: Path, name: str) -> None:
    """Compare the tallies and the totals of a log with its calls, by SQL of our own."""
    path = directory / "results" / name / "run.sqlite"
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as log,
        RunLog.open_read_only(path.parent) as read,
    ):
        made = dict(
            log.execute(
                "SELECT protocol, count(*) FROM calls WHERE fault = '' GROUP BY protocol"
            )
        )
        query = "SELECT protocol, sum(json_extract(tally, '$.calls')) FROM trials GROUP BY protocol"
        counted = dict(log.execute(query))
        cells = {key[1]: cell for key, cell in read.calls.by_cell().items()}
    assert made
    for protocol, calls in made.items():
        assert (
            counted[protocol]
            == calls
            == cells[protocol].totals.calls
            == cells[protocol].counts["calls"]
        )
        assert cells[protocol].counts["unparsed"] <= calls


@pytest.fixture(scope="module")
def nine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("nine")
    done = run(directory, "nine")
    assert "could not be run" not in done.stdout, done.stdout
    return directory


def test_the_nine_paradigms_add_up(nine: Path) -> None:
    check_counts(nine, "nine")
    with RunLog.open_read_only(nine / "results" / "nine") as log:
        assert len({plan.protocol for plan in log.plans()}) == 9
        assert not any(record.missing for record in log.trials())


def test_a_replay_is_the_same(nine: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--model",
            "replay:nine",
            "--run-id",
            "again",
        ],
        cwd=nine,
        capture_output=True,
        text=True,
        check=False,
    )
    with (
        RunLog.open_read_only(nine / "results" / "nine") as log,
        RunLog.open_read_only(nine / "results" / "again") as other,
    ):
        assert log.trials() == other.trials(), done.stdout


def test_it_can_be_reported_and_shown(
    nine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ("--results", str(nine / "results"))
    assert main(["report", "nine", *results, "--html"]) == 0
    assert (nine / "results" / "nine" / "report.html").stat().st_size > 10_000
    assert main(["show", "nine", *results, "--protocol", "t_maze", "--call", "1"]) == 0
    assert "tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ("--view", "ascii_3d"),
        ("--view", "ascii_2d_fpv"),
        ("--prompt", "minimal"),
        ("--prompt", "cot"),
        ("--prompt", "few_shot"),
        ("--temperature", "none"),
    ],
    ids=" ".join,
)
def test_other_settings_run_too(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, "one", "--protocols", "t_maze", *options)
    assert "could not be run" not in done.stdout, done.stdout
    check_counts(tmp_path, "one")


def test_a_run_that_was_interrupted_goes_on_and_two_runs_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--protocols", "t_maze", "--seed", "0")
    path = tmp_path / "results" / "one" / "run.sqlite"
    begun = subprocess.Popen(
        command("one", *chosen),
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    while begun.poll() is None and not _calls(path):
        time.sleep(0.05)
    begun.send_signal(signal.SIGINT)
    begun.wait()
    before = _calls(path)
    assert before  # On a busy machine, it may be all six.
    resumed = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--resume",
        "one",
    ]
    resumed += ["--model", "smollm2-135m", *chosen[:2]]
    done = subprocess.run(
        resumed, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "cannot be continued" not in done.stdout + done.stderr
    check_counts(tmp_path, "one")
    assert _calls(path) == 6
    run(tmp_path, "other", *chosen, "--prompt", "minimal")
    assert main(
        ["compare", "one", "other", "--results", str(tmp_path / "results")]
    ) in (0, 1)
    assert "t_maze" in capsys.readouterr().out


def _calls(path: Path) -> int:
    """Return the present number of calls in a log; 0 before it exists."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as log:
            return int(log.execute("SELECT count(*) FROM calls").fetchone()[0])
    except sqlite3.Error:
        return 0


def test_every_constrained_reply_acts(tmp_path: Path) -> None:
    run(
        tmp_path,
        "tools",
        "--protocols",
        "t_maze",
        "--agent",
        "llm-tools",
        "--reply-tokens",
        "48",
    )
    check_counts(tmp_path, "tools")
    with RunLog.open_read_only(tmp_path / "results" / "tools") as log:
        (cell,) = log.calls.by_cell().values()
    assert cell.counts["calls"]
    assert not cell.counts["unparsed"]


def test_a_dialogue_runs(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "words",
        "--protocols",
        "cogeval",
        "--subjects",
        "1",
        "-k",
        "n7line and 1stepPath",
    )
    with RunLog.open_read_only(tmp_path / "results" / "words") as log:
        assert log.calls.totals().calls, done.stdout
