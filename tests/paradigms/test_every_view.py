"""In every view, goals are not named, lesions leave no more than in the audit, and
protocols with hidden cues are refused.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

import cheesebench
from cheesebench import Scene
from cheesebench.errors import UnsuitableError
from cheesebench.family import CellRequest, Design
from cheesebench.interfaces import RUNNING, STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.beliefs import Everything
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.records import CellPlan
from tests.reasoner_eyes import NINE
from website.lesions import CLASSICS

PLUGINS = PluginManager()
CATALOGUE = Catalogue(PLUGINS.protocol_directories)
FILES = [*CATALOGUE.files.values(), *sorted(CLASSICS.glob("*.protocol.yaml"))]
STEPS, TRIALS = 40, 2


@cache
def paradigm(path: Path) -> ArenaParadigm:
    return ArenaParadigm(with_arena(CATALOGUE.load(path)))


def wander(life: ArenaSubject, seed: str, trials: int = TRIALS) -> Iterator[str]:
    """Yield the observations of a subject that mostly goes forward."""
    chance = random.Random(seed)
    for _ in range(trials):
        observation = life.begin_trial()
        if observation is None:
            return
        yield observation
        for _ in range(STEPS):
            observation, _, status = life.step(
                STAY if life.waiting else chance.choice((0, 0, 0, 1, 2, 3))
            )
            if status != RUNNING:
                break
            yield observation


@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: path.name.removesuffix(".protocol.yaml")
)
def test_no_view_names_what_is_sought(path: Path) -> None:
    """Names of places and of hidden variables' values never occur in an observation,
    except where the subject is held there.
    """
    one = paradigm(path)
    specification, arena = one.specification, one.specification.arena
    names = {
        *arena.zones,
        *arena.solids,
        *arena.groups,
        *(check.hidden for check in specification.document.checks),
    }
    for view in PLUGINS.views.values():
        life = ArenaSubject(one.program, view, 1, 1)
        for observation in wander(life, view.name):
            assert life.waiting or not words(observation) & names, observation


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z_]{3,}", str(text).lower()))


@pytest.mark.parametrize("protocol", NINE)
def test_what_a_lesion_leaves_in_a_view_is_no_more_than_the_audit_left(
    protocol: str,
) -> None:
    """Ceilings hold in every view: its pictures follow from the adversary's input under
    the same lesion.
    """
    one = paradigm(CATALOGUE.files[protocol])
    construct = one.specification.construct
    assert construct is not None
    for lesion in (Lesion(), *(own for own, _ in construct.abolished_by)):
        given = one.lesioned(Everything(str(lesion)), lesion)
        for view in PLUGINS.views.values():
            known: dict[tuple[str, str], str] = {}
            lives = [
                ArenaSubject(one.program, own, 1, 0)
                for own in (given, one.lesioned(view, lesion))
            ]
            for told, seen in zip(
                *(wander(life, view.name) for life in lives), strict=True
            ):
                assert known.setdefault((lives[0].state, told), seen) == seen


class Blank:
    """Shows the heading, and the text of the state."""

    name, characters = "blank", "NESW"

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return " ".join([cheesebench.HEADINGS[heading], *scene.text])

    def max_length(self, scene: Scene) -> int:
        return 2 + sum(len(line) + 1 for line in scene.text)


def cells(design: Design) -> list[CellPlan]:
    plugins = PluginManager()
    plugins.register(SimpleNamespace(cheesebench_views=lambda: [Blank()]), name="blank")
    specification = CATALOGUE.find("t_maze")
    request = CellRequest(
        model="random", plugins=plugins, views=("blank",), design=design
    )
    return list(plugins.family(specification).cells(specification, request))


def test_a_view_in_which_a_cue_cannot_be_seen_has_no_verdict() -> None:
    with pytest.raises(UnsuitableError) as refused:
        cells(Design(name="cohort", subjects=2))
    said = str(refused.value)
    assert said.startswith(
        "'t_maze' cannot be judged in the view 'blank', which does not show: "
    )
    assert said.endswith(
        "Choose another view, or --design smoke, which makes no claim."
    )
    assert [
        cell.claims for cell in cells(Design(name="smoke", subjects=2, claims=False))
    ] == [False]
