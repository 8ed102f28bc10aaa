"""``cheesebench diff``: shows how two protocols differ after each is merged with the
protocols that it extends.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from cheesebench.commands import FINDINGS, common
from cheesebench.interfaces import BaseSpecification
from cheesebench.protocol import Catalogue

#: Maximum length, in characters, of a value that is shown in full.
LONGEST = 300


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.describe(
        parser,
        "Each protocol is merged with its parents before the comparison. The exit code is 1 if the two differ.",
        "my_maze my_maze.long_delays.protocol.yaml",
    )
    parser.add_argument("parent", metavar="PARENT", help=common.PROTOCOL)
    parser.add_argument(
        "child", metavar="CHILD", help="the protocol with which PARENT is compared"
    )


def run(options: argparse.Namespace) -> int:
    """Print the differences. Return FINDINGS if there are any, as the Unix command diff
    does.
    """
    catalogue = common.installed_catalogue()
    parent, child = (_load(catalogue, name) for name in (options.parent, options.child))
    print(
        common.one_line(
            f"{parent.name} ({common.shown_path(parent.path)}) and {child.name} ({common.shown_path(child.path)})"
        ),
        end="\n\n",
    )
    if parent.family != child.family:
        print(
            f"They are of different families, '{parent.family}' and '{child.family}', whose keys cannot be compared."
        )
        return FINDINGS
    found = list(differences(_values(parent), _values(child)))
    if not found:
        print("They are equivalent.")
        return 0
    for key, old, new in found:
        print(common.one_line(f"{key}:"))
        print(
            "".join(
                f"  {sign} {_shown(value)}\n"
                for sign, value in (("-", old), ("+", new))
                if value is not ABSENT
            )
        )
    same = "the same hash" if parent.sha256 == child.sha256 else "different hashes"
    print(f"They have {same} in results.")
    return FINDINGS


def _load(catalogue: Catalogue, name: str) -> BaseSpecification:
    return catalogue.load(common.find_protocol(catalogue, name))


def _values(specification: BaseSpecification) -> Mapping[str, Any]:
    values: dict[str, Any] = specification.document.model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    return {name: value for name, value in values.items() if name != "extends"}


class _Absent:
    """Marks a key that is missing on one side."""


ABSENT = _Absent()


def differences(old: Any, new: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (key, old value, new value) for every difference. Lists of different
    lengths differ as a whole.

    ABSENT marks a key that is missing on one side.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*old, *new]):
            path = f"{key}.{name}" if key else str(name)
            yield from differences(old.get(name, ABSENT), new.get(name, ABSENT), path)
    elif (
        isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and old
    ):
        for number, (one, other) in enumerate(zip(old, new, strict=True), 1):
            yield from differences(one, other, f"{key}[{number}]")
    elif old is ABSENT or new is ABSENT or old != new:
        yield key, old, new


def _shown(value: object) -> str:
    line = common.one_line(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
