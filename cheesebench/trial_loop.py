"""The loop of one trial. Agents, language models, people, replays, rehearsals and the
test kits share it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import index
from typing import Any, Literal, Protocol, cast

from cheesebench.chat import Interruptible
from cheesebench.errors import PluginError
from cheesebench.interfaces import (
    ACTION_LETTERS,
    RUNNING,
    STAY,
    WAITED_LETTER,
    Situated,
)

#: Letters by action. This is a dict, because the string itself would accept -1.
_LETTER_OF = dict(enumerate(ACTION_LETTERS))


#: When the rest of a plan is dropped before the end of a trial. ``boundary`` means when
#: the subject is held or moved. ``change`` means also when the observation changes for
#: a reason other than the subject's movement, or a reward differs both from the last
#: one and from the usual price of a step.
Interrupts = Literal["never", "boundary", "change"]


class AgentFaultError(PluginError):
    """An agent failed in a trial, so the trial has no result. ``__cause__`` is the
    exception that the agent raised, if it raised one.
    """


#: Exceptions that pass through an agent's code unchanged: the first three are not its
#: fault, and the last one already blames it.
NOT_ITS_OWN = (
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    AgentFaultError,
)


@contextmanager
def agents_own() -> Iterator[None]:
    """Run an agent's code, and convert its exceptions to an AgentFaultError, except
    ``NOT_ITS_OWN``.
    """
    try:
        yield
    except NOT_ITS_OWN:
        raise
    except BaseException as error:  # This includes sys.exit().
        raise AgentFaultError(str(error)) from error


class Stepped(Protocol):
    """What the loop needs of an environment (``SubjectEnvironment``) or of its film."""

    @property
    def waiting(self) -> bool: ...

    def step(self, action: int) -> tuple[str, float, int]: ...


class TrialLoop:
    """One trial, from its first observation to its end.

    Use it with ``while not loop.ended: loop.act(...)``. The subject is asked only when
    it is free to act; frozen steps are played as STAY.

    * ``observe`` is called after every step with action, reward, observation and
      whether the trial has ended.
    * ``drops`` is called with the observation after every step that does not end the
      trial. If it returns True, the rest of the plan is dropped.
    * ``interrupts`` says when else the rest of a plan is dropped.
    * ``listener`` returns the agent. If the agent is ``Interruptible``, it may keep its
      plan, and is told when the subject is free again after being held or put
      elsewhere.
    * ``agent`` and ``protocol`` are names for error messages.
    """

    def __init__(
        self,
        life: Stepped,
        observation: str,
        observe: Callable[[int, float, str, bool], object],
        drops: Callable[[str], bool] | None = None,
        *,
        interrupts: Interrupts = "never",
        listener: Callable[[], object] | None = None,
        agent: str = "",
        protocol: str = "",
    ) -> None:
        #: The last observation, the sum of the rewards, and whether the trial has
        #: ended.
        self.observation = observation
        self.reward = 0.0
        self.ended = False
        self._life, self._observe, self._drops = life, observe, drops
        # Checked once, because checking for attributes is slower than a step.
        self._situated = life if isinstance(life, Situated) else None
        self._agent, self._protocol = agent, protocol
        self._interrupts, self._listener = interrupts, listener
        #: The last reward, the usual price of a step, and whether the subject was held
        #: or moved since it last acted.
        self._told: float | None = None
        self._price: float | None = None
        self._carried = False
        #: The executed steps, one letter each.
        self.letters: list[str] = []
        self._wait()

    @property
    def done(self) -> dict[str, Any]:
        """The fields of a trial's record that depend on the actions."""
        actions = "".join(self.letters)
        return {"actions": actions, "steps": len(actions), "reward": self.reward}

    def act(self, plan: Iterable[int]) -> None:
        """Execute the actions of a plan in order, until the plan is done or dropped, or
        the trial ends. Then play frozen steps until the subject is free.

        Raise AgentFaultError for an empty or invalid plan, an invalid action, and
        anything that the agent raises, and PluginError for an environment whose
        ``step`` does not return observation, reward and status.
        """
        given: Any = plan
        try:
            # A text is one wrong action, not a list of letters.
            chosen: Iterator[int] = iter(
                cast("Any", [given]) if isinstance(given, str) else given
            )
        except TypeError:
            raise AgentFaultError(
                f"The agent '{self._agent}' returned {plan!r}, not a list of actions such as [0]."
            ) from None
        if not isinstance(plan, list | tuple):
            with agents_own():
                chosen = iter(list(chosen))
        before = len(self.letters)
        for action in chosen:
            self.letters.append(letter_of(self._agent, action))
            if self._step(action):
                break
        if len(self.letters) == before:
            raise AgentFaultError(
                f"The agent '{self._agent}' returned no action. To wait, return [3] (STAY)."
            )
        self._wait()

    def _wait(self) -> None:
        while not self.ended and self._life.waiting:
            self.letters.append(WAITED_LETTER)
            self._step(STAY)
        listener = (
            self._listener()
            if self._carried and not self.ended and self._listener
            else None
        )
        if isinstance(listener, Interruptible):
            listener.freed(self.observation)
        self._carried = False

    def _step(self, action: int) -> bool:
        """Execute one action, and return whether the rest of the plan is dropped."""
        foreseen = self._foreseen(action)
        observation, reward, status = self._take(action)
        self.observation = observation
        self.ended = status != RUNNING
        self._let_observe(action, reward, observation)
        situated = self._situated
        carried = self._life.waiting or (situated is not None and situated.placed)
        self._carried |= carried
        unusual = self._is_unusual(reward)
        if self._drops is not None and not self.ended and self._drops(observation):
            return True
        surprised = unusual or (foreseen is not None and observation != foreseen)
        return self._ends_plan(carried, surprised) and self._is_void()

    def _let_observe(self, action: int, reward: float, observation: str) -> None:
        try:
            self._observe(action, reward, observation, self.ended)
        except NOT_ITS_OWN:
            raise
        except BaseException as error:
            raise AgentFaultError(str(error)) from error

    def _foreseen(self, action: int) -> str | None:
        """Return the observation that the subject's own movement would give, or None if
        it is not needed or not known.
        """
        if self._interrupts == "never" or self._situated is None or self._life.waiting:
            return None
        return self._situated.foreseen(action)

    def _take(self, action: int) -> tuple[str, float, int]:
        try:
            observation, reward, status = self._life.step(action)
            self.reward += reward
        except (TypeError, ValueError) as error:
            trace = error.__traceback__
            # The error was raised inside ``step``, not by unpacking its result.
            if trace is None or trace.tb_next is not None:
                raise
            raise self._odd_step(str(error)) from error
        if not isinstance(observation, str):
            raise self._odd_step(f"the observation is {observation!r:.60}, not text")
        if not isinstance(status, int):
            raise self._odd_step(f"the status is {status!r:.60}")
        return observation, reward, status

    def _odd_step(self, why: str) -> PluginError:
        return PluginError(
            f"The environment of {self._protocol}: step returned something other than observation, reward and "
            f"status ({why}). Return these three."
        )

    def _ends_plan(self, carried: bool, surprised: bool) -> bool:
        return (
            self.ended
            or (carried and self._interrupts != "never")
            or (surprised and self._interrupts == "change")
        )

    def _is_void(self) -> bool:
        """Return whether the rest of an interrupted plan is dropped. The agent may keep
        the plan, unless the trial has ended.
        """
        listener = self._listener() if self._listener else None
        kept = isinstance(listener, Interruptible) and not listener.interrupted()
        return self.ended or not kept

    def _is_unusual(self, reward: float) -> bool:
        """Return whether a reward differs both from the previous one and from the usual
        price of a step. The first reward of a trial is unusual if it is positive.
        """
        last, price = self._told, self._price
        self._told = reward
        # A single positive reward is an event, not the price of a step.
        if reward <= 0 and (price is None or reward == last):
            self._price = reward
        return reward > 0 if last is None else reward not in (last, price)


def foresight(life: Stepped, action: int) -> str | None:
    """Return the observation that the subject's own movement would give, or None if it
    is not known.
    """
    return life.foreseen(action) if isinstance(life, Situated) else None


def letter_of(agent: str, action: object) -> str:
    try:
        return _LETTER_OF[index(action)]  # type: ignore[arg-type]
    except (KeyError, TypeError):
        raise AgentFaultError(
            f"The agent '{agent}' returned the action {action!r}. "
            "Actions are 0 (FORWARD), 1 (ROTATE_LEFT), 2 (ROTATE_RIGHT) and 3 (STAY)."
        ) from None
