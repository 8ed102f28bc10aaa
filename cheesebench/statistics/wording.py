"""The sentences that explain a verdict to a reader who has not seen one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cheesebench.experiment.records import CellCalls, CellPlan
from cheesebench.interfaces import Value
from cheesebench.statistics.reference_limits import has_interval, reference_limits
from cheesebench.statistics.sample import Sample
from cheesebench.statistics.spending import ALPHA
from cheesebench.statistics.summary import CellResult, ClassShares, JudgedMean, Verdict

NO_SUCCESS_DECLARED = "The protocol declares no success, so there is no pass rate to compare."


def no_value(plan: CellPlan) -> str:
    """Return the reason when trials were run, but there is nothing in them that a verdict could be about."""
    if plan.measured is None:
        return NO_SUCCESS_DECLARED
    return f"The verdict is about '{plan.measured.name}', which has no value in any trial that counts."


def beyond_range(plan: CellPlan, outside: int) -> Iterator[str]:
    """Yield a warning if values of the judged measure are beyond the range that the protocol declares."""
    if outside and plan.measured is not None and plan.measured.range is not None:
        low, high = map(number, plan.measured.range)
        values = f"{plural(outside, 'value')} of {plan.measured.name}"
        yield f"{values} beyond its range of {low} to {high}: counted as its end"


def sample_size(sample: Sample) -> str:
    """Return n as it is always printed: ``10 subjects x 20 trials (200/200 valid)``."""
    lengths = sorted({one.entered for one in sample.per_subject}) or [sample.absent_trials]
    per_subject = f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]}-{lengths[-1]}"
    everybody = sample.seen + sample.absent
    who = plural(everybody, "subject")
    if sample.copies:
        who = f"{who} ({everybody - sample.copies} distinct)"
    if sample.per_subject and not sample.entered and not sample.absent:
        return f"{who}, none of whose trials count"
    valid = sample.entered - sample.missing - sample.settled
    planned = sample.entered + sample.not_run
    settled = f", {sample.settled} settled" if sample.settled else ""
    return f"{who} x {per_subject} trial{'' if per_subject == '1' else 's'} ({valid}/{planned} valid{settled})"


def plural(count: int, noun: str) -> str:
    """Return ``1 subject``, ``2 subjects``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def percent(proportion: float) -> str:
    """Return ``82 %``, with one decimal unless it is zero."""
    return f"{100 * proportion:.1f}".removesuffix(".0") + " %"


#: Reports say so if subjects differ by more than this many of the animals' standard deviations and there is no range.
SPREAD = 1.5


def beyond_animals(plan: CellPlan, judged: JudgedMean) -> Iterator[str]:
    """Yield a warning if subjects differ much more than the animals do, which t minds if there is no range."""
    reference, sd = plan.reference, judged.sd
    if plan.measured is None or plan.measured.range is not None or reference is None or sd is None:
        return
    if reference.sd and sd > SPREAD * reference.sd:
        yield f"subjects differ {number(sd / reference.sd)} times as much as the animals"


def number(value: float) -> str:
    """Return a number with three digits: ``4.25``, ``1310``."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def amount(plan: CellPlan, value: float) -> str:
    """Return a value of what the verdict is about: ``82 %``, or ``4.25`` in the unit of a measure."""
    return percent(value) if plan.measured is None else number(value)


def gap(plan: CellPlan, difference: float) -> str:
    """Return a difference of what the verdict is about, signed: in points, or in the unit of a measure."""
    return points(difference) if plan.measured is None else signed(difference)


def signed(difference: float) -> str:
    """Return a difference of a measure with its sign: ``+1.5``, ``-12``, ``0``."""
    shown = number(difference)
    if not float(shown):
        return "0"
    return shown if shown.startswith("-") else f"+{shown}"


def bar(plan: CellPlan) -> float:
    """Return the difference from the animals at which PASS ends: minus the margin, or plus it where less is better."""
    return plan.margin if plan.measured is not None and plan.measured.better == "lower" else -plan.margin


def points(difference: float) -> str:
    """Return a difference of proportions in percentage points, signed: ``-4.2``."""
    return f"{100 * difference:+.1f}".replace("+0.0", "0.0").replace("-0.0", "0.0")


def interval_method(subjects: int) -> str:
    """Return the method of the interval for this number of distinct subjects."""
    if subjects > 1:
        return f"Gaffke's bounds for the mean of {plural(subjects, 'subject')}"
    return "Wilson over trials, normal quantile (this subject only)"


def nothing_measured(cell: CellResult) -> str:
    """Return the reason for a cell without a valid trial: an ERROR, or a budget that was spent."""
    if not cell.planned:
        return "No trial was run. This says nothing about the model."
    if not_started(cell):
        return "Interrupted, not run: the run ended before its first trial. This says nothing about the model."
    causes = [f"{name} {cell.outcomes[name]}" for name in cell.outcomes if cell.outcomes[name]]
    return (
        f"No trial could be measured: {plural(cell.planned, 'trial')} missing ({', '.join(causes)}). "
        "This says nothing about the model."
        + (
            " Resume the run with a larger budget."
            if cell.outcomes["budget"] and not cell.outcomes["infrastructure"]
            else ""
        )
    )


def not_started(cell: CellResult) -> bool:
    """Return whether not a single trial of a cell was begun."""
    return bool(cell.planned) and cell.outcomes.get("not run") == cell.planned


def breakdown(cell: CellResult, broken: int) -> str:
    """Return the reason of an ERROR when some trials were run; ``cell`` is judged by those."""
    ran = plural(cell.valid, "trial")
    return (
        f"{plural(broken, 'trial')} of {cell.planned} failed for technical reasons, which says nothing about the "
        f"model. Fix the cause and resume the run. From the {ran} that were run: {cell.verdict}."
    )


def nothing_entered(cell: CellResult) -> str:
    """Return the reason when trials were run, but none that the pass rate is taken over."""
    kind, _, names = cell.plan.estimand.partition(":")
    blocks = [f"'{name}'" for name in names.split(",")]
    what = "none counts for the reference or the estimand"
    if kind == "block":
        reached = "the block {} was" if len(blocks) == 1 else "the blocks {} were"
        what = f"none of those that count: {reached.format(' and '.join(blocks))} not reached"
    ran = f"{plural(cell.subjects, 'subject')} x up to {plural(cell.plan.trials, 'trial')} were run, but {what}"
    return f"{ran}, so there is no pass rate." + (
        ""
        if cell.plan.claims or cell.plan.control
        else f" Design '{cell.plan.design}' only checks that everything is connected."
    )


def no_claim(cell: CellResult) -> str:
    """Return why a cell with a rate gets no verdict."""
    if cell.plan.control:
        return "A control makes no claim: compare its curve with that of the plain cell."
    if not cell.plan.claims:
        return f"Design '{cell.plan.design}' only checks that everything is connected; it never claims PASS or FAIL."
    return (
        "The protocol has no reference on `success` (a reference on a measure without `better` is only reported), so "
        "there is nothing to compare with."
    )


def verdict(cell: CellResult, settled_without_missing: bool) -> str:
    """Return the reason for a verdict that came from a comparison with animals, with its caveats."""
    assert cell.plan.reference is not None
    animal = cell.plan.species or "rodent"
    against = f"against {amount(cell.plan, cell.plan.reference.value)} ({animal})"
    if cell.judged is not None:
        rates = f"The mean of {cell.judged.measure} is {number(cell.judged.mean)}, {against}"
    else:
        assert cell.rate is not None
        rates = f"{percent(cell.rate)} of trials succeed, {against}"
    sentences = [f"{rates}: {_comparison(cell, settled_without_missing)}", *_caveats(cell)]
    return " ".join(sentences)


def verdict_against_chance(cell: CellResult) -> str:
    """Return the reason for a verdict that came from a comparison with chance."""
    assert cell.rate is not None
    assert cell.plan.chance is not None
    assert cell.difference_low is not None
    assert cell.difference_high is not None
    low, high, margin = points(cell.difference_low), points(cell.difference_high), points(cell.plan.margin).lstrip("+")
    rates = f"{percent(cell.rate)} of answers are right, against {percent(cell.plan.chance)} by chance"
    if cell.verdict is Verdict.PASS:
        text = f"even the lower bound of the difference, {low} points, is above 0: better than chance."
    elif cell.verdict is Verdict.FAIL:
        text = f"even the upper bound of the difference, {high} points, is below {margin}: no better than chance."
    else:
        text = (
            f"the difference lies between {low} and {high} points, so chance is not ruled out. {_remedy(cell)}".rstrip()
        )
    return " ".join([f"{rates}: {text}", *_caveats(cell)])


def _comparison(cell: CellResult, settled_without_missing: bool) -> str:
    plan = cell.plan
    if cell.difference_low is None or cell.difference_high is None:
        missing = plural(cell.missing + cell.settled, "missing trial")
        return f"without a range, {missing} could have had any value: resume the run to complete them."
    unit = " points" if plan.measured is None else ""
    low, high, margin = (
        f"{gap(plan, cell.difference_low)}{unit}", f"{gap(plan, cell.difference_high)}{unit}", gap(plan, bar(plan))
    )  # fmt: skip
    upwards = plan.measured is None or plan.measured.better == "higher"
    beyond, short = ("above", "below") if upwards else ("below", "above")
    nearest, farthest = (("lower", low), ("upper", high)) if upwards else (("upper", high), ("lower", low))
    if cell.verdict is Verdict.PASS:
        ending = f"and even {beyond} the animals." if cell.superior else "so it does as well, within the margin."
        name, bound = nearest
        return f"even the {name} bound of the difference, {bound}, is {beyond} the margin of {margin}, {ending}"
    if cell.verdict is Verdict.FAIL:
        name, bound = farthest
        return f"even the {name} bound of the difference, {bound}, is {short} the margin of {margin}."
    between = f"{low.removesuffix(unit)} and {high}"
    undecided = f"the difference lies between {between}, on both sides of the margin of {margin}."
    if cell.missing and settled_without_missing:
        why = " (the budget was spent)" if cell.outcomes.get("budget") else ""
        missing = plural(cell.missing, "missing trial")
        return f"{undecided} This depends on {missing}{why}: resume the run to complete them."
    return f"{undecided} {_remedy(cell)}".rstrip()


def _remedy(cell: CellResult) -> str:
    if cell.look is not None:
        return ""  # _stopped says more
    one = _one(cell)
    if cell.subjects_needed is not None:
        remedy = f"About {plural(cell.subjects_needed, one)} would decide it at this rate"
        return f"{remedy}: --generations {cell.subjects_needed}." if cell.plan.in_words else f"{remedy}."
    if cell.flags.duplicate_subjects:
        return f"More {one}s would only be copies."
    return f"No number of {one}s would decide it at this rate{_because_of_animals(cell)}."


def _because_of_animals(cell: CellResult) -> str:
    """Return that the animals' own uncertainty is why, where it reaches the margin however well the rate is known."""
    plan, animals = cell.plan, cell.plan.reference
    if plan.measured is not None or plan.against != "reference" or cell.difference is None or animals is None:
        return ""
    if not has_interval(animals):
        return ""
    low, high = reference_limits(animals, ALPHA)
    if not animals.value - high < bar(plan) - cell.difference < animals.value - low:
        return ""
    who = f"the {plural(animals.n_animals, 'animal')}" if animals.n_animals else "the animals"
    return f": the uncertainty of {who} alone reaches across the margin"


def _one(cell: CellResult) -> str:
    """Return the noun for a cell's subjects: a dialogue is generated once more, and nothing is learned."""
    return "generation" if cell.plan.in_words else "subject"


def _stopped(cell: CellResult) -> str:
    """Return where a sequential cell stands."""
    look = cell.look
    assert look is not None
    where = f"{look.subjects} of at most {plural(look.most, 'subject')}"
    if look.standing in ("PASS", "FAIL"):
        return f"Stopped at {where}: {look.standing}."
    if look.standing == "futile":
        return f"Stopped at {where}: even the last look was unlikely to decide."
    if not_complete(cell):
        if cell.outcomes["budget"]:
            return f"The budget was spent before the look at {where} was complete: resume the run with a larger one."
        return f"Interrupted before the look at {where} was complete: resume the run."
    if look.standing == "exhausted":
        return f"All {plural(look.most, 'subject')} have been run; no more are planned."
    likely = "" if look.needed is None else f", and {look.needed} subjects would decide at this rate"
    spent = " The budget was spent before it: resume the run with a larger one." if look.spent else ""
    return f"Undecided at {where}: the next look is at {look.following}{likely}.{spent}"


def not_complete(cell: CellResult) -> bool:
    """Return whether trials of the look that a sequential cell stands at are still to be run."""
    look = cell.look
    return look is not None and (look.following == look.subjects or (look.standing == "exhausted" and cell.missing > 0))


def _caveats(cell: CellResult) -> list[str]:
    flags, found = cell.flags, []
    if cell.look is not None:
        found.append(_stopped(cell))
        if cell.look.beyond:
            beyond = plural(cell.look.beyond, "subject")
            found.append(
                f"{beyond} beyond this look {'has' if cell.look.beyond == 1 else 'have'} begun but "
                f"{'is' if cell.look.beyond == 1 else 'are'} not counted."
            )
    if flags.truncated:
        found.append(
            f"{plural(cell.settled, 'trial')} could not change the verdict and were not run; rate and curve exclude "
            "them."
        )
    if flags.this_subject_only:
        one = _one(cell)
        found.append(f"There is only one {one}, so this is about that {one}, not the model.")
    if flags.duplicate_subjects:
        found.append(
            f"{plural(flags.duplicate_subjects, _one(cell))} did exactly the same as another one: counted in the "
            f"{'rate' if cell.judged is None else 'mean'}, but not as further evidence."
        )
    if cell.judged is not None and cell.judged.without:
        found.append(f"{plural(cell.judged.without, _one(cell))} without any value of it cannot be in the mean.")
    if flags.analogy:
        what = "this success" if cell.judged is None else "this measure"
        found.append(f"The animals' number is an analogy: its source measured a different event than {what}.")
    if flags.memory_contradicted:
        found.append("The agent declares no memory, but its subjects differ.")
    if flags.not_diagnostic:
        assert cell.plan.chance is not None
        found.append(f"Not diagnostic: moving at random already succeeds in {percent(cell.plan.chance)}.")
    if cell.missing and cell.verdict is not Verdict.INCONCLUSIVE:
        found.append(f"{plural(cell.missing, 'missing trial')} could not change this.")
    return found


#: The share of answers that are none, and of trials that are missing, above which together every report says so.
DOUBTFUL = 0.05
#: What an agent counts of replies that are no answer, and what is said of them.
_NO_ANSWERS = {"empty": "empty", "truncated": "cut off", "unparsed": "without a readable answer"}


def warnings(cell: CellResult) -> tuple[str, ...]:
    """Return what makes the numbers of a cell doubtful, whatever its verdict."""
    return doubts(cell.agent_counts, cell.calls, cell.missing, cell.planned)


def doubts(counts: Mapping[str, int], asked: CellCalls | None, missing: int, planned: int) -> tuple[str, ...]:
    """Return what makes numbers doubtful: what the agent counts, the calls, and how many of the trials are missing.

    Kinds that are rare each may be many together: answers of all kinds that are none, and missing trials, count as one.
    """
    calls, malformed = counts.get("calls", 0), 0 if asked is None else asked.totals.malformed
    kinds = {said: counts.get(name, 0) for name, said in _NO_ANSWERS.items()}
    # A reply may be of several kinds; an agent that does not say how many are of any has each counted for itself.
    unusable = min(counts.get("unusable", sum(kinds.values())), calls)
    share = (unusable + malformed) / max(1, calls + malformed)
    if share + missing / max(1, planned) <= DOUBTFUL:
        return ()
    shares = [f"{percent(count / calls)} of replies {said}" for said, count in kinds.items() if calls and count]
    if malformed:
        shares.append(f"{percent(malformed / (calls + malformed))} of answers malformed or refused")
    if missing:
        shares.append(f"{percent(missing / planned)} of trials missing")
    return tuple(shares)


def with_doubts(cell: CellResult) -> str:
    """Return the reason of a verdict, and what makes its numbers doubtful."""
    return f"{cell.reason} Doubtful: {'; '.join(cell.warnings)}." if cell.warnings else cell.reason


def with_calls(cell: CellResult, calls: CellCalls | None) -> CellResult:
    """Return a cell with what its calls came to, which may make its numbers doubtful."""
    own = [text for text in cell.warnings if text not in warnings(cell)]
    cell = replace(cell, calls=calls)
    return replace(cell, warnings=(*warnings(cell), *own))


def with_causes(cell: CellResult) -> str:
    """Return the reason of a cell that could not be measured, or whose budget was spent, with what its causes say."""
    spent = next((cause for cause in cell.causes if "--max-" in cause), "")
    if (
        spent
        and cell.verdict is Verdict.INCONCLUSIVE
        and (cell.outcomes.get("budget") or (cell.look and cell.look.spent))
    ):
        return f"{cell.reason} Stopped by the budget: {spent}."
    if cell.verdict is not Verdict.ERROR or not cell.causes:
        return cell.reason
    more = len(cell.causes) - 1
    others = f" ({more} other {'cause' if more == 1 else 'causes'})" if more else ""
    return f"{cell.reason} Cause: {cell.causes[0]}{others}"


def shares(found: ClassShares) -> str:
    """Return how often each name of a measure was met: ``direct 40 %, serial 60 %``."""
    total = sum(found.counts.values())
    return ", ".join(f"{name} {percent(count / total)}" for name, count in found.counts.items())


def shown_value(value: Value) -> str:
    """Return a value of a variable as text."""
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
