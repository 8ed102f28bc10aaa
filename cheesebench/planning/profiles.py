"""Measured cost of four scripted respondents on the shipped protocols, for estimates before the first call.

They were run through the real code (``benchmarks/verdict_cost.py`` writes the file): ``hopeless`` names no action,
``weak`` walks at random, ``ratlike`` fails 25 % of its trials and ``competent`` 5 %. Models are expected to lie in
between. All figures are for the default view, prompt and history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from cheesebench.chat import Price, Usage
from cheesebench.experiment.records import Summable

if TYPE_CHECKING:
    from cheesebench.experiment.records import CellPlan

#: From the worst to the best.
RESPONDENTS = ("hopeless", "weak", "ratlike", "competent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent(Summable):
    """Calls and tokens. ``cached`` is the part of the prompt in vLLM's cache, ``api`` that in an API's cache."""

    calls: float = 0
    prompt: float = 0
    cached: float = 0
    api: float = 0
    completion: float = 0

    def __mul__(self, factor: float) -> Spent:
        """Return all figures multiplied by a factor."""
        return Spent(**{name: getattr(self, name) * factor for name in self.__slots__})

    def dollars(self, price: Price) -> float:
        """Return the price at an API."""
        return price.cost(Usage(prompt=round(self.prompt), cached=round(self.api), completion=round(self.completion)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One respondent on one protocol.

    ``rate``, ``stopped`` (subjects) and ``verdict`` are those of the look that decided; ``looks`` has the cumulative
    cost up to each look.
    """

    trials: int
    rate: float
    stopped: int
    verdict: str
    looks: Mapping[int, Spent]

    def spent(self, subjects: int, trials: int) -> Spent:
        """Return the cost of this many subjects with this many trials each."""
        # Scale from the next larger look; beyond the last look, assume that further subjects are alike.
        look = min((look for look in self.looks if look >= subjects), default=max(self.looks))
        return self.looks[look] * (subjects / look * trials / self.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """All that was measured. ``fixed`` are the subjects of the fixed design that was played beside."""

    history: str
    encoding: str
    fixed: int
    by_protocol: Mapping[str, Mapping[str, Profile]]
    sha256: Mapping[str, str]

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what a file of the benchmark says."""
        found: dict[str, Any] = json.loads(text)
        by_protocol = {
            name: {kind: _profile(one) for kind, one in measured["respondents"].items()}
            for name, measured in found["protocols"].items()
        }
        marks = {name: measured["sha256"] for name, measured in found["protocols"].items()}
        return cls(
            history=found["history"],
            encoding=found["encoding"],
            fixed=found["fixed"],
            by_protocol=by_protocol,
            sha256=marks,
        )


def _profile(found: Mapping[str, Any]) -> Profile:
    looks = {int(look): Spent(**spent) for look, spent in found["looks"].items()}
    return Profile(**{**found, "looks": looks})


@lru_cache(maxsize=1)
def shipped_profiles() -> Profiles:
    """Return the profiles that ship with the package."""
    return Profiles.read(files("cheesebench.planning").joinpath("profiles.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledRun:
    """The cost of a planned run for one respondent, by protocol and in total."""

    respondent: str
    subjects: Mapping[str, int]
    """Subjects of each protocol: as planned, or at the look that decided."""
    by_protocol: Mapping[str, Spent]
    verdicts: Mapping[str, str]
    """Of the sequential design; empty for a design without claims."""
    total: Spent
    dollars: float | None


def profiled(
    plans: Sequence[CellPlan], price: Price | None, profiles: Profiles, *, sequential: bool = False
) -> tuple[ProfiledRun, ...]:
    """Return the cost of the cells for each respondent; empty if a protocol was not measured.

    A cell with looks (or, if ``sequential``, any cell with a claim) ends at the look that decides.
    """
    if not plans or any(plan.protocol not in profiles.by_protocol for plan in plans):
        return ()
    measured = [kind for kind in RESPONDENTS if all(kind in profiles.by_protocol[plan.protocol] for plan in plans)]
    return tuple(_run(kind, plans, price, profiles, sequential) for kind in measured)


def _run(
    kind: str, plans: Sequence[CellPlan], price: Price | None, profiles: Profiles, sequential: bool
) -> ProfiledRun:
    subjects: dict[str, int] = {}
    by_protocol: dict[str, Spent] = {}
    verdicts: dict[str, str] = {}
    for plan in plans:
        profile = profiles.by_protocol[plan.protocol][kind]
        stops = bool(plan.looks) or (sequential and plan.claims)
        number = min(profile.stopped, plan.looks[-1] if plan.looks else profile.stopped) if stops else plan.subjects
        subjects[plan.protocol] = subjects.get(plan.protocol, 0) + number
        by_protocol[plan.protocol] = by_protocol.get(plan.protocol, Spent()) + profile.spent(number, plan.trials)
        if stops:
            verdicts[plan.protocol] = profile.verdict
    total = sum(by_protocol.values(), Spent())
    return ProfiledRun(
        respondent=kind,
        subjects=subjects,
        by_protocol=by_protocol,
        verdicts=verdicts,
        total=total,
        dollars=None if price is None else total.dollars(price),
    )


def outdated(profiles: Profiles, marks: Iterable[tuple[str, str]]) -> list[str]:
    """Return the protocols (of name and hash) that have changed since they were measured."""
    return [name for name, mark in marks if profiles.sha256.get(name, mark) != mark]
