"""A study in a pytest session, against a real server."""

from __future__ import annotations

import pytest

from cheesebench.experiment.log import RunLog
from cheesebench.testing.fake_server import FakeServer

FORWARD = "LEARNINGS: none\nACTIONS: FORWARD, FORWARD"


def test_a_study_is_one_run_with_a_cell_for_each_setting(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")
    with FakeServer(FORWARD) as server:
        command = (
            "--study",
            "ablation-history",
            "--model",
            "openai/tiny",
            "--base-url",
            server.base_url,
        )
        result = project.runpytest(
            *command, "--cheese-run-id", "one", "lab", "-k", "east"
        )
        assert result.parseoutcomes()["inconclusive"] == 4
        result.stdout.fnmatch_lines(
            ["Study ablation-history: *", "*openai/tiny * history=10 *100 %*"]
        )
        shown = [len(call.body["messages"]) for call in server.calls]
        paid = server.count
        result = project.runpytest(*command[2:], "--resume", "one", "lab", "-k", "east")
        assert result.parseoutcomes()["inconclusive"] == 4
        assert server.count == paid, "the log had all calls, so no call was made"
    # System message, pairs, and the question: each of the study's four levels has a
    # longest prompt of its own.
    assert {2 + 2 * history for history in (1, 3, 5, 10)} <= set(shown)
    assert max(shown) == 22
    with RunLog.open_read_only(project.path / "results/one") as log:
        assert [str(plan.variant) for plan in log.plans()] == [
            f"history={n}" for n in (1, 3, 5, 10)
        ]
        assert {plan.trials for plan in log.plans()} == {15}
        assert not any(plan.claims for plan in log.plans())
    report = (project.path / "results/one/report.md").read_text(encoding="utf-8")
    assert "## Study: ablation-history" in report


def test_a_study_of_ones_own_is_resumed_and_replayed(project: pytest.Pytester) -> None:
    study = "version: 1\nstudy: s\ntitle: S\ntrials: 1\naxes: {history: [1, 3]}\n"
    (project.path / "s.study.yaml").write_text(study, encoding="utf-8")
    typed, end = ("--study", "s.study.yaml"), ("lab", "-k", "east")
    with FakeServer(FORWARD) as server:
        model = ("--model", "openai/tiny", "--base-url", server.base_url)
        project.runpytest(*model, *typed, "--cheese-run-id", "one", *end)
        paid = server.count
        for again in ((*model, "--resume", "one"), ("--model", "replay:one")):
            for more in ((), typed):
                result = project.runpytest(*again, *more, *end)
                assert result.parseoutcomes()["inconclusive"] == 2
        assert server.count == paid


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["--study", "ablation-history"],
            "*has no models of its own: add --model NAME.",
        ),
        (
            ["--study", "ablation-histry", "--model", "openai/tiny"],
            "*Did you mean 'ablation-history'?*",
        ),
        (
            ["--study", "ablation-history", "--model", "walker"],
            "*varies history, but 'walker' is not a language model*",
        ),
        (
            ["--study", "image", "--model", "llama-3.1-8b"],
            "--view topdown_2d draws images*",
        ),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    project: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    said: str,
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")
    result = project.runpytest(*given, "lab")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
