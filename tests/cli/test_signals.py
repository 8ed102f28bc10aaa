"""Commands that a signal ends: one line, the signal's exit code, and no draft or
process left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.signals import reset_signals

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="sends signals of POSIX"
)
#: All signals that a command handles.
NAMES = ("INT", "TERM", "HUP", "QUIT", "XCPU", "ALRM", "USR1", "USR2")
#: A command that writes for as long as it takes, and is signalled while it imports a
#: module.
WRITES = """
import sys
import time
from pathlib import Path
from cheesebench.interrupts import of_command

with of_command():
    from cheesebench import cli
    from cheesebench.files import draft_directory, written_whole

    def run(arguments):
        with written_whole("old.txt") as file, draft_directory(Path("parts")) as parts:
            (parts / "part.txt").write_text("half")
            file.write("half")
            print("ready", flush=True)
            __import__(arguments[0])
            time.sleep(600)

    cli._run = run
    sys.exit(cli.main(["slow"]))
"""
#: Ends when a file tells it to, because importing a C extension must not be
#: interrupted.
SLOW = """
import time
from pathlib import Path

print("imports", flush=True)
while not Path("go").exists():
    time.sleep(0.01)
"""


#: A command that is signalled while SQLite calls its digest function.
DIGESTS = """
import os
import signal
import sqlite3
import sys
import time
from cheesebench.interrupts import of_command

with of_command():
    from cheesebench import cli
    from cheesebench.experiment import log_file

    def told(digest):
        os.kill(os.getpid(), signal.SIGUSR1)

    def run(arguments):
        connection = sqlite3.connect(":memory:")
        connection.executescript(log_file.SCHEMA)
        log_file.watch(connection, told)
        connection.execute("INSERT INTO manifest VALUES ('one', '1')")
        print("written", flush=True)
        time.sleep(600)

    cli._run = run
    sys.exit(cli.main(["slow"]))
"""


def started(words: Sequence[str], place: Path) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, as a terminal does."""
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(place)),
        preexec_fn=reset_signals,
        process_group=0,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit code, and the output."""
    _, said = process.communicate()
    return process.returncode, said


@pytest.mark.parametrize("name", NAMES)
def test_what_a_command_was_writing_is_as_it_was(tmp_path: Path, name: str) -> None:
    number = getattr(signal, f"SIG{name}")
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "old.txt").write_text("old")
    with started(["-c", WRITES], tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "imports\n"
        process.send_signal(number)
        time.sleep(0.01)
        (tmp_path / "go").touch()
        assert ended(process) == (
            128 + number,
            f"cheesebench: ended by SIG{name}. No file is half-written.\n",
        )
    assert (tmp_path / "old.txt").read_text() == "old"
    assert os.listdir(tmp_path / "parts") == []
    assert not [one for one in os.listdir(tmp_path) if one.endswith(".draft")]


def test_a_signal_waits_until_sqlite_has_written_its_row(tmp_path: Path) -> None:
    with started(["-c", DIGESTS], tmp_path) as process:
        said, error = process.communicate(timeout=300)
    assert (said, error) == (
        "written\n",
        "cheesebench: ended by SIGUSR1. No file is half-written.\n",
    )
    assert process.returncode == 128 + signal.SIGUSR1


@pytest.mark.parametrize("name", ["INT", "HUP"])
def test_a_server_that_is_ended_stops_in_order(tmp_path: Path, name: str) -> None:
    (tmp_path / "results").mkdir()
    with started(["-m", "cheesebench", "view"], tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        assert process.stdout.readline() == "Ctrl-C stops the server.\n"
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert ended(process) == (0, f"cheesebench: ended by SIG{name}.\n")


def descendants(parent: int) -> set[int]:
    """Return the living descendants of a process."""
    found: dict[int, list[int]] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, above = (
                (directory / "stat").read_text().rpartition(")")[2].split()[:2]
            )
            if state != "Z":
                found.setdefault(int(above), []).append(int(directory.name))
    below: set[int] = set()
    queue = [parent]
    while queue:
        own = found.get(queue.pop(), [])
        below |= {*own}
        queue += own
    return below


def alive(processes: set[int]) -> set[int]:
    return {one for one in processes if Path(f"/proc/{one}").exists()}


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("name", ["INT", "HUP", "KILL"])
def test_workers_of_an_audit_end_with_it(tmp_path: Path, name: str) -> None:
    number = getattr(signal, f"SIG{name}")
    words = [
        "audit",
        "t_maze",
        "--part",
        "blind",
        "--processes",
        "2",
        "--trials",
        "100000",
    ]
    with started(["-m", "cheesebench", *words], tmp_path) as process:
        until(lambda: len(descendants(process.pid)) > 2)  # and one that keeps count
        workers = descendants(process.pid)
        if name == "KILL":
            process.kill()
        else:  # as a terminal does
            os.killpg(process.pid, number)
        code, said = ended(process)
    until(lambda: not alive(workers))
    assert "Traceback" not in said
    if name != "KILL":
        assert code == 128 + number
        assert said.endswith(
            f"cheesebench: ended by SIG{name}. No file is half-written.\n"
        )


#: The command's entry point, signalled as soon as the command line is called.
BEGINS = """
import os
import signal
import sys

def entered(frame, event, argument):
    if frame.f_code.co_name == "main" and frame.f_code.co_filename.endswith("cli.py"):
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGALRM)

sys.setprofile(entered)
from pytest_cheesebench import main
sys.exit(main())
"""


def test_a_signal_before_the_command_begins_is_one_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEGINS, "list"],
        capture_output=True,
        text=True,
        preexec_fn=reset_signals,
    )
    assert ended.returncode == 128 + signal.SIGALRM
    assert ended.stderr.splitlines() == [
        "cheesebench: ended by SIGALRM. No file is half-written."
    ]
