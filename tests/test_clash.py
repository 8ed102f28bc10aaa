"""Another package with a module of the same name: one line with the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_cheesebench

OTHER = '"""A benchmark of rodent tasks for vision-language models."""\n__version__ = "0.3"\n'


@pytest.fixture
def overwritten(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``cheesebench`` belongs to another package."""
    (tmp_path / "cheesebench").mkdir()
    (tmp_path / "cheesebench" / "__init__.py").write_text(OTHER, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_the_package_is_ours() -> None:
    assert pytest_cheesebench.clash() == ""


@pytest.mark.parametrize(
    "command",
    [
        ("-m", "pytest"),
        ("-c", "import sys, pytest_cheesebench; sys.exit(pytest_cheesebench.main())"),
    ],
    ids=["pytest", "command"],
)
def test_another_package_is_one_line(
    overwritten: dict[str, str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=work,
        env=overwritten,
        capture_output=True,
        text=True,
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert "belongs to another package" in said
    assert "pip uninstall cheesebench" in said
    assert "Traceback" not in said
    assert "INTERNALERROR" not in said


def test_overwritten_files_are_noticed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # If one package was installed over the other, our modules are still there.
    package = tmp_path / "cheesebench"
    package.mkdir()
    (package / "__init__.py").write_text(OTHER, encoding="utf-8")
    (package / "pytest_plugin.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cheesebench")
    assert "another package" in pytest_cheesebench.clash()
