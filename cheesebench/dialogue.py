"""Interfaces of dialogues: puzzles, conversations, and baselines (respondents). Nothing here has behaviour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from cheesebench.interfaces import AgentKind, Memory, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """The graph behind a question of a dialogue, and the correct answers.

    Baselines for chance or ceiling may read it; a model under test gets only the text. ``arcs`` are the steps from each
    node, in the order of the text; ``keys`` all correct paths, including the start; ``number`` the correct number if
    the question asks for one. ``walks`` returns the simple paths that define chance (including their start), and
    ``say`` a path as a verbal answer. If the question asks for all edges, a path is their nodes, two for each edge.
    """

    start: str
    arcs: Mapping[str, Sequence[str]]
    rewards: Mapping[str, float]
    keys: Sequence[Sequence[str]]
    number: int | None
    walks: Callable[[], Sequence[Sequence[str]]]
    say: Callable[[Sequence[str]], str]


class Dialogue(Protocol):
    """One subject's questions in one condition; each trial is a conversation of one or more turns."""

    @property
    def system(self) -> str:
        """What a model is told before the first question of every conversation; empty if nothing."""
        ...

    @property
    def puzzle(self) -> Puzzle:
        """The puzzle of the latest question."""
        ...

    def begin_trial(self) -> str | None:
        """Begin the next conversation and return its first question, or None if there are no more."""
        ...

    def answer(self, text: str) -> str | None:
        """Take the whole reply (any text); return the next question, or None if the conversation has ended."""
        ...

    def result(self) -> TrialResult:
        """Return the result of the conversation that has just ended."""
        ...


@runtime_checkable
class Conversational(Protocol):
    """A compiled protocol of dialogues."""

    def dialogue(self, domain: str, condition: str, subject: int = 0) -> Dialogue:
        """Return a new dialogue with a subject's questions of a condition in the vocabulary of a domain."""
        ...


@dataclass(frozen=True, slots=True)
class RespondentSpec:
    """A baseline for dialogues that can be named with ``--model`` (hook ``cheesebench_respondents``).

    ``reply`` answers one question: it takes the puzzle, the question's text and a seed, and returns the text of an
    answer. It has no memory.
    """

    name: str
    reply: Callable[[Puzzle, str, int], str]
    summary: str = ""
    memory: Memory = "none"
    kind: ClassVar[AgentKind] = "respondent"
