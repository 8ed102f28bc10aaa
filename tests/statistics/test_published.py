"""Published numbers: unchanged, and beside the right cells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.experiment.cells import find_study, shipped_studies
from cheesebench.published import (
    published,
    published_ablation,
    published_elsewhere,
    published_rows,
)
from cheesebench.records import CellPlan

MakePlan = Callable[..., CellPlan]
NINE = list(published()["baselines"]["rodent"]["rates"])
PAPERS = [f"{name}@paper" for name in NINE]
SOURCE = Path(__file__).parents[3] / "shared" / "data" / "published_cheesebench.json"


def test_a_run_in_several_views_is_shown_the_published_headline(plan: MakePlan) -> None:
    plans = [
        plan(protocol=name, view=view)
        for name in PAPERS
        for view in ("ascii_2d", "ascii_3d")
    ]
    rows = {row.model: row for row in published_rows(plans)}
    for name, model in published()["models"].items():
        assert rows[name].overall == pytest.approx(model["overall"], abs=2e-4), name
        assert "best of three text views" in rows[name].how
        assert rows[name].where.startswith("best of 3 views; ")
    assert list(rows)[-1].startswith("rodent")
    overall = [row.overall or 0 for row in rows.values()][: len(published()["models"])]
    assert overall == sorted(overall, reverse=True)


def test_the_models_of_the_run_come_first(plan: MakePlan) -> None:
    rows = published_rows(
        [plan(model="Qwen2.5-VL-3B", protocol=PAPERS[0], view="ascii_2d")]
    )
    assert rows[0].model == "qwen2.5-vl-3b"
    assert set(rows[0].rates) == {PAPERS[0]}
    assert rows[0].overall is None, "one protocol is no mean over nine"
    assert rows[0].how.endswith("ascii_2d")
    assert rows[0].where == "ascii_2d; 12 to 100 trials each, as in Table 1"


def test_other_protocols_have_nothing_published(plan: MakePlan) -> None:
    assert published_rows([plan(protocol="hall")]) == ()
    assert not published_elsewhere([plan(protocol="hall")])


@pytest.mark.parametrize("name", [NINE[0], f"{NINE[0]}@rodent"])
def test_other_rules_have_nothing_published_but_are_told_where_it_is(
    plan: MakePlan, name: str
) -> None:
    assert published_rows([plan(protocol=name)]) == ()
    assert published_elsewhere([plan(protocol=name)])
    assert not published_elsewhere([plan(protocol=name), plan(protocol=PAPERS[0])])


def test_every_row_has_the_trials_that_are_its_own(plan: MakePlan) -> None:
    trials = {
        row.model: row.trials for row in published_rows([plan(protocol=PAPERS[0])])
    }
    assert trials["gpt-4.1"] == "81: 3 of each in a view, at most 200 steps"
    assert trials["claude-opus-4.7"] == "270: 10 of each in a view, at most 200 steps"
    assert trials["qwen2.5-vl-7b"] == "1014: 12 to 100 of each in a view, as in Table 1"


@pytest.mark.parametrize(
    ("views", "mean"), [(("ascii_2d",), 0.321), (("ascii_2d", "ascii_3d"), 0.38)]
)
def test_random_is_the_one_of_the_same_views(
    plan: MakePlan, views: tuple[str, ...], mean: float
) -> None:
    rows = published_rows(
        [plan(protocol=name, view=view) for name in PAPERS for view in views]
    )
    (found,) = [row for row in rows if row.model.startswith("random")]
    assert found.overall == mean
    assert sum(found.rates.values()) / 9 == pytest.approx(mean, abs=6e-4)


def test_baselines_and_ablations_are_those_of_the_paper(plan: MakePlan) -> None:
    rows = {
        row.model.partition(":")[0]: row.overall
        for row in published_rows([plan(protocol=one) for one in PAPERS])
    }
    assert (rows["tabular-ql"], rows["bfs"], rows["rodent"]) == (0.312, 0.268, 0.789)
    nine = [plan(protocol=one) for one in PAPERS]
    ablations = {study: published_ablation(study, nine) for study in shipped_studies()}
    assert sum(map(len, ablations.values())) == 16
    for study, rates in ablations.items():
        if rates:
            levels = [
                level
                for axis in find_study(study, Path()).axes.values()
                for level in axis
            ]
            assert list(rates) == list(map(str, levels)) or study == "ablation-vision"
            assert not published_ablation(
                study, [plan(protocol=one) for one in NINE]
            ), "other rules"
            assert not published_ablation(study, nine[1:]), "no mean over nine"
            assert not published_ablation(
                study, [plan(protocol=one, view="ascii_3d") for one in PAPERS]
            )
    assert set(ablations["ablation-vision"]) == set(
        find_study("ablation-vision", Path()).models
    )


@pytest.mark.skipif(not SOURCE.exists(), reason="the transcription is not here")
def test_the_numbers_are_those_of_the_transcription() -> None:
    source = json.loads(SOURCE.read_text(encoding="utf-8"))
    theirs = {
        (_plain(entry["model"]), view.lower(), _plain(task)): rate
        for entry in source["entries"]
        if entry["modality"] in ("text (ASCII)", "vision")
        for task, rates in entry["success_rate"].items()
        for view, rate in rates.items()
        if rate is not None
    }
    ours = {
        (_plain(model["title"]), view, _plain(protocol)): rate
        for model in published()["models"].values()
        for view, rates in model["views"].items()
        for protocol, rate in rates.items()
    }
    assert ours == theirs
    for name, key in BASELINES.items():
        rates = source["baselines"][key]["success_rate_percent"]
        assert {_plain(task): rate for task, rate in rates.items()} == {
            _plain(protocol): pytest.approx(100 * rate)
            for protocol, rate in published()["baselines"][name]["rates"].items()
        }
    for axis in ("history", "prompt", "actions"):
        assert source["ablations"][axis] == {
            level: pytest.approx(100 * rate)
            for level, rate in published()["ablations"][axis].items()
        }
    assert list(source["ablations"]["vision"].values()) == pytest.approx(
        [100 * rate for rate in published()["ablations"]["vision"].values()]
    )


#: Names of the baselines in the transcription.
BASELINES = {
    "random in one view": "random_v1_ASCII_2D",
    "random": "random_v2_best_of_3",
    "tabular-ql": "tabular_ql",
    "bfs": "bfs_oracle",
    "rodent": "rodent",
}


def _plain(name: str) -> str:
    """Return a name in a common spelling: ``Morris
    Water-Maze`` is ``morriswatermaze``.
    """
    return re.sub(r"[^a-z0-9.]|task$", "", name.lower())
