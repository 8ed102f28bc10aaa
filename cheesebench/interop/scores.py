"""Scores of other evaluations: logs of Inspect AI, lm-eval and Every Eval Ever, and
CSV. They may be a stranger's.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
import zlib
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from cheesebench.diagnostics import listed
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.files import MISSING_CELLS, TableError, read_bytes, read_table
from cheesebench.redaction import quoted

#: Bytes of a table, of a line, or of a member of an Inspect log; of all JSON of such a
#: log; characters of a name, and scores: more than any evaluation has.
LONGEST, LONGEST_JSON, LONGEST_NAME, MOST = 32 * 2**20, 64 * 2**20, 500, 1_000_000
#: Names of scores, and of tasks, in a file.
MOST_NAMES = 10_000
#: Objects and lists, and values, in one piece of JSON: in memory each takes up to 60
#: times what it takes in the file.
MOST_OBJECTS, MOST_VALUES = 500_000, 2_000_000
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)  # encrypted
#: Inspect's grades.
GRADES = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "true": 1.0,
    "false": 0.0,
}
FORMATS = "an Inspect log (.eval), samples_*.jsonl of lm-eval, a *_samples.jsonl of Every Eval Ever, or a CSV file"


class Row(NamedTuple):
    """One score. ``subject`` is what is paired: an item, or the cluster that it belongs
    to.
    """

    task: str
    subject: str
    item: str
    name: str
    value: object
    place: str = ""
    """``FILE:LINE`` or ``FILE:LINE:COLUMN``, where the file has lines."""


@dataclass(slots=True)
class Items:
    """The scores of one task. Repeats of an item are added up, in any order."""

    index: dict[tuple[str, str], int] = field(default_factory=dict)
    """(subject, item) -> its place in the arrays."""
    sums: array[float] = field(default_factory=lambda: array("d"))
    known: array[int] = field(default_factory=lambda: array("q"))
    """Repeats that have a score."""
    missing: array[int] = field(default_factory=lambda: array("q"))
    """Repeats that have none: it is empty, or no finite number."""

    def add(self, subject: str, item: str, value: float | None) -> None:
        at = self.index.setdefault((subject, item), len(self.sums))
        if at == len(self.sums):
            self.sums.append(0.0)
            self.known.append(0)
            self.missing.append(0)
        if value is None:
            self.missing[at] += 1
        else:
            self.sums[at] += value
            self.known[at] += 1


class Shown(dict[str, str]):
    """Names in a file, as they are shown: to make one fit to be shown takes longer than
    to read a row.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def show(self, name: str) -> str:
        if name not in self:
            if len(self) == MOST_NAMES:
                raise OptionError(f"{self._path} has more than {MOST_NAMES:,} names.")
            self[name] = quoted(name, LONGEST_NAME)
        return self[name]


@dataclass(slots=True)
class Scores:
    """The scores of one model, by task."""

    path: str
    tasks: dict[str, Items] = field(default_factory=dict)
    lives: list[Mapping[str, Any]] = field(default_factory=list)
    """Subjects of our own tasks of Inspect, with their plans; see
    ``interop.hosted``.
    """


def read_scores(
    path: Path,
    *,
    score: str | None = None,
    cluster: str | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
) -> Scores:
    """Return the scores in a log, a file, or a directory of them, each scaled from
    ``limits`` to 0 to 1.

    ``score`` names one of several scores, ``cluster`` the field of an item's metadata
    by which items are clustered. Raises OptionError for what is no such log, and for a
    score beyond the limits.
    """
    found, names = Scores(quoted(str(path), LONGEST_NAME)), Shown(path)
    tasks = Shown(path)
    low, high = limits
    try:
        for number, row in enumerate(_rows(path, cluster, found.lives)):
            if number >= MOST:
                raise OptionError(f"{path} has more than {MOST:,} scores.")
            if row.name:
                names.show(row.name)
                if score is not None and row.name != score:
                    continue
            value = _number(row.value, row.place or str(path))
            if value is not None:
                if not low <= value <= high:
                    raise OptionError(
                        f"{row.place or path}: the score {value:g} is not from {low:g} to {high:g}. Give --range."
                    )
                value = (value - low) / (high - low)
            task = tasks.show(row.task)
            if task not in found.tasks:
                found.tasks[task] = Items()
            found.tasks[task].add(
                row.subject[:LONGEST_NAME], row.item[:LONGEST_NAME], value
            )
    except TableError as error:
        raise OptionError(
            f"{path}:{error.line}:{error.column}: {quoted(f'{error.said} {error.remedy}', 300)}"
        ) from None
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        *_BAD_ZIP,
    ) as error:
        raise OptionError(
            f"{path} is no log that can be read ({quoted(str(error), 200)}). Give {FORMATS}."
        ) from None
    if score is not None and score not in names and names:
        raise UnknownNameError(f"score in {path} called", score, names.values())
    if len(names) > 1 and score is None:
        raise OptionError(
            f"{path} has several scores: {', '.join(names.values())}. Choose one with --score."
        )
    if not found.tasks:
        raise OptionError(f"{path} has no scores of items. Give {FORMATS}.")
    return found


def _number(value: object, place: str) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        value = GRADES.get(value, GRADES.get(value.lower(), value))
    try:
        # 2_4, and digits of other scripts, are numbers for Python alone.
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            raise ValueError
        number = float(value)  # type: ignore[arg-type]
        if math.isinf(number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise OptionError(
            f"{place}: the score {quoted(repr(value), 60)} is no number."
        ) from None
    return None if math.isnan(number) else number


def _rows(
    path: Path, cluster: str | None, lives: list[Mapping[str, Any]]
) -> Iterator[Row]:
    if path.is_dir():
        files = [*sorted(path.glob("*.eval")), *sorted(path.glob("**/samples_*.jsonl"))]
        tasks = [
            _task_of(file) if file.suffix == ".jsonl" else file.name for file in files
        ]
        if twice := next((task for task in tasks if tasks.count(task) > 1), None):
            raise OptionError(
                f"{path} has several files of the task {twice}. Name one file."
            )
        for file in files:
            yield from _rows(file, cluster, lives)
    elif path.suffix == ".eval":
        yield from _of_inspect(path, cluster, lives)
    elif path.suffix == ".csv":
        yield from _of_csv(path)
    elif path.suffix == ".jsonl":
        with _regular(path) as lines:
            yield from _of_lines(path, lines, cluster)
    else:
        raise ValueError(
            "its name does not say what it is"
            if path.exists()
            else "there is no such file"
        )


def _of_csv(path: Path) -> Iterator[Row]:
    content = read_bytes(path, LONGEST + 1)
    if len(content) > LONGEST:
        raise ValueError(f"it has more than {LONGEST:,} bytes")
    lines = read_table(content.decode("utf-8-sig"))
    _, header = next(lines, (1, []))
    absent = [name for name in ("subject", "item", "score") if name not in header]
    if absent:
        lower = {*absent} <= {name.lower() for name in header}
        remedy = (
            "Write the names in lower case."
            if lower
            else "The first line names the columns: subject,item,score."
        )
        raise TableError(1, 1, f"There is no column {listed(absent)}.", remedy)
    for line, cells in lines:
        row = dict(zip(header, cells, strict=True))
        for name in ("subject", "item"):
            if not row[name]:
                column = header.index(name) + 1
                raise TableError(line, column, f"The cell of '{name}' is empty.")
        score = "" if row["score"].lower() in MISSING_CELLS else row["score"]
        yield Row(
            row.get("task") or "all items",
            row["subject"],
            row["item"],
            "score",
            score,
            f"{path}:{line}:{header.index('score') + 1}",
        )


def _regular(path: Path) -> IO[bytes]:
    """Open a regular file: reading any other could block, or never end."""
    read_bytes(path, 0)
    return path.open("rb")


def _loads(content: bytes) -> Any:
    """Return what JSON holds; ValueError for what would fill the memory."""
    objects = content.count(b"{") + content.count(b"[")
    if objects > MOST_OBJECTS or objects + content.count(b",") > MOST_VALUES:
        raise ValueError("it takes more memory than any evaluation's")
    return json.loads(content)


def _task_of(path: Path) -> str:
    return re.sub(r"^samples_|_\d{4}-\d\d-\d\dT[\d.:-]+$", "", path.stem)


def _of_lines(path: Path, lines: IO[bytes], cluster: str | None) -> Iterator[Row]:
    number = 0
    while line := lines.readline(LONGEST):
        number += 1
        if not line.endswith(b"\n") and len(line) == LONGEST:
            raise ValueError(f"a line has more than {LONGEST:,} bytes")
        row = _loads(line)
        if "doc_id" in row:
            item = str(row["doc_id"])
            subject = _subject(item, row.get("doc"), cluster)
            names = row.get("metrics") or [
                name for name in ("acc", "acc_norm", "exact_match") if name in row
            ]
            chosen = row.get("filter", "none")
            for name in names:
                yield Row(
                    _task_of(path),
                    subject,
                    item,
                    name if chosen == "none" else f"{name},{chosen}",
                    row[name],
                    f"{path}:{number}",
                )
        else:
            item = str(row["sample_id"])
            subject = _subject(item, row.get("metadata"), cluster)
            name = row.get("evaluation_result_id") or "score"
            yield Row(
                row["evaluation_name"],
                subject,
                item,
                str(name),
                row["evaluation"]["score"],
                f"{path}:{number}",
            )


def _subject(item: str, fields: object, name: str | None) -> str:
    if name is None:
        return item
    if not isinstance(fields, Mapping) or name not in fields:
        known = (
            ", ".join(map(str, islice(fields, 10)))
            if isinstance(fields, Mapping)
            else "none"
        )
        raise OptionError(
            f"--cluster {name}: an item has no such field. Its fields: {quoted(known, 200)}."
        )
    return str(fields[name])


def _of_inspect(
    path: Path, cluster: str | None, lives: list[Mapping[str, Any]]
) -> Iterator[Row]:
    with suppress(ImportError):
        import zipfile_zstd  # noqa: F401 - adds the compression that Inspect uses to zipfile, before Python 3.14
    with _regular(path) as log, zipfile.ZipFile(log) as file:
        left = LONGEST_JSON

        def read(name: str) -> Any:
            nonlocal left
            most = min(left, LONGEST)
            with file.open(name) as member:
                content = member.read(most + 1)
            left -= len(content)
            if len(content) > most:
                raise ValueError("its samples take more memory than any evaluation's")
            return _loads(content)

        try:
            header, samples = read("header.json"), read("summaries.json")
        except NotImplementedError:
            raise OptionError(
                f"{path} is compressed with Zstandard, which this Python lacks. Install it with: "
                "pip install zipfile-zstd"
            ) from None
        task = str(header["eval"]["task"])
        for sample in samples:
            item = str(sample["id"])
            subject = _subject(item, sample.get("metadata"), cluster)
            for scorer, score in (sample.get("scores") or {}).items():
                value, metadata = score.get("value"), score.get("metadata")
                if (
                    isinstance(metadata, Mapping)
                    and {"plan", "trials"} <= metadata.keys()
                ):
                    # A summary has long texts in part.
                    whole = read(f"samples/{sample['id']}_epoch_{sample['epoch']}.json")
                    lives.append(whole["scores"][scorer]["metadata"])
                named = value if isinstance(value, Mapping) else {"": value}
                for part, number in named.items():
                    yield Row(
                        task,
                        subject,
                        item,
                        f"{scorer}/{part}" if part else scorer,
                        number,
                    )
            if not sample.get("scores"):
                yield Row(
                    task, subject, item, "", None
                )  # whatever it is scored by, it was not
