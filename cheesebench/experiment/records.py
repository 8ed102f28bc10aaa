"""The records of a run: all that statistics and reports ever see of it.

They are plain data, written to the run log and read back from it; ``FORMAT`` is their version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cheesebench.dialogue import NO_VIEW
from cheesebench.interfaces import Memory, Value

#: Version of the run log and of these records.
FORMAT = 2

#: Model, protocol, view and variant: what tells the cells of one run apart.
CellKey = tuple[str, str, str, str]

#: Beginning of the variant of a control cell (its last part, where there are several).
CONTROL = "control="


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial of one subject.

    ``trial`` counts from 0 over the life, ``session`` from 1 over the life. ``actions`` has one letter per step
    (``FLRS``; ``.`` is a frozen step that the runner waited through). ``tally`` holds what the agent counted
    (``calls``, ``unparsed``, ...). A trial that could not be run has ``missing`` set to its cause
    (``"infrastructure"`` or ``"budget"``), ``outcome`` None and ``success`` None.
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

    Cached tokens are part of the prompt's, reasoning tokens part of the completion's. ``attempts`` counts retries
    too; ``seconds`` is the time that the answered attempts took, summed up.
    """

    calls: int = 0
    attempts: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: CallTotals) -> CallTotals:
        """Return the sum, number by number."""
        return CallTotals(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCalls:
    """The calls of one cell: what they came to, and the names under which the server has answered."""

    totals: CallTotals
    served_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceValue:
    """The animals' number that a cell is compared with, as the protocol declares it.

    ``value`` and ``interval`` (two-sided 95 %) are proportions; ``curve`` is the pass rate by session, from
    session 1. Without an interval (and without ``n_animals``) the value is used as a point, *declared*.
    """

    value: float
    interval: tuple[float, float] | None = None
    n_animals: int | None = None
    curve: tuple[float, ...] = ()
    species: str = ""
    source: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """One cell of the run, known before it starts: a model on a protocol in a view.

    ``trials`` is the number planned per subject (an upper bound where a block has ``until``), ``estimand`` is
    ``"all"``, ``"last:K"`` or ``"block:NAME"``, ``chance`` the random agent's measured pass rate stated by the
    protocol, ``claims`` False for designs that never make a PASS or FAIL claim (``smoke``). ``variant`` names what
    this cell changes on purpose (``history=1``, ``control=reward-shuffled``; empty for the plain cell). For a
    language model ``agent`` is the agent that asks it, and ``settings`` (JSON values) is every parameter that
    can change a reply. ``against`` says what a verdict is about: as good as the reference, or better than chance.
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
    variant: str = ""
    agent: str = ""
    split: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    against: Literal["reference", "chance"] = "reference"

    @property
    def comparable(self) -> bool:
        """Whether there is anything that a verdict could be about."""
        return self.reference is not None if self.against == "reference" else self.chance is not None

    @property
    def label(self) -> str:
        """Name of the cell among those of its model: the protocol, and for a dialogue what is asked."""
        return f"{self.protocol}[{self.variant}]" if self.view == NO_VIEW else self.protocol

    @property
    def line(self) -> str:
        """What cells that are summed up together share beside model and view: the variant, or the temperature."""
        if self.view != NO_VIEW:
            return self.variant
        temperature = self.settings.get("temperature")
        return "" if temperature is None else f"temperature {temperature:g}"

    @property
    def in_words(self) -> bool:
        """Whether it is a dialogue: questions and answers, nothing to look at, nothing kept from one to the next."""
        return self.view == NO_VIEW

    @property
    def control(self) -> str:
        """Name of the control that this cell is; empty for all others."""
        return self.variant.partition(CONTROL)[2]

    @property
    def plain_key(self) -> CellKey:
        """The cell that a control is compared with (any other cell: itself)."""
        variant = self.variant.partition(CONTROL)[0].rstrip(",") if self.control else self.variant
        return (self.model, self.protocol, self.view, variant)

    @property
    def key(self) -> CellKey:
        """What tells cells of one run apart."""
        return (self.model, self.protocol, self.view, self.variant)
