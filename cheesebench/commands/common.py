"""Helpers that commands share, for example to add arguments, find protocols, make text
printable, and write results.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from cheesebench.errors import OptionError, UnknownNameError, closest
from cheesebench.files import write_whole, written_whole
from cheesebench.interfaces import RUNNING, STAY, BaseSpecification, SubjectEnvironment
from cheesebench.options import BY_KEY
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue
from cheesebench.protocol.catalogue import file_names, protocol_name
from cheesebench.records import CellPlan
from cheesebench.terminal import coloured, printable

#: ``NARROW`` is the assumed width of a terminal that does not tell its width.
#: ``SHORTEST`` is the minimum width of a wrapped cell. Both are in columns.
NARROW, SHORTEST = 80, 8
#: Maximum number of characters of a table cell. Without a limit, the megabytes of a
#: hostile log would be wrapped again and again, for hours.
LONGEST_CELL = 2_000


def installed_catalogue() -> Catalogue:
    return Catalogue(installed_plugins().protocol_directories)


def find_protocol(catalogue: Catalogue, name: str) -> Path:
    """Return the file of a protocol. ``name`` is a path, or the name of a file in this
    directory or of an installed protocol.

    Raise OptionError for a directory and for a path that does not exist, and
    UnknownNameError for an unknown name.
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
            print(
                f"cheesebench: {local} is used, not the installed '{printable(name)}'.",
                file=sys.stderr,
            )
        return local
    if name in catalogue.files:
        return catalogue.files[name]
    try:
        return Path(catalogue.find(name).path)
    except UnknownNameError as error:
        raise _with_those_here(error, name) from None


def _with_those_here(error: UnknownNameError, name: str) -> UnknownNameError:
    """Return the error for an unknown protocol. If a protocol in this directory has a
    similar name, suggest it.
    """
    here = [
        protocol_name(file.name.removesuffix(SUFFIX))
        for file in Path().glob(f"*{SUFFIX}")
    ]
    if not closest(name, here):
        return error
    installed = closest(name, error.known)
    remedy = (
        f"The installed protocol '{installed}' has a similar name, too."
        if installed
        else ""
    )
    return UnknownNameError("protocol", name, here, remedy=remedy)


def load_protocol(name: str) -> BaseSpecification:
    """Load the protocol that has this name or path. Raise ProtocolError with all
    findings if it has errors.
    """
    catalogue = installed_catalogue()
    return catalogue.load(find_protocol(catalogue, name))


def shown_path(path: Path | str) -> str:
    """Return a path relative to the working directory if it is inside, and otherwise
    the absolute path.
    """
    absolute, here = Path(path).absolute(), Path.cwd()
    return str(
        absolute.relative_to(here) if absolute.is_relative_to(here) else absolute
    )


def one_line(text: object, most: int | None = None) -> str:
    """Return text as one printable line. If it has more than ``most`` characters, it is
    cut, with three dots at its end.
    """
    line = printable(" ".join(str(text).split()))
    return line if most is None or len(line) <= most else f"{line[:most]}..."


def terminal_width() -> int:
    return shutil.get_terminal_size((NARROW, 0)).columns


def paragraph(text: object, first: str = "", rest: str | None = None) -> str:
    """Return text as printable lines that fit the terminal. Only long words, such as
    paths, may exceed its width.

    ``first`` is the prefix of the first line, and ``rest`` the prefix of the other
    lines (None: ``first`` and two spaces).
    """
    return textwrap.fill(
        one_line(text),
        terminal_width(),
        initial_indent=first,
        subsequent_indent=first + "  " if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None
) -> str:
    """Return a plain-text table that fits the terminal if possible (80 columns if its
    width is unknown), or ``width``.

    Cells are made printable, and wrapped if necessary. None is an empty cell.
    """
    cells = _cells(headers, rows)
    wide = _widths(cells, width or terminal_width())
    cells = [
        ["\n".join(_wrapped(cell, room)) for cell, room in zip(row, wide, strict=True)]
        for row in cells
    ]
    # The headings are passed as a row, because tabulate would make real headers two
    # columns wider than their text.
    text: str = tabulate(
        [cells[0], ["-" * room for room in wide], *cells[1:]],
        tablefmt="plain",
        disable_numparse=True,
    )
    return coloured("\n".join(line.rstrip() for line in text.splitlines()))


def breaks_words(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> bool:
    """Return whether a ``table`` of these rows must break words to fit the terminal."""
    cells = _cells(headers, rows)
    wide = _widths(cells, terminal_width())
    return any(
        len(word) > room
        for row in cells
        for cell, room in zip(row, wide, strict=True)
        for word in cell.split()
    )


def _cells(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[list[str]]:
    return [
        ["" if cell is None else one_line(cell, LONGEST_CELL) for cell in row]
        for row in (headers, *rows)
    ]


#: Matches the places where a cell may be wrapped: spaces and, in words that are too
#: long, the place between a slash or a hyphen and a letter.
_BREAK = re.compile(r"(\s+|(?<=[/-])(?=[A-Za-z]))")


def _widths(rows: list[list[str]], width: int) -> list[int]:
    """Return widths of columns that fit into ``width`` if possible, with two spaces
    between columns.

    The widest column is narrowed first. Words are broken only if it is not enough to
    narrow columns to their longest words. The first column, which names the row, is
    narrowed last.
    """
    columns = list(zip(*rows, strict=True))
    # Each narrowing wraps the cells of a column again, so no column starts wider than
    # the whole width.
    wide = [
        max(len(line) for cell in column for line in _wrapped(cell, width))
        for column in columns
    ]
    words = [
        max(SHORTEST, *(len(word) for cell in column for word in _BREAK.split(cell)))
        for column in columns
    ]
    for places, least in (
        (range(1, len(wide)), words),
        (range(1, len(wide)), None),
        (range(1), None),
    ):
        while sum(wide) + 2 * (len(wide) - 1) > width:
            spare = [
                (wide[at], at)
                for at in places
                if wide[at] > (least[at] if least else SHORTEST)
            ]
            if not spare:
                break
            room, at = max(spare)
            wide[at] = max(
                len(line) for cell in columns[at] for line in _wrapped(cell, room - 1)
            )
    return wide


class _Wrapper(textwrap.TextWrapper):
    wordsep_re = _BREAK


def _wrapped(cell: str, room: int) -> list[str]:
    if len(cell) <= room:
        return [cell]
    return _Wrapper(room, break_on_hyphens=max(map(len, cell.split())) > room).wrap(
        cell
    )


def wait_for_trial(life: SubjectEnvironment, trial: int) -> str:
    """Begin a subject's trial (numbered from 1), after waiting through the earlier
    trials. Return the first observation. Raise OptionError if the schedule ends first.
    """
    for number in range(1, trial + 1):
        observation = life.begin_trial()
        if observation is None:
            raise OptionError(
                f"The schedule ends after {counted(number - 1, 'trial')}. Use a smaller --trial."
            )
        while number < trial and life.step(STAY)[2] == RUNNING:
            pass
    return observation or ""


def write_bytes(content: bytes, path: str) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise _unwritable(path, error) from None


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 error``, ``2 errors``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_output(text: str, path: str | None) -> None:
    """Write a result to a file, or to standard output. On a terminal, only printable
    text is written.
    """
    write_lines([text], path)


def write_lines(lines: Iterable[str], path: str | None) -> None:
    """Write as ``write_output`` does, but line by line, so that the whole text need not
    be in memory.
    """
    if path is None:
        terminal = sys.stdout.isatty()
        sys.stdout.writelines(
            (coloured(printable(line)) for line in lines) if terminal else lines
        )
        return
    try:
        with written_whole(path) as file:
            file.writelines(lines)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> OptionError:
    return OptionError(
        f"{path} cannot be written: {error.strerror}. Name a file in an existing directory that you can write to."
    )


#: Help for an argument that is a protocol.
PROTOCOL = "a protocol's name (as in 'cheesebench list') or a *.protocol.yaml file"


def describe(parser: argparse.ArgumentParser, description: str, *examples: str) -> None:
    """Add a description and example arguments to the command's help. Line breaks of the
    description are kept.
    """
    # argparse computes the width like this, too.
    width = shutil.get_terminal_size().columns - 2
    lines = f"{parser.description or ''} {description}".strip().splitlines()
    parser.description = "\n".join(
        textwrap.fill(line, width, break_on_hyphens=False) for line in lines
    )
    parser.epilog = "examples:\n" + "\n".join(
        f"  {parser.prog} {example}".rstrip() for example in examples
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    for name in names:
        add_option(parser, name)


def add_option(parser: argparse.ArgumentParser, name: str, **changes: Any) -> None:
    """Add an option that pytest runs have, too, with the same declaration. ``changes``
    overrides keywords of ``add_argument``.
    """
    option = BY_KEY[name.replace("-", "_")]
    default: Any = (
        list(option.default) if isinstance(option.default, tuple) else option.default
    )
    keywords: dict[str, Any] = {
        "dest": option.key,
        "default": default,
        **option.arguments(),
        **changes,
    }
    parser.add_argument(option.short, **keywords)


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_id",
        metavar="RUN",
        help="the id of a run, its directory, its run.sqlite, or latest",
    )
    add_option(parser, "results")


def add_cell(parser: argparse.ArgumentParser) -> None:
    """Add the options by which ``choose_cell`` selects one cell of a run."""
    for name in ("protocol", "model", "view", "variant"):
        parser.add_argument(
            f"--{name}", metavar="NAME", help=f"the {name}, if the run has several"
        )


def add_recorded_trial(parser: argparse.ArgumentParser, otherwise: str = "") -> None:
    """Add the options that select a subject and one of its trials. ``otherwise`` ends
    the help of ``--trial``.
    """
    _add_subject(parser)
    parser.add_argument(
        "--trial",
        metavar="N",
        type=positive_number,
        help=f"a trial of that subject, from 1{otherwise}",
    )


def choose_cell(
    candidates: Sequence[CellPlan], options: argparse.Namespace
) -> CellPlan:
    """Return the cell that the options of ``add_cell`` select.

    Raise UnknownNameError if there is no such cell, and OptionError if there are
    several.
    """
    for kind in ("model", "protocol", "view", "variant"):
        values = sorted({str(getattr(plan, kind)) for plan in candidates})
        wanted = _choose(kind, getattr(options, kind), values)
        candidates = [plan for plan in candidates if str(getattr(plan, kind)) == wanted]
    return candidates[0]


def _choose(kind: str, wanted: str | None, values: Sequence[str]) -> str:
    """Return the wanted value. If none is wanted, return the empty variant, or else the
    only value. Raise OptionError if there are several, and UnknownNameError if the
    wanted value does not exist.
    """
    if wanted is None and kind == "variant" and "" in values:
        return ""  # The cell without a variant is meant.
    if wanted is None and len(values) > 1:
        raise OptionError(
            f"The run has several {kind}s. Name one: --{kind} {values[0] or values[1]}."
        )
    if wanted is not None and wanted not in values:
        raise UnknownNameError(f"{kind} in this run called", wanted, values)
    return values[0] if wanted is None else wanted


def add_baselines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baselines",
        metavar="DIR",
        default="baselines",
        help="directory of the baselines (default: baselines)",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        metavar="PATH",
        help="write the output to this file (default: standard output)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


#: Number of digits of the largest seed that a run has ever drawn. Earlier versions drew
#: 128 bits.
_SEED_DIGITS = 39


def add_life(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number,
        default=0,
        help="seed of the subject (default: 0)",
    )
    _add_subject(parser)


def _add_subject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--subject",
        metavar="N",
        type=_subject_number,
        default=0,
        help="number of the subject (default: 0)",
    )


def add_trial(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trial",
        metavar="N",
        type=positive_number,
        default=1,
        help="begin in this trial, after trials in which the subject stays still (default: 1)",
    )


def positive_number(text: str) -> int:
    return _whole(text, 1)


def whole_number(text: str) -> int:
    """Parse a whole number of at least 0, such as a seed, for argparse."""
    return _whole(text, 0, _SEED_DIGITS)


def _subject_number(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int, digits: int = 18) -> int:
    # 18 digits fit into the 64 bits that a run log has for a number.
    if len(text) > digits and text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' has more than {digits} digits")
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a whole number of at least {least}"
        )
    return int(text)


def port_number(text: str) -> int:
    """Parse a port number for argparse. 0 stands for any free port."""
    if (number := whole_number(text)) > 65535:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a port: ports go up to 65535"
        )
    return number
