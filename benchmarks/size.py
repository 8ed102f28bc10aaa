"""Size of the project, difficulty of reading it, and length of the path from ``pytest
--model`` to a step, a row and a line of the report, and of an option to a cell.

``python benchmarks/size.py`` prints a table. The paths are read from the call stacks of
one smoke run with the executor ``threads``: the files of ours that are on the stack
when the first step is taken, when the first trial is written to the log, and when the
first verdict is judged and rendered, each with the stacks of those that started its
thread or task, and those that made a generator on the stack.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, GeneratorType
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
#: Options of a run that is collected only, and the value that is followed.
FOLLOWED = "41"
COLLECTED = f"--model openai/tiny --history={FOLLOWED} --protocols t_maze --design smoke --collect-only"
#: Classes of objects that carry options through the program.
CARRIERS = frozenset(
    {
        *("Namespace", "Given", "OptionValues", "CellSettings", "Settings"),
        *("LanguageModel", "CellRequest", "Collection", "PytestRun"),
    }
)
#: Functions that keep the settings for other things than cells: the run that carries
#: them out, the hooks of a session, and the manifest.
ASIDE = frozenset(
    {
        *("PytestRun.__init__", "ModelRun.__init__", "_register"),
        *("Reporting.__init__", "Running.__init__", "Outcomes.__init__"),
        *("Cells.__init__", "_recorded", "recorded_options"),
    }
)
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


@functools.cache
def ours(path: str) -> str:
    """Return a file of ours relative to the project (through symbolic links), and an
    empty string for any other.
    """
    real = Path(os.path.realpath(path))
    ships = real.is_relative_to(ROOT) and real.relative_to(ROOT).parts[0] in (
        *OURS,
        "pytest_cheesebench.py",
    )
    return str(real.relative_to(ROOT)) if ships else ""


class Trace:
    """Follows a run: which of our modules run a function, and the files on the ways."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.ways: dict[str, list[str]] = {}
        self._started: dict[int, list[str]] = {}
        #: The files that made a generator, by its frame; and the generators.
        self._made: dict[FrameType, list[str]] = {}

    def stack(self, frame: FrameType | None) -> list[str]:
        """Return the files of a stack, each once and the outermost first, with those
        that made its generators. The files that started its thread or task come before
        them.
        """
        files: list[str] = []
        while frame is not None:
            if name := ours(frame.f_code.co_filename):
                files += [name, *self._made.get(frame, ())]
            frame = frame.f_back
        with contextlib.suppress(RuntimeError):
            if task := asyncio.current_task():
                files += reversed(self._started.get(id(task.get_coro()), []))
        files += reversed(self._started.get(id(threading.current_thread()), []))
        return list(dict.fromkeys(reversed(files)))

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        name = ours(frame.f_code.co_filename)
        if event == "return" and name and isinstance(result, GeneratorType):
            self._made.setdefault(result.gi_frame, []).append(name)
        if event != "call":
            return
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
        """Follow all threads, and remember which stack started each thread or task."""
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


def carries(value: object, depth: int = 8) -> bool:
    """Return whether a value is the followed one, or has it inside."""
    if isinstance(value, str | int):
        return str(value) == FOLLOWED
    if isinstance(value, pytest.Config):
        return carries(value.option)
    inside: Iterable[object] = ()
    if isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    elif type(value).__name__ in CARRIERS:
        names = getattr(value, "__slots__", None) or vars(value)
        inside = [getattr(value, name, None) for name in names]
    return depth > 0 and any(carries(one, depth - 1) for one in inside)


@dataclass
class Call:
    """A running call of a function that is given the followed value."""

    where: tuple[str, str]
    """File, and name of the function."""
    caller: Call | None
    """The running call around it; None for the first."""
    self_had_it: bool
    passes_it_on: bool = False

    @property
    def is_on_the_way(self) -> bool:
        above = self.caller
        return self.passes_it_on and (above is None or above.is_on_the_way)

    def hand_on(self) -> None:
        """Record that this call, and the calls around it, pass the value on."""
        call: Call | None = self
        while call is not None:
            call.passes_it_on, call = True, call.caller


class Walk:
    """Follows the value of an option from call to call until the first cell is
    planned.
    """

    def __init__(self) -> None:
        self._running: dict[FrameType, Call] = {}
        #: All calls, in their order.
        self._calls: list[Call] = []
        self._over = False

    @property
    def way(self) -> list[tuple[str, str]]:
        """The functions on the way, each once, with their files."""
        return list(
            dict.fromkeys(call.where for call in self._calls if call.is_on_the_way)
        )

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        if self._over:
            return
        if event == "call":
            self._begin(frame)
        elif event == "return" and frame in self._running:
            self._end(frame, result)

    def _begin(self, frame: FrameType) -> None:
        code = frame.f_code
        name, file = code.co_qualname, ours(code.co_filename)
        # The functions with which an agent handles its own setting are not part of the
        # way.
        aside = name.endswith(">") or name in ASIDE or file.startswith("plugins/")
        if not file or aside or frame in self._running:
            return
        taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = {one: frame.f_locals[one] for one in taken if one in frame.f_locals}
        if any(map(carries, given.values())):
            above = frame.f_back
            while above is not None and above not in self._running:
                above = above.f_back
            caller = None if above is None else self._running[above]
            call = Call((file, name), caller, carries(given.get("self")))
            self._running[frame] = call
            self._calls.append(call)

    def _end(self, frame: FrameType, result: object) -> None:
        call, mine = self._running.pop(frame), frame.f_locals.get("self")
        kind = type(result).__name__
        if kind == "CellPlan":
            self._over = True
            call.hand_on()
        elif not call.self_had_it and carries(mine):
            call.hand_on()
        elif carries(result):
            call.passes_it_on = True
            if kind in CARRIERS:
                call.hand_on()


def run(words: str, follow: contextlib.AbstractContextManager[object]) -> None:
    """Run pytest on the smoke run in a directory of its own, without its output."""
    silent = contextlib.redirect_stdout(io.StringIO())
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        silent,
        follow,
    ):
        plain = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
        code = pytest.main([*plain, *words.split()])
    assert code == 0, "the smoke run fails"


def traced() -> Trace:
    """Return the trace of one smoke run."""
    trace = Trace()
    run(SMOKE, trace.following())
    return trace


def walked() -> Walk:
    """Return the walk of an option of a run that is collected only."""
    walk = Walk()

    @contextlib.contextmanager
    def following() -> Iterator[None]:
        sys.setprofile(walk)
        try:
            yield
        finally:
            sys.setprofile(None)

    run(COLLECTED, following())
    return walk


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


def table(trace: Trace, walk: Walk) -> list[list[Any]]:
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
    read = {name for names in ways(trace).values() for name in names}
    decided = (one for one in code.functions if one.where.partition(":")[0] in read)
    rows.append(["files to read a trial", len(read), 9])
    rows.append(
        ["decisions in these", sum(one.complexity - 1 for one in decided), 1000]
    )
    files = {file for file, _ in walk.way}
    rows.append(["functions from an option to a cell", len(walk.way), 15])
    rows.append(["files from an option to a cell", len(files), 6])
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
    trace, walk = traced(), walked()
    print(tabulate(table(trace, walk), ["", "now", "at most"], intfmt=","))
    for name, files in ways(trace).items():
        print(f"\nto {name}:", *files, sep="\n  ")
    print("\nfrom an option to a cell:")
    for file, name in walk.way:
        print(f"  {name} of {file}")


if __name__ == "__main__":
    main()
