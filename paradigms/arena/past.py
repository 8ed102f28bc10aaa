"""How earlier trials of a subject ended, for expressions: language page, ``recent``."""

from __future__ import annotations

from cheesebench.paradigms.arena.evaluate import Function
from cheesebench.paradigms.arena.program import Program
from cheesebench.paradigms.arena.schedule import Noted
from cheesebench.protocol.expressions import Recent
from cheesebench.protocol.specification import MET


class Past:
    """Base class with the subject's earlier trials."""

    _program: Program
    outcome: str | None
    last: str | None
    block: str
    #: What the schedule is told of the trial.
    noted: Noted
    #: Of each ``Recent`` of the program, whether the last trials ended so.
    _past: tuple[tuple[bool, ...], ...]

    def success(self) -> bool | None:
        """Return whether the trial that has ended is a success, as ``ending`` does; None where nothing is one."""
        success = self._program.success
        return None if success is None else bool(success(self))

    def is_success(self) -> bool:
        """Return whether the trial that has ended is a success."""
        return bool(self.success())

    def recent(self, what: Recent) -> int:
        """Return how many of the last trials ended so; once a trial has ended, it is one of them."""
        return sum(self._past[self._program.recents[what]])

    def _close(self) -> None:
        """The trial has ended: it is the last one, and one of the recent ones."""
        self.last = self.outcome
        if self._program.recents:
            self._remember()
        self.noted = self.outcome, self.outcome
        if (criteria := self._program.criteria.get(self.block)) is not None:
            of_trial, of_repetition = criteria
            self.noted = self._as_noted(of_trial), self._as_noted(of_repetition)

    def _as_noted(self, criterion: Function | None) -> str | None:
        return self.outcome if criterion is None else MET if criterion(self) else None

    def _remember(self) -> None:
        """Note how the trial ended; success may depend on recent outcomes, which are noted first."""
        for noted in sorted(self._program.recents, key=lambda one: one.outcome is None):
            number = self._program.recents[noted]
            so = self.is_success() if noted.outcome is None else self.outcome == noted.outcome
            now = (*self._past[number], so)[-noted.trials :]
            self._past = (*self._past[:number], now, *self._past[number + 1 :])
