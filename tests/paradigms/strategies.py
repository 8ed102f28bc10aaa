"""Random protocols that make sense to the loader, mostly: everything in the language, in any company.

What they are about makes no sense at all. Names say what they name: ``z0`` a zone, ``g0`` a group (``gs`` of solids,
``gd`` of doors), ``n0`` a number, ``p0`` a place, ``q0`` a symbol, ``u0`` any name, ``k0`` a solid, ``t0`` a set of
places, ``m0`` one of anything, ``c0`` a counter, ``o0`` an outcome, ``s_a`` a state, ``b0`` a block; columns are called
by what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import yaml
from hypothesis import strategies as st

T = TypeVar("T")
Draw = Callable[..., Any]
Node = dict[str, Any]

SCOPES = ("subject", "block", "session", "trial", "trial")
SYMBOLS = ("red", "green", "blue")
GLYPHS = ("*", "%", "o", "7", "@")
ACTIONS = ("STAY", "FORWARD", "FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT")
#: What a square of a map can be: floor, wall, zones, doors, a solid.
SQUARES = ".#..abcdexyS"
OUTCOMES = ("o0", "o1")
REWARDS = (1, 0.1, -0.25, 0.7, 0)
#: What a column of a draw can hold, besides places and doors.
COLUMNS: dict[str, list[Any]] = {
    "number": [0, 1, 2, 1.0, 0.5, 2.5, -4],
    "wait": [1, 2, 3.5, 0, 12],
    "place": ["none"],
    "symbol": [*SYMBOLS, "none"],
    "glyph": [*GLYPHS, "none"],
    "heading": ["N", "E", "S", "W", "random"],
    "door": ["none"],
    "chance": [0, 0.25, 0.5, 1],
}


class _Dumper(yaml.SafeDumper):
    """Writes maps and the like as blocks of lines."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


@st.composite
def protocols(draw: Draw) -> str:
    """Return the text of a protocol. The loader refuses some, and subjects of some meet a ProtocolError."""
    document = _Author(draw).protocol()
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)


class _Author:
    """Writes one protocol; attributes are the names that there are by now, and lists are what one may choose from."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        #: What is on the map; groups of floor.
        self.zones: list[str] = []
        self.doors: list[str] = []
        self.solids: list[str] = []
        self.groups: dict[str, list[str]] = {}
        self.states: list[str] = []
        self.blocks: list[str] = []
        #: Variables that a rule may change, by kind (the first letter of their names).
        self.variables: dict[str, list[str]] = {kind: [] for kind in "npqutmk"}
        #: Columns of draws, by what they hold: one thing, or (``sets``) some.
        self.columns: dict[str, list[str]] = {kind: [] for kind in COLUMNS}
        self.sets: dict[str, list[str]] = {kind: [] for kind in COLUMNS}
        self.landmarks: list[str] = []
        #: Columns that hold names of landmarks.
        self.marked: list[str] = []
        self.rotated = False
        #: Whether what only the scalar kernel has may be used, and whether trials can be a success.
        self.scalar = self.often(3)
        self.judged = self.often()
        self.face = "E"

    # -- choices

    def pick(self, items: Sequence[T]) -> T:
        """Return one of these; the first is the simplest."""
        chosen: T = self.draw(st.sampled_from(items))
        return chosen

    def some(self, items: Sequence[T], least: int = 0, most: int = 3) -> list[T]:
        """Return some of these, each once, in any order."""
        most = min(most, len(set(items)))
        chosen: list[T] = self.draw(st.lists(st.sampled_from(items), min_size=least, max_size=most, unique=True))
        return chosen

    def often(self, share: int = 2) -> bool:
        """Return True once in so many times."""
        return self.below(share) == share - 1

    def below(self, number: int) -> int:
        """Return a number from 0."""
        return int(self.draw(st.integers(0, number - 1)))

    # -- the whole

    def protocol(self) -> Node:
        """Return the whole document."""
        arena = self.arena()
        self.states = [self.pick(["s_a", "watch"]), "s_b", "s_c", "s_d"][: 1 + self.below(4)]
        self.blocks = ["b0", "b1"][: 1 + self.below(2)]
        variables = self.vars()
        document: Node = {
            "version": 1,
            "paradigm": self.pick(["any", "p" * 75]),
            "arena": arena,
            "vars": variables,
            "draw": self.draws(),
            "start": {"at": self.floor(), "face": self.pick(["E", "random", *self.columns["heading"]])},
        }
        document["start"]["carry"] = self.often(3)
        document["trial"] = self.trial()
        document["schedule"] = self.schedule()
        if self.judged:
            document["success"] = self.condition()
        document["measures"] = {f"measure{number}": self.measure() for number in range(1 + self.below(6))}
        return document

    def arena(self) -> Node:
        """Return a small map, and groups of what is on it."""
        self.rotated = self.often(8)
        width, height = (3, 3) if self.rotated else (2 + self.below(6), 1 + self.below(3))
        rows = ["a" + "".join(self.pick(SQUARES) for _ in range(width - 1)) for _ in range(height)]
        rows[0] = rows[0][:-1] + "b"
        if self.often():
            rows = ["#" * (width + 2), *(f"#{row}#" for row in rows), "#" * (width + 2)]
        present = set("".join(rows))
        legend: Node = {}
        for letter, number in zip("abcde", range(5), strict=True):
            if letter in present:
                legend[letter] = {"zones": [f"z{number}", "zz"]} if self.often(3) else {"zone": f"z{number}"}
                if self.often(6):
                    legend[letter]["glyph"] = self.pick(GLYPHS)
                self.zones += dict.fromkeys([f"z{number}", *legend[letter].get("zones", ())])
        self.zones = list(dict.fromkeys(self.zones))
        for letter, kind, names in (("x", "door", self.doors), ("y", "door", self.doors), ("S", "solid", self.solids)):
            if letter in present:
                legend[letter] = {kind: f"{kind}_{letter}"}
                names.append(f"{kind}_{letter}")
        self.solids += ["wall"] if "#" in present else []
        self.groups["g0"] = self.some(self.zones, 1, 4)
        if self.often():
            self.groups["g1"] = self.some([*self.zones, *self.doors], 1, 4)
        groups = {
            **self.groups,
            **({"gs": self.solids} if self.solids else {}),
            **({"gd": self.doors} if self.doors else {}),
        }
        arena: Node = {"map": "\n".join(rows) + "\n", "legend": legend, "groups": groups}
        arena["headings"] = self.pick([8, 4])
        if self.rotated:
            arena["rotate"] = "turn"
        elif self.often(4):
            arena["landmarks"] = {"N": "1", "lamp": {"at": [0, -1], "glyph": "*"}}
            self.landmarks = ["N", "lamp"]
        return arena

    def vars(self) -> Node:
        """Declare some variables."""
        declared: Node = {"palette": [*SYMBOLS]}
        for kind in self.some("npqutmk" if self.solids else "npqutm", 2, 5):
            for number in range(1 + (kind in "np" and self.often())):
                declared[f"{kind}{number}"] = {"init": self.initial(kind), "per": self.pick(SCOPES)}
                self.variables[kind].append(f"{kind}{number}")
        return declared

    def initial(self, kind: str) -> Any:
        """Return what a variable of a kind may hold at first, or in a block."""
        if kind == "n":
            return self.pick([0, 1, 2, 3, 0.5, 2.5, True, 999999999999999])
        if kind == "p":
            return self.pick([*self.zones, *self.groups])
        if kind == "q":
            return self.pick(SYMBOLS)
        if kind == "k":
            return self.pick([*self.solids, "gs"])
        if kind == "t":
            return self.some([*self.zones, *self.groups], 1, 3)
        return "none" if kind == "u" else []

    def draws(self) -> Node:
        """Return up to three draws."""
        found: Node = {}
        if self.rotated:
            found["turns"] = {"per": self.pick(SCOPES), "of": {"turn": self.some([0, 90, 180, 270], 2, 4)}}
        if self.landmarks and self.often():
            found["marks"] = {"per": self.pick(SCOPES), "of": {"lit": self.pick([["N", "lamp"], ["lamp", "N", "N"]])}}
            self.marked = ["lit"]
        for number in range(self.below(4)):
            if self.often(4):
                found[f"draw{number}"] = self.dealt(number)
                continue
            order = self.pick(["random", "shuffle", "cycle", "by_subject", "balanced"])
            kinds = self.some([kind for kind in COLUMNS if kind != "door" or self.doors], 1, 2)
            count, picks = 2 + self.below(3), self.often(4)
            entry: Node = {"per": self.pick(SCOPES), "order": order}
            runs = order in ("random", "shuffle") and not picks and kinds[0] != "door" and self.often(3)
            columns = {f"{kind}{number}": self.cells(kind, count, runs and kind == kinds[0]) for kind in kinds}
            if picks:
                entry["pick"] = 1 + self.below(count)
            if runs:
                entry["max_run"] = 1 + self.below(2)
            if order == "shuffle" and self.often(3):
                entry["copies"] = 1 + self.below(12)
            for kind in kinds:
                (self.sets if picks else self.columns)[kind].append(f"{kind}{number}")
            if not picks and order in ("random", "shuffle") and self.often(4):
                entry["weights"] = [1 + self.below(3) for _ in range(count)]
            if self.often(4):
                entry["keep_if"] = self.condition(1)
            found[f"draw{number}"] = {**entry, "of": columns}
        return found

    def dealt(self, number: int) -> Node:
        """Return a draw without a table: permutations, members of a group, a range of numbers."""
        entry: Node = {"per": self.pick(SCOPES)}
        into = [f"{letter}{number}" for letter in ("first", "second")[: 1 + self.below(2)]]
        kind = self.pick(["permute", "range", "sample", "deal"])
        if kind == "range":
            self.columns["number"].append(f"span{number}")
            bounds = self.pick([{"from": 1, "to": 4}, {"from": -0.5, "to": 1, "step": 0.25}])
            return {**entry, "order": self.pick(["random", "shuffle", "cycle"]), "of": {f"span{number}": bounds}}
        if kind == "permute":
            self.columns["symbol"] += into
            order = self.pick(["random", "shuffle", "cycle", "by_subject", "balanced"])
            return {**entry, "order": order, "permute": list(SYMBOLS), "into": into}
        group = self.pick([*self.groups])
        self.columns["place"] += into if kind == "sample" else into[: len(self.groups[group])]
        if kind == "sample":
            return {**entry, "sample": group, "distinct": False, "into": into}
        return {**entry, "sample": group, "into": into[: len(self.groups[group])]}

    def cells(self, kind: str, count: int, different: bool) -> list[Any]:
        """Return the cells of a column."""
        known = [*self.zones, *self.groups] if kind == "place" else self.doors if kind == "door" else []
        known = [*known, *COLUMNS[kind]]
        return self.some(known, count, count) if different else [self.pick(known) for _ in range(count)]

    def schedule(self) -> Node:
        """Return one block or two."""
        found: Node = {}
        for name in self.blocks:
            block: Node = {"sessions": 1 + self.below(2), "trials": 1 + self.below(3), "repeat": 1 + self.below(2)}
            if self.often(3):
                kinds = [kind for kind, names in self.variables.items() if names]
                block["set"] = {self.variables[kind][0]: self.initial(kind) for kind in self.some(kinds, 1, 2)}
            if self.often(3):
                count = 1 + self.below(2)
                outcomes = self.some([*OUTCOMES, "timeout"], 1, 2)
                block["until"] = {"outcome": outcomes, "count": count, "of": count + self.below(2)}
                if self.scalar and self.often():
                    window = {"of": count + self.below(3)} if self.often() else {}
                    block["until"] = {"if": self.condition(1), "count": count, **window}
            if self.often(4):
                block["repeat"] = {"at_most": 2 + self.below(3), "trials": 1 + self.below(6)}
                if self.scalar and self.often(3):
                    block["repeat"]["until"] = {"outcome": self.some([*OUTCOMES, "timeout"], 1, 2), "count": 1}
            found[name] = block
        return found

    # -- the trial

    def trial(self) -> Node:
        """Return everything under ``trial``."""
        first = self.some(self.states, 1, 2)
        limits = [20, 5, 1, 40, 20, *self.variables["n"], *self.columns["wait"]]
        trial: Node = {"limit": self.pick(limits)}
        trial["start"] = [*({"if": self.condition(), "go": state} for state in first[1:]), first[0]]
        trial["states"] = {name: self.state(name in first) for name in self.states}
        if self.often(4):
            trial["each"] = self.effects(0, False)
        if self.often(4):
            trial["show"] = self.show()
        if self.doors and self.often(4):
            trial["close"] = self.some(self.closing(), 1, 2)
        trial["watch"] = [self.rule(watch=True) for _ in range(self.below(5))]
        trial["finish"] = [
            {
                "if": self.condition(),
                **({"go": self.pick(self.states)} if self.often(3) else {"end": self.pick(OUTCOMES)}),
            }
            for _ in range(self.below(3))
        ]
        ends = [rule.get("end") for state in trial["states"].values() for rule in state["rules"]]
        ends += [entry.get("end") for entry in trial["finish"]]
        for outcome in OUTCOMES:  # conditions may ask for any of them
            if outcome not in ends:
                trial["states"][first[0]]["rules"].append({"after": self.pick([9, 15]), "end": outcome})
        return trial

    def state(self, first: bool) -> Node:
        """Return a state; ``first``: a trial can begin with it."""
        state: Node = self.effects(0, not first) if self.often(4) else {}
        if first:
            state.pop("reward", None)
        if self.often(4):
            columns = [name for names in (*self.columns.values(), *self.sets.values()) for name in names]
            known = [*(name for names in self.variables.values() for name in names), *columns]
            state["say"] = self.pick(["hm", ["one", "two"], *(f"{{{name}}} {{{{!}}}}" for name in known)])
        if self.often(3):
            state["show"] = self.show()
        if self.doors and self.often(2):
            doors = self.closing()
            state["close"] = self.some(doors, 1, 2)
            if self.often(3):
                state["open"] = self.some(doors, 1, 2)
        if self.often(6):
            state["freeze"] = True
        if self.often(4):
            state["each"] = self.effects(0, False)
        state["rules"] = [self.rule() for _ in range(self.below(5))]
        return state

    def show(self) -> Node:
        """Return what is shown, and how."""
        places = [
            *self.zones,
            *self.groups,
            *self.solids,
            *self.place_variables(),
            *self.sets["place"],
            *self.landmarks,
            *self.marked,
        ]
        glyphs = [*GLYPHS, *self.columns["glyph"], *self.columns["glyph"], " "]
        return {place: self.pick(glyphs) for place in self.some(places, 1, 3)}

    def closing(self) -> list[str]:
        """Return what can be closed."""
        return [*self.doors, "gd", *self.columns["door"], *self.sets["door"]]

    def rule(self, watch: bool = False) -> Node:
        """Return a rule of a state, or of ``watch``."""
        trigger = self.pick(["enter", "act", "press", "inside", *([] if watch else ["after"])])
        it = trigger in ("enter", "press", "inside")
        rule: Node = {}
        if trigger == "act":
            rule["act"] = self.pick([*ACTIONS, "any"])
        elif trigger == "after":
            rule["after"] = self.pick([1, 2, 3, 5, 1.5, *self.columns["wait"], *self.variables["n"], self.number(2)])
        elif trigger == "press":
            solids = [*self.solids, "gs", *self.variables["k"], *self.variables["k"]] if self.solids else []
            rule["press"] = self.pick([*solids, "any"])
            it = rule["press"] != "any"
        else:
            held = [*self.place_variables(), *self.variables["t"], *self.sets["place"]]
            rule[trigger] = self.pick([*self.groups, *self.zones, *self.doors, *held, *held])
        if self.often(3):  # nothing but pay: what a batch need not look at
            return {**rule, "reward": self.pick(REWARDS)}
        if self.often():
            rule["if"] = self.condition(2, it)
        if self.often(3):
            rule["p"] = self.pick([0.5, 0.25, 0.75, 1, *self.columns["chance"], self.number(2, it) + " / 4"])
        rule.update(self.effects(1, True, it))
        if not watch and self.often():
            rule.update({"end": self.pick(OUTCOMES)} if self.often(3) else {"go": self.pick(self.states)})
        return rule

    def effects(self, least: int, pays: bool, it: bool = False) -> Node:
        """Return some effects, ``least`` at least (nearly); without ``pays`` a reward is a plain number."""
        found: Node = {}
        kinds = [kind for kind, names in self.variables.items() if names]
        sets = [kind for kind in "tm" if self.variables[kind]]
        for effect in self.some(
            ["reward", "set", "count", "set", *(["add", "remove"] if sets else []), "place", *["put"] * self.scalar],
            least,
            3,
        ):
            if effect == "set":
                names = self.some([name for kind in kinds for name in self.variables[kind]], 1, 3)
                found["set"] = {name: self.value(name[0], it) for name in names}
            elif effect in ("add", "remove"):
                names = self.some([name for kind in sets for name in self.variables[kind]], 1, 2)
                found[effect] = {name: self.member(name[0], it) for name in names}
            elif effect == "count":
                found["count"] = self.some(["c0", "c1"], 1, 2)
            elif effect == "reward":
                found["reward"] = self.number(2, it, plain=True) if pays and self.often(3) else self.pick(REWARDS)
            elif effect == "put":
                if "place" not in found and self.often():
                    found["put"] = [self.number(1, it, plain=True), self.number(1, it)]
            elif self.often() and "put" not in found:
                found["place"] = "it" if it and self.often(4) else self.floor()
        return found

    def value(self, kind: str, it: bool) -> str:
        """Return an expression for a variable of a kind."""
        if kind == "n":
            return self.condition(2, it) if self.often(3) else self.number(2, it)
        if kind == "p":
            return self.place(it)
        if kind == "q":
            return self.pick([*SYMBOLS, *self.variables["q"], *self.columns["symbol"]])
        if kind == "k":
            return self.pick([*self.solids, *(["it"] if it else []), "none"])
        if kind == "u":
            return self.pick([self.place(it), "none", "state", "last", "block", "red", *self.columns["symbol"]])
        held = [*self.variables[kind], *self.variables["t"], *self.variables["m"], *self.sets["place"], "none"]
        return self.pick(held)

    def member(self, kind: str, it: bool) -> str:
        """Return what can be added to a set of a kind."""
        if kind == "t":
            return self.pick([*self.variables["t"], *self.sets["place"]]) if self.often(6) else self.place(it)
        sets = [*self.variables["m"], *self.variables["t"], *(name for names in self.sets.values() for name in names)]
        held = [self.place(it), self.pick(sets), "none", "state"]
        return self.pick([*held, self.number(1, it), "steps"] if self.scalar else held)

    # -- expressions

    def place_variables(self) -> list[str]:
        """Return what holds one place, or may."""
        return [*self.variables["p"], *self.columns["place"], *self.variables["u"]]

    def floor(self) -> str:
        """Return a place where somebody can be put; some hold none."""
        held = [*self.variables["p"], *self.columns["place"], *self.variables["t"], *self.sets["place"]]
        return self.pick([*self.groups, *self.zones, *self.groups, *held])

    def place(self, it: bool) -> str:
        """Return an expression that is a place."""
        where = [f"where({group})" for group in self.groups]
        if self.often(8):
            name = self.pick([*self.groups])
            count = len(self.groups[name])
            number = self.pick([f"{self.number(0, it)} % {count} + 1", "trial", str(count)])
            return f"member({name}, {number})"
        return self.pick(
            [*self.zones[:3], *(["it", "it", "it"] if it else []), *where, *self.place_variables(), "none"]
        )

    def number(self, depth: int = 2, it: bool = False, plain: bool = False) -> str:
        """Return a number; a ``plain`` one is finite, or nearly always."""
        if depth and self.often(3):
            sign = self.pick("+-*" if plain else "+-*+-*/%")
            if self.often(4):
                return self.computed(depth - 1, it, plain)
            if self.often(6):
                return f"(- {self.number(depth - 1, it, plain)} * 1)"
            if self.often(6):
                return f"({self.condition(depth - 1, it)})"
            return f"({self.number(depth - 1, it, plain)} {sign} {self.number(depth - 1, it, plain)})"
        place = self.pick(
            [*self.zones, *self.groups, *self.place_variables(), *self.variables["t"], *self.sets["place"]]
        )
        asked = [
            "time",
            "entries",
            *([] if plain else ["distance", "bearing_error", "departure_error", "column", "row"]),
        ]
        if self.often(4):
            return f"{self.pick(asked)}({place})"
        if self.scalar and self.often(12):
            outcomes = [*OUTCOMES, "timeout", *["success"] * self.judged]
            return f"recent({self.pick(outcomes)}, {self.pick([1, 3])})"
        if depth and self.often(8):
            return f"position({self.place(it)}, {self.pick([*self.groups])})"
        held = [*self.variables["n"], *self.columns["number"], *self.columns["wait"]]
        sizes = [*self.variables["t"], *self.variables["m"], *self.sets["place"], *self.sets["number"]]
        clocks = ["steps", "trial", "session", "subject", "x", "y", "heading", "moves"]
        return self.pick(
            [
                *["1", "2", "0", "0.5", "3", "7"],
                *held,
                *held,
                self.pick(clocks),
                *(f"size({name})" for name in sizes),
            ]
        )

    def computed(self, depth: int, it: bool, plain: bool) -> str:
        """Return a function of numbers; a ``plain`` one is finite."""
        name = self.pick(["min", "max", "abs", "round", "floor", *([] if plain else ["exp", "log"])])
        count = 2 + self.below(2) if name in ("min", "max") else 1
        return f"{name}({', '.join(self.number(depth, it, plain) for _ in range(count))})"

    def condition(self, depth: int = 2, it: bool = False) -> str:
        """Return a condition."""
        if depth and self.often(4):
            joint = self.pick(["and", "or"])
            return f"({self.condition(depth - 1, it)} {joint} {self.condition(depth - 1, it)})"
        if depth and self.often(6):
            return f"(not {self.condition(depth - 1, it)})"
        sign = self.pick(["==", "!="])
        symbols = [*self.variables["q"], *self.columns["symbol"], *self.variables["u"]]
        sets = [*self.groups, *self.variables["t"], *self.sets["place"], *self.variables["m"]]
        numbers = [*self.variables["m"], *self.sets["number"]]
        return self.pick(
            [
                f"{self.number(1, it)} {self.pick(['>', '<', '>=', '<=', '==', '!='])} {self.number(1, it)}",
                f"{self.place(it)} {sign} {self.place(it)}",
                f"{self.place(it)} in {self.pick(sets)}",
                f"last {sign} {self.pick([*OUTCOMES, 'timeout', 'none'])}",
                f"state {sign} {self.pick(self.states)}",
                f"block {sign} {self.pick(self.blocks)}",
                *(f"{name} {sign} {self.pick([*symbols, *SYMBOLS, 'none'])}" for name in symbols),
                *(f"{name} in palette" for name in symbols),
                *(f"{self.number(1, it)} in {name}" for name in numbers),
            ]
        )

    def measure(self) -> Any:
        """Return a measure of any kind."""
        if self.often(5):
            return [{"if": self.condition(), "is": "this"}, {"if": self.condition(1), "is": "that"}, "other"]
        held = [
            name for names in (*self.variables.values(), *self.columns.values(), *self.sets.values()) for name in names
        ]
        if held and self.often(4):
            return {"value": self.pick([self.number(), self.condition()]), "by": self.some(held, 1, 2)}
        return self.pick(
            [*held, *held, self.number(), self.condition(), self.place(False), "last", "block", "state", "g0"]
        )
