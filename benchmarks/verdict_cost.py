"""Measures the cost of nine verdicts, with four scripted respondents in the sequential
design.

The real agent, client, log and harness ask each respondent (``scripted_respondents``)
through a server on this machine. A cell's subjects are played set by set until the rule
stops. ``--history`` is the agent's setting (``5`` for a window that slides by one pair
per call); ``--profiles`` writes the file from which ``cheesebench plan`` and the
documentation take the respondents' statistics.

    python benchmarks/verdict_cost.py t_maze --kinds hopeless,competent
    python benchmarks/verdict_cost.py --dropped   # for docs/prompts.md
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import common
from places import fill
from scripted_respondents import LAPSES, Counted, Player, Respondents
from tabulate import tabulate

from cheesebench.chat import Price, Usage
from cheesebench.executor import Job, Report
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import (
    CallOptions,
    LanguageModels,
    ModelWorker,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.subjects import ParadigmCache
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification, with_arena
from cheesebench.records import MOST_SUBJECTS, CellPlan, TrialRecord, sets_until
from cheesebench.statistics.judgement import judge, judge_set
from cheesebench.statistics.sample import trials_by_subject
from cheesebench.testing.fake_server import FakeServer

SEED = 0
#: Model whose price is used. Then, per second, the tokens that a GPU reads anew, reads
#: from its cache, and writes: the figures of an H200 with 90 calls of a 7B model in
#: flight (``measured/gpu.json``), in an estimated ratio.
PRICED = "gpt-5.4-mini"
FRESH, CACHED, DECODED = 65_000, 650_000, 7_800


@dataclasses.dataclass(frozen=True)
class Cost:
    """Cost of calls, in tokens."""

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    api: int = 0
    completion: int = 0

    @classmethod
    def of(cls, calls: Iterable[Counted]) -> Cost:
        """Return the sum of calls."""
        found = list(calls)
        names = ("prompt", "cached", "api", "completion")
        return cls(
            len(found), *(sum(getattr(call, name) for call in found) for name in names)
        )

    def __add__(self, other: Cost) -> Cost:
        """Return the sum of two costs."""
        return Cost(
            *(
                a + b
                for a, b in zip(
                    dataclasses.astuple(self), dataclasses.astuple(other), strict=True
                )
            )
        )

    def dollars(self, price: Price) -> float:
        """Return the price of these tokens."""
        return price.cost(
            Usage(prompt=self.prompt, cached=self.api, completion=self.completion)
        )

    @property
    def gpu_hours(self) -> float:
        """Hours of one GPU."""
        return (
            (self.prompt - self.cached) / FRESH
            + self.cached / CACHED
            + self.completion / DECODED
        ) / 3600


@dataclasses.dataclass(frozen=True)
class Played:
    """One respondent on one protocol."""

    kind: str
    protocol: str
    trials: int
    by_subject: tuple[Cost, ...]
    stopped: int
    """Number of subjects of the set after which the design stopped."""
    verdict: str
    rate: float

    @property
    def cost(self) -> Cost:
        """Total cost over all subjects."""
        return sum(self.by_subject, Cost())


async def play(
    kind: str,
    specification: Specification,
    settings: dict[str, str],
    directory: Path,
    most: int,
) -> Played:
    """Play one cell set by set."""
    plugins = installed_plugins()
    respondents = Respondents()
    with FakeServer(respondents, keep=1) as server:
        entry = resolve_model(plugins, f"openai/{kind}")
        model = language_model(
            plugins, entry, base_url=server.base_url, settings=settings
        )
        design = find_design("sequential", most)
        plan = plan_cell(
            specification,
            model.entry.name,
            "ascii_2d",
            design,
            "life",
            agent="llm",
            settings=model.settings,
        )
        paradigm = plugins.compile(specification)
        with RunLog.create(
            directory,
            f"{kind}-{specification.name}",
            [(plan, specification)],
            options={},
        ) as log:
            models = LanguageModels(
                log, {plan.model: model}, CallOptions(concurrency=64)
            )
            worker = ModelWorker(models, plugins, ParadigmCache(plugins))
            records: list[TrialRecord] = []
            lived = 0
            for wanted in sets_until(most):
                for subject in range(lived, wanted):
                    respondents.seat(Player(kind, paradigm, plan, SEED, subject))
                records += await _live(
                    worker, plan, specification, range(lived, wanted)
                )
                lived = wanted
                if judge_set(plan, trials_by_subject(records).values()).decided:
                    break
            await models.close()
    result = judge(plan, records)
    counted = respondents.counted
    return Played(
        kind=kind,
        protocol=specification.name,
        trials=plan.trials,
        by_subject=tuple(
            Cost.of(counted[(kind, plan.protocol, subject)]) for subject in range(lived)
        ),
        stopped=lived,
        verdict=result.verdict.value,
        rate=result.rate or 0.0,
    )


async def _live(
    worker: ModelWorker,
    plan: CellPlan,
    specification: Specification,
    subjects: Sequence[int],
) -> list[TrialRecord]:
    """Run subjects in parallel, and return their trials. A subject that is stopped ends
    the benchmark.
    """
    records: list[TrialRecord] = []

    def report(message: Report) -> None:
        if message.missing:
            raise SystemExit(f"A subject has stopped: {message.cause}")
        records.extend(record for record, _ in message.trials)

    jobs = [
        Job(
            plan=plan,
            specification=specification,
            seed=SEED,
            subject=subject,
            yoke=None,
        )
        for subject in subjects
    ]
    await asyncio.gather(*(worker.run(job, report) for job in jobs))
    return sorted(records, key=lambda record: (record.subject, record.trial))


def table(played: Sequence[Played], price: Price) -> str:
    """Return the totals of each respondent."""
    rows = []
    for kind in dict.fromkeys(one.kind for one in played):
        cells = [one for one in played if one.kind == kind]
        total = sum((one.cost for one in cells), Cost())
        verdicts = [one.verdict for one in cells]
        rows.append(
            (
                kind,
                sum(one.stopped for one in cells) / len(cells),
                total.calls,
                total.prompt / 1e6,
                f"{100 * total.cached / total.prompt:.0f} %",
                total.completion / 1e6,
                f"${total.dollars(price):.2f}",
                total.gpu_hours,
                "/".join(
                    str(verdicts.count(verdict))
                    for verdict in ("PASS", "FAIL", "INCONCLUSIVE")
                ),
            )
        )
    headers = (
        "respondent",
        "subjects",
        "calls",
        "prompt M",
        "cached",
        "reply M",
        PRICED,
        "H200 h",
        "P/F/?",
    )
    return tabulate(
        rows,
        headers,
        floatfmt=("", ".1f", ",.0f", ".2f", "", ".3f", "", ".3f", ""),
        intfmt=",",
    )


def profiles(
    played: Sequence[Played], history: str, specifications: Iterable[Specification]
) -> dict[str, Any]:
    """Return the shipped profiles: by protocol and respondent, the cost of a subject,
    and where the rule stops.
    """
    marks = {
        specification.name: specification.sha256 for specification in specifications
    }
    found: dict[str, Any] = {
        name: {"sha256": mark, "respondents": {}} for name, mark in marks.items()
    }
    for one in played:
        found[one.protocol]["respondents"][one.kind] = {
            "trials": one.trials,
            "rate": round(one.rate, 4),
            "stopped": one.stopped,
            "verdict": one.verdict,
            "each": {
                name: round(value / one.stopped, 2)
                for name, value in dataclasses.asdict(one.cost).items()
            },
        }
    return {"history": history, "encoding": "o200k_base", "protocols": found}


def write_profiles(path: Path, found: dict[str, Any]) -> None:
    """Write profiles. Profiles of other respondents and protocols that are already in
    the file are kept, unless the protocol has changed.
    """
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if known.get("history") == found["history"]:
        protocols = known["protocols"]
        for name, measured in found["protocols"].items():
            before = protocols.get(name, measured)
            kept = (
                before["respondents"] if before["sha256"] == measured["sha256"] else {}
            )
            protocols[name] = {
                **measured,
                "respondents": {**kept, **measured["respondents"]},
            }
        found = {**found, "protocols": protocols}
    path.write_text(
        json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


def page_table(found: dict[str, Any], price: Price) -> str:
    """Return the table of the documentation from profiles: the cost of each respondent
    on all protocols.
    """
    rows = []
    for kind in LAPSES:
        cells = [
            own["respondents"][kind]
            for own in found["protocols"].values()
            if kind in own["respondents"]
        ]
        if not cells:  # This respondent has not been measured yet.
            continue
        total = {
            name: sum(one["stopped"] * one["each"][name] for one in cells)
            for name in ("calls", *_TOKENS)
        }
        dollars = Cost(**{name: round(value) for name, value in total.items()}).dollars(
            price
        )
        verdicts = [one["verdict"] for one in cells]
        counts = " / ".join(
            str(verdicts.count(name)) for name in ("PASS", "FAIL", "INCONCLUSIVE")
        )
        mean = sum(one["stopped"] for one in cells) / len(cells)
        cached = total["cached"] / total["prompt"]
        rows.append(
            f"| {kind} | {mean:.1f} | {total['calls']:,.0f} | {total['prompt'] / 1e6:.1f} | {100 * cached:.0f} % "
            f"| {total['completion'] / 1e6:.2f} | {dollars:.2f} | {counts} |"
        )
    head = (
        "respondent",
        "subjects",
        "calls",
        "prompt M",
        "cached",
        "reply M",
        "dollars",
        "PASS / FAIL / ?",
    )
    return "\n".join(
        [f"| {' | '.join(head)} |", f"|---|{'--:|' * (len(head) - 1)}", *rows]
    )


def dropped_plans(chosen: Iterable[Specification]) -> dict[str, dict[str, float]]:
    """Return the calls per subject by protocol, for each setting of ``interrupt``, with
    six competent subjects.
    """
    found: dict[str, dict[str, float]] = {}
    for interrupt in ("never", "change"):
        for one in chosen:
            with tempfile.TemporaryDirectory() as directory:
                cell = play(
                    "competent",
                    with_arena(one),
                    {"interrupt": interrupt},
                    Path(directory),
                    most=6,
                )
                played = asyncio.run(cell)
            found.setdefault(one.name, {})[interrupt] = round(
                played.cost.calls / played.stopped, 1
            )
            print(interrupt, one.name, found[one.name][interrupt], flush=True)
    return found


DROPPED = Path(__file__).parent / "measured/dropped_plans.json"
_TOKENS = ("prompt", "cached", "api", "completion")
PAGE = Path(__file__).parents[1] / "docs/models.md"
SHIPPED = Path(__file__).parents[1] / "cheesebench/planning/profiles.json"


def shipped_table() -> str:
    """Return the table of the shipped profiles in the form of the page."""
    price = resolve_model(installed_plugins(), PRICED).price
    assert price is not None
    found = json.loads(SHIPPED.read_text(encoding="utf-8"))
    return f"\n{page_table(found, price)}\n"


def main() -> None:
    """Run the respondents, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "protocols",
        nargs="*",
        help="protocol files, or names of shipped ones (default: the nine)",
    )
    parser.add_argument(
        "--kinds",
        default=",".join(LAPSES),
        help="respondents, with commas (default: all)",
    )
    parser.add_argument(
        "--history", default="3-7", help="the agent's setting (default: 3-7)"
    )
    parser.add_argument(
        "--interrupt", default="change", help="the agent's setting (default: change)"
    )
    parser.add_argument("--most", type=int, default=MOST_SUBJECTS, help="most subjects")
    parser.add_argument(
        "--profiles", type=Path, help="write the profiles that are shipped to this file"
    )
    parser.add_argument(
        "--dropped",
        action="store_true",
        help="only count calls with and without dropped plans",
    )
    options = parser.parse_args()
    plugins = installed_plugins()
    price = resolve_model(plugins, PRICED).price
    assert price is not None
    chosen = list(common.specifications(options.protocols or common.NINE))
    if options.dropped:
        DROPPED.write_text(
            json.dumps(dropped_plans(chosen), indent=1) + "\n", encoding="utf-8"
        )
        return
    played: list[Played] = []
    with tempfile.TemporaryDirectory() as directory:
        for kind in options.kinds.split(","):
            for specification in chosen:
                began = time.monotonic()
                settings = {"history": options.history, "interrupt": options.interrupt}
                one = asyncio.run(
                    play(
                        kind,
                        with_arena(specification),
                        settings,
                        Path(directory),
                        options.most,
                    )
                )
                played.append(one)
                print(
                    f"{kind} on {one.protocol}: rate {one.rate:.2f}, {one.verdict} at {one.stopped}, "
                    f"{one.cost.calls} calls, {time.monotonic() - began:.1f} s",
                    flush=True,
                )
                if options.profiles:
                    write_profiles(
                        options.profiles, profiles(played, options.history, chosen)
                    )
    print(table(played, price))
    if options.profiles and options.profiles.resolve() == SHIPPED:
        fill(PAGE, "costs", shipped_table())


if __name__ == "__main__":
    main()
