"""Whole texts in ``tests/stored_texts``, so that a diff shows what a change does."""

from __future__ import annotations

import re
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import pytest

STORED = Path(__file__).parent / "stored_texts"


def check_stored(name: str, text: str) -> None:
    """Compare a text with the stored one. If none is stored, store it and fail."""
    path = STORED / name
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} was missing, and has been written: read and commit it")
    stored = path.read_text(encoding="utf-8")
    if text != stored:
        lines = unified_diff(stored.splitlines(), text.splitlines(), lineterm="", n=0)
        changed = "\n".join(islice(lines, 2, 40))
        pytest.fail(f"{path} (delete it and run again if this is meant):\n{changed}")


def without_prose(text: str) -> str:
    """Return the text with sentences replaced by their numbers, so that they can be
    worded anew.

    A sentence is a line of at least eight words that is no row of a table.
    """
    lines: list[str] = []
    for line in text.splitlines():
        words = re.findall(r"[A-Za-z]{2,}", line)
        if line.startswith("|") or "  " in line.strip() or len(words) < 8:
            lines.append(line)
            continue
        numbers = " ".join(re.findall(r"[-+±<]?\d[\d.,]*", line))
        if lines and lines[-1].startswith("~"):
            lines[-1] = f"{lines[-1]} {numbers}".rstrip()
        else:
            lines.append(f"~ {numbers}".rstrip())
    return "\n".join(lines) + "\n"
