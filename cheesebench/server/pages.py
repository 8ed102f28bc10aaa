"""Makes the served pages from this package's templates, in the style of the HTML
report.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from markupsafe import Markup

from cheesebench.html_pages import Templates, content_security_policy
from cheesebench.terminal import printable

#: Package of the HTML report, whose style these pages use, too.
_REPORT = "cheesebench.reports"


def page(
    template: str,
    *,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    **values: Any,
) -> web.Response:
    """Return a page made from a template, with these scripts and styles in it.

    The page's security policy allows only these scripts and styles, pictures inside the
    page, and requests to this server.
    """
    codes = [_TEMPLATES.static(name) for name in scripts]
    looks = [_report_style(), *map(_TEMPLATES.static, styles)]
    text = _TEMPLATES.render(
        template,
        scripts=list(map(Markup, codes)),
        styles=list(map(Markup, looks)),
        **values,
    )
    response = web.Response(text=text, content_type="text/html")
    connect = "connect-src 'self'" if codes else "connect-src 'none'"
    response.headers["Content-Security-Policy"] = content_security_policy(
        codes, looks, connect, "frame-ancestors 'none'"
    )
    return response


def standalone(template: str, **values: Any) -> str:
    """Return the text of a page to be saved as a file. The style is inside, and there
    are no scripts.
    """
    looks = [Markup(_report_style())]
    return _TEMPLATES.render(template, scripts=[], styles=looks, **values)


def finished_page(text: str) -> web.Response:
    """Return a complete page, such as a report, that contains a security policy of its
    own. The policy in the reply's header can only make the page's policy stricter.
    """
    response = web.Response(text=text, content_type="text/html")
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return response


def shown(value: object) -> str:
    """Return untrusted text as one printable line."""
    return printable(" ".join(str(value).split()))


def _report_style() -> str:
    return (
        importlib.resources.files(_REPORT)
        .joinpath("static", "page.css")
        .read_text(encoding="utf-8")
    )


_TEMPLATES = Templates("cheesebench.server", shown)
