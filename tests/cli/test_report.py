"""``report``: the results of a real run, from its log alone."""

from __future__ import annotations

import html
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import cheesebench
from cheesebench.errors import RunLogError
from cheesebench.statistics.wording import NEVER_CALLED
from cheesebench.testing.fake_server import FakeServer
from fuzz.run_logs import rewritten

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]

#: Id of the run in the fixture ``results``.
RUN = "20250131-093000-ab12"


def test_markdown_is_the_default(results: Path, run: Run) -> None:
    result = run("report", RUN)
    assert result.code == 0
    assert RUN in result.out
    assert "| little " in result.out or "little" in result.out.split("|")[2]
    assert result.out == run("report", RUN, "--format", "markdown").out


def test_every_format_reads_the_same_run(results: Path, run: Run) -> None:
    summary = json.loads(run("report", RUN, "--format", "json").out)
    (cell,) = summary["cells"]
    assert cell["plan"]["protocol"] == "little"
    assert cell["plan"]["subjects"] == 2
    text = run("report", RUN, "--format", "text").out
    assert text.startswith("random in ascii_2d")
    assert " little " in text


@pytest.mark.parametrize("given", [f"results/{RUN}", f"results/{RUN}/run.sqlite", RUN])
def test_a_run_is_named_by_id_directory_or_file(
    results: Path, run: Run, given: str
) -> None:
    assert (
        run("report", given, "--format", "json").out
        == run("report", results / RUN, "--format", "json").out
    )


def test_runs_may_lie_elsewhere(results: Path, run: Run) -> None:
    results.rename(results.with_name("elsewhere"))
    assert "There is no run" in run("report", RUN).err
    assert run("report", RUN, "--results", "elsewhere").code == 0


def test_a_report_can_be_written_to_a_file(results: Path, run: Run, here: Path) -> None:
    printed = run("report", RUN).out
    assert run("report", RUN, "--output", "report.md").out == ""
    assert (here / "report.md").read_text(encoding="utf-8") == printed


def test_a_log_is_verified_before_it_is_reported(results: Path, run: Run) -> None:
    found, plain = run("report", RUN, "--verify"), run("report", RUN)
    assert found.code == plain.code == 0
    assert found.err.startswith("Verified: ")
    assert plain.err.endswith(
        "were written. Its trials were not replayed (cheesebench report RUN --verify does that).\n"
    )
    assert found.out == plain.out
    with closing(sqlite3.connect(results / RUN / "run.sqlite")) as log:
        log.execute("DELETE FROM trials WHERE subject = 1")
        log.execute("DELETE FROM lives WHERE subject = 1")
        log.commit()
    for more in ((), ("--verify",)):
        found = run("report", RUN, *more)
        assert found.code == 2
        assert "damaged: its rows differ from the rows that were written" in found.err


def test_what_no_run_has_written_is_a_line_and_no_traceback(
    results: Path, run: Run
) -> None:
    with rewritten(results / RUN / "run.sqlite") as log:
        log.execute(
            'UPDATE cells SET plan = replace(plan, \'"estimand":"all"\', \'"estimand":"none"\')'
        )
    found = run("report", RUN)
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert "--verify' tells which" in found.err


def test_an_unknown_run_is_told_with_the_nearest(results: Path, run: Run) -> None:
    result = run("report", RUN.replace("ab12", "ab13"))
    assert result.code == 2
    assert (
        result.err
        == f"cheesebench: There is no run '20250131-093000-ab13' in results. Did you mean '{RUN}'?\n"
    )


def test_what_is_no_run_log(results: Path, run: Run) -> None:
    (results / RUN / "run.sqlite").write_bytes(b"something else entirely" * 100)
    result = run("report", RUN)
    assert (result.code, result.out) == (2, "")
    assert "is not a run log" in result.err


def test_the_page_is_written_beside_the_log_or_where_it_is_wanted(
    results: Path, run: Run, here: Path
) -> None:
    result = run("report", RUN, "--html")
    beside = here / "results" / RUN / "report.html"
    assert (result.code, result.out) == (0, f"{beside}\n")
    page = beside.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Watch the trials" in page
    assert run("report", RUN, "--html", "page.html").out == "page.html\n"
    assert (here / "page.html").read_text(encoding="utf-8") == page
    assert run("report", RUN, "--format", "html").out == page


def test_the_page_has_one_place_to_go_to(results: Path, run: Run) -> None:
    for more, two in (
        (["one.html", "--output", "page.html"], "--output page.html name two files"),
        (["--format", "json"], "--format json name two formats"),
    ):
        result = run("report", RUN, "--html", *more)
        assert result.code == 2
        assert two in result.err
    assert run("report", RUN, "--html", "--output", "page.html").out == "page.html\n"
    assert "cannot be written" in run("report", RUN, "--html", "nowhere/page.html").err


def test_several_runs_are_one_leaderboard(here: Path, run: Run) -> None:
    common: dict[str, Any] = {
        "protocols": "little.protocol.yaml",
        "design": "cohort",
        "subjects": 2,
        "results": "results",
    }
    for model in ("random", "tabular-ql"):
        cheesebench.run(model, seed=1, run_id=model, **common)
    found = run("report", "random", "tabular-ql", "--html", "board.html", "--verify")
    assert found.code == 0, found.err
    assert found.err.count("Verified: ") == found.err.count("Replayed: ") == 2
    assert "replaces" not in found.err
    # Without a path, the page gets the same name in this directory.
    again = run("report", "random", "tabular-ql", "--html").err.splitlines()
    assert again[-1] == "board.html replaces the previous file."
    assert run("report", "random", "tabular-ql", "--output", "board.svg").code == 0
    image = ElementTree.parse(here / "board.svg").getroot()
    assert image.get("aria-label", "").startswith(("random (", "tabular-ql ("))
    page = (here / "board.html").read_text(encoding="utf-8")
    for model in ("random", "tabular-ql"):
        assert f'<a href="#little%40{model}%2Cascii_2d/0/1/0">' in page
    summary = json.loads(run("report", "random", "tabular-ql", "--json").out)
    assert [model["model"] for model in summary["models"]] == ["random", "tabular-ql"]
    assert (
        summary["cells"][0]
        == json.loads(run("report", "random", "--json").out)["cells"][0]
    )

    # The same model twice; other rules; a log that was changed.
    cheesebench.run("random", seed=2, run_id="again", **common)
    assert (
        "both have random on little in ascii_2d" in run("report", "random", "again").err
    )
    cheesebench.run(
        "hippocampal-ql",
        seed=1,
        run_id="longer",
        **{**common, "design": "smoke", "subjects": None},
    )
    assert "little has other rules in " in run("report", "random", "longer").err
    with sqlite3.connect(here / "results" / "tabular-ql" / "run.sqlite") as connection:
        connection.execute("UPDATE trials SET success = 1 - success WHERE subject = 0")
    altered = run("report", "random", "tabular-ql", "--html", "altered.html")
    assert altered.code == 2
    assert "tabular-ql" in altered.err
    assert not (here / "altered.html").exists()


#: Commands that replay a log, and those that only check its rows.
REPLAYING = (
    "report --verify",
    "bless",
    "compare",
    "board",
    "verdict",
    "verdict of two",
)
READING = ("report", "export", "figures", "show", "runs", "python")
SUCCESSES = "UPDATE trials SET success = 1 - success"
MARGIN = "UPDATE cells SET plan = replace(plan, '\"margin\":0.', '\"margin\":0.9')"
GOALS = [
    f"UPDATE cells SET plan = json_set(plan, '$.goal', {goal})" for goal in (1.5, 0, 40)
]


@pytest.mark.parametrize(
    ("command", "change", "forged", "said"),
    [
        *product((*REPLAYING, *READING), [SUCCESSES], [False], ["is damaged"]),
        *product(REPLAYING, [SUCCESSES], [True], ["differs from the record"]),
        *product(
            REPLAYING,
            ["UPDATE {} SET model = 'gpt-5.4-mini'"],
            [True],
            ["not one call to it"],
        ),
        *product(
            ["report --verify", "bless"], [MARGIN], [True], ["say: margin is 0.9"]
        ),
        *product(REPLAYING, GOALS[:1], [True], ["say: goal is 1.5, not 20.0"]),
        *product(["report --verify"], GOALS[1:], [True], ["say: goal is"]),
    ],
)
def test_every_command_tells_a_forged_log(
    command: str, change: str, forged: bool, said: str, results: Path, run: Run
) -> None:
    """Rows changed without and with a new digest, a model that was never called, and a
    bar that differs from the protocol's.
    """
    tables = ("cells", "trials", "events") if "{}" in change else ("trials",)
    path = results / RUN / "run.sqlite"
    with rewritten(path) if forged else closing(sqlite3.connect(path)) as log:
        for table in tables:
            log.execute(change.format(table))
        if "{}" in change:
            log.execute(
                "UPDATE cells SET plan = replace(plan, '\"random\"', '\"gpt-5.4-mini\"')"
            )
        log.commit()
    arguments = {
        "report": ("report", RUN),
        "export": ("export", RUN, "--csv", "--table", "trials"),
        "figures": ("figures", RUN),
        "show": ("show", RUN),
        "runs": ("runs",),
        "report --verify": ("report", RUN, "--verify"),
        "bless": ("bless", RUN, "main"),
        "compare": ("compare", RUN, RUN),
        "verdict": ("verdict", str(path)),
        "verdict of two": ("verdict", str(path), str(path.parent)),
        "board": ("report", RUN, str(results / RUN / "run.sqlite"), "--verify"),
    }
    if command == "python":
        with pytest.raises(RunLogError, match=said):
            _ = cheesebench.open_run(path).summary
        return
    found = run(*arguments[command])
    if command == "runs":
        assert said in found.out
        return
    assert found.code == 2
    assert said in found.err
    assert found.err.count("\n") == 1


SCRIPT = 'replies: [{say: ["ACTIONS: STAY", "ACTIONS: FORWARD"], choose: by_seed}]'


@pytest.mark.parametrize(
    ("model", "changes", "said"),
    [
        (
            "tabular-ql",
            [
                *(f"UPDATE {one} SET model = 'random'" for one in ("trials", "events")),
                "UPDATE cells SET model = 'random'"
                ", plan = replace(plan, '\"tabular-ql\"', '\"random\"')",
                "UPDATE cells SET plan = json_set(plan, '$.memory', 'none')",
            ],
            "is not what random does under the run's seed",
        ),
        (
            "scripted:script.yaml",
            ["UPDATE calls SET reply = 'ACTIONS: ROTATE_LEFT' WHERE subject = 1"],
            "does not follow from the model's replies. Call 2 asked something else.",
        ),
    ],
)
def test_actions_of_somebody_else_are_told(
    here: Path, run: Run, model: str, changes: list[str], said: str
) -> None:
    """Changed actions are found, even if they lead to the recorded trials and the
    digest is new.
    """
    (here / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    usual: dict[str, Any] = {"design": "cohort", "subjects": 2, "run_id": "one"}
    cheesebench.run(model, "little.protocol.yaml", results="results", **usual)
    assert run("report", "one", "--verify").code == 0
    with rewritten(here / "results/one/run.sqlite") as log:
        for change in changes:
            log.execute(change)
    for command in (
        ("report", "one", "--verify"),
        ("bless", "one", "main"),
        ("compare", "one", "one"),
        ("verdict", "one"),
    ):
        found = run(*command)
        assert found.code == 2
        assert said in found.err
        assert found.err.count("\n") == 1


RENAMED = [
    *(
        f"UPDATE {table} SET model = 'gpt-5.4-mini'"
        for table in ("cells", "trials", "events", "calls")
    ),
    "UPDATE cells SET plan = json_set(plan, '$.model', 'gpt-5.4-mini')",
]
TELLING = (
    ("report", "one"),
    ("report", "one", "--verify"),
    ("export", "one", "--csv", "--table", "trials"),
    ("bless", "one", "main"),
    ("compare", "one", "one"),
    ("verdict", "one"),
)


@pytest.mark.parametrize("seeded", [True, False])
def test_a_name_of_another_model_is_told(
    here: Path, run: Run, seeded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seeds of calls depend on the name. Without them the questions agree, but the
    server was asked for another model.
    """
    (here / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    drops = "" if seeded else ", drops: [seed]"
    listed = f"models: {{mine: {{backend: scripted, id: script.yaml{drops}}}}}"
    (here / "models.yaml").write_text(listed, encoding="utf-8")
    monkeypatch.setenv("CHEESEBENCH_MODELS", "models.yaml")
    cheesebench.run(
        "mine",
        "little.protocol.yaml",
        results="results",
        design="cohort",
        subjects=2,
        run_id="one",
    )
    assert "stands for" not in run("report", "one", "--verify").err
    with rewritten(here / "results/one/run.sqlite") as log:
        for change in RENAMED:
            log.execute(change)
    for command in TELLING:
        found = run(*command)
        reads_only = command[0] == "export" or command == ("report", "one")
        if reads_only or not seeded:
            assert found.code == 0
            told = "In the log, gpt-5.4-mini stands for 'script.yaml', here"
        else:
            assert found.code == 2
            told = "Call 1 asked something else."
        assert told in " ".join((found.err + found.out).split())


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("claims", "json('false')", "claims is False, not True"),
        ("design", "'leaderboard'", "design is leaderboard, not cohort"),
        ("memory", "'life'", "memory is life, not none"),
        ("title", "'A triumph'", "title is A triumph, not Little"),
        ("estimand", "'last:1'", "estimand is last:1, not all"),
        ("against", "'chance'", "against is chance, not reference"),
        ("sha256", "'0'", "cannot be read as in the run"),
        ("variant", "'control=yoked:x'", "The cell of random on little is not planned"),
        ("settings.id", "'gpt-5.4-mini'", "settings is {'id': 'gpt-5.4-mini'}, not {}"),
    ],
)
def test_a_plan_that_was_not_stored_so_is_told(
    results: Path, run: Run, part: str, value: str, said: str
) -> None:
    with rewritten(results / RUN / "run.sqlite") as log:
        log.execute(f"UPDATE cells SET plan = json_set(plan, '$.{part}', {value})")
        log.execute("UPDATE cells SET variant = json_extract(plan, '$.variant')")
    for command in (("report", RUN, "--verify"), ("bless", RUN, "main")):
        found = run(*command)
        assert found.code == 2
        assert said in found.err


def test_a_practice_run_becomes_no_other(here: Path, run: Run) -> None:
    """Not even if the options are changed as well: its trials are too few."""
    usual: dict[str, Any] = {"design": "smoke", "run_id": "one"}
    cheesebench.run("random", "little.protocol.yaml", results="results", **usual)
    assert run("report", "one", "--verify").code == 0
    path = here / "results/one/run.sqlite"
    with rewritten(path) as log:
        log.execute(
            "UPDATE cells SET plan = json_set(plan, '$.claims', json('true'), '$.design', 'cohort')"
        )
    said = "say: design is cohort, not smoke; claims is True, not False."
    assert said in run("verdict", "one").err
    with rewritten(path) as log:
        log.execute(
            "UPDATE manifest SET value = json_set(value, '$.design', 'cohort', '$.subjects', 2) WHERE key = 'options'"
        )
    assert "say: trials is 2, not 4." in run("verdict", "one").err


def test_what_an_audit_says_is_that_of_the_shipped_one(here: Path, run: Run) -> None:
    """Of a protocol without a shipped audit it is told that nobody compared it."""
    for protocol, code, said in (
        (
            "operant_chamber",
            2,
            "options say: ability is AbilityScale(without=0.1, ideal=1.0), not",
        ),
        ("little.protocol.yaml", 0, "What an audit says of little was not compared"),
    ):
        cheesebench.run(
            "random", protocol, results="results", design="smoke", run_id=protocol
        )
        assert " audit " not in run("report", protocol, "--verify").err
        with rewritten(here / "results" / protocol / "run.sqlite") as log:
            scale = json.dumps({"without": 0.1, "ideal": 1.0})
            log.execute(
                "UPDATE cells SET plan = json_set(plan, '$.ability', json(?))", [scale]
            )
        found = run("report", protocol, "--verify")
        assert (found.code, said in found.err) == (code, True)


def test_a_control_of_a_study_is_planned_as_it_was(here: Path, run: Run) -> None:
    study = "version: 1\nstudy: s\ntitle: S\ntrials: 1\naxes: {history: [1, 3]}\n"
    Path("s.study.yaml").write_text(study)
    with FakeServer("ACTIONS: FORWARD") as server:
        cheesebench.run(
            *("openai/tiny", "little.protocol.yaml"), base_url=server.base_url,
            study="s.study.yaml", control="no-memory", results="results", run_id="s",
        )  # fmt: skip
    found = run("report", "s", "--verify")
    assert found.code == 0, found.err


def test_an_audit_of_ones_own_is_compared_in_its_directory(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shipped protocol may have been copied, and audited once more."""
    shipped, own = Path(str(files("cheesebench.protocols"))), here / "own"
    shutil.copytree(shipped / "animals", own / "animals")
    shutil.copy(shipped / "operant_chamber.protocol.yaml", own)
    audits = json.loads((shipped / "lesions.audit.json").read_text())
    for finding in (one for audit in audits for one in audit["findings"]):
        finding.get("numbers", {}).pop("proven", None)
    (own / "mine.audit.json").write_text(json.dumps(audits))
    cheesebench.run(
        "random", "own", results="results", design="smoke", run_id="own", subjects=1
    )
    found = run("report", "own", "--verify")
    assert (found.code, "run this in the audit's directory." in found.err) == (2, True)
    monkeypatch.chdir(own)
    assert run("report", "own", "--verify", "--results", "../results").code == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE calls SET asked = asked || '!' WHERE trial = 1", "Call 1 asked some"),
        ("UPDATE texts SET text = 'Be good.'", "Call 1 asked something else."),
        ("UPDATE cells SET plan = json_set(plan, '$.settings.history', 3)", "asked"),
        ("UPDATE cells SET plan = json_remove(plan, '$.settings.history')", "history"),
        ("UPDATE cells SET plan = json_set(plan, '$.agent', 'llm-tools')", "answer"),
        ("DELETE FROM calls WHERE trial = 1 AND call = 0", "A reply is missing."),
        ("UPDATE calls SET trial = trial + 9 WHERE trial = 1 AND call = 0", "missing"),
    ],
)
def test_a_question_that_was_not_asked_is_told(
    here: Path, run: Run, change: str, said: str
) -> None:
    (here / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    usual: dict[str, Any] = {"design": "cohort", "subjects": 2, "run_id": "one"}
    cheesebench.run(
        "scripted:script.yaml", "little.protocol.yaml", results="results", **usual
    )
    with rewritten(here / "results/one/run.sqlite") as log:
        log.execute(change)
    for command in TELLING[1], *TELLING[3:]:
        found = run(*command)
        assert found.code == 2
        assert said in found.err


def test_a_language_model_without_an_agent_is_told(here: Path, run: Run) -> None:
    """Its replies would not be read."""
    (here / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    usual: dict[str, Any] = {"design": "cohort", "subjects": 2, "run_id": "one"}
    cheesebench.run(
        "scripted:script.yaml", "little.protocol.yaml", results="results", **usual
    )
    for agent, code, said in (
        ("foo", 0, "The replies to the agent 'foo' were not read again"),
        ("", 2, "but not one call to it"),
    ):
        with rewritten(here / "results/one/run.sqlite") as log:
            log.execute("UPDATE cells SET plan = json_set(plan, '$.agent', ?)", [agent])
        found = run("report", "one", "--verify")
        assert (found.code, said in found.err) == (code, True)


def test_a_cost_that_is_not_of_its_tokens_is_told(here: Path, run: Run) -> None:
    with FakeServer("ACTIONS: STAY") as server:
        cheesebench.run(
            "openai/gpt-5.4-mini",
            "little.protocol.yaml",
            base_url=server.base_url,
            results="results",
            design="cohort",
            subjects=2,
            run_id="one",
        )
    assert " cost " not in run("report", "one", "--verify").err
    with rewritten(here / "results/one/run.sqlite") as log:
        log.execute("UPDATE calls SET cost = 0")
    for command in TELLING:
        found = run(*command)
        assert found.code == 0
        told = " ".join((found.err + found.out).split())
        assert "gpt-5.4-mini cost $0.00 according to the log, but its tokens" in told


def test_a_life_that_is_short_by_its_schedule_is_whole(
    here: Path, run: Run, maze: str
) -> None:
    until = "trials: 9, until: {outcome: found, count: 1}}"
    short = maze.replace("sessions: 2, trials: 2}", until)
    (here / "short.protocol.yaml").write_text(short, encoding="utf-8")
    usual: dict[str, Any] = {"design": "cohort", "subjects": 6, "run_id": "one"}
    done = cheesebench.run(
        "bfs-oracle", "short.protocol.yaml", results="results", **usual
    )
    assert run("report", "one", "--verify").code == 0
    assert done.summary.cells[0].planned < 6 * 9


@pytest.mark.parametrize("model", ["random", "scripted:script.yaml"])
def test_trials_that_are_gone_at_the_end_of_a_life_are_told(
    here: Path, run: Run, model: str
) -> None:
    """Also if the log says that the life had no more of them."""
    (here / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    usual: dict[str, Any] = {"design": "cohort", "subjects": 2, "run_id": "one"}
    cheesebench.run(model, "little.protocol.yaml", results="results", **usual)
    assert run("report", "one", "--verify").code == 0
    with rewritten(here / "results/one/run.sqlite") as log:
        [(last,)] = log.execute("SELECT max(trial) FROM trials")
        for table in ("trials", "events", "calls"):
            log.execute(f"DELETE FROM {table} WHERE trial = ?", (last,))
        log.execute("UPDATE lives SET trials = ?", (last,))
    for command in (("report", "one", "--verify"), ("bless", "one", "main")):
        found = run(*command)
        assert found.code == 2
        assert "is the last one recorded, but the schedule goes on" in found.err
        assert found.err.count("\n") == 1


def test_a_model_without_a_call_is_said_wherever_a_log_is_read(
    results: Path, run: Run, here: Path
) -> None:
    """A replayed run looks the same, so it is no error; but it is not published."""
    with rewritten(results / RUN / "run.sqlite") as log:
        for table in ("cells", "trials", "events"):
            log.execute(f"UPDATE {table} SET model = 'gpt-5.4-mini'")
        log.execute(
            "UPDATE cells SET plan = replace(plan, '\"random\"', '\"gpt-5.4-mini\"')"
        )
    for command in (
        ("report", RUN),
        ("export", RUN, "--csv", "--table", "trials"),
        ("figures", RUN, "--format", "svg"),
    ):
        found = run(*command)
        assert found.code == 0, found.err
        assert "trials were not replayed" in found.err
        assert "; there are trials without one call to gpt-5.4-mini.\n" in found.err
    for form in ("markdown", "text", "html", "json"):
        shown = html.unescape(run("report", RUN, "--format", form).out)
        assert NEVER_CALLED in " ".join(shown.split())
    for target in (["--every-eval-ever"], ["--hugging-face", "a/b"]):
        found = run("export", RUN, *target)
        assert found.code == 2
        assert "not one call to it" in found.err
    assert " (1 doubtful)" in run("runs").out
    assert "asked no language model" in run("show", RUN).err
    [cell] = cheesebench.open_run(here / "results" / RUN).summary.cells
    assert cell.warnings == (NEVER_CALLED,)
