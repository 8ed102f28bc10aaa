"""The family of arenas: how its files are read and listed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import UnsuitableError
from cheesebench.family import CellRequest, Design, Study
from cheesebench.paradigms.arena.family import ArenaFamily, _must_show_cues
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification
from cheesebench.published import published
from tests.arenas import TWO_ARMS, examine, examine_text

TEXT = f"""version: 1
paradigm: side
dimension: choice
{TWO_ARMS}
start: {{at: box, face: N}}
trial: {{limit: 9, start: run, states: {{run: {{rules: [{{enter: left, end: found}}]}}}}}}
schedule: {{main: {{trials: 2}}}}
success: last == found
"""


def loaded(more: str, folder: Path | None = None) -> Specification:
    if folder is None:
        found, diagnostics = examine_text(TEXT + more)
    else:
        path = folder / "side.protocol.yaml"
        path.write_text(TEXT + more, encoding="utf-8")
        found, diagnostics = examine(path)
    assert found is not None, diagnostics
    return found


def test_animals_and_tables_come_from_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "animals.csv").write_text(
        "animal,session,trials,passed\nm1,1,2,1\nm2,1,2,2\n", encoding="utf-8"
    )
    (tmp_path / "sides.csv").write_text("side\nleft\nright\n", encoding="utf-8")
    found = loaded(
        "reference: [{measure: success, animals: animals.csv, status: counted}]\n"
        "draw: {side: {of: sides.csv}}\n",
        tmp_path,
    )
    assert found.reference is not None
    assert (found.reference.value, found.reference.n_animals) == (0.75, 2)
    assert found.draws[0].rows == (("left",), ("right",))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("draw: {side: {of: nowhere.csv}}\nsuccess2: side == left\n", "nowhere.csv"),
        ("reference: [{measure: success, animals: nowhere.csv, status: counted}]\n", "nowhere.csv"),
    ],
)  # fmt: skip
def test_a_table_that_is_not_there_is_an_error(
    tmp_path: Path, more: str, said: str
) -> None:
    path = tmp_path / "side.protocol.yaml"
    path.write_text(TEXT + more, encoding="utf-8")
    found, diagnostics = examine(path)
    assert found is None
    assert any(said in str(one) for one in diagnostics)


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("version: 1\nparadigm: p\nbandit: {}\n", True),
        ("version: 1\nparadigm: p\narenas: {}\n", False),
        ("version: 2\nparadigm: p\nbandit: {}\n", False),
        ("version: 1\nparadigm: p\narena: {}\nbandit: {}\n", False),
        ("version: 1\nparadigm: p\n", False),
    ],
)
def test_a_file_of_another_family_is_told_from_a_faulty_one(
    text: str, strange: bool
) -> None:
    found, diagnostics = examine_text(text)
    assert found is None
    said = "There is no key 'bandit', and no arena."
    assert (said in str(diagnostics[0])) == strange
    assert (len(diagnostics) == 1) >= strange


def test_a_protocol_has_a_row() -> None:
    family = ArenaFamily()
    bare = family.listing(loaded(""))
    assert bare.row["trials x limit"] == "2 x 9"
    assert bare.row["validity"] == "not validated"
    assert bare.values["reference"] is None
    assert bare.values["ability"] is None
    assert bare.values["random"] is None
    more = (
        "reference: [{measure: success, value: 0.9, status: made up}]\n"
        "chance: {value: 0.25, trials: 2000, how: counted}\n"
        "construct: {name: sides, kind: memory, abolished_by: [{lesion: memoryless, at_most: 0.5}]}\n"
    )
    told = family.listing(loaded(more))
    assert told.values["reference"] == 0.9
    assert told.values["random"] == 0.25
    assert told.values["construct"] == "sides"
    assert told.values["validity"] == "declared"


VIEWS = ("ascii_2d", "ascii_3d")
NAMED = "construct: {name: sides, kind: memory, abolished_by: [{lesion: memoryless, at_most: 0.5}]}\n"


def request(model: str = "random", **changes: Any) -> CellRequest:
    return CellRequest(
        model=model,
        plugins=installed_plugins(),
        design=Design(name="few", subjects=2),
        views=VIEWS,
        **changes,
    )


def test_each_view_and_each_variant_of_a_study_is_a_cell() -> None:
    family, side = ArenaFamily(), loaded(NAMED)
    plain = list(family.cells(side, request()))
    assert [cell.view for cell in plain] == list(VIEWS)
    assert [cell.protocol for cell in plain] == ["side"] * 2
    study = Study("s", "A study", axes={"history": (0, 5, 9)})
    varied = list(family.cells(side, request(study=study)))
    assert [cell.view for cell in varied] == [view for view in VIEWS for _ in range(3)]
    assert len({cell.key for cell in varied}) == 6
    controlled = list(family.cells(side, request(controls=("anhedonia",))))
    assert len(controlled) == 4
    assert [str(cell.variant) != "" for cell in controlled] == [False, True] * 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"temperatures": (0.0, 0.5)}, "'side' is an arena. Give one temperature."),
        ({"against": min(published()["models"])}, "has other rules than the published"),
        ({"model": "RESPONDENT"}, "answers questions, but 'side' is an arena"),
    ],
)
def test_what_arenas_do_not_have_is_refused(changes: dict[str, Any], said: str) -> None:
    if "model" in changes:
        changes = {"model": min(installed_plugins().respondents)}
    with pytest.raises(UnsuitableError) as caught:
        ArenaFamily().cells(loaded(""), request(**changes))
    assert said in str(caught.value)
    assert list(ArenaFamily().cells(loaded(""), request(temperatures=(0.5,))))


def test_cues_must_be_seen_where_a_verdict_is_about_a_construct() -> None:
    bare, named = loaded(""), loaded(NAMED)
    above, first_person = ArenaFamily().cells(named, request())
    assert not _must_show_cues(named, above)
    assert _must_show_cues(named, first_person)
    assert not _must_show_cues(named, replace(first_person, claims=False))
    assert not _must_show_cues(bare, first_person)
