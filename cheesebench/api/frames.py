"""Tables of a run as pandas data frames; pandas is an extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.exporting.tables import TABLES, Kind, Source
from cheesebench.extras import install_command
from cheesebench.statistics.reference_limits import has_interval, reference_limits

if TYPE_CHECKING:
    import pandas

    from cheesebench.experiment.log import RunLog
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.statistics import CellResult, RunSummary

#: Types of pandas that have a missing value.
TYPES: Mapping[Kind, str] = {"text": "string", "integer": "Int64", "number": "Float64", "truth": "boolean"}

#: Columns of the verdicts, with the kind of their values.
VERDICTS: Mapping[str, Kind] = {
    "model": "text", "protocol": "text", "view": "text", "variant": "text", "design": "text", "verdict": "text",
    "rate": "number", "low": "number", "high": "number", "reference": "number", "reference_low": "number",
    "reference_high": "number", "chance": "number", "margin": "number", "difference": "number",
    "difference_low": "number", "difference_high": "number", "p_inferior": "number", "subjects": "integer",
    "planned": "integer", "valid": "integer", "passed": "integer", "missing": "integer", "calls": "integer",
    "cost": "number", "remarks": "text", "reason": "text", "measure": "text", "mean": "number", "mean_low": "number",
    "mean_high": "number",
}  # fmt: skip


def verdict_rows(summary: RunSummary) -> Iterator[dict[str, Any]]:
    """Yield the columns of VERDICTS for every cell."""
    for cell in summary.cells:
        yield dict(zip(VERDICTS, _verdict(cell), strict=True))


def _verdict(cell: CellResult) -> list[Any]:
    plan, reference = cell.plan, cell.plan.reference
    low, high = cell.interval or (None, None)
    limits: tuple[float | None, float | None] = (None, None)
    if reference is not None and has_interval(reference):
        limits = reference_limits(reference, 0.025)
    totals = None if cell.calls is None else cell.calls.totals
    return [
        plan.model, plan.protocol, plan.view, str(plan.variant), plan.design, cell.verdict.value,
        cell.rate, low, high, None if reference is None else reference.value, *limits, plan.chance, plan.margin,
        cell.difference, cell.difference_low, cell.difference_high, cell.p_inferior, cell.subjects,
        cell.planned, cell.valid, cell.passed, cell.missing, None if totals is None else totals.calls,
        None if totals is None else totals.cost, "; ".join(cell.warnings), cell.reason, *_measure(cell),
    ]  # fmt: skip


def _measure(cell: CellResult) -> list[Any]:
    """Return the measure that the verdict is about, with its mean and interval; nothing for a pass rate."""
    measured, judged = cell.plan.measured, cell.judged
    low, high = (judged and judged.interval) or (None, None)
    return [measured and measured.name, judged and judged.mean, low, high]


def frame_of(rows: Iterable[Mapping[str, Any]], kinds: Mapping[str, Kind] = VERDICTS) -> pandas.DataFrame:
    """Return rows as a data frame whose columns have the types of ``kinds``."""
    return _frame([[row[name] for name in kinds] for row in rows], kinds)


def table_frame(log: RunLog, plugins: PluginManager, name: str, observations: bool = False) -> pandas.DataFrame:
    """Return a table of ``cheesebench export`` as a data frame. Raises UnknownNameError for another name."""
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    table = TABLES[name]
    _pandas()  # before anything is read
    source = Source(log, plugins, observations)
    return _frame([row for rows in source.rows(table) for row in rows], table.header)


def _frame(rows: list[list[Any]], kinds: Mapping[str, Kind]) -> pandas.DataFrame:
    pandas = _pandas()
    columns = zip(*rows, strict=True) if rows else ([] for _ in kinds)
    return pandas.DataFrame(
        {
            name: pandas.array(list(column), dtype=TYPES[kind])
            for (name, kind), column in zip(kinds.items(), columns, strict=True)
        }
    )


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise OptionError(
            f"Data frames need pandas, which is not installed. Install it with: {install_command('pandas')}"
        ) from None
    return pandas
