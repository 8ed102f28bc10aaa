"""``cheesebench reference``: the animals' reference values, with source, learning curve and derivation."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from cheesebench.commands.common import NARROW, find_protocol, installed_catalogue, one_line, write_output
from cheesebench.commands.parsing import PROTOCOL, add_output, describe
from cheesebench.errors import OptionError
from cheesebench.protocol import Specification
from cheesebench.protocol.references import in_words
from cheesebench.protocol.specification import ReferenceSpec
from cheesebench.protocol.values import DEFAULT_EDITION

#: A line of a card: what it is, and the text; and a card: its title and sections of such lines with a heading.
Facts = list[tuple[str, str]]
Sections = list[tuple[str, Facts]]

_INTRODUCTION = """\
# What the animals did

<!-- Generated: cheesebench reference --format markdown --output docs/references.md -->

For anyone who quotes a verdict. This page lists every number that a verdict compares a model with, as the protocols
declare it (`reference:` in each file), and how it was obtained. A *measured* value has a spread between animals (or an
interval), and the comparison is between two groups of subjects. A *declared* value has none: it is used as a point, and
the verdict ignores how uncertain it is. In an *analogy*, the laboratory measured a different event from
the one that counts as a success here. The *mapping* states how the laboratory's measurement became a proportion of
successful trials; read it before you quote a verdict."""

_MARKUP = re.compile(r"[\\`*\[\]|#]|(?<![^\W_])_|_(?![^\W_])")
_LINKS = (
    (re.compile(r"PMC[0-9]{4,10}"), "https://pmc.ncbi.nlm.nih.gov/articles/{}/"),
    (re.compile(r"10\.[0-9]{4,9}/[A-Za-z0-9._-]+"), "https://doi.org/{}"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Prints value, interval, curve, species and source of every reference, and how it was obtained. Without a "
        "name: all installed protocols and the classics.",
        "",
        "t_maze my_maze.protocol.yaml",
        "--format markdown --output references.md",
    )
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=PROTOCOL)
    parser.add_argument("--format", choices=("text", "markdown"), default="text", help="text (default) or markdown")
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Print the cards of the named protocols, or of all that are installed."""
    catalogue = installed_catalogue()
    if options.protocols:
        found = [catalogue.load(find_protocol(catalogue, name)) for name in options.protocols]
        for one in found:
            if not one.has_place:
                sentence = f"'{one.name}' is a {one.family}, and only protocols with an arena declare references."
                raise OptionError(f"{sentence} Remove it from the command.")
    else:
        found, broken = catalogue.all()
        if broken:
            raise broken[0]
        found += [one for one in map(catalogue.load, catalogue.inside()) if one.edition == DEFAULT_EDITION]
    specifications = [one.walkable() for one in found if one.has_place]
    write_output(markdown(specifications) if options.format == "markdown" else text(specifications), options.output)
    return 0


def text(specifications: Iterable[Specification]) -> str:
    """Return the cards for a terminal."""
    return "\n\n".join(_text_card(*card) for card in _cards(specifications)) + "\n"


def markdown(specifications: Iterable[Specification]) -> str:
    """Return the cards as one Markdown page."""
    return "\n\n".join([_INTRODUCTION, *(_markdown_card(*card) for card in _cards(specifications))]) + "\n"


def _cards(specifications: Iterable[Specification]) -> Iterator[tuple[str, Sections]]:
    """Yield title and sections; an edition that inherits its parent's references points to the parent's card."""
    shown: dict[str, tuple[ReferenceSpec, ...]] = {}
    for specification in specifications:
        references = specification.references
        same = [name for name in specification.ancestors if references and shown.get(name) == references]
        sections = [("", _frame(specification))]
        if same:
            sections[0][1].append(("references", f"as for {same[0]}"))
        else:
            sections += [(f"{r.measure} = {round(r.value, 3):g}", _facts(r)) for r in references]
        shown.setdefault(specification.name, references)
        yield f"{specification.name}: {specification.title}", sections


def _frame(specification: Specification) -> Facts:
    document, judged = specification.document, specification.judged
    facts = [
        ("dimension", document.dimension),
        ("species", document.species or "not stated"),
        ("cited", ", ".join(f"{kind} {value}" for kind, value in document.cite.items()) or "nothing"),
        ("success", str(document.success) if document.success is not None else "not declared"),
        ("pass rate over", _estimand(specification.estimand)),
        *([("margin", f"{document.margin:g}")] if judged is None or judged.better is None else []),
    ]
    if document.fidelity is not None:
        facts += document.fidelity.model_dump().items()
    if not document.reference:
        facts.append(("references", "none: no verdict is possible"))
    return facts


def _estimand(estimand: str) -> str:
    kind, _, argument = estimand.partition(":")
    return {"last": f"the last {argument} trials", "block": f"the block {argument.replace(',', ', ')}"}.get(
        kind, "all trials"
    )


def _facts(reference: ReferenceSpec) -> Facts:
    interval = reference.interval
    facts = [
        ("kind", reference.kind),
        *_judged(reference),
        ("interval (95 %)", _no_interval(reference) if interval is None else f"{interval[0]:g} to {interval[1]:g}"),
        ("animals", "not stated" if reference.n_animals is None else str(reference.n_animals)),
        ("species", reference.species or "not stated"),
        ("source", reference.source or "not stated"),
        ("curve by session", " ".join(f"{round(value, 3):g}" for value in reference.curve) or "none"),
    ]
    if reference.sd is not None:
        facts.insert(2, ("sd between animals", f"{round(reference.sd, 3):g}"))
    if reference.curve_sd:
        facts.append(("sd by session", " ".join(f"{round(value, 3):g}" for value in reference.curve_sd)))
    if reference.over:
        facts.append(("value over", in_words(reference.over)))
    if reference.at is not None:
        facts.append(("measured at", reference.at))
    if reference.where is not None:
        facts.append(("compared where", reference.where))
    return [*facts, ("mapping", reference.status)]


def _judged(reference: ReferenceSpec) -> Facts:
    """Return what a verdict about a measure is made with; nothing if it is only reported."""
    if reference.better is None or reference.margin is None:
        return []
    limits = reference.range
    return [
        ("verdict about it", f"{reference.better} is better, margin {reference.margin:g}"),
        ("possible range", "not stated: by t" if limits is None else f"{limits[0]:g} to {limits[1]:g}"),
    ]


def _no_interval(reference: ReferenceSpec) -> str:
    return "from the spread between animals" if reference.has_spread else "none, declared"


def _text_card(title: str, sections: Sections) -> str:
    lines = [one_line(title)]
    for heading, facts in sections:
        lines += [f"  {one_line(heading)}"] if heading else []
        indent = "    " if heading else "  "
        for label, value in facts:
            first = f"{indent}{label:<20}"
            rest = " " * len(first)
            filled = textwrap.fill(
                one_line(value), NARROW, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
            )
            lines.append(filled)
    return "\n".join(lines)


def _markdown_card(title: str, sections: Sections) -> str:
    parts = [f"## {_escape(one_line(title))}"]
    for heading, facts in sections:
        if heading:
            parts.append(f"### {_escape(one_line(heading))}")
        parts.append(
            "\n".join(["| | |", "| --- | --- |", *(f"| {label} | {_linked(value)} |" for label, value in facts)])
        )
    return "\n\n".join(parts)


def _linked(text: str) -> str:
    """Return text as Markdown, with links to PubMed Central and to DOIs."""
    return _link(one_line(text), _LINKS)


def _link(text: str, links: Sequence[tuple[re.Pattern[str], str]]) -> str:
    if not links:
        return _escape(text)
    (pattern, address), rest = links[0], links[1:]
    parts, end = [], 0
    for match in pattern.finditer(text):
        name = match.group()
        parts += [_link(text[end : match.start()], rest), f"[{_escape(name)}]({address.format(name)})"]
        end = match.end()
    return "".join([*parts, _link(text[end:], rest)])


def _escape(text: str) -> str:
    # Not every Markdown dialect accepts a backslash before these; all accept entities.
    entities = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "~": "&#126;", "$": "&#36;"})
    return _MARKUP.sub(r"\\\g<0>", text).translate(entities)
