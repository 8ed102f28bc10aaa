"""vLLM on the nodes of a Ray cluster, one server on each: a program of its own, which ``vllm`` runs under supervision.

It holds what Ray has lent (a placement group, and an actor on each of its nodes) until it is told to stop. If it is
killed instead, Ray ends the actors, because they belong to it; and on each node a supervisor ends the server whose
actor is gone. The session's own process does not load Ray, which ends processes that lose their cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench import (
    BackendContext,
    CheeseBenchError,
    ModelEntry,
    OptionError,
    PluginError,
    __version__,
    install_command,
    quoted,
)
from cheesebench.plugins.backends.vllm_options import copies, typed

#: Seconds until the cluster has to take a connection, and that the servers have to end.
REACH_SECONDS, STOP_SECONDS = 10.0, 45.0
#: Seconds between two looks.
_TICK = 0.5


def program(model: str, options: Mapping[str, Any], answer: Path) -> list[str]:
    """Return the command of this program; it writes the servers' URLs, or why there are none, into ``answer``."""
    asked = json.dumps({"model": model, "options": dict(options), "answer": str(answer)})
    # It finds this module where we found it; -P: never in the working directory.
    code = f"import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); import {__name__} as module; module.main()"
    return [sys.executable, "-P", "-c", code, json.dumps(sys.path), asked]


def gpus(options: Mapping[str, Any]) -> int:
    """Return how many GPUs of a node its server takes: copies of the model, each on so many."""
    sizes = (typed(name, options.get(name, 1), int) for name in ("tensor_parallel_size", "pipeline_parallel_size"))
    first, second = sizes
    return int(first * second * copies(options))


class Keeper:
    """Starts the server of its node, and stops it: an actor."""

    def start(self, model: str, options: Mapping[str, Any], variables: Mapping[str, str], version: str) -> str:
        """Return the URL of the server when it is healthy. Raises PluginError; the text names no node."""
        import ray

        from cheesebench.plugins.backends.vllm import serve_at

        if version != __version__:
            raise PluginError(f"CheeseBench {__version__} is installed there, but {version} runs. Install the same.")
        os.environ.update(variables)
        self._logs = tempfile.TemporaryDirectory(prefix="cheesebench-vllm-")
        entry = ModelEntry(name=model, backend="vllm", id=model)
        context = BackendContext(entry=entry, directory=Path(self._logs.name), options=options)
        self._server = serve_at(context, ray.util.get_node_ip_address())
        return self._server.base_url

    def stop(self) -> None:
        """Stop the server."""
        self._server.stop()
        self._logs.cleanup()


def main() -> None:
    """Start the servers, write where they are, and stop them when told to (SIGTERM)."""
    asked = json.loads(sys.argv[1])
    told = threading.Event()
    _listen(told)
    with contextlib.ExitStack() as cleanup:
        try:
            answer: dict[str, Any] = {"urls": _start(asked["model"], asked["options"], told, cleanup)}
        except CheeseBenchError as error:
            answer = {"error": str(error), "usage": isinstance(error, OptionError)}
        except Exception as error:  # Ray says in many ways that something is wrong
            answer = {"error": f"Ray: {_line(error)}"}
        path = Path(asked["answer"])
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(answer), encoding="utf-8")
        draft.replace(path)
        if "urls" in answer:
            told.wait()


def _start(model: str, options: dict[str, Any], told: threading.Event, cleanup: contextlib.ExitStack) -> list[str]:
    """Return the URLs of the servers, one for each node."""
    nodes, per_node = typed("nodes", options.pop("nodes"), int), gpus(options)
    try:
        import ray
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
    except ImportError:
        raise PluginError(f"nodes needs Ray. Install it ({install_command('ray')}).") from None
    _connect(ray)
    _listen(told)  # Ray has a handler of its own
    cleanup.callback(ray.shutdown)
    needed = {"GPU": per_node} if ray.cluster_resources().get("GPU") else {"CPU": 1}
    _check(ray.nodes(), nodes, needed)
    group = placement_group([needed] * nodes, strategy="STRICT_SPREAD")
    cleanup.callback(remove_placement_group, group)
    _say(f"waits for {nodes} free nodes with {_listed(needed)} each")
    while not group.wait(_TICK):
        if told.is_set():
            raise PluginError("It was told to stop.")
    variables = {name: value for name, value in os.environ.items() if name.startswith(("VLLM_", "HF_"))}
    keepers = [
        ray.remote(Keeper)
        .options(
            num_cpus=needed.get("CPU", 0),
            num_gpus=needed.get("GPU", 0),
            max_concurrency=2,  # it can be stopped while it starts
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number),
        )
        .remote()
        for number in range(nodes)
    ]
    cleanup.callback(_stop, ray, keepers)
    starting = [keeper.start.remote(model, options, variables, __version__) for keeper in keepers]
    urls: dict[int, str] = {}
    while len(urls) < nodes:
        if told.is_set():
            raise PluginError("It was told to stop.")
        waiting = [one for number, one in enumerate(starting) if number not in urls]
        for ready in ray.wait(waiting, timeout=_TICK)[0]:
            number = starting.index(ready)
            urls[number] = _answer(ray, ready, number)
            _say(f"{len(urls)} of {nodes} servers are ready")
    return [urls[number] for number in range(nodes)]


def _listen(told: threading.Event) -> None:
    signal.signal(signal.SIGTERM, lambda *_: told.set())


def _connect(ray: Any) -> None:
    address = os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.rpartition(":")
    named = f"the Ray cluster at {quoted(address, 100)} (RAY_ADDRESS)" if address else "a Ray cluster on this machine"
    try:
        if host and port.isdigit() and "://" not in address:
            # Ray itself would try for a minute.
            socket.create_connection((host, int(port)), REACH_SECONDS).close()
        ray.init(address or "auto", log_to_driver=False, logging_level="ERROR", namespace="cheesebench")
    except (OSError, RuntimeError, ValueError) as error:
        raise OptionError(
            f"nodes: {named} cannot be reached ({_line(error)}). Start one (ray start --head), or set RAY_ADDRESS."
        ) from None


def _check(found: Sequence[Mapping[str, Any]], nodes: int, needed: Mapping[str, int]) -> None:
    """Raise OptionError where the cluster can never have so many such nodes."""
    alive = [node["Resources"] for node in found if node["Alive"]]
    fit = sum(all(resources.get(name, 0) >= number for name, number in needed.items()) for resources in alive)
    if fit < nodes:
        raise OptionError(
            f"nodes={nodes}: the Ray cluster has {fit} {'node' if fit == 1 else 'nodes'} with {_listed(needed)} "
            f"(and {len(alive)} in all). Ask for fewer nodes, or for fewer GPUs on each."
        )


def _answer(ray: Any, ready: Any, number: int) -> str:
    try:
        return str(ray.get(ready))
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, CheeseBenchError) else None
        raise PluginError(f"Node {number + 1}: {cause or _line(error.cause or error)}") from None
    except ray.exceptions.RayError as error:
        raise PluginError(f"Node {number + 1} has died while its server started ({_line(error)}).") from None


def _stop(ray: Any, keepers: Sequence[Any]) -> None:
    """Stop all servers; a node that is gone has none."""
    stopping = [keeper.stop.remote() for keeper in keepers]
    with contextlib.suppress(Exception):
        ray.wait(stopping, num_returns=len(stopping), timeout=STOP_SECONDS)


def _listed(needed: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}{'s' if number > 1 else ''}" for name, number in needed.items())


def _line(error: BaseException) -> str:
    return quoted(" ".join(str(error).split()) or type(error).__name__, 300)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
