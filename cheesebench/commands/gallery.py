"""``cheesebench gallery``: writes a page that shows protocols in every view."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import escape

from cheesebench.chat import Picture
from cheesebench.commands.common import (
    PROTOCOL,
    add_option,
    describe,
    find_protocol,
    installed_catalogue,
    one_line,
    whole_number,
    write_bytes,
    write_output,
)
from cheesebench.errors import OptionError
from cheesebench.interface_checks import rendered
from cheesebench.interfaces import HEADINGS, Still, View
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification, arenas, with_arena
from cheesebench.server.pages import standalone
from cheesebench.terminal import printable

#: Text above this line is kept when the page is written again. Everything below the
#: line is generated.
MARK = "<!-- Generated below: cheesebench gallery"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Writes a Markdown page. With --output, its pictures are written beside it, and text above the generated "
        "part of the page is kept. If PAGE ends in .html, it is one HTML file that contains the pictures. Without "
        "PROTOCOL, the page shows all installed protocols of the default edition.",
        "",
        "my_maze.protocol.yaml --seed 4",
        "--output views.md",
        "--output gallery.html",
    )
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=PROTOCOL)
    add_option(parser, "edition", default=None)
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
        chosen = [
            catalogue.load(find_protocol(catalogue, name)) for name in options.protocols
        ]
    else:
        chosen = list(arenas(catalogue.select(edition=options.edition)))
    specifications = map(with_arena, chosen)
    shown = plates(specifications, list(plugins.views.values()), options.seed)
    page = Path(options.output) if options.output is not None else None
    if page is not None and page.suffix.lower() in (".html", ".htm"):
        write_output(_as_html(shown), options.output)
    else:
        _write_markdown(shown, options.seed, page)
    return 0


def _write_markdown(shown: Iterable[Plate], seed: int, page: Path | None) -> None:
    text, pictures = gallery(shown, seed, "pictures" if page is None else page.stem)
    if page is None:
        write_output(text, None)
        return
    try:
        words = kept(page.read_text(encoding="utf-8")) if page.exists() else ""
        page.with_suffix("").mkdir(exist_ok=True)
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"{page} cannot be read or written: {error}. Name another page."
        ) from None
    for name, picture in pictures.items():
        write_bytes(picture.png, str(page.parent / name))
    write_output(words + text, str(page))


def kept(page: str) -> str:
    return page.partition(MARK)[0]


@dataclass(frozen=True, slots=True)
class Plate:
    """One protocol at the start of the first trial of subject 0, in each view."""

    name: str
    title: str
    start: str
    """The state of the trial, and the heading with which most is visible."""
    looks: tuple[tuple[str, str | Picture], ...]
    """Names of views, each with its observation (text or picture)."""


def plates(
    specifications: Iterable[Specification], views: Sequence[View], seed: int
) -> Iterator[Plate]:
    for specification in specifications:
        still = installed_plugins().compile(specification).still(views[0], seed, 0)
        heading = max(
            specification.arena.headings,
            key=lambda heading: _variety(still, heading, views),
        )
        looks = [
            (view.name, rendered(view, still.scene, still.column, still.row, heading))
            for view in views
        ]
        yield Plate(
            name=one_line(specification.name),
            title=one_line(specification.title),
            start=f"state `{one_line(still.state)}`, facing {HEADINGS[heading]}",
            looks=tuple(looks),
        )


def gallery(
    shown: Iterable[Plate], seed: int, folder: str
) -> tuple[str, Mapping[str, Picture]]:
    """Return the generated part of a page in Markdown, and its pictures, keyed by their
    paths relative to the page.
    """
    pictures: dict[str, Picture] = {}
    parts = [f"{MARK} --seed {seed} -->"]
    for plate in shown:
        parts += [f"## {plate.name}", f"{plate.title}; {plate.start}."]
        for view, look in plate.looks:
            parts.append(f"`{view}`")
            if isinstance(look, Picture):
                path = f"{folder}/{plate.name.replace('@', '.')}.{view}.png"
                pictures[path] = look
                parts.append(f"![{plate.name} from above, as a picture]({path})")
            parts += _fenced(str(look))
    return "\n\n".join(parts) + "\n", pictures


def _fenced(text: str) -> list[str]:
    """Return the text as a fenced code block, or no block if the text is empty. The
    fence is longer than any run of backticks in the text.
    """
    if not text:
        return []
    fence = "`" * (3 + text.count("`"))
    lines = (line.rstrip() for line in printable(text).split("\n"))
    return ["\n".join([f"{fence}text", *lines, fence])]


def _as_html(shown: Iterable[Plate]) -> str:
    """Return a self-contained HTML page with a row for each protocol and a column for
    each view.
    """
    rows = [
        (
            plate,
            [
                (view, _address(look), escape(printable(str(look))))
                for view, look in plate.looks
            ],
        )
        for plate in shown
    ]
    return standalone("gallery.html.jinja", rows=rows)


def _address(look: str | Picture) -> str:
    """Return a picture as a data URL, or "" for text."""
    if not isinstance(look, Picture):
        return ""
    return f"data:image/png;base64,{base64.b64encode(look.png).decode()}"


def _variety(still: Still, heading: int, views: Sequence[View]) -> int:
    """Return how much is visible with a heading, as the number of distinct lines over
    all views.
    """
    observations = (
        rendered(view, still.scene, still.column, still.row, heading) for view in views
    )
    return sum(len(set(observation.split("\n"))) for observation in observations)
