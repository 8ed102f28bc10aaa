"""Protocols that are not shipped, for tests: together they use every feature of the language, and in odd company.

Each is as small as its purpose allows, which the comment above it names. All of them load without an error, and no
subject meets a ProtocolError in them.
"""

from __future__ import annotations

import textwrap

from cheesebench.protocol import Specification
from tests.arenas import examine_text

#: Name -> text of the protocol.
ZOO: dict[str, str] = {
    # A picture that is turned, by a draw that lasts for a trial; the compiled kernel must not mix the looks up.
    "turned": """
        version: 1
        paradigm: turned
        arena:
          map: |
            #####
            #Z..#
            #...#
            #..S#
            #####
          legend: {S: box, Z: {zone: goal}}
          landmarks: {N: "1", E: "2"}
          rotate: side
        draw: {side: {of: {side: [0, 90, 180, 270], lamp: [a, b, c, d]}}}
        start: {at: box, face: random}
        trial:
          limit: 12
          start: run
          states:
            run: {rules: [{enter: goal, reward: 1, go: lit}]}
            lit: {show: {goal: lamp}, say: lit, rules: [{after: 2, end: found}]}
        schedule: {only: {sessions: 2, trials: 3}}
        success: last == found
        measures: {x: x, way: heading}
    """,
    # What happens on every step: inside zones, groups and what variables hold, any action, anything in the way.
    "whatever": """
        version: 1
        paradigm: whatever
        arena:
          map: |
            ##A#
            #SA+
            #BB#
          legend: {S: box, A: ice, B: {zones: [ice, mud]}, +: {door: gate, zone: out}}
          groups: {ground: [mud, ice]}
        vars: {last_ground: none, n: 0}
        draw: {d: {of: {aim: [ice, mud, box]}}}
        start: {at: box, face: random}
        trial:
          limit: 14
          start: run
          states:
            run: {close: [gate], rules: [{press: any, reward: -1}, {inside: aim, reward: 0.5}, {act: any, reward: -2}]}
          watch: [{inside: ground, set: {last_ground: it}}, {act: any, set: {n: n + 1}}, {press: any, count: bumps}]
        schedule: {only: {sessions: 2, trials: 3}}
        measures: {n: n, last_ground: last_ground}
    """,
    # The members of a group and of a drawn set, dealt out into variables.
    "dealt": """
        version: 1
        paradigm: dealt
        arena:
          map: "S1234"
          legend: {S: box, 1: one, 2: two, 3: three, 4: four}
          groups: {site: [one, two, three, four]}
        draw:
          baits: {per: subject, pick: 3, of: {baits: [one, two, three, four]}}
          given: {sample: baits, into: [first, second]}
          any: {per: session, sample: site, into: [lit]}
        start: {at: first, face: random}
        trial:
          limit: 15
          start: run
          states:
            run:
              show: {lit: "*"}
              rules: [{enter: second, reward: 1, end: found}, {enter: site, if: not (it in baits), end: missed}]
        schedule: {only: {sessions: 2, trials: 3}}
        success: last == found
        measures: {first: first, lit: lit}
    """,
    "each_and_where": """
        version: 1
        paradigm: each_and_where
        arena:
          map: "aa.bb.cc"
          legend: {a: {zone: left}, b: {zone: middle}, c: {zone: right}}
          groups: {third: [left, middle, right]}
        vars: {hunger: 0, asked: 0}
        start: {at: third, face: random, carry: true}
        trial:
          limit: 40
          each: {reward: -0.01}
          start: walk
          states:
            walk:
              each: {set: {hunger: hunger + 1}, reward: 0.001 * hunger}
              rules:
                - {enter: third, if: where(third) == right and it == right, count: visits, go: rest}
                - {act: STAY, p: 0.3, set: {asked: asked + 1}, reward: 0.5}
            rest: {freeze: true, say: zzz, rules: [{after: 3, set: {hunger: 0}, go: walk}]}
          finish: [{if: visits >= 2 or hunger > 25, end: enough}]
        schedule: {only: {sessions: 2, trials: 3}}
        success: visits >= 2
        measures: {in_the_middle: time(middle), share: time(third) / steps, asked: asked, never: 1 / visits}
    """,
    "doors_and_draws": """
        version: 1
        paradigm: doors_and_draws
        arena:
          map: |
            #######
            #L.d.R#
            ###X###
          legend: {L: {zone: left}, R: {zone: right}, d: {door: gate}, X: {solid: lamp, glyph: x}}
          groups: {side: [left, right]}
        draw:
          light: {per: trial, order: shuffle, of: {colour: ["*", "+", x], home: [left, right, left]}}
          wait: {per: session, order: random, of: {pause: [0, 2, 5]}}
        start: {at: home, face: E}
        trial:
          limit: 30
          start: [{if: colour == x, go: open}, shut]
          states:
            shut:
              close: [gate]
              show: {lamp: colour}
              rules: [{after: pause, go: open}, {press: wall, reward: -0.125}]
            open:
              show: {lamp: colour}
              rules: [{enter: side, if: it != home, place: home, count: crossings, go: shut}]
          watch: [{press: wall, reward: -0.25}, {press: lamp, reward: 0.1}, {act: STAY, reward: -1}]
          finish: [{if: crossings == 2, end: twice}]
        schedule:
          first: {sessions: 1, trials: 4, until: {outcome: twice, count: 2, of: 3}}
          second: {sessions: 2, trials: 2}
    """,
    "halves": """
        version: 1
        paradigm: halves
        arena:
          map: "#abbc#"
          legend: {a: {zone: left}, b: {zone: middle}, c: {zone: right}}
          groups: {part: [left, middle, right]}
        start: {at: part, face: E}
        trial:
          limit: 20
          start: run
          states: {run: {}}
          watch: [{enter: part, reward: 0.5}, {press: wall, if: where(part) == right, reward: 0.25}]
        schedule: {only: {sessions: 1, trials: 3}}
        measures: {at: where(part)}
    """,
    "patience": """
        version: 1
        paradigm: patience
        arena: {map: "#fffff#", legend: {f: {zone: floor}}}
        vars: {bumps: {init: 0, per: session}}
        start: {at: floor, face: random}
        trial:
          limit: 25
          start: run
          states:
            run: {each: {reward: 0.25}, rules: [{press: wall, reward: -0.0625}, {act: ROTATE_LEFT, reward: 0.03125}]}
          watch: [{press: wall, if: bumps < 2, set: {bumps: bumps + 1}}]
          finish: [{if: steps > 12, end: patient}, {if: time(floor) > 9 and bumps == 2, end: long}]
        schedule: {only: {sessions: 3, trials: 2}}
        measures: {bumps: bumps}
    """,
    # -- triggers and `it`
    # Entering a zone, a group, and variables that hold a zone, a group, a set (also of a group's name) and none.
    "entering": """
        version: 1
        paradigm: entering
        arena:
          map: |
            #######
            #a.b.c#
            #.xyx.#
            #######
          legend: {a: one, b: {zones: [two, both]}, c: {zones: [three, both]}, x: odd, y: {zones: [odd, both]}}
          groups: {some: [three, one], all: [one, two, three, odd], pair: [both, odd]}
        vars: {goal: none, home: some, wanted: [one, both], found: none, kept: [], named: [pair, two], seen: none}
        draw: {d: {of: {aim: [one, pair, none, some]}}}
        start: {at: all, face: random}
        trial:
          limit: 60
          start: walk
          states:
            walk:
              rules:
                - {enter: goal, if: it != found, set: {found: it}, reward: 0.5}
                - {enter: home, if: it == both, p: 0.7, set: {goal: where(all), home: all}, count: homes}
                - {enter: wanted, add: {kept: it}, set: {wanted: kept, seen: it}, reward: 0.25}
                - {enter: aim, set: {goal: aim, home: it}, go: walk}
                - {enter: pair, if: it in wanted or it == odd, set: {goal: pair}, count: pairs}
          watch:
            - {enter: named, if: it != found, reward: -0.125}
            - {enter: named, set: {seen: it}, count: named_entries}
            - {enter: all, if: it == seen, count: same}
          finish: [{if: size(kept) > 0 and same > 0, end: done}]
        schedule: {only: {sessions: 2, trials: 2, set: {home: pair}}}
        measures: {goal: goal, home: home, kept: kept, seen: seen, wanted: wanted, found: found}
    """,
    # Pressing solids, walls, groups of both, and variables and sets that hold them; nothing is pressed when frozen.
    "pressing": """
        version: 1
        paradigm: pressing
        arena:
          map: |
            ##A##
            B.m.C
            ##D##
          legend:
            m: middle
            A: {solid: lever, glyph: A}
            B: {solid: left}
            C: {solid: right, glyph: C}
            D: {solid: wall}
          groups: {keys: [right, left], any: [lever, wall, right], walls: [wall]}
        vars: {active: left, set_of: [lever], nobody: none}
        draw: {d: {order: shuffle, of: {key: [left, right, keys]}}}
        start: {at: middle, face: N}
        trial:
          limit: 50
          start: free
          states:
            free:
              rules:
                - {press: active, if: it == key or key == keys, reward: 1, set: {active: it, nobody: where(keys)},
                   go: hold}
                - {press: nobody, reward: 3}
                - {press: keys, if: it != active, set: {active: it, nobody: it}, count: swaps}
                - {press: set_of, p: 0.5, add: {set_of: active}, reward: 0.25}
                - {press: wall, count: bumps, reward: -0.0625}
            hold:
              freeze: true
              rules: [{press: any, reward: 100}, {act: FORWARD, count: vain, go: hold}, {after: 2, go: free}]
          watch: [{press: any, if: it in any, count: presses}, {press: walls, reward: -0.5}]
          finish: [{if: presses + bumps >= 9, end: tired}]
        schedule: {only: {trials: 4}}
        measures: {active: active, set_of: set_of, presses: presses, nobody: nobody}
    """,
    # `it` of a rule whose guard failed, of one whose p failed, and of a variable that holds none.
    "left_over": """
        version: 1
        paradigm: left_over
        arena:
          map: "ab.ba"
          legend: {a: {zones: [one, wide]}, b: {zones: [two, wide]}}
          groups: {first: [one, two], last_first: [two, wide, one]}
        vars: {none_yet: none, met: none, other: none, n: 0}
        start: {at: two, face: E}
        trial:
          limit: 40
          start: go_on
          states:
            go_on:
              rules:
                - {enter: first, if: it == one and n > 3, set: {met: it, n: 0}, reward: 1}
                - {enter: none_yet, set: {met: it}, reward: 7}
                - {enter: last_first, p: 0.5, set: {met: it, none_yet: it, n: n + 1}, place: it}
                - {act: FORWARD, set: {n: n + 1}, count: walks}
                - {act: STAY, if: met == none or none_yet == met, set: {other: met, none_yet: none}, reward: 0.5}
          watch: [{enter: wide, if: n == 2, p: 0.25, reward: 0.25}, {act: ROTATE_LEFT, if: other == met, count: turns}]
        schedule: {only: {trials: 3}}
        measures: {met: met, none_yet: none_yet, other: other, n: n}
    """,
    # -- chance
    # `p` of rules of `watch` and of a state that is called `watch`, too: they share their counts (language, clause 11).
    "watch": """
        version: 1
        paradigm: watch
        arena: {map: "#zzz#", legend: {z: zone}}
        vars: {chance: 0.25, hits: {init: 0, per: session}}
        start: {at: zone, face: random}
        trial:
          limit: 30
          start: watch
          states:
            watch:
              rules:
                - {act: STAY, p: 0.5, set: {hits: hits + 1}, reward: 1}
                - {act: FORWARD, p: chance, reward: 2, go: rest}
                - {after: 3, p: steps / 30, go: rest}
            rest: {each: {reward: 0.5}, rules: [{after: 1, p: 0.3, set: {chance: chance / 2}, go: watch}]}
          watch:
            - {act: STAY, p: 0.5, set: {hits: hits + 1}, reward: 4}
            - {act: FORWARD, p: 1 - chance, reward: 8}
            - {press: wall, p: hits - 3, count: bumps}
        schedule: {only: {sessions: 2, trials: 3}}
        success: hits > 4
        measures: {hits: hits, chance: chance}
    """,
    # Probabilities that are 0, 1, beyond them, and no number at all.
    "odds": """
        version: 1
        paradigm: odds
        arena: {map: "..x..", legend: {x: middle}}
        vars: {n: 0}
        draw: {d: {order: cycle, of: {odd: [0, 1, 2.5, -1, 0.5]}}}
        start: {at: middle, face: E}
        trial:
          limit: 25
          start: one
          states:
            one:
              rules:
                - {act: FORWARD, p: odd + 0, count: a, go: two}
                - {act: STAY, p: 0, count: b}
                - {act: STAY, p: 1, count: c, set: {n: n + 1}}
                - {act: ROTATE_LEFT, p: n / (n - n), count: d}
                - {act: ROTATE_LEFT, p: 1 / (1 + n), count: e}
            two: {rules: [{after: 2, p: 0.75, count: f, go: one}]}
        schedule: {only: {trials: 5}}
        measures: {all: a + b + c + d + e + f}
    """,
    # -- effects
    # Values change places in one `set`; sets take names, sets, `it` and none; several counters at once.
    "parallel": """
        version: 1
        paradigm: parallel
        arena:
          map: "abcde"
          legend: {a: za, b: zb, c: zc, d: zd, e: ze}
          groups: {ends: [za, ze], all: [za, zb, zc, zd, ze]}
        vars: {x1: 1, x2: 2.5, p1: za, p2: none, s1: [za, zb], s2: [], empty: none, twice: 0, seen: []}
        start: {at: all, face: random}
        trial:
          limit: 40
          start: main
          states:
            main:
              set: {x1: x2, x2: x1, p1: p2, p2: p1}
              add: {s1: p1, s2: p2}
              count: [entered, both]
              rules:
                - enter: ends
                  set: {x1: x2 + 1, x2: x1, p1: it, p2: p1, s1: s2, s2: s1}
                  add: {s1: it, s2: p2, seen: s1}
                  count: [ends_met, both]
                  reward: x1 - x2 / 4
                  go: main
                - {enter: all, add: {s1: empty, seen: it}, set: {empty: it}, count: [steps_in, steps_in, both],
                   reward: x1 > 2}
                - {act: STAY, set: {s1: none, s2: s1, empty: none}, add: {s1: all}, reward: size(s1)}
                - {act: ROTATE_LEFT, set: {p1: p2, p2: p1}, add: {s2: s1, seen: p1}, reward: p1 == p2}
          watch: [{enter: all, set: {twice: twice + both, x2: x2 * 2}, reward: 0.1}]
          finish: [{if: x2 > 50, end: far}]
        schedule: {only: {sessions: 2, trials: 2}}
        measures: {x1: x1, x2: x2, p1: p1, p2: p2, s1: s1, s2: s2, seen: seen, sizes: size(s1) + 10 * size(s2),
          both: both}
    """,
    # Rewards that are expressions: whole, broken and true numbers, in rules, on entry and in each step; sums of tenths.
    "rewards": """
        version: 1
        paradigm: rewards
        arena: {map: "#aab#", legend: {a: za, b: zb}}
        vars: {n: {init: 1, per: session}, f: 0.1, truth: 0}
        start: {at: za, face: E}
        trial:
          limit: 20
          each: {reward: 0.1 * n}
          start: start
          states:
            start: {rules: [{act: FORWARD, reward: n, set: {truth: f < 0.5, f: f + 0.1}, go: paid}, {act: STAY,
              reward: 0.3}]}
            paid:
              reward: truth
              each: {reward: -(f) / 3, set: {n: n + 1}}
              rules:
                - {press: wall, reward: f == n, set: {truth: not truth}, go: paid}
                - {enter: zb, reward: 0.1, go: start}
                - {act: ROTATE_RIGHT, reward: truth + truth, set: {truth: truth * 1, f: truth}}
          watch: [{act: FORWARD, reward: 0.2}, {press: wall, reward: 0.7}, {act: STAY, reward: -0.0}]
        schedule: {only: {trials: 3}}
        measures: {n: n, f: f, truth: truth, less: n < f, minus: -f}
    """,
    # Events that only pay, for a thing that varies, too; the sums depend on their order.
    "pay": """
        version: 1
        paradigm: pay
        arena: {map: "#abab#", legend: {a: za, b: zb}, groups: {all: [za, zb]}}
        vars: {aim: none, some: [za]}
        draw: {d: {of: {goal: [za, zb, none, all]}}}
        start: {at: all, face: E}
        trial:
          limit: 40
          start: one
          states:
            one: {each: {reward: 0.1}, rules: [{enter: goal, reward: 0.3}, {press: wall, reward: 0.2}, {after: 9,
              go: two}]}
            two: {rules: [{enter: some, reward: 0.3}, {enter: aim, reward: 5}, {after: 9, set: {aim: goal}, go: one}]}
          watch:
            - {act: FORWARD, reward: 0.1}
            - {press: wall, reward: 0.2}
            - {enter: goal, reward: 0.4}
            - {enter: all, reward: 0.3}
            - {enter: aim, reward: 3}
            - {act: FORWARD, reward: 0.3}
            - {act: STAY}
        schedule: {only: {trials: 4}}
    """,
    # Placing by a zone, a group, a variable, `it` and a set, in rules, on entry and in each step; twice in one step.
    "placing": """
        version: 1
        paradigm: placing
        arena:
          map: |
            aabb
            aabb
            c..d
          legend: {a: za, b: zb, c: zc, d: zd}
          groups: {low: [zc, zd], high: [za, zb]}
          headings: 4
        vars: {there: za, many: [zb, zc], here: none}
        start: {at: high, face: random}
        trial:
          limit: 40
          start: out
          states:
            out:
              rules:
                - {enter: low, place: it, reward: 1, set: {here: it}}
                - {enter: high, if: it != there, place: there, set: {there: it}, go: moved}
                - {act: ROTATE_LEFT, p: 0.3, place: many, go: held}
                - {act: STAY, place: low, go: moved}
            moved:
              place: many
              each: {reward: 0.5}
              rules: [{after: 3, add: {many: where(high)}, go: out}, {enter: many, place: high, count: found}]
            held: {place: za, each: {place: low}, rules: [{after: 2, go: out}]}
          watch: [{enter: zb, p: 0.5, place: zd, count: falls}]
        schedule: {only: {sessions: 2, trials: 2}}
        measures:
          there: there
          many: many
          entries: entries(high) + entries(low) * 100
          time: time(many)
          moves: moves
          set_out: departure_error(zd)
          in_low: where(low)
    """,
    # Placed in every step, whatever the state, to a random heading: the counts of placings are part of the key.
    "whirl": """
        version: 1
        paradigm: whirl
        arena:
          map: "abc.#"
          legend: {a: za, b: zb, c: zc}
          groups: {all: [za, zb, zc]}
        vars: {n: 0, next: zb}
        start: {at: all, face: random}
        trial:
          limit: 15
          each: {place: all, set: {n: n + 1}}
          start: [{if: trial == 2, go: calm}, spin]
          states:
            spin: {place: all, each: {place: next}, rules: [{act: STAY, place: zc, go: spin}, {enter: all,
              count: ways, go: calm}]}
            calm: {each: {set: {next: where(all)}}, rules: [{after: n, if: n > 3, go: spin}]}
        schedule: {only: {trials: 4}}
        measures: {ways: ways, n: n, next: next, entries: entries(all), x: x, heading: heading}
    """,
    # -- clocks and ends
    # Durations: whole, broken, held by variables and columns, expressions, 0, less than 0, endless and undefined.
    "clocks": """
        version: 1
        paradigm: clocks
        arena: {map: "#zz#", legend: {z: zone}}
        vars: {n: {init: 1, per: session}, gap: 2.5, none_yet: 0}
        draw: {d: {order: cycle, of: {wait: [0, 1.5, 3, 1e14]}}}
        start: {at: zone, face: E}
        trial:
          limit: 40
          start: [{if: wait < 1, go: drawn}, held]
          states:
            held: {rules: [{after: gap, set: {gap: gap + 0.5, n: n + 1}, go: drawn}, {press: wall,
              set: {gap: gap - 1}}]}
            drawn: {freeze: true, rules: [{after: wait, count: drawn_waits, go: sums}, {after: n + 2, reward: 0.5,
              go: sums}]}
            sums:
              each: {reward: 0.125}
              rules:
                - {after: wait / none_yet, go: drawn}
                - {after: 2 * n - 1, if: n > 1, p: 0.6, set: {none_yet: 0.5}, reward: 1, go: held}
                - {after: 6, go: sums, count: again}
                - {act: STAY, set: {n: -n}}
                - {after: n * 1e80 * 1e80 * 1e80 * 1e80, go: held}
        schedule: {only: {sessions: 2, trials: 4}}
        measures: {n: n, gap: gap, waits: drawn_waits, again: again}
    """,
    # Limits that a variable holds: whole, broken and drawn; it grows in the block, from trial to trial.
    "limits": """
        version: 1
        paradigm: limits
        arena: {map: "zzz", legend: {z: zone}}
        vars: {bound: {init: 7.5, per: block}, from_draw: {init: 3, per: session}}
        draw: {d: {per: session, order: cycle, of: {more: [1, 2.25, 4]}}, f: {of: {face: [N, SW, random]}}}
        start: {at: zone, face: face}
        trial:
          limit: bound
          each: {set: {from_draw: from_draw + more}}
          start: only
          states: {only: {rules: [{act: STAY, set: {bound: bound + more}, count: stays}, {after: 6,
            if: from_draw > 30, end: late}]}}
          watch: [{act: FORWARD, reward: 0.5}]
          finish: [{if: steps >= bound, end: grown}]
        schedule: {small: {sessions: 3, trials: 2, set: {bound: 1}}, large: {sessions: 1, trials: 3, repeat: 2}}
        measures: {bound: bound, from_draw: from_draw, late: last == late, now: steps}
    """,
    # Limits and durations that no machine word holds, above and below.
    "ages": """
        version: 1
        paradigm: ages
        arena: {map: "#zz#", legend: {z: zone}}
        vars: {bound: {init: 3, per: subject}, gap: {init: 4, per: session}}
        start: {at: zone, face: E}
        trial:
          limit: bound
          start: wait
          states:
            wait: {rules: [{after: gap, reward: 1, count: waits, go: act}, {act: STAY, if: bound < 1e99,
              set: {bound: bound * 1e12}}]}
            act:
              rules:
                - {act: STAY, set: {gap: gap * -1e30}, go: wait}
                - {act: ROTATE_LEFT, end: over}
                - {press: wall, go: wait}
        schedule: {only: {sessions: 2, trials: 3}}
        measures: {bound: bound, gap: gap, waits: waits}
    """,
    # Ends that ripen while nothing happens: by the clock, the path and the pose; also one that needs no event.
    "ripening": """
        version: 1
        paradigm: ripening
        arena:
          map: |
            #aaaa#
            #a##b#
            #bbbb#
          legend: {a: za, b: zb}
          groups: {half: [za, zb]}
        vars: {bumps: {init: 0, per: session}, aim: zb}
        start: {at: half, face: random}
        trial:
          limit: 60
          start: run
          states: {run: {rules: [{press: wall, reward: -0.125}, {act: ROTATE_LEFT, if: bumps > 8, reward: 0.5}]}}
          watch: [{press: wall, if: time(za) > time(zb), set: {bumps: bumps + 1, aim: where(half)}}, {act: STAY,
            reward: -0.25}]
          finish:
            - {if: departure_error(aim) > 20 and steps > 5, end: astray}
            - {if: steps > 45, end: late}
            - {if: time(aim) > 11 and moves > 3, end: dwelt}
            - {if: entries(zb) >= 1 and heading == 90, end: crossed}
            - {if: distance(zb) >= 2 and x == 1 and not (y > 0), end: corner}
            - {if: bearing_error(za) < 10 and steps > 20, end: faced}
        schedule: {only: {sessions: 2, trials: 2}}
        measures: {bumps: bumps, aim: aim, late: steps > 45}
    """,
    # An end without a condition, an `end` on the step of the limit, and `finish` on a step that nothing else notices.
    "ends": """
        version: 1
        paradigm: ends
        arena: {map: "#z.z#", legend: {z: zone}}
        vars: {how: {init: 0, per: session}}
        start: {at: zone, face: E}
        trial:
          limit: 6
          start: [{if: how == 0 and last == none, go: never}, {if: last == soon or trial == 3, go: timed},
            {if: last == timeout, go: walk}, never]
          states:
            never: {rules: [{act: STAY, set: {how: how + 1}}]}
            timed: {rules: [{after: 6, end: on_time}, {enter: zone, end: soon}]}
            walk: {rules: [{enter: zone, reward: 1}, {act: ROTATE_RIGHT, end: soon}]}
          finish: [{if: how == 1, end: stayed}, {if: state == walk, end: walked}, {end: any}]
        schedule: {only: {sessions: 3, trials: 4}}
        success: last == on_time or last == soon
        measures: {how: how, outcome: last, late: last == timeout}
    """,
    # -- where trials begin
    # A trial begins where the last one ended, in the doors of now; four headings, doors that variables close.
    "carried": """
        version: 1
        paradigm: carried
        arena:
          map: |
            #######
            #a.d.b#
            #.#e#.#
            #c.f.z#
            #######
          legend: {a: za, b: zb, c: zc, z: zz, d: {door: north}, e: {door: middle, zone: hall}, f: {door: south,
            glyph: "="}}
          groups: {corner: [za, zb, zc, zz], gates: [north, south], all_doors: [north, middle, south]}
          headings: 4
        vars: {shut: [north, middle], one: none, turn: {init: 0, per: session}}
        draw:
          d: {order: shuffle, copies: 2, max_run: 1, of: {bar: [north, south, none]}}
          e: {per: session, order: cycle, of: {way: [E, S, random]}}
        start: {at: corner, face: way, carry: true}
        trial:
          limit: 35
          start: [{if: turn > 1, go: free}, closed]
          states:
            closed: {close: [bar, shut], rules: [{enter: corner, set: {one: bar, turn: turn + 1}, go: half},
              {after: 12, add: {shut: south}}]}
            half: {close: [one, middle], rules: [{enter: gates, set: {shut: none}, go: closed}, {enter: corner,
              place: hall, go: free}]}
            free: {close: gates, rules: [{enter: all_doors, reward: 0.5, add: {shut: gates}, set: {one: it},
              go: closed}, {act: STAY, end: rested}]}
          watch: [{enter: hall, count: halls}, {press: wall, reward: -0.1}]
        schedule: {first: {sessions: 2, trials: 3}, second: {sessions: 1, trials: 2}}
        measures: {shut: shut, one: one, at: where(corner), moves: moves, hall: entries(hall) + time(all_doors)}
    """,
    # -- what is seen
    # Places and glyphs held by variables, sets and none; entries of `show` on one square; landmarks; texts of lines.
    "shown": """
        version: 1
        paradigm: shown
        arena:
          map: |
            #######
            #aa.bb#
            #a.L.b#
            ##MM###
          legend: {a: {zone: za, glyph: ","}, b: {zones: [zb, wide]}, L: {solid: lamp}, M: {solid: bulb, glyph: m}}
          groups: {sides: [za, zb], lamps: [lamp, bulb]}
          landmarks: {N: "1", SE: "2", tree: {at: [-1, 1], glyph: Y}, rock: {at: [8, 4], glyph: o}}
        vars: {where_to: za, what: none, many: [za, lamp], n: 0}
        draw: {d: {order: shuffle, of: {mark: ["*", "7", none], spot: [zb, none, lamps]}}}
        start: {at: sides, face: random}
        trial:
          limit: 40
          start: dark
          states:
            dark: {say: ["It is dark.", "Wait."], show: {spot: mark}, rules: [{after: 2, set: {what: mark}, go: light}]}
            light:
              say: |
                Light.
                Go on.
              show: {sides: "o", where_to: what, lamps: "!", lamp: mark, many: "%"}
              rules:
                - {enter: sides, set: {where_to: spot, what: mark}, add: {many: it}, count: sides_met}
                - {press: lamps, set: {where_to: it, many: none}, reward: 1, go: again}
                - {act: STAY, set: {what: "none", where_to: za}}
            again: {show: {wide: ".", many: mark, za: what}, freeze: true, rules: [{after: 3, add: {many: where_to},
              go: dark}]}
        schedule: {only: {trials: 5}}
        measures: {what: what, mark: mark, to: where_to, many: many}
    """,
    # Frozen states: waited through, led out of by `after` or `act`, with pay in each step, with p.
    "frozen": """
        version: 1
        paradigm: frozen
        arena: {map: "#abc#", legend: {a: za, b: zb, c: zc}, groups: {all: [za, zb, zc]}}
        vars: {n: 0}
        start: {at: zb, face: E, carry: true}
        trial:
          limit: 30
          start: cold
          states:
            cold: {freeze: true, say: wait, rules: [{after: 3, go: warm}]}
            warm: {rules: [{enter: za, go: paid}, {enter: zc, set: {n: n + 1}, go: asked}, {press: wall, go: trap}]}
            paid: {freeze: true, each: {reward: 0.5, set: {n: n + 1}}, rules: [{after: n, p: 0.5, go: warm}]}
            asked: {freeze: true, rules: [{act: STAY, go: warm}, {act: ROTATE_LEFT, p: 0.5, place: all, go: cold}]}
            trap: {freeze: true, say: trapped}
          watch: [{act: FORWARD, if: state == asked or state == trap, reward: -0.5}, {press: wall, reward: 9}]
          finish: [{if: n > 6 or time(za) > 9, end: enough}]
        schedule: {only: {sessions: 2, trials: 3}}
        measures: {n: n, still: time(all)}
    """,
    # -- draws
    # Independent rows with a longest run, permuted blocks with copies, rows in order, and by subject; in all scopes.
    "drawn": """
        version: 1
        paradigm: drawn
        arena: {map: "#zzzz#", legend: {z: zone}}
        draw:
          a: {per: subject, order: random, of: {a1: [1, 2.5, 3], a2: [x, y, none]}}
          b: {per: block, order: shuffle, of: {b1: [0.5, 1, 1.0, 2]}}
          c: {per: session, order: cycle, of: {c1: [left, right]}}
          d: {per: trial, order: by_subject, of: {d1: [10, 20, 30], d2: [p, q, r]}}
          e: {per: trial, order: random, max_run: 2, of: {e1: [u, v], e2: [1, 2]}}
          f: {per: trial, order: shuffle, copies: 3, max_run: 2, of: {f1: [u, v, v]}}
          g: {per: session, order: random, max_run: 1, of: {g1: [1, 1.0, 2, 3]}}
          h: {per: trial, order: shuffle, copies: 4, of: {h1: [-1, 0, 1], h2: [i, j, k]}}
        start: {at: zone, face: E}
        trial: {limit: 3, start: only, states: {only: {each: {reward: a1 + b1 + d1 + e2 + g1 + h1},
          rules: [{act: STAY, if: e1 == f1, end: same}]}}}
        schedule: {first: {sessions: 2, trials: 5, repeat: 2}, second: {sessions: 3, trials: 3}}
        measures: {a1: a1, a2: a2, b1: b1, c1: c1, d1: d1, d2: d2, e1: e1, f1: f1, g1: g1, h1: h1, h2: h2}
    """,
    # Rows that are balanced over cycles of subjects: in all scopes, of one row, kept, and subsets.
    "balanced": """
        version: 1
        paradigm: balanced
        arena: {map: "#zzzz#", legend: {z: zone}}
        draw:
          a: {per: subject, order: balanced, of: {a1: [1, 2, 3], a2: [x, y, none]}}
          b: {per: block, order: balanced, of: {b1: [1, 2, 3, 4, 5, 6, 7]}}
          c: {per: session, order: balanced, of: {c1: [left]}}
          d: {per: trial, order: balanced, keep_if: last == same, of: {d1: [0, 1]}}
          e: {per: trial, order: balanced, pick: 2, of: {e1: [u, v, w, none]}}
          f: {per: trial, order: random, of: {f1: [1, 2, 3]}}
        start: {at: zone, face: E}
        trial: {limit: 3, start: only, states: {only: {each: {reward: a1 + b1 + d1},
          rules: [{act: STAY, if: d1 == 1, end: same}]}}}
        schedule: {first: {sessions: 2, trials: 3, repeat: 2}, second: {sessions: 2, trials: 2}}
        measures: {a1: a1, a2: a2, b1: b1, c1: c1, d1: d1, e1: e1, f1: f1}
    """,
    # Blocks that hardly any permutation keeps the longest run of: after 100 attempts they are put together.
    "tight": """
        version: 1
        paradigm: tight
        arena: {map: "#zzzz#", legend: {z: zone}}
        draw:
          a: {order: shuffle, copies: 12, max_run: 1, of: {a1: [u, v]}}
          b: {order: shuffle, copies: 6, max_run: 2, of: {b1: [1, 1.0, 2], b2: [x, y, z]}}
          c: {order: shuffle, copies: 3, max_run: 1, of: {c1: [p, p, p, q, r, none]}}
          d: {order: random, max_run: 1, of: {d1: [0, 1, 1.0, 1]}}
          e: {per: session, order: shuffle, copies: 5, max_run: 3, of: {e1: [s, s, s, t]}}
        start: {at: zone, face: E}
        trial: {limit: 4, start: only, states: {only: {rules: [{act: STAY, if: a1 == u, end: stayed}]}}}
        schedule: {first: {sessions: 5, trials: 14}}
        measures: {a1: a1, b1: b1, b2: b2, c1: c1, d1: d1, e1: e1}
    """,
    # Subsets: chosen at random, shuffled, in order and by subject; of names, numbers, and with none among them.
    "picked": """
        version: 1
        paradigm: picked
        arena:
          map: "abcde"
          legend: {a: za, b: zb, c: zc, d: zd, e: ze}
          groups: {all: [za, zb, zc, zd, ze]}
        draw:
          a: {per: session, order: random, pick: 2, of: {baited: [za, zb, zc, zd, ze], twin: [zb, zb, none, za, za]}}
          b: {order: shuffle, pick: 2, of: {b1: [1, 1.0, 2, 3.5]}}
          c: {order: cycle, pick: 2, of: {c1: [x, y, z]}}
          d: {order: by_subject, pick: 3, of: {d1: [za, zb, zc, zd]}}
          e: {order: random, pick: 1, of: {e1: [za, none, zc]}}
          f: {order: random, pick: 5, of: {f1: [5, 4, 3, 2, 1]}}
        vars: {eaten: {init: [], per: session}, numbers: [], typed: [1, 2.5], zones_met: []}
        start: {at: baited, face: random}
        trial:
          limit: 20
          start: seek
          states:
            seek:
              rules:
                - {enter: baited, if: not (it in eaten), add: {eaten: it, numbers: steps, zones_met: twin}, reward: 1}
                - {enter: d1, add: {zones_met: d1, numbers: b1}, set: {typed: numbers}, count: others}
                - {act: STAY, if: 1 in b1 or x in c1, add: {numbers: numbers, zones_met: all}, place: d1}
                - {act: ROTATE_LEFT, if: za in e1 or size(e1) == 0, set: {numbers: b1}, add: {numbers: size(f1) / 2,
                   typed: size(f1) / 2}}
          finish: [{if: size(eaten) == 2, end: all_found}]
        schedule: {only: {sessions: 3, trials: 4}}
        measures: {baited: baited, twin: twin, b1: b1, c1: c1, d1: d1, e1: e1, f1: f1, eaten: eaten,
          numbers: numbers, typed: typed, met: zones_met}
    """,
    # Rows that are kept, by the last outcome, a counter of the last trial, a set, the block and another draw.
    "kept": """
        version: 1
        paradigm: kept
        arena: {map: "azzzb", legend: {z: zone, a: za, b: zb}, groups: {side: [za, zb]}}
        vars: {seen: {init: [], per: session}, n: {init: 0, per: block}}
        draw:
          a: {order: random, keep_if: last == error, of: {goal: [za, zb]}}
          b: {order: shuffle, keep_if: goal in seen, max_run: 2, of: {b1: [1, 2.0, 3]}}
          c: {order: cycle, keep_if: n > 2 or block == probe, of: {c1: [x, y, z]}}
          d: {per: session, order: random, keep_if: session == 2, of: {d1: [1, 2, 3, 4, 5]}}
          e: {order: by_subject, keep_if: b1 == 2, pick: 1, of: {e1: [u, v, w]}}
          f: {order: random, keep_if: turns > 0 or where(side) == za or steps > 0, of: {f1: [1, 2, 3, 4]}}
        start: {at: zone, face: random}
        trial:
          limit: 25
          start: only
          states: {only: {rules: [{enter: side, if: it == goal, add: {seen: it}, set: {n: n + 1}, reward: b1,
            end: correct}, {enter: side, end: error}]}}
          watch: [{act: ROTATE_LEFT, count: turns}]
        schedule: {train: {sessions: 2, trials: 6, repeat: 2}, probe: {trials: 4}}
        success: last == correct
        measures: {goal: goal, b1: b1, c1: c1, d1: d1, e1: e1, f1: f1, seen: seen, n: n}
    """,
    # -- schedule and scopes
    # Blocks that repeat and end early by several outcomes; variables of all scopes, set by blocks; it begins again.
    "scopes": """
        version: 1
        paradigm: scopes
        arena: {map: "azb", legend: {a: za, b: zb, z: zone}, groups: {side: [za, zb]}}
        vars:
          s: {init: 0, per: subject}
          b: {init: 1, per: block}
          e: {init: 2, per: session}
          t: 3
          aim: {init: za, per: subject}
          some: {init: [za], per: block}
          mood: {init: none, per: session}
        draw:
          a: {per: subject, order: shuffle, of: {a1: [1, 2, 3]}}
          b: {per: block, order: cycle, of: {b1: [1, 2, 3]}}
        start: {at: zone, face: random}
        trial:
          limit: 12
          start: [{if: block == reversal and session == 2, go: late}, main]
          states:
            main:
              rules:
                - {enter: aim, set: {s: s + 1, b: b + 1, e: e + 1, t: t + 1, mood: bright}, add: {some: it},
                   reward: b, end: correct}
                - {enter: side, if: mood == none or mood == grim, set: {s: s + subject, mood: block}, end: error}
                - {enter: side, end: wrong}
            late: {rules: [{after: 2 + e, end: late}, {act: STAY, set: {e: e - 1, mood: state}}]}
        schedule:
          train: {sessions: 2, trials: 3, until: {outcome: correct, count: 2, of: 3}}
          reversal: {sessions: 2, trials: 2, repeat: 3, set: {aim: zb, t: 5, some: [zb], mood: grim},
            until: {outcome: [error, wrong, timeout], count: 2, of: 2}}
          back: {set: {aim: za, e: 9, s: 100}, until: {outcome: correct, count: 1, of: 1}}
          probe: {trials: 2}
        success: last == correct
        measures: {s: s, b: b, e: e, t: t, aim: aim, some: some, mood: mood, a1: a1, b1: b1,
          number: trial + 10 * session, block: block, subject: subject, who: state}
    """,
    # -- expressions
    # The path: every function of a zone, a door, a group, a solid, a variable and a set; before and after placing.
    "paths": """
        version: 1
        paradigm: paths
        arena:
          map: |
            ########
            #aaa..b#
            #a.Xc.b#
            #ddg...#
            ########
          legend: {a: za, b: zb, c: zc, d: zd, g: {door: gate}, X: {solid: post, glyph: x}}
          groups: {west: [za, zd], posts: [post, wall]}
        vars: {aim: zb, many: [za, zb], nowhere: none, empty: [], far: 0, off: 0}
        start: {at: west, face: random}
        trial:
          limit: 50
          start: go_on
          states:
            go_on:
              rules:
                - {enter: aim, set: {far: distance(nowhere), off: bearing_error(west), aim: it}, add: {empty: it}}
                - {enter: many, if: distance(gate) < 3 or bearing_error(zb) > 90, set: {far: distance(many),
                   aim: zd}, place: zc, count: sent}
                - {act: STAY, set: {many: empty, nowhere: where(west), off: departure_error(aim)},
                   reward: entries(west) + time(gate)}
                - {press: posts, if: moves > 2, set: {far: column(post)}, reward: moves}
              close: []
          watch: [{act: FORWARD, if: moves == x or heading == 45 * y, reward: 0.5}]
        schedule: {only: {trials: 3}}
        measures:
          d1: distance(za)
          d2: distance(west)
          d3: distance(many)
          d4: distance(nowhere)
          d5: distance(empty)
          b1: bearing_error(zb)
          b2: bearing_error(aim)
          b3: bearing_error(nowhere)
          o1: departure_error(zc)
          o2: departure_error(many)
          c1: column(post) + row(post)
          c2: column(posts)
          c3: row(nowhere)
          c4: column(many) - row(empty)
          e1: entries(gate)
          e2: entries(many)
          t1: time(nowhere)
          t2: time(west) + time(many)
          at: x + 100 * y
          heading: heading
          moves: moves
          far: far
          off: off
          sum: distance(za) * bearing_error(zb) + departure_error(aim) / moves
    """,
    # Measures of all kinds, and of all classes of values: also undefined, endless, true, empty, and none.
    "measured": """
        version: 1
        paradigm: measured
        arena: {map: "azzb", legend: {a: za, b: zb, z: zone}, groups: {side: [za, zb]}}
        vars: {n: 0, f: 0.5, name: none, some: [], nums: [3, 1.5], yes: 0}
        start: {at: zone, face: E}
        trial:
          limit: 12
          start: only
          states: {only: {rules: [{enter: side, set: {n: n + 1, f: f * 3, name: it, yes: it == za}, add: {some: it,
            nums: yes}}, {act: STAY, if: n > 0, end: over}]}}
        schedule: {only: {trials: 3}}
        success: n
        measures:
          whole: n
          broken: f
          share: n / 2
          same: n * 1.0
          none_at_all: 1 / (n - n)
          endless: n * 1e90 * 1e90 * 1e90 * 1e90
          neither: (n + 1) * 1e90 * 1e90 * 1e90 * 1e90 - (n + 1) * 1e90 * 1e90 * 1e90 * 1e90
          truth: n > 1
          both: n and f
          either: n or f
          denied: not n
          held_truth: yes
          name: name
          zone: za
          nothing: none
          set: some
          numbers: nums
          group: side
          size: size(some)
          outcome: last
          is_over: last == over
          compared: (n > 1) == (f > 1)
          class: [{if: n == 0, is: still}, {if: f > 4, is: far}, {if: name == za, is: west}]
          other: [{if: 1 / n, is: some}, rest]
          part: [{if: n > 100, is: never}]
    """,
    # Arithmetic where whole numbers end: beyond 2**53, without end, undefined; and no -0.0.
    "sums": """
        version: 1
        paradigm: sums
        arena: {map: "#zz#", legend: {z: zone}}
        vars: {n: {init: 3, per: session}, m: {init: 999999999999999, per: session}, f: {init: 0.1, per: session},
          o: 0, q: {init: 1, per: session}}
        start: {at: zone, face: E}
        trial:
          limit: 30
          start: only
          states:
            only:
              rules:
                - {act: FORWARD, set: {n: n * n, m: m + m}}
                - {act: STAY, set: {n: 0 - n, m: m - 1, o: -o * 5, q: q * -7}, reward: n == m}
                - {act: ROTATE_LEFT, set: {n: n / 3, f: f + 0.2, q: q * 3 + 1}, reward: m + 1 == m}
                - {act: ROTATE_RIGHT, set: {o: n - n, f: f / o, n: n - m, q: q / 2}, reward: o == 0}
          watch: [{press: wall, if: n > 9007199254740992 or m >= 9007199254740993, count: large}, {press: wall,
            if: n != n, count: odd}]
          finish: [{if: o != o, end: undefined}]
        schedule: {only: {sessions: 3, trials: 3}}
        measures: {n: n, m: m, f: f, o: o, q: q, more: m + 1, less: m - 1 < m, minus: -n, zero: 0 * -n,
          exact: 9007199254740991 + 1, third: n / 3 * 3 == n}
    """,
    # Truths as numbers: held by variables, members of sets, counted, compared and paid.
    "truths": """
        version: 1
        paradigm: truths
        arena: {map: "azb", legend: {a: za, b: zb, z: zone}, groups: {side: [za, zb]}}
        vars: {t: 0, u: {init: true, per: session}, nums: [0], w: 1.0}
        start: {at: zone, face: E}
        trial:
          limit: 15
          start: only
          states:
            only:
              rules:
                - {enter: side, set: {t: it == za, u: u == t, w: t + u}, add: {nums: t}, reward: t}
                - {act: STAY, set: {t: not t, u: t, w: w and t}, add: {nums: w}}
                - {act: ROTATE_LEFT, if: t == u and t in nums, set: {t: 1 in nums, w: w * t}, count: turns}
                - {act: ROTATE_RIGHT, if: (t < 1) == (u > 0), set: {w: 1.0, nums: none}, add: {nums: 1.0}, end: over}
        schedule: {only: {trials: 4}}
        measures: {t: t, u: u, w: w, nums: nums, size: size(nums), a: t + t, b: -t, c: t * 1, d: t / 1, e: t == w}
    """,
    # Names: compared with one another, with none, with states, blocks and outcomes; members of sets and groups.
    "names": """
        version: 1
        paradigm: names
        arena:
          map: "abzcd"
          legend: {a: za, b: zb, c: zc, d: {zones: [zd, za]}, z: zone}
          groups: {left: [za, zb], right: [zd, zc], all: [za, zb, zc, zd]}
        vars: {any: none, was: none, there: za, set_any: [], kept: [za], symbol: {init: red, per: session},
          phase: {init: none, per: session}}
        draw: {d: {of: {cue: [red, blue, none], side: [za, zd, none]}}}
        start: {at: zone, face: random}
        trial:
          limit: 30
          start: [{if: phase == none or symbol == cue, go: left_state}, right_state]
          states:
            left_state:
              rules:
                - {enter: left, if: it == side or side == none, set: {any: it, was: state, phase: last},
                   add: {set_any: it}, go: right_state}
                - {enter: all, if: where(left) != it and not (it in kept), set: {any: where(left), symbol: cue,
                   there: where(all)}, add: {kept: it}}
                - {act: STAY, if: any == there or any in set_any, set: {symbol: green, any: none}, add: {set_any: any}}
            right_state:
              rules:
                - {enter: right, if: it in right and it in kept, set: {was: block, phase: state, symbol: red},
                   reward: 1, end: fed}
                - {enter: all, if: cue != symbol and was == left_state, set: {was: last, there: it}, go: left_state}
                - {act: ROTATE_LEFT, if: symbol == green or block == first, set: {any: side, kept: set_any},
                   count: turns}
                - {act: STAY, if: kept == set_any or there in left, set: {set_any: none, was: none}, go: left_state}
        schedule: {first: {trials: 3}, second: {sessions: 2, trials: 2}}
        success: last == fed and symbol == red
        measures: {any: any, was: was, there: there, set_any: set_any, kept: kept, symbol: symbol, phase: phase,
          cue: cue, side: side, same: kept == set_any, at: where(all)}
    """,
    # Long conditions of few variables, whose values are remembered: numbers of different types are different values.
    "remembered": """
        version: 1
        paradigm: remembered
        arena: {map: "abzba", legend: {a: za, b: zb, z: zone}, groups: {part: [za, zb]}}
        vars: {n: 0, f: 0.0, s: [], name: none}
        start: {at: zone, face: E}
        trial:
          limit: 30
          start: only
          states:
            only:
              rules:
                - {enter: part, if: it == za and not (it in s) or n * 2 + 1 > 4 and n / 2 == 1 or n == 0,
                   set: {n: n + 1, f: f + 1, name: it}, reward: n * f + f * f - n / 2 + 1 - f - n}
                - {enter: part,
                   if: (it in s or it == name) and (n + 1) * (n - 1) * 2 > n and not (it == zb and n > 9),
                   add: {s: it}, set: {n: n * 1.0, f: f * 2 - n + n * n - n + 1}}
                - {act: STAY, if: (f == n) + (n == 1) + (f > 3) * 2 - (n < 0) > 0 and not (f == 2),
                   set: {n: (f == n) + n * 1 - f + f * 0 + 1, f: n}, count: stays}
        schedule: {only: {trials: 3}}
        measures: {n: n, f: f, s: s, long: (n + 1) * (n + 2) * (n + 3) - n / 4 + n - 1 + 2 * n,
          truth: n * 2 > 3 or n * 3 > 4 and not (n == 2) or n == 0 and n + 1 == 1}
    """,
    # -- sizes
    # Generators: many zones and groups, a cell in several of them, doors that nobody closes.
    "pool": """
        version: 1
        paradigm: pool
        arena: {pool: {radius: 5}, landmarks: {N: "1", SW: "2"}}
        vars: {visited: [], before: none}
        draw: {d: {order: shuffle, of: {goal: [spot_nw, spot_ne, spot_sw, spot_se], from: [edge_s, edge_w, edge_n,
          edge_e]}}}
        start: {at: from, face: random}
        trial:
          limit: 80
          start: swim
          states: {swim: {rules: [{enter: goal, reward: 1, end: found}, {enter: spot, if: it != before,
            set: {before: it}, reward: -0.1}, {enter: quadrant, add: {visited: it}}]}}
          watch: [{enter: rim, count: walls}, {press: wall, count: bumps}]
        schedule: {train: {sessions: 2, trials: 2}, probe: {trials: 1}}
        success: last == found
        measures: {visited: visited, error: departure_error(goal), in_target: time(nw) / steps, at: where(quadrant),
          far: distance(goal)}
    """,
    "arms": """
        version: 1
        paradigm: arms
        arena: {radial: {arms: 5, length: 2}, headings: 8}
        vars: {eaten: [], shut: [gate1]}
        draw: {d: {per: block, pick: 2, of: {baited: [cup1, cup2, cup3, cup4, cup5]}}}
        start: {at: hub, face: random}
        trial:
          limit: 120
          start: run
          states:
            run:
              close: shut
              rules:
                - {enter: cup, if: it in baited and not (it in eaten), add: {eaten: it}, reward: 1}
                - {enter: cup, if: it in eaten, count: again, add: {shut: gate}, go: held}
                - {enter: cup, add: {eaten: it}, set: {shut: none}, count: wrong}
            held: {close: [gate, shut], rules: [{after: 4, set: {shut: none}, go: run}]}
          finish: [{if: size(eaten) == 2, end: all_found}]
        schedule: {only: {trials: 2, repeat: 2}}
        measures: {eaten: eaten, again: again, arm: where(arm)}
    """,
    "holes": """
        version: 1
        paradigm: holes
        arena: {ring: {radius: 5, holes: 12}}
        vars: {poked: {init: [], per: session}, n: {init: 0, per: session}}
        draw: {d: {per: subject, order: by_subject, of: {goal: [hole1, hole4, hole7, hole10]}}}
        start: {at: centre, face: random}
        trial:
          limit: 60
          start: search
          states: {search: {rules: [{enter: goal, reward: 1, end: escaped}, {enter: hole, if: not (it in poked),
            add: {poked: it}, set: {n: n + 1}, count: errors}]}}
        schedule: {only: {sessions: 2, trials: 3}}
        measures: {poked: poked, strategy: [{if: errors == 0, is: direct}, {if: errors < n, is: serial}, mixed]}
    """,
    "boxes": """
        version: 1
        paradigm: boxes
        arena: {boxes: {width: 2, height: 2}}
        vars: {origin: none}
        draw: {d: {of: {wait: [2, 3]}}}
        start: {at: west, face: random, carry: true}
        trial:
          limit: 30
          start: iti
          states:
            iti: {close: gate, rules: [{after: wait, go: cs}]}
            cs: {say: TONE, show: {side: "*"}, set: {origin: where(side)}, rules: [{enter: side, if: it != origin,
              reward: 1, end: avoid}, {after: 4, go: us}]}
            us: {each: {reward: -0.5}, rules: [{enter: side, if: it != origin, end: escape}]}
          watch: [{enter: side, count: crossings}]
        schedule: {only: {sessions: 2, trials: 4}}
        success: last == avoid
        measures: {origin: origin, shocks: time(side)}
    """,
    # A life of long trials: whatever counts steps grows large.
    "long": """
        version: 1
        paradigm: long
        arena: {map: "#abc#", legend: {a: za, b: zb, c: zc}, groups: {all: [za, zb, zc]}}
        vars: {n: 0}
        start: {at: all, face: E}
        trial:
          limit: 100000
          start: rest
          states: {rest: {rules: [{after: 150, if: entries(zb) > 5, set: {n: time(zb)}, end: rested}, {after: 90000,
            end: never}]}}
          watch: [{press: wall, count: bumps}, {enter: all, if: time(it) > 50, reward: 0.5}]
        schedule: {only: {sessions: 10, trials: 100, repeat: 100}}
        measures: {n: n, bumps: bumps, moves: moves}
    """,
    # Numbers that no float can hold, and a timer that such a number sets: below zero is now, without a bound is never.
    "overflowing": """
        version: 1
        paradigm: overflowing
        arena: {map: a.b, legend: {a: {zone: left}, b: {zone: right}}}
        vars: {number: 1000000}
        start: {at: left}
        trial:
          limit: 30
          start: down
          states:
            down:
              rules:
                - {act: FORWARD, set: {number: number * number * number}}
                - {act: ROTATE_LEFT, set: {number: number * number * number}}
                - {act: ROTATE_RIGHT, set: {number: number * number * number}}
                - {after: 20 - number * number, reward: 1, go: up}
            up:
              rules:
                - {after: number, reward: 2, end: waited}
                - {after: number - number, end: undefined}
                - {after: 3, go: down}
        schedule: {only: {sessions: 2, trials: 3}}
        measures: {number: number, less: 0 - number, none: number - number, zero: 0 * -1, truth: -(last == waited)}
    """,
    # Blocks that hardly any permutation is allowed to be, values that several rows have, names as long as can be.
    "composed": """
        version: 1
        paradigm: composed
        arena:
          map: a.b.c
          legend: {a: {zone: left}, b: {zone: middle}, c: {zone: right}}
        draw:
          LONG: {per: trial, order: shuffle, copies: 8, max_run: 1, of: {side: [left, right]}}
          mostly:
            {per: trial, order: shuffle, copies: 3, max_run: 2,
             of: {one: [left, left, left, right, middle], row: [1, 2, 3, 4, 5]}}
          pairs: {per: trial, order: cycle, pick: 2, of: {pair: [left, middle, right]}}
        start: {at: side, face: random}
        trial:
          limit: 3
          start: LONG
          states:
            LONG: {rules: [{act: STAY, p: 0.5, place: pair, end: put}, {enter: one, place: one, end: met}]}
        schedule: {only: {sessions: 9, trials: 30}}
        measures: {one: one, row: row, side: side, pair: pair}
    """.replace("LONG", "long" * 20),
}


def _lengthy() -> str:
    """Return a protocol whose names are so long that keys of random numbers take two blocks of the hash, or just one.

    A block is 128 bytes; seeds, subjects, trials and attempts move the other keys across that border.
    """
    text = """
        version: 1
        paradigm: P80
        arena: {map: "#zzyy#", legend: {z: zone, y: Y80}}
        vars: {n: {init: 0, per: session}}
        draw:
          D80: {order: random, of: {a: [1, 2, 3]}}
          E33: {order: shuffle, copies: 7, max_run: 1, of: {b: [x, y, z]}}
          F29: {order: random, pick: 2, of: {c: [u, v, w]}}
        start: {at: zone, face: random}
        trial:
          limit: 130
          start: S80
          states:
            S80: {rules: [{act: FORWARD, p: 0.5, set: {n: n + a}}, {act: STAY, p: 0.1, place: zone, go: T36}]}
            T36:
              rules:
                - {act: FORWARD, p: 0.5, reward: 1}
                - {act: ROTATE_LEFT, p: 0.5, go: U31}
                - {act: STAY, p: 0.5, go: S80}
            U31: {rules: [{act: FORWARD, p: 0.5, reward: 2}, {act: STAY, p: 0.5, go: V25}]}
            V25: {place: Y80, rules: [{act: FORWARD, p: 0.5, reward: 4}, {act: STAY, p: 0.5, go: T36}]}
          watch: [{act: ROTATE_RIGHT, p: 0.5, reward: 0.5}]
        schedule: {only: {sessions: 3, trials: 4}}
        measures: {n: n, a: a, b: b, c: c}
    """
    for short in ("P80", "Y80", "D80", "E33", "F29", "S80", "T36", "U31", "V25"):
        text = text.replace(short, short[0] * int(short[1:]))
    return text


def _crowded() -> str:
    """Return a protocol with more events, members of a set and values of a column than a word has bits."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@$&=;!"
    count = len(letters)
    legend = (f'"{letter}": {{zones: [z{number}, y{number}]}}' for number, letter in enumerate(letters))
    values = {
        "ROWS": ("\n" + 12 * " ").join(letters[start : start + 17] for start in range(0, count, 17)),
        "LEGEND": ", ".join(legend),
        "ZONES": ", ".join(f"z{number}" for number in range(count)),
        "BACKWARDS": ", ".join(f"y{number}" for number in reversed(range(count))),
        "WORDS": ", ".join(f"w{number}" for number in range(count)),
        "NUMBERS": ", ".join(str(number / 4) for number in range(count)),
    }
    text = """
        version: 1
        paradigm: crowded
        arena:
          map: |
            ROWS
          legend: {LEGEND}
          groups: {all: [ZONES], backwards: [BACKWARDS]}
        vars: {seen: [], any: none, late: [], n: 0, numbers: [], goal: none}
        draw:
          d: {order: random, pick: 66, of: {most: [ZONES]}}
          e: {order: random, pick: 65, of: {symbols: [WORDS]}}
          f: {order: shuffle, of: {aim: [ZONES], worth: [NUMBERS]}}
        start: {at: most, face: random}
        trial:
          limit: 200
          start: new
          states:
            new:
              rules:
                - {enter: all, if: it in seen, set: {n: n + 1, any: it}, count: again, go: old}
                - {enter: all, add: {seen: it, numbers: steps}}
            old: {rules: [{enter: all, if: not (it in seen), add: {seen: it, numbers: steps}, go: new}]}
          watch:
            - {enter: backwards, if: it in late, reward: 0.25}
            - {enter: backwards, if: steps > 20, p: 0.5, add: {late: it}}
            - {enter: aim, reward: worth, set: {goal: it}}
            - {enter: most, count: most_met}
            - {enter: z67, if: w3 in symbols, reward: 1}
        schedule: {only: {trials: 2}}
        measures:
          seen: seen
          late: late
          any: any
          n: n
          numbers: numbers
          most: most
          symbols: symbols
          aim: aim
          at: where(all)
          goal: goal
    """
    for word, value in values.items():
        text = text.replace(word, value)
    return text


ZOO["lengthy"] = _lengthy()
ZOO["crowded"] = _crowded()


def examine(text: str, name: str) -> tuple[Specification | None, str]:
    """Load a protocol from its text; return None where it has errors, and all findings."""
    specification, found = examine_text(textwrap.dedent(text), f"{name}.protocol.yaml")
    return specification, "\n".join(map(str, found))


def load(name: str) -> Specification:
    """Load a protocol of the zoo."""
    specification, found = examine(ZOO[name], name)
    assert specification is not None, found
    return specification
