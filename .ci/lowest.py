#!/usr/bin/env python3
"""Install the lowest versions that pyproject.toml allows, extras too, and run the main
command and a fast part of the suite with them.

Usage: .ci/lowest.py DIRECTORY (of the environment, which is kept)
"""

import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Extras that are not installed: gigabytes (their tests have an environment of their
#: own), and what only developers need.
LEFT_OUT = {"vllm", "sb3", "ray", "local", "docs", "dev", "bench", "test"}
#: What the tests below need besides.
TOOLS = ("hypothesis", "pytest-timeout", "jsonschema", "check-jsonschema")
#: A part of the suite that takes a minute, and imports every package.
TESTS = (
    "tests/protocol/test_schema.py",
    "tests/statistics/test_intervals.py",
    "tests/interop/test_scores.py",
    "tests/plugins/backends/test_openai.py",
    "tests/plugins/backends/test_litellm.py",
    "tests/cli/test_figures.py",
)


def bounds(project: dict) -> Iterator[str]:
    """Yield ``name==lowest`` for all requirements of the project."""
    extras = project["optional-dependencies"]
    tools = [one for one in extras["test"] if re.match(r"[\w-]+", one)[0] in TOOLS]
    chosen = [*project["dependencies"], *tools]
    for name, wanted in extras.items():
        if name not in LEFT_OUT:
            chosen += wanted
    for requirement in chosen:
        name, lowest = re.match(r"([\w.-]+)(?:>=([\w.]+))?", requirement).groups()
        if lowest is None:
            raise SystemExit(
                f"{requirement} has no lower bound: give it one in pyproject.toml"
            )
        yield f"{name}=={lowest}"


def run(*command: object) -> None:
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT)


def main(directory: str) -> None:
    """Make the environment, and use it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    home = Path(directory).resolve()
    home.mkdir(parents=True, exist_ok=True)
    lowest = sorted(set(bounds(project)))
    (home / "lowest.txt").write_text("\n".join(lowest) + "\n", encoding="utf-8")
    print(*lowest)
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
    extras = ",".join(sorted(set(project["optional-dependencies"]) - LEFT_OUT))
    run(
        home / "bin" / "pip",
        "install",
        "-q",
        "-c",
        home / "lowest.txt",
        "-e",
        f".[{extras}]",
        *TOOLS,
    )
    results = home / "results"
    run(
        home / "bin" / "pytest",
        "-q",
        "--model",
        "random",
        "--design",
        "smoke",
        "--results",
        results,
        "--exit-zero",
    )
    run(home / "bin" / "python", "-m", "pytest", "-q", "-n", "0", *TESTS)


if __name__ == "__main__":
    main(sys.argv[1])
