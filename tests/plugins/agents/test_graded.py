"""Learners of graded skill: the effect of the number, and both of its ends."""

from __future__ import annotations

from cheesebench import AgentContext
from cheesebench.plugins.agents import PlaceLearner
from cheesebench.plugins.agents.graded import SKILLS, GradedLearner, graded

CONTEXT = AgentContext(seed=3, view="ascii_2d")
PICTURE = "#1###\n#..→#\n4...2\n#####"


def acted(agent: GradedLearner | PlaceLearner, trials: int = 4) -> list[int]:
    found = []
    for _ in range(trials):
        agent.begin_trial(PICTURE)
        for step in range(20):
            found.append(agent.act(PICTURE)[0])
            agent.observe(found[-1], float(step == 10), PICTURE, step == 19)
    return found


def test_full_skill_is_the_learner_and_none_is_chance() -> None:
    assert acted(GradedLearner(CONTEXT, 1.0)) == acted(PlaceLearner(CONTEXT))
    random = acted(GradedLearner(CONTEXT, 0.0), 100)
    shares = [random.count(action) / len(random) for action in range(4)]
    # Four standard errors of a quarter of 2,000 steps.
    assert all(abs(share - 0.25) < 0.04 for share in shares)


def test_landmarks_are_confused_for_a_whole_trial_and_as_often_as_said() -> None:
    agent, confused = GradedLearner(CONTEXT, 0.6), 0
    for _ in range(500):
        agent.begin_trial(PICTURE)
        seen = agent._seen(PICTURE)
        assert agent._seen(PICTURE) == seen
        assert sorted(seen) == sorted(PICTURE)
        confused += seen != PICTURE
    # 40 % of trials, in which one permutation in six changes nothing.
    assert abs(confused / 500 - 0.4 * 5 / 6) < 0.09


def test_the_registered_ones_are_named_by_their_skill() -> None:
    assert [graded(skill).name for skill in SKILLS] == [
        "graded-40",
        "graded-60",
        "graded-80",
        "graded-90",
    ]
    learner = graded(80).create(CONTEXT)
    assert isinstance(learner, GradedLearner)
    assert round(learner._loss, 9) == 0.2
