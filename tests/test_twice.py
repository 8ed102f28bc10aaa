"""``.ci/twice.py`` names a test that fails only once, and fails for one that fails
twice.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TWICE = Path(__file__).parents[1] / ".ci" / "twice.py"
STEADY = "def test_steady(): pass\n"
#: Fails in the first run in its folder.
FLAKY = """
import pathlib
def test_flaky():
    before = pathlib.Path("before")
    known = before.exists()
    before.touch()
    assert known
"""
FAILING = "def test_failing(): assert 0\n"
MANY = """
import pytest
@pytest.mark.parametrize("number", range(21))
def test_many(number): assert 0
"""


def run(folder: Path, text: str) -> tuple[int, str, list[str]]:
    """Return the exit code, the output, and the tests that are listed as flaky."""
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    listed = folder / "flaky"
    listed.touch()
    command: list[str | Path] = [
        TWICE,
        listed,
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "1",
        "-p",
        "no:cheesebench",
    ]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, listed.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("text", "code", "flaky", "runs"),
    [
        (STEADY, 0, [], 1),
        (STEADY + FLAKY, 0, ["test_it.py::test_flaky"], 2),
        (STEADY + FAILING, 1, [], 2),
        (FAILING + FLAKY, 1, ["test_it.py::test_flaky"], 2),
        (MANY, 1, [], 1),
        ("import nowhere", 2, [], 2),
        ("", 5, [], 1),
    ],
    ids=["steady", "flaky", "failing", "both", "many", "broken", "none"],
)
def test_what_fails_once_is_named_and_what_fails_twice_fails(
    tmp_path: Path, text: str, code: int, flaky: list[str], runs: int
) -> None:
    returned, printed, listed = run(tmp_path, text)
    assert returned == code, printed
    assert listed == flaky
    assert printed.count("FLAKY test_it.py::test_flaky") == len(flaky)
    assert printed.count("test session starts") == runs
