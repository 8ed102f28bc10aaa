"""``cheesebench plan``: forecasts the calls, cost and power of a run before any call is
made.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cheesebench.amounts import dollars, percent, rounded
from cheesebench.commands.common import (
    add_json,
    add_option,
    add_options,
    describe,
    one_line,
    table,
)
from cheesebench.commands.project import project_protocols
from cheesebench.experiment.settings import Given
from cheesebench.functions import forecast_of
from cheesebench.options import OPTIONS
from cheesebench.planning import simulation, too_short
from cheesebench.statistics.ability import ability
from cheesebench.statistics.question import thresholds
from cheesebench.statistics.summary import to_plain
from cheesebench.statistics.wording import on_scale

if TYPE_CHECKING:
    from cheesebench.planning import CellForecast, Forecast
    from cheesebench.planning.earlier import Manner
    from cheesebench.records import CellPlan

#: Width of the printed text, in columns.
WIDTH = 80
UNKNOWN = "?"

_NUMBERS = (
    "A range has the number that suffices for half of all runs, then the number for 95 %. A thousand runs of each player "
    "were simulated with the rule of the verdict and the animals' learning curve. ✘ is the probability of a FAIL, ✔ the "
    "probability of a PASS, and 'flake' the probability that two runs of a model as good as the animals get different "
    "verdicts."
)
_MEASURED = (
    "Calls and tokens were measured with scripted respondents in the default view, prompt and window, whose replies have "
    "about 90 tokens"
)
_WRITES = "; a model that reasons writes more."
_OWN = (
    "Calls, tokens and time of {names} are from the model's own latest run with these settings. Trials that it did not "
    "have count like its last trial."
)
_REHEARSED = "Calls and tokens of {names} were counted for one subject that moves at random, asked through the agent"
_FINDS = " with replies of 90 tokens. A model that finds the goal needs fewer calls, and one that reasons more tokens."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints how many subjects, calls, tokens and dollars a run takes in half of all cases and in 95 % of them, "
        "how often a model as good as the animals passes, and how often the verdict would change if the same model "
        "were run again.",
        "--model gpt-5.4-mini",
        "--model random --design paper --view ascii_2d",
        "--model NAME --subjects 20 --protocols t_maze --history 1",
        "--model NAME --study ablation-history --protocols t_maze",
    )
    add_option(parser, "model", help="Plan for this model; repeatable (or use commas).")
    add_options(parser, "profile", "design", "study", "subjects", "view", "control")
    add_options(parser, "protocols")
    # By default, a directory selects all editions in it.
    add_option(parser, "edition", default=None)
    add_option(
        parser,
        "results",
        help="Directory of earlier runs, which show what the model needed. Default: results",
    )
    add_options(parser, "base-url", "familywise")
    add_option(
        parser, "max-cost", help="Say in what share of runs this many dollars suffice."
    )
    add_option(parser, "seed", default=0, help="Seed of the simulation. Default: 0")
    parser.add_argument(
        "--icc",
        metavar="X",
        type=_proportion,
        help="Intraclass correlation of a subject's trials. Default: 0.3",
    )
    parser.add_argument(
        "--ask",
        action="store_true",
        help="Ask the model the first questions (6 calls, or one for each cell), and use its answers for the plan.",
    )
    add_options(
        parser, *(option.name for option in OPTIONS if option.models_only), "models"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    given = Given(vars(options))
    found = forecast_of(
        given,
        icc=options.icc,
        ask=options.ask,
        tell=lambda line: print(line, file=sys.stderr),
        usual=project_protocols(),
    )
    sys.stdout.write(
        json.dumps(to_plain(found), sort_keys=True, indent=2) + "\n"
        if options.json
        else _text(found, options.max_cost)
    )
    return 0


def _text(found: Forecast, max_cost: float | None) -> str:
    asks = any(
        outlook.each.calls for cell in found.cells for outlook in cell.outlooks.values()
    )
    claiming = [cell for cell in found.cells if cell.trials]
    parts = ["No calls are made, so the run is free."]
    if asks:
        parts = [_needs(found, bool(claiming)), *map(_filled, _sources(found))]
    if claiming:
        parts += [
            _outlooks(claiming),
            *map(_filled, _more_subjects(claiming)),
            *filter(None, [_filled(_abilities(claiming))]),
            _filled(_all_pass(found)),
            _filled(_NUMBERS + _assumed(claiming)),
        ]
    else:
        parts.append(_filled(_why_no_verdict(found)))
    if max_cost is not None:
        parts.append(_filled(_enough(found, max_cost)))
    return "\n\n".join(parts) + "\n"


def _why_no_verdict(found: Forecast) -> str:
    """Return a sentence that says why no verdict is simulated."""
    if any(cell.plan.claims for cell in found.cells):
        return "The verdicts compare the model with chance, not with animals, so they are not simulated."
    return "This design makes no claim, so there is no verdict to simulate."


def _needs(found: Forecast, several: bool) -> str:
    """Return a table of what the run needs for each player. Without a claim, all
    subjects are run for every player.
    """
    needs = found.needs if several else dict([next(iter(found.needs.items()))])
    rows: list[list[object]] = [
        [name, *(_range(_number, getattr(own, name)) for own in needs.values())]
        for name in ("subjects", "calls", "tokens")
    ]
    if any(own.seconds[0] for own in needs.values()):
        hours = (
            "–".join(rounded(one / 3600, 2) for one in own.seconds)
            for own in needs.values()
        )
        rows.append(["hours (clock)", *hours])
    if all(own.dollars is not None for own in needs.values()):
        dollars = (_range(_dollars, own.dollars or ()) for own in needs.values())
        rows.append(["dollars", *dollars])
    return table(("the whole run", *(needs if several else ["any model"])), rows)


def _proportion(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to 1")
    return number


def _sources(found: Forecast) -> Iterator[str]:
    asking = [cell for cell in found.cells if cell.plan.agent]
    yield from _bases(asking)
    manners = {cell.plan.model: cell.manner for cell in asking if cell.manner}
    for model, manner in manners.items():
        yield _manner(model, manner)
    if not manners and not all(cell.own for cell in asking):
        yield "With --ask, the model is asked the first questions, and its answers are used for the plan."
    yield from _longest_prompt(asking)
    if found.price_of is not None:
        yield f"Prices as published on {found.price_of}."
    else:
        yield "No price is known for this model."


def _bases(asking: Sequence[CellForecast]) -> Iterator[str]:
    """Yield sentences that say where the numbers of calls come from: the model's own
    runs, measured runs, or rehearsed prompts.
    """
    known = any(cell.manner for cell in asking)
    own = [cell for cell in asking if cell.own]
    measured = [cell for cell in asking if cell.measured and not cell.own]
    rehearsed = [cell for cell in asking if not (cell.measured or cell.own)]
    if own:
        yield _OWN.format(names=_protocols(own))
    if measured:
        yield _MEASURED + ("." if known else _WRITES)
    if rehearsed:
        end = "." if known else _FINDS
        yield _REHEARSED.format(names=_protocols(rehearsed)) + end


def _protocols(cells: Sequence[CellForecast]) -> str:
    return one_line(", ".join(dict.fromkeys(cell.plan.protocol for cell in cells)))


def _longest_prompt(asking: Sequence[CellForecast]) -> Iterator[str]:
    longest = max(asking, key=lambda cell: cell.longest, default=None)
    if longest is None or not longest.longest:
        return
    where = f"{longest.plan.protocol} in {longest.plan.view}"
    yield f"The longest prompt has about {_number(longest.longest)} tokens ({where}), without the reply."
    if short := too_short(longest.plan, longest.longest, longest.context):
        yield f"WARNING: {short}"


def _named(manner: Manner) -> str:
    return "" if manner.actions is None else f" ({rounded(manner.actions, 1)} each)"


def _manner(model: str, manner: Manner) -> str:
    by = "its first answers" if manner.asked else "its earlier replies"
    acts = "none" if not manner.acts else f"{_percent(manner.acts)}"
    text = (
        f"By {manner.replies:,} of {by}, {one_line(model)} writes {rounded(manner.reply, 0)} tokens a reply, "
        f"and {acts} of them name an action{_named(manner)}."
    )
    return (
        text
        if manner.acts
        else f"{text} A run like this is the column 'random', and ends as an ERROR."
    )


def _enough(found: Forecast, max_cost: float) -> str:
    shares = {
        name: own.suffices
        for name, own in found.needs.items()
        if own.suffices is not None
    }
    if not shares:
        return f"Nobody can say whether --max-cost {max_cost:g} suffices, because the model has no known price."
    said = ", ".join(f"{_percent(share)} ({name})" for name, share in shares.items())
    return f"--max-cost {max_cost:g} suffices for these shares of runs: {said}."


def _name(cell: CellForecast, cells: Sequence[CellForecast]) -> str:
    plan = cell.plan
    several = [
        name
        for name, all_names in (
            (plan.model, {one.plan.model for one in cells}),
            (plan.view, {one.plan.view for one in cells}),
        )
        if len(all_names) > 1
    ]
    return " ".join([plan.protocol, *several])


def _outlooks(cells: Sequence[CellForecast]) -> str:
    rows = []
    # Without a stopping rule, all players take the same number of subjects.
    stops = any(cell.plan.sequential for cell in cells)
    for cell in cells:
        weak, animals, good = cell.outlooks.values()
        own = [[_span(one.subjects)] * stops for one in (weak, animals, good)]
        rows.append(
            [
                _name(cell, cells),
                f"{cell.plan.subjects}×{cell.trials}"
                if cell.plan.measured is None
                else cell.plan.subjects,
                _percent(weak.fails),
                *own[0],
                _percent(animals.passes),
                *own[1],
                _percent(animals.disagree),
                _percent(good.passes),
                *own[2],
            ]
        )
    span = ["subj."] * stops
    headers = (
        "protocol",
        "up to" if stops else "counted",
        "rand. ✘",
        *span,
        "animals ✔",
        *span,
        "flake",
        "95 % ✔",
        *span,
    )
    return table(headers, rows)


def _more_subjects(cells: Sequence[CellForecast]) -> Iterator[str]:
    """Yield how many subjects a model as good as the animals needs for a PASS in 80 %
    of runs, for each cell where it passes in fewer.
    """
    said, never = [], []
    for cell in cells:
        _, own, _ = cell.outlooks.values()
        if own.passes >= simulation.MUST_PASS:
            continue
        if _is_hopeless(cell.plan):
            never.append(one_line(cell.plan.protocol))
        else:
            number = cell.needed or f"more than {simulation.MOST_NEEDED}"
            said.append(f"{_name(cell, cells)} {number}")
    if said:
        yield (
            f"'animals ✔' reaches 80 % with about this many subjects: {', '.join(said)}. --design sequential runs as many "
            "as the verdict needs, up to 120."
        )
    if never:
        yield (
            f"No number of subjects gives a model as good as the animals a PASS in {', '.join(never)}: the animals' mean "
            "is too uncertain for the margin (cheesebench lint has the remedy)."
        )


def _is_hopeless(plan: CellPlan) -> bool:
    """Return whether a model as good as the animals never passes."""
    assert plan.reference is not None
    needed, _ = thresholds(plan.reference, plan.margin)
    is_higher = plan.measured is None or plan.measured.better == "higher"
    value = plan.reference.value
    return needed >= value if is_higher else needed <= value


def _abilities(cells: Sequence[CellForecast]) -> str:
    """Return a sentence that says where the animals and the bar are on the ability
    scale, or "" if no scale is known.
    """
    said = []
    for plan in {cell.plan.protocol: cell.plan for cell in cells}.values():
        scale = ability(plan, None)
        if scale is not None:
            ends = f"{on_scale(scale.rodent)}, {on_scale(scale.bar)}"
            said.append(f"{one_line(plan.protocol)} {ends}")
    return (
        f"Ability of the rodent, and the ability from which a model passes: {'; '.join(said)}."
        if said
        else ""
    )


def _span(subjects: tuple[float, float]) -> str:
    return "–".join(dict.fromkeys(rounded(one, 0) for one in subjects))


def _all_pass(found: Forecast) -> str:
    chances = ", ".join(
        f"{one_line(name)} {_percent(chance)}"
        for name, chance in found.all_pass.items()
    )
    return f"Probability that a model exactly as good as the animals passes all protocols: {chances}."


def _assumed(cells: Sequence[CellForecast]) -> str:
    measures = any(cell.plan.measured is not None for cell in cells)
    spread = (
        " Where the verdict is about a measure, subjects differ as the animals do, and '95 %' is a share of its range."
        * measures
    )
    known = sorted(
        {
            cell.icc
            for cell in cells
            if cell.plan.measured is None and cell.icc is not None
        }
    )
    if not known:
        return spread
    if known == [0.0]:
        return f"{spread} The agent remembers nothing from trial to trial, so its subjects are assumed to be alike."
    return f"{spread} Subjects are assumed to differ with an intraclass correlation of {known[-1]:g} (--icc sets another)."


def _percent(chance: float) -> str:
    return percent(round(chance, 2))


def _range(shown: Callable[[Any], str], ends: Iterable[Any]) -> str:
    """Return the ends of a range as text, or one end if both read the same."""
    return "–".join(dict.fromkeys(map(shown, ends)))


def _number(value: float | None) -> str:
    """Return a number as text, exact below ten thousand and with three digits and a
    unit above: ``9,500``, ``12.3 k``, ``4.5 M``.
    """
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
    return dollars(value) if value < 100 else dollars(value).partition(".")[0]


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)
