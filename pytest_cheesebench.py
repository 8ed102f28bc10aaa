"""Entry point of the pytest plugin and of the command ``cheesebench``. It is outside
the package, so that it can check whether the package is ours.

Another distribution has a module of the same name, ``cheesebench``. If both are
installed, each overwrites files of the other, and neither works.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

OTHER = "cheesebench"


def clash() -> str:
    """Return a line with the problem and its remedy, or "" if the package is ours and
    complete.
    """
    found = importlib.util.find_spec("cheesebench")
    folder = Path(found.origin).parent if found is not None and found.origin else None
    if folder is not None and (folder / "pytest_plugin.py").is_file():
        # Read the file instead of importing it, because it may be another package's.
        start = (folder / "__init__.py").read_text(encoding="utf-8", errors="replace")[
            :2000
        ]
        if start.startswith(
            '"""CheeseBench: does a model perform as well as a rodent?'
        ):
            return ""
    module = f"the module 'cheesebench' in {folder or 'this environment'}"
    try:
        version = importlib.metadata.version(OTHER)
    except importlib.metadata.PackageNotFoundError:
        return (
            f"cheesebench: {module} is incomplete or belongs to another package. Rename it if it is yours, or: "
            f"pip uninstall {OTHER} pytest-cheesebench, and install pytest-cheesebench again."
        )
    return (
        f"cheesebench: {module} belongs to another package ('{OTHER}' {version}), not to pytest-cheesebench. Use a "
        f"separate environment for each, or: pip uninstall {OTHER} "
        "pytest-cheesebench, and install pytest-cheesebench again."
    )


def main() -> int:
    problem = clash()
    if problem:
        print(problem, file=sys.stderr)
        return 2
    from cheesebench.interrupts import of_command

    with of_command():
        from cheesebench.cli import main as command

        return command()


def runs_models(words: Iterable[str]) -> bool:
    """Return whether a command line starts a session that runs models."""
    return any(
        word.partition("=")[0].removeprefix("--cheese-").lstrip("-")
        in ("model", "study")
        for word in words
    )


def _refuse() -> None:
    """Raise a pytest.UsageError with the problem. Otherwise the first import would
    fail.
    """
    import pytest

    raise pytest.UsageError(_PROBLEM)


_PROBLEM = clash()
if _PROBLEM:
    globals()["pytest_load_initial_conftests"] = _refuse
elif "_pytest" in sys.modules:  # The command does not need the hooks.
    if runs_models(sys.argv):
        from cheesebench.interrupts import install

        install()
    from cheesebench.pytest_plugin import (  # noqa: F401
        pytest_configure,
        pytest_load_initial_conftests,
        score_verdict,
    )
