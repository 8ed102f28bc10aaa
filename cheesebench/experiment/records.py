"""The records of a run: all that statistics and reports ever see of it.

They are plain data, written to the run log and read back from it; ``FORMAT`` is their version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cheesebench.interfaces import Memory, Value

#: Version of the run log and of these records.
FORMAT = 3

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

#: Cause of a trial that was not run because it could not have changed the verdict.
SETTLED = "settled"
#: Why a subject has no more trials: its life is complete, it was stopped because it could change nothing, it broke off.
End = Literal["complete", "settled", "broken"]

#: Numbers of subjects at which a sequential cell is judged, as far as its largest number allows.
LOOKS = (6, 10, 14, 18, 24, 30, 40, 50, 60)


def looks_until(most: int, looks: Sequence[int] = LOOKS) -> tuple[int, ...]:
    """Return the looks of a cell that has at most so many subjects: the last look is at all of them."""
    return (*(look for look in looks if look < most), most)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial of one subject.

    ``trial`` counts from 0 over the life, ``session`` from 1 over the life. ``actions`` has one letter per step
    (``FLRS``; ``.`` is a frozen step that the runner waited through). ``tally`` holds what the agent counted
    (``calls``, ``unparsed``, ...). A trial that could not be run has ``missing`` set to its cause
    (``"infrastructure"`` or ``"budget"``), ``outcome`` None and ``success`` None; ``"settled"`` is one that was not run
    because no outcome could have changed the verdict.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals:
    """What calls to a model came to: numbers of them, tokens, dollars (of those with a known price), seconds.

    Cached and written tokens are part of the prompt's, reasoning tokens part of the completion's. ``attempts`` counts
    retries too; ``seconds`` is the time that the answered attempts took, summed up.
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

    def __add__(self, other: CallTotals) -> CallTotals:
        """Return the sum, number by number."""
        return CallTotals(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})

    def __sub__(self, other: CallTotals) -> CallTotals:
        """Return the difference, number by number."""
        return CallTotals(**{name: getattr(self, name) - getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCalls:
    """The calls of one cell: what they came to, and the names under which the server has answered."""

    totals: CallTotals
    served_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceValue:
    """The animals' number that a cell is compared with, as the protocol declares it.

    ``value`` and ``interval`` (two-sided 95 %) are proportions; ``curve`` is the pass rate by session, from
    session 1, and ``curve_sd`` its standard deviation between animals. ``sd`` is the standard deviation between
    animals of each animal's own rate over the sessions ``over``: with ``n_animals``, two groups of subjects are
    compared. Without it and without an interval the value is used as a point. ``kind`` is ``"analogy"`` where the
    source measured another event than ``success``.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Construct:
    """What a protocol claims to measure: lesions by name, each with the pass rate that may be left of it.

    ``status`` is ``"validated"`` where the audit has tried these lesions on this very protocol and they hold,
    ``"failed"`` where one does not, and ``"declared"`` where it was not asked.
    """

    name: str
    abolished_by: tuple[tuple[str, float], ...]
    status: Literal["validated", "failed", "declared"] = "declared"


@dataclass(frozen=True, slots=True, kw_only=True)
class LesionClaim:
    """What a protocol's construct says of the lesion of a control cell.

    ``words`` is what its subjects lack (``without landmarks``), ``at_most`` the pass rate that may be left, or None
    where the construct says nothing of it; ``spared`` where it must not matter.
    """

    words: str
    at_most: float | None = None
    spared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """One cell of the run, known before it starts: a model on a protocol in a view.

    ``trials`` is the number planned per subject (an upper bound where a block has ``until``), ``estimand`` is
    ``"all"``, ``"last:K"`` or ``"block:NAME"``, ``chance`` the random agent's measured pass rate stated by the
    protocol, ``claims`` False for designs that never make a PASS or FAIL claim (``smoke``). ``variant`` is what
    this cell changes on purpose (``history=1``, ``control=reward-shuffled``; empty for the plain cell). For a
    language model ``agent`` is the agent that asks it, and ``settings`` (JSON values) is every parameter that
    can change a reply. ``against`` says what a verdict is about: as good as the reference, or better than chance.
    ``construct`` is what the protocol claims to measure (None: it is not validated), ``lesion`` what it says of the
    channel that a control takes from its subjects.
    ``looks`` are the numbers of subjects at which a sequential cell is judged, rising, ``subjects`` being the last;
    empty where all subjects are judged at once.
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
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    against: Literal["reference", "chance"] = "reference"
    construct: Construct | None = None
    lesion: LesionClaim | None = None
    looks: tuple[int, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether there is anything that a verdict could be about."""
        return self.reference is not None if self.against == "reference" else self.chance is not None

    @property
    def label(self) -> str:
        """Name of the cell among those of its model: the protocol, and for a dialogue what is asked."""
        return f"{self.protocol}[{self.variant}]" if self.variant.condition else self.protocol

    @property
    def series(self) -> str:
        """What cells that are summed up together share beside model and view: the variant, or the temperature."""
        if not self.variant.condition:
            return str(self.variant)
        temperature = self.settings.get("temperature")
        return "" if temperature is None else f"temperature {temperature:g}"

    @property
    def in_words(self) -> bool:
        """Whether it is a dialogue: questions and answers, nothing to look at, nothing kept from one to the next."""
        return bool(self.variant.condition)

    @property
    def control(self) -> str:
        """Name of the control that this cell is; empty for all others."""
        return self.variant.control

    @property
    def plain_key(self) -> CellKey:
        """The cell that a control is compared with (any other cell: itself)."""
        return (self.model, self.protocol, self.view, str(replace(self.variant, control="")))

    @property
    def key(self) -> CellKey:
        """What tells cells of one run apart."""
        return (self.model, self.protocol, self.view, str(self.variant))
