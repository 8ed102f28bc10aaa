"""The backend ``llamacpp``, which runs a GGUF file in a separate process, with
llama.cpp's own server.

The server comes from the package ``xllamacpp``, whose wheels need no compiler on any
supported Python. A separate server is about as fast as calls within this process,
serves all workers of ``pytest -n``, and drops cancelled calls. If it crashes, the run
goes on.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

from cheesebench import (
    BackendContext,
    BackendSpec,
    Capabilities,
    Connection,
    OptionError,
    PluginError,
    install_command,
)
from cheesebench.plugins.backends.openai import ChatCompletions, check_served
from cheesebench.plugins.backends.processes import (
    LOOPBACK,
    StartedServer,
    number_in,
    python_command,
    start_server,
)
from cheesebench.plugins.backends.weights import OPTIONS, check, digest, weights

#: Default for the maximum number of tokens of a call, prompt and reply together. It is
#: enough for the shipped protocols with the default settings.
CONTEXT = 16384
#: Default time limit, in seconds, for the server to become healthy. It is long, because
#: a large file may have to be read from a slow disk.
STARTUP_TIMEOUT = 600.0
#: Maximum seconds to wait for the server's report of its progress. The server does not
#: answer while it computes a batch of 2,048 tokens.
BATCH_TIME = 120.0
#: Matches the environment variables that are passed to the server: those for the system
#: and for accelerators, but no keys for other services.
_NEEDED = re.compile(
    r"(?:PATH|HOME|LANG|TZ|TMPDIR|TMP|TEMP|LD_LIBRARY_PATH|VIRTUAL_ENV)$"
    r"|(?:LC|DYLD|CUDA|NVIDIA|GGML|OMP|VK|HIP|HSA|ROCR|METAL)_"
)


def serve(context: BackendContext) -> StartedServer:
    """Start a server for the model's file, and return it when it is healthy.

    Raise OptionError for an invalid option or file. Raise PluginError if llama.cpp or
    the required file is not available, or if the server does not become healthy. The
    last error quotes the end of the server's log.
    """
    options = context.options
    slots = number_in(options, "slots", max(1, cores() // 4))
    tokens = number_in(options, "context", context.entry.context or CONTEXT)
    threads = number_in(options, "threads", threads_for(cores()))
    timeout = number_in(options, "startup_timeout", STARTUP_TIMEOUT)
    path = weights(context)
    _check_installed(context)
    settings = {
        "path": str(path.resolve()),
        "slots": slots,
        "context": tokens,
        "threads": threads,
    }
    server, after = start_server(
        context,
        "llama.cpp",
        lambda port: python_command(main, json.dumps({**settings, "port": port})),
        _NEEDED,
        timeout,
    )
    calls = "1 call" if slots == 1 else f"{slots} calls"
    context.progress(
        f"llama.cpp serves {path.name} {after}, {calls} at once (log: {server.process.log})"
    )
    server.facts = {
        "file": path.name,
        "bytes": path.stat().st_size,
        # If the entry has a hash, the file has just been checked against it.
        "sha256": options.get("sha256", "").lower() or digest(path),
        "xllamacpp": importlib.metadata.version("xllamacpp"),
        "slots": slots,
        "threads": threads,
    }
    return server


def threads_for(cores: int) -> int:
    """Return the number of threads for this many cores. If there are more than two, one
    core is left to the rest of the run.
    """
    return max(cores - 1, min(cores, 2))


def cores() -> int:
    """Return the number of cores that this process may use."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def main() -> None:
    """Serve in this process until it is terminated. The command line's argument has the
    settings as JSON.
    """
    settings = json.loads(sys.argv[1])
    library: Any = importlib.import_module("xllamacpp")
    parameters = library.CommonParams()
    parameters.model.path = settings["path"]
    parameters.model_alias = {Path(settings["path"]).stem}
    parameters.port, parameters.n_parallel = settings["port"], settings["slots"]
    parameters.n_ctx = settings["context"] * settings["slots"]
    # Never take over another subject's slot. Prompts begin alike, which by default is
    # enough to take a slot and lose its cache. With 0, a slot's last prompt is always
    # stored, and the stored prompt with the longest common beginning is restored.
    parameters.slot_prompt_similarity = 0.0
    # Keep the prompts of waiting subjects. A prompt takes 80 MB in a model of 135
    # million parameters. The library's default is 8 GiB.
    parameters.cache_ram_mib = 2048
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings[
        "threads"
    ]
    # Only the request determines the sampling.
    parameters.sampling.top_k, parameters.sampling.top_p, parameters.sampling.min_p = (
        0,
        1.0,
        0.0,
    )
    # Keep web pages that are open on this machine from using the server, and switch off
    # the server's own page.
    parameters.cors_origins, parameters.ui = LOOPBACK, False
    server = library.Server(parameters)
    threading.Event().wait()
    del server


class LlamaServer(ChatCompletions):
    """A connection to llama.cpp's server, which reports the progress of each call."""

    async def progress(self) -> object:
        """Return the state of the server's slots, which changes with every token, or
        None if the server does not report it.
        """
        return await self.get_json("/slots", BATCH_TIME)


def connect(context: BackendContext) -> Connection:
    check_served(context.entry.served)
    if context.base_url is None:
        raise OptionError(
            "No llama.cpp server was started or named. Give the address of one with --base-url."
        )
    return LlamaServer(context.base_url, constrains=True)


def ready(context: BackendContext) -> str:
    """Return where a model's file is (``BackendSpec.check``). Raise PluginError if
    llama.cpp is not installed; ``weights.check`` raises further errors.
    """
    _check_installed(context)
    return check(context)


def _check_installed(context: BackendContext) -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise PluginError(
            f"'{context.entry.name}' runs on llama.cpp, which is not installed for this Python. Install it "
            f"({install_command('local')}), or use a running server (--base-url URL)."
        )


LLAMACPP = BackendSpec(
    name="llamacpp",
    connect=connect,
    serve=serve,
    check=ready,
    options={
        "context": f"maximum number of tokens per call, prompt and reply together (default: the entry's context, or {CONTEXT})",
        "slots": "calls processed at once (default: one for every four cores, at least one)",
        "threads": "number of computing threads (default: all cores, less one if there are more than two); the server is slow "
        "if other programs use these cores, too",
        **OPTIONS,
        "startup_timeout": f"seconds to wait until the server is healthy (default: {STARTUP_TIMEOUT:g})",
    },
    # Pictures need a second file (mmproj), which only a server that the user starts can
    # load.
    capabilities=Capabilities(images=False),
    summary="a GGUF file on this machine, without a GPU if need be: starts and stops llama.cpp's server",
)
