"""Finding and loading protocols: files, folders, and ids."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cheesebench.errors import ProtocolError, UnknownNameError
from cheesebench.protocol.checks import check
from cheesebench.protocol.diagnostics import Diagnostic, Diagnostics, EnoughFindingsError, Position, in_file_order
from cheesebench.protocol.dialogue.documents import DialogueDocument
from cheesebench.protocol.dialogue.resolve import resolve_dialogue
from cheesebench.protocol.dialogue.specification import DialogueSpecification
from cheesebench.protocol.documents import ProtocolDocument
from cheesebench.protocol.inherit import DEFAULT_EDITION, SUFFIX, file_names, protocol_name, resolve_parents
from cheesebench.protocol.resolve import resolve
from cheesebench.protocol.source import DUPLICATE_KEY, Node, read_file, read_text
from cheesebench.protocol.specification import Specification
from cheesebench.protocol.structure import read_structure

#: Keys that only a dialogue has: they say what a file is to be that has no ``arena: graph:`` (yet).
_DIALOGUE_KEYS = ("conditions", "scenes", "answer")

#: A protocol of any family.
AnySpecification = Specification | DialogueSpecification


class Catalogue:
    """The protocols of some folders, by id. Later folders win over earlier ones."""

    def __init__(self, directories: Iterable[Path] = ()) -> None:
        self.directories = [Path(directory) for directory in directories]
        self._files: dict[str, Path] | None = None
        self._loaded: dict[Path, AnySpecification] = {}
        #: Sentences about files that hide others of the same name.
        self.shadowed: list[str] = []

    @property
    def files(self) -> dict[str, Path]:
        """All protocol files by stem (``t_maze`` for ``t_maze.protocol.yaml``), sorted by folder and name."""
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
        sentence = f"{used} is used in place of {hidden}."
        if sentence not in self.shadowed:
            self.shadowed.append(sentence)

    @property
    def folders(self) -> dict[str, Path]:
        """Folders of protocols that are run together, by name; later directories win over earlier ones."""
        return {
            folder.name: folder
            for directory in self.directories
            if directory.is_dir()
            for folder in sorted(directory.iterdir())
            if folder.is_dir() and any(folder.glob(f"*{SUFFIX}"))
        }

    def load(self, path: Path) -> Specification:
        """Load one file of the arena family; raises ProtocolError with all of its errors."""
        return _arena(self.load_any(path))

    def load_any(self, path: Path) -> AnySpecification:
        """Load one file of whatever family; raises ProtocolError with all of its errors."""
        path = Path(path)
        if path not in self._loaded:
            specification, found = self.inspect(path)
            if specification is None:
                errors = [d for d in found if d.severity == "error"]
                raise ProtocolError("\n".join(map(str, errors)))
            self._loaded[path] = specification
        return self._loaded[path]

    def inspect(self, path: Path) -> tuple[AnySpecification | None, list[Diagnostic]]:
        """Load one file and return everything found, in file order; the specification is None with errors."""
        diagnostics = Diagnostics()
        root = read_file(Path(path), diagnostics)
        return self._finish(root, Path(path), diagnostics)

    def inspect_text(self, text: str, file: str = "<text>") -> tuple[AnySpecification | None, list[Diagnostic]]:
        """Like ``inspect`` for text that is in no file."""
        diagnostics = Diagnostics()
        return self._finish(read_text(text, file, diagnostics), Path(file), diagnostics)

    def examine(self, path: Path) -> tuple[Specification | None, list[Diagnostic]]:
        """Like ``inspect`` for the arena family; a dialogue raises ProtocolError."""
        specification, found = self.inspect(path)
        return None if specification is None else _arena(specification), found

    def examine_text(self, text: str, file: str = "<text>") -> tuple[Specification | None, list[Diagnostic]]:
        """Like ``examine`` for text that is in no file."""
        specification, found = self.inspect_text(text, file)
        return None if specification is None else _arena(specification), found

    def _finish(
        self, root: Node | None, path: Path, diagnostics: Diagnostics
    ) -> tuple[AnySpecification | None, list[Diagnostic]]:
        specification = None
        if root is not None:
            with contextlib.suppress(EnoughFindingsError):
                specification = self._specify(root, path, diagnostics)
        found = in_file_order(diagnostics.found)
        return (None if diagnostics.errors else specification), found

    def _specify(self, root: Node, path: Path, diagnostics: Diagnostics) -> AnySpecification | None:
        merged = resolve_parents(root, path, self._parent, lambda: self._parents(path), diagnostics)
        # A key that stands twice hides no other error; all else that is wrong with the YAML would add false ones.
        if merged is None or any(error.code != DUPLICATE_KEY for error in diagnostics.errors):
            return None
        tree, ancestors = merged
        if _is_dialogue(tree):
            dialogue = read_structure(tree, diagnostics, DialogueDocument)
            if dialogue is None:
                return None
            return resolve_dialogue(dialogue, tree, path, ancestors, diagnostics)
        document = read_structure(tree, diagnostics, ProtocolDocument)
        resolved = document and resolve(document, tree, path, ancestors, diagnostics)
        if not resolved:
            return None
        self._warn_of_namesake(resolved[0], tree, path, diagnostics)
        return check(*resolved, tree, diagnostics)

    def _warn_of_namesake(self, own: Specification, tree: Node, path: Path, diagnostics: Diagnostics) -> None:
        """318: a file of one's own has the id of one that can be had by name; an edition says whose it is."""
        inside = [file for folder in self.folders.values() for file in folder.glob(f"*{SUFFIX}")]
        installed = [*self.files.values(), *inside]
        if own.ancestors or any(file.parent.resolve() == path.parent.resolve() for file in installed):
            return
        if any(protocol_name(file.name.removesuffix(SUFFIX)) == own.name for file in installed):
            sentence = f"A protocol called '{own.name}' is installed already: by that name it is run, and not this one."
            diagnostics.warning(318, tree.key_position("paradigm"), sentence, "Choose another id, or an 'edition'.")

    def _parent(self, name: str, child: Path) -> Path | None:
        """Find a parent beside its child, else in the latest directory; a child may replace its own parent."""
        names = file_names(name)
        files = [file for place in self._places(child) for name in names if (file := place / name).is_file()]
        others = [file for file in files if file.resolve() != child.resolve()]
        return next(iter([*others, *files]), None)

    def _parents(self, child: Path) -> list[str]:
        """Return all that a protocol could extend."""
        files = [file for place in self._places(child) for file in place.glob(f"*{SUFFIX}") if file != child]
        return sorted({protocol_name(file.name.removesuffix(SUFFIX)) for file in files})

    def _places(self, child: Path) -> list[Path]:
        """Return where the parent of a protocol is looked for, the nearest first."""
        return [child.parent, *reversed(self.directories), *reversed(self.folders.values())]

    def names(self) -> list[str]:
        """Return the names of all protocols that load (``paradigm`` or ``paradigm@edition``)."""
        return [specification.name for specification in self.all()[0]]

    def all(self) -> tuple[list[Specification], list[ProtocolError]]:
        """Load everything of the arena family; a broken file takes no other down, and a later name wins."""
        loaded, broken = self._all(self.files.values())
        return [one for one in loaded if isinstance(one, Specification)], broken

    def _all(self, paths: Iterable[Path]) -> tuple[list[AnySpecification], list[ProtocolError]]:
        loaded: dict[str, AnySpecification] = {}
        broken: list[ProtocolError] = []
        for path in paths:
            try:
                specification = self.load_any(path)
            except ProtocolError as error:
                broken.append(error)
                continue
            if (hidden := loaded.get(specification.name)) is not None:
                self._say_shadowed(hidden.path, path)
            loaded[specification.name] = specification
        return list(loaded.values()), broken

    def find(self, name: str, edition: str | None = None) -> Specification:
        """Return a protocol of the arena family by id, ``id@edition`` or path; see ``find_any``."""
        return _arena(self.find_any(name, edition))

    def find_any(self, name: str, edition: str | None = None) -> AnySpecification:
        """Return a protocol by id, ``id@edition`` or path; raises UnknownNameError or ProtocolError.

        With ``edition``, the protocol of that edition which has this id or extends it.
        """
        if name.endswith(SUFFIX) or "/" in name or "\\" in name:
            return self.load_any(Path(name))
        wanted, _, suffix = name.partition("@")
        edition = suffix or edition or DEFAULT_EDITION
        inside = [path for folder in self.folders.values() for path in sorted(folder.glob(f"*{SUFFIX}"))]
        loaded, _ = self._all([*self.files.values(), *inside])
        # An id of its own comes before one that is inherited: an edition may have a new one.
        for by_id in (True, False):
            for specification in loaded:
                names = (specification.paradigm,) if by_id else specification.ancestors
                if specification.edition == edition and wanted in names:
                    return specification
        if any(wanted in (s.paradigm, *s.ancestors) for s in loaded):
            editions = {s.edition for s in loaded if wanted in (s.paradigm, *s.ancestors)}
            raise UnknownNameError(f"edition of {wanted} called", edition, editions)
        if wanted in self.files:
            return self.load_any(self.files[wanted])  # raises what is wrong with it, or has another id inside
        raise UnknownNameError("protocol", name, [s.name for s in loaded])

    def select(self, names: Sequence[str] = (), edition: str | None = None) -> list[Specification]:
        """Return the named protocols; without names, all of one edition (the default one unless given)."""
        if names:
            return [self.find(name, edition) for name in names]
        loaded, broken = self.all()
        if broken:
            raise broken[0]
        chosen = [s for s in loaded if s.edition == (edition or DEFAULT_EDITION)]
        if not chosen:
            raise UnknownNameError("edition", edition or DEFAULT_EDITION, {s.edition for s in loaded})
        return chosen


def _is_dialogue(tree: Node) -> bool:
    """Whether a (merged) file declares a dialogue: its arena is a graph, or it has what only dialogues have."""
    arena = tree.child("arena")
    if arena is not None and isinstance(arena.value, Mapping) and arena.value:
        return "graph" in arena.value
    return any(tree.child(key) is not None for key in _DIALOGUE_KEYS)


def _arena(specification: AnySpecification) -> Specification:
    """Return a specification of the arena family; ProtocolError for any other."""
    if isinstance(specification, Specification):
        return specification
    diagnostics, start = Diagnostics(), Position(specification.path, 1, 1)
    sentence = f"'{specification.name}' is a dialogue: it has no place that could be drawn or walked through."
    diagnostics.error(229, start, sentence, f"Run it: pytest --model NAME --protocols {specification.path}.")
    raise ProtocolError("\n".join(map(str, diagnostics.found)))


def load_protocol(path: Path | str) -> Specification:
    """Load and check one protocol file; raises ProtocolError with all of its errors.

    Parents named in ``extends`` are looked for beside the file and among the protocols of installed plugins.
    """
    from cheesebench.plugin_manager import installed_plugins

    return Catalogue(installed_plugins().protocol_directories).load(Path(path))
