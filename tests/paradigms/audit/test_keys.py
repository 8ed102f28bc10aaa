"""Two lives with equal keys are one hypothesis: after any actions they continue alike,
and no bound depends on which is used.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

import pytest

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.lesions import LANDMARKS, Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import Adversary
from cheesebench.paradigms.arena.audit.beliefs import World
from cheesebench.paradigms.arena.audit.exact import upper_bound
from cheesebench.paradigms.arena.audit.hypotheses import Hypothesis
from cheesebench.paradigms.arena.audit.relevance import Relevance
from cheesebench.paradigms.arena.program import NEVER
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena
from website.lesions import CLASSICS

Plant = Callable[..., ArenaParadigm]
_catalogue = Catalogue(installed_plugins().protocol_directories)
FILES = [*_catalogue.files.values(), *sorted(CLASSICS.glob("*.protocol.yaml"))]
#: Numbers of examined beginnings, of groups of equal ones, of lives led together in a
#: group, and of trials.
BEGINNINGS, GROUPS, TOGETHER, TRIALS = 300, 8, 3, 2
#: Number of beginnings from which lives wander alone, number of lives from each, and
#: maximum steps.
WANDERED, WANDERERS, FAR = 40, 12, 40


def beginnings(world: World, life: Hypothesis) -> Iterator[tuple[int, Hypothesis]]:
    """Yield possible beginnings of the next trial, each with its percept."""

    def begin() -> tuple[int, Hypothesis]:
        twin = life.twin()
        observation = twin.begin_trial()
        assert observation is not None
        return world.percept(observation, 0.0, False, twin.waiting), twin

    yield from (
        one for _, one in itertools.islice(world.script.all_of(begin), BEGINNINGS)
    )


def key(life: Hypothesis) -> Hashable:
    return life.matters, life.pose, *life.clocks(0), life.limit


def wandered(life: Hypothesis, chance: random.Random) -> Hypothesis | None:
    """Return the life after some random steps; None if its trial has ended."""
    twin, straight = life.twin(), chance.random()
    for _ in range(chance.randrange(FAR)):
        action = (
            STAY
            if twin.waiting
            else 0
            if chance.random() < straight
            else chance.randrange(4)
        )
        if twin.step(action)[2] != RUNNING:
            return None
    return twin


def lead(world: World, lives: list[Hypothesis], chance: random.Random) -> None:
    """Take the same actions in all lives, and check that percepts, remaining
    dependencies and endings are equal.
    """
    for life in lives:  # random choices take their likeliest value
        world.script.written, world.script.taken = [], []
        assert life.limit < NEVER
    straight = chance.random()
    while True:
        one = lives[0]
        action = (
            STAY
            if one.waiting
            else 0
            if chance.random() < straight
            else chance.randrange(4)
        )
        ends = [life.step(action) for life in lives]
        over = [status != RUNNING for _, _, status in ends]
        met = {
            (world.percept(seen, paid, done, life.waiting), done)
            for life, (seen, paid, _), done in zip(lives, ends, over, strict=True)
        }
        assert len(met) == 1
        if over[0]:
            assert len({(life.is_success(), life.kept()) for life in lives}) == 1
            return
        assert len({key(life) for life in lives}) == 1


@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: path.name.removesuffix(".protocol.yaml")
)
@pytest.mark.parametrize(
    "lesion", ["intact", "blind+anhedonia", f"hide={LANDMARKS}+amnesia=trial"]
)
def test_lives_of_equal_key_go_on_alike(path: Path, lesion: str) -> None:
    specification = with_arena(_catalogue.load(path))
    if specification.success is None or (
        LANDMARKS in lesion and not specification.arena.landmarks
    ):
        return
    world = World(ArenaParadigm(specification), Lesion.parse(lesion))
    chance = random.Random(f"{specification.name} {lesion}")
    life = Hypothesis(world.program, world.view, world.script, world.relevance)
    for _ in range(TRIALS):
        groups: dict[Hashable, list[Hypothesis]] = defaultdict(list)
        for percept, one in beginnings(world, life):
            groups[percept, key(one)].append(one)
        first = list(groups.values())
        for lives in chance.sample(first, min(len(first), WANDERED)):
            for _ in range(WANDERERS):
                world.script.written, world.script.taken = [], []
                if (there := wandered(chance.choice(lives), chance)) is not None:
                    groups["wandered", there.steps, key(there)].append(there)
        equal = [lives for lives in groups.values() if len(lives) > 1]
        for lives in chance.sample(equal, min(len(equal), GROUPS)):
            lead(
                world,
                [one.twin() for one in chance.sample(lives, min(len(lives), TOGETHER))],
                chance,
            )
        life = chance.choice(first)[0]
        while life.step(STAY)[2] == RUNNING:
            pass


#: The drawn values decide by their sum, and only the place of the answer remains of it.
SUMMED = (
    (
        "side: {of: {side: [left, right]}}",
        "one: {per: subject, of: {one: [0, 1]}}\n  two: {of: {two: [0, 1]}}",
    ),
    ("start: {at: box", "vars: {side: none}\nstart: {at: box"),
    (
        "{freeze: true, show: {side",
        '{set: {side: "member(arm, (one + two) % 2 + 1)"}, freeze: true, show: {side',
    ),
)


@pytest.mark.parametrize(
    "lesion",
    [
        "intact",
        "amnesia=choice",
        "blind",
        "anhedonia",
        "hide=arm",
        "pose-only+anhedonia",
    ],
)
@pytest.mark.parametrize("changes", [(), SUMMED], ids=["plain", "summed"])
def test_bounds_do_not_depend_on_merging(
    plant: Plant,
    changes: tuple[tuple[str, str], ...],
    lesion: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paradigm = plant(*changes)
    merged = upper_bound(Adversary(paradigm, Lesion.parse(lesion), 1.0))
    numbers: dict[Hashable, int] = {}

    def everything(self: Relevance, life: Hypothesis) -> int:
        return numbers.setdefault(
            (life.block, life.state, *life.values.items()), len(numbers)
        )

    monkeypatch.setattr(Relevance, "tabulated", everything)
    assert (
        merged
        == upper_bound(Adversary(paradigm, Lesion.parse(lesion), 1.0))
        == pytest.approx(merged)
    )


def test_hypotheses_that_nothing_tells_apart_are_one(plant: Plant) -> None:
    world = World(plant(*SUMMED), Lesion.parse("hide=arm"))
    # The two sides, not the four pairs: a value for life that is not told does not
    # distinguish them either.
    assert {len(part) for part in world.begin(world.prior()).values()} == {2}
