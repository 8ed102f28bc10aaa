"""Validation of a construct: an audit counts only for the protocol whose
hash it names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cheesebench.cli import main
from cheesebench.protocol import Specification, load_protocol
from cheesebench.protocol.validation import (
    MAX_BYTES,
    ability_scale,
    also_failed,
    audited_ceilings,
    construct_status,
    doubts,
    failed,
    idle_sessions,
    life_hash,
    most_left,
    passed_by,
)
from cheesebench.records import AbilityScale, Ceilings

MAZE = """version: 1
paradigm: maze
dimension: d
arena: {map: "SZ", legend: {S: box, Z: goal}}
start: {at: box}
trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}
schedule: {one: {trials: 4}}
success: last == found
"""
CONSTRUCT = (
    "construct: {name: sight, kind: perception, "
    "abolished_by: [{lesion: blind, at_most: 0.25}, {lesion: anhedonia, at_most: 0.5}]}"
)

REFERENCE = """
reference: [{measure: success, value: 0.75, status: made up}]
margin: 0.1
"""


def written(folder: Path, keys: str = CONSTRUCT) -> Specification:
    path = folder / "maze.protocol.yaml"
    path.write_text(MAZE + keys, encoding="utf-8")
    return load_protocol(path)


def report(specification: Specification, **changes: Any) -> dict[str, Any]:
    tried = {"blind": ("ok", 0.25), "anhedonia": ("ok", 0.5)} | changes
    findings = [
        {
            "rule": f"lesion: {name}",
            "verdict": verdict,
            "text": "",
            "numbers": {"at_most": most},
        }
        for name, (verdict, most) in tried.items()
    ]
    return {"sha256": specification.sha256, "findings": findings}


def status(folder: Path, specification: Specification, *contents: object) -> str:
    for number, content in enumerate(contents):
        (folder / f"{number}.audit.json").write_text(
            json.dumps(content), encoding="utf-8"
        )
    return construct_status(specification)


def test_a_construct_that_was_not_tried_is_declared(tmp_path: Path) -> None:
    assert status(tmp_path, written(tmp_path)) == "declared"


def test_an_audit_of_this_protocol_validates_it(tmp_path: Path) -> None:
    specification = written(tmp_path)
    assert status(tmp_path, specification, [report(specification)]) == "validated"


def test_what_else_fails_in_the_audit_is_known(tmp_path: Path) -> None:
    specification = written(tmp_path)
    content = report(specification)
    content["findings"] += [
        {"rule": "declared animal", "verdict": "FAIL"},
        {"rule": "hidden", "verdict": "ok"},
    ]
    assert status(tmp_path, specification, content) == "validated"
    assert also_failed(specification) == ("declared animal",)


def test_whether_a_row_on_memory_fails_is_decided_by_the_present_bar(
    tmp_path: Path,
) -> None:
    specification = written(tmp_path, CONSTRUCT + REFERENCE)
    content = report(specification)
    row: dict[str, Any] = {
        "rule": "memory: outcome, 1 bit",
        "verdict": "FAIL",
        "numbers": {"class": "outcome", "clock": "life", "states": 2, "within": False},
    }
    content["findings"].append(row)
    # A PASS begins at 0.65.
    for low, rules in ((0.64, ()), (0.66, ("memory: outcome, 1 bit",))):
        row["numbers"] |= {"rate": low + 0.02, "low": low}
        now = status(tmp_path, specification, content)
        assert now == ("failed" if rules else "validated")
        assert also_failed(specification) == rules


def test_the_worst_lesion_that_was_not_named_is_known(tmp_path: Path) -> None:
    specification = written(tmp_path)
    assert most_left(specification) is None
    content = report(specification)
    rates = {
        "blind": 0.9,
        "intact": 1.0,
        "pose-only": 0.4,
        "amnesia=trial": 0.7,
        "": 0.8,
        "odd": 0.9,
        "memoryless": 2,
    }
    for name, rate in rates.items():
        content["findings"].append(
            {"rule": f"lesion: {name}", "numbers": {"found": {"rate": rate}}}
        )
    (tmp_path / "maze.audit.json").write_text(
        json.dumps([content, "findings"]), encoding="utf-8"
    )
    assert most_left(specification) == ("amnesia=trial", 0.7, False)
    proven = {"lesion: pose-only": 0.35, "lesion: amnesia=trial": 0.3}
    for finding in content["findings"]:
        finding["numbers"]["proven"] = proven.get(finding["rule"])
    (tmp_path / "maze.audit.json").write_text(json.dumps(content), encoding="utf-8")
    assert most_left(specification) == ("pose-only", 0.35, True)


def test_an_audit_of_another_protocol_says_nothing(tmp_path: Path) -> None:
    specification = written(tmp_path)
    other = report(specification) | {"sha256": "0" * 64}
    assert status(tmp_path, specification, [other]) == "declared"


def test_one_that_fails_decides(tmp_path: Path) -> None:
    specification = written(tmp_path)
    failed = report(specification, blind=("FAIL", 0.25))
    assert status(tmp_path, specification, report(specification), [failed]) == "failed"


@pytest.mark.parametrize("lesion", ["intact", "amnesia=start"])
def test_a_row_without_a_bound_may_fail_it(tmp_path: Path, lesion: str) -> None:
    """The intact subject, and a lesion that should not matter."""
    specification = written(tmp_path)
    content = report(specification)
    row = {"rule": f"lesion: {lesion}", "verdict": "ok", "numbers": {"at_most": None}}
    content["findings"].append(row)
    assert status(tmp_path, specification, content) == "validated"
    row["verdict"] = "FAIL"
    assert status(tmp_path, specification, content) == "failed"
    row["verdict"] = "undecided"
    assert status(tmp_path, specification, content) == "searched"


def test_what_was_only_searched_is_not_validated(tmp_path: Path) -> None:
    specification = written(tmp_path)
    searched = report(specification, blind=("undecided", 0.25))
    assert status(tmp_path, specification, searched) == "searched"
    assert (
        status(tmp_path, specification, searched, report(specification)) == "validated"
    )


def test_an_audit_that_was_void_says_nothing(tmp_path: Path) -> None:
    specification = written(tmp_path)
    assert (
        status(tmp_path, specification, report(specification, blind=("note", 0.25)))
        == "declared"
    )


def test_what_the_command_prints_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "maze.protocol.yaml"
    for most, expected in ((0.25, "failed"), (1.0, "validated")):
        specification = written(
            tmp_path,
            f"construct: {{name: sight, kind: perception, abolished_by: [{{lesion: blind, at_most: {most}}}]}}",
        )
        main(
            [
                "audit",
                str(path),
                "--json",
                "--part",
                "lesions",
                "--trials",
                "40",
                "--processes",
                "1",
            ]
        )
        (tmp_path / "maze.audit.json").write_text(
            capsys.readouterr().out, encoding="utf-8"
        )
        assert construct_status(specification) == expected


@pytest.mark.parametrize("tried", [{"blind": ("ok", 0.9)}, {"anhedonia": ("ok", 0.51)}])
def test_an_audit_with_other_bounds_says_nothing(
    tmp_path: Path, tried: dict[str, Any]
) -> None:
    specification = written(tmp_path)
    assert status(tmp_path, specification, report(specification, **tried)) == "declared"


def test_an_audit_without_one_of_its_lesions_says_nothing(tmp_path: Path) -> None:
    specification = written(tmp_path)
    part = report(specification)
    part["findings"] = part["findings"][:1]
    assert status(tmp_path, specification, part) == "declared"


@pytest.mark.parametrize(
    "text", ["", "{", "[1, null]", '{"sha256": 3}', "[" * 10_000, " " * (MAX_BYTES + 1)]
)
def test_what_is_no_audit_is_passed_over(tmp_path: Path, text: str) -> None:
    specification = written(tmp_path)
    (tmp_path / "odd.audit.json").write_text(text, encoding="utf-8")
    assert construct_status(specification) == "declared"


@pytest.mark.parametrize(
    "findings", [None, 3, [None], [{"numbers": 3}], [{"numbers": {"at_most": "x"}}]]
)
def test_odd_findings_say_nothing(tmp_path: Path, findings: object) -> None:
    specification = written(tmp_path)
    assert (
        status(
            tmp_path,
            specification,
            {"sha256": specification.sha256, "findings": findings},
        )
        == "declared"
    )
    assert audited_ceilings(specification) == Ceilings(first=None, all=None)
    assert most_left(specification) is None


def test_without_a_construct_there_is_nothing_to_validate(tmp_path: Path) -> None:
    assert status(tmp_path, written(tmp_path, "")) == "declared"


ANIMALS = """measures: {latency: steps}
reference: [{measure: latency, value: 9, better: lower, margin: 1, range: [0, 20], status: made up}]"""
JUDGED = (
    "reference: [{measure: success, value: 0.5, status: made up, where: trial > 1}]"
)


@pytest.mark.parametrize(
    ("changed", "expected"),
    # The lesions were tried with this verdict, on these trials.
    [
        ("measures: {latency: steps}", "validated"),
        ("margin: 0.2", "validated"),
        (ANIMALS, "declared"),
        (JUDGED, "declared"),
    ],
)
def test_an_audit_holds_whatever_animals_models_are_compared_with(
    tmp_path: Path, changed: str, expected: str
) -> None:
    kept = report(written(tmp_path)) | {"life_sha256": life_hash(written(tmp_path))}
    other = written(tmp_path, f"{CONSTRUCT}\n{changed}\n")
    assert other.sha256 != kept["sha256"]
    assert status(tmp_path, other, [kept]) == expected


def test_an_audit_of_a_verdict_about_a_measure_holds_for_what_it_asks_for(
    tmp_path: Path,
) -> None:
    own = written(tmp_path, f"{CONSTRUCT}\n{ANIMALS}\n")
    kept = report(own) | {"life_sha256": life_hash(own)}
    assert status(tmp_path, own, [kept]) == "validated"
    for seen, asked in (
        ("value: 9", "value: 8"),
        ("margin: 1", "margin: 2"),
        ("[0, 20]", "[0, 40]"),
    ):
        assert (
            status(
                tmp_path,
                written(tmp_path, f"{CONSTRUCT}\n{ANIMALS.replace(seen, asked)}\n"),
                [kept],
            )
            == "declared"
        )
    assert (
        status(
            tmp_path,
            written(tmp_path, f"{CONSTRUCT}\n{ANIMALS.replace('made up', 'own')}\n"),
            [kept],
        )
        == "validated"
    )


@pytest.mark.parametrize(
    ("kind", "lesion", "defines"),
    [
        ("memory", "{amnesia: trial}", True),
        ("memory", "memoryless", True),
        ("memory", "blind", False),
        ("memory", "{amnesia: trial, hide: box}", False),
        ("memory", "memoryless+anhedonia", False),
        ("learning", "naive", True),
        ("learning", "anhedonia+hide=goal", True),
        ("learning", "blind+anhedonia", False),
        ("preference", "anhedonia", True),
        ("preference", "{amnesia: trial}", False),
        ("perception", "blind", True),
        ("perception", "pose-only", False),
        ("perception", "blind+amnesia=trial", False),
        ("strategy", "{hide: goal}", True),
        ("strategy", "pose-only", True),
        ("strategy", "blind", False),
    ],
)
def test_a_construct_names_the_lesion_of_its_kind(
    tmp_path: Path, kind: str, lesion: str, defines: bool
) -> None:
    keys = f"construct: {{name: x, kind: {kind}, abolished_by: [{{lesion: {lesion}, at_most: 0.5}}]}}"
    specification = written(tmp_path, keys)
    audit = report(specification)
    audit["findings"][0] |= {
        "rule": f"lesion: {specification.construct.abolished_by[0][0]}"  # type: ignore[union-attr]
    }
    audit["findings"][0]["numbers"]["at_most"] = 0.5
    assert status(tmp_path, specification, audit) == (
        "validated" if defines else "declared"
    )
    assert [one.code for one in doubts(specification)] == [330] * (not defines)


@pytest.mark.parametrize(
    ("value", "expected"), [(0.6, "validated"), (0.59, "declared")]
)
def test_a_lesion_that_leaves_enough_to_pass_validates_nothing(
    tmp_path: Path, value: float, expected: str
) -> None:
    reference = f"{CONSTRUCT}\nmargin: 0.1\nreference: [{{measure: success, value: {value}, status: x}}]"
    specification = written(tmp_path, reference)
    assert status(tmp_path, specification, report(specification)) == expected


def stored(folder: Path, specification: Specification, *findings: object) -> None:
    content = {"sha256": specification.sha256, "findings": findings}
    path = folder / "maze.audit.json"
    path.write_text(json.dumps(content), encoding="utf-8")


def tried(lesion: str, verdict: str = "ok", **numbers: Any) -> dict[str, Any]:
    return {"rule": f"lesion: {lesion}", "verdict": verdict, "numbers": numbers}


@pytest.mark.parametrize(
    ("estimand", "first"), [("", 0.5), ("estimand: {last: 2}\n", None)]
)
def test_ceilings_are_the_higher_of_what_was_found_and_proved(
    estimand: str, first: float | None, tmp_path: Path
) -> None:
    specification = written(tmp_path, estimand + CONSTRUCT)
    assert audited_ceilings(specification) is None
    rows = [
        tried("intact", found={"high": 0.9}, proven=0.95),
        tried("amnesia=trial", found={"high": 0.5}, proven=None),
        tried("blind", found=None),
        {"rule": "hidden"},
    ]
    stored(tmp_path, specification, *rows)
    assert audited_ceilings(specification) == Ceilings(first=first, all=0.95)
    stored(tmp_path, specification)
    assert audited_ceilings(specification) == Ceilings(first=None, all=None)


@pytest.mark.parametrize(
    ("rates", "idle"), [([0, 0.5, 0], (1, 3)), ([0.5], ()), ("odd", ())]
)
def test_sessions_in_which_nobody_succeeds(
    rates: object, idle: tuple[int, ...], tmp_path: Path
) -> None:
    specification = written(tmp_path)
    assert idle_sessions(specification) == ()
    stored(tmp_path, specification, tried("intact", by_session=rates))
    assert idle_sessions(specification) == idle


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (tried("blind", "FAIL", found={"rate": 0.7}), ("blind", 0.7)),
        (tried("blind", "FAIL", found={"rate": 0.7}, measured=[12, 9]), ("blind", 12)),
        (tried("blind", "FAIL"), None),
        (tried("blind", found={"rate": 0.7}), None),
        (tried("naive", "FAIL", found={"rate": 0.7}), None),
    ],
)
def test_the_first_lesion_that_fails(
    row: dict[str, Any], found: tuple[str, float] | None, tmp_path: Path
) -> None:
    specification = written(tmp_path)
    assert failed(specification) is None
    stored(tmp_path, specification, row)
    assert failed(specification) == found
    assert failed(written(tmp_path, "")) is None


def simple(kind: str, states: int, low: float, **more: Any) -> dict[str, Any]:
    numbers = {"class": kind, "clock": "life", "states": states, "within": False}
    numbers |= {"rate": low + 0.1, "low": low, **more}
    return {"rule": f"memory: {kind}, {states}", "verdict": "FAIL", "numbers": numbers}


def test_the_simplest_subject_above_the_bar(tmp_path: Path) -> None:
    specification = written(tmp_path, CONSTRUCT + REFERENCE)  # A PASS begins at 0.65.
    assert passed_by(specification) is None
    low, nothing = simple("nothing", 1, 0.6), simple("nothing", 1, 0.7)
    place, one = simple("place", 2, 0.8), simple("any", 4, 0.9, clock="trial")
    odd = [
        simple("odd", 2, 0.9),
        simple("any", 2, 0.9, within=True),
        simple("any", 8, 0.9),
    ]
    for rows, said in (
        ([low], None),
        ([place, nothing], ("no memory of earlier trials", 0.8)),
        ([one, low, place], ("one bit of memory for where the last trial ended", 0.9)),
        ([one, *odd], ("two bits of memory within the trial", 1.0)),
        ([*odd, {"rule": "memory: x", "numbers": None}], None),
    ):
        stored(tmp_path, specification, *rows)
        found = passed_by(specification)
        if said is None:
            assert found is None
        else:
            assert found is not None
            assert found[0] == said[0]
            assert found[1] == pytest.approx(said[1])
    # What the construct allows does not fail; nor does what remembers places.
    stored(tmp_path, specification, nothing, place, low)
    assert also_failed(specification) == ("memory: nothing, 1",)
    allowed = CONSTRUCT.replace("kind", "allows: [nothing], kind") + REFERENCE
    specification = written(tmp_path, allowed)
    stored(tmp_path, specification, nothing)
    assert also_failed(specification) == ()
    specification = written(tmp_path, CONSTRUCT)
    stored(tmp_path, specification, nothing)
    assert (also_failed(specification), passed_by(specification)) == ((), None)


def test_the_scale_of_ability_has_proved_ends(tmp_path: Path) -> None:
    specification = written(tmp_path)
    assert ability_scale(specification) is None
    ends = [
        tried("blind", at_most=0.25, proven=0.2),
        tried("anhedonia", at_most=0.5, proven=0.3),
    ]
    intact = tried("intact", found={"rate": 0.9})
    stored(tmp_path, specification, *ends, intact)
    assert ability_scale(specification) == AbilityScale(without=0.3, ideal=0.9)
    for rows in (
        [*ends, tried("intact", "FAIL", found={"rate": 0.9})],
        [*ends, tried("intact", "undecided", found={"rate": 0.9})],
        [*ends, tried("intact", found={"rate": 0.3})],
        [ends[0], tried("anhedonia", at_most=0.5, proven=None), intact],
        [ends[0], intact],
    ):
        stored(tmp_path, specification, *rows)
        assert ability_scale(specification) is None


@pytest.mark.parametrize(
    ("over", "remedy"),
    [("[1]", "Lower 'at_most' to"), ("[2]", "Correct 'over' first")],
)
def test_room_for_a_lesion(over: str, remedy: str, tmp_path: Path) -> None:
    reference = (
        f"reference: [{{measure: success, value: 0.55, over: {over}, status: x}}]"
    )
    [doubt] = doubts(written(tmp_path, f"{CONSTRUCT}\nmargin: 0.1\n{reference}\n"))
    assert doubt.code == 329
    assert doubt.remedy.startswith(remedy)
