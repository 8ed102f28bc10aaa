"""Findings as a list: their order, and the error that carries them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from tests.arenas import examine
from tests.protocol.short import Examine


def test_an_unknown_key_comes_before_what_it_leads_to(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    _, found = examine(complete('arena: {map: "S..Z", legends: {S: box, Z: goal}}'))
    assert [diagnostic.code for diagnostic in found][:2] == [121, 144]


_catalogue = Catalogue(installed_plugins().protocol_directories)


@pytest.mark.parametrize(
    "path", list(_catalogue.files.values()), ids=list(_catalogue.files)
)
def test_shipped_protocols_have_no_warning_but_a_visible_goal(path: object) -> None:
    specification, found = examine(path, _catalogue)  # type: ignore[arg-type]
    assert specification is not None, "\n".join(map(str, found))
    assert [str(d) for d in found if d.severity == "warning" and d.code != 311] == []


def test_errors_carry_their_findings(tmp_path: Path) -> None:
    path = tmp_path / "two.protocol.yaml"
    path.write_text("paradigm: two\nno_key: 1\nnor_this: 2\n", encoding="utf-8")
    found = Catalogue().inspect(path)[1]
    with pytest.raises(ProtocolError) as caught:
        Catalogue().load(path)
    error: ProtocolError = pickle.loads(pickle.dumps(caught.value))
    assert error.findings == tuple(one for one in found if one.severity == "error")
    assert len(error.findings) > 1
    assert str(error) == "\n".join(error.lines)
    for finding, line in zip(error.findings, error.lines, strict=True):
        assert (finding.position.file, finding.position.line) in {
            (str(path), line) for line in (1, 2, 3)
        }
        assert f"E{finding.code}: " in line
        assert line.isprintable()
    only = ProtocolError("It shows at run time.")
    assert (only.findings, only.lines, str(only)) == (
        (),
        (str(only),),
        "It shows at run time.",
    )
