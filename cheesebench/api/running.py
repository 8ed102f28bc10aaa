"""``cheesebench.run``: models through protocols, without pytest."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cheesebench.api.result import Run
from cheesebench.errors import OptionError, did_you_mean
from cheesebench.experiment.run_options import RunOptions
from cheesebench.experiment.selection import Broken, Selected, default_protocols, named_protocols
from cheesebench.film import printable
from cheesebench.options import BY_KEY, OPTIONS, Option
from cheesebench.plugin_manager import PluginManager
from cheesebench.redaction import redact
from cheesebench.running.run import Cell, ModelRun, read_earlier
from cheesebench.running.settings import read_settings
from cheesebench.running.tally import Tally
from cheesebench.whole_files import write_whole

Names = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

#: What only a session of pytest has: tests that fail, and reports that it writes at its end.
FOR_TESTS = frozenset({"compare", "compare_fail", "exit_zero", "film", "html", "inconclusive", "markdown"})
#: Named arguments, by key.
SETTINGS = {option.key: option for option in OPTIONS if option.key not in FOR_TESTS}


def run(
    models: Names,
    protocols: Names = (),
    *,
    design: str | None = None,
    subjects: int | None = None,
    seed: int | None = None,
    view: Names = (),
    results: str | os.PathLike[str] | None = None,
    plugins: Iterable[object] = (),
    progress: bool | Callable[[str], None] | None = None,
    **options: Any,
) -> Run:
    """Run models through protocols, wait until every cell is decided, and return the run.

    It writes the same log as ``pytest --model``: the same seed gives the same records. Ctrl-C (or the stop button of a
    notebook) ends it; ``cheesebench.run(..., resume=ID)`` continues it, and no finished trial is lost.

    Parameters:
        models: One name or several, as ``--model`` takes them.
        protocols: Names, files or directories; by default the nine paradigms.
        design: How many subjects and trials (``--design``); by default what suits the model.
        subjects: Number of subjects of each cell, instead of the design's.
        seed: Seed of the run; 0 by default.
        view: One view or several, instead of the design's own.
        results: Directory of the runs, ``results`` by default.
        plugins: Modules or objects with hooks (agents, backends, views), in addition to those that are installed.
        progress: Whether to show progress, or a function that is called with each line of it; by default it is shown
            on a terminal and in a notebook.
        options: Any other option of a run by its name in Python: ``max_cost=5``, ``control="blind"``, ...

    Raises:
        CheeseBenchError: For a mistake in the arguments, before anything is run; the message names a remedy.
    """
    given = _given(models, protocols, view, design=design, subjects=subjects, seed=seed, results=results, **options)
    return _Work(given, tuple(plugins), _teller(progress)).do()


async def run_async(models: Names, protocols: Names = (), **options: Any) -> Run:
    """Do the same as ``run`` as a coroutine; cancelling it stops the run."""
    stopped = threading.Event()
    plugins, progress = tuple(options.pop("plugins", ())), _teller(options.pop("progress", None))
    work = _Work(_given(models, protocols, options.pop("view", ()), **options), plugins, progress, stopped)
    task = asyncio.ensure_future(asyncio.to_thread(work.do))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stopped.set()
        await asyncio.gather(task, return_exceptions=True)
        raise


class _StoppedError(Exception):
    """The run was cancelled."""


class _Work:
    """One call of ``run``."""

    def __init__(
        self,
        given: Mapping[str, Any],
        plugins: Iterable[object],
        tell: Callable[[str], None],
        stopped: threading.Event | None = None,
    ) -> None:
        self._given = given
        self._plugins = PluginManager()
        for plugin in plugins:
            self._plugins.register(plugin)
        self._tell = tell
        self._stopped = stopped or threading.Event()

    def do(self) -> Run:
        """Run everything and return the run."""
        given, plugins, here = self._given, self._plugins, Path.cwd()
        results = here / (given.get("results") or str(BY_KEY["results"].default))
        models: list[str] = given.get("model") or []
        earlier = read_earlier(plugins, results, given.get("resume"), models)
        replays = earlier.replayed is not None
        origin = f"model {models[0]}" if replays else f"resume={given.get('resume')}"
        options = RunOptions(
            {**given, "model": None} if replays else given,
            {key: key for key in BY_KEY},
            earlier.recorded,
            origin,
            earlier.made_here,
        )
        settings = read_settings(options, plugins, here, _usual_protocols(), earlier.replayed)
        work = ModelRun(settings, plugins, earlier, self._tell)
        try:
            cells = work.of_shard(list(_cells(work, _selected(work, here, given.get("edition")))))
            work.open(cells)
            assert work.log is not None
            path = work.log.path
            work.start(cells)
            self._wait(work, cells)
        finally:
            work.close()
        found = Run(path, plugins)
        write_whole(path.parent / "report.md", found.report())
        return found

    def _wait(self, work: ModelRun, cells: Iterable[Cell]) -> None:
        tally = Tally(work, [plan for plan, _ in cells])

        def waiting(_: object) -> None:
            if self._stopped.is_set():
                raise _StoppedError
            self._tell(tally.line())

        for plan, _ in cells:
            work.wait(plan, waiting)
        self._tell(tally.line(fresh=True) + "\n")


def _given(models: Names, protocols: Names, view: Names, **options: Any) -> dict[str, Any]:
    """Return what was given, by the keys of the options. Raises OptionError for a name or a type that cannot be."""
    profile = options.pop("profile", None)
    values = {"model": _names(models), "protocols": _names(protocols), "view": _names(view), **options}
    given: dict[str, Any] = {}
    for key, value in values.items():
        option = SETTINGS.get(key)
        if option is None:
            known = "only for pytest" if key in FOR_TESTS else "not an option of a run"
            raise OptionError(f"run(): {key}= is {known}.{did_you_mean(key, SETTINGS)}")
        if value is not None and value != []:
            given[key] = _typed(option, value)
    if profile is not None:
        from cheesebench.profiles import find_file, read_profile

        found = read_profile(str(profile), find_file(Path.cwd()))
        given |= {
            key: _typed(BY_KEY[key], value) for key, value in found.items() if key in SETTINGS and key not in given
        }
    return given


def _names(given: Names) -> list[str]:
    return [os.fspath(given)] if isinstance(given, (str, os.PathLike)) else [os.fspath(one) for one in given]


def _typed(option: Option, value: Any) -> Any:
    if option.flag:
        return bool(value)
    if option.repeatable:
        several = value if isinstance(value, (list, tuple)) else [value]
        if option.key.endswith("_option") and isinstance(value, Mapping):
            several = [f"{name}={one}" for name, one in value.items()]
        return [_typed_one(option, one) for one in several]
    return _typed_one(option, value)


def _typed_one(option: Option, value: Any) -> Any:
    try:
        # A number is a number; True is none, and 2.5 subjects are not 2.
        if isinstance(value, bool) or (option.type is int and int(value) != float(value)):
            raise ValueError
        found = option.type(os.fspath(value) if isinstance(value, os.PathLike) else value)
    except (TypeError, ValueError, OverflowError):
        wanted = {int: "a whole number", float: "a number"}.get(option.type, "text")  # type: ignore[call-overload]
        raise OptionError(f"run(): {option.key}={value!r}: expected {wanted}.") from None
    if option.choices and found not in option.choices:
        raise OptionError(f"run(): {option.key}={value!r}: it is one of {', '.join(option.choices)}.")
    return found


def _usual_protocols() -> list[str]:
    return [name for name in os.environ.get("CHEESEBENCH_PROTOCOLS", "").split(os.pathsep) if name]


def _selected(work: ModelRun, here: Path, edition: str | None) -> list[Selected]:
    if work.settings.protocols:
        return named_protocols(work.catalogue, here, work.settings.protocols, edition)
    return default_protocols(work.catalogue, work.settings.edition)


def _cells(work: ModelRun, selected: Iterable[Selected]) -> Iterable[Cell]:
    """Yield every cell once, in the order of pytest. Raises the error of a protocol, or of a model it does not suit."""
    known = set()
    for one in selected:
        if isinstance(one, Broken):
            raise one.error
        for model in work.settings.models:
            for plan in work.plans(one, model):
                if plan.key not in known:
                    known.add(plan.key)
                    yield plan, one


def _teller(progress: bool | Callable[[str], None] | None) -> Callable[[str], None]:
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    return _Line() if progress else lambda line: None


class _Line:
    """One line on stderr that is written over whenever it changes."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, line: str) -> None:
        text = printable(redact(line))
        if text != self._said:
            print(f"\r{text}{' ' * (len(self._said) - len(text))}", end="", file=sys.stderr, flush=True)
            self._said = text.rstrip("\n")
