"""Campaign of odd logs of other evaluations. ``cheesebench verdict`` must report a
verdict or an error without delay, and must not print any of their text unescaped.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cheesebench.cli import main

#: Replacements for values.
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 0.5, 1e308, 10**400, 5, "", "C", "NA", "0,5", "2_4", "\u0663"),
    *(
        "\x1b[31mX\x1b]0;t\x07",
        "\n::error::x",
        "\ud800",
        "\u202e",
        "x" * 5000,
        "../../x",
    ),
    *([], {}, [None], {"a": 1}, {"value": 1}, [[[[]]]], "inf", "nan", "1e400", "-1"),
)
NAMES = ("doc_id", "acc", "sample_id", "evaluation", "evaluation_name", "id", "scores")
CELLS = (
    "",
    "0",
    "1",
    "1.0",
    "0,5",
    '"',
    '"x',
    ";",
    "\t",
    "\x00",
    "NA",
    "True",
    "\u0663",
    "a b",
)
#: Every kind of log, by its file name.
KINDS = ("table.csv", "samples_x.jsonl", "e_samples.jsonl", "log.eval")


class Verdicts:
    """Cases are the name of a file, a line break, and its contents."""

    name = "verdicts"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="cheesebench-fuzz-")
        self._drawn: Mapping[str, Callable[[random.Random], bytes]] = {
            "table.csv": _table,
            "samples_x.jsonl": lambda chance: _lines(chance, _of_lm_eval),
            "e_samples.jsonl": lambda chance: _lines(chance, _of_every_eval),
            "log.eval": _inspect,
        }
        for kind in KINDS:  # This imports modules before anything is timed.
            self.check(f"{kind}\n".encode())

    def draw(self, chance: random.Random) -> bytes:
        """Return a log with odd values, odd shapes, or broken bytes."""
        kind = chance.choice(KINDS)
        body = bytearray(self._drawn[kind](chance))
        if body and chance.random() < 0.3:
            for _ in range(chance.randint(1, 5)):
                body[chance.randrange(len(body))] = chance.randrange(256)
        if body and chance.random() < 0.1:
            del body[chance.randrange(len(body)) :]
        return f"{kind}\n".encode() + bytes(body)

    def check(self, case: bytes) -> None:
        """Judge the log against a value."""
        name, _, content = case.partition(b"\n")
        path = Path(self._folder.name) / (Path(name.decode()).name or "table.csv")
        path.write_bytes(content)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(["verdict", str(path), "--value", "0.5"])
        text = said.getvalue()
        assert code in (0, 2, 4), (code, text)
        assert "Traceback" not in text, text
        raw = {one for one in text if not (one.isprintable() or one == "\n")}
        assert not raw, raw
        assert not any(line.startswith("::") for line in text.split("\n")), text
        assert len(text) < 20_000, len(text)


def _odd(chance: random.Random, value: Any) -> Any:
    return chance.choice(VALUES) if chance.random() < 0.1 else value


def _table(chance: random.Random) -> bytes:
    names = ["subject", "item", "score", *chance.choice(([], ["task"], ["score"]))]
    if chance.random() < 0.1:
        chance.shuffle(names)
    rows = [
        [f"s{subject}", str(item), chance.choice(("0", "1")), "t"][: len(names)]
        for subject in range(12)
        for item in range(3)
    ]
    for _ in range(chance.choice((0, 1, 3))):
        row = chance.choice(rows)
        row[chance.randrange(len(row))] = chance.choice(
            (*CELLS, *(str(one) for one in VALUES))
        )
        if chance.random() < 0.3:
            row.append(chance.choice(CELLS))
    end = chance.choice(("\n", "\r\n", "\r"))
    lines = [",".join(one) for one in (names, *rows)]
    if chance.random() < 0.1:
        lines.insert(0, chance.choice(CELLS))
    return end.join(lines).encode("utf-8", "surrogatepass")


def _lines(
    chance: random.Random, row: Callable[[random.Random, int], dict[str, Any]]
) -> bytes:
    found = []
    for number in range(chance.choice((0, 1, 15, 40))):
        one = row(chance, number)
        if chance.random() < 0.05:
            one[chance.choice((*one, *NAMES))] = chance.choice(VALUES)
        if chance.random() < 0.02:
            del one[chance.choice(tuple(one))]
        found.append(json.dumps(_odd(chance, one) if chance.random() < 0.1 else one))
    return "\n".join(found).encode()


def _of_lm_eval(chance: random.Random, number: int) -> dict[str, Any]:
    return {"doc_id": number, "doc": {"a": 1}, "acc": chance.choice((0.0, 1.0))}


def _of_every_eval(chance: random.Random, number: int) -> dict[str, Any]:
    score = {"score": chance.choice((0, 1))}
    return {"sample_id": str(number), "evaluation_name": "t", "evaluation": score}


def _inspect(chance: random.Random) -> bytes:
    samples = [
        {
            "id": _odd(chance, number),
            "epoch": 1,
            "scores": _odd(
                chance, {"match": _odd(chance, {"value": _odd(chance, "C")})}
            ),
        }
        for number in range(chance.choice((0, 12)))
    ]
    header = {"eval": _odd(chance, {"task": _odd(chance, "t")})}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", chance.choice((0, 8, 12))) as log:
        for name, content in {"header.json": header, "summaries.json": samples}.items():
            if chance.random() > 0.03:
                log.writestr(name, json.dumps(_odd(chance, content)))
    return file.getvalue()
