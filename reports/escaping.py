"""Escaping: names, titles and reasons come from protocols, agents and models, so reports treat them as untrusted."""

from __future__ import annotations

import re
import unicodedata

from cheesebench.redaction import inert

#: Longer texts are cut: they are not read in a report, and would break a table.
LONGEST = 1000

_MARKUP = re.compile(r"[\\`*\[\]|~$]")
#: An underscore inside a word is left alone: it marks nothing, and names are full of them.
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
#: What GitHub makes a mention or a link of.
_LIVE = re.compile(r"@(?=\w)|:(?=//)|(?<=\bwww)\.", re.IGNORECASE)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_IN_CODE = str.maketrans("`<>", "'‹›")
#: Unicode categories: control, format (direction marks), surrogate, unassigned, private, separators of lines.
_UNPRINTABLE = frozenset(("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"))


def clean(text: object, longest: int = LONGEST) -> str:
    """Return one printable line: blanks for line breaks, � for control and direction characters."""
    line = " ".join(str(text).split())
    if len(line) > longest:
        line = line[: longest - 1] + "…"
    return inert("".join("\ufffd" if unicodedata.category(glyph) in _UNPRINTABLE else glyph for glyph in line))


def visible(text: str, longest: int) -> str:
    """Return text with its line breaks kept and invisible characters spelled out, as in ``⟨U+202E⟩``.

    Text beyond ``longest`` characters is replaced by a note of how many were left out.
    """
    rest = len(text) - longest
    lines = (text[:longest] if rest > 0 else text).replace("\r\n", "\n").replace("\t", "    ").split("\n")
    shown = "\n".join("".join(map(_spelt_out, line)) if not line.isprintable() else line for line in lines)
    return f"{shown}\n[... {rest:,} more characters; the run log has all of them]" if rest > 0 else shown


def _spelt_out(glyph: str) -> str:
    return f"⟨U+{ord(glyph):04X}⟩" if unicodedata.category(glyph) in _UNPRINTABLE else glyph


def escape(text: object) -> str:
    """Return Markdown (GitHub's) that shows exactly ``clean(text)``, in a table cell or inside a line.

    It is not for the beginning of a line, where ``#`` or ``-`` would still mean something.
    """
    line = _MARKUP.sub(r"\\\g<0>", clean(text))
    line = _UNDERSCORE.sub(r"\_", line)
    line = re.sub("[&<>]", lambda match: _ENTITIES[match.group()], line)
    # A comment between them: nobody is notified, and no link is made.
    return _LIVE.sub(lambda match: f"{match[0][0]}<!-- -->{match[0][1:]}", line)


def fenced(text: object, width: int) -> str:
    """Return ``clean(text)`` for a code block: without backticks and angle brackets, exactly ``width`` characters."""
    return clean(text, width).translate(_IN_CODE).ljust(width)
