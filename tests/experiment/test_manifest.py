from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment.language_models import record_servers
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.provenance import (
    check_run_id,
    describe_run,
    git_state,
    new_run_id,
)


def test_new_run_ids_differ_and_are_valid() -> None:
    ids = {check_run_id(new_run_id()) for _ in range(20)}
    assert len(ids) > 1


@pytest.mark.parametrize(
    "run_id",
    ["", ".hidden", "../up", "a/b", "a\\b", "a b", "é", "x" * 101, "a\n", "-x"],
)
def test_a_run_id_must_be_able_to_name_a_directory(run_id: str) -> None:
    with pytest.raises(OptionError, match=r"--run-id .* cannot name a run"):
        check_run_id(run_id)


def test_the_manifest_is_json_and_holds_no_environment(
    stranger: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHEESE_TEST_API_KEY", "sk-very-secret")
    specification = stranger.corridor()
    manifest = describe_run("r1", [specification], {"seed": 5})
    assert json.loads(json.dumps(manifest)) == manifest
    assert manifest["options"] == {"seed": 5}
    assert manifest["protocols"]["corridor"]["sha256"] == specification.sha256
    assert manifest["protocols"]["corridor"]["text"] == specification.text
    assert {"python", "cheesebench", "gymnasium", "numpy", "scipy", "platform"} <= set(
        manifest["versions"]
    )
    assert "sk-very-secret" not in json.dumps(manifest)


def test_git_tells_revision_and_changes(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
        subprocess.run(
            ("git", *identity, *arguments),
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )

    git("init")
    assert git_state(tmp_path) is None  # no commit yet
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "one")
    clean = git_state(tmp_path)
    assert clean is not None
    assert len(clean["revision"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "file").write_text("2")
    assert git_state(tmp_path) == {**clean, "dirty": True}


def test_no_repository_and_no_git_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) is None


def test_no_program_named_by_a_work_tree_is_started(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(
        f"#!/bin/sh\necho $0 >> {tmp_path}/started\ncat\n", encoding="utf-8"
    )
    program.chmod(0o755)

    def git(place: Path, *arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(
            ["git", *identity, *arguments], cwd=place, check=True, capture_output=True
        )

    outer, inner, part = tmp_path / "outer", tmp_path / "outer/inner", tmp_path / "part"
    for tree in (outer, inner, part):
        tree.mkdir()
        git(tree, "init", "-q")
        (tree / ".gitattributes").write_text("*.txt filter=theirs\n", encoding="utf-8")
        (tree / "a.txt").write_text("one", encoding="utf-8")
    for tree in (inner, outer, part):
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", "one")
        git(tree, "config", "filter.theirs.clean", str(program))
        git(tree, "config", "filter.theirs.required", "true")
    # A commit whose tree is elsewhere: git would fetch it with a program that the
    # repository names.
    (objects,) = (one for one in part.glob(".git/objects/*/*") if _is_tree(part, one))
    objects.unlink()
    git(part, "config", "extensions.partialClone", "origin")
    git(part, "config", "core.repositoryFormatVersion", "1")
    for key, value in {
        "url": str(outer),
        "promisor": "true",
        "uploadpack": str(program),
    }.items():
        git(part, "config", f"remote.origin.{key}", value)
    for tree in (outer, inner):
        (tree / "a.txt").write_text("two", encoding="utf-8")
        git(tree, "config", "core.fsmonitor", str(program))
    state = git_state(outer)
    assert state is not None
    assert state["dirty"] is True
    assert git_state(part) is None
    assert not (tmp_path / "started").exists()


def _is_tree(place: Path, path: Path) -> bool:
    name = path.parent.name + path.name
    return (
        subprocess.check_output(
            ["git", "cat-file", "-t", name], cwd=place, text=True
        ).strip()
        == "tree"
    )


class Weights:
    """A server that reports the weights it runs."""

    base_url = "http://127.0.0.1:1/v1"

    def __init__(self, digest: str) -> None:
        self.facts = {"file": "x.gguf", "bytes": 1234, "sha256": digest, "slots": 1}

    def stop(self) -> None:
        pass


def test_a_run_goes_on_only_with_the_weights_that_it_was_started_with(
    tmp_path: Path,
) -> None:
    with RunLog.create(tmp_path, "one", [], options={"seed": 0}) as log:
        for _ in range(2):
            record_servers(log, {"tiny": Weights("a" * 64)})
        assert log.manifest["servers"] == {"tiny": Weights("a" * 64).facts}
        record_servers(log, {})
        with pytest.raises(RunLogError, match="weights of 'tiny' have changed") as one:
            record_servers(log, {"tiny": Weights("b" * 64)})
        assert "aaaaaaaaaaaa, 1,234 bytes then, SHA-256 bbbbbbbbbbbb" in str(one.value)
        record_servers(log, {"other": Weights("b" * 64)})
        assert set(log.manifest["servers"]) == {"tiny", "other"}
