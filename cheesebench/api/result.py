"""A recorded run, for Python and notebooks: its verdicts, trials and calls, and a player for every trial."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.api.frames import frame_of, table_frame, verdict_rows
from cheesebench.api.player import PlayedTrial
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.confined import inside
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.film import printable
from cheesebench.options import BY_KEY
from cheesebench.plugin_manager import PluginManager
from cheesebench.whole_files import write_whole

if TYPE_CHECKING:
    import pandas

    from cheesebench.experiment.records import CellPlan
    from cheesebench.statistics import RunSummary


class Run:
    """A run, read from its log. Everything is computed from the log when you ask for it."""

    def __init__(self, path: Path, plugins: PluginManager | None = None) -> None:
        """``path`` is the file of the log; ``plugins`` must have the views and families of its protocols."""
        self._path = path
        self._plugins = plugins or PluginManager()

    @property
    def id(self) -> str:
        """The run's name, for ``resume=`` and for the commands."""
        return self._path.parent.name

    @property
    def directory(self) -> Path:
        """The directory of the run."""
        return self._path.parent

    @cached_property
    def summary(self) -> RunSummary:
        """Every cell judged and every model summarised, as reports have it."""
        from cheesebench.statistics import summarise_subjects

        with self._log() as log:
            return summarise_subjects(
                log.manifest, log.plans(), log.trials_by_subject, log.calls.by_cell(), log.causes()
            )

    def verdicts(self) -> pandas.DataFrame:
        """Return one row for each cell: verdict, rate with its 95 % interval, reference, difference, cost.

        Rates, bounds and margins are proportions (0 to 1). Raises OptionError where pandas is not installed.
        """
        return frame_of(verdict_rows(self.summary))

    def trials(self) -> pandas.DataFrame:
        """Return one row for each trial, including missing ones: the table ``trials`` of docs/run-log.md."""
        return self.table("trials")

    def calls(self) -> pandas.DataFrame:
        """Return one row for each call to a model; none where only agents were run."""
        return self.table("calls")

    def table(self, name: str, *, observations: bool = False) -> pandas.DataFrame:
        """Return a table of ``cheesebench export``: trials, values, steps, events or calls.

        ``observations`` adds to each step the observation after it.
        """
        with self._log() as log:
            return table_frame(log, self._plugins, name, observations)

    def trial(
        self,
        protocol: str | None = None,
        subject: int = 0,
        trial: int = 0,
        *,
        model: str | None = None,
        view: str | None = None,
        variant: str | None = None,
    ) -> PlayedTrial:
        """Return one trial, which plays itself in a notebook; subjects and trials count from 0.

        ``protocol``, ``model``, ``view`` and ``variant`` name the cell; each is needed only if the run has several.
        """
        wanted = {"protocol": protocol, "model": model, "view": view, "variant": variant}
        with self._log() as log:
            plan = _cell(log.plans(), {name: value for name, value in wanted.items() if value is not None})
            life = [record for record in log.trials(plan, subject) if not record.missing]
            record = next((one for one in life if one.trial == trial), None)
            if record is None:
                said = f"it has {len(life)} trials" if life else f"the cell has subjects 0 to {plan.subjects - 1}"
                raise OptionError(f"There is no trial {trial} of subject {subject} in {plan.label}: {said}.")
        return PlayedTrial(self._path, self._plugins, plan, record)

    def report(self, format: str = "markdown") -> str:
        """Return the report: markdown, text, json, html, or a format of a plugin."""
        with self._log() as log:
            return self._plugins.report(format, self.summary, log)

    def html(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the HTML report, with a player for every trial; return its path."""
        target = inside(self.directory, "report.html") if path is None else Path(path)
        write_whole(target, self.report("html"))
        return target

    def __repr__(self) -> str:
        return printable(f"<Run {self.id}: {'; '.join(self._gates()) or 'no cell was run'}>")

    def _repr_markdown_(self) -> str:
        """Show the matrix in a notebook."""
        return self._plugins.reporter("matrix").render(self.summary)

    def _gates(self) -> list[str]:
        return [f"{one.model} in {one.view} {one.gate}" for one in self.summary.models]

    @contextmanager
    def _log(self) -> Iterator[RunLog]:
        with RunLog.open_read_only(self._path) as log:
            yield log


def open_run(run: str | os.PathLike[str], results: str | os.PathLike[str] | None = None) -> Run:
    """Return a run that was made before, here or elsewhere: by its id in ``results``, its directory or its file.

    It may still be going on. Raises RunLogError, with a suggestion, if there is none.
    """
    return Run(locate(Path(results or str(BY_KEY["results"].default)), os.fspath(run)))


def _cell(plans: list[CellPlan], wanted: dict[str, str]) -> CellPlan:
    """Return the one cell that is meant. Raises UnknownNameError or OptionError."""
    candidates = plans
    for name, value in wanted.items():
        known = {str(getattr(plan, name)) for plan in candidates}
        if value not in known:
            raise UnknownNameError(f"{name} in this run called", value, known)
        candidates = [plan for plan in candidates if str(getattr(plan, name)) == value]
    plain = [plan for plan in candidates if not plan.control]
    if len(plain or candidates) == 1:
        return (plain or candidates)[0]
    if not candidates:
        raise OptionError("No cell was run, so there is no trial.")
    several = {
        name: list(dict.fromkeys(str(getattr(plan, name)) for plan in candidates))
        for name in ("protocol", "model", "view", "variant")
    }
    name, values = next((name, values) for name, values in several.items() if len(values) > 1)
    raise OptionError(f"Which trial? Give {name}= as well, one of {', '.join(values)}.")
