"""Writes a run as eval logs for Inspect AI: each trial is a sample, each call to a
model an event.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cheesebench.canary import CANARY
from cheesebench.experiment.log import RunLog
from cheesebench.files import strict_json, written_whole
from cheesebench.records import CallRecord, CellPlan, TrialRecord
from cheesebench.statistics import draw_sample, judge_sample

#: Version of Inspect AI's log format.
VERSION = 2
SCORE = "success"
Json = dict[str, Any]


def write_inspect(path: Path, log: RunLog, plan: CellPlan) -> int:
    """Write the eval log of one cell, and return the number of samples."""
    spec, step = (
        _spec(log, plan),
        {"solver": plan.agent or plan.model, "params": dict(plan.settings)},
    )
    solver = {"name": "plan", "steps": [step], "config": {}}
    names, completed, usage = list[str](), 0, Counter[str]()
    with (
        written_whole(path, "wb") as whole,
        zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as file,
        tempfile.TemporaryFile() as summaries,
    ):

        def write(name: str, content: object) -> None:
            file.writestr(name, _encoded(content))

        write("_journal/start.json", {"version": VERSION, "eval": spec, "plan": solver})
        for sample in samples(log, plan, spec["created"]):
            write(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.write((b"," if names else b"[") + _encoded(_summary(sample)))
            names.append(sample["id"])
            completed += "error" not in sample
            usage.update(sample["model_usage"].get(plan.model, {}))
        summaries.write(b"]" if names else b"[]")
        summaries.seek(0)
        with file.open("summaries.json", "w", force_zip64=True) as inside:
            shutil.copyfileobj(summaries, inside)
        spec["dataset"] |= {"samples": len(names), "sample_ids": names}
        header = {
            "version": VERSION,
            "eval": spec,
            "plan": solver,
            **_results(log, plan, len(names), completed),
        }
        header["stats"]["model_usage"] = {plan.model: usage} if usage else {}
        write("header.json", header)
    return len(names)


def _encoded(content: object) -> bytes:
    return strict_json(content).encode()


def _spec(log: RunLog, plan: CellPlan) -> Json:
    manifest, facts = log.manifest, ("view", "design", "estimand")
    # The id is a hash, because Inspect uses it in file names, which allow no slashes.
    identity = hashlib.sha256(
        json.dumps([manifest["run_id"], *plan.key]).encode()
    ).hexdigest()[:22]
    git = manifest["git"] or {}
    metadata = {name: getattr(plan, name) for name in ("title", "dimension", "species")}
    spec: Json = {
        "eval_id": identity,
        "run_id": manifest["run_id"],
        "created": manifest["created"],
        "task": plan.protocol
        if not plan.variant
        else f"{plan.protocol} ({plan.variant})",
        "task_id": identity,
        "task_version": plan.sha256[:12],
        "task_args": {
            **{name: getattr(plan, name) for name in facts},
            "variant": str(plan.variant),
        },
        "dataset": {"name": plan.protocol},
        "model": plan.model,
        "model_args": dict(plan.settings),
        "config": {},
        "packages": {
            name: str(version) for name, version in manifest["versions"].items()
        },
        "metadata": {
            **metadata,
            "seed": manifest["options"]["seed"],
            "canary": CANARY,
        },
    }
    if "revision" in git:
        spec["revision"] = {
            "type": "git",
            "origin": "",
            "commit": git["revision"],
            "dirty": git.get("dirty"),
        }
    return spec


def _results(log: RunLog, plan: CellPlan, total: int, completed: int) -> Json:
    result = judge_sample(plan, draw_sample(plan, log.trials_by_subject(plan)))
    measured = {"accuracy": result.rate, "stderr": result.standard_error}
    metrics = {
        name: {"name": name, "value": value}
        for name, value in measured.items()
        if value is not None
    }
    said = {
        "verdict": result.verdict and result.verdict.value,
        "reason": result.reason,
        "n": result.n_text,
    }
    score = {
        "name": SCORE,
        "scorer": SCORE,
        "metrics": metrics,
        "metadata": {**said, "doubtful": [*result.warnings]},
    }
    created = log.manifest["created"]
    times = [entry.time for entry in log.journal()] or [created]
    return {
        "status": "success" if completed == total else "cancelled",
        "results": {
            "total_samples": total,
            "completed_samples": completed,
            "scores": [score],
        },
        "stats": {"started_at": created, "completed_at": times[-1]},
    }


def samples(log: RunLog, plan: CellPlan, created: str) -> Iterator[Json]:
    for records in log.trials_by_subject(plan):
        calls: dict[int, list[CallRecord]] = {}
        for call in log.calls.of_life(plan, records[0].subject):
            calls.setdefault(call.trial, []).append(call)
        for record in records:
            yield _sample(plan, record, calls.get(record.trial, []), created)


def _sample(
    plan: CellPlan, record: TrialRecord, calls: Sequence[CallRecord], created: str
) -> Json:
    name = f"subject-{record.subject:04}-trial-{record.trial + 1:04}"
    events = list(_calls(name, plan, calls, created))
    # The input of the first call begins with the system message, if there is one.
    messages = events[0]["input"][:-1] if events else []
    for event in events:
        messages += [event["input"][-1], event["output"]["choices"][0]["message"]]
    seconds = sum(call.seconds for call in calls)
    sample: Json = {
        "id": name,
        "epoch": 1,
        "input": f"{plan.title}: subject {record.subject}, trial {record.trial + 1} ({record.block or plan.protocol})",
        "target": SCORE,
        "messages": messages,
        "output": events[-1]["output"]
        if events
        else {"model": plan.model, "choices": [], "completion": ""},
        "scores": {},
        "metadata": _metadata(record),
        "model_usage": _usage(plan, calls),
        "started_at": created,
        "total_time": seconds,
        "events": events,
    }
    if record.missing:
        text = f"The trial was not run, {record.why_missing}."
        sample["error"] = {"message": text, "traceback": text, "traceback_ansi": text}
    elif record.success is not None:
        score = {
            "value": "C" if record.success else "I",
            "answer": record.outcome,
            "explanation": record.actions,
        }
        sample["scores"] = {SCORE: score}
        events.append(
            {
                **_event(name, "score", 0, created, seconds),
                "score": score,
                "target": SCORE,
                "scorer": SCORE,
            }
        )
    return sample


def _event(name: str, kind: str, number: int, created: str, seconds: float) -> Json:
    when = (datetime.fromisoformat(created) + timedelta(seconds=seconds)).isoformat()
    return {
        "uuid": f"{name}-{kind}-{number}",
        "event": kind,
        "timestamp": when,
        "working_start": seconds,
    }


def _calls(
    name: str, plan: CellPlan, calls: Sequence[CallRecord], created: str
) -> Iterator[Json]:
    """Yield an event for each call. The events follow one another from the start of the
    run, because the log does not record when calls were made.
    """
    seconds = 0.0
    for number, call in enumerate(calls):
        text, reasoning = call.reply.text, call.reply.reasoning
        parts = [
            {"type": "reasoning", "reasoning": reasoning},
            {"type": "text", "text": text},
        ]
        reply = {
            "id": f"{name}-{number}-assistant",
            "role": "assistant",
            "content": parts if reasoning else text,
        }
        reason = {"stop": "stop", "length": "max_tokens"}.get(
            call.reply.finish, "unknown"
        )
        system = {
            "id": f"{name}-system",
            "role": "system",
            "content": call.system or calls[0].system,
        }
        asked = {"id": f"{name}-{number}-user", "role": "user", "content": call.asked}
        yield {
            **_event(name, "model", number, created, seconds),
            "model": plan.model,
            "input": [*([system] if system["content"] else []), asked],
            "tools": [],
            "tool_choice": "auto",
            "config": {},
            "output": {
                "model": plan.model,
                "choices": [
                    {"message": {**reply, "source": "generate"}, "stop_reason": reason}
                ],
                "completion": text,
                "usage": _usage(plan, [call])[plan.model],
                "time": call.seconds,
            },
            "error": call.fault,
            "working_time": call.seconds,
        }
        seconds += call.seconds


def _usage(plan: CellPlan, calls: Iterable[CallRecord]) -> Json:
    usages = [call.reply.usage for call in calls]
    if not usages:
        return {}
    prompt, completion = (
        sum(one.prompt for one in usages),
        sum(one.completion for one in usages),
    )
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
    names = (
        "subject",
        "trial",
        "block",
        "session",
        "outcome",
        "compared",
        "reward",
        "steps",
        "missing",
        "actions",
    )
    mappings = {
        name: dict(getattr(record, name))
        for name in ("counters", "measures", "variables", "tally")
    }
    # Trials are counted from 1, as in the sample's name and everywhere else where
    # people read them.
    own = {name: getattr(record, name) for name in names}
    return {**own, "trial": record.trial + 1, **mappings}


def _summary(sample: Json) -> Json:
    summary = {
        name: sample[name]
        for name in ("id", "epoch", "input", "target", "scores", "model_usage")
    }
    summary["metadata"] = {
        name: sample["metadata"][name]
        for name in ("subject", "trial", "block", "outcome")
    }
    error = {"error": sample["error"]["message"]} if "error" in sample else {}
    return {
        **summary,
        **error,
        "completed": not error,
        "message_count": len(sample["messages"]),
    }
