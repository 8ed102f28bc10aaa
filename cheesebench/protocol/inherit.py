"""``extends``: one parent; mappings merge, everything else replaces, null deletes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cheesebench.errors import did_you_mean
from cheesebench.protocol.diagnostics import Diagnostics
from cheesebench.protocol.source import Node, read_file
from cheesebench.protocol.values import is_name

#: Finds the file of a parent: (id of the parent, path of the child) -> path, or None.
FindParent = Callable[[str, Path], Path | None]
#: Most generations of protocols.
MAX_GENERATIONS = 10


def merge(parent: Node, child: Node) -> Node:
    """Return the child laid over the parent; every value keeps the position where it was written."""
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


def resolve_parents(
    root: Node, path: Path, find: FindParent, known: Callable[[], list[str]], diagnostics: Diagnostics
) -> tuple[Node, list[str]] | None:
    """Merge a protocol over its ancestors.

    Returns the merged tree and the ids of the ancestors, nearest first; None when one cannot be had (reported).
    """
    ancestors: list[str] = []
    merged, seen = root, {path.resolve()}
    while (extends := merged.child("extends")) is not None and extends.value is not None:
        name = extends.value
        if not isinstance(name, str) or not is_name(name):
            diagnostics.error(150, extends.position, "'extends' names one protocol.", "Write its id.")
            return None
        parent_path = find(name, Path(extends.position.file))
        if parent_path is None:
            hint = did_you_mean(name, known()).strip() or "Is its file in the same folder, or in a registered one?"
            diagnostics.error(150, extends.position, f"The parent protocol '{name}' is not known.", hint)
            return None
        if parent_path.resolve() in seen:
            diagnostics.error(150, extends.position, f"'{name}' extends itself in a circle.", "Break the circle.")
            return None
        if len(seen) > MAX_GENERATIONS:
            sentence = f"There are more than {MAX_GENERATIONS} generations of protocols."
            diagnostics.error(150, extends.position, sentence, "Extend an older one.")
            return None
        seen.add(parent_path.resolve())
        parent = read_file(parent_path, diagnostics)
        if parent is None:
            return None
        ancestors.append(name)
        own = Node({k: v for k, v in merged.value.items() if k != "extends"}, merged.position, merged.keys)  # type: ignore[union-attr]
        merged = merge(parent, own)
    return merged, ancestors
