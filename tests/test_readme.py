"""The README's links are valid; ``tests/docs/test_pages.py`` runs its commands and
blocks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

from cheesebench.cli import main
from website import learning

ROOT = Path(__file__).parents[1]


def test_links_lead_somewhere() -> None:
    for link in re.findall(
        r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8")
    ):
        assert (ROOT / link).exists(), link


@pytest.mark.slow
def test_the_picture_is_what_its_script_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pictures(path: Path) -> list[bytes]:
        with Image.open(path) as film:
            return [
                one.convert("RGB").tobytes() for one in ImageSequence.Iterator(film)
            ]

    kept = pictures(learning.PICTURE)
    monkeypatch.setattr(learning, "PICTURE", tmp_path / "again.gif")
    learning.main()
    assert pictures(learning.PICTURE) == kept


def test_a_command_does_what_its_comment_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The comment says that ``trace`` shows the rules that fire, so its actions must
    make one fire.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [(command, said)] = re.findall(r"^cheesebench (trace .*?) +# (.*)$", text, re.M)
    assert said == "what each step did, and which rule fired"
    assert main(command.split()) == 0
    assert re.search(r"protocol\.yaml:\d+:", capsys.readouterr().out)
