"""Dialogues in a pytest session: their tests, baselines, language
models, and records.
"""

from __future__ import annotations

import os

import pytest

from cheesebench.cli import main
from cheesebench.experiment.log import RunLog
from cheesebench.testing.fake_server import Call, FakeServer
from fuzz.run_logs import rewritten

#: Two exits of a hall; one answer in two is right by chance.
FORK = """
version: 1
paradigm: fork
arena:
  graph:
    directed: true
    start: 0
    edges: [[0, 1], [0, 2], [1, 3], [2, 4]]
    rewards: {3: 10, 4: 50}
    vocabulary: {ordered_rooms: {each: "room {n}", names: {0: the hall}}}
conditions:
  valuePath: {ask: best_path}
  rewardReval: {after: valuePath, edit: {rewards: {3: 90}}, ask: best_path}
"""


@pytest.fixture
def fork(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv(
        "PYTEST_ADDOPTS", os.environ["PYTEST_ADDOPTS"].replace("--subjects=6", "")
    )
    folder = project.mkdir("maps")
    (folder / "fork.protocol.yaml").write_text(FORK, encoding="utf-8")
    return project


def log_of(project: pytest.Pytester, run: str) -> RunLog:
    return RunLog.open_read_only(project.path / "results" / run)


def test_the_family_is_named_by_its_folder(project: pytest.Pytester) -> None:
    result = project.runpytest(
        "--model", "random-walk", "--protocols", "cogeval", "--collect-only", "-q"
    )
    lines = result.outlines
    assert "cheesebench::cogeval_n15star[ordered_rooms-transReval-random-walk]" in lines
    assert (
        "cheesebench::cogeval_n7tree[object_relations-teleShortcutCoT-random-walk]"
        in lines
    )
    assert (
        "cheesebench::cogeval_n13line[social_ties-transRevalStochastic-random-walk]"
        in lines
    )
    assert not any(
        line.startswith(("cheesebench::corridor", "cheesebench::t_maze"))
        for line in lines
    )


def test_chance_and_ceiling(fork: pytest.Pytester) -> None:
    result = fork.runpytest(
        "--model", "shortest-path-oracle", "--cheese-run-id", "top", "maps"
    )
    result.assert_outcomes(passed=2)
    with log_of(fork, "top") as log:
        plans = log.plans()
        assert [(str(plan.variant), plan.subjects, plan.trials) for plan in plans] == [
            ("ordered_rooms-valuePath", 30, 1),
            ("ordered_rooms-rewardReval", 30, 1),
        ]
        assert {plan.chance for plan in plans} == {0.25}
        assert all(record.success for record in log.trials())
    result = fork.runpytest(
        "--model", "random-walk", "--subjects=200", "--cheese-run-id", "low", "maps"
    )
    with log_of(fork, "low") as log:
        rate = sum(bool(record.success) for record in log.trials()) / 400
    assert abs(rate - 0.25) < 4 * (0.25 * 0.75 / 400) ** 0.5
    result.stdout.fnmatch_lines(
        ["* protocol *rate  chance *", "* fork*aluePath]  2?* %    25 % *"]
    )


def test_a_forged_dialogue_is_told(
    fork: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """Answers are scored again: a baseline's, which it repeats, and a model's, which
    are in the log. The bar is computed again, too.
    """
    options = ("--subjects=3", "--exit-zero", "maps")
    fork.runpytest("--model", "random-walk", "--cheese-run-id", "low", *options)
    with FakeServer(lambda call: "Answer: hall -> 2 -> 4") as server:
        served = ("--model", "openai/tiny", "--base-url", server.base_url)
        fork.runpytest(*served, "--cheese-run-id", "one", *options)

    def verified(run: str) -> tuple[int, str]:
        capsys.readouterr()
        return main(["report", run, "--verify"]), capsys.readouterr().err

    for run in ("low", "one"):
        code, said = verified(run)
        assert code == 0, said
        assert "6 trials." in said
        path = fork.path / "results" / run / "run.sqlite"
        original = path.read_bytes()
        for change, told in (
            ("UPDATE trials SET success = 1 - success", "success was"),
            (
                "UPDATE cells SET plan = json_set(plan, '$.chance', 0.01)",
                "options say: chance is 0.01, not 0.25",
            ),
            (
                "UPDATE cells SET plan = json_set(plan, '$.trials', 2)",
                "options say: trials is 2, not 1",
            ),
        ):
            with rewritten(path) as log:
                log.execute(change)
            code, said = verified(run)
            assert code == 2
            assert told in said
            path.write_bytes(original)
    with rewritten(path) as log:
        log.execute("DELETE FROM calls WHERE subject = 1 AND call = 0")
    assert (
        "does not follow from the model's replies. A reply is missing."
        in verified("one")[1]
    )


SECOND = ("--variant", "ordered_rooms-rewardReval-t0")


def test_a_model_keeps_its_own_replies_before_it(
    fork: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(call: Call) -> str:
        if "changed" in call.prompt:
            return (
                "Now the other one pays more.\n\n**Answer:** the hall, room 1, room 3"
            )
        return "Answer: hall -> 2 -> 4"

    with FakeServer(script) as server:
        result = fork.runpytest(
            *(
                "--model",
                "openai/tiny",
                "--base-url",
                server.base_url,
                "--cheese-run-id",
                "one",
            ),
            *("--subjects", "20", "--temperature", "0", "--temperature", "0.5", "maps"),
        )
        bodies = [call.body for call in server.calls]
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "openai/tiny in dialogue, temperature 0 *",
            "openai/tiny in dialogue, temperature 0.5 *",
        ]
    )
    two_turns = [body["messages"] for body in bodies if len(body["messages"]) > 1]
    assert len(two_turns) == 40
    for messages in two_turns:
        assert [message["role"] for message in messages] == [
            "user",
            "assistant",
            "user",
        ]
        assert messages[1]["content"] == "Answer: hall -> 2 -> 4"
    assert {body["temperature"] for body in bodies} == {0, 0.5}
    assert len({body["seed"] for body in bodies}) == len(bodies) == 120
    with log_of(fork, "one") as log:
        assert [str(plan.variant) for plan in log.plans()] == [
            "ordered_rooms-valuePath-t0",
            "ordered_rooms-rewardReval-t0",
            "ordered_rooms-valuePath-t0.5",
            "ordered_rooms-rewardReval-t0.5",
        ]
        record = log.trials()[0]
        assert record.variables["answer"] == "0 1 3"
        assert (record.variables["condition"], record.variables["temperature"]) == (
            "rewardReval",
            0,
        )
        calls = list(log.calls.of_life(log.plans()[1], 0))
        assert [call.reply.text.splitlines()[-1] for call in calls] == [
            "Answer: hall -> 2 -> 4",
            "**Answer:** the hall, room 1, room 3",
        ]
    # The whole conversation is visible again.
    assert (
        main(
            [
                "show",
                "one",
                "--results",
                str(fork.path / "results"),
                *SECOND,
                "--subject",
                "3",
                "--call",
                "2",
            ]
        )
        == 0
    )
    shown = capsys.readouterr().out
    assert (
        "--- assistant ---\nAnswer: hall -> 2 -> 4\n--- user ---\nAfter the tour something has changed."
        in shown
    )
    assert "--- reply ---\nNow the other one pays more." in shown
    # Paid calls are never repeated, and the log alone gives the same run.
    with FakeServer("nobody is to be asked") as server:
        again = fork.runpytest(
            "--resume",
            "one",
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
            "maps",
        )
        again.assert_outcomes(passed=4)
        assert server.count == 0
    replayed = fork.runpytest("--model", "replay:one", "--cheese-run-id", "two", "maps")
    replayed.assert_outcomes(passed=4)
    with log_of(fork, "one") as first, log_of(fork, "two") as second:
        assert list(first.dump()) == list(second.dump())


@pytest.mark.parametrize(
    ("reply", "outcome", "measure"),
    [
        ("Answer: hall, 2, 4, 2, 4", "hallucinated edge", "loop"),
        ("Answer: hall, 4", "hallucinated edge", "hallucinated_edges"),
        ("Answer: hall, 2, 4 or hall, 1, 3", "several answers", "several_answers"),
        ("I would rather not say.", "no answer", "no_answer"),
        ("Answer: Ada, Ben, " + "Cleo, " * 14_000, "unknown node", "unknown_nodes"),
    ],
)
def test_scripted_wrong_answers_fail_with_their_name(
    fork: pytest.Pytester, reply: str, outcome: str, measure: str
) -> None:
    with FakeServer(reply) as server:
        result = fork.runpytest(
            *(
                "--model",
                "openai/tiny",
                "--base-url",
                server.base_url,
                "--cheese-run-id",
                "one",
                "-k",
                "valuePath",
            ),
            *("maps", "--cheese-film"),
        )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [f"A failed trial: generation 0, question 1: {outcome}."]
    )
    with log_of(fork, "one") as log:
        records = log.trials()
        assert len(records) == 30
        assert {record.outcome for record in records} == {outcome}
        assert all(record.measures[measure] for record in records)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--model", "random", "maps"),
            "*The agent 'random' acts in arenas, but 'fork' is a dialogue.*random-walk*",
        ),
        (
            ("--model", "random-walk", "lab"),
            "*The baseline 'random-walk' answers questions, but 'east' is an arena*",
        ),
        (
            ("--model", "random-walk", "--subjects", "0", "maps"),
            "*--subjects 0: a run needs at least one subject.*",
        ),
    ],
)
def test_what_does_not_fit_is_told(
    fork: pytest.Pytester, arguments: tuple[str, ...], message: str
) -> None:
    result = fork.runpytest(*arguments)
    assert result.ret != 0
    (result.stderr if "--subjects" in arguments else result.stdout).fnmatch_lines(
        [message]
    )


def test_smoke_claims_nothing(
    fork: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")
    result = fork.runpytest(
        "--model",
        "random-walk",
        "--design",
        "smoke",
        "--cheese-run-id",
        "one",
        "maps",
        "-rs",
    )
    result.assert_outcomes(skipped=0, passed=0, failed=0)
    with log_of(fork, "one") as log:
        assert {plan.subjects for plan in log.plans()} == {2}


def test_several_processes_give_the_same_records(fork: pytest.Pytester) -> None:
    fork.runpytest(
        "--model", "random-walk", "--cheese-run-id", "one", "--subjects", "3", "maps"
    )
    fork.runpytest(
        "--model",
        "random-walk",
        "--cheese-run-id",
        "two",
        "--subjects",
        "3",
        "-n",
        "2",
        "maps",
    )
    with log_of(fork, "one") as first, log_of(fork, "two") as second:
        assert sorted(first.dump()) == sorted(second.dump())


def test_a_cell_is_not_held_against_a_mean_over_all_graphs(
    project: pytest.Pytester,
) -> None:
    one = ("--model", "greedy-reward", "--protocols", "cogeval", "-k", "n7line")
    result = project.runpytest(*one, "--against", "gpt-5.2")
    said = " ".join((result.stdout.str() + result.stderr.str()).split())
    assert result.ret != 0
    assert "means over all graphs and domains" in said
    assert "cheesebench cogeval-stats RUN --published NAME" in said


def test_a_wrong_name_to_be_shown_beside_is_one_error_however_many_protocols_there_are(
    project: pytest.Pytester,
) -> None:
    several = (
        "--model",
        "random",
        "--protocols",
        "t_maze@paper",
        "--protocols",
        "y_maze",
        "--against",
        "gpt-5.3",
    )
    for more in ((), ("-n2",)):
        result = project.runpytest_inprocess(*several, *more)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        said = result.stdout.str() + result.stderr.str()
        assert (
            said.count("There is no published model 'gpt-5.3'. Did you mean 'gpt-5.2'?")
            == 1
        )
        assert "cheesebench cogeval-stats RUN --published NAME" in said
