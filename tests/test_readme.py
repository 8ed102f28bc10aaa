"""Links of the README lead somewhere; its commands and blocks are run by
``tests/docs/test_pages.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_links_lead_somewhere() -> None:
    for link in re.findall(
        r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8")
    ):
        assert (ROOT / link).exists(), link
