"""The run of a pytest session: its options, its baseline, and its progress line."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.amounts import rounded
from cheesebench.baselines import (
    count_run,
    locate_counted,
    read_counted,
)
from cheesebench.errors import ComparisonError, OptionError
from cheesebench.experiment import cells
from cheesebench.experiment.earlier import Earlier
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import FILE_NAME
from cheesebench.experiment.session import Progress
from cheesebench.experiment.settings import Given, OptionValues, Settings
from cheesebench.model_run import Cell, ModelRun
from cheesebench.options import BY_KEY
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import CellPlan
from cheesebench.statistics.comparison import (
    THIS_RUN,
    CellCounts,
    ComparisonReporter,
    CountedRun,
    RunComparison,
    compare_runs,
    count_cell,
    match_runs,
)
from cheesebench.tally import Tally, time_left
from cheesebench.terminal import printable
from cheesebench.verification import replay_counted


class Comparing:
    """The baseline that this session's run is compared with. Methods raise
    ComparisonError if the two do not match.
    """

    def __init__(self, path: Path, *, fails_if: str) -> None:
        self.path = path
        self._baseline = read_counted(path)
        #: The results for which the run fails: ``worse``, ``undecided`` or both.
        self._fails_if = fails_if.split(",")

    @property
    def name(self) -> str:
        return self._baseline.name

    def acted(self, plan: CellPlan) -> str:
        """Return the baseline's name if the cell's model acted on its protocol there.
        Otherwise return an empty string.
        """
        key = plan.model, plan.protocol
        acted = any(
            one.subjects
            for one in self._baseline.cells
            if (one.model, one.protocol) == key
        )
        return self.name if acted else ""

    @property
    def run_id(self) -> str | None:
        """The id of the baseline's run, or None if the baseline is a file."""
        return self.path.parent.name if self.path.name == FILE_NAME else None

    @property
    def seed(self) -> int | None:
        """The baseline's seed, or None if the baseline has no valid one. A run must
        have the same seed to be compared subject by subject.
        """
        return self._baseline.seed if isinstance(self._baseline.seed, int) else None

    def check(self, plans: Iterable[CellPlan], seed: int) -> str:
        """Return a sentence on the first cell with subjects that would be run, but are
        not in the baseline, or "" if there is none.

        Raise ComparisonError, before anything is run, if the cells cannot be compared
        with the baseline, if their numbers of subjects would depend on the results, or
        if the comparison could only be undecided and this would fail the run.
        """
        self._check_seed(seed)
        cells = tuple(count_cell(plan, ()) for plan in plans)
        run = CountedRun(name=THIS_RUN, seed=seed, cells=cells)
        pairs, only = match_runs(run, self._baseline)
        if any(mine.sequential for mine, _ in pairs):
            raise ComparisonError(
                f"A run of the design 'sequential' stops when its results decide, so it cannot be compared with {self.name}: "
                "the number of subjects must be fixed beforehand. Start a run with --design cohort."
            )
        planned = {plan.key: plan.subjects for plan in plans}
        numbers = [
            (planned[mine.model, mine.protocol, mine.view, mine.variant], theirs)
            for mine, theirs in pairs
        ]
        if "undecided" in self._fails_if:
            self._check_seen([what for what, side in only if side == 0], cells)
            for one in numbers:
                self._check_enough(*one)
        return next(filter(None, itertools.starmap(self._beyond, numbers)), "")

    def _check_seed(self, seed: int) -> None:
        if self.seed not in (None, seed):
            raise ComparisonError(
                f"The seed {seed} puts the subjects into other worlds than the seed {self.seed} of {self.name}, so they are "
                f"not pairs. Leave out --seed: a new run takes it from {self.name}."
            )

    def _beyond(self, planned: int, theirs: CellCounts) -> str:
        known = len(theirs.subjects)
        if planned <= known:
            return ""
        return (
            f"{self.name} has only {known} of the {planned} subjects ({theirs.protocol}): the others are run, too, but are "
            "not compared with it."
        )

    def _check_seen(self, unseen: Sequence[str], cells: Sequence[CellCounts]) -> None:
        if unseen:
            lacks_model = any(cell.model in unseen for cell in cells)
            option, what = (
                ("--model", "model") if lacks_model else ("--protocols", "protocol")
            )
            known = ",".join(
                dict.fromkeys(getattr(one, what) for one in self._baseline.cells)
            )
            raise ComparisonError(
                f"{self._baseline.name} does not have {', '.join(unseen)}, so the comparison would be undecided, "
                f"which fails this run. Run what it has ({option} {known}), or bless a run that has the rest."
            )

    def _check_enough(self, planned: int, theirs: CellCounts) -> None:
        """Raise ComparisonError if the comparison could not exclude a loss even if
        nothing has changed.
        """
        known = sum(one < planned for one in theirs.subjects)
        least = theirs.least_subjects
        if known < least:
            verb = "is" if known == 1 else "are"
            are = f"{known} of its subjects {verb} in {self._baseline.name}"
            remedy = (
                f"add --subjects {max(least, cells.COHORT)}"
                if planned < least
                else f"bless a run of {max(least, cells.COHORT)} subjects"
            )
            raise ComparisonError(
                f"{theirs.protocol} would be undecided even if nothing has changed, and an undecided comparison fails "
                f"this run: {are}, and it takes {least} to exclude a loss if nothing differs at all, {cells.COHORT} for "
                f"a usual model. To compare, {remedy}."
            )

    def blamed(self, found: RunComparison) -> list[tuple[str, str, str]]:
        """Return the reasons why the run fails. Each has a title, a protocol (empty if
        the reason concerns all protocols together) and a sentence.
        """
        losses = found.losses if "worse" in self._fails_if else ()
        questions = found.open_questions if "undecided" in self._fails_if else ()
        return [*losses, *questions]

    def compare(self, log: RunLog) -> RunComparison:
        """Return the comparison. If the baseline is a run, the trials that it supplies
        are replayed. Raise RunLogError if one of them differs from its record, and
        ComparisonError if the runs do not pair.
        """
        found = compare_runs(count_run(log, THIS_RUN), self._baseline)
        replay_counted(self.path, found.keys(1))
        return found


def read_comparing(
    given: Given,
    values: OptionValues,
    results: Path,
    blessed: Path,
    continued: Path | None,
) -> Comparing | None:
    """Return the baseline named on the command line (a run in ``results``, or a file in
    ``blessed``), or None if there is none. Raise OptionError if it is the run to resume
    (``continued``), or if ``--compare-fail`` is given without a baseline. Raise
    RunLogError if the baseline does not exist, or cannot be read.
    """
    if values.compare is None:
        if values.compare_fail is not None:
            raise OptionError(
                f"{given.spelling('compare_fail')} needs a baseline: add {BY_KEY['compare'].short} BASELINE."
            )
        return None
    path = locate_counted(results, values.compare, blessed)
    if continued is not None and path.samefile(continued):
        raise OptionError(
            f"{given.spelling('compare')} {values.compare}: that is the run to resume. Name another run as the baseline."
        )
    return Comparing(path, fails_if=values.compare_fail or "")


def shown(plugins: PluginManager, comparison: RunComparison, name: str) -> str:
    """Return a comparison as rendered by the reporter of that name, or "" if the
    reporter cannot render comparisons.
    """
    reporter = plugins.reporter(name)
    if isinstance(reporter, ComparisonReporter):
        return reporter.render_comparison(comparison)
    return ""  # A plugin has replaced our reporter.


# Terminal codes (from ECMA-48 and DEC) that save the cursor, restore it, and clear to
# the end of the line.
_SAVE, _RESTORE, _CLEAR = "\x1b7", "\x1b8", "\x1b[K"
#: Columns kept free for what pytest may have written after the path: the letters of
#: earlier tests in the same file.
_RESERVE = 12


def teller(config: pytest.Config) -> Callable[[str], None]:
    """Return a function that writes a line into pytest's output, for slow steps before
    the first test.
    """

    def tell(line: str) -> None:
        # While pytest is being configured, there is no terminal reporter yet, and
        # nothing is written.
        terminal = config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(line)

    return tell


def tell_uncaptured(config: pytest.Config, line: str) -> None:
    """Write a separate line while a test runs and its output is captured.

    The terminal output of a pytest-xdist worker is lost, but its standard error is the
    session's.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        if hasattr(config, "workerinput"):
            print(printable(line), file=sys.__stderr__, flush=True)
        else:
            teller(config)(printable(line))


#: Seconds between progress lines if there is no terminal. They are needed there,
#: because CI services end silent jobs.
BEAT = 60.0


class Heartbeat:
    """Writes a line from time to time while cells are awaited, instead of a progress
    line.
    """

    #: Key of the time of the last line or, before the first line, of the first wait for
    #: a cell.
    LAST = pytest.StashKey[float]()

    def __init__(self, config: pytest.Config, nodeid: str, tally: Tally | None) -> None:
        self._config, self._tally = config, tally
        self._name = nodeid.rpartition("::")[2]
        config.stash.setdefault(self.LAST, time.monotonic())

    def beat(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._config.stash[self.LAST] < BEAT:
            return
        self._config.stash[self.LAST] = now
        done = f"{self._name}: {progress.done} of {progress.planned} trials"
        said = done if self._tally is None else self._tally.line()
        note = f"; {progress.note}" if progress.note else ""
        tell_uncaptured(self._config, f"cheesebench: {said}{note}")


@contextmanager
def progress_line(
    config: pytest.Config, nodeid: str, tally: Tally | None
) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows progress: on a terminal in a line that is cleared at
    the end, elsewhere in new lines (``Heartbeat``). With a ``tally``, it shows the
    progress of the run and, if there is room, of the cell. Without one, it shows only
    the progress of the cell.
    """
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is None or not terminal.isatty or os.environ.get("TERM") == "dumb":
        yield Heartbeat(config, nodeid, tally).beat
        return
    begun = time.monotonic()
    capture = config.pluginmanager.getplugin("capturemanager")
    uncaptured = nullcontext if capture is None else capture.global_and_fixture_disabled
    with uncaptured():  # Captured standard output is a file, which has no width.
        # Without -v, pytest has written a path, and a letter for each earlier test in
        # the same file.
        taken = (
            len(nodeid) if config.option.verbose > 0 else len(nodeid.partition("::")[0])
        )
        room = shutil.get_terminal_size().columns - taken - _RESERVE

    def write(text: str) -> None:
        with uncaptured():
            _write(text)

    def draw(progress: Progress) -> None:
        for text in _texts(progress, tally, time.monotonic() - begun):
            if len(text) <= room:
                write(f"{_SAVE}{text}{_CLEAR}{_RESTORE}")
                break

    try:
        yield draw
    finally:
        write(_CLEAR)


def _texts(progress: Progress, tally: Tally | None, seconds: float) -> Iterator[str]:
    """Yield texts for the progress line, the longest first. The run's progress has
    priority over the cell's.
    """
    short = _trials(progress, seconds)
    own = f"{short}{_left(progress, seconds)}"
    note = f"; {progress.note}" if progress.note else ""
    if tally is not None and tally.cells == 1 and tally.unreadable:
        own = f" {tally.unreadable};{own}"
    if tally is not None and tally.cells > 1:
        whole = f" {tally.line()}"
        yield f"{whole} |{own}{note}"
        yield f"{whole} |{own}"
        yield whole
    else:
        cost = "" if tally is None else tally.poll().dollars_text
        yield f"{own}{note}{f', {cost}' if cost else ''}"
    yield own
    yield short


def _trials(progress: Progress, seconds: float) -> str:
    most = f" {progress.subjects} of at most {progress.most} subjects:"
    where = most if progress.subjects else ""
    return f"{where} {progress.done}/{progress.planned} trials, {rounded(seconds, 0)} s"


def _left(progress: Progress, seconds: float) -> str:
    pace = seconds / progress.done if progress.done else 0.0
    left = pace * (progress.planned - progress.done)
    return f", {time_left(left, pace * progress.to_come)} left" if left > 10 else ""


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


#: Key of the data that the pytest-xdist controller passes to its workers.
WORKER_INPUT = "cheesebench"
#: File in the run's directory that tells pytest-xdist workers to stop before their
#: cells end.
HALT = "halt"


@dataclass(frozen=True, kw_only=True)
class Handed:
    """Data that the pytest-xdist controller passes to a worker."""

    log: str
    seed: int
    workers: int
    base_urls: Mapping[str, str]
    began: float
    one_worker: bool
    """Whether all cells go to the same worker."""

    @classmethod
    def to(cls, config: pytest.Config) -> Handed | None:
        """Return the data of this worker, or None if the session is not a worker's."""
        data: Mapping[str, Any] = getattr(config, "workerinput", {})
        return cls(**data[WORKER_INPUT]) if WORKER_INPUT in data else None

    def of_worker(self, settings: Settings) -> Settings:
        """Return the settings with this worker's share of processors and calls."""
        # Workers use the same account, so each gets its share of the calls in flight.
        workers = 1 if self.one_worker else self.workers
        calls = replace(
            settings.calls,
            concurrency=max(1, settings.calls.concurrency // workers),
            processes=workers,
            began=self.began,
        )
        processes = settings.processes
        if processes is None and not self.one_worker:
            processes = max(1, (os.cpu_count() or 1) // workers)
        return replace(settings, calls=calls, processes=processes)


class PytestRun(ModelRun):
    """The run of a session. A pytest-xdist worker shares its controller's run, and runs
    some of the cells.
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        plugins: PluginManager,
        earlier: Earlier,
        *,
        comparing: Comparing | None = None,
        handed: Handed | None = None,
        gates: bool = False,
    ) -> None:
        super().__init__(
            settings,
            plugins,
            earlier,
            teller(config),
            tell_at_once=lambda line: tell_uncaptured(config, line),
            shared=None if handed is None else Path(handed.log),
            servers=None if handed is None else handed.base_urls,
        )
        self.config = config
        self._handed = handed
        #: The baseline, or None if there is none. It is also None in a worker, because
        #: the controller compares.
        self.comparing = comparing
        #: Whether a comparison decides on the session's failure. It is set in workers,
        #: too.
        self.gates = gates
        #: Progress of the whole run. It is None before the start, and when workers
        #: share the cells.
        self.tally: Tally | None = None
        #: What has interrupted the session: a signal, or the reason that pytest gives.
        #: It is empty if nothing has.
        self.interrupted = ""
        #: Whether the report names the command that continues the run.
        self.told_how_to_go_on = False

    @property
    def only_shows(self) -> bool:
        """Whether pytest only shows the tests (``--setup-plan``, ``--setup-only``), so
        that there is no run, and no model is asked.
        """
        option = self.config.option
        return bool(option.setuponly or option.setupplan)

    @property
    def is_controller(self) -> bool:
        """Whether this is the pytest-xdist controller of a run, which collects and runs
        nothing itself.
        """
        distributes = self.config.pluginmanager.hasplugin("dsession")
        return bool(distributes and not self.is_worker and not self.only_shows)

    @property
    def forgives(self) -> bool:
        """Whether the session ignores FAIL verdicts, because only the comparison
        decides whether it fails.
        """
        return self.gates and self.settings.exit_zero

    @property
    def needs_one_worker(self) -> bool:
        """Whether all cells go to one pytest-xdist worker, because they
        share a budget.
        """
        limits = self.settings.calls.limits
        return bool(self.settings.language) and (
            limits.cost is not None or limits.tokens is not None
        )

    @property
    def has_all_cells(self) -> bool:
        """Whether this worker runs all cells or none; see ``one_worker``."""
        return self._handed is not None and self._handed.one_worker

    def check_comparable(self, cells: Sequence[Cell]) -> None:
        """Raise ComparisonError if cells cannot be compared with the baseline. Write a
        line if the baseline lacks subjects that would be run.
        """
        if self.comparing is not None and cells:
            plans = [plan for plan, _ in self.whole or cells]
            if said := self.comparing.check(plans, self.settings.seed):
                self._tell(f"cheesebench: {said}")

    def hand_over(self, workers: int, one_worker: bool) -> dict[str, Any]:
        """Return the data for a pytest-xdist worker, under the key ``WORKER_INPUT``.
        ``one_worker`` is true if all cells go to the same worker.
        """
        assert self.log is not None
        self.call_off_halt()
        handed = Handed(
            log=str(self.log.path),
            seed=self.settings.seed,
            workers=workers,
            base_urls=self._base_urls,
            began=self.settings.calls.began,
            one_worker=one_worker,
        )
        return {WORKER_INPUT: vars(handed)}

    @property
    def is_halted(self) -> bool:
        """Whether the controller wants this worker to end now."""
        handed = self._handed
        return handed is not None and (Path(handed.log).parent / HALT).exists()

    def halt_workers(self) -> None:
        """Make the workers stop before their cells end. pytest-xdist itself waits until
        each worker has finished its test.
        """
        # If the file cannot be created (a full disk), pytest-xdist itself ends the
        # workers, but later.
        with contextlib.suppress(OSError):
            self._halt.touch()

    def call_off_halt(self) -> None:
        """Clear the request to stop, which a killed session may have left."""
        if self.log is not None:
            with contextlib.suppress(OSError):
                self._halt.unlink(missing_ok=True)

    @property
    def _halt(self) -> Path:
        assert self.log is not None
        return self.log.directory / HALT
