"""``cheesebench completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import argparse

from cheesebench.commands.parsing import describe
from cheesebench.errors import OptionError
from cheesebench.extras import install_command

SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Write it where the shell looks for it: ~/.local/share/bash-completion/completions/cheesebench,\n"
        "~/.zfunc/_cheesebench, ~/.config/fish/completions/cheesebench.fish. Needs the extra 'completion'.\n"
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

    print(shtab.complete(build_parser(), shell=options.shell))
    return 0
