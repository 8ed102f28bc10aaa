"""Creates a protocol from a template, without errors and warnings, that passes its own tests."""

from __future__ import annotations

from pathlib import Path

from cheesebench.author.writing import filled
from cheesebench.errors import OptionError, PluginError
from cheesebench.interfaces import RUNNING, STAY
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, BaseSpecification, Catalogue
from cheesebench.protocol.inherit import protocol_name
from cheesebench.protocol.values import is_name, is_protocol_name

#: Paradigms to start from; an edition starts from another protocol.
TEMPLATES = ("maze", "chamber", "touchscreen", "dialogue")
#: The seed with which the tests of a template are played.
SEED = 1
#: Trials after which a draw of two values has surely had both.
_ENOUGH = 100


def protocol_text(template: str, name: str) -> str:
    """Return a new protocol of this name. Raises OptionError for an invalid name."""
    check_name("a paradigm", name)
    if template != "chamber":
        return filled(f"protocol/{template}", name=name)
    # Draws depend on the protocol's name, so find out which trials the tests must play.
    draft = filled(f"protocol/{template}", name=name, lit="1", dark="2")
    lit, dark = _first_trials(draft, "light", ("on", "off"))
    return filled(f"protocol/{template}", name=name, lit=str(lit), dark=str(dark))


def edition_text(name: str, parent: BaseSpecification) -> str:
    """Return a new edition of a protocol. Raises OptionError for an invalid name, or that of the parent's edition."""
    check_name("an edition", name)
    if parent.edition == name:
        raise OptionError(f"'{name}' is the parent's own edition. Choose another name.")
    extended = protocol_name(Path(parent.path).name.removesuffix(SUFFIX))
    if not is_protocol_name(extended):
        remedy = f"Rename it: {parent.paradigm}.{parent.edition}{SUFFIX}."
        raise OptionError(f"{Path(parent.path).name} has a name that cannot be extended. {remedy}")
    title = f"{parent.title or parent.paradigm}, {name}".replace("'", "''")
    return filled("protocol/edition", name=name, parent=extended, paradigm=parent.paradigm, title=f"'{title}'")


def check_name(what: str, name: str) -> None:
    """Raise OptionError unless this can be a name in a protocol."""
    if not is_name(name) or len(name) > 60:
        raise OptionError(f"'{name}' cannot be the name of {what}. Use letters, digits and _, beginning with a letter.")


def _first_trials(text: str, variable: str, values: tuple[str, ...]) -> list[int]:
    """Return the trial (from 1) of subject 0 in which a variable first has each of the values."""
    specification, found = Catalogue().inspect_text(text)
    if specification is None:
        raise PluginError("\n".join(map(str, found)))
    plugins = installed_plugins()
    life = plugins.compile(specification.walkable()).environment(next(iter(plugins.views.values())), SEED, 0)
    trials: dict[object, int] = {}
    for number in range(1, _ENOUGH):
        if life.begin_trial() is None or all(value in trials for value in values):
            break
        while life.step(STAY)[2] == RUNNING:
            pass
        trials.setdefault(life.result().variables[variable], number)
    return [trials[value] for value in values]
