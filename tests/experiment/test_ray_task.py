"""Jobs of a cell on a node of a Ray cluster. No Ray is needed."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cheesebench import installation, run_job
from cheesebench.executor import Job
from cheesebench.plugins.executors import ray_task
from cheesebench.plugins.executors.ray_task import do_jobs


@pytest.fixture(name="job")
def _job(stranger: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(sys, "path", list(sys.path))
    plan, specification = next(iter(stranger.cells(["random"], subjects=2).items()))
    return Job(plan=plan, specification=specification, seed=0, subject=0)


def done(
    job: Job, *jobs: tuple[int, int, Any], path: list[str] | None = None
) -> list[Any]:
    expected = installation()
    content = pickle.dumps(job)
    return [
        pickle.loads(one) for one in do_jobs(path or [], expected, content, list(jobs))
    ]


def test_each_job_ends_with_its_last_report(job: Job) -> None:
    messages = done(job, (7, 0, None), (9, 1, None))
    assert {kind for kind, _, _ in messages} == {"reports"}
    seconds = [since for _, since, _ in messages]
    assert seconds == sorted(seconds)
    reports = [one for _, _, some in messages for one in some]
    for number, subject in ((7, 0), (9, 1)):
        own = [pickle.loads(packed) for job_number, _, packed in reports if job_number == number]  # fmt: skip
        ends = [ended for job_number, ended, _ in reports if job_number == number]
        assert ends == [False] * (len(ends) - 1) + [True]
        alone = list(run_job(Job(plan=job.plan, specification=job.specification, seed=0, subject=subject)))  # fmt: skip
        assert [one.trials for one in own] == [one.trials for one in alone]


@pytest.mark.parametrize(
    ("seconds", "size", "several"),
    [(99.0, 10**9, False), (99.0, 1, True), (0.0, 10**9, True)],
)
def test_reports_are_sent_after_a_while_or_if_they_are_many(
    job: Job,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    size: int,
    several: bool,
) -> None:
    monkeypatch.setattr(ray_task, "SEND_SECONDS", seconds)
    monkeypatch.setattr(ray_task, "SEND_BYTES", size)
    messages = done(job, (0, 0, None))
    count = len(list(run_job(job)))
    assert [len(reports) for _, _, reports in messages] == (
        [*[1] * count, 0] if several else [count]
    )


def test_a_node_without_jobs_or_with_another_installation_says_so(job: Job) -> None:
    assert done(job) == [("differs", [])]
    other = {**installation(), "python": "2.7"}
    [message] = do_jobs([], other, pickle.dumps(job), [(0, 0, None)])
    kind, phrases = pickle.loads(message)
    assert kind == "differs"
    assert phrases


def test_directories_of_the_session_that_the_node_has_are_searched(
    job: Job, tmp_path: Path
) -> None:
    there, absent = str(tmp_path), str(tmp_path / "absent")
    before = list(sys.path)
    done(job, path=[there, absent, before[0]])
    assert sys.path == [*before, there]
