"""Information between the sample and the choice is no memory of the sample."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.interfaces import AuditSettings
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import Adversary
from cheesebench.paradigms.arena.audit.exact import upper_bound
from cheesebench.paradigms.arena.audit.forgetting import earlier_amnesias
from cheesebench.protocol import load_protocol, with_arena
from cheesebench.protocol.validation import construct_status

Plant = Callable[..., ArenaParadigm]

#: The sound protocol with a wait between the cue and the choice.
WAIT = (
    ("go: choice}]}", "go: wait}]}"),
    (
        "    choice:\n",
        "    wait:\n      freeze: true\n      rules: [{after: retention, go: choice}]\n"
        "    choice:\n      place: box\n",
    ),
    ("start: {at: box", "vars: {retention: {init: 2, per: subject}}\nstart: {at: box"),
)


def construct(*lesions: str, spared: str = "") -> tuple[str, str]:
    rows = ", ".join(f"{{lesion: {{amnesia: {one}}}, at_most: 0.5}}" for one in lesions)
    more = f", spared_by: [{{amnesia: {spared}}}]" if spared else ""
    named = f"construct: {{name: memory, kind: memory, abolished_by: [{rows}]{more}}}"
    return "checks: [", f"{named}\nchecks: ["


def left(paradigm: ArenaParadigm) -> dict[str, float | None]:
    """Return the bound under each requested amnesia."""
    asked = earlier_amnesias(paradigm, 1.0)
    if (named := paradigm.specification.construct) is not None:
        asked |= dict(named.abolished_by)
    return {
        str(one): upper_bound(Adversary(paradigm, one, 1.0), 1.0, most)
        for one, most in asked.items()
    }


HALF = pytest.approx(0.5)


TOLD = {
    "the answer is marked during the wait": [
        ("    wait:\n", '    wait:\n      show: {side: "*"}\n')
    ],
    "the length of the wait tells": [
        ("vars: {retention: {init: 2, per: subject}}\n", ""),
        (
            "{of: {side: [left, right]}}",
            "{of: {side: [left, right], retention: [2, 5]}}",
        ),
    ],
    "a word during the wait": [("    wait:\n", '    wait:\n      say: "{side}"\n')],
    "a flash before the wait": [
        ("go: wait}]}", "go: flash}]}"),
        (
            "    wait:\n",
            '    flash: {freeze: true, show: {side: "o"}, rules: [{after: 1, go: wait}]}\n    wait:\n',
        ),
    ],
}


@pytest.mark.parametrize("fault", TOLD)
@pytest.mark.parametrize("named", ["choice", "wait"])
def test_what_is_told_after_the_sample_is_found(
    fault: str, named: str, plant: Plant
) -> None:
    most = left(plant(*WAIT, construct(named), *TOLD[fault]))
    assert any(one is None or one > 0.9 for one in most.values()), most


def test_which_of_two_states_a_trial_passes_may_tell(plant: Plant) -> None:
    """Subjects that enter the same state have the same knowledge, so only both states
    together reveal the item.
    """
    two = (
        "{after: 3, go: wait}",
        "{after: 3, if: side == left, go: wait}, {after: 3, go: other}",
    )
    other = (
        "    wait:\n",
        "    other: {freeze: true, say: buzz, rules: [{after: 2, go: choice}]}\n    wait:\n",
    )
    earlier = earlier_amnesias(plant(*WAIT, two, other, construct("choice")), 1.0)
    assert earlier == {Lesion.parse("amnesia=wait+amnesia=other"): 0.5}


#: After the cue one of two states, which differ only in what they say.
BRANCHES = (
    *WAIT,
    (
        "{after: 3, go: wait}",
        "{after: 3, if: side == left, go: wait}, {after: 3, go: other}",
    ),
    (
        "    wait:\n",
        "    other: {freeze: true, rules: [{after: retention, go: choice}]}\n    wait:\n",
    ),
)
BUZZ = ("other: {freeze: true, rules", "other: {freeze: true, say: buzz, rules")
LONG = (
    "other: {freeze: true, rules: [{after: retention",
    "other: {freeze: true, rules: [{after: 5",
)


@pytest.mark.parametrize(
    ("told", "most"), [((), 0.5), ((BUZZ,), 1.0), ((LONG,), 1.0)], ids=str
)
def test_an_amnesia_at_two_states_is_bounded_where_no_subject_can_choose(
    told: tuple[tuple[str, str], ...], most: float, plant: Plant
) -> None:
    assert left(plant(*BRANCHES, *told, construct("choice"))) == {
        "amnesia=choice": HALF,
        "amnesia=other+amnesia=wait": pytest.approx(most),
    }


@pytest.mark.parametrize("there", ["wait", "other"])
def test_a_rule_that_never_fires_hides_no_alternative(there: str, plant: Plant) -> None:
    """By the file, each of the two states may follow the other."""
    rule = "rules: [{after: retention"
    back = "other" if there == "wait" else "wait"
    at = f"    {there}:\n      freeze: true\n      " if there == "wait" else "buzz, "
    dead = (
        f"{at}{rule}",
        f"{at}rules: [{{after: 9, if: trial > 99, go: {back}}}, {{after: retention",
    )
    most = left(plant(*BRANCHES, BUZZ, dead, construct("choice")))
    assert most["amnesia=other+amnesia=wait"] == pytest.approx(1)


def test_a_second_amnesia_in_the_construct_hides_no_earlier_one(plant: Plant) -> None:
    flash = TOLD["a flash before the wait"]
    asked = earlier_amnesias(plant(*WAIT, construct("wait", "choice"), *flash), 1.0)
    assert asked == {Lesion.parse("amnesia=flash"): 0.5}


def test_a_state_before_two_amnesias_is_tried_for_each_of_them(plant: Plant) -> None:
    two = (
        ("after: retention, go", "after: retention, if: trial > 5, go: late}, {after: retention, go"),
        (
            "    choice:\n",
            "    late:\n      place: box\n      rules: [{enter: side, reward: 1, end: correct},"
            " {enter: arm, end: error}]\n    choice:\n",
        ),
    )  # fmt: skip
    told = TOLD["a word during the wait"]
    asked = earlier_amnesias(
        plant(*WAIT, *two, construct("choice", "late"), *told), 1.0
    )
    assert asked == {Lesion.parse("amnesia=wait"): 0.5}


def test_blocks_without_a_cue_come_before_those_that_are_judged(plant: Plant) -> None:
    """In the first block, nothing is told before the wait."""
    marks = ("draw:\n", "draw:\n  marks: {of: {blank: ['.'], lit: ['*']}}\n")
    shown = (
        ("vars: {", "vars: {mark: {init: '.', per: trial}, "),
        ('show: {side: "*"}, rules', "show: {side: mark}, rules"),
        ("    wait:\n", "    wait:\n      show: {side: mark}\n"),
        ("start: cue", "start: [{if: block == early, go: dark}, light]"),
        (
            "    cue:",
            "    dark: {freeze: true, set: {mark: blank}, rules: [{after: 1, go: cue}]}\n"
            "    light: {freeze: true, set: {mark: lit}, rules: [{after: 1, go: cue}]}\n    cue:",
        ),
        ("schedule: {main", "schedule: {early: {sessions: 1, trials: 4}, main"),
        ("success:", "estimand: {where: block == main}\nsuccess:"),
    )
    most = left(plant(*WAIT, marks, *shown, construct("choice")))
    assert most["amnesia=wait"] is None or most["amnesia=wait"] > 0.9


def test_a_first_state_may_come_back_with_a_hint(plant: Plant) -> None:
    again = (
        ("draw:\n", "draw:\n  marks: {of: {hint: ['+']}}\n"),
        (
            "start: {at: box",
            "vars: {mark: {init: '*', per: trial}, shown: {init: 0, per: trial}}\nstart: {at: box",
        ),
        (
            'show: {side: "*"}, rules: [',
            "show: {side: mark}, rules: [{after: 2, if: shown < 2, set: {shown: shown + 1, mark: hint}, go: cue}, ",
        ),
        ("    choice:\n", "    choice:\n      place: box\n"),
    )
    most = left(plant(*again, construct("choice")))
    assert most.keys() == {"amnesia=choice", "amnesia=cue"}
    assert most["amnesia=cue"] is None or most["amnesia=cue"] > 0.9


def test_an_audit_has_a_row_for_it(plant: Plant) -> None:
    told = plant(*WAIT, construct("choice"), *TOLD["a word during the wait"])
    settings = AuditSettings(trials=200, parts=("lesions",), effort=0.1)
    rows = {one.rule: one for one in told.audit([], settings)}
    assert rows["lesion: amnesia=choice"].verdict == "ok"
    found = rows["lesion: amnesia=wait"]
    assert found.verdict == "FAIL"
    assert found.numbers["at_most"] == 0.5
    assert "let the construct name this amnesia instead" in found.text


def test_where_it_stands_may_be_a_note(plant: Plant) -> None:
    moving = (
        ("freeze: true\n      rules: [{after: retention", "rules: [{after: retention"),
        ("    choice:\n      place: box\n", "    choice:\n"),
    )
    settings = AuditSettings(trials=200, parts=("lesions",), effort=0.02)
    of = plant(*WAIT, *moving, construct("choice"))
    rows = {one.rule: one for one in of.audit([], settings)}
    found = rows["lesion: amnesia=choice"]
    assert found.verdict != "ok"
    assert found.verdict == "FAIL" or "a note that outlasts" in found.text


def test_a_wait_that_tells_nothing_is_no_reason_to_doubt(plant: Plant) -> None:
    assert left(plant(*WAIT, construct("choice"))) == {
        "amnesia=choice": HALF,
        "amnesia=wait": HALF,
    }
    assert left(plant(*WAIT, construct("wait"))) == {"amnesia=wait": HALF}
    # Nothing is told before the cue, so an amnesia there takes nothing.
    ready = (
        ("start: cue", "start: ready"),
        (
            "    cue: {",
            "    ready: {freeze: true, rules: [{after: 2, go: cue}]}\n    cue: {",
        ),
    )
    assert left(plant(*WAIT, *ready, construct("wait"))) == {"amnesia=wait": HALF}


def test_what_is_to_be_remembered_may_be_told_twice_if_the_file_says_so(
    plant: Plant,
) -> None:
    flash = TOLD["a flash before the wait"]
    paradigm = plant(*WAIT, construct("wait", spared="flash"), *flash)
    assert earlier_amnesias(paradigm, 1.0) == {}
    # A learner's construct does not concern memory from one state to another.
    learning = ("kind: memory", "kind: learning")
    assert (
        earlier_amnesias(plant(*WAIT, construct("wait"), *flash, learning), 1.0) == {}
    )


def test_a_row_that_the_construct_does_not_name_counts(
    plant: Plant, tmp_path: Path
) -> None:
    paradigm = plant(*WAIT, construct("choice"))
    path = tmp_path / "planted.protocol.yaml"
    path.write_text(paradigm.specification.text, encoding="utf-8")
    specification = with_arena(load_protocol(path))

    def status(**verdicts: str) -> str:
        found = [
            {
                "rule": f"lesion: amnesia={state}",
                "verdict": verdict,
                "numbers": {"at_most": 0.5},
            }
            for state, verdict in verdicts.items()
        ]
        report = {"sha256": specification.sha256, "findings": found}
        (tmp_path / "planted.audit.json").write_text(json.dumps(report))
        return construct_status(specification)

    assert status(choice="ok") == status(choice="ok", wait="ok") == "validated"
    assert status(choice="ok", wait="undecided") == "searched"
    assert status(choice="ok", wait="FAIL") == "failed"


# -- bounds by parts of the success condition


def bound(paradigm: ArenaParadigm, lesion: str, at_most: float) -> float | None:
    return upper_bound(Adversary(paradigm, Lesion.parse(lesion), 1.0), 1.0, at_most)


@pytest.mark.parametrize(
    ("success", "proved"),
    [
        ("recent(correct, 2) == 2", 0.5),
        ("recent(correct, 3) >= 3", 0.5),
        ("last == correct and recent(error, 5) < 3", 0.5),
        ("last == correct and good >= 1", 0.5),
        # The two may be any of the five.
        ("recent(correct, 5) == 2", None),
        ("last == correct or recent(correct, 5) == 2", None),
        ("recent(correct, 2) != 2", None),
    ],
)
def test_a_conjunct_that_reads_earlier_trials_is_dropped(
    success: str, proved: float | None, plant: Plant
) -> None:
    counted = (
        ("reward: 1, end: correct", "reward: 1, set: {good: good + 1}, end: correct"),
        ("start: {at: box", "vars: {good: {init: 0, per: subject}}\nstart: {at: box"),
    )
    paradigm = plant(
        *(counted if "good" in success else ()),
        ("success: last == correct", f"success: {success}"),
    )
    found = bound(paradigm, "blind", 0.5)
    assert found == (None if proved is None else pytest.approx(proved))


#: In half of the trials the answer is told at the choice.
EASY = (
    ("draw:\n", "draw:\n  kind: {of: {mark: ['*', '.']}}\n"),
    ("    choice:\n", "    choice:\n      show: {side: mark}\n"),
)
ANSWERED = (
    "success: last == correct",
    "success: last == correct\nestimand: {where: last != timeout}",
)


@pytest.mark.parametrize(
    "lesion", ["blind+anhedonia", "hide=left+hide=right+anhedonia"]
)
def test_a_share_of_answers_is_bounded_where_no_answer_tells_whether_it_was_right(
    lesion: str, plant: Plant
) -> None:
    assert bound(plant(ANSWERED), lesion, 0.5) == 0.5
    assert bound(plant(ANSWERED), lesion, 0.49) is None


def test_a_subject_may_stop_answering_after_a_success(plant: Plant) -> None:
    """A verdict is about the share of each subject's own answers: one that guesses
    until it is right has ln 2 = .69 of them, on average.
    """
    shares = [0.5**first / first for first in range(1, 21)]
    assert sum(shares) == pytest.approx(0.693, abs=0.001)
    for most in (0.5, 0.68):
        assert bound(plant(ANSWERED), "blind", most) is None
    # One that forgets its success does not stop.
    assert bound(plant(ANSWERED), "blind+amnesia=trial", 0.5) == 0.5


def test_a_subject_may_answer_only_where_it_is_sure(plant: Plant) -> None:
    sees = "amnesia=trial+hide=text"
    early = ("start: cue", "start: choice")  # the cue is not seen
    assert bound(plant(early, *EASY), sees, 0.75) == pytest.approx(0.75)
    for most in (0.75, 0.9, 0.99):
        assert bound(plant(early, *EASY, ANSWERED), sees, most) is None
    forgets = "amnesia=choice+anhedonia"
    assert bound(plant(*WAIT, ANSWERED), forgets, 0.5) == 0.5
    # A subject that forgets may answer only in trials that need no memory.
    for most in (0.75, 0.9, 0.99):
        assert bound(plant(*WAIT, *EASY, ANSWERED), forgets, most) is None


#: The share of the time in both arms that was spent at the right side.
TIMED = (
    (
        "        - {enter: side, reward: 1, end: correct}\n",
        "        - {after: 6, end: over}\n",
    ),
    ("        - {enter: arm, end: error}\n", ""),
    ("last == correct", "last == over and time(side) > 0.6 * time(arm)"),
    (
        "reference: [{measure: success, value: 0.9, status: made up}]",
        "measures: {preference: time(side) / time(arm)}\n"
        "reference: [{measure: preference, value: 0.7, better: higher, margin: 0.1, range: [0, 1], status: made up}]",
    ),
)


@pytest.mark.parametrize("lesion", ["blind", "amnesia=choice"])
def test_a_share_of_time_is_bounded_where_no_trial_tells_it(
    lesion: str, plant: Plant
) -> None:
    assert bound(plant(*WAIT, *TIMED), lesion, 0.5) == HALF
    # After a good trial, a subject might leave the arms for good.
    told = ("{after: 6, end: over}", "{after: 6, reward: time(side), end: over}")
    assert bound(plant(*WAIT, *TIMED, told), lesion, 0.5) is None
