"""Text that is not YAML: the error names the author's likely intention."""

from __future__ import annotations

import pytest

from cheesebench.diagnostics import Diagnostics
from cheesebench.protocol import Catalogue
from cheesebench.source import read_text

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
        if one.endswith("A probability lies between 0 and 1. Change 80.")
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
