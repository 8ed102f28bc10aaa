"""Writes a run in formats for sharing results: Every Eval Ever, Hugging Face, and
Psych-DS.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from cheesebench import __version__
from cheesebench.amounts import rounded
from cheesebench.canary import CANARY
from cheesebench.experiment.log import RunLog
from cheesebench.exporting import TABLES, Source, write_csv
from cheesebench.files import strict_json, write_whole, written_whole
from cheesebench.interop.inspect_log import SCORE, samples
from cheesebench.records import CellPlan
from cheesebench.statistics import CellResult, draw_sample, judge_sample

Json = dict[str, Any]
#: Version of the schemas of Every Eval Ever.
SCHEMA = "0.3.0"
_SOURCE = {
    "source_name": "CheeseBench",
    "source_type": "evaluation_run",
    "source_organization_name": "unknown",
}
_SOURCE["evaluator_relationship"] = "other"
_PROPORTION = {
    "metric_unit": "proportion",
    "score_type": "continuous",
    "min_score": 0,
    "max_score": 1,
}


def _judged(log: RunLog) -> Iterator[tuple[CellPlan, CellResult]]:
    """Yield the cells that have a rate. Controls are left out, because their scores do
    not describe the model alone.
    """
    for plan in log.plans():
        result = judge_sample(plan, draw_sample(plan, log.trials_by_subject(plan)))
        if not plan.control and result.rate is not None:
            yield plan, result


def _name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-") or "none"


def write_every_eval_ever(directory: Path, log: RunLog) -> Iterator[Path]:
    """For each cell with a rate, write a file with its result, and another file with a
    line for each scored trial. Yield the files with results.
    """
    manifest = log.manifest
    when = str(int(datetime.fromisoformat(manifest["created"]).timestamp()))
    for plan, result in _judged(log):
        digest = hashlib.sha256(
            strict_json([manifest["run_id"], *plan.key]).encode()
        ).digest()
        name = (
            plan.label
            if not plan.variant.settings
            else f"{plan.protocol} ({plan.variant})"
        )
        model = (
            plan.model
            if "/" in plan.model
            else f"{plan.settings.get('backend', 'cheesebench')}/{plan.model}"
        )
        identity = f"cheesebench/{model.replace('/', '_')}/{digest.hex()[:16]}"
        developer, _, short = model.partition("/")
        inside = f"data/cheesebench/{_name(developer)}/{_name(short)}/{uuid.UUID(bytes=digest[:16], version=4)}"
        path, lines = (
            directory / f"{inside}.json",
            directory / f"{inside}_samples.jsonl",
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        common = {"schema_version": SCHEMA, "evaluation_id": identity}
        key = {"evaluation_name": name, "evaluation_result_id": f"{identity}/success"}
        with written_whole(lines, "wb") as file:
            for sample in samples(log, plan, manifest["created"]):
                if sample["scores"]:
                    line = {
                        **common,
                        **key,
                        "model_id": model,
                        **_instance(plan, sample),
                    }
                    file.write(f"{strict_json(line)}\n".encode())
        low, high = result.interval or (0.0, 1.0)
        interval = {
            "lower": low,
            "upper": high,
            "confidence_level": 0.95,
            "method": result.interval_method,
        }
        metric = {
            "metric_id": "cheesebench.success",
            "lower_is_better": False,
            **_PROPORTION,
        }
        details = {
            "verdict": result.verdict and result.verdict.value,
            "reason": result.reason,
            "n": result.n_text,
        }
        unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
        facts = {
            "sha256": plan.sha256,
            "view": plan.view,
            "design": plan.design,
            "canary": CANARY,
        }
        uncertainty = {"confidence_interval": interval, "num_samples": result.subjects}
        scored = {
            **key,
            "source_data": {
                "dataset_name": plan.protocol,
                "source_type": "other",
                "additional_details": facts,
            },
            "metric_config": metric,
            "score_details": {
                "score": result.rate,
                "details": details,
                "uncertainty": uncertainty,
            },
        }
        record = {
            **common,
            "evaluation_timestamp": when,
            "retrieved_timestamp": str(int(time.time())),
            "source_metadata": _SOURCE,
            "eval_library": {"name": "cheesebench", "version": __version__},
            "model_info": {
                "name": plan.model,
                "id": model,
                "additional_details": unknown,
            },
            "evaluation_results": [scored],
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": f"{inside}_samples.jsonl",
            },
        }
        write_whole(path, strict_json(record, indent=1))
        yield path


def _instance(plan: CellPlan, sample: Json) -> Json:
    """Return the line for a trial. For an agent without a model, the text of the line
    lists the actions.
    """
    said = [(one["role"], one["content"]) for one in sample["messages"]]
    said = said or [("user", plan.title), ("assistant", sample["metadata"]["actions"])]
    # A reply with its reasoning has several parts, of which the last is the text.
    texts = [text if isinstance(text, str) else text[-1]["text"] for _, text in said]
    score = sample["scores"][SCORE]
    answer = {
        "turn_idx": len(said) - 1,
        "source": "messages[turn_idx].content",
        "is_terminal": True,
    }
    return {
        "sample_id": sample["id"],
        "interaction_type": "multi_turn",
        "input": {"raw": texts[0], "reference": [SCORE]},
        "output": None,
        "messages": [
            {"turn_idx": number, "role": role, "content": text}
            for number, ((role, _), text) in enumerate(zip(said, texts, strict=True))
        ],
        "answer_attribution": [
            {
                **answer,
                "extracted_value": score["explanation"],
                "extraction_method": "custom",
            }
        ],
        "evaluation": {
            "score": float(score["value"] == "C"),
            "is_correct": score["value"] == "C",
        },
        "metadata": {
            name: str(sample["metadata"][name])
            for name in ("subject", "trial", "block", "outcome")
        },
    }


def write_hugging_face(directory: Path, log: RunLog, dataset: str) -> Iterator[Path]:
    """Write a file for each model in each view and variant, for the folder
    ``.eval_results`` of the model's repository on the Hub. Yield the files.
    """
    files: dict[Path, list[Json]] = {}
    for plan, result in _judged(log):
        low, high = result.interval or (0.0, 1.0)
        about = "" if plan.measured is None else f" (about {plan.measured.name})"
        name = _name(f"cheesebench_{plan.view}{plan.series}")
        path = directory / _name(plan.model) / ".eval_results" / f"{name}.yaml"
        files.setdefault(path, []).append(
            {
                "dataset": {"id": dataset, "task_id": plan.label},
                "value": round(result.rate or 0.0, 4),
                "date": log.manifest["created"][:10],
                "notes": f"{result.verdict or 'no verdict'}{about}, 95 % {rounded(low, 3)} to {rounded(high, 3)}, "
                f"{result.n_text}, {plan.view}",
            }
        )
    for path, entries in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, yaml.safe_dump(entries, sort_keys=False, allow_unicode=True))
        yield path


def write_psych_ds(directory: Path, source: Source) -> Path:
    """Write the trials of people and models as a Psych-DS data set, and return the file
    that describes it.
    """
    table, manifest = TABLES["trials"], source.log.manifest
    study = re.sub(r"[^A-Za-z0-9]", "", manifest["run_id"]) or "run"
    (directory / "data").mkdir(parents=True, exist_ok=True)
    write_csv(
        directory / "data" / f"study-{study}_data.csv", table.header, source.rows(table)
    )
    titles = ", ".join(dict.fromkeys(plan.title for plan in source.log.plans()))
    kinds = {
        "text": "text",
        "integer": "whole number",
        "number": "number",
        "truth": "true or false",
    }
    path = directory / "dataset_description.json"
    description = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": f"CheeseBench run {manifest['run_id']}",
        "description": f"Trials of rodent paradigms: {titles}. The model 'human' stands for people. {CANARY}",
        "variableMeasured": [
            {"@type": "PropertyValue", "name": name, "description": kinds[kind]}
            for name, kind in table.header.items()
        ],
    }
    write_whole(path, strict_json(description, indent=1))
    return path
