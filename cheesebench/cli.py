"""The ``cheesebench`` command line: runs a command, and reports a user's mistake
without a traceback. It is cheap to import.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from cheesebench import __version__, arguments
from cheesebench.commands import COMMANDS, GROUPS
from cheesebench.errors import (
    NOT_AS_WRITTEN,
    CheeseBenchError,
    FileError,
    OptionError,
    PluginError,
    ProtocolError,
    UnknownNameError,
    closest,
    did_you_mean,
    raised_where,
    said_of_logs,
)
from cheesebench.interface_checks import blaming, misfit, returned
from cheesebench.interfaces import CommandModule, CommandSpec
from cheesebench.interrupts import ended
from cheesebench.options import OPTIONS
from cheesebench.plugin_manager import (
    WITH_COMMANDS,
    PluginManager,
    installed_plugins,
)
from cheesebench.profiles import expanded, find_file
from cheesebench.redaction import redact
from cheesebench.terminal import coloured, printable, replace_unprintable

#: Exit codes: ``MISTAKE`` after a user's mistake, ``BROKEN_PIPE`` if the reader of a
#: pipe has closed it.
MISTAKE, BROKEN_PIPE = 2, 141
#: Names that people try as commands, although there is no such command, each with what
#: to use instead.
ELSEWHERE = {
    "run": "pytest runs models, as in 'pytest --model NAME --protocols t_maze'"
}
#: Maximum number of characters of an error line.
LONGEST = 5000


def main(given: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. A user's mistake is reported on stderr,
    without a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        # Characters that a stream cannot encode must not raise an exception.
        replace_unprintable(stream)
    try:
        with arguments.on_command_line():
            return _outcome(sys.argv[1:] if given is None else list(given))
    except KeyboardInterrupt as error:
        line, code = ended(error)
        _complain(line)
        return code


def _outcome(arguments: list[str]) -> int:
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`); Python would complain when it
        # flushes stdout at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except ProtocolError as error:
        found = len(error.findings)
        return _mistake(
            *([f"the protocol has {found} errors."] if found > 1 else []), *error.lines
        )
    except FileError as error:
        return _mistake(*error.lines)
    except CheeseBenchError as error:
        return _mistake(" ".join(str(error).split()))
    except NOT_AS_WRITTEN as error:
        if (said := said_of_logs(error)) is None:
            raise
        return _mistake(said)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        return _mistake(
            f"{error.strerror or error}{place}. Check the path, its permissions and the disk."
        )


def _run(arguments: list[str]) -> int:
    name = next((one for one in arguments if not one.startswith("-")), "")
    # A plugin's command cannot replace ours, so plugins are loaded only for other
    # names.
    commands = COMMANDS if name in COMMANDS else all_commands()
    if name not in commands and arguments[:1] == [name]:
        raise _no_command(name, commands)
    parser = build_parser(commands, [name])
    options = _parsed(parser, arguments, name)
    if options.command is None:
        parser.print_help()
        return 0
    command = commands[options.command]
    with _blamed(command):
        code = _module(command).run(options)
        return (
            0
            if code is None
            else returned(code, int, f"The command '{command.name}' of a plugin: run")
        )


def _no_command(name: str, commands: Mapping[str, CommandSpec]) -> CheeseBenchError:
    if name in ELSEWHERE:
        return OptionError(f"There is no command '{name}': {ELSEWHERE[name]}.")
    if closest(name, commands):
        return UnknownNameError("command", name, commands)
    plugins = installed_plugins()
    # If a plugin's hook fails, that plugin may supply the missing command, so the
    # message must name it.
    plugins.supplied(plugins.hook.cheesebench_commands)
    remedy = plugins.remedy_for(name)
    return UnknownNameError("command", name, commands, remedy=remedy)


def _parsed(
    parser: argparse.ArgumentParser, arguments: list[str], name: str
) -> argparse.Namespace:
    """Return the options of a command, including its profile's options. Raise
    OptionError for arguments that the command does not take.
    """
    arguments = _with_profile(parser, arguments, name)
    arguments = _placed(_own_parser(parser, name), arguments)
    options, unknown = parser.parse_known_args(arguments)
    known = _spellings(parser, name)
    if "--protocols" in known and not _options_of(unknown):
        given = [one for text in unknown for one in text.split(",")]
        options.protocols, unknown = [*(options.protocols or ()), *given] or None, []
    if unknown:
        program = f"cheesebench {options.command or ''}".rstrip()
        hint = "".join(_meant(one, known) for one in _options_of(unknown)[:1])
        raise OptionError(
            f"unrecognized arguments: {' '.join(unknown)}.{hint} See '{program} --help'."
        )
    return options


def _options_of(arguments: Sequence[str]) -> list[str]:
    return [one.partition("=")[0] for one in arguments if one.startswith("-")]


def _meant(option: str, known: Iterable[str]) -> str:
    """Return a hint to the option that an unknown one was probably meant to be."""
    if option.removeprefix("--") in {one.name for one in OPTIONS}:
        more = "..." if option == "--model" else f"{option} ..."
        return f" {option} is an option of a run: pytest --model NAME {more}"
    return did_you_mean(option, known)


def _placed(own: argparse.ArgumentParser, arguments: list[str]) -> list[str]:
    """Return the arguments with ``--protocols A,B`` (or ``--protocol``) turned into
    positional arguments ``A B``, if the command takes protocols or files only as these.
    """
    places = {one.metavar for one in own._actions if not one.option_strings}
    options = {one for action in own._actions for one in action.option_strings}
    if "--protocols" in options or not places & {"PROTOCOL", "FILE"}:
        return arguments
    found, rest = [], iter(arguments)
    for argument in rest:
        option, _, value = argument.partition("=")
        if option not in ("--protocols", "--protocol"):
            found.append(argument)
        else:
            found += (value or next(rest, "")).split(",")
    return found


def _own_parser(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    commands: dict[str, argparse.ArgumentParser] = next(
        one for one in parser._actions if isinstance(one, argparse._SubParsersAction)
    ).choices
    return commands.get(name, parser)


def _spellings(parser: argparse.ArgumentParser, name: str) -> set[str]:
    return {
        spelling
        for action in _own_parser(parser, name)._actions
        for spelling in action.option_strings
        if spelling.startswith("--")
    }


def _with_profile(
    parser: argparse.ArgumentParser, arguments: list[str], name: str
) -> list[str]:
    known = _spellings(parser, name)
    if "--profile" not in known or not any(
        argument.partition("=")[0] == "--profile" for argument in arguments
    ):
        return arguments
    return arguments + expanded(arguments, find_file(Path.cwd()), known)[0]


def all_commands(*, entry_points: bool = True) -> Mapping[str, CommandSpec]:
    """Return our commands and the plugins' commands, which cannot replace ours.

    With ``entry_points``, installed plugins are included, not only the built-in ones.
    """
    return COMMANDS | {
        name: command
        for name, command in PluginManager(
            entry_points=entry_points, built_ins=WITH_COMMANDS
        ).commands.items()
        if name not in COMMANDS
    }


def _module(command: CommandSpec) -> Any:
    if command.name in COMMANDS:
        return importlib.import_module(command.module)
    try:
        module = importlib.import_module(command.module)
    except (Exception, SystemExit) as error:  # third-party code may raise anything
        raise PluginError(
            f"The command '{command.name}' of a plugin cannot be loaded: {raised_where(error)}. Fix or remove the plugin."
        ) from error
    if fault := misfit(module, CommandModule):
        fault = fault.replace("(self, ", "(")
        raise PluginError(
            f"The command '{command.name}' of a plugin: '{command.module}' is {fault}"
        )
    return module


def _blamed(command: CommandSpec) -> contextlib.AbstractContextManager[None]:
    """Attribute an exception in a plugin's command to the plugin. An exception in our
    own commands keeps its traceback.
    """
    ours = command.name in COMMANDS or command.module.startswith("cheesebench.")
    return (
        contextlib.nullcontext()
        if ours
        else blaming(f"The command '{command.name}' of a plugin")
    )


def _mistake(*lines: str) -> int:
    """Print an error on stderr: one line, or a line for each finding in a file."""
    _complain(f"cheesebench: {lines[0]}", *lines[1:])
    return MISTAKE


def _complain(*lines: str) -> None:
    # stderr may be closed too (`2>&1 | head`).
    with contextlib.suppress(OSError):
        # A damaged log can cause a line of megabytes.
        shown = [
            line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
            for line in lines
        ]
        text = printable(redact("\n".join(shown)))
        print(coloured(text, sys.stderr), file=sys.stderr, flush=True)


class _InGroups(argparse.HelpFormatter):
    """Help with a heading above the first command of each group."""

    _headings: ClassVar = {
        commands[0].name: title for title, commands in GROUPS.items()
    }

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        title = (
            self._headings.get(action.dest)
            if isinstance(action, argparse._SubParsersAction._ChoicesPseudoAction)
            else None
        )
        return text if title is None else f"\n  {title}:\n{text}"


class _Parser(argparse.ArgumentParser):
    """A parser that raises OptionError, so that its errors are reported like all
    others.
    """

    def error(self, message: str) -> NoReturn:
        raise OptionError.of_argparse(message, f"{self.prog} --help")


def build_parser(
    commands: Mapping[str, CommandSpec] | None = None,
    loaded: Container[str] | None = None,
) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    ``commands`` defaults to the commands of this distribution. A command's module is
    imported, and its arguments are added, only if ``loaded`` has its name (None: all).
    """
    parser = _Parser(
        prog="cheesebench",
        description=(
            "Rodent paradigms declared in YAML: view, check and play them, and see the results of runs. Models are "
            "run by pytest: pytest --model NAME."
        ),
        epilog="Example: cheesebench list",
        allow_abbrev=False,
        formatter_class=_InGroups,
    )
    parser.add_argument(
        "-V", "--version", action="version", version=f"cheesebench {__version__}"
    )
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands"
    )
    for name, command in (
        all_commands(entry_points=False) if commands is None else commands
    ).items():
        summary = command.help
        about = f"{summary[:1].upper()}{summary[1:]}."
        own = subparsers.add_parser(
            name, help=summary, description=about, allow_abbrev=False
        )
        if loaded is None or name in loaded:
            with _blamed(command):
                _module(command).add_arguments(own)
    return parser


if __name__ == "__main__":
    sys.exit(main())
