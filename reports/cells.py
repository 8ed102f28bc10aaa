"""The texts and numbers of a cell that all report formats share (not yet escaped)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cheesebench.experiment.records import CallTotals, CellPlan, ReferenceValue
from cheesebench.protocol.validation import SAID
from cheesebench.statistics import CellResult, ModelSummary, RunSummary, Verdict
from cheesebench.statistics.reference_limits import has_interval, reference_limits
from cheesebench.statistics.summary import Average, PublishedContrast
from cheesebench.statistics.wording import amount, bar, gap, not_complete, number, percent, plural, points

MARKS = {Verdict.PASS: "✔", Verdict.FAIL: "✘", Verdict.INCONCLUSIVE: "?", Verdict.ERROR: "!"}
NOTHING = "–"

HOW_TO_READ = (
    "PASS: the model does at least as well as the rodent, within the margin; FAIL: it does worse than that; "
    "INCONCLUSIVE: the trials do not decide; ERROR: nothing could be measured, or trials were lost to a "
    "technical fault.",
    "A verdict comes from the bounds of the difference (one-sided 5 % each), never from the rate alone: "
    "PASS needs the lower bound above minus the margin, FAIL the upper bound below it.",
)
#: Stands below them if a verdict is about a measure.
HOW_TO_READ_MEASURE = (
    "Where a measure is named instead of a rate, the verdict is about its mean over subjects, and all numbers are in "
    "its unit. A margin with a plus means that less is better: PASS then needs the upper bound below it, FAIL the "
    "lower bound above it."
)
#: The same for cells that no animal stands behind.
HOW_TO_READ_CHANCE = (
    "PASS: the model does better than chance; FAIL: it is not better by as much as the margin; INCONCLUSIVE: the "
    "trials do not decide; ERROR: nothing could be measured, or trials were lost to a technical fault.",
    "A verdict comes from the bounds of the difference from chance (one-sided 5 % each), never from the rate alone: "
    "PASS needs the lower bound above 0, FAIL the upper bound below the margin.",
)


def standard_error(overall: Average) -> str:
    """Return a mean's standard error; empty where all trials ended alike.

    It comes from the width of the intervals, which lie on one side of such a mean: beside 100 % it reads as a mistake.
    """
    return percent(overall.standard_error) if 0 < overall.mean < 1 else ""


def mean(overall: Average) -> str:
    """Return ``82 % ± 3 %``: a mean over protocols and its standard error, if it has one that can be shown."""
    error = standard_error(overall)
    return f"{percent(overall.mean)} ± {error}" if error else percent(overall.mean)


def marked(verdict: Verdict) -> str:
    """Return ``✔ PASS`` and the like."""
    return f"{MARKS[verdict]} {verdict.value}"


def rate(cell: CellResult) -> str:
    """Return what the verdict is about: the pass rate, or a measure with its name, ``breakpoint 4.25``."""
    if cell.plan.measured is not None:
        name = cell.plan.measured.name
        return f"{name} {NOTHING if cell.judged is None else number(cell.judged.mean)}"
    return NOTHING if cell.rate is None else percent(cell.rate)


def interval(cell: CellResult) -> str:
    """Return its 95 % interval, ``38–55 %``; of a measure, ``3.1 to 5.4``."""
    if cell.plan.measured is not None:
        found = None if cell.judged is None else cell.judged.interval
        return NOTHING if found is None else " to ".join(map(number, found))
    return NOTHING if cell.interval is None else _range(cell.interval)


def floor(cell: CellResult) -> str:
    """Return the random agent's rate as declared by the protocol; of its measures nothing is declared."""
    return NOTHING if cell.plan.chance is None or cell.plan.measured is not None else percent(cell.plan.chance)


def reference(cell: CellResult) -> str:
    """Return the animals' rate or measure with its interval, or a note that it is declared or an analogy."""
    animals = cell.plan.reference
    if animals is None:
        return NOTHING
    details = ["analogy"] if animals.kind == "analogy" else []
    if has_interval(animals):
        limits = reference_limits(animals, 0.025)
        details.append(_range(limits) if animals.measured is None else " to ".join(map(number, limits)))
    elif not details:
        details.append("declared")
    if animals.n_animals and animals.interval is None:
        details.append(f"n = {animals.n_animals}")
    return f"{amount(cell.plan, animals.value)} ({', '.join(details)})"


def rodent_rate(cell: CellResult) -> ReferenceValue | None:
    """Return the animals' pass rate; None where their number is of a measure."""
    return None if cell.plan.measured is not None else cell.plan.reference


def animals_by_point(cell: CellResult) -> list[str]:
    """Return the animals' rate at each point of the cell's curve, with the standard deviation between them."""
    animals = rodent_rate(cell)
    if animals is None or cell.curve_unit != "session":
        return [""] * len(cell.curve)
    spread = [f" ± {percent(sd)} (SD)" for sd in animals.curve_sd] or [""] * len(animals.curve)
    said = [f"{percent(mean)}{sd}" for mean, sd in zip(animals.curve, spread, strict=True)]
    return [said[point.session - 1] if 0 < point.session <= len(said) else "" for point in cell.curve]


def difference(cell: CellResult) -> str:
    """Return model - reference in percentage points (or the measure's unit), with its bounds."""
    if cell.difference is None or cell.difference_low is None or cell.difference_high is None:
        return NOTHING
    shown, low, high = (gap(cell.plan, one) for one in (cell.difference, cell.difference_low, cell.difference_high))
    return f"{shown} ({low} to {high})"


def reference_name(cells: Iterable[CellResult]) -> str:
    """Return whose number the reference of these cells is: no animal has answered in words, a published model has."""
    said = {cell.plan.in_words for cell in cells}
    return "published" if said == {True} else "rodent" if said == {False} else "reference"


def question(cells: Iterable[CellResult]) -> str:
    """Return what the verdicts of these cells answer, as in ``as good as the rodent``."""
    cells = list(cells)
    if cells and all(cell.plan.against == "chance" for cell in cells):
        return "better than chance"
    return f"as good as the {'published model' if reference_name(cells) == 'published' else 'rodent'}"


def difference_name(cells: Iterable[CellResult]) -> str:
    """Return the heading of a column of differences; it names the reference if all cells have the same kind."""
    cells = list(cells)
    if any(cell.plan.measured is not None for cell in cells):
        return "difference"
    names = {"reference": "rate − rodent", "chance": "rate − random", "published": "rate − published"}
    compared = {
        "published" if cell.plan.in_words and cell.plan.against == "reference" else cell.plan.against for cell in cells
    }
    return names[compared.pop()] if len(compared) == 1 else "difference"


def how_to_read(cells: Iterable[CellResult]) -> list[str]:
    """Return what the verdicts of these cells mean, in one line each."""
    cells = list(cells)
    compared = {cell.plan.against for cell in cells}
    measured = [HOW_TO_READ_MEASURE] if any(cell.plan.measured is not None for cell in cells) else []
    if compared == {"chance"}:
        return list(HOW_TO_READ_CHANCE)
    if "chance" not in compared:
        return [*HOW_TO_READ, *measured]
    return [*HOW_TO_READ, *measured, *(f"Without an animal: {line}" for line in HOW_TO_READ_CHANCE)]


def margin(cell: CellResult) -> str:
    """Return the difference beyond which a verdict is FAIL: minus the margin, for a pass rate and animals."""
    return points(cell.plan.margin) if cell.plan.against == "chance" else gap(cell.plan, bar(cell.plan))


def remarks(cell: CellResult) -> list[str]:
    """Return what a reader must know before believing the number."""
    flags = cell.flags
    notes = [
        (validity(cell), True),
        ("contradicted by a lesion", bool(cell.contradicted)),
        ("better than the rodent", cell.superior),
        ("analogy", flags.analogy),
        ("not diagnostic", flags.not_diagnostic),
        ("goal visible", flags.goal_visible),
        ("this subject only", flags.this_subject_only),
        (f"{flags.duplicate_subjects} identical", bool(flags.duplicate_subjects)),
        ("memory contradicted", flags.memory_contradicted),
        # A warning has said so already where they are many.
        (f"{cell.missing} missing", cell.missing and not any("of trials missing" in text for text in cell.warnings)),
        (stopped(cell), True),
        (f"{cell.look.beyond if cell.look else 0} subjects beyond it", cell.look is not None and cell.look.beyond > 0),
        ("subjects stopped early", flags.truncated),
        ("mostly cut off", _mostly_cut_off(cell)),
        ("no claim", not cell.plan.claims),
    ]
    return [*cell.warnings, *(text for text, holds in notes if text and holds)]


def stopped(cell: CellResult) -> str:
    """Return the status of a sequential cell, as in ``stopped at 6 of at most 60``; empty for other designs."""
    look = cell.look
    if look is None:
        return ""
    if not_complete(cell):
        return f"look at {look.subjects} of at most {look.most} subjects not complete"
    if look.standing != "go on":
        return f"stopped at {look.subjects} of at most {look.most} subjects"
    if look.following is None:
        return f"{look.subjects} of at most {look.most} subjects"
    return f"{look.subjects} of at most {look.most} subjects, next look at {look.following}"


def validity(cell: CellResult) -> str:
    """Return whether the cell's construct was validated with lesions; empty for a dialogue."""
    if cell.plan.in_words:
        return ""
    construct = cell.plan.construct
    return NOT_VALIDATED if construct is None else VALIDITY[construct.status]


def validity_in_full(cell: CellResult) -> str:
    """Return the same with lesions: ``validated: memory, abolished by lesions: blind (leaves at most 25 %)``."""
    construct = cell.plan.construct
    if construct is None:
        return validity(cell)
    lesions = ", ".join(f"{lesion} (leaves at most {percent(most)})" for lesion, most in construct.abolished_by)
    return f"{validity(cell)}: {construct.name}, abolished by lesions: {lesions}"


def validities(cells: Iterable[CellResult]) -> list[tuple[str, str]]:
    """Return for each cell with a construct, or contradicted, its label and what is said of it in full."""
    said = [(cell, " ".join((f"{validity_in_full(cell)}.", *cell.contradicted))) for cell in cells]
    return [(cell.plan.label, text) for cell, text in said if cell.plan.construct is not None]


def _mostly_cut_off(cell: CellResult) -> bool:
    counts = cell.agent_counts
    return 2 * counts.get("truncated", 0) > counts.get("calls", 0)


NOT_VALIDATED = "not validated"
#: What is said of a construct by its status.
VALIDITY = SAID
#: What each remark means; printed once below a table that uses it.
MEANINGS = {
    NOT_VALIDATED: "the protocol names no lesion that abolishes what it measures, so a score may be possible without "
    "it",
    VALIDITY["declared"]: "the protocol names lesions that abolish what it measures, but no audit of them is available",
    VALIDITY["failed"]: "in the audit, a lesioned subject did better than the protocol allows",
    "contradicted by a lesion": "the model succeeds without what the protocol measures",
    "analogy": "the source of the rodents' number measured a different event than the success compared with it",
    "not diagnostic": "random moves come within the margin of the rodent, so a PASS says little",
    "goal visible": "the goal can be read from the observation",
    "this subject only": "there is one subject, so the interval is about that subject, not the model",
    "memory contradicted": "the agent declares no memory, yet its subjects differ; subjects are the unit of analysis",
    "mostly cut off": "most replies ended at the limit of tokens; raise it with --reply-tokens",
    "subjects stopped early": "trials that could no longer change the verdict were not run; rate, interval and curve "
    "are from those that were",
    "no claim": "the design checks the wiring only",
}


def cells_of(summary: RunSummary, model: ModelSummary) -> list[CellResult]:
    """Return the cells of one model in one view, in the order of the run."""
    return [cell for cell in summary.cells if _group(cell.plan) == _group(model)]


def _group(what: CellPlan | ModelSummary) -> tuple[str, str, str]:
    return (what.model, what.view, what.series if isinstance(what, CellPlan) else what.variant)


def whose(what: CellPlan | ModelSummary) -> tuple[str, str]:
    """Return the model's name, and the view and variant (not yet escaped)."""
    return (what.model, ", ".join(filter(None, (what.view, str(what.variant)))))


def counts(cells: Iterable[CellResult]) -> str:
    """Return counts of the verdicts that occur, as in ``2 PASS · 6 FAIL · 1 INCONCLUSIVE``."""
    verdicts = [cell.verdict for cell in cells]
    return " · ".join(f"{verdicts.count(v)} {v.value}" for v in Verdict if v in verdicts)


def rodent_mean(cells: Iterable[CellResult]) -> float | None:
    """Return the mean reference of the cells that have one for the pass rate."""
    plans = [cell.plan for cell in cells if cell.plan.measured is None]
    values = [plan.reference.value for plan in plans if plan.reference is not None]
    return sum(values) / len(values) if values else None


def chance_mean(cells: Iterable[CellResult]) -> float | None:
    """Return the mean random rate of the cells that have one, and are judged by their rate."""
    plans = [cell.plan for cell in cells if cell.plan.measured is None]
    values = [plan.chance for plan in plans if plan.chance is not None]
    return sum(values) / len(values) if values else None


#: What ``call_numbers`` returns.
CALL_HEADERS = ("calls", "attempts", "prompt tokens", "cached", "reply tokens", "reasoning", "cost", "s a call")


def call_numbers(totals: CallTotals) -> tuple[str, ...]:
    """Return call statistics in the order of CALL_HEADERS; the cost covers only calls with a known price."""
    cached = percent(totals.cached / totals.prompt) if totals.prompt else NOTHING
    if totals.written:
        cached += f" ({percent(totals.written / totals.prompt)} written)"
    cost = f"${totals.cost:.2f}" if totals.cost else NOTHING
    each = f"{totals.seconds / totals.calls:.2f}" if totals.calls else NOTHING
    counts = (totals.calls, totals.attempts, totals.prompt)
    return (*(f"{n:,}" for n in counts), cached, f"{totals.completion:,}", f"{totals.reasoning:,}", cost, each)


def call_totals(cells: Iterable[CellResult]) -> CallTotals:
    """Return the totals of the cells' calls."""
    return sum((cell.calls.totals for cell in cells if cell.calls is not None), CallTotals())


def connected(cells: Iterable[CellResult]) -> str:
    """Return what a check of the wiring is run for: how many calls were answered; empty for runs that claim more."""
    cells = list(cells)
    # The totals have calls that were refused, too.
    calls, unparsed = (sum(cell.agent_counts.get(name, 0) for cell in cells) for name in ("calls", "unparsed"))
    if not calls or any(cell.plan.claims or cell.plan.control for cell in cells):
        return ""
    return f"Connected: {plural(calls, 'call')} answered, {unparsed} unparsed."


@dataclass(frozen=True, slots=True)
class CallsTable:
    """The calls of a model's cells as a table: protocol, CALL_HEADERS, and the agent's counters."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    served_by: tuple[str, ...]
    """Model names that the server reported in its replies."""


def calls_table(cells: Iterable[CellResult]) -> CallsTable | None:
    """Return the table of the cells that made calls, with their sum if they are several; None without any."""
    made = [(cell, cell.calls) for cell in cells if cell.calls is not None]
    if not made:
        return None
    counted = list({name: None for cell, _ in made for name in cell.agent_counts if name != "calls"})

    def numbers(totals: CallTotals, *several: CellResult) -> tuple[str, ...]:
        sums = (str(sum(cell.agent_counts.get(name, 0) for cell in several)) for name in counted)
        return (*call_numbers(totals), *sums)

    rows = [(cell.plan.label, *numbers(calls.totals, cell)) for cell, calls in made]
    if len(rows) > 1:
        together = [cell for cell, _ in made]
        rows.append(("together", *numbers(call_totals(together), *together)))
    served = {name: None for _, calls in made for name in calls.served_by}
    headers = ("protocol", *CALL_HEADERS, *(name.replace("_", " ") for name in counted))
    return CallsTable(headers, tuple(rows), tuple(served))


def mapping(value: object) -> Mapping[str, object]:
    """Return a value of the manifest if it is a mapping, else an empty mapping."""
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def _range(limits: tuple[float, float]) -> str:
    low, high = (percent(limit).removesuffix(" %") for limit in limits)
    return f"{low}–{high} %"


#: Stands above the table of a run beside a published model.
HOW_TO_READ_CONTRASTS = (
    "Same rules and settings, and as many trials (of a longer run the first ones); in no verdict. The wording of the "
    "prompt is our own, and so are the views other than ascii_2d. The 95 % interval treats all trials as independent, "
    "which those of one subject are not: it is too narrow. An interval that contains 0 decides nothing."
)
CONTRAST_HEADERS = ("protocol", "view", "this run", "published", "difference in points")


def contrast_rows(contrasts: Sequence[PublishedContrast]) -> list[tuple[str, ...]]:
    """Return the rows of the table of a run beside a published model."""
    return [
        (
            one.protocol,
            one.view,
            f"{percent(one.rate)} of {one.trials}",
            f"{percent(one.published)} of {one.published_trials}",
            f"{100 * (one.rate - one.published):+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]",
        )
        for one in contrasts
    ]
