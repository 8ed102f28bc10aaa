"""Runs one subject: an agent with its own memory and seed, trial after trial."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from cheesebench.errors import PluginError
from cheesebench.experiment.lesioned import Mind, lesion_of
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.interface_checks import checked, misfit, returned, shown
from cheesebench.interfaces import (
    ACTION_LETTERS,
    RUNNING,
    STAY,
    WAITED_LETTER,
    Agent,
    AgentContext,
    AgentSpec,
    Paradigm,
    SubjectEnvironment,
    TaskEvent,
    TrialResult,
    Value,
)

if TYPE_CHECKING:
    from cheesebench.interfaces import View

#: A dict and not the string itself: ``-1`` must not count as an action, and numpy's integers may.
_LETTER_OF = dict(enumerate(ACTION_LETTERS))


def agent_seed(plan: CellPlan, seed: int, subject: int) -> int:
    """Return the 63-bit seed of this subject's agent, which does not depend on process or order."""
    origin = f"{plan.sha256}|{seed}|{subject}|{plan.model}|{plan.view}"
    return int.from_bytes(hashlib.sha256(origin.encode()).digest()[:8], "big") >> 1


def live(
    paradigm: Paradigm, view: View, agent: AgentSpec, plan: CellPlan, seed: int, subject: int
) -> Iterator[tuple[TrialRecord, Sequence[TaskEvent]]]:
    """Run ``subject`` under the run's ``seed``, yielding each finished trial with its events.

    It ends with the schedule, or after ``plan.trials`` trials. Exceptions of the agent propagate; raises PluginError if
    it returns something that is not an action.
    """
    life = environment_of(paradigm, view, plan, seed, subject)
    who = f"The agent '{agent.name}': create returned"
    mind = Mind(
        lambda own: checked(agent.create(AgentContext(seed=own, view=plan.view)), Agent, who),
        agent_seed(plan, seed, subject),
        lesion_of(plan),
    )
    for trial in range(plan.trials):
        observation = first_observation(life, plan, trial)
        if observation is None:
            return
        mind.begin_trial(life, trial, observation)
        try:
            actions, reward = _run_trial(life, mind, plan.model, observation)
        except (TypeError, ValueError) as error:
            if _is_of_step(error):
                raise PluginError(
                    f"The environment of {plan.protocol}: step returned something else than observation, reward and "
                    f"status ({error}). Return these three."
                ) from error
            raise
        result = result_of(life, plan)
        record = trial_record(plan, subject, trial, result, reward=reward, steps=len(actions), actions=actions)
        yield record, result.events


def environment_of(paradigm: Paradigm, view: View, plan: CellPlan, seed: int, subject: int) -> SubjectEnvironment:
    """Return the environment of a subject. Raises PluginError if a family's paradigm or environment lacks something."""
    who = f"The paradigm of {plan.protocol}"
    if fault := misfit(paradigm, Paradigm):
        raise PluginError(f"{who}: compile returned {fault}")
    return checked(paradigm.environment(view, seed, subject), SubjectEnvironment, f"{who}: environment returned")


def first_observation(life: SubjectEnvironment, plan: CellPlan, trial: int) -> str | None:
    """Begin the trial of this number (from 0); None after the last. Raises PluginError for what is no observation."""
    observation: object = life.begin_trial()
    if isinstance(observation, str) or (observation is None and trial):
        return observation
    raise PluginError(
        f"The environment of {plan.protocol}: begin_trial returned {shown(observation)}, for trial {trial}. Return the "
        "first observation, as text."
    )


def result_of(life: SubjectEnvironment, plan: CellPlan) -> TrialResult:
    """Return the result of the trial that has ended. Raises PluginError if it is none."""
    return returned(life.result(), TrialResult, f"The environment of {plan.protocol}: result")


def _is_of_step(error: Exception) -> bool:
    """Return whether an error was raised in ``_run_trial`` itself, where ``step`` is unpacked, not in what it calls."""
    trace = error.__traceback__
    return trace is not None and trace.tb_next is not None and trace.tb_next.tb_next is None


def _run_trial(life: SubjectEnvironment, mind: Mind[Agent], name: str, observation: str) -> tuple[str, float]:
    """Run the trial that has begun to its end; return the letters of its actions and the sum of its rewards."""
    step, act, observe, forgetful = life.step, mind.agent.act, mind.agent.observe, mind.forgetful
    letters: list[str] = []
    note = letters.append
    total = 0.0
    status = RUNNING
    while status == RUNNING:
        if life.waiting:
            observation, reward, status = step(STAY)
            total += reward
            note(WAITED_LETTER)
            observe(STAY, reward, observation, status != RUNNING)
            if forgetful and status == RUNNING and mind.forgets(life, observation):
                act, observe = mind.agent.act, mind.agent.observe
            continue
        actions = act(observation)
        try:
            chosen = iter(actions)
        except TypeError:
            raise PluginError(f"The agent '{name}' returned {actions!r}, not a list of actions such as [0].") from None
        action = None
        for action in chosen:
            note(letter_of(name, action))
            observation, reward, status = step(action)
            total += reward
            observe(action, reward, observation, status != RUNNING)
            if status != RUNNING:
                break
            if forgetful and mind.forgets(life, observation):
                # What else was planned is forgotten, too.
                act, observe = mind.agent.act, mind.agent.observe
                break
        if action is None:
            raise PluginError(f"The agent '{name}' returned no action. To wait, return 3 (STAY).")
    return "".join(letters), total


def letter_of(agent: str, action: object) -> str:
    """Return the letter of an action. Raises PluginError if it is not an action."""
    try:
        return _LETTER_OF[index(action)]  # type: ignore[arg-type]
    except (KeyError, TypeError):
        raise PluginError(
            f"The agent '{agent}' returned the action {action!r}. "
            "Actions are 0 (FORWARD), 1 (ROTATE_LEFT), 2 (ROTATE_RIGHT) and 3 (STAY)."
        ) from None


def trial_record(plan: CellPlan, subject: int, trial: int, result: TrialResult, **done: Any) -> TrialRecord:
    """Return the record of a finished trial; ``done`` are the fields that depend on the agent's actions."""
    return TrialRecord(
        model=plan.model,
        protocol=plan.protocol,
        view=plan.view,
        variant=str(plan.variant),
        subject=subject,
        trial=trial,
        **done,
        **read_result(result),
    )


def read_result(result: TrialResult) -> dict[str, Any]:
    """Return the fields of a record that come from the environment."""
    return {
        "block": result.block,
        "session": result.session,
        "outcome": result.outcome,
        "success": result.success,
        "compared": result.compared,
        "path_length": result.path_length,
        "bumps": result.bumps,
        "counters": dict(result.counters),
        "measures": _kept(result.measures),
        "variables": _kept(result.variables),
    }


def _kept(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return a copy that later changes of the environment's lists do not affect."""
    return {name: list(value) if isinstance(value, list) else value for name, value in values.items()}
