"""The built-in report formats."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.hookspecs import hookimpl

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan
    from cheesebench.interfaces import Reporter
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.statistics import RunSummary
    from cheesebench.statistics.runs import RunComparison

__all__ = ["ComparingReporter", "ModuleReporter", "cheesebench_reporters"]


@dataclass(slots=True)
class ModuleReporter:
    """A reporter that imports its module (with a function ``render``) on first use."""

    name: str
    suffix: str
    module: str

    def render(self, summary: RunSummary) -> str:
        """Return the report's text."""
        text: str = importlib.import_module(self.module).render(summary)
        return text


@dataclass(slots=True)
class ComparingReporter(ModuleReporter):
    """A ``ModuleReporter`` that also renders comparisons, with the function of its name in ``reports.comparison``."""

    def render_comparison(self, comparison: RunComparison) -> str:
        """Return the comparison's text."""
        text: str = getattr(importlib.import_module("cheesebench.reports.comparison"), self.name)(comparison)
        return text


class ModuleRunReporter(ModuleReporter):
    """A reporter whose module also has ``render_run``, for reports that show single trials."""

    __slots__ = ()

    def render_run(self, summary: RunSummary, log: RunLog, plugins: PluginManager) -> str:
        """Return the report's text."""
        text: str = importlib.import_module(self.module).render_run(summary, log, plugins)
        return text

    def render_trial(self, log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, trial: int) -> str:
        """Return a page with one trial."""
        text: str = importlib.import_module(self.module).render_trial(log, plugins, plan, subject, trial)
        return text


class ModuleSubjectReporter(ModuleRunReporter):
    """A reporter whose module also has ``render_subject``, for one subject of a run that may be going on."""

    __slots__ = ()

    def render_subject(self, log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, back: str = "") -> str:
        """Return a page with the trials of one subject."""
        text: str = importlib.import_module(self.module).render_subject(log, plugins, plan, subject, back)
        return text


class ModuleFigureReporter(ModuleReporter):
    """A reporter whose module also has ``render_figures``, for several runs together."""

    __slots__ = ()

    def render_figures(
        self, summaries: Sequence[RunSummary], sizes: Mapping[str, float], formats: Sequence[str]
    ) -> Mapping[str, bytes]:
        """Return the content of each file by name."""
        files: Mapping[str, bytes] = importlib.import_module(self.module).render_figures(summaries, sizes, formats)
        return files


@hookimpl
def cheesebench_reporters() -> Iterable[Reporter]:
    """Return the built-in report formats."""
    return (
        ComparingReporter("markdown", ".md", "cheesebench.reports.markdown"),
        ComparingReporter("json", ".json", "cheesebench.reports.json_report"),
        ComparingReporter("text", ".txt", "cheesebench.reports.text"),
        ModuleReporter("badge", ".svg", "cheesebench.reports.badge"),
        ModuleReporter("comment", ".md", "cheesebench.reports.comment"),
        ModuleReporter("matrix", ".md", "cheesebench.reports.matrix"),
        ModuleFigureReporter("figures", ".md", "cheesebench.reports.figures"),
        ModuleSubjectReporter("html", ".html", "cheesebench.reports.html"),
    )
