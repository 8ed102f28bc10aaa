"""Declares the names of a protocol with their types, before any expression is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cheesebench.errors import did_you_mean
from cheesebench.protocol import documents as doc
from cheesebench.protocol import specification as spec
from cheesebench.protocol.arena import Arena, naming_position
from cheesebench.protocol.diagnostics import Diagnostics, Position, listed
from cheesebench.protocol.features import NUMBER, Domain, Type
from cheesebench.protocol.names import RESERVED, Names
from cheesebench.protocol.source import Node, walk
from cheesebench.protocol.values import Scalar

#: Outcome of a trial that the step limit cut off.
TIMEOUT = "timeout"


def all_effects(document: doc.ProtocolDocument) -> Iterable[doc.Effects]:
    """Yield everything that has effects."""
    trial = document.trial
    for state in trial.states.values():
        yield state
        yield from state.rules
        if state.each:
            yield state.each
    yield from trial.watch
    if trial.each:
        yield trial.each


def counters(document: doc.ProtocolDocument) -> list[str]:
    """Return the counters in order of first use."""
    return list(dict.fromkeys(name for effects in all_effects(document) for name in effects.count))


def outcomes(document: doc.ProtocolDocument) -> list[str]:
    """Return all outcomes that a trial can have, ``timeout`` last."""
    trial = document.trial
    ends = [rule.end for state in trial.states.values() for rule in state.rules]
    ends += [one.end for one in trial.finish]
    return list(dict.fromkeys([*(end for end in ends if end), TIMEOUT]))


def runtime_value(scalar: Scalar) -> float | int | str | None:
    """Return a value of the file as its run-time value: true is 1, ``none`` is None."""
    if isinstance(scalar, bool):
        return int(scalar)
    return None if scalar == "none" else scalar


def declare_names(document: doc.ProtocolDocument, root: Node, arena: Arena, diagnostics: Diagnostics) -> Names:
    """Give every name of the protocol its meaning, before any expression is read."""
    names = Names(
        arena,
        states=tuple(document.trial.states),
        outcomes=tuple(outcomes(document)),
        blocks=tuple(document.schedule),
        has_success=document.success is not None,
    )
    taken: dict[str, str] = dict.fromkeys(names.places, "a zone or group")

    for name in dict.fromkeys([*names.places, *arena.doors]):
        if name in RESERVED:
            position = naming_position(root.find(["arena"]), name)
            diagnostics.error(202, position, f"'{name}' is a reserved word of the language.", "Choose another name.")

    def declare(name: str, kind: Type, what: str, path: Sequence[str | int]) -> None:
        last = path[-1]
        position = root.find(path).position if isinstance(last, int) else root.find(path[:-1]).key_position(last)
        if name in RESERVED:
            diagnostics.error(202, position, f"'{name}' is a reserved word of the language.", "Choose another name.")
        elif name in taken:
            diagnostics.error(202, position, f"'{name}' is already the name of {taken[name]}.", "Choose another name.")
        else:
            taken[name] = what
            names.variables[name] = kind

    symbols: dict[str, None] = {}
    for name, variable in document.vars.items():
        values = variable.init if isinstance(variable.init, list) else [variable.init]
        kind = _type_of([runtime_value(v) for v in values], names, symbols)
        if _mixed(map(runtime_value, values)):
            position = root.find(("vars", name)).position
            diagnostics.error(203, position, f"The set '{name}' mixes numbers and names.", "Keep one.")
        if isinstance(variable.init, list):
            kind = Type("set", kind.domains if values else frozenset[Domain]({"any"}))
        declare(name, kind, "a variable", ("vars", name))
    for draw_name, draw in document.draw.items():
        lengths = {len(column) for column in draw.of.values()}
        if len(lengths) > 1:
            position = root.find(("draw", draw_name, "of")).position
            sizes = ", ".join(f"{name} has {len(column)}" for name, column in draw.of.items())
            diagnostics.error(
                203,
                position,
                f"The columns of '{draw_name}' differ in length: {sizes}.",
                "Complete the rows.",
            )
        for column, cells in draw.of.items():
            path: tuple[str | int, ...] = ("draw", draw_name, "of", column)
            if draw.permute is not None:
                path = ("draw", draw_name, "into", draw.into.index(column))
            column_values: list[spec.RuntimeValue] = [runtime_value(cell) for cell in cells]
            if _mixed(column_values) and (draw.permute is None or column == draw.into[0]):
                position = root.find(path).position
                diagnostics.error(203, position, f"The column '{column}' mixes numbers and names.", "Keep one.")
            kind = _type_of(column_values, names, symbols)
            if draw.permute is None:
                _only_places(column, cells, root.find(path), names, diagnostics)
            declare(column, Type("set", kind.domains) if draw.pick else kind, "a column of a draw", path)
        if draw.permute is not None:
            _only_places(draw_name, draw.permute, root.find(("draw", draw_name, "permute")), names, diagnostics)
        for number, column in enumerate(draw.into if draw.sample is not None else ()):
            # Where `sample` names nothing that can be dealt out, the builder says so.
            group = Type("set", frozenset[Domain]({"place"})) if draw.sample in arena.groups else None
            dealt = group or names.variables.get(draw.sample or "", Type("set", frozenset[Domain]({"any"})))
            kind = Type("name", dealt.domains) if dealt.domains else NUMBER
            if draw.pick:
                kind = Type("set", dealt.domains)
            declare(column, kind, "a column of a draw", ("draw", draw_name, "into", number))
    for block in document.schedule.values():
        for held in block.set.values():
            listed = held if isinstance(held, list) else [held]
            _type_of([runtime_value(item) for item in listed], names, symbols)
    for effects in all_effects(document):
        for name, text in effects.set.items():
            # `set` may give a variable that holds a symbol a new one: that is where the symbol is born.
            kind = names.variables.get(name, NUMBER)
            known = isinstance(text, str) and (text in taken or text in RESERVED or names.domains(text))
            holds_symbols = bool(kind.domains & {"symbol", "any"})
            if holds_symbols and isinstance(text, str) and text.isidentifier() and not known:
                if text not in symbols:
                    names.born.append(text)
                symbols.setdefault(text)
    names.symbols = tuple(symbols)
    for counter in counters(document):
        if counter in RESERVED or counter in taken:
            what = f"the name of {taken[counter]}" if counter in taken else "a reserved word of the language"
            position = _counting_position(root, counter)
            diagnostics.error(202, position, f"The counter '{counter}' is already {what}.", "Rename it.")
        names.variables.setdefault(counter, NUMBER)
    named: tuple[tuple[str, Iterable[str], tuple[str, ...]], ...] = (
        ("state", document.trial.states, ("trial", "states")),
        ("block", document.schedule, ("schedule",)),
    )
    for kind_of, entries, where in named:
        for name in entries:
            if name in RESERVED:
                position = root.find(where).key_position(name)
                diagnostics.error(
                    202, position, f"'{name}' is a reserved word of the language.", f"Choose another {kind_of} name."
                )
    return names


def _only_places(column: str, cells: Sequence[Scalar], node: Node, names: Names, diagnostics: Diagnostics) -> None:
    """Report a name among the zones of a column that is none: it would silently stand for nothing."""
    words = [cell for cell in cells if isinstance(cell, str) and cell != "none"]
    if not any(word in names.places for word in words):
        return
    for number, cell in enumerate(cells):
        if cell in words and cell not in names.places:
            position = node.find([number]).position
            hint = did_you_mean(str(cell), names.places).strip() or f"Zones are {listed(names.places)}."
            sentence = f"The column '{column}' holds zones, but '{cell}' is not a zone."
            diagnostics.error(201, position, sentence, hint)


def _counting_position(root: Node, counter: str) -> Position:
    """Return the position of the first ``count`` of a counter."""
    for node in walk(root.find(["trial"])):
        counted = node.child("count") if isinstance(node.value, Mapping) else None
        for name in walk(counted) if counted is not None else ():
            if name.value == counter:
                return name.position
    return root.key_position("trial")


def _mixed(values: Iterable[spec.RuntimeValue]) -> bool:
    """Return whether numbers and names are mixed (``none`` counts as a name)."""
    return len({isinstance(value, str | None) for value in values}) > 1


def _type_of(values: Sequence[spec.RuntimeValue], names: Names, symbols: dict[str, None]) -> Type:
    """Return the type of a list of values and record the symbols among them."""
    words = [value for value in values if isinstance(value, str)]
    if not words:
        return NUMBER if any(value is not None for value in values) else Type("name", frozenset({"any"}))
    domains: set[Domain] = set()
    for word in words:
        if word in names.places:
            domains.add("place")
        else:
            domains.add("symbol")
            symbols.setdefault(word)
    return Type("name", frozenset(domains))
