"""Designs: number of subjects, how much of the schedule they run, and whether a verdict may be claimed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.records import (
    LOOKS,
    PLAIN,
    CellPlan,
    Construct,
    Measured,
    ReferenceValue,
    Variant,
    looks_until,
)
from cheesebench.protocol.validation import construct_status

if TYPE_CHECKING:
    from cheesebench.interfaces import Memory
    from cheesebench.protocol import Specification


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How a cell is run.

    ``trials`` limits the trials of each subject (None: the protocol's schedule); ``views`` are the default views;
    ``claims`` is False if too little is run for a PASS or a FAIL. ``settings`` are defaults for model agents that have
    these settings. ``sequential``: cells are judged at looks, and ``subjects`` is the maximum.
    """

    name: str
    subjects: int
    trials: int | None = None
    views: tuple[str, ...] = ("ascii_2d",)
    claims: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sequential: bool = False
    summary: str = ""


#: How the paper asks models: exactly five past pairs, and to the end of every trial.
_PAPER = {"history": 5, "patience": 0}
#: Subjects where several live through a protocol without looks.
COHORT = 20
#: The designs that ``--design`` can name.
DESIGNS = {
    design.name: design
    for design in (
        Design(name="smoke", subjects=2, trials=2, claims=False, summary="checks that everything runs; claims nothing"),
        Design(
            name="paper",
            subjects=1,
            views=("ascii_2d", "ascii_2d_fpv", "ascii_3d"),
            settings=_PAPER,
            summary="one subject through the protocol's schedule, in each of the three text views",
        ),
        Design(name="cohort", subjects=COHORT, summary="several subjects, each through the protocol's schedule"),
        Design(
            name="sequential",
            subjects=LOOKS[-1],
            sequential=True,
            summary="as many subjects as a verdict needs, judged after 6, 10, 14, ... of them",
        ),
    )
}


def usual_design(asks_model: bool) -> str:
    """Return the name of the default design; language models get the one that saves calls."""
    return "sequential" if asks_model else "cohort"


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


def check_generations(generations: int | None) -> int | None:
    """Return the number as it is, or raise OptionError."""
    if generations is not None and generations < 1:
        raise OptionError(f"--generations {generations}: a cell needs at least one. Give a number from 1.")
    return generations


def _flat(trials: int) -> Design:
    """Return the design of the paper's studies: one subject with this many trials, whatever the schedule."""
    return Design(
        name=f"flat-{trials}",
        subjects=1,
        trials=trials,
        claims=False,
        settings=_PAPER,
        summary="for comparing settings",
    )


def plan_cell(
    specification: Specification,
    model: str,
    view: str,
    design: Design,
    memory: Memory = "life",
    *,
    agent: str = "",
    settings: Mapping[str, Any] | None = None,
    variant: Variant = PLAIN,
) -> CellPlan:
    """Return the plan of one cell: ``model`` on a protocol in a view.

    ``memory`` is that of the agent. For a language model, ``agent`` prompts it, with these ``settings``.
    """
    document = specification.document
    trials = specification.planned_trials
    reference = reference_value(specification)
    # Without a reference there is no decision to stop for.
    looks = looks_until(design.subjects) if design.sequential and reference is not None else ()
    design = design if looks else without_looks(design)
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
        looks=looks,
        trials=trials if design.trials is None else min(trials, design.trials),
        memory=memory,
        estimand=specification.estimand,
        margin=document.margin if specification.judged is None else specification.judged.margin or document.margin,
        split=tuple(document.split),
        by=tuple(getattr(document, "by", ())),
        reference=reference,
        chance=None if document.chance is None else document.chance.value,
        goal_visible=specification.goal_visible,
        claims=design.claims,
        agent=agent,
        settings=settings or {},
        variant=variant,
        construct=_construct(specification),
    )


def without_looks(design: Design) -> Design:
    """Return the design for a cell that cannot be judged at looks: a cohort if the run's design is sequential."""
    if not design.sequential:
        return design
    return dataclasses.replace(DESIGNS["cohort"], subjects=min(design.subjects, COHORT))


def _construct(specification: Specification) -> Construct | None:
    """Return the protocol's construct and its validation status."""
    construct = specification.construct
    if construct is None:
        return None
    abolished = tuple((str(lesion), at_most) for lesion, at_most in construct.abolished_by)
    return Construct(name=construct.name, abolished_by=abolished, status=construct_status(specification))


def reference_value(specification: Specification) -> ReferenceValue | None:
    """Return the animals' value that the verdict is about: a pass rate, or the mean of a measure."""
    reference = specification.judged
    if reference is None:
        return None
    measured = None
    if reference.better is not None:
        measured = Measured(name=reference.measure, better=reference.better, range=reference.range)
    return ReferenceValue(
        value=reference.value,
        interval=reference.interval,
        n_animals=reference.n_animals,
        sd=reference.sd,
        kind=reference.kind,
        curve=reference.curve,
        curve_sd=reference.curve_sd,
        over=reference.over,
        species=reference.species,
        source=reference.source,
        status=reference.status,
        measured=measured,
    )
