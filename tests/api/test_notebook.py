"""The notebook of the documentation, executed as a reader would."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
manager = pytest.importorskip("jupyter_client.manager")

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


class Kernel:
    """A kernel, in which cells are run and stopped."""

    def __init__(self, place: Path) -> None:
        self._kernel, self._client = manager.start_new_kernel(cwd=str(place))

    def close(self) -> None:
        self._client.stop_channels()
        self._kernel.shutdown_kernel(now=True)

    def run(self, code: str) -> dict[str, Any]:
        return self._reply(self._client.execute(code))

    def stopped(self, code: str, begun: Path) -> tuple[dict[str, Any], float, str]:
        """Run a cell and stop it once a file exists. Return the reply, the seconds that
        the stop took, and what the cell has shown on stderr.
        """
        asked = self._client.execute(code)
        while not begun.exists():
            time.sleep(0.05)
        pressed = time.monotonic()
        self._kernel.interrupt_kernel()
        reply, shown = self._reply(asked), []
        seconds = time.monotonic() - pressed
        while True:
            said = self._client.get_iopub_msg(timeout=60)
            if said["msg_type"] == "stream":
                shown.append(said["content"]["text"])
            ended = said["content"].get("execution_state") == "idle"
            if ended and said["parent_header"].get("msg_id") == asked:
                return reply, seconds, "".join(shown)

    def _reply(self, asked: str) -> dict[str, Any]:
        while True:
            said = self._client.get_shell_msg(timeout=120)
            if said["parent_header"].get("msg_id") == asked:
                content: dict[str, Any] = said["content"]
                return content


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    found = Kernel(tmp_path)
    yield found
    found.close()


#: A function that answers ``QUICK`` calls, and marks that it was asked once more. That
#: call takes ten minutes.
SETUP = """
import asyncio, pathlib, time
import cheesebench
asked = []
def waits():
    asked.append(1)
    if len(asked) > QUICK:
        pathlib.Path("asked").touch()
        return True
def slow(messages):
    if waits():
        time.sleep(600)
    return "ACTIONS: FORWARD"
async def aslow(messages):
    if waits():
        await asyncio.sleep(600)
    return "ACTIONS: FORWARD"
def options(function):
    return dict(protocols="t_maze", design="smoke", run_id="cut", plugins=cheesebench.BackendSpec.of("s", function))
"""
#: Far below the 600 seconds of a call, and far above what a stop takes.
LONG = 60


@pytest.mark.parametrize(
    ("name", "function", "quick"),
    [
        ("run", "slow", 0),
        ("run", "slow", 5),
        ("run_async", "slow", 0),
        ("run_async", "aslow", 5),
    ],
)
def test_stop_ends_a_run_whose_model_is_silent(
    kernel: Kernel, tmp_path: Path, name: str, function: str, quick: int
) -> None:
    assert kernel.run(SETUP.replace("QUICK", str(quick)))["status"] == "ok"
    form = "await " if name == "run_async" else ""
    reply, seconds, shown = kernel.stopped(
        f"{form}cheesebench.{name}('s/x', **options({function}))", tmp_path / "asked"
    )
    assert seconds < LONG
    assert reply["ename"] == ("CancelledError" if form else "KeyboardInterrupt")
    if quick:
        assert "resume='cut'" in reply["evalue"]
        assert "Stopping: calls in flight have 5 seconds" in shown
    else:
        assert reply["evalue"].startswith("Interrupted before anything was run")
        assert not (tmp_path / "results" / "cut").exists()
