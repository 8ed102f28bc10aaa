"""A held-out twin: its secret, its file and its hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cheesebench.cli import main

SECRET = "a long secret"


def test_a_twin_is_written_with_its_hash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["twin", "t_maze", "--seed", SECRET, "--output", str(tmp_path)]) == 0
    path, digest, check = capsys.readouterr().out.splitlines()
    [written] = tmp_path.iterdir()
    assert path == str(written)
    assert written.name.startswith("t_maze.")
    assert written.name.endswith(".protocol.yaml")
    assert digest == f"sha256 {hashlib.sha256(written.read_bytes()).hexdigest()}"
    assert (
        check == f"Check it with: cheesebench test {path} && cheesebench audit {path}"
    )


@pytest.mark.parametrize(("length", "code"), [(11, 2), (12, 0)])
def test_a_short_secret_could_be_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], length: int, code: int
) -> None:
    command = ["twin", "t_maze", "--seed", SECRET[:length], "--output", str(tmp_path)]
    assert main(command) == code
    said = "--seed has 11 characters. Give at least 12."
    assert (said in capsys.readouterr().err) == (code == 2)
