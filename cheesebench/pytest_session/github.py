"""Annotations of GitHub Actions: what failed, at the protocol's file in a pull request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cheesebench.film import printable
from cheesebench.statistics import CellResult, RunSummary, Verdict

#: GitHub shows so many of a kind for one step.
MOST = 10
_KINDS = {Verdict.FAIL: "error", Verdict.ERROR: "error", Verdict.INCONCLUSIVE: "warning"}


def annotate(summary: RunSummary, paths: dict[str, Path], root: Path, fail_is_error: bool) -> Iterator[str]:
    """Yield commands of GitHub Actions for cells that are no PASS, if this is one; ``paths`` are files by protocol.

    A FAIL that the exit code forgives is a warning.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    left = {"error": MOST, "warning": MOST}
    for cell in summary.cells:
        kind = _KINDS.get(cell.verdict, "")
        if cell.verdict is Verdict.FAIL and not fail_is_error:
            kind = "warning"
        if cell.plan.control or not kind or (kind == "warning" and not cell.plan.claims) or not left[kind]:
            continue
        left[kind] -= 1
        yield _command(kind, cell, paths.get(cell.plan.protocol), root)


def _command(kind: str, cell: CellResult, path: Path | None, root: Path) -> str:
    title = f"{cell.verdict}: {cell.plan.model} on {cell.plan.label}"
    properties = {"title": title}
    if path is not None and path.absolute().is_relative_to(root):  # GitHub knows the files of the repository only
        properties = {"file": path.absolute().relative_to(root).as_posix(), "line": "1", **properties}
    shown = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::{kind} {shown}::{_escaped(cell.reason)}"


def _escaped(text: str, more: str = "") -> str:
    """Return text that ends neither the command nor the property, as GitHub asks for it."""
    text = printable(text)
    for glyph in f"%\r\n{more}":
        text = text.replace(glyph, f"%{ord(glyph):02X}")
    return text
