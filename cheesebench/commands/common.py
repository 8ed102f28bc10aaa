"""Helpers shared by commands: finding a protocol, text that is safe to print, writing a result."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from cheesebench.chat import Picture
from cheesebench.errors import OptionError, UnknownNameError, did_you_mean
from cheesebench.film import printable
from cheesebench.interfaces import RUNNING, STAY, SubjectEnvironment
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue, Specification
from cheesebench.protocol.inherit import file_names, protocol_name
from cheesebench.terminal import coloured

#: Columns that every terminal has, and those that a shortened cell keeps.
NARROW, SHORTEST = 80, 8


def installed_catalogue() -> Catalogue:
    """Return the protocols of all installed plugins."""
    return Catalogue(installed_plugins().protocol_directories)


def find_protocol(catalogue: Catalogue, name: str) -> Path:
    """Return the file of a protocol: a path, a file of that name in this directory, or an installed protocol.

    Raises OptionError for a path that leads nowhere, UnknownNameError for an unknown name.
    """
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir():
        raise OptionError(f"{name} is a directory. Name one *{SUFFIX} file in it.")
    if name.endswith((".yaml", ".yml")) or "/" in name or os.sep in name:
        raise OptionError(f"There is no file {name}. Check the path.")
    local = next(filter(Path.is_file, map(Path, file_names(name))), None)
    if local is not None:
        if name in catalogue.files:
            print(f"cheesebench: {local} is used, not the installed '{printable(name)}'.", file=sys.stderr)
        return local
    if name in catalogue.files:
        return catalogue.files[name]
    try:
        return Path(catalogue.find(name).path)
    except UnknownNameError:
        here = [protocol_name(file.name.removesuffix(SUFFIX)) for file in Path().glob(f"*{SUFFIX}")]
        if did_you_mean(name, here):
            raise UnknownNameError("protocol", name, here) from None
        raise


def load_protocol(name: str) -> Specification:
    """Return a checked arena protocol by name or path. Raises ProtocolError with its findings."""
    catalogue = installed_catalogue()
    return catalogue.load(find_protocol(catalogue, name)).walkable()


def shown_path(path: Path | str) -> str:
    """Return a path relative to the working directory if it is inside it, else absolute."""
    absolute, here = Path(path).absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def one_line(text: object) -> str:
    """Return text as one printable line."""
    return printable(" ".join(str(text).split()))


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], fit: bool = False) -> str:
    """Return a plain-text table; cells are made printable, None is an empty cell.

    ``fit``: the longest cells, but those of the first column, are shortened until a line has no more columns than the
    terminal (80 at least).
    """
    from tabulate import tabulate

    cells = [["" if cell is None else one_line(cell) for cell in row] for row in rows]
    if not fit:
        text: str = tabulate(cells, headers=headers, tablefmt="simple", disable_numparse=True)
        return coloured("\n".join(line.rstrip() for line in text.splitlines()))
    # Not headers of tabulate's, which take two columns more than they have letters.
    cells = _fitted([list(headers), *cells], max(NARROW, shutil.get_terminal_size((NARROW, 0)).columns))
    rules = ["-" * max(len(row[at]) for row in cells) for at in range(len(headers))]
    text = tabulate([cells[0], rules, *cells[1:]], tablefmt="plain", disable_numparse=True)
    return coloured("\n".join(line.rstrip() for line in text.splitlines()))


def _fitted(rows: list[list[str]], width: int) -> list[list[str]]:
    """Return rows of columns that are together no wider than ``width``, with two blanks between them."""
    wide = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    while sum(wide) + 2 * (len(wide) - 1) > width:
        at = max(range(1, len(wide)), key=wide.__getitem__, default=0)
        if wide[at] <= SHORTEST:
            break
        wide[at] -= 1
    return [
        [cell if len(cell) <= room else f"{cell[: room - 1]}…" for cell, room in zip(row, wide, strict=True)]
        for row in rows
    ]


def wait_for_trial(life: SubjectEnvironment, trial: int) -> str:
    """Begin a subject's trial (from 1), in the earlier ones of which it has waited; return the first observation."""
    for number in range(1, trial + 1):
        observation = life.begin_trial()
        if observation is None:
            raise OptionError(f"The schedule ends after {counted(number - 1, 'trial')}. Use a smaller --trial.")
        while number < trial and life.step(STAY)[2] == RUNNING:
            pass
    return observation or ""


def write_picture(picture: Picture, path: str) -> None:
    """Write the PNG of an observation to a file."""
    try:
        Path(path).write_bytes(picture.png)
    except OSError as error:
        raise _unwritable(path, error) from None


def counted(number: int, noun: str) -> str:
    """Return ``1 error``, ``2 errors``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_output(text: str, path: str | None) -> None:
    """Write a result to a file, or to standard output (on a terminal, printable text only)."""
    write_lines([text], path)


def write_lines(lines: Iterable[str], path: str | None) -> None:
    """Write like ``write_output``, but line by line, without holding the whole text in memory."""
    if path is None:
        terminal = sys.stdout.isatty()
        sys.stdout.writelines((coloured(printable(line)) for line in lines) if terminal else lines)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> OptionError:
    return OptionError(f"{path} cannot be written: {error.strerror}. Name a file in a directory that exists.")
