"""The 18 clauses of the step semantics, each as a film (language page, section 3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.errors import ProtocolError, StepAfterEndError
from cheesebench.interfaces import FORWARD, ROTATE_LEFT, STAY
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

Film = Callable[..., str]
Live = Callable[..., ArenaSubject]
Load = Callable[[str], Specification]
Reel = Callable[[str], str]

# A line of a film: action, picture, reward, state (or outcome). The subject is an
# arrow, `S` its start, `Z` a zone.
CORRIDOR = """
arena:
  map: "S...Z"
  legend: {S: box, Z: {zone: goal, glyph: Z}}
start: {at: box, face: E}
"""


def test_clause_1_the_schedule_runs_block_repeat_session_trial(live: Live) -> None:
    life = live(
        CORRIDOR
        + """
schedule:
  training: {sessions: 2, trials: 2, repeat: 2}
  probe: {}
trial: {limit: 1, start: run, states: {run: {}}}
"""
    )
    seen = []
    while life.begin_trial() is not None:
        life.step(3)
        seen.append((life.block, life.session, life.trial, life.result().session))
    repetition = [
        ("training", 1, 1),
        ("training", 1, 2),
        ("training", 2, 1),
        ("training", 2, 2),
    ]
    assert [entry[:3] for entry in seen] == [*repetition, *repetition, ("probe", 1, 1)]
    assert [entry[3] for entry in seen] == [1, 1, 2, 2, 3, 3, 4, 4, 5]  # over the life


def test_clause_1_until_skips_the_rest_of_a_repetition(live: Live) -> None:
    life = live(
        CORRIDOR
        + """
schedule:
  training: {sessions: 2, trials: 5, repeat: 2, until: {outcome: found, count: 2, of: 3}}
  probe: {trials: 1}
trial: {limit: 9, start: run, states: {run: {rules: [{act: STAY, end: found}, {act: ROTATE_LEFT, end: lost}]}}}
"""
    )
    blocks = []
    for letter in (3, 1, 3, 3, 3, 3):  # found lost found | found found | probe
        assert life.begin_trial() is not None
        blocks.append(life.block)
        life.step(letter)
    assert blocks == ["training"] * 5 + ["probe"]
    assert life.begin_trial() is None


def test_clause_2_variables_begin_anew_with_their_scope(live: Live) -> None:
    life = live(
        CORRIDOR
        + """
vars:
  of_trial: 0
  of_session: {init: 0, per: session}
  of_block: {init: 0, per: block}
  of_subject: {init: 0, per: subject}
  wage: {init: 1, per: subject}
schedule:
  first: {sessions: 2, trials: 2}
  second: {sessions: 1, trials: 1, set: {wage: 5}}
trial:
  limit: 1
  start: run
  states:
    run:
      set:
        of_trial: of_trial + 1
        of_session: of_session + 1
        of_block: of_block + 1
        of_subject: of_subject + 1
      rules: [{after: 1, reward: wage, count: steps_counted, end: done}]
"""
    )
    seen = []
    while life.begin_trial() is not None:
        life.step(3)
        values = life.result().variables
        seen.append(
            [
                values[f"of_{scope}"]
                for scope in ("trial", "session", "block", "subject")
            ]
            + [values["wage"]]
        )
        assert life.result().counters == {"steps_counted": 1}
    assert seen == [
        [1, 1, 1, 1, 1],
        [1, 2, 2, 2, 1],
        [1, 1, 3, 3, 1],
        [1, 2, 4, 4, 1],
        [1, 1, 1, 5, 5],
    ]


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        ("order: cycle, of: {n: [1, 2, 3]}", [1, 2, 3, 1, 2, 3]),
        ("order: by_subject, of: {n: [1, 2, 3]}", [2] * 6),
        (
            "order: cycle, of: {n: [1, 2, 3]}, keep_if: last == again",
            [1, 1, 1, 1, 1, 1],
        ),
        ("order: cycle, of: {n: [1, 2, 3]}, keep_if: trial == 2", [1, 1, 2, 3, 1, 2]),
        ("per: session, order: cycle, of: {n: [1, 2, 3]}", [1] * 6),
    ],
)
def test_clause_3_draws(live: Live, draw: str, expected: list[int]) -> None:
    life = live(
        CORRIDOR
        + f"""
draw: {{d: {{{draw}}}}}
trial: {{limit: 9, start: run, states: {{run: {{rules: [{{act: STAY, reward: n, end: again}}]}}}}}}
schedule: {{one: {{trials: 6}}}}
""",
        subject=4,
    )
    seen = []
    for _ in range(6):
        life.begin_trial()
        life.step(3)
        seen.append(life.values["n"])
    assert seen == expected


def test_clause_3_shuffled_blocks_are_balanced_and_keep_max_run(live: Live) -> None:
    text = (
        CORRIDOR
        + """
draw: {d: {per: trial, order: shuffle, copies: 5, max_run: 3, of: {n: [1, 2], other: [2, 1]}}}
trial: {limit: 1, start: run, states: {run: {rules: [{after: 1, reward: n, if: other > 0, end: done}]}}}
schedule: {one: {trials: 200}}
"""
    )
    for seed in range(5):
        life = live(text, seed)
        seen = []
        while life.begin_trial() is not None:
            seen.append(life.values["n"])
            assert life.values["other"] == 3 - seen[-1]
            life.step(3)
        for block in range(0, 200, 10):
            assert sorted(seen[block : block + 10]) == [1] * 5 + [2] * 5
        assert not any(len(set(seen[at : at + 4])) == 1 for at in range(197))


def test_clause_3_rows_do_not_depend_on_behaviour(live: Live) -> None:
    text = (
        CORRIDOR
        + """
draw: {d: {order: random, of: {n: [1, 2, 3, 4]}}, e: {order: random, pick: 2, of: {pair: [1, 2, 3, 4]}}}
trial:
  limit: 3
  start: run
  states: {run: {rules: [{act: STAY, p: 0.5, reward: n, if: size(pair) == 2, end: done}]}}
schedule: {one: {trials: 30}}
"""
    )
    rows = []
    for action in (0, 3):
        life = live(text, seed=7)
        seen = []
        while life.begin_trial() is not None:
            seen.append((life.values["n"], life.values["pair"]))
            while not life.step(action)[2]:
                pass
        rows.append(seen)
    assert rows[0] == rows[1]
    assert {row[0] for row in rows[0]} == {1, 2, 3, 4}
    assert all(len(row[1]) == 2 for row in rows[0])


def test_clause_12_places_of_one_step_are_drawn_independently(live: Live) -> None:
    text = """
    arena:
      map: SABCDEFGH
      legend: {S: box, A: a, B: b, C: c, D: d, E: e, F: f, G: g, H: h}
      groups: {spot: [a, b, c, d, e, f, g, h]}
    vars: {second: none}
    start: {at: box, face: E}
    trial:
      limit: 1
      start: run
      watch:
        - {act: STAY, place: spot}
        - {act: STAY, place: spot}
        - {act: STAY, set: {second: where(spot)}, place: spot}
      states: {run: {}}
    measures: {same: second == where(spot)}
    """
    same = 0
    for seed in range(80):
        life = live(text, seed)
        life.begin_trial()
        life.step(STAY)
        same += bool(life.result().measures["same"])
    assert 1 <= same <= 25, "one in eight by chance"


def test_clause_4_the_subject_is_placed_or_carries_on(film: Film, reel: Reel) -> None:
    text = """
arena: {map: "S...Z", legend: {S: box, Z: goal}}
start: {at: box, face: E, carry: true}
trial: {limit: 2, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}
schedule: {one: {sessions: 2, trials: 2}}
"""
    assert film(text, "FF LF SS") == reel(
        """
        - →.... 0 run
        F .→... 0 run
        F ..→.. 0 timeout (truncated)
        - ..→.. 0 run
        L ..↗.. 0 run
        F ..↗.. 0 timeout (truncated)
        - →.... 0 run
        S →.... 0 run
        S →.... 0 timeout (truncated)
        """
    )


@pytest.mark.parametrize("name", ["start", "place", "each", "side"])
def test_clause_4_a_draw_of_any_name_says_nothing_of_where_the_subject_is_placed(
    live: Live, name: str
) -> None:
    life = live(
        f"""
arena: {{map: "abcd", legend: {{a: a, b: b, c: c, d: d}}, groups: {{any: [a, b, c, d]}}}}
draw: {{{name}: {{of: {{side: [a, b, c, d]}}}}}}
start: {{at: any, face: N}}
trial: {{limit: 1, start: run, states: {{run: {{rules: [{{act: STAY, reward: 1, end: done}}]}}}}}}
schedule: {{one: {{trials: 400}}}}
"""
    )
    agreed = 0
    while (picture := life.begin_trial()) is not None:
        agreed += "abcd".index(life.values["side"]) == len(picture) - len(
            picture.lstrip(".")
        )
        life.step(0)
    assert 60 < agreed < 140


def test_clause_4_a_start_with_several_cells_is_drawn_uniformly(live: Live) -> None:
    life = live(
        """
arena: {map: "SSSS", legend: {S: box}}
start: {at: box, face: random}
trial: {limit: 1, start: run, states: {run: {rules: [{act: STAY, reward: 1, end: done}]}}}
schedule: {one: {trials: 400}}
"""
    )
    pictures = []
    while (picture := life.begin_trial()) is not None:
        pictures.append(picture)
        life.step(0)
    assert len(set(pictures)) == 4 * 8
    for column in range(4):
        share = sum(picture[column] != "." for picture in pictures) / len(pictures)
        assert 0.15 < share < 0.35


def test_clause_5_the_first_entry_that_holds_names_the_initial_state(
    film: Film, reel: Reel
) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 1
  start: [{if: trial == 2, go: second}, other]
  states: {second: {say: two}, other: {place: goal, rules: [{enter: goal, reward: 1}]}}
"""
    )
    # Placement causes no events, so being placed on the goal pays nothing.
    assert film(text, "S S") == reel(
        """
        - ....→ 0 other
        S ....→ 0 timeout (truncated)
        - →...Z/two 0 second
        S →...Z/two 0 timeout (truncated)
        """
    )


def test_clause_5_a_reward_on_entry_to_an_initial_state_is_refused(load: Load) -> None:
    with pytest.raises(ProtocolError, match="E208"):
        load(CORRIDOR + "trial: {limit: 1, start: run, states: {run: {reward: 1}}}")


def test_clause_6_clocks_count_steps_of_the_trial_and_of_the_state(
    film: Film, reel: Reel
) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 9
  start: one
  states:
    one: {rules: [{after: 2, go: two}]}
    two: {rules: [{after: 3, reward: steps, end: done}]}
"""
    )
    assert film(text, "SSSSS") == reel(
        """
        - →...Z 0 one
        S →...Z 0 one
        S →...Z 0 two
        S →...Z 0 two
        S →...Z 0 two
        S →...Z +5 done (terminated)
        """
    )


def test_clause_7_walls_doors_voids_and_solids_block_forward(
    film: Film, reel: Reel
) -> None:
    text = """
arena:
  map: |
    #####
    #S+L#
    #####
  legend: {S: box, +: {door: gate}, L: {solid: lever, glyph: L}}
start: {at: box, face: E}
trial:
  limit: 9
  start: shut
  states:
    shut: {close: [gate], rules: [{after: 2, go: open}]}
    open: {rules: [{press: lever, reward: 1}, {press: wall, reward: -1}]}
"""
    picture = [line.split(" ", 1) for line in film(text, "FFFFLF").splitlines()]
    assert [
        line[1].replace("#####/", "").replace("/#####", "") for line in picture
    ] == [
        "#→+L# 0 shut",
        "#→+L# 0 shut",  # the door is closed
        "#→.L# 0 open",  # movement uses the doors at the beginning of the step
        "#.→L# 0 open",
        "#.→L# +1 open",  # the lever is pressed, not entered
        "#.↗L# 0 open",
        "#.↗L# -1 open",  # a bump
    ]


def test_clause_7_nobody_squeezes_through_a_corner(film: Film, reel: Reel) -> None:
    text = """
arena:
  map: |
    #Z
    S#
  legend: {S: box, Z: goal}
start: {at: box, face: NE}
trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}
"""
    assert film(text, "F") == reel(
        """
        - #./↗# 0 run
        F #./↗# 0 run
        """
    )
    assert (
        film(text.replace("#Z", ".Z"), "F").splitlines()[-1]
        == "F .↗/.# +1 found (terminated)"
    )


def test_clause_7_four_headings_turn_by_a_quarter(film: Film) -> None:
    text = """
arena: {map: "S..", legend: {S: box}, headings: 4}
start: {at: box, face: N}
trial: {limit: 9, start: run, states: {run: {rules: [{act: STAY, reward: 1, end: done}]}}}
"""
    assert [line[2] for line in film(text, "RRRRL").splitlines()] == list("↑→↓←↑←")


def test_clause_7_nothing_moves_in_a_frozen_state(film: Film, reel: Reel) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 9
  start: held
  states:
    held: {freeze: true, say: "...", rules: [{after: 2, go: free}]}
    free: {rules: [{enter: goal, reward: 1, end: found}]}
"""
    )
    assert film(text, "FLF") == reel(
        """
        - →...Z/... 0 held
        F →...Z/... 0 held
        L →...Z     0 free
        F .→..Z     0 free
        """
    )


def test_clause_8_events_are_enter_press_and_act_and_it_is_the_member_that_fired(
    film: Film, reel: Reel
) -> None:
    text = """
arena:
  map: "#SabL"
  legend: {S: box, a: one, b: {zones: [two, three]}, L: {solid: lever, glyph: L}}
  groups: {some: [three, two, one]}
start: {at: box, face: E}
vars: {seen: []}
trial:
  limit: 20
  start: run
  states: {run: {rules: [{enter: some, add: {seen: it}, reward: size(seen) + 1}, {act: ROTATE_LEFT, count: turns}]}}
  watch: [{press: lever, count: presses}, {press: wall, count: bumps}]
measures: {presses: presses, bumps: bumps, turns: turns}
"""
    # In `b` both zones are entered; `three` comes first in the group.
    assert film(text, "FFFLLLLFFF") == reel(
        """
        - #→..L 0 run
        F #.→.L +2 run
        F #..→L +3 run
        F #..→L 0 run
        L #..↗L 0 run
        L #..↑L 0 run
        L #..↖L 0 run
        L #..←L 0 run
        F #.←.L +3 run
        F #←..L 0 run
        F #←..L 0 run
        """
    )


def test_clause_8_enter_is_new_minus_old_and_time_counts_visits(live: Live) -> None:
    life = live(
        """
arena: {map: "SZZ", legend: {S: box, Z: wide}}
start: {at: box, face: E}
trial: {limit: 5, start: run, states: {run: {rules: [{enter: wide, reward: 1}]}}}
measures: {stay: time(wide), share: time(wide) / steps, before: time(box)}
"""
    )
    life.begin_trial()
    rewards = [life.step(action)[1] for action in (3, 0, 0, 3, 3)]
    assert rewards == [
        0,
        1,
        0,
        0,
        0,
    ]  # a step within the zone enters nothing
    assert life.result().measures == {"stay": 4, "share": 0.8, "before": 1}


def test_clause_9_where_is_the_member_occupied_now_or_most_recently(
    film: Film, reel: Reel
) -> None:
    text = """
arena:
  map: "w.e"
  legend: {w: west, e: east}
  groups: {side: [west, east]}
start: {at: west, face: E}
vars: {origin: none}
trial:
  limit: 20
  start: run
  states: {run: {rules: [{act: FORWARD, if: where(side) == west, reward: 1}, {act: FORWARD, reward: 2}]}}
"""
    assert film(text, "FFF") == reel(
        """
        - →.. 0 run
        F .→. +1 run
        F ..→ +2 run
        F ..→ +2 run
        """
    )


def test_clause_10_every_watch_rule_fires_and_sees_the_state_before(live: Live) -> None:
    life = live(
        CORRIDOR
        + """
trial:
  limit: 9
  start: one
  states: {one: {rules: [{act: STAY, go: two}]}, two: {rules: [{act: STAY, reward: 1, end: done}]}}
  watch: [{act: STAY, if: state == one, count: in_one}, {act: STAY, count: all}, {act: STAY, reward: -0.25}]
measures: {in_one: in_one, all: all}
"""
    )
    life.begin_trial()
    assert [life.step(3)[1] for _ in range(2)] == [-0.25, 0.75]
    assert life.result().measures == {"in_one": 1, "all": 2}


def test_clause_11_the_first_rule_that_holds_is_taken_and_only_one(
    film: Film, reel: Reel
) -> None:
    text = (
        CORRIDOR
        + """
vars: {n: 0}
trial:
  limit: 9
  start: run
  states:
    run:
      rules:
        - {act: STAY, if: n == 2, reward: 100, end: done}
        - {act: STAY, set: {n: n + 1}, reward: 10}
        - {act: STAY, reward: 1}
"""
    )
    assert [line.split()[2] for line in film(text, "SSS").splitlines()] == [
        "0",
        "+10",
        "+10",
        "+100",
    ]


def test_clause_11_after_holds_from_then_on(film: Film) -> None:
    text = (
        CORRIDOR
        + """
vars: {ready: 0}
trial:
  limit: 9
  start: run
  states: {run: {rules: [{after: 2, if: ready == 1, reward: 1, end: done}]}}
  watch: [{act: FORWARD, set: {ready: 1}}]
"""
    )
    # The guard fails at the second step and holds at the fourth.
    assert [line.split()[-2] for line in film(text, "SSSF").splitlines()] == [
        "0",
        "0",
        "0",
        "0",
        "done",
    ]


def test_clause_11_p_is_drawn_only_after_trigger_and_if(live: Live) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 600
  start: run
  states: {run: {rules: [{act: STAY, if: steps > 0, p: 0.25, reward: 1}]}}
"""
    )

    def rewards(actions: list[int]) -> list[float]:
        life = live(text, seed=3)
        life.begin_trial()
        return [
            reward
            for action in actions
            for reward in [life.step(action)[1]]
            if action == 3
        ]

    paid = rewards([3] * 500)
    assert 0.18 < sum(paid) / 500 < 0.32
    # Turns between the presses do not disturb the stream: it counts how often the rule
    # was considered.
    assert rewards([1, 3] * 250) == paid[:250]


def test_clause_12_effects_run_in_their_fixed_order_and_set_is_parallel(
    film: Film, live: Live, reel: Reel
) -> None:
    text = """
arena: {map: "S..B", legend: {S: box, B: back}}
start: {at: box, face: E}
vars: {a: 1, b: 2, seen: []}
trial:
  limit: 9
  start: run
  states:
    run:
      rules:
        - {act: STAY, place: back, reward: a * 10 + b + size(seen), count: times, add: {seen: a}, set: {a: b, b: a}}
"""
    # a, b = 2, 1; seen = {2}; 2 * 10 + 1 + 1; then placed, facing east again.
    assert film(text, "LS") == reel(
        """
        - →... 0 run
        L ↗... 0 run
        S ...→ +22 run
        """
    )


def test_clause_12_a_rule_without_exit_leaves_the_clock_alone_but_uses_up_the_step(
    film: Film,
) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 9
  start: run
  states: {run: {rules: [{act: STAY, reward: 1}, {after: 2, reward: 5, end: done}]}}
"""
    )
    assert [line.split()[2] for line in film(text, "SSSL").splitlines()] == [
        "0",
        "+1",
        "+1",
        "+1",
        "+5",
    ]


def test_clause_13_going_to_the_same_state_restarts_its_clock(film: Film) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 9
  start: run
  states: {run: {rules: [{act: ROTATE_LEFT, go: run}, {after: 2, reward: 1, end: done}]}}
"""
    )
    assert [line.split()[-1] for line in film(text, "SLSS").splitlines()] == [
        "run"
    ] * 4 + ["(terminated)"]


def test_clause_13_entry_effects_and_a_door_that_closes_on_the_subject(
    film: Film, reel: Reel
) -> None:
    text = """
arena: {map: "S+.", legend: {S: box, +: {door: gate}}}
start: {at: box, face: E}
trial:
  limit: 9
  start: open
  states:
    open: {rules: [{enter: gate, go: shut}]}
    shut: {close: [gate], reward: 2, show: {box: x}, rules: [{enter: box, reward: -1, end: back}]}
"""
    # The subject stays in the closed doorway, may walk out, and cannot walk back.
    assert film(text, "FFLLLLFF") == reel(
        """
        - →.. 0 open
        F x→. +2 shut
        F x+→ 0 shut
        L x+↗ 0 shut
        L x+↑ 0 shut
        L x+↖ 0 shut
        L x+← 0 shut
        F x+← 0 shut
        F x+← 0 shut
        """
    )


def test_clause_14_finish_is_tested_only_when_something_fired(film: Film) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 9
  start: run
  states: {run: {}}
  watch: [{act: STAY, count: stays}]
  finish: [{if: stays == 2, end: rested}, {if: steps > 5, end: tired}]
"""
    )
    assert film(text, "SLS").splitlines()[-1] == "S ↗...Z 0 rested (terminated)"
    # More than five steps have passed at the seventh, but nothing fired until the
    # eighth.
    assert film(text, "LLLLLLLS").splitlines()[-1] == "S ↘...Z 0 tired (terminated)"


def test_clause_15_the_limit_truncates_and_an_end_on_the_same_step_wins(
    film: Film,
) -> None:
    text = (
        CORRIDOR
        + """
trial: {limit: 3, start: run, states: {run: {rules: [{act: STAY, if: steps == 3, reward: 1, end: done}]}}}
"""
    )
    assert film(text, "SSS").splitlines()[-1] == "S →...Z +1 done (terminated)"
    assert film(text, "SSL").splitlines()[-1] == "L ↗...Z 0 timeout (truncated)"


def test_clause_16_n_steps_that_show_the_shock_give_n_shocks(
    film: Film, reel: Reel
) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 9
  start: calm
  each: {reward: -1}
  states:
    calm: {rules: [{after: 2, go: shock}]}
    shock: {say: "!", each: {reward: -10}, rules: [{enter: goal, end: out}, {after: 2, go: over}]}
    over: {rules: [{after: 1, end: done}]}
"""
    )
    # The ending step gives none.
    assert film(text, "SSSSS") == reel(
        """
        - →...Z   0 calm
        S →...Z   -1 calm
        S →...Z/! -11 shock
        S →...Z/! -11 shock
        S →...Z   -1 over
        S →...Z   0 done (terminated)
        """
    )


def test_clause_16_each_may_do_more_than_pay(live: Live) -> None:
    life = live(
        CORRIDOR
        + """
vars: {strength: 0}
trial:
  limit: 4
  start: run
  states: {run: {each: {set: {strength: strength + 1}, reward: strength, count: ticks}}}
"""
    )
    life.begin_trial()
    assert [life.step(3)[1] for _ in range(4)] == [1, 2, 3, 0]
    assert life.result().counters == {"ticks": 3}


def test_clause_17_the_reward_is_the_sum_and_the_observation_shows_the_state_after(
    film: Film, reel: Reel
) -> None:
    text = (
        CORRIDOR
        + """
trial:
  limit: 9
  start: run
  each: {reward: 0.5}
  states: {run: {rules: [{act: STAY, reward: 4, go: next}]}, next: {reward: 2, say: here, each: {reward: 8}}}
  watch: [{act: STAY, reward: 1}]
"""
    )
    assert film(text, "S") == reel(
        """
        - →...Z      0     run
        S →...Z/here +15.5 next
        """
    )


def test_clause_18_success_and_measures_see_the_final_variables_and_last_is_the_outcome(
    live: Live,
) -> None:
    life = live(
        CORRIDOR
        + """
vars: {n: 0}
trial:
  limit: 9
  start: run
  states: {run: {rules: [{act: STAY, set: {n: 7}, if: last == none, end: found}, {act: STAY, reward: 1, end: lost}]}}
success: last == found and n == 7
measures: {final: n, undefined: 1 / 0}
"""
    )
    life.begin_trial()
    life.step(3)
    assert life.result().success is True
    assert life.result().measures == {"final": 7, "undefined": None}
    with pytest.raises(StepAfterEndError, match="has ended"):
        life.step(0)
    assert life.result().outcome == "found"
    life.begin_trial()  # now `last` is `found`
    life.step(3)
    assert life.result().outcome == "lost"
    assert life.result().success is False


def test_a_bump_is_a_forward_that_neither_moved_nor_pressed(live: Live) -> None:
    life = live(
        """
arena: {map: "#S.L", legend: {S: box, L: {solid: lever, glyph: L}}}
start: {at: box, face: E}
trial: {limit: 9, start: run, states: {run: {rules: [{press: lever, count: presses, reward: 1}]}}}
"""
    )
    life.begin_trial()
    turn_round = [ROTATE_LEFT] * 4
    # Go to the lever, press it; turn round; go back, and bump twice.
    for action in (FORWARD, FORWARD, *turn_round, FORWARD, FORWARD, FORWARD):
        life.step(action)
    result = life.result()
    assert (result.path_length, result.bumps, result.counters) == (2, 2, {"presses": 1})


def test_clause_18_a_step_after_the_end_moves_nobody(live: Live) -> None:
    life = live(
        """
arena: {map: "S...Z", legend: {S: box, Z: goal}}
start: {at: box, face: E, carry: true}
trial: {limit: 2, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}
schedule: {one: {trials: 2}}
"""
    )
    life.begin_trial()
    life.step(0)
    last, _, _ = life.step(0)
    for action in (0, 1, 2, 3):
        with pytest.raises(StepAfterEndError):
            life.step(action)
    assert life.begin_trial() == last


@pytest.mark.parametrize("rule", ["", "{act: any, reward: 0}"])
def test_a_timer_may_read_what_changes_with_every_step(
    film: Film, reel: Reel, rule: str
) -> None:
    """The path, or the pose, changes without any rule firing, so the timer is tested on
    every step.
    """
    rules = ", ".join(filter(None, ("{after: 10 - 9 * moves, end: moved}", rule)))
    trial = f"trial: {{limit: 9, start: run, states: {{run: {{rules: [{rules}]}}}}}}"
    assert film(f"{CORRIDOR}{trial}", "SSF") == reel("""
        - →...Z 0 run
        S →...Z 0 run
        S →...Z 0 run
        F .→..Z 0 moved (terminated)
    """)
