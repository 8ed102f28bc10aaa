"""Selection of protocols for a session without paths (the named ones, or the paper's), and of their cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cheesebench.errors import OptionError, ProtocolError, UnknownNameError, did_you_mean
from cheesebench.experiment.records import CellPlan
from cheesebench.family import CellRequest
from cheesebench.interface_checks import blaming, returned_list
from cheesebench.protocol import SUFFIX, BaseSpecification, Catalogue
from cheesebench.protocol.inherit import file_names, protocol_name
from cheesebench.protocol.values import DEFAULT_EDITION


@dataclass(frozen=True, slots=True)
class Broken:
    """A protocol file that cannot be loaded, and why."""

    path: Path
    error: ProtocolError


Selected = BaseSpecification | Broken


def default_protocols(catalogue: Catalogue, edition: str) -> list[Selected]:
    """Return the built-in protocols of an edition; a later directory's file of the same name goes first.

    An edition that stands in none of them is that of a folder: ``paper``.
    """
    built_in = Catalogue(catalogue.directories[:1]).files
    files = {stem: path for stem, path in catalogue.files.items() if stem in built_in}
    # Ours have their edition in their name. The others would take a tenth of a short run.
    others = [path for stem, path in files.items() if path == built_in[stem] and _edition(stem) != edition]
    found = _load(catalogue, [path for path in files.values() if path not in others])
    chosen = _of_edition(found, edition)
    if all(isinstance(one, Broken) for one in chosen):
        found += _load(catalogue, [*others, *catalogue.inside()])
        chosen = _of_edition(found, edition)
    if all(isinstance(one, Broken) for one in chosen):
        known = {one.edition for one in found if not isinstance(one, Broken)}
        raise UnknownNameError("edition", edition, known)
    return chosen


def named_protocols(catalogue: Catalogue, directory: Path, names: Iterable[str], edition: str | None) -> list[Selected]:
    """Return the protocols for ``--protocols``: directories and files (relative to ``directory``), and names.

    A name refers to an installed protocol, else to a file in ``directory`` (``my_maze``, ``my_maze@short``). Without
    ``edition``, a directory gives all of its editions, and a name the default one.
    """
    # Commas separate, as they do for models, unless they are in the name of a file.
    single = (part for name in names for part in ([name] if (directory / name).exists() else name.split(",")))
    return [one for name in filter(None, map(str.strip, single)) for one in _named(catalogue, directory, name, edition)]


def _named(catalogue: Catalogue, directory: Path, name: str, edition: str | None) -> list[Selected]:
    path = directory / name
    if not path.exists() and name in catalogue.folders:
        path = catalogue.folders[name]
    if path.is_dir():
        found = _load(catalogue, sorted(path.rglob(f"*{SUFFIX}")))
        if not found:
            raise OptionError(f"--protocols {name}: there is no file *{SUFFIX} in that directory.")
        chosen = found if edition is None else _of_edition(found, edition)
        if not chosen:
            known = sorted({one.edition for one in found if not isinstance(one, Broken)})
            raise OptionError(
                f"--protocols {name}: none of its protocols is of edition '{edition}'; there is {', '.join(known)}. "
                "Change --edition, or leave it out."
            )
        return chosen
    if name.endswith(("/", "\\")):
        raise OptionError(f"--protocols {name}: there is no such directory.")
    if name.endswith(SUFFIX) and not path.exists():
        near = did_you_mean(path.name, [file.name for file in path.parent.glob(f"*{SUFFIX}")])
        raise OptionError(f"--protocols {name}: there is no such file.{near}")
    if path.is_file() or name.endswith(SUFFIX):
        return [_load_one(catalogue, path)]
    try:
        return [catalogue.find(name, edition)]
    except UnknownNameError:
        here = [directory / file for file in file_names(name if edition is None else f"{name}@{edition}")]
        if (local := next(filter(Path.is_file, here), None)) is None:
            raise
        return [_load_one(catalogue, local)]
    except ProtocolError as error:
        return [Broken(catalogue.files.get(name, path), error)]


def _load(catalogue: Catalogue, paths: Iterable[Path]) -> list[Selected]:
    return [_load_one(catalogue, path) for path in paths]


def cells_of(specification: BaseSpecification, request: CellRequest) -> list[CellPlan]:
    """Return a model's cells on a protocol. Raises UnsuitableError as the family does; PluginError if it is wrong."""
    family = request.plugins.family(specification)
    who = f"The family '{family.name}': cells"
    with blaming(who):
        return returned_list(family.cells(specification, request), CellPlan, who)


def load_shortly_named(catalogue: Catalogue, path: Path) -> BaseSpecification:
    """Load a file under the path that diagnostics and records show: relative to the working directory if inside it."""
    here = Path.cwd()
    return catalogue.load(path.relative_to(here) if path.is_relative_to(here) else path)


def _load_one(catalogue: Catalogue, path: Path) -> Selected:
    try:
        return load_shortly_named(catalogue, path)
    except ProtocolError as error:
        return Broken(path, error)


def _edition(stem: str) -> str:
    return protocol_name(stem).partition("@")[2] or DEFAULT_EDITION


def _of_edition(found: Iterable[Selected], edition: str) -> list[Selected]:
    """Keep the broken ones: their edition is unknown."""
    return [one for one in found if isinstance(one, Broken) or one.edition == edition]
