"""Plans the cells of a recorded run again, from its protocols and options, and compares
the recorded plans with the result.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.errors import CheeseBenchError, RunLogError
from cheesebench.experiment import cells, log_file
from cheesebench.experiment.provenance import versions
from cheesebench.experiment.settings import Given, OptionValues
from cheesebench.family import CellRequest, LanguageModel, Study
from cheesebench.protocol import validation
from cheesebench.records import PERSON, CellPlan
from cheesebench.redaction import quoted

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import BaseSpecification
    from cheesebench.plugin_manager import PluginManager

#: Parts of a plan that decide a verdict. They follow from protocol and options in the
#: same way in every version. Words and audits may differ between versions.
_DECIDE = (
    "design",
    "subjects",
    "trials",
    "sequential",
    "claims",
    "estimand",
    "margin",
    "against",
    "goal",
    "twin_of",
)
_OF_ANOTHER_VERSION = " Of the plans only what decides verdicts was compared, because another version of CheeseBench stored them."
#: Maximum number of differing parts to show with their values.
_MOST = 3


def written_here(log: RunLog) -> bool:
    """Return whether a log is of this version of CheeseBench."""
    version: object = log.manifest["versions"].get("cheesebench")
    return version == versions()["cheesebench"]


def check_plan(
    log: RunLog,
    plugins: PluginManager,
    plan: CellPlan,
    specification: BaseSpecification,
) -> str:
    """Raise RunLogError if a recorded plan is not the one that would be stored now.
    Return a sentence on what could not be compared (empty if everything was).

    Of a plan that another version stored, only the parts that decide a verdict are
    compared. What an audit says is compared if a shipped audit belongs to the protocol,
    because the log does not contain the audit.
    """
    with log_file.damage_explained(log.path):
        expected = _expected(log, plugins, plan, specification)
        first = next(expected)
        if not _is_of_this_version(log, plan, first):
            _check_same(plan, _deciding(plan, plan), _deciding(first, plan))
            return _OF_ANOTHER_VERSION
        found = list[CellPlan]()
        for one in itertools.chain([first], expected):
            if _parts(one) == _parts(plan):
                return ""
            found.append(one)
    *shipped, _, bare = found
    other = next((one for one in shipped if one != bare), None)
    _check_same(plan, _parts(plan), _parts(other or _audited_as(plan, bare)))
    return (
        f" What an audit says of {quoted(plan.protocol, 60)} was not compared: no audit that CheeseBench ships belongs to "
        "this protocol."
    )


def _expected(
    log: RunLog,
    plugins: PluginManager,
    plan: CellPlan,
    specification: BaseSpecification,
) -> Iterator[CellPlan]:
    """Yield the plans that a run of this version stores for the cell: with the audits
    of each folder that has shipped ones, with those of the working directory, and
    without an audit, because a copy of a protocol may be in a folder of its own.
    """
    for folder in (*_folders_of_audits(), Path(), Path(os.devnull)):
        path = str(folder / Path(specification.path).name)
        there = dataclasses.replace(specification, path=path)
        one = _planned(log, plugins, plan, there)
        yield log_file.read_plan(log_file.plan_to_json(one))


@lru_cache(maxsize=1)
def _folders_of_audits() -> tuple[Path, ...]:
    root = Path(str(files("cheesebench.protocols")))
    return tuple(
        dict.fromkeys(
            path.parent for path in sorted(root.rglob(f"*{validation.SUFFIX}"))
        )
    )


def _planned(
    log: RunLog,
    plugins: PluginManager,
    plan: CellPlan,
    specification: BaseSpecification,
) -> CellPlan:
    """Return the cell as its family plans it now, for the same model, view and variant,
    and with the same settings of a language model. Raise RunLogError if it plans no
    such cell.
    """
    options = Given(values={}, recorded=log.manifest["options"]).resolve()
    request = _request(options, plugins, plan)
    try:
        found = cells.cells_of(specification, request)
    except CheeseBenchError as error:
        raise RunLogError(
            f"{_whose(plan)} cannot be planned by this version: {error}"
        ) from error
    for one in found:
        one = dataclasses.replace(one, model=plan.model)
        if one.key == plan.key:
            memory = one.memory if request.model == plan.model else plan.memory
            goal = _goal(log, options, one)
            if plan.variant.settings and plan.control:
                # The recorded ``memory`` describes the settings before the control
                # no-memory changed them, so it cannot be derived from the recorded
                # settings.
                words = {"memory": plan.settings.get("memory")}
                one = dataclasses.replace(one, settings={**one.settings, **words})
            return dataclasses.replace(one, memory=memory, goal=goal)
    raise RunLogError(f"{_whose(plan)} is not planned by this version. {_REMEDY}")


def _request(
    options: OptionValues, plugins: PluginManager, plan: CellPlan
) -> CellRequest:
    """Return the request for a recorded cell. A model that is unknown here, such as a
    person or the agent of a ``conftest.py``, is replaced by a known one.
    """
    known: Mapping[str, object] = plugins.respondents if plan.items else plugins.agents
    edition = plan.protocol.partition("@")[2]
    is_known = plan.agent or {plan.model, f"{plan.model}@{edition}"} & known.keys()
    design = options.design or cells.usual_design(bool(plan.agent))
    subjects = options.subjects
    if plan.model == PERSON:
        # People who take part in a run of models have a design and a number of subjects
        # of their own.
        design, subjects = plan.design, plan.subjects
    levels = {name: (level,) for name, level in plan.variant.settings}
    return CellRequest(
        model=plan.model if is_known else next(iter(known)),
        plugins=plugins,
        design=cells.find_design(design, subjects),
        language=_language(plugins, plan),
        views=(plan.view,),
        controls=(plan.control,) if plan.control else (),
        study=Study(name="", title="", axes=levels) if levels else None,
        temperatures=options.temperatures,
        subjects=subjects,
    )


def _language(plugins: PluginManager, plan: CellPlan) -> LanguageModel | None:
    """Return a cell's recorded language model, or None if it has none. If the model's
    agent is unknown here, another agent takes its name.
    """
    if not plan.agent or plan.agent in plugins.model_agents:
        return cells.replayed_models(plugins, [plan]).get(plan.model)
    other = dataclasses.replace(plan, agent=next(iter(plugins.model_agents)))
    found = cells.replayed_models(plugins, [other])[plan.model]
    agent = dataclasses.replace(found.agent, name=plan.agent, memory=plan.memory)
    return dataclasses.replace(found, agent=agent)


def _goal(log: RunLog, options: OptionValues, plan: CellPlan) -> float:
    """Return the evidence that a verdict on the cell needs."""
    if not options.familywise or plan.model == PERSON:
        return plan.goal
    shard = log.manifest.get("shard")
    run = log.plans() if shard is None else map(log_file.read_plan, shard["cells"])
    others = [one for one in run if one.key != plan.key]
    return cells.familywise([plan, *others])[0].goal


def _is_of_this_version(log: RunLog, plan: CellPlan, true: CellPlan) -> bool:
    """Return whether this version stored a plan: the log has the number of this
    version, and the plan has the names of parts that this version stores. (Before a
    release, the number stays while parts are added.)
    """
    if not written_here(log):
        return False
    where = "model = ? AND protocol = ? AND view = ? AND variant = ?"
    [(text,)] = log.select(f"SELECT plan FROM cells WHERE {where}", plan.key)
    stored, now = json.loads(text), json.loads(log_file.plan_to_json(true))
    return _same_names({**stored, "settings": 0}, {**now, "settings": 0})


def _same_names(one: Any, other: Any) -> bool:
    """Return whether two objects of JSON have the same names, as far as both have
    objects in the same place.
    """
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return True
    return one.keys() == other.keys() and all(
        _same_names(one[name], other[name]) for name in one
    )


def _parts(plan: CellPlan) -> dict[str, object]:
    return {one.name: getattr(plan, one.name) for one in dataclasses.fields(plan)}


def _deciding(plan: CellPlan, recorded: CellPlan) -> dict[str, object]:
    """Return the parts of a plan that decide a verdict, as far as every version that
    may have ``recorded`` a plan has them.
    """
    animals = plan.reference
    return {
        **{name: getattr(plan, name) for name in _DECIDE},
        "blocks": plan.blocks if recorded.blocks else (),
        "chance": plan.chance if plan.against == "chance" else None,
        "reference": animals
        and (
            animals.value,
            animals.interval,
            animals.sd,
            animals.n_animals,
            animals.measured,
        ),
    }


def _audited_as(plan: CellPlan, bare: CellPlan) -> CellPlan:
    """Return the plan of a cell without an audit, with what a recorded plan has from
    one.
    """
    construct = bare.construct
    if construct is not None and plan.construct is not None:
        construct = dataclasses.replace(
            plan.construct,
            name=construct.name,
            abolished_by=construct.abolished_by,
            doubt=construct.doubt,
        )
    return dataclasses.replace(
        bare,
        construct=construct,
        ceilings=plan.ceilings,
        ability=plan.ability,
        idle=plan.idle,
    )


def _check_same(
    plan: CellPlan, recorded: Mapping[str, object], true: Mapping[str, object]
) -> None:
    names = [name for name, value in recorded.items() if value != true[name]]
    if not names:
        return
    seen = "; ".join(
        f"{name} is {_shown(recorded[name])}, not {_shown(true[name])}"
        for name in names[:_MOST]
    )
    more = f"; and also {', '.join(names[_MOST:])}" if len(names) > _MOST else ""
    remedy = _OWN_AUDIT if _AUDITED.issuperset(names) else _REMEDY
    raise RunLogError(
        f"{_whose(plan)} is not planned as its protocol and the run's options say: {seen}{more}. {remedy}"
    )


def _shown(value: object) -> str:
    return quoted(str(value), 60)


def _whose(plan: CellPlan) -> str:
    return f"The cell of {quoted(plan.model, 60)} on {quoted(plan.label, 60)}"


_REMEDY = "Use an undamaged copy, or the version of CheeseBench that the run's manifest names."
#: Parts of a plan that an audit decides.
_AUDITED = frozenset({"construct", "ceilings", "ability", "idle"})
_OWN_AUDIT = f"{_REMEDY} If an audit of your own was beside the protocol, run this in the audit's directory."
