"""HTML pages with their scripts and styles inside them, and the policy that allows no
others.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cheesebench.terminal import printable

if TYPE_CHECKING:
    from aiohttp import web
    from jinja2 import Environment


class Templates:
    """The folders ``templates`` and ``static`` of a package.

    Text that a template prints goes through ``shown`` and is escaped; ``Markup`` is
    printed as it is.
    """

    def __init__(self, package: str, shown: Callable[[str], str]) -> None:
        self._package, self._shown = package, shown

    def static(self, name: str) -> str:
        return (
            importlib.resources.files(self._package)
            .joinpath("static", name)
            .read_text(encoding="utf-8")
        )

    def render(self, template: str, **values: Any) -> str:
        """Return a template of ``templates`` with values. A name without a value raises
        an error.
        """
        return self._environment.get_template(template).render(values)

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        return Environment(
            loader=PackageLoader(self._package, "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=self._finalize,
        )

    def _finalize(self, value: object) -> object:
        from markupsafe import Markup

        return (
            self._shown(value)
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        )


def content_security_policy(
    scripts: Sequence[str], styles: Sequence[str], *directives: str
) -> str:
    """Return the policy of a page with exactly these scripts and styles, and no
    requests.
    """
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            *directives,
        ]
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return (
        " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
        or "'none'"
    )


#: These pages use the style of the HTML report.
_REPORT = "cheesebench.reports"


def page(
    template: str,
    *,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    **values: Any,
) -> web.Response:
    """Return a page made of a template, with the scripts and styles of those names in
    it.

    Its policy allows exactly these, pictures that are part of the page, and requests to
    this server.
    """
    from aiohttp import web
    from markupsafe import Markup

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
    """Return a page for a file: with its style, without scripts."""
    from markupsafe import Markup

    looks = [Markup(_report_style())]
    return _TEMPLATES.render(template, scripts=[], styles=looks, **values)


def finished_page(text: str) -> web.Response:
    """Return a page with a policy of its own (a report), which this one can only make
    stricter.
    """
    from aiohttp import web

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
