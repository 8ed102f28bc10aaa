"""Compare two files of the same benchmark: python benchmarks/compare.py BEFORE.json AFTER.json.

A ratio above 1 is better, whatever the unit. The exit status is 1 when a figure is worse by more than ``--tolerance``.
Only figures of one machine can be compared; differences below 10 % are noise more often than not.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from common import shown
from tabulate import tabulate


def main() -> int:
    """Print the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.2, help="share by which a figure may be worse (0.2)")
    options = parser.parse_args()
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (options.before, options.after))
    if before["benchmark"] != after["benchmark"]:
        parser.error(f"'{before['benchmark']}' and '{after['benchmark']}' are different benchmarks.")
    if before["machine"] != after["machine"]:
        print(f"Not the same machine:\n  {before['machine']}\n  {after['machine']}")
    rows = []
    worst = 1.0
    for name, figures in before["table"].items():
        for column, old in figures.items():
            new = after["table"].get(name, {}).get(column)
            if not old or not new:
                continue
            ratio = new / old if column.endswith("/s") else old / new
            worst = min(worst, ratio)
            rows.append([name, column, shown(old), shown(new), f"{ratio:.2f}"])
    titles = [before["benchmark"], "", before["commit"] or "before", after["commit"] or "after", "ratio"]
    print(tabulate(rows, titles, colalign=("left", "left", "right", "right", "right"), disable_numparse=True))
    return int(worst < 1 - options.tolerance)


if __name__ == "__main__":
    raise SystemExit(main())
