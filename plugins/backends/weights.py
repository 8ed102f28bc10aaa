"""Finds the GGUF file of a model, and verifies it.

The user may name the file's path, installed packages that hold the file (whole, or in
parts that are joined on first use), or a model hub. A known SHA-256 is verified at each
start, before anything reads the file, because a file from elsewhere could attack its
reader.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cheesebench import (
    BackendContext,
    OptionError,
    PluginError,
    install_command,
    quoted,
)
from cheesebench.plugins.backends.processes import typed

#: Options that say where a file is and what it must hold, with their meanings.
OPTIONS: Mapping[str, str] = {
    "packages": "installed packages that hold the file, whole or in parts, separated by commas (without packages and hub, the "
    "model id is the file's path)",
    "requirements": "requirements file for pip that lists the packages with their hashes",
    "hub": "OWNER/REPO[@REVISION] of the file on a model hub",
    "size": "number of bytes that the file must have",
    "sha256": "SHA-256 that the file must have",
}
#: Prefix of the id of a file on a model hub.
HUB = "hf:"
#: First bytes of every GGUF file.
_MAGIC = b"GGUF"
#: Suffix of a file that holds one part.
_PART = ".bin"
#: Number of bytes that are copied at once.
_BLOCK = 4 * 2**20
#: Seconds between messages on the progress of a download.
_SAY = 5.0
_HUB_ID = re.compile(
    r"(?P<repo>[\w.-]+/[\w.-]+)/(?P<file>[^@]+\.gguf)(?:@(?P<revision>\S+))?"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file in a repository of a model hub. If ``revision`` is None, it is the newest
    one.
    """

    repository: str
    """OWNER/REPO."""
    name: str
    """Path of the file in the repository."""
    revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The file with a model's weights: the checksum and the size that it must have (""
    and None: any), and its sources, which are installed packages or a model hub.
    Without a source, ``name`` is a path.
    """

    model: str
    """Name of the model, for messages."""
    name: str
    sha256: str = ""
    size: int | None = None
    """In bytes."""
    packages: tuple[str, ...] = ()
    """Packages that have the file, or its parts in this order."""
    requirements: str = ""
    """Path, in a clone, of pip's requirements file for the packages."""
    hub: HubFile | None = None
    progress: Callable[[str], None] = field(default=lambda line: None, compare=False)

    @property
    def remedy(self) -> str:
        """What the user can do to get the missing file, or "" if only the hub has it
        and its client is installed.
        """
        ways = []
        if self.packages:
            pip = f"pip install --no-deps {' '.join(self.packages)}"
            if self.requirements:
                pip = f"pip install --no-deps --only-binary :all: --require-hashes -r {self.requirements}"
                pip += " (in a clone)"
            ways.append(pip)
        if self.hub and not _has_hub():
            ways.append(f"{install_command('local')} (to fetch the file from the hub)")
        return " or ".join(ways)

    @property
    def again(self) -> str:
        """What the user can do to replace a wrong file. Without ``--force-reinstall``,
        pip leaves an installed package as it is.
        """
        return self.remedy.replace("pip install", "pip install --force-reinstall", 1)


def weights(context: BackendContext) -> Path:
    """Fetch the GGUF file of a model if necessary, verify it, and return its path.

    Raise OptionError for an invalid id or option, and for a file that cannot be read or
    is of another kind. Raise PluginError for a file that is unavailable or does not
    have the required contents.
    """
    wanted = _wanted(context)
    if wanted.hub or wanted.packages:
        path = _fetched(wanted)
    else:
        path = Path(wanted.name).expanduser()
        _check(path, wanted, "Name the right file.")
    _check_format(path)
    return path


def check(context: BackendContext) -> str:
    """Return where a model's file is, in words, without fetching or joining anything.

    Raise PluginError or OptionError if the file is missing, or is not the required one.
    """
    wanted = _wanted(context)
    if not (wanted.hub or wanted.packages):
        return f"{weights(context)}"
    cached, packaged = _cached(wanted), _in_package(wanted)
    if path := cached or packaged:
        remedy = (
            f"Delete it: {path}." if cached else f"Install it again: {wanted.again}."
        )
        return _checked(path, wanted, remedy)
    if parts := _parts(wanted):
        return f"in installed packages (parts: {len(parts)}), joined on first use"
    if wanted.hub and _has_hub():
        if path := _on_disk(wanted.hub):
            return _checked(path, wanted, f"Delete it: {path}.")
        raise PluginError(
            f"not here; the first run fetches it from the hub ({_megabytes(wanted.size)}{wanted.hub.repository})"
        )
    raise PluginError(f"not here; install it: {wanted.remedy}")


def _checked(path: Path, wanted: Weights, remedy: str) -> str:
    _check(path, wanted, remedy)
    return f"{path}, SHA-256 checked" if wanted.sha256 else f"{path}"


def cache() -> Path:
    """Return this user's folder for joined files."""
    place = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    return Path(place).expanduser() / "cheesebench" / "weights"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wanted(context: BackendContext) -> Weights:
    name, options = context.entry.id, context.options
    listed = options.get("packages") or ()
    packages = listed if isinstance(listed, list | tuple) else str(listed).split(",")
    hub = _hub_of(name, str(options.get("hub") or ""))
    sha256 = str(options.get("sha256") or "").lower()
    if sha256 and not _SHA256.fullmatch(sha256):
        raise OptionError(
            f"The option sha256 must be 64 hexadecimal digits, not '{quoted(sha256, 80)}'."
        )
    size = options.get("size")
    return Weights(
        model=context.entry.name,
        name=name if hub is None else hub.name.rpartition("/")[2],
        sha256=sha256,
        size=None if size is None else typed("size", size, int),
        packages=tuple(str(one).strip() for one in packages),
        requirements=str(options.get("requirements") or ""),
        hub=hub,
        progress=context.progress,
    )


def _hub_of(name: str, repository: str) -> HubFile | None:
    """Return the file on a hub that the model's id or the option ``hub`` names, or
    None.
    """
    if name.startswith(HUB):
        return _hub_file(name)
    place, _, revision = repository.partition("@")
    found = HubFile(repository=place, name=name, revision=revision or None)
    return found if repository else None


def _hub_file(name: str) -> HubFile:
    found = _HUB_ID.fullmatch(name.removeprefix(HUB))
    if found is None:
        raise OptionError(
            f"'{quoted(name, 120)}' names no file on a hub. Write llamacpp/{HUB}OWNER/REPO/FILE.gguf, or "
            "FILE.gguf@REVISION if it is not the newest."
        )
    return HubFile(
        repository=found["repo"], name=found["file"], revision=found["revision"]
    )


def _fetched(wanted: Weights) -> Path:
    """Return the verified file from the first place that has it. Raise PluginError if
    no place has it, or it is not the required file, and OptionError if it cannot be
    read, or comes in parts without a SHA-256.
    """
    if path := _cached(wanted):
        with _removed_unless_right(path):
            _check(
                path, wanted, "The file has been deleted. Run again to make a new one."
            )
        return path
    if path := _in_package(wanted):
        _check(path, wanted, f"Install it again: {wanted.again}.")
        return path
    if parts := _parts(wanted):
        return _joined(wanted, parts)
    if wanted.hub and _has_hub():
        return _downloaded(wanted, wanted.hub)
    raise PluginError(
        f"The weights of '{wanted.model}' ({_megabytes(wanted.size)}{wanted.name}) are not installed. Install them: "
        f"{wanted.remedy}"
    )


def _cached(wanted: Weights) -> Path | None:
    """Return the file that an earlier run joined, or None if there is none, or no
    SHA-256 to verify it.
    """
    path = cache() / wanted.name
    return path if wanted.sha256 and path.is_file() else None


def _in_package(wanted: Weights) -> Path | None:
    """Return the file in an installed package that has it whole, or None."""
    for package in wanted.packages:
        for path in _files(package) or ():
            if path.name == wanted.name:
                return path
    return None


def _parts(wanted: Weights) -> list[Path]:
    """Return the files to join, in order, or an empty list if no package is installed.
    Raise PluginError if a package has no part, and OptionError if no SHA-256 is given.
    """
    if not wanted.packages:
        return []
    found = {package: _files(package) for package in wanted.packages}
    if not any(files is not None for files in found.values()):
        return []
    parts = {
        package: sorted(path for path in files or () if path.suffix == _PART)
        for package, files in found.items()
    }
    if missing := [package for package, paths in parts.items() if not paths]:
        raise PluginError(
            f"The weights of '{wanted.model}' are incomplete: no part is installed from {', '.join(missing)}. Install "
            f"them: {wanted.again}"
        )
    if not wanted.sha256:
        raise OptionError(
            f"The weights of '{wanted.model}' come in parts, but nothing says what the parts must add up to. Give the "
            "option sha256."
        )
    return [path for paths in parts.values() for path in paths]


def _files(package: str) -> list[Path] | None:
    """Return a package's files that exist, or None if the package is not installed."""
    try:
        files = importlib.metadata.distribution(package).files or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    return [path for file in files if (path := Path(str(file.locate()))).is_file()]


def _joined(wanted: Weights, parts: Iterable[Path]) -> Path:
    """Join parts in the cache, unless another process has done so. Only a verified file
    stays there.
    """
    folder = cache()
    path = folder / wanted.name
    with _explained(wanted, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            if not path.is_file():
                _check_room(folder, wanted)
                wanted.progress(
                    f"Joining the weights of {wanted.model}{_in_words(wanted.size)} in {folder}; this is done once."
                )
                _join(path, wanted, parts)
    return path


def _join(path: Path, wanted: Weights, parts: Iterable[Path]) -> None:
    # The name is always the same, so that the next attempt overwrites what a killed
    # process has left.
    unfinished = path.with_name(f"{path.name}.part")
    with _removed_unless_right(unfinished):
        with unfinished.open("wb") as file:
            for part in parts:
                file.writelines(_blocks(part, wanted))
            os.fsync(file.fileno())
        _check(unfinished, wanted, f"Nothing is kept. Install it again: {wanted.again}")
        unfinished.replace(path)


def _blocks(part: Path, wanted: Weights) -> Iterator[bytes]:
    try:
        with part.open("rb") as source:
            while block := source.read(_BLOCK):
                yield block
    except OSError as error:
        raise PluginError(
            f"A part of the weights of '{wanted.model}', {quoted(str(part), 200)}, cannot be read: {error.strerror}. "
            f"Install it again: {wanted.again}"
        ) from None


@contextmanager
def _removed_unless_right(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time write into a folder."""
    # Servers are not started on Windows, so no lock is needed there.
    if sys.platform == "win32":
        yield
        return

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _explained(wanted: Weights, folder: Path) -> Iterator[None]:
    """Convert a disk error in the block to a PluginError with a remedy."""
    try:
        yield
    except OSError as error:
        raise PluginError(
            f"The weights of '{wanted.model}' cannot be written to {quoted(str(folder), 200)}: {error.strerror}. "
            "Make room there and make it writable, or name another directory (XDG_CACHE_HOME)."
        ) from None


def _check_room(folder: Path, wanted: Weights) -> None:
    free = shutil.disk_usage(folder).free
    if wanted.size and wanted.size > free:
        raise PluginError(
            f"The weights of '{wanted.model}' take {wanted.size / 1e6:,.0f} MB, but {quoted(str(folder), 200)} has only "
            f"{free / 1e6:,.0f} MB left. Make room there, or name another directory (XDG_CACHE_HOME)."
        )


def _check(path: Path, wanted: Weights, remedy: str) -> None:
    """Raise PluginError, with ``remedy`` at the end of its message, unless a file has
    the required size and contents. Raise OptionError if the file cannot be read. If
    neither is required, check nothing.
    """
    if not wanted.sha256 and wanted.size is None:
        return
    try:
        size = path.stat().st_size
        found = ""
        if wanted.size is not None and size != wanted.size:
            found = f"{size:,} bytes, not {wanted.size:,}"
        elif wanted.sha256 and (given := digest(path)) != wanted.sha256:
            found = f"the SHA-256 {given}, not {wanted.sha256}"
    except OSError as error:
        raise _unreadable(path, error) from None
    if found:
        raise PluginError(
            f"The weights of '{wanted.model}' are not the required ones: {quoted(str(path), 200)} has {found}. "
            f"{remedy}"
        )


def _check_format(path: Path) -> None:
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_MAGIC))
    except OSError as error:
        raise _unreadable(path, error) from None
    if beginning != _MAGIC:
        raise OptionError(
            f"{quoted(str(path), 200)} is not a GGUF file (its first bytes are {beginning!r}). llama.cpp's "
            "convert_hf_to_gguf.py makes one from other formats."
        )


def _unreadable(path: Path, error: OSError) -> OptionError:
    return OptionError(
        f"The model file {quoted(str(path), 200)} cannot be read: {error.strerror}. Check its path and "
        "permissions; a GGUF file is named as in --model llamacpp/models/my-model.gguf."
    )


def _has_hub() -> bool:
    return importlib.util.find_spec("huggingface_hub") is not None


def _hub_client() -> Any:
    return importlib.import_module("huggingface_hub")


def _on_disk(hub: HubFile) -> Path | None:
    """Return the file in the hub's own cache, or None if it is not there."""
    found = _hub_client().try_to_load_from_cache(
        hub.repository, hub.name, revision=hub.revision
    )
    return Path(found) if isinstance(found, str) else None


def _downloaded(wanted: Weights, hub: HubFile) -> Path:
    """Return the verified file in the hub's cache, downloading it if necessary. Raise
    PluginError if the download fails, or the file is not the required one.
    """
    before, path = _on_disk(hub), _download(wanted, hub)
    right = wanted
    if not wanted.sha256 and _SHA256.fullmatch(path.resolve().name):
        # The hub's cache names a large file by its hash.
        right = Weights(
            model=wanted.model, name=wanted.name, sha256=path.resolve().name
        )
    if before == path:
        _check(path, right, f"Delete it: {path.resolve()}.")
        return path
    try:
        _check(path, right, "The file has been deleted. Run again to fetch a new one.")
    except BaseException:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise
    return path


def _download(wanted: Weights, hub: HubFile) -> Path:
    try:
        return Path(
            _hub_client().hf_hub_download(
                hub.repository,
                hub.name,
                revision=hub.revision,
                library_name="cheesebench",
                tqdm_class=_bar(wanted.progress),
            )
        )
    # The hub's HTTP client raises different exceptions in different versions.
    except Exception as error:
        other = f", or: {wanted.remedy}" if wanted.remedy else "."
        raise PluginError(
            f"The weights of '{wanted.model}' could not be fetched from the hub (https://huggingface.co, or the "
            f"address in HF_ENDPOINT): {quoted(str(error).strip() or type(error).__name__, 200)}. Nothing is kept. "
            f"Try again{other}"
        ) from None


def _bar(progress: Callable[[str], None]) -> Any:
    """Return a progress bar class for the hub's client. Once bytes have arrived, it
    calls ``progress`` with a line whenever the bar is drawn.
    """
    base: Any = _hub_client().utils.tqdm

    class Bar(base):  # type: ignore[misc]
        def __init__(self, *values: Any, **settings: Any) -> None:
            # Show lines even without a terminal.
            settings |= {"mininterval": _SAY, "disable": bool(settings.get("disable"))}
            super().__init__(*values, **settings)

        def display(self, msg: str | None = None, pos: int | None = None) -> None:
            if self.n:
                progress(msg or str(self))

    return Bar


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.0f} MB, "


def _in_words(size: int | None) -> str:
    return "" if size is None else f" ({size / 1e6:,.0f} MB)"
