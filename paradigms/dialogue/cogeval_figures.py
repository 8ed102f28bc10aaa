"""The figures of ``cheesebench cogeval-stats``: right answers by graph, condition and group (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.errors import OptionError
from cheesebench.extras import install_command
from cheesebench.paradigms.dialogue.statistics import OUTSIDE, Score, Spread, by

#: Total width of the bars of one level; levels are 1 apart.
_TOGETHER = 0.8


def draw(scores: Sequence[Score], folder: Path) -> list[Path]:
    """Write ``by_graph.svg``, ``by_condition.svg`` and ``by_group.svg``.

    Bars are means over items, whiskers their standard errors; groups are the five of the paper's Figure 2. A figure
    without bars is not written.
    """
    try:
        import matplotlib
    except ImportError:
        raise OptionError(f"--figures needs matplotlib: {install_command('figures')}") from None
    folder.mkdir(parents=True, exist_ok=True)
    # Equal scores give identical files; text is kept as text.
    settings: Any = {"svg.hashsalt": "cheesebench", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.rc_context(settings):
        grouped = [score for score in scores if score.group not in OUTSIDE]
        drawn = {"graph": scores, "condition": scores, "group": grouped}
        return [_bars(by(some, factor), folder / f"by_{factor}.svg") for factor, some in drawn.items() if some]


def _bars(spreads: Mapping[tuple[str, str], Spread], path: Path) -> Path:
    from matplotlib.figure import Figure  # not pyplot: no window, no state

    levels = list(dict.fromkeys(level for level, _ in spreads))
    models = list(dict.fromkeys(model for _, model in spreads))
    figure = Figure(figsize=(2 + 0.12 * len(levels) * (len(models) + 2), 4))
    axes: Any = figure.subplots()
    width = _TOGETHER / len(models)
    for number, model in enumerate(models):
        shown = [(place, spreads[level, model]) for place, level in enumerate(levels) if (level, model) in spreads]
        axes.bar(
            [place - _TOGETHER / 2 + (number + 0.5) * width for place, _ in shown],
            [spread.mean for _, spread in shown],
            width,
            yerr=[spread.se or 0.0 for _, spread in shown],
            label=model,
            error_kw={"linewidth": 0.7},
        )
    axes.set_xticks(range(len(levels)), levels, rotation=45, ha="right")
    axes.set_ylim(0, 1.05)
    axes.set_ylabel("right answers (mean over items, SE)")
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    return path
