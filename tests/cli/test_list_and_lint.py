"""``list``, ``lint`` and ``schema``: the installed protocols, and errors in them."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cheesebench.protocols
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from cheesebench.protocol.schema import schema_text

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two installed distributions: one supplies the protocols in the returned
    directory, the other is broken.
    """
    site = tmp_path / "site"
    protocols = site / "strange_protocols"
    protocols.mkdir(parents=True)
    (site / "strange.py").write_text(
        f"from pathlib import Path\ndef cheesebench_protocols(): return [Path({str(protocols)!r})]\n",
        encoding="utf-8",
    )
    (site / "broken.py").write_text(
        "raise RuntimeError('out of\\x1b[2J cheese')\n", encoding="utf-8"
    )
    for name in ("strange", "broken"):
        metadata = site / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
        )
        (metadata / "entry_points.txt").write_text(
            f"[cheesebench]\n{name} = {name}\n", encoding="utf-8"
        )
    monkeypatch.syspath_prepend(site)
    installed_plugins.cache_clear()
    yield protocols
    for name in ("strange", "broken"):
        sys.modules.pop(name, None)
    installed_plugins.cache_clear()


def test_list_names_all_that_is_installed(run: Run) -> None:
    result = run("list")
    assert result.code == 0
    plugins = installed_plugins()
    lines = [
        f"{what}: {', '.join(named)}"
        for what, named in (
            ("views", plugins.views),
            ("report formats", plugins.reporters),
            ("executors", plugins.executors),
        )
    ]
    protocols = Catalogue(plugins.protocol_directories).names()
    text = " ".join(result.out.split())
    for name in (
        *protocols,
        *plugins.agents,
        *plugins.respondents,
        *plugins.model_agents,
        *plugins.backends,
        *lines,
    ):
        assert name in text
    assert "cannot be loaded" not in text


@pytest.mark.usefixtures("wide")
def test_list_describes_a_protocol_and_goes_on_past_broken_ones(
    run: Run, strangers: Path, maze: str
) -> None:
    (strangers / "little.protocol.yaml").write_text(maze, encoding="utf-8")
    (strangers / "bad.protocol.yaml").write_text(
        maze.replace("limit: 9", "limit: never ever"), encoding="utf-8"
    )
    result = run("list")
    assert result.code == 0
    lines = result.out.splitlines()
    (little,) = [line.split() for line in lines if line.startswith("little ")]
    assert little == [
        "little",
        "patience",
        "4",
        "x",
        "9",
        "75",
        "%",
        "declared",
        "–",
        "not",
        "validated",
    ]
    assert [
        line for line in lines if "bad.protocol.yaml has 1 error; the first is" in line
    ]
    assert (
        "The plugin broken cannot be loaded: RuntimeError: out of\\x1b[2J cheese (broken.py:1)"
        in lines
    )
    assert any(line.startswith("t_maze ") for line in lines)


@pytest.mark.parametrize("width", ["60", "80", "120"])
@pytest.mark.parametrize("command", ["list", "models", "plugins", "study"])
def test_a_list_fits_the_terminal_and_loses_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    narrow = run(command).out
    assert max(map(len, narrow.splitlines())) <= int(width)
    monkeypatch.setenv("COLUMNS", "1000")
    whole = run(command).out

    def letters(text: str) -> Counter[str]:
        """Count the visible characters, without blanks and the lines below headings,
        whose lengths vary.
        """
        return Counter(
            "".join(line for line in text.splitlines() if set(line) - set("- "))
        ) - Counter({" ": len(text)})

    assert letters(narrow) == letters(whole)


def test_where_a_terminal_s_width_is_unknown_it_is_80(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((0, 0)))
    assert max(map(len, run("models").out.splitlines())) <= 80


def test_list_for_programs(run: Run, strangers: Path, maze: str) -> None:
    (strangers / "little.protocol.yaml").write_text(maze, encoding="utf-8")
    (strangers / "bad.protocol.yaml").write_text("- nothing", encoding="utf-8")
    found = json.loads(run("list", "--json").out)
    (little,) = [
        protocol for protocol in found["protocols"] if protocol["name"] == "little"
    ]
    assert little == {
        "name": "little",
        "edition": "default",
        "title": "Little",
        "dimension": "patience",
        "trials": 4,
        "limit": 9,
        "reference": 0.75,
        "ability": None,
        "random": 0.125,
        "construct": None,
        "validity": "not validated",
        "file": "site/strange_protocols/little.protocol.yaml",
    }
    assert [broken["file"] for broken in found["broken_protocols"]] == [
        "site/strange_protocols/bad.protocol.yaml"
    ]
    assert list(found["broken_plugins"]) == ["broken"]
    assert {"name": "random", "memory": "none"}.items() <= found["agents"][0].items()
    (openai,) = [
        backend for backend in found["backends"] if backend["name"] == "openai"
    ]
    assert "api_key_env" in openai["options"]
    plugins = installed_plugins()
    assert found["views"] == list(plugins.views)
    assert found["report_formats"] == list(plugins.reporters)
    assert [executor["name"] for executor in found["executors"]] == list(
        plugins.executors
    )


def test_lint_prints_findings_in_file_order_and_a_summary(
    run: Run, here: Path, maze: str
) -> None:
    bad = maze.replace("enter: goal", "enter: gaol").replace("found}}]", "lost}}]")
    (here / "bad.protocol.yaml").write_text(bad, encoding="utf-8")
    result = run("lint", "bad.protocol.yaml", "little")
    *findings, summary = result.out.splitlines()
    assert result.code == 1
    lines = [int(line.split(":")[1]) for line in findings]
    assert lines == sorted(lines)
    assert any("Did you mean 'goal'?" in line for line in findings)
    assert summary == f"2 files: {len(findings)} errors, 0 warnings, 0 notes"


def test_lint_fails_for_warnings_only_when_it_is_strict(
    run: Run, here: Path, maze: str
) -> None:
    (here / "unused.protocol.yaml").write_text(
        maze + "vars: {unused: 0}\n", encoding="utf-8"
    )
    result = run("lint", "unused.protocol.yaml")
    assert (result.code, ": warning W" in result.out) == (0, True)
    assert run("lint", "--strict", "unused.protocol.yaml").code == 1
    assert run("lint", "--strict", "little").code == 0


def test_lint_can_leave_out_notes(run: Run, here: Path, maze: str) -> None:
    both = maze.replace("end: found}", "end: found}\n        - {after: 3, end: late}")
    (here / "both.protocol.yaml").write_text(both, encoding="utf-8")
    assert ": info I" in run("lint", "both.protocol.yaml").out
    quiet = run("lint", "-q", "both.protocol.yaml")
    assert ": info I" not in quiet.out
    assert "1 note" in quiet.out


def test_lint_takes_directories_and_each_file_once(
    run: Run, here: Path, maze: str
) -> None:
    deep = here / "deep" / "er"
    deep.mkdir(parents=True)
    (deep / "one.protocol.yaml").write_text(maze, encoding="utf-8")
    assert run("lint", ".", "little", here).out.startswith("2 files: ")


def test_lint_takes_an_edition_by_its_name(
    run: Run, strangers: Path, maze: str
) -> None:
    (strangers / "little.protocol.yaml").write_text(maze, encoding="utf-8")
    edition = "version: 1\nextends: little\nparadigm: little\nedition: rodent\ntrial: {limit: 8}\n"
    (strangers / "little_for_rodents.protocol.yaml").write_text(
        edition, encoding="utf-8"
    )
    assert run("lint", "little@rodent").out.startswith("1 file: 0 errors")


def test_a_mistyped_name_is_looked_for_here_and_among_what_is_installed(
    run: Run, here: Path, maze: str
) -> None:
    (here / "tmax.protocol.yaml").write_text(maze, encoding="utf-8")
    said = run("lint", "tmaz").err
    assert "Did you mean 'tmax'?" in said
    assert "The installed protocol 't_maze' has a similar name, too." in said
    (here / "tmax.protocol.yaml").rename(here / "qqq.protocol.yaml")
    assert "Did you mean 't_maze'?" in run("lint", "tmaz").err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("E226", "E226, error: A reference contradicts itself"),
        ("w335", "W335, warning: The animals' values seem to be in percent"),
        ("I401", "I401, note: Two rules can fire on the same step"),
        ("estimand", "estimand: The trials that count for the pass rate."),
        ("at_most", "at_most, in Abolished: The highest pass rate that may remain"),
    ],
)
def test_lint_explains_codes_and_keys(run: Run, name: str, said: str) -> None:
    result = run("lint", "--explain", name)
    assert result.code == 0
    assert result.out.startswith(said)


def test_what_lint_cannot_explain_is_said(run: Run) -> None:
    result = run("lint", "--explain", "estimmand")
    assert result.code == 2
    assert "no code or key 'estimmand'. Did you mean 'estimand'?" in result.err


def test_lint_passes_every_shipped_protocol(run: Run) -> None:
    result = run("lint", "-q", Path(cheesebench.protocols.__path__[0]))
    assert result.code == 0, result.out


def test_schema_is_printed_or_written(run: Run, here: Path) -> None:
    assert run("schema").out == schema_text()
    assert run("schema", "--output", "s.json").out == ""
    assert (here / "s.json").read_text(encoding="utf-8") == schema_text()
