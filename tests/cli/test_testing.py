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
