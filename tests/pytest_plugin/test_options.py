"""A plain pytest is unaffected, our option names give way, and wrong options are one
clear line.
"""

from __future__ import annotations

from dataclasses import fields

import pytest

from cheesebench.experiment.calling import Patience
from cheesebench.experiment.cells import find_design
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.log import RunLog
from cheesebench.interfaces import DEFAULT_EDITION
from cheesebench.options import BY_KEY, INI, OPTIONS, Option
from cheesebench.pytest_options import SPELLINGS
from cheesebench.pytest_session.exit_status import REFUSED
from cheesebench.pytest_session.resuming import resume_command
from tests.stored import check_stored

#: Modules that only a session with a model may import.
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
            assert ours == [
                "cheesebench", "cheesebench.gymnasium_plugin", "cheesebench.options", "cheesebench.pytest_options",
                "cheesebench.pytest_plugin",
            ]
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_plain_pytest_looks_as_ever(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_passes(): pass")
    pytester.makefile(".protocol.yaml", maze="this: is not read")

    def lines(*options: str) -> list[str]:
        found = pytester.runpytest("-p", "no:cacheprovider", *options).outlines
        return [
            line
            for line in found
            if " passed in " not in line and not line.startswith("plugins:")
        ]

    assert lines() == lines("-p", "no:cheesebench")
    assert not (pytester.path / "results").exists()


def test_switched_off_the_options_are_unknown(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("-p", "no:cheesebench", "--model=random")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --model=random*"])


@pytest.mark.parametrize(
    "name", ["model", "view", "design", "subjects", "seed", "edition", "resume"]
)
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


@pytest.mark.parametrize(
    "declaration",
    ["action='store_true'", "type=int, required=False", "choices=['a', 'b']"],
)
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
    helped.stdout.fnmatch_lines(
        ["*--cheese-model=NAME*", "*--view=NAME, --cheese-view=NAME*"]
    )
    ours = pytester.runpytest("-p", "theirs", "--cheese-model=nosuch")
    assert ours.ret == pytest.ExitCode.USAGE_ERROR
    ours.stderr.fnmatch_lines(["ERROR: There is no model 'nosuch'.*"])


def test_our_options_need_a_model(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--design", "smoke")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --design has no effect without a model: add --model NAME*"]
    )
    assert "Traceback" not in str(result.stderr)


def test_a_protocol_file_needs_a_model(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("mine.protocol.yaml").touch()
    result = pytester.runpytest("mine.protocol.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: mine.protocol.yaml needs a model: add --model NAME*"]
    )


def test_what_a_project_sets_for_all_runs_waits_for_a_model(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\naddopts = --design=smoke --inconclusive=fail\n")
    pytester.makepyfile("def test_passes(): pass")
    pytester.runpytest().assert_outcomes(passed=1)
    header = pytester.runpytest(
        "--model",
        "random",
        "test_what_a_project_sets_for_all_runs_waits_for_a_model.py",
    )
    header.stdout.fnmatch_lines(
        ["cheesebench: random; view ascii_2d; design smoke; seed 0 (drawn)"]
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            "--model wlaker",
            "There is no model 'wlaker'. Did you mean 'walker'? Known: *",
        ),
        (
            "--model walker --view ascii_2",
            "There is no view 'ascii_2'. Did you mean 'ascii_2d'? Known: *",
        ),
        (
            "--model walker --design cohrt",
            "There is no design 'cohrt'. Did you mean 'cohort'? Known: *",
        ),
        (
            "--model walker --edition defalt",
            "There is no edition 'defalt'. Did you mean 'default'? Known: *",
        ),
        ("--model walker --protocols nosuch", "There is no protocol 'nosuch'.*"),
        (
            "--model walker --protocols empty",
            "--protocols empty: there is no file *.protocol.yaml *",
        ),
        (
            "--model walker --subjects 0",
            "--subjects 0: a run needs at least one subject. *",
        ),
        ("--model walker --seed -1", "--seed -1: the minimum is 0."),
        ("--model walker --cheese-processes 0", "--cheese-processes 0: the minimum *"),
        ("--model walker --resume a --cheese-run-id b", "There is no run 'a' in *"),
        ("--model walker --run-id a/b", "--run-id 'a/b' cannot name a run. *"),
        (
            "--model walker --cheese-html no/where.html",
            "--cheese-html no/where.html cannot be written.*",
        ),
        (
            "--model walker --cheese-markdown no/where.md",
            "--cheese-markdown no/where.md cannot be written.*",
        ),
        (
            "--model walker --cheese-results conftest.py lab",
            "*conftest.py is not a directory*",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_4(
    project: pytest.Pytester, options: str, line: str
) -> None:
    project.mkdir("empty")
    result = project.runpytest(*options.split())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in str(result.stdout) + str(result.stderr)
    assert (
        len(
            [
                text
                for text in result.errlines
                if text.strip() and not text.startswith(("  ", "Exit code 4"))
            ]
        )
        == 1
    ), "but long lists"
    result.stderr.fnmatch_lines([f"ERROR: {line}"])


def test_the_papers_design_runs_the_three_text_views(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")
    command = (
        "--model",
        "walker",
        "--design",
        "paper",
        "lab",
        "-k",
        "east",
        "--cheese-run-id",
    )
    result = project.runpytest(*command, "alone")
    assert result.parseoutcomes()["inconclusive"] == 3, "one subject decides nothing"
    result = project.runpytest(*command, "one", "--subjects=6")
    assert result.parseoutcomes()["passed"] == 3
    with RunLog.open_read_only(project.path / "results/one") as log:
        assert [plan.view for plan in log.plans()] == list(find_design("paper").views)
    report = (project.path / "results/one/report.md").read_text(encoding="utf-8")
    assert "## Best of views: walker" in report
    assert "cross-fitted" in report


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_every_option_has_two_spellings_and_yields_the_short_one(
    pytester: pytest.Pytester, option: Option
) -> None:
    value = [] if option.flag else [option.choices[0] if option.choices else "7"]
    pytester.makepyprojecttoml("[tool.cheesebench.profiles.7]")
    for spelling in (option.long, option.short):
        config = pytester.parseconfig("-p", "no:timeout", spelling, *value)
        assert config.getoption(option.destination) not in (None, False)
    pytester.makeconftest(
        f"def pytest_addoption(parser): parser.addoption({option.short!r}, default='none')"
    )
    config = pytester.parseconfig(
        "-p", "no:timeout", f"{option.short}=theirs", option.long, *value
    )
    assert config.getoption(option.short) == "theirs"
    assert config.getoption(option.destination) not in (None, False)
    assert config.stash[SPELLINGS][option.key] == [option.long]


def test_options_are_declared_with_the_defaults_that_they_have() -> None:
    calls, patience = CallOptions(), Patience()
    defaults = {key: option.default for key, option in BY_KEY.items()}
    assert defaults["concurrency"] == calls.concurrency
    assert (defaults["timeout"], defaults["trial_timeout"], defaults["retries"]) == (
        patience.request,
        patience.trial,
        patience.retries,
    )
    assert defaults["edition"] == DEFAULT_EDITION
    assert len(BY_KEY) == len(OPTIONS)
    assert not [
        option.name for option in OPTIONS if option.overridable and not option.recorded
    ]
    assert not [
        option.name for option in OPTIONS if option.commas and not option.repeatable
    ]


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (
            "--cheese-sujects=3",
            "There is no option '--cheese-sujects'. Did you mean '--cheese-subjects'?",
        ),
        (
            "--cheesebench-model=random",
            "There is no option '--cheesebench-model'. Did you mean '--cheese-model'?",
        ),
        ("--cheese-qqqqqq", "There is no option '--cheese-qqqqqq'."),
        ("--modle=random", "There is no option '--modle'. Did you mean '--model'?"),
        (
            "--max-steps=200",
            "There is no option '--max-steps'. The limit of a trial's steps is part of its protocol.",
        ),
        (
            "--lesion=blind",
            "There is no option '--lesion'. A lesion is a control: write '--control blind'.",
        ),
    ],
)
def test_a_misspelt_option_is_refused_with_the_one_that_was_meant(
    pytester: pytest.Pytester, typed: str, line: str
) -> None:
    result = pytester.runpytest(typed)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = [text for text in result.errlines if text.strip()]
    assert told == [f"ERROR: {line}", f"{REFUSED}."]


def test_what_only_looks_like_a_misspelt_option_is_let_through(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        "def pytest_addoption(parser): parser.addoption('--cheeses', default='none')"
    )
    pytester.makepyfile(
        "def test_theirs(request): assert request.config.getoption('cheeses') == 'brie'"
    )
    pytester.runpytest("--cheeses", "brie").assert_outcomes(passed=1)


def test_an_error_names_an_option_as_it_was_typed(project: pytest.Pytester) -> None:
    for spelling in ("--processes", "--cheese-processes"):
        result = project.runpytest("--model", "walker", spelling, "0", "lab")
        result.stderr.fnmatch_lines([f"ERROR: {spelling} 0: the minimum is 1."])


@pytest.mark.parametrize(
    ("typed", "repeated"),
    [
        ("--model walker --resume=one lab", "--model walker lab"),
        ("--cheese-resume one --model walker -k east", "--model walker -k east"),
        ("--model walker --run-id a --seed 3", "--model walker --seed 3"),
        ("--cheese-run-id=a --model=walker", "--model=walker"),
    ],
)
def test_a_command_that_continues_names_the_run_once(
    pytester: pytest.Pytester, typed: str, repeated: str
) -> None:
    config = pytester.parseconfig("--basetemp=base", *typed.split())
    assert (
        resume_command(config, "one")
        == f"pytest --basetemp=base {repeated} --resume one"
    )


def test_a_command_that_continues_has_the_larger_budget(
    pytester: pytest.Pytester,
) -> None:
    config = pytester.parseconfig(
        "--basetemp=base", "--max-tokens", "9", "--model", "walker", "--max-cost=1"
    )
    said = resume_command(config, "one", {"max_tokens": "18"})
    assert (
        said
        == "pytest --basetemp=base --model walker --max-cost=1 --max-tokens=18 --resume one"
    )


def test_a_command_that_continues_leaves_an_option_of_another_plugin_alone(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--resume')")
    config = pytester.parseconfig(
        "--basetemp=base",
        "--resume",
        "theirs",
        "--cheese-resume",
        "ours",
        "--model",
        "walker",
    )
    kept = "--basetemp=base --resume theirs --model walker"
    assert resume_command(config, "ours") == f"pytest {kept} --cheese-resume ours"


def test_the_manifest_keeps_what_is_recorded_and_a_resumed_run_inherits_it(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    options = (
        "--cheese-design",
        "paper",
        "--cheese-view=ascii_2d",
        "--seed",
        "3",
        "--cheese-subjects=2",
    )
    project.runpytest(
        "--model", "walker", *options, "--run-id", "one", "lab", "-k", "few"
    )
    with RunLog.open_read_only(project.path / "results/one") as log:
        found = log.manifest["options"]
    assert found.keys() == {option.key for option in OPTIONS if option.recorded} | {
        "seed_drawn"
    }
    assert {key: value for key, value in found.items() if value not in (None, [])} == {
        "model": ["walker"],
        "ahead": "auto",
        "view": ["ascii_2d"],
        "edition": DEFAULT_EDITION,
        "design": "paper",
        "subjects": 2,
        "seed": 3,
        "seed_drawn": False,
        "familywise": False,
        "agent": "llm",
    }
    resumed = project.runpytest(
        "--model", "walker", "--resume", "one", "lab", "-k", "few"
    )
    resumed.stdout.fnmatch_lines(
        [
            "cheesebench: walker; view ascii_2d; design paper; seed 3 (from the manifest)",
            "Run: results/one",
        ]
    )


def test_a_cell_with_more_trials_than_a_log_can_have(project: pytest.Pytester) -> None:
    result = project.runpytest(
        "--model", "walker", "--subjects", "10000000", "lab", "-k", "few"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in result.errlines if "more than a log can hold" in line]
    assert line.endswith("Give fewer --subjects, or shorten the schedule.")
    assert not (project.path / "results").exists()


def test_options_are_compared_with_what_is_stored() -> None:
    """Every option as it is declared, and as pytest and a command add it."""
    lines = []
    for option in OPTIONS:
        own = {one.name: getattr(option, one.name) for one in fields(option)}
        own["type"] = getattr(option.type, "__name__", "")
        own["help"] = bool(option.help)
        told = {
            key: value
            for key, value in own.items()
            if value not in (None, "", (), False)
        }
        added = option.arguments()
        added["type"] = getattr(
            added.get("type"), "__name__", type(added.get("type")).__name__
        )
        added["help"] = added["help"] == option.description
        lines += [
            f"{option.short} {option.long} {option.key} {option.destination} {option.value_name or '-'}",
            f"  {told}",
            f"  {added}",
        ]
    lines += [one.name for one in INI]
    check_stored("options.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Helps."),
        ({"default": 3}, "Helps. Default: 3"),
        ({"default": (), "example": "4"}, "Helps. Example: --name 4"),
        ({"default": 0, "example": "4"}, "Helps. Default: 0. Example: --name 4"),
        ({"default": 3, "default_text": "three"}, "Helps. Default: three"),
    ],
)
def test_an_option_describes_default_and_example(
    changes: dict[str, object], said: str
) -> None:
    assert Option(name="name", help="Helps.", **changes).description == said  # type: ignore[arg-type]


def test_a_word_stands_for_a_number() -> None:
    option = Option(name="name", help="", type=int, words=("auto",))
    assert (option.read("auto"), option.read("7")) == ("auto", 7)
    assert (option.value_name, Option(name="name", help="").value_name) == ("N", "NAME")
    assert Option(name="name", help="", flag=True).value_name == ""
    assert Option(name="name", help="", choices=("a",)).value_name == ""
    assert Option(name="name", help="", choices=("a",), metavar="X").value_name == "X"
