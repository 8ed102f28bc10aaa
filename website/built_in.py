"""Describes what is built in and can be named on a command line: agents, backends,
views, formats, designs, and studies.
"""

from __future__ import annotations

from pathlib import Path

from cheesebench.chat import ModelAgentSpec
from cheesebench.commands.study import varies
from cheesebench.experiment.cells import DESIGNS, find_study, shipped_studies
from cheesebench.hookspecs import (
    API_VERSION,
    OLDEST_API_VERSION,
    FigureReporter,
    Reporter,
    RunReporter,
)
from cheesebench.interfaces import PictureView, ReadableView
from website.installed import PLUGINS
from website.markup import code, escape, prose, sections, sentence, table


def hook_version() -> str:
    """Return a sentence on the versions of the hooks that this version supports."""
    oldest = (
        ""
        if OLDEST_API_VERSION == API_VERSION
        else f"; plugins written for {OLDEST_API_VERSION} or later work"
    )
    return (
        f"The hooks have **version {API_VERSION}**{oldest}. A plugin declares it in its module: "
        f"`cheesebench_api = {API_VERSION}`."
    )


def agents() -> str:
    """Return the agents that act, those that answer dialogues, and those that ask a
    model.
    """
    kinds = (
        ("Agents that act by themselves", "--model", PLUGINS.agents),
        ("Agents that answer dialogues by themselves", "--model", PLUGINS.respondents),
        ("Agents that ask a model", "--agent", PLUGINS.model_agents),
    )
    parts = []
    for heading, option, found in kinds:
        rows = [
            [
                code(f"{option} {spec.name}"),
                sentence(spec.summary),
                {"none": "nothing", "life": "all its trials"}[spec.memory],
            ]
            for spec in found.values()
        ]
        parts += [f"### {heading}", table(["name", "what it does", "remembers"], rows)]
        for spec in found.values():
            if isinstance(spec, ModelAgentSpec):
                settings = [
                    [code(name), code(_shown(value))]
                    for name, value in spec.settings.items()
                ]
                parts += [
                    f"Settings of {code(spec.name)}, with their defaults:",
                    table(["setting", "default"], settings),
                ]
    return sections(parts)


def _shown(value: object) -> str:
    return (
        "none"
        if value is None
        else str(value).lower()
        if isinstance(value, bool)
        else str(value) or '""'
    )


def backends() -> str:
    """Return the backends with their options."""
    parts = []
    for spec in PLUGINS.backends.values():
        honours = [
            name
            for name in ("temperature", "seed", "stop", "images")
            if getattr(spec.capabilities, name)
        ]
        rows = [[code(name), prose(meaning)] for name, meaning in spec.options.items()]
        about = f"{sentence(spec.summary)} It supports: {', '.join(honours) or 'no optional parameter'}."
        parts += [
            f"### {code(spec.name)}",
            about,
            table(["option", "meaning"], rows) if rows else "",
        ]
    return sections(parts)


def views() -> str:
    """Return the views, with their explanations for the prompt."""
    rows = [
        [
            code(view.name),
            "a picture" if isinstance(view, PictureView) else "text",
            escape(view.reading) if isinstance(view, ReadableView) else "",
        ]
        for view in PLUGINS.views.values()
    ]
    return table(["name", "draws", "how the prompt explains it"], rows)


def reporters() -> str:
    """Return the report formats."""
    rows = []
    for reporter in PLUGINS.reporters.values():
        trials = (
            " It also shows single trials." if isinstance(reporter, RunReporter) else ""
        )
        figures = (
            " It can also draw several runs together."
            if isinstance(reporter, FigureReporter)
            else ""
        )
        rows.append(
            [
                code(reporter.name),
                code(reporter.suffix),
                f"{sentence(_about(reporter))}{trials}{figures}",
            ]
        )
    return table(["name", "file", "what it is"], rows)


def _about(reporter: Reporter) -> str:
    """Return what a reporter says it is or, if it says nothing, the first sentence of
    its docstring.
    """
    return getattr(reporter, "summary", "") or (reporter.__doc__ or "").split("\n")[0]


def designs() -> str:
    """Return the designs."""
    rows = [
        [
            code(design.name),
            str(design.subjects),
            "the protocol's" if design.trials is None else str(design.trials),
            ", ".join(map(code, design.views)),
            "yes" if design.claims else "no",
            sentence(design.summary),
        ]
        for design in DESIGNS.values()
    ]
    return table(["name", "subjects", "trials", "views", "claims", "what it is"], rows)


def studies() -> str:
    """Return the shipped studies."""
    found = [find_study(name, Path()) for name in shipped_studies()]
    return table(
        ["name", "what is varied", "title"],
        [[code(s.name), escape(varies(s)), escape(s.title)] for s in found],
    )
