"""The least memory that passes: planted rules are found, and two traps are not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from cheesebench.interfaces import AuditFinding, AuditSettings
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import automata, reflexes
from cheesebench.paradigms.arena.audit.automata import (
    Automaton,
    Experience,
    Memory,
)
from cheesebench.paradigms.arena.audit.climbing import (
    Fresh,
    Search,
    confirmed,
    without_memory,
)
from cheesebench.paradigms.arena.audit.memory import (
    Found,
    _finding,
    _or_smaller,
    audit_memory,
    classes,
    name_of,
)
from cheesebench.paradigms.arena.audit.reflexes import Reflexes
from cheesebench.protocol import load_protocol, with_arena
from cheesebench.protocol.validation import construct_status, passed_by
from tests.arenas import examine_text

#: A rotated chamber: a lamp tells the lever, possibly the other one.
CHAMBER = """
version: 1
paradigm: chamber
arena:
  map: |
    ##A##
    #...#
    #.S.#
    #...#
    ##B##
  legend: {A: {solid: north, glyph: "L"}, B: {solid: south, glyph: "L"}, S: centre}
  groups: {lever: [north, south]}
  landmarks: {east: {at: [4, 2]}, west: {at: [0, 2]}}
  headings: 4
vars: {active: none}
draw:
  contingency: {per: subject, order: balanced, of: {place: [0, 1]}}
  turn: {per: trial, of: {turn: [0, 1], c1: [east, west], c2: [west, east]}}
start: {at: centre, face: random}
trial:
  limit: 20
  start: choice
  show: {c1: "1", c2: "2"}
  states:
    choice:
      set: {active: "member(lever, (place + turn) % 2 + 1)"}
      rules:
        - {press: active, reward: 1, end: fed}
        - {press: lever, end: unfed}
schedule: {main: {trials: 20}}
success: last == fed
margin: 0.1
reference: [{measure: success, value: 0.75, status: made up}]
construct: {name: choice, kind: learning, abolished_by: [{lesion: anhedonia, at_most: 0.5}]}
"""
#: Food for the lever that was not pressed last, so that the right answer depends on
#: behaviour.
ALTERNATION = (
    ("vars: {active: none}", "vars: {active: none, at: {init: none, per: subject}}"),
    ('set: {active: "member(lever, (place + turn) % 2 + 1)"}', "set: {active: at}"),
    ("press: active, reward: 1, end: fed", "press: active, end: unfed"),
    ("press: lever, end: unfed", "press: lever, set: {at: it}, reward: 1, end: fed"),
)
#: Food for three presses and then the other lever; and for a press after a while.
COUNTED = (
    ("press: active, reward: 1, end: fed", "press: north, count: presses"),
    (
        "- {press: lever, end: unfed}",
        "- {press: south, if: presses == 3, reward: 1, end: fed}\n"
        "        - {press: south, end: unfed}",
    ),
    ("limit: 20", "limit: 40"),
)
WAITED = (("press: active,", "press: south, if: steps > 12 and steps < 18,"),)
#: Three words in a trial. Each subject has a word of its own: a press is rewarded there
#: and punished elsewhere, and missing the word is punished, too.
WORDS = """
version: 1
paradigm: words
arena:
  map: |
    ##A##
    #...#
    #.S.#
    #####
  legend: {A: {solid: lever, glyph: "L"}, S: box}
  headings: 4
draw: {own: {per: subject, order: balanced, of: {own: [one, two, three]}}}
start: {at: box, face: N}
trial:
  limit: 40
  start: first
  states:
    first:
      say: ONE
      rules:
        - {press: lever, if: own == one, count: hits, go: second}
        - {press: lever, count: errors, reward: -0.1, go: second}
        - {after: 5, if: own == one, count: errors, reward: -1, go: second}
        - {after: 5, go: second}
    second:
      say: TWO
      rules:
        - {press: lever, if: own == two, count: hits, go: third}
        - {press: lever, count: errors, reward: -0.1, go: third}
        - {after: 5, if: own == two, count: errors, reward: -1, go: third}
        - {after: 5, go: third}
    third:
      say: THREE
      rules:
        - {press: lever, if: own == three and errors == 0, end: done}
        - {press: lever, reward: -0.1, end: failed}
        - {after: 5, if: own == three, reward: -1, end: failed}
        - {after: 5, if: hits == 1 and errors == 0, end: done}
        - {after: 5, end: failed}
schedule: {main: {trials: 12}}
success: last == done
"""
#: Food is in the third of eight arms, clockwise from the arm with a star. Another arm
#: shows another glyph.
DECOY = """
version: 1
paradigm: decoy
arena: {radial: {arms: 8, length: 1, width: 1, hub: 2}}
draw:
  star:
    of:
      star: [cup1, cup2, cup3, cup4, cup5, cup6, cup7, cup8]
      goal: [cup4, cup5, cup6, cup7, cup8, cup1, cup2, cup3]
  decoy: {of: {decoy: [cup1, cup2, cup3, cup4, cup5, cup6, cup7, cup8]}}
start: {at: centre, face: random}
trial:
  limit: 30
  start: run
  states:
    run:
      show: {decoy: "%", star: "*"}
      rules: [{enter: goal, reward: 1, end: found}, {enter: cup, end: missed}]
schedule: {main: {trials: 12}}
success: last == found
"""
#: The third of four windows is rewarded, but after a small reward the first one is.
TIPS = """
version: 1
paradigm: tips
arena:
  map: |
    ##A##
    #...#
    B.M.C
    #...#
    ##D##
  legend:
    A: {solid: w1, glyph: "="}
    B: {solid: w2, glyph: "="}
    C: {solid: w3, glyph: "="}
    D: {solid: w4, glyph: "="}
    M: middle
  groups: {window: [w1, w2, w3, w4]}
  headings: 4
vars: {tip: {init: w3, per: subject}, goal: none}
draw:
  size: {of: {is_large: [1, 0]}}
  odd: {of: {is_odd: [0, 1]}, weights: [17, 3]}
  any: {of: {other: [w1, w2, w3, w4]}}
start: {at: middle, face: random}
trial:
  limit: 30
  start: [{if: is_odd == 1, go: odd}, plain]
  watch:
    - {press: goal, if: is_large == 1, reward: 1, set: {tip: w3}}
    - {press: goal, if: is_large == 0, reward: 0.25, set: {tip: w1}}
  states:
    plain:
      set: {goal: tip}
      rules: [{press: goal, end: fed}, {press: window, set: {tip: w3}, end: unfed}]
    odd:
      set: {goal: other}
      rules: [{press: goal, end: fed}, {press: window, set: {tip: w3}, end: unfed}]
schedule: {main: {trials: 20}}
success: last == fed
"""
ALLOWED = ("kind: learning,", "kind: learning, allows: outcome,")
TWO_IN_A_ROW = ("success: last == fed", "success: recent(fed, 2) == 2")


def chamber(*changes: tuple[str, str]) -> ArenaParadigm:
    text = CHAMBER
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return paradigm(text)


def paradigm(text: str) -> ArenaParadigm:
    specification, found = examine_text(text, "chamber.protocol.yaml")
    assert specification is not None, found
    return ArenaParadigm(specification)


def rows(of: ArenaParadigm, effort: float = 0.02) -> dict[str, AuditFinding]:
    settings = AuditSettings(effort=effort)
    found = audit_memory(of, settings)
    return {one.rule.removeprefix("memory: "): one for one in found}


def test_a_rule_that_knows_only_what_was_paid_is_found_and_takes_the_badge(
    tmp_path: Path,
) -> None:
    found = rows(chamber(), 0.08)
    outcome, nothing = found["outcome, 1 bit"], found["nothing"]
    assert nothing.numbers["rate"] == pytest.approx(0.5, abs=0.05)
    assert nothing.verdict == found["any, 1 bit"].verdict == "note"
    assert outcome.numbers["rate"] == pytest.approx(0.75, abs=0.05)
    assert outcome.verdict == "FAIL"
    assert outcome.numbers["passes"] is True
    assert "unpaid -> 2" in outcome.text or "unpaid -> 1" in outcome.text
    assert "not an upper bound" in outcome.text
    assert float(str(found["any, 1 bit"].numbers["rate"])) > 0.95

    path = tmp_path / "chamber.protocol.yaml"
    path.write_text(CHAMBER, encoding="utf-8")
    specification = with_arena(load_protocol(path))
    proved = {
        "rule": "lesion: anhedonia",
        "verdict": "ok",
        "numbers": {"at_most": 0.5},
    }
    told = {"rule": outcome.rule, "verdict": "FAIL", "numbers": dict(outcome.numbers)}
    for findings, status in (([proved], "validated"), ([proved, told], "failed")):
        report = {"sha256": specification.sha256, "findings": findings}
        (tmp_path / "chamber.audit.json").write_text(json.dumps(report))
        assert construct_status(specification) == status
    # The file may allow it, but the report must still mention it.
    path.write_text(CHAMBER.replace(*ALLOWED), encoding="utf-8")
    allowing = with_arena(load_protocol(path))
    assert allowing.sha256 == specification.sha256
    assert construct_status(allowing) == "validated"
    for one in (specification, allowing):
        words, rate = passed_by(one) or ("", 0.0)
        assert words == "memory only for what the last trial paid"
        assert rate == outcome.numbers["rate"]
    row = rows(chamber(ALLOWED), 0.02)["outcome, 1 bit"]
    assert row.verdict == "note"


#: Matching to a sample in a plus maze: four places, two bits.
SAMPLE = """
version: 1
paradigm: sample
arena: {radial: {arms: 4, length: 3}}
draw: {place: {sample: cup, into: [goal]}}
start: {at: hub, face: random}
trial:
  limit: 60
  start: sample
  states:
    sample: {show: {goal: "*"}, rules: [{enter: goal, reward: 1, go: delay}, {enter: cup, end: lost}]}
    delay: {place: hub, freeze: true, rules: [{after: 2, go: choice}]}
    choice: {rules: [{enter: goal, reward: 1, end: correct}, {enter: cup, end: error}]}
schedule: {main: {trials: 20}}
success: last == correct
margin: 0.1
reference: [{measure: success, value: 0.75, status: made up}]
construct: {name: place, kind: memory, abolished_by: [{lesion: {amnesia: choice}, at_most: 0.3}]}
"""


def test_a_copy_of_the_sample_is_always_tried() -> None:
    found = rows(paradigm(SAMPLE), 0.1)
    copied = found["any, 2 bits, within the trial"]
    assert copied.numbers["passes"]
    assert float(str(copied.numbers["rate"])) > 0.95
    assert "none that passes was found at effort 0.1" in found["nothing"].text
    assert "not an upper bound: --effort 0.3 tries more" in found["nothing"].text


BRIEF = ("trials: 20", "trials: 5")
#: A press costs little. After two pauses, which look like the choice, it may cost more.
LATE = (
    ("press: active, reward: 1, end: fed", "press: active, reward: -0.25, go: pause"),
    ("press: lever, end: unfed", "press: lever, set: {active: none}, go: pause"),
    (
        "schedule:",
        """    pause: {rules: [{after: 2, go: again}]}
    again: {rules: [{after: 2, go: outcome}]}
    outcome:
      rules:
        - {after: 2, if: active == none, reward: -4, end: unfed}
        - {after: 2, end: fed}
schedule:""",
    ),
)
#: One press pays, and then a second one.
TWO_PARTS = (
    ("press: active, reward: 1, end: fed", "press: lever, reward: 1, go: second"),
    ("- {press: lever, end: unfed}", "- {after: 20, end: unfed}"),
    (
        "schedule:",
        """    second:
      rules:
        - {press: active, reward: 1, end: fed}
        - {press: lever, end: unfed}
schedule:""",
    ),
)


def test_rewards_are_told_apart_by_what_a_whole_life_may_have() -> None:
    # A part of a trial that is rare in the sample (the shock after a press) may have
    # the largest rewards.
    world = Experience(chamber(*LATE, BRIEF), 0, 40)
    told = {reward: world.code(reward, ()) for reward in (-4.0, -0.25, 0.25)}
    assert len({*told.values()}) == 3
    words = {code: what for (what, _), code in world.codes.items()}
    assert words[told[-4.0]] == "punished"
    assert words[told[-0.25]] == "cost"


def test_what_a_trial_of_two_parts_pays_is_more_than_one_of_them() -> None:
    world = Experience(chamber(*TWO_PARTS, BRIEF), 0, 40)
    assert len({world.code(reward, ()) for reward in (0.0, 1.0, 2.0)}) == 3


def test_more_lives_are_led_while_the_bar_is_in_the_interval() -> None:
    world = Experience(chamber(BRIEF), 0, 40)
    goes = next(n for n, aim in enumerate(world.aims[0]) if aim.group >= 0)
    habit = without_memory((goes,) * len(world.kind_of))

    def fresh(bar: float | None) -> Fresh:
        return confirmed(world, habit, 5, 0.002, Counter(), bar)

    once, near, far = fresh(None), fresh(0.5), fresh(0.9)
    assert once == far
    assert far.passes(0.9) is False
    assert near.passes(0.5) is None
    assert near.trials > 10 * once.trials
    assert near.high - near.low < (once.high - once.low) / 3


def test_equal_seeds_find_equal_rules() -> None:
    first, second = (
        Search(Experience(chamber(), 2, 200), Memory("any", 2), 1, 5000).find()
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("changes", "words"),
    [(COUNTED, "3 times; then goes to lever"), (WAITED, "steps, then goes to lever 2")],
)
def test_waits_and_presses_are_counted(
    changes: tuple[tuple[str, str], ...], words: str
) -> None:
    found = rows(chamber(*changes))["nothing"]
    assert found.numbers["rate"] == 1
    assert words in found.text


def test_states_are_behaviours_that_complement_each_other() -> None:
    """To improve on one word, one state must at once give up this word and take
    another.
    """
    found = rows(paradigm(WORDS), 0.05)
    assert found["nothing"].numbers["rate"] == pytest.approx(1 / 3, abs=0.02)
    assert float(str(found["outcome, 1 bit"].numbers["rate"])) >= 0.49
    rates = [float(str(one.numbers["rate"])) for one in found.values()]
    assert min(rates) == found["nothing"].numbers["rate"]


def test_of_too_many_aims_the_best_is_kept() -> None:
    assert rows(paradigm(DECOY), 0.02)["nothing"].numbers["rate"] == 1


def test_what_is_seldom_done_by_chance_may_matter_to_later_trials() -> None:
    """One of the two behaviours is worth nothing alone, so the search must try them as
    a pair.
    """
    world = Experience(paradigm(TIPS), 1, 200)
    assert not world.is_independent
    score, _ = Search(world, Memory("outcome", 2), 1, 300_000).find()
    assert score > 0.8


def test_what_depends_on_what_was_done_is_found() -> None:
    found = rows(chamber(*ALTERNATION))
    assert float(str(found["nothing"].numbers["rate"])) < 0.7
    assert found["place, 1 bit"].numbers["rate"] == 1


@pytest.mark.parametrize("changes", [(TWO_IN_A_ROW,), ALTERNATION])
@pytest.mark.parametrize("name", ["outcome", "place", "any"])
def test_what_depends_on_earlier_trials_is_scored_as_it_is_lived(
    changes: tuple[tuple[str, str], ...],
    name: Literal["outcome", "place", "any"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automata, "JUDGED", 20)  # all trials of a life
    world = Experience(chamber(*changes), 5, 200)
    assert not world.is_independent
    search = Search(world, Memory(name, 2), 1, 2000)
    seeds = [(seed, subject) for seed, subject, _ in world._seeds()]
    seeds = [one for first in range(4) for one in seeds[first::4]]
    seen = set()
    for _ in range(6):
        automaton = search._start(is_first=False)
        search._spell_out(automaton)
        for own, trials in zip(seeds, world.play(automaton), strict=True):
            real, number = world.live(automaton, *own, Counter())
            assert (round(sum(trials)), len(trials)) == (real, number)
            seen.add(real)
    assert len(seen) > 2


def test_the_memoryless_answer_a_picture_always_in_the_same_way() -> None:
    of, lesion = chamber(), Lesion.parse("memoryless")
    subject = Reflexes(of, lesion, 0.02, 1)
    answers: dict[str, set[int]] = {}

    class Watched(reflexes.ReflexiveLife):
        def step(self, action: int) -> tuple[str, float, int]:
            seen, pose = self._seen, self.pose
            result = super().step(action)
            answers.setdefault(seen, set()).add(self._trace.entries[-1] - pose)
            return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reflexes, "ReflexiveLife", Watched)
        lives = [subject.live(seed, seed % 2) for seed in range(12)]
    assert len(answers) > 10
    assert max(map(len, answers.values())) == 1
    passed = sum(one.success for life in lives for one in life)
    assert passed / sum(map(len, lives)) == pytest.approx(0.5, abs=0.12)


def test_moments_are_of_many_lives() -> None:
    """Within a single life, all aims that miss its draw look alike."""
    world = Experience(chamber(), 3, 200)
    (sample,) = world.samples.values()
    assert len({id(one.life.values) for one in sample}) == len(sample)
    assert len({one.life.values["place"] for one in sample}) == 2
    # Each lever, counted from each lamp: 2 levers from north and from lamp 1.
    zeros = {(aim.zero, aim.first) for (aims,) in [world.aims] for aim in aims}
    assert len(zeros) >= 5


@pytest.mark.parametrize(("name", "key"), [("outcome", 1), ("place", 2)])
def test_what_a_table_lacks_is_not_the_state_that_it_was_in(
    name: str, key: int
) -> None:
    world = Experience(chamber(), 3, 200)
    memory = Memory(name, 2)  # type: ignore[arg-type]
    search = Search(world, memory, 0, 1000)
    automaton = Automaton(memory, [[0, 0] for _ in world.kind_of])
    search._score(automaton)
    by_state: dict[tuple[int, ...], set[int]] = {}
    for at, following in automaton.table.items():
        by_state.setdefault(at[1:], set()).add(following)
    assert by_state
    assert all(len(following) == 1 for following in by_state.values())


def test_a_second_decision_is_seen_where_few_aims_lead_to_it() -> None:
    """In dnms only an aim at the lit window does; most aims end the trial."""
    paradigm = ArenaParadigm(with_arena(load_protocol("protocols/dnms.protocol.yaml")))
    found = classes(Experience(paradigm, 5, 4))
    assert [one.clock for one in found if one.name == "any"] == [
        *["trial"] * 2,
        *["life"] * 2,
    ]
    assert Memory("nothing", within=True) in found


def test_who_never_has_a_decision_needs_no_memory() -> None:
    """Every trial is spent where the subject can only wait."""
    frozen = CHAMBER.replace("    choice:\n", "    choice:\n      freeze: true\n")
    frozen = (
        frozen[: frozen.index("      rules:")]
        + (
            "      rules: [{after: 3, if: turn == 0, end: fed}, {after: 3, end: unfed}]\n"
        )
        + frozen[frozen.index("schedule:") :]
    )
    frozen = frozen.replace(
        '      set: {active: "member(lever, (place + turn) % 2 + 1)"}\n', ""
    )
    [finding] = audit_memory(paradigm(frozen), AuditSettings(effort=0.001))
    assert finding.verdict == "note"
    assert finding.text.startswith("no subject has a decision to make")


#: One of two levers pays, and nothing in the picture tells which.
ALIKE = """
version: 1
paradigm: alike
arena:
  map: |
    #####
    A.S.B
    #####
  legend: {A: {solid: west, glyph: "L"}, B: {solid: east, glyph: "L"}, S: box}
  groups: {lever: [west, east]}
  headings: 4
draw: {side: {of: {good: [west, east], bad: [east, west]}}, signs: {of: {own: ["x", "o"], other: ["o", "x"]}}}
start: {at: box, face: random}
trial:
  limit: 20
  start: run
  states:
    run:
      show: {good: "L"}
      rules: [{press: good, reward: 1, end: fed}, {press: lever, end: unfed}]
schedule: {main: {trials: 20}}
success: last == fed
"""


@pytest.mark.parametrize("shown", ['{good: "L"}', "{good: own, bad: other}"])
def test_equal_pictures_are_one(shown: str) -> None:
    own = rows(paradigm(ALIKE.replace('{good: "L"}', shown)))
    assert own["nothing"].numbers["rate"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("memory", "name"),
    [
        (Memory("nothing"), "nothing"),
        (Memory("outcome", 2), "outcome, 1 bit"),
        (Memory("any", 4), "any, 2 bits"),
        (Memory("any", 2, "trial"), "any, 1 bit, within the trial"),
        (Memory("nothing", within=True), "nothing, all of the trial"),
    ],
)
def test_a_class_is_named_by_its_bits(memory: Memory, name: str) -> None:
    assert name_of(memory) == name


def result(low: float, high: float, memory: Memory, aims: int) -> Found:
    automaton = Automaton(memory, [[0] * memory.states for _ in range(aims)])
    return Found(0.5, automaton, Fresh((low + high) / 2, low, high, 400), Counter())


@pytest.mark.parametrize(
    ("memory", "low", "bar", "allowed", "verdict", "passes", "said"),
    [
        (Memory("outcome", 2), 0.7, 0.65, False, "FAIL", True, "it did; let success depend on either, or, if"),
        (Memory("outcome", 2), 0.7, 0.65, True, "note", True, "it did; the file allows it. The"),
        (Memory("outcome", 2), 0.6, 0.65, False, "note", None, "PASS from .65: not settled. The"),
        (Memory("outcome", 2), 0.3, 0.65, False, "note", False, "none that passes was found at effort 0.5. The"),
        (Memory("outcome", 2), 0.7, None, False, "note", False, "in 400 fresh trials. The"),
        (Memory("any", 2), 0.7, 0.65, False, "note", True, "PASS from .65: PASS. The"),
        (Memory("nothing", within=True), 0.7, 0.65, False, "note", True, "PASS from .65: PASS. The"),
    ],
)  # fmt: skip
def test_who_passes_by_the_outcome_alone_takes_the_badge_unless_it_is_allowed(
    memory: Memory,
    low: float,
    bar: float | None,
    allowed: bool,
    verdict: str,
    passes: bool | None,
    said: str,
) -> None:
    short = ("schedule: {main: {trials: 20}}", "schedule: {main: {trials: 2}}")
    of = chamber(short, ALLOWED) if allowed else chamber(short)
    world = Experience(of, 3, 40, counts=False)
    found = result(low, low + 0.1, memory, len(world.kind_of))
    finding = _finding(world, memory, found, bar, 7, 0.5)
    assert (finding.rule, finding.verdict) == (f"memory: {name_of(memory)}", verdict)
    assert said in finding.text
    assert finding.text.endswith(
        "the best of 7 rules that were tried, not an upper bound: --effort 1.5 tries more"
    )
    assert finding.numbers["passes"] is passes
    assert (finding.numbers["rate"], finding.numbers["trials"]) == (
        pytest.approx(low + 0.05),
        400,
    )


def test_a_larger_class_is_no_worse_than_what_it_holds() -> None:
    nothing, place, any_one = Memory("nothing"), Memory("place", 2), Memory("any", 2)
    weak, strong = result(0.3, 0.4, nothing, 1), result(0.6, 0.7, place, 1)
    own = result(0.4, 0.5, any_one, 1)
    assert _or_smaller(own, any_one, []) is own
    assert _or_smaller(own, any_one, [weak]) is own
    assert _or_smaller(own, any_one, [weak, strong]) is strong
    # A memory of places is none of outcomes.
    assert _or_smaller(own, Memory("outcome", 2), [weak, strong]) is own


def test_a_low_measure_is_not_searched_for() -> None:
    measured = (
        "reference: [{measure: success, value: 0.75,",
        "measures: {late: steps}\n"
        "reference: [{measure: late, value: 5, better: lower, margin: 1, range: [1, 20],",
    )
    (found,) = audit_memory(chamber(measured), AuditSettings(effort=0.02))
    assert (found.rule, found.verdict, found.numbers) == ("memory", "note", {})
    assert "asks for a low measure" in found.text
