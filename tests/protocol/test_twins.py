"""Twins: the same task for a subject that has not read the published file, with a
different picture.
"""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from cheesebench.canary import CANARY
from cheesebench.cli import main
from cheesebench.errors import OptionError
from cheesebench.interfaces import (
    FORWARD,
    HEADINGS,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    STAY,
    Scene,
    Tile,
)
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification
from cheesebench.protocol.twins import twin

CATALOGUE = Catalogue(installed_plugins().protocol_directories)
VIEW = installed_plugins().view("ascii_2d")
SECRET = "a secret that is long"
#: The actions of the same movement in a mirror.
MIRRORED = {
    FORWARD: FORWARD,
    ROTATE_LEFT: ROTATE_RIGHT,
    ROTATE_RIGHT: ROTATE_LEFT,
    STAY: STAY,
}
CHAMBER = """
version: 1
paradigm: chamber
arena:
  map: |
    ######
    #a..b#
    #.B###
    #####
  legend: {a: {zone: left, glyph: "1"}, b: {zone: right, glyph: "2"}, B: box}
  landmarks: {N: X, E: {at: [5, 3], glyph: Y}}
  headings: 4
draw: {sign: {of: {sign: ["3", "4"], side: [left, right], other: {turned: sign, from: "4"}}}}
start: {at: box, face: E}
trial:
  limit: 30
  start: go
  states:
    go: {say: tone, show: {N: sign, E: other}, rules: [{enter: side, reward: 1, end: right}, {enter: left, go: held}]}
    held: {freeze: true, say: [tone, other], place: box, rules: [{after: 2, end: wrong}]}
schedule: {all: {sessions: 2, trials: 4}}
success: last == right
tests: [{actions: FFL, expect: {steps: 3}}]
twins: {mirror: true, turn: true, glyphs: ["1234", "XYZ"], texts: [[tone, buzz, hum]]}
"""


def laid(scene: Scene, mirrored: bool, quarters: int) -> list[list[Tile]]:
    tiles = [list(row)[:: -1 if mirrored else 1] for row in scene.tiles]
    for _ in range(quarters):
        tiles = [list(row) for row in zip(*tiles[::-1], strict=True)]
    return tiles


def exchange(
    ours: list[list[Tile]], theirs: tuple[tuple[Tile, ...], ...]
) -> dict[str, str] | None:
    """Return the replacement of each glyph, or None if the pictures
    do not correspond.
    """
    pairs = [
        (one, other)
        for a, b in zip(ours, theirs, strict=False)
        for one, other in zip(a, b, strict=False)
    ]
    same = [len(row) for row in ours] == [len(row) for row in theirs] and all(
        a.kind == b.kind for a, b in pairs
    )
    found = {one.glyph: other.glyph for one, other in pairs}
    return (
        found
        if same
        and all(found[a.glyph] == b.glyph for a, b in pairs)
        and len({*found.values()}) == len(found)
        else None
    )


def stand(life: ArenaSubject) -> tuple[int, int, int]:
    return life._gallery.stand(life._pose)


def put(life: ArenaSubject, column: int, row: int, heading: int) -> None:
    geometry, canvas = life._geometry, life._gallery.canvas
    cell = geometry.arena.cells.index((column + canvas.left, row + canvas.top))
    life._pose = geometry.pose(cell, heading)


def check_alike(public: Specification, held_out: Specification) -> None:
    """Live both with the same movements: reward, status, state and picture correspond
    in every step.
    """
    lives = [
        ArenaSubject(ArenaParadigm(one).program, VIEW, 3, 1)
        for one in (public, held_out)
    ]
    ours, theirs = lives
    ours.begin_trial(), theirs.begin_trial()
    ways = [
        (mirrored, quarters)
        for mirrored in (False, True)
        for quarters in range(4)
        if exchange(
            laid(ours._look.scene, mirrored, quarters), theirs._look.scene.tiles
        )
        is not None
    ]
    assert ways, "no way of laying one picture gives the other"
    assert any(lived_alike(public, held_out, *way) for way in ways)


def lived_alike(
    public: Specification, held_out: Specification, mirrored: bool, quarters: int
) -> bool:
    ours, theirs = (
        ArenaSubject(ArenaParadigm(one).program, VIEW, 3, 1)
        for one in (public, held_out)
    )
    chance, glyphs, texts = random.Random(5), dict[str, str](), dict[str, str]()
    while ours.begin_trial() is not None:
        assert theirs.begin_trial() is not None
        status = 0
        while not status:
            width, height = len(ours._look.scene.tiles[0]), len(ours._look.scene.tiles)
            column, row, heading = stand(ours)
            column, heading = (
                (width - 1 - column, -heading) if mirrored else (column, heading)
            )
            for _ in range(quarters):
                column, row, width, height = height - 1 - row, column, height, width
            place = (column, row, (heading + 2 * quarters) % len(HEADINGS))
            if stand(theirs)[:2] != place[:2]:
                return False
            # A random heading of a placement is different in the twin.
            put(theirs, *place)
            found = exchange(
                laid(ours._look.scene, mirrored, quarters), theirs._look.scene.tiles
            )
            if found is None or any(
                glyphs.setdefault(a, b) != b for a, b in found.items()
            ):
                return False
            pairs = zip(ours._look.scene.text, theirs._look.scene.text, strict=True)
            if any(texts.setdefault(one, other) != other for one, other in pairs):
                return False
            action = chance.choice([FORWARD, FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY])
            _, reward, status = ours.step(action)
            # A symmetrical chamber has two layouts that look alike; the events agree in
            # one of them.
            same = theirs.step(MIRRORED[action] if mirrored else action)[1:] == (
                reward,
                status,
            )
            if not same or ours.state != theirs.state:
                return False
        if ours.outcome != theirs.outcome:
            return False
    return theirs.begin_trial() is None


def made(public: Specification, tmp_path: Path, secret: str = SECRET) -> Specification:
    edition, text = twin(public, secret)
    path = tmp_path / f"{public.paradigm}.{edition}.protocol.yaml"
    path.write_text(text, encoding="utf-8")
    held_out = CATALOGUE.load(path)
    assert isinstance(held_out, Specification)
    assert held_out.document.twin_of == public.name
    return held_out


def chamber(text: str = CHAMBER) -> Specification:
    found, findings = CATALOGUE.inspect_text(text)
    assert isinstance(found, Specification), findings
    return found


@pytest.mark.parametrize(
    "secret", [f"the secret number {number}" for number in range(8)]
)
def test_a_twin_is_the_same_task(secret: str, tmp_path: Path) -> None:
    public = chamber()
    held_out = made(public, tmp_path, secret)
    assert held_out.sha256 != public.sha256
    check_alike(public, held_out)


DECLARED = [
    name
    for name in CATALOGUE.files
    if getattr(
        getattr(CATALOGUE.load(CATALOGUE.files[name]), "document", None), "twins", None
    )
]


@pytest.mark.parametrize("name", DECLARED)
def test_twins_of_shipped_protocols_are_the_same_task(
    name: str, tmp_path: Path
) -> None:
    public = CATALOGUE.load(CATALOGUE.files[name])
    assert isinstance(public, Specification)
    check_alike(public, made(public, tmp_path))


def test_the_same_secret_makes_the_same_twin_and_another_one_another() -> None:
    public = chamber()
    assert twin(public, SECRET) == twin(public, SECRET)
    assert (
        len(
            {
                twin(public, f"{SECRET} {number}")[1].split("\n", 1)[1]
                for number in range(30)
            }
        )
        > 10
    )


@pytest.mark.parametrize("name", DECLARED)
def test_every_twin_shows_something_else_than_the_public_file(
    name: str, tmp_path: Path
) -> None:
    public = CATALOGUE.load(CATALOGUE.files[name])
    assert isinstance(public, Specification)
    for number in range(6):
        held_out = made(public, tmp_path, f"{SECRET} {number}")
        shown = [first_pictures(one) for one in (public, held_out)]
        assert shown[1] - shown[0]


def first_pictures(specification: Specification) -> set[str]:
    """Return the pictures at the beginning of trials, without the subject."""
    found = set[str]()
    for subject in range(6):
        life = ArenaSubject(ArenaParadigm(specification).program, VIEW, 3, subject)
        while life.begin_trial() is not None and len(found) < 200:
            found.add(
                "\n".join(
                    "".join(tile.glyph for tile in row)
                    for row in life._look.scene.tiles
                )
            )
            while not life.step(STAY)[2]:
                pass
    return found


def test_the_published_hash_does_not_tell_which_variant_it_is() -> None:
    """There are few variants, and their hashes could be tried one by one, but the key
    in the first line cannot be guessed.
    """
    first = [
        twin(chamber(), f"{SECRET} {number}")[1].split("\n", 1)[0]
        for number in range(2)
    ]
    assert len({line.rsplit(" ", 1)[1] for line in first if len(line) > 64}) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("twins: {", "notes: {"), ""),
        (
            ("success: last == right", "success: last == right and x > 2"),
            "uses 'x', which depends on the orientation of the map",
        ),
        (
            (
                'twins: {mirror: true, turn: true, glyphs: ["1234", "XYZ"], texts: [[tone, buzz, hum]]}',
                "",
            ),
            "declares nothing",
        ),
        (
            (
                'mirror: true, turn: true, glyphs: ["1234", "XYZ"], texts: [[tone, buzz, hum]]',
                'glyphs: ["QR"]',
            ),
            "uses nothing that its key",
        ),
    ],
)
def test_what_cannot_be_exchanged_is_said(change: tuple[str, str], said: str) -> None:
    text = CHAMBER.replace(*change)
    if not said:
        assert CATALOGUE.inspect_text(text)[0] is None
        return
    complaints = set[str]()
    for number in range(9):  # some secrets neither mirror nor turn
        try:
            twin(chamber(text), f"{SECRET} {number}")
        except OptionError as error:
            complaints.add(str(error))
    assert len(complaints) == 1
    assert said in complaints.pop()


def test_a_map_that_a_generator_makes_is_not_turned() -> None:
    ring = chamber(CHAMBER)
    generated = dataclasses.replace(
        ring,
        document=ring.document.model_copy(
            update={"arena": ring.document.arena.model_copy(update={"map": None})}
        ),
    )
    with pytest.raises(OptionError, match="no map to mirror or turn"):
        twin(generated, SECRET)


@pytest.mark.parametrize(
    ("twins", "said"),
    [
        ('{glyphs: ["1"]}', "two or more different characters"),
        ('{glyphs: ["12", "23"]}', "The character '2' is in two sets"),
        ("{texts: [[tone, hum], [hum, buzz]]}", "The line 'hum' is in two sets"),
        ("{texts: [[tone, hum, hum]]}", "The line 'hum' is twice in a set"),
        ("{texts: [[tone]]}", "2"),
    ],
)
def test_sets_that_are_none(twins: str, said: str) -> None:
    text = CHAMBER.split("twins:")[0] + f"twins: {twins}\n"
    found, findings = CATALOGUE.inspect_text(text)
    assert found is None
    assert said in str(findings[0])


def test_the_command_writes_the_file_and_prints_its_hash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["twin", "t_maze", "--seed", SECRET, "--output", str(tmp_path)]) == 0
    path, digest, *_ = capsys.readouterr().out.splitlines()
    import hashlib

    assert digest == f"sha256 {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    assert CANARY in Path(path).read_text(encoding="utf-8")
    assert main(["test", path]) == 0
    capsys.readouterr()
    assert main(["twin", "t_maze", "--seed", "short", "--output", str(tmp_path)]) == 2
    assert "--seed has 5 characters. Give at least 12." in capsys.readouterr().err
    assert main(["twin", "t_maze", "--seed", SECRET, "--output", str(tmp_path)]) == 2
    assert "already exists" in capsys.readouterr().err
