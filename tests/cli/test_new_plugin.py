"""``cheesebench new-plugin``."""

from __future__ import annotations

from pathlib import Path

from .conftest import Run


def test_it_writes_a_package_and_says_what_comes_next(here: Path, run: Run) -> None:
    result = run("new-plugin", "view", "my-eyes")
    assert result.code == 0
    assert "cheesebench-my-eyes/src/cheesebench_my_eyes/view.py" in result.out
    assert result.out.splitlines()[-1].startswith(
        "Next: cd cheesebench-my-eyes && pip install -e . && pytest"
    )
    again = run("new-plugin", "view", "my-eyes")
    assert again.code == 2
    assert "already exists. Choose another --output." in again.err
    assert run("new-plugin", "view", "my-eyes", "--output", here / "there").code == 0
    assert (here / "there" / "pyproject.toml").is_file()


def test_mistakes_are_one_line(run: Run) -> None:
    assert "there is no 'protocol'. Known: " in run("new-plugin", "protocol", "x").err
    assert "cannot be a plugin's name" in run("new-plugin", "agent", "My Mouse").err
