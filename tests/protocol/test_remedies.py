"""Mistakes of authors with unfamiliar keys: one error each, with the value seen and a
remedy.

Each is a change to one protocol, which has no mistake.
"""

from __future__ import annotations

import pytest
import yaml

from tests.protocol.short import Examine

RIGHT = """
version: 1
paradigm: right
arena:
  radial: {arms: 4, length: 3}
  landmarks: {N: "1", lamp: {at: [1, 1], glyph: "l"}}
vars:
  n: {init: 0, per: subject}
  seen: {init: [], per: session}
  home: none
draw:
  one: {per: subject, of: {sort: [low, high]}}
  two: {of: {goal: [arm1, arm2]}}
  gap: {of: {wait: {from: 1, to: 3}}}
start: {at: hub, face: N}
trial:
  limit: 60
  start: run
  states:
    run:
      say: "TONE {sort}"
      rules:
        - {enter: arm, if: it == goal, reward: 1, add: {seen: it}, end: correct}
        - {enter: arm, set: {n: n + 1, home: it}, go: rest}
    rest:
      show: {lamp: "*"}
      rules:
        - {after: wait, end: wrong}
        - {press: any, end: bumped}
schedule:
  train: {trials: 10, until: {if: last == correct, count: 3, of: 5}}
success: last == correct
measures:
  fast: {value: steps, by: [sort]}
  order: size(seen) + position(home, arm)
"""
OF = "of: {sort: [low, high]}"
ORDER = "order: size(seen) + position(home, arm)"
CONSTRUCT = "success: last == correct\nconstruct: {name: x, kind: strategy, abolished_by: [{lesion: {hide: %s}, at_most: 0.5}]}"

#: Old text, new text, and the finding.
MISTAKES = {
    "enter: a misspelt variable": (
        "{enter: arm, if",
        "{enter: gaol, if",
        "There is no zone or variable 'gaol'. Did you mean 'goal'?",
    ),
    "place: a misspelt variable": (
        "    rest:\n",
        "    rest:\n      place: hmoe\n",
        "There is no zone or variable 'hmoe'. Did you mean 'home'?",
    ),
    "close: a misspelt variable": (
        "    rest:\n",
        "    rest:\n      close: hmoe\n",
        "There is no door or variable 'hmoe'. Did you mean 'home'?",
    ),
    "show: a misspelt variable": (
        'show: {lamp: "*"}',
        'show: {gaol: "*"}',
        "There is no zone, solid, landmark or variable 'gaol' to show. Did you mean 'goal'?",
    ),
    "by: forgotten": (
        "steps, by: [sort]",
        "steps",
        "or write 'fast: EXPRESSION' if there are no conditions.",
    ),
    "rule: a misspelt trigger": (
        "{enter: arm, if",
        "{entr: arm, if",
        "Did you mean 'enter'?",
    ),
    "lesion: a misspelt key": (
        "success: last == correct",
        "success: last == correct\n"
        "construct: {name: x, kind: strategy, abolished_by: [{lesion: {hied: arm}, at_most: 0.5}]}",
        "There is no key 'hied' in 'lesion'. Did you mean 'hide'?",
    ),
    "an expression: a Cyrillic letter": (
        "last == correct\nm",
        "last == \u0441orrect\nm",
        "CYRILLIC SMALL LETTER ES",
    ),
    "add: a set that is a group": (
        "home: it}",
        "seen: arm}",
        "'arm' is the name of a group, but a set",
    ),
    "sample: what is drawn below": (
        "  one: {per",
        "  early: {sample: some, into: [e]}\n  some: {pick: 2, of: {some: [arm1, arm2, arm3]}}\n  one: {per",
        "Move 'some' above 'early'.",
    ),
    "say: an expression in braces": (
        "TONE {sort}",
        "{n + 1}",
        "Braces hold the name of a variable, not 'n + 1'.",
    ),
    "say: nothing in braces": (
        "TONE {sort}",
        "{}",
        "Braces hold the name of a variable, not ''. Name a variable",
    ),
    "say: braces without quotes": (
        '"TONE {sort}"',
        "{sort}",
        "does not fit: a mapping. Expected text, in quotes if",
    ),
    "by: twice": (
        "by: [sort]",
        "by: [sort, sort]",
        "'sort' appears twice in 'by'. Keep one.",
    ),
    "arena: nothing that draws it": (
        "  radial: {arms: 4, length: 3}\n",
        "",
        "but none is given. Add one.",
    ),
    "arena: a legend beside a generator": (
        '  landmarks: {N: "1"',
        '  legend: {x: y}\n  landmarks: {N: "1"',
        "Remove the legend. 'cheesebench render FILE --expand' then prints the arena as a map",
    ),
    "draw: max_run beside pick": (
        OF,
        f"{OF}, pick: 1, order: shuffle, max_run: 2",
        "'max_run' does not go with 'pick'. Remove it.",
    ),
    "by: a word of the language": (
        "by: [sort]",
        "by: [block]",
        "'block' is neither a variable nor a measure. Add a measure, 'in_block: block', and name that.",
    ),
    "draw: nothing but an odd key": (
        OF,
        "sort: [low, high]",
        "There is no key 'sort' in 'one'. Known keys here: copies",
    ),
    "draw: nothing": (
        OF,
        "order: cycle",
        "'one' has nothing to draw from. Add 'of', 'sample' or 'permute'.",
    ),
    "draw: two sources": (
        OF,
        f"permute: [low, high], {OF}",
        "'one' has 'of' and 'permute'. Keep one of them.",
    ),
    "draw: no names": (
        OF,
        "permute: [low, high]",
        "'one' has 'permute', but no 'into'. Add 'into', with names",
    ),
    "draw: names for a table": (
        OF,
        f"into: [a], {OF}",
        "'one' has 'of' and 'into'. Remove 'into': the columns have",
    ),
    "weights: shares": (
        OF,
        f"{OF}, weights: [0.8, 0.2]",
        "'weights' does not fit: [0.8, 0.2]. Expected whole numbers",
    ),
    "weights: none": (
        OF,
        f"{OF}, weights: [1, 0]",
        "'weights' does not fit: [1, 0]. Expected whole numbers of at least 1",
    ),
    "range: backwards": (
        "to: 3",
        "to: 0.5",
        "The range of 'wait' ends at 0.5, below its beginning, 1. Let 'to' be",
    ),
    "range: no step": (
        "to: 3",
        "to: 3, step: 0",
        "The step of 'wait' is 0. Choose a step above 0.",
    ),
    "range: long": (
        "to: 3",
        "to: 30000",
        "The range of 'wait' has 30000 numbers, more than 10000. Use a larger 'step'.",
    ),
    "turned: no column": (
        "[arm1, arm2]",
        "{turned: wait, from: arm1}",
        "'goal' should begin with 'arm1', but 'wait' has no such value.",
    ),
    "turned: no value": (
        "{goal: [arm1, arm2]}",
        "{goal: [arm1, arm2], next: {turned: goal, from: arm3}}",
        "In 'two', 'next' should begin with 'arm3', but 'goal' has no such value. Name a column that is a list, and one of",
    ),
    "until: both": (
        "{if: last",
        "{outcome: wrong, if: last",
        "'until' has 'outcome' and 'if'. Keep one of them. 'if: last == NAME'",
    ),
    "until: neither": (
        "if: last == correct, ",
        "",
        "'until' does not say which trials count. Add 'outcome' or 'if'.",
    ),
    "until: at the top": (
        "success:",
        "until: 3\nsuccess:",
        "There is no key 'until'. It belongs under 'schedule: NAME' or under 'schedule: NAME: repeat'.",
    ),
    "open: of a trial": (
        "  limit:",
        "  open: gate1\n  limit:",
        "no key 'open' in 'trial'. It belongs under 'trial: states: NAME'.",
    ),
    "success: of a schedule": (
        "success:",
        "  success:",
        "'success' is read as a block of 'schedule', because it is indented below it. Write 'success:' at the left",
    ),
    "success: of the reward": (
        "success: last == correct",
        "success: reward > 0",
        "The name 'reward' is unknown. The reward cannot be read: compare the outcome",
    ),
    "success: of a measure": (
        "success: last == correct",
        "success: fast < 9",
        "The name 'fast' is unknown. No expression can read a measure: write out",
    ),
    "show: a colour": (
        'lamp: "*"',
        "lamp: blue",
        "'blue' is neither one character nor a variable that holds one. There are no colours",
    ),
    "legend: a colour": (
        'glyph: "l"',
        'glyph: "l", color: red',
        "There is no key 'color' in 'lamp'. There are no colours: a glyph is one character in quotes.",
    ),
    "success: of a trial": (
        "  limit:",
        "  success: 1\n  limit:",
        "no key 'success' in 'trial'. It belongs at the top level",
    ),
    "number: a set": (
        ORDER,
        "order: abs(seen)",
        "A number is needed, not a set. Use its size().",
    ),
    "power: of Python": (
        ORDER,
        "order: n ** 2",
        "'*' is not expected here. There are no powers: multiply, as in a * a.",
    ),
    "power: of others": (
        ORDER,
        "order: n ^ 2",
        "'^' is not allowed in an expression. There are no powers: multiply",
    ),
    "division: whole": (
        ORDER,
        "order: n // 2",
        "'/' is not expected here. Write floor(a / b).",
    ),
    "function: in capitals": (
        ORDER,
        "order: Max(n, 1)",
        "There is no function 'Max'. Did you mean 'max'?",
    ),
    "function: its name only": (
        ORDER,
        "order: min",
        "The name 'min' is unknown. It is a function: write min( ... ).",
    ),
    "function: a comma within braces": (
        "value: steps",
        "value: min(n, 3) / 2",
        "A ')' is missing. Close the parenthesis. Within { } and [ ] a comma ends an expression that is not in quotes.",
    ),
    "position: turned round": (
        ORDER,
        "order: position(arm, home)",
        "'home' is not a group. Write position(home, arm).",
    ),
    "member: turned round": (
        ORDER,
        "order: member(1, arm) == hub",
        "'1' is not a group. Write member(arm, 1).",
    ),
    "recent: turned round": (
        ORDER,
        "order: recent(5, correct)",
        "outcome, but '5' is neither. Write recent(correct, 5).",
    ),
    "recent: no number": (
        ORDER,
        "order: recent(correct, n)",
        "a fixed number of trials, 1 to 1000, not 'n'. Write recent(",
    ),
    "show: none": (
        'lamp: "*"',
        "lamp: none",
        "'none' is not a glyph. Write a blank in quotes to leave it undrawn.",
    ),
    "hide: a variable": (
        "success: last == correct",
        CONSTRUCT % "goal",
        "'goal' is a variable, and only what is drawn can be hidden. Hide how",
    ),
    "it: of whatever is pressed": (
        "press: any, end",
        "press: any, set: {home: it}, end",
        "'it' is undefined here. Use it in a rule whose 'enter', 'inside'",
    ),
    "press: a list": (
        "press: any,",
        "press: [any, hub],",
        "Write the name of a group, or one rule for each place: 'press: NAME'.",
    ),
    "put: half a square": (
        "press: any,",
        "press: any, put: [3],",
        "'put' does not fit: [3]. Expected a pair [column, row], with quotes",
    ),
    "put: a zone": (
        "press: any,",
        "press: any, put: hub,",
        "'put' does not fit: 'hub'. Expected a pair [column, row], with quotes",
    ),
}


def test_the_protocol_has_no_mistake(examine: Examine) -> None:
    specification, found = examine(RIGHT)
    assert specification is not None
    assert [str(one) for one in found if one.severity != "info"] == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_error_with_its_remedy(mistake: str, examine: Examine) -> None:
    right, wrong, expected = MISTAKES[mistake]
    assert right in RIGHT
    specification, found = examine(RIGHT.replace(right, wrong, 1))
    assert specification is None
    (error,) = [str(one) for one in found if one.severity != "info"]
    assert expected in error


@pytest.mark.parametrize(
    ("character", "key"), [(",", '","'), ('"', "'\"'"), ("q", "q")]
)
def test_the_legend_that_a_remedy_offers_is_yaml(
    character: str, key: str, examine: Examine
) -> None:
    text = RIGHT.replace(
        "radial: {arms: 4, length: 3}",
        f"map: |\n    ####\n    #.{character}#\n    ####",
    )
    _, found = examine(text)
    [one] = [one for one in found if one.code == 144]
    assert one.remedy == f"Add 'legend: {{{key}: NAME}}'."
    assert yaml.safe_load(f"{{{key}: NAME}}") == {character: "NAME"}


def test_sessions_that_the_schedule_lacks_are_named(examine: Examine) -> None:
    curve = "curve: [0.1, 0.2, 0.3, 0.4, 0.5, 0.9]"
    reference = f"reference: [{{measure: success, over: [1, 6], {curve}, status: x}}]"
    (warning,) = [str(one) for one in examine(RIGHT + reference)[1] if one.code == 325]
    assert "; the schedule has no session 6. Remove 'over' to compute" in warning


@pytest.mark.parametrize(
    ("right", "short"),
    [
        ("by: [sort]", "by: sort"),
        ("of: {goal: [arm1, arm2]}", "sample: arm, into: goal"),
    ],
)
def test_one_name_needs_no_brackets(right: str, short: str, examine: Examine) -> None:
    assert right in RIGHT
    assert examine(RIGHT.replace(right, short))[0] is not None
