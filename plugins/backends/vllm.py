"""Open weights on this machine's GPUs: a vLLM server that is started for the run, or one that is already up."""

from __future__ import annotations

import http.client
import importlib.util
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cheesebench import BackendContext, BackendSpec, ChatRequest, Connection, OptionError, PluginError, quoted
from cheesebench.plugins.backends.chat_completions import ChatCompletions
from cheesebench.plugins.backends.openai import check_served, key_from_environment
from cheesebench.plugins.backends.supervisor import Supervised
from cheesebench.plugins.backends.vllm_options import MEANINGS, Dealer, copies, flags, typed, words

#: Where the server's key is, if it wants one; vLLM reads the same variable.
KEY = "VLLM_API_KEY"
#: Seconds that a server may take until it is healthy: weights may have to be downloaded first.
STARTUP_TIMEOUT = 3600.0
#: Seconds between two questions whether the server is healthy, and between two lines that say it is not.
_POLL, _SAY = 0.5, 15.0
#: What is asked of every server: prompts that begin alike are read once, and we are told what was cached;
#: the sampling is the harness's (a model's own generation_config could make "temperature 0.7" greedy, unrecorded);
#: no line in the log for every call.
_ALWAYS = (
    "--enable-prefix-caching",
    "--enable-prompt-tokens-details",
    "--generation-config",
    "vllm",
    "--disable-uvicorn-access-log",
)
#: Environment variables that reach the server: of the system, of accelerators, and of the libraries under vLLM. Keys of
#: other services do not.
_NEEDED = re.compile(
    r"(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|TMP|TEMP|PYTHONHASHSEED|PYTHONPATH|VIRTUAL_ENV"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|CONDA_PREFIX|MAX_JOBS|CC|CXX|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE"
    r"|(?i:https?_proxy|no_proxy|all_proxy))$"
    r"|(?:LC|XDG|VLLM|HF|HUGGINGFACE|HUGGING_FACE|TRANSFORMERS|TOKENIZERS|SAFETENSORS|CUDA|NVIDIA|NCCL|GLOO|TORCH"
    r"|PYTORCH|TORCHINDUCTOR|TRITON|FLASHINFER|RAY|OMP|MKL|KMP|OPENBLAS|NUMBA|ROCR|ROCM|HIP|HSA|TPU|XLA|PJRT|UCX|UV"
    r"|SLURM|MODELSCOPE)_"
)


class VllmServer:
    """A running ``vllm serve`` on the loopback interface (a ``Server``)."""

    def __init__(self, context: BackendContext, base_url: str, process: Supervised) -> None:
        self.base_url = base_url
        self._context = context
        self.process = process

    def stop(self) -> None:
        """Stop the server and all of its processes; return when they are gone. One that ended before is reported."""
        code = self.process.ended
        self.process.stop()
        if code is not None:
            said = f"The vLLM server for '{self._context.entry.id}' ended with code {code} during the run."
            self._context.progress(_with_log(said, self.process))


def serve(context: BackendContext) -> VllmServer:
    """Start a server for the model and return when it is healthy.

    Raises OptionError for options that make no sense, PluginError (with the end of the log) for a server that
    does not come up.
    """
    check_model(context.entry.id)
    timeout = typed("startup_timeout", context.options.get("startup_timeout", STARTUP_TIMEOUT), float)
    port = _free_port()
    command = [*server_command(context.options, context.entry.id), "--host", "127.0.0.1", "--port", str(port)]
    command += [*_ALWAYS, *flags(context.options)]
    log = context.directory / f"vllm-{re.sub(r'[^A-Za-z0-9._-]+', '-', context.entry.id).strip('-.')[-100:]}.log"
    process = Supervised(command, log, variables=filter(_NEEDED.match, os.environ))
    try:
        _wait_until_healthy(context, process, port, timeout)
    except BaseException:
        process.stop()
        raise
    return VllmServer(context, f"http://127.0.0.1:{port}/v1", process)


def check_model(model: str) -> None:
    """Raise OptionError for a model's id that the server would take for a flag of its own."""
    if model.startswith("-"):
        raise OptionError(
            f"'{quoted(model, 60)}' is not a model: it begins with '-'. Give extra_args as a backend option."
        )


def server_command(options: Mapping[str, Any], model: str) -> list[str]:
    """Return how the server is started: the option ``command`` or ``python``, or the vLLM that there is here."""
    if command := words(options, "command"):
        return [*command, model]
    if python := options.get("python"):
        return [*_module(typed("python", python, str)), model]
    beside = str(Path(sys.executable).parent)
    if found := shutil.which("vllm", path=os.pathsep.join((beside, os.environ.get("PATH", os.defpath)))):
        return [found, "serve", model]
    if importlib.util.find_spec("vllm"):
        return [*_module(sys.executable), model]
    raise PluginError(
        "vLLM is not installed for this Python. Install it (pip install 'pytest-cheesebench[vllm]'), name a Python "
        "that has it (--cheese-backend-option python=/path/to/python), or use a running server (--base-url URL)."
    )


def connect(context: BackendContext) -> Connection:
    """Open a connection to the server; a subject's calls all go to the same copy of the model."""
    check_served(context.entry.served)
    if context.base_url is None:
        raise OptionError("No vLLM server was started or named. Give the address of one with --base-url.")
    dealer = Dealer(copies(context.options))

    def headers(request: ChatRequest) -> Mapping[str, str]:
        copy = dealer.copy_for(request.conversation)
        return {} if copy is None else {"X-data-parallel-rank": str(copy)}

    return ChatCompletions(
        context.base_url, key=key_from_environment(context.options, KEY, required=False), headers=headers
    )


def _module(python: str) -> list[str]:
    return [python, "-m", "vllm.entrypoints.openai.api_server", "--model"]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_until_healthy(context: BackendContext, process: Supervised, port: int, timeout: float) -> None:
    """Return when the server says that it is healthy; PluginError when it ends first, or takes too long."""
    model, began = context.entry.id, time.monotonic()
    said = began
    while not _healthy(port):
        now = time.monotonic()
        if (code := process.ended) is not None:
            raise _failed(f"The vLLM server for '{model}' ended with code {code} before it was ready.", process)
        if now - began > timeout:
            raise _failed(
                f"The vLLM server for '{model}' was not ready after {timeout:g} s. If it was still loading, allow more "
                "(--cheese-backend-option startup_timeout=SECONDS).",
                process,
            )
        if now - said >= _SAY:
            said = now
            last = quoted(process.tail(1), 100)
            context.progress(f"vLLM is loading {model} ({now - began:.0f} s, log: {process.log}): {last}")
        time.sleep(_POLL)
    if (code := process.ended) is not None:  # somebody else's server has taken the port meanwhile
        raise _failed(f"The vLLM server for '{model}' ended with code {code}.", process)
    context.progress(f"vLLM serves {model} after {time.monotonic() - began:.0f} s (log: {process.log})")


def _healthy(port: int) -> bool:
    # Not urllib: it would ask a proxy that the environment names.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5.0)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _failed(said: str, process: Supervised) -> PluginError:
    process.stop()  # so that its last words are in the log
    return PluginError(_with_log(said, process))


def _with_log(said: str, process: Supervised) -> str:
    lines = "\n".join(f"    {quoted(line, 200)}" for line in process.tail().splitlines())
    return f"{said} Its log, {process.log}, ends with\n{lines or '    (nothing)'}"


VLLM = BackendSpec(
    name="vllm",
    connect=connect,
    serve=serve,
    options={
        **MEANINGS,
        "python": "the Python with vLLM, if not this one",
        "command": "command that starts the server, instead of 'vllm serve'; the model and the flags follow",
        "api_key_env": f"name of the environment variable with a running server's key (default: {KEY})",
        "startup_timeout": f"seconds to wait for the server to be healthy ({STARTUP_TIMEOUT:g})",
    },
    summary="open weights on this machine's GPUs: starts and stops a vLLM server, or uses a running one (--base-url)",
)
