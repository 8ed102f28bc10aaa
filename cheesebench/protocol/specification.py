"""A protocol after all checks, as the compiler reads it: plain, frozen data that can be
pickled.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from cheesebench import records
from cheesebench.diagnostics import Diagnostic, Diagnostics, Position
from cheesebench.errors import ProtocolError
from cheesebench.interfaces import BaseSpecification
from cheesebench.lesions import LANDMARKS, TEXT, Lesion
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.arena import Arena
from cheesebench.protocol.documents import ProtocolDocument, Scope
from cheesebench.statistics.intervals import clustering
from cheesebench.statistics.question import thresholds


@dataclass(frozen=True, slots=True)
class Place:
    """The name of a zone, group, door, solid, landmark or glyph or, if ``variable``,
    the name of the variable that holds it.
    """

    name: str
    variable: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """An entry of ``set``, ``add`` or ``remove``: a variable, and the value that is
    set, added or removed.
    """

    variable: str
    value: ex.Expression


@dataclass(frozen=True, slots=True)
class EffectsSpec:
    """Effects in their fixed order."""

    set: tuple[Assignment, ...] = ()
    add: tuple[Assignment, ...] = ()
    remove: tuple[Assignment, ...] = ()
    count: tuple[str, ...] = ()
    reward: ex.Expression | None = None
    place: Place | None = None
    put: tuple[ex.Expression, ex.Expression] | None = None
    """Column and row on the map, as expressions."""

    @property
    def empty(self) -> bool:
        return self == EffectsSpec()

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Every assignment to a variable, in the order of execution."""
        return (*self.set, *self.add, *self.remove)


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """A rule of a state or of ``watch``. Its trigger decides which of ``target``,
    ``after``, ``action`` and ``whatever`` is set.
    """

    trigger: str
    target: Place | None
    after: ex.Expression | None
    action: int | None
    guard: ex.Expression | None
    p: ex.Expression | None
    effects: EffectsSpec
    go: str | None
    end: str | None
    position: Position
    text: str
    """The trigger as written, such as ``enter arm``."""
    whatever: bool = False
    """Whether the rule is about any action (``act: any``), or about anything that
    blocks the way (``press: any``).
    """


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A state. ``show`` pairs places with glyphs, or with variables that hold a
    glyph.
    """

    name: str
    entry: EffectsSpec
    say: tuple[str, ...]
    show: tuple[tuple[Place, Place], ...]
    close: tuple[Place, ...]
    open: tuple[Place, ...]
    """Doors that stay open although ``close`` names them."""
    freeze: bool
    each: EffectsSpec
    rules: tuple[RuleSpec, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class VariableSpec:
    """A variable, its type, and the value to which it is reset
    whenever ``per`` begins.
    """

    name: str
    type: ex.Type
    initial: ex.RuntimeValue
    per: Scope


@dataclass(frozen=True, slots=True)
class DrawSpec:
    """A draw. Each of ``rows`` has one value for each of ``columns``."""

    name: str
    per: Scope
    order: str
    columns: tuple[str, ...]
    rows: tuple[tuple[ex.RuntimeValue, ...], ...]
    pick: int | None
    copies: int
    max_run: int | None
    keep_if: ex.Expression | None
    sample: str | None = None
    """The group or set whose members are dealt to ``columns`` in random order. ``rows``
    is then empty. None: ``rows`` are drawn.
    """


@dataclass(frozen=True, slots=True)
class GuardedName:
    """A possible initial state. A trial takes the first whose ``guard`` holds or is
    None.
    """

    guard: ex.Expression | None
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class FinishSpec:
    """An entry of ``finish``. After a rule has fired, unless it ended the trial, the
    first entry whose ``guard`` holds or is None ends the trial or goes to its state.
    Entries that lead to the present state are passed over.
    """

    guard: ex.Expression | None
    end: str | None
    go: str | None
    position: Position


#: Marks a trial that met the condition of ``until``. No outcome can have this name.
MET = "met "
#: Maximum number of known names that a message about an unknown one lists.
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class UntilSpec:
    """A criterion that ends a block or one of its repetitions. It is met once ``count``
    of the last ``of`` trials (for a block: repetitions) ended in ``outcomes``, or met
    ``condition``.
    """

    outcomes: frozenset[str]
    count: int
    of: int
    condition: ex.Expression | None = None

    def met(self, noted: Iterable[str | None]) -> bool:
        """Return whether at least ``count`` trials in ``noted`` match the criterion.
        ``noted`` has at most the last ``of`` trials.
        """
        return sum(one in self.outcomes for one in noted) >= self.count

    def still_counts(self, noted: Sequence[str | None]) -> tuple[bool, ...]:
        """Return which of the last trials match the criterion, from the latest back to
        the earliest that can still matter.

        If a trial is one miss too many, it and all earlier trials leave the window of
        ``of`` trials before the criterion can be met.
        """
        kept, misses = list[bool](), 0
        for one in reversed(noted):
            misses += one not in self.outcomes
            if misses > self.of - self.count:
                break
            kept.append(one in self.outcomes)
        while kept and not kept[-1]:
            kept.pop()
        return tuple(kept)


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """A block of the schedule. It has at most ``repeat`` repetitions, with at most
    ``most`` trials in total (None: no such limit). The criterion ``until`` ends a
    repetition early (None: there is none).
    """

    name: str
    sessions: int
    trials: int
    repeat: int
    set: tuple[tuple[str, ex.RuntimeValue], ...]
    until: UntilSpec | None
    most: int | None = None
    ends: UntilSpec | None = None
    """The criterion that ends the block early (None: there is none). It counts
    repetitions, by their last trials.
    """

    @property
    def planned(self) -> int:
        """Number of trials of the block if no criterion ends it."""
        whole = self.repeat * self.sessions * self.trials
        return whole if self.most is None else min(whole, self.most)

    @property
    def sittings(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name, the number of sessions, and the number of trials of each. A
        last session that ``most`` cuts short comes separately.
        """
        whole, rest = divmod(self.planned, self.trials)
        if whole:
            yield self.name, whole, self.trials
        if rest:
            yield self.name, 1, rest

    @property
    def criteria(self) -> tuple[UntilSpec, ...]:
        return tuple(one for one in (self.until, self.ends) if one is not None)


@dataclass(frozen=True, slots=True)
class StartSpec:
    """Where a trial begins. ``face`` is a heading, ``random`` or, if ``face_variable``,
    the name of a variable.
    """

    at: Place
    face: str
    face_variable: bool
    carry: bool


@dataclass(frozen=True, slots=True)
class ConstructSpec:
    """The construct. ``abolished_by`` pairs each lesion with the highest pass rate that
    it may leave. ``allows`` names classes of subjects with little memory that may pass.
    """

    name: str
    kind: str
    abolished_by: tuple[tuple[Lesion, float], ...]
    spared_by: tuple[Lesion, ...]
    allows: tuple[str, ...] = ()


class Dose(NamedTuple):
    """The training of one subject: the number of trials before the judged trials, and
    the number of judged trials. ``of`` is the word for what is counted.
    """

    before: int
    judged: int
    of: str = "trials"

    def __str__(self) -> str:
        return f"{self.before} + {self.judged} {self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSpec:
    """A reference value with its provenance. ``kind`` says whether it was measured.

    ``over`` has the sessions that ``value`` covers. It is empty if they are unknown.
    ``sd`` is the standard deviation between the animals' rates (or mean values).
    ``interval``, ``n_animals`` and ``sd`` are None if they are unknown. ``curve`` has
    the mean in each session, from session 1, and ``curve_sd`` the standard deviation
    between animals in each session. ``dose`` is the animals' training (None: unknown).
    With ``better``, the verdict is about this measure, and ``margin`` and ``range`` are
    in its unit (a ``range`` of None: unbounded). ``counts`` has the passes and the
    trials of each animal in these sessions; it is empty without rows of animals.
    """

    measure: str
    value: float
    interval: tuple[float, float] | None
    n_animals: int | None
    sd: float | None
    kind: Literal["measured", "declared", "analogy", "invented"]
    curve: tuple[float, ...]
    curve_sd: tuple[float, ...]
    over: tuple[int, ...]
    where: str | None
    species: str
    source: str
    status: str
    better: Literal["higher", "lower", "alike"] | None = None
    margin: float | None = None
    range: tuple[float, float] | None = None
    dose: Dose | None = None
    counts: tuple[tuple[float, int], ...] = ()

    @property
    def icc(self) -> float | None:
        """The intraclass correlation of an animal's trials, from the animals' rows.

        It is None without rows, for a measure, and if the rows cannot show it: if there
        is one animal, if each has one trial, or if no trial differs from the others.
        """
        passed, trials = [one for one, _ in self.counts], [n for _, n in self.counts]
        shows = len(trials) > 1 and max(trials) > 1 and 0 < sum(passed) < sum(trials)
        return clustering(passed, trials)[0] if shows else None

    @property
    def bar(self) -> float:
        """The value that a measure needs for a PASS. It is the reference minus the
        margin if higher is better, and otherwise plus the margin (for ``alike`` the
        upper of two bounds).
        """
        return self.value - (self.margin or 0.0) * (
            1 if self.better == "higher" else -1
        )

    @property
    def record(self) -> records.ReferenceValue:
        """The reference as records and statistics use it, without ``dose``, ``where``
        and ``margin``. It names the measure only if the verdict is about the measure,
        and has a ``range``.
        """
        measured = None
        if self.better is not None and self.range is not None:
            measured = records.Measured(
                name=self.measure, better=self.better, range=self.range
            )
        return records.ReferenceValue(
            value=self.value,
            interval=self.interval,
            n_animals=self.n_animals,
            sd=self.sd,
            kind=self.kind,
            curve=self.curve,
            curve_sd=self.curve_sd,
            over=self.over,
            species=self.species,
            source=self.source,
            status=self.status,
            measured=measured,
        )

    @property
    def has_spread(self) -> bool:
        """Whether the spread between animals is known, so that subjects can be compared
        with them as a group.
        """
        return self.sd is not None and self.n_animals is not None and self.n_animals > 1

    @property
    def nature(self) -> str:
        """The kind of the reference. An analogy without a known error is "analogy,
        declared".
        """
        if self.kind != "analogy" or self.has_spread or self.interval is not None:
            return self.kind
        return "analogy, declared"

    @property
    def training(self) -> str:
        """The animals' dose in words, or "" if it is unknown."""
        said = "" if self.dose is None else str(self.dose)
        return f"{said} (declared)" if said and "declared" in self.nature else said


@dataclass(frozen=True)
class Specification(BaseSpecification):
    """One paradigm of the arena family, resolved and checked."""

    document: ProtocolDocument
    arena: Arena
    variables: Mapping[str, VariableSpec]
    draws: tuple[DrawSpec, ...]
    columns: Mapping[str, ex.Type]
    counters: tuple[str, ...]
    start: StartSpec
    limit: int | str
    entry: tuple[GuardedName, ...]
    states: Mapping[str, StateSpec]
    each: EffectsSpec
    watch: tuple[RuleSpec, ...]
    finish: tuple[FinishSpec, ...]
    schedule: tuple[BlockSpec, ...]
    success: ex.Expression | None
    where: ex.Expression | None
    measures: Mapping[str, ex.Expression]
    outcomes: tuple[str, ...]
    references: tuple[ReferenceSpec, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    construct: ConstructSpec | None = None
    test_positions: tuple[Position, ...] = ()
    """The position of each of ``document.tests`` in the file."""

    @property
    def bar(self) -> float | None:
        """The pass rate, or mean of the measure, beyond which enough subjects give a
        PASS, or None if there is no reference.
        """
        judged = self.judged
        if judged is None:
            return None
        margin = self.document.margin if judged.better is None else judged.margin
        return thresholds(judged.record, margin or 0.0)[0]

    @property
    def most_calls(self) -> int:
        """The step limit of a trial, or 1 if it is a variable."""
        return self.limit if isinstance(self.limit, int) else 1

    def obstacle(self, lesion: Lesion) -> str:
        arena = self.arena
        states = f"only {', '.join(self.states)}"
        for state in sorted(lesion.forgets_at):
            if state not in self.states:
                return f"there is no state '{state}', {states}"
        for name in sorted(lesion.hide):
            kind, colon, rest = name.partition(":")
            if kind == "text" and colon and rest not in self.states:
                return f"there is no state '{rest}', {states}"
            if name == LANDMARKS and not arena.landmarks:
                return "there are no landmarks"
            places = (arena.zones, arena.doors, arena.solids, arena.groups)
            is_known = (
                any(name in known for known in places)
                or arena.landmark(name) is not None
            )
            if not colon and name not in (LANDMARKS, TEXT) and not is_known:
                known = [*dict.fromkeys(one for place in places for one in place)]
                known += [one.name for one in arena.landmarks]
                more = ", ..." * (len(known) > _SHOWN)
                return (
                    f"there is no zone, group, door, solid or landmark '{name}', only "
                    f"{', '.join(known[:_SHOWN])}{more}"
                )
        return ""

    def drawn(self, variable: str) -> list[str]:
        """Return the names that a draw can give to a column, or an empty list for any
        other variable.
        """
        return self._drawn(variable, len(self.draws))

    def _drawn(self, variable: str, before: int) -> list[str]:
        """Return the same as ``drawn``, but only from the first ``before`` draws. A
        draw can only deal out sets of earlier draws.
        """
        found: dict[str, None] = {}
        for number, draw in enumerate(self.draws[:before]):
            if variable in draw.columns:
                column = draw.columns.index(variable)
                found.update(
                    (str(row[column]), None)
                    for row in draw.rows
                    if row[column] is not None
                )
                if draw.sample is not None:
                    dealt = self.arena.groups.get(draw.sample) or self._drawn(
                        draw.sample, number
                    )
                    found.update(dict.fromkeys(dealt))
        return list(found)

    @property
    def planned_blocks(self) -> tuple[tuple[str, int, int, bool], ...]:
        """For each block, in order: its name, its number of sessions, the number of
        trials of each, and whether ``where`` may hold in it. A shorter last session has
        an entry of its own.
        """
        return tuple(
            (*sitting, _holds_in(block.name, self.where) is not False)
            for block in self.schedule
            for sitting in block.sittings
        )

    @property
    def planned_trials(self) -> int:
        """Number of trials of one subject, or an upper bound if a block has
        ``until``.
        """
        return sum(block.planned for block in self.schedule)

    @property
    def estimand(self) -> str:
        """``all``, ``last:K`` or ``block:NAME,NAME``: the trials that count (if
        ``where`` holds).
        """
        estimand = self.document.estimand
        if isinstance(estimand, str):
            return estimand
        if estimand.last is not None:
            return f"last:{estimand.last}"
        return "all" if estimand.block is None else f"block:{','.join(estimand.block)}"

    @property
    def judged_blocks(self) -> tuple[str, ...]:
        """The blocks whose trials can count."""
        estimand = self.document.estimand
        if not isinstance(estimand, str) and estimand.last is not None:
            return self._last_blocks(estimand.last)
        chosen = None if isinstance(estimand, str) else estimand.block
        return tuple(
            block.name
            for block in self.schedule
            if (chosen is None or block.name in chosen)
            and _holds_in(block.name, self.where) is not False
        )

    def _last_blocks(self, trials: int) -> tuple[str, ...]:
        """Return the blocks that the last ``trials`` trials for which ``where`` holds
        may be in.
        """
        names: list[str] = []
        for block in reversed(self.schedule):
            holds = _holds_in(block.name, self.where)
            if trials <= 0 or holds is False:
                continue
            names.insert(0, block.name)
            # Only then is it certain that every subject has these trials in the block.
            if holds and not block.criteria:
                trials -= block.planned
        return tuple(names)

    @property
    def judges_part_of_a_block(self) -> bool:
        """Whether only some trials of a block in ``judged_blocks`` count (if ``where``
        holds).
        """
        return self.judged_sessions != self.estimand_sessions

    @property
    def blocks_after_judged(self) -> frozenset[str]:
        """The blocks after the last one whose trials can count."""
        blocks = [block.name for block in self.schedule]
        last = max(map(blocks.index, self.judged_blocks), default=0)
        return frozenset(blocks[last + 1 :])

    @property
    def sessions(self) -> tuple[tuple[str, int], ...]:
        """Block and number of trials of every session of a subject, in order, if no
        ``until`` ends one early.
        """
        return tuple(
            (block.name, min(block.trials, block.planned - before))
            for block in self.schedule
            for before in range(0, block.planned, block.trials)
        )

    @property
    def sessions_vary(self) -> bool:
        """Whether the number of sessions up to the last judged trial depends on the
        subject.
        """
        after = self.blocks_after_judged
        return any(
            block.criteria and block.repeat * block.sessions > 1
            for block in self.schedule
            if block.name not in after
        )

    @property
    def estimand_sessions(self) -> dict[int, int]:
        """The number of trials of each session in ``judged_blocks`` for which ``where``
        may hold, by the number of the session (from 1).
        """
        holds, found = self._planned_holds(), dict[int, int]()
        for n, (_, trials) in enumerate(self.sessions, 1):
            held = sum(one is not False for one in itertools.islice(holds, trials))
            if held:
                found[n] = held
        return found

    @property
    def dose(self) -> Dose | None:
        """A subject's number of judged trials, and of other trials before the last of
        them. None if no trial is judged, or the numbers depend on the subject.
        """
        judged = self._judged_trials
        if self.sessions_vary or not judged:
            return None
        return Dose(judged[-1] + 1 - len(judged), len(judged))

    @property
    def _judged_trials(self) -> Sequence[int] | None:
        """The numbers (from 0) of a subject's judged trials if no ``until`` ends a
        session early, or None if ``where`` depends on more than their places.
        """
        holds = list(self._planned_holds())
        if None in holds:
            return None
        numbers = [number for number, one in enumerate(holds) if one]
        estimand = self.document.estimand
        last = None if isinstance(estimand, str) else estimand.last
        return numbers if last is None else numbers[-last:]

    def _planned_holds(self) -> Iterator[bool | None]:
        """Yield for each planned trial whether it is in ``judged_blocks`` and ``where``
        holds in it (None: unknown).
        """
        judged = self.judged_blocks
        for block in self.schedule:
            for number in range(block.planned):
                session, trial = divmod(number, block.trials)
                place: _Place = {
                    "block": block.name,
                    "session": session % block.sessions + 1,
                    "trial": trial + 1,
                }
                yield block.name in judged and _holds(self.where, place)

    @property
    def judged_sessions(self) -> dict[int, int]:
        """The number of judged trials of each session that has any, by the number of
        the session (from 1).
        """
        estimand, sessions = self.document.estimand, self.estimand_sessions
        left = None if isinstance(estimand, str) else estimand.last
        if left is None:
            return sessions
        found: dict[int, int] = {}
        for session, trials in reversed(sessions.items()):
            if left > 0:
                found[session] = min(trials, left)
                left -= trials
        return dict(reversed(found.items()))

    @property
    def reference(self) -> ReferenceSpec | None:
        """The animals' pass rate: the first reference for ``success``, or None."""
        return next((one for one in self.references if one.measure == "success"), None)

    @property
    def judged(self) -> ReferenceSpec | None:
        """The reference that the verdict uses: the first with ``better`` or, if there
        is none, the reference on the pass rate. It is None if there is neither.
        """
        return next(
            (one for one in self.references if one.better is not None), self.reference
        )

    @property
    def reported(self) -> tuple[records.Reported, ...]:
        """The references that the verdict does not use, as plans have them."""
        return tuple(
            records.Reported(
                measure=one.measure,
                animals=one.record,
                where=one.where or "",
                sessions=() if one.over == tuple(self.judged_sessions) else one.over,
            )
            for one in self.references
            if one is not self.judged
        )

    @property
    def animals_icc(self) -> float | None:
        return None if self.judged is None else self.judged.icc

    @property
    def goal_visible(self) -> bool:
        """Whether a rewarded place looks like no other square (warning 311)."""
        return any(d.code == VISIBLE_GOAL for d in self.warnings)


#: Values of the built-in names ``block``, ``session`` and ``trial`` that are known.
_Place = Mapping[str, str | float]


def _holds_in(block: str, where: ex.Expression | None) -> bool | None:
    """Return True if a condition holds in all trials of a block (or is None), False if
    it holds in none, and None if neither is known.
    """
    return _holds(where, {"block": block})


def _holds(where: ex.Expression | None, place: _Place) -> bool | None:
    """Return whether a condition holds in a place of the schedule, or None if that
    depends on more.
    """
    match where:
        case None:
            return True
        case ex.Unary("not", inner):
            holds = _holds(inner, place)
            return None if holds is None else not holds
        case ex.Binary("and" | "or" as sign, left, right):
            return _joined({_holds(left, place), _holds(right, place)}, sign == "or")
        case ex.Binary(sign, left, right) if sign in _COMPARED:
            first, second = _known(left, place), _known(right, place)
            if first is None or second is None:
                return None
            return bool(_COMPARED[sign](first, second))
    return None


def _joined(found: set[bool | None], decisive: bool) -> bool | None:
    if decisive in found:
        return decisive
    return None if None in found else not decisive


_COMPARED: Mapping[str, Callable[[Any, Any], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _known(tree: ex.Expression, place: _Place) -> str | float | None:
    match tree:
        case ex.BuiltIn(name):
            return place.get(name)
        case ex.Constant(value):
            return value
        case ex.Binary(sign, left, right):
            sides = _known(left, place), _known(right, place)
            if isinstance(sides[0], int | float) and isinstance(sides[1], int | float):
                numbers = ex.Number(sides[0]), ex.Number(sides[1])
                return ex.constant(ex.Binary(sign, *numbers))
            return None
    return ex.constant(tree)


#: Code of the warning that the picture shows a rewarded place.
VISIBLE_GOAL = 311


def arenas(specifications: Iterable[BaseSpecification]) -> list[Specification]:
    return [one for one in specifications if isinstance(one, Specification)]


def with_arena(specification: BaseSpecification) -> Specification:
    """Return the specification as one of the arena family. Raise ProtocolError if it
    is of another family.
    """
    for one in arenas([specification]):
        return one
    diagnostics, start = Diagnostics(), Position(specification.path, 1, 1)
    sentence = (
        f"'{specification.name}' is a {specification.family}, which has no arena."
    )
    diagnostics.error(
        229,
        start,
        sentence,
        f"Run it: pytest --model NAME --protocols {specification.path}.",
    )
    raise ProtocolError(findings=diagnostics.found)
