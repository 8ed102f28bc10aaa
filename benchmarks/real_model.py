"""Runs a real, very small language model on the nine protocols, and stores figures
whose sums a test can check.

    python benchmarks/real_model.py --output benchmarks/measured/real_model.json
    python benchmarks/real_model.py --plans RUN --plans RUN --output FILE
    python benchmarks/real_model.py --replies replies.jsonl

It needs the extra ``local`` and the weights of smollm2-135m. docs/models.md shows the
figures; a test compares them. The second command compares the costs of runs with the
forecast of ``cheesebench plan --ask`` for the same settings; the third collects replies
to the first questions of each protocol, in each prompt variant and each view of text,
for labels by hand (tests/replies/smollm2.jsonl); ``actions`` is left empty.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from common import NINE, specifications

from cheesebench.experiment.cells import cells_of, find_design, language_model
from cheesebench.experiment.language_models import (
    connected,
    start_servers,
    stop_servers,
)
from cheesebench.family import CellRequest
from cheesebench.interfaces import PictureView
from cheesebench.models import resolve_model
from cheesebench.planning.asking import put_questions
from cheesebench.plugin_manager import installed_plugins

MODEL = "smollm2-135m"
AGENTS = ("llm", "llm-tools")
PAGE = Path(__file__).parents[1] / "docs/models.md"
COUNTED = ("calls", "unparsed", "truncated", "empty")


def measure(agent: str, options: list[str], directory: Path) -> dict[str, Any]:
    """Run the smoke design; return the contents of its log for each protocol."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--model",
        MODEL,
        "--agent",
    ]
    command += [
        agent,
        "--design",
        "smoke",
        "--seed",
        "0",
        "--results",
        str(directory),
        "--run-id",
        agent,
        *options,
    ]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False
    )
    with closing(
        sqlite3.connect(f"file:{directory / agent / 'run.sqlite'}?mode=ro", uri=True)
    ) as log:
        return {
            "exit": done.returncode,
            "protocols": {
                name: _of_protocol(log, name)
                for (name,) in log.execute("SELECT DISTINCT protocol FROM calls")
            },
            "replies": [
                text
                for (text,) in log.execute(
                    "SELECT reply FROM calls WHERE call = 0 AND trial = 0 LIMIT 6"
                )
            ],
        }


def _of_protocol(log: sqlite3.Connection, name: str) -> dict[str, Any]:
    query = "SELECT count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), max(prompt_tokens) FROM calls"
    calls, prompt, cached, completion, longest = log.execute(
        f"{query} WHERE protocol = ?", (name,)
    ).fetchone()
    tallies = [
        json.loads(text)
        for (text,) in log.execute(
            "SELECT tally FROM trials WHERE protocol = ?", (name,)
        )
    ]
    actions = "".join(
        text
        for (text,) in log.execute(
            "SELECT actions FROM trials WHERE protocol = ?", (name,)
        )
    )
    return {
        "calls": calls,
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "reply_tokens": completion,
        "longest_prompt": longest,
        "counts": {one: sum(tally.get(one, 0) for tally in tallies) for one in COUNTED},
        "actions": {letter: actions.count(letter) for letter in "FLRS"},
    }


def planned(run: Path) -> list[dict[str, Any]]:
    """Return the plan from six first answers, and the actual figures, for each protocol
    of a run.
    """
    with closing(
        sqlite3.connect(f"file:{run / 'run.sqlite'}?mode=ro", uri=True)
    ) as log:
        plans = [
            json.loads(text)
            for (text,) in log.execute("SELECT plan FROM cells ORDER BY position")
        ]
        made = {plan["protocol"]: _of_protocol(log, plan["protocol"]) for plan in plans}
    first = plans[0]
    command = [
        sys.executable,
        "-m",
        "cheesebench",
        "plan",
        "--ask",
        "--json",
        "--model",
        MODEL,
        "--results",
        "none",
    ]
    command += [
        "--design",
        first["design"],
        "--reply-tokens",
        str(first["settings"]["max_tokens"]),
    ]
    command += [part for plan in plans for part in ("--protocols", plan["protocol"])]
    found = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    rows = []
    for cell in found["cells"]:
        random, took = cell["outlooks"]["random"], made[cell["plan"]["protocol"]]
        subjects, each = random["subjects"][0], random["each"]
        rows.append(
            {
                "protocol": cell["plan"]["protocol"],
                "design": first["design"],
                "planned": {
                    "calls": round(subjects * each["calls"]),
                    "tokens": round(subjects * (each["prompt"] + each["completion"])),
                },
                "made": {
                    "calls": took["calls"],
                    "tokens": took["prompt_tokens"] + took["reply_tokens"],
                },
            }
        )
    return rows


def collect(each: int) -> Iterator[dict[str, str]]:
    """Yield ``each`` first replies of every protocol in every prompt variant and view
    of text.
    """
    plugins = installed_plugins()
    tokens, views = (
        48,
        [
            view.name
            for view in plugins.views.values()
            if not isinstance(view, PictureView)
        ],
    )
    with tempfile.TemporaryDirectory() as place:
        entry = resolve_model(plugins, MODEL)
        plain = language_model(plugins, entry, settings={"max_tokens": tokens})
        servers = start_servers({MODEL: plain}, Path(place), print)
        try:
            for prompt in ("default", "minimal", "cot", "few_shot"):
                model = language_model(
                    plugins, entry, settings={"max_tokens": tokens, "prompt": prompt}
                )
                urls = {name: server.base_url for name, server in servers.items()}
                model = connected({MODEL: model}, urls)[MODEL]
                wanted = CellRequest(
                    model=MODEL,
                    plugins=plugins,
                    design=find_design("smoke"),
                    language=model,
                    views=tuple(views),
                )
                cells = [
                    (plan, one)
                    for one in specifications(NINE)
                    for plan in cells_of(one, wanted)
                ]
                asked, _ = asyncio.run(
                    put_questions(plugins, cells, model, Path(place), each)
                )
                for one in asked:
                    for _, reply in one.asked:
                        source = f"smollm2 {one.plan.protocol} {prompt} {one.plan.view}"
                        yield {"source": source, "actions": "", "reply": reply.text}
        finally:
            stop_servers(servers)


def write_page(known: dict[str, Any]) -> None:
    """Write the table of ``docs/models.md``."""
    lines = [
        "| agent | protocol | calls | no action found | cut off | prompt tokens | reply tokens |"
    ]
    lines.append("|---|---|--:|--:|--:|--:|--:|")
    for agent in AGENTS:
        for name, one in sorted(known[agent]["protocols"].items()):
            counts, prompt, reply = (
                one["counts"],
                one["prompt_tokens"],
                one["reply_tokens"],
            )
            figures = (
                one["calls"],
                counts["unparsed"],
                counts["truncated"],
                f"{prompt:,}",
                f"{reply:,}",
            )
            lines.append(f"| {agent} | {name} | {' | '.join(map(str, figures))} |")
    before, mark, after = PAGE.read_text(encoding="utf-8").partition(
        "<!-- real model -->\n"
    )
    table = "\n".join(lines)
    PAGE.write_text(
        f"{before}{mark}{table}\n\n{after.partition(chr(10) * 2)[2]}", encoding="utf-8"
    )


def main() -> None:
    """Measure, and write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--output", type=Path)
    parser.add_argument(
        "--replies", type=Path, help="collect replies into this file instead"
    )
    parser.add_argument(
        "--each",
        type=int,
        default=2,
        help="replies of each protocol, prompt and view (default: 2)",
    )
    parser.add_argument(
        "--plans",
        type=Path,
        action="append",
        help="compare this run with its plan instead",
    )
    parser.add_argument(
        "options", nargs="*", help="further options of pytest, after --"
    )
    arguments = parser.parse_args()
    if arguments.replies:
        with arguments.replies.open("w", encoding="utf-8") as file:
            for one in collect(arguments.each):
                print(json.dumps(one, ensure_ascii=False), file=file, flush=True)
    if not arguments.output:
        return
    known = (
        json.loads(arguments.output.read_text(encoding="utf-8"))
        if arguments.output.is_file()
        else {}
    )
    if arguments.plans:
        known["plans"] = [row for run in arguments.plans for row in planned(run)]
        arguments.output.write_text(
            json.dumps(known, indent=1) + "\n", encoding="utf-8"
        )
        return
    with tempfile.TemporaryDirectory() as directory:
        known |= {
            agent: measure(agent, arguments.options, Path(directory))
            for agent in AGENTS
        }
    arguments.output.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    write_page(known)


if __name__ == "__main__":
    main()
