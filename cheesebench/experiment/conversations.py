"""Runs a subject whose agent calls a language model."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from cheesebench.chat import ChatReply, ChatRequest, Message, ModelAgent, ModelAgentContext, ModelAgentSpec, Sampling
from cheesebench.errors import PluginError
from cheesebench.experiment.calling import SubjectStoppedError
from cheesebench.experiment.lesioned import Mind, lesion_of
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.experiment.subjects import (
    agent_seed,
    environment_of,
    first_observation,
    letter_of,
    result_of,
    trial_record,
)
from cheesebench.interface_checks import checked, returned_list, shown
from cheesebench.interfaces import RUNNING, STAY, WAITED_LETTER, ReadableView, SubjectEnvironment, TaskEvent

if TYPE_CHECKING:
    from cheesebench.family import Asker
    from cheesebench.interfaces import Paradigm, View

#: Empty replies in a row after which it is the server that is broken, not the subject that is silent.
EMPTY_IN_A_ROW = 10
#: Replies in a row that an agent may refuse to act on.
ASKS_IN_A_ROW = 20
#: Seeds of calls are 31-bit numbers, because some servers take no larger ones.
_SEED_BITS = 31


def create_agent(
    agent: ModelAgentSpec, view: View, plan: CellPlan, seed: int, subject: int, own: int | None = None
) -> ModelAgent:
    """Return the agent of this subject, with the settings of its cell; ``view`` is the plan's.

    ``own`` is the seed of an agent that a lesion has recreated.
    """
    settings = {name: plan.settings[name] for name in agent.settings}
    reading = view.reading if isinstance(view, ReadableView) else ""
    own = agent_seed(plan, seed, subject) if own is None else own
    context = ModelAgentContext(seed=own, view=plan.view, settings=settings, reading=reading)
    return checked(agent.create(context), ModelAgent, f"The agent '{agent.name}': create returned")


async def converse(
    paradigm: Paradigm, view: View, agent: ModelAgentSpec, plan: CellPlan, seed: int, subject: int, caller: Asker
) -> AsyncGenerator[tuple[TrialRecord, Sequence[TaskEvent]], None]:
    """Run ``subject`` under the run's ``seed``, yielding each finished trial with its events.

    Raises SubjectStoppedError if no reply can be obtained, and whatever the agent raises.
    """
    life = environment_of(paradigm, view, plan, seed, subject)
    origin = agent_seed(plan, seed, subject)
    mind = Mind(lambda own: create_agent(agent, view, plan, seed, subject, own), origin, lesion_of(plan))
    talk = _Talk(mind, caller, origin)
    for trial in range(plan.trials):
        observation = first_observation(life, plan, trial)
        if observation is None:
            return
        mind.begin_trial(life, trial, observation)
        actions, reward = await talk.trial(life, trial)
        result = result_of(life, plan)
        done = {"reward": reward, "steps": len(actions), "actions": actions, "tally": dict(mind.tally())}
        yield trial_record(plan, subject, trial, result, **done), result.events


class _Talk:
    """One subject's side of the conversation."""

    def __init__(self, mind: Mind[ModelAgent], caller: Asker, origin: int) -> None:
        self._mind = mind
        self._caller = caller
        self._origin = origin
        self._asked = 0
        self._silence = SilenceWatch()

    async def trial(self, life: SubjectEnvironment, trial: int) -> tuple[str, float]:
        """Run the current trial to its end; return the letters of its actions and the sum of its rewards."""
        letters: list[str] = []
        total, status, mind = 0.0, RUNNING, self._mind
        while status == RUNNING:
            if life.waiting:
                observation, reward, status = life.step(STAY)
                total += reward
                letters.append(WAITED_LETTER)
                mind.agent.observe(STAY, reward, observation, status != RUNNING)
                if mind.forgetful and status == RUNNING:
                    mind.forgets(life, observation)
                continue
            for action in await self._actions(trial):
                letters.append(letter_of(self._caller.plan.model, action))
                observation, reward, status = life.step(action)
                total += reward
                mind.agent.observe(action, reward, observation, status != RUNNING)
                if status != RUNNING or (mind.forgetful and mind.forgets(life, observation)):
                    break
        return "".join(letters), total

    async def _actions(self, trial: int) -> Sequence[int]:
        for _ in range(ASKS_IN_A_ROW):
            reply = await self._caller.ask(trial, self._request())
            self._silence.see(reply)
            actions = self._mind.agent.read(reply)
            if not hasattr(actions, "__len__"):
                who = f"The agent '{self._caller.plan.agent}'"
                raise PluginError(f"{who}: read returned {shown(actions)}. Return a list of actions such as [0].")
            self._caller.read_as(actions)
            if actions:
                return actions
        raise SubjectStoppedError(f"the agent '{self._caller.plan.agent}' asked {ASKS_IN_A_ROW} times and did not act")

    def _request(self) -> ChatRequest:
        settings = self._caller.plan.settings
        self._asked += 1
        messages = returned_list(self._mind.agent.prompt(), Message, f"The agent '{self._caller.plan.agent}': prompt")
        # A different seed for each call: a server that caches replies must not repeat one.
        seed = None if "seed" in settings["dropped"] else call_seed(self._origin, self._asked)
        return ChatRequest(
            model=settings["id"],
            messages=tuple(messages),
            sampling=Sampling(
                temperature=settings.get("temperature"), max_tokens=settings.get("max_tokens"), seed=seed
            ),
            conversation=f"{self._origin:016x}",
            extra=settings["served"],
        )


class SilenceWatch:
    """Counts empty replies; raises SubjectStoppedError when there are very many in a row."""

    def __init__(self) -> None:
        self._empty = 0

    def see(self, reply: ChatReply) -> None:
        """Take notice of a reply."""
        # A reply that was cut off in the middle of reasoning is the model's own affair, and is counted as such; but
        # somebody must say that it was reasoning: a server that just cuts everything off is broken.
        thought = reply.reasoning.strip() or (reply.finish == "length" and reply.usage.reasoning)
        silent = not (reply.text.strip() or thought)
        self._empty = self._empty + 1 if silent else 0
        if self._empty >= EMPTY_IN_A_ROW:
            raise SubjectStoppedError(f"{EMPTY_IN_A_ROW} empty replies in a row: the server does not work properly")


def call_seed(origin: int, number: int) -> int:
    """Return the seed of a subject's call number ``number``."""
    hashed = hashlib.blake2b(f"{origin}|{number}".encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big") >> (64 - _SEED_BITS)
