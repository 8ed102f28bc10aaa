"""Verdicts as outcomes of tests: in the terminal, in JUnit, in the exit status."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest


def cases(path: Path) -> dict[str, ET.Element]:
    return {str(case.get("name")): case for case in ET.parse(path).iter("testcase")}


def properties(case: ET.Element) -> dict[str, str]:
    return {str(p.get("name")): str(p.get("value")) for p in case.iter("property")}


def test_pass_and_inconclusive_are_green(project: pytest.Pytester) -> None:
    result = project.runpytest("--model", "walker", "lab", "-v")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "cheesebench: walker; view ascii_2d; design cohort; seed 0 (drawn)",
            "lab/east.protocol.yaml::east[[]ascii_2d-walker[]] PASS*",
            "lab/few.protocol.yaml::few[[]ascii_2d-walker[]] INCONCLUSIVE*",
            "lab/west.protocol.yaml::west[[]ascii_2d-walker[]] PASS*",
            "*= cheesebench =*",
            "[?] INCONCLUSIVE  few *",
            "*6 subjects (1 distinct) x * trials (* valid)*",
            "Run: results/*",
            "*= 2 passed, 1 inconclusive in *",
        ]
    )


def test_letters(project: pytest.Pytester) -> None:
    result = project.runpytest("--model", "statue", "lab")
    result.stdout.fnmatch_lines(
        ["lab/east.protocol.yaml F*", "lab/few.protocol.yaml [?F]*"]
    )


def test_a_failure_explains_itself_and_shows_a_film(project: pytest.Pytester) -> None:
    result = project.runpytest(
        "--model", "statue", "lab/east.protocol.yaml", "--cheese-film"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*_ east[[]ascii_2d-statue[]] _*",
            "FAIL: 0 % of trials succeed, against 60 % (mouse, declared)*",
            "  n           6 subjects x 20 trials (120/120 valid)",
            "  rate        0 %, 95 % interval 0 % to *",
            "  reference   60 % (mouse, nobody, made up)",
            "  margin      10 points",
            "  difference  -60 points, one-sided 5 % bounds *",
            "A failed trial: subject 0, trial 1, timeout after 5 steps.",
            "  0 start   1 STAY*",
            "  #→..#     #→..#*",
            "*1 failed in *",
        ]
    )
    assert "Traceback" not in str(result.stdout)
    assert ".py:" not in str(result.stdout)


def test_a_failure_is_one_line_with_the_difference_and_the_margin(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest("--model", "statue", "--cheese-run-id=one", "lab")
    lines = result.stdout.lines
    begin = next(
        number
        for number, line in enumerate(lines)
        if "_ east[ascii_2d-statue] _" in line
    )
    assert re.fullmatch(
        r"FAIL: rate 0 %, rodent 60 %, difference -60 \(-60 to -\S+\), margin -10\.",
        lines[begin + 1],
    )
    assert "_ few[ascii_2d-statue] _" in lines[begin + 2]
    # The verdicts are in the table, so pytest must not list them again.
    assert "short test summary" not in str(result.stdout)
    assert "Exit code 1: 3 protocols failed." in lines


def test_nine_failures_fit_on_a_page(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest(
        "--model", "random", "--design=cohort", "--view=ascii_2d", "--seed=0"
    )
    result.assert_outcomes(failed=9)
    assert len(result.stdout.lines) <= 90


def test_the_reason_of_an_inconclusive_verdict_is_not_cut(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = project.runpytest("--model", "walker", "lab/few.protocol.yaml", "-v")
    said = " ".join(str(result.stdout).partition("INCONCLUSIVE")[2].split())
    reason = said.partition("[100%]")[2].partition("==")[0].strip()
    assert reason.startswith("100 % of trials succeed, against 90 % (mouse, declared)")
    assert reason.endswith(".")


def judged_late(project: pytest.Pytester) -> None:
    """Write a protocol whose first two trials are not judged."""
    text = (
        (project.path / "lab" / "east.protocol.yaml")
        .read_text(encoding="utf-8")
        .replace("east", "late")
    )
    text = re.sub(
        "only: .*",
        "easy: {trials: 2}\n  hard: {trials: 18}\nestimand: {block: hard}",
        text,
    )
    (project.path / "late.protocol.yaml").write_text(text, encoding="utf-8")


def test_the_film_is_of_a_trial_that_is_judged(project: pytest.Pytester) -> None:
    judged_late(project)
    result = project.runpytest("--model", "statue", "late.protocol.yaml", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["A failed trial: subject 0, trial 3, timeout after 5 steps."]
    )


def test_smoke_says_that_no_trial_is_judged_and_why(project: pytest.Pytester) -> None:
    judged_late(project)
    result = project.runpytest(
        "--model", "walker", "--design", "smoke", "late.protocol.yaml"
    )
    assert result.ret == pytest.ExitCode.OK
    said = " ".join(str(result.stdout).split())
    assert "none of whose trials count" in said
    assert (
        "6 subjects x up to 2 trials were run, but none of the trials that count"
        in said
    )
    assert "the block 'hard' was not reached" in said


def test_inconclusive_can_be_asked_to_fail(project: pytest.Pytester) -> None:
    result = project.runpytest("--model", "walker", "--inconclusive=fail", "lab")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "Exit code 1: 1 protocol inconclusive (counted as failed: --inconclusive=fail).",
            "*1 failed, 2 passed in *",
        ]
    )


def test_a_design_that_claims_nothing_does_not_fail(project: pytest.Pytester) -> None:
    result = project.runpytest(
        "--model", "statue", "--design", "smoke", "--inconclusive=fail", "lab"
    )
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*= 3 inconclusive in *"])


def test_what_could_not_be_run_is_an_error_and_says_why(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest(
        "--model", "breaker", "lab/east.protocol.yaml", "--junitxml=junit.xml"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of east*",
            "108 trials of 120 could not be run: stopped in trial 3: *the line is \\x1b[[]31mdead*",
            "This says nothing about the model. Fix the cause, then run the rest with --resume *",
            "*= 1 error in *",
        ]
    )
    assert "Traceback" not in str(result.stdout)
    assert "\x1b[31mdead" not in str(result.stdout)
    case = cases(project.path / "junit.xml")["east[ascii_2d-breaker]"]
    assert case.find("error") is not None
    assert case.find("failure") is None
    assert properties(case)["cheesebench.missing"] == "108"


def test_junit_has_the_numbers(project: pytest.Pytester) -> None:
    project.runpytest("--model", "walker", "--seed", "7", "lab", "--junitxml=junit.xml")
    path = project.path / "junit.xml"
    found = cases(path)
    east = properties(found["east[ascii_2d-walker]"])
    assert (east["cheesebench.model"], east["cheesebench.rate"]) == ("walker", "1")
    assert (east["cheesebench.verdict"], east["cheesebench.reference"]) == (
        "PASS",
        "0.6",
    )
    assert len(east["cheesebench.protocol_sha256"]) == 64
    skipped = found["few[ascii_2d-walker]"].find("skipped")
    assert skipped is not None
    assert str(skipped.get("message")).startswith(
        "INCONCLUSIVE: 100 % of trials succeed"
    )
    suite = ET.parse(path).find(".//testsuite/properties")
    assert suite is not None
    assert properties(suite)["cheesebench.options.seed"] == "7"
    assert "cheesebench.versions.cheesebench" in properties(suite)


def test_exit_zero_forgives_verdicts_and_nothing_else(project: pytest.Pytester) -> None:
    forgiven = project.runpytest("--model", "statue", "--cheese-exit-zero", "lab")
    assert forgiven.ret == pytest.ExitCode.OK
    assert "failed" in forgiven.parseoutcomes()
    error = project.runpytest("--model", "breaker", "--cheese-exit-zero", "lab")
    assert error.ret == pytest.ExitCode.TESTS_FAILED
    project.makepyfile(test_ordinary="def test_ordinary(): assert False")
    ordinary = project.runpytest(
        "--model", "statue", "--cheese-exit-zero", "lab", "test_ordinary.py"
    )
    assert ordinary.ret == pytest.ExitCode.TESTS_FAILED


def test_reports_are_written(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_summary = project.path / "summary.md"
    step_summary.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step_summary))
    project.runpytest(
        "--model", "walker", "lab", "--cheese-run-id=one", "--cheese-markdown=copy.md"
    )
    report = (project.path / "results" / "one" / "report.md").read_text(
        encoding="utf-8"
    )
    assert "walker" in report
    assert (project.path / "copy.md").read_text(encoding="utf-8") == report
    assert step_summary.read_text(encoding="utf-8") == "before\n" + report


def test_observers_of_a_conftest_are_called(project: pytest.Pytester) -> None:
    project.makepyfile(
        observer="""
        def cheesebench_trial_finished(record):
            print(record.outcome, file=open("trials.txt", "a"))

        def cheesebench_run_finished(summary):
            print(summary.cells[0].verdict, file=open("run.txt", "a"))
        """
    )
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write("\nfrom observer import *\n")
    project.syspathinsert()
    project.runpytest("--model", "walker", "lab/east.protocol.yaml")
    assert (project.path / "trials.txt").read_text() == "found\n" * 120
    assert (project.path / "run.txt").read_text() == "PASS\n"


def test_the_page_is_written_where_it_is_wanted(project: pytest.Pytester) -> None:
    result = project.runpytest("--model", "statue", "lab", "--cheese-html=page.html")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*= cheesebench =*", "Page: page.html"])
    page = (project.path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("watch a failure") == 3


def test_the_exit_code_is_put_down_to_what_failed_in_this_session(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(test_own="def test_own(): assert 0")
    given = ("--model=breaker", "--protocols=lab")

    def why(*more: str) -> str:
        result = project.runpytest_inprocess(*given, *more)
        return " ".join(" ".join(result.outlines).split()).rpartition("Exit code ")[2]

    assert why("-k", "east", "--control=naive").startswith(
        "1: 2 cells could not be measured (OSError: the line is "
    )
    assert why("-k", "east or west", "--run-id=a").startswith(
        "1: 2 protocols could not be measured (OSError: the line is "
    )
    both = why("test_own.py", "-k", "own or east", "--resume=a")
    assert "(conftest.py:25)); another test failed." in both
