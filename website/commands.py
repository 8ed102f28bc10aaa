"""Describes commands, options, settings and environment variables. The texts come from
the parsers that read them.
"""

from __future__ import annotations

import argparse

from cheesebench.cli import build_parser
from cheesebench.options import INI, OPTIONS, VARIABLES, Option
from website.markup import code, escape, fenced, prose, sections, sentence, table

#: Maximum length of a usage line in characters, whatever the terminal.
_WIDTH = 88


def commands() -> str:
    """Return a section for each subcommand of ``cheesebench``."""
    parser = build_parser()
    [subparsers] = [
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    overview = table(
        ["command", "what it does"],
        [
            [
                f"[{code(choice.dest)}](#cheesebench-{choice.dest})",
                sentence(choice.help or ""),
            ]
            for choice in subparsers._choices_actions
        ],
    )
    return sections(
        [overview, *(_command(name, one) for name, one in subparsers.choices.items())]
    )


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(prog=parser.prog, width=_WIDTH)
    formatter.add_usage(
        parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix=""
    )
    rows = [
        [_spelling(action), prose(action.help or "")]
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction)
    ]
    examples = "\n".join(
        line.strip() for line in (parser.epilog or "").splitlines()[1:]
    )
    return sections(
        [
            f"## cheesebench {name}",
            sentence(parser.description or ""),
            fenced("text", formatter.format_help()),
            table(["argument", "meaning"], rows),
            fenced("console", examples),
        ]
    )


def _spelling(action: argparse.Action) -> str:
    """Return an argument as a user types it."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None and len(list(action.choices)) < 4:
        metavar = ",".join(map(str, action.choices))
    if not action.option_strings:
        return code(metavar + {"+": " ...", "*": " ..."}.get(str(action.nargs), ""))
    value = (
        ""
        if action.nargs == 0
        else f" [{metavar}]"
        if action.nargs == "?"
        else f" {metavar}"
    )
    return ", ".join(code(f"{name}{value}") for name in action.option_strings)


def options() -> str:
    """Return the options of a run."""
    rows = [
        [code(f"{option.short}{_value(option)}"), sentence(option.description)]
        for option in OPTIONS
    ]
    return table(["option", "meaning"], rows)


def _value(option: Option) -> str:
    if option.choices and not option.value_name:
        return " {" + ",".join(option.choices) + "}"
    return f" {option.value_name}" if option.value_name else ""


def ini_settings() -> str:
    """Return the settings of pytest's ini file."""
    return table(
        ["setting", "kind", "meaning"],
        [[code(s.name), escape(s.kind), sentence(s.help)] for s in INI],
    )


def environment() -> str:
    """Return the environment variables."""
    return table(
        ["variable", "meaning"], [[code(v.name), prose(v.meaning)] for v in VARIABLES]
    )
