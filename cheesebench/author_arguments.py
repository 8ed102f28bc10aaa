"""Options and help of the commands for authors; the work is in ``cheesebench.commands``."""

from __future__ import annotations

from cheesebench.arguments import Command, add_output, positive_number, whole_number

_PROTOCOL = "a protocol's name (as in 'cheesebench list') or a *.protocol.yaml file"


def add_new(command: Command) -> None:
    """Add ``new``."""
    parser = command(
        "new",
        "write a protocol to begin with",
        "It has no errors and passes its own tests; change it from there.",
        "maze my_maze",
        "touchscreen my_screen --output protocols/my_screen.protocol.yaml",
        "edition long_delays --parent my_maze",
    )
    templates = ("maze", "chamber", "touchscreen", "dialogue", "edition")
    parser.add_argument("template", metavar="TEMPLATE", choices=templates, help=", ".join(templates))
    parser.add_argument("name", metavar="NAME", help="the id of the paradigm, or the name of the edition")
    parser.add_argument("--parent", metavar="PROTOCOL", help=f"what an edition extends: {_PROTOCOL}")
    parser.add_argument("--output", metavar="FILE", help="the file to write (default: NAME.protocol.yaml)")


def add_trace(command: Command) -> None:
    """Add ``trace``."""
    parser = command(
        "trace",
        "show step by step what a series of actions does",
        "Action, what changed in the picture,\nreward, state, and the rules that fired with their lines.",
        "my_maze --actions FFLF",
        "my_maze.protocol.yaml --actions 'F F L' --seed 3 --subject 1 --trial 2",
    )
    parser.add_argument("protocol", metavar="FILE", help=_PROTOCOL)
    parser.add_argument("--actions", metavar="LETTERS", required=True, help="F (forward), L and R (turn), S (stay)")
    parser.add_argument("--view", metavar="NAME", default="ascii_2d", help="the view (default: ascii_2d)")
    parser.add_argument(
        "--trial", metavar="N", type=positive_number, default=1, help="begin in this trial; those before are waited out"
    )
    parser.add_argument("--seed", metavar="N", type=whole_number, default=0, help="seed of the life (default: 0)")
    parser.add_argument("--subject", metavar="N", type=whole_number, default=0, help="the subject (default: 0)")


def add_diff(command: Command) -> None:
    """Add ``diff``."""
    parser = command(
        "diff",
        "show what really differs between two protocols",
        "Both are compared after their parents are merged.\nThe exit code is 1 when they differ.",
        "my_maze my_maze.long_delays.protocol.yaml",
    )
    parser.add_argument("parent", metavar="PARENT", help=_PROTOCOL)
    parser.add_argument("child", metavar="CHILD", help="what it is compared with")


def add_schema(command: Command) -> None:
    """Add ``schema``."""
    parser = command(
        "schema",
        "print the JSON Schema of protocol files",
        "For editors: begin a protocol with the line\n# yaml-language-server: $schema=protocol.schema.json",
        "--output protocol.schema.json",
        "--install",
    )
    parser.add_argument(
        "--install", action="store_true", help="let VS Code check and complete protocols: writes into .vscode here"
    )
    add_output(parser)


def add_new_plugin(command: Command) -> None:
    """Add ``new-plugin``."""
    parser = command(
        "new-plugin",
        "write a package for a backend, an agent or a view of your own",
        "It can be installed as it is,\nis found by its entry point, and passes its own tests.",
        "backend my-server",
        "agent my-mouse --output work/my-mouse",
        "view my-eyes",
    )
    parser.add_argument("kind", metavar="KIND", choices=("backend", "agent", "view"), help="backend, agent or view")
    parser.add_argument("name", metavar="NAME", help="what it is called: --model NAME, --view NAME")
    parser.add_argument("--output", metavar="DIR", help="the directory to write (default: cheesebench-NAME)")


def add_plugins(command: Command) -> None:
    """Add ``plugins``."""
    about = "Distribution, version, module and what\nit supplies; and why something was not loaded."
    parser = command("plugins", "show what is loaded from where", about, "", "--json")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
