"""The texts and numbers that all report formats share. Names and reasons are untrusted,
so each format escapes the texts (``clean``, ``escape``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cheesebench.amounts import (
    dollars,
    level,
    number,
    per_hundred,
    percent,
    points,
    signed,
)
from cheesebench.interfaces import ACTIONS
from cheesebench.protocol.references import in_words
from cheesebench.protocol.validation import SAID
from cheesebench.published import published_ablation
from cheesebench.records import CallTotals, CellPlan, ReferenceValue, Reported
from cheesebench.redaction import inert
from cheesebench.statistics import (
    CellResult,
    ModelSummary,
    RunSummary,
    Verdict,
    wording,
)
from cheesebench.statistics.question import animals_interval, thresholds
from cheesebench.statistics.summary import (
    Average,
    Leaderboard,
    Measure,
    PublishedContrast,
)
from cheesebench.statistics.wording import (
    UNEVEN,
    amount,
    gap,
    odds,
    on_scale,
    plural,
    shown_value,
)

if TYPE_CHECKING:
    from cheesebench.statistics import ControlResult, CurvePoint, Gain

#: Length, in characters, to which a text is cut unless the caller of ``clean`` gives
#: another. A longer one is tiring to read, and would break a table.
LONGEST = 1000

_MARKUP = re.compile(r"[\\`*\[\]|~$]")
#: Underscores that Markdown takes as marks. Underscores inside a word, which are
#: frequent in names, are no marks.
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
#: Characters that make GitHub turn the text around them into a mention or a link.
_LIVE = re.compile(
    r"(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|:(?=//)|(?<=\bwww)\.", re.IGNORECASE
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_IN_CODE = str.maketrans("`<>", "'‹›")
#: Unicode categories of unprintable characters: control, format (such as direction
#: marks), surrogate, unassigned, private, and separators of lines.
_UNPRINTABLE = frozenset(("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"))


def clean(text: object, longest: int = LONGEST) -> str:
    """Return one printable line, cut to ``longest`` characters. Runs of whitespace
    become single spaces, unprintable characters become �, and what a CI could take for
    a command is changed (``inert``).
    """
    line = " ".join(str(text).split())
    if len(line) > longest:
        line = line[: longest - 1] + "…"
    return inert(
        "".join(
            "\ufffd" if unicodedata.category(glyph) in _UNPRINTABLE else glyph
            for glyph in line
        )
    )


def visible(text: str, longest: int) -> str:
    """Return text with its line breaks, and tabs as spaces. Unprintable characters are
    spelled out, as in ``⟨U+202E⟩``.

    What exceeds ``longest`` characters is replaced by a note on its length.
    """
    rest = len(text) - longest
    lines = (
        (text[:longest] if rest > 0 else text)
        .replace("\r\n", "\n")
        .replace("\t", "    ")
        .split("\n")
    )
    shown = "\n".join(
        "".join(map(_spelt_out, line)) if not line.isprintable() else line
        for line in lines
    )
    return (
        f"{shown}\n[... {rest:,} more character{'s' * (rest > 1)}; the run log has the whole text]"
        if rest > 0
        else shown
    )


def _spelt_out(glyph: str) -> str:
    return (
        f"⟨U+{ord(glyph):04X}⟩"
        if unicodedata.category(glyph) in _UNPRINTABLE
        else glyph
    )


def escape(text: object) -> str:
    """Return Markdown (GitHub's) that shows exactly ``clean(text)``, in a table cell or
    inside a line.

    The result is not safe at the start of a line, where ``#`` or ``-`` would still have
    a meaning.
    """
    line = _MARKUP.sub(r"\\\g<0>", clean(text))
    line = _UNDERSCORE.sub(r"\_", line)
    line = re.sub("[&<>]", lambda match: _ENTITIES[match.group()], line)
    # A comment between the characters keeps GitHub from making a mention or a link.
    return _LIVE.sub(lambda match: f"{match[0][0]}<!-- -->{match[0][1:]}", line)


def fenced(text: object, width: int) -> str:
    """Return ``clean(text)`` for a code block. It has exactly ``width`` characters, and
    no backticks or angle brackets.
    """
    return clean(text, width).translate(_IN_CODE).ljust(width)[:width]


MARKS: dict[Verdict | None, str] = {
    Verdict.PASS: "✔",
    Verdict.FAIL: "✘",
    Verdict.INCONCLUSIVE: "?",
    Verdict.ERROR: "!",
    None: "–",
}
NOTHING = "–"
#: Replaces the rate of an unfinished cell, which is no result.
UNFINISHED = "unfinished"

HOW_TO_READ = (
    "PASS: the model does at least as well as the rodent, within the margin; FAIL: it does worse than that; "
    "INCONCLUSIVE: the trials do not decide, or nothing is claimed; ERROR: nothing could be measured, no reply named an "
    "action, or trials that could decide were lost to technical faults.",
    "A verdict comes from the bounds of the difference (one-sided, 5 % each, less with --familywise), never from the rate alone: "
    "PASS needs a lower bound above minus the margin, and FAIL an upper bound below minus the margin.",
)
#: Note on verdicts about a measure.
HOW_TO_READ_MEASURE = (
    "Where a measure is shown instead of a rate, the verdict is about its mean over subjects, and all numbers are in "
    "its unit. A margin with a plus means that less is better: PASS then needs an upper bound below it, and FAIL a "
    "lower bound above it. A margin with ± has two sides: PASS then needs both bounds inside it, and FAIL both bounds "
    "beyond the same end of it."
)
#: Heading of the rate that a verdict without animals compares with.
CHANCE = "chance"
#: Note on pass rates by dimension.
HOW_TO_READ_PROFILE = (
    "This is a drawing, not a finding: the means of pass rates over the protocols that name a dimension. Nothing shows that the "
    "dimensions are separate abilities; in the built-in agents all rates follow one factor."
)
#: Note on tables with abilities.
HOW_TO_READ_ABILITY = (
    "Ability: (rate − without) / (ideal − without). 0 is the most that a subject without the ability can have, as proved "
    "by the protocol's audit; 1 is an ideal learner."
)
#: Notes on cells that are compared with chance.
HOW_TO_READ_CHANCE = (
    "PASS: the model does better than chance; FAIL: it is not better by as much as the margin; INCONCLUSIVE: the "
    "trials do not decide, or nothing is claimed; ERROR: nothing could be measured, no reply named an action, or trials "
    "that could decide were lost to technical faults.",
    "A verdict comes from the bounds of the difference from chance (one-sided, 5 % each, less with --familywise), never "
    "from the rate alone: PASS needs a lower bound above 0, and FAIL an upper bound below the margin.",
)


def limits(overall: Average) -> str:
    """Return the 95 % interval of a mean over protocols: ``95 %: 76–88 %``."""
    return f"95 %: {_range(overall.interval)}"


def mean(overall: Average) -> str:
    """Return a mean over protocols with its interval: ``82 % (95 %: 76–88 %)``."""
    return f"{percent(overall.mean)} ({limits(overall)})"


def marked(verdict: Verdict | None) -> str:
    """Return the verdict with its mark, as in ``✔ PASS``."""
    return f"{MARKS[verdict]} {verdict or 'no verdict'}"


def measured_name(cell: CellResult) -> str:
    """Return the name of the judged measure, or "" for the pass rate."""
    return "" if cell.plan.measured is None else cell.plan.measured.name


def rate(cell: CellResult) -> str:
    """Return the judged quantity as text: the pass rate, or a measure with its name, as
    in ``breakpoint 4.25``. An unknown number is ``–``. An unfinished cell with valid
    and missing trials is ``unfinished``.
    """
    if cell.is_unfinished and cell.valid and cell.missing:
        return UNFINISHED
    if cell.plan.measured is not None:
        name = cell.plan.measured.name
        return f"{name} {NOTHING if cell.judged is None else number(cell.judged.mean)}"
    return NOTHING if cell.rate is None else percent(cell.rate)


def interval(cell: CellResult) -> str:
    """Return the 95 % interval of the judged quantity: ``38–55 %`` or, for a measure,
    ``3.1 to 5.4``. Return ``–`` if there is none, or the cell is unfinished.
    """
    if cell.is_unfinished:
        return NOTHING
    if cell.plan.measured is not None:
        found = None if cell.judged is None else cell.judged.interval
        return NOTHING if found is None else " to ".join(map(number, found))
    return NOTHING if cell.interval is None else _range(cell.interval)


def floor(cell: CellResult) -> str:
    """Return the chance level that the protocol declares (the success rate of guessing
    or of random moves), or ``–`` if there is none, or for a measure.
    """
    return (
        NOTHING
        if cell.plan.chance is None or cell.plan.measured is not None
        else percent(cell.plan.chance)
    )


def ability(cell: CellResult) -> str:
    """Return the model's place on the ability scale, or ``–`` if it has none, or the
    cell is unfinished.
    """
    found = None if cell.is_unfinished else cell.ability
    return on_scale(None if found is None else found.model)


def ability_interval(cell: CellResult) -> str:
    """Return the 95 % interval of the ability, such as ``0.56 to 0.84``, or "" if there
    is none, or the cell is unfinished.
    """
    found = None if cell.is_unfinished else cell.ability and cell.ability.interval
    return " to ".join(map(on_scale, found)) if found else ""


def ability_of_rodent(cell: CellResult) -> str:
    return on_scale(None if cell.ability is None else cell.ability.rodent)


def ability_of_bar(cell: CellResult) -> str:
    """Return the ability above which enough subjects give a PASS, or ``–`` if there is
    no ability scale.
    """
    return on_scale(None if cell.ability is None else cell.ability.bar)


def has_ability(cells: Iterable[CellResult]) -> bool:
    """Return whether any of these cells has an ability."""
    return any(cell.ability is not None for cell in cells)


def mean_ability(model: ModelSummary, own: Sequence[CellResult]) -> str:
    """Return a sentence on a model's mean ability, with the animals' mean, the mean
    from which PASS begins, and the protocols that are left out or count once. A second
    sentence may count the PASSes (``_passes_by_origin``).

    Return "" if there is no mean. ``own`` are the model's cells.
    """
    found = model.ability
    if found is None:
        return ""
    declared = declared_in(c for c in own if c.plan.label in found.protocols)
    sides = [("rodent", found.rodent, declared), ("PASS from", found.bar, "")]
    beside = "; ".join(
        f"{name} {on_scale(value)}{more}"
        for name, value, more in sides
        if value is not None
    )
    text = f"Mean ability {on_scale(found.mean)}{f' ({beside})' if beside else ''}"
    text += f" over {plural(len(found.protocols), 'protocol')}"
    if found.missing:
        text += f"; not in it: {', '.join(found.missing)}"
    same = [f"{' and '.join(names)} count once" for names in found.together]
    text += f"; {', '.join(same)} (same animals)" if same else ""
    return f"{text}.{_passes_by_origin(own)}"


def declared_in(cells: Iterable[CellResult]) -> str:
    """Return how many of the rodents' numbers in a mean are declared, as in ``, 3
    declared``, or "" if none is.
    """
    declared = sum(origin(cell) == DECLARED for cell in cells)
    return f", {declared} declared" if declared else ""


def _passes_by_origin(own: Sequence[CellResult]) -> str:
    """Return a sentence with two counts of PASSes: against animals without an
    ``origin``, and against other numbers. Return "" if all numbers are of one sort.
    """
    sorts: dict[bool, list[CellResult]] = {True: [], False: []}
    for cell in own:
        if cell.plan.reference is not None:
            sorts[not origin(cell)].append(cell)
    if not all(sorts.values()):
        return ""
    measured, others = (
        f"{sum(cell.verdict == Verdict.PASS for cell in cells)} of {len(cells)}"
        for cells in sorts.values()
    )
    return (
        f" PASS: {measured} against animals of which the same or nearly the same event was counted, {others} against "
        "other numbers (declared, invented, or an analogy)."
    )


def ability_footnotes(cells: Sequence[CellResult]) -> list[str]:
    """Return the notes below a table: how to read abilities, which protocols have none
    (both only if some cell has an ability), and the pass rates of random moves, where
    they are known.
    """
    notes = [HOW_TO_READ_ABILITY] if has_ability(cells) else []
    bare = [cell.plan.label for cell in cells if not (cell.ability or cell.plan.items)]
    if bare and notes:
        unproved = ", ".join(dict.fromkeys(bare))
        notes.append(f"–: no zero of this scale is proved ({unproved}).")
    if moving := dict.fromkeys(filter(None, map(_moving_at_random, cells))):
        notes.append(
            f"Pass rates of random moves, which need not be 0: {', '.join(moving)}."
        )
    return notes


def worst_case(cells: Iterable[CellResult]) -> str:
    """Return the note on the bounds of decided cells with missing trials, or ""."""
    return max((cell.worst_case for cell in cells), default="")


def _moving_at_random(cell: CellResult) -> str:
    plan = cell.plan
    if plan.chance is None or plan.measured or plan.against != "reference":
        return ""
    return f"{plan.label} {percent(plan.chance)}"


#: Labels that tables use for outcomes whose recorded names would mislead. "wrong
#: choice", for example, includes trials without a choice.
ENDINGS = {
    "wrong choice": "wrong or no choice",
    "infrastructure": "technical fault",
}


def dose(cell: CellResult) -> str:
    """Return the training of animals and subjects in a few words, or "" if nothing is
    known about it.
    """
    animals = cell.plan.reference
    return "" if animals is None else animals.training


#: How to read ``dose``.
HOW_TO_READ_DOSE = "Training: trials before the judged ones + judged trials."


def training(cells: Iterable[CellResult]) -> str:
    """Return a sentence on the training of animals and subjects, or "" if nothing is
    known about it.
    """
    said = [
        f"{cell.plan.label} {said.removeprefix('training: ')}"
        for cell in cells
        if (said := dose(cell))
    ]
    return (
        f"Training (trials before the judged ones + judged trials): {'; '.join(said)}."
        * bool(said)
    )


def by_answer(cells: Iterable[CellResult]) -> list[tuple[str, ...]]:
    """Return a table with a row for each value of each answer that subjects keep for
    life. The gap and p are only in an answer's first row.
    """
    rows: list[tuple[str, ...]] = []
    for cell in cells:
        for one in cell.answers:
            p = NOTHING if one.p_value is None else number(one.p_value)
            rows += [
                (
                    cell.plan.label,
                    one.answer,
                    shown_value(level.value),
                    wording.score(cell.plan, level.rate),
                    str(level.subjects),
                    *((_gap(cell.plan, one.gap), p) if not at else ("", "")),
                )
                for at, level in enumerate(one.rates)
            ]
    return rows


def _gap(plan: CellPlan, gap: float) -> str:
    """Return a gap in points or, for a measure, in its unit."""
    if plan.measured is None:
        return per_hundred(gap)
    low, high = plan.measured.range
    return number(gap * (high - low))


#: Headings of the table of ``by_answer``.
BY_ANSWER = ("protocol", "answer", "value", "rate", "subjects", "gap", "p")
#: Note on the table of ``by_answer``.
HOW_TO_READ_BY_ANSWER = (
    "Subjects grouped by the right answer that each was given for life. The gap is between the largest and the "
    "smallest rate, in points (for a measure: between the means, in its unit); p is the share of relabelings of the "
    "subjects with a gap at least as large. If the gap is 25 points (a quarter of the measure's range) or more and p is "
    "at most 0.01, the result does not hold for each answer."
)


def reference(cell: CellResult) -> str:
    """Return the animals' rate or measure, with its interval or the word *declared*.
    The number of animals follows if it is known and no interval was published. A note
    says if the number is invented or an analogy. Return ``–`` without animals.
    """
    animals = cell.plan.reference
    if animals is None:
        return NOTHING
    details: list[str] = (
        [animals.kind] if animals.kind in ("analogy", "invented") else []
    )
    if limits := animals_interval(animals):
        details.append(
            _range(limits)
            if animals.measured is None
            else " to ".join(map(number, limits))
        )
    else:
        details.append("declared")
    if animals.n_animals and animals.interval is None:
        details.append(f"n = {animals.n_animals}")
    return f"{amount(cell.plan, animals.value)} ({', '.join(details)})"


def have_animals(cells: Iterable[CellResult]) -> bool:
    """Return whether animals have a value of any measure of the cells."""
    return any(cell.plan.animals for cell in cells)


def animals_of(cell: CellResult, row: str) -> str:
    """Return the animals' value of a measure, as its row in the table of measures is
    named. Return ``–`` without animals.
    """
    found = [one for one in cell.plan.animals if _row_of(cell, one) == row]
    return "; ".join(map(animals_value, found)) or NOTHING


def reported(cell: CellResult) -> list[str]:
    """Return a sentence for each measure with an animals' value that no verdict is
    about, with the model's mean.
    """
    measures = {one.name: one for one in cell.measures}
    rows = dict.fromkeys(_row_of(cell, one) for one in cell.plan.animals)
    return [
        f"{row} {mean_over_subjects(measures[row])}; rodent {animals_of(cell, row)}"
        for row in rows
        if row in measures and row != measured_name(cell)
    ]


def mean_over_subjects(measure: Measure) -> str:
    """Return the mean of a measure with the standard deviation, if there is one."""
    return _with_spread(measure.mean, measure.sd)


def _with_spread(mean: float, sd: float | None) -> str:
    return f"{number(mean)}{'' if sd is None else f' ± {number(sd)}'}"


def _row_of(cell: CellResult, one: Reported) -> str:
    """Return the name of the measure with which animals are compared: where their
    sessions are of a block that is not judged, it is the measure in this block.
    """
    plan = cell.plan
    places = map(plan.place_of, range(plan.trials))
    blocks = {block for block, session, _ in places if session in one.sessions}
    elsewhere = [f"{one.measure} in {block}" for block in blocks]
    known = [own.name for own in cell.measures if own.name in elsewhere]
    return known[0] if len(blocks) == len(known) == 1 else one.measure


def animals_value(one: Reported) -> str:
    """Return an animals' value with its spread, the number of animals and, if these
    are not the judged ones, the trials that it covers.
    """
    animals = one.animals
    details = (
        animals.kind.replace("measured", ""),
        f"n = {animals.n_animals}" * bool(animals.n_animals),
        in_words(one.sessions) if one.sessions else "",
        one.where and f"where {one.where}",
    )
    said = ", ".join(filter(None, details))
    shown = _with_spread(animals.value, animals.sd)
    return f"{shown} ({said})" if said else shown


def rodent_rate(cell: CellResult) -> ReferenceValue | None:
    """Return the cell's reference if it is a pass rate, otherwise None."""
    return None if cell.plan.measured is not None else cell.plan.reference


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of a cell: of its pass rate, or of the measure that its verdict is
    about.
    """

    cell: CellResult
    name: str
    """``pass rate``, or the measure's name."""
    points: Sequence[CurvePoint]
    unit: str
    """See ``CellResult.curve_unit``."""
    animals: ReferenceValue | None
    """The animals' number of the same kind, or None if there is none."""
    is_measure: bool = False

    @property
    def along(self) -> str:
        """The unit in words: ``session`` or ``groups of 4 trials``."""
        return self.unit if self.unit == "session" else f"groups of {self.unit}"

    def shown(self, value: float) -> str:
        return number(value) if self.is_measure else percent(value)

    def drawn(self, value: float | None) -> float | None:
        """Return a value on the axis of a chart: in percent, or in the measure's
        unit.
        """
        if value is None:
            return None
        return round(value if self.is_measure else 100 * value, 6)

    def animals_by_point(self) -> list[str]:
        """Return the animals' mean at each point, with the standard deviation between
        animals if it is known. Where the mean is unknown, and at all points of a curve
        that is not by session, the text is "".
        """
        animals = self.animals
        if animals is None or self.unit != "session":
            return [""] * len(self.points)
        spread = [f" ± {self.shown(sd)} (SD)" for sd in animals.curve_sd]
        spread = spread or [""] * len(animals.curve)
        said = [
            f"{self.shown(mean)}{sd}"
            for mean, sd in zip(animals.curve, spread, strict=True)
        ]
        return [
            said[point.session - 1] if 0 < point.session <= len(said) else ""
            for point in self.points
        ]


def curves(cell: CellResult) -> list[Curve]:
    """Return the curves of a cell that have a point. The measure that the verdict is
    about comes first.
    """
    found = [Curve(cell, "pass rate", cell.curve, cell.curve_unit, rodent_rate(cell))]
    if (judged := cell.judged) is not None:
        own = (judged.measure, judged.curve, judged.curve_unit, cell.plan.reference)
        found.insert(0, Curve(cell, *own, is_measure=True))
    return [one for one in found if one.points]


def difference(cell: CellResult) -> str:
    """Return model - reference in percentage points (or the measure's unit), with its
    bounds, or ``–`` if it is unknown or the cell is unfinished.
    """
    if (
        cell.is_unfinished
        or cell.difference is None
        or cell.difference_low is None
        or cell.difference_high is None
    ):
        return NOTHING
    shown, low, high = (
        gap(cell.plan, one)
        for one in (cell.difference, cell.difference_low, cell.difference_high)
    )
    return f"{shown} ({low} to {high})"


def standard(cell: CellResult) -> str:
    """Return the number that the verdict compares with, the animals' or chance, or
    ``–`` if there is none.
    """
    if cell.plan.against == "chance":
        return floor(cell)
    return (
        NOTHING
        if cell.plan.reference is None
        else amount(cell.plan, cell.plan.reference.value)
    )


def standard_name(cells: Sequence[CellResult]) -> str:
    """Return the heading of a column of ``standard``: *rodent* or *chance*, or
    *standard* for both in one column.
    """
    by_chance = {cell.plan.against == "chance" for cell in cells}
    return (
        "rodent"
        if by_chance == {False}
        else "chance"
        if by_chance == {True}
        else "standard"
    )


def question(cells: Iterable[CellResult]) -> str:
    """Return the question that the verdicts of these cells answer: ``better than
    chance`` if all are against chance, otherwise ``as good as the rodent``.
    """
    cells = list(cells)
    if cells and all(cell.plan.against == "chance" for cell in cells):
        return "better than chance"
    return "as good as the rodent"


def proportion(plan: CellPlan, difference: float) -> float:
    """Return a difference as a proportion (for a measure, of its range). Its sign is
    the printed one, so a negative number is better where less is better.
    """
    if plan.measured is None:
        return difference
    low, high = plan.measured.range
    return difference / ((high - low) or 1.0)


def forest_labels(
    cells: Sequence[CellResult], axis: tuple[float, float]
) -> tuple[str, str, str]:
    """Return the heading of a forest plot, and the numbers at the ends of its axis: in
    a measure's unit if all cells are about this measure, otherwise in points.
    """
    measured = {cell.plan.measured for cell in cells}
    one = next(iter(measured))
    if len(measured) == 1 and one is not None:
        low, high = one.range
        ends = [gap(cells[0].plan, (high - low) * end) for end in axis]
        return f"difference, {clean(one.name)}", ends[0], ends[1]
    heading = "difference, points"
    if measured != {None}:
        heading += " (measures: % of range)"
    return heading, points(axis[0]), points(axis[1])


def less_is_better(plan: CellPlan) -> bool:
    return plan.measured is not None and plan.measured.better == "lower"


def difference_name(cells: Iterable[CellResult]) -> str:
    """Return the heading of a column of differences. It names the reference if all
    cells have the same kind of reference, and no verdict is about a measure.
    """
    cells = list(cells)
    if any(cell.plan.measured is not None for cell in cells):
        return "difference"
    names = {"reference": "rate − rodent", "chance": "rate − random"}
    compared = {cell.plan.against for cell in cells}
    return names[compared.pop()] if len(compared) == 1 else "difference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The entries of a cell in a table of verdicts."""

    rate: str
    interval: str
    reference: str
    standard: str
    difference: str
    margin: str


def numbers(cells: Sequence[CellResult]) -> list[Numbers]:
    """Return the rows of a table of verdicts. In a column, all percentages have the
    same number of decimals, and so have all numbers of one measure.
    """
    names = list(map(measured_name, cells))
    columns = {
        one.__name__: level(map(one, cells), names)
        for one in (rate, interval, reference, standard, difference, margin)
    }
    return [
        Numbers(**dict(zip(columns, line, strict=True)))
        for line in zip(*columns.values(), strict=True)
    ]


def in_progress(summary: RunSummary) -> str:
    """Return a remark on a run that is still in progress, or "" for any other run."""
    done = summary.manifest.get("in_progress")
    return (
        f"In progress: {done} finished; only finished cells are reported."
        if isinstance(done, str)
        else ""
    )


def how_to_read(cells: Iterable[CellResult]) -> list[str]:
    cells = list(cells)
    compared = {cell.plan.against for cell in cells}
    measured = (
        [HOW_TO_READ_MEASURE]
        if any(cell.plan.measured is not None for cell in cells)
        else []
    )
    invented = dict.fromkeys(one.plan.label for one in cells if is_invented(one))
    if invented:
        measured += [
            f"The rodents of {', '.join(invented)} are invented: {MEANINGS[INVENTED]}."
        ]
    measured += undecidable(cells)
    if compared == {"chance"}:
        return list(HOW_TO_READ_CHANCE)
    if "chance" not in compared:
        return [*HOW_TO_READ, *measured]
    return [
        *HOW_TO_READ,
        *measured,
        *(f"Without an animal: {line}" for line in HOW_TO_READ_CHANCE),
    ]


#: Beginnings of the sentences of ``undecidable``, by what is better.
_ENDS = {
    "higher": "PASS from the upper value, FAIL below the lower; in between",
    "lower": "Less is better: PASS up to the lower value, FAIL above the upper; in between",
    "alike": "PASS between the two ranges, FAIL beyond both; within them",
}


def undecidable(cells: Iterable[CellResult]) -> list[str]:
    """Return notes on the ranges of rates (or of a measure) in which no number of
    subjects decides, because the animals are a sample.
    """
    zones: dict[str, dict[str, None]] = {better: {} for better in _ENDS}
    for cell in cells:
        measured = cell.plan.measured
        if zone := wording.undecidable(cell):
            better = "higher" if measured is None else measured.better
            zones[better][f"{cell.plan.label} {zone}"] = None
    return [
        f"{_ENDS[better]} no number of subjects decides, because the animals are a sample: {', '.join(found)}."
        for better, found in zones.items()
        if found
    ]


def margin_ends(plan: CellPlan) -> tuple[float, float]:
    """Return the ends of the margin as differences. The first is the end that the
    margin adds: where a PASS begins or, against chance, where a FAIL begins.
    """
    if plan.against == "chance":
        return plan.margin, 0.0
    return wording.bar(plan), plan.margin if wording.is_alike(plan) else 0.0


def margin(cell: CellResult) -> str:
    """Return the difference beyond which a verdict is FAIL. For a pass rate and
    animals, this is minus the margin. Where a measure should be like the animals', it
    is the margin with ±.
    """
    return wording.margin(cell.plan)


#: Word for an animals' number without an interval, and without data on how much animals
#: differ.
DECLARED = "declared"


def origin(cell: CellResult) -> str:
    """Return *declared*, *analogy* or *invented*, or "" for animals of which the same
    or nearly the same event was counted, and for a cell that is not compared with
    animals.
    """
    animals = cell.plan.reference
    if animals is None or cell.plan.against == "chance":
        return ""
    if animals.kind == "invented":
        return animals.kind
    if animals_interval(animals) is None:
        return DECLARED
    return animals.kind if animals.kind == "analogy" else ""


#: Remark on a reference for which no animal was observed.
INVENTED = "rodent invented"


def is_invented(cell: CellResult) -> bool:
    animals = cell.plan.reference
    return animals is not None and animals.kind == "invented"


def remarks(cell: CellResult) -> list[str]:
    """Return the remarks that a reader must know before trusting the number."""
    flags = cell.flags
    notes = [
        (validity(cell), True),
        ("no reference", not (cell.plan.comparable or cell.plan.items)),
        ("contradicted by a lesion", bool(cell.contradicted)),
        (how_it_was_run(cell), bool(cell.remarks)),
        ("better than the rodent", cell.superior and not origin(cell)),
        (INVENTED, is_invented(cell)),
        ("analogy", flags.analogy),
        ("rodent declared", flags.reference_declared),
        ("not diagnostic", flags.not_diagnostic),
        *_of_protocol(cell),
        (
            "trained on this protocol",
            cell.plan.protocol in cell.plan.settings.get("trained_on", ()),
        ),
        ("this subject only", flags.this_subject_only),
        (
            f"{flags.duplicate_subjects} identical",
            cell.valid and flags.duplicate_subjects,
        ),
        ("memory contradicted", flags.memory_contradicted),
        # If many trials are missing, a warning already says so.
        (
            f"{cell.missing} missing",
            cell.missing
            and not any("of trials missing" in text for text in cell.warnings),
        ),
        (_with_a_value(cell), True),
        (stopped(cell), True),
        ("stopped by its result", flags.stopped_by_result),
        ("mostly cut off", _mostly_cut_off(cell)),
        ("no claim", not cell.plan.claims),
    ]
    return [
        *(text.removesuffix(".") for text in cell.warnings),
        *(text for text, holds in notes if text and holds),
    ]


def _of_protocol(cell: CellResult) -> list[tuple[str, bool]]:
    """Return the remarks on the protocol itself, each with whether it holds. A reason
    that its author gives replaces *goal visible* (W311).
    """
    given = dict(cell.plan.acknowledged)
    return [
        ("goal visible", cell.flags.goal_visible and "W311" not in given),
        *((f"{code} acknowledged: {why}", True) for code, why in given.items()),
    ]


def _with_a_value(cell: CellResult) -> str:
    """Return how many subjects the mean of a measure is about, such as ``14 of 40
    subjects have a value``, or "" if it is about all of them.
    """
    judged = cell.judged
    if judged is None or not judged.without:
        return ""
    verb = "has" if judged.subjects == 1 else "have"
    everybody = plural(judged.subjects + judged.without, "subject")
    return f"{judged.subjects} of {everybody} {verb} a value"


def how_it_was_run(cell: CellResult) -> str:
    """Return remarks on how the cell was run. They have no final full stop, because
    they are parts of a list.
    """
    return " ".join(cell.remarks).removesuffix(".")


def stopped(cell: CellResult) -> str:
    """Return the evidence, as in ``evidence 31 to 1, decided after 6 of at most 120
    subjects``, or "" if there is no claim, no valid trial, or the verdict is ERROR.
    """
    game = cell.game
    if game is None or not cell.valid or cell.verdict == "ERROR":
        return ""
    number = game.decided or cell.subjects
    after = (
        f"{number} of at most {plural(game.most, 'subject')}"
        if game.sequential
        else plural(number, "subject")
    )
    when = f"{'decided' if game.decided else 'undecided'} after {after}"
    return f"evidence {odds(max(game.passing, game.failing))}, {'stale, ' * game.stale}{when}"


def settled(cell: CellResult) -> str:
    """Return what ``stopped`` says about a decided cell, or "" for any other cell.
    Reports do not show it among the remarks.
    """
    return stopped(cell) if cell.verdict in ("PASS", "FAIL") else ""


def validity(cell: CellResult) -> str:
    """Return a note on how the cell's construct was validated with lesions, or on a
    PASS that depends on the right answer. Return "" for dialogues.
    """
    if cell.plan.items:
        return ""
    if cell.verdict == "PASS" and any(one.is_uneven for one in cell.answers):
        return UNEVEN
    construct = cell.plan.construct
    if construct is None or construct.doubt:
        return NOT_VALIDATED
    if construct.status != "validated":
        return VALIDITY[construct.status]
    return _validated(bool(construct.also_failed), construct.is_memory_searched)


def _validated(has_failed: bool, is_memory_searched: bool) -> str:
    if has_failed:
        return AUDIT_FAILED
    return VALIDITY["validated"] if is_memory_searched else UNSEARCHED


def validity_in_full(cell: CellResult) -> str:
    """Return the note of ``validity`` together with the lesions: ``validated: memory,
    which must be abolished by lesions: blind (may leave at most 25 %)``.

    Further parts may follow: the lesion that leaves the highest rate among the lesions
    that the construct does not name, and reasons why lesions or this PASS do not show
    the construct.
    """
    construct = cell.plan.construct
    if construct is None:
        return validity(cell)
    lesions = ", ".join(
        f"{lesion} (may leave at most {percent(most)})"
        for lesion, most in construct.abolished_by
    )
    if construct.leaves is not None:
        lesion, rate = construct.leaves
        left = f"{'at most ' if construct.leaves_at_most else ''}{percent(rate)}"
        lesions += f"; among the lesions that the construct does not name, {lesion} leaves {left}"
    failed = ", ".join(construct.also_failed)
    reasons = [
        construct.doubt.removesuffix("."),
        f"The audit failed: {failed}" if failed else "",
        passed_by(cell).removesuffix("."),
    ]
    reason = "".join(f". {one}" for one in reasons if one)
    return f"{validity(cell)}: {construct.name}, which must be abolished by lesions: {lesions}{reason}"


def passed_by(cell: CellResult) -> str:
    """Return a sentence on what a PASS does not exclude according to the audit: a
    lesioned subject, or the simplest subject that passes. Return "" if there is none,
    and for other verdicts.
    """
    construct, reference = cell.plan.construct, cell.plan.reference
    if construct is None or reference is None or cell.verdict != Verdict.PASS:
        return ""
    measured = cell.plan.measured
    shown = percent if measured is None else number
    of_measure = "" if measured is None else f"a mean {measured.name} of "
    if construct.failed is not None:
        lesion, rate = construct.failed
        return (
            f"This PASS does not show {construct.name}: in the audit, a subject with the lesion {lesion} reaches "
            f"{of_measure}{shown(rate)}."
        )
    if construct.passed_by is None:
        return ""
    remembers, rate = construct.passed_by
    needed, _ = thresholds(reference, cell.plan.margin)
    return (
        f"A PASS does not exclude a subject with {remembers}: the best one found "
        f"reaches {of_measure}{shown(rate)}, and PASS begins at {shown(needed)}."
    )


def validities(cells: Iterable[CellResult]) -> list[tuple[str, str]]:
    """Return the label of each cell that has a construct, with the full text on the
    construct.
    """
    said = [
        (cell, " ".join((f"{validity_in_full(cell)}.", *cell.contradicted)))
        for cell in cells
    ]
    return [
        (cell.plan.label, text)
        for cell, text in said
        if cell.plan.construct is not None
    ]


def _mostly_cut_off(cell: CellResult) -> bool:
    counts = cell.agent_counts
    return 2 * counts.get("truncated", 0) > counts.get("calls", 0)


NOT_VALIDATED = "not validated"
#: Replaces *validated* if other rules of the audit failed.
AUDIT_FAILED = "lesions validated, audit failed"
#: Replaces *validated* if no audit has the part ``memory``.
UNSEARCHED = "validated, memory not searched"
#: Wording of a construct's status.
VALIDITY = SAID
#: Meaning of each remark. It is printed once, below a table that has the remark.
MEANINGS = {
    VALIDITY[
        "validated"
    ]: "the audit proved that each lesion that the protocol names abolishes the score, whatever the subject does; that "
    "animals use the same ability, or that a drug or a lesion of their brain would abolish it, is not claimed",
    AUDIT_FAILED: "the audit proved that each lesion that the protocol names abolishes the score, but the protocol fails "
    "other rules of the audit ('cheesebench audit' prints them)",
    UNSEARCHED: "the audit proved that each lesion that the protocol names abolishes the score, but did not look for subjects "
    "with little memory that pass ('cheesebench audit --part memory')",
    VALIDITY[
        "searched"
    ]: "the audit found no lesioned subject that does better than the protocol allows, and has not proved that there is none",
    NOT_VALIDATED: "the protocol names no lesions that can show what it measures, so a score may be possible without it",
    VALIDITY[
        "declared"
    ]: "the protocol names lesions that must abolish what it measures, but no audit of them is available",
    VALIDITY[
        "failed"
    ]: "in the audit, a subject that lacks the ability did better than the protocol allows, or a subject that has it failed",
    UNEVEN: "the subjects' success depends on which answer was right for them, as with a rule that prefers one",
    "contradicted by a lesion": "the model succeeds without what the protocol measures",
    INVENTED: "no animal was observed, the rodents' number only serves to try out the protocol, and a verdict says nothing "
    "about animals",
    "analogy": "the rodents' number is about a different event from the success or measure that is compared with it",
    "rodent declared": "the protocol gives neither an interval of the rodents' number nor how much animals differ, so its "
    "error is not known",
    "not diagnostic": "random moves come within the margin of the rodent, so a PASS says little",
    "goal visible": "the goal can be read from the observation",
    "trained on this protocol": "the model's entry says so, and then a score as good as the rodent's is no sign of the ability "
    "in general",
    "this subject only": "there is only one distinct subject, so the numbers are about that subject, not the model",
    "memory contradicted": "the agent declares no memory, yet its subjects differ by more than chance; subjects are the unit "
    "of analysis",
    "mostly cut off": "most replies ended at the token limit; raise it with --reply-tokens",
    "stopped by its result": "the cell stopped because of its results, which biases the rate (on average it is too high after "
    "a PASS, too low after a FAIL); the interval is still valid",
    "no claim": "the design never gives a PASS or a FAIL, or the cell is a control",
}


def cells_of(summary: RunSummary, model: ModelSummary) -> list[CellResult]:
    return [cell for cell in summary.cells if _group(cell.plan) == _group(model)]


def with_controls(summary: RunSummary, cells: Sequence[CellResult]) -> list[CellResult]:
    """Return the cells and the cells of their controls, because calls of controls are
    paid for, too.
    """
    keys = {cell.plan.key for cell in cells}
    return [
        *cells,
        *(
            one
            for one in summary.cells
            if one.plan.control and one.plan.plain_key in keys
        ),
    ]


def _group(what: CellPlan | ModelSummary) -> tuple[str, str, str]:
    return (
        what.model,
        what.view,
        what.series if isinstance(what, CellPlan) else what.variant,
    )


def whose(what: CellPlan | ModelSummary) -> tuple[str, str]:
    """Return the model's name, and its view and variant (not yet escaped)."""
    return (what.model, ", ".join(filter(None, (what.view, str(what.variant)))))


def counts(cells: Iterable[CellResult]) -> str:
    """Return counts of the verdicts that occur, as in ``2 PASS · 6 FAIL · 1
    INCONCLUSIVE``.
    """
    verdicts = [cell.verdict for cell in cells]
    return " · ".join(
        f"{verdicts.count(v)} {v.value}" for v in Verdict if v in verdicts
    )


def rodent_mean(cells: Iterable[CellResult]) -> float | None:
    """Return the animals' mean over the cells that enter the model's mean, or None if
    there are no such cells, or one of them has no animals' rate.
    """
    references = [cell.plan.reference for cell in averaged(cells)]
    return complete_mean(
        [None if reference is None else reference.value for reference in references]
    )


def averaged(cells: Iterable[CellResult]) -> list[CellResult]:
    """Return the cells that enter a model's mean pass rate."""
    return [
        cell for cell in cells if cell.plan.measured is None and cell.rate is not None
    ]


def averaged_over(cells: Sequence[CellResult]) -> str:
    """Return how many protocols (or cells of dialogues) are in the mean, as in ``over 2
    of 4 protocols``, or "" if all of them are.
    """
    count = len(averaged(cells))
    of_dialogues = any(cell.plan.variant.condition for cell in cells)
    noun = "cell" if of_dialogues else "protocol"
    return "" if count == len(cells) else f"over {count} of {plural(len(cells), noun)}"


def complete_mean(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None if there are no values, or one is missing. Means are
    only compared over the same protocols.
    """
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


#: Headings for the result of ``call_numbers``.
CALL_HEADERS = (
    "calls",
    "attempts",
    "prompt tokens",
    "cached",
    "reply tokens",
    "reasoning",
    "cost",
    "s a call",
)


def call_numbers(totals: CallTotals) -> tuple[str, ...]:
    """Return statistics of calls in the order of CALL_HEADERS. The cost covers only
    calls with a known price.
    """
    cached = percent(totals.cached / totals.prompt) if totals.prompt else NOTHING
    if totals.written:
        cached += f" ({percent(totals.written / totals.prompt)} written)"
    cost = dollars(totals.cost) if totals.cost else NOTHING
    each = number(totals.seconds / totals.calls) if totals.calls else NOTHING
    counts = (totals.calls, totals.attempts, totals.prompt)
    return (
        *(f"{n:,}" for n in counts),
        cached,
        f"{totals.completion:,}",
        f"{totals.reasoning:,}",
        cost,
        each,
    )


def call_totals(cells: Iterable[CellResult]) -> CallTotals:
    return sum(
        (cell.calls.totals for cell in cells if cell.calls is not None), CallTotals()
    )


def connected(cells: Iterable[CellResult]) -> str:
    """Return a sentence on the number of answered calls if the cells only check that
    everything works. Return "" if there is no call, or a cell has a claim or is a
    control.
    """
    cells = list(cells)
    calls, unparsed = _asked(cells)
    answered = sum(cell.calls.answered for cell in cells if cell.calls is not None)
    if not calls or any(cell.plan.claims or cell.plan.control for cell in cells):
        return ""
    notes = sum(cell.agent_counts.get("notes", 0) for cell in cells)
    if unparsed < calls:
        # A replay makes no calls, so the replies that it has read are counted.
        read = max(answered - notes, calls)
        return f"Connected: {plural(read, 'call')} answered, {unparsed} unparsed."
    left = answered - calls - notes
    more = f" Not counted: {left} in trials that did not finish." * (left > 0)
    return f"NO REPLY NAMED AN ACTION: {plural(calls, 'call')} answered, and no reply was readable.{more}"


def _asked(cells: Iterable[CellResult]) -> tuple[int, int]:
    """Return how many replies were meant to name actions, and how many of them named
    none.
    """
    counts = [cell.agent_counts for cell in cells]
    unparsed = sum(one.get("unparsed", 0) for one in counts)
    return sum(map(wording.to_act, counts)), unparsed


def behaviour(run_id: str, cells: Iterable[CellResult]) -> str:
    """Return a model's behaviour in figures, or "" without calls.

    The figures are the share of each action, and the numbers of replies that were read,
    ran on, were cut off, or had a plan that ended at an unknown item. An example of an
    unread reply follows if there is one, with the command that lists such replies.
    """
    cells = [cell for cell in cells if cell.calls is not None]
    asked, unparsed = _asked(cells)
    if not asked:
        return ""
    sums = Counter[str]()
    for cell in cells:
        sums.update(cell.agent_counts)
    chosen = sum(sums[action] for action in ACTIONS)
    actions = [f"{one} {percent(sums[one] / chosen)}" for one in ACTIONS if chosen]
    replies = [
        f"{asked - unparsed} of {asked} replies read ({percent(1 - unparsed / asked)})",
        *(
            f"{sums[name]} {said}"
            for name, said in (
                ("ran_on", "ran on past the end of the turn"),
                ("truncated", "cut off"),
                (
                    "unknown_items",
                    "with a plan that ended at an item that is not an action",
                ),
            )
            if sums[name]
        ),
    ]
    figures = [", ".join(actions), ", ".join(replies)]
    example = next(filter(None, map(partial(_example, run_id), cells)), "")
    return f"What it did: {'; '.join(filter(None, figures))}.{example}"


def _example(run_id: str, cell: CellResult) -> str:
    if cell.calls is None or not cell.calls.unread:
        return ""
    command = f"cheesebench show {run_id} --protocol {cell.plan.protocol} --unparsed"
    return (
        f" Not read, for example: {cell.plan.label}, {cell.calls.unread} ({command})."
    )


@dataclass(frozen=True, slots=True)
class CallsTable:
    """The calls of a model's cells as a table. Its columns are the protocol,
    CALL_HEADERS, and the agent's counters other than calls and actions.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    served_by: tuple[str, ...]
    """Model names that the server reported in its replies."""


def calls_table(cells: Iterable[CellResult]) -> CallsTable | None:
    """Return the table of the cells with calls, and their sum if there are several, or
    None if no cell has calls.
    """
    made = [(cell, cell.calls) for cell in cells if cell.calls is not None]
    if not made:
        return None
    counted = list(
        {
            name: None
            for cell, _ in made
            for name in cell.agent_counts
            if name not in ("calls", *ACTIONS)
        }
    )

    def numbers(totals: CallTotals, *several: CellResult) -> tuple[str, ...]:
        sums = (
            str(sum(cell.agent_counts.get(name, 0) for cell in several))
            for name in counted
        )
        return (*call_numbers(totals), *sums)

    rows = [
        (_with_control(cell.plan), *numbers(calls.totals, cell)) for cell, calls in made
    ]
    if len(rows) > 1:
        together = [cell for cell, _ in made]
        rows.append(("together", *numbers(call_totals(together), *together)))
    served = {name: None for _, calls in made for name in calls.served_by}
    headers = ("protocol", *CALL_HEADERS, *(name.replace("_", " ") for name in counted))
    return CallsTable(headers, tuple(rows), tuple(served))


def _with_control(plan: CellPlan) -> str:
    return f"{plan.label}, {plan.control}" if plan.control else plan.label


def mapping(value: object) -> Mapping[str, object]:
    return (
        {str(key): item for key, item in value.items()}
        if isinstance(value, Mapping)
        else {}
    )


def _range(limits: tuple[float, float]) -> str:
    low, high = map(per_hundred, limits)
    return f"{low}–{high} %"


#: Note on the table that compares a run with a published model.
HOW_TO_READ_CONTRASTS = (
    "Rules, settings and number of trials are the same (in a longer run, only the first trials count). No verdict depends "
    "on this table. The wording of the prompt is CheeseBench's own, and so are the views other than ascii_2d. The 95 % interval "
    "treats all trials as independent. Trials of one subject are not independent, so the interval is too narrow. "
    "An interval that contains 0 decides nothing."
)
CONTRAST_HEADERS = ("protocol", "view", "this run", "published", "difference in points")


def contrast_rows(contrasts: Sequence[PublishedContrast]) -> list[tuple[str, ...]]:
    """Return the rows of the table that compares a run with a published model."""
    return [
        (
            one.protocol,
            one.view,
            f"{percent(one.rate)} of {one.trials}",
            f"{percent(one.published)} of {one.published_trials}",
            f"{points(one.rate - one.published)} ({points(one.low)} to {points(one.high)})",
        )
        for one in contrasts
    ]


#: Note on a leaderboard.
HOW_TO_READ_LEADERBOARD = (
    "All intervals hold together at 95 %. A rank of 2–3 means that one model is better, and at most two may be. "
    "The score is the mean over protocols of the share of passed trials, or of a measure's place on its range "
    "(0: worse end, 1: better end). The table of paradigms is in the order of the mean ability, which may be another: a "
    "rate that needs no ability counts there as 0."
)
LEADERBOARD_HEADERS = ("rank", "model", "mean score", "points from the first", "95 %")


def leaderboard_title(board: Leaderboard) -> str:
    where = ", ".join(filter(None, (board.view, board.variant)))
    doubted = (
        f" (not validated: {', '.join(board.not_validated)})"
        if board.not_validated
        else ""
    )
    return f"Leaderboard in {where}: {plural(board.protocols, 'protocol')}{doubted}, {plural(board.subjects, 'subject')} each"


def leaderboard_rows(board: Leaderboard) -> list[tuple[str, ...]]:
    """Return a row for each model, the best first: the ranks that the intervals allow,
    the name, the mean score, and the difference from the best model with its interval
    (``–`` for the best model itself).
    """
    best, rows = board.models[0].model, list[tuple[str, ...]]()
    for one in board.models:
        pair = next(
            (d for d in board.differences if {d.first, d.second} == {best, one.model}),
            None,
        )
        sign = 1 if pair is not None and pair.first == one.model else -1
        ends = None if pair is None else sorted(sign * end for end in pair.interval)
        rank = (
            str(one.best_rank)
            if one.best_rank == one.worst_rank
            else f"{one.best_rank}–{one.worst_rank}"
        )
        gap, between = (
            (NOTHING, NOTHING)
            if pair is None
            else (points(sign * pair.difference), _between(ends))
        )
        rows.append((rank, one.model, percent(one.rate), gap, between))
    return rows


def leaderboard_lists(board: Leaderboard) -> str:
    """Return sentences on the verdicts that also hold as lists."""
    said = (
        f"{name}: {', '.join(own) or 'none'}"
        for name, own in (("PASS", board.passed), ("FAIL", board.failed))
    )
    return f"These verdicts also hold as lists, each with at most 5 % wrong on average (e-BH). {'. '.join(said)}."


#: Heading of the column of published results, in the table of a study that uses the
#: rules of the CheeseBench paper.
PUBLISHED = "published (Qwen2.5-VL-7B, 15 trials)"
#: Heading of the column of published results, in a study that varies the model.
PUBLISHED_MODEL = "published (15 trials)"
HOW = "Mean pass rate over the protocols with its 95 % interval, and the pass rate on each protocol."


def study_name(summary: RunSummary) -> str:
    return str(mapping(summary.manifest.get("options")).get("study") or "")


def settings_table(summary: RunSummary) -> tuple[Sequence[str], list[list[str]]]:
    """Return headers and rows of a table with one row for each model, view and variant
    (not yet escaped).
    """
    protocols = list(dict.fromkeys(cell.plan.protocol for cell in summary.cells))
    published = published_ablation(
        study_name(summary), (cell.plan for cell in summary.cells)
    )
    rows = []
    for model in summary.models:
        rates = {cell.plan.protocol: rate(cell) for cell in cells_of(summary, model)}
        overall = NOTHING
        if model.overall is not None:
            overall = mean(model.overall)
        theirs = published.get(model.variant.partition("=")[2] or model.model)
        beside = (
            [] if not published else [NOTHING if theirs is None else percent(theirs)]
        )
        rows.append(
            [
                *whose(model),
                overall,
                *beside,
                *(rates.get(name, NOTHING) for name in protocols),
            ]
        )
    of_models = any(model.model in published for model in summary.models)
    header = PUBLISHED_MODEL if of_models else PUBLISHED
    return (
        "model",
        "setting",
        "mean",
        *([header] if published else []),
        *protocols,
    ), rows


HEADINGS = ("plain", "95 %", "control", "95 %", "plain − control", "95 %", "pairs")
HOW_TO_READ_CONTROLS = (
    "The subjects of a control have the same seeds and draws as the plain cell's subjects, and are paired with them. "
    "Learning that depends on what a control removes must vanish: the control's curve then stays flat where the "
    "plain one rises. A control makes no claim about the rodent and enters no verdict."
)


def title(result: ControlResult) -> str:
    plan = result.control.plan
    return f"{plan.control}: {plan.model} on {plan.protocol} in {plan.view}"


def headers(result: ControlResult) -> tuple[str, ...]:
    """Return the column headings of ``rows``."""
    unit = (
        "session"
        if result.curve_unit == "session"
        else f"groups of {result.curve_unit}"
    )
    return (unit, *HEADINGS)


def rows(result: ControlResult) -> list[tuple[str, ...]]:
    """Return a row for each point of the curves: both rates and the difference, each
    with its interval, and the number of pairs.
    """
    plain, control = map(_judged_curve, (result.plain, result.control))
    shown, changed = _in_unit(result)
    return [
        (
            str(point.session),
            shown(point.plain),
            _interval_of(plain.get(point.session), shown),
            shown(point.control),
            _interval_of(control.get(point.session), shown),
            changed(point.difference),
            _between(point.interval, changed),
            str(point.pairs),
        )
        for point in result.points
    ]


def _judged_curve(cell: CellResult) -> dict[int, CurvePoint]:
    points = () if cell.judged is None else cell.judged.curve
    if cell.plan.measured is None:
        points = cell.curve
    return {point.session: point for point in points}


def _in_unit(
    result: ControlResult,
) -> tuple[Callable[[float], str], Callable[[float], str]]:
    """Return the functions that write a mean and a difference of a control."""
    is_rate = result.plain.plan.measured is None
    return (percent, points) if is_rate else (number, signed)


def control_numbers(result: ControlResult) -> tuple[str, str, str]:
    """Return the judged means of the plain cell and of the control, and their
    difference.
    """
    shown, changed = _in_unit(result)
    means = map(_judged_number, (result.plain, result.control))
    plain, control = (NOTHING if mean is None else shown(mean) for mean in means)
    difference = result.comparison.difference
    return plain, control, NOTHING if difference is None else changed(difference)


def _judged_number(cell: CellResult) -> float | None:
    """Return the mean of the judged measure, or the pass rate if no measure is judged.
    Return None if it is unknown.
    """
    if cell.plan.measured is None:
        return cell.rate
    return None if cell.judged is None else cell.judged.mean


def sentences(result: ControlResult) -> Iterator[str]:
    if (
        result.gain_plain is not None
        and result.gain_control is not None
        and result.gain_difference is not None
    ):
        yield (
            f"From first to last: plain {_gain(result, result.gain_plain)}, control {_gain(result, result.gain_control)}; "
            f"difference {_gain(result, result.gain_difference)}."
        )
    yield result.comparison.reason
    if result.lesion:
        yield result.lesion


def _gain(result: ControlResult, gain: Gain) -> str:
    _, changed = _in_unit(result)
    unit = " points" if result.plain.plan.measured is None else ""
    return f"{changed(gain.mean)}{unit} ({_between(gain.interval, changed)})"


def _interval_of(point: CurvePoint | None, shown: Callable[[float], str]) -> str:
    return NOTHING if point is None else f"{shown(point.low)} to {shown(point.high)}"


def _between(
    interval: Sequence[float] | None, changed: Callable[[float], str] = points
) -> str:
    return (
        NOTHING
        if interval is None
        else f"{changed(interval[0])} to {changed(interval[1])}"
    )
