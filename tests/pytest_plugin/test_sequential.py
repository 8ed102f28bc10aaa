"""The sequential design in a pytest session: its reports, and its independence from
disturbances.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from cheesebench.cli import main
from cheesebench.errors import RunLogError
from cheesebench.experiment.cells import COHORT
from cheesebench.experiment.log import RunLog
from cheesebench.records import MOST_SUBJECTS
from cheesebench.statistics import Verdict, judge
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.pytest_plugin.conftest import corridor

LAB = ("lab", "-k", "east or west")


def turning(call: Call) -> str:
    """Get nowhere, each subject in its own way."""
    letters = random.Random(call.body.get("seed", 0)).choices(
        ["ROTATE_LEFT", "ROTATE_RIGHT", "STAY"], k=2
    )
    return f"ACTIONS: {', '.join(letters)}"


def options(server: FakeServer, *others: str, run: str = "one") -> tuple[str, ...]:
    design = ("--design=sequential", "--subjects=60", "--cheese-ahead=never")
    return (
        "--model",
        "openai/tiny",
        "--base-url",
        server.base_url,
        "--cheese-run-id",
        run,
        *design,
        *others,
        *LAB,
    )


def dump(project: pytest.Pytester, run: str) -> list[str]:
    with RunLog.open_read_only(project.path / "results" / run) as log:
        return list(log.dump())


def test_reports_speak_of_the_evidence(project: pytest.Pytester) -> None:
    with FakeServer(turning) as server:
        result = project.runpytest(
            *options(server, "--junitxml=junit.xml", "--cheese-html=page.html")
        )
    result.assert_outcomes(failed=2)
    junit = (project.path / "junit.xml").read_text(encoding="utf-8")
    for name, value in (
        ("evidence_goal", "20"),
        ("subjects_most", "60"),
        ("stopped_by_result", "true"),
    ):
        assert f'name="cheesebench.{name}" value="{value}' in junit
    for shown in ("results/one/report.md", "page.html"):
        text = (project.path / shown).read_text(encoding="utf-8")
        assert "of at most 60 subjects" in text
        assert "stopped by its result" in text


def test_a_language_model_stops_when_it_is_decided_unless_another_design_is_named(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--view=ascii_2d")
    with FakeServer(turning) as server:
        both = (
            "--model=openai/tiny,walker",
            "--base-url",
            server.base_url,
            "--cheese-run-id=one",
            *LAB,
        )
        project.runpytest(*both)
    with RunLog.open_read_only(project.path / "results/one") as log:
        found = {
            (plan.model, plan.design, plan.subjects, plan.sequential)
            for plan in log.plans()
        }
        assert log.manifest["options"]["design"] is None
    assert found == {
        ("openai/tiny", "sequential", MOST_SUBJECTS, True),
        ("walker", "cohort", COHORT, False),
    }


def test_verdicts_of_all_cells_at_once_take_more_evidence(
    project: pytest.Pytester,
) -> None:
    with FakeServer(turning) as server:
        project.runpytest(*options(server, "--familywise"))
    with RunLog.open_read_only(project.path / "results/one") as log:
        assert [plan.goal for plan in log.plans()] == [40, 40]


def test_a_killed_run_is_continued_in_its_set(project: pytest.Pytester) -> None:
    with FakeServer(turning) as server:
        project.runpytest(*options(server, run="undisturbed"))
        paid = server.count

    def script(call: Call) -> str | Answer:
        return Answer(fault="hang") if call.number > paid // 3 else turning(call)

    with FakeServer(script) as server:
        command = [sys.executable, "-m", "pytest", *options(server), "--seed=0"]
        with subprocess.Popen(
            command, cwd=project.path, stdout=subprocess.DEVNULL, env=dict(os.environ)
        ) as process:
            while _recorded(project) < paid // 3 and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
    with FakeServer(turning) as server:
        again = (
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            "--resume",
            "one",
        )
        result = project.runpytest(*again, "--design=sequential", "--subjects=60", *LAB)
        result.assert_outcomes(failed=2)
        result.stdout.no_fnmatch_line("*unfinished*")
        assert server.count <= paid, "what was recorded is not asked for again"
    assert dump(project, "one") == dump(project, "undisturbed")


def _recorded(project: pytest.Pytester) -> int:
    try:
        with RunLog.open_read_only(project.path / "results" / "one") as log:
            return log.calls.totals().calls
    except RunLogError:  # the log is just being made
        return 0


def test_a_run_that_is_compared_has_a_fixed_number_of_subjects(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PYTEST_ADDOPTS", "--view=ascii_2d -p no:hypothesispytest -p no:anyio"
    )
    with FakeServer(turning) as server:
        given = (
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            "lab",
            "-k",
            "east",
        )
        project.runpytest(*given, "--cheese-run-id=old", "--design=cohort")
        assert main(["bless", "old", "main"]) == 0
        compare = (
            "--cheese-compare=main",
            "--compare-fail=worse,undecided",
            "--cheese-exit-zero",
        )
        result = project.runpytest(*given, *compare, "--cheese-run-id=new")
        calls = server.count
        refused = project.runpytest(*given, *compare, "--design=sequential")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*fixed beforehand. Start a run with --design coho*"])
    assert server.count == calls, "nothing is spent"
    assert result.ret == 0, "the same replies, so no loss"
    result.stdout.fnmatch_lines(["*no loss of 30 points*"])
    with RunLog.open_read_only(project.path / "results/new") as log:
        assert {(plan.design, plan.subjects) for plan in log.plans()} == {
            ("cohort", COHORT)
        }


def test_money_that_ends_twice_changes_nothing(project: pytest.Pytester) -> None:
    """A run that its budget stops and that is continued twice ends with the verdicts of
    an undisturbed one.
    """
    with FakeServer(turning) as server:
        project.runpytest(*options(server, run="undisturbed"))
        with RunLog.open_read_only(project.path / "results/undisturbed") as log:
            totals = log.calls.totals()
            plain = [judge(plan, log.trials(plan)) for plan in log.plans()]
        whole = totals.prompt + totals.completion
        project.runpytest(*options(server, f"--max-tokens={whole // 3}"))
        model = (
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            "--resume",
            "one",
        )
        again = (*model, "--design=sequential", "--subjects=60", *LAB)
        project.runpytest(*again, f"--max-tokens={2 * whole // 3}")
        project.runpytest(*again, f"--max-tokens={10 * whole}").assert_outcomes(
            failed=2
        )
    with RunLog.open_read_only(project.path / "results/one") as log:
        found = [judge(plan, log.trials(plan)) for plan in log.plans()]
    assert [(one.verdict, one.game and one.game.decided) for one in found] == [
        (one.verdict, one.game and one.game.decided) for one in plain
    ]


def test_a_budget_goes_to_the_nearest_verdict_whatever_the_number_of_workers(
    project: pytest.Pytester,
) -> None:
    """Long cells come first in the order of the tests, but the budget would not suffice
    for one of them.
    """
    lab = project.path / "lab"
    for name, trials in (
        ("a_long", 60),
        ("b_long", 60),
        ("y_short", 5),
        ("z_short", 5),
    ):
        (lab / f"{name}.protocol.yaml").write_text(
            corridor(name, trials=trials), encoding="utf-8"
        )
    cells = ("lab", "-k", "long or short")
    with FakeServer(turning) as server:
        short = (*options(server, run="free")[:-3], "lab", "-k", "short")
        project.runpytest(*short).assert_outcomes(failed=2)
        with RunLog.open_read_only(project.path / "results/free") as log:
            totals = log.calls.totals()
        tokens = round(1.3 * (totals.prompt + totals.completion))
        command = (
            *options(server, "-n2", f"--max-tokens={tokens}", run="both")[:-3],
            *cells,
        )
        project.runpytest_inprocess(*command).assert_outcomes(failed=2)
    with RunLog.open_read_only(project.path / "results/both") as log:
        decided = {
            plan.protocol
            for plan in log.plans()
            if judge(plan, log.trials(plan)).verdict is Verdict.FAIL
        }
        spent = log.calls.totals()
    assert decided == {"y_short", "z_short"}
    assert spent.prompt + spent.completion <= tokens + 2000
