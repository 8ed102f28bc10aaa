"""``cheesebench export``: tables with the contents of the log, and logs that Inspect AI
opens.
"""

from __future__ import annotations

import csv
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.chat import ModelEntry
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import film, recorded_protocol
from cheesebench.experiment.session import RunSession
from cheesebench.exporting import GROUP_TEXT, TABLES, write_parquet
from cheesebench.extras import install_command
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.testing.fake_server import FakeServer
from fuzz.run_logs import rewritten

Run = Callable[..., Any]
RUN = "20250131-093000-ab12"
REPLY = "LEARNINGS: =1+1 <script>\x1b[31m\u202e\nACTIONS: FORWARD, FORWARD"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def asked(here: Path) -> Path:
    """The directory of a run that asked a model."""
    plugins = installed_plugins()
    specification = with_arena(Catalogue().load(here / "little.protocol.yaml"))
    with FakeServer(REPLY) as server:
        entry = ModelEntry(name="a/model", backend="openai", id="m")
        model = language_model(plugins, entry, base_url=server.base_url)
        design = find_design("cohort", 2)
        plan = plan_cell(
            specification,
            "a/model",
            "ascii_2d",
            design,
            agent="llm",
            settings=model.settings,
        )
        with RunLog.create(
            here / "results", "asked", [(plan, specification)], options={"seed": 0}
        ) as log:
            models = LanguageModels(log, {"a/model": model})
            with RunSession(
                log,
                plugins,
                [(plan, specification)],
                seed=0,
                processes=0,
                language=models,
            ) as session:
                session.finish()
            assert log.calls.totals().calls >= 8
    return here / "results" / "asked"


def test_csv_holds_the_trials(run: Run, results: Path, here: Path) -> None:
    found = run("export", RUN, "--csv")
    assert (found.code, found.out) == (0, "")
    directory = results / RUN / "export"
    assert {path.name for path in directory.iterdir()} == {
        f"{name}.csv" for name in TABLES
    }
    trials = read(directory / "trials.csv")
    with RunLog.open_read_only(results / RUN) as log:
        records = log.trials()
        events = [event for record in records for event in log.events(record)]
    assert [
        (row["subject"], row["trial"], row["actions"], float(row["reward"]))
        for row in trials
    ] == [(str(r.subject), str(r.trial + 1), r.actions, r.reward) for r in records]
    assert len(read(directory / "events.csv")) == len(events)
    assert [row["success"] for row in trials] == [
        str(bool(r.success)).lower() for r in records
    ]
    values = {(row["kind"], row["name"]) for row in read(directory / "values.csv")}
    assert values == {("counter", "visits"), ("measure", "latency")}


def test_steps_are_lived_again(run: Run, results: Path, here: Path) -> None:
    assert (
        run(
            "export",
            RUN,
            "--csv",
            "--table",
            "steps",
            "--observations",
            "--output",
            "out",
        ).code
        == 0
    )
    assert [path.name for path in (here / "out").iterdir()] == ["steps.csv"]
    rows = read(here / "out" / "steps.csv")
    plugins = installed_plugins()
    with RunLog.open_read_only(results / RUN) as log:
        frames = [
            frame
            for record in log.trials()
            for frame in film(
                log,
                plugins.compile(with_arena(recorded_protocol(log, log.plans()[0]))),
                plugins.view("ascii_2d"),
                record,
            )
        ]
    assert [
        (row["letter"], float(row["reward"]), row["observation"]) for row in rows
    ] == [(frame.action, frame.reward, frame.observation) for frame in frames]
    assert {row["action"] for row in rows} <= {
        "",
        "FORWARD",
        "ROTATE_LEFT",
        "ROTATE_RIGHT",
        "STAY",
    }


def test_calls_are_harmless_to_a_spreadsheet(run: Run, asked: Path) -> None:
    assert run("export", "asked", "--csv", "--table", "calls,trials").code == 0
    calls = read(asked / "export" / "calls.csv")
    with RunLog.open_read_only(asked) as log:
        assert len(calls) == log.calls.totals().calls
        assert (
            sum(int(row["prompt_tokens"]) for row in calls) == log.calls.totals().prompt
        )
    assert "\x1b" not in (asked / "export" / "calls.csv").read_text(encoding="utf-8")
    assert (calls[0]["trial"], calls[0]["call"]) == ("1", "1")
    assert calls[0]["reply"].startswith("LEARNINGS: =1+1 <script>")


def test_parquet_is_written_in_groups_that_fit_into_memory(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, long = tmp_path / "long.parquet", "x" * (GROUP_TEXT // 2)
    assert (
        write_parquet(
            path,
            {"said": "text", "step": "integer"},
            ([[long, n], [None, n]] for n in range(5)),
        )
        == 10
    )
    groups = parquet.ParquetFile(path).metadata
    assert [
        groups.row_group(number).num_rows for number in range(groups.num_row_groups)
    ] == [4, 4, 2]
    assert parquet.read_table(path).to_pydict()["step"] == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        4,
    ]


def test_parquet_has_types_and_the_same_rows(run: Run, asked: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run("export", "asked", "--parquet", "--observations").code == 0
    assert run("export", "asked", "--csv", "--observations").code == 0
    for name, table in TABLES.items():
        content = parquet.read_table(asked / "export" / f"{name}.parquet")
        assert content.column_names == list(table.header)
        assert content.num_rows == len(read(asked / "export" / f"{name}.csv"))
    trials = parquet.read_table(asked / "export" / "trials.parquet").to_pydict()
    assert all(value is None or isinstance(value, bool) for value in trials["success"])


def test_without_pyarrow_there_is_one_remedy(
    run: Run, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = run("export", RUN, "--parquet")
    assert found.code == 2
    assert install_command("parquet") in found.err


def test_a_trial_that_was_not_run_is_a_row_without_values(
    run: Run, results: Path
) -> None:
    with rewritten(results / RUN / "run.sqlite") as connection:
        connection.execute("DELETE FROM lives WHERE subject = 1")
        connection.execute("DELETE FROM trials WHERE subject = 1 AND trial > 1")
    assert run("export", RUN, "--csv").code == 0
    rows = read(results / RUN / "export" / "trials.csv")
    assert [
        (row["missing"], row["success"], row["steps"]) for row in rows if row["missing"]
    ] == [("not run", "", "")] * 2
    assert run("export", RUN, "--inspect").code == 0
    (path,) = (results / RUN / "export").glob("*.eval")
    with zipfile.ZipFile(path) as file:
        header = json.loads(file.read("header.json"))
    assert (header["status"], header["results"]["completed_samples"]) == (
        "cancelled",
        6,
    )


def test_inspect_logs_are_zips_of_samples(run: Run, asked: Path) -> None:
    assert run("export", "asked", "--inspect").code == 0
    (path,) = (asked / "export").iterdir()
    assert path.name == "000_little_ascii_2d_a-model.eval"
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        sample = json.loads(file.read("samples/subject-0001-trial-0002_epoch_1.json"))
    assert len([name for name in names if name.startswith("samples/")]) == 8
    assert [message["role"] for message in sample["messages"][:3]] == [
        "system",
        "user",
        "assistant",
    ]
    named = sample["metadata"]["subject"], sample["metadata"]["trial"]
    assert named == (1, 2)  # as in the sample's name


def test_mistakes(run: Run, results: Path) -> None:
    for arguments, said in (
        (
            (RUN,),
            "one of the arguments --csv --parquet --inspect --every-eval-ever --psych-ds --hugging-face is required",
        ),
        ((RUN, "--csv", "--table", "step"), "Did you mean 'steps'?"),
        (("nope", "--csv"), "There is no run 'nope'"),
        ((RUN, "--csv", "--output", "little.protocol.yaml"), "cannot be created"),
    ):
        found = run("export", *arguments)
        assert (found.code, found.out) == (2, "")
        assert said in found.err
