"""``cheesebench compare``: is one run better or worse than another, or can nobody tell?"""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.baselines import find_counted
from cheesebench.cli import FINDINGS
from cheesebench.commands.common import write_output
from cheesebench.errors import OptionError
from cheesebench.plugin_manager import installed_plugins


def run(options: argparse.Namespace) -> int:
    """Compare, write the table, and return 1 if something is worse and that was to fail."""
    plugins = installed_plugins()
    from cheesebench.statistics.runs import ComparisonReporter, compare_runs

    reporter = plugins.reporter(options.format)
    if not isinstance(reporter, ComparisonReporter):
        able = sorted(name for name, one in plugins.reporters.items() if isinstance(one, ComparisonReporter))
        raise OptionError(f"--format {options.format} cannot show comparisons. Use one of {', '.join(able)}.")
    first, second = (
        find_counted(Path(options.results), name, Path(options.baselines)) for name in (options.first, options.second)
    )
    found = compare_runs(
        first,
        second,
        models=(options.first_model, options.second_model),
        protocols=tuple(options.protocol or ()),
    )
    write_output(reporter.render_comparison(found), options.output)
    return FINDINGS if found.worse and options.fail == "worse" else 0
