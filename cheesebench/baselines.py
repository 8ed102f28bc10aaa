"""Runs prepared for comparison: counted from a run log, or read from a baseline
file.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.errors import RunLogError, did_you_mean
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import find_runs, locate
from cheesebench.files import read_bytes, strict_json
from cheesebench.records import Measured, is_measurement
from cheesebench.statistics.comparison import (
    CellCounts,
    CountedRun,
    RunComparison,
    compare_runs,
    count_cell,
)
from cheesebench.statistics.sample import SubjectScore
from cheesebench.verification import replay_counted, rows_only

#: Format version of baseline files.
FORMAT = 1
#: Default directory of baselines, relative to the working directory.
DIRECTORY = "baselines"
SUFFIX = ".json"
#: Entries of the manifest that a baseline keeps.
_MANIFEST = ("run_id", "created", "versions", "git", "options", "plugins")
_MARKER = "cheesebench_baseline"
#: Matches a line with which git marks a conflict in a file.
_CONFLICT = re.compile(rb"^(<{7} |={7}\r?$|>{7} )", re.MULTILINE)
#: Matches a name that a baseline could have.
_NAME = re.compile(r"[\w.-]+")


def count_run(log: RunLog, name: str | None = None) -> CountedRun:
    """Return the counts of a run. Only one subject is in memory at a time. ``name``
    defaults to the run's id.
    """
    manifest, calls, causes = log.manifest, log.calls.by_cell(), log.causes()
    return CountedRun(
        name=name or str(manifest["run_id"]),
        seed=manifest["options"]["seed"],
        cells=tuple(
            count_cell(
                plan,
                log.trials_by_subject(plan),
                calls.get(plan.key),
                causes.get(plan.key, ()),
            )
            for plan in log.plans()
        ),
        manifest={key: manifest[key] for key in _MANIFEST if key in manifest},
    )


def locate_counted(results: Path, name: str, baselines: Path = Path(DIRECTORY)) -> Path:
    """Return the file of a run or a baseline. ``name`` is the id, directory or file of
    a run, or the name or file of a baseline.

    Raise RunLogError, with the known names, if there is none.
    """
    for path in (Path(name), baselines / f"{name}{SUFFIX}"):
        if path.is_file() and path.suffix == SUFFIX:
            return path.absolute()
    try:
        return locate(results, name)
    except RunLogError:
        known = sorted(found.stem for found in baselines.glob(f"*{SUFFIX}"))
        there = f"Baselines in {baselines}: {', '.join(known)}"
        if not known:
            there = f"There is no baseline in {baselines}"
        runs = find_runs(results)
        if hint := did_you_mean(name, [*known, *runs]):
            raise RunLogError(
                f"There is no baseline or run '{name}'.{hint} {there}."
            ) from None
        latest = f" The latest run is '{next(iter(runs))}'." if runs else ""
        new = name if _NAME.fullmatch(name) else "NAME"
        raise RunLogError(
            f"There is no baseline or run '{name}'.{latest} {there}. Make a run (pytest --model MODEL --design cohort --run-id "
            f"RUN), bless it (cheesebench bless RUN {new}), and commit {baselines / f'{new}{SUFFIX}'}."
        ) from None


def compare_files(
    first: Path,
    second: Path | None = None,
    *,
    models: tuple[str | None, str | None] = (None, None),
    protocols: Sequence[str] = (),
    tell: Callable[[str], None] = lambda line: None,
    progress: Callable[[str], None] = lambda line: None,
) -> RunComparison:
    """Compare the runs or baselines in two files or, without ``second``, the models in
    one file.

    The compared trials of a run are replayed, and ``tell`` is called with a message
    about this, ``progress`` with a line after each subject. Raise ComparisonError for
    runs that do not pair. Raise RunLogError for a file that cannot be read, a log that
    was changed, a language model that was never called, or a trial that differs from
    its record.
    """
    one = read_counted(first)
    other = None if second is None else one if second == first else read_counted(second)
    found = compare_runs(one, other, models=models, protocols=protocols)
    cells = {first: found.keys(0)}
    second = second or first
    cells[second] = cells.get(second, set()) | found.keys(1)
    for path, own in cells.items():
        if said := replay_counted(path, own, progress):
            tell(said)
    return found


def read_counted(path: Path) -> CountedRun:
    if path.suffix == SUFFIX:
        return read_baseline(path)
    with RunLog.open_read_only(path) as log:
        rows_only(log, ranked=True)
        with log.snapshot():
            return count_run(log, path.parent.name)


def baseline_text(run: CountedRun) -> str:
    """Return a baseline as JSON, with one line per cell so that diffs are readable."""
    head = {
        _MARKER: FORMAT,
        "name": run.name,
        "seed": run.seed,
        "manifest": run.manifest,
    }
    lines = [f" {_json(key)}: {_json(value)}," for key, value in head.items()]
    cells = ",\n".join(f"  {_json(_cell_to_json(cell))}" for cell in run.cells)
    return "\n".join(["{", *lines, ' "cells": [', cells, " ]", "}"]) + "\n"


def read_baseline(path: Path) -> CountedRun:
    """Return the baseline in a file. Raise RunLogError if the file cannot be read, is
    not a baseline, is damaged, or has another format version.
    """
    anew = f"Make it anew from a run, and commit it: cheesebench bless RUN {path.stem}"
    try:
        text = read_bytes(path, 2**28)
        if _CONFLICT.search(text):
            raise RunLogError(
                f"{path} has the marks of a merge conflict of git. {anew.replace('a run', 'a run of the merged commit')}"
            )
        content = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise RunLogError(
            f"{path} cannot be read as a baseline: {error}. {anew}"
        ) from None
    number = content.get(_MARKER) if isinstance(content, dict) else None
    if number is None:
        raise RunLogError(f"{path} is not a baseline. {anew}")
    if number != FORMAT:
        raise RunLogError(
            f"{path} is a baseline of format {number}; this CheeseBench reads {FORMAT}. {anew}"
        )
    try:
        return CountedRun(
            name=str(content["name"]),
            seed=content["seed"],
            manifest=content["manifest"],
            cells=tuple(map(_cell_from_json, content["cells"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunLogError(f"{path} is a damaged baseline ({error!r}). {anew}") from None


def incomplete(run: CountedRun) -> Iterable[str]:
    """Yield what is missing in a run that is to be a baseline, in words."""
    for cell in run.cells:
        if not any(one.scored for one in cell.subjects.values()):
            yield f"nothing was measured on {cell.protocol} in {cell.view}"
            continue
        missing = sum(subject.missing for subject in cell.subjects.values())
        if missing:
            yield f"{cell.protocol} in {cell.view} has {missing} missing trial{'s' * (missing > 1)}"


def _json(value: object) -> str:
    return strict_json(value, separators=(",", ":"))


def _cell_to_json(cell: CellCounts) -> dict[str, object]:
    # asdict would copy every subject into a dictionary.
    values = {
        field.name: getattr(cell, field.name) for field in dataclasses.fields(cell)
    }
    values["settings"] = dict(cell.settings)
    values["measured"] = (
        None if cell.measured is None else dataclasses.asdict(cell.measured)
    )
    if cell.measured is None:
        del values["measured"], values["margin"], values["animals"]
    values["silent"] = cell.silent if cell.silent[1] else ()
    for rare in ("doubts", "untested", "silent"):
        if not values[rare]:
            del values[rare]
    values["subjects"] = [
        [n, s.total, s.scored, s.missing, s.digest] for n, s in cell.subjects.items()
    ]
    return values


def _subject_from_json(
    total: float, scored: int, missing: int, digest: str
) -> SubjectScore:
    numbers = (total, scored, missing)
    if not all(map(is_measurement, numbers)) or not isinstance(digest, str):
        raise ValueError(f"a subject's counts are {numbers}")
    return SubjectScore(total, scored, missing, digest)


def _cell_from_json(values: Mapping[str, Any]) -> CellCounts:
    subjects = {
        int(number): _subject_from_json(*counts)
        for number, *counts in values["subjects"]
    }
    measured = values.get("measured")
    if measured is not None:
        low, high = map(float, measured["range"])
        measured = Measured(**{**measured, "range": (low, high)})
    doubts = tuple(map(str, values.get("doubts", ())))
    none, replies = map(int, values.get("silent", (0, 0)))
    read = {"subjects": subjects, "measured": measured, "doubts": doubts}
    return CellCounts(**{**values, **read, "silent": (none, replies)})
