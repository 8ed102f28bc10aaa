"""Tests of every shipped protocol; a new file is tested at once."""

from __future__ import annotations

import math
import random
from functools import cache

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from cheesebench.experiment.cells import plan_cell
from cheesebench.experiment.subjects import run_subject
from cheesebench.family import Design
from cheesebench.interfaces import RUNNING, PictureView
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.author_tests import run_tests
from cheesebench.paradigms.arena.environment import environment_class
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.protocol.catalogue import protocol_name
from cheesebench.statistics import judge

#: Maximum number of random trials of a life, and of steps of each.
TRIALS, STEPS = 12, 400
#: Number of steps in a view whose every observation is an array of half a million
#: numbers.
PICTURES = 60
#: Number of random subjects for the comparison with the stated chance level: a multiple
#: of most tables.
CHANCE_SUBJECTS = 12

_catalogue = Catalogue(installed_plugins().protocol_directories)
every_protocol = pytest.mark.parametrize("name", list(_catalogue.files))
every_view = pytest.mark.parametrize("view", list(installed_plugins().views))


def specification_of(name: str) -> Specification:
    """Load it in the test, so that a broken file fails its own tests and no others."""
    specification: Specification = with_arena(_catalogue.load(_catalogue.files[name]))
    return specification


@cache
def paradigm_of(name: str) -> ArenaParadigm:
    return ArenaParadigm(specification_of(name))


def random_life(name: str, view: str, seed: int) -> list[object]:
    """Play some trials with random actions; return all results."""
    chance = random.Random(seed)
    life = ArenaSubject(
        paradigm_of(name).program, installed_plugins().view(view), seed, subject=1
    )
    lived: list[object] = []
    for _ in range(TRIALS):
        if (observation := life.begin_trial()) is None:
            break
        lived.append(observation)
        for _ in range(STEPS):
            step = life.step(chance.randrange(4))
            lived.append(step)
            if step[2] != RUNNING:
                lived.append(life.result())
                break
        else:
            break  # a long trial, which need not be played to its end
    return lived


@every_protocol
def test_its_file_has_its_name(name: str) -> None:
    """A run without ``--protocols`` reads only the files with its edition in their
    name.
    """
    assert specification_of(name).name == protocol_name(name)


@every_protocol
def test_the_stated_chance_level_is_what_the_random_agent_reaches(name: str) -> None:
    specification, plugins = specification_of(name), installed_plugins()
    agent, design = (
        plugins.agent("random"),
        Design(name="check", subjects=CHANCE_SUBJECTS),
    )
    plan = plan_cell(specification, agent.name, "ascii_2d", design, agent.memory)
    view = plugins.view(plan.view)
    lives = (
        run_subject(paradigm_of(name), view, agent, plan, 99, subject)
        for subject in range(plan.subjects)
    )
    cell = judge(plan, [record for life in lives for record, _ in life])
    assert plan.chance is not None
    assert cell.rate is not None
    # Four standard errors, and room for subjects that differ.
    tolerance = 4 * math.sqrt(plan.chance * (1 - plan.chance) / cell.valid) + 0.05
    assert abs(cell.rate - plan.chance) < tolerance


def test_there_are_protocols() -> None:
    assert "t_maze" in _catalogue.files


@every_protocol
def test_its_own_tests_pass(name: str) -> None:
    reports = run_tests(paradigm_of(name), installed_plugins().view("ascii_2d"))
    assert reports, f"{name} has no 'tests:' of its own"
    failed = [str(report) for report in reports if not report.passed]
    assert not failed, "\n".join(failed)


@every_protocol
@every_view
def test_gymnasium_accepts_it(name: str, view: str) -> None:
    environment = environment_class(specification_of(name))(
        view=view, render_mode="ansi"
    )
    check_env(environment, skip_render_check=True)
    environment.close()


@every_protocol
def test_gymnasium_makes_it(name: str) -> None:
    camel = "".join(
        part[:1].upper() + part[1:] for part in name.replace(".", "_").split("_")
    )
    environment = gymnasium.make(f"cheesebench/{camel}-v1")
    observation, _ = environment.reset(seed=3)
    assert environment.observation_space.contains(observation)
    environment.close()


@every_protocol
@every_view
def test_equal_seeds_give_equal_lives(name: str, view: str) -> None:
    life = random_life(name, view, seed=5)
    assert len(life) > STEPS / 8
    assert life == random_life(name, view, seed=5)


@every_protocol
@every_view
def test_every_observation_is_in_the_space(name: str, view: str) -> None:
    environment = environment_class(specification_of(name))(view=view)
    space = environment.observation_space
    environment.action_space.seed(11)
    observation, _ = environment.reset(seed=11)
    assert space.contains(observation)
    pictures = isinstance(installed_plugins().view(view), PictureView)
    for _ in range(PICTURES if pictures else 5 * STEPS):
        observation, _, terminated, truncated, _ = environment.step(
            environment.action_space.sample()
        )
        assert space.contains(observation), observation
        if terminated or truncated:
            observation, _ = environment.reset()
            assert space.contains(observation), observation
    environment.close()
