"""Lesions of a world that changes: landmarks with changing glyphs, shrinking sets,
`finish` that leads to a state.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import Adversary
from cheesebench.paradigms.arena.audit.exact import upper_bound
from cheesebench.paradigms.arena.audit.lesions import LIVES, Order, measure
from cheesebench.paradigms.arena.audit.relevance import Relevance

Plant = Callable[..., ArenaParadigm]
#: A landmark is the lamp, not the side itself.
BEACON = (
    (
        "  groups: {arm: [left, right]}\n",
        '  groups: {arm: [left, right]}\n  landmarks: {W: "1", E: "2"}\n',
    ),
    ("{side: [left, right]}", "{side: [left, right], lamp: [W, E]}"),
    ('show: {side: "*"}', 'show: {lamp: "*"}'),
)
#: Every action counts, and after three the trial moves on, wherever the subject is.
COUNTED = (
    ("cue: {freeze: true,", "cue: {close: [],"),
    ("rules: [{after: 3, go: choice}]", "rules: [{act: any, count: waits}]"),
    ("    choice:\n", "    choice:\n      place: box\n"),
    ("schedule:", "  finish: [{if: waits == 3, go: choice}]\nschedule:"),
)
#: The right arm is the one that is still in the set.
LEFT_OVER = (
    ("start: {at", "vars: {free: [left, right]}\nstart: {at"),
    ("{side: [left, right]}", "{side: [left, right], other: [right, left]}"),
    ("    choice:\n", "    choice:\n      remove: {free: other}\n"),
    ("{enter: side, reward", "{enter: arm, if: it in free, reward"),
)


@pytest.mark.parametrize(
    ("changes", "lesion", "ceiling"),
    [
        (BEACON, "intact", 1.0),
        (BEACON, "hide=landmarks", 0.5),
        (BEACON, "hide=W+hide=E", 0.5),
        (BEACON, "hide=W", 1.0),  # the other one is lit, or not
        (BEACON, "amnesia=choice", 0.5),
        (COUNTED, "intact", 1.0),
        (COUNTED, "amnesia=choice", None),  # the count on the way might be a note
        (LEFT_OVER, "intact", 1.0),
        (LEFT_OVER, "amnesia=choice", 0.5),
        (LEFT_OVER, "hide=arm", 0.5),
    ],
)
def test_what_a_lesion_leaves(
    plant: Plant,
    changes: tuple[tuple[str, str], ...],
    lesion: str,
    ceiling: float | None,
) -> None:
    adversary = Adversary(plant(*changes), Lesion.parse(lesion), 1.0)
    assert upper_bound(adversary) == pytest.approx(ceiling)


#: Some waits are long, each twice in a round of four trials, but in the second block
#: only.
WAITS = (
    (
        "draw:",
        "vars: {pause: 0}\ndraw:\n  long: {order: shuffle, copies: 2, of: {long: [4, 9]}}",
    ),
    (
        "cue: {freeze",
        "cue: {set: {pause: 3 * (block != late) + long * (block == late)}, freeze",
    ),
    ("after: 3", "after: pause"),
    ("{main: {sessions: 2, trials: 10}}", "{main: {trials: 12}, late: {trials: 8}}"),
)


def test_what_is_drawn_for_another_block_is_no_hypothesis(plant: Plant) -> None:
    paradigm = plant(*WAITS)
    found = Relevance(paradigm.program).unread
    assert found == {"main": {"long"}, "late": set()}
    beginnings = []
    for unread in (found, dict.fromkeys(found, frozenset[str]())):
        adversary = Adversary(paradigm, Lesion.parse("intact"), 0.05)
        adversary.world.relevance.unread = unread
        assert all(one.success for one in adversary.live(0, 0, 12))
        beginnings.append(len(adversary.world.histories))
        assert all(one.success for one in adversary.live(0, 0, 20))
    assert beginnings[0] == 12 < beginnings[1]


@pytest.mark.parametrize(
    "change",
    [
        (
            "{trials: 12}",
            "{trials: 10}",
        ),  # a round that begins in one block ends in the other
        ("{trials: 12}", "{trials: 12, until: {outcome: correct, count: 3}}"),
        ("copies: 2,", "copies: 2, max_run: 2,"),
        ("3 * (block != late)", "long * (block != late)"),
        ('show: {side: "*"}', 'show: {side: "*"}, say: "{long}"'),
        (
            "long * (block == late)",
            "(9 / long) * (block == late)",
        ),  # 0 times none is none
        ("draw:", "draw:\n  kept: {keep_if: long == 4, of: {kept: [1, 2]}}"),
    ],
)
def test_what_is_drawn_matters_where_it_is_read_or_tells_of_later_blocks(
    plant: Plant, change: tuple[str, str]
) -> None:
    assert not Relevance(plant(*WAITS, change).program).unread["main"]


#: One side for life, then the other one.
REVERSED = (
    ("side: {of: {side", "side: {per: subject, order: balanced, of: {side"),
    (', show: {side: "*"}', ""),
    (
        "start: {at: box, face: random}",
        "vars: {turned: {init: 0, per: block}}\nstart: {at: box, face: N}",
    ),
    ("{enter: side, reward", "{enter: arm, if: (it == side) == (turned == 0), reward"),
)
WHENEVER = (
    (
        "{main: {sessions: 2, trials: 10}}",
        "{main: {trials: 9, UNTIL}, turned: {trials: 9, set: {turned: 1}, UNTIL}}",
    ),
    ("success: last == correct", "success: last == correct\nestimand: {block: turned}"),
)


def test_where_blocks_end_early_the_number_of_the_trial_stands_for_memory(
    plant: Plant,
) -> None:
    # Three times left, three times right: a subject that is right at first reaches the
    # second block three trials sooner.
    early = plant(
        *REVERSED, *WHENEVER, ("UNTIL", "until: {outcome: correct, count: 3, of: 3}")
    )
    fixed = plant(*REVERSED, *WHENEVER, (", UNTIL", ""))
    lesion = Lesion.parse("amnesia=trial")
    assert measure(early, Order(lesion, 0.05, 0)).surely > 0.55
    assert measure(fixed, Order(lesion, 0.05, 0)).found.low <= 0.5
    assert all(
        measure(one, Order(Lesion.parse("intact"), 0.05, 0)).found.value > 0.8
        for one in (early, fixed)
    )


def test_what_is_believed_of_forgotten_trials_is_the_same_in_every_life(
    plant: Plant,
) -> None:
    until = "until: {outcome: correct, count: 3, of: 3}"
    paradigm = plant(
        *REVERSED, *WHENEVER, ("UNTIL", until), ("face: N", "face: random")
    )
    adversary = Adversary(paradigm, Lesion.parse("amnesia=trial"), 0.05)
    lives = [adversary.live(seed, seed % 2, 18) for seed in range(8)]
    assert len({len(life) for life in lives}) > 1
    assert len(adversary._carried) <= 18


def test_who_forgets_trials_and_states_is_followed_through_blocks_that_end_early(
    plant: Plant,
) -> None:
    paradigm = plant(
        *REVERSED, *WHENEVER, ("UNTIL", "until: {outcome: correct, count: 3, of: 3}")
    )
    for lesion in ("amnesia=trial+amnesia=choice", "amnesia=trial+blind"):
        assert (
            len(measure(paradigm, Order(Lesion.parse(lesion), 0.05, 0)).lives) >= LIVES
        )


def test_following_everybody_to_the_end_has_a_limit(plant: Plant) -> None:
    # A coin on every step: a trial has too many courses to follow.
    coins = (
        "rules: [{after: 3, go: choice}]",
        "rules: [{act: any, p: 0.5, reward: 0.1}, {after: 14, go: choice}]",
    )
    paradigm = plant(
        *REVERSED,
        coins,
        *WHENEVER,
        ("UNTIL", "until: {outcome: correct, count: 3, of: 3}"),
    )
    adversary = Adversary(paradigm, Lesion.parse("blind+amnesia=trial"), 0.01)
    assert len(adversary.live(0, 0, 18)) >= 6
    assert None in adversary._carried.values()
