"""Checks that a run is resumed with the protocols, agents, design and seed that it was started with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cheesebench.errors import RunLogError

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellKey, CellPlan
    from cheesebench.protocol import BaseSpecification


def check_resumable(
    log: RunLog,
    cells: Mapping[CellPlan, BaseSpecification] | Iterable[tuple[CellPlan, BaseSpecification]],
    seed: int,
    done: str = "continued",
) -> None:
    """Raise RunLogError with all differences unless ``cells`` and ``seed`` belong to the run of ``log``.

    ``done`` is the verb in the message. A subset of the run's cells may be resumed; the others stay unchanged.
    """
    plans = [plan for plan, _ in (cells.items() if isinstance(cells, Mapping) else cells)]
    recorded = {plan.key: plan for plan in log.plans()}
    manifest = log.manifest
    differences: list[str] = []
    then = manifest["options"]["seed"]
    if then != seed:
        differences.append(f"the seed was {then} and is now {seed}")
    for plan in plans:
        differences += _differences(recorded, plan)
    if differences:
        # Several views of one protocol have the same differences.
        listed = "; ".join(dict.fromkeys(differences))
        raise RunLogError(
            f"Run '{manifest['run_id']}' cannot be {done}: {listed}. "
            "Use the options and protocols that it was started with, or start a new run."
        )


def _differences(recorded: Mapping[CellKey, CellPlan], plan: CellPlan) -> list[str]:
    then = recorded.get(plan.key)
    if then is None:
        for position, kind in enumerate(("model", "protocol", "view", "variant")):
            known = list(dict.fromkeys(key[position] for key in recorded))
            if plan.key[position] not in known:
                return [f"the {kind} '{plan.key[position]}' is not part of it (only {', '.join(known)})"]
        return [f"{plan.model} on {plan.protocol} in {plan.view} is not part of it"]
    if then.sha256 != plan.sha256:
        return [f"the protocol '{plan.protocol}' has changed (was {then.sha256[:8]}, is now {plan.sha256[:8]})"]
    if then.agent != plan.agent:
        return [f"{plan.model} was asked by '{then.agent or 'none'}' and is now asked by '{plan.agent or 'none'}'"]
    changed = [
        f"{name} of {plan.model} was {then.settings.get(name)!r} and is now {plan.settings.get(name)!r}"
        for name in {**then.settings, **plan.settings}
        if then.settings.get(name) != plan.settings.get(name)
    ]
    return changed + [
        f"the {what} of {plan.protocol} was {before} and is now {now}"
        for what, before, now in (
            ("design", then.design, plan.design),
            ("number of subjects", then.subjects, plan.subjects),
            ("number of trials", then.trials, plan.trials),
        )
        if before != now
    ]
