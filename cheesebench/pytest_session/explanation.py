"""Why a test failed or could not be run, in words, numbers and one failed trial as a film."""

from __future__ import annotations

import shutil
import textwrap
from itertools import chain

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.experiment.replay import film
from cheesebench.film import film_strip, printable
from cheesebench.interfaces import PictureView
from cheesebench.protocol import AnySpecification, DialogueSpecification, Specification
from cheesebench.pytest_session.run import Run
from cheesebench.statistics import CellResult
from cheesebench.statistics.sample import enter_estimand
from cheesebench.statistics.wording import percent, plural, points

_INDENT = "  "


def explain(run: Run, specification: AnySpecification, result: CellResult) -> str:
    """Return the verdict sentence, the numbers behind it and the film of the first judged trial that failed."""
    width = max(map(len, (name for name, _ in _numbers(result))))
    table = "\n".join(f"  {name:<{width}}  {value}" for name, value in _numbers(result))
    parts = [f"{result.verdict}: {result.reason}", table]
    # A trial that the rate is not taken over explains nothing, however it ended.
    judged = chain.from_iterable(enter_estimand(result.plan.estimand, life) for life in run.lives(result.plan))
    failed = next((record for record in judged if record.success is False), None)
    if failed is not None:
        if isinstance(specification, Specification):
            parts.append(_film(run, specification, failed))
        else:
            parts.append(_conversation(run, specification, failed))
    return printable("\n\n".join(parts))


def missing_trials(run: Run, result: CellResult) -> str:
    """Return how many trials could not be run, why, and how to go on."""
    assert run.log is not None
    marks = [bool(record.missing) for record in chain.from_iterable(run.lives(result.plan))]
    causes = [entry.text.rstrip() for entry in run.log.journal(result.plan, "error")]
    parts = [
        f"{plural(sum(marks), 'trial')} of {len(marks)} could not be run, which says nothing about the model.",
        *causes[-1:],
        f"Mend the cause, then run the rest with --resume {run.log.run_id}.",
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


def _conversation(run: Run, specification: DialogueSpecification, record: TrialRecord) -> str:
    """Return what was asked last in a failed trial, what the answer was read as, and what would have been right."""
    condition, said = specification.conditions[str(record.variables["condition"])], record.variables
    domain = specification.domains[str(said["domain"])]
    item = next(
        item for item in condition.items if item.start == said["start"] and " ".join(item.goals) == said["goal"]
    )
    right = [" - ".join(domain.names[node] for node in key) for key in item.keys[:3]] or [str(item.number)]
    answer = " - ".join(domain.names.get(node, node) for node in str(said["answer"]).split())
    lines = [
        f"A failed trial: generation {record.subject}, question {record.trial}: {record.outcome}.",
        f"  read as    {answer or 'nothing'}",
        f"  right is   {' | '.join(right)}",
    ]
    assert run.log is not None
    calls = [call for call in run.log.calls.of_life(_plan(run, record), record.subject) if call.trial == record.trial]
    for call in calls:
        lines.append(f"  question   {textwrap.shorten(call.asked, 400, placeholder=' ...')}")
        lines.append(f"  reply      {textwrap.shorten(call.reply.text, 800, placeholder=' ...')}")
    return "\n".join(lines)


def _plan(run: Run, record: TrialRecord) -> CellPlan:
    assert run.log is not None
    return next(plan for plan in run.log.plans() if plan.key == record.key)


def _film(run: Run, specification: Specification, record: TrialRecord) -> str:
    assert run.log is not None
    heading = (
        f"A failed trial: subject {record.subject}, trial {record.trial}, "
        f"{record.outcome} after {plural(record.steps, 'step')}."
    )
    try:
        view = run.plugins.view(record.view)
        if isinstance(view, PictureView):  # what happened is the same in every view, and this one can be printed
            view = run.plugins.view("ascii_2d")
        frames = film(run.log, run.plugins.compile(specification), view, record)
    except CheeseBenchError as error:
        return f"{heading}\n{error}"
    # Indented, because a line of the picture at column 0 could be a command to a CI service.
    strip = film_strip(frames, shutil.get_terminal_size().columns - len(_INDENT))
    return f"{heading}\n\n{textwrap.indent(strip, _INDENT)}"
