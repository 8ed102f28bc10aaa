"""The runs of a results directory, a line each: for ``cheesebench runs`` and the first page of ``cheesebench view``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.log_file import find_runs
from cheesebench.redaction import quoted
from cheesebench.server.watch import CellState, RunState, RunWatch, stamp_of
from cheesebench.statistics.summary import Verdict

#: Runs whose cells are kept in memory, to be looked at again quickly.
KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRate:
    """What one model came to on one protocol of one run: a point of its trend."""

    model: str
    protocol: str
    view: str
    variant: str
    verdict: Verdict
    rate: float | None
    interval: tuple[float, float] | None
    reference: float | None
    decided: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run in a line. ``problem`` says why its log cannot be read; the rest is then empty."""

    run_id: str
    created: str = ""
    status: str = ""
    design: str = ""
    models: tuple[str, ...] = ()
    protocols: int = 0
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Numbers of plain cells by verdict; ``OPEN``: not decided yet."""
    doubtful: int = 0
    """Plain cells whose replies or trials are missing or unusable to such a part that their numbers are doubtful."""
    gates: tuple[tuple[str, str], ...] = ()
    """Each model (with its view), and its verdict over all protocols."""
    done: int = 0
    left: int = 0
    cost: float = 0.0
    rates: tuple[ModelRate, ...] = ()
    problem: str = ""

    @property
    def verdict_text(self) -> str:
        """As in ``3 PASS, 1 FAIL (1 doubtful)``."""
        shown = ", ".join(f"{count} {name}" for name, count in self.verdicts.items() if count)
        return f"{shown} ({self.doubtful} doubtful)" if self.doubtful else shown


#: Name of what is not decided yet, among the verdicts of a line.
OPEN = "OPEN"


class Overview:
    """The runs of a directory; what has not changed is not read again. Not thread-safe."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self._lines: dict[str, tuple[object, RunLine]] = {}
        self._watches: OrderedDict[Path, RunWatch] = OrderedDict()

    def lines(self) -> Iterator[RunLine]:
        """Yield a line for each run, the latest first (by the time of change: what goes on is at the top)."""
        runs = find_runs(self.results)
        for gone in set(self._lines) - set(runs):
            del self._lines[gone]
        for name, path in runs.items():
            yield self.line(name, path)

    def line(self, name: str, path: Path) -> RunLine:
        """Return the line of one run, whatever is wrong with its log."""
        stamp = stamp_of(path)
        known = self._lines.get(name)
        if known is not None and stamp is not None and known[0] == stamp and known[1].status != "running":
            return known[1]
        try:
            found = _line(name, self.watch(path).look())
        except (CheeseBenchError, OSError) as error:
            found = RunLine(run_id=name, problem=quoted(str(error)))
        self._lines[name] = (stamp, found)
        return found

    def watch(self, path: Path) -> RunWatch:
        """Return the watch of a run: the same one for as long as it is among the last ``KEPT`` that were asked for."""
        found = self._watches.setdefault(path, RunWatch(path))
        self._watches.move_to_end(path)
        while len(self._watches) > KEPT:
            self._watches.popitem(last=False)
        return found


def _line(name: str, state: RunState) -> RunLine:
    plain = [cell for cell in state.cells if not cell.plan.control]
    shown = [OPEN if state.is_open(cell) else cell.result.verdict.value for cell in plain]
    return RunLine(
        run_id=name,
        created=state.created,
        status=state.status,
        design=state.design,
        models=state.names,
        protocols=len({cell.plan.protocol for cell in plain}),
        verdicts={verdict: shown.count(verdict) for verdict in (*(one.value for one in Verdict), OPEN)},
        doubtful=sum(bool(cell.result.warnings) and not state.is_open(cell) for cell in plain),
        gates=tuple((f"{one.model} in {one.view}", one.gate.value) for one in state.models),
        done=state.done,
        left=state.left,
        cost=state.calls.cost,
        rates=tuple(map(_rate, plain)),
    )


def _rate(cell: CellState) -> ModelRate:
    result, plan = cell.result, cell.plan
    return ModelRate(
        model=plan.model,
        protocol=plan.protocol,
        view=plan.view,
        variant=str(plan.variant),
        verdict=result.verdict,
        rate=result.rate,
        interval=result.interval,
        reference=None if plan.reference is None or plan.measured is not None else plan.reference.value,
        decided=cell.decided,
    )


def to_json(line: RunLine) -> dict[str, Any]:
    """Return a line as JSON values (without the rates of its cells)."""
    return {
        "run": line.run_id,
        "created": line.created,
        "status": line.status,
        "design": line.design,
        "models": list(line.models),
        "protocols": line.protocols,
        "verdicts": dict(line.verdicts),
        "doubtful": line.doubtful,
        "gates": [list(gate) for gate in line.gates],
        "trials": line.done,
        "left": line.left,
        "cost": line.cost,
        "problem": line.problem,
    }
