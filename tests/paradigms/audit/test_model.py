"""The audit's model of a life predicts the percepts of real lives, and the success of
their trials.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.beliefs import Belief, World, normalised
from cheesebench.paradigms.arena.life import ArenaSubject
from tests.arenas import TWO_ARMS, examine_text
from tests.paradigms.audit.random_protocols import random_protocol

LESIONS = (
    "intact",
    "blind",
    "amnesia=trial",
    "amnesia=run",
    "anhedonia",
    "pose-only",
    "hide=arm",
    "hide=text",
)
#: Maximum difference of frequencies from the model, in standard errors.
FAR = 5.0
#: Random behaviours: weights of FORWARD, ROTATE_LEFT, ROTATE_RIGHT and STAY.
WAYS = ((1, 1, 1, 1), (6, 2, 2, 1), (1, 1, 1, 8), (12, 1, 1, 0))


class Compared:
    """Predictions and observations: sums of differences and variances, each outcome
    counted as 1 or -1.
    """

    def __init__(self) -> None:
        self.sums: dict[Hashable, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def note(
        self, kind: Hashable, chances: Mapping[Hashable, float], came: Hashable
    ) -> None:
        whole = sum(chances.values())
        assert chances.get(came, 0.0) > 0, f"{kind}: the model says that this cannot be"
        for salt in range(4):
            # Equal outcomes get equal signs, so that a bias adds up.
            signs = {
                one: random.Random(f"{one}|{salt}").choice((-1, 1)) for one in chances
            }
            mean = sum(signs[one] * chance for one, chance in chances.items()) / whole
            both = self.sums[kind, salt]
            both[0] += signs[came] - mean
            both[1] += 1 - mean * mean

    def farthest(self) -> float:
        return max(
            abs(difference) / math.sqrt(max(variance, 1.0))
            for difference, variance in self.sums.values()
        )


def weights(parts: Mapping[Any, Belief]) -> dict[Hashable, float]:
    return {percept: sum(part.values()) for percept, part in parts.items() if part}


def follow(world: World, seed: int, subject: int, compared: Compared) -> None:
    """Lead a real life at random, and follow it in the model."""
    life, rest, chance = (
        ArenaSubject(world.program, world.view, seed, subject),
        world.prior(),
        random.Random(seed),
    )
    while (observation := life.begin_trial()) is not None:
        way = chance.choice(WAYS)
        ensemble = world.begin(rest)
        percept = world.percept(observation, 0.0, False, life.waiting)
        compared.note("begin", weights(ensemble), percept)
        belief, steps, status = ensemble[percept], 0, RUNNING
        while status == RUNNING:
            action = STAY if life.waiting else chance.choices(range(4), way)[0]
            observation, reward, status = life.step(action)
            percept = world.percept(
                observation, reward, status != RUNNING, life.waiting
            )
            parts = world.step(belief, action, steps)
            came = percept if status == RUNNING else -1 - percept
            compared.note("step", weights(parts), came)
            belief, steps = normalised(parts[came]), steps + 1
        succeeded = sum(weight for (node, _), weight in belief.items() if node.success)
        chances = {True: succeeded, False: 1 - succeeded}
        compared.note(
            "success",
            {one: p for one, p in chances.items() if p > 1e-9},
            life.is_success(),
        )
        rest = world.rest(belief)


def compare(paradigm: ArenaParadigm, lesion: Lesion, lives: int) -> None:
    compared = Compared()
    world = World(paradigm, lesion)
    for seed in range(lives):
        subject = random.Random(seed).randrange(10**6)
        follow(
            World(paradigm, lesion, subject) if world.relevance.subject else world,
            seed,
            subject,
            compared,
        )
    assert compared.farthest() < FAR


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_the_model_of_a_random_protocol_foresees_real_lives(first: int) -> None:
    tried = 0
    for seed in range(first, first + 25):
        specification, _ = examine_text(random_protocol(seed))
        if specification is not None:
            compare(
                ArenaParadigm(specification),
                Lesion.parse(LESIONS[seed % len(LESIONS)]),
                12,
            )
            tried += 1
    assert tried > 15


SIDE, CHOICE = (
    "of: {side: [left, right]}",
    "{enter: side, end: good}, {enter: arm, end: bad}",
)
RUN = f"run: {{show: {{side: '*'}}, rules: [{CHOICE}]}}"
MORE = f"rules: [{{act: STAY, go: more}}, {CHOICE}]}}\n    more: {{rules: [{CHOICE}]}}"


@pytest.mark.parametrize(
    ("draw", "states", "start"),
    [
        # The last picture, after a rule has ended the trial, reveals a value that only
        # later trials read.
        (f"per: subject, {SIDE}",
         f"told: {{say: '{{k}}', rules: [{{after: 2, set: {{k: side}}, end: told}}]}}\n    {RUN}",
         "[{if: block == one, go: told}, run]"),
        # The draws and the beginning of the next trial depend on the place and the
        # state in which the last one ended.
        (f"keep_if: where(arm) == left, {SIDE}",
         "run: {show: {side: '*'}, rules: [{enter: arm, go: more}]}\n    more: {rules: [{after: 15, end: good}]}",
         "run"),
        (f"keep_if: state == more, {SIDE}", f"run: {{show: {{side: '*'}}, {MORE}", "run"),
        (SIDE, f"run: {{say: a, {MORE}", "[{if: state == more, go: more}, run]"),
        # 0 times an overflown value is not 0.
        (SIDE, f"run: {{rules: [{{act: ROTATE_LEFT, set: {{v: v * v}}}}, "
         f"{{act: STAY, if: (block == two) * v == 0, reward: 1}}, {CHOICE}]}}", "run"),
    ],
)  # fmt: skip
def test_the_model_has_once_missed_these(draw: str, states: str, start: str) -> None:
    specification, found = examine_text(
        f"version: 1\nparadigm: p\n{TWO_ARMS}\ndraw:\n  d: {{{draw}}}\nvars: {{k: none, v: 1000000}}\n"
        "start: {at: box, face: N}\n"
        f"trial:\n  limit: 40\n  start: {start}\n  states:\n    {states}\n"
        "schedule: {one: {trials: 6}, two: {trials: 6}}\nsuccess: last == good\nestimand: {block: two}\n"
    )
    assert specification is not None, found
    for words in ("intact", "anhedonia", "amnesia=trial"):
        compare(ArenaParadigm(specification), Lesion.parse(words), 30)
