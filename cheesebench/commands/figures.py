"""``cheesebench figures``: draws figures and writes tables for a paper, from one run or
several.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from cheesebench.commands.common import add_option, describe, one_line
from cheesebench.functions import figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Draws differences with margins, pass rates, best of views, the cognitive profile, curves (pass rate, latency, "
        "path length) with single subjects, strategies, occupancy, tracks, controls, the scaling curve and "
        "varied settings, and writes tables. Figures without data are left out. Needs the extra 'figures'.",
        "20250131-093000-ab12",
        "monday tuesday --output paper --format svg,pdf --width 7",
    )
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="a run's id, directory or run.sqlite"
    )
    add_option(parser, "results")
    parser.add_argument(
        "--output",
        metavar="DIR",
        default="figures",
        help="directory to write to (default: figures)",
    )
    parser.add_argument(
        "--only",
        metavar="NAMES",
        default="",
        help="these figures, such as forest,curves (default: all)",
    )
    parser.add_argument(
        "--format",
        metavar="NAMES",
        default="svg,png",
        help="formats of the figures: svg, png, pdf (default: svg,png)",
    )
    parser.add_argument(
        "--width",
        metavar="INCHES",
        type=float,
        help="width of every figure, 1 to 50 (default: each has its own)",
    )
    parser.add_argument(
        "--dpi",
        metavar="N",
        type=int,
        default=150,
        help="dots per inch of PNG, 10 to 1200 (default: 150)",
    )


def run(options: argparse.Namespace) -> int:
    formats = [part.strip() for part in options.format.split(",")]
    said: list[str] = []
    only = [one.strip() for one in options.only.split(",") if one.strip()]
    chosen: dict[str, Any] = {"only": only} if only else {}
    files = figures(
        options.runs,
        results=options.results,
        **chosen,
        formats=formats,
        width=options.width,
        dpi=options.dpi,
        tell=said.append,
    )
    files.save(options.output)
    print(f"{one_line(str(Path(options.output)))}: {', '.join(files)}")
    if files.absent:
        said.append(repr(files).partition("> ")[2])
    print("\n".join(said), file=sys.stderr)
    return 0
