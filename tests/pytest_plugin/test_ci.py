"""Output for a pipeline: profiles, annotations, a comment."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.pytest_session import ci, exit_status
from cheesebench.records import Variant
from cheesebench.statistics import CellResult, Verdict
from cheesebench.statistics.comparison import (
    CellCounts,
    CountedRun,
    RunComparison,
    compare_runs,
)
from cheesebench.statistics.sample import SubjectScore
from tests.reports.test_rich_run import told_run
from tests.stored import check_stored

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
        ["*17 subjects; *", "Exit code 0: 1 cell failed against the animals, which*"]
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


def test_properties_of_a_rich_run() -> None:
    summary, lines = told_run(), list[str]()
    for cell in summary.cells:
        found = ci.case_properties(cell)
        assert all(name.startswith(ci.PREFIX) for name, _ in found)
        kept = [
            f"{name.removeprefix(ci.PREFIX)}={value}"
            for name, value in found
            if not name.endswith(("sha256", "design"))
        ]
        lines += ["", f"== {' '.join(cell.plan.key)}", *kept]
    lines += ["", "== run", *map("=".join, ci.suite_properties(summary))]
    check_stored("properties.txt", "\n".join(lines[1:]) + "\n")


def cell(model: str, verdict: Verdict, **changes: Any) -> CellResult:
    """Return the result of a cell with that verdict."""
    found = told_run().cells[0]
    variant = Variant(control=changes.pop("control", ""))
    plan = replace(found.plan, model=model, variant=variant)
    return replace(found, plan=plan, verdict=verdict, **changes)


@pytest.fixture(name="github")
def _github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


@pytest.mark.usefixtures("github")
def test_each_verdict_has_its_annotation(tmp_path: Path) -> None:
    cells = [
        cell("a", Verdict.PASS, warnings=()),
        cell("b", Verdict.PASS, warnings=("odd",)),
        cell("c", Verdict.FAIL, warnings=()),
        cell("d", Verdict.ERROR, warnings=()),
        cell("e", Verdict.INCONCLUSIVE, warnings=()),
        cell("f", Verdict.FAIL, control="blind", warnings=("odd",)),
        *(cell(f"g{n}", Verdict.FAIL, warnings=()) for n in range(20)),
    ]
    paths = {cells[0].plan.protocol: tmp_path / "a.protocol.yaml"}

    def told(fails: bool, forgives: bool = False) -> list[str]:
        found = ci.annotate(cells, paths, tmp_path, fails, forgives)
        return [line.partition(" on ")[0] for line in found]

    place = " file=a.protocol.yaml,line=1,title="
    said = [
        f"::warning{place}doubtful PASS%3A b",
        f"::error{place}FAIL%3A c",
        f"::error{place}ERROR%3A d",
        f"::warning{place}INCONCLUSIVE%3A e",
        *(f"::error{place}FAIL%3A g{n}" for n in range(8)),
    ]
    assert told(True) == said
    warned = told(False)
    assert [line for line in warned if line.startswith("::error")] == [said[2]]
    assert len(warned) == 11
    assert f"::warning{place}FAIL%3A c" in warned
    # A gate for pull requests does not ask about the animals.
    assert told(False, forgives=True) == [said[0], said[2]]
    cells = [cell("h", Verdict.INCONCLUSIVE, warnings=("odd",))]
    assert told(False, forgives=True) == [f"::warning{place}doubtful INCONCLUSIVE%3A h"]


@pytest.mark.usefixtures("github")
def test_a_cell_that_claims_nothing_is_told_only_if_it_is_an_error(
    tmp_path: Path,
) -> None:
    cells = []
    for verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE):
        claims = cell(verdict.name, verdict, warnings=())
        cells.append(replace(claims, plan=replace(claims.plan, claims=False)))
    for fails, told in ((True, ["FAIL", "ERROR"]), (False, ["ERROR"])):
        found = list(ci.annotate(cells, {}, tmp_path, fails, False))
        assert all(line.startswith("::error") for line in found)
        assert [
            line.partition("title=")[2].partition("%3A")[0] for line in found
        ] == told


def test_outside_github_nothing_is_annotated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("CI", raising=False)
    cells = [cell("a", Verdict.FAIL)]
    lost = compared()
    broken = [exit_status.Broken("maze", "maze.protocol.yaml", "odd")]
    assert list(ci.annotate(cells, {}, Path(), True, False)) == []
    assert list(ci.annotate_exit("no")) == []
    assert list(ci.annotate_comparison(lost, [], {}, Path())) == []
    assert list(ci.annotate_broken(broken, Path())) == []
    assert not ci.is_ci()
    monkeypatch.setenv("CI", "true")
    assert ci.is_ci()


def compared() -> RunComparison:
    """Return a comparison with a protocol that got worse, and one of one run only."""

    def counts(passed: int, name: str, view: str) -> CellCounts:
        return CellCounts(
            protocol=name,
            model="m",
            view=view,
            variant="",
            title=name,
            sha256="0",
            design="cohort",
            trials=20,
            estimand="all",
            subjects={
                n: SubjectScore(passed, 20, 0, f"{n}-{passed}") for n in range(20)
            },
        )

    new = tuple(
        counts(passed, name, "v") for passed, name in ((2, "maze"), (9, "pool"))
    )
    return compare_runs(
        CountedRun(name="new", seed=0, cells=new),
        CountedRun(name="old", seed=0, cells=(counts(15, "maze", "v"),)),
    )


@pytest.mark.usefixtures("github")
def test_losses_that_fail_the_run_are_errors_and_others_warnings(
    tmp_path: Path,
) -> None:
    found = compared()
    losses = list(found.losses)
    paths = {"maze": tmp_path / "maze.protocol.yaml"}
    file = " file=maze.protocol.yaml,line=1,"

    def told(blamed: list[tuple[str, str, str]]) -> list[str]:
        lines = ci.annotate_comparison(found, blamed, paths, tmp_path)
        return [line.rpartition("::")[0] for line in lines]

    assert losses
    assert found.not_compared
    maze = "title=worse than old%3A m on maze"
    both = "title=worse than old%3A m on all protocols together"
    rest = ["::warning title=not compared"]
    rest += ["::warning title=doubtful"] * len(found.doubtful)
    named = [(file + maze), *([f" {both}"] if len(losses) > 1 else [])]
    assert told(losses) == [*(f"::error{one}" for one in named), *rest]
    assert told([]) == [*(f"::warning{one}" for one in named), *rest]
    # What is blamed already is not said again.
    blamed = [("not compared", "", line) for line in found.not_compared]
    assert told(blamed)[0] == "::error title=not compared"
    assert rest[0] not in told(blamed)


@pytest.mark.usefixtures("github")
def test_protocols_that_could_not_be_run_and_the_end_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "lab" / "maze.protocol.yaml"
    text = f"{path}:7:3: error E104: odd"
    broken = [exit_status.Broken("maze", str(path), text)] * 12
    lines = list(ci.annotate_broken(broken, tmp_path))
    assert len(lines) == 10
    line = broken[0].line
    assert lines[0].startswith(
        f"::error file=lab/maze.protocol.yaml,line={line},title=maze could not be run::"
    )
    assert list(ci.annotate_exit("50 % failed\nso")) == [
        "::error title=cheesebench::50 %25 failed%0Aso"
    ]
    elsewhere = ci.command("error", "a,b: c", "d, e: f", Path("/lab/x.yaml"), tmp_path)
    assert elsewhere == "::error title=a%2Cb%3A c::d, e: f"


def test_the_address_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"SERVER_URL": "https://g.example", "REPOSITORY": "lab/rats", "RUN_ID": "7"}
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name, value in known.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    assert ci.job_address() == "https://g.example/lab/rats/actions/runs/7"
    for name, value in (("RUN_ID", ""), ("RUN_ID", "7)"), ("ACTIONS", "false")):
        with monkeypatch.context() as changed:
            changed.setenv(f"GITHUB_{name}", value)
            assert ci.job_address() == ""


def test_a_summary_is_cut_to_what_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "first\n```\ncode\nmore\n```\nlast äöü\n"
    size = len(text.encode())
    assert ci.cut(text, size) == text
    notice = "*Cut here, because GitHub"
    fence = len(f"```{ci._CUT}".encode())
    assert ci.cut(text * 50, fence) == ""
    assert ci.cut(text * 50, fence + 1).startswith(f"\n{notice}")
    inside = ci.cut(text * 50, fence + 15)
    assert inside.startswith(f"first\n```\ncode\n```\n\n{notice}")
    assert ci.cut(text * 50, fence + 14).startswith(f"first\n```\n```\n\n{notice}")
    outside = ci.cut(text * 50, fence + size)
    assert outside.startswith(f"{text}{notice}")
    path = tmp_path / "summary.md"
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    ci.append_step_summary("nowhere")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    monkeypatch.setattr(ci, "LIMIT", 10)
    for part in ("12345", "67890", "more"):
        ci.append_step_summary(part)
    assert path.read_text() == "1234567890"
    assert ci.folded("Runs", "all") == (
        "<details><summary>Runs</summary>\n\nall\n\n</details>\n"
    )
    assert ci.plain("write `a`") == "write a"
