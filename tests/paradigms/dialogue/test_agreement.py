"""The reader against recorded grades of published answers, and its figures in
docs/cogeval.md.

The answers are not part of the project. If they are in a folder beside it, they are
compared; otherwise only the list of disagreements with its verdicts, and the page.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.cogeval_agreement import agreement, graded, rows_of, verdicts

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs" / "cogeval.md").read_text(encoding="utf-8")
_BESIDE = [parent / "shared" / "data" / "cogeval" for parent in Path(__file__).parents]
USED = next(
    (folder / "responses.jsonl" for folder in _BESIDE if folder.is_dir()),
    PROJECT / "none",
)
HELD_OUT = PROJECT / "benchmarks" / "held_out.jsonl"


def figures(kind: str) -> tuple[int, float, float]:
    """Return the figures on the page: answers, agreement overall and on ordered rooms,
    in percent.
    """
    found = re.search(rf"\| {kind} \| (\d+) \| ([\d.]+) % \| ([\d.]+) % \|", PAGE)
    assert found, f"no figures of {kind} answers on the page"
    return int(found[1]), float(found[2]), float(found[3])


def measured(path: Path, *others: Path) -> tuple[int, float, float]:
    counts = agreement(rows_of(path), rows_of(*others))
    (agreed, number), (in_order, rooms) = counts[""], counts["ordRooms"]
    return number, round(100 * agreed / number, 1), round(100 * in_order / rooms, 1)


@pytest.mark.skipif(
    not USED.is_file(), reason="the published answers are not beside the project"
)
def test_the_page_says_how_often_the_reader_agrees_on_answers_it_was_developed_with() -> (
    None
):
    assert measured(USED) == figures("developed with")


@pytest.mark.skipif(
    not (USED.is_file() and HELD_OUT.is_file()),
    reason="no held-out answers have been drawn",
)
def test_the_page_says_how_often_the_reader_agrees_on_others() -> None:
    assert measured(HELD_OUT, USED) == figures("held out")


@pytest.mark.skipif(
    not (USED.is_file() and HELD_OUT.is_file()),
    reason="no held-out answers have been drawn",
)
def test_every_disagreement_has_a_verdict() -> None:
    rows = graded(rows_of(HELD_OUT), rows_of(USED))
    differ = {
        row["file"]: (str(int(ours)), str(int(theirs)))
        for row, _, ours, theirs in rows
        if ours != theirs
    }
    assert differ == {
        file: (row["ours"], row["record"]) for file, row in verdicts().items()
    }


def test_the_verdicts_are_those_of_the_page() -> None:
    number, overall, rooms = figures("held out")
    judged = verdicts()
    assert all(row["why"] for row in judged.values())
    assert overall == round(100 * (number - len(judged)) / number, 1)
    assert overall >= 93
    assert rooms >= 97
    faults = Counter(row["fault"] for row in judged.values())
    assert set(faults) == {"record", "reader"}
    assert faults["record"] >= 0.9 * len(judged)
    assert f"{faults['record']} of {len(judged)} disagreements" in PAGE
