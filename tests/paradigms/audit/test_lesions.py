"""Rates without a channel, in small tasks whose ceilings can be computed by hand."""

from __future__ import annotations

import itertools
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.interfaces import RUNNING, STAY, AuditSettings
from cheesebench.lesions import INTACT, Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import audit
from cheesebench.paradigms.arena.audit.adversary import Adversary, Lived
from cheesebench.paradigms.arena.audit.beliefs import World
from cheesebench.paradigms.arena.audit.exact import _priors, upper_bound
from cheesebench.paradigms.arena.audit.hypotheses import OpenSequence, Script
from cheesebench.paradigms.arena.audit.lesions import (
    BY_CHANCE,
    CONTRADICTED,
    EXCESS,
    FEWEST,
    LIVES,
    NO_TRIALS,
    SHOWN,
    Ceiling,
    Order,
    _abolished,
    _bound,
    _finding,
    _is_enough,
    _orders,
    _place,
    _shown,
    _sum,
    _targets,
    _told_once,
    _unseen,
    _why_void,
    audit_life_rewards,
    battery,
    measure,
    outlook,
    raised,
    shared,
)
from cheesebench.paradigms.arena.audit.runs import Tally
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.specification import DrawSpec

#: A small effort, because these tasks are small.
EFFORT = 0.05
#: A sufficient number of steps of hypotheses.
ENOUGH = 30_000
Plant = Callable[..., ArenaParadigm]
#: A word tells the lamp, and stays: a subject that forgets the sample can read it.
LEAK = (
    (
        "cue: {freeze",
        "hint: {say: LEFT, rules: [{enter: side, reward: 1, end: correct}, {enter: arm, end: error}]}\n"
        "    cue: {freeze",
    ),
    (
        "rules: [{after: 3, go: choice}]",
        "rules: [{after: 3, if: side == left, go: hint}, {after: 3, go: choice}]",
    ),
)
#: One side for life, which nothing shows.
LEARNT = (
    ("side: {of", "side: {per: subject, order: by_subject, of"),
    (', show: {side: "*"}', ""),
)


def bound(paradigm: ArenaParadigm, lesion: str) -> float | None:
    return upper_bound(Adversary(paradigm, Lesion.parse(lesion), 1.0))


def found(paradigm: ArenaParadigm, lesion: str, seed: int = 0) -> Ceiling:
    return measure(paradigm, Order(Lesion.parse(lesion), EFFORT, seed))


@pytest.mark.parametrize(
    ("lesion", "ceiling"),
    [
        ("intact", 1.0),
        ("anhedonia", 1.0),
        ("amnesia=trial", 1.0),
        ("amnesia=choice", 0.5),
        ("hide=arm", 0.5),
        ("pose-only", 0.5),
    ],
)
def test_a_choice_of_two_is_proven_and_found(
    plant: Plant, lesion: str, ceiling: float
) -> None:
    paradigm = plant()
    assert bound(paradigm, lesion) == pytest.approx(ceiling)
    rate = found(paradigm, lesion).found
    assert rate.trials == 160
    assert rate.value == 1 if ceiling == 1 else rate.low <= ceiling <= rate.high


@pytest.mark.parametrize(("at_most", "share"), [(None, 1.0), (0.4, 1.0), (0.6, SHOWN)])
def test_lives_that_only_illustrate_a_proof_get_little_effort(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, at_most: float | None, share: float
) -> None:
    live, efforts = Adversary.live, set[float]()

    def noted(self: Adversary, *given: Any) -> list[Lived]:
        efforts.add(self.planner.effort)
        return live(self, *given)

    monkeypatch.setattr(Adversary, "live", noted)
    order = Order(Lesion.parse("amnesia=choice"), EFFORT, 0, at_most=at_most, trials=40)
    measure(plant(), order)
    assert efforts == {EFFORT * share}


def test_the_blind_guess_one_of_two_arms(plant: Plant) -> None:
    rate = found(plant(), "blind").found
    assert rate.low <= 0.5 <= rate.high


def test_a_leak_is_used(plant: Plant) -> None:
    paradigm = plant(*LEAK)
    assert bound(paradigm, "amnesia=choice+amnesia=hint") == 1
    assert bound(paradigm, "amnesia=hint") == 1  # half of the trials bypass it
    assert found(paradigm, "amnesia=choice+amnesia=hint").found.value == 1
    assert found(paradigm, "hide=arm+hide=text").found.value < 0.7
    assert found(paradigm, "hide=arm").found.value == 1


def test_the_number_of_a_subject_that_is_told_tells_its_row(plant: Plant) -> None:
    told = (
        ("\ndraw:", "\nvars: {card: 0}\ndraw:"),
        ("{freeze: true", '{set: {card: subject}, say: "{card}", freeze: true'),
    )
    for changes, proven, rate in ((LEARNT, 0.5, 0.5), ((*LEARNT, *told), None, 1)):
        assert bound(plant(*changes), "anhedonia") == proven
        assert found(plant(*changes), "anhedonia").found.value == pytest.approx(
            rate, abs=0.1
        )


def test_the_memoryless_have_the_bound_of_an_amnesia() -> None:
    forgets, remembers_nothing = (
        Lesion.parse("amnesia=choice"),
        Lesion.parse("memoryless"),
    )
    assert [
        one.proven
        for one in shared([Ceiling(forgets, (), 0.5), Ceiling(remembers_nothing, ())])
    ] == [0.5, 0.5]
    assert [
        one.proven for one in shared([Ceiling(forgets, (), 0.5), Ceiling(INTACT, ())])
    ] == [0.5, None]


def test_what_lasts_is_learnt_by_reward_and_forgotten(plant: Plant) -> None:
    paradigm = plant(*LEARNT)
    intact = found(paradigm, "intact")
    assert intact.at_last.value == 1
    assert 0.2 <= statistics.mean(life[0].success for life in intact.lives) <= 0.8
    assert all(one.success for life in intact.lives for one in life[1:])
    # The bound is for a subject that knows everything from earlier trials.
    assert bound(paradigm, "intact") == pytest.approx(1)
    assert bound(paradigm, "amnesia=trial") == pytest.approx(0.5)
    for lesion in ("amnesia=trial", "amnesia=choice"):
        rate = found(paradigm, lesion).found
        assert lesion != "amnesia=trial" or rate.low <= 0.5 <= rate.high
    # The right side stays right whether or not it pays to know it; without reward, all
    # endings look alike.
    assert found(paradigm, "anhedonia").at_last.low <= 0.5


def test_the_memoryless_need_the_cue_while_they_choose(plant: Plant) -> None:
    assert found(plant(), "memoryless").found.value < 0.7
    shown = plant(("choice:\n", 'choice:\n      show: {side: "*"}\n'))
    assert found(shown, "memoryless").found.value > 0.9


def test_the_same_seed_gives_the_same_lives(plant: Plant) -> None:
    paradigm = plant(*LEARNT)
    for lesion in ("blind", "memoryless", "amnesia=choice"):
        assert found(paradigm, lesion, 3) == found(paradigm, lesion, 3)
    assert found(paradigm, "blind", 3) != found(paradigm, "blind", 4)


def test_lives_are_led_until_what_is_asked_is_decided(plant: Plant) -> None:
    # One trial in each life: eight lives of a coin say little.
    paradigm, lesion = (
        plant(*LEARNT, ("sessions: 2, trials: 10", "sessions: 1, trials: 1")),
        Lesion.parse("blind"),
    )
    asked, brief = (
        Order(lesion, EFFORT, 0, at_most=0.5),
        Order(lesion, EFFORT, 0, is_brief=True),
    )
    proven, few = measure(paradigm, asked), measure(paradigm, brief)
    # A proof decides at once.
    assert (len(proven.lives), len(few.lives)) == (
        FEWEST,
        LIVES,
    )
    assert (proven.proven, few.proven) == (0.5, None)
    assert few.verdict(0.5) == "undecided"
    # No proof meets this limit, so more lives are led, and refute it.
    beyond = measure(paradigm, Order(lesion, EFFORT, 0, at_most=0.4))
    assert beyond.lives[:LIVES] == few.lives
    assert len(beyond.lives) > LIVES
    assert beyond.verdict(0.4) == "FAIL"


def _ceiling(passed: int, trials: int, proven: float | None = None) -> Ceiling:
    life = tuple(Lived(number, 1, number < passed, True, 3) for number in range(trials))
    return Ceiling(Lesion.parse("anhedonia"), (life, life), proven)


@pytest.mark.parametrize(
    ("passed", "trials", "proven", "verdict", "is_excess"),
    [
        (24, 40, 0.5, "ok", True),  # a proved bound outweighs luck
        (40, 40, None, "FAIL", False),
        (5, 8, 0.55, "ok", True),
        (5, 8, None, "undecided", True),
        (
            200,
            400,
            None,
            "undecided",
            False,
        ),  # a low found rate proves nothing: a cleverer policy may exist
        (200, 400, 1.0, "undecided", False),
    ],
)
def test_a_row_is_ok_when_it_is_proved(
    passed: int, trials: int, proven: float | None, verdict: str, *, is_excess: bool
) -> None:
    said, remark = _abolished(_ceiling(passed, trials, proven), 0.55, is_void=False)
    assert (said, EXCESS in remark, "not proven" in remark) == (
        verdict,
        is_excess,
        verdict == "undecided",
    )


def test_more_than_the_bound_in_few_trials_is_called_chance() -> None:
    assert _bound(_ceiling(1, 3, 0.25), 0.5) == f", proven at most .25{BY_CHANCE}"
    assert _bound(_ceiling(1, 8, 0.25), 0.5) == ", proven at most .25"
    assert _bound(_ceiling(2, 3, 0.25), 0.5) == ", proven at most .25"


def test_searches_where_nothing_is_a_success_do_not_stop_those_in_later_blocks(
    plant: Plant,
) -> None:
    sides, lamps = (
        "[left, right, left, right, left, right]",
        "['*', '*', '%', '%', '+', '+']",
    )
    paradigm = plant(
        ("of: {side: [left, right]}", f"of: {{side: {sides}, lamp: {lamps}}}"),
        ('{side: "*"}', "{side: lamp}"),
        ("reward: 1, ", ""),
        (
            "{main: {sessions: 2, trials: 10}}",
            "{before: {sessions: 2, trials: 10}, main: {sessions: 1, trials: 10}}",
        ),
        (
            "success: last == correct",
            "success: block == main and last == correct\nestimand: {block: main}",
        ),
    )
    for seed in range(3):
        assert found(paradigm, "intact", seed).found.value == 1


CONSTRUCT = (
    "checks:",
    "construct:\n"
    "  name: working memory\n  kind: memory\n"
    "  abolished_by: [{lesion: {amnesia: choice}, at_most: 0.6}]\n"
    "  spared_by: [anhedonia]\n"
    "checks:",
)


def verdicts(
    paradigm: ArenaParadigm, part: str = "lesions", processes: int = 1
) -> dict[str, str]:
    settings = AuditSettings(
        trials=50,
        parts=(part,),  # type: ignore[arg-type]
        processes=processes,
        effort=EFFORT,
    )
    return {one.rule: one.verdict for one in audit(paradigm, [], settings)}


def test_only_the_intact_subject_goes_on_after_the_last_judged_block(
    plant: Plant,
) -> None:
    schedule = "schedule: {before: {trials: 2}, main: {trials: 6}, between: {trials: 2}, late: {trials: 6}}"
    blocks = ("schedule: {main: {sessions: 2, trials: 10}}", schedule)
    paradigm = plant(
        blocks, ("success: last", "estimand: {block: [main, between]}\nsuccess: last")
    )
    for lesion, trials in [("intact", 16), ("blind", 10), ("memoryless", 10)]:
        lives = found(paradigm, lesion).lives
        assert {len(life) for life in lives} == {trials}
        assert all(sum(one.judged for one in life) == 8 for life in lives)
    adversary = Adversary(paradigm, Lesion.parse("intact"), EFFORT)
    assert len(list(_priors(adversary))) == 8
    # The first late trial reveals that it is late.
    assert min(one.plan.left for one in adversary.world.histories) == 5


def test_a_construct_holds_or_falls(plant: Plant) -> None:
    sound = verdicts(plant(CONSTRUCT))
    assert sound["lesion: amnesia=choice"] == "ok"
    assert sound["lesion: anhedonia"] == "ok"
    assert sound["lesion: blind"] == "note"
    assert "FAIL" not in sound.values()
    leaky = verdicts(
        plant(CONSTRUCT, ("choice:\n", 'choice:\n      show: {side: "*"}\n')),
        processes=2,
    )
    assert leaky["lesion: amnesia=choice"] == "FAIL"


NO_REWARD = (CONSTRUCT[0], CONSTRUCT[1].replace("memory\n", "learning\n").replace("{amnesia: choice}", "anhedonia")
             .replace("  spared_by: [anhedonia]\n", ""))  # fmt: skip
FOR_LIFE = ("{of: {side: [left", "{per: subject, of: {side: [left")


@pytest.mark.parametrize(
    ("changes", "lesion", "how"),
    [
        (
            [CONSTRUCT, ("choice:\n", 'choice:\n      show: {side: ","}\n')],
            "amnesia=choice",
            "the subject sees glyph:, ('amnesia=choice+hide=glyph:,' leaves",
        ),
        (
            [
                CONSTRUCT,
                ("#LL.B.RR#", "#LL.BCRR#"),
                ("B: box}", "B: box, C: booth}"),
                ("[left, right]}}", "[left, right], home: [box, booth]}}"),
                ("at: box", "at: home"),
            ],
            "amnesia=choice",
            "where the subject stands or faces is enough",
        ),
        (
            [
                CONSTRUCT,
                (
                    "{of: {side: [left, right]}}",
                    "{of: {side: [left, left, right]}}",
                ),
                ("at_most: 0.6", "at_most: 0.5"),
            ],
            "amnesia=choice",
            "always going to 'left' is right in .65 of the trials: let each answer be right in at most .50 of them",
        ),
        (
            [CONSTRUCT, FOR_LIFE],
            "amnesia=choice",
            "by what earlier trials told the subject ('amnesia=choice+amnesia=trial' leaves",
        ),
        (
            [
                NO_REWARD,
                FOR_LIFE,
                ('show: {side: "*"}, ', ""),
                ("{enter: arm, end: error}", "{enter: arm, go: out}"),
                ("schedule:", "    out: {rules: [{after: 3, end: error}]}\nschedule:"),
            ],
            "anhedonia",
            "Let a success and a failure last equally long",
        ),
        (
            [CONSTRUCT, ("[left, right]}}", "[left, left]}}")],
            "amnesia=choice",
            "or what is right never changes (draw it)",
        ),
        (
            [
                CONSTRUCT,
                (
                    '{freeze: true, show: {side: "*"}, rules: [{after: 3, go: choice}]}',
                    "{rules: [{enter: side, go: choice}]}",
                ),
                (
                    "{enter: side, reward: 1, end: correct}",
                    "{enter: arm, if: it != side, reward: 1, end: correct}",
                ),
            ],
            "amnesia=choice",
            "where the subject stands or faces is enough",
        ),
    ],
    ids=[
        "a glyph",
        "a place",
        "one answer",
        "earlier trials",
        "the end of a trial",
        "no draw",
        "the arm of the sample",
    ],
)
def test_a_lesion_that_fails_says_how_it_was_got_round(
    changes: list[tuple[str, str]], lesion: str, how: str, plant: Plant
) -> None:
    settings = AuditSettings(trials=50, parts=("lesions",), effort=EFFORT)
    found = {one.rule: one for one in audit(plant(*changes), [], settings)}
    failed = found[f"lesion: {lesion}"]
    assert failed.verdict == "FAIL"
    assert how in failed.text


def test_what_it_sees_is_looked_for_in_variables_too(plant: Plant) -> None:
    """A glyph may be held by a variable that no draw gives a value."""
    lamp = ("draw:\n", "vars: {lamp: o}\ndraw:\n")
    paradigm = plant(lamp, ('show: {side: "*"}', "show: {side: lamp}, say: [wait]"))
    assert [*_shown(paradigm.specification)] == ["hide=text", "hide=glyph:o"]


@pytest.mark.parametrize(("last", "verdict"), [(10, "note"), (5, "FAIL")])
def test_the_last_trials_of_a_block_are_not_what_is_audited(
    plant: Plant, last: int, verdict: str
) -> None:
    """Rates over all trials of a block say little about the last ones, in which a
    subject has learnt.
    """
    schedule = "schedule: {early: {trials: 10}, main: {trials: 10}}"
    found = verdicts(
        plant(
            CONSTRUCT,
            ("schedule: {main: {sessions: 2, trials: 10}}", schedule),
            ("success: last", f"estimand: {{last: {last}}}\nsuccess: last"),
        )
    )
    assert found["lesion: intact"] == verdict


#: The side is shown in the trial after one (or two) timeouts. A subject that wants to
#: succeed never gets there.
EGG = (
    *LEARNT,
    CONSTRUCT,
    ("{amnesia: choice}, at_most: 0.6", "anhedonia, at_most: 0.6"),
    ("spared_by: [anhedonia]", "spared_by: []"),
    ("kind: memory", "kind: learning"),
    ("start: cue", 'start: [{if: "WHEN", go: told}, cue]'),
    (
        "  states:",
        '  states:\n    told: {show: {side: "*"}, rules: '
        "[{enter: side, reward: 1, end: correct}, {enter: arm, end: error}]}",
    ),
)


@pytest.mark.parametrize(
    ("when", "verdict"),
    [
        ("last == timeout", "FAIL"),
        ("recent(timeout, 2) == 2", "FAIL"),
        ("last == error and trial == 99", "undecided"),
    ],
)
def test_an_easter_egg_after_failures_is_found(
    plant: Plant, when: str, verdict: str
) -> None:
    assert verdicts(plant(*EGG, ("WHEN", when)))["lesion: anhedonia"] == verdict


def test_states_that_no_run_enters_are_named_and_looked_at(plant: Plant) -> None:
    view = installed_plugins().view("ascii_2d")
    hidden = plant(*EGG, ("WHEN", "recent(correct, 18) == 18"))
    findings = {
        one.rule: one
        for one in audit(hidden, [view], AuditSettings(trials=300, parts=("leaks",)))
    }
    assert findings["states"].numbers == {"never": ["told"]}
    assert "'side' at 'told'" in findings["shown, ascii_2d"].text
    plain = {
        one.rule: one
        for one in audit(plant(), [view], AuditSettings(trials=300, parts=("leaks",)))
    }
    assert plain["states"].verdict == "ok"


def test_a_task_that_nobody_can_decide_fails(plant: Plant) -> None:
    undecidable = plant((', show: {side: "*"}', ""))
    assert verdicts(undecidable, "solvable") == {"solvable": "ok", "decidable": "FAIL"}
    [*_, row] = audit(undecidable, [], AuditSettings(trials=60, parts=("solvable",)))
    assert row.text.endswith("nothing reveals the right answer (proven at most .50)")
    lesions = verdicts(plant(CONSTRUCT, (', show: {side: "*"}', "")))
    assert lesions["lesion: intact"] == "FAIL"
    assert lesions["lesion: anhedonia"] == "FAIL"


def test_without_a_construct_lesions_must_be_asked_for(plant: Plant) -> None:
    everything = [one.rule for one in audit(plant(), [], AuditSettings(trials=20))]
    assert "construct" in everything
    assert not [rule for rule in everything if rule.startswith("lesion")]


# -- the model of the protocol


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from("ab"), min_size=2, max_size=3).filter(
        lambda rows: len(set(rows)) > 1
    ),
    st.integers(1, 2),
    st.sampled_from([None, 2, 3]),
)
def test_a_shuffled_block_is_any_permutation_that_keeps_the_longest_run(
    rows: list[str], copies: int, most: int | None
) -> None:
    spec = DrawSpec(
        "d",
        "trial",
        "shuffle",
        ("v", "n"),
        tuple((v, n) for n, v in enumerate(rows)),
        None,
        copies,
        most,
        None,
    )
    script = Script()

    def draw() -> tuple[object, ...]:
        sequence = OpenSequence(spec, script)
        return tuple(sequence.next() for _ in range(len(rows) * copies))

    chances: dict[object, float] = defaultdict(float)
    for chance, drawn in script.all_of(draw):
        chances[drawn] += chance
    items = [row for row in spec.rows for _ in range(copies)]
    allowed = Counter(
        order
        for order in itertools.permutations(items)
        if most is None
        or max(
            len(list(run))
            for _, run in itertools.groupby(order, key=lambda row: row[0])
        )
        <= most
    )
    if not allowed:
        return  # then rows are composed differently
    assert set(chances) == set(allowed)
    for order, often in allowed.items():
        assert chances[order] == pytest.approx(
            float(Fraction(often, sum(allowed.values())))
        )


NAMES = (
    "t_maze",
    "operant_chamber",
    "dnms",
    "radial_arm_maze",
    "place_preference",
    "shuttle_box",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lesion", ["intact", "blind", "pose-only+anhedonia"])
def test_what_happens_is_always_among_what_is_believed(name: str, lesion: str) -> None:
    catalogue = Catalogue(installed_plugins().protocol_directories)
    paradigm = ArenaParadigm(with_arena(catalogue.find(name)))
    world = World(paradigm, Lesion.parse(lesion))
    chance = random.Random(f"{name} {lesion}")
    life, rest = ArenaSubject(paradigm.program, world.view, 5, 3), world.prior()
    for _ in range(3):
        observation = life.begin_trial()
        assert observation is not None
        parts = world.begin(rest)
        assert sum(sum(part.values()) for part in parts.values()) == pytest.approx(1)
        belief = parts[world.percept(observation, 0.0, False, life.waiting)]
        status = RUNNING
        while status == RUNNING and world.spent <= ENOUGH:
            action = STAY if life.waiting else chance.choice((0, 0, 0, 1, 2, 3))
            steps = life.steps
            observation, reward, status = life.step(action)
            percept = world.percept(
                observation, reward, status != RUNNING, life.waiting
            )
            belief = world.step(belief, action, steps)[
                percept if status == RUNNING else -1 - percept
            ]
            assert belief
        if world.spent > ENOUGH:
            break
        rest = world.rest(belief)
        assert sum(rest.values()) == pytest.approx(1)


def test_a_twin_goes_on_as_the_life_does(plant: Plant) -> None:
    paradigm = plant()
    world = World(paradigm, Lesion())
    life = ArenaSubject(paradigm.program, world.view, 1, 1)
    life.begin_trial()
    actions = [STAY] * 4 + [0, 1, 0, 2, 0, 0]
    for action in actions[:5]:
        life.step(action)
    twin = life.twin()
    by_twin = [twin.step(action) for action in actions[5:]]
    assert by_twin == [life.step(action) for action in actions[5:]]
    assert (twin.pose, twin.steps, twin.state, twin.values) == (
        life.pose,
        life.steps,
        life.state,
        life.values,
    )
    assert twin.happenings == life.happenings == len(life.events)


def test_a_proof_that_is_contradicted_fails() -> None:
    assert _ceiling(300, 400, 0.5).verdict(0.5) == "FAIL"
    assert CONTRADICTED in _abolished(_ceiling(300, 400, 0.5), 0.5, is_void=False)[1]
    assert _ceiling(210, 400, 0.5).verdict(0.5) == "ok"


def passing(rewards: list[float], success: bool = True) -> Ceiling:
    lives = [
        tuple(Lived(trial, 1, success, True, 5, None, reward) for trial in range(20))
        for reward in rewards
    ]
    return Ceiling(INTACT, tuple(lives))


def policy(name: str, reward: float, passed: int = 0, best: float = 0.0) -> Tally:
    lives = [(passed, 20)] * 10
    found = Tally(name, lives=lives, reward=reward * 200, best_success=best)
    found.outcomes.update(end=200)
    return found


def life_rewards(
    paradigm: ArenaParadigm, able: Ceiling, *tallies: Tally
) -> list[tuple[str, str, dict[str, object]]]:
    found = audit_life_rewards(paradigm, AuditSettings(trials=20), tallies, able)
    return [(one.verdict, one.text, dict(one.numbers)) for one in found]


@pytest.mark.parametrize("with_reference", [True, False])
def test_who_fails_may_not_earn_more_than_who_passes(
    plant: Plant, with_reference: bool
) -> None:
    paradigm = plant()
    if not with_reference:
        alone = replace(paradigm.specification, references=())
        paradigm = ArenaParadigm(alone)
    able = passing([1.0, 0.8, 1.0, 0.8])
    lazy, greedy, good = (
        policy("lazy", 0.2),
        policy("greedy", 1.5),
        policy("good", 9.0, 20),
    )
    assert life_rewards(paradigm, able, lazy, good) == [
        (
            "ok", "a subject that passes earns 0.9 a trial; among policies that fail, lazy earns most, 0.2",
            {"passing": pytest.approx(0.9), "failing": pytest.approx(0.2), "policy": "lazy"},
        )
    ]  # fmt: skip
    [(verdict, text, numbers)] = life_rewards(paradigm, able, lazy, greedy, good)
    assert (verdict, numbers["policy"]) == ("FAIL", "greedy")
    assert text.endswith("rewards that greedy gets or the costs that it avoids")
    # Rewards within the error of the mean are alike.
    assert life_rewards(paradigm, able, policy("lucky", 1.0))[0][0] == "ok"
    assert life_rewards(paradigm, able, policy("lucky", 1.2))[0][0] == "FAIL"
    # A subject that passes may earn more than the one that was found.
    [(verdict, text, _)] = life_rewards(paradigm, able, policy("lucky", 1.2, best=1.5))
    assert (verdict, "successes earn up to 1.5" in text) == ("undecided", True)
    # Nobody fails, nobody passes, or too few have passed.
    assert life_rewards(paradigm, able, good) == []
    assert life_rewards(paradigm, passing([1.0] * 4, success=False), lazy) == []
    assert life_rewards(paradigm, passing([1.0]), lazy) == []


def test_lives_that_are_cut_short_are_compared_with_the_same_trials(
    plant: Plant,
) -> None:
    """Where the first block pays more, few trials are no proof that failing pays."""
    life = [
        Lived(number, 1, True, number >= 10, 5, None, 1.0 if number < 10 else 0.4)
        for number in range(30)
    ]
    able = Ceiling(INTACT, (tuple(life),) * 2)
    cut = Tally("cut", lives=[(0, 5)] * 10, reward=0.7 * 150)
    cut.outcomes.update(end=150)
    [(verdict, text, numbers)] = life_rewards(plant(), able, cut)
    assert (verdict, numbers["passing"]) == ("ok", pytest.approx((10 + 5 * 0.4) / 15))
    assert text.endswith("(both over the first 5 judged trials of a life)")
    whole = Tally("whole", lives=[(0, 20)] * 10, reward=0.7 * 300)
    whole.outcomes.update(end=300)
    [(verdict, text, numbers)] = life_rewards(plant(), able, cut, whole)
    assert (verdict, numbers["passing"]) == ("FAIL", pytest.approx(0.6))
    assert numbers["policy"] == "whole"
    assert "both over" not in text


def test_the_bar_of_rewards_is_that_of_the_verdict(plant: Plant) -> None:
    """Between the animals' rate less the margin and 95 %, a policy fails only where
    there is no reference.
    """
    paradigm = plant()
    reference = paradigm.specification.reference
    assert reference is not None
    bar = reference.value - paradigm.specification.document.margin
    assert bar < 0.9
    alone = ArenaParadigm(replace(paradigm.specification, references=()))
    able, middling = passing([1.0, 0.8]), policy("middling", 0.1, 18)
    middling.lives *= 20
    assert life_rewards(paradigm, able, middling) == []
    assert [one[0] for one in life_rewards(alone, able, middling)] == ["ok"]


def lived(
    passes: str, *, lesion: str = "anhedonia", sessions: int = 1, **changes: Any
) -> Ceiling:
    """Return a ceiling of two equal lives: ``+`` passes, ``-`` fails, ``.`` does not
    count.
    """
    size = -(-len(passes) // sessions)
    life = tuple(
        Lived(number, number // size + 1, mark == "+", mark != ".", 3)
        for number, mark in enumerate(passes)
    )
    return Ceiling(Lesion.parse(lesion), (life, life), **changes)


@pytest.mark.parametrize(
    ("ceiling", "at_most", "is_spared", "void", "verdict", "text"),
    [
        (lived("+--"), None, False, "", "note", "found .33 [.10, .70] in 6 trials; by session .33"),
        (lived("..."), 0.5, False, "", "note", "not judged: the estimand counts none of the trials; by session .00"),
        (lived("...", lesion="intact"), None, False, "", "FAIL", "not judged: the estimand counts none of the trials"),
        (lived("-++", lesion="intact"), None, False, "", "note", "; in the last third of a life 1.00; by session"),
        (lived("++-", lesion="intact"), 0.1, True, ": odd", "undecided", " of a life .00: odd; no `ok` below counts; by"),
        (lived("+--", proven=0.4), 0.5, False, "", "ok", "proven at most .40; at most .50 may remain; by session"),
        (lived("+--"), 0.5, True, "", "undecided", "; at most .50 may remain (searched, not proven); by"),
        (lived("+--"), 0.5, False, ": odd", "note", "(searched, not proven); void, as the row of the intact subject"),
        (lived("+" * 19 + "-"), None, True, "", "ok", " .95 must remain, or .99 in the last third of a life; by session .95"),
        (lived("+" * 18 + "--"), None, True, "", "undecided", "; at least .95 must remain, or .99 in the last third of a life"),
        (lived("+" * 18 + "--", proven=0.9), None, True, "", "FAIL", ", proven at most .90; at least .95 must remain"),
        (lived("--++"), None, True, "", "ok", "; at least .95 must remain, or .99 in the last third of a life"),
        (lived("+-", how=", after 2 x 'egg'"), None, False, "", "note", "in 4 trials, after 2 x 'egg'; by session"),
        (lived("+-", followed=0.5), None, False, "", "note", "; .50 of the subjects were followed to the state"),
        (lived("+-+--", sessions=5), None, False, "", "note", "; by session 1.00 .00 1.00 .00 .00"),
        (lived("+-" * 6, sessions=12), None, False, "", "note", "; by session 1.00" + " .00 1.00" * 5 + " .00"),
        (
            lived("+-" * 6 + "+", sessions=13), None, False, "", "note",
            "; by session 1.00" + " .00 1.00" * 2 + " .00 ... .00 1.00 .00 1.00",
        ),
    ],
)  # fmt: skip
def test_a_row_says_what_was_found_and_what_is_asked(
    ceiling: Ceiling,
    at_most: float | None,
    is_spared: bool,
    void: str,
    verdict: str,
    text: str,
) -> None:
    finding = _finding(
        ceiling, at_most, is_spared, ("undecided" if void else "note", void)
    )
    assert (finding.rule, finding.verdict) == (f"lesion: {ceiling.lesion}", verdict)
    assert text in finding.text
    assert ("followed" in finding.text) == (ceiling.followed < 1)
    rates = list(ceiling.by_session.values())
    assert finding.numbers["by_session"] == rates
    assert finding.numbers["at_last"] == ceiling.at_last.value


def test_a_row_without_ok_says_why(plant: Plant) -> None:
    specification = plant().specification
    assert _why_void(specification, lived("-++", lesion="intact")) == ("note", "")
    verdict, weak = _why_void(specification, lived("++-", lesion="intact"))
    assert verdict == "undecided"
    assert weak.startswith(": no subject was found that passes nearly always")
    proved = lived("++-", lesion="intact", proven=0.7)
    assert _why_void(specification, proved) == ("FAIL", ": nobody passes nearly always")


@pytest.mark.parametrize(
    ("divisor", "text"),
    [
        (ex.Variable("right"), "right"),
        (ex.Binary("+", ex.Variable("right"), ex.Variable("wrong")), "right + wrong"),
        (ex.Binary("-", ex.Variable("right"), ex.Variable("wrong")), ""),
    ],
)
def test_a_divisor_is_named_where_it_is_a_count_or_a_sum_of_counts(
    divisor: ex.Expression, text: str
) -> None:
    assert _sum(divisor) == text


def test_how_an_unseen_thing_is_known() -> None:
    trials, reward, blind = NO_TRIALS, Lesion.parse("anhedonia"), Lesion.parse("blind")
    feels, numb = Lesion.parse("hide=arm"), Lesion.parse("anhedonia")
    said = {trials: "one", reward: "two", blind: "three"}
    assert _unseen(feels, said) == (
        ". How: not by the picture, but by what earlier trials told the subject (one): the reward. "
        "Draw what is right anew for each trial (`per: trial`)"
    )
    assert _unseen(numb, {trials: "one"}) == (
        ". How: not by the picture, but by what earlier trials told the subject (one): its own "
        "actions, the clock, or when the trial ends. Let a success and a failure last "
        "equally long, and end in one state"
    )
    assert "(two): let none come" in _unseen(feels, {reward: "two", blind: "three"})
    assert "is enough (three, but pose-only" in _unseen(feels, {blind: "three"})
    assert "the subject's own actions and the clock are enough" in _unseen(feels, {})


@pytest.mark.parametrize(
    ("changes", "lesions"),
    [
        ((), ["hide=glyph:*"]),
        (LEAK, ["hide=text", "hide=glyph:*"]),
        (
            (
                ("draw:\n", "draw:\n  sign: {of: {sign: [x, y]}}\n"),
                ('show: {side: "*"}', "show: {side: sign}"),
            ),
            ["hide=glyph:x", "hide=glyph:y"],
        ),
    ],
)
def test_each_thing_that_is_shown_can_be_hidden(
    plant: Plant, changes: tuple[tuple[str, str], ...], lesions: list[str]
) -> None:
    assert list(_shown(plant(*changes).specification)) == lesions


@pytest.mark.parametrize(
    ("lives", "spent", "order", "enough"),
    [
        (1, 9.0, {"is_brief": True}, False),
        (2, 0.5, {}, False),
        (2, 1.1, {}, True),
        (20, 0.5, {}, True),
        (19, 1.0, {}, False),
        (2, 0.4, {"is_brief": True}, False),
        (3, 0.4, {"is_brief": True}, True),
        (3, 0.3, {"is_brief": True}, False),
        (3, 0.1, {"is_brief": True}, False),
        (3, 0.1, {"at_most": 0.6}, True),  # it is proved, and not more was found
        (2, 0.1, {"at_most": 0.6}, False),
        (3, 0.1, {"at_most": 0.4}, False),
        (20, 0.1, {"at_most": 0.4}, False),  # nothing is decided, and more was found
        (20, 2.0, {"at_most": 0.4}, False),
        (20, 2.1, {"at_most": 0.4}, True),
        (20, 0.1, {"at_most": 0.6}, True),
    ],
)
def test_lives_are_led_until_there_are_enough(
    lives: int, spent: float, order: dict[str, Any], enough: bool
) -> None:
    lesion = Lesion.parse("anhedonia")
    found = replace(lived("+-", proven=0.5), lives=lived("+-").lives[:1] * lives)
    assert _is_enough(found, 20, spent, Order(lesion, EFFORT, 0, **order)) == enough


USUAL = ["blind", "pose-only", "anhedonia", "amnesia=trial", "memoryless"]
NAMED = (
    "checks: [",
    "construct: {name: memory, kind: memory, abolished_by: [{lesion: {hide: arm}, at_most: 0.5}],"
    " spared_by: [anhedonia]}\nchecks: [",
)
MARKED = (
    "  groups: {arm",
    '  landmarks: {W: "1"}\n  groups: {arm',
)


@pytest.mark.parametrize(
    ("changes", "lesions"),
    [
        ((), USUAL),
        ((MARKED,), [*USUAL, "hide=landmarks"]),
        ((NAMED,), ["hide=arm", "anhedonia", *[one for one in USUAL if one != "anhedonia"]]),
    ],
)  # fmt: skip
def test_the_standard_lesions_and_those_of_the_construct_are_tried(
    plant: Plant, changes: tuple[tuple[str, str], ...], lesions: list[str]
) -> None:
    found = battery(plant(*changes).specification)
    assert list(map(str, found)) == ["intact", *lesions]


def test_each_lesion_is_searched_as_it_is_asked_for(plant: Plant) -> None:
    paradigm, settings = plant(NAMED), AuditSettings(effort=0.5, seed=3)
    lesions = battery(paradigm.specification)
    limits = {Lesion.parse("hide=arm"): 0.5}
    orders = {
        str(one.lesion): one for one in _orders(lesions, limits, settings, paradigm)
    }
    assert [one for one, order in orders.items() if not order.is_brief] == [
        "intact",
        "hide=arm",
        "anhedonia",
    ]
    assert {name: order.at_most for name, order in orders.items() if order.at_most} == {
        "hide=arm": 0.5
    }
    assert {(order.effort, order.seed, order.targets) for order in orders.values()} == {
        (0.5, 3, ())
    }


def test_errands_are_for_what_is_rare_or_read_later(plant: Plant) -> None:
    assert _targets(plant(), 0) == ()
    outcomes = ("timeout", "correct", "error")
    for guard in ("last == error", "recent(error, 2) == 1"):
        told = ("{enter: side, reward", f'{{enter: side, if: "{guard}", reward')
        assert {*_targets(plant(told), 0)} == {*outcomes}
    rare = (
        "schedule:",
        "    egg: {rules: [{enter: arm, end: correct}]}\nschedule:",
    )
    way = ("{enter: arm, end: error}", "{enter: arm, if: steps > 39, go: egg}")
    found = _targets(plant(rare, way), 0)
    assert found[0] == "egg"
    assert {*found[1:]} <= {*outcomes}


def test_how_long_the_searches_take_is_foretold(plant: Plant, tmp_path: Path) -> None:
    settings = AuditSettings(kept=str(tmp_path))
    assert "no lesion is searched" in outlook(plant(), settings)
    paradigm = plant(NAMED)
    assert outlook(paradigm, settings).startswith("lesions to search: 7 (")
    orders = _orders(
        battery(paradigm.specification),
        {Lesion.parse("hide=arm"): 0.5},
        settings,
        paradigm,
    )
    for number, order in enumerate(orders, 1):
        place = _place(order)
        assert place is not None
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        told = outlook(paradigm, settings)
        if number < len(orders):
            assert told.startswith(f"lesions to search: {7 - number} (")
            assert f"; kept from earlier audits: {number}" in told
    assert told == "all 7 lesions were searched in earlier audits"


def test_a_measure_is_that_of_the_judged_trials_that_have_one(plant: Plant) -> None:
    about = plant(
        (
            "reference: [{measure: success, value: 0.9,",
            "measures: {much: steps}\nreference: [{measure: much, value: 30, better: higher,"
            " margin: 2, range: [0, 40],",
        )
    ).specification.judged
    assert about is not None

    def ceiling(*values: float | None, **changes: Any) -> Ceiling:
        life = tuple(
            Lived(number, 1, False, True, 3, value)
            for number, value in enumerate(values)
        )
        unjudged = Lived(99, 1, False, False, 3, 40.0)
        return Ceiling(INTACT, ((*life, unjudged), life), asked=about, **changes)

    assert ceiling(20, None, 40).measured == (30, 30, 30)
    assert ceiling(None, None).measured is None
    assert replace(ceiling(20), asked=None).measured is None
    assert ceiling(40, 40).verdict(1.0) == "FAIL"
    assert ceiling(28, 28).verdict(1.0) == "undecided"
    alike = replace(about, better="alike")
    assert replace(ceiling(30, 30), asked=alike).verdict(1.0) == "undecided"
    assert ceiling(10).is_open(1.0)
    assert not replace(ceiling(10), asked=None).is_open(1.0)
    many = replace(ceiling(10), lives=ceiling(10).lives * (LIVES // 2))
    assert not many.is_open(1.0)
    assert replace(many, asked=replace(about, value=12)).is_open(1.0)


def test_the_reason_of_a_search_that_is_given_up_is_told_once() -> None:
    intact = lived("", lesion="intact", stopped="too many")
    other = lived("", lesion="blind", stopped="too many")
    own = lived("", lesion="pose-only", stopped="another reason")
    led = lived("+-")
    found = _told_once([intact, other, own, led], intact)
    assert found[0] is intact
    assert "the row of the intact subject" in found[1].stopped
    assert found[2:] == [own, led]
    assert _told_once([led], led) == [led]


def test_what_a_subject_reaches_that_lacks_more_counts_as_found() -> None:
    def ceiling(lesion: str, passed: int) -> Ceiling:
        life = tuple(Lived(number, 1, number < passed, True, 3) for number in range(60))
        return Ceiling(Lesion.parse(lesion), (life, life))

    planned = ["amnesia=dig", "amnesia=trial", "anhedonia", "hide=text", "blind"]
    found = [ceiling(one, 15) for one in planned]
    limits = [one.lesion for one in found[:-1]]
    rows = raised([*found, ceiling("memoryless", 60)], [], limits)
    # A memoryless subject reads the text.
    assert [one.found.value for one in rows] == [1, 1, 1, 0.25, 0.25, 1]
    still = replace(
        ceiling("blind+memoryless+anhedonia", 60), lacking_more="a subject that rests"
    )
    rows = raised(found, [still], limits)
    assert [one.found.value for one in rows] == [1, 1, 1, 1, 0.25]
    assert rows[0].verdict(0.5) == "FAIL"
    assert rows[0].how == ", by a subject that rests"
    # One that forgets at a state may keep what the other loses.
    forgetful = ceiling("amnesia=dig+amnesia=trial", 60)
    assert raised([found[0], forgetful], [], limits)[0] == found[0]


def test_who_repeats_one_action_passes_a_low_measure_under_a_lesion(
    plant: Plant,
) -> None:
    about = (
        "measures: {errors: last == error}\nreference: [{measure: errors, value: 0.3,"
        " better: lower, margin: 0.1, range: [0, 1], kind: invented, status: made up}]\n"
        "construct: {name: memory, kind: memory, abolished_by: [{lesion: {amnesia: choice}, at_most: 0.5}]}"
    )
    old = "reference: [{measure: success, value: 0.9, status: made up}]"
    few = AuditSettings(trials=20, seed=0, effort=0.02, parts=("lesions",))
    rows = {one.rule: one for one in audit(plant((old, about)), (), few)}
    row = rows["lesion: amnesia=choice"]
    assert row.verdict == "FAIL"
    assert ", by a subject that always" in row.text or "stands still" in row.text
    assert "needs nothing of what the lesion takes away" in row.text
