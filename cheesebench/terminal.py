"""Output to terminals without Unicode: an ASCII stand-in for every glyph that we print."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from typing import TextIO

#: Name of the error handler, as in ``str.encode(errors=...)``.
HANDLER = "cheesebench"

#: One character for one character, so that tables and mazes stay aligned. Opposite diagonal headings share a stroke.
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
    # Other characters (a name in another script) become escapes such as \u4e2d.
    spelt = (STAND_INS.get(glyph) or ascii(glyph)[1:-1] for glyph in error.object[error.start : error.end])
    return "".join(spelt), error.end


codecs.register_error(HANDLER, _stand_in)


def replace_unprintable(stream: object) -> None:
    """Make a stream print stand-ins for glyphs that it cannot encode, instead of raising."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(ValueError):  # it is closed
            stream.reconfigure(errors=HANDLER)


@contextlib.contextmanager
def unprintable_replaced(stream: object) -> Iterator[None]:
    """Do the same within a ``with`` block, if the stream would otherwise raise."""
    if not isinstance(stream, io.TextIOWrapper) or stream.errors != "strict":
        yield
        return
    replace_unprintable(stream)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            stream.reconfigure(errors="strict")


#: How a verdict or a severity is coloured (SGR parameters of ECMA-48).
_COLOURS = {"PASS": 32, "FAIL": 31, "INCONCLUSIVE": 33, "ERROR": "1;31", "error": 31, "warning": 33, "better": 32}
_COLOURS["worse"] = 31
_WORD = re.compile(rf"(?<![\w-])(?:[✔✘?!] )?({'|'.join(_COLOURS)})(?![\w-])")


def shows_colours(stream: TextIO) -> bool:
    """Return whether colours may be written: a terminal, and nobody has said no (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, stream: TextIO | None = None) -> str:
    """Return printable text with verdicts in colours, if ``stream`` (default: standard output) shows them."""
    if not shows_colours(stream or sys.stdout):
        return text
    return _WORD.sub(lambda found: f"\x1b[{_COLOURS[found[1]]}m{found[0]}\x1b[0m", text)
