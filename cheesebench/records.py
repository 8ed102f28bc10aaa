"""The records of a run: the only input of statistics and reports.

The records are plain data, stored in the run log.
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
    """What is deliberately different in a cell. The log, ids and reports use its text
    (``str``).

    ``settings`` are the levels of a study by name (``history=1``). ``control`` is the
    name of a control, without ``control=``. ``condition`` names the question if a
    protocol has no views and asks several questions, each in a cell of its own.
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
        """Parse a variant. A comma that no ``NAME=`` follows is part of the level or
        condition before it.
        """
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


#: The variant of a plain cell, in which nothing is different.
PLAIN = Variant()

#: Largest measurement. Sums of fourth powers of such numbers are finite.
LARGEST = 1e30


def is_measurement(value: object) -> TypeGuard[float]:
    """Return whether a value is a number (or True or False) from -LARGEST to
    LARGEST.
    """
    return isinstance(value, int | float) and -LARGEST <= value <= LARGEST


#: Evidence that a verdict needs: bets against its opposite must have multiplied their
#: wealth by this number (``statistics.betting``), or by a multiple of it with
#: ``--familywise``. A verdict is then wrong with a probability of at most 1 in 20.
GOAL = 20.0
#: Maximum number of subjects of a sequential cell, unless ``--subjects`` says
#: otherwise.
MOST_SUBJECTS = 120
#: The first numbers of subjects after which a sequential cell is judged. Beyond the
#: last of them, it is judged after every 10 subjects, and at its maximum.
FIRST_SETS = (6, 10, 14, 18, 24, 30)


def sets_until(most: int) -> tuple[int, ...]:
    """Return the numbers of subjects after which a sequential cell is judged. The last
    one is ``most``, its maximum.
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
    """Result of a sequential cell when a set of subjects has ended."""

    subjects: int
    """Number of subjects up to the end of the deciding set or, if none has decided, of
    the last set that has begun.
    """
    decided: bool
    """Whether no more subjects are needed."""
    futile: bool
    """Whether more subjects would not help in this session: the budget is spent, or
    nothing could be run.
    """
    needed: int
    """Expected number of subjects after which the cell is decided."""
    text: str
    """Text for the journal."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrialRecord(tables.Brief):
    """One trial of one subject.

    ``trial`` counts from 0 and ``session`` from 1, over the subject's whole schedule.
    ``actions`` has one letter per step (``FLRS``; ``.`` is a frozen step, for which the
    agent was not asked). ``compared`` says whether the trial may enter the verdict.
    ``tally`` holds the agent's counts (``calls``, ``unparsed``, ...). If a trial was
    not run, ``missing`` has the cause, such as ``"infrastructure"`` or ``"budget"``,
    and ``outcome`` and ``success`` are None.
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

    @property
    def why_missing(self) -> str:
        """Words for the cause of a missing trial."""
        if self.missing == "budget":
            return "because the budget was spent"
        return "for technical reasons"


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
    """Totals over calls to a model.

    ``prompt`` and ``completion`` are numbers of tokens; ``cached`` and ``written``
    tokens are included in ``prompt``, ``reasoning`` tokens in ``completion``.
    ``attempts`` includes retries. ``malformed`` is the number of attempts answered with
    something that is no reply (wrong shape, a tool call), or with a refusal after which
    the call was made again. ``cost`` is in dollars, over the calls with a known price.
    ``seconds`` is the total time of the successful attempts.
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

    ``counts`` has the agent's counts (``calls``, ``unparsed``, ...) over all recorded
    trials, judged or not. ``answered`` is the number of calls with a reply. ``unread``
    quotes the first reply that could not be read, and says where it is.
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

    def value_in(self, record: TrialRecord) -> float | None:
        """Return the value in a trial, or None if the trial has none. It may lie beyond
        the range.
        """
        if record.missing:
            return None
        value = record.measures.get(self.name, record.counters.get(self.name))
        return float(value) if is_measurement(value) else None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReferenceValue(tables.Brief):
    """The animals' value that a cell is compared with, as the protocol declares it.

    It is a pass rate (a proportion), or the mean of the measure that ``measured``
    names; the plan's ``margin`` and everything here are then in the measure's unit.

    * ``interval``: two-sided 95 %.
    * ``sd``: standard deviation between animals, each with its own rate over the
      sessions ``over``. With ``n_animals``, the comparison is between two groups of
      subjects. The value counts as a constant if neither both of these nor an
      ``interval`` is known.
    * ``curve``: the pass rate (or the mean) in each session, from session 1.
      ``curve_sd``: its standard deviation between animals.
    * ``kind``: ``"analogy"`` if the source measured an event other than ``success``,
      ``"invented"`` if no animal was observed.
    * ``training``: how many trials an animal and a subject have before the judged part
      and in it, in words.
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
class Reported(tables.Brief):
    """The animals' value of something that no verdict is about: reports give it beside
    the model's. ``where`` is the condition of the trials that it covers (empty: none),
    ``sessions`` are their sessions (empty: those that are judged).
    """

    measure: str
    animals: ReferenceValue
    where: str = ""
    sessions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Construct(tables.Brief):
    """What a protocol claims to measure. ``abolished_by`` has the lesions that must
    abolish it, by name, each with the highest pass rate allowed under it.

    * ``status``: what an audit of the protocol says about these limits:
      ``"validated"`` if it proved them, ``"failed"`` if it refuted one, ``"searched"``
      if it did neither, ``"declared"`` in all other cases, such as without an audit.
    * ``doubt``: why no audit could validate the claim, or empty.
    * ``leaves``: of the lesions that the audit tried, but the construct does not name,
      the one with the highest remaining pass rate, and this rate. With
      ``leaves_at_most``, the audit proved that the rate is not exceeded; otherwise it
      only found the rate.
    * ``passed_by``: the subject with least memory that the audit found to pass, in
      words, and its pass rate (or its mean of the judged measure).
    """

    name: str
    abolished_by: tuple[tuple[str, float], ...]
    status: Literal["validated", "searched", "failed", "declared"] = "declared"
    doubt: str = ""
    leaves: tuple[str, float] | None = None
    leaves_at_most: bool = False
    passed_by: tuple[str, float] | None = None
    failed: tuple[str, float] | None = None
    """The first lesion that fails its audit, and the rate (or the mean of the measure
    that is judged) that a subject reaches with it; None if no lesion fails.
    """
    also_failed: tuple[str, ...] = ()
    """Rules of the audit, other than the rules of lesions, that fail."""
    is_memory_searched: bool = True
    """Whether an audit searched for subjects with little memory that pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LesionClaim:
    """What a protocol's construct predicts for the lesion of a control cell.

    ``words`` names what the subjects lack (``without landmarks``). ``at_most`` is the
    highest pass rate allowed, or None if there is no prediction. ``spared`` says
    whether the prediction is that the lesion does not matter.
    """

    words: str
    at_most: float | None = None
    spared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The highest pass rates that an audit of the protocol found: in the first trial,
    and over all judged trials. Either is None if the audit found none. ``first`` is
    None, too, if only some trials are judged.
    """

    first: float | None = None
    all: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AbilityScale:
    """The two ends of a protocol's ability scale, as pass rates from a stored audit.

    ``without`` is 0 on the scale: it is proved that no subject does better under any of
    the lesions that abolish the ability. ``ideal`` is 1: the rate over the judged
    trials that the audit's search reached without a lesion.
    """

    without: float
    ideal: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellPlan(tables.Brief):
    """One planned cell of a run: a model on a protocol in a view.

    * ``subjects``: their number; the maximum if the cell is ``sequential``, which means
      that sets of subjects are run until there is a verdict.
    * ``trials``: the number of trials per subject; the maximum if a block has
      ``until``.
    * ``estimand``: which trials the verdict is about: ``"all"``, ``"last:K"`` or
      ``"block:NAME"`` (or ``"block:NAME,NAME"``).
    * ``reported``: the animals' values that the verdict does not use.
    * ``chance``: the pass rate of random moves or, in dialogues, of guesses.
    * ``claims``: False if the design never gives a PASS or FAIL (``smoke``).
    * ``variant``: what is deliberately different (``history=1``,
      ``control=reward-shuffled``); empty for the plain cell.
    * ``agent``, ``settings``: for a language model, the agent that prompts it, and the
      parameters that affect replies (JSON values).
    * ``against``: whether a PASS means "as good as the reference" or "better than
      chance".
    * ``construct``: what the protocol claims to measure (None: nothing). ``lesion``:
      what it predicts for the lesion of a control cell.
    * ``goal``: the evidence that a verdict needs (``GOAL``).
    * ``twin_of``: the protocol that this one is a twin of, or empty.
    * ``items``: whether trials are independent questions from which nothing is learned.
      A subject is then one generation of answers to all of them.
    * ``ability``: the ends of the ability scale (None: nothing is proved).
    * ``idle``: sessions without any possible success according to the audit, such as
      probes and conditioning.
    * ``answers``: the draws that fix a subject's right answer for all of its trials.
    * ``acknowledged``: the codes of the protocol's findings that its author
      acknowledges, each with the reason.
    * ``blocks``: the schedule if no criterion ends a block early: name, number of
      sessions, trials per session, and whether they may be compared (empty: unknown).
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
    acknowledged: tuple[tuple[str, str], ...] = ()
    reported: tuple[Reported, ...] = ()

    @property
    def animals(self) -> tuple[Reported, ...]:
        """The animals' values of measures, first that which the verdict is about."""
        judged = self.reference if self.measured else None
        own = (
            [Reported(measure=self.measured.name, animals=judged)]
            if self.measured and judged
            else []
        )
        return (*own, *(one for one in self.reported if one.measure != "success"))

    @property
    def animals_by_measure(self) -> dict[str, Reported]:
        """The first of ``animals`` of each measure, in their order."""
        found: dict[str, Reported] = {}
        for one in self.animals:
            found.setdefault(one.measure, one)
        return found

    def place_of(self, trial: int) -> tuple[str, int, bool]:
        """Return the block and session of a trial (from 0) in the schedule, and whether
        it is compared with the reference, or ``("", 0, True)`` if unknown.
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
        """Name of the cell among its model's cells: the protocol, and the variant if
        the protocol asks several questions (``Variant.condition``).
        """
        return (
            f"{self.protocol}[{self.variant}]"
            if self.variant.condition
            else self.protocol
        )

    @property
    def series(self) -> str:
        """What the cells of a summary share besides model and view: the variant or, if
        the protocol asks several questions, the temperature.
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
        """Key of the plain cell that a control is compared with, or the cell's own key
        if it is no control.
        """
        return (
            self.model,
            self.protocol,
            self.view,
            str(replace(self.variant, control="")),
        )

    @property
    def public_key(self) -> CellKey:
        """For a twin's cell, key of the cell on the published protocol."""
        return (self.model, self.twin_of, self.view, str(self.variant))

    @property
    def key(self) -> CellKey:
        """Identifies the cell within a run."""
        return (self.model, self.protocol, self.view, str(self.variant))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CallRecord(tables.Brief):
    """One call of one subject. ``trial`` and ``call`` count from 0, ``call`` within the
    trial.

    ``digest`` covers what can affect the reply. ``system`` and ``asked`` are
    the texts of the prompt's system message and last message; the messages in between
    repeat earlier calls. If a call was refused because of its content, ``fault`` is
    set, and the text of ``reply`` is the server's message. ``cost`` is in dollars (None
    if the price is unknown). ``seconds`` is the time of the successful attempt.
    ``attempts`` includes retries. ``malformed`` is the number of attempts answered with
    something that is no reply, or with a refusal after which the call was made again.
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
    the observation and the reward.

    ``placed`` says whether an outside event put the subject elsewhere, and ``foreseen``
    whether the observation is the one that the movement alone would have given. In an
    arena, ``at`` is where the subject is, and ``goals`` are the squares that would
    reward it now.
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
    """A replayed call. ``step`` is the number of steps executed before it.

    ``learnings`` is what the agent kept from the reply, as text ("" if the agent does
    not show this).
    """

    record: CallRecord
    step: int
    learnings: str
