"""Reading replies: the table of the documentation, a labelled corpus,
and hostile text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench import (
    ACTION_LETTERS,
    STAY,
    ChatReply,
    ModelAgentContext,
    ModelAgentSpec,
)
from cheesebench.plugins.agents.llm import LLM, LLM_TOOLS, LlmAgent
from cheesebench.plugins.agents.llm.lists import FULL, SHORT
from cheesebench.plugins.agents.llm.parsing import (
    MAX_READ,
    canonical,
    parse,
    separate_reasoning,
)
from cheesebench.plugins.agents.llm.prompts import variants

TESTS = Path(__file__).parents[3]
PAGE = (TESTS.parent / "docs" / "prompts.md").read_text(encoding="utf-8")
#: The table of the page, as reply and letters.
TABLE = [
    (reply.replace("⏎", "\n").replace("\\|", "|"), means.replace(" ", ""))
    for reply, means in re.findall(
        r"^\| `(.+)` \| ?([FLRS ]*?) ?\|$",
        PAGE.split("<!-- replies -->\n")[1].split("\n\n")[0],
        re.MULTILINE,
    )
]
NAMES = FULL | SHORT


def read(reply: str, told: str = "") -> str:
    """Return the letters of the actions in a reply."""
    return "".join(
        ACTION_LETTERS[action]
        for action in parse(separate_reasoning(reply).text, 8, 500, told).actions
    )


def read_torn(reply: str, told: str = "") -> str:
    """Return the letters of the actions in a reply that was cut off."""
    spoken = separate_reasoning(reply, torn=True)
    found = parse(spoken.text, 8, 500, told, torn=not spoken.ran_on)
    return "".join(ACTION_LETTERS[action] for action in found.actions)


@pytest.mark.parametrize(("reply", "letters"), TABLE)
def test_the_table_of_the_page(reply: str, letters: str) -> None:
    assert read(reply) == letters


def test_the_table_is_whole() -> None:
    assert (
        len(TABLE)
        == PAGE.split("<!-- replies -->\n")[1].split("\n\n")[0].count("\n") - 1
        > 40
    )


@pytest.mark.parametrize("actions", [1, 8])
@pytest.mark.parametrize("history", ["3-7", 0])
@pytest.mark.parametrize("agent", [LLM, LLM_TOOLS])
@pytest.mark.parametrize("prompt", variants())
def test_what_a_request_ends_with_is_a_label(
    prompt: str, agent: ModelAgentSpec, history: int | str, actions: int
) -> None:
    """A model that only completes the last line of a request has answered it."""
    chosen = {"prompt": prompt, "history": history, "actions": actions}
    subject = LlmAgent(
        ModelAgentContext(
            seed=1, view="ascii_2d", settings={**agent.settings, **chosen}
        )
    )
    subject.begin_trial("#→.#")
    last = subject.prompt()[-1].text.split("\n")[-1]
    assert read(f"{last} STAY") == "S"
    assert read(f"LEARNINGS: a wall\n{last} STAY, FORWARD") == "SF"
    assert read(f"{last}\n{last}\n{last}") == ""
    # No part of the request is ever stored as the model's text.
    assert subject.read(ChatReply(text=f"LEARNINGS: a wall\n{last}\n{last}")) == (STAY,)
    subject.observe(STAY, 0.0, "#→.#", True)
    subject.begin_trial("#→.#")
    assert subject.learnings == "a wall"
    *_, last = subject.prompt()[-1].text.split("\n")
    subject.read(ChatReply(text=f"{last.rpartition('. ')[2]} the wall is left"))
    assert subject.learnings == ("a wall" if history else "the wall is left")


def corpus() -> list[dict[str, Any]]:
    """Return all labelled replies: ``reply``, ``actions`` (by a careful reader),
    ``source``, and ``told`` (the prompt) for those that repeat it.
    """
    files = sorted((TESTS / "replies").glob("*.jsonl"))
    return [
        json.loads(line)
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def test_precision_and_recall_on_the_labelled_corpus() -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for entry in corpus():
        found, wanted = read(entry["reply"], entry.get("told", "")), entry["actions"]
        counts["all"] += 1
        counts["read"] += bool(found)
        counts["wanted"] += bool(wanted)
        counts["right"] += found == wanted != ""
        if found != wanted:
            wrong.append((entry["reply"][-200:], wanted, found))
    assert counts["all"] >= 1000
    assert counts["right"] >= 0.99 * counts["read"], wrong
    assert counts["right"] >= 0.95 * counts["wanted"], wrong


TOLD = """\
Your actions, seen from your own body:
FORWARD: one cell ahead, if nothing is in the way
---
LEARNINGS: & is unknown
ACTIONS: STAY
---
ACTIONS: your next actions
NEW TRIAL
#FL#
FORWARD
"""


@pytest.mark.parametrize(
    ("reply", "letters"),
    [
        # The example of the prompt may be the answer, but not if the prompt is recited.
        ("LEARNINGS: & is unknown\nACTIONS: STAY", "S"),
        ("---\nLEARNINGS: & is unknown\nACTIONS: STAY\n---", ""),
        ("LEARNINGS: mine\nACTIONS: STAY", "S"),
        ("ACTIONS: STAY", "S"),
        ("FORWARD", ""),  # an observation may be a word
        ("#FL#\nACTIONS: FORWARD", "F"),
        ("ACTIONS: FORWARD\nACTIONS: your next actions", "F"),
    ],
)
def test_lines_of_the_prompt_are_no_answer(reply: str, letters: str) -> None:
    assert read(reply, TOLD) == letters


def test_reasoning_is_parted_from_the_reply() -> None:
    spoken = separate_reasoning(
        "<think>a <think> tag</think>\nLEARNINGS: x\nACTIONS: STAY"
    )
    assert spoken == ("LEARNINGS: x\nACTIONS: STAY", "a <think> tag", False, False)
    assert separate_reasoning("it began before</think> ACTIONS: STAY") == (
        "ACTIONS: STAY",
        "it began before",
        False,
        False,
    )
    assert separate_reasoning("ACTIONS: STAY <think>and so on") == (
        "ACTIONS: STAY",
        "and so on",
        True,
        False,
    )
    assert separate_reasoning("REASONING: one\ntwo\nLEARNINGS: x\nACTIONS: STAY") == (
        "LEARNINGS: x\nACTIONS: STAY",
        "one\ntwo",
        False,
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
        ('{"learnings": "one", "actions": ["STAY"]}', "one"),
        ('{"actions": ["STAY"], "learnings": "cut o', None),
        ("LEARNINGS:\nACTIONS: STAY", None),
        ("ACTIONS: STAY", None),
    ],
)
def test_learnings(reply: str, learnings: str | None) -> None:
    assert parse(reply, 8, 500).learnings == learnings


def test_learnings_may_repeat_what_was_told() -> None:
    told = "Your LEARNINGS: one\n- two"
    assert (
        parse("LEARNINGS: one\n- two\nACTIONS: STAY", 8, 500, told).learnings
        == "one\n- two"
    )


def test_learnings_have_an_end() -> None:
    assert parse("LEARNINGS: " + "ab " * 500, 8, 500).learnings == ("ab " * 167)[:500]
    assert parse("LEARNINGS: one\nACTIONS: STAY", 8, 0).learnings is None


def test_more_than_asked_for_is_dropped_and_counted() -> None:
    parsed = parse("ACTIONS: FORWARD, FORWARD, LEFT, STAY", 2, 500)
    assert (parsed.actions, parsed.dropped) == ((0, 0), 2)


FRAGMENTS = st.sampled_from(
    [
        *NAMES,
        *(
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
        ),
        *(
            "-",
            "x3",
            "(",
            ")",
            "3",
            '{"actions": [',
            "I will",
            "<|channel|>final<|message|>",
            "Step 2:",
            ": reward 0",
        ),
    ]
)
REPLIES = st.one_of(
    st.text(max_size=200),
    st.lists(st.one_of(FRAGMENTS, st.text(max_size=5))).map(" ".join),
)


@pytest.mark.parametrize(
    ("reply", "letters"),
    [
        # Half of ROTATE_LEFT, STEP, WAITED, LEARNINGS, <|return|> and of a number.
        ("ACTIONS: R", ""), ("ACTIONS: FORWARD, S", "F"), ("ACTIONS: FORWARD, WAIT", "F"),
        ("ACTIONS: FORWARD\nL", "F"), ("ACTIONS: FORWARD<|r", "F"), ("ACTIONS: FORWARD x1", "F"),
        ("ACTIONS: FORWARD six", "F"), ("ACTIONS: 1. FORWARD 2", "F"), ("ACTIONS: 1. FORWARD 2.", "F"),
        # What is clear stays.
        ("ACTIONS: FORWARD", "F"), ("ACTIONS: STAY, rotate left", "SL"), ("ACTIONS: FORWARD x12, R", "FFFFFFFF"),
        ("ACTIONS: FFRL", "FFRL"), ("ACTIONS: R, ", "R"), ("ACTIONS: R</s>[INST] go", "R"),
        ("ACTIONS: R\nUser: so?\nand then F", "R"), ('{"actions": ["FORWARD", "R', "F"),
        ('{"arguments": "{\\"actions\\": [\\"STAY\\"]}"}', "S"),
        # Without a label, the last line may go on: "FORWARD: reward 0", "stay calm".
        ("FORWARD", ""), ("FORWARD, STAY,", ""), ("I'll STAY", ""), ("I'll STAY. ", "S"), ("Going FORWARD w", ""),
        # The reasoning has not ended; headings in brackets never do.
        ("[THINK]I could say\nACTIONS: FORWARD, FORWARD. But", ""), ("[Plan]\nACTIONS: FORWARD, ST", "F"),
    ],
)  # fmt: skip
def test_half_a_word_of_a_torn_reply_is_no_action(reply: str, letters: str) -> None:
    assert read_torn(reply) == letters


def test_a_reply_torn_within_a_word_has_no_action_that_the_whole_has_not() -> None:
    short = [one["reply"] for one in corpus() if len(one["reply"]) < 60][::8]
    assert len(short) > 30
    for reply in short:
        whole = read(reply)
        for word in re.finditer(r"[^\W_]{2,}", reply):
            begun = read_torn(reply[: word.start()])
            for end in range(word.start() + 1, word.end()):
                torn = read_torn(reply[:end])
                assert begun.startswith(torn) or whole.startswith(torn), reply[:end]


@pytest.mark.parametrize(
    ("reply", "learnings"),
    [
        ("LEARNINGS: the left\nis open\nACTI", "the left\nis open"), ("LEARNINGS: the left ACTI", "the left"),
        ("LEARNINGS: none</LEAR", None), ("LEARNINGS: left\nACTIONS: R", "left"),
        ('```json\n{"learnings": "the le', None),
    ],
)  # fmt: skip
def test_half_a_label_of_a_torn_reply_is_no_learning(
    reply: str, learnings: str | None
) -> None:
    assert parse(reply, 8, 500, torn=True).learnings == learnings


@given(
    reply=REPLIES, most=st.integers(1, 16), learnings=st.integers(0, 500), told=REPLIES
)
def test_any_reply_gives_some_actions_or_none(
    reply: str, most: int, learnings: int, told: str
) -> None:
    parsed = parse(separate_reasoning(reply).text, most, learnings, told)
    assert len(parsed.actions) <= most
    assert all(type(action) is int and 0 <= action <= 3 for action in parsed.actions)
    assert parsed.dropped == 0 or len(parsed.actions) == most
    assert parsed.learnings is None or 0 < len(parsed.learnings) <= learnings
    # Written in the required form, the same actions are read again.
    if parsed.actions:
        again = f"LEARNINGS: {' '.join((parsed.learnings or '').split())}\n{canonical(parsed.actions)}"
        assert parse(again, most, learnings).actions == parsed.actions


@given(
    actions=st.lists(st.sampled_from(sorted(NAMES)), min_size=1, max_size=8),
    separator=st.sampled_from([", ", ",", "; ", "\n", " , ", "\n- "]),
    blanks=st.text(" \t", max_size=3),
)
def test_case_and_blanks_do_not_matter(
    actions: list[str], separator: str, blanks: str
) -> None:
    reply = f"Learnings: walls\nActions:{separator.join(['', *actions])}"
    reply = (
        reply
        if "\n" in separator
        else f"Learnings: walls\nActions: {separator.join(actions)}"
    )
    wanted = "".join(ACTION_LETTERS[NAMES[action]] for action in actions)
    for variant in (
        reply,
        reply.upper(),
        reply.lower(),
        reply.replace(" ", f" {blanks}"),
        f"{blanks}{reply}\n{blanks}",
    ):
        assert read(variant) == wanted


@given(REPLIES)
def test_reasoning_never_acts(text: str) -> None:
    hidden = text.replace("</think>", "").replace("</THINK>", "")
    if "</" not in hidden and "<|" not in hidden:
        assert read(f"<think>{hidden}</think>ACTIONS: STAY") == "S"
        assert read(f"<think>{hidden}") == ""


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "<think>",
            "</think>",
            "<think",
            "ACTIONS:",
            "actions\n",
            '"actions" ',
            "LEARNINGS: ",
            "1. FORWARD x\n",
        ),
        *(
            "- ",
            "_",
            "\n",
            "(",
            "'",
            "a-",
            "a'",
            "not FORWARD,",
            "FORWARD ",
            "turn ",
            " ",
            "*",
            "#",
            "\r",
            "é",
            "or ",
        ),
        *(
            '{"actions": [',
            "<a",
            "1. ",
            "step 1: ",
            "x3 ",
            "FORWARD x99, ",
            "\n\n",
            "my ",
            "[",
            "STAY: ",
            "a final",
        ),
    ],
)
def test_time_grows_with_the_length_only(unit: str) -> None:
    # No clock is needed: a reading in quadratic time would not finish.
    reply = unit * (100_000 // len(unit)) + "x"
    parsed = parse(separate_reasoning(reply).text, 8, 500, reply)
    assert len(parsed.actions) in (0, 8)
    assert len(parse(separate_reasoning(reply).text, 8, 500).actions) in (0, 8)
    torn = parse(separate_reasoning(reply, torn=True).text, 8, 500, reply, torn=True)
    assert len(torn.actions) in (0, 8)


def test_the_end_of_an_endless_reply_counts() -> None:
    assert read(f"ACTIONS: STAY\n{'x ' * MAX_READ}\nACTIONS: FORWARD") == "F"
    assert read(f"ACTIONS: STAY\n{'x' * MAX_READ}") == ""
    assert read(f"{'x' * MAX_READ}\nACTIONS: STAY\n") == "S"
