"""``cheesebench plan``: forecast the calls, cost and power of a run before any call is made."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.commands.common import counted, one_line, table
from cheesebench.commands.parsing import add_json, add_option, add_options, describe, proportion
from cheesebench.errors import OptionError
from cheesebench.experiment.controls import check_control, control_cell, has_control
from cheesebench.experiment.designs import find_design, plan_cell, usual_design
from cheesebench.experiment.model_options import language_models
from cheesebench.experiment.run_options import RunOptions
from cheesebench.experiment.selection import Broken, cells_of, default_protocols, named_protocols
from cheesebench.family import CellRequest
from cheesebench.models import user_models
from cheesebench.options import OPTIONS
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import BaseSpecification, Catalogue
from cheesebench.statistics.power import MOST_SIMULATED
from cheesebench.statistics.summary import Verdict, to_plain

if TYPE_CHECKING:
    from cheesebench.experiment.contestants import LanguageModel
    from cheesebench.experiment.records import CellPlan
    from cheesebench.planning import CellForecast, Forecast, Outlook
    from cheesebench.planning.plan import Amount
    from cheesebench.planning.profiles import ProfiledRun
    from cheesebench.plugin_manager import PluginManager

#: Columns of the text.
WIDTH = 80
UNKNOWN = "?"

_BOUND = (
    "It holds for any model: every step takes the most calls that the agent can make, every prompt is the longest of "
    "a rehearsal, every byte is a token, and replies have full length."
)
_BOUND_OF_QUESTIONS = (
    "It holds for any model: every question is asked once in each generation, every byte is a token, and replies "
    "have full length."
)
_PROFILES = (
    "Measured with scripted respondents in the default view, prompt and window: 'hopeless' never gives an action, "
    "'weak' moves at random, 'ratlike' fails a quarter of its trials, 'competent' a twentieth. Their replies have "
    "about 90 tokens (hopeless: 12); a model that reasons writes more."
)
_POWER = (
    "Simulated with the rule of the verdict: the probability of PASS (✔) and FAIL (✘) for a model exactly as good as "
    "the rodent, and for one worse by exactly the margin (each should stay near 5 %). 'flake' is the probability "
    "that two runs of the same model disagree, in the worse of the two cases; 'for 80 %' is the number of subjects "
    "with which a model as good as the rodent passes four times in five."
)

_POWER_OF_LOOKS = (
    "Simulated with the rule of the verdict, including its looks: the probability of PASS (✔) and FAIL (✘) for a "
    "model exactly as good as the rodent, and for one worse by exactly the margin (each stays near 5 %). 'flake' is "
    "the probability that two runs of the same model disagree, in the worse of the two cases; 'subjects' is the mean "
    "number needed by a model that never succeeds / by one as good as the rodent. The estimate of calls is for the "
    "latter."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Prints estimates of calls, tokens and dollars (from scripted respondents, hopeless to competent, and from "
        "earlier runs), an upper bound of each, the statistical power, and how often the verdict would change if the "
        "same model were run again.",
        "--model gpt-5.4-mini",
        "--model random --design paper --view ascii_2d",
        "--model NAME --subjects 20 --protocols t_maze --history 1",
    )
    add_option(parser, "model", help="Plan for this model; repeatable (or use commas).")
    add_options(parser, "profile", "design", "subjects", "generations", "view", "control")
    about = "These protocols: names, files or directories of them; repeatable. Default: the nine paradigms"
    add_option(parser, "protocols", help=about)
    # What is chosen by file or directory has every edition unless one is named.
    add_option(parser, "edition", default=None)
    add_option(parser, "results", help="Directory of earlier runs. Default: results")
    add_options(parser, "concurrency", "base-url")
    add_option(parser, "max-cost", help="Say whether this many dollars suffice.")
    add_option(parser, "seed", help="Seed of the simulation. Default: 0")
    parser.add_argument(
        "--icc", metavar="X", type=proportion, help="Intraclass correlation of a subject's trials. Default: 0.3"
    )
    add_options(parser, *(option.name for option in OPTIONS if option.models_only), "models")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the forecast."""
    from cheesebench.planning import forecast
    from cheesebench.planning.earlier import EarlierRuns
    from cheesebench.planning.enough import sufficiency

    plugins = installed_plugins()
    run_options = RunOptions(vars(options))
    run_options.check()
    names = run_options.value("model")
    if not names:
        raise OptionError("Say which model: --model NAME, or a --profile that names one.")
    models = language_models(plugins, names, run_options, user_models(options.models))
    cells = list(_cells(plugins, names, models, run_options))
    found = forecast(
        plugins,
        cells,
        models,
        EarlierRuns(Path(options.results)),
        concurrency=options.concurrency,
        seed=options.seed,
        icc=options.icc,
    )
    if options.max_cost is not None:
        found = replace(found, budget=sufficiency(found, options.max_cost))
    sys.stdout.write(json.dumps(to_plain(found), sort_keys=True, indent=2) + "\n" if options.json else _text(found))
    return 0


def _cells(
    plugins: PluginManager, names: Iterable[str], models: dict[str, LanguageModel], options: RunOptions
) -> Iterator[tuple[CellPlan, BaseSpecification]]:
    designs = {
        name: find_design(options.value("design") or usual_design(name in models), options.value("subjects"))
        for name in names
    }
    views = options.value("view") or list(dict.fromkeys(view for design in designs.values() for view in design.views))
    for view in views:
        plugins.view(view)
    controls = [check_control(control, Path(options.given["results"])) for control in options.value("control")]
    for specification in _protocols(Catalogue(plugins.protocol_directories), options):
        for name in names:
            model, design = models.get(name), designs[name]
            if not specification.has_place:
                asked = CellRequest(
                    model=name, plugins=plugins, design=design, language=model, generations=options.value("generations")
                )
                for plan in cells_of(specification, asked):
                    yield plan, specification
                continue
            walkable = specification.walkable()
            for view in views:
                if model is None:
                    plain = plan_cell(walkable, name, view, design, plugins.agent(name).memory)
                else:
                    agent, settings = model.agent, model.settings
                    plain = plan_cell(walkable, name, view, design, agent.memory, agent=agent.name, settings=settings)
                yield plain, specification
                for control in controls:
                    if has_control(walkable, control):
                        yield control_cell(plain, control, walkable), specification


def _protocols(catalogue: Catalogue, options: RunOptions) -> Iterator[BaseSpecification]:
    if named := options.value("protocols"):
        found = named_protocols(catalogue, Path.cwd(), named, options.given["edition"])
    else:
        found = default_protocols(catalogue, options.value("edition"))
    for one in found:
        if isinstance(one, Broken):
            raise one.error
        yield one


def _text(found: Forecast) -> str:
    asks = any(cell.most.calls != 0 for cell in found.cells)
    parts = [*_respondents(found), *_estimate(found)] if asks else ["No calls are made, so it is free."]
    claiming = [cell for cell in found.cells if cell.outlook is not None]
    if claiming:
        sequential = any(cell.plan.looks for cell in claiming)
        power = _POWER_OF_LOOKS if sequential else _POWER
        parts += [_outlooks(claiming), _filled(_all_pass(found)), _filled(power + _assumed(claiming))]
    elif any(cell.plan.subjects > MOST_SIMULATED for cell in found.cells):
        parts.append(_filled(f"With more than {MOST_SIMULATED:,} subjects, power is not simulated."))
    elif any(cell.plan.claims for cell in found.cells):
        parts.append(_filled("Verdicts are against chance, not against an animal, so power is not simulated."))
    else:
        parts.append(_filled("This design makes no claim, so there is no power to compute."))
    if asks:
        parts.append(_calls(found))
    if found.budget is not None:
        parts.append(_filled(found.budget.text))
    return "\n\n".join(parts) + "\n"


def _respondents(found: Forecast) -> Iterator[str]:
    """Yield what scripted respondents would take, and the range between them."""
    for runs, design in ((found.as_planned, "as planned"), (found.sequential, "with the sequential design")):
        if not runs:
            continue
        rows: list[list[object]] = [
            [protocol, *(_number(run.by_protocol[protocol].calls) for run in runs)] for protocol in runs[0].by_protocol
        ]
        rows += [
            ["all calls", *(_number(run.total.calls) for run in runs)],
            ["prompt tokens", *(_number(run.total.prompt) for run in runs)],
            ["  of them cached", *(_percent(run.total.cached / max(1, run.total.prompt)) for run in runs)],
            ["reply tokens", *(_number(run.total.completion) for run in runs)],
            ["subjects", *(sum(run.subjects.values()) for run in runs)],
        ]
        if all(run.dollars is not None for run in runs):
            rows.append(["dollars", *(_dollars(run.dollars or 0.0) for run in runs)])
        yield table((design, *(run.respondent for run in runs)), rows)
        yield _filled(_range(runs, design))
    if found.as_planned:
        yield _filled(_PROFILES + _outdated(found.outdated))


def _range(runs: Sequence[ProfiledRun], design: str) -> str:
    few, many = (extreme(runs, key=lambda run: run.total.calls) for extreme in (min, max))
    said = f"Between {_number(few.total.calls)} and {_number(many.total.calls)} calls {design}"
    dollars = [run.dollars for run in runs if run.dollars is not None]
    if dollars:
        said += f", {_dollars(min(dollars))} to {_dollars(max(dollars))}"
    least = f"the fewest for '{few.respondent}', the most for '{many.respondent}'"
    return f"{said}: {least}. A model that lets every trial time out can need more, up to the bound at the end."


def _outdated(names: Sequence[str]) -> str:
    return f" Changed since then: {one_line(', '.join(dict.fromkeys(names)))}." if names else ""


def _calls(found: Forecast) -> str:
    rows = [_row(cells, found.cells) for cells in _alike(found.cells)]
    rows.append(["all", "", "", *_amounts(found.most, found.estimate)])
    headers = ("protocol", "trials", "steps ≤", "calls ≤", "about", "tokens ≤", "about")
    questions = all(cell.plan.variant.condition for cell in found.cells)
    return "\n\n".join(
        [table(headers, rows), _filled(_most(found)), _filled(_BOUND_OF_QUESTIONS if questions else _BOUND)]
    )


def _alike(cells: Sequence[CellForecast]) -> Iterator[list[CellForecast]]:
    """Yield the cells of one line: the conditions of a protocol are many, and hardly differ."""
    by_place: dict[tuple[str, str, str], list[CellForecast]] = {}
    for cell in cells:
        by_place.setdefault((cell.plan.model, cell.plan.protocol, cell.plan.view), []).append(cell)
    yield from by_place.values()


def _row(cells: Sequence[CellForecast], every: Sequence[CellForecast]) -> list[object]:
    from cheesebench.planning.plan import total, total_estimate

    name, trials = _name(cells[0], every)
    if len(cells) > 1:
        trials = f"{cells[0].plan.subjects} x {sum(cell.plan.trials for cell in cells)}"
    steps = [cell.steps for cell in cells if cell.steps is not None]
    longest = max(steps) if len(steps) == len(cells) else None
    return [name, trials, _number(longest), *_amounts(total([cell.most for cell in cells]), total_estimate(cells))]


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
    at_most = "≤ " if plan.looks else ""
    return [" ".join([plan.protocol, *several]), f"{at_most}{plan.subjects} x {plan.trials}"]


def _amounts(most: Amount, estimate: Amount | None) -> list[str]:
    return [
        _number(most.calls),
        UNKNOWN if estimate is None else _number(estimate.calls),
        _number(most.tokens),
        UNKNOWN if estimate is None else _number(estimate.tokens),
    ]


def _most(found: Forecast) -> str:
    most = found.most
    dollars = "" if most.dollars is None else f", {_dollars(most.dollars)}"
    return f"The bound: at most {_number(most.calls)} calls and {_number(most.tokens)} tokens{dollars}."


def _estimate(found: Forecast) -> Iterator[str]:
    about = found.estimate
    if about is None:
        yield _filled(
            "No estimate: no earlier run in the results asked a model on all of these protocols in this view. For a "
            "first run, use --design smoke or --subjects 1."
        )
    else:
        dollars = "" if about.dollars is None else f", {_dollars(about.dollars)}"
        minutes = f", {_time(found.minutes)} with {found.in_flight} in flight"
        yield _filled(f"About {_number(about.calls)} calls and {_number(about.tokens)} tokens{dollars}{minutes}.")
        yield _filled(_sources(found))
    several = len(found.servers) > 1
    most = f"{found.concurrency} at each of {len(found.servers)} servers" if several else str(found.concurrency)
    limit = f" (the limit is {most})" if found.in_flight < found.concurrency * max(1, len(found.servers)) else ""
    yield _filled(f"At most {counted(found.in_flight, 'call')} in flight: one per running subject{limit}.")
    if several:
        yield _filled(f"The subjects are dealt out evenly to {', '.join(found.servers)}.")
    if found.price_of is not None:
        yield _filled(f"Prices as published on {found.price_of}.")
    else:
        yield _filled("No price is known for this model.")


def _time(minutes: float | None) -> str:
    known = minutes is not None and (counted(round(minutes), "minute") if minutes >= 1 else "less than a minute")
    return known or "unknown time"


def _sources(found: Forecast) -> str:
    earlier = [cell.earlier for cell in found.cells if cell.earlier is not None]
    runs = list(dict.fromkeys(run for one in earlier for run in one.runs))
    asked = list(dict.fromkeys(model for one in earlier for model in one.models))
    planned = {cell.plan.model for cell in found.cells}
    others = [model for model in asked if model not in planned]
    caution = f" Models differ; the earlier ones were {one_line(', '.join(others))}." if others else ""
    return f"Estimated from {counted(len(runs), 'earlier run')}; the latest is {one_line(runs[0])}.{caution}"


def _outlooks(cells: Sequence[CellForecast]) -> str:
    rows = []
    for cell in cells:
        outlook = cell.outlook
        assert outlook is not None
        wanted = outlook.subjects_for_80
        rows.append(
            [
                _name(cell, cells)[0],
                f"{'≤ ' if cell.plan.looks else ''}{cell.plan.subjects} x {outlook.trials}",
                *(
                    _percent(chances[verdict])
                    for chances in (outlook.at_rodent, outlook.at_margin)
                    for verdict in _SAID
                ),
                _percent(max(outlook.disagree_at_rodent, outlook.disagree_at_margin)),
                ("> 1000" if wanted is None else wanted) if outlook.subjects_at_rodent is None else _needed(outlook),
            ]
        )
    last = "subjects" if any(cell.plan.looks for cell in cells) else "for 80 %"
    return table(("protocol", "counted", "as good ✔", "✘", "at margin ✔", "✘", "flake", last), rows)


def _needed(outlook: Outlook) -> str:
    assert outlook.subjects_at_zero is not None
    assert outlook.subjects_at_rodent is not None
    return f"{outlook.subjects_at_zero:.0f} / {outlook.subjects_at_rodent:.0f}"


_SAID = (Verdict.PASS, Verdict.FAIL)


def _all_pass(found: Forecast) -> str:
    chances = ", ".join(f"{one_line(name)} {_percent(chance)}" for name, chance in found.all_pass.items())
    return f"Probability that a model exactly as good as the rodent passes all protocols: {chances}."


def _assumed(cells: Sequence[CellForecast]) -> str:
    measures = any(cell.plan.measured is not None for cell in cells)
    spread = " Where the verdict is about a measure, subjects are assumed to differ as the animals do." * measures
    rated = [cell for cell in cells if cell.plan.measured is None]
    if not rated:
        return spread
    known = sorted({cell.outlook.icc for cell in rated if cell.outlook is not None and cell.plan.memory != "none"})
    if not known:
        return f"{spread} The agent keeps nothing from trial to trial, so its subjects are assumed to be alike."
    return (
        f"{spread} Subjects are assumed to differ with an intraclass correlation of {known[0]:g}; --icc sets another."
    )


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
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)
