"""The HTML report: one self-contained page with verdicts, charts, and a player for the
trials.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup, escape

from cheesebench.amounts import number, percent
from cheesebench.behaviour import behaviour
from cheesebench.html_pages import Templates, content_security_policy
from cheesebench.published import ELSEWHERE, published_elsewhere
from cheesebench.records import PERSON, CellKey
from cheesebench.reports import cells as words
from cheesebench.reports import comparison, matrix, player
from cheesebench.reports.markdown import SHORT, origins, run_facts
from cheesebench.statistics import TAXONOMY, Verdict
from cheesebench.statistics.comparison import RunComparison
from cheesebench.statistics.wording import is_alike, shares, shown_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cheesebench.behaviour import Behaviour
    from cheesebench.experiment.log import RunLog
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan, ReferenceValue
    from cheesebench.statistics import (
        CellResult,
        ControlResult,
        ModelSummary,
        RunSummary,
    )
    from cheesebench.statistics.summary import Average, ConditionCurve

#: Minimum number of dimensions for a radar chart. Fewer enclose no area.
LEAST_DIMENSIONS = 3

Chart = dict[str, Any]


def radar(model: ModelSummary, cells: Sequence[CellResult]) -> Chart | None:
    """Return the pass rate by cognitive dimension for model and rodent, or None without
    data.
    """
    if not model.profile:
        return None
    names, means = list(model.profile), list(model.profile.values())

    def rodent(name: str) -> float | None:
        own = [cell for cell in cells if cell.plan.dimension == name]
        return _percent(words.rodent_mean(own))

    return {
        "kind": "radar" if len(names) >= LEAST_DIMENSIONS else "bars",
        "labels": [words.clean(name) or "(no dimension)" for name in names],
        "model": [_percent(one.mean) for one in means],
        "limits": [words.limits(one) for one in means],
        "rodent": list(map(rodent, names)),
    }


def _animals_by_session(
    curve: words.Curve,
) -> tuple[Sequence[float], Sequence[float]]:
    """Return the animals' curve and its standard deviations. Both are empty unless the
    model's curve is by session, too.
    """
    if curve.animals is None or curve.unit != "session":
        return (), ()
    return curve.animals.curve, curve.animals.curve_sd


def curve(own: words.Curve, lived: Behaviour | None = None) -> Chart | None:
    """Return the chart of a learning curve with its interval, and the animals' curve
    with its spread.

    ``lived`` adds the curves of single subjects if they have the same unit. Return None
    for fewer than two points.
    """
    if len(own.points) < 2:
        return None
    animals, _ = _animals_by_session(own)
    last = max(max(point.session for point in own.points), len(animals))
    sessions = range(1, last + 1)

    def along(side: str) -> list[float | None]:
        known = {point.session: getattr(point, side) for point in own.points}
        return [own.drawn(known.get(number)) for number in sessions]

    rodent = [*map(own.drawn, animals), *[None] * (last - len(animals))]
    return {
        "kind": "curve",
        "name": words.clean(own.name),
        "percent": not own.is_measure,
        "unit": words.clean(own.along),
        "labels": list(sessions),
        "model": along("rate"),
        "low": along("low"),
        "high": along("high"),
        "rodent": rodent if animals else [],
        "rodent_low": _edge(own, sessions, -1),
        "rodent_high": _edge(own, sessions, 1),
        "reference": _where_judged(
            own, None if own.animals is None else own.animals.value, sessions
        ),
        "without": _without(own, sessions),
        # Single subjects have the unit of the cell.
        "subjects": []
        if lived is None or own.unit != lived.unit
        else _lines(lived, own.name, sessions, 1 if own.is_measure else 100),
    }


def _where_judged(
    own: words.Curve, value: float | None, points: Iterable[int]
) -> list[float | None]:
    """Return a value as it is drawn for each point with judged trials, and None for the
    other points, where it does not hold. The list is empty without a value.
    """
    if value is None:
        return []
    judged = {point.session for point in own.points if point.judged}
    return [own.drawn(value) if n in judged else None for n in points]


def _without(own: words.Curve, points: Iterable[int]) -> list[float | None]:
    """Return the highest rate that is possible without the ability, in percent, for
    each point with judged trials. The list is empty for a measure, and if no such rate
    is proved.
    """
    scale = None if own.is_measure else own.cell.plan.ability
    return _where_judged(own, None if scale is None else scale.without, points)


#: Maximum number of subjects that are drawn one by one. More lines would blur.
MOST_LINES = 30


def _lines(
    lived: Behaviour, name: str, points: Iterable[int], scale: float = 1.0
) -> list[list[float | None]]:
    own = list(lived.curves.get(name, {}).values())[:MOST_LINES]
    return [
        [round(scale * line[n], 6) if n in line else None for n in points]
        for line in own
    ]


def took(
    lived: Behaviour, name: str, animals: ReferenceValue | None = None
) -> Chart | None:
    """Return a chart of latency, path length or a measure by session: the mean over
    subjects, up to ``MOST_LINES`` single subjects, and the animals' curve or number.
    Return None for fewer than two points.
    """
    points, mean = lived.points, lived.mean(name)
    if len(mean) < 2:
        return None
    return {
        "kind": "took",
        "name": name,
        "labels": list(points),
        "means": [round(mean[n], 6) if n in mean else None for n in points],
        "subjects": _lines(lived, name, points),
        "rodent": _rodent(lived, name, animals),
    }


def _rodent(
    lived: Behaviour, name: str, animals: ReferenceValue | None
) -> list[float | None]:
    """Return the animals' curve along the model's or, without one, their number at each
    point that the model has.
    """
    if animals is None:
        return []
    if animals.curve and lived.unit == "session":
        known = dict(enumerate(animals.curve, start=1))
        return [known.get(n) for n in lived.points]
    mean = lived.mean(name)
    return [animals.value if n in mean else None for n in lived.points]


def stacked(lived: Behaviour, name: str) -> Chart:
    """Return a chart of a categorical measure: the share of each class in the trials of
    each session. The most frequent class comes first.
    """
    counts = lived.strategies[name]
    total = sum(counts.values(), Counter())
    return {
        "kind": "stacked",
        "labels": sorted(counts),
        "models": [
            {
                "name": words.clean(kind),
                "rates": [
                    _percent(counts[n][kind] / sum(counts[n].values()))
                    for n in sorted(counts)
                ],
            }
            for kind, _ in total.most_common()
        ],
    }


def by_condition(curve: ConditionCurve) -> Chart:
    """Return a chart of a measure by the values of a variable, in the measure's unit.
    If the values are names, no line joins the points.
    """
    return {
        "kind": "conditions",
        "name": words.clean(curve.measure),
        "labels": [words.clean(shown_value(value)) for value, _ in curve.points],
        "joined": not any(isinstance(value, str) for value, _ in curve.points),
        "means": [round(measure.mean, 6) for _, measure in curve.points],
    }


def condition_in_words(curve: ConditionCurve) -> str:
    """Return the curve in words, for screen readers."""
    points = ", ".join(
        f"{number(measure.mean)} at {shown_value(value)}"
        for value, measure in curve.points
    )
    return f"Mean of {curve.measure} by {curve.variable}: {points}."


def _edge(own: words.Curve, sessions: Sequence[int], sign: int) -> list[float | None]:
    """Return the animals' mean plus ``sign`` standard deviations in each session,
    within the possible values, or an empty list if there is no spread.
    """
    animals, spread = _animals_by_session(own)
    if not spread:
        return []
    measured = own.cell.plan.measured if own.is_measure else None
    least, most = (0.0, 1.0) if measured is None else measured.range
    edge = [
        min(most, max(least, mean + sign * sd))
        for mean, sd in zip(animals, spread, strict=True)
    ]
    return [own.drawn(edge[n - 1]) if n <= len(edge) else None for n in sessions]


def pair(result: ControlResult) -> Chart | None:
    if not result.points:
        return None
    is_rate = result.plain.plan.measured is None

    def along(side: str) -> list[float | None]:
        values = [getattr(point, side) for point in result.points]
        return [_percent(one) if is_rate else round(one, 6) for one in values]

    return {
        "kind": "pair",
        "percent": is_rate,
        "labels": [point.session for point in result.points],
        "plain": along("plain"),
        "control": along("control"),
    }


def together(found: Sequence[words.Curve], names: Sequence[str]) -> Chart | None:
    """Return a chart of the learning curves of several models on one protocol.
    ``names`` are the models' names.

    Return None if fewer than two models have a curve, or if the units of their curves
    differ.
    """
    curves = [
        (one, name)
        for one, name in zip(found, names, strict=True)
        if len(one.points) > 1
    ]
    if len(curves) < 2 or len({one.unit for one, _ in curves}) > 1:
        return None
    first = curves[0][0]
    plan = first.cell.plan
    animals, _ = _animals_by_session(first)
    last = max(
        len(animals), *(point.session for one, _ in curves for point in one.points)
    )
    sets, said = [], []
    for one, name in curves:
        means = {point.session: point.rate for point in one.points}
        sets.append(
            {
                "name": words.clean(name),
                "rates": [one.drawn(means.get(n)) for n in range(1, last + 1)],
            }
        )
        said.append(
            f"{name} {one.shown(one.points[0].rate)} at first, {one.shown(one.points[-1].rate)} at last"
        )
    reference = first.animals
    return {
        "kind": "together",
        "title": words.clean(plan.title or plan.protocol),
        "name": words.clean(first.name),
        "percent": not first.is_measure,
        "unit": words.clean(first.along),
        "labels": list(range(1, last + 1)),
        "models": sets,
        "rodent": [first.drawn(mean) for mean in animals],
        "reference": _where_judged(
            first,
            None if reference is None else reference.value,
            range(1, last + 1),
        ),
        "without": _without(first, range(1, last + 1)),
        "text": words.clean("; ".join(said)),
    }


def _mean_with_ends(
    mean: Average | None,
) -> tuple[float | None, float | None, float | None]:
    """Return a mean and the ends of its 95 % interval, in percent. Without a mean, all
    three are None.
    """
    if mean is None:
        return None, None, None
    low, high = mean.interval
    return _percent(mean.mean), _percent(low), _percent(high)


def settings(models: Sequence[ModelSummary]) -> Chart | None:
    """Return a chart of the mean rate of each model by the setting that a study varies,
    or None for fewer than two settings.
    """
    where = [words.clean(words.whose(model)[1]) for model in models]
    labels = list(dict.fromkeys(where))
    if len(labels) < 2:
        return None
    sets = []
    for name in dict.fromkeys(model.model for model in models):
        own = {
            at: one.overall
            for at, one in zip(where, models, strict=True)
            if one.model == name
        }
        ends = [_mean_with_ends(own.get(label)) for label in labels]
        rates, low, high = map(list, zip(*ends, strict=True))
        sets.append(
            {"name": words.clean(name), "rates": rates, "low": low, "high": high}
        )
    said = [
        f"{one['name']}: {', '.join(f'{label} {_said(rate)}' for label, rate in zip(labels, one['rates'], strict=True))}"
        for one in sets
    ]
    return {
        "kind": "settings",
        "labels": labels,
        "models": sets,
        "text": f"Mean pass rate by setting. {'; '.join(said)}.",
    }


def _said(rate: float | None) -> str:
    return "no mean" if rate is None else percent(rate / 100)


def curve_in_words(own: words.Curve) -> str:
    """Return the curve in words, for screen readers."""
    cell, first, last = own.cell, own.points[0], own.points[-1]
    name = f"{own.name[:1].upper()}{own.name[1:]}"
    said = f"{name} {own.shown(first.rate)} at first, {own.shown(last.rate)} at last, over {len(own.points)} points"
    if own.animals is None and cell.plan.measured is not None:
        return f"{said}."
    scale = None if own.is_measure else cell.plan.ability
    zero = (
        ""
        if scale is None
        else f", without the ability at most {percent(scale.without)}"
    )
    return f"{said}; rodent {words.reference(cell)}{zero}."


def radar_in_words(chart: Chart) -> str:
    """Return the radar chart as a sentence, for screen readers."""
    parts = [
        f"{name} {percent(value / 100)}"
        for name, value in zip(chart["labels"], chart["model"], strict=True)
    ]
    return f"Mean pass rate by cognitive dimension: {', '.join(parts)}."


def _percent(proportion: float | None) -> float | None:
    return None if proportion is None else round(100 * proportion, 6)


#: Width of every drawing. A proportion of 0 is drawn at 0, and 1 at WIDTH.
WIDTH = 200.0


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A cell's difference from its reference, as a row of a forest plot. Every number
    is an x coordinate. ``difference`` and ``bounds`` are None if the difference is
    unknown.
    """

    text: str
    """The row in words, for screen readers."""
    zero: float
    difference: float | None
    bounds: tuple[float, float] | None
    margin: tuple[float, float]
    """Left and right end of the margin. One of them is ``zero``, unless the model
    should be like the animals.
    """


def forest_axis(cells: Sequence[CellResult]) -> tuple[float, float]:
    """Return the ends of the axis of a forest plot: the nearest tenths that are at
    least 0.02 beyond 0, all margins and all bounds.
    """
    shown = [0.0]
    for cell in cells:
        ends = (
            *words.margin_ends(cell.plan),
            cell.difference_low,
            cell.difference_high,
        )
        shown += [words.proportion(cell.plan, end) for end in ends if end is not None]
    return math.floor(10 * min(shown) - 0.2) / 10, math.ceil(10 * max(shown) + 0.2) / 10


def margin_in_words(cells: Sequence[CellResult]) -> str:
    """Return where PASS and FAIL lie relative to the margin of a forest plot."""
    plans = [cell.plan for cell in cells]
    if all(plan.against == "chance" for plan in plans):
        return "margin: PASS lies right of its left edge, FAIL left of its right edge."
    kinds: tuple[tuple[str, Callable[[CellPlan], bool]], ...] = (
        (
            "PASS lies right of its left edge, FAIL left of it.",
            lambda plan: not (words.less_is_better(plan) or is_alike(plan)),
        ),
        (
            "Where less is better, PASS lies left of its right edge, FAIL right of it.",
            words.less_is_better,
        ),
        ("Where values should be like the animals', PASS lies within it.", is_alike),
        (
            "Against chance, FAIL lies left of its right edge.",
            lambda plan: plan.against == "chance",
        ),
    )
    said = " ".join(text for text, holds in kinds if any(map(holds, plans)))
    said = said.replace("Where", "where", said.startswith("Where"))
    return f"margin: {said} {words.worst_case(cells)}".rstrip()


def forest_row(cell: CellResult, axis: tuple[float, float]) -> ForestRow:
    def place(difference: float) -> float:
        return _x(
            (words.proportion(cell.plan, difference) - axis[0]) / (axis[1] - axis[0])
        )

    known = (
        None
        if cell.difference is None
        else (cell.difference_low or 0.0, cell.difference_high or 0.0)
    )
    ends = [place(end) for end in words.margin_ends(cell.plan)]
    unit = " points" if cell.plan.measured is None else ""
    return ForestRow(
        text=f"difference {words.difference(cell)}{unit}, margin {words.margin(cell)}{unit}"
        f"{', less is better' * words.less_is_better(cell.plan)}",
        zero=place(0.0),
        difference=None if cell.difference is None else place(cell.difference),
        bounds=None
        if known is None
        else (min(map(place, known)), max(map(place, known))),
        margin=(min(ends), max(ends)),
    )


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a bar. ``kind`` is its index in the taxonomy (for the colour), or the
    taxonomy's length for any other outcome, and ``text`` its label.
    """

    kind: int
    x: float
    """Left end, from 0 to ``WIDTH``."""
    width: float
    text: str


def outcome_bar(cell: CellResult) -> list[Share]:
    total = sum(cell.outcomes.values())
    parts: list[Share] = []
    done = 0
    for name, count in cell.outcomes.items():
        if count:
            kind = TAXONOMY.index(name) if name in TAXONOMY else len(TAXONOMY)
            x, width = _x(done / total), _x(count / total)
            said = words.ENDINGS.get(name, name)
            parts.append(
                Share(kind, x, width, f"{said}: {count} ({percent(count / total)})")
            )
            done += count
    return parts


def _x(proportion: float) -> float:
    return round(WIDTH * min(max(proportion, 0.0), 1.0), 2)


#: Function that puts a chart on the page and returns its number there.
Draw = Callable[[Chart | None], int | None]
#: Number of bytes up to which trials are added to a page. A page of this size can be
#: attached to a message and opened on a telephone.
LARGEST = 10_000_000
#: Maximum length, in characters, of a text that a template inserts. Most texts are far
#: shorter.
_LONGEST = 2_000
_TEMPLATES = Templates("cheesebench.reports", lambda text: words.clean(text, _LONGEST))


def render(summary: RunSummary) -> str:
    """Return the page of a summary alone, without the player."""
    return _page(summary, [])


def render_run(
    summary: RunSummary, log: RunLog, plugins: PluginManager, largest: int = LARGEST
) -> str:
    """Return the page with as many trials as fit into ``largest`` bytes (UTF-8)."""
    return render_runs(summary, [log], plugins, largest)


def render_runs(
    summary: RunSummary,
    logs: Sequence[RunLog],
    plugins: PluginManager,
    largest: int = LARGEST,
) -> str:
    """Return one page for the runs of these logs, with as many trials as fit into
    ``largest`` bytes (UTF-8).
    """
    judged = {cell.plan.key: cell for cell in summary.cells}
    trials: list[player.Shelf] = []
    lived: dict[CellKey, Behaviour] = {}
    for log in logs:
        # The summary's plans, whose titles differ.
        plans = [judged[plan.key].plan for plan in log.plans() if plan.key in judged]
        trials += player.shelves(log, plugins, plans, player.MAX_STEPS // len(logs))
        lived |= {
            plan.key: behaviour(judged[plan.key], log.trials_by_subject(plan))
            for plan in plans
        }
    rest = len(_page(summary, trials, lived).encode("utf-8"))
    # 200 bytes are kept free for each cell, because the text about omitted trials
    # varies in length.
    player.make_room(trials, max(0, largest - rest - 200 * len(trials)))
    return _page(summary, trials, lived)


def render_subject(
    log: RunLog,
    plugins: PluginManager,
    plan: CellPlan,
    subject: int,
    back: str = "",
    largest: int = LARGEST,
) -> str:
    """Return a page that has only the player, with as many of a subject's recorded
    trials as fit into ``largest`` characters.

    ``back`` is the relative address of the page's link back.
    """
    shelf = player.subject_shelf(log, plugins, plan, subject)
    player.make_room([shelf], largest)
    return _player(
        "subject.html.jinja",
        shelf,
        entry(shelf, words.clean(plan.protocol)),
        shelves=[shelf],
        run=words.clean(log.manifest.get("run_id") or "a run"),
        plan=plan,
        subject=subject,
        back=back,
        alone=False,
    )


def render_trial(
    log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, trial: int
) -> str:
    """Return a page with the player and one recorded trial, for a notebook. Raise
    CheeseBenchError if the trial cannot be shown.
    """
    shelf = player.one_trial(log, plugins, plan, subject, trial)
    about = entry(shelf, plan.protocol)
    about["title"] += f", subject {subject}, trial {trial + 1}"
    return _player(
        "trial.html.jinja", shelf, about, shelves=[], title=about["title"], alone=True
    )


def _player(
    template: str, shelf: player.Shelf, about: dict[str, Any], **values: Any
) -> str:
    """Return a page with the player and one cell's trials."""
    scripts, style = (
        [Markup(_TEMPLATES.static(name)) for name in (*PLAYER, "height.js")],
        Markup(_TEMPLATES.static("page.css")),
    )
    return _TEMPLATES.render(
        template,
        policy=content_security_policy(scripts, [style]),
        scripts=scripts,
        style=style,
        index=_data([about]),
        packed=Markup(shelf.packed),
        **values,
    )


#: Code in a sentence.
_CODE = re.compile("`([^`]+)`")
#: Scripts of the report.
_SCRIPTS = (
    "chart.umd.min.js",
    "tabs.js",
    "maps.js",
    "behaviour.js",
    "charts.js",
    "tables.js",
    "player.js",
)
#: Scripts of every page that shows trials.
PLAYER = ("maps.js", "player.js")


def _page(
    summary: RunSummary,
    trials: Sequence[player.Shelf],
    lived: Mapping[CellKey, Behaviour] | None = None,
) -> str:
    names = _link_names(summary)
    first_failed = {shelf.plan.key: _first_failed(shelf) for shelf in trials}
    drawn: list[Chart] = []

    def draw(chart: Chart | None) -> int | None:
        if chart is None:
            return None
        drawn.append(chart)
        return len(drawn) - 1

    models = [
        _model(
            model,
            own := words.cells_of(summary, model),
            names,
            first_failed,
            draw,
            lived or {},
            words.behaviour(str(summary.manifest.get("run_id", "")), own),
        )
        | {"calls": words.calls_table(words.with_controls(summary, own))}
        for model in summary.models
    ]
    scripts = [Markup(_TEMPLATES.static(name)) for name in _SCRIPTS]
    compared = summary.compared
    style = Markup(_TEMPLATES.static("page.css"))
    return _TEMPLATES.render(
        "page.html.jinja",
        policy=content_security_policy(scripts, [style]),
        scripts=scripts,
        style=style,
        run=words.clean(summary.manifest.get("run_id") or "a run"),
        compared=_compared(compared, names, first_failed)
        if isinstance(compared, RunComparison)
        else None,
        in_progress=words.in_progress(summary),
        facts=run_facts(summary),
        models=models,
        best_of_views=summary.best_of_views,
        published_elsewhere=ELSEWHERE
        if published_elsewhere(cell.plan for cell in summary.cells)
        else "",
        leaderboards=[
            (
                words.leaderboard_title(one),
                words.leaderboard_rows(one),
                words.leaderboard_lists(one),
            )
            for one in summary.leaderboards
        ],
        leaderboard_headers=words.LEADERBOARD_HEADERS,
        how_to_read_leaderboard=words.HOW_TO_READ_LEADERBOARD,
        contrasts=summary.contrasts,
        contrast_headers=words.CONTRAST_HEADERS,
        contrast_rows=words.contrast_rows(summary.contrasts),
        how_to_read_contrasts=words.HOW_TO_READ_CONTRASTS,
        doubtful=matrix.DOUBTFUL,
        doubts=matrix.doubts(summary.cells),
        matrix=matrix.matrix(summary),
        how_to_read_matrix=matrix.HOW_BOARD,
        how_to_read_profile=words.HOW_TO_READ_PROFILE,
        by_answer_headers=words.BY_ANSWER,
        how_to_read_by_answer=words.HOW_TO_READ_BY_ANSWER,
        how_to_read_grid=matrix.Grid.how,
        links={
            shelf.plan.key: _first_trial(shelf, names[shelf.plan.key])
            for shelf in trials
            if shelf.shown
        },
        marks=words.MARKS,
        study=words.study_name(summary),
        study_chart=_study_chart(summary, draw),
        study_table=words.settings_table(summary),
        how_to_read_study=words.HOW,
        controls=[_control(result, draw) for result in summary.controls],
        paradigms=_paradigms(models, _together(summary, draw)),
        how_to_read_controls=words.HOW_TO_READ_CONTROLS,
        question=words.question(summary.cells),
        protocols=list(
            {cell.plan.protocol: cell.plan for cell in summary.cells}.values()
        ),
        charts=_data(drawn),
        index=_data([entry(shelf, names[shelf.plan.key]) for shelf in trials]),
        shelves=trials,
        packed=[Markup(shelf.packed) for shelf in trials],
        origins=origins,
        coded=_coded,
        short=SHORT,
        nothing=words.NOTHING,
        width=WIDTH,
        alone=False,
    )


#: The colour of each result of a gate.
_GATES = {
    "GREEN": "pass",
    "RED": "fail",
    "INTERRUPTED": "error",
    "COULD NOT RUN": "error",
}


def _lost(
    found: RunComparison,
    number: int,
    names: Mapping[CellKey, str],
    first_failed: Mapping[CellKey, tuple[int, int] | None],
) -> list[dict[str, Any]]:
    """Return a link to the first failed trial on the page, for each protocol that is
    worse than in the baseline, or undecided without missing trials in this run, and has
    such a trial.
    """
    model = found.models[number]
    asked = {
        (model.first_model, one.protocol, model.view, model.variant): one
        for one in model.cells
        # If trials are missing, the question is open because of them.
        if one.answer == "worse" or (one.answer == "undecided" and not one.missing[0])
    }
    return [
        {
            "title": asked[key].title or asked[key].protocol,
            "link": names[key],
            "subject": failed[0],
            "trial": failed[1],
        }
        for key, failed in first_failed.items()
        if failed is not None and key in asked
    ]


def _compared(
    found: RunComparison,
    names: Mapping[CellKey, str],
    first_failed: Mapping[CellKey, tuple[int, int] | None],
) -> dict[str, Any]:
    """Return the values of the first section of the page, for a run with a baseline."""
    return {
        "title": comparison.title(found, words.clean),
        "headers": comparison.headers(found),
        "decision": found.decision,
        "gate": found.gate,
        "gate_kind": _GATES.get(found.gate, ""),
        "remedy": comparison.remedy_parts(found),
        "models": [
            {
                "heading": comparison.heading(model, words.clean),
                "answer": comparison.answer(found, model, words.clean),
                "kind": next(
                    (
                        one
                        for one in ("worse", "undecided")
                        if one in (model.said, *(cell.answer for cell in model.cells))
                    ),
                    "kept",
                ),
                "rows": comparison.rows(found, model),
                "lost": _lost(found, number, names, first_failed),
                "reasons": [
                    f"{', '.join(names)}: {reason}"
                    for reason, names in comparison.reasons(model).items()
                ]
                + [comparison.lost(model)] * bool(model.missing),
            }
            for number, model in enumerate(found.models)
        ],
        "warnings": found.warnings,
        "left_out": found.left_out,
        "how_to_read": comparison.how_to_read(found),
    }


def _together(summary: RunSummary, draw: Draw) -> list[dict[str, Any]]:
    """Return a chart for every protocol with learning curves of several models (or
    views), for each kind of curve.
    """
    by_kind: dict[tuple[str, bool], list[tuple[words.Curve, str]]] = {}
    for name, cell in _named_cells(summary):
        for one in words.curves(cell):
            own = by_kind.setdefault((cell.plan.label, one.is_measure), [])
            own.append((one, name))
    charts = (
        (label, together([one for one, _ in own], [name for _, name in own]))
        for (label, _), own in by_kind.items()
    )
    return [
        {**chart, "label": label, "chart": draw(chart)}
        for label, chart in charts
        if chart is not None
    ]


def _named_cells(summary: RunSummary) -> Iterator[tuple[str, CellResult]]:
    """Yield each cell with the name of its model, and with the view if the views of the
    run differ.
    """
    wheres = {words.whose(model)[1] for model in summary.models}
    for model in summary.models:
        name, where = words.whose(model)
        for cell in words.cells_of(summary, model):
            yield name if len(wheres) == 1 else f"{name}, {where}", cell


def _study_chart(summary: RunSummary, draw: Draw) -> dict[str, Any] | None:
    chart = settings(summary.models) if words.study_name(summary) else None
    return chart and {**chart, "chart": draw(chart)}


def _data(value: object) -> Any:
    """Return JSON for a data block of the page. ``<``, ``>`` and ``&`` are escaped, so
    that nothing in it can end the block.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for glyph in "<>&":
        text = text.replace(glyph, f"\\u{ord(glyph):04x}")
    return Markup(text)


def _link_names(summary: RunSummary) -> dict[CellKey, str]:
    """Return the name of each cell in links: the protocol or, if that is not unique,
    the whole key.
    """
    keys = [cell.plan.key for cell in summary.cells]
    protocols = [protocol for _, protocol, _, _ in keys]
    fragments = {}
    for key in keys:
        model, protocol, view, variant = key
        rest = (
            ""
            if protocols.count(protocol) == 1
            else "@" + ",".join(filter(None, (model, view, variant)))
        )
        fragments[key] = words.clean(f"{protocol}{rest}")
    return fragments


def _first_failed(shelf: player.Shelf) -> tuple[int, int] | None:
    """Return subject and number of the first failed trial on the page that enters the
    pass rate, or None.
    """
    failed = [
        (t["subject"], t["trial"])
        for t in shelf.trials[: shelf.shown]
        if t["success"] is False and t["compared"]
    ]
    return min(failed, default=None)


def _first_trial(shelf: player.Shelf, name: str) -> str:
    """Return the link to a cell's first trial on the page."""
    subject, trial = min(
        (one["subject"], one["trial"]) for one in shelf.trials[: shelf.shown]
    )
    return f"#{quote(name, safe='')}/{subject}/{trial}/0"


def entry(shelf: player.Shelf, link: str) -> dict[str, Any]:
    """Return the facts about a cell that the player needs before its trials are
    unpacked.
    """
    plan = shelf.plan
    whose = " in ".join(words.whose(plan))
    silence = (
        "No call was made for this step."
        if plan.agent
        else "This agent is a program: it gives no replies."
    )
    if plan.model == PERSON:
        silence = "A person pressed a key: there are no replies."
    return {
        "link": link,
        "title": words.clean(f"{plan.title or plan.protocol} ({whose})"),
        "problem": words.clean(shelf.problem),
        # The lines of a question may be wrapped, but the lines of a map may not.
        "prose": plan.items,
        "silence": words.clean(shelf.note) or silence,
        "ground": shelf.ground,
        "counts": "in the pass rate" if plan.measured is None else "in the verdict",
        "whole": shelf.complete,
    }


def _scale(model: ModelSummary, cells: Sequence[CellResult]) -> str:
    """Return the heading of the column beside the rates, which is an ability or the
    chance level, or "" if there is none.
    """
    if words.mean_ability(model, cells):
        return "ability (95 %)"
    is_chance = any(cell.plan.against == "chance" for cell in cells)
    return words.CHANCE if is_chance else ""


def _model(
    model: ModelSummary,
    cells: Sequence[CellResult],
    names: dict[CellKey, str],
    first_failed: dict[CellKey, tuple[int, int] | None],
    draw: Draw,
    lived: Mapping[CellKey, Behaviour],
    did: str,
) -> dict[str, Any]:
    profile = radar(model, cells)
    others = {
        name: None for cell in cells for name in cell.outcomes if name not in TAXONOMY
    }
    name, where = words.whose(model)
    axis = forest_axis(cells)
    return {
        "name": name,
        "where": where,
        "gate": model.gate,
        "mark": words.MARKS[model.gate],
        "reason": model.gate_reason,
        "did": did,
        "counts": [(v, [c.verdict for c in cells].count(v)) for v in Verdict],
        "overall": model.overall,
        "averaged_over": words.averaged_over(cells),
        "rodent": words.rodent_mean(cells),
        "have_animals": words.have_animals(cells),
        "difference_name": words.difference_name(cells),
        "how_to_read": words.how_to_read(cells),
        "grid": matrix.grid(cells),
        "ability": words.mean_ability(model, cells),
        "scale": _scale(model, cells),
        "is_uneven": any(one.is_uneven for cell in cells for one in cell.answers),
        "by_answer": words.by_answer(cells),
        "profile": profile
        and {**profile, "chart": draw(profile), "text": radar_in_words(profile)},
        "axis": words.forest_labels(cells, axis),
        "margin": margin_in_words(cells),
        "zero": {"chance": "at chance", "standard": "as the rodent, or at chance"}.get(
            words.standard_name(cells), "as the rodent"
        ),
        "rows": [
            _row(
                cell,
                names,
                first_failed.get(cell.plan.key),
                draw,
                lived.get(cell.plan.key),
            )
            | {"forest": forest_row(cell, axis), "numbers": numbers}
            for cell, numbers in zip(cells, words.numbers(cells), strict=True)
        ],
        "outcomes": [
            name
            for name in (*TAXONOMY, *others)
            if any(cell.outcomes.get(name) for cell in cells)
        ],
        "kinds": {name: kind for kind, name in enumerate(TAXONOMY)},
        "endings": words.ENDINGS,
        "strategy": list(
            {measure.name: None for cell in cells for measure in cell.strategy}
        ),
        "meanings": _meanings(cells),
    }


def _row(
    cell: CellResult,
    names: dict[CellKey, str],
    failed: tuple[int, int] | None,
    draw: Draw,
    lived: Behaviour | None,
) -> dict[str, Any]:
    plan: CellPlan = cell.plan
    bets = words.settled(cell)
    return {
        "cell": cell,
        "link": names[plan.key],
        "plan": plan,
        "title": plan.title or plan.protocol,
        "mark": words.MARKS[cell.verdict],
        "floor": words.floor(cell) if cell.plan.against == "chance" else "",
        "ability": words.ability(cell),
        "ability_interval": words.ability_interval(cell),
        "ability_beside": f"rodent {words.ability_of_rodent(cell)}; PASS from {words.ability_of_bar(cell)}"
        if cell.ability
        else "",
        "remarks": [text for text in words.remarks(cell) if text != bets],
        "bets": bets,
        "validity": words.validity_in_full(cell),
        "dose": words.dose(cell),
        "took": _took(cell, lived, draw),
        "strategies": _strategies(lived, draw),
        "bar": outcome_bar(cell),
        "raw": ", ".join(
            f"{name} {count}" for name, count in cell.raw_outcomes.items()
        ),
        "curves": _curves(cell, lived, draw),
        "conditions": [_conditions(curve, draw) for curve in cell.conditions],
        "strategy": {measure.name: number(measure.mean) for measure in cell.strategy},
        "classes": [
            (one.name, shares(one), sum(one.counts.values())) for one in cell.classes
        ],
        "splits": [
            (f"{one.variable} {shown_value(one.value)}", one.passed, one.trials)
            for one in cell.splits
        ],
        "measures": [
            (
                measure.name,
                words.mean_over_subjects(measure),
                words.animals_of(cell, measure.name),
                measure.subjects,
                measure.n,
            )
            for measure in cell.measures
        ],
        "failed": failed
        and {"link": names[plan.key], "subject": failed[0], "trial": failed[1]},
    }


def _curves(
    cell: CellResult, lived: Behaviour | None, draw: Draw
) -> list[dict[str, Any]]:
    """Return the charts of the cell's learning curves, with their numbers."""
    return [
        {
            **chart,
            "chart": draw(chart),
            "text": curve_in_words(own),
            "rows": [
                (
                    point.session,
                    own.shown(point.rate),
                    f"{own.shown(point.low)} to {own.shown(point.high)}",
                    point.trials,
                    animals,
                )
                for point, animals in zip(
                    own.points, own.animals_by_point(), strict=True
                )
            ],
        }
        for own in words.curves(cell)
        if (chart := curve(own, lived)) is not None
    ]


def _took(
    cell: CellResult, lived: Behaviour | None, draw: Draw
) -> list[dict[str, Any]]:
    """Return the charts of the measures that animals have a value of, and of latency
    and path length, with their text for screen readers. A measure that the verdict is
    about has a learning curve instead.
    """
    if lived is None or lived.plan.items:
        return []
    found = cell.plan.animals_by_measure
    animals = {name: one.animals for name, one in found.items()}
    judged = cell.plan.measured
    names = dict.fromkeys([*animals, "latency", "path length"])
    if judged is not None:
        names.pop(judged.name, None)
    charts = [
        (chart, animals.get(name))
        for name in names
        if (chart := took(lived, name, animals.get(name))) is not None
    ]
    return [
        {
            **chart,
            "unit": lived.units.get(chart["name"], ""),
            "chart": draw(chart),
            "text": _ends(f"Mean {chart['name']}", chart["means"])
            + ("" if own is None else f" Rodents: {number(own.value)}."),
        }
        for chart, own in charts
    ]


def _coded(text: str) -> Markup:
    """Return a sentence of the Markdown report with its code as elements."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _ends(name: str, means: Sequence[float | None]) -> str:
    """Return the first and the last known mean of a chart, for screen readers."""
    known = [mean for mean in means if mean is not None]
    return f"{name} {number(known[0])} at first, {number(known[-1])} at last."


def _strategies(lived: Behaviour | None, draw: Draw) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if lived is None or lived.plan.items:
        return found
    for name in lived.strategies:
        chart = stacked(lived, name)
        said = ", ".join(
            f"{one['name']} {_said(one['rates'][0])} at first, {_said(one['rates'][-1])} at last"
            for one in chart["models"]
        )
        found.append({"name": name, "chart": draw(chart), "text": said})
    return found


def _paradigms(
    models: Sequence[dict[str, Any]], together: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the contents of the sections on paradigms. Each section shows the models
    next to one another.
    """
    found: dict[str, dict[str, Any]] = {}
    for model in models:
        for row in model["rows"]:
            own = found.setdefault(
                row["cell"].plan.label,
                {"title": row["title"], "rows": [], "together": []},
            )
            own["rows"].append((f"{model['name']} in {model['where']}", model, row))
    for chart in together:
        found[chart["label"]]["together"].append(chart)
    return list(found.values())


def _conditions(curve: ConditionCurve, draw: Draw) -> dict[str, Any]:
    return {
        "measure": curve.measure,
        "variable": curve.variable,
        "chart": draw(by_condition(curve)),
        "text": condition_in_words(curve),
        "points": [
            (
                shown_value(value),
                words.mean_over_subjects(measure),
                measure.subjects,
                measure.n,
            )
            for value, measure in curve.points
        ],
    }


def _control(result: ControlResult, draw: Draw) -> dict[str, Any]:
    return {
        "title": words.title(result),
        "chart": draw(pair(result)),
        "glance": _glance(result),
        "headers": words.headers(result),
        "rows": words.rows(result),
        "sentences": list(words.sentences(result)),
    }


def _glance(result: ControlResult) -> dict[str, Any]:
    """Return a chart of the plain cell and the control on one scale of pass rates. A
    verdict about a measure has numbers only.
    """
    plan = result.control.plan
    rates = [
        cell.rate if cell.plan.measured is None else None
        for cell in (result.plain, result.control)
    ]
    *means, difference = words.control_numbers(result)
    return {
        "model": plan.model,
        "protocol": plan.title or plan.protocol,
        "control": plan.control,
        "plain": None if rates[0] is None else _x(rates[0]),
        "lesioned": None if rates[1] is None else _x(rates[1]),
        "without": None
        if result.highest_without is None
        else _x(result.highest_without),
        "measure": "" if plan.measured is None else plan.measured.name,
        "rates": means,
        "difference": difference,
    }


def _meanings(cells: Sequence[CellResult]) -> list[tuple[str, str]]:
    used = {remark for cell in cells for remark in words.remarks(cell)}
    return [
        (remark, meaning)
        for remark, meaning in words.MEANINGS.items()
        if remark in used
    ]
