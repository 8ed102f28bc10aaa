"""What a run may cost: checked before every call. What is in flight then is finished."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.records import CallTotals

#: Seconds between two looks at what other processes have spent.
INTERVAL = 2.0


class BudgetSpentError(CheeseBenchError):
    """The run has spent what it may; unfinished trials are missing, with ``budget`` as the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a whole run: dollars, tokens (prompt and reply), minutes of this session. None: unlimited."""

    cost: float | None = None
    tokens: int | None = None
    minutes: float | None = None


class Budget:
    """Counts what is spent. ``began`` is when the session began (UNIX time).

    ``recorded`` returns what the run log says is spent: asked once, or now and then if ``shared`` (other processes
    spend from the same budget).
    """

    def __init__(self, limits: Limits, recorded: Callable[[], CallTotals], began: float, shared: bool = False) -> None:
        self._limits = limits
        self._began = began
        self._recorded = recorded
        self._looks_again = shared and (limits.cost is not None or limits.tokens is not None)
        self._looked_at = time.monotonic()
        self.spent = recorded()

    @property
    def counts_tokens(self) -> bool:
        """Whether it can only be kept if servers say what their replies take."""
        return self._limits.cost is not None or self._limits.tokens is not None

    @property
    def seconds_left(self) -> float:
        """Seconds until the time is over: infinitely many without a limit, 0.0 when it is."""
        if self._limits.minutes is None:
            return math.inf
        return max(0.0, self._began + 60 * self._limits.minutes - time.time())

    def add(self, call: CallTotals) -> None:
        """Count a call."""
        self.spent += call

    def check(self) -> None:
        """Raise BudgetSpentError if no further call may be made."""
        if self._looks_again and time.monotonic() - self._looked_at > INTERVAL:
            self._looked_at, self.spent = time.monotonic(), self._recorded()
        limits, spent = self._limits, self.spent
        tokens = spent.prompt + spent.completion
        if limits.cost is not None and spent.cost >= limits.cost:
            raise BudgetSpentError(f"the run has cost ${spent.cost:.2f}; --max-cost {limits.cost:g} is reached")
        if limits.tokens is not None and tokens >= limits.tokens:
            raise BudgetSpentError(f"the run has used {tokens:,} tokens; --max-tokens {limits.tokens} is reached")
        minutes = (time.time() - self._began) / 60
        if limits.minutes is not None and minutes >= limits.minutes:
            raise BudgetSpentError(
                f"the run has taken {minutes:.1f} minutes; --max-minutes {limits.minutes:g} is reached"
            )
