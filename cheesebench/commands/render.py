"""``cheesebench render``: shows a state as an agent sees it, with a legend."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cheesebench.chat import Picture
from cheesebench.commands.common import (
    PROTOCOL,
    add_life,
    add_trial,
    describe,
    load_protocol,
    one_line,
    shown_path,
    table,
    wait_for_trial,
    write_bytes,
)
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.interface_checks import rendered
from cheesebench.interfaces import HEADINGS, PictureView, Still, View
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Arena, with_arena
from cheesebench.protocol.arena import arena_as_yaml
from cheesebench.terminal import printable

if TYPE_CHECKING:
    from cheesebench.protocol import Specification

#: Value of ``--view`` that shows every view.
ALL = "all"
Square = tuple[int, int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "The picture is what an agent sees at the start of the first trial (or of --trial), followed by a legend.",
        "my_maze.protocol.yaml",
        "my_maze --state choice --seed 3",
        "my_maze --view topdown_2d --output my_maze.png",
        "my_maze.protocol.yaml --expand",
    )
    parser.add_argument("protocol", metavar="FILE", help=PROTOCOL)
    parser.add_argument(
        "--state", metavar="NAME", help="the state to show (default: the initial one)"
    )
    parser.add_argument(
        "--view",
        metavar="NAME",
        action="append",
        help="the view, or 'all'; repeatable (default: ascii_2d)",
    )
    parser.add_argument(
        "--output",
        metavar="PNG",
        help="for a view that draws images: write the image to this file",
    )
    parser.add_argument(
        "--expand",
        action="store_true",
        help="print a generated arena as a map in YAML, to edit by hand",
    )
    add_trial(parser)
    add_life(parser)


def run(options: argparse.Namespace) -> int:
    specification = with_arena(load_protocol(options.protocol))
    if options.expand:
        if options.state or options.view or options.output:
            raise OptionError(
                "--expand shows no picture, so --state, --view and --output have no effect. Remove them."
            )
        print(printable(_expanded(specification)), end="")
        return 0
    if options.state is not None and options.state not in specification.states:
        raise UnknownNameError("state", options.state, specification.states)
    paradigm = installed_plugins().compile(specification)
    views = _views(options.view)
    if (
        options.output is not None
        and sum(isinstance(view, PictureView) for view in views) != 1
    ):
        raise OptionError(
            "--output needs one view that draws images. Name it with --view."
        )
    wait_for_trial(
        paradigm.environment(views[0], options.seed, options.subject), options.trial
    )
    stills = [
        (
            view,
            paradigm.still(
                view, options.seed, options.subject, options.state, options.trial
            ),
        )
        for view in views
    ]
    state = stills[0][1].state
    which = "first trial" if options.trial == 1 else f"trial {options.trial}"
    where = f"{which} of subject {options.subject}, seed {options.seed}"
    print(f"{specification.name}: state {state} ({where})")
    for view, still in stills:
        print(f"\n{view.name}\n" if len(stills) > 1 else "")
        print(
            _shown(
                rendered(view, still.scene, still.column, still.row, still.heading),
                options.output,
            )
        )
    print(f"\n{legend(specification.arena, stills[0][1])}")
    return 0


def _shown(observation: str, output: str | None) -> str:
    """Return an observation as text for a terminal. A picture is written to the file
    ``output``, if there is one.
    """
    if not isinstance(observation, Picture):
        return printable(observation)
    text = f"\n{printable(str(observation))}" if str(observation) else ""
    if output is None:
        return f"(a picture; --output FILE.png writes it){text}"
    write_bytes(observation.png, output)
    return f"(a picture, written to {one_line(output)}){text}"


def _views(names: Iterable[str] | None) -> list[View]:
    plugins = installed_plugins()
    if names is not None and ALL in names:
        return list(plugins.views.values())
    return [plugins.view(name) for name in dict.fromkeys(names or ["ascii_2d"])]


def _expanded(specification: Specification) -> str:
    """Return a generated arena as YAML. Raise OptionError if the arena is already a
    map.
    """
    drawn = specification.arena.drawn
    if drawn is None:
        files = " or ".join([specification.path, *specification.ancestors])
        raise OptionError(
            f"The arena of {specification.name} is already a map. Edit it in {files}."
        )
    arena = arena_as_yaml(drawn, specification.document.arena)
    return f"# Replaces the 'arena' of {shown_path(specification.path)}\n{arena}"


def _closed_doors(shown: Still) -> set[tuple[int, int]]:
    """Return the squares of closed doors, in coordinates of the map."""
    return {
        (column + shown.left, row + shown.top)
        for row, tiles in enumerate(shown.scene.tiles)
        for column, tile in enumerate(tiles)
        if tile.kind == "door"
    }


def legend(arena: Arena, shown: Still) -> str:
    """Return the legend as text: a table of the zones, doors, solids and landmarks with
    their glyphs, then the subject's pose and the groups.
    """
    closed = _closed_doors(shown)
    rows: list[list[object]] = []
    for name, cells in arena.zones.items():
        squares = [arena.cells[cell] for cell in cells]
        door = "door, closed" if closed.issuperset(squares) else "door, open"
        kind = door if name in arena.doors else "zone"
        rows.append([_glyphs(shown, squares), name, kind, len(squares)])
    rows += [
        [_glyphs(shown, squares), name, "solid", len(squares)]
        for name, squares in arena.solids.items()
        if squares
    ]
    rows += [
        [landmark.glyph, landmark.name, "landmark", 1] for landmark in arena.landmarks
    ]
    column, row = shown.column + shown.left, shown.row + shown.top
    lines = [
        f"The subject stands at column {column}, row {row} (from 0), facing {HEADINGS[shown.heading]}."
    ]
    lines += [
        f"group {name}: {', '.join(map(one_line, members))}"
        for name, members in arena.groups.items()
    ]
    return f"{table(['glyph', 'name', 'what', 'squares'], rows)}\n\n" + "\n".join(lines)


def _glyphs(still: Still, squares: Iterable[Square]) -> str:
    tiles = still.scene.tiles
    return " ".join(
        dict.fromkeys(
            tiles[row - still.top][column - still.left].glyph for column, row in squares
        )
    )
