"""Output to terminals that do not speak Unicode: every glyph of ours has a character that stands in for it."""

from __future__ import annotations

import codecs
import contextlib
import io
from collections.abc import Iterator

#: Name of the error handler, as in ``str.encode(errors=...)``.
HANDLER = "cheesebench"

#: One character for one character, so that tables and mazes stay in line. Slanting headings share their stroke.
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
    # What is none of ours (a name in another script) is spelt out: nothing is lost, and nothing ends the program.
    spelt = (STAND_INS.get(glyph) or ascii(glyph)[1:-1] for glyph in error.object[error.start : error.end])
    return "".join(spelt), error.end


codecs.register_error(HANDLER, _stand_in)


def replace_unprintable(stream: object) -> None:
    """Let a stream that cannot show a glyph show what stands in for it, instead of raising."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(ValueError):  # it is closed
            stream.reconfigure(errors=HANDLER)


@contextlib.contextmanager
def unprintable_replaced(stream: object) -> Iterator[None]:
    """Do so for a while, where the stream would raise."""
    if not isinstance(stream, io.TextIOWrapper) or stream.errors != "strict":
        yield
        return
    replace_unprintable(stream)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            stream.reconfigure(errors="strict")
