"""The ``cheesebench`` command: options and help here, the work in ``cheesebench.commands``; light at import."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cheesebench import __version__
from cheesebench.arguments import Command, add_output, add_run, positive_number, whole_number
from cheesebench.author_arguments import add_diff, add_new, add_new_plugin, add_plugins, add_schema, add_trace
from cheesebench.dialogue_arguments import add_cogeval_stats
from cheesebench.errors import CheeseBenchError, FileError, OptionError, ProtocolError, UnknownNameError
from cheesebench.interfaces import AUDIT_PARTS
from cheesebench.run_arguments import add_bless, add_compare, add_export, add_plan
from cheesebench.terminal import spare

#: Exit codes: findings (errors of ``lint``), a user's mistake, a reader that closed the pipe, Ctrl-C.
FINDINGS, MISTAKE, BROKEN_PIPE, INTERRUPTED = 1, 2, 141, 130

#: The commands, in the order of the help, and the module of ``cheesebench.commands`` that does the work.
COMMANDS = {
    "list": "listing",
    "models": "models",
    "lint": "lint",
    "test": "testing",
    "audit": "audit",
    "render": "render",
    "play": "play",
    "plan": "plan",
    "schema": "schema",
    "report": "report",
    "compare": "compare",
    "bless": "bless",
    "study": "study",
    "figures": "figures",
    "measures": "measures",
    "export": "export",
    "show": "show",
    "reference": "reference",
    "cogeval-stats": "cogeval_stats",
    "gallery": "gallery",
    "new": "new",
    "trace": "trace",
    "diff": "diff",
    "new-plugin": "new_plugin",
    "plugins": "plugins",
}

_PROTOCOL = "a protocol's name (as in 'cheesebench list') or a *.protocol.yaml file"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; a user's mistake is one line on stderr, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show an arrow shows something like it instead of ending the program.
        spare(stream)
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has seen enough (`| head`). Python would complain when it flushes stdout at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except ProtocolError as error:
        lines = str(error).splitlines()
        return _mistake(*([f"the protocol has {len(lines)} errors."] if len(lines) > 1 else []), *lines)
    except FileError as error:
        return _mistake(*str(error).splitlines())
    except CheeseBenchError as error:
        return _mistake(" ".join(str(error).split()))
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        return _mistake(f"{error.strerror or error}{place}. Check the path, its permissions and the disk.")


def _run(arguments: list[str]) -> int:
    parser = build_parser()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise UnknownNameError("command", arguments[0], COMMANDS)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    module = importlib.import_module(f"cheesebench.commands.{COMMANDS[options.command]}")
    code: int = module.run(options)
    return code


def _mistake(*lines: str) -> int:
    """Say what is wrong on stderr: one line, or one for each finding in a protocol."""
    from cheesebench.film import printable
    from cheesebench.redaction import redact

    # stderr may be closed too (`2>&1 | head`).
    with contextlib.suppress(OSError):
        print(f"cheesebench: {printable(redact(chr(10).join(lines)))}", file=sys.stderr, flush=True)
    return MISTAKE


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line like all others."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{message}. See '{self.prog} --help'.")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog="cheesebench",
        description="Rodent paradigms declared in YAML: look at them, check them, play them, and see what runs "
        "came to. Models are run by pytest: pytest --model NAME.",
        epilog="Example: cheesebench list",
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"cheesebench {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    def command(name: str, summary: str, description: str, *examples: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {description}",
            epilog="examples:\n" + "\n".join(f"  cheesebench {name} {example}".rstrip() for example in examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    _add_list(command)
    _add_models(command)
    _add_lint(command)
    _add_test(command)
    _add_audit(command)
    _add_render(command)
    _add_play(command)
    add_plan(command)
    add_schema(command)
    _add_report(command)
    add_compare(command)
    add_bless(command)
    _add_study(command)
    _add_figures(command)
    _add_measures(command)
    add_export(command)
    _add_show(command)
    _add_reference(command)
    add_cogeval_stats(command)
    _add_gallery(command)
    add_new(command)
    add_trace(command)
    add_diff(command)
    add_new_plugin(command)
    add_plugins(command)
    return parser


def _add_list(command: Command) -> None:
    about = "Protocols, agents, backends, views and report formats."
    parser = command("list", "show what is installed", about, "", "--json")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def _add_models(command: Command) -> None:
    parser = command(
        "models",
        "show the models that --model can name",
        "With a part of a name: those that have it in\ntheir name, alias, family, backend or id. "
        "Any other model of a backend can be named BACKEND/ID.\nPrices are dollars per million tokens of prompt, "
        "cached prompt and reply.",
        "",
        "qwen",
        "--models my_models.yaml --format json",
    )
    parser.add_argument("part", nargs="?", default="", metavar="PART", help="show only what has this in its name")
    parser.add_argument("--models", metavar="FILE", help="a list of your own (default: what CHEESEBENCH_MODELS names)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")


def _add_lint(command: Command) -> None:
    parser = command(
        "lint",
        "check protocol files",
        "Every error, warning and note with its place and a remedy.\nThe exit code is 1 when there are errors.",
        "my_maze.protocol.yaml",
        "--strict -q my_protocols/",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"{_PROTOCOL}, or a directory of them")
    parser.add_argument("--strict", action="store_true", help="let warnings fail too")
    parser.add_argument("-q", "--quiet", action="store_true", help="leave out the notes")


def _add_test(command: Command) -> None:
    parser = command(
        "test",
        "play the tests that protocols carry",
        "Their 'tests:' blocks, one line each.\nThe exit code is 1 when one fails or a file has errors.",
        "my_maze.protocol.yaml",
        "-q my_protocols/",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"{_PROTOCOL}, or a directory of them")
    parser.add_argument("-q", "--quiet", action="store_true", help="show only what fails")


def _add_audit(command: Command) -> None:
    parser = command(
        "audit",
        "check that a protocol measures what it names",
        "Chance levels, policies that never look, leaks, draws,\nrewards, cues, and whether it can be solved at all. "
        "The exit code is 1 when a rule fails.",
        "my_maze.protocol.yaml",
        "t_maze dnms --trials 5000 --seed 1 --json",
    )
    parser.add_argument("protocols", nargs="+", metavar="PROTOCOL", help=_PROTOCOL)
    parser.add_argument(
        "--trials", metavar="N", type=positive_number, default=2000, help="trials of a chance level (default: 2000)"
    )
    parser.add_argument("--seed", metavar="N", type=whole_number, default=0, help="seed of the audit (default: 0)")
    parser.add_argument("--view", metavar="NAME", action="append", help="a view, repeatable (default: all)")
    parts = f"a part, repeatable (default: all): {', '.join(AUDIT_PARTS)}"
    parser.add_argument("--part", choices=AUDIT_PARTS, metavar="PART", action="append", help=parts)
    parser.add_argument("--processes", metavar="N", type=positive_number, help="default: one for each processor")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def _add_render(command: Command) -> None:
    parser = command(
        "render",
        "show the picture of a state",
        "As an agent sees it at the start of the first trial,\nand what is what on it.",
        "my_maze.protocol.yaml",
        "my_maze --state choice --seed 3",
        "my_maze --view topdown_2d --output my_maze.png",
        "my_maze.protocol.yaml --expand",
    )
    parser.add_argument("protocol", metavar="FILE", help=_PROTOCOL)
    parser.add_argument("--state", metavar="NAME", help="the state to show (default: the initial one)")
    parser.add_argument(
        "--view", metavar="NAME", action="append", help="the view, repeatable, or 'all' (default: ascii_2d)"
    )
    parser.add_argument("--output", metavar="PNG", help="a view of pictures: write the picture to this file")
    parser.add_argument(
        "--expand", action="store_true", help="print the arena that a generator draws as YAML, to be edited by hand"
    )
    _add_life(parser)


def _add_play(command: Command) -> None:
    parser = command(
        "play",
        "be the rodent",
        "Keys: arrows or WASD and the space bar, q to quit. Without a terminal,\n"
        "lines of the letters F (forward), L and R (turn), S (stay) are read from standard input.",
        "my_maze.protocol.yaml",
        'my_maze --seed 3 --actions "F F L"',
    )
    parser.add_argument("protocol", metavar="FILE", help=_PROTOCOL)
    parser.add_argument("--view", metavar="NAME", default="ascii_2d", help="the view (default: ascii_2d)")
    parser.add_argument("--output", metavar="PNG", help="a view of pictures: write each one to this file")
    parser.add_argument("--actions", metavar="LETTERS", help="play these actions (F L R S), then stop")
    _add_life(parser)


def _add_report(command: Command) -> None:
    parser = command(
        "report",
        "report on a run",
        "Everything is computed anew from the run's log; the run may still be going on.",
        "20250131-093000-ab12",
        "20250131-093000-ab12 --html",
        "results/20250131-093000-ab12 --format json --output run.json",
    )
    add_run(parser)
    parser.add_argument("--format", metavar="NAME", help="markdown (default), html, json, text, ...")
    parser.add_argument(
        "--html",
        metavar="PATH",
        nargs="?",
        const="",
        help="write the page with everything, and every trial to be watched (default: report.html beside the log)",
    )
    add_output(parser)


def _add_figures(command: Command) -> None:
    parser = command(
        "figures",
        "draw what runs came to",
        "Pass rates by paradigm, the cognitive profile, the scaling curve, a panel for each setting that was\n"
        "varied, and the tables; as many of them as the runs have something for. Needs the extra 'figures'.",
        "20250131-093000-ab12",
        "monday tuesday --output paper --format svg,png",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a run's id, directory or run.sqlite")
    parser.add_argument("--results", metavar="DIR", default="results", help="where the runs are (default: results)")
    parser.add_argument("--output", metavar="DIR", default="figures", help="where they go (default: figures)")
    parser.add_argument("--format", metavar="NAMES", default="svg,png", help="svg, png, pdf (default: svg,png)")


def _add_study(command: Command) -> None:
    parser = command(
        "study",
        "run a study, or list them",
        "The same protocols under several settings: how much history a model is shown, how it is asked, what it sees.\n"
        "Everything after the name goes to pytest, which runs it: cheesebench study NAME is pytest --study NAME.",
        "",
        "ablation-history --model qwen2.5-vl-7b",
        "my.study.yaml --model openai/tiny --base-url http://127.0.0.1:8000/v1 --subjects 10",
    )
    parser.add_argument("study", metavar="NAME", nargs="?", help="a study's name or file; without it they are listed")
    parser.add_argument("arguments", metavar="OPTION", nargs=argparse.REMAINDER, help="options for pytest")


def _add_measures(command: Command) -> None:
    parser = command(
        "measures",
        "show what the trials of a run came to",
        "The protocol's measures and counters, and how the agent moved:\nmean, spread and number of trials by block; "
        "with --csv every single trial. Sets are written a|b.",
        "20250131-093000-ab12",
        "20250131-093000-ab12 --csv trials.csv",
        "20250131-093000-ab12 --protocol t_maze --csv t_maze.csv",
    )
    add_run(parser)
    parser.add_argument(
        "--protocol", metavar="NAME", help="this protocol only; its CSV has one row per trial, else one per value"
    )
    parser.add_argument("--csv", metavar="PATH", help="write all trials to this file ('-': standard output)")


def _add_show(command: Command) -> None:
    parser = command(
        "show",
        "show what a language model was asked, and what it replied",
        "One call with its whole prompt (made again from the run's log,\nand checked against it); without --call a "
        "list of the subject's calls. All numbers count from 0.",
        "20250131-093000-ab12",
        "20250131-093000-ab12 --call 12",
        "20250131-093000-ab12 --protocol t_maze --subject 3 --trial 4 --call 0",
    )
    add_run(parser)
    parser.add_argument("--call", metavar="N", type=whole_number, help="number of the call, in the life or --trial")
    for name in ("protocol", "model", "view", "variant"):
        parser.add_argument(f"--{name}", metavar="NAME", help=f"the {name}, where the run has several")
    parser.add_argument("--subject", metavar="N", type=whole_number, default=0, help="the subject (default: 0)")
    parser.add_argument("--trial", metavar="N", type=whole_number, help="a trial of that subject")
    add_output(parser)


def _add_reference(command: Command) -> None:
    parser = command(
        "reference",
        "show what the animals did, and where that number comes from",
        "Value, interval, curve, species and source\nof every reference, and how it was obtained. "
        "Without a name: all installed protocols.",
        "",
        "t_maze my_maze.protocol.yaml",
        "--format markdown --output references.md",
    )
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=_PROTOCOL)
    parser.add_argument("--format", choices=("text", "markdown"), default="text", help="text (default) or markdown")
    add_output(parser)


def _add_gallery(command: Command) -> None:
    parser = command(
        "gallery",
        "show how protocols look in every view",
        "A page in Markdown; with --output its pictures are written beside it.\nWhat stands above the generated part "
        "of that page is kept. Without a name: all installed protocols of the paper's edition.",
        "",
        "my_maze.protocol.yaml --seed 4",
        "--output views.md",
    )
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=_PROTOCOL)
    parser.add_argument("--seed", metavar="N", type=whole_number, default=0, help="seed of the lives (default: 0)")
    parser.add_argument("--output", metavar="PAGE", help="write the page to this file (default: standard output)")


def _add_life(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", metavar="N", type=whole_number, default=0, help="seed of the life (default: 0)")
    parser.add_argument(
        "--subject", metavar="N", type=whole_number, default=0, help="number of the subject (default: 0)"
    )


if __name__ == "__main__":
    sys.exit(main())
