"""Output for a pipeline: profiles, annotations, a comment."""

from __future__ import annotations

import re

import pytest

PROFILE = """
[tool.cheesebench.profiles.nightly]
model = ["statue", "walker"]
protocols = ["lab/east.protocol.yaml"]
subjects = 17
exit-zero = true
"""


def profile(project: pytest.Pytester, text: str = PROFILE) -> None:
    (project.path / "pyproject.toml").write_text(
        f"[tool.pytest.ini_options]\n{text}", encoding="utf-8"
    )


def test_a_profile_is_a_name_for_options(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--design=cohort --view=ascii_2d")
    profile(project)
    result = project.runpytest("--profile", "nightly")
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*17 subjects; *", "Exit code 0: 1 cell failed, which --exit-zero*"]
    )
    # Typed options take precedence.
    typed = project.runpytest("--profile=nightly", "--model", "walker", "--subjects=16")
    typed.assert_outcomes(passed=1)
    typed.stdout.fnmatch_lines(["*16 subjects; *"])


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (PROFILE, "nightl", "There is no profile 'nightl'. Did you mean 'nightly'?"),
        (
            PROFILE.replace("subjects", "subject"),
            "nightly",
            "subject is not a CheeseBench run option. Did you mean 'subjects'? Options for pytest itself *",
        ),
        (
            PROFILE.replace("= 17", "= 'seven'"),
            "nightly",
            "subjects = 'seven': write a whole number.",
        ),
        (
            PROFILE.replace("true", "1"),
            "nightly",
            "exit-zero = 1: write true or false.",
        ),
        (
            "",
            "nightly",
            "no pyproject.toml here or above has [[]tool.cheesebench.profiles.nightly[]]",
        ),
    ],
    ids=["profile", "option", "number", "flag", "none"],
)
def test_mistakes_in_profiles_are_one_line(
    project: pytest.Pytester, text: str, name: str, said: str
) -> None:
    profile(project, text)
    result = project.runpytest("--profile", name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])


def test_an_option_that_is_nearly_ours_has_a_suggestion(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest("--model", "walker", "--subjcts=6", "lab")
    result.stderr.fnmatch_lines(
        ["ERROR: There is no option '--subjcts'. Did you mean '--subjects'?"]
    )


def test_github_is_told_what_failed_and_where(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = project.runpytest(
        "--model",
        "statue",
        "--subjects=12",
        "lab/east.protocol.yaml",
        "--cheese-run-id=one",
    )
    [line] = [line for line in result.outlines if line.startswith("::")]
    assert line.startswith(
        "::error file=lab/east.protocol.yaml,line=1,title=FAIL%3A statue on east::0 %25 of trials "
    )
    forgiven = project.runpytest(
        "--model",
        "statue",
        "--subjects=12",
        "lab/east.protocol.yaml",
        "--cheese-exit-zero",
    )
    assert [line[:10] for line in forgiven.outlines if line.startswith("::")] == [
        "::warning "
    ]
    comment = (project.path / "results" / "one" / "comment.md").read_text(
        encoding="utf-8"
    )
    assert comment.startswith("<!-- cheesebench -->\n")
    assert "| east | ✘ 0\N{NO-BREAK SPACE}%" in re.sub(" +", " ", comment)
    monkeypatch.delenv("GITHUB_ACTIONS")
    quiet = project.runpytest(
        "--model", "statue", "--subjects=12", "lab/east.protocol.yaml"
    )
    assert not [line for line in quiet.outlines if line.startswith("::")]
