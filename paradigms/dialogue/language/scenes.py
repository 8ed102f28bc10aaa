"""The shipped scenes (their texts are in ``scenes.yaml``), and the slots of each sentence."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from cheesebench.paradigms.dialogue.language.documents import Scene

#: Names allowed in braces, by sentence. All sentences also know {thing}, {things}, {count} and {start}.
SLOTS: Mapping[str, tuple[str, ...]] = {
    "link": ("place", "places"),
    "reward": ("place", "amount"),
    "shortest_path": ("goal",),
    "closed": ("place", "other"),
    "opened": ("place", "other"),
    "closed_one_way": ("place", "other"),
    "opened_one_way": ("place", "other"),
    "new_reward": ("place", "amount"),
    "portal": ("place", "other"),
    "chances": ("place", "outcomes"),
    "outcome": ("place", "percent"),
}
COMMON_SLOTS = ("thing", "things", "count", "start")
#: Scene of a vocabulary that names none and is none of the known domains.
DEFAULT_SCENE = "places"


@dataclass(frozen=True)
class Wording:
    """A scene with every sentence in place; ``nouns`` are the words of a name that an answer may leave out."""

    nouns: tuple[str, ...]
    sentences: Mapping[str, str]


@cache
def shipped() -> dict[str, Any]:
    """Return the contents of ``scenes.yaml``: domains, requests and scenes."""
    import yaml

    text = files("cheesebench.paradigms.dialogue.language").joinpath("scenes.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def requests() -> Mapping[str, str]:
    """Return the request at the end of a question, by form and instruction."""
    found: dict[str, str] = shipped()["requests"]
    return found


def shipped_scenes() -> list[str]:
    """Return the names of the shipped scenes."""
    return list(shipped()["scenes"])


def usual_scene(domain: str) -> str:
    """Return the scene of a vocabulary that names none."""
    return str(shipped()["domains"].get(domain, DEFAULT_SCENE))


def wording(name: str, own: Mapping[str, Scene]) -> Wording:
    """Return a scene by name, the protocol's own ones first; both names must exist."""
    if name not in own:
        texts = dict(shipped()["scenes"][name])
        return Wording(tuple(texts.pop("nouns")), texts)
    scene = own[name]
    base = wording(scene.like, {})
    given = {key: text for key, text in scene.model_dump(by_alias=True).items() if isinstance(text, str)}
    given.pop("like")
    nouns = base.nouns if scene.nouns is None else tuple(scene.nouns)
    return Wording(nouns, {**base.sentences, **given})


def slots_of(sentence: str) -> list[str] | None:
    """Return the names in braces; None where the braces are not balanced or hold more than a name."""
    try:
        parts = list(string.Formatter().parse(sentence))
    except ValueError:
        return None
    names = [name for _, name, _, _ in parts if name is not None]
    plain = all(name.isidentifier() for name in names) and not any(spec or change for _, _, spec, change in parts)
    return names if plain else None
