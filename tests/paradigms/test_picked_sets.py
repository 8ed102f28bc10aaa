"""`pick` with `sample`: a random part of a group, or of a set that an earlier draw has
picked.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from cheesebench.interfaces import STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import Adversary
from cheesebench.paradigms.arena.audit.exact import upper_bound
from cheesebench.paradigms.arena.audit.hypotheses import OpenSequence, Script
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification
from tests.arenas import examine_text

PROTOCOL = """
version: 1
paradigm: parts
arena:
  map: "S12345"
  legend: {S: box, 1: one, 2: two, 3: three, 4: four, 5: five}
  groups: {site: [one, two, three, four, five]}
draw:
  baits: {per: subject, sample: site, pick: 4, into: [baits]}
  today: {per: session, sample: baits, pick: 2, into: [today]}
  lamp: {sample: today, into: [lamp]}
start: {at: box, face: random}
trial:
  limit: 15
  start: run
  states:
    run:
      show: {lamp: "*"}
      rules: [{enter: site, if: it in today, reward: 1, end: found}, {enter: site, end: missed}, {act: STAY, end: gone}]
schedule: {only: {sessions: 4, trials: 2}}
success: last == found
measures: {baited: size(baits), lamp: lamp}
"""
SITES = ("one", "two", "three", "four", "five")


def specification(*changes: tuple[str, str]) -> Specification | None:
    text = PROTOCOL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return examine_text(text, "parts.protocol.yaml")[0]


def drawn(subject: int) -> list[tuple[frozenset[str], frozenset[str], str]]:
    """Return the draws of a subject's trials: the baits, those of the session, and the
    lamp.
    """
    found = specification()
    assert found is not None
    paradigm = ArenaParadigm(found)
    life = ArenaSubject(
        paradigm.program, installed_plugins().view("ascii_2d"), 3, subject
    )
    trials = []
    for _ in range(8):
        life.begin_trial()
        life.step(STAY)
        trials.append((life.values["baits"], life.values["today"], life.values["lamp"]))
    return trials


def test_a_set_is_part_of_the_set_before() -> None:
    baits, todays, lamps = Counter[str](), Counter[frozenset[str]](), Counter[str]()
    for subject in range(60):
        trials = drawn(subject)
        assert len({own for own, _, _ in trials}) == 1, "per subject"
        for (own, today, lamp), (_, again, _) in zip(
            trials[::2], trials[1::2], strict=True
        ):
            assert today == again, "per session"
            assert lamp in today < own < {*SITES}
            assert (len(own), len(today)) == (4, 2)
            todays[today] += 1
            lamps[lamp] += 1
        baits.update(trials[0][0])
        assert drawn(subject) == trials, "the seed says it"
    assert set(todays) == {frozenset(pair) for pair in combinations(SITES, 2)}
    assert all(40 <= count <= 57 for count in baits.values()), (
        "each of five in 4 of 5 subjects"
    )
    assert set(lamps) == {*SITES}


def test_the_lesion_audit_knows_every_part() -> None:
    found = specification()
    assert found is not None
    draw = next(one for one in found.draws if one.name == "today")
    script = Script()
    ways = list(
        script.all_of(lambda: OpenSequence(draw, script).next(("four", "one", "two")))
    )
    assert {row for _, row in ways} == {
        (frozenset(pair),) for pair in combinations(("four", "one", "two"), 2)
    }
    assert [chance for chance, _ in ways] == pytest.approx([1 / 3] * 3)


#: No rule names the lasting set; its only effect is on later deals.
UNNAMED = """
version: 1
paradigm: unnamed
arena:
  map: |
    ###1###
    ###.###
    2..S..3
    ###.###
    ###4###
  legend: {S: box, 1: one, 2: two, 3: three, 4: four}
  groups: {site: [one, two, three, four]}
draw:
  baits: {per: subject, pick: 2, of: {baits: [one, two, three, four]}}
  goal: {sample: baits, into: [goal]}
start: {at: box, face: N}
trial:
  limit: 20
  start: run
  states:
    run:
      show: {goal: "*"}
      rules: [{enter: goal, reward: 1, end: found}, {enter: site, end: missed}]
schedule: {only: {sessions: 1, trials: 4}}
success: last == found
"""


def paradigm(text: str) -> ArenaParadigm:
    found, diagnostics = examine_text(text, "unnamed.protocol.yaml")
    assert found is not None, diagnostics
    return ArenaParadigm(found)


@pytest.mark.parametrize("lesion", ["blind", "intact", "hide=site"])
def test_the_lesion_audit_remembers_a_set_that_no_rule_names(lesion: str) -> None:
    adversary = Adversary(paradigm(UNNAMED), Lesion.parse(lesion), 1.0)
    lived = [
        trial.success for subject in range(6) for trial in adversary.live(5, subject, 4)
    ]
    # The blind learn the two possible places, and then choose one of them.
    assert sum(lived) == 24 if lesion == "intact" else 24 / 4 < sum(lived) < 24


@pytest.mark.parametrize(
    ("lesion", "most"),
    [
        ("intact", 1.0),
        ("hide=site", 0.5),
        ("hide=site+anhedonia", 0.25),
        ("hide=text", 1.0),
    ],
)
def test_what_a_lesion_leaves(lesion: str, most: float) -> None:
    assert upper_bound(
        Adversary(paradigm(UNNAMED), Lesion.parse(lesion), 1.0)
    ) == pytest.approx(most)


def test_scrambled_cues_tell_nothing_of_what_was_dealt_out() -> None:
    parts = UNNAMED.replace("trials: 4", "trials: 400")
    life = (
        paradigm(parts)
        .with_cues("cue-shuffled", 3)
        .environment(installed_plugins().view("ascii_2d"), 3, 0)
    )
    assert isinstance(life, ArenaSubject)
    right = 0
    places = {"one": (0, 3), "two": (2, 0), "three": (2, 6), "four": (4, 3)}
    while (observation := life.begin_trial()) is not None:
        row, column = places[life.values["goal"]]
        right += observation.splitlines()[row][column] == "*"
        life.step(STAY)
        while life.outcome is None:
            life.step(STAY)
    assert 60 < right < 140, "one in four"


MISTAKES = {
    "more than there are": (
        ("pick: 4", "pick: 6"),
        "'baits' picks 6 members of 'site', which has 5",
    ),
    "more than a set has": (
        ("pick: 2", "pick: 5"),
        "'today' picks 5 members of 'baits', which has 4",
    ),
    "two variables": (
        ("into: [baits]", "into: [baits, more]"),
        "With 'pick', 'baits' is one set",
    ),
    "an order": (
        ("pick: 2", "pick: 2, order: shuffle"),
        "'order' and 'max_run' do not go with it",
    ),
    "with replacement": (
        ("pick: 4", "pick: 4, distinct: false"),
        "'pick' draws without replacement",
    ),
    "a set out of itself": (
        ("sample: site, pick: 4", "sample: baits, pick: 1"),
        "There is no group or previously drawn set 'baits'",
    ),
    "a set that comes later": (
        ("sample: site, pick: 4", "sample: today, pick: 1"),
        "'today' is not picked yet",
    ),
}


@pytest.mark.parametrize(("change", "said"), MISTAKES.values(), ids=list(MISTAKES))
def test_mistakes(change: tuple[str, str], said: str) -> None:
    found, diagnostics = examine_text(PROTOCOL.replace(*change), "parts.protocol.yaml")
    assert found is None
    assert any(said in str(one) for one in diagnostics), [
        str(one) for one in diagnostics
    ]
