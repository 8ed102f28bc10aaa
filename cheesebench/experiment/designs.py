"""Designs: how many subjects live through how much of a protocol's schedule, and what may be claimed then."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.records import CellPlan, ReferenceValue

if TYPE_CHECKING:
    from cheesebench.interfaces import Memory
    from cheesebench.protocol import Specification


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How a cell is run.

    ``trials`` cuts every life off after so many trials (None: the protocol's own schedule); ``views`` are those that
    it is run in unless others are asked for; ``claims`` is False where too little is run for a PASS or a FAIL.
    """

    name: str
    subjects: int
    trials: int | None = None
    views: tuple[str, ...] = ("ascii_2d",)
    claims: bool = True
    summary: str = ""


#: The designs that ``--design`` can name.
DESIGNS = {
    design.name: design
    for design in (
        Design(name="smoke", subjects=2, trials=2, claims=False, summary="does it run at all? claims nothing"),
        Design(
            name="paper",
            subjects=1,
            views=("ascii_2d", "ascii_2d_fpv", "ascii_3d"),
            summary="one subject through the protocol's schedule, in each of the three text views",
        ),
        Design(name="cohort", subjects=10, summary="several subjects, each through the protocol's schedule"),
    )
}


def find_design(name: str, subjects: int | None = None) -> Design:
    """Return the design of that name, with its number of subjects replaced if ``subjects`` is given.

    Raises UnknownNameError for another name and OptionError for fewer subjects than one.
    """
    flat = re.fullmatch(r"flat-([1-9]\d{0,5})", name)
    if flat is None and name not in DESIGNS:
        raise UnknownNameError("design", name, [*DESIGNS, "flat-15"])
    design = DESIGNS[name] if flat is None else _flat(int(flat[1]))
    if subjects is None:
        return design
    if subjects < 1:
        raise OptionError(f"--subjects {subjects}: a run needs at least one subject. Give a number from 1.")
    return dataclasses.replace(design, subjects=subjects)


def _flat(trials: int) -> Design:
    """Return the design of the paper's studies: so many trials of one subject, whatever the schedule has."""
    return Design(name=f"flat-{trials}", subjects=1, trials=trials, claims=False, summary="for comparing settings")


def plan_cell(
    specification: Specification,
    model: str,
    view: str,
    design: Design,
    memory: Memory = "life",
    *,
    agent: str = "",
    settings: Mapping[str, Any] | None = None,
    variant: str = "",
) -> CellPlan:
    """Return the plan of one cell: ``model`` on a protocol in a view.

    ``memory`` is that of the agent; for a language model ``agent`` is the one that asks it, with all ``settings``.
    """
    document = specification.document
    trials = specification.planned_trials
    return CellPlan(
        model=model,
        protocol=specification.name,
        view=view,
        title=specification.title,
        dimension=document.dimension,
        species=document.species or "",
        sha256=specification.sha256,
        design=design.name,
        subjects=design.subjects,
        trials=trials if design.trials is None else min(trials, design.trials),
        memory=memory,
        estimand=specification.estimand,
        margin=document.margin,
        split=tuple(document.split),
        reference=_pass_rate(specification),
        chance=None if document.chance is None else document.chance.value,
        goal_visible=specification.goal_visible,
        claims=design.claims,
        agent=agent,
        settings=settings or {},
        variant=variant,
    )


def _pass_rate(specification: Specification) -> ReferenceValue | None:
    """Return what the protocol says of the animals' pass rate: its first reference for ``success``."""
    for reference in specification.document.reference:
        if reference.measure == "success":
            return ReferenceValue(
                value=reference.value,
                interval=reference.interval,
                n_animals=reference.n_animals,
                curve=tuple(reference.curve),
                species=reference.species or specification.document.species or "",
                source=reference.source or "",
                status=reference.status,
            )
    return None
