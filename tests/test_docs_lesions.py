"""The page on lesions explains the rows of its table in which the audit finds less than
was found by hand.
"""

from __future__ import annotations

import json
from pathlib import Path

from website.attacks import KEPT

PAGE = (Path(__file__).parents[1] / "docs" / "explanation" / "lesions.md").read_text(
    encoding="utf-8"
)
NUMBERS = ("no", "one", "two", "three", "four", "five")


def test_rows_in_which_the_audit_finds_less_are_explained() -> None:
    rows = json.loads(KEPT.read_text(encoding="utf-8"))
    less = [row["protocol"] for row in rows if row["found"] < row["by_hand"] - 0.01]
    beginning = (
        f"In {NUMBERS[len(less)]} row{'s' * (len(less) > 1)} the audit finds less"
    )
    explained = PAGE.partition(beginning)[2].partition("\n## ")[0]
    assert [
        name
        for name in less
        if name.partition(".")[0].replace("_", " ") not in explained
    ] == []
    assert explained
