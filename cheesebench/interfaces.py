"""Interfaces between the parts of CheeseBench: the typed protocols that plugins
implement, and their data types.

A plugin needs a base class only for a family (``family.Family``) and its compiled
protocols (``Paradigm``). Everything else is an object with these attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    get_args,
    runtime_checkable,
)

from cheesebench.errors import UnsuitableError

if TYPE_CHECKING:
    import argparse

    from pydantic import BaseModel

    from cheesebench.lesions import Lesion


#: The four egocentric actions; their index is the action number everywhere.
ACTIONS = ("FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "STAY")
FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY = range(4)
#: One letter per action, as in the run log and in ``tests:`` blocks.
ACTION_LETTERS = "FLRS"
#: Letter of a frozen step, for which the agent was not asked.
WAITED_LETTER = "."
#: Action number by letter of the run log.
ACTION_OF_LETTER = {letter: action for action, letter in enumerate(ACTION_LETTERS)} | {
    WAITED_LETTER: STAY
}
#: Headings in clockwise order. A heading number is an index into this tuple, for any
#: number of headings in the arena.
HEADINGS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")

#: Status of the trial after a step, as returned by ``SubjectEnvironment.step``.
RUNNING, TERMINATED, TRUNCATED = range(3)

#: Content of a square; ``void`` is outside the arena.
TileKind = Literal["void", "wall", "floor", "door", "solid", "landmark"]


@dataclass(frozen=True, slots=True)
class Tile:
    """One square of a scene.

    ``kind`` is its content; ``glyph`` (one character) its present appearance. A
    ``door`` tile is a *closed* door; an open one is ``floor``.
    """

    kind: TileKind
    glyph: str


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything visible at one moment; every view is a projection of a scene.

    ``tiles`` is indexed ``[row][column]``, row 0 in the north; rows have equal length.
    ``text`` has the lines of the present state (possibly none).
    """

    tiles: tuple[tuple[Tile, ...], ...]
    text: tuple[str, ...] = ()


class View(Protocol):
    """A projection of a scene to an observation (hook ``cheesebench_views``)."""

    name: str
    """Short identifier as in ``--view ascii_2d``."""
    characters: str
    """Characters that the view may draw beyond the glyphs and text of the scene."""

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        """Return the observation of an agent at ``(column, row)`` that faces
        ``heading`` (0-7).
        """
        ...

    def max_length(self, scene: Scene) -> int:
        """Return an upper bound of ``len(render(scene, ...))`` over all poses."""
        ...


@runtime_checkable
class PictureView(View, Protocol):
    """A view whose ``render`` returns a ``chat.Picture``. Only agents that accept
    pictures can use it.

    Test for it with ``isinstance(view, PictureView)``. The text of its pictures is the
    state's text; ``max_length`` and ``characters`` refer to that text.
    """

    def picture_size(self, scene: Scene) -> tuple[int, int]:
        """Return width and height in pixels of every picture of the scene."""
        ...


@runtime_checkable
class ReadableView(Protocol):
    """Optional interface of a view that explains its observations, for prompts of
    language models.
    """

    reading: str
    """A few sentences addressed to the agent ("you"), without naming a paradigm, a goal
    or a cue.
    """


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What a new agent is told. It is told nothing about the paradigm.

    ``seed`` is a 63-bit number for this subject, from which all of the agent's random
    numbers must come. It is a hash of the run's seed. An agent cannot infer a drawn
    run seed from it, but could find a typed one by trial and error, and then foresee
    everything that the environment draws. Reports say whether the run's seed was drawn
    or typed.
    """

    seed: int
    view: str


class Agent(Protocol):
    """One subject; its memory persists over all of its trials.

    The runner calls ``begin_trial``, then ``act`` and, for every executed step,
    ``observe``. If the subject first has to wait, ``observe`` comes before ``act``.
    Under the control ``memoryless``, the agent is made anew before each step.
    """

    def begin_trial(self, observation: str) -> None:
        """Start a new trial, whose first observation is ``observation``."""
        ...

    def act(self, observation: str) -> Sequence[int]:
        """Return one or more actions (0-3), which are executed in order until the trial
        ends.
        """
        ...

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Record one executed step (steps in which the subject only waited are reported
        as STAY).
        """
        ...


#: An agent's memory between trials: nothing, or everything it has learnt.
Memory = Literal["none", "life"]
#: End of the error message for an agent whose ``memory`` is neither of these.
MEMORY_RULE = "it must be 'life', or 'none' for an agent that keeps nothing"


#: Kind of an agent: "agent", "model agent" or "respondent". Families may add others.
AgentKind = str


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent that can be named with ``--model`` (hook ``cheesebench_agents``).

    ``memory`` is ``"none"`` for an agent that keeps nothing between trials. The
    observed intraclass correlation is reported and may contradict this.
    """

    name: str
    create: Callable[[AgentContext], Agent]
    memory: Memory = "life"
    summary: str = ""
    kind: ClassVar[AgentKind] = "agent"


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command of ``cheesebench`` (hook ``cheesebench_commands``): its name and a
    short description.

    ``module`` is imported when the command is called; it has the functions of
    ``CommandModule``.
    """

    name: str
    help: str
    module: str


class CommandModule(Protocol):
    """The module of a command. The methods describe functions of the module, which have
    no ``self``.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command to its parser."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Run the command, and return the exit code: 0, or 1 if it has findings to
        report.
        """
        ...


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """A rule that fired: the step of the trial, the state, the event that triggered it,
    and the ``file:line`` of the rule.
    """

    step: int
    state: str
    event: str
    source: str


#: A value of a trial: None if undefined, a list for a set.
Value = float | int | str | bool | None | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of one trial (language page, clause 18).

    ``session`` counts from 1 over the subject's whole schedule. ``outcome`` is
    ``"timeout"`` if the trial reached the limit. ``success`` is None if the protocol
    declares no success. ``path_length`` is the number of steps to another square, and
    ``bumps`` the number of FORWARDs that neither moved the subject nor pressed a solid.
    """

    block: str
    session: int
    outcome: str
    success: bool | None
    compared: bool
    """Whether ``where`` of the reference and of the estimand holds (True if there is
    none). Other trials enter neither the pass rate nor the mean of the judged measure.
    """
    counters: Mapping[str, int]
    measures: Mapping[str, Value]
    variables: Mapping[str, Value]
    path_length: int
    bumps: int
    events: Sequence[TaskEvent]


class SubjectEnvironment(Protocol):
    """The environment of one subject in one paradigm. It runs the schedule, trial after
    trial, from one seed.
    """

    waiting: bool
    """True while the state is frozen and ignores actions: the runner may advance it
    with STAY without asking.
    """

    def begin_trial(self) -> str | None:
        """Advance the schedule and return the first observation, or None at the end of
        the schedule.
        """
        ...

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action (0-3); return observation, reward, and RUNNING, TERMINATED
        or TRUNCATED.
        """
        ...

    def result(self) -> TrialResult:
        """Return the result of the trial that has just ended."""
        ...


#: The edition that a protocol's name alone means.
DEFAULT_EDITION = "default"


@dataclass(frozen=True)
class BaseSpecification:
    """The attributes of protocols of every family. A specification is one paradigm in
    one edition.

    ``text`` is the resolved protocol (ancestors merged) as canonical JSON. ``sha256``
    is a digest of the part that can change a subject's trials or a verdict. The
    language page lists the keys that it leaves out.
    """

    paradigm: str
    edition: str
    family: str
    path: str
    text: str
    sha256: str
    ancestors: tuple[str, ...]
    document: BaseModel

    @property
    def title(self) -> str:
        """Title for readers."""
        title: str | None = getattr(self.document, "title", None)
        return title or self.paradigm.replace("_", " ").capitalize()

    @property
    def acknowledged(self) -> Mapping[str, str]:
        """The codes of the findings that the author acknowledges, each with the
        reason.
        """
        return dict(getattr(self.document, "acknowledged", {}))

    @property
    def most_calls(self) -> int:
        """Approximate number of calls per trial, for scheduling: subjects with the most
        calls left come first.
        """
        return 1

    @property
    def construct(self) -> Any:
        """What the protocol claims to measure, with the lesions that can show this, or
        None if it claims nothing.
        """
        return None

    @property
    def judged_sessions(self) -> Mapping[int, int]:
        """The number of trials in each session (from 1) that enter the pass rate, or an
        empty mapping if the verdict uses no pass rate.
        """
        return {}

    @property
    def animals_icc(self) -> float | None:
        """The intraclass correlation of an animal's judged trials, or None if it is
        unknown. ``plan`` simulates animals with it; no verdict uses it.
        """
        return None

    def obstacle(self, lesion: Lesion) -> str:
        """Return why the protocol's subjects cannot have a lesion, such as ``there are
        no landmarks``, or "" if they can.
        """
        return ""

    @property
    def name(self) -> str:
        """``paradigm``, or ``paradigm@edition`` for every edition but the default
        one.
        """
        return (
            self.paradigm
            if self.edition == DEFAULT_EDITION
            else f"{self.paradigm}@{self.edition}"
        )


@runtime_checkable
class Situated(Protocol):
    """Optional interface of an environment that distinguishes a subject's own movement
    from outside events.

    Without it, a model's plan is dropped only for rewards, at the end of a trial, and
    when the subject is held.
    """

    @property
    def placed(self) -> bool:
        """Whether an outside event put the subject elsewhere in the last step."""
        ...

    def foreseen(self, action: int) -> str | None:
        """Return what the subject will see, in its own view, if this action does no
        more than move it, or None if that is unknown.
        """
        ...


class Pose(NamedTuple):
    """A subject's place and heading in its arena, and the present state.

    ``x`` and ``y`` are a column and a row, from 0 in the north-west; ``heading`` is in
    degrees clockwise from north. They do not depend on how the picture is turned.

    ``turn`` says by how many degrees clockwise the landmarks are turned around the maze
    in this trial. Places that are turned back by as much are where they are in the
    room.
    """

    x: int
    y: int
    heading: int
    state: str
    turn: int = 0


@runtime_checkable
class Located(Protocol):
    """Optional interface of an environment in an arena: where its subject is, and where
    it would be rewarded now.
    """

    @property
    def location(self) -> Pose | None:
        """The subject's position, or None if it is not known."""
        ...

    @property
    def goals(self) -> frozenset[tuple[int, int]]:
        """Squares, as ``(x, y)``, whose entry (or press) would bring the largest reward
        of the present state.
        """
        ...

    @property
    def happenings(self) -> int:
        """Number of rules that have fired in this trial. ``goals`` can change only when
        this number does.
        """
        ...


@dataclass(frozen=True, slots=True)
class Still:
    """One moment, for authors: a scene with the subject's position and heading (0-7).

    ``left`` and ``top`` are the arena's column and row at the scene's corner (usually
    0): landmarks outside the map make the scene larger than the map.
    """

    state: str
    scene: Scene
    column: int
    row: int
    heading: int
    left: int = 0
    top: int = 0


@dataclass(frozen=True, slots=True)
class Ground:
    """An arena from above, in its own orientation: with its landmarks, but without
    anything that a state shows. ``left`` and ``top`` have the same meaning as in
    ``Still``.
    """

    scene: Scene
    left: int
    top: int
    zones: Mapping[str, frozenset[tuple[int, int]]] = field(default_factory=dict)
    """Squares of the named places of the protocol, as ``(x, y)``."""
    centre: tuple[float, float] | None = None
    """Column and row of the point around which the landmarks are turned between trials,
    or None if they stay. The scene has them as in a trial whose ``Pose.turn`` is 0.
    """

    @property
    def holes(self) -> frozenset[tuple[int, int]]:
        """Floor squares whose glyph differs from most of the floor: holes, cups."""
        return frozenset(self._unusual("floor"))

    @property
    def signs(self) -> Mapping[tuple[int, int], str]:
        """Glyphs that a drawing must show to tell squares of one kind apart, because it
        draws squares by kind, and holes as rings.
        """
        found: dict[tuple[int, int], str] = {}
        for kind, alike in (("floor", 1), ("wall", 0), ("door", 0)):
            unusual = self._unusual(kind)
            if len({*unusual.values()}) > alike:
                found |= unusual
        return found

    def _unusual(self, kind: str) -> dict[tuple[int, int], str]:
        """Return the squares of a kind whose glyph is not its most frequent one, each
        with its glyph.
        """
        glyphs = {
            (x + self.left, y + self.top): tile.glyph
            for y, row in enumerate(self.scene.tiles)
            for x, tile in enumerate(row)
            if tile.kind == kind
        }
        [(usual, _)] = Counter(glyphs.values()).most_common(1) or [("", 0)]
        return {at: glyph for at, glyph in glyphs.items() if glyph != usual}


class TestOutcome(Protocol):
    """The result of one of a protocol's own tests; ``str`` gives one line with the
    position of the test.
    """

    @property
    def passed(self) -> bool:
        """Whether all expectations were met."""
        ...


#: Controls that change the cues of a paradigm; see ``experiment.controls``.
CueControl = Literal["cue-off", "cue-shuffled", "labels-swapped"]


@runtime_checkable
class ObservableSubject(Protocol):
    """Optional interface of an environment that exposes its state during a trial, for
    ``cheesebench play``.
    """

    block: str
    """Name of the block of the schedule."""
    session: int
    """Number of the session in the block's repetition, from 1."""
    trial: int
    """Number of the trial in the session, from 1."""
    steps: int
    """Number of steps in this trial so far."""
    state: str
    """Name of the present state."""

    @property
    def events(self) -> Sequence[TaskEvent]:
        """The rules that have fired in this trial, in order."""
        ...


#: Verdict of a rule of the audit; a ``note`` is neutral.
AuditVerdict = Literal["ok", "FAIL", "undecided", "note"]
#: Parts of an audit.
AuditPart = Literal[
    "chance", "blind", "limit", "solvable", "rewards", "same-event", "draws", "leaks", "cues", "lesions", "memory", "animal"
]  # fmt: skip
#: The parts of an audit, in their order.
AUDIT_PARTS: tuple[AuditPart, ...] = get_args(AuditPart)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The finding of one rule of the audit: ``text`` is a sentence with the numbers,
    ``numbers`` has them for programs.

    The verdict is ``note`` for information that the rule does not judge, and
    ``undecided`` if the audit could not tell. More ``effort`` or trials may decide it.
    """

    rule: str
    verdict: AuditVerdict
    text: str
    numbers: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Settings of an audit. Equal settings give equal findings, for any number of
    ``processes``.

    ``trials`` is the number of trials from which a chance level is measured; other
    parts use a fixed share of this number. ``parts`` names the requested parts (None:
    all but ``memory``). ``effort`` scales the planning time for lesions. ``progress``
    is called with the name of each part and the verdict of each rule, as they come.
    ``kept`` is a directory that keeps finished searches for later audits of the same
    protocol by the same code; if it is empty, nothing is kept.
    """

    trials: int = 2000
    seed: int = 0
    processes: int = 1
    parts: tuple[AuditPart, ...] | None = None
    effort: float = 1.0
    progress: Callable[[str], None] | None = None
    kept: str = ""


class Paradigm:
    """Base class of compiled protocols, which ``Family.compile`` returns.

    Override the methods that the family supports. Most others raise UnsuitableError;
    ``ground`` returns None, and ``own_tests`` returns no tests. Every family that runs
    step by step needs ``environment``.
    """

    specification: Any
    """The specification from which the protocol was compiled."""

    @property
    def is_stepwise(self) -> bool:
        """Whether subjects act step by step, in environments."""
        return type(self).environment is not Paradigm.environment

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        """Return the environment of ``subject`` (from 0) under ``seed``."""
        raise self._lacks(
            "are not run step by step; run them with `pytest --model NAME --protocols NAME`"
        )

    def still(
        self,
        view: View,
        seed: int,
        subject: int,
        state: str | None = None,
        trial: int = 1,
    ) -> Still:
        """Return the start of a trial (from 1), drawn as in ``state`` (None: the
        initial state). The subject waits through all earlier trials.
        """
        raise self._lacks("cannot be drawn")

    def ground(self) -> Ground | None:
        """Return the arena from above, or None if there is none."""
        return None

    def with_cues(self, how: CueControl, seed: int) -> Paradigm:
        """Return the same paradigm with only its visible cues (and texts) changed."""
        raise self._lacks(f"have no control '{how}'")

    def lesioned(self, view: View, lesion: Lesion) -> View:
        """Return the view of a subject with the lesion, or the view itself if the
        lesion does not change the picture.
        """
        raise self._lacks(f"have no picture that '{lesion}' could hide")

    def yoked_environment(
        self, view: View, seed: int, subject: int, trials: Sequence[Sequence[int]]
    ) -> SubjectEnvironment:
        """Return an environment yoked to a recorded ``subject`` under ``seed``;
        ``trials`` has this subject's actions in each trial.
        """
        raise self._lacks("cannot be yoked")

    def own_tests(self, view: View) -> Sequence[TestOutcome]:
        """Run all tests of the protocol, in the order of the file."""
        return ()

    def audit(
        self, views: Sequence[View], settings: AuditSettings
    ) -> Iterable[AuditFinding]:
        """Return the findings of all rules of the audit, in a fixed order."""
        raise self._lacks("have no audit")

    def _lacks(self, what: str) -> UnsuitableError:
        specification: BaseSpecification = self.specification
        return UnsuitableError(
            f"'{specification.name}': protocols of the family '{specification.family}' {what}."
        )
