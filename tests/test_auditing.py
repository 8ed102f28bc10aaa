"""Reports of audits, and the audit of the animals that a protocol declares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cheesebench.auditing import (
    AuditReport,
    audit_animal,
    audit_specification,
    findings_table,
    kept_in,
)
from cheesebench.experiment.cells import reference_value
from cheesebench.interfaces import AuditFinding, AuditSettings
from cheesebench.planning import simulation
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.protocol.validation import life_hash
from tests.cli.conftest import MAZE

SETTINGS = AuditSettings(trials=20, seed=3)
DECLARED = "[{measure: success, value: 0.75, status: made up}]"
MEASURED = "[{measure: latency, value: 1.5, better: lower, margin: 0.5, range: [0, 4], sd: 0.25, n_animals: 9, status: x}]"


def protocol(reference: str) -> Specification:
    text = MAZE.replace(DECLARED, reference)
    found, findings = Catalogue().inspect_text(text, "little.protocol.yaml")
    assert found is not None, findings
    return with_arena(found)


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "RUNS", 200)


def test_animals_that_follow_the_reference_are_judged_like_models() -> None:
    specification = protocol(DECLARED)
    [found] = audit_animal(specification, SETTINGS)
    assert (found.rule, found.verdict) == ("declared animal", "ok")
    reference = reference_value(specification)
    assert reference is not None
    animal = simulation.declared_animal(reference, {1: 2, 2: 2}, 0.1, seed=3)
    assert found.numbers == {
        "mean": 0.75, "reference": 0.75, "icc": 0.3, "passes": animal.passes,
        "fails": {"10": animal.fails[10], "120": animal.fails[120]},
        "runs": 200,
    }  # fmt: skip
    assert found.text.startswith(
        "animals that follow the reference succeed in 75 % of the trials that count (the reference says 75 %); they FAIL in "
    )
    assert " of 200 runs with 10 subjects and " in found.text
    assert found.text.endswith(" with 120")


def test_animals_of_a_measure_are_judged_by_its_margin() -> None:
    specification = protocol(MEASURED)
    [found] = audit_animal(specification, SETTINGS)
    reference = reference_value(specification)
    assert reference is not None
    animal = simulation.declared_animal(reference, {}, 0.5, seed=3)
    assert found.numbers["passes"] == animal.passes
    assert found.numbers["mean"] == pytest.approx(1.5)
    assert "have a mean latency of 1.5; they FAIL in " in found.text
    assert found.verdict == "ok"


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        (
            "[{measure: success, value: 0.75, curve: [0.2, 0.2], status: x}]",
            ": the value is from other trials than the pass rate, or the animals differ too much for the margin. "
            "A value nearer to 20 %, or a 'margin' of 0.627 or more is enough",
        ),
        (
            MEASURED.replace("sd: 0.25", "sd: 1.9").replace("margin: 0.5", "margin: 0.1"),
            ": the animals differ too much for the margin. No margin up to eight times as wide is enough",
        ),
    ],
)  # fmt: skip
def test_animals_that_fail_are_a_fault_of_the_reference(
    reference: str, why: str
) -> None:
    [found] = audit_animal(protocol(reference), SETTINGS)
    assert found.verdict == "FAIL"
    assert found.text.endswith(f" with 120{why}")


def test_without_a_reference_there_is_a_note() -> None:
    [found] = audit_animal(protocol("[]"), SETTINGS)
    said = "the protocol has no reference for a verdict"
    assert found == AuditFinding("declared animal", "note", said, {})


def test_parts_and_views_are_chosen_and_progress_is_told() -> None:
    specification, told = protocol(DECLARED), list[str]()
    settings = replace(SETTINGS, parts=("cues", "animal"), progress=told.append)
    views = ["topdown_2d", "ascii_2d", "topdown_2d"]
    report = audit_specification(specification, settings, views)
    rules = ["cues, topdown_2d", "cues, ascii_2d", "declared animal"]
    assert [one.rule for one in report.findings] == rules
    assert [one for one in told if one.endswith(": ok")] == [
        f"{r}: ok" for r in rules[:2]
    ]
    assert told[-1] == "animal"
    assert (report.protocol, report.path) == ("little", Path("little.protocol.yaml"))
    assert (report.trials, report.seed, report.passed) == (20, 3, True)
    assert report.sha256 == specification.sha256
    assert report.life_sha256 == life_hash(specification)
    without = replace(settings, parts=("cues",))
    assert len(audit_specification(specification, without).findings) == 4


def test_a_report_has_a_row_for_each_finding_and_a_table() -> None:
    findings = (
        AuditFinding("a rule", "ok", "x " * 60, {}),
        AuditFinding("another\x1b", "FAIL", "bad\n  luck", {}),
    )
    report = AuditReport("p", Path("p"), "0", "1", 20, 0, findings)
    assert report.rows()[1] == {
        "rule": "another\x1b",
        "verdict": "FAIL",
        "result": "bad\n  luck",
    }
    assert (report.failures, report.passed) == (findings[1:], False)
    table = findings_table(report).splitlines()
    assert table[0].split() == ["rule", "verdict", "result"]
    assert len(table) == 5
    assert max(map(len, table)) <= 30 + 2 + 7 + 2 + 84
    assert table[-1].split() == ["another\\x1b", "FAIL", "bad", "luck"]


def test_searches_are_kept_by_what_they_depend_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    one, other = protocol(DECLARED), protocol(DECLARED.replace("0.75", "0.5"))
    life = life_hash(one)
    assert kept_in(one).startswith(f"/caches/cheesebench/audits/{life[:16]}-")
    assert kept_in(one) == kept_in(other), "not on the animals' numbers"
    assert len(Path(kept_in(one)).name) == 16 + 1 + 16
    for unset in (" ", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        home = Path("~/.cache/cheesebench/audits").expanduser()
        assert Path(kept_in(one)).parent == home
