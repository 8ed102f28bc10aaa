"""No bound is below an achievable rate: random small protocols, and those that once
broke a bound.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import beliefs
from cheesebench.paradigms.arena.audit.adversary import Adversary
from cheesebench.paradigms.arena.audit.beliefs import TooManyError
from cheesebench.paradigms.arena.audit.exact import (
    _forgets,
    _hangs_on_the_past,
    _informed,
    _of_one_trial,
    _told_all,
    by_walks,
    from_anywhere,
    upper_bound,
)
from cheesebench.paradigms.arena.audit.lesions import Ceiling
from cheesebench.paradigms.arena.audit.walks import without_deadlines
from tests.arenas import examine_text
from tests.paradigms.audit.random_protocols import GATES, PLUS, random_protocol

#: Small limits: most of these protocols are small, and the others are given up.
EFFORT, FEW, MANY = 0.01, 3, 200
SEVERAL = 0.001
LESIONS = (
    "blind",
    "blind",
    "intact",
    "amnesia=trial",
    "amnesia=run",
    "anhedonia",
    "pose-only",
    "hide=arm",
)


def exceeded(bound: float, paradigm: ArenaParadigm, lesion: Lesion) -> bool:
    """Return whether real lives significantly exceed the bound. A few may do so by
    luck, many do not.
    """
    adversary, planned = (
        Adversary(paradigm, lesion, EFFORT),
        paradigm.specification.planned_trials,
    )
    return all(
        Ceiling(
            lesion, tuple(tuple(adversary.live(seed, seed, planned)) for seed in seeds)
        ).surely
        > bound + 1e-6
        for seeds in (range(FEW), range(FEW, MANY))
    )


def accepted(text: str) -> ArenaParadigm:
    specification, found = examine_text(text)
    assert specification is not None, found
    return ArenaParadigm(specification)


def attempt(
    bound: Callable[[Adversary, float], float | None],
    adversary: Adversary,
    effort: float = EFFORT,
) -> float | None:
    try:
        return None if _hangs_on_the_past(adversary.world) else bound(adversary, effort)
    except TooManyError:
        return None


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_no_bound_of_a_random_protocol_is_too_low(first: int) -> None:
    proved = [
        _proves(random_protocol(seed), LESIONS[seed % len(LESIONS)])
        for seed in range(first, first + 50)
    ]
    assert sum(proved) > 5


def _proves(text: str, words: str) -> bool:
    """Return whether there is a bound, after checking that it is not too low, and not
    below an exact one.
    """
    specification, _ = examine_text(text)
    if specification is None:
        return False
    lesion, paradigm = Lesion.parse(words), ArenaParadigm(specification)
    if _hangs_on_the_past(Adversary(paradigm, lesion, EFFORT).world):
        return False
    free = ArenaParadigm(without_deadlines(specification))

    def adversary(one: ArenaParadigm = paradigm) -> Adversary:
        return Adversary(one, lesion, EFFORT)

    walks, anywhere = (
        attempt(by_walks, adversary()),
        attempt(from_anywhere, adversary()),
    )
    unhurried = attempt(from_anywhere, adversary(free))
    turned = attempt(from_anywhere, Adversary(free, lesion, EFFORT, faces_alike=True))
    assert unhurried is None or turned == pytest.approx(unhurried), text
    forgets = _forgets(adversary().world)
    exact = attempt(_of_one_trial if forgets else _told_all, adversary())
    informed = None if forgets else attempt(_informed, adversary())
    bounds = [
        one for one in (walks, anywhere, unhurried, exact, informed) if one is not None
    ]
    relaxed = [walks, anywhere] if lesion.forgets_at else [walks, anywhere, unhurried]
    assert exact is None or all(
        one >= exact - 1e-6 for one in relaxed if one is not None
    ), (bounds, exact)
    if min(bounds, default=1) < 1 - SEVERAL:
        assert not exceeded(min(bounds), paradigm, lesion), (text, words, bounds)
    return bool(bounds)


SIDE = "d: {of: {side: [left, right]}}"
CHOICE = "{enter: side, end: good}, {enter: arm, end: bad}"
CUED = f"run: {{show: {{side: '*'}}, rules: [{CHOICE}]}}"
WAITS = "cue: {freeze: true, rules: [{after: 1, go: run}]}"
PLACES = "left, left, right, right, left, left, left, right"


@pytest.mark.parametrize(
    ("lesion", "draws", "limit", "states", "success", "rate"),
    [
        # A turn to the same side is right from both ends, but leads a blind subject to
        # different places.
        ("blind", "d: {of: {at: [up, down], face: [S, N], side: [left, right]}}", "30",
         f"run: {{rules: [{CHOICE}]}}", "last == good", 1),
        # Hypotheses that differ only in the picture after an error count separately:
        # three of four are not one of two.
        ("intact", f"d: {{of: {{side: [{PLACES}], v: [x, y, x, y, x, y, z, x], w: [p, p, p, p, q, q, q, q]}}}}", "30",
         "cue: {freeze: true, show: {box: w}, rules: [{after: 1, go: run}]}\n    "
         "run: {rules: [{enter: side, end: good}, {enter: arm, go: lost}]}\n    "
         "lost: {freeze: true, show: {box: v}, rules: [{after: 1, end: bad}]}", "last == good", 5 / 8),
        # Time runs out while the subject waits.
        ("intact", "d: {of: {side: [left, right], wait: [1, 20]}}", "9",
         "cue: {freeze: true, rules: [{after: wait, go: run}]}\n    run: {rules: [{after: 1, end: bad}]}",
         "last == timeout", 1 / 2),
        # Time runs out only in some trials; and every action but STAY is a mistake.
        ("intact", "d: {of: {side: [left, right], late: [6, 60]}}", "late", f"run: {{rules: [{CHOICE}]}}",
         "(last == timeout and late == 6) or (last == good and late == 60)", 1),
        ("intact", SIDE, "20", "run: {rules: [{act: STAY, end: bad}, {enter: arm, end: bad}]}", "last == timeout", 1),
        # The length of the first trial tells where the others pay; so does the reward
        # of its last step.
        ("blind", "d: {per: subject, of: {side: [left, right], late: [10, 60]}}", "late",
         f"run: {{rules: [{CHOICE}]}}", "last == good", 0.95),
        ("blind", "d: {per: subject, of: {side: [left, right]}}", "20",
         f"run: {{each: {{reward: 0 - (side == left)}}, rules: [{CHOICE}, {{act: any, reward: side == left}}]}}",
         "last == good", 0.95),
        # A block that is not judged reveals the answer of the judged one.
        ("anhedonia", "d: {per: subject, of: {side: [left, right]}}", "30",
         "cue: {freeze: true, rules: [{after: 1, if: block == one, go: told}, {after: 1, go: run}]}\n    "
         f"told: {{freeze: true, show: {{side: '*'}}, rules: [{{after: 1, go: run}}]}}\n    run: {{rules: [{CHOICE}]}}",
         "last == good", 1),
        # A clock that only pays, and one that fires in some trials.
        ("intact", SIDE, "30", f"{CUED[:-2]}, {{after: 1, reward: 1}}]}}", "last == good", 1),
        ("intact", f"{SIDE}\n  e: {{of: {{b: [0, 1]}}}}", "30",
         f"{CUED.replace('[{', '[{after: 2, if: b == 1, end: bad}, {', 1)}", "last == good", 1 / 2),
        # Some trials succeed before anything is forgotten.
        ("amnesia=run", f"{SIDE}\n  e: {{of: {{b: [0, 1]}}}}", "30",
         f"{WAITS.replace('[', '[{after: 1, if: b == 1, end: good}, ')}\n    run: {{rules: [{CHOICE}]}}",
         "last == good", 3 / 4),
        # The same values decide about another rule in another block.
        ("intact", "d: {of: {b: [0, 1]}}\n  e: {of: {c: [0, 1]}}", "30",
         "run: {rules: [{enter: left, if: block == one and b == 1, end: bad}, "
         "{enter: left, if: block == one, end: bad}, "
         "{enter: left, if: block == two and c == 1, end: good}, {enter: left, if: block == two, end: good}]}",
         "last == good", 1),
        # An event that can happen by chance in two ways is as likely as both together.
        ("intact", SIDE, "6", "run: {rules: [{act: any, p: 0.5, count: n}, {enter: arm, end: bad}, "
         "{press: any, end: bad}]}", "last == timeout", 1),
    ],
)  # fmt: skip
def test_these_have_once_broken_a_bound(
    lesion: str, draws: str, limit: str, states: str, success: str, rate: float
) -> None:
    start, first = (
        ("at", "face: face") if "at:" in draws else ("box", "face: N"),
        states.split(":")[0],
    )
    text = (
        f"version: 1\nparadigm: broken\n{PLUS}draw:\n  {draws}\nstart: {{at: {start[0]}, {start[1]}}}\n"
        f"trial:\n  limit: {limit}\n  start: {first}\n  states:\n    {states}\n"
        f"schedule: {{one: {{trials: 2}}, two: {{trials: 20}}}}\nsuccess: {success}\nestimand: {{block: two}}\n"
    )
    paradigm, words = accepted(text), Lesion.parse(lesion)
    for bound in (by_walks, from_anywhere, upper_bound):
        assert (
            1
            if (one := attempt(bound, Adversary(paradigm, words, 0.1), 0.1)) is None
            else one
        ) >= rate - 1e-6, bound


@pytest.mark.parametrize("shut", ["gate, side_door", "side_door, gate"])
def test_doors_that_shut_all_goals_say_nothing_of_those_that_do_not(shut: str) -> None:
    text = (
        f"version: 1\nparadigm: doors\n{GATES}draw:\n  {SIDE}\n  e: {{of: {{shut: [{shut}]}}}}\nstart: {{at: box}}\n"
        f"trial:\n  limit: 30\n  start: run\n  states: {{run: {{close: [shut], rules: [{CHOICE}]}}}}\n"
        "schedule: {one: {trials: 20}}\nsuccess: last == good\n"
    )
    assert from_anywhere(
        Adversary(accepted(text), Lesion.parse("intact"), 0.1), 0.1
    ) == pytest.approx(0.25)


@pytest.mark.parametrize(("where", "proved"), [("b == 1", None), ("trial > 1", 0.25)])
def test_no_bound_is_one_on_trials_that_are_chosen_by_what_happens_in_them(
    where: str, proved: float | None
) -> None:
    text = (
        f"version: 1\nparadigm: chosen\n{PLUS}draw:\n  {SIDE}\n  e: {{of: {{b: [0, 1]}}}}\nstart: {{at: box}}\n"
        f"trial:\n  limit: 30\n  start: run\n  states: {{run: {{rules: [{CHOICE}]}}}}\n"
        f"schedule: {{one: {{trials: 20}}}}\nsuccess: last == good and b == 1\nestimand: {{where: {where}}}\n"
    )
    assert upper_bound(Adversary(accepted(text), Lesion.parse("blind"), 1.0)) == proved


def test_what_a_subject_notes_before_it_forgets_leaves_no_bound() -> None:
    """The subject bumps into a wall if the left arm is shut, and this mark remains
    after the wait.
    """
    text = """version: 1
paradigm: noted
arena:
  map: |
    #######
    #Ll.rR#
    ###.###
      #B#
      ###
  legend: {L: left, R: right, l: {door: gate_left}, r: {door: gate_right}, B: box}
  groups: {arm: [left, right]}
  headings: 4
vars: {mark: a, seen: 0, tip: 0, spot: left}
draw: {sample: {of: {sample: [left, right], shut: [gate_right, gate_left]}}}
start: {at: box, face: random}
trial:
  limit: 32
  start: forced
  states:
    forced: {close: [shut], rules: [{enter: arm, go: delay}MARKING]}
    delay: {place: box, freeze: true, say: wait, rules: [{after: 4 + seen, go: free}]}
    free: {show: {box: mark}, rules: [{enter: arm, if: it != sample, end: good}, {enter: arm, end: bad}]}
schedule: {one: {trials: 12}}
success: last == good
"""
    bumping, one_way = (
        ", {press: wall, set: {mark: b}}",
        "forced: {close: [shut], rules: [{enter: arm, go: delay}]}",
    )
    # Each arm leads to its own state, which sets the mark on entry, frozen or not.
    two_ways = """forced: {close: [shut], rules: [{enter: left, go: here}, {enter: right, go: there}]}
    here: {freeze: true, set: {mark: b}, rules: [{after: 1, go: delay}]}
    there: {freeze: true, rules: [{after: 1, go: delay}]}"""
    plain = text.replace("MARKING", "")
    late = plain.replace("if: it != sample", "if: (it == left) == (steps > 20)")
    visited = plain.replace(
        "free: {show", "free: {set: {seen: where(arm) == left}, show"
    ).replace("if: it != sample", "if: (it == left) == (seen == 0)")
    assert one_way in plain
    held = "forced: {freeze: true, rules: [{after: 4, go: delay}, {act: ROTATE_LEFT, set: {seen: 2}}]}"
    hands = two_ways.replace(
        "set: {mark: b}, rules: [{after: 1, go", "rules: [{after: 1, reward: 1, go"
    )
    tips = one_way.replace("[{enter", "[{press: wall, set: {tip: 1}}, {enter").replace(
        "go: delay", "go: here"
    )
    tips += "\n    here: {freeze: true, rules: [{after: 1, reward: tip, go: delay}]}"
    turns = "forced: {rules: [{act: ROTATE_LEFT, reward: 0.1}, {act: ROTATE_RIGHT}]}"
    at_once = "  finish: [{if: state == forced, go: delay}]\n  states:"
    carried = plain.replace("delay: {place: box, ", "delay: {").replace(
        one_way,
        hands.replace("reward: 1, ", "")
        .replace("there: {freeze", "there: {THEREfreeze")
        .replace("here: {freeze", "here: {place: box, freeze", 1),
    )
    told = plain.replace("delay: {place: box, ", "delay: {").replace(
        one_way,
        tips.replace("tip: 1", "tip: 1, spot: right")
        .replace("reward: tip, ", "")
        .replace("here: {", "here: {THERE"),
    )
    lifted = plain.replace(
        "seen, go: free}", "seen, go: free}, {act: ROTATE_LEFT, place: left}"
    )
    # The subject need not wait at all.
    for other, proved, *state in (
        (plain, 0.5),
        (text.replace("MARKING", bumping), None),
        (plain.replace(one_way, two_ways), None),
        (late, None),
        (
            text.replace("MARKING", ", {press: wall, go: free}"),
            None,
        ),
        (visited, None),
        # Effects during a hold: the subject is moved to another place, or the wait gets
        # longer.
        (lifted, None, "free"),
        # The subject's position on being put into the box is noted, or paid with the
        # first picture.
        (
            plain.replace("delay: {place", "delay: {set: {seen: heading == 90}, place"),
            None,
        ),
        (plain.replace("delay: {place", "delay: {reward: heading == 90, place"), None),
        (
            plain.replace(
                "enter: arm, go: delay", "enter: arm, reward: heading / 360, go: delay"
            ),
            None,
        ),
        (plain.replace(one_way, held), None),
        # One of two rules that move the subject pays, or an earlier one sets a value;
        # or any event leads to the end of a phase.
        (plain.replace(one_way, hands), None),
        (plain.replace(one_way, tips), None),
        (plain.replace(one_way, turns).replace("  states:", at_once), None),
        # Two rules, of which one moves the subject elsewhere; or a rule that moves it
        # to the announced place.
        (carried.replace("THERE", "place: left, "), None),
        (carried.replace("THERE", ""), None),
        (told.replace("THERE", "place: spot, "), None),
        (told.replace("THERE", "put: [2 + tip, 1], "), None),
        (told.replace("THERE", "place: box, "), 0.5),
    ):
        lesion = Lesion.parse(f"amnesia={(*state, 'delay')[0]}")
        assert upper_bound(Adversary(accepted(other), lesion, 1.0)) == proved, other


@pytest.mark.parametrize(
    ("lesion", "start", "states", "more", "rate"),
    [
        # A guard of the start asks for the position: the easy trials begin on one side.
        ("blind", "{at: arm, face: N}", "run: {place: box, rules: [{after: 1, end: bad}]}\n    "
         "easy: {place: box, rules: [{after: 1, end: good}]}", "trial.start: [{if: x < 2, go: easy}, run]", 1 / 4),
        # The subject is placed on one of four places, and success asks which.
        ("blind", "{at: box, face: N}", "run: {freeze: true, place: arm, rules: [{after: 1, end: good}]}",
         "success: last == good and where(arm) == left", 1 / 4),
        # The subject is placed on one of two drawn places.
        ("blind", "{at: box, face: N}", "run: {freeze: true, rules: [{after: 1, go: there}]}\n    "
         "there: {place: nests, rules: [{inside: left, end: good}, {after: 1, end: bad}]}",
         "draw: {nests: {pick: 2, of: {nests: [left, right, up, down]}}}", 1 / 4),
        # The subject is placed on one of four places, and a step there asks which.
        ("blind", "{at: box, face: N}", "run: {freeze: true, place: arm, each: {set: {knocks: x < 2}}, "
         "rules: [{after: 2, end: good}]}", "success: last == good and knocks == 1", 1 / 4),
        # The rule that sets a counter reads it; every step resets it.
        ("blind", "{at: box, face: N}",
         "run: {each: {set: {primed: 0}}, rules: [{act: STAY, if: primed == 1, end: good}]}",
         "watch: [{act: any, if: knocks > 2, set: {primed: 1}}, {act: ROTATE_LEFT, set: {knocks: knocks + 1}}]", 1),
    ],
)  # fmt: skip
def test_these_have_once_merged_what_differs(
    lesion: str, start: str, states: str, more: str, rate: float
) -> None:
    key, _, value = more.partition(": ")
    own = {
        "draw": "{}",
        "trial.start": "run",
        "success": "last == good",
        "watch": "[]",
    } | {key: value}
    text = (
        f"version: 1\nparadigm: merged\n{PLUS}vars: {{knocks: 0, primed: 0}}\ndraw: {own['draw']}\nstart: {start}\n"
        f"trial:\n  limit: 12\n  start: {own['trial.start']}\n  each: {{set: {{primed: 0}}}}\n  watch: {own['watch']}\n"
        f"  states:\n    {states}\n"
        f"schedule: {{one: {{trials: 4}}}}\nsuccess: {own['success']}\n"
    )
    bound = upper_bound(Adversary(accepted(text), Lesion.parse(lesion), 1.0))
    assert bound is None or bound >= rate - 1e-6


@pytest.mark.parametrize(
    ("measure", "better", "value", "proved"),
    [
        ("last == good", "higher", 0.8, 0.5), ("steps / 30", "lower", 0.2, None), ("last != good", "lower", 0.2, 0.5),
        ("last == good", "higher", 0.5, None), ("last == good", "alike", 0.8, None),
        # A measure counts trials that are not successes, or only trials that a subject
        # can choose.
        ("last != bad", "higher", 0.8, None), ("(last == good) / (last != bad)", "higher", 0.8, None),
        # A condition on the date alone cannot be chosen.
        ("(last == good) / (block == two)", "higher", 0.8, 0.5), ("(last == good) / (stage == 2)", "higher", 0.8, 0.5),
        ("(last == good) / (rota == 1 and trial > 2)", "higher", 0.8, 0.5),
        ("(last == good) / (n == 1)", "higher", 0.8, None), ("(last == good) / (b == 1)", "higher", 0.8, None),
    ],
)  # fmt: skip
def test_a_verdict_about_a_measure_is_proved_to_be_out_of_reach(
    measure: str, better: str, value: float, proved: float | None
) -> None:
    text = (
        f"version: 1\nparadigm: measured\n{GATES}vars: {{stage: {{init: 1, per: block}}}}\ndraw:\n  {SIDE}\n"
        "  r: {order: cycle, of: {rota: [1, 2]}}\n  e: {of: {b: [0, 1]}}\n"
        f"start: {{at: box, face: N}}\ntrial:\n  limit: 30\n  start: run\n  watch: [{{press: any, count: n}}]\n"
        f"  states: {{run: {{rules: [{CHOICE}]}}}}\n"
        "schedule: {one: {trials: 4}, two: {trials: 4, set: {stage: 2}}}\nsuccess: last == good\n"
        f"measures: {{index: {measure}}}\nreference: [{{measure: index, value: {value}, better: {better}, margin: 0.1, "
        "range: [0, 1], status: invented}]\n"
    )
    bound = upper_bound(Adversary(accepted(text), Lesion.parse("blind"), 0.1), 0.1)
    assert bound == (None if proved is None else pytest.approx(proved))


@pytest.mark.parametrize(("most", "proved"), [(100, 0.25), (10, None)])
def test_no_bound_is_of_a_part_of_what_is_possible(
    most: int, proved: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beliefs, "MOST", most)
    text = (
        f"version: 1\nparadigm: many\n{PLUS}draw:\n  {SIDE.replace('right', 'right, up, down')}\n"
        "  e: {per: subject, of: {b: {from: 1, to: 10}}}\nstart: {at: box, face: N}\n"
        f"trial:\n  limit: 30\n  start: run\n  states: {{run: {{rules: [{CHOICE}, "
        f"{{after: b + 9, reward: 1, go: more}}]}}, more: {{rules: [{CHOICE}]}}}}\n"
        "schedule: {one: {trials: 4}}\nsuccess: last == good\n"
    )
    assert (
        upper_bound(Adversary(accepted(text), Lesion.parse("blind"), 0.1), 0.1)
        == proved
    )


@pytest.mark.parametrize(
    ("draws", "shows", "success", "rate"),
    [
        # Two tables by the subject's number: one reveals the other.
        ("{side: {per: subject, order: by_subject, of: {side: [left, right]}}, "
         "mark: {per: subject, order: by_subject, of: {mark: [a, b, a, b]}}}", "{box: mark}", "last == good", 1),
        # Half a success counts as one.
        ("{side: {of: {side: [left, right]}}}", "{}", "(last == good) + 0.5 * (last == bad)", 1),
    ],
)  # fmt: skip
def test_what_is_alike_in_reality_is_alike_in_the_model(
    draws: str, shows: str, success: str, rate: float
) -> None:
    text = (
        f"version: 1\nparadigm: alike\n{PLUS}draw: {draws}\nstart: {{at: box, face: N}}\n"
        f"trial:\n  limit: 30\n  start: run\n  states: {{run: {{show: {shows}, rules: [{CHOICE}]}}}}\n"
        f"schedule: {{one: {{trials: 4}}}}\nsuccess: {success}\n"
    )
    assert upper_bound(
        Adversary(accepted(text), Lesion.parse("anhedonia"), 1.0)
    ) == pytest.approx(rate)
