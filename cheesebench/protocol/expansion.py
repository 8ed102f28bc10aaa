"""The output of a generator as YAML that an author can edit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from cheesebench.errors import OptionError
from cheesebench.protocol import arena_documents
from cheesebench.protocol.generators import Drawn
from cheesebench.protocol.specification import Specification


def arena_as_yaml(specification: Specification) -> str:
    """Return an ``arena:`` with map, legend and groups that loads to the same arena as the generator's.

    Raises OptionError when the arena is a map already.
    """
    arena, document = specification.arena, specification.document.arena
    if arena.drawn is None:
        raise OptionError(f"The arena of {specification.name} is already a map. Edit it in {specification.path}.")
    lines = [
        "arena:",
        # The digit says how deep the map is indented: its first line may begin with blanks.
        "  map: |2",
        *(f"    {row}".rstrip() for row in arena.drawn.map.splitlines()),
        "  legend:",
        *_legend(arena.drawn),
        "  groups:",
        *(f"    {name}: {_listed(members)}" for name, members in arena.groups.items()),
        *_landmarks(document),
    ]
    if document.headings != arena_documents.Arena.model_fields["headings"].default:
        lines.append(f"  headings: {document.headings}")
    return "\n".join(lines) + "\n"


def _legend(drawn: Drawn) -> Iterator[str]:
    for character, zones in drawn.zones.items():
        if character in drawn.doors:
            place = f"door: {drawn.doors[character]}" + (f", zones: {_listed(zones)}" if zones else "")
        elif len(zones) == 1:
            place = f"zone: {zones[0]}"
        else:
            place = f"zones: {_listed(zones)}"
        yield f"    {_quoted(character)}: {{{place}, glyph: {_quoted(drawn.glyphs[character])}}}"


def _landmarks(document: arena_documents.Arena) -> Iterator[str]:
    landmarks = document.landmarks
    if not landmarks:
        return
    yield "  landmarks:"
    if isinstance(landmarks, Mapping):
        yield from (f"    {name}: {_landmark(landmark)}" for name, landmark in landmarks.items())
    else:
        yield from (f"    - {_landmark(landmark)}" for landmark in landmarks)


def _landmark(landmark: str | arena_documents.PlacedLandmark) -> str:
    if isinstance(landmark, str):
        return _quoted(landmark)
    column, row = landmark.at
    return f"{{at: [{column}, {row}], glyph: {_quoted(landmark.glyph)}}}"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return f"[{', '.join(names)}]"


def _quoted(character: str) -> str:
    # A JSON string is a valid YAML string for every character.
    return json.dumps(character, ensure_ascii=False)
