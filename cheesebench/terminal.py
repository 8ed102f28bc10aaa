"""Output to terminals without Unicode: an ASCII stand-in for every glyph that we print."""

from __future__ import annotations

import codecs
import contextlib
import io
from collections.abc import Iterator

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
