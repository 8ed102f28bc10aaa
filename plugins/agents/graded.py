"""Learners whose skill is one number. A learner of skill ``s`` is a ``place-learner``
that is impaired in ``1 - s`` of all cases.

Their pass rates, as a function of skill, are a protocol's psychometric curve. It shows
between which skills the protocol can tell models apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from cheesebench import ACTIONS, AgentContext, AgentSpec
from cheesebench.plugins.agents.place_learner import PlaceLearner

#: Skill levels for which there is an agent, in per cent. 100 would be
#: ``place-learner``, 0 ``random``.
SKILLS = (40, 60, 80, 90)


class GradedLearner:
    """A place learner that is impaired in ``1 - skill`` of all cases.

    The impairments are random steps, trials that begin with an empty memory, and trials
    in which landmarks that are digits are confused.
    """

    def __init__(self, context: AgentContext, skill: float) -> None:
        self._random = random.Random(context.seed)
        self._context, self._loss = context, 1 - skill
        self._learner = PlaceLearner(context)
        self._mistaken: dict[int, str] = {}

    def begin_trial(self, observation: str) -> None:
        """Start a trial, possibly with an empty memory or confused landmarks."""
        if self._fails():
            seed = self._random.getrandbits(63)
            self._learner = PlaceLearner(
                AgentContext(seed=seed, view=self._context.view)
            )
        digits = sorted({one for one in observation if one.isdecimal()})
        taken_for = (
            self._random.sample(digits, len(digits)) if self._fails() else digits
        )
        self._mistaken = {
            ord(one): other for one, other in zip(digits, taken_for, strict=True)
        }
        self._learner.begin_trial(self._seen(observation))

    def act(self, observation: str) -> Sequence[int]:
        if self._fails():
            return (self._random.randrange(len(ACTIONS)),)
        return self._learner.act(self._seen(observation))

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Learn from the observation, with its landmarks possibly confused."""
        self._learner.observe(action, reward, self._seen(observation), ended)

    def _fails(self) -> bool:
        return self._random.random() < self._loss

    def _seen(self, observation: str) -> str:
        return observation.translate(self._mistaken)


def graded(skill: int) -> AgentSpec:
    """Return the agent with a skill in per cent, such as ``graded-60`` for 60."""
    create: Callable[[AgentContext], GradedLearner] = partial(
        GradedLearner, skill=skill / 100
    )
    summary = f"`place-learner`, impaired in {100 - skill} % of its steps and trials"
    return AgentSpec(f"graded-{skill}", create, memory="life", summary=summary)


GRADED = tuple(graded(skill) for skill in SKILLS)
