"""What pages have from the code is in the repository, too: as text, or as a command."""

from __future__ import annotations

import re

import pytest

from website.pages import DOCS, MARK, PARTS, replaced

PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
}
FOUND = {
    mark[1]: mark["text"]
    for text in PAGES.values()
    for mark in MARK.finditer(text)
    if mark["text"] is not None
}


def test_a_reader_of_the_repository_sees_each_part_or_is_told_where_it_is() -> None:
    marks = [(name, one) for name, text in PAGES.items() for one in MARK.finditer(text)]
    assert {one[1] for _, one in marks} == set(PARTS)
    bare = [
        f"{name}: {one[1]}"
        for name, one in marks
        if not (one["text"] or "").strip() and "> In a checkout: " not in one[0]
    ]
    assert bare == []
    named = {
        name
        for text in PAGES.values()
        for name in re.findall(r"python -m website\.pages ([\w-]+)", text)
    }
    assert named <= set(PARTS)


@pytest.mark.parametrize("name", FOUND)
def test_the_text_in_the_repository_is_that_of_the_code(name: str) -> None:
    assert FOUND[name].strip() == PARTS[name]().strip(), "python -m website.pages"


def test_the_site_has_what_the_code_says_in_place_of_the_text() -> None:
    text = "a\n\n<!-- generated: x -->\n\nold\n\n| b |\n\n<!-- end: x -->\n\nc\n<!-- generated: y -->\n> In a checkout: z\nd\n"
    assert replaced(text, str.upper) == "a\n\nX\n\nc\nY\nd\n"
    for page in PAGES.values():
        shown = replaced(page, str.upper)
        assert "<!-- end: " not in shown
        assert "<!-- generated: " not in shown
