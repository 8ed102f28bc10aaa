"""A protocol after all checks: what the compiler reads. Plain frozen data, picklable, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cheesebench.protocol.arena import Arena
from cheesebench.protocol.diagnostics import Diagnostic, Position
from cheesebench.protocol.documents import ProtocolDocument
from cheesebench.protocol.expressions import Expression, Type
from cheesebench.protocol.values import Scope

#: A value at run time: numbers, names, sets of them; None is ``none``.
RuntimeValue = float | int | str | None | frozenset[str | float | int]


@dataclass(frozen=True, slots=True)
class Place:
    """A zone, group, door or solid by name, or (``variable``) the variable that holds one."""

    name: str
    variable: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """``set`` or ``add`` of one variable."""

    variable: str
    value: Expression


@dataclass(frozen=True, slots=True)
class EffectsSpec:
    """Effects in their fixed order."""

    set: tuple[Assignment, ...] = ()
    add: tuple[Assignment, ...] = ()
    count: tuple[str, ...] = ()
    reward: Expression | None = None
    place: Place | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing happens."""
        return self == EffectsSpec()


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """One rule of a state or of ``watch``; exactly one of target, after and action belongs to its trigger."""

    trigger: str
    target: Place | None
    after: Expression | None
    action: int | None
    guard: Expression | None
    p: Expression | None
    effects: EffectsSpec
    go: str | None
    end: str | None
    position: Position
    text: str
    """The trigger as the author would say it, such as ``enter arm``."""


@dataclass(frozen=True, slots=True)
class StateSpec:
    """One state. ``show`` pairs places with a glyph or (``variable``) the variable that holds one."""

    name: str
    entry: EffectsSpec
    say: tuple[str, ...]
    show: tuple[tuple[Place, Place], ...]
    close: tuple[Place, ...]
    freeze: bool
    each: EffectsSpec
    rules: tuple[RuleSpec, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class VariableSpec:
    """A variable: ``type`` is that of all its values, ``initial`` what it takes when ``per`` begins."""

    name: str
    type: Type
    initial: RuntimeValue
    per: Scope


@dataclass(frozen=True, slots=True)
class DrawSpec:
    """A draw: ``rows`` are tuples of values, one for each of ``columns``."""

    name: str
    per: Scope
    order: str
    columns: tuple[str, ...]
    rows: tuple[tuple[RuntimeValue, ...], ...]
    pick: int | None
    copies: int
    max_run: int | None
    keep_if: Expression | None


@dataclass(frozen=True, slots=True)
class GuardedName:
    """A state or an outcome, and the condition under which it is meant (None: always)."""

    guard: Expression | None
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class UntilSpec:
    """Ends a block repetition once ``count`` of the last ``of`` outcomes are in ``outcomes``."""

    outcomes: frozenset[str]
    count: int
    of: int


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """One block of the schedule."""

    name: str
    sessions: int
    trials: int
    repeat: int
    set: tuple[tuple[str, RuntimeValue], ...]
    until: UntilSpec | None


@dataclass(frozen=True, slots=True)
class StartSpec:
    """Where a trial begins; ``face`` is a heading, ``random`` or (``face_variable``) a variable's name."""

    at: Place
    face: str
    face_variable: bool
    carry: bool


@dataclass(frozen=True)
class BaseSpecification:
    """What protocols of every family have: one paradigm in one edition.

    ``text`` is the resolved protocol (ancestors merged) as canonical JSON; ``sha256`` is over the part of it that
    can change a life or a verdict (``documents`` keys other than descriptions, tests and stated chance levels).
    """

    paradigm: str
    edition: str
    family: str
    path: str
    text: str
    sha256: str
    ancestors: tuple[str, ...]

    @property
    def name(self) -> str:
        """``paradigm``, or ``paradigm@edition`` for every edition but the default one."""
        return self.paradigm if self.edition == "paper" else f"{self.paradigm}@{self.edition}"


@dataclass(frozen=True)
class Specification(BaseSpecification):
    """One paradigm of the arena family, resolved and checked."""

    document: ProtocolDocument
    arena: Arena
    variables: Mapping[str, VariableSpec]
    draws: tuple[DrawSpec, ...]
    columns: Mapping[str, Type]
    counters: tuple[str, ...]
    start: StartSpec
    limit: int | str
    entry: tuple[GuardedName, ...]
    states: Mapping[str, StateSpec]
    each: EffectsSpec
    watch: tuple[RuleSpec, ...]
    finish: tuple[GuardedName, ...]
    schedule: tuple[BlockSpec, ...]
    success: Expression | None
    where: Expression | None
    measures: Mapping[str, Expression]
    outcomes: tuple[str, ...]
    warnings: tuple[Diagnostic, ...] = ()
    test_positions: tuple[Position, ...] = ()
    """Where each of ``document.tests`` stands."""

    @property
    def title(self) -> str:
        """Title for people."""
        return self.document.title or self.paradigm.replace("_", " ").capitalize()

    def drawn(self, variable: str) -> list[str]:
        """Return the names that a draw can give to a column; none for any other variable."""
        found: dict[str, None] = {}
        for draw in self.draws:
            if variable in draw.columns:
                column = draw.columns.index(variable)
                found.update((str(row[column]), None) for row in draw.rows if row[column] is not None)
        return list(found)

    @property
    def planned_trials(self) -> int:
        """Trials of one life; an upper bound where a block has ``until``."""
        return sum(block.repeat * block.sessions * block.trials for block in self.schedule)

    @property
    def estimand(self) -> str:
        """``all``, ``last:K`` or ``block:NAME,NAME``: the trials that the pass rate is taken over (if ``where``)."""
        estimand = self.document.estimand
        if isinstance(estimand, str):
            return estimand
        if estimand.last is not None:
            return f"last:{estimand.last}"
        return "all" if estimand.block is None else f"block:{','.join(estimand.block)}"

    @property
    def judged_blocks(self) -> tuple[str, ...]:
        """The blocks whose trials can enter the pass rate."""
        estimand = self.document.estimand
        chosen = None if isinstance(estimand, str) else estimand.block
        return tuple(block.name for block in self.schedule if chosen is None or block.name in chosen)

    @property
    def goal_visible(self) -> bool:
        """Whether a rewarded place is drawn unlike its neighbours (a warning of the checks says so)."""
        return any(d.code == VISIBLE_GOAL for d in self.warnings)


#: Code of the warning that a rewarded place can be told from the picture.
VISIBLE_GOAL = 311
