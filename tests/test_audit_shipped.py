"""Every shipped protocol passes a short audit; ``cheesebench audit`` gives the full
numbers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.auditing import audit_specification
from cheesebench.interfaces import AUDIT_PARTS, AuditSettings
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.testing import assert_sound, audit_protocol

#: Trials of a chance level in this test, and in the full audit.
FEW, FULL = 60, 2000
#: Planning with little effort finds less, so a pass with it is a pass with more.
EFFORT = 0.05
#: The quick parts: the blind family and the planner take seconds or minutes for each
#: protocol.
BRIEF = tuple(
    part for part in AUDIT_PARTS if part not in {"blind", "lesions", "memory", "animal"}
)

#: Old versions of the nine, whose references were not comparable: they must fail.
OLD = Path(__file__).parent / "fixtures" / "old_nine"
#: The part `animal` is tested below, for the protocols with a reference of their own.
ALL_BUT_ANIMAL = tuple(part for part in AUDIT_PARTS if part not in {"animal", "memory"})

_catalogue = Catalogue(installed_plugins().protocol_directories)
every_protocol = pytest.mark.parametrize("name", list(_catalogue.files))


# An edition changes little but the schedule of its parent, so it is audited in the full
# audit only.
@pytest.mark.parametrize("name", [name for name in _catalogue.files if "." not in name])
def test_it_passes_a_short_audit(name: str) -> None:
    report = assert_sound(
        _catalogue.files[name], trials=FEW, parts=BRIEF, effort=EFFORT
    )
    assert {finding.rule for finding in report.findings} >= {
        "solvable",
        "decidable",
        "reward and success",
    }


@pytest.mark.slow
@every_protocol
def test_it_passes_the_full_audit(name: str) -> None:
    assert_sound(_catalogue.files[name], trials=FULL, seed=1, parts=ALL_BUT_ANIMAL)


def _is_old(path: Path) -> bool:
    old = OLD / path.name
    return old.exists() and old.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "path",
    [p for p in _catalogue.files.values() if not _is_old(p)],
    ids=lambda path: path.name,
)
def test_the_animal_that_it_declares_passes(path: Path) -> None:
    assert_sound(path, trials=FEW, parts=("animal",))


@pytest.mark.parametrize(
    "name", ["morris_water_maze", "barnes_maze", "operant_chamber", "t_maze"]
)
def test_animals_that_follow_an_asymptote_s_curve_do_not_pass_it(name: str) -> None:
    report = audit_protocol(
        OLD / f"{name}.protocol.yaml", trials=FEW, parts=("animal",)
    )
    (finding,) = report.findings
    assert finding.verdict == "FAIL"
    assert finding.numbers["passes"] < 0.05  # type: ignore[operator]


def test_processes_change_nothing() -> None:
    specification = with_arena(_catalogue.load(next(iter(_catalogue.files.values()))))
    alone, together = (
        audit_specification(
            specification,
            AuditSettings(trials=40, parts=("limit",), processes=processes),
        )
        for processes in (1, 2)
    )
    assert alone.findings == together.findings
