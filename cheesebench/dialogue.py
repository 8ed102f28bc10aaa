"""Interfaces of baselines for dialogues: respondents, and the puzzles that they may
read.
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
    ``arcs`` has the nodes that each node leads to, in the order of the text. ``keys``
    are all correct paths, each with its start. ``number`` is the correct number if the
    question asks for one. ``walks`` returns the simple paths that define chance, each
    with its start. ``say`` returns a path as an answer in words. If the question asks
    for all edges, a path has the nodes of all edges, two for each.
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

    ``reply`` answers one question, without memory of others. It takes the puzzle, the
    question's text and a seed, and returns the text of the answer.
    """

    name: str
    reply: Callable[[Puzzle, str, int], str]
    summary: str = ""
    memory: Memory = "none"
    kind: ClassVar[AgentKind] = "respondent"
