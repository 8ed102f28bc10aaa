"""The library of classics: shipped, found by name and by folder, sound by their own
tests, and never run by default.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from cheesebench.interfaces import RUNNING, STAY, AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.runs import (
    DARKNESS,
    Order,
    Walker,
    carry_out,
    walk,
)
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.testing import assert_sound
from tests.arenas import examine

CLASSICS = (
    "biconditional",
    "contextual_fear",
    "delay_discounting",
    "delayed_alternation",
    "five_choice",
    "go_no_go",
    "hebb_williams",
    "novel_object",
    "odd_one_out",
    "operant_goal",
    "probabilistic_reversal",
    "progressive_ratio",
    "reversal_learning",
    "set_shifting",
    "temporal_order",
    "two_armed_bandit",
    "water_maze_matching",
    "win_shift",
    "y_maze",
)
CATALOGUE = Catalogue(installed_plugins().protocol_directories)
PAGE = Path(__file__).parents[1] / "docs" / "classics.md"
every_classic = pytest.mark.parametrize("name", CLASSICS)


def specification_of(name: str) -> Specification:
    specification: Specification = with_arena(CATALOGUE.find(name))
    return specification


def test_the_folder_holds_them_and_no_others() -> None:
    files = sorted(CATALOGUE.folders["classics"].glob("*.protocol.yaml"))
    assert tuple(path.name.split(".")[0] for path in files) == CLASSICS
    assert not set(CLASSICS) & set(CATALOGUE.names()), (
        "by default only the paper's protocols run"
    )


@every_classic
def test_it_is_clean_tested_and_cited(name: str) -> None:
    specification, found = examine(
        CATALOGUE.folders["classics"] / f"{name}.protocol.yaml", CATALOGUE
    )
    assert specification is not None
    assert [str(finding) for finding in found if finding.severity == "warning"] == []
    document = specification.document
    assert specification.title
    assert specification.success is not None
    assert document.species
    assert document.dimension != "unclassified"
    assert re.search(r"\b(19|20)\d\d, .*\d:e?\d", document.cite["source"]), (
        "authors, year, title, journal, volume, pages"
    )
    assert re.fullmatch(r"10\.\d{4,}/\S+", document.cite.get("doi", "10.1000/none"))
    assert len(document.tests) >= 3
    view = installed_plugins().view("ascii_2d")
    assert [
        str(report)
        for report in ArenaParadigm(specification).own_tests(view)
        if not report.passed
    ] == []


#: Classics whose construct holds under attack; the others explain why theirs does not.
VALIDATED = (
    "biconditional",
    "delay_discounting",
    "go_no_go",
    "novel_object",
    "operant_goal",
    "reversal_learning",
    "set_shifting",
    "temporal_order",
    "two_armed_bandit",
    "water_maze_matching",
    "win_shift",
)


@every_classic
def test_it_has_a_construct_or_says_why_not(name: str) -> None:
    specification = specification_of(name)
    notes = specification.document.notes
    has_note = "Not validated: " in (
        notes if isinstance(notes, str) else " ".join(notes or ())
    )
    assert (specification.construct is not None) is (name in VALIDATED)
    assert has_note is (name not in VALIDATED)


@every_classic
def test_it_states_the_chance_level_that_the_random_agent_has(name: str) -> None:
    specification = specification_of(name)
    stated = specification.document.chance
    assert stated is not None
    rate = carry_out(ArenaParadigm(specification), Order("uniform", 400, 77)).rate()
    if rate.trials:
        error = math.sqrt(max(stated.value * (1 - stated.value), 0.01) / rate.trials)
        assert abs(rate.value - stated.value) < 4 * error + 0.03


@every_classic
def test_it_passes_a_short_audit(name: str) -> None:
    settings = AuditSettings(
        trials=60, effort=0.05, parts=("solvable", "rewards", "draws", "leaks", "cues")
    )
    views = [installed_plugins().view("ascii_2d")]
    findings = ArenaParadigm(specification_of(name)).audit(views, settings)
    failed = {one.rule: one.text for one in findings if one.verdict == "FAIL"}
    assert failed == {}


@pytest.mark.slow
@every_classic
def test_it_passes_the_full_audit(name: str) -> None:
    assert_sound(
        CATALOGUE.folders["classics"] / f"{name}.protocol.yaml", trials=2000, seed=1
    )


def animals() -> dict[str, list[tuple[str, float]]]:
    """Return measure and value of every counted animal, by protocol."""
    found: dict[str, list[tuple[str, float]]] = {}
    with (CATALOGUE.folders["classics"].parent / "animals" / "classics.csv").open(
        encoding="utf-8"
    ) as file:
        for row in csv.DictReader(file):
            found.setdefault(row["protocol"], []).append(
                (row["measure"], float(row["value"]))
            )
    return found


@pytest.mark.parametrize(("name", "rows"), animals().items())
def test_a_reference_is_what_its_animals_did(
    name: str, rows: list[tuple[str, float]]
) -> None:
    # The verdict's own reference, or a second one.
    reference = next(
        one for one in specification_of(name).references if one.n_animals == len(rows)
    )
    values = [value for measure, value in rows if measure == reference.measure]
    assert len(values) == len(rows) == reference.n_animals
    assert reference.value == pytest.approx(statistics.fmean(values), abs=0.0005)
    assert reference.sd == pytest.approx(statistics.stdev(values), abs=0.0005)


def test_the_reversal_is_held_against_mice_at_a_touchscreen() -> None:
    path = CATALOGUE.folders["classics"] / "animals" / "reversal_touchscreen.csv"
    right, shown = Counter[str](), Counter[str]()
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            right[row["animal"]] += int(row["passed"])
            shown[row["animal"]] += int(row["trials"])
    values = [right[animal] / shown[animal] for animal in shown]
    specification = specification_of("reversal_learning")
    judged = specification.judged
    assert judged is not None
    assert (judged.n_animals, judged.kind) == (len(values), "measured") == (99, "measured")  # fmt: skip
    assert judged.value == pytest.approx(statistics.fmean(values), abs=0.0005)
    assert judged.sd == pytest.approx(statistics.stdev(values), abs=0.0005)
    # The best result without a memory of other runs must not pass.
    assert judged.value - specification.document.margin > 0.5


def test_the_page_names_those_that_are_judged_by_a_measure() -> None:
    judged = {name: specification_of(name).judged for name in CLASSICS}
    by_measure = [
        name
        for name, one in judged.items()
        if one is not None and one.better is not None
    ]
    [said] = re.findall(
        r"The verdict on (.*?) is about\s+\[a\s+measure\]",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert re.findall("`(.*?)`", said) == sorted(by_measure)


def test_a_session_of_the_progressive_ratio_ends_with_the_first_pellet_that_is_not_earned() -> (
    None
):
    life = ArenaSubject(
        ArenaParadigm(specification_of("progressive_ratio")).program, DARKNESS, 1, 0
    )
    outcomes = []
    while life.begin_trial() is not None:
        while life.step(STAY)[2] == RUNNING:
            pass
        outcomes.append(life.result().outcome)
    assert outcomes == ["timeout", *["over"] * 6] * 6


def test_no_object_is_met_in_two_trials() -> None:
    life = ArenaSubject(
        ArenaParadigm(specification_of("novel_object")).program, DARKNESS, 3, 0
    )
    met = []
    while life.begin_trial() is not None:
        met += [life.values["one"], life.values["two"]]
        while life.step(STAY)[2] == RUNNING:
            pass
    assert len(met) == len(set(met)) == 16


def test_no_platform_stays_overnight() -> None:
    for seed in range(5):
        life = ArenaSubject(
            ArenaParadigm(specification_of("water_maze_matching")).program,
            DARKNESS,
            seed,
            0,
        )
        days = []
        while life.begin_trial() is not None:
            days += [life.values["place"]] if life.trial == 1 else []
            while life.step(STAY)[2] == RUNNING:
                pass
        assert len(days) == 8
        assert all(one != other for one, other in itertools.pairwise(days))


def test_delays_grow_twice_and_each_lever_is_met_before_the_choices() -> None:
    life = ArenaSubject(
        ArenaParadigm(specification_of("delay_discounting")).program, DARKNESS, 2, 1
    )
    delays = []
    while life.begin_trial() is not None:
        if life.trial == 1:
            delays.append(life.values["delay"])
            assert {life.values["out_first"], life.values["out_second"]} == {
                "lever_west",
                "lever_east",
            }
        while life.step(STAY)[2] == RUNNING:
            pass
    assert delays == [1, 4, 8, 16] * 2


def test_a_bandit_turns_after_four_good_choices_or_some_more() -> None:
    specification = specification_of("two_armed_bandit")
    paradigm, rows = ArenaParadigm(specification), []
    for seed in range(2):
        life = ArenaSubject(paradigm.program, DARKNESS, seed, 0)

        def better(places: Sequence[str], life: ArenaSubject = life) -> str | None:
            is_first = life.values["turned"] == 0
            return next(
                (
                    place
                    for place in places
                    if (place == life.values["side"]) == is_first
                ),
                None,
            )

        good = 0
        for trial, _ in walk(life, Walker(paradigm.program, better), specification, 60):
            assert trial.outcome == "win"
            good += 1
            if trial.variables["shown"] == 0:
                rows.append(good)
                good = 0
    assert min(rows) == 4
    assert len(set(rows)) > 2


@pytest.mark.parametrize("subject", range(2))
def test_after_the_extradimensional_shift_the_other_dimension_counts(
    subject: int,
) -> None:
    life = ArenaSubject(
        ArenaParadigm(specification_of("set_shifting")).program, DARKNESS, 4, subject
    )
    while life.begin_trial() is not None:
        while life.step(STAY)[2] == RUNNING:
            pass
        now = life.values
        is_shifted = str(now["stage"]).startswith("extradimensional")
        by_odour = (now["first"] == "by_odour") != is_shifted
        is_left = (
            now["odour_1_at"] == "odour_left"
            if by_odour
            else now["medium_1_at"] == "bowl_left"
        )
        assert now["one_left"] == is_left, now["stage"]


def test_the_food_of_the_second_phase_is_in_the_arms_that_were_closed_in_the_first() -> (
    None
):
    paradigm = ArenaParadigm(specification_of("win_shift"))
    cups = {f"cup{number}" for number in range(1, 5)}
    for seed in range(3):
        life = ArenaSubject(paradigm.program, DARKNESS, seed, 0)
        while life.begin_trial() is not None:
            while life.step(STAY)[2] == RUNNING:
                pass
            given, baited = set(life.values["given"]), set(life.values["baited"])
            assert len(given) == len(baited) == 2
            assert given | baited == cups


def test_probabilistic_reversal_counts_what_a_subject_made_of_a_win() -> None:
    specification = specification_of("probabilistic_reversal")
    paradigm = ArenaParadigm(specification)
    life = ArenaSubject(paradigm.program, DARKNESS, 0, 0)
    walker = Walker(
        paradigm.program, lambda places: "left" if "left" in places else None
    )
    trials = [result for result, _ in walk(life, walker, specification, 60)]
    for before, after in itertools.pairwise(trials):
        won = before.outcome == "win"
        assert after.measures["win_stay"] == (1 if won else None)
        assert after.measures["lose_shift"] == (None if won else 0)
    assert trials[-1].measures["reversals"] == 1, (
        "the right one from the ninth choice on: the left one never again"
    )


def test_they_run_by_name_and_by_folder(pytester: pytest.Pytester) -> None:
    arguments = ("--model", "random", "--collect-only", "-q", "-p", "no:cacheprovider")
    folder = pytester.runpytest_inprocess(*arguments, "--protocols", "classics")
    assert folder.ret == 0
    folder.stdout.fnmatch_lines(
        [f"cheesebench::{name}[[]ascii_2d-random[]]" for name in CLASSICS]
    )
    one = pytester.runpytest_inprocess(*arguments, "--protocols", "five_choice")
    one.stdout.fnmatch_lines(["cheesebench::five_choice[[]ascii_2d-random[]]"])
    usual = pytester.runpytest_inprocess(*arguments)
    assert not [
        line
        for line in usual.outlines
        if line.partition("::")[2].split("[")[0] in CLASSICS
    ]


def test_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from cheesebench.cli import main

    main(["list"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in CLASSICS)


def test_they_are_in_the_wheel() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert '"classics/*.yaml"' in project.read_text(encoding="utf-8")
