"""What ``canary`` says of an answer, and its exit code."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from cheesebench import canary
from cheesebench.cli import main
from cheesebench.commands import canary as command

WHOLE = canary.HIDDEN


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"a": f"It is {WHOLE}."}, 1),
        ({"a": "no", "b": WHOLE}, 1),
        ({"a": "no idea"}, 0),
    ],
)
def test_a_model_that_completes_the_string_has_read_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: dict[str, str],
    code: int,
) -> None:
    models = dict.fromkeys(answers, SimpleNamespace())
    monkeypatch.setattr(command, "language_models", lambda *given: models)
    monkeypatch.setattr(command, "answers", lambda models, question, tell: answers)
    asked = ["canary", *(part for name in answers for part in ("--model", name))]
    assert main(asked) == code
    lines = capsys.readouterr().out.splitlines()
    for line, (name, text) in zip(lines, answers.items(), strict=True):
        said = (
            f"completes {len(WHOLE)} of {len(WHOLE)} characters: it has read"
            if WHOLE in text
            else "does not complete it."
        )
        assert line.startswith(f"{name}: {said}")
    assert main([*asked, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert {name: one["answer"] for name, one in found.items()} == answers
    assert {name: one["characters"] for name, one in found.items()} == {
        name: len(WHOLE) if WHOLE in text else 0 for name, text in answers.items()
    }


def test_a_long_answer_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "language_models", lambda *given: {"a": 1})
    monkeypatch.setattr(command, "answers", lambda *given: {"a": "x" * 500})
    assert main(["canary", "--model", "a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a"]["answer"] == "x" * command.SHOWN
    assert command.SHOWN == 200


def test_only_a_language_model_can_complete_a_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "language_models", lambda *given: {})
    assert main(["canary", "--model", "random"]) == 2
    assert "'random' is not a language model" in capsys.readouterr().err
    assert main(["canary"]) == 0
    assert capsys.readouterr().out.strip() == canary.CANARY
    assert main(["canary", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"canary": canary.CANARY}
