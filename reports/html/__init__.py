"""The HTML report: one self-contained page with verdicts, charts, and a player for every trial."""

from __future__ import annotations

from cheesebench.reports.html.page import render, render_run, render_subject, render_trial

__all__ = ["render", "render_run", "render_subject", "render_trial"]
