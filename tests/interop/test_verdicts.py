"""Logs and frames that are seldom given: what is refused, left out, or noted."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.interop import scores
from cheesebench.interop.scores import _keys, read_scores
from cheesebench.interop.verdicts import _listed, _of_models
from tests.interop.test_scores import csv, every_eval_ever, inspect, lm_eval

ALL = {str(number): 1.0 for number in range(6)}


def refused(path: Path) -> str:
    with pytest.raises(OptionError) as caught:
        read_scores(path)
    return str(caught.value)


def test_logs_that_cannot_be_read_name_a_remedy(tmp_path: Path) -> None:
    latin = tmp_path / "samples_x.jsonl"
    latin.write_bytes('{"doc_id": "é"}'.encode("latin-1"))
    assert refused(latin).endswith(" is not UTF-8. Save it as text in UTF-8.")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert " has no scores of items. Give an Inspect log (.eval), " in refused(empty)
    header = tmp_path / "header.csv"
    header.write_text("subject,item,score\n", encoding="utf-8")
    assert "rows" in refused(header)
    (tmp_path / "x.parquet").write_bytes(b"")
    unknown = " cannot be read as a log (its name has an unknown ending). Give an Insp"
    assert unknown in refused(tmp_path / "x.parquet")
    assert "(there is no such file)" in refused(tmp_path / "y.parquet")


def test_two_files_of_a_task_are_not_added(tmp_path: Path) -> None:
    names = ["samples_arc_2026-01-01T00-00-00.0.jsonl", "samples_boolq.jsonl"]
    for name in names:
        lm_eval(tmp_path / name, ALL)
    assert [*read_scores(tmp_path).tasks] == ["arc", "boolq"]
    lm_eval(tmp_path / "samples_arc_2026-01-02T00-00-00.0.jsonl", ALL)
    assert refused(tmp_path) == (
        f"{tmp_path} has several files of the task arc. Name one file."
    )


def test_limits_that_no_real_log_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"t{number},s,i,1\n" for number in range(3))
    table = tmp_path / "tasks.csv"
    table.write_text(f"task,subject,item,score\n{rows}", encoding="utf-8")
    lines = every_eval_ever(tmp_path / "x_samples.jsonl", ALL)
    size = lines.stat().st_size
    monkeypatch.setattr(scores, "MOST_NAMES", 3)
    assert len(read_scores(table).tasks) == 3
    monkeypatch.setattr(scores, "MOST_NAMES", 2)
    assert refused(table) == (
        f"{table} has more than 2 different tasks, or names of scores."
    )
    monkeypatch.setattr(scores, "LONGEST", table.stat().st_size)
    read_scores(csv(tmp_path / "a.csv", [("s", "i", 1)]))
    monkeypatch.setattr(scores, "LONGEST", table.stat().st_size - 1)
    assert " is too large: it has more than " in refused(table)
    monkeypatch.setattr(scores, "LONGEST", 1000)
    # An object in an object, and three commas, in each of six lines.
    commas = lines.read_bytes().count(b",")
    for name, most in (("BYTES", size), ("OBJECTS", 12), ("VALUES", commas)):
        monkeypatch.setattr(scores, f"ALL_{name}", most)
        assert len(read_scores(lines).tasks) == 1
        monkeypatch.setattr(scores, f"ALL_{name}", most - 1)
        assert " is too large: it has more than " in refused(lines)
        monkeypatch.undo()


def test_names_that_are_whole_prompts_are_kept_apart() -> None:
    long, other = "x" * 501, "x" * 500 + "y"
    short, first, second, again = _keys(["a", long, other, long])
    assert short == "a"
    assert first == again != second
    assert len(first) == len(second) == 128
    whole = ["a", "x" * 500]
    assert _keys(whole) == whole


def test_a_log_that_this_python_cannot_unpack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        pytest.skip("this Python can")
    monkeypatch.setitem(sys.modules, "zipfile_zstd", None)
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", '{"eval": {"task": "x"}}')
    data = bytearray(path.read_bytes())
    data[8:10] = (93).to_bytes(2, "little")
    central = data.index(b"PK\x01\x02")
    data[central + 10 : central + 12] = (93).to_bytes(2, "little")
    path.write_bytes(data)
    assert refused(path) == (
        f"{path} is compressed with Zstandard, which this Python lacks. Install it with: "
        "pip install zipfile-zstd"
    )


def test_samples_without_a_score_and_with_a_life(tmp_path: Path) -> None:
    bare = inspect(tmp_path / "bare.eval", {"1": 1.0, "2": 0.0}, scores={})
    [items] = read_scores(bare).tasks.values()
    assert (len(items.index), items.missing) == (2, 2)
    life = {"plan": {"no": "plan"}, "trials": []}
    scored = {"live": {"value": 1.0, "metadata": life | {"cut": "..."}}}
    path = inspect(tmp_path / "lived.eval", {"1": 1.0}, scores=scored)
    with zipfile.ZipFile(path, "a") as file:
        whole = {"scores": {"live": {"metadata": life}}}
        file.writestr("samples/1_epoch_1.json", json.dumps(whole))
    assert read_scores(path).lives == [life]
    with pytest.raises(
        OptionError, match=r"lived.eval has damaged lives: .* Use an un"
    ):
        cheesebench.verdict(path)


def test_items_of_one_log_alone_are_told(tmp_path: Path) -> None:
    def table(name: str, *rows: tuple[str, str]) -> Path:
        lines = [f"{task},{item},{item},1" for task, item in rows]
        text = "\n".join(["task,subject,item,score", *lines, ""])
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    shared = [("a", str(number)) for number in range(6)]
    one = table("one.csv", *shared, ("a", "x"), ("a", "y"), ("own", "1"))
    other = table("other.csv", *shared, ("other", "1"))
    notes = cheesebench.verdict(one, other).notes
    assert notes[:3] == (
        f"Only in {one}: own.",
        f"a: 2 items of {one} left out (not in {other}).",
        f"Only in {other}: other.",
    )
    third = table("third.csv", ("b", "1"))
    with pytest.raises(
        OptionError, match=r"one.csv has the tasks a, own, .* has b: no"
    ):
        cheesebench.verdict(one, third)
    assert _listed(dict.fromkeys("abcde")) == "a, b, c, d, e"
    assert _listed(dict.fromkeys("abcdefg")) == "a, b, c, d, e and 2 more"


def test_scores_that_are_all_missing_decide_nothing(tmp_path: Path) -> None:
    none = csv(tmp_path / "none.csv", [(str(n), "i", "nan") for n in range(6)])
    some = csv(tmp_path / "some.csv", [(str(n), "i", 1) for n in range(6)])
    with pytest.raises(OptionError, match=r"^all items: no item has a score in both"):
        cheesebench.verdict(none, some)
    with pytest.raises(OptionError, match=r"^all items: no item has a score.$"):
        cheesebench.verdict(none, value=0.5)


def test_rows_of_models_are_chosen_from_one_frame_or_two() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"model": ["a", "b", "a"], "score": [1, 2, 3]})

    def chosen(second: Any, models: tuple[str | None, str | None]) -> list[Any]:
        *sides, left = _of_models(frame, second, models)
        assert left == (None, None)
        return [None if one is None else [*one["score"]] for one in sides]

    assert chosen(None, ("a", None)) == [[1, 3], None]
    assert chosen(None, ("a", "b")) == [[1, 3], [2]]
    assert chosen(frame, ("b", None)) == [[2], [1, 2, 3]]
    assert _of_models([1.0], None, ("a", "b")) == ([1.0], None, ("a", "b"))
    with pytest.raises(UnknownNameError, match=r"'ab'"):
        _of_models(frame, None, ("ab", None))


def test_frames_with_other_keys_are_not_paired() -> None:
    pandas = pytest.importorskip("pandas")
    one = pandas.DataFrame({"subject": ["a", "b"], "score": [1.0, 0.0]})
    other = pandas.DataFrame({"item": ["a", "b"], "score": [1.0, 0.0]})
    bare = pandas.DataFrame({"score": [1.0, 0.0]})
    with pytest.raises(
        OptionError, match=r"first scores has 'subject', and .* 'item'. Gi"
    ):
        cheesebench.verdict(one, other)
    with pytest.raises(OptionError, match=r"has neither 'subject' nor 'item'"):
        cheesebench.verdict(one, bare)


def test_only_seen_needs_two_models() -> None:
    with pytest.raises(OptionError, match=r"here each is judged alone. Remove it"):
        cheesebench.verdict([1.0, 0.0], value=0.5, only_seen=True)


@pytest.mark.parametrize(
    ("scores", "answer", "more"),
    [
        ([1.0] * 9 + [0.0] * 3, "INCONCLUSIVE", True),
        ([1.0] * 40, "PASS", False),
        ([0.0] * 40, "FAIL", False),
    ],
)
def test_an_undecided_value_says_how_many_subjects_would_decide(
    scores: list[float], answer: str, more: bool
) -> None:
    [task] = cheesebench.verdict(scores, value=0.5).tasks
    assert task.answer == answer
    assert (" would decide it in 4 of 5 cases." in task.reason) is more


def test_an_answer_left_open_names_its_cause() -> None:
    pandas = pytest.importorskip("pandas")
    nan = float("nan")
    right = {"a": 20, "b": 14, "c": 19, "d": 18}
    frame = pandas.DataFrame(
        [
            {"model": model, "item": str(item), "score": float(item < count)}
            for model, count in right.items()
            for item in range(20)
        ]
    )
    reasons = [one.reason for one in cheesebench.verdict(frame).tasks]
    holm = "The correction for 6 tests leaves the answer open."
    assert [holm in one for one in reasons] == [True] + [False] * 5
    assert not any("Missing" in one for one in reasons)
    known = [1.0] * 8 + [nan] * 2
    [task] = cheesebench.verdict(known, [0.0] * 8 + [1.0] * 2).tasks
    assert task.reason.endswith(" Missing scores leave the answer open.")
    assert "correction" not in task.reason


def test_trials_that_enter_no_verdict_are_no_missing_scores() -> None:
    pandas = pytest.importorskip("pandas")
    verdict = cheesebench.verdict
    trials = pandas.DataFrame(
        {
            "subject": [0, 0, 1, 1],
            "success": pandas.array([None, True, None, None], dtype="boolean"),
            "recorded_success": pandas.array([True, True, False, None], "boolean"),
            "judged": [False, True, False, True],
        }
    )
    with pytest.raises(OptionError) as raised:
        verdict(trials, value=0.5, score="success")
    assert str(raised.value) == (
        "2 rows of these trials have no success, because they enter no verdict. Give only the rows with judged: "
        "frame[frame['judged']]."
    )
    assert verdict(trials[trials["judged"]], value=0.5, score="success").notes
    # Without this column, a score that is absent is missing, whatever was judged.
    own = trials.drop(columns="recorded_success")
    assert "3 scores of these scores missing" in " ".join(
        verdict(own, value=0.5, score="success").notes
    )
