"""``cheesebench reference``: prints the animals' reference values, with source,
learning curve and derivation.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence

from cheesebench.amounts import number, rounded
from cheesebench.canary import CANARY
from cheesebench.commands.common import (
    PROTOCOL,
    add_output,
    describe,
    find_protocol,
    installed_catalogue,
    one_line,
    paragraph,
    write_output,
)
from cheesebench.errors import OptionError
from cheesebench.interfaces import DEFAULT_EDITION
from cheesebench.protocol import Specification, arenas
from cheesebench.protocol.references import in_words
from cheesebench.protocol.specification import Dose, ReferenceSpec
from cheesebench.statistics.question import animals_interval, thresholds
from cheesebench.statistics.wording import BETTER

#: ``Facts``: the lines of a section, as pairs of a label and a text. ``Sections``: the
#: sections of a card, as pairs of a heading and the section's lines.
Facts = list[tuple[str, str]]
Sections = list[tuple[str, Facts]]

_INTRODUCTION = """\
# What the animals did

<!-- Generated: cheesebench reference --format markdown --output docs/references.md -->

This page lists every number that a verdict compares a model with. A *measured* value has a spread between animals, or
an interval: two groups of subjects are compared. A *declared* value has none: it is used as a point, and the verdict
ignores how uncertain it is. An *analogy* is the number of a different event from the one that counts as a success
here. Without a spread it is declared, too. *Training* is the number of trials before the judged trials, and the number
of judged trials, of an animal (medians) and of a subject here. Each measured number is from one laboratory. Given
enough subjects, a model with a rate above *PASS from* passes, and a model with a rate below *FAIL below* fails. Both
are the animals' value minus the margin, moved apart by how far the mean of so few animals may be off. In between, no
number of subjects decides. Read how a number was obtained before you quote a verdict: this page has the beginning, and
`cheesebench reference NAME` prints the rest, with the curve by session, what is preserved and what is simplified.
"""

_MARKUP = re.compile(r"[\\`*\[\]|#]|(?<![^\W_])_|_(?![^\W_])")
_LINKS = (
    (re.compile(r"PMC[0-9]{4,10}"), "https://pmc.ncbi.nlm.nih.gov/articles/{}/"),
    (
        re.compile(r"10\.[0-9]{4,9}/[A-Za-z0-9._-]+(?:\([0-9]+\)[A-Za-z0-9._-]+)?"),
        "https://doi.org/{}",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints value, interval, curve, species and source of every reference, and how it was obtained. Without "
        "PROTOCOL, it prints them for all installed protocols and the classics.",
        "",
        "t_maze my_maze.protocol.yaml",
        "--format markdown --output references.md",
    )
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=PROTOCOL)
    parser.add_argument(
        "--format",
        choices=("text", "markdown"),
        default="text",
        help="text (default) or markdown",
    )
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    catalogue = installed_catalogue()
    if options.protocols:
        found = [
            catalogue.load(find_protocol(catalogue, name)) for name in options.protocols
        ]
        for one in found:
            if not arenas([one]):
                sentence = f"'{one.name}' is a {one.family}, but only protocols with an arena declare references."
                raise OptionError(f"{sentence} Remove it from the command.")
    else:
        found, broken = catalogue.all()
        if broken:
            raise broken[0]
        found += [
            one
            for one in map(catalogue.load, catalogue.inside())
            if one.edition == DEFAULT_EDITION
        ]
    specifications = arenas(found)
    write_output(
        markdown(specifications)
        if options.format == "markdown"
        else text(specifications),
        options.output,
    )
    return 0


def text(specifications: Iterable[Specification]) -> str:
    return "\n\n".join(_text_card(*card) for card in _cards(specifications)) + "\n"


def markdown(specifications: Iterable[Specification]) -> str:
    """Return a Markdown page with a table of all numbers, followed by how each was
    obtained.
    """
    rows, notes = list[list[str]](), dict[str, str]()
    inherited, without = list[str](), list[str]()
    shown = set[tuple[ReferenceSpec, ...]]()
    for specification in specifications:
        references = specification.references
        if not references:
            without.append(f"`{specification.name}`")
        elif references in shown:
            inherited.append(f"`{specification.name}`")
        else:
            rows += [_row(specification, one) for one in references]
            said = [
                f"{_linked(_beginning(one.status))} *{_linked(one.source or 'No source.')}*"
                for one in references
            ]
            notes.setdefault("\n\n".join(said), f"### {_escape(specification.name)}")
        shown.add(references)
    head = [
        "protocol",
        "measure",
        "value",
        "margin",
        "spread or interval",
        "animals",
        "species",
        "kind",
        "training: animals",
        "training: here",
        "FAIL below",
        "PASS from",
    ]
    table = "\n".join(
        f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows]
    )
    sections = [f"{name}\n\n{text}" for text, name in notes.items()]
    rest = []
    if inherited:
        rest.append(
            f"With the same numbers as a protocol in the table: {', '.join(inherited)}."
        )
    if without:
        rest.append(
            f"Without a number, and so without a verdict: {', '.join(without)}."
        )
    return (
        "\n\n".join(
            [
                _INTRODUCTION.rstrip(),
                table,
                *rest,
                "## How each was obtained",
                *sections,
                f"<!-- {CANARY} -->",
            ]
        )
        + "\n"
    )


def _species(reference: ReferenceSpec) -> str:
    """Return the species of the animals in a few words. If no animal was measured, say
    so, with the species in brackets.
    """
    named, *more = re.split("[,;]", reference.species or "not stated")
    unmeasured = any(one.strip() == "none measured" for one in more)
    return f"none measured ({named})" if unmeasured else named


def _row(specification: Specification, reference: ReferenceSpec) -> list[str]:
    if reference.interval is not None:
        spread = f"{reference.interval[0]:g} to {reference.interval[1]:g}"
    else:
        spread = "none" if reference.sd is None else f"SD {number(reference.sd)}"
    margin = (
        specification.document.margin if reference.better is None else reference.margin
    )
    species = _linked(_species(reference))
    return [
        f"`{specification.name}`",
        _escape(reference.measure),
        number(reference.value),
        "" if margin is None else f"{margin:g}",
        spread,
        str(reference.n_animals or "not stated"),
        species,
        reference.nature,
        _escape(reference.training or "not stated"),
        str(specification.dose or "varies"),
        *(_decided(specification, reference) or ("", "")),
    ]


def _decided(
    specification: Specification, reference: ReferenceSpec
) -> tuple[str, str] | None:
    """Return two pass rates (or means of a measure). With enough subjects, a verdict is
    FAIL below the first, and PASS from the second on.

    Return None for a measure of which less is better, or that should be alike, and for
    a reference that is only reported.
    """
    if reference is not specification.judged or reference.better in ("lower", "alike"):
        return None
    margin = reference.margin if reference.better else specification.document.margin
    least, most = reference.range or (0.0, 1.0)
    passes, fails = thresholds(reference.record, margin or 0.0)
    return rounded(max(least, fails), 3), rounded(min(most, passes), 3)


def _beginning(text: str) -> str:
    """Return the first sentence of a text, and the next ones while all of them together
    have at most 40 words. No quotation is cut.
    """
    first, *more = re.split(r"(?<=[a-z0-9)%\"]\.) (?=[A-Z])", one_line(text))
    while more and (
        first.count('"') % 2 or len(first.split()) + len(more[0].split()) <= 40
    ):
        first = f"{first} {more.pop(0)}"
    return first if first.endswith(".") else f"{first}."


def _cards(specifications: Iterable[Specification]) -> Iterator[tuple[str, Sections]]:
    """Yield title and sections of each card. If an earlier card of an ancestor has the
    same references, the card points to that one.
    """
    shown: dict[str, tuple[ReferenceSpec, ...]] = {}
    for specification in specifications:
        references = specification.references
        same = [
            name
            for name in specification.ancestors
            if references and shown.get(name) == references
        ]
        sections = [("", _frame(specification))]
        if same:
            sections[0][1].append(("references", f"as for {same[0]}"))
        else:
            sections += [
                (
                    f"{r.measure} = {number(r.value)}",
                    [*_facts(r, specification.dose), *_verdicts(specification, r)],
                )
                for r in references
            ]
        shown.setdefault(specification.name, references)
        yield f"{specification.name}: {specification.title}", sections


def _verdicts(specification: Specification, reference: ReferenceSpec) -> Facts:
    decided = _decided(specification, reference)
    if decided is None:
        return _of_less(specification, reference)
    fails, passes = decided
    if fails == passes:
        return [("verdict", f"PASS from {passes}, FAIL below")]
    between = "in between, no number of subjects decides"
    return [("verdict", f"PASS from {passes}, FAIL below {fails}; {between}")]


def _of_less(specification: Specification, reference: ReferenceSpec) -> Facts:
    """Return the verdict on a measure of which less is better, or no facts."""
    if reference is not specification.judged or reference.better != "lower":
        return []
    passes, fails = thresholds(reference.record, reference.margin or 0.0)
    ends = f"PASS up to {rounded(passes, 3)}, FAIL above {rounded(fails, 3)}"
    between = "; in between, no number of subjects decides" * (passes != fails)
    return [("verdict", f"{ends}{between}")]


def _frame(specification: Specification) -> Facts:
    document, judged = specification.document, specification.judged
    facts = [
        ("dimension", document.dimension),
        # The animals of a reference may be of another species than the animals that the
        # task is known from.
        *(
            []
            if specification.references
            else [("species", document.species or "not stated")]
        ),
        (
            "cited",
            ", ".join(f"{kind} {value}" for kind, value in document.cite.items())
            or "nothing",
        ),
        (
            "success",
            str(document.success) if document.success is not None else "not declared",
        ),
        ("pass rate over", _estimand(specification)),
        *(
            [("margin", f"{document.margin:g}")]
            if judged is None or judged.better is None
            else []
        ),
    ]
    if document.fidelity is not None:
        facts += document.fidelity.model_dump().items()
    if not document.reference:
        facts.append(("references", "none: no verdict is possible"))
    return facts


def _estimand(specification: Specification) -> str:
    kind, _, argument = specification.estimand.partition(":")
    s = "s" * ("," in argument)
    trials = {
        "last": "the last trial" if argument == "1" else f"the last {argument} trials",
        "block": f"the block{s} {argument.replace(',', ', ')}",
    }.get(kind, "all trials")
    estimand = specification.document.estimand
    where = None if isinstance(estimand, str) else estimand.where
    return trials if where is None else f"{trials} where {where}"


def _facts(reference: ReferenceSpec, here: Dose | None) -> Facts:
    interval = reference.interval
    facts = [
        ("kind", reference.nature),
        *_judged(reference),
        (
            "interval (95 %)",
            _no_interval(reference)
            if interval is None
            else f"{interval[0]:g} to {interval[1]:g}",
        ),
        (
            "animals",
            "not stated" if reference.n_animals is None else str(reference.n_animals),
        ),
        (
            "training",
            f"animals {reference.training or 'not stated'}, here {here or 'varies'} (trials before the judged trials + "
            "judged trials)",
        ),
        ("species", reference.species or "not stated"),
        ("source", reference.source or "not stated"),
        (
            "curve by session",
            " ".join(number(value) for value in reference.curve)
            or _why_no_curve(reference),
        ),
    ]
    if reference.sd is not None:
        facts.insert(2, ("sd between animals", number(reference.sd)))
    if reference.curve_sd:
        facts.append(
            (
                "sd by session",
                " ".join(number(value) for value in reference.curve_sd),
            )
        )
    if reference.over:
        facts.append(("value over", in_words(reference.over)))
    if reference.where is not None:
        facts.append(("compared where", reference.where))
    return [*facts, ("mapping", reference.status)]


def _why_no_curve(reference: ReferenceSpec) -> str:
    if reference.over and reference.over[0] > 1:
        return f"none (it begins at session 1, and the animals have {in_words(reference.over)})"
    return "none"


def _judged(reference: ReferenceSpec) -> Facts:
    """Return the parameters of a verdict about a measure, or an empty list if the
    measure is only reported.
    """
    if reference.better is None or reference.margin is None:
        return []
    limits = reference.range
    return [
        (
            "verdict about it",
            f"{BETTER[reference.better]}, margin {reference.margin:g}",
        ),
        ("possible range", "" if limits is None else f"{limits[0]:g} to {limits[1]:g}"),
    ]


def _no_interval(reference: ReferenceSpec) -> str:
    limits = animals_interval(reference.record)
    if limits is None or not reference.has_spread:
        return "none, declared"
    low, high = (rounded(one, 3) for one in limits)
    return f"{low} to {high}, from the spread between animals"


def _text_card(title: str, sections: Sections) -> str:
    lines = [one_line(title)]
    for heading, facts in sections:
        lines += [f"  {one_line(heading)}"] if heading else []
        indent = "    " if heading else "  "
        for label, value in facts:
            first = f"{indent}{label:<20}"
            rest = " " * len(first)
            lines.append(paragraph(value, first, rest))
    return "\n".join(lines)


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
        parts += [
            _link(text[end : match.start()], rest),
            f"[{_escape(name)}]({address.format(name)})",
        ]
        end = match.end()
    return "".join([*parts, _link(text[end:], rest)])


def _escape(text: str) -> str:
    # Not every Markdown dialect accepts a backslash before these characters, but all
    # accept entities.
    entities = str.maketrans(
        {"&": "&amp;", "<": "&lt;", ">": "&gt;", "~": "&#126;", "$": "&#36;"}
    )
    return _MARKUP.sub(r"\\\g<0>", text).translate(entities)
