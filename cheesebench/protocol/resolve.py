"""The typed document -> the specification: every name found, every expression typed, all problems reported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.errors import did_you_mean
from cheesebench.interfaces import ACTIONS, HEADINGS
from cheesebench.protocol import documents as doc
from cheesebench.protocol import specification as spec
from cheesebench.protocol.arena import Arena, build_arena
from cheesebench.protocol.diagnostics import Diagnostics
from cheesebench.protocol.expressions import NUMBER, TRUTH, Domain, Expression, Type
from cheesebench.protocol.names import RESERVED, Names
from cheesebench.protocol.source import Node

#: Outcome of a trial that the step limit cut off.
TIMEOUT = "timeout"
#: Keys that describe a protocol without changing a life or a verdict; the hash leaves them out.
DESCRIPTIVE = ("title", "cite", "notes", "tests", "checks", "chance")


def resolve(
    document: doc.ProtocolDocument, root: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
) -> tuple[spec.Specification, Names] | None:
    """Resolve a document; None when there are errors (all reported)."""
    arena = build_arena(document.arena, root.find(["arena"]), diagnostics)
    if arena is None:
        return None
    names = _declare(document, root, arena, diagnostics)
    builder = _Builder(document, root, names, diagnostics)
    plain = root.plain()
    specification = spec.Specification(
        paradigm=document.paradigm,
        edition=document.edition,
        family="arena",
        path=str(path),
        text=_canonical(plain),
        sha256=protocol_hash(plain),
        ancestors=tuple(ancestors),
        document=document,
        arena=arena,
        variables=builder.variables(),
        draws=builder.draws(),
        columns={name: kind for name, kind in names.variables.items() if name not in document.vars},
        counters=tuple(name for name in _counters(document)),
        start=builder.start(),
        limit=builder.limit(),
        entry=builder.entry(),
        states=builder.states(),
        each=builder.effects(document.trial.each, ("trial", "each")),
        watch=builder.rules(document.trial.watch, ("trial", "watch"), watch=True),
        finish=builder.finish(),
        schedule=builder.schedule(),
        success=builder.optional(document.success, ("success",), TRUTH, lenient=True),
        where=builder.where(),
        measures={
            name: tree
            for name, text in document.measures.items()
            if (tree := builder.expression(text, ("measures", name))) is not None
        },
        outcomes=tuple(_outcomes(document)),
    )
    builder.check_rest()
    return None if diagnostics.errors else (specification, names)


def _canonical(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def protocol_hash(plain: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a resolved protocol and the language version, descriptions left out."""
    relevant = {key: value for key, value in plain.items() if key not in DESCRIPTIVE}
    return hashlib.sha256(f"{doc.VERSION}\n{_canonical(relevant)}".encode()).hexdigest()


def _all_effects(document: doc.ProtocolDocument) -> Iterable[doc.Effects]:
    trial = document.trial
    for state in trial.states.values():
        yield state
        yield from state.rules
        if state.each:
            yield state.each
    yield from trial.watch
    if trial.each:
        yield trial.each


def _counters(document: doc.ProtocolDocument) -> list[str]:
    return list(dict.fromkeys(name for effects in _all_effects(document) for name in effects.count))


def _outcomes(document: doc.ProtocolDocument) -> list[str]:
    trial = document.trial
    ends = [rule.end for state in trial.states.values() for rule in state.rules]
    ends += [finish.end for finish in trial.finish]
    return list(dict.fromkeys([*(end for end in ends if end), TIMEOUT]))


def _value(scalar: doc.Scalar) -> float | int | str | None:
    if isinstance(scalar, bool):
        return int(scalar)
    return None if scalar == "none" else scalar


def _declare(document: doc.ProtocolDocument, root: Node, arena: Arena, diagnostics: Diagnostics) -> Names:
    """Give every name of the protocol its meaning, before any expression is read."""
    names = Names(
        arena,
        states=tuple(document.trial.states),
        outcomes=tuple(_outcomes(document)),
        blocks=tuple(document.schedule),
    )
    taken: dict[str, str] = {place: "a zone or group" for place in names.places}

    def declare(name: str, kind: Type, what: str, path: Sequence[str | int]) -> None:
        position = root.find(path[:-1]).key_position(str(path[-1]))
        if name in RESERVED:
            diagnostics.error(202, position, f"'{name}' is a word of the language.", "Choose another name.")
        elif name in taken:
            diagnostics.error(202, position, f"'{name}' is already the name of {taken[name]}.", "Choose another name.")
        else:
            taken[name] = what
            names.variables[name] = kind

    symbols: dict[str, None] = {}
    for name, variable in document.vars.items():
        values = variable.init if isinstance(variable.init, list) else [variable.init]
        kind = _type_of([_value(v) for v in values], names, symbols)
        if isinstance(variable.init, list):
            kind = Type("set", kind.domains if values else frozenset[Domain]({"any"}))
        declare(name, kind, "a variable", ("vars", name))
    for draw_name, draw in document.draw.items():
        lengths = {len(column) for column in draw.of.values()}
        if len(lengths) > 1:
            position = root.find(("draw", draw_name, "of")).position
            sizes = ", ".join(f"{name} has {len(column)}" for name, column in draw.of.items())
            diagnostics.error(203, position, f"The columns of '{draw_name}' differ in length: {sizes}.", "Complete the rows.")
        for column, cells in draw.of.items():
            path = ("draw", draw_name, "of", column)
            values = [_value(cell) for cell in cells]
            if len({isinstance(v, str) for v in values if v is not None}) > 1:
                diagnostics.error(203, root.find(path).position, f"The column '{column}' mixes numbers and names.", "Keep one.")
            kind = _type_of(values, names, symbols)
            declare(column, Type("set", kind.domains) if draw.pick else kind, "a column of a draw", path)
    for block in document.schedule.values():
        for value in block.set.values():
            _type_of([_value(v) for v in (value if isinstance(value, list) else [value])], names, symbols)
    for effects in _all_effects(document):
        for name, text in effects.set.items():
            # `set` may give a variable that holds a symbol a new one: that is where the symbol is born.
            kind = names.variables.get(name, NUMBER)
            known = isinstance(text, str) and (text in taken or text in RESERVED or names.domains(text))
            if "symbol" in kind.domains | ({"symbol"} if "any" in kind.domains else set()) and isinstance(text, str):
                if text.isidentifier() and not known and not did_you_mean(text, symbols):
                    symbols.setdefault(text)
    names.symbols = tuple(symbols)
    for counter in _counters(document):
        if counter in RESERVED or counter in taken:
            what = taken.get(counter, "a word of the language")
            diagnostics.error(202, root.find(("trial",)).position, f"The counter '{counter}' is already {what}.", "Rename it.")
        names.variables.setdefault(counter, NUMBER)
    for kind_of, entries, path in (
        ("state", document.trial.states, ("trial", "states")),
        ("block", document.schedule, ("schedule",)),
    ):
        for name in entries:
            if name in RESERVED:
                position = root.find(path).key_position(name)
                diagnostics.error(202, position, f"'{name}' is a word of the language.", f"Choose another {kind_of} name.")
    return names


def _type_of(values: Sequence[spec.RuntimeValue], names: Names, symbols: dict[str, None]) -> Type:
    """Return the type of a list of values and note the symbols among them."""
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


class _Builder:
    """Builds the parts of a specification; every method reports what it finds and goes on."""

    def __init__(self, document: doc.ProtocolDocument, root: Node, names: Names, diagnostics: Diagnostics) -> None:
        self.document, self.root, self.names, self.diagnostics = document, root, names, diagnostics

    # -- names and expressions

    def unknown(self, what: str, name: str, known: Iterable[str], path: Sequence[str | int]) -> None:
        known = list(known)
        hint = did_you_mean(name, known).strip() or f"Known: {', '.join(known) or 'none'}."
        self.diagnostics.error(201, self.root.find(path).position, f"There is no {what} '{name}'.", hint)

    def expression(
        self, value: object, path: Sequence[str | int], want: Type | None = None, *, it: bool = False, lenient: bool = False
    ) -> Expression | None:
        node = self.root.find(path)
        return self.names.expression(value, node, self.diagnostics, want=want, it=it, lenient=lenient)

    def optional(
        self, value: object, path: Sequence[str | int], want: Type | None = None, *, it: bool = False, lenient: bool = False
    ) -> Expression | None:
        return None if value is None else self.expression(value, path, want, it=it, lenient=lenient)

    def place(self, name: str, path: Sequence[str | int], *, solid: bool | None = None, what: str = "zone") -> spec.Place:
        """Resolve a zone, group, door or solid, or a variable that holds one.

        ``solid``: True wants solids, False wants floor, None takes either.
        """
        position = self.root.find(path).position
        self.names.used.add(name)
        if name in self.names.variables:
            kind = self.names.variables[name]
            if kind.kind not in ("name", "set") or not kind.domains & {"place", "any"}:
                self.diagnostics.error(204, position, f"The variable '{name}' holds no {what}.", "Name a zone or group.")
            for held in self._held(name):
                self._check_ground(held, position, solid, f"'{held}', which '{name}' can hold,")
            return spec.Place(name, variable=True)
        if name not in self.names.places:
            self.unknown(what, name, [*self.names.places, *self._place_variables()], path)
            return spec.Place(name)
        self._check_ground(name, position, solid, f"'{name}'")
        return spec.Place(name)

    def _check_ground(self, name: str, position: Any, solid: bool | None, subject: str) -> None:
        arena = self.names.arena
        solids = [member for member in arena.members(name) if member in arena.solids]
        if solid is False and solids:
            self.diagnostics.error(205, position, f"{subject} is solid: it is never entered.", "Use 'press'.")
        if solid is True and len(solids) < len(arena.members(name)):
            self.diagnostics.error(205, position, f"{subject} is floor: it is never pressed.", "Use 'enter'.")

    def _held(self, variable: str) -> list[str]:
        """Return the places that a draw column can hold (for a mutable variable nothing is known)."""
        rows = [draw.of[variable] for draw in self.document.draw.values() if variable in draw.of]
        return [str(v) for column in rows for v in dict.fromkeys(column) if str(v) in self.names.places]

    def _place_variables(self) -> list[str]:
        return [name for name, kind in self.names.variables.items() if "place" in kind.domains]

    # -- parts of the document

    def variables(self) -> dict[str, spec.VariableSpec]:
        found = {}
        for name, variable in self.document.vars.items():
            initial: spec.RuntimeValue
            if isinstance(variable.init, list):
                initial = frozenset(v for v in map(_value, variable.init) if v is not None)
            else:
                initial = _value(variable.init)
            kind = self.names.variables.get(name, NUMBER)
            found[name] = spec.VariableSpec(name, kind, initial, variable.per)
        return found

    def draws(self) -> tuple[spec.DrawSpec, ...]:
        found = []
        for name, draw in self.document.draw.items():
            columns = tuple(draw.of)
            rows = tuple(zip(*([_value(cell) for cell in cells] for cells in draw.of.values()), strict=False))
            place = self.root.find(("draw", name))
            if draw.pick is not None and draw.pick > len(rows):
                position = self.root.find(("draw", name, "pick")).position
                self.diagnostics.error(206, position, f"'{name}' picks {draw.pick} of {len(rows)} rows.", "Pick fewer.")
            if draw.copies > 1 and draw.order != "shuffle":
                position = place.key_position("copies")
                self.diagnostics.error(206, position, "'copies' belongs to 'order: shuffle'.", "Remove it, or shuffle.")
            if draw.max_run is not None and (draw.order in ("cycle", "by_subject") or draw.pick):
                position = place.key_position("max_run")
                self.diagnostics.error(206, position, "'max_run' belongs to shuffled or random rows.", "Remove it.")
            if draw.max_run is not None and len(set(rows and [row[0] for row in rows])) == 1:
                position = place.key_position("max_run")
                self.diagnostics.error(206, position, "The first column has one value only: its run never ends.", "Remove 'max_run'.")
            keep_if = self.optional(draw.keep_if, ("draw", name, "keep_if"), TRUTH)
            found.append(
                spec.DrawSpec(name, draw.per, draw.order, columns, rows, draw.pick, draw.copies, draw.max_run, keep_if)
            )
        return tuple(found)

    def start(self) -> spec.StartSpec:
        start = self.document.start
        at = self.place(start.at, ("start", "at"), solid=False)
        is_variable = start.face not in (*HEADINGS, "random")
        position = self.root.find(("start", "face")).position
        if is_variable and start.face not in self.names.variables:
            known = [*HEADINGS, "random", *self.names.variables]
            self.unknown("heading", start.face, known, ("start", "face"))
        elif is_variable:
            self.names.used.add(start.face)
            for value in [v for draw in self.document.draw.values() for v in draw.of.get(start.face, [])]:
                if value not in (*HEADINGS, "random"):
                    self.diagnostics.error(207, position, f"'{start.face}' can hold '{value}', which is no heading.", "Use N NE E ...")
        elif self.document.arena.headings == 4 and start.face in HEADINGS[1::2]:
            self.diagnostics.error(207, position, f"With four headings nobody faces {start.face}.", "Use N, E, S or W.")
        return spec.StartSpec(at, start.face, is_variable, start.carry)

    def limit(self) -> int | str:
        limit = self.document.trial.limit
        if isinstance(limit, str):
            if self.names.variables.get(limit, TRUTH).kind != "number":
                self.unknown("number variable", limit, self.names.variables, ("trial", "limit"))
            self.names.used.add(limit)
        return limit

    def entry(self) -> tuple[spec.GuardedName, ...]:
        path = ("trial", "start")
        entries = []
        for number, entry in enumerate(self.document.trial.start):
            here = (*path, number)
            if entry.go not in self.names.states:
                self.unknown("state", entry.go, self.names.states, (*here, "go"))
            state = self.document.trial.states.get(entry.go)
            if state is not None and state.reward is not None:
                position = self.root.find(("trial", "states", entry.go)).key_position("reward")
                self.diagnostics.error(
                    208, position, f"The initial state '{entry.go}' gives a reward on entry, but a reset returns none.",
                    "Give it in a rule or in 'each'.",
                )  # fmt: skip
            guard = self.optional(entry.if_, (*here, "if"), TRUTH)
            entries.append(spec.GuardedName(guard, entry.go, self.root.find(here).position))
        if entries and self.document.trial.start[-1].if_ is not None:
            position = self.root.find(path).position
            self.diagnostics.error(209, position, "The last entry of 'start' has a condition: no state may be left.", "Add one without.")
        if not entries:
            self.diagnostics.error(209, self.root.find(path).position, "'start' names no state.", "Name one.")
        return tuple(entries)

    def states(self) -> dict[str, spec.StateSpec]:
        found = {}
        for name, state in self.document.trial.states.items():
            path = ("trial", "states", name)
            say = state.say if isinstance(state.say, list) else [state.say] if state.say is not None else []
            found[name] = spec.StateSpec(
                name=name,
                entry=self.effects(state, path),
                say=tuple(line for text in say for line in text.splitlines()),
                show=tuple(self._shown(place, glyph, (*path, "show", place)) for place, glyph in state.show.items()),
                close=tuple(self._door(door, (*path, "close", number)) for number, door in enumerate(state.close)),
                freeze=state.freeze,
                each=self.effects(state.each, (*path, "each")),
                rules=self.rules(state.rules, (*path, "rules")),
                position=self.root.find(path[:-1]).key_position(name),
            )
        return found

    def _shown(self, place: str, glyph: str, path: Sequence[str | int]) -> tuple[spec.Place, spec.Place]:
        key = self.root.find(path[:-1])
        position = key.key_position(str(path[-1]))
        if place not in self.names.places and place not in self.names.variables:
            known = [*self.names.places, *self._place_variables()]
            hint = did_you_mean(place, known).strip() or f"Known: {', '.join(known)}."
            self.diagnostics.error(201, position, f"There is no zone or solid '{place}' to show.", hint)
            shown = spec.Place(place)
        else:
            shown = self.place(place, path)
        if len(glyph) == 1:
            return shown, spec.Place(glyph)
        self.names.used.add(glyph)
        if glyph not in self.names.variables:
            self.unknown("variable with a glyph", glyph, self.names.variables, path)
        for value in [v for draw in self.document.draw.values() for v in draw.of.get(glyph, [])]:
            if len(str(value)) != 1:
                self.diagnostics.error(210, self.root.find(path).position, f"'{glyph}' can hold '{value}', which is no glyph.", "Use one character.")
        return shown, spec.Place(glyph, variable=True)

    def _door(self, name: str, path: Sequence[str | int]) -> spec.Place:
        arena, position = self.names.arena, self.root.find(path).position
        self.names.used.add(name)
        if name in self.names.variables:
            held = [str(v) for draw in self.document.draw.values() for v in draw.of.get(name, []) if _value(v) is not None]
            for value in held:
                if not set(arena.members(value)) <= set(arena.doors):
                    self.diagnostics.error(211, position, f"'{name}' can hold '{value}', which is no door.", "Name doors only.")
            return spec.Place(name, variable=True)
        if not set(arena.members(name)) <= set(arena.doors):
            self.unknown("door", name, [*arena.doors, *self._place_variables()], path)
        return spec.Place(name)

    def effects(self, effects: doc.Effects | None, path: Sequence[str | int], *, it: bool = False) -> spec.EffectsSpec:
        if effects is None:
            return spec.EffectsSpec()
        return spec.EffectsSpec(
            set=self._assignments(effects.set, (*path, "set"), it, adding=False),
            add=self._assignments(effects.add, (*path, "add"), it, adding=True),
            count=tuple(effects.count),
            reward=self.optional(effects.reward, (*path, "reward"), NUMBER, it=it),
            place=None if effects.place is None else self._target(effects.place, (*path, "place"), it),
        )

    def _target(self, name: str, path: Sequence[str | int], it: bool) -> spec.Place:
        if name == "it" and it:
            return spec.Place("it", variable=True)
        return self.place(name, path, solid=False)

    def _assignments(
        self, entries: Mapping[str, object], path: Sequence[str | int], it: bool, *, adding: bool
    ) -> tuple[spec.Assignment, ...]:
        found = []
        for name, value in entries.items():
            here = (*path, name)
            position = self.root.find(path).key_position(name)
            if name not in self.document.vars:
                what = "is a column of a draw" if name in self.names.variables else "is not declared"
                hint = did_you_mean(name, self.document.vars).strip() or f"Add 'vars: {{{name}: 0}}'."
                self.diagnostics.error(212, position, f"'{name}' is set here, but {what}.", hint)
                continue
            kind = self.names.variables[name]
            if adding and kind.kind != "set":
                self.diagnostics.error(212, position, f"'add' needs a set, but '{name}' is none.", f"Declare '{name}: []'.")
                continue
            want = kind if not adding else Type("name", kind.domains) if kind.domains else NUMBER
            if adding and "any" in kind.domains:
                tree = self.expression(value, here, None, it=it)
            else:
                tree = self.expression(value, here, want, it=it)
            if tree is not None:
                found.append(spec.Assignment(name, tree))
        return tuple(found)

    def rules(
        self, rules: Sequence[doc.Rule], path: Sequence[str | int], *, watch: bool = False
    ) -> tuple[spec.RuleSpec, ...]:
        return tuple(
            built for number, rule in enumerate(rules) if (built := self._rule(rule, (*path, number), watch)) is not None
        )

    def _rule(self, rule: doc.Rule, path: Sequence[str | int], watch: bool) -> spec.RuleSpec | None:
        position = self.root.find(path).position
        given = [key for key in ("enter", "press", "after", "act") if getattr(rule, key) is not None]
        if len(given) != 1:
            sentence = f"A rule has exactly one trigger (enter, press, after, act); this one has {len(given)}."
            self.diagnostics.error(213, position, sentence, "Split it." if given else "Add one.")
            return None
        trigger = given[0]
        if rule.go is not None and rule.end is not None:
            self.diagnostics.error(214, position, "A rule has either 'go' or 'end', not both.", "Remove one.")
        for key in ("go", "end") if watch else ():
            if getattr(rule, key) is not None:
                place = self.root.find(path).key_position(key)
                self.diagnostics.error(215, place, f"A watch rule never moves the trial: '{key}' is not allowed.", "Use 'finish'.")
        if watch and trigger == "after":
            self.diagnostics.error(215, position, "A watch rule has no clock: 'after' is not allowed.", "Use a rule of a state.")
        if rule.go is not None and rule.go not in self.names.states:
            self.unknown("state", rule.go, self.names.states, (*path, "go"))
        it = trigger in ("enter", "press")
        target = None
        if it:
            target = self.place(getattr(rule, trigger), (*path, trigger), solid=trigger == "press")
        after = self.optional(rule.after, (*path, "after"), NUMBER)
        return spec.RuleSpec(
            trigger=trigger,
            target=target,
            after=after,
            action=ACTIONS.index(rule.act) if rule.act is not None else None,
            guard=self.optional(rule.if_, (*path, "if"), TRUTH, it=it),
            p=self.optional(rule.p, (*path, "p"), NUMBER, it=it),
            effects=self.effects(rule, path, it=it),
            go=rule.go,
            end=rule.end,
            position=position,
            text=f"{trigger} {getattr(rule, trigger)}",
        )

    def finish(self) -> tuple[spec.GuardedName, ...]:
        path = ("trial", "finish")
        return tuple(
            spec.GuardedName(
                self.optional(entry.if_, (*path, number, "if"), TRUTH), entry.end, self.root.find((*path, number)).position
            )
            for number, entry in enumerate(self.document.trial.finish)
        )

    def schedule(self) -> tuple[spec.BlockSpec, ...]:
        blocks = []
        for name, block in self.document.schedule.items():
            values: list[tuple[str, spec.RuntimeValue]] = []
            for variable, value in block.set.items():
                path = ("schedule", name, "set")
                if variable not in self.document.vars:
                    position = self.root.find(path).key_position(variable)
                    hint = did_you_mean(variable, self.document.vars).strip() or f"Add 'vars: {{{variable}: 0}}'."
                    self.diagnostics.error(212, position, f"'{variable}' is set here, but is not declared.", hint)
                    continue
                values.append((variable, self._constant(variable, value, (*path, variable))))
            until = block.until and spec.UntilSpec(frozenset(block.until.outcome), block.until.count, block.until.of)
            for outcome in block.until.outcome if block.until else ():
                if outcome not in self.names.outcomes:
                    position = self.root.find(("schedule", name, "until", "outcome")).position
                    hint = did_you_mean(outcome, self.names.outcomes).strip() or f"Outcomes are {', '.join(self.names.outcomes)}."
                    self.diagnostics.warning(309, position, f"No trial ends with the outcome '{outcome}'.", hint)
            if block.until and block.until.count > block.until.of:
                position = self.root.find(("schedule", name, "until")).position
                sentence = f"{block.until.count} of the last {block.until.of} outcomes can never be."
                self.diagnostics.error(216, position, sentence, "Let 'count' be at most 'of'.")
            blocks.append(spec.BlockSpec(name, block.sessions, block.trials, block.repeat, tuple(values), until))
        return tuple(blocks)

    def _constant(self, variable: str, value: doc.Scalar | list[doc.Scalar], path: Sequence[str | int]) -> spec.RuntimeValue:
        kind = self.names.variables.get(variable, NUMBER)
        runtime: spec.RuntimeValue
        if isinstance(value, list):
            runtime = frozenset(v for v in map(_value, value) if v is not None)
        else:
            runtime = _value(value)
        held = "set" if isinstance(value, list) else "name" if isinstance(runtime, str | None) else "number"
        if held != kind.kind and not (runtime is None and kind.kind == "name"):
            position = self.root.find(path).position
            self.diagnostics.error(133, position, f"'{variable}' is a {kind.kind}, but this is a {held}.", "Keep its kind.")
        return runtime

    def primary_reference(self) -> int | None:
        """Return the index of the reference that the verdict is about: the first on ``success``."""
        return next((n for n, r in enumerate(self.document.reference) if r.measure == "success"), None)

    def where(self) -> Expression | None:
        primary = self.primary_reference()
        condition = None
        for number, reference in enumerate(self.document.reference):
            tree = self.optional(reference.where, ("reference", number, "where"), TRUTH)
            if number == primary:
                condition = tree
        return condition

    def check_rest(self) -> None:
        """Check what no other part reads: estimand, reference, checks, tests."""
        document = self.document
        if isinstance(document.estimand, doc.OfBlock) and document.estimand.block not in self.names.blocks:
            self.unknown("block", document.estimand.block, self.names.blocks, ("estimand", "block"))
        for number, reference in enumerate(document.reference):
            path = ("reference", number)
            known = ["success", *document.measures, *_counters(document)]
            if reference.measure not in known:
                self.unknown("measure", reference.measure, known, (*path, "measure"))
            rates = [reference.value, *reference.curve, *(reference.interval or ())] if reference.measure == "success" else []
            if any(not 0 <= rate <= 1 for rate in rates):
                self.diagnostics.error(217, self.root.find(path).position, "A pass rate lies between 0 and 1.", "Write 0.8 for 80 %.")
            if reference.interval and reference.interval[0] > reference.interval[1]:
                self.diagnostics.error(217, self.root.find(path).position, "The interval runs backwards.", "Write [low, high].")
        for number, check in enumerate(document.checks):
            if check.at not in self.names.states:
                self.unknown("state", check.at, self.names.states, ("checks", number, "at"))
            if check.hidden not in self.names.variables:
                self.unknown("variable", check.hidden, self.names.variables, ("checks", number, "hidden"))
        for number, test in enumerate(document.tests):
            self._check_test(test, ("tests", number))

    def _check_test(self, test: doc.Test, path: Sequence[str | int]) -> None:
        for number, name in enumerate(test.visit or ()):
            if name not in self.names.places and name not in self.names.variables:
                self.unknown("zone", name, [*self.names.places, *self.names.variables], (*path, "visit", number))
        if test.expect.outcome is not None and test.expect.outcome not in self.names.outcomes:
            self.unknown("outcome", test.expect.outcome, self.names.outcomes, (*path, "expect", "outcome"))
        groups: tuple[tuple[str, Mapping[str, object], Iterable[str]], ...] = (
            ("counter", test.expect.counters, _counters(self.document)),
            ("measure", test.expect.measures, self.document.measures),
            ("variable", test.expect.variables, self.names.variables),
        )
        for what, expected, known in groups:
            for name in expected:
                if name not in known:
                    self.unknown(what, name, known, (*path, "expect", f"{what}s", name))
        if isinstance(test.actions, list):
            letters = {*ACTIONS, *"FLRS"}
            for number, action in enumerate(test.actions):
                if action not in letters:
                    self.unknown("action", action, sorted(letters), (*path, "actions", number))
        elif test.actions is not None and (odd := set(test.actions) - set("FLRS ")):
            self.unknown("action", sorted(odd)[0], "FLRS", (*path, "actions"))


