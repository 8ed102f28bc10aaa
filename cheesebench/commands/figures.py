"""``cheesebench figures``: the figures and tables of a paper, from one run or several."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.commands.common import one_line
from cheesebench.commands.parsing import add_option, describe
from cheesebench.errors import OptionError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.extras import install_command
from cheesebench.interfaces import FigureReporter
from cheesebench.models import known_models, user_models
from cheesebench.plugin_manager import installed_plugins
from cheesebench.whole_files import write_whole

if TYPE_CHECKING:
    from cheesebench.statistics import RunSummary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Pass rates by paradigm, the cognitive profile, the scaling curve, a panel for each varied setting, and the "
        "tables; figures without data are left out. Needs the extra 'figures'.",
        "20250131-093000-ab12",
        "monday tuesday --output paper --format svg,png",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a run's id, directory or run.sqlite")
    add_option(parser, "results")
    parser.add_argument("--output", metavar="DIR", default="figures", help="directory to write to (default: figures)")
    parser.add_argument("--format", metavar="NAMES", default="svg,png", help="svg, png, pdf (default: svg,png)")


def run(options: argparse.Namespace) -> int:
    """Draw everything that the runs have something for, and say where it is."""
    plugins = installed_plugins()
    reporter = plugins.reporter("figures")
    if not isinstance(reporter, FigureReporter):
        raise OptionError("The plugin that registers the report format 'figures' draws no figures.")
    formats = tuple(dict.fromkeys(part.strip() for part in options.format.split(",")))
    unknown = [name for name in formats if name not in ("svg", "png", "pdf")]
    if unknown:
        raise OptionError(f"--format {options.format}: '{unknown[0]}' is not one of svg, png, pdf.")
    summaries = [_summary(Path(options.results), name) for name in options.runs]
    check_same_protocols(summaries)
    entries = known_models(plugins, user_models())
    sizes = {
        name: entry.parameters
        for entry in entries.values()
        if entry.parameters is not None
        for name in (entry.name, *entry.aliases)
    }
    try:
        files = reporter.render_figures(summaries, sizes, formats)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise OptionError(f"Figures need matplotlib: {install_command('figures')}") from error
    directory = Path(options.output)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(directory / name, content)
    except OSError as error:
        raise OptionError(
            f"--output {options.output}: cannot be written ({error.strerror}). Name another directory."
        ) from error
    print(f"{one_line(str(directory))}: {', '.join(files)}")
    return 0


def _summary(results: Path, name: str) -> RunSummary:
    from cheesebench.statistics import summarise_subjects

    with RunLog.open_read_only(locate(results, name)) as log:
        return summarise_subjects(log.manifest, log.plans(), log.trials_by_subject, log.calls.by_cell(), log.causes())


def check_same_protocols(summaries: Sequence[RunSummary]) -> None:
    """Raise OptionError if two runs have a protocol of the same name that is not the same."""
    known: dict[str, tuple[str, object]] = {}
    for summary in summaries:
        run = summary.manifest.get("run_id")
        for cell in summary.cells:
            sha, other = known.setdefault(cell.plan.protocol, (cell.plan.sha256, run))
            if sha != cell.plan.sha256:
                raise OptionError(
                    f"The protocol '{cell.plan.protocol}' is not the same in the runs {other} ({sha[:8]}) and {run} "
                    f"({cell.plan.sha256[:8]}). Their results cannot be shown in one figure: leave one run out."
                )
