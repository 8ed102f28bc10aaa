"""Keeps secrets out of what is written: exceptions of HTTP clients like to quote the key they were sent with."""

from __future__ import annotations

import os
import re

#: What stands in a text where a secret was.
REDACTED = "[redacted]"
#: Names of environment variables whose values are secrets.
_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
#: Shorter values are no secrets, and would blot out ordinary words.
_SHORTEST = 8
#: Keys that are known by their look, and whatever follows ``Bearer`` or ``api_key=``.
_SECRET_LOOKS = re.compile(
    r"\b(?:sk|pk|rk|hf|ghp|gho|xox[abp]|AIza|AKIA)[-_]?[A-Za-z0-9_\-]{12,}"
    r"|(?<=Bearer )[^\s'\",;]{8,}"
    r"|(?<=api_key=)[^\s'\",;&]{8,}|(?<=api-key: )[^\s'\",;]{8,}",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return the text without values of secret environment variables, and without what looks like a key."""
    values = {value for name, value in os.environ.items() if _SECRET_NAMES.search(name) and len(value) >= _SHORTEST}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, REDACTED)
    return _SECRET_LOOKS.sub(REDACTED, text)
