"""Size of the project, difficulty of reading it, and length of the path from ``pytest
--model`` to a step, a row and a line of the report.

``python benchmarks/size.py`` prints a table. The paths are read from the call stacks of
one smoke run with the executor ``threads``: the files of ours that are on the stack
when the first step is taken, when the first trial is written to the log, and when the
first verdict is judged and rendered, each with the stacks of those that started its
thread or task.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import meter
import pytest
from tabulate import tabulate

import cheesebench

ROOT = Path(__file__).resolve().parents[1]
#: Folders whose Python does not ship.
BESIDE = ("tests", "docs", "benchmarks", "fuzz", "website")
OURS = ("cheesebench", "paradigms", "plugins", "protocols", "reports")
SMOKE = "--model random --design smoke --protocols t_maze --executor threads --processes 1 --exit-zero"
#: Functions at which the ways end.
STEP, ROW = "ArenaSubject.step", "write_trial"
JUDGED, LINE = "cheesebench/statistics/judgement.py", "reports/text.py"


def tracked(*patterns: str) -> list[Path]:
    """Return the files that git tracks and that exist, without symbolic links."""
    listed = subprocess.run(
        ["git", "ls-files", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [
        path
        for path in (ROOT / name for name in listed.splitlines())
        if path.is_file() and not path.is_symlink()
    ]


def lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


class Trace:
    """Follows a run: which of our modules run a function, and the files on the ways."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.ways: dict[str, list[str]] = {}
        self._started: dict[int, list[str]] = {}
        self._names: dict[str, str] = {}

    def name(self, path: str) -> str:
        """Return a file of ours relative to the project (through symbolic links), and
        an empty string for any other.
        """
        if path not in self._names:
            real = Path(os.path.realpath(path))
            ours = real.is_relative_to(ROOT) and real.relative_to(ROOT).parts[0] in (
                *OURS,
                "pytest_cheesebench.py",
            )
            self._names[path] = str(real.relative_to(ROOT)) if ours else ""
        return self._names[path]

    def stack(self, frame: FrameType | None) -> list[str]:
        """Return the files of a stack, each once and the outermost first. The files
        that started its thread or task come before them.
        """
        files: list[str] = []
        while frame is not None:
            if name := self.name(frame.f_code.co_filename):
                files.append(name)
            frame = frame.f_back
        with contextlib.suppress(RuntimeError):
            if task := asyncio.current_task():
                files += reversed(self._started.get(id(task.get_coro()), []))
        files += reversed(self._started.get(id(threading.current_thread()), []))
        return list(dict.fromkeys(reversed(files)))

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        name = self.name(frame.f_code.co_filename) if event == "call" else ""
        if not name or frame.f_code.co_name == "<module>":
            return
        self.running.add(name)
        called = frame.f_code.co_qualname
        if called == STEP:
            self._mark("step", frame)
        elif called.endswith(ROW):
            self._mark("row", frame)
        elif "row" in self.ways and name == JUDGED:
            self._mark("judged", frame)
        elif "row" in self.ways and name == LINE:
            self._mark("line", frame)

    def _mark(self, way: str, frame: FrameType) -> None:
        if way not in self.ways:
            self.ways[way] = self.stack(frame)

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Follow all threads, and remember the starter of each thread or task."""
        start, create = threading.Thread.start, asyncio.BaseEventLoop.create_task

        def remembered(thread: threading.Thread) -> None:
            self._started[id(thread)] = self.stack(sys._getframe(1))
            start(thread)

        def created(
            loop: asyncio.BaseEventLoop, coroutine: Any, **settings: Any
        ) -> Any:
            self._started[id(coroutine)] = self.stack(sys._getframe(1))
            return create(loop, coroutine, **settings)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", remembered)
            patch.setattr(asyncio.BaseEventLoop, "create_task", created)
            threading.setprofile(self)
            sys.setprofile(self)
            try:
                yield
            finally:
                sys.setprofile(None)
                threading.setprofile(None)


def traced() -> Trace:
    """Return the trace of one smoke run in a directory of its own."""
    trace, silent = Trace(), contextlib.redirect_stdout(io.StringIO())
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        silent,
        trace.following(),
    ):
        code = pytest.main(
            [
                "-q",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:hypothesispytest",
                *SMOKE.split(),
            ]
        )
    assert code == 0, "the smoke run fails"
    return trace


def ways(trace: Trace) -> dict[str, list[str]]:
    """Return the files on the way to a step; then the further ones to the row, and to
    the line of the report.
    """
    step = trace.ways["step"]
    row = [name for name in trace.ways["row"] if name not in step]
    before = {*step, *row}
    line = [
        name
        for name in dict.fromkeys(trace.ways["judged"] + trace.ways["line"])
        if name not in before
    ]
    return {"a step": step, "the row in the log": row, "the line of the report": line}


def table(trace: Trace) -> list[list[Any]]:
    """Return the measured quantities, their figures, and their maxima."""
    python = tracked("*.py")
    tests = [path for path in python if path.relative_to(ROOT).parts[0] == "tests"]
    pages = [ROOT / "README.md", *(path for path in tracked("docs/*.md"))]
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in pages)
    imported = {name for name in sys.modules if name.partition(".")[0] == "cheesebench"}
    code = meter.measure()
    rows: list[list[Any]] = [
        ["lines that ship", code.lines, None],
        ["files that ship", code.files, None],
        ["lines of tests", lines(tests), None],
        ["words of documentation", words, None],
        ["pages of documentation", len(pages), None],
        ["modules that the smoke run imports", len(imported), 130],
        ["modules that run a function in it", len(trace.running), 110],
        ["decisions", code.decisions, None],
        *(
            [name.replace("_", " "), counted, most]
            for name, (counted, most) in bounded(code).items()
        ),
    ]
    for (name, files), most in zip(ways(trace).items(), (6, 1, 2), strict=True):
        rows.append(
            [
                f"files from pytest to {name}"
                if name == "a step"
                else f"more files to {name}",
                len(files),
                most,
            ]
        )
    return rows


def bounded(code: meter.Figures) -> dict[str, tuple[float, float]]:
    """Return the figures that may only fall, each with its maximum."""
    text = (ROOT / "tests" / "meter.toml").read_text(encoding="utf-8")
    counted = {
        "functions_over_10": code.functions_over_10,
        "most_complex": code.most_complex,
        "names_across": code.names_across,
        "names_of_a_module": code.names_of_a_module,
        "imports_inside": code.imports_inside,
        "in_circles": sum(map(len, code.circles)),
    }
    most = tomllib.loads(text)
    return {name: (figure, most[name]) for name, figure in counted.items()}


def main() -> None:
    where = Path(cheesebench.__file__).resolve()
    if not where.is_relative_to(ROOT):
        sys.exit(
            f"This measures {ROOT}, but Python imports {where}. Use the environment of this checkout."
        )
    trace = traced()
    print(tabulate(table(trace), ["", "now", "at most"], intfmt=","))
    for name, files in ways(trace).items():
        print(f"\nto {name}:", *files, sep="\n  ")


if __name__ == "__main__":
    main()
