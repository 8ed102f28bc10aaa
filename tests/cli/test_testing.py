from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.cli import main

PROTOCOL = """
version: 1
paradigm: corridor
arena: {map: "S..Z", legend: {S: box, Z: goal}}
start: {at: box, face: E}
trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}
schedule: {one: {trials: 2}}
success: last == found
tests:
  - {visit: [goal], expect: {outcome: found, reward: 1}}
  - {actions: FF, expect: {outcome: OUTCOME}}
"""


@pytest.mark.parametrize(("outcome", "failed"), [("timeout", 0), ("found", 1)])
def test_the_tests_of_a_protocol_are_played(
    outcome: str, failed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "corridor.protocol.yaml"
    path.write_text(PROTOCOL.replace("OUTCOME", outcome), encoding="utf-8")
    assert main(["test", str(path)]) == failed
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(":10:5: test 1 passed")
    assert ("outcome: expected found, was timeout" in lines[1]) == bool(failed)
    assert lines[-1] == f"2 tests: {failed} failed"


def test_a_file_with_errors_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.protocol.yaml"
    path.write_text("version: 1", encoding="utf-8")
    assert main(["test", str(path)]) == 1
    assert "error E122" in capsys.readouterr().out


def test_what_an_edition_inherits_names_the_edition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent, heir = (
        tmp_path / f"{name}.protocol.yaml" for name in ("corridor", "corridor.short")
    )
    text = PROTOCOL.replace("OUTCOME", "timeout") + "vars: {idle: 0}\n"
    parent.write_text(text, encoding="utf-8")
    heir.write_text(
        "version: 1\nextends: corridor\nparadigm: corridor\nedition: short\ntrial: {limit: 4}\n",
        encoding="utf-8",
    )
    assert main(["test", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(":10:5: test 1 passed")
    assert lines[2] == f"{parent}:10:5: test 1 of corridor@short passed"
    assert lines[3].endswith(":11:5: test 2 of corridor@short passed")
    assert main(["lint", str(tmp_path)]) == 0
    first, again = capsys.readouterr().out.splitlines()[:2]
    assert again == f"{first} ({heir.name} inherits it.)"
