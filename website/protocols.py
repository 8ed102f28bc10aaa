"""Describes the shipped protocols: their parameters, citations, and first
observations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from cheesebench.gymnasium_plugin import class_name
from cheesebench.interfaces import DEFAULT_EDITION, BaseSpecification
from cheesebench.protocol import Specification, arenas
from cheesebench.protocol.validation import ability_scale
from website.installed import CATALOGUE, PLUGINS
from website.lesions import lesions
from website.markup import code, escape, fenced, prose, sections, table

_VIEW = "ascii_2d"
#: Addresses of articles, by the kind of their number.
_ADDRESSES = (
    (re.compile(r"PMC\d+"), "https://pmc.ncbi.nlm.nih.gov/articles/{}/"),
    (re.compile(r"10\.\d+/.+"), "https://doi.org/{}"),
    (re.compile(r"\d{4}\.\d{5}"), "https://arxiv.org/abs/{}"),
)


def protocols() -> str:
    """Return an overview of all shipped protocols, then a section for each."""
    loaded = [CATALOGUE.load(path) for path in CATALOGUE.files.values()]
    groups: list[tuple[str, str, Sequence[BaseSpecification]]] = [
        (
            "The nine",
            "These run by default.",
            [s for s in loaded if s.edition == DEFAULT_EDITION],
        ),
        (
            "Other editions",
            "These run with `--edition NAME`.",
            [s for s in loaded if s.edition != DEFAULT_EDITION],
        ),
    ]
    for name, folder in CATALOGUE.folders.items():
        inside = [
            CATALOGUE.load(path) for path in sorted(folder.glob("*.protocol.yaml"))
        ]
        groups.append(
            (f"The folder {name}", f"These run with `--protocols {name}`.", inside)
        )
    parts = [
        "## Fidelity",
        *_fidelity(one for _, _, members in groups for one in members),
    ]
    for heading, about, members in groups:
        parts += [
            f"## {heading}",
            about,
            _overview(members),
            *(_section(one) for one in members),
        ]
    return sections(parts)


def _fidelity(members: Iterable[BaseSpecification]) -> list[str]:
    """Return the protocols' statements on fidelity to the laboratory as tables, one for
    each edition.
    """
    found: dict[str, list[list[str]]] = {}
    for one in members:
        fidelity = getattr(one.document, "fidelity", None)
        # Statements that an edition inherits are already listed under its parent.
        if fidelity is not None and "\nfidelity:" in Path(one.path).read_text(
            encoding="utf-8"
        ):
            said = (fidelity.preserved, fidelity.simplified, fidelity.retained)
            row = [f"[{code(one.paradigm)}](#{_anchor(one)})", *map(prose, said)]
            found.setdefault(one.edition, []).append(row)
    headers = [
        "protocol",
        "preserved",
        "simplified",
        "cognitive demand that should remain",
    ]
    parts = []
    for edition, rows in found.items():
        parts += [f"Edition {code(edition)}:", table(headers, rows)]
    return parts


def _anchor(specification: BaseSpecification) -> str:
    return specification.name.replace("@", "-")


def _overview(members: Iterable[BaseSpecification]) -> str:
    rows = []
    for one in members:
        link = f"[{code(one.name)}](#{_anchor(one)})"
        of_family = PLUGINS.family(one).listing(one).row
        size = [
            str(of_family.get("trials x limit", "")),
            str(of_family.get("domains x conditions", "")),
        ]
        rates = [
            _rate(getattr(one, "reference", None)),
            _share(_without(one)),
        ]
        rows.append([link, escape(one.title), size[0], *rates, size[1]])
    headers = [
        "protocol",
        "title",
        "trials x steps",
        "rodent",
        "without the ability, at most",
        "domains x conditions",
    ]
    return table(headers, rows)


def _without(one: BaseSpecification) -> float | None:
    """Return the pass rate at the zero of the ability scale, or None if no zero is
    proved.
    """
    scales = map(ability_scale, arenas([one]))
    return next((scale.without for scale in scales if scale is not None), None)


def _rate(source: object) -> str:
    return _share(getattr(source, "value", None))


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}".replace(".0%", "%")


def _section(one: BaseSpecification) -> str:
    arena = next(iter(arenas([one])), None)
    facts = _dialogue_facts(one) if arena is None else _facts(arena)
    kept = [[label, value] for label, value in facts if value]
    validity = "" if arena is None else lesions(arena)
    heading = f"### {one.name} {{#{_anchor(one)}}}"
    return sections(
        [heading, escape(one.title), _picture(one), table(["", ""], kept), validity]
    )


def _species(one: Specification) -> str:
    """Return the animals of the references, or those that the task is known from."""
    own = dict.fromkeys(reference.species for reference in one.references)
    return ". ".join(filter(None, own)) or one.document.species or ""


def _facts(one: Specification) -> list[tuple[str, str]]:
    document, reference, without = one.document, one.reference, _without(one)
    blocks = [
        f"{code(block.name)}: {f'{block.repeat} x ' if block.repeat > 1 else ''}{block.sessions} x {block.trials}"
        + (f", until {block.until.count} of {block.until.of}" if block.until else "")
        + (
            f", repeated until {block.ends.count} of {block.ends.of}"
            if block.ends
            else ""
        )
        + (f", {block.most} trials in all at most" if block.most else "")
        for block in one.schedule
    ]
    arena = document.arena
    drawn = next(
        (
            kind
            for kind in ("pool", "ring", "radial")
            if getattr(arena, kind) is not None
        ),
        "map",
    )
    return [
        ("dimension", escape(document.dimension)),
        ("species", escape(_species(one))),
        ("cited", _cited(document.cite)),
        (
            "arena",
            f"{code(drawn)}, {len(one.arena.cells)} cells, {arena.headings} headings",
        ),
        ("schedule, sessions x trials", "; ".join(blocks)),
        ("steps of a trial", str(one.limit)),
        (
            "success",
            code(document.success) if document.success is not None else "not declared",
        ),
        (
            "rodent",
            f"{_rate(reference)}: {prose(reference.status)}"
            if reference
            else "no number, so no verdict",
        ),
        (
            "without the ability",
            f"{_share(without)} at most, proved" if without is not None else "",
        ),
        (
            "moving at random, which is not zero",
            f"{_rate(document.chance)} of {document.chance.trials} trials"
            if document.chance
            else "",
        ),
        ("margin", f"{document.margin:g}"),
        ("pass rate over", escape(one.estimand)),
        ("own measures", ", ".join(map(code, one.measures))),
        ("variables", ", ".join(map(code, one.variables))),
        (
            "draws",
            ", ".join(f"{code(draw.name)} (per {draw.per})" for draw in one.draws),
        ),
        ("the goal", "can be seen" if one.goal_visible else ""),
        ("Gymnasium", _environment(one)),
        ("file", code(_file(one))),
    ]


def _environment(one: Specification) -> str:
    path = Path(one.path)
    shipped = CATALOGUE.files.get(path.name.removesuffix(".protocol.yaml")) == path
    return (
        code(f"cheesebench/{class_name(path.name.removesuffix('.protocol.yaml'))}-v1")
        if shipped
        else ""
    )


def _dialogue_facts(one: BaseSpecification) -> list[tuple[str, str]]:
    listed, document = (
        PLUGINS.family(one).listing(one).values,
        one.document.model_dump(),
    )
    return [
        ("dimension", escape(document["dimension"])),
        ("cited", _cited(document["cite"])),
        ("graph", f"{listed['nodes']} nodes, {listed['edges']} edges"),
        ("domains", ", ".join(map(code, listed["domains"]))),
        ("conditions", ", ".join(map(code, listed["conditions"]))),
        ("margin", f"{document['margin']:g}"),
        ("file", code(_file(one))),
    ]


def _file(one: BaseSpecification) -> str:
    path = Path(one.path)
    [root] = CATALOGUE.directories
    return f"protocols/{path.relative_to(root).as_posix()}"


def _cited(cite: Mapping[str, str]) -> str:
    links = []
    for kind, number in cite.items():
        address = next(
            (address for look, address in _ADDRESSES if look.fullmatch(number)), None
        )
        shown = (
            f"[{escape(number)}]({address.format(quote(number))})"
            if address
            else escape(number)
        )
        links.append(f"{escape(kind)} {shown}")
    return ", ".join(links)


def _picture(one: BaseSpecification) -> str:
    """Return the first observation of subject 0, in the plainest view."""
    paradigm, view = PLUGINS.compile(one), PLUGINS.view(_VIEW)
    if not paradigm.is_stepwise:
        return ""
    still = paradigm.still(view, 0, 0)
    return fenced(
        "text", view.render(still.scene, still.column, still.row, still.heading)
    )
