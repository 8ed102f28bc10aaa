"""What a study varies, in words."""

from __future__ import annotations

import pytest

from cheesebench.cli import main
from cheesebench.commands.study import varies
from cheesebench.family import Study


def test_axes_views_and_models_are_named_if_they_vary() -> None:
    one = Study("s", "A study", axes={"history": (0, 3)}, views=("a",), models=("m",))
    assert varies(one) == "history: 0, 3"
    two = Study("s", "A study", axes={"x": ("y",)}, views=("a", "b"), models=("m", "n"))
    assert varies(two) == "x: y; view: a, b; model: m, n"
    assert varies(Study("s", "A study")) == ""


def test_every_study_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["study", "what", "is", "varied", "title"]
    assert len(rows) > 2
