"""What nine verdicts cost: four scripted respondents play the fixed and the sequential design through the real path.

Each respondent (``scripted_respondents``) is asked by the real agent, client, log and harness, through a server on this
machine. A cell's subjects are played look by look until the sequential rule stops, and at least those of the fixed
design, so that both sides come from the same run. ``--history`` is the agent's setting (``5``: the window as it was);
``--profiles`` writes what ``cheesebench plan`` and the documentation know of the respondents.

    python benchmarks/verdict_cost.py t_maze --kinds hopeless,competent
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
from scripted_respondents import LAPSES, Counted, Player, Respondents
from tabulate import tabulate

from cheesebench.chat import Price, Usage
from cheesebench.executor import Job, Report
from cheesebench.experiment.contestants import language_model
from cheesebench.experiment.designs import find_design, plan_cell
from cheesebench.experiment.jobs import ParadigmCache
from cheesebench.experiment.language_models import CallOptions, LanguageModels, ModelWorker
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification
from cheesebench.statistics.judgement import judge
from cheesebench.statistics.spending import looks_until
from cheesebench.testing.fake_server import FakeServer

#: Subjects of the last look, and of the fixed design.
MOST, FIXED = 60, 10
SEED = 0
#: The model whose price is taken, and tokens that an H100 reads anew, reads from its cache, and writes in a second.
PRICED = "gpt-5.4-mini"
FRESH, CACHED, DECODED = 25_000, 250_000, 3_000


@dataclasses.dataclass(frozen=True)
class Cost:
    """What calls took."""

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
        return cls(len(found), *(sum(getattr(call, name) for call in found) for name in names))

    def __add__(self, other: Cost) -> Cost:
        """Return both together."""
        return Cost(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)))

    def dollars(self, price: Price) -> float:
        """Return the price of it."""
        return price.cost(Usage(prompt=self.prompt, cached=self.api, completion=self.completion))

    @property
    def gpu_hours(self) -> float:
        """Hours of one H100."""
        return ((self.prompt - self.cached) / FRESH + self.cached / CACHED + self.completion / DECODED) / 3600


@dataclasses.dataclass(frozen=True)
class Played:
    """One respondent on one protocol."""

    kind: str
    protocol: str
    trials: int
    by_subject: tuple[Cost, ...]
    stopped: int
    """Subjects of the look at which the sequential design stopped."""
    verdict: str
    fixed_verdict: str
    rate: float

    def cost(self, subjects: int) -> Cost:
        """Return what the first subjects took."""
        return sum(self.by_subject[:subjects], Cost())


async def play(kind: str, specification: Specification, history: str, directory: Path, most: int) -> Played:
    """Play one cell look by look, at least the subjects of the fixed design."""
    plugins = installed_plugins()
    respondents = Respondents()
    with FakeServer(respondents, keep=1) as server:
        entry = resolve_model(plugins, f"openai/{kind}")
        model = language_model(plugins, entry, base_url=server.base_url, settings={"history": history})
        design = find_design("cohort", most)
        plan = plan_cell(
            specification, model.entry.name, "ascii_2d", design, "life", agent="llm", settings=model.settings
        )
        plan = dataclasses.replace(plan, looks=looks_until(most))
        paradigm = plugins.compile(specification)
        with RunLog.create(directory, f"{kind}-{specification.name}", [(plan, specification)], options={}) as log:
            models = LanguageModels(log, {plan.model: model}, CallOptions(concurrency=64))
            worker = ModelWorker(models, plugins, ParadigmCache(plugins))
            records: list[TrialRecord] = []
            lived, wanted = 0, min(plan.looks[0], most)
            while True:
                for subject in range(lived, wanted):
                    respondents.seat(Player(kind, paradigm, plan, SEED, subject))
                records += await _live(worker, plan, specification, range(lived, wanted))
                lived = wanted
                result = judge(plan, records)
                assert result.look is not None
                if result.look.following is None:
                    break
                wanted = result.look.following
            stopped = lived
            if lived < FIXED:
                for subject in range(lived, FIXED):
                    respondents.seat(Player(kind, paradigm, plan, SEED, subject))
                records += await _live(worker, plan, specification, range(lived, FIXED))
            await models.close()
    fixed = dataclasses.replace(plan, looks=(), subjects=FIXED)
    first = [record for record in records if record.subject < FIXED]
    by_subject = [
        Cost.of(respondents.counted[(kind, plan.protocol, subject)]) for subject in range(max(stopped, FIXED))
    ]
    return Played(
        kind=kind,
        protocol=specification.name,
        trials=plan.trials,
        by_subject=tuple(by_subject),
        stopped=stopped,
        verdict=result.verdict.value,
        fixed_verdict=judge(fixed, first).verdict.value,
        rate=result.rate or 0.0,
    )


async def _live(
    worker: ModelWorker, plan: CellPlan, specification: Specification, subjects: Sequence[int]
) -> list[TrialRecord]:
    """Live subjects at once; a subject that is stopped ends the benchmark."""
    records: list[TrialRecord] = []

    def report(message: Report) -> None:
        if message.missing:
            raise SystemExit(f"A subject has stopped: {message.cause}")
        records.extend(record for record, _ in message.trials)

    jobs = [Job(plan=plan, specification=specification, seed=SEED, subject=subject, yoke=None) for subject in subjects]
    await asyncio.gather(*(worker.run(job, report) for job in jobs))
    return sorted(records, key=lambda record: (record.subject, record.trial))


def table(played: Sequence[Played], price: Price) -> str:
    """Return the totals of each respondent: the fixed design beside the sequential one."""
    rows = []
    for kind in dict.fromkeys(one.kind for one in played):
        cells = [one for one in played if one.kind == kind]
        for name in ("fixed", "sequential"):
            subjects = [FIXED if name == "fixed" else one.stopped for one in cells]
            total = sum((one.cost(number) for one, number in zip(cells, subjects, strict=True)), Cost())
            verdicts = [one.fixed_verdict if name == "fixed" else one.verdict for one in cells]
            rows.append(
                (
                    kind,
                    name,
                    sum(subjects) / len(subjects),
                    total.calls,
                    total.prompt / 1e6,
                    f"{100 * total.cached / total.prompt:.0f} %",
                    total.completion / 1e6,
                    f"${total.dollars(price):.2f}",
                    total.gpu_hours,
                    "/".join(str(verdicts.count(verdict)) for verdict in ("PASS", "FAIL", "INCONCLUSIVE")),
                )
            )
    headers = ("respondent", "design", "subjects", "calls", "prompt M", "cached", "reply M", PRICED, "H100 h", "P/F/?")
    return tabulate(rows, headers, floatfmt=("", "", ".1f", ",.0f", ".2f", "", ".3f", "", ".3f", ""), intfmt=",")


def cells_table(played: Sequence[Played]) -> str:
    """Return every cell."""
    rows = [
        (
            one.kind,
            one.protocol,
            f"{one.rate:.2f}",
            one.fixed_verdict,
            one.stopped,
            one.verdict,
            one.cost(one.stopped).calls,
            one.cost(FIXED).calls,
        )
        for one in played
    ]
    headers = ("respondent", "protocol", "rate", "fixed", "stopped at", "verdict", "calls", "calls, fixed")
    return tabulate(rows, headers)


def profiles(played: Sequence[Played], history: str, specifications: Iterable[Specification]) -> dict[str, Any]:
    """Return what is shipped: by protocol and respondent, what a subject takes, and where the sequential rule stops."""
    marks = {specification.name: specification.sha256 for specification in specifications}
    found: dict[str, Any] = {name: {"sha256": mark, "respondents": {}} for name, mark in marks.items()}
    for one in played:
        looks = [look for look in looks_until(MOST) if look <= max(one.stopped, FIXED)]
        found[one.protocol]["respondents"][one.kind] = {
            "trials": one.trials,
            "rate": round(one.rate, 4),
            "stopped": one.stopped,
            "verdict": one.verdict,
            "looks": {str(look): dataclasses.asdict(one.cost(look)) for look in looks},
        }
    return {"history": history, "encoding": "o200k_base", "fixed": FIXED, "protocols": found}


def write_profiles(path: Path, found: dict[str, Any]) -> None:
    """Write profiles; what the file has of other respondents and protocols stays, if the protocol is the same."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if known.get("history") == found["history"]:
        protocols = known["protocols"]
        for name, measured in found["protocols"].items():
            before = protocols.get(name, measured)
            kept = before["respondents"] if before["sha256"] == measured["sha256"] else {}
            protocols[name] = {**measured, "respondents": {**kept, **measured["respondents"]}}
        found = {**found, "protocols": protocols}
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """Play, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("protocols", nargs="*", help="protocol files, or names of shipped ones (default: the nine)")
    parser.add_argument("--kinds", default=",".join(LAPSES), help="respondents, with commas (default: all)")
    parser.add_argument("--history", default="3-7", help="the agent's setting (default: 3-7)")
    parser.add_argument("--most", type=int, default=MOST, help="subjects of the last look")
    parser.add_argument("--profiles", type=Path, help="write the profiles that are shipped to this file")
    parser.add_argument("--cells", action="store_true", help="print every cell, too")
    options = parser.parse_args()
    plugins = installed_plugins()
    price = resolve_model(plugins, PRICED).price
    assert price is not None
    chosen = list(common.specifications(options.protocols or NINE))
    played: list[Played] = []
    with tempfile.TemporaryDirectory() as directory:
        for kind in options.kinds.split(","):
            for specification in chosen:
                began = time.monotonic()
                one = asyncio.run(play(kind, specification.walkable(), options.history, Path(directory), options.most))
                played.append(one)
                print(
                    f"{kind} on {one.protocol}: rate {one.rate:.2f}, {one.verdict} at {one.stopped}, "
                    f"{one.cost(one.stopped).calls} calls, {time.monotonic() - began:.1f} s",
                    flush=True,
                )
                if options.profiles:
                    write_profiles(options.profiles, profiles(played, options.history, chosen))
    if options.cells:
        print(cells_table(played), end="\n\n")
    print(table(played, price))


#: The protocols that a run without paths plays.
NINE = [
    "barnes_maze",
    "dnms",
    "morris_water_maze",
    "operant_chamber",
    "place_preference",
    "radial_arm_maze",
    "shuttle_box",
    "star_maze",
    "t_maze",
]

if __name__ == "__main__":
    main()
