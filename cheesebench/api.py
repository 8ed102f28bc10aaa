"""Runs models from Python and notebooks, with the same engine, log and verdicts as
pytest.
"""

from __future__ import annotations

import asyncio
import html
import inspect
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cheesebench import arguments, filming, tables
from cheesebench.budgets import larger_budgets
from cheesebench.chat import BackendSpec
from cheesebench.errors import (
    OptionError,
    PluginError,
    RunLogError,
    UnknownNameError,
    did_you_mean,
)
from cheesebench.experiment import replay
from cheesebench.experiment.earlier import read_earlier
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import inside, locate
from cheesebench.experiment.replay import recorded_protocol
from cheesebench.experiment.settings import Given, Origin, read_settings
from cheesebench.exporting import TABLES, Kind, Source, lives
from cheesebench.files import write_whole
from cheesebench.ini_file import usual_protocols
from cheesebench.interface_checks import shown
from cheesebench.interfaces import AgentSpec
from cheesebench.model_run import Cell, ModelRun
from cheesebench.options import BY_KEY, OPTIONS, Option
from cheesebench.plugin_manager import PluginManager
from cheesebench.profiles import find_file, read_profile
from cheesebench.redaction import redact
from cheesebench.statistics.question import Question, animals_interval
from cheesebench.statistics.wording import plural
from cheesebench.summaries import summarise_log
from cheesebench.tally import Tally
from cheesebench.terminal import film_strip, printable

if TYPE_CHECKING:
    import pandas

    from cheesebench.records import CellPlan, Frame, TrialRecord
    from cheesebench.statistics import CellResult, RunSummary

#: Pandas type of each kind of column. All of them allow missing values.
TYPES: Mapping[Kind, str] = {
    "text": "string",
    "integer": "Int64",
    "number": "Float64",
    "truth": "boolean",
}

#: Columns of the journal with the kind of their values, ordered as in ``JournalEntry``.
JOURNAL: Mapping[str, Kind] = {
    "time": "text", "kind": "text", "text": "text", "model": "text", "protocol": "text", "view": "text",
    "variant": "text", "subject": "integer",
}  # fmt: skip
#: Columns of the verdicts, with the kind of their values. A notebook shows the first
#: ten and the last ten.
VERDICTS: Mapping[str, Kind] = {
    "model": "text", "protocol": "text", "view": "text", "variant": "text", "verdict": "text", "rate": "number",
    "low": "number", "high": "number", "reference": "number", "difference": "number",
    "margin": "number", "design": "text", "reference_low": "number", "reference_high": "number", "chance": "number",
    "evidence_pass": "number", "evidence_fail": "number", "planned": "integer", "passed": "integer",
    "calls": "integer", "validated": "truth", "measure": "text", "mean": "number", "mean_low": "number",
    "mean_high": "number", "ability": "number", "ability_low": "number", "ability_high": "number",
    "ability_rodent": "number", "ability_bar": "number",
    "bound_low": "number", "bound_high": "number", "p_value": "number", "subjects": "integer", "valid": "integer",
    "missing": "integer", "cost": "number", "remarks": "text", "reason": "text",
}  # fmt: skip


def in_python(summary: RunSummary) -> RunSummary:
    """Return a summary whose sentences name arguments in place of options."""
    cells = tuple(map(_cell_in_python, summary.cells))
    controls = tuple(
        replace(
            one,
            control=_cell_in_python(one.control),
            plain=_cell_in_python(one.plain),
        )
        for one in summary.controls
    )
    models = tuple(
        replace(one, gate_reason=arguments.in_python(one.gate_reason))
        for one in summary.models
    )
    return replace(summary, cells=cells, controls=controls, models=models)


def _cell_in_python(cell: CellResult) -> CellResult:
    said = arguments.in_python
    return replace(
        cell,
        reason=said(cell.reason),
        warnings=tuple(map(said, cell.warnings)),
        causes=tuple(map(said, cell.causes)),
        remarks=tuple(map(said, cell.remarks)),
    )


def matrix_of(plugins: PluginManager, summary: RunSummary) -> str:
    """Return the table that a notebook shows of a run, or of several."""
    return arguments.in_python(plugins.reporter("matrix").render(summary))


def verdict_rows(summary: RunSummary) -> Iterator[dict[str, Any]]:
    """Yield a row for each cell, with the columns of VERDICTS."""
    for cell in summary.cells:
        yield dict(zip(VERDICTS, _verdict(cell), strict=True))


def _verdict(cell: CellResult) -> list[Any]:
    plan, reference, game = cell.plan, cell.plan.reference, cell.game
    low, high = cell.interval or (None, None)
    limits = animals_interval(reference) or (None, None)
    calls, cost = _calls(cell)
    return [
        plan.model, plan.protocol, plan.view, str(plan.variant), cell.verdict and cell.verdict.value,
        cell.rate, low, high,
        None if reference is None else reference.value, cell.difference, plan.margin,
        plan.design, *limits, plan.chance,
        game and game.passing, game and game.failing, cell.planned, cell.passed,
        calls, _validated(plan), *_measure(cell), *_ability(cell),
        cell.difference_low, cell.difference_high, game and game.p_value, cell.subjects, cell.valid,
        cell.missing, cost, "; ".join((*cell.warnings, *cell.remarks)), cell.reason,
    ]  # fmt: skip


def _calls(cell: CellResult) -> tuple[int | None, float | None]:
    """Return the number of calls and their cost in dollars, or Nones if nothing is
    known of calls. A cost of 0 also becomes None, because it usually means that no
    price is known.
    """
    totals = None if cell.calls is None else cell.calls.totals
    return (None, None) if totals is None else (totals.calls, totals.cost or None)


def _validated(plan: CellPlan) -> bool | None:
    """Return whether an audit shows that the protocol measures what it names, or None
    for dialogues.
    """
    if plan.items:
        return None
    found = plan.construct
    return found is not None and found.status == "validated" and not found.doubt


def _measure(cell: CellResult) -> list[Any]:
    """Return the name, mean and interval of the judged measure, or Nones if the verdict
    is about a pass rate.
    """
    measured, judged = cell.plan.measured, cell.judged
    low, high = (judged and judged.interval) or (None, None)
    return [measured and measured.name, judged and judged.mean, low, high]


def _ability(cell: CellResult) -> list[float | None]:
    """Return the model's value, its interval, the animals' value and the PASS bar on
    the ability scale, or Nones if the scale's zero is not proved.
    """
    found = cell.ability
    if found is None:
        return [None] * 5
    low, high = found.interval or (None, None)
    return [found.model, low, high, found.rodent, found.bar]


def frame_of(
    rows: Iterable[Mapping[str, Any]], kinds: Mapping[str, Kind] = VERDICTS
) -> pandas.DataFrame:
    """Return rows as a data frame whose columns have the types of ``kinds``."""
    return _frame([[row[name] for name in kinds] for row in rows], kinds)


def table_frame(
    log: RunLog, plugins: PluginManager, name: str, observations: bool = False
) -> pandas.DataFrame:
    """Return a table of ``cheesebench export`` as a data frame. Raise UnknownNameError
    if there is no table ``name``, and OptionError if pandas is not installed.
    """
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    table = TABLES[name]
    tables.import_pandas()  # If pandas is missing, fail before reading.
    source = Source(log, plugins, observations)
    return _frame([row for rows in source.rows(table) for row in rows], table.header)


def _frame(rows: list[list[Any]], kinds: Mapping[str, Kind]) -> pandas.DataFrame:
    pandas = tables.import_pandas()
    columns = zip(*rows, strict=True) if rows else ([] for _ in kinds)
    return pandas.DataFrame(
        {
            name: pandas.array(list(column), dtype=TYPES[kind])
            for (name, kind), column in zip(kinds.items(), columns, strict=True)
        }
    )


#: A run lists at most this many controls. If it has more, it says only how many.
MOST_CONTROLS = 3
#: Words after "To continue", by the number of budgets that must be larger (at most 2).
_WITH = ("", ", with a larger budget", ", with larger budgets")
#: Matches the limit that was reached, in a cause of missing trials.
_LIMIT = re.compile(r"(max_\w+)=(\S+) is reached")
#: The budgets that include what was spent before ``resume``.
_COUNTED = ("max_cost", "max_tokens")
#: Height of the player in a notebook, in pixels, until the player reports its own.
HEIGHT = 900
#: Gives a player's frame the height that the page in it reports (at most 5000 pixels),
#: because a notebook cannot measure a sandboxed page.
_FIT = """<script>addEventListener("message", ({source, data}) => {
  for (const frame of document.querySelectorAll("iframe.cheesebench-trial"))
    if (frame.contentWindow === source && data?.cheesebenchHeight > 0)
      frame.style.height = `${Math.min(data.cheesebenchHeight, 5000)}px`;
})</script>"""


@runtime_checkable
class TrialReporter(Protocol):
    """The method with which the reporter ``html`` shows a trial in a notebook."""

    def render_trial(
        self,
        log: RunLog,
        plugins: PluginManager,
        plan: CellPlan,
        subject: int,
        trial: int,
    ) -> str:
        """Return a page with the player and this trial."""
        ...


def _unparsed(
    log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int
) -> list[bool | None]:
    """Return, for each call of a subject, whether the agent looked for an action in the
    reply and found none, or None if that is unknown.
    """
    records = list(log.calls.of_life(plan, subject))
    if not records:
        return []
    try:
        last = records[-1].trial, records[-1].call
        found = replay.rebuild_calls(log, plugins, plan, subject, last)
    except RunLogError:
        return [None] * len(records)
    return [None if one.actions is None else one.unparsed for one in found]


class Shown(str):
    """A text that a notebook shows as it is printed."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class Frames(tuple["Frame", ...]):
    """The frames of a trial, possibly hundreds."""

    def __repr__(self) -> str:
        return f"<{len(self)} frames; for frame in trial.frames: print(frame.observation) draws all>"


def _written(path: Path, content: str | bytes) -> Path:
    """Write a file, and return its path. Raise OptionError if that is impossible."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise OptionError(
            f"{path} cannot be written: {error.strerror}. Name a file in an existing directory that you can write to."
        ) from None
    return path


class PlayedTrial:
    """One recorded trial."""

    def __init__(
        self, path: Path, plugins: PluginManager, plan: CellPlan, record: TrialRecord
    ) -> None:
        """``path`` is the file of the run's log."""
        self._path = path
        self._plugins = plugins
        self.plan = plan
        self._record = record

    @property
    def record(self) -> TrialRecord:
        """The record of the trial, as in ``Run.trials``: its ``trial``
        counts from 1.
        """
        return replace(self._record, trial=self._record.trial + 1)

    @property
    def frames(self) -> Frames:
        """The frames of the trial: its start, then one for each step, with action,
        observation and reward.
        """
        with arguments.named(), RunLog.open_read_only(self._path) as log:
            family = self._plugins.family(
                recorded_protocol(log, self.plan, self._plugins)
            )
            wanted = {self._record.subject: {self._record.trial}}
            watched = family.watch(log, self._plugins, self.plan, wanted)
            return Frames(next(iter(watched)).frames)

    def html(self) -> str:
        """Return a standalone page with the player. Raise PluginError if a plugin has
        replaced the report format ``html`` by one without a player.
        """
        reporter = self._plugins.reporter("html")
        if not isinstance(reporter, TrialReporter):
            raise PluginError(
                "The plugin that registers the report format 'html' has no player. "
                "Remove it ('cheesebench plugins' names it)."
            )
        with RunLog.open_read_only(self._path) as log:
            page = reporter.render_trial(
                log, self._plugins, self.plan, self._record.subject, self._record.trial
            )
        return arguments.report_in_python(page, ".html")

    @arguments.checked(speed=arguments.WHOLE)
    def film(
        self, path: str | os.PathLike[str] = "trial.gif", *, speed: int = 5
    ) -> Path:
        """Write the trial as a moving picture, a GIF with ``speed`` (1 to 1000) steps a
        second, and return its path. Raise OptionError for a trial of a dialogue, and
        for a file that is not named ``*.gif`` or cannot be written.
        """
        filming.check(self.plan, os.fspath(path))
        if not 1 <= speed <= 1000:
            raise OptionError(f"--speed {speed}: give 1 to 1000 steps a second.")
        with RunLog.open_read_only(self._path) as log:
            content = filming.film_of(
                log, self._plugins, self.plan, self._record, speed
            )
        return _written(Path(path), content)

    def _repr_html_(self) -> str:
        """Show the player in a frame that may run only its own script."""
        return (
            f'<iframe srcdoc="{html.escape(self.html())}" sandbox="allow-scripts" title="{html.escape(self._title())}" '
            f'class="cheesebench-trial" style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>{_FIT}'
        )

    def __repr__(self) -> str:
        return f"<{self._title()}>"

    def __str__(self) -> str:
        return f"{self._title()}\n\n{film_strip(self.frames)}"

    def _title(self) -> str:
        one, plan = self.record, self.plan
        control = f" (control={plan.control})" if plan.control else ""
        # The outcome ``error`` means a wrong choice, not a breakdown.
        ended = "wrong choice" if one.outcome == "error" else one.outcome
        return printable(
            f"{plan.model}{control} on {plan.label}: subject {one.subject}, trial {one.trial}, {ended} "
            f"after {one.steps} step{'' if one.steps == 1 else 's'}"
        )


class Run:
    """A run, read from its log. Everything is computed from the log on demand."""

    def __init__(self, path: Path, plugins: PluginManager | None = None) -> None:
        """``path`` is the file of the log. ``plugins`` must have the views and families
        of the log's protocols; by default they are the installed plugins.
        """
        self._path = Path(path)
        self._plugins = plugins or PluginManager()
        #: The state of the log (``_written``), and two summaries of it: the one of
        #: reports, and the one whose sentences name arguments.
        self._read: tuple[list[tuple[int, int]], RunSummary, RunSummary] | None = None

    def __fspath__(self) -> str:
        """Return the file of the log, so that a run can be used like its path."""
        return os.fspath(self._path)

    @property
    def id(self) -> str:
        """The run's name, for ``resume=`` and for the commands."""
        return self._path.parent.name

    @property
    def directory(self) -> Path:
        """The directory of the run."""
        return self._path.parent

    @property
    def summary(self) -> RunSummary:
        """All judged cells and summarised models, as in reports, with arguments in
        place of options. Raises RunLogError if the log's rows were changed after the
        run wrote them.
        """
        return self._summaries()[1]

    def _summaries(self) -> tuple[RunSummary, RunSummary]:
        """Return the summary as reports show it, and as ``summary`` does."""
        written = self._written()
        if self._read is None or self._read[0] != written:
            with arguments.named(), self._log() as log:
                log.verify()
                found = summarise_log(log)
            self._read = written, found, in_python(found)
        return self._read[1:]

    def _written(self) -> list[tuple[int, int]]:
        """Return the times and sizes of the log's files, which change while a run adds
        to the log.
        """
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        found = (file.stat() for file in files if file.exists())
        return [(one.st_mtime_ns, one.st_size) for one in found]

    @arguments.checked()
    def verdicts(self) -> pandas.DataFrame:
        """Return one row for each cell. Raise OptionError if pandas is not installed.

        In a notebook, ``run`` alone shows a short table, the matrix.

        ``rate``, ``low``, ``high`` and ``chance`` are proportions from 0 to 1. So are
        the reference, the difference, its bounds and the margin, but for a verdict on a
        measure they are in its unit. Values that are unknown or do not apply are NA.

        * ``model``, ``protocol``, ``view``, ``variant``: the cell. ``design``: the rule
          for the number of subjects.
        * ``verdict`` (NA for a control, unless it is an ERROR), and its ``reason`` in a
          sentence. A cell that never began is an ERROR if Ctrl-C ended the run, and
          INCONCLUSIVE if its budget was spent. ``remarks``: doubts, and how the cell
          was run. ``validated``: whether the protocol's audit shows that it measures
          what it names (NA for dialogues).
        * ``rate`` with its 95 % interval, ``low`` to ``high``: each subject's share of
          passed trials, averaged over subjects.
        * ``reference``, ``reference_low``, ``reference_high``: the animals' rate with
          its 95 % interval. ``chance``: the rate of random moves or, in dialogues, of
          guesses. ``margin``: how much worse than the animals a model may be or, if
          the verdict is about chance, the lead over chance below which it FAILs.
        * ``difference``: the rate (or mean) minus the reference, or minus ``chance`` if
          the verdict is about chance. ``bound_low`` and
          ``bound_high`` are its one-sided 95 % bounds, so together a 90 % interval; the
          level is higher with ``familywise``. The verdict is about them: PASS if the
          lower one is above minus the ``margin`` (above 0, if they are about chance).
          For a measure of which less is better, the upper one must be below the margin;
          for a measure with ``better: alike``, both must be within it.
          With missing trials the bounds are a worst case, and do not decide.
          With one subject they (and ``low`` and ``high``) are about its trials only:
          they tell nothing about other subjects, and do not decide.
        * ``evidence_pass``, ``evidence_fail``: the largest evidence for each verdict
          after any subject but the first. After the last subject it may be smaller.
          ``p_value``: 1 divided by the larger of the two.
        * ``subjects``: how many have a trial that was run or tried.
          ``planned``, ``valid``, ``passed`` and ``missing``: numbers of trials that
          enter the verdict.
        * ``calls``: how often the model was called. ``cost``: what the calls cost in
          dollars, if a price is known.
        * ``measure``: what the verdict is about instead of the rate. ``mean`` with its
          95 % interval, ``mean_low`` to ``mean_high``: its mean over subjects.
        * ``ability`` with its interval, ``ability_low`` to ``ability_high``: 0 is the
          best that is possible without the ability, 1 is an ideal learner. Reports
          print a negative value as "< 0", and a model's mean counts it as 0.
          ``ability_rodent``: the animals. ``ability_bar``: where a PASS begins.
        """
        return frame_of(verdict_rows(self.summary))

    @arguments.checked()
    def trials(self) -> pandas.DataFrame:
        """Return one row for each trial, including missing ones.

        * ``model``, ``protocol``, ``view``, ``variant``, ``subject`` (from 0),
          ``trial`` (from 1), ``block``, ``session`` (from 1).
        * ``outcome``: how the trial ended, in a word of its protocol (``error`` is a
          wrong choice; a breakdown is in ``missing``). ``judged``: whether it enters
          the verdict. ``success``: NA if the trial does not enter the verdict, or the
          protocol declares no success. For learning curves, ``recorded_success`` has
          the success of all trials, and is NA in sessions in which nothing can succeed
          (probes, conditioning), which curves of reports leave out, too.
        * ``missing``: empty for a trial that was run, otherwise why its result is
          missing: ``infrastructure`` (a breakdown), ``budget``, ``not run``, or
          ``run anew`` (stops made the cell repeat too many trials). All columns below
          are then NA.
        * ``reward``: the sum of the trial's rewards. ``steps``: the number of steps.
          ``path_length``: the number of steps that moved the subject. ``bumps``: how
          often it ran into something. ``actions``: a letter for each step, ``F``,
          ``L``, ``R``, ``S``, or ``.`` if the subject was held and not asked.
        * ``forward_share``, ``turn_share``, ``stay_share``, ``repeat_share`` and
          ``action_entropy_bits``: statistics of the agent's own actions, without ``.``.
        """
        frame = self._table("trials")
        recorded = frame["success"]
        with self._log() as log:
            idle = {plan.key: plan.idle for plan in log.plans()}
        columns = (frame[one] for one in ("model", "protocol", "view", "variant"))
        sessions = frame["session"].fillna(0)  # Some missing trials have none.
        is_idle = [
            session in idle[tuple(key)]
            for *key, session in zip(*columns, sessions, strict=True)
        ]
        frame["success"] = recorded.where(frame["judged"])
        place = frame.columns.get_loc("success") + 1
        frame.insert(place, "recorded_success", recorded.mask(is_idle))
        return frame

    @arguments.checked()
    def calls(self) -> pandas.DataFrame:
        """Return one row for each call to a model, or none if only agents were run.

        * ``model``, ``protocol``, ``view``, ``variant``, ``subject``, ``trial``,
          ``call``: trials and calls count from 1.
        * ``asked``: the last message of the prompt. ``digest``: a digest of the whole
          prompt. ``reply`` and ``reasoning``: the model's texts. ``finish``: why the
          reply ended. ``fault``: why the call was refused, otherwise empty.
          ``served_by``: the model that the server says it used.
        * ``prompt_tokens``, which include ``cached_tokens`` and ``written_tokens``.
          ``completion_tokens``, which include ``reasoning_tokens``. Tokens that
          were not counted are NA.
        * ``cost``: in dollars, NA without a price. ``seconds``: duration. ``attempts``:
          how often the call was tried. ``malformed``: how many attempts were answered
          without a usable reply.
        * ``unparsed``: whether the agent found no action in the reply, when it reads
          the reply again. NA if that is impossible, and in dialogues.
        """
        frame = self.table("calls")
        with self._log() as log:
            unparsed = [
                one
                for plan in log.plans()
                for subject, _ in lives(log, plan)
                for one in _unparsed(log, self._plugins, plan, subject)
            ]
        pandas = tables.import_pandas()
        frame["unparsed"] = pandas.array(unparsed, dtype="boolean")
        return frame

    @arguments.checked()
    def journal(self) -> pandas.DataFrame:
        """Return one row for each entry of the journal. Its ``kind`` is ``started``,
        ``error``, ``warning``, ..., or ``traceback`` (its ``text`` is the traceback of
        an error in an agent or a plugin).

        ``print(*run.journal().query("kind == 'traceback'").text)`` prints all of them.
        """
        with self._log() as log:
            entries = log.journal()
        said = (replace(one, text=arguments.in_python(one.text)) for one in entries)
        return _frame([[*astuple(one)] for one in said], JOURNAL)

    @arguments.checked()
    def table(self, name: str, *, observations: bool = False) -> pandas.DataFrame:
        """Return a table of ``cheesebench export``: trials (as ``trials()``), values,
        steps, events or calls. Raise UnknownNameError for any other name.

        With ``observations``, each step has the observation that follows it.
        """
        return self.trials() if name == "trials" else self._table(name, observations)

    def _table(self, name: str, observations: bool = False) -> pandas.DataFrame:
        with self._log() as log:
            frame = table_frame(log, self._plugins, name, observations)
        # A function that replies need not count tokens. Its zeros are no counts.
        if name == "calls":
            counts = frame.columns[frame.columns.str.endswith("_tokens")]
            uncounted = frame[["prompt_tokens", "completion_tokens"]].eq(0).all(axis=1)
            frame[counts] = frame[counts].mask(uncounted)
        return frame

    @arguments.checked(view=arguments.TEXT)
    def trial(
        self,
        protocol: str | None = None,
        subject: int = 0,
        trial: int = 1,
        *,
        model: str | None = None,
        view: str | None = None,
        variant: str | None = None,
    ) -> PlayedTrial:
        """Return one trial, which a notebook shows as a film. Subjects count from 0,
        trials from 1.

        ``protocol``, ``model``, ``view`` and ``variant`` name the cell; each is needed
        only if the run has several. Without ``variant``, a plain cell goes before its
        controls (``variant="control=memoryless"``), as its title says. Raise
        UnknownNameError for a name that no cell has, and OptionError if several cells
        fit, or the trial is not recorded.
        """
        wanted = {
            "protocol": protocol,
            "model": model,
            "view": view,
            "variant": variant,
        }
        with self._log() as log:
            plan = _cell(
                log.plans(),
                {name: value for name, value in wanted.items() if value is not None},
            )
            life = [
                record for record in log.trials(plan, subject) if not record.missing
            ]
            record = next((one for one in life if one.trial == trial - 1), None)
            if record is None:
                whole = subject in log.completed_subjects(plan)
                why = _why_stopped(log, plan, subject, trial) or _why_none(
                    plan, subject, trial, len(life), whole, self._resuming()
                )
                raise OptionError(
                    f"There is no trial {trial} of subject {subject} in {plan.label}: {why}."
                )
        return PlayedTrial(self._path, self._plugins, plan, record)

    @arguments.checked()
    def report(self, format: str = "markdown") -> str:
        """Return the report: markdown, text, json, html, or a format of a plugin. Its
        sentences name arguments where those of the commands name options. Raise
        UnknownNameError for any other format.
        """
        with self._log() as log:
            found = self._plugins.report(format, self._summaries()[0], log)
        suffix = self._plugins.reporter(format).suffix
        return Shown(arguments.report_in_python(found, suffix))

    @arguments.checked()
    def html(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the HTML report, with a player for trials, and return its path. By
        default the file is ``report.html`` in the run's directory. Raise OptionError if
        the file cannot be written.
        """
        target = inside(self.directory, "report.html") if path is None else Path(path)
        return _written(target, self.report("html"))

    def __repr__(self) -> str:
        more = [*self._too_few(), *self._controls(), *self._cut_off()]
        parts = [*self._gates(), *(one.removesuffix(".") for one in more)]
        said = "; ".join((*parts, *self._broken())) or "no cell was run"
        return printable(f"<Run {self.id}: {said}>")

    def _repr_markdown_(self) -> str:
        """Show the matrix in a notebook, and the next step if trials were lost."""
        shown = matrix_of(self._plugins, self.summary)
        lost = [one for one in self.summary.cells if one.has_failed_trials]
        next_step = [self._next_step(lost)] if lost else []
        below = [
            *self._too_few(),
            *self._controls(),
            *self._cut_off(),
            *next_step,
        ]
        return "\n".join([shown, *(f"{one}\n" for one in below)]) if below else shown

    def _too_few(self) -> list[str]:
        """Return which undecided cells could not PASS with so few subjects, and which
        designs never give a PASS.
        """
        cells = self.summary.cells
        plans = [one.plan for one in cells if one.verdict == "INCONCLUSIVE"]
        plain = [one for one in plans if not one.control]
        designs = dict.fromkeys(one.design for one in plain if not one.claims)
        said = [f"Design '{one}' never gives a PASS or a FAIL." for one in designs]
        return [*filter(None, [Question.too_few(plain)]), *said]

    def _controls(self) -> list[str]:
        """Return the results of the controls (only their number if there are many),
        because the matrix does not show them, and where to find them.
        """
        found = [
            f"{one.plain.plan.label} with control={one.control.plan.control} ({one.plain.plan.model}): {one.comparison.reason}"
            for one in self.summary.controls
        ]
        if not found:
            return []
        shown = found if len(found) <= MOST_CONTROLS else [f"{len(found)} controls."]
        model = self.summary.controls[0].plain.plan.model
        is_alone = all(one.plan.model == model for one in self.summary.cells)
        call = "compare(run)" if is_alone else f"compare(run, models=({model!r}, None))"
        whose = "controls" if is_alone else f"the controls of {model}"
        return [*shown, f"{call} tests {whose}; run.verdicts() has them, too"]

    def _broken(self) -> list[str]:
        """Return sentences on the cells that are an ERROR, or in which trials failed
        for technical reasons: the reason and, if trials failed, the next step. Cells
        with the same words share them.
        """
        found: dict[str, list[str]] = {}
        for one in self.summary.cells:
            if one.has_failed_trials or one.verdict == "ERROR":
                more = f" {self._next_step([one])}" if one.has_failed_trials else ""
                cells = found.setdefault(f"{one.reason}{more}", [])
                cells.append(f"{one.plan.label} ({one.plan.model})")
        return [f"{', '.join(cells)}: {said}" for said, cells in found.items()]

    def _cut_off(self) -> list[str]:
        """Return how many cells the budget, or Ctrl-C, left unfinished, the limit that
        was reached, what the rest needs, and the next step.
        """
        cells = self.summary.cells
        cut = [one for one in cells if one.is_cut_off]
        if not cut:
            return []
        are = "is" if len(cut) == 1 else "are"
        why, more = self._larger_budgets(cut)
        return [
            f"{len(cut)} of {plural(len(cells), 'cell')} {are} unfinished: {why}: "
            f"{self._resuming(more)}."
        ]

    def _larger_budgets(self, cut: Sequence[CellResult]) -> tuple[str, str]:
        """Return why the budget cut cells off, with what they need, and the arguments
        that give them that.
        """
        found = {
            limit[0]: (limit[1], limit[2])
            for one in cut
            for limit in _LIMIT.finditer("; ".join(one.causes))
        }
        budgets = dict(found.values())
        counted = {name: float(of) for name, of in budgets.items() if name in _COUNTED}
        with self._log() as log:
            asking = [one for one in cut if one.plan.agent]
            larger, needed = larger_budgets(log, counted, asking, self._plugins)
        needed = arguments.in_python(needed)
        why = "; ".join(found) or "some trials were not run"
        how = f"To continue{_WITH[min(2, len(larger))]}"
        more = "".join(f", {name}={of}" for name, of in (budgets | larger).items())
        return f"{why}. {needed}{' ' * bool(needed)}{how}", more

    def _next_step(self, lost: Sequence[CellResult]) -> str:
        how = f"{self._resuming()} continues the run"
        if all(one.lost_for_good or one.outcomes.get("run anew") for one in lost):
            how = "start a new run, because this one would lose the same trials"
        return f"run.journal() has the details; {how}."

    def _resuming(self, more: str = "") -> str:
        """Return the call that continues the run from here."""
        results = self.directory.absolute().parent
        usual = Path(str(BY_KEY["results"].default)).absolute()
        place = "" if results == usual else f", results={_from_here(results)!r}"
        given = ", plugins=[...]" if self._plugins.strangers() else ""
        return f"cheesebench.run(resume='{self.id}'{place}{more}{given})"

    def _gates(self) -> list[str]:
        return [f"{one.model} in {one.view} {one.gate}" for one in self.summary.models]

    @contextmanager
    def _log(self) -> Iterator[RunLog]:
        with RunLog.open_read_only(self._path) as log:
            yield log


@arguments.checked()
def open_run(
    run: str | os.PathLike[str], results: str | os.PathLike[str] | None = None
) -> Run:
    """Open an existing run by its id in ``results``, its directory or its file.

    ``results`` is the directory of the runs (``results`` by default). The run may still
    be going on. Raise RunLogError, with a suggestion, if there is no such run, and for
    a file that is not a run's log.
    """
    path = locate(Path(results or str(BY_KEY["results"].default)), os.fspath(run))
    RunLog.open_read_only(path).close()  # Raise RunLogError for other files.
    return Run(path)


def _from_here(directory: Path) -> str:
    """Return a directory, relative to the working directory if it is inside it."""
    here = Path.cwd()
    inside_it = directory.is_relative_to(here)
    return str(directory.relative_to(here) if inside_it else directory)


def _why_stopped(log: RunLog, plan: CellPlan, subject: int, trial: int) -> str:
    """Return why an error stopped a trial, or "" if none did."""
    begun = f"stopped in trial {trial}: "
    causes = [
        one.text.removeprefix(begun).rstrip(".")
        for one in log.journal(plan, "error")
        if one.subject == subject and one.text.startswith(begun)
    ]
    if not causes:
        return ""
    return (
        f"it was begun, but did not end ({causes[-1]}). Its steps are not kept, and neither it nor a later trial of this "
        "subject has a record. run.journal() has what happened"
    )


def _why_none(
    plan: CellPlan, subject: int, trial: int, run: int, whole: bool, resuming: str
) -> str:
    """Return why a subject lacks a trial. ``run`` is how many of its trials were run,
    ``whole`` whether these are all, and ``resuming`` the call that continues the run.
    """
    if subject not in range(plan.subjects):
        most = plan.subjects - 1
        return f"the cell has {f'subjects 0 to {most}' if most else 'only subject 0'}"
    if whole or trial not in range(1, plan.trials + 1):
        most = run if whole else plan.trials
        return f"its trials are 1 to {most}" if most > 1 else "it has only trial 1"
    return f"it was not run. To continue an unfinished run, call {resuming}"


def _cell(plans: list[CellPlan], wanted: dict[str, str]) -> CellPlan:
    """Return the selected cell. Raise UnknownNameError for a name that no cell has, and
    OptionError if no cell was run, or several cells fit.
    """
    found = _matching(plans, wanted)
    plain = [plan for plan in found if not plan.control]
    if len(plain or found) == 1:
        return (plain or found)[0]
    if not found:
        raise OptionError("No cell was run, so there is no trial.")
    several = {
        name: list(dict.fromkeys(str(getattr(plan, name)) for plan in found))
        for name in ("protocol", "model", "view", "variant")
    }
    name, values = next(
        (name, values) for name, values in several.items() if len(values) > 1
    )
    raise OptionError(f"Which cell? Give {name}= as well, one of {', '.join(values)}.")


def _matching(plans: list[CellPlan], wanted: Mapping[str, str]) -> list[CellPlan]:
    candidates = plans
    for name, value in wanted.items():
        known = {str(getattr(plan, name)) for plan in candidates}
        if value not in known:
            named = known - {""}
            raise UnknownNameError(f"{name} in this run called", value, named)
        candidates = [plan for plan in candidates if str(getattr(plan, name)) == value]
    return candidates


Names = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

#: Options that only a pytest session has. They are about its exit code, or about what
#: it reports at its end.
FOR_TESTS = frozenset(
    {"compare", "compare_fail", "exit_zero", "film", "html", "inconclusive", "markdown"}
)
#: All other options, by argument name.
SETTINGS = {
    arguments.name_of(option.key): option
    for option in OPTIONS
    if option.key not in FOR_TESTS
}


@arguments.checked()
def run(
    models: Names = (),
    protocols: Names = (),
    *,
    design: str | None = None,
    subjects: int | None = None,
    seed: int | None = None,
    view: Names = (),
    results: str | os.PathLike[str] | None = None,
    plugins: Iterable[object] | AgentSpec | BackendSpec = (),
    progress: bool | Callable[[str], None] | None = None,
    resume: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Run:
    """Run models through protocols, wait until every cell is finished, and return the
    run.

    The run writes the same log as ``pytest --model``: the same seed gives the same
    worlds. Ctrl-C (or the stop button of a notebook) stops it; finished trials are
    kept, and ``cheesebench.run(resume=ID)`` continues it. ``cheesebench.plan``
    takes the same options and plugins.

    Parameters:
        models: One name or several, as for ``--model``. With ``resume``, those of the
            run by default.
        protocols: Names, files or directories; by default those of the resumed run, the
            protocols in ``CHEESEBENCH_PROTOCOLS`` or, if it is not set, the nine
            paradigms.
        design: How many subjects and trials (``--design``). By default a language
            model has ``sequential``: subjects until a verdict is decided, 120 at most.
            An agent has ``cohort``: 20 subjects, with which even an agent as good as
            the animals seldom passes (``plan`` says how often). For a verdict, give it
            ``sequential``, too.
        subjects: Number of subjects of each cell, instead of the design's; with the
            design ``sequential``, the most.
        seed: Seed of the run; by default it is drawn
            (``run.summary.manifest["options"]["seed"]``).
        view: One view or several, instead of the design's own.
        results: Directory of the runs, ``results`` by default.
        plugins: An agent (``AgentSpec``) or a backend (``BackendSpec``), or a list of
            these and of modules or objects with hooks (views, ...), in addition to what
            is installed.
        progress: Whether to show progress, or a function that is called with each
            progress line; by default a terminal and a notebook show progress.
        resume: The run to continue: its id in ``results``, its directory or file, or a
            ``Run``, whose plugins are then used unless others are given.
        options: Any other option of a run by its name in Python: ``max_cost=5``,
            ``control="blind"``, ... (``models_file`` is ``--models``);
            ``help(cheesebench.run)`` ends with a list.

    Raises:
        CheeseBenchError: For a mistake in the arguments, before anything is run. The
            message names a remedy.
    """
    try:
        work = _work(
            models,
            protocols or None,
            view=view or None,
            plugins=plugins,
            progress=progress,
            design=design,
            subjects=subjects,
            seed=seed,
            results=results,
            resume=resume,
            **options,
        )
    except KeyboardInterrupt:  # Plugins are loaded here.
        raise KeyboardInterrupt(_NOTHING) from None
    return work.do()


run.__doc__ = f"{run.__doc__}\n    Options:\n" + "\n".join(
    f"        {name}: {arguments.in_python(option.help)}"
    for name, option in SETTINGS.items()
    if name not in inspect.signature(run).parameters
)


async def run_async(
    models: Names = (), protocols: Names | None = None, **options: Any
) -> Run:
    """Do the same as ``run``, as a coroutine. Cancelling it stops the run."""
    work = _work(models, protocols, **options)
    task = asyncio.ensure_future(asyncio.to_thread(work.do))
    try:
        with arguments.named():
            await _over(task)
            return task.result()
    except asyncio.CancelledError:
        work.stopped.set()
        # Before the run has begun, a server may be loading its model.
        await _over(task, math.inf if work.is_open else 3.0)
        task.add_done_callback(lambda ended: ended.exception())
        raise _CancelledError(work.interrupted) from None


#: Seconds between two times that ``run_async`` wakes the event loop. The signal handler
#: of a notebook cancels a task without waking the loop.
_TICK = 0.2


class _CancelledError(asyncio.CancelledError):
    """A run was cancelled. A notebook shows the line, and what is left of the run."""

    _render_traceback_ = OptionError._render_traceback_


_CancelledError.__name__ = "CancelledError"


async def _over(task: asyncio.Future[Any], seconds: float = math.inf) -> None:
    """Wait for the end of a task, but no longer than ``seconds``."""
    end = time.monotonic() + seconds
    while not task.done() and time.monotonic() < end:
        await asyncio.wait({task}, timeout=_TICK)


@arguments.checked()
def _work(
    models: Names = (),
    protocols: Names | None = None,
    *,
    view: Names | None = None,
    plugins: Iterable[object] | AgentSpec | BackendSpec = (),
    progress: bool | Callable[[str], None] | None = None,
    resume: str | os.PathLike[str] | None = None,
    **options: Any,
) -> _Work:
    if resume is not None:
        options |= _named_run(resume, options.get("results"))
    given = given_options(models, protocols or (), view or (), **options)
    return _Work(given, plugins_with(plugins, resume), teller(progress))


def _named_run(
    run: str | os.PathLike[str], results: str | os.PathLike[str] | None
) -> dict[str, str | os.PathLike[str] | None]:
    """Return the options that name a run to continue: the name that was given, or those
    for a ``Run``, a directory or a file.
    """
    if isinstance(run, str) and not {"/", os.sep} & {*run}:
        return {"resume": run}
    found = open_run(run, results).directory
    if results is not None and Path(results).absolute() != found.parent.absolute():
        raise OptionError(
            f"--results {os.fspath(results)}: the run to resume is in {found.parent}. Remove --results."
        )
    return {"resume": found.name, "results": found.parent}


def plugins_with(plugins: Any, run: object = None) -> PluginManager:
    """Return the installed plugins and the given ones or, if none are given, the
    plugins of ``run`` (if it is a ``Run``).
    """
    given = tuple(plugins)
    if isinstance(run, Run) and not given:
        return run._plugins
    manager = PluginManager()
    for number, plugin in enumerate(given):
        _register(manager, f"plugins[{number}]", plugin)
    return manager


#: Matches a valid name of an agent or a backend. It has no signs that separate names.
_CALLED = re.compile(r"[^\s/:,]+")


def _register(manager: PluginManager, name: str, plugin: Any) -> None:
    """Register a plugin, an agent or a backend. Raise OptionError for an object without
    a hook, for an agent or a backend whose name cannot be written, and for an agent, a
    backend or a view whose name is taken.
    """
    if isinstance(plugin, AgentSpec | BackendSpec) and not _CALLED.fullmatch(
        str(plugin.name)
    ):
        raise OptionError(
            f"{name}: {plugin.name!r} cannot be written as the name of a model. Use letters, digits and hyphens."
        )
    if isinstance(plugin, AgentSpec):
        plugin = SimpleNamespace(cheesebench_agents=lambda agent=plugin: [agent])
    elif isinstance(plugin, BackendSpec):
        plugin = SimpleNamespace(cheesebench_backends=lambda backend=plugin: [backend])
    known = _clashes(manager)
    manager.register(plugin, None if hasattr(plugin, "__name__") else name)
    for kind, taken in _clashes(manager) - known:
        raise OptionError(
            f"{name}: there is another {kind} '{taken}', and reports could not tell them apart. Give yours a name of "
            "its own."
        )
    if not manager.get_hookcallers(plugin):
        remedy = "Give an AgentSpec, a BackendSpec, or an object with a function such as cheesebench_agents."
        if isinstance(plugin, type):
            remedy = arguments.of_class(plugin)
        elif callable(plugin):
            remedy = arguments.of_function(plugin)
        raise OptionError(
            f"{name}={shown(plugin)} has no hook, so it supplies nothing. {remedy}"
        )


def _clashes(manager: PluginManager) -> set[tuple[str, str]]:
    """Return the kinds and names that different agents, backends or views share."""
    hook = manager.hook
    supplied = {
        "agent": hook.cheesebench_agents,
        "agent for models": hook.cheesebench_model_agents,
        "backend": hook.cheesebench_backends,
        "view": hook.cheesebench_views,
    }
    found: dict[tuple[str, str], Any] = {}
    return {
        (kind, one.name)
        for kind, hooked in supplied.items()
        for one in manager.supplied(hooked)
        if found.setdefault((kind, one.name), one) != one
    }


class _StoppedError(Exception):
    """The run was cancelled."""


_OVER = "Nothing was left to run in '{}': no agent or model was asked.\n"
_STOPPING = (
    "\nStopping: calls in flight have 5 seconds to arrive (stop again to leave them).\n"
)
_NOTHING = "Interrupted before anything was run, so no run was kept."


class _Work:
    """One call of ``run``."""

    def __init__(
        self,
        given: Given,
        plugins: PluginManager,
        tell: Callable[[str], None],
    ) -> None:
        self._given = given
        self._plugins = plugins
        self._tell = tell
        self.stopped = threading.Event()
        #: Whether the run has begun.
        self.is_open = False
        #: What is left of the run if it is interrupted now.
        self.interrupted = _NOTHING

    def do(self) -> Run:
        """Run everything, write the run's report.md, and return the run."""
        try:
            work, path = self._run()
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(str(error) or self.interrupted) from None
        found = Run(path, self._plugins)
        for said in (*found._broken(), *found._cut_off()):
            self._tell(f"{said}\n")
        write_whole(path.parent / "report.md", found.report())
        with found._log() as log:
            for said in work.tell_finished(log, found.summary):
                self._tell(f"{said}\n")
        return found

    def _run(self) -> tuple[ModelRun, Path]:
        """Run everything. Return the run, which is closed, and the file of its log."""
        given, plugins, here = self._given, self._plugins, Path.cwd()
        values = given.resolve()
        earlier = read_earlier(
            plugins, here / values.results, values.resume, values.model or ()
        )
        if earlier.existing is not None and not values.protocols:
            with RunLog.open_read_only(earlier.existing) as log:
                names = dict.fromkeys(plan.protocol for plan in log.plans())
            given = given.filled_in(Origin.MANIFEST, protocols=list(names))
        settings = read_settings(given, plugins, here, earlier, usual_protocols())
        work = ModelRun(
            settings, plugins, earlier, self._tell, check=self._check_wanted
        )
        try:
            cells = work.of_shard(list(settings.planned(work.catalogue)))
            work.open(cells)
            assert work.log is not None
            path = work.log.path
            is_over = earlier.existing is not None and work.is_complete
            driver = work.session(cells)
            with work.nothing_left_behind():
                self._check_wanted()
                driver.connect()
                self._check_wanted()
            name, self.is_open = work.log.directory.name, True
            self.interrupted = (
                f"Run '{name}' was interrupted; finished trials are kept. "
                f"{Run(path, plugins)._resuming()} continues it."
            )
            driver.start()
            self._wait(work, cells)
            if is_over:
                self._tell(_OVER.format(work.log.directory.name))
        except (KeyboardInterrupt, _StoppedError):
            if self.is_open and settings.language:
                self._tell(_STOPPING)
            raise
        finally:
            work.close()
        return work, path

    def _check_wanted(self) -> None:
        if self.stopped.is_set():
            raise _StoppedError

    def _wait(self, work: ModelRun, cells: Iterable[Cell]) -> None:
        tally = Tally(work, [plan for plan, _ in cells], work.recorded)

        def waiting(_: object) -> None:
            self._check_wanted()
            self._tell(tally.line())

        for plan, _ in cells:
            work.wait(plan, waiting)
        self._tell(tally.line(fresh=True) + "\n")


def given_options(
    models: Names, protocols: Names, view: Names, **options: Any
) -> Given:
    """Return the options given to a function, completed from a profile if one is named.
    Raise CheeseBenchError for an unknown name, an invalid value, or an invalid profile.
    """
    profile = options.pop("profile", None)
    values = {
        "models": names_of(models),
        "protocols": names_of(protocols),
        "view": names_of(view),
        **options,
    }
    typed: dict[str, Any] = {}
    for name, value in values.items():
        option = SETTINGS.get(name)
        if option is None:
            raise _no_option(name)
        if value is not None and not _is_empty(value):
            typed[option.key] = _typed(option, value)
    given = Given(typed)
    if profile is None:
        return given
    found = read_profile(str(profile), find_file(Path.cwd()))
    own = {
        key: _typed(BY_KEY[key], value)
        for key, value in found.items()
        if key not in FOR_TESTS
    }
    return given.filled_in(Origin.PROFILE, **own)


#: What to do instead, by what looks like an option of a run.
_INSTEAD = {
    "trials": "The design sets the trials: design='smoke' has few.",
    "html": "Call run.html(PATH) afterwards.",
    "markdown": "Call run.report() afterwards.",
    "compare": "Call cheesebench.compare(run, BASELINE) afterwards.",
    "film": "Call run.trial(PROTOCOL).film(PATH) afterwards.",
}


def _no_option(name: str) -> OptionError:
    known = "only for pytest" if name in FOR_TESTS else "not an option of a run"
    hint = did_you_mean(name, SETTINGS).strip() or "Remove it."
    return OptionError(f"{name}= is {known}. {_INSTEAD.get(name, hint)}")


def names_of(given: Names) -> list[str]:
    return (
        [os.fspath(given)]
        if isinstance(given, (str, os.PathLike))
        else [os.fspath(one) for one in given]
    )


def _is_empty(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


def _typed(option: Option, value: Any) -> Any:
    if not option.repeatable:
        return _typed_one(option, value)
    several = value if isinstance(value, (list, tuple)) else [value]
    if option.key.endswith("_option") and isinstance(value, Mapping):
        several = [f"{name}={one}" for name, one in value.items()]
    return [_typed_one(option, one) for one in several]


def _typed_one(option: Option, value: Any) -> Any:
    if isinstance(value, str) and value in option.words:
        return value
    name, kind = arguments.name_of(option.key), arguments.kind_of(option)
    found = arguments.read(name, kind, value)
    if option.choices and found not in option.choices:
        raise OptionError(
            f"{arguments.name_of(option.key)}={value!r}: it must be one of {', '.join(option.choices)}."
        )
    return found


def teller(progress: bool | Callable[[str], None] | None) -> Callable[[str], None]:
    """Return the function that shows progress lines, with arguments in place of
    options; see ``run``.
    """
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    shown = progress if callable(progress) else _Line() if progress else None
    return lambda line: shown(arguments.in_python(line)) if shown else None


class _Line:
    """One line on stderr, overwritten whenever it changes."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, line: str) -> None:
        text = printable(redact(line))
        if text != self._said:
            line = text.rstrip("\n")
            end = text[len(line) :]
            wiped = line.ljust(len(self._said))
            print(f"\r{wiped}{end}", end="", file=sys.stderr, flush=True)
            self._said = "" if end else line
