"""The built-in report formats."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cheesebench.hookspecs import hookimpl

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.hookspecs import Reporter
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan
    from cheesebench.statistics import RunSummary
    from cheesebench.statistics.comparison import RunComparison

__all__ = ["ComparingReporter", "ModuleReporter", "cheesebench_reporters"]


@dataclass(slots=True)
class ModuleReporter:
    """A reporter that imports its module on first use; ``function`` renders a
    summary.
    """

    name: str
    suffix: str
    module: str
    function: str = "render"

    def render(self, summary: RunSummary) -> str:
        text: str = getattr(importlib.import_module(self.module), self.function)(
            summary
        )
        return text


@dataclass(slots=True)
class ComparingReporter(ModuleReporter):
    """A ``ModuleReporter`` that also renders comparisons, with the function of its name
    in ``reports.comparison``.
    """

    def render_comparison(self, comparison: RunComparison) -> str:
        text: str = getattr(
            importlib.import_module("cheesebench.reports.comparison"), self.name
        )(comparison)
        return text


class ModuleRunReporter(ModuleReporter):
    """A reporter whose module also has ``render_run``, for reports that show single
    trials.
    """

    __slots__ = ()

    def render_run(
        self, summary: RunSummary, log: RunLog, plugins: PluginManager
    ) -> str:
        text: str = importlib.import_module(self.module).render_run(
            summary, log, plugins
        )
        return text

    def render_trial(
        self,
        log: RunLog,
        plugins: PluginManager,
        plan: CellPlan,
        subject: int,
        trial: int,
    ) -> str:
        text: str = importlib.import_module(self.module).render_trial(
            log, plugins, plan, subject, trial
        )
        return text


class ModuleSubjectReporter(ModuleRunReporter):
    """A reporter whose module also has ``render_subject``, for one subject of a run
    that may be going on.
    """

    __slots__ = ()

    def render_runs(
        self, summary: RunSummary, logs: Sequence[RunLog], plugins: PluginManager
    ) -> str:
        """Return one page for several runs."""
        text: str = importlib.import_module(self.module).render_runs(
            summary, logs, plugins
        )
        return text

    def render_subject(
        self,
        log: RunLog,
        plugins: PluginManager,
        plan: CellPlan,
        subject: int,
        back: str = "",
    ) -> str:
        text: str = importlib.import_module(self.module).render_subject(
            log, plugins, plan, subject, back
        )
        return text


class ModuleFigureReporter(ModuleReporter):
    """A reporter whose module also has ``render_figures``, for several runs
    together.
    """

    __slots__ = ()

    def render_figures(
        self,
        runs: Sequence[tuple[RunSummary, RunLog]],
        plugins: PluginManager,
        **how: Any,
    ) -> Mapping[str, bytes]:
        files: Mapping[str, bytes] = importlib.import_module(
            self.module
        ).render_figures(runs, plugins, **how)
        return files


@hookimpl
def cheesebench_reporters() -> Iterable[Reporter]:
    return (
        ComparingReporter("markdown", ".md", "cheesebench.reports.markdown"),
        ComparingReporter(
            "json", ".json", "cheesebench.reports.comparison", "plain_json"
        ),
        ComparingReporter("text", ".txt", "cheesebench.reports.text"),
        ModuleReporter("badge", ".svg", "cheesebench.reports.matrix", "render_badge"),
        ModuleReporter(
            "comment", ".md", "cheesebench.reports.matrix", "render_comment"
        ),
        ModuleReporter("matrix", ".md", "cheesebench.reports.matrix"),
        ModuleFigureReporter("figures", ".md", "cheesebench.reports.figures"),
        ModuleSubjectReporter("html", ".html", "cheesebench.reports.html"),
    )
