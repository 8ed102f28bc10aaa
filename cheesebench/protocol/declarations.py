"""Gives every name of a protocol its meaning and type before any expression is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cheesebench.diagnostics import Diagnostics, Position, listed
from cheesebench.errors import did_you_mean
from cheesebench.protocol import documents as doc
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.arena import Arena, naming_position
from cheesebench.protocol.names import (
    RESERVED,
    Names,
    all_effects,
    counters,
    outcomes,
    runtime_value,
)
from cheesebench.redaction import quoted
from cheesebench.source import Node, walk

_ANY = frozenset[ex.Domain]({"any"})
_PLACE = frozenset[ex.Domain]({"place"})
_Path = tuple[str | int, ...]


def declare_names(
    document: doc.ProtocolDocument, root: Node, arena: Arena, diagnostics: Diagnostics
) -> Names:
    """Return the names of a protocol with their types, and report mistakes."""
    names = Names(
        arena,
        states=tuple(document.trial.states),
        outcomes=tuple(outcomes(document)),
        measures=tuple(document.measures),
        blocks=tuple(document.schedule),
        has_success=document.success is not None,
    )
    declaring = _Declaring(document, root, names, diagnostics)
    declaring.places()
    declaring.variables()
    declaring.draws()
    declaring.blocks()
    declaring.effects()
    names.symbols = tuple(declaring.symbols)
    declaring.counters()
    declaring.states_and_blocks()
    return names


class _Declaring:
    """Visits the parts of a document that introduce names. The order matters, because a
    later part may use names of an earlier one.
    """

    def __init__(
        self,
        document: doc.ProtocolDocument,
        root: Node,
        names: Names,
        diagnostics: Diagnostics,
    ) -> None:
        self._document, self._root = document, root
        self._names, self._diagnostics = names, diagnostics
        #: The meaning of each name, in words.
        self._taken = dict.fromkeys(names.places, "a zone, solid or group")
        self.symbols: dict[str, None] = {}

    def places(self) -> None:
        for name in dict.fromkeys([*self._names.places, *self._names.arena.doors]):
            if name in RESERVED:
                position = naming_position(self._root.find(["arena"]), name)
                self._is_reserved(name, position)

    def variables(self) -> None:
        for name, variable in self._document.vars.items():
            is_set = isinstance(variable.init, list)
            init = variable.init if isinstance(variable.init, list) else [variable.init]
            values = [runtime_value(value) for value in init]
            kind = self._type_of(values)
            if _odd_one(values) is not None:
                self._error(
                    203,
                    self._root.find(("vars", name)).position,
                    f"The set '{name}' mixes numbers and names.",
                    "Keep one kind.",
                )
            if is_set:
                kind = ex.Type("set", kind.domains if values else _ANY)
            self._declare(name, kind, "a variable", ("vars", name))

    def draws(self) -> None:
        for name, draw in self._document.draw.items():
            self._equal_columns(name, draw)
            for column, cells in draw.of.items():
                self._column(name, draw, column, cells)
            if draw.permute is not None:
                node = self._root.find(("draw", name, "permute"))
                self._only_places(name, draw.permute, node)
            if draw.sample is not None:
                self._dealt_columns(name, draw)

    def blocks(self) -> None:
        for block in self._document.schedule.values():
            for held in block.set.values():
                items = held if isinstance(held, list) else [held]
                self._type_of([runtime_value(item) for item in items])

    def effects(self) -> None:
        """Declare the symbols that ``set`` gives to variables of symbols, and that
        nothing else declares.
        """
        for effects in all_effects(self._document):
            for name, text in effects.set.items():
                if self._is_new_symbol(name, text) and text not in self.symbols:
                    self._names.born.append(str(text))
                    self.symbols[str(text)] = None

    def counters(self) -> None:
        for counter in counters(self._document):
            if counter in self._taken:
                self._counter_is(counter, f"the name of {self._taken[counter]}")
            elif counter in RESERVED:
                self._counter_is(counter, "a reserved word of the language")
            self._names.variables.setdefault(counter, ex.NUMBER)

    def states_and_blocks(self) -> None:
        for kind, entries, where in (
            ("state", self._document.trial.states, ("trial", "states")),
            ("block", self._document.schedule, ("schedule",)),
        ):
            for name in entries:
                if name in RESERVED:
                    position = self._root.find(where).key_position(name)
                    self._is_reserved(name, position, f"Choose another {kind} name.")

    def _equal_columns(self, name: str, draw: doc.Draw) -> None:
        if len({len(column) for column in draw.of.values()}) > 1:
            sizes = ", ".join(
                f"{column} has {len(cells)}" for column, cells in draw.of.items()
            )
            self._error(
                203,
                self._root.find(("draw", name, "of")).position,
                f"The columns of '{name}' differ in length: {sizes}.",
                "Complete the rows.",
            )

    def _column(
        self, name: str, draw: doc.Draw, column: str, cells: Sequence[doc.Scalar]
    ) -> None:
        permuted = draw.permute is not None
        path: _Path = (
            ("draw", name, "into", draw.into.index(column))
            if permuted
            else ("draw", name, "of", column)
        )
        values = [runtime_value(cell) for cell in cells]
        # All columns of a permutation have the same cells, so only one of them is
        # reported.
        odd = _odd_one(values)
        if odd is not None and not (permuted and column != draw.into[0]):
            self._error(
                203,
                self._root.find(path if permuted else (*path, odd)).position,
                f"The column '{column}' mixes numbers and names (here '{quoted(str(cells[odd]), 40)}').",
                "Keep one kind.",
            )
        kind = self._likely_type(values)
        if not permuted:
            self._only_places(column, cells, self._root.find(path))
        kind = ex.Type("set", kind.domains) if draw.pick else kind
        self._declare(column, kind, "a column of a draw", path)

    def _dealt_columns(self, name: str, draw: doc.Draw) -> None:
        """Declare the columns that receive the members of a group or set. If ``sample``
        names neither, ``DrawBuilder`` reports it.
        """
        names = self._names
        held = (
            ex.Type("set", _PLACE)
            if draw.sample in names.arena.groups
            else names.variables.get(draw.sample or "", ex.Type("set", _ANY))
        )
        kind = ex.Type("name", held.domains) if held.domains else ex.NUMBER
        kind = ex.Type("set", held.domains) if draw.pick else kind
        for number, column in enumerate(draw.into):
            path = ("draw", name, "into", number)
            self._declare(column, kind, "a column of a draw", path)

    def _is_new_symbol(self, name: str, text: object) -> bool:
        held = self._names.variables.get(name, ex.NUMBER).domains
        return (
            isinstance(text, str)
            and text.isidentifier()
            and bool(held & {"symbol", "any"})
            and text not in self._taken
            and text not in RESERVED
            and not self._names.domains(text)
        )

    def _declare(self, name: str, kind: ex.Type, what: str, path: _Path) -> None:
        if name in RESERVED:
            self._is_reserved(name, self._position(path))
        elif name in self._taken:
            self._error(
                202,
                self._position(path),
                f"'{name}' is already the name of {self._taken[name]}.",
                "Choose another name.",
            )
        else:
            self._taken[name] = what
            self._names.variables[name] = kind

    def _position(self, path: _Path) -> Position:
        last = path[-1]
        if isinstance(last, int):
            return self._root.find(path).position
        return self._root.find(path[:-1]).key_position(last)

    def _is_reserved(
        self, name: str, position: Position, remedy: str = "Choose another name."
    ) -> None:
        sentence = f"'{name}' is a reserved word of the language."
        self._error(202, position, sentence, remedy)

    def _counter_is(self, counter: str, what: str) -> None:
        position = _counting_position(self._root, counter)
        sentence = f"'{counter}' is counted here, but it is already {what}."
        self._error(202, position, sentence, "Rename it.")

    def _error(self, code: int, position: Position, sentence: str, remedy: str) -> None:
        self._diagnostics.error(code, position, sentence, remedy)

    def _likely_type(self, values: Sequence[ex.RuntimeValue]) -> ex.Type:
        """Return the type of a column, or of most of its cells if it is mixed."""
        odd = _odd_one(values)
        if odd is not None and isinstance(values[odd], str | None):
            return ex.NUMBER
        return self._type_of(values)

    def _type_of(self, values: Sequence[ex.RuntimeValue]) -> ex.Type:
        """Return the type of these values. Words that are no places become symbols."""
        words = [value for value in values if isinstance(value, str)]
        if not words:
            named = all(value is None for value in values)
            return ex.Type("name", _ANY) if named else ex.NUMBER
        symbols = [word for word in words if word not in self._names.places]
        self.symbols |= dict.fromkeys(symbols)
        domains: set[ex.Domain] = {"symbol"} if symbols else set()
        if len(symbols) < len(words):
            domains.add("place")
        return ex.Type("name", frozenset(domains))

    def _only_places(
        self, column: str, cells: Sequence[doc.Scalar], node: Node
    ) -> None:
        """If a column holds zones, report a name in it that is no zone. Otherwise the
        name would silently have no effect.
        """
        places = self._names.places
        words = [cell for cell in cells if isinstance(cell, str) and cell != "none"]
        if not any(word in places for word in words):
            return
        for number, cell in enumerate(cells):
            if cell in words and cell not in places:
                self._error(
                    201,
                    node.find([number]).position,
                    f"The column '{column}' holds zones, but '{cell}' is not a zone.",
                    did_you_mean(str(cell), places).strip()
                    or f"The zones are {listed(places)}.",
                )


def _counting_position(root: Node, counter: str) -> Position:
    for node in walk(root.find(["trial"])):
        counted = node.child("count") if isinstance(node.value, Mapping) else None
        for name in walk(counted) if counted is not None else ():
            if name.value == counter:
                return name.position
    return root.key_position("trial")


def _odd_one(values: Sequence[ex.RuntimeValue]) -> int | None:
    """If numbers and names are mixed, return the index of the first value of the rarer
    kind (of the names, if both are equally frequent), otherwise None. ``none`` counts
    as a name.
    """
    named = [isinstance(value, str | None) for value in values]
    if len({*named}) < 2:
        return None
    return named.index(2 * sum(named) <= len(named))
