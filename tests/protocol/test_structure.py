"""Every key of the language: wrong kind, unknown, missing, short; all in one pass and
in the author's words.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from cheesebench.commands.new import protocol_text
from cheesebench.diagnostics import Diagnostics
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, documents
from cheesebench.protocol.structure import STAND_IN
from cheesebench.source import read_text
from tests.arenas import examine_text
from tests.protocol.short import FOUND, SCORED, Check, Examine, Findings, Mistake, trial

#: A protocol that uses every key of the language at least once.
EVERYTHING = Path(__file__).with_name("everything.yaml").read_text(encoding="utf-8")
Path_ = tuple[str | int, ...]


def data_of(text: str) -> Any:
    root = read_text(text, "x.yaml", Diagnostics())
    assert root is not None
    return root.plain()


def mappings(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of every mapping in a value, itself included."""
    if isinstance(value, dict):
        yield path
    for step, child in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from mappings(child, (*path, step))


def at(data: Any, path: Path_) -> Any:
    for step in path:
        data = data[step]
    return data


def examine_data(data: Any) -> list[str]:
    """Examine data as JSON, which is YAML; return code and sentence of every error."""
    _, found = examine_text(json.dumps(data), "x.yaml")
    return [str(d).split(": error ")[1] for d in found if d.severity == "error"]


#: Mappings whose keys are the author's own.
FREE = re.compile(
    r"(acknowledged|cite|vars|draw|measures|schedule|trial/states|arena/(legend|groups|landmarks)|draw/\w+/of"
    r"|.*/(set|add|remove|show|counters|measures|variables))"
)
PATHS = list(mappings(data_of(EVERYTHING)))
FIXED = [path for path in PATHS if not FREE.fullmatch("/".join(map(str, path)))]
LEAVES = [(*path, key) for path in PATHS for key in at(data_of(EVERYTHING), path)]


def name(path: Path_) -> str:
    return ".".join(map(str, path)) or "top"


def test_everything_has_no_errors(examine: Examine) -> None:
    specification, found = examine(EVERYTHING)
    assert specification is not None, "\n".join(map(str, found))


def test_everything_uses_every_key() -> None:
    used = {key for path in FIXED for key in at(data_of(EVERYTHING), path)}
    models = [
        model
        for model in vars(documents).values()
        if isinstance(model, type)
        and issubclass(model, BaseModel)
        and model.__module__ == documents.__name__
    ]
    keys = {
        field.alias or key
        for model in models
        for key, field in model.model_fields.items()
    }
    # An arena has only one kind, and the verdict concerns success or a measure
    # (test_references); rows are selected from a file (test_animals).
    assert keys - used - {"extends", "block"} == {
        *(
            "pool",
            "ring",
            "radial",
            "radius",
            "holes",
            "arms",
            "length",
            "width",
            "hub",
        ),
        *("sites", "better", "range", "turned", "only"),
    }


@pytest.mark.parametrize("path", FIXED, ids=name)
def test_an_unknown_key_is_named_with_its_neighbour(path: Path_) -> None:
    data = data_of(EVERYTHING)
    mapping = at(data, path)
    known = max(mapping, key=len, default="sessions")
    mapping[f"{known}x"] = 1
    errors = examine_data(data)
    assert len(errors) == 1
    assert errors[0].startswith(f"E121: There is no key '{known}x'")
    assert errors[0].endswith(f"Did you mean '{known}'?")


@pytest.mark.parametrize("path", LEAVES, ids=name)
def test_a_wrong_kind_is_one_clear_line(path: Path_) -> None:
    """The models decide whether a list or a truth value fits; a mapping of nonsense
    never does.
    """
    data = data_of(EVERYTHING)
    wrongs: list[object] = [{"what": [["ever"]]}, [[{}]], True]
    for wrong in wrongs:
        at(data, path[:-1])[path[-1]] = wrong
        errors = examine_data(data)
        assert errors or wrong is not wrongs[0]
        for error in errors:
            assert re.fullmatch(r"E[12]\d\d: [^\n]+[.?]", error)
            assert "Input should" not in error  # pydantic's words are not the author's
            assert "validat" not in error


@pytest.mark.parametrize(
    ("path", "where"),
    [
        (("version",), ""),
        (("paradigm",), ""),
        (("arena",), ""),
        (("start",), ""),
        (("trial",), ""),
        (("schedule",), ""),
        (("start", "at"), " in 'start'"),
        (("trial", "limit"), " in 'trial'"),
        (("trial", "start"), " in 'trial'"),
        (("trial", "states"), " in 'trial'"),
        (("vars", "gap", "init"), " in 'gap'"),
        (("schedule", "train", "until", "count"), " in 'until'"),
        (("reference", 0, "status"), " in entry 1 of 'reference'"),
        (("reference", 0, "measure"), " in entry 1 of 'reference'"),
        (("checks", 0, "hidden"), " in entry 1 of 'checks'"),
        (("tests", 1, "expect"), " in entry 2 of 'tests'"),
        (("trial", "start", 0, "go"), " in entry 1 of 'start'"),
        (("chance", "how"), " in 'chance'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("how", ["absent", "null"])
def test_a_missing_key_is_named(path: Path_, where: str, how: str) -> None:
    data = data_of(EVERYTHING)
    if how == "null":
        at(data, path[:-1])[path[-1]] = None
    else:
        del at(data, path[:-1])[path[-1]]
    assert examine_data(data) == [
        f"E122: The key '{path[-1]}' is missing{where}. Add '{path[-1]}: ...'."
    ]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("vars: {n: 0}", "vars: {n: {init: 0, per: trial}}"),
        ("vars: {n: []}", "vars: {n: {init: []}}"),
        (
            'arena: {map: "S", legend: {S: box}}',
            'arena: {map: "S", legend: {S: {zone: box}}}',
        ),
        (
            "trial: {limit: 3, start: a, states: {a: {}}}",
            "trial: {limit: 3, start: [{go: a}], states: {a: {}}}",
        ),
        (
            "trial: {limit: 3, start: a, states: {a: {}}}",
            "trial: {limit: 3, start: [a], states: {a: {}}}",
        ),
        ("say: x", "say: [x]"),
        ("count: n", "count: [n]"),
        ("close: d", "close: [d]"),
        ("title: 8", "title: '8'"),
    ],
)
def test_short_forms_mean_the_long_ones(
    short: str, long: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    texts = [
        text if text[:2] not in ("sa", "co", "cl") else STATE.replace("KEY", text)
        for text in (short, long)
    ]
    one, other = (
        examine(complete(text + EMPTY * ("arena" in text and "trial" not in text)))[0]
        for text in texts
    )
    assert one is not None
    assert other is not None
    for part in ("variables", "arena", "entry", "states", "title"):
        assert _without_positions(getattr(one, part)) == _without_positions(
            getattr(other, part)
        )


EMPTY = "\ntrial: {limit: 3, start: a, states: {a: {}}}"
STATE = 'arena: {map: "Sd", legend: {S: box, d: {door: d}}}\ntrial: {limit: 3, start: a, states: {a: {KEY}}}'


def _without_positions(value: object) -> str:
    return re.sub(r"Position\([^)]*\)", "", repr(value))


def test_all_errors_of_one_pass(findings: Findings) -> None:
    text = """
        vras: {n: 0}
        start: {at: bax, face: Nord}
        vars: {steps: 0}
        trial:
          limit: 9
          start: rnu
          states:
            run:
              rules:
                - {enter: gaol, reward: gaol, end: found}
                - {enter: goal, go: a, end: b}
                - {enter: goal, rewrd: 1, set: {x: 1}, end: found}
        success: last == 5
        """
    assert [found.split()[0] for found in findings(text)] == [
        "E121", "E121", "E201", "E201", "E202", "E201", "E201", "E131", "E214", "E201", "E212", "E133",
    ]  # fmt: skip


def test_a_wrong_map_hides_no_wrong_name(findings: Findings) -> None:
    text = 'arena: {map: "S?.Z", legend: {S: box, Z: goal}}\nstart: {at: bax}'
    assert [found.split()[0] for found in findings(text)] == ["E144", "E201"]


def test_a_duplicate_key_hides_no_wrong_name(findings: Findings) -> None:
    assert findings("title: a\ntitle: b\nstart: {at: bax}") == ["E105 2:1", "E201 3:13"]


@pytest.mark.parametrize("version", ["2", "7", "1.5"])
def test_a_newer_version_asks_for_a_newer_program(
    version: str, examine: Examine
) -> None:
    specification, found = examine(f"version: {version}\nunknown: key\n")
    assert specification is None
    assert [str(d) for d in found] == [
        f"x.yaml:1:10: error E120: This file is written in version '{version}' of the protocol language, "
        "but this CheeseBench reads version 1. Install a newer pytest-cheesebench."
    ]


@pytest.mark.parametrize("version", ["0", "true", "one", "[1]", "1.0"])
def test_no_version_at_all(version: str, findings: Findings) -> None:
    assert findings(f"version: {version}") == ["E120 1:10"]


def test_long_values_are_cut_in_messages(examine: Examine) -> None:
    _, found = examine(
        "version: 1\n" + "x" * 1000 + ": 1\nparadigm: " + "y z" * 30_000 + "\n"
    )
    assert found
    assert all(len(str(d)) < 400 for d in found)


SIX = [
    ("L: left", "L: lft", 201),
    ("face: random", "face: sideways", 201),
    ("trials: 10", "trials: ten", 123),
    ("order: balanced", "order: balancd", 123),
    ("latency: steps", "latency: stepz", 131),
    ("value: 0.80", "value: 80", 217),
    ("species: mouse\n\n", "specis: mouse\n\n", 121),
]


def test_mistakes_of_shape_hide_no_mistaken_names() -> None:
    text = protocol_text("maze", "mine")
    for right, wrong, _ in SIX:
        assert right in text
        text = text.replace(right, wrong, 1)
    found = Catalogue().inspect_text(text, "mine.protocol.yaml")[1]
    for _, wrong, code in SIX:
        said = [str(one) for one in found if one.code == code]
        word = wrong.strip().split(": ")
        assert any(one in text for one in word for text in said), wrong
    assert STAND_IN not in "".join(map(str, found))
    other = text.replace("version: 1", "version: 7")
    assert [one.code for one in Catalogue().inspect_text(other)[1]] == [120]


#: Values that fit no leaf of a protocol, or hardly any.
UNFIT: list[object] = ["@@", -3, [1, 2], True]


@pytest.mark.parametrize("name", ["t_maze", "barnes_maze", "operant_chamber"])
def test_a_value_that_does_not_fit_makes_no_other_mistakes(name: str) -> None:
    catalogue = Catalogue(installed_plugins().protocol_directories)
    path = Path(catalogue.files[name])
    random, whole = Random(name), yaml.safe_load(path.read_text(encoding="utf-8"))
    tried = 0
    for place in random.sample(sorted(_leaves(whole), key=str), 60):
        spoilt = copy.deepcopy(whole)
        holder: Any = spoilt
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = random.choice(UNFIT)
        text = yaml.safe_dump(spoilt, sort_keys=False)
        found = catalogue.inspect_text(text, str(path.with_name("x.protocol.yaml")))[1]
        codes = {one.code for one in found if one.severity == "error"}
        if codes & {122, 123} and place[:1] != ("reference",):
            tried += 1
            assert codes <= {121, 122, 123}, (place, *map(str, found))
    assert tried > 20


def _leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else None
    )
    if children is None:
        yield place
        return
    for key, child in children:
        yield from _leaves(child, (*place, key))


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
    "a number of an article": ("E123", "cite: {doi: «10.1000}"),
    "a construct without abolition": (
        "E123", "success: last == found\nconstruct: {name: x, kind: memory, abolished_by: «[]}"
    ),
    "until a condition without a count": ("E122", "schedule: {one: {trials: 9, until: «{if: steps < 9}}}"),
    "sessions in words": ("E123", SCORED + "reference: [{measure: success, value: 1, over: «first, status: x}]"),
    "a permutation of one": ("E123", "draw: {d: {permute: «[1], into: [a]}}"),
    "weights that are shares": ("E123", "draw: {d: {of: {n: [1, 2]}, weights: «[0.5, 1]}}"),
    "a range without an end": ("E122", "draw: {d: {of: {n: «{from: 1}}}}"),
    "a measure by nothing": ("E123", "measures: {m: {value: steps, by: «[]}}"),
    "a measure without a value": ("E122", "measures: {n: trial, m: «{by: [n]}}"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


WARNINGS = {
    "null that deletes nothing": ("W316", "measures: {«nothing: null}"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), WARNINGS.values(), ids=list(WARNINGS))
def test_a_warning_stands_where_its_cause_is(
    code: str, text: str, check_warning: Check
) -> None:
    check_warning(code, text)


OF = "of: {sort: [low, high]}"

#: Parts of the protocol without a mistake, what stands there instead, and what is said.
MISTAKES = {
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
    "say: braces without quotes": (
        '"TONE {sort}"',
        "{sort}",
        "does not fit: a mapping. Expected text, in quotes if",
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


@pytest.mark.parametrize(
    ("right", "wrong", "said"), MISTAKES.values(), ids=list(MISTAKES)
)
def test_a_mistake_is_one_error_with_its_remedy(
    right: str, wrong: str, said: str, check_mistake: Mistake
) -> None:
    check_mistake(right, wrong, said)
