"""YAML text becomes nodes with exact positions; forbidden constructs are refused at
their place.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from cheesebench import source
from cheesebench.diagnostics import Diagnostics, Position
from cheesebench.protocol import Catalogue
from cheesebench.source import MAX_BYTES, MAX_DEPTH, Node, read_file, read_text


@pytest.fixture(autouse=True, params=["fast", "portable"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run everything with libyaml's parser and with the pure Python one."""
    monkeypatch.setattr(
        yaml, "__with_libyaml__", request.param == "fast" and yaml.__with_libyaml__
    )
    monkeypatch.setattr(source, "_Loader", source._loader_class())


def read(text: str) -> tuple[Node | None, list[str]]:
    diagnostics = Diagnostics()
    root = read_text(text, "x.yaml", diagnostics)
    return root, [str(found) for found in diagnostics.found]


def value_of(yaml_text: str) -> Any:
    root, found = read(f"key: {yaml_text}")
    assert root is not None, found
    assert not found
    return root.plain()["key"]


def place(node: Node | None) -> tuple[int, int]:
    assert node is not None
    return node.position.line, node.position.column


# -- scalars


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"), ("off", "off"), ("no", "no"), ("yes", "yes"), ("y", "y"), ("N", "N"),
        ("1:30", "1:30"), ("2026-01-01", "2026-01-01"), ("1_000", "1_000"), ("=", "="), ("<<", "<<"),
        ("0b11", "0b11"), (".inf", ".inf"), ("-.nan", "-.nan"), ("0x", "0x"), ("1e", "1e"),
        ("true", True), ("False", False), ("TRUE", True), ("tRUE", "tRUE"),
        ("null", None), ("~", None), ("", None), ("Null", None), ("none", "none"),
        ("7", 7), ("-7", -7), ("+7", 7), ("010", 10), ("0o10", 8), ("0x10", 16), ("0xfF", 255), ("00", 0),
        ("1.5", 1.5), ("1e3", 1000.0), ("1E-2", 0.01), (".5", 0.5), ("5.", 5.0), ("-1.5e+2", -150.0),
        ("'7'", "7"), ('"7"', "7"), ("'true'", "true"), ("'null'", "null"), ('""', ""), ("'on'", "on"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(written: str, value: object) -> None:
    found = value_of(written)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "written", ["1000000000000000", "-1e15", "1e999", "0x" + "f" * 30, "9" * 5000]
)
def test_a_number_out_of_range_is_an_error(written: str) -> None:
    root, found = read(f"a:\n  key: {written}")
    assert root is not None
    assert len(found) == 1
    assert found[0].startswith("x.yaml:2:8: error E111: The number ")


def test_the_largest_numbers() -> None:
    assert value_of("999999999999999") == 999999999999999
    assert value_of("0.000001") == 0.000001


# -- positions

POSITIONS = """\
# a comment
one: 1
two:   'quoted'   # another
three:
  - a
  -   {x: 1,   y: "z"}
four: [p,  q]
"five 5": ü → x
six: {ö: ä, 𝄞:   b}
"""


def test_positions_are_exact() -> None:
    root, found = read(POSITIONS)
    assert root is not None
    assert found == []
    assert place(root.child("one")) == (2, 6)
    assert place(root.child("two")) == (3, 8)
    assert place(root.find(["three"])) == (5, 3)
    assert place(root.find(["three", 0])) == (5, 5)
    assert place(root.find(["three", 1])) == (6, 7)
    assert place(root.find(["three", 1, "y"])) == (6, 19)
    assert place(root.find(["four", 1])) == (7, 12)
    assert root.key_position("five 5") == Position("x.yaml", 8, 1)
    assert place(root.find(["six", "𝄞"])) == (9, 18)
    assert root.find(["six"]).key_position("𝄞") == Position("x.yaml", 9, 13)
    assert root.key_position("absent") == root.position


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_do_not_move_positions(ending: str) -> None:
    root, found = read(POSITIONS.replace("\n", ending))
    assert root is not None
    assert found == []
    assert root.plain() == (read(POSITIONS)[0] or root).plain()
    assert place(root.find(["three", 1, "y"])) == (6, 19)


def test_a_byte_order_mark_does_not_move_positions(tmp_path: Path) -> None:
    root, _ = read("\ufeffone: 1")
    assert root is not None
    assert root.plain() == {"one": 1}
    assert root.key_position("one") == Position("x.yaml", 1, 1)
    assert place(root.child("one")) == (1, 6)
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfone: 1")
    read_back = read_file(path, Diagnostics())
    assert read_back is not None
    assert place(read_back.child("one")) == (1, 6)


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        ("a: it != x", 3, 1, 7),
        ("a: 'it != x'", 3, 1, 8),
        ('a:  "it != x"', 3, 1, 9),
        ("a: |\n  ###\n  #x#\n", 5, 3, 4),
        ("a:\n - |\n\n    ###\n    #x#\n", 6, 5, 6),
        ("a: |2\n    ##\n  #x#\n", 6, 3, 4),
        ("a: >\n  it != x\n", 3, 2, 6),
        (
            "a: >-\n  it\n  != x\n",
            3,
            1,
            4,
        ),  # folded text has no known position, so it is where the value begins
        ("a: it\n  != x\n", 3, 1, 4),
        (r'a: "it\x20!= x"', 3, 1, 4),
        ("a: 'it''s x'", 3, 1, 4),
        ("a: |\n\n\n", 0, 1, 4),
    ],
)
def test_positions_inside_a_text(
    text: str, offset: int, line: int, column: int
) -> None:
    root, found = read(text)
    assert root is not None
    assert found == []
    node = root.find(["a", 0])
    assert node.inside(offset) == Position("x.yaml", line, column)


# -- decimal commas


@pytest.mark.parametrize(
    ("written", "meant", "said"),
    [
        ("{value: 0,85, margin: -0,5}", {"value": 0.85, "margin": -0.5}, ["1:12: error E113", "Write -0.5: a comma separates"]),
        ("{a: 0,5, b: 0,5}", {"a": 0.5, "b": 0.5}, ["1:8: error E113", "1:16: error E113"]),
        ("[{at_most: 0,55}]", [{"at_most": 0.55}], ["1:15: error E113"]),
        ("{if: p > 0,5 and x, go: y}", {"if": "p > 0.5 and x", "go": "y"}, ["1:13: error E113: YAML reads 0,5 "]),
        ("{n: 1,000}", {"n": 1.0}, ["Write 1.000 or 1000: "]),
        ("[0,5,\n 0,75]", [0.5, 0.75], ["1:5: error E113", "2:2: error E113"]),
        ("[0,5, 0,75]", [0.5, 0.75], ["1:5: error E113: YAML reads 0,5 as two entries.", "Write 0.75: a"]),
    ],
)  # fmt: skip
def test_a_decimal_comma_is_one_error_at_its_place(
    written: str, meant: Any, said: list[str]
) -> None:
    root, found = read(f"k: {written}")
    assert root is not None
    assert root.plain()["k"] == meant
    assert len(found) == len(said)
    assert all(text in one for text, one in zip(said, found, strict=True))


@pytest.mark.parametrize(
    "written",
    [
        "{x: min(1,5)}", "{x: f(1, 5, 6)}", "{a: 0, 85: null}", "{a: '0', 85}", "{a: x1, 85}", "{a: [1], 85}", "{1,2}",
        "[0,1, 0,1]", "[0,5,0,7]", "[1,2, 3,4]", "[0, 5, 0, 7]", "[0,5]", "[0,x, 0,y]", "[[0,5], [0,7]]",
    ],
)  # fmt: skip
def test_no_other_comma_is_a_decimal_comma(written: str) -> None:
    _, found = read(f"key: {written}")
    assert found == []


# -- refusals, with their positions

#: A billion laughs.
BOMB = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n    b: 1\n\n  # note\n  c: 2\n  d: 3", "This line is indented by 4, the next line and others by 2: indent"),
        ("map: |\n     #\n   ###\n", "Its first row begins with blanks: write 'map: |3' to keep them."),
        ("a:\n    b: 1\n\n  # note\n  c: 2\n  d: 3", "2:5: error E104"),
        ("a:\n  map: |\n       #\n    #..# \n    #..#\nb: 1", "4:1: error E112"),
        ("", "1:1: error E110: A protocol is a mapping with keys such as 'version' and 'paradigm'. Begin with"),
        ("# nothing\n\n", "1:1: error E110"),
        ("---\n...\n", "error E110"),
        ("- 1\n- 2", "1:1: error E110"),
        ("\n  just text", "2:3: error E110"),
        ("a: 1\nb: 2\na: 3", "3:1: error E105: The key 'a' appears twice (first in line 1). Keep one."),
        ("x: {a: 1, 'a': 3}", "1:11: error E105: The key 'a' appears twice"),
        ("x:\n  1: a\n  '1': b", "3:3: error E105"),
        ("? [a, b]\n: c", "1:3: error E105: A key must be a plain word."),
        ("x: {[a]: b}", "1:5: error E105"),
        ("x: !!str 7", "1:4: error E106: The tag 'tag:yaml.org,2002:str' is not allowed. Remove it."),
        ("x: !python/object:os.system {}", "1:4: error E106: The tag '!python/object:os.system'"),
        ("x: 1\ny: [!!int 3]", "2:5: error E106"),
        ("!top\nx: 1", "1:1: error E106"),
        ("x: &anchor 7", "1:4: error E107: The anchor '&anchor' is not allowed. Remove it."),
        ("x: &a 7\ny: *a", "1:4: error E107"),
        ("x: *nowhere", "1:4: error E107: The alias '*nowhere' is not allowed. Repeat the value."),
        ("x: {<<: *nowhere}", "1:9: error E107"),
        (BOMB, "1:4: error E107"),
        ("a: 1\n---\nb: 2", "2:1: error E109: The file holds more than one YAML document. Keep one protocol"),
        ("x: [1, 2", "error E104: This is not valid YAML: "),
        ("x: 'open", "error E104"),
        ("x: 1\n y: 2", "error E104"),
        ("x: %y", "1:4: error E104"),
        ("x: @y", "1:4: error E104"),
        ("x:\n\ty: 2", "that cannot start any token. Indent with spaces, not tabs."),
        ("x: \x07y", "1:4: error E102: The character U+0007 is not text. Remove it."),
        ("x: 1\ny: a\x00b", "2:5: error E102: The character U+0000"),
        ("x: 1\r\ny: \x1b[2J", "2:4: error E102: The character U+001B"),
        ("x: \ud800", "1:4: error E102: The character U+D800"),
        (r'x: "a\x1b[2J"', "1:4: error E102: The character U+001B"),
        (r'x: {"a\0": 1}', "1:5: error E102: The character U+0000"),
        (r'x: "\ud800"', "error E10"),
        (r'x: "\Uffffffff"', "error E104"),
        ("%YAML 3.0\n---\nx: 1", "error E104"),
    ],
)  # fmt: skip
def test_what_the_language_forbids(text: str, expected: str) -> None:
    _, found = read(text)
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "map: |\n  ##\n# walls #\nb: 1\n",  # the first row is not indented more
        "map: |\n    ##\n  #",  # too short for a row
        "map: |\n    ##\n  # walls\n",
        "map: |\n    ##\n",
        "map: >\n    ##\n  ##\n",
        "art: |\n    ##\n  ##\n",
    ],
)
def test_a_comment_below_a_map_is_none_of_its_rows(text: str) -> None:
    root, found = read(text)
    assert root is not None
    assert found == []
    assert root.find([text[:3]]).value == "##\n"


def test_a_duplicate_key_hides_nothing_else() -> None:
    root, found = read("a: 1\na: 2\nb: {c: 1, c: 2}\nd: 99999999999999999")
    assert root is not None
    assert root.plain() == {"a": 1, "b": {"c": 1}, "d": 0}
    assert [line.split(" ")[2] for line in found] == ["E105:", "E105:", "E111:"]


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100, 20_000])
@pytest.mark.parametrize("form", ["list", "mapping", "block"])
def test_deep_nesting_is_refused(form: str, depth: int) -> None:
    if form == "block":
        text = "a:\n" + "\n".join(" " * n + "a:" for n in range(1, min(depth, 600)))
    else:
        text = {"list": "a: " + "[" * depth, "mapping": "a: " + "{a: " * depth}[form]
    _, found = read(text)
    assert len(found) == 1
    assert (
        f"error E108: Values are nested more than {MAX_DEPTH} deep. Flatten the file."
        in found[0]
    )


def test_nesting_up_to_the_limit_is_read() -> None:
    depth = MAX_DEPTH - 2
    root, found = read("a: " + "[" * depth + "x" + "]" * depth)
    assert root is not None
    assert found == []


# -- files


def read_bytes(path: Path, data: bytes) -> list[str]:
    path.write_bytes(data)
    diagnostics = Diagnostics()
    assert read_file(path, diagnostics) is None
    return [str(found).removeprefix(str(path)) for found in diagnostics.found]


def test_the_size_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    line = b"# " + b"x" * 61 + b"\n"
    remedy = "Shorten the protocol to a page or two."
    assert read_bytes(path, line * (MAX_BYTES // 64) + b"#") == [
        f":1:1: error E103: The file is larger than 256 KB. {remedy}"
    ]
    assert "error E103" in read_bytes(path, b"a: " + b"[" * 10_000_000)[0]
    path.write_bytes(b"a: 1\n" + line * (MAX_BYTES // 64 - 1))
    assert read_file(path, Diagnostics()) is not None
    assert (
        "error E103: The text is larger than 256 KB."
        in read("#" * (MAX_BYTES + 1))[1][0]
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            b"\x89PNG\r\n\x1a\n\x00\x00",
            ":1:1: error E102: The file is not UTF-8 (byte 0x89). Save it as UTF-8 text.",
        ),
        (
            "title: T-maze\n".encode("utf-16"),
            ":1:1: error E102: The file is not UTF-8 (byte 0xff).",
        ),
        (
            "title: T".encode("utf-16-be"),
            ":1:1: error E102: The character U+0000 is not text.",
        ),
        (
            "a: 1\ntitle: Müller".encode("latin-1"),
            ":2:9: error E102: The file is not UTF-8 (byte 0xfc).",
        ),
        (b"\x7fELF\x02\x01", ":1:1: error E102: The character U+007F is not text."),
        (bytes(range(256)), ":2:118: error E102"),
        (b"", ":1:1: error E110"),
        (b"a: 1\nb: \xc3", ":2:4: error E102"),
    ],
)
def test_what_is_no_text(tmp_path: Path, data: bytes, expected: str) -> None:
    found = read_bytes(tmp_path / "x.yaml", data)
    assert len(found) == 1
    assert found[0].startswith(expected)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent.yaml", "No such file"), ("", "directory"), ("a\0b", "null byte")],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, reason: str) -> None:
    diagnostics = Diagnostics()
    assert read_file(tmp_path / name, diagnostics) is None
    (found,) = diagnostics.found
    assert (found.code, found.position.line, found.position.column) == (101, 1, 1)
    assert reason in found.sentence
    assert found.remedy == "Check the path and its permissions."


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    diagnostics = Diagnostics()
    assert read_file(path, diagnostics) is None
    assert "Permission denied" in str(diagnostics.found[0])


# -- text that is not YAML: the error names the author's likely intention

PLUS = """\
arena:
  map: |
        #
        N
     #W.E#
        S
        #
  legend: {N: north}
"""


def remedies(text: str) -> list[str]:
    diagnostics = Diagnostics()
    read_text(text, "mine.protocol.yaml", diagnostics)
    return [finding.remedy for finding in diagnostics.found]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (PLUS, "Its first row begins with blanks: write 'map: |3' to keep them."),
        (
            "rules:\n  -{enter: a, end: b}",
            "Begin a list entry with a dash and a space.",
        ),
        ("rules:\n  - a\n  -b: c", "Begin a list entry with a dash and a space."),
        ('title: "open\nversion: 1\nnotes: "x"\n', "Is the quote in line 1 closed?"),
        ("title: Delay: discounting", "Quote a text that contains a colon."),
        ("show: {floor: *}", "Put glyphs such as '*', '&' and '@' in quotes."),
        ("states:\n\trun: {}", "Indent with spaces, not tabs."),
        ("version: 1\ntitle T-maze\nlimit: 3\n", "Write 'key: value'."),
        (
            "x: 1\n y: 2",
            "This line is indented by 1, the line above by 0: indent it by 0.",
        ),
        (
            "trial:\n limit: 9\n  start: [{if: a, go: b}]\n  show: {}\n",
            "This line is indented by 1, the next line and others by 2: indent it by 2.",
        ),
        (
            "trial:\n  limit: 9\n   start: run",
            "This line is indented by 3, the line above by 2: indent it by 2.",
        ),
        (
            "trial:\n  limit: 9\n start: run",
            "This line is indented by 1, the line above by 2: indent it by 0.",
        ),
        (
            "a:\n  b:\n    c: 1\n   # note\n   d: 2",
            "This line is indented by 3, the line above by 4: indent it by 2.",
        ),
        (
            "a:\n    - b: 1\n   - c: 2",
            "This line is indented by 3, the line above by 4: indent it by 4.",
        ),
        (
            "a:\n  - b: 1\n     c: 2",
            "This line is indented by 5, the line above by 2: indent it by 4.",
        ),
        # The line above is the odd one, so obeying 'indent it by 4' would make it
        # worse.
        (
            "states:\n  run:\n    say: a\n      freeze: true\n      show: b\n",
            "This line is indented by 4, the next line and others by 6: indent it by 6.",
        ),
        (
            "states:\n  run:\n      say: a\n    freeze: true\n      show: b\n",
            "This line is indented by 4, the line above by 6: indent it by 6.",
        ),
        (
            "trial:\n    limit: 9\n  start: run\n  finish: []\n",
            "This line is indented by 4, the next line and others by 2: indent it by 2.",
        ),
        (
            "trial:\n  limit: 9\n  start: run\n   finish: []\n   show: b\n",
            "This line is indented by 3, the line above by 2: one of the two is indented wrongly.",
        ),
        # A key among its siblings, of which one has keys of its own above it.
        (
            "run:\n  freeze: true\n  set:\n    a: 1\n   place: b\n  rules:\n    - c: d\n",
            "This line is indented by 3, the line above by 4: indent it by 2.",
        ),
        (
            "x:\n   freeze: true\n   set:\n       a: 1\n     place: b\n   rules:\n    - c: d\n",
            "This line is indented by 5, the line above by 7: indent it by 3.",
        ),
        (
            "run:\n    freeze: true\n    set:\n      a: 1\n  place: b\n    rules:\n      - c: d\n",
            "This line is indented by 2, the line above by 6: indent it by 4.",
        ),
        ("a: {b: 1,\n   c: 2,\n d}\n }", "Check quotes, colons and indentation."),
        ("arena:\n  map: |\n    ###\n  x: [1", "Check quotes, colons and indentation."),
    ],
)
def test_the_remedy_fits_the_mistake(text: str, remedy: str) -> None:
    assert remedies(text) == [remedy]


def test_a_missing_colon_is_reported_in_its_own_line() -> None:
    diagnostics = Diagnostics()
    read_text("version: 1\ntitle T-maze\nlimit: 3\n", "mine.protocol.yaml", diagnostics)
    assert [str(finding.position) for finding in diagnostics.found] == [
        "mine.protocol.yaml:2:1"
    ]


def test_rows_that_yaml_takes_for_comments() -> None:
    lost = "arena:\n  map: |   # a plus\n      ###\n      #S#\n    ###.###\n    #L...R#\n    #######\n  x: 1\n"
    diagnostics = Diagnostics()
    read_text(lost, "mine.protocol.yaml", diagnostics)
    assert [(finding.code, finding.position.line) for finding in diagnostics.found] == [
        (112, 5)
    ]
    assert (
        diagnostics.found[0].remedy
        == "Its first row begins with blanks: write 'map: |2' to keep them."
    )
    for fine in (
        lost.replace("map: |", "map: |2"),
        "arena:\n  map: |\n      ###\n      #S#\n    # a comment\n  x: 1\n",
    ):
        diagnostics = Diagnostics()
        assert read_text(fine, "mine.protocol.yaml", diagnostics) is not None
        assert not diagnostics.found


def test_a_map_that_is_no_text_is_read() -> None:
    diagnostics = Diagnostics()
    assert (
        read_text("arena:\n  map: {a: b}\n", "mine.protocol.yaml", diagnostics)
        is not None
    )
    assert not diagnostics.found


@pytest.mark.parametrize("by", [4, 5, 7])
def test_a_key_beside_its_siblings_is_reported_in_its_own_line(by: int) -> None:
    """Obeying the remedy makes it YAML."""
    lines = ["run:", "  two:", "      set:", "        a: 1", "", " " * by + "place: b"]
    lines += ["      rules:", "        - c: d", "      say: e", ""]
    diagnostics = Diagnostics()
    read_text("\n".join(lines), "mine.protocol.yaml", diagnostics)
    [found] = diagnostics.found
    assert found.position.line == 6
    assert found.remedy.endswith("indent it by 6.")


def test_the_remedy_for_a_map_is_right() -> None:
    diagnostics = Diagnostics()
    root = read_text(
        PLUS.replace("map: |", "map: |3"), "mine.protocol.yaml", diagnostics
    )
    assert root is not None
    text = root.find(["arena", "map"]).value
    assert isinstance(text, str)
    assert text.splitlines() == ["   #", "   N", "#W.E#", "   S", "   #"]


def test_numbers_out_of_range_are_shown() -> None:
    text = """\
version: 1
paradigm: mine
arena: {map: "S.G", legend: {S: box, G: goal}}
start: {at: box}
draw: {side: {order: by_subjects, of: {side: [1, 2]}}}
trial:
  limit: 10
  start: run
  states: {run: {rules: [{enter: goal, p: 80, end: found}]}}
schedule: {main: {sessions: 1, trials: 1}}
success: last == found
reference: [{measure: success, value: 85, status: percent}]
"""
    found = [str(one) for one in Catalogue().inspect_text(text)[1]]
    assert [one for one in found if one.endswith("Did you mean 'by_subject'?")]
    found = [
        str(one)
        for one in Catalogue().inspect_text(text.replace("subjects", "subject"))[1]
    ]
    assert [
        one
        for one in found
        if "between 0 and 1, but 85 does not. Write 0.85 for 85 %." in one
    ]
    assert [
        one
        for one in found
        if one.endswith("A probability lies between 0 and 1. Write 0.8 for 80 %.")
    ]


CYRILLIC = "CYRILLIC SMALL LETTER"
WHOLE = (
    "version: 1\nparadigm: x\narena: {map: 'S..Z', legend: {S: box, Z: goal}}\nstart: {at: box}\n"
    "trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, end: found}]}}}\n"
    "schedule: {main: {trials: 3}}\nsuccess: last == found\n"
)


@pytest.mark.parametrize(
    ("old", "new", "place", "letter"),
    [
        ("schedule:", "s\u0441hedule:", "6:1", "ES"),
        ("main:", "m\u0430in:", "6:12", "A"),
        ("{at: box}", "{at: b\u043ex}", "4:13", "O"),
        ("last == found", "last == f\u043eund", "7:19", "O"),
        ("end: found", "end: f\u043eund", "5:73", "O"),
    ],
)
def test_a_letter_of_another_alphabet_is_named(
    old: str, new: str, place: str, letter: str
) -> None:
    _, found = Catalogue().inspect_text(WHOLE.replace(old, new), "mine.protocol.yaml")
    first = next(finding for finding in found if finding.severity == "error")
    assert f"{first.position.line}:{first.position.column}" == place
    assert (
        f"is {CYRILLIC} {letter}: type the word with letters from a to z."
        in first.remedy
    )
