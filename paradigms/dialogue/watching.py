"""Conversations of a run, for the player and to explain a failure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cheesebench.errors import RunLogError
from cheesebench.experiment.call_replay import ReplayedCall
from cheesebench.experiment.replay import Frame
from cheesebench.family import WatchedTrial

if TYPE_CHECKING:
    from cheesebench.experiment.call_log import CallRecord
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.paradigms.dialogue.language.specification import DialogueSpecification

#: Stands for an action where a question was answered.
ANSWERED = "?"


def watch(log: RunLog, plan: CellPlan, wanted: Mapping[int, set[int]]) -> Iterator[WatchedTrial]:
    """Yield the wanted trials; RunLogError for those of baselines, whose answers are in no log."""
    if not plan.agent:
        raise RunLogError("Answers of baselines in dialogues are not stored, so there is nothing to show.")
    for subject, trials in wanted.items():
        calls: dict[int, list[CallRecord]] = {}
        for call in log.calls.of_life(plan, subject):
            calls.setdefault(call.trial, []).append(call)
        for record in log.trials(plan, subject):
            if not record.missing and record.trial in trials:
                replayed = [ReplayedCall(call, step, "") for step, call in enumerate(calls.get(record.trial, []))]
                questions = [one.record.asked for one in replayed]
                rewards = [0.0] * (len(replayed) - 1) + [record.reward]
                frames = [Frame("", question, 0.0) for question in questions[:1]]
                frames += map(Frame, ANSWERED * len(replayed), questions, rewards)
                yield WatchedTrial(record=record, frames=frames, calls=replayed)


def conversation(log: RunLog, specification: DialogueSpecification, record: TrialRecord) -> str:
    """Return the last question of a failed trial, the parsed answer, and the correct answers."""
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
    plan = next(plan for plan in log.plans() if plan.key == record.key)
    calls = [call for call in log.calls.of_life(plan, record.subject) if call.trial == record.trial]
    for call in calls:
        lines.append(f"  question   {textwrap.shorten(call.asked, 400, placeholder=' ...')}")
        lines.append(f"  reply      {textwrap.shorten(call.reply.text, 800, placeholder=' ...')}")
    return "\n".join(lines)
