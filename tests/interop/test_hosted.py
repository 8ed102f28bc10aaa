"""Subjects whose replies come from another program: the same records as in a run with
the same seed and replies.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cheesebench
from cheesebench.errors import NOT_AS_WRITTEN, CheeseBenchError
from cheesebench.experiment.log import RunLog
from cheesebench.interop.hosted import (
    Turns,
    hosted,
    judge_lives,
    life_from_json,
    life_to_json,
)
from cheesebench.records import TrialRecord

#: Replies in turn, as text and as tool calls.
SAID = (
    "ACTIONS: FORWARD, FORWARD",
    '{"actions": ["ROTATE_LEFT", "FORWARD"], "learnings": "left"}',
    "I do not know.",
)
MODEL = "scripted:replies.yaml"


def live(turns: Turns) -> list[TrialRecord]:
    number = 0
    while not turns.over:
        while turns.request is not None:
            turns.reply(SAID[number % len(SAID)])
            number += 1
        turns.go_on()
    return turns.records


def test_records_are_those_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replies = "".join(f"      - {reply!r}\n" for reply in SAID)
    Path("replies.yaml").write_text(
        f"seed: 1\nreplies:\n  - say:\n{replies}", encoding="utf-8"
    )
    done = cheesebench.run(
        MODEL, ["t_maze", "dnms"], design="cohort", subjects=2, seed=7, progress=False
    )
    with RunLog.open_read_only(done.directory) as log:
        recorded = {plan.protocol: log.trials(plan) for plan in log.plans()}
    assert len(recorded["t_maze"]) == 44
    for cell in hosted(["t_maze", "dnms"], model=MODEL, subjects=2):
        own = [
            record for subject in range(2) for record in live(Turns(cell, 7, subject))
        ]
        assert own == recorded[cell.plan.protocol]


def test_lives_are_judged_from_a_log_of_another_program() -> None:
    (cell,) = hosted(["t_maze"], subjects=3)
    lives = [
        life_to_json(cell.plan, live(Turns(cell, 7, subject))) for subject in range(3)
    ]
    (judged,) = judge_lives(lives)
    assert (judged.subjects, judged.missing) == (3, 0)
    assert judge_lives(lives[:1])[0].missing  # two of the planned subjects
    with pytest.raises(NOT_AS_WRITTEN):
        life_from_json({**lives[0], "trials": [lives[0]["trials"][0][:-1]]})


def test_a_run_imports_nothing_of_it(tmp_path: Path) -> None:
    code = (
        "import sys, cheesebench, cheesebench.pytest_session; "
        "cheesebench.run('random', ['t_maze'], design='smoke', seed=1, progress=False); "
        "print([name for name in sys.modules if 'interop' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_silent_model_stops_its_subject() -> None:
    (cell,) = hosted(["t_maze"], settings={"unparsed": "retry-with-feedback"})
    turns = Turns(cell, 0, 0)
    for _ in range(9):
        turns.reply("")
    with pytest.raises(CheeseBenchError, match="10 empty replies in a row"):
        turns.reply("")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"protocols": ["t_mase"]}, "Did you mean 't_maze'"),
        ({"view": "topdown_2d"}, "draws images"),
        ({"agent": "lm"}, "Did you mean 'llm'"),
        ({"settings": {"histori": "3"}}, "Did you mean 'history'"),
    ],
)
def test_mistakes(options: dict[str, object], said: str) -> None:
    with pytest.raises(CheeseBenchError, match=said):
        hosted(**options)  # type: ignore[arg-type]  # on purpose
