"""Baselines for dialogues: the chance level, the ceiling, and an agent that looks one
step ahead. They can see the graph.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from cheesebench import Puzzle, RespondentSpec


def random_walk(puzzle: Puzzle, question: str, seed: int) -> str:
    """Answer with one of the paths that define chance (``Puzzle.walks``), drawn
    uniformly. If the question asks for a number, answer with one from 1 to the number
    of nodes.
    """
    chance = random.Random(seed)
    if puzzle.number is not None:
        return f"Answer: {chance.randint(1, len(puzzle.arcs))}"
    return puzzle.say(chance.choice(puzzle.walks()))


def shortest_path_oracle(puzzle: Puzzle, question: str, seed: int) -> str:
    return (
        f"Answer: {puzzle.number}"
        if puzzle.number is not None
        else puzzle.say(puzzle.keys[0])
    )


def greedy_reward(puzzle: Puzzle, question: str, seed: int) -> str:
    """Answer with a path that always goes to the unvisited neighbour with the largest
    reward (a random one of several), and ends at a reward or a dead end.

    The baseline looks one step ahead, and never plans. It cannot see groups of nodes,
    so it answers questions about their number with 1.
    """
    if puzzle.number is not None:
        return "Answer: 1"
    chance = random.Random(seed)
    path = [puzzle.start]
    while len(path) == 1 or not puzzle.rewards.get(path[-1]):
        onward = [node for node in puzzle.arcs[path[-1]] if node not in path]
        if not onward:
            break
        most = max(puzzle.rewards.get(node, 0) for node in onward)
        best: Sequence[str] = [
            node for node in onward if puzzle.rewards.get(node, 0) == most
        ]
        path.append(chance.choice(best))
    return puzzle.say(path)


RESPONDENTS = (
    RespondentSpec(
        "random-walk", random_walk, summary="dialogues: a random simple path"
    ),
    RespondentSpec(
        "shortest-path-oracle",
        shortest_path_oracle,
        summary="dialogues: the right answer",
    ),
    RespondentSpec(
        "greedy-reward",
        greedy_reward,
        summary="dialogues: goes to the largest reward one step ahead",
    ),
)
