"""The commands for authors: new, trace, diff, schema --install."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.commands.diff import ABSENT, differences
from cheesebench.commands.trace import changes

from .conftest import Run


def test_new_writes_what_lint_and_test_accept(here: Path, run: Run) -> None:
    written = run("new", "chamber", "my_box")
    assert written.code == 0
    name, _, head, *commands = written.out.splitlines()
    assert (name, head) == ("my_box.protocol.yaml", "Next:")
    words = [shlex.split(line) for line in commands]
    assert [line[:2] for line in words] == [
        ["cheesebench", "lint"],
        ["cheesebench", "trace"],
        ["cheesebench", "test"],
        ["pytest", "--model"],
        ["cheesebench", "audit"],
    ]
    # The suggested commands work; the run and the audit are tested elsewhere.
    results = [run(*line[1:]) for line in words[:3]]
    assert [one.code for one in results] == [0, 0, 0]
    assert "press lever" in results[1].out
    assert results[1].out.rstrip().endswith("The trial ends: hit, success.")
    assert run("lint", "--strict", "my_box.protocol.yaml").code == 0
    assert run("test", "my_box.protocol.yaml").out.endswith("4 tests: 0 failed\n")
    assert run("new", "chamber", "my_box").code == 2
    assert "trace" not in run("new", "dialogue", "my_graph").out


def test_without_a_file_it_is_those_of_this_directory(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "inside").mkdir()
    run("new", "maze", "two", "--output", "inside/two.protocol.yaml")
    for command, *words in (("lint",), ("test",), ("audit", "--part=draws")):
        assert run(command, *words).out == run(command, ".", *words).out
    assert run("lint").out.startswith("2 files: ")
    (here / "empty").mkdir()
    monkeypatch.chdir(here / "empty")
    for command in ("lint", "test", "audit"):
        result = run(command)
        assert result.code == 2
        assert "There is no file *.protocol.yaml in the directory '.'" in result.err


def test_new_edition_and_diff(here: Path, run: Run) -> None:
    assert run("new", "edition", "long", "--parent", "little").code == 0
    path = here / "little.long.protocol.yaml"
    text = path.read_text(encoding="utf-8")
    result = run("diff", "little", path)
    assert result.code == 1
    assert "edition:\n  + long\n" in result.out
    path.write_text(
        text
        + "trial: {limit: 30, states: {run: {show: null}}}\nmeasures: {latency: steps}\n"
    )
    told = run("diff", "little", path).out
    assert "trial.limit:\n  - 9\n  + 30\n" in told
    assert "measures.latency:\n  - steps / 2\n  + steps\n" in told
    assert 'trial.states.run.show:\n  - {"cue": "*"}\n\n' in told
    assert told.endswith("They have different hashes in results.\n")
    assert not [
        line
        for line in told.splitlines()
        if line.startswith(("arena", "extends", "version"))
    ]
    assert run("diff", "little", "little").out.endswith("They are equivalent.\n")
    result = run("diff", "little", "cogeval_n7line")
    assert result.code == 1
    assert result.out.endswith(
        "\n\nThey are of different families, 'arena' and 'dialogue', whose keys cannot be compared.\n"
    )


def test_new_says_what_is_wrong(here: Path, run: Run) -> None:
    assert (
        "Name it: cheesebench new edition NAME --parent PROTOCOL"
        in run("new", "edition", "long").err
    )
    assert (
        "--parent works only with the template 'edition'"
        in run("new", "maze", "x", "--parent", "little").err
    )
    assert (
        "must end with .protocol.yaml"
        in run("new", "maze", "x", "--output", "x.yaml").err
    )
    for name in ("t_maze", "five_choice"):
        assert (
            f"'{name}' is the name of an installed paradigm"
            in run("new", "maze", name).err
        )
    outside = here / "elsewhere" / "x.protocol.yaml"
    assert (
        "The new file would have errors"
        in run("new", "edition", "x", "--parent", "little", "--output", outside).err
    )
    assert not outside.exists()


def test_differences() -> None:
    old = {"a": 1, "b": {"c": [1, 2], "d": 0}, "e": 1}
    new = {"a": 1, "b": {"c": [1, 3], "d": None}, "f": 2}
    assert list(differences(old, new)) == [
        ("b.c[2]", 2, 3),
        ("b.d", 0, None),
        ("e", 1, ABSENT),
        ("f", ABSENT, 2),
    ]
    assert list(differences([1], [1, 2], "x")) == [("x", [1], [1, 2])]


@pytest.mark.usefixtures("wide")
def test_trace_tells_every_step_and_the_rules_that_fired(run: Run) -> None:
    result = run("trace", "little", "--actions", "SSFFFFS")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert lines[0] == "little: trial 1 of subject 0, seed 0"
    start = next(n for n, line in enumerate(lines) if "at (1, 1), facing E" in line)
    assert any("→" in line for line in lines[:start]), "the first picture"
    assert "1 STAY wait" in lines
    [turned] = [line for line in lines if line.startswith("2 STAY")]
    assert "wait -> run little.protocol.yaml:17: after 2" in turned
    assert "(3, 1) . to *; line 3: (gone)" in turned
    assert "3 FORWARD (1, 1) → to .; (2, 1) . to → run" in lines
    [last] = [line for line in lines if line.startswith("6 FORWARD")]
    assert "+1 run little.protocol.yaml:21: enter goal" in last
    assert "The trial ends: found, success." in lines
    assert "little: trial 2 of subject 0, seed 0" in lines
    assert lines[-2] == "No actions are left, but the trial has not ended."


@pytest.mark.usefixtures("wide")
def test_trace_tells_draws_variables_and_movements_in_vain(run: Run) -> None:
    """The first rat is released at the foot of a T, whose arm is drawn."""
    result = run("trace", "t_maze", "--actions", "FFFFRFFF")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "0 at (3, 4), facing N forced gap = 4" in lines
    start = lines.index("released = 0")
    assert lines[start + 1 : start + 3] == ["sample = right", "shut = gate_left"]
    assert "4 FORWARD (blocked) forced" in lines
    [rewarded] = [n for n, line in enumerate(lines) if line.startswith("7 FORWARD")]
    assert "8 FORWARD (frozen)" in lines[rewarded + 1]


def test_trace_begins_where_it_is_told(run: Run) -> None:
    result = run("trace", "little", "--actions", "F", "--trial", 3)
    assert result.out.startswith("little: trial 3 of subject 0, seed 0")
    over = run("trace", "little", "--actions", "FS", "--trial", 9)
    assert over.code != 0
    assert "The schedule ends after 4 trials. Use a smaller --trial." in over.err
    assert "is not an action" in run("trace", "little", "--actions", "FX").err
    assert "has no action" in run("trace", "little", "--actions", " ").err


def test_changes_are_told_in_few_words() -> None:
    assert changes("#↑.#", "#.↑#") == "(1, 0) ↑ to .; (2, 0) . to ↑"
    assert changes("x", "x") == ""
    assert changes("#.#", "#.#\nTONE ON") == "line 1: TONE ON"
    assert changes("a\nb", "a\nb\n!") == "line 2: !"


def test_schema_for_vs_code(here: Path, run: Run) -> None:
    folder = here / ".vscode"
    folder.mkdir()
    (folder / "settings.json").write_text(
        '{"editor.rulers": [120], "yaml.schemas": {"a.json": "*.a"}}'
    )
    assert run("schema", "--install").code == 0
    settings = json.loads((folder / "settings.json").read_text())
    schemas = {"a.json": "*.a", ".vscode/protocol.schema.json": "*.protocol.yaml"}
    assert settings == {"editor.rulers": [120], "yaml.schemas": schemas}
    assert (
        json.loads((folder / "protocol.schema.json").read_text())["title"]
        == "CheeseBench protocol"
    )
    assert run("schema", "--install").code == 0
    (folder / "settings.json").write_text("{} // mine")
    refused = run("schema", "--install")
    assert refused.code == 2
    assert (
        '"yaml.schemas": {".vscode/protocol.schema.json": "*.protocol.yaml"}'
        in refused.err
    )
    assert (folder / "settings.json").read_text() == "{} // mine"
    assert "--output has no effect" in run("schema", "--install", "--output", "x").err


def test_editions_are_found_by_name_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "maze", "my_maze"]) == 0
    assert main(["new", "edition", "short", "--parent", "my_maze"]) == 0
    assert main(["new", "edition", "tiny", "--parent", "my_maze@short"]) == 0
    assert "extends: my_maze@short\n" in (
        tmp_path / "my_maze.tiny.protocol.yaml"
    ).read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["test", "my_maze@tiny"]) == 0
    assert "4 tests: 0 failed" in capsys.readouterr().out
    assert main(["test", "my_maze@tny"]) > 1
    assert "Did you mean 'my_maze@tiny'?" in capsys.readouterr().err
