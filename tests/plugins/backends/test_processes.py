"""Everything that a backend starts ends with us: stopped, crashed, killed, stubborn or
strayed processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cheesebench import PluginError
from cheesebench.plugins.backends.processes import Supervised

#: Maximum seconds for anything, only to end a hanging test.
PATIENCE = 60.0


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "this never happened"
        time.sleep(0.05)


def lives(process: int) -> bool:
    """Whether a process is alive; zombies do not count."""
    try:
        state = (
            Path(f"/proc/{process}/stat")
            .read_text(encoding="ascii")
            .rpartition(")")[2]
            .split()[0]
        )
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Callable[..., Supervised]]:
    with contextlib.ExitStack() as stack:

        def start(code: str, **options: Any) -> Supervised:
            started = Supervised(python(code), tmp_path / "log", **options)
            stack.callback(started.stop)
            return started

        yield start


def printed(program: Supervised) -> list[int]:
    """Return the process ids in the log, once there is a whole line of them."""
    wait_for(
        lambda: (
            program.log.exists()
            and program.log.read_text(encoding="utf-8").endswith("\n")
        )
    )
    return [int(word) for word in program.log.read_text(encoding="utf-8").split()]


def test_stopping_ends_the_program_and_its_children(
    supervise: Callable[..., Supervised],
) -> None:
    program = supervise(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        "print(os.getpid(), child.pid, flush=True); time.sleep(1000)"
    )
    processes = printed(program)
    assert all(map(lives, processes))
    program.stop()
    assert not any(map(lives, processes))
    assert program.ended == 128 + signal.SIGTERM
    program.stop()  # a second call does no harm


def test_windows_users_are_told_what_works_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        with pytest.raises(PluginError, match="--base-url"):
            Supervised(python("pass"), log)
    assert not log.exists()


def test_one_that_does_not_want_to_is_killed(
    supervise: Callable[..., Supervised],
) -> None:
    program = supervise(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(1000)",
        grace=0.5,
    )
    [process] = printed(program)
    program.stop()
    assert not lives(process)
    assert program.ended == 128 + signal.SIGKILL


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="only Linux lets a process adopt what its children leave behind",
)
def test_one_that_has_left_the_group_is_found(
    supervise: Callable[..., Supervised],
) -> None:
    program = supervise(
        "import os, subprocess, time\n"
        "if os.fork() == 0:\n"
        "    stray = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "    print(os.getppid(), stray.pid, flush=True); os._exit(0)\n"
        "os.wait(); time.sleep(1000)"
    )
    processes = printed(program)
    assert all(map(lives, processes))
    program.stop()
    assert not any(map(lives, processes))


def test_children_of_one_that_crashed_are_ended(
    supervise: Callable[..., Supervised],
) -> None:
    program = supervise(
        "import os, subprocess\nchild = subprocess.Popen(['sleep', '1000']); print(child.pid, flush=True); os._exit(3)"
    )
    [child] = printed(program)
    wait_for(lambda: program.ended is not None)
    assert program.ended == 3
    assert not lives(child)


def test_nothing_outlives_us_when_we_are_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ours = (
        "import os, sys, time; from pathlib import Path\n"
        "from cheesebench.plugins.backends.processes import Supervised\n"
        "inner = 'import os, time; print(os.getpid(), flush=True); time.sleep(1000)'\n"
        f"program = Supervised([sys.executable, '-c', inner], Path({str(log)!r}))\n"
        # A process forked from us that lives on must not keep anything alive.
        "if os.fork() == 0: time.sleep(20); os._exit(0)\n"
        "time.sleep(1000)"
    )
    parent = subprocess.Popen(python(ours))
    try:
        wait_for(
            lambda: log.exists() and log.read_text(encoding="utf-8").endswith("\n")
        )
        process = int(log.read_text(encoding="utf-8"))
        assert lives(process)
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not lives(process))


@pytest.mark.parametrize("released", [False, True])
def test_a_guard_kills_what_others_started_only_when_we_are_killed(
    tmp_path: Path, released: bool
) -> None:
    log = tmp_path / "log"
    ours = (
        "import subprocess, sys, time; from pathlib import Path\n"
        "from cheesebench.plugins.backends.processes import Guard\n"
        "engine = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "guard = Guard([engine.pid])\n"
        f"if {released}: guard.release()\n"
        f"Path({str(log)!r}).write_text(f'{{engine.pid}} {{guard._process.pid}}\\n'); time.sleep(60)"
    )
    parent = subprocess.Popen(python(ours))
    wait_for(lambda: log.exists() and log.read_text(encoding="utf-8").endswith("\n"))
    engine, guard = map(int, log.read_text(encoding="utf-8").split())
    assert lives(engine)
    assert lives(guard) is not released
    parent.kill()
    parent.wait()
    wait_for(lambda: not lives(guard))
    assert lives(engine) is released
    if released:
        os.kill(engine, signal.SIGKILL)


def test_a_command_that_does_not_exist_is_told_in_the_log(tmp_path: Path) -> None:
    program = Supervised(["/no/such/program"], tmp_path / "log")
    wait_for(lambda: program.ended is not None)
    assert program.ended == 127
    assert program.tail() == "/no/such/program: No such file or directory"


def test_modules_in_the_working_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text(
        "import pathlib; pathlib.Path('ran').touch(); loads = dumps = str\n"
    )
    monkeypatch.chdir(tmp_path)
    program = Supervised(python("print(1)"), tmp_path / "log")
    wait_for(lambda: program.ended is not None)
    assert not (tmp_path / "ran").exists()
    assert program.tail() == "1"


def test_secrets_do_not_reach_the_log(
    supervise: Callable[..., Supervised], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hush-0123456789-hush")
    program = supervise("import os; print('the key is', os.environ['SOME_API_KEY'])")
    wait_for(lambda: program.ended is not None)
    assert program.tail() == "the key is [redacted]"


def test_where_there_are_no_process_groups_no_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        with pytest.raises(PluginError) as found:
            Supervised(["serve"], log)
    assert "Start the server yourself and give its address" in str(found.value)
    assert not log.exists()
