"""A generated package passes its own tests unchanged, installed where
pytest finds it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from cheesebench.commands.new import write_files
from cheesebench.commands.new_plugin import KINDS, Kind, plugin_files
from cheesebench.errors import OptionError

ROOT = Path(__file__).parents[2]


def written(directory: Path, kind: Kind, name: str = "my-own") -> Path:
    """Write a package, with the metadata that an installer would add, into its source
    folder; return that folder.
    """
    write_files(directory, plugin_files(kind, name))
    project = tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    information = (
        directory
        / "src"
        / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    )
    information.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (information / "METADATA").write_text(head, encoding="utf-8")
    [(group, points)] = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
    (information / "entry_points.txt").write_text(
        "\n".join(lines) + "\n", encoding="utf-8"
    )
    return directory / "src"


def call(source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside the package, with the package and ours on its path."""
    path = os.pathsep.join([str(source), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=source.parent,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_passes_its_own_tests(kind: Kind, tmp_path: Path) -> None:
    source = written(tmp_path, kind)
    result = call(source, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider")
    assert result.returncode == 0, result.stdout + result.stderr
    tests = (
        (tmp_path / "tests" / "test_conformance.py")
        .read_text(encoding="utf-8")
        .count("\ndef test_")
    )
    assert f"{tests} passed" in result.stdout
    listed = call(source, "-m", "cheesebench", "plugins")
    assert "cheesebench-my-own 0.1.0" in listed.stdout, listed.stderr
    assert "not loaded" not in listed.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_as_tidy_as_we_are(kind: Kind, tmp_path: Path) -> None:
    written(tmp_path, kind)
    width = ["--isolated", "--line-length", "120", "."]
    check = ["check", "--select", "E,F,W,I,B,UP,D1", "--ignore", "D107"]
    for arguments in ([*check, *width], ["format", "--check", *width]):
        command = [sys.executable, "-m", "ruff", *arguments]
        result = subprocess.run(
            command, cwd=tmp_path / "src", capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
    workflow = yaml.safe_load(
        (tmp_path / ".github/workflows/test.yml").read_text(encoding="utf-8")
    )
    assert {"run": "pytest"} in workflow["jobs"]["test"]["steps"]
    assert workflow["jobs"]["test"]["steps"][1]["with"] == {
        "python-version": "${{ matrix.python }}"
    }


@pytest.mark.parametrize(
    "name", ["", "My-Own", "a b", "../x", "1st", "x" * 41, "-x", "é"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="cannot be a plugin's name"):
        plugin_files("view", name)


def test_a_module_of_the_page_is_built_and_found(tmp_path: Path) -> None:
    """Installed as pip does it, but without a wheel, which would need another package
    with an old setuptools.
    """
    pytest.importorskip("setuptools")
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    for name in ("pyproject.toml", "mouse.py"):
        [text] = re.findall(
            rf"test: file: {re.escape(name)} -->\n```\w+\n(.*?)^```$",
            page,
            re.MULTILINE | re.DOTALL,
        )
        (tmp_path / name).write_text(text, encoding="utf-8")
    built = tmp_path / "build" / "lib"
    built.mkdir(parents=True)
    setup = [
        "-c",
        "import setuptools; setuptools.setup()",
        "-q",
        "build_py",
        "egg_info",
        "--egg-base",
        "build/lib",
    ]
    result = call(built.parent, *setup)
    assert sorted(path.name for path in built.iterdir()) == [
        "mouse.py",
        "my_mouse.egg-info",
    ], result.stderr
    listed = call(built, "-m", "cheesebench", "plugins")
    said = [" ".join(line.split()) for line in listed.stdout.splitlines()]
    assert "mouse my-mouse 0.1.0 agents: mouse" in said, listed.stdout + listed.stderr


def test_a_command_of_ours_is_not_replaced() -> None:
    with pytest.raises(
        OptionError,
        match=r"'list' is already a command of cheesebench\. Choose another name, such as my-list",
    ):
        plugin_files("command", "list")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_conformance.py").write_text("mine", encoding="utf-8")
    with pytest.raises(OptionError, match="already exists"):
        write_files(tmp_path, plugin_files("view", "x"))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [
        "test_conformance.py"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_it_uses_public_names_only(kind: Kind, tmp_path: Path) -> None:
    source = written(tmp_path, kind).parent
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted([*source.rglob("*.py"), *source.rglob("*.md")])
    ]
    modules = {
        name
        for text in texts
        for name in re.findall(
            r"^(?:from|import) (cheesebench(?:\.[\w.]+)?)\b", text, re.M
        )
    }
    assert modules <= {
        "cheesebench",
        "cheesebench.testing",
        "cheesebench.testing.fake_server",
    }
