"""Measures how often the grades by our reader of dialogues agree with the recorded
grades of published answers, for docs/cogeval.md.

``python benchmarks/cogeval_agreement.py ANSWERS.jsonl`` prints the agreement, overall
and by domain, and every answer on which the two differ. A line is one conversation:
``file graph domain condition turns recorded_key recorded_score``.

``--conversations DIR --used USED.jsonl --write FOLDER`` draws such files from a copy of
the paper's public conversations, by a rule that does not depend on their content. For
each graph, domain, condition and model, the conversation whose path has the smallest
SHA-256 is taken, unless it is in USED. Another SHA-256 assigns half of these to
``held_out.jsonl``. The other half goes to ``development.jsonl``, with which the reader
is developed. No answer of either file is in this project.

The verdicts on the disagreements of ``held_out.jsonl``, one by one, are in
``cogeval_disagreements.csv``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.paradigms.dialogue.answers import Answer, Lexicon, read_answer
from cheesebench.paradigms.dialogue.specification import Form

Row = dict[str, Any]

#: File of the answers whose grade differs from the recorded one, each with a verdict on
#: which of the two is right.
DISAGREEMENTS = Path(__file__).with_name("cogeval_disagreements.csv")
#: Models of Table 3 that have grades, under their names in the public folders.
MODELS = {
    "anthropic-claude-v1": "claude-v1",
    "bard": "bard",
    "cohere-xlarge": "cohere-xlarge",
    "gpt-35-turbo": "gpt-35-turbo",
    "gpt-4-32k": "gpt-4-32k",
    "replicate-alpaca-7b": "alpaca-7b",
    "replicate-llama-13b": "llama-13b",
    "text-davinci-003": "text-davinci-003",
}
#: Conditions that have grades and keys. The public folders also have conditions without
#: them.
CONDITIONS = frozenset(
    re.findall(
        r"\w+",
        "valuePath 1stepPath 2stepPath 3stepPath nstepPath rewardReval policyReval transReval transRevalStochastic "
        "nonteleShortcut teleShortcut nonteleDetour teleDetour nClusters",
    )
)
#: Words in the questions that are no names: common words, and the nouns of the scenes.
_NO_NAMES = frozenset(
    re.findall(
        r"\w+",
        "the and fields field any is rest now no longer to instead also connected flower another this ceo there you",
    )
)
_NOUNS = ("room", "zone", "field", "scholar", "flower")
#: Nodes where a path begins. An answer may omit them if the question did not ask for
#: them.
_LOBBIES = frozenset({"lobby", "entrance", "vicky"})


def names_of(row: Row, alike: Iterable[Row]) -> set[str]:
    """Return the names that a conversation uses: those in the keys of its graph and
    domain, and in its questions.
    """
    if row["domain"] == "ordRooms":
        return {str(number) for number in range(1, 25)} | {"lobby", "entrance"}
    text = " ".join(turn["user"] for turn in row["turns"])
    names = {
        name.strip()
        for other in alike
        for key in other["recorded_key"]
        for name in key.split(",")
    }
    names = {name for name in names if name.isalpha()}
    if row["domain"] == "unordSpatial":
        places = re.findall(r"(\w{4,}) fields?\b", text)
        places += [
            word
            for part in re.findall(r"connected to ([^.]*)", text)
            for word in re.findall(r"\w+", part)
        ]
        return (
            names | {place.lower() for place in places} | {"lobby", "entrance"}
        ) - _NO_NAMES
    people = re.findall(
        r"(?<=[a-z,] )([A-Z][a-z]+)|\b([A-Z][a-z]+) (?:is|has|who)\b", text
    )
    return (names | {(a or b).lower() for a, b in people}) - _NO_NAMES


def read(row: Row, alike: Iterable[Row]) -> tuple[Answer, bool]:
    """Return an answer as read by the reader, and whether it is right by the recorded
    key.
    """
    lexicon = Lexicon({name: name for name in names_of(row, alike)}, _NOUNS)
    form: Form = (
        "path" if any("," in key for key in row["recorded_key"]) else "first_step"
    )
    if row["condition"] == "nClusters":
        form = "number"
    answer = read_answer(row["turns"][-1]["assistant"], lexicon, form)
    if form == "number":
        return answer, answer.number is not None and str(answer.number) in " ".join(
            row["recorded_key"]
        ).split()
    keys = [
        read_answer(f"Answer: {key}", lexicon, form).nodes
        for key in row["recorded_key"]
    ]
    question = row["turns"][-1]["user"]
    if "including" not in question:
        # The question did not say that the start belongs to the list.
        keys += [
            key[1:]
            for key in keys
            if len(key) > 1 and re.search(rf"from \w* ?{key[0]}\b", question, re.I)
        ]
    nodes = answer.nodes
    if nodes and nodes[0] in _LOBBIES and not any(key[0] == nodes[0] for key in keys):
        nodes = nodes[1:]
    return answer, not answer.several and nodes in keys


def rows_of(*paths: Path) -> list[Row]:
    """Return the conversations of files."""
    return [
        json.loads(line)
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def graded(
    rows: Sequence[Row], others: Iterable[Row] = ()
) -> Iterator[tuple[Row, Answer, bool, bool]]:
    """Yield every conversation with its answer, our grade and the recorded one.
    Conversations in ``others`` are used only to collect names.
    """
    alike: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in (*rows, *others):
        alike[row["graph"], row["domain"]].append(row)
    for row in rows:
        answer, right = read(row, alike[row["graph"], row["domain"]])
        yield row, answer, right, bool(row["recorded_score"])


def agreement(
    rows: Sequence[Row], others: Iterable[Row] = ()
) -> dict[str, tuple[int, int]]:
    """Return the numbers of agreements and answers, overall (``""``) and for each
    domain.
    """
    counts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row, _, right, recorded in graded(rows, others):
        for group in ("", row["domain"]):
            agreed, number = counts[group]
            counts[group] = (agreed + (right == recorded), number + 1)
    return dict(counts)


def verdicts() -> Mapping[str, Row]:
    """Return the verdicts on disagreements by the file of the conversation."""
    with DISAGREEMENTS.open(encoding="utf-8", newline="") as lines:
        return {row["file"]: row for row in csv.DictReader(lines)}


def draw(folder: Path, used: Iterable[str]) -> dict[str, list[Row]]:
    """Return the held-out conversations of a copy of the public ones, and those for
    development.
    """
    left_out, cells = set(used), defaultdict[tuple[str, ...], list[str]](list)
    for path in folder.glob("*/*/*/*/*.json"):
        name = path.relative_to(folder).as_posix()
        *cell, _ = name.split("/")
        if cell[3] in MODELS and cell[2] in CONDITIONS and name not in left_out:
            cells[tuple(cell)].append(name)
    found: dict[str, list[Row]] = {"held_out": [], "development": []}
    for name in sorted(
        (min(names, key=_digest) for names in cells.values()), key=_digest
    ):
        if row := _conversation(folder, name):
            found[
                "held_out"
                if int(_digest(f"split {name}")[:8], 16) % 2
                else "development"
            ].append(row)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _conversation(folder: Path, name: str) -> Row | None:
    """Return a public conversation as a row, or None if it has no grade."""
    told = json.loads((folder / name).read_text(encoding="utf-8-sig"))
    graph, domain, condition, model, _ = name.split("/")
    score = told.get("scores", {}).get(condition)
    if not score:
        return None
    said = [message for message in told["messages"] if message["role"] != "system"]
    turns = [
        {"user": question["content"], "assistant": reply["content"]}
        for question, reply in zip(said[::2], said[1::2], strict=True)
    ]
    expected = told["tests"][condition]["expected_answer"]
    keys = [expected] if isinstance(expected, str) else expected
    return {
        "file": name, "graph": graph, "domain": domain, "condition": condition, "model": MODELS[model],
        "turns": turns, "recorded_key": [key.partition(":")[2].strip().lower() or key.lower() for key in keys],
        "recorded_score": score["score"],
    }  # fmt: skip


def main() -> None:
    """Print the agreement, or draw the files for measuring it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "answers",
        nargs="*",
        type=Path,
        help="conversations with recorded grades, JSON lines",
    )
    parser.add_argument(
        "--conversations",
        type=Path,
        help="the folder 'conversations' of the public data",
    )
    parser.add_argument(
        "--used", type=Path, help="conversations that the reader was developed with"
    )
    parser.add_argument(
        "--write", type=Path, help="where held_out.jsonl and development.jsonl go"
    )
    asked = parser.parse_args()
    if asked.conversations:
        used = [row["file"] for row in rows_of(asked.used)] if asked.used else []
        for name, rows in draw(asked.conversations, used).items():
            path = asked.write / f"{name}.jsonl"
            path.write_text(
                "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
            )
            print(f"{path}: {len(rows)} conversations")
        return
    known = verdicts()
    for path in asked.answers:
        rows = rows_of(path)
        others = rows_of(asked.used) if asked.used else []
        for group, (agreed, number) in agreement(rows, others).items():
            print(
                f"{path.name} {group or 'all'}: {agreed} of {number} agree, {agreed / number:.1%}"
            )
        for row, answer, right, recorded in graded(rows, others):
            if right != recorded:
                verdict = known.get(row["file"], {"fault": "not judged", "why": ""})
                said = (
                    answer.number
                    if answer.nodes == ()
                    else " ".join(node or "?" for node in answer.nodes)
                )
                print(
                    f"  {row['file']}: here {right:d}, record {recorded:d}; read as {said}; {verdict['fault']}"
                )


if __name__ == "__main__":
    main()
