"""How far a whole run is: cells decided, verdicts, what it has cost, and how long it will take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cheesebench.experiment.records import CellPlan
from cheesebench.running.run import ModelRun
from cheesebench.statistics import Verdict, draw_sample, judge_sample

#: Seconds for which a look stays good: the log is read for each.
FRESH = 1.0
#: Seconds of running before which nobody can say how long it takes.
EARLY = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a run is at one moment."""

    decided: int
    cells: int
    verdicts: Counter[Verdict]
    trials: int
    """Trials that are written."""
    share: float
    """Part of the planned trials that is written, 0 to 1; looks that are still to come are not planned."""
    cost: float
    """Dollars so far."""
    left: float | None
    """Dollars left of the budget; None without one."""
    seconds: float | None
    """Seconds that it will still take at this pace; None where that cannot be said."""


class Tally:
    """Counts the verdicts of cells as they are decided; each is judged once."""

    def __init__(self, run: ModelRun, plans: Sequence[CellPlan]) -> None:
        self._run = run
        self._waiting = list(plans)
        self.cells = len(self._waiting)
        self._verdicts: Counter[Verdict] = Counter()
        self._done: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._first: float | None = None
        self._latest: tuple[float, Standing] | None = None

    def look(self, fresh: bool = False) -> Standing:
        """Return how far the run is, at most FRESH seconds ago (``fresh``: now)."""
        now = time.monotonic()
        if fresh or self._latest is None or now - self._latest[0] > FRESH:
            self._latest = now, self._count(now)
        return self._latest[1]

    def _count(self, now: float) -> Standing:
        run = self._run
        for plan in [plan for plan in self._waiting if run.is_over(plan)]:
            self._waiting.remove(plan)
            lives = run.trials_by_subject(plan)
            self._verdicts[judge_sample(plan, draw_sample(plan, lives)).verdict] += 1
            progress = run.progress(plan)
            self._done.update(done=progress.done, planned=progress.done)
        open_ones = [run.progress(plan) for plan in self._waiting]
        done = self._done["done"] + sum(one.done for one in open_ones)
        planned = self._done["planned"] + sum(max(one.done, one.planned) for one in open_ones)
        if self._first is None:
            self._first = done  # a resumed run has not earned these now
        share = done / planned if planned else 0.0
        gained, spent = done - self._first, now - self._begun
        seconds = spent / gained * (planned - done) if gained > 0 and spent > EARLY and self._waiting else None
        assert run.log is not None
        cost = run.log.calls.totals().cost if run.settings.language else 0.0
        most = run.settings.calls.limits.cost
        return Standing(
            decided=self.cells - len(self._waiting),
            cells=self.cells,
            verdicts=self._verdicts,
            trials=done,
            share=share,
            cost=cost,
            left=None if most is None else max(0.0, most - cost),
            seconds=seconds,
        )

    def line(self, fresh: bool = False) -> str:
        """Return all that as a line: ``4 of 9 cells: 3 PASS, 1 FAIL; $0.12, $4.88 left; 61 %, about 2 min left``."""
        now = self.look(fresh)
        counts = ", ".join(f"{now.verdicts[verdict]} {verdict}" for verdict in Verdict if now.verdicts[verdict])
        parts = [f"{now.decided} of {now.cells} cells{': ' if counts else ''}{counts}"]
        if now.cost or now.left is not None:
            parts.append(f"${now.cost:.2f}" + ("" if now.left is None else f", ${now.left:.2f} left"))
        if now.decided < now.cells:
            left = "" if now.seconds is None else f", about {duration(now.seconds)} left"
            parts.append(f"{now.share:.0%}{left}".replace("%", " %"))
        return "; ".join(parts)


def duration(seconds: float) -> str:
    """Return a duration in the unit that suits it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
