"""Runs one subject, trial after trial, alone or as a job. Its agent acts by itself or
asks a language model.
"""

from __future__ import annotations

import copy
import hashlib
import random
import traceback
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cheesebench.chat import (
    AnswerForm,
    ChatReply,
    ChatRequest,
    Message,
    ModelAgent,
    ModelAgentContext,
    ModelAgentSpec,
    Sampling,
    without_system,
)
from cheesebench.errors import CheeseBenchError, OptionError, PluginError, raised_where
from cheesebench.executor import Job, Report
from cheesebench.experiment.calling import (
    BudgetSpentError,
    SubjectStoppedError,
    UnansweredError,
)
from cheesebench.experiment.controls import UnrewardedSubject, controlled, lesion_of
from cheesebench.family import Family, P, S, SubjectContext
from cheesebench.interface_checks import checked, returned, returned_list, shown
from cheesebench.interfaces import (
    Agent,
    AgentContext,
    AgentSpec,
    ObservableSubject,
    Paradigm,
    ReadableView,
    SubjectEnvironment,
    TaskEvent,
    TrialResult,
    Value,
)
from cheesebench.lesions import Lesion
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import CellPlan, TrialRecord
from cheesebench.trial_loop import AgentFaultError, Interrupts, TrialLoop, agents_own

if TYPE_CHECKING:
    from cheesebench.family import Asker, Plugins, Trial
    from cheesebench.interfaces import View

A = TypeVar("A", "Agent", "ModelAgent")


class LesionedAgent(Generic[A]):
    """The agent of one life. When its lesion makes it forget, it is created anew, or
    returned to its state at the beginning of the trial.

    ``create`` takes a seed. The first agent has the seed of the plain cell's subject.
    Each later one has another seed, because an agent that draws random numbers would
    otherwise draw the same ones again.
    """

    def __init__(self, create: Callable[[int], A], seed: int, lesion: Lesion) -> None:
        self._create: Callable[[int], A] = create
        self._seed, self._lesion = seed, lesion
        self.agent: A = create(seed)
        self._made = 0
        self._state = ""
        #: Counters of earlier agents in this trial.
        self._counted: Counter[str] = Counter()
        #: Whether memory can be lost within a trial.
        self._forgetful = lesion.memoryless or bool(lesion.forgets_at)
        #: The states of ``forgets_at`` that have not been entered in this trial.
        self._left = set[str]()
        #: A copy of the agent as it was when the trial began, or None if its lesion
        #: does not return it to that state.
        self._kept: A | None = None

    def begin_trial(
        self, life: SubjectEnvironment, trial: int, observation: str
    ) -> None:
        """Begin trial number ``trial`` (from 0)."""
        self._counted.clear()
        self._state = self._state_of(life) if self._forgetful else ""
        if trial and (self._lesion.forgets_trials or self._lesion.memoryless):
            self._renew()
        if self._lesion.forgets_at and not self._lesion.memoryless:
            self._left = {*self._lesion.forgets_at} - {self._state}
            self._kept = self._copied(self.agent)
        with agents_own():
            self.agent.begin_trial(observation)

    def loop(
        self, life: SubjectEnvironment, observation: str, plan: CellPlan
    ) -> TrialLoop:
        """Return the loop of the trial that has begun. When memory is lost, the loop
        drops the rest of a plan.
        """
        simple = not (plan.agent or self._forgetful)
        return TrialLoop(
            life,
            observation,
            self.agent.observe if simple else lambda *step: self.agent.observe(*step),
            (lambda seen: self._forgets(life, seen)) if self._forgetful else None,
            interrupts=interrupts_of(plan),
            listener=lambda: self.agent,
            agent=plan.model,
            protocol=plan.protocol,
        )

    def _forgets(self, life: SubjectEnvironment, observation: str) -> bool:
        """Return whether the last step erased memory. If so, ``agent`` is a new one,
        started with ``observation``.
        """
        self._state = self._state_of(life)
        if not (self._lesion.memoryless or self._state in self._left):
            return False
        self._left.discard(self._state)
        with agents_own():
            self._counted.update(self._tally())
            self._renew()
            self.agent.begin_trial(observation)
        return True

    def tally(self) -> Mapping[str, int]:
        """Return the counters of this trial, summed over its agents."""
        own = self._tally()
        return {
            name: own.get(name, 0) + self._counted[name]
            for name in {**own, **self._counted}
        }

    def _tally(self) -> Mapping[str, int]:
        tally = getattr(self.agent, "tally", None)
        return {} if tally is None else dict(tally())

    def _renew(self) -> None:
        self._made += 1
        hashed = hashlib.blake2b(
            f"{self._seed}|{self._made}".encode(), digest_size=8
        ).digest()
        seed = int.from_bytes(hashed, "big") >> 1
        self.agent = (
            self._create(seed) if self._kept is None else self._copied(self._kept, seed)
        )

    def _copied(self, agent: A, seed: int | None = None) -> A:
        """Return a copy of an agent. If a seed is given, the copy's random generators
        restart from it. Raise OptionError for an agent that cannot be copied.
        """
        parts: dict[int, Any] = {}
        try:
            twin = copy.deepcopy(agent, parts)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            remedy = (
                f"The agent cannot be copied ({why}), so it cannot return to the beginning of a trial. Use --control "
                "memoryless."
            )
            raise OptionError(f"--control {self._lesion}: {remedy}") from error
        if seed is not None:
            for part in parts.values():
                if isinstance(part, random.Random):
                    part.seed(seed)
                elif hasattr(part, "bit_generator"):
                    part.bit_generator.state = type(part.bit_generator)(seed).state
        return twin

    def _state_of(self, life: SubjectEnvironment) -> str:
        if isinstance(life, ObservableSubject | UnrewardedSubject):
            return life.state
        raise OptionError(
            f"--control {self._lesion}: this environment does not expose its states."
        )


def interrupts_of(plan: CellPlan) -> Interrupts:
    """Return the events at which subjects of the cell drop the rest of a plan.

    An agent that acts by itself drops nothing: it observes every step, and decides how
    many actions to return. A model without a history drops the rest at least when it is
    held or moved, so that a plan cannot serve as memory.
    """
    if not plan.agent:
        return "never"
    if plan.settings.get("interrupt", "change") == "change":
        return "change"
    return "boundary" if str(plan.settings.get("history")) == "0" else "never"


def agent_seed(plan: CellPlan, seed: int, subject: int) -> int:
    """Return the 63-bit seed of this subject's agent. It depends neither on the process
    nor on the order in which subjects run.
    """
    origin = f"{plan.sha256}|{seed}|{subject}|{plan.model}|{plan.view}"
    return int.from_bytes(hashlib.sha256(origin.encode()).digest()[:8], "big") >> 1


def run_subject(
    paradigm: Paradigm,
    view: View,
    agent: AgentSpec,
    plan: CellPlan,
    seed: int,
    subject: int,
) -> Iterator[tuple[TrialRecord, Sequence[TaskEvent]]]:
    """Run ``subject`` under the run's ``seed``, yielding each finished trial with its
    events.

    The run ends with the schedule, or after ``plan.trials`` trials. Raise
    AgentFaultError if the agent raises, or returns something that is not an action. The
    trial in which this happens has no record.
    """
    life = environment_of(paradigm, view, plan, seed, subject)
    who = f"The agent '{agent.name}': create returned"
    lesioned = LesionedAgent(
        lambda own: checked(
            agent.create(AgentContext(seed=own, view=plan.view)), Agent, who
        ),
        agent_seed(plan, seed, subject),
        lesion_of(plan),
    )
    for trial in range(plan.trials):
        observation = first_observation(life, plan, trial)
        if observation is None:
            return
        lesioned.begin_trial(life, trial, observation)
        loop = lesioned.loop(life, observation, plan)
        while not loop.ended:
            with agents_own():
                actions = lesioned.agent.act(loop.observation)
            loop.act(actions)
        result = result_of(life, plan)
        yield trial_record(plan, subject, trial, result, **loop.done), result.events


def environment_of(
    paradigm: Paradigm, view: View, plan: CellPlan, seed: int, subject: int
) -> SubjectEnvironment:
    """Return the environment of a subject. Raise PluginError if it lacks a method or
    an attribute.
    """
    who = f"The paradigm of {plan.protocol}: environment returned"
    return checked(paradigm.environment(view, seed, subject), SubjectEnvironment, who)


def first_observation(
    life: SubjectEnvironment, plan: CellPlan, trial: int
) -> str | None:
    """Begin the trial with this number (from 0), and return its first observation, or
    None after the last trial. Raise PluginError for a result that is not an
    observation.
    """
    observation: object = life.begin_trial()
    if isinstance(observation, str) or (observation is None and trial):
        return observation
    raise PluginError(
        f"The environment of {plan.protocol}: begin_trial returned {shown(observation)}, for trial {trial + 1}. Return the "
        "first observation, as text."
    )


def result_of(life: SubjectEnvironment, plan: CellPlan) -> TrialResult:
    """Return the result of the ended trial. Raise PluginError if it is not a
    TrialResult.
    """
    return returned(
        life.result(), TrialResult, f"The environment of {plan.protocol}: result"
    )


def trial_record(
    plan: CellPlan, subject: int, trial: int, result: TrialResult, **done: Any
) -> TrialRecord:
    """Return the record of a finished trial. ``done`` are the fields that depend on the
    agent's actions.
    """
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
    """Return a copy that later changes to the environment's lists do not affect."""
    return {
        name: list(value) if isinstance(value, list) else value
        for name, value in values.items()
    }


#: After this many empty replies in a row, the server counts as broken. Fewer empty
#: replies count as the model's own behaviour.
EMPTY_IN_A_ROW = 10
#: Maximum number of calls in a row that an agent may make before it acts.
ASKS_IN_A_ROW = 20
#: Seeds of calls are 31-bit numbers, because some servers take no larger ones.
_SEED_BITS = 31


def create_agent(
    agent: ModelAgentSpec,
    view: View,
    plan: CellPlan,
    seed: int,
    subject: int,
    own: int | None = None,
) -> ModelAgent:
    """Return the agent of this subject, with the settings of its cell. ``view`` is the
    view of the plan.

    ``own`` is the seed of an agent that a lesion has recreated.
    """
    settings = {name: plan.settings[name] for name in agent.settings}
    reading = view.reading if isinstance(view, ReadableView) else ""
    own = agent_seed(plan, seed, subject) if own is None else own
    reasons = bool(plan.settings.get("reasoning", False))
    context = ModelAgentContext(
        seed=own, view=plan.view, settings=settings, reading=reading, reasoning=reasons
    )
    return checked(
        agent.create(context), ModelAgent, f"The agent '{agent.name}': create returned"
    )


async def converse(
    paradigm: Paradigm,
    view: View,
    agent: ModelAgentSpec,
    plan: CellPlan,
    seed: int,
    subject: int,
    caller: Asker,
) -> AsyncGenerator[tuple[TrialRecord, Sequence[TaskEvent]], None]:
    """Run ``subject`` under the run's ``seed``, yielding each finished trial with its
    events.

    Raise SubjectStoppedError or BudgetSpentError if no reply can be obtained, and
    AgentFaultError as ``run_subject`` does.
    """
    life = environment_of(paradigm, view, plan, seed, subject)
    origin = agent_seed(plan, seed, subject)
    lesioned = LesionedAgent(
        lambda own: create_agent(agent, view, plan, seed, subject, own),
        origin,
        lesion_of(plan),
    )
    conversation = _Conversation(lesioned, caller, origin, agent.form(plan.settings))
    for trial in range(plan.trials):
        observation = first_observation(life, plan, trial)
        if observation is None:
            return
        lesioned.begin_trial(life, trial, observation)
        loop = lesioned.loop(life, observation, plan)
        try:
            while not loop.ended:
                loop.act(await conversation.actions(trial))
        except UnansweredError as error:
            error.tally = lesioned.tally()
            raise
        result, tally = result_of(life, plan), dict(lesioned.tally())
        yield (
            trial_record(plan, subject, trial, result, **loop.done, tally=tally),
            result.events,
        )


class _Conversation:
    def __init__(
        self,
        agent: LesionedAgent[ModelAgent],
        caller: Asker,
        origin: int,
        form: AnswerForm | None,
    ) -> None:
        self._agent = agent
        self._caller = caller
        self._origin = origin
        self._form = form
        self._asked = 0
        self._silence = SilenceWatch()

    async def actions(self, trial: int) -> Sequence[int]:
        for _ in range(ASKS_IN_A_ROW):
            reply = await self._caller.ask(trial, self._request())
            with agents_own():
                actions = self._agent.agent.read(reply)
            if not hasattr(actions, "__len__"):
                who = f"The agent '{self._caller.plan.agent}'"
                raise PluginError(
                    f"{who}: read returned {shown(actions)}. Return a list of actions such as [0]."
                )
            self._caller.read_as(actions, self._agent.tally)
            self._silence.see(reply)
            if actions:
                return actions
        raise SubjectStoppedError(
            f"the agent '{self._caller.plan.agent}' asked {ASKS_IN_A_ROW} times and did not act"
        )

    def _request(self) -> ChatRequest:
        settings = self._caller.plan.settings
        self._asked += 1
        with agents_own():
            prompt = self._agent.agent.prompt()
            messages = returned_list(
                prompt, Message, f"The agent '{self._caller.plan.agent}': prompt"
            )
        # Each call has its own seed, because a server that caches replies would
        # otherwise repeat one.
        seed = (
            None
            if "seed" in settings["dropped"]
            else call_seed(self._origin, self._asked)
        )
        return ChatRequest(
            model=settings["id"],
            messages=without_system(tuple(messages))
            if "system" in settings["dropped"]
            else tuple(messages),
            sampling=Sampling(
                temperature=settings.get("temperature"),
                max_tokens=settings.get("max_tokens"),
                seed=seed,
                stop=tuple(settings.get("stop", ())),
            ),
            conversation=f"{self._origin:016x}",
            extra=settings["served"],
            form=self._form,
        )


class SilenceWatch:
    """Counts empty replies. Raises SubjectStoppedError after too many in a row."""

    def __init__(self) -> None:
        self._empty = 0

    def see(self, reply: ChatReply) -> None:
        # A reply that was cut off during its reasoning is the model's own behaviour, if
        # the server reports that there was reasoning. Otherwise, a reply that was cut
        # off before any text counts as empty.
        thought = reply.reasoning.strip() or (
            reply.finish == "length" and reply.usage.reasoning
        )
        silent = not (reply.text.strip() or thought or reply.finish == "unread")
        self._empty = self._empty + 1 if silent else 0
        if self._empty >= EMPTY_IN_A_ROW:
            raise SubjectStoppedError(
                f"{EMPTY_IN_A_ROW} empty replies in a row: the server does not work properly"
            )


def call_seed(origin: int, number: int) -> int:
    hashed = hashlib.blake2b(f"{origin}|{number}".encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big") >> (64 - _SEED_BITS)


class StepwiseSubjects(Family[S, P]):
    """The base class of a family whose subjects act step by step."""

    def live(self, paradigm: P, context: SubjectContext) -> Iterator[Trial]:
        """Run an agent without a language model."""
        plan = context.plan
        agent = context.plugins.agent(plan.model, plan.protocol)
        return run_subject(
            paradigm,
            context.plugins.view(plan.view),
            agent,
            plan,
            context.seed,
            context.subject,
        )

    def converse(
        self, paradigm: P, context: SubjectContext, asker: Asker
    ) -> AsyncGenerator[Trial, None]:
        """Run a language model with its agent."""
        plan, agent = context.plan, context.plugins.model_agent(context.plan.agent)
        return converse(
            paradigm,
            context.plugins.view(plan.view),
            agent,
            plan,
            context.seed,
            context.subject,
            asker,
        )


# -- jobs: subjects that run on any processor

#: Maximum number of paradigms that a job runner caches. The subjects of a cell follow
#: one another, so caching more would only fill the memory.
MOST_PARADIGMS = 2
#: Why trials were not run, by exception. Any other exception counts as a fault of the
#: infrastructure.
_CAUSES: dict[type[Exception], str] = {BudgetSpentError: "budget"}


class ParadigmCache:
    """Compiled paradigms by protocol and control. At most ``most`` are kept (None means
    all): the oldest is dropped first.
    """

    def __init__(self, plugins: Plugins, most: int | None = None) -> None:
        self._plugins = plugins
        self._most = most
        self._paradigms: dict[tuple[str, str], Paradigm] = {}

    def paradigm(self, job: Job) -> Paradigm:
        # A yoked subject has a paradigm of its own, derived from the plain one.
        plan, yoke = job.plan, job.yoke
        key = (plan.protocol, plan.control if yoke is None else "")
        if key not in self._paradigms:
            if len(self._paradigms) == self._most:
                del self._paradigms[next(iter(self._paradigms))]
            plain = self._plugins.compile(job.specification)
            self._paradigms[key] = (
                plain if yoke is not None else controlled(plain, plan, job.seed)
            )
        found = self._paradigms[key]
        return (
            found
            if yoke is None
            else controlled(found, plan, job.seed, lambda subject: yoke)
        )


class JobRunner:
    """Runs jobs with the given plugins, and caches compiled paradigms between jobs. The
    class is not thread-safe.
    """

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._cache = ParadigmCache(plugins, MOST_PARADIGMS)

    def live(self, job: Job) -> Iterator[Trial]:
        """Yield every finished trial of the job's subject, with its fired rules.

        Exceptions of the agent, the view or the environment propagate.
        """
        context = SubjectContext(
            plugins=self._plugins, plan=job.plan, seed=job.seed, subject=job.subject
        )
        return self._plugins.family(job.specification).live(
            self._cache.paradigm(job), context
        )

    def reports(self, job: Job) -> Generator[Report, None, None]:
        """Yield the reports of a job: one for each finished trial, and a last one that
        says how the job ended.

        If the agent, the view or the environment raises, the last report tells of the
        exception. The same holds for an exception that is thrown into the generator
        because a report could not be sent.
        """
        trials = 0
        try:
            for record, events in self.live(job):
                yield Report(trials=((record, tuple(events)),))
                trials += 1
        except GeneratorExit:
            raise
        except BaseException as error:
            # BaseException is caught, because sys.exit() and pytest.fail() must not end
            # the worker.
            yield stopped(trials, error)
        else:
            yield Report(ended=True)


@lru_cache(maxsize=1)
def _installed_runner() -> JobRunner:
    return JobRunner(installed_plugins())


def run_job(job: Job) -> Generator[Report, None, None]:
    """Run a job in this process with the installed plugins, and yield its reports. The
    function is not thread-safe.
    """
    return _installed_runner().reports(job)


def stopped(trials: int, error: BaseException) -> Report:
    """Return the last report of a job that ``error`` ended in trial number ``trials``
    (from 0).
    """
    if isinstance(error, AgentFaultError):
        error = error.__cause__ or error
    explained = isinstance(error, CheeseBenchError) and not isinstance(
        error, PluginError
    )
    return Report(
        tally=getattr(error, "tally", {}),
        notes=() if explained else [("traceback", _traceback(error))],
        ended=True,
        missing=next(
            (name for kind, name in _CAUSES.items() if isinstance(error, kind)),
            "infrastructure",
        ),
        cause=" ".join(f"stopped in trial {trials + 1}: {raised_where(error)}".split()),
    )


def _traceback(error: BaseException) -> str:
    """Return the traceback of an error, without carets.

    To place carets, Python parses the source lines, and up to 3.11.8 concurrent parsing
    in two threads fails (SystemError, "AST constructor recursion depth mismatch").
    pytest parses in the main thread while subjects run in others.
    """
    captured = traceback.TracebackException.from_exception(error)
    chain: list[traceback.TracebackException | None] = [captured]
    while chain:
        one = chain.pop()
        if one is not None:
            chain += [one.__cause__, one.__context__, *(one.exceptions or ())]
            for frame in one.stack:
                frame.colno = None
    return "".join(captured.format())
