"""The board: models on one frozen set, ranked. Each entry must keep the board's rules,
which are checked.

Each rule has a name, which a refusal states, and a section in docs/leaderboard.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pydantic import Field

from cheesebench import frozen
from cheesebench.amounts import points, rounded
from cheesebench.canary import CANARY
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.cells import find_design
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import FILE_NAME
from cheesebench.experiment.unfinished import is_finished
from cheesebench.protocol.documents import DocumentModel
from cheesebench.protocol.structure import read_document
from cheesebench.statistics import RunSummary, Verdict
from cheesebench.statistics.judgement import judge_set
from cheesebench.statistics.summary import CellResult
from cheesebench.statistics.wording import plural
from cheesebench.summaries import summarise_log, summarise_logs
from cheesebench.verification import verify

#: Name of the file with the declarations of an entry. It is beside the run's log.
ENTRY = "entry.yaml"
#: The only design allowed on a board. It gives every model the same number of subjects.
DESIGN = "leaderboard"
SUBJECTS = find_design(DESIGN).subjects


class FailedRun(DocumentModel):
    """Another run of the model on the set."""

    run: str
    why: str = Field(min_length=1)


class Entry(DocumentModel):
    """The declarations of an entry; every key is required."""

    trained_on: list[str] = Field(
        description="Protocols, pages, twins or logs of CheeseBench that the model was trained on, or tuned with."
    )
    prompts: str = Field(min_length=1, description="Who wrote the prompts.")
    dollars: float = Field(ge=0, description="What the run cost.")
    failed_runs: list[FailedRun] = Field(
        description="Every other run of the model on the set, and why it does not count."
    )
    contact: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A broken rule, and how it is broken."""

    rule: str
    run: str
    how: str

    def __str__(self) -> str:
        return f"{self.run}: rule '{self.rule}': {self.how}."


class BoardRefusedError(CheeseBenchError):
    """A run breaks a rule of the board."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        lines = [str(one) for one in refusals]
        remedy = "Leave the run out, or correct its entry; docs/leaderboard.md has the rules by name."
        super().__init__("\n".join(["No board is made.", *lines, remedy]))


def board(logs: Sequence[RunLog]) -> str:
    """Return the board of one or several runs in Markdown.

    A run that has only twins belongs to its model's entry. Raise BoardRefusedError if
    a run breaks a rule.
    """
    entries: dict[Path, Entry] = {}
    held_out = [log for log in logs if _only_twins(log)]
    public = [log for log in logs if log not in held_out]
    # Replaying trials takes minutes, so it comes last.
    refusals = (
        list(_by_reading(public, held_out, entries))
        or list(_together(public))
        or list(_by_living(logs))
    )
    if refusals:
        raise BoardRefusedError(refusals)
    summary = summarise_logs(logs) if len(logs) > 1 else summarise_log(logs[0])
    owners = {model: log for log in public for model in sorted(_models(log))}
    return _page(summary, owners, entries)


def _by_reading(
    public: Sequence[RunLog], held_out: Sequence[RunLog], entries: dict[Path, Entry]
) -> Iterator[Refusal]:
    for log in public:
        yield from _refusals(log, public, entries)
    for log in held_out:
        yield from _refused_twins(log, public)


def _by_living(logs: Iterable[RunLog]) -> Iterator[Refusal]:
    for log in logs:
        yield from _broken(log, "replay", _not_as_lived(log))


def _only_twins(log: RunLog) -> bool:
    plans = log.plans()
    return bool(plans) and all(plan.twin_of for plan in plans)


def _name(log: RunLog) -> str:
    return str(log.manifest["run_id"])


def _refusals(
    log: RunLog, logs: Sequence[RunLog], entries: dict[Path, Entry]
) -> Iterator[Refusal]:
    """Yield the rules that one run breaks, as far as its rows show."""
    yield from _broken(log, "set", _other_than_set(log))
    yield from _lived_otherwise(log)
    yield from _broken(log, "told", _untold(log, entries))
    yield from _broken(log, "failed runs", _hidden_runs(log, logs, entries))


def _lived_otherwise(log: RunLog) -> Iterator[Refusal]:
    yield from _broken(log, "design", _other_design(log))
    yield from _broken(log, "seed", _typed_seed(log))
    yield from _broken(log, "whole", _unfinished(log))


def _broken(log: RunLog, rule: str, found: Iterable[str]) -> Iterator[Refusal]:
    return (Refusal(rule, _name(log), how) for how in found)


def _refused_twins(log: RunLog, public: Sequence[RunLog]) -> Iterator[Refusal]:
    """Yield the rules that a run of only twins breaks. The board's operator adds such a
    run to an entry.
    """
    entry = next((one for one in public if _models(one) >= _models(log)), None)
    found = _standing(entry) if entry else None
    if found is None:
        how = "it has only twins, and no other run on the board has its models"
        yield Refusal("set", _name(log), how)
    else:
        different = found.frozen.twin_differences(log.plans())
        yield from _broken(log, "set", different)
    yield from _lived_otherwise(log)


def _standing(log: RunLog) -> frozen.Standing | None:
    return frozen.standing(log.plans(), log.manifest["protocols"])


def _models(log: RunLog) -> set[str]:
    return {plan.model for plan in log.plans()}


def _other_than_set(log: RunLog) -> Iterator[str]:
    found = _standing(log)
    if found is None:
        yield "it has no protocol of a frozen set"
        return
    yield from found.differences
    if found.missing:
        yield f"{found.frozen.name} also has {', '.join(found.missing)}"
    for plan in log.plans():
        known = {plan.protocol, plan.twin_of} & set(found.frozen.protocols)
        if plan.control:
            yield f"{plan.label} was also run with {plan.variant}"
        elif not known:
            yield f"{plan.label} is neither a protocol of {found.frozen.name} nor a twin of one"


def _other_design(log: RunLog) -> Iterator[str]:
    plans = log.plans()
    for design in sorted({plan.design for plan in plans} - {DESIGN}):
        yield f"the design is {design}, not {DESIGN}"
    for number in sorted({plan.subjects for plan in plans} - {SUBJECTS}):
        yield f"it has {plural(number, 'subject')} per protocol, not {SUBJECTS}"


def _typed_seed(log: RunLog) -> Iterator[str]:
    if not log.manifest["options"].get("seed_drawn"):
        yield "the seed was typed, so its worlds could be known in advance"


def _unfinished(log: RunLog) -> Iterator[str]:
    for plan in log.plans():
        if not is_finished(log, plan, judge_set):
            yield f"{plan.label} is not finished"


def _untold(log: RunLog, entries: dict[Path, Entry]) -> Iterator[str]:
    path = log.directory / ENTRY
    if not path.is_file():
        keys = ", ".join(Entry.model_fields)
        yield f"there is no {ENTRY} with {keys} beside its log"
        return
    try:
        entries[log.path] = read_document(path, Entry, "entry", "trained_on:")
    except CheeseBenchError as error:
        yield " ".join(str(error).split())


def _hidden_runs(
    log: RunLog, logs: Sequence[RunLog], entries: Mapping[Path, Entry]
) -> Iterator[str]:
    """Yield a sentence for each run in the same folder that is neither on the board nor
    declared, if it has the same model on the same set or cannot be read.
    """
    entry = entries.get(log.path)
    told = {one.run for one in entry.failed_runs} if entry else set()
    shown = {other.path.resolve() for other in logs}
    models = _models(log)
    own = _standing(log)
    for path in sorted(log.directory.parent.glob(f"*/{FILE_NAME}")):
        name = path.parent.name
        if path.resolve() in shown or name in told:
            continue
        try:
            ran = own and _ran(path, models, own.frozen.name)
        except CheeseBenchError:
            # An unreadable run may be one of the same model.
            yield f"{name}, in the same directory, cannot be read, and the entry does not name it in failed_runs"
        else:
            if ran:
                yield f"{name} is another run of the model on the set, and the entry does not name it in failed_runs"


def _ran(path: Path, models: set[str], name: str) -> bool:
    """Return whether a log has one of the models on the set ``name``. Raise
    RunLogError if it cannot be read.
    """
    with RunLog.open_read_only(path) as log:
        found, own = _standing(log), _models(log)
    return found is not None and str(found) == name and bool(models & own)


def _not_as_lived(log: RunLog) -> Iterator[str]:
    try:
        verify(log)
    except CheeseBenchError as error:
        yield " ".join(str(error).split()).rstrip(".")


def _together(logs: Sequence[RunLog]) -> Iterator[Refusal]:
    """Yield the rules that the runs break only together."""
    seen: dict[str, str] = {}
    sets = [str(_standing(log)) for log in logs]
    first = sets[0]
    for log, own in zip(logs, sets, strict=True):
        if own != first:
            yield Refusal(
                "set", _name(log), f"it ran {own}, but {_name(logs[0])} ran {first}"
            )
        for model in sorted(_models(log)):
            weights = _weights(log, model)
            also = seen.get(model) or seen.get(weights)
            if also is not None:
                how = f"{model} is also in {also}; a model enters the board once"
                yield Refusal("once", _name(log), how)
            seen[weights] = f"{_name(log)}, under the name {model}"
            seen[model] = _name(log)


def _weights(log: RunLog, model: str) -> str:
    """Return the digest of the model's weights or, if it is not known, the model's
    name.
    """
    return str(log.manifest.get("servers", {}).get(model, {}).get("sha256") or model)


#: Headings of the table.
HEADERS = (
    "rank",
    "model",
    "mean score",
    "PASS",
    "FAIL",
    "public - twins",
    "trained on",
    "prompts",
    "$",
    "failed runs",
    "run",
)
HOW = (
    "Ranks are what the differences between models allow at 95 %; models that share a rank are not told apart. "
    "*Public - twins*: mean of the scores in the public protocols minus those in their held-out twins, where both were "
    "run"
)


def _page(
    summary: RunSummary, owners: Mapping[str, RunLog], entries: Mapping[Path, Entry]
) -> str:
    ranks = {
        one.model: _rank(one.best_rank, one.worst_rank)
        for found in summary.leaderboards
        for one in found.models
    }
    by_model: dict[str, list[CellResult]] = {model: [] for model in owners}
    for cell in summary.cells:
        by_model[cell.plan.model].append(cell)
    rows = [
        _row(model, ranks.get(model, "1"), by_model[model], log, entries[log.path])
        for model, log in owners.items()
    ]
    rows.sort(key=lambda row: (-row[0], row[1][1]))
    lines = [HEADERS, ["---"] * len(HEADERS), *(row for _, row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    held_out = sorted({one.plan.protocol for one in summary.cells if one.plan.twin_of})
    twins = f" ({', '.join(held_out)})" * bool(held_out)
    return f"# {_title(summary)}\n\n{table}\n\n{HOW}{twins}.\n\n<!-- {CANARY} -->\n"


def _title(summary: RunSummary) -> str:
    plans = [cell.plan for cell in summary.cells if not cell.plan.twin_of]
    protocols = plural(len({plan.protocol for plan in plans}), "protocol")
    views = ", ".join(sorted({plan.view for plan in plans}))
    return f"Board of {summary.frozen_set}: {protocols}, {views}"


def _rank(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best}-{worst}"


def _row(
    model: str, rank: str, cells: Sequence[CellResult], log: RunLog, entry: Entry
) -> tuple[float, list[str]]:
    public = [cell for cell in cells if not cell.plan.twin_of]
    score = fmean(cell.rate or 0.0 for cell in public)
    verdicts = [cell.verdict for cell in public]
    return score, [
        rank,
        _plain(model),
        rounded(100 * score, 1),
        str(verdicts.count(Verdict.PASS)),
        str(verdicts.count(Verdict.FAIL)),
        gap(cells),
        _plain(", ".join(entry.trained_on)) or "nothing",
        _plain(entry.prompts),
        f"{entry.dollars:g}",
        _plain("; ".join(f"{one.run}: {one.why}" for one in entry.failed_runs))
        or "none",
        _name(log),
    ]


def gap(cells: Iterable[CellResult]) -> str:
    """Return by how many points the rates on the public protocols exceed the rates on
    their twins on average, or a dash if no protocol has both rates.
    """
    cells = list(cells)
    rates = {cell.plan.protocol: cell.rate for cell in cells if cell.rate is not None}
    differences = [
        rates[cell.plan.twin_of] - cell.rate
        for cell in cells
        if cell.rate is not None and cell.plan.twin_of in rates
    ]
    return points(fmean(differences)) if differences else "–"


def _plain(text: str) -> str:
    """Return a stranger's words, made safe for a Markdown table."""
    kept = "".join(one if one.isprintable() else " " for one in text)
    return " ".join(kept.replace("|", "/").replace("<", "(").replace(">", ")").split())
