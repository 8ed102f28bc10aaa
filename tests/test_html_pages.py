"""Pages: escaping, numbers, missing values, and the policy of what may run."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from cheesebench.canary import CANARY
from cheesebench.html_pages import Templates, content_security_policy

PAGE = """\
{% if said %}
  {{ said }}, {{ html }}, {{ percent(0.5) }}, {{ number(2.5) }}, {{ points(-0.1) }}, {{ per_hundred(0.25) }},
  {{ signed(3) }}
{% endif %}
{{ canary }}
"""


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Templates:
    package = tmp_path / "a_package_of_pages"
    for name in ("templates", "static"):
        (package / name).mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "templates" / "page.jinja").write_text(PAGE, encoding="utf-8")
    (package / "static" / "style.css").write_text("b { color: ä }", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return Templates("a_package_of_pages", lambda text: text.upper())


def test_text_is_shown_and_escaped_and_markup_is_not(templates: Templates) -> None:
    page = templates.render("page.jinja", said="<a>", html=Markup("<b>"))
    shown = "  &lt;A&gt;, <b>, 50 %, 2.5, -10, 25,\n  +3\n".replace(" %", " %")
    assert page == f"{shown}{CANARY.upper()}\n"
    assert templates.static("style.css") == "b { color: ä }"


def test_a_name_without_a_value_is_an_error(templates: Templates) -> None:
    with pytest.raises(UndefinedError, match="'said' is undefined"):
        templates.render("page.jinja")


def test_the_policy_allows_these_scripts_and_styles_alone() -> None:
    def digest(text: str) -> str:
        found = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(found).decode()}'"

    found = content_security_policy(["one", "two"], [], "connect-src 'self'", "x y")
    assert found == (
        f"default-src 'none'; script-src {digest('one')} {digest('two')}; style-src 'none'; img-src data:; "
        "base-uri 'none'; form-action 'none'; connect-src 'self'; x y"
    )
