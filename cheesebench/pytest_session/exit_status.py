"""The reason for a session's exit status, and the remedy. The session's reports take
both sentences from here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from signal import Signals
from typing import NamedTuple

import pytest

from cheesebench.experiment import calling, unfinished
from cheesebench.experiment.log import RunLog
from cheesebench.records import CellPlan
from cheesebench.redaction import alike
from cheesebench.statistics import CellResult, Verdict, gate, wording
from cheesebench.statistics.comparison import RunComparison
from cheesebench.statistics.judgement import judge_set
from cheesebench.statistics.wording import plural


class Broken(NamedTuple):
    """A protocol that cannot be run, and why, with the remedy."""

    name: str
    path: str
    text: str

    @property
    def error(self) -> tuple[str, str]:
        """The place and code of the protocol's first error, and the error's sentence.
        An error without a place has the protocol's name instead.
        """
        first = self.text.partition("\n")[0]
        found = _ERROR.match(first)
        return (found[1], found[3]) if found else (self.name, first)

    @property
    def line(self) -> int:
        found = _ERROR.match(self.text)
        return int(found[2]) if found else 1


#: Matches an error in a file. The groups are its place and code, the line number, and
#: the text.
_ERROR = re.compile(r"(.*?:(\d+):\d+: error \w+): (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The results and options of a session that determine its exit status, and further
    facts for the sentences about the status.
    """

    run_id: str
    cells: Sequence[CellResult]
    """All judged cells, including controls."""
    unmeasured: int
    """Number of cells that could not be measured, including controls."""
    stopped: int
    """Number of cells that another plugin (such as pytest-timeout) has ended."""
    broken: Sequence[Broken]
    """Protocols that could not be loaded, or cannot be run with these models."""
    other_failures: int
    """Number of failures and errors other than the verdict FAIL."""
    exit_zero: bool
    inconclusive_fails: bool
    compared: RunComparison | None
    """The comparison with the baseline, or None if there is no baseline."""
    gates: bool
    """Whether the comparison decides if the session fails."""
    fails_comparison: bool
    budgets: str
    """The options that set larger budgets, or an empty string if no budget was
    spent.
    """
    interrupted: str
    """What has interrupted the session. It is empty if nothing has."""
    unfinished: Collection[CellPlan]
    """Cells that a resumed run can continue."""
    baseline: str
    """The baseline's name if its model acted where this run's model did not, or an
    empty string.
    """
    in_ci: bool
    """Whether this is a CI job, whose run is in an artifact."""
    replies: int = 0
    """Number of replies of the run's cells."""
    earlier: int = 0
    """Number of these replies that are from earlier sessions of a resumed run."""
    may_retry: bool = False
    """Whether ``--retry-errors`` would leave no cell with too many repeated trials."""

    def count(self, verdict: Verdict) -> int:
        """Return the number of cells with this verdict, without controls."""
        return sum(
            one.verdict is verdict and not one.plan.control for one in self.cells
        )

    def cells_text(self, number: int) -> str:
        return in_words(number, [one.plan for one in self.cells])

    @property
    def not_run(self) -> list[str]:
        """What only the baseline has. Broken protocols are left out."""
        known = {one.name for one in self.broken}
        found = self.compared.not_run if self.compared else ()
        return [what for what in found if what.partition(" ")[0] not in known]

    @property
    def other_settings(self) -> list[str]:
        """A list with the phrase on settings that differ from the baseline's. It is
        empty if there are none.
        """
        return gate.other_settings(self.compared) if self.compared else []

    @property
    def failed(self) -> int:
        """The number of cells with the verdict FAIL, without controls."""
        return self.count(Verdict.FAIL)

    @property
    def undecided(self) -> int:
        """The number of cells with the verdict INCONCLUSIVE, without controls."""
        return self.count(Verdict.INCONCLUSIVE)

    @property
    def mute(self) -> list[CellResult]:
        """The finished cells in which no reply named an action. A resumed run would
        make no more calls in them.
        """
        over = (one for one in self.cells if one.plan not in self.unfinished)
        return list(filter(never_acted, over))

    @property
    def cause(self) -> str:
        """Why trials are missing, in brackets. It is empty if no trial is missing, or
        the reason is unknown.
        """
        unread = filter(never_acted, self.cells)
        # The first words of a reason, up to the number of calls, which differs.
        firsts = [one.reason.partition(" (")[0].rstrip(".") for one in unread]
        calls = [f"{first[:1].lower()}{first[1:]}" for first in firsts]
        causes = list(dict.fromkeys([*calls, *self.faults]))
        more = len(causes) - 1
        others = f", and {plural(more, 'other cause')}" if more > 0 else ""
        return f" ({causes[0]}{others})" if causes else ""

    @property
    def faults(self) -> list[str]:
        """The causes of missing trials, except in cells whose model never acted. Causes
        that differ only in identifiers, times or counts are one.
        """
        known: dict[str, str] = {}
        for one in self.cells:
            if one.missing and not never_acted(one):
                for cause in one.causes:
                    text = _PLACE.sub("", cause).rstrip(".")
                    known.setdefault(alike(text), text)
        return list(known.values())

    @property
    def begun_anew(self) -> list[str]:
        """A list with the phrase on cells whose earlier replies were lost. It is empty
        if there are none.
        """
        remarks = (text for one in self.cells for text in one.remarks)
        found = list(filter(None, map(_ANEW.match, remarks)))
        lost = sum(int(one[1].replace(",", "")) for one in found)
        said = f"{self.cells_text(len(found))} begun anew, because none of {lost:,} earlier replies named an action"
        return [said] if found else []

    @property
    def reused(self) -> list[str]:
        """A list with the phrase on replies that a resumed run has reused. It is empty
        if there are none.
        """
        if not self.earlier:
            return []
        if self.earlier >= self.replies:
            return [
                f"nothing was asked: all {self.replies:,} replies are from an earlier attempt"
            ]
        return [
            f"{self.earlier:,} of {self.replies:,} replies are from an earlier attempt"
        ]

    @property
    def forgiven(self) -> list[str]:
        """Phrases on the failures that ``--exit-zero`` ignores."""
        if not (self.failed and self.exit_zero):
            return []
        return [
            f"{self.cells_text(self.failed)} failed against the animals, which --exit-zero ignores"
        ]


def in_words(number: int, plans: Sequence[CellPlan]) -> str:
    """Return a number of cells in words, as protocols if each protocol is one cell."""
    protocols = {one.label for one in plans}
    return plural(number, "protocol" if len(protocols) == len(plans) else "cell")


#: Beginnings of reasons, each followed by the error. ``REFUSED``: the session ends
#: before it runs anything. ``NOT_COMPARED``: the session's run cannot be compared.
#: ``NOTHING_SELECTED``: the session has no test.
REFUSED = "Exit code 4, CheeseBench could not run, so nothing was tested"
NOT_COMPARED = "Exit code 4, CheeseBench could not compare this run"
NOTHING_SELECTED = "Exit code 5, no protocol was selected, so nothing was tested"
#: What to do if a continued run would end in the same way.
NEW_RUN = "start a new run (in CI: push a commit)"
#: Matches the parts of a cause that name the trial, or the call that was recorded.
_PLACE = re.compile(
    r"^stopped in trial \d+: "
    r"| at call \d+ of trial \d+ of subject \d+ \(.*?\)(?=, as recorded: )"
)
#: Matches the remark on a cell that was begun anew. The group is how many replies were
#: lost.
_ANEW = re.compile(r"The cell was begun anew[^:]*: none of ([\d,]+) earlier replies")
#: Remedy for empty replies. The server answered the first question, so if it gives no
#: reply later, something has changed.
_CHANGED = (
    "Mend what has changed in the model or its server (template, stop words, limits)"
)
#: Matches the cause of trials that were not run because the session's minutes were
#: over.
_TIME_IS_OVER = re.compile(r"the run has taken [^;]*; --max-minutes \S+ is reached$")
#: Matches the cause of trials that were not run because a budget was spent while the
#: server failed. The group is the server's fault.
_FAILING = re.compile(r"the run has .* while the server did not answer \((.*?)\)?$")
#: Patterns for the beginnings of causes, with the remedy.
_TO_MEND = tuple(
    (re.compile(beginning), what)
    for beginning, what in (
        (r"malformed: (?!The answer)|[0-9]+ empty replies in a row", _CHANGED),
        (
            r"timeout: .*\bwithin [\d.]+ s\b",
            "See to it that the server answers in time, or give it more time with --cheese-timeout",
        ),
        (
            "connection: |timeout: ",
            "See to it that the server runs and can be reached",
        ),
        ("server: ", "Mend the server (its own log says more)"),
        (
            "rate limit: |overload: ",
            "Wait until the server takes calls again, or lower --concurrency",
        ),
        (
            "the calls of one trial took more",
            "Make the server faster, or raise --trial-timeout",
        ),
        ("authentication: ", "See to it that the server accepts the key"),
        ("unknown model: ", "See to it that the server has the model under this name"),
        ("quota: ", "Raise the limit of the account, or add credit"),
        (
            "context too long",
            "Give the model a longer context, or shorten its prompts",
        ),
        ("content filter", "Use a server whose filter lets these prompts pass"),
        ("bad request", "Change what the server refuses"),
    )
)


def never_acted(cell: CellResult) -> bool:
    """Return whether the cell could not be measured because no reply named an
    action.
    """
    return cell.verdict is Verdict.ERROR and cell.reason.startswith(wording.NEVER_ACTED)


def is_over(log: RunLog, plan: CellPlan) -> bool:
    """Return whether a resumed run has nothing to continue in this cell: it is
    finished, or none of its replies named an action, so that it is begun anew.
    """
    return unfinished.is_over(log, plan, judge_set)


def reason(status: int | pytest.ExitCode, found: Findings) -> str:
    """Return a sentence on why the session ends with this exit status, or "" if pytest
    itself says why.
    """
    if status == pytest.ExitCode.OK:
        # The settings come last, because they are not the reason for a success.
        parts = [*_nothing_failed(found), *found.begun_anew, *found.other_settings]
        parts += found.reused * found.gates
    elif status == pytest.ExitCode.TESTS_FAILED:
        parts = [*found.other_settings, *_something_failed(found)]
    else:
        return _ended(int(status), found)
    return gate.sentence(int(status), found.gates, parts)


def interrupted(by: str) -> str:
    """Return what has interrupted a session, as a part of a sentence."""
    return (
        f"interrupted by {by}" if by in Signals.__members__ else f"interrupted ({by})"
    )


def _ended(status: int, found: Findings) -> str:
    if not found.interrupted:
        return ""
    are = "is" if len(found.unfinished) == 1 else "are"
    what = "everything was run"
    if found.unfinished:
        what = f"{len(found.unfinished)} of {found.cells_text(len(found.cells))} {are} unfinished"
    if found.compared is not None and found.compared.worse:
        what = f"{gate.loss(found.compared, '')}; {what}"
    return f"Exit code {status}, {interrupted(found.interrupted)}: {what}."


def badge(status: int | pytest.ExitCode, found: Findings) -> str:
    """Return what the gate says, in one to three words, or "" if there is no gate."""
    words = {0: "GREEN", 1: "RED", 2: "INTERRUPTED", 4: "COULD NOT RUN"}
    return words.get(int(status), "") if found.gates else ""


def remedy(status: int | pytest.ExitCode, found: Findings) -> str:
    """Return the most useful remedy for a session that fails or was interrupted, or ""
    if its results suggest none. Commands are in backticks.
    """
    if status == pytest.ExitCode.TESTS_FAILED:
        return _of_failures(found)
    if found.interrupted and found.unfinished:
        return f"{_resume(found)}."
    return ""


def _resume(found: Findings, before: str = "") -> str:
    """Return how to continue a run, as the end of a sentence that begins with
    ``before``.
    """
    how = f"continue the run with `--resume {found.run_id}`; a job that is run again does that by itself"
    if found.in_ci:
        how = f"run the job again: that continues the run (`--resume {found.run_id}`)"
    return f"{before}, then {how}" if before else f"{how[:1].upper()}{how[1:]}"


def _of_failures(found: Findings) -> str:
    if found.broken:
        return found.broken[0].error[1]
    if found.mute:
        return how_to_act(
            found.run_id,
            found.mute[0].plan.protocol,
            found.baseline,
            in_ci=found.in_ci,
            changed=bool(found.other_settings),
            cut_off=wording.why_unread(found.mute[0]),
        )
    if found.compared is None:
        # The report above already names a command that continues the run.
        return _to_mend(found) if any(map(CellResult.kept, found.faults)) else ""
    if found.budgets:
        return _with_larger_budgets(found)
    if found.unmeasured:
        return _of_unmeasured(found)
    return _after_comparing(found, found.compared)


def _of_unmeasured(found: Findings) -> str:
    lost = [cell for cell in found.cells if cell.verdict is Verdict.ERROR]
    if any(cell.outcomes.get("run anew") for cell in lost):
        new = _new_run(found)
        return f"{new[:1].upper()}{new[1:]}, because stops made this one repeat too many trials."
    return _to_mend(found)


def _to_mend(found: Findings) -> str:
    """Return the remedy for a cause of missing trials: the first that a continued run
    would keep or, if there is none, the first.
    """
    cause = next(filter(CellResult.kept, found.faults), next(iter(found.faults), ""))
    if _TIME_IS_OVER.match(cause):
        return f"{_resume(found)}. It then has its minutes once more."
    failing = _FAILING.match(cause)
    fault = failing[1] if failing else cause
    fitting = (text for pattern, text in _TO_MEND if pattern.match(fault))
    text = next(fitting, calling.to_mend(fault) or "Remove the cause")
    kept = CellResult.kept(cause)
    if "refused" in kept and found.may_retry and not found.in_ci:
        again = f"`--resume {found.run_id} --retry-errors`"
        return f"{text}, then continue the run with {again}, which asks again what was refused."
    if kept:
        return f"{text}, then {_new_run(found)}, because this one keeps its {kept}."
    return f"{_resume(found, text)}."


def _new_run(found: Findings) -> str:
    return NEW_RUN if not found.in_ci else "start a new run (push a commit)"


def _with_larger_budgets(found: Findings) -> str:
    if found.in_ci:
        return (
            f"Run the job again with `{found.budgets}`: that continues the run (`--resume {found.run_id}`). Set the budget "
            "in a variable of the CI, because a changed job file begins a new run. With the old budget, it would end in "
            "the same way."
        )
    larger = "larger budgets" if found.budgets.count("--") > 1 else "a larger budget"
    return f"Continue the run with {larger}: `{found.budgets} --resume {found.run_id}`."


def _after_comparing(found: Findings, compared: RunComparison) -> str:
    """Return the remedy for a session that fails only because of its comparison, or ""
    if the comparison does not fail it.
    """
    if not found.fails_comparison:
        return ""
    if any(gate.silence(compared)):
        return _of_silence(found, compared)
    if compared.worse:
        bless = f"`cheesebench bless {found.run_id} {compared.second}`"
        if found.in_ci:
            return (
                "What was lost can be watched on the page in the job's artifact. To test a mended model, push a commit: this "
                "job, run again, asks nothing twice. If the loss is intended, unpack the artifact in your clone, "
                f"run {bless}, and commit baselines/{compared.second}.json."
            )
        return (
            f"To watch its failed trials: `cheesebench report {found.run_id} --html` (only `pytest --html` puts the "
            f"comparison on the page). To test a mended model, {NEW_RUN}. "
            f"If the loss is intended, make this run the new baseline: {bless}."
        )
    resume = f"{_resume(found)}."
    return gate.to_decide(compared, _to_mend(found) if found.faults else resume)


def _of_silence(found: Findings, compared: RunComparison) -> str:
    """Return the remedy for replies that named no action, where ``compared`` has fewer
    of them.
    """
    where = (
        ", in a clone in which the job's artifact is unpacked" if found.in_ci else ""
    )
    cell = next(gate.silent(compared))
    own = (one for one in found.cells if one.plan.protocol == cell.protocol)
    cut_off = next(filter(None, map(wording.why_unread, own)), "")
    mend = f"{cut_off[:1].upper()}{cut_off[1:]}" or _CHANGED
    show = f"`cheesebench show {found.run_id} --protocol {cell.protocol} --unparsed`"
    return f"{mend}, then {_new_run(found)}, because this one keeps its replies. To read them: {show}{where}."


def how_to_act(
    run_id: str,
    protocol: str,
    baseline: str,
    *,
    in_ci: bool,
    changed: bool = False,
    cut_off: str = "",
) -> str:
    """Return the remedy for a cell in which no reply named an action. ``baseline``
    names a baseline whose model acted there (empty if there is none). ``changed`` is
    true if this run has other settings than the baseline. ``cut_off`` is what to do if
    the replies were cut off (``wording.why_unread``).
    """
    show = f"`cheesebench show {run_id} --protocol {protocol} --call 1`"
    where = ", in a clone in which the job's artifact is unpacked" if in_ci else ""
    push = "push a commit" if in_ci else NEW_RUN
    again = (
        "run the job again"
        if in_ci
        else f"continue the run with `--resume {run_id}` (in CI: run the job again)"
    )
    anew = f"{again}: it asks anew where no reply named an action"
    if changed and baseline:
        return f"Take the settings of {baseline} again, and {push}."
    if cut_off:
        return f"{cut_off[:1].upper()}{cut_off[1:]}, and {push}. To read a reply: {show}{where}."
    if baseline:
        return (
            f"The model of {baseline} named actions when it was asked like this, so mend what has changed in the model or "
            f"its server (template, stop words, limits), then {anew}. To read a reply: {show}{where}."
        )
    return (
        f"Read a reply ({show}{where}). If the server was at fault, mend it, then {anew}. Otherwise {push} with another "
        "`--prompt`, `--agent llm-tools`, or a larger model."
    )


def filled(text: str) -> str:
    """Return a sentence, wrapped for a terminal."""
    return textwrap.fill(text, 80, subsequent_indent="  ", break_on_hyphens=False)


def _nothing_failed(found: Findings) -> Iterator[str]:
    compared = found.compared
    if compared is not None:
        yield gate.kept(compared, found.gates)
        yield from _not_run(found, compared.second)
    yield from found.forgiven or ["nothing failed"] * (compared is None)
    yield from _left_out(found)
    if found.undecided:
        how = (
            " against the animals"
            if found.gates
            else " (would fail with --inconclusive=fail)"
        )
        yield f"{found.cells_text(found.undecided)} inconclusive{how}"


def _left_out(found: Findings) -> Iterator[str]:
    """Yield how many trials are missing, although nothing failed."""
    if gone := sum(one.missing for one in found.cells if not one.plan.control):
        counted_as = ", which the comparison counts against this run" * bool(
            found.compared
        )
        yield f"{gone} of the trials that count could not be run{found.cause}{counted_as}"


def _something_failed(found: Findings) -> list[str]:
    parts = list(_failures(found))
    counted = found.undecided if found.inconclusive_fails else 0
    known = found.unmeasured + found.stopped + counted + len(found.broken)
    if found.other_failures > known or not parts:
        parts.append("another test failed")
    if found.compared is not None:
        parts += _not_run(found, found.compared.second)
    # What is forgiven comes last, because it is not the cause. A gate is not about it.
    return parts + found.forgiven * (not found.gates)


def _not_run(found: Findings, baseline: str) -> list[str]:
    return [f"in {baseline}, but not run: {', '.join(found.not_run)}"] * bool(
        found.not_run
    )


def _failures(found: Findings) -> Iterator[str]:
    cause = found.cause
    if found.broken:
        are = plural(len(found.broken), "protocol")
        yield f"{are} could not be run ({found.broken[0].error[0]})"
    if found.failed and not found.exit_zero:
        yield f"{found.cells_text(found.failed)} failed"
    if found.unmeasured:
        yield f"{found.cells_text(found.unmeasured)} could not be measured{cause}"
        cause = ""  # Say the cause only once.
    if found.undecided and found.inconclusive_fails:
        yield f"{found.cells_text(found.undecided)} inconclusive (counted as failed: --inconclusive=fail)"
    if found.compared is not None and found.fails_comparison:
        yield gate.loss(found.compared, cause)
        yield from gate.silence(found.compared)
        yield from found.reused
    if found.stopped:
        yield f"{found.cells_text(found.stopped)} stopped by another plugin"
