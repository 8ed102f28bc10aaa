"""Reports: a run summary rendered for people and for programs."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.hookspecs import hookimpl

if TYPE_CHECKING:
    from cheesebench.interfaces import Reporter
    from cheesebench.statistics import RunSummary

__all__ = ["ModuleReporter", "cheesebench_reporters"]


@dataclass(slots=True)
class ModuleReporter:
    """A reporter whose module (with a function ``render``) is imported when the first report is written."""

    name: str
    suffix: str
    module: str

    def render(self, summary: RunSummary) -> str:
        """Return the report's text."""
        text: str = importlib.import_module(self.module).render(summary)
        return text


@hookimpl
def cheesebench_reporters() -> Iterable[Reporter]:
    """Return the built-in report formats."""
    return (
        ModuleReporter("markdown", ".md", "cheesebench.reports.markdown"),
        ModuleReporter("json", ".json", "cheesebench.reports.json_report"),
        ModuleReporter("text", ".txt", "cheesebench.reports.text"),
    )
