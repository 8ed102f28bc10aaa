"""Protocols of the arena family from text or a file, with all findings."""

from __future__ import annotations

from pathlib import Path

from cheesebench.diagnostics import Diagnostic
from cheesebench.protocol import Catalogue, Specification, with_arena

Examined = tuple[Specification | None, list[Diagnostic]]
#: The beginning of a protocol about a choice: a box between two arms.
TWO_ARMS = """
arena:
  map: |
    #######
    #l.S.r#
    #######
  legend: {S: box, l: left, r: right}
  groups: {arm: [left, right]}
"""


def examine_text(
    text: str, file: str = "<text>", catalogue: Catalogue | None = None
) -> Examined:
    specification, found = (catalogue or Catalogue()).inspect_text(text, file)
    return None if specification is None else with_arena(specification), found


def examine(path: Path, catalogue: Catalogue | None = None) -> Examined:
    specification, found = (catalogue or Catalogue()).inspect(path)
    return None if specification is None else with_arena(specification), found
