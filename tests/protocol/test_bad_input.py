"""Files that once broke or stalled the loader: each is an error with a place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.errors import ProtocolError
from cheesebench.protocol import Catalogue
from cheesebench.protocol.documents import MAX_ROWS
from cheesebench.protocol.resolve import MAX_TRIALS
from tests.arenas import examine_text

MAZE = """
version: 1
paradigm: little
dimension: patience
arena: {map: "#####\\n#S.E#\\n#####", legend: {S: box, E: goal}}
start: {at: box, face: E}
draw: {side: DRAW}
trial:
  limit: 5
  start: run
  states: {run: {rules: [{enter: goal, reward: 1, end: found, if: side == 1}, {enter: goal, end: lost}]}}
schedule: {main: {sessions: 1, trials: TRIALS}, more: {trials: 5}}
measures: {m: MEASURE}
success: last == found
"""


def codes(**changes: str) -> set[int]:
    text = MAZE
    for name, value in {
        "DRAW": "{of: {side: [1, 2]}}",
        "TRIALS": "3",
        "MEASURE": "steps",
        **changes,
    }.items():
        text = text.replace(name, value)
    return {found.code for found in examine_text(text)[1] if found.severity == "error"}


def test_the_file_is_sound_as_it_is() -> None:
    assert codes() == set()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"MEASURE": "[]"}, 123),
        (
            {
                "DRAW": f"{{of: {{side: [1, 2]}}, order: shuffle, copies: {MAX_ROWS // 2 + 1}}}"
            },
            206,
        ),
        ({"TRIALS": str(MAX_TRIALS)}, 224),
        ({"TRIALS": "1000000"}, 123),
    ],
)
def test_what_would_never_end_or_fit_is_refused(
    changes: dict[str, str], code: int
) -> None:
    assert code in codes(**changes)


@pytest.mark.parametrize("changes", [{"TRIALS": str(MAX_TRIALS - 5)}])
def test_the_largest_that_fits_is_taken(changes: dict[str, str]) -> None:
    assert codes(**changes) == set()


@pytest.mark.parametrize(
    "text", ["u\np: |", "a: >\n  ", "p: |\n\n u\nx", '"\np: |-', "- p: |\n:"]
)
def test_a_block_without_a_line_is_a_syntax_error(text: str) -> None:
    specification, found = examine_text(text)
    assert specification is None
    assert found


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_links_in_a_circle_and_fifos_are_errors_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.protocol.yaml")
    Path("self.protocol.yaml").symlink_to("self.protocol.yaml")
    Path("here").symlink_to(".")
    for name in ("pipe", "self"):
        with pytest.raises(
            ProtocolError,
            match=f"{name}.protocol.yaml:1:1: error E101: The file cannot be read",
        ):
            Catalogue([tmp_path]).load(tmp_path / f"{name}.protocol.yaml")
    assert main(["lint", "."]) in (1, 2)
    assert "error E101" in "".join(capsys.readouterr())
