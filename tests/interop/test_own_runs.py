"""Verdicts on runs of CheeseBench, beside logs of other programs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import FILE_NAME
from cheesebench.interop.hosted import life_to_json
from cheesebench.interop.own_runs import judge_runs
from cheesebench.summaries import summarise_log
from tests.pytest_plugin.conftest import corridor


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs ``one`` and ``two`` of the same subjects, and a log of other scores."""
    folder = tmp_path_factory.mktemp("lab")
    path = folder / "east.protocol.yaml"
    path.write_text(corridor("east", trials=4), encoding="utf-8")
    for name in ("one", "two"):
        cheesebench.run(
            "random", folder, run_id=name, progress=False, results=folder, subjects=2, design="flat-4", seed=3,
            view="ascii_2d",
        )  # fmt: skip
    (folder / "scores.csv").write_text("subject,item,score\na,b,1\n", encoding="utf-8")
    return folder


def judge(
    results: Path,
    first: Any,
    second: Any = None,
    value: float | None = None,
    models: tuple[str | None, str | None] = (None, None),
) -> Any:
    return judge_runs(first, second, value, results, models)


def test_a_run_is_judged_as_its_report_says(results: Path) -> None:
    [own], said = judge(results, "one")
    with RunLog.open_read_only(results / "one" / FILE_NAME) as log:
        [cell] = summarise_log(log).cells
    assert (own.task, own.answer) == ("east (random)", cell.verdict)
    assert (own.rate, own.subjects) == (cell.rate, 2)
    assert [one.startswith("Replayed") for one in said] == [True]
    for name in (results / "one", results / "one" / FILE_NAME):
        assert judge(results, name)[0] == [own]


def test_two_runs_are_compared_subject_by_subject(results: Path) -> None:
    [own], _ = judge(results, "one", "two")
    assert own.task == "east (random)"
    assert (own.answer, own.of_difference) == ("undecided", True)
    assert own.rate == own.against
    assert (own.p_value, own.model, own.protocol) == (1.0, "random", "east")


def test_anything_else_is_no_run(results: Path) -> None:
    log = results / "scores.csv"
    assert judge(results, log) is None
    assert judge(results, [0.5, 1.0], log) is None
    assert judge(results, results) is None, "a folder of other logs"


@pytest.mark.parametrize(
    ("first", "more", "said"),
    [
        ("one", {"value": 0.5}, "--value 0.5: a run of CheeseBench is judged against its animals"),
        ("one", {"second": [1.0]}, "one is a run of CheeseBench, and the other scores are not. Give two"),
        ("one", {"second": "scores.csv"}, "scores.csv is a log of another program. Give two runs"),
        ([1.0], {"models": ("a", "b")}, "--first-model and --second-model are for runs, .* Remove them.$"),
    ],
)  # fmt: skip
def test_a_run_beside_anything_else_is_refused(
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: Any,
    more: dict[str, Any],
    said: str,
) -> None:
    monkeypatch.chdir(results)
    with pytest.raises(OptionError, match=said):
        judge(Path(), first, **more)


def test_models_without_a_column_are_told_how_to_name_it(results: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0], "b": [0.0]})
    with pytest.raises(OptionError, match=r"give them: verdict\(frame\['a'\], frame\["):
        judge(results, frame, models=("a", "b"))
    with pytest.raises(OptionError, match=r"Add the column.$"):
        judge(results, frame, models=("a", "c"))


def test_a_missing_run_is_told_with_the_likely_one(results: Path) -> None:
    with pytest.raises(RunLogError, match=r"and no run of that name in .*'two'"):
        judge(results, "twoo")


def test_verdict_takes_runs_and_lives_in_logs(results: Path) -> None:
    judge(results, "one")  # It is replayed, and later known as the same.
    [own], said = judge(results, "one")
    alone = cheesebench.verdict("one", results=results)
    assert (alone.tasks, alone.notes) == ((own,), tuple(said))
    [both] = cheesebench.verdict("one", "two", results=results, only_seen=True).tasks
    assert both == judge(results, "one", "two")[0][0]
    with pytest.raises(OptionError, match=r"is about two models that are compared"):
        cheesebench.verdict("one", results=results, only_seen=True)
    with RunLog.open_read_only(results / "one" / FILE_NAME) as log:
        [plan] = log.plans()
        lives = [life_to_json(plan, log.trials(plan, subject)) for subject in (0, 1)]
    samples = [
        {"id": number, "epoch": 1, "scores": {"live": {"value": 1, "metadata": life}}}
        for number, life in enumerate(lives)
    ]
    path = results / "lived.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", '{"eval": {"task": "x"}}')
        file.writestr("summaries.json", json.dumps(samples))
        for number, sample in enumerate(samples):
            file.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
    [told] = cheesebench.verdict(path).tasks
    assert (told.task, told.answer, told.rate) == ("east", own.answer, own.rate)
    assert told.subjects == 2
