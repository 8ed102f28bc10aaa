"""What protocols compile into: the arena family (movement tables, step kernel, Gymnasium classes)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cheesebench import hookimpl

if TYPE_CHECKING:
    from cheesebench.interfaces import Life, View
    from cheesebench.protocol import Specification


class ArenaParadigm:
    """A compiled protocol of the arena family."""

    def __init__(self, specification: Specification) -> None:
        from cheesebench.paradigms.program import Program

        self.specification = specification
        self.program = Program(specification)

    def life(self, view: View, seed: int, subject: int) -> Life:
        """Return the life of ``subject`` (from 0) under ``seed``."""
        from cheesebench.paradigms.life import ArenaLife

        return ArenaLife(self.program, view, seed, subject)


class ArenaFamily:
    """Compiles protocols whose arena is a map or a generator."""

    name = "arena"

    def compile(self, specification: Specification) -> ArenaParadigm:
        """Return the compiled paradigm."""
        return ArenaParadigm(specification)


@hookimpl
def cheesebench_families() -> list[ArenaFamily]:
    """Return the families of this distribution."""
    return [ArenaFamily()]


def __getattr__(name: str) -> Any:
    """Return the Gymnasium class of a shipped protocol: ``cheesebench.paradigms.MorrisWaterMaze``."""
    if name.startswith("_"):
        raise AttributeError(name)
    from cheesebench.paradigms.environment import class_named

    return class_named(name)
