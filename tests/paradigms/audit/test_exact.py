"""The bounds of small tasks, each by every way to compute one, and what they cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import Adversary
from cheesebench.paradigms.arena.audit.beliefs import TooManyError
from cheesebench.paradigms.arena.audit.exact import (
    _informed,
    _of_one_trial,
    _told_all,
    by_walks,
    from_anywhere,
    is_chosen,
    upper_bound,
)
from tests.paradigms.audit.test_adversary import SMALL

Plant = Callable[..., ArenaParadigm]
WAYS = (from_anywhere, by_walks, _of_one_trial, _told_all, _informed)
#: For each way: the bound, or ``-`` if there is none or it takes too much; and the
#: effort. First with an effort of 1, then with 0.003.
BOUNDS = {
    ("plain", "intact"): [
        "1 1456, 1 1520, 1 2944, 1 2944, - 3984",
        "1 1456, 1 1520, 1 2944, 1 2944, - 3984",
    ],
    ("plain", "amnesia=choice"): [
        "0.5 1504, 0.5 1520, 0.5 2992, 0.5 2992, 0.5 4592",
        "0.5 1504, 0.5 1520, 0.5 2992, 0.5 2992, 0.5 4592",
    ],
    ("plain", "blind+anhedonia"): [
        "0.5 1456, 0.5 1520, 0.5 2944, 0.5 2944, 0.5 4544",
        "0.5 1456, 0.5 1520, - 2944, - 2080, - 3984",
    ],
    ("told", "intact"): [
        "1 192, - 128, 1 3200, 1 3200, - 6162",
        "1 192, - 128, 1 3200, 1 3200, - 6162",
    ],
    ("told", "amnesia=choice"): [
        "1 192, - 128, 1 3200, 1 3200, - 6162",
        "1 192, - 128, 1 3200, 1 3200, - 6162",
    ],
    ("told", "blind+anhedonia"): [
        "0.5 192, - 128, 0.5 3200, 0.5 3200, 0.5 6232",
        "0.5 192, - 128, 0.5 3200, 0.5 3200, 0.5 6232",
    ],
    ("learnt", "intact"): [
        "1 1456, 1 1600, 0.5 2944, 1 2944, - 4136",
        "1 1456, 1 1600, 0.5 2944, 1 2944, - 4136",
    ],
    ("learnt", "amnesia=choice"): [
        "1 1552, 1 1600, 0.5 2992, 1 3040, - 4208",
        "1 1552, 1 1600, 0.5 2992, 1 3040, - 4208",
    ],
    ("learnt", "amnesia=trial"): [
        "0.5 1456, 0.5 1520, 0.5 2944, 1 2944, - 4136",
        "0.5 1456, 0.5 1520, 0.5 2944, 1 2944, - 4136",
    ],
    ("learnt", "blind+anhedonia"): [
        "1 1456, 1 1600, 0.5 2944, 0.5 2944, 0.5 4544",
        "1 1456, 1 1600, - 2944, - 2080, - 3984",
    ],
    ("leak", "intact"): [
        "1 1456, 1 1520, 1 2944, 1 2944, - 3984",
        "1 1456, 1 1520, 1 2944, 1 2944, - 3984",
    ],
    ("leak", "amnesia=choice"): [
        "1 2412, 1 2420, 1 3156, 1 3156, - 4892",
        "1 2412, 1 2420, 1 3156, 1 3156, - 4892",
    ],
    ("leak", "blind+anhedonia"): [
        "1 1456, 1 1520, 0.5 2944, 0.5 2944, 0.5 4544",
        "1 1456, 1 1520, - 2944, - 2080, - 3984",
    ],
    ("egg", "intact"): [
        "- 0, - 0, 0.5 6520, 1 6824, - 4136",
        "- 0, - 0, 0.5 6520, 1 6824, - 4136",
    ],
    ("egg", "amnesia=choice"): [
        "- 0, - 0, 1 17504, 1 17504, - 4208",
        "- 0, - 0, 1 17504, 1 17504, - 4208",
    ],
    ("egg", "amnesia=trial"): [
        "- 0, - 0, 0.5 6520, 1 6824, - 4136",
        "- 0, - 0, 0.5 6520, 1 6824, - 4136",
    ],
    ("egg", "blind+anhedonia"): [
        "- 0, - 0, 0.5 8380, 0.5 8684, 0.5 4544",
        "- 0, - 0, - 8380, - 2080, - 3984",
    ],
    ("summed", "intact"): [
        "1 2144, 1 2208, 1 3328, 1 3632, - 4112",
        "1 2144, 1 2208, 1 3328, 1 3632, - 4112",
    ],
    ("summed", "amnesia=choice"): [
        "0.5 2192, 0.5 2208, 0.5 3376, 0.5 3680, 0.5 4976",
        "0.5 2192, 0.5 2208, 0.5 3376, 0.5 3680, 0.5 4976",
    ],
    ("summed", "blind+anhedonia"): [
        "0.5 2144, 0.5 2208, 0.5 3328, 0.5 3632, 0.5 4928",
        "0.5 2144, 0.5 2208, - 3328, - 2208, - 4112",
    ],
    ("counted", "intact"): [
        "1 1264, - 1024, 1 4736, 1 4736, - 7568",
        "1 1264, - 1024, 1 4736, 1 4736, - 7568",
    ],
    ("counted", "amnesia=choice"): [
        "- 0, - 0, 0.5 5892, 0.5 5892, 0.5 11084",
        "- 0, - 0, 1 4076, 1 4076, 0.5 11084",
    ],
    ("counted", "blind+anhedonia"): [
        "0.5 1264, - 1024, 0.5 4736, 0.5 4736, 0.5 8128",
        "0.5 1264, - 1024, - 4736, - 3872, - 7568",
    ],
    ("left over", "intact"): [
        "1 1456, 1 1520, 1 2944, 1 2944, - 3984",
        "1 1456, 1 1520, 1 2944, 1 2944, - 3984",
    ],
    ("left over", "amnesia=choice"): [
        "0.5 1504, 0.5 1520, 0.5 2992, 0.5 2992, 0.5 4592",
        "0.5 1504, 0.5 1520, 0.5 2992, 0.5 2992, 0.5 4592",
    ],
    ("left over", "blind+anhedonia"): [
        "0.5 1456, 0.5 1520, 0.5 2944, 0.5 2944, 0.5 4544",
        "0.5 1456, 0.5 1520, - 2944, - 2080, - 3984",
    ],
    ("waits", "intact"): [
        "1 5552, 1 6512, 1 6912, 1 7040, - 3984",
        "- 4656, - 5441, - 6552, - 4568, - 3984",
    ],
    ("waits", "amnesia=choice"): [
        "0.5 6432, 0.5 6448, 0.5 7168, 0.5 7920, 0.5 11504",
        "0.5 6432, 0.5 6448, 0.5 7168, 0.5 7920, 0.5 11504",
    ],
    ("waits", "amnesia=trial"): [
        "1 5424, 1 5760, 1 6912, 1 7040, - 3984",
        "1 5424, - 5712, - 6552, - 4568, - 3984",
    ],
    ("waits", "blind+anhedonia"): [
        "0.5 5552, 0.5 6512, 0.5 6912, 0.5 7040, 0.5 10624",
        "- 4656, - 5442, - 5248, - 2080, - 3984",
    ],
    ("early", "intact"): [
        "- 0, - 0, 1 1622, 1 1625, - 3253",
        "- 0, - 0, 1 1622, 1 1625, - 3253",
    ],
    ("early", "amnesia=choice"): [
        "- 0, - 0, 0.5 3164, 1 3164, - 3253",
        "- 0, - 0, 0.5 3164, 1 3164, - 3253",
    ],
    ("early", "amnesia=trial"): [
        "- 0, - 0, 1 1622, 1 1625, - 3253",
        "- 0, - 0, 1 1622, 1 1625, - 3253",
    ],
    ("early", "blind+anhedonia"): [
        "- 0, - 0, 1 1622, 1 1625, 0.5 3268",
        "- 0, - 0, 1 1622, 1 1625, 0.5 3268",
    ],
}


def bound(
    way: Callable[[Adversary, float], float],
    paradigm: ArenaParadigm,
    lesion: str,
    effort: float,
) -> str:
    adversary = Adversary(paradigm, Lesion.parse(lesion), effort)
    try:
        found = f"{way(adversary, effort):.4g}"
    except TooManyError:
        found = "-"
    return f"{found} {adversary.world.spent:.0f}"


def film(paradigm: ArenaParadigm, lesion: str, effort: float) -> str:
    return ", ".join(bound(way, paradigm, lesion, effort) for way in WAYS)


@pytest.mark.parametrize(("name", "lesion"), BOUNDS)
def test_bounds_and_their_effort_are_written_down(
    plant: Plant, name: str, lesion: str
) -> None:
    """A coin decides in each of these tasks, or nothing does. A change of the bounds
    that is meant changes these lines.
    """
    paradigm = plant(*SMALL[name])
    found = [film(paradigm, lesion, effort) for effort in (1.0, 0.003)]
    assert found == BOUNDS[name, lesion]


def judged(better: str, value: float, measure: str = "steps") -> tuple[str, str]:
    return (
        "reference: [{measure: success, value: 0.9,",
        f"measures: {{much: {measure}}}\n"
        f"reference: [{{measure: much, value: {value}, better: {better}, margin: 2,"
        " range: [0, 40],",
    )


def selected(where: str) -> tuple[str, str]:
    return "success: last", f"estimand: {{where: {where}}}\nsuccess: last"


#: What is judged, the lesion, and the pass rate that may remain -> the bound, or None.
PROVED: dict[tuple[tuple[str, str], str, float], float | None] = {
    (judged("lower", 1), "amnesia=choice", 0.5): None,
    (judged("higher", 30, "(last == correct) * 40"), "intact", 0.0): None,
    (judged("higher", 30, "(last == correct) * 40"), "amnesia=choice", 0.5): 0.5,
    (judged("alike", 20), "amnesia=choice", 0.5): None,
    # The date alone says which trials count.
    (selected("trial > 1"), "intact", 0.0): 1.0,
    (selected("trial > 1"), "amnesia=choice", 0.5): 0.5,
    (selected("session == 2 and trial < 4"), "blind+anhedonia", 0.5): 0.5,
    # What is done, or what is drawn, says it.
    (selected("last == correct"), "amnesia=choice", 0.5): None,
    (selected("steps > 8"), "amnesia=choice", 0.5): None,
    (selected("side == left"), "amnesia=choice", 0.5): None,
    (selected("side == left"), "hide=arm", 0.5): None,
    (selected("last != timeout"), "amnesia=choice", 0.5): None,
    (selected("last != timeout"), "amnesia=choice", 0.4): None,
    (selected("last != timeout"), "amnesia=choice+amnesia=trial", 0.5): 0.5,
    # Two in a row are no more often right than one.
    (
        ("success: last == correct", "success: recent(correct, 2) == 2"),
        "hide=arm",
        0.0,
    ): 0.5,
    (
        ("success: last == correct", "success: recent(correct, 2) == 1"),
        "hide=arm",
        0.0,
    ): None,
    (
        ("success: last == correct", "success: last == correct and trial > 2"),
        "hide=arm",
        0.0,
    ): 0.5,
}


@pytest.mark.parametrize(("change", "lesion", "at_most"), PROVED)
def test_what_is_proved_of_measures_and_of_chosen_trials(
    plant: Plant, change: tuple[str, str], lesion: str, at_most: float
) -> None:
    adversary = Adversary(plant(change), Lesion.parse(lesion), 1.0)
    found = upper_bound(adversary, 1.0, at_most)
    assert found == pytest.approx(PROVED[change, lesion, at_most])


def test_where_a_subject_chooses_what_counts_the_missing_condition_is_named(
    plant: Plant,
) -> None:
    share = judged("higher", 30, "time(arm) / (time(arm) + time(box))")
    chosen = [share, selected("last != timeout")]
    anew = ("draw:\n  side: {of", "draw:\n  side: {per: trial, of")
    lasting = ("draw:\n  side: {of", "draw:\n  side: {per: subject, of")
    for change in chosen:
        assert not is_chosen(plant(change, anew).specification)
        assert is_chosen(plant(change, lasting).specification)
    assert not is_chosen(plant(judged("lower", 1), lasting).specification)
