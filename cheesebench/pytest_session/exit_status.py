"""The exit status of a session, with its reason."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from cheesebench.statistics.comparison import RunComparison
from cheesebench.statistics.wording import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The results of a session that determine its exit status."""

    failed: int
    """Cells with the verdict FAIL."""
    undecided: int
    """Cells with the verdict INCONCLUSIVE."""
    unmeasured: int
    """Cells that could not be measured, including controls."""
    stopped: int
    """Cells that another plugin has ended (pytest-timeout)."""
    other_failures: int
    """Failures and errors other than the verdict FAIL."""
    exit_zero: bool
    inconclusive_fails: bool
    compared: RunComparison | None
    """The comparison with the baseline."""
    fails_comparison: bool

    @property
    def forgiven(self) -> list[str]:
        """Sentences on the failures that ``--exit-zero`` ignores."""
        if not (self.failed and self.exit_zero):
            return []
        return [f"{plural(self.failed, 'cell')} failed, which --exit-zero ignores"]


def reason(status: int | pytest.ExitCode, found: Findings) -> str:
    """Return why the session ends with this exit status; empty for one
    of pytest's own.
    """
    if status == pytest.ExitCode.OK:
        parts = list(_nothing_failed(found))
    elif status == pytest.ExitCode.TESTS_FAILED:
        parts = _something_failed(found)
    else:
        return ""
    return textwrap.fill(
        f"Exit code {int(status)}: {'; '.join(parts)}.",
        80,
        subsequent_indent="  ",
        break_on_hyphens=False,
    )


def _nothing_failed(found: Findings) -> Iterator[str]:
    yield from found.forgiven or ["nothing failed"]
    compared = found.compared
    if compared is not None and not (compared.worse or compared.undecided):
        missed = ", ".join(compared.not_run)
        yield f"no loss against {compared.second}{f', of which {missed} was not run' if missed else ''}"
    if found.undecided:
        yield f"{found.undecided} inconclusive (to count them as failures: --inconclusive=fail)"


def _something_failed(found: Findings) -> list[str]:
    parts = list(_failures(found))
    counted = found.undecided if found.inconclusive_fails else 0
    known = found.unmeasured + found.stopped + counted
    if found.other_failures > known or not parts:
        parts.append("another test failed")
    return parts + [f"not the cause: {text}" for text in found.forgiven]


def _failures(found: Findings) -> Iterator[str]:
    if found.failed and not found.exit_zero:
        yield f"{plural(found.failed, 'cell')} failed"
    if found.unmeasured:
        yield f"{plural(found.unmeasured, 'cell')} could not be measured"
    if found.undecided and found.inconclusive_fails:
        yield f"{found.undecided} inconclusive, which --inconclusive=fail counts"
    if found.compared is not None and found.fails_comparison:
        yield _loss(found.compared)
    if found.stopped:
        yield f"{plural(found.stopped, 'cell')} stopped by another plugin"


def _loss(compared: RunComparison) -> str:
    where = [name or "all protocols together" for _, name, _ in compared.losses]
    if where:
        return f"worse than {compared.second} on {', '.join(dict.fromkeys(where))}"
    return f"undecided whether it is worse than {compared.second}{_undecided(compared)}"


def _undecided(compared: RunComparison) -> str:
    cells = [
        one
        for model in compared.models
        for one in model.cells
        if one.answer == "undecided"
    ]
    where = f" on {', '.join(one.protocol for one in cells)}" if cells else ""
    gone = sum(one.missing[0] for one in cells)
    return f"{where} ({plural(gone, 'missing trial')})" if gone else where
