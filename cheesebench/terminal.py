"""Text for terminals: makes it printable, adds colours or replaces glyphs, and shows
trials as strips of frames.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from cheesebench.interfaces import ACTION_LETTERS, ACTIONS, WAITED_LETTER
from cheesebench.redaction import inert

if TYPE_CHECKING:
    from cheesebench.records import Frame

#: Name of the error handler for ``str.encode(errors=...)``.
HANDLER = "cheesebench"

#: An ASCII character for each glyph. It is one character, so that tables and mazes stay
#: aligned. Opposite diagonal headings share a stroke.
STAND_INS = {
    glyph: character
    for character, glyphs in {
        "+": "✔┼├┤┌┐└┘┬┴",
        "x": "✘×",
        "-": "–—−─",
        "|": "│",
        ".": "…·░",
        "#": "█▓▒▇▆▅",
        "=": "▄▃",
        "_": "▂▁",
        "^": "↑▲",
        ">": "→▶›≥",
        "v": "↓▼",
        "<": "←◀‹≤",
        "/": "↗↙╱",
        "\\": "↘↖╲",
        "o": "○●◯",
        "~": "≈±",
        "'": "‘’",
        '"': "“”",
        "?": "\ufffd",
    }.items()
    for glyph in glyphs
}


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    # Any other character, such as one in a name, becomes an escape such as \u4e2d.
    spelt = (
        STAND_INS.get(glyph) or ascii(glyph)[1:-1]
        for glyph in error.object[error.start : error.end]
    )
    return "".join(spelt), error.end


codecs.register_error(HANDLER, _stand_in)


def replace_unprintable(stream: object) -> None:
    """Make a stream print stand-ins for glyphs that it cannot encode, instead of
    raising an exception.
    """
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(ValueError):  # The stream is closed.
            stream.reconfigure(errors=HANDLER)


@contextlib.contextmanager
def unprintable_replaced(stream: object) -> Iterator[None]:
    """Make a stream print stand-ins during the block if it would raise an exception
    (``errors="strict"``). Restore the stream after the block.
    """
    if not isinstance(stream, io.TextIOWrapper) or stream.errors != "strict":
        yield
        return
    replace_unprintable(stream)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            stream.reconfigure(errors="strict")


#: Colours of verdicts and severities (SGR parameters of ECMA-48).
_COLOURS = {
    "PASS": 32,
    "FAIL": 31,
    "INCONCLUSIVE": 33,
    "ERROR": "1;31",
    "error": 31,
    "warning": 33,
    "better": 32,
}
_COLOURS["worse"] = 31
_WORD = re.compile(rf"(?<![\w-])(?:[✔✘?!] )?({'|'.join(_COLOURS)})(?![\w-])")


def shows_colours(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that may show colours: NO_COLOR is not set
    (https://no-color.org), and TERM is not ``dumb``.
    """
    return (
        stream.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def coloured(text: str, stream: TextIO | None = None) -> str:
    """Return printable text with verdicts, severities and answers of comparisons in
    colour, if ``stream`` (None: standard output) shows colours.
    """
    if not shows_colours(stream or sys.stdout):
        return text
    return _WORD.sub(lambda found: f"\x1b[{_COLOURS[found[1]]}m{found[0]}\x1b[0m", text)


#: Numbers of frames kept at the beginning and at the end of a long trial.
FIRST, LAST = 3, 5
#: Number of spaces between adjacent frames.
GAP = 3

_WORDS = dict(zip(ACTION_LETTERS, ACTIONS, strict=True)) | {
    "": "start",
    WAITED_LETTER: "(frozen)",
}


def printable(text: str) -> str:
    """Return ``text`` with all control characters except line breaks, and a CI's
    workflow commands, spelt out.
    """
    if text.replace(
        "\n", ""
    ).isprintable():  # Nearly every text is, and this test is quick.
        return inert(text)
    return inert(
        "\n".join(
            line
            if line.isprintable()
            else "".join(c if c.isprintable() else _spelt_out(c) for c in line)
            for line in text.split("\n")
        )
    )


def _spelt_out(glyph: str) -> str:
    return glyph.encode("unicode_escape").decode()


def film_strip(
    frames: Sequence[Frame], width: int = 80, first: int = FIRST, last: int = LAST
) -> str:
    """Return the frames side by side, in rows of at most ``width`` characters (more if
    a single frame is wider).

    Each frame has a heading with its step, the action that led to it and the reward
    (unless 0). Of a long trial, only the ``first`` first frames and the ``last`` last
    ones are shown, with the number of frames left out.
    """
    cut = len(frames) - first - last
    if cut <= 0:
        return _rows(frames, 0, width)
    begin, end = (
        _rows(frames[:first], 0, width),
        _rows(frames[first + cut :], first + cut, width),
    )
    return "\n\n".join((begin, f"... {cut} more ...", end))


def _picture(step: int, frame: Frame) -> list[str]:
    head = f"{step} {_WORDS.get(frame.action, frame.action)}"
    if frame.reward:
        head += f" {frame.reward:+g}"
    lines = printable(f"{head}\n{frame.observation}").split("\n")
    width = max(map(len, lines))
    return [line.ljust(width) for line in lines]


def _rows(frames: Sequence[Frame], step: int, width: int) -> str:
    """Return rows of frames, whose numbers begin with ``step``."""
    rows: list[list[Sequence[str]]] = []
    room = 0
    for number, frame in enumerate(frames, step):
        picture = _picture(number, frame)
        needed = len(picture[0]) + GAP
        if not rows or room < needed:
            rows.append([])
            room = width + GAP
        rows[-1].append(picture)
        room -= needed
    return "\n\n".join(map(_beside, rows))


def _beside(pictures: Sequence[Sequence[str]]) -> str:
    height = max(map(len, pictures))
    padded = [
        [*picture, *[" " * len(picture[0])] * (height - len(picture))]
        for picture in pictures
    ]
    return "\n".join(
        (" " * GAP).join(line).rstrip() for line in zip(*padded, strict=True)
    )
