"""Starts programs and servers for backends. They end with this process, however it
ends.

A small supervisor, in a session of its own, stands between this process and the
program. When it is told to, or when this process is gone (even by ``kill -9``), the
supervisor ends the program and every process that the program has started (on macOS,
only those in the program's process group). It also writes the program's output to a log
file, without secrets.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from cheesebench import BackendContext, OptionError, PluginError, quoted, redact

#: Seconds between checks of a program and of this process's parent. While processes are
#: being killed, checks are four times as frequent.
_TICK = 0.2
#: Seconds that the supervisor gets to exit, on top of the program's ``grace``, before
#: it is killed. It spends at most half of them on the program's last output.
_MARGIN = 10.0
#: The loopback address, which only this machine can reach.
LOOPBACK = "127.0.0.1"
#: ``_POLL``: seconds between health checks of a server. ``_SAY``: seconds between
#: messages that the server is still loading.
_POLL, _SAY = 0.1, 15.0
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: Option of prctl(2): orphaned descendants become children of this process, so that
#: none can escape.
_PR_SET_CHILD_SUBREAPER = 36
#: Option of prctl(2): this process gets a signal when the thread that started it ends.
_PR_SET_PDEATHSIG = 1


class Supervised:
    """A running program whose output is in ``log``. If the program cannot be started,
    the exit code is 127, and the log says why.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        grace: float = 20.0,
        variables: Iterable[str] | None = None,
    ) -> None:
        """Start ``command``. When it is stopped, it has ``grace`` seconds between
        SIGTERM and SIGKILL.

        Only the environment variables in ``variables`` are passed on (None: all),
        because others may hold keys for other services. Raise PluginError on Windows,
        which has no process groups.
        """
        if os.name != "posix":
            raise PluginError(
                "Servers are started on Linux and macOS only. Start the server yourself and give its address with "
                "--base-url, or run CheeseBench in WSL."
            )
        self.log = log
        self._grace = grace
        self._process = _start(
            main,
            str(log),
            str(grace),
            json.dumps(None if variables is None else sorted(variables)),
            *command,
        )

    @property
    def ended(self) -> int | None:
        """The program's exit code (128 + n if signal n ended it), or None while it
        runs.
        """
        return self._process.poll()

    def tail(self, lines: int = 15) -> str:
        """Return the last ``lines`` lines of the log that are not empty, or "" if there
        is no log yet.
        """
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])

    def stop(self) -> None:
        """End the program and everything that it has started, and return when all are
        gone. A second call does nothing.
        """
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(self._grace + _MARGIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class StartedServer:
    """A ``Server`` in a process of its own. ``name`` is the program's name in
    messages.
    """

    def __init__(self, context: BackendContext, name: str, process: Supervised) -> None:
        self.base_url = ""
        #: Facts about the server's software and model; see ``cheesebench.Server``.
        self.facts: dict[str, object] = {}
        self.process = process
        self._context, self._name = context, name
        self._what = f"The {name} server for '{context.entry.id}'"

    def wait_until(self, healthy: Callable[[], bool], timeout: float) -> float:
        """Wait until ``healthy`` returns true, and return how many seconds it took.

        Otherwise stop the server, and raise EndedError if its process has ended, or
        PluginError after ``timeout`` seconds. Both errors quote the end of the server's
        log.
        """
        began = said = time.monotonic()
        try:
            while not healthy():
                now = time.monotonic()
                if (code := self.process.ended) is not None:
                    raise EndedError(
                        self.with_log(
                            f"{self._what} ended with code {code} before it was ready."
                        )
                    )
                if now - began > timeout:
                    raise PluginError(
                        self.with_log(
                            f"{self._what} was not ready after {timeout:g} s. If it was still loading, allow more time "
                            "(--backend-option startup_timeout=SECONDS)."
                        )
                    )
                if now - said >= _SAY:
                    said = now
                    line = f"{self._name} is loading {self._context.entry.id} ({now - began:.0f} s, log: "
                    self._context.progress(
                        f"{line}{self.process.log}): {quoted(self.process.tail(1), 100)}"
                    )
                time.sleep(_POLL)
            # Another program that has taken the port may have answered.
            if (code := self.process.ended) is not None:
                raise EndedError(self.with_log(f"{self._what} ended with code {code}."))
        except BaseException:
            self.process.stop()
            raise
        return time.monotonic() - began

    def with_log(self, said: str) -> str:
        """Stop the server, and return a sentence followed by the end of its log."""
        # Stop the server first, so that the log contains its last output.
        self.process.stop()
        lines = "\n".join(
            f"    {quoted(line, 200)}" for line in self.process.tail().splitlines()
        )
        return (
            f"{said} Its log, {self.process.log}, ends with\n{lines or '    (nothing)'}"
        )

    def stop(self) -> None:
        """Stop the server and all of its processes, and return when they are gone. If
        the server had already ended, report this.
        """
        code = self.process.ended
        self.process.stop()
        if code is not None:
            self._context.progress(
                self.with_log(f"{self._what} ended with code {code} during the run.")
            )


def start_server(
    context: BackendContext,
    name: str,
    command: Callable[[int], Sequence[str]],
    needed: re.Pattern[str],
    timeout: float,
) -> tuple[StartedServer, str]:
    """Start a server with the command that ``command`` returns for a port. When the
    server is healthy, return it and, in words, how long this took.

    The server gets only the environment variables that match ``needed``. Raise
    PluginError if it cannot be started or does not become healthy within ``timeout``
    seconds.
    """
    port = free_port(LOOPBACK)
    log = log_path(context, re.sub("[^a-z]", "", name.lower()))
    process = Supervised(command(port), log, variables=filter(needed.match, os.environ))
    server = StartedServer(context, name, process)
    seconds = server.wait_until(lambda: is_healthy(LOOPBACK, port), timeout)
    server.base_url = f"http://{LOOPBACK}:{port}/v1"
    return server, f"after {seconds:.0f} s"


class EndedError(PluginError):
    """A server ended before it was ready."""


def log_path(context: BackendContext, name: str) -> Path:
    """Return the log file of a model's server in the run's directory."""
    model = re.sub(r"[^A-Za-z0-9._-]+", "-", context.entry.id).strip("-.")[-100:]
    return context.directory / f"{name}-{model}.log"


def free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        return int(listener.getsockname()[1])


def is_healthy(host: str, port: int) -> bool:
    # urllib would use a proxy from the environment; http.client does not.
    connection = http.client.HTTPConnection(host, port, timeout=5.0)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def number_in(options: Mapping[str, Any], name: str, default: float) -> Any:
    """Return the value of the option ``name``, a number above 0 of the same type as
    ``default``. Raise OptionError for any other value.
    """
    return typed(name, options.get(name, default), type(default))


def typed(name: str, value: Any, kind: type) -> Any:
    """Return an option's value as a ``kind``: a bool, a nonempty string, or a number
    above 0. Numbers and bools may be given as strings. Raise OptionError for any other
    value.
    """
    try:
        if kind is bool:
            return value if isinstance(value, bool) else _WORDS[str(value).lower()]
        if kind is str and isinstance(value, str) and value:
            return value
        if (
            kind in (int, float)
            and not isinstance(value, bool)
            and (number := kind(value)) > 0
        ):
            return number
    except (KeyError, ValueError, TypeError):
        pass
    wanted = {
        int: "a whole number above 0",
        float: "a number above 0",
        bool: "true or false",
        str: "a non-empty string",
    }[kind]
    raise OptionError(
        f"The option {name} must be {wanted}, not '{quoted(str(value), 60)}'."
    )


class Guard:
    """Kills processes that a library has started for this process, but only once this
    process is gone.
    """

    def __init__(self, processes: Iterable[int]) -> None:
        self._process = _start(guard, *map(str, processes))

    def release(self) -> None:
        """Stop guarding. The processes keep running."""
        self._process.terminate()
        self._process.wait()


def python_command(function: Callable[[], object], *arguments: str) -> list[str]:
    """Return the command that runs a module's function in a separate Python. The
    function reads its arguments from ``sys.argv[1:]``.
    """
    # With the same sys.path, the new Python finds the module in any kind of
    # installation. The option -P keeps it from looking in the working directory.
    code = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    code += f"import {function.__module__} as module; sys.exit(module.{function.__name__}())"
    return [sys.executable, "-P", "-c", code, json.dumps(sys.path), *arguments]


def _start(function: Callable[[], int], *arguments: str) -> subprocess.Popen[bytes]:
    """Run a function of this module in a separate process. The function's first
    argument is this process's id.
    """
    return subprocess.Popen(
        python_command(function, str(os.getpid()), *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Ctrl-C in the terminal must reach only this process, because the run must end
        # its calls before the server stops.
        start_new_session=True,
    )


def guard() -> int:
    """Run as the guard, and return its exit code. The arguments are the process ids of
    the parent and of the guarded processes.
    """
    parent, *guarded = map(int, sys.argv[1:])
    while os.getppid() == parent:
        time.sleep(_TICK)
    for process in guarded:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return 0


def main() -> int:
    """Run as the supervisor, and return the program's exit code. The arguments are the
    parent's process id, log, grace, variables and command.
    """
    parent, log, grace, command = (
        int(sys.argv[1]),
        Path(sys.argv[2]),
        float(sys.argv[3]),
        sys.argv[5:],
    )
    names: list[str] | None = json.loads(sys.argv[4])
    stop_requested = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop_requested.set())
    _adopt_orphans()
    with log.open("a", encoding="utf-8") as sink:
        try:
            program = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=None
                if names is None
                else {name: os.environ[name] for name in names if name in os.environ},
                start_new_session=True,
                # The supervisor itself may be killed: when an actor ends, Ray kills all
                # of its children.
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
                text=True,
                errors="replace",
            )
        except OSError as error:
            sink.write(f"{command[0]}: {error.strerror}\n")
            return 127
        writer = threading.Thread(target=_write, args=(program, sink), daemon=True)
        writer.start()
        # If the parent is gone, the parent id changes. A pipe would not show this,
        # because forked processes keep it open.
        while (
            program.poll() is None
            and not stop_requested.is_set()
            and os.getppid() == parent
        ):
            stop_requested.wait(_TICK)
        _end(program, grace)
        # Let the thread read the rest of the pipe, because the last output is the most
        # important.
        writer.join(_MARGIN / 2)
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def _write(program: subprocess.Popen[str], sink: TextIO) -> None:
    assert program.stdout is not None
    for line in program.stdout:
        # A full disk must not stop the program. A line that comes after the log is
        # closed is dropped.
        with contextlib.suppress(OSError, ValueError):
            print(redact(line.rstrip("\n")), file=sink, flush=True)


def _end(program: subprocess.Popen[str], grace: float) -> None:
    """End the program's process group, first with SIGTERM and then with SIGKILL. Then,
    on Linux, kill all processes that have left the group.
    """
    deadline = time.monotonic() + grace
    _signal_group(program.pid, signal.SIGTERM)
    while time.monotonic() < deadline and (
        program.poll() is None or _signal_group(program.pid, 0)
    ):
        time.sleep(_TICK / 4)
        _bury(program.pid)
    _signal_group(program.pid, signal.SIGKILL)
    program.wait()
    # The children of killed processes become children of this one, so repeat this until
    # none are left.
    while left := _children():
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_TICK / 4)
        _bury(program.pid)


def _signal_group(group: int, number: int) -> bool:
    """Signal a process group, and return whether it exists. (For a group of zombies,
    macOS denies permission.)
    """
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _adopt_orphans() -> None:
    """Become the parent of orphaned descendants. Only Linux can do this; on other
    systems, only the program's process group is ended.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _children() -> list[int]:
    """Return the ids of this process's children, including zombies. They are found
    only on Linux, which has /proc.
    """
    found: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # The thread may have just ended.
            found += map(int, path.read_text(encoding="ascii").split())
    return found


def _bury(program: int) -> None:
    """Reap dead children, except the program, whose exit code is still needed."""
    for process in _children():
        if process != program:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
