"""What is assumed of a protocol and its paradigm, unless a family says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.errors import UnsuitableError
from cheesebench.executor import ExecutorContext, ExecutorSpec, Report
from cheesebench.interfaces import (
    ACTION_OF_LETTER,
    ACTIONS,
    DEFAULT_EDITION,
    RUNNING,
    STAY,
    TERMINATED,
    TRUNCATED,
    AuditSettings,
    BaseSpecification,
    Ground,
    Paradigm,
    Pose,
    Scene,
    Still,
    Tile,
)
from cheesebench.lesions import INTACT

NOTHING = cast(Any, None)


def specification(**changes: Any) -> BaseSpecification:
    given: dict[str, Any] = {
        "paradigm": "water_maze",
        "edition": "standard",
        "family": "levers",
        "path": "x.yaml",
        "text": "{}",
        "sha256": "0",
        "ancestors": (),
        "document": SimpleNamespace(title=None),
    }
    return BaseSpecification(**(given | changes))


def test_a_specification_needs_no_title_and_no_claims() -> None:
    plain = specification()
    assert (plain.title, plain.most_calls, plain.construct) == ("Water maze", 1, None)
    assert (dict(plain.judged_sessions), plain.obstacle(INTACT)) == ({}, "")
    titled = specification(document=SimpleNamespace(title="The pool"))
    assert titled.title == "The pool"
    assert specification(document=SimpleNamespace()).title == "Water maze"


def test_only_other_editions_are_named() -> None:
    assert specification(edition=DEFAULT_EDITION).name == "water_maze"
    assert specification(edition="paper").name == "water_maze@paper"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda one: one.environment(NOTHING, 0, 0), "are not run step by step; run them with `pytest --model NAME"),
        (lambda one: one.still(NOTHING, 0, 0), "cannot be drawn"),
        (lambda one: one.with_cues("cue-off", 0), "have no control 'cue-off'"),
        (lambda one: one.lesioned(NOTHING, INTACT), "have no picture that 'intact' could hide"),
        (lambda one: one.yoked_environment(NOTHING, 0, 0, []), "cannot be yoked"),
        (lambda one: one.audit([], AuditSettings()), "have no audit"),
    ],
)  # fmt: skip
def test_what_a_paradigm_lacks_is_said(
    call: Callable[[Paradigm], object], said: str
) -> None:
    paradigm = Paradigm()
    paradigm.specification = specification(edition="paper")
    with pytest.raises(UnsuitableError) as found:
        call(paradigm)
    start = "'water_maze@paper': protocols of the family 'levers' "
    assert str(found.value).startswith(f"{start}{said}")


def test_a_paradigm_with_environments_is_stepwise() -> None:
    class Stepwise(Paradigm):
        def environment(self, view: Any, seed: int, subject: int) -> Any: ...

    bare = Paradigm()
    assert (bare.is_stepwise, bare.ground(), tuple(bare.own_tests(NOTHING))) == (
        False,
        None,
        (),
    )
    assert Stepwise().is_stepwise


def ground(art: str, left: int = 0, top: int = 0) -> Ground:
    kinds = {"#": "wall", "D": "door"}
    tiles = tuple(
        tuple(Tile(cast(Any, kinds.get(glyph, "floor")), glyph) for glyph in row)
        for row in art.split()
    )
    return Ground(scene(tiles), left, top)


def scene(tiles: tuple[tuple[Tile, ...], ...]) -> Scene:
    return cast(Scene, SimpleNamespace(tiles=tiles))


def test_holes_are_floor_that_looks_unlike_most_of_it() -> None:
    art = "#####\n#..o#\n#.D.#\n#####"
    assert ground(art).holes == {(3, 1)}
    assert ground(art, 10, 20).holes == {(13, 21)}
    assert ground("####\n####").holes == frozenset()
    assert ground("..\n..").holes == frozenset()


def test_squares_of_one_kind_that_look_different_have_a_sign() -> None:
    assert ground("#####\n#..o#\n#...#\n#####").signs == {}, "a ring suffices"
    assert ground("######\n#=..u#\n#....#\n######").signs == {(1, 1): "=", (4, 1): "u"}
    walls = tuple(tuple(Tile("wall", glyph) for glyph in row) for row in ("##", "#|"))
    assert Ground(scene(walls), 10, 20).signs == {(11, 21): "|"}


def test_numbers_that_others_rely_on() -> None:
    assert [ACTION_OF_LETTER[letter] for letter in "FLRS."] == [0, 1, 2, 3, STAY]
    assert len(ACTIONS) == 4
    assert (RUNNING, TERMINATED, TRUNCATED) == (0, 1, 2)
    assert Pose(1, 2, 90, "run").turn == 0
    still = Still("run", NOTHING, 1, 1, 0)
    assert (still.left, still.top) == (0, 0)
    usual = AuditSettings()
    assert (usual.trials, usual.seed, usual.processes) == (2000, 0, 1)
    assert (usual.parts, usual.effort, usual.kept) == (None, 1.0, "")


def test_an_executor_runs_elsewhere_only_if_it_says_so() -> None:
    spec = ExecutorSpec("mine", NOTHING)
    assert (spec.in_process, spec.elsewhere, dict(spec.options)) == (False, False, {})
    context = ExecutorContext(plugins=NOTHING, directory=NOTHING, processes=2)
    assert (context.processes_given, dict(context.options)) == (False, {})
    report = Report()
    assert (report.ended, report.missing, report.cause, report.trials) == (
        False,
        "",
        "",
        (),
    )
