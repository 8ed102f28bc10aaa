"""Helpers shared by commands: finding a protocol, text that is safe to print, writing a result."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from cheesebench.chat import Picture
from cheesebench.errors import OptionError, UnknownNameError, closest
from cheesebench.film import printable
from cheesebench.interfaces import RUNNING, STAY, SubjectEnvironment
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue, Specification
from cheesebench.protocol.inherit import file_names, protocol_name
from cheesebench.terminal import coloured
from cheesebench.whole_files import write_whole, written_whole

#: Columns of a terminal of unknown width, and those that a wrapped cell keeps.
NARROW, SHORTEST = 80, 8
#: More letters than a cell of a table has: to wrap the megabytes of a hostile log, again and again, takes hours.
LONGEST_CELL = 2_000


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
    except UnknownNameError as error:
        here = [protocol_name(file.name.removesuffix(SUFFIX)) for file in Path().glob(f"*{SUFFIX}")]
        if not closest(name, here):
            raise
        installed = closest(name, error.known)
        remedy = f"Of those that are installed, '{installed}' is similar." if installed else ""
        raise UnknownNameError("protocol", name, here, remedy=remedy) from None


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


def shortened(text: str, most: int) -> str:
    """Return text that has at most so many letters, and three points where there were more."""
    return text if len(text) <= most else f"{text[:most]}..."


def terminal_width() -> int:
    """Return the number of columns of the terminal; 80 where it is unknown."""
    return shutil.get_terminal_size((NARROW, 0)).columns


def paragraph(text: object, indent: str = "") -> str:
    """Return text as printable lines that are no longer than the terminal is wide, unless a word (a path) is."""
    return textwrap.fill(
        one_line(text),
        terminal_width(),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a plain-text table that is no wider than the terminal (80 columns where its width is unknown).

    Cells are made printable, and wrapped where there is no room; None is an empty cell.
    """
    from tabulate import tabulate

    cells = _cells(headers, rows)
    wide = _widths(cells, terminal_width())
    cells = [["\n".join(_wrapped(cell, room)) for cell, room in zip(row, wide, strict=True)] for row in cells]
    # Not headers of tabulate's, which take two columns more than they have letters.
    text: str = tabulate([cells[0], ["-" * room for room in wide], *cells[1:]], tablefmt="plain", disable_numparse=True)
    return coloured("\n".join(line.rstrip() for line in text.splitlines()))


def breaks_words(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> bool:
    """Return whether a ``table`` of this would have to break words to be no wider than the terminal."""
    cells = _cells(headers, rows)
    wide = _widths(cells, terminal_width())
    return any(len(word) > room for row in cells for cell, room in zip(row, wide, strict=True) for word in cell.split())


def _cells(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[list[str]]:
    return [
        ["" if cell is None else shortened(one_line(cell), LONGEST_CELL) for cell in row] for row in (headers, *rows)
    ]


#: Where a cell may be wrapped: at blanks, and in a word that is too long after its slashes and hyphens.
_BREAK = re.compile(r"(\s+|(?<=[/-])(?=[A-Za-z]))")


def _widths(rows: list[list[str]], width: int) -> list[int]:
    """Return columns that are together no wider than ``width`` with two blanks between them, if they can be.

    The widest is narrowed first, and no word is broken as long as another column can be narrowed. The first column,
    which names the row, is narrowed last.
    """
    columns = list(zip(*rows, strict=True))
    # At most the whole width to begin with: what is narrowed column by column is wrapped each time.
    wide = [max(len(line) for cell in column for line in _wrapped(cell, width)) for column in columns]
    words = [max(SHORTEST, *(len(word) for cell in column for word in _BREAK.split(cell))) for column in columns]
    for places, least in ((range(1, len(wide)), words), (range(1, len(wide)), None), (range(1), None)):
        while sum(wide) + 2 * (len(wide) - 1) > width:
            spare = [(wide[at], at) for at in places if wide[at] > (least[at] if least else SHORTEST)]
            if not spare:
                break
            room, at = max(spare)
            wide[at] = max(len(line) for cell in columns[at] for line in _wrapped(cell, room - 1))
    return wide


class _Wrapper(textwrap.TextWrapper):
    wordsep_re = _BREAK


def _wrapped(cell: str, room: int) -> list[str]:
    if len(cell) <= room:
        return [cell]
    return _Wrapper(room, break_on_hyphens=max(map(len, cell.split())) > room).wrap(cell)


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
        write_whole(path, picture.png)
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
        with written_whole(path) as file:
            file.writelines(lines)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> OptionError:
    return OptionError(f"{path} cannot be written: {error.strerror}. Name a file in a directory that exists.")
