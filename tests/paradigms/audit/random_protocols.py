"""Random small protocols: each has a few features of the language, and most are
accepted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from tests.arenas import TWO_ARMS

PLUS = """
arena:
  map: |2
     .u.
     lSr
     .d.
  legend: {S: box, l: left, r: right, u: up, d: down}
  groups: {arm: [left, right, up, down]}
  headings: 4
"""
GATES = """
arena:
  map: |2
     g.S.h
     ..q..
  legend: {S: box, g: {door: near, zone: left}, h: {door: far, zone: right}, q: {door: side_door}}
  groups: {arm: [left, right], gate: [near, far, side_door]}
  headings: 4
"""
LEVERS = """
arena:
  map: |
    #A.B#
    #lSr#
    #...#
    #####
  legend: {S: box, l: left, r: right, A: {solid: lever_1, glyph: L}, B: {solid: lever_2, glyph: M}}
  groups: {arm: [left, right], lever: [lever_1, lever_2]}
  headings: 4
"""
FEATURES = (
    "scope",
    "order",
    "where",
    "clock",
    "past",
    "carry",
    "chance",
    "moved",
    "each",
    "vars",
)
CONDITIONS = {
    "": ("b == 1", "c == 0", "v == w", "side == left", "side == side2", "block == one", "n == 0", "n == 1",
         "few == side", "member(arm, b + 1) == side"),
    "vars": ("m == 0", "m > 1", "m == b", "k == left", "k == side", "k == none", "q % 2 == 0"),
    "past": ("last == good", "last == bad", "trial == 1", "session == 1", "recent(good, 2) > 0", "subject % 2 == 0"),
    "where": ("where(arm) == left", "where(arm) == side", "heading == 0", "x > 1", "y == 0", "entries(left) > 0",
              "distance(side) < 1.5", "state == run"),
    "clock": ("steps > 3", "steps % 2 == 0", "moves > 1", "time(left) > 1", "time(side) > 0"),
}  # fmt: skip
NUMBERS = {
    "": ("1", "b", "c", "n", "side == left", "v == w", "0 - (side == left)", "(block == one) * b"),
    "vars": ("m", "m * b", "k == side"), "clock": ("steps", "time(left)"), "where": ("x", "heading / 90"),
}  # fmt: skip
EFFECTS = {
    "": ("count: n", "reward"),
    "vars": ("set: {m: 1 - m}", "set: {m: m + 1}", "set: {m: b}", 'set: {m: "position(side, arm)"}', "set: {k: side}",
             "set: {k: side2}", "set: {k: left}", "set: {hint: side == k}", "set: {hint: b}", "set: {hint: m}",
             "set: {hint: (block == one) * (v == w)}", "set: {q: 1 - q}", "set: {q: q + 1}"),
    "clock": ("set: {m: steps}",), "where": ("set: {m: heading / 90}", "set: {m: x}", "set: {k: where(arm)}"),
    "moved": ("place: box", "place: at", "place: side", "put: [1 + b, 1]", "put: [1, y]"),
}  # fmt: skip
KEEP = (
    "last == bad",
    "last != good",
    "state == lost",
    "where(arm) == left",
    "x > 1",
    "trial == 2",
)
SHOWS = ("show: {side: '*'}", "show: {box: v}", "show: {left: v, box: w}", "show: {few: '%'}", "say: '{hint}'",
         "say: '{m}'", "say: '{side}'", "say: '{k}'")  # fmt: skip
EXITS = (
    "end: good",
    "end: good",
    "end: bad",
    "go: run",
    "go: lost",
    "go: more",
    "go: cue",
)
CHOICES = (
    ("{enter: side, end: good}", "{enter: arm, end: bad}"),
    ("{enter: side, go: more}", "{enter: arm, go: lost}"),
    ("{enter: arm, if: it == side, end: good}", "{enter: arm, end: bad}"),
    ("{enter: few, end: good}", "{enter: arm, end: bad}"),
)
SUCCESS = ("last == timeout", "last != bad", "n == 1 and seen < 3", "last == good and n == 0", "k == side",
           "(last == good and b == 1) or (last == timeout and b == 0)", "m == b and last != timeout",
           "where(arm) == side")  # fmt: skip


def random_protocol(seed: int) -> str:
    """Return the text of a protocol; some are not accepted."""
    return _Author(random.Random(seed)).text()


class _Author:
    def __init__(self, chance: random.Random) -> None:
        self.one: Callable[..., str] = lambda *choices: chance.choice(choices)
        self.chance = chance
        self.features = {"", *(one for one in FEATURES if chance.random() < 0.2)}

    def some(self, p: float, feature: str = "") -> bool:
        return feature in self.features and self.chance.random() < p

    def of(self, table: Mapping[str, Sequence[str]]) -> str:
        return self.one(
            *(
                one
                for feature, ones in table.items()
                if feature in self.features
                for one in ones
            )
        )

    def scope(self) -> str:
        return (
            self.one("trial", "trial", "session", "block", "subject")
            if "scope" in self.features
            else "trial"
        )

    def condition(self) -> str:
        found = self.of(CONDITIONS)
        if self.some(0.2):
            found = f"({found} {self.one('and', 'or')} {self.of(CONDITIONS)})"
        return f"not ({found})" if self.some(0.1) else found

    def effect(self) -> str:
        found = self.of(EFFECTS) if self.some(0.45) else ""
        return f'reward: "{self.of(NUMBERS)}"' if found == "reward" else found

    def rule(self, *, frozen: bool, watch: bool = False) -> str:
        place = self.one("side", "side2", "arm", "left", "few", "box")
        triggers = ["act: STAY", "act: any", "act: FORWARD", "act: ROTATE_LEFT"]
        triggers += [] if watch else ["after: 1", "after: 2", "after: b"]
        triggers += (
            []
            if frozen
            else [f"enter: {place}"] * 6 + [f"inside: {place}", "press: any"]
        )
        parts = [
            self.one(*triggers),
            f'if: "{self.condition()}"' if self.some(0.4) else "",
        ]
        parts += ["p: 0.5" if self.some(0.2, "chance") else "", self.effect()]
        parts += [self.one(*EXITS) if not watch and self.some(0.5) else ""]
        return "{" + ", ".join(one for one in parts if one) + "}"

    def state(self, name: str, *, doors: bool, levers: bool) -> str:
        frozen = self.some(0.6 if name == "cue" else 0.2)
        rules = [self.rule(frozen=frozen) for _ in range(self.chance.randint(0, 2))]
        if name == "cue":
            rules.append(
                self.one(
                    "{after: 1, go: run}", "{after: 2, go: run}", "{act: any, go: run}"
                )
            )
        elif frozen:
            rules.append("{after: 2, end: bad}")
        elif levers and self.some(0.3):
            rules += [
                "{press: lever, if: it == lever_1 or b == 0, end: good}",
                "{press: lever, end: bad}",
            ]
        else:
            rules += self.chance.choice(CHOICES)
        parts = [
            self.one(*SHOWS) if self.some(0.7) else "",
            "freeze: true" if frozen else "",
        ]
        parts += [
            f"close: [{self.one('shut', 'gate', 'near')}]"
            if doors and self.some(0.2)
            else "",
            self.effect(),
        ]
        parts += [
            f"each: {{{self.one('reward: b', 'count: n')}}}"
            if self.some(0.3, "each")
            else ""
        ]
        parts.append(f"rules: [{', '.join(rules)}]")
        return f"    {name}: {{{', '.join(one for one in parts if one)}}}\n"

    def draws(self, sides: Sequence[str], doors: Sequence[str]) -> str:
        rows = range(self.chance.randint(2, 4))
        columns = {
            "side": sides,
            "v": ("'*'", "'%'", "'+'"),
            "w": ("'*'", "'%'"),
            "b": ("0", "1"),
        }
        columns |= {
            "at": ("box", *sides),
            "face": tuple("NESW"),
            "late": ("5", "7", "10"),
        }
        columns |= {"shut": doors} if doors else {}
        of = ", ".join(
            f"{name}: [{', '.join(self.one(*own) for _ in rows)}]"
            for name, own in columns.items()
        )
        order, scope = "random", self.scope()
        if "order" in self.features:
            order = self.one("shuffle", "shuffle", "cycle", "balanced", "by_subject")
            scope = "subject" if order in ("balanced", "by_subject") else scope
            order += f", copies: {self.one('1', '2')}" if order == "shuffle" else ""
            order += (
                ", max_run: 2" if order.startswith("shuffle") and self.some(0.2) else ""
            )
        keep = (
            f", keep_if: {self.one(*KEEP)}"
            if scope != "subject" and self.some(0.6, "past")
            else ""
        )
        found = [f"  all: {{per: {scope}, order: {order}{keep}, of: {{{of}}}}}\n"]
        table = (
            "per: subject, order: by_subject"
            if self.some(0.5, "order")
            else f"per: {self.scope()}"
        )
        found += [f"  pair: {{{table}, of: {{c: [0, 1], side2: [left, right]}}}}\n"]
        found += [
            f"  few: {{per: {self.scope()}, sample: arm, {self.one('', '', 'pick: 1, ')}into: [few]}}\n"
        ]
        return "draw:\n" + "".join(self.chance.sample(found, len(found)))

    def text(self) -> str:
        arena = self.one(PLUS, GATES, LEVERS, TWO_ARMS)
        sides = ("left", "right", "up", "down") if arena == PLUS else ("left", "right")
        doors = ("near", "far", "side_door") if arena == GATES else ()
        text = f"version: 1\nparadigm: drawn\n{arena}{self.draws(sides, doors)}"
        text += f"vars: {{hint: 0, m: {{init: 0, per: {self.scope()}}}, k: {{init: none, per: {self.scope()}}}, "
        text += f"q: {{init: 0, per: {self.scope()}}}}}\n"
        carry = ", carry: true" if self.some(0.5, "carry") else ""
        text += f"start: {{at: {self.one('box', 'box', 'at')}, face: {self.one('N', 'N', 'random', 'face')}{carry}}}\n"
        first = (
            f'[{{if: "{self.condition()}", go: {self.one("more", "run")}}}, cue]'
            if self.some(0.2)
            else "cue"
        )
        text += f"trial:\n  limit: {self.one('6', '8', 'late')}\n  start: {first}\n  states:\n"
        for name in ("cue", "run", "lost", "more"):
            text += self.state(name, doors=bool(doors), levers=arena == LEVERS)
        watched = f", {self.rule(frozen=False, watch=True)}" if self.some(0.4) else ""
        text += f"  watch: [{{enter: arm, count: seen}}, {{enter: left, count: n}}{watched}]\n"
        if self.some(0.25):
            when = self.one("n == 2", "seen == 1", self.condition())
            text += f'  finish: [{{if: "{when}", {self.one("end: bad", "end: good", "go: more")}}}]\n'
        until = (
            f", until: {{outcome: good, count: {self.one('1', '2')}}}"
            if self.some(0.5, "past")
            else ""
        )
        text += f"schedule: {{one: {{sessions: {self.one('1', '2')}, trials: 3{until}}}, two: {{trials: 4}}}}\n"
        text += f"success: {self.one(*SUCCESS) if self.some(0.5) else 'last == good'}\n"
        return text + ("estimand: {block: two}\n" if self.some(0.5) else "")
