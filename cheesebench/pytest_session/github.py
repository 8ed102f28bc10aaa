"""Annotations of GitHub Actions: what failed, at the protocol's file in a pull request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cheesebench.film import printable
from cheesebench.statistics import RunSummary, Verdict
from cheesebench.statistics.runs import RunComparison
from cheesebench.statistics.wording import with_doubts

#: GitHub shows so many of a kind for one step.
MOST = 10
_KINDS = {Verdict.FAIL: "error", Verdict.ERROR: "error", Verdict.INCONCLUSIVE: "warning"}


def annotate(summary: RunSummary, paths: dict[str, Path], root: Path, fail_is_error: bool) -> Iterator[str]:
    """Yield commands of GitHub Actions for cells that are no PASS, if this is one; ``paths`` are files by protocol.

    A FAIL that the exit code forgives is a warning, and so is whatever makes the numbers of a cell doubtful.
    """
    if not is_github():
        return
    left = {"error": MOST, "warning": MOST}
    for cell in summary.cells:
        kind = _KINDS.get(cell.verdict, "")
        if cell.verdict is Verdict.FAIL and not fail_is_error:
            kind = "warning"
        if kind == "warning" and not cell.plan.claims:
            kind = ""
        if not kind and cell.warnings:
            kind = "warning"
        if cell.plan.control or not kind or not left[kind]:
            continue
        left[kind] -= 1
        title = f"{cell.verdict}: {cell.plan.model} on {cell.plan.label}"
        yield command(kind, title, with_doubts(cell), paths.get(cell.plan.protocol), root)


def annotate_comparison(
    found: RunComparison, paths: dict[str, Path], root: Path, worse_is_error: bool
) -> Iterator[str]:
    """Yield commands of GitHub Actions for what is worse than the baseline, and for what the baseline lacks."""
    if not is_github():
        return
    for title, protocol, reason in found.losses:
        yield command("error" if worse_is_error else "warning", title, reason, paths.get(protocol), root)
    for line in found.warnings:
        yield command("warning", "not compared", line)


def is_github() -> bool:
    """Return whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def command(kind: str, title: str, text: str, path: Path | None = None, root: Path = Path()) -> str:
    """Return the command for one annotation, at a file if it is inside ``root``."""
    properties = {"title": title}
    if path is not None and path.absolute().is_relative_to(root):  # GitHub knows the files of the repository only
        properties = {"file": path.absolute().relative_to(root).as_posix(), "line": "1", **properties}
    shown = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::{kind} {shown}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    """Return text that ends neither the command nor the property, as GitHub asks for it."""
    text = printable(text)
    for glyph in f"%\r\n{more}":
        text = text.replace(glyph, f"%{ord(glyph):02X}")
    return text
