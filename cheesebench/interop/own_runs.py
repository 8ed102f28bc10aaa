"""Verdicts of runs of our own in the form of those on scores of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from cheesebench.baselines import compare_files, replay_counted
from cheesebench.errors import OptionError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import FILE_NAME
from cheesebench.interop.answers import TaskVerdict
from cheesebench.statistics.comparison import RunComparison
from cheesebench.summaries import summarise_log


def judge_runs(
    first: str | PathLike[str],
    second: str | PathLike[str] | None,
    value: float | None,
) -> tuple[list[TaskVerdict], list[str]] | None:
    """Return the verdicts on a run of our own (as such, by directory or by file), alone
    or against another, and what was replayed; None if it is none.
    """
    logs = [_log(one) for one in (first, second) if one is not None]
    if (log := logs[0]) is None:
        return None
    if value is not None or None in logs:
        raise OptionError(
            "A run is judged against its animals, or against another run. Leave the value out."
        )
    if len(logs) == 1:
        said = [replay_counted(log)]
        return list(_against_animals(log)), said
    said, (_, other) = [], logs
    assert other is not None
    return list(_answers(compare_files(log, other, tell=said.append))), said


def _log(given: str | PathLike[str]) -> Path | None:
    path = Path(given)
    found = path / FILE_NAME if path.is_dir() else path
    return found if found.name == FILE_NAME and found.is_file() else None


def _against_animals(path: Path) -> Iterator[TaskVerdict]:
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


def _answers(found: RunComparison) -> Iterator[TaskVerdict]:
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
