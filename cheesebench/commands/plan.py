"""``cheesebench plan``: what a run would take, and what it could say, before a single call is made."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.commands.common import counted, one_line, table
from cheesebench.errors import OptionError, ProtocolError
from cheesebench.experiment.designs import find_design, plan_cell
from cheesebench.models import user_models
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification
from cheesebench.pytest_session.model_options import RECORDED, language_models
from cheesebench.pytest_session.selection import Broken, default_protocols, named_protocols
from cheesebench.statistics.summary import Verdict, to_plain

if TYPE_CHECKING:
    from cheesebench.experiment.contestants import LanguageModel
    from cheesebench.experiment.records import CellPlan
    from cheesebench.planning import CellForecast, Forecast
    from cheesebench.planning.plan import Amount
    from cheesebench.plugin_manager import PluginManager

#: Columns of the text.
WIDTH = 80
UNKNOWN = "?"

_BOUND = (
    "At most: every step of every trial takes as many calls as the agent can make of it; the longest prompt of a "
    "rehearsal, a token of at least one byte, replies of full length."
)
_POWER = (
    "Simulated with the rule that judges: the probability of PASS (✔) and FAIL (✘) for a model exactly as good as the "
    "rodent, and for one worse by exactly the margin, where each should stay near 5 %. 'flake' is the probability "
    "that two runs of the same model disagree, the larger of both cases; 'for 80 %' the subjects with which a "
    "model as good as the rodent passes four times in five."
)


def run(options: argparse.Namespace) -> int:
    """Print the forecast."""
    from cheesebench.planning import forecast
    from cheesebench.planning.earlier import EarlierRuns

    plugins = installed_plugins()
    names = list(dict.fromkeys(name.strip() for given in options.model for name in given.split(",") if name.strip()))
    models = language_models(plugins, names, _interface(options), user_models(options.models))
    cells = list(_cells(plugins, names, models, options))
    found = forecast(
        plugins,
        cells,
        models,
        EarlierRuns(Path(options.results)),
        concurrency=options.concurrency,
        seed=options.seed,
        icc=options.icc,
    )
    sys.stdout.write(_json(found) if options.json else _text(found))
    return 0


def _interface(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in RECORDED} | {"base_url": None}


def _cells(
    plugins: PluginManager, names: Iterable[str], models: dict[str, LanguageModel], options: argparse.Namespace
) -> Iterator[tuple[CellPlan, Specification]]:
    design = find_design(options.design, options.subjects)
    views = options.view or list(design.views)
    for view in views:
        plugins.view(view)
    for specification in _protocols(Catalogue(plugins.protocol_directories), options):
        for name in names:
            for view in views:
                model = models.get(name)
                if model is None:
                    yield plan_cell(specification, name, view, design, plugins.agent(name).memory), specification
                    continue
                agent = model.agent
                yield (
                    plan_cell(
                        specification, name, view, design, agent.memory, agent=agent.name, settings=model.settings
                    ),
                    specification,
                )


def _protocols(catalogue: Catalogue, options: argparse.Namespace) -> Iterator[Specification]:
    if options.protocols:
        found = named_protocols(catalogue, Path.cwd(), options.protocols, options.edition)
    else:
        found = default_protocols(catalogue, options.edition or "paper")
    for one in found:
        if isinstance(one, Broken):
            raise ProtocolError(one.text)
        if not isinstance(one, Specification):
            raise OptionError(
                f"'{one.name}' is a dialogue: a cell makes one call for every generation, question and turn. "
                "Forecasts are made for arenas; leave it out."
            )
        yield one


def _json(found: Forecast) -> str:
    plain = to_plain(found)
    return json.dumps(plain, sort_keys=True, indent=2) + "\n"


def _text(found: Forecast) -> str:
    parts = [_calls(found)] if any(cell.most.calls != 0 for cell in found.cells) else ["No calls are made; it is free."]
    claiming = [cell for cell in found.cells if cell.outlook is not None]
    if claiming:
        parts += [_outlooks(claiming), _filled(_all_pass(found)), _filled(_POWER + _assumed(claiming))]
    else:
        parts.append(_filled("This design makes no claim, so there is no verdict to have power for."))
    return "\n\n".join(parts) + "\n"


def _calls(found: Forecast) -> str:
    rows = [
        [*_name(cell, found.cells), _number(cell.steps), *_amounts(cell.most, cell.estimate)] for cell in found.cells
    ]
    rows.append(["all", "", "", *_amounts(found.most, found.estimate)])
    headers = ("protocol", "trials", "steps ≤", "calls ≤", "about", "tokens ≤", "about")
    return "\n\n".join([table(headers, rows), *map(_filled, _sentences(found)), _filled(_BOUND)])


def _name(cell: CellForecast, cells: Sequence[CellForecast]) -> list[str]:
    plan = cell.plan
    several = [
        name
        for name, all_names in (
            (plan.model, {one.plan.model for one in cells}),
            (plan.view, {one.plan.view for one in cells}),
        )
        if len(all_names) > 1
    ]
    return [" ".join([plan.protocol, *several]), f"{plan.subjects} x {plan.trials}"]


def _amounts(most: Amount, estimate: Amount | None) -> list[str]:
    about = estimate or None
    return [
        _number(most.calls),
        UNKNOWN if about is None else _number(about.calls),
        _number(most.tokens),
        UNKNOWN if about is None else _number(about.tokens),
    ]


def _sentences(found: Forecast) -> Iterator[str]:
    most, about = found.most, found.estimate
    dollars = "" if most.dollars is None else f", {_dollars(most.dollars)}"
    yield f"At most {_number(most.calls)} calls and {_number(most.tokens)} tokens{dollars}."
    if about is None:
        yield (
            "No estimate: no earlier run in the results has asked a model on all of these protocols in this view. "
            "A first one: --design smoke, or --subjects 1."
        )
    else:
        dollars = "" if about.dollars is None else f", {_dollars(about.dollars)}"
        minutes = f", {_time(found.minutes)} with {found.concurrency} in flight"
        yield f"About {_number(about.calls)} calls and {_number(about.tokens)} tokens{dollars}{minutes}."
        yield _sources(found)
    if found.price_of is not None:
        yield f"Prices as published on {found.price_of}."
    else:
        yield "No price is known for this model."


def _time(minutes: float | None) -> str:
    if minutes is None:
        return "nobody knows how long"
    return "less than a minute" if minutes < 1 else counted(round(minutes), "minute")


def _sources(found: Forecast) -> str:
    earlier = [cell.earlier for cell in found.cells if cell.earlier is not None]
    runs = list(dict.fromkeys(run for one in earlier for run in one.runs))
    asked = list(dict.fromkeys(model for one in earlier for model in one.models))
    planned = {cell.plan.model for cell in found.cells}
    others = [model for model in asked if model not in planned]
    caution = f" Models differ: these were {one_line(', '.join(others))}." if others else ""
    return f"Estimated from {counted(len(runs), 'earlier run')}, the latest is {one_line(runs[0])}.{caution}"


def _outlooks(cells: Sequence[CellForecast]) -> str:
    rows = []
    for cell in cells:
        outlook = cell.outlook
        assert outlook is not None
        wanted = outlook.subjects_for_80
        rows.append(
            [
                _name(cell, cells)[0],
                f"{cell.plan.subjects} x {outlook.trials}",
                *(
                    _percent(chances[verdict])
                    for chances in (outlook.at_rodent, outlook.at_margin)
                    for verdict in _SAID
                ),
                _percent(max(outlook.disagree_at_rodent, outlook.disagree_at_margin)),
                "> 1000" if wanted is None else wanted,
            ]
        )
    headers = ("protocol", "counted", "as good ✔", "✘", "at margin ✔", "✘", "flake", "for 80 %")
    return table(headers, rows)


_SAID = (Verdict.PASS, Verdict.FAIL)


def _all_pass(found: Forecast) -> str:
    chances = ", ".join(f"{one_line(name)} {_percent(chance)}" for name, chance in found.all_pass.items())
    return f"All protocols PASS for a model exactly as good as the rodent: {chances}."


def _assumed(cells: Sequence[CellForecast]) -> str:
    known = sorted({cell.outlook.icc for cell in cells if cell.outlook is not None and cell.outlook.unit == "subject"})
    if not known:
        return " The agent keeps nothing from trial to trial, so trials are independent."
    return f" Subjects are taken to differ as with an intraclass correlation of {known[0]:g}; --icc sets another."


def _percent(chance: float) -> str:
    return f"{100 * chance:.0f} %"


def _number(value: float | None) -> str:
    """Return ``9,500``, ``12.3 k``, ``4.5 M``: exact below ten thousand."""
    if value is None:
        return UNKNOWN
    if value < 10_000:
        return f"{value:,.0f}"
    for unit in ("", "k", "M", "G"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} T"


def _dollars(value: float) -> str:
    return f"${value:,.2f}" if value < 100 else f"${value:,.0f}"


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH)
