"""Conversations as films: whole prompts of a subject that is led through some trials by
hand.

Each message has its role as a heading; the system prompt, which never changes, appears
only as SYSTEM.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent
from typing import Any

import pytest

from cheesebench import (
    FORWARD,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    STAY,
    ChatReply,
    Message,
    ModelAgentContext,
    Picture,
)
from cheesebench.plugins.agents.llm import COUNTS, LLM_TOOLS, REST, LlmAgent
from cheesebench.plugins.agents.llm import LLM as SPEC

WEST, EAST, GONE = "#→..#", "#.→.#", "#..→#\nLIGHT"


def agent(**settings: Any) -> LlmAgent:
    SPEC.check(settings)
    return LlmAgent(
        ModelAgentContext(
            seed=1, view="ascii_2d", settings={**SPEC.settings, **settings}
        )
    )


def film(prompt: Sequence[Message]) -> str:
    """Return a prompt as text; ``[png ...]`` is a picture."""
    frames = []
    for message in prompt:
        if message.role == "system":
            frames.append("SYSTEM")
        else:
            parts = [
                part if isinstance(part, str) else f"[png {part.decode()}]"
                for part in message.parts
            ]
            frames.append(f"{message.role.upper()}\n" + "".join(parts))
    return "\n".join(frames) + "\n"


def shown(text: str) -> str:
    return dedent(text).lstrip("\n")


def reply(text: str, **more: Any) -> ChatReply:
    return ChatReply(text=text, **more)


def test_a_life_of_two_trials() -> None:
    subject = agent(history=1, actions=2)
    subject.begin_trial(WEST)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        NEW TRIAL
        #→..#

        Your LEARNINGS: none
        Your answer (at most 2 actions):
        """)
    assert subject.read(
        reply("LEARNINGS: FORWARD may move me\nACTIONS: FORWARD, STAY, STAY")
    ) == (FORWARD, STAY)
    subject.observe(FORWARD, 0.0, EAST, False)
    subject.observe(STAY, -0.5, EAST, False)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        NEW TRIAL
        #→..#
        ASSISTANT
        LEARNINGS: FORWARD may move me
        ACTIONS: FORWARD, STAY
        USER
        FORWARD: reward 0
        #.→.#
        STAY: reward -0.5, unchanged

        Your LEARNINGS: FORWARD may move me
        Your answer (at most 2 actions):
        """)
    assert subject.read(reply("<think>STAY?</think>ACTIONS: FORWARD, ROTATE_LEFT")) == (
        FORWARD,
        ROTATE_LEFT,
    )
    # The trial ends, so the turn is never made.
    subject.observe(FORWARD, 1.0, GONE, True)
    assert subject.tally() == dict.fromkeys(COUNTS, 0) | {
        "calls": 2,
        "dropped_actions": 1,
        "FORWARD": 2,
        "STAY": 1,
    }

    subject.begin_trial(WEST)
    assert set(subject.tally().values()) == {0}
    # The first pair has left the prompt; the reasoning was never in it; the learnings
    # stay.
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        FORWARD: reward 0
        #.→.#
        STAY: reward -0.5, unchanged
        ASSISTANT
        ACTIONS: FORWARD
        USER
        FORWARD: reward +1
        #..→#
        LIGHT
        TRIAL ENDED
        NEW TRIAL
        #→..#

        Your LEARNINGS: FORWARD may move me
        Your answer (at most 2 actions):
        """)
    # The first step of the new trial must not be taken for the dropped turn.
    subject.read(reply("ACTIONS: STAY"))
    subject.observe(STAY, 0.0, WEST, False)
    assert "\nUSER\nSTAY: reward 0\n#→..#\n" in film(subject.prompt())


def test_time_that_goes_by() -> None:
    subject = agent(history=0)
    subject.begin_trial(WEST)
    subject.read(reply("ACTIONS: STAY, STAY, STAY, FORWARD"))
    for _ in range(3):
        subject.observe(STAY, -0.001, WEST, False)
    subject.observe(FORWARD, 0.0, EAST, False)
    for _ in range(30):
        subject.observe(STAY, 0.0, EAST, False)  # steps without a call
    subject.observe(STAY, 0.25, GONE, False)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        STAY: reward -0.001
        #→..#
        STAY x2: reward -0.001 each, unchanged
        FORWARD: reward 0
        #.→.#
        waited x30: reward 0 each, unchanged
        waited: reward +0.25
        #..→#
        LIGHT

        Your LEARNINGS: none
        Your answer (at most 8 actions):
        """)


ROOM = "#######\n#→....#\n#.....#\n#######"


def test_only_the_changes() -> None:
    subject = agent(observations="changes", learnings=0)
    subject.begin_trial(ROOM)
    subject.observe(FORWARD, 0.0, ROOM.replace("→.", ".→"), False)
    subject.observe(ROTATE_LEFT, 0.0, ROOM.replace("→.", ".↗"), False)
    subject.observe(STAY, 0.0, ROOM.replace("→.", ".↗"), False)
    # A different number of lines.
    subject.observe(FORWARD, 0.0, ROOM + "\nLIGHT", False)
    # A completely different picture.
    subject.observe(FORWARD, 0.0, "#\n\n#\n#\n!", False)
    subject.observe(STAY, 1.0, "#\n\n#\n#\n?", True)
    subject.begin_trial(ROOM)
    subject.observe(FORWARD, 0.0, ROOM.replace("→.", ".→"), False)
    subject.observe(STAY, 0.0, ROOM.replace("→.", ".→"), False)
    assert '"changed lines" means' in subject.prompt()[0].text
    # The beginning of a trial and the present are always shown in full.
    assert film(subject.prompt()[1:]) == shown("""
        USER
        NEW TRIAL
        #######
        #→....#
        #.....#
        #######
        waited: reward 0, changed lines:
        2: #.→...#
        waited: reward 0, changed lines:
        2: #.↗...#
        waited: reward 0, unchanged
        waited: reward 0
        #######
        #→....#
        #.....#
        #######
        LIGHT
        waited: reward 0
        #

        #
        #
        !
        waited: reward +1, changed lines:
        5: ?
        TRIAL ENDED
        NEW TRIAL
        #######
        #→....#
        #.....#
        #######
        waited: reward 0
        #######
        #.→...#
        #.....#
        #######
        waited: reward 0, unchanged

        Your answer (at most 8 actions):
        """)


def test_trials_without_a_call_between_them() -> None:
    subject = agent(history=1, learnings=0)
    for _ in range(2):
        subject.begin_trial(WEST)
        subject.observe(STAY, 0.0, WEST, True)
    subject.begin_trial(WEST)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        NEW TRIAL
        #→..#
        waited: reward 0, unchanged
        TRIAL ENDED
        NEW TRIAL, unchanged
        waited: reward 0, unchanged
        TRIAL ENDED
        NEW TRIAL, unchanged

        Your answer (at most 8 actions):
        """)


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (reply("I do not know."), {"calls": 1, "unparsed": 1}),
        (reply(""), {"calls": 1, "unparsed": 1, "empty": 1}),
        (reply("<think>so</think> \n"), {"calls": 1, "unparsed": 1, "empty": 1}),
        (
            reply("", reasoning="I go\nACTIONS: FORWARD"),
            {"calls": 1, "unparsed": 1, "empty": 1},
        ),
        (reply("", finish="length"), {"calls": 1, "unparsed": 1, "truncated": 1}),
        (
            reply("<think>FORWARD", finish="stop"),
            {"calls": 1, "unparsed": 1, "truncated": 1},
        ),
    ],
)
def test_a_reply_without_an_action_is_one_wasted_step(
    answer: ChatReply, count: dict[str, int]
) -> None:
    subject = agent(history=1)
    subject.begin_trial(WEST)
    assert subject.read(answer) == (STAY,)
    assert subject.tally() == dict.fromkeys(COUNTS, 0) | count | {"unusable": 1}
    subject.observe(STAY, 0.0, WEST, False)
    # None of our text is attributed to the model.
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        NEW TRIAL
        #→..#
        (Your answer named no action.)
        STAY: reward 0
        #→..#

        Your LEARNINGS: none
        Your answer (at most 8 actions):
        """)


def test_a_reply_that_was_cut_off_after_an_action_still_acts() -> None:
    subject = agent()
    subject.begin_trial(WEST)
    assert subject.read(reply("ACTIONS: FORWARD, ROTA", finish="length")) == (FORWARD,)
    assert subject.tally() == dict.fromkeys(COUNTS, 0) | {
        "calls": 1,
        "truncated": 1,
        "unusable": 1,
    }


def test_half_a_word_is_no_action_unless_the_turn_had_ended() -> None:
    subject = agent()
    subject.begin_trial(WEST)
    assert subject.read(reply("ACTIONS: STAY, R", finish="length")) == (STAY,)
    assert subject.read(reply("ACTIONS: R</s>[INST] go", finish="length")) == (
        ROTATE_RIGHT,
    )


def test_asking_again_with_feedback() -> None:
    subject = agent(unparsed="retry-with-feedback", actions=1)
    subject.begin_trial(WEST)
    before = subject.prompt()
    assert subject.read(reply("<think>..</think>LEARNINGS: draft\nHm.")) == ()
    assert subject.prompt()[:-1] == before[:-1]
    assert subject.read(reply("")) == ()
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        NEW TRIAL
        #→..#

        Your last answer named no action. End it with a line such as "ACTIONS: STAY", made of nothing but your actions.
        Your LEARNINGS: none
        Your answer (one action):
        """)
    # The third time the step is wasted, and the refused replies are forgotten.
    assert subject.read(reply("No.")) == (STAY,)
    assert subject.tally() == dict.fromkeys(COUNTS, 0) | {
        "calls": 3,
        "unparsed": 3,
        "empty": 1,
        "unusable": 3,
    }
    subject.observe(STAY, 0.0, WEST, False)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        NEW TRIAL
        #→..#
        (Your answer named no action.)
        STAY: reward 0
        #→..#

        Your LEARNINGS: none
        Your answer (one action):
        """)
    # The next prompt has its own attempts.
    assert subject.read(reply("?")) == ()


def test_giving_a_trial_up() -> None:
    subject = agent(unparsed="end-trial")
    subject.begin_trial(WEST)
    assert subject.read(reply("?")) == REST
    for step in range(1, 101):
        subject.observe(STAY, -0.5, WEST, step == 100)
    subject.begin_trial(EAST)
    assert film(subject.prompt()[-1:]) == shown("""
        USER
        NEW TRIAL
        #→..#
        (Your answer named no action.)
        waited: reward -0.5
        #→..#
        waited x98: reward -0.5 each, unchanged
        waited: reward -0.5, unchanged
        TRIAL ENDED
        NEW TRIAL
        #.→.#

        Your LEARNINGS: none
        Your answer (at most 8 actions):
        """)


def test_who_stops_answering_is_asked_once_a_trial() -> None:
    subject = agent(patience=3)
    subject.begin_trial(WEST)
    assert [subject.read(reply("?")) for _ in range(2)] == [(STAY,)] * 2
    subject.begin_trial(EAST)
    assert subject.read(reply("?")) == REST, "the third in a row"
    subject.begin_trial(EAST)
    assert subject.read(reply("?")) == REST
    assert subject.read(reply("ACTIONS: FORWARD")) == (FORWARD,)
    assert [subject.read(reply("?")) for _ in range(3)] == [(STAY,), (STAY,), REST]


@pytest.mark.parametrize(
    "settings", [{"patience": 0}, {"patience": 0, "unparsed": "retry-with-feedback"}]
)
def test_without_patience_nothing_is_waited_through(settings: dict[str, Any]) -> None:
    subject = agent(**settings)
    subject.begin_trial(WEST)
    assert REST not in [subject.read(reply("?")) for _ in range(50)]
    assert "such answers" not in subject.prompt()[0].text


def see_pictures(subject: LlmAgent) -> None:
    first, second = Picture(b"one"), Picture(b"two", "LIGHT")
    subject.begin_trial(first)
    subject.read(reply("ACTIONS: STAY, STAY"))
    subject.observe(STAY, 0.0, second, False)
    subject.observe(STAY, 0.0, Picture(b"two", "LIGHT"), False)


def test_pictures() -> None:
    subject = agent()
    see_pictures(subject)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        NEW TRIAL
        [png one]
        ASSISTANT
        ACTIONS: STAY, STAY
        USER
        STAY: reward 0
        [png two]
        LIGHT
        STAY: reward 0, unchanged

        Your LEARNINGS: none
        Your answer (at most 8 actions):
        """)
    # The same words below another picture.
    subject.observe(STAY, 0.0, Picture(b"three", "LIGHT"), False)
    assert "waited: reward 0\n[png three]\nLIGHT" in film(subject.prompt())


def test_pictures_are_always_told_in_full() -> None:
    subject = agent(observations="changes")
    subject.begin_trial(Picture(b"one", "LIGHT"))
    for png in (b"two", b"three"):
        subject.observe(STAY, 0.0, Picture(png, "LIGHT"), False)
    assert film(subject.prompt()).count("[png") == 3


def test_pictures_can_be_left_out_of_the_past() -> None:
    subject = agent(images_in_history=False)
    see_pictures(subject)
    subject.read(reply("ACTIONS: STAY"))
    subject.observe(STAY, 0.0, Picture(b"three"), False)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        NEW TRIAL
        (picture left out)
        ASSISTANT
        ACTIONS: STAY, STAY
        USER
        STAY: reward 0
        (picture left out)
        LIGHT
        STAY: reward 0, unchanged
        ASSISTANT
        ACTIONS: STAY
        USER
        STAY: reward 0
        [png three]

        Your LEARNINGS: none
        Your answer (at most 8 actions):
        """)


def test_reasoning_enters_the_past_only_when_asked() -> None:
    for answer in (
        reply("So.\nACTIONS: STAY", reasoning="why not"),
        reply("<think>why not</think>So.\nACTIONS: STAY"),
    ):
        for kept, said in (
            (True, "<think>\nwhy not\n</think>\nSo.\nACTIONS: STAY"),
            (False, "ACTIONS: STAY"),
        ):
            subject = agent(reasoning_in_history=kept)
            subject.begin_trial(WEST)
            subject.read(answer)
            subject.observe(STAY, 0.0, WEST, False)
            assert subject.prompt()[2].text == said


def test_of_a_reply_only_what_was_noted_and_carried_out_is_remembered() -> None:
    subject = agent(learnings=0)
    subject.begin_trial(WEST)
    subject.read(
        reply("Remember 42.\nLEARNINGS: 42\nACTIONS: FORWARD, STAY, ROTATE_LEFT")
    )
    subject.observe(FORWARD, 0.0, EAST, False)
    assert subject.interrupted()
    assert not subject.interrupted(), "there is nothing left to drop"
    assert subject.prompt()[2].text == "ACTIONS: FORWARD"
    assert subject.tally()["interrupted"] == 1
    assert subject.tally()["interrupted_actions"] == 2


def test_notes_are_asked_for_before_a_new_stretch() -> None:
    subject = agent(history=0)
    subject.begin_trial(WEST)
    assert subject.read(reply("LEARNINGS: one\nACTIONS: FORWARD, STAY")) == (
        FORWARD,
        STAY,
    )
    subject.observe(FORWARD, 0.0, EAST, False)
    subject.interrupted()
    subject.observe(STAY, 0.0, GONE, False)  # the subject is held
    subject.observe(STAY, 0.5, WEST, False)
    subject.freed(WEST)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        FORWARD: reward 0
        #.→.#
        waited: reward 0
        #..→#
        LIGHT
        waited: reward +0.5

        Your LEARNINGS: one
        You cannot act now. What stands above will not be told again. Your answer (LEARNINGS only):
        """)
    assert subject.read(reply("LEARNINGS: two\nACTIONS: FORWARD")) == ()
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        YOUR TURN
        #→..#

        Your LEARNINGS: two
        Your answer (at most 8 actions):
        """)
    subject.read(reply("ACTIONS: FORWARD"))
    subject.observe(FORWARD, 1.0, GONE, True)
    counts = subject.tally()
    assert (counts["calls"], counts["notes"], counts["unparsed"]) == (3, 1, 0)
    subject.begin_trial(EAST)
    assert film(subject.prompt()) == shown("""
        SYSTEM
        USER
        FORWARD: reward +1
        #..→#
        LIGHT
        TRIAL ENDED

        Your LEARNINGS: two
        You cannot act now. What stands above will not be told again. Your answer (LEARNINGS only):
        """)
    assert subject.read(reply("hm")) == ()
    assert "NEW TRIAL\n#.→.#\n\nYour LEARNINGS: two\n" in film(subject.prompt())


def test_without_history_and_learnings_nothing_is_asked_or_kept() -> None:
    subject = agent(history=0, learnings=0)
    subject.begin_trial(WEST)
    first = subject.prompt()
    subject.read(reply("ACTIONS: FORWARD"))
    subject.observe(FORWARD, 1.0, GONE, True)
    subject.begin_trial(WEST)
    assert subject.prompt() == first


def test_a_silent_model_is_not_asked_for_notes() -> None:
    subject = agent(history=0, patience=1)
    subject.begin_trial(WEST)
    assert subject.read(reply("?")) == REST
    assert not subject.interrupted(), "the rest of the trial passes without calls"
    subject.observe(STAY, 0.0, WEST, True)
    subject.begin_trial(EAST)
    assert "NEW TRIAL" in film(subject.prompt())


def test_with_a_history_boundaries_change_no_message() -> None:
    prompts = []
    for freed in (True, False):
        subject = agent(history=1)
        subject.begin_trial(WEST)
        subject.read(reply("ACTIONS: STAY"))
        subject.observe(STAY, 0.0, GONE, False)
        if freed:
            subject.freed(GONE)
        prompts.append(subject.prompt())
    assert prompts[0] == prompts[1]


def test_a_call_of_the_tool_is_a_reply() -> None:
    context = ModelAgentContext(seed=1, view="ascii_2d", settings=LLM_TOOLS.settings)
    subject = LlmAgent(context)
    subject.begin_trial(WEST)
    assert "Answer by calling act" in subject.prompt()[0].text
    assert "ACTIONS:" not in subject.prompt()[0].text
    assert subject.read(
        reply('{"actions": ["FORWARD", "STAY"], "learnings": "a"}')
    ) == (FORWARD, STAY)
    subject.observe(FORWARD, 0.0, EAST, False)
    subject.interrupted()
    assert subject.prompt()[2].text == '{"actions": ["FORWARD"], "learnings": "a"}'
    # Cut off, but the actions up to there count.
    assert subject.read(
        reply(
            '{"actions": ["FORWARD", "ROTATE_LEFT"], "learnings": "the', finish="length"
        )
    )
    form = LLM_TOOLS.form({**LLM_TOOLS.settings, "learnings": 0, "actions": 2})
    assert form is not None
    assert form.schema["properties"]["actions"]["maxItems"] == 2
    assert "learnings" not in form.schema["properties"]


def test_thoughts_without_a_tag_that_were_cut_off_say_nothing() -> None:
    thoughts = "If I answer\nLEARNINGS: a wall\nACTIONS: FORWARD\nthen I bump into"
    for reasoning, read in ((True, (STAY,)), (False, (FORWARD,))):
        context = ModelAgentContext(
            seed=1, view="ascii_2d", settings=SPEC.settings, reasoning=reasoning
        )
        subject = LlmAgent(context)
        subject.begin_trial(WEST)
        assert subject.read(reply(thoughts, finish="length")) == read
        assert subject.learnings == ("" if reasoning else "a wall")
        # If the reasoning is separate, the text is an answer even if it was cut off.
        assert subject.read(
            reply("ACTIONS: FORWARD, ROTA", finish="length", reasoning="so")
        ) == (FORWARD,)
