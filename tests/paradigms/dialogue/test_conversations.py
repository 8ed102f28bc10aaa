"""What is told of a dialogue that failed: questions, replies and right answers."""

from __future__ import annotations

from pathlib import Path

import cheesebench
from cheesebench.commands.common import installed_catalogue
from cheesebench.experiment.log import RunLog
from cheesebench.paradigms.dialogue.life import conversation
from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from tests.stored import check_stored


def test_a_failed_dialogue_is_told_with_its_right_answers(tmp_path: Path) -> None:
    done = cheesebench.run(
        "random-walk", ["cogeval_n7tree"], design="cohort", subjects=1, seed=3,
        results=tmp_path, progress=False,
    )  # fmt: skip
    specification = installed_catalogue().find("cogeval_n7tree")
    assert isinstance(specification, DialogueSpecification)
    told, failed = [], 0
    with RunLog.open_read_only(done.directory) as log:
        for record in log.trials():
            if not record.success:
                failed += 1
                if failed % 20 == 1:
                    told.append(conversation(log, specification, record))
    check_stored("failed_dialogues.txt", "\n\n".join(told) + "\n")
