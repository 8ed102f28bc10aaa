"""The job summary of GitHub Actions: appends to ``$GITHUB_STEP_SUMMARY`` without exceeding its size limit."""

from __future__ import annotations

import os
from pathlib import Path

#: GitHub drops the whole page of a step that is larger.
LIMIT = 2**20
_FENCE = "```"
_CUT = (
    "\n\n*Cut here, because GitHub limits a summary to 1 MiB. The whole report is `report.md` in the run's "
    "directory.*\n"
)


def append_step_summary(text: str) -> None:
    """Append a Markdown report to the summary of this step, if there is one. Raises OSError."""
    given = os.environ.get("GITHUB_STEP_SUMMARY")
    if not given:
        return
    path = Path(given)
    taken = path.stat().st_size if path.exists() else 0
    with path.open("a", encoding="utf-8") as file:
        file.write(cut(text, LIMIT - taken))


def cut(text: str, room: int) -> str:
    """Return the text if it fits into ``room`` bytes, else as many whole lines as fit and a notice."""
    content = text.encode()
    if len(content) <= room:
        return text
    # A truncated code block must be closed, or the rest of the page would be code.
    closing = f"{_FENCE}{_CUT}"
    room -= len(closing.encode())
    if room <= 0:
        return ""
    kept = content[:room].rpartition(b"\n")[0].decode()
    return kept + "\n" + (closing if kept.count(f"\n{_FENCE}") % 2 else _CUT.lstrip("\n"))
