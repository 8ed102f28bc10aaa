"""Each key of the language is used: in a shipped protocol, or in an example on the
language page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from cheesebench.protocol import documents

ROOT = Path(__file__).parents[2]
#: Keys that `cheesebench twin` writes.
WRITTEN = {"twin_of"}


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield str(key)
            yield from keys(one)
    elif isinstance(value, list):
        for one in value:
            yield from keys(one)


def test_each_key_is_used() -> None:
    known = {
        field.alias or name
        for _, found in inspect.getmembers(documents, inspect.isclass)
        if issubclass(found, BaseModel) and found.__module__ == documents.__name__
        for name, field in found.model_fields.items()
    }
    files = (ROOT / "protocols").rglob("*.protocol.yaml")
    texts = [path.read_text(encoding="utf-8") for path in files]
    used = {
        key for text in texts for key in keys(yaml.load(text, Loader=yaml.BaseLoader))
    }
    assert len(known) > 100 < len(used)
    page = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    examples = "".join(re.findall(r"^```yaml.*?^```|`[^`]+`", page, re.M | re.S))
    shown = set(re.findall(r"\b(\w+):", examples))
    assert known - used - shown == WRITTEN
