"""What is left of the shipped protocols under lesions: measured by a script (it takes minutes), and kept as JSON.

``python -m website.lesions [PROTOCOL...]`` measures those that are named, or all whose construct has changed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.audit import audit_specification
from cheesebench.interfaces import AuditSettings
from cheesebench.protocol import Specification
from website.installed import CATALOGUE
from website.markup import code, escape, table

STORED = Path(__file__).parents[1] / "docs" / "reference" / "lesions.json"
CLASSICS = Path(__file__).parents[1] / "protocols" / "classics"
_RULE = "lesion: "


def validated() -> dict[str, Specification]:
    """Return the shipped protocols that name a construct, the classics among them, by their names."""
    files = [*CATALOGUE.files.values(), *sorted(CLASSICS.glob("*.protocol.yaml"))]
    loaded = [one.walkable() for one in map(CATALOGUE.load, files) if one.has_place]
    return {one.name: one for one in loaded if one.construct is not None}


def stored() -> dict[str, Any]:
    """Return what has been measured, by the names of protocols."""
    return dict(json.loads(STORED.read_text(encoding="utf-8"))) if STORED.is_file() else {}


def construct(specification: Specification) -> dict[str, float | None]:
    """Return the lesions of a construct and what may be left; None for those that must not matter."""
    found = specification.construct
    if found is None:
        return {}
    abolished: dict[str, float | None] = {str(lesion): at_most for lesion, at_most in found.abolished_by}
    return abolished | {str(lesion): None for lesion in found.spared_by}


def is_current(specification: Specification, entry: Mapping[str, Any] | None) -> bool:
    """Return whether this was measured on this protocol, with all lesions of its construct."""
    return (
        entry is not None
        and entry["sha256"] == specification.sha256
        and construct(specification).items() <= {name: row["at_most"] for name, row in entry["lesions"].items()}.items()
    )


def measure(specification: Specification, effort: float = 1.0, seed: int = 0) -> dict[str, Any]:
    """Return the ceilings of one protocol."""
    settings = AuditSettings(seed=seed, parts=("lesions",), effort=effort, processes=os.cpu_count() or 1)
    report = audit_specification(specification, settings)
    rows = {
        one.rule.removeprefix(_RULE): {**one.numbers, "verdict": one.verdict}
        for one in report.findings
        if one.rule.startswith(_RULE)
    }
    return {"sha256": specification.sha256, "effort": effort, "seed": seed, "lesions": rows}


def lesions(specification: Specification) -> str:
    """Return the table of what is left of a protocol; a sentence where it names no construct."""
    if specification.construct is None:
        return "*Not validated*: the protocol names no construct."
    entry = stored().get(specification.name)
    heading = f"**Construct: {escape(specification.construct.name)}**"
    if entry is None or not is_current(specification, entry):
        return f"{heading}, not measured."
    rows = [
        [code(name), _left(row), "" if row["at_most"] is None else f"{row['at_most']:g}", _curve(row["by_session"])]
        for name, row in entry["lesions"].items()
    ]
    return f"{heading}. Best pass rate under each lesion:\n\n" + table(
        ["lesion", "best pass rate", "limit", "by session"], rows
    )


def _left(row: Mapping[str, Any]) -> str:
    found = row["found"]
    text = f"found {found['rate']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
    return f"{text}, proven at most {row['proven']:.2f}" if row["proven"] is not None else text


def _curve(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values[:12])


def main(names: Sequence[str]) -> None:
    """Measure, and write after each protocol."""
    for specification in validated().values():
        found = stored()
        if specification.name in names or (not names and not is_current(specification, found.get(specification.name))):
            found[specification.name] = measure(specification)
            STORED.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", encoding="utf-8")
            print(specification.name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
