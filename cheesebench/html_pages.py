"""HTML pages that contain their own scripts and styles, and a policy that allows no
others.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from cheesebench.amounts import number, per_hundred, percent, points, signed
from cheesebench.canary import CANARY

if TYPE_CHECKING:
    from jinja2 import Environment


#: Functions with which templates write numbers, by name.
_AMOUNTS = {one.__name__: one for one in (number, percent, per_hundred, points, signed)}


class Templates:
    """The folders ``templates`` and ``static`` of a package.

    Text that a template prints goes through ``shown`` and is escaped. ``Markup`` is
    printed unchanged.
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
        """Return a template with values filled in. A name without a value is an
        error.
        """
        return self._environment.get_template(template).render(values)

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader(self._package, "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=self._finalize,
        )
        environment.globals |= {"canary": CANARY, **_AMOUNTS}
        return environment

    def _finalize(self, value: object) -> object:
        return (
            self._shown(value)
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        )


def content_security_policy(
    scripts: Sequence[str], styles: Sequence[str], *directives: str
) -> str:
    """Return the policy of a page that may run exactly these scripts, use exactly these
    styles, and make no requests. ``directives`` are added.
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
