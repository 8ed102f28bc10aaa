"""Pages with their scripts and styles inside them, and the policy that allows nothing else."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cheesebench.film import printable
from cheesebench.html_pages import Templates, content_security_policy

if TYPE_CHECKING:
    from aiohttp import web

#: The style of the HTML report is that of these pages, too.
_REPORT = "cheesebench.reports.html"


def page(template: str, *, scripts: Sequence[str] = (), styles: Sequence[str] = (), **values: Any) -> web.Response:
    """Return a page made of a template, with the scripts and styles of those names in it.

    Its policy allows exactly these, pictures that are part of the page, and requests to this server.
    """
    from aiohttp import web
    from markupsafe import Markup

    codes = [_TEMPLATES.static(name) for name in scripts]
    looks = [_report_style(), *map(_TEMPLATES.static, styles)]
    text = _TEMPLATES.render(template, scripts=list(map(Markup, codes)), styles=list(map(Markup, looks)), **values)
    response = web.Response(text=text, content_type="text/html")
    connect = "connect-src 'self'" if codes else "connect-src 'none'"
    response.headers["Content-Security-Policy"] = content_security_policy(
        codes, looks, connect, "frame-ancestors 'none'"
    )
    return response


def finished_page(text: str) -> web.Response:
    """Return a page that brings its own policy along (a report's), which this one only makes stricter."""
    from aiohttp import web

    response = web.Response(text=text, content_type="text/html")
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return response


def shown(value: object) -> str:
    """Return what somebody else wrote as one printable line."""
    return printable(" ".join(str(value).split()))


def _report_style() -> str:
    return importlib.resources.files(_REPORT).joinpath("static", "page.css").read_text(encoding="utf-8")


_TEMPLATES = Templates("cheesebench.server", shown)
