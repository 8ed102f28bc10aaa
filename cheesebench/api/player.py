"""One trial that plays itself in a notebook, and prints itself elsewhere."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cheesebench.errors import PluginError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import recorded_protocol
from cheesebench.film import film_strip, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.experiment.replay import Frame
    from cheesebench.plugin_manager import PluginManager

#: Height of the player in a notebook, in pixels.
HEIGHT = 720


@runtime_checkable
class TrialReporter(Protocol):
    """What the reporter ``html`` must have for trials in notebooks."""

    def render_trial(self, log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, trial: int) -> str:
        """Return a page with the player and this trial."""
        ...


class PlayedTrial:
    """One recorded trial; ``record`` is what is in the log."""

    def __init__(self, path: Path, plugins: PluginManager, plan: CellPlan, record: TrialRecord) -> None:
        """``path`` is the file of the run's log."""
        self._path = path
        self._plugins = plugins
        self.plan = plan
        self.record = record

    @property
    def frames(self) -> Sequence[Frame]:
        """What happened step by step: action, observation and reward; the first frame is the start."""
        with RunLog.open_read_only(self._path) as log:
            family = self._plugins.family(recorded_protocol(log, self.plan, self._plugins))
            wanted = {self.record.subject: {self.record.trial}}
            return next(iter(family.watch(log, self._plugins, self.plan, wanted))).frames

    def html(self) -> str:
        """Return a page of its own with the player."""
        reporter = self._plugins.reporter("html")
        if not isinstance(reporter, TrialReporter):
            raise PluginError("The plugin that registers the report format 'html' has no player.")
        with RunLog.open_read_only(self._path) as log:
            return reporter.render_trial(log, self._plugins, self.plan, self.record.subject, self.record.trial)

    def _repr_html_(self) -> str:
        """Show the player in a frame, which may run its own script and nothing else."""
        return (
            f'<iframe srcdoc="{html.escape(self.html())}" sandbox="allow-scripts" title="{html.escape(self._title())}" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<{self._title()}>"

    def __str__(self) -> str:
        return f"{self._title()}\n\n{film_strip(self.frames)}"

    def _title(self) -> str:
        one, plan = self.record, self.plan
        return printable(
            f"{plan.model} on {plan.label}: subject {one.subject}, trial {one.trial}, {one.outcome} "
            f"after {one.steps} steps"
        )
