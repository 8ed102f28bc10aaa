"""Every finding of the language once: the text, the code, and (at the mark ``«``) the
reported position.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.diagnostics import Diagnostic
from cheesebench.errors import ProtocolError
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification
from tests.arenas import examine
from tests.protocol.short import FOUND, SIDES, state, trial

Findings = Callable[[str], list[str]]
Examine = Callable[[str], tuple[Specification | None, list[Diagnostic]]]

EMPTY = "trial: {limit: 1, start: a, states: {a: {}}}"
SCORED = "success: last == found\n"
WALK = f"trial: {{limit: 9, start: run, states: {{run: {{{FOUND}}}}}}}\n"
RING = "start: {at: hole1}\ntrial: {limit: 9, start: a, states: {a: {rules: [{enter: hole2, end: b}]}}}\n"
LEVER = 'arena: {map: "S..ZL", legend: {S: box, Z: goal, L: {solid: lever}}, groups: {side: [box, goal]}}\n'
DOOR = 'arena: {map: "S.d.Z", legend: {S: box, Z: goal, d: {door: gate}}}\n'
LANDMARK = 'arena: {map: "S..Z", legend: {S: box, Z: goal}, landmarks: {N: "1"}}\n'


def arena(keys: str, legend: str = "") -> str:
    return f'arena: {{map: "SZ", legend: {{S: box, Z: goal{legend}}}, {keys}}}\n'


def construct(lesion: str) -> str:
    lesions = f"[{{lesion: {lesion}, at_most: 0.5}}]"
    return f"success: last == found\nconstruct:\n  name: x\n  kind: perception\n  abolished_by: {lesions}\n"


ERRORS = {
    "version": ("E120", "version: «2"),
    "version as text": ("E120", "version: «'1'"),
    "unknown key": ("E121", "«vras: {n: 0}"),
    "unknown key in a rule": ("E121", trial("{enter: goal, «rewrd: 1, end: found}")),
    "unknown key in an edition of a union": ("E121", "estimand: {last: 3, «lst: 3}"),
    "missing limit": ("E122", f"trial: «{{start: run, states: {{run: {{{FOUND}}}}}}}"),
    "missing key in a list": ("E122", "reference: [«{measure: success, value: 0.5}]"),
    "misfit": ("E123", "start: {at: box, carry: «maybe}"),
    "misfit in a list": ("E123", "reference: [{measure: success, value: «high, status: x}]"),
    "odd key": ("E124", "vars: {«two words: 1}"),
    "expression that ends": ("E130", trial("{enter: goal, if: steps >«, end: found}")),
    "expression with a quote": ("E130", "success: last == «'found'"),
    "expression in a quote": ("E130", "success: 'last «= found'"),
    "unknown name": ("E131", "success: last == found and «bax == 1"),
    "it without a trigger": ("E132", trial("{act: STAY, if: «it == goal, end: found}")),
    "it in an entry": ("E132", "vars: {v: none}\n" + state("set: {v: «it}")),
    "number needed": ("E133", trial("{enter: goal, reward: «goal, end: found}")),
    "condition needed": ("E133", "success: «last"),
    "never equal": ("E133", "measures: {m: «last == goal}"),
    "calculation with a name": ("E133", "measures: {m: 1 + «last}"),
    "a name to a number": ("E133", "vars: {n: 0}\n" + trial("{enter: goal, set: {n: «goal}, end: found}")),
    "a number to a name": ("E133", "vars: {v: goal}\n" + trial("{enter: goal, set: {v: «5}, end: found}")),
    "in what is no set": ("E133", "success: last == found and goal in «box"),
    "a name in numbers": ("E133", "vars: {seen: [1]}\nsuccess: «last in seen"),
    "a number in names": ("E133", "vars: {seen: [goal]}\nsuccess: «5 in seen"),
    "a set in a set": ("E133", "vars: {seen: []}\nsuccess: «seen in seen"),
    "a member is no group": ("E133", LEVER + trial("{enter: side, if: «it == side, end: found}")),
    "block sets another kind": ("E133", "vars: {n: 0}\nschedule: {one: {set: {n: «goal}}}"),
    "unknown function": ("E134", "success: «sise(last) == 1"),
    "where of a zone": ("E134", "success: last == found and where(«goal) == goal"),
    "size of a name": ("E134", "measures: {m: size(«last)}"),
    "time of a number": ("E134", "measures: {m: 1 + time(«steps)}"),
    "no arena": ("E140", "arena: «{groups: {}}"),
    "two arenas": ("E140", "arena: «{ring: {radius: 5, holes: 4}, pool: {radius: 5}}"),
    "impossible options": ("E141", RING + "arena: {ring: «{radius: 4, holes: 40}}"),
    "legend without a map": ("E142", RING + "arena: {ring: {radius: 4, holes: 4}, «legend: {S: box}}"),
    "empty map": ("E143", 'arena: {map: «"  "}'),
    "map without floor": ("E143", "arena:\n  map: «|\n    ###\n    ###"),
    "huge map": ("E143", f'arena: {{map: «"{"." * 10_001}"}}'),
    "unknown character": ("E144", 'arena: {map: "S.«?.Z?", legend: {S: box, Z: goal}}'),
    "unknown character in a block": ("E144", "arena:\n  map: |\n\n    ####\n     S«?Z\n  legend: {S: box, Z: goal}"),
    "floor and solid": ("E145", 'arena: {map: "S.ZL", legend: {«S: box, Z: goal, L: {solid: box}}}'),
    "group with a zone's name": ("E146", 'arena: {map: "SZ", legend: {S: box, Z: goal}, groups: {«box: [goal]}}'),
    "empty group": ("E146", 'arena: {map: "SZ", legend: {S: box, Z: goal}, groups: {«none_here: []}}'),
    "landmark on floor": ("E147", arena("landmarks: {a: «{at: [1, 0], glyph: x}}")),
    "landmark far away": ("E147", arena("landmarks: {a: «{at: [9, 0], glyph: x}}")),
    "landmark nowhere": ("E147", arena("landmarks: {NNE: «x}")),
    "landmarks collide": ("E147", arena("landmarks: {E: x, a: «{at: [2, 0], glyph: y}}")),
    "unknown parent": ("E150", "extends: «nobody"),
    "a parent that is no name": ("E150", "extends: «../../secret"),
    "unknown zone": ("E201", trial("{enter: «gaol, end: found}")),
    "unknown start": ("E201", "start: {at: «bax}"),
    "unknown state": ("E201", trial("{enter: goal, go: «rnu}")),
    "unknown first state": ("E201", f"trial: {{limit: 9, start: «rnu, states: {{run: {{{FOUND}}}}}}}"),
    "unknown member": ("E201", 'arena: {map: "SZ", legend: {S: box, Z: goal}, groups: {side: [box, «gaol]}}'),
    "unknown door": ("E201", DOOR + state("close: [«gat]")),
    "a zone is no door": ("E211", DOOR + state("close: «box")),
    "unknown cue": ("E201", state("show: {«gaol: x}")),
    "unknown glyph variable": ("E201", state("show: {goal: «lamp}")),
    "unknown place": ("E201", state("place: «bax")),
    "unknown heading": ("E201", "start: {at: box, face: «Nord}"),
    "unknown limit": ("E201", f"trial: {{limit: «gap, start: run, states: {{run: {{{FOUND}}}}}}}"),
    "unknown block": ("E201", "estimand: {block: «tow}"),
    "unknown block and a reference over a session": (
        "E201", "estimand: {block: «tow}\n" + SCORED
        + "reference: [{measure: success, value: 0.5, over: [1], status: x}]"
    ),
    "unknown block and animals": (
        "E201", "estimand: {block: «tow}\n" + SCORED
        + "reference: [{measure: success, animals: [[m, 1, 4, 1]], status: x}]"
    ),
    "unknown block of two": ("E201", "estimand: {block: [one, «tow]}"),
    "estimand that says two things": ("E123", "estimand: «{block: one, last: 2}"),
    "estimand that says nothing": ("E123", "estimand: «{}"),
    "estimand of nobody": ("E131", "estimand: {where: «stpes > 3}"),
    "a number of an article": ("E123", "cite: {doi: «10.1000}"),
    "reward divided by nothing": ("E218", trial("{enter: goal, reward: «1 / 0, end: found}")),
    "reward divided by a sum of nothing": ("E218", trial("{enter: goal, reward: «3 + steps / (1 - 1), end: found}")),
    "infinite reward": ("E218", trial("{enter: goal, reward: «1e99 * 1e99 * 1e99 * 1e99, end: found}")),
    "unknown measure": ("E201", "reference: [{measure: «latenzy, value: 3, status: x}]"),
    "unknown variable in checks": ("E201", "checks: [{at: run, hidden: «sampel, chance: 0.5}]"),
    "unknown variable to split by": ("E201", "split: [«sampel]"),
    "a built-in name to split by": ("E201", "split: [«trial]"),
    "unknown state in checks": ("E201", "vars: {v: 0}\nchecks: [{at: «rnu, hidden: v, chance: 0.5}]"),
    "unknown lesion": ("E222", construct("«blnd")),
    "a lesion of nothing": ("E222", construct("«intact")),
    "no landmarks to hide": ("E222", construct("«{hide: landmarks}")),
    "a glyph of two characters": ("E222", construct("«{hide: 'glyph:ab'}")),
    "unknown state in a lesion": ("E201", construct("«{amnesia: rnu}")),
    "unknown state whose text is hidden": ("E201", construct("«{hide: 'text:rnu'}")),
    "unknown zone in a lesion": ("E201", construct("«{hide: gaol}")),
    "a lesion that takes nothing": ("E123", construct("«{}")),
    "a lesion twice": ("E223", construct("blind") + "  spared_by: [«blind]"),
    "a construct without abolition": (
        "E123", "success: last == found\nconstruct: {name: x, kind: memory, abolished_by: «[]}"
    ),
    "a construct without success": (
        "E220", "«construct: {name: x, kind: perception, abolished_by: [{lesion: blind, at_most: 1}]}"
    ),
    "unknown outcome in tests": ("E201", "tests: [{actions: F, expect: {outcome: «fuond}}]"),
    "unknown action in tests": ("E201", "tests: [{actions: «FFX, expect: {outcome: found}}]"),
    "unknown action in a list": ("E201", "tests: [{actions: [F, «JUMP], expect: {outcome: found}}]"),
    "unknown zone in tests": ("E201", "tests: [{visit: [box, «gaol], expect: {outcome: found}}]"),
    "unknown counter in tests": ("E201", "tests: [{actions: F, expect: {counters: {laps: «1}}}]"),
    "block sets an unknown zone": ("E201", "vars: {v: goal}\nschedule: {one: {set: {v: «gaol}}}"),
    "name of a zone": ("E202", "vars: {«goal: 0}"),
    "word of the language": ("E202", "vars: {«steps: 0}"),
    "a zone called it": ("E202", 'arena: {map: "S.Z", legend: {S: box, «Z: it}}\n' + EMPTY),
    "a group called last": ("E202", 'arena: {map: "SZ", legend: {S: box, Z: goal}, groups: {«last: [box, goal]}}'),
    "a state called state": ("E202", f"trial: {{limit: 9, start: state, states: {{«state: {{{FOUND}}}}}}}"),
    "two columns of one name": ("E202", "draw: {a: {of: {x: [1]}}, b: {of: {«x: [1]}}}"),
    "counter with a variable's name": ("E202", "vars: {n: 0}\n" + trial("{enter: goal, count: [«n], end: found}")),
    "columns of unequal length": ("E203", "draw: {d: {of: «{x: [1, 2], y: [1]}}}"),
    "mixed column": ("E203", "draw: {d: {of: {x: [1, «goal]}}}"),
    "nothing among numbers": ("E203", "draw: {d: {of: {x: [1, «none]}}}"),
    "mixed set": ("E203", "vars: {seen: «[1, goal]}"),
    "variable without a zone": ("E204", "vars: {n: 0}\n" + trial("{enter: «n, end: found}")),
    "enter a solid": ("E205", LEVER + trial("{enter: «lever, end: found}")),
    "press floor": ("E205", LEVER + trial("{press: «goal, end: found}")),
    "start on a wall": ("E205", 'arena: {map: "#."}\nstart: {at: «wall}\n' + EMPTY),
    "start on a solid": ("E205", LEVER + "start: {at: «lever}"),
    "a draw of solids to enter": ("E205", LEVER + "draw: {d: {of: {x: [lever]}}}\n" + trial("{enter: «x, end: b}")),
    "sample of what is not there": ("E201", "draw: {d: {sample: «nothing, into: [x]}}"),
    "sample of a set drawn later": ("E201", "draw: {d: {sample: «late, into: [x]}, e: {pick: 1, of: {late: [1, 2]}}}"),
    "sample of too few": ("E206", SIDES + "draw: {d: {sample: side, into: «[x, y, z]}}"),
    "sample in an order": ("E206", SIDES + "draw: {d: «{order: shuffle, sample: side, into: [x]}}"),
    "sample beside a table": ("E123", SIDES + "draw: {d: «{sample: side, into: [x], of: {y: [1, 2]}}}"),
    "sample into a name that is taken": ("E202", SIDES + "draw: {d: {sample: side, into: [«goal]}}"),
    "pick too many": ("E206", "draw: {d: {pick: «3, of: {x: [1, 2]}}}"),
    "pick among too many subsets": ("E206", f"draw: {{d: {{order: cycle, «pick: 9, of: {{x: {list(range(20))}}}}}}}"),
    "copies beyond all memory": (
        "E206", f"draw: {{d: «{{order: shuffle, copies: 100000, of: {{x: {[*range(20)]}}}}}}}"
    ),
    "more trials than anybody lives": ("E224", "schedule: {one: «{sessions: 100000, trials: 100000}}"),
    "copies of random rows": ("E206", "draw: {d: {«copies: 3, of: {x: [1, 2]}}}"),
    "runs in a cycle": ("E206", "draw: {d: {order: cycle, «max_run: 3, of: {x: [1, 2]}}}"),
    "runs of one value": ("E206", "draw: {d: {«max_run: 3, of: {x: [1, 1]}}}"),
    "runs too short": ("E206", "draw: {d: {order: shuffle, «max_run: 1, of: {x: [1, 1, 2]}}}"),
    "diagonal with four headings": ("E207", arena("headings: 4") + "start: {at: box, face: «NE}"),
    "column of no headings": ("E207", "draw: {d: {of: {way: [N, Nord]}}}\nstart: {at: box, face: «way}"),
    "number for a heading": ("E207", "vars: {way: 3}\nstart: {at: box, face: «way}"),
    "reward at reset": ("E208", state("«reward: 1")),
    "start with a condition": ("E209", WALK.replace("start: run", "start: «[{if: trial > 1, go: run}]")),
    "no start": ("E209", f"trial: {{limit: 9, start: «[], states: {{run: {{{FOUND}}}}}}}"),
    "column of no glyphs": ("E210", "draw: {d: {of: {lamp: [ab, c]}}}\n" + state("show: {goal: «lamp}")),
    "landmark that is not there": ("E201", LANDMARK + state("show: {«S: x}")),
    "landmarks and a zone in a column": (
        "E201", LANDMARK + "draw: {d: {of: {which: [N, West]}}}\n" + state("show: {«which: x}")
    ),
    "unknown zone shown in all states": ("E201", trial("{enter: goal, end: found}", "show: {«gaol: x}, ")),
    "unknown door closed in all states": ("E201", trial("{enter: goal, end: found}", "close: [«gaol], ")),
    "a zone is closed in all states": ("E211", trial("{enter: goal, end: found}", "close: «box, ")),
    "a landmark is not entered": ("E201", LANDMARK + trial("{enter: «N, end: found}")),
    "hidden landmark that is not there": ("E201", LANDMARK + construct("«{hide: [S]}")),
    "variable without a glyph": ("E210", "vars: {lamp: bright}\n" + state("show: {goal: «lamp}")),
    "column of no doors": ("E211", DOOR + "draw: {d: {of: {shut: [gate, goal]}}}\n" + state("close: «shut")),
    "variable without a door": ("E211", DOOR + "vars: {shut: goal}\n" + state("close: «shut")),
    "number for a door": ("E211", DOOR + "vars: {shut: 1}\n" + state("close: «shut")),
    "a zone is not left open": ("E211", DOOR + state("close: gate, open: «box")),
    "unknown door left open": ("E201", DOOR + state("close: gate, open: «gte")),
    "undeclared remove": ("E212", trial("{enter: goal, remove: {«seen: it}, end: found}")),
    "remove from a number": ("E212", "vars: {n: 0}\n" + trial("{enter: goal, remove: {«n: it}, end: found}")),
    "remove a number from zones": ("E133", "vars: {s: [goal]}\n" + trial("{enter: goal, remove: {s: «3}, end: found}")),
    "undeclared set": ("E212", trial("{enter: goal, set: {«n: 1}, end: found}")),
    "undeclared add": ("E212", trial("{enter: goal, add: {«seen: it}, end: found}")),
    "add to a number": ("E212", "vars: {n: 0}\n" + trial("{enter: goal, add: {«n: it}, end: found}")),
    "set of a column": ("E212", "draw: {d: {of: {x: [1]}}}\n" + trial("{enter: goal, set: {«x: 1}, end: found}")),
    "set of a zone": ("E212", trial("{enter: goal, set: {«goal: 1}, end: found}")),
    "undeclared block set": ("E212", "schedule: {one: {set: {«n: 1}}}"),
    "finish goes nowhere": ("E201", trial("{enter: goal, end: found}", "finish: [{if: steps > 3, go: «rin}], ")),
    "finish goes and ends": ("E214", trial("{enter: goal, end: found}", "finish: [«{go: run, end: found}], ")),
    "finish does nothing": ("E122", trial("{enter: goal, end: found}", "finish: [«{if: trial > 1}], ")),
    "no trigger": ("E213", trial("«{end: found}")),
    "two triggers": ("E213", trial("«{enter: goal, after: 3, end: found}")),
    "go and end": ("E214", trial("«{enter: goal, go: run, end: found}")),
    "watch goes": ("E215", trial("{enter: goal, end: found}", "watch: [{enter: box, «go: run}], ")),
    "watch ends": ("E215", trial("{enter: goal, end: found}", "watch: [{enter: box, «end: run}], ")),
    "watch keeps time": ("E215", trial("{enter: goal, end: found}", "watch: [«{after: 3, count: n}], ")),
    "until nothing": ("E123", "schedule: {one: {trials: 9, until: «{count: 4}}}"),
    "until an outcome and a condition": (
        "E123", "schedule: {one: {trials: 9, until: «{outcome: found, if: steps < 9, count: 4}}}"
    ),
    "until a condition on what there is not": (
        "E131", "schedule: {one: {trials: 9, until: {if: «stepz < 9, count: 4}}}"
    ),
    "until a condition without a count": ("E122", "schedule: {one: {trials: 9, until: «{if: steps < 9}}}"),
    "repeat until what cannot be": (
        "E216",
        "schedule: {one: {trials: 9, repeat: {at_most: 9, until: «{outcome: found, count: 4, of: 3}}}}",
    ),
    "repeat until there is no such outcome": (
        "E201",
        "schedule: {one: {trials: 9, repeat: {at_most: 9, until: {outcome: «fond, count: 2}}}}",
    ),
    "until what cannot be": ("E216", "schedule: {one: {trials: 9, until: «{outcome: found, count: 4, of: 3}}}"),
    "an estimand that counts no trial": (
        "E216", SCORED + "schedule: {one: {}, two: {}}\nestimand: «{block: one, where: block == two}"
    ),
    "a reference that counts no trial": (
        "E216", SCORED + "schedule: {one: {}, two: {}}\n"
        "reference: «[{measure: success, value: 1, where: block == one and block == two, status: x}]"
    ),
    "rate above 1": ("E217", SCORED + "reference: [«{measure: success, value: 80, status: x}]"),
    "a spread in percent": (
        "E217", SCORED + "reference: [{measure: success, value: 0.84, sd: «6, n_animals: 8, status: x}]"
    ),
    "an error in percent": (
        "E217", SCORED + "reference: [{measure: success, value: 0.84, sem: «2.4, n_animals: 8, status: x}]"
    ),
    "interval backwards": ("E217", SCORED + "reference: [«{measure: success, value: 1, interval: [1, 0], status: x}]"),
    "two spreads": (
        "E226",
        SCORED + "reference: [{measure: success, value: 1, sd: 0, «sem: 0, n_animals: 4, status: x}]",
    ),
    "spread without animals": ("E226", SCORED + "reference: [{measure: success, value: 1, «sd: 0.1, status: x}]"),
    "negative spread": ("E226", SCORED + "reference: [«{measure: success, value: 1, sd: -1, n_animals: 4, status: x}]"),
    "spreads without a curve": (
        "E226", SCORED + "reference: [{measure: success, value: 1, curve: [1], «curve_sd: [0, 0], status: x}]"
    ),
    "a curve over sessions of which there may be fewer": (
        "E226", "schedule: {one: {trials: 4, until: {outcome: found, count: 2}, repeat: {at_most: 3, trials: 8}}}\n"
        + SCORED + "reference: [{measure: success, «curve: [0, 1, 1], status: x}]"
    ),
    "no number": ("E226", SCORED + "reference: [«{measure: success, status: x}]"),
    "curve that is too short": (
        "E226", "schedule: {one: {sessions: 2}}\n" + SCORED + "reference: [«{measure: success, curve: [1], status: x}]"
    ),
    "animals and what is computed": (
        "E226", SCORED + "reference: [{measure: success, animals: [[m, 1, 4, 1]], «n_animals: 4, status: x}]"
    ),
    "animals of a measure with trials": (
        "E225", "measures: {m: steps}\nreference: [{measure: m, animals: [«[m, 1, 4, 1]], status: x}]"
    ),
    "an animal that passed too often": (
        "E225", SCORED + "reference: [{measure: success, animals: [«[m, 1, 4, 5]], status: x}]"
    ),
    "an animal twice": (
        "E225", SCORED + "reference: [{measure: success, «animals: [[m, 1, 4, 1], [m, 1, 4, 2]], status: x}]"
    ),
    "no animal": ("E225", SCORED + "reference: [{measure: success, «animals: [], status: x}]"),
    "animals outside": ("E225", SCORED + "reference: [{measure: success, animals: «../a.csv, status: x}]"),
    "animals nowhere": ("E225", SCORED + "reference: [{measure: success, animals: «a.csv, status: x}]"),
    "sessions in words": ("E123", SCORED + "reference: [{measure: success, value: 1, over: «first, status: x}]"),
    "a column of zones with another name": ("E201", "draw: {d: {of: {g: [goal, «gaol]}}}\n" + state("show: {g: x}")),
    "a short variable that holds no glyph": ("E210", "draw: {d: {of: {k: [xx, oo]}}}\n" + state("show: {goal: «k}")),
    "more variables than permuted values": ("E206", "draw: {d: {permute: [1, 2], «into: [a, b, c]}}"),
    "too many permutations": (
        "E206", "draw: {d: {«permute: [1, 2, 3, 4, 5, 6, 7, 8], into: [a, b, c, d, e, f, g, h]}}"
    ),
    "a value twice in a permutation": ("E206", "draw: {d: {«permute: [1, 2, 1], into: [a, b]}}"),
    "a permutation of a zone and no zone": ("E201", "draw: {d: {permute: [goal, «gaol], into: [a, b]}}"),
    "a permutation of numbers and names": ("E203", "draw: {d: {permute: [goal, 1], into: [«a, b]}}"),
    "a permutation without variables": ("E123", "draw: {d: «{permute: [1, 2]}}"),
    "a permutation beside a table": ("E123", "draw: {d: «{permute: [1, 2], into: [a], of: {b: [1, 2]}}}"),
    "a permutation of one": ("E123", "draw: {d: {permute: «[1], into: [a]}}"),
    "a set dealt out of itself": ("E201", "draw: {d: {sample: «x, into: [x]}}\n" + state("show: {x: o}")),
    "weights of other rows": ("E206", "draw: {d: {of: {n: [1, 2]}, «weights: [1, 2, 3]}}"),
    "weights that are shares": ("E123", "draw: {d: {of: {n: [1, 2]}, weights: «[0.5, 1]}}"),
    "weights of permutations": ("E206", "draw: {d: {permute: [1, 2], into: [a, b], «weights: [1, 2]}}"),
    "weights of subsets": ("E206", "draw: {d: {of: {n: [1, 2]}, pick: 1, «weights: [1, 2]}}"),
    "weights of a group": (
        "E206", 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {g: [goal, box]}}\n'
        "draw: {d: {sample: g, into: [a], «weights: [1, 2]}}"
    ),
    "heavy weights": ("E206", "draw: {d: {of: {n: [1, 2]}, «weights: [1, 20000]}}"),
    "a table with replacement": ("E206", "draw: {d: {of: {n: [1, 2]}, «distinct: false}}"),
    "with replacement from no group": ("E201", "draw: {d: {sample: «grp, into: [a, b], distinct: false}}"),
    "a range that goes backwards": ("E123", "draw: {d: {of: {n: «{from: 3, to: 1}}}}"),
    "a range without a step": ("E123", "draw: {d: {of: {n: «{from: 1, to: 3, step: 0}}}}"),
    "a range without an end": ("E122", "draw: {d: {of: {n: «{from: 1}}}}"),
    "a range that is too long": ("E123", "draw: {d: {of: {n: «{from: 0, to: 1, step: 0.00001}}}}"),
    "recent successes of what has none": ("E134", "measures: {m: 'recent(«success, 3)'}"),
    "recent outcomes that there are not": ("E134", "measures: {m: 'recent(«fuond, 3)'}"),
    "recent trials that vary": ("E134", "measures: {m: '«recent(found, trial)'}"),
    "no recent trials": ("E134", "measures: {m: '«recent(found, 0)'}"),
    "recent without trials": ("E134", "measures: {m: '«recent(found)'}"),
    "a success that counts itself": ("E134", "success: «recent(success, 3) > 1"),
    "a measure by what there is not": ("E201", "measures: {m: {value: steps, by: «dealy}}"),
    "a measure by itself": ("E228", "measures: {m: {value: steps, by: «m}}"),
    "a measure by nothing": ("E123", "measures: {m: {value: steps, by: «[]}}"),
    "a measure without a value": ("E122", "measures: {n: trial, m: «{by: [n]}}"),
    "a mistake in a measure by condition": ("E131", "measures: {m: {value: «stepz, by: n}, n: steps}"),
    "a member of no group": ("E134", 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {g: [goal, box]}}\n'
        "vars: {v: none}\n" + trial("{enter: goal, set: {v: 'member(«gr, 1)'}, end: found}")),
    "a member that there is not": ("E134", 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {g: [goal, box]}}\n'
        "vars: {v: none}\n" + trial("{enter: goal, set: {v: 'member(«g, 3)'}, end: found}")),
    "a position in a zone": ("E134", "measures: {m: 'position(goal, «goal)'}"),
    "a position of a number": (
        "E134", 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {g: [goal, box]}}\n'
        "measures: {m: 'position(«steps, g)'}"
    ),
    "text with an unknown variable": (
        "E201", "draw: {d: {of: {cue: [x, y]}}}\n" + state("show: {goal: cue}, say: 'TONE {«ceu}'")
    ),
    "text with a built-in name": ("E201", state("say: '{ «trial }'")),
    "second line of a text with an unknown variable": ("E201", state("say: [one, '{«two}']")),
    "text with a brace that opens": ("E227", state("say: 'TONE «{'")),
    "text with a brace that closes": ("E227", state("say: 'TONE «}'")),
    "the limit's outcome": ("E219", trial("{enter: goal, end: «timeout}")),
    "a reference without success": ("E220", "reference: [«{measure: success, value: 0.5, status: x}]"),
    "a measure called success": ("E202", "measures: {«success: steps}"),
    "a folded map": ("E143", "arena:\n  map: «>\n    #####\n    #S.Z#\n    #####\n  legend: {S: box, Z: goal}"),
    "the distance to what is pressed": ("E134", LEVER + trial("«{press: lever, reward: distance(it), end: found}")),
    "the distance to what may be solid": (
        "E134", LEVER + "draw: {d: {of: {prize: [lever, goal]}}}\nmeasures: {m: «distance(prize)}"
    ),
    "the distance to what is set to something solid": (
        "E134", LEVER + "vars: {v: goal, w: goal}\n"
        + trial("{enter: goal, set: {v: w}, end: found}, {press: lever, set: {w: it}}, "
                "{enter: box, set: {w: lever}}, «{enter: box, reward: distance(v)}")
    ),
    "probability above 1": ("E218", trial("{enter: goal, p: «2, end: found}")),
    "negative time": ("E218", trial("{after: «-1, end: found}")),
    "drawn negative time": ("E218", "draw: {d: {of: {gap: [3, -1]}}}\n" + trial("{after: «gap, end: found}")),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_every_error_stands_where_it_was_made(
    code: str, text: str, findings: Findings, marked: Callable[[str], str]
) -> None:
    errors = [found for found in findings(text) if found.startswith("E")]
    assert errors == [f"{code} {marked(text)}"]


WARNINGS = {
    "legend not on the map": ("W301", 'arena: {map: "S..Z", legend: {S: box, Z: goal, «X: other}}'),
    "unreachable state": ("W302", f"trial: {{limit: 9, start: run, states: {{run: {{{FOUND}}}, «lost: {{}}}}}}"),
    "rule after one that takes all": ("W303", trial("{enter: goal, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "rule after a group": ("W303", SIDES + trial("{enter: side, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "rule after a shorter time": ("W303", trial("{after: 3, reward: 1, end: found}, «{after: 5, end: lost}")),
    "rule after every step": ("W303", trial("{after: 1, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "rule after every move": ("W303", trial("{act: FORWARD, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "time past the limit": ("W303", trial("{enter: goal, reward: 1, end: found}, «{after: 99, end: lost}")),
    "time at the limit of a later state": (
        "W303",
        trial("{enter: goal, reward: 1, go: held}").replace(
            "states: {", "states: {held: {rules: [«{after: 9, end: b}]}, "
        ),
    ),
    "time past the limit in a block": (
        "W303",
        "vars: {gap: 3}\nschedule: {one: {}, two: {set: {gap: 99}}}\n"
        + trial("{enter: goal, reward: 1, end: found}, «{after: gap, end: lost}"),
    ),
    "all drawn times past the limit": (
        "W303",
        "draw: {gap: {of: {gap: [10, 20]}}}\n"
        + trial("{enter: goal, reward: 1, end: found}, «{after: gap, end: lost}"),
    ),
    "a frozen trap": (
        "W304",
        trial("{enter: goal, go: held}").replace(
            "states: {", "states: {«held: {freeze: true, rules: [{after: 2, reward: 1, go: held}]}, "
        ),
    ),
    "frozen for ever": ("W304", f"trial: {{limit: 9, start: run, states: {{«run: {{freeze: true, {FOUND}}}}}}}"),
    "nothing to win": ("W305", "«" + trial("{enter: goal, reward: -1, end: found}")),
    "zone behind walls": ("W306", 'arena: {map: "S.Z#X", legend: {S: box, Z: goal, X: {zone: «cell, glyph: x}}}'),
    "limit too low": ("W307", f"trial: {{limit: «2, start: run, states: {{run: {{{FOUND}}}}}}}"),
    "no way to what finish ends": (
        "W307",
        'arena: {map: "S.#Z", legend: {S: box, Z: goal}}\n'
        "trial: {limit: «9, start: run, states: {run: {rules: [{enter: goal, reward: 1, count: n}]}}, "
        "finish: [{if: n == 1, end: found}]}",
    ),
    "limit too low for what finish ends": (
        "W307",
        "trial: {limit: «2, start: run, states: {run: {rules: [{enter: goal, reward: 1, count: n}]}}, "
        "finish: [{if: n == 1, end: found}]}",
    ),
    "no way to an end": ("W307", 'arena: {map: "S.#Z", legend: {S: box, Z: goal}}\n' + WALK.replace("9", "«9")),
    "unused variable": ("W308", "vars: {«n: 0}"),
    "unused draw": ("W308", "draw: {«d: {of: {x: [1, 2]}}}"),
    "unused zone": ("W308", 'arena: {map: "S.X.Z", legend: {S: box, Z: goal, «X: middle}}'),
    "unused symbol": ("W308", "vars: {v: c}\nsuccess: v == c\n«" + trial("{enter: goal, reward: 1, set: {v: d}}")),
    "outcome that nothing emits": ("E131", "success: last == «fuond"),
    "outcome that nothing is": ("E131", "success: last != «fuond"),
    "name of nothing in a comparison": ("E131", "vars: {v: red}\nsuccess: v == «rad"),
    "until what never comes": ("E201", "schedule: {one: {trials: 5, until: {outcome: «fuond, count: 1, of: 2}}}"),
    "cue like floor": ("W310", state("show: {«goal: .}")),
    "cue like a wall": ("W310", state("show: {«goal: '#'}")),
    "cue like the agent": ("W310", state("show: {«goal: ↑}")),
    "cue like a wall far away": ("W310", state("show: {«goal: ░}")),
    "drawn cue like floor": ("W310", "draw: {d: {of: {lamp: [., x]}}}\n" + state("show: {«goal: lamp}")),
    "variable cue like floor": ("W310", "vars: {lamp: .}\n" + state("show: {«goal: lamp}")),
    "success that is a number": ("W312", "success: «steps"),
    "end condition on a clock": (
        "W313",
        trial("{enter: goal, reward: 1, end: found}", "finish: [«{if: steps > 5, end: late}], "),
    ),
    "text with a variable of another language": (
        "W314",
        "draw: {d: {of: {cue: [x, y]}}}\n" + state("show: {goal: cue}, say: «'TONE $cue'"),
    ),
    "text named like a variable": ("W314", "draw: {d: {of: {cue: [x, y]}}}\n" + state("show: {goal: cue}, say: «cue")),
    "a split of nothing": ("W319", "draw: {d: {of: {k: [1, 2]}}}\nsplit: «[k]"),
    "shown in all states like a wall": ("W310", trial("{enter: goal, reward: 1, end: found}", "show: {«box: '#'}, ")),
    "a group in place of its members": (
        "W321",
        SIDES + "vars: {bag: [goal]}\n" + trial("{enter: goal, reward: size(bag), add: {bag: «side}, end: found}"),
    ),
    "a door that is open anyway": ("W320", DOOR + state("open: «gate")),
    "repeat until too often": (
        "W315",
        "schedule: {one: {trials: 5, repeat: {at_most: 3, until: «{outcome: found, count: 3}}}}",
    ),
    "repeat with all trials": ("W315", "schedule: {one: {trials: 5, repeat: {at_most: 3, «trials: 15}}}"),
    "until beyond the block": ("W315", "schedule: {one: {trials: 5, until: «{outcome: found, count: 6, of: 9}}}"),
    "null that deletes nothing": ("W316", "measures: {«nothing: null}"),
    "an asymptote for all trials": (
        "W325", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, value: «1, curve: [0, 1], status: x}]"
    ),
    "the last session for all trials": (
        "W325", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, over: «last, curve: [0, 1], status: x}]"
    ),
    "a curve that is too long": (
        "W326", SCORED + "reference: [{measure: success, curve: «[0, 1], status: x}]"
    ),
    "a curve with a session for which no trials are left": (
        "W326", "schedule: {one: {trials: 4, repeat: {at_most: 3, trials: 6}}}\n" + SCORED
        + "reference: [{measure: success, curve: «[0, 1, 1], status: x}]"
    ),
    "animals with gaps": (
        "W326", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, animals: «[[m, 1, 40, 20], [n, 1, 40, 21], [o, 1, 40, 20], [p, 1, 40, 21]], status: x}]"
    ),
    "one animal": ("W333", SCORED + "reference: [{measure: success, animals: «[[m, 1, 4, 1]], status: x}]"),
    "too few animals": (
        "W334", SCORED + "reference: [{measure: success, animals: «[[m, 1, 4, 1], [n, 1, 4, 4]], status: x}]"
    ),
    "animals in percent": (
        "W335", SCORED + "measures: {quick: steps < 5}\nreference: [«{measure: quick, value: 71, status: x}]"
    ),
    "a counter of one event in percent": (
        "W335", trial("{enter: goal, count: early, end: found}")
        + "measures: {share: early}\nreference: [«{measure: share, value: 29.5, status: x}]"
    ),
    "a variable of 0 and 1 in percent": (
        "W335", "vars: {early: 0}\n" + trial("{enter: goal, set: {early: 1}, end: found}")
        + "measures: {share: early}\nreference: [«{measure: share, value: 29.5, status: x}]"
    ),
    "more last trials than there are": ("W317", "schedule: {one: {trials: 5}}\nestimand: {last: «6}"),
    "more last trials than count": (
        "W317", SCORED + "schedule: {one: {}, two: {}}\nestimand: {last: «2, where: block == one}"
    ),
    "a part of a block for a construct": (
        "W336", "schedule: {one: {trials: 5}}\nestimand: {last: «4}\n" + construct("blind")
    ),
    "a test that expects a success": (
        "W337", WALK + "tests: [{visit: [goal], expect: {outcome: found, success: «true}}]"
    ),
    "a trial that no session has": ("W327", "schedule: {one: {trials: 10}}\nsuccess: «last == found and trial > 20"),
    "a session that no block has": (
        "W327", "schedule: {one: {sessions: 2, trials: 9}}\n"
        + trial("{enter: goal, reward: 1, end: found}, «{act: STAY, if: 3 <= session, end: lost}"),
    ),
    "a map whose first row is shifted": (
        "W328", "arena:\n  map: «|\n    #####\n     #S..#\n     #..Z#\n     #####\n  legend: {S: box, Z: goal}"
    ),
    "a construct that lets a lesioned subject pass": (
        "W329", SCORED + "margin: 0.1\nreference: [{measure: success, value: 0.7, status: x}]\n"
        + "construct: {name: x, kind: learning, "
        + "abolished_by: [{lesion: blind, at_most: 0.6}, «{lesion: anhedonia, at_most: 0.61}]}"
    ),
    "a construct without the lesion of its kind": (
        "W330", SCORED + "construct: {name: x, kind: memory, abolished_by: «[{lesion: blind, at_most: 0.5}]}"
    ),
    "an event that forgives what a turned maze leaves": (
        "W331",
        'arena: {ring: {radius: 6, holes: 4}, landmarks: {N: " ", E: " "}}\n'
        + "draw: {d: {of: {one: [N, E], two: {turned: one, from: E}}}}\nstart: {at: hole1}\n"
        + "trial: {limit: 9, start: a, show: {one: A, two: B}, states: {a: {rules: [{enter: hole2, end: found}, "
        + "«{enter: hole, if: n < 1, count: n}, {enter: hole, count: n, end: lost}]}}}\n"
        + construct("{hide: landmarks}").replace("0.5", "0.4")
    ),
    "zone drawn like a wall": ("W310", 'arena: {map: "S..Z", legend: {S: box, «Z: {zone: goal, glyph: "#"}}}'),
    "zone drawn like the agent": ("W310", 'arena: {map: "SZ", legend: {S: box, «Z: {zone: goal, glyph: ↑}}}'),
}  # fmt: skip


@pytest.mark.parametrize(
    "trigger", ["watch: [{act: FORWARD, count: n}], ", ""], ids=["watched", "a rule"]
)
def test_an_end_in_finish_may_be_nearer_than_all_others(
    trigger: str, findings: Findings
) -> None:
    rule = "" if trigger else ", {act: FORWARD, count: n}"
    text = (
        f"trial: {{limit: 2, start: run, {trigger}states: {{run: {{rules: ["
        f"{{enter: goal, reward: 1, end: found}}{rule}]}}}}, finish: [{{if: n == 2, end: tired}}]}}"
    )
    assert not [one for one in findings(text) if one.startswith(("W", "E"))]


@pytest.mark.parametrize(
    "text",
    [
        trial("{enter: goal, count: early}, {act: STAY, end: found}"),
        "vars: {early: 0}\n" + trial("{enter: goal, set: {early: early + 1}}, {act: STAY, end: found}"),
    ],
)  # fmt: skip
def test_what_may_count_further_is_no_share(text: str, findings: Findings) -> None:
    reference = "reference: [{measure: share, value: 29.5, status: x}]"
    found = findings(f"{text}measures: {{share: early}}\n{reference}")
    assert not [one for one in found if one.startswith(("W335", "E"))]


def test_the_remedy_for_a_split_by_trial_is_accepted(findings: Findings) -> None:
    found = findings("measures: {by_trial: trial}\nsplit: [by_trial]")
    assert not [one for one in found if one.startswith("E")]


@pytest.mark.parametrize(("code", "text"), WARNINGS.values(), ids=list(WARNINGS))
def test_every_warning_stands_where_its_cause_is(
    code: str, text: str, findings: Findings, marked: Callable[[str], str]
) -> None:
    found = [one for one in findings(text) if not one.startswith("I")]
    assert f"{code} {marked(text)}" in found
    beside = {
        "W303": {"W308"},
        "W310": {"W311"},
        "W307": {"W306"},
        "W314": {"W311"},
        "W331": {"W305", "W330"},
        "W335": {"W305"},
    }.get(code, set())
    assert {one.split()[0] for one in found} <= {code} | beside


@pytest.mark.parametrize("rows", ["L.Z|<.|<S", "#####|<#S#|<#Z###|<###"])
def test_a_bar_above_a_stem_is_no_shifted_row(rows: str, findings: Findings) -> None:
    lines = rows.replace("<", " ").split("|")
    text = (
        "arena:\n  map: |\n"
        + "".join(f"    {line}\n" for line in lines)
        + "  legend: {S: box, Z: goal, L: left}"
    )
    assert not [one for one in findings(text) if one.startswith("W328")]


@pytest.mark.parametrize(
    "condition", ["trial > 9", "10 == trial", "session >= 2", "trial % 20 == 3"]
)
def test_a_trial_that_comes(condition: str, findings: Findings) -> None:
    text = f"schedule: {{one: {{sessions: 2, trials: 10}}}}\nsuccess: last == found and {condition}"
    assert not [one for one in findings(text) if one.startswith("W")]


@pytest.mark.parametrize(("entry", "glyph"), [("middle", "."), ("{solid: post}", "#")])
def test_a_place_that_nothing_uses_is_drawn_as_what_it_is(
    entry: str, glyph: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    _, found = examine(
        complete(f'arena: {{map: "S.Z.X", legend: {{S: box, Z: goal, X: {entry}}}}}')
    )
    remedies = [one.remedy for one in found if one.code == 308]
    assert remedies == [f"Remove it from the legend, and draw it as '{glyph}'."]


TOGETHER = {
    "a timer and a zone": trial(
        "{enter: goal, reward: 1, end: found}, «{after: 5, end: lost}"
    ),
    "two overlapping zones": 'arena: {map: "S.Z", legend: {S: box, Z: {zones: [goal, corner]}}}\n'
    + trial("{enter: goal, reward: 1, end: found}, «{enter: corner, end: lost}"),
    "a move and a zone": trial(
        "{act: FORWARD, p: 0.5, end: lost}, «{enter: goal, reward: 1, end: found}"
    ),
}


@pytest.mark.parametrize("text", TOGETHER.values(), ids=list(TOGETHER))
def test_two_triggers_on_one_step(
    text: str, findings: Findings, marked: Callable[[str], str]
) -> None:
    assert findings(text) == [f"I401 {marked(text)}"]


APART = {
    "zones apart": LEVER
    + trial("{enter: goal, reward: 1, end: found}, {enter: box, end: lost}"),
    "a turn and a zone": trial(
        "{act: STAY, end: lost}, {enter: goal, reward: 1, end: found}"
    ),
    "the same zone": trial(
        "{enter: goal, if: steps > 3, reward: 1, end: found}, {enter: goal, end: lost}"
    ),
    "a timer while nothing moves": trial(
        "{after: 2, reward: 1, end: found}, {enter: goal, end: lost}"
    ).replace("run: {", "run: {freeze: true, "),
}


@pytest.mark.parametrize("text", APART.values(), ids=list(APART))
def test_triggers_that_never_fall_together(text: str, findings: Findings) -> None:
    assert [found for found in findings(text) if found.startswith("I")] == []


def test_a_variable_that_rules_change_can_hold_a_solid(findings: Findings) -> None:
    text = LEVER + "vars: {next: lever}\n"
    text += trial(
        "{enter: goal, set: {next: lever}}, {press: next, reward: 1, end: found}"
    )
    assert [found for found in findings(text) if not found.startswith("I")] == []


def test_a_pass_rate_over_several_blocks_and_some_trials(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    blocks = "schedule: {one: {}, two: {}, three: {}}\nsuccess: last == found\n"
    specification, found = examine(
        complete(blocks + "estimand: {block: [one, three], where: steps > 1}")
    )
    assert specification is not None, found
    assert (specification.estimand, specification.judged_blocks) == (
        "block:one,three",
        ("one", "three"),
    )
    assert specification.where is not None
    specification, found = examine(complete(blocks + "estimand: {where: steps > 1}"))
    assert specification is not None, found
    assert (specification.estimand, specification.judged_blocks) == (
        "all",
        ("one", "two", "three"),
    )


CLOCKS = {
    "at the limit": trial(
        "{enter: goal, reward: 1, end: found}, {after: 9, end: late}"
    ),
    "a variable that rules change": "vars: {gap: 99}\n"
    + trial(
        "{enter: goal, reward: 1, end: found}, {act: STAY, set: {gap: 2}}, {after: gap, end: late}"
    ),
    "drawn, sometimes in time": "draw: {gap: {of: {gap: [3, 20]}}}\n"
    + trial("{enter: goal, reward: 1, end: found}, {after: gap, end: late}"),
}


@pytest.mark.parametrize("text", CLOCKS.values(), ids=list(CLOCKS))
def test_clocks_that_can_run_out(text: str, findings: Findings) -> None:
    assert not [found for found in findings(text) if found.startswith("W303")]


@pytest.mark.parametrize(
    ("references", "told"),
    [
        ("{measure: latency, value: 35, status: x}", True),
        (
            "{measure: latency, value: 35, status: x}, {measure: success, value: 0.5, status: x}",
            False,
        ),
    ],
)
def test_references_without_one_on_success_are_noted(
    references: str, told: bool, findings: Findings, marked: Callable[[str], str]
) -> None:
    text = f"{SCORED}measures: {{latency: steps}}\n«reference: [{references}]"
    assert findings(text) == ([f"I402 {marked(text)}"] if told else [])


def test_an_unknown_key_comes_before_what_it_leads_to(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    _, found = examine(complete('arena: {map: "S..Z", legends: {S: box, Z: goal}}'))
    assert [diagnostic.code for diagnostic in found][:2] == [121, 144]


def test_the_corridor_is_clean(findings: Findings) -> None:
    assert findings("") == []


_catalogue = Catalogue(installed_plugins().protocol_directories)


@pytest.mark.parametrize(
    "path", list(_catalogue.files.values()), ids=list(_catalogue.files)
)
def test_shipped_protocols_have_no_warning_but_a_visible_goal(path: object) -> None:
    specification, found = examine(path, _catalogue)  # type: ignore[arg-type]
    assert specification is not None, "\n".join(map(str, found))
    assert [str(d) for d in found if d.severity == "warning" and d.code != 311] == []


def test_errors_carry_their_findings(tmp_path: Path) -> None:
    path = tmp_path / "two.protocol.yaml"
    path.write_text("paradigm: two\nno_key: 1\nnor_this: 2\n", encoding="utf-8")
    found = Catalogue().inspect(path)[1]
    with pytest.raises(ProtocolError) as caught:
        Catalogue().load(path)
    error: ProtocolError = pickle.loads(pickle.dumps(caught.value))
    assert error.findings == tuple(one for one in found if one.severity == "error")
    assert len(error.findings) > 1
    assert str(error) == "\n".join(error.lines)
    for finding, line in zip(error.findings, error.lines, strict=True):
        assert (finding.position.file, finding.position.line) in {
            (str(path), line) for line in (1, 2, 3)
        }
        assert f"E{finding.code}: " in line
        assert line.isprintable()
    only = ProtocolError("It shows at run time.")
    assert (only.findings, only.lines, str(only)) == (
        (),
        (str(only),),
        "It shows at run time.",
    )
    # In the first shipped versions, references were asymptotes: such a file is
    # unchanged, or has a new reference.
    old = Path(__file__).parents[1] / "fixtures" / "old_nine" / Path(str(path)).name
    known = (
        (325, 326)
        if old.exists() and old.read_bytes() == Path(str(path)).read_bytes()
        else ()
    )
    assert [
        str(d) for d in found if d.severity == "warning" and d.code not in (311, *known)
    ] == []


@pytest.mark.parametrize("value", [0.7, 0.6555, 0.6101, 0.6])
def test_the_margin_that_is_named_is_small_enough(
    value: float, examine: Examine, complete: Callable[[str], str]
) -> None:
    def remedies(margin: str) -> list[str]:
        text = f"{SCORED}margin: {margin}\nreference: [{{measure: success, value: {value}, status: x}}]\n"
        text += "construct: {name: x, kind: perception, abolished_by: [{lesion: blind, at_most: 0.61}]}"
        return [one.remedy for one in examine(complete(text))[1] if one.code == 329]

    [remedy] = remedies("0.1")
    pattern = r"Lower 'at_most' to [\d.]+(?:\. If the lesion leaves more, lower 'margin' to ([\d.]+))?\."
    named = re.fullmatch(pattern, remedy)
    assert named is not None
    assert (named[1] is None) == (value < 0.611)
    if named[1] is not None:
        assert remedies(named[1]) == []
