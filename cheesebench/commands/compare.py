"""``cheesebench compare``: says how a run did against another one: better, worse, no
loss, or undecided.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cheesebench.commands import FINDINGS, common
from cheesebench.errors import OptionError
from cheesebench.functions import compare
from cheesebench.plugin_manager import installed_plugins
from cheesebench.statistics import gate
from cheesebench.statistics.comparison import ComparisonReporter, RunComparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.describe(
        parser,
        "Subjects with the same number form a pair. The answers, for each protocol and for all together, say how RUN_A "
        "did against RUN_B. Only protocols that both runs have are compared. The comparison is refused if the seeds "
        "differ, if a protocol differs in content or in its number of trials, or if a trial differs from its log when "
        "it is replayed. A baseline can take the place of a run.",
        "20250131-093000-ab12 main",
        "new old --format markdown --compare-fail worse",
        "monday --first-model random --second-model tabular-ql",
    )
    parser.add_argument(
        "first",
        metavar="RUN_A",
        help="a run's id, directory or run.sqlite, or a baseline",
    )
    parser.add_argument(
        "second",
        metavar="RUN_B",
        nargs="?",
        help="the run or baseline with which RUN_A is compared; without it, the models of RUN_A are compared (a single "
        "model with its controls)",
    )
    common.add_option(parser, "results")
    common.add_baselines(parser)
    parser.add_argument(
        "--protocols",
        "--protocol",
        metavar="NAME",
        action="append",
        help="only this protocol; repeatable",
    )
    parser.add_argument(
        "--first-model", metavar="NAME", help="the model of RUN_A, if it has several"
    )
    parser.add_argument(
        "--second-model",
        metavar="NAME",
        help="the model of RUN_B, if it has several; without RUN_B, a second model of RUN_A",
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        default="text",
        help="text (default), markdown, json, ...",
    )
    parser.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )
    common.add_option(
        parser,
        "compare-fail",
        help="Exit with 1 if RUN_A is worse, undecided, or either (worse,undecided). Default: never",
    )
    common.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Compare two runs, and write the table. Return 1 if ``--compare-fail`` asks for
    it.
    """
    plugins = installed_plugins()

    reporter = plugins.reporter(options.format)
    if not isinstance(reporter, ComparisonReporter):
        able = sorted(
            name
            for name, one in plugins.reporters.items()
            if isinstance(one, ComparisonReporter)
        )
        raise OptionError(
            f"--format {options.format} cannot show comparisons. Use one of {', '.join(able)}."
        )
    found = compare(
        options.first,
        options.second,
        results=options.results,
        baselines=options.baselines,
        models=(options.first_model, options.second_model),
        protocols=options.protocols or None,
        # A terminal is told anyway, and shows the progress.
        tell=None if sys.stderr.isatty() else _tell,
    )
    common.write_output(reporter.render_comparison(found), options.output)
    return _exit_status(found, (options.compare_fail or "").split(","))


def _tell(said: str) -> None:
    print(said, file=sys.stderr)


_WHOLE = "Compare a run without missing trials (--resume continues a run)."


def _exit_status(found: RunComparison, fails: Sequence[str]) -> int:
    """Return the exit status. With ``--compare-fail``, print a sentence that explains
    it.
    """
    is_red = ("worse" in fails and found.worse) or (
        "undecided" in fails and found.undecided
    )
    code = FINDINGS if is_red else 0
    if {"worse", "undecided"}.intersection(fails):
        said = gate.loss(found, "") if is_red else gate.kept(found, gates=True)
        more = gate.to_decide(found, _WHOLE) if is_red and not found.worse else ""
        parts = [*gate.other_settings(found), said]
        line = f"{gate.sentence(code, True, parts)} {more}".rstrip()
        print(common.paragraph(line), file=sys.stderr)
    return code
