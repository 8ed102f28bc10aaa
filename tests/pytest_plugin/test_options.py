"""A plain pytest does not notice us, our option names give way, and wrong options are one clear line."""

from __future__ import annotations

import pytest

from cheesebench.experiment.log import RunLog

#: What only a session with a model may pay for.
HEAVY = (
    "numpy",
    "scipy",
    "yaml",
    "pydantic",
    "gymnasium",
    "sqlite3",
    "statsmodels",
    "cheesebench.pytest_session",
)


def test_plain_pytest_loads_nothing_of_ours(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import sys

        def test_modules():
            assert [name for name in {HEAVY!r} if name in sys.modules] == []
            ours = sorted(name for name in sys.modules if name.startswith("cheesebench"))
            assert ours == ["cheesebench", "cheesebench.gymnasium_plugin", "cheesebench.pytest_plugin"]
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_plain_pytest_looks_as_ever(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_passes(): pass")
    pytester.makefile(".protocol.yaml", maze="this: is not read")

    def lines(*options: str) -> list[str]:
        found = pytester.runpytest("-p", "no:cacheprovider", *options).outlines
        return [line for line in found if " passed in " not in line and not line.startswith("plugins:")]

    assert lines() == lines("-p", "no:cheesebench")
    assert not (pytester.path / "results").exists()


def test_switched_off_the_options_are_unknown(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("-p", "no:cheesebench", "--model=random")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --model=random*"])


@pytest.mark.parametrize("name", ["model", "view", "design", "subjects", "seed", "edition", "resume"])
def test_a_conftest_keeps_its_own_option(pytester: pytest.Pytester, name: str) -> None:
    pytester.makeconftest(
        f"""
        def pytest_addoption(parser):
            parser.addoption("--{name}", default="none")
        """
    )
    pytester.makepyfile(
        f"""
        def test_theirs(request):
            assert request.config.getoption("{name}") == "7"
            assert request.config.getoption("cheesebench_{name}") is None
        """
    )
    pytester.runpytest(f"--{name}", "7").assert_outcomes(passed=1)


@pytest.mark.parametrize("declaration", ["action='store_true'", "type=int, required=False", "choices=['a', 'b']"])
def test_an_option_of_another_plugin_stays_theirs_whatever_its_kind(
    pytester: pytest.Pytester, declaration: str
) -> None:
    pytester.makepyfile(
        theirs=f"""
        def pytest_addoption(parser):
            parser.getgroup("theirs").addoption("--model", {declaration})
        """
    )
    pytester.syspathinsert()
    helped = pytester.runpytest("-p", "theirs", "--help")
    assert helped.ret == 0
    helped.stdout.fnmatch_lines(["*--cheesebench-model=NAME", "*--view=NAME, --cheesebench-view=NAME*"])
    ours = pytester.runpytest("-p", "theirs", "--cheesebench-model=nosuch")
    assert ours.ret == pytest.ExitCode.USAGE_ERROR
    ours.stderr.fnmatch_lines(["ERROR: There is no model 'nosuch'.*"])


def test_our_options_need_a_model(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--design", "smoke")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --design has no effect without a model: add --model NAME*"])
    assert "Traceback" not in str(result.stderr)


def test_what_a_project_sets_for_all_runs_waits_for_a_model(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = --design=smoke --inconclusive=fail\n")
    pytester.makepyfile("def test_passes(): pass")
    pytester.runpytest().assert_outcomes(passed=1)
    header = pytester.runpytest("--model", "random", "test_what_a_project_sets_for_all_runs_waits_for_a_model.py")
    header.stdout.fnmatch_lines(["cheesebench: random; view ascii_2d; design smoke; seed 0"])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("--model wlaker", "There is no model 'wlaker'. Did you mean 'walker'? Known: *"),
        ("--model walker --view ascii_2", "There is no view 'ascii_2'. Did you mean 'ascii_2d'? Known: *"),
        ("--model walker --design cohrt", "There is no design 'cohrt'. Did you mean 'cohort'? Known: *"),
        ("--model walker --edition papr", "There is no edition 'papr'. Did you mean 'paper'? Known: *"),
        ("--model walker --protocols nosuch", "There is no protocol 'nosuch'.*"),
        ("--model walker --protocols empty", "--protocols empty: there is no file *.protocol.yaml *"),
        ("--model walker --subjects 0", "--subjects 0: a run needs at least one subject. *"),
        ("--model walker --seed -1", "--seed -1: the smallest number that makes sense is 0."),
        ("--model walker --cheese-processes 0", "--cheese-processes 0: the smallest *"),
        ("--model walker --resume a --cheese-run-id b", "There is no run 'a' in *"),
        ("--model walker --cheese-run-id a/b", "--cheese-run-id 'a/b' cannot name a run. *"),
        ("--model walker --cheese-html no/where.html", "--cheese-html no/where.html cannot be written.*"),
        ("--model walker --cheese-markdown no/where.md", "--cheese-markdown no/where.md cannot be written.*"),
        ("--model walker --cheese-results conftest.py lab", "*conftest.py is not a directory*"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_4(project: pytest.Pytester, options: str, line: str) -> None:
    project.mkdir("empty")
    result = project.runpytest(*options.split())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in str(result.stdout) + str(result.stderr)
    assert len([text for text in result.errlines if text.strip() and not text.startswith("  ")]) == 1, "but long lists"
    result.stderr.fnmatch_lines([f"ERROR: {line}"])


def test_the_papers_design_runs_the_three_text_views(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")
    result = project.runpytest("--model", "walker", "--design", "paper", "--cheese-run-id", "one", "lab", "-k", "east")
    assert result.parseoutcomes()["passed"] == 3
    with RunLog.open_read_only(project.path / "results/one") as log:
        assert [plan.view for plan in log.plans()] == ["ascii_2d", "ascii_2d_fpv", "ascii_3d"]
    report = (project.path / "results/one/report.md").read_text(encoding="utf-8")
    assert "## Best of views: walker" in report
    assert "cross-fitted" in report
