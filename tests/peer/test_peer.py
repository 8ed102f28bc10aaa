"""The edition `paper` against the package whose rules it follows: the same draws and
actions, step for step.

The package, ``cheesebench`` 0.2.0, is installed into an environment of its own, because
its module has our name: ``CHEESEBENCH_PEER_HOME``, or a temporary folder. No code of it
is here.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cheesebench.interfaces import HEADINGS, RUNNING
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena

pytestmark = pytest.mark.peer

SEEDS, STEPS = range(20), 2_000
#: Rewards are sums of two numbers at most.
EXACT = 1e-9
CLASSES = {
    "morris_water_maze": "MorrisWaterMaze",
    "barnes_maze": "BarnesMaze",
    "t_maze": "TMaze",
    "radial_arm_maze": "RadialArmMaze",
    "star_maze": "StarMaze",
    "dnms": "DNMSTask",
    "operant_chamber": "OperantChamber",
    "shuttle_box": "ShuttleBox",
    "place_preference": "PlacePreference",
}
#: Allowed differences, with reasons. Everything else must be equal.
ALLOWED = {
    "the picture after the last step of a trial": "the package shows the first picture of the next trial there",
    "blank margins of a picture": "the package draws on a canvas of a fixed size",
    "the place of somebody who walks along an axis, by some 1e-17": (
        "the package adds sines and cosines with their rounding errors, by which who walks south from x = 0 is in the "
        "left chamber; the driver rounds them to 12 places"
    ),
    "whether a trial that is cut off is called done or over": "the package has one word for both; success is compared",
}

CATALOGUE = Catalogue(installed_plugins().protocol_directories)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a step."""

    reward: float
    ended: bool
    success: bool | None
    picture: str | None


class Trial(NamedTuple):
    """A trial as played here."""

    start: dict[str, Any]
    actions: list[int]
    first: str
    steps: list[Step]


def cut(picture: str) -> str:
    """Return a picture without its margins."""
    rows = [row for row in picture.split("\n") if row.strip()]
    left = min(len(row) - len(row.lstrip()) for row in rows)
    return "\n".join(row[left:].rstrip() for row in rows)


@lru_cache(maxsize=100_000)
def digest(picture: str) -> str:
    return hashlib.blake2b(cut(picture).encode(), digest_size=8).hexdigest()


def drawn(life: ArenaSubject, paradigm: ArenaParadigm) -> dict[str, Any]:
    """Return the draws for a trial that has just begun."""
    columns = {name: life.values[name] for name in paradigm.specification.columns}
    return {
        **columns,
        "heading": HEADINGS[paradigm.program.geometry.heading(life.pose)],
    }


def lives(
    paradigm: ArenaParadigm, seed: int, steps: int = STEPS
) -> Iterator[list[Trial]]:
    """Play with random actions for this many steps, in as many lives as necessary."""
    chance, left, view = (
        random.Random(seed),
        steps,
        installed_plugins().view("ascii_2d"),
    )
    for subject in range(steps):
        life, trials = (
            ArenaSubject(paradigm.program, view, seed, subject),
            list[Trial](),
        )
        while left and (picture := life.begin_trial()) is not None:
            trial = Trial(drawn(life, paradigm), [], digest(picture), [])
            trials.append(trial)
            ended = False
            while left and not ended:
                left -= 1
                trial.actions.append(chance.randrange(4))
                picture, reward, status = life.step(trial.actions[-1])
                ended = status != RUNNING
                success = bool(life.ending().success) if ended else None
                trial.steps.append(
                    Step(reward, ended, success, None if ended else digest(picture))
                )
        yield trials
        if not left:
            return


def ask(
    peer: Path, name: str, played: list[list[Trial]], *, pictures: bool = False
) -> list[Any]:
    """Return the package's results for the same draws and actions."""
    question = {
        "task": CLASSES[name],
        "pictures": pictures,
        "lives": [
            [{"start": trial.start, "actions": trial.actions} for trial in trials]
            for trials in played
        ],
    }
    child = subprocess.run(
        [peer, "-P", Path(__file__).with_name("driver.py")],
        input=json.dumps(question), capture_output=True, text=True, cwd=peer.parent, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    answer: list[Any] = json.loads(child.stdout)
    return answer


def differences(played: list[list[Trial]], told: list[Any]) -> Iterator[str]:
    """Yield the first step of each trial in which the package differs."""
    for number, (trials, others) in enumerate(zip(played, told, strict=True)):
        for index, (trial, (first, steps)) in enumerate(
            zip(trials, others, strict=True)
        ):
            where = f"life {number}, trial {index + 1}"
            if first != trial.first:
                yield f"{where}: another first picture"
                continue
            others_steps = [Step(*step) for step in steps]
            for step, (own, other) in enumerate(
                zip(trial.steps, others_steps, strict=False), 1
            ):
                same = (
                    abs(own.reward - other.reward) < EXACT and own.ended == other.ended
                )
                if not (
                    same
                    and own.success == other.success
                    and own.picture == other.picture
                ):
                    yield f"{where}, step {step} of {trial.start}: {own} here, {other} there"
                    break
            else:
                if len(trial.steps) != len(others_steps):
                    yield f"{where}: {len(trial.steps)} steps here, {len(others_steps)} there"


@pytest.mark.parametrize("name", CLASSES)
def test_every_step_is_that_of_the_package(name: str, peer: Path) -> None:
    paradigm = ArenaParadigm(with_arena(CATALOGUE.find(name, "paper")))
    played = [trials for seed in SEEDS for trials in lives(paradigm, seed)]
    assert (
        sum(len(trial.steps) for trials in played for trial in trials)
        == len(SEEDS) * STEPS
    )
    found = list(differences(played, ask(peer, name, played)))
    assert not found, f"{len(found)} trials differ; {found[0]}"


def test_a_difference_is_found(peer: Path) -> None:
    paradigm = ArenaParadigm(with_arena(CATALOGUE.find("t_maze", "paper")))
    (trials,) = lives(paradigm, 0, steps=30)
    told = ask(peer, "t_maze", [trials])
    assert not list(differences([trials], told))
    told[0][0][1][3][0] += 0.01
    (found,) = differences([trials], told)
    assert "step 4" in found


def test_all_nine_are_compared() -> None:
    files = CATALOGUE.folders["paper"].glob("*.protocol.yaml")
    assert sorted(path.name.split(".")[0] for path in files) == sorted(CLASSES)
