"""The interface between the core and a family (a kind of paradigm).

A family owns everything about its protocols: how a document is read and compiled, which cells it has, how a subject is
run, and how a trial is shown and explained. The core calls only the methods of ``Family``. Further abilities of a
compiled paradigm (to be drawn, audited, ...) are the optional protocols in ``interfaces``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from cheesebench.chat import ChatReply, ChatRequest
    from cheesebench.experiment.call_replay import ReplayedCall
    from cheesebench.experiment.contestants import LanguageModel
    from cheesebench.experiment.designs import Design
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.experiment.replay import Frame
    from cheesebench.experiment.studies import Study
    from cheesebench.interfaces import TaskEvent
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol.arena_documents import Model
    from cheesebench.protocol.diagnostics import Diagnostics
    from cheesebench.protocol.source import Node
    from cheesebench.protocol.specification import BaseSpecification

#: A family's own specification, and what it compiles it to.
S = TypeVar("S", bound="BaseSpecification")
P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest:
    """A session's request for the cells of one model on one protocol; a family uses what applies to it.

    ``language`` is None for an agent or a baseline. ``views`` are names, ``controls`` as for ``--control``.
    ``temperatures``, ``generations`` and ``against`` are the options of that name.
    """

    model: str
    plugins: PluginManager
    design: Design
    language: LanguageModel | None = None
    views: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    study: Study | None = None
    temperatures: tuple[float, ...] = ()
    generations: int | None = None
    against: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One subject of one cell to run: ``subject`` counts from 0, ``seed`` is the run's."""

    plugins: PluginManager
    plan: CellPlan
    seed: int
    subject: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A protocol in ``cheesebench list``: JSON values, and the cells of its table row by heading.

    ``row`` begins with the name. ``by_folder``: also show the folder that it is run with.
    """

    values: Mapping[str, Any]
    row: Mapping[str, object]
    by_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTrial:
    """A replayed trial: its frames (the first has no action), and its calls.

    ``note`` says why calls are not shown, if they are not.
    """

    record: TrialRecord
    frames: Sequence[Frame]
    calls: Sequence[ReplayedCall] = field(default_factory=tuple)
    note: str = ""


class Asker(Protocol):
    """Source of a language model's replies: a server during a run, afterwards the run's log."""

    plan: CellPlan

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        """Return the reply to the next call of ``trial`` (from 0). Raises SubjectStoppedError if there is none."""
        ...

    def read_as(self, actions: Sequence[int]) -> None:
        """Report the actions parsed from the reply (none: ask again). Families without actions never call it."""
        ...


#: A finished trial with the rules that fired in it.
Trial = tuple["TrialRecord", Sequence["TaskEvent"]]


class Family(Protocol[S, P]):
    """A kind of paradigm (hook ``cheesebench_families``). ``S`` is its specification, ``P`` the compiled paradigm.

    Families are tried on a document in reverse order of registration, so those of plugins come before the built-in
    ones; the arena is the last and accepts every document.
    """

    name: str
    """As in ``BaseSpecification.family`` and in messages."""
    plural: str
    """Key of its protocols in ``cheesebench list --json``."""

    @property
    def recognised_by(self) -> Mapping[str, Any]:
        """A JSON Schema equivalent of ``matches``, with which editors choose the schema of a file."""
        ...

    @property
    def document(self) -> type[Model]:
        """The pydantic model of its files."""
        ...

    def matches(self, tree: Node) -> bool:
        """Return whether a file (merged with its parents) is a protocol of this family, valid or not."""
        ...

    def load(self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics) -> S | None:
        """Return the checked specification; None if there are errors, which are in ``diagnostics``."""
        ...

    def compile(self, specification: S) -> P:
        """Return the compiled paradigm; the specification has passed all checks."""
        ...

    def listing(self, specification: S) -> Listing:
        """Return the protocol's entry in ``cheesebench list``."""
        ...

    def cells(self, specification: S, request: CellRequest) -> Iterable[CellPlan]:
        """Return the cells of one model. Raises UnsuitableError if the model or an option does not fit the protocol."""
        ...

    def live(self, paradigm: P, seat: Seat) -> Iterator[Trial]:
        """Run a subject without a language model; yield each finished trial."""
        ...

    def converse(self, paradigm: P, seat: Seat, asker: Asker) -> AsyncGenerator[Trial, None]:
        """Run a subject that uses a language model, yielding in the same way."""
        ...

    def watch(
        self, log: RunLog, plugins: PluginManager, plan: CellPlan, wanted: Mapping[int, set[int]]
    ) -> Iterator[WatchedTrial]:
        """Replay recorded trials; ``wanted`` has the trials (from 0) of each subject, none of them missing.

        Raises CheeseBenchError if they cannot be shown.
        """
        ...

    def explain(self, log: RunLog, plugins: PluginManager, specification: S, record: TrialRecord) -> str:
        """Return a description of one failed trial, to explain why a test failed."""
        ...
