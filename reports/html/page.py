"""Layout of the HTML page, and its Content-Security-Policy, which forbids all other scripts and requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cheesebench.experiment.records import PERSON
from cheesebench.html_pages import Templates, content_security_policy
from cheesebench.reports import cells as words
from cheesebench.reports import controls, matrix, studies
from cheesebench.reports.escaping import clean
from cheesebench.reports.html import charts, strips
from cheesebench.reports.html.trials import Shelf, make_room, one_trial, shelves, subject_shelf
from cheesebench.reports.provenance import SHORT, origin, run_facts
from cheesebench.statistics import TAXONOMY, Verdict
from cheesebench.statistics.published import ELSEWHERE, published_elsewhere
from cheesebench.statistics.wording import percent, shares, shown_value

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.statistics import CellResult, ControlResult, Measure, ModelSummary, RunSummary
    from cheesebench.statistics.summary import ConditionCurve

#: Puts a chart on the page and returns its number there.
Draw = Callable[[charts.Chart | None], int | None]
#: Bytes that a page may have: what can be attached to a message and opened on a telephone.
LARGEST = 10_000_000
#: What a reason may have: it is a sentence or two.
_LONGEST = 2_000
_TEMPLATES = Templates("cheesebench.reports.html", lambda text: clean(text, _LONGEST))


def render(summary: RunSummary) -> str:
    """Return the page of a summary alone, without the player."""
    return _page(summary, [])


def render_run(summary: RunSummary, log: RunLog, plugins: PluginManager, largest: int = LARGEST) -> str:
    """Return the page with as many trials as fit into ``largest`` bytes (UTF-8)."""
    trials = shelves(log, plugins)
    rest = len(_page(summary, trials).encode("utf-8"))
    # 200 bytes for each cell: the text about trials that are left out differs in length.
    make_room(trials, max(0, largest - rest - 200 * len(trials)))
    return _page(summary, trials)


def render_subject(
    log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, back: str = "", largest: int = LARGEST
) -> str:
    """Return a page with the player alone, and the trials of one subject as far as it has come.

    ``back`` is a relative address that the page leads back to.
    """
    shelf = subject_shelf(log, plugins, plan, subject)
    make_room([shelf], largest)
    return _player(
        "subject.html.jinja",
        shelf,
        entry(shelf, clean(plan.protocol)),
        shelves=[shelf],
        run=clean(log.manifest.get("run_id") or "a run"),
        plan=plan,
        subject=subject,
        back=back,
        alone=False,
    )


def render_trial(log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, trial: int) -> str:
    """Return a page with the player and one trial, for a notebook."""
    shelf = one_trial(log, plugins, plan, subject, trial)
    about = entry(shelf, plan.protocol)
    return _player("trial.html.jinja", shelf, about, shelves=[], title=about["title"], alone=True)


def _player(template: str, shelf: Shelf, about: dict[str, Any], **values: Any) -> str:
    """Return a page with the player and one cell's trials."""
    from markupsafe import Markup

    script, style = Markup(_TEMPLATES.static("player.js")), Markup(_TEMPLATES.static("page.css"))
    return _TEMPLATES.render(
        template,
        policy=content_security_policy([script], [style]),
        script=script,
        style=style,
        index=_data([about]),
        packed=Markup(shelf.packed),
        **values,
    )


def _page(summary: RunSummary, trials: Sequence[Shelf]) -> str:
    from markupsafe import Markup

    names = _link_names(summary)
    first_failed = {shelf.plan.key: _first_failed(shelf) for shelf in trials}
    drawn: list[charts.Chart] = []

    def draw(chart: charts.Chart | None) -> int | None:
        """Add a chart to the page; return its number."""
        if chart is None:
            return None
        drawn.append(chart)
        return len(drawn) - 1

    models = [_model(model, words.cells_of(summary, model), names, first_failed, draw) for model in summary.models]
    scripts = [Markup(_TEMPLATES.static(name)) for name in ("chart.umd.min.js", "charts.js", "tables.js", "player.js")]
    style = Markup(_TEMPLATES.static("page.css"))
    return _TEMPLATES.render(
        "page.html.jinja",
        policy=content_security_policy(scripts, [style]),
        scripts=scripts,
        style=style,
        run=clean(summary.manifest.get("run_id") or "a run"),
        facts=run_facts(summary),
        models=models,
        best_of_views=summary.best_of_views,
        published_elsewhere=ELSEWHERE if published_elsewhere(cell.plan for cell in summary.cells) else "",
        contrasts=summary.contrasts,
        contrast_headers=words.CONTRAST_HEADERS,
        contrast_rows=words.contrast_rows(summary.contrasts),
        how_to_read_contrasts=words.HOW_TO_READ_CONTRASTS,
        matrix=matrix.matrix(summary),
        how_to_read_matrix=matrix.HOW,
        marks=words.MARKS,
        together=_together(summary, draw),
        study=studies.study_name(summary),
        study_chart=_study_chart(summary, draw),
        study_table=studies.settings_table(summary),
        how_to_read_study=studies.HOW,
        controls=[_control(result, draw) for result in summary.controls],
        how_to_read_controls=controls.HOW_TO_READ,
        question=words.question(summary.cells),
        reference_name=words.reference_name(summary.cells),
        protocols=list({cell.plan.protocol: cell.plan for cell in summary.cells}.values()),
        charts=_data(drawn),
        index=_data([entry(shelf, names[shelf.plan.key]) for shelf in trials]),
        shelves=trials,
        packed=[Markup(shelf.packed) for shelf in trials],
        percent=percent,
        number=_number,
        origin=origin,
        short=SHORT,
        nothing=words.NOTHING,
        width=strips.WIDTH,
        alone=False,
    )


def _together(summary: RunSummary, draw: Draw) -> list[dict[str, Any]]:
    """Return a chart for every protocol that several models (or views) have a learning curve of."""
    by_label: dict[str, list[tuple[CellResult, str]]] = {}
    wheres = {words.whose(model)[1] for model in summary.models}
    for model in summary.models:
        name, where = words.whose(model)
        for cell in words.cells_of(summary, model):
            by_label.setdefault(cell.plan.label, []).append((cell, name if len(wheres) == 1 else f"{name}, {where}"))
    drawn = []
    for pairs in by_label.values():
        chart = charts.together([cell for cell, _ in pairs], [name for _, name in pairs])
        if chart is not None:
            drawn.append({**chart, "chart": draw(chart)})
    return drawn


def _study_chart(summary: RunSummary, draw: Draw) -> dict[str, Any] | None:
    chart = charts.settings(summary.models) if studies.study_name(summary) else None
    return chart and {**chart, "chart": draw(chart)}


def _data(value: object) -> Any:
    """Return JSON for a data block of the page, with ``<``, ``>`` and ``&`` escaped so that it cannot end the block."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for glyph in "<>&":
        text = text.replace(glyph, f"\\u{ord(glyph):04x}")
    return Markup(text)


def _link_names(summary: RunSummary) -> dict[tuple[str, str, str, str], str]:
    """Return what stands for a cell in a link: the protocol where that is enough, else the rest of the key too."""
    keys = [cell.plan.key for cell in summary.cells]
    protocols = [protocol for _, protocol, _, _ in keys]
    fragments = {}
    for key in keys:
        model, protocol, view, variant = key
        rest = "" if protocols.count(protocol) == 1 else "@" + ",".join(filter(None, (model, view, variant)))
        fragments[key] = clean(f"{protocol}{rest}")
    return fragments


def _first_failed(shelf: Shelf) -> tuple[int, int] | None:
    failed = [(t["subject"], t["trial"]) for t in shelf.trials[: shelf.shown] if t["success"] is False]
    return min(failed, default=None)


def entry(shelf: Shelf, link: str) -> dict[str, Any]:
    """Return what the player must know of a cell before its trials are unpacked."""
    plan = shelf.plan
    whose = " in ".join(words.whose(plan))
    silence = "No call was made for this step." if plan.agent else "This agent is a program: it gives no replies."
    if plan.model == PERSON:
        silence = "A person pressed a key: there are no replies."
    return {
        "link": link,
        "title": clean(f"{plan.title or plan.protocol} ({whose})"),
        "problem": clean(shelf.problem),
        # Questions in words are wrapped; a map must not be.
        "prose": plan.in_words,
        "silence": clean(shelf.note) or silence,
    }


def _model(
    model: ModelSummary,
    cells: Sequence[CellResult],
    names: dict[tuple[str, str, str, str], str],
    first_failed: dict[tuple[str, str, str, str], tuple[int, int] | None],
    draw: Draw,
) -> dict[str, Any]:
    """Return one model's part of the page."""
    profile = charts.radar(model, cells)
    others = {name: None for cell in cells for name in cell.outcomes if name not in TAXONOMY}
    name, where = words.whose(model)
    return {
        "name": name,
        "where": where,
        "gate": model.gate,
        "mark": words.MARKS[model.gate],
        "reason": model.gate_reason,
        "counts": [(v, [c.verdict for c in cells].count(v)) for v in Verdict],
        "overall": model.overall,
        "rodent": words.rodent_mean(cells),
        "reference_name": words.reference_name(cells),
        "difference_name": words.difference_name(cells),
        "how_to_read": words.how_to_read(cells),
        "random": words.chance_mean(cells),
        "profile": profile and {**profile, "chart": draw(profile), "text": charts.radar_in_words(profile)},
        "rows": [_row(cell, names, first_failed.get(cell.plan.key), draw) for cell in cells],
        "outcomes": [name for name in (*TAXONOMY, *others) if any(cell.outcomes.get(name) for cell in cells)],
        "kinds": {name: kind for kind, name in enumerate(TAXONOMY)},
        "strategy": list({measure.name: None for cell in cells for measure in cell.strategy}),
        "meanings": _meanings(cells),
        "calls": words.calls_table(cells),
    }


def _row(
    cell: CellResult, names: dict[tuple[str, str, str, str], str], failed: tuple[int, int] | None, draw: Draw
) -> dict[str, Any]:
    plan: CellPlan = cell.plan
    chart = charts.curve(cell)
    return {
        "cell": cell,
        "plan": plan,
        "title": plan.title or plan.protocol,
        "mark": words.MARKS[cell.verdict],
        "rate": words.rate(cell),
        "interval": words.interval(cell),
        "reference": words.reference(cell),
        "floor": words.floor(cell),
        "difference": words.difference(cell),
        "margin": words.margin(cell),
        "remarks": words.remarks(cell),
        "validity": words.validity_in_full(cell),
        "strip": strips.interval_strip(cell),
        "bar": strips.outcome_bar(cell),
        "raw": ", ".join(f"{name} {count}" for name, count in cell.raw_outcomes.items()),
        "curve": chart
        and {
            **chart,
            "chart": draw(chart),
            "text": charts.curve_in_words(cell),
            "animals": words.animals_by_point(cell),
        },
        "conditions": [_conditions(curve, draw) for curve in cell.conditions],
        "strategy": {measure.name: _number(measure.mean) for measure in cell.strategy},
        "classes": [(one.name, shares(one), sum(one.counts.values())) for one in cell.classes],
        "splits": [(f"{one.variable} {shown_value(one.value)}", one.passed, one.trials) for one in cell.splits],
        "measures": [(measure.name, _mean(measure), measure.n) for measure in cell.measures],
        "failed": failed and {"link": names[plan.key], "subject": failed[0], "trial": failed[1]},
    }


def _conditions(curve: ConditionCurve, draw: Draw) -> dict[str, Any]:
    return {
        "measure": curve.measure,
        "variable": curve.variable,
        "chart": draw(charts.by_condition(curve)),
        "text": charts.condition_in_words(curve),
        "points": [(shown_value(value), _mean(measure), measure.n) for value, measure in curve.points],
    }


def _control(result: ControlResult, draw: Draw) -> dict[str, Any]:
    return {
        "title": controls.title(result),
        "chart": draw(charts.pair(result)),
        "headers": controls.headers(result),
        "rows": controls.rows(result),
        "sentences": list(controls.sentences(result)),
    }


def _meanings(cells: Sequence[CellResult]) -> list[tuple[str, str]]:
    used = {remark for cell in cells for remark in words.remarks(cell)}
    return [(remark, meaning) for remark, meaning in words.MEANINGS.items() if remark in used]


def _mean(measure: Measure) -> str:
    return _number(measure.mean) + ("" if measure.sd is None else f" ± {_number(measure.sd)}")


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
