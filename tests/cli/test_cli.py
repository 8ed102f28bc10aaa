"""The command line as a whole: help, mistakes, pipes, signals."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench.cli import BROKEN_PIPE, build_parser, main
from cheesebench.commands import COMMANDS

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from cheesebench.cli import main; sys.exit(main())",
]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"cheesebench {cheesebench.__version__}\n"


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    result = run()
    assert result.code == 0
    assert all(f"\n    {command}" in result.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_text_has_examples_that_can_be_typed(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    assert examples, (
        f"give '{command}' examples: parsing.describe(parser, about, *examples)"
    )
    for example in examples:
        program, *arguments = shlex.split(example)
        assert program == "cheesebench"
        assert build_parser().parse_args(arguments).command == command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("lnt little", "Did you mean 'lint'?"),
        ("diff", "arguments are required: PARENT"),
        (
            "list --jsn",
            "unrecognized arguments: --jsn. Did you mean '--json'? See 'cheesebench list --help'.",
        ),
        ("--jsn", "unrecognized arguments: --jsn. See 'cheesebench --help'."),
        ("lint litle", "There is no protocol 'litle'"),
        ("run little", "pytest runs models, as in 'pytest --model NAME"),
        ("plan --compare main", "an option of a run: pytest --model NAME --compare"),
        ("lint --protocols litle", "There is no protocol 'litle'"),
        ("plan litle --model random", "There is no protocol 'litle'"),
        ("trace litle --actions F", "There is no protocol 'litle'"),
        ("lint litle.protocol.yaml", "There is no file litle.protocol.yaml"),
        ("lint ./nowhere/", "There is no file ./nowhere/"),
        ("lint empty", "There is no file *.protocol.yaml in the directory 'empty'"),
        ("render empty", "empty is a directory"),
        ("render little --state rn", "Did you mean 'run'?"),
        ("render little --view ascii_2e", "Did you mean 'ascii_2d'?"),
        ("render little --seed -1", "'-1' is not a whole number"),
        ("render little --subject x", "'x' is not a whole number"),
        ("render little --subject 99999999999999999999", "has more than 18 digits"),
        ("render little --expand", "is already a map"),
        ("render little --expand --state run", "Remove them"),
        ("play little --actions FXL", "'X' in 'FXL' is not an action"),
        ("play little --view ascii_2e --actions F", "Did you mean 'ascii_2d'?"),
        (
            "schema --output nowhere/schema.json",
            "nowhere/schema.json cannot be written",
        ),
        ("schema --output empty", "empty cannot be written"),
        ("report nothing", "There is no run 'nothing' in results"),
        ("report empty", "There is no run 'empty'"),
        ("report little.protocol.yaml", "is not a run log"),
        ("report nothing --format pdf", "There is no report format 'pdf'"),
        (f"lint {'x' * 300}", "File name too long"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: str, words: str, run: Run, here: Path
) -> None:
    (here / "empty").mkdir()
    result = run(*arguments.split())
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("cheesebench: ")
    assert words in result.err
    assert result.err.count("\n") == 1


def test_what_is_typed_cannot_command_the_terminal(run: Run) -> None:
    for arguments in (
        ["\x1b[2J"],
        ["lint", "\x1b[2J\r"],
        ["render", "little", "--state", "\x1b]0;x\x07\ny"],
    ):
        result = run(*arguments)
        assert result.code == 2
        assert "\x1b" not in result.err
        assert "\\x1b" in result.err
        assert result.err.count("\n") == 1


@pytest.mark.parametrize("command", ["render", "play"])
def test_a_broken_protocol_is_told_line_by_line(
    command: str, run: Run, here: Path, maze: str
) -> None:
    broken = maze.replace("enter: goal", "entr: goal").replace("face: E", "face: Q")
    (here / "broken.protocol.yaml").write_text(broken, encoding="utf-8")
    result = run(command, "broken.protocol.yaml")
    first, *findings = result.err.splitlines()
    assert result.code == 2
    assert first == f"cheesebench: the protocol has {len(findings)} errors."
    assert len(findings) >= 2
    assert all(finding.startswith("broken.protocol.yaml:") for finding in findings)


def test_a_file_here_goes_before_an_installed_protocol(
    run: Run, here: Path, maze: str
) -> None:
    (here / "t_maze.protocol.yaml").write_text(
        maze.replace("little", "t_maze"), encoding="utf-8"
    )
    result = run("render", "t_maze", "--state", "wait")
    assert result.code == 0
    assert (
        result.err
        == "cheesebench: t_maze.protocol.yaml is used, not the installed 't_maze'.\n"
    )
    assert "#→...." in result.out


def test_as_a_process(here: Path) -> None:
    result = subprocess.run(
        [*COMMAND, "lint", "little"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("1 file: 0 errors, 0 warnings, 0 notes\n")
    result = subprocess.run(
        [*COMMAND, "lint", "litle"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


def test_a_terminal_without_arrows_gets_what_is_like_them(here: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(
        [*COMMAND, "render", "little"],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"#>.." in result.stdout
    assert b"\\u" not in result.stdout


def test_a_reader_may_close_the_pipe(here: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), errors) == (BROKEN_PIPE, b"")
