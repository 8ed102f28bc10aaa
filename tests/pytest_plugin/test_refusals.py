"""Errors before a session begins: their words, and every place that they are told."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.baselines import locate_counted
from cheesebench.errors import RunLogError
from cheesebench.options import OPTIONS
from cheesebench.pytest_options import SPELLINGS
from cheesebench.pytest_session import refusals
from cheesebench.pytest_session.exit_status import NOTHING_SELECTED, REFUSED
from cheesebench.statistics import gate


class Config(SimpleNamespace):
    """What the module asks of a configuration."""

    def getoption(self, name: str, default: object = None) -> object:
        return getattr(self.option, name, default)


def config(tmp_path: Path, **given: object) -> Any:
    option = argparse.Namespace(
        **{f"cheesebench_{key}": value for key, value in given.items()}
    )
    stash: Any = pytest.Stash()
    stash[SPELLINGS] = {one.key: [one.short, one.long] for one in OPTIONS}
    return Config(
        option=option, stash=stash, known_args_namespace=argparse.Namespace(other=1),
        invocation_params=SimpleNamespace(dir=tmp_path),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "GITHUB_ACTIONS",
        "GITHUB_STEP_SUMMARY",
        "CI",
        "GITHUB_SERVER_URL",
        "CI_JOB_URL",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The directory of a run, with the reports of an earlier attempt."""
    directory = tmp_path / "results" / "r1"
    directory.mkdir(parents=True)
    (directory / "run.sqlite").touch()
    for name in ("report.md", "comment.md"):
        (directory / name).write_text("<!-- mark -->\nPASS\n", encoding="utf-8")
    (tmp_path / "page.html").write_text("PASS", encoding="utf-8")
    (tmp_path / "out.md").write_text("PASS", encoding="utf-8")
    return directory


def test_an_error_is_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = refusals.refused(
        config(tmp_path), "bad \x1b key sk-abcdefghijklmnopqrstuvwxyz123456"
    )
    assert isinstance(found, pytest.UsageError)
    text, _, rest = str(found).partition("\n\n")
    assert text.startswith("bad \\x1b key ")
    assert "abcdefghijklmnop" not in text
    assert rest == f"{REFUSED}."
    assert capsys.readouterr().out == ""


def test_a_job_without_a_baseline_is_told_where_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> str:
        with pytest.raises(RunLogError) as caught:
            locate_counted(tmp_path / "results", "main", tmp_path)
        found = refusals.refused(config(tmp_path), caught.value)
        return str(found).split("\n\n")[0]

    (tmp_path / "results" / "try1").mkdir(parents=True)
    (tmp_path / "results" / "try1" / "run.sqlite").touch()
    there = f"There is no baseline in {tmp_path}."
    make = (
        "(pytest --model MODEL --design cohort --run-id RUN), bless it (cheesebench bless RUN main), and commit "
        f"{tmp_path / 'main.json'}."
    )
    none = "There is no baseline or run 'main'."
    desk = f"{none} The latest run is 'try1'. {there} Make a run {make}"
    assert told() == desk
    monkeypatch.setenv("CI", "true")
    there, make = (text.replace(f"{tmp_path}/", "") for text in (there, make))
    assert told() == (
        f"{none} {there} If you have it, commit it. Otherwise make a run in your clone, with the model and protocols of "
        f"this job {make}"
    )


@pytest.mark.parametrize(
    ("kept", "desk"),
    [
        ("r1/run.sqlite is damaged: no (page 7). ", "Use an undamaged copy, or start a new run."),
        ("r1/run.sqlite is not a run log. ", "Name another run, or start a new one."),
        ("--resume r1: that run was made with --model a-1.5. ", "Give --model a-1.5, or start a new run."),
        ("The program has changed. ", "Start a new run, or change the agent so."),
    ],
)  # fmt: skip
def test_a_job_that_cannot_continue_its_run_is_told_how_to_begin_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str, desk: str
) -> None:
    def told(said: str, **given: object) -> str:
        return str(refusals.refused(config(tmp_path, **given), said)).split("\n\n")[0]

    assert told(kept + desk, resume="r1") == kept + desk
    monkeypatch.setenv("CI", "true")
    assert told(kept + desk) == kept + desk, "nothing is continued"
    job = (
        "Push a commit: that begins a new run. Where the run id stays the same, delete the directory of r1 from the "
        "cache instead."
    )
    assert told(kept + desk, resume="r1") == kept + job
    other = "The model 'm' does not answer. Start the server."
    assert told(other, resume="r1") == other


@pytest.mark.parametrize(
    ("given", "names", "said"),
    [
        ({"keyword": "esat"}, ["east", "west"], "-k 'esat' leaves no protocol. Did you mean 'east'? Known: east, west."),
        ({"keyword": "no", "markexpr": "slow"}, ["east"], "-k 'no' and -m 'slow' leaves no protocol. Known: east."),
        ({"keyword": "no"}, [], "-k 'no' leaves no protocol. To list the names, write --collect-only instead."),
        ({}, ["east"], "What is left out leaves no protocol. Known: east."),
        ({}, [], "No protocol is in the given paths. Name a *.protocol.yaml file, or leave the paths out."),
    ],
)  # fmt: skip
def test_a_session_without_a_test_names_what_there_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: dict[str, str],
    names: list[str],
    said: str,
) -> None:
    session = config(tmp_path)
    vars(session.option).update(
        {"keyword": "", "markexpr": "", "collectonly": False} | given
    )
    whole = f"{NOTHING_SELECTED}: {said}"
    assert refusals.nothing_selected(session, names) == whole
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert refusals.nothing_selected(session, names) == "", "GitHub shows the error"
    assert f"::{whole}\n" in capsys.readouterr().out
    session.option.collectonly = True
    assert refusals.nothing_selected(session, names) == whole
    assert capsys.readouterr().out == ""


def test_github_and_its_summary_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    refusals.tell(config(tmp_path), "a `b`", "Why")
    assert capsys.readouterr().out == "::error title=cheesebench::Why: a `b`\n"
    page = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert page.strip() == "**Why:**\n\n```text\na 'b'\n```"


def test_the_reports_of_an_earlier_attempt_are_replaced(
    tmp_path: Path, left: Path
) -> None:
    given = config(tmp_path, resume="r1", html="page.html", markdown="out.md")
    refusals.tell(given, "no")
    page = f"**{REFUSED}:**\n\n```text\nno\n```\n"
    kept = "What an earlier attempt measured is kept: `cheesebench report r1`.\n"
    for path in (left / "report.md", tmp_path / "out.md"):
        assert path.read_text(encoding="utf-8") == f"{page}\n{kept}"
    assert (left / "comment.md").read_text(encoding="utf-8") == f"<!-- mark -->\n{page}"
    assert not (tmp_path / "page.html").exists()
    refusals.tell(given, f"{left / 'run.sqlite'} is damaged")
    assert "is kept" not in (left / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "given", [{}, {"resume": "r2"}, {"resume": "r1", "results": "other"}]
)
def test_reports_of_other_runs_are_left_alone(
    tmp_path: Path, left: Path, given: dict[str, object]
) -> None:
    refusals.tell(config(tmp_path, html="page.html", **given), "no")
    assert (left / "report.md").read_text(encoding="utf-8") == "<!-- mark -->\nPASS\n"
    assert (tmp_path / "page.html").exists()


def test_a_worker_and_a_run_of_another_session_replace_nothing(
    tmp_path: Path, left: Path
) -> None:
    worker = config(tmp_path, resume="r1")
    worker.workerinput = {}
    refusals.tell(worker, "no")
    assert "PASS" in (left / "report.md").read_text(encoding="utf-8")
    (left / "comment.md").unlink()
    refusals.tell(config(tmp_path, resume="r1"), "no")
    assert not (left / "comment.md").exists(), "only what was there is replaced"


def test_a_run_that_is_in_progress_says_so(
    tmp_path: Path, left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals.announce(config(tmp_path), left)
    report = (left / "report.md").read_text(encoding="utf-8")
    assert report.startswith("**CheeseBench has no result yet:**")
    assert (tmp_path / "page.html").exists(), "of another run"
    comment = (left / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith(
        f"{gate.MARK}\n**CheeseBench has no result yet:** the session that began 2"
    )
    assert comment.endswith(
        "continue the run with `--resume r1`; a job that is run again does that by itself.\n"
    )
    refusals.announce(config(tmp_path, resume="r1"), left)
    assert "no result yet" in (left / "report.md").read_text(encoding="utf-8")
    for name, value in (
        ("GITHUB_SERVER_URL", "https://g"), ("GITHUB_REPOSITORY", "o/r"), ("GITHUB_RUN_ID", "7"), ("GITHUB_ACTIONS", "true"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    refusals.announce(config(tmp_path), left)
    comment = (left / "comment.md").read_text(encoding="utf-8")
    assert "\n[The job](https://g/o/r/actions/runs/7" in comment
    assert comment.endswith(" has the output.\n")


def test_options_that_can_be_read_are_read(tmp_path: Path) -> None:
    words: Sequence[str] = [
        "--subjects",
        "x",
        "--cheese-resume",
        "r1",
        "--html=p.html",
        "--results",
    ]
    given = config(tmp_path)
    found = refusals._readable(given, words)
    assert (found.cheesebench_resume, found.cheesebench_html, found.other) == (
        "r1",
        "p.html",
        1,
    )
    assert (found.cheesebench_results, found.cheesebench_markdown) == (None, None)
    said = "usage: x\npytest: error: argument --subjects: invalid int value: 'x'\n  inifile: None"
    error = refusals.refused_early(given, words, pytest.UsageError(said))
    assert str(error).startswith("--subjects x: write a whole number.\n")
    assert given.option.cheesebench_resume == "r1"


def test_an_interruption_before_the_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    refusals.tell_interruption(config(tmp_path), "")
    assert capsys.readouterr().out == ""
    refusals.tell_interruption(config(tmp_path), "SIGTERM")
    assert capsys.readouterr().out == (
        "::error title=cheesebench::Exit code 2, interrupted by SIGTERM before the run began, so nothing was tested: "
        "Run it again.\n"
    )
