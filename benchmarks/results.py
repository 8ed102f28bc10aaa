"""Measures the results of agents and real language models in the nine paradigms, in
several parts, and writes ``docs/results.md``.

    python benchmarks/results.py --minutes 60   # goes on where the last part stopped
    python benchmarks/results.py --only qwen2.5-coder-0.5b --protocols t_maze
    python benchmarks/results.py --write        # only writes the page

One cell (a model with its agent on a protocol) is one run, of seed 0 and the default
design, with the default settings. Its log is kept, compressed, in ``measured/results``,
so that a later part can continue it on any machine. The page is made of these logs
alone. For each it shows the digest, the cells that are not measured yet, and the cells
whose protocol has changed since. The models need the extra ``local`` and their weights.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import lzma
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import MEASURED, NINE, specifications
from places import filled
from tabulate import tabulate

from cheesebench.amounts import percent
from cheesebench.cli import main as cheesebench
from cheesebench.reports.cells import MARKS
from cheesebench.statistics import Verdict
from cheesebench.statistics.wording import on_scale

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))
from website.markup import escape  # noqa: E402

AGENTS = ("random", "tabular-ql", "hippocampal-ql", "place-learner")
MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
ASKERS = ("llm", "llm-tools")
KEPT = MEASURED / "results"
PAGE = PROJECT / "docs/results.md"
ACTIONS = {"F": "FORWARD", "L": "ROTATE_LEFT", "R": "ROTATE_RIGHT", "S": "STAY"}


@dataclass(frozen=True)
class Cell:
    """A model on a protocol. ``agent`` is the name of the agent that asks a language
    model, and "" for other models.
    """

    model: str
    agent: str
    protocol: str

    @property
    def name(self) -> str:
        """The name of the cell's run and of its log."""
        return ".".join(filter(None, (self.model, self.agent, self.protocol)))


def cells(models: Iterable[str] = (), protocols: Iterable[str] = ()) -> list[Cell]:
    """Return the cells of the page for the chosen models and protocols."""
    rows = [(model, "") for model in AGENTS]
    rows += [(model, agent) for model in MODELS for agent in ASKERS]
    return [
        Cell(model, agent, protocol)
        for model, agent in rows
        for protocol in NINE
        if model in (models or [model]) and protocol in (protocols or NINE)
    ]


def measure(cell: Cell, minutes: float, options: Sequence[str]) -> None:
    """Run a cell, or continue it, for this long; store its log, finished or not."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / cell.name
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--model", cell.model, "--protocols", cell.protocol, "--exit-zero"]
        command += ["--results", place, "--max-minutes", f"{minutes:g}", *options]
        command += ["--agent", cell.agent] if cell.agent else []
        if unpack(cell, run):
            command += ["--resume", cell.name]
        else:
            command += ["--seed", "0", "--run-id", cell.name]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        if not (run / "run.sqlite").is_file():
            sys.exit(f"{cell.name}: no run was made\n{done.stdout}{done.stderr}")
        pack(cell, run)


def unpack(cell: Cell, run: Path) -> bool:
    """Unpack the stored log of a cell to the place of a run's; return whether there was
    one.
    """
    kept = KEPT / f"{cell.name}.sqlite.xz"
    if not kept.is_file():
        return False
    run.mkdir()
    (run / "run.sqlite").write_bytes(lzma.decompress(kept.read_bytes()))
    return True


def pack(cell: Cell, run: Path) -> None:
    """Store a log, compressed by a factor of ten, whole or not at all."""
    with closing(sqlite3.connect(run / "run.sqlite")) as log:
        log.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    KEPT.mkdir(exist_ok=True)
    kept = KEPT / f"{cell.name}.sqlite.xz"
    unfinished = kept.with_suffix(".part")
    unfinished.write_bytes(lzma.compress((run / "run.sqlite").read_bytes(), preset=9))
    unfinished.replace(kept)


@dataclass(frozen=True)
class Found:
    """The contents of a cell's log."""

    cell: Cell
    judged: Mapping[str, Any]
    """The cell, as ``cheesebench report --json`` has it."""
    digest: str
    actions: Counter[str]
    calls: int
    repeated: int
    """Number of replies that are exactly the same as the one before."""
    noted: int
    """Replies with learnings that say something."""
    hours: float
    tokens: int

    @property
    def unfinished(self) -> bool:
        """Whether the last part was ended by the time limit."""
        outcomes = self.judged["outcomes"]
        return bool(outcomes["budget"] or outcomes["not run"])


def read(cell: Cell) -> Found | None:
    """Return the measurements of a cell, which come from its report and from queries of
    its log.
    """
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / cell.name
        if not unpack(cell, run):
            return None
        with contextlib.redirect_stdout(io.StringIO()) as out:
            cheesebench(["report", str(run), "--json"])
        (judged,) = json.loads(out.getvalue())["cells"]
        with closing(sqlite3.connect(run / "run.sqlite")) as log:
            (digest,) = log.execute("SELECT total FROM digest").fetchone()
            actions = Counter[str]()
            for (text,) in log.execute("SELECT actions FROM trials"):
                actions.update(text)
            query = "SELECT subject, reply, seconds, prompt_tokens + completion_tokens FROM calls WHERE fault = ''"
            calls = log.execute(f"{query} ORDER BY subject, trial, call").fetchall()
    return Found(
        cell=cell,
        judged=judged,
        digest=digest,
        actions=actions,
        calls=len(calls),
        repeated=sum(one[:2] == other[:2] for one, other in itertools.pairwise(calls)),
        noted=sum(says_something(reply) for _, reply, _, _ in calls),
        hours=sum(seconds for _, _, seconds, _ in calls) / 3600,
        tokens=sum(tokens for _, _, _, tokens in calls),
    )


def says_something(reply: str) -> bool:
    """Return whether the line of learnings in a reply has more than "none"."""
    found = re.search(r'LEARNINGS"?:\s*"?([^\n"]*)', reply, re.IGNORECASE)
    words = found[1].strip(" .,").casefold() if found else ""
    return words not in ("", "no", "none", "nothing", "n/a", "nothing is known yet")


def rendered(found: Mapping[Cell, Found | None], hashes: Mapping[str, str]) -> str:
    """Return the part of the page between its marks."""
    parts = [_summary(found, hashes)]
    for (model, agent), group in itertools.groupby(
        found, key=lambda cell: (cell.model, cell.agent)
    ):
        chosen = {cell: found[cell] for cell in group}
        parts.append(f"## {model}{f', {agent}' if agent else ''}")
        if not any(chosen.values()):
            parts.append("Not measured yet.")
            continue
        parts.append(_rows(chosen, hashes))
        parts += [text for text in [_behaviour(filter(None, chosen.values()))] if text]
    return "\n\n".join(parts) + "\n\n"


def state(found: Found | None, hashes: Mapping[str, str]) -> str:
    """Return the verdict of a cell, or why there is none."""
    if found is None:
        return "not measured yet"
    if found.judged["plan"]["sha256"] != hashes[found.cell.protocol]:
        return f"stale: the protocol has changed (was {found.judged['verdict']})"
    if found.unfinished:
        return "not finished yet"
    return str(found.judged["verdict"])


def _summary(found: Mapping[Cell, Found | None], hashes: Mapping[str, str]) -> str:
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for cell, one in found.items():
        row = rows.setdefault((cell.model, cell.agent), {})
        row[cell.protocol] = "-" if one is None else _marked(one, state(one, hashes))
    table = [[" ".join(key).strip(), *row.values()] for key, row in rows.items()]
    heads = [name.replace("_", " ") for name in NINE]
    return tabulate(
        table, ["subject", *heads], tablefmt="github", disable_numparse=True
    )


def _marked(found: Found, said: str) -> str:
    """Return a verdict and its rate in a few characters, or a word if there is none."""
    rate = found.judged["rate"]
    if said in ("PASS", "FAIL", "INCONCLUSIVE") and rate is not None:
        return f"{MARKS[Verdict(said)]} {percent(rate)}".replace(" ", "\u00a0")
    return {"not finished yet": "begun"}.get(said, said.partition(":")[0])


def _rows(chosen: Mapping[Cell, Found | None], hashes: Mapping[str, str]) -> str:
    columns = ["protocol", "verdict", "rate", "rodent", "ability", "of the rodent"]
    columns += ["difference", "subjects", "calls", "hours of calls"]
    columns += ["digest of the log"]
    return tabulate(
        [_row(cell, one, hashes) for cell, one in chosen.items()],
        columns,
        tablefmt="github",
        disable_numparse=True,
    )


def _row(cell: Cell, one: Found | None, hashes: Mapping[str, str]) -> list[str]:
    said = state(one, hashes)
    if one is None:
        return [cell.protocol, said, *[""] * 9]
    judged, reference = one.judged, one.judged["plan"]["reference"]
    ends = [
        judged[name] for name in ("difference", "difference_low", "difference_high")
    ]
    difference = ""
    if None not in ends:
        difference = "{:+.3f} ({:+.3f} to {:+.3f})".format(*ends)
    return [
        cell.protocol,
        said,
        "" if judged["rate"] is None else f"{judged['rate']:.3f}",
        "" if reference is None else f"{reference['value']:.3f}",
        *_abilities(judged["ability"]),
        difference,
        str(judged["subjects"]),
        f"{one.calls:,}" if one.calls else "",
        f"{one.hours:.2f}" if one.calls else "",
        f"`{one.digest[:16]}`",
    ]


def _abilities(scale: Mapping[str, float | None] | None) -> list[str]:
    """Return the model's and the rodent's index on the ability scale."""
    return [on_scale((scale or {}).get(side)) for side in ("model", "rodent")]


def _behaviour(found: Iterable[Found]) -> str:
    """Return, in plain words, a model's behaviour in all of its cells."""
    cells = list(found)
    said = [_steps(cells), *_replies(cells)]
    said += [
        f"In {one.cell.protocol}: {escape(one.judged['reason'])}"
        for one in cells
        if one.judged["verdict"] == "ERROR" and not one.unfinished
    ][:1]
    return " ".join(filter(None, said))


def _steps(cells: Sequence[Found]) -> str:
    actions = sum((one.actions for one in cells), Counter[str]())
    moves = {name: actions[letter] for letter, name in ACTIONS.items()}
    if not (total := sum(moves.values())):
        return ""
    shares = ", ".join(f"{name} {n / total:.0%}" for name, n in moves.items())
    return f"Of {total:,} steps: {shares}."


def _replies(cells: Sequence[Found]) -> Iterator[str]:
    if not (calls := sum(one.calls for one in cells)):
        return
    unread = sum(one.judged["agent_counts"].get("unparsed", 0) for one in cells)
    yield (
        f"Of {calls:,} replies, {1 - unread / calls:.0%} named an action, "
        f"{sum(one.repeated for one in cells) / calls:.0%} were the reply before once more, and "
        f"{sum(one.noted for one in cells) / calls:.0%} had learnings that say something."
    )
    tokens = sum(one.tokens for one in cells)
    hours = sum(one.hours for one in cells)
    yield f"{tokens / 1e6:.1f} million tokens, {hours:.1f} hours of calls."


def page() -> str:
    """Return the page, filled from the stored logs."""
    hashes = {one.name: one.sha256 for one in specifications(list(NINE))}
    block = rendered({cell: read(cell) for cell in cells()}, hashes)
    return filled(PAGE, "results", f"\n{block}")


def main() -> None:
    """Measure for as long as there is time, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="of this part")
    parser.add_argument("--only", nargs="+", default=[], help="models or agents")
    parser.add_argument("--protocols", nargs="+", default=[])
    parser.add_argument("--write", action="store_true", help="measure nothing")
    parser.add_argument(
        "options", nargs="*", help="of pytest, after --: not to be kept"
    )
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    for cell in cells(arguments.only, arguments.protocols):
        if arguments.write or time.monotonic() >= end:
            break
        found = read(cell)
        if found is None or found.unfinished:
            measure(cell, (end - time.monotonic()) / 60, arguments.options)
            print(cell.name, flush=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
