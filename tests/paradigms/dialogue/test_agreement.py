"""The scorer against recorded grades of published answers, where those lie beside the project."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from cheesebench.paradigms.dialogue.answers import Form, read_answer
from cheesebench.paradigms.dialogue.lexicon import Lexicon

_BESIDE = [parent / "shared" / "data" / "cogeval" / "responses.jsonl" for parent in Path(__file__).parents]
RESPONSES = next((path for path in _BESIDE if path.is_file()), _BESIDE[0])
#: Words of the questions that are no names, and the nouns of their scenes.
_NO_NAMES = {
    "the",
    "and",
    "fields",
    "field",
    "any",
    "is",
    "rest",
    "now",
    "no",
    "longer",
    "to",
    "instead",
    "also",
    "connected",
    "flower",
    "another",
    "this",
}
_NOUNS = ("room", "zone", "field", "scholar", "flower")
_LOBBIES = ("lobby", "entrance")

Row = dict[str, Any]


def _names(row: Row, others: list[Row]) -> set[str]:
    """Return the names that a conversation uses: those of its keys, and those in its questions."""
    text = " ".join(turn["user"] for turn in row["turns"])
    names = {name.strip() for other in others for key in other["recorded_key"] for name in key.split(",")}
    if row["domain"] == "ordRooms":
        return {str(number) for number in range(1, 25)} | set(_LOBBIES)
    if row["domain"] == "unordSpatial":
        places = re.findall(r"(\w{4,}) fields?\b", text)
        places += [word for part in re.findall(r"connected to ([^.]*)", text) for word in re.findall(r"\w+", part)]
        return names | {place.lower() for place in places} - _NO_NAMES | set(_LOBBIES)
    people = re.findall(r"(?<=[a-z,] )([A-Z][a-z]+)|\b([A-Z][a-z]+) (?:is|has|who)\b", text)
    return names | {(a or b).lower() for a, b in people} - {"ceo", "now", "this", "there"}


def _grade(row: Row, others: list[Row]) -> bool:
    names = _names(row, others)
    keys = [[name.strip() for name in key.split(",")] for key in row["recorded_key"]]
    form: Form = "path" if any(len(key) > 1 for key in keys) else "first_step"
    if row["condition"] == "nClusters":
        form = "number"
    answer = read_answer(row["turns"][-1]["assistant"], Lexicon({name: name for name in names}, _NOUNS), form)
    if form == "number":
        return bool(row["recorded_key"] == [str(answer.number)])
    nodes = list(answer.nodes)
    # The one who is asked first, in graphs with a lobby; it may stand before the way.
    first = re.search(r"[Ff]rom (?:the )?(\w+)[ ,]", row["turns"][0]["user"])
    if first and nodes[:1] == [first[1].lower()] and keys[0][0] != nodes[0]:
        nodes = nodes[1:]
    return not answer.several and nodes in keys


@pytest.mark.skipif(not RESPONSES.is_file(), reason="the published answers are not beside the project")
def test_agreement_with_the_recorded_grades(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in RESPONSES.read_text(encoding="utf-8").splitlines()]
    alike: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        alike[row["graph"], row["domain"]].append(row)
    agrees = {
        row["file"]: _grade(row, alike[row["graph"], row["domain"]]) == bool(row["recorded_score"]) for row in rows
    }
    ordered = [agrees[row["file"]] for row in rows if row["domain"] == "ordRooms"]
    overall = sum(agrees.values()) / len(agrees)
    rooms = sum(ordered) / len(ordered)
    with capsys.disabled():
        print(f"\nagreement with the recorded grades: {overall:.1%} of {len(rows)}, ordered rooms {rooms:.1%}")
    assert overall >= 0.92
    assert rooms >= 0.98
