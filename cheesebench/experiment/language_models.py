"""The language models of a run: their options, their connections, and the workers that
make their calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import tempfile
import time
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

from cheesebench.chat import (
    TRANSIENT,
    BackendContext,
    BackendSpec,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    FaultKind,
    Finish,
    Message,
    Sampling,
    Server,
    ServerFacts,
    Usage,
    without_system,
)
from cheesebench.errors import (
    CheeseBenchError,
    OptionError,
    PluginError,
    RunLogError,
    raised_where,
)
from cheesebench.executor import Job, Report
from cheesebench.experiment import calling
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.subjects import ParadigmCache, stopped
from cheesebench.family import LanguageModel, SubjectContext
from cheesebench.files import read_bytes, write_whole
from cheesebench.interface_checks import checked
from cheesebench.redaction import quoted, redact

if TYPE_CHECKING:
    from cheesebench.family import Trial
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan


@contextmanager
def backend_errors_explained(backend: str, doing: str) -> Iterator[None]:
    """Run a backend's code, and convert its errors.

    An error of CheeseBench keeps its class, but secrets are removed from its text. Any
    other error becomes a PluginError. ``doing`` names the task, as in "answering the
    first question". The errors have no cause and no context, because a printed chain
    would reveal what was removed from the text.
    """
    raised: CheeseBenchError
    try:
        yield
        return
    except CheeseBenchError as error:
        if type(error).__module__ == CheeseBenchError.__module__:
            error.args = tuple(
                redact(part) if isinstance(part, str) else quoted(repr(part))
                for part in error.args
            )
            raised = error
        else:  # The class is the plugin's own, so its text cannot be trusted.
            raised = PluginError(
                f"The backend '{backend}' reports an error while {doing}: {quoted(str(error))}"
            )
    except (Exception, SystemExit) as error:
        how = quoted(raised_where(error), 360)
        raised = PluginError(
            f"The backend '{backend}' fails while {doing}: {how}. Mend it, or report it to its author."
        )
    raised.__cause__ = raised.__context__ = None
    vars(raised).pop("__notes__", None)
    raise raised from None


#: The smallest positive integer that SQLite cannot store.
_TOO_MANY = 2**63


class CheckedConnection:
    """A backend's connection. ``complete`` raises PluginError for a result that is
    neither a reply nor a known fault.
    """

    def __init__(self, spec: BackendSpec, context: BackendContext) -> None:
        """Connect. Raise the errors of ``backend_errors_explained``, and PluginError
        for a result that is no connection.
        """
        self._who = f"The backend '{spec.name}'"
        with backend_errors_explained(spec.name, "connecting"):
            made: Any = spec.connect(context)
            if isinstance(made, str):
                raise PluginError(
                    f"{self._who}: connect returned {quoted(repr(made), 60)}, a reply. A function that replies becomes a "
                    f"backend by BackendSpec.of('{spec.name}', FUNCTION)."
                )
            self._connection = checked(
                made, Connection, f"{self._who}: connect returned"
            )
        #: What to do if a model without a server does not answer.
        self.remedy: str = getattr(self._connection, "remedy", "")
        self.progress: Callable[[], Awaitable[object]] | None = getattr(
            self._connection, "progress", None
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply. Raise the ChatFaultError that the backend raises."""
        try:
            reply: object = await self._connection.complete(request)
        except ChatFaultError as fault:
            if not (wrong := _wrong_fault(fault)):
                raise
            did = "raised"
        else:
            if not (wrong := _wrong_reply(reply)) and isinstance(reply, ChatReply):
                return reply
            did = "returned"
        # The error is raised outside the handler, so that the fault does not become its
        # visible context.
        raise PluginError(
            f"{self._who} {did} {wrong}. Mend it, or report it to its author."
        )

    async def facts(self) -> ServerFacts:
        """Return what the server reports about itself. The facts are empty if the
        backend does not ask the server. Raise PluginError for any other result.
        """
        ask = getattr(self._connection, "facts", None)
        if ask is None:
            return ServerFacts()
        facts = await ask()
        if not isinstance(facts, ServerFacts):
            raise PluginError(
                f"{self._who}: facts returned {_shown(facts)}, but ServerFacts are expected."
            )
        return facts

    async def close(self) -> None:
        await self._connection.close()


def _wrong_fault(fault: ChatFaultError) -> str:
    kind: object = fault.kind
    wish: object = fault.retry_after
    known = get_args(FaultKind)
    if kind not in known:
        return f"ChatFaultError({_shown(kind)}, ...), but one of these kinds is expected: {', '.join(known)}"
    if wish is not None and not isinstance(wish, int | float):
        return f"ChatFaultError(retry_after={_shown(wish)}), but seconds or None are expected"
    return ""


def _wrong_reply(reply: object) -> str:
    if not isinstance(reply, ChatReply):
        return f"{type(reply).__name__}, but a ChatReply is expected"
    for name in ("text", "reasoning", "model"):
        value: object = getattr(reply, name)
        if not isinstance(value, str):
            return f"{name}={_shown(value)}, but a string is expected"
    known = get_args(Finish)
    if reply.finish not in known:
        return f"finish={_shown(reply.finish)}, but one of these is expected: {', '.join(known)}"
    return _wrong_usage(reply.usage)


def _wrong_usage(usage: object) -> str:
    if not isinstance(usage, Usage):
        return f"usage={_shown(usage)}, but a Usage is expected"
    for name in (column.name for column in dataclasses.fields(usage)):
        count: object = getattr(usage, name)
        if not is_count(count):
            return f"usage.{name}={_shown(count)}, but a number of tokens is expected"
    # Cached and written tokens are parts of the prompt. If there were more of them than
    # prompt tokens, a call could have a negative cost.
    if usage.cached + usage.written > usage.prompt:
        parts = f"usage.cached={usage.cached} and usage.written={usage.written}"
        return f"{parts}, but they are parts of usage.prompt={usage.prompt}"
    return ""


def is_count(value: object) -> bool:
    """Return whether a value is a number of tokens that a log can store. ``True`` is an
    int, but not a number of tokens.
    """
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value < _TOO_MANY
    )


def _shown(value: object) -> str:
    return quoted(repr(value), 60)


T = TypeVar("T")


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return its result. Unlike ``asyncio.run``, this also works
    inside a running loop, such as a notebook's: the coroutine then runs in a thread of
    its own. Ctrl-C cancels it there, too, and waits for it no longer than CANCELLING.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    begun: Future[Callable[[], object]] = Future()

    async def cancellable() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        begun.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await coroutine

    threads = ThreadPoolExecutor(1)
    answer = threads.submit(asyncio.run, cancellable())
    try:
        return answer.result()
    except KeyboardInterrupt:
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            begun.result()()
        wait([answer], CANCELLING)
        raise
    finally:
        threads.shutdown(wait=False)


#: ``CANCELLING``: seconds that a cancelled coroutine has to end. ``CHECKING``: seconds
#: between checks whether a question is still wanted.
CANCELLING, CHECKING = 3.0, 0.2


#: ``INTERVAL``: seconds between writes of a progress file. ``STALE``: age in seconds at
#: which a file counts as left behind by a killed process.
INTERVAL, STALE = 0.5, 5.0
_PREFIX, _SUFFIX = "calls-", ".json"
#: Maximum size of a progress file in bytes.
_LONGEST = 4096


class Flight(NamedTuple):
    """The number of calls in flight, the present limit on it, and the budget of the
    whole run in dollars (None if it has none).
    """

    calls: int
    limit: int
    budget: float | None = None


class ProgressFile:
    """Writes a ``Flight`` to a small file beside the run log, from ``start`` until
    ``stop``.

    The log does not contain these values: it holds only answered calls, and the limit
    and the budget may differ from session to session.
    """

    def __init__(self, directory: Path, flight: Callable[[], Flight]) -> None:
        self._file = directory / f"{_PREFIX}{os.getpid()}{_SUFFIX}"
        self._flight = flight
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start in the running event loop. Further calls of this method do nothing."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep_writing())

    async def stop(self) -> None:
        """Stop writing, and remove the file."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)

    async def _keep_writing(self) -> None:
        while True:
            # Errors are ignored, because the file only informs people. A full disk is
            # reported where data is lost.
            with contextlib.suppress(OSError):
                write_whole(self._file, json.dumps(self._flight()._asdict()))
            await asyncio.sleep(INTERVAL)


def read_flight(directory: Path) -> Flight | None:
    """Return the ``Flight`` of a run, with its calls and its limit summed over all
    processes, or None if no process reports any.
    """
    flights = [
        flight
        for path in directory.glob(f"{_PREFIX}*{_SUFFIX}")
        if (flight := _read(path)) is not None
    ]
    if not flights:
        return None
    budget = next((one.budget for one in flights if one.budget is not None), None)
    return Flight(
        sum(one.calls for one in flights), sum(one.limit for one in flights), budget
    )


def _read(path: Path) -> Flight | None:
    try:
        if time.time() - path.lstat().st_mtime > STALE:
            return None
        if len(data := read_bytes(path, _LONGEST + 1)) > _LONGEST:
            return None
        content = json.loads(data)
        budget = content.get("budget")
        return Flight(
            int(content["calls"]),
            int(content["limit"]),
            None if budget is None else float(budget),
        )
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ):
        return None


#: System and user message of the question that a model is asked before the run, if the
#: run's own first question cannot be used.
PROBE_SYSTEM, PROBE = "You answer in one word.", "Reply with the word READY."
#: A test call is not repeated if its fault took more than this many seconds, or half of
#: the time left.
SLOW_FAULT = 10.0
#: Faults that show that the server works: it is busy, or refuses this prompt.
ANSWERED = calling.THROTTLES | {"content_filter"}
PROBE_ATTEMPTS = 3
#: The priority of subjects that run ahead is lower by this much (in calls), so that
#: subjects of the present set go first.
YIELDED = 1e12
#: Seconds between checks on whether the last replies have arrived.
LANDING = 0.05
#: Maximum number of seconds for closing a connection.
CLOSE_PATIENCE = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """How a session makes its calls.

    ``concurrency`` is the maximum number of calls in flight for an account. ``began``
    is the start of the session (UNIX time). ``processes`` is the number of processes
    that make calls for the run, this one included.
    """

    concurrency: int = 256
    patience: calling.Patience = field(default_factory=calling.Patience)
    limits: calling.Limits = field(default_factory=calling.Limits)
    retry_errors: bool = False
    processes: int = 1
    began: float = field(default_factory=time.time)


class UnreachableModelError(CheeseBenchError):
    """A model did not answer: a question before a run, or a call outside any run,
    failed.
    """


def start_servers(
    models: Mapping[str, LanguageModel],
    directory: Path,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Server]:
    """Start a server for each model without a base URL whose backend can start one, and
    return the servers by model. On any error, stop the servers that were already
    started.

    ``progress`` receives lines to show, because loading a large model takes minutes.
    """
    servers: dict[str, Server] = {}
    try:
        for name, model in models.items():
            if model.backend.serve is not None and not model.base_url:
                context = context_of(model, directory, CallOptions().concurrency)
                context = replace(context, progress=lambda line: progress(redact(line)))
                with backend_errors_explained(
                    model.backend.name, "starting its server"
                ):
                    who = f"The backend '{model.backend.name}': serve returned"
                    servers[name] = checked(model.backend.serve(context), Server, who)
    except BaseException:
        stop_after_failure(servers, progress)
        raise
    return servers


def record_servers(log: RunLog, servers: Mapping[str, Server]) -> None:
    """Record in the manifest what each server reports about its model. Raise
    RunLogError if the run began with other weights under the same name.
    """
    known = dict(log.manifest.get("servers", {}))
    for name, server in servers.items():
        facts = dict(getattr(server, "facts", {}))
        then = known.get(name, facts)
        if then.get("sha256") != facts.get("sha256"):
            raise RunLogError(
                f"Run '{log.run_id}' cannot be continued: the weights of '{name}' have changed "
                f"({_weights(then)} then, {_weights(facts)} now). Use the file that the run was started with, or "
                "start a new run."
            )
        if facts:
            known[name] = facts
    if known:
        log.add_to_manifest({"servers": known})


def _weights(facts: Mapping[str, Any]) -> str:
    return f"SHA-256 {str(facts.get('sha256', 'unknown'))[:12]}, {facts.get('bytes', 0):,} bytes"


def stop_servers(servers: Mapping[str, Server]) -> None:
    """Stop all servers, even if one of them fails to stop. If so, raise PluginError at
    the end.
    """
    problem: Exception | None = None
    for server in servers.values():
        try:
            server.stop()
        except Exception as error:
            problem = error
    if problem is not None:
        raise PluginError(
            f"A model server could not be stopped: {quoted(str(problem), 1000)}"
        ) from None


def stop_after_failure(
    servers: Mapping[str, Server], progress: Callable[[str], None]
) -> None:
    """Stop all servers while another error propagates. An error while stopping must not
    hide the other one.
    """
    try:
        stop_servers(servers)
    except PluginError as error:
        progress(redact(str(error)))


class Question(NamedTuple):
    """A request that is put to a model before anything runs. If it is the next call of
    a cell of the run, the other fields say where. Otherwise ``plan`` is None.
    """

    request: ChatRequest
    plan: CellPlan | None = None
    subject: int = 0
    trial: int = 0
    call: int = 0


class Answer(NamedTuple):
    """A reply to a question. ``seconds`` is its duration. ``attempts`` is the number of
    attempts, the successful one included.
    """

    question: Question
    reply: ChatReply
    seconds: float
    attempts: int


def probe(
    models: Mapping[str, LanguageModel],
    directory: Path,
    questions: Mapping[str, Sequence[Question]] | None = None,
    *,
    timeout: float = 300.0,
    counts: bool = False,
    keep: Callable[[Answer], None] = lambda answer: None,
    check: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Ask every model its questions, which are the next requests of the run. A model
    without such questions is asked a plain one. A model whose backend has no ``probe``
    is not asked.

    ``timeout`` (seconds) limits all questions to a model together. Every answer is
    passed to ``keep``. ``check`` is called from time to time; an error that it raises
    ends the questions. Return, by model, the context length in tokens that its server
    reports. Models whose servers do not report it are left out. Raise
    UnreachableModelError for the first model that does not answer, PluginError for an
    error in a backend and, with ``counts``, OptionError for a server that does not
    report token counts. The messages contain no secrets.
    """
    asked = questions or {}

    async def ask_all() -> list[int | None]:
        asking = (
            _probe(
                _Prober(name, model, directory, timeout, counts, keep),
                asked.get(name, [Question(plain_question(model))]),
            )
            for name, model in models.items()
        )
        answers = asyncio.gather(*asking)
        while not answers.done():
            check()
            await asyncio.wait({answers}, timeout=CHECKING)
        return answers.result()

    contexts = zip(models, run_blocking(ask_all()), strict=True)
    return {name: context for name, context in contexts if context is not None}


def record_answer(
    log: RunLog, models: Mapping[str, LanguageModel], answer: Answer
) -> None:
    """Record the answer to a request of the run, so that the request is not sent again.
    Ignore the answer to a plain question (``plain_question``).
    """
    (request, plan, subject, trial, call), reply, seconds, attempts = answer
    if plan is not None:
        record = calling.early_record(
            log,
            plan,
            (trial, call),
            request,
            reply,
            models[plan.model].entry.price,
            seconds=seconds,
            attempts=attempts,
        )
        log.calls.write(plan, subject, record)


def budget_of(log: RunLog, options: CallOptions) -> calling.Budget:
    """Return the budget of a run. It starts from the spending that the log records."""
    return calling.Budget(
        options.limits, log.calls.totals, options.began, options.processes
    )


def plain_question(model: LanguageModel) -> ChatRequest:
    """Return a question with the agent's settings, but with words of its own."""
    settings = model.settings
    messages = (Message("system", (PROBE_SYSTEM,)), Message("user", (PROBE,)))
    return ChatRequest(
        model=model.entry.id,
        messages=without_system(messages)
        if "system" in settings["dropped"]
        else messages,
        sampling=Sampling(
            temperature=settings.get("temperature"),
            max_tokens=settings.get("max_tokens"),
            seed=None if "seed" in settings["dropped"] else 0,
            stop=tuple(settings.get("stop", ())),
        ),
        extra=settings["served"],
        form=model.agent.form(settings),
    )


#: Remedy if a server is not running, or not yet ready.
_WAIT = (
    "Check that a server runs at this address (--base-url) and can be reached from here. A server that is still loading "
    "its model may take minutes: wait until it answers, and run this again."
)
#: A server whose log lacks the call is not the one that was meant.
_ADDRESS = (
    "If the server's log does not contain this call, check the address (--base-url)."
)
#: Remedy if a server responds, but fails.
_MEND = f"Find the cause in the server's log, repair it, and run this again. {_ADDRESS}"
#: Remedy if a model does not answer, by the kind of fault.
_TO_REACH: Mapping[str, str] = {
    **dict.fromkeys(("timeout", "overload"), _WAIT),
    **dict.fromkeys(("connection", "server"), _MEND),
    "authentication": "Check the environment variable with the key of this server.",
    "quota": "Raise the limit of the account, or add credit.",
    "unknown_model": "Check the name: it must be the one that the server gives to the model.",
    "rate_limit": "Wait, and run this again.",
}


def _unreachable(
    name: str, fault: ChatFaultError, own: str = ""
) -> UnreachableModelError:
    """Return the error for a fault. ``own`` is the remedy in place of those about a
    server, if the model has none.
    """
    told = calling.said(fault)
    said = quoted(told, 1000)
    remedy = _WAIT if fault.refused else _TO_REACH.get(fault.kind, "")
    if own and remedy in (_WAIT, _MEND):
        remedy = own
    if mend := calling.to_mend(told):
        remedy = f"{mend}, and run this again. {_ADDRESS}"
    if "certificate that is not trusted" in told:
        remedy = "Name the file of the authority that signed it in SSL_CERT_FILE."
    if not told.endswith(str(fault)):
        remedy = ""  # The text already ends with a remedy for this fault.
    what = "gives no reply" if fault.kind == "malformed" else "does not answer"
    text = calling.advised(f"The model '{name}' {what}: {said}", remedy)
    return UnreachableModelError(f"{text}\n\n{calling.begins(fault)}".rstrip())


async def _probe(prober: _Prober, questions: Sequence[Question]) -> int | None:
    """Ask one model its questions. Return the context length in tokens that its server
    reports, or None. Raise UnreachableModelError if a question is not answered.
    """
    if not prober.model.backend.probe:
        return None
    try:
        for question in questions:
            fault = await prober.put(question)
            if fault is not None:
                raise _unreachable(prober.name, fault, prober.connection.remedy)
        return (await prober.connection.facts()).context
    finally:
        await _close(prober.connection)


class _Prober:
    """Puts questions to one model before anything runs."""

    def __init__(
        self,
        name: str,
        model: LanguageModel,
        directory: Path,
        timeout: float,
        counts: bool,
        keep: Callable[[Answer], None],
    ) -> None:
        self.name, self.model = name, model
        self.connection = CheckedConnection(
            model.backend, context_of(model, directory, 1)
        )
        self._end = time.monotonic() + timeout
        self._counts = counts
        self._keep = keep

    async def put(self, question: Question) -> ChatFaultError | None:
        """Ask a question, up to ``PROBE_ATTEMPTS`` times. Return the last fault, or
        None if the server answers, or its fault shows that it works (``ANSWERED``).
        """
        for attempt in range(1, PROBE_ATTEMPTS + 1):
            began = time.monotonic()
            fault = await self._attempt(question, attempt)
            if fault is None or fault.kind in ANSWERED:
                return None
            late = time.monotonic() - began > min(SLOW_FAULT, (self._end - began) / 2)
            if fault.kind not in TRANSIENT or late:
                return fault
            if attempt < PROBE_ATTEMPTS:
                await asyncio.sleep(attempt)
        return fault

    async def _attempt(self, question: Question, attempt: int) -> ChatFaultError | None:
        """Make one call. Return its fault, or None if there was a reply. Raise
        OptionError if the reply lacks token counts, and a limit needs them.
        """
        began = time.monotonic()
        patience = max(0.1, self._end - began)
        request = replace(question.request, timeout=patience)
        with backend_errors_explained(
            self.model.backend.name, "answering the first question"
        ):
            try:
                # The backend should enforce the timeout; this is a safeguard.
                async with asyncio.timeout(patience + 5):
                    reply = await self.connection.complete(request)
            except TimeoutError:
                return ChatFaultError("timeout", f"no reply within {patience:g} s")
            except ChatFaultError as fault:
                return fault
        if self._counts and not reply.usage.prompt + reply.usage.completion:
            raise OptionError(f"--max-tokens and --max-cost: {calling.UNCOUNTABLE}.")
        self._keep(Answer(question, reply, time.monotonic() - began, attempt))
        return None


async def _close(connection: Connection) -> None:
    # An error in closing a connection must neither stop the session nor hide an earlier
    # error.
    with contextlib.suppress(Exception):
        await asyncio.wait_for(connection.close(), CLOSE_PATIENCE)


def context_of(model: LanguageModel, directory: Path, capacity: int) -> BackendContext:
    return BackendContext(
        entry=model.entry,
        directory=directory,
        base_url=model.base_url,
        options=model.options,
        capacity=capacity,
    )


class LanguageModels:
    """All language models of a session.

    Methods must be called in the event loop, except for the constructor and for
    ``state``, ``news``, ``unreadable``, ``silence`` and ``stop_sending``. ``source`` is
    the run whose recorded replies replace calls (``replay:RUN``).
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
        self._limiters: dict[str, calling.Limiter] = {}
        self._channels: dict[str, calling.ModelChannel] = {}
        self._news: deque[str] = deque()
        self._progress_file = ProgressFile(log.directory, self._flight)
        self.budget = budget_of(log, self.options)

    async def connect(self, names: Iterable[str]) -> None:
        """Open the connections of models in advance, so that errors show early. Ask the
        servers how many calls they can answer at once (their slots).

        If a server gets more calls than it has slots, some wait there and time out. The
        processes of a run share the slots.
        """

        async def ask(channel: calling.ModelChannel) -> None:
            if isinstance(channel.connection, CheckedConnection):
                facts = await channel.connection.facts()
                if facts.slots:
                    channel.limiter.lower(max(1, facts.slots // self.options.processes))

        await asyncio.gather(*(ask(self.channel(name)) for name in names))

    def channel(self, name: str) -> calling.ModelChannel:
        """Return the channel to a model, opening its connection on first use."""
        if name not in self._channels:
            if self._source is None:
                self._progress_file.start()
            model, options = self.models[name], self.options
            context = context_of(model, self._log.directory, options.concurrency)
            self._channels[name] = calling.ModelChannel(
                connection=None
                if self._source is not None
                else CheckedConnection(model.backend, context),
                limiter=self._limiters.setdefault(
                    _account(model, context), calling.Limiter(options.concurrency)
                ),
                tell=self._tell,
                price=model.entry.price,
                patience=options.patience,
                replaying=self._source is not None,
                retry_errors=options.retry_errors,
                has_replied=self._log.calls.has_reply(name),
                served_by=self._log.calls.served_by(name, calling.MOST_NAMES),
            )
        return self._channels[name]

    def _tell(self, line: str) -> None:
        self._news.append(redact(line))
        with contextlib.suppress(RunLogError):
            # Errors are ignored here. A full disk is reported where a record is
            # written.
            self._log.note("retry", line)

    def news(self) -> list[str]:
        """Return the lines about retries that came since this method was last called.
        Any thread may call it.
        """
        lines = []
        while self._news:
            lines.append(self._news.popleft())
        return lines

    def caller(self, job: Job, work: float) -> calling.Caller:
        """Return the caller of a subject. ``work`` is the priority of its calls among
        all waiting calls.
        """
        plan, subject = job.plan, job.subject
        log = self._log
        return calling.Caller(
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
        """Return whether calls are free: the model has no price, and its server is on
        this machine or in a private network. In a replay, which makes no calls, return
        False.
        """
        model = self.models[name]
        if model.entry.price is not None or self._source is not None:
            return False
        return model.base_url is not None and calling.is_private(model.base_url)

    def state(self) -> str:
        """Return a phrase for the progress line: the calls in flight, their limit and
        the tokens used. It is empty until a model is connected.
        """
        if not self._limiters:
            return ""
        spent = self.budget.spent
        in_flight, limit, _ = self._flight()
        return f"{in_flight}/{limit} calls in flight, {spent.prompt + spent.completion:,} tokens"

    def _flight(self) -> Flight:
        limiters = list(self._limiters.values())
        in_flight, limit = (
            sum(one.in_flight for one in limiters),
            sum(one.limit for one in limiters),
        )
        return Flight(in_flight, limit, self.options.limits.cost)

    @property
    def unreadable(self) -> tuple[int, int]:
        """The number of this session's replies without any action, and the number of
        all replies that its agents have read.
        """
        channels = list(self._channels.values())
        return sum(one.unreadable for one in channels), sum(
            one.read for one in channels
        )

    def silence(self) -> tuple[str, float, str] | None:
        """Return the model that has been silent for longest, its seconds of silence,
        and what to say of it (``ModelChannel.waited``). Return None if no model has
        been connected.
        """
        waits = [
            (name, *channel.waited) for name, channel in list(self._channels.items())
        ]
        return max(waits, key=lambda one: one[1], default=None)

    def stop_sending(self) -> None:
        """Stop sending calls. Calls in flight may still be answered. Any thread may
        call this method.
        """
        for channel in list(self._channels.values()):
            channel.closing = True

    async def land(self, seconds: float, hurry: asyncio.Event) -> None:
        """Wait until nothing is in flight, ``seconds`` are over or ``hurry`` is set.
        Replies that arrive are written.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not hurry.is_set() and any(
                    channel.in_flight for channel in self._channels.values()
                ):
                    await asyncio.sleep(LANDING)
        await asyncio.sleep(LANDING)

    async def close(self) -> None:
        await self._progress_file.stop()
        for channel in self._channels.values():
            if channel.connection is not None:
                await _close(channel.connection)


def _account(model: LanguageModel, context: BackendContext) -> str:
    """Return a key for the account that pays for a model's calls. The calls of an
    account share a rate limit.
    """
    named = model.backend.account
    with backend_errors_explained(model.backend.name, "connecting"):
        return named(context) if named else f"{model.backend.name} {context.base_url}"


class ModelWorker:
    """Runs jobs whose subjects ask a model, each in a task of the event loop."""

    def __init__(
        self, models: LanguageModels, plugins: PluginManager, paradigms: ParadigmCache
    ) -> None:
        self._models = models
        self._plugins = plugins
        self._paradigms = paradigms
        self._callers: dict[Job, calling.Caller] = {}
        #: Jobs whose calls have lower priority than all others.
        self.speculative: set[Job] = set()

    def stop(self, job: Job) -> None:
        """Stop the calls of a subject. A call in flight is completed and recorded."""
        caller = self._callers.get(job)
        if caller is not None:
            caller.stopped = True

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """Run the job. If an error ends the job, the last report contains the error.

        Raise RunLogError if calls contradict the log. See
        ``cheesebench.executor.Executor``.
        """
        trials = 0
        try:
            # Among waiting subjects, the one with the most calls left goes first.
            steps = job.specification.most_calls
            yielding = YIELDED if job in self.speculative else 0
            caller = self._callers[job] = self._models.caller(
                job, work=job.plan.trials * steps - yielding
            )
            async with contextlib.aclosing(self.live(job, caller)) as life:
                async for record, events in life:
                    report(Report(trials=((record, tuple(events)),)))
                    trials += 1
                    yielding = YIELDED if job in self.speculative else 0
                    caller.work = (job.plan.trials - trials) * steps - yielding
        except RunLogError:
            raise
        except (Exception, SystemExit) as error:
            report(stopped(trials, error))
        else:
            report(Report(ended=True))
        finally:
            self._callers.pop(job, None)

    def live(self, job: Job, caller: calling.Caller) -> AsyncGenerator[Trial, None]:
        """Yield every finished trial of the job's subject, with its fired rules."""
        context = SubjectContext(
            plugins=self._plugins, plan=job.plan, seed=job.seed, subject=job.subject
        )
        return self._plugins.family(job.specification).converse(
            self._paradigms.paradigm(job), context, caller
        )


def connected(
    models: Mapping[str, LanguageModel], started: Mapping[str, str]
) -> dict[str, LanguageModel]:
    """Return the models with the base URLs of the servers that were ``started`` for
    them.
    """
    return {
        name: replace(model, base_url=started[name]) if name in started else model
        for name, model in models.items()
    }


@contextmanager
def reached(
    models: Mapping[str, LanguageModel], progress: Callable[[str], None]
) -> Iterator[tuple[dict[str, LanguageModel], Path]]:
    """Start the servers that models need, outside any run. Yield the models with their
    base URLs, and a directory. Both exist until the end of the ``with`` block.
    """
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        servers = start_servers(models, directory, progress)
        try:
            urls = {name: server.base_url for name, server in servers.items()}
            yield connected(models, urls), directory
        finally:
            stop_servers(servers)


@asynccontextmanager
async def conversation(
    model: LanguageModel, directory: Path, capacity: int = 1
) -> AsyncIterator[CheckedConnection]:
    """Connect to a model outside any run. A fault is raised as
    UnreachableModelError.
    """
    connection = CheckedConnection(
        model.backend, context_of(model, directory, capacity)
    )
    try:
        yield connection
    except ChatFaultError as fault:
        raise _unreachable(model.entry.name, fault, connection.remedy) from None
    finally:
        await _close(connection)
