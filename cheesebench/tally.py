"""Counts the progress of a run, and words the progress line."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.amounts import dollars, duration, percent
from cheesebench.statistics import Verdict, draw_sample, judge_sample

if TYPE_CHECKING:
    from cheesebench.model_run import ModelRun
    from cheesebench.records import CellPlan

#: The progress is counted again after this many seconds. Each count reads the log.
VALID_SECONDS = 1.0
#: No time is estimated before the run has lasted this many seconds.
EARLY_SECONDS = 5.0
#: No time is estimated before this share of the trials is finished.
EARLY_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The progress of a run at one moment."""

    decided: int
    cells: int
    verdicts: Counter[Verdict]
    controls: int = 0
    """Number of controls that are over. They have no verdict, unless it is ERROR."""
    unfinished: int = 0
    """Number of cells that the budget cut off, so that they may be continued."""
    trials: int
    """Number of finished trials."""
    share: float
    """Finished share of the planned trials, 0 to 1. Later sets of subjects are not
    planned yet.
    """
    cost: float
    """Cost so far, in dollars."""
    left: float | None
    """Rest of the budget, in dollars (None: there is no budget)."""
    seconds: tuple[float, float] | None
    """Seconds left at this pace: for the sets of subjects that are planned, and for all
    sets if no cell is decided early. None if unknown.
    """

    @property
    def verdicts_text(self) -> str:
        counted = self.verdicts
        counts = [f"{counted[one]} {one}" for one in Verdict if counted[one]]
        if self.controls:
            counts.append(f"{self.controls} control{'s' * (self.controls > 1)}")
        if self.unfinished:
            counts.append(f"{self.unfinished} unfinished")
        over = f"{self.decided} of {self.cells} cells"
        return f"{over}: {', '.join(counts)}" if counts else over

    @property
    def dollars_text(self) -> str:
        if not self.cost and self.left is None:
            return ""
        left = "" if self.left is None else f", {dollars(self.left)} left"
        return f"{dollars(self.cost)}{left}"


class Tally:
    """Counts the verdicts, trials and dollars of a run in progress. Each cell is judged
    once, when it is over.
    """

    def __init__(
        self, run: ModelRun, plans: Sequence[CellPlan], recorded: int = 0
    ) -> None:
        """``recorded`` is the number of trials that a resumed run had. Its unfinished
        subjects are replayed until that many trials are done.
        """
        self._run = run
        self._recorded = recorded
        self._waiting = list(plans)
        self.cells = len(self._waiting)
        self._verdicts: Counter[Verdict] = Counter()
        self._controls = 0
        self._unfinished = 0
        self._done_by_decided = 0
        self._begun = time.monotonic()
        self._first: int | None = None
        self._latest: tuple[float, Standing] | None = None

    def poll(self, fresh: bool = False) -> Standing:
        """Return the progress. It is at most VALID_SECONDS old, or new if ``fresh``."""
        now = time.monotonic()
        if fresh or self._latest is None or now - self._latest[0] > VALID_SECONDS:
            self._latest = now, self._count(now)
        return self._latest[1]

    def _count(self, now: float) -> Standing:
        self._judge_finished()
        done, planned = self._trials()
        if self._first is None:
            self._first = done  # Trials of earlier sessions do not count for the pace.
        cost, left = self._dollars()
        return Standing(
            decided=self.cells - len(self._waiting) - self._unfinished,
            cells=self.cells,
            verdicts=self._verdicts,
            controls=self._controls,
            unfinished=self._unfinished,
            trials=done,
            share=done / planned if planned else 0.0,
            cost=cost,
            left=left,
            seconds=self._seconds(done, planned, now - self._begun),
        )

    def _judge_finished(self) -> None:
        run = self._run
        for plan in [plan for plan in self._waiting if run.is_over(plan)]:
            self._waiting.remove(plan)
            lives = run.trials_by_subject(plan)
            found = judge_sample(plan, draw_sample(plan, lives))
            if found.is_cut_off:
                self._unfinished += 1
            elif found.verdict is None:
                self._controls += 1
            else:
                self._verdicts[found.verdict] += 1
            self._done_by_decided += run.progress(plan).done

    def _trials(self) -> tuple[int, int]:
        """Return the numbers of finished and planned trials."""
        running = [self._run.progress(plan) for plan in self._waiting]
        done = sum(one.done for one in running)
        planned = sum(max(one.done, one.planned) for one in running)
        return self._done_by_decided + done, self._done_by_decided + planned

    def _seconds(
        self, done: int, planned: int, spent: float
    ) -> tuple[float, float] | None:
        gained = done - (self._first or 0)
        is_early = spent <= EARLY_SECONDS or done < EARLY_SHARE * planned
        if gained <= 0 or is_early or not self._waiting:
            return None
        pace = spent / gained
        to_come = sum(self._run.progress(plan).to_come for plan in self._waiting)
        return pace * (planned - done), pace * to_come

    def _dollars(self) -> tuple[float, float | None]:
        """Return the cost of the run and the rest of its budget (None: no budget)."""
        run = self._run
        assert run.log is not None
        cost = run.log.calls.totals().cost if run.settings.language else 0.0
        most = run.settings.calls.limits.cost
        return cost, None if most is None else max(0.0, most - cost)

    @property
    def unreadable(self) -> str:
        """How many replies name no action, such as ``7 of 8 replies unreadable``, or ""
        if all replies name one.
        """
        language = self._run.language
        unreadable, read = (0, 0) if language is None else language.unreadable
        return f"{unreadable} of {read} replies unreadable" if unreadable else ""

    def line(self, fresh: bool = False) -> str:
        """Return the progress as a line, such as ``4 of 9 cells: 3 PASS, 1 FAIL; $0.12,
        $4.88 left; 61 %, about 2 min left``.
        """
        now = self.poll(fresh)
        parts = [now.verdicts_text, self.unreadable, now.dollars_text]
        if now.decided + now.unfinished < now.cells:
            left = "" if now.seconds is None else f", {time_left(*now.seconds)} left"
            replays = now.trials < self._recorded
            # Of the planned trials all may be done, but of the cells not.
            share = percent(min(round(now.share, 2), 0.99))
            parts.append(f"{'replaying, ' if replays else ''}{share}{left}")
        return "; ".join(filter(None, parts))


def time_left(least: float, most: float) -> str:
    """Return the time left in words: ``about 40 s``, or ``40 s to 12 min`` if the cells
    may need more sets of subjects.
    """
    few, many = (duration(max(1, math.ceil(one))) for one in (least, most))
    return f"about {few}" if few == many or most <= least else f"{few} to {many}"
