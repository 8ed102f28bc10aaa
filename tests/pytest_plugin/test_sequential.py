"""The sequential design in a pytest session: what it says, and that nothing that happens on the way changes it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from cheesebench.chat import ModelAgent  # noqa: F401 - kept loaded, see conftest.py
from cheesebench.cli import main
from cheesebench.errors import RunLogError
from cheesebench.experiment.designs import COHORT
from cheesebench.experiment.log import RunLog
from cheesebench.statistics import Verdict, judge
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.pytest_plugin.conftest import corridor

LAB = ("lab", "-k", "east or west")


def turning(call: Call) -> str:
    """Get nowhere, each subject in its own way."""
    letters = random.Random(call.body.get("seed", 0)).choices(["ROTATE_LEFT", "ROTATE_RIGHT", "STAY"], k=2)
    return f"ACTIONS: {', '.join(letters)}"


def options(server: FakeServer, *others: str, run: str = "one") -> tuple[str, ...]:
    design = ("--design=sequential", "--subjects=60", "--cheese-ahead=never")
    return ("--model", "openai/tiny", "--base-url", server.base_url, "--cheese-run-id", run, *design, *others, *LAB)


def dump(project: pytest.Pytester, run: str) -> list[str]:
    with RunLog.open_read_only(project.path / "results" / run) as log:
        return list(log.dump())


def test_reports_speak_of_looks(project: pytest.Pytester) -> None:
    with FakeServer(turning) as server:
        result = project.runpytest(*options(server, "--junitxml=junit.xml", "--cheese-html=page.html"))
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*stopped at 14 of at most 60 subjects*"])
    junit = (project.path / "junit.xml").read_text(encoding="utf-8")
    for name, value in (("look", 14), ("look_most", 60), ("look_standing", "FAIL"), ("truncated", "true")):
        assert f'name="cheesebench.{name}" value="{value}"' in junit
    report = (project.path / "results/one/report.md").read_text(encoding="utf-8")
    assert "stopped at 14 of at most 60 subjects" in report
    assert "settled" in report
    assert "stopped at 14 of at most 60 subjects" in (project.path / "page.html").read_text(encoding="utf-8")


def test_a_language_model_is_judged_at_looks_unless_another_design_is_named(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--view=ascii_2d")
    with FakeServer(turning) as server:
        both = ("--model=openai/tiny,walker", "--base-url", server.base_url, "--cheese-run-id=one", *LAB)
        project.runpytest(*both)
    with RunLog.open_read_only(project.path / "results/one") as log:
        found = {(plan.model, plan.design, plan.subjects, plan.looks[:1]) for plan in log.plans()}
        assert log.manifest["options"]["design"] is None
    assert found == {("openai/tiny", "sequential", 75, (6,)), ("walker", "cohort", COHORT, ())}


def test_two_workers_come_to_the_same(project: pytest.Pytester) -> None:
    with FakeServer(turning) as server:
        project.runpytest(*options(server, run="alone"))
        project.runpytest_inprocess(*options(server, "-n2", run="both")).assert_outcomes(failed=2)
    assert dump(project, "alone") == dump(project, "both")


def test_a_killed_run_is_continued_in_its_look(project: pytest.Pytester) -> None:
    with FakeServer(turning) as server:
        project.runpytest(*options(server, run="undisturbed"))
        paid = server.count

    def script(call: Call) -> str | Answer:
        return Answer(fault="hang") if call.number > paid // 3 else turning(call)

    with FakeServer(script) as server:
        command = [sys.executable, "-m", "pytest", *options(server)]
        with subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL, env=dict(os.environ)) as process:
            while _recorded(project) < paid // 3 and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
    with FakeServer(turning) as server:
        again = ("--model", "openai/tiny", "--base-url", server.base_url, "--resume", "one")
        result = project.runpytest(*again, "--design=sequential", "--subjects=60", *LAB)
        result.assert_outcomes(failed=2)
        result.stdout.no_fnmatch_line("*unfinished*")
        assert server.count <= paid, "what was recorded is not asked for again"
    assert dump(project, "one") == dump(project, "undisturbed")


def _recorded(project: pytest.Pytester) -> int:
    try:
        with RunLog.open_read_only(project.path / "results" / "one") as log:
            return log.calls.totals().calls
    except RunLogError:  # it is just being made
        return 0


@pytest.mark.parametrize(("others", "subjects"), [((), 14), (("--cheese-exit-zero",), 10)])
def test_a_cell_goes_on_until_what_is_asked_of_it_is_decided(
    project: pytest.Pytester, others: tuple[str, ...], subjects: int
) -> None:
    """A model that fails throughout is worse than one that never did by the look at ten, and fails at the next one."""
    with FakeServer(turning) as server:
        project.runpytest(*options(server, run="old"))
        assert main(["bless", "old", "main"]) == 0
        path = project.path / "baselines" / "main.json"
        content = json.loads(path.read_text())
        for cell in content["cells"]:
            cell["subjects"] = [[n, 20, 20, 0, f"mark {n}"] for n in range(12)]
        path.write_text(json.dumps(content))
        compare = ("--cheese-compare=main", "--compare-fail=worse")
        result = project.runpytest(*options(server, *compare, *others, run="new"))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*worse than main*"])
    with RunLog.open_read_only(project.path / "results/new") as log:
        assert {len({record.subject for record in log.trials(plan)}) for plan in log.plans()} == {subjects}


def test_a_budget_goes_to_the_nearest_verdict_whatever_the_number_of_workers(project: pytest.Pytester) -> None:
    """Long cells come first in the order of the tests; the budget would not do for one of them."""
    lab = project.path / "lab"
    for name, trials in (("a_long", 60), ("b_long", 60), ("y_short", 5), ("z_short", 5)):
        (lab / f"{name}.protocol.yaml").write_text(corridor(name, trials=trials), encoding="utf-8")
    cells = ("lab", "-k", "long or short")
    with FakeServer(turning) as server:
        short = (*options(server, run="free")[:-3], "lab", "-k", "short")
        project.runpytest(*short).assert_outcomes(failed=2)
        with RunLog.open_read_only(project.path / "results/free") as log:
            totals = log.calls.totals()
        tokens = round(1.3 * (totals.prompt + totals.completion))
        command = (*options(server, "-n2", f"--max-tokens={tokens}", run="both")[:-3], *cells)
        project.runpytest_inprocess(*command).assert_outcomes(failed=2)
    with RunLog.open_read_only(project.path / "results/both") as log:
        decided = {plan.protocol for plan in log.plans() if judge(plan, log.trials(plan)).verdict is Verdict.FAIL}
        spent = log.calls.totals()
    assert decided == {"y_short", "z_short"}
    assert spent.prompt + spent.completion <= tokens + 2000
