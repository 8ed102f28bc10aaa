"""Interfaces between the parts of CheeseBench: the typed protocols that plugins implement, and their data types.

Nothing here has behaviour. A plugin needs no base class, only an object with these attributes. The module has more than
400 lines so that plugin authors find all interfaces in one place; most of them are docstrings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, get_args, runtime_checkable

from cheesebench.family import Family as Family

if TYPE_CHECKING:
    import argparse

    from cheesebench.experiment.log import RunLog
    from cheesebench.lesions import Lesion
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import BaseSpecification, Specification
    from cheesebench.statistics import RunSummary

#: The four egocentric actions; their index is the action number everywhere.
ACTIONS = ("FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "STAY")
FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY = range(4)
#: One letter per action, as in the run log and in ``tests:`` blocks.
ACTION_LETTERS = "FLRS"
#: The letter of a frozen step, for which the agent was not asked.
WAITED_LETTER = "."
#: Action number by letter of the run log.
ACTION_OF_LETTER = {letter: action for action, letter in enumerate(ACTION_LETTERS)} | {WAITED_LETTER: STAY}
#: Headings in clockwise order; a heading number is an index into this tuple, whatever the arena's turns are.
HEADINGS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")

#: Status of the trial after a step, as returned by ``SubjectEnvironment.step``.
RUNNING, TERMINATED, TRUNCATED = range(3)

#: Content of a square; ``void`` is outside the arena.
TileKind = Literal["void", "wall", "floor", "door", "solid", "landmark"]


@dataclass(frozen=True, slots=True)
class Tile:
    """One square of a scene.

    ``kind`` is its content; ``glyph`` (one character) its present appearance. A ``door`` tile is a *closed* door; an
    open one is ``floor``.
    """

    kind: TileKind
    glyph: str


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything visible at one moment; every view is a projection of a scene.

    ``tiles`` is indexed ``[row][column]``, row 0 in the north; rows have equal length. ``text`` has the lines of the
    present state (possibly none). ``quarters`` is the clockwise rotation of the arena in quarter turns; it is not
    visible, so it is ignored in comparisons.
    """

    tiles: tuple[tuple[Tile, ...], ...]
    text: tuple[str, ...] = ()
    quarters: int = field(default=0, compare=False)


class View(Protocol):
    """A projection of a scene to an observation (hook ``cheesebench_views``)."""

    name: str
    """Short identifier as in ``--view ascii_2d``."""
    characters: str
    """Characters that the view may draw beyond the glyphs and text of the scene."""

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        """Return the observation of an agent at ``(column, row)`` that faces ``heading`` (0-7)."""
        ...

    def max_length(self, scene: Scene) -> int:
        """Return an upper bound of ``len(render(scene, ...))`` over all poses."""
        ...


@runtime_checkable
class PictureView(View, Protocol):
    """A view whose ``render`` returns a ``chat.Picture``, for agents that accept pictures only.

    Test for it with ``isinstance(view, PictureView)``. Its texts are those of the state; ``max_length`` and
    ``characters`` refer to them.
    """

    def picture_size(self, scene: Scene) -> tuple[int, int]:
        """Return width and height in pixels of every picture of the scene."""
        ...


@runtime_checkable
class ReadableView(Protocol):
    """Optional interface of a view that explains its observations, for prompts of language models."""

    reading: str
    """A few sentences addressed to the agent ("you"), without naming a paradigm, a goal or a cue."""


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What a new agent may know: nothing about the paradigm.

    ``seed`` is a 63-bit number for this subject, from which all of the agent's random numbers must come.
    """

    seed: int
    view: str


class Agent(Protocol):
    """One subject; its memory persists over all of its trials.

    The runner calls ``begin_trial``, then ``act`` and, for every executed step, ``observe``.
    """

    def begin_trial(self, observation: str) -> None:
        """Start a new trial; ``observation`` is its first one."""
        ...

    def act(self, observation: str) -> Sequence[int]:
        """Return one or more actions (0-3), which are executed in order until the trial ends."""
        ...

    def observe(self, action: int, reward: float, observation: str, ended: bool) -> None:
        """Record one executed step (steps in which the subject only waited are reported as STAY)."""
        ...


#: What an agent keeps between trials: nothing, or everything it has learnt.
Memory = Literal["none", "life"]
#: What is said of an agent that declares something else.
MEMORY_RULE = "it must be 'life', or 'none' for an agent that keeps nothing"


#: Kind of an agent: "agent", "model agent" or "respondent". Families may add others.
AgentKind = str


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent that can be named with ``--model`` (hook ``cheesebench_agents``).

    ``memory`` is ``"none"`` for an agent that keeps nothing between trials. The observed intraclass correlation is
    reported and may contradict this.
    """

    name: str
    create: Callable[[AgentContext], Agent]
    memory: Memory = "life"
    summary: str = ""
    kind: ClassVar[AgentKind] = "agent"


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command of ``cheesebench`` (hook ``cheesebench_commands``): its name and a short description.

    ``module`` is imported when the command is called; it has the functions of ``CommandModule``.
    """

    name: str
    help: str
    module: str


class CommandModule(Protocol):
    """The module of a command: these are functions in it, without ``self``."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command to its parser."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Do it, and return the exit code: 0, or 1 if the command has findings to report."""
        ...


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """A rule that fired: step of the trial, state, the event that triggered it, and ``file:line`` of the rule."""

    step: int
    state: str
    event: str
    source: str


#: A value of a trial: None if undefined, a list for a set.
Value = float | int | str | bool | None | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of one trial (language page, clause 18).

    ``session`` counts from 1 over the subject's whole schedule, ``outcome`` is ``"timeout"`` if the trial reached the
    limit, ``success`` is None if the protocol declares no success. ``path_length`` counts steps to another cell,
    ``bumps`` FORWARDs that neither moved the subject nor pressed a solid.
    """

    block: str
    session: int
    outcome: str
    success: bool | None
    compared: bool
    """Whether the reference's ``where`` holds (True without one): only such trials enter the pass rate."""
    counters: Mapping[str, int]
    measures: Mapping[str, Value]
    variables: Mapping[str, Value]
    path_length: int
    bumps: int
    events: Sequence[TaskEvent]


class SubjectEnvironment(Protocol):
    """The environment of one subject in one paradigm: the schedule, trial after trial, from one seed."""

    waiting: bool
    """True while the state is frozen and ignores actions: the runner may advance it with STAY without asking."""

    def begin_trial(self) -> str | None:
        """Advance the schedule and return the first observation, or None at the end of the schedule."""
        ...

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action (0-3); return observation, reward, and RUNNING, TERMINATED or TRUNCATED."""
        ...

    def result(self) -> TrialResult:
        """Return the result of the trial that has just ended."""
        ...


class CompiledProtocol(Protocol):
    """A compiled protocol of any family."""

    @property
    def specification(self) -> BaseSpecification:
        """What it was compiled from."""
        ...


@runtime_checkable
class Paradigm(Protocol):
    """A compiled protocol that runs step by step: a factory of environments."""

    specification: Specification
    """What it was compiled from."""

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        """Return the environment of ``subject`` (from 0) under ``seed``."""
        ...


@dataclass(frozen=True, slots=True)
class Still:
    """One moment, for authors: a scene with the subject's position and heading (0-7).

    ``left`` and ``top`` are the arena's column and row at the scene's corner (usually 0): landmarks outside the map
    make the scene larger than the map. ``quarters`` is the clockwise rotation of the scene in quarter turns.
    """

    state: str
    scene: Scene
    column: int
    row: int
    heading: int
    left: int = 0
    top: int = 0
    quarters: int = 0


@runtime_checkable
class Illustrated(Protocol):
    """Optional interface of a paradigm that can draw its states, for ``cheesebench render``."""

    def still(self, view: View, seed: int, subject: int, state: str | None = None, trial: int = 1) -> Still:
        """Return the start of a trial (from 1), as drawn in ``state`` (default: the initial state).

        In earlier trials the subject waits.
        """
        ...


class TestOutcome(Protocol):
    """The result of one of a protocol's own tests; ``str`` gives one line with the position of the test."""

    @property
    def passed(self) -> bool:
        """Whether all expectations were met."""
        ...


#: Controls that make the cues of a paradigm uninformative; see ``experiment.controls``.
CueControl = Literal["cue-off", "cue-shuffled", "labels-swapped"]


@runtime_checkable
class CueControllable(Protocol):
    """Optional interface of a paradigm whose cues can be removed, for ``--control``."""

    specification: Specification
    """What it was compiled from."""

    def with_cues(self, how: CueControl, seed: int) -> Paradigm:
        """Return the same paradigm with only its visible cues (and texts) changed."""
        ...


@runtime_checkable
class Lesionable(Protocol):
    """Optional interface of a paradigm that can apply a lesion to a view, for ``--control`` and the audit."""

    specification: Specification
    """What it was compiled from."""

    def lesioned(self, view: View, lesion: Lesion) -> View:
        """Return the view of a subject with the lesion; the view itself if the lesion does not change the picture."""
        ...


@runtime_checkable
class Yokeable(Protocol):
    """Optional interface of a paradigm in which one subject can be yoked to another, for ``--control``."""

    specification: Specification
    """What it was compiled from."""

    def yoked_environment(
        self, view: View, seed: int, subject: int, trials: Sequence[Sequence[int]]
    ) -> SubjectEnvironment:
        """Return an environment yoked to ``subject`` under ``seed``, whose actions are in ``trials``."""
        ...


@runtime_checkable
class SelfTesting(Protocol):
    """Optional interface of a paradigm that can play its protocol's ``tests:``, for ``cheesebench test``."""

    def own_tests(self, view: View) -> Sequence[TestOutcome]:
        """Play all of them, in the order of the file."""
        ...


@runtime_checkable
class ObservableSubject(Protocol):
    """Optional interface of an environment that exposes its state during a trial, for ``cheesebench play``."""

    block: str
    """Name of the block of the schedule."""
    session: int
    """Number in the block's repetition, from 1."""
    trial: int
    """Number in the session, from 1."""
    steps: int
    """Steps of this trial so far."""
    state: str
    """Name of the present state."""

    @property
    def events(self) -> Sequence[TaskEvent]:
        """The rules that have fired in this trial, in order."""
        ...


#: Verdict of a rule of the audit; a ``note`` is neutral.
AuditVerdict = Literal["ok", "FAIL", "note"]
#: Parts of an audit.
AuditPart = Literal["chance", "blind", "limit", "solvable", "rewards", "draws", "leaks", "cues", "lesions", "animal"]
#: The parts of an audit, in their order.
AUDIT_PARTS: tuple[AuditPart, ...] = get_args(AuditPart)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The finding of one rule of the audit: ``text`` is a sentence with the numbers, ``numbers`` has them for programs.

    The verdict ``note`` is for information that no rule judges.
    """

    rule: str
    verdict: AuditVerdict
    text: str
    numbers: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Settings of an audit. Equal settings give equal findings, whatever ``processes`` is.

    ``trials`` is the number of trials of a chance level; other parts use a fixed share of it. ``parts`` names the
    requested parts (None: all). ``effort`` scales the planning time for lesions. ``progress`` is called with the name
    of the current step.
    """

    trials: int = 2000
    seed: int = 0
    processes: int = 1
    parts: tuple[AuditPart, ...] | None = None
    effort: float = 1.0
    progress: Callable[[str], None] | None = None


@runtime_checkable
class Auditable(Protocol):
    """Optional interface of a paradigm that can be audited, for ``cheesebench audit``."""

    def audit(self, views: Sequence[View], settings: AuditSettings) -> Iterable[AuditFinding]:
        """Return the findings of all rules, in a fixed order."""
        ...


class Reporter(Protocol):
    """A report format for finished or interrupted runs (hook ``cheesebench_reporters``)."""

    name: str
    """Name for ``cheesebench report RUN --format NAME``."""
    suffix: str
    """File name ending, with the dot."""

    def render(self, summary: RunSummary) -> str:
        """Return the report's text."""
        ...


@runtime_checkable
class RunReporter(Protocol):
    """Optional interface of a reporter that also shows single trials and therefore needs the run log."""

    def render_run(self, summary: RunSummary, log: RunLog, plugins: PluginManager) -> str:
        """Return the report's text; ``plugins`` compiles the protocols of the run and has its views."""
        ...


@runtime_checkable
class FigureReporter(Protocol):
    """Optional interface of a reporter that draws figures of several runs, for ``cheesebench figures``."""

    def render_figures(
        self, summaries: Sequence[RunSummary], sizes: Mapping[str, float], formats: Sequence[str]
    ) -> Mapping[str, bytes]:
        """Return file contents by name; ``sizes`` maps models to billions of parameters."""
        ...
