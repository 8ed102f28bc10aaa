"""Comparison of two whole runs, by protocol and over all of them.

Above 400 lines, because matching the cells, pairing their subjects and answering share the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from cheesebench.errors import ComparisonError
from cheesebench.statistics.counts import CellCounts, CountedRun
from cheesebench.statistics.holm import holm
from cheesebench.statistics.intervals import quantile
from cheesebench.statistics.merit import Scale
from cheesebench.statistics.paired import (
    ALPHA,
    Answer,
    Pair,
    compare_differences,
    distinct_pairs,
    nothing_compared,
    paired_differences,
)
from cheesebench.statistics.regression import LOSS, Change, RegressionLook, loss_of, regression_look
from cheesebench.statistics.summary import PairedComparison
from cheesebench.statistics.wording import number, percent, plural, points, signed

#: Protocol, view and variant: where two models can meet.
Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellComparison:
    """One protocol in one view: first - second. Rates are means over the paired subjects' own rates."""

    protocol: str
    title: str
    answer: Answer
    """``worse`` by the sequential rule, ``better`` after Holm's correction, both over all compared protocols."""
    reason: str
    first_rate: float | None
    second_rate: float | None
    paired: PairedComparison
    adjusted_p: float | None
    """Holm-adjusted ``paired.p_worst``."""
    subjects: tuple[int, int]
    """Planned in the first and in the second run."""
    missing: tuple[int, int]
    """Missing trials of the paired subjects."""
    settled: tuple[int, int] = (0, 0)
    """Their trials that were not run because they could not have changed the verdict."""
    measure: str = ""
    """The measure that is compared, whose unit all numbers are in; empty for the pass rate."""
    loss: float = LOSS
    """The loss that is excluded if the sequential rule clears the first run; in the measure's unit if there is one."""
    doubts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """What makes the numbers of the first and of the second run doubtful."""
    identical: bool
    """Whether the trials of every paired subject are exactly the same in both runs."""
    change: RegressionLook | None = None
    """The sequential rule's result for the first run, with the second as its baseline; None without a pair."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the numbers has to know."""
        lost = [
            f"{count} {what} in the {side}"
            for what, counts in (("missing", self.missing), ("settled", self.settled))
            for count, side in zip(counts, ("first", "second"), strict=True)
            if count
        ]
        if self.identical:
            return (*lost, "identical")
        cleared = self.change is not None and self.change.change is Change.NOT_WORSE
        loss = number(self.loss) if self.measure else f"{100 * self.loss:.0f}"
        return (*lost, *([f"no loss of {loss}"] if cleared else []))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """A model of the first run against one of the second, in one view (and variant), over all shared protocols."""

    first_model: str
    second_model: str
    view: str
    variant: str
    overall: PairedComparison
    """Over all protocols, equally weighted; a separate test."""
    cells: tuple[CellComparison, ...]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The overall answer and those of the cells."""
        return (self.overall.answer, *(cell.answer for cell in self.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """The comparison of everything that two runs have in common; every answer describes the first run."""

    first: str
    second: str
    models: tuple[ModelComparison, ...]
    left_out: tuple[str, ...]
    """Descriptions of what only one of the runs has."""
    changed: tuple[tuple[str, str, str], ...]
    """Other differences between the runs: name, value in the first, value in the second."""
    unseen: tuple[str, ...] = ()
    """What only the first run has (protocol and view, or a model): nothing is known of a loss there."""

    @property
    def worse(self) -> bool:
        """Whether any model is worse, over all protocols or on one of them."""
        return any("worse" in model.answers for model in self.models)

    @property
    def warnings(self) -> list[str]:
        """What a green answer does not cover, in sentences."""
        second, found = self.second, list(self._doubts())
        if self.unseen:
            what = ", ".join(self.unseen)
            found.append(f"{second} does not have {what}: a loss there would not be seen. Bless a run that has it.")
        undecided = [cell for model in self.models for cell in model.cells if cell.answer == "indistinguishable"]
        low = [
            f"{cell.protocol} ({percent(cell.second_rate)})"
            for cell in undecided
            if not cell.measure and not cell.identical and cell.second_rate is not None and cell.second_rate < cell.loss
        ]
        if low:
            rarely = f"{second} rarely succeeds on {', '.join(dict.fromkeys(low))}"
            found.append(f"{rarely}: it has little to lose there, and a model that does nothing may not show as worse.")
        return found

    def _doubts(self) -> Iterator[str]:
        for model in self.models:
            for cell in model.cells:
                for name, who, doubts in zip(
                    (self.first, self.second), (model.first_model, model.second_model), cell.doubts, strict=True
                ):
                    if doubts:
                        yield f"{cell.protocol} of {who} in {name} is doubtful: {'; '.join(doubts)}."

    @property
    def losses(self) -> Iterator[tuple[str, str, str]]:
        """What is worse: title, protocol (empty for all together), reason."""
        several = len({(model.view, model.variant) for model in self.models}) > 1
        for model in self.models:
            where = f" ({', '.join(filter(None, (model.view, model.variant)))})" if several else ""
            who = f"worse than {self.second}: {model.first_model}{where} on"
            yield from ((f"{who} {c.protocol}", c.protocol, c.reason) for c in model.cells if c.answer == "worse")
            if model.overall.answer == "worse":
                yield f"{who} all protocols together", "", model.overall.reason


@runtime_checkable
class ComparisonReporter(Protocol):
    """Optional interface of a reporter that can render comparisons, for ``cheesebench compare``."""

    def render_comparison(self, comparison: RunComparison) -> str:
        """Return the comparison's text."""
        ...


def compare_runs(
    first: CountedRun,
    second: CountedRun,
    *,
    models: tuple[str | None, str | None] = (None, None),
    protocols: Sequence[str] = (),
) -> RunComparison:
    """Compare two runs of the same protocols with the same seed, subject by subject.

    Models of the same name are compared; if each run has one model, those two. ``models`` selects a model by name in
    either run, ``protocols`` restricts what is compared. Sampled sign flips (beyond 13 pairs) use the run's seed.

    Raises:
        ComparisonError: If subjects cannot be paired (seeds, protocols or numbers of trials differ), or the runs have
            nothing in common.
    """
    pairs, only = match_runs(first, second, models=models, protocols=protocols)
    groups: dict[tuple[str, str, str, str], list[tuple[CellCounts, CellCounts]]] = {}
    for a, b in pairs:
        groups.setdefault((a.model, b.model, a.view, a.variant), []).append((a, b))
    seed = first.seed if isinstance(first.seed, int) else 0
    return RunComparison(
        first=first.name,
        second=second.name,
        models=tuple(_compare_models(group, seed) for group in groups.values()),
        left_out=tuple(f"{what}: only in {(first, second)[side].name}" for what, side in only),
        unseen=tuple(what for what, side in only if side == 0),
        changed=_changes(first, second, pairs),
    )


def match_runs(
    first: CountedRun,
    second: CountedRun,
    *,
    models: tuple[str | None, str | None] = (None, None),
    protocols: Sequence[str] = (),
) -> tuple[list[tuple[CellCounts, CellCounts]], list[tuple[str, int]]]:
    """Return the cells of two runs that meet, and what only one has, with its number; raises like ``compare_runs``.

    Nothing is asked of the subjects: it can be called with a run that is still to come.
    """
    cells = [_choose(run, model, protocols) for run, model in zip((first, second), models, strict=True)]
    matched = _match_models(first, second, cells[0], cells[1])
    pairs: list[tuple[CellCounts, CellCounts]] = []
    only: list[tuple[str, int]] = []
    for one, other in matched:
        mine, theirs = _places(cells[0], one), _places(cells[1], other)
        pairs += [(mine[place], theirs[place]) for place in mine if place in theirs]
        only += [(_where(place), 0) for place in mine if place not in theirs]
        only += [(_where(place), 1) for place in theirs if place not in mine]
    for side in range(2):
        seen = {pair[side] for pair in matched}
        absent = dict.fromkeys(cell.model for cell in cells[side] if cell.model not in seen)
        only += [(model, side) for model in absent]
    _check(first, second, pairs)
    return pairs, only


def _choose(run: CountedRun, model: str | None, protocols: Sequence[str]) -> list[CellCounts]:
    names = dict.fromkeys(cell.model for cell in run.cells)
    if model is not None and model not in names:
        raise ComparisonError(f"{run.name} has no model '{model}', only {', '.join(names)}.")
    for protocol in protocols:
        if all(cell.protocol != protocol for cell in run.cells):
            known = ", ".join(dict.fromkeys(cell.protocol for cell in run.cells))
            raise ComparisonError(f"{run.name} has no protocol '{protocol}', only {known}.")
    return [c for c in run.cells if model in (None, c.model) and (not protocols or c.protocol in protocols)]


def _match_models(
    first: CountedRun, second: CountedRun, mine: Iterable[CellCounts], theirs: Iterable[CellCounts]
) -> list[tuple[str, str]]:
    here, there = (list(dict.fromkeys(cell.model for cell in cells)) for cells in (mine, theirs))
    if len(here) == len(there) == 1:
        return [(here[0], there[0])]
    shared = [model for model in here if model in there]
    if shared:
        return [(model, model) for model in shared]
    for run, models in ((first, here), (second, there)):
        if not models:
            raise ComparisonError(f"{run.name} has no cells, so there is nothing to compare.")
    raise ComparisonError(
        f"{first.name} has {', '.join(here)} and {second.name} has {', '.join(there)}: no model is in both. Choose "
        "which to compare with --first-model and --second-model."
    )


def _places(cells: Iterable[CellCounts], model: str) -> dict[Place, CellCounts]:
    return {(cell.protocol, cell.view, cell.variant): cell for cell in cells if cell.model == model}


def _where(place: Place) -> str:
    protocol, *rest = place
    return f"{protocol} ({', '.join(filter(None, rest))})"


def _check(first: CountedRun, second: CountedRun, pairs: Sequence[tuple[CellCounts, CellCounts]]) -> None:
    """Raise ComparisonError, naming all that differs, unless the subjects of all pairs met the same trials."""
    if not pairs:
        raise ComparisonError(f"{first.name} and {second.name} have no protocol in the same view in common.")
    differences = []
    if first.seed != second.seed:
        differences.append(f"the seed of {first.name} is {first.seed}, that of {second.name} is {second.seed}")
    for a, b in pairs:
        if a.sha256 != b.sha256:
            differences.append(f"the protocol {a.protocol} differs ({a.sha256[:8]} and {b.sha256[:8]})")
        elif (a.trials, a.estimand) != (b.trials, b.estimand):
            differences.append(
                f"a subject of {a.protocol} has {plural(a.trials, 'trial')} in one (design {a.design}) and "
                f"{b.trials} in the other (design {b.design})"
            )
    if differences:
        raise ComparisonError(
            f"{first.name} and {second.name} cannot be compared, because their subjects are not pairs: "
            f"{'; '.join(dict.fromkeys(differences))}. Run one of them again with the protocols, seed and design of "
            "the other, or select shared protocols with --protocols."
        )


def _compare_models(group: Sequence[tuple[CellCounts, CellCounts]], seed: int) -> ModelComparison:
    possible = [paired_differences(a.subjects, b.subjects) for a, b in group]
    comparisons = [_compare(b, differences, seed) for (_, b), differences in zip(group, possible, strict=True)]
    adjusted = _holm([one.p_worst for one in comparisons])
    first, second = group[0]
    return ModelComparison(
        first_model=first.model,
        second_model=second.model,
        view=first.view,
        variant=first.variant,
        overall=_overall([one for (_, b), one in zip(group, possible, strict=True) if b.measured is None], seed),
        cells=tuple(
            _cell(a, b, one, p, len(group)) for (a, b), one, p in zip(group, comparisons, adjusted, strict=True)
        ),
    )


def _cell(
    a: CellCounts, b: CellCounts, paired: PairedComparison, adjusted: float | None, protocols: int
) -> CellComparison:
    pairs = distinct_pairs(a.subjects, b.subjects)
    measured = [pair for pair in pairs if pair[0].scored and pair[1].scored]
    change = _change(b, pairs, protocols)
    answer, reason = paired.answer, paired.reason
    if change is not None and change.change is Change.WORSE:
        size = f"{_shown(b)(change.difference)} over {plural(change.pairs, 'paired subject')}"
        answer, reason = "worse", f"The first run is worse: {size}, more than chance explains."
    elif answer == "worse" or (answer == "better" and (adjusted is None or adjusted >= ALPHA)):
        reason = f"Alone it would be {answer}, but not after correcting for several protocols."
        if answer == "worse" and protocols == 1:
            reason = f"{paired.reason.partition(',')[0]}, which is not enough at the looks at {_looks(change)}."
        answer = "indistinguishable"
    return CellComparison(
        protocol=a.protocol,
        title=a.title,
        answer=answer,
        reason=reason,
        first_rate=_mean_rate(measured, 0, b.scale),
        second_rate=_mean_rate(measured, 1, b.scale),
        paired=_in_unit(paired, b.scale),
        measure="" if b.measured is None else b.measured.name,
        loss=_loss(b) * abs(b.scale.unit),
        adjusted_p=adjusted,
        subjects=(len(a.subjects), len(b.subjects)),
        missing=(sum(x.missing - x.settled for x, _ in pairs), sum(y.missing - y.settled for _, y in pairs)),
        settled=(sum(x.settled for x, _ in pairs), sum(y.settled for _, y in pairs)),
        doubts=(a.doubts, b.doubts),
        identical=bool(pairs) and all(x.digest and x == y for x, y in pairs),
        change=change and replace(change, difference=b.scale.difference(change.difference)),
    )


def _compare(b: CellCounts, differences: Sequence[Sequence[float]], seed: int) -> PairedComparison:
    """Compare one protocol; missing trials of a measure without bounds could have been anything."""
    if not b.scale.bounded and len(differences) > 1:
        found = compare_differences(differences[:1], seed=seed, shown=_shown(b))
        reason = f"{found.reason.partition(',')[0]}, but the answer depends on missing trials."
        return replace(found, answer="indistinguishable", reason=reason, p_worst=1.0)
    return compare_differences(differences, seed=seed, shown=_shown(b))


def _shown(b: CellCounts) -> Callable[[float], str]:
    """Return what writes a difference of merits in the unit of what is compared."""
    if b.measured is None:
        return lambda merit: f"{points(merit)} points"
    name, scale = b.measured.name, b.measured.scale
    return lambda merit: f"{signed(scale.difference(merit))} of {name}"


def _in_unit(paired: PairedComparison, scale: Scale) -> PairedComparison:
    if paired.difference is None:
        return paired
    interval = paired.interval and scale.differences(paired.interval)
    return replace(paired, difference=scale.difference(paired.difference), interval=interval)


def _loss(b: CellCounts) -> float:
    return loss_of(0.0 if b.measured is None else b.measured.margin, b.scale)


def _change(b: CellCounts, pairs: Sequence[Pair], protocols: int) -> RegressionLook | None:
    """Return the sequential rule's result; missing trials are counted against either conclusion."""
    most = len(b.subjects)
    possible = [(x, y) for x, y in pairs if x.scored + x.missing and y.scored + y.missing]
    if not any(x.scored and y.scored for x, y in possible):
        return None
    if not b.scale.bounded and any(x.missing or y.missing for x, y in possible):
        return None
    lowest, highest = ([x.rate(mine) - y.rate(not mine) for x, y in possible] for mine in (False, True))
    return regression_look(
        lowest, highest, max(most, len(possible)), loss=_loss(b), tests=protocols, means=b.scale.means
    )


def _looks(change: RegressionLook | None) -> str:
    return "so few pairs" if change is None else f"up to {plural(change.most, 'pair')}"


def _mean_rate(pairs: Sequence[Pair], side: int, scale: Scale) -> float | None:
    return scale.value(sum(pair[side].rate(None) for pair in pairs) / len(pairs)) if pairs else None


def _holm(p_values: Sequence[float | None]) -> list[float | None]:
    adjusted = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else next(adjusted) for p in p_values]


def _overall(possible: Sequence[Sequence[Sequence[float]]], seed: int) -> PairedComparison:
    """Compare over all protocols: the mean of their mean differences, with the signs of all pairs flipped together.

    The protocols are fixed, so the squared standard errors add; the degrees of freedom are Satterthwaite's (1946).
    Protocols that are compared by a measure are left out: their units differ.
    """
    if not possible:
        return nothing_compared("Each protocol is compared by a measure of its own, so there is no mean over them.")
    cells = [cell for cell in possible if cell[0]]
    scenarios = range(max((len(cell) for cell in cells), default=1))
    weighted = [_weighted([cell[number] if number < len(cell) else cell[0] for cell in cells]) for number in scenarios]
    found = compare_differences(weighted, seed=seed)
    return _with_interval(found, [cell[0] for cell in cells])


def _weighted(cells: Sequence[Sequence[float]]) -> list[float]:
    """Return all differences, scaled so that their mean is the mean of the protocols' means."""
    total = sum(len(values) for values in cells)
    return [value * total / (len(cells) * len(values)) for values in cells for value in values]


def _with_interval(found: PairedComparison, cells: Sequence[Sequence[float]]) -> PairedComparison:
    if found.difference is None or any(len(values) < 2 for values in cells):
        return replace(found, interval=None)
    variances, shares = [], []
    for values in cells:
        mean, n = sum(values) / len(values), len(values)
        squared = sum((value - mean) ** 2 for value in values) / (n - 1) / n / len(cells) ** 2
        variances.append(squared)
        shares.append(squared**2 / (n - 1))
    if not sum(variances):
        return replace(found, interval=(found.difference, found.difference))
    degrees = max(1, int(sum(variances) ** 2 / sum(shares)))
    half = quantile(ALPHA / 2, degrees) * sum(variances) ** 0.5
    return replace(found, interval=(found.difference - half, found.difference + half))


def _changes(
    first: CountedRun, second: CountedRun, pairs: Sequence[tuple[CellCounts, CellCounts]]
) -> tuple[tuple[str, str, str], ...]:
    """Return what could explain a difference, according to the manifests."""
    before, after = _facts(first, [a for a, _ in pairs]), _facts(second, [b for _, b in pairs])
    if "plugins" in first.manifest and "plugins" in second.manifest:  # not in older baselines
        before, after = _plugins(first) | before, _plugins(second) | after
    names = dict.fromkeys((*before, *after))
    return tuple((n, before.get(n, "-"), after.get(n, "-")) for n in names if before.get(n) != after.get(n))


def _facts(run: CountedRun, cells: Iterable[CellCounts]) -> dict[str, str]:
    manifest = run.manifest
    facts = {f"{name} version": str(value) for name, value in _mapping(manifest.get("versions")).items()}
    git = _mapping(manifest.get("git"))
    if git:
        facts["git revision"] = f"{str(git.get('revision'))[:12]}{' with changes' if git.get('dirty') else ''}"
    for cell in cells:
        facts["model"] = cell.model
        facts["agent"] = cell.agent
        facts |= {f"setting {name}": str(value) for name, value in cell.settings.items()}
    return facts


def _plugins(run: CountedRun) -> dict[str, str]:
    return {f"plugin {name}": str(origin) for name, origin in _mapping(run.manifest["plugins"]).items()}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
