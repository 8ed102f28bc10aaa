"""What an audit comes to, for the command, for tests, and for whoever asks. The rules are the family's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.errors import OptionError
from cheesebench.interfaces import Auditable, AuditFinding, AuditSettings
from cheesebench.plugin_manager import PluginManager, installed_plugins

if TYPE_CHECKING:
    from cheesebench.protocol import Specification

#: Verdict of a finding that a rule forbids.
FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All findings on one protocol, and what they were made with."""

    protocol: str
    path: Path
    sha256: str
    trials: int
    seed: int
    findings: tuple[AuditFinding, ...]

    @property
    def failures(self) -> tuple[AuditFinding, ...]:
        """The findings that a rule forbids."""
        return tuple(one for one in self.findings if one.verdict == FAIL)

    @property
    def passed(self) -> bool:
        """Whether no rule fails."""
        return not self.failures


def audit_specification(
    specification: Specification,
    settings: AuditSettings,
    view_names: Sequence[str] | None = None,
    plugins: PluginManager | None = None,
) -> AuditReport:
    """Audit a protocol in all views (or those that are named).

    Raises OptionError when the protocol's family has no audit, UnknownNameError for an unknown view.
    """
    plugins = plugins or installed_plugins()
    views = [plugins.view(name) for name in dict.fromkeys(view_names)] if view_names else list(plugins.views.values())
    paradigm = plugins.compile(specification)
    if not isinstance(paradigm, Auditable):
        raise OptionError(f"Protocols of the family '{specification.family}' have no audit. Ask who wrote the family.")
    return AuditReport(
        protocol=specification.name,
        path=Path(specification.path),
        sha256=specification.sha256,
        trials=settings.trials,
        seed=settings.seed,
        findings=tuple(paradigm.audit(views, settings)),
    )


def findings_table(report: AuditReport) -> str:
    """Return the findings as a plain table of rule, verdict and what was found, wrapped to be read."""
    from tabulate import tabulate

    from cheesebench.film import printable

    rows = [[printable(one.rule), one.verdict, printable(" ".join(one.text.split()))] for one in report.findings]
    text: str = tabulate(
        rows,
        headers=["rule", "verdict", "found"],
        tablefmt="simple",
        disable_numparse=True,
        maxcolwidths=[30, None, 84],
    )
    return "\n".join(line.rstrip() for line in text.splitlines())
