"""Commands own their arguments: only the called one is imported, and plugins can add
commands.
"""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench.canary import HIDDEN
from cheesebench.cli import all_commands, build_parser
from cheesebench.commands import COMMANDS
from cheesebench.commands.common import LONGEST_CELL, table, terminal_width
from cheesebench.options import BY_KEY
from tests.cli.conftest import RUN
from tests.stored import check_stored, without_prose

Run = Callable[..., Any]

HOOK = """
from cheesebench import CommandSpec
def cheesebench_commands():
    return [{entries}]
"""
SHOUT = """
from cheesebench import OptionError
def add_arguments(parser):
    parser.add_argument("word")
    parser.add_argument("--times", type=int, default=1)
def run(arguments):
    if arguments.times < 1:
        raise OptionError(f"--times {arguments.times}: say it at least once.")
    print(" ".join([arguments.word.upper()] * arguments.times))
    return 1 if arguments.times > 2 else 0
"""


def install(directory: Path, name: str, code: str, **modules: str) -> None:
    """Write modules, and the metadata of a distribution whose entry point is the first
    of them.
    """
    for module, text in {name: code, **modules}.items():
        (directory / f"{module}.py").write_text(text, encoding="utf-8")
    information = directory / f"{name}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
    )
    (information / "entry_points.txt").write_text(
        f"[cheesebench]\n{name} = {name}\n", encoding="utf-8"
    )


@pytest.fixture
def site(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A directory of distributions, whose modules are forgotten afterwards."""
    directory = tmp_path_factory.mktemp("site")
    monkeypatch.syspath_prepend(directory)
    yield directory
    for path in directory.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [("--help", []), ("--version", []), ("lint --help", ["lint"]), ("nonsense", [])],
)
def test_only_the_command_that_is_called_is_imported(
    arguments: str, imported: list[str]
) -> None:
    modules = sorted(command.module for command in COMMANDS.values())
    code = (
        "import sys; from cheesebench.cli import main\n"
        f"try: main({arguments.split()!r})\nexcept SystemExit: pass\n"
        f"print('imported:', [name for name in {modules!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert (
        result.stdout.splitlines()[-1]
        == f"imported: {[f'cheesebench.commands.{name}' for name in imported]}"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_a_module_with_two_functions(name: str) -> None:
    module = importlib.import_module(COMMANDS[name].module)
    missing = [
        function
        for function in ("add_arguments", "run")
        if not callable(getattr(module, function, None))
    ]
    assert not missing, f"write these functions in {module.__name__}"


def test_an_option_of_a_run_is_what_it_is_in_pytest() -> None:
    """An option of a run accepts the same kind of value in a command as in pytest."""
    [subparsers] = [
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    plan = {
        action.dest: action
        for action in subparsers.choices["plan"]._actions
        if action.dest in BY_KEY
    }
    assert {
        "model",
        "subjects",
        "results",
        "reply_tokens",
        "agent_option",
    } <= plan.keys()
    for key, action in plan.items():
        option = BY_KEY[key]
        assert action.option_strings == [option.short]
        assert getattr(action.type or str, "__name__", "") == option.type.__name__
        assert (type(action).__name__ == "_AppendAction") is option.repeatable
    spelled = {
        (name, action.dest): action.option_strings
        for name, parser in subparsers.choices.items()
        for action in parser._actions
        if action.dest in ("results", "compare_fail", "models", "json")
        and action.option_strings
    }
    assert {tuple(strings) for strings in spelled.values()} == {
        ("--results",), ("--compare-fail",), ("--models",), ("--json",)
    }  # fmt: skip


def test_a_plugin_adds_a_command(
    site: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    install(
        site,
        "loud",
        HOOK.format(entries="CommandSpec('shout', 'say it loudly', 'loud_shout')"),
        loud_shout=SHOUT,
    )
    assert "    shout        say it loudly\n" in run().out
    assert "loud_shout" not in sys.modules, "the help does not import it"
    assert run("shout", "cheese", "--times", "2").out == "CHEESE CHEESE\n"
    assert run("shout", "cheese", "--times", "3").code == 1
    mistake = run("shout", "cheese", "--times", "0")
    assert (mistake.code, mistake.err) == (
        2,
        "cheesebench: --times 0: say it at least once.\n",
    )
    assert "Did you mean 'shout'?" in run("shuot").err
    with pytest.raises(SystemExit, match="0"):
        run("shout", "--help")
    assert "Say it loudly." in capsys.readouterr().out
    listed = run("plugins", "--json")
    assert listed.code == 0
    assert "shout" not in all_commands(entry_points=False), (
        "the reference has what is ours"
    )


def test_a_plugin_cannot_replace_a_command(site: Path, run: Run) -> None:
    install(
        site,
        "rival",
        HOOK.format(entries="CommandSpec('lint', 'do nothing', 'rival_lint')"),
    )
    assert "do nothing" not in run().out
    assert run("lint", "little").code == 0


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (
            "import nosuchmodule",
            "cannot be loaded: ModuleNotFoundError: No module named 'nosuchmodule'",
        ),
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero (odd_c"),
        (
            "def run(arguments): return 0",
            "a module, which has no 'add_arguments'. Add 'def add_arguments(parser)'.",
        ),
        (
            "run = add_arguments = 3",
            "'add_arguments' is 3, an int. Write 'def add_arguments(parser)'.",
        ),
        (
            "def add_arguments(parser): 1 / 0\ndef run(options): ...",
            "raises ZeroDivisionError: division by zero (odd_c",
        ),
        (
            "def add_arguments(parser): ...\ndef run(options): 1 / 0",
            "raises ZeroDivisionError: division by zero (odd_c",
        ),
        (
            "def add_arguments(parser): ...\ndef run(): ...",
            "whose 'run' takes (). Write 'def run(options)'.",
        ),
        (
            "def add_arguments(parser): ...\ndef run(options): return 'ok'",
            "run returned 'ok', a str. Return an int.",
        ),
    ],
)
def test_a_command_that_cannot_be_loaded_is_one_line(
    site: Path, run: Run, module: str, reason: str
) -> None:
    install(
        site,
        "odd_kit",
        HOOK.format(entries="CommandSpec('odd', 'is odd', 'odd_command')"),
        odd_command=module,
    )
    assert run().code == 0
    result = run("odd")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("cheesebench: The command 'odd' of a plugin")
    assert reason in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "hook"),
    [
        ("wrong_raises", "def cheesebench_commands(): 1 / 0"),
        ("wrong_number", "def cheesebench_commands(): return 3"),
        ("wrong_module", "1 / 0"),
    ],
)
def test_a_broken_plugin_takes_no_help_away(
    site: Path, run: Run, name: str, hook: str
) -> None:
    install(site, name, hook)
    result = run()
    assert result.code == 0
    assert all(f"\n    {command}" in result.out for command in COMMANDS)
    assert "Did you mean 'lint'?" in run("lnt").err


@pytest.mark.parametrize("cell", ["x" * 10**6, "w " * 10**6, "a/b-" * 10**6])
def test_a_cell_of_a_hostile_log_is_cut(cell: str) -> None:
    text = table(["name", "end"], [["t_maze", cell], ["y_maze", "stop"]])
    assert LONGEST_CELL < len(text) < 3 * LONGEST_CELL
    assert max(map(len, text.splitlines())) <= terminal_width()
    assert "..." in text
    assert text.splitlines()[-1] == "y_maze  stop"


#: Commands one after the other, in a directory with one run and one protocol.
SESSION = """
runs --results results
runs --results results --json
report RUN --results results --format matrix
report RUN --results results --format nothing
report NOBODY --results results
show RUN --results results
verdict RUN --results results
verdict RUN --results results --json
bless RUN first --results results --baselines blessed
compare RUN first --results results --baselines blessed
compare RUN first --results results --baselines blessed --json
compare RUN second --results results --baselines blessed
merge RUN --results results
export RUN --results results --csv --output tables
lint little.protocol.yaml
lint broken.protocol.yaml
lint little.protocol.yaml --json
test little.protocol.yaml
test little.protocol.yaml -q
trace little.protocol.yaml --actions SSFFFF
trace little.protocol.yaml --actions SSFX
trace little.protocol.yaml --actions SSRLFFFFFFF --trial 2 --seed 3
render little.protocol.yaml
render little.protocol.yaml --state run
render little.protocol.yaml --state nowhere
render little.protocol.yaml --expand
play little.protocol.yaml --actions SSFFFF
new maze mine
new nothing mine
diff little.protocol.yaml little.protocol.yaml
twin mine.protocol.yaml --seed secret
reference little.protocol.yaml
plan --model random --protocols little.protocol.yaml --subjects 3
plan --model random --protocols little.protocol.yaml --subjects 0
study
models --json nothing-like-this
audit little.protocol.yaml --trials 20 --part solvable --part draws --part cues
audit little.protocol.yaml --trials 20 --part solvable --json
gallery little.protocol.yaml
figures RUN --results results --only nothing
film RUN --results results --subject 0 --trial 1
canary
canary --model scripted:canary.yaml
canary --model scripted:replies.yaml --json
canary --model random
show asked --results results
show asked --results results --call 2
show asked --results results --call 99
show asked --results results --unparsed
show asked --results results --subject 0 --trial 2
show asked --results results --subject 5
report asked RUN --results results --format matrix
compare asked RUN --results results
runs --results results --model scripted:replies.yaml
verdict asked RUN --results results --first-model scripted:replies.yaml --second-model random
export asked --results results --csv --table calls --output called
bless asked second --results results --baselines blessed --incomplete
bless asked second --results results --baselines blessed
runs --results nowhere
runs --results results --model nobody
new chamber box
new touchscreen screen
new dialogue graph
new maze mine
new maze 9lives
new maze other --output other.txt
new maze other --parent little
new maze other --output folder/other.protocol.yaml
new edition long
new edition long --parent little
new edition default --parent little
diff little little.long.protocol.yaml
diff little mine.protocol.yaml
diff little.protocol.yaml graph.protocol.yaml
twin little.protocol.yaml --seed long-secret1
twin little.protocol.yaml --seed long-secret
schema --install
schema --install --output x
gallery little.protocol.yaml --output page.md
gallery little.protocol.yaml --seed 3 --output page.html
gallery nothing
trace little.protocol.yaml --actions ,
trace little.protocol.yaml --actions SF --view topdown_2d
trace graph.protocol.yaml --actions F
trace little.protocol.yaml --actions RFFSLLFSRF --subject 1 --seed 2
trace little.protocol.yaml --actions SSFFFFSSFFFFSSFFFFSSFFFFFL
trace little.protocol.yaml --actions F --trial 9
play little.protocol.yaml --actions FSFRFL --trial 4
play little.protocol.yaml --actions SSFFFFSSFFFFSSFFFFSSFFFFF
play little.protocol.yaml --view topdown_2d --actions F
play little.protocol.yaml --output film.png --actions F
verdict scores.csv --value 0.5
verdict scores.csv others.csv
verdict scores.csv others.csv --fail --json --output verdict.json
verdict others.csv scores.csv --fail
verdict scores.csv
lint noted.protocol.yaml
lint noted.protocol.yaml -q
lint noted.protocol.yaml mine.protocol.yaml --strict
people
people --protocols little --subjects 0
people --protocols little --address 0.0.0.0
people --protocols little --agent random
people --protocols little --consent nowhere.txt
people --protocols broken.protocol.yaml
people --resume RUN --results results --seed 3
people --resume asked --results results --run-id mine
serve --openenv little --agent-option nothing
view --results nowhere
"""


def test_the_arguments_of_every_command() -> None:
    """Names, defaults, types and choices of all arguments, without their help."""
    lines = []
    for name, parser in subparsers(build_parser()).items():
        described = "described" if parser.description else "not described"
        examples = str(parser.epilog).count("\n")
        lines.append(f"{name}: {described}, examples: {examples}")
        for action in parser._actions[1:]:
            told: dict[str, object] = {
                "takes": type(action).__name__,
                "default": action.default,
                "type": getattr(action.type, "__name__", ""),
                "choices": action.choices,
                "nargs": action.nargs,
                "required": action.required,
                "metavar": action.metavar,
                "help": "" if action.help else "missing",
            }
            said = ", ".join(
                f"{key} {value!r}"
                for key, value in told.items()
                if value not in (None, "")
            )
            names = "/".join(action.option_strings) or action.dest
            lines.append(f"  {names} ({action.dest}): {said}")
    check_stored("arguments.txt", "\n".join([*lines, ""]))


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands, and of commands below them, by name."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                found[name] = one
                below = subparsers(one)
                found |= {f"{name} {other}": two for other, two in below.items()}
    return found


#: What a scripted model says in turn.
REPLIES = """
seed: 1
replies:
  - say: ["ACTIONS: F, F, F, F", "LEARNINGS: east\\nACTIONS: L, R, F", "What now?"]
"""
#: A protocol with three mistakes.
BROKEN = (
    ("goal, reward: 1", "gaol, reward: 1"),
    ("limit: 9", "limit: -9"),
    ("face: E", "face: Q"),
)
#: What each version, day, machine and process has of its own.
OWN = (
    (r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:[\d.]+)?(\+00:00|Z)?)?", "DATE"),
    (r'"(revision|cheesebench|python|platform|numpy|scipy)": "[^"]*"', r'"\1": ""'),
    (r"\b\d\.\d\d (?= +(stop|length))", "TIME "),
    (r"\b\d+(\.\d+)? (s|seconds|minutes)\b", "SOME TIME"),
)


def test_a_session_at_the_command_line(
    run: Run, results: Path, maze: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each command prints: lines, exit codes and the errors of mistakes."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    broken = maze
    for old, new in BROKEN:
        broken = broken.replace(old, new)
    (results.parent / "broken.protocol.yaml").write_text(broken, encoding="utf-8")
    (results.parent / "replies.yaml").write_text(REPLIES, encoding="utf-8")
    noted = maze.replace("C: cue, ", "C: cue, D: bay, ").replace(
        "dimension: patience\n", ""
    )
    (results.parent / "noted.protocol.yaml").write_text(noted, encoding="utf-8")
    for name, least in (("scores", 1), ("others", 3)):
        rows = [f"s{n // 4},i{n % 4},{int(n % 5 >= least)}" for n in range(80)]
        table = "\n".join(["subject,item,score", *rows, ""])
        (results.parent / f"{name}.csv").write_text(table, encoding="utf-8")
    known = f"seed: 1\nreplies:\n  - say: ['{HIDDEN}']\n"
    (results.parent / "canary.yaml").write_text(known, encoding="utf-8")
    asked = ["scripted:replies.yaml", ["little.protocol.yaml"]]
    cheesebench.run(
        *asked, design="cohort", subjects=2, seed=0, run_id="asked", progress=False
    )
    shown = []
    for line in SESSION.split("\n")[1:-1]:
        found = run(*line.replace("RUN", RUN).split())
        shown.append(f"$ cheesebench {line}\n{found.out}{found.err}[{found.code}]\n")
    for name in ("verdict.json", ".vscode/settings.json", "page.md"):
        written = (results.parent / name).read_text(encoding="utf-8")
        shown.append(f"{name}:\n{written}")
    said = "\n".join(shown).replace(str(results.parent), ".")
    for own, instead in OWN:
        said = re.sub(own, instead, said)
    check_stored("session.txt", without_prose(said))
