"""The published package, ``cheesebench`` 0.2.0, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import pytest

PACKAGE = "cheesebench==0.2.0"


@pytest.fixture(scope="session")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment that has the package."""
    given = os.environ.get("CHEESEBENCH_PEER_HOME")
    home = Path(given) if given else tmp_path_factory.mktemp("peer")
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    has_it = subprocess.run(
        [python, "-P", "-c", "import cheesebench.environments"],
        capture_output=True,
        cwd=home,
    )
    if has_it.returncode:
        subprocess.run(
            [python, "-m", "pip", "install", "-q", PACKAGE], check=True, cwd=home
        )
    return python
