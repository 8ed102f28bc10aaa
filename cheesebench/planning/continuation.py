"""What a run that has begun still needs, from what its trials (or those of earlier runs) took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.planning.earlier import EarlierRuns
from cheesebench.planning.plan import FREE, Amount, from_earlier, scaled, total

if TYPE_CHECKING:
    from cheesebench.experiment.contestants import LanguageModel
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan


def still_needed(
    log: RunLog, unfinished: Iterable[CellPlan], models: Mapping[str, LanguageModel], results: Path
) -> Amount | None:
    """Return what the trials that are left would take, all of them: a look may make some of them superfluous.

    Each trial takes what one of this run did; where it has none of that protocol, what one of the earlier runs in
    ``results`` did. None if there was none either.
    """
    own = EarlierRuns()
    own.add(log, log.run_id)
    others: EarlierRuns | None = None
    amounts, counts = [], log.trial_counts()
    for plan in unfinished:
        if not plan.agent:
            amounts.append(FREE)
            continue
        if plan.model not in models:
            return None
        runs = own
        if not own.has(plan.model, plan.protocol, plan.view):
            runs = others = others or EarlierRuns(results)
        estimate, _, _ = from_earlier(plan, models[plan.model], runs)
        if estimate is None:
            return None
        run, complete = counts.get(plan.key, {}), log.completed_subjects(plan)
        left = [plan.trials - run.get(one, (0, 0))[0] for one in range(plan.subjects) if one not in complete]
        amounts.append(scaled(estimate, sum(left) / (plan.subjects * plan.trials)))
    return total(amounts)
