"""The page on continuous integration: its exit codes must be the real ones
(``tests/docs`` runs its workflows).
"""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
from collections.abc import Callable
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from junitparser import JUnitXml

from cheesebench import installed_plugins
from cheesebench.cli import main
from cheesebench.pytest_session.exit_status import REFUSED
from cheesebench.testing.fake_server import Answer, Call, FakeServer

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOWS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
CODES = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
FORWARD = "ACTIONS: FORWARD, FORWARD"


def test_the_workflows_are_complete() -> None:
    assert len(WORKFLOWS) == 3, "for a service, for an own server, on GitLab"
    for workflow in WORKFLOWS:
        assert ("--max-cost=" in workflow) != ("OPENAI_BASE_URL:" in workflow)
        for word in (
            "--junitxml=",
            "--cheese-html=",
            "--resume=",
            "--compare-fail=worse,undecided",
            "results",
        ):
            assert word in workflow


def test_the_model_of_the_workflows_has_a_price() -> None:
    """Without a price ``--max-cost`` is refused, and without an entry the name is."""
    models = installed_plugins().models
    named = re.findall(r"^ +MODEL: (\S+)$", PAGE, re.MULTILINE)
    assert len(named) == len(WORKFLOWS)
    priced = [name for name in named if not name.startswith("openai/")]
    assert len(priced) == 2
    assert all(models[name].price is not None for name in priced)


def test_pytest_exit_codes(project: pytest.Pytester) -> None:
    lab, found = "--protocols=lab", []

    def code(*arguments: str) -> int:
        return int(project.runpytest_inprocess(*arguments, lab).ret)

    found += [
        code("--model=walker"),
        code("--model=statue"),
        code("--model=breaker", "--cheese-exit-zero"),
    ]
    assert found == [0, 1, 1], "PASS and INCONCLUSIVE, FAIL, infrastructure"
    assert code("--model=statue", "--cheese-exit-zero", "-k", "east") == 0
    assert code("--model=walker", "-k", "few", "--inconclusive=fail") == 1
    assert code("--model=nobody") == 4
    assert code("--model=walker", "-k", "nothing") == 5
    assert [int(number) for number, _ in CODES[:8]] == [0, 1, 1, 1, 1, 2, 4, 5], (
        "all of them are tried here or below"
    )


def test_an_interrupted_run_is_2(project: pytest.Pytester) -> None:
    project.makeconftest(
        project.path.joinpath("conftest.py").read_text()
        + "\n\ndef pytest_runtest_teardown():\n    raise KeyboardInterrupt\n"
    )
    assert project.runpytest_subprocess("--model=walker", "--protocols=lab").ret == 2


def test_a_spent_budget_is_0_and_1_on_demand(project: pytest.Pytester) -> None:
    with FakeServer(FORWARD) as server:
        given = (
            "--model=openai/tiny",
            "--base-url",
            server.base_url,
            "--protocols=lab",
            "-k",
            "east",
        )
        assert project.runpytest(*given, "--max-tokens=2000").ret == 0
        assert (
            project.runpytest(*given, "--max-tokens=2000", "--inconclusive=fail").ret
            == 1
        )


def walks(call: Call) -> Answer:
    """Walk on; subjects differ in where they wait."""
    waits = "STAY, " if call.body.get("seed", 0) % 2 else ""
    return Answer(text=f"ACTIONS: {waits}FORWARD, FORWARD")


@pytest.fixture
def job(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Run the command of the page's first workflow; return its exit code, and the line
    that gives the reason.

    Every output must agree: the JUnit file has a failed case if the job is red, and
    none if it is green; page, comment, summary and failed cases begin with the same
    sentence.
    """
    monkeypatch.setenv(
        "PYTEST_ADDOPTS",
        "--view=ascii_2d --protocols=lab/east.protocol.yaml -p no:hypothesispytest",
    )
    model = {
        "backend": "openai",
        "id": "tiny",
        "price": {"prompt": 10, "completion": 10, "on": "2026-11-01"},
    }
    (project.path / "models.yaml").write_text(
        json.dumps({"models": {"priced": model}}), encoding="utf-8"
    )
    monkeypatch.setenv("CHEESEBENCH_MODELS", "models.yaml")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    [command] = re.findall(
        r"^ +(pytest --model \"\$MODEL\".*\\\n.*)$", WORKFLOWS[0], re.MULTILINE
    )
    [first] = re.findall(r"^\$ pytest (.* --run-id first) ", PAGE, re.MULTILINE)
    _, *words = shlex.split(
        command.replace("\\\n", " ")
        .replace("$MODEL", "priced")
        .replace("$how", "--run-id=ci")
        .replace("$MAX_COST", "20")
    )

    def job(script: Callable[[Call], Answer], *more: str) -> tuple[int, str]:
        with FakeServer(script) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            if not (project.path / "baselines").exists():
                assert (
                    project.runpytest_inprocess(
                        *first.replace("NAME", "priced").split()
                    ).ret
                    == 0
                )
                assert main(["bless", "first", "main"]) == 0
                (project.path / "summary.md").unlink()
            how = {one.partition("=")[0] for one in more} & {"--run-id", "--resume"}
            given = words if not how else [w for w in words if w != "--run-id=ci"]
            done = project.runpytest_inprocess(*given, *more)
        said = " ".join(" ".join(done.outlines).split())
        suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
        bad = [
            case.get("name")
            for case in suite.iter("testcase")
            if {"failure", "error"} & {child.tag for child in case}
        ]
        counted = [int(suite.get(name, 0)) for name in ("failures", "errors")]
        assert (len(bad), bool(bad)) == (sum(counted), bool(done.ret)), bad
        parsed = JUnitXml.fromfile(str(project.path / "junit.xml"))
        assert bool(parsed.failures + parsed.errors) == bool(done.ret)
        page = (project.path / "report.html").read_text(encoding="utf-8")
        header = unescape(re.sub("<[^>]*>", " ", page[page.index("<header") :]))
        where = [one.start() for one in re.finditer("(?<!::)Exit code", said)]
        assert len(where) == 1, "the sentence is in the output once"
        said = said[where[0] :]
        # A cause, in brackets, may have sentences of its own.
        whole = r"^Exit code (?:\((?:[^()]|\([^()]*\))*\)|[^(])*?\.(?= [A-Z=]| *$)"
        [decision] = re.findall(whole, said)
        badge = "RED" if done.ret else "GREEN"
        told = f"CheeseBench This run against main {badge} {decision} "
        assert f'<p class="gate-says {"fail" if done.ret else "pass"}">' in page
        assert " ".join(header.split()).startswith(told)
        run_id = next(
            one.partition("=")[2]
            for one in reversed([*words, *more])
            if one.startswith(("--run-id=", "--resume="))
        )
        results = project.path / "results" / run_id
        comment = (results / "comment.md").read_text(encoding="utf-8")
        summary = (project.path / "summary.md").read_text(encoding="utf-8")
        (project.path / "summary.md").unlink()
        for text in (comment, summary):
            plain = unescape(re.sub(r"<!--.*?-->\n?|\\", "", text))
            title, bold = plain.split("\n\n")[:2]
            assert title.lstrip("# ") == "This run against main"
            assert bold.startswith(f"**{decision}**")
        # The rest is folded, for readers who open it.
        assert "<details><summary>The whole report</summary>" in summary
        assert f"The rest: `results/{run_id}/report.md` and `report.html`" in comment
        assert {decision} == {
            one.get("value")
            for one in suite.iter("property")
            if one.get("name") == "cheesebench.exit"
        }
        failures = [one.text or "" for one in suite.iter("failure")]
        for one in suite.iter("failure"):
            message = one.get("message") or ""
            assert decision not in message, "its own reason alone"
            assert (one.text or "").startswith(message)
        cases = ["".join(one.itertext()) for one in suite.iter("testcase")]
        said_in = [text for text in cases if decision in text]
        assert len(said_in) == bool(done.ret), "the first bad case says it, once"
        assert not any(text.startswith(decision) for text in failures), "its own first"
        assert bool(failures) == ("FAILURES" in done.stdout.str())
        return int(done.ret), said

    return job


def test_the_job_is_red_when_it_should_be(
    project: pytest.Pytester, job: Callable[..., tuple[int, str]]
) -> None:
    """Against a server that stays the same (exactly, or nearly), gets worse, breaks,
    and costs too much.
    """

    def noisy(call: Call) -> Answer:
        return (
            Answer(text="ACTIONS: STAY, FORWARD, FORWARD")
            if call.number % 7 == 0
            else walks(call)
        )

    kept = "no loss of 30 points against main on 1 protocol"
    undecided = "undecided whether it is worse than main on east, where"
    for script, options, code, why in [
        (walks, [], 0, f"{kept}."),
        (noisy, ["--run-id=noisy"], 0, f"{kept}."),
        (
            walks,
            ["--run-id=other", "--prompt=minimal"],
            0,
            f"{kept}; not run with the settings of main (prompt minimal, not default).",
        ),
        (
            lambda call: Answer(text="ACTIONS: STAY"),
            ["--run-id=worse"],
            1,
            "worse than main on east.",
        ),
        (
            lambda call: Answer(status=500) if call.number > 30 else walks(call),
            ["--run-id=breaks", "--retries=0"],
            1,
            "1 protocol could not be measured (server: ",
        ),
        (
            walks,
            ["--run-id=poor", "--max-cost=0.05"],
            1,
            f"{undecided} 390 of the trials that count could not be run (the run has cost $",
        ),
        (
            lambda call: Answer(text="I would rather not."),
            ["--run-id=mute"],
            1,
            "1 protocol could not be measured (no reply named an action); undecided ",
        ),
        (
            lambda call: Answer(text=""),
            ["--run-id=empty"],
            1,
            "1 protocol could not be measured (no reply named an action: all were empty); undecided ",
        ),
    ]:
        done, said = job(script, *options)
        assert done == code, said
        colour = "red" if code else "green"
        begin = f"Exit code {code}, the gate is {colour}: {why}"
        assert said.startswith(begin), said
        if "--run-id=poor" in options:
            budget = re.findall("Run the job again with (--max-cost [^ :]*):", said)
    # Once the server is mended, the same job measures, and says so.
    for mended in ("mute", "empty"):
        done, said = job(walks, f"--resume={mended}")
        assert (done, kept in said) == (0, True), said
        comment = (project.path / f"results/{mended}/comment.md").read_text("utf-8")
        assert "was begun anew" in comment
    # What it says is enough; what is missing without harm is said, too.
    done, said = job(walks, "--resume=poor", *budget[0].split())
    assert (done, kept in said) == (0, True), said


def test_replies_that_were_cut_off_have_their_remedy_on_every_first_screen(
    project: pytest.Pytester, job: Callable[..., tuple[int, str]]
) -> None:
    def cut_off(call: Call) -> Answer:
        return (
            Answer(text="I think that", finish="length")
            if call.number % 3
            else walks(call)
        )

    code, said = job(cut_off)
    assert code == 0, said
    for name in ("report.html", "results/ci/comment.md", "results/ci/report.md"):
        text = (project.path / name).read_text(encoding="utf-8")
        shown = unescape(re.sub("<[^>]*>", " ", text[max(0, text.find("<header")) :]))
        first = " ".join(shown.split())[:2000]
        assert "of replies cut off (raise --reply-tokens, now 256)" in first, name


TOO_LONG = {"message": "too long", "code": "context_length_exceeded"}
NEW = "then start a new run (push a commit), because this one keeps its "


@pytest.mark.parametrize(
    ("bad", "why", "mend"),
    [
        (
            Answer(status=400, error=TOO_LONG),
            "1 protocol could not be measured (context too long",
            f"Give the model a longer context, or shorten its prompts, {NEW}refused calls.",
        ),
        (
            Answer(text="Certainly! I would be glad to help."),
            "worse than main on east",
            f"Mend what has changed in the model or its server (template, stop words, limits), {NEW}replies.",
        ),
        (
            Answer(text="ACTIONS: STAY"),
            "worse than main on east",
            "To test a mended model, push a commit: this job, run again, asks nothing twice.",
        ),
    ],
)  # fmt: skip
def test_a_job_that_asks_nothing_again_says_so_and_a_new_run_leads_out(
    job: Callable[..., tuple[int, str]], bad: Answer, why: str, mend: str
) -> None:
    """The server is mended, and the job run again: it has all of its replies."""
    says = bad.text or ""
    silent = "Certainly" in says
    assert job(walks)[0] == 0
    code, said = job(
        lambda call: bad if call.number > 30 else walks(call), "--run-id=a"
    )
    assert said.startswith(f"Exit code 1, the gate is red: {why}"), said
    assert mend in said, said
    assert ("from an earlier attempt" in said) is False
    counted = re.findall(r"(\d+) of the (\d+) replies that count on east named no action \(main: 0 of \d+\)", said)  # fmt: skip
    assert len(counted) == silent
    assert ("cheesebench bless" in said) == ("STAY" in says)
    for _ in range(2):
        code, said = job(walks, "--resume=a")
        assert (code, mend in said) == (1, True), said
        assert "; nothing was asked: all " in said
    assert job(walks, "--run-id=b")[0] == 0
    if bad.status == 400:
        # Stops that only repeat what is recorded have spoilt nothing.
        code, said = job(walks, "--resume=a", "--retry-errors")
        assert code == 0, said
        assert re.search(r"; \d+ of \d+ replies are from an earlier attempt\.", said)


NOTHING = "malformed: The server sends an empty reply (0 tokens), tried 2 times"
PAGE_502 = "<html><title>502 Bad Gateway</title><script>alert(1)</script> Ray {}"


def nothing(number: int) -> Answer:
    """An empty reply with an id and a time of its own."""
    choice = {"index": 0, "message": {"content": ""}, "finish_reason": "stop"}
    used = {"prompt_tokens": 9, "completion_tokens": 0}
    body = {"id": f"c{number}", "created": 1796038103 + number}
    return Answer(body={**body, "choices": [choice], "usage": used})


LOGIN = b"<!doctype html><title>Sign in</title><h1>Sign in to the proxy</h1>"
ODD = [
    (nothing, NOTHING, "Mend what has changed in the model or its server "),
    (
        lambda n: Answer(body=LOGIN),
        "malformed: The answer is a web page instead of JSON: Sign in, tried 2 times",
        "Mend what answers in the server's place (a proxy, a login page, another ",
    ),
    (
        lambda n: Answer(body=b'{"id": "c%d", "choices": [{"mess' % n),
        "malformed: The answer breaks off in the middle of its JSON, after 3",
        "Mend what ends the server's answers too early (a crash, a time limit, ",
    ),
    (
        lambda n: Answer(status=502, body=PAGE_502.format(n).encode()),
        " answers 502: Bad Gateway, tried 2 times",
        "Mend the server (its own log says more), ",
    ),
    (
        lambda n: Answer(status=500, error={"message": f"`a` <b> (request {n:032x})"}),
        " answers 500: 'a' <b> (request 0",
        "Mend the server (its own log says more), ",
    ),
]


def test_what_a_server_does_to_every_call_is_one_cause(
    project: pytest.Pytester, job: Callable[..., tuple[int, str]]
) -> None:
    """The identifiers in its answers are no part of the cause, and every reader quotes
    the same one. What it answered is in the details.
    """
    assert job(walks)[0] == 0
    for number, (bad, cause, mend) in enumerate(ODD):

        def script(call: Call, bad: Callable[[int], Answer] = bad) -> Answer:
            return bad(call.number) if call.number > 30 else walks(call)

        code, said = job(script, "--retries=1", f"--run-id=odd-{number}")
        decision = said.partition("; undecided")[0]
        assert (code, cause in decision, mend in said) == (1, True, True), said
        [quoted] = re.findall(r"could not be measured \((.*)\)$", decision)
        assert "other cause" not in quoted
        suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
        [error] = suite.iter("error")
        message = error.get("message") or ""
        assert re.match(r"\d+ trials of .* could not be run: ", message)
        assert message.endswith(f": {quoted}.")
        [reason] = [
            one.get("value") or ""
            for one in suite.iter("property")
            if one.get("name") == "cheesebench.reason"
        ]
        assert reason.endswith(f" Cause: {quoted}.")
        results = project.path / f"results/odd-{number}"
        report = (results / "report.md").read_text(encoding="utf-8")
        report = unescape(re.sub(r"<!--.*?-->|\\", "", report))
        assert report.count(f"Cause: {quoted}.") >= 2
        page = (project.path / "report.html").read_text(encoding="utf-8")
        assert "<script>alert" not in page
        begins = "The answer begins: "
        assert begins not in said + report
        assert (begins in (error.text or "")) == ("answers 500" not in cause)


def _exit_is(suite: ElementTree.Element, told: str) -> None:
    """The JUnit file says how a session ended that ran nothing, too."""
    [said] = [
        one.get("value")
        for one in suite.iter("property")
        if one.get("name") == "cheesebench.exit"
    ]
    assert said == told.partition("\n\n")[0].rstrip()


@pytest.mark.parametrize(
    ("variable", "key", "why"),
    [
        ("OPENAI_API_KEY", "", "OPENAI_API_KEY is not set, or empty (in CI, "),
        (
            "OPENAI_API_KEY",
            "a-key",
            "The server refuses the key in OPENAI_API_KEY. Check ",
        ),
        ("OWN_KEY", "a-key", "The server refuses the key in OWN_KEY. Check "),
    ],
)
def test_without_a_key_it_is_4_and_every_reader_is_told(
    project: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    key: str,
    why: str,
) -> None:
    def refused(call: Call) -> Answer:
        return Answer(status=401)

    page = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv(variable, key)
    own = (
        ()
        if variable == "OPENAI_API_KEY"
        else (f"--backend-option=api_key_env={variable}",)
    )
    with FakeServer(refused) as server:
        given = (
            *own,
            "--model=openai/tiny",
            "--base-url",
            server.base_url,
            "--protocols=lab",
            "--junitxml=junit.xml",
        )
        result = project.runpytest(*given)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*does not answer*"])
    result.stdout.fnmatch_lines(
        [
            f"::error title=cheesebench::{REFUSED}: The model 'openai/tiny' does not answer*"
        ]
    )
    assert page.read_text(encoding="utf-8").startswith(
        f"**{REFUSED}:**\n\n```text\nThe model"
    )
    suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    [error] = suite.iter("error")
    told = error.text or ""
    assert told.startswith(f"{REFUSED}: The model 'openai/tiny' does not answer")
    assert error.get("message") == told.rstrip()
    assert why in told
    _exit_is(suite, told)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "*cannot be reached (*). Check that a server runs at this address *"),
        (
            Answer(status=500, error={"message": "CUDA out of memory"}),
            "server: * answers 500: CUDA out of memory. Find the cause in the server's log, *",
        ),
        (
            Answer(fault="reset"),
            "connection: * dropped the connection (*). Find the cause in the server's log, *",
        ),
        (
            Answer(body=b""),
            "malformed: The answer is empty. Mend what ends the server's answers too early *",
        ),
        (
            Answer(body=LOGIN),
            "malformed: The answer is a web page instead of JSON: Sign in. Mend what answers in the server's place *",
        ),
        (
            Answer(body=b"pong"),
            "malformed: The answer is not JSON. Mend what answers in the server's place *",
        ),
    ],
)
def test_a_server_that_does_not_answer_has_a_remedy_that_fits(
    project: pytest.Pytester, answer: Answer | None, why: str
) -> None:
    with FakeServer(answer or "nothing is asked") as server:
        url = server.base_url if answer else "http://127.0.0.1:9/v1"
        given = ("--model=openai/tiny", "--base-url", url, "--protocols=lab")
        result = project.runpytest(*given)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: The model 'openai/tiny' *: {why}"])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--model=walkr --protocols=lab", "There is no model 'walkr'. Did you mean "),
        ("--modle=walker", "There is no option '--modle'. Did you mean '--model'?"),
        ("--profile nightyl", "There is no profile 'nightyl'. Did you mean 'nightly'?"),
        ("--profile=odd", "*subject is not a CheeseBench run option. Did you mean "),
        ("--protocols=lab", "--protocols has no effect without a model: add --model "),
        ("--model=walker --compare=main --compare-fail=wors", "--compare-fail: there "),
        ("--model=walker --timeout=1 --subjects", "--subjects: expected one argument."),
    ],
)
def test_a_wrong_option_is_told_to_every_reader(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: str, why: str
) -> None:
    page = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    profiles = "[tool.cheesebench.profiles"
    (project.path / "pyproject.toml").write_text(
        f"{profiles}.nightly]\nsubjects = 6\n{profiles}.odd]\nsubject = 6\n"
    )
    result = project.runpytest("--junitxml=junit.xml", *options.split())
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: {why}*", f"{REFUSED}."])
    result.stdout.fnmatch_lines([f"::error title=cheesebench::{REFUSED}: {why}*"])
    suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    told = (suite.findtext("testcase/error") or "", page.read_text(encoding="utf-8"))
    _exit_is(suite, told[0])
    begins = (f"{REFUSED}: {why}*", f"[*][*]{REFUSED}:[*][*]\n\n```text\n{why}*")
    assert all(map(fnmatch.fnmatchcase, told, begins)), told
