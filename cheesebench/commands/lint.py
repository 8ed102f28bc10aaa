"""``cheesebench lint``: prints errors, warnings and notes about protocol files."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator

from cheesebench import diagnostics
from cheesebench.commands import FINDINGS
from cheesebench.commands.common import PROTOCOL, counted, describe
from cheesebench.errors import UnknownNameError
from cheesebench.functions import lint
from cheesebench.protocol.schema import schema_text

_NOUNS = {"error": "error", "warning": "warning", "info": "note"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints errors, warnings and notes, each with its position and a remedy. The exit code is 1 if there are errors.",
        "my_maze.protocol.yaml",
        "--strict -q my_protocols/",
        "--explain E226",
        "--explain estimand",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        default=["."],
        help=f"{PROTOCOL}, or a directory of them (default: this directory)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="treat warnings as errors"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print notes")
    parser.add_argument(
        "--explain",
        metavar="NAME",
        help="say what a code (E226) or a key of protocols (estimand) means, and check nothing",
    )


def run(options: argparse.Namespace) -> int:
    """Print the findings of every file, then a summary. Return FINDINGS if they count
    as a failure.
    """
    if options.explain is not None:
        print("\n".join(_explained(options.explain)))
        return 0
    inspected = lint(options.files)
    found: Counter[str] = Counter()
    told = set[diagnostics.Diagnostic]()
    for path, own in inspected.items():
        for diagnostic in own:
            found[diagnostic.severity] += 1
            if not (options.quiet and diagnostic.severity == "info"):
                heir = f" ({path.name} inherits it.)" * (diagnostic in told)
                print(f"{diagnostic}{heir}")
            told.add(diagnostic)
    counts = ", ".join(
        counted(found[severity], noun) for severity, noun in _NOUNS.items()
    )
    print(f"{counted(len(inspected), 'file')}: {counts}")
    return FINDINGS if found["error"] or (options.strict and found["warning"]) else 0


def _explained(name: str) -> list[str]:
    """Return what a code or a key means, with a line for each mapping that has the key.
    Raise UnknownNameError if there is neither.
    """
    codes = {
        f"{severity[0].upper()}{code}": f"{_NOUNS[severity]}: {meaning}"
        for code, (severity, meaning) in diagnostics.MEANINGS.items()
    }
    if (said := codes.get(name.upper())) is not None:
        return [f"{name.upper()}, {said}"]
    keys = list(_keys())
    found = [f"{name}{where}: {text}" for key, where, text in keys if key == name]
    if not found:
        known = [*codes, *(key for key, _, _ in keys)]
        raise UnknownNameError("code or key", name, dict.fromkeys(known))
    return list(dict.fromkeys(found))


def _keys() -> Iterator[tuple[str, str, str]]:
    """Yield each key of a protocol, the mapping that has it, and what it means."""
    for model, schema in json.loads(schema_text())["$defs"].items():
        if model.endswith("Patch"):
            continue
        where = "" if model == "ProtocolDocument" else f", in {model}"
        for key, value in schema.get("properties", {}).items():
            default = value.get("default")
            more = f" Default: {json.dumps(default)}." if default else ""
            yield key, where, f"{value.get('description', '')}{more}"
