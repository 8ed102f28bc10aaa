"""The pages for authors and for plugins: every command, every file and every protocol in them is tried."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cheesebench.author.packages import KINDS
from cheesebench.cli import main
from cheesebench.protocol import Catalogue
from cheesebench.testing import agents, backends, views
from cheesebench.testing.faults import FAULTS

ROOT = Path(__file__).parents[1]
AUTHORS, PLUGINS = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("authors.md", "plugins.md"))
BLOCK = re.compile(r"^(?:<!-- (\S+) -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    blocks = [code for _, language, code in BLOCK.findall(page) if language == "console"]
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def named(page: str) -> dict[str, str]:
    return {name: code for name, _, code in BLOCK.findall(page) if name}


def test_no_block_is_left_out() -> None:
    for page in (AUTHORS, PLUGINS):
        for name, language, _ in BLOCK.findall(page):
            assert bool(name) != (language == "console"), (name, language)
        assert page.count("```") == 2 * len(BLOCK.findall(page))


def test_the_commands_for_authors_work_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tried = 0
    for program, *arguments in commands(AUTHORS):
        tried += 1
        if program == "pytest":
            result = subprocess.run([sys.executable, "-m", "pytest", *arguments], capture_output=True, check=False)
            assert result.returncode == 0, result.stdout.decode()
            continue
        assert program == "cheesebench"
        assert main(arguments) == (1 if arguments[0] == "diff" else 0), (arguments, capsys.readouterr())
    assert tried == 12
    assert (tmp_path / ".vscode" / "settings.json").is_file()


def test_the_protocols_for_authors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main(["new", "maze", "my_maze"])
    path = tmp_path / "my_maze.protocol.yaml"
    blocks = named(AUTHORS)
    (tmp_path / "my_maze.short.protocol.yaml").write_text(blocks["edition"], encoding="utf-8")
    assert main(["lint", "--strict", "."]) == 0
    assert main(["test", "."]) == 0
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r"^trial:.*?(?=^schedule:)", blocks["change"] + "\n", text, flags=re.MULTILINE | re.DOTALL)
    assert changed != text
    found = Catalogue().inspect_text(changed)[1]
    assert [one.code for one in found if one.severity != "info"] == [311]
    path.write_text(changed, encoding="utf-8")
    assert main(["audit", "my_maze", "--trials", "200", "--view", "ascii_2d"]) == 1


def test_the_packages_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = []
    for program, *arguments in commands(PLUGINS):
        assert program == "cheesebench"
        assert main(arguments) == 0
        kinds += arguments[1:2] if arguments[0] == "new-plugin" else []
    assert tuple(kinds) == KINDS
    assert (tmp_path / "cheesebench-acme-cloud" / "pyproject.toml").is_file()


def test_the_plugins_pass_their_tests(tmp_path: Path) -> None:
    files = named(PLUGINS)
    for name, code in files.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    (tmp_path / "protocols").mkdir()
    main(["new", "maze", "my_maze", "--output", str(tmp_path / "protocols" / "my_maze.protocol.yaml")])
    information = tmp_path / "strangers-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n", encoding="utf-8")
    modules = [Path(name).stem for name in files if not name.startswith("test_")]
    lines = ["[cheesebench]", *(f"{module} = {module}" for module in modules)]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    tests = sorted(name for name in files if name.startswith("test_"))
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", *tests]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 passed" in result.stdout
    lived = [sys.executable, "-m", "pytest", "--model", "mouse", "--protocols", "my_maze", "--design", "smoke"]
    result = subprocess.run(lived, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "mouse in ascii_2d" in result.stdout, result.stdout + result.stderr


def test_a_backend_fits_into_twenty_lines() -> None:
    lines = [line for line in named(PLUGINS)["acme.py"].splitlines() if line.strip()]
    assert len(lines) <= 20


def test_every_rule_is_named() -> None:
    rules = [*backends.RULES, *backends.SERVER_RULES, *agents.RULES, *agents.MODEL_RULES, *views.RULES]
    missing = {name for name in rules if not name.startswith("fault: ") and f"`{name}`" not in PLUGINS}
    assert missing == set()
    words = " ".join(PLUGINS.split())
    assert [one.name for one in FAULTS if f"`{one.name}`" not in words] == []
