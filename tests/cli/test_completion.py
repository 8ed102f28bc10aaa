"""What a shell is given to complete commands and options."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.commands import COMMANDS
from cheesebench.extras import install_command


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    lines = "COMP_WORDS=(cheesebench report --f); COMP_CWORD=2; _shtab_cheesebench; echo ${COMPREPLY[*]}"
    done = subprocess.run(["bash", "-c", f"{script}\n{lines}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--format"]
    assert all(name in script for name in COMMANDS)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("lint my_", ["my_maze.protocol.yaml"]),
        ("reference my_", ["my_maze.protocol.yaml"]),
        ("render progressive_", ["progressive_ratio"]),
        ("report re", ["results/"]),
        ("view --results re", ["results/"]),
        ("people --consent te", ["text.txt"]),
    ],
)
def test_bash_completes_files_directories_and_protocols(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str, completed: list[str]
) -> None:
    pytest.importorskip("shtab")
    for name in ("my_maze.protocol.yaml", "text.txt"):
        (tmp_path / name).touch()
    (tmp_path / "results").mkdir()
    assert main(["completion", "bash"]) == 0
    words = ["cheesebench", *typed.split()]
    call = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_cheesebench; echo ${{COMPREPLY[*]}}"
    lines = f"compopt() {{ :; }}\n{call}"  # there is no compopt where nothing is being completed
    done = subprocess.run(
        ["bash", "-c", f"{capsys.readouterr().out}\n{lines}"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert [word.rstrip("/") for word in done.stdout.split()] == [word.rstrip("/") for word in completed]


def test_without_shtab_the_remedy_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "zsh"]) == 2
    assert install_command("completion") in capsys.readouterr().err
