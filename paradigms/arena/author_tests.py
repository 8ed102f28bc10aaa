"""Runs the tests of a protocol (``tests:``): plays trials, and compares them with the
author's expectations.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from cheesebench.diagnostics import Position
from cheesebench.errors import CheeseBenchError
from cheesebench.interfaces import (
    ACTION_LETTERS,
    ACTIONS,
    HEADINGS,
    RUNNING,
    STAY,
    Value,
    View,
)
from cheesebench.paradigms.arena.compiled import CompiledArena
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import names_in
from cheesebench.paradigms.arena.tables import (
    Destination,
    Geometry,
    Tables,
    arrives,
    destination,
    shortest_path,
)
from cheesebench.protocol import Arena
from cheesebench.protocol.documents import Test
from cheesebench.protocol.names import TIMEOUT

#: Absolute and relative tolerance between expected and actual numbers.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class TestReport:
    """The result of one test of a protocol.

    ``index`` counts from 0 in the order of the file. ``position`` is the place of the
    test (in the parent's file if the test is inherited). ``actions`` has one letter
    (``FLRS``) for each step of the tested trial. ``differences`` are sentences such as
    ``outcome: expected correct, was timeout``. A test that passed has none. ``ended``
    says where the subject was after the last step, and ``trace`` names the command that
    shows the steps. Both are empty if the test passed, or no step was played.
    ``heir`` is the name of the edition that plays an inherited test, or empty.
    """

    # This stops pytest from collecting the class as a test.
    __test__: ClassVar[bool] = False

    index: int
    position: Position
    actions: str
    differences: tuple[str, ...]
    ended: str = ""
    trace: str = ""
    heir: str = ""

    @property
    def passed(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        heir = f" of {self.heir}" if self.heir else ""
        number = f"{self.position}: test {self.index + 1}{heir}"
        if self.passed:
            return f"{number} passed"
        parts = [f"{'; '.join(self.differences)}", self.ended, self.trace]
        return f"{number} failed: {'. '.join(filter(None, parts))}"


def run_tests(paradigm: CompiledArena, view: View) -> list[TestReport]:
    """Play all tests of a protocol. The results do not depend on the view.

    The subject waits with STAY through the trials before the tested one. Then it
    executes the ``actions``, and visits the names in ``visit`` in order. A visit is one
    *event*: entering a zone (or the nearest member of a group or set), or pressing a
    solid. So if a zone is named twice, the subject leaves it and enters it again. If
    the subject already stands in a zone, it leaves this zone first. A variable is read
    when its turn comes, and again while the subject walks to the place that it holds.
    The path is the shortest with the present doors, and is computed again when they
    change. While no way is open, the subject waits with STAY. After the last visit, it
    waits until the trial ends. If the trial ends earlier, the remaining actions and
    visits are dropped. But a trial that ends by its limit while no way is open fails
    the test, unless the test expects an ``outcome``. Rewards of all steps of the trial
    count.
    """
    specification = paradigm.specification
    pairs = zip(specification.document.tests, specification.test_positions, strict=True)
    return [
        _run(paradigm, view, index, test, position)
        for index, (test, position) in enumerate(pairs)
    ]


def _run(
    paradigm: CompiledArena, view: View, index: int, test: Test, position: Position
) -> TestReport:
    life = ArenaSubject(paradigm.program, view, test.seed, test.subject)
    played: list[int] = []
    try:
        differences = _play(life, paradigm.program.geometry, test, played)
    except CheeseBenchError as error:
        # An error that shows only at run time, such as an invalid place, is a failure
        # of the test.
        differences = [str(error)]
    letters = "".join(ACTION_LETTERS[action] for action in played)
    specification = paradigm.specification
    heir = "" if position.file == str(specification.path) else specification.name
    report = TestReport(index, position, letters, tuple(differences), heir=heir)
    if report.passed or not played:
        return report
    command = [
        *("cheesebench", "trace", specification.path),
        *("--seed", str(test.seed), "--subject", str(test.subject)),
        *("--trial", str(test.trial), "--actions", letters),
    ]
    ended = _where(life, paradigm.program.geometry)
    return replace(report, ended=ended, trace=f"See '{shlex.join(command)}'")


def _where(life: ArenaSubject, geometry: Geometry) -> str:
    cell = geometry.cell(life.pose)
    zones = [name for name, own in geometry.arena.zones.items() if cell in own]
    inside = f" in {', '.join(zones)}" if zones else ""
    facing = f"facing {HEADINGS[life.heading // 45]}"
    return f"The subject ended{inside} at ({life.x}, {life.y}), {facing}, in the state '{life.state}'"


def _play(
    life: ArenaSubject, geometry: Geometry, test: Test, played: list[int]
) -> list[str]:
    """Play the tested trial, and all trials before it. Return the differences, and
    append the actions of the tested trial to ``played``.
    """
    for before in range(test.trial):
        if life.begin_trial() is None:
            return [
                f"trial: expected trial {test.trial}, but the schedule ends after trial {before}"
            ]
        if before < test.trial - 1:
            _wait_out(life)
    reward, status = 0.0, RUNNING
    visits, actions = test.visit or (), _read_actions(test.actions or "")
    stuck = set[str]()
    walks = (_go(life, geometry, name, stuck) for name in visits)
    plan = itertools.chain(actions, *walks)
    while status == RUNNING:
        action = next(plan, STAY)
        _, gained, status = life.step(action)
        played.append(action)
        reward += gained
    return [*_unreached(life, test, stuck), *_differences(life, test, reward)]


def _unreached(life: ArenaSubject, test: Test, stuck: Iterable[str]) -> Iterator[str]:
    if test.expect.outcome is None and life.result().outcome == TIMEOUT:
        for name in stuck:
            yield f"visit: no way to '{name}' was open when the trial ended"


def _wait_out(life: ArenaSubject) -> None:
    while life.step(STAY)[2] == RUNNING:
        pass


def _read_actions(actions: Sequence[str] | str) -> list[int]:
    """Return the numbers of actions given as letters, full names, or one string of
    letters (spaces are ignored).
    """
    words = actions.replace(" ", "") if isinstance(actions, str) else actions
    return [
        ACTIONS.index(word) if word in ACTIONS else ACTION_LETTERS.index(word)
        for word in words
    ]


# -- visits


def _go(
    life: ArenaSubject, geometry: Geometry, name: str, stuck: set[str]
) -> Iterator[int]:
    """Yield the actions of a visit. While no way to the place is open, ``stuck``
    contains its name.
    """
    path: Iterator[int] = iter(())
    planned: tuple[Destination, Tables, int] | None = None
    while True:
        goal, tables, pose = _goal(life, geometry.arena, name), life.tables, life.pose
        # The last step may have closed a door, changed the variable, or placed the
        # subject elsewhere.
        if (
            planned is None
            or goal != planned[0]
            or tables is not planned[1]
            or pose != planned[2]
        ):
            way = shortest_path(geometry, tables, pose, goal)
            (stuck.add if way is None else stuck.discard)(name)
            path = iter(way or ())
        index = pose + next(path, STAY)
        planned = (goal, tables, tables.moves[index])
        yield index & 3
        if arrives(geometry, tables, index, goal):
            return


def _goal(life: ArenaSubject, arena: Arena, name: str) -> Destination:
    if name not in life.values:
        return destination(arena, [name])
    held = names_in(life.values[name])
    known = (*arena.zones, *arena.solids, *arena.groups)
    if odd := next((one for one in held if one not in known), None):
        raise CheeseBenchError(f"visit: '{name}' holds '{odd}', which is not a place")
    return destination(arena, held)


# -- comparison of expected and actual results


def _differences(life: ArenaSubject, test: Test, reward: float) -> Iterator[str]:
    expect, result = test.expect, life.result()
    if expect.outcome is not None:
        yield from _compare("outcome", expect.outcome, result.outcome)
    if expect.success is not None:
        yield from _compare("success", expect.success, result.success)
    if expect.reward is not None:
        yield from _compare("reward", expect.reward, reward)
    if expect.steps is not None:
        yield from _compare("steps", expect.steps, life.steps)
    variables = {**result.variables, **result.counters}
    yield from _compare_all("counter", expect.counters, result.counters)
    yield from _compare_all("measure", expect.measures, result.measures)
    yield from _compare_all("variable", expect.variables, variables)


def _compare_all(
    kind: str, expected: Mapping[str, object], actual: Mapping[str, Value]
) -> Iterator[str]:
    for name, value in expected.items():
        yield from _compare(f"{kind} {name}", value, actual.get(name))


def _compare(what: str, expected: object, actual: Value) -> Iterable[str]:
    if _same(expected, actual):
        return ()
    return (f"{what}: expected {_shown(expected)}, was {_shown(actual)}",)


def _same(expected: object, actual: Value) -> bool:
    if isinstance(expected, list):  # Sets arrive as lists, so the order does not count.
        return isinstance(actual, list) and {str(value) for value in expected} == set(
            actual
        )
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return math.isclose(expected, actual, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return actual == (None if expected == "none" else expected)


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value)
