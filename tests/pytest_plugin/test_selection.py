"""Collection: items, their names, and the effect of pytest's own options."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cheesebench.options import VARIABLES
from cheesebench.pytest_session.exit_status import NOTHING_SELECTED, REFUSED
from tests.pytest_plugin.conftest import corridor

BROKEN = "version: 1\nparadigm: broken\nstrat: {}\n"


def names(result: pytest.RunResult) -> list[str]:
    """Return the node ids of ``--collect-only -q``."""
    return result.outlines[: result.outlines.index("")]


def collected(project: pytest.Pytester, *options: str) -> list[str]:
    return names(project.runpytest("--collect-only", "-q", *options))


def bare(name: str) -> str:
    """Return the protocol of a test without a file."""
    assert name.startswith("cheesebench::")
    return name.removeprefix("cheesebench::").removesuffix("[ascii_2d-walker]")


def test_without_paths_the_paper_s_protocols_and_only_them(
    project: pytest.Pytester,
) -> None:
    project.makepyfile("def test_not_collected(): pass")
    project.makeini("[pytest]\ntestpaths = lab\n")
    found = collected(project, "--model", "walker")
    assert len(found) == 9
    assert all(name.endswith("[ascii_2d-walker]") and "/" not in name for name in found)
    tree = project.runpytest("--collect-only", "--model", "walker")
    tree.stdout.fnmatch_lines(
        ["<CellItem *[[]ascii_2d-walker[]]>", "*= 9 tests collected in *"]
    )


def test_protocols_of_a_directory_a_file_and_by_name(project: pytest.Pytester) -> None:
    built_in = bare(collected(project, "--model", "walker")[0])
    found = collected(
        project, "--model=walker", "--protocols=lab", f"--protocols={built_in}"
    )
    assert [bare(name) for name in found] == ["east", "few", "west", built_in]
    one_twice = collected(
        project, "--model=walker", "--protocols=lab/few.protocol.yaml", "lab"
    )
    assert one_twice == [
        "cheesebench::few[ascii_2d-walker]",
        "lab/east.protocol.yaml::east[ascii_2d-walker]",
        "lab/west.protocol.yaml::west[ascii_2d-walker]",
    ]


def test_a_file_that_lies_here_is_found_by_its_name(project: pytest.Pytester) -> None:
    east = (project.path / "lab" / "east.protocol.yaml").read_text(encoding="utf-8")
    (project.path / "near.protocol.yaml").write_text(
        east.replace("east", "near"), encoding="utf-8"
    )
    short = "version: 1\nextends: near\nparadigm: near\nedition: short\n"
    (project.path / "near.short.protocol.yaml").write_text(short, encoding="utf-8")
    assert collected(project, "--model=walker", "--protocols=near") == [
        "cheesebench::near[ascii_2d-walker]"
    ]
    for options in (
        ["--protocols=near@short"],
        ["--protocols=near", "--edition=short"],
    ):
        assert collected(project, "--model=walker", *options) == [
            "cheesebench::near@short[ascii_2d-walker]"
        ]
    nowhere = project.runpytest(
        "--collect-only", "--model=walker", "--protocols=near@long"
    )
    nowhere.stderr.fnmatch_lines(["ERROR: There is no protocol 'near@long'.*"])


def test_a_conftest_can_supply_protocols(project: pytest.Pytester) -> None:
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nimport pathlib\ndef cheesebench_protocols(): return [pathlib.Path(__file__).parent / 'lab']\n"
        )
    assert collected(project, "--model=walker", "--protocols=east") == [
        "cheesebench::east[ascii_2d-walker]"
    ]
    assert len(collected(project, "--model=walker")) == 9


def test_paths_collect_protocols_and_ordinary_tests(project: pytest.Pytester) -> None:
    project.makepyfile(test_ordinary="def test_one(): pass")
    assert collected(project, "--model", "walker", ".") == [
        "lab/east.protocol.yaml::east[ascii_2d-walker]",
        "lab/few.protocol.yaml::few[ascii_2d-walker]",
        "lab/west.protocol.yaml::west[ascii_2d-walker]",
        "test_ordinary.py::test_one",
    ]
    assert collected(project) == ["test_ordinary.py::test_one"]
    project.runpytest("--model", "walker", "test_ordinary.py").assert_outcomes(passed=1)
    assert not (project.path / "results").exists()


def test_models_and_views_repeat(project: pytest.Pytester) -> None:
    found = collected(
        project,
        "--model",
        "walker",
        "--model",
        "statue,walker",
        "lab/east.protocol.yaml",
    )
    assert found == [
        "lab/east.protocol.yaml::east[ascii_2d-walker]",
        "lab/east.protocol.yaml::east[ascii_2d-statue]",
    ]


def test_expressions_and_markers(project: pytest.Pytester) -> None:
    project.makepyfile(test_ordinary="def test_one(): pass")
    chosen = ("--model", "walker", ".")
    assert collected(project, *chosen, "-k", "east or one") == [
        "lab/east.protocol.yaml::east[ascii_2d-walker]",
        "test_ordinary.py::test_one",
    ]
    assert collected(project, *chosen, "-m", "not cheesebench") == [
        "test_ordinary.py::test_one"
    ]
    assert len(collected(project, *chosen, "--strict-markers", "-k", "egocentric")) == 3
    node = "lab/east.protocol.yaml::east[ascii_2d-walker]"
    assert collected(project, "--model", "walker", node) == [node]


def test_only_the_selected_cells_are_run(project: pytest.Pytester) -> None:
    result = project.runpytest("--model", "walker", "lab", "-k", "east")
    result.assert_outcomes(passed=1, deselected=2)
    result.stdout.fnmatch_lines(["walker in ascii_2d (1 PASS)"])


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("lab", "-k", "esat"), 5, "-k 'esat' leaves no protocol. Did you mean 'east'? Known: east, few, west."),
        (("lab", "-k", "esat", "-n1"), 5, "-k 'esat' leaves no protocol. To list the names, write --collect-only instead."),
        (("bare",), 5, "No protocol is in the given paths. Name a *.protocol.yaml file, or leave the paths out."),
        (("nowhere",), 4, "file or directory not found: nowhere. Correct the path."),
        (("lab", "-k", "east west"), 4, "Wrong expression passed to '-k': east west: *. Correct the expression."),
    ],
    ids=["misspelt", "xdist", "bare", "nowhere", "expression"],
)  # fmt: skip
def test_a_session_without_a_test_says_why_in_terminal_junit_and_on_github(
    project: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    project.mkdir("bare")
    monkeypatch.setenv("COLUMNS", "200")
    told = f"{NOTHING_SELECTED if code == 5 else REFUSED}: {said}"
    result = project.runpytest("--model=walker", "--junitxml=junit.xml", *given)
    assert result.ret == code
    if code == 5:
        assert fnmatch(" ".join(str(result.stdout).split()), f"*{told} *")
    else:
        result.stderr.fnmatch_lines([f"ERROR: {said}"])
    [error] = ElementTree.parse(project.path / "junit.xml").getroot().iter("error")
    assert fnmatch(str(error.get("message")), told)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = project.runpytest("--model=walker", *given)
    assert result.ret == code
    result.stdout.fnmatch_lines([f"::error title=cheesebench::{told}"])
    assert str(result.stdout).count(told[:70]) == 1


@pytest.mark.parametrize("chosen", [("lab",), ("--protocols=lab",)])
def test_last_failed(project: pytest.Pytester, chosen: tuple[str, ...]) -> None:
    project.runpytest(
        "--model", "walker", "--inconclusive=fail", *chosen
    ).assert_outcomes(passed=2, failed=1)
    again = project.runpytest(
        "--model", "walker", "--inconclusive=fail", "--lf", "-v", *chosen
    )
    assert again.parseoutcomes()["failed"] == 1
    assert "passed" not in again.parseoutcomes()
    again.stdout.fnmatch_lines(["*few[[]ascii_2d-walker[]] INCONCLUSIVE*"])
    first = project.runpytest(
        "--model", "walker", "--ff", "--collect-only", "-q", *chosen
    )
    assert "few" in names(first)[0]


def test_stop_at_the_first_failure(project: pytest.Pytester) -> None:
    result = project.runpytest("--model", "statue", "-x", "lab")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])


def test_a_broken_file_among_the_paths_is_a_collection_error(
    project: pytest.Pytester,
) -> None:
    (project.path / "lab" / "broken.protocol.yaml").write_text(BROKEN, encoding="utf-8")
    result = project.runpytest("--model", "walker", "lab")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "*ERROR collecting lab/broken.protocol.yaml*",
            "*broken.protocol.yaml:3:1: error E*'strat'*'start'*",
        ]
    )
    assert "Traceback" not in str(result.stdout)
    assert not (project.path / "results").exists()
    going_on = project.runpytest(
        "--model", "walker", "lab", "--continue-on-collection-errors"
    )
    assert going_on.parseoutcomes() == {"passed": 2, "inconclusive": 1, "errors": 1}


def test_a_broken_file_of_a_chosen_directory_takes_no_other_down(
    project: pytest.Pytester,
) -> None:
    (project.path / "lab" / "broken.protocol.yaml").write_text(BROKEN, encoding="utf-8")
    result = project.runpytest("--model", "walker", "--protocols=lab")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 2, "inconclusive": 1, "errors": 1}
    result.stdout.fnmatch_lines(
        ["*ERROR at setup of broken*", "*broken.protocol.yaml:3:1: error E*"]
    )
    assert "Traceback" not in str(result.stdout)


def test_a_broken_file_is_2_among_the_paths_and_1_when_chosen(
    project: pytest.Pytester,
) -> None:
    (project.path / "broken.protocol.yaml").write_text(BROKEN, encoding="utf-8")
    assert project.runpytest("--model", "walker", "broken.protocol.yaml").ret == 2
    assert (
        project.runpytest("--model", "walker", "--protocols=broken.protocol.yaml").ret
        == 1
    )


def test_two_files_of_one_name_are_told(project: pytest.Pytester) -> None:
    lab = project.path / "lab"
    (lab / "other.protocol.yaml").write_bytes((lab / "east.protocol.yaml").read_bytes())
    result = project.runpytest("--model", "walker", "lab")
    assert result.parseoutcomes() == {"passed": 2, "inconclusive": 1, "errors": 1}
    result.stdout.fnmatch_lines(
        [
            "*other.protocol.yaml: the protocol east is already run from *east.protocol.yaml.*"
        ]
    )


def test_editions(project: pytest.Pytester) -> None:
    long = (
        "version: 1\nextends: east\nparadigm: east\nedition: long\ntrial: {limit: 50}\n"
    )
    (project.path / "lab" / "east_long.protocol.yaml").write_text(
        long, encoding="utf-8"
    )
    assert len(collected(project, "--model=walker", "--protocols=lab")) == 4
    chosen = collected(project, "--model=walker", "--protocols=lab", "--edition=long")
    assert chosen == ["cheesebench::east@long[ascii_2d-walker]"]
    result = project.runpytest("--model=walker", "--protocols=lab", "--edition=paper")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --protocols lab: none of its protocols has the edition 'paper' (it has default, long). Change *"
        ]
    )


def test_a_file_named_as_a_built_in_takes_its_place_and_that_is_told(
    project: pytest.Pytester,
) -> None:
    built_in = collected(project, "--model", "walker")
    name = bare(built_in[0])
    east = project.path / "lab" / "east.protocol.yaml"
    own = project.path / "lab" / f"{name}.protocol.yaml"
    own.write_text(
        east.read_text(encoding="utf-8").replace("paradigm: east", f"paradigm: {name}"),
        "utf-8",
    )
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nimport pathlib\ndef cheesebench_protocols(): return [pathlib.Path(__file__).parent / 'lab']\n"
        )
    assert collected(project, "--model", "walker") == built_in
    result = project.runpytest("--model", "walker", "-k", name)
    result.stdout.fnmatch_lines([f"{own} is used instead of *", "cheesebench .*"])


def test_the_ini_file_or_the_environment_may_name_the_protocols(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "CHEESEBENCH_PROTOCOLS",
        f"lab/east.protocol.yaml{os.pathsep}lab/west.protocol.yaml",
    )
    assert project.runpytest("--model", "walker").parseoutcomes()["passed"] == 2
    project.makeini("[pytest]\ncheese_protocols = lab/west.protocol.yaml\n")
    monkeypatch.chdir(project.mkdir("elsewhere"))
    elsewhere = (
        "--model",
        "walker",
        f"--rootdir={project.path}",
        f"-c{project.path}/tox.ini",
    )
    assert project.runpytest(*elsewhere).parseoutcomes() == {"passed": 1}
    monkeypatch.chdir(project.path)
    result = project.runpytest("--model", "walker", "lab", "-k", "east")
    assert result.parseoutcomes()["passed"] == 1, "paths are paths"
    assert project.runpytest(
        "--model", "walker", "--protocols=lab/east.protocol.yaml"
    ).parseoutcomes() == {"passed": 1}


def test_a_misspelt_environment_variable_is_told_at_the_start(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = {one.name for one in VARIABLES if one.name.startswith("CHEESEBENCH_")}
    assert ours == {"CHEESEBENCH_PROTOCOLS", "CHEESEBENCH_MODELS"}
    monkeypatch.setenv("CHEESEBENCH_PROTOCOL", "west")
    monkeypatch.setenv("CHEESEBENCH_ROOM_OF_MINE", "4")
    result = project.runpytest("--model", "walker", "lab", "-k", "east")
    said = " ".join(result.stdout.str().split())
    assert (
        "cheesebench: warning: CheeseBench reads no environment variable 'CHEESEBENCH_PROTOCOL'."
        " Did you mean 'CHEESEBENCH_PROTOCOLS'?" in said
    )
    assert "ROOM_OF_MINE" not in said, "a script may have variables of its own"


def test_a_mistake_in_the_ini_file_is_refused_with_its_place(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*more: str) -> str:
        result = project.runpytest("--model", "walker", *more)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        return " ".join(result.stderr.str().split())

    project.makeini("[pytest]\ncheese_protocol = west\n")
    assert (
        "tox.ini:2: There is no setting 'cheese_protocol'. Did you mean 'cheese_protocols'?"
        in refused("--junitxml=junit.xml")
    )
    junit = (project.path / "junit.xml").read_text(encoding="utf-8")
    assert "There is no setting 'cheese_protocol'" in junit.replace("&apos;", "'")
    own = project.makepyfile("def test_x(): pass")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    assert project.runpytest("-q", own).ret == 0, "no run of ours"
    project.makeini("[pytest]\ncheesebench-model = walker\n")
    assert "--model is an option: write it into addopts, or into a profile" in refused()
    project.makeini("[pytest]\ncheese_colour = blue\n")
    assert "no setting 'cheese_colour'. Known: cheese_protocols." in refused()
    project.makeini("[pytest]\ncheese_protocols = wst lab\n")
    assert "tox.ini:2: cheese_protocols: There is no protocol 'wst'." in refused()
    project.makeini("[pytest]\n")
    assert "-o: cheese_protocols: nowhere/: there is" in refused(
        "-ocheese_protocols=nowhere/"
    )
    monkeypatch.setenv("CHEESEBENCH_PROTOCOLS", "wst")
    assert "CHEESEBENCH_PROTOCOLS: There is no protocol 'wst'." in refused()
    project.makepyprojecttoml("[tool.cheesebench.profiles.own]\nprotocols = ['wst']\n")
    assert "profile own: protocols: There is no protocol 'wst'." in refused(
        "--profile=own"
    )


def test_of_many_known_names_the_nearest_are_listed(project: pytest.Pytester) -> None:
    result = project.runpytest("--model", "walker", "--protocols=dnm")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in result.stderr.lines if line]
    line, last = lines
    assert last.startswith("Exit code 4, ")
    said, _, listed = line.partition(" Nearest of ")
    assert said == "ERROR: There is no protocol 'dnm'. Did you mean 'dnms'?"
    assert len(listed.rstrip(".").split(", ")) == 5


@pytest.fixture
def elsewhere(
    project: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A protocol in another project, and this project with an ini file and a
    conftest.py.
    """
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = --no-such-option\n", encoding="utf-8"
    )
    (folder / "conftest.py").write_text(
        "raise SystemExit('not ours')\n", encoding="utf-8"
    )
    (folder / "far.protocol.yaml").write_text(corridor("far"), encoding="utf-8")
    project.makeini("[pytest]\naddopts = -q\nmarkers = ours: by us\n")
    return folder


@pytest.mark.parametrize(
    ("name", "joined"), [("--protocols", True), ("--cheese-protocols", False)]
)
def test_protocols_elsewhere_leave_root_results_and_conftest_here(
    project: pytest.Pytester, elsewhere: Path, name: str, joined: bool
) -> None:
    path = str(elsewhere / "far.protocol.yaml")
    given = [f"{name}={path}"] if joined else [name, path]
    # The agent 'walker' is that of this directory's conftest.py.
    result = project.runpytest_subprocess(
        "--model", "walker", *given, "--cheese-run-id", "one", "-vv"
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [f"rootdir: {project.path}", "configfile: tox.ini", "Run: results/one"]
    )
    assert (project.path / "results" / "one" / "run.sqlite").is_file()
    assert {path.name for path in elsewhere.iterdir()} == {
        "pytest.ini",
        "conftest.py",
        "far.protocol.yaml",
    }


@pytest.mark.parametrize("chosen", ["lab", "--protocols=lab"])
def test_the_failures_of_one_model_are_not_those_of_another(
    project: pytest.Pytester, chosen: str
) -> None:
    project.runpytest(
        "--model", "statue", "--inconclusive=fail", chosen
    ).assert_outcomes(failed=3)
    project.runpytest(
        "--model", "walker", "--inconclusive=fail", chosen
    ).assert_outcomes(passed=2, failed=1)
    for model, failed in (("walker", 1), ("statue", 3)):
        again = project.runpytest(
            "--model", model, "--inconclusive=fail", "--lf", chosen
        )
        assert again.parseoutcomes()["failed"] == failed
        assert "passed" not in again.parseoutcomes()


def test_after_two_models_only_what_failed_of_each_is_run_again(
    project: pytest.Pytester,
) -> None:
    given = ("--model=walker,statue", "--inconclusive=fail", "lab")
    project.runpytest(*given).assert_outcomes(passed=2, failed=4)
    assert collected(project, *given, "--lf") == [
        "lab/east.protocol.yaml::east[ascii_2d-statue]",
        "lab/few.protocol.yaml::few[ascii_2d-walker]",
        "lab/few.protocol.yaml::few[ascii_2d-statue]",
        "lab/west.protocol.yaml::west[ascii_2d-statue]",
    ]


def test_protocols_are_named_with_commas_too(project: pytest.Pytester) -> None:
    found = collected(
        project,
        "--model=walker",
        "--protocols=lab/east.protocol.yaml, lab/west.protocol.yaml,",
    )
    assert [bare(one) for one in found] == ["east", "west"]
    named = project.path / "lab" / "left,right"
    named.mkdir()
    (named / "far.protocol.yaml").write_text(corridor("far"), encoding="utf-8")
    assert [
        bare(one)
        for one in collected(project, "--model=walker", "--protocols=lab/left,right")
    ] == ["far"]


def test_a_file_that_does_not_exist_is_a_mistake_in_the_command(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest("--model=walker", "--protocols=lab/eastt.protocol.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "ERROR: --protocols lab/eastt.protocol.yaml: there is no such file. Did you mean 'east.protocol.yaml'?"
    result.stderr.fnmatch_lines([said])
