"""The records of a run: the only input of statistics and reports.

They are plain data, stored in the run log; ``FORMAT`` is their version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self, TypeGuard

from cheesebench import tables
from cheesebench.chat import ChatReply, FaultKind
from cheesebench.interfaces import Memory, Pose, Value

#: Version of the run log and of these records.
FORMAT = 5

#: The model of a cell whose subjects are people (``cheesebench people``).
PERSON = "human"

#: Model, protocol, view and variant, which identify a cell within a run.
CellKey = tuple[str, str, str, str]

#: Prefix of the part of a variant that names a control.
_CONTROL = "control="


@dataclass(frozen=True, slots=True)
class Variant:
    """Deliberate changes of a cell; the log, ids and reports use its text (``str``).

    ``settings`` are the levels of a study by name (``history=1``), ``control`` is the
    name of a control, without ``control=``. ``condition`` names the question, for
    protocols without views that ask several: their cells differ by condition, not by
    view.
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
        """Parse a variant; a comma without a name after it is part of a level."""
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


#: The variant of an unchanged cell.
PLAIN = Variant()

#: Largest measurement; fourth powers of such numbers, and their sums, are finite.
LARGEST = 1e30


def is_measurement(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number of at most LARGEST."""
    return isinstance(value, int | float) and -LARGEST <= value <= LARGEST


#: Factor by which wealth must grow for a verdict, so that at most one run in 20 is
#: wrong.
GOAL = 20.0
#: Maximum number of subjects of a sequential cell, unless ``--subjects`` says
#: otherwise.
MOST_SUBJECTS = 120
#: Total numbers of subjects at which a sequential cell is judged; beyond 30, every 10.
FIRST_SETS = (6, 10, 14, 18, 24, 30)


def sets_until(most: int) -> tuple[int, ...]:
    """Return the sets of a sequential cell with at most ``most`` subjects. The last set
    has all subjects.
    """
    return (
        *(
            one
            for one in (*FIRST_SETS, *range(FIRST_SETS[-1] + 10, most, 10))
            if one < most
        ),
        most,
    )


class SetResult(NamedTuple):
    """Result of a sequential cell at the end of a set."""

    subjects: int
    """Subjects of the deciding set, or of the last one that has begun."""
    decided: bool
    """Whether no more subjects are needed."""
    futile: bool
    """Whether more subjects would not help in this session: the budget is spent, or
    nothing could be run.
    """
    needed: int
    """Expected number of subjects with which the cell is decided."""
    text: str
    """Entry in the journal."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrialRecord(tables.Brief):
    """One trial of one subject.

    ``trial`` counts from 0 and ``session`` from 1, over the subject's whole schedule.
    ``actions`` has one letter per step (``FLRS``; ``.`` is a frozen step, for which the
    agent was not asked). ``tally`` holds the agent's counters (``calls``, ``unparsed``,
    ...). A trial that could not be run has ``outcome`` and ``success`` None, and its
    cause in ``missing``: ``"infrastructure"`` or ``"budget"``.
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
        """The cell of the trial."""
        return (self.model, self.protocol, self.view, self.variant)


class Summable:
    """A dataclass with slots whose fields are numbers that add up."""

    __slots__: tuple[str, ...] = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(
            **{
                name: getattr(self, name) + getattr(other, name)
                for name in self.__slots__
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals(Summable):
    """Totals of calls to a model: numbers of calls, tokens, dollars (of calls with a
    known price), seconds.

    Cached and written tokens are included in ``prompt``, reasoning tokens in
    ``completion``. ``attempts`` includes retries, ``malformed`` counts retries after an
    answer that was no reply (wrong shape, a tool call, or refused); ``seconds`` is the
    total time of the successful attempts.
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
        return CallTotals(
            **{
                name: getattr(self, name) - getattr(other, name)
                for name in self.__slots__
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellCalls(tables.Brief):
    """The calls of one cell: totals, and the model names that the server reported.

    ``counts`` has the agent's counters (``calls``, ``unparsed``, ...) over all recorded
    trials, judged or not. ``answered`` is the number of calls with a reply; ``unread``
    quotes the first reply that could not be read, with its place.
    """

    totals: CallTotals = field(default_factory=CallTotals)
    served_by: tuple[str, ...] = ()
    answered: int = 0
    unread: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measure that a verdict is about instead of the pass rate.

    ``better`` is the side on which a value is better than the animals', or ``alike`` if
    a difference in either direction is worse. ``range`` has the lowest and the highest
    possible value.
    """

    name: str
    better: Literal["higher", "lower", "alike"] = "higher"
    range: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReferenceValue(tables.Brief):
    """The animals' value that a cell is compared with, as declared by the protocol.

    It is a pass rate, or the mean of the measure that ``measured`` names: then value,
    spread and the plan's ``margin`` are in that measure's unit. Otherwise ``value`` and
    ``interval`` (two-sided 95 %) are proportions. ``curve`` is the pass rate by
    session, from session 1, and ``curve_sd`` its standard deviation between animals.
    ``sd`` is the standard deviation between animals of each animal's own rate over the
    sessions ``over``: with ``n_animals``, two groups of subjects are compared. Without
    it and without an interval the value is used as a constant. ``kind`` is
    ``"analogy"`` if the source measured a different event from ``success``, and
    ``"invented"`` if no animal was observed.
    ``training``: trials before the judged part and in it, of an animal and of a
    subject.
    """

    value: float
    interval: tuple[float, float] | None = None
    n_animals: int | None = None
    sd: float | None = None
    kind: Literal["measured", "declared", "analogy", "invented"] = "declared"
    curve: tuple[float, ...] = ()
    curve_sd: tuple[float, ...] = ()
    over: tuple[int, ...] = ()
    species: str = ""
    source: str = ""
    status: str = ""
    training: str = ""
    measured: Measured | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Construct(tables.Brief):
    """The claim of a protocol about what it measures. ``abolished_by`` has the names of
    lesions, each with the highest pass rate allowed under it.

    ``status`` is ``"validated"`` if an audit of this exact protocol has proved these
    lesions, ``"searched"`` if the audit has neither proved nor refuted them,
    ``"failed"`` if it has refuted them, and ``"declared"`` without an audit. ``doubt``:
    the reason why no audit could validate it. ``leaves``: the unnamed lesion with the
    highest remaining rate, and the rate that the audit proved it not to exceed
    (``leaves_at_most``), or else found. ``passed_by``: the subject
    with least memory that the audit found to pass, in words, and its rate.
    """

    name: str
    abolished_by: tuple[tuple[str, float], ...]
    status: Literal["validated", "searched", "failed", "declared"] = "declared"
    doubt: str = ""
    leaves: tuple[str, float] | None = None
    leaves_at_most: bool = False
    passed_by: tuple[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LesionClaim:
    """The prediction of a protocol's construct for the lesion of a control cell.

    ``words`` names the channel that its subjects lack (``without landmarks``),
    ``at_most`` the highest pass rate allowed, or None without a prediction; ``spared``:
    the lesion must not matter.
    """

    words: str
    at_most: float | None = None
    spared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Highest pass rates that an audit of the protocol found: of a first trial, and of
    all judged trials.
    """

    first: float | None = None
    all: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AbilityScale:
    """The two ends of a protocol's ability scale, as pass rates. They come from a
    stored audit.

    ``without`` is proved: under any of the lesions that abolish the ability, no subject
    does better. ``ideal`` is the intact adversary's rate over the judged trials.
    """

    without: float
    ideal: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellPlan(tables.Brief):
    """One planned cell of a run: a model on a protocol in a view.

    ``trials`` is the number planned per subject (an upper bound if a block has
    ``until``), ``estimand`` is ``"all"``, ``"last:K"`` or ``"block:NAME"``, ``chance``
    the random agent's pass rate declared by the protocol, ``claims`` False for designs
    that never give a PASS or FAIL (``smoke``). ``variant`` has the deliberate changes
    of this cell (``history=1``, ``control=reward-shuffled``; empty for the plain cell).
    For a language model, ``agent`` is the agent that prompts it, and ``settings`` (JSON
    values) has every parameter that can affect a reply. ``against``: the verdict is
    about being as good as the reference, or better than chance. ``construct`` is the
    protocol's claim (None: not validated), ``lesion`` its prediction for the lesion of
    a control cell. ``sequential``: sets of subjects are run until there is a verdict,
    and ``subjects`` is the maximum number. ``goal`` is the factor by which wealth must
    grow for a verdict. ``twin_of`` is the protocol of which this one is a twin.
    ``items``: trials are independent questions, from which nothing is learned, and a
    subject is one generation of answers to all of them. ``ability`` has the ends of the
    scale on which the pass rate is an ability (None: nothing is proved). ``idle`` are
    sessions in which nothing can succeed, by the audit: probes, and conditioning.
    ``answers`` are draws that give each subject its right answer for life. ``blocks``
    is the schedule, as if no criterion ended a block early: name, sessions, trials
    of a session, and whether they may be compared (empty: unknown).
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
    ceilings: Ceilings | None = None
    ability: AbilityScale | None = None
    idle: tuple[int, ...] = ()
    answers: tuple[str, ...] = ()
    lesion: LesionClaim | None = None
    sequential: bool = False
    goal: float = GOAL
    twin_of: str = ""
    items: bool = False
    blocks: tuple[tuple[str, int, int, bool], ...] = ()

    def place_of(self, trial: int) -> tuple[str, int, bool]:
        """Return block and session of a trial (from 0) by the schedule, and whether it
        is compared with the reference; ``("", 0, True)`` if unknown.
        """
        before = 0
        for name, sessions, trials, compared in self.blocks:
            if trial < sessions * trials:
                return name, before + trial // trials + 1, compared
            trial, before = trial - sessions * trials, before + sessions
        return "", 0, True

    @property
    def measured(self) -> Measured | None:
        """The measure that the verdict is about, or None for the pass rate."""
        return None if self.reference is None else self.reference.measured

    @property
    def comparable(self) -> bool:
        """Whether there is a reference (or a chance level) for a verdict."""
        return (
            self.reference is not None
            if self.against == "reference"
            else self.chance is not None
        )

    @property
    def label(self) -> str:
        """Name of the cell among those of its model: the protocol, and the condition if
        it has several.
        """
        return (
            f"{self.protocol}[{self.variant}]"
            if self.variant.condition
            else self.protocol
        )

    @property
    def series(self) -> str:
        """Variant (or temperature) shared by cells of one model and view that are
        summarised together.
        """
        if not self.variant.condition:
            return str(self.variant)
        temperature = self.settings.get("temperature")
        return "" if temperature is None else f"temperature {temperature:g}"

    @property
    def control(self) -> str:
        """Name of the control, or "" for plain cells."""
        return self.variant.control

    @property
    def plain_key(self) -> CellKey:
        """Key of the cell that a control is compared with (for any other cell: its own
        key).
        """
        return (
            self.model,
            self.protocol,
            self.view,
            str(replace(self.variant, control="")),
        )

    @property
    def public_key(self) -> CellKey:
        """Key of the cell of the published protocol whose twin this is."""
        return (self.model, self.twin_of, self.view, str(self.variant))

    @property
    def key(self) -> CellKey:
        """Identifies the cell within a run."""
        return (self.model, self.protocol, self.view, str(self.variant))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CallRecord(tables.Brief):
    """One call of one subject: ``call`` counts from 0 in its trial.

    ``digest`` covers the whole prompt and every parameter; ``system`` and ``asked`` are
    its system message and its last message as text (the messages in between repeat
    earlier calls). If a call was refused because of its content, ``fault`` is set, and
    the text of ``reply`` is the server's message. ``cost`` is in dollars, None if the
    price is unknown; ``seconds`` is the time of the successful attempt; ``attempts``
    includes retries, and ``malformed`` counts the attempts whose answer was not a
    reply, or was a refusal of the content after which the call was made again.
    """

    trial: int
    call: int
    digest: str
    system: str
    asked: str
    reply: ChatReply
    fault: FaultKind | None = None
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    malformed: int = 0

    @property
    def totals(self) -> CallTotals:
        usage = self.reply.usage
        return CallTotals(
            calls=1,
            attempts=self.attempts,
            prompt=usage.prompt,
            completion=usage.completion,
            cached=usage.cached,
            reasoning=usage.reasoning,
            cost=self.cost or 0.0,
            seconds=self.seconds,
            written=usage.written,
            malformed=self.malformed,
        )


@dataclass(frozen=True, slots=True, repr=False)
class Frame(tables.Brief):
    """One frame of a film: the letter of the action that led to it ("" for the first),
    the observation, the reward.

    ``placed``: the step put the subject elsewhere; ``foreseen``: it showed what the
    movement alone would have shown. In an arena, ``at`` is where the subject is and
    ``goals`` are the squares on which it would be rewarded now.
    """

    action: str
    observation: str
    reward: float
    placed: bool = False
    foreseen: bool = True
    at: Pose | None = None
    goals: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A call with ``step``, the number of steps executed before it.

    ``learnings`` is the text that the agent kept from the reply ("" for an agent that
    does not expose it).
    """

    record: CallRecord
    step: int
    learnings: str
