"""Runs prepared for comparison: counted from a run log, or read from a baseline file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cheesebench.errors import RunLogError, did_you_mean
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import find_runs, locate
from cheesebench.experiment.records import is_measurement
from cheesebench.statistics.counts import CellCounts, CountedMeasure, CountedRun, SubjectCounts, count_cell
from cheesebench.strict_json import strict_json

#: Version of the file of a baseline.
FORMAT = 1
#: Where baselines are, below the working directory, unless somebody says otherwise.
DIRECTORY = "baselines"
SUFFIX = ".json"
#: What of the manifest goes into a baseline.
_MANIFEST = ("run_id", "created", "versions", "git", "options", "plugins")
_MARKER = "cheesebench_baseline"


def count_run(log: RunLog, name: str | None = None) -> CountedRun:
    """Return the counts of a run, with one subject in memory at a time; ``name`` defaults to its id."""
    manifest, calls = log.manifest, log.calls.by_cell()
    return CountedRun(
        name=name or str(manifest["run_id"]),
        seed=manifest["options"]["seed"],
        cells=tuple(count_cell(plan, log.trials_by_subject(plan), calls.get(plan.key)) for plan in log.plans()),
        manifest={key: manifest[key] for key in _MANIFEST if key in manifest},
    )


def find_counted(results: Path, name: str, baselines: Path = Path(DIRECTORY)) -> CountedRun:
    """Return a run or baseline to compare; see ``locate_counted``."""
    return read_counted(locate_counted(results, name, baselines))


def locate_counted(results: Path, name: str, baselines: Path = Path(DIRECTORY)) -> Path:
    """Return the file of what is to be compared: a run's id, directory or file, or a baseline's name or file.

    Raises RunLogError with what there is when nothing has that name.
    """
    for path in (Path(name), baselines / f"{name}{SUFFIX}"):
        if path.is_file() and path.suffix == SUFFIX:
            return path.absolute()
    try:
        return locate(results, name)
    except RunLogError:
        known = sorted(found.stem for found in baselines.glob(f"*{SUFFIX}"))
        there = f"Baselines in {baselines}: {', '.join(known)}."
        if not known:
            there = f"There is no baseline in {baselines}; to make one of a run: cheesebench bless RUN NAME"
        hint = did_you_mean(name, [*known, *find_runs(results)])
        raise RunLogError(f"There is no baseline or run '{name}'.{hint} {there}") from None


def read_counted(path: Path) -> CountedRun:
    """Return the run or baseline in a file."""
    if path.suffix == SUFFIX:
        return read_baseline(path)
    with RunLog.open_read_only(path) as log:
        return count_run(log, path.parent.name)


def baseline_text(run: CountedRun) -> str:
    """Return a baseline as JSON with one line per cell, for readable diffs."""
    head = {_MARKER: FORMAT, "name": run.name, "seed": run.seed, "manifest": run.manifest}
    lines = [f" {_json(key)}: {_json(value)}," for key, value in head.items()]
    cells = ",\n".join(f"  {_json(_cell_to_json(cell))}" for cell in run.cells)
    return "\n".join(["{", *lines, ' "cells": [', cells, " ]", "}"]) + "\n"


def read_baseline(path: Path) -> CountedRun:
    """Return the baseline in a file; RunLogError when it is none, or one of another version."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunLogError(f"{path} cannot be read as a baseline: {error}. Create one with: cheesebench bless") from None
    number = content.get(_MARKER) if isinstance(content, dict) else None
    if number is None:
        raise RunLogError(f"{path} is not a baseline. Create one with: cheesebench bless RUN NAME")
    if number != FORMAT:
        raise RunLogError(
            f"{path} is a baseline of format {number}; this CheeseBench reads {FORMAT}. Bless the run again."
        )
    try:
        return CountedRun(
            name=str(content["name"]),
            seed=content["seed"],
            manifest=content["manifest"],
            cells=tuple(map(_cell_from_json, content["cells"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunLogError(f"{path} is a damaged baseline ({error!r}). Bless the run again.") from None


def incomplete(run: CountedRun) -> Iterable[str]:
    """Yield sentences about what is missing from a run for a baseline."""
    for cell in run.cells:
        missing = sum(subject.missing - subject.settled for subject in cell.subjects.values())
        if missing:
            yield f"{cell.protocol} in {cell.view} has {missing} missing trial{'s' * (missing > 1)}"


def _json(value: object) -> str:
    return strict_json(value, separators=(",", ":"))


def _cell_to_json(cell: CellCounts) -> dict[str, object]:
    # Not asdict, which would copy every subject into a dictionary.
    values = {field.name: getattr(cell, field.name) for field in dataclasses.fields(cell)}
    values["settings"] = dict(cell.settings)
    values["measured"] = None if cell.measured is None else dataclasses.asdict(cell.measured)
    if cell.measured is None:
        del values["measured"]
    if not cell.doubts:
        del values["doubts"]
    values["subjects"] = [
        [n, s.passed, s.scored, s.missing, s.digest, *([s.settled] if s.settled else [])]
        for n, s in cell.subjects.items()
    ]
    return values


def _subject_from_json(passed: float, scored: int, missing: int, digest: str, settled: int = 0) -> SubjectCounts:
    numbers = (passed, scored, missing, settled)
    if not all(map(is_measurement, numbers)) or not isinstance(digest, str):
        raise ValueError(f"a subject's counts are {numbers}")
    return SubjectCounts(passed, scored, missing, digest, settled)


def _cell_from_json(values: Mapping[str, Any]) -> CellCounts:
    subjects = {int(number): _subject_from_json(*counts) for number, *counts in values["subjects"]}
    measured = values.get("measured")
    if measured is not None:
        limits = measured["range"]
        measured = CountedMeasure(**{**measured, "range": limits and (float(limits[0]), float(limits[1]))})
    doubts = tuple(map(str, values.get("doubts", ())))
    return CellCounts(**{**values, "subjects": subjects, "measured": measured, "doubts": doubts})
