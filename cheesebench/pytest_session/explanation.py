"""The text of a failed or errored test: the verdict, its numbers, and one failed trial frame by frame."""

from __future__ import annotations

import textwrap
from itertools import chain

from cheesebench.experiment.records import SETTLED, TrialRecord
from cheesebench.film import printable
from cheesebench.protocol import BaseSpecification
from cheesebench.pytest_session.run import Run
from cheesebench.statistics import CellResult
from cheesebench.statistics.sample import enter_estimand
from cheesebench.statistics.wording import amount, gap, number, percent, plural


def explain(run: Run, specification: BaseSpecification, result: CellResult) -> str:
    """Return what failed, by how much and how to see it, in three lines; with ``-v`` or ``--film`` all of it."""
    assert run.log is not None
    failed = _first_failed(run, result)
    if run.config.option.verbose <= 0 and not run.settings.values["film"]:
        first = "" if failed is None else f"First: subject {failed.subject}, trial {failed.trial}, {failed.outcome}. "
        see = f"  {first}To see it: cheesebench report {_shown_run(run)} --html, or --film"
        lines = [f"{result.verdict}: {result.reason}", f"  {_short(result)}", see]
        return printable("\n".join(lines))
    width = max(map(len, (name for name, _ in _numbers(result))))
    table = "\n".join(f"  {name:<{width}}  {value}" for name, value in _numbers(result))
    parts = [f"{result.verdict}: {result.reason}", table]
    if failed is not None:
        family = run.plugins.family(specification)
        parts.append(family.explain(run.log, run.plugins, specification, failed))
    return printable("\n\n".join(parts))


def _first_failed(run: Run, result: CellResult) -> TrialRecord | None:
    """Return the first trial that failed among those that count towards the rate; of a measure none fails."""
    if result.plan.measured is not None:
        return None
    judged = chain.from_iterable(
        enter_estimand(result.plan.estimand, life) for life in run.trials_by_subject(result.plan)
    )
    return next((record for record in judged if record.success is False), None)


def _short(result: CellResult) -> str:
    """Return the numbers behind a verdict in one line."""
    reference = result.plan.reference
    parts, plan = [], result.plan
    if result.judged is not None:
        found = result.judged
        limits = "" if found.interval is None else " ({} to {})".format(*map(number, found.interval))
        parts.append(f"{found.measure} {number(found.mean)}{limits}")
    elif result.rate is not None and result.interval is not None:
        parts.append(f"rate {percent(result.rate)} ({percent(result.interval[0])} to {percent(result.interval[1])})")
    if reference is not None:
        name = "published" if result.plan.in_words else "rodent"
        parts.append(f"{name} {amount(plan, reference.value)}")
    if result.difference is not None and result.difference_low is not None and result.difference_high is not None:
        far = "at most", result.difference_high
        if plan.measured is not None and plan.measured.better == "lower":
            far = "at least", result.difference_low
        parts.append(f"difference {gap(plan, result.difference)}, {far[0]} {gap(plan, far[1])}")
    return f"{', '.join(parts)}; {result.n_text.partition(' (')[0]}"


def _shown_run(run: Run) -> str:
    assert run.log is not None
    directory, here = run.log.directory, run.config.invocation_params.dir
    return str(directory.relative_to(here) if directory.is_relative_to(here) else directory)


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
    unit = " points" if plan.measured is None else ""
    if (found := result.judged) is not None:
        limits = "" if found.interval is None else ", 95 % interval {} to {}".format(*map(number, found.interval))
        rows.append((found.measure, f"{number(found.mean)}{limits} ({found.better} is better)"))
    if result.rate is not None and result.interval is not None:
        low, high = result.interval
        rows.append(("rate", f"{percent(result.rate)}, 95 % interval {percent(low)} to {percent(high)}"))
    if reference is not None:
        origin = ", ".join(filter(None, (reference.species, reference.source, reference.status)))
        shown = f"{amount(plan, reference.value)} ({textwrap.shorten(origin, 100, placeholder=' ...')})"
        rows.append(("reference", shown))
    rows.append(("margin", f"{gap(plan, plan.margin).lstrip('+')}{unit}"))
    if result.difference is not None and result.difference_low is not None and result.difference_high is not None:
        low, high = result.difference_low, result.difference_high
        rows.append(
            (
                "difference",
                f"{gap(plan, result.difference)}{unit}, one-sided 5 % bounds {gap(plan, low)} and {gap(plan, high)}",
            )
        )
    return rows
