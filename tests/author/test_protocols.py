"""Template protocols have no lint warnings, pass their own tests, and measure the
construct that they name.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cheesebench.auditing import audit_specification
from cheesebench.commands import audit
from cheesebench.commands.new import TEMPLATES, edition_text, protocol_text
from cheesebench.errors import OptionError
from cheesebench.interfaces import AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.author_tests import run_tests
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.protocol.validation import construct_status
from cheesebench.testing import assert_sound

CATALOGUE = Catalogue(installed_plugins().protocol_directories)
VIEW = installed_plugins().view("ascii_2d")


def checked(text: str, file: str = "mine.protocol.yaml") -> Specification | None:
    """Check that a protocol has no errors and passes its tests; return its
    specification (None for a dialogue).
    """
    specification, found = CATALOGUE.inspect_text(text, file)
    # Note 401 only says which of two rules wins.
    assert [str(one) for one in found if one.code != 401] == []
    assert specification is not None
    if not isinstance(specification, Specification):
        return None
    reports = run_tests(ArenaParadigm(specification), VIEW)
    assert len(reports) >= 4
    assert [str(one) for one in reports if not one.passed] == []
    return specification


@pytest.mark.parametrize("name", ["mine", "another_one"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_protocol_to_begin_with_passes_its_own_tests(
    template: str, name: str
) -> None:
    specification = checked(protocol_text(template, name))
    assert (specification is None) == (template == "dialogue")
    assert specification is None or specification.paradigm == name


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name != "dialogue"])
def test_it_passes_the_audit(template: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.protocol.yaml"
    path.write_text(protocol_text(template, "mine"), encoding="utf-8")
    assert_sound(path)


@pytest.mark.parametrize("template", ["maze", "touchscreen"])
def test_its_construct_is_validated_by_an_audit_beside_it(
    template: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.protocol.yaml"
    path.write_text(protocol_text(template, "mine"), encoding="utf-8")
    specification = with_arena(CATALOGUE.load(path))
    assert construct_status(specification) == "declared"
    report = audit_specification(
        specification, AuditSettings(parts=("lesions",), effort=0.02)
    )
    (tmp_path / "mine.audit.json").write_text(
        json.dumps([audit._as_json(report)]), encoding="utf-8"
    )
    assert construct_status(specification) == "validated"


def test_an_edition_inherits_what_it_does_not_say() -> None:
    parent = with_arena(CATALOGUE.find("t_maze"))
    edition = checked(edition_text("long", parent), "t_maze.long.protocol.yaml")
    assert edition is not None
    assert (edition.name, edition.limit) == ("t_maze@long", parent.limit)


@pytest.mark.parametrize("name", ["", "my maze", "1st", "a-b", "x" * 61, "a: b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="cannot be the name of a paradigm"):
        protocol_text("maze", name)
    with pytest.raises(OptionError, match="cannot be the name of an edition"):
        edition_text(name, with_arena(CATALOGUE.find("t_maze")))


def test_an_edition_of_an_edition() -> None:
    edition = checked(
        edition_text("long", with_arena(CATALOGUE.find("t_maze", "rodent"))),
        "t_maze.long.protocol.yaml",
    )
    assert edition is not None
    assert edition.name == "t_maze@long"
    assert edition.ancestors == ("t_maze@rodent", "t_maze")


def test_what_cannot_be_extended_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a maze.protocol.yaml"
    path.write_text(protocol_text("maze", "a_maze"), encoding="utf-8")
    with pytest.raises(
        OptionError,
        match=r"cannot be extended. Rename it: a_maze.default.protocol.yaml",
    ):
        edition_text("long", CATALOGUE.load(path))
    with pytest.raises(OptionError, match="parent's own edition"):
        edition_text("default", CATALOGUE.find("t_maze"))
