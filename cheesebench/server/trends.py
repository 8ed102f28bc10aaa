"""One model over several runs: its pass rate on each protocol, from the first run to the latest, as a drawing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cheesebench.server.overview import ModelRate, RunLine

#: Width and height of a drawing, and the room left at its edges (SVG units).
WIDTH, HEIGHT, EDGE = 300.0, 60.0, 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run: where it is drawn, and what it came to."""

    line: RunLine
    rate: ModelRate
    x: float
    y: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The runs of a model on one protocol in one view and variant, the first run first."""

    protocol: str
    where: str
    points: tuple[Point, ...]
    reference: float | None
    """Where the animals' rate is drawn."""
    path: str
    """The line through the rates, as SVG points."""
    text: str
    """The same in words."""


def of_model(lines: Iterable[RunLine], model: str) -> list[Trend]:
    """Return the trends of a model, by protocol, view and variant."""
    found: dict[tuple[str, str, str], list[tuple[RunLine, ModelRate]]] = {}
    for line in sorted(lines, key=lambda line: (line.created, line.run_id)):
        for rate in line.rates:
            if rate.model == model:
                found.setdefault((rate.protocol, rate.view, rate.variant), []).append((line, rate))
    return [_trend(key, runs) for key, runs in sorted(found.items())]


def _trend(key: tuple[str, str, str], runs: list[tuple[RunLine, ModelRate]]) -> Trend:
    protocol, view, variant = key
    step = (WIDTH - 2 * EDGE) / max(1, len(runs) - 1)
    points = tuple(
        Point(
            line=line,
            rate=rate,
            x=round(EDGE + number * step, 1) if len(runs) > 1 else WIDTH / 2,
            y=_y(rate.rate),
            low=_y(rate.interval[0] if rate.interval else None),
            high=_y(rate.interval[1] if rate.interval else None),
        )
        for number, (line, rate) in enumerate(runs)
    )
    rates = [f"{100 * rate.rate:.0f} %" if rate.rate is not None else "no rate" for _, rate in runs]
    return Trend(
        protocol=protocol,
        where=", ".join(filter(None, (view, variant))),
        points=points,
        reference=_y(runs[-1][1].reference),
        path=" ".join(f"{point.x},{point.y}" for point in points if point.y is not None),
        text=f"Pass rate on {protocol} from the first run to the latest: {', '.join(rates)}",
    )


def _y(proportion: float | None) -> float | None:
    return None if proportion is None else round(EDGE + (HEIGHT - 2 * EDGE) * (1 - proportion), 1)
