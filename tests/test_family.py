"""What is assumed of a study, a design and a family, unless it says otherwise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.family import (
    Asker,
    CellRequest,
    Design,
    Family,
    LanguageModel,
    Plugins,
    Study,
    WatchedTrial,
    Words,
)
from cheesebench.interfaces import Scene
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import CellPlan


@pytest.mark.parametrize(
    ("axes", "variants"),
    [
        ({}, [{}]),
        ({"history": (0, 1)}, [{"history": 0}, {"history": 1}]),
        (
            {"history": (0, 1), "actions": ("a", "b", "c")},
            [
                {"history": 0, "actions": "a"},
                {"history": 0, "actions": "b"},
                {"history": 0, "actions": "c"},
                {"history": 1, "actions": "a"},
                {"history": 1, "actions": "b"},
                {"history": 1, "actions": "c"},
            ],
        ),
        ({"history": ()}, []),
    ],
)
def test_a_study_has_every_combination_of_levels(
    axes: dict[str, tuple[Any, ...]], variants: list[dict[str, Any]]
) -> None:
    assert list(Study("s", "A study", axes=axes).variants()) == variants


def test_a_study_is_named_by_its_trials() -> None:
    assert Study("s", "A study").design == "flat-15"
    assert Study("s", "A study", trials=3).design == "flat-3"


def test_what_is_assumed_of_a_design_and_a_request() -> None:
    design = Design(name="few", subjects=2)
    assert (design.trials, design.views) == (None, ("ascii_2d",))
    assert (design.claims, design.sequential, dict(design.settings)) == (
        True,
        False,
        {},
    )
    # Settings do not make two designs different keys.
    assert hash(design) == hash(Design(name="few", subjects=2, settings={"a": [1]}))
    request = CellRequest(model="m", plugins=cast(Plugins, None), design=design)
    assert (request.language, request.views, request.controls) == (None, (), ())
    assert (request.study, request.subjects, request.against) == (None, None, None)
    assert request.temperatures == ()
    nothing = cast(Any, None)
    model = LanguageModel(entry=nothing, backend=nothing, agent=nothing, settings={})
    assert (model.base_url, dict(model.options)) == (None, {})
    watched = WatchedTrial(record=nothing, frames=())
    assert (tuple(watched.calls), watched.note, watched.differs) == ((), "", False)


def test_words_draw_nothing() -> None:
    scene = cast(Scene, None)
    view = Words()
    assert (view.render(scene, 1, 1, 0), view.max_length(scene)) == ("", 0)
    assert PluginManager().view("words").name == "words"


def test_a_family_lists_names_and_titles() -> None:
    class Bare(Family[Any, Any]):
        name = "bare"

    Bare.__abstractmethods__ = frozenset()
    bare = Bare()  # type: ignore[abstract]
    specification = SimpleNamespace(name="mine", title="My own")
    listing = bare.listing(specification)
    assert listing.row == {"bare": "mine", "title": "My own"}
    assert (listing.values, listing.by_folder) == ({}, False)


def test_a_source_of_replies_need_not_know_actions() -> None:
    class Silent(Asker):
        plan = cast(CellPlan, None)

        async def ask(self, trial: int, request: Any) -> Any:
            raise NotImplementedError

    assert Silent().read_as([1], dict) is None  # type: ignore[func-returns-value]
