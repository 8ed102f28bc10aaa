"""Open weights on this machine's GPUs: a vLLM server that is started for the run, or one that is already up."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cheesebench import (
    BackendContext,
    BackendSpec,
    ChatRequest,
    Connection,
    OptionError,
    PluginError,
    install_command,
    quoted,
)
from cheesebench.plugins.backends.chat_completions import ChatCompletions
from cheesebench.plugins.backends.openai import check_served, key_from_environment
from cheesebench.plugins.backends.supervisor import Supervised
from cheesebench.plugins.backends.vllm_nodes import STOP_SECONDS, gpus, program
from cheesebench.plugins.backends.vllm_options import MEANINGS, Dealer, copies, flags, typed, words

#: Where a server listens that is for this machine only.
LOOPBACK = "127.0.0.1"
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
#: Before our own ways to start it: neither it nor interpreters that it starts find modules in the working directory,
#: which can be a stranger's. (An interpreter's ``-P`` would not reach those, and is unknown before Python 3.11.)
_SAFE = ("env", "PYTHONSAFEPATH=1")
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
    """A running ``vllm serve``, or several on the nodes of a cluster (a ``Server``)."""

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
    """Start a server for the model, or one on each of several nodes, and return when it is healthy.

    Raises OptionError for options that make no sense, PluginError (with the end of the log) for a server that
    does not come up.
    """
    check_model(context.entry.id)
    return serve_at(context, LOOPBACK) if "nodes" not in context.options else _serve_on_nodes(context)


def serve_at(context: BackendContext, host: str) -> VllmServer:
    """Start a server on this machine that listens at one of its addresses; see ``serve``."""
    timeout = _startup_timeout(context.options)
    port = _free_port(host)
    command = [*server_command(context.options, context.entry.id), "--host", host, "--port", str(port)]
    command += [*_ALWAYS, *flags(context.options)]
    process = Supervised(command, _log(context), variables=filter(_NEEDED.match, os.environ))
    try:
        seconds = _wait_until_healthy(context, process, lambda: _healthy(host, port), timeout)
    except BaseException:
        process.stop()
        raise
    context.progress(f"vLLM serves {context.entry.id} after {seconds:.0f} s (log: {process.log})")
    return VllmServer(context, f"http://{f'[{host}]' if ':' in host else host}:{port}/v1", process)


def _serve_on_nodes(context: BackendContext) -> VllmServer:
    typed("nodes", context.options["nodes"], int)
    gpus(context.options)
    flags(context.options)
    # The nodes keep the time themselves, and know more of what went wrong.
    timeout = _startup_timeout(context.options) + STOP_SECONDS
    answer = _log(context).with_suffix(".nodes.json")
    answer.unlink(missing_ok=True)
    command = program(context.entry.id, context.options, answer)
    process = Supervised(command, _log(context), grace=STOP_SECONDS + 10, variables=filter(_NEEDED.match, os.environ))
    try:
        seconds = 0.0
        with contextlib.suppress(_EndedError):
            seconds = _wait_until_healthy(context, process, answer.exists, timeout)
        found = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {}
        if "urls" not in found:
            said = found.get("error") or "The program that starts vLLM on the nodes has ended."
            raise OptionError(said) if found.get("usage") else _failed(said, process)
    except BaseException:
        process.stop()
        raise
    finally:
        answer.unlink(missing_ok=True)
    context.progress(f"vLLM serves {context.entry.id} on {len(found['urls'])} nodes after {seconds:.0f} s")
    return VllmServer(context, ",".join(found["urls"]), process)


def _startup_timeout(options: Mapping[str, Any]) -> float:
    return float(typed("startup_timeout", options.get("startup_timeout", STARTUP_TIMEOUT), float))


def _log(context: BackendContext) -> Path:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", context.entry.id).strip("-.")[-100:]
    return context.directory / f"vllm-{name}.log"


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
        return [*_SAFE, found, "serve", model]
    if importlib.util.find_spec("vllm"):
        return [*_module(sys.executable), model]
    raise PluginError(
        f"vLLM is not installed for this Python. Install it ({install_command('vllm')}), name a Python "
        "that has it (--backend-option python=/path/to/python), or use a running server (--base-url URL)."
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
    return [*_SAFE, python, "-m", "vllm.entrypoints.openai.api_server", "--model"]


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        return int(listener.getsockname()[1])


def _wait_until_healthy(
    context: BackendContext, process: Supervised, healthy: Callable[[], bool], timeout: float
) -> float:
    """Wait until ``healthy`` says so; return the seconds that it took.

    Raises _EndedError when the process ends first, PluginError when it takes too long.
    """
    model, began = context.entry.id, time.monotonic()
    said = began
    while not healthy():
        now = time.monotonic()
        if (code := process.ended) is not None:
            raise _ended(f"The vLLM server for '{model}' ended with code {code} before it was ready.", process)
        if now - began > timeout:
            raise _failed(
                f"The vLLM server for '{model}' was not ready after {timeout:g} s. If it was still loading, allow more "
                "(--backend-option startup_timeout=SECONDS).",
                process,
            )
        if now - said >= _SAY:
            said = now
            last = quoted(process.tail(1), 100)
            context.progress(f"vLLM is loading {model} ({now - began:.0f} s, log: {process.log}): {last}")
        time.sleep(_POLL)
    if (code := process.ended) is not None:  # somebody else's server has taken the port meanwhile
        raise _ended(f"The vLLM server for '{model}' ended with code {code}.", process)
    return time.monotonic() - began


def _healthy(host: str, port: int) -> bool:
    # Not urllib: it would ask a proxy that the environment names.
    connection = http.client.HTTPConnection(host, port, timeout=5.0)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class _EndedError(PluginError):
    """The process has ended too early."""


def _ended(said: str, process: Supervised) -> _EndedError:
    process.stop()
    return _EndedError(_with_log(said, process))


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
        "nodes": "start a server on each of this many nodes of the Ray cluster (RAY_ADDRESS); they share the subjects",
        "startup_timeout": f"seconds to wait for the server to be healthy ({STARTUP_TIMEOUT:g})",
    },
    summary="open weights on this machine's GPUs: starts and stops a vLLM server, or uses a running one (--base-url)",
)
