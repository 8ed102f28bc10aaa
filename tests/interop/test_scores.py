"""``cheesebench verdict``, its fixture and its function: logs of other evaluations,
possibly hostile.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, compress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import cheesebench
from cheesebench.cli import main
from cheesebench.errors import CheeseBenchError
from cheesebench.interop import scores
from cheesebench.interop.scores import read_scores

Items = Mapping[str, float | None]


def csv(path: Path, rows: Iterable[tuple[str, str, object]]) -> Path:
    path.write_text(
        "subject,item,score\n" + "".join(f"{s},{i},{v}\n" for s, i, v in rows),
        encoding="utf-8",
    )
    return path


def lm_eval(path: Path, items: Items, **more: Any) -> Path:
    rows = [
        {
            "doc_id": int(key),
            "doc": {"passage": int(key) // 4},
            "metrics": ["acc"],
            "acc": value,
            **more,
        }
        for key, value in items.items()
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def every_eval_ever(path: Path, items: Items) -> Path:
    rows = [
        {
            "sample_id": key,
            "evaluation_name": "arc",
            "evaluation": {"score": value, "is_correct": bool(value)},
        }
        for key, value in items.items()
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def inspect(path: Path, items: Items, model: str = "m", **more: Any) -> Path:
    samples = [
        {
            "id": key,
            "epoch": 1,
            "metadata": {"passage": int(key) // 4},
            "scores": {"match": {"value": value}},
            **more,
        }
        for key, value in items.items()
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "header.json", json.dumps({"eval": {"task": "arc", "model": model}})
        )
        file.writestr("summaries.json", json.dumps(samples))
    return path


WRITERS: dict[str, Callable[[Path, Items], Path]] = {
    "samples_arc_2026-01-01T00-00-00.000001.jsonl": lm_eval,
    "x_samples.jsonl": every_eval_ever,
    "x.eval": inspect,
}


@pytest.fixture(scope="module")
def models() -> tuple[Items, Items, Items]:
    """Two models of the same ability, and a better one, on the same 200 items."""
    draw = random.Random(4)
    items = {str(number): draw.random() for number in range(200)}

    def model(lift: float) -> Items:
        return {
            key: float(draw.random() < min(1.0, rate + lift))
            for key, rate in items.items()
        }

    return model(0.0), model(0.0), model(0.2)


@pytest.mark.parametrize("name", WRITERS)
def test_known_differences(
    tmp_path: Path, name: str, models: tuple[Items, Items, Items]
) -> None:
    paths = []
    for number, items in enumerate(models):
        (tmp_path / str(number)).mkdir()
        paths.append(WRITERS[name](tmp_path / str(number) / name, items))
    plain, same, better = paths
    assert [one.answer for one in cheesebench.verdict(better, plain).tasks] == [
        "better"
    ]
    assert cheesebench.verdict(plain, better).worse
    (alike,) = cheesebench.verdict(plain, same).tasks
    assert (alike.task, alike.answer, alike.subjects) == (
        "arc",
        "undecided",
        200,
    )
    assert alike.detectable is not None
    assert 0.05 < alike.detectable < 0.2
    assert cheesebench.verdict(better, value=0.5).better
    assert cheesebench.verdict(plain, value=0.9).worse
    mean = sum(value or 0 for value in models[0].values()) / 200
    assert cheesebench.verdict(plain, value=mean).tasks[0].answer == "INCONCLUSIVE"
    assert cheesebench.verdict(plain, value=mean).tasks[0].rate == pytest.approx(mean)


def test_items_of_a_cluster_are_one_subject(
    tmp_path: Path, models: tuple[Items, Items, Items]
) -> None:
    one, other = (
        inspect(tmp_path / "a.eval", models[0]),
        inspect(tmp_path / "b.eval", models[2]),
    )
    assert cheesebench.verdict(one, other, cluster="passage").tasks[0].subjects == 50
    # Luck shared by all items is one piece of evidence, however many items there are.
    for name, value in (("a", 1), ("b", 0)):
        csv(
            tmp_path / f"{name}.csv",
            [("only", str(item), value) for item in range(1000)],
        )
    (found,) = cheesebench.verdict(tmp_path / "a.csv", tmp_path / "b.csv").tasks
    assert (found.answer, found.subjects) == ("undecided", 1)


def test_missing_scores_and_subjects(tmp_path: Path) -> None:
    some = csv(
        tmp_path / "a.csv", [(str(n), "x", 1 if n < 20 else "") for n in range(40)]
    )
    none = csv(tmp_path / "b.csv", [(str(n), "x", 0) for n in range(30)])
    found = cheesebench.verdict(some, none)
    # Of the thirty common items, ten have no score in A, and might have been lost in
    # all of them.
    assert found.tasks[0].answer == "better"
    assert found.tasks[0].subjects == 20
    assert "10 items of" in found.notes[0]
    few = csv(
        tmp_path / "c.csv", [(str(n), "x", 1 if n < 7 else "") for n in range(30)]
    )
    able = csv(tmp_path / "d.csv", [(str(n), "x", int(n >= 7)) for n in range(30)])
    # For any values of the missing scores.
    assert cheesebench.verdict(few, none).tasks[0].answer == "better"
    assert cheesebench.verdict(few, able).tasks[0].answer == "undecided"
    assert cheesebench.verdict(few, value=0.5).tasks[0].answer == "INCONCLUSIVE"
    one = csv(tmp_path / "e.csv", [(str(n), "x", "" if n else 1) for n in range(3)])
    (alone,) = cheesebench.verdict(one, value=0.5).tasks
    assert alone.answer == "INCONCLUSIVE"
    assert alone.reason.endswith(", 3 subjects."), "no spread to tell a number by"


def test_no_name_and_no_order_changes_an_answer(tmp_path: Path) -> None:
    """Binary scores near the value, and graded ones of two models."""
    draw = random.Random(1)
    first = [(float(draw.random() < 0.65), draw.random()) for _ in range(150)]
    answers = set()
    for naming in range(20):
        names = [f"{draw.random()}" for _ in first]
        order = draw.sample(range(150), 150)
        for file, side in (("a", 0), ("b", 1)):
            rows = [(names[n], f"i{naming}", first[n][side]) for n in order]
            csv(tmp_path / f"{file}.csv", rows)
        answers.add(str(cheesebench.verdict(tmp_path / "a.csv", value=0.55)))
        answers.add(str(cheesebench.verdict(tmp_path / "a.csv", tmp_path / "b.csv")))
    assert len(answers) == 2, answers


def test_many_items_see_a_small_difference(tmp_path: Path) -> None:
    """The interval is at most 1.5 times as wide as the exact one
    (Clopper and Pearson).
    """
    for count, passed in ((20, 13), (1000, 540), (100_000, 54_000)):
        rows = [(str(n), "x", int(n < passed)) for n in range(count)]
        (found,) = cheesebench.verdict(csv(tmp_path / "a.csv", rows), value=0.5).tasks
        exact = binomtest(passed, count).proportion_ci()
        assert found.interval is not None
        low, high = found.interval
        assert low <= exact.low < exact.high <= high
        assert high - low <= 1.5 * (exact.high - exact.low)
    assert found.answer == "PASS"


def test_repeats_are_averaged_whatever_their_number_and_order(tmp_path: Path) -> None:
    draw = random.Random(2)
    new = [(str(n), "x", int(n % 8 > 0)) for n in range(100) for _ in range(4)]
    old = [(str(n), "x", int(n % 5 > 2)) for n in range(100)]
    one, other = csv(tmp_path / "a.csv", new), csv(tmp_path / "b.csv", old)
    (found,) = cheesebench.verdict(one, other).tasks
    assert (found.answer, found.rate, found.against) == ("better", 0.87, 0.4)
    shuffled = csv(tmp_path / "c.csv", draw.sample(new, len(new)))
    assert cheesebench.verdict(shuffled, other).tasks == (found,)
    # One of four repeats has no score, so the item's mean is that of three.
    some = csv(tmp_path / "d.csv", [("s", "x", v) for v in (1, 1, 0, "nan")] * 2)
    said = cheesebench.verdict(some, value=0.5)
    assert said.tasks[0].rate == pytest.approx(2 / 3)
    assert "2 scores of" in said.notes[0]


def test_small_gains_do_not_hide_a_rare_failure(tmp_path: Path) -> None:
    """Graded pairs whose true mean difference is 0, and equal differences."""
    draw = random.Random(3)
    wrong, runs, gain = 0, 60, 0.05 * 0.95 / 0.95
    for _ in range(runs):
        rows = [-0.95 if draw.random() < 0.05 else gain for _ in range(20)]
        new = csv(tmp_path / "a.csv", [(str(n), "x", d) for n, d in enumerate(rows)])
        old = csv(tmp_path / "b.csv", [(str(n), "x", 0) for n in range(20)])
        (found,) = cheesebench.verdict(new, old, limits=(-1, 1)).tasks
        wrong += found.answer != "undecided"
    assert wrong / runs <= 0.06
    same = csv(tmp_path / "s.csv", [(str(n), "x", 1) for n in range(30)])
    none = csv(tmp_path / "n.csv", [(str(n), "x", 0) for n in range(30)])
    unseen = 1 - 0.025 ** (1 / 30)
    assert cheesebench.verdict(same, same).tasks[0].interval == pytest.approx(
        (-unseen, unseen)
    )
    assert cheesebench.verdict(none, same).tasks[0].interval == pytest.approx(
        (-1, -1 + 2 * unseen)
    )


def test_logs_without_a_common_item_are_refused(tmp_path: Path) -> None:
    one, other = (
        csv(tmp_path / f"{name}.csv", [("s", f"{name}{n}", 1) for n in range(4)])
        for name in ("apple", "pear")
    )
    with pytest.raises(CheeseBenchError, match="no item in common"):
        cheesebench.verdict(one, other)


def test_the_correction_is_for_all_tasks(tmp_path: Path) -> None:
    rows = [(task, subject) for task in range(10) for subject in range(7)]
    for name, lost in (("a", -1), ("b", 0)):
        text = "".join(f"t{t},{s},i,{int(t != lost)}\n" for t, s in rows)
        (tmp_path / f"{name}.csv").write_text(
            f"task,subject,item,score\n{text}", encoding="utf-8"
        )
    found = {
        one.task: one
        for one in cheesebench.verdict(tmp_path / "a.csv", tmp_path / "b.csv").tasks
    }
    assert found["t0"].answer == "undecided"  # p = .016, times ten
    assert "The correction for 10 tests" in found["t0"].reason


def test_the_command_and_the_fixture(
    tmp_path: Path,
    models: tuple[Items, Items, Items],
    capsys: pytest.CaptureFixture[str],
    pytester: pytest.Pytester,
) -> None:
    one, other = (
        inspect(tmp_path / "a.eval", models[0]),
        inspect(tmp_path / "b.eval", models[2]),
    )
    assert main(["verdict", str(one), str(other)]) == 0
    assert main(["verdict", str(one), str(other), "--fail"]) == 1
    assert main(["verdict", str(one), str(other), "--json"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("worse: arc: ")
    assert '"answer": "worse"' in said
    pytester.makepyfile(
        f"""
        def test_new_is_not_worse(score_verdict):
            assert not score_verdict({str(one)!r}, {str(other)!r}).worse

        def test_above(score_verdict):
            assert score_verdict({str(other)!r}, value=0.3).better
        """
    )
    done = pytester.runpytest("-p", "no:cacheprovider", "--junitxml=j.xml")
    done.assert_outcomes(passed=1, failed=1)
    assert 'name="verdict" value="worse: arc:' in (pytester.path / "j.xml").read_text(
        encoding="utf-8"
    )


def test_mistakes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = csv(tmp_path / "good.csv", [("a", "b", 1)])
    odd = csv(tmp_path / "odd.csv", [("a", "b", "maybe")])
    large = csv(tmp_path / "large.csv", [("a", "b", 7)])
    other = csv(tmp_path / "other.csv", [("z", "b", 1)])
    bad = tmp_path / "bad.eval"
    bad.write_bytes(b"PK nothing")
    columns = tmp_path / "columns.csv"
    columns.write_text("subject,item\n", encoding="utf-8")
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("subject,item,score\na,b,1\n", encoding="utf-16")
    two = lm_eval(
        tmp_path / "samples_arc.jsonl", {"1": 1.0}, metrics=["acc", "f1"], f1=0.5
    )
    for arguments, said in (
        ([good, tmp_path / "no.csv"], "There is no log"),
        ([good, bad], "File is not a zip file"),
        ([good, columns], "Missing column: score"),
        ([good, sheet], "sheet.csv:1:1: The file is not text in UTF-8"),
        ([good, odd], "'maybe' is not a number"),
        (
            [good, large],
            "the score 7 is not between 0 and 1. Give --range LOW HIGH.",
        ),
        ([good, other], "no item in common"),
        ([good, two], "several scores: acc, f1. Choose one with --score"),
        ([good, "--score", "scor"], "Did you mean 'score'?"),
        (
            [two, "--score", "acc", "--cluster", "page", "--value", ".5"],
            "Its fields: passage",
        ),
        ([good, "--cluster", "page", "--value", ".5"], "--cluster page: in a CSV file"),
        ([good], "Give a second log, or --value"),
        ([good, "--value", "1"], "Give a number between 0 and 1"),
        ([good, good, "--value", ".5"], "not both"),
        (
            [good, good, "--range", "1", "0"],
            "The lowest score is 1 and the highest 0. Give two finite numbers",
        ),
        ([good, tmp_path / "x"], "and no run of that name"),
    ):
        assert main(["verdict", *map(str, arguments)]) == 2, arguments
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line, line


def test_a_range_scales(tmp_path: Path) -> None:
    rated = csv(tmp_path / "rated.csv", [(str(n), "x", 1 + n % 5) for n in range(50)])
    assert main(["verdict", str(rated), "--value", "3", "--range", "1", "5"]) == 0
    assert cheesebench.verdict(rated, value=3, limits=(1, 5)).tasks[
        0
    ].rate == pytest.approx(3)


def test_hostile_logs_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "LONGEST", 100_000)
    monkeypatch.setattr(scores, "LONGEST_JSON", 100_000)
    bomb = tmp_path / "bomb.eval"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", '{"eval": {"task": "x"}}')
        file.writestr("summaries.json", "[" + " " * 10**7 + "]")
    line = tmp_path / "samples_x.jsonl"
    line.write_bytes(b'{"doc_id": "' + b"x" * 200_000)
    deep = tmp_path / "samples_y.jsonl"
    deep.write_text("[" * 90_000, encoding="utf-8")
    for path, said in (
        (bomb, "is too large: its header or its samples have more than 100,000 bytes"),
        (line, "is too large: line 1 has more than 100,000 bytes"),
        (deep, "cannot be read as a log"),
    ):
        with pytest.raises(CheeseBenchError, match=said):
            read_scores(path)
    monkeypatch.setattr(scores, "MOST", 10)
    with pytest.raises(CheeseBenchError, match="more than 10 scores"):
        read_scores(csv(tmp_path / "many.csv", [("a", str(n), 1) for n in range(20)]))
    lives = {"a": {"value": 1, "metadata": {"plan": 1, "trials": 2}}}
    strange = inspect(tmp_path / "strange.eval", {"1": 1.0}, scores=lives)
    with pytest.raises(CheeseBenchError, match="cannot be read as a log"):
        cheesebench.verdict(strange)


def test_the_page_promises_what_was_simulated() -> None:
    root = Path(__file__).parents[2]
    found = json.loads(
        (root / "benchmarks" / "measured" / "score_verdicts.json").read_text(
            encoding="utf-8"
        )
    )
    wrong = [
        rate
        for design in found["designs"]
        for name, rate in design.items()
        if name.startswith("wrong")
    ]
    assert len(wrong) == 15
    assert max(wrong) <= 0.05
    assert max(one["one imagined"] for one in found["skewed"]) <= 0.06
    rules = ("one imagined", "only seen")
    equal = [one for one in found["symmetric"] if not one["lift"]]
    assert max(one[rule] for one in equal for rule in rules) <= 0.06
    assert max(
        max(one["wrong PASS"], one["wrong FAIL"]) for one in found["values"]
    ) <= (0.05)
    page = (root / "docs" / "how-to" / "other-tools.md").read_text(encoding="utf-8")
    [rare] = [
        one for one in found["skewed"] if (one["pairs"], one["failing"]) == (20, 0.05)
    ]
    [gain] = [one for one in found["symmetric"] if one["pairs"] == 40 and one["lift"]]
    assert rare["one imagined"] == 0
    for rate in (0.05, rare["only seen"], gain["only seen"], gain["one imagined"]):
        assert f"{100 * rate:.0f} %" in page


def table(path: Path, *rows: str, header: str = "subject,item,score") -> Path:
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


def test_tables_as_spreadsheets_pandas_and_r_write_them(tmp_path: Path) -> None:
    missing = [f"s1,{5 + n},{cell}" for n, cell in enumerate(("<NA>", "#N/A", " "))]
    rows = ("s1,1,True", "s1,2,FALSE", ",,", "s1,3,NA", "s1,4,1.0,,", ",,,", *missing)
    found = read_scores(table(tmp_path / "a.csv", *rows)).tasks["all items"]
    assert list(found.index) == [("s1", str(n)) for n in range(1, 8)]
    sums, known, lost = ([*map(int, one)] for one in found.sums())
    assert sums == [1, 0, 0, 1, 0, 0, 0]
    assert lost == [0, 0, 1, 0, 1, 1, 1] == [1 - one for one in known]


@pytest.mark.parametrize(
    ("rows", "header", "said"),
    [
        (["s1,1,0,75"], "subject,item,score", "a.csv:2:4: The row has 4 cells"),
        (["s1,1"], "subject,item,score", "a.csv:2:3: "),
        (["s1,1,0,1"], "subject,item,score,score", "a.csv:1:4: There are two"),
        (["s1;1;0,75"], "subject;item;score", "not by semicolons"),
        (["s1,1,1", 's1,2,"0,75"'], "subject,item,score", "a.csv:3:3: the score"),
        (["x,s1,1,75"], "x,subject,item,score", "a.csv:2:4: the score 75 is not"),
        (["s1,1,2_4"], "subject,item,score", "'2_4' is not a number"),
        (["s1,1,1"], "Subject,Item,Score", "a.csv:1:1: Missing columns: "),
        (["s1,1,1"], "Subject,Item,Score", "in lower case"),
        ([",1,1"], "subject,item,score", "'subject' is empty"),
        (["s1,1,1", 's1,"1,1', "s1,2,1"], "subject,item,score", "a.csv:3:2: This"),
        (['s1,"1,1'], "subject,item,score", "a quote is never closed"),
        ([], "subject,item,score", "a.csv:1:1: The file has no rows."),
        (["s1," + "x" * 200_000 + ",1"], "subject,item,score", "not valid CSV"),
    ],
)
def test_tables_that_cannot_be_read_say_where(
    rows: list[str], header: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(CheeseBenchError) as caught:
        read_scores(table(tmp_path / "a.csv", *rows, header=header))
    assert said in str(caught.value)


def test_a_table_of_very_many_columns_is_read_in_one_pass(tmp_path: Path) -> None:
    header = ",".join(f"c{n}" for n in range(200_000))
    with pytest.raises(CheeseBenchError, match="Missing columns: subject"):
        read_scores(table(tmp_path / "a.csv", header=header))


def test_without_subjects_each_item_of_a_table_is_one(tmp_path: Path) -> None:
    rows = [f"{n},{n % 2}" for n in range(8)]
    pandas = pytest.importorskip("pandas")
    path = table(tmp_path / "a.csv", *rows, header="item,score")
    [found] = cheesebench.verdict(path, value=0.4).tasks
    assert (found.subjects, found.rate) == (8, 0.5)
    [same] = cheesebench.verdict(pandas.read_csv(path), value=0.4).tasks
    assert same == found
    path = table(tmp_path / "b.csv", "s1,1,1", header="subj,item,score")
    with pytest.raises(cheesebench.OptionError, match=r"subject\. Rename the column"):
        cheesebench.verdict(path, value=0.4)


def test_rows_that_another_column_names_say_so() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"model": [*"aabb"], "question": [1, 2] * 2, "right": 1.0})
    said = (
        r"'question' names them, call it 'item': frame.rename\(columns=\{'question': "
    )
    with pytest.raises(cheesebench.OptionError, match=said):
        cheesebench.verdict(frame, score="right")


@pytest.mark.parametrize("name", ["x.csv", "samples_x.jsonl", "x.eval"])
def test_only_regular_files_are_read(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(CheeseBenchError, match="not a file"):
        read_scores(tmp_path / name)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(CheeseBenchError, match="not a file"):
        read_scores(tmp_path / name)


def test_logs_larger_in_memory_than_on_disk_and_names_of_strangers(
    tmp_path: Path,
) -> None:
    bomb = tmp_path / "bomb.eval"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", '{"eval": {"task": "x"}}')
        file.writestr("summaries.json", "[" + "{}," * 10**7 + "{}]")
    with pytest.raises(
        CheeseBenchError,
        match=r"more than 500,000 objects and lists.*Write its scores to CSV",
    ):
        read_scores(bomb)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(bomb, "w", method) as file:
            file.writestr("header.json", '{"eval": {"task": "x"}}')
            file.writestr("summaries.json", "[" + " " * 10**7 + "]")
        with pytest.raises(
            CheeseBenchError, match="in a way that Inspect does not use"
        ):
            read_scores(bomb)
    large = tmp_path / "samples_large.jsonl"
    large.write_text(f'{{"doc_id": 1, "acc": {"9" * 400}}}\n', encoding="utf-8")
    with pytest.raises(CheeseBenchError, match="is not a number"):
        read_scores(large)
    named = table(
        tmp_path / "a.csv",
        '"\x1b[31mOWN\n::error::x",s1,1,1',
        header="task,subject,item,score",
    )
    (task,) = read_scores(named).tasks
    assert task.isprintable()


def test_scores_in_memory_are_those_of_a_file_in_the_units_of_the_limits(
    tmp_path: Path,
) -> None:
    pandas = pytest.importorskip("pandas")
    draw = random.Random(1)
    scores = [round(draw.uniform(6, 9), 2) for _ in range(60)]
    frame = pandas.DataFrame({"score": scores})
    frame["subject"] = frame["item"] = frame.index.map("s{}".format)
    frame.to_csv(tmp_path / "scores.csv", index=False)
    [plain] = cheesebench.verdict([one / 10 for one in scores], value=0.5).tasks
    for given in (scores, np.array(scores), frame, frame[["score"]], frame["score"]):
        assert cheesebench.verdict(given, value=5, limits=(0, 10)) == (
            cheesebench.verdict(tmp_path / "scores.csv", value=5, limits=(0, 10))
        )
    [found] = cheesebench.verdict(scores, value=5, limits=(0, 10)).tasks
    assert found.answer == plain.answer == "PASS"
    assert found.p_value == plain.p_value
    assert found.p_value is not None
    assert found.p_value < 1 / 20
    assert found.against == 5
    assert found.rate == pytest.approx(sum(scores) / 60)
    assert found.interval == pytest.approx([10 * one for one in plain.interval or ()])
    assert re.match(r"7\.\d+ \(95 % 6\.\d+ to 7\.\d+\) against 5; ", found.reason)
    [paired] = cheesebench.verdict(
        scores, [one - 1 for one in scores], limits=(0, 10)
    ).tasks
    assert paired.answer == "better"
    assert paired.interval == pytest.approx((0.344, 1.537), abs=0.01)
    assert " +1, 95 % +0." in paired.reason
    scores[3] = math.nan
    [missing] = cheesebench.verdict(
        frame["score"].where(frame.index != 3), value=5, limits=(0, 10)
    ).tasks
    assert missing == cheesebench.verdict(scores, value=5, limits=(0, 10)).tasks[0]
    with pytest.raises(
        cheesebench.OptionError, match=r"these scores: row 7: .* Give limits="
    ):
        cheesebench.verdict([0.5] * 7 + [5], value=0.5)
    with pytest.raises(
        cheesebench.OptionError, match=r"no column 'score' .*score=NAME"
    ):
        cheesebench.verdict(frame[["item"]], value=0.5)


def test_two_models_of_one_data_frame_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    one = pandas.DataFrame({"item": range(20), "accuracy": np.linspace(0.6, 1, 20)})
    other = one.assign(accuracy=0.2)
    both = pandas.concat([one.assign(model="A"), other.assign(model="B")])
    found = cheesebench.verdict(both, models=("A", "B"), score="accuracy")
    apart = cheesebench.verdict(one, other, score="accuracy").tasks[0]
    assert (found.tasks[0].answer, found.tasks[0].reason) == ("better", apart.reason)
    assert (found.tasks[0].model, found.tasks[0].other_model) == ("A", "B")
    assert cheesebench.verdict(
        both, both, models=("A", "B"), score="accuracy"
    ).tasks == (found.tasks)
    [alone] = cheesebench.verdict(
        both, models=("A", None), value=0.5, score="accuracy"
    ).tasks
    assert (alone.answer, alone.subjects) == ("PASS", 20)
    with pytest.raises(cheesebench.OptionError, match="or a value, not both"):
        cheesebench.verdict(both, models=("A", "B"), value=0.9, score="accuracy")
    with pytest.raises(cheesebench.UnknownNameError, match="Known: A, B"):
        cheesebench.verdict(both, models=("A", "C"), score="accuracy")
    each = cheesebench.verdict(both, value=0.5, score="accuracy")
    assert [one.model for one in each.tasks] == ["A", "B"]
    assert [one.task for one in each.tasks] == ["all items (A)", "all items (B)"]
    assert [one.rate for one in each.tasks] == [alone.rate, found.tasks[0].reference]
    assert "(40 to 1 decides)" in each.tasks[0].reason  # two models, so twice 20


class _Polars:
    """What ``verdict`` uses of a data frame of polars, which no test needs."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns, self.columns = columns, [*columns]

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def __len__(self) -> int:
        return len(self[self.columns[0]])

    def filter(self, mask: list[bool]) -> _Polars:
        return _Polars(
            {name: [*compress(own, mask)] for name, own in self._columns.items()}
        )


def test_two_models_of_a_frame_of_polars_are_compared() -> None:
    items = [*range(20)] * 2
    scores = [*np.linspace(0.6, 1, 20), *[0.2] * 20]
    columns = {"item": items, "model": ["A"] * 20 + ["B"] * 20, "score": scores}
    given: Any = _Polars(columns)
    [found] = cheesebench.verdict(given, models=("A", "B")).tasks
    assert (found.answer, found.model, found.other_model) == ("better", "A", "B")


def test_subjects_of_several_items_are_told() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"subject": [*"abcd"] * 50, "score": [1.0, 0.0] * 100})
    said = "all items: 200 items in 4 subjects (column '{}')."
    assert cheesebench.verdict(frame, value=0.5).told == (said.format("subject"),)
    topics = frame.rename(columns={"subject": "topic"})
    other = topics.assign(score=0.5)
    for second, value in ((None, 0.5), (other, None)):
        found = cheesebench.verdict(topics, second, value=value, cluster="topic")
        assert found.notes == (said.format("topic"),)


def test_a_cluster_of_a_data_frame_is_a_subject_or_is_told() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"animal": [1] * 12 + [2] * 12, "score": [1] * 24})
    [one] = cheesebench.verdict(frame, value=0.5, cluster="animal").tasks
    assert (one.subjects, one.answer) == (2, "INCONCLUSIVE")
    capital = frame.rename(columns={"animal": "Subject"})
    for given, cluster in ((frame, "nope"), (capital, None), ([1, 0, 1], "animal")):
        with pytest.raises(cheesebench.OptionError, match="no column"):
            cheesebench.verdict(given, value=0.5, cluster=cluster)


def test_frames_that_would_be_judged_wrongly_are_refused(tmp_path: Path) -> None:
    """Rows of several models or tasks, columns that occur twice, subjects without a
    name, and rows that do not pair: each was once judged without a word.
    """
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"subject": range(20), "item": 1, "score": np.linspace(0, 1, 20)}
    )
    two = pandas.concat([frame.assign(model="A"), frame.assign(model="B")])
    subjects, items = frame.drop(columns="item"), frame.drop(columns="subject")
    nested = pandas.concat([items.assign(subj=name) for name in "abc"])
    two.to_csv(tmp_path / "two.csv", index=False)
    frame.assign(subject="NA").to_csv(tmp_path / "nameless.csv", index=False)
    refused: list[tuple[str, Any, Any]] = [
        ("column 'model' has several values (A, B)", two, two),
        ("'model_name' has several", two.rename(columns={"model": "model_name"}), None),
        ("column 'protocol' has", two.rename(columns={"model": "protocol"}), None),
        ("two.csv:22:4: The column 'model' has", tmp_path / "two.csv", None),
        ("nameless.csv:2:1: The column 'subject' has 'NA' in this line.", tmp_path / "nameless.csv", None),
        ("2 columns 'item'", pandas.concat([frame, frame["item"]], axis=1), None),
        ("2 columns 'subject'", pandas.concat([frame, frame["subject"]], axis=1), None),
        ("2 columns 'score'", pandas.concat([frame, frame["score"]], axis=1), None),
        ("row 0 has no subject (None)", frame.assign(subject=math.nan), None),
        ("row 0 has no task", frame.assign(task=None), None),
        ("no column 'subject' (only item, score, subj). Rename 'subj'", nested, None),
        ("no column 'item'", frame.rename(columns={"item": "item_id"}), None),
        # Letters of another alphabet that look alike
        (r"Rename '\u0456tem'", frame.rename(columns={"item": "\u0456tem"}), None),
        ("has 'item', and the second scores has 'subject'.", items, subjects),
        ("has neither 'subject' nor 'item'", frame, [0.5] * 20),
        ("There is no score", frame.iloc[:0], None),
    ]  # fmt: skip
    for said, first, second in refused:
        with pytest.raises(cheesebench.OptionError, match=re.escape(said)):
            cheesebench.verdict(first, second, value=0.4 if second is None else None)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("subject,item,\u0455core", r"column: score. Type the name '\u0455core' in"),
        ("t\u0430sk,subject,item,score", "The column 't\u0430sk' is not read."),
    ],
)
def test_names_of_columns_in_letters_that_look_alike_are_told(
    header: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n" + ",".join("abc1"[: header.count(",") + 1]))
    with pytest.raises(cheesebench.OptionError, match=re.escape(said)):
        cheesebench.verdict(path, value=0.5)


def test_a_row_and_signs_beyond_ascii_fill_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for row in (",a" * 2**20 + ",", '"\n",' * 2**20):
        path.write_text(f"subject,item,score\na,b,1\n{row}\n", encoding="utf-8")
        with pytest.raises(cheesebench.OptionError, match=r"csv:3:1: The row has more"):
            cheesebench.verdict(path, value=0.5)


def test_whole_numbers_that_pandas_made_floats_and_tables_of_arrow_are_read() -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"item": range(20), "score": [0, 1] * 10})
    floats = frame.assign(item=frame["item"].astype(float))
    assert cheesebench.verdict(frame, floats).tasks[0].subjects == 20
    table = arrow.Table.from_pandas(frame)
    assert cheesebench.verdict(table, value=0.5) == cheesebench.verdict(
        frame, value=0.5
    )


def test_a_model_with_odd_signs_in_its_name_is_one_model(tmp_path: Path) -> None:
    path = tmp_path / "a_samples.jsonl"
    row = {"evaluation_name": "t", "model_id": "\x1b[31m", "evaluation": {"score": 1}}
    path.write_text("\n".join(json.dumps({**row, "sample_id": n}) for n in range(2)))
    assert cheesebench.verdict(path, value=0.5).tasks[0].model == r"\x1b[31m"


def test_frames_are_judged_by_model_index_and_repeats() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"subject": [*range(20)] * 2, "score": np.linspace(0, 1, 40)}
    )
    flat = cheesebench.verdict(frame, value=0.4)
    assert cheesebench.verdict(frame.set_index("subject"), value=0.4) == flat
    assert cheesebench.verdict(frame.set_index("subject").score, value=0.4) == flat
    assert flat.notes == ("all items: 40 items in 20 subjects (column 'subject').",)
    assert flat.tasks[0].subjects == 20
    means = frame.groupby("subject").score.mean()
    backwards = (means.sort_index(ascending=False) / 2).rename("half")
    [paired] = cheesebench.verdict(means, backwards).tasks
    assert (paired.subjects, paired.answer) == (20, "better")
    named = [frame.assign(model=name) for name in ("A", "B")]
    [both] = cheesebench.verdict(*named).tasks
    assert (both.model, both.other_model) == ("A", "B")
    repeated = cheesebench.verdict(frame.assign(item=1), value=0.4)
    [note] = repeated.notes
    assert note == (
        "all items: 20 items of these scores with several scores each: their mean counts."
    )
    for shown in (repeated._repr_html_(), repr(repeated), str(repeated)):
        assert note in shown


def test_rows_without_names_are_paired_only_if_their_indexes_are_equal() -> None:
    pandas = pytest.importorskip("pandas")
    high = pandas.Series(np.linspace(0.2, 1, 30))
    low, turned = high - 0.2, (high - 0.2)[::-1]
    [task] = cheesebench.verdict(high, low).tasks
    assert (task.answer, task.subjects) == ("better", 30)
    by_position = cheesebench.verdict(high, turned.reset_index(drop=True)).tasks[0]
    assert by_position.answer != "better"
    half = pandas.DataFrame({"score": high[:20]})
    with pytest.raises(cheesebench.OptionError, match="there are 30 and 29, and nothi"):
        cheesebench.verdict([*high], [*high[:10], *high[11:]])
    for one, other in ((high, turned), (high, half), (half, half[10:])):
        with pytest.raises(cheesebench.OptionError, match="the indexes differ"):
            cheesebench.verdict(one, other)
    named = [one.rename_axis("item") for one in (high, turned)]
    assert cheesebench.verdict(*named).tasks[0].answer == "better"


def test_columns_mean_one_thing_and_few_or_equal_pairs_promise_nothing() -> None:
    [value] = cheesebench.verdict([0.3, 0.4, 0.7], value=0.5).rows()
    [two] = cheesebench.verdict([0.3, 0.4, 0.7], [0.2, 0.4, 0.1]).rows()
    assert list(value) == list(two)
    assert value["low"] < value["rate"] < value["high"]  # type: ignore[operator]
    assert (two["low"], two["high"]) == (None, None)
    assert two["difference_low"] < two["difference"] < two["difference_high"]  # type: ignore[operator]
    for pairs in (3, 30):
        alike = [0.5] * pairs
        [task] = cheesebench.verdict(alike, alike).tasks
        assert "At least 6 pairs must differ" in task.reason
        assert task.detectable is None
    against = cheesebench.verdict([0.5] * 12 + [1] * 8, value=0.6)
    [row] = against.rows()
    for end in ("low", "high"):  # a value has no uncertainty of its own
        assert row[f"difference_{end}"] == pytest.approx(float(str(row[end])) - 0.6)
    [inside] = against.tasks
    assert inside.answer == "INCONCLUSIVE"
    sure = [
        task
        for count in range(20, 60)
        for task in cheesebench.verdict([0.9] * count + [0.1] * 12, value=0.5).tasks
        if task.answer == "PASS"
    ]
    for task in sure:
        low, high = task.interval or (0, 1)
        assert ("so the interval may contain the value" in task.reason) == (
            low <= 0.5 <= high
        )
    assert "so the interval may contain the value" in sure[0].reason


def test_logs_of_two_models_in_one_directory_are_refused(tmp_path: Path) -> None:
    for model in ("one", "two"):
        inspect(tmp_path / f"{model}.eval", {"1": 1.0, "2": 0.0}, model)
    with pytest.raises(
        cheesebench.OptionError, match=r"scores of 2 models .*\(one, two"
    ):
        cheesebench.verdict(tmp_path, value=0.4)


def test_an_imagined_pair_is_named_with_the_p_value_without_it() -> None:
    first = [0.9, 0.95, 1, 0.9, 0.85, 0.95, 0.9, 0.95]
    second = [0.5, 0.55, 0.6, 0.5, 0.4, 0.55, 0.5, 0.6]
    said = str(cheesebench.verdict(first, second))
    assert "p = 0.148, 8 pairs. One more pair is imagined" in said
    assert "without it (only_seen=True), p = 0.00781, 95 % +37.8 to +42.2." in said
    assert "imagined" not in str(cheesebench.verdict([1.0] * 8, [0.0] * 8))


def test_the_pairs_alone_decide_if_asked() -> None:
    """The p value and the interval without the imagined pair are columns, and decide
    with ``only_seen``; the reason has the p value of the other rule.
    """
    first = [0.9, 0.95, 1, 0.9, 0.85, 0.95, 0.9, 0.95]
    second = [0.5, 0.55, 0.6, 0.5, 0.4, 0.55, 0.5, 0.6]
    [whole] = cheesebench.verdict(first, second).rows()
    [seen] = cheesebench.verdict(first, second, only_seen=True).rows()
    [with_pair], [without] = (
        cheesebench.verdict(first, second, only_seen=one).told for one in (False, True)
    )
    assert with_pair.startswith(
        "Scores between the ends (a mean of pass/fail trials is one): p_value"
    )
    assert with_pair.endswith(
        " 1 undecided comparison has p_seen below 0.05: where such a loss cannot happen, only_seen=True leaves the pair out."
    )
    assert without.startswith("Only the observed pairs count (only_seen=True), so p_")
    alike = cheesebench.verdict(first, [one - 0.01 for one in first[::-1]]).told
    assert "p_seen and seen_low to seen_high do not." in alike[0]
    assert "undecided comparison" not in alike[0]
    assert (whole["verdict"], seen["verdict"]) == ("undecided", "better")
    assert whole["p_seen"] == seen["p_seen"] == seen["p_holm"] == 2 * 0.5**8
    ends = [seen[f"difference_{end}"] for end in ("low", "high")]
    assert ends == [whole[f"seen_{end}"] for end in ("low", "high")]
    assert "p would be 0.148" in str(seen["reason"])
    right = [1.0] * 8, [0.0] * 8
    [exact] = cheesebench.verdict(*right).rows()
    assert not cheesebench.verdict(*right).told, "no pair is imagined"
    assert exact["p_seen"] is exact["seen_low"] is None
    assert cheesebench.verdict(*right, only_seen=True).rows() == [exact]
    with pytest.raises(cheesebench.OptionError, match="only_seen=True is about two"):
        cheesebench.verdict(first, value=0.5, only_seen=True)


def test_both_p_values_of_a_comparison_are_its_own() -> None:
    """``p_value`` and ``p_seen`` are before Holm's correction, ``p_holm`` after it."""
    pandas = pytest.importorskip("pandas")
    scores = {"x": 0.9, "y": 0.5, "z": 0.45}
    frame = pandas.DataFrame(
        {"model": model, "item": item, "score": score + 0.01 * (item * len(model) % 3)}
        for model, score in scores.items()
        for item in range(10)
    )
    for only_seen in (False, True):
        for one in cheesebench.verdict(frame, only_seen=only_seen).tasks:
            pair = (one.model, one.other_model)
            [alone] = cheesebench.verdict(frame, models=pair, only_seen=only_seen).tasks
            assert (one.p_value, one.seen_p) == (alone.p_value, alone.seen_p)
            if only_seen:
                assert one.seen_p == one.p_value
                assert one.p_holm == min(1.0, 3 * (one.p_value or 0.0))


def test_every_two_models_of_a_frame_are_compared() -> None:
    pandas = pytest.importorskip("pandas")
    rates = {"A": [1.0] * 12, "B": [0.0] * 7 + [1.0] * 5, "C": [0.0] * 12}
    frame = pandas.concat(
        pandas.DataFrame({"item": range(12), "model": name, "score": own})
        for name, own in rates.items()
    )
    rows: list[dict[str, Any]] = cheesebench.verdict(frame).rows()
    assert [(row["model"], row["other_model"]) for row in rows] == [
        *combinations("ABC", 2)
    ]
    assert [row["verdict"] for row in rows] == ["better", "better", "undecided"]
    for row in rows:
        alone = cheesebench.verdict(frame, models=(row["model"], row["other_model"]))
        assert row["p_value"] == alone.tasks[0].p_value
        assert "(3 comparisons, Holm)" in row["reason"]
    assert rows[0]["task"] == "all items (A against B)"
    two = frame[frame["model"] != "C"]
    assert cheesebench.verdict(two) == cheesebench.verdict(two, models=("A", "B"))


def test_frames_of_another_shape_are_refused_with_a_remedy() -> None:
    pandas = pytest.importorskip("pandas")
    wide = pandas.DataFrame({"item": range(8), "new": [1.0] * 8, "old": [0.0] * 8})
    said = "verdict(frame.set_index(['item'])['new'], frame.set_index(['item'])['old'])"
    pivot = wide.assign(older=0.0).set_index("item")
    refused: list[tuple[str, Any]] = [
        (said, wide),
        ("verdict(frame['new'], frame['old'])", pivot),
        ("verdict(frame.reset_index().melt(['item'], var_name='model'", pivot),
        (
            "verdict(frame.reset_index().set_index(['item', 'task'])['new'], ",
            pivot.assign(task="a"),
        ),
        ("verdict(frame['new'], frame['old'])", wide.drop(columns="item")),
        ("frame.melt(['item'], var_name='model'", wide.assign(older=0.0)),
        ("pandas.DataFrame(LIST)", [{"item": 1, "score": 1}]),
        ("the score inf is not finite", [math.inf, 1.0]),
        ("the score [1, 0] is no single number. Give one for each", [[1, 0]] * 2),
    ]
    for remedy, given in refused:
        with pytest.raises(cheesebench.OptionError, match=re.escape(remedy)):
            cheesebench.verdict(given, value=0.5)
    by_item = wide.set_index(["item"])
    [found] = cheesebench.verdict(by_item["new"], by_item["old"]).tasks
    assert (found.answer, found.subjects) == ("better", 8)


def test_a_rate_that_differs_between_rows_is_told() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"model": [*"abc"] * 8, "item": sorted([*range(8)] * 3)})
    frame["score"] = [number % 5 / 4 for number in range(24)]
    note = "The rate of a, b differs between rows: each row has only the items for"
    whole = cheesebench.verdict(frame)
    assert not any("differs between rows" in one for one in whole.told)
    frame.loc[frame.index[2], "score"] = math.nan  # of c
    found = cheesebench.verdict(frame)
    assert any(one.startswith(note) for one in found.told)
    columns = [*found.rows()[0]]
    assert columns[:6] == [
        *("task", "model", "other_model", "protocol", "verdict", "reason"),
    ]


def test_a_row_with_missing_scores_does_not_contradict_itself() -> None:
    first = [1.0] * 30 + [0.0] * 10 + [math.nan] * 20
    second = [1.0, 0.0] * 15 + [0.0] * 10 + [1.0] * 20
    [row] = cheesebench.verdict(first, second).rows()
    assert row["verdict"] == "undecided"
    assert row["p_value"] == row["p_holm"]
    assert row["p_value"] > 0.05  # type: ignore[operator]
    assert row["difference_low"] < 0 < row["difference_high"]  # type: ignore[operator]


def test_a_key_of_another_name_in_another_order_is_told() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": range(30), "score": np.linspace(0, 1, 30)})
    turned = frame[::-1].reset_index(drop=True)
    [note] = cheesebench.verdict(frame, turned).notes
    assert "paired by position, but 'id' has the same values" in note
    assert cheesebench.verdict(frame, frame).notes == ()
    other = frame.rename(columns={"id": "question"})
    [note] = cheesebench.verdict(frame, other).notes
    assert note.startswith("Rows are paired by position, because")
    named = [one.rename(columns={"id": "item"}) for one in (frame, turned)]
    assert cheesebench.verdict(*named).notes == ()


def test_remedies_for_models_and_columns_of_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    wide = pandas.DataFrame({"A": [0.5] * 9, "B": [0.4] * 9})
    one = pandas.DataFrame({"passage": [*"aabbccdde"], "score": [0.5] * 9})
    for said, given, more in (
        ("verdict(frame['A'], frame['B'])", wide, {"models": ("A", "B")}),
        ("column 'model'. Add the column.", one, {"models": ("A", "B")}),
        ("column 'model'. Remove them.", [0.5] * 9, {"models": ("A", "B")}),
        (
            "(only passage, score). Give 'passage'.",
            one,
            {"cluster": "pasage", "value": 0.4},
        ),
        ("(only passage, score). Give 'score'.", one, {"score": "scor", "value": 0.4}),
    ):
        with pytest.raises(cheesebench.OptionError, match=re.escape(said)):
            cheesebench.verdict(given, **more)


def test_an_answer_beside_an_interval_with_0_says_why_and_has_the_columns_names() -> (
    None
):
    random = np.random.default_rng(5)
    for _ in range(200):
        first = random.choice([0.0, 1.0], 30, p=[0.3, 0.7])
        found = cheesebench.verdict([*first], [*random.choice([0.0, 1.0], 30)])
        [task], [row] = found.tasks, found.rows()
        low, high = task.interval or (0.0, 0.0)
        told = "The interval has its own rule" in task.reason
        assert told == (task.answer != "undecided" and low <= 0 <= high)
        named = (row["verdict"], row["reference"], row["p_holm"])
        assert named == (task.verdict, task.reference, task.p_holm)


@pytest.mark.parametrize(
    ("row", "column", "value", "said"),
    [
        ("r5", "score", "oops", "^c: row r5: the score 'oops' is not a number"),
        ("r7", "score", 1.2, "^b: row r7: the score 1.2 is not between"),
        ("r9", "item", None, "^a: row r9 has no item"),
        ("r9", "model", None, "^the data frame: row r9 has no model"),
    ],
)
def test_a_row_has_its_label_in_the_whole_frame(
    row: str, column: str, value: object, said: str
) -> None:
    frame = three_models().astype(object)
    frame.loc[row, column] = value
    with pytest.raises(cheesebench.OptionError, match=said):
        cheesebench.verdict(frame)


def test_models_may_be_in_the_index() -> None:
    frame = three_models()
    whole = cheesebench.verdict(frame).rows()
    indexed = frame.set_index(["model", "item"])
    assert cheesebench.verdict(indexed).rows() == whole
    assert cheesebench.verdict(indexed["score"]).rows() == whole
    assert len(cheesebench.verdict(frame.set_index("model")).tasks) == 3


def test_the_missing_value_of_pandas_is_a_missing_score() -> None:
    pandas = pytest.importorskip("pandas")
    kept = cheesebench.verdict([1, 0, None, 1], value=0.5).rows()
    array = pandas.array([1, 0, None, 1], dtype="boolean")
    for given in ([1, 0, pandas.NA, 1], array):
        assert cheesebench.verdict(given, value=0.5).rows() == kept


def three_models() -> Any:
    """Three models and eight items, in alternating rows."""
    pandas = pytest.importorskip("pandas")
    items = [item for item in range(8) for _ in "abc"]
    columns = {"model": [*"abc"] * 8, "item": items, "score": [1, 0, 0] * 8}
    return pandas.DataFrame(columns, index=[f"r{row}" for row in range(24)])
