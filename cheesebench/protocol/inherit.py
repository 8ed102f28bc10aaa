"""``extends``: one parent; mappings merge, everything else replaces, null deletes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cheesebench.errors import did_you_mean
from cheesebench.protocol.diagnostics import Diagnostics
from cheesebench.protocol.source import Node, read_file, real_path
from cheesebench.protocol.values import DEFAULT_EDITION, is_protocol_name

#: Finds the file of a parent: (id of the parent, path of the child) -> path, or None.
FindParent = Callable[[str, Path], Path | None]
#: What the name of a protocol file ends with.
SUFFIX = ".protocol.yaml"
#: Most generations of protocols.
MAX_GENERATIONS = 10


def merge(parent: Node, child: Node) -> Node:
    """Return the child merged over the parent; every value keeps its position in its own file."""
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
    """Return the possible file names of ``id`` or ``id@edition``, most likely first."""
    stem, _, edition = name.partition("@")
    return [f"{stem}.{edition}{SUFFIX}"] * bool(edition) + [f"{stem}{SUFFIX}"] * (edition in ("", DEFAULT_EDITION))


def protocol_name(stem: str) -> str:
    """Return the name for ``extends`` of a file's stem: ``t_maze.rodent`` becomes ``t_maze@rodent``."""
    return stem.replace(".", "@", 1)


def _how_to_write(name: object) -> str:
    """Return the remedy for what cannot be the name of a parent."""
    if isinstance(name, str) and is_protocol_name(meant := protocol_name(name.removesuffix(SUFFIX))):
        return f"Write {meant}."
    if isinstance(name, list) and len(name) > 1:
        return "A protocol has one parent; put what the parents share into it."
    return "Write its id, or id@edition."


def resolve_parents(
    root: Node, path: Path, find: FindParent, known: Callable[[], list[str]], diagnostics: Diagnostics
) -> tuple[Node, list[str]] | None:
    """Merge a protocol over its ancestors.

    Returns the merged tree and the ids of the ancestors, nearest first; None when one cannot be had (reported).
    """
    ancestors: list[str] = []
    merged, seen = root, {real_path(path)}
    while (extends := merged.child("extends")) is not None and extends.value is not None:
        name = extends.value
        if not isinstance(name, str) or not is_protocol_name(name):
            diagnostics.error(150, extends.position, "'extends' names one protocol.", _how_to_write(name))
            return None
        parent_path = find(name, Path(extends.position.file))
        if parent_path is None:
            where = f"Is {file_names(name)[0]} in the same folder, or in a registered one?"
            hint = did_you_mean(name, known()).strip() or where
            diagnostics.error(150, extends.position, f"The parent protocol '{name}' is unknown.", hint)
            return None
        if real_path(parent_path) in seen:
            diagnostics.error(150, extends.position, f"'{name}' extends itself.", "Remove one 'extends'.")
            return None
        if len(seen) > MAX_GENERATIONS:
            sentence = f"There are more than {MAX_GENERATIONS} generations of protocols."
            diagnostics.error(150, extends.position, sentence, "Extend an earlier one.")
            return None
        seen.add(real_path(parent_path))
        parent = read_file(parent_path, diagnostics)
        if parent is None:
            return None
        ancestors.append(name)
        own = Node({k: v for k, v in merged.value.items() if k != "extends"}, merged.position, merged.keys)  # type: ignore[union-attr]
        merged = merge(parent, own)
    return merged, ancestors
