"""The board: its rules on real runs, each broken once, and its contents."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import cheesebench
from benchmarks.freeze import freeze
from cheesebench import board as boards
from cheesebench import frozen
from cheesebench.board import ENTRY, Entry, board, gap
from cheesebench.canary import CANARY
from cheesebench.cli import main
from cheesebench.experiment.log import RunLog
from cheesebench.frozen import FrozenSet, standing
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.records import CellPlan
from cheesebench.statistics import RunSummary
from cheesebench.summaries import summarise_logs
from fuzz.run_logs import rewritten

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8")

#: A corridor to a goal.
WALK = """
version: 1
paradigm: {name}
title: A walk
arena: {{map: "S..Z", legend: {{S: box, Z: goal}}}}
start: {{at: box, face: {face}}}
trial: {{limit: 12, start: run, states: {{run: {{rules: [{{enter: goal, reward: 1, end: found}}]}}}}}}
schedule: {{one: {{sessions: 1, trials: 4}}}}
success: last == found
margin: 0.1
reference: [{{measure: success, value: 0.8, status: for a test}}]
"""
TWIN = "twin_of: near\n"
#: Tables with the behaviour of subjects.
LIVES = ("trials", "events", "lives")
TOLD = """
trained_on: []
prompts: the set's
dollars: 0
failed_runs: []
contact: name@example.org
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a set of two protocols, a twin, and runs of two models."""
    here = tmp_path_factory.mktemp("lab")
    source = here / "protocols"
    source.mkdir()
    texts = {
        "near": WALK.format(name="near", face="random"),
        "far": WALK.format(name="far", face="E"),
        "held": WALK.format(name="held", face="random") + TWIN,
        "other": WALK.format(name="far", face="W"),
    }
    for name, text in texts.items():
        (source / f"{name}.protocol.yaml").write_text(text, encoding="utf-8")
    catalogue = Catalogue([source])
    two = [
        with_arena(catalogue.load(source / f"{name}.protocol.yaml"))
        for name in ("near", "far")
    ]
    freeze("2001.1", here / "sets" / "2001.1", two)
    run(here, "random", "chance", "near", "far", "held")
    run(here, "tabular-ql", "learner", "near", "far")
    return here


def run(here: Path, model: str, name: str, *protocols: str, **options: object) -> None:
    files = [str(here / "protocols" / f"{one}.protocol.yaml") for one in protocols]
    usual: dict[str, object] = {"design": "leaderboard", "executor": "threads"}
    cheesebench.run(
        model, files, run_id=name, results=here / "results", progress=False,
        **(usual | options),  # type: ignore[arg-type]
    )  # fmt: skip
    (here / "results" / name / ENTRY).write_text(TOLD, encoding="utf-8")


@pytest.fixture(autouse=True)
def sets(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, FrozenSet]:
    one = frozen._read(lab / "sets" / "2001.1" / frozen.FILE)
    found = {one.name: one}
    monkeypatch.setattr(frozen, "frozen_sets", lambda: found)
    return found


def made(here: Path, *names: str) -> str:
    logs = [
        RunLog.open_read_only(here / "results" / name / "run.sqlite") for name in names
    ]
    try:
        return board(logs)
    finally:
        for log in logs:
            log.close()


def summarised(*paths: Path) -> RunSummary:
    with ExitStack() as stack:
        return summarise_logs(
            [stack.enter_context(RunLog.open_read_only(path)) for path in paths]
        )


def refused(here: Path, *names: str) -> str:
    with pytest.raises(boards.BoardRefusedError) as caught:
        made(here, *names)
    return str(caught.value)


def test_two_models_are_ranked_with_what_was_told(lab: Path) -> None:
    text = made(lab, "chance", "learner")
    assert text.startswith("# Board of 2001.1: 2 protocols, ascii_2d\n")
    first, second = [line for line in text.splitlines() if re.match(r"\| [12][ -]", line)]  # fmt: skip
    assert "| tabular-ql |" in first
    assert "| random |" in second
    assert "| nothing | the set's | 0 | none | learner |" in first
    # The twin of ``near`` is the same task, so the gap is small, but present.
    assert re.search(r"\| [+-]?\d+(\.\d+)? \| nothing", second)
    assert "| – | nothing" in first


def test_the_command_writes_it_or_names_the_rule(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = f"--results={lab / 'results'}"
    page = tmp_path / "board.md"
    asked = ["report", "chance", "learner", "--board", results]
    assert main([*asked, "--output", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == made(lab, "chance", "learner")
    assert main([*asked, "--format", "json"]) != 0
    run(lab, "random", "typed", "near", "far", seed=1)
    try:
        assert main(["report", "typed", "--board", results]) != 0
        told = capsys.readouterr().err
        assert "typed: rule 'seed': the seed was typed" in told
        # The run outside the board is another run of its model.
        assert "rule 'failed runs': chance is another run" in told
        assert "Traceback" not in told
    finally:
        shutil.rmtree(lab / "results" / "typed")


def test_a_run_of_twins_alone_belongs_to_the_entry_of_its_model(lab: Path) -> None:
    """The board's operator has the twins; an entry never sees them."""
    run(lab, "tabular-ql", "held_out", "held")
    run(lab, "tabular-ql", "elsewhere", "held", view="ascii_3d")
    (lab / "results" / "held_out" / ENTRY).unlink()
    try:
        text = made(lab, "learner", "held_out", "chance")
        [row] = [line for line in text.splitlines() if "| tabular-ql |" in line]
        assert re.search(r"\| [+-]?\d+(\.\d+)? \| nothing", row)
        assert row.endswith("| learner |")
        assert "were run (held)." in text
        assert CANARY in text
        told = refused(lab, "learner", "elsewhere")
        assert "elsewhere: rule 'set': the view is ascii_3d, not ascii_2d" in told
        assert "no other run on the board has its models" in refused(lab, "held_out")
        told = refused(lab, "chance", "held_out")
        assert "no other run on the board has its models" in told
    finally:
        shutil.rmtree(lab / "results" / "held_out")
        shutil.rmtree(lab / "results" / "elsewhere")


def test_trials_are_lived_again_only_where_nothing_else_is_wrong(
    lab: Path, tmp_path: Path
) -> None:
    forged = tmp_path / "results" / "forged"
    shutil.copytree(lab / "results" / "learner", forged)
    (forged / ENTRY).unlink()
    with sqlite3.connect(forged / "run.sqlite") as database:
        database.execute("UPDATE trials SET success = 1")
    told = refused(tmp_path, "forged")
    assert "rule 'told'" in told
    assert "rule 'replay'" not in told


def test_a_second_run_of_a_model_is_shown_or_told(lab: Path) -> None:
    run(lab, "tabular-ql", "again", "near", "far")
    entry = lab / "results" / "again" / ENTRY
    try:
        assert "rule 'failed runs': learner is another run" in refused(
            lab, "again", "chance"
        )
        assert "rule 'once': tabular-ql is also in learner" in refused(
            lab, "learner", "again"
        )
        why = "failed_runs: [{run: learner, why: the <server> | broke}]"
        entry.write_text(TOLD.replace("failed_runs: []", why), encoding="utf-8")
        assert "| learner: the (server) / broke | again |" in made(
            lab, "again", "chance"
        )
    finally:
        shutil.rmtree(lab / "results" / "again")


def test_the_same_weights_under_two_names_are_one_model(
    lab: Path, tmp_path: Path
) -> None:
    for name, model in (("learner", "tabular-ql"), ("chance", "random")):
        copied = tmp_path / "results" / name
        shutil.copytree(lab / "results" / name, copied)
        with rewritten(copied / "run.sqlite") as connection:
            servers = json.dumps({model: {"sha256": "9f86d081"}})
            connection.execute("INSERT INTO manifest VALUES ('servers', ?)", [servers])
    told = refused(tmp_path, "learner", "chance")
    assert "rule 'once': random is also in learner, under the name tabular-ql" in told


def test_a_log_that_broke_down_beside_it_is_told(lab: Path, tmp_path: Path) -> None:
    shutil.copytree(lab / "results" / "learner", tmp_path / "results" / "learner")
    broken = tmp_path / "results" / "first" / "run.sqlite"
    broken.parent.mkdir()
    whole = (lab / "results" / "chance" / "run.sqlite").read_bytes()
    for content in (b"", whole[:5000]):
        broken.write_bytes(content)
        said = refused(tmp_path, "learner")
        assert (
            "'failed runs': first, in the same directory, cannot be read, and" in said
        )
    entry = tmp_path / "results" / "learner" / ENTRY
    first = "failed_runs: [{run: first, why: the disk was full}]"
    entry.write_text(TOLD.replace("failed_runs: []", first), encoding="utf-8")
    assert "| first: the disk was full | learner |" in made(tmp_path, "learner")


def test_another_protocol_under_the_sets_name_is_refused(lab: Path) -> None:
    run(lab, "bfs-oracle", "changed", "near", "other")
    run(lab, "place-learner", "part", "near", design="cohort")
    try:
        told = refused(lab, "changed")
        assert re.search(r"rule 'set': far has the sha256 \w{12}, not \w{12}", told)
        told = refused(lab, "part")
        assert "rule 'set': 2001.1 also has far" in told
        assert "rule 'design': the design is cohort, not leaderboard" in told
    finally:
        shutil.rmtree(lab / "results" / "changed")
        shutil.rmtree(lab / "results" / "part")


def test_a_log_that_claims_the_hash_of_the_set_is_of_its_text(lab: Path) -> None:
    """Plan, manifest and digest all have the set's hash, but the text is different."""
    run(lab, "bfs-oracle", "changed", "near", "other")
    path = lab / "results" / "changed" / "run.sqlite"
    true = frozen.frozen_sets()["2001.1"].protocols["far"]["sha256"]
    try:
        with RunLog.open_read_only(path) as log:
            protocols = log.manifest["protocols"]
        protocols["far"]["sha256"] = true
        with rewritten(path) as database:
            database.execute(
                "UPDATE cells SET plan = json_set(plan, '$.sha256', ?) WHERE protocol = 'far'",
                (true,),
            )
            database.execute(
                "UPDATE manifest SET value = ? WHERE key = 'protocols'",
                (json.dumps(protocols),),
            )
        assert "rule 'set': far has the sha256" in refused(lab, "changed")
        assert cheesebench.open_run(path).summary.frozen_set == "2001.1+"
        # A log with the true text hides nothing beside it.
        logs = [path, lab / "results" / "learner" / "run.sqlite"]
        assert summarised(*logs).frozen_set == "2001.1, 2001.1+"
    finally:
        shutil.rmtree(path.parent)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            [
                *(f"DELETE FROM {table} WHERE subject > 19" for table in LIVES),
                "UPDATE cells SET plan = json_set(plan, '$.subjects', 20)",
            ],
            "rule 'design': it has 20 subjects per protocol, not 40",
        ),
        (
            [
                *(f"DELETE FROM {table} WHERE trial > 1" for table in LIVES[:2]),
                "UPDATE lives SET trials = 2",
                "UPDATE cells SET plan = json_set(plan, '$.trials', 2)",
            ],
            "options say: trials is 2, not 4",
        ),
        (
            ["UPDATE cells SET plan = json_set(plan, '$.sequential', json('true'))"],
            "options say: sequential is True, not False",
        ),
    ],
)
def test_lives_that_were_left_out_are_missed(
    lab: Path, tmp_path: Path, changes: list[str], said: str
) -> None:
    shutil.copytree(lab / "results" / "learner", tmp_path / "results" / "learner")
    with rewritten(tmp_path / "results" / "learner" / "run.sqlite") as database:
        for change in changes:
            database.execute(change)
    assert said in refused(tmp_path, "learner")


def test_a_log_that_was_changed_is_refused(lab: Path, tmp_path: Path) -> None:
    forged = tmp_path / "results" / "forged"
    shutil.copytree(lab / "results" / "learner", forged)
    with sqlite3.connect(forged / "run.sqlite") as database:
        database.execute("UPDATE trials SET success = 1")
    assert "rule 'replay':" in refused(tmp_path, "forged")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "there is no entry.yaml with trained_on, prompts"),
        (TOLD.replace("dollars: 0", "dollars: -1"), "dollars"),
        (TOLD.replace("contact", "contakt"), "contakt"),
        (TOLD + "&a [*a", "entry.yaml"),
        ("x" * 100, "entry.yaml"),
    ],
)
def test_what_is_not_told_is_asked_for(
    lab: Path, tmp_path: Path, text: str | None, why: str
) -> None:
    there = tmp_path / "results" / "learner"
    shutil.copytree(lab / "results" / "learner", there)
    (there / ENTRY).unlink()
    if text is not None:
        (there / ENTRY).write_text(text, encoding="utf-8")
    told = refused(tmp_path, "learner")
    assert "rule 'told'" in told
    assert why in told


def test_results_carry_the_name_of_the_set(lab: Path) -> None:
    with RunLog.open_read_only(lab / "results" / "learner" / "run.sqlite") as log:
        plans, protocols = list(log.plans()), log.manifest["protocols"]

    def name(*own: CellPlan) -> str:
        return str(standing(own, protocols))

    other = {**protocols["near"], "text": protocols["far"]["text"]}
    assert str(standing(plans, protocols | {"near": other})) == "2001.1+"
    for text in ("", "[", "[]"):
        broken = {**protocols["near"], "text": text}
        assert str(standing(plans, protocols | {"near": broken})) == "2001.1+"
    assert name(*plans) == "2001.1"
    assert name(replace(plans[0], margin=0.2), plans[1]) == "2001.1+"
    assert name(replace(plans[0], view="ascii_3d")) == "2001.1+"
    settings = {"history": "3-7", "temperature": 0.7, "dropped": []}
    asked = replace(plans[0], agent="llm", settings=settings)
    assert name(asked) == "2001.1"
    for key, value in (("history", 5), ("temperature", None)):
        asked_otherwise = replace(asked, settings={**settings, key: value})
        assert name(asked_otherwise) == "2001.1+"
    unable = {**settings, "temperature": None, "dropped": ["temperature"]}
    assert name(replace(asked, settings=unable)) == "2001.1"
    assert standing([replace(plans[0], protocol="mine")], protocols) is None


def test_every_rule_has_a_section_and_every_key_a_line() -> None:
    source = Path(boards.__file__).read_text(encoding="utf-8")
    rules = set(re.findall(r'(?:Refusal\(|_broken\(log, )"([a-z ]+)"', source))
    assert rules == {"set", "design", "seed", "whole", "told", "failed runs", "replay", "once"}  # fmt: skip
    assert rules <= set(re.findall(r"^### (.+)$", PAGE, re.MULTILINE))
    block = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    assert re.findall(r"^(\w+):", block[1], re.MULTILINE) == list(Entry.model_fields)
    assert gap([]) == "–"
