"""``cheesebench new``: creates a protocol from a template."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from cheesebench.commands.common import (
    PROTOCOL,
    describe,
    find_protocol,
    installed_catalogue,
    one_line,
)
from cheesebench.errors import OptionError, PluginError
from cheesebench.files import write_whole
from cheesebench.interfaces import RUNNING, STAY, BaseSpecification
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue, Specification, arenas
from cheesebench.protocol.catalogue import protocol_name
from cheesebench.protocol.documents import is_name, is_protocol_name


def filled(template: str, **values: str) -> str:
    """Return the text of a template (such as ``plugin/readme``). Its placeholders, such
    as ``$name``, are filled in.
    """
    text = (
        files("cheesebench.commands")
        .joinpath("templates", f"{template}.txt")
        .read_text(encoding="utf-8")
    )
    return Template(text).substitute(values)


def write_files(directory: Path, texts: Mapping[str, str]) -> None:
    """Write texts to their paths below a directory. Raise OptionError if a file exists
    (nothing is written then) or cannot be written.
    """
    for name in texts:
        if (directory / name).exists():
            raise OptionError(
                f"{directory / name} already exists. Choose another --output."
            )
    for name, text in texts.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        except OSError as error:
            raise OptionError(
                f"{path} cannot be written: {error.strerror}. Choose another --output."
            ) from None


#: Templates of paradigms. The template of an edition is not one of them, because an
#: edition starts from another protocol.
TEMPLATES = ("maze", "chamber", "touchscreen", "dialogue")
#: Seed of a template's tests.
SEED = 1
#: Number of trials in which a draw of two values has almost certainly given both.
_ENOUGH = 100


def protocol_text(template: str, name: str) -> str:
    """Return a new protocol of this name. Raise OptionError for an invalid name."""
    check_name("a paradigm", name)
    if template != "chamber":
        return filled(f"protocol/{template}", name=name)
    # Draws depend on the protocol's name, so the trials that the tests must play are
    # found first.
    draft = filled(f"protocol/{template}", name=name, lit="1", dark="2")
    lit, dark = _first_trials(draft, "light", ("on", "off"))
    return filled(f"protocol/{template}", name=name, lit=str(lit), dark=str(dark))


def edition_text(name: str, parent: BaseSpecification) -> str:
    """Return a new edition of a protocol. Raise OptionError for an invalid name, for
    the name of the parent's edition, and if the parent's file cannot be extended.
    """
    check_name("an edition", name)
    if parent.edition == name:
        raise OptionError(f"'{name}' is the parent's own edition. Choose another name.")
    extended = protocol_name(Path(parent.path).name.removesuffix(SUFFIX))
    if not is_protocol_name(extended):
        remedy = f"Rename it: {parent.paradigm}.{parent.edition}{SUFFIX}."
        raise OptionError(
            f"{Path(parent.path).name} has a name that cannot be extended. {remedy}"
        )
    title = f"{parent.title or parent.paradigm}, {name}".replace("'", "''")
    return filled(
        "protocol/edition",
        name=name,
        parent=extended,
        paradigm=parent.paradigm,
        title=f"'{title}'",
    )


def check_name(what: str, name: str) -> None:
    """Raise OptionError unless this is a valid name in a protocol."""
    if not is_name(name) or len(name) > 60:
        raise OptionError(
            f"'{name}' cannot be the name of {what}. Use up to 60 letters, digits and _, beginning with a letter."
        )


def _first_trials(text: str, variable: str, values: tuple[str, ...]) -> list[int]:
    specification, found = Catalogue().inspect_text(text)
    if specification is None:
        raise PluginError("\n".join(map(str, found)))
    plugins = installed_plugins()
    life = plugins.compile(specification).environment(
        next(iter(plugins.views.values())), SEED, 0
    )
    trials: dict[object, int] = {}
    for number in range(1, _ENOUGH):
        if life.begin_trial() is None or all(value in trials for value in values):
            break
        while life.step(STAY)[2] == RUNNING:
            pass
        trials.setdefault(life.result().variables[variable], number)
    return [trials[value] for value in values]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "The new file has no errors and passes its own tests.",
        "maze my_maze",
        "touchscreen my_screen --output protocols/my_screen.protocol.yaml",
        "edition long_delays --parent my_maze",
    )
    templates = (*TEMPLATES, "edition")
    parser.add_argument(
        "template", metavar="TEMPLATE", choices=templates, help=", ".join(templates)
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help="the id of the paradigm, or the name of the edition",
    )
    parser.add_argument(
        "--parent", metavar="PROTOCOL", help=f"the parent of an edition: {PROTOCOL}"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="the file to write (default: NAME.protocol.yaml)",
    )


def run(options: argparse.Namespace) -> int:
    file, text = (
        _edition(options) if options.template == "edition" else _paradigm(options)
    )
    path = Path(options.output or file)
    if not path.name.endswith(SUFFIX):
        raise OptionError(
            f"--output {options.output}: the name of a protocol file must end with {SUFFIX}."
        )
    # The text is checked as the file at this path, because the parent may not be found
    # from there.
    specification, found = installed_catalogue().inspect_text(text, str(path))
    if specification is None:
        raise OptionError(
            f"The new file would have errors: {'; '.join(map(str, found))}"
        )
    write_files(path.parent, {path.name: text})
    shown = one_line(path)
    print("\n".join([shown, "", "Next:", *_next(specification, shlex.quote(shown))]))
    return 0


def _next(specification: BaseSpecification, file: str) -> Iterator[str]:
    """Yield the commands to use next with a new file. The slowest comes last."""
    yield f"  cheesebench lint {file}"
    for arena in arenas([specification]):
        yield f"  cheesebench trace {file} {_played(arena)}"
        yield f"  cheesebench test {file}"
    yield f"  pytest --model random --protocols {file} --design smoke --exit-zero"
    if arenas([specification]):
        yield f"  cheesebench audit {file}"


def _played(specification: Specification) -> str:
    """Return options with which ``trace`` plays the protocol's first test, in which
    some of its rules fire, or a few steps if there are no tests.
    """
    plugins, tests = installed_plugins(), specification.document.tests
    view = next(iter(plugins.views.values()))
    reports = plugins.compile(specification).own_tests(view)
    if not tests:
        return "--actions FFRFF"
    actions = str(getattr(reports[0], "actions", "S"))
    own = {"seed": tests[0].seed, "subject": tests[0].subject, "trial": tests[0].trial}
    usual = {"seed": 0, "subject": 0, "trial": 1}
    given = [f"--{name} {one} " for name, one in own.items() if one != usual[name]]
    return f"{''.join(given)}--actions {actions}"


def _paradigm(options: argparse.Namespace) -> tuple[str, str]:
    if options.parent is not None:
        raise OptionError(
            "--parent works only with the template 'edition'. Remove it, or use that template."
        )
    catalogue = installed_catalogue()
    for path in (*catalogue.files.values(), *catalogue.inside()):
        if path.name.removesuffix(SUFFIX) == options.name:
            raise OptionError(
                f"'{options.name}' is the name of an installed paradigm. Choose another one, or write an edition:"
                f" cheesebench new edition NAME --parent {options.name}."
            )
    return f"{options.name}{SUFFIX}", protocol_text(options.template, options.name)


def _edition(options: argparse.Namespace) -> tuple[str, str]:
    if options.parent is None:
        raise OptionError(
            "An edition extends a protocol. Name it: cheesebench new edition NAME --parent PROTOCOL."
        )
    catalogue = installed_catalogue()
    parent = catalogue.load(find_protocol(catalogue, options.parent))
    return f"{parent.paradigm}.{options.name}{SUFFIX}", edition_text(
        options.name, parent
    )
