"""Resolves references: the sessions of each value, and values computed from a curve or
from single animals.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Literal

from cheesebench.diagnostics import Diagnostics, Position
from cheesebench.protocol import documents as doc
from cheesebench.protocol.csv_files import columns_of, row_of
from cheesebench.protocol.expressions import Classes
from cheesebench.protocol.specification import Dose, ReferenceSpec, Specification
from cheesebench.redaction import quoted
from cheesebench.source import Node

#: Numbers that differ by at most this much are equal when rounded to two digits.
ROUNDING = 0.0051


def resolve_references(
    spec: Specification, root: Node, diagnostics: Diagnostics
) -> tuple[ReferenceSpec, ...]:
    """Return the references of a protocol without those that contradict themselves,
    which are reported.
    """
    primary = judged_reference(spec.document.reference)
    resolved = [
        _Resolver(one, root.find(("reference", number)), spec, diagnostics).resolve(
            primary=number == primary
        )
        for number, one in enumerate(spec.document.reference)
    ]
    _one_verdict(spec.document.reference, root, diagnostics)
    return tuple(one for one in resolved if one is not None)


def judged_reference(references: Sequence[doc.Reference]) -> int | None:
    """Return the index of the reference that the verdict uses: the first with
    ``better``, else that on ``success``.
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
    """226: two references claim the verdict."""
    first = judged_reference(references)
    if first is None or references[first].better is None:
        return
    for number, other in enumerate(references):
        if number != first and (other.better is not None or other.measure == "success"):
            sentence = f"A protocol has one verdict, and '{references[first].measure}' and '{other.measure}' both ask for it."
            remedy = (
                "Remove 'better' and 'margin' from the measure that is only reported"
            )
            remedy += (
                ", or the reference on 'success'."
                if other.measure == "success"
                else "."
            )
            diagnostics.error(
                226, root.find(("reference", number)).position, sentence, remedy
            )
            return


#: An animal, a session, the number of its trials and their sum.
_Counted = tuple[str, int, int, float]


class _Resolver:
    def __init__(
        self,
        written: doc.Reference,
        node: Node,
        spec: Specification,
        diagnostics: Diagnostics,
    ) -> None:
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
            # elsewhere
            return None
        before = len(self.diagnostics.errors)
        self._contradictions()
        if isinstance(written.animals, str):
            return None  # a file that could not be read is reported already
        rows = self._rows()
        curve, curve_sd = (
            _curves(rows) if rows else (tuple(written.curve), tuple(written.curve_sd))
        )
        over = self._over()
        if len(self.diagnostics.errors) > before:
            return None
        sessions = over or tuple(self.judged)
        unknown = self.spec.sessions_vary and not over
        if unknown:
            computed = _Computed()
        else:
            computed = (
                self._of_animals(rows, sessions)
                if rows
                else self._of_curve(curve, curve_sd, sessions)
            )
        value = written.value if written.value is not None else computed.value
        if value is None:
            sentence = "The reference has no value."
            if unknown and (rows or curve):
                given = "animals" if rows else "curve"
                sentence = f"Which sessions count depends on the subject ('until'), so '{given}' gives no value."
                remedy = "Write the animals' 'value' over the trials that count, or say in 'over' which sessions it is."
                self._error(sentence, remedy, given)
                return None
            if rows:
                sentence = f"No animal has {in_words(sessions)}."
            elif curve:
                sentence = f"The curve has {len(curve)} sessions, but the value would cover {in_words(sessions)}."
            self._error(
                sentence, "Add 'value', a 'curve' for all sessions, or 'animals'."
            )
            return None
        n = written.n_animals or computed.n
        sd = written.sd if written.sd is not None else computed.sd
        if written.sem is not None and n is not None:
            sd = written.sem * math.sqrt(n)
        self._check_judged(value, sd, n)
        if primary:
            self._check_sessions(value, computed.value, over)
            self._check_curve(curve, rows)
            self._check_animals(rows, sessions)
        spread = written.interval is not None or (
            sd is not None and n is not None and n > 1
        )
        kind: Literal["measured", "declared", "analogy"] = written.kind or (
            "measured" if spread else "declared"
        )
        return ReferenceSpec(
            measure=written.measure,
            value=value,
            interval=written.interval,
            n_animals=n,
            sd=sd,
            kind=kind,
            curve=curve,
            curve_sd=curve_sd,
            over=sessions if over or written.value is None else (),
            where=None if written.where is None else str(written.where),
            species=written.species or self.spec.document.species or "",
            source=written.source or "",
            status=written.status,
            better=written.better,
            margin=written.margin,
            range=written.range,
            dose=self._dose(rows, sessions),
        )

    def _dose(self, rows: Sequence[_Counted], sessions: Sequence[int]) -> Dose | None:
        """Return how much training the animals had: as written, else medians over
        those whose trials are counted.
        """
        if (written := self.written.dose) is not None:
            return Dose(written.before, written.judged, written.of)
        if self.written.measure != "success" or not rows:
            return None
        earlier = set(range(1, max(sessions))) - {*sessions}
        judged, before = _trials(rows, {*sessions}), _trials(rows, earlier)
        if not judged:
            return None
        return Dose(
            round(statistics.median(before[animal] for animal in judged)),
            round(statistics.median(judged.values())),
        )

    def _error(self, sentence: str, remedy: str, key: str | None = None) -> None:
        self.diagnostics.error(
            226,
            self.node.key_position(key) if key else self.node.position,
            sentence,
            remedy,
        )

    def _contradictions(self) -> None:
        """217: a rate outside 0 to 1. 226: two values for one number, or a spread
        without what it needs.
        """
        written = self.written
        rates = (
            [written.value, *written.curve, *(written.interval or ())]
            if written.measure == "success"
            else []
        )
        if outside := [
            rate for rate in rates if rate is not None and not 0 <= rate <= 1
        ]:
            sentence = f"A pass rate lies between 0 and 1, and {outside[0]:g} does not."
            self.diagnostics.error(
                217, self.node.position, sentence, "Write 0.8 for 80 %."
            )
        if written.interval and written.interval[0] > written.interval[1]:
            self.diagnostics.error(
                217,
                self.node.position,
                "The interval is reversed.",
                "Write [low, high].",
            )
        if written.sd is not None and written.sem is not None:
            self._error(
                "'sd' and 'sem' are two ways to write the same number.",
                "Keep one of them.",
                "sem",
            )
        if any(
            spread is not None and spread < 0
            for spread in (written.sd, written.sem, *written.curve_sd)
        ):
            self._error("A standard deviation is never below 0.", "Remove the sign.")
        if (
            (written.sd is not None or written.sem is not None)
            and written.n_animals is None
            and not written.animals
        ):
            key = "sd" if written.sd is not None else "sem"
            self._error(
                f"'{key}' needs the number of animals.", "Add 'n_animals'.", key
            )
        if written.curve_sd and len(written.curve_sd) != len(written.curve):
            sentence = f"'curve' has {len(written.curve)} sessions, 'curve_sd' {len(written.curve_sd)}."
            self._error(
                sentence, "Give one standard deviation for each session.", "curve_sd"
            )
        if written.counts is not None and (
            written.measure != "success" or written.animals is None
        ):
            self._error(
                "'counts' says what 'success' is in 'animals'.",
                "Add both, or remove 'counts'.",
                "counts",
            )
        if written.animals is not None:
            computed = ("sd", "sem", "n_animals", "curve", "curve_sd", "interval")
            for key in computed:
                if getattr(written, key):
                    self._error(
                        f"'{key}' is computed from 'animals'.", f"Remove '{key}'.", key
                    )

    def _check_judged(self, value: float, sd: float | None, n: int | None) -> None:
        """226: a verdict about a measure lacks a key, or could only be a PASS."""
        written = self.written
        name, better, margin = written.measure, written.better, written.margin
        alone = next(
            (
                key
                for key in ("better", "margin", "range")
                if getattr(written, key) is not None
            ),
            None,
        )
        if alone is None:
            return
        if name == "success":
            other = "the margin of the pass rate is the protocol's own key 'margin'" if alone == "margin" else (
                "more of it is always better, from 0 to 1"
            )  # fmt: skip
            self._error(
                f"'{alone}' is for measures; of 'success', {other}.",
                f"Remove '{alone}'.",
                alone,
            )
            return
        if better is None or margin is None:
            missing = "better" if better is None else "margin"
            remedy = {
                "better": "Add 'better: higher', 'lower' or 'alike'",
                "margin": "Add 'margin', in the unit of the measure",
            }[missing]
            sentence = f"A verdict about '{name}' needs 'better' and 'margin', and there is no '{missing}'."
            self._error(
                sentence,
                f"{remedy}; or remove '{alone}', so that the number is only reported.",
                alone,
            )
            return
        if isinstance(self.spec.measures.get(name), Classes):
            self._error(
                f"'{name}' has names for values, and no mean.",
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

    def _check_range(self, value: float, better: str, margin: float) -> None:
        limits = self.written.range
        if limits is None:
            return
        low, high = limits
        if low >= high:
            self._error(
                "The range is empty or reversed.", "Write [lowest, highest].", "range"
            )
            return
        if not low <= value <= high:
            self._error(
                f"The animals' {value:g} is not in the range {low:g} to {high:g}.",
                "Widen the range.",
                "range",
            )
            return
        below, above = value - margin <= low, value + margin >= high
        if {"higher": below, "lower": above, "alike": below and above}[better]:
            worst = low if below else high
            sentence = f"The worst possible value, {worst:g}, is within the margin of {margin:g}, so no subject could FAIL."
            self._error(sentence, "Give a smaller margin.", "margin")

    def _rows(self) -> list[_Counted]:
        """Return animal, session, number of trials and their sum (of passes, or the
        value of a single one).
        """
        if self.written.only:
            sentence = "'only' chooses rows of a file, and 'animals' names none."
            self._error(sentence, "Leave it out, with the rows that it means.", "only")
        if not isinstance(self.written.animals, list):
            return []
        columns = columns_of(self.written.measure)
        rows = [
            (row_of(cells, columns), number)
            for number, cells in enumerate(self.written.animals)
        ]
        for row, number in rows:
            if row is None:
                position = self.node.find(("animals", number)).position
                remedy = f"Write [{', '.join(columns)}], or the name of a CSV file."
                self.diagnostics.error(
                    225,
                    position,
                    f"{self.written.animals[number]!r:.100} is not a valid row.",
                    remedy,
                )
        kept = [
            row if len(row) == 4 else (*row[:2], 1, row[2])
            for row, _ in rows
            if row is not None
        ]
        if len({row[:2] for row in kept}) < len(kept):
            self.diagnostics.error(
                225,
                self.node.key_position("animals"),
                "A session of an animal appears twice.",
                "Keep one.",
            )
        if not rows:
            self.diagnostics.error(
                225,
                self.node.key_position("animals"),
                "There are no animals.",
                "Add some.",
            )
        self._check_values(kept)
        return kept

    def _check_values(self, rows: Sequence[_Counted]) -> None:
        limits = self.written.range
        if limits is None or self.written.measure == "success":
            return
        for animal, session, _, value in rows:
            if not limits[0] <= value <= limits[1]:
                sentence = (
                    f"The value {value:g} of '{quoted(animal, 40)}' in session {session} is not in the range "
                    f"{limits[0]:g} to {limits[1]:g}."
                )
                remedy = (
                    "Check its unit, leave out what is missing, or widen the range."
                )
                self._error(sentence, remedy, "animals")
                return

    def _over(self) -> tuple[int, ...]:
        """Return the sessions that the value covers, as far as they are stated."""
        written, known = self.written.over, tuple(self.spec.sessions_of_blocks)
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
        """Return mean and standard deviation of the animals' own rates (or mean values)
        in these sessions.
        """
        chosen, own = set(sessions), dict[str, tuple[float, int]]()
        for animal, session, trials, passed in rows:
            if session in chosen:
                before = own.get(animal, (0, 0))
                own[animal] = (before[0] + passed, before[1] + trials)
        rates = [passed / trials for passed, trials in own.values()]
        if not rates:
            return _Computed()
        # Animals that are all alike (three at the ceiling) do not show that all are.
        sd = statistics.stdev(rates) if len({*rates}) > 1 else None
        return _Computed(statistics.fmean(rates), sd, len(rates))

    def _of_curve(
        self, curve: Sequence[float], curve_sd: Sequence[float], sessions: Sequence[int]
    ) -> _Computed:
        """Return the mean of the curve over these sessions, weighted by their trials if
        they are the judged ones.

        Its standard deviation is the mean of the sessions' standard deviations. That is
        an upper bound, because the correlation between an animal's sessions is unknown.
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
        """325: the value is over other trials than the pass rate."""
        own = tuple(self.judged)
        differs = computed is not None and abs(value - computed) > ROUNDING
        remedy = "Remove 'value' and 'over' to compute the value from the curve, or set the trials that count in 'estimand'."
        place = self._place("over" if over and over != own else "value")
        if over and over != own:
            sentence = f"The animals' value covers {in_words(over)}, the pass rate {in_words(own)}."
            self.diagnostics.warning(325, place, sentence, remedy)
        elif differs:
            assert computed is not None
            sentence = (
                f"The pass rate covers {in_words(own)}, for which the animals' curve gives {computed:.2f}, "
                f"not {value:g}."
            )
            self.diagnostics.warning(325, place, sentence, remedy)

    def _check_curve(self, curve: Sequence[float], rows: Sequence[_Counted]) -> None:
        """326: the curve has other sessions than the life. Animals of a file may have
        gone on longer.
        """
        if self.spec.sessions_vary:
            return  # in animals as in models
        sessions, last = len(self.spec.sessions), max(self.judged, default=0)
        if rows:
            lived = {row[1] for row in rows}
            missing = [session for session in self.judged if session not in lived]
            # A measure need not have a value in each session.
            if missing and (
                self.written.measure == "success" or not lived & {*self.judged}
            ):
                sentence = (
                    f"No animal has {in_words(missing)}, which the pass rate covers."
                )
                remedy = "Number the sessions as the schedule does, through all blocks, or list those that count in 'over'."
                self.diagnostics.warning(326, self._place("animals"), sentence, remedy)
        elif curve and not last <= len(curve) <= sessions:
            sentence = f"The animals' curve has {len(curve)} sessions, the schedule {sessions}."
            remedy = (
                "Give one value for each session of the schedule, through all blocks."
            )
            self.diagnostics.warning(326, self._place("curve"), sentence, remedy)

    def _check_animals(self, rows: Sequence[_Counted], sessions: Sequence[int]) -> None:
        """332: animals that are not those that are judged."""
        lived: dict[str, set[int]] = {}
        for animal, session, *_ in rows:
            lived.setdefault(animal, set()).add(session)
        self._check_names(lived)
        if self.spec.sessions_vary or self.written.measure != "success":
            return  # a measure need not have a value in each session
        short = [name for name, own in lived.items() if not {*sessions} <= own]
        if short and len(short) < len(lived):
            lacks = in_words(sorted({*sessions} - lived[short[0]]))
            sentence = (
                f"{len(short)} of {len(lived)} animals lack sessions that count (first '{quoted(short[0], 40)}', "
                f"{lacks})."
            )
            remedy = "Leave out animals that dropped out, or name sessions that all have in 'over'."
            self.diagnostics.warning(332, self._place("animals"), sentence, remedy)

    def _check_names(self, animals: Iterable[str]) -> None:
        spelt: dict[str, str] = {}
        for animal in animals:
            other = spelt.setdefault(animal.casefold(), animal)
            if other != animal:
                sentence = (
                    f"'{quoted(other, 40)}' and '{quoted(animal, 40)}' are two animals."
                )
                self.diagnostics.warning(
                    332, self._place("animals"), sentence, "Spell a name in one way."
                )

    def _place(self, key: str) -> Position:
        child = self.node.child(key)
        return self.node.position if child is None else child.position


class _Computed:
    """The computed parts of a reference; None where unknown."""

    def __init__(
        self, value: float | None = None, sd: float | None = None, n: int | None = None
    ) -> None:
        self.value, self.sd, self.n = value, sd, n


def _trials(rows: Sequence[_Counted], sessions: Set[int]) -> Counter[str]:
    """Return the trials of each animal in these sessions."""
    found = Counter[str]()
    for animal, session, trials, _ in rows:
        if session in sessions:
            found[animal] += trials
    return found


def _curves(rows: Sequence[_Counted]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation over animals by session, up to the first
    gap.
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


def in_words(sessions: Sequence[int]) -> str:
    """Return ``session 5``, ``sessions 1 to 5``, ``sessions 1, 3``."""
    if len(sessions) == 1:
        return f"session {sessions[0]}"
    if list(sessions) == list(range(sessions[0], sessions[-1] + 1)):
        return f"sessions {sessions[0]} to {sessions[-1]}"
    return f"sessions {', '.join(map(str, sessions))}"
