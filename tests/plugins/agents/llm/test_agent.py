"""Properties of every life: the amount of the past in a prompt, the order of messages,
and the inputs that prompts depend on.
"""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench import STAY, ChatReply, Message, ModelAgentContext, OptionError
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.agents.llm import LLM as SPEC
from cheesebench.plugins.agents.llm import REPLY_LENGTH, LlmAgent, read_history
from cheesebench.plugins.agents.llm.parsing import MAX_READ

REPLIES = st.sampled_from(
    [
        "ACTIONS: FORWARD, LEFT",
        "LEARNINGS: x\nACTIONS: STAY",
        "LEARNINGS: y\nz",
        "?",
        "",
        "<think>",
        "f f f f f f f f f",
    ]
)
OBSERVATIONS = st.sampled_from(["#→.#", "#.→#", "#.→#\nTONE"])
#: Events between two calls: the reply, whether steps pass, and whether the trial ends.
CALLS = st.lists(
    st.tuples(
        REPLIES,
        OBSERVATIONS,
        st.integers(0, 2),
        st.booleans(),
        st.sampled_from([0.0, 1.0, -0.25]),
    ),
    max_size=12,
)
#: A setting, and the minimum and maximum number of pairs that it means in a long life.
WINDOWS: dict[int | str, tuple[int, int]] = {
    **{n: (n, n) for n in range(5)},
    "0-2": (0, 2),
    "1-3": (1, 3),
    "3-7": (3, 7),
}
HISTORIES = st.sampled_from([*WINDOWS])
Calls = list[tuple[str, str, int, bool, float]]
FEEDBACK = "End it with a line such as"
HISTORY = 'it must be a whole number of at least 0, or a range such as "3-7".'


def agent(**chosen: Any) -> LlmAgent:
    return LlmAgent(
        ModelAgentContext(seed=7, view="ascii_2d", settings={**SPEC.settings, **chosen})
    )


def live(subject: LlmAgent, calls: Calls) -> list[tuple[Message, ...]]:
    """Live through the calls; return all prompts, including that of the next call."""
    prompts = []
    subject.begin_trial("#→.#")
    for text, observation, waited, ends, reward in calls:
        prompts.append(subject.prompt())
        actions = subject.read(ChatReply(text=text))
        for _ in range(waited):
            if not actions:
                break
            subject.observe(actions[0], 0.0, observation, False)
            actions = actions[1:]
        for number, action in enumerate(actions[:8], 1):
            subject.observe(
                action, reward, observation, ends and number == len(actions[:8])
            )
        if ends and actions:
            subject.begin_trial(observation)
    return [*prompts, subject.prompt()]


@given(
    calls=CALLS,
    history=HISTORIES,
    policy=st.sampled_from(["noop", "retry-with-feedback", "end-trial"]),
)
def test_prompts(calls: Calls, history: int | str, policy: str) -> None:
    least, most = WINDOWS[history]
    subject = agent(history=history, unparsed=policy)
    prompts = live(subject, calls)
    assert prompts == live(agent(history=history, unparsed=policy), calls)
    assert subject.prompt() == subject.prompt()
    system = prompts[0][0]
    named: list[bool] = []
    pairs = 0
    for number, prompt in enumerate(prompts):
        assert prompt[0] == system
        roles = [message.role for message in prompt]
        assert roles == [
            "system",
            *["user", "assistant"] * (len(prompt) // 2 - 1),
            "user",
        ]
        assert all(message.text for message in prompt)
        assert not any("Your LEARNINGS" in message.text for message in prompt[1:-1])
        if number and FEEDBACK not in prompt[-1].text:
            named.append("ACTIONS" in calls[number - 1][0])
            pairs = pairs + 1 if pairs < most else least
            # The whole past is in the prompt, as far as the window goes. Only answers
            # that named actions are the model's, and the latest pair is the last call.
            answers = sum(named[len(named) - pairs :])
            assert len(prompt) == 2 + 2 * answers
            assert len(named) > most or pairs == len(named)
            if pairs and named[-1]:
                asked = prompts[number - 1][-1].text.split("\n\nYour ")[0]
                assert asked.endswith(prompt[-3].text)
    assert prompts == live(agent(history=history, unparsed=policy), calls)


def walk(subject: LlmAgent, calls: int) -> list[tuple[Message, ...]]:
    return live(
        subject,
        [
            (f"LEARNINGS: {n}\nACTIONS: FORWARD", "#.→#", 0, False, 0.0)
            for n in range(calls)
        ],
    )


@pytest.mark.parametrize(
    ("history", "lengths"),
    [("3-7", [*range(8), 3, 4, 5, 6, 7, 3]), (5, [*range(6), 5, 5])],
)
def test_the_past_grows_and_is_cut_in_one_go(
    history: int | str, lengths: list[int]
) -> None:
    prompts = walk(agent(history=history), len(lengths) - 1)
    assert [len(prompt) // 2 - 1 for prompt in prompts] == lengths
    for one, following in pairwise(prompts):
        grown = len(following) > len(one)
        assert (following[: len(one) - 1] == one[:-1]) == grown
        # The observations in the last message stay, too; its changing part is at the
        # end.
        if grown:
            assert one[-1].text.startswith(following[len(one) - 1].text)


@pytest.mark.parametrize("history", WINDOWS)
def test_what_is_said_to_stay_stays(history: int | str) -> None:
    prompts = walk(agent(history=history), 20)
    for before, prompt, after in zip(
        [(), *prompts], prompts, prompts[1:], strict=False
    ):
        for number, message in enumerate(prompt, 1):
            assert not message.stays or prompt[:number] in (
                before[:number],
                after[:number],
            )
        assert prompt[0].stays
        assert sum(message.stays for message in prompt) <= 2


def test_a_range_of_pairs_is_worth_caching_and_a_number_is_not() -> None:
    for history, marked in (("3-7", [3, 4, 5, 6, 6]), (5, [0] * 5)):
        prompts = walk(agent(history=history), 17)[8:13]
        ends = [
            max(number for number, message in enumerate(prompt) if message.stays)
            for prompt in prompts
        ]
        assert [end // 2 for end in ends] == marked


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("5", 5),
        ("0", 0),
        (" 3 - 7 ", "3-7"),
        ("03-7", "3-7"),
        ("5-5", 5),
        ("12-40", "12-40"),
    ],
)
def test_history_is_read_from_text(text: str, read: int | str) -> None:
    assert read_history(text) == read
    SPEC.check({"history": read})


@pytest.mark.parametrize(
    "text", ["", "two", "-1", "7-3", "3-", "1.5", "3-7-9", "٣", "9" * 20]
)
def test_what_is_no_history_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        read_history(text)


@given(calls=CALLS, seed=st.integers(0, 2**63 - 1))
def test_nothing_is_random(calls: Calls, seed: int) -> None:
    random.seed(seed)
    other = LlmAgent(ModelAgentContext(seed=seed, view="ascii_2d", settings={}))
    assert live(other, calls) == live(agent(), calls)


@given(st.text(alphabet=st.characters(), max_size=300), st.integers(1, 16))
def test_never_more_than_k_actions_and_never_none(text: str, most: int) -> None:
    subject = agent(actions=most)
    subject.begin_trial("#→.#")
    actions = subject.read(ChatReply(text=text))
    assert 1 <= len(actions) <= most
    assert actions == (STAY,) or not subject.tally()["unparsed"]
    for message in subject.prompt():
        message.text.encode("utf-8")


def test_half_a_surrogate_pair_can_be_stored() -> None:
    subject = agent()
    subject.begin_trial("#→.#")
    subject.read(ChatReply(text="LEARNINGS: \ud800\nACTIONS: STAY"))
    subject.observe(STAY, 0.0, "#→.#", False)
    assert "LEARNINGS: ?\n" in subject.prompt()[2].text
    assert "Your LEARNINGS: ?\n" in subject.prompt()[-1].text


def test_an_endless_reply_does_not_fill_the_prompt() -> None:
    subject = agent()
    subject.begin_trial("#→.#")
    assert subject.read(ChatReply(text="FORWARD " * MAX_READ)) == (0,) * 8
    assert subject.tally()["dropped_actions"] == MAX_READ // 8 - 8
    assert len(subject.prompt()[2].text) <= REPLY_LENGTH


def test_it_is_registered_with_its_settings() -> None:
    spec = PluginManager().model_agents["llm"]
    spec.check(spec.settings)
    assert spec.memory == "life"
    assert dict(spec.settings) == {
        "history": "3-7",
        "actions": 8,
        "prompt": "default",
        "unparsed": "noop",
        "interrupt": "change",
        "patience": 5,
        "observations": "full",
        "learnings": 500,
        "reasoning_in_history": False,
        "images_in_history": True,
        "temperature": 0.7,
        "max_tokens": 256,
    }


def test_the_limit_of_a_reply_follows_from_what_is_asked_for() -> None:
    spec = PluginManager().model_agents["llm"]
    default = spec.settings
    assert spec.reply_tokens(default) == default["max_tokens"]
    assert spec.reply_tokens({**default, "actions": 16}) == 320
    assert spec.reply_tokens({**default, "learnings": 0, "actions": 1}) == 48
    assert spec.reply_tokens({**default, "prompt": "cot"}) == 512
    assert spec.reply_tokens({**default, "prompt": "Do what you like."}) == 512


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"history": -1}, f"The setting history is -1; {HISTORY}"),
        ({"history": "5"}, f"The setting history is '5'; {HISTORY}"),
        ({"history": "7-3"}, f"The setting history is '7-3'; {HISTORY}"),
        ({"history": "3 - 7"}, f"The setting history is '3 - 7'; {HISTORY}"),
        ({"history": True}, f"The setting history is True; {HISTORY}"),
        (
            {"actions": 0},
            "The setting actions is 0; it must be a whole number of at least 1.",
        ),
        (
            {"prompt": "few-shot"},
            "The setting prompt is 'few-shot'; it must be one of default, minimal, cot, few_shot, a file (with a "
            "dot or a slash in its name), or a prompt of several words. Did you mean 'few_shot'?",
        ),
        (
            {"patience": -1},
            "The setting patience is -1; it must be a whole number of at least 0.",
        ),
        (
            {"observations": "none"},
            "The setting observations is 'none'; it must be one of full, changes.",
        ),
        (
            {"unparsed": "forward"},
            "The setting unparsed is 'forward'; it must be one of noop, retry-with-feedback, end-trial.",
        ),
        (
            {"learnings": 1.5},
            "The setting learnings is 1.5; it must be a whole number of at least 0.",
        ),
        (
            {"images_in_history": 1},
            "The setting images_in_history is 1; it must be true or false.",
        ),
        (
            {"temperature": 3},
            "The setting temperature is 3; it must be a number from 0 to 2, or none to leave it to the server.",
        ),
        (
            {"max_tokens": 0},
            "The setting max_tokens is 0; it must be a whole number of at least 1, or none to leave it to the server.",
        ),
        (
            {"histroy": 5},
            "The agent has no setting 'histroy'. Did you mean 'history'? Known: history, actions, prompt, unparsed, "
            "interrupt, patience, observations, learnings, reasoning_in_history, images_in_history, temperature, "
            "max_tokens.",
        ),
    ],
)
def test_settings_that_make_no_sense(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as raised:
        SPEC.check(chosen)
    assert str(raised.value) == message


def test_none_leaves_sampling_to_the_server() -> None:
    SPEC.check(
        {
            "temperature": None,
            "max_tokens": None,
            "history": 0,
            "learnings": 0,
            "actions": 100,
        }
    )


def test_the_view_says_how_it_is_read() -> None:
    context = ModelAgentContext(
        seed=1, view="mine", settings=SPEC.settings, reading="Read it like a poem."
    )
    subject = LlmAgent(context)
    subject.begin_trial("#→.#")
    assert "\nRead it like a poem. Any sign, and" in subject.prompt()[0].text
