"""Frozen sets: the protocols of a release, with their hashes, views and settings, under
a name that results can state.

A set is a folder ``protocols/sets/NAME`` with protocols, the animals' data that they
use, their audits, and ``set.json``. It never changes. A changed protocol belongs to no
set until it is frozen under another name (``python benchmarks/freeze.py NAME``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from cheesebench.errors import UnknownNameError
from cheesebench.protocol.resolve import protocol_hash
from cheesebench.records import CellPlan

#: Name of the file in a set's folder that describes the set.
FILE = "set.json"
#: Suffix of a set's name if the run differed from the set.
CHANGED = "+"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSet:
    """The content of ``set.json``, and the set's folder."""

    name: str
    folder: Path
    views: tuple[str, ...]
    agents: tuple[str, ...]
    """Agents that may ask a language model."""
    settings: Mapping[str, Any]
    """Settings of the agents. A setting that a model lacks is not compared."""
    protocols: Mapping[str, Mapping[str, Any]]
    """The ``fingerprint`` of each protocol, by name."""
    files: Mapping[str, str]
    """The SHA-256 of each file in the folder, by name."""

    def twin_differences(self, plans: Iterable[CellPlan]) -> Iterator[str]:
        """Yield how the cells of held-out twins differ from what the set says of their
        originals. The rules of twins are secret, so they are not compared.
        """
        for plan in plans:
            kept = self.protocols.get(plan.twin_of)
            if plan.control:
                yield f"{plan.label} was also run with {plan.variant}"
            elif kept is None:
                yield f"{plan.label} is not a twin of a protocol of {self.name}"
            else:
                public = replace(plan, protocol=plan.twin_of, sha256=kept["sha256"])
                yield from _differences(self, [public])


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a run compares with a set. As text, it is the set's name, with ``+`` if
    something differs.
    """

    frozen: FrozenSet
    differences: tuple[str, ...]
    """How the run differs from the set, in words."""
    missing: tuple[str, ...]
    """Protocols of the set that were not run."""

    def __str__(self) -> str:
        return self.frozen.name + CHANGED * bool(self.differences)


@lru_cache(maxsize=1)
def frozen_sets() -> Mapping[str, FrozenSet]:
    """Return the sets that ship with CheeseBench by name, the newest first."""
    places = Path(str(files("cheesebench.protocols"))).glob(f"sets/*/{FILE}")
    found = map(_read, places)
    return {
        one.name: one
        for one in sorted(found, key=lambda one: _order(one.name), reverse=True)
    }


def frozen_set(name: str) -> FrozenSet:
    """Return the set of that name. Raise UnknownNameError if there is none."""
    sets = frozen_sets()
    if name not in sets:
        raise UnknownNameError("set", name, sets)
    return sets[name]


def _read(path: Path) -> FrozenSet:
    told = json.loads(path.read_text(encoding="utf-8"))
    return FrozenSet(
        name=told["set"],
        folder=path.parent,
        views=tuple(told["views"]),
        agents=tuple(told["agents"]),
        settings=told["settings"],
        protocols=told["protocols"],
        files=told["files"],
    )


def _order(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))


def fingerprint(plan: CellPlan) -> dict[str, Any]:
    """Return the parts of a plan that must be the same as for a set's protocol: the
    hash of the rules, and what the verdict compares.
    """
    reference = plan.reference
    return {
        "sha256": plan.sha256,
        "estimand": plan.estimand,
        "margin": plan.margin,
        "rodent": None if reference is None else round(reference.value, 9),
    }


def standing(
    plans: Iterable[CellPlan], protocols: Mapping[str, Mapping[str, str]]
) -> Standing | None:
    """Compare a run with the set that fits it best (the newest of several). Return None
    if the run has no protocol of any set.

    Controls and twins belong to no set. ``protocols`` comes from the run's manifest:
    the hash of a protocol's text counts, not the hash that a plan claims.
    """
    hashes = {name: _text_hash(one.get("text", "")) for name, one in protocols.items()}
    own = [
        replace(plan, sha256=hashes.get(plan.protocol, ""))
        for plan in plans
        if not plan.control and not plan.twin_of
    ]
    found = [
        Standing(
            frozen=one,
            differences=tuple(dict.fromkeys(_differences(one, own))),
            missing=tuple(sorted(set(one.protocols) - {plan.protocol for plan in own})),
        )
        for one in frozen_sets().values()
        if any(plan.protocol in one.protocols for plan in own)
    ]
    return min(found, key=lambda one: len(one.differences), default=None)


def _text_hash(text: str) -> str:
    try:
        plain = json.loads(text)
    except ValueError:
        return ""
    return protocol_hash(plain) if isinstance(plain, dict) else ""


def _differences(frozen: FrozenSet, plans: Iterable[CellPlan]) -> Iterator[str]:
    for plan in plans:
        kept = frozen.protocols.get(plan.protocol)
        if kept is None:
            continue
        now = fingerprint(plan)
        for key in (key for key in kept if kept[key] != now[key]):
            yield f"{plan.protocol} has the {key} {_short(now[key])}, not {_short(kept[key])}"
        if plan.view not in frozen.views:
            yield f"the view is {plan.view}, not {' or '.join(frozen.views)}"
        if str(plan.variant):
            yield f"{plan.label} was run with {plan.variant}"
        if plan.agent:
            yield from _other_settings(frozen, plan)


def _other_settings(frozen: FrozenSet, plan: CellPlan) -> Iterator[str]:
    if plan.agent not in frozen.agents:
        yield f"the agent is {plan.agent}, not {' or '.join(frozen.agents)}"
    # A parameter that the model or its server does not accept is not sent.
    dropped = plan.settings.get("dropped", ())
    for name, value in frozen.settings.items():
        if name in plan.settings and name not in dropped:
            own = plan.settings[name]
            if own != value:
                yield f"{name} is {own}, not {value}"


def _short(value: object) -> str:
    return value[:12] if isinstance(value, str) else str(value)
