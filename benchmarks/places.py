"""Places in pages of the documentation that a script fills: ``<!-- measured: NAME -->``
until ``<!-- end -->``.
"""

from __future__ import annotations

import re
from pathlib import Path


def filled(page: Path, name: str, text: str) -> str:
    """Return a page with a text at the only place of this name."""
    place = rf"(?<=<!-- measured: {re.escape(name)} -->).*?(?=<!-- end -->)"
    found, times = re.subn(
        place, lambda _: text, page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert times == 1, f"{page} has no place for '{name}'"
    return found


def fill(page: Path, name: str, text: str) -> None:
    page.write_text(filled(page, name, text), encoding="utf-8")
