#!/usr/bin/env python3
"""Install the lowest versions that pyproject.toml allows, extras too, and let the main
command and what each extra is for work with them.

Usage: .ci/lowest.py DIRECTORY [NAME ...] (names of ENVIRONMENTS; they are kept there)
"""

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
#: What tests need besides; of these any version will do.
TOOLS = ("hypothesis", "jsonschema", "check-jsonschema")


class Environment(NamedTuple):
    """Extras that are installed together, packages beside them, and the tests that
    their modules work in.
    """

    extras: tuple[str, ...]
    beside: tuple[str, ...]
    tests: tuple[str, ...]


#: vLLM, torch and what tests and pages need are left out: they take gigabytes.
ENVIRONMENTS = {
    "usual": Environment(
        ("cogeval", "figures", "pandas", "parquet"),
        (),
        (
            *("tests/protocol/test_schema.py", "tests/plugins/backends/test_openai.py"),
            *("tests/cli/test_figures.py", "-k", "not every_figure and not same_runs"),
        ),
    ),
    "litellm": Environment(
        ("litellm",),
        (),
        ("tests/plugins/backends/test_litellm.py", "-k", "not whole_run"),
    ),
    "interop": Environment(
        ("inspect", "openenv", "pandas", "parquet"),
        ("trackio", "openai<3"),  # Inspect of that time knows no later client
        (
            *("tests/real_interop", "-m", "interop"),
            *("-k", "mistakes_of_openenv or task_of_inspect"),
        ),
    ),
    "ray": Environment(
        ("ray",), (), ("tests/ray_cluster", "-m", "ray", "-k", "RAYTEST")
    ),
}


def run(*command: object, **environment: object) -> None:
    print("$", *command, flush=True)
    given = {name: str(value) for name, value in environment.items()}
    subprocess.run(
        [str(part) for part in command],
        check=True,
        cwd=ROOT,
        env=os.environ | given,
    )


def check(name: str, top: Path) -> None:
    """Make an environment, and use it."""
    extras, beside, tests = ENVIRONMENTS[name]
    home = top / name
    python = home / "bin" / "python"
    uv = (top / "uv" / "bin" / "uv", "--quiet", "--cache-dir", top / "cache")
    if not uv[0].exists():
        venv.create(top / "uv", with_pip=True)
        run(top / "uv" / "bin" / "pip", "install", "--quiet", "uv")
    if not python.exists():
        run(*uv, "venv", "--python", sys.executable, home)
    pip = (*uv, "pip", "install", "--python", python)
    run(*pip, "--resolution", "lowest-direct", "-e", f".[{','.join(extras)}]")
    run(*pip, *TOOLS, *beside)
    run(*uv, "pip", "list", "--python", python)
    model = ("--model", "random", "--design", "smoke", "--exit-zero", "-q")
    run(home / "bin" / "pytest", *model, f"--results={home / 'results'}")
    # What our lowest versions say of newer ones beside them is not ours to mend.
    suite = (python, "-m", "pytest", "-q", "-W", "default", "--durations=5", *tests)
    run(*suite, CHEESEBENCH_INTEROP_HOME=home)


def main(directory: str, *names: str) -> None:
    for name in names or ENVIRONMENTS:
        check(name, Path(directory).resolve())


if __name__ == "__main__":
    main(*sys.argv[1:])
