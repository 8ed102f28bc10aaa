"""The same world with other cues, and yoked subjects: a control may change only the
thing that it names.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from cheesebench.interfaces import RUNNING, CueControl, SubjectEnvironment
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena
from tests.arenas import examine_text

CATALOGUE = Catalogue(installed_plugins().protocol_directories)
VIEW = installed_plugins().view("ascii_2d")
SHIPPED = list(CATALOGUE.files)
#: Number of trials, and the seed.
TRIALS, SEED = 6, 5


SIGNS = """
version: 1
paradigm: signs
arena: {map: "#zxy#", legend: {z: left, x: middle, y: right}}
vars: {sign: "a"}
start: {at: middle, face: E}
trial:
  limit: 5
  start: one
  states:
    one:
      show: {left: sign}
      rules: [{enter: right, set: {sign: b}, end: correct}]
schedule: {main: {trials: 1}}
success: last == correct
"""


class Step(NamedTuple):
    """The result of one step."""

    action: int
    observation: str
    reward: float
    status: int


class Trial(NamedTuple):
    """The result of one trial."""

    first: str
    steps: list[Step]
    result: object


def compiled(name: str) -> ArenaParadigm:
    return ArenaParadigm(with_arena(CATALOGUE.load(CATALOGUE.files[name])))


def lived(
    life: SubjectEnvironment,
    trials: int = TRIALS,
    actions: list[list[int]] | None = None,
) -> list[Trial]:
    """Live with random actions, or with these."""
    chance = random.Random(1)
    found = []
    for number in range(trials):
        first = life.begin_trial()
        if first is None:
            break
        steps: list[Step] = []
        while not steps or steps[-1].status == RUNNING:
            action = (
                actions[number][len(steps)]
                if actions
                else chance.choice([0, 0, 0, 1, 2, 3])
            )
            steps.append(Step(action, *life.step(action)))
        found.append(Trial(first, steps, life.result()))
    return found


@pytest.mark.parametrize("how", ["cue-off", "cue-shuffled", "labels-swapped"])
@pytest.mark.parametrize("name", SHIPPED)
def test_cue_controls_change_nothing_but_what_is_seen(
    name: str, how: CueControl
) -> None:
    paradigm = compiled(name)
    plain = lived(paradigm.environment(VIEW, SEED, 1))
    control = lived(paradigm.with_cues(how, SEED).environment(VIEW, SEED, 1))
    for one, other in zip(plain, control, strict=True):
        assert one.result == other.result
        assert [(s.action, s.reward, s.status) for s in one.steps] == [
            (s.action, s.reward, s.status) for s in other.steps
        ]


@pytest.mark.parametrize("name", SHIPPED)
def test_swapped_labels_mean_as_much_as_before(name: str) -> None:
    paradigm = compiled(name)
    plain = lived(paradigm.environment(VIEW, SEED, 1))
    swapped = lived(
        paradigm.with_cues("labels-swapped", SEED).environment(VIEW, SEED, 1)
    )
    pairs = {
        pair
        for one, other in zip(plain, swapped, strict=True)
        for pair in [
            (one.first, other.first),
            *zip((s[1] for s in one.steps), (s[1] for s in other.steps), strict=True),
        ]
    }
    assert (
        len({one for one, _ in pairs})
        == len({other for _, other in pairs})
        == len(pairs)
    ), "one to one"


CUED = """
version: 1
paradigm: cued
arena:
  map: |
    #######
    #L.S.R#
    #######
  legend: {L: left, R: right, S: {zone: box, glyph: "b"}}
  groups: {arm: [left, right]}
  landmarks: {N: "1", E: "2", S: "3"}
vars: {lit: none}
draw: {side: {of: {side: [left, right], sign: ["*", "%"]}}}
start: {at: box, face: N}
trial:
  limit: 8
  start: cue
  states:
    cue: {say: look, set: {lit: side}, show: {lit: "!", box: sign}, freeze: true, rules: [{after: 2, go: run}]}
    run: {say: go, rules: [{enter: side, reward: 1, end: right_one}, {enter: arm, end: wrong}]}
schedule: {one: {trials: 200}}
success: last == right_one
"""


@pytest.fixture
def cued() -> ArenaParadigm:
    specification, found = examine_text(CUED, "cued.protocol.yaml")
    assert specification is not None, found
    return ArenaParadigm(specification)


def test_without_cues_there_is_the_place_alone(cued: ArenaParadigm) -> None:
    life = cued.with_cues("cue-off", 0).environment(VIEW, 0, 0)
    assert life.begin_trial() == "#######\n#..↑..#\n#######"


def test_labels_are_swapped_among_themselves(cued: ArenaParadigm) -> None:
    plain, swapped = (
        cued.environment(VIEW, 0, 0),
        cued.with_cues("labels-swapped", 0).environment(VIEW, 0, 0),
    )
    one, other = plain.begin_trial(), swapped.begin_trial()
    assert one is not None
    assert other is not None
    assert one != other
    assert one.splitlines()[-1] == "look"
    assert other.splitlines()[-1] in ("go", "zup")
    labels = set("b123*%!QXKJZVWY")
    assert [a in labels for a in "".join(one.splitlines()[:-1])] == [
        a in labels for a in "".join(other.splitlines()[:-1])
    ]


def test_a_label_that_a_rule_assigns_is_swapped_too() -> None:
    specification, found = examine_text(SIGNS, "signs.protocol.yaml")
    assert specification is not None, found
    paradigm = ArenaParadigm(specification)
    seen = []
    for one in (paradigm, paradigm.with_cues("labels-swapped", 0)):
        life = one.environment(VIEW, 0, 0)
        first = life.begin_trial()
        assert first is not None
        seen.append((first[1], life.step(0)[0][1]))
    assert seen[0] == ("a", "b")
    assert seen[1][0] != "a"
    assert seen[1][1] != "b"
    assert seen[1][0] != seen[1][1]


def test_new_cues_tell_nothing(cued: ArenaParadigm) -> None:
    life = cued.with_cues("cue-shuffled", 0).environment(VIEW, 0, 0)
    assert isinstance(life, ArenaSubject)
    tally = {True: 0, False: 0}
    texts, landmarks = set(), set()
    while (observation := life.begin_trial()) is not None:
        rows = observation.splitlines()
        texts.add(rows[-1])
        landmarks.add("".join(c for c in observation if c in "123"))
        if "!" in rows[1]:
            tally[(rows[1][1] == "!") == (life.values["side"] == "left")] += 1
    assert texts == {"look", "go"}, "of either state"
    assert len(landmarks) == 6, "in every order"
    assert min(tally.values()) > 25, tally


@pytest.mark.parametrize("name", SHIPPED)
def test_who_is_yoked_to_its_own_life_lives_it_again(name: str) -> None:
    paradigm = compiled(name)
    plain = lived(paradigm.environment(VIEW, SEED, 1))
    actions = [[step.action for step in trial.steps] for trial in plain]
    again = lived(paradigm.yoked_environment(VIEW, SEED, 1, actions), actions=actions)
    assert [trial.steps for trial in again] == [trial.steps for trial in plain]


@pytest.mark.parametrize("name", SHIPPED)
def test_who_is_yoked_gets_what_the_master_gets(name: str) -> None:
    paradigm = compiled(name)
    plain = lived(paradigm.environment(VIEW, SEED, 1))
    actions = [[step.action for step in trial.steps] for trial in plain]
    still = [[3] * len(trial) for trial in actions]
    yoked = lived(paradigm.yoked_environment(VIEW, SEED, 1, actions), actions=still)
    for master, other in zip(plain, yoked, strict=True):
        assert [(s.reward, s.status) for s in master.steps] == [
            (s.reward, s.status) for s in other.steps
        ]


def test_a_yoked_subject_is_judged_by_what_it_would_have_done(
    cued: ArenaParadigm,
) -> None:
    master = cued.environment(VIEW, 3, 0)
    assert isinstance(master, ArenaSubject)
    master.begin_trial()
    right = 2 if master.values["side"] == "right" else 1
    # Two steps of waiting, then half a turn to the side and two steps into the arm.
    correct, wrong = [3, 3, right, right, 0, 0], [3, 3, 3 - right, 3 - right, 0, 0]
    for mine, outcome in (
        (correct, "right_one"),
        (wrong, "wrong"),
        ([3] * 6, "timeout"),
    ):
        [trial] = lived(cued.yoked_environment(VIEW, 3, 0, [correct]), 1, [mine])
        assert sum(step.reward for step in trial.steps) == 1, "the master's"
        assert getattr(trial.result, "outcome", None) == outcome


#: The position when the clock ends the trial decides.
CLOCKED = """
version: 1
paradigm: clocked
arena: {map: "#S.EEE#", legend: {S: west, E: east}, groups: {side: [west, east]}, headings: 4}
start: {at: west, face: E}
trial:
  limit: 12
  start: run
  states:
    run: {rules: [{after: 8, if: where(side) == east, reward: 1, end: there}, {after: 8, end: here}]}
schedule: {only: {trials: 20}}
success: last == there
"""


def test_a_yoked_subject_is_judged_by_where_it_is_when_the_clock_ends_the_trial() -> (
    None
):
    specification, found = examine_text(CLOCKED)
    assert specification is not None, found
    paradigm = ArenaParadigm(specification)
    plain = lived(paradigm.environment(VIEW, SEED, 1), 20)
    actions = [[step.action for step in trial.steps] for trial in plain]
    crossed = {"there"}
    assert crossed <= {getattr(trial.result, "outcome", None) for trial in plain}
    yoked = lived(
        paradigm.yoked_environment(VIEW, SEED, 1, actions),
        20,
        [[3] * len(trial) for trial in actions],
    )
    assert {getattr(trial.result, "outcome", None) for trial in yoked} == {"here"}, (
        "it never goes there"
    )
