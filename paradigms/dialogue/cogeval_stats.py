"""``cheesebench cogeval-stats``: results of dialogues as in Tables 2 and 3 of the
paper, and kinds of failure.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import errno
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.amounts import percent
from cheesebench.commands.common import (
    add_json,
    add_option,
    add_output,
    describe,
    installed_catalogue,
    one_line,
    table,
    write_output,
)
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.extras import install_command
from cheesebench.files import read_bytes, written_whole
from cheesebench.paradigms.dialogue import statistics as fits
from cheesebench.paradigms.dialogue.life import NO_VIEW
from cheesebench.protocol import SUFFIX
from cheesebench.statistics.wording import plural

FAMILY = "cogeval"
#: Columns of a table of scores.
COLUMNS = ("graph", "domain", "condition", "model", "temperature", "successes", "total")
_NOTHING = "–"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Analysis of deviance, means by condition and graph, and kinds of failure, "
        "for runs or for a CSV table of scores.",
        "20250131-093000-ab12 --published gpt-4-32k",
        "first second --figures figures",
        "--scores scores.csv --json",
    )
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="the id of a run, its directory, or its run.sqlite",
    )
    add_option(parser, "results")
    columns = "graph, domain, condition, model, temperature, successes, total"
    parser.add_argument(
        "--scores", metavar="CSV", help=f"a CSV file with the columns {columns}"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        action="append",
        help="use only the scores of this model; repeatable (default: all models)",
    )
    parser.add_argument(
        "--published",
        metavar="NAME",
        action="append",
        help="compare with this model of the paper's Table 3; repeatable",
    )
    parser.add_argument(
        "--margin",
        metavar="X",
        type=float,
        default=0.10,
        help="how far a mean may be below the published one, as a proportion (default: 0.1)",
    )
    parser.add_argument(
        "--figures",
        metavar="DIR",
        help="also draw the means and the kinds of failure, as SVG files in DIR",
    )
    add_json(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    if bool(options.runs) == bool(options.scores):
        raise OptionError(
            "Name runs, or one table of scores with --scores, not both. See 'cheesebench cogeval-stats -h'."
        )
    published = fits.read_published(installed_catalogue().folders[FAMILY])
    scores = (
        read_scores(Path(options.scores), published)
        if options.scores
        else list(_of_runs(options))
    )
    if not scores:
        raise OptionError(
            f"--scores {options.scores} has no line after the column names. Add one for each item."
            if options.scores
            else f"{', '.join(options.runs)}: no answer to a dialogue was scored. Run dialogues first: pytest --model "
            f"NAME --protocols cogeval."
        )
    if options.model:
        known = dict.fromkeys(score.model for score in scores)
        for name in options.model:
            if name not in known:
                raise UnknownNameError("model", name, known)
        scores = [score for score in scores if score.model in options.model]
    rows = {name: published.model(name) for name in options.published or ()}
    if options.figures:
        draw(scores, Path(options.figures))
    with fits.one_thread():
        text = (
            json.dumps(_collect(scores, rows, options.margin), indent=2) + "\n"
            if options.json
            else _text(scores, rows, published, options.margin)
        )
    write_output(text, options.output)
    return 0


def _of_runs(options: argparse.Namespace) -> Iterable[fits.Score]:
    for name in options.runs:
        with RunLog.open_read_only(locate(Path(options.results), name)) as log:
            for plan in log.plans():
                if plan.view == NO_VIEW:
                    yield from fits.scores_of(plan, log.trials(plan))


#: Maximum size of a file of scores, in bytes. The paper's public scores (4,451 rows)
#: take less than a hundredth of this.
_MOST_BYTES = 32 * 2**20


def _text_of(path: Path) -> str:
    try:
        content = read_bytes(path, _MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {_MOST_BYTES:,} bytes")
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise OptionError(
            f"--scores {path} cannot be read: {reason}. Name a CSV file of UTF-8 text, at most {_MOST_BYTES // 2**20} MB long."
        ) from None


def read_scores(path: Path, published: fits.Published) -> list[fits.Score]:
    """Return the scores in a CSV file with COLUMNS. Further columns are ignored. Raise
    OptionError if the file cannot be read or lacks a column, and for a mistake in a
    line, whose number the error gives.
    """
    lines = csv.DictReader(_text_of(path).splitlines())
    missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
    if missing:
        raise OptionError(
            f"--scores {path}: there is no column '{missing[0]}'. The table needs {', '.join(COLUMNS)}."
        )
    scores = []
    for line in lines:
        where = f"--scores {path}, line {lines.line_num}"
        try:
            successes, total = int(line["successes"]), int(line["total"])
        except (TypeError, ValueError):
            raise OptionError(
                f"{where}: 'successes' and 'total' must be whole numbers, but are '{line['successes']}' and "
                f"'{line['total']}'. Fix the line."
            ) from None
        if not 0 <= successes <= total or total < 1:
            raise OptionError(
                f"{where}: {successes} of {total} cannot be right. Give at least one answer in all, and no more "
                f"successes than answers."
            )
        condition = line["condition"]
        scores.append(
            fits.Score(
                model=line["model"],
                graph=line["graph"],
                domain=line["domain"],
                condition=condition,
                group=published.groups.get(condition, fits.OUTSIDE[0]),
                temperature=line["temperature"],
                successes=successes,
                total=total,
            )
        )
    return scores


#: (Level of a factor, series) -> height and standard error of a bar.
_Heights = Mapping[tuple[str, str], tuple[float, float]]
RIGHT = "right answers (mean over items, SE)"
FAILED = "share of all answers"
_Rows = dict[str, dict[str, tuple[float, float]]]
#: Number of domains that the paper's means cover.
PAPER_DOMAINS = 3


def _asked() -> dict[str, int]:
    """Return the number of graphs in the family that have each condition."""
    folder = installed_catalogue().folders[FAMILY]
    catalogue = installed_catalogue()
    graphs = [catalogue.load(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    return Counter(
        name for graph in graphs for name in getattr(graph, "conditions", ())
    )


def incomplete(
    scores: Iterable[fits.Score], condition: str, model: str, graphs: int
) -> str:
    """Return why a mean over a condition cannot be compared with a published one, which
    covers all graphs and domains. Return an empty string if it can.
    """
    asked = {
        (score.graph, score.domain)
        for score in scores
        if (score.condition, score.model) == (condition, model)
    }
    per_graph = Counter(graph for graph, _ in asked)
    complete = sum(count >= PAPER_DOMAINS for count in per_graph.values())
    return (
        ""
        if complete >= graphs
        else f"{complete} of {plural(graphs, 'graph')} in {PAPER_DOMAINS} domains or more"
    )


def _collect(
    scores: Sequence[fits.Score], rows: _Rows, margin: float
) -> dict[str, Any]:
    deviance = fits.deviance_table(scores)
    return {
        "deviance": None if deviance is None else dataclasses.asdict(deviance),
        "conditions": _plain(fits.by(scores, "condition")),
        "graphs": _plain(fits.by(scores, "graph")),
        "groups": _plain(fits.by(scores, "group")),
        "coefficients": [dataclasses.asdict(one) for one in fits.main_effects(scores)],
        "failures": fits.failure_shares(scores),
        "failures_by_condition": fits.failure_shares(scores, "condition"),
        "failures_by_graph": fits.failure_shares(scores, "graph"),
        "published": [
            {
                "condition": condition,
                "model": model,
                "published": name,
                "mean": row[condition][0],
                **(
                    {"incomplete": why}
                    if why
                    else dataclasses.asdict(
                        fits.contrast(own, row[condition][0], margin)
                    )
                ),
            }
            for name, row in rows.items()
            for (condition, model), own in fits.by(scores, "condition").items()
            if condition in row
            for why in [incomplete(scores, condition, model, _asked()[condition])]
        ],
    }


def _plain(spreads: dict[tuple[str, str], fits.Spread]) -> list[dict[str, Any]]:
    return [
        {"level": level, "model": model, **dataclasses.asdict(spread)}
        for (level, model), spread in spreads.items()
    ]


def _text(
    scores: Sequence[fits.Score], rows: _Rows, published: fits.Published, margin: float
) -> str:
    deviance = fits.deviance_table(scores)
    parts = [
        "Sequential analysis of deviance (binomial, logit; terms added from top to bottom)",
        _deviance(deviance)
        if deviance is not None
        else "No factor varies, so there is nothing to compare.",
        "Main effects of all factors together: log odds relative to the first level",
        _coefficients(fits.main_effects(scores)),
        "Proportion of right answers by group of conditions: mean over items (SD, SE, n)",
        _spreads(fits.by(scores, "group"), "group"),
        "Proportion of right answers by condition: mean over items (SD, SE, n)",
        _spreads(fits.by(scores, "condition"), "condition"),
        "Proportion of right answers by graph: mean over items (SD, SE, n)",
        _spreads(fits.by(scores, "graph"), "graph"),
    ]
    if failures := fits.failure_shares(scores):
        parts += [
            "Kinds of failure: share of all answers (an answer may be of several kinds)",
            _failures(failures),
        ]
        for factor in ("condition", "graph"):
            parts += [
                f"Kinds of failure by {factor}",
                _failures_by(fits.failure_shares(scores, factor), factor),
            ]
    for name, row in rows.items():
        heading = f"Compared with {name} as published, margin {margin:g} ({published.source}; scored {published.scored})"
        parts += [one_line(heading), _published(scores, row, margin)]
    return "\n\n".join(parts) + "\n"


def _deviance(found: fits.DevianceTable) -> str:
    lines: list[list[object]] = [
        ["(null)", "", "", "", found.null_df, f"{found.null:.2f}"]
    ]
    lines += [
        [
            row.term,
            f"{row.chi2:.2f}",
            row.df,
            _p(row.p),
            row.residual_df,
            f"{row.residual:.2f}",
        ]
        for row in found.rows
    ]
    return table(
        [
            "term",
            "chi-squared (deviance)",
            "df",
            "p",
            "residual df",
            "residual deviance",
        ],
        lines,
    )


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _spreads(spreads: dict[tuple[str, str], fits.Spread], what: str) -> str:
    models = list(dict.fromkeys(model for _, model in spreads))
    levels = list(dict.fromkeys(level for level, _ in spreads))
    lines = [
        [level, *(_spread(spreads.get((level, model))) for model in models)]
        for level in levels
    ]
    return table([what, *map(one_line, models)], lines)


def _spread(found: fits.Spread | None) -> str:
    if found is None:
        return _NOTHING
    if found.sd is None or found.se is None:
        return f"{found.mean:.2f} (n 1)"
    return f"{found.mean:.2f} ({found.sd:.2f}, {found.se:.2f}, {found.n})"


def _failures(shares: dict[str, dict[str, float]]) -> str:
    return table(
        ["", *map(one_line, shares)],
        [
            [name, *(percent(own[name]) for own in shares.values())]
            for name in fits.KINDS
        ],
    )


#: The kinds of failure in the paper: edges that do not exist, loops, detours.
_MODES = {
    "hallucinated edge": "hallucinated edge",
    "loop": "loop",
    "too long": "detour",
}


def _failures_by(shares: dict[str, dict[str, float]], factor: str) -> str:
    lines = [
        [level, *(percent(found[name]) for name in _MODES)]
        for level, found in shares.items()
    ]
    return table([factor, *_MODES.values()], lines)


def _coefficients(found: Sequence[fits.Coefficient]) -> str:
    lines = [
        [
            f"{one.factor}: {one.level}",
            one.reference,
            f"{one.estimate:+.2f}",
            f"{one.se:.2f}",
            f"{one.z:.2f}",
            _p(one.p),
        ]
        for one in found
    ]
    return table(["level", "against", "estimate", "SE", "z", "p"], lines)


def _published(
    scores: Sequence[fits.Score], row: dict[str, tuple[float, float]], margin: float
) -> str:
    lines = []
    asked = _asked()
    for (condition, model), own in fits.by(scores, "condition").items():
        if condition not in row:
            continue
        mean, sd = row[condition]
        if why := incomplete(scores, condition, model, asked[condition]):
            means = f"{own.mean:.2f}", f"{mean:.2f} (SD {sd:.2f})"
            lines.append(
                [
                    condition,
                    model,
                    *means,
                    _NOTHING,
                    _NOTHING,
                    f"not compared: asked about only {why}",
                ]
            )
            continue
        found = fits.contrast(own, mean, margin)
        bounds = (
            _NOTHING if found.low is None else f"{found.low:+.2f} to {found.high:+.2f}"
        )
        lines.append(
            [
                condition,
                model,
                f"{own.mean:.2f}",
                f"{mean:.2f} (SD {sd:.2f})",
                f"{found.difference:+.2f}",
                bounds,
                found.verdict,
            ]
        )
    return table(
        ["condition", "model", "mean", "published", "difference", "one-sided 5 %", ""],
        lines,
    )


# -- figures

#: Total width of the bars of one level, as a share of the distance between levels.
_TOGETHER = 0.8


def draw(scores: Sequence[fits.Score], folder: Path) -> list[Path]:
    """Write ``by_graph.svg``, ``by_condition.svg`` and ``by_group.svg``, and the kinds
    of failure by graph and condition (the paper's Figure 3).

    Bars are means over items, and whiskers their standard errors. The groups are the
    five of the paper's Figure 2. Kinds of failure are shares of all answers. A figure
    without bars is not written. Return the written files. Raise OptionError if
    matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise OptionError(
            f"--figures needs matplotlib: {install_command('figures')}"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    # Equal scores must give identical files. Text stays text in the SVG.
    settings: Any = {
        "svg.hashsalt": "cheesebench",
        "svg.fonttype": "none",
        "font.size": 9,
    }
    with matplotlib.rc_context(settings):
        grouped = [score for score in scores if score.group not in fits.OUTSIDE]
        drawn = {"graph": scores, "condition": scores, "group": grouped}
        right = [
            _bars(_means(fits.by(some, factor)), RIGHT, folder / f"by_{factor}.svg")
            for factor, some in drawn.items()
            if some
        ]
        shares = {
            factor: fits.failure_shares(scores, factor)
            for factor in ("graph", "condition")
        }
        return right + [
            _bars(_shares(found), FAILED, folder / f"failures_by_{factor}.svg")
            for factor, found in shares.items()
            if found
        ]


def _means(spreads: Mapping[tuple[str, str], fits.Spread]) -> _Heights:
    return {key: (spread.mean, spread.se or 0.0) for key, spread in spreads.items()}


def _shares(found: Mapping[str, Mapping[str, float]]) -> _Heights:
    return {
        (level, kind): (share, 0.0)
        for level, kinds in found.items()
        for kind, share in kinds.items()
    }


def _bars(heights: _Heights, meaning: str, path: Path) -> Path:
    """Draw a group of bars for each level of a factor, one bar for each series. Write
    them as an SVG file, and return its path.
    """
    # pyplot is not used, because it keeps state and may open a window.
    from matplotlib.figure import Figure

    levels = list(dict.fromkeys(level for level, _ in heights))
    series = list(dict.fromkeys(name for _, name in heights))
    figure = Figure(figsize=(2 + 0.12 * len(levels) * (len(series) + 2), 4))
    axes: Any = figure.subplots()
    width = _TOGETHER / len(series)
    for number, name in enumerate(series):
        shown = [
            (place, *heights[level, name])
            for place, level in enumerate(levels)
            if (level, name) in heights
        ]
        axes.bar(
            [place - _TOGETHER / 2 + (number + 0.5) * width for place, _, _ in shown],
            [mean for _, mean, _ in shown],
            width,
            yerr=[error for _, _, error in shown],
            label=name,
            error_kw={"linewidth": 0.7},
        )
    axes.set_xticks(range(len(levels)), levels, rotation=45, ha="right")
    axes.set_ylim(0, 1.05)
    axes.set_ylabel(meaning)
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    with written_whole(path, "wb") as file:
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    return path
