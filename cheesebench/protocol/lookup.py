"""Name lookup for the builders of a specification; unknown names are reported at their positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cheesebench.errors import did_you_mean
from cheesebench.protocol import documents as doc
from cheesebench.protocol import specification as spec
from cheesebench.protocol.declare import all_effects, counters
from cheesebench.protocol.diagnostics import Diagnostics, Position, listed
from cheesebench.protocol.expressions import Expression
from cheesebench.protocol.features import Type
from cheesebench.protocol.names import RESERVED, Names
from cheesebench.protocol.source import Node
from cheesebench.protocol.values import Scalar, is_name

Path = Sequence[str | int]


class Lookup:
    """Base of the builders; every method reports what it finds and goes on."""

    def __init__(self, document: doc.ProtocolDocument, root: Node, names: Names, diagnostics: Diagnostics) -> None:
        self.document, self.root, self.names, self.diagnostics = document, root, names, diagnostics

    def unknown(self, what: str, name: str, known: Iterable[str], path: Sequence[str | int]) -> None:
        """Report an unknown name, suggesting the closest known one."""
        known = list(known)
        hint = did_you_mean(name, known).strip() or f"Known: {listed(known)}."
        self.diagnostics.error(201, self.root.find(path).position, f"There is no {what} '{name}'.", hint)

    def undeclared(self, name: str, value: object, position: Position) -> None:
        """Report that a variable is set which is not declared; the remedy holds a value such as it is set to."""
        what, hint = "is not declared", did_you_mean(name, self.document.vars).strip()
        if name in counters(self.document):
            what, hint = "is a counter", "Use 'count', or rename the variable."
        elif name in self.names.variables:
            what, hint = "is a column of a draw", "A draw's column cannot be set: copy it into a variable."
        elif name in self.names.places:
            what, hint = "is a place on the map", "Declare a variable of another name, and set that."
        elif not hint:
            known = isinstance(value, str) and value in {*self.names.places, *self.names.symbols}
            first = value if known else "[]" if isinstance(value, list) else 0
            hint = f"Add 'vars: {{{name}: {first}}}'."
        self.diagnostics.error(212, position, f"'{name}' is set here, but {what}.", hint)

    def expression(
        self,
        value: object,
        path: Sequence[str | int],
        want: Type | None = None,
        *,
        it: bool = False,
    ) -> Expression | None:
        """Resolve one expression; None if there is none, or if it has an error."""
        if value is None:
            return None
        node = self.root.find(path)
        return self.names.expression(value, node, self.diagnostics, want=want, it=it)

    def place(
        self, name: str, path: Sequence[str | int], *, solid: bool | None = None, placing: bool = False
    ) -> spec.Place:
        """Resolve a zone, group, door or solid, or a variable that holds one.

        ``solid``: True wants solids, False wants floor, None takes either. ``placing``: somebody is put there.
        """
        position = self.root.find(path).position
        self.names.used.add(name)
        if name in self.names.variables:
            kind = self.names.variables[name]
            if kind.kind not in ("name", "set") or not kind.domains & {"place", "any"}:
                self.diagnostics.error(
                    204, position, f"The variable '{name}' does not hold a zone.", "Name a zone or group."
                )
            for held in self.held(name):
                self._check_ground(held, position, solid, f"'{held}', which '{name}' can hold,", placing)
            return spec.Place(name, variable=True)
        if name not in self.names.places:
            self.unknown("zone", name, [*self.names.places, *self._place_variables()], path)
            return spec.Place(name)
        self._check_ground(name, position, solid, f"'{name}'", placing)
        return spec.Place(name)

    def _check_ground(self, name: str, position: Position, solid: bool | None, subject: str, placing: bool) -> None:
        arena = self.names.arena
        solids = [member for member in arena.members(name) if member in arena.solids]
        if placing and solids:
            self.diagnostics.error(
                205, position, f"{subject} is solid: no subject can be placed there.", "Name a zone of floor."
            )
        elif solid is False and solids:
            self.diagnostics.error(205, position, f"{subject} is solid: it is never entered.", "Use 'press'.")
        if solid is True and len(solids) < len(arena.members(name)):
            self.diagnostics.error(205, position, f"{subject} is floor: it is never pressed.", "Use 'enter'.")

    def held(self, variable: str) -> list[str]:
        """Return the places that a variable can hold, as far as known."""
        return [name for name in map(str, self.values(variable)) if name in self.names.places]

    def values(self, variable: str) -> list[Scalar]:
        """Return what a variable or column is given by name anywhere (it may also copy another one).

        ``none`` is left out: it means nothing everywhere.
        """
        return self._values(variable, len(self.document.draw))

    def _values(self, variable: str, before: int) -> list[Scalar]:
        """Return the same of the first draws: a set is dealt out by later ones only."""
        found: list[Scalar | list[Scalar]] = []
        for number, draw in enumerate([*self.document.draw.values()][:before]):
            found += draw.of.get(variable, [])
            if variable in draw.into and draw.sample is not None:
                found += self.names.arena.groups.get(draw.sample) or self._values(draw.sample, number)
        if variable in self.document.vars:
            found.append(self.document.vars[variable].init)
            found += [block.set[variable] for block in self.document.schedule.values() if variable in block.set]
            given = [effects.set[variable] for effects in all_effects(self.document) if variable in effects.set]
            found += [value for value in given if is_name(value) and value not in {*self.names.variables, *RESERVED}]
        flat = [value for values in found for value in (values if isinstance(values, list) else [values])]
        return [value for value in dict.fromkeys(flat) if value != "none"]

    def _place_variables(self) -> list[str]:
        return [name for name, kind in self.names.variables.items() if "place" in kind.domains]
