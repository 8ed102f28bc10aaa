"""What is left without a channel: small tasks whose ceilings can be worked out by hand."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.interfaces import RUNNING, STAY, AuditSettings
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import audit
from cheesebench.paradigms.arena.audit.lesions.beliefs import World
from cheesebench.paradigms.arena.audit.lesions.ceilings import LIVES, MORE_LIVES, WIDE, Ceiling, Order, measure
from cheesebench.paradigms.arena.audit.lesions.exact import _priors, upper_bound
from cheesebench.paradigms.arena.audit.lesions.findings import EXCESS, _abolished
from cheesebench.paradigms.arena.audit.lesions.hypotheses import OpenSequence, Script
from cheesebench.paradigms.arena.audit.lesions.living import Adversary, Lived
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from cheesebench.protocol.specification import DrawSpec

#: Little: these tasks are small.
EFFORT = 0.05
#: Steps of hypotheses that are enough.
ENOUGH = 30_000
Plant = Callable[..., ArenaParadigm]
#: The lamp is told by a word that stays: whoever forgets the sample reads it.
LEAK = (
    (
        "cue: {freeze",
        "hint: {say: LEFT, rules: [{enter: side, reward: 1, end: correct}, {enter: arm, end: error}]}\n"
        "    cue: {freeze",
    ),
    ("rules: [{after: 3, go: choice}]", "rules: [{after: 3, if: side == left, go: hint}, {after: 3, go: choice}]"),
)
#: One side for life, and nothing shows it.
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
def test_a_choice_of_two_is_proven_and_found(plant: Plant, lesion: str, ceiling: float) -> None:
    paradigm = plant()
    assert bound(paradigm, lesion) == pytest.approx(ceiling)
    rate = found(paradigm, lesion).found
    assert rate.trials == 160
    assert rate.value == 1 if ceiling == 1 else rate.low <= ceiling <= rate.high


def test_the_blind_guess_one_of_two_arms(plant: Plant) -> None:
    rate = found(plant(), "blind").found
    assert rate.low <= 0.5 <= rate.high


def test_a_leak_is_used(plant: Plant) -> None:
    paradigm = plant(*LEAK)
    assert bound(paradigm, "amnesia=choice+amnesia=hint") is None
    assert bound(paradigm, "amnesia=hint") == pytest.approx(1.0)
    assert found(paradigm, "amnesia=choice+amnesia=hint").found.value == 1
    assert found(paradigm, "hide=arm+hide=text").found.value < 0.7
    assert found(paradigm, "hide=arm").found.value == 1


def test_what_lasts_is_learnt_by_reward_and_forgotten(plant: Plant) -> None:
    paradigm = plant(*LEARNT)
    intact = found(paradigm, "intact")
    assert intact.at_last.value == 1
    assert 0.2 <= intact.by_trial[1] <= 0.8
    assert intact.by_trial[2] == 1
    assert bound(paradigm, "intact") == pytest.approx(1)  # for whoever is told what earlier trials tell
    assert bound(paradigm, "amnesia=trial") == pytest.approx(0.5)
    for lesion in ("amnesia=trial", "amnesia=choice"):
        rate = found(paradigm, lesion).found
        assert lesion != "amnesia=trial" or rate.low <= 0.5 <= rate.high
    # The right side is right again whether or not it pays to know; without reward, ends look alike.
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


def test_more_lives_are_led_while_little_is_known_where_something_is_asked(plant: Plant) -> None:
    # One trial each: eight lives of a coin say little.
    paradigm, lesion = plant(*LEARNT, ("sessions: 2, trials: 10", "sessions: 1, trials: 1")), Lesion.parse("anhedonia")
    asked = measure(paradigm, Order(lesion, EFFORT, 0))
    brief = measure(paradigm, Order(lesion, EFFORT, 0, is_brief=True))
    assert len(brief.lives) == LIVES
    assert asked.lives[:LIVES] == brief.lives
    assert brief.found.high - brief.found.low > WIDE
    assert asked.found.high - asked.found.low <= WIDE
    assert asked.found.low <= 0.5 <= asked.found.high


def test_more_lives_are_led_where_those_led_speak_against_the_limit_but_not_clearly(plant: Plant) -> None:
    paradigm, lesion = plant(*LEARNT), Lesion.parse("anhedonia")
    few = measure(paradigm, Order(lesion, EFFORT, 0))
    assert few.found.high - few.found.low <= WIDE
    doubtful, clear = few.found.low - 0.001, few.surely - 0.001
    more = measure(paradigm, Order(lesion, EFFORT, 0, at_most=doubtful))
    assert more.lives[: len(few.lives)] == few.lives
    assert len(more.lives) > len(few.lives)
    assert len(more.lives) <= MORE_LIVES * LIVES
    assert measure(paradigm, Order(lesion, EFFORT, 0, at_most=clear)) == few


def test_searches_where_nothing_is_a_success_do_not_stop_those_in_later_blocks(plant: Plant) -> None:
    sides, lamps = "[left, right, left, right, left, right]", "['*', '*', '%', '%', '+', '+']"
    paradigm = plant(
        ("of: {side: [left, right]}", f"of: {{side: {sides}, lamp: {lamps}}}"),
        ('{side: "*"}', "{side: lamp}"),
        ("reward: 1, ", ""),
        ("{main: {sessions: 2, trials: 10}}", "{before: {sessions: 2, trials: 10}, main: {sessions: 1, trials: 10}}"),
        ("success: last == correct", "success: block == main and last == correct\nestimand: {block: main}"),
    )
    for seed in range(3):
        assert found(paradigm, "intact", seed).found.value == 1


CONSTRUCT = (
    "checks:",
    "construct:\n"
    "  name: working memory\n"
    "  abolished_by: [{lesion: {amnesia: choice}, at_most: 0.6}]\n"
    "  spared_by: [anhedonia]\n"
    "checks:",
)


def verdicts(paradigm: ArenaParadigm, part: str = "lesions", processes: int = 1) -> dict[str, str]:
    settings = AuditSettings(trials=50, parts=(part,), processes=processes, effort=EFFORT)  # type: ignore[arg-type]
    return {one.rule: one.verdict for one in audit(paradigm, [], settings)}


def test_only_the_intact_subject_goes_on_after_the_last_judged_block(plant: Plant) -> None:
    schedule = "schedule: {before: {trials: 2}, main: {trials: 6}, between: {trials: 2}, late: {trials: 6}}"
    blocks = ("schedule: {main: {sessions: 2, trials: 10}}", schedule)
    paradigm = plant(blocks, ("success: last", "estimand: {block: [main, between]}\nsuccess: last"))
    for lesion, trials in [("intact", 16), ("blind", 10), ("memoryless", 10)]:
        lives = found(paradigm, lesion).lives
        assert {len(life) for life in lives} == {trials}
        assert all(sum(one.judged for one in life) == 8 for life in lives)
    adversary = Adversary(paradigm, Lesion.parse("intact"), EFFORT)
    assert len(list(_priors(adversary))) == 8
    assert min(one.plan.left for one in adversary.world.histories) == 5  # the first late trial says that it is one


def test_a_construct_holds_or_falls(plant: Plant) -> None:
    sound = verdicts(plant(CONSTRUCT))
    assert sound["lesion: amnesia=choice"] == "ok"
    assert sound["lesion: anhedonia"] == "ok"
    assert sound["lesion: blind"] == "note"
    assert "FAIL" not in sound.values()
    leaky = verdicts(plant(CONSTRUCT, ("choice:\n", 'choice:\n      show: {side: "*"}\n')), processes=2)
    assert leaky["lesion: amnesia=choice"] == "FAIL"


def test_a_task_that_nobody_can_decide_fails(plant: Plant) -> None:
    undecidable = plant((', show: {side: "*"}', ""))
    assert verdicts(undecidable, "solvable") == {"solvable": "ok", "latency of the solver": "note", "decidable": "FAIL"}
    lesions = verdicts(plant(CONSTRUCT, (', show: {side: "*"}', "")))
    assert lesions["lesion: intact"] == "FAIL"
    assert lesions["lesion: anhedonia"] == "FAIL"


def test_without_a_construct_lesions_must_be_asked_for(plant: Plant) -> None:
    everything = [one.rule for one in audit(plant(), [], AuditSettings(trials=20))]
    assert "construct" in everything
    assert not [rule for rule in everything if rule.startswith("lesion")]


# -- the model of the protocol


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from("ab"), min_size=2, max_size=3).filter(lambda rows: len(set(rows)) > 1),
    st.integers(1, 2),
    st.sampled_from([None, 2, 3]),
)
def test_a_shuffled_block_is_any_permutation_that_keeps_the_longest_run(
    rows: list[str], copies: int, most: int | None
) -> None:
    spec = DrawSpec(
        "d", "trial", "shuffle", ("v", "n"), tuple((v, n) for n, v in enumerate(rows)), None, copies, most, None
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
        if most is None or max(len(list(run)) for _, run in itertools.groupby(order, key=lambda row: row[0])) <= most
    )
    if not allowed:
        return  # then rows are put together otherwise
    assert set(chances) == set(allowed)
    for order, often in allowed.items():
        assert chances[order] == pytest.approx(float(Fraction(often, sum(allowed.values()))))


NAMES = ("t_maze", "operant_chamber", "dnms", "radial_arm_maze", "place_preference", "shuttle_box")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lesion", ["intact", "blind", "pose-only+anhedonia"])
def test_what_happens_is_always_among_what_is_believed(name: str, lesion: str) -> None:
    catalogue = Catalogue(installed_plugins().protocol_directories)
    paradigm = ArenaParadigm(catalogue.find(name).walkable())
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
            percept = world.percept(observation, reward, status != RUNNING, life.waiting)
            belief = world.step(belief, action, steps)[percept if status == RUNNING else -1 - percept]
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
    assert (twin.pose, twin.steps, twin.state, twin.values) == (life.pose, life.steps, life.state, life.values)
    assert twin.happenings == life.happenings == len(life.events)


@pytest.mark.parametrize(("proven", "solved", "told"), [(0.5, 5, True), (None, 5, True), (0.5, 4, False)])
def test_an_excess_within_chance_is_called_so(proven: float | None, solved: int, *, told: bool) -> None:
    life = tuple(Lived(number, 1, number < solved, True, 3) for number in range(8))
    verdict, remark = _abolished(Ceiling(Lesion.parse("anhedonia"), (life, life), proven), 0.55, is_void=False)
    assert (verdict, EXCESS in remark) == ("ok", told)
