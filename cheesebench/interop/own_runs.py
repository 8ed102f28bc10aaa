"""Verdicts on CheeseBench's own runs, in the same form as verdicts on other programs'
scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
from os import PathLike
from pathlib import Path
from typing import Any

from cheesebench import api, errors
from cheesebench.baselines import compare_files
from cheesebench.experiment import log_file
from cheesebench.experiment.log import RunLog
from cheesebench.interop import answers
from cheesebench.records import CellPlan
from cheesebench.statistics.comparison import RunComparison
from cheesebench.summaries import summarise_log
from cheesebench.verification import replay_counted


def judge_runs(
    first: str | PathLike[str] | Iterable[Any],
    second: str | PathLike[str] | Iterable[Any] | None,
    value: float | None,
    results: Path,
    models: tuple[str | None, str | None],
) -> tuple[list[answers.TaskVerdict], list[str]] | None:
    """Return the verdicts on a run of CheeseBench, on two of its ``models``, or on two
    runs, and sentences on the comparison and on replayed trials. Return None if neither
    ``first`` nor ``second`` is such a run.

    A run is given as an object, by its id in ``results``, or by its directory or file.
    Raise RunLogError for a missing run, ComparisonError for runs that do not pair, and
    OptionError if a run is to be compared with something else, for a list of runs, and
    if models are selected without a run.
    """
    given = [one for one in (first, second) if one is not None]
    for one in given:
        _check_no_list(one, results)
    logs = [_log(one, results) for one in given]
    runs = [log for log in logs if log is not None]
    if any(models) and not runs:
        raise errors.OptionError(
            "--first-model and --second-model are for runs, and for data frames with a column 'model'. "
            f"{_instead(given[0], models)}"
        )
    if not runs:
        return None
    _check(given, logs, runs[0], value)
    said: list[str] = []
    line = api.teller(None)

    def tell(one: str) -> None:
        said.append(one)
        line(f"{one}\n")

    if len(runs) == 1 and not any(models):
        with RunLog.open_read_only(runs[0]) as log:
            summary = summarise_log(log)
        cells = summary.cells
        several = len({cell.plan.view for cell in cells}) > 1
        named = ((cell, _name(cell.plan, several)) for cell in cells)
        if summary.unfinished:
            tell(summary.unfinished)
        tell(replay_counted(runs[0], progress=line))
        return list(starmap(answers.answer_of, named)), said
    found = compare_files(*runs, models=models, tell=tell, progress=line)
    return list(_compared(found)), [*found.told, *said]


def _name(plan: CellPlan, in_view: bool) -> str:
    """Return the name of a cell, which no other cell of its run has."""
    variant = "" if plan.variant.condition else str(plan.variant)
    where = filter(None, (plan.model, plan.view if in_view else "", variant))
    return f"{plan.label} ({', '.join(where)})"


def _instead(given: Any, models: tuple[str | None, str | None]) -> str:
    """Return the remedy for named models if the scores have no models."""
    columns = [*map(str, getattr(given, "columns", ()))]
    if all(one in columns for one in models):
        one, other = models
        return f"To compare two columns, give them: verdict(frame[{one!r}], frame[{other!r}])."
    return "Add the column." if columns else "Remove them."


def _check(
    given: Sequence[Any], logs: Sequence[Path | None], run: Path, value: float | None
) -> None:
    """Raise OptionError for a run with a value, or with a log of another program."""
    if value is not None:
        raise errors.OptionError(
            f"--value {value:g}: a run of CheeseBench is judged against its animals, or against another run. Remove "
            "--value."
        )
    if None in logs:
        raise errors.OptionError(
            f"{run.parent.name} is a run of CheeseBench, and {_shown(given[logs.index(None)])}. Give two runs, or "
            "two logs."
        )


def _check_no_list(given: Any, results: Path) -> None:
    """Raise OptionError for a list of runs."""
    if not isinstance(given, list | tuple) or not given:
        return
    known = log_file.find_runs(results)
    names = [getattr(one, "id", one) for one in given]
    if all(isinstance(one, str) and one in known for one in names):
        one, *others = map(repr, names)
        raise errors.OptionError(
            f"A list of scores is expected, but these are runs. Compare two: verdict({', '.join([one, *others[:1]])}). For the "
            f"verdicts of several: report([{', '.join([one, *others])}])."
        )


def _shown(given: object) -> str:
    if isinstance(given, str | PathLike):
        return f"{given} is a log of another program"
    return "the other scores are not"


def _log(given: str | PathLike[str] | Iterable[Any], results: Path) -> Path | None:
    """Return the log file of a run, or None for anything else that exists. Raise
    RunLogError if nothing has that name.
    """
    if not isinstance(given, str | PathLike):
        return None
    path, name = Path(given), log_file.FILE_NAME
    is_run = str(given) in log_file.find_runs(results)
    if path.exists() and not (is_run and path.is_dir()):
        found = path / name if path.is_dir() else path
        return found if found.name == name and found.is_file() else None
    try:
        return log_file.locate(results, str(given))
    except errors.RunLogError:
        hint = errors.did_you_mean(str(given), log_file.find_runs(results))
        raise errors.RunLogError(
            f"There is no log {given}, and no run of that name in {results}.{hint}"
        ) from None


def _compared(found: RunComparison) -> Iterator[answers.TaskVerdict]:
    for model in found.models:
        who = model.whose(len({(one.view, one.variant) for one in found.models}) > 1)
        for row in model.rows():
            yield answers.TaskVerdict(
                task=f"{row['protocol']} ({who})",
                answer=row["verdict"],
                reason=row["reason"],
                subjects=row["subjects"],
                rate=row["rate"],
                against=row["reference"],
                interval=None
                if row["difference_low"] is None
                else (row["difference_low"], row["difference_high"]),
                of_difference=True,
                p_value=row["p_value"],
                adjusted_p=row["p_holm"],
                model=model.first_model,
                other_model=model.second_model,
                protocol=row["protocol"],
            )
