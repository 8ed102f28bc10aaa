"""Draws how wealth grows, for docs/explanation/verdicts.md. The picture is computed by
the rule of verdicts: ``python -m website.wealth``.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from cheesebench.records import GOAL
from cheesebench.statistics.betting import bets, wealth

PICTURE = Path(__file__).parents[1] / "docs/explanation/wealth.svg"
#: A bar of 70 %, 20 trials for each subject, and 24 subjects.
BAR, TRIALS, SUBJECTS = 0.7, 20, 24
MODELS = {
    "succeeds in 95 %": (0.95, "#1a7f37"),
    "in 80 %": (0.8, "#0969da"),
    "in 70 %, the bar": (0.7, "#9a6700"),
}
WIDTH, HEIGHT, LEFT, RIGHT, EDGE = 640, 300, 56, 130, 30
LEAST, MOST = 0.1, 100.0


def _x(subject: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * subject / SUBJECTS


def _y(money: float) -> float:
    share = (math.log(min(MOST, max(LEAST, money))) - math.log(LEAST)) / (
        math.log(MOST) - math.log(LEAST)
    )
    return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share


def picture() -> str:
    """Return the picture as SVG."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" '
        'font-size="12"><title>Wealth in bets on three models against a bar of 70 %: the better the model, the sooner it '
        "has grown 20-fold</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for money in (0.1, 1, 10, 100):
        y = _y(money)
        lines.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{_x(SUBJECTS):.1f}" y2="{y:.1f}" stroke="#d0d7de"/>'
        )
        lines.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#424a53">{money:g}</text>'
        )
    goal = _y(GOAL)
    lines.append(
        f'<line x1="{LEFT}" y1="{goal:.1f}" x2="{_x(SUBJECTS):.1f}" y2="{goal:.1f}" stroke="#1f2328" '
        'stroke-dasharray="5 3"/>'
    )
    lines.append(
        f'<text x="{_x(SUBJECTS) + 6:.1f}" y="{goal + 4:.1f}" fill="#1f2328">20-fold: PASS</text>'
    )
    for subject in range(0, SUBJECTS + 1, 6):
        lines.append(
            f'<text x="{_x(subject):.1f}" y="{HEIGHT - 8}" text-anchor="middle" fill="#424a53">{subject}</text>'
        )
    for name, (rate, colour) in MODELS.items():
        scores = np.random.default_rng(4).binomial(TRIALS, rate, SUBJECTS) / TRIALS
        held = [1.0, *bets(scores, BAR).mean(axis=0)]
        end = next(
            (at for at, one in enumerate(wealth(bets(scores, BAR)), 1) if one >= GOAL),
            SUBJECTS,
        )
        points = " ".join(
            f"{_x(at):.1f},{_y(one):.1f}" for at, one in enumerate(held[: end + 1])
        )
        lines.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        lines.append(
            f'<circle cx="{_x(end):.1f}" cy="{_y(held[end]):.1f}" r="3.5" fill="{colour}"/>'
        )
        beside = (_x(end) + 6, _y(held[end]) + (4 if end == SUBJECTS else -8))
        lines.append(
            f'<text x="{beside[0]:.1f}" y="{beside[1]:.1f}" fill="{colour}">{name}</text>'
        )
    lines.append(f'<text x="{LEFT}" y="16" fill="#424a53">wealth, and subjects</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
