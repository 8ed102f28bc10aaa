"""The calls of a replayed trial: the step of each call, and the agent's own notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.chat import Learner
from cheesebench.errors import RunLogError
from cheesebench.interfaces import ACTION_OF_LETTER, WAITED_LETTER

if TYPE_CHECKING:
    from cheesebench.chat import ModelAgent
    from cheesebench.experiment.call_log import CallRecord
    from cheesebench.experiment.replay import Frame


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A call with ``step``, the number of steps executed before it.

    ``learnings`` is what the agent kept from the reply ("" for an agent that does not expose it).
    """

    record: CallRecord
    step: int
    learnings: str


def replay_calls(agent: ModelAgent, frames: Sequence[Frame], calls: Iterable[CallRecord]) -> list[ReplayedCall]:
    """Let ``agent`` live a filmed trial with the replies that it had; it must have lived all trials before that one.

    The log does not say which actions a reply led to, but the agent does, once more. Raises RunLogError where it acts
    otherwise than recorded.
    """
    agent.begin_trial(frames[0].observation)
    replayed = []
    step = 0
    for record in calls:
        step = _wait(agent, frames, step)
        if step + 1 == len(frames):  # nobody is asked about a trial that is over
            raise _different(record)
        agent.prompt()
        asked = step
        for action in agent.read(record.reply):
            if step + 1 == len(frames):
                break
            step += 1
            letter = frames[step].action
            if letter == WAITED_LETTER or ACTION_OF_LETTER[letter] != action:
                raise _different(record)
            _observe(agent, frames, step)
        replayed.append(ReplayedCall(record, asked, agent.learnings if isinstance(agent, Learner) else ""))
    if _wait(agent, frames, step) + 1 != len(frames):
        raise _different(replayed[-1].record if replayed else None)
    return replayed


def _wait(agent: ModelAgent, frames: Sequence[Frame], step: int) -> int:
    """Let the agent observe the steps in which the subject only waited; return the number of the last one."""
    while step + 1 < len(frames) and frames[step + 1].action == WAITED_LETTER:
        step += 1
        _observe(agent, frames, step)
    return step


def _observe(agent: ModelAgent, frames: Sequence[Frame], step: int) -> None:
    frame = frames[step]
    agent.observe(ACTION_OF_LETTER[frame.action], frame.reward, frame.observation, step + 1 == len(frames))


def _different(record: CallRecord | None) -> RunLogError:
    where = "a trial without calls" if record is None else f"call {record.call} of trial {record.trial}"
    return RunLogError(
        f"After {where}, the agent acts differently than in the run. Use the version of CheeseBench, and the plugins, "
        "that the run was made with."
    )
