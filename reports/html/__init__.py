"""The HTML report: one self-contained page with verdicts, charts, and a player for every trial."""

from __future__ import annotations

from cheesebench.reports.html.page import render, render_life, render_run

__all__ = ["render", "render_life", "render_run"]
