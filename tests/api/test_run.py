"""Runs from Python: the same records and verdicts as from pytest, as data frames, and
trials that play themselves.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from PIL import Image

import cheesebench
from cheesebench import Agent, AgentContext, AgentSpec
from cheesebench.api import SETTINGS, _Line
from cheesebench.errors import (
    CheeseBenchError,
    ComparisonError,
    OptionError,
    PluginError,
    RunLogError,
    UnknownNameError,
)
from cheesebench.experiment.log import RunLog
from cheesebench.extras import install_command
from cheesebench.model_run import ModelRun
from cheesebench.options import OPTIONS
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import CellPlan
from cheesebench.tally import time_left
from cheesebench.testing.fake_server import Answer, FakeServer
from cheesebench.verification import verify
from fuzz.run_logs import rewritten

FEW: dict[str, Any] = {"design": "cohort", "subjects": 6, "progress": False}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> cheesebench.Run:
    results = tmp_path_factory.mktemp("results")
    return cheesebench.run(
        "random",
        ["t_maze", "shuttle_box"],
        seed=3,
        results=results,
        run_id="mine",
        **FEW,
    )


def records(log: Path) -> list[object]:
    with RunLog.open_read_only(log) as one:
        return [
            record
            for plan in one.plans()
            for life in one.trials_by_subject(plan)
            for record in life
        ]


def test_the_records_are_those_of_pytest(made: cheesebench.Run, tmp_path: Path) -> None:
    chosen = "--model random --protocols t_maze --protocols shuttle_box --design cohort --subjects 6 --seed 3"
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *chosen.split(),
        "--run-id",
        "theirs",
    )
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert finished.returncode == pytest.ExitCode.TESTS_FAILED, finished.stdout
    theirs = tmp_path / "results" / "theirs"
    assert records(made.directory / "run.sqlite") == records(theirs / "run.sqlite")
    other = cheesebench.open_run(theirs)
    assert made.verdicts().equals(other.verdicts())
    assert made.verdicts()["verdict"].tolist() == ["FAIL", "FAIL"]


def test_tables_are_data_frames_with_types(made: cheesebench.Run) -> None:
    trials = made.trials()
    assert len(trials) == sum(
        cell.plan.subjects * cell.plan.trials for cell in made.summary.cells
    )
    assert str(trials["success"].dtype) == "boolean"
    # A trial that no verdict judges is not known to have failed.
    assert not trials["judged"].all()
    unknown = trials["success"].isna().tolist()
    assert unknown == (~trials["judged"]).tolist()
    assert trials["recorded_success"].notna().all()
    assert made.table("trials").equals(trials)
    assert trials.columns.get_loc("recorded_success") == (
        trials.columns.get_loc("success") + 1
    )
    assert trials["subject"].unique().tolist() == list(range(6))
    assert made.calls().empty
    assert list(made.calls().columns)[:2] == ["model", "protocol"]
    with pytest.raises(UnknownNameError, match="Did you mean 'steps'"):
        made.table("step")


def test_a_trial_shows_itself(made: cheesebench.Run) -> None:
    trial = made.trial("t_maze", subject=1, trial=2)
    assert trial.frames[0].action == ""
    assert len(trial.frames) == trial.record.steps + 1
    shown = trial._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in shown
    assert "subject 1, trial 2" in shown.partition("</h2>")[0]
    assert "subject 1, trial 2" in str(trial)
    with pytest.raises(
        OptionError, match="Give protocol= as well, one of t_maze, shuttle_box"
    ):
        made.trial()
    with pytest.raises(UnknownNameError, match="Did you mean 't_maze'"):
        made.trial("tmaze")
    numbers: list[tuple[dict[str, Any], str]] = [
        ({"trial": 99}, "no trial 99 of subject 0 in t_maze: its trials are 1 to 22"),
        ({"trial": 0}, "its trials are 1 to 22"),
        ({"subject": 6}, "the cell has subjects 0 to 5"),
    ]
    for wrong, said in numbers:
        with pytest.raises(OptionError, match=said):
            made.trial("t_maze", **wrong)


def test_a_trial_is_written_as_a_moving_picture(
    made: cheesebench.Run, tmp_path: Path
) -> None:
    trial = made.trial("t_maze", trial=2)
    path = trial.film(tmp_path / "x.gif")
    with Image.open(path) as picture:
        assert getattr(picture, "n_frames", 1) > 1
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("path='x.mp4': the name of a film must end in .gif", {"path": "x.mp4"}),
        ("speed=0: give 1 to 1000", {"speed": 0}),
        ("cannot be written: No such file", {"path": tmp_path / "no" / "x.gif"}),
    ]
    for said, options in wrong:
        with pytest.raises(OptionError, match=re.escape(said)):
            trial.film(**options)


def test_names_of_a_strangers_run_are_printable(
    made: cheesebench.Run, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs\x1b[31m"
    shutil.copytree(made.directory, theirs)
    with rewritten(theirs / "run.sqlite") as connection:
        for table in ("cells", "trials", "events", "lives"):
            connection.execute(f"UPDATE {table} SET model = ?", ("a\x1b]0;b\u202e",))
        connection.execute(
            "UPDATE cells SET plan = replace(plan, '\"random\"', '\"a\\u001b]0;b\\u202e\"')"
        )
    run = cheesebench.open_run(theirs)
    trial = run.trial("t_maze")
    for shown in (repr(run), repr(trial), str(trial).partition("\n")[0]):
        assert shown.isprintable()
        assert "a\\x1b]0;b\\u202e" in shown


#: The protocol's own words must never be anything but text.
TITLED = """
version: 1
paradigm: titled
title: WORDS
dimension: WORDS
species: WORDS
fidelity: {preserved: WORDS, simplified: WORDS, retained: WORDS}
arena:
  map: |
    #####
    #S.G#
    #####
  legend: {S: box, G: {zone: goal, glyph: "&"}}
  landmarks: {N: "<"}
start: {at: box, face: E}
trial: {limit: 9, start: run, states: {run: {say: WORDS, rules: [{enter: goal, reward: 1, end: found}]}}}
schedule: {main: {trials: 2}}
success: last == found
reference: [{measure: success, value: 0.5, species: WORDS, source: WORDS, status: WORDS}]
chance: {value: 0.1, trials: 100, how: WORDS}
construct: {name: WORDS, kind: perception, abolished_by: [{lesion: blind, at_most: 0.5}], spared_by: []}
notes: [WORDS]
"""
WORDS = "</script></pre><img src=x onerror=window.hacked=1> [x](javascript:alert) @root https://evil.example ::error a::b"


def test_the_words_of_a_protocol_are_text_wherever_they_are_shown(
    tmp_path: Path,
) -> None:
    path = tmp_path / "titled.protocol.yaml"
    path.write_text(TITLED.replace("WORDS", json.dumps(WORDS)), encoding="utf-8")
    run = cheesebench.run("random", str(path), results=tmp_path, **FEW)
    shown = {
        name: run.report(name)
        for name in PluginManager().reporters
        if name not in ("json", "text")
    }
    shown |= {"a notebook": run._repr_markdown_(), "a trial": run.trial()._repr_html_()}
    assert "onerror" in shown["html"]
    for name, text in shown.items():
        assert "<img src=x" not in text, name
        assert "</script></pre>" not in text, name
        if name not in ("html", "a trial"):
            # What a fence holds is shown as it is.
            text = re.sub(r"(?ms)^```.*?^```", "", text)
            assert "](javascript:" not in text.replace("\\]", ""), name
            assert "@root" not in text, name
            assert not re.search(r"(?<!\S)https://evil", text), name
    for name in ("text", *shown):
        assert not re.search(
            r"(?m)^\s*::", run.report(name) if name == "text" else shown[name]
        ), name


def test_an_agent_of_the_notebook_is_a_model(tmp_path: Path) -> None:
    class Statue:
        def __init__(self, context: cheesebench.AgentContext) -> None: ...

        def begin_trial(self, observation: str) -> None: ...

        def act(self, observation: str) -> list[int]:
            return [cheesebench.STAY]

        def observe(
            self, action: int, reward: float, observation: str, ended: bool
        ) -> None: ...

    mine = types.SimpleNamespace(
        cheesebench_agents=lambda: [
            cheesebench.AgentSpec("statue", Statue, memory="none")
        ],
        __name__="mine",
    )
    found = asyncio.run(
        cheesebench.run_async(
            "statue", "t_maze", plugins=[mine], results=tmp_path, **FEW
        )
    )
    assert found.verdicts()["verdict"].tolist() == ["FAIL"]
    assert "statue" in repr(found)


class Breaks:
    """Acts at random; in each of ``faults`` it gives that answer instead of an action,
    or raises it.
    """

    faults: ClassVar[dict[int, object]] = {}

    def __init__(self, context: cheesebench.AgentContext) -> None:
        self.trial, self.random = 0, random.Random(context.seed)

    def begin_trial(self, observation: str) -> None:
        self.trial += 1

    def act(self, observation: str) -> list[int]:
        fault: Any = self.faults.get(self.trial, [self.random.randrange(4)])
        if isinstance(fault, Exception):
            raise fault
        return fault  # type: ignore[no-any-return]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None: ...


BREAKS = types.SimpleNamespace(
    cheesebench_agents=lambda: [cheesebench.AgentSpec("breaks", Breaks)]
)


@pytest.mark.parametrize(
    ("trial", "fault"),
    [
        (1, ValueError("my bug")),
        (15, None),
        (15, [float("nan")]),
        (22, ValueError("my bug")),
    ],
    ids=str,
)
def test_an_agent_that_breaks_down_is_lost_and_goes_on_once_it_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: int, fault: object
) -> None:
    options: dict[str, Any] = FEW | {
        "plugins": [BREAKS],
        "protocols": "t_maze",
        "results": tmp_path,
        "seed": 1,
    }
    monkeypatch.setattr(Breaks, "faults", {trial: fault})
    told: list[str] = []
    broken = cheesebench.run(
        "breaks", run_id="one", **(options | {"progress": told.append})
    )
    [cell] = broken.summary.cells
    trials = broken.trials()
    lost = [cause == "infrastructure" for cause in trials["missing"]]
    assert lost == [number >= trial for number in trials["trial"]]
    assert lost == trials["recorded_success"].isna().tolist()
    # Ten of 22 trials are practice; what is missing of them was not judged either.
    assert (cell.planned, cell.missing) == (72, 6 * min(12, 23 - trial))
    assert trials["judged"].sum() == cell.planned
    assert trials["block"].tolist() == (["acquisition"] * 10 + ["trained"] * 12) * 6
    assert trials["session"].max() == 8
    assert any(f"stopped in trial {trial}: " in cause for cause in cell.causes)
    if trial < 22:  # six failures less cannot save this one
        assert cell.verdict == "ERROR"
    assert "are as they were written" in verify(RunLog.open_read_only(Path(broken)))

    traceback = broken.journal().query("kind == 'traceback'")["text"]
    assert len(traceback) == 6
    if cell.verdict == "ERROR":
        for shown in (repr(broken), broken._repr_markdown_(), "".join(told)):
            assert f"Cause: stopped in trial {trial}: " in shown
            assert "t_maze" in shown.partition("Cause")[0].splitlines()[-1]

    [told_of] = set(broken.verdicts()["reason"])
    assert cell.causes[0].rstrip(".") in told_of
    for shown in (repr(broken), broken._repr_markdown_(), "".join(told)):
        assert "run.journal() has the details; " in shown
        call = f"cheesebench.run(resume='one', results='{tmp_path}', plugins=[...])"
        assert f"{call} continues the run" in shown
        assert str(fault) in shown or isinstance(fault, list)
    with pytest.raises(OptionError, match="it was begun, but did not end"):
        broken.trial(trial=trial)

    # What acts otherwise than it did is refused, and the cause stays.
    if trial > 1:
        monkeypatch.setattr(Breaks, "faults", {1: [cheesebench.STAY]})
        with pytest.raises(RunLogError, match="change the agent so that it acts"):
            cheesebench.run("breaks", resume="one", **options)
        again = cheesebench.open_run("one", tmp_path).summary.cells[0]
        assert again.causes[0] == cell.causes[0]

    monkeypatch.setattr(Breaks, "faults", {})
    mended = cheesebench.run("breaks", resume="one", **options)
    whole = cheesebench.run("breaks", run_id="two", **options)
    [cell] = mended.summary.cells
    assert (cell.missing, cell.verdict) == (0, "FAIL")
    resumed = "1 resume" if trial == 1 else "2 resumes"
    assert f"6 trials were run anew after a stop, over {resumed}." in cell.remarks
    assert mended.trials().equals(whole.trials())


def test_what_breaks_before_the_judged_block_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Breaks, "faults", {2: ValueError("my bug")})
    options: dict[str, Any] = FEW | {"design": "smoke", "results": tmp_path}
    run = cheesebench.run("breaks", "t_maze", plugins=[BREAKS], **options)
    [cell] = run.summary.cells
    assert (cell.verdict, cell.missing) == ("ERROR", cell.plan.subjects)
    assert "my bug" in repr(run)


def test_missing_trials_enter_where_the_reference_is_about_their_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Breaks, "faults", {3: OSError("disk")})
    options: dict[str, Any] = FEW | {"subjects": 2, "results": tmp_path}
    run = cheesebench.run("breaks", "reversal_learning", plugins=[BREAKS], **options)
    trials = run.trials()
    judged = trials[trials["judged"].to_numpy()]
    assert set(judged["block"]) == {"reversal"}
    assert len(judged) == run.summary.cells[0].planned == 2 * 40


def test_every_column_of_a_frame_is_explained(made: cheesebench.Run) -> None:
    for frame in (made.verdicts, made.trials, made.calls):
        told = set(re.findall(r"``(\w+)``", frame.__doc__ or ""))
        assert {*frame().columns} <= told, frame.__name__


def test_an_agent_is_a_plugin_and_what_has_no_hook_is_told(tmp_path: Path) -> None:
    agent = cheesebench.AgentSpec("breaks", Breaks)
    run = cheesebench.run("breaks", "dnms", plugins=[agent], results=tmp_path, **FEW)
    assert run.verdicts()["model"].tolist() == ["breaks"]
    for wrong in (Breaks, types.SimpleNamespace(other=1)):
        with pytest.raises(OptionError, match=r"plugins\[1\]=.* has no hook"):
            cheesebench.run("breaks", "dnms", plugins=[agent, wrong])
    remedy = r"AgentSpec\('NAME', Breaks, memory='life'\)"
    for plugins, model in (([Breaks], "x"), (Breaks, "x"), ([], Breaks)):
        given: Any = {"models": model, "plugins": plugins}
        with pytest.raises(OptionError, match=remedy):
            cheesebench.run(**given, protocols="dnms")
    with pytest.raises(OptionError, match="only_seen=True is about two models"):
        cheesebench.verdict(run, only_seen=True)
    bad = types.SimpleNamespace(cheesebench_agents=lambda: [Breaks])
    with pytest.raises(PluginError, match=r"The plugin 'plugins\[0\]'.*: "):
        cheesebench.run("breaks", "dnms", plugins=[bad], results=tmp_path)


def test_the_end_of_a_run_is_told_to_its_plugins(tmp_path: Path) -> None:
    told: list[object] = []
    lines: list[str] = []

    def finished(summary: cheesebench.RunSummary) -> None:
        told.append([(cell.plan.protocol, cell.verdict) for cell in summary.cells])

    def fails(summary: cheesebench.RunSummary) -> None:
        raise OSError("gone")

    plugins = [
        types.SimpleNamespace(cheesebench_run_finished=one) for one in (fails, finished)
    ]
    given: Any = {**FEW, "progress": lines.append, "results": tmp_path}
    run = cheesebench.run("random", "dnms", plugins=plugins, **given)
    [cell] = run.summary.cells
    assert told == [[("dnms", cell.verdict)]]
    [failed] = [line for line in lines if "observer" in line]
    assert "failed in fails: OSError: gone; " in failed


class _Function:
    """A connection to a function of the notebook."""

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, request: cheesebench.ChatRequest) -> cheesebench.ChatReply:
        self.asked += 1
        return cheesebench.ChatReply(text="ACTIONS: FORWARD")

    async def close(self) -> None:
        pass


def test_a_backend_is_a_plugin_and_a_finished_run_asks_nothing(tmp_path: Path) -> None:
    one, said = _Function(), list[str]()
    mine = cheesebench.BackendSpec(name="notebook", connect=lambda context: one)
    given: dict[str, Any] = {
        "plugins": mine,
        "results": tmp_path,
        "design": "smoke",
        "progress": said.append,
    }
    run = cheesebench.run("notebook/mine", "t_maze", **given)
    assert run.calls()["reply"].unique().tolist() == ["ACTIONS: FORWARD"]
    over = f"Nothing was left to run in '{run.id}': no agent or model was asked.\n"
    assert over not in said
    asked = one.asked
    cheesebench.run("notebook/mine", "t_maze", resume=run.id, **given)
    assert over in said
    assert one.asked == asked


def test_a_function_is_a_backend(tmp_path: Path) -> None:
    asked: list[list[dict[str, str]]] = []

    async def counting(messages: list[dict[str, str]]) -> cheesebench.ChatReply:
        asked.append(messages)
        return cheesebench.ChatReply(
            text="ACTIONS: FORWARD", usage=cheesebench.Usage(prompt=9, completion=2)
        )

    def run(reply: Any, **options: Any) -> cheesebench.Run:
        return cheesebench.run(
            "mine/any",
            "t_maze",
            plugins=cheesebench.BackendSpec.of("mine", reply),
            results=tmp_path,
            progress=False,
            **options,
        )

    found = run(
        lambda messages: f"ACTIONS: FORWARD ({messages[-1]['role']})", design="smoke"
    )
    assert set(found.calls()["reply"]) == {"ACTIONS: FORWARD (user)"}
    counts = ["prompt_tokens", "completion_tokens", "reasoning_tokens"]
    assert found.table("calls")[counts].isna().all(axis=None)  # not counted, not none
    found = run(counting, max_tokens=200)
    assert found.calls()["prompt_tokens"].max() == 9
    assert found.calls()["cached_tokens"].eq(0).all()
    spent = "tokens; max_tokens=200 is reached"
    [cell] = found.summary.cells
    assert all(spent in one for one in (cell.reason, *cell.causes))
    assert found.verdicts()["reason"].tolist() == [cell.reason]
    assert found.journal()["text"].str.contains(spent).any()
    assert "max_tokens=200 is reached" in " ".join(found.report("text").split())
    assert "max_tokens=200 is reached" in repr(found)
    assert [one["role"] for one in asked[0]] == ["system", "user"]
    with pytest.raises(PluginError, match=r"mine' returned \[3\]. Return the text of"):
        run(lambda messages: [3])
    with pytest.raises(PluginError, match=r"'strip'.* Mend it, or report it to its"):
        run(lambda messages: messages.strip())
    with pytest.raises(OptionError, match=r"by ChatReply\(text=..., usage=Usage\("):
        run(lambda messages: "ACTIONS: FORWARD", max_tokens=200)
    with pytest.raises(OptionError, match="the model 'mine/any' does not support it"):
        run(counting, temperature=0.1)
    with pytest.raises(
        OptionError, match=r"^reply_tokens=5: the model 'mine/any' does not support it"
    ):
        run(counting, reply_tokens=5)
    with pytest.raises(PluginError, match=r"'mine', <function.*but missing a required"):
        run(lambda messages, more: "")
    with pytest.raises(PluginError, match=r"BackendSpec.of\('mine', 'x'\): give a"):
        run("x")


def test_a_function_that_times_out_is_asked_again_from_the_first_question_on(
    tmp_path: Path,
) -> None:
    faults: list[Exception] = [TimeoutError("slow"), ConnectionError("gone")]

    def reply(messages: object) -> str:
        if faults:
            raise faults.pop()
        return "ACTIONS: FORWARD"

    def run() -> cheesebench.Run:
        return cheesebench.run(
            "mine/any",
            "t_maze",
            plugins=cheesebench.BackendSpec.of("mine", reply),
            design="smoke",
            results=tmp_path,
            progress=False,
        )

    assert run().calls()["attempts"].max() == 3
    faults.extend(TimeoutError("slow") for _ in range(3))
    with pytest.raises(
        cheesebench.CheeseBenchError,
        match=r"TimeoutError: slow\. The backend 'mine' is a function of yours: repair it",
    ):
        run()


def test_calls_say_which_replies_named_no_action(tmp_path: Path) -> None:
    (tmp_path / "replies.yaml").write_text(
        'replies:\n  - say: ["ACTIONS: FORWARD", "hmm"]\n', encoding="utf-8"
    )
    run = cheesebench.run(
        f"scripted:{tmp_path / 'replies.yaml'}",
        "t_maze",
        design="smoke",
        results=tmp_path,
        progress=False,
    )
    calls = run.calls()
    assert calls["unparsed"].tolist() == [reply == "hmm" for reply in calls["reply"]]
    assert set(calls["reply"]) == {"hmm", "ACTIONS: FORWARD"}
    assert calls["cost"].isna().all()
    assert run.verdicts()["cost"].isna().all()


@pytest.mark.parametrize("design", ["smoke", "sequential"])
def test_calls_of_an_unfinished_first_trial_are_rows(
    design: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(_Function):
        async def complete(
            self, request: cheesebench.ChatRequest
        ) -> cheesebench.ChatReply:
            if self.asked:
                await asyncio.Event().wait()
            return await super().complete(request)

    def interrupted(work: ModelRun, plan: CellPlan, waiting: object) -> None:
        assert work.log is not None
        while not work.log.calls.totals().calls:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(ModelRun, "wait", interrupted)
    monkeypatch.setattr("cheesebench.experiment.session.LANDING_SECONDS", 0.0)
    one = Hanging()
    with pytest.raises(KeyboardInterrupt):
        cheesebench.run(
            "hanging/mine",
            "t_maze",
            plugins=cheesebench.BackendSpec(
                name="hanging", connect=lambda context: one, probe=False
            ),
            design=design,
            results=tmp_path,
            run_id="cut",
            progress=False,
        )
    calls = cheesebench.open_run("cut", tmp_path).calls()
    assert calls["reply"].tolist() == ["ACTIONS: FORWARD"]
    assert calls["unparsed"].tolist() == [False]


def test_runs_of_several_models_are_one_board(
    made: cheesebench.Run, tmp_path: Path
) -> None:
    other = cheesebench.run(
        "place-learner", ["t_maze", "shuttle_box"], seed=3, results=tmp_path, **FEW
    )
    board = cheesebench.report([made, other])
    assert board.frame()["model"].tolist() == ["random"] * 2 + ["place-learner"] * 2
    assert "place-learner" in board._repr_markdown_()
    assert repr(board).startswith("<Runs: random in ascii_2d FAIL; place-learner in")
    page = board.html(tmp_path / "board.html").read_text(encoding="utf-8")
    assert page.count("place-learner")
    with pytest.raises(OptionError, match="both have random"):
        cheesebench.report([made, made.directory])


def test_a_file_that_is_no_log_is_refused_when_it_is_opened(
    made: cheesebench.Run, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("no log", encoding="utf-8")
    with pytest.raises(RunLogError, match="text"):
        cheesebench.open_run(tmp_path / "text")
    named: Any = str(made.directory / "run.sqlite")
    assert cheesebench.Run(named).id == "mine"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"subject": 3}, "subject= is not an option of a run. Did you mean 'subjects'"),
        ({"subjects": 2.5}, "subjects=2.5: expected a whole number"),
        ({"subjects": 0}, "subjects=0: "),
        ({"exit_zero": True}, "exit_zero= is only for pytest"),
        ({"ahead": "always"}, "it must be one of auto, never"),
        ({"model": "x"}, "model"),
        ({"resume": "nothing"}, "There is no run 'nothing'"),
        ({"design": "cohrt"}, "Did you mean 'cohort'"),
    ],
    ids=str,
)
def test_mistakes_are_told_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, object], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        (CheeseBenchError, TypeError),
        match=said.replace(".", r"\.").replace("?", r"\?"),
    ):
        cheesebench.run("random", "t_maze", **wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "results").exists()


def test_every_option_of_a_run_can_be_given() -> None:
    assert {option.key for option in OPTIONS if option.recorded} <= {
        option.key for option in SETTINGS.values()
    }


def test_the_rows_of_a_control_can_be_told_from_the_plain_ones(tmp_path: Path) -> None:
    found = cheesebench.run(
        "random",
        "t_maze",
        control="memoryless",
        results=tmp_path,
        **FEW | {"subjects": 2},
    )
    tasks = [one.task for one in cheesebench.verdict(found).tasks]
    assert tasks == ["t_maze (random)", "t_maze (random, control=memoryless)"]
    assert cheesebench.verdict(found).frame()["verdict"].isna().tolist() == [0, 1]
    variants = ["", "control=memoryless"]
    assert [*found.summary.frame()["variant"]] == variants
    assert "control=memoryless" in repr(found.summary)
    assert [*found.verdicts()["verdict"].isna()] == [False, True]
    said = "t_maze with control=memoryless (random): Plain less control"
    assert said in repr(found)
    assert said in found._repr_markdown_()
    played = found.trial("t_maze", variant="control=memoryless")
    assert repr(played).startswith("<random (control=memoryless) on t_maze: subject 0")
    assert repr(found.trial("t_maze")).startswith("<random on t_maze: subject 0")
    with pytest.raises(cheesebench.UnknownNameError, match="Known: control=memoryless"):
        found.trial("t_maze", variant="memoryless")


def test_a_run_without_controls_knows_none(made: cheesebench.Run) -> None:
    with pytest.raises(UnknownNameError, match=r"'control=blind'\. Known: none\."):
        made.trial("t_maze", variant="control=blind")


def test_too_few_subjects_for_a_pass_are_told(tmp_path: Path) -> None:
    said = "No result of 6 subjects can PASS on t_maze (at least 11)"
    asked = ["t_maze", "radial_arm_maze"]
    run = cheesebench.run("place-learner", asked, subjects=6, seed=1, results=tmp_path)
    assert said in repr(run)
    assert f"{said}." in run._repr_markdown_()
    told = cheesebench.plan("place-learner", asked, subjects=6).told
    assert f"{said}." in told
    assert any("passes in 4 of 5 runs with about this many" in one for one in told)
    assert "No result" not in str(cheesebench.plan("random", "t_maze", subjects=11))
    [row, _] = run.verdicts().to_dict("records")
    assert (row["verdict"], row["rate"]) == ("INCONCLUSIVE", 1.0)


def test_a_model_is_compared_with_its_controls(tmp_path: Path) -> None:
    run = cheesebench.run(
        "place-learner",
        "t_maze",
        control="memoryless",
        subjects=6,
        seed=1,
        results=tmp_path,
    )
    found = cheesebench.compare(run)
    rows = found.rows()
    assert [row["protocol"] for row in rows] == ["t_maze"]
    assert {(row["model"], row["other_model"]) for row in rows} == {
        ("place-learner", "place-learner (control=memoryless)")
    }
    assert rows[0]["verdict"] == "better"
    [control] = run.summary.controls
    for verdicts in (
        [*run.verdicts()["verdict"].isna()],
        [*run.summary.frame()["verdict"].isna()],
        [one.verdict is None for one in run.summary.cells],
        [one.answer is None for one in cheesebench.verdict(run).tasks],
    ):
        assert verdicts == [False, True]
    assert [*cheesebench.verdict(run).frame()["difference"].isna()] == [False, True]
    assert [*run.verdicts()["difference"].isna()] == [False, True]
    assert rows[0]["p_value"] == control.comparison.p_value
    [said] = found.told
    assert said.startswith("All pairs differ by 100 points on t_maze: ")


def test_the_controls_of_several_models_are_tested_by_the_call_that_is_named(
    tmp_path: Path,
) -> None:
    run = cheesebench.run(
        ("random", "place-learner"),
        "t_maze",
        control="memoryless",
        subjects=6,
        seed=1,
        results=tmp_path,
    )
    assert (
        "; compare(run, models=('random', None)) tests the controls of random; "
        in repr(run)
    )
    [row] = cheesebench.compare(run, models=("random", None)).rows()
    assert row["other_model"] == "random (control=memoryless)"
    [row] = cheesebench.compare(run).rows()
    assert (row["verdict"], row["p_holm"]) == ("worse", pytest.approx(2 * 0.5**6))
    chosen = ("random", "random (control=memoryless)")
    with pytest.raises(ComparisonError) as raised:
        cheesebench.compare(run, models=chosen)
    remedy = f"cheesebench.compare('{run.id}', models=('random', None))"
    assert str(raised.value).endswith(f"compare it with its model: {remedy}")


def test_a_run_with_a_control_of_another_design_is_reported(tmp_path: Path) -> None:
    run = cheesebench.run(
        "random",
        "t_maze",
        control="memoryless",
        design="sequential",
        seed=1,
        results=tmp_path,
    )
    assert [*run.verdicts()["design"]] == ["sequential", "cohort"]
    assert len(cheesebench.report(run).frame()) == 2


def test_what_is_stopped_goes_on_with_resume(tmp_path: Path) -> None:
    # A run that is stopped before its first trial leaves nothing behind.
    begun = threading.Event()
    options: dict[str, Any] = FEW | {"progress": lambda line: begun.set()}

    async def cut() -> None:
        task = asyncio.create_task(
            cheesebench.run_async(
                "random",
                ("t_maze", "dnms"),
                results=tmp_path,
                run_id="cut",
                **options,
            )
        )
        while not begun.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError, match="resume='cut'"):
            await task

    asyncio.run(cut())
    with pytest.raises(
        OptionError, match=r"^models= is empty. Name a model or an agent"
    ):
        cheesebench.run(results=tmp_path)
    said = repr(cheesebench.open_run("cut", tmp_path))
    assert said.count("Interrupted, not run") <= 1
    whole = cheesebench.run(resume="cut", results=tmp_path, progress=False)
    assert whole.verdicts()["protocol"].tolist() == ["t_maze", "dnms"]
    assert whole.verdicts()["valid"].tolist() == whole.verdicts()["planned"].tolist()


def test_after_ctrl_c_the_run_says_what_was_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(work: ModelRun, plan: CellPlan, waiting: object) -> None:
        while not work.progress(plan).done:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(ModelRun, "wait", interrupted)
    options: dict[str, Any] = FEW | {"subjects": 40, "processes": 1, "seed": 1}
    with pytest.raises(KeyboardInterrupt, match=r"run\(resume='cut', results="):
        cheesebench.run("random", "t_maze", results=tmp_path, run_id="cut", **options)
    run = cheesebench.open_run("cut", tmp_path)
    [cell] = run.summary.cells
    with RunLog.open_read_only(Path(run)) as log:
        begun = {one[0].subject for one in log.recorded_subjects(cell.plan)}
    assert cell.subjects == len(begun) < 40
    call = f"cheesebench.run(resume='cut', results='{tmp_path}')"
    said = f"1 of 1 cell is unfinished: some trials were not run. To continue: {call}"
    assert said in repr(run)
    with pytest.raises(OptionError, match=rf"it was not run.*{re.escape(call)}"):
        run.trial("t_maze", subject=39)
    shown = cheesebench.figures(run, only="forest", formats="svg")
    assert (
        "is unfinished (1 of 1 cell) and can be resumed" in shown["figures.md"].decode()
    )
    assert "is unfinished" in shown["forest.svg"].decode()
    assert "Run 'cut' is unfinished" in cheesebench.verdict(run).told[0]

    # The call works as it is printed, and so does any other way to name the run.
    monkeypatch.undo()
    again = cheesebench.run(resume=run, max_minutes=1e-9, progress=False)
    assert again.directory == tmp_path / "cut"
    with pytest.raises(
        OptionError, match=r"the run to resume is in .* Remove results="
    ):
        cheesebench.run(resume=run, results=tmp_path / "other")
    for named in (again, str(again.directory), Path(again)):
        assert "unfinished" not in repr(cheesebench.run(resume=named, progress=False))


def test_ctrl_c_before_anything_was_run_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(work: ModelRun, cells: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ModelRun, "open", interrupted)
    with pytest.raises(KeyboardInterrupt, match="no run was kept") as caught:
        cheesebench.run("random", "t_maze", results=tmp_path, **FEW)
    shown = cast("Any", caught.value)._render_traceback_()
    assert len(shown) <= 3
    assert shown[-1].startswith("KeyboardInterrupt: Interrupted before anything")


def test_a_run_that_was_opened_earlier_sees_what_a_resumed_one_adds(
    tmp_path: Path,
) -> None:
    class Broken:
        def __init__(self, context: object) -> None: ...

        def begin_trial(self, observation: str) -> None:
            raise ValueError("not yet")

        def act(self, observation: str) -> list[int]:
            return [0]

        def observe(self, *seen: object) -> None: ...

    class Mended(Broken):
        def begin_trial(self, observation: str) -> None: ...

    options: dict[str, Any] = FEW | {"subjects": 2, "results": tmp_path}
    options |= {"protocols": "t_maze", "executor": "threads"}
    before = cheesebench.run(
        "mine",
        plugins=[AgentSpec("mine", Broken, memory="none")],
        run_id="x",
        **options,
    )
    assert before.verdicts()["verdict"].tolist() == ["ERROR"]
    after = cheesebench.run(
        "mine",
        plugins=[AgentSpec("mine", Mended, memory="none")],
        resume="x",
        **options,
    )
    assert after.verdicts()["verdict"].tolist() != ["ERROR"]
    assert before.verdicts().equals(after.verdicts())
    assert before.trials().equals(after.trials())


def test_an_agent_with_the_name_of_another_is_refused(tmp_path: Path) -> None:
    def still(context: AgentContext) -> Agent:
        raise NotImplementedError  # it is never made

    mine = AgentSpec("random", still, memory="none")
    twice = [AgentSpec("still", still, memory="none") for _ in range(2)]
    twice[1] = AgentSpec("still", still, memory="life")
    for plugins in ([mine], twice):
        with pytest.raises(OptionError, match="there is another agent"):
            cheesebench.run("random", plugins=plugins, results=tmp_path)
    backends = [cheesebench.BackendSpec.of("openai", lambda messages: "ACTIONS: STAY")]
    with pytest.raises(OptionError, match="there is another backend 'openai'"):
        cheesebench.run("openai/x", plugins=backends, results=tmp_path)
    for name in ("my agent", "a/b", "a,b", ""):
        with pytest.raises(OptionError, match=f"'{name}' cannot be written as"):
            cheesebench.run("x", plugins=AgentSpec(name, still), results=tmp_path)


def test_transient_faults_of_a_function_are_tried_again(tmp_path: Path) -> None:
    asked: list[object] = []

    def flaky(messages: object) -> str:
        asked.append(messages)
        if len(asked) == 3:
            raise ConnectionResetError("the peer is gone")
        if len(asked) == 5:
            raise TimeoutError("too slow")
        return "ACTIONS: FORWARD"

    def run(**options: Any) -> cheesebench.Run:
        mine = cheesebench.BackendSpec.of("mine", flaky)
        return cheesebench.run(
            "mine/any",
            "operant_chamber",
            plugins=mine,
            design="smoke",
            concurrency=1,
            results=tmp_path,
            progress=False,
            **options,
        )

    found = run()
    assert found.trials()["missing"].eq("").all()
    assert found.calls()["attempts"].sum() == len(found.calls()) + 2 == len(asked)
    with pytest.raises(OptionError, match="is a function, which has no address"):
        run(base_url="http://127.0.0.1:1/v1")


def test_progress_wipes_what_a_longer_line_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell = _Line()
    for line in ("1 of 2 cells; 94 %, about 3 s left", "2 of 2 cells\n", "next\n"):
        tell(line)
    first, second, third = capsys.readouterr().err.split("\r")[1:]
    assert second == f"{'2 of 2 cells'.ljust(len(first))}\n"
    assert third == "next\n"
    assert time_left(0.0945, 0.0945) == "about 1 s"


def test_the_time_of_a_run_ends_agents_too(tmp_path: Path) -> None:
    options: dict[str, Any] = FEW | {"subjects": 3, "results": tmp_path, "seed": 1}
    told: list[str] = []
    cut = cheesebench.run(
        "random",
        "t_maze",
        max_minutes=1e-9,
        run_id="cut",
        **options | {"progress": told.append},
    )
    [cell] = cut.summary.cells
    assert (cell.verdict, cell.valid, cell.outcomes["budget"]) == (
        "INCONCLUSIVE",
        0,
        cell.missing,
    )
    assert cell.subjects == 0, "no trial was run or tried"
    assert any(one.strip() == "0 of 1 cells: 1 unfinished" for one in told), told
    assert any("max_minutes=1e-09 is reached" in cause for cause in cell.causes)
    said = (
        "1 of 1 cell is unfinished: max_minutes=1e-09 is reached. To continue: "
        f"cheesebench.run(resume='cut', results='{tmp_path}', max_minutes=1e-09)"
    )
    assert repr(cut).endswith(f"; {said}>")
    assert f"\n{said}.\n" in cut._repr_markdown_()
    assert f"{said}.\n" in told
    assert "cells finished: 0 of 1" in cut.journal()["text"].tolist()
    whole = cheesebench.run("random", "t_maze", resume="cut", **options)
    assert whole.summary.cells[0].valid == whole.summary.cells[0].planned
    assert "unfinished" not in repr(whole)


def test_a_spent_budget_of_tokens_says_how_to_go_on(tmp_path: Path) -> None:
    with FakeServer() as server:
        run = cheesebench.run(
            "openai/fake",
            "t_maze",
            results=tmp_path,
            base_url=server.base_url,
            max_tokens=3000,
            run_id="cut",
            **FEW,
        )
    end = (
        r"max_tokens=3000 is reached. ([\d,]+) tokens spent so far, at (?:most|least) about ([\d,]+) tokens more needed.*"
        r" To continue, with a larger budget: cheesebench.run\(resume='cut', results='.*', max_tokens=(\d+)\)>"
    )
    said = re.search(end, repr(run))
    assert said, repr(run)
    spent, needed, budget = (int(one.replace(",", "")) for one in said.groups())
    assert spent + needed > 3000
    assert spent < budget <= 1.1 * (spent + needed)


def test_without_pandas_the_remedy_is_one_line(
    made: cheesebench.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(OptionError, match=re.escape(install_command("pandas"))):
        made.verdicts()


def test_a_run_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunLogError, match="There is no run 'x'"):
        cheesebench.open_run("x", tmp_path)


def test_progress_names_unreadable_replies_at_once(tmp_path: Path) -> None:
    """A model whose replies are not understood is reported before its first trial has
    ended.
    """
    lines: list[str] = []
    options: dict[str, Any] = {
        "design": "cohort",
        "subjects": 2,
        "results": tmp_path,
        "progress": lines.append,
    }
    with FakeServer(lambda call: Answer(text="I see a maze.", delay=0.02)) as server:
        cheesebench.run(
            "openai/tiny", ["t_maze", "dnms"], base_url=server.base_url, **options
        )
    # A quick run has only its last line.
    said = [re.search(r"; (\d+) of (\d+) replies unreadable[;\n]", x) for x in lines]
    counted = [tuple(map(int, found.groups())) for found in said if found]
    assert counted, lines
    assert all(unreadable == read for unreadable, read in counted)
    assert counted[0][0] < 32, "the first trial may have as many steps"


def test_where_a_resumed_run_would_read_the_same_empty_replies_a_new_one_is_named(
    tmp_path: Path,
) -> None:
    spoken = iter(["ACTIONS: FORWARD"] * 4)
    with FakeServer(lambda call: next(spoken, "")) as server:
        silent = cheesebench.run(
            "openai/tiny",
            "t_maze",
            base_url=server.base_url,
            results=tmp_path,
            **(FEW | {"subjects": 2}),
        )
    for shown in (repr(silent), silent._repr_markdown_()):
        assert "start a new run, because this one would lose the same trials" in shown
        assert "resume=" not in shown
        assert "resume the run" not in shown
