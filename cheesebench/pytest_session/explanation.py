"""The text of a failed or errored test: the verdict, its numbers, and one failed trial frame by frame."""

from __future__ import annotations

import textwrap
from itertools import chain

from cheesebench.experiment.records import SETTLED
from cheesebench.film import printable
from cheesebench.protocol import BaseSpecification
from cheesebench.pytest_session.run import Run
from cheesebench.statistics import CellResult
from cheesebench.statistics.sample import enter_estimand
from cheesebench.statistics.wording import percent, plural, points


def explain(run: Run, specification: BaseSpecification, result: CellResult) -> str:
    """Return the verdict sentence, the numbers behind it and the first judged trial that failed."""
    width = max(map(len, (name for name, _ in _numbers(result))))
    table = "\n".join(f"  {name:<{width}}  {value}" for name, value in _numbers(result))
    parts = [f"{result.verdict}: {result.reason}", table]
    # Show only a trial that counts towards the rate.
    judged = chain.from_iterable(
        enter_estimand(result.plan.estimand, life) for life in run.trials_by_subject(result.plan)
    )
    failed = next((record for record in judged if record.success is False), None)
    if failed is not None:
        assert run.log is not None
        family = run.plugins.family(specification)
        parts.append(family.explain(run.log, run.plugins, specification, failed))
    return printable("\n\n".join(parts))


def missing_trials(run: Run, result: CellResult) -> str:
    """Return how many trials could not be run, why, and how to go on."""
    assert run.log is not None
    marks = [record.missing not in ("", SETTLED) for record in chain.from_iterable(run.trials_by_subject(result.plan))]
    causes = [entry.text.rstrip() for entry in run.log.journal(result.plan, "error")]
    parts = [
        f"{plural(sum(marks), 'trial')} of {len(marks)} could not be run. This says nothing about the model.",
        *causes[-1:],
        f"Fix the cause, then run the rest with --resume {run.log.run_id}.",
    ]
    return "\n\n".join(parts)


def _numbers(result: CellResult) -> list[tuple[str, str]]:
    plan, reference = result.plan, result.plan.reference
    rows = [
        ("model", plan.model),
        ("protocol", f"{plan.title} ({plan.protocol}, {plan.sha256[:8]})"),
        ("view", plan.view),
        ("n", result.n_text),
    ]
    if result.rate is not None and result.interval is not None:
        low, high = result.interval
        rows.append(("rate", f"{percent(result.rate)}, 95 % interval {percent(low)} to {percent(high)}"))
    if reference is not None:
        origin = ", ".join(filter(None, (reference.species, reference.source, reference.status)))
        rows.append(("reference", f"{percent(reference.value)} ({textwrap.shorten(origin, 100, placeholder=' ...')})"))
    rows.append(("margin", f"{points(plan.margin).lstrip('+')} points"))
    if result.difference is not None and result.difference_low is not None and result.difference_high is not None:
        low, high = result.difference_low, result.difference_high
        rows.append(
            (
                "difference",
                f"{points(result.difference)} points, one-sided 5 % bounds {points(low)} and {points(high)}",
            )
        )
    return rows
