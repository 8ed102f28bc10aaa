"""``cheesebench plan``: forecasts the calls, cost and power of a run."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cheesebench.amounts import dollars, rounded
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
from cheesebench.planning import told
from cheesebench.statistics.summary import to_plain
from cheesebench.statistics.wording import on_scale

if TYPE_CHECKING:
    from cheesebench.planning import CellForecast, Forecast

#: Width of the printed paragraphs, in columns. Tables fit the terminal.
WIDTH = 80
_NUMBERS = (
    "The columns are of three players: random actions ('rand.'), one exactly as good as the animals, and one that is "
    "{competent} ('{column}'). A range has the number that suffices for half of all runs, then the number for 95 %. "
    "A thousand runs of each player "
    "were simulated with the rule of the verdict and the animals' learning curve. ✘ is the probability of a FAIL, ✔ the "
    "probability of a PASS, and 'flake' the probability that two runs of a model as good as the animals get different "
    "verdicts."
)


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
    for name, what in (("max-cost", "dollars"), ("max-tokens", "tokens")):
        about = f"Say in which share of runs this many {what} suffice."
        add_option(parser, name, help=about)
    add_option(parser, "seed", default=0, help="Seed of the simulation. Default: 0")
    parser.add_argument(
        "--icc",
        metavar="X",
        type=_proportion,
        help="Intraclass correlation of a subject's trials, from 0 to 1. Default: the animals' own if the protocol has their "
        "rows, otherwise 0.3, or 0 for an agent without memory",
    )
    parser.add_argument(
        "--ask",
        action="store_true",
        help="Ask the model the first questions (at least 6 calls, and one for each cell), and use its answers for the plan.",
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
        else _text(found, _budget(options))
    )
    return 0


def _budget(options: argparse.Namespace) -> str:
    """Return the budget as it is typed, or "" if none is given."""
    given = (options.max_cost, options.max_tokens)
    shown = zip(("--max-cost", "--max-tokens"), given, strict=True)
    return " ".join(f"{name} {most}" for name, most in shown if most is not None)


def _text(found: Forecast, budget: str) -> str:
    asks = any(
        outlook.each.calls for cell in found.cells for outlook in cell.outlooks.values()
    )
    claiming = [cell for cell in found.cells if cell.trials]
    parts = ["No calls are made, so the run is free."]
    if asks:
        parts = [_needs(found, bool(claiming)), *map(_filled, told.sources(found))]
    if claiming:
        parts += [
            _outlooks(claiming),
            *map(_filled, (*told.limits(found), *told.needed(claiming))),
            *filter(None, [_filled(_abilities(claiming))]),
            _filled(_all_pass(found)),
            _filled(_players(claiming) + told.assumed(claiming)),
        ]
    else:
        parts.append(_filled(_why_no_verdict(found)))
    if budget:
        parts.append(_filled(_enough(found, budget)))
    return "\n\n".join(parts) + "\n"


def _why_no_verdict(found: Forecast) -> str:
    """Return a sentence that says why no verdict is simulated."""
    claiming = [cell.plan for cell in found.cells if cell.plan.claims]
    if any(plan.comparable for plan in claiming):
        return "The verdicts compare the model with chance, not with animals, so they are not simulated."
    why = (
        "The protocols have no reference" if claiming else "This design makes no claim"
    )
    return f"{why}, so there is no verdict to simulate."


def _needs(found: Forecast, several: bool) -> str:
    """Return a table of what the run needs. If ``several``, it has a column for each
    simulated player, because their runs may end at different times. Otherwise all
    models need the same.
    """
    needs = found.needs if several else dict([next(iter(found.needs.items()))])
    rows: list[list[object]] = [
        [name, *(_range(told.count, getattr(own, name)) for own in needs.values())]
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


def _enough(found: Forecast, budget: str) -> str:
    said = ", ".join(
        f"{told.share(own.suffices)} ({name})"
        for name, own in found.needs.items()
        if own.suffices is not None
    )
    return f"Share of runs for which {budget} is enough: {said or 'unknown, without a price'}."


def _outlooks(cells: Sequence[CellForecast]) -> str:
    rows = []
    # Without a stopping rule, all players take the same number of subjects.
    stops = any(cell.plan.sequential for cell in cells)
    for cell in cells:
        weak, animals, good = cell.outlooks.values()
        own = [[_span(one.subjects)] * stops for one in (weak, animals, good)]
        rows.append(
            [
                told.name_in(cell, cells),
                f"{cell.plan.subjects}×{cell.trials}"
                if cell.plan.measured is None
                else cell.plan.subjects,
                told.share(weak.fails),
                *own[0],
                told.share(animals.passes),
                *own[1],
                told.share(animals.disagree),
                told.share(good.passes),
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
        f"{_column(cells)} ✔",
        *span,
    )
    return table(headers, rows)


def _column(cells: Sequence[CellForecast]) -> str:
    """Return the last player in the heading of its column: ``95 %``."""
    return [*cells[0].outlooks][-1].removesuffix(" right")


def _players(cells: Sequence[CellForecast]) -> str:
    competent = [*cells[0].outlooks][-1]
    return _NUMBERS.format(competent=competent, column=_column(cells))


def _abilities(cells: Sequence[CellForecast]) -> str:
    """Return a sentence that says where the animals and the bar are on the ability
    scale, or "" if no scale is known.
    """
    said = []
    for name, scale in {cell.plan.protocol: cell.ability for cell in cells}.items():
        if scale is not None:
            ends = f"{on_scale(scale.rodent)}, {on_scale(scale.bar)}"
            said.append(f"{one_line(name)} {ends}")
    return (
        f"Ability of the rodent, and the ability from which a model passes: {'; '.join(said)}."
        if said
        else ""
    )


def _span(subjects: tuple[float, float]) -> str:
    return "–".join(dict.fromkeys(rounded(one, 0) for one in subjects))


def _all_pass(found: Forecast) -> str:
    chances = ", ".join(
        f"{one_line(name)} {told.share(chance)}"
        for name, chance in found.all_pass.items()
    )
    return f"Probability that a model exactly as good as the animals passes all protocols: {chances}."


def _range(shown: Callable[[Any], str], ends: Iterable[Any]) -> str:
    """Return the ends of a range as text, or one end if both read the same."""
    return "–".join(dict.fromkeys(map(shown, ends)))


def _dollars(value: float) -> str:
    return dollars(value) if value < 100 else dollars(value).partition(".")[0]


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)
