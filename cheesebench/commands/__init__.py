"""The commands of ``cheesebench``: one module each, with ``add_arguments(parser)`` and ``run(options)``.

A new command is a module and a line in the table; ``cheesebench.cli`` imports the module when the command is called.
"""

from __future__ import annotations

from cheesebench.interfaces import CommandSpec

#: Exit code of a command that looks for something and found it (errors of ``lint``).
FINDINGS = 1

#: The commands by name, in the order of the help.
COMMANDS = {
    command.name: command
    for command in (
        CommandSpec("list", "show what is installed", "cheesebench.commands.listing"),
        CommandSpec("models", "show the models that --model can name", "cheesebench.commands.models"),
        CommandSpec("lint", "check protocol files", "cheesebench.commands.lint"),
        CommandSpec("test", "play the tests that protocols carry", "cheesebench.commands.testing"),
        CommandSpec("audit", "check that a protocol measures what it names", "cheesebench.commands.audit"),
        CommandSpec("render", "show the picture of a state", "cheesebench.commands.render"),
        CommandSpec("play", "be the rodent", "cheesebench.commands.play"),
        CommandSpec("plan", "say what a run would take, and what it could say", "cheesebench.commands.plan"),
        CommandSpec("schema", "print the JSON Schema of protocol files", "cheesebench.commands.schema"),
        CommandSpec("report", "report on a run", "cheesebench.commands.report"),
        CommandSpec("compare", "say whether a run is better or worse than another", "cheesebench.commands.compare"),
        CommandSpec("bless", "keep what a run came to as a baseline", "cheesebench.commands.bless"),
        CommandSpec("study", "run a study, or list them", "cheesebench.commands.study"),
        CommandSpec("figures", "draw what runs came to", "cheesebench.commands.figures"),
        CommandSpec("measures", "show what the trials of a run came to", "cheesebench.commands.measures"),
        CommandSpec("merge", "make one run of its shards", "cheesebench.commands.merge"),
        CommandSpec("export", "write a run for other programs", "cheesebench.commands.export"),
        CommandSpec("show", "show what a language model was asked, and what it replied", "cheesebench.commands.show"),
        CommandSpec(
            "reference", "show what the animals did, and where that number comes from", "cheesebench.commands.reference"
        ),
        CommandSpec("gallery", "show how protocols look in every view", "cheesebench.commands.gallery"),
        CommandSpec("new", "write a protocol to begin with", "cheesebench.commands.new"),
        CommandSpec("trace", "show step by step what a series of actions does", "cheesebench.commands.trace"),
        CommandSpec("diff", "show what really differs between two protocols", "cheesebench.commands.diff"),
        CommandSpec(
            "new-plugin",
            "write a package for a backend, an agent or a view of your own",
            "cheesebench.commands.new_plugin",
        ),
        CommandSpec("plugins", "show what is loaded from where", "cheesebench.commands.plugins"),
    )
}
