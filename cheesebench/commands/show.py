"""``cheesebench show``: prints the prompts that a model was sent, and its replies,
verbatim.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.amounts import dollars, duration, rounded
from cheesebench.commands.common import (
    add_cell,
    add_output,
    add_recorded_trial,
    add_run,
    choose_cell,
    counted,
    describe,
    one_line,
    positive_number,
    table,
    write_output,
)
from cheesebench.errors import RunLogError
from cheesebench.experiment import replay
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.interfaces import ACTION_LETTERS, ACTIONS
from cheesebench.plugin_manager import installed_plugins
from cheesebench.terminal import printable

if TYPE_CHECKING:
    from cheesebench.experiment.replay import RebuiltCall
    from cheesebench.records import CallRecord, CellPlan

#: Number of characters of a reply that the list of calls shows.
EXCERPT = 50
#: Width of the list of calls in a pipe, in columns. An excerpt fits on a line.
WIDE = 160
#: Settings of a cell that the header of a call does not repeat.
_ELSEWHERE = ("backend", "id", "served", "dropped", "stop", "reasoning")
_HEADERS = (
    "call",
    "trial",
    "in trial",
    "prompt",
    "cached",
    "reply",
    "seconds",
    "end",
    "read as",
    "text",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints one call with its whole prompt, which is rebuilt from the run's log and checked against it. Without "
        "--call, it prints a list of the subject's calls. Trials and calls count from 1, subjects from 0.",
        "20250131-093000-ab12",
        "20250131-093000-ab12 --call 12",
        "20250131-093000-ab12 --unparsed",
        "20250131-093000-ab12 --protocol t_maze --subject 3 --trial 4 --call 1",
    )
    add_run(parser)
    parser.add_argument(
        "--call",
        metavar="N",
        type=positive_number,
        help="number of the call among the calls of the subject or, with --trial, of the trial, from 1",
    )
    add_cell(parser)
    add_recorded_trial(parser)
    parser.set_defaults(subject=None)  # None: 0 or, with --unparsed, all
    parser.add_argument(
        "--unparsed",
        action="store_true",
        help="list only calls whose reply should have named an action, but did not; those of all subjects, unless "
        "--subject names one",
    )
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        log.verify()
        plan = _cell(log.plans(), options)
        if options.subject is None and options.unparsed and options.call is None:
            write_output(_unparsed(log, plan, options), options.output)
            return 0
        options.subject = options.subject or 0
        records = list(log.calls.of_life(plan, options.subject))
        if not records:
            raise RunLogError(_without_calls(plan, options.subject))
        if options.call is None:
            listed = _list(log, plan, options, options.subject, records)
            if not listed:
                listed = f"This subject has no unparsed replies{_in_trial(options)}."
            write_output(
                f"{_title(plan, options.subject)}\n\n{listed}\n", options.output
            )
            return 0
        text = _shown(log, plan, options.subject, records, _number(records, options))
        # A pipe may lead to a terminal, so unprintable characters are only written to a
        # file.
        write_output(text if options.output else printable(text), options.output)
    return 0


def _cell(plans: Sequence[CellPlan], options: argparse.Namespace) -> CellPlan:
    candidates = [plan for plan in plans if plan.agent]
    if not candidates:
        raise RunLogError(
            f"Run '{options.run_id}' asked no language model, so there are no calls to show."
        )
    return choose_cell(candidates, options)


def _unparsed(log: RunLog, plan: CellPlan, options: argparse.Namespace) -> str:
    """Return a list of the unparsed replies of each subject that has any."""
    found = []
    for subject in log.calls.subjects(plan):
        records = list(log.calls.of_life(plan, subject))
        if listed := _list(log, plan, options, subject, records):
            found.append(f"{_title(plan, subject)}\n\n{listed}\n")
    return "\n".join(found) or f"No subject has unparsed replies{_in_trial(options)}.\n"


def _in_trial(options: argparse.Namespace) -> str:
    return "" if options.trial is None else f" in trial {options.trial}"


def _without_calls(plan: CellPlan, subject: int) -> str:
    cell = f"{plan.model} on {plan.protocol}, {plan.view}"
    if subject < plan.subjects:
        return f"Subject {subject} ({cell}) made no calls. Name another --subject."
    return (
        f"There is no subject {subject} ({cell}): the cell has {counted(plan.subjects, 'subject')}, and subjects count "
        "from 0."
    )


def _number(records: Sequence[CallRecord], options: argparse.Namespace) -> int:
    """Return the index of the chosen call in ``records``. Raise RunLogError if there is
    no such call.
    """
    numbers = [
        number
        for number, record in enumerate(records)
        if options.trial is None or record.trial + 1 == options.trial
    ]
    if options.call > len(numbers):
        where = (
            f"Trial {options.trial} of subject"
            if options.trial is not None
            else "Subject"
        )
        raise RunLogError(
            f"{where} {options.subject} has {counted(len(numbers), 'call')}, and calls count from 1, so there is no call "
            f"{options.call}."
        )
    return numbers[int(options.call) - 1]


def _list(
    log: RunLog,
    plan: CellPlan,
    options: argparse.Namespace,
    subject: int,
    records: Sequence[CallRecord],
) -> str:
    """Return a table of the subject's calls, with the actions that were read from each
    reply, or "" if there are none to list.
    """
    last = records[-1]
    try:
        calls: Sequence[RebuiltCall | None] = replay.rebuild_calls(
            log,
            installed_plugins(),
            plan,
            subject,
            (last.trial, last.call),
        )
        why = ""
    except RunLogError as error:
        if options.unparsed:
            raise
        calls, why = (
            [None] * len(records),
            f"\n\nWhat the agent read from each reply is not known: {error}",
        )
    shown = [
        _row(number, record, call)
        for number, (record, call) in enumerate(zip(records, calls, strict=True), 1)
        if (options.trial is None or record.trial + 1 == options.trial)
        and (not options.unparsed or (call is not None and call.unparsed))
    ]
    if options.unparsed and not shown:
        return ""
    width = None if options.output is None and sys.stdout.isatty() else WIDE
    return f"{table(_HEADERS, shown, width)}{why}"


def _row(
    number: int, record: CallRecord, call: RebuiltCall | None
) -> tuple[object, ...]:
    usage = record.reply.usage
    return (
        *(number, record.trial + 1, record.call + 1),
        *(usage.prompt, usage.cached, usage.completion, rounded(record.seconds, 2)),
        record.fault or record.reply.finish,
        "" if call is None or call.record.fault else _letters(call),
        _excerpt(record.reply.text),
    )


def _letters(call: RebuiltCall) -> str:
    """Return the letters of the actions that were read from a reply, as in ``FFL``, or
    ``no action`` if the agent looked for actions and found none. For a reply without
    actions that is none of the model's mistakes, such as a note, return "".
    """
    if call.unparsed:
        return "no action"
    return "".join(ACTION_LETTERS[action] for action in call.actions or ())


def _excerpt(text: str) -> str:
    return one_line(text[: 4 * EXCERPT], EXCERPT)


def _shown(
    log: RunLog,
    plan: CellPlan,
    subject: int,
    records: Sequence[CallRecord],
    number: int,
) -> str:
    record = records[number]
    call = replay.rebuild_call(
        log, installed_plugins(), plan, subject, record.trial, record.call
    )
    head = (
        f"{_title(plan, subject)}, trial {record.trial + 1}, call {record.call + 1} of the trial "
        f"(call {number + 1} of the subject)"
    )
    return "\n".join([head, *_facts(plan, record), "", *_sections(call)]) + "\n"


def _title(plan: CellPlan, subject: int) -> str:
    variant = f", {plan.variant}" if plan.variant else ""
    return one_line(
        f"{plan.model} on {plan.protocol} ({plan.view}{variant}), subject {subject}"
    )


def _facts(plan: CellPlan, record: CallRecord) -> Iterator[str]:
    settings = {
        name: value for name, value in plan.settings.items() if name not in _ELSEWHERE
    }
    yield one_line(
        f"asked by {plan.agent}: "
        + ", ".join(f"{name}={value}" for name, value in settings.items())
    )
    usage = record.reply.usage
    written = f", {usage.written:,} written to the cache" if usage.written else ""
    numbers = [f"{usage.prompt:,} prompt tokens ({usage.cached:,} cached{written})"]
    numbers.append(
        f"{usage.completion:,} reply tokens ({usage.reasoning:,} of reasoning)"
    )
    numbers.append(duration(record.seconds))
    if record.attempts > 1:
        numbers.append(f"{record.attempts} attempts")
    if record.cost is not None:
        numbers.append(dollars(record.cost))
    yield one_line(
        f"{', '.join(numbers)}; end: {record.fault or record.reply.finish}; by {record.reply.model or '?'}"
    )
    yield f"the prompt equals the recorded one (digest {record.digest})"


def _sections(call: RebuiltCall) -> Iterator[str]:
    for message in call.messages:
        yield f"--- {message.role} ---"
        yield "".join(
            part if isinstance(part, str) else f"[picture, {len(part):,} bytes of PNG]"
            for part in message.parts
        )
    reply = call.record.reply
    if reply.reasoning:
        yield f"--- reasoning ---\n{reply.reasoning}"
    yield f"--- {'fault' if call.record.fault else 'reply'} ---\n{reply.text}"
    if call.record.fault is None and call.actions is not None:
        yield "--- read as ---"
        yield _read_as(call, call.actions)


def _read_as(call: RebuiltCall, actions: Sequence[int]) -> str:
    if not call.unparsed:
        names = [ACTIONS[action] for action in actions]
        return ", ".join(_runs(names)) or "no action: the model is asked again"
    if not actions:
        return "no action found (the model is asked again)"
    waits = len(actions) > 1
    done = "STAY until the trial ends" if waits else f"{ACTIONS[actions[0]]} played"
    return f"no action found ({done})"


def _runs(names: Sequence[str]) -> list[str]:
    """Return the names, each run of equal names as one, as in ``STAY x3``."""
    counts = [(name, len(list(group))) for name, group in groupby(names)]
    return [name if count == 1 else f"{name} x{count}" for name, count in counts]
