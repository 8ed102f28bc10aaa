"""Runs the nine protocols on a GPU, with a vLLM server that our backend starts and
stops, and reads the server's own figures under load.

    python benchmarks/gpu.py MODEL OUTPUT --load ascii_2d:40 --models FILE

MODEL is any model of the backend vllm (``random_model.py`` makes one). All further
options are pytest's.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from cheesebench import BackendContext, ModelEntry
from cheesebench.models import load_models, resolve_model
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends.vllm import serve

#: ``GROWN`` has the counters and sums of the server whose increase over a period is
#: measured.
GROWN = (
    "request_success",
    "num_preemptions",
    "prompt_tokens",
    "generation_tokens",
    "prefix_cache_queries",
)
GROWN += (
    "prefix_cache_hits",
    "e2e_request_latency_seconds_sum",
    "e2e_request_latency_seconds_count",
)
GROWN += (
    "time_to_first_token_seconds_sum",
    "time_to_first_token_seconds_count",
    "mm_cache_queries",
    "mm_cache_hits",
)
#: ``CARD`` is the command for the facts of the card and its used memory. ``SAID`` is
#: the pattern for the lines of pytest and of the log that are kept. ``NOW`` has the
#: server's values at one moment.
CARD = [
    "nvidia-smi",
    "--format=csv,noheader",
    "--query-gpu=name,memory.total,memory.used,driver_version",
]
SAID = r"version [\d.]+|(?:GPU KV cache size|Model loading took|Available KV).*|after \d+ s\b|Calls: .*|\d+ unparsed"
NOW = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")


def metrics(url: str) -> dict[str, float]:
    """Return the sums of the server's counters."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/metrics") as answer:
        lines = re.findall(
            r"^vllm:(\w+?)(?:_total)?(?:\{.*\})? ([\d.e+-]+)$",
            answer.read().decode(),
            re.MULTILINE,
        )
    found: dict[str, float] = {}
    for name, value in lines:
        found[name] = found.get(name, 0) + float(value)
    return found


def load(
    command: list[str],
    url: str,
    view: str,
    subjects: int,
    seconds: list[float],
    place: Path,
) -> dict[str, Any]:
    """Run subjects on all nine protocols, and return the server's figures for the given
    period of the run, in seconds.
    """
    name = f"{view}-{subjects}"
    options = [
        "--base-url",
        url,
        "--view",
        view,
        "--subjects",
        str(subjects),
        "--run-id",
        name,
    ]
    options += ["--design", "leaderboard", "--concurrency", str(9 * subjects)]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = metrics(url)
    with (place / f"{name}.txt").open("w") as output:
        process = subprocess.Popen(
            [*command, *options], cwd=place, stdout=output, stderr=output
        )
        time.sleep(seconds[0])
        before, began = metrics(url), time.monotonic()
        seen = [before]
        while time.monotonic() < began + seconds[1] and process.poll() is None:
            time.sleep(1)
            seen.append(metrics(url))
        took = time.monotonic() - began
        process.send_signal(signal.SIGINT)
        process.wait(60)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    answered = metrics(url)["request_success"] - first["request_success"]
    return {
        "view": view,
        "subjects": subjects,
        "seconds": round(took, 1),
        **{one: round(seen[-1].get(one, 0) - before.get(one, 0), 1) for one in GROWN},
        **{
            one: round(sum(moment[one] for moment in seen) / len(seen), 3)
            for one in NOW
        },
        "our CPU ms per call": round(1000 * cpu / max(1, answered), 1),
    }


def measure(
    entry: ModelEntry,
    output: Path,
    loads: list[str],
    seconds: list[float],
    more: list[str],
) -> None:
    """Start and stop a server with pytest, then start one that stays; return its
    figures under each load.
    """
    directory = Path(tempfile.mkdtemp(prefix="gpu-"))
    plain = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--model",
        entry.name,
        "--cheese-exit-zero",
    ]
    smoke = [
        "-s",
        "--design",
        "smoke",
        "--view",
        "ascii_2d",
        "--view",
        "topdown_2d",
        "--run-id",
        "smoke",
    ]
    plain += more
    said = subprocess.run(
        [*plain, *smoke], cwd=directory, capture_output=True, text=True, check=False
    ).stdout
    print(said, flush=True)
    if "vLLM serves" not in said:
        raise SystemExit("The server did not start.")
    left = subprocess.run(
        CARD, capture_output=True, text=True, check=True
    ).stdout.strip()
    lines = [said]
    server = serve(
        BackendContext(
            entry=entry,
            directory=directory,
            options=entry.options,
            progress=lines.append,
        )
    )
    assert server.base_url
    try:
        lines += [
            path.read_text(encoding="utf-8") for path in directory.glob("vllm-*.log")
        ]
        found: dict[str, Any] = {
            "card": left,
            "said": re.findall(SAID, "\n".join(lines)),
            "loads": [],
        }
        for one in loads:
            view, _, subjects = one.partition(":")
            found["loads"].append(
                load(plain, server.base_url, view, int(subjects), seconds, directory)
            )
            print(json.dumps(found["loads"][-1]), flush=True)
            output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    finally:
        server.stop()


def main() -> None:
    """Measure what the command line asks for, and write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("output", type=Path)
    parser.add_argument("--load", action="append", help="VIEW:SUBJECTS; repeatable")
    parser.add_argument(
        "--seconds",
        nargs=2,
        type=float,
        default=[20, 30],
        help="before, and of, what is measured",
    )
    parser.add_argument("--models", type=Path, help="the option of pytest")
    found, more = parser.parse_known_args()
    more += ["--models", str(found.models.resolve())] if found.models else []
    entry = resolve_model(
        installed_plugins(),
        found.model,
        load_models(found.models) if found.models else (),
    )
    measure(
        entry,
        found.output.resolve(),
        found.load or ["ascii_2d:40"],
        found.seconds,
        more,
    )


if __name__ == "__main__":
    main()
