"""The audit keeps everything of a life that can matter: beliefs agree with an
enumeration of whole lives.

Small random protocols read and write variables wherever the language allows it. Under
fixed actions, percepts and outcomes must have the same probabilities by merged
hypotheses as by all draws, one by one.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import beliefs, relevance
from cheesebench.paradigms.arena.audit.beliefs import Belief, Rest, World
from cheesebench.paradigms.arena.audit.hypotheses import Hypothesis, Script
from cheesebench.paradigms.arena.audit.relevance import Relevance
from cheesebench.protocol import Specification
from cheesebench.protocol import expressions as ex
from tests.arenas import examine_text

#: Maximum number of lives to enumerate.
LIVES = 1000
LIMIT, TRIALS, SEQUENCES = 5, 3, 2
LESIONS = ("intact", "blind", "anhedonia", "pose-only", "hide=arm", "blind+anhedonia")

HEAD = """version: 1
paradigm: drawn
arena: {map: "l.S.r", legend: {S: box, l: left, r: right}, groups: {arm: [left, right]}, headings: 4}
"""
SCOPES = ("trial", "trial", "session", "block", "subject")
GUARDS = (
    "a == left", "b == 1", "n == 2", "v == 1", "w == a", "u > 0", "a == left and b == 1", "(b + v) % 2 == 0",
    "last == good", "block == two", "block == one and b == 1", "block != one or v == 1", "trial == 2", "session == 1",
    "recent(good, 2) == 1", "steps > 2", "time(left) > 0", "time(w) > 1", "v * (block == two) == 1", "visits > 0",
    "member(arm, b + 1) == w", "member(arm, (b + u) % 2 + 1) == left", "b / v > 0", "w == none", "moves > 1",
    "(block == two) * (1 / b) == 0",
)  # fmt: skip
OF_MEMBERS = (
    *GUARDS,
    "it == a",
    "it != w",
    "it == member(arm, b + 1)",
    "position(it, arm) == n",
)
VALUES = {"v": ("b", "v + 1", "0", "(v + b) % 2", "n - 1", "u"), "u": ("b", "v", "1", "u + 1", "n"),
          "w": ("a", "member(arm, b + 1)", "w", "where(arm)")}  # fmt: skip
REWARDS = (
    "1",
    "b",
    "v",
    "v * (block == two)",
    "n * (a == left)",
    "u",
    "b / 2",
    "(w == a)",
)
SUCCESS = ("last == good", "last == good and b == 1", "v == b", "w == a", "recent(good, 1) == 1 and b == 1",
           "time(left) > 1", "visits == 1 and u == 1")  # fmt: skip


@st.composite
def effects(draw: st.DrawFn, *, it: bool = False, entry: bool = False) -> str:
    """Return one or two effects, each followed by a comma; effects of an entry have no
    reward.
    """
    parts = {}
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(
            st.sampled_from(
                ["set", "set", "set", "count", "place"]
                if entry
                else ["set", "reward", "reward"]
            )
        )
        name = draw(st.sampled_from(list(VALUES)))
        value = draw(
            st.sampled_from(
                (*VALUES[name], "it") if it and name == "w" else VALUES[name]
            )
        )
        what = {
            "set": f'{{{name}: "{value}"}}',
            "reward": f'"{draw(st.sampled_from(REWARDS))}"',
            "count": "visits",
        }
        parts[kind] = what.get(kind) or draw(st.sampled_from(["box", "a"]))
    return "".join(f"{kind}: {what}, " for kind, what in parts.items())


@st.composite
def rules(draw: st.DrawFn, states: tuple[str, ...], *, watch: bool = False) -> str:
    """Return a rule, usually about going forward, which happens often."""
    often = [
        "act: FORWARD",
        "act: FORWARD",
        "act: STAY",
        "enter: arm",
        "enter: arm",
        "enter: a",
        "enter: w",
    ]
    trigger = draw(
        st.sampled_from(
            often if watch else [*often, "after: 1", "after: n", "after: b + 1"]
        )
    )
    it = trigger == "enter: arm"
    text = f"{trigger}, "
    if draw(st.integers(0, 3)):
        text += f'if: "{draw(st.sampled_from(OF_MEMBERS if it else GUARDS))}", '
    if draw(st.integers(0, 5)) == 0:
        text += 'p: "(1 + b) / 4", '
    text += draw(effects(it=it))
    if not watch:
        text += draw(
            st.sampled_from(
                [
                    "end: good, ",
                    "end: bad, ",
                    "",
                    "",
                    *(f"go: {state}, " for state in states),
                ]
            )
        )
    return f"{{{text[:-2]}}}"


@st.composite
def protocols(draw: st.DrawFn) -> str:
    """Return the text of a protocol; a few are not accepted."""
    text = HEAD
    text += "draw:\n"
    order = st.sampled_from(["random", "random", "shuffle", "cycle", "by_subject"])
    for name, columns in (("a", "a: [left, right]"), ("b", "b: [0, 1], n: [1, 2]")):
        keep = draw(
            st.sampled_from(["", "", ", keep_if: last == bad", ", keep_if: v == 1"])
        )
        text += f"  {name}: {{per: {draw(st.sampled_from(SCOPES))}, order: {draw(order)}, of: {{{columns}}}{keep}}}\n"
    text += "vars:\n"
    for name, first in (("v", "0"), ("u", "1"), ("w", "left")):
        text += f"  {name}: {{init: {first}, per: {draw(st.sampled_from(SCOPES))}}}\n"
    text += f"start: {{at: {draw(st.sampled_from(['box', 'box', 'a', 'w']))}, face: {draw(st.sampled_from('EW'))}"
    text += f", carry: {draw(st.sampled_from(['false', 'true']))}}}\n"
    states = ("one", "two", "three")[: draw(st.integers(1, 3))]
    first = (
        f'{{if: "{draw(st.sampled_from(GUARDS))}", go: {states[-1]}}}, '
        if draw(st.booleans())
        else ""
    )
    text += f"trial:\n  limit: {LIMIT}\n  start: [{first}{states[0]}]\n"
    if draw(st.integers(0, 3)) == 0:
        text += f"  each: {{{draw(effects())[:-2]}}}\n"
    if draw(st.integers(0, 2)) == 0:
        text += f"  watch: [{draw(rules(states, watch=True))}]\n"
    if draw(st.integers(0, 4)) == 0:
        text += f'  finish: [{{if: "{draw(st.sampled_from(GUARDS))}", end: good}}]\n'
    text += "  states:\n"
    for state in states:
        show = draw(
            st.sampled_from(
                [*[""] * 4, 'show: {a: "*"}, ', 'show: {w: "*"}, ', "say: '{b}{v}', "]
            )
        )
        freeze = "freeze: true, " if draw(st.integers(0, 5)) == 0 else ""
        own = ", ".join(draw(st.lists(rules(states), min_size=1, max_size=3)))
        own += ", {enter: left, count: visits, end: good}, {enter: right, end: bad}"
        entry = draw(effects(entry=True)) if draw(st.booleans()) else ""
        each = (
            f"each: {{{draw(effects())[:-2]}}}, "
            if draw(st.integers(0, 4)) == 0
            else ""
        )
        text += f"    {state}: {{{show}{freeze}{entry}{each}rules: [{own}]}}\n"
    until = draw(st.sampled_from(["", "", ", until: {outcome: good, count: 1}"]))
    text += f"schedule: {{one: {{trials: {draw(st.sampled_from([1, 2]))}{until}}}, two: {{trials: 2}}}}\n"
    text += f'success: "{draw(st.sampled_from(SUCCESS))}"\n'
    text += draw(st.sampled_from(["", "", "estimand: {block: two}\n"]))
    return text


class Unmerged(Relevance):
    """Makes all draws when a trial begins, and keeps all variables."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.late = {block: {} for block in self.late}
        self.unread = {block: frozenset() for block in self.unread}
        self.stuck, self.placed_on_entry, self.trace = set(), False, True
        self.timed_places, self.timed = {}, []


#: Percepts, trial by trial, and whether each trial is a success.
Course = tuple[tuple[object, ...], ...]


def enumerated(world: World, actions: list[list[int]]) -> dict[Course, float]:
    """Return the probability of each course, from a life with every outcome of every
    draw.
    """
    script, found = Script(), defaultdict[Course, float](float)
    prior = Hypothesis(
        world.program,
        world.view,
        script,
        Unmerged(world.program, world.lesion, world.view),
    )

    def lead() -> Course:
        life, course = prior.twin(), []
        for own in actions:
            observation = life.begin_trial()
            if observation is None:
                break
            met: list[object] = [world.percept(observation, 0.0, False, life.waiting)]
            for action in own:
                observation, reward, status = life.step(
                    STAY if life.waiting else action
                )
                met.append(
                    world.percept(observation, reward, status != RUNNING, life.waiting)
                )
                if status != RUNNING:
                    break
            course.append((*met, life.is_success()))
        return tuple(course)

    for number, (chance, course) in enumerate(script.all_of(lead)):
        if number == LIVES:
            return {}
        found[course] += chance
    return dict(found)


def believed(world: World, actions: list[list[int]]) -> dict[Course, float]:
    """Return the probability of each course, from beliefs that are stepped, split and
    merged as in the audit.
    """
    found = defaultdict[Course, float](float)

    def trial(rest: Rest, number: int, before: Course, weight: float) -> None:
        begun = {} if number == len(actions) else world.begin(rest)
        if not begun or None in begun:
            found[before] += weight * (
                1.0 if not begun else sum(begun.pop(None).values()) or 1.0
            )
        for percept, belief in begun.items():
            for met, ended, share in steps(belief, actions[number], (percept,)):
                by_success = defaultdict[float, Belief](dict)
                for grain, one in ended.items():
                    by_success[grain[0].success][grain] = one
                for success, part in by_success.items():
                    split = share * sum(part.values()) / sum(ended.values())
                    trial(
                        world.rest(part),
                        number + 1,
                        (*before, (*met, success)),
                        weight * split,
                    )

    def steps(
        belief: Belief, left: list[int], met: tuple[object, ...], taken: int = 0
    ) -> Iterator[tuple[tuple[object, ...], Belief, float]]:
        waiting = next(iter(belief))[0].waiting
        for percept, part in world.step(
            belief, STAY if waiting else left[0], taken
        ).items():
            if percept < 0:
                yield (*met, -1 - percept), part, sum(part.values())
            else:
                yield from steps(part, left[1:], (*met, percept), taken + 1)

    trial(world.prior(), 0, (), 1.0)
    return dict(found)


def disagreement(text: str, seed: int) -> str:
    """Return the lesion and the actions under which the beliefs differ from an
    enumeration of all lives; empty if they agree.
    """
    specification, _ = examine_text(text)
    if specification is None:
        return ""
    chance, paradigm = random.Random(seed), ArenaParadigm(specification)
    for lesion in ("intact", chance.choice(LESIONS)):
        world = World(paradigm, Lesion.parse(lesion))
        for _ in range(SEQUENCES):
            actions = [
                chance.choices((0, 1, STAY), (5, 1, 2), k=LIMIT) for _ in range(TRIALS)
            ]
            wanted = enumerated(world, actions)
            if wanted and believed(world, actions) != pytest.approx(wanted):
                return f"{lesion}, {actions}"
    return ""


def small(
    rules: str,
    rest: str = "success: last == good",
    draw: str = "b: {of: {b: [0, 1]}}",
    more: str = "",
) -> str:
    """Return a protocol of one state, with little in it."""
    return f"""{HEAD}draw: {{{draw}}}
vars: {{v: 0, u: {{init: 0, per: session}}}}
start: {{at: box, face: E}}
trial: {{limit: {LIMIT}, start: one, states: {{one: {{rules: [{rules}]}}}}{more}}}
schedule: {{one: {{trials: 2}}, two: {{trials: 2}}}}
{rest}
"""


END = "{enter: right, end: good}"
BAD = "{enter: left, end: bad}"
BY_LUCK = "{enter: right, p: 0.5, end: good}, {enter: right, end: bad}"
#: Faults that the key once had, or might have: a piece of the module, its replacement,
#: and the resulting error.
FAULTS = {
    "what a kept draw leaves to later trials": (
        "[name for name in self.kept if name not in changing]",
        "[]",
        small(
            "{act: FORWARD, place: box, end: good}",
            draw="a: {per: subject, keep_if: last == good, of: {a: [left, right]}}",
        ).replace("at: box, face: E", "at: a, face: E, carry: true"),
    ),
    "what is written for a later trial": (
        "named & self.written if",
        "set() & self.written if",
        small(
            "{act: FORWARD, if: u == 1, reward: 1}, {enter: right, set: {u: b}, end: good}"
        ),
    ),
    "what is compared when the trial has ended": (
        'not (is_end and name == "last")',
        "True",
        small(END, "success: last == good and b == 1"),
    ),
    "what has been counted when the trial has ended": (
        "case ex.Recent():\n                return False",
        "case ex.Recent():\n                return True",
        small(END, 'success: "recent(good, 1) == 1 and b == 1"'),
    ),
    "a product of nothing and what has no value": (
        "(_is_zero(left, block) and _is_defined(right))",
        "_is_zero(left, block)",
        small(f"{{act: FORWARD, if: (block == two) * (1 / b) == 0, reward: 1}}, {END}"),
    ),
    "the member that a rule will be about": (
        "for member in members if has_members else (life.it,):",
        "for member in (life.it,):",
        small(
            f'{{enter: arm, if: "it == member(arm, b + 1)", reward: 1, end: bad}}, {END}'
        ),
    ),
    "what a watching rule writes": (
        "and not {*written_by(effects)} & live",
        "",
        small(END, "success: v == 1", more=", watch: [{act: FORWARD, set: {v: b}}]"),
    ),
    "how the trial before ended": (
        'self.last = ex.BuiltIn("last") in begun or ex.BuiltIn("last") in during',
        "self.last = False",
        small(f"{{act: FORWARD, if: last == good, reward: 1}}, {BY_LUCK}"),
    ),
    "which trial it is": (
        "return [name for name in names if name in DATES]",
        "return []",
        small(f"{{act: FORWARD, if: trial == 2 and b == 1, reward: 1}}, {END}"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, text = FAULTS[fault]
    assert examine_text(text)[0] is not None
    assert disagreement(text, 0) == ""
    source = Path(relevance.__file__).read_text(encoding="utf-8")
    assert old in source
    module = ModuleType("planted")
    monkeypatch.setitem(sys.modules, "planted", module)
    exec(source.replace(old, new), module.__dict__)
    monkeypatch.setattr(beliefs, "Relevance", module.Relevance)
    assert disagreement(text, 0) != ""


@settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
)
@given(protocols(), st.integers(0, 1000))
def test_beliefs_agree_with_all_lives(text: str, seed: int) -> None:
    assert disagreement(text, seed) == "", text


def pair(one: str, other: str, **more: str) -> str:
    """Return a protocol with the states ``one`` and ``two``."""
    states = f"{{one: {one}, two: {other}}}"
    return small("X", **more).replace("{one: {rules: [X]}}", states)


def accepted(text: str) -> Specification:
    specification, found = examine_text(text)
    assert specification is not None, found
    return specification


def known(text: str, lesion: str = "intact") -> Relevance:
    program = ArenaParadigm(accepted(text)).program
    return Relevance(program, Lesion.parse(lesion))


BOTH = f"{END}, {BAD}"
SIDES = "b: {of: {b: [0, 1]}}, a: {of: {a: [left, right]}}"
PICKED = "b: {of: {b: [0, 1]}}, a: {pick: 1, of: {a: [left, right]}}"
B_AND_N = "b: {of: {b: [0, 1], n: [1, 2]}}"
NONE: dict[str, object] = {
    "trace": False, "clock": False, "way": False, "last": False, "past": False, "subject": False, "dates": [],
    "carry": False, "behaviour": False, "variables": [], "kept": [], "held": [], "placed_on_entry": False,
    "stuck": set(), "timed_places": {}, "chance": {"one": (0, False)}, "neutral": None,
}  # fmt: skip
PLACED = f"{{place: box, rules: [{BOTH}]}}"
LED = "{rules: [{enter: arm, go: two}, {after: 3, end: good}]}"
OVER = "{freeze: true, rules: [{after: 1, end: bad}]}"
QUIET: dict[str, object] = {"one": (0, False), "two": (0, False)}
#: What a guard reads of a trial.
GUARDED: dict[str, dict[str, object]] = {
    "steps > 2": {"clock": True, "way": True},
    "x > 3": {"way": True},
    "where(arm) == left": {},
    "time(left) > 1": {"timed_places": {("left",): 0}},
    "time(arm) > time(left)": {"timed_places": {("arm",): 0, ("left",): 1}},
    "time(a) > 1": {"timed_places": {("left",): 0, ("right",): 1}, "variables": ["a"]},
    "time(left) + moves > 1": {"trace": True, "way": True},
    "entries(left) > 1": {"trace": True, "way": True},
    "recent(good, 2) == 1": {"past": True, "behaviour": True},
    "last == good": {"last": True, "behaviour": True},
    "trial == 2": {"dates": ["trial"]},
    "session == 1 and block == one": {"dates": ["block", "session"]},
    "subject == 1": {"subject": True},
    "u == 1": {"variables": ["u"], "held": ["u"]},
    "v == 1": {"variables": ["v"]},
    "v * (block == two) == 1": {"dates": ["block"], "variables": ["v"]},
    "v * (block == two) * (block == one) == 1": {"dates": ["block"]},
}  # fmt: skip
#: Protocol, lesion, and what is known of it besides ``NONE``.
KNOWN: dict[str, tuple[str, str, dict[str, object]]] = {
    "nothing is read": (small(BOTH), "intact", {}),
    "a trial continues where the last one ended": (
        small(BOTH).replace("face: E", "face: E, carry: true"), "intact", {"carry": True, "behaviour": True},
    ),
    "a block may end early": (
        small(BOTH).replace("two: {trials: 2}", "two: {trials: 2, until: {outcome: good, count: 1}}"),
        "intact", {"behaviour": True},
    ),
    "a draw is kept by the last outcome": (
        small(BOTH, draw="b: {keep_if: last == good, of: {b: [0, 1]}}"),
        "intact", {"last": True, "behaviour": True, "kept": ["b"]},
    ),
    "a draw is kept by the place": (
        small(BOTH, draw="b: {keep_if: x > 3, of: {b: [0, 1]}}"),
        "intact", {"carry": True, "behaviour": True, "kept": ["b"]},
    ),
    "a draw is kept by a variable": (
        small(BOTH, draw="b: {keep_if: v == 1, of: {b: [0, 1]}}"),
        "intact", {"variables": ["v"], "kept": ["v", "b"]},
    ),
    "a lasting variable is set": (
        small(f"{{act: FORWARD, if: u == 1, reward: 1}}, {{act: STAY, set: {{u: b}}}}, {BOTH}"),
        "intact", {"variables": ["u", "b"], "kept": ["u"], "behaviour": True},
    ),
    "a lasting variable is set and never read": (
        small(f"{{act: FORWARD, if: v == 1, reward: 1}}, {{act: STAY, set: {{v: b, u: 1}}}}, {BOTH}"),
        "intact", {"variables": ["v", "b"]},
    ),
    "the first state places the subject": (pair(PLACED, "{rules: []}"), "intact", {"placed_on_entry": True, "chance": QUIET}),
    "its first effect reads where it was": (
        pair(PLACED.replace("rules", "set: {v: x}, rules"), "{rules: []}", rest="success: v > 1"),
        "intact", {"variables": ["v"], "chance": QUIET, "way": True},
    ),
    "one of two first states places the subject": (
        pair(PLACED, f"{{rules: [{BOTH}]}}").replace("start: one", "start: [{if: block == one, go: two}, one]"),
        "intact", {"dates": ["block"], "chance": QUIET},
    ),
    **{
        f"a trial begins by {guard}": (
            pair(f"{{rules: [{BOTH}]}}", f"{{rules: [{BOTH}]}}", draw="").replace(
                "start: one", f'start: [{{if: "{guard}", go: two}}, one]'
            ),
            "intact", {"behaviour": True, "chance": QUIET, **more},
        )
        for guard, more in {
            "state == two": {"carry": True},
            "last == good": {"last": True},
            "recent(good, 2) == 2": {"past": True},
        }.items()
    },
    "a blind subject waits for the end": (pair(LED, OVER, draw=""), "blind", {"stuck": {"two"}, "chance": QUIET}),
    "a seeing subject waits for the end": (pair(LED, OVER, draw=""), "intact", {"chance": QUIET}),
    "it may move while it waits": (pair(LED, OVER.replace("freeze: true, ", ""), draw=""), "blind", {"chance": QUIET}),
    "chance decides when the end comes": (
        pair(LED, OVER.replace("end", "p: 0.5, end"), draw=""), "blind", {"chance": {"one": (0, False), "two": (0, True)}},
    ),
    "a condition decides when the end comes": (
        pair(LED, OVER.replace("end", "if: v == 1, end"), draw=""), "blind", {"variables": ["v"], "chance": QUIET},
    ),
    "it waits for another state": (pair(LED, OVER.replace("end: bad", "go: one"), draw=""), "blind", {"chance": QUIET}),
    "where it waits is asked": (
        pair(LED, OVER, draw="", rest="success: last == good and x > 3"), "blind", {"chance": QUIET, "way": True},
    ),
    "its way is watched": (
        pair(LED, OVER, draw="", more=", watch: [{enter: left, set: {v: 1}}]"), "blind", {"chance": QUIET},
    ),
    "the trial may go on elsewhere": (
        pair(LED, OVER, draw="", more=", finish: [{if: v == 1, go: two}]"), "blind", {"variables": ["v"], "chance": QUIET},
    ),
    "an entry may end in two ways": (
        small("{enter: right, p: 0.5, end: good}, " + BAD), "intact", {"chance": {"one": (1, False)}},
    ),
    "a wait may end in two ways": (small("{after: 2, p: 0.5, end: good}, " + BAD), "intact", {"chance": {"one": (0, True)}}),
    "it is placed in one of two arms": (small("{act: STAY, place: arm}, " + BOTH), "intact", {"chance": {"one": (1, False)}}),
    "it is placed in one box": (small("{act: STAY, place: box}, " + BOTH), "intact", {}),
    "it is placed at a picked member": (
        small("{act: STAY, place: a}, " + BOTH, draw=PICKED), "intact", {"variables": ["a"], "chance": {"one": (1, False)}},
    ),
    "it is placed at a drawn zone": (
        small("{act: STAY, place: a}, " + BOTH, draw=SIDES), "intact", {"variables": ["a"]},
    ),
    "it is turned at random": (
        small("{act: STAY, place: box}, " + BOTH).replace("face: E", "face: random"), "intact", {"chance": {"one": (1, False)}},
    ),
    "it is placed somewhere at each step": (small(BOTH, more=", each: {place: arm}"), "intact", {"chance": {"one": (0, True)}}),
    **{
        guard: (small(f'{{act: FORWARD, if: "{guard}", reward: 1}}, {BOTH}', draw=SIDES), "intact", more)
        for guard, more in GUARDED.items()
    },
}  # fmt: skip


def test_the_row_of_a_draw_that_nothing_reads_is_unread() -> None:
    shuffled = small(BOTH, draw="b: {order: shuffle, of: {b: [0, 1]}}")
    three = "b: {order: shuffle, of: {b: [0, 1, 2]}}"
    for draw, unread in [
        ("b: {of: {b: [0, 1]}}", {"b"}),
        ("b: {per: session, of: {b: [0, 1]}}", set()),
        ("b: {order: cycle, of: {b: [0, 1]}}", set()),
        # Two trials in a block complete a round of two rows, but none of three.
        ("b: {order: shuffle, of: {b: [0, 1]}}", {"b"}),
        (three, set()),
        (three.replace("shuffle", "shuffle, pick: 2"), set()),
        ("b: {keep_if: last == bad, of: {b: [0, 1]}}", set()),
    ]:
        assert known(small(BOTH, draw=draw)).unread == dict.fromkeys(
            ("one", "two"), unread
        )
    # What ends a block is read in that block.
    asked = small(BOTH).replace(
        "two: {trials: 2}", "two: {trials: 2, until: {if: b == 1, count: 1}}"
    )
    assert known(asked).unread == {"one": {"b"}, "two": set()}
    early = shuffled.replace(
        "one: {trials: 2}", "one: {trials: 2, until: {outcome: good, count: 1}}"
    )
    assert known(early).unread == {"one": set(), "two": set()}


@pytest.mark.parametrize("case", KNOWN)
def test_what_matters_of_a_protocol(case: str) -> None:
    text, lesion, more = KNOWN[case]
    found = known(text, lesion)
    assert {name: getattr(found, name) for name in NONE} == {**NONE, **more}


READ_LATE = "{rules: [{enter: right, if: b == 1, end: good}, {enter: left, end: bad}]}"
MOVED_ON = "{rules: [{act: FORWARD, go: two}]}"
AT_GATE = f"{{rules: [{BOTH}]}}"
GATES = "b: {of: {b: [0, 1]}}, d: {of: {d: [g, h]}}"
LATE = {
    "read there": (pair(MOVED_ON, READ_LATE), ["b"]),
    "of a session": (pair(MOVED_ON, READ_LATE, draw="b: {per: session, of: {b: [0, 1]}}"), []),
    "shuffled": (pair(MOVED_ON, READ_LATE, draw="b: {order: shuffle, of: {b: [0, 1]}}"), []),
    "kept": (pair(MOVED_ON, READ_LATE, draw="b: {keep_if: last == bad, of: {b: [0, 1]}}"), []),
    "read at the end": (pair(MOVED_ON, READ_LATE, rest="success: last == good and b == 1"), []),
    "watched": (pair(MOVED_ON, READ_LATE, more=", watch: [{enter: arm, if: b == 1, reward: 1}]"), []),
    "read by finish": (pair(MOVED_ON, READ_LATE, more=", finish: [{if: b == 2, end: bad}]"), []),
    "read at each step": (pair(MOVED_ON, READ_LATE, more=", each: {set: {v: b}}"), []),
    "said before": (pair(MOVED_ON.replace("rules", "say: '{b}', rules"), READ_LATE), []),
    "asked before": (pair(MOVED_ON.replace("FORWARD,", "FORWARD, if: b == 0,"), READ_LATE), []),
    "paid before": (pair(MOVED_ON.replace("FORWARD,", "FORWARD, reward: b,"), READ_LATE), []),
    "a way back": (pair(MOVED_ON, READ_LATE.replace("left, end: bad", "left, go: one")), []),
    "entered before": (pair(MOVED_ON.replace("act: FORWARD", "enter: a"), READ_LATE, draw=SIDES), ["b"]),
    "placed there": (pair(MOVED_ON, f"{{place: a, rules: [{BOTH}]}}", draw=SIDES), ["b", "a"]),
    "closed there": (pair(MOVED_ON, f"{{close: [d], rules: [{BOTH}]}}", draw=GATES), ["b", "d"]),
    "closed before": (pair(MOVED_ON.replace("rules", "close: [d], rules"), AT_GATE, draw=GATES), ["b"]),
    "the start": (pair(MOVED_ON, AT_GATE, draw=SIDES).replace("at: box", "at: a"), ["b"]),
    "asked at the start": (pair(MOVED_ON, READ_LATE).replace("start: one", "start: [{if: b == 1, go: two}, one]"), []),
}  # fmt: skip


@pytest.mark.parametrize("case", LATE)
def test_what_nothing_reads_before_a_state_is_drawn_there(case: str) -> None:
    text, draws = LATE[case]
    if "[g, h]" in text:
        doors = '"lGSHr", legend: {G: {door: g}, H: {door: h}, '
        text = text.replace('"l.S.r", legend: {', doors)
    late = {"two": tuple(draws)} if draws else {}
    assert known(text).late == {"one": late, "two": late}


CUE, WALK = "{freeze: true, rules: [{after: 2, go: two}]}", "{rules: [{enter: arm, go: two}]}"  # fmt: skip
FREE = f"{{rules: [{BOTH}]}}"
NOTED = "success: last == good and v == 1"
BY_FINISH = ", finish: [{if: v == 2, go: two}]"
COUNTING = "{rules: [{enter: arm, set: {v: v + 1}}]}"
ALIKE = {"acts": True, "is placed": True, "is written": False, "pays alike": True, "goes round": False}  # fmt: skip
#: Ways into the state ``two``: protocol, lesion, whether a note outlasts a loss of
#: memory there, and what differs from ``ALIKE``.
WAYS: dict[str, tuple[str, str, bool, dict[str, bool]]] = {
    "a wait": (pair(CUE, FREE), "intact", False, {"acts": False}),
    "a way": (pair(WALK, FREE), "intact", True, {"is placed": False}),
    "a way to a place": (pair(WALK, PLACED), "intact", False, {}),
    "a way back": (
        pair(CUE, "{rules: [{enter: left, go: one}, {enter: right, end: good}]}"), "intact", False,
        {"acts": False, "is placed": False},
    ),
    "the effect of being somewhere": (
        pair(WALK, PLACED.replace("place", "set: {v: x}, place"), rest=NOTED), "intact", True, {"is placed": False},
    ),
    "an effect that nothing reads": (pair(WALK, PLACED.replace("place", "set: {v: x}, place")), "intact", False, {}),
    "moved while it waits": (
        pair(CUE.replace("rules", "each: {place: arm}, rules"), FREE), "intact", False, {"acts": False, "is placed": False},
    ),
    "a reward": (pair(WALK.replace("go", "reward: 1, go"), PLACED), "intact", False, {}),
    "a drawn reward": (pair(WALK.replace("go", "reward: b, go"), PLACED), "intact", True, {"pays alike": False}),
    "a drawn reward that is not felt": (pair(WALK.replace("go", "reward: b, go"), PLACED), "anhedonia", False, {}),
    "a drawn reward after a wait": (pair(CUE.replace("go", "reward: b, go"), PLACED), "intact", False, {"acts": False}),
    "two rewards": (
        pair("{rules: [{enter: left, reward: 1, go: two}, {enter: right, reward: 2, go: two}]}", PLACED),
        "intact", True, {"pays alike": False},
    ),
    "a reward at each step": (
        pair(WALK.replace("rules", "each: {reward: 1}, rules"), PLACED), "intact", True, {"pays alike": False},
    ),
    "a reward at every step": (pair(WALK, PLACED, more=", each: {reward: 1}"), "intact", True, {"pays alike": False}),
    "a reward on the way": (
        pair(WALK, PLACED, more=", watch: [{enter: left, reward: 1}]"), "intact", True, {"pays alike": False},
    ),
    "a count that ends the way": (pair(COUNTING, PLACED, more=BY_FINISH), "intact", True, {"is written": True}),
    "a count that is paid": (
        pair(COUNTING.replace("set", "reward: 1, set"), PLACED, more=BY_FINISH), "intact", True,
        {"is written": True, "pays alike": False},
    ),
    "a note": (pair(WALK.replace("go", "set: {v: 1}, go"), PLACED, rest=NOTED), "intact", True, {"is written": True}),
    "a note that nothing reads": (pair(WALK.replace("go", "set: {v: 1}, go"), PLACED), "intact", False, {}),
    "what is set while it waits": (
        pair(CUE.replace("go", "set: {v: b}, go"), PLACED, rest=NOTED), "intact", False, {"acts": False},
    ),
    "what is set before it waits": (
        pair(CUE.replace("rules", "set: {v: b}, rules"), PLACED, rest=NOTED), "intact", False, {"acts": False},
    ),
    "what is set at each step of a wait": (
        pair(CUE.replace("rules", "each: {set: {v: v + 1}}, rules"), PLACED, rest=NOTED), "intact", False,
        {"acts": False, "is written": True},
    ),
    "the time": (pair(WALK, PLACED, rest="success: last == good and steps > 9"), "intact", True, {}),
    "the time in an arm": (pair(WALK, PLACED, rest="success: last == good and time(left) > 1"), "intact", True, {}),
    "the arm visited last": (pair(WALK, PLACED, rest="success: last == good and where(arm) == left"), "intact", True, {}),
    "a success without the state": (
        pair("{rules: [{enter: left, go: two}, {enter: right, end: good}]}", PLACED), "intact", True, {"goes round": True},
    ),
    "a failure without the state": (
        pair("{rules: [{enter: left, go: two}, {enter: right, end: bad}]}", PLACED), "intact", False, {},
    ),
    "a success at the limit": (pair(WALK, PLACED, rest="success: last != bad"), "intact", True, {"goes round": True}),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_of_the_way_into_a_state_outlasts_a_loss_of_memory(way: str) -> None:
    text, lesion, outlasts, more = WAYS[way]
    found, states = known(text, lesion), frozenset({"two"})
    flow = found._flow["one"]
    assert {
        "acts": flow.acts_before(states),
        "is placed": flow.is_placed("two"),
        "is written": flow.is_written("two"),
        "pays alike": flow.pays_alike("two"),
        "goes round": flow.goes_round(states),
    } == {**ALIKE, **more}
    assert found.outlasts(states) is outlasts


@pytest.mark.parametrize(
    ("success", "outcome", "holds"),
    [
        ("last == good", "good", True),
        ("last == good", "timeout", False),
        ("b == 1", "good", None),
        ("last == good and b == 1", "good", None),
        ("last == good and b == 1", "timeout", False),
        ("b == 1 and last == good", "timeout", False),
        ("last == good and (b == 1 or last == good)", "good", True),
        ("last == good or b == 1", "good", True),
        ("b == 1 or last == good", "good", True),
        ("last == good or b == 1", "timeout", None),
        ("last == good or last == bad", "timeout", False),
        ("last != good", "good", None),
    ],
)
def test_an_outcome_may_decide_a_condition(
    success: str, outcome: str, holds: bool | None
) -> None:
    tree = accepted(small(BOTH, f'success: "{success}"')).success
    assert relevance.holds_of(tree, outcome) is holds


def measured(text: str) -> ex.Expression:
    measures = f'success: last == good\nmeasures: {{m: "{text}"}}'
    return accepted(small(BOTH, measures, draw=B_AND_N)).measures["m"]


#: What an expression reads in block ``one``, whether it has always a value, and whether
#: it depends on where the subject is.
READ = {
    "v * (block == two)": ([], True, False),
    "(block == two) * v": ([], True, False),
    "v * (block != one)": ([], True, False),
    "v * (block == one)": (["v"], True, False),
    "v * (block != two)": (["v"], True, False),
    "(1 / b) * (block == two)": (["b"], False, False),
    "(block == two) * (n % b)": (["n", "b"], False, False),
    "block == two and b == 1": ([], True, False),
    "b == 1 and block == two": ([], True, False),
    "b == 1 and block == one": (["b"], True, False),
    "b == 1 or block == two": (["b"], True, False),
    "not (b == 1)": (["b"], True, False),
    "min(b, n)": (["b", "n"], False, False),
    "column(left) + b": (["b"], False, False),
    "recent(good, 2) + n": (["n"], True, False),
    "v * n": (["v", "n"], False, False),
    "v * (n == 1)": (["v", "n"], True, False),
    "x + 1": ([], True, True),
    "moves": ([], True, True),
    "state == one": ([], True, True),
    "where(arm) == left": ([], False, True),
    "last == good": ([], True, False),
}


@pytest.mark.parametrize("text", READ)
def test_what_an_expression_reads_in_a_block(text: str) -> None:
    tree = measured(text)
    read = list(relevance._read_in(tree, "one", True))
    defined, where = relevance._is_defined(tree), relevance._reads_where(tree)
    assert (read, defined, where) == READ[text]


def test_a_sum_has_a_value_unless_both_sides_are_set_again() -> None:
    v, u, one = ex.Variable("v"), ex.Variable("u"), ex.Number(1)
    for operator in "+-":
        both = ex.Binary(operator, v, u)
        assert relevance._is_defined(both, {"v"})
        assert not relevance._is_defined(both, {"v", "u"})
        assert relevance._is_defined(ex.Binary(operator, v, one), {"v"})


@pytest.mark.parametrize(
    ("text", "largest"),
    [
        ("b + 1", ["b + 1"]),
        ("b + v", ["b"]),
        ("2 + v", []),
        ("b * n + v", ["b * n"]),
        ("b == 1 and v == 1 and n == 1", ["b == 1 and n == 1"]),
        ("b == 1 or v + n == 1", ["b == 1", "n"]),
        ("v == 1 and u == 1", ["u == 1"]),
        ("trial + v", ["trial"]),
        ("trial + steps", ["trial"]),
        ("recent(good, 2) + n", ["n"]),
        ("time(left) + n", ["n"]),
        ("not (b == 1)", ["not (b == 1)"]),
    ],
)
def test_the_largest_parts_that_stay_fixed_are_kept(
    text: str, largest: list[str]
) -> None:
    found = relevance._largest(measured(text), {"v"}, has_members=False, is_end=False)
    assert found == list(map(measured, largest))


def test_it_and_last_stay_fixed_until_they_are_given_another_value() -> None:
    it, last = ex.BuiltIn("it"), ex.BuiltIn("last")
    largest = relevance._largest
    assert largest(it, set(), True, is_end=False) == [it]
    assert largest(it, set(), False, is_end=False) == []
    assert largest(last, set(), False, is_end=False) == [last]
    assert largest(last, set(), False, is_end=True) == []
    column = ex.Call("column", ex.Variable("a"))
    assert largest(column, set(), False, is_end=False) == [column]
    assert largest(column, {"a"}, False, is_end=False) == []
