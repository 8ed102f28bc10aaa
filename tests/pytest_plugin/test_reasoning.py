"""Servers of reasoning models, in each form: no possible run is refused, and no action
is read from reasoning.
"""

from __future__ import annotations

import pytest

from cheesebench.experiment.calling import HOPELESS_REPLIES
from cheesebench.experiment.log import RunLog
from cheesebench.statistics.comparison import count_cell
from cheesebench.testing.fake_server import SHAPES, FakeServer, Reasoner

THOUGHTS = (
    "The rule says:\nACTIONS: ROTATE_LEFT\nbut LEARNINGS: left is wrong. So maybe ACTIONS: ROTATE_RIGHT. No. "
    * 4
)
ANSWER = "LEARNINGS: on\nACTIONS: FORWARD"
MODELS = """
models:
  thinker:
    backend: openai
    id: thinker
    reasoning: true
"""


def run(
    project: pytest.Pytester, script: Reasoner, *options: str
) -> tuple[pytest.RunResult, FakeServer]:
    (project.path / "models.yaml").write_text(MODELS, encoding="utf-8")
    with FakeServer(script) as server:
        result = project.runpytest(
            *(
                "--model",
                "thinker",
                "--models",
                "models.yaml",
                "--base-url",
                server.base_url,
                "--cheese-run-id",
                "one",
            ),
            *("--design", "smoke", *options, "lab"),
        )
    return result, server


def actions(project: pytest.Pytester) -> set[str]:
    """Return the letters of all actions; '.' is a frozen step."""
    with RunLog.open_read_only(project.path / "results" / "one") as log:
        return {letter for trial in log.trials() for letter in trial.actions} - {"."}


@pytest.mark.parametrize("shape", SHAPES)
def test_only_the_answer_is_read(project: pytest.Pytester, shape: str) -> None:
    run(project, Reasoner(shape=shape, thoughts=THOUGHTS, answer=ANSWER))
    assert actions(project) == {"F"}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_reply_that_is_cut_off_in_thought_says_nothing(
    project: pytest.Pytester, shape: str
) -> None:
    result, _ = run(
        project,
        Reasoner(shape=shape, thoughts=THOUGHTS, answer=ANSWER, needs=100),
        "--reply-tokens",
        "64",
    )
    assert result.ret != 0
    assert "No reply named an action" in " ".join(result.stdout.str().split())
    assert actions(project) <= {"S"}
    with RunLog.open_read_only(project.path / "results" / "one") as log:
        replies = log.select(
            "SELECT DISTINCT reply, finish, reasoning_tokens > 0 FROM calls"
        )
    assert replies == [("", "length", 1)]


def test_nobody_goes_on_asking_who_never_acts(project: pytest.Pytester) -> None:
    (project.path / "models.yaml").write_text(MODELS, encoding="utf-8")
    with FakeServer(lambda call: "LEARNINGS: I wait for NEW TRIAL") as server:
        result = project.runpytest(
            *("--model", "thinker", "--models", "models.yaml"),
            *("--base-url", server.base_url, "--design", "cohort"),
            *("--cheese-run-id", "one", "--concurrency", "1"),
            "lab/few.protocol.yaml",
        )
        assert server.count == HOPELESS_REPLIES
    said = " ".join(result.stdout.str().split())
    assert result.ret != 0
    assert (
        "No reply named an action (12 calls), so the model has not been tested." in said
    )
    assert "call 1: 'LEARNINGS: I wait for NEW TRIAL'" in said
    with RunLog.open_read_only(project.path / "results" / "one") as log:
        (plan,) = log.plans()
        lives = log.trials_by_subject(plan)
        assert not count_cell(plan, lives, log.calls.of_cell(plan)).subjects


def test_an_api_with_every_refusal_runs(project: pytest.Pytester) -> None:
    """An API like OpenAI's: another name for the limit, no temperature, and 400 when
    the limit is used up.
    """
    strict = Reasoner(shape="hidden", thoughts=THOUGHTS, answer=ANSWER, strict=True)
    result, server = run(project, strict)
    assert "Try --temperature none" in result.stdout.str() + result.stderr.str()
    assert not (project.path / "results" / "one").exists(), (
        "what was refused at once can be started again"
    )
    assert server.count == 2, "one more for the other name"
    _, server = run(
        project,
        strict,
        "--temperature",
        "none",
        "--top-p",
        "0.9",
        "--reasoning-effort",
        "low",
    )
    assert actions(project) == {"F"}
    last = server.calls[-1].body
    assert (last["top_p"], last["reasoning_effort"], last["max_completion_tokens"]) == (
        0.9,
        "low",
        8192,
    )
    assert sum("max_tokens" in call.body for call in server.calls) <= 1 + 16, (
        "the first calls of a connection"
    )


def test_a_spent_limit_is_a_reply_that_was_cut_off(project: pytest.Pytester) -> None:
    spent = Reasoner(
        shape="hidden", thoughts=THOUGHTS, answer=ANSWER, strict=True, needs=100
    )
    run(project, spent, "--temperature", "none", "--reply-tokens", "64")
    with RunLog.open_read_only(project.path / "results" / "one") as log:
        found = log.select(
            "SELECT DISTINCT reply, finish, fault, completion_tokens FROM calls"
        )
    assert found == [("", "length", "", 64)]
