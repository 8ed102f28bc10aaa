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
