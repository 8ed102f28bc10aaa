"""The workflows of GitHub, the issue forms and the citation: valid by their schemas,
and accurate for the package.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(
    path
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
    if path.name != "config.yml"
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-issue-forms", FORMS),
        (
            "vendor.github-issue-config",
            [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"],
        ),
        ("vendor.github-actions", [ROOT / "action.yml"]),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_are_valid_by_their_schema(schema: str, files: list[Path]) -> None:
    pytest.importorskip("check_jsonschema")
    assert files
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        schema,
        *map(str, files),
    ]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout


def test_the_tests_run_wherever_the_package_does() -> None:
    matrix = load(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["tests"][
        "strategy"
    ]["matrix"]
    prefix = "Programming Language :: Python :: 3."
    known = [
        f"3.{one.removeprefix(prefix)}"
        for one in PROJECT["classifiers"]
        if one.startswith(prefix)
    ]
    assert matrix["python"] == known
    assert {name.partition("-")[0] for name in matrix["os"]} == {
        "ubuntu",
        "macos",
        "windows",
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_job_runs_for_ever_or_may_write(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        # A job that may get tokens of the package index or publish pages has an
        # environment with rules of its own.
        assert "environment" in job or "permissions" not in job


def test_the_citation_is_of_this_version() -> None:
    citation = load(ROOT / "CITATION.cff")
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
