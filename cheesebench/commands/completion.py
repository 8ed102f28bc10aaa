"""``cheesebench completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cheesebench.commands.common import installed_catalogue
from cheesebench.commands.parsing import describe
from cheesebench.errors import OptionError, ProtocolError
from cheesebench.extras import install_command
from cheesebench.protocol import Catalogue

SHELLS = ("bash", "zsh", "fish", "tcsh")

#: What arguments are, by what the help calls them. A run can be named by its directory or its file.
_FILES = {"FILE", "PATH", "CSV", "PNG", "PAGE", "NAME|FILE", "RUN", "RUN_A", "RUN_B"}
_DIRECTORIES = {"DIR"}
_PROTOCOLS = {"PROTOCOL", "WHAT", "PARENT", "CHILD"}
#: Commands whose FILE may be the name of an installed protocol, too.
_OF_PROTOCOLS = {"lint", "test", "render", "play", "trace"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Write the output to the file that your shell reads. Needs the extra 'completion'.\n"
        "bash: ~/.local/share/bash-completion/completions/cheesebench\n"
        "zsh: ~/.zfunc/_cheesebench\n"
        "fish: ~/.config/fish/completions/cheesebench.fish\n"
        "In bash, names of installed protocols are completed, too. After installing new ones, run this command again.\n"
        "Options of pytest itself are completed by argcomplete: see pytest's manual.",
        "bash",
        "fish",
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"the shell that it is for: {', '.join(SHELLS)}")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise OptionError(
            f"Completion needs shtab, which is not installed. Install it with: {install_command('completion')}"
        ) from None
    if options.shell not in shtab.SUPPORTED_SHELLS:
        raise OptionError(f"This shtab has no {options.shell}: install a newer one.")
    from cheesebench.cli import build_parser

    parser = build_parser()
    protocols = _protocols(shtab.CHOICE_FUNCTIONS["file"], _names(installed_catalogue()))
    for command, action in _arguments(parser):
        name = str(action.metavar)
        if name in _PROTOCOLS or (name == "FILE" and command in _OF_PROTOCOLS and not action.option_strings):
            action.complete = protocols
        elif name in _FILES:
            action.complete = shtab.FILE
        elif name in _DIRECTORIES:
            action.complete = shtab.DIRECTORY
    print(shtab.complete(parser, shell=options.shell))
    return 0


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, Any]]:
    """Yield each command's name with each of its arguments that take a value."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, one in action.choices.items():
                yield from ((command, each) for each in one._actions if each.nargs != 0 and not each.choices)


def _names(catalogue: Catalogue) -> list[str]:
    """Return the names of all protocols that load, also of those in folders (``classics``)."""
    found = set()
    for path in [*catalogue.files.values(), *catalogue.inside()]:
        with contextlib.suppress(ProtocolError):
            found.add(catalogue.load(path).name)
    return sorted(found)


def _protocols(files: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return what completes files and, in bash, the names of protocols; ``files`` is what each shell does for files."""
    words = shlex.quote(" ".join(names))
    function = f'_cheesebench_protocols() {{ compgen -W {words} -- "$1"; {files["bash"]} "$1"; }}'
    return {**files, "bash": "_cheesebench_protocols", "preamble": {"bash": function}}
