"""Interfaces of baselines for dialogues: respondents, and the puzzle that they are
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cheesebench.interfaces import AgentKind, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """The graph behind a question of a dialogue, and the correct answers.

    Baselines for chance or ceiling may read it; a model under test gets only the text.
    ``arcs`` are the steps from each node, in the order of the text; ``keys`` all
    correct paths, including the start; ``number`` the correct number if the question
    asks for one. ``walks`` returns the simple paths that define chance (including their
    start), and ``say`` a path as a verbal answer. If the question asks for all edges, a
    path is their nodes, two for each edge.
    """

    start: str
    arcs: Mapping[str, Sequence[str]]
    rewards: Mapping[str, float]
    keys: Sequence[Sequence[str]]
    number: int | None
    walks: Callable[[], Sequence[Sequence[str]]]
    say: Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class RespondentSpec:
    """A baseline for dialogues that can be named with ``--model`` (hook
    ``cheesebench_respondents``).

    ``reply`` answers one question: it takes the puzzle, the question's text and a seed,
    and returns the text of an answer. It has no memory.
    """

    name: str
    reply: Callable[[Puzzle, str, int], str]
    summary: str = ""
    memory: Memory = "none"
    kind: ClassVar[AgentKind] = "respondent"
