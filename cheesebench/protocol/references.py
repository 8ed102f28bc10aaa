"""Resolves references: finds the sessions that each value covers, and computes values
from a curve or from individual animals.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, Literal

from cheesebench.amounts import number as amount
from cheesebench.amounts import rounded
from cheesebench.diagnostics import Diagnostics, Position
from cheesebench.protocol import documents as doc
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.csv_files import columns_of, row_of
from cheesebench.protocol.specification import (
    Dose,
    EffectsSpec,
    ReferenceSpec,
    Specification,
)
from cheesebench.redaction import quoted
from cheesebench.source import Node
from cheesebench.statistics.question import thresholds

#: Two numbers that differ by at most this count as equal: one of them may be rounded to
#: two decimals.
ROUNDING = 0.0051


def resolve_references(
    spec: Specification, root: Node, diagnostics: Diagnostics
) -> tuple[ReferenceSpec, ...]:
    """Return the references of a protocol, and report mistakes. A reference without a
    usable value is left out.
    """
    primary = judged_reference(spec.document.reference)
    resolved = [
        _Resolver(
            one, root.find(("reference", number)), spec, diagnostics, root
        ).resolve(primary=number == primary)
        for number, one in enumerate(spec.document.reference)
    ]
    _one_verdict(spec.document.reference, root, diagnostics)
    return tuple(one for one in resolved if one is not None)


def judged_reference(references: Sequence[doc.Reference]) -> int | None:
    """Return the index of the reference that the verdict uses: the first one with
    ``better`` or, if there is none, the first one on ``success``. None: there is
    neither.
    """
    judged = [number for number, one in enumerate(references) if one.better is not None]
    return next(
        iter(
            judged
            or (
                number
                for number, one in enumerate(references)
                if one.measure == "success"
            )
        ),
        None,
    )


def _one_verdict(
    references: Sequence[doc.Reference], root: Node, diagnostics: Diagnostics
) -> None:
    """Report (226) two references that both ask for the verdict."""
    first = judged_reference(references)
    if first is None or references[first].better is None:
        return
    for number, other in enumerate(references):
        if number != first and (other.better is not None or other.measure == "success"):
            sentence = f"A protocol has one verdict, but '{references[first].measure}' and '{other.measure}' both ask for it."
            remedy = "Remove 'better', 'margin' and 'range' from the measure that is only reported"
            remedy += (
                ", or the reference on 'success'."
                if other.measure == "success"
                else "."
            )
            diagnostics.error(
                226, root.find(("reference", number)).position, sentence, remedy
            )
            return


#: How a curve contradicts each ``better``: the sign of its change, the word for the
#: change, and the ``better`` that would fit.
_AGAINST = {"higher": (-1, "falls", "lower"), "lower": (1, "rises", "higher")}
#: An animal, a session, the number of the animal's trials in it, and the sum of their
#: values.
_Counted = tuple[str, int, int, float]
#: A number in a row of an animal is taken for a slip if it is more than ``_SPREADS``
#: median deviations from the median, and at least ``_TIMES`` above or below all numbers
#: that are not (the second factor is for numbers of trials), of at least
#: ``_ENOUGH_ROWS``. An animal may well be ten times as slow as the others.
_SPREADS, _TIMES, _ENOUGH_ROWS = 10, (20, 5), 5


class _Resolver:
    def __init__(
        self,
        written: doc.Reference,
        node: Node,
        spec: Specification,
        diagnostics: Diagnostics,
        root: Node,
    ) -> None:
        self.root = root
        self.written, self.node, self.spec, self.diagnostics = (
            written,
            node,
            spec,
            diagnostics,
        )
        self.judged = spec.judged_sessions

    def resolve(self, *, primary: bool) -> ReferenceSpec | None:
        written = self.written
        if not self.judged:
            # 'estimand' names blocks that the schedule lacks, which is reported
            # elsewhere.
            return None
        before = len(self.diagnostics.errors)
        self._check_rates()
        self._check_spreads()
        self._check_keys_beside_animals()
        # An unreadable file is already reported.
        if isinstance(written.animals, str) or self._has_empty_range():
            return None
        given = self._given()
        over = self._over()
        if len(self.diagnostics.errors) > before:
            return None
        computed = self._compute(given, over)
        value = written.value if written.value is not None else computed.value
        if value is None:
            self._report_no_value(given, over)
            return None
        n = written.n_animals or computed.n
        sd = self._sd(computed, n)
        self._check_judged(value, sd, n)
        found = self._reference(value, sd, n, given, over)
        self._check_unit(value, given)
        self._note_no_curve(given)
        if primary:
            self._check_sessions(value, computed.value, over)
            self._check_curve(given)
            self._check_direction(value, given.curve)
            self._check_animals(given.rows, over or tuple(self.judged))
            self._check_precision(found, is_counted=bool(given.rows))
        return found

    def _reference(
        self,
        value: float,
        sd: float | None,
        n: int | None,
        given: _Given,
        over: tuple[int, ...],
    ) -> ReferenceSpec:
        written = self.written
        covers = over or (() if written.value is not None else tuple(self.judged))
        return ReferenceSpec(
            measure=written.measure,
            value=value,
            interval=written.interval,
            n_animals=n,
            sd=sd,
            kind=self._kind(sd, n),
            curve=given.curve,
            curve_sd=given.curve_sd,
            over=covers,
            where=None if written.where is None else str(written.where),
            species=written.species or self.spec.document.species or "",
            source=written.source or "",
            status=written.status,
            better=written.better,
            margin=written.margin,
            range=written.range,
            dose=self._dose(given.rows, over or tuple(self.judged)),
            counts=self._counts(given.rows, over or tuple(self.judged)),
        )

    def _note_no_curve(self, given: _Given) -> None:
        """Note (407) animals with rows of a later session, but not of all before it."""
        known = sorted({session for _, session, *_ in given.rows})
        drawn = len(given.curve)
        # A single session, such as a probe, is no curve.
        if len(known) < 2 or known[-1] == drawn:
            return
        lacks = [n for n in range(1, known[-1]) if n not in known]
        shown = f"only {in_words(range(1, drawn + 1))}" if drawn else "only their mean"
        self.diagnostics.info(
            407,
            self._place("animals"),
            f"The animals' curve begins at session 1, but no animal has {in_words(lacks)}: reports and figures show {shown}.",
            "Add rows of these sessions if they are known.",
        )

    def _check_unit(self, value: float, given: _Given) -> None:
        """Warn (335) if the measure seems to be in percent and the animals' values are
        shares, or the other way round.
        """
        tree = self.spec.measures.get(self.written.measure)
        if tree is None:
            return
        most = max([value, *given.curve, *(row[3] / row[2] for row in given.rows)])
        animals = f"have values up to {amount(most)}"
        if self._is_share_beside(tree, most):
            sentence = f"'{self.written.measure}' lies from 0 to 1 here, but the animals {animals}."
            remedy = "If these are percent, divide value, margin and range by 100, or multiply the measure by 100."
        elif most <= 1 and (self._top == 100 or _is_percent(tree)):
            sentence = f"'{self.written.measure}' seems to be in percent, but the animals {animals}, which seem to be shares."
            remedy = "Write values, margin, range and measure in one unit: shares, or percent."
        else:
            return
        self.diagnostics.warning(335, self._place("animals"), sentence, remedy)

    @property
    def _top(self) -> float | None:
        """The highest possible value of the measure as written, or None."""
        return self.written.range[1] if self.written.range else None

    def _is_share_beside(self, tree: ex.Expression, most: float) -> bool:
        """Return whether a measure lies from 0 to 1, while ``most``, the animals'
        highest value, seems to be in percent.
        """
        is_percent = 20 < most <= 100 if self._top is None else self._top == 100
        return (is_percent and _is_share(tree)) or (
            most > 1 and self._is_never_above_one(tree)
        )

    def _is_never_above_one(self, tree: ex.Expression) -> bool:
        """Return whether a measure is a variable that only holds numbers up to 1, or a
        counter that is only counted as the trial ends.
        """
        if not isinstance(tree, ex.Variable):
            return False
        held = [value for name, value in self._assigned() if name == tree.name]
        return bool(held) and all(
            isinstance(value, ex.Number) and value.value <= 1 for value in held
        )

    def _assigned(self) -> Iterator[tuple[str, ex.Expression | None]]:
        """Yield each variable or counter with each value that it may get. None: it may
        get any number.
        """
        spec = self.spec
        for name, variable in spec.variables.items():
            yield name, _as_number(variable.initial)
        for block in spec.schedule:
            yield from ((name, _as_number(value)) for name, value in block.set)
        for draw in spec.draws:
            for row in draw.rows:
                yield from zip(draw.columns, map(_as_number, row), strict=True)
        for effects, ends in _effects_of(spec):
            yield from ((one.variable, one.value) for one in effects.set)
            once = ex.Number(1) if ends else None
            yield from ((name, once) for name in effects.count)

    def _check_precision(self, found: ReferenceSpec, *, is_counted: bool) -> None:
        """Warn (333) of animals that do not show how animals differ, and (334) of a
        mean that is too uncertain for the margin.
        """
        if self.diagnostics.errors:
            return
        n = found.n_animals
        if n is not None and not found.has_spread and found.interval is None:
            self._report_no_spread(n, is_counted=is_counted)
        elif found.better != "alike":
            self._check_margin(found)

    def _report_no_spread(self, n: int, *, is_counted: bool) -> None:
        if n > 1 and not is_counted:
            sentence = f"'n_animals: {n}' without 'sd' leaves open how animals differ: the value is used as if it were exact."
            remedy = "Add 'sd', 'sem', 'interval' or 'animals'; if it is unknown, write 'acknowledged: {W333: REASON}'."
            place = self._place("n_animals")
        else:
            one = "One animal does" if n == 1 else f"{n} animals that are equal do"
            sentence = f"{one} not show how animals differ: the value is used as if it were exact."
            remedy = "Add animals: fewer than five are seldom enough for a verdict."
            place = self._place("animals")
        self.diagnostics.warning(333, place, sentence, remedy)

    def _check_margin(self, found: ReferenceSpec) -> None:
        margin = self.spec.document.margin if found.margin is None else found.margin
        sign = -1 if found.better == "lower" else 1
        passes, fails = thresholds(found.record, margin)
        off = margin + sign * (passes - found.value)
        if off < margin:
            return
        worst = (found.range or (0.0, 1.0))[sign < 0]
        self._report_margin(found, margin, off, none_fails=sign * (fails - worst) <= 0)

    def _report_margin(
        self, found: ReferenceSpec, margin: float, off: float, *, none_fails: bool
    ) -> None:
        animals = f"{found.n_animals} animals" if found.n_animals else "the animals"
        sentence = (
            f"The mean of {animals} may be off by {rounded(off, 3)}, which the margin of {margin:g} does not cover: a model as "
            f"good as they are never passes{', and none ever fails' if none_fails else ''}, however many subjects are run."
        )
        wider = "" if none_fails else f", or set 'margin' above {rounded(off, 3)}"
        place = self._place("margin" if found.margin else "animals")
        self.diagnostics.warning(334, place, sentence, f"Add animals{wider}.")

    def _dose(self, rows: Sequence[_Counted], sessions: Sequence[int]) -> Dose | None:
        """Return the training of the animals: as written or, if it is not written, as
        medians over the animals whose trials are counted. Return None if it is unknown,
        as where rows of earlier sessions are missing.
        """
        if (written := self.written.dose) is not None:
            return Dose(written.before, written.judged, written.of)
        if self.written.measure != "success" or not rows:
            return None
        earlier = set(range(1, max(sessions))) - {*sessions}
        if not earlier <= {row[1] for row in rows}:
            return None
        judged, before = _trials(rows, {*sessions}), _trials(rows, earlier)
        if not judged:
            return None
        return Dose(
            round(statistics.median(before[animal] for animal in judged)),
            round(statistics.median(judged.values())),
        )

    def _counts(
        self, rows: Sequence[_Counted], sessions: Sequence[int]
    ) -> tuple[tuple[float, int], ...]:
        """Return the passes and trials of each animal, or nothing for a measure."""
        is_rate = self.written.measure == "success"
        return tuple(_totals(rows, sessions)) if is_rate else ()

    def _given(self) -> _Given:
        written, rows = self.written, self._rows()
        if not rows:
            return _Given([], tuple(written.curve), tuple(written.curve_sd))
        return _Given(rows, *_curves(rows))

    def _is_open(self, over: Sequence[int]) -> bool:
        """Return whether the sessions that count depend on the subject."""
        return self.spec.sessions_vary and not over

    def _compute(self, given: _Given, over: Sequence[int]) -> _Computed:
        if self._is_open(over):
            return _Computed()
        sessions = over or tuple(self.judged)
        if given.rows:
            return self._of_animals(given.rows, sessions)
        return self._of_curve(given.curve, given.curve_sd, sessions)

    def _sd(self, computed: _Computed, n: int | None) -> float | None:
        """Return the standard deviation between animals: as written, from the standard
        error, or computed. Return None if none of these exists.
        """
        if self.written.sem is not None and n is not None:
            return self.written.sem * math.sqrt(n)
        return self.written.sd if self.written.sd is not None else computed.sd

    def _kind(
        self, sd: float | None, n: int | None
    ) -> Literal["measured", "declared", "analogy", "invented"]:
        """Return the kind of the reference: as written or, by default, *measured* for a
        value with a spread or an interval, and *declared* for others.
        """
        if self.written.kind is not None:
            return self.written.kind
        of_animals = sd is not None and n is not None and n > 1
        return (
            "measured"
            if of_animals or self.written.interval is not None
            else "declared"
        )

    def _report_no_value(self, given: _Given, over: Sequence[int]) -> None:
        sessions = over or tuple(self.judged)
        remedy = "Add 'value', a 'curve' for all sessions, or 'animals'."
        if not given.rows and not given.curve:
            self._error("The reference has no value.", remedy)
        elif self._is_open(over):
            key = "animals" if given.rows else "curve"
            sentence = f"Which sessions count depends on the subject ('until'), so '{key}' gives no value."
            remedy = "Write the animals' 'value' over the trials that count, or name its sessions in 'over'."
            self._error(sentence, remedy, key)
        elif given.rows:
            remedy = "Add such rows, or the 'value'."
            self._error(f"No animal has a row of {in_words(sessions)}.", remedy)
        else:
            sentence = f"The value would cover {in_words(sessions)}, but the curve ends after session {len(given.curve)}."
            self._error(sentence, "Continue the 'curve', or add the 'value'.")

    def _error(self, sentence: str, remedy: str, key: str | None = None) -> None:
        self.diagnostics.error(
            226,
            self.node.key_position(key) if key else self.node.position,
            sentence,
            remedy,
        )

    def _check_rates(self) -> None:
        """Report (217) a pass rate outside 0 to 1, or a reversed interval."""
        written = self.written
        rates = [written.value, *written.curve, *(written.interval or ())]
        outside = [rate for rate in rates if rate is not None and not 0 <= rate <= 1]
        if outside and written.measure == "success":
            sentence = f"A pass rate lies between 0 and 1, but {outside[0]:g} does not."
            meant = outside[0] if 1 < outside[0] <= 100 else 80.0
            remedy = f"Write {meant / 100:g} for {meant:g} %."
            self.diagnostics.error(217, self.node.position, sentence, remedy)
        if written.interval and written.interval[0] > written.interval[1]:
            self.diagnostics.error(
                217,
                self.node.position,
                "The interval is reversed.",
                "Write [low, high].",
            )

    def _check_spreads(self) -> None:
        """Report (226) two values for one spread, a negative spread, or a spread
        without the values that it needs.
        """
        written = self.written
        given = [key for key in ("sd", "sem") if getattr(written, key) is not None]
        if len(given) > 1:
            self._error(
                "'sd' and 'sem' are two ways to write the same number.",
                "Keep one of them.",
                "sem",
            )
        spreads = [*(getattr(written, key) for key in given), *written.curve_sd]
        if any(spread < 0 for spread in spreads):
            self._error(
                "'sd', 'sem' and 'curve_sd' are never below 0.", "Remove the sign."
            )
        self._check_largest_spread()
        if given and written.n_animals is None and not written.animals:
            self._error(
                f"'{given[0]}' needs the number of animals.",
                "Add 'n_animals'.",
                given[0],
            )
        self._check_curve_sd()

    def _check_largest_spread(self) -> None:
        """Report (217) a standard deviation that is too large for the range, such as
        one in percent.
        """
        written, n = self.written, self.written.n_animals
        low, high = written.range or (0.0, math.inf)
        if written.measure == "success":
            low, high = 0.0, 1.0
        if low >= high:  # The range is reported elsewhere (226).
            return
        # A standard deviation is largest if half of the animals are at each end of the
        # range, and if there are only two. Without 'n_animals', two are assumed.
        most = (high - low) / 2 * math.sqrt(1 + 1 / max(1, (n or 2) - 1))
        sem = (written.sem or 0.0) * math.sqrt(n or 1)
        spreads = {"sd": written.sd or 0.0, "sem": sem}
        spreads["curve_sd"] = max(written.curve_sd, default=0.0)
        key, spread = max(spreads.items(), key=lambda one: one[1])
        if spread > most + ROUNDING:
            sentence = (
                f"Values from {low:g} to {high:g} have a standard deviation of at most {rounded(most, 3)}, but '{key}' "
                f"makes it {rounded(spread, 3)}."
            )
            self.diagnostics.error(
                217, self._place(key), sentence, self._remedy_of_spread()
            )

    def _remedy_of_spread(self) -> str:
        written = self.written
        given = (written.sd, written.sem, *written.curve_sd)
        most = max(one for one in given if one is not None)
        if written.measure == "success" and most >= 1:
            return f"Write {most / 100:g} for {most:g} %."
        return "Write it in the unit of the measure."

    def _check_curve_sd(self) -> None:
        written = self.written
        if written.curve_sd and len(written.curve_sd) != len(written.curve):
            sentence = f"The lengths of 'curve' ({len(written.curve)}) and 'curve_sd' ({len(written.curve_sd)}) differ."
            self._error(
                sentence, "Give one standard deviation for each session.", "curve_sd"
            )

    def _check_keys_beside_animals(self) -> None:
        """Report (226) ``counts`` without the ``animals`` of ``success``, and keys
        beside ``animals`` that are computed from it.
        """
        written = self.written
        if written.counts is not None and (
            written.measure != "success" or written.animals is None
        ):
            self._error(
                "'counts' says which trials of 'animals' are a success.",
                "Write it in a reference on 'success' with 'animals', or remove it.",
                "counts",
            )
        if written.animals is None:
            return
        for key in ("sd", "sem", "n_animals", "curve", "curve_sd", "interval"):
            if getattr(written, key):
                self._error(
                    f"'{key}' is computed from 'animals'.", f"Remove '{key}'.", key
                )

    def _check_judged(self, value: float, sd: float | None, n: int | None) -> None:
        """Report (226) a verdict about a measure if it lacks a key, could never be a
        FAIL, or is asked for ``success`` or for names, or if the animals' value is
        outside its range.
        """
        written = self.written
        name, better, margin = written.measure, written.better, written.margin
        alone = self._first_of_verdict()
        if alone is None:
            return
        if name == "success":
            other = "the margin of 'success' is the protocol's own key 'margin'" if alone == "margin" else (
                "'success' is a rate from 0 to 1, and more of it is always better"
            )  # fmt: skip
            self._error(
                f"'{alone}' is only for measures: {other}.",
                f"Remove '{alone}'.",
                alone,
            )
            return
        if better is None or margin is None:
            self._report_half_verdict("better" if better is None else "margin", alone)
            return
        if isinstance(self.spec.measures.get(name), ex.Classes):
            self._error(
                f"The values of '{name}' are names, which have no mean.",
                "Choose a measure that is a number.",
                "better",
            )
        self._check_range(value, better, margin)
        if written.range is None:
            sentence = f"'{name}' has no 'range', which a verdict about it needs."
            self._error(
                sentence,
                "Add the 'range': the lowest and the highest possible value.",
                "better",
            )

    def _first_of_verdict(self) -> str | None:
        """Return the first key that asks for a verdict about this measure, or None."""
        keys = ("better", "margin", "range")
        return next(
            (key for key in keys if getattr(self.written, key) is not None), None
        )

    def _report_half_verdict(self, missing: str, given: str) -> None:
        remedy = {
            "better": "Add 'better: higher', 'lower' or 'alike'",
            "margin": "Add 'margin', in the unit of the measure",
        }[missing]
        if missing == "margin" and self.root.child("margin"):
            line = self.root.key_position("margin").line
            remedy = f"Move 'margin' from line {line} to here (there it is the margin of the pass rate)"
        self._error(
            f"A verdict about '{self.written.measure}' needs 'better' and 'margin', but there is no '{missing}'.",
            f"{remedy}, or remove '{given}', so that the number is only reported.",
            given,
        )

    def _check_range(self, value: float, better: str, margin: float) -> None:
        limits = self.written.range
        if limits is None:
            return
        low, high = limits
        if not low <= value <= high:
            self._error(
                f"The animals' value, {value:g}, is not in the range {low:g} to {high:g}.",
                "Widen the range.",
                "range",
            )
            return
        below, above = value - margin <= low, value + margin >= high
        if {"higher": below, "lower": above, "alike": below and above}[better]:
            worst = high if better == "lower" else low
            found = (
                f"All values of the range, {low:g} to {high:g}, are"
                if better == "alike"
                else f"The worst possible value, {worst:g}, is"
            )
            sentence = (
                f"{found} within the margin of {margin:g}, so no subject could FAIL."
            )
            self._error(sentence, _smaller(margin, most=high), "margin")

    def _has_empty_range(self) -> bool:
        """Report (226) a measure's range that no value lies in, and return whether it
        is one.
        """
        limits = self.written.range
        if limits is None or self.written.measure == "success" or limits[0] < limits[1]:
            return False
        self._error(
            f"The range, {limits[0]:g} to {limits[1]:g}, is empty or reversed.",
            "Write [lowest, highest].",
            "range",
        )
        return True

    def _rows(self) -> list[_Counted]:
        """Return rows of animal, session, number of trials, and the sum of their values
        (the passes, or the value of one trial). Report invalid rows.
        """
        if self.written.only:
            sentence = "'only' chooses rows of a file, but 'animals' names no file."
            self._error(
                sentence, "Remove 'only', and the rows that it leaves out.", "only"
            )
        if not isinstance(self.written.animals, list):
            return []
        kept = self._valid_rows(self.written.animals)
        found = Counter(row[:2] for row in kept)
        if twice := next((key for key, times in found.items() if times > 1), None):
            self.diagnostics.error(
                225,
                self.node.key_position("animals"),
                f"Session {twice[1]} of '{quoted(twice[0], 40)}' appears twice.",
                "Keep one.",
            )
        if not self.written.animals:
            self.diagnostics.error(
                225,
                self.node.key_position("animals"),
                "There are no animals.",
                "Add some.",
            )
        if len(kept) == len(self.written.animals):
            self._check_values(kept)
            self._check_summaries(kept)
            self._check_slips(kept)
        return kept

    def _check_slips(self, rows: Sequence[_Counted]) -> None:
        """Warn (332) of a row that is so far from the others of its session (or from
        all, if the session has few) that a digit or a decimal point may be wrong.
        """
        is_rate = self.written.measure == "success"
        given = [float(row[2] if is_rate else row[3]) for row in rows]
        odd = _odd([row[1] for row in rows], given, is_rate)
        if not odd:
            return
        first = min(odd)
        animal, session, *_ = rows[first]
        what = "trials" if is_rate else f"as '{self.written.measure}'"
        more = len(odd) - 1
        are = "row is" if more == 1 else "rows are"
        others = f"; {more} more {are} as odd" if more else ""
        ends = " to ".join(dict.fromkeys(f"{end:g}" for end in odd[first]))
        sentence = (
            f"'{quoted(animal, 40)}' has {given[first]:g} {what} in session {session}, "
            f"and the others have {ends}{others}."
        )
        remedy = "Check the number: a digit or a decimal point may be wrong. It counts as it is."
        place = self.node.find(("animals", first)).position
        self.diagnostics.warning(332, place, sentence, remedy)

    def _check_summaries(self, rows: Sequence[_Counted]) -> None:
        """Warn (332) of a row that summarizes the animals, as spreadsheets have it."""
        animals = [row[0] for row in rows]
        found = _with_a_word_of(_SUMMARIES, animals)
        if not found:
            return
        also = _with_a_word_of(_SHORT, animals)
        first = animals.index(found[0])
        names = [f"'{quoted(name, 40)}'" for name in dict.fromkeys(found + also)]
        count = "count as animals" if len(names) > 1 else "counts as an animal"
        self.diagnostics.warning(
            332,
            self.node.find(("animals", first)).position,
            f"{', '.join(names[:8])} {count}.",
            "Remove rows that summarize the others: such numbers are computed from the animals.",
        )

    def _check_values(self, rows: Sequence[_Counted]) -> None:
        """Report (226) a value that the measure cannot have, at its row."""
        limits = self.written.range
        if limits is None or self.written.measure == "success":
            return
        for number, (animal, session, _, value) in enumerate(rows):
            if not limits[0] <= value <= limits[1]:
                sentence = (
                    f"The value {value:g} of '{quoted(animal, 40)}' in session {session} is not in the range "
                    f"{limits[0]:g} to {limits[1]:g}."
                )
                remedy = (
                    "Check its unit, leave out what is missing, or widen the range."
                )
                place = self.node.find(("animals", number)).position
                self.diagnostics.error(226, place, sentence, remedy)
                return

    def _valid_rows(self, animals: Sequence[Any]) -> list[_Counted]:
        columns, kept = columns_of(self.written.measure), list[_Counted]()
        for number, cells in enumerate(animals):
            row = row_of(cells, columns)
            if row is not None:
                kept.append(row if len(row) == 4 else (*row[:2], 1, row[2]))
                continue
            self.diagnostics.error(
                225,
                self.node.find(("animals", number)).position,
                f"{cells!r:.100} is not a valid row.",
                f"Write [{', '.join(columns)}], or the name of a CSV file.",
            )
        return kept

    def _over(self) -> tuple[int, ...]:
        """Return the sessions that the value covers, or none if the reference does not
        state them.
        """
        written, known = self.written.over, tuple(self.spec.estimand_sessions)
        if written is None:
            return ()
        if isinstance(written, list):
            return tuple(sorted(set(written)))
        kind, _, count = written.partition(":")
        if kind == "all":
            return known
        return known[-int(count or 1) :]

    def _of_animals(
        self, rows: Sequence[_Counted], sessions: Iterable[int]
    ) -> _Computed:
        """Return mean, standard deviation and number of the animals' own rates (or mean
        values) in these sessions.
        """
        rates = [passed / trials for passed, trials in _totals(rows, sessions)]
        if not rates:
            return _Computed()
        # If a few animals are equal (three at the ceiling, say), this does not show
        # that all animals are equal.
        sd = statistics.stdev(rates) if len({*rates}) > 1 else None
        return _Computed(statistics.fmean(rates), sd, len(rates))

    def _of_curve(
        self, curve: Sequence[float], curve_sd: Sequence[float], sessions: Sequence[int]
    ) -> _Computed:
        """Return the mean of the curve over these sessions. If they are the judged
        sessions, each is weighted by its judged trials. The values are unknown if the
        curve ends before the last of these sessions.

        The standard deviation is the mean of the sessions' standard deviations. This is
        an upper bound. The true value depends on the correlation between an animal's
        sessions, which is unknown.
        """
        if not curve or not sessions or max(sessions) > len(curve):
            return _Computed()
        weights = [self.judged.get(session, 1) for session in sessions]
        if tuple(sessions) != tuple(self.judged):
            weights = [1] * len(weights)
        value = statistics.fmean([curve[session - 1] for session in sessions], weights)
        sd = (
            statistics.fmean([curve_sd[session - 1] for session in sessions], weights)
            if curve_sd
            else None
        )
        return _Computed(value, sd, None)

    def _check_sessions(
        self, value: float, computed: float | None, over: Sequence[int]
    ) -> None:
        """Warn (325) of a value that covers other trials than the pass rate."""
        own = tuple(self.judged)
        differs = computed is not None and abs(value - computed) > ROUNDING
        written = self._written("value", "over")
        remedy = f"Remove {written} to compute the value from the animals' data, or set the trials that count in 'estimand'."
        if computed is None:
            remedy = "Write the value over the trials that count, or set these in 'estimand'."
        place = self._place("over" if over and over != own else "value")
        if over and over != own:
            sentence = (
                f"The animals' value covers {in_words(over)}, but the trials that count are in {in_words(own)}"
                f"{self._absent(over)}."
            )
            self.diagnostics.warning(325, place, sentence, remedy)
        elif differs:
            assert computed is not None
            sentence = (
                f"The trials that count are in {in_words(own)}, for which the animals' data give "
                f"{rounded(computed, 2)}, not {value:g}."
            )
            self.diagnostics.warning(325, place, sentence, remedy)

    def _written(self, *keys: str) -> str:
        """Return, in words, which of these keys the file has."""
        found = [key for key in keys if getattr(self.written, key) is not None]
        return " and ".join(f"'{key}'" for key in found)

    def _absent(self, over: Sequence[int]) -> str:
        absent = [n for n in over if n > len(self.spec.sessions)]
        return f"; the schedule has no {in_words(absent)}" if absent else ""

    def _check_curve(self, given: _Given) -> None:
        """Warn (326) of a curve that has more sessions than the schedule, or fewer than
        the judged trials need. Animals with rows may have more sessions.
        """
        if self.spec.sessions_vary:
            return  # Animals may differ in their number of sessions, as subjects do.
        sessions, last = len(self.spec.sessions), max(self.judged, default=0)
        if given.rows:
            self._check_sessions_of_animals(given.rows)
        elif given.curve and not last <= len(given.curve) <= sessions:
            sentence = f"The numbers of sessions of the animals' curve ({len(given.curve)}) and the schedule ({sessions}) differ."
            remedy = (
                "Give one value for each session of the schedule, through all blocks."
            )
            self.diagnostics.warning(326, self._place("curve"), sentence, remedy)

    def _check_direction(self, value: float, curve: Sequence[float]) -> None:
        """Warn (341) of ``better`` if the animals' curve goes the other way: most pairs
        of its sessions do, and the value is worse than the first session by more than
        the margin. Single steps would say little where a long curve ends in a plateau.
        """
        own, better = curve[: max(self.judged)], self.written.better
        if better not in _AGAINST or len(own) < 3:
            return
        sign, goes, other = _AGAINST[better]
        pairs = [sign * (after - before) for before, after in combinations(own, 2)]
        is_against = sum(pair > 0 for pair in pairs) * 3 >= len(pairs) * 2
        if not is_against or sign * (value - own[0]) <= (self.written.margin or 0):
            return
        sentence = (
            f"The animals' '{self.written.measure}' {goes} over the sessions, from {rounded(own[0], 3)} to"
            f" {rounded(own[-1], 3)}, but the verdict counts {better} values as better."
        )
        remedy = f"Write 'better: {other}', unless the animals did get worse."
        self.diagnostics.warning(341, self._place("better"), sentence, remedy)

    def _check_animals(self, rows: Sequence[_Counted], sessions: Sequence[int]) -> None:
        """Warn (332) of animals that do not match the judged trials."""
        lived: dict[str, set[int]] = {}
        for animal, session, *_ in rows:
            lived.setdefault(animal, set()).add(session)
        self._check_names(lived)
        if self.spec.sessions_vary:
            return
        self._check_later_sessions(lived)
        lacks = {
            name: lacking
            for name, own in lived.items()
            if (lacking := self._lacking(own, sessions))
        }
        if lacks and len(lacks) < len(lived):
            said = [
                f"'{quoted(name, 40)}' {in_words(lacking)}{' (not counted)' * (len(lacking) == len(sessions))}"
                for name, lacking in lacks.items()
            ]
            more = f" and {len(said) - 8} more" if len(said) > 8 else ""
            sentence = (
                f"Some animals ({len(lacks)} of {len(lived)}) lack sessions that count, and are judged by their others, if any: "
                f"{', '.join(said[:8])}{more}."
            )
            remedy = "Leave out animals that dropped out, or list in 'over' the sessions that all animals have."
            self.diagnostics.warning(332, self._place("animals"), sentence, remedy)

    def _lacking(self, own: Set[int], sessions: Sequence[int]) -> list[int]:
        """Return the sessions that count but that an animal lacks. A measure need not
        have a value in each session, so for a measure these are only sessions after
        the animal's last one.
        """
        lacking = sorted({*sessions} - own)
        if self.written.measure == "success":
            return lacking
        return [session for session in lacking if session > max(own)]

    def _check_later_sessions(self, lived: Mapping[str, Set[int]]) -> None:
        """Warn (332) of sessions that the schedule lacks, unless all animals have the
        same ones, without a gap: then the animals may have been trained longer.
        """
        last = len(self.spec.sessions)
        later = {
            name: {session for session in own if session > last}
            for name, own in lived.items()
        }
        beyond = set[int]().union(*later.values())
        went_on = {*range(last + 1, last + 1 + len(beyond))}
        if all(own == went_on for own in later.values()):
            return
        name = next(name for name, own in later.items() if own)
        sentence = (
            f"'{quoted(name, 40)}' has a session {min(later[name])}, but the schedule has only {last}: "
            "this row counts nowhere."
        )
        remedy = "Number the sessions as the schedule does, through all blocks, or leave the row out."
        self.diagnostics.warning(332, self._place("animals"), sentence, remedy)

    def _check_names(self, animals: Iterable[str]) -> None:
        """Warn (332) of animals whose names differ only in case, in spaces, or in how
        a number is written (``7``, ``07`` and pandas' ``7.0``).
        """
        spelt: dict[str, str] = {}
        for animal in animals:
            bare = "".join(animal.split()).casefold()
            bare = re.sub(r"^0+(?=\d)|(?<=\d)\.0*$", "", bare)
            other = spelt.setdefault(bare, animal)
            if other != animal:
                sentence = f"'{quoted(other, 40)}' and '{quoted(animal, 40)}' count as two animals."
                self.diagnostics.warning(
                    332,
                    self._place("animals"),
                    sentence,
                    "Spell the name of an animal the same way in every row.",
                )

    def _check_sessions_of_animals(self, rows: Iterable[_Counted]) -> None:
        lived = {row[1] for row in rows}
        missing = [session for session in self.judged if session not in lived]
        # A measure need not have a value in each session.
        may_miss = self.written.measure != "success" and lived & {*self.judged}
        if missing and not may_miss:
            sentence = f"No animal has {in_words(missing)}, whose trials count."
            remedy = "Number the sessions as the schedule does, through all blocks, or list the sessions that count in 'over'."
            self.diagnostics.warning(326, self._place("animals"), sentence, remedy)

    def _place(self, key: str) -> Position:
        child = self.node.child(key)
        return self.node.position if child is None else child.position


@dataclass(frozen=True, slots=True)
class _Given:
    """The animals' data as the protocol gives them. If there are rows, the curve and
    its standard deviations are computed from them. Otherwise they are as written.
    """

    rows: Sequence[_Counted]
    curve: tuple[float, ...]
    curve_sd: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Computed:
    """The parts of a reference that are computed. None: unknown."""

    value: float | None = None
    sd: float | None = None
    n: int | None = None


#: Words that a row has in place of an animal if it summarizes the animals. Those of
#: ``_SHORT`` do so only beside one of the others: SD may be an animal's initials.
_SUMMARIES = {"mean", "means", "average", "avg", "median", "total"}
_SHORT = {"sd", "sem", "std", "stdev", "sum"}


def _with_a_word_of(words: Set[str], names: Iterable[str]) -> list[str]:
    own = {name: {*re.findall(r"[a-z]+", name.casefold())} for name in names}
    return [name for name in own if own[name] & words]


def _is_share(tree: ex.Expression) -> bool:
    """Return whether a measure is a share: a count divided by a count, a time divided
    by a time, or a condition. Division by a condition only says which trials have a
    value.
    """
    if not isinstance(tree, ex.Binary) or tree.operator != "/":
        return ex.is_condition(tree)
    if ex.is_condition(tree.right):
        return _is_share(tree.left)
    alike = ex.reads_clock(tree.left) == ex.reads_clock(tree.right)
    return alike and not _is_percent(tree)


def _as_number(value: object) -> ex.Number | None:
    return ex.Number(value) if isinstance(value, int | float) else None


def _effects_of(spec: Specification) -> Iterator[tuple[EffectsSpec, bool]]:
    """Yield all effects of a protocol, each with whether the trial ends with them."""
    yield spec.each, False
    for state in spec.states.values():
        yield from ((state.entry, False), (state.each, False))
    rules = chain(*(state.rules for state in spec.states.values()), spec.watch)
    yield from ((rule.effects, rule.end is not None) for rule in rules)


def _is_percent(tree: ex.Expression) -> bool:
    return any(
        isinstance(node, ex.Binary) and ex.Number(100) in (node.left, node.right)
        for node in ex.walk(tree)
    )


def _odd(
    sessions: Sequence[int], given: Sequence[float], is_rate: bool
) -> dict[int, list[float]]:
    """Return the indices of the numbers that may be slips, each with the lowest and the
    highest of the numbers that it was compared with.
    """
    if len(given) < _ENOUGH_ROWS:
        return {}
    by_session: dict[int, list[int]] = {}
    for n, session in enumerate(sessions):
        by_session.setdefault(session, []).append(n)
    odd = dict[int, list[float]]()
    for group in by_session.values():
        pool = group if len(group) >= _ENOUGH_ROWS else range(len(given))
        far, usual = _slips([given[n] for n in pool], is_rate)
        odd.update((n, usual) for n in group if given[n] in far)
    return odd


def _slips(given: Sequence[float], is_rate: bool) -> tuple[set[float], list[float]]:
    """Return the numbers that are far from the others, and the lowest and the highest
    of the others. If they are numbers of trials, few are no slip: animals stop early.
    """
    middle = statistics.median(given)
    spread = statistics.median(abs(one - middle) for one in given)
    near = [one for one in given if abs(one - middle) <= _SPREADS * spread]
    low, *_, high = sorted([*map(abs, near), abs(middle)])
    times = _TIMES[is_rate]
    slips = {
        one
        for one in {*given} - {*near}
        if 0 < high * times <= abs(one) or 0 < abs(one) * times <= low * (not is_rate)
    }
    others = [one for one in given if one not in slips]
    return slips, [min(others), max(others)]


def _totals(
    rows: Sequence[_Counted], sessions: Iterable[int]
) -> list[tuple[float, int]]:
    """Return the sum of the values and the number of trials of each animal that has
    any in these sessions.
    """
    chosen, own = set(sessions), dict[str, tuple[float, int]]()
    for animal, session, trials, passed in rows:
        if session in chosen:
            before = own.get(animal, (0, 0))
            own[animal] = (before[0] + passed, before[1] + trials)
    return list(own.values())


def _trials(rows: Sequence[_Counted], sessions: Set[int]) -> Counter[str]:
    """Return the number of trials of each animal in these sessions."""
    found = Counter[str]()
    for animal, session, trials, _ in rows:
        if session in sessions:
            found[animal] += trials
    return found


def _curves(rows: Sequence[_Counted]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation (0 for a single animal) over animals for each
    session, up to the first session that is missing.
    """
    rates: dict[int, list[float]] = {}
    for _, session, trials, passed in rows:
        rates.setdefault(session, []).append(passed / trials)
    means, spreads = [], []
    for session in range(1, len(rates) + 1):
        if session not in rates:
            break
        means.append(statistics.fmean(rates[session]))
        spreads.append(
            statistics.stdev(rates[session]) if len(rates[session]) > 1 else 0.0
        )
    return tuple(means), tuple(spreads)


def _smaller(margin: float, *, most: float) -> str:
    """Return the remedy for a margin that covers all values up to ``most``."""
    if most == 1 and 1 < margin < 100:
        return f"Write {margin / 100:g} for {margin:g} points."
    return "Give a smaller margin."


def in_words(sessions: Sequence[int]) -> str:
    """Return sessions in words: ``session 5``, ``sessions 1 to 5``, or ``sessions 1,
    3``.
    """
    if len(sessions) == 1:
        return f"session {sessions[0]}"
    if list(sessions) == list(range(sessions[0], sessions[-1] + 1)):
        return f"sessions {sessions[0]} to {sessions[-1]}"
    return f"sessions {', '.join(map(str, sessions))}"
