"""The key that distinguishes a user's own run from a stranger's."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from cheesebench.errors import OptionError
from cheesebench.experiment.provenance import (
    SIGNATURE,
    _digest,
    _files_of,
    _path,
    check_name,
    differences,
    installation,
    made_here,
    signature,
)

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


def test_installations_differ_by_name() -> None:
    assert differences({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"}) == [
        "a: 1, here none", "c: 3, here 4", "d: none, here 5",
    ]  # fmt: skip
    assert differences({"a": "1"}, {"a": "1"}) == []
    found = installation()
    assert {
        "python",
        "cheesebench",
        "numpy",
        "code of cheesebench",
        "protocols of cheesebench",
    } <= found.keys()
    assert "platform" not in found
    assert len(found["code of cheesebench"]) == 12
    assert found["code of cheesebench"] != found["protocols of cheesebench"]
    assert installation() is found


def test_a_digest_is_that_of_names_and_contents(tmp_path: Path) -> None:
    def digest(**files: str) -> str:
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        for name, text in files.items():
            path = folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return _digest(folder, (".py",))

    plain = digest(a_py="x", sub__b_py="y")
    assert plain == digest(sub__b_py="y", a_py="x")
    assert plain == digest(a_py="x", sub__b_py="y", c_txt="z")
    assert plain != digest(a_py="xy", sub__b_py="")
    assert plain != digest(a_py="x", b_py="y")
    (tmp_path / "0" / "__pycache__").mkdir()
    (tmp_path / "0" / "__pycache__" / "d.py").write_text("z", encoding="utf-8")
    assert _digest(tmp_path / "0", (".py",)) == plain
    (tmp_path / "link").symlink_to(tmp_path / "0")
    assert _digest(tmp_path / "link", (".py",)) == plain
    assert _digest(tmp_path / "0" / "a.py", ()) not in (plain, "no file")
    assert _digest(None, ()) == "no file"


def test_a_plugin_s_files_are_its_package_or_its_module(tmp_path: Path) -> None:
    assert _files_of(pytest) == Path(str(pytest.__file__)).parent
    module = SimpleNamespace(
        __name__="not_loaded.at.all", __file__=str(tmp_path / "one.py")
    )
    assert _files_of(module) == tmp_path / "one.py"
    assert _files_of(object()) is None


@pytest.mark.parametrize("name", ["a", "_", "A-1.b_", "9" * 100])
def test_names_of_files_are_kept(name: str) -> None:
    assert check_name(name, "a run") == name
    for wrong in (f"-{name}", f".{name}", f"{name}/", "9" * 101, "", "ä"):
        with pytest.raises(
            OptionError, match=r"cannot name a run. Use up to 100 letters"
        ):
            check_name(wrong, "a run")


def test_a_relative_place_of_the_key_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for given in ("relative", ""):
        monkeypatch.setenv("XDG_STATE_HOME", given)
        assert _path() == Path.home() / ".local" / "state" / "cheesebench" / "key"
    monkeypatch.setenv("XDG_STATE_HOME", "/there")
    assert _path() == Path("/there/cheesebench/key")
