"""Reading replies: what models write, what they write by mistake, and hostile text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench import ACTION_LETTERS
from cheesebench.plugins.agents.llm.parsing import MAX_READ, SHORT, canonical, parse, separate_reasoning


def read(reply: str, most: int = 8) -> str:
    """Return the letters of the actions in a reply."""
    return "".join(ACTION_LETTERS[action] for action in parse(separate_reasoning(reply).text, most, 500).actions)


@pytest.mark.parametrize(
    ("reply", "letters"),
    [
        ("LEARNINGS: none yet\nACTIONS: FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY", "FLRS"),
        ("actions: forward rotate_left", "FL"),
        ("ACTIONS: forward; Rotate-Left; rotate right; STAY", "FLRS"),
        ("ACTIONS: F, L, R, S", "FLRS"),
        ("ACTIONS: f l r s", "FLRS"),
        ("ACTIONS: turn left, Turn to the right, move forward, go straight, wait, no-op, noop", "LRFFSSS"),
        ("ACTIONS: left, then right, and then wait", "LRS"),
        ('ACTIONS: ["FORWARD", "STAY"]', "FS"),
        ("ACTIONS: FORWARD -> ROTATE_LEFT → STAY", "FLS"),
        ("**ACTIONS:** FORWARD, **STAY**", "FS"),
        ("**ACTIONS**: `FORWARD`, `STAY`", "FS"),
        ("__Actions__:\n_FORWARD_\n_STAY_", "FS"),
        ("ACTIONS: ROTATE\\_LEFT", "L"),
        ("### ACTIONS\n\n1. FORWARD\n2. ROTATE_LEFT\n3) STAY", "FLS"),
        ("ACTIONS:\n- FORWARD\n* ROTATE_LEFT\n• STAY", "FLS"),
        ("ACTIONS:\n1. FORWARD - to come nearer\n2. ROTATE_LEFT (to look at the left side)\n\nGood luck!", "FL"),
        ("Action: FORWARD", "F"),
        ("ACTIONS：FORWARD", "F"),
        ("ACTIONS FORWARD, STAY", "FS"),
        ("```\nLEARNINGS: x\nACTIONS: STAY\n```", "S"),
        ("LEARNINGS: walls do not move ACTIONS: FORWARD, STAY", "FS"),
        ("ACTIONS: FORWARD LEARNINGS: it is to the left", "F"),
        ('{"learnings": "x", "actions": ["FORWARD", "ROTATE_LEFT"]}', "FL"),
        ("ACTIONS: FORWARD\r\nLEARNINGS: x\r\n", "F"),
        ("**LEARNINGS:**\n- one\n- two\n\n**ACTIONS:**\nFORWARD, FORWARD\n\nLet me know how it goes!", "FF"),
        ("ACTIONS: move forward 2 steps, turn right\nReason: to STAY is no use", "FR"),
        ("My next actions will be:\n1. FORWARD\n2. STAY", "FS"),
        ('```json\n{"ACTIONS": "FORWARD, STAY"}\n```', "FS"),
        ("ACTIONS: STAY\nThen I would go FORWARD.", "S"),
        # The last one counts.
        ("ACTIONS: FORWARD\nOn second thoughts:\nACTIONS: STAY", "S"),
        # What belongs to no label.
        ("FORWARD, FORWARD, left", "FFL"),
        ("R", "R"),
        ("I look around.\n\nFORWARD\nSTAY", "FS"),
        ("I think I should go FORWARD and then turn left.", "FL"),
        ("The possible actions: FORWARD, ROTATE_LEFT, STAY. I choose STAY.", "S"),
        # What is unknown is left out; what is known stays.
        ("ACTIONS: FORWARD, JUMP, STAY", "FS"),
        ("ACTIONS: FORWARD, ROT", "F"),
        ("ACTIONS: FORWARD x3, STAY", "FS"),
    ],
)
def test_what_models_write(reply: str, letters: str) -> None:
    assert read(reply) == letters


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n\t ",
        "ACTIONS:",
        "ACTIONS: none",
        "ACTIONS: JUMP, NORTH, BACKWARD",
        # Digits number lists.
        "ACTIONS: 0, 1, 2",
        "I do not know what to do.",
        # What is denied, or left open.
        "do not go FORWARD",
        "Don't go FORWARD and never STAY.",
        "ACTIONS: do not go FORWARD",
        "ACTIONS: FORWARD or STAY",
        "Should I turn left or turn right?",
        "You can choose FORWARD, ROTATE_LEFT, ROTATE_RIGHT or STAY.",
        # Words that are actions in a list only.
        "There is a wall on the left, and nothing on the right.",
        "Wait, that makes no difference.",
        # What is learnt says nothing about what to do.
        "LEARNINGS: FORWARD moves me, ROTATE_LEFT turns me\nACTIONS:",
        "LEARNINGS: FORWARD moves me by one cell, ROTATE_LEFT tur",
        # What is reasoned is not said.
        "<think>FORWARD</think>",
        "<think>I go\nACTIONS: FORWARD",
        "[THINK]ACTIONS: FORWARD[/THINK]",
        "<THINKING>\nACTIONS: FORWARD\n</THINKING>\n",
        "REASONING: the best\nACTION is near, I go FORWARD",
        "REASONING: these are the best actions: FORWARD, STAY. I take",
        "ACTIONS: FORWARD</think>",
    ],
)
def test_where_there_is_no_action(reply: str) -> None:
    assert read(reply) == ""


def test_reasoning_is_parted_from_the_reply() -> None:
    spoken = separate_reasoning("<think>a <think> tag</think>\nLEARNINGS: x\nACTIONS: STAY")
    assert spoken == ("LEARNINGS: x\nACTIONS: STAY", "a <think> tag", False)
    assert separate_reasoning("it began before</think> ACTIONS: STAY") == ("ACTIONS: STAY", "it began before", False)
    assert separate_reasoning("ACTIONS: STAY <think>and so on") == ("ACTIONS: STAY", "and so on", True)
    assert separate_reasoning("REASONING: one\ntwo\nLEARNINGS: x\nACTIONS: STAY") == (
        "LEARNINGS: x\nACTIONS: STAY",
        "one\ntwo",
        False,
    )


@pytest.mark.parametrize(
    ("reply", "learnings"),
    [
        ("LEARNINGS: one\nACTIONS: STAY", "one"),
        ("LEARNINGS: one\n- two\n\n- three\nACTIONS: STAY", "one\n- two\n\n- three"),
        ("**LEARNINGS:** *one*\n**ACTIONS:** STAY", "one"),
        ("LEARNINGS: one\n\nFORWARD, STAY", "one"),
        ("ACTIONS: STAY\nLEARNINGS: one\ntwo", "one\ntwo"),
        ("LEARNINGS: my best actions: none\nACTIONS: STAY", "my best actions: none"),
        ("Learning: one\nACTIONS: STAY", "one"),
        ("LEARNINGS:\nACTIONS: STAY", None),
        ("ACTIONS: STAY", None),
    ],
)
def test_learnings(reply: str, learnings: str | None) -> None:
    assert parse(reply, 8, 500).learnings == learnings


def test_learnings_have_an_end() -> None:
    assert parse("LEARNINGS: " + "ab " * 500, 8, 500).learnings == ("ab " * 167)[:500]
    assert parse("LEARNINGS: one\nACTIONS: STAY", 8, 0).learnings is None


def test_more_than_asked_for_is_dropped_and_counted() -> None:
    parsed = parse("ACTIONS: FORWARD, FORWARD, LEFT, STAY", 2, 500)
    assert (parsed.actions, parsed.dropped) == ((0, 0), 2)


FRAGMENTS = st.sampled_from(
    [
        *SHORT,
        "ACTIONS:",
        "LEARNINGS:",
        "REASONING:",
        "<think>",
        "</think>",
        "not",
        "or",
        "wall",
        "\n",
        ",",
        "**",
        "1.",
        "-",
    ]
)
REPLIES = st.one_of(st.text(max_size=200), st.lists(st.one_of(FRAGMENTS, st.text(max_size=5))).map(" ".join))


@settings(deadline=None)
@given(reply=REPLIES, most=st.integers(1, 16), learnings=st.integers(0, 500))
def test_any_reply_gives_some_actions_or_none(reply: str, most: int, learnings: int) -> None:
    parsed = parse(separate_reasoning(reply).text, most, learnings)
    assert len(parsed.actions) <= most
    assert all(type(action) is int and 0 <= action <= 3 for action in parsed.actions)
    assert parsed.dropped == 0 or len(parsed.actions) == most
    assert parsed.learnings is None or 0 < len(parsed.learnings) <= learnings
    # Said once more in the form that is asked for, the actions are the same.
    if parsed.actions:
        again = f"LEARNINGS: {' '.join((parsed.learnings or '').split())}\n{canonical(parsed.actions)}"
        assert parse(again, most, learnings).actions == parsed.actions


@settings(deadline=None)
@given(
    actions=st.lists(st.sampled_from(sorted(SHORT)), min_size=1, max_size=8),
    separator=st.sampled_from([", ", ",", "; ", "\n", " , ", "\n- ", "\n\n"]),
    blanks=st.text(" \t", max_size=3),
)
def test_case_and_blanks_do_not_matter(actions: list[str], separator: str, blanks: str) -> None:
    reply = (
        f"Learnings: walls\nActions:{separator.join(['', *actions])}"
        if "\n" in separator
        else (f"Learnings: walls\nActions: {separator.join(actions)}")
    )
    wanted = "".join(ACTION_LETTERS[SHORT[action]] for action in actions)
    for variant in (
        reply,
        reply.upper(),
        reply.lower(),
        reply.replace(" ", f" {blanks}"),
        f"{blanks}{reply}\n{blanks}",
    ):
        assert read(variant) == wanted


@settings(deadline=None)
@given(REPLIES)
def test_reasoning_never_acts(text: str) -> None:
    hidden = text.replace("</think>", "").replace("</THINK>", "")
    if "</" not in hidden:
        assert read(f"<think>{hidden}</think>ACTIONS: STAY") == "S"
        assert read(f"<think>{hidden}") == ""


@pytest.mark.parametrize(
    "unit",
    [
        *("<think>", "</think>", "<think", "ACTIONS:", "actions\n", '"actions" ', "LEARNINGS: ", "1. FORWARD x\n"),
        *("- ", "_", "\n", "(", "'", "a-", "a'", "not FORWARD,", "FORWARD ", "turn ", " ", "*", "#", "\r", "é", "or "),
    ],
)
def test_time_grows_with_the_length_only(unit: str) -> None:
    # No clock is read: a reading whose time grows with the square of the length would not come back from this.
    reply = unit * (400_000 // len(unit)) + "x"
    parsed = parse(separate_reasoning(reply).text, 8, 500)
    assert len(parsed.actions) in (0, 8)


def test_the_end_of_an_endless_reply_counts() -> None:
    assert read(f"ACTIONS: STAY\n{'x ' * MAX_READ}\nACTIONS: FORWARD") == "F"
    assert read(f"ACTIONS: STAY\n{'x' * MAX_READ}") == ""
    assert read(f"{'x' * MAX_READ}\nACTIONS: STAY\n") == "S"
