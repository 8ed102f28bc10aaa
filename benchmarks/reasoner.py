"""Measures the information in the prompts by a program that reads nothing else
(``tests/reasoner.py``), by view and by memory.

The program plays the nine paradigms with the real agent and the default design. The
table goes into ``docs/prompts.md``::

    python benchmarks/reasoner.py              # all of it: some ten minutes
    python benchmarks/reasoner.py star_maze --view ascii_2d   # the other cells stay
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "prompts.md"
sys.path.insert(0, str(ROOT))
from tests.reasoner import judged  # noqa: E402
from tests.reasoner_eyes import NINE  # noqa: E402

VIEWS = ("ascii_2d", "ascii_2d_fpv", "ascii_3d", "topdown_2d")
#: View, history and learnings of each row.
ROWS = [
    *((view, "3-7", 500) for view in VIEWS),
    *(("ascii_2d", history, 500) for history in ("0", "3", "10")),
    *(("ascii_2d", history, 0) for history in ("3", "0")),
    ("ascii_2d, tourist", "0", 0),
]
Row = tuple[str, str, int]


def cell(protocol: str, row: Row) -> str:
    """Return the result on one protocol: ``96 P`` (per cent of trials, and the
    verdict).
    """
    seen, history, learnings = row
    view, _, model = seen.partition(", ")
    with tempfile.TemporaryDirectory() as results:
        found = judged(protocol, history, learnings, results, view, model or "ideal")
    return f"{100 * found.rate:.0f} {found.verdict[0]}"


def shown(page: str) -> dict[Row, dict[str, str]]:
    """Return the cells of the table of the page."""
    table = page.split("<!-- reasoner -->\n")[1].split("\n\n")[0].splitlines()
    head, _, *lines = [
        [part.strip() for part in line.strip("|").split("|")] for line in table
    ]
    return {
        (line[0], line[1], int(line[2])): dict(zip(head[3:], line[3:], strict=True))
        for line in lines
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("protocols", nargs="*", help="default: the nine")
    parser.add_argument("--view", action="append", help="default: all")
    options = parser.parse_args()
    cells = shown(PAGE.read_text(encoding="utf-8"))
    for row in ROWS:
        own = cells.setdefault(row, {})
        if row[0].partition(",")[0] in (options.view or VIEWS):
            own |= {
                protocol: cell(protocol, row) for protocol in options.protocols or NINE
            }
            print(*row, own, flush=True)
        lines = [
            ["view", "history", "learnings", *NINE],
            ["---"] * 3 + ["--:"] * len(NINE),
        ]
        lines += [
            [*map(str, one), *(cells.get(one, {}).get(name, "") for name in NINE)]
            for one in ROWS
        ]
        before, mark, after = PAGE.read_text(encoding="utf-8").partition(
            "<!-- reasoner -->\n"
        )
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        PAGE.write_text(
            f"{before}{mark}{table}\n\n{after.partition(chr(10) * 2)[2]}",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
