"""The README as the first page of the site."""

from __future__ import annotations

import re
from pathlib import Path

_README = Path(__file__).parents[1] / "README.md"


def readme() -> str:
    """Return the README with links that are relative to docs/. Files outside docs/ are
    named without a link.
    """
    text = re.sub(
        r"<!-- (?:test|ci): .*? -->\n", "", _README.read_text(encoding="utf-8")
    )
    link = re.compile(r"\[([^]]+)\]\((docs/)?([^)]+)\)")
    return link.sub(
        lambda found: f"[{found[1]}]({found[3]})" if found[2] else found[1], text
    )
