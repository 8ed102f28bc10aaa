"""Public functions return the same results as the commands of the same names."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

import cheesebench
import cheesebench.errors
from cheesebench import arguments, tables
from cheesebench.amounts import dollars
from cheesebench.cli import main
from cheesebench.functions import _NEEDS
from cheesebench.reports.matrix import MOST
from tests.pytest_plugin.conftest import corridor

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {
    "subjects": 6,
    "design": "flat-4",
    "seed": 3,
    "view": "ascii_2d",
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "east.protocol.yaml"
    path.write_text(corridor("east", trials=4), encoding="utf-8")
    return path


def test_a_run_is_planned_compared_and_drawn(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forecast = cheesebench.plan("random", lab, **SMALL)
    words = ["--subjects=6", "--design=flat-4", "--seed=3", "--view=ascii_2d", "--json"]
    assert main(["plan", "--model=random", f"--protocols={lab}", *words]) == 0
    assert (
        json.loads(capsys.readouterr().out)["cells"][0]["trials"]
        == forecast.cells[0].trials
    )
    runs = [
        cheesebench.run("random", lab, run_id=name, progress=False, **SMALL)
        for name in ("one", "two")
    ]
    found = cheesebench.compare(runs[0].directory, "two")
    assert main(["compare", "one", "two", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert found.models[0].cells[0].identical
    assert said["models"][0]["cells"][0]["answer"] == found.models[0].cells[0].answer
    with pytest.raises(
        cheesebench.CheeseBenchError,
        match=r"no baseline or run 'three'.* Make a run, bless it on the command line \(cheesebench bless RUN three\), and",
    ):
        cheesebench.compare("one", "three")
    assert cheesebench.compare(*runs) == found
    [cell] = runs[0].summary.cells
    [own] = cheesebench.verdict(runs[0]).tasks
    assert (own.answer, own.reason) == (cell.verdict, cell.reason)
    assert cheesebench.verdict(*runs).tasks[0].answer == "undecided"
    assert cheesebench.verdict("one").tasks == (own,)
    for judged in (cheesebench.verdict("one"), cheesebench.verdict(*runs)):
        row = judged.rows()[0]
        assert (row["model"], row["protocol"]) == ("random", "east")
    assert cheesebench.verdict("one", "two").tasks[0].answer == "undecided"
    assert cheesebench.plan(runs[0], lab, **SMALL).rows() == forecast.rows()
    shown = found._repr_html_()
    assert ">verdict</th>" in shown
    assert f">{found.rows()[0]['reason']}</td>" in shown
    head, _, line = repr(found).splitlines()
    assert head.split() == list(found.rows()[0])
    assert line.startswith(str(found.rows()[0]["model"]))
    pytest.importorskip("pandas")
    assert list(found.frame()["protocol"]) == ["east"]
    pytest.importorskip("matplotlib")
    files = cheesebench.figures(runs, formats="svg")
    shown = files._repr_html_()
    assert 'src="data:image/svg+xml;base64,' in shown
    assert "<figcaption>Results by paradigm</figcaption>" in shown
    drawn = cheesebench.figures(runs, formats="svg", only="paradigms")
    assert list(drawn) == ["paradigms.svg", "figures.md"]
    assert drawn["paradigms.svg"] == files["paradigms.svg"]
    none = cheesebench.figures(runs, formats="svg", only=["strategies", "paradigms"])
    assert list(none) == list(drawn)
    for told in (repr(none), none._repr_html_()):
        assert "No data for strategies (needs a protocol with " in told
    assert f" more than {MOST} conditions" in _NEEDS["conditions"]
    table: Any = found
    with pytest.raises(cheesebench.OptionError, match="its frame"):
        cheesebench.figures(table)
    with pytest.raises(cheesebench.UnknownNameError, match="Did you mean 'forest'"):
        cheesebench.figures("one", only="forst")
    alone: Any = files["paradigms"]
    assert list(alone) == ["paradigms.svg", "figures.md"]
    assert shown.count("<img") > 1 == alone._repr_html_().count("<img")
    with pytest.raises(cheesebench.UnknownNameError, match="Did you mean 'paradigms'"):
        files["paradigm"]
    assert repr(files) == f"<Figures: {', '.join(files)}>"
    assert main(["figures", "one", "two", "--format=svg"]) == 0
    assert set(files) == {path.name for path in Path("figures").iterdir()}
    saved = files.save("elsewhere/figures")
    assert [path.read_bytes() for path in saved] == list(files.values())
    with pytest.raises(
        cheesebench.OptionError, match="'gif' is not one of svg, png, pdf"
    ):
        cheesebench.figures("one", formats=["gif"])


def test_completion_offers_what_the_reference_page_shows() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: [\w.]+\.(\w+)$", page, re.MULTILINE))
    for members in re.findall(r"members: \[(.*?)\]", page):
        shown |= set(members.split(", "))
    [agents] = re.findall(r"## Agents of a notebook\n(.*?)\n## ", page, re.DOTALL)
    shown |= set(re.findall(r"`(\w+)`", agents))
    for names in re.findall(
        r"^from cheesebench import (.+)$",
        (ROOT / "docs/how-to/python.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    ):
        assert set(names.split(", ")) <= shown
    errors = {name for name in cheesebench.__all__ if name.endswith("Error")} & set(
        vars(cheesebench.errors)
    )
    assert set(dir(cheesebench)) == (shown | errors | {"__version__"}) & set(
        cheesebench.__all__
    )


def test_protocols_are_linted_and_audited(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    linted = cheesebench.lint(lab)
    [findings] = linted.values()
    assert len(linted.rows()) == len(findings)
    assert main(["lint", str(lab)]) == 0
    said = capsys.readouterr().out
    assert all(str(one) in said for one in findings)
    (lab.parent / "west.protocol.yaml").write_text("paradigm: west\n", encoding="utf-8")
    found = cheesebench.lint(".")
    own = found[Path("west.protocol.yaml")]
    assert "error" in [one.severity for one in own]
    assert all(escape(one.sentence) in found._repr_html_() for one in own)
    every = [one for several in found.values() for one in several]
    for row, one in zip(found.rows(), every, strict=True):
        assert f" {row['code']}: " in str(one)
    assert cheesebench.lint().rows() == found.rows()
    report = cheesebench.audit(
        str(lab), trials=200, parts=("chance",), views=["ascii_2d"]
    )
    main(
        [
            "audit",
            str(lab),
            "--trials=200",
            "--part=chance",
            "--view=ascii_2d",
            "--json",
        ]
    )
    [printed] = json.loads(capsys.readouterr().out)
    assert [one["text"] for one in printed["findings"]] == [
        one.text for one in report.findings
    ]


def test_all_protocols_together_have_a_row_and_answers_are_those_of_the_command(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    west = lab.with_name("west.protocol.yaml")
    west.write_text(corridor("west", trials=4), encoding="utf-8")
    again = cheesebench.run(
        "random", [lab, west], run_id="again", progress=False, **(SMALL | {"seed": 5})
    )
    rows = cheesebench.compare(again, again).rows()
    assert main(["compare", "again", "again"]) == 0
    printed = capsys.readouterr().out
    assert [row["protocol"] for row in rows] == ["east", "west", "all"]
    for row in rows:
        assert re.search(
            rf"{re.escape(str(row['verdict']))} +{row['protocol']} ", printed
        )
    assert rows[-1]["rate"] == pytest.approx(
        sum(float(str(row["rate"])) for row in rows[:-1]) / 2
    )
    # A verdict on two runs has these answers and numbers.
    other = cheesebench.run(
        "place-learner",
        [lab, west],
        run_id="learned",
        progress=False,
        **(SMALL | {"seed": 5}),
    )
    both = cheesebench.compare(again, other), cheesebench.verdict(again, other)
    for row, own in zip(both[0].rows(), both[1].rows(), strict=True):
        same = row.keys() - {"view", "variant", "difference"}
        assert {name: own[name] for name in same} == {name: row[name] for name in same}
        assert own["difference"] == pytest.approx(row["difference"])
        assert own["low"] is None
    with pytest.raises(cheesebench.CheeseBenchError, match="two models are needed"):
        cheesebench.verdict(again, models=("random", None))
    # It warns of the same, too.
    shorter = cheesebench.run(
        "random", lab, run_id="short", progress=False, **(SMALL | {"seed": 5})
    )
    for second in (shorter, again):
        told = cheesebench.compare(again, second).told
        assert told
        assert set(told) < set(cheesebench.verdict(again, second).told)
    # A folder of that name in the working directory is no run.
    Path("short").mkdir()
    assert cheesebench.verdict("again", "short").told
    both_models = cheesebench.run(
        ["random", "place-learner"], lab, run_id="both", progress=False, **SMALL
    )
    pair = ("random", "place-learner")
    assert [row["verdict"] for row in cheesebench.compare(both_models).rows()] == [
        row["verdict"] for row in cheesebench.verdict("both", models=pair).rows()
    ]
    assert main(["compare", "both"]) == 0
    assert "Models of both" in capsys.readouterr().out
    named = [
        f(again, other, models=("random", "place-learner")).rows()[0]["verdict"]
        for f in (cheesebench.compare, cheesebench.verdict)
    ]
    assert named == [both[0].rows()[0]["verdict"]] * 2
    # A notebook shows what print says.
    for one in (both[1], cheesebench.plan("random", lab, **SMALL)):
        assert one.told
        for line in one.told:
            assert escape(line) in one._repr_html_()
            assert line in repr(one)
    assert (both[0].worse, both[1].worse) == (True, True)
    assert "all (random against place-learner)" in str(both[1])
    assert [row["reason"] for row in both[0].rows()] == [
        line.split(": ", 2)[2] for line in str(both[0]).splitlines()[:3]
    ]
    # The largest results fit into a line or a table.
    assert len(repr(again.summary).splitlines()) == 4
    cell = again.summary.cells[0]
    parts = [cell, cell.plan, again.summary.models[0], again.trial("east").record]
    assert all(len(repr(one)) <= tables.LONGEST for one in parts)
    assert (
        len(repr(again.summary.manifest)) < 1_000 < len(str({**again.summary.manifest}))
    )
    assert (
        len(again.trial("east").frames)
        > 1
        == len(repr(again.trial("east").frames).splitlines())
    )
    # Trials are numbered alike everywhere.
    assert again.trial("east", trial=3).record.trial == 3
    pytest.importorskip("pandas")
    assert list(again.trials()["trial"][:4]) == [1, 2, 3, 4]


class _Still:
    def __init__(self, context: cheesebench.AgentContext) -> None: ...

    def begin_trial(self, observation: str) -> None: ...

    def act(self, observation: str) -> list[int]:
        return [cheesebench.STAY]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None: ...


def test_an_agent_of_the_notebook_is_planned(lab: Path) -> None:
    own = cheesebench.AgentSpec("still", _Still, memory="none")
    found = cheesebench.plan("still", lab, plugins=[own], rate=0.95, **SMALL)
    assert {row["model"] for row in found.rows()} == {"still"}
    assert {row["planned"] for row in found.rows()} == {SMALL["subjects"]}
    run = cheesebench.run(
        "still", lab, plugins=own, progress=False, **(SMALL | {"subjects": 1})
    )
    assert cheesebench.plan(run, **SMALL).rows() == found.rows()
    assert {row["planned"] for row in cheesebench.plan(run).rows()} == {1}
    with pytest.raises(cheesebench.OptionError, match=r"plan\(cheesebench.open_run\('"):
        cheesebench.plan(run.id)
    for again in (cheesebench.plan, lambda one: cheesebench.run(resume=one)):
        with pytest.raises(
            cheesebench.OptionError, match=r"with 'still'.*give plugins=\[\.\.\.\]"
        ):
            again(cheesebench.open_run(run.id))
    for refused in ({"resume": run.id}, {"retry_errors": True}):
        with pytest.raises(cheesebench.OptionError, match="do not apply to plan"):
            cheesebench.plan("random", lab, **refused)
    wrong: Any = own
    with pytest.raises(cheesebench.OptionError, match=r"'still', and plugins=\[SPEC\]"):
        cheesebench.run(wrong, lab)
    claims = cheesebench.plan("random", "t_maze", subjects=20, rate=0.6).rows()
    rates = {row["player"]: row["rate"] for row in claims}
    assert (rates["random"], rates["60 % right"]) == (0.0001, 0.6)


PRICED = """\
models:
  priced: {backend: openai, id: x, price: {prompt: 1, completion: 2, on: 2026-10-01}}
  unpriced: {backend: openai, id: x}
"""


def test_a_plan_has_the_dollars_of_each_row_and_of_the_whole_run(lab: Path) -> None:
    west, models = lab.with_name("west.protocol.yaml"), lab.with_name("m.yaml")
    west.write_text(corridor("west", trials=4), encoding="utf-8")
    models.write_text(PRICED, encoding="utf-8")
    plan = cheesebench.plan("priced", [lab, west], models_file=models, **SMALL)
    rows = plan.rows()
    per_subject = plan.cells[0].outlooks["random"].dollar_each
    assert per_subject is not None
    assert rows[0]["cost"] == pytest.approx(per_subject * 6)
    whole = [row for row in rows if row["protocol"] == "all"]
    for row in whole:
        assert row["cost"] == pytest.approx(
            sum(
                float(str(one["cost"]))
                for one in rows
                if one["player"] == row["player"] and one["protocol"] != "all"
            )
        )
    [alone] = {
        row["cost"]
        for row in cheesebench.plan("unpriced", lab, models_file=models, **SMALL).rows()
    }
    assert alone is None
    assert rows[0]["tokens"] > rows[0]["calls"] > 0  # type: ignore[operator]
    assert isinstance(rows[0]["subjects"], int)
    assert ">calls</th>" in plan._repr_html_()
    free = cheesebench.plan("random", lab, **SMALL)
    assert free.rows()[0]["calls"] is None
    assert ">calls</th>" not in free._repr_html_()
    assert any("replies" in one for one in plan.told)
    cell, numeric = f">{dollars(float(str(rows[0]['cost'])))}<", "<th>cost</th>"
    assert cell in plan._repr_html_()
    assert cell.strip("<>") in repr(plan)
    assert numeric in plan._repr_html_()
    assert '<th style="text-align: left">model</th>' in plan._repr_html_()


#: Mistakes, each with its message.
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a bad number": (lambda: cheesebench.run("random", subjects=-3), "subjects=-3: a run needs"),
    "a bad type": (lambda: cheesebench.plan("random", subjects="x"), "subjects='x': expected"),
    "no model": (lambda: cheesebench.plan([]), "models=NAME, or a profile= or study="),
    "no such path": (lambda: cheesebench.plan("random", "no/"), "protocols='no/': there is no"),
    "an option of tests": (lambda: cheesebench.run("random", film=True), "film= is only for pytest"),
    "no option": (lambda: cheesebench.run("random", subject=3), "Did you mean 'subjects'?"),
    "an id that is taken": (
        lambda: cheesebench.run("random", "east.protocol.yaml", run_id="taken"),
        "continue it with resume='taken', or choose another run_id=.",
    ),
    "a limit": (lambda: cheesebench.run("random", max_cost=-1), "max_cost=-1: give"),
    "no key": (lambda: cheesebench.run("openai/x", "t_maze"), "base_url= for your own server"),
    "no log": (lambda: cheesebench.verdict("nowhere"), "no log nowhere, and no run"),
    "a run and a value": (lambda: cheesebench.verdict("taken", value=0.5), "Remove value=."),
    "a run and a log": (
        lambda: cheesebench.verdict("taken", "scores.csv"),
        "taken is a run of CheeseBench, and scores.csv is a log of another program",
    ),
    "nothing to compare": (lambda: cheesebench.verdict("scores.csv"), "a second log, or value=."),
    "a bad value": (lambda: cheesebench.verdict("scores.csv", value=7), "value=7 is not between"),
    "bad limits": (lambda: cheesebench.verdict("scores.csv", limits=(1, 0)), "limits=(LOW, HIGH)"),
    "no score": (lambda: cheesebench.verdict("scores.csv", value=0.5, limits=(0, 0.6)), "limits="),
    "a bad format": (lambda: cheesebench.figures("taken", formats=["gif"]), "formats='gif'"),
    "a bad width": (lambda: cheesebench.figures("taken", width=99), "width=99: give"),
    "no part": (lambda: cheesebench.audit("t_maze", parts="nothing"), "no part of the audit"),
    "no trials": (lambda: cheesebench.audit("t_maze", trials=0), "trials=0: give"),
    "a bad rate": (lambda: cheesebench.plan("random", rate=7), "rate=7: give"),
    "a bad correlation": (lambda: cheesebench.plan("random", icc=7), "icc=7: give"),
    "no run": (lambda: cheesebench.compare("taken", "nowhere"), "no baseline or run 'nowhere'"),
    "an option for an argument": (
        lambda: cheesebench.compare("taken", "taken", first_model="random"),  # type: ignore[call-arg]
        "Give models=(FIRST, SECOND) instead."
    ),
    "a method without arguments": (
        lambda: cheesebench.open_run("taken").trials("east"),  # type: ignore[call-arg]
        "See help(cheesebench.Run.trials)",
    ),
    "an argument of a method": (
        lambda: cheesebench.open_run("taken").table("steps", observation=True),  # type: ignore[call-arg]
        "Did you mean 'observations'?"
    ),
    "no results": (lambda: cheesebench.open_run("nowhere"), "no run 'nowhere'"),
}  # fmt: skip


def test_errors_of_functions_name_arguments(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cheesebench.run("random", lab, run_id="taken", progress=False, **SMALL)
    Path("scores.csv").write_text(
        "subject,item,score\na,1,1\nb,1,0\n", encoding="utf-8"
    )
    for name, (mistake, said) in MISTAKES.items():
        with pytest.raises(cheesebench.CheeseBenchError) as caught:
            mistake()
        assert said in str(caught.value), name
        assert " --" not in f" {caught.value}", name
    with pytest.raises(cheesebench.OptionError, match="subjects=0: a run needs"):
        asyncio.run(cheesebench.run_async("random", lab, subjects=0))


def test_a_command_names_its_options(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figures", "x", "--width=99"]) == 2
    assert "--width 99: give 1 to 50 inches" in capsys.readouterr().err
    assert main(["audit", str(lab), "--effort=0"]) == 2


@pytest.mark.parametrize(
    ("said", "spoken"),
    [
        ("--control memoryless.", "control='memoryless'."),
        ("--run-id 'a b' cannot name a run", "run_id='a b' cannot name a run"),
        ("Give --max-tokens instead.", "Give max_tokens= instead."),
        ("(--familywise corrects all)", "(familywise=True corrects all)"),
        ("--backend-option a_b=NAME", "backend_option={'a_b': NAME}"),
        ("run pytest --model NAME --resume x", "run pytest --model NAME --resume x"),
        ("'cheesebench report RUN --verify'", "'cheesebench report RUN --verify'"),
        ("pip install --upgrade x", "pip install --upgrade x"),
        ("--resume 20261130-003046-4066", "resume='20261130-003046-4066'"),
        ("or see 'cheesebench models'.", "or see cheesebench.catalogue('models')."),
        ("(pytest --resume one.2).", "(cheesebench.run(resume='one.2'))."),
        ("--cheese-seed 3; -- and --no-such 4", "seed=3; -- and --no-such 4"),
    ],
)
def test_options_become_arguments(said: str, spoken: str) -> None:
    assert arguments.in_python(said) == spoken


def test_an_audit_shows_its_progress_in_a_notebook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown() -> str:
        cheesebench.audit("t_maze", trials=10, parts="chance", views="ascii_2d")
        return capsys.readouterr().err

    # Another test may have imported it.
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert shown() == ""
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert re.search(r"part 1 of 1, chance.*Audited t_maze in [\d.]+ m?s\.\n$", shown())


def test_tokens_that_nobody_counts_are_not_none(lab: Path) -> None:
    own = cheesebench.BackendSpec.of("mine", lambda messages: "ACTIONS: FORWARD")
    cheesebench.run("mine/x", lab, plugins=own, subjects=1, progress=False)
    found = cheesebench.plan("mine/x", lab, plugins=own)
    assert "0 tokens a reply" not in str(found)
    assert "own latest run" not in str(found)
