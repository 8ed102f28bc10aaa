"""Removes secrets from texts before they are written. For example, an exception of an
HTTP client may quote the API key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

#: Text that replaces a secret.
REDACTED = "[redacted]"
#: Matches the name of an environment variable whose value is a secret. The words of the
#: second group must be its last word, because PATH begins with PAT, and SSH_AUTH_SOCK
#: is no secret.
_SECRET_NAMES = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|(?:^|_)(?:AUTH|PASS|PAT|LICEN[CS]E|ACCESS)$",
    re.IGNORECASE,
)
#: Minimum number of characters of a secret. Redacting shorter values would remove
#: ordinary words.
_SHORTEST = 8
#: Matches a key of a known form, and what follows ``Bearer``, ``api_key=`` or
#: ``api-key:``.
_SECRET_LOOKS = re.compile(
    r"\b(?:(?:sk|pk|rk|xox[abp])[-_]|(?:hf|ghp|gho)_|AIza|AKIA)(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{12,}"
    r"|(?<=Bearer )[^\s'\",;]{8,}"
    r"|(?<=api_key=)[^\s'\",;&]{8,}|(?<=api-key: )[^\s'\",;]{8,}",
    re.IGNORECASE,
)
#: Matches, in lower case, any key with a known prefix. Searching with this first is
#: several times faster.
_MAY_HOLD_KEY = re.compile(
    r"(?:sk|pk|rk|hf|ghp|gho|xox[abp]|aiza|akia)[-_]?[a-z0-9_\-]{12}"
)
#: Matches a value whose pieces are secret, too. It has at least 12 characters, a digit
#: and no blank, and does not begin like a path or an address.
_RANDOM = re.compile(r"(?![/~.]|[a-z]+://)(?=\S*[0-9])\S{12,}")
#: Matches what may separate the characters of a key, and so hide it from a search but
#: not from a reader: spaces, line breaks, escape codes and invisible characters.
_BETWEEN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|[\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
#: Matches the beginning of a workflow command of GitHub or Azure in a job's output.
_COMMAND = re.compile(r"(?<!\S)::(?=\S)|##(?=\[|vso\[)")
_MARKS = ("bearer ", "api_key=", "api-key: ")


def redact(text: str) -> str:
    """Return the text without the values of secret environment variables, pieces of
    these values, and anything that looks like a key.
    """
    return redactor()(text)


def redactor() -> Callable[[str], str]:
    """Return a function like ``redact`` for the present environment. For many texts it
    is faster, because it reads the environment only once.
    """
    # List the names first, because another thread may change the environment meanwhile
    # (pytest does).
    named = (
        (name, os.environ.get(name, "").strip())
        for name in list(os.environ)
        if _SECRET_NAMES.search(name)
    )
    secrets = {
        value
        for name, value in named
        if len(value) >= _SHORTEST and not _counts_tokens(name, value)
    }
    values = sorted(secrets, key=len, reverse=True)
    pieces = frozenset(
        piece
        for value in values
        if _RANDOM.fullmatch(value)
        for piece in _pieces(value)
    )

    def redacted(text: str) -> str:
        for value in values:
            text = text.replace(value, REDACTED)
        lowered = text.lower()
        if _MAY_HOLD_KEY.search(lowered) or any(mark in lowered for mark in _MARKS):
            text = _SECRET_LOOKS.sub(REDACTED, text)
        return _without_pieces(text, pieces) if pieces else text

    return redacted


def _counts_tokens(name: str, value: str) -> bool:
    """Return whether a variable is a number of tokens, such as ``MAX_TOKENS``."""
    return name.upper().endswith("TOKENS") and value.isdecimal()


def _pieces(value: str) -> Iterator[str]:
    """Yield the pieces that reveal a key: all runs of ``_SHORTEST`` characters in it
    that cannot be a word.
    """
    windows = (value[at : at + _SHORTEST] for at in range(len(value) - _SHORTEST + 1))
    return (
        piece
        for piece in windows
        if not (piece.isalpha() and (piece.islower() or piece.isupper()))
    )


def _without_pieces(text: str, pieces: frozenset[str]) -> str:
    """Return the text without pieces of keys, even if line breaks or escape codes
    separate their characters.
    """
    bare = "".join(text.split())
    if not bare.isprintable():
        bare = _BETWEEN.sub("", bare)
    return _cut_out(text, pieces) if _reveals(bare, pieces) else text


def _reveals(bare: str, pieces: frozenset[str]) -> bool:
    if len(pieces) < len(bare):
        return any(piece in bare for piece in pieces)
    return any(
        bare[at : at + _SHORTEST] in pieces for at in range(len(bare) - _SHORTEST + 1)
    )


def _cut_out(text: str, pieces: frozenset[str]) -> str:
    skipped = {
        at for between in _BETWEEN.finditer(text) for at in range(*between.span())
    }
    places = [at for at in range(len(text)) if at not in skipped]
    bare, end, parts = "".join(text[at] for at in places), 0, []
    for at in range(len(bare) - _SHORTEST + 1):
        if bare[at : at + _SHORTEST] in pieces:
            first, last = places[at], places[at + _SHORTEST - 1] + 1
            if first >= end:
                parts += [text[end:first], REDACTED]
            end = last
    return "".join([*parts, text[end:]])


def inert(text: str) -> str:
    """Return text that a CI cannot take for a workflow command: ``::error::`` at the
    start of a line, or ``##[error]``.

    Lines are wrapped later, so any word may come to stand at the start of a line.
    """
    # A quick test first, because tables of calls have millions of texts. "##" alone
    # would not do, because mazes are full of it.
    if "::" not in text and "##[" not in text and "##vso[" not in text:
        return text
    return _COMMAND.sub(lambda found: f"\\x{ord(found[0][0]):02x}{found[0][1:]}", text)


#: Matches what may differ between two errors with one cause: identifiers, times, and
#: counts. What the group ``same`` matches is kept, because it tells causes apart: a
#: server's address, a status, a place in the code.
_DIFFERS = re.compile(
    r"(?P<same>https?://[^\s/]+|\.py:\d+|\b(?:answers|status|code|signal|errno|HTTP)[ :=]*-?\d+)"
    r"|, tried \d+ times|; there was no reply at all for [\d.]+ minutes"
    r"|(?<![\w-])[\w-]*\d[\w.:,-]*",
    re.IGNORECASE,
)


def alike(text: str) -> str:
    """Return an error's text without what differs from one occurrence to the next, to
    compare it with others.
    """
    return _DIFFERS.sub(lambda found: found["same"] or "", text).rstrip(" .")


def quoted(text: str, limit: int = 300) -> str:
    """Return foreign text made fit for display: in one line of about ``limit``
    characters at most, without secrets and escape codes.
    """
    # Redact before shortening, because half a key would not be recognised. Only the
    # beginning of a very long text is searched.
    line = " ".join(redact(text[:65536]).split())
    line = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in line[: limit + 1]
    )
    return inert(line if len(line) <= limit else f"{line[: limit - 3]}...")
