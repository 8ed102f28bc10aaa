"""Options, ids and last lines in a session that other plugins share."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from cheesebench.testing.fake_server import Answer, Call, FakeServer

OTHERS = """
def pytest_addoption(parser):
    parser.addoption("--seed", type=int)
    parser.addoption("--base-url", "--timeout-of-theirs")
"""


def test_a_short_option_of_somebody_else_is_refused_by_name(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(OTHERS)
    given = ("--model=random", "--design=smoke", "--protocols=t_maze", "--exit-zero")
    for option in (["--seed", "7"], ["--base-url=http://127.0.0.1:9/v1"]):
        result = pytester.runpytest(*given, *option)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        name = option[0].partition("=")[0]
        long = name.replace("--", "--cheese-")
        result.stderr.fnmatch_lines(
            [f"ERROR: {name} belongs to another plugin *: write {long}. *"]
        )
    result = pytester.runpytest(*given, "--seed=7", "--cheese-seed=8")
    result.stdout.fnmatch_lines(["*seed 8*"])
    assert result.ret == 0


def test_an_id_that_was_printed_can_be_typed(pytester: pytest.Pytester) -> None:
    given = ("--model=random", "--design=smoke", "--exit-zero")
    one = "cheesebench::t_maze[ascii_2d-random]"
    for name in (one, "cheesebench::t_maze"):
        result = pytester.runpytest(*given, "--collect-only", "-q", name)
        assert result.ret == 0
        assert [
            line for line in result.outlines if line.startswith("cheesebench::")
        ] == [one]
    result = pytester.runpytest(*given, one.replace("ascii_2d", "ascii_3d"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"Did you mean '{one}'?" in result.stderr.str()
    result = pytester.runpytest(*given, "cheesebench::t_mase[ascii_2d-random]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*Did you mean 't_maze'*"])


@pytest.mark.parametrize("given", [(), ("-x",), ("-x", "-n1")])
def test_the_last_line_after_pytest_timeout(
    project: pytest.Pytester, given: tuple[str, ...]
) -> None:
    pytest.importorskip("pytest_timeout")

    def script(call: Call) -> str | Answer:
        return "ACTIONS: STAY" if call.number == 0 else Answer(fault="hang")

    with FakeServer(script) as server:
        model = ("--model=openai/tiny", "--base-url", server.base_url, "lab")
        result = project.runpytest(*model, *given, "-k", "east", "--timeout=2")
    if "-n1" not in given:  # There, pytest-xdist interrupts the run after one failure.
        last = "Exit code 1: 1 protocol stopped by another plugin."
        result.stdout.fnmatch_lines([last])
    result.stdout.fnmatch_lines(["ERROR lab/east*Timeout (>*"])
    assert "INTERNALERROR" not in result.stdout.str()


def test_the_last_line_after_the_debugger(project: pytest.Pytester) -> None:
    given = ("--model=statue", "lab", "-k", "east", "--pdb", "--pdbcls=quitter:Quitter")
    project.makepyfile(
        quitter="""
        import pdb
        class Quitter(pdb.Pdb):
            def interaction(self, *_):
                self.set_quit()
        """
    )
    result = project.runpytest_subprocess(*given)
    assert "Traceback" not in result.stderr.str()
    assert "To continue" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
@pytest.mark.parametrize("shows", ["--setup-plan", "--setup-only", "--collect-only"])
def test_what_only_shows_tests_asks_no_model(
    project: pytest.Pytester, shows: str, workers: tuple[str, ...]
) -> None:
    with FakeServer("ACTIONS: FORWARD") as server:
        given = ("--model=openai/tiny", "--cheese-base-url", server.base_url, "lab")
        result = project.runpytest(*given, "-k", "east", shows, *workers)
    assert result.ret == 0
    assert server.count == 0
    assert not list(project.path.glob("results/*")), "there is no run"
    assert "Exit code" not in result.stdout.str()


def test_a_test_that_is_repeated_has_each_property_once_and_fails_as_a_test_does(
    project: pytest.Pytester,
) -> None:
    """Plugins repeat a failed test (pytest-rerunfailures), and tell a failed test from
    a broken one by AssertionError (Allure).
    """
    project.makepyfile(
        again="""
        from pathlib import Path
        from _pytest.runner import runtestprotocol
        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, nextitem=nextitem, log=False)
            runtestprotocol(item, nextitem=nextitem)
            return True
        def pytest_exception_interact(call):
            kind = type(call.excinfo.value)
            with Path("kinds.txt").open("a") as file:
                print(kind.__name__, issubclass(kind, AssertionError), file=file)
        """
    )
    project.syspathinsert()
    given = ("-p", "again", "--model=statue,breaker", "lab", "-k", "east")
    project.runpytest(*given, "--junitxml=junit.xml")
    cases = list(ElementTree.parse(project.path / "junit.xml").iter("testcase"))
    assert len(cases) == 2
    for case in cases:
        names = [one.attrib["name"] for one in case.iter("property")]
        assert len(names) == len({*names}) > 9
    kinds = (project.path / "kinds.txt").read_text().splitlines()
    assert {*kinds} == {"VerdictError True", "NotMeasuredError False"}
