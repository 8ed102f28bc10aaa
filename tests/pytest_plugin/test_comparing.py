"""``--cheese-compare`` and ``--compare-fail``, and the page of a job on GitHub."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from threading import Event
from xml.etree import ElementTree

import pytest

from cheesebench.cli import main
from cheesebench.experiment.cells import COHORT
from cheesebench.experiment.log import RunLog
from cheesebench.pytest_session.ci import append_step_summary, cut
from cheesebench.pytest_session.exit_status import REFUSED
from cheesebench.statistics.comparison import LOSS, excludes_loss
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.pytest_plugin.conftest import corridor
from tests.stored import check_stored, without_prose

RUN = ("--model", "walker", "--protocols=lab", "--subjects=12", "-k", "east")


def unescaped(path: Path) -> str:
    """Return Markdown without what keeps its words from having another meaning."""
    return re.sub(r"\\|<!-- -->", "", path.read_text(encoding="utf-8"))


@pytest.fixture
def baseline(project: pytest.Pytester) -> Path:
    """The baseline ``main``: a run of the walker on ``east``, in which lives are made
    to differ.
    """
    assert project.runpytest_inprocess(*RUN, "--cheese-run-id=old").ret == 0
    assert main(["bless", "old", "main"]) == 0
    path = project.path / "baselines" / "main.json"
    content = json.loads(path.read_text())
    for cell in content["cells"]:
        cell["subjects"] = [[n, 18 - n % 2, 20, 0, f"mark {n}"] for n in range(12)]
    path.write_text(json.dumps(content))
    return path


def test_a_better_run_is_green(project: pytest.Pytester, baseline: Path) -> None:
    result = project.runpytest_inprocess(
        *RUN, "--cheese-compare=main", "--compare-fail=worse", "--cheese-run-id=new"
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "This run against main",
            "*protocol *this run *main *points*",
            "*this run is better than main: +12.5 points*",
        ]
    )
    directory = project.path / "results" / "new"
    report = (directory / "report.md").read_text(encoding="utf-8")
    assert report.startswith("# This run against main\n")
    # No heading in the comment is larger than the comment's own.
    headings = re.findall(
        "^#+ .*", (directory / "comment.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [len(line.split()[0]) for line in headings] == [3, 4, 3]
    assert "### This run against main" in headings


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--compare-fail=worse",), 1)])
def test_a_worse_run_fails_only_on_demand(
    project: pytest.Pytester, baseline: Path, options: tuple[str, ...], code: int
) -> None:
    worse = (
        "--model",
        "statue",
        *RUN[2:],
        "--cheese-compare=main",
        "--cheese-exit-zero",
    )
    result = project.runpytest_inprocess(*worse, *options, "--cheese-html=page.html")
    assert result.ret == code
    result.stdout.fnmatch_lines(
        ["statue against walker in *", "*is worse than main: -87.5 points*"]
    )
    # The first screen of the page leads to what was lost.
    page = (project.path / "page.html").read_text(encoding="utf-8")
    assert re.search(r'Watch a failure: <a class="watch" href="#east/0/1/0">', page)


def test_every_reader_of_the_pipeline_is_told_of_a_regression(
    project: pytest.Pytester, baseline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    given = (
        "--model",
        "statue",
        "--protocols=lab",
        "--subjects=12",
        "-k",
        "east or west",
        "--cheese-compare=main",
    )
    result = project.runpytest_inprocess(
        *given, "--compare-fail=worse", "--cheese-exit-zero", "--junitxml=junit.xml"
    )
    assert result.ret == 1
    errors = [line for line in result.outlines if line.startswith("::error")]
    assert len(errors) == 2, "why; the one protocol, once; the FAILs are forgiven"
    why = "::error title=cheesebench::Exit code 1, the gate is red: worse than main on east. What "
    assert errors[0].startswith(why)
    assert errors[1].startswith(
        "::error file=lab/east.protocol.yaml,line=1,title=worse than main%3A statue on east::"
    )
    [warning] = [line for line in result.outlines if line.startswith("::warning")]
    assert warning.startswith("::warning title=not compared::main does not have west (")
    said = " ".join(" ".join(result.outlines).split())
    results = project.path / "results"
    [run] = [one for one in results.glob("*/comment.md") if one.parent.name != "old"]
    remedy = "unpack the artifact in your clone, run `cheesebench bless {} main`, and commit baselines/main.json."
    assert remedy.format(run.parent.name) in unescaped(run)
    assert remedy.format(run.parent.name).replace("`", "") in said
    assert (
        "Warning: main does not have west (ascii_2d): a loss there would not be seen."
        in said
    )
    assert (
        "Exit code 1, the gate is red: worse than main on east. What was lost "
        "can be watched" in said
    )
    assert said.index("This run against main") < said.index(
        "statue in ascii_2d (2 FAIL)"
    )
    result.assert_outcomes(failed=1)
    assert "1 failed, 1 deselected, 2 forgiven in" in said
    [shown] = re.findall("= FAILURES =+(.*?)= cheesebench =", said)
    assert re.findall("_ (worse than [^_]*) _", shown) == [
        "worse than main: statue on east"
    ]
    suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
    failed = {
        case.get("name"): case.get("classname")
        for case in suite.iter("testcase")
        if case.find("failure") is not None
    }
    assert failed["worse than main: statue on east"] == "cheesebench"
    found = {one.get("name"): one.get("value") for one in suite[0].iter("property")}
    assert found["cheesebench.statue[ascii_2d].east.compared"] == "worse"
    assert found["cheesebench.not_compared"] == "west (ascii_2d)"
    assert str(found["cheesebench.comparison_warnings"]).startswith(
        "main does not have west (ascii_2d): a loss there "
    )


def test_what_could_only_end_undecided_is_refused_before_it_is_run(
    project: pytest.Pytester, baseline: Path
) -> None:
    result = project.runpytest_inprocess(
        *(
            "--model",
            "statue",
            "--protocols=lab",
            "--subjects=12",
            "-k",
            "east or west",
        ),
        *("--cheese-compare=main", "--compare-fail=worse,undecided"),
    )
    said = " ".join(" ".join([*result.outlines, *result.errlines]).split())
    assert result.ret == 4
    assert "main does not have west (ascii_2d)" in said
    assert "Run what it has (--protocols east), or bless" in said
    several = project.runpytest_inprocess(
        *RUN, "--model=statue", "--cheese-compare=main", "--compare-fail=undecided"
    )
    assert several.ret == 4
    several.stderr.fnmatch_lines(
        ["*main does not have statue*Run what it has (--model walker), or bless*"]
    )


def test_too_few_subjects_to_exclude_a_loss_are_refused_before_they_are_run(
    project: pytest.Pytester, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even an unchanged model could pass with so few subjects."""
    few = ("--model", "walker", "--protocols=lab", "--subjects=6", "-k", "east")
    gate = ("--cheese-compare=main", "--compare-fail=undecided")
    result = project.runpytest_inprocess(*few, *gate)
    assert result.ret == 4
    said = " ".join(" ".join(result.errlines).split())
    least = re.search(r"it takes (\d+) to exclude a loss", said)
    assert least
    assert f"6 of its subjects are in main, and it takes {least[1]}" in said
    assert (
        f"to exclude a loss if nothing differs at all, {COHORT} for a usual model"
        in said
    )
    assert f"add --subjects {COHORT}." in said
    assert excludes_loss([0.0] * int(least[1]), LOSS)
    assert not excludes_loss([0.0] * (int(least[1]) - 1), LOSS)
    enough = [word.replace("=6", f"={least[1]}") for word in few]
    assert project.runpytest_inprocess(*enough, *gate, "--run-id=enough").ret == 0
    assert project.runpytest_inprocess(*few, "--run-id=few").ret == 0
    capsys.readouterr()
    assert main(["bless", "enough", "other"]) == 0
    assert "Warning" not in capsys.readouterr().err
    assert main(["bless", "few", "other"]) == 0
    warned = f"nothing changes: east (6, at least {least[1]} are needed)."
    assert warned in " ".join(capsys.readouterr().err.split())


def test_a_budget_that_ends_in_the_middle_is_told_where_the_comparison_is(
    project: pytest.Pytester,
) -> None:
    """The remaining trials do not count as measured."""
    with FakeServer("ACTIONS: FORWARD, FORWARD") as server:
        given = ("--model=openai/tiny", "--base-url", server.base_url, "--protocols=lab")  # fmt: skip
        both = (*given, "-k", "east or few", "--design=cohort", "--subjects=12")
        project.runpytest_inprocess(*both, "--cheese-run-id=old")
        assert main(["bless", "old", "main"]) == 0
        with RunLog.open_read_only(project.path / "results/old") as log:
            spent = log.calls.totals()
        budget = (spent.prompt + spent.completion) // 2
        result = project.runpytest_inprocess(
            *both, f"--max-tokens={budget}", "--cheese-compare=main",
            "--compare-fail=worse,undecided", "--cheese-run-id=new",
        )  # fmt: skip
    assert result.ret == 1
    comment = (project.path / "results/new/comment.md").read_text(encoding="utf-8")
    told = comment.partition("<details>")[0]
    # The cause may stand beside the share, or in the sentence on the gate.
    assert "% of trials missing" in told
    assert re.search(r"the run has used .*--max-tokens \d+ is reached", told)


def test_a_few_trials_are_no_result(project: pytest.Pytester) -> None:
    """Neither tables nor means nor JUnit have numbers of a cell that has hardly begun,
    whether a budget or a server ended it.
    """

    def breaks(call: Call) -> Answer:
        if call.number > 90:
            return Answer(status=500)
        return Answer(text="ACTIONS: FORWARD, FORWARD")

    given = ("--model=openai/tiny", "--protocols=lab/east.protocol.yaml")
    both = (*given, "--design=cohort", "--subjects=12", "--junitxml=junit.xml")
    gate = ("--cheese-compare=main", "--compare-fail=worse,undecided")
    with FakeServer("ACTIONS: FORWARD, FORWARD") as server:
        url = ("--base-url", server.base_url)
        project.runpytest_inprocess(*both, *url, "--cheese-run-id=old")
        assert main(["bless", "old", "main"]) == 0
        project.runpytest_inprocess(
            *both, *url, *gate, "--max-tokens=60000", "--cheese-run-id=budget"
        )
        junit = [(project.path / "junit.xml").read_text(encoding="utf-8")]
    with FakeServer(breaks) as server:
        project.runpytest_inprocess(
            *both, f"--base-url={server.base_url}", *gate, "--retries=0",
            "--cheese-run-id=server", "--concurrency=1",
        )  # fmt: skip
        junit.append((project.path / "junit.xml").read_text(encoding="utf-8"))
    for run, mark, text in zip(("budget", "server"), "?!", junit, strict=True):
        comment = (project.path / f"results/{run}/comment.md").read_text(
            encoding="utf-8"
        )
        assert re.search(
            rf"\| east +\| +{re.escape(mark)} \d+ of 240 trials \|", comment
        ), comment
        row = next(one for one in comment.splitlines() if "undecided | east" in one)
        assert "0 of 12" in row
        assert re.findall("[0-9.]+ %", row) == ["100 %"], "only the baseline's"
        assert re.search(r"Only \d+ of 240 trials that count were measured", comment)
        report = (project.path / f"results/{run}/report.md").read_text(encoding="utf-8")
        assert re.search(r"\| east .*\| unfinished \|", report)
        assert "cheesebench.valid" in text
        for name in ("rate", "difference", "interval_low", "mean_rate"):
            assert f'cheesebench.{name}"' not in text
        assert "].mean_rate" not in text


@pytest.mark.parametrize("given", [(), ("-n1",)], ids=["alone", "xdist"])
def test_where_the_comparison_gates_it_alone_fails_a_case(
    project: pytest.Pytester, given: tuple[str, ...]
) -> None:
    """The statue fails, as it did in the baseline."""
    statue = ("--model", "statue", *RUN[2:], "--junitxml=junit.xml", *given)
    assert project.runpytest_inprocess(*statue, "--cheese-run-id=old").ret == 1
    assert main(["bless", "old", "main"]) == 0
    gate = (*statue, "--cheese-compare=main", "--compare-fail=worse,undecided")

    def failures(*more: str) -> tuple[int, str | None]:
        code = int(project.runpytest_inprocess(*gate, *more).ret)
        suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
        verdicts = [
            one.get("value")
            for one in suite.iter("property")
            if one.get("name") == "cheesebench.verdict"
        ]
        assert verdicts == ["FAIL"]
        return code, suite.get("failures")

    assert failures() == (1, "1")
    assert failures("--cheese-exit-zero") == (0, "0")
    # Nothing on the terminal looks like a failure of a job that is green.
    green = project.runpytest_inprocess(*gate, "--cheese-exit-zero").outlines
    assert not [line for line in green if "FAILURES" in line or "failed in" in line]
    assert re.search(r"= 1 forgiven in|, 1 forgiven in", green[-1])


def test_of_a_model_that_never_acts_the_first_sentence_says_so(
    project: pytest.Pytester, baseline: Path
) -> None:
    with FakeServer("I cannot") as server:
        result = project.runpytest_inprocess(
            *("--model=openai/mute", "--base-url", server.base_url, *RUN[2:]),
            *("--cheese-compare=main", "--compare-fail=worse,undecided"),
            *("--cheese-run-id=new", "--cheese-html=page.html"),
        )
    assert result.ret == 1
    why = r"\? There is no result of this run\. No reply named an action \(\d+ calls\)"
    directory = project.path / "results" / "new"
    for text in (directory / "report.md", directory / "comment.md"):
        first, second = re.findall(
            r"^\*\*(.*?)\*\*", text.read_text(encoding="utf-8"), re.M
        )[:2]
        assert first.startswith(
            "Exit code 1, the gate is red: 1 protocol could not be measured (no reply named an action); undecided"
        )
        assert re.match(why, second)
    page = (project.path / "page.html").read_text(encoding="utf-8")
    assert re.search(rf'<p class="compared undecided"><strong>{why}', page)
    said = " ".join(" ".join(result.outlines).split())
    assert re.search(why, said)
    # The same again would not help, so nothing says how to continue.
    assert "To continue" not in said
    assert "start a new run (in CI: push a commit) with another --prompt" in said


def test_a_model_that_acted_for_the_baseline_and_is_mute_now_has_another_remedy(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has changed is the model or its server, or else the settings."""
    words = ["ACTIONS: FORWARD, FORWARD"]
    gate = ("--compare=main", "--compare-fail=worse,undecided", "--junitxml=junit.xml")
    with FakeServer(lambda call: words[0]) as server:
        given = ("--model=openai/tiny", "--base-url", server.base_url, *RUN[2:])
        assert project.runpytest_inprocess(*given, "--run-id=old").ret == 0
        assert main(["bless", "old", "main"]) == 0
        words[0] = "I cannot"
        result = project.runpytest_inprocess(*given, *gate, "--run-id=new")
        other = project.runpytest_inprocess(
            *given, *gate, "--run-id=other", "--prompt=minimal"
        )
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        in_ci = project.runpytest_inprocess(*given, *gate, "--run-id=job")
    assert result.ret == other.ret == in_ci.ret == 1
    remedy = (
        "The model of main named actions when it was asked like this, so mend what has changed in the model or its "
        "server (template, stop words, limits), then {}: it asks anew where no reply named an action. To read a reply: {}."
    )
    show, again = "cheesebench show {} --protocol east --call 1", "run the job again"
    resume = f"continue the run with --resume new (in CI: {again})"
    here = remedy.format(resume, show.format("new"))
    assert here in " ".join(" ".join(result.outlines).split())
    said = " ".join(" ".join(other.outlines).split())
    assert (
        "red: not run with the settings of main (prompt minimal, not default)" in said
    )
    assert "Take the settings of main again, and start a new run" in said
    unpacked = "in a clone in which the job's artifact is unpacked"
    comment = project.path / "results" / "job" / "comment.md"
    there = remedy.format(again, f"`{show.format('job')}`, {unpacked}")
    assert there in unescaped(comment)
    # One annotation for the job, and one for its protocol; one case is red.
    annotations = [line for line in in_ci.outlines if line.startswith("::")]
    assert len(annotations) == 2
    assert "::error title=cheesebench::" in annotations[0]
    suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    told = (suite.findtext("testcase/error") or "").split("\n\n")
    assert told[0].startswith("No reply named an action")
    assert told[-1].startswith("Exit code 1, the gate is red: 1 protocol could not be ")


def test_a_protocol_that_is_broken_is_named_with_its_remedy(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    both = (*RUN[:4], "-k", "east or west")
    assert project.runpytest_inprocess(*both, "--run-id=old").ret == 0
    assert main(["bless", "old", "main"]) == 0
    broken = project.path / "lab" / "west.protocol.yaml"
    text = broken.read_text(encoding="utf-8").replace("start: {at", "strat: {at")
    broken.write_text(text, encoding="utf-8")
    result = project.runpytest_inprocess(
        *both, "--compare=main", "--compare-fail=worse,undecided", "--run-id=new"
    )
    assert result.ret == 1
    line = text[: text.index("strat")].count("\n") + 1
    place = rf"lab/west\.protocol\.yaml:{line}:1: error E\d+"
    said = " ".join(" ".join(result.outlines).split())
    why = rf"Exit code 1, the gate is red: 1 protocol could not be run \({place}\)\. .*'start'"
    assert re.search(why, said)
    assert "in main, but not run" not in said
    assert "another test failed" not in said
    comment = (project.path / "results/new/comment.md").read_text(encoding="utf-8")
    assert re.search(why, re.sub(r"\*\*|\\|<!--.*?-->", "", comment))
    title = (
        f"::error file=lab/west.protocol.yaml,line={line},title=west could not be run::"
    )
    assert any(one.startswith(title) for one in result.outlines)


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cheesebench.pytest_session.run.BEAT", 0.0)
    hold = Event()

    def slow(call: Call) -> str:
        if call.number == 30:
            hold.wait(1)
        return "ACTIONS: FORWARD, FORWARD"

    with FakeServer(slow) as server:
        result = project.runpytest_inprocess(
            "--model=openai/tiny",
            "--base-url",
            server.base_url,
            "--protocols=lab",
            "--subjects=4",
        )
    result.stdout.re_match_lines(
        [r"cheesebench: \d of 3 cells.*; \d+ %.*; \d+/\d+ calls in flight.*"]
    )


def test_what_cannot_be_compared_is_refused_before_anything_is_run(
    project: pytest.Pytester, baseline: Path
) -> None:
    protocol = project.path / "lab" / "east.protocol.yaml"
    protocol.write_text(protocol.read_text().replace("limit: 5", "limit: 6"))
    result = project.runpytest_inprocess(
        *RUN, "--cheese-compare=main", "--cheese-run-id=new"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*the protocol east differs*with the protocols of the other*"]
    )
    assert not (project.path / "results" / "new").exists()


def test_a_refused_attempt_replaces_what_the_last_one_reported(
    project: pytest.Pytester, baseline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of a job that is run again has restored its reports. They are replaced
    even if pytest's own parser refuses an option.
    """
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    results = project.path / "results" / "new"
    gate = ("--cheese-compare=main", "--compare-fail=worse", "--cheese-html=page.html")
    run = (*RUN, *gate, "--junitxml=junit.xml")
    assert project.runpytest_inprocess(*run, "--run-id=new").ret == 0
    green = (results / "comment.md").read_text(encoding="utf-8")
    assert "**Exit code 0, the gate is green: " in green
    for wrong, why in [
        ("--subjects=13", "--resume new: that run was made with --subjects 12"),
        ("--max-cots=1", "There is no option '--max-cots'. Did you mean '--max-cost'?"),
        (
            "--compare-fail=wors",
            "--compare-fail: there is no 'wors'. Did you mean 'worse'? Known: never, ",
        ),
        ("--subjects=few", "--subjects few: write a whole number."),
        ("--exit-zero=1", "--exit-zero: ignored explicit argument '1'."),
    ]:
        for name in ("summary.md", "junit.xml"):
            (project.path / name).unlink(missing_ok=True)
        result = project.runpytest_inprocess(*run, "--resume=new", wrong)
        assert result.ret == 4
        assert why in result.stderr.str()
        assert result.errlines[-1 - (not result.errlines[-1])] == f"{REFUSED}."
        comment = (results / "comment.md").read_text(encoding="utf-8")
        assert comment.startswith(
            f"<!-- cheesebench -->\n**{REFUSED}:**\n\n```text\n{why}"
        )
        report = (results / "report.md").read_text(encoding="utf-8")
        summary = (project.path / "summary.md").read_text(encoding="utf-8")
        assert report.startswith(f"**{REFUSED}:**\n\n```text\n{why}")
        assert "`cheesebench report new`" in report
        assert summary.startswith(f"**{REFUSED}:**\n\n```text\n{why}")
        assert not (project.path / "page.html").exists()
        annotation = f"::error title=cheesebench::{REFUSED}: {why}"
        assert any(line.startswith(annotation) for line in result.outlines)
        suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
        told = suite.findtext("testcase/error") or ""
        assert told.startswith(f"{REFUSED}: {why}")
    assert project.runpytest_inprocess(*run, "--resume=new").ret == 0
    assert (results / "comment.md").read_text(encoding="utf-8") == green
    assert (project.path / "page.html").exists()


def test_another_seed_is_to_be_left_out(
    project: pytest.Pytester, baseline: Path
) -> None:
    """It comes from the baseline. A run with another one cannot take it over."""
    result = project.runpytest_inprocess(*RUN, "--seed=5", "--cheese-compare=main")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = " ".join(" ".join(result.errlines).split())
    assert "than the seed 0 of main" in said
    assert "Leave out --seed: a new run takes it from main." in said


def test_with_xdist_the_refusal_comes_at_the_end(
    project: pytest.Pytester, baseline: Path
) -> None:
    result = project.runpytest_inprocess(
        *RUN, "--seed=5", "-n1", "--cheese-compare=main"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = " ".join(" ".join(result.outlines).split())
    assert re.search(
        "Exit code 4, CheeseBench could not compare this run: .* cannot be compared, .*"
        "the seed is 5 in .* and 0 in main",
        said,
    )


def test_a_resumed_run_is_not_compared_with_itself(
    project: pytest.Pytester, baseline: Path
) -> None:
    given = (
        "--model=breaker",
        *RUN[2:],
        "--cheese-compare=latest",
        "--cheese-run-id=new",
    )
    first = project.runpytest_inprocess(*given)
    first.stdout.fnmatch_lines(
        ["*This run against old*", "  pytest *--compare=old --resume new"]
    )
    again = project.runpytest_inprocess(
        "--model=breaker", "--subjects=12", "--resume=new", "--cheese-compare=latest"
    )
    assert again.ret == pytest.ExitCode.USAGE_ERROR
    again.stderr.fnmatch_lines(
        [
            "*--cheese-compare latest: that is the run to resume. Name another run as the baseline.*"
        ]
    )


def test_workers_of_xdist_know_the_baseline_of_their_controller(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a worker, `latest` would mean the run itself. Without a baseline, a language
    model would stop when it is decided.
    """
    monkeypatch.setenv(
        "PYTEST_ADDOPTS", "--view=ascii_2d -p no:hypothesispytest -p no:anyio"
    )

    def walk(call: Call) -> str:
        return f"ACTIONS: {'STAY, ' if call.body.get('seed', 0) % 2 else ''}FORWARD, FORWARD"

    with FakeServer(walk) as server:
        given = (
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            "--protocols=lab",
            "-k",
            "east",
        )
        assert (
            project.runpytest(*given, "--design=cohort", "--cheese-run-id=old").ret == 0
        )
        result = project.runpytest(
            *given, "-n1", "--cheese-compare=latest", "--cheese-run-id=new"
        )
    result.stdout.fnmatch_lines(["*This run against old*"])
    with RunLog.open_read_only(project.path / "results/new") as log:
        [plan] = log.plans()
        assert (plan.design, len(log.completed_subjects(plan))) == ("cohort", COHORT)


def test_options_that_make_no_sense(project: pytest.Pytester, baseline: Path) -> None:
    result = project.runpytest_inprocess(*RUN, "--compare-fail=worse")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--compare-fail needs a baseline: add --compare BASELINE*"]
    )
    result = project.runpytest_inprocess(*RUN, "--cheese-compare=mian")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*There is no baseline or run 'mian'. Did you mean 'main'? Baselines in *: main.*"
        ]
    )
    baseline.unlink()
    result = project.runpytest_inprocess(*RUN, "--cheese-compare=main")
    result.stderr.fnmatch_lines(
        [
            "*There is no baseline in *. Make a run (*), bless it (cheesebench bless RUN main), and commit *main.json.*"
        ]
    )


def test_a_report_that_is_too_large_is_cut_between_lines_with_its_code_block_closed() -> (
    None
):
    text = "# Title\n\n```\n" + "ä row\n" * 200 + "```\n\nThe end\n"
    assert cut(text, len(text.encode())) == text
    for room in range(300, 700):
        shorter = cut(text, room)
        assert len(shorter.encode()) <= room
        assert shorter.count("```") == 2
        assert shorter.endswith("the run's directory.*\n")
        assert all(
            line in ("", "# Title", "```", "ä row")
            for line in shorter.splitlines()[:-1]
        )
    assert cut(text, 50) == ""


def test_the_limit_is_shared_by_all_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    for _ in range(3):
        append_step_summary("a line of a report\n" * 30_000)
    assert 2**20 - 400 < path.stat().st_size <= 2**20
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    append_step_summary("nothing happens")


#: Runs one after the other, in a project with three little protocols.
RUNS = """
--model walker --protocols=lab --subjects=12 --cheese-run-id=first
--model walker --protocols=lab/east.protocol.yaml --subjects=12 --cheese-run-id=east -v
--model statue --protocols=lab --subjects=12 -k east --cheese-run-id=none -v
--model breaker --protocols=lab --subjects=3 -k east --cheese-run-id=broken
--model walker --model statue --protocols=lab --subjects=6 -k few --cheese-run-id=two
--model statue --protocols=lab --subjects=12 -k east --cheese-compare=first --compare-fail=worse
--model walker --protocols=lab --subjects=12 -k east --cheese-compare=first --junitxml=junit.xml
--model statue --protocols=lab --subjects=12 -k east --junitxml=failed.xml --cheese-exit-zero
--cheese-resume=first
--cheese-resume=nothing
--model walkr --protocols=lab
--model walker --protocols=lob
--model walker --protocols=lab --subjects=no
--model walker --protocols=lab --design=cohrt
--model walker --protocols=lab -k nothing
--model walker --protocols=lab --collect-only -q
--model walker --protocols=lab --subjects=2 -k east --shard=1/2 --seed=5 --cheese-run-id=half
--model walker --protocols=lab --subjects=2 --seed=5 --shard=3/2
--model walker --protocols=lab --subjects=3 --setup-plan
--model statue --protocols=lab -k east --film
--model statue --protocols=lab -k few -vv
--model statue --protocols=lab -k 'east or west' --subjects=12 -v --cheese-html=page.html --cheese-markdown=page.md
lab/west.protocol.yaml --model walker
cheesebench::east[ascii_2d-walker] --model walker --protocols=lab --cheese-run-id=named
cheesebench::eest --model walker --protocols=lab
--model walker --protocols=lab,lab/east.protocol.yaml,twice -k east
--model walker --protocols=twice,torn
--model walker --protocols=lab --view=topdown_2d
--model walker,scripted:right.yaml --protocols=lab -k east --view=ascii_2d,topdown_2d --collect-only
--model walker --protocols=lab -k few --inconclusive=fail
--model walker --protocols=lab -k few --cheese-exit-zero
--model breaker --protocols=lab --subjects=3 -k east --cheese-exit-zero
--model breaker --protocols=lab --subjects=3 -k east --cheese-resume=broken -v
--model walker --protocols=lab --subjects=12 -k east --cheese-compare=first --cheese-resume=first
--model walker --protocols=lab --compare-fail=worse
--model walker --protocols=lab --cheese-compare=nobody
--model walker --protocols=lab --subjects=3 -k east --cheese-compare=first --compare-fail=undecided
--model walker --protocols=lab,twice --subjects=12 --cheese-compare=east --compare-fail=undecided
--model walker,statue --protocols=lab --subjects=12 -k east --cheese-compare=east --compare-fail=worse,undecided
--model walker --protocols=lab --subjects=12 -k east --cheese-compare=latest --compare-fail=worse --exit-zero --cheese-run-id=gate
--model breaker --protocols=lab --subjects=12 -k east --cheese-compare=breaking --compare-fail=undecided
--model scripted:right.yaml --protocols=lab --subjects=2 -k east --seed=3 --cheese-run-id=said
--model scripted:mute.yaml --protocols=lab --subjects=2 -k east --seed=3 --cheese-run-id=mute
--model scripted:right.yaml --protocols=lab --subjects=2 -k east --seed=3 --concurrency=1 --max-tokens=9000 --cheese-run-id=dear
--model scripted:right.yaml --protocols=lab --subjects=2 -k east --seed=3 --concurrency=1 --max-tokens=200
--model scripted:right.yaml --protocols=lab --subjects=2 -k east --seed=3 --concurrency=1 --max-tokens=40000 --cheese-resume=dear
--model scripted:right.yaml --protocols=lab --subjects=2 -k east --seed=4 --cheese-resume=said
--model scripted:none.yaml --protocols=lab
--model walker --protocols=lab --seed=-1
--model walker --protocols=lab --subjects=2 -k east --no-such-option
"""
#: What scripted models say in turn.
SAID = {
    "right": "seed: 1\nreplies:\n  - say: ['ACTIONS: F, F', 'ACTIONS: S, F, F', 'What?']\n",
    "mute": "seed: 1\nreplies:\n  - say: ['I would rather not.']\n",
}
#: What each run, day, version and machine has of its own.
OWN_NAMES = (
    (r"\d{8}-\d{6}-\w{4}", "RUN-ID"),
    (r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:[\d.]+)?([+-]\d\d:\d\d|Z)?)?", "DATE"),
    (r"\d+\.\d+(e-\d+)? ?s\b", "TIME"),
    (r'time="[\d.]+"', 'time=""'),
    (r'hostname="[^"]*"', 'hostname=""'),
    (r"(Python|pytest-|pluggy-|platform) ?[\w.-]+,?", r"\1"),
    (
        r"^(plugins|platform|cachedir|rootdir|configfile|asyncio|Using|hypothesis).*\n",
        "",
    ),
    (r"=+$|^=+", "="),
    (r'^<property name="(versions?|platform|cheesebench[.]versions?)[^>]*>\n', ""),
    (r"^\| (python|platform|cheesebench|gymnasium|numpy|scipy) .*\n", ""),
)


def test_runs_and_what_pipelines_read_are_compared_with_what_is_stored(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    monkeypatch.setenv("COLUMNS", "100")
    for name, said in SAID.items():
        (project.path / f"{name}.yaml").write_text(said, encoding="utf-8")
    for folder, text in {
        "twice": corridor("east", trials=6),
        "torn": corridor("torn").replace("enter: end", "entr: end"),
    }.items():
        (project.mkdir(folder) / f"{folder}.protocol.yaml").write_text(text, "utf-8")
    shown = []
    for line in RUNS.split("\n")[1:-1]:
        if "--shard=3/2" in line:  # The first reports are enough.
            monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "rest.md"))
        words = shlex.split(line)
        found = project.runpytest_inprocess(*words, "-p", "no:cacheprovider")
        lines = "\n".join([*found.outlines, *found.errlines])
        shown.append(f"$ pytest {line}\n{lines}\n[{int(found.ret)}]\n")
    for name in (
        "junit.xml",
        "failed.xml",
        "summary.md",
        "page.md",
        "results/gate/comment.md",
    ):
        text = (project.path / name).read_text(encoding="utf-8")
        apart = text.replace("><", ">\n<")
        shown.append(f"== {name}\n{apart}\n")
    said = "\n".join(shown).replace(str(project.path), ".")
    for own, instead in OWN_NAMES:
        said = re.sub(own, instead, said, flags=re.MULTILINE)
    check_stored("pytest.txt", without_prose(said))
