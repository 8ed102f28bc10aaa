"""``cheesebench audit``: the table, JSON, exit codes, mistakes; and the functions for
authors' own tests.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.auditing import kept_in
from cheesebench.commands import audit as audit_command
from cheesebench.commands.common import load_protocol
from cheesebench.paradigms.arena.audit import lesions
from cheesebench.testing import assert_sound, audit_protocol

Run = Callable[..., Any]


def test_a_table_with_a_verdict_for_every_rule(run: Run) -> None:
    result = run(
        "audit", "little", "--trials", 40, "--part", "solvable", "--part", "draws"
    )
    assert result.code == 0
    assert result.out.startswith("little (little.protocol.yaml), 40 trials, seed 0")
    assert "solvable" in result.out
    assert "nothing is drawn" in result.out
    assert "blind" not in result.out
    assert result.out.endswith("1 protocol: 0 failures\n")
    # The first line names the file. If stderr is not a terminal, nothing more comes for
    # a minute.
    assert result.err == "little (little.protocol.yaml): part 1 of 2, solvable\n"


def test_without_a_terminal_the_latest_is_said_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    monkeypatch.setattr(audit_command, "EVERY", 0.01)
    with audit_command._Progress(load_protocol("little")) as progress:
        for number in range(200):
            progress(f"part {number}")
        said = ""
        while "part 199" not in said:
            said += capsys.readouterr().err
    lines = said.splitlines()
    assert lines[0] == "little (little.protocol.yaml): part 0"
    assert any(re.fullmatch(r"little: part 199 \([\d.]+ s\)", line) for line in lines)


def test_what_is_finished_outlives_an_audit_that_is_killed(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    command = [sys.executable, "-m", "cheesebench", "audit", "little", "--part=lesions"]
    arguments = [*command, "--processes=1"]
    killed = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    while killed.poll() is None and not [*cache.rglob("*.json")]:
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    kept = {path: path.read_bytes() for path in cache.rglob("*.json")}
    assert kept

    again = run("audit", "little", "--part", "lesions", "--processes", 1, "--json")
    assert "kept" in again.err
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    fresh = run("audit", "little", "--part", "lesions", "--processes", 1, "--json")
    assert "kept" not in fresh.err
    assert again.out == fresh.out
    whole = run("audit", "little", "--part", "lesions", "--processes", 1, "--json")
    assert "lesions were searched in earlier audits" in whole.err
    found = {path.name: path.read_bytes() for path in tmp_path.rglob("*.json")}
    assert all(found[path.name] == content for path, content in kept.items())
    # Finished searches are not repeated, except unreadable ones.
    monkeypatch.setattr(lesions, "measure", None)
    assert (
        run("audit", "little", "--part", "lesions", "--processes", 1).code == again.code
    )
    for path in (tmp_path / "other").rglob("*.json"):
        path.write_text("{}", encoding="utf-8")
    with pytest.raises(TypeError):
        run("audit", "little", "--part", "lesions", "--processes", 1)


def test_nothing_is_kept_of_another_life_or_where_nothing_can_be_written(
    run: Run, here: Path, maze: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    little = load_protocol("little")
    path = here / "little.protocol.yaml"
    path.write_text(maze.replace("value: 0.75", "value: 0.8"), encoding="utf-8")
    assert kept_in(load_protocol("little")) == kept_in(little)
    path.write_text(maze.replace("limit: 9", "limit: 8"), encoding="utf-8")
    assert kept_in(load_protocol("little")) != kept_in(little)
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert run("audit", "little", "--part", "lesions", "--processes", 1).code in (0, 1)


def test_a_failure_is_an_exit_code(run: Run, here: Path, maze: str) -> None:
    (here / "short.protocol.yaml").write_text(
        maze.replace("limit: 9", "limit: 5"), encoding="utf-8"
    )
    result = run(
        "audit", "little", "short.protocol.yaml", "--trials", 40, "--part", "solvable"
    )
    assert result.code == 1
    assert "FAIL" in result.out
    assert result.out.endswith("2 protocols: 1 failure\n")


def test_json_has_the_numbers_and_equal_seeds_give_equal_ones(run: Run) -> None:
    arguments = (
        "audit",
        "little",
        "--json",
        "--trials",
        40,
        "--seed",
        3,
        "--part",
        "chance",
        "--processes",
        1,
    )
    first, second = run(*arguments), run(*arguments)
    assert first.out == second.out
    (report,) = json.loads(first.out)
    assert (report["protocol"], report["trials"], report["seed"]) == ("little", 40, 3)
    (uniform, stated, *_) = report["findings"]
    assert uniform["rule"] == "chance: uniform"
    assert uniform["numbers"]["trials"] >= 40
    # The file states 0.125; after 100 trials, corridor and limit decide whether that
    # fits, and the test must not.
    assert stated["verdict"] == ("FAIL" if first.code else "ok")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit", "t_mase"), "Did you mean 't_maze'?"),
        (("audit", "little", "--trials", 0), "'0' is not a whole number of at least 1"),
        (("audit", "little", "--view", "nowhere"), "There is no view 'nowhere'"),
        (("audit", "little", "--part", "tea"), "--part: there is no 'tea'. Known: "),
    ],
)
def test_mistakes_are_one_line(
    run: Run, arguments: tuple[object, ...], words: str
) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert words in result.err
    assert len(result.err.splitlines()) == 1


def test_authors_can_test_their_own(here: Path, maze: str) -> None:
    assert assert_sound(
        here / "little.protocol.yaml", trials=40, parts=["solvable", "cues"]
    ).passed
    path = here / "short.protocol.yaml"
    path.write_text(maze.replace("limit: 9", "limit: 5"), encoding="utf-8")
    assert [
        one.rule for one in audit_protocol(path, trials=40, parts=["solvable"]).failures
    ] == ["solvable"]
    with pytest.raises(AssertionError, match=r"solvable: .* within half of the limit"):
        assert_sound(path, trials=40, parts=["solvable"])
