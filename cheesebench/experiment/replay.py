"""Replays recorded subjects as films and as calls with their prompts, and checks
whether a run can be resumed.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from cheesebench.chat import Learner
from cheesebench.errors import NOT_AS_WRITTEN, RunLogError
from cheesebench.experiment import calling
from cheesebench.experiment.controls import controlled, yokes_of
from cheesebench.experiment.language_models import run_blocking
from cheesebench.experiment.log import digest, readable
from cheesebench.experiment.subjects import read_result
from cheesebench.family import SubjectContext
from cheesebench.interfaces import (
    ACTION_OF_LETTER,
    RUNNING,
    TERMINATED,
    WAITED_LETTER,
    Located,
    Situated,
)
from cheesebench.protocol import Catalogue
from cheesebench.records import CallRecord, Frame, ReplayedCall
from cheesebench.redaction import quoted, redact
from cheesebench.trial_loop import Interrupts, TrialLoop

if TYPE_CHECKING:
    from cheesebench.chat import ChatReply, ChatRequest, Message, ModelAgent
    from cheesebench.diagnostics import Diagnostic
    from cheesebench.experiment.log import RunLog
    from cheesebench.family import Plugins, RecordedRun
    from cheesebench.interfaces import (
        BaseSpecification,
        Paradigm,
        SubjectEnvironment,
        View,
    )
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellKey, CellPlan, TrialRecord


def film(
    log: RecordedRun, paradigm: Paradigm, view: View, record: TrialRecord
) -> list[Frame]:
    """Return the film (the frames) of a recorded trial. ``paradigm`` is compiled from
    the protocol that the run used.

    Raise RunLogError if the trial is missing, or the replay differs from the record.
    """
    plan = next(plan for plan in log.plans() if plan.key == record.key)
    seed = log.manifest["options"]["seed"]
    records = log.trials(plan, record.subject)[: record.trial + 1]
    lived_in = steppable(
        controlled(paradigm, plan, seed, yokes_of(plan, log.directory.parent)), plan
    )
    return replay(lived_in.environment(view, seed, record.subject), records)


def replay(life: SubjectEnvironment, records: Sequence[TrialRecord]) -> list[Frame]:
    """Replay ``records`` (a subject's trials from its first one) and return the film of
    the last of them.

    Trials depend on earlier trials, so all of them are replayed. Raise RunLogError for
    the first one that differs from its record.
    """
    last: list[Frame] = []
    for frames in films(life, records):
        last = frames
    return last


def films(
    life: SubjectEnvironment, records: Iterable[TrialRecord]
) -> Iterator[list[Frame]]:
    """Yield the film of each of ``records`` (a subject's trials from its first one),
    checked as in ``replay``.
    """
    for record in records:
        yield _replay_trial(life, record)


def recorded_protocol(
    log: RecordedRun, plan: CellPlan, plugins: Plugins | None = None
) -> BaseSpecification:
    """Return the protocol of a cell as the run used it. The text comes from the run's
    manifest, not from the protocol's file.

    ``plugins`` supply the families; None means the installed plugins. Raise
    RunLogError if this version cannot read that text, or makes a different protocol of
    it.
    """
    recorded = log.manifest["protocols"].get(plan.protocol, {})
    specification, found = _read(
        recorded.get("text", ""), f"{plan.protocol}.protocol.yaml", cast("Any", plugins)
    )
    if specification is None or specification.sha256 != plan.sha256:
        reason = found[0].sentence if found else "its meaning has changed"
        raise RunLogError(
            f"The protocol '{plan.protocol}' cannot be read as in the run ({reason}). {_REMEDY}"
        )
    return specification


@lru_cache(maxsize=32)
def _read(
    text: str, file: str, plugins: Plugins | None
) -> tuple[BaseSpecification | None, list[Diagnostic]]:
    """Return a protocol (None if it has errors) and its findings. The result is cached,
    because reading takes longer than the replay of a subject, and each subject is
    replayed by itself.
    """
    catalogue = Catalogue(families=None if plugins is None else plugins.families)
    return catalogue.inspect_text(text, file)


def recorded_paradigm(log: RecordedRun, plugins: Plugins, plan: CellPlan) -> Paradigm:
    """Return the paradigm of a cell's subjects: its recorded protocol, compiled again,
    with its control.

    Raise the errors of ``recorded_protocol``, ``controlled`` and ``yokes_of``, and
    PluginError if no plugin compiles the protocol.
    """
    compiled = plugins.compile(recorded_protocol(log, plan, plugins))
    return controlled(
        compiled,
        plan,
        log.manifest["options"]["seed"],
        yokes_of(plan, log.directory.parent),
    )


def steppable(compiled: Paradigm, plan: CellPlan) -> Paradigm:
    """Return a cell's paradigm if its subjects act step by step. Raise RunLogError
    otherwise.
    """
    if not compiled.is_stepwise:
        family = compiled.specification.family
        raise RunLogError(
            f"'{plan.protocol}' is a {family}, whose trials cannot be watched. To see its calls: cheesebench show RUN."
        )
    return compiled


def _replay_trial(life: SubjectEnvironment, record: TrialRecord) -> list[Frame]:
    if record.missing:
        raise RunLogError(
            f"{_name(record)} was not run, {record.why_missing}, so there is nothing to replay."
        )
    observation = life.begin_trial()
    if observation is None:
        raise RunLogError(
            f"{_name(record)} cannot be replayed: the schedule ends before it. {_REMEDY}"
        )
    watched = _WatchedLife(life)
    first = watched.where()
    loop = TrialLoop(watched, observation, lambda *step: None, protocol=record.protocol)
    for plan in record.actions.split(WAITED_LETTER):
        if plan and not loop.ended:
            loop.act([ACTION_OF_LETTER[letter] for letter in plan])
    if not loop.ended:
        raise RunLogError(
            f"{_name(record)} cannot be replayed: it does not end with its last action. {_REMEDY}"
        )
    if len(loop.letters) < len(record.actions):
        raise RunLogError(
            f"{_name(record)} cannot be replayed: it ends before its last action. {_REMEDY}"
        )
    frames = [Frame("", observation, 0.0, **first)]
    frames += [
        Frame(letter, seen, reward, placed, foreseen, **where)
        for letter, (seen, reward, placed, foreseen, where) in zip(
            loop.letters, watched.steps, strict=True
        )
    ]
    check_same(
        record,
        dataclasses.replace(record, **loop.done, **read_result(life.result())),
    )
    return frames


def check_end(
    log: RecordedRun,
    plugins: PluginManager,
    plan: CellPlan,
    paradigm: Paradigm,
    life: Sequence[TrialRecord],
) -> None:
    """Raise RunLogError if a subject's schedule goes on after its last recorded trial:
    the trials after it have been lost.
    """
    is_whole = len(life) >= plan.trials or any(record.missing for record in life)
    if is_whole or not paradigm.is_stepwise:
        return
    subject, seed = life[0].subject, log.manifest["options"]["seed"]
    lived = paradigm.environment(plugins.view(plan.view), seed, subject)
    replay(lived, life)
    if lived.begin_trial() is not None:
        raise _goes_on(life[-1])


def _goes_on(last: TrialRecord) -> RunLogError:
    return RunLogError(
        f"{_name(last)} is the last one recorded, but the schedule goes on. Use an undamaged copy."
    )


def check_same(record: TrialRecord, lived: TrialRecord) -> None:
    """Raise RunLogError, with the first differing field, if a replayed trial differs
    from its record.
    """
    if lived == record:
        return
    names = [field.name for field in dataclasses.fields(record)]
    name = next(one for one in names if getattr(lived, one) != getattr(record, one))
    was, now = (quoted(repr(getattr(one, name))) for one in (record, lived))
    raise RunLogError(
        f"{_name(record)} differs from the record: {name} was {was} and is now {now}. {_REMEDY}"
    )


class _WatchedLife:
    """An environment that records its steps."""

    def __init__(self, life: SubjectEnvironment) -> None:
        self._life = life
        self.steps: list[tuple[str, float, bool, bool, dict[str, Any]]] = []
        self._situated = life if isinstance(life, Situated) else None
        self._located = life if isinstance(life, Located) else None
        self._goals, self._known = frozenset[tuple[int, int]](), -1

    @property
    def waiting(self) -> bool:
        return self._life.waiting

    def step(self, action: int) -> tuple[str, float, int]:
        situated = self._situated
        foreseen = (
            None if situated is None or self.waiting else situated.foreseen(action)
        )
        observation, reward, status = self._life.step(action)
        placed = situated is not None and situated.placed
        self.steps.append(
            (observation, reward, placed, foreseen in (None, observation), self.where())
        )
        return observation, reward, status

    def where(self) -> dict[str, Any]:
        """Return the subject's position and its goals, as fields of a frame, or no
        fields if the environment does not know them.
        """
        life = self._located
        if life is None:
            return {}
        if life.happenings != self._known:
            self._goals, self._known = life.goals, life.happenings
        return {"at": life.location, "goals": self._goals}


_REMEDY = "Use the version of CheeseBench, and the plugins, that the run was made with."


def _name(record: TrialRecord) -> str:
    return f"Trial {record.trial + 1} of subject {record.subject} ({record.model} on {record.protocol}, {record.view})"


def replay_calls(
    agent: ModelAgent,
    frames: Sequence[Frame],
    calls: Iterable[CallRecord],
    interrupts: Interrupts,
) -> list[ReplayedCall]:
    """Let ``agent`` repeat a filmed trial with its recorded replies, and return its
    calls. The agent must have repeated all earlier trials.

    The log does not record which actions a reply led to, so the agent reads the reply
    again. Raise RunLogError if the agent acts differently.
    """
    life = _FilmedLife(frames)
    agent.begin_trial(frames[0].observation)
    loop = TrialLoop(
        life,
        frames[0].observation,
        agent.observe,
        interrupts=interrupts,
        listener=lambda: agent,
    )
    replayed = []
    for record in calls:
        if loop.ended:
            raise _different(record)
        agent.prompt()
        asked = life.at
        if plan := agent.read(record.reply):
            try:
                loop.act(plan)
            except _OtherActionError:
                raise _different(record) from None
        replayed.append(
            ReplayedCall(
                record, asked, agent.learnings if isinstance(agent, Learner) else ""
            )
        )
    if not loop.ended:
        raise _different(replayed[-1].record if replayed else None)
    return replayed


class _OtherActionError(Exception):
    """The agent's action differs from the filmed one."""


class _FilmedLife:
    """The environment of a filmed trial. Its steps come from the film, and every action
    must be the filmed one.
    """

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._frames = frames
        #: Number of steps executed so far.
        self.at = 0

    @property
    def waiting(self) -> bool:
        return (
            self.at + 1 < len(self._frames)
            and self._frames[self.at + 1].action == WAITED_LETTER
        )

    @property
    def placed(self) -> bool:
        return self._frames[self.at].placed

    def foreseen(self, action: int) -> str:
        frame = self._frames[self.at + 1]
        return frame.observation if frame.foreseen else f"not {frame.observation}"

    def step(self, action: int) -> tuple[str, float, int]:
        self.at += 1
        frame = self._frames[self.at]
        if ACTION_OF_LETTER[frame.action] != action:
            raise _OtherActionError
        return (
            frame.observation,
            frame.reward,
            TERMINATED if self.at + 1 == len(self._frames) else RUNNING,
        )


def _different(record: CallRecord | None) -> RunLogError:
    where = (
        "a trial without calls"
        if record is None
        else f"call {record.call + 1} of trial {record.trial + 1}"
    )
    return RunLogError(
        f"After {where}, the agent acts differently than in the run. {_REMEDY}"
    )


@dataclass(frozen=True, slots=True)
class RebuiltCall:
    """A call with its whole prompt.

    ``actions`` are the agent's actions after the reply. They are empty if the agent
    asked again, and None for a fault and in families without actions. ``unparsed`` is
    true if the agent found no action in the reply.
    """

    record: CallRecord
    request: ChatRequest
    actions: tuple[int, ...] | None
    unparsed: bool = False

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.request.messages


def rebuild_call(
    log: RunLog,
    plugins: PluginManager,
    plan: CellPlan,
    subject: int,
    trial: int,
    call: int,
) -> RebuiltCall:
    """Return call number ``call`` (from 0) of a subject's ``trial``.

    Raise RunLogError if the prompt of this call or of an earlier one differs from the
    recorded prompt, if there is no such call, or if the protocol cannot be read as the
    run used it.
    """
    return rebuild_calls(log, plugins, plan, subject, (trial, call))[-1]


def rebuild_calls(
    log: RunLog,
    plugins: PluginManager,
    plan: CellPlan,
    subject: int,
    wanted: tuple[int, int],
) -> list[RebuiltCall]:
    """Return a subject's calls up to the ``wanted`` one, which is given as (trial,
    number of the call in the trial), both from 0. Raise the errors of
    ``rebuild_call``.
    """
    trial, call = wanted
    specification = recorded_protocol(log, plan, plugins)
    paradigm = recorded_paradigm(log, plugins, plan)
    context = SubjectContext(
        plugins=plugins,
        plan=plan,
        seed=log.manifest["options"]["seed"],
        subject=subject,
    )
    memory = _Memory(log, plan, subject, wanted)

    async def live() -> None:
        async with contextlib.aclosing(
            plugins.family(specification).converse(paradigm, context, memory)
        ) as life:
            async for _ in life:
                pass

    # A family without actions never calls ``read_as``. If the wanted call is its last
    # one, no _ReachedError is raised.
    try:
        run_blocking(live())
    except _ReachedError:
        pass
    except NOT_AS_WRITTEN as error:
        # An agent or a family may raise any error here if its settings differ from the
        # recorded ones.
        raise memory.different(
            trial, call, f" ({quoted(f'{type(error).__name__}: {error}', 120)})"
        ) from error
    if not memory.reached:
        raise memory.different(trial, call)
    return memory.calls


class _ReachedError(Exception):
    """The wanted call has been made."""


class _Memory:
    """Answers calls from the log, up to the wanted call."""

    def __init__(
        self, log: RunLog, plan: CellPlan, subject: int, wanted: tuple[int, int]
    ) -> None:
        self.plan = plan
        self._subject = subject
        self._wanted = wanted
        self._records = {
            (record.trial, record.call): record
            for record in log.calls.of_life(plan, subject)
        }
        self._asked: dict[int, int] = {}
        #: Number of replies in this trial without an action.
        self._unparsed = 0
        #: The calls so far.
        self.calls: list[RebuiltCall] = []
        #: Whether the wanted call is among them.
        self.reached = False
        if wanted not in self._records:
            raise RunLogError(
                f"{self.where(*wanted)} is not in this run's log. List its calls with `cheesebench show RUN`."
            )

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        if self.reached:
            raise _ReachedError
        call = self._asked.get(trial, 0)
        self._asked[trial] = call + 1
        self._unparsed = self._unparsed if call else 0
        record = self._records.get((trial, call))
        if record is None or record.digest != digest(request):
            raise self.different(trial, call)
        self.reached = (trial, call) == self._wanted
        if record.fault is not None and not self.reached:
            raise self.different(trial, call)
        self.calls.append(RebuiltCall(record, request, None))
        if record.fault is not None:
            raise _ReachedError
        return record.reply

    def read_as(
        self, actions: Sequence[int], tally: Callable[[], Mapping[str, int]]
    ) -> None:
        unparsed = tally().get("unparsed", 0)
        self.calls[-1] = dataclasses.replace(
            self.calls[-1], actions=tuple(actions), unparsed=unparsed > self._unparsed
        )
        self._unparsed = unparsed
        if self.reached:
            raise _ReachedError

    def different(self, trial: int, call: int, why: str = "") -> RunLogError:
        return RunLogError(
            f"{self.where(trial, call)} cannot be rebuilt as recorded{why}. {_REMEDY}"
        )

    def where(self, trial: int, call: int) -> str:
        plan = self.plan
        cell = f"{plan.model} on {plan.protocol}, {plan.view}"
        return (
            f"Call {call + 1} of trial {trial + 1} of subject {self._subject} ({cell})"
        )


def check_conversation(
    log: RunLog,
    plugins: PluginManager,
    plan: CellPlan,
    paradigm: Paradigm,
    life: Sequence[TrialRecord],
) -> None:
    """Let a language model's subject live once more with the recorded replies. Raise
    RunLogError if a question or a trial differs from the record, and if trials are
    missing at the end of a whole life, or calls are left.
    """
    family = plugins.family(paradigm.specification)
    seed, subject = log.manifest["options"]["seed"], life[0].subject
    context = SubjectContext(plugins=plugins, plan=plan, seed=seed, subject=subject)
    witness = _Witness(log, plan, life)

    async def live() -> None:
        async with contextlib.aclosing(
            family.converse(paradigm, context, witness)
        ) as lives:
            async for record, _ in lives:
                witness.compare(record)

    try:
        run_blocking(live())
    except (_ReachedError, calling.UnansweredError):
        pass
    except NOT_AS_WRITTEN as error:
        raise witness.different(quoted(f"{type(error).__name__}: {error}")) from error
    witness.check_end()


def _asked_by(request: ChatRequest, record: CallRecord) -> bool:
    """Return whether a recorded call made this request. If there are pictures, only
    texts are compared, because a picture that is drawn again may have other bytes.
    """
    first, last = request.messages[0], request.messages[-1]
    pictured = any(
        isinstance(part, bytes) for one in request.messages for part in one.parts
    )
    return (
        (pictured or record.digest == digest(request))
        and _reads(record.asked, readable(last))
        and _reads(record.system, readable(first) if first.role == "system" else "")
    )


#: Text that replaces a secret.
_REDACTED = redact("api_key=00000000").removeprefix("api_key=")


def _reads(recorded: str, text: str) -> bool:
    """Return whether a recorded text stands for this one. Secrets of the environment in
    which it was recorded have been removed from it.
    """
    first, *rest = recorded.split(_REDACTED)
    # Lone surrogates cannot be stored.
    text = text.encode("utf-8", "replace").decode()
    if not rest or not text.startswith(first):
        return text == first
    *between, last = rest
    at = len(first)
    for part in between:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return text[at:].endswith(last)


class _Witness:
    """Answers the calls of a life from the log, and compares questions and trials with
    the record.
    """

    def __init__(
        self, log: RunLog, plan: CellPlan, life: Sequence[TrialRecord]
    ) -> None:
        self.plan = plan
        self._life = life
        self._ran = [record for record in life if not record.missing]
        self._calls = {
            (record.trial, record.call): record
            for record in log.calls.of_life(plan, life[0].subject)
        }
        #: Number of trials that were lived again.
        self._lived = 0
        #: (trial, call): the next call in the current trial.
        self._next = (0, 0)

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        place = self._next if self._next[0] == trial else (trial, 0)
        self._next = (trial, place[1] + 1)
        record = self._calls.pop(place, None)
        if record is None or record.fault is not None:
            raise _ReachedError
        if not _asked_by(request, record):
            raise self.different(f"Call {place[1] + 1} asked something else.")
        return record.reply

    def read_as(
        self, actions: Sequence[int], tally: Callable[[], Mapping[str, int]]
    ) -> None:
        """Take no note of the actions: the trial shows them."""

    def compare(self, lived: TrialRecord) -> None:
        """Raise RunLogError if the trial that was lived next differs from the record.
        A trial that was stopped before it was written has no record.
        """
        if self._lived < len(self._ran):
            check_same(self._ran[self._lived], lived)
        self._lived += 1

    def check_end(self) -> None:
        """Raise RunLogError unless the life has ended as recorded."""
        if self._lived < len(self._ran):
            raise self.different("A reply is missing.")
        if len(self._ran) == len(self._life):
            if self._next[0] >= len(self._life):
                raise _goes_on(self._life[-1])
            if self._calls:
                raise self.different("There are calls that the subject did not make.")

    def different(self, why: str) -> RunLogError:
        record = self._life[min(self._next[0], len(self._life) - 1)]
        return RunLogError(
            f"{_name(record)} does not follow from the model's replies. {why} {_REMEDY}"
        )


def check_resumable(
    log: RunLog,
    cells: Mapping[CellPlan, BaseSpecification]
    | Iterable[tuple[CellPlan, BaseSpecification]],
    seed: int,
    done: str = "continued",
) -> None:
    """Raise RunLogError, with all differences, unless ``cells`` and ``seed`` belong to
    the run of ``log``.

    ``done`` is the verb in the message. A part of the run's cells may be resumed; the
    other cells stay unchanged.
    """
    plans = [
        plan for plan, _ in (cells.items() if isinstance(cells, Mapping) else cells)
    ]
    recorded = {plan.key: plan for plan in log.plans()}
    manifest = log.manifest
    differences: list[str] = []
    then = manifest["options"]["seed"]
    if then != seed:
        differences.append(f"the seed was {then} and is now {seed}")
    for plan in plans:
        differences += _differences(recorded, plan)
    if differences:
        # Several views of one protocol have the same differences, so duplicates are
        # dropped.
        listed = "; ".join(dict.fromkeys(differences))
        raise RunLogError(
            f"Run '{manifest['run_id']}' cannot be {done}: {listed}. "
            "Use the options and protocols that it was started with, or start a new run."
        )


def _absence(recorded: Mapping[CellKey, CellPlan], plan: CellPlan) -> str:
    """Return why a run does not have this cell."""
    for position, kind in enumerate(("model", "protocol", "view", "variant")):
        known = list(dict.fromkeys(key[position] for key in recorded))
        if plan.key[position] not in known:
            names = (name or "plain" for name in known)
            return f"the {kind} '{plan.key[position] or 'plain'}' is not part of it (only {', '.join(names)})"
    return f"{plan.model} on {plan.protocol} in {plan.view} is not part of it"


def _differences(recorded: Mapping[CellKey, CellPlan], plan: CellPlan) -> list[str]:
    then = recorded.get(plan.key)
    if then is None:
        return [_absence(recorded, plan)]
    if then.sha256 != plan.sha256:
        return [
            f"the protocol '{plan.protocol}' has changed (was {then.sha256[:8]}, is now {plan.sha256[:8]})"
        ]
    if then.agent != plan.agent:
        return [
            f"{plan.model} was asked by '{then.agent or 'none'}' and is now asked by '{plan.agent or 'none'}'"
        ]
    changed = [
        f"{name} of {plan.model} was {then.settings.get(name)!r} and is now {plan.settings.get(name)!r}"
        for name in {**then.settings, **plan.settings}
        if then.settings.get(name) != plan.settings.get(name)
    ]
    return changed + [
        f"the {what} of {plan.protocol} was {before} and is now {now}"
        for what, before, now in (
            ("design", then.design, plan.design),
            ("number of subjects", then.subjects, plan.subjects),
            ("number of trials", then.trials, plan.trials),
        )
        if before != now
    ]
