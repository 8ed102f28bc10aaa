"""The built-in report formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cheesebench.hookspecs import Reporter, hookimpl
from cheesebench.reports import (
    board,
    comparison,
    figures,
    html,
    markdown,
    matrix,
    text,
)
from cheesebench.statistics import RunSummary
from cheesebench.statistics.comparison import RunComparison

__all__ = ["cheesebench_reporters"]


@dataclass(slots=True)
class Format:
    """A report of a run, rendered by a function."""

    name: str
    suffix: str
    """Suffix of the report's file, as in ``.md``."""
    render: Callable[[RunSummary], str]
    summary: str
    """What it is, in a phrase."""


@dataclass(slots=True)
class ComparingFormat(Format):
    """A format that also renders the comparison of two runs."""

    render_comparison: Callable[[RunComparison], str]


class Figures:
    """Figures and tables of one run, or of several together."""

    name, suffix = "figures", ".md"
    summary = "figures and tables, of one run or of several together"
    render = staticmethod(figures.render)
    render_figures = staticmethod(figures.render_figures)


class Html:
    """HTML pages: of one run or several, of one subject (even while the run is in
    progress), and of one trial.
    """

    name, suffix = "html", ".html"
    summary = "a page with a player for trials, of one run or of several"
    render = staticmethod(html.render)
    render_run = staticmethod(html.render_run)
    render_runs = staticmethod(html.render_runs)
    render_subject = staticmethod(html.render_subject)
    render_trial = staticmethod(html.render_trial)


@hookimpl
def cheesebench_reporters() -> Iterable[Reporter]:
    return (
        ComparingFormat(
            "markdown",
            ".md",
            markdown.render,
            "the whole report, as Markdown",
            comparison.markdown,
        ),
        ComparingFormat(
            "json",
            ".json",
            comparison.plain_json,
            "all numbers, for programs",
            comparison.json,
        ),
        ComparingFormat(
            "text",
            ".txt",
            text.render,
            "the whole report, for a terminal",
            comparison.text,
        ),
        Format("badge", ".svg", matrix.render_badge, "a badge for a README"),
        Format("board", ".svg", board.render, "a picture of the board, for a talk"),
        Format("comment", ".md", matrix.render_comment, "a comment on a pull request"),
        Format("matrix", ".md", matrix.render, "a table of models and protocols"),
        Figures(),
        Html(),
    )
