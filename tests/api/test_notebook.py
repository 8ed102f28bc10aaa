"""The notebook of the documentation, executed as a reader would."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "examples" / "first_run.ipynb"


@pytest.fixture
def executed(tmp_path: Path) -> Any:
    shutil.copy(NOTEBOOK, tmp_path)
    notebook = nbformat.read(tmp_path / NOTEBOOK.name, as_version=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Jupyter's own deprecations
        nbclient.NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
        ).execute()
    return notebook


def test_every_cell_runs_and_shows_what_it_says(executed: Any) -> None:
    shown: list[dict[str, str]] = [
        next(
            (
                one["data"]
                for one in cell.outputs
                if one.output_type == "execute_result"
            ),
            {},
        )
        for cell in executed.cells
        if cell.cell_type == "code"
    ]
    run, verdicts, _, trial, again = shown
    assert run["text/plain"].startswith("<Run ")
    assert "| model" in run["text/markdown"]
    assert "FAIL" in verdicts["text/html"]
    assert trial["text/html"].startswith("<iframe srcdoc=")
    assert "place-learner on t_maze: subject 0, trial 12" in trial["text/plain"]
    assert again["text/plain"] == "True"


def test_the_notebook_is_stored_without_its_output() -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    assert all(
        not cell.outputs and cell.execution_count is None
        for cell in stored.cells
        if cell.cell_type == "code"
    )
