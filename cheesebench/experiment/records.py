"""The records of a run: the only input of statistics and reports.

They are plain data, stored in the run log; ``FORMAT`` is their version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeGuard

from cheesebench.interfaces import Memory, Value

#: Version of the run log and of these records.
FORMAT = 4

#: The model of a cell whose subjects are people (``cheesebench people``).
PERSON = "human"

#: Model, protocol, view and variant: what tells the cells of one run apart.
CellKey = tuple[str, str, str, str]

#: Beginning of the part of a variant that names a control.
_CONTROL = "control="


@dataclass(frozen=True, slots=True)
class Variant:
    """What a cell changes on purpose; its text (``str``) is what the log, ids and reports have.

    ``settings`` are the levels of a study by name (``history=1``), ``control`` is the name of a control, without
    ``control=``. ``condition`` is what is asked, for protocols that ask several things of a subject that looks at
    nothing: cells of such a protocol are told apart by condition, not by view.
    """

    settings: tuple[tuple[str, str], ...] = ()
    control: str = ""
    condition: str = ""

    def __str__(self) -> str:
        levels = (f"{name}={level}" for name, level in self.settings)
        control = f"{_CONTROL}{self.control}" if self.control else ""
        return ",".join(filter(None, (self.condition, *levels, control)))

    def __bool__(self) -> bool:
        return self != Variant()

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Return the variant whose text this is; a comma without a name after it is part of a level."""
        rest, found, control = f",{text}".partition(f",{_CONTROL}")
        condition, settings = "", list[tuple[str, str]]()
        for part in rest[1:].split(",") if rest[1:] else ():
            name, equals, level = part.partition("=")
            if equals:
                settings.append((name, level))
            elif settings:
                settings[-1] = (settings[-1][0], f"{settings[-1][1]},{part}")
            else:
                condition = f"{condition},{part}" if condition else part
        return cls(tuple(settings), control if found else "", condition)


#: The variant of a cell that changes nothing.
PLAIN = Variant()

#: No measurement is larger; the squares of squares of such numbers, and their sums, are finite.
LARGEST = 1e30


def is_measurement(value: object) -> TypeGuard[float]:
    """Return whether a value is a number that can be reckoned with: finite, and no larger than LARGEST."""
    return isinstance(value, int | float) and -LARGEST <= value <= LARGEST


#: Cause of a trial that was not run because it could not have changed the verdict.
SETTLED = "settled"
#: Why a subject has no more trials: its life is complete, it was stopped because it could change nothing, it broke off.
End = Literal["complete", "settled", "broken"]

#: Numbers of subjects at which a sequential cell is judged, as far as its largest number allows.
LOOKS = (6, 10, 14, 18, 24, 30, 40, 50, 60, 75)


def looks_until(most: int, looks: Sequence[int] = LOOKS) -> tuple[int, ...]:
    """Return the looks of a cell with at most ``most`` subjects; the last look is at all of them."""
    return (*(look for look in looks if look < most), most)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial of one subject.

    ``trial`` counts from 0 and ``session`` from 1, over the subject's whole schedule. ``actions`` has one letter per
    step (``FLRS``; ``.`` is a frozen step, for which the agent was not asked). ``tally`` holds the agent's counters
    (``calls``, ``unparsed``, ...). A trial that could not be run has ``outcome`` and ``success`` None, and its cause in
    ``missing``: ``"infrastructure"``, ``"budget"``, or ``"settled"`` if no outcome could have changed the verdict.
    """

    model: str
    protocol: str
    view: str
    variant: str = ""
    subject: int
    trial: int
    block: str = ""
    session: int = 0
    outcome: str | None = None
    success: bool | None = None
    compared: bool = True
    reward: float = 0.0
    steps: int = 0
    path_length: int = 0
    bumps: int = 0
    actions: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    measures: Mapping[str, Value] = field(default_factory=dict)
    variables: Mapping[str, Value] = field(default_factory=dict)
    tally: Mapping[str, int] = field(default_factory=dict)
    missing: str = ""

    @property
    def key(self) -> CellKey:
        """The cell that it belongs to."""
        return (self.model, self.protocol, self.view, self.variant)


class Summable:
    """A dataclass with slots whose fields are numbers that add up."""

    __slots__: tuple[str, ...] = ()

    def __add__(self, other: Self) -> Self:
        """Return the field-by-field sum."""
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals(Summable):
    """Totals of calls to a model: numbers of calls, tokens, dollars (of calls with a known price), seconds.

    Cached and written tokens are included in ``prompt``, reasoning tokens in ``completion``. ``attempts`` includes
    retries, ``malformed`` are those of them whose answer was no reply (wrong shape, a tool call, or refused and asked
    again); ``seconds`` is the total time of the successful attempts.
    """

    calls: int = 0
    attempts: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    written: int = 0
    malformed: int = 0

    def __sub__(self, other: CallTotals) -> CallTotals:
        """Return the field-by-field difference."""
        return CallTotals(**{name: getattr(self, name) - getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCalls:
    """The calls of one cell: totals, and the model names that the server reported."""

    totals: CallTotals
    served_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measure that a verdict is about instead of the pass rate.

    ``better`` is its better side, ``range`` its lowest and highest possible value (None: it has no bounds).
    """

    name: str
    better: Literal["higher", "lower"] = "higher"
    range: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceValue:
    """The animals' value that a cell is compared with, as declared by the protocol.

    It is a pass rate, or the mean of the measure that ``measured`` names: then value, spread and the plan's ``margin``
    are in that measure's unit. Otherwise ``value`` and ``interval`` (two-sided 95 %) are proportions. ``curve`` is the
    pass rate by session, from session 1, and ``curve_sd`` its standard deviation between animals. ``sd`` is the
    standard deviation between animals of each animal's own rate over the sessions ``over``: with ``n_animals``, two
    groups of subjects are compared. Without it and without an interval the value is used as a constant. ``kind`` is
    ``"analogy"`` if the source measured a different event from ``success``.
    """

    value: float
    interval: tuple[float, float] | None = None
    n_animals: int | None = None
    sd: float | None = None
    kind: Literal["measured", "declared", "analogy"] = "declared"
    curve: tuple[float, ...] = ()
    curve_sd: tuple[float, ...] = ()
    over: tuple[int, ...] = ()
    species: str = ""
    source: str = ""
    status: str = ""
    measured: Measured | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Construct:
    """What a protocol claims to measure: lesions by name, each with the highest pass rate allowed under it.

    ``status`` is ``"validated"`` if an audit of this exact protocol has confirmed these lesions, ``"failed"`` if it has
    refuted one, and ``"declared"`` without an audit.
    """

    name: str
    abolished_by: tuple[tuple[str, float], ...]
    status: Literal["validated", "failed", "declared"] = "declared"


@dataclass(frozen=True, slots=True, kw_only=True)
class LesionClaim:
    """The prediction of a protocol's construct for the lesion of a control cell.

    ``words`` is what its subjects lack (``without landmarks``), ``at_most`` the highest pass rate allowed, or None
    without a prediction; ``spared``: the lesion must not matter.
    """

    words: str
    at_most: float | None = None
    spared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """One planned cell of a run: a model on a protocol in a view.

    ``trials`` is the number planned per subject (an upper bound if a block has ``until``), ``estimand`` is ``"all"``,
    ``"last:K"`` or ``"block:NAME"``, ``chance`` the random agent's pass rate declared by the protocol, ``claims`` False
    for designs that never give a PASS or FAIL (``smoke``). ``variant`` has the deliberate changes of this cell
    (``history=1``, ``control=reward-shuffled``; empty for the plain cell). For a language model, ``agent`` is the agent
    that prompts it, and ``settings`` (JSON values) has every parameter that can affect a reply. ``against``: the
    verdict is about being as good as the reference, or better than chance. ``construct`` is what the protocol claims to
    measure (None: not validated), ``lesion`` its prediction for the lesion of a control cell. ``looks`` are the numbers
    of subjects at which a sequential cell is judged, ascending, the last being ``subjects``; empty if all subjects are
    judged at once.
    """

    model: str
    protocol: str
    view: str
    title: str
    dimension: str
    species: str
    sha256: str
    design: str
    subjects: int
    trials: int
    memory: Memory
    estimand: str = "all"
    margin: float = 0.10
    reference: ReferenceValue | None = None
    chance: float | None = None
    goal_visible: bool = False
    claims: bool = True
    variant: Variant = PLAIN
    agent: str = ""
    split: tuple[str, ...] = ()
    by: tuple[tuple[str, str], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    against: Literal["reference", "chance"] = "reference"
    construct: Construct | None = None
    lesion: LesionClaim | None = None
    looks: tuple[int, ...] = ()

    @property
    def measured(self) -> Measured | None:
        """The measure that the verdict is about; None for the pass rate."""
        return None if self.reference is None else self.reference.measured

    @property
    def comparable(self) -> bool:
        """Whether there is a reference (or a chance level) for a verdict."""
        return self.reference is not None if self.against == "reference" else self.chance is not None

    @property
    def label(self) -> str:
        """Name of the cell among those of its model: the protocol, and for a dialogue its condition."""
        return f"{self.protocol}[{self.variant}]" if self.variant.condition else self.protocol

    @property
    def series(self) -> str:
        """Variant (or temperature) shared by cells of one model and view that are summarised together."""
        if not self.variant.condition:
            return str(self.variant)
        temperature = self.settings.get("temperature")
        return "" if temperature is None else f"temperature {temperature:g}"

    @property
    def in_words(self) -> bool:
        """Whether it is a dialogue: independent questions and answers without an arena."""
        return bool(self.variant.condition)

    @property
    def control(self) -> str:
        """Name of the control; empty for plain cells."""
        return self.variant.control

    @property
    def plain_key(self) -> CellKey:
        """Key of the cell that a control is compared with (for any other cell: its own key)."""
        return (self.model, self.protocol, self.view, str(replace(self.variant, control="")))

    @property
    def key(self) -> CellKey:
        """Identifies the cell within a run."""
        return (self.model, self.protocol, self.view, str(self.variant))
