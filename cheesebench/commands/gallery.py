"""``cheesebench gallery``: a page that shows protocols in every view."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cheesebench.chat import Picture
from cheesebench.commands.common import (
    PROTOCOL,
    describe,
    find_protocol,
    installed_catalogue,
    one_line,
    whole_number,
    write_output,
    write_picture,
)
from cheesebench.errors import OptionError
from cheesebench.interface_checks import rendered
from cheesebench.interfaces import DEFAULT_EDITION, HEADINGS, Still, View
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification, arenas, with_arena
from cheesebench.terminal import printable

#: Text above this line is kept when the page is written again; everything below is
#: generated.
MARK = "<!-- Generated below: cheesebench gallery"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Writes a Markdown page; with --output, its pictures are written beside it, and text above the generated "
        "part of that page is kept. Without a name: all installed protocols of the default edition.",
        "",
        "my_maze.protocol.yaml --seed 4",
        "--output views.md",
    )
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=PROTOCOL)
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number,
        default=0,
        help="seed of the subjects (default: 0)",
    )
    parser.add_argument(
        "--output",
        metavar="PAGE",
        help="write the page to this file (default: standard output)",
    )


def run(options: argparse.Namespace) -> int:
    catalogue, plugins = installed_catalogue(), installed_plugins()
    if options.protocols:
        specifications = [
            with_arena(catalogue.load(find_protocol(catalogue, name)))
            for name in options.protocols
        ]
    else:
        found, broken = catalogue.all()
        if broken:
            raise broken[0]
        specifications = [
            one for one in arenas(found) if one.edition == DEFAULT_EDITION
        ]
    page = Path(options.output) if options.output is not None else None
    folder = page.stem if page is not None else "pictures"
    text, pictures = gallery(
        specifications, list(plugins.views.values()), options.seed, folder
    )
    if page is None:
        write_output(text, None)
        return 0
    try:
        words = kept(page.read_text(encoding="utf-8")) if page.exists() else ""
        page.with_suffix("").mkdir(exist_ok=True)
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"{page} cannot be written: {error}. Name a page in a directory that exists."
        ) from None
    for name, picture in pictures.items():
        write_picture(picture, str(page.parent / name))
    write_output(words + text, options.output)
    return 0


def kept(page: str) -> str:
    return page.partition(MARK)[0]


def gallery(
    specifications: Iterable[Specification],
    views: Sequence[View],
    seed: int,
    folder: str,
) -> tuple[str, Mapping[str, Picture]]:
    """Return the generated part of a page in Markdown, and its pictures by path
    relative to the page.

    Each protocol is shown from the start of the first trial of subject 0 under
    ``seed``, facing the heading from which most is visible.
    """
    pictures: dict[str, Picture] = {}
    parts = [f"{MARK} --seed {seed} -->"]
    for specification in specifications:
        parts += _section(specification, views, seed, folder, pictures)
    return "\n\n".join(parts) + "\n", pictures


def _section(
    specification: Specification,
    views: Sequence[View],
    seed: int,
    folder: str,
    pictures: dict[str, Picture],
) -> Iterator[str]:
    paradigm = installed_plugins().compile(specification)
    name = one_line(specification.name)
    still = paradigm.still(views[0], seed, 0)
    yield f"## {name}"
    heading = max(
        specification.arena.headings,
        key=lambda heading: _variety(still, heading, views),
    )
    yield f"{one_line(specification.title)}; state `{one_line(still.state)}`, facing {HEADINGS[heading]}."
    for view in views:
        observation = rendered(view, still.scene, still.column, still.row, heading)
        yield f"`{view.name}`"
        if isinstance(observation, Picture):
            path = f"{folder}/{specification.name.replace('@', '.')}.{view.name}.png"
            pictures[path] = observation
            yield f"![{name} from above, as a picture]({path})"
        if text := str(observation):
            # The fence is longer than any run of its character in the text.
            fence = "`" * (3 + text.count("`"))
            lines = (line.rstrip() for line in printable(text).split("\n"))
            yield "\n".join([f"{fence}text", *lines, fence])


def _variety(still: Still, heading: int, views: Sequence[View]) -> int:
    """Return how much is visible with a heading: the number of distinct lines over all
    views.
    """
    observations = (
        rendered(view, still.scene, still.column, still.row, heading) for view in views
    )
    return sum(len(set(observation.split("\n"))) for observation in observations)
