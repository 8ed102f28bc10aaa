"""Whole texts in ``tests/stored_texts``, so that a diff shows what a change does."""

from __future__ import annotations

import math
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
    if not are_equal(text, stored):
        lines = unified_diff(stored.splitlines(), text.splitlines(), lineterm="", n=0)
        changed = "\n".join(islice(lines, 2, 40))
        pytest.fail(f"{path} (delete it and run again if this is meant):\n{changed}")


def are_equal(text: str, stored: str) -> bool:
    """Whether two texts are equal, but for the last digits of numbers that are written
    in full: NumPy rounds them otherwise on another processor.
    """
    ours, theirs = re.split(NUMBER, text), re.split(NUMBER, stored)
    return len(ours) == len(theirs) and all(map(_are_same, ours, theirs))


#: A decimal number, as a group.
NUMBER = r"(\d+\.\d+(?:e-?\d+)?)"


def _are_same(ours: str, theirs: str) -> bool:
    if ours == theirs:
        return True
    numbers = re.fullmatch(NUMBER, ours) and re.fullmatch(NUMBER, theirs)
    if not numbers or max(len(ours), len(theirs)) < len("0.0123456789012"):
        return False
    return math.isclose(float(ours), float(theirs), rel_tol=1e-12)


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
