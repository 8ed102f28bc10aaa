"""Resolves a typed document into a specification: looks up names, types expressions,
and reports errors.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.diagnostics import Diagnostics, Position, listed
from cheesebench.errors import OptionError, did_you_mean
from cheesebench.interfaces import ACTION_LETTERS, ACTIONS, DEFAULT_EDITION, HEADINGS
from cheesebench.lesions import INTACT, LANDMARKS, TEXT, TRIAL, Lesion
from cheesebench.protocol import documents as doc
from cheesebench.protocol import expressions as ex
from cheesebench.protocol import specification as spec
from cheesebench.protocol.arena import build_arena
from cheesebench.protocol.declarations import declare_names
from cheesebench.protocol.names import (
    TIMEOUT,
    Lookup,
    Names,
    counters,
    outcomes,
    runtime_value,
)
from cheesebench.protocol.references import judged_reference, resolve_references
from cheesebench.protocol.structure import without_nulls
from cheesebench.source import Node

#: The word for any action, or for anything that blocks the way.
ANY = "any"


class TrialBuilder(Lookup):
    def limit(self) -> int | str:
        limit = self.document.trial.limit
        if isinstance(limit, str):
            if self.names.variables.get(limit, ex.TRUTH).kind != "number":
                numbers = [
                    name
                    for name, kind in self.names.variables.items()
                    if kind.kind == "number"
                ]
                self.unknown("number variable", limit, numbers, ("trial", "limit"))
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
                position = self.root.find(("trial", "states", entry.go)).key_position(
                    "reward"
                )
                self.diagnostics.error(
                    208, position, f"The initial state '{entry.go}' gives a reward on entry, but only steps give rewards, and a "
                                   "trial begins without one.",
                    "Give it in a rule or in 'each'.",
                )  # fmt: skip
            guard = self.expression(entry.if_, (*here, "if"), ex.TRUTH)
            entries.append(
                spec.GuardedName(guard, entry.go, self.root.find(here).position)
            )
        if entries and self.document.trial.start[-1].if_ is not None:
            position = self.root.find(path).position
            self.diagnostics.error(
                209,
                position,
                "The last entry of 'start' has a condition, so it can happen that no state applies.",
                "Add an entry without 'if'.",
            )
        if not entries:
            self.diagnostics.error(
                209,
                self.root.find(path).position,
                "'start' names no state.",
                "Name one.",
            )
        return tuple(entries)

    def states(self) -> dict[str, spec.StateSpec]:
        states = {}
        always = self._shows(self.document.trial.show, ("trial", "show"))
        shut = self._doors(self.document.trial.close, ("trial", "close"))
        for name, state in self.document.trial.states.items():
            path = ("trial", "states", name)
            say = (
                state.say
                if isinstance(state.say, list)
                else [state.say]
                if state.say is not None
                else []
            )
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

    def _said(
        self, say: Sequence[str], given: object, path: Sequence[str | int]
    ) -> tuple[str, ...]:
        """Return the lines of text. Report lone braces, and braces without the name of
        a variable. With a lone brace, no lines are returned.
        """
        for number, text in enumerate(say):
            node = self.root.find((*path, number) if isinstance(given, list) else path)
            try:
                blanks = [
                    part for part in ex.text_parts(text) if isinstance(part, ex.Blank)
                ]
            except ex.LoneBraceError as lone:
                sentence = f"This '{text[lone.offset]}' stands alone."
                self.diagnostics.error(
                    227,
                    node.inside(lone.offset),
                    sentence,
                    "Double it to print it, or put a pair of braces around a variable's name.",
                )
                return ()
            for blank in blanks:
                if not doc.is_name(blank.name):
                    sentence = (
                        f"Braces hold the name of a variable, not '{blank.name}'."
                    )
                    remedy = "Name a variable ('set' can give it the value), or double the braces to print them."
                    self.diagnostics.error(
                        227, node.inside(blank.offset), sentence, remedy
                    )
                    continue
                self.names.used.add(blank.name)
                if blank.name not in self.names.variables:
                    known = self.names.variables
                    remedy = (
                        did_you_mean(blank.name, known).strip()
                        or f"Known: {listed(known)}."
                    )
                    if blank.name in ex.BUILT_INS:
                        remedy = f"Copy it into a variable: 'set: {{shown: {blank.name}}}', and write '{{shown}}'."
                    sentence = (
                        f"There is no variable or draw '{blank.name}' to fill in."
                    )
                    self.diagnostics.error(
                        201, node.inside(blank.offset), sentence, remedy
                    )
        return tuple(line for text in say for line in text.splitlines())

    def _shows(
        self, show: Mapping[str, str], path: Sequence[str | int]
    ) -> tuple[tuple[spec.Place, spec.Place], ...]:
        return tuple(
            self._shown(place, glyph, (*path, place)) for place, glyph in show.items()
        )

    def _doors(
        self, close: Sequence[str], path: Sequence[str | int]
    ) -> tuple[spec.Place, ...]:
        return tuple(
            self._door(door, (*path, number)) for number, door in enumerate(close)
        )

    def _shown(
        self, place: str, glyph: str, path: Sequence[str | int]
    ) -> tuple[spec.Place, spec.Place]:
        where = self._where_shown(place, path)
        if len(glyph) == 1 and glyph not in self.names.variables:
            return where, spec.Place(glyph)
        self.names.used.add(glyph)
        if glyph not in self.names.variables:
            self._no_glyph(glyph, path)
        odd = next(
            (value for value in self.values(glyph) if len(str(value)) != 1), None
        )
        if odd is not None:
            position = self.root.find(path).position
            sentence = f"'{glyph}' can hold '{odd}', which is not a glyph."
            self.diagnostics.error(210, position, sentence, "Use one character.")
        return where, spec.Place(glyph, variable=True)

    def _where_shown(self, place: str, path: Sequence[str | int]) -> spec.Place:
        """Return a zone, solid or landmark, or the variable that holds one."""
        landmarks = [mark.name for mark in self.names.arena.landmarks]
        held = self.values(place)
        if place in self.names.variables and any(
            value in landmarks and value not in self.names.places for value in held
        ):
            self.names.used.add(place)
            self._only_landmarks(place, landmarks, path)
            return spec.Place(place, variable=True)
        if place in self.names.places or place in self.names.variables:
            return self.place(place, path)
        if place not in landmarks:
            known = [*self.names.places, *landmarks, *self._shown_variables(landmarks)]
            self.diagnostics.error(
                201,
                self._key_position(path),
                f"There is no zone, solid, landmark or variable '{place}' to show.",
                did_you_mean(place, known).strip() or f"Known: {listed(known)}.",
            )
        return spec.Place(place)

    def _shown_variables(self, landmarks: Sequence[str]) -> list[str]:
        """Return the variables that may hold a place or a landmark."""
        held = [
            name
            for name in self.names.variables
            if not set(landmarks).isdisjoint(map(str, self.values(name)))
        ]
        return [*dict.fromkeys([*self.place_variables(), *held])]

    def _only_landmarks(
        self, place: str, landmarks: Sequence[str], path: Sequence[str | int]
    ) -> None:
        odd = next(
            (value for value in self.values(place) if value not in landmarks), None
        )
        if odd is not None:
            self.diagnostics.error(
                201,
                self._key_position(path),
                f"'{place}' holds landmarks, but it can also hold '{odd}', which is not a landmark.",
                did_you_mean(str(odd), landmarks).strip()
                or f"The landmarks are {listed(landmarks)}.",
            )

    def _key_position(self, path: Sequence[str | int]) -> Position:
        return self.root.find(path[:-1]).key_position(str(path[-1]))

    def _no_glyph(self, glyph: str, path: Sequence[str | int]) -> None:
        sentence = f"'{glyph}' is neither one character nor a variable that holds one."
        holders = [
            name
            for name in self.names.variables
            if any(len(str(value)) == 1 for value in self.values(name))
        ]
        remedy = did_you_mean(glyph, holders).strip() or (
            "There are no colours: write one character in quotes, such as '*', or a variable that holds one."
        )
        if glyph == "none":
            sentence = "'none' is not a glyph."
            remedy = "To draw nothing, write a blank in quotes."
        position = self.root.find(path).position
        self.diagnostics.error(201, position, sentence, remedy)

    def _door(self, name: str, path: Sequence[str | int]) -> spec.Place:
        arena, position = self.names.arena, self.root.find(path).position
        self.names.used.add(name)
        if name in self.names.variables:
            if self.names.variables[name].kind not in ("name", "set"):
                self.diagnostics.error(
                    211,
                    position,
                    f"The variable '{name}' does not hold a door.",
                    "Name a door.",
                )
            held = (value for value in self.values(name) if isinstance(value, str))
            odd = next((value for value in held if not self._is_door(value)), None)
            if odd is not None:
                sentence = f"'{name}' can hold '{odd}', which is not a door."
                self.diagnostics.error(211, position, sentence, "Name doors only.")
            return spec.Place(name, variable=True)
        if name in self.names.places and not self._is_door(name):
            self.diagnostics.error(
                211,
                position,
                f"'{name}' is not a door.",
                f"Make it one in the legend: '{{door: {name}}}'.",
            )
        elif name not in self.names.places:
            groups = filter(self._is_door, arena.groups)
            holders = filter(self._holds_doors, self.place_variables())
            known = [*arena.doors, *groups, *holders]
            self.unknown("door or variable", name, known, path)
        return spec.Place(name)

    def _holds_doors(self, variable: str) -> bool:
        """Return whether all places that the file lets a variable hold are doors."""
        return all(map(self._is_door, self.held(variable)))

    def _is_door(self, place: str) -> bool:
        arena = self.names.arena
        return set(arena.members(place)) <= set(arena.doors)

    def _left_open(
        self, state: doc.State, path: Sequence[str | int]
    ) -> tuple[spec.Place, ...]:
        """Return the doors that stay open. Warn (320) of a door that the state does not
        close.
        """
        left, arena = self._doors(state.open, (*path, "open")), self.names.arena
        close = [*self.document.trial.close, *state.close]
        closed = {member for door in close for member in arena.members(door)}
        varies = any(door in self.names.variables for door in close)
        for number, door in enumerate(left):
            odd = set(arena.members(door.name)) & set(arena.doors) - closed
            if not door.variable and not varies and odd and closed <= set(arena.doors):
                sentence = f"'{min(odd)}' is open anyway: this state does not close it."
                position = self.root.find((*path, "open", number)).position
                self.diagnostics.warning(
                    320,
                    position,
                    sentence,
                    "Name the door, or a group that has it, under 'close'.",
                )
        return left

    def effects(
        self,
        effects: doc.Effects | None,
        path: Sequence[str | int],
        *,
        it: bool = False,
    ) -> spec.EffectsSpec:
        """Resolve effects. ``it`` says whether the name ``it`` is defined in them."""
        if effects is None:
            return spec.EffectsSpec()
        reward = self.expression(effects.reward, (*path, "reward"), ex.NUMBER, it=it)
        self._check_reward(reward, (*path, "reward"))
        return spec.EffectsSpec(
            set=self._assignments(effects.set, (*path, "set"), it, member=False),
            add=self._assignments(effects.add, (*path, "add"), it, member=True),
            remove=self._assignments(
                effects.remove, (*path, "remove"), it, member=True
            ),
            count=tuple(effects.count),
            reward=reward,
            place=None
            if effects.place is None
            else self._target(effects.place, (*path, "place"), it),
            put=self._square(effects.put, (*path, "put"), it),
        )

    def _square(
        self, square: Sequence[object] | None, path: Sequence[str | int], it: bool
    ) -> tuple[ex.Expression, ex.Expression] | None:
        """Return column and row as expressions, or None if they are absent or
        invalid.
        """
        coordinates = [
            self.expression(value, (*path, n), ex.NUMBER, it=it)
            for n, value in enumerate(square or ())
        ]
        return (
            (coordinates[0], coordinates[1])
            if coordinates and coordinates[0] is not None and coordinates[1] is not None
            else None
        )

    def _check_reward(
        self, reward: ex.Expression | None, path: Sequence[str | int]
    ) -> None:
        """Report a reward that can never be a finite number. Other invalid rewards are
        found at run time.
        """
        for part in ex.walk(reward):
            value = ex.constant(part)
            if value is not None and not math.isfinite(value):
                position = self.root.find(path).position
                sentence = (
                    "This reward divides by 0."
                    if math.isnan(value)
                    else "This reward is infinite."
                )
                self.diagnostics.error(
                    218, position, sentence, "Write a finite number."
                )
                return

    def _target(self, name: str, path: Sequence[str | int], it: bool) -> spec.Place:
        if name == "it" and it:
            return spec.Place("it", variable=True)
        return self.place(name, path, solid=False, placing=True)

    def _assignments(
        self,
        entries: Mapping[str, object],
        path: Sequence[str | int],
        it: bool,
        *,
        member: bool,
    ) -> tuple[spec.Assignment, ...]:
        found = []
        for name, value in entries.items():
            here = (*path, name)
            position = self.root.find(path).key_position(name)
            if name not in self.document.vars:
                self.undeclared(name, value, position)
                continue
            kind = self.names.variables.get(name)
            if kind is None:
                continue  # The name is taken, which was reported when it was declared.
            if member and kind.kind != "set":
                sentence = f"'{path[-1]}' needs a set, but '{name}' is not a set."
                self.diagnostics.error(
                    212, position, sentence, f"Declare '{name}: []'."
                )
                continue
            if member:
                self._check_member(name, value, here)
            want = self._member_type(kind, value) if member else kind
            tree = self.expression(value, here, want, it=it)
            if tree is not None:
                found.append(spec.Assignment(name, tree))
        return tuple(found)

    def _check_member(
        self, name: str, value: object, path: Sequence[str | int]
    ) -> None:
        """Warn (321) of a group whose name goes into a set without names of groups."""
        groups = self.names.arena.groups
        if value not in groups or set(map(str, self.values(name))) & set(groups):
            return
        self.diagnostics.warning(
            321,
            self.root.find(path).position,
            f"'{value}' is a group: '{path[-2]}' takes its name, not its members.",
            "Name a variable that holds the members: 'vars: {all: [...]}'.",
        )

    def _member_type(self, kind: ex.Type, value: object) -> ex.Type | None:
        """Return the type that a value must have to be added to a set, or removed from
        it: the type of the set, or of its members. None: any type will do.
        """
        if "any" in kind.domains:
            return None
        if self.names.variables.get(str(value), ex.NUMBER).kind == "set":
            return kind
        return ex.Type("name", kind.domains) if kind.domains else ex.NUMBER

    def rules(
        self,
        rules: Sequence[doc.Rule],
        path: Sequence[str | int],
        *,
        watch: bool = False,
    ) -> tuple[spec.RuleSpec, ...]:
        """Resolve rules. Rules without exactly one trigger are left out. The rules of
        ``watch`` must not have ``go``, ``end`` or ``after``.
        """
        return tuple(
            built
            for number, rule in enumerate(rules)
            if (built := self._rule(rule, (*path, number), watch)) is not None
        )

    def _rule(
        self, rule: doc.Rule, path: Sequence[str | int], watch: bool
    ) -> spec.RuleSpec | None:
        trigger = self._trigger(rule, path)
        if trigger is None:
            return None
        self._check_change(rule, path)
        if watch:
            self._check_watch(rule, path)
        if rule.go is not None and rule.go not in self.names.states:
            self.unknown("state", rule.go, self.names.states, (*path, "go"))
        self._check_outcome(rule.end, (*path, "end"))
        whatever = self._is_whatever(rule)
        it = trigger in ("enter", "inside", "press") and not whatever
        target = None
        if it:
            target = self.place(
                getattr(rule, trigger), (*path, trigger), solid=trigger == "press"
            )
        after = self.expression(rule.after, (*path, "after"), ex.NUMBER)
        self._check_number(
            after, 0, math.inf, "A duration cannot be negative.", (*path, "after")
        )
        p = self.expression(rule.p, (*path, "p"), ex.NUMBER, it=it)
        self._check_number(p, 0, 1, "A probability lies between 0 and 1.", (*path, "p"))
        return spec.RuleSpec(
            trigger=trigger,
            target=target,
            after=after,
            action=ACTIONS.index(rule.act)
            if rule.act is not None and not whatever
            else None,
            guard=self.expression(rule.if_, (*path, "if"), ex.TRUTH, it=it),
            p=p,
            effects=self.effects(rule, path, it=it),
            go=rule.go,
            end=rule.end,
            position=self.root.find(path).position,
            text=f"{trigger} {getattr(rule, trigger)}",
            whatever=whatever,
        )

    def _trigger(self, rule: doc.Rule, path: Sequence[str | int]) -> str | None:
        """Return the trigger of a rule. Unless there is exactly one, report an error
        and return None. If there is none, but an unknown key that may be a misspelt
        trigger, nothing more is reported.
        """
        node = self.root.find(path)
        given = [key for key in ex.TRIGGERS if getattr(rule, key) is not None]
        if len(given) == 1:
            return given[0]
        if given or not set(node.plain()) - set(doc.Rule.model_fields):
            sentence = f"A rule has exactly one trigger ({', '.join(ex.TRIGGERS)}); this one has {len(given)}."
            self.diagnostics.error(
                213, node.position, sentence, "Split it." if given else "Add one."
            )
        # If there is an unknown key, it is probably a misspelt trigger, which is
        # already reported.
        return None

    def _is_whatever(self, rule: doc.Rule) -> bool:
        """Return whether a rule is about any action (``act: any``), or about anything
        that blocks the way (``press: any``, if nothing is called ``any``).
        """
        named = {*self.names.places, *self.names.variables}
        return rule.act == ANY or (rule.press == ANY and ANY not in named)

    def _check_change(self, rule: doc.Rule, path: Sequence[str | int]) -> None:
        if rule.go is not None and rule.end is not None:
            self.diagnostics.error(
                214,
                self.root.find(path).position,
                "A rule has either 'go' or 'end', not both.",
                "Remove one.",
            )

    def _check_watch(self, rule: doc.Rule, path: Sequence[str | int]) -> None:
        """Report (215) a key in a rule of ``watch`` that only rules of states may
        have.
        """
        for key in ("go", "end"):
            if getattr(rule, key) is not None:
                self.diagnostics.error(
                    215,
                    self.root.find(path).key_position(key),
                    f"A watch rule can neither change the state nor end the trial: '{key}' is not allowed.",
                    "Use 'finish'.",
                )
        if rule.after is not None:
            self.diagnostics.error(
                215,
                self.root.find(path).position,
                "A watch rule has no clock: 'after' is not allowed.",
                "Use a rule of a state.",
            )

    def _check_number(
        self,
        tree: ex.Expression | None,
        low: float,
        high: float,
        sentence: str,
        path: Sequence[str | int],
    ) -> None:
        numbers: list[object] = [tree.value] if isinstance(tree, ex.Number) else []
        if isinstance(tree, ex.Unary) and isinstance(tree.operand, ex.Number):
            numbers = [-tree.operand.value]
        if isinstance(tree, ex.Variable):
            numbers = [*self.values(tree.name)]
        outside = [
            number
            for number in numbers
            if isinstance(number, int | float) and not low <= number <= high
        ]
        if outside:
            remedy = _remedy_outside(outside[0], high)
            self.diagnostics.error(218, self.root.find(path).position, sentence, remedy)

    def _check_outcome(self, outcome: str | None, path: Sequence[str | int]) -> None:
        if outcome == TIMEOUT:
            sentence = f"'{TIMEOUT}' is reserved for trials cut off by the limit."
            self.diagnostics.error(
                219,
                self.root.find(path).position,
                sentence,
                "Give this end another name.",
            )

    def finish(self) -> tuple[spec.FinishSpec, ...]:
        path = ("trial", "finish")
        for number, entry in enumerate(self.document.trial.finish):
            self._check_outcome(entry.end, (*path, number, "end"))
            position = self.root.find((*path, number)).position
            if entry.end is None and entry.go is None:
                sentence = (
                    f"The key 'end' is missing in entry {number + 1} of 'finish'."
                )
                self.diagnostics.error(
                    122, position, sentence, "Add 'end: ...', or 'go: ...'."
                )
            elif entry.end is not None and entry.go is not None:
                sentence = "An entry of 'finish' has either 'end' or 'go', not both."
                self.diagnostics.error(214, position, sentence, "Remove one.")
            if entry.go is not None and entry.go not in self.names.states:
                self.unknown(
                    "state", entry.go, self.names.states, (*path, number, "go")
                )
        return tuple(
            spec.FinishSpec(
                self.expression(entry.if_, (*path, number, "if"), ex.TRUTH),
                entry.end,
                entry.go,
                self.root.find((*path, number)).position,
            )
            for number, entry in enumerate(self.document.trial.finish)
        )


#: Maximum number of subsets from which a draw with ``pick`` chooses if its ``order`` is
#: not ``random``. All of them are written out.
MAX_SUBSETS = 10_000

Rows = tuple[tuple[ex.RuntimeValue, ...], ...]


def _shared_weight(weights: Sequence[int], order: str) -> int:
    """Return the number by which all weights may be divided. For random rows only the
    proportions matter. In blocks and cycles the weights count rows, so this is 1.
    """
    return math.gcd(*weights) if order == "random" else 1


class DrawBuilder(Lookup):
    def draws(self) -> tuple[spec.DrawSpec, ...]:
        found = []
        for name, draw in self.document.draw.items():
            rows = self._rows(name, draw)
            self._check_rows(name, draw, rows)
            self._check_keys(name, draw, rows)
            keep_if = self.expression(draw.keep_if, ("draw", name, "keep_if"), ex.TRUTH)
            found.append(
                spec.DrawSpec(
                    name,
                    draw.per,
                    draw.order,
                    tuple(draw.columns),
                    rows,
                    draw.pick,
                    draw.copies,
                    draw.max_run,
                    keep_if,
                    draw.sample if draw.distinct else None,
                )
            )
        return tuple(found)

    def _error(self, path: Sequence[str | int], sentence: str, remedy: str) -> None:
        *above, key = path
        position = self.root.find(above).key_position(str(key))
        self.diagnostics.error(206, position, sentence, remedy)

    def _rows(self, name: str, draw: doc.Draw) -> Rows:
        """Return the rows to draw from. A row is repeated in proportion to its weight.
        Weights that do not fit are reported and ignored. With ``sample``, the rows are
        all combinations of members or, if each member is dealt out only once, there are
        none.
        """
        if draw.sample is not None:
            self._check_sample(name, draw)
            return () if draw.distinct else self._sampled_rows(name, draw, draw.sample)
        columns = [list(map(runtime_value, cells)) for cells in draw.of.values()]
        rows: Rows = tuple(zip(*columns, strict=False))
        if draw.weights is None or not self._weights_fit(name, draw, len(rows)):
            return rows
        shared = _shared_weight(draw.weights, draw.order)
        return tuple(
            row
            for row, weight in zip(rows, draw.weights, strict=True)
            for _ in range(weight // shared)
        )

    def _sampled_rows(self, name: str, draw: doc.Draw, group: str) -> Rows:
        members = self.names.arena.groups.get(group, ())
        if len(members) ** len(draw.into) <= doc.MAX_ROWS:
            return tuple(itertools.product(members, repeat=len(draw.into)))
        sentence = f"{len(members)} members for {len(draw.into)} variables make more than {doc.MAX_ROWS} rows."
        self._error(("draw", name, "into"), sentence, "Use one draw for each variable.")
        return ()

    def _weights_fit(self, name: str, draw: doc.Draw, rows: int) -> bool:
        """Return whether the rows may have these weights: they are no permutations,
        there is one weight for each row, and the sum is not too large. Otherwise report
        (206).
        """
        weights, key = draw.weights or [], ("draw", name, "weights")
        if draw.permute is not None:
            self._error(key, "Permutations are equally likely.", "Remove 'weights'.")
            return False
        if len(weights) != rows:
            sentence = f"The numbers of weights ({len(weights)}) and rows ({rows}) of '{name}' differ."
            self._error(key, sentence, "Give one weight for each row of 'of'.")
            return False
        if sum(weights) // _shared_weight(weights, draw.order) > doc.MAX_ROWS:
            sentence = (
                f"The weights add up to {sum(weights)}, more than {doc.MAX_ROWS} rows."
            )
            self._error(key, sentence, "Use smaller weights.")
            return False
        return True

    def _check_rows(self, name: str, draw: doc.Draw, rows: Rows) -> None:
        """Report (206) rows that are too many, too few to pick from, or cannot be
        ordered as the draw asks.
        """
        place = ("draw", name)
        if draw.permute is not None:
            self._check_permutations(draw, draw.permute, place)
        if draw.sample is None and draw.pick is not None and draw.pick > len(rows):
            position = self.root.find((*place, "pick")).position
            self.diagnostics.error(
                206,
                position,
                f"'{name}' picks more rows ({draw.pick}) than it has ({len(rows)}).",
                "Pick fewer.",
            )
        if len(rows) * draw.copies > doc.MAX_ROWS:
            position = self.root.find(place).position
            copies = f" in {draw.copies} copies" if draw.copies > 1 else ""
            sentence = f"'{name}' has {len(rows)} rows{copies}, more than {doc.MAX_ROWS} in all."
            self.diagnostics.error(206, position, sentence, "Use fewer rows or copies.")
        self._check_runs(draw, rows, place)
        subsets = math.comb(len(rows), draw.pick or 0)
        if draw.order != "random" and subsets > MAX_SUBSETS:
            sentence = f"There are {subsets} subsets to order, more than {MAX_SUBSETS}."
            self._error((*place, "pick"), sentence, "Use 'order: random'.")

    def _check_permutations(
        self, draw: doc.Draw, values: Sequence[Any], place: Sequence[str]
    ) -> None:
        """Report (206) if there are no permutations or too many, or if a value appears
        twice.
        """
        if len(draw.into) > len(values):
            sentence = f"'permute' has {len(values)} value{'s' * (len(values) != 1)}, but 'into' asks for {len(draw.into)}."
            self._error((*place, "into"), sentence, "Ask for fewer.")
        elif not 1 <= draw.permutations <= doc.MAX_ROWS:
            sentence = (
                f"There are {draw.permutations} permutations, more than {doc.MAX_ROWS}."
            )
            self._error(
                (*place, "permute"),
                sentence,
                "Use fewer values or, if they are zones, make a group of them, and deal it out with 'sample'.",
            )
        if len(set(values)) < len(values):
            twice = Counter(values).most_common(1)[0][0]
            self._error(
                (*place, "permute"),
                f"'{twice}' appears twice in 'permute'.",
                "Name each value once.",
            )

    def _check_runs(self, draw: doc.Draw, rows: Rows, place: Sequence[str]) -> None:
        """Report (206) rows that cannot be ordered within ``max_run``."""
        if draw.max_run is None or not rows:
            return
        value, often = Counter(row[0] for row in rows).most_common(1)[0]
        if often == len(rows):
            sentence = "The first column has only one value, so its run never ends."
            self._error((*place, "max_run"), sentence, "Remove 'max_run'.")
        elif draw.order == "shuffle" and often > (len(rows) - often) * draw.max_run:
            sentence = f"'{value}' is too frequent for runs of at most {draw.max_run}."
            self._error((*place, "max_run"), sentence, "Allow longer runs.")

    def _check_keys(self, name: str, draw: doc.Draw, rows: Rows) -> None:
        is_sample, in_order = draw.sample is not None, draw.order in _IN_ORDER
        what = "pick" if draw.pick else "sample"
        useless = {
            "copies": (
                draw.copies > 1 and draw.order != "shuffle",
                "'copies' is only for 'order: shuffle'.",
                "Remove it, or shuffle.",
            ),
            "max_run": (
                draw.max_run is not None and (in_order or bool(draw.pick)),
                _NO_MAX_RUN[bool(draw.pick)],
                "Remove it.",
            ),
            "weights": (
                draw.weights is not None and (is_sample or bool(draw.pick)),
                f"'weights' do not go with '{what}'.",
                "Remove them.",
            ),
            "distinct": (
                not draw.distinct and not is_sample,
                "'distinct' is only for 'sample'.",
                "Remove it.",
            ),
        }
        for key, (is_useless, sentence, remedy) in useless.items():
            if is_useless:
                self._error(("draw", name, key), sentence, remedy)

    def _check_sample(self, name: str, draw: doc.Draw) -> None:
        """Report a ``sample`` that is neither a group nor a set drawn earlier, or has
        too few members, and keys that do not go with it.
        """
        sample = draw.sample or ""
        self.names.used.add(sample)
        sizes = self._sizes_before(name, draw)
        if sample not in sizes:
            self._no_sample(name, draw, sizes)
        elif draw.distinct:
            self._check_dealt(name, draw, sizes[sample])
        if draw.distinct and (draw.order != "random" or draw.max_run):
            self._sample_error(
                ("draw", name),
                "'sample' deals out in random order: 'order' and 'max_run' do not go with it.",
                "Remove them.",
            )
        if not draw.distinct and draw.pick:
            self._error(
                ("draw", name, "pick"),
                "'pick' draws without replacement, but 'distinct: false' draws with it.",
                "Remove one of them.",
            )

    def _sizes_before(self, name: str, draw: doc.Draw) -> dict[str, int]:
        """Return the size of everything that can be dealt out: groups and, if
        ``distinct``, sets that earlier draws pick.
        """
        groups = self.names.arena.groups
        sizes = {group: len(members) for group, members in groups.items()}
        if draw.distinct:
            draws = self.document.draw
            for before in itertools.takewhile(lambda one: one != name, draws):
                other = draws[before]
                sizes |= {column: other.pick for column in other.columns if other.pick}
        return sizes

    def _no_sample(self, name: str, draw: doc.Draw, sizes: Mapping[str, int]) -> None:
        sample, path = draw.sample or "", ("draw", name, "sample")
        later = next(
            (
                other
                for other, one in self.document.draw.items()
                if sample in one.columns and one.pick
            ),
            name,
        )
        if draw.distinct and later != name:
            self._sample_error(
                path,
                f"'{sample}' is not picked yet when '{name}' samples from it.",
                f"Move '{later}' above '{name}'.",
                201,
            )
        else:
            what = "group or previously drawn set" if draw.distinct else "group"
            self.unknown(what, sample, sizes, path)

    def _check_dealt(self, name: str, draw: doc.Draw, size: int) -> None:
        """Report keys that need more members than there are, or that need several
        sets.
        """
        asked = len(draw.into)
        if (draw.pick or 0) > size:
            self._sample_error(
                ("draw", name, "pick"),
                f"'{name}' picks {draw.pick} members of '{draw.sample}', which has {size}.",
                "Pick fewer.",
            )
        elif draw.pick and asked > 1:
            self._sample_error(
                ("draw", name, "into"),
                f"With 'pick', '{name}' is one set, but 'into' has {asked} variables.",
                "Name one variable, and use a draw for each set.",
            )
        elif asked > size:
            self._sample_error(
                ("draw", name, "into"),
                f"'into' asks for {asked} members of '{draw.sample}', which has {size}.",
                "Ask for fewer.",
            )

    def _sample_error(
        self, path: Sequence[str | int], sentence: str, remedy: str, code: int = 206
    ) -> None:
        position = self.root.find(path).position
        self.diagnostics.error(code, position, sentence, remedy)


class EvidenceBuilder(Lookup):
    """Resolves the parts that do not affect a trial, such as measures, references, the
    construct, checks and tests.
    """

    def primary_reference(self) -> int | None:
        return judged_reference(self.document.reference)

    def where(self) -> ex.Expression | None:
        """Return the condition under which a trial counts. It joins the conditions of
        the primary reference and of the estimand. None: every trial counts.
        """
        conditions = [
            tree
            for tree in (self._where_of_reference(), self._where_of_estimand())
            if tree is not None
        ]
        return (
            ex.Binary("and", *conditions)
            if len(conditions) == 2
            else next(iter(conditions), None)
        )

    def _where_of_estimand(self) -> ex.Expression | None:
        estimand = self.document.estimand
        written = None if isinstance(estimand, str) else estimand.where
        return self.expression(written, ("estimand", "where"), ex.TRUTH)

    def _where_of_reference(self) -> ex.Expression | None:
        primary = self.primary_reference()
        condition = None
        for number, reference in enumerate(self.document.reference):
            tree = self.expression(
                reference.where, ("reference", number, "where"), ex.TRUTH
            )
            if number == primary:
                condition = tree
        return condition

    def measure(
        self, written: object, path: Sequence[str | int]
    ) -> ex.Expression | None:
        """Resolve a measure: an expression, or a list of names with conditions. Either
        may be the ``value`` of a measure with ``by``. Return None for an expression
        with an error.
        """
        if isinstance(written, doc.MeasureBy):
            self._check_conditions(written, path)
            return self.measure(written.value, (*path, "value"))
        if not isinstance(written, list):
            return self.expression(written, path)
        cases = [
            (
                self.expression(case.if_, (*path, number, "if"), ex.TRUTH),
                case.is_,
            )
            for number, case in enumerate(written)
        ]
        for number, case in enumerate(written[:-1]):
            if case.if_ is None:
                position = self.root.find((*path, number + 1)).position
                sentence = (
                    f"No trial gets here, because '{case.is_}' above has no condition."
                )
                self.diagnostics.error(
                    221, position, sentence, "Give it an 'if', or put it last."
                )
                break
        return ex.Classes(tuple(cases))

    def _check_conditions(
        self, written: doc.MeasureBy, path: Sequence[str | int]
    ) -> None:
        for number, name in enumerate(written.by):
            self.names.used.add(name)
            here = (*path, "by", number)
            if name == path[-1]:
                position = self.root.find(here).position
                self.diagnostics.error(
                    228,
                    position,
                    f"'{name}' cannot be its own condition.",
                    "Name another variable.",
                )
            elif name not in (
                known := [*self.names.variables, *self.document.measures]
            ):
                if name in ex.BUILT_INS:
                    sentence = f"'{name}' is neither a variable nor a measure."
                    remedy = f"Add a measure, 'in_{name}: {name}', and name that."
                    self.diagnostics.error(
                        201, self.root.find(here).position, sentence, remedy
                    )
                    continue
                self.unknown(
                    "variable or measure",
                    name,
                    [one for one in known if one != path[-1]],
                    here,
                )
            elif name in written.by[:number]:
                position = self.root.find(here).position
                self.diagnostics.error(
                    228, position, f"'{name}' appears twice in 'by'.", "Keep one."
                )

    def construct(self) -> spec.ConstructSpec | None:
        construct = self.document.construct_
        if construct is None:
            return None
        if self.document.success is None and not any(
            one.better for one in self.document.reference or ()
        ):
            position = self.root.key_position("construct")
            sentence = (
                "A lesion abolishes a PASS, but the protocol has neither 'success' nor"
                " a verdict about a measure."
            )
            remedy = "Add 'success: ...', or 'better' to the reference on a measure."
            self.diagnostics.error(220, position, sentence, remedy)
        known: set[Lesion] = set()
        abolished, spared = [], []
        for number, entry in enumerate(construct.abolished_by):
            path = ("construct", "abolished_by", number, "lesion")
            if (lesion := self._lesion(entry.lesion, path, known)) is not None:
                abolished.append((lesion, entry.at_most))
        for number, written in enumerate(construct.spared_by):
            if (
                lesion := self._lesion(
                    written, ("construct", "spared_by", number), known
                )
            ) is not None:
                spared.append(lesion)
        return spec.ConstructSpec(
            construct.name,
            construct.kind,
            tuple(abolished),
            tuple(spared),
            tuple(construct.allows),
        )

    def _lesion(
        self,
        written: str | doc.LesionKeys,
        path: Sequence[str | int],
        known: set[Lesion],
    ) -> Lesion | None:
        position = self.root.find(path).position
        if isinstance(written, str):
            try:
                lesion = Lesion.parse(written)
            except OptionError as error:
                sentence, _, remedy = str(error).partition(". ")
                self.diagnostics.error(222, position, f"{sentence}.", remedy)
                return None
        else:
            lesion = Lesion(
                amnesia=frozenset(written.amnesia), hide=frozenset(written.hide)
            )
        if lesion == INTACT:
            self.diagnostics.error(
                222,
                position,
                "An intact subject has no lesion.",
                "Name a lesion, such as blind.",
            )
        for name in sorted(lesion.forgets_at):
            if name not in self.names.states:
                self.unknown("state", name, [TRIAL, *self.names.states], path)
        for name in sorted(lesion.hide):
            self._check_hidden(name, path)
        if lesion in known:
            sentence = f"'{lesion}' appears twice."
            self.diagnostics.error(
                223,
                position,
                sentence,
                "A lesion either abolishes the construct or spares it: keep one.",
            )
        known.add(lesion)
        return lesion

    def _check_hidden(self, name: str, path: Sequence[str | int]) -> None:
        kind, colon, rest = name.partition(":")
        arena = self.names.arena
        if kind == "text" and colon:
            if rest not in self.names.states:
                self.unknown("state", rest, self.names.states, path)
        elif kind == "glyph" and colon:
            if len(rest) != 1:
                self._cannot_hide(
                    path,
                    f"'{rest}' is not a glyph.",
                    "Write one character after 'glyph:'.",
                )
        elif name == LANDMARKS:
            if not arena.landmarks:
                self._cannot_hide(
                    path, "There are no landmarks to hide.", "Add 'arena: landmarks'."
                )
        elif name != TEXT:
            self._check_hidden_place(name, path)

    def _check_hidden_place(self, name: str, path: Sequence[str | int]) -> None:
        places, arena = self.names.places, self.names.arena
        if name in places or arena.landmark(name) is not None:
            return
        if name in self.names.variables:
            self._cannot_hide(
                path,
                f"'{name}' is a variable, and only what is drawn can be hidden.",
                "Hide how it is shown: its character after 'glyph:', or 'text'.",
            )
            return
        landmarks = [mark.name for mark in arena.landmarks]
        self.unknown("zone", name, [LANDMARKS, TEXT, *landmarks, *places], path)

    def _cannot_hide(
        self, path: Sequence[str | int], sentence: str, remedy: str
    ) -> None:
        self.diagnostics.error(222, self.root.find(path).position, sentence, remedy)

    def check(self) -> None:
        """Check what is not resolved elsewhere: estimand, success, references, split,
        checks and tests.
        """
        self._check_estimand()
        self._check_success()
        for number, reference in enumerate(self.document.reference):
            self._check_reference(reference, ("reference", number))
        self._check_split()
        for number, check in enumerate(self.document.checks):
            self._check_check(check, ("checks", number))
        for number, test in enumerate(self.document.tests):
            self._check_test(test, ("tests", number))

    def _check_known(
        self, what: str, name: str, known: Collection[str], path: Sequence[str | int]
    ) -> None:
        if name not in known:
            self.unknown(what, name, known, path)

    def _check_estimand(self) -> None:
        estimand = self.document.estimand
        blocks = estimand.block if isinstance(estimand, doc.Estimand) else None
        for number, block in enumerate(blocks or ()):
            path = ("estimand", "block", number)
            self._check_known("block", block, self.names.blocks, path)

    def _check_success(self) -> None:
        document = self.document
        if "success" in document.measures:
            position = self.root.find(["measures"]).key_position("success")
            self.diagnostics.error(
                202,
                position,
                "A measure cannot be called 'success'.",
                "Use the key 'success'.",
            )
        rated = next(
            (n for n, one in enumerate(document.reference) if one.measure == "success"),
            None,
        )
        misspelt = any(
            one.label == "E121" and "'success'" in one.remedy
            for one in self.diagnostics.errors
        )
        if document.success is not None or misspelt:
            return
        if rated is not None:
            position = self.root.find(("reference", rated)).position
            self.diagnostics.error(
                220,
                position,
                "The reference is on 'success', but the protocol has no 'success'.",
                "Add 'success: ...'.",
            )
        self._check_expected_success()

    def _check_expected_success(self) -> None:
        """Warn (337) of tests that expect a success, in a protocol without one."""
        expecting = [
            number
            for number, test in enumerate(self.document.tests)
            if test.expect.success is not None
        ]
        if expecting:
            place = ("tests", expecting[0], "expect", "success")
            position = self.root.find(place).position
            others = f" (and {len(expecting) - 1} more)" * (len(expecting) > 1)
            sentence = f"This test{others} expects 'success', which the protocol does not have."
            remedy = "Remove it from 'expect'. An edition without 'success' needs 'tests' of its own."
            self.diagnostics.warning(337, position, sentence, remedy)

    def _check_reference(
        self, reference: doc.Reference, path: Sequence[str | int]
    ) -> None:
        measures = list(self.document.measures)
        known = ["success", *measures, *counters(self.document)]
        self._check_known("measure", reference.measure, known, (*path, "measure"))
        if reference.counts is not None:
            here = (*path, "counts", "measure")
            self._check_known("measure", reference.counts.measure, measures, here)

    def _check_split(self) -> None:
        known = [*self.names.variables, *self.document.measures]
        for number, name in enumerate(self.document.split):
            self.names.used.add(name)
            built_in = ex.BUILT_INS.get(name)
            if name in known or built_in is None or built_in.type != ex.NUMBER:
                self._check_known("variable or measure", name, known, ("split", number))
                continue
            place = self.root.find(("split", number)).position
            sentence = f"'{name}' is built in: it is no variable or measure."
            remedy = (
                f"Write 'measures: {{by_{name}: {name}}}' and 'split: [by_{name}]'."
            )
            self.diagnostics.error(201, place, sentence, remedy)

    def _check_check(self, check: doc.Check, path: Sequence[str | int]) -> None:
        variables = self.names.variables
        self._check_known("state", check.at, self.names.states, (*path, "at"))
        self._check_known("variable", check.hidden, variables, (*path, "hidden"))

    def _check_test(self, test: doc.Test, path: Sequence[str | int]) -> None:
        places = [*self.names.places, *self.place_variables()]
        for number, name in enumerate(test.visit or ()):
            here = (*path, "visit", number)
            self._check_known("zone or variable", name, places, here)
        expected, outcomes = test.expect, self.names.outcomes
        if expected.outcome is not None:
            here = (*path, "expect", "outcome")
            self._check_known("outcome", expected.outcome, outcomes, here)
        groups: tuple[tuple[str, Mapping[str, object], Collection[str]], ...] = (
            ("counter", expected.counters, counters(self.document)),
            ("measure", expected.measures, self.document.measures),
            ("variable", expected.variables, self.names.variables),
        )
        for what, values, known in groups:
            for name in values:
                self._check_known(
                    what, name, known, (*path, "expect", f"{what}s", name)
                )
        if isinstance(test.actions, list):
            letters = sorted({*ACTIONS, *ACTION_LETTERS})
            for number, action in enumerate(test.actions):
                self._check_known("action", action, letters, (*path, "actions", number))
        elif odd := set(test.actions or ()) - set(ACTION_LETTERS + " "):
            self.unknown("action", min(odd), ACTION_LETTERS, (*path, "actions"))


#: Maximum number of trials of a subject. Its whole schedule is planned in advance.
MAX_TRIALS = 100_000
#: Keys that describe a protocol, but change neither a subject's trials nor a verdict.
#: The hash does not cover them.
DESCRIPTIVE = (
    "title",
    "cite",
    "fidelity",
    "notes",
    "tests",
    "checks",
    "chance",
    "split",
    "construct",
    "twins",
    "acknowledged",
)


def resolve(
    document: doc.ProtocolDocument,
    root: Node,
    path: Path,
    ancestors: Sequence[str],
    diagnostics: Diagnostics,
) -> tuple[spec.Specification, Names] | None:
    arena = build_arena(document.arena, root.find(["arena"]), diagnostics)
    if arena is None:
        return None
    names = declare_names(document, root, arena, diagnostics)
    builder = _Builder(document, root, names, diagnostics)
    trial = TrialBuilder(document, root, names, diagnostics)
    evidence = EvidenceBuilder(document, root, names, diagnostics)
    plain = without_nulls(root.plain())
    specification = spec.Specification(
        paradigm=document.paradigm,
        edition=document.edition,
        family="arena",
        path=str(path),
        text=canonical(plain),
        sha256=protocol_hash(plain),
        ancestors=tuple(ancestors),
        document=document,
        arena=arena,
        variables=builder.variables(),
        draws=DrawBuilder(document, root, names, diagnostics).draws(),
        columns={
            name: kind
            for name, kind in names.variables.items()
            if name not in document.vars
        },
        counters=tuple(counters(document)),
        start=builder.start(),
        limit=trial.limit(),
        entry=trial.entry(),
        states=trial.states(),
        each=trial.effects(document.trial.each, ("trial", "each")),
        watch=trial.rules(document.trial.watch, ("trial", "watch"), watch=True),
        finish=trial.finish(),
        schedule=builder.schedule(),
        success=builder.success(),
        where=evidence.where(),
        measures={
            name: tree
            for name, text in document.measures.items()
            if (tree := evidence.measure(text, ("measures", name))) is not None
        },
        outcomes=tuple(outcomes(document)),
        construct=evidence.construct(),
        test_positions=tuple(
            root.find(("tests", number)).position
            for number in range(len(document.tests))
        ),
    )
    evidence.check()
    if not diagnostics.errors and not specification.judged_sessions:
        diagnostics.error(
            216,
            root.find(
                ["reference" if document.estimand == "all" else "estimand"]
            ).position,
            "No trial counts: 'where' holds in no trial of the blocks that are judged.",
            "Correct the block, session or trial that it names ('session' counts within its block, 'trial' within "
            "its session).",
        )
    specification = dataclasses.replace(
        specification, references=resolve_references(specification, root, diagnostics)
    )
    return None if diagnostics.errors else (specification, names)


def identity(
    family: str,
    document: doc.DocumentModel,
    root: Node,
    path: Path,
    ancestors: Sequence[str],
) -> dict[str, Any]:
    """Return the fields that every ``BaseSpecification`` has. ``root`` is the file's
    tree. It must have the key ``paradigm``, and may have ``edition``.

    ``sha256`` leaves out descriptions (DESCRIPTIVE), the origin and dose of a
    reference, and the conditions ``by`` of a measure, because they change neither a
    subject's trials nor a verdict. A family that shows subjects further texts of its
    own must add them to the hash.
    """
    plain = without_nulls(root.plain())
    return {
        "paradigm": plain["paradigm"],
        "edition": plain.get("edition", DEFAULT_EDITION),
        "family": family,
        "path": str(path),
        "text": canonical(plain),
        "sha256": protocol_hash(plain),
        "ancestors": tuple(ancestors),
        "document": document,
    }


def canonical(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


#: The orders with which ``max_run`` is refused.
_IN_ORDER = ("cycle", "balanced", "by_subject")
#: Why ``max_run`` is refused, without and with ``pick``.
_NO_MAX_RUN = (
    "'max_run' is only for shuffled or random rows.",
    "'max_run' does not go with 'pick'.",
)


def protocol_hash(plain: Mapping[str, Any]) -> str:
    relevant = {key: value for key, value in plain.items() if key not in DESCRIPTIVE}
    if isinstance(references := relevant.get("reference"), list):
        said = {"species", "source", "status", "dose"}
        relevant["reference"] = [
            {k: v for k, v in one.items() if k not in said} for one in references
        ]
    if isinstance(measures := relevant.get("measures"), dict):
        # The conditions in `by` do not change the measured values.
        relevant["measures"] = {k: _value_of(v) for k, v in measures.items()}
    return hashlib.sha256(f"{doc.VERSION}\n{canonical(relevant)}".encode()).hexdigest()


def _value_of(measure: Any) -> Any:
    return measure.get("value", measure) if isinstance(measure, dict) else measure


def _remedy_outside(number: float, high: float) -> str:
    if high == 1 and 1 < number <= 100:
        return f"Write {number / 100:g} for {number:g} %."
    return f"Change {number:g}."


class _Builder(Lookup):
    """Builds variables, success, start and schedule."""

    def variables(self) -> dict[str, spec.VariableSpec]:
        variables = {}
        for name, variable in self.document.vars.items():
            initial: ex.RuntimeValue
            if isinstance(variable.init, list):
                initial = frozenset(
                    v for v in map(runtime_value, variable.init) if v is not None
                )
            else:
                initial = runtime_value(variable.init)
            kind = self.names.variables.get(name, ex.NUMBER)
            variables[name] = spec.VariableSpec(name, kind, initial, variable.per)
        return variables

    def success(self) -> ex.Expression | None:
        """Return the condition of success, or None if there is no valid one. It must
        not count earlier successes, because it defines what they are.
        """
        tree = self.expression(self.document.success, ("success",), ex.TRUTH)
        if any(
            isinstance(node, ex.Recent) and node.outcome is None
            for node in ex.walk(tree)
        ):
            position = self.root.find(["success"]).position
            self.diagnostics.error(
                134,
                position,
                "'success' counts itself.",
                "Count outcomes: recent(correct, 10).",
            )
        return tree

    def start(self) -> spec.StartSpec:
        start = self.document.start
        at = self.place(start.at, ("start", "at"), solid=False, placing=True)
        is_variable = start.face not in (*HEADINGS, "random")
        if is_variable and start.face not in self.names.variables:
            known = [*HEADINGS, "random", *self.names.variables]
            self.unknown("heading", start.face, known, ("start", "face"))
        elif is_variable:
            self._check_heading(start.face)
        elif self.document.arena.headings == 4 and start.face in HEADINGS[1::2]:
            self._no_heading(
                f"With four headings, {start.face} is not a heading.",
                "Use N, E, S or W.",
            )
        return spec.StartSpec(at, start.face, is_variable, start.carry)

    def _check_heading(self, variable: str) -> None:
        """Report (207) a variable that can hold anything but headings of this arena or
        ``random``.
        """
        self.names.used.add(variable)
        if self.names.variables[variable].kind != "name":
            self._no_heading(
                f"The variable '{variable}' does not hold a heading.",
                "Let it hold N, E, ...",
            )
            return
        headings = HEADINGS if self.document.arena.headings == 8 else HEADINGS[::2]
        known = [*headings, "random"]
        for value in self.values(variable):
            if value not in known:
                self._no_heading(
                    f"'{variable}' can hold '{value}', which is not a heading here.",
                    f"Use {' '.join(known)}.",
                )

    def _no_heading(self, sentence: str, remedy: str) -> None:
        position = self.root.find(("start", "face")).position
        self.diagnostics.error(207, position, sentence, remedy)

    def schedule(self) -> tuple[spec.BlockSpec, ...]:
        blocks, planned = [], 0
        for name, block in self.document.schedule.items():
            made = self._block(name, block)
            planned += made.planned
            if planned > MAX_TRIALS:
                position = self.root.find(("schedule", name)).position
                sentence = f"The schedule has {planned} trials up to here, but a subject can have at most {MAX_TRIALS}."
                self.diagnostics.error(
                    224,
                    position,
                    sentence,
                    "Use fewer sessions, trials or repetitions.",
                )
                planned = 0
            blocks.append(made)
        return tuple(blocks)

    def _block(self, name: str, block: doc.Block) -> spec.BlockSpec:
        place, repeat = ("schedule", name), block.repeat
        values = self._set_by(block, (*place, "set"))
        each = block.sessions * block.trials
        alone = each if repeat.trials is None else min(each, repeat.trials)
        until = self._until(block.until, (*place, "until"))
        if until is not None and until.count > alone:
            self._limits_nothing(
                self.root.find((*place, "until")).position,
                "'until' is never reached: it needs "
                f"{until.count} trials, and each repetition of the block has {alone}.",
                "Add trials, or lower 'count'.",
            )
        ends = self._until(repeat.until, (*place, "repeat", "until"))
        if ends is not None and ends.count >= repeat.at_most:
            self._limits_nothing(
                self.root.find((*place, "repeat", "until")).position,
                "'until' ends nothing early: the number of repetitions that it needs "
                f"({ends.count}) is not below 'at_most' ({repeat.at_most}).",
                "Raise 'at_most', or lower 'count'.",
            )
        most = each * repeat.at_most
        if repeat.trials is not None and repeat.trials >= most:
            self._limits_nothing(
                self.root.find((*place, "repeat")).key_position("trials"),
                f"'trials' limits nothing: all repetitions together have {most}.",
                "Lower it, or raise 'at_most'.",
            )
        return spec.BlockSpec(
            name,
            block.sessions,
            block.trials,
            repeat.at_most,
            values,
            until,
            repeat.trials,
            ends,
        )

    def _limits_nothing(self, place: Position, sentence: str, remedy: str) -> None:
        self.diagnostics.warning(315, place, sentence, remedy)

    def _set_by(
        self, block: doc.Block, path: tuple[str, ...]
    ) -> tuple[tuple[str, ex.RuntimeValue], ...]:
        values = []
        for variable, value in block.set.items():
            if variable in self.document.vars:
                held = self._constant(variable, value, (*path, variable))
                self._no_variables(variable, value, (*path, variable))
                values.append((variable, held))
            else:
                position = self.root.find(path).key_position(variable)
                self.undeclared(variable, value, position)
        return tuple(values)

    def _no_variables(
        self,
        variable: str,
        value: doc.Scalar | list[doc.Scalar],
        path: Sequence[str | int],
    ) -> None:
        """Report the name of a variable or column where the file gives a plain value:
        the name would be a symbol, not what the variable holds.
        """
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, str) and name in self.names.variables:
                what = "a variable" if name in self.document.vars else "a column"
                self.diagnostics.error(
                    212,
                    self.root.find(path).position,
                    f"'{variable}' is set to '{name}', which is {what}, but only a plain value can stand here.",
                    f"Let a rule read '{name}' in this block ('if: block == NAME').",
                )

    def _until(
        self, until: doc.Until | None, path: Sequence[str | int]
    ) -> spec.UntilSpec | None:
        """Resolve a criterion. Report unknown outcomes, and a ``count`` above
        ``of``.
        """
        if until is None:
            return None
        condition = self.expression(until.if_, (*path, "if"), ex.TRUTH)
        for outcome in until.outcome:
            if outcome not in self.names.outcomes:
                self.unknown(
                    "outcome", outcome, self.names.outcomes, (*path, "outcome")
                )
        if until.count > until.window:
            sentence = f"'count' is {until.count}, but only the last {until.of} trials are looked at."
            self.diagnostics.error(
                216,
                self.root.find(path).position,
                sentence,
                "Let 'count' be at most 'of'.",
            )
        met = frozenset([spec.MET] if until.if_ is not None else until.outcome)
        return spec.UntilSpec(met, until.count, until.window, condition)

    def _constant(
        self,
        variable: str,
        value: doc.Scalar | list[doc.Scalar],
        path: Sequence[str | int],
    ) -> ex.RuntimeValue:
        kind = self.names.variables.get(variable, ex.NUMBER)
        runtime: ex.RuntimeValue
        if isinstance(value, list):
            runtime = frozenset(v for v in map(runtime_value, value) if v is not None)
            held = "set"
        else:
            runtime = runtime_value(value)
            held = "name" if isinstance(runtime, str | None) else "number"
        if kind.domains == {"place"}:
            self._check_places(value if isinstance(value, list) else [value], path)
        if held != kind.kind and not (runtime is None and kind.kind == "name"):
            position = self.root.find(path).position
            self.diagnostics.error(
                133,
                position,
                f"'{variable}' is a {kind.kind}, but this is a {held}.",
                f"Write a {kind.kind}.",
            )
        return runtime

    def _check_places(
        self, names: Iterable[doc.Scalar], path: Sequence[str | int]
    ) -> None:
        for name in names:
            if isinstance(name, str) and name not in (*self.names.places, "none"):
                self.unknown("zone", name, self.names.places, path)
