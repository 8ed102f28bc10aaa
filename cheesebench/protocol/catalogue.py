"""Finds and loads protocols by file, folder or id, with their parents (``extends``)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.diagnostics import (
    Diagnostic,
    Diagnostics,
    EnoughFindingsError,
    in_file_order,
)
from cheesebench.errors import (
    PluginError,
    ProtocolError,
    UnknownNameError,
    did_you_mean,
)
from cheesebench.files import read_bytes
from cheesebench.interface_checks import blaming, returned
from cheesebench.interfaces import DEFAULT_EDITION, BaseSpecification
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol.documents import is_protocol_name
from cheesebench.protocol.specification import Specification, with_arena
from cheesebench.source import (
    DUPLICATE_KEY,
    MAX_BYTES,
    Node,
    read_file,
    read_text,
    real_path,
)

if TYPE_CHECKING:
    from cheesebench.family import Family

#: A function that takes a parent's name and the child's path, and returns the path of
#: the parent's file, or None.
FindParent = Callable[[str, Path], Path | None]
#: Suffix of protocol files.
SUFFIX = ".protocol.yaml"
#: Maximum length of a chain of ``extends``.
MAX_GENERATIONS = 10


def merge(parent: Node, child: Node) -> Node:
    """Return the child merged over the parent. Every value keeps its position in its
    own file. A null in the child deletes the parent's key.
    """
    if not (isinstance(parent.value, Mapping) and isinstance(child.value, Mapping)):
        return child
    children, keys = dict(parent.value), dict(parent.keys)
    for key, node in child.value.items():
        inherited = children.get(key)
        if node.value is None and inherited is not None:
            children.pop(key)
            continue
        children[key] = merge(inherited, node) if inherited is not None else node
        keys[key] = child.keys[key]
    return Node(children, child.position, keys)


def file_names(name: str) -> list[str]:
    """Return the possible file names of ``id`` or ``id@edition``, the most likely name
    first.
    """
    stem, _, edition = name.partition("@")
    return [f"{stem}.{edition}{SUFFIX}"] * bool(edition) + [f"{stem}{SUFFIX}"] * (
        edition in ("", DEFAULT_EDITION)
    )


def protocol_name(stem: str) -> str:
    """Return the name by which ``extends`` refers to a file with this stem:
    ``t_maze.rodent`` becomes ``t_maze@rodent``.
    """
    return stem.replace(".", "@", 1)


def _how_to_write(name: object) -> str:
    if isinstance(name, str) and is_protocol_name(
        meant := protocol_name(name.removesuffix(SUFFIX))
    ):
        return f"Write {meant}."
    if isinstance(name, list) and len(name) > 1:
        return "A protocol has one parent: name one, and copy what you need from the others."
    return "Write its id, or id@edition."


def _path_of_parent(
    extends: Node,
    find: FindParent,
    known: Callable[[], list[str]],
    diagnostics: Diagnostics,
) -> Path | None:
    """Return the file that `extends` names. If there is none, report this and return
    None.
    """
    name = extends.value
    if not isinstance(name, str) or not is_protocol_name(name):
        diagnostics.error(
            150,
            extends.position,
            "'extends' must name one protocol.",
            _how_to_write(name),
        )
        return None
    path = find(name, Path(extends.position.file))
    if path is None:
        where = (
            f"Put {file_names(name)[0]} into the same folder, or install its plugin."
        )
        hint = did_you_mean(name, known()).strip() or where
        sentence = f"The parent protocol '{name}' is unknown."
        diagnostics.error(150, extends.position, sentence, hint)
    return path


def resolve_parents(
    root: Node,
    path: Path,
    find: FindParent,
    known: Callable[[], list[str]],
    diagnostics: Diagnostics,
) -> tuple[Node, list[str]] | None:
    """Merge a protocol over its ancestors.

    Return the merged tree and the ids of the ancestors, the nearest first. If an
    ancestor cannot be read, or the chain of ancestors is circular or too long, report
    this and return None.
    """
    ancestors: list[str] = []
    merged, seen = root, {real_path(path)}
    while (
        extends := merged.child("extends")
    ) is not None and extends.value is not None:
        parent_path = _path_of_parent(extends, find, known, diagnostics)
        if parent_path is None:
            return None
        name = str(extends.value)
        if real_path(parent_path) in seen:
            diagnostics.error(
                150,
                extends.position,
                f"'{name}' extends itself, directly or through its parents.",
                "Remove one 'extends'.",
            )
            return None
        if len(seen) > MAX_GENERATIONS:
            sentence = (
                f"There are more than {MAX_GENERATIONS} generations of protocols."
            )
            diagnostics.error(150, extends.position, sentence, "Extend an earlier one.")
            return None
        seen.add(real_path(parent_path))
        parent = read_file(parent_path, diagnostics)
        if parent is None:
            return None
        ancestors.append(name)
        own = Node(
            {k: v for k, v in merged.value.items() if k != "extends"},  # type: ignore[union-attr]
            merged.position,
            merged.keys,
        )
        merged = merge(parent, own)
    return merged, ancestors


def _meant(code: str) -> str:
    """Return the likely code as a remedy, or "" if this code exists, or none is
    likely.
    """
    known = Diagnostics.labels()
    return "" if code in known else did_you_mean(code, known).strip()


def _acknowledge(tree: Node, path: Path, diagnostics: Diagnostics) -> None:
    """Drop the warnings and notes that the protocol acknowledges. Report a missing
    reason (123), and warn (343) of a code without a finding.
    """
    reasons = tree.child("acknowledged")
    if diagnostics.errors or reasons is None or not isinstance(reasons.value, Mapping):
        return
    for code, reason in reasons.value.items():
        place = reasons.key_position(code)
        if not str(reason.value).strip():
            diagnostics.error(
                123,
                place,
                f"'{code}' is acknowledged without a reason.",
                "Write why it is meant, or cannot be mended.",
            )
        elif not diagnostics.drop(code):
            sentence = f"'{code}' is acknowledged, but there is no such finding."
            remedy = "Remove it."
            if place.file != str(path):
                remedy = f"Write 'acknowledged: {{{code}: null}}' in {path.name}."
            diagnostics.warning(343, place, sentence, _meant(code) or remedy)


class Catalogue:
    """The protocols of some folders, by id. A file in a later folder replaces the file
    of the same name in an earlier folder.

    ``families`` read the files. They are given by name, and the last is asked first.
    None: the installed families.
    """

    def __init__(
        self,
        directories: Iterable[Path] = (),
        families: Mapping[str, Family[Any, Any]] | None = None,
    ) -> None:
        self.directories = [Path(directory) for directory in directories]
        self._families = None if families is None else list(families.values())[::-1]
        self._files: dict[str, Path] | None = None
        self._loaded: dict[Path, BaseSpecification] = {}
        #: Sentences about files that are used instead of other files of the same name.
        self.shadowed: list[str] = []

    @property
    def files(self) -> dict[str, Path]:
        """All protocol files by stem (``t_maze`` for ``t_maze.protocol.yaml``), sorted
        by folder and name.
        """
        if self._files is None:
            self._files = {}
            for directory in self.directories:
                for path in sorted(directory.glob(f"*{SUFFIX}")):
                    stem = path.name.removesuffix(SUFFIX)
                    if stem in self._files:
                        self._say_shadowed(self._files[stem], path)
                    self._files[stem] = path
        return self._files

    def _say_shadowed(self, hidden: Path | str, used: Path | str) -> None:
        sentence = f"{used} is used instead of {hidden}."
        if sentence not in self.shadowed:
            self.shadowed.append(sentence)

    @property
    def folders(self) -> dict[str, Path]:
        """The folders of protocols that run together, by name. Later directories take
        precedence.
        """
        return {
            folder.name: folder
            for directory in self.directories
            if directory.is_dir()
            for folder in sorted(directory.iterdir())
            if folder.is_dir() and any(folder.glob(f"*{SUFFIX}"))
        }

    def inside(self) -> list[Path]:
        return [
            path
            for folder in self.folders.values()
            for path in sorted(folder.glob(f"*{SUFFIX}"))
        ]

    @property
    def families(self) -> Sequence[Family[Any, Any]]:
        """The families, in the order in which they are asked whether a file is
        theirs.
        """
        if self._families is None:
            self._families = list(installed_plugins().families.values())[::-1]
        return self._families

    def load(self, path: Path) -> BaseSpecification:
        """Load one file. Raise ProtocolError with all of its errors, or PluginError if
        no plugin handles it, or the plugin that does so fails.
        """
        path = Path(path)
        if path not in self._loaded:
            specification, found = self.inspect(path)
            if specification is None:
                raise ProtocolError(
                    findings=[d for d in found if d.severity == "error"]
                )
            self._loaded[path] = specification
        return self._loaded[path]

    def inspect(self, path: Path) -> tuple[BaseSpecification | None, list[Diagnostic]]:
        """Load one file. Return the specification (None if there are errors) and all
        findings, in the order of the file. Raise PluginError as ``load`` does.
        """
        diagnostics = Diagnostics()
        root = read_file(Path(path), diagnostics)
        return self._finish(root, Path(path), diagnostics)

    def inspect_text(
        self, text: str, file: str = "<text>"
    ) -> tuple[BaseSpecification | None, list[Diagnostic]]:
        """Do the same as ``inspect`` for a text that is not in a file."""
        diagnostics = Diagnostics()
        return self._finish(read_text(text, file, diagnostics), Path(file), diagnostics)

    def _finish(
        self, root: Node | None, path: Path, diagnostics: Diagnostics
    ) -> tuple[BaseSpecification | None, list[Diagnostic]]:
        specification = None
        if root is not None:
            with contextlib.suppress(EnoughFindingsError):
                specification = self._specify(root, path, diagnostics)
        found = in_file_order(diagnostics.found)
        return (None if diagnostics.errors else specification), found

    def _specify(
        self, root: Node, path: Path, diagnostics: Diagnostics
    ) -> BaseSpecification | None:
        merged = resolve_parents(
            root, path, self._parent, lambda: self._parents(path), diagnostics
        )
        # A duplicate key does no harm here, but any other YAML error would cause false
        # errors.
        if merged is None or any(
            error.code != DUPLICATE_KEY for error in diagnostics.errors
        ):
            return None
        tree, ancestors = merged
        family = next(
            (family for family in self.families if _matches(family, tree)), None
        )
        if family is None:
            known = ", ".join(sorted(one.name for one in self.families)) or "none"
            raise PluginError(
                f"{path}: no plugin handles this kind of protocol (families: {known}). Install the plugin that does."
            )
        with blaming(who := f"{path}: the family '{family.name}': load"):
            loaded = family.load(tree, path, ancestors, diagnostics)
            if loaded is None and not diagnostics.errors:
                raise PluginError(
                    f"{who} returned None without an error. Report one: diagnostics.error(900, ...)."
                )
        if loaded is None:
            return None
        specification = returned(loaded, BaseSpecification, who)
        self._warn_of_namesake(specification, tree, path, diagnostics)
        _acknowledge(tree, path, diagnostics)
        return specification

    def _warn_of_namesake(
        self, own: BaseSpecification, tree: Node, path: Path, diagnostics: Diagnostics
    ) -> None:
        """Warn (318) of a user's file with the name of an installed protocol, or of the
        protocol that it extends.
        """
        if own.ancestors:
            _warn_of_edition(own, tree, path, diagnostics)
            return
        installed = [*self.files.values(), *self.inside()]
        here = real_path(path.parent)
        # Files of frozen sets are in folders of these directories.
        if any(here.is_relative_to(real_path(one)) for one in self.directories):
            return
        if any(
            protocol_name(file.name.removesuffix(SUFFIX)) == own.name
            for file in installed
        ):
            sentence = (
                f"A protocol called '{own.name}' is already installed, and its name runs the installed protocol, not "
                "this file."
            )
            remedy = f"Write 'paradigm: my_{own.paradigm}', or add 'edition: mine'. Then run this file by its path."
            diagnostics.warning(318, tree.key_position("paradigm"), sentence, remedy)

    def _parent(self, name: str, child: Path) -> Path | None:
        """Find a parent beside its child or, if it is not there, in the last directory
        that has it. Return None if none has it. A child may have the same file name as
        its parent.
        """
        names = file_names(name)
        files = [
            file
            for place in self._places(child)
            for name in names
            if (file := place / name).is_file()
        ]
        others = [file for file in files if real_path(file) != real_path(child)]
        return next(iter([*others, *files]), None)

    def _parents(self, child: Path) -> list[str]:
        files = [
            file
            for place in self._places(child)
            for file in place.glob(f"*{SUFFIX}")
            if file != child
        ]
        return sorted({protocol_name(file.name.removesuffix(SUFFIX)) for file in files})

    def _places(self, child: Path) -> list[Path]:
        """Return the directories in which to look for a protocol's parent, in the order
        in which they are tried.
        """
        return [
            child.parent,
            *reversed(self.directories),
            *reversed(self.folders.values()),
        ]

    def names(self) -> list[str]:
        return [specification.name for specification in self.all()[0]]

    def all(self) -> tuple[list[BaseSpecification], list[ProtocolError]]:
        """Load all protocols that are not in ``folders``. Broken files are returned as
        errors. If two protocols have the same name, the later protocol counts.
        """
        return self._all(self.files.values())

    def _all(
        self, paths: Iterable[Path]
    ) -> tuple[list[BaseSpecification], list[ProtocolError]]:
        loaded: dict[str, BaseSpecification] = {}
        broken: list[ProtocolError] = []
        for path in paths:
            try:
                specification = self.load(path)
            except ProtocolError as error:
                broken.append(error)
                continue
            if (hidden := loaded.get(specification.name)) is not None:
                self._say_shadowed(hidden.path, path)
            loaded[specification.name] = specification
        return list(loaded.values()), broken

    def find(self, name: str, edition: str | None = None) -> BaseSpecification:
        """Return a protocol by id, ``id@edition`` or path. Raise UnknownNameError if
        there is none, or ProtocolError if it has errors.

        With ``edition``, return the protocol of this edition that has the id or, if
        there is none, that extends it.
        """
        if name.endswith(SUFFIX) or "/" in name or "\\" in name:
            return self.load(Path(name))
        wanted, _, suffix = name.partition("@")
        edition = suffix or edition or DEFAULT_EDITION
        every = [*self.files.values(), *self.inside()]
        loaded: list[BaseSpecification] = []
        # Reading all files takes half a second, so the likely files are tried first.
        for paths in (_that_may_be(wanted, every), every):
            loaded, _ = self._all(paths)
            if (found := _chosen(loaded, wanted, edition)) is not None:
                return found
        if (own := f"{wanted}.{edition}") in self.files:
            return self.load(self.files[own])  # This raises the errors of the file.
        editions = {s.edition for s in loaded if wanted in (s.paradigm, *s.ancestors)}
        if editions:
            raise UnknownNameError(f"edition of {wanted} called", edition, editions)
        if wanted in self.files:
            # This raises the file's errors, unless the file's id differs from its name.
            return self.load(self.files[wanted])

        remedy = installed_plugins().not_loaded(name)
        raise UnknownNameError(
            "protocol", name, [s.name for s in loaded], remedy=remedy
        )

    def select(
        self, names: Sequence[str] = (), edition: str | None = None
    ) -> list[BaseSpecification]:
        """Return the named protocols. Without names, return all protocols of one
        edition (default: the default edition).

        If only ``folders`` have this edition, its protocols come from there. Raise
        UnknownNameError for an unknown protocol or edition, and ProtocolError for a
        broken file.
        """
        if names:
            return [self.find(name, edition) for name in names]
        loaded, broken = self.all()
        if broken:
            raise broken[0]
        wanted = edition or DEFAULT_EDITION
        editions = {one.edition for one in loaded}
        if wanted not in editions:
            loaded, _ = self._all(self.inside())
            editions |= {one.edition for one in loaded}
        if wanted not in editions:
            raise UnknownNameError("edition", wanted, editions)
        return [one for one in loaded if one.edition == wanted]


def _warn_of_edition(
    own: BaseSpecification, tree: Node, path: Path, diagnostics: Diagnostics
) -> None:
    """Warn (318) of a protocol with the name of the one that it extends, if its file is
    named after another edition.
    """
    meant = protocol_name(path.name.removesuffix(SUFFIX))
    edition = meant.partition("@")[2]
    if own.name not in own.ancestors or not edition or meant == own.name:
        return
    sentence = f"The file is named after an edition '{edition}', but its protocol is '{own.name}', like the one that it extends."
    remedy = f"Add 'edition: {edition}'."
    diagnostics.warning(318, tree.position, sentence, remedy)


def _chosen(
    loaded: Iterable[BaseSpecification], wanted: str, edition: str
) -> BaseSpecification | None:
    """Return the protocol of an edition that has this id, or else one that extends the
    id, because an edition may have a new id. Return None if there is neither.
    """
    alike = [one for one in loaded if one.edition == edition]
    own = (one for one in alike if one.paradigm == wanted)
    return next(own, None) or next(
        (one for one in alike if wanted in one.ancestors), None
    )


def _matches(family: Family[Any, Any], tree: Node) -> bool:
    with blaming(f"The family '{family.name}': matches"):
        return family.matches(tree)


def _that_may_be(wanted: str, paths: Iterable[Path]) -> list[Path]:
    """Return the files that may hold the protocol ``wanted``, or a protocol that
    extends it: the files that mention it, the files that mention one of these files,
    and so on. Files that cannot be read are among them.
    """
    left, found, names = dict[Path, str](), set[Path](), {wanted}
    paths = list(paths)
    for path in paths:
        try:
            left[path] = read_bytes(path, MAX_BYTES).decode()
        except (OSError, UnicodeDecodeError):
            found.add(path)  # The error will be reported when the file is loaded.
    while names:
        # Within double quotes, a name may contain escapes.
        said = {
            path
            for path, text in left.items()
            if "\\" in text or any(name in text for name in names)
        }
        names = {path.name.removesuffix(SUFFIX).partition(".")[0] for path in said}
        found |= said
        for path in said:
            del left[path]
    return [path for path in paths if path in found]


def load_protocol(path: Path | str) -> Specification:
    """Load and check one arena protocol. Raise ProtocolError with all of its errors, or
    if it has no arena, and PluginError as ``Catalogue.load`` does.

    If the file has ``extends``, the parent may be beside the file or among the
    installed protocols.
    """
    return with_arena(
        Catalogue(installed_plugins().protocol_directories).load(Path(path))
    )
