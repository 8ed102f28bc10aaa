"""Every shipped protocol passes its audit: a short one here; the full numbers come from ``cheesebench audit``."""

from __future__ import annotations

import pytest

from cheesebench.audit import audit_specification
from cheesebench.interfaces import AuditSettings
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from cheesebench.testing import assert_sound

#: Trials of a chance level, and of the full audit.
FEW, FULL = 60, 2000

_catalogue = Catalogue(installed_plugins().protocol_directories)
every_protocol = pytest.mark.parametrize("name", list(_catalogue.files))


@every_protocol
def test_it_passes_a_short_audit(name: str) -> None:
    report = assert_sound(_catalogue.files[name], trials=FEW)
    assert {finding.rule for finding in report.findings} >= {"blind ceiling", "solvable", "reward and success"}


@pytest.mark.slow
@every_protocol
def test_it_passes_the_full_audit(name: str) -> None:
    assert_sound(_catalogue.files[name], trials=FULL, seed=1)


def test_processes_change_nothing() -> None:
    specification = _catalogue.load(next(iter(_catalogue.files.values())))
    alone, together = (
        audit_specification(specification, AuditSettings(trials=40, parts=("limit",), processes=processes))
        for processes in (1, 2)
    )
    assert alone.findings == together.findings
