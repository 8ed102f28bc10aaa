"""The text of a failed test: why its cell failed, or could not be measured."""

from __future__ import annotations

import shutil
import textwrap
from itertools import chain

from cheesebench.amounts import number, percent
from cheesebench.interfaces import BaseSpecification
from cheesebench.pytest_session.run import PytestRun
from cheesebench.records import TrialRecord
from cheesebench.statistics import CellResult
from cheesebench.statistics.sample import enter_estimand
from cheesebench.statistics.wording import BETTER, amount, gap, margin, plural
from cheesebench.terminal import printable


def explain(
    run: PytestRun, specification: BaseSpecification, result: CellResult
) -> str:
    """Return a line that says by how much the cell fails. With ``-v`` or ``--film``,
    return all numbers instead and, if the verdict is about a pass rate, a failed trial.
    """
    assert run.log is not None
    if run.config.option.verbose <= 0 and not run.settings.film:
        text = printable(f"{result.verdict}: {_short(result)}.")
        columns = min(shutil.get_terminal_size().columns, 120)
        return textwrap.fill(
            text,
            columns,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    width = max(map(len, (name for name, _ in _numbers(result))))
    table = "\n".join(f"  {name:<{width}}  {value}" for name, value in _numbers(result))
    parts = [f"{result.verdict}: {result.reason}", table]
    if (failed := _first_failed(run, result)) is not None:
        family = run.plugins.family(specification)
        parts.append(family.explain(run.log, run.plugins, specification, failed))
    return printable("\n\n".join(parts))


def _first_failed(run: PytestRun, result: CellResult) -> TrialRecord | None:
    """Return the first failed trial that counts towards the rate, or None if there is
    none, or the verdict concerns a measure.
    """
    if result.plan.measured is not None:
        return None
    judged = chain.from_iterable(
        enter_estimand(result.plan.estimand, life)
        for life in run.trials_by_subject(result.plan)
    )
    return next((record for record in judged if record.success is False), None)


def _short(result: CellResult) -> str:
    plan, reference = result.plan, result.plan.reference
    parts = []
    if result.judged is not None:
        parts.append(f"{result.judged.measure} {number(result.judged.mean)}")
    elif result.rate is not None:
        parts.append(f"rate {percent(result.rate)}")
    if plan.against == "chance" and plan.chance is not None:
        parts.append(f"chance {percent(plan.chance)}")
    elif reference is not None:
        parts.append(f"rodent {amount(plan, reference.value)}")
    if (
        result.difference is not None
        and result.difference_low is not None
        and result.difference_high is not None
    ):
        low, high = gap(plan, result.difference_low), gap(plan, result.difference_high)
        parts.append(f"difference {gap(plan, result.difference)} ({low} to {high})")
        parts.append(f"margin {margin(plan)}")
    return ", ".join(parts) or result.reason.rstrip(".")


def missing_trials(run: PytestRun, result: CellResult, in_ci: bool = False) -> str:
    """Return the number of missing trials, with the cause in the same line, and the
    remedy: to resume the run (which a job of a CI does by itself) or, if that would not
    help, to start a new one. The last error that quotes an answer follows.
    """
    assert run.log is not None
    marks = [
        bool(record.missing)
        for record in chain.from_iterable(run.trials_by_subject(result.plan))
    ]
    cause = "".join(f": {one.rstrip(' .')}" for one in result.causes[:1])
    counted = f" ({result.missing} of the {result.planned} that count)"
    those = "" if result.planned == len(marks) else counted
    what = "could not be run"
    again = f"run the rest with --resume {run.log.run_id}"
    remedy = f"Fix the cause, then {'run the job again' if in_ci else again}"
    new = f"start a new run{' (push a commit)' * in_ci}"
    if result.outcomes.get("run anew"):
        are = "is" if sum(marks) == 1 else "are"
        what = f"{are} lost, because too many trials were run anew after a stop"
        remedy = f"{new[:1].upper()}{new[1:]}"
    elif kept := next(filter(None, map(result.kept, result.causes)), ""):
        again = " (--retry-errors asks them again)" * ("refused" in kept and not in_ci)
        remedy = f"Fix the cause, then {new}: this one keeps its {kept}{again}"
    return (
        f"{plural(sum(marks), 'trial')} of {len(marks)}{those} {what}{cause}.\n\n"
        f"This says nothing about the model. {remedy}.{_last_answer(run, result)}"
    )


def _last_answer(run: PytestRun, result: CellResult) -> str:
    """Return a paragraph with the last error that quotes an answer, or ""."""
    assert run.log is not None
    noted = [entry.text for entry in run.log.journal(result.plan, "error")]
    answers = [text for text in noted if "The answer begins: " in text]
    return "".join(f"\n\nThe last error: {one}" for one in answers[-1:])


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
        limits = (
            ""
            if found.interval is None
            else ", 95 % interval {} to {}".format(*map(number, found.interval))
        )
        rows.append(
            (found.measure, f"{number(found.mean)}{limits} ({BETTER[found.better]})")
        )
    if result.rate is not None and result.interval is not None:
        low, high = result.interval
        rows.append(
            (
                "rate",
                f"{percent(result.rate)}, 95 % interval {percent(low)} to {percent(high)}",
            )
        )
    if reference is not None:
        origin = ", ".join(
            filter(None, (reference.species, reference.source, reference.status))
        )
        shown = f"{amount(plan, reference.value)} ({textwrap.shorten(origin, 100, placeholder=' ...')})"
        rows.append(("reference", shown))
    rows.append(("margin", f"{gap(plan, plan.margin).lstrip('+')}{unit}"))
    if (
        result.difference is not None
        and result.difference_low is not None
        and result.difference_high is not None
    ):
        low, high = result.difference_low, result.difference_high
        rows.append(
            (
                "difference",
                f"{gap(plan, result.difference)}{unit}, one-sided {percent(1 / plan.goal)} bounds {gap(plan, low)} and "
                f"{gap(plan, high)}",
            )
        )
    return rows
