"""``cheesebench bless``: saves the results of a run as a baseline, with which later
runs are compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from cheesebench.amounts import percent, rounded
from cheesebench.baselines import SUFFIX, baseline_text, count_run, incomplete
from cheesebench.commands.common import (
    add_baselines,
    add_run,
    describe,
    one_line,
    paragraph,
    shown_path,
)
from cheesebench.errors import OptionError
from cheesebench.experiment import cells, unfinished
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.experiment.provenance import check_name
from cheesebench.files import write_whole
from cheesebench.records import CellKey, CellPlan
from cheesebench.statistics import wording
from cheesebench.statistics.comparison import CountedRun
from cheesebench.statistics.judgement import judge_set
from cheesebench.verification import verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "A baseline is a small JSON file of counts, which you can commit. Later runs can be compared with it without "
        "the run itself.",
        "20250131-093000-ab12 main",
    )
    add_run(parser)
    parser.add_argument("name", metavar="NAME", help="name of the baseline")
    add_baselines(parser)
    parser.add_argument(
        "--incomplete", action="store_true", help="accept a run with missing trials"
    )


def run(options: argparse.Namespace) -> int:
    check_name(options.name, "a baseline")
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        print(verify(log), file=sys.stderr)
        counted = count_run(log)
        plans = log.plans()
        floors = {plan.key: _floor(plan) for plan in plans if plan.measured is None}
        gaps = [] if options.incomplete else list(incomplete(counted))
        if gaps:
            raise OptionError(
                f"Run {counted.name} is not complete: {'; '.join(gaps)}. {_complete(log, counted)}"
            )
    path = Path(options.baselines) / f"{options.name}{SUFFIX}"
    replaced = path.exists()
    text = baseline_text(dataclasses.replace(counted, name=options.name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise OptionError(
            f"{path} cannot be written: {error.strerror}. Choose another --baselines."
        ) from None
    size = f"{rounded(len(text) / 1000, 0)} kB"
    print(
        f"Saved run {one_line(counted.name)} as the baseline {shown_path(path)} ({size}).",
        file=sys.stderr,
    )
    if replaced:
        print("It replaces the previous baseline of this name.", file=sys.stderr)
    if low := list(_nothing_to_lose(counted, floors)):
        said = (
            "Warning: no sign of the ability, and so nothing that a later run could lose, in "
            f"{'; '.join(low)}."
        )
        print(paragraph(said), file=sys.stderr)
    for said in _misleading(counted):
        print(paragraph(f"Warning: {said}"), file=sys.stderr)
    print(_next(counted, path), file=sys.stderr)
    return 0


def _next(run: CountedRun, path: Path) -> str:
    """Return the commands that commit the baseline and compare a run with it."""
    # With --compare, the default design is cohort.
    designs = {cell.design for cell in run.cells} - {"cohort"}
    design = f" --design {designs.pop()}" if len(designs) == 1 else ""
    return (
        f"Commit it: git add {shown_path(path)}\n"
        f"To compare a run of these protocols with it: pytest --model NAME --compare {path.name.removesuffix(SUFFIX)}{design}"
    )


def _complete(log: RunLog, counted: CountedRun) -> str:
    """Return the remedy for a run with missing trials."""
    name = log.run_id
    if any(unfinished.left_to_run(log, plan, judge_set) for plan in log.plans()):
        return f"Finish it with pytest --resume {name}, or bless it as it is with --incomplete."
    for cell in counted.cells:
        lives = cell.subjects.values()
        if lives and not any(one.scored or one.missing for one in lives):
            return f"In a run of --design {cell.design}, no trial of {cell.protocol} counts. Bless a run of --design cohort."
    if any(cell.untested.startswith(wording.NEVER_ACTED) for cell in counted.cells):
        return f"No reply named an action. Mend the model or its server, then ask anew with pytest --resume {name}."
    return f"pytest --resume {name} would not run the missing trials again. Bless a new run."


def _floor(plan: CellPlan) -> tuple[float, str] | None:
    """Return the rate up to which a subject shows no sign of the ability, and a phrase
    for such a subject. Return None if no such rate is known.

    If no ceiling is proved, it is the rate of random moves, which is lower.
    """
    if plan.ability is not None:
        return plan.ability.without, "without the ability at most"
    return None if plan.chance is None else (plan.chance, "moving at random")


def _nothing_to_lose(
    run: CountedRun, floors: Mapping[CellKey, tuple[float, str] | None]
) -> Iterator[str]:
    """Yield a phrase for each cell whose rate shows no sign of the ability. A later run
    has nothing to lose there.
    """
    for cell in run.cells:
        found = floors.get((cell.model, cell.protocol, cell.view, cell.variant))
        rates = [one.rate() for one in cell.subjects.values() if one.scored]
        if found is not None and rates and sum(rates) / len(rates) <= found[0]:
            floor, who = found
            rate = percent(sum(rates) / len(rates))
            yield f"{cell.protocol} ({rate}; {who} {percent(floor)})"


def _misleading(run: CountedRun) -> Iterator[str]:
    """Yield warnings about a baseline in which many replies named no action, that has
    too few subjects, or whose number of subjects depended on its results.
    """
    for cell in run.cells:
        if cell.is_silent:
            none, replies = cell.silent
            yield (
                f"{none:,} of the {replies:,} replies that count on {cell.protocol} named no action, so this baseline is low for "
                "a reason that may not be the model's. Mend the template, the stop words or the limits, and bless a new run."
            )
    if run.is_sequential:
        yield (
            "the run stopped because of its results, so it is lucky (or unlucky) on average, and later runs look worse "
            "(or better) than they are. Bless a run of --design cohort."
        )
        return
    few = {
        f"{cell.protocol} ({len(cell.subjects)}, at least {cell.least_subjects} are needed)"
        for cell in run.cells
        if len(cell.subjects) < cell.least_subjects
    }
    if few:
        yield (
            f"too few subjects to exclude a loss, even if nothing changes: {', '.join(sorted(few))}. Comparisons would "
            f"stay undecided. Bless a run with more --subjects ({cells.COHORT} for a usual model)."
        )
