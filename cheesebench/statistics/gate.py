"""Words the sentence that explains an exit code. A comparison of two runs may decide
the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cheesebench.statistics.comparison import CellComparison, RunComparison
from cheesebench.statistics.wording import plural

#: Marker by which a CI job recognises its earlier comment on a pull request, to update
#: this comment instead of adding another.
MARK = "<!-- cheesebench -->"
#: Maximum number of settings that a sentence names.
SHOWN = 3


def sentence(status: int, gates: bool, parts: Iterable[str]) -> str:
    """Return the sentence that explains an exit code. ``gates`` says whether a
    comparison decides the code.
    """
    gate = f", the gate is {'red' if status else 'green'}" if gates else ""
    return f"Exit code {status}{gate}: {'; '.join(parts)}."


def other_settings(compared: RunComparison) -> list[str]:
    """Return a list with one phrase that names the settings in which the two runs
    differ, because the answer is then about these settings, too. The list is empty if
    no setting differs.
    """
    found = [
        f"{name} {here}, not {there}" for name, here, there in compared.other_settings
    ]
    if not found:
        return []
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    shown = "; ".join(found[:SHOWN])
    return [f"not run with the settings of {compared.second} ({shown}{more})"]


def kept(compared: RunComparison, gates: bool) -> str:
    """Return a phrase on a comparison that does not count as a failure."""
    if not (compared.worse or compared.undecided):
        cells = [cell for _, cell in compared.cells]
        excluded = dict.fromkeys(
            cell.excluded for cell in cells if cell.answer == "no loss"
        )
        no = " or ".join(excluded) or "no loss"
        protocols = {cell.protocol for cell in cells}
        return f"{no} against {compared.second} on {plural(len(protocols), 'protocol')}"
    why = "this --compare-fail ignores" if gates else "fails only with --compare-fail"
    return f"{loss(compared, '')}, which {why}"


def loss(compared: RunComparison, cause: str) -> str:
    """Return what was lost, or could not be decided. ``cause`` is the cause of missing
    trials, in brackets.
    """
    where = [name or "all protocols together" for _, name, _ in compared.losses]
    if where:
        return f"worse than {compared.second} on {', '.join(dict.fromkeys(where))}"
    return f"undecided whether it is worse than {compared.second}{_undecided(compared, cause)}"


def silent(compared: RunComparison) -> Iterator[CellComparison]:
    """Yield the cells in which replies without an action may be the cause of what fails
    (``CellComparison.is_silenced``). The cell in which their share has grown most comes
    first.
    """
    cells = [cell for _, cell in compared.cells]
    failed = [one for one in cells if one.answer in ("worse", "undecided")] or cells
    ordered = sorted(failed, key=lambda one: one.more_silent, reverse=True)
    return (one for one in ordered if one.is_silenced)


def silence(compared: RunComparison) -> Iterator[str]:
    """Yield a phrase on replies that named no action, where they may be the cause."""
    found = list(silent(compared))
    for one in found[:1]:
        (none, replies), (before, there) = one.silent
        known = f" ({compared.second}: {before:,} of {there:,})" * bool(there)
        more = f", and on {plural(len(found) - 1, 'other protocol')}" * (len(found) > 1)
        yield (
            f"{none:,} of the {replies:,} replies that count on {one.protocol} named no action{known}{more}"
        )


def to_decide(compared: RunComparison, resume: str) -> str:
    """Return the remedy for an undecided comparison. ``resume`` is the remedy for
    missing trials of the first run.
    """
    if any(cell.missing[0] for _, cell in compared.cells):
        return resume
    if not any(cell.rule for _, cell in compared.cells):
        return f"Compare two runs that both have results for every protocol, view and model of {compared.first}."
    return "More subjects would decide: bless a run with more --subjects, and compare with that run."


def _undecided(compared: RunComparison, cause: str) -> str:
    cells = [cell for _, cell in compared.cells if cell.answer == "undecided"]
    protocols = dict.fromkeys(one.protocol for one in cells)
    where = f" on {', '.join(protocols)}" if cells else ""
    gone = sum(one.missing[0] for one in cells)
    if gone:
        return f"{where}, where {gone} of the trials that count could not be run{cause}"
    return where + _first_rule(cells)


def _first_rule(cells: Sequence[CellComparison]) -> str:
    """Return the rule of the first comparison that has one, in brackets. If there are
    several comparisons, the protocol is named.
    """
    for one in cells:
        if one.rule:
            on = f"on {one.protocol}, " if len(cells) > 1 else ""
            return f" ({on}{one.rule})"
    return ""
