"""The interface between the core and a family (a kind of paradigm).

A family decides everything about its protocols: how a document is read and compiled,
which cells it has, how a subject is run, and how a trial is shown and explained. The
core calls only the methods of ``Family``, and of ``Paradigm``, its compiled protocols.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from cheesebench.interfaces import BaseSpecification, Paradigm

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from cheesebench.chat import (
        BackendSpec,
        ChatReply,
        ChatRequest,
        ModelAgentSpec,
        ModelEntry,
    )
    from cheesebench.diagnostics import Diagnostics
    from cheesebench.dialogue import RespondentSpec
    from cheesebench.interfaces import AgentSpec, Scene, TaskEvent, View
    from cheesebench.records import (
        CallRecord,
        CellPlan,
        Frame,
        ReplayedCall,
        TrialRecord,
    )
    from cheesebench.source import Node


class Plugins(Protocol):
    """The part of the plugin manager that families, executors and reporters may use.
    Unknown names raise UnknownNameError.
    """

    @property
    def agents(self) -> Mapping[str, AgentSpec]:
        """Agents without a language model, by name."""
        ...

    @property
    def respondents(self) -> Mapping[str, RespondentSpec]:
        """Baselines for dialogues, by name."""
        ...

    @property
    def families(self) -> Mapping[str, Family[Any, Any]]:
        """Families by name."""
        ...

    def agent(self, name: str, protocol: str = "") -> AgentSpec:
        """Return an agent without a language model. For a protocol of an edition,
        ``NAME@EDITION`` takes precedence, if there is such an agent.
        """
        ...

    def model_agent(self, name: str) -> ModelAgentSpec:
        """Return an agent that asks a language model."""
        ...

    def respondent(self, name: str) -> RespondentSpec:
        """Return a baseline for dialogues."""
        ...

    def view(self, name: str) -> View:
        """Return a view."""
        ...

    def family(self, specification: BaseSpecification) -> Family[Any, Any]:
        """Return the family of a protocol. Raise PluginError if there is none."""
        ...

    def compile(self, specification: BaseSpecification) -> Paradigm:
        """Return the compiled protocol."""
        ...


class RecordedCalls(Protocol):
    """The calls to models of a recorded run."""

    def of_trial(
        self, plan: CellPlan, subject: int, trial: int
    ) -> Iterator[CallRecord]:
        """Yield the calls of a trial, in order."""
        ...

    def of_life(self, plan: CellPlan, subject: int) -> Iterator[CallRecord]:
        """Yield all calls of a subject, in order."""
        ...


class RecordedRun(Protocol):
    """The part of a run's log that families and reporters may read. Every method raises
    RunLogError for a damaged log.
    """

    @property
    def calls(self) -> RecordedCalls:
        """The calls to models."""
        ...

    @property
    def directory(self) -> Path:
        """The run's own directory."""
        ...

    @property
    def manifest(self) -> dict[str, Any]:
        """Facts about how the run was started, such as the program, protocols and
        options.
        """
        ...

    def plans(self) -> list[CellPlan]:
        """Return the cells in the order in which they were planned."""
        ...

    def trials(
        self, plan: CellPlan | None = None, subject: int | None = None
    ) -> list[TrialRecord]:
        """Return the records of all trials, of the trials of one cell, or of the trials
        of one subject in it, in the order of their keys.
        """
        ...

    def events(self, record: TrialRecord) -> tuple[TaskEvent, ...]:
        """Return the rules that fired in a trial, in order."""
        ...


#: A family's own specification, and its compiled form.
S = TypeVar("S", bound=BaseSpecification)
P = TypeVar("P", bound=Paradigm)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """A language model under test: its backend, the agent that prompts it, and the
    settings.

    ``settings`` (JSON values) has the parameters of agent and model that affect
    replies. Its key ``dropped`` lists the parameters that are not sent because the
    model or its backend does not accept them. The plan of each cell stores the
    settings, and a resumed run reads them from there. ``base_url`` is the address of
    the model's server (None if the backend starts a server or knows its address).
    """

    entry: ModelEntry
    backend: BackendSpec
    agent: ModelAgentSpec
    settings: Mapping[str, Any]
    base_url: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How a cell is run.

    ``trials`` limits the trials of each subject (None: the protocol's schedule).
    ``views`` are the default views. ``claims`` is False if too little is run for a PASS
    or a FAIL. ``settings`` are defaults for model agents that have these settings. If
    the design is ``sequential``, a cell is judged after each set of subjects until it
    is decided, and ``subjects`` is the maximum.
    """

    name: str
    subjects: int
    trials: int | None = None
    views: tuple[str, ...] = ("ascii_2d",)
    claims: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sequential: bool = False
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """A study: which settings of a model agent it varies, and how it is run.

    ``axes`` has the levels of each varied setting; every combination of levels is a
    variant. ``views`` and ``models`` apply if the command line names none. ``trials``
    is the maximum number of trials of each cell's only subject, unless the command line
    gives ``--design`` or ``--subjects``.
    """

    name: str
    title: str
    about: str = ""
    views: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    trials: int = 15
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def design(self) -> str:
        """Name of the study's own design."""
        return f"flat-{self.trials}"

    def variants(self) -> Iterator[dict[str, Any]]:
        """Yield every combination of levels. Without axes, this is one empty dict."""
        for levels in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, levels, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest:
    """A session's request for the cells of one model on one protocol. A family uses the
    parts that apply to it.

    ``language`` is None for an agent or a baseline. ``views`` are names; ``controls``
    are written as for ``--control``. ``temperatures``, ``subjects`` and ``against``
    come from ``--temperature``, ``--subjects`` and ``--against``; ``design`` already
    has the number of subjects.
    """

    model: str
    plugins: Plugins
    design: Design
    language: LanguageModel | None = None
    views: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    study: Study | None = None
    temperatures: tuple[float, ...] = ()
    subjects: int | None = None
    against: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectContext:
    """The inputs for running one subject of one cell. ``subject`` counts from 0;
    ``seed`` is the run's seed.
    """

    plugins: Plugins
    plan: CellPlan
    seed: int
    subject: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A protocol's entry in ``cheesebench list``: ``values`` for ``--json``, and its
    ``row`` in the table, by heading, beginning with the name.

    ``by_folder`` says whether the list also shows the folder to run the protocol with.
    """

    values: Mapping[str, Any]
    row: Mapping[str, object]
    by_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTrial:
    """A replayed trial: its frames (the first has no action), and its calls.

    ``note`` says why calls are not shown, or is empty. ``differs`` is true if the
    reason is that the calls do not lead to this trial.
    """

    record: TrialRecord
    frames: Sequence[Frame]
    calls: Sequence[ReplayedCall] = field(default_factory=tuple)
    note: str = ""
    differs: bool = False


class Asker(Protocol):
    """Source of a language model's replies, such as a server during a run, or the run's
    log afterwards.
    """

    plan: CellPlan

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        """Return the reply to the next call of ``trial`` (from 0). Raise
        SubjectStoppedError or BudgetSpentError if there is none.
        """
        ...

    def read_as(
        self, actions: Sequence[int], tally: Callable[[], Mapping[str, int]]
    ) -> None:
        """Take note of the actions that the agent read from the reply (none: it asks
        again). ``tally`` returns the agent's counts so far.

        A family without actions never calls this method. The default does nothing.
        """
        return


#: A finished trial with its fired rules.
Trial = tuple["TrialRecord", Sequence["TaskEvent"]]


class Family(ABC, Generic[S, P]):
    """Base class of a kind of paradigm (hook ``cheesebench_families``). ``S`` is its
    specification, ``P`` its compiled paradigm.

    Families are tried on a document in reverse order of registration, so a plugin's
    family comes before the built-in ones. The arena comes last and accepts every
    document. For paradigms that run step by step, ``StepwiseFamily`` has the methods
    that run and show subjects.
    """

    name: str
    """Name in ``BaseSpecification.family`` and in messages."""
    plural: str
    """Key of the family's protocols in ``cheesebench list --json``."""
    recognised_by: ClassVar[Mapping[str, Any]] = {}
    """A JSON Schema that accepts the same files as ``matches``. It lets editors choose
    the schema for a file.
    """

    @property
    @abstractmethod
    def document(self) -> type[BaseModel]:
        """The pydantic model of the family's files."""

    @abstractmethod
    def matches(self, tree: Node) -> bool:
        """Return whether a file (merged with its parents) is a protocol of this family,
        valid or not.
        """

    @abstractmethod
    def load(
        self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
    ) -> S | None:
        """Return the checked specification. If there are errors, add them to
        ``diagnostics`` and return None.
        """

    @abstractmethod
    def compile(self, specification: S) -> P:
        """Return the compiled paradigm. The specification has passed all checks."""

    @abstractmethod
    def cells(self, specification: S, request: CellRequest) -> Iterable[CellPlan]:
        """Return the cells of one model. Raise UnsuitableError if the model or an
        option does not fit the protocol.
        """

    @abstractmethod
    def live(self, paradigm: P, context: SubjectContext) -> Iterator[Trial]:
        """Run a subject without a language model, and yield each finished trial."""

    @abstractmethod
    def converse(
        self, paradigm: P, context: SubjectContext, asker: Asker
    ) -> AsyncGenerator[Trial, None]:
        """Run a subject that uses a language model, and yield each finished trial."""

    @abstractmethod
    def watch(
        self,
        log: RecordedRun,
        plugins: Plugins,
        plan: CellPlan,
        wanted: Mapping[int, set[int]],
    ) -> Iterator[WatchedTrial]:
        """Replay recorded trials. ``wanted`` has the numbers of trials (from 0) for
        each subject; none of these trials is missing.

        Raise CheeseBenchError if they cannot be shown.
        """

    @abstractmethod
    def explain(
        self, log: RecordedRun, plugins: Plugins, specification: S, record: TrialRecord
    ) -> str:
        """Describe one failed trial, to explain why a test failed."""

    def listing(self, specification: S) -> Listing:
        """Return the protocol's entry in ``cheesebench list``."""
        return Listing(
            values={}, row={self.name: specification.name, "title": specification.title}
        )


class Words:
    """A view that draws nothing; the environment's own text is the observation.

    It is for families without an arena, and always available
    (``Plugins.view("words")``). ``--view`` does not offer it, because it would show
    nothing of an arena.
    """

    name = "words"
    characters = ""
    reading = "They are words."

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        """Return an empty text."""
        return ""

    def max_length(self, scene: Scene) -> int:
        """Return 0."""
        return 0
