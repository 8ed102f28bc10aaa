"""A cell as an eval log of Inspect AI, so that ``inspect view`` opens it; written without Inspect AI.

The format is that of version 2 (a zip of JSON files: a header, one file for each sample, and their summaries); the
tests read it with the real package. A sample is one trial of one subject; what a model was asked and replied are its
messages. For each sample only its name is kept in memory (and zipfile keeps where it is, 0.6 kB).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.statistics import CellResult, draw_sample, judge_sample
from cheesebench.strict_json import strict_json
from cheesebench.whole_files import written_whole

if TYPE_CHECKING:
    from cheesebench.experiment.call_log import CallRecord
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord

#: Version of Inspect AI's log.
VERSION = 2
_SCORE = "success"
Json = dict[str, Any]


def write_inspect(path: Path, log: RunLog, plan: CellPlan) -> int:
    """Write one cell; return the number of samples."""
    result = judge_sample(plan, draw_sample(plan, log.trials_by_subject(plan)))
    written = _Written()
    spec = _spec(log, plan)
    with (
        written_whole(path, "wb") as whole,
        zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as file,
        tempfile.TemporaryFile() as summaries,
    ):

        def write(name: str, content: object) -> None:
            file.writestr(name, _encoded(content))

        write("_journal/start.json", {"version": VERSION, "eval": spec, "plan": _steps(plan)})
        for sample in _samples(log, plan):
            write(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.write((b"," if written.names else b"[") + _encoded(_summary(sample)))
            written.add(sample)
        summaries.write(b"]" if written.names else b"[]")
        summaries.seek(0)
        with file.open("summaries.json", "w", force_zip64=True) as inside:
            shutil.copyfileobj(summaries, inside)
        spec["dataset"] |= {"samples": len(written.names), "sample_ids": written.names}
        write("header.json", _header(log, plan, result, spec, written))
    return len(written.names)


def _encoded(content: object) -> bytes:
    return strict_json(content).encode()


@dataclass
class _Written:
    """What the header says of the samples."""

    names: list[str] = field(default_factory=list)
    completed: int = 0
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, sample: Json) -> None:
        self.names.append(sample["id"])
        self.completed += "error" not in sample
        for model, numbers in sample["model_usage"].items():
            total = self.usage.setdefault(model, dict.fromkeys(numbers, 0))
            for name, number in numbers.items():
                total[name] += number


def _spec(log: RunLog, plan: CellPlan) -> Json:
    manifest = log.manifest
    # Without slashes and signs: they are names of files to Inspect.
    identity = hashlib.sha256(json.dumps([manifest["run_id"], *plan.key]).encode()).hexdigest()[:22]
    git = manifest["git"] or {}
    task = plan.protocol if not plan.variant else f"{plan.protocol} ({plan.variant})"
    spec: Json = {
        "eval_id": identity,
        "run_id": manifest["run_id"],
        "created": manifest["created"],
        "task": task,
        "task_id": identity,
        "task_version": plan.sha256[:12],
        "task_args": {
            "view": plan.view,
            "design": plan.design,
            "estimand": plan.estimand,
            "variant": str(plan.variant),
        },
        "dataset": {"name": plan.protocol},
        "model": plan.model,
        "model_args": dict(plan.settings),
        "config": {},
        "packages": {name: str(version) for name, version in manifest["versions"].items()},
        "metadata": {
            "title": plan.title,
            "dimension": plan.dimension,
            "species": plan.species,
            "seed": manifest["options"]["seed"],
        },
    }
    if "revision" in git:
        spec["revision"] = {"type": "git", "origin": "", "commit": git["revision"], "dirty": git.get("dirty")}
    return spec


def _steps(plan: CellPlan) -> Json:
    solver = plan.agent or plan.model
    return {"name": "plan", "steps": [{"solver": solver, "params": dict(plan.settings)}], "config": {}}


def _header(log: RunLog, plan: CellPlan, result: CellResult, spec: Json, written: _Written) -> Json:
    metrics: Json = {}
    for name, value in (("accuracy", result.rate), ("stderr", result.standard_error)):
        if value is not None:
            metrics[name] = {"name": name, "value": value}
    times = [entry.time for entry in log.journal()] or [spec["created"]]
    return {
        "version": VERSION,
        "status": "success" if written.completed == len(written.names) else "cancelled",
        "eval": spec,
        "plan": _steps(plan),
        "results": {
            "total_samples": len(written.names),
            "completed_samples": written.completed,
            "scores": [
                {
                    "name": _SCORE,
                    "scorer": _SCORE,
                    "metrics": metrics,
                    "metadata": {
                        "verdict": result.verdict.value,
                        "reason": result.reason,
                        "n": result.n_text,
                        "doubtful": list(result.warnings),
                    },
                }
            ],
        },
        "stats": {"started_at": spec["created"], "completed_at": times[-1], "model_usage": written.usage},
    }


def _samples(log: RunLog, plan: CellPlan) -> Iterator[Json]:
    for records in log.trials_by_subject(plan):
        calls: dict[int, list[CallRecord]] = {}
        for call in log.calls.of_life(plan, records[0].subject):
            calls.setdefault(call.trial, []).append(call)
        for record in records:
            yield _sample(plan, record, calls.get(record.trial, []))


def _sample(plan: CellPlan, record: TrialRecord, calls: Sequence[CallRecord]) -> Json:
    name = f"subject-{record.subject:04}-trial-{record.trial:04}"
    sample: Json = {
        "id": name,
        "epoch": 1,
        "input": f"{plan.title}: subject {record.subject}, trial {record.trial} ({record.block or plan.protocol})",
        "target": _SCORE,
        "messages": list(_messages(name, calls)),
        "output": {"model": plan.model, "choices": _choices(name, plan, calls), "completion": _said(calls)},
        "scores": {},
        "metadata": _metadata(record),
        "model_usage": _usage(plan, calls),
    }
    if record.missing:
        text = f"The trial was not run: {record.missing}."
        sample["error"] = {"message": text, "traceback": text, "traceback_ansi": text}
    elif record.success is not None:
        value = "C" if record.success else "I"
        sample["scores"] = {_SCORE: {"value": value, "answer": record.outcome, "explanation": record.actions}}
    return sample


def _messages(name: str, calls: Iterable[CallRecord]) -> Iterator[Json]:
    for number, call in enumerate(calls):
        if number == 0 and call.system:
            yield {"id": f"{name}-system", "role": "system", "content": call.system}
        yield {"id": f"{name}-{number}-user", "role": "user", "content": call.asked}
        yield _reply(name, number, call)


def _reply(name: str, number: int, call: CallRecord) -> Json:
    text, reasoning = call.reply.text, call.reply.reasoning
    content: object = text
    if reasoning:
        content = [{"type": "reasoning", "reasoning": reasoning}, {"type": "text", "text": text}]
    return {"id": f"{name}-{number}-assistant", "role": "assistant", "content": content, "source": "generate"}


def _choices(name: str, plan: CellPlan, calls: Sequence[CallRecord]) -> list[Json]:
    if not calls:
        return []
    reason = {"stop": "stop", "length": "max_tokens"}.get(calls[-1].reply.finish, "unknown")
    return [{"message": _reply(name, len(calls) - 1, calls[-1]), "stop_reason": reason}]


def _said(calls: Sequence[CallRecord]) -> str:
    return calls[-1].reply.text if calls else ""


def _usage(plan: CellPlan, calls: Iterable[CallRecord]) -> Json:
    usages = [call.reply.usage for call in calls]
    if not usages:
        return {}
    prompt, completion = sum(one.prompt for one in usages), sum(one.completion for one in usages)
    return {
        plan.model: {
            "input_tokens": prompt,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_tokens_cache_read": sum(one.cached for one in usages),
            "input_tokens_cache_write": sum(one.written for one in usages),
            "reasoning_tokens": sum(one.reasoning for one in usages),
        }
    }


def _metadata(record: TrialRecord) -> Json:
    names = ("subject", "trial", "block", "session", "outcome", "compared", "reward", "steps", "missing", "actions")
    values: Json = {name: getattr(record, name) for name in names}
    for name in ("counters", "measures", "variables", "tally"):
        values[name] = dict(getattr(record, name))
    return values


def _summary(sample: Json) -> Json:
    kept = ("id", "epoch", "input", "target", "scores", "model_usage")
    summary = {name: sample[name] for name in kept}
    summary["metadata"] = {name: sample["metadata"][name] for name in ("subject", "trial", "block", "outcome")}
    summary["completed"] = "error" not in sample
    summary["message_count"] = len(sample["messages"])
    if "error" in sample:
        summary["error"] = sample["error"]["message"]
    return summary
