"""What ``view`` serves, and where."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.cli import main
from cheesebench.server import http_guard


@pytest.mark.parametrize(("more", "opens"), [((), False), (("--open",), True)])
def test_the_address_has_a_secret_and_may_be_opened(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    opens: bool,
) -> None:
    opened: list[str] = []

    def serve(serving: Any, begun: Callable[[int], None]) -> None:
        begun(8123)

    monkeypatch.setattr(http_guard, "serve", serve)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert main(["view", "--results", str(tmp_path), *more]) == 0
    address, end = capsys.readouterr().out.splitlines()
    assert address.startswith("http://127.0.0.1:8123/")
    assert len(address) > 40
    assert end == "Ctrl-C stops the server."
    assert opened == ([address] if opens else [])


def test_runs_are_in_a_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", "--results", str(tmp_path / "nowhere")]) == 2
    assert "There is no directory" in capsys.readouterr().err
