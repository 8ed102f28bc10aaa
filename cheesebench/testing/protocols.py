"""Audit a protocol in your own test suite.

For example::

    import pytest
    from cheesebench.testing import assert_sound

    @pytest.mark.parametrize("path", ["protocols/my_maze.protocol.yaml"])
    def test_measures_what_it_names(path):
        assert_sound(path)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.auditing import audit_specification
from cheesebench.interfaces import AUDIT_PARTS, AuditSettings
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cheesebench.auditing import AuditReport
    from cheesebench.interfaces import AuditPart

#: Number of trials of a quick audit, which finds serious faults in seconds. The default
#: of ``cheesebench audit`` is 2000.
QUICK = 200


def audit_protocol(
    path: str | Path,
    *,
    trials: int = QUICK,
    seed: int = 0,
    parts: Sequence[AuditPart] | None = None,
    effort: float = 1.0,
) -> AuditReport:
    """Return the audit of a protocol file in all installed views.

    ``trials`` is the number of trials for each chance level: more trials find more
    faults. ``parts`` names the wanted parts of the audit, as in ``parts=["lesions"]``.
    None means all parts except ``lesions`` and ``memory``, which take minutes.
    ``effort`` scales the planning time for lesions. Equal seeds give equal findings.
    Raise ProtocolError if the file has errors.
    """
    specification = with_arena(
        Catalogue(installed_plugins().protocol_directories).load(Path(path))
    )
    wanted = tuple(
        part
        for part in AUDIT_PARTS
        if (part in parts if parts is not None else part not in ("lesions", "memory"))
    )
    settings = AuditSettings(trials=trials, seed=seed, parts=wanted, effort=effort)
    return audit_specification(specification, settings)


def assert_sound(
    path: str | Path,
    *,
    trials: int = QUICK,
    seed: int = 0,
    parts: Sequence[AuditPart] | None = None,
    effort: float = 1.0,
) -> AuditReport:
    """Audit a protocol file (``audit_protocol``), and return the report. Raise
    AssertionError, with the rules that fail, if there are any.
    """
    report = audit_protocol(path, trials=trials, seed=seed, parts=parts, effort=effort)
    failures = "\n".join(f"{one.rule}: {one.text}" for one in report.failures)
    assert report.passed, (
        f"{report.path} fails {len(report.failures)} of the audit's rules\n{failures}"
    )
    return report
