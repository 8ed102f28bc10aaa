"""Writes the sentences that say what a forecast assumes, for the command and for
Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from cheesebench.amounts import percent, rounded
from cheesebench.planning import simulation
from cheesebench.statistics.question import Question, thresholds
from cheesebench.terminal import printable

if TYPE_CHECKING:
    from cheesebench.planning.earlier import Manner
    from cheesebench.records import CellPlan

#: These types are defined in ``planning``, which imports this module.
CellForecast: TypeAlias = Any
Forecast: TypeAlias = Any
UNKNOWN = "?"
#: How to read the columns of a forecast.
HOW = (
    "Subjects, calls, tokens and cost suffice for half of all runs, and the columns with _95 for 95 %. A thousand runs of each "
    "player were simulated with the rule of the verdict and the animals' learning curve. disagree is the probability "
    "that two runs of a player get different verdicts."
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
_FINDS = " with replies of 90 tokens; a model that reasons writes more."
_ALLOWED = (
    "Each reply is assumed to name {count}, as many as allowed. This is no upper limit: a model that names half as many "
    "makes about twice as many calls."
)


#: Where an intraclass correlation comes from, in words.
_FROM = {
    "given": ", given",
    "no memory": ", as the agent remembers nothing from trial to trial",
    "animals": ", from the animals' rows",
    "assumed": ", assumed",
}
_ASSUMED = f"ICC {simulation.ICC_FLOOR:g}{_FROM['assumed']}"
_RANGE = (
    " A model's subjects need not differ as the animals do, so both numbers are given."
)
_AS_MANY_AS_NEEDED = (
    " --design sequential runs as many as the verdict needs, up to 120."
)


def too_short(plan: CellPlan, longest: float, context: int | None) -> str:
    """Return a warning if the longest prompt and a reply exceed the model's context,
    and otherwise "".
    """
    most = plan.settings.get("max_tokens") or 0
    if context is None or longest + most <= context:
        return ""
    prompt = f"The longest prompt of {plan.protocol} in {plan.view} has about {longest:,.0f} tokens"
    whole = f"{prompt}, and a reply up to {most:,}. Together they exceed"
    return (
        f"{whole if most else f'{prompt}. It exceeds'} the context of {plan.model}, {context:,} tokens. Use a smaller "
        "--history, another view or fewer --reply-tokens, or start the server with a larger context."
    )


def limits(found: Forecast) -> Iterator[str]:
    """Yield what these numbers of subjects cannot show."""
    claiming = [cell for cell in found.cells if cell.trials]
    if said := Question.too_few(cell.plan for cell in claiming):
        yield said
        yield from _ranges(cell.plan for cell in claiming)


def _ranges(plans: Iterable[CellPlan]) -> Iterator[str]:
    """Yield a sentence on the ranges of measures, if they make more subjects necessary
    than are planned.
    """
    told = {
        f"{plan.measured.name} {low:g} to {high:g}"
        for plan in plans
        if plan.measured is not None and Question.too_few([plan])
        for low, high in [plan.measured.range]
    }
    if told:
        yield (
            f"It is the 'range' of a measure that makes so many necessary ({', '.join(sorted(told))}), because the margin "
            "counts as a share of it. A narrower range needs fewer, but must hold every possible value."
        )


def needed(cells: Sequence[CellForecast]) -> Iterator[str]:
    """Yield how many subjects a model as good as the animals needs, where the planned
    ones may be too few, or that no number is enough.
    """
    if few := [cell for cell in cells if _may_need_more(cell)]:
        numbers = (f"{name_in(cell, cells)} {_numbers(cell)}" for cell in few)
        yield (
            "A model as good as the animals passes in 4 of 5 runs with about this many subjects: "
            f"{', '.join(dict.fromkeys(numbers))}."
            f"{_RANGE * any(cell.icc_basis == 'animals' for cell in few)}"
            f"{_AS_MANY_AS_NEEDED * any(not cell.plan.sequential for cell in few)}"
        )
    yield from _never(cells)


def _never(cells: Sequence[CellForecast]) -> Iterator[str]:
    never = [_line(cell.plan.label) for cell in cells if _is_hopeless(cell)]
    if never:
        yield (
            f"No number of subjects gives a model as good as the animals a PASS in {', '.join(dict.fromkeys(never))}: the "
            "animals' mean is too uncertain for the margin (cheesebench lint has the remedy)."
        )


def _may_need_more(cell: CellForecast) -> bool:
    """Return whether a model as good as the animals passes too rarely with the planned
    subjects, or would if its subjects differed more than the animals.
    """
    if _is_hopeless(cell):
        return False
    assumed = cell.needed_assumed or simulation.MOST_NEEDED + 1
    unlike = cell.icc_basis == "animals" and assumed > cell.plan.subjects
    return unlike or _passes_rarely(cell)


def _passes_rarely(cell: CellForecast) -> bool:
    return bool(list(cell.outlooks.values())[1].passes < simulation.MUST_PASS)


def _numbers(cell: CellForecast) -> str:
    """Return the number of subjects that a model as good as the animals needs or, where
    the animals' own correlation is known, the number for it and for ``ICC_FLOOR``.
    """
    rare = _passes_rarely(cell)
    own = _number(cell.needed) if rare else f"at most {cell.plan.subjects}"
    if cell.icc_basis != "animals":
        return own
    ends = {
        cell.icc: f"{own} (ICC {_icc(cell)}{_FROM['animals']})",
        simulation.ICC_FLOOR: f"{_number(cell.needed_assumed)} ({_ASSUMED})",
    }
    return " to ".join(ends[icc] for icc in sorted(ends))


def _number(needed: int | None) -> str:
    return f"more than {simulation.MOST_NEEDED}" if needed is None else str(needed)


def _icc(cell: CellForecast) -> str:
    return f"{round(cell.icc, 3):g}"


def _is_hopeless(cell: CellForecast) -> bool:
    """Return whether no number of subjects lets a model as good as the animals pass."""
    if not _passes_rarely(cell):
        return False
    plan = cell.plan
    passes, _ = thresholds(plan.reference, plan.margin)
    is_higher = plan.measured is None or plan.measured.better == "higher"
    value = plan.reference.value
    return bool(passes >= value if is_higher else passes <= value)


def name_in(cell: CellForecast, cells: Sequence[CellForecast]) -> str:
    """Return the protocol of a cell, with its model, view and variant where these
    differ.
    """
    several = [
        str(of(cell.plan))
        for of in (attrgetter("model"), attrgetter("view"), attrgetter("variant"))
        if len({str(of(one.plan)) for one in cells}) > 1
    ]
    return _line(" ".join([cell.plan.protocol, *filter(None, several)]))


def sources(found: Forecast) -> Iterator[str]:
    asking = [cell for cell in found.cells if cell.plan.agent]
    yield from _bases(asking)
    manners = {cell.plan.model: cell.manner for cell in asking if cell.manner}
    for model, manner in manners.items():
        yield _manner(model, manner)
    if not manners:
        yield from _assumed_replies([cell for cell in asking if not cell.own])
    yield from _longest_prompt(asking)
    if found.price_of is not None:
        yield f"Prices as published on {found.price_of}."
    else:
        yield "No price is known, so no cost is given."


def _bases(asking: Sequence[CellForecast]) -> Iterator[str]:
    """Yield sentences that say where the numbers of calls come from: the model's own
    runs, runs of scripted respondents, or rehearsed prompts.
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


def _assumed_replies(cells: Sequence[CellForecast]) -> Iterator[str]:
    """Yield how many actions a reply is assumed to name, if more than one is allowed,
    and how to measure it.
    """
    counts = sorted({cell.plan.settings.get("actions") or 1 for cell in cells})
    if counts and counts[-1] > 1:
        few = f"{counts[0]} to " if len(counts) > 1 else ""
        yield _ALLOWED.format(count=f"{few}{counts[-1]} actions")
    if cells:
        yield "With --ask, the model is asked the first questions, and its answers are used for the plan."


def _protocols(cells: Sequence[CellForecast]) -> str:
    return _line(", ".join(dict.fromkeys(cell.plan.protocol for cell in cells)))


def _longest_prompt(asking: Sequence[CellForecast]) -> Iterator[str]:
    longest = max(asking, key=lambda cell: cell.longest, default=None)
    if longest is None or not longest.longest:
        return
    where = f"{longest.plan.protocol} in {longest.plan.view}"
    yield f"The longest prompt has about {count(longest.longest)} tokens ({where}), without the reply."
    if short := too_short(longest.plan, longest.longest, longest.context):
        yield f"WARNING: {short}"


def _named(manner: Manner) -> str:
    return "" if manner.actions is None else f" ({rounded(manner.actions, 1)} each)"


def _manner(model: str, manner: Manner) -> str:
    by = "its first answers" if manner.asked else "its earlier replies"
    acts = "none" if not manner.acts else f"{share(manner.acts)}"
    text = (
        f"Judging by {manner.replies:,} of {by}, {_line(model)} writes {rounded(manner.reply, 0)} tokens a reply, "
        f"and {acts} of its replies name an action{_named(manner)}."
    )
    return (
        text
        if manner.acts
        else f"{text} A run with such replies costs as much as 'random', and ends as an ERROR."
    )


def assumed(cells: Sequence[CellForecast]) -> str:
    players = [list(one.outlooks) for one in cells if one.plan.measured is not None]
    spread = ""
    if players:
        spread = (
            f" Where the verdict is about a measure, subjects differ as the animals do, and '{players[0][-1]}' is that "
            "share of the measure's range (or the animals' mean, if closer to it is better)."
        )
    return f"{spread}{_clustered(cells)}"


def _clustered(cells: Sequence[CellForecast]) -> str:
    """Return a sentence on how subjects differ in pass rates, or "" if none is
    judged.
    """
    own = [c for c in cells if c.plan.measured is None and c.icc is not None]
    if not own:
        return ""
    if {cell.icc_basis for cell in own} == {"no memory"}:
        return " The agent remembers nothing from trial to trial, so its subjects are assumed to be alike."
    last = [*own[0].outlooks][-1]
    unlike = (
        f" '{last}' is no animal: {_ASSUMED}."
        if any(cell.icc_basis == "animals" for cell in own)
        else ""
    )
    return (
        " Subjects as good as the animals differ with an intraclass correlation (ICC) of "
        f"{'; '.join(_correlations(own, cells))} (--icc sets another).{unlike}"
    )


def _correlations(
    own: Sequence[CellForecast], cells: Sequence[CellForecast]
) -> Iterator[str]:
    """Yield the correlations of some of the cells, and where they come from."""
    for basis in dict.fromkeys(cell.icc_basis for cell in own):
        names: dict[str, dict[str, None]] = {}
        for cell in own:
            if cell.icc_basis == basis:
                names.setdefault(_icc(cell), {})[name_in(cell, cells)] = None
        single = len(names) == 1 and len({cell.icc_basis for cell in own}) == 1
        yield (
            ", ".join(
                icc if single else f"{icc} ({', '.join(of)})"
                for icc, of in names.items()
            )
            + _FROM[basis]
        )


def share(chance: float) -> str:
    return percent(round(chance, 2))


def count(value: float | None) -> str:
    """Return a number as text, whole below ten thousand, and above that with a unit and
    at most three digits: ``9,500``, ``12.3 k``, ``4.5 M``. None becomes ``UNKNOWN``.
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


def _line(text: object) -> str:
    return printable(" ".join(str(text).split()))
