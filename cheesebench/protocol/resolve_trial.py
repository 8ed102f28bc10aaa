"""Resolves the states, rules, effects and end conditions of a trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cheesebench.errors import did_you_mean
from cheesebench.interfaces import ACTIONS
from cheesebench.protocol import documents as doc
from cheesebench.protocol import specification as spec
from cheesebench.protocol import texts
from cheesebench.protocol.declare import TIMEOUT
from cheesebench.protocol.diagnostics import listed
from cheesebench.protocol.expressions import Expression, Number, Unary, Variable, constant, walk
from cheesebench.protocol.features import BUILT_INS, NUMBER, TRIGGERS, TRUTH, Type
from cheesebench.protocol.lookup import Lookup
from cheesebench.protocol.values import is_name

#: In place of an action, or of what blocks the way: whichever.
ANY = "any"


class TrialBuilder(Lookup):
    """Builds everything under ``trial``."""

    def limit(self) -> int | str:
        """Return the step limit, or the name of the variable that holds it."""
        limit = self.document.trial.limit
        if isinstance(limit, str):
            if self.names.variables.get(limit, TRUTH).kind != "number":
                numbers = [name for name, kind in self.names.variables.items() if kind.kind == "number"]
                self.unknown("number variable", limit, numbers, ("trial", "limit"))
            self.names.used.add(limit)
        return limit

    def entry(self) -> tuple[spec.GuardedName, ...]:
        """Return the guarded choice of the initial state."""
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
                    208, position, f"The initial state '{entry.go}' gives a reward on entry, but a reset cannot "
                                   "return one.",
                    "Give it in a rule or in 'each'.",
                )  # fmt: skip
            guard = self.expression(entry.if_, (*here, "if"), TRUTH)
            entries.append(spec.GuardedName(guard, entry.go, self.root.find(here).position))
        if entries and self.document.trial.start[-1].if_ is not None:
            position = self.root.find(path).position
            self.diagnostics.error(
                209,
                position,
                "The last entry of 'start' has a condition, so no state may apply.",
                "Add an entry without 'if'.",
            )
        if not entries:
            self.diagnostics.error(209, self.root.find(path).position, "'start' names no state.", "Name one.")
        return tuple(entries)

    def states(self) -> dict[str, spec.StateSpec]:
        """Return all states, in file order."""
        states = {}
        always = self._shows(self.document.trial.show, ("trial", "show"))
        shut = self._doors(self.document.trial.close, ("trial", "close"))
        for name, state in self.document.trial.states.items():
            path = ("trial", "states", name)
            say = state.say if isinstance(state.say, list) else [state.say] if state.say is not None else []
            states[name] = spec.StateSpec(
                name=name,
                entry=self.effects(state, path),
                say=self._said(say, state.say, (*path, "say")),
                show=(*always, *self._shows(state.show, (*path, "show"))),
                close=(*shut, *self._doors(state.close, (*path, "close"))),
                open=self._left_open(state, path),
                freeze=state.freeze,
                each=self.effects(state.each, (*path, "each")),
                rules=self.rules(state.rules, (*path, "rules")),
                position=self.root.find(path[:-1]).key_position(name),
            )
        return states

    def _said(self, say: Sequence[str], given: object, path: Sequence[str | int]) -> tuple[str, ...]:
        """Return the lines of text; report braces without a partner, and names in braces that hold no value."""
        for number, text in enumerate(say):
            node = self.root.find((*path, number) if isinstance(given, list) else path)
            try:
                blanks = [part for part in texts.parts(text) if isinstance(part, texts.Blank)]
            except texts.LoneBraceError as lone:
                sentence = f"This '{text[lone.offset]}' stands alone."
                self.diagnostics.error(
                    227, node.inside(lone.offset), sentence, "Double it; or name a variable: '{cue}'."
                )
                return ()
            for blank in blanks:
                if not is_name(blank.name):
                    sentence = f"In braces stands the name of a variable, not '{blank.name}'."
                    remedy = "Name one; 'set' can give it the value, or double the braces for literal ones."
                    self.diagnostics.error(227, node.inside(blank.offset), sentence, remedy)
                    continue
                self.names.used.add(blank.name)
                if blank.name not in self.names.variables:
                    known = self.names.variables
                    remedy = did_you_mean(blank.name, known).strip() or f"Known: {listed(known)}."
                    if blank.name in BUILT_INS:
                        remedy = f"Copy it into a variable: 'set: {{shown: {blank.name}}}', and write '{{shown}}'."
                    sentence = f"There is no variable or draw '{blank.name}' to fill in."
                    self.diagnostics.error(201, node.inside(blank.offset), sentence, remedy)
        return tuple(line for text in say for line in text.splitlines())

    def _shows(self, show: Mapping[str, str], path: Sequence[str | int]) -> tuple[tuple[spec.Place, spec.Place], ...]:
        return tuple(self._shown(place, glyph, (*path, place)) for place, glyph in show.items())

    def _doors(self, close: Sequence[str], path: Sequence[str | int]) -> tuple[spec.Place, ...]:
        return tuple(self._door(door, (*path, number)) for number, door in enumerate(close))

    def _shown(self, place: str, glyph: str, path: Sequence[str | int]) -> tuple[spec.Place, spec.Place]:
        key = self.root.find(path[:-1])
        position = key.key_position(str(path[-1]))
        landmarks = [mark.name for mark in self.names.arena.landmarks]
        held = [value for value in self.values(place) if value in landmarks and value not in self.names.places]
        if place in self.names.variables and held:
            self.names.used.add(place)
            shown = spec.Place(place, variable=True)
            odd = next((value for value in self.values(place) if value not in landmarks), None)
            if odd is not None:
                sentence = f"'{place}' holds landmarks, but '{odd}', which it can hold, too, is none."
                hint = did_you_mean(str(odd), landmarks).strip() or f"Landmarks are {listed(landmarks)}."
                self.diagnostics.error(201, position, sentence, hint)
        elif place in self.names.places or place in self.names.variables:
            shown = self.place(place, path)
        else:
            shown = spec.Place(place)
            if place not in landmarks:
                known = [*self.names.places, *landmarks, *self._place_variables()]
                hint = did_you_mean(place, known).strip() or f"Known: {listed(known)}."
                self.diagnostics.error(201, position, f"There is no zone, solid or landmark '{place}' to show.", hint)
        if len(glyph) == 1 and glyph not in self.names.variables:
            return shown, spec.Place(glyph)
        self.names.used.add(glyph)
        if glyph not in self.names.variables:
            if glyph == "none":
                sentence = "'none' is not a glyph."
                remedy = "A blank in quotes leaves it undrawn."
                self.diagnostics.error(201, self.root.find(path).position, sentence, remedy)
            else:
                known = [name for name in self.names.variables if any(len(str(v)) == 1 for v in self.values(name))]
                remedy = did_you_mean(glyph, known).strip() or (
                    "There are no colours: write one character in quotes, such as '*', or a variable that holds one."
                )
                sentence = f"'{glyph}' is neither one character nor a variable that holds one."
                self.diagnostics.error(201, self.root.find(path).position, sentence, remedy)
        odd = next((value for value in self.values(glyph) if len(str(value)) != 1), None)
        if odd is not None:
            position = self.root.find(path).position
            sentence = f"'{glyph}' can hold '{odd}', which is not a glyph."
            self.diagnostics.error(210, position, sentence, "Use one character.")
        return shown, spec.Place(glyph, variable=True)

    def _door(self, name: str, path: Sequence[str | int]) -> spec.Place:
        arena, position = self.names.arena, self.root.find(path).position
        self.names.used.add(name)
        if name in self.names.variables:
            if self.names.variables[name].kind not in ("name", "set"):
                self.diagnostics.error(211, position, f"The variable '{name}' does not hold a door.", "Name a door.")
            held = (value for value in self.values(name) if isinstance(value, str))
            odd = next((value for value in held if not set(arena.members(value)) <= set(arena.doors)), None)
            if odd is not None:
                sentence = f"'{name}' can hold '{odd}', which is not a door."
                self.diagnostics.error(211, position, sentence, "Name doors only.")
            return spec.Place(name, variable=True)
        if name in self.names.places and not set(arena.members(name)) <= set(arena.doors):
            self.diagnostics.error(
                211, position, f"'{name}' is not a door.", f"Make it one in the legend: '{{door: {name}}}'."
            )
        elif name not in self.names.places:
            groups = [group for group, members in arena.groups.items() if set(members) <= set(arena.doors)]
            self.unknown("door", name, [*arena.doors, *groups], path)
        return spec.Place(name)

    def _left_open(self, state: doc.State, path: Sequence[str | int]) -> tuple[spec.Place, ...]:
        """Return the doors that stay open; report one that the state does not close."""
        left, arena = self._doors(state.open, (*path, "open")), self.names.arena
        close = [*self.document.trial.close, *state.close]
        closed = {member for door in close for member in arena.members(door)}
        varies = any(door in self.names.variables for door in close)
        for number, door in enumerate(left):
            odd = set(arena.members(door.name)) & set(arena.doors) - closed
            if not door.variable and not varies and odd and closed <= set(arena.doors):
                sentence = f"'{min(odd)}' is open anyway: this state does not close it."
                position = self.root.find((*path, "open", number)).position
                self.diagnostics.warning(320, position, sentence, "Name the doors under 'close', such as a group.")
        return left

    def effects(self, effects: doc.Effects | None, path: Sequence[str | int], *, it: bool = False) -> spec.EffectsSpec:
        """Resolve effects; ``it``: the name ``it`` is defined in them."""
        if effects is None:
            return spec.EffectsSpec()
        reward = self.expression(effects.reward, (*path, "reward"), NUMBER, it=it)
        self._check_reward(reward, (*path, "reward"))
        return spec.EffectsSpec(
            set=self._assignments(effects.set, (*path, "set"), it, member=False),
            add=self._assignments(effects.add, (*path, "add"), it, member=True),
            remove=self._assignments(effects.remove, (*path, "remove"), it, member=True),
            count=tuple(effects.count),
            reward=reward,
            place=None if effects.place is None else self._target(effects.place, (*path, "place"), it),
            put=self._square(effects.put, (*path, "put"), it),
        )

    def _square(
        self, square: Sequence[object] | None, path: Sequence[str | int], it: bool
    ) -> tuple[Expression, Expression] | None:
        """Resolve column and row; None when there are none, or when they have an error."""
        coordinates = [self.expression(value, (*path, n), NUMBER, it=it) for n, value in enumerate(square or ())]
        return (
            (coordinates[0], coordinates[1])
            if coordinates and coordinates[0] is not None and coordinates[1] is not None
            else None
        )

    def _check_reward(self, reward: Expression | None, path: Sequence[str | int]) -> None:
        """Report a reward that is never a number, whatever happens; others are met when they are paid."""
        for part in walk(reward):
            value = constant(part)
            if value is not None and not math.isfinite(value):
                position = self.root.find(path).position
                sentence = "This reward divides by 0." if math.isnan(value) else "This reward is infinite."
                self.diagnostics.error(218, position, sentence, "Fix the number.")
                return

    def _target(self, name: str, path: Sequence[str | int], it: bool) -> spec.Place:
        if name == "it" and it:
            return spec.Place("it", variable=True)
        return self.place(name, path, solid=False, placing=True)

    def _assignments(
        self, entries: Mapping[str, object], path: Sequence[str | int], it: bool, *, member: bool
    ) -> tuple[spec.Assignment, ...]:
        rules, arena = [], self.names.arena
        for name, value in entries.items():
            here = (*path, name)
            position = self.root.find(path).key_position(name)
            if name not in self.document.vars:
                self.undeclared(name, value, position)
                continue
            kind = self.names.variables.get(name)
            if kind is None:
                continue  # its name is taken, which is reported where it is declared
            if member and kind.kind != "set":
                sentence = f"'{path[-1]}' needs a set, but '{name}' is not a set."
                self.diagnostics.error(212, position, sentence, f"Declare '{name}: []'.")
                continue
            if member and value in arena.groups and not set(map(str, self.values(name))) & set(arena.groups):
                sentence = f"'{value}' is a group: '{path[-1]}' takes its name, not its members."
                remedy = "Name a variable that holds the members: 'vars: {all: [...]}'."
                self.diagnostics.warning(321, self.root.find(here).position, sentence, remedy)
            whole = not member or self.names.variables.get(str(value), NUMBER).kind == "set"
            want = kind if whole else Type("name", kind.domains) if kind.domains else NUMBER
            tree = self.expression(value, here, None if member and "any" in kind.domains else want, it=it)
            if tree is not None:
                rules.append(spec.Assignment(name, tree))
        return tuple(rules)

    def rules(
        self, rules: Sequence[doc.Rule], path: Sequence[str | int], *, watch: bool = False
    ) -> tuple[spec.RuleSpec, ...]:
        """Resolve rules; those of ``watch`` may not have ``go``, ``end`` or ``after``."""
        return tuple(
            built
            for number, rule in enumerate(rules)
            if (built := self._rule(rule, (*path, number), watch)) is not None
        )

    def _rule(self, rule: doc.Rule, path: Sequence[str | int], watch: bool) -> spec.RuleSpec | None:
        position = self.root.find(path).position
        given = [key for key in TRIGGERS if getattr(rule, key) is not None]
        if not given and set(self.root.find(path).plain()) - set(doc.Rule.model_fields):
            return None  # the unknown key, which is reported, was to be the trigger
        if len(given) != 1:
            sentence = f"A rule has exactly one trigger ({', '.join(TRIGGERS)}); this one has {len(given)}."
            self.diagnostics.error(213, position, sentence, "Split it." if given else "Add one.")
            return None
        trigger = given[0]
        if rule.go is not None and rule.end is not None:
            self.diagnostics.error(214, position, "A rule has either 'go' or 'end', not both.", "Remove one.")
        for key in ("go", "end") if watch else ():
            if getattr(rule, key) is not None:
                place = self.root.find(path).key_position(key)
                self.diagnostics.error(
                    215,
                    place,
                    f"A watch rule cannot change the state: '{key}' is not allowed.",
                    "Use 'finish'.",
                )
        if watch and trigger == "after":
            self.diagnostics.error(
                215, position, "A watch rule has no clock: 'after' is not allowed.", "Use a rule of a state."
            )
        if rule.go is not None and rule.go not in self.names.states:
            self.unknown("state", rule.go, self.names.states, (*path, "go"))
        self._check_outcome(rule.end, (*path, "end"))
        whatever = rule.act == ANY or (rule.press == ANY and ANY not in {*self.names.places, *self.names.variables})
        it = trigger in ("enter", "inside", "press") and not whatever
        target = None
        if it:
            target = self.place(getattr(rule, trigger), (*path, trigger), solid=trigger == "press")
        after = self.expression(rule.after, (*path, "after"), NUMBER)
        self._check_number(after, 0, math.inf, "A duration cannot be negative.", (*path, "after"))
        p = self.expression(rule.p, (*path, "p"), NUMBER, it=it)
        self._check_number(p, 0, 1, "A probability lies between 0 and 1.", (*path, "p"))
        return spec.RuleSpec(
            trigger=trigger,
            target=target,
            after=after,
            action=ACTIONS.index(rule.act) if rule.act is not None and not whatever else None,
            guard=self.expression(rule.if_, (*path, "if"), TRUTH, it=it),
            p=p,
            effects=self.effects(rule, path, it=it),
            go=rule.go,
            end=rule.end,
            position=position,
            text=f"{trigger} {getattr(rule, trigger)}",
            whatever=whatever,
        )

    def _check_number(
        self, tree: Expression | None, low: float, high: float, sentence: str, path: Sequence[str | int]
    ) -> None:
        """Report a literal (or what a variable is known to hold) that is out of range."""
        numbers: list[object] = [tree.value] if isinstance(tree, Number) else []
        if isinstance(tree, Unary) and isinstance(tree.operand, Number):
            numbers = [-tree.operand.value]
        if isinstance(tree, Variable):
            numbers = [*self.values(tree.name)]
        outside = [number for number in numbers if isinstance(number, int | float) and not low <= number <= high]
        if outside:
            remedy = f"Fix the {outside[0]:g}."
            self.diagnostics.error(218, self.root.find(path).position, sentence, remedy)

    def _check_outcome(self, outcome: str | None, path: Sequence[str | int]) -> None:
        if outcome == TIMEOUT:
            sentence = f"'{TIMEOUT}' is reserved for trials cut off by the limit."
            self.diagnostics.error(219, self.root.find(path).position, sentence, "Give this end another name.")

    def finish(self) -> tuple[spec.FinishSpec, ...]:
        """Return the end conditions."""
        path = ("trial", "finish")
        for number, entry in enumerate(self.document.trial.finish):
            self._check_outcome(entry.end, (*path, number, "end"))
            position = self.root.find((*path, number)).position
            if entry.end is None and entry.go is None:
                sentence = f"The key 'end' is missing in entry {number + 1} of 'finish'."
                self.diagnostics.error(122, position, sentence, "Add 'end: ...', or 'go: ...'.")
            elif entry.end is not None and entry.go is not None:
                sentence = "An entry of 'finish' has either 'end' or 'go', not both."
                self.diagnostics.error(214, position, sentence, "Remove one.")
            if entry.go is not None and entry.go not in self.names.states:
                self.unknown("state", entry.go, self.names.states, (*path, number, "go"))
        return tuple(
            spec.FinishSpec(
                self.expression(entry.if_, (*path, number, "if"), TRUTH),
                entry.end,
                entry.go,
                self.root.find((*path, number)).position,
            )
            for number, entry in enumerate(self.document.trial.finish)
        )
