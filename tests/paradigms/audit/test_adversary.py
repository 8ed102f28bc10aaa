"""What a belief is worth, and which hypothesis is followed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.interfaces import FORWARD, ROTATE_LEFT, STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import (
    UNLIKELY,
    Adversary,
    Course,
    Errand,
    Lived,
    Manner,
    Planner,
    Progress,
    Worth,
    _kinds,
    _nearest,
    certainty,
    ended,
)
from cheesebench.paradigms.arena.audit.beliefs import (
    Belief,
    Node,
    Plan,
    Rest,
    World,
    cloud_of,
)
from tests.paradigms.audit.test_keys import SUMMED
from tests.paradigms.audit.test_lesions import EGG, LEAK, LEARNT
from tests.paradigms.audit.test_world import (
    COUNTED,
    LEFT_OVER,
    REVERSED,
    WAITS,
    WHENEVER,
)

Plant = Callable[..., ArenaParadigm]
NewNode = Callable[..., Node]


def test_an_end_is_worth_its_successes_and_the_likeliest_guess(new: NewNode) -> None:
    weights = [(0, 1, 0.375), (7, 0, 0.25), (7, 1, 0.25), (3, 0, 0.125)]
    cloud = {
        new(lasting=lasting, success=success): weight
        for lasting, success, weight in weights
    }
    assert certainty(cloud) == 0.5
    assert ended(cloud) == Worth(0.625, 0.5)
    assert certainty({}) == 0.0
    both = Worth(0.25, 0.5)
    both.add(Worth(0.5, 0.125))
    assert both == Worth(0.75, 0.625)


def test_kinds_come_by_weight_each_with_its_likeliest_node(new: NewNode) -> None:
    rare, first, second, tied = new(1), new(2), new(2), new(3)
    cloud = {rare: 0.125, first: 0.125, second: 0.25, tied: 0.375}
    assert _kinds(cloud) == [(0.375, second), (0.375, tied), (0.125, rare)]
    # Rounding does not decide.
    assert _kinds({**cloud, tied: 0.375 + 1e-12})[0][1] is second


def test_a_plan_that_succeeds_goes_first_then_weight_and_length(new: NewNode) -> None:
    def plan(steps: int, *, success: bool = True) -> Plan:
        return Plan((0,) * steps, success)

    likely, short, failing = new(), new(), new()
    choices = [
        (0.9, failing, plan(1, success=False)),
        (0.06, likely, plan(30)),
        (0.04, short, plan(10)),
    ]
    for manner, followed in [
        (Manner(1, 1), short),
        (Manner(0, 1), short),
        (Manner(1, 0), likely),
    ]:
        assert _nearest(choices, manner)[0] is followed
    even = [(0.5, likely, plan(5)), (0.5, short, plan(5))]
    assert _nearest(even, Manner(1, 1))[0] is likely


def lives(
    paradigm: ArenaParadigm, lesion: str, trials: int, errand: Errand | None = None
) -> list[Lived]:
    return Adversary(paradigm, Lesion.parse(lesion), 0.05).live(3, 1, trials, errand)


def test_an_errand_is_done_whatever_it_costs_and_then_no_more(plant: Plant) -> None:
    paradigm = plant(("{enter: arm, end", "{enter: arm, reward: -1, end"))
    free = lives(paradigm, "intact", 3)
    assert [(one.success, one.reward) for one in free] == [(True, 1.0)] * 3
    sent = lives(paradigm, "intact", 3, Errand("error", 2))
    assert [one.success for one in sent] == [False, False, True]
    assert [one.reward for one in sent] == [-1.0, -1.0, 1.0]
    # The outcome, the state at the end and any state on the way can be a target.
    assert all(
        one.success for one in lives(paradigm, "intact", 2, Errand("correct", 2))
    )
    assert lives(paradigm, "intact", 1, Errand("choice", 1))[0].steps >= 3


def test_an_errand_that_cannot_be_done_is_waited_out(plant: Plant) -> None:
    sent = lives(plant(), "intact", 2, Errand("nowhere", 1))
    assert [(one.success, one.steps) for one in sent[:1]] == [(False, 40)]
    assert sent[1].success
    assert sent[1].steps < 40


def test_a_life_has_its_trials_sessions_and_what_counts(plant: Plant) -> None:
    blocks = (
        "schedule: {main: {sessions: 2, trials: 10}}",
        "schedule: {main: {sessions: 2, trials: 1}, after: {trials: 2}}\nestimand: {block: main}",
    )
    paradigm = plant(blocks)
    whole = lives(paradigm, "intact", 20)
    assert [(one.trial, one.session, one.judged) for one in whole] == [
        (0, 1, True),
        (1, 2, True),
        (2, 3, False),
        (3, 3, False),
    ]
    assert len(lives(paradigm, "intact", 3)) == 3
    # Nothing counts after the last judged block.
    assert [one.trial for one in lives(paradigm, "blind", 20)] == [0, 1]


def test_what_was_computed_of_one_subject_says_nothing_of_the_next(
    plant: Plant,
) -> None:
    told = (
        ("\ndraw:", "\nvars: {card: 0}\ndraw:"),
        ("{freeze: true", '{set: {card: subject}, say: "{card}", freeze: true'),
    )
    paradigm, lesion = plant(*LEARNT, *told), Lesion.parse("amnesia=choice")
    adversary = Adversary(paradigm, lesion, 0.05)
    both = [adversary.live(3, subject, 6) for subject in (0, 1)]
    assert both[1] == Adversary(paradigm, lesion, 0.05).live(3, 1, 6)


def test_what_is_measured_is_noted_if_the_verdict_is_about_it(plant: Plant) -> None:
    assert lives(plant(), "intact", 1)[0].measured is None
    judged = "measure: latency, value: 9, better: lower, margin: 2, range: [0, 40]"
    measure = (
        "reference: [{measure: success, value: 0.9,",
        f"measures: {{latency: steps}}\nreference: [{{{judged},",
    )
    one = lives(plant(measure), "intact", 1)[0]
    assert one.measured == one.steps


def test_who_cannot_follow_guesses_and_nobody_is_lost(plant: Plant) -> None:
    adversary = Adversary(plant(), Lesion.parse("amnesia=choice"), 0.05)
    guessed = [one.success for one in adversary.live(3, 1, 20)]
    assert 4 <= sum(guessed) <= 16
    assert adversary.followed == 1.0
    assert guessed == [one.success for one in lives(plant(), "amnesia=choice", 20)]


#: The left arm is far, and the cue is over.
UNEVEN = (
    ("start: cue", "start: choice"),
    (
        "#########\n    #LL.B.RR#\n    #########",
        "############\n    #LL....B.RR#\n    ############",
    ),
    ("face: random", "face: E"),
)
#: To turn left tells the side.
TOLD = (
    *UNEVEN,
    (
        "- {enter: arm, end: error}",
        "- {enter: arm, end: error}\n        - {act: ROTATE_LEFT, if: side == left, reward: 0.1}",
    ),
)


def at_choice(paradigm: ArenaParadigm, lesion: str = "intact") -> World:
    return World(paradigm, Lesion.parse(lesion))


def sides(world: World) -> dict[str, Node]:
    """Return the hypotheses at the beginning by the side that is drawn."""
    [belief] = world.begin(world.prior()).values()
    return {
        str(world.nodes.life(node, 0).values["side"]): node for node in cloud_of(belief)
    }


def begun(world: World, effort: float = 1.0) -> Planner:
    planner = Planner(world, effort)
    planner.begin_life()
    planner.begin_trial()
    return planner


def test_the_manner_says_whether_likely_or_near_is_followed(plant: Plant) -> None:
    world = at_choice(plant(*UNEVEN))
    found, planner = sides(world), begun(world)
    cloud = {found["left"]: 1.1, found["right"]: 0.9}
    for manner, followed, worth in [
        (Manner(1, 1), "right", 0.9),
        (Manner(0, 1), "right", 0.9),
        (Manner(1, 0), "left", 1.1),
    ]:
        before = world.work
        leader, plan = planner.leader(cloud, 0, manner)
        assert world.work - before == len(cloud)
        assert leader is found[followed]
        assert plan.success
        # Whoever enters an arm learns the side.
        assert planner.follow(cloud, 0, 2.0, manner) == Worth(worth, 2.0)
        assert planner.play(cloud, 0, Course(manner=manner), 2.0) == Worth(worth, 2.0)
        assert planner.base(cloud, 0, manner).leader is leader
    before = world.work
    only = planner.leader({found["left"]: 1.0}, 0, Manner(0, 1))
    assert only[0] is found["left"]
    assert world.work == before
    # The best of the candidates is decided on, and the nearest is no base of it.
    decision = planner.decide(cloud, 0, 5)
    assert decision == planner.base(cloud, 0, Manner(1, 0))
    assert decision != planner.base(cloud, 0)
    # An alternative must be better by more than the sampling error.
    even = {found["left"]: 0.501, found["right"]: 0.499}
    assert planner.decide(even, 0, 5) == planner.base(even, 0)
    assert planner.decide({found["right"]: 1.0}, 0, 5).leader is found["right"]


def test_what_tells_rivals_apart_is_a_candidate(plant: Plant) -> None:
    world = at_choice(plant(*TOLD))
    found, planner = sides(world), begun(world)
    cloud = {found["left"]: 0.5, found["right"]: 0.5}
    [course] = planner._doubts(cloud, 0)
    assert course == Course((ROTATE_LEFT,), leader=found["right"])
    assert course in planner._candidates(cloud, 0, is_settled=False)
    for node in cloud:
        plan = Course(planner.base({node: 1.0}, 0).actions)
        assert plan in planner._candidates(cloud, 0, is_settled=False)
    assert list(planner._candidates(cloud, 0, is_settled=True)) == [
        Course(manner=Manner(1, 1)),
        Course(manner=Manner(0, 1)),
        Course(manner=Manner(1, 0)),
    ]
    assert planner.play(cloud, 0, course, 1.0) == Worth(1.0, 1.0)
    # Without it, a guess is right in half.
    assert planner.play(cloud, 0, Course(), 1.0) == Worth(0.5, 1.0)
    assert planner.decide(cloud, 0, 5).actions != planner.base(cloud, 0).actions


def test_in_vain_nothing_is_tried_more_than_three_times(plant: Plant) -> None:
    world = at_choice(plant(("start: cue", "start: choice")), "blind")
    [belief] = world.begin(world.prior()).values()
    cloud, planner = cloud_of(belief), begun(world)
    spent = []
    for _ in range(5):
        before = world.work
        assert list(planner._doubts(cloud, 0)) == []
        spent.append(world.work - before)
    assert spent[0] == spent[1] == spent[2] > spent[3]
    assert spent[3] == spent[4] == len(cloud)


def test_before_it_forgets_a_subject_plans_nothing_ahead(plant: Plant) -> None:
    adversary = Adversary(plant(*UNEVEN), Lesion.parse("intact"), 1.0)
    adversary.planner.begin_life()
    adversary.planner.begin_trial()
    [belief] = begun_beliefs(adversary)
    far = {
        one: 1.1
        if str(adversary.world.nodes.life(one[0], 0).values["side"]) == "left"
        else 0.9
        for one in belief
    }
    planner, cloud = adversary.planner, cloud_of(far)
    assert adversary._decide(Progress(far), True) == planner.base(cloud, 0)
    assert adversary._decide(Progress(far), False) == planner.decide(cloud, 0, 19)
    assert planner.decide(cloud, 0, 19) != planner.base(cloud, 0)


def begun_beliefs(adversary: Adversary) -> list[Belief]:
    return list(adversary.world.begin(adversary.world.prior()).values())


#: The arm that was not entered last is right. No cue tells it.
ALTERNATING = (
    (
        "draw:\n  side: {of: {side: [left, right]}}\n",
        "vars: {home: {init: none, per: subject}}\n",
    ),
    (', show: {side: "*"}', ""),
    (
        "{enter: side, reward: 1, end: correct}",
        "{enter: arm, if: it != home, set: {home: it}, reward: 1, end: correct}",
    ),
    ("{enter: arm, end: error}", "{enter: arm, set: {home: it}, end: error}"),
    ("checks: [{at: choice, hidden: side, chance: 0.5}]\n", ""),
)


def homes(adversary: Adversary, rest: Rest) -> dict[object, float]:
    """Return the weights of the arms entered last."""
    found: dict[object, float] = {}
    for part in adversary.world.begin(rest).values():
        for (node, _), weight in part.items():
            home = adversary.world.nodes.life(node, 0).values["home"]
            found[home] = found.get(home, 0.0) + weight
    return found


def test_a_trial_that_is_forgotten_ends_as_for_all_that_act_alike(plant: Plant) -> None:
    adversary = Adversary(plant(*ALTERNATING), Lesion.parse("amnesia=trial"), 0.05)
    world = adversary.world
    ensemble = world.begin(world.prior())
    # They all would enter the same arm.
    [(home, weight)] = homes(adversary, adversary.carried(ensemble)).items()
    assert home in ("left", "right")
    assert weight == pytest.approx(1)
    # On an errand all repeat the actions: two of eight faces look along the corridor.
    actions = [STAY] * 3 + [FORWARD] * 2
    repeated = adversary.carried(ensemble, actions, is_errand=True)
    assert homes(adversary, repeated) == {"left": 0.125, "right": 0.125, None: 0.75}
    # The true end stays possible, and comes last.
    ends = adversary.carried(
        ensemble, actions, {77: 1.0, next(iter(repeated)): 1.0}, is_errand=True
    )
    assert ends == {**repeated, 77: UNLIKELY}
    assert [one.success for one in adversary.live(3, 1, 6)] == [True] * 6


def test_where_nothing_hangs_on_behaviour_every_end_is_possible(plant: Plant) -> None:
    adversary = Adversary(plant(), Lesion.parse("amnesia=trial"), 0.05)
    ensemble = adversary.world.begin(adversary.world.prior())
    carried = adversary.carried(ensemble)
    assert sum(carried.values()) == pytest.approx(1)
    assert None not in adversary.world.begin(carried)


def test_a_subjects_number_is_known_where_it_is_read(plant: Plant) -> None:
    numbered = (
        *ALTERNATING,
        ("if: it != home,", "if: (it == left) == (subject == 1),"),
    )
    adversary = Adversary(plant(*numbered), Lesion.parse("intact"), 0.05)
    for subject in (1, 0, 2):
        assert all(one.success for one in adversary.live(0, subject, 4))
    # Elsewhere all subjects share what is known.
    adversary = Adversary(plant(), Lesion.parse("intact"), 0.05)
    world = adversary.world
    adversary.live(0, 1, 2)
    assert adversary.world is world


def test_who_forgets_within_the_trial_too_repeats_the_actions(plant: Plant) -> None:
    lesion = Lesion.parse("amnesia=choice+amnesia=trial")
    adversary = Adversary(plant(*ALTERNATING), lesion, 0.05)
    ensemble = adversary.world.begin(adversary.world.prior())
    actions = [STAY] * 3 + [FORWARD] * 2
    assert homes(adversary, adversary.carried(ensemble, actions)) == {
        "left": 0.125,
        "right": 0.125,
        None: 0.75,
    }
    assert not all(one.success for one in adversary.live(3, 1, 8))


def test_beyond_its_effort_a_life_is_not_planned_ahead(plant: Plant) -> None:
    world = World(plant(("start: cue", "start: choice")), Lesion.parse("blind"))
    [belief] = world.begin(world.prior()).values()
    cloud = cloud_of(belief)
    assert len(cloud) > 1

    def planned(effort: float) -> int:
        planner = begun(world, effort)
        before = world.work
        planner.decide(cloud, 0, 5)
        return world.work - before

    assert planned(1.0) > 10 * planned(-1.0)


#: Which side is right tells nothing, and neither does how many turns it takes.
LOCKED = (
    *UNEVEN,
    (
        "side: {of: {side: [left, right]}}",
        "side: {of: {side: [left, right, right]}}\n"
        "  lock: {of: {lock: [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 9, 10]}}",
    ),
    (
        "{enter: side, reward",
        "{act: ROTATE_LEFT, count: turned}\n"
        "        - {enter: side, if: turned == lock or turned == lock + 1, reward",
    ),
)
#: Blocks that end early, so that the number of a trial tells what came before it.
EARLY = (*REVERSED, *WHENEVER, ("UNTIL", "until: {outcome: correct, count: 3, of: 3}"))
#: Small tasks, each with one thing that matters to what a subject believes.
SMALL: dict[str, tuple[tuple[str, str], ...]] = {
    "plain": (),
    "uneven": UNEVEN,
    "told": TOLD,
    "locked": LOCKED,
    "learnt": LEARNT,
    "alternating": ALTERNATING,
    "leak": LEAK,
    "egg": (*EGG, ("WHEN", "last == timeout")),
    "summed": SUMMED,
    "counted": COUNTED,
    "left over": LEFT_OVER,
    "waits": WAITS,
    "early": EARLY,
}
#: Six trials of two subjects each (``+`` a success), the share of subjects that were
#: followed, and the effort: the work on beliefs, and all of it. First with an effort of
#: 0.05, then with 0.0005, for which less is planned ahead.
LIVES = {
    ("plain", "intact"): ["++++++ ++++++ 1 275 1659", "++++++ ++++++ 1 275 1659"],
    ("plain", "amnesia=choice"): [
        "-++++- ++--+- 1 12592 15796",
        "-++++- ++--+- 1 708 2312",
    ],
    ("plain", "amnesia=trial"): [
        "++++++ ++++++ 1 275 1659",
        "++++++ ++++++ 1 275 1659",
    ],
    ("plain", "blind+anhedonia"): [
        "-++++- ++--+- 1 29100 32680",
        "-++++- ++--+- 1 2920 4644",
    ],
    ("uneven", "intact"): ["----++ +----+ 1 2718 7526", "----++ +----+ 1 102 902"],
    ("uneven", "amnesia=choice"): [
        "----++ +----+ 1 2718 7526",
        "----++ +----+ 1 102 902",
    ],
    ("uneven", "amnesia=trial"): [
        "----++ +----+ 1 2718 7526",
        "----++ +----+ 1 102 902",
    ],
    ("uneven", "blind+anhedonia"): [
        "----++ +----+ 1 2718 7526",
        "----++ +----+ 1 102 902",
    ],
    ("told", "intact"): ["++++++ ++++++ 1 164 1076", "----++ +----+ 1 102 902"],
    ("told", "amnesia=choice"): ["++++++ ++++++ 1 164 1076", "----++ +----+ 1 102 902"],
    ("told", "amnesia=trial"): ["++++++ ++++++ 1 164 1076", "----++ +----+ 1 102 902"],
    ("told", "blind+anhedonia"): [
        "----++ +----+ 1 2718 7526",
        "----++ +----+ 1 102 902",
    ],
    ("locked", "intact"): ["-----+ +----+ 1 1056 18700"] * 2,
    ("locked", "amnesia=choice"): ["-----+ +----+ 1 1056 18700"] * 2,
    ("locked", "amnesia=trial"): ["-----+ +----+ 1 1056 18700"] * 2,
    ("locked", "blind+anhedonia"): ["-----+ +----+ 1 1056 18700"] * 2,
    ("learnt", "intact"): ["-+++++ ++++++ 1 2207 5423", "-+++++ ++++++ 1 215 1663"],
    ("learnt", "amnesia=choice"): [
        "-+++++ ++++++ 1 2495 5879",
        "-+++++ ++++++ 1 503 2119",
    ],
    ("learnt", "amnesia=trial"): [
        "-+++-+ +--+-- 1 12136 15424",
        "-+++-+ +--+-- 1 424 2080",
    ],
    ("learnt", "blind+anhedonia"): [
        "-+++-+ +-++-- 1 29200 32844",
        "-+++-+ +-++-- 1 2924 4648",
    ],
    ("alternating", "intact"): ["++++++ ++++++ 1 171 1811", "++++++ ++++++ 1 171 1811"],
    ("alternating", "amnesia=choice"): [
        "++++++ ++++++ 1 315 2339",
        "++++++ ++++++ 1 315 2339",
    ],
    ("alternating", "amnesia=trial"): [
        "++++++ ++++++ 1 507 3291",
        "+---+- +----+ 1 9609 14161",
    ],
    ("alternating", "blind+anhedonia"): [
        "+-++-- +--+-+ 1 27468 32020",
        "+-++-- +--+-+ 1 2776 5536",
    ],
    ("leak", "intact"): ["++++++ ++++++ 1 275 2047", "++++++ ++++++ 1 275 2047"],
    ("leak", "amnesia=choice"): [
        "++++++ ++++++ 1 515 2559",
        "++++++ ++++++ 0.5 490 2534",
    ],
    ("leak", "amnesia=trial"): ["++++++ ++++++ 1 275 2047", "++++++ ++++++ 1 275 2047"],
    ("leak", "blind+anhedonia"): [
        "-++++- ++--+- 1 28652 32804",
        "-++++- ++--+- 1 2920 5216",
    ],
    ("egg", "intact"): ["-+++++ ++++++ 1 2207 5487", "-+++++ ++++++ 1 215 1727"],
    ("egg", "amnesia=choice"): [
        "-+++++ ++++++ 1 2495 5943",
        "-+++++ ++++++ 1 503 2183",
    ],
    ("egg", "amnesia=trial"): [
        "-+++-+ +--+-- 1 16598 20110",
        "-+++-+ +--++- 1 6136 10220",
    ],
    ("egg", "blind+anhedonia"): [
        "-+++-+ +-++-- 1 29200 32972",
        "-+++-+ +-++-- 1 2924 4776",
    ],
    ("summed", "intact"): ["++++++ ++++++ 1 273 1797", "++++++ ++++++ 1 273 1797"],
    ("summed", "amnesia=choice"): [
        "+-++-+ ++--+- 1 12592 16052",
        "+-++-+ ++--+- 1 708 2568",
    ],
    ("summed", "amnesia=trial"): [
        "++++++ ++++++ 1 273 1797",
        "++++++ ++++++ 1 273 1797",
    ],
    ("summed", "blind+anhedonia"): [
        "+-++-+ ++--+- 1 29100 32936",
        "+-++-+ ++--+- 1 2920 4900",
    ],
    ("counted", "intact"): ["++++++ ++++++ 1 282 3434", "++++++ ++++++ 1 282 3434"],
    ("counted", "amnesia=choice"): [
        "-+---+ --++-+ 1 10604 16872",
        "++---+ ++++-+ 0 862 6766",
    ],
    ("counted", "amnesia=trial"): [
        "++++++ ++++++ 1 282 3434",
        "++++++ ++++++ 1 282 3434",
    ],
    ("counted", "blind+anhedonia"): [
        "-+---+ --++-+ 1 27304 32824",
        "-+---+ --++-+ 1 2784 4976",
    ],
    ("left over", "intact"): ["++++++ ++++++ 1 275 1659", "++++++ ++++++ 1 275 1659"],
    ("left over", "amnesia=choice"): [
        "-++++- ++--+- 1 12592 15796",
        "-++++- ++--+- 1 708 2312",
    ],
    ("left over", "amnesia=trial"): [
        "++++++ ++++++ 1 275 1659",
        "++++++ ++++++ 1 275 1659",
    ],
    ("left over", "blind+anhedonia"): [
        "-++++- ++--+- 1 28252 32612",
        "-++++- ++--+- 1 2920 5244",
    ],
    ("waits", "intact"): ["++++++ ++++++ 1 275 2043", "++++++ ++++++ 1 275 2043"],
    ("waits", "amnesia=choice"): [
        "-++++- ++--+- 1 12592 16180",
        "-++++- ++--+- 1 708 2696",
    ],
    ("waits", "amnesia=trial"): [
        "++++++ ++++++ 1 275 2043",
        "++++++ ++++++ 1 275 2043",
    ],
    ("waits", "blind+anhedonia"): [
        "-++++- ++--+- 1 29100 33064",
        "-++++- ++--+- 1 2920 5028",
    ],
    ("early", "intact"): ["++++++ ++++++ 1 2122 4958", "++++++ ++++++ 1 126 946"],
    ("early", "amnesia=choice"): [
        "++++++ ++++++ 1 2143 4979",
        "++++++ ++++++ 1 147 967",
    ],
    ("early", "amnesia=trial"): [
        "++++++ ++++++ 1 2231 5075",
        "++++++ ++++++ 1 235 1063",
    ],
    ("early", "blind+anhedonia"): [
        "++++++ ++++++ 1 2162 5006",
        "++++++ ++++++ 1 166 994",
    ],
}


def film(adversary: Adversary) -> str:
    both = [adversary.live(seed, seed, 6) for seed in range(2)]
    signs = ("".join("-+"[one.success] for one in life) for life in both)
    work, spent = adversary.world.work, adversary.world.spent
    return f"{' '.join(signs)} {adversary.followed:.3g} {work} {spent:.0f}"


@pytest.mark.parametrize("name", SMALL)
def test_lives_and_their_effort_are_written_down(plant: Plant, name: str) -> None:
    """A change of the search that is meant changes these lines."""
    paradigm = plant(*SMALL[name])
    for (task, lesion), lines in LIVES.items():
        if task == name:
            efforts = (0.05, 0.0005)
            known = Lesion.parse(lesion)
            found = [film(Adversary(paradigm, known, effort)) for effort in efforts]
            assert found == lines, lesion
