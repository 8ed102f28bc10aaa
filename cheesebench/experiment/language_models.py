"""The language models of a session: servers, connections, limits, budget, and the worker that runs their subjects.

It is longer than 400 lines because starting servers, asking each a first question and connecting belong together.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cheesebench.chat import (
    FATAL,
    TRANSIENT,
    BackendContext,
    ChatFaultError,
    ChatRequest,
    Connection,
    Message,
    Sampling,
    Server,
)
from cheesebench.errors import CheeseBenchError, PluginError, RunLogError
from cheesebench.executor import Job, Report
from cheesebench.experiment.budget import Budget, Limits
from cheesebench.experiment.calling import MOST_NAMES, Caller, ModelChannel, Patience
from cheesebench.experiment.connections import CheckedConnection
from cheesebench.experiment.event_loop import run_blocking
from cheesebench.experiment.guard import guarded
from cheesebench.experiment.jobs import ParadigmCache, stopped
from cheesebench.experiment.limiter import Limiter
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.pulse import Flight, Pulse
from cheesebench.experiment.servers import (
    THROTTLES,
    ModelServer,
    ServerPool,
    Told,
    addresses,
    each_address,
    is_private,
    server_name,
)
from cheesebench.family import Seat
from cheesebench.interface_checks import checked
from cheesebench.redaction import quoted, redact

if TYPE_CHECKING:
    from pathlib import Path

    from cheesebench.experiment.contestants import LanguageModel
    from cheesebench.family import Trial
    from cheesebench.plugin_manager import PluginManager

#: The question that is asked once before anything runs, and the tokens that the answer may take.
PROBE, PROBE_TOKENS = "Reply with the word READY.", 16
PROBE_ATTEMPTS = 3
#: Seconds that the answer to it may take.
PROBE_PATIENCE = 60.0
#: Calls that anybody who is waited for seems to have before him, compared with whoever lives ahead.
OVERSUBSCRIPTION = 1e12
#: Seconds between two looks at whether the last calls have landed.
LANDING = 0.05
#: Seconds that closing a connection may take.
CLOSE_PATIENCE = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """Options of calls.

    ``concurrency`` is the maximum in flight for an account; ``began`` is the start of the session (UNIX time);
    ``processes`` make calls for the same run, this one included.
    """

    concurrency: int = 256
    patience: Patience = field(default_factory=Patience)
    limits: Limits = field(default_factory=Limits)
    retry_errors: bool = False
    processes: int = 1
    began: float = field(default_factory=time.time)


class UnreachableModelError(CheeseBenchError):
    """A model did not answer the test call."""


def start_servers(
    models: Mapping[str, LanguageModel], directory: Path, progress: Callable[[str], None] = lambda line: None
) -> dict[str, Server]:
    """Start the servers that models need and that are not running; on any error, stop those already started.

    ``progress`` is called with lines to show, because loading a large model takes minutes.
    """
    servers: dict[str, Server] = {}
    try:
        for name, model in models.items():
            if model.backend.serve is not None and not model.base_urls:
                context = _context(model, None, directory, CallOptions().concurrency)
                context = replace(context, progress=lambda line: progress(redact(line)))
                with guarded(model.backend.name, "starting its server"):
                    who = f"The backend '{model.backend.name}': serve returned"
                    servers[name] = checked(model.backend.serve(context), Server, who)
    except BaseException:
        stop_after_failure(servers, progress)
        raise
    return servers


def stop_servers(servers: Mapping[str, Server]) -> None:
    """Stop all servers, even if one of them fails to stop."""
    problem: Exception | None = None
    for server in servers.values():
        try:
            server.stop()
        except Exception as error:
            problem = error
    if problem is not None:
        raise PluginError(f"A model server could not be stopped: {quoted(str(problem), 1000)}") from None


def stop_after_failure(servers: Mapping[str, Server], progress: Callable[[str], None]) -> None:
    """Stop all servers while another error propagates; failing to stop must not hide that error."""
    try:
        stop_servers(servers)
    except PluginError as error:
        progress(redact(str(error)))


def probe(
    models: Mapping[str, LanguageModel], directory: Path, progress: Callable[[str], None] = lambda line: None
) -> None:
    """Make one test call to every server of every model.

    Raises UnreachableModelError for the first model that does not answer, and PluginError for an error in a backend;
    the messages contain no secrets. A server that cannot be reached, while another one of its model can, is a line for
    ``progress``: the run begins without it.
    """

    async def ask_all() -> None:
        await asyncio.gather(*(_probe(name, model, directory, progress) for name, model in models.items()))

    run_blocking(ask_all())


async def _probe(name: str, model: LanguageModel, directory: Path, progress: Callable[[str], None]) -> None:
    if not model.backend.probe:
        return
    urls = model.base_urls or (None,)
    faults = await asyncio.gather(*(_probe_server(model, url, directory) for url in urls))
    unreachable = [(url, fault) for url, fault in zip(urls, faults, strict=True) if fault is not None]
    for url, fault in unreachable:
        kind = fault.kind.replace("_", " ")
        said = quoted(str(fault), 1000)
        if fault.kind not in TRANSIENT or len(unreachable) == len(urls):
            where = f" at {server_name(url)}" if len(urls) > 1 else ""
            raise UnreachableModelError(f"The model '{name}'{where} does not answer: {kind}: {said}")
        progress(redact(f"The run begins without {server_name(url)}, which does not answer: {kind}: {said}"))


async def _probe_server(model: LanguageModel, url: str | None, directory: Path) -> ChatFaultError | None:
    """Return why a server does not answer; None if it is there."""
    connection = CheckedConnection(model.backend, _context(model, url, directory, 1))
    request = ChatRequest(
        model=model.entry.id,
        messages=(Message("user", (PROBE,)),),
        sampling=Sampling(max_tokens=PROBE_TOKENS),
        timeout=PROBE_PATIENCE,
        extra=model.entry.served,
    )
    try:
        for attempt in range(1, PROBE_ATTEMPTS + 1):
            fault = await _first_answer(connection, request, model.backend.name)
            if fault is None or fault.kind in THROTTLES:
                return None  # it is there; or there, and busy
            if attempt == PROBE_ATTEMPTS or fault.kind in FATAL or fault.kind == "bad_request":
                return fault
            await asyncio.sleep(attempt)
    finally:
        await _close(connection)
    return None


async def _first_answer(connection: Connection, request: ChatRequest, backend: str) -> ChatFaultError | None:
    """Return the fault of the test call; None for a reply."""
    with guarded(backend, "answering the first question"):
        try:
            # The backend should enforce the timeout; this is a safeguard.
            async with asyncio.timeout(request.timeout + 5):
                await connection.complete(request)
        except TimeoutError:
            return ChatFaultError("timeout", f"no reply within {request.timeout:g} s")
        except ChatFaultError as fault:
            return fault
    return None


async def _close(connection: Connection) -> None:
    # A connection that fails to close must not block the session or hide an earlier error.
    with contextlib.suppress(Exception):
        await asyncio.wait_for(connection.close(), CLOSE_PATIENCE)


def _context(model: LanguageModel, url: str | None, directory: Path, capacity: int) -> BackendContext:
    return BackendContext(
        entry=model.entry, directory=directory, base_url=url, options=model.options, capacity=capacity
    )


class LanguageModels:
    """All language models of a session. Its methods are called in the loop, but for the constructor and ``state``.

    ``source`` is the run whose recorded replies are used instead of calls (``replay:RUN``).
    """

    def __init__(
        self,
        log: RunLog,
        models: Mapping[str, LanguageModel],
        options: CallOptions | None = None,
        source: RunLog | None = None,
    ) -> None:
        self.models = models
        self.options = options or CallOptions()
        self._log = log
        self._source = source
        self._limiters: dict[str, Limiter] = {}
        self._channels: dict[str, ModelChannel] = {}
        self._news: deque[str] = deque()
        self._pulse = Pulse(log.directory, self._flight)
        self.budget = Budget(self.options.limits, log.calls.totals, self.options.began, self.options.processes)

    async def connect(self, names: Iterable[str]) -> None:
        """Open the connections of models in advance, so that errors show early."""
        for name in names:
            self.channel(name)

    def channel(self, name: str) -> ModelChannel:
        """Return the channel to a model, opening its connection on first use."""
        if name not in self._channels:
            if self._source is None:
                self._pulse.start()
            model, options = self.models[name], self.options
            urls = model.base_urls or (None,)
            pool = ServerPool([self._server(model, url, alone=len(urls) == 1) for url in urls], self._tell)
            self._channels[name] = ModelChannel(
                pool=pool,
                price=model.entry.price,
                patience=options.patience,
                replaying=self._source is not None,
                retry_errors=options.retry_errors,
                served_by=self._log.calls.served_by(name, MOST_NAMES),
            )
        return self._channels[name]

    def _server(self, model: LanguageModel, url: str | None, *, alone: bool) -> ModelServer:
        context = _context(model, url, self._log.directory, self.options.concurrency)
        named = model.backend.account
        with guarded(model.backend.name, "connecting"):
            account = named(context) if named else f"{model.backend.name} {url}"
        connection = None if self._source is not None else CheckedConnection(model.backend, context)
        limiter = self._limiters.setdefault(account, Limiter(self.options.concurrency))
        return ModelServer("" if alone else server_name(url), connection, limiter)

    def servers(self, name: str) -> int:
        """Return how many servers a model has."""
        return max(1, len(self.models[name].base_urls))

    def _tell(self, kind: Told, line: str) -> None:
        self._news.append(redact(line))
        with contextlib.suppress(RunLogError):  # a full disk shows where a record is to be written
            self._log.note(kind, line)

    def news(self) -> list[str]:
        """Return lines about servers that have died or come back, and retries, since the last call. From any thread."""
        lines = []
        while self._news:
            lines.append(self._news.popleft())
        return lines

    def caller(self, job: Job, work: float) -> Caller:
        """Return the caller of a subject; ``work`` is its priority among waiting calls."""
        plan, subject = job.plan, job.subject
        log = self._log
        return Caller(
            channel=self.channel(plan.model),
            log=log,
            source=self._source or log,
            budget=self.budget,
            plan=plan,
            subject=subject,
            work=work,
            recorded=(self._source or log).calls.count(plan, subject),
        )

    def is_free(self, name: str) -> bool:
        """Return whether calls are free: no price, and a server on this machine or in a private network."""
        model = self.models[name]
        if model.entry.price is not None or self._source is not None:
            return False
        return bool(model.base_urls) and all(map(is_private, model.base_urls))

    def state(self) -> str:
        """Return calls in flight, limits, tokens and cost, for the progress line."""
        if not self._limiters:
            return ""
        spent = self.budget.spent
        flying, limit, _ = self._flight()
        cost = f", ${spent.cost:.2f}" if spent.cost else ""
        return f"{flying}/{limit} calls in flight, {spent.prompt + spent.completion:,} tokens{cost}"

    def _flight(self) -> Flight:
        limiters = list(self._limiters.values())
        in_flight, limit = sum(one.in_flight for one in limiters), sum(one.limit for one in limiters)
        return Flight(in_flight, limit, self.options.limits.cost)

    def silence(self) -> tuple[str, float, str] | None:
        """Return the model that has not answered for longest, for how many seconds, and what its last fault said."""
        waits = [(name, *channel.waited) for name, channel in list(self._channels.items())]
        return max(waits, key=lambda one: one[1], default=None)

    def stop_sending(self) -> None:
        """Send no further call; those in flight may still be answered. From any thread."""
        for channel in list(self._channels.values()):
            channel.closing = True

    async def land(self, seconds: float, hurry: asyncio.Event) -> None:
        """Wait until nothing is in flight any more, ``seconds`` are over or ``hurry`` is set; what came is written."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not hurry.is_set() and any(channel.flying for channel in self._channels.values()):
                    await asyncio.sleep(LANDING)
        await asyncio.sleep(LANDING)

    async def close(self) -> None:
        """Close all connections; what each of several servers has done is noted."""
        await self._pulse.stop()
        for channel in self._channels.values():
            if len(channel.pool.servers) > 1:
                with contextlib.suppress(RunLogError):
                    self._log.note("server", channel.pool.load())
            for server in channel.pool.servers:
                if server.connection is not None:
                    await _close(server.connection)


class ModelWorker:
    """Does jobs whose subjects ask a model, each in a task of the event loop."""

    def __init__(self, models: LanguageModels, plugins: PluginManager, paradigms: ParadigmCache) -> None:
        self._models = models
        self._plugins = plugins
        self._paradigms = paradigms
        self._callers: dict[Job, Caller] = {}
        #: Jobs whose calls have lower priority than all others.
        self.speculative: set[Job] = set()

    def stop(self, job: Job) -> None:
        """Stop a subject from making further calls; one in flight is completed and recorded."""
        caller = self._callers.get(job)
        if caller is not None:
            caller.stopped = True

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """Do the job; what goes wrong in it is in its last report. Raises RunLogError where calls contradict the log.

        See ``cheesebench.executor.Executor``.
        """
        trials = 0
        try:
            # Whoever has most steps before it goes first among those who wait for a call.
            steps = job.specification.most_calls
            yielding = OVERSUBSCRIPTION if job in self.speculative else 0
            caller = self._callers[job] = self._models.caller(job, work=job.plan.trials * steps - yielding)
            async with contextlib.aclosing(self.live(job, caller)) as life:
                async for record, events in life:
                    report(Report(trials=((record, tuple(events)),)))
                    trials += 1
                    yielding = OVERSUBSCRIPTION if job in self.speculative else 0
                    caller.work = (job.plan.trials - trials) * steps - yielding
        except RunLogError:
            raise
        except (Exception, SystemExit) as error:
            report(stopped(trials, error))
        else:
            report(Report(ended=True))
        finally:
            self._callers.pop(job, None)

    def live(self, job: Job, caller: Caller) -> AsyncGenerator[Trial, None]:
        """Yield every finished trial of the job's subject, with the rules that fired in it."""
        seat = Seat(plugins=self._plugins, plan=job.plan, seed=job.seed, subject=job.subject)
        return self._plugins.family(job.specification).converse(self._paradigms.paradigm(job), seat, caller)


def connected(models: Mapping[str, LanguageModel], servers: Mapping[str, Sequence[str]]) -> dict[str, LanguageModel]:
    """Return the models with the base URLs of the servers that were started or found for them."""
    return {
        name: replace(model, base_urls=tuple(servers[name])) if name in servers else model
        for name, model in models.items()
    }


def base_urls(models: Mapping[str, LanguageModel], started: Mapping[str, Server]) -> dict[str, list[str]]:
    """Return the base URLs of each model: of the servers that were started for it, or of those behind its names."""
    return {
        name: [one for url in named for one in each_address(url)]
        for name, model in models.items()
        if (named := addresses(started[name].base_url) if name in started else model.base_urls)
    }
