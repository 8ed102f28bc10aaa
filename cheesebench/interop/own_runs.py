"""Verdicts of runs of our own in the form of those on scores of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from cheesebench.baselines import read_counted
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import FILE_NAME
from cheesebench.interop.answers import TaskVerdict
from cheesebench.statistics.comparison import compare_runs
from cheesebench.summaries import summarise_log


def own_log(given: str | PathLike[str]) -> Path | None:
    """Return the log, if a run of our own is given: as such, by directory or by
    file.
    """
    path = Path(given)
    found = path / FILE_NAME if path.is_dir() else path
    return found if found.name == FILE_NAME and found.is_file() else None


def against_animals(path: Path) -> Iterator[TaskVerdict]:
    """Yield the verdict of each cell of a run."""
    with RunLog.open_read_only(path) as log:
        cells = summarise_log(log).cells
    for cell in cells:
        reference, judged = cell.plan.reference, cell.judged
        yield TaskVerdict(
            task=f"{cell.plan.label} ({cell.plan.model})",
            answer=cell.verdict.value,
            reason=cell.reason,
            subjects=cell.subjects,
            rate=cell.rate if judged is None else judged.mean,
            against=None if reference is None else reference.value,
            interval=cell.interval if judged is None else judged.interval,
            p_value=None if cell.game is None else cell.game.p_value,
        )


def against_run(first: Path, second: Path) -> Iterator[TaskVerdict]:
    """Yield the answer of each protocol of two runs."""
    found = compare_runs(read_counted(first), read_counted(second))
    for model in found.models:
        for cell in model.cells:
            answer = cell.answer
            yield TaskVerdict(
                task=f"{cell.protocol} ({model.first_model})",
                answer=answer if answer in ("better", "worse") else "indistinguishable",
                reason=cell.reason,
                subjects=cell.paired.pairs,
                rate=cell.first_rate,
                against=cell.second_rate,
                interval=cell.paired.interval,
                p_value=cell.adjusted_p,
            )
