"""``cheesebench new``: create a protocol from a template."""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.author.protocols import TEMPLATES, edition_text, protocol_text
from cheesebench.author.writing import write_files
from cheesebench.commands.common import find_protocol, installed_catalogue, one_line
from cheesebench.commands.parsing import PROTOCOL, describe
from cheesebench.errors import OptionError
from cheesebench.protocol import SUFFIX


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "The new file has no errors and passes its own tests.",
        "maze my_maze",
        "touchscreen my_screen --output protocols/my_screen.protocol.yaml",
        "edition long_delays --parent my_maze",
    )
    templates = (*TEMPLATES, "edition")
    parser.add_argument("template", metavar="TEMPLATE", choices=templates, help=", ".join(templates))
    parser.add_argument("name", metavar="NAME", help="the id of the paradigm, or the name of the edition")
    parser.add_argument("--parent", metavar="PROTOCOL", help=f"the parent of an edition: {PROTOCOL}")
    parser.add_argument("--output", metavar="FILE", help="the file to write (default: NAME.protocol.yaml)")


def run(options: argparse.Namespace) -> int:
    """Write the protocol and say what comes next."""
    file, text = _edition(options) if options.template == "edition" else _paradigm(options)
    path = Path(options.output or file)
    if not path.name.endswith(SUFFIX):
        raise OptionError(f"--output {options.output}: the name of a protocol file ends with {SUFFIX}.")
    # A parent may be out of reach from there.
    specification, found = installed_catalogue().inspect_text(text, str(path))
    if specification is None:
        raise OptionError(f"It would not load from there: {'; '.join(map(str, found))}")
    write_files(path.parent, {path.name: text})
    shown = one_line(path)
    then = f"pytest --model random --protocols {shown}"
    print(f"{shown}\n\nNext: cheesebench lint {shown}, render, play, test, audit; then {then}")
    return 0


def _paradigm(options: argparse.Namespace) -> tuple[str, str]:
    if options.parent is not None:
        raise OptionError("--parent works only with the template 'edition'. Remove it, or use that template.")
    return f"{options.name}{SUFFIX}", protocol_text(options.template, options.name)


def _edition(options: argparse.Namespace) -> tuple[str, str]:
    if options.parent is None:
        raise OptionError("An edition extends a protocol. Name it: cheesebench new edition NAME --parent PROTOCOL.")
    catalogue = installed_catalogue()
    parent = catalogue.load(find_protocol(catalogue, options.parent))
    return f"{parent.paradigm}.{options.name}{SUFFIX}", edition_text(options.name, parent)
