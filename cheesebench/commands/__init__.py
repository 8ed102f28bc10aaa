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
        CommandSpec("test", "run the tests in protocol files", "cheesebench.commands.testing"),
        CommandSpec("audit", "check that a protocol measures what it claims", "cheesebench.commands.audit"),
        CommandSpec("render", "show the picture of a state", "cheesebench.commands.render"),
        CommandSpec("play", "play a protocol yourself", "cheesebench.commands.play"),
        CommandSpec("plan", "estimate the cost and power of a run before any call", "cheesebench.commands.plan"),
        CommandSpec("schema", "print the JSON Schema of protocol files", "cheesebench.commands.schema"),
        CommandSpec("report", "report on a run", "cheesebench.commands.report"),
        CommandSpec("runs", "list the runs of a directory", "cheesebench.commands.runs"),
        CommandSpec("view", "show runs in the browser, even while they are in progress", "cheesebench.commands.view"),
        CommandSpec("people", "run protocols with people, in the browser", "cheesebench.commands.people"),
        CommandSpec("compare", "compare two runs: better, worse or indistinguishable", "cheesebench.commands.compare"),
        CommandSpec("bless", "save the results of a run as a baseline", "cheesebench.commands.bless"),
        CommandSpec("study", "run a study, or list all studies", "cheesebench.commands.study"),
        CommandSpec("figures", "draw figures of the results of runs", "cheesebench.commands.figures"),
        CommandSpec("measures", "show the measures of the trials of a run", "cheesebench.commands.measures"),
        CommandSpec("merge", "merge the shards of a run", "cheesebench.commands.merge"),
        CommandSpec("export", "export a run for other programs", "cheesebench.commands.export"),
        CommandSpec("show", "show the calls of a language model: prompts and replies", "cheesebench.commands.show"),
        CommandSpec("reference", "show the animals' numbers and their sources", "cheesebench.commands.reference"),
        CommandSpec("gallery", "show protocols in every view", "cheesebench.commands.gallery"),
        CommandSpec("new", "create a protocol from a template", "cheesebench.commands.new"),
        CommandSpec("trace", "show the effect of a series of actions, step by step", "cheesebench.commands.trace"),
        CommandSpec("diff", "show the differences between two protocols", "cheesebench.commands.diff"),
        CommandSpec(
            "new-plugin",
            "create a plugin package: backend, agent, view, executor, family or command",
            "cheesebench.commands.new_plugin",
        ),
        CommandSpec("completion", "print what a shell needs to complete commands", "cheesebench.commands.completion"),
        CommandSpec("plugins", "show which plugins are loaded, and from where", "cheesebench.commands.plugins"),
    )
}
