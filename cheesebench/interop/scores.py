"""Reads scores of other evaluations from logs of Inspect AI, lm-eval and Every Eval
Ever, CSV files, data frames and lists. The files may be hostile.
"""

from __future__ import annotations

import codecs
import difflib
import hashlib
import json
import math
import re
import zipfile
import zlib
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, repeat
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic_core import from_json

from cheesebench.diagnostics import listed
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.files import (
    MISSING_CELLS,
    TableError,
    read_bytes,
    read_columns,
)
from cheesebench.redaction import quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Limits that no real log should reach. ``LONGEST``: bytes of a table, of a line, or of
#: a member of an Inspect log. ``LONGEST_JSON``: bytes of all JSON of such a log.
#: ``LONGEST_NAME``: characters of a name. ``MOST``: number of scores.
LONGEST, LONGEST_JSON, LONGEST_NAME, MOST = 32 * 2**20, 64 * 2**20, 500, 1_000_000
#: Number of rows processed together.
AT_ONCE = 300
#: Maximum number of names of scores, of tasks, and of the models of a task, in a log.
MOST_NAMES = 10_000
#: Maximum number of objects and lists, and of values, in one piece of JSON. In memory,
#: each takes up to 60 times its size in the file.
MOST_OBJECTS, MOST_VALUES = 500_000, 2_000_000
#: Maximum number of objects and lists, of values, and of bytes, in all lines of a log
#: together. A log of this size takes about ten seconds to read.
ALL_OBJECTS, ALL_VALUES, ALL_BYTES = 20_000_000, 100_000_000, 2**30
#: Names that scores may have in old files of lm-eval. Such files do not list the names
#: of their scores.
_METRICS = ("acc", "acc_norm", "exact_match")
_decode = json.JSONDecoder().decode
# RuntimeError is raised if the file is encrypted.
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
#: Compression methods that Inspect uses: none, Deflate, Zstandard. Python would unpack
#: a member with another method as a whole, whatever size is asked for.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93)
#: Inspect's grades -> scores.
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


#: One score: its task, its subject (the item, or its cluster), its item, its name, its
#: value, and its place: a file, and perhaps line and column, or the name of scores in
#: memory, and the row.
Row = tuple[str, str, str, str, object, tuple[object, ...]]


def _numbering() -> defaultdict[tuple[str, str], int]:
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    found.default_factory = found.__len__
    return found


@dataclass(slots=True)
class Items:
    """The scores of one task, in any order. An item has one score per repeat."""

    index: dict[tuple[str, str], int] = field(default_factory=_numbering)
    """(subject, item) -> its number, in the log's order."""
    _places: array[int] = field(default_factory=lambda: array("q"))
    _scores: array[float] = field(default_factory=lambda: array("d"))

    def add(self, keys: Iterable[tuple[str, str]], scores: Iterable[float]) -> None:
        """Add scores of items. NaN stands for a missing score."""
        self._places.extend(map(self.index.__getitem__, keys))
        self._scores.extend(scores)

    def sums(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return, for each item, the sum of its scores, their number, and the number of
        missing scores.
        """
        import numpy as np

        places, scores = np.asarray(self._places), np.asarray(self._scores)
        known = ~np.isnan(scores)
        return (
            np.bincount(places[known], scores[known], len(self.index)),
            np.bincount(places, known, len(self.index)),
            np.bincount(places, ~known, len(self.index)),
        )

    @property
    def missing(self) -> int:
        """Number of missing scores."""
        return sum(map(math.isnan, self._scores))


class Shown(dict[str, str]):
    """The names in a file, made printable. They are cached, because making one
    printable takes longer than reading a row.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def show(self, name: str) -> str:
        if name not in self:
            if len(self) == MOST_NAMES:
                raise OptionError(
                    f"{self._path} has more than {MOST_NAMES:,} different tasks, or names of scores."
                )
            self[name] = quoted(name, LONGEST_NAME)
        return self[name]


@dataclass(slots=True)
class Scores:
    """The scores of one model, by task."""

    path: str
    """The path of the log or, for scores in memory, the name that messages use."""
    tasks: dict[str, Items] = field(default_factory=dict)
    lives: list[Mapping[str, Any]] = field(default_factory=list)
    """Subjects of CheeseBench's own Inspect tasks, with their plans
    (``interop.hosted``).
    """
    models: dict[str, list[str]] = field(default_factory=dict)
    """For each task, the models that its log names."""
    keys: tuple[str, ...] | None = None
    """Which of the columns subject and item a data frame has. Empty for a list, and
    None for a file.
    """
    unit: str = ""
    """The field of a log, or the column of a data frame, whose values are the subjects,
    in words. It is "" in all other cases.
    """

    def model_of(self, task: str) -> str | None:
        """Return the name of the model, or None if the log does not have it."""
        return next(iter(self.models.get(task, ())), None)


def read_scores(
    given: str | PathLike[str] | Iterable[Any],
    *,
    score: str | None = None,
    cluster: str | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    name: str = "these scores",
) -> Scores:
    """Return the scores in a log, a directory of logs, a data frame or a list. They are
    scaled from ``limits`` to the range from 0 to 1.

    ``score`` names one of several scores. ``cluster`` names the field of the items'
    metadata, or the column of a data frame, by which items are clustered. ``name``
    stands for scores in memory that have no name of their own. Raise UnknownNameError
    for an unknown score. Raise OptionError for anything that is not such a log, for a
    value beyond the limits, and for scores of several names or models.
    """
    if isinstance(given, str | PathLike):
        path = Path(given)
    else:
        given = _with_index(given, score or "score")
        path = Path(_own_name(given, score) or name)
    reading = _Reading(path, score, limits)
    try:
        rows, count = _rows_of(given, score, cluster, reading.found), 0
        while block := [*islice(rows, AT_ONCE)]:
            count += len(block)
            if count > MOST:
                raise OptionError(f"{path} has more than {MOST:,} scores.")
            reading.add(block)
    except TableError as error:
        raise OptionError(
            f"{path}:{error.line}:{error.column}: {quoted(error.said)} {quoted(error.remedy)}".rstrip()
        ) from None
    except UnicodeDecodeError:
        raise OptionError(f"{path} is not UTF-8. Save it as text in UTF-8.") from None
    except _TooLargeError as error:
        raise OptionError(
            f"{path} is too large: {error}. Write its scores to CSV files of at most {LONGEST:,} bytes each, "
            "with the columns item and score (and subject)."
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
            f"{path} cannot be read as a log ({quoted(str(error), 200)}). Give {FORMATS}."
        ) from None
    return reading.chosen()


def _rows_of(
    given: Any, score: str | None, cluster: str | None, found: Scores
) -> Iterator[Row]:
    if isinstance(given, str | PathLike):
        found.unit = "" if cluster is None else f"field '{cluster}'"
        return _rows(Path(given), cluster, found)
    return _held(given, score, cluster, found)


class _TooLargeError(Exception):
    """A file that could fill the memory, or take too long to read."""


class _Reading:
    """The part of a log that has been read so far."""

    def __init__(
        self, path: Path, score: str | None, limits: tuple[float, float]
    ) -> None:
        self.found = Scores(quoted(str(path), LONGEST_NAME))
        self._path, self._score, self._numbers = path, score, Numbers(limits)
        self._names, self._tasks = Shown(path), Shown(path)

    def add(self, rows: list[Row]) -> None:
        for name in dict.fromkeys(row[3] for row in rows if row[3]):
            self._names.show(name)
        if self._score is not None:
            rows = [row for row in rows if row[3] in ("", self._score)]
        for task, own in _by_task(rows).items():
            _, subjects, items, _, values, places = zip(*own, strict=True)
            self.found.tasks.setdefault(self._tasks.show(task), Items()).add(
                zip(_keys(subjects), _keys(items), strict=True),
                self._numbers.of(values, places),
            )

    def chosen(self) -> Scores:
        path, score, names = self._path, self._score, self._names
        if score is not None and score not in names and names:
            raise UnknownNameError(f"score in {path} called", score, names.values())
        if len(names) > 1 and score is None:
            raise OptionError(
                f"{path} has several scores: {', '.join(names.values())}. Choose one with --score."
            )
        if self.found.keys is not None and not self.found.tasks:
            raise OptionError(f"There is no score in {path}. Give at least one.")
        if not self.found.tasks:
            raise OptionError(f"{path} has no scores of items. Give {FORMATS}.")
        if not self.found.lives:
            self._check_models()
        return self.found

    def _check_models(self) -> None:
        """Raise OptionError if a task has scores of several models, because these are
        not repeats.
        """
        for task, models in self.found.models.items():
            if len(models) > 1:
                raise OptionError(
                    f"{self._path} has scores of {len(models)} models on {self._tasks.show(task)} ({listed(models)}). "
                    "Give the log of one model."
                )


def _by_task(rows: list[Row]) -> dict[str, list[Row]]:
    if len({row[0] for row in rows}) == 1:
        return {rows[0][0]: rows}
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


def _keys(names: Sequence[str]) -> Iterable[str]:
    """Return short keys for the names of items, which may be whole prompts."""
    if max(map(len, names)) <= LONGEST_NAME:
        return names
    return (
        name
        if len(name) <= LONGEST_NAME
        else hashlib.blake2b(name.encode("utf-8", "surrogatepass")).hexdigest()
        for name in names
    )


class Numbers(dict[object, float]):
    """Maps the values in a file to scores, rescaled from the limits to the range from 0
    to 1 (NaN for a missing score). Scores are cached, because most values repeat.
    """

    def __init__(self, limits: tuple[float, float]) -> None:
        super().__init__()
        self._low, self._high = limits

    def of(
        self, values: Sequence[object], places: Sequence[tuple[object, ...]]
    ) -> list[float]:
        """Return the scores. Raise OptionError, with the place, for an invalid
        value.
        """
        try:
            return [*map(self.__getitem__, values)]
        except (TypeError, ValueError, OverflowError):
            return [*map(self._score_at, values, places)]

    def __missing__(self, value: object) -> float:
        number = _number(value)
        if not (math.isnan(number) or self._low <= number <= self._high):
            raise OverflowError(number)
        return self.setdefault(value, (number - self._low) / (self._high - self._low))

    def _score_at(self, value: object, place: tuple[object, ...]) -> float:
        where = ":".join(map(str, place))
        try:
            return self[value]
        except OverflowError as error:
            ends = f"{self._low:g} and {self._high:g}"
            raise OptionError(
                f"{where}: the score {error.args[0]:g} is not between {ends}. Give --range LOW HIGH."
            ) from None
        except (TypeError, ValueError):
            said = f"{where}: the score {quoted(repr(value), 60)} is not a number."
            remedy = "Give a number."
            if isinstance(value, float):
                said = f"{where}: the score {value:g} is not finite."
                remedy = (
                    "Give a finite number, or leave it empty (nan) if it is missing."
                )
            elif isinstance(value, Mapping):
                remedy = "Make a data frame of the list: pandas.DataFrame(LIST)."
            elif hasattr(value, "__len__") and not isinstance(value, str):
                said = (
                    f"{where}: the score {quoted(repr(value), 60)} is no single number."
                )
                remedy = "Give one for each subject, or a data frame with the columns subject, item and score."
            raise OptionError(f"{said} {remedy}") from None


def _number(value: object) -> float:
    """Return a number, or NaN for a missing one. Raise ValueError or TypeError for
    anything else.
    """
    if value is None or repr(value) == "<NA>":  # the missing value of pandas
        return math.nan
    if isinstance(value, str):
        if value.lower() in MISSING_CELLS:
            return math.nan
        value = GRADES.get(value, GRADES.get(value.lower(), value))
    # Unlike other programs, Python also reads 2_4 and digits of other scripts as
    # numbers.
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise ValueError from None
    if math.isinf(number):
        raise ValueError
    return number


def _rows(path: Path, cluster: str | None, found: Scores) -> Iterator[Row]:
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
            yield from _rows(file, cluster, found)
    elif path.suffix == ".eval":
        yield from _of_inspect(path, cluster, found)
    elif path.suffix == ".csv":
        if cluster is not None:
            raise OptionError(
                f"--cluster {quoted(cluster, 60)}: in a CSV file, the column 'subject' names the cluster. Put the "
                "clusters into it."
            )
        yield from _of_csv(path)
    elif path.suffix == ".jsonl":
        with _regular(path) as lines:
            yield from _of_lines(path, lines, cluster, found)
    else:
        raise ValueError(
            "its name has an unknown ending"
            if path.exists()
            else "there is no such file"
        )


def _of_csv(path: Path) -> Iterator[Row]:
    content = read_bytes(path, LONGEST + 1)
    if len(content) > LONGEST:
        raise _TooLargeError(f"it has more than {LONGEST:,} bytes")
    (first, header), blocks = read_columns(content)
    _check_names(first, header)
    count = 0
    apart = {name: dict[str, int]() for name in header if _is_apart(name)}
    for lines, columns in blocks:
        count += len(lines)
        own = dict(zip(header, columns, strict=True))
        for name in sorted(own.keys() & {"subject", "item"}, reverse=True):
            _check_named(name, own[name], lines, header.index(name) + 1)
        for name, known in apart.items():
            _check_one(name, known, own[name], lines, header.index(name) + 1)
        tasks = (one or "all items" for one in own.get("task", repeat("", len(lines))))
        places = zip(repeat(path), lines, repeat(header.index("score") + 1))
        items = own["item"]
        subjects = own.get("subject", items)
        yield from zip(tasks, subjects, items, repeat("score"), own["score"], places)
    if not count:
        said = "The file has no rows."
        raise TableError(first, 1, said, "Add a row for each score.")


def _check_named(
    name: str, cells: Sequence[str], lines: Sequence[int], column: int
) -> None:
    """Raise TableError for a row without a value in this column."""
    if MISSING_CELLS.isdisjoint(map(str.lower, cells)):
        return
    for cell, line in zip(cells, lines, strict=True):
        if cell.lower() in MISSING_CELLS:
            said = f"The column '{name}' {f'has {cell!r}' if cell else 'is empty'} in this line."
            raise TableError(line, column, said, f"Give every row its {name}.")


def _check_one(
    name: str,
    known: dict[str, int],
    cells: Sequence[str],
    lines: Sequence[int],
    column: int,
) -> None:
    """Raise TableError if the column has a second value. ``known`` maps the values so
    far to their lines.
    """
    for cell, line in zip(cells, lines, strict=True):
        known.setdefault(cell, line)
    if len(known) > 1:
        said, remedy = _several(name, known)
        if name == "model":
            remedy += (
                " In Python, verdict(pandas.read_csv(FILE)) compares every two models."
            )
        raise TableError([*known.values()][1], column, said, remedy)


def _with_index(given: Any, score: str) -> Any:
    """Return a data frame or a series of pandas with its index as columns, if a level
    of the index is named subject, item or task. Return a table of pyarrow as a data
    frame. Anything else stays as it is.
    """
    if hasattr(given, "column_names"):  # a table of pyarrow
        given = given.to_pandas()
    levels = [*getattr(getattr(given, "index", None), "names", ())]
    if not any(level in ("subject", "item", "task") for level in levels):
        return given
    if not hasattr(given, "columns"):
        given = given.to_frame(score)
    given = given.reset_index()
    columns = [*map(str, given.columns)]
    is_given = score != "score"
    _check_column(columns, score, is_needed=True, is_given=is_given, index=levels)
    return given


def _own_name(given: Any, score: str | None) -> str | None:
    """Return the name of a series, or of the only model of a data frame. Return None if
    there is no such name.
    """
    if not hasattr(given, "columns"):
        name = getattr(given, "name", None)
        return name if isinstance(name, str) and name not in ("score", score) else None
    if [*given.columns].count("model") != 1:
        return None
    models = {*_without_na(given["model"])} - {None}
    return str(models.pop()) if len(models) == 1 else None


def _held(
    given: Any, score: str | None, cluster: str | None, found: Scores
) -> Iterator[Row]:
    """Yield the scores of a data frame with the same columns as a CSV file, or of a
    list. Without a column for subjects, each item is a subject. Without a column for
    items, each row is an item, which is numbered within its subject if there is one.
    """
    name, columns = score or "score", {"score": given}
    if hasattr(given, "columns"):
        columns = _columns(given, name, cluster)
    elif cluster is not None:
        raise OptionError(
            f"--cluster {cluster}: a list has no columns. Give a data frame."
        )
    found.keys = tuple(one for one in ("subject", "item") if one in columns)
    if "subject" in columns:
        found.unit = f"column '{cluster or 'subject'}'"
    scores = _without_na(columns["score"])
    # The rows of one model keep their labels in the whole frame.
    rows = given.index if hasattr(given, "iloc") else range(len(scores))
    places = [(found.path, f" row {row}") for row in rows]
    named = {
        held: _names(columns[held], rows, f"{found.path}: row", held)
        for held in sorted(columns.keys() - {"score"})
    }
    items = named.get("item") or _numbered_rows(named.get("subject"), len(scores))
    tasks = named.get("task") or ["all items"] * len(scores)
    _note_models(found, tasks, named.get("model", ()))
    subjects = named.get("subject", items)
    yield from zip(tasks, subjects, items, repeat(name), scores, places)


def _numbered_rows(subjects: Sequence[str] | None, count: int) -> list[str]:
    """Return the number of each row. If there are subjects, each subject's rows are
    numbered separately.
    """
    if subjects is None:
        return [*map(str, range(count))]
    seen: dict[str, int] = {}
    numbers = []
    for subject in subjects:
        numbers.append(str(seen.setdefault(subject, 0)))
        seen[subject] += 1
    return numbers


def _names(column: Any, rows: Iterable[object], place: str, held: str) -> list[str]:
    """Return a column as text. Raise OptionError, with the label of the row, for a
    missing value.
    """
    values = [
        one.strip() if isinstance(one, str) else one for one in _without_na(column)
    ]
    # pandas turns whole numbers into floats where one of them is missing.
    values = [
        int(one) if isinstance(one, float) and one.is_integer() else one
        for one in values
    ]
    for row, value in zip(rows, values, strict=True):
        if value is None or value != value or value == "":
            raise OptionError(
                f"{place} {row} has no {held} ({value!r}). Give every row its {held}, or leave the column out."
            )
    return [*map(str, values)]


#: Columns of tables that say which model, protocol, view or variant a row is about.
#: Rows with different values are never repeats of one item.
_APART = ("model", "protocol", "view", "variant")
#: Patterns for what is often written instead of a column's name.
_STEMS = {"subject": "subj(?:ect)?"}
_ENDING = "(?:s|[ _-]?(?:id|no|nr|num|number|name|idx|index|key))?"


def _is_meant(column: str, name: str) -> bool:
    """Return whether a column was probably meant to have this name. It may have letters
    of another alphabet that look alike.
    """
    column = column.lower().strip()
    latin = "".join(re.escape(one) if one.isascii() else "." for one in column)
    return bool(
        re.fullmatch(_STEMS.get(name, re.escape(name)) + _ENDING, column)
        or difflib.get_close_matches(name, [column], cutoff=0.8)
        or (not column.isascii() and latin.strip(".") and re.fullmatch(latin, name))
    )


#: Another remedy if a column of a data frame has several values, by column. It names
#: one of the values.
_OR_ONE = {"model": "Or name it: models=({!r}, None)."}


def _is_apart(column: str) -> bool:
    return column in _APART or _is_meant(column, "model")


def _several(name: str, values: Iterable[str]) -> tuple[str, str]:
    """Return a sentence that says that a column has several values, and the remedy."""
    known = [str(one) for one in values]
    return (
        f"The column '{name}' has several values ({listed(known[:5])}), but a verdict concerns only one.",
        f"Give the rows of one {name}.",
    )


def _columns(frame: Any, score: str, cluster: str | None) -> dict[str, Any]:
    """Return the columns of a data frame by what they hold. Raise OptionError for a
    column that is absent, misspelt or repeated, and for rows of several models,
    protocols, views or variants.
    """
    names = {"score": score, "subject": cluster or "subject"}
    names |= {name: name for name in ("task", "item")}
    columns = [*map(str, frame.columns)]
    for held, name in names.items():
        is_needed = name in (score, cluster)
        _check_column(columns, name, is_needed=is_needed, is_given=name != held)
    for name in columns:
        if not _is_apart(name) or name in names.values():
            continue
        _check_column(columns, name, is_needed=True)
        values = dict.fromkeys(_without_na(frame[name]))
        if len(values) > 1:
            own = _OR_ONE.get(name, "").format(next(iter(values)))
            raise OptionError(" ".join((*_several(name, values), own)).rstrip())
    names["model"] = "model"
    return {held: frame[name] for held, name in names.items() if name in columns}


def _check_column(
    columns: Sequence[str],
    name: str,
    *,
    is_needed: bool,
    is_given: bool = False,
    index: Collection[Any] = (),
) -> None:
    """Raise OptionError for a column that is repeated, absent or misspelt. ``is_given``
    says whether the name is an argument instead of a fixed one, and ``index`` which
    columns were the frame's index.
    """
    if columns.count(name) > 1:
        raise OptionError(
            f"The data frame has {columns.count(name)} columns '{name}'. Rename or drop all but one."
        )
    meant = [one for one in columns if _is_meant(one, name)]
    if name not in columns and (is_needed or meant):
        verb, known = ("Rename", meant[:1])
        if is_given:
            verb, known = "Give", difflib.get_close_matches(name, columns, 1)
        hint = "".join(f" {verb} {one!a}." for one in known)
        hint = hint or _which_scores(name, columns, index)
        raise OptionError(
            f"The data frame has no column '{name}' (only {listed(columns)}).{hint}"
        )


def _which_scores(name: str, columns: Sequence[str], index: Collection[Any]) -> str:
    """Return the remedy for a data frame without a column 'score'."""
    if name != "score":
        return ""
    said = " Say which column has the scores: --score NAME."
    keys = [one for one in columns if one in ("task", "subject", "item")]
    own = [one for one in columns if one not in keys]
    return (
        said if len(own) < 2 or "model" in own else f"{said}{_wide(keys, own, index)}"
    )


def _wide(keys: list[str], models: Sequence[str], index: Collection[Any]) -> str:
    """Return the remedy for a data frame with a column for each of two or more models.
    A frame that was pivoted has the keys in its ``index``.
    """
    flat = "frame.reset_index()" if index else "frame"
    frame = "frame" if {*index} >= {*keys} else f"{flat}.set_index({keys!r})"
    one, other = (f"{frame}[{name!r}]" for name in models[:2])
    said = f" To compare two columns, give them: verdict({one}, {other})."
    if len(models) < 3 or not keys:
        return said
    return f"{said} For all: verdict({flat}.melt({keys!r}, var_name='model', value_name='score'))."


def _without_na(column: Any) -> list[Any]:
    if hasattr(column, "notna"):
        column = column.astype(object).where(column.notna(), None)
    return [*column]


def _absent(header: Sequence[str]) -> list[str]:
    """Return the columns that a table lacks. One for subjects is needed only if another
    name of it is there.
    """
    absent = [name for name in ("subject", "item", "score") if name not in header]
    if absent == ["subject"] and not any(_is_meant(one, "subject") for one in header):
        return []
    return absent


def _check_names(line: int, header: Sequence[str]) -> None:
    if absent := _absent(header):
        said = f"Missing column{'s' * (len(absent) > 1)}: {listed(absent)}."
        raise TableError(line, 1, said, _how_to_name(absent, header))
    tasks = (
        [] if "task" in header else [one for one in header if _is_meant(one, "task")]
    )
    if tasks:
        raise TableError(
            line,
            header.index(tasks[0]) + 1,
            f"The column '{tasks[0]}' is not read.",
            "Rename it to 'task', or drop it.",
        )


def _how_to_name(absent: Sequence[str], header: Sequence[str]) -> str:
    """Return the remedy for absent columns."""
    odd = [one for one in header if not one.isascii() and _is_meant(one, absent[0])]
    if odd:
        return f"Type the name {odd[0]!a} in Latin letters."
    if {*absent} <= {name.lower() for name in header}:
        return "Write the names in lower case."
    if absent == ["subject"]:
        return "Rename the column of subjects to 'subject', or drop it: then each item is a subject."
    return (
        "The first line must name the columns: item,score (and perhaps subject,task)."
    )


def _regular(path: Path) -> IO[bytes]:
    """Open a regular file. Raise OSError for any other file, because reading it could
    block, or never end.
    """
    read_bytes(path, 0)
    return path.open("rb")


def _loads(content: bytes) -> Any:
    """Return the value of a JSON text. Raise _TooLargeError if it would fill the
    memory.
    """
    if len(content) > MOST_OBJECTS:
        objects, commas = _objects_and_commas(content)
        if objects > MOST_OBJECTS or objects + commas > MOST_VALUES:
            raise _TooLargeError(
                f"one piece of its JSON has more than {MOST_OBJECTS:,} objects and lists, or {MOST_VALUES:,} values"
            )
    try:
        # This parser is faster than the standard library's.
        return from_json(content, cache_strings="keys")
    except ValueError:
        # Text that the fast parser rejects may still be JSON: it may have lone
        # surrogates, or be deeply nested.
        return _decode(content.decode("utf-8", "surrogatepass"))


def _objects_and_commas(content: bytes) -> tuple[int, int]:
    import numpy as np

    codes = np.frombuffer(content, np.uint8)
    # The bit 0x20 is the only difference between [ and {, so both are found.
    objects = (codes | 0x20) == ord("{")
    return int(np.count_nonzero(objects)), int(np.count_nonzero(codes == ord(",")))


def _check_amount(lines: IO[bytes]) -> None:
    """Raise _TooLargeError if a log's lines together exceed ``ALL_BYTES``,
    ``ALL_OBJECTS`` or ``ALL_VALUES``.
    """
    size = objects = commas = 0
    while piece := lines.read(2**20):
        more = _objects_and_commas(piece)
        size, objects, commas = size + len(piece), objects + more[0], commas + more[1]
        if size > ALL_BYTES or objects > ALL_OBJECTS or commas > ALL_VALUES:
            raise _TooLargeError(
                f"it has more than {ALL_BYTES:,} bytes, {ALL_OBJECTS:,} objects and lists, or {ALL_VALUES:,} values"
            )
    lines.seek(0)


def _task_of(path: Path) -> str:
    return re.sub(r"^samples_|_\d{4}-\d\d-\d\dT[\d.:-]+$", "", path.stem)


def _of_lines(
    path: Path, lines: IO[bytes], cluster: str | None, found: Scores
) -> Iterator[Row]:
    task = _task_of(path)
    _check_amount(lines)
    for number, line in enumerate(iter(partial(lines.readline, LONGEST), b""), 1):
        if len(line) == LONGEST and not line.endswith(b"\n"):
            raise _TooLargeError(f"line {number} has more than {LONGEST:,} bytes")
        row = _loads(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)
        if "doc_id" in row:
            item, fields, own_task = row["doc_id"], "doc", task
            names = row.get("metrics") or [one for one in _METRICS if one in row]
            chosen = row.get("filter", "none")
            named = [
                (name if chosen == "none" else f"{name},{chosen}", row[name])
                for name in names
            ]
        else:
            item, fields, own_task = (
                row["sample_id"],
                "metadata",
                row["evaluation_name"],
            )
            name = str(row.get("evaluation_result_id") or "score")
            named = [(name, row["evaluation"]["score"])]
            _note_model(found, own_task, row.get("model_id"))
        item = str(item)
        subject = item if cluster is None else _subject(row.get(fields), cluster)
        for name, score in named:
            yield own_task, subject, item, name, score, (path, number)


def _note_model(found: Scores, task: str, model: object) -> None:
    """Keep the name of a task's model, if the log has it."""
    known = found.models.setdefault(task, [])
    if not isinstance(model, str) or model in known or len(known) == MOST_NAMES:
        return
    if (shown := quoted(model, LONGEST_NAME)) not in known:
        known.append(shown)


def _note_models(found: Scores, tasks: Sequence[str], models: Iterable[str]) -> None:
    for task, model in dict.fromkeys(zip(tasks, models, strict=False)):
        _note_model(found, task, model)


def _subject(fields: object, name: str) -> str:
    if not isinstance(fields, Mapping) or name not in fields:
        known = "none"
        if isinstance(fields, Mapping):
            known = ", ".join(map(str, islice(fields, 10)))
        raise OptionError(
            f"--cluster {name}: an item has no such field. Its fields: {quoted(known, 200)}."
        )
    return str(fields[name])


def _of_inspect(path: Path, cluster: str | None, found: Scores) -> Iterator[Row]:
    with suppress(ImportError):
        import zipfile_zstd  # noqa: F401 - before Python 3.14, this adds Inspect's compression to zipfile
    with _regular(path) as log, zipfile.ZipFile(log) as file:
        left = LONGEST_JSON

        def read(name: str) -> Any:
            nonlocal left
            most = min(left, LONGEST)
            if file.getinfo(name).compress_type not in _COMPRESSIONS:
                raise ValueError("it is compressed in a way that Inspect does not use")
            with file.open(name) as member:
                content = member.read(most + 1)
            left -= len(content)
            if len(content) > most:
                raise _TooLargeError(
                    f"its header or its samples have more than {LONGEST:,} bytes, or together more than {LONGEST_JSON:,}"
                )
            return _loads(content)

        try:
            header, samples = read("header.json"), read("summaries.json")
        except NotImplementedError:
            raise OptionError(
                f"{path} is compressed with Zstandard, which this Python lacks. Install it with: "
                "pip install zipfile-zstd"
            ) from None
        task = str(header["eval"]["task"])
        _note_model(found, task, header["eval"].get("model"))
        for sample in samples:
            item = str(sample["id"])
            fields = sample.get("metadata")
            subject = item if cluster is None else _subject(fields, cluster)
            for scorer, score in (sample.get("scores") or {}).items():
                value, metadata = score.get("value"), score.get("metadata")
                if (
                    isinstance(metadata, Mapping)
                    and {"plan", "trials"} <= metadata.keys()
                ):
                    # The summary may have cut long texts.
                    whole = read(f"samples/{sample['id']}_epoch_{sample['epoch']}.json")
                    found.lives.append(whole["scores"][scorer]["metadata"])
                named = value if isinstance(value, Mapping) else {"": value}
                for part, number in named.items():
                    name = f"{scorer}/{part}" if part else scorer
                    yield task, subject, item, name, number, (path,)
            if not sample.get("scores"):
                # A sample that was not scored counts as one missing score.
                yield task, subject, item, "", None, (path,)
