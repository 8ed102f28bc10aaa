"""Finding protocols by id, edition and path, in several folders, some of them
broken.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.diagnostics import Diagnostic
from cheesebench.errors import ProtocolError, UnknownNameError
from cheesebench.interfaces import BaseSpecification
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue, load_protocol
from tests.protocol.short import Check

Write = Callable[[str, str], Path]


@pytest.fixture
def folders(tmp_path: Path, write: Write) -> Catalogue:
    """Shipped: maze, its editions, chamber. Mine: another maze, and broken files."""
    write("shipped/maze", "paradigm: maze")
    write("shipped/maze.rodent", "version: 1\nextends: maze\nedition: rodent")
    write(
        "shipped/maze_hidden",
        "version: 1\nextends: maze\nparadigm: maze_hidden\nedition: dark",
    )
    write("shipped/chamber", "paradigm: chamber")
    write("mine/maze", "paradigm: maze\ntitle: Mine")
    write("mine/broken", "paradigm: broken\nstart: {at: nowhere}")
    return Catalogue([tmp_path / "shipped", tmp_path / "mine", tmp_path / "absent"])


def test_a_local_file_wins_and_says_so(folders: Catalogue, tmp_path: Path) -> None:
    assert folders.find("maze").title == "Mine"
    sentence = f"{tmp_path}/mine/maze{SUFFIX} is used instead of {tmp_path}/shipped/maze{SUFFIX}."
    assert folders.shadowed == [sentence]
    folders.all()
    assert folders.shadowed == [sentence]


def test_a_local_file_of_another_name_wins_by_its_id(
    folders: Catalogue, tmp_path: Path, write: Write
) -> None:
    write("mine/my_own", "paradigm: chamber\ntitle: Mine")
    assert folders.find("chamber").title == "Mine"
    assert folders.names().count("chamber") == 1
    assert folders.shadowed[-1] == (
        f"{tmp_path}/mine/my_own{SUFFIX} is used instead of {tmp_path}/shipped/chamber{SUFFIX}."
    )


def test_a_broken_neighbour_takes_no_other_down(folders: Catalogue) -> None:
    loaded, broken = folders.all()
    assert sorted(s.name for s in loaded) == [
        "chamber",
        "maze",
        "maze@rodent",
        "maze_hidden@dark",
    ]
    assert len(broken) == 1
    assert "broken.protocol.yaml:2:13: error E201" in str(broken[0])
    assert folders.find("chamber").paradigm == "chamber"
    with pytest.raises(ProtocolError, match="E201"):
        folders.find("broken")


def test_editions_are_found_by_name(folders: Catalogue) -> None:
    assert folders.find("maze").edition == "default"
    assert folders.find("maze", "rodent").name == "maze@rodent"
    assert folders.find("maze@rodent").name == "maze@rodent"
    # An edition with an id of its own.
    assert folders.find("maze", "dark").name == "maze_hidden@dark"
    assert folders.find("maze_hidden", "dark").name == "maze_hidden@dark"
    # An edition in the name takes precedence.
    assert folders.find("maze@rodent", "dark").name == "maze@rodent"


def test_the_parent_of_an_edition_is_the_one_beside_it(folders: Catalogue) -> None:
    assert folders.find("maze@rodent").title == "Maze"


@pytest.mark.parametrize(
    ("name", "edition", "message"),
    [
        ("maez", None, "There is no protocol 'maez'. Did you mean 'maze'?"),
        ("maze", "rodnet", "There is no edition of maze called 'rodnet'. Did you mean 'rodent'? Known: dark, default,"),
        ("maze@rodnet", None, "There is no edition of maze called 'rodnet'. Did you mean 'rodent'?"),
        ("maze_hidden", None, "There is no edition of maze_hidden called 'default'. Known: dark."),
    ],
)  # fmt: skip
def test_unknown_names(
    folders: Catalogue, name: str, edition: str | None, message: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        folders.find(name, edition)
    assert str(caught.value).startswith(message)


def test_a_path_is_a_name(folders: Catalogue, tmp_path: Path) -> None:
    path = f"{tmp_path}/shipped/maze{SUFFIX}"
    assert folders.find(path).title == "Maze"
    with pytest.raises(
        ProtocolError, match="E101: The file cannot be read: No such file or directory"
    ):
        folders.find(f"{tmp_path}/absent{SUFFIX}")


def test_selecting(folders: Catalogue, tmp_path: Path) -> None:
    assert [s.name for s in folders.select(["chamber", "maze"])] == ["chamber", "maze"]
    assert [s.name for s in folders.select(["maze"], "rodent")] == ["maze@rodent"]
    with pytest.raises(ProtocolError, match="broken"):
        folders.select()
    (tmp_path / f"mine/broken{SUFFIX}").unlink()
    again = Catalogue(folders.directories)
    assert sorted(s.name for s in again.select()) == ["chamber", "maze"]
    assert [s.name for s in again.select(edition="dark")] == ["maze_hidden@dark"]
    with pytest.raises(
        UnknownNameError, match=r"no edition 'drak'. Did you mean 'dark'\?"
    ):
        again.select(edition="drak")


def test_a_folder_with_the_name_of_a_protocol(tmp_path: Path, write: Write) -> None:
    (tmp_path / f"folder{SUFFIX}").mkdir()
    write("maze", "paradigm: maze")
    loaded, broken = Catalogue([tmp_path]).all()
    assert [s.name for s in loaded] == ["maze"]
    assert "Is a directory" in str(broken[0])


def test_a_protocol_is_loaded_once(folders: Catalogue) -> None:
    assert folders.find("chamber") is folders.find("chamber")


def test_a_file_may_extend_what_is_installed(write: Write) -> None:
    installed = Catalogue(installed_plugins().protocol_directories)
    name = next(iter(installed.files))
    path = write("mine", f"version: 1\nextends: {name}\nparadigm: mine\n")
    assert load_protocol(path).ancestors[0] == name


def test_a_file_may_extend_what_lies_in_an_installed_folder(write: Write) -> None:
    folder = Catalogue(installed_plugins().protocol_directories).folders["classics"]
    name = min(folder.glob("*.protocol.yaml")).name.partition(".")[0]
    assert (
        load_protocol(
            write("mine", f"version: 1\nextends: {name}\nparadigm: mine\n")
        ).ancestors[0]
        == name
    )


def test_an_edition_without_its_key_is_told(folders: Catalogue, write: Write) -> None:
    child = "version: 1\nextends: chamber\n"
    for keys, file, codes in (
        ("", "chamber.capped", [318]),
        ("paradigm: chamber\n", "chamber.capped", [318]),
        ("edition: capped\n", "chamber.capped", []),
        ("paradigm: mine\n", "chamber.capped", []),
        ("", "chamber", []),
    ):
        path = write(f"elsewhere/{file}", child + keys)
        found = [one for one in folders.inspect(path)[1] if one.severity == "warning"]
        assert [one.code for one in found] == codes
        for one in found:
            assert f"{file}{SUFFIX}:1:1: " in str(one)
            assert one.remedy == "Add 'edition: capped'."


def test_the_id_of_an_installed_protocol_is_warned_of(
    folders: Catalogue, tmp_path: Path, write: Write
) -> None:
    def codes(name: str) -> list[int]:
        return [
            one.code
            for one in folders.inspect(tmp_path / f"{name}{SUFFIX}")[1]
            if one.severity == "warning"
        ]

    write("elsewhere/own", "paradigm: chamber")
    write("elsewhere/edition", "paradigm: chamber\nedition: mine")
    write(
        "elsewhere/child",
        "version: 1\nextends: chamber\nparadigm: chamber\nedition: rodent",
    )
    assert codes("elsewhere/own") == [318]
    [warning] = [
        one
        for one in folders.inspect(tmp_path / f"elsewhere/own{SUFFIX}")[1]
        if one.code == 318
    ]
    assert "Write 'paradigm: my_chamber', or add 'edition: mine'" in str(warning)
    assert (
        codes("elsewhere/edition")
        == codes("elsewhere/child")
        == codes("shipped/chamber")
        == []
    )


class Watched(Catalogue):
    """A catalogue that records which files it has read in full."""

    def __init__(self, directories: list[Path]) -> None:
        super().__init__(directories)
        self.inspected: list[str] = []

    def inspect(self, path: Path) -> tuple[BaseSpecification | None, list[Diagnostic]]:
        self.inspected.append(path.name.removesuffix(SUFFIX))
        return super().inspect(path)


def test_finding_one_reads_only_what_may_be_it(
    folders: Catalogue, write: Write
) -> None:
    # The edition itself does not say that it is a labyrinth: it extends a file that
    # does.
    write("shipped/odd", "paradigm: labyrinth")
    write("shipped/odd.dark", "version: 1\nextends: odd\nedition: dark")
    write("shipped/escaped", 'paradigm: "chamb\\u0065r"\nedition: dark')
    for name, found, read in (
        ("labyrinth@dark", "labyrinth@dark", ["odd", "odd.dark", "escaped"]),
        ("chamber", "chamber", ["chamber", "escaped"]),
        ("chamber@dark", "chamber@dark", ["chamber", "escaped"]),
    ):
        watched = Watched(folders.directories)
        assert watched.find(name).name == found
        assert sorted(watched.inspected) == sorted(read)


@pytest.mark.timeout(20)
def test_finding_one_waits_for_no_fifo(folders: Catalogue, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"mine/pipe{SUFFIX}")
    assert folders.find("chamber").name == "chamber"


ERRORS = {
    "unknown parent": ("E150", "extends: «nobody"),
    "a parent that is no name": ("E150", "extends: «../../secret"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)
