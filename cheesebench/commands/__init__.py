"""The commands of ``cheesebench``. Each is a module with ``add_arguments(parser)`` and
``run(options)``.

To add a command, add a module and a line in the table below. ``cheesebench.cli``
imports the module when the command is called.
"""

from __future__ import annotations

from cheesebench.interfaces import CommandSpec

#: Exit code of a command that found something wrong, such as errors of ``lint``.
FINDINGS = 1

#: The commands, grouped by purpose, in the order of the help.
GROUPS = {
    "write": (
        CommandSpec(
            "new", "create a protocol from a template", "cheesebench.commands.new"
        ),
        CommandSpec("lint", "check protocol files", "cheesebench.commands.lint"),
        CommandSpec(
            "test", "run the tests in protocol files", "cheesebench.commands.testing"
        ),
        CommandSpec(
            "audit",
            "check that a protocol measures what it claims",
            "cheesebench.commands.audit",
        ),
        CommandSpec(
            "render", "show the picture of a state", "cheesebench.commands.render"
        ),
        CommandSpec("play", "play a protocol yourself", "cheesebench.commands.play"),
        CommandSpec(
            "trace",
            "show the effect of a series of actions, step by step",
            "cheesebench.commands.trace",
        ),
    ),
    "run": (
        CommandSpec(
            "plan",
            "estimate the calls, cost and power of a run in advance",
            "cheesebench.commands.plan",
        ),
        CommandSpec(
            "study",
            "list all studies; pytest --study NAME runs one",
            "cheesebench.commands.study",
        ),
        CommandSpec(
            "people",
            "run protocols with people, in the browser",
            "cheesebench.commands.people",
        ),
        CommandSpec(
            "serve",
            "serve protocols to programs that train language models",
            "cheesebench.commands.serve",
        ),
        CommandSpec(
            "models",
            "show the models that --model can name",
            "cheesebench.commands.models",
        ),
        CommandSpec("list", "show what is installed", "cheesebench.commands.listing"),
    ),
    "read": (
        CommandSpec("report", "report on a run", "cheesebench.commands.report"),
        CommandSpec(
            "show",
            "show the calls of a language model: prompts and replies",
            "cheesebench.commands.show",
        ),
        CommandSpec(
            "view",
            "show runs in the browser, even while they are in progress",
            "cheesebench.commands.view",
        ),
        CommandSpec(
            "runs", "list the runs of a directory", "cheesebench.commands.runs"
        ),
        CommandSpec(
            "compare",
            "compare two runs: better, worse, no loss, or undecided",
            "cheesebench.commands.compare",
        ),
    ),
    "share": (
        CommandSpec(
            "verdict",
            "judge or compare logs of other evaluations",
            "cheesebench.commands.verdict",
        ),
        CommandSpec(
            "export", "export a run for other programs", "cheesebench.commands.export"
        ),
        CommandSpec(
            "film", "make a moving picture of a trial", "cheesebench.commands.film"
        ),
        CommandSpec(
            "figures",
            "draw figures of the results of runs",
            "cheesebench.commands.figures",
        ),
        CommandSpec(
            "bless",
            "save the results of a run as a baseline",
            "cheesebench.commands.bless",
        ),
    ),
    "rarely needed": (
        CommandSpec(
            "twin", "make a held-out variant of a protocol", "cheesebench.commands.twin"
        ),
        CommandSpec(
            "diff",
            "show the differences between two protocols",
            "cheesebench.commands.diff",
        ),
        CommandSpec(
            "reference",
            "show the animals' numbers and their sources",
            "cheesebench.commands.reference",
        ),
        CommandSpec(
            "gallery", "show protocols in every view", "cheesebench.commands.gallery"
        ),
        CommandSpec(
            "schema",
            "print the JSON Schema of protocol files",
            "cheesebench.commands.schema",
        ),
        CommandSpec(
            "new-plugin",
            "create a plugin package: backend, agent, view, executor, family or command",
            "cheesebench.commands.new_plugin",
        ),
        CommandSpec(
            "plugins",
            "show which plugins are loaded, and from where",
            "cheesebench.commands.plugins",
        ),
        CommandSpec(
            "canary",
            "print the string that marks CheeseBench's files, or ask a model to complete it",
            "cheesebench.commands.canary",
        ),
        CommandSpec("merge", "merge the shards of a run", "cheesebench.commands.merge"),
    ),
}
#: The commands by name.
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
