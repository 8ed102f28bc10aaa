"""What a search for little memory finds in small tasks, and after how many rules."""

from __future__ import annotations

import statistics
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.automata import Automaton, Experience, Memory
from cheesebench.paradigms.arena.audit.climbing import (
    OPTIONS,
    PROMISING,
    Search,
    _fresh,
    confirmed,
)
from cheesebench.paradigms.arena.audit.memory import words
from tests.paradigms.audit.test_automata import SHORT
from tests.paradigms.audit.test_memory import (
    ALTERNATION,
    DECOY,
    SAMPLE,
    TIPS,
    TWO_IN_A_ROW,
    WORDS,
    chamber,
    paradigm,
)

TWENTY, TWELVE, TWO = "trials: 20", "trials: 12", "trials: 2"
#: Two trials of each task, so that most of what is met is met early.
TASKS: dict[str, ArenaParadigm] = {
    "chamber": chamber(SHORT),
    "two in a row": chamber(SHORT, TWO_IN_A_ROW),
    "alternation": chamber(*ALTERNATION, SHORT),
    "tips": paradigm(TIPS.replace(TWENTY, TWO)),
    "decoy": paradigm(DECOY.replace(TWELVE, TWO)),
    "words": paradigm(WORDS.replace(TWELVE, TWO)),
    "sample": paradigm(SAMPLE.replace(TWENTY, TWO)),
}
MEMORIES = (
    Memory("nothing"),
    Memory("outcome", 2),
    Memory("place", 2),
    Memory("any", 2),
    Memory("any", 4),
    Memory("any", 2, "trial"),
    Memory("nothing", within=True),
)
#: First what is stored: sights, aims of each kind, zeros, and the effort. Then for each
#: memory: the score, the number of rules that were tried, the effort, the result in
#: fresh lives with its interval and the number of trials, and the rule in words.
FOUND: dict[str, list[str]] = {
    "chamber": [
        "2 [7] 8 6303",
        "0.5501 8 5060 0.391 0.220 0.593 64 goes to lever 2, clockwise from north, and waits",
        "0.7501 127 4220 0.750 0.592 0.861 64 in state 1 goes to lever 1, clockwise from glyph 1, and waits; in state 2"
        " goes to lever 2, clockwise from glyph 1, and waits. Next state: unpaid -> 2, well paid -> 1",
        "0.5751 67 4160 0.516 0.361 0.667 64 in state 1 goes to lever 1, clockwise from north, and waits; in state 2 "
        "goes to lever 2, clockwise from north, and waits. Next state: at 1 2 -> 2 (places clockwise from near 2)",
        "0.7501 102 4380 0.750 0.592 0.861 64 in state 1 goes to lever 2, clockwise from glyph 1, and waits; in state 2"
        " goes to lever 1, clockwise from glyph 1, and waits. Next state: from 1 unpaid at 1 2 -> 2, from 1 well paid "
        "at 1 2 -> 1, from 2 well paid at 1 2 -> 2 (places clockwise from north)",
        "0.5501 65 4420 0.672 0.482 0.818 64 in state 1 goes to lever 1, clockwise from north, and waits; in state 2 "
        "goes to lever 2, clockwise from glyph 1, and waits; in state 3 goes to lever 1, clockwise from glyph 1, and "
        "waits; in state 4 goes to lever 2, clockwise from glyph 1, and waits. Next state: from 1 unpaid at 1 2 -> 1, "
        "from 1 well paid at 1 -> 3, from 1 well paid at 2 -> 1, from 3 well paid at 1 -> 3 (places clockwise from 1)",
        "0.5501 72 4680 0.391 0.220 0.593 64 in state 1 goes to lever 2, clockwise from north, and waits; in state 2 "
        "goes to lever 2, clockwise from north, and waits. Next state: from 1 unpaid at 2 -> 2, from 1 well paid at 2 "
        "-> 2 (places clockwise from near 1)",
        "0.5501 65 4180 0.391 0.220 0.593 64 goes to lever 2, clockwise from north, and waits",
    ],
    "two in a row": [
        "2 [7] 8 5473",
        "0.0001 1 4080 0.000 0.000 0.094 64 waits",
        "0.2501 7 5904 0.250 0.139 0.408 64 in state 1 goes to lever 1, clockwise from glyph 1, and waits; in state 2 "
        "goes to lever 1, clockwise from north, and waits. Next state: unpaid -> 2, well paid -> 1",
        "0.2501 29 4440 0.250 0.139 0.408 64 in state 1 goes to lever 1, clockwise from glyph 1, and waits; in state 2 "
        "goes to lever 1, clockwise from straight ahead, and waits. Next state: at 1 -> 1 (places clockwise from 1)",
        "0.2501 58 4450 0.250 0.139 0.408 64 in state 1 goes to lever 2, clockwise from glyph 1, and waits; in state 2 "
        "goes to lever 1, clockwise from north, and waits. Next state: from 1 unpaid at 1 2 -> 2, from 1 well paid at 1"
        " 2 -> 1, from 2 unpaid at 1 -> 1, from 2 well paid at 1 -> 2 (places clockwise from north)",
        "0.1751 52 4040 0.109 0.037 0.284 64 in state 1 goes to lever 2, clockwise from north, and waits; in state 2 "
        "waits; in state 3 goes to lever 1, clockwise from straight ahead, and waits; in state 4 goes to lever 1, "
        "clockwise from north, and waits. Next state: from 1 unpaid at 1 2 -> 1, from 1 well paid at 1 -> 1, from 1 "
        "well paid at 2 -> 3, from 3 unpaid at 1 -> 3, from 3 well paid at 2 -> 3 (places clockwise from 2)",
        "0.2501 93 4620 0.250 0.139 0.408 64 in state 1 goes to lever 1, clockwise from glyph 1, and waits; in state 2 "
        "goes to lever 2, clockwise from straight ahead, and waits. Next state: from 1 unpaid at 2 -> 1, from 1 well "
        "paid at 2 -> 1 (places clockwise from 2)",
        "0.2501 101 4180 0.250 0.139 0.408 64 goes to lever 1, clockwise from glyph 1, and waits",
    ],
    "alternation": [
        "2 [8] 8 11945",
        "0.0001 1 4080 0.000 0.000 0.094 64 waits",
        "0.8001 11 8088 0.734 0.533 0.870 64 in state 1 goes to lever 1, clockwise from glyph 1, and waits; in state 2 "
        "goes to lever 1, clockwise from glyph 1, and waits. Next state: unpaid -> 2, well paid -> 1",
        "0.8001 50 4390 0.734 0.533 0.870 64 in state 1 goes to lever 2, clockwise from glyph 1, and waits; in state 2 "
        "goes to place 1, clockwise from north, and waits. Next state: at 1 2 -> 1 (places clockwise from near )",
        "0.8001 60 4458 0.734 0.533 0.870 64 in state 1 goes to lever 2, clockwise from glyph 1, and waits; in state 2 "
        "goes to place 1, clockwise from north, and waits. Next state: from 1 unpaid at 1 2 -> 2, from 1 well paid at 1"
        " 2 -> 1 (places clockwise from north)",
        "0.8001 59 4360 0.734 0.533 0.870 64 in state 1 goes to lever 1, clockwise from glyph 1, and waits; in state 2 "
        "goes to lever 1, clockwise from north, and waits; in state 3 goes to lever 1, clockwise from straight ahead, "
        "and waits; in state 4 goes to lever 2, clockwise from glyph 1, and waits. Next state: from 1 unpaid at 1 2 -> "
        "1, from 1 well paid at 1 2 -> 1 (places clockwise from north)",
        "0.8001 75 4680 0.734 0.533 0.870 64 in state 1 goes to lever 1, clockwise from glyph 1, and waits; in state 2 "
        "goes to lever 1, clockwise from glyph 1, and waits. Next state: from 1 unpaid at 1 2 -> 2, from 1 well paid at"
        " 1 -> 1, from 1 well paid at 2 -> 2 (places clockwise from near 1)",
        "0.8001 74 4090 0.734 0.533 0.870 64 goes to lever 1, clockwise from glyph 1, and waits",
    ],
    "tips": [
        "1 [14] 4 66235",
        "0.0001 1 14480 0.000 0.000 0.094 64 waits",
        "0.2126 3 7075 0.234 0.127 0.392 64 in state 1 goes to window 4, clockwise from straight ahead, and waits; in "
        "state 2 goes to the nearest window of 2 from number 4 on, clockwise from straight ahead, then to the others. "
        "Next state: unpaid -> 1, well paid -> 1, paid -> 1",
        "0.3251 4 6255 0.328 0.152 0.572 64 in state 1 goes to window 2, clockwise from straight ahead, and waits; in "
        "state 2 goes to window 3, clockwise from straight ahead, and waits. Next state: at 1 2 -> 1, at 3 4 -> 2 "
        "(places clockwise from its own side)",
        "0.2751 6 5330 0.328 0.199 0.489 64 in state 1 goes to window 1, clockwise from straight ahead, and waits; in "
        "state 2 goes to window 3, clockwise from straight ahead, and waits. Next state: from 1 unpaid at 1 -> 1, from "
        "1 well paid at 1 -> 1, from 1 paid at 1 -> 1 (places clockwise from straight ahead)",
        "0.2751 49 4300 0.312 0.152 0.536 64 in state 1 goes to window 1, clockwise from straight ahead, and waits; in "
        "state 2 goes to window 1, clockwise from north, and waits; in state 3 goes to the nearest window of 2 from "
        "number 4 on, clockwise from straight ahead, then to the others; in state 4 goes to window 3, clockwise from "
        "north, and waits. Next state: from 1 unpaid at 1 2 3 -> 1, from 1 unpaid at 4 -> 2, from 1 well paid at 1 3 ->"
        " 1, from 1 paid at 3 -> 1, from 2 unpaid at 1 -> 2, from 2 well paid at 1 -> 1 (places clockwise from near )",
        "0.7126 58 4450 0.703 0.522 0.837 64 in state 1 goes to window 2, clockwise from north, and waits; in state 2 "
        "waits. Next state: from 1 unpaid at 2 -> 2, from 1 well paid at 2 -> 1, from 1 paid at 2 -> 1 (places "
        "clockwise from north)",
        "0.7126 15 4280 0.703 0.522 0.837 64 goes to window 2, clockwise from north, and waits",
    ],
    "decoy": [
        "1 [130] 8 19360",
        "1.0002 131 17895 1.000 0.906 1.000 64 goes to cup 4, clockwise from glyph *, and waits",
        "1.0002 154 7310 1.000 0.906 1.000 64 in state 1 goes to cup 4, clockwise from glyph *, and waits; in state 2 "
        "goes to cup 4, clockwise from glyph *, and waits. Next state: well paid -> 2",
        "1.0002 70 5180 1.000 0.906 1.000 64 in state 1 goes to cup 4, clockwise from glyph *, and waits; in state 2 "
        "goes to cup 4, clockwise from glyph *, and waits. Next state: at 6 7 -> 1, at 8 -> 2 (places clockwise from "
        "near *)",
        "1.0002 125 4420 1.000 0.906 1.000 64 in state 1 goes to cup 4, clockwise from glyph *, and waits; in state 2 "
        "goes to cup 4, clockwise from glyph *, and waits. Next state: from 1 well paid at 1 6 7 8 -> 1, from 1 well "
        "paid at 2 3 4 5 -> 2, from 2 well paid at 1 6 7 8 -> 1, from 2 well paid at 2 3 4 5 -> 2 (places clockwise "
        "from straight ahead)",
        "1.0002 100 7820 1.000 0.906 1.000 64 in state 1 goes to cup 4, clockwise from glyph *, and waits; in state 2 "
        "goes to cup 4, clockwise from glyph *, and waits; in state 3 goes to cup 4, clockwise from glyph *, and waits;"
        " in state 4 goes to cup 4, clockwise from glyph *, and waits. Next state: from 1 well paid at 1 2 -> 4, from 1"
        " well paid at 3 4 -> 1, from 1 well paid at 5 6 -> 2, from 1 well paid at 7 8 -> 3, from 2 well paid at 1 2 ->"
        " 4, from 2 well paid at 3 -> 1, from 2 well paid at 5 6 -> 2, from 2 well paid at 7 8 -> 3, from 3 well paid "
        "at 1 2 -> 4, from 3 well paid at 3 -> 1, from 3 well paid at 5 6 -> 2, from 3 well paid at 7 8 -> 3, from 4 "
        "well paid at 1 -> 4, from 4 well paid at 6 -> 2 (places clockwise from %)",
        "1.0002 129 7680 1.000 0.906 1.000 64 in state 1 goes to cup 4, clockwise from glyph *, and waits; in state 2 "
        "goes to the nearest cup of 2 from number 8 on, clockwise from glyph %, then to the others. Next state: from 1 "
        "well paid at 1 3 5 7 8 -> 1, from 1 well paid at 2 4 6 -> 2 (places clockwise from near %)",
        "1.0002 131 5140 1.000 0.906 1.000 64 goes to cup 4, clockwise from glyph *, and waits",
    ],
    "words": [
        "3 [2, 2, 2] 4 8197",
        "0.3336 3 6480 0.333 0.210 0.485 72 goes to place 1, clockwise from north, and waits at ['ONE'], waits at "
        "['TWO'] and ['THREE']",
        "0.3336 59 4477 0.333 0.210 0.485 72 in state 1 goes to place 1, clockwise from north, and waits at ['ONE'], "
        "waits at ['TWO'] and ['THREE']; in state 2 goes to place 1, clockwise from north, and waits. Next state: "
        "most punished THREE -> 2, unpaid THREE -> 1, cost THREE -> 1",
        "0.3336 68 4086 0.333 0.210 0.485 72 in state 1 goes to place 1, clockwise from north, and waits at ['ONE'], "
        "waits at ['TWO'] and ['THREE']; in state 2 goes to place 1, clockwise from north, and waits at ['ONE'], waits "
        "at ['TWO'] and ['THREE']. Next state: at 1 -> 1 (places clockwise from near )",
        "0.3336 102 4266 0.333 0.210 0.485 72 in state 1 goes to place 1, clockwise from north, and waits at ['ONE'], "
        "waits at ['TWO'] and ['THREE']; in state 2 goes to place 1, clockwise from north, and waits at ['ONE'] and "
        "['TWO'], waits at ['THREE']. Next state: from 1 most punished THREE at 1 -> 2, from 1 unpaid THREE at 1 -> 1, from "
        "2 most punished THREE at 1 -> 1, from 2 cost THREE at 1 -> 2 (places clockwise from north)",
        "0.3336 59 4140 0.333 0.210 0.485 72 in state 1 goes to place 1, clockwise from north, and waits at ['ONE'], "
        "waits at ['TWO'] and ['THREE']; in state 2 goes to place 1, clockwise from north, and waits at ['ONE'], waits "
        "at ['TWO'] and ['THREE']; in state 3 goes to place 1, clockwise from north, and waits at ['ONE'], waits at "
        "['TWO'] and ['THREE']; in state 4 goes to place 1, clockwise from north, and waits at ['ONE'], waits at "
        "['TWO'] and ['THREE']. Next state: from 1 most punished THREE at 1 -> 1, from 1 unpaid THREE at 1 -> 1 (places "
        "clockwise from straight ahead)",
        "0.3336 46 4271 0.333 0.210 0.485 72 in state 1 goes to place 1, clockwise from north, and waits at ['ONE'] and"
        " ['THREE'], waits at ['TWO']; in state 2 goes to place 1, clockwise from north, and waits at ['ONE'], waits at"
        " ['TWO'] and ['THREE']. Next state: from 1 most punished THREE at nowhere -> 2, from 1 unpaid THREE at nowhere -> "
        "2, from 1 unpaid TWO at 1 -> 1, from 1 cost TWO at 1 -> 1, from 2 most punished THREE at nowhere -> 1, from 2 "
        "unpaid THREE at nowhere -> 1 (places clockwise from north)",
        "0.3336 30 4016 0.333 0.210 0.485 72 waits at ['ONE'] and ['THREE'], goes to place 1, clockwise from north, and"
        " waits at ['TWO']",
    ],
    "sample": [
        "5 [77, 67] 8 26244",
        "0.0001 1 5680 0.000 0.000 0.094 64 waits",
        "0.0501 34 7427 0.062 0.019 0.188 64 in state 1 goes to cup 4, clockwise from its own side, and waits at [* "
        "x1], goes to cup 1, clockwise from north, and waits at [plain]; in state 2 goes to cup that shows o 2, "
        "clockwise from north, then on anticlockwise at [* x1], goes to cup 2, clockwise from north, and waits at "
        "[plain]. Next state: unpaid -> 2, well paid -> 1, best paid -> 1",
        "0.0876 10 5575 0.062 0.015 0.222 64 in state 1 goes to the nearest cup of 2 from number 3 on, clockwise "
        "from north, then to the others at [* x1], goes to cup 1, clockwise from straight ahead, and waits at "
        "[plain]; in state 2 goes to cup 4, clockwise from straight ahead, and waits at [* x1], goes to cup 1, "
        "clockwise from north, and waits at [plain]. Next state: at 1 2 -> 2, at 4 3 -> 1 (places clockwise from o)",
        "0.1252 83 6292 0.156 0.063 0.338 64 in state 1 goes to the nearest cup of 2 from number 2 on, clockwise "
        "from its own side, then to the others at [* x1], goes to the nearest cup of 2 from number 3 on, clockwise "
        "from its own side, then to the others at [plain]; in state 2 goes to cup that shows * 1, clockwise from "
        "north, and waits at [* x1], goes to cup 1, clockwise from its own side, and waits at [plain]. Next state: "
        "from 1 unpaid at 1 4 -> 1, from 1 unpaid at 2 3 -> 2, from 1 well paid at 1 4 -> 1, from 1 well paid at 2 "
        "-> 2, from 1 best paid at 1 4 -> 1, from 1 best paid at 2 -> 2, from 2 well paid at 1 4 -> 1, from 2 well "
        "paid at 2 3 -> 2, from 2 best paid at 1 -> 1, from 2 best paid at 2 3 -> 2 (places clockwise from north)",
        "0.0001 52 4197 0.000 0.000 0.094 64 in state 1 goes to cup 1, clockwise from north, and waits at [* x1], "
        "waits at [plain]; in state 2 goes to cup 2, clockwise from north, and waits at [* x1], waits at [plain]; in "
        "state 3 goes to cup 3, clockwise from north, and waits at [* x1], waits at [plain]; in state 4 goes to cup "
        "4, clockwise from north, and waits at [* x1], waits at [plain]. Next state: from 1 unpaid at 1 -> 1, from 1 "
        "well paid at 1 -> 1 (places clockwise from north)",
        "0.0876 67 5547 0.094 0.035 0.229 64 in state 1 goes to cup 3, by distance from itself, and waits at [* x1], "
        "goes to cup 1, clockwise from straight ahead, and waits at [plain]; in state 2 goes to the nearest cup that "
        "shows o of 2 from number 3 on, clockwise from its own side, then to the others at [* x1], goes to cup 3, "
        "clockwise from north, and waits at [plain]. Next state: from 1 unpaid at 1 3 -> 2, from 1 unpaid at 2 -> 1, "
        "from 1 well paid at 4 -> 2, from 2 unpaid at 3 -> 2, from 2 well paid at 3 -> 2 (places clockwise from near "
        "o)",
        "0.0001 68 5440 0.000 0.000 0.094 64 waits",
    ],
}


def film(of: ArenaParadigm) -> list[str]:
    world = Experience(of, 3, 40)
    each = [len(own) for own in world.aims]
    lines = [f"{len(world.met)} {each} {len(world.zeros)} {world.spent:.0f}"]
    for memory in MEMORIES:
        before, search = world.spent, Search(world, memory, 0, 4000)
        score, automaton = search.find()
        spent, used = world.spent - before, Counter[tuple[int, int, int]]()
        fresh = confirmed(world, automaton, 5, 0.001, used)
        real = f"{fresh.value:.3f} {fresh.low:.3f} {fresh.high:.3f} {fresh.trials}"
        rule = words(world, automaton, used)
        lines.append(f"{score:.4f} {search.tried} {spent:.0f} {real} {rule}")
    return lines


@pytest.mark.parametrize("name", TASKS)
def test_what_is_found_and_its_effort_are_written_down(name: str) -> None:
    """A change of the search that is meant changes these lines."""
    assert film(TASKS[name]) == FOUND[name]


@pytest.fixture(scope="module")
def small() -> Experience:
    world = Experience(TASKS["chamber"], 3, 40, counts=False)
    assert [world.code(paid, ()) for paid in (0.0, 1.0)] == [0, 1]
    return world


def test_a_larger_memory_begins_as_what_a_smaller_one_has_learnt(
    small: Experience,
) -> None:
    search = Search(small, Memory("any", 4), 0, 1)
    two = Automaton(Memory("any", 2), [[0, 1] for _ in small.kind_of], zero=1)
    two.table = {(0, 0, -1): 1, (1, 1, 0): 0}
    grown = search._grown(two)
    assert (grown.memory, grown.zero) == (Memory("any", 4), 1)
    assert grown.aims == [[0, 1, 0, 1] for _ in small.kind_of]
    assert grown.rules == {
        (0, 0, -1): 1,
        (2, 0, -1): 1,
        (1, 1, 0): 0,
        (3, 1, 0): 0,
    }
    # Where there was a single state, about half of the rules are drawn.
    one = Automaton(Memory("nothing"), [[2] for _ in small.kind_of])
    grown = search._grown(one)
    assert grown.aims == [[2] * 4 for _ in small.kind_of]
    keys = search._keys()
    assert len(keys) / 4 < len(grown.rules) < 3 * len(keys) / 4
    assert set(grown.rules.values()) <= {0, 1, 2, 3}
    assert len(set(grown.rules.values())) > 1


def test_a_search_with_beginnings_starts_from_the_last_one(small: Experience) -> None:
    begin = [
        Automaton(Memory("nothing"), [[90 + zero] for _ in small.kind_of], zero)
        for zero in (0, 1)
    ]
    search = Search(small, Memory("any", 2), 0, 1, begin)
    assert search._start(is_first=True).aims == [[91, 91] for _ in small.kind_of]
    starts = [search._start(is_first=False) for _ in range(60)]
    alike = [[[aim, aim] for _ in small.kind_of] for aim in (90, 91)]
    grown = [one for one in starts if one.aims in alike]
    assert {one.zero for one in grown} == {0, 1}
    assert 6 < len(grown) < 40
    own = [one.zero for one in starts if one not in grown]
    assert own.count(1) > len(own) / 3, "the zero of the last one, or any"
    assert set(own) > {1}


def test_states_show_what_complements_best_or_a_sample(small: Experience) -> None:
    search = Search(small, Memory("any", 2), 0, 1)
    search._repertoire = [(0,), (1,), (2,), (3,)]
    pairs = [search._behaviours() for _ in range(200)]
    assert all(len({*one}) == 2 for one in pairs)
    best = pairs.count([(0,), (1,)])
    assert 40 < best < 80, "a quarter, and some of the samples"
    search._repertoire = [(5,)]
    assert search._behaviours() == [(5,), (5,)]


def test_of_many_aims_the_promising_and_some_others_are_tried(
    small: Experience,
) -> None:
    every = [*range(OPTIONS + 30)]
    for states, number in ((1, len(every)), (2, OPTIONS)):
        search = Search(small, Memory("any", states), 0, 1)
        search._options, search._promising = [every], {0: every[::-1]}
        some = search._some(0)
        assert len({*some}) == len(some) == number
        if states == 2:
            assert some[:PROMISING] == every[: -PROMISING - 1 : -1]
        search._options = [every[:OPTIONS]]
        assert search._some(0) == every[:OPTIONS]


def test_of_a_measure_each_group_of_subjects_is_one_value() -> None:
    world = cast(Experience, SimpleNamespace(measure="much"))
    found = _fresh(world, [(2.0, 4), (3.0, 4), (0.0, 0)])
    assert (found.value, found.trials) == (0.625, 8)
    error = 2.5758 * statistics.stdev([0.5, 0.75]) / 2**0.5
    assert (found.low, found.high) == pytest.approx(
        (0.625 - error, 0.625 + error), abs=1e-4
    )
    alone = _fresh(world, [(3.0, 4)])
    assert alone.low < -1e8
    assert alone.high > 1e8
    assert alone.passes(0.7) is None
