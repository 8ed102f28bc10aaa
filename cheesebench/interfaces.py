"""What the parts of CheeseBench hand to each other: the typed protocols that plugins supply, and their inputs.

Nothing here has behaviour. A plugin needs no base class: an object with these attributes will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, get_args, runtime_checkable

from cheesebench.family import Family as Family

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.lesions import Lesion
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import BaseSpecification, Specification
    from cheesebench.statistics import RunSummary

#: The four egocentric actions; their index is the action number everywhere.
ACTIONS = ("FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "STAY")
FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY = range(4)
#: One letter per action, as in the run log and in ``tests:`` blocks.
ACTION_LETTERS = "FLRS"
#: The letter of a frozen step which the runner advanced by itself (the agent was not asked).
WAITED_LETTER = "."
#: Letter of the run log -> action number.
ACTION_OF_LETTER = {letter: action for action, letter in enumerate(ACTION_LETTERS)} | {WAITED_LETTER: STAY}
#: Headings in clockwise order; a heading number is an index into this tuple, whatever the arena's turns are.
HEADINGS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")

#: What ``SubjectEnvironment.step`` says of the trial after the step.
RUNNING, TERMINATED, TRUNCATED = range(3)

#: What can stand on a square; ``void`` is outside the arena.
TileKind = Literal["void", "wall", "floor", "door", "solid", "landmark"]


@dataclass(frozen=True, slots=True)
class Tile:
    """One square of a scene.

    ``kind`` is what stands there; ``glyph`` (one character) is how it looks at this moment. A ``door`` tile is a
    *closed* door; an open one is ``floor``.
    """

    kind: TileKind
    glyph: str


@dataclass(frozen=True, slots=True)
class Scene:
    """All that can be seen at one moment, whoever looks: every view is a projection of this.

    ``tiles`` is indexed ``[row][column]``, row 0 in the north; rows have equal length. ``text`` holds what the
    current state says (lines, possibly none). ``quarters`` is by how many quarters of a circle the arena is turned
    clockwise in it: nothing that can be seen, so that it makes no difference between scenes.
    """

    tiles: tuple[tuple[Tile, ...], ...]
    text: tuple[str, ...] = ()
    quarters: int = field(default=0, compare=False)


class View(Protocol):
    """A projection of a scene into what the agent is given (hook ``cheesebench_views``)."""

    name: str
    """Short identifier as in ``--view ascii_2d``."""
    characters: str
    """Characters that the view may draw beyond the glyphs and text of the scene."""

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        """Return the observation of an agent that stands at ``(column, row)`` and faces ``heading`` (0-7)."""
        ...

    def max_length(self, scene: Scene) -> int:
        """Return an upper bound of ``len(render(scene, ...))`` over all poses."""
        ...


@runtime_checkable
class PictureView(View, Protocol):
    """A view whose ``render`` returns a ``chat.Picture``: only agents that can look at pictures may be given it.

    Whether a view is one is asked with ``isinstance(view, PictureView)``. Its texts are what the state says;
    ``max_length`` and ``characters`` are about them.
    """

    def picture_size(self, scene: Scene) -> tuple[int, int]:
        """Return width and height in pixels of every picture of the scene."""
        ...


@runtime_checkable
class ReadableView(Protocol):
    """A view that says how it is to be read. Optional: prompts for language models ask for it."""

    reading: str
    """A few sentences to the agent ("you"); they name no paradigm, no goal and no cue."""


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What a new agent may know: nothing about the paradigm.

    ``seed`` is a 63-bit number of its own for this subject; every random number of the agent comes from it.
    """

    seed: int
    view: str


class Agent(Protocol):
    """One subject: one memory that lives through all its trials.

    The runner calls ``begin_trial``, then ``act`` and, for every executed step, ``observe``.
    """

    def begin_trial(self, observation: str) -> None:
        """A new trial starts; ``observation`` is its first one."""
        ...

    def act(self, observation: str) -> Sequence[int]:
        """Return one or more actions (0-3); they are executed one by one until the trial ends."""
        ...

    def observe(self, action: int, reward: float, observation: str, ended: bool) -> None:
        """One step was executed (steps that the runner waited through come as STAY)."""
        ...


#: What an agent keeps from trial to trial: nothing, or whatever it has learnt in its life.
Memory = Literal["none", "life"]


#: What an agent does: it acts by itself, asks a model, or answers questions. Families may add kinds of their own.
AgentKind = str


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent that can be named with ``--model`` (hook ``cheesebench_agents``).

    ``memory`` is ``"none"`` for an agent that keeps nothing from trial to trial; the trial is then the statistical
    unit (the observed intraclass correlation is reported and may contradict it).
    """

    name: str
    create: Callable[[AgentContext], Agent]
    memory: Memory = "life"
    summary: str = ""
    kind: ClassVar[AgentKind] = "agent"


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command of ``cheesebench`` (hook ``cheesebench_commands``): its name, and what it does in a few words.

    ``module`` is imported when the command is called. It has ``add_arguments(parser)``, which gets an
    ``argparse.ArgumentParser``, and ``run(arguments)``, which gets what that parser read and returns the exit code:
    0, or 1 where the command looks for something and found it.
    """

    name: str
    help: str
    module: str


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """A rule that fired: ``step`` of the trial, ``state`` it fired in, what it was, and ``file:line`` of the rule."""

    step: int
    state: str
    event: str
    source: str


#: A value of a trial: None where it is undefined, a list for a set.
Value = float | int | str | bool | None | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """What one trial came to (language page, clause 18).

    ``session`` counts from 1 over the whole life, ``outcome`` is ``"timeout"`` when the limit cut the trial off,
    ``success`` is None where the protocol declares no success. ``path_length``
    counts steps to another cell, ``bumps`` FORWARDs that neither moved the subject nor pressed a solid.
    """

    block: str
    session: int
    outcome: str
    success: bool | None
    compared: bool
    """Whether the reference's ``where`` holds (True without one): only these trials enter the pass rate."""
    counters: Mapping[str, int]
    measures: Mapping[str, Value]
    variables: Mapping[str, Value]
    path_length: int
    bumps: int
    events: Sequence[TaskEvent]


class SubjectEnvironment(Protocol):
    """One subject's life in one paradigm: the schedule, trial after trial, from one seed."""

    waiting: bool
    """True while the state is frozen and listens to no action: the runner may advance it with STAY by itself."""

    def begin_trial(self) -> str | None:
        """Advance the schedule and return the first observation, or None when the schedule is over."""
        ...

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action (0-3); return observation, reward, and RUNNING, TERMINATED or TRUNCATED."""
        ...

    def result(self) -> TrialResult:
        """Return what the trial that has just ended came to."""
        ...


class Compiled(Protocol):
    """What any family compiles a protocol to."""

    @property
    def specification(self) -> BaseSpecification:
        """What it was compiled from."""
        ...


@runtime_checkable
class Paradigm(Protocol):
    """A compiled protocol that is lived through step by step: an environment class in waiting."""

    specification: Specification
    """What it was compiled from."""

    def life(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        """Return the life of ``subject`` (from 0) under ``seed``."""
        ...


@dataclass(frozen=True, slots=True)
class Still:
    """One moment for the eye of an author: a scene, and where in it the subject stands (heading 0-7).

    ``left`` and ``top`` are the column and row of the arena (usually 0) that the scene's corner shows: landmarks
    outside the map make the scene larger than the map. ``quarters`` is by how many quarters of a circle the scene
    is turned clockwise (the subject with it).
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
    """A paradigm that can also show its states to an author. Optional: ``cheesebench render`` asks for it."""

    def still(self, view: View, seed: int, subject: int, state: str | None = None) -> Still:
        """Return how the first trial of this life begins; or what ``state`` would show at that moment."""
        ...


class TestOutcome(Protocol):
    """What one of a protocol's own tests came to; its text is one line with the place of the test."""

    @property
    def passed(self) -> bool:
        """Whether everything came out as expected."""
        ...


#: What can be done to the cues of a paradigm, so that nobody can learn from them; see ``experiment.controls``.
CueControl = Literal["cue-off", "cue-shuffled", "labels-swapped"]


@runtime_checkable
class CueControllable(Protocol):
    """A paradigm whose cues can be taken away. Optional: ``--control`` asks for it."""

    specification: Specification
    """What it was compiled from."""

    def with_cues(self, how: CueControl, seed: int) -> Paradigm:
        """Return the same paradigm, in which nothing but what is seen (and said) differs."""
        ...


@runtime_checkable
class Lesionable(Protocol):
    """A paradigm that knows what a lesion leaves of a view. Optional: ``--control`` and the audit ask for it."""

    specification: Specification
    """What it was compiled from."""

    def lesioned(self, view: View, lesion: Lesion) -> View:
        """Return the view of a subject with the lesion; the view itself where nothing is taken from the picture."""
        ...


@runtime_checkable
class Yokeable(Protocol):
    """A paradigm in which one subject can meet what another one brought about. Optional: ``--control`` asks for it."""

    specification: Specification
    """What it was compiled from."""

    def yoked_life(self, view: View, seed: int, subject: int, trials: Sequence[Sequence[int]]) -> SubjectEnvironment:
        """Return the life yoked to the one that ``subject`` led under ``seed``; ``trials`` has its actions."""
        ...


@runtime_checkable
class SelfTesting(Protocol):
    """A paradigm that can play its protocol's ``tests:``. Optional: ``cheesebench test`` asks for it."""

    def own_tests(self, view: View) -> Sequence[TestOutcome]:
        """Play all of them, in the order of the file."""
        ...


@runtime_checkable
class ObservableSubject(Protocol):
    """What a life can also tell while a trial runs. Optional: ``cheesebench play`` asks for it."""

    block: str
    """Name of the block of the schedule."""
    session: int
    """Number in the block's repetition, from 1."""
    trial: int
    """Number in the session, from 1."""
    steps: int
    """Steps of this trial so far."""
    state: str
    """Name of the state that it is in."""

    @property
    def events(self) -> Sequence[TaskEvent]:
        """The rules that have fired in this trial, in order."""
        ...


#: What a rule of the audit comes to; a ``note`` is neither good nor bad.
AuditVerdict = Literal["ok", "FAIL", "note"]
#: What an audit looks at.
AuditPart = Literal["chance", "blind", "limit", "solvable", "rewards", "draws", "leaks", "cues", "lesions", "animal"]
#: The parts of an audit, in their order.
AUDIT_PARTS: tuple[AuditPart, ...] = get_args(AuditPart)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """What one rule of the audit found: ``text`` is a sentence with the number, ``numbers`` the same for programs.

    ``note`` is what a reader should know and no rule forbids.
    """

    rule: str
    verdict: AuditVerdict
    text: str
    numbers: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """How thorough an audit is. Equal settings give equal findings, whatever ``processes`` is.

    ``trials`` is the number of trials of a chance level; other parts of the audit take a fixed share of it.
    ``parts`` names the parts that are wanted (None: all). ``effort`` scales how long
    lesions are planned for. ``progress`` is told what is being done.
    """

    trials: int = 2000
    seed: int = 0
    processes: int = 1
    parts: tuple[AuditPart, ...] | None = None
    effort: float = 1.0
    progress: Callable[[str], None] | None = None


@runtime_checkable
class Auditable(Protocol):
    """A paradigm that can check whether it measures what it names. Optional: ``cheesebench audit`` asks for it."""

    def audit(self, views: Sequence[View], settings: AuditSettings) -> Iterable[AuditFinding]:
        """Return the findings of all rules, in a fixed order."""
        ...


class Reporter(Protocol):
    """Writes a finished (or interrupted) run for somebody (hook ``cheesebench_reporters``)."""

    name: str
    """As in ``cheesebench report RUN --format NAME``."""
    suffix: str
    """File name ending, with the dot."""

    def render(self, summary: RunSummary) -> str:
        """Return the report's text."""
        ...


@runtime_checkable
class RunReporter(Protocol):
    """A reporter that also shows single trials: it is given the run itself. Optional."""

    def render_run(self, summary: RunSummary, log: RunLog, plugins: PluginManager) -> str:
        """Return the report's text; ``plugins`` compiles the protocols of the run, and knows its views."""
        ...


@runtime_checkable
class FigureReporter(Protocol):
    """A reporter that also draws several runs together. Optional: ``cheesebench figures`` asks for it."""

    def render_figures(
        self, summaries: Sequence[RunSummary], sizes: Mapping[str, float], formats: Sequence[str]
    ) -> Mapping[str, bytes]:
        """Return file name -> content; ``sizes`` maps models to billions of parameters."""
        ...


class TrialObserver(Protocol):
    """Signature of the observer hook ``cheesebench_trial_finished``."""

    def __call__(self, plan: CellPlan, record: TrialRecord) -> None:
        """A trial has been written to the run log."""
        ...
