from __future__ import annotations

import pytest

from cheesebench.redaction import REDACTED, redact


def test_values_of_secret_variables_and_what_looks_like_a_key_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "correct horse battery")
    monkeypatch.setenv("SHORT_TOKEN", "maze")
    text = "401: correct horse battery; Authorization: Bearer abcdefgh12345; sk-proj-0123456789abcdef in the maze"
    assert redact(text) == f"401: {REDACTED}; Authorization: Bearer {REDACTED}; {REDACTED} in the maze"


@pytest.mark.parametrize("text", ["", "an ordinary task-list", "risk-averse-subjects-of-the-maze", "sk-1"])
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text
