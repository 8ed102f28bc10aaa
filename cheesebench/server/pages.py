"""Pages with their scripts and styles inside them, and the policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cheesebench.film import printable

if TYPE_CHECKING:
    from aiohttp import web
    from jinja2 import Environment

_STATIC = importlib.resources.files(__package__).joinpath("static")
#: The style of the HTML report is that of these pages, too.
_REPORT = "cheesebench.reports.html"


def page(template: str, *, scripts: Sequence[str] = (), styles: Sequence[str] = (), **values: Any) -> web.Response:
    """Return a page made of a template, with the scripts and styles of those names in it.

    Its policy allows exactly these, pictures that are part of the page, and requests to this server.
    """
    from aiohttp import web
    from markupsafe import Markup

    codes = [_static(name) for name in scripts]
    looks = [_report_style(), *map(_static, styles)]
    text = (
        _environment()
        .get_template(template)
        .render(scripts=list(map(Markup, codes)), styles=list(map(Markup, looks)), **values)
    )
    response = web.Response(text=text, content_type="text/html")
    response.headers["Content-Security-Policy"] = policy(codes, looks)
    return response


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the Content-Security-Policy of a page with these scripts and styles."""
    connect = "'self'" if scripts else "'none'"
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


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


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests) or "'none'"


def _static(name: str) -> str:
    return _STATIC.joinpath(name).read_text(encoding="utf-8")


def _report_style() -> str:
    return importlib.resources.files(_REPORT).joinpath("static", "page.css").read_text(encoding="utf-8")


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )


def _finalize(value: object) -> object:
    from markupsafe import Markup

    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value
