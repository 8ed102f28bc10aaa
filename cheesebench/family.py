"""The interface between the core and a family (a kind of paradigm).

A family owns everything about its protocols: how a document is read and compiled, which
cells it has, how a subject is run, and how a trial is shown and explained. The core
calls only the methods of ``Family`` and of the ``Paradigm`` that it compiles a protocol
to.
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
        """Return an agent without a language model; for a protocol of an edition, the
        one that is registered as ``NAME@EDITION``, if there is one.
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
        """Return the family of a protocol."""
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
        """The programs, protocols and options that the run was started with."""
        ...

    def plans(self) -> list[CellPlan]:
        """Return the cells in the order in which they were planned."""
        ...

    def trials(
        self, plan: CellPlan | None = None, subject: int | None = None
    ) -> list[TrialRecord]:
        """Return the records (of one cell, of one of its subjects) in the order of
        their keys.
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

    ``settings`` (JSON values) has every parameter of agent and model that can affect a
    reply, and ``dropped``, the parameters that are not sent because the model or its
    backend does not accept them. They are stored in, and read from, the plan of each
    cell. ``base_url`` is its server; None where the backend starts one or knows its
    own.
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

    ``trials`` limits the trials of each subject (None: the protocol's schedule);
    ``views`` are the default views; ``claims`` is False if too little is run for a PASS
    or a FAIL. ``settings`` are defaults for model agents that have these settings.
    ``sequential``: cells are judged at looks, and ``subjects`` is the maximum.
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
    """The variation of a study.

    ``axes`` are settings of the agent that asks a model, with their levels; every
    combination is a variant. ``views`` and ``models`` apply if the command line names
    none. ``trials`` are run by one subject of each cell, unless the command line asks
    for another design.
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
        """Name of its own design."""
        return f"flat-{self.trials}"

    def variants(self) -> Iterator[dict[str, Any]]:
        """Yield every combination of levels; a single empty one without axes."""
        for levels in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, levels, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest:
    """A session's request for the cells of one model on one protocol; a family uses the
    parts that apply to it.

    ``language`` is None for an agent or a baseline. ``views`` are names, ``controls``
    as for ``--control``. ``subjects``, ``temperatures`` and ``against`` are the options
    of that name; ``design`` already has the number of subjects.
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
    """The inputs for running one subject of one cell: ``subject`` counts from 0,
    ``seed`` is the run's.
    """

    plugins: Plugins
    plan: CellPlan
    seed: int
    subject: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A protocol in ``cheesebench list``: JSON values, and the cells of its table row
    by heading.

    ``row`` begins with the name. ``by_folder``: also show the folder that it is run
    with.
    """

    values: Mapping[str, Any]
    row: Mapping[str, object]
    by_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTrial:
    """A replayed trial: its frames (the first has no action), and its calls.

    ``note`` is the reason why calls are not shown, or empty; ``differs``: the reason is
    that the calls do not lead to this trial.
    """

    record: TrialRecord
    frames: Sequence[Frame]
    calls: Sequence[ReplayedCall] = field(default_factory=tuple)
    note: str = ""
    differs: bool = False


class Asker(Protocol):
    """Source of a language model's replies: a server during a run, afterwards the run's
    log.
    """

    plan: CellPlan

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        """Return the reply to the next call of ``trial`` (from 0). Raises
        SubjectStoppedError if there is none.
        """
        ...

    def read_as(
        self, actions: Sequence[int], tally: Callable[[], Mapping[str, int]]
    ) -> None:
        """Report the actions parsed from the reply (none: ask again); ``tally`` returns
        the agent's counts by now.

        Families without actions never call it. By default nothing is done.
        """
        return


#: A finished trial with its fired rules.
Trial = tuple["TrialRecord", Sequence["TaskEvent"]]


class Family(ABC, Generic[S, P]):
    """Base class of a kind of paradigm (hook ``cheesebench_families``); ``S``:
    specification, ``P``: compiled paradigm.

    Families are tried on a document in reverse order of registration, so those of
    plugins come before the built-in ones; the arena is the last and accepts every
    document. ``StepwiseFamily`` has the methods that run and show subjects of paradigms
    that run step by step.
    """

    name: str
    """As in ``BaseSpecification.family`` and in messages."""
    plural: str
    """Key of its protocols in ``cheesebench list --json``."""
    recognised_by: ClassVar[Mapping[str, Any]] = {}
    """A JSON Schema equivalent of ``matches``, with which editors choose the schema of
    a file.
    """

    @property
    @abstractmethod
    def document(self) -> type[BaseModel]:
        """The pydantic model of its files."""

    @abstractmethod
    def matches(self, tree: Node) -> bool:
        """Return whether a file (merged with its parents) is a protocol of this family,
        valid or not.
        """

    @abstractmethod
    def load(
        self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
    ) -> S | None:
        """Return the checked specification, or None if there are errors, which are in
        ``diagnostics``.
        """

    @abstractmethod
    def compile(self, specification: S) -> P:
        """Return the compiled paradigm. The specification has passed all checks."""

    @abstractmethod
    def cells(self, specification: S, request: CellRequest) -> Iterable[CellPlan]:
        """Return the cells of one model. Raises UnsuitableError if the model or an
        option does not fit the protocol.
        """

    def as_planned(self, specification: S, plan: CellPlan) -> CellPlan:
        """Return a recorded plan in which everything that a verdict depends on comes
        from the protocol. When a log is verified, this plan is compared with the run's.
        A family that does not override this method trusts its logs.
        """
        return plan

    @abstractmethod
    def live(self, paradigm: P, context: SubjectContext) -> Iterator[Trial]:
        """Run a subject without a language model; yield each finished trial."""

    @abstractmethod
    def converse(
        self, paradigm: P, context: SubjectContext, asker: Asker
    ) -> AsyncGenerator[Trial, None]:
        """Run a subject that uses a language model, yielding in the same way."""

    @abstractmethod
    def watch(
        self,
        log: RecordedRun,
        plugins: Plugins,
        plan: CellPlan,
        wanted: Mapping[int, set[int]],
    ) -> Iterator[WatchedTrial]:
        """Replay recorded trials; ``wanted`` has the trials (from 0) of each subject,
        none of them missing.

        Raises CheeseBenchError if they cannot be shown.
        """

    @abstractmethod
    def explain(
        self, log: RecordedRun, plugins: Plugins, specification: S, record: TrialRecord
    ) -> str:
        """Return a description of one failed trial, to explain why a test failed."""

    def listing(self, specification: S) -> Listing:
        """Return the protocol's entry in ``cheesebench list``."""
        return Listing(
            values={}, row={self.name: specification.name, "title": specification.title}
        )


class Words:
    """A view that draws nothing: the environment's own text is the observation.

    It is always available (``Plugins.view("words")``), for families without an arena.
    ``--view`` does not offer it, because in an arena it would show nothing.
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
