"""Removes secrets from texts before they are written: HTTP clients' exceptions may quote the API key."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

#: What stands in a text where a secret was.
REDACTED = "[redacted]"
#: Names of environment variables whose values are secrets. The shorter words must be the last of a name: PATH begins
#: like PAT, and SSH_AUTH_SOCK is no secret.
_SECRET_NAMES = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|(?:^|_)(?:AUTH|PASS|PAT|LICEN[CS]E|ACCESS)$", re.IGNORECASE
)
#: Shorter values are no secrets, and would blot out ordinary words.
_SHORTEST = 8
#: Keys that are known by their look, and whatever follows ``Bearer`` or ``api_key=``.
_SECRET_LOOKS = re.compile(
    r"\b(?:sk|pk|rk|hf|ghp|gho|xox[abp]|AIza|AKIA)[-_]?[A-Za-z0-9_\-]{12,}"
    r"|(?<=Bearer )[^\s'\",;]{8,}"
    r"|(?<=api_key=)[^\s'\",;&]{8,}|(?<=api-key: )[^\s'\",;]{8,}",
    re.IGNORECASE,
)
#: What no text without such a key has, in lower case: several times faster to look for, and every call has texts.
_MAY_HOLD_KEY = re.compile(r"(?:sk|pk|rk|hf|ghp|gho|xox[abp]|aiza|akia)[-_]?[a-z0-9_\-]{12}")
#: What GitHub and Azure take for a command in the output of a job.
_COMMAND = re.compile(r"(?<!\S)::(?=\S)|##(?=\[|vso\[)")
_MARKS = ("bearer ", "api_key=", "api-key: ")


def redact(text: str) -> str:
    """Return the text without the values of secret environment variables and what looks like a key."""
    return redactor()(text)


def redactor() -> Callable[[str], str]:
    """Return ``redact`` for the environment as it is now: looking it through for every text would take its time."""
    # Another thread may change the environment meanwhile (pytest does), so names are listed first.
    secret = (os.environ.get(name, "") for name in list(os.environ) if _SECRET_NAMES.search(name))
    secrets = {value for value in secret if len(value) >= _SHORTEST}
    values = sorted(secrets, key=len, reverse=True)

    def redacted(text: str) -> str:
        for value in values:
            text = text.replace(value, REDACTED)
        lowered = text.lower()
        suspicious = _MAY_HOLD_KEY.search(lowered) or any(mark in lowered for mark in _MARKS)
        return _SECRET_LOOKS.sub(REDACTED, text) if suspicious else text

    return redacted


def inert(text: str) -> str:
    """Return text in which no CI finds a command of its own: ``::error::`` at a line's beginning, or ``##[error]``.

    Lines are wrapped after this, so that any word may come to stand there.
    """
    # Mazes are full of "##", and tables of calls have millions of texts.
    if "::" not in text and "##[" not in text and "##vso[" not in text:
        return text
    return _COMMAND.sub(lambda found: f"\\x{ord(found[0][0]):02x}{found[0][1:]}", text)


def quoted(text: str, limit: int = 300) -> str:
    """Return text from outside so that it can be shown: one line, shortened, without secrets and escapes."""
    # Redacted before it is shortened: half a key would not be known for one. A very long text is not a message.
    line = " ".join(redact(text[:65536]).split())
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line[: limit + 1])
    return inert(line if len(line) <= limit else f"{line[: limit - 3]}...")
