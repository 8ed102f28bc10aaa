"""The reference page's figures on lesions were measured on the present protocols."""

from __future__ import annotations

from cheesebench.protocol import Specification
from cheesebench.protocol.validation import (
    FORBIDDEN,
    MEMORY,
    ability_scale,
    construct_status,
    simple_subjects,
)
from website.installed import CATALOGUE
from website.lesions import (
    CLASSICS,
    OF_THE_DAY,
    WHY,
    classics,
    is_current,
    lesions,
    rows_of,
    stored,
    validated,
)

#: Protocols whose present ceilings are not yet measured: reports say *construct not
#: measured*.
UNMEASURED = {"novel_object"}
#: Minimum pass rate of an intact subject who knows the rules over judged trials (as the
#: upper limit of its interval), and minimum rate once it can know the answer.
INTACT, AT_LAST = 0.95, 0.99


def test_what_is_stored_was_measured_on_the_protocols_as_they_are() -> None:
    kept, named = stored(), validated()
    assert set(kept) <= set(named)
    old = [name for name in kept if not is_current(named[name], kept[name])]
    assert old == [], f"python -m website.lesions {' '.join(old)}"
    for name, one in named.items():
        assert (
            "Best pass rate under each lesion" if name in kept else "not measured"
        ) in lesions(one)


def test_all_shipped_constructs_are_measured() -> None:
    assert {name for name in validated() if name not in stored()} == UNMEASURED


def test_what_is_stored_holds() -> None:
    for name, entry in stored().items():
        rows = rows_of(entry)
        assert rows["intact"]["found"]["high"] >= INTACT, name
        assert rows["intact"]["at_last"] >= AT_LAST, name
        assert {
            lesion: row["verdict"]
            for lesion, row in rows.items()
            if row["verdict"] == "FAIL"
        } == {}, name


#: Why an ideal subject may fail a judged trial of a protocol. In all others it never
#: does: a lower rate would be a fault of the search, and set the ability scale wrong.
NOT_IDEAL = {
    "biconditional": "the pairs are learnt from the first trial, which is judged",
    "go_no_go": "the signals are learnt from the first trial, which is judged",
    "set_shifting": "the second trial of a life may leave two features possible",
}


def test_the_stored_ideal_is_the_true_one() -> None:
    ideal = {name: rows_of(one)["intact"]["found"] for name, one in stored().items()}
    below = {name for name, found in ideal.items() if found["rate"] < 1}
    assert below == NOT_IDEAL.keys()
    scales = map(ability_scale, validated().values())
    assert {one.ideal for one in scales if one is not None} == {1.0}


def test_rows_on_memory_are_settled_and_keep_no_bar() -> None:
    for name, entry in stored().items():
        bar = validated()[name].bar
        for row in entry["findings"]:
            if not row["rule"].startswith(MEMORY):
                continue
            found = row["numbers"]
            assert not found.keys() & {*OF_THE_DAY}, name
            if bar is not None:
                assert not found["low"] <= bar <= found["high"], (name, row["rule"])


def test_a_report_says_validated_of_what_is_stored_and_of_nothing_else() -> None:
    searched = {
        "go_no_go",
        "novel_object",
        "two_armed_bandit",
        "water_maze_matching",
        "win_shift",
    }
    said = {name: construct_status(one) for name, one in validated().items()}
    assert said == dict.fromkeys(UNMEASURED, "declared") | {
        name: "searched" if name in searched else "validated" for name in stored()
    }


def test_a_protocol_without_a_construct_is_not_validated() -> None:
    plain = [
        one
        for one in map(CATALOGUE.load, CATALOGUE.files.values())
        if isinstance(one, Specification)
    ]
    without = [one for one in plain if one.construct is None]
    assert all(lesions(one).startswith("*Not validated*") for one in without)


def test_a_classic_that_lacks_a_construct_or_a_reference_says_why_and_no_other_does() -> (
    None
):
    lines = classics().splitlines()[2:]
    assert len(lines) == len(list(CLASSICS.glob("*.protocol.yaml")))
    lacking = {
        line.split("`")[1]
        for line in lines
        if "not validated" in line or "no reference" in line
    }
    assert lacking == WHY.keys()


def test_a_protocol_that_is_passed_without_a_place_or_an_act_allows_it() -> None:
    passed = {
        name: own.kind
        for name, one in validated().items()
        for own in simple_subjects(one)
        if own.kind in FORBIDDEN and one.bar is not None and own.low > one.bar
    }
    assert passed
    for name, kind in passed.items():
        construct = validated()[name].construct
        assert construct is not None
        assert kind in construct.allows, name


def test_the_table_of_classics_has_the_best_rate_by_the_last_outcome() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")] for line in classics().splitlines()
    ]
    for name, _, _, _, found in (row[1:6] for row in rows[2:]):
        one = validated().get(name.strip("`"))
        rates = [
            own.rate
            for own in (simple_subjects(one) if one else ())
            if own.kind in FORBIDDEN
        ]
        assert found.partition(" ")[0] == (f"{max(rates):.2f}" if rates else "")
