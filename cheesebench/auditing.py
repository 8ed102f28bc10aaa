"""Runs the audit of a protocol and collects its findings. The protocol's family has the
rules.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

from cheesebench import tables
from cheesebench.amounts import number, percent
from cheesebench.experiment.cells import reference_value
from cheesebench.experiment.provenance import installation
from cheesebench.interfaces import AuditFinding, AuditSettings
from cheesebench.planning import simulation
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import arenas
from cheesebench.protocol.validation import life_hash
from cheesebench.terminal import printable

if TYPE_CHECKING:
    from cheesebench.interfaces import BaseSpecification
    from cheesebench.protocol import Specification

#: Verdict of a finding that breaks a rule.
FAIL = "FAIL"


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport(tables.Tabular):
    """All findings on one protocol, with the settings of the audit."""

    protocol: str
    path: Path
    sha256: str
    life_sha256: str
    trials: int
    seed: int
    findings: tuple[AuditFinding, ...]

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each finding."""
        return [
            {"rule": one.rule, "verdict": one.verdict, "result": one.text}
            for one in self.findings
        ]

    @property
    def failures(self) -> tuple[AuditFinding, ...]:
        return tuple(one for one in self.findings if one.verdict == FAIL)

    @property
    def passed(self) -> bool:
        return not self.failures


def audit_specification(
    specification: BaseSpecification,
    settings: AuditSettings,
    view_names: Sequence[str] | None = None,
    plugins: PluginManager | None = None,
    *,
    is_kept: bool = False,
) -> AuditReport:
    """Audit a protocol in all views of ``plugins`` (None: the installed ones), or in
    the named ones.

    With ``is_kept``, finished searches are saved in the user's cache, and reused. Raise
    UnsuitableError if the protocol's family has no audit, and UnknownNameError for an
    unknown view.
    """
    plugins = plugins or installed_plugins()
    views = (
        [plugins.view(name) for name in dict.fromkeys(view_names)]
        if view_names
        else list(plugins.views.values())
    )
    if is_kept:
        settings = replace(settings, kept=kept_in(specification))
    findings = []
    for finding in plugins.compile(specification).audit(views, settings):
        findings.append(finding)
        if settings.progress:
            settings.progress(f"{finding.rule}: {finding.verdict}")
    arena = next(iter(arenas([specification])), None)
    if arena is not None and (settings.parts is None or "animal" in settings.parts):
        if settings.progress:
            settings.progress("animal")
        findings += audit_animal(arena, settings)
    return AuditReport(
        protocol=specification.name,
        path=Path(specification.path),
        sha256=specification.sha256,
        life_sha256=specification.sha256 if arena is None else life_hash(arena),
        trials=settings.trials,
        seed=settings.seed,
        findings=tuple(findings),
    )


def kept_in(specification: BaseSpecification) -> str:
    """Return the directory that keeps the finished searches of a protocol's audits. It
    depends on the user, the installed code and the protocol, or (in an arena) the part
    of the protocol in its ``life_hash``.
    """
    place = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    arena = next(iter(arenas([specification])), None)
    life = specification.sha256 if arena is None else life_hash(arena)
    made_by = hashlib.blake2b(
        json.dumps(installation()).encode(), digest_size=8
    ).hexdigest()
    folder = Path(place).expanduser() / "cheesebench" / "audits"
    return str(folder / f"{life[:16]}-{made_by}")


def audit_animal(
    specification: Specification, settings: AuditSettings
) -> list[AuditFinding]:
    """Judge simulated animals, which match the reference exactly, by the rule for
    models. Return one finding, with the shares of PASS and FAIL if there is a
    reference.
    """
    reference, rule = reference_value(specification), "declared animal"
    if reference is None:
        return [
            AuditFinding(
                rule, "note", "the protocol has no reference for a verdict", {}
            )
        ]
    if reference.measured is None:
        margin, sessions = specification.document.margin, specification.judged_sessions
        animal = simulation.declared_animal(
            reference, sessions, margin, seed=settings.seed
        )
        attained = f"succeed in {percent(animal.mean)} of the trials that count (the reference says {percent(reference.value)})"
    else:
        assert specification.judged is not None
        margin, sessions = specification.judged.margin or 0.0, {}
        animal = simulation.declared_animal(
            reference, sessions, margin, seed=settings.seed
        )
        attained = f"have a mean {reference.measured.name} of {number(reference.value)}"
    fails = " and ".join(
        f"{percent(animal.fails[n])} of {simulation.RUNS} runs with {n} subjects"
        for n in simulation.COHORTS
    )
    text = (
        f"animals that follow the reference {attained}; they FAIL in {fails}, and PASS in {percent(animal.passes)} "
        f"with {simulation.MOST}"
    )
    if animal.is_at_fault:
        enough = simulation.margin_that_suffices(
            reference, sessions, margin, seed=settings.seed
        )
        text += _what_is_wrong(reference.measured is None, animal.mean, enough)
    numbers = {
        "mean": animal.mean,
        "reference": reference.value,
        "icc": animal.icc,
        "passes": animal.passes,
        "fails": {str(subjects): share for subjects, share in animal.fails.items()},
        "runs": simulation.RUNS,
    }
    return [AuditFinding(rule, "FAIL" if animal.is_at_fault else "ok", text, numbers)]


def _what_is_wrong(is_rate: bool, mean: float, enough: float | None) -> str:
    """Return why animals fail by their own reference, and what is ``enough``: a margin,
    or None if none is.
    """
    why, right = "the animals differ too much for the margin", ""
    if is_rate:
        why = f"the value is from other trials than the pass rate, or {why}"
        right = f"a value nearer to {percent(mean)}, or "
    if enough is None:
        return f": {why}. No margin up to eight times as wide is enough"
    cure = f"{right}a 'margin' of {number(enough)} or more is enough"
    return f": {why}. {cure[0].upper()}{cure[1:]}"


def findings_table(report: AuditReport) -> str:
    """Return the findings as a text table of rule, verdict and result, with wrapped
    lines.
    """
    rows = [
        [printable(one.rule), one.verdict, printable(" ".join(one.text.split()))]
        for one in report.findings
    ]
    text: str = tabulate(
        rows,
        headers=["rule", "verdict", "result"],
        tablefmt="simple",
        disable_numparse=True,
        maxcolwidths=[30, None, 84],
    )
    return "\n".join(line.rstrip() for line in text.splitlines())
