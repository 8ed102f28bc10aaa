"""A rehearsal without a model: the number of trials that count, the longest prompt, the most calls per step."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cheesebench.chat import ChatReply, ChatRequest, Message, ModelAgent, ModelAgentContext
from cheesebench.experiment.conversations import ASKS_IN_A_ROW
from cheesebench.experiment.event_loop import run_blocking
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.experiment.subjects import agent_seed, read_result
from cheesebench.interfaces import ACTIONS, RUNNING, STAY

if TYPE_CHECKING:
    from cheesebench.experiment.contestants import LanguageModel
    from cheesebench.family import Family, Seat
    from cheesebench.interfaces import Paradigm, SubjectEnvironment, View
    from cheesebench.protocol import Specification

#: Tokens that a server puts around a message, at most.
PER_MESSAGE = 16
#: Tokens that a picture counts for, at most, as far as providers say.
PER_PICTURE = 2000
#: Prompts that are written in a rehearsal: the histories of all agents are full by then.
PROMPTS = 60
#: A reply that turns (every step shows something new) and that fills whatever an agent keeps of replies.
REPLY = f"LEARNINGS: {'x' * 4000}\nACTIONS: ROTATE_LEFT"


@dataclass(frozen=True, slots=True)
class LongestPrompt:
    """The longest prompt of a rehearsal: bytes of text other than replies; replies, pictures, messages."""

    text: int = 0
    replies: int = 0
    pictures: int = 0
    messages: int = 0

    def tokens(self, reply_tokens: int) -> int:
        """Return an upper bound of its tokens, with at least one byte per token and ``reply_tokens`` per past reply."""
        return self.text + self.replies * reply_tokens + self.pictures * PER_PICTURE + self.messages * PER_MESSAGE


def random_life(paradigm: Paradigm, view: View, plan: CellPlan, seed: int) -> list[TrialRecord]:
    """Return the trials of a subject that moves at random: which trials count does not depend on its actions."""
    life = paradigm.environment(view, seed, 0)
    choices = random.Random(seed)
    model, protocol, name, variant = plan.key
    records: list[TrialRecord] = []
    while len(records) < plan.trials and life.begin_trial() is not None:
        status = RUNNING
        while status == RUNNING:
            status = life.step(STAY if life.waiting else choices.randrange(len(ACTIONS)))[2]
        found = read_result(life.result())
        records.append(
            TrialRecord(
                model=model, protocol=protocol, view=name, variant=variant, subject=0, trial=len(records), **found
            )
        )
    return records


def most_steps(specification: Specification) -> int | None:
    """Return the maximum steps of a trial; None if the protocol computes the limit at run time."""
    limit = specification.limit
    if isinstance(limit, int):
        return limit
    rules = [rule for state in specification.states.values() for rule in state.rules]
    effects = [rule.effects for rule in (*rules, *specification.watch)]
    effects += [effect for state in specification.states.values() for effect in (state.entry, state.each)]
    assigned = {one.variable for effect in (*effects, specification.each) for one in effect.assignments}
    if limit in assigned:
        return None
    held: list[object] = [specification.variables[limit].initial] if limit in specification.variables else []
    held += [value for block in specification.schedule for name, value in block.set if name == limit]
    for draw in specification.draws:
        if limit in draw.columns:
            held += [row[draw.columns.index(limit)] for row in draw.rows]
    numbers = [int(value) for value in held if isinstance(value, (int, float))]
    return max(numbers, default=None)


def most_asks(model: LanguageModel, paradigm: Paradigm, view: View, plan: CellPlan) -> int:
    """Return the number of calls that the agent makes before it acts if no reply can be parsed."""
    agent = _agent(model, plan)
    observation = paradigm.environment(view, 0, 0).begin_trial()
    assert observation is not None
    agent.begin_trial(observation)
    for asked in range(1, ASKS_IN_A_ROW + 1):
        agent.prompt()
        if agent.read(ChatReply(text="")):
            return asked
    return ASKS_IN_A_ROW


def longest_prompt(model: LanguageModel, paradigm: Paradigm, view: View, plan: CellPlan) -> LongestPrompt:
    """Return the longest of a subject's first PROMPTS prompts if every reply is as long as the agent can keep."""
    agent, life = _agent(model, plan), paradigm.environment(view, 0, 0)
    longest = LongestPrompt()
    asked = 0
    while asked < PROMPTS and (observation := life.begin_trial()) is not None:
        agent.begin_trial(observation)
        status = RUNNING
        while status == RUNNING and asked < PROMPTS:
            if life.waiting:
                status = _step(life, agent, STAY)
                continue
            longest = _longer(longest, _measure(agent.prompt()))
            asked += 1
            for action in agent.read(ChatReply(text=REPLY)):
                status = _step(life, agent, action)
                if status != RUNNING:
                    break
    return longest


def rehearse_conversations(family: Family[Any, Any], paradigm: object, seat: Seat) -> list[LongestPrompt]:
    """Return every prompt of one subject of a family whose questions do not depend on the replies."""
    listener = _Listener(seat.plan)

    async def whole() -> None:
        async for _ in family.converse(paradigm, seat, listener):
            pass

    run_blocking(whole())
    return listener.prompts


class _Listener:
    """Answers every call with the same word, and measures what it was asked."""

    def __init__(self, plan: CellPlan) -> None:
        self.plan = plan
        self.prompts: list[LongestPrompt] = []

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        self.prompts.append(_measure(request.messages))
        return ChatReply(text="unknown")

    def read_as(self, actions: Sequence[int]) -> None:
        """Nothing acts here."""


def _agent(model: LanguageModel, plan: CellPlan) -> ModelAgent:
    settings: Mapping[str, Any] = {name: model.settings[name] for name in model.agent.settings}
    return model.agent.create(ModelAgentContext(seed=agent_seed(plan, 0, 0), view=plan.view, settings=settings))


def _step(life: SubjectEnvironment, agent: ModelAgent, action: int) -> int:
    observation, reward, status = life.step(action)
    agent.observe(action, reward, observation, status != RUNNING)
    return status


def _measure(prompt: tuple[Message, ...]) -> LongestPrompt:
    parts = [part for message in prompt if message.role != "assistant" for part in message.parts]
    return LongestPrompt(
        text=sum(len(part.encode()) for part in parts if isinstance(part, str)),
        replies=sum(message.role == "assistant" for message in prompt),
        pictures=sum(isinstance(part, bytes) for part in parts),
        messages=len(prompt),
    )


def _longer(one: LongestPrompt, other: LongestPrompt) -> LongestPrompt:
    """Return the maximum of each number."""
    return LongestPrompt(*(max(getattr(one, name), getattr(other, name)) for name in LongestPrompt.__slots__))
