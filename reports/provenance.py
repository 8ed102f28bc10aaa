"""The provenance of a report's numbers: the run's manifest and the sources of its references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cheesebench.reports.cells import mapping
from cheesebench.reports.escaping import escape
from cheesebench.statistics.wording import number, percent

if TYPE_CHECKING:
    from cheesebench.experiment.records import ReferenceValue
    from cheesebench.statistics import RunSummary

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

#: Characters of a hash that are shown; the run log has all of it.
SHORT = 12


def provenance(summary: RunSummary, table: Table) -> list[str]:
    """Return the section on the run: options, versions, protocols and sources of their references."""
    return ["## The run", table(("", ""), run_facts(summary)), *_protocols(summary, table)]


def run_facts(summary: RunSummary) -> list[tuple[str, str]]:
    """Return the facts that identify the run, as pairs; those missing from the manifest are left out."""
    manifest = summary.manifest
    facts = [("run", manifest.get("run_id")), ("created", manifest.get("created"))]
    options = mapping(manifest.get("options"))
    designs = list(dict.fromkeys(cell.plan.design for cell in summary.cells))
    facts.append(("seed", options.get("seed")))
    facts.append(("design", ", ".join(designs) or options.get("design")))
    # The option 'agent' is who asks the language models, if there are any; a baseline acts itself.
    acted = dict.fromkeys(cell.plan.agent or cell.plan.model for cell in summary.cells)
    if acted and "agent" in options:
        options = {**options, "agent": list(acted)}
    facts.extend((name, value) for name, value in options.items() if name not in ("seed", "design"))
    git = mapping(manifest.get("git"))
    if git:
        dirty = " with uncommitted changes" if git.get("dirty") else ""
        facts.append(("git revision", f"{str(git.get('revision'))[:SHORT]}{dirty}"))
    facts.extend(mapping(manifest.get("versions")).items())
    facts.append(("record format", manifest.get("format")))
    return [(name, _shown(value)) for name, value in facts if value not in (None, "", [], ())]


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _protocols(summary: RunSummary, table: Table) -> list[str]:
    plans = {cell.plan.protocol: cell.plan for cell in summary.cells}
    if not plans:
        return []
    rows = [(plan.protocol, plan.sha256[:SHORT], plan.estimand) for plan in plans.values()]
    blocks = ["### Protocols", table(("protocol", "sha256", "trials compared"), rows)]
    references = [
        f"- **{escape(plan.protocol)}**: {escape(origin(plan.reference))}"
        for plan in plans.values()
        if plan.reference is not None
    ]
    return [*blocks, "### Sources of the rodents' numbers", "\n".join(references)] if references else blocks


def origin(animals: ReferenceValue) -> str:
    """Return the animals' rate or measure and where it comes from, in one line."""
    kind = "an analogy" if animals.kind == "analogy" else ""
    shown, name = (percent, "") if animals.measured is None else (number, f"{animals.measured.name} ")
    spread = f"{animals.n_animals} animals, SD {shown(animals.sd)}" if animals.n_animals and animals.sd else ""
    said = (f"{name}{shown(animals.value)}", kind, spread, animals.species, animals.source, animals.status)
    return "; ".join(filter(None, said))
