"""Agents with one fault each must break the rule of that name."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy
import pytest

from cheesebench import (
    AgentContext,
    AgentSpec,
    ChatReply,
    Message,
    ModelAgentContext,
    ModelAgentSpec,
    Puzzle,
    RespondentSpec,
)
from cheesebench.testing import (
    assert_agent_sound,
    assert_respondent_sound,
    broken_agent_rules,
    broken_respondent_rules,
)

SHARED: list[int] = []
COUNTER = itertools.count()


class Good:
    """Goes round and round, with some chance."""

    def __init__(self, context: AgentContext) -> None:
        self.random = random.Random(context.seed)

    def begin_trial(self, observation: str) -> None: ...

    def act(self, observation: str) -> Sequence[int]:
        return [self.random.randrange(4)]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None: ...


class Names(Good):
    def act(self, observation: str) -> Sequence[int]:
        return ["FORWARD"]  # type: ignore[list-item]


class NoAction(Good):
    def act(self, observation: str) -> Sequence[int]:
        return []


class Fifth(Good):
    def act(self, observation: str) -> Sequence[int]:
        return (4,)


class Global(Good):
    def act(self, observation: str) -> Sequence[int]:
        return [random.randrange(4)]


class GlobalArrays(Good):
    def act(self, observation: str) -> Sequence[int]:
        return [int(numpy.random.randint(4))]


class Sharing(Good):
    def act(self, observation: str) -> Sequence[int]:
        SHARED.append(0)
        return [len(SHARED) % 4]


class Parsing(Good):
    def act(self, observation: str) -> Sequence[int]:
        return [observation.index("#") % 4]


def spec_of(create: Callable[[AgentContext], Any], **fields: Any) -> AgentSpec:
    return AgentSpec(
        **{"name": "mine", "create": create, "summary": "for tests", **fields}
    )


def names(broken: Sequence[Any]) -> set[str]:
    return {one.rule for one in broken}


def told(found: Sequence[Any]) -> dict[str, str]:
    return {one.rule: one.text for one in found}


def test_a_good_agent_passes() -> None:
    assert_agent_sound(spec_of(Good))


@pytest.mark.parametrize(
    ("create", "rule", "said"),
    [
        (
            Names,
            "valid actions",
            "answers with the action 'FORWARD'; actions are 0 to 3",
        ),
        (NoAction, "valid actions", "answers with 0 actions"),
        (Fifth, "valid actions", "answers with the action 4; actions are 0 to 3"),
        (
            Global,
            "same seed, same actions",
            "two subjects with the same seed act differently",
        ),
        (
            Global,
            "no global randomness",
            "draws from the global 'random': use random.Random",
        ),
        (
            GlobalArrays,
            "no global randomness",
            "draws from the global 'numpy.random': use numpy",
        ),
        (
            Sharing,
            "independent subjects",
            "acts differently when another one runs beside it",
        ),
        (Parsing, "any observation", "raises ValueError: substring not found"),
    ],
)
def test_a_wrong_agent_is_failed_by_the_name_of_the_rule(
    create: Callable[[AgentContext], Any], rule: str, said: str
) -> None:
    assert said in told(broken_agent_rules(spec_of(create)))[rule]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "my agent"}, "the name 'my agent' cannot be written"),
        ({"name": "a/b"}, "the name 'a/b' cannot be written"),
        ({"memory": "trial"}, "memory is 'trial'; it must be 'life', or 'none'"),
        ({"summary": ""}, "summary is empty"),
    ],
)
def test_wrong_declarations(fields: dict[str, Any], said: str) -> None:
    [(rule, text)] = told(broken_agent_rules(spec_of(Good, **fields))).items()
    assert rule == "declaration"
    assert said in text


@pytest.mark.parametrize(
    "fields", [{"summary": ""}, {"name": "my agent"}, {"memory": "trial"}]
)
def test_a_wrong_declaration_hides_no_other_rule(fields: dict[str, Any]) -> None:
    found = told(broken_agent_rules(spec_of(Sharing, **fields)))
    assert {"declaration", "independent subjects"} <= {*found}


def test_a_wrong_action_hides_no_global_randomness() -> None:
    class Both(Good):
        def act(self, observation: str) -> Sequence[int]:
            return [random.choice([4, 9])]

    found = told(broken_agent_rules(spec_of(Both)))
    assert "answers with the action" in found["valid actions"]
    assert "global 'random'" in found["no global randomness"]


def test_an_exception_in_observe_is_named_with_its_class_and_line() -> None:
    class Forgetful(Good):
        def observe(self, *step: object) -> None:
            raise TypeError("no step before")

    spec = AgentSpec("forgetful", Forgetful, memory="none", summary="forgets")
    broken = {one.rule: one.text for one in broken_agent_rules(spec)}
    assert re.fullmatch(
        r"raises TypeError: no step before \(.*test_agents\.py.*\) in observe\(\), which may come before act\(\)",
        broken["valid actions"],
    )


def test_the_error_names_the_agent_and_the_rules() -> None:
    with pytest.raises(
        AssertionError,
        match=r"the agent 'mine': 1 rule is broken\n  valid actions: answers with",
    ) as caught:
        assert_agent_sound(spec_of(Fifth))
    assert "\n    (not checked for this reason: 'same seed, same actions', " in str(
        caught.value
    )
    shown = cast("Any", caught.value)._render_traceback_()
    assert len(shown) <= 2
    assert shown[-1].startswith("AssertionError: the agent 'mine': 1 rule is broken")
    assert_agent_sound(spec_of(Parsing), but=["any observation"])


class Asking:
    """The simplest agent that asks a model."""

    def __init__(self, context: ModelAgentContext) -> None:
        self.told: list[str] = []
        self.calls = 0

    def begin_trial(self, observation: str) -> None:
        self.told.append(observation)
        self.calls = 0

    def prompt(self) -> tuple[Message, ...]:
        return (Message("user", ("\n".join(self.told[-3:]) or "?",)),)

    def read(self, reply: ChatReply) -> Sequence[int]:
        self.calls += 1
        for number, word in enumerate(("FORWARD", "LEFT", "RIGHT")):
            if word in reply.text[:1000]:
                return [number]
        return [3]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        self.told.append(observation)

    def tally(self) -> Mapping[str, int]:
        return {"calls": self.calls}


class Impure(Asking):
    def prompt(self) -> tuple[Message, ...]:
        return (Message("user", (f"call {next(COUNTER)}",)),)


class Twice(Asking):
    def prompt(self) -> tuple[Message, ...]:
        self.told.append("again")
        return super().prompt()


class Strict(Asking):
    def read(self, reply: ChatReply) -> Sequence[int]:
        return [
            ("FORWARD", "ROTATE_LEFT").index(
                reply.text.split("ACTIONS: ")[1].split(",")[0]
            )
            % 4
        ]


class NeverGivesUp(Asking):
    def read(self, reply: ChatReply) -> Sequence[int]:
        return [0] if "FORWARD" in reply.text else []


class OddTally(Asking):
    def tally(self) -> Mapping[str, int]:
        return {"calls": 1.5}  # type: ignore[dict-item]


class Together(Asking):
    everything: list[str] = []  # noqa: RUF012  # the mistake that is looked for

    def __init__(self, context: ModelAgentContext) -> None:
        super().__init__(context)
        self.told = self.everything


class LastBegun(Asking):
    begun: list[str] = []  # noqa: RUF012  # the mistake that is looked for

    def begin_trial(self, observation: str) -> None:
        super().begin_trial(observation)
        self.begun[:] = [observation]

    def prompt(self) -> tuple[Message, ...]:
        return (Message("user", (*self.begun, *self.told[-3:])),)


class Answering(Asking):
    def prompt(self) -> tuple[Message, ...]:
        return (*super().prompt(), Message("assistant", ("ACTIONS:",)))


class Marking(Asking):
    def prompt(self) -> tuple[Message, ...]:
        return tuple(
            dataclasses.replace(message, stays=True) for message in super().prompt()
        )


class Dicing(Asking):
    def read(self, reply: ChatReply) -> Sequence[int]:
        return [random.randrange(4)]


def model_spec(
    create: Callable[[ModelAgentContext], Any], **fields: Any
) -> ModelAgentSpec:
    return ModelAgentSpec(
        **{"name": "asks", "create": create, "summary": "for tests", **fields}
    )


def test_a_good_model_agent_passes() -> None:
    assert_agent_sound(model_spec(Asking))


@pytest.mark.parametrize(
    ("create", "rule", "said"),
    [
        (
            Impure,
            "prompts are a function of the past",
            "prompt() called twice returns two different prompts",
        ),
        (
            Twice,
            "prompts are a function of the past",
            "prompt() called twice returns two different prompts",
        ),
        (
            OddTally,
            "prompts are a function of the past",
            "tally() counts 'calls' as 1.5",
        ),
        (
            Answering,
            "prompts are a function of the past",
            "the last message is not the user's",
        ),
        (Marking, "constant messages", "message 1 of a prompt is declared constant"),
        (Strict, "any reply", "read() raises IndexError (list index out of range) at"),
        (
            NeverGivesUp,
            "trials end",
            "a trial takes over 2000 calls: read() never gives up",
        ),
        (
            Together,
            "independent subjects",
            "changes the prompts of another: they share state",
        ),
        (
            LastBegun,
            "independent subjects",
            "changes the prompts of another: they share state",
        ),
        (Dicing, "no global randomness", "draws from the global 'random'"),
        (
            Dicing,
            "same seed, same prompts",
            "ask or act differently after the same replies",
        ),
    ],
)
def test_a_wrong_model_agent_is_failed(
    create: Callable[[ModelAgentContext], Any], rule: str, said: str
) -> None:
    assert said in told(broken_agent_rules(model_spec(create)))[rule]


def refuse(settings: Mapping[str, Any]) -> None:
    raise ValueError("never")


def test_settings_must_be_plain_and_their_own_check_must_take_them() -> None:
    assert names(broken_agent_rules(model_spec(Asking, settings={"x": {1, 2}}))) == {
        "settings"
    }
    assert names(broken_agent_rules(model_spec(Asking, check=refuse))) == {"settings"}


def good(puzzle: Puzzle, question: str, seed: int) -> str:
    return puzzle.say(random.Random(seed).choice(puzzle.walks()))


def test_respondents() -> None:
    spec = RespondentSpec("right", good, summary="for tests")
    assert_respondent_sound(spec)
    dicing = dataclasses.replace(
        spec, reply=lambda puzzle, question, seed: str(random.random())
    )
    assert names(broken_respondent_rules(dicing)) == {
        "same seed, same answer",
        "no global randomness",
    }
    silent = dataclasses.replace(spec, reply=lambda puzzle, question, seed: "")
    assert told(broken_respondent_rules(silent)) == {
        "answers in words": "answers '', but a non-empty string is expected"
    }
