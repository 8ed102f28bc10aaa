"""Calls, tokens and seconds per trial in earlier runs, read from their logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import FILE_NAME
from cheesebench.experiment.records import CallTotals

#: Maximum number of runs to read, latest first.
MOST_RUNS = 50


@dataclass(frozen=True, slots=True)
class Earlier:
    """Trials of earlier runs of one protocol in one view, with the totals of their calls.

    ``runs`` are their ids; ``models`` the models used: other ones if the planned model has not been run yet.
    """

    runs: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    trials: int = 0
    totals: CallTotals = field(default_factory=CallTotals)

    def __add__(self, other: Earlier) -> Earlier:
        """Return the sum of both."""
        return Earlier(
            tuple(dict.fromkeys((*self.runs, *other.runs))),
            tuple(dict.fromkeys((*self.models, *other.models))),
            self.trials + other.trials,
            self.totals + other.totals,
        )


class EarlierRuns:
    """The readable runs in a directory; without one, those that are added."""

    def __init__(self, results: Path | None = None) -> None:
        self._found: dict[tuple[str, str, str], Earlier] = {}
        logs = [] if results is None else results.glob(f"*/{FILE_NAME}")
        paths = sorted(logs, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in paths[:MOST_RUNS]:
            try:
                with RunLog.open_read_only(path) as log:
                    self.add(log, path.parent.name)
            except RunLogError:
                continue  # another version, or damaged: skip it

    def add(self, log: RunLog, run: str) -> None:
        """Add a run of this name."""
        for place, earlier in _cells(log, run):
            self._found[place] = self._found.get(place, Earlier()) + earlier

    def has(self, model: str, protocol: str, view: str) -> bool:
        """Return whether there are figures of this very model."""
        return (model, protocol, view) in self._found

    def of(self, model: str, protocol: str, view: str) -> Earlier | None:
        """Return this model's figures, or else those of all others; None if there are none."""
        own = self._found.get((model, protocol, view))
        if own is not None:
            return own
        others = [found for (_, *place), found in self._found.items() if place == [protocol, view]]
        return sum(others, Earlier()) if others else None


def _cells(log: RunLog, run: str) -> Iterator[tuple[tuple[str, str, str], Earlier]]:
    calls = log.calls.by_cell()
    for plan in log.plans():
        if plan.variant.settings or plan.variant.control or plan.key not in calls:
            continue
        trials = sum(not record.missing for life in log.trials_by_subject(plan) for record in life)
        if trials:
            yield (plan.model, plan.protocol, plan.view), Earlier((run,), (plan.model,), trials, calls[plan.key].totals)
