"""The key that distinguishes a user's own run from a stranger's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cheesebench.experiment.provenance import SIGNATURE, made_here, signature

MANIFEST = {
    "run_id": "one",
    "created": "now",
    "options": {"base_url": "http://127.0.0.1:1/v1", "seed": 0},
}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "cheesebench" / "key"


def signed() -> dict[str, object]:
    return {**MANIFEST, SIGNATURE: signature(MANIFEST)}


def test_a_signed_manifest_is_ones_own_until_anything_that_is_signed_is_changed() -> (
    None
):
    manifest = signed()
    assert made_here(manifest)
    assert made_here({**manifest, "protocols": {}}), "workers add protocols later"
    for name, value in {
        "run_id": "two",
        "created": "then",
        "options": {"base_url": "http://evil/v1"},
    }.items():
        assert not made_here({**manifest, name: value})
    for forged in (None, 5, "", "\ud800", "0" * 64):
        assert not made_here({**manifest, SIGNATURE: forged})


def test_the_key_is_made_once_and_readable_by_its_owner_only(state: Path) -> None:
    assert not made_here({**MANIFEST, SIGNATURE: "0" * 64})
    assert not state.exists()
    signed()
    before = state.read_bytes()
    signed()
    assert state.read_bytes() == before
    assert [path.name for path in state.parent.iterdir()] == ["key"]
    assert state.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs and no owners here")
@pytest.mark.parametrize(
    "kind", ["open to all", "a link", "a FIFO", "short", "a directory"]
)
def test_a_key_that_others_may_know_counts_for_nothing(state: Path, kind: str) -> None:
    manifest = signed()
    if kind == "open to all":
        state.chmod(0o644)
    else:
        other = state.rename(state.with_name("other"))
        match kind:
            case "a link":
                state.symlink_to(other)
            case "a FIFO":
                os.mkfifo(state)
            case "short":
                state.write_bytes(b"")
            case _:
                state.mkdir()
    assert not made_here(manifest)
    assert signature(MANIFEST) is None
