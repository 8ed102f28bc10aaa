"""The one seam between the core and a kind of paradigm: what a family is asked for, and what it is asked with.

A family owns everything about its protocols: how a document is read, how it is compiled, which cells it makes, how a
subject is run in it, and how one trial is shown and explained. The core calls the methods of ``Family`` and nothing
else; what a compiled paradigm can do besides (be drawn, be audited, ...) are the optional protocols of ``interfaces``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from cheesebench.chat import ChatReply, ChatRequest
    from cheesebench.experiment.call_replay import ToldCall
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
    """What a session asks of one model on one protocol; a family takes from it what it has a use for.

    ``language`` is None for a model that needs no server (an agent, a baseline). ``views`` are names, ``controls``
    as ``--control`` has them. ``temperatures``, ``generations`` and ``against`` are the options of that name.
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
    """One subject of one cell, about to be run: ``subject`` counts from 0, ``seed`` is the run's."""

    plugins: PluginManager
    plan: CellPlan
    seed: int
    subject: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A protocol as ``cheesebench list`` shows it: JSON values for programs, cells by heading for people.

    ``row`` begins with the name. ``by_folder``: the folder that it is run with is shown, too.
    """

    values: Mapping[str, Any]
    row: Mapping[str, object]
    by_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTrial:
    """A recorded trial that can be watched: its frames (the first has no action), and the calls made on the way.

    ``note`` says why calls are not shown, where they are not.
    """

    record: TrialRecord
    frames: Sequence[Frame]
    calls: Sequence[ToldCall] = field(default_factory=tuple)
    note: str = ""


class Asker(Protocol):
    """Who brings the replies of a language model: in a run a server, afterwards the run's log."""

    plan: CellPlan

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        """Return the reply to the next call of ``trial`` (from 0); SubjectStoppedError when there is none."""
        ...

    def read_as(self, actions: Sequence[int]) -> None:
        """The reply was read as these actions (none: it is asked again). Families without actions never say so."""
        ...


#: A finished trial with the rules that fired in it.
Trial = tuple["TrialRecord", Sequence["TaskEvent"]]


class Family(Protocol[S, P]):
    """A kind of paradigm (hook ``cheesebench_families``). ``S`` is its specification, ``P`` what that compiles to.

    A document is offered to the families in the reverse order of their registration, so that those of plugins come
    before the built-in ones; the arena is the last, and takes whatever no other takes.
    """

    name: str
    """As in ``BaseSpecification.family``, and in sentences: "'x' is a dialogue"."""
    plural: str
    """Key of its protocols in ``cheesebench list --json``."""

    @property
    def recognised_by(self) -> Mapping[str, Any]:
        """The JSON Schema that ``matches`` amounts to: editors choose the schema of a file by it."""
        ...

    @property
    def document(self) -> type[Model]:
        """The pydantic model of its files."""
        ...

    def matches(self, tree: Node) -> bool:
        """Whether a file (its parents merged) is a protocol of this family, sound or not."""
        ...

    def load(self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics) -> S | None:
        """Return the checked specification; None with errors, all of them in ``diagnostics``."""
        ...

    def compile(self, specification: S) -> P:
        """Return the compiled paradigm; the specification has passed all checks."""
        ...

    def listing(self, specification: S) -> Listing:
        """Return how the protocol is listed."""
        ...

    def cells(self, specification: S, request: CellRequest) -> Iterable[CellPlan]:
        """Return the cells of one model; UnsuitableError where this model or option is not for this protocol."""
        ...

    def live(self, paradigm: P, seat: Seat) -> Iterator[Trial]:
        """Run a subject that needs no server; yield every trial when it is finished."""
        ...

    def converse(self, paradigm: P, seat: Seat, asker: Asker) -> AsyncGenerator[Trial, None]:
        """Run a subject that asks a language model, yielding in the same way."""
        ...

    def watch(
        self, log: RunLog, plugins: PluginManager, plan: CellPlan, wanted: Mapping[int, set[int]]
    ) -> Iterator[WatchedTrial]:
        """Yield recorded trials to be watched; ``wanted`` has the trials (from 0) of each subject, none of it missing.

        CheeseBenchError where they cannot be shown.
        """
        ...

    def explain(self, log: RunLog, plugins: PluginManager, specification: S, record: TrialRecord) -> str:
        """Return one failed trial in words or pictures, for somebody who asks why a test failed."""
        ...
