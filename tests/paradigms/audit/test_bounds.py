"""Upper bounds of shipped tasks whose ceilings follow by symmetry; and bounds under
stronger lesions are never higher.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.commands.common import installed_catalogue
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import beliefs
from cheesebench.paradigms.arena.audit.adversary import Adversary, Lived
from cheesebench.paradigms.arena.audit.beliefs import TooManyError
from cheesebench.paradigms.arena.audit.exact import by_walks, from_anywhere, upper_bound
from cheesebench.paradigms.arena.audit.lesions import Ceiling, shared
from cheesebench.paradigms.arena.audit.walks import without_deadlines
from cheesebench.protocol import load_protocol, with_arena
from tests.arenas import TWO_ARMS, examine_text

CATALOGUE = installed_catalogue()
#: Mean over releases of the maximum number of places entered in time, in eighths: 40
#: with 2 and 2 with 3.
FEW_MORE = (40 * 2 + 2 * 3) / 42 / 8


def bound(name: str, lesion: str) -> float | None:
    paradigm = ArenaParadigm(with_arena(CATALOGUE.find(name)))
    return upper_bound(Adversary(paradigm, Lesion.parse(lesion), 1.0))


@pytest.mark.parametrize(
    ("name", "lesion", "ceiling"),
    [
        # Even if told everything from earlier trials, a subject without the landmarks
        # is right in one of four.
        pytest.param("star_maze", "hide=landmarks", 0.25, marks=pytest.mark.slow),
        ("operant_chamber", "blind", 0.5),
        # No trial tells anything about the next, so each is like the first.
        ("operant_chamber", "anhedonia", 0.5),
        ("dnms", "blind", 1 / 56),
    ],
)
def test_a_ceiling_is_proven(name: str, lesion: str, ceiling: float) -> None:
    assert bound(name, lesion) == pytest.approx(ceiling)


@pytest.mark.parametrize("bound_of", [from_anywhere, by_walks])
def test_there_is_no_bound_of_one_trial_where_two_must_succeed(
    bound_of: Callable[[Adversary, float], float],
) -> None:
    paradigm = ArenaParadigm(with_arena(CATALOGUE.find("operant_chamber")))
    with pytest.raises(TooManyError):
        bound_of(Adversary(paradigm, Lesion.parse("blind"), 1.0), 1.0)


@pytest.mark.parametrize(
    ("name", "lesion", "ceiling"),
    [
        # Looking into eight holes, a subject finds the one in eighteen; there are too
        # many beliefs for the exact bound.
        ("barnes_maze", "amnesia=trial", 8 / 18),
        ("dnms", "amnesia=retain", 0.5),
        # Three entries hold three of 15 pairs of arms. A failure ends with a look at
        # the food, but too late.
        ("radial_arm_maze", "amnesia=trial", 0.2),
    ],
)
def test_whoever_may_step_from_anywhere_does_no_better(
    name: str, lesion: str, ceiling: float
) -> None:
    hasty = without_deadlines(with_arena(CATALOGUE.find(name)))
    paradigm, words = ArenaParadigm(hasty), Lesion.parse(lesion)
    adversary = Adversary(paradigm, words, 1.0, faces_alike=True)
    assert from_anywhere(adversary, 1.0) == pytest.approx(ceiling)


@pytest.mark.parametrize(
    ("name", "lesion"),
    [("t_maze", "amnesia=delay"), ("dnms", "blind")],
)
def test_the_easier_problem_is_never_below_the_exact_bound(
    name: str, lesion: str
) -> None:
    hasty = without_deadlines(with_arena(CATALOGUE.find(name)))
    exact, easier = (
        bound(name, lesion),
        from_anywhere(Adversary(ArenaParadigm(hasty), Lesion.parse(lesion), 1.0), 1.0),
    )
    assert exact is not None
    assert easier is not None
    assert easier >= exact - 1e-9


@pytest.mark.parametrize(
    ("name", "lesion", "ceiling"),
    [
        ("morris_water_maze", "hide=landmarks", 10 / 56),
        ("star_maze", "amnesia=trial", 0.25),
        ("dnms", "amnesia=retain", 0.5),
    ],
)
def test_by_the_shortest_way_to_each_event_one_does_no_better(
    name: str, lesion: str, ceiling: float
) -> None:
    adversary = Adversary(
        ArenaParadigm(with_arena(CATALOGUE.find(name))), Lesion.parse(lesion), 1.0
    )
    assert by_walks(adversary, 1.0) == pytest.approx(ceiling)


def test_by_the_shortest_ways_a_longer_budget_is_worth_what_a_search_finds(
    tmp_path: Path,
) -> None:
    """With a budget of nine more steps, some paths reach three of eight places in time:
    see ``test_attacks``.
    """
    text = CATALOGUE.files["morris_water_maze"].read_text(encoding="utf-8")
    reference = text[text.index("reference:\n") : text.index("construct:")]
    path = tmp_path / "morris_water_maze.protocol.yaml"
    path.write_text(
        text.replace("slack: {init: 5", "slack: {init: 9").replace(reference, ""),
        encoding="utf-8",
    )
    adversary = Adversary(
        ArenaParadigm(with_arena(load_protocol(path))),
        Lesion.parse("hide=landmarks"),
        1.0,
    )
    assert by_walks(adversary, 3.0) == pytest.approx(FEW_MORE)


def test_only_clocks_after_which_a_trial_fails_are_stopped() -> None:
    barnes, shuttle = (
        with_arena(CATALOGUE.find(name)) for name in ("barnes_maze", "shuttle_box")
    )
    search = without_deadlines(barnes).states["search"].rules
    assert [
        rule for rule in barnes.states["search"].rules if rule.after is None
    ] == list(search)
    assert len(search) < len(barnes.states["search"].rules)
    assert without_deadlines(shuttle).states["quiet"] == shuttle.states["quiet"]


@pytest.mark.parametrize(
    ("less", "more", "holds"),
    [
        ("blind", "pose-only", True),
        ("blind", "hide=landmarks", True),
        ("pose-only", "hide=landmarks", True),
        ("pose-only", "blind", False),
        ("hide=landmarks", "pose-only", False),
        ("hide=landmarks", "intact", True),
        ("anhedonia", "naive", True),
        ("blind", "anhedonia", False),
        ("blind+anhedonia", "anhedonia", True),
        ("memoryless", "amnesia=trial", True),
        ("amnesia=trial", "memoryless", False),
        ("hide=landmarks+hide=text", "hide=landmarks", True),
        ("hide=landmarks", "hide=landmarks+hide=text", False),
    ],
)
def test_whoever_has_less(less: str, more: str, holds: bool) -> None:
    assert Lesion.parse(less).leaves_no_more_than(Lesion.parse(more)) is holds


def test_a_bound_holds_for_whoever_has_less() -> None:
    lives = ((Lived(0, 1, True, True, 5),),)

    def of(lesion: str, proven: float | None) -> Ceiling:
        return Ceiling(Lesion.parse(lesion), lives, proven)

    found = shared(
        [
            of("blind", None),
            of("pose-only", 0.3),
            of("hide=landmarks", 0.25),
            of("amnesia=trial", None),
        ]
    )
    assert [one.proven for one in found] == [0.25, 0.25, 0.25, None]
    # A bound after amnesia at a state is valid only for subjects that go there as this
    # adversary does.
    assert (
        shared([of("amnesia=go", 0.1), of("blind+amnesia=go", None)])[1].proven is None
    )


def test_no_bound_where_a_draw_hangs_on_what_was_done() -> None:
    """After an error the arm stays where it was, so beliefs without behaviour cannot
    bound this.
    """
    text = f"""
version: 1
paradigm: kept
{TWO_ARMS}
draw:
  goal: {{per: trial, of: {{side: [left, right]}}, keep_if: last == bad}}
start: {{at: box}}
trial:
  limit: 10
  start: run
  states: {{run: {{rules: [{{enter: side, end: good}}, {{enter: arm, end: bad}}]}}}}
schedule: {{one: {{trials: 2}}}}
success: last == good
"""
    specification, _ = examine_text(text)
    assert specification is not None
    for paradigm in (
        ArenaParadigm(specification),
        ArenaParadigm(without_deadlines(specification)),
    ):
        adversary = Adversary(paradigm, Lesion.parse("intact"), 1.0)
        assert upper_bound(adversary) is None


def test_no_number_of_circumstances_is_given_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bound keeps these numbers while the world forgets its nodes; a reused number
    once changed a bound.
    """
    world = beliefs.World(
        ArenaParadigm(with_arena(CATALOGUE.find("dnms"))), Lesion.parse("blind")
    )
    monkeypatch.setattr(beliefs, "MOST_NODES", 0)
    met: list[int] = []
    for _ in range(2):
        numbers = {
            node.circumstances
            for part in world.begin(world.prior()).values()
            for node, _ in part
        }
        assert numbers
        assert not numbers & {*met}
        met += numbers
