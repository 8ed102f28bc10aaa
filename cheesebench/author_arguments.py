"""Options and help of the commands for authors; the work is in ``cheesebench.commands``."""

from __future__ import annotations

from cheesebench.arguments import Command


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
