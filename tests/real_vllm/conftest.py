"""One real server and one real engine for all tests here. They start together, because
starting takes long.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
# A module beside this file, imported in this way by the scripts here, too.
import living  # type: ignore[import-not-found]  # noqa: E402
import recipe  # type: ignore[import-not-found]  # noqa: E402


@dataclass(frozen=True, slots=True)
class Kept:
    """A server that another process has started and keeps."""

    base_url: str
    keeper: subprocess.Popen[str]


@pytest.fixture(scope="session")
def vllm() -> recipe.RealVllm:
    """The environment with vLLM, and the tiny model."""
    return recipe.prepare()


@pytest.fixture(scope="session")
def engine(
    vllm: recipe.RealVllm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[subprocess.Popen[str]]:
    """The script in_process.py, running."""
    errors = tmp_path_factory.mktemp("engine") / "stderr"
    with errors.open("w") as sink:
        script = subprocess.Popen(
            [vllm.python, HERE / "in_process.py", vllm.model, errors.parent],
            env=recipe.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
    yield script
    for process in living.family(script.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    script.communicate()


@pytest.fixture(scope="session")
def found(engine: subprocess.Popen[str]) -> dict[str, list[dict[str, Any]]]:
    """The results of in_process.py."""
    output, _ = engine.communicate(timeout=recipe.STARTUP_TIMEOUT)
    assert engine.returncode == 0, output
    answers: dict[str, list[dict[str, Any]]] = json.loads(output.splitlines()[-1])
    return answers


@contextlib.contextmanager
def keeping(
    vllm: recipe.RealVllm, model: Path, directory: Path, most: str
) -> Iterator[Kept]:
    keeper = subprocess.Popen(
        [sys.executable, HERE / "keeper.py", vllm.python, model, directory, most],
        env=recipe.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert keeper.stdout is not None
    base_url = keeper.stdout.readline().strip()
    assert base_url, "the server did not start; pytest -s shows why"
    yield Kept(base_url, keeper)
    keeper.kill()  # a test checks that this ends the server
    keeper.communicate()


@pytest.fixture(scope="session")
def kept(
    vllm: recipe.RealVllm,
    engine: subprocess.Popen[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Kept]:
    """A server that was started through our plugin."""
    with keeping(
        vllm,
        vllm.model,
        tmp_path_factory.mktemp("server"),
        recipe.ENGINE["max_model_len"],
    ) as found:
        yield found


@pytest.fixture(scope="module")
def seeing(
    vllm: recipe.RealVllm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    """A server with a model that sees pictures."""
    with keeping(
        vllm, vllm.seeing, tmp_path_factory.mktemp("seeing"), "32768"
    ) as found:
        yield found
