"""Messages for a user who lacks an optional dependency."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cheesebench.extras import install_command

DISTRIBUTION = "pytest-cheesebench"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The record of the source of the only installation."""
    folder = tmp_path / f"{DISTRIBUTION.replace('-', '_')}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 1.0\n", encoding="utf-8"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return folder / "direct_url.json"


@pytest.mark.parametrize(("editable", "flag"), [(True, "-e "), (False, "")])
def test_what_came_from_a_clone_is_installed_from_there(
    record: Path, tmp_path: Path, editable: bool, flag: str
) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    record.write_text(
        json.dumps({"url": clone.as_uri(), "dir_info": {"editable": editable}}),
        encoding="utf-8",
    )
    assert install_command("pandas") == f"pip install {flag}'{clone}[pandas]'"


def test_else_from_the_package_index(record: Path, tmp_path: Path) -> None:
    released = f"pip install '{DISTRIBUTION}[pandas]'"
    assert install_command("pandas") == released
    record.write_text(
        json.dumps({"url": (tmp_path / "removed").as_uri(), "dir_info": {}}),
        encoding="utf-8",
    )
    assert install_command("pandas") == released
