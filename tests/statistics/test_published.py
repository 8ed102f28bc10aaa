"""Published numbers: as they were published, and beside what they belong to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.experiment.records import CellPlan
from cheesebench.statistics.published import published, published_rows

MakePlan = Callable[..., CellPlan]
NINE = list(published()["baselines"]["rodent"]["rates"])
SOURCE = Path(__file__).parents[3] / "shared" / "data" / "published_cheesebench.json"


def test_a_run_in_several_views_is_shown_the_published_headline(plan: MakePlan) -> None:
    plans = [plan(protocol=name, view=view) for name in NINE for view in ("ascii_2d", "ascii_3d")]
    rows = {row.model: row for row in published_rows(plans)}
    for name, model in published()["models"].items():
        assert rows[name].overall == pytest.approx(model["overall"], abs=2e-4), name
        assert "not the same environments" in rows[name].how
    assert list(rows)[-1].startswith("rodent")
    overall = [row.overall or 0 for row in rows.values()][:-3]
    assert overall == sorted(overall, reverse=True)


def test_the_models_of_the_run_come_first(plan: MakePlan) -> None:
    rows = published_rows([plan(model="Qwen2.5-VL-3B", protocol=NINE[0], view="ascii_2d")])
    assert rows[0].model == "qwen2.5-vl-3b"
    assert set(rows[0].rates) == {NINE[0]}
    assert rows[0].overall is None, "one protocol is no mean over nine"
    assert "ascii_2d," in rows[0].how


def test_other_protocols_have_nothing_published(plan: MakePlan) -> None:
    assert published_rows([plan(protocol="hall")]) == ()
    assert published_rows([plan(protocol=f"{NINE[0]}@rodent")]) == ()


@pytest.mark.skipif(not SOURCE.exists(), reason="the transcription is not here")
def test_the_numbers_are_those_of_the_transcription() -> None:
    entries = json.loads(SOURCE.read_text(encoding="utf-8"))["entries"]
    ours = [
        rate for model in published()["models"].values() for view in model["views"].values() for rate in view.values()
    ]
    theirs = [
        rate
        for entry in entries
        if entry["modality"] in ("text (ASCII)", "vision")
        for views in entry["success_rate"].values()
        for rate in views.values()
        if rate is not None
    ]
    assert sorted(ours) == sorted(theirs)
