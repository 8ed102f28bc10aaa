"""What dialogues add to the contract: puzzles, conversations, and baselines that answer. Nothing here has behaviour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from cheesebench.interfaces import AgentKind, Memory, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """What a question of a dialogue is really about: the graph as it is now, and what would be right.

    A baseline that shows chance or ceiling may read it; a model under test is given the text alone. ``arcs`` are
    the steps from each node, in the order told; ``keys`` all right ways, start included; ``number`` what is right
    where something is counted. ``walks`` returns the simple paths that chance is taken over (their start included),
    and ``say`` a way as an answer in words.
    """

    start: str
    arcs: Mapping[str, Sequence[str]]
    rewards: Mapping[str, float]
    keys: Sequence[Sequence[str]]
    number: int | None
    walks: Callable[[], Sequence[Sequence[str]]]
    say: Callable[[Sequence[str]], str]


class Dialogue(Protocol):
    """One subject's questions in one condition: trial after trial, each a conversation of one turn or more."""

    @property
    def puzzle(self) -> Puzzle:
        """What the question that was asked last is about."""
        ...

    def begin_trial(self) -> str | None:
        """Begin the next conversation and return its first question, or None when there are no more."""
        ...

    def answer(self, text: str) -> str | None:
        """Take the whole reply (any text); return the next question, or None when the conversation is over."""
        ...

    def result(self) -> TrialResult:
        """Return what the conversation that has just ended came to."""
        ...


@runtime_checkable
class Conversational(Protocol):
    """A compiled protocol that is talked about, not walked through."""

    def dialogue(self, domain: str, condition: str) -> Dialogue:
        """Return the questions of a condition in the words of a domain; every call begins anew."""
        ...


@dataclass(frozen=True, slots=True)
class RespondentSpec:
    """A baseline for dialogues that can be named with ``--model`` (hook ``cheesebench_respondents``).

    ``reply`` answers one question: given the puzzle, the question's text and a seed of its own, it returns the text
    of an answer. It remembers nothing.
    """

    name: str
    reply: Callable[[Puzzle, str, int], str]
    summary: str = ""
    memory: Memory = "none"
    kind: ClassVar[AgentKind] = "respondent"
