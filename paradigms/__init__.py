"""The families of protocols: arenas (movement tables, step kernel, Gymnasium classes)
and dialogues.
"""

from __future__ import annotations

from typing import Any

from cheesebench import CommandSpec, hookimpl
from cheesebench.paradigms.arena.family import ArenaFamily
from cheesebench.paradigms.dialogue.family import DialogueFamily


@hookimpl
def cheesebench_families() -> list[ArenaFamily | DialogueFamily]:
    return [ArenaFamily(), DialogueFamily()]


@hookimpl
def cheesebench_commands() -> list[CommandSpec]:
    says = "summarise the results of dialogues as the CogEval paper does"
    return [
        CommandSpec(
            "cogeval-stats", says, "cheesebench.paradigms.dialogue.cogeval_stats"
        )
    ]


def __getattr__(name: str) -> Any:
    """Return the Gymnasium class of an installed protocol by its class name, as in
    ``cheesebench.paradigms.MorrisWaterMaze``.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    # The import is here because Gymnasium is slow to import.
    from cheesebench.paradigms.arena.environment import class_named

    return class_named(name)
