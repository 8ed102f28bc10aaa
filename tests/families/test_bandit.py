"""A third family, supplied by a plugin: a bandit is linted, listed, run, judged,
logged, reported, shown, exported.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.experiment.cells import DESIGNS
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import recorded_paradigm
from cheesebench.plugin_manager import PluginManager

HERE = Path(__file__).parent
PROTOCOL = HERE / "bandits" / "three_levers.protocol.yaml"
REPLIES = """
seed: 7
replies:
  - {when: "lever 1", say: "ACTIONS: ROTATE_LEFT"}
"""
#: Calls a command as a user with the plugin would; returns the output, and asserts the
#: exit code.
Command = Callable[..., str]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The plugin is a distribution with an entry point, and known by nothing else."""
    metadata = tmp_path / "site" / "gamblers-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: gamblers\nVersion: 1.0\n", encoding="utf-8"
    )
    (metadata / "entry_points.txt").write_text(
        "[cheesebench]\nbandit = bandit\n", encoding="utf-8"
    )
    (tmp_path / "site" / "bandit.py").symlink_to(HERE / "bandit.py")
    (tmp_path / "site" / "bandits").symlink_to(HERE / "bandits")
    (tmp_path / "replies.yaml").write_text(REPLIES, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "COLUMNS": "120"}

    def call(program: str, *arguments: object, code: int = 0) -> str:
        words = [sys.executable, "-m", program, *map(str, arguments)]
        if program == "pytest":
            words += ["-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return call


def test_a_run_has_verdicts_a_log_and_reports(command: Command, tmp_path: Path) -> None:
    given = (
        "--model",
        "random,hippocampal-ql",
        "--protocols",
        "three_levers",
        "--seed",
        5,
        "--cheese-run-id",
    )
    text = command("pytest", *given, "run", "-v", code=1)
    assert "three_levers[words-random] FAIL" in text, "chance is no better than chance"
    assert "A failed trial: subject 0" in text
    assert "FORWARD pulls lever 1" in text, "the failed trial is shown"
    trials = DESIGNS["cohort"].subjects * 60
    with RunLog.open_read_only(tmp_path / "results" / "run") as log:
        plans = log.plans()
        assert [
            (plan.view, str(plan.variant), plan.trials, plan.against) for plan in plans
        ] == [("words", "", 60, "chance")] * 2
        lines = list(log.dump())
        assert len(lines) == 2 * trials
        assert {record.outcome for record in log.trials(plans[0])} == {
            "best",
            "worse",
            "none",
        }
        rates = [
            sum(bool(record.success) for record in log.trials(plan)) / trials
            for plan in plans
        ]
    assert abs(rates[0] - 0.25) < 0.06, (
        "four actions, three levers, one of which is best"
    )
    assert rates[1] > rates[0]
    # Any number of processes gives the same records.
    command("pytest", *given, "again", "--cheese-processes", 1, code=1)
    with RunLog.open_read_only(tmp_path / "results" / "again") as log:
        assert list(log.dump()) == lines
    assert "three_levers" in command("cheesebench", "report", "run")
    command("cheesebench", "report", "run", "--html")
    page = (tmp_path / "results" / "run" / "report.html").read_text(encoding="utf-8")
    assert "three_levers" in page
    assert "There is no view" not in page
    assert "nothing to watch" not in page
    command(
        "cheesebench",
        "export",
        "run",
        "--csv",
        "--table",
        "steps",
        "--observations",
        "--output",
        "tables",
    )
    with (tmp_path / "tables" / "steps.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * trials
    assert {row["observation"] for row in rows if row["letter"]} == {
        "The lever pays.",
        "Nothing.",
    }


def test_a_language_model_plays_it(command: Command, tmp_path: Path) -> None:
    given = ("--protocols", "three_levers", "--subjects", 2, "--cheese-run-id")
    command(
        "pytest",
        "--model",
        "scripted:replies.yaml",
        *given,
        "run",
        "--cheese-exit-zero",
    )
    assert command("cheesebench", "show", "run").count("ACTIONS: ROTATE_LEFT") == 60
    call = command("cheesebench", "show", "run", "--call", 4)
    assert "Before you are 3 levers." in call
    assert "They are words." in call, "the prompt says how it is to be read"
    assert call.rstrip().endswith("--- read as ---\nROTATE_LEFT")
    with RunLog.open_read_only(tmp_path / "results" / "run") as log:
        first = list(log.dump())
    command(
        "pytest",
        "--model",
        "replay:run",
        "--protocols",
        "three_levers",
        "--cheese-run-id",
        "more",
        "--cheese-exit-zero",
    )
    with RunLog.open_read_only(tmp_path / "results" / "more") as log:
        assert list(log.dump()) == first


def test_commands_for_authors(command: Command, tmp_path: Path) -> None:
    assert "1 file: 0 errors" in command("cheesebench", "lint", "three_levers")
    bad = tmp_path / "bad.protocol.yaml"
    bad.write_text(
        PROTOCOL.read_text(encoding="utf-8").replace("0.9", "0.2"), encoding="utf-8"
    )
    assert "bad.protocol.yaml:5:11: error E900: Two levers are the best." in command(
        "cheesebench", "lint", "bad.protocol.yaml", code=1
    )
    bad.write_text(
        PROTOCOL.read_text(encoding="utf-8").replace("pulls", "pull"), encoding="utf-8"
    )
    assert (
        "bad.protocol.yaml:6:3: error E121: There is no key 'pull' in 'bandit'. Did you mean 'pulls'?"
        in command("cheesebench", "lint", "bad.protocol.yaml", code=1)
    )
    listed = command("cheesebench", "list")
    assert any(
        line.split()[:3] == ["three_levers", "3", "60"] for line in listed.splitlines()
    )
    found = json.loads(command("cheesebench", "list", "--json"))
    assert [one["levers"] for one in found["bandits"]] == [[0.1, 0.2, 0.9]]
    assert found["protocols"], "the arena's are listed as ever"
    schema = json.loads(command("cheesebench", "schema"))
    assert schema["if"] == {"required": ["bandit"]}
    assert "Bandit" in schema["$defs"]
    command(
        "cheesebench",
        "new",
        "edition",
        "rich",
        "--parent",
        "three_levers",
        "--output",
        "rich.protocol.yaml",
    )
    assert "title: Three levers" not in command(
        "cheesebench", "diff", "three_levers", "rich.protocol.yaml", code=1
    )


def test_commands_say_whose_a_file_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    """The plugin is in a conftest.py, or nowhere: the message must not ask for an
    arena.
    """
    for arguments in (["lint"], ["render"]):
        assert main([*arguments, str(PROTOCOL)]) != 0
        out, error = capsys.readouterr()
        [line] = [line for line in (out + error).splitlines() if "E1" in line]
        assert line.endswith(
            "three_levers.protocol.yaml:4:1: error E121: There is no key 'bandit', and no arena. Add 'arena: ...'. "
            "If a plugin's family reads such files, install the plugin (only pytest knows a family in a "
            "conftest.py)."
        )


def test_what_it_cannot_do_is_said(command: Command) -> None:
    text = command("cheesebench", "render", "three_levers", code=2)
    assert "'three_levers' is a bandit, which has no arena." in text
    text = command(
        "pytest",
        "--model",
        "random",
        "--protocols",
        "three_levers",
        "--control",
        "cue-off",
        code=1,
    )
    assert "'three_levers' is a bandit, which has neither studies nor controls." in text
    assert "only protocols with an arena declare references" in command(
        "cheesebench", "reference", "three_levers", code=2
    )
    assert "'three_levers': protocols of the family 'bandit' have no audit." in command(
        "cheesebench", "audit", "three_levers", code=2
    )


def test_a_run_cannot_be_read_without_the_plugin(
    command: Command, tmp_path: Path
) -> None:
    given = (
        "--protocols",
        "three_levers",
        "--design",
        "smoke",
        "--cheese-run-id",
        "run",
        "--cheese-exit-zero",
    )
    command("pytest", "--model", "random", *given)
    with RunLog.open_read_only(tmp_path / "results" / "run") as log:
        (plan,) = log.plans()
        with pytest.raises(
            Exception, match="three_levers' cannot be read as in the run"
        ):
            recorded_paradigm(log, PluginManager(entry_points=False), plan)
