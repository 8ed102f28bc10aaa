"""The possible values of a program: names as numbers, and members of sets as bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cheesebench.errors import OptionError
from cheesebench.paradigms.arena.jit.layout import BITS, EXACT
from cheesebench.paradigms.arena.program import Program
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.declare import TIMEOUT
from cheesebench.protocol.specification import RuntimeValue, Specification


class UntranslatableError(OptionError):
    """A program does not fit into arrays; it falls back to the scalar kernel, ``life.ArenaSubject``."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"This protocol cannot be compiled: {reason}. Remove 'compiled'.")


class Vocabulary:
    """Numbers of names, in the order in which they are asked for, and ``elements``: all that sets can have."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.numbers: dict[str, int] = {"": 0}
        self.elements: dict[str | float, int] = {}
        for value in self._members():
            self._add_element(value)
        if len(self.elements) > BITS or len(program.geometry.bit) > BITS:
            raise UntranslatableError("too many members of sets, or events")

    def number(self, name: str) -> int:
        """Return the number of a name."""
        return self.numbers.setdefault(name, len(self.numbers))

    def bits(self, members: Iterable[str | float]) -> int:
        """Return a set as bits."""
        return sum(1 << self.elements[member] for member in members)

    def _add_element(self, value: str | float) -> None:
        place = self.elements.setdefault(value, len(self.elements))
        if type(list(self.elements)[place]) is not type(value):
            raise UntranslatableError("a set can have a whole number and the same number as a fraction")
        if isinstance(value, int | float) and not abs(value) < EXACT:
            raise UntranslatableError("a set can have a number that is too large")

    def _members(self) -> Iterator[str | float]:
        """Yield the possible members of a set."""
        specification = self._program.specification
        for held in held_values(specification):
            if isinstance(held, frozenset):
                yield from sorted(held, key=str)
        for draw in specification.draws:
            if draw.pick is not None:
                yield from (value for row in draw.rows for value in row if value is not None)  # type: ignore[misc]
        for tree in self._program.all_expressions():
            for node in ex.walk(tree):
                if isinstance(node, ex.Members):
                    yield from sorted(node.values)
        for effects in self._program.all_effects():
            for assignment in (*effects.add, *effects.remove):
                yield from self._possible(assignment.value)

    def _possible(self, tree: ex.Expression) -> Iterator[str | float]:
        """Yield what the value of an expression can be, or have."""
        specification = self._program.specification
        arena = specification.arena
        match tree:
            case ex.Number(value):
                yield value
            case ex.Constant(None):
                pass
            case ex.Constant(str(name)):
                yield name
            case ex.Members():
                pass  # known already
            case ex.Classes(cases):
                yield from (name for _, name in cases)
            case ex.BuiltIn("it"):
                yield from self._targets()
            case ex.BuiltIn("last"):
                yield from (*specification.outcomes, TIMEOUT)
            case ex.BuiltIn("block"):
                yield from (block.name for block in specification.schedule)
            case ex.BuiltIn("state"):
                yield from specification.states
            case ex.Call("where", ex.Constant(str(group))):
                yield from arena.members(group)
            case ex.Variable(name) if name in specification.columns:
                yield from self._drawn(name)
            case ex.Variable(name) if name in specification.variables:
                kind = specification.variables[name].type.kind
                if kind == "name":
                    yield from self._names()
                elif kind != "set":
                    raise UntranslatableError("a set can have any number")
            case _:
                raise UntranslatableError("a set can have any number")

    def _targets(self) -> Iterator[str]:
        yield from (name for kind, name in self._program.geometry.bit if kind not in ("act", "where", "blocked"))

    def _drawn(self, column: str) -> Iterator[str | float]:
        for draw in self._program.specification.draws:
            if column in draw.columns and draw.pick is None:
                yield from (value for row in draw.rows if (value := row[draw.columns.index(column)]) is not None)  # type: ignore[misc]

    def _names(self) -> Iterator[str | float]:
        """Yield every name that a variable can hold."""
        specification = self._program.specification
        yield from self._targets()
        yield from (value for value in held_values(specification) if isinstance(value, str))
        for column in specification.columns:
            yield from (value for value in self._drawn(column) if isinstance(value, str))
        for tree in self._program.all_expressions():
            for node in ex.walk(tree):
                match node:
                    case ex.Constant(str(name)):
                        yield name
                        yield from specification.arena.members(name)
                    case ex.BuiltIn("last" | "block" | "state") | ex.Classes():
                        yield from self._possible(node)


def held_values(specification: Specification) -> Iterator[RuntimeValue]:
    """Yield the values that variables begin with."""
    yield from (variable.initial for variable in specification.variables.values())
    for block in specification.schedule:
        yield from (value for _, value in block.set)
