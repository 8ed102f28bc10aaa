"""A protocol's own tests: played as written, with every difference reported in a
sentence.
"""

from __future__ import annotations

import pytest

from cheesebench.paradigms.arena.author_tests import TestReport, run_tests
from cheesebench.paradigms.arena.family import ArenaFamily
from cheesebench.plugin_manager import installed_plugins
from tests.arenas import examine_text

#: Two arms behind doors, a lever, a delay in the middle; a variable names the good arm.
MAZE = """
version: 1
paradigm: small_maze
arena:
  map: |
    #######
    #Ll.rR#
    ###.###
      #S!
      ###
  legend: {L: left, R: right, l: {door: gate_l}, r: {door: gate_r}, S: box, "!": {solid: lever, glyph: "!"}}
  groups: {arm: [left, right]}
vars: {seen: [], held: none, paid: 0}
draw:
  good: {order: cycle, of: {good: [left, right], other: [right, left], shut: [gate_r, gate_l]}}
start: {at: box, face: N}
trial:
  limit: 60
  start: locked
  states:
    locked:
      close: [gate_l, gate_r]
      rules:
        - {press: lever, count: presses, reward: 0.1, go: sample}
    sample:
      close: [shut]
      rules:
        - {enter: arm, add: {seen: it}, reward: 0.2, go: delay}
    delay:
      place: box
      freeze: true
      rules:
        - {after: 3, set: {held: other}, go: choice}
    choice:
      rules:
        - {enter: arm, if: it == good, count: returns}
        - {enter: arm, add: {seen: it}, reward: 1, end: correct}
schedule: {main: {trials: 3}}
success: last == correct
measures: {latency: steps / 10}
tests:
"""


def report_of(test: str, text: str = MAZE) -> TestReport:
    """Run one test, given as the text of a YAML flow mapping."""
    specification, found = examine_text(f"{text}  - {test}\n", "maze.yaml")
    assert specification is not None, "\n".join(map(str, found))
    (report,) = run_tests(
        ArenaFamily().compile(specification), installed_plugins().view("ascii_2d")
    )
    return report


@pytest.mark.parametrize(
    "test",
    [
        # One path through, in every notation.
        '{actions: "RRFLLFFLLFF SSS FFRRFF", expect: {outcome: correct, steps: 20, reward: 1.3}}',
        "{actions: [ROTATE_RIGHT, R, FORWARD, L, L, F, F, L, L, F, F, S, S, STAY, F, F, R, R, F, F],"
        " expect: {success: true}}",
        "{visit: [lever, left, right], expect: {outcome: correct, steps: 18, reward: 1.3, counters: {presses: 1},"
        " measures: {latency: 1.8}, variables: {seen: [right, left], good: left, held: right, paid: 0}}}",
        # The actions come first.
        "{actions: SSSRRF, visit: [left, right], expect: {outcome: correct, steps: 21}}",
        # A variable in ``visit`` means its value: `held` is none until the delay is
        # over.
        "{visit: [lever, good, other], expect: {outcome: correct}}",
        "{visit: [lever, good, held], expect: {outcome: correct}}",
        # The nearest member of a group is behind the open door, and behind the right
        # one in the second trial.
        "{visit: [lever, arm, other], expect: {outcome: correct, variables: {good: left}}}",
        "{trial: 2, visit: [lever, arm, other], expect: {outcome: correct, variables: {good: right}}}",
        # A zone that is named twice is left and entered again, and so is a set.
        "{visit: [lever, good, good, good, other], expect: {outcome: correct, counters: {returns: 2}}}",
        "{visit: [lever, good, seen, seen, seen, other], expect: {counters: {returns: 3}}}",
        # No path leads to an arm before the lever is pressed, so the subject waits to
        # the end.
        "{visit: [arm, lever], expect: {outcome: timeout, success: false, steps: 60, reward: 0}}",
        # After the list it waits; if the trial ends earlier, the rest of the list is
        # dropped.
        '{actions: "RRF", expect: {outcome: timeout, steps: 60, reward: 0.1, counters: {returns: 0}}}',
        '{actions: "'
        + "S" * 60
        + 'RRF", expect: {outcome: timeout, counters: {presses: 0}}}',
    ],
)
def test_these_pass(test: str) -> None:
    report = report_of(test)
    assert report.differences == ()
    assert report.passed


@pytest.mark.parametrize(
    ("expected", "difference"),
    [
        ("outcome: correct", "outcome: expected correct, was timeout"),
        ("success: true", "success: expected true, was false"),
        ("reward: 0.2", "reward: expected 0.2, was 0.1"),
        ("reward: 0.1000001", "reward: expected 0.1000001, was 0.1"),
        ("steps: 59", "steps: expected 59, was 60"),
        ("counters: {presses: 2}", "counter presses: expected 2, was 1"),
        ("measures: {latency: 4}", "measure latency: expected 4, was 6"),
        ("variables: {good: right}", "variable good: expected right, was left"),
        ("variables: {held: left}", "variable held: expected left, was none"),
        ("variables: {seen: [left]}", "variable seen: expected [left], was []"),
        ("variables: {presses: 0}", "variable presses: expected 0, was 1"),
    ],
)
def test_a_difference_is_a_sentence(expected: str, difference: str) -> None:
    assert report_of(f"{{visit: lever, expect: {{{expected}}}}}").differences == (
        difference,
    )


def test_all_differences_are_told_with_the_place_of_the_test() -> None:
    report = report_of("{visit: lever, expect: {outcome: correct, steps: 3}}")
    assert not report.passed
    line = MAZE.count("\n") + 1
    assert str(report) == (
        f"maze.yaml:{line}:5: test 1 failed: outcome: expected correct, was timeout; steps: expected 3, was 60. "
        "The subject ended in box at (3, 3), facing E, in the state 'sample'. "
        f"See 'cheesebench trace maze.yaml --seed 0 --subject 0 --trial 1 --actions {report.actions}'"
    )
    assert report.actions == "RRF" + "S" * 57


def test_a_visit_without_a_way_is_no_silent_failure() -> None:
    """The doors are closed until the lever is pressed."""
    report = report_of("{visit: left, expect: {success: false}}")
    assert report.differences == (
        "visit: no way to 'left' was open when the trial ended",
    )
    assert report_of("{visit: left, expect: {outcome: timeout}}").passed
    assert report_of("{visit: lever, expect: {success: false}}").passed


def test_a_trial_that_the_schedule_does_not_have() -> None:
    report = report_of("{trial: 4, visit: lever, expect: {outcome: timeout}}")
    assert report.differences == (
        "trial: expected trial 4, but the schedule ends after trial 3",
    )


def test_a_variable_that_holds_no_place() -> None:
    text = MAZE.replace("paid: 0", "odd: none").replace(
        "reward: 0.1,", "set: {odd: red},"
    )
    report = report_of("{visit: [lever, odd], expect: {outcome: timeout}}", text)
    assert report.differences == ("visit: 'odd' holds 'red', which is not a place",)


def test_what_only_shows_at_run_time_is_a_finding() -> None:
    text = MAZE.replace("go: sample}", "place: held, go: sample}")
    report = report_of("{visit: lever, expect: {outcome: timeout}}", text)
    assert "not floor" in report.differences[0]


def test_a_way_that_closes_while_it_is_walked_is_left() -> None:
    """The near door closes after two steps in the state; the subject turns round and
    takes the far one.
    """
    text = """
version: 1
paradigm: closing
arena:
  headings: 4
  map: |
    #########
    #G.d.S..#
    #.#####.#
    #.......#
    #########
  legend: {G: goal, d: {door: near}, S: box}
start: {at: box, face: W}
trial:
  limit: 40
  start: open
  states:
    open: {rules: [{after: 1, go: shut}, {enter: goal, end: short}]}
    shut: {close: near, rules: [{enter: goal, end: long}]}
schedule: {main: {}}
tests:
"""
    report = report_of("{visit: goal, expect: {outcome: long, steps: 19}}", text)
    assert report.differences == ()
    assert report.actions == "F" + "LLFFF" + "RFF" + "RFFFFFF" + "RFF"
