"""What a shell is given to complete commands and options."""

from __future__ import annotations

import shutil
import subprocess
import sys

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


def test_without_shtab_the_remedy_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "zsh"]) == 2
    assert install_command("completion") in capsys.readouterr().err
