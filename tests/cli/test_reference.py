"""``reference``: cards of the animals' numbers, and their page in the documentation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.cli import main
from cheesebench.commands.reference import _beginning
from cheesebench.protocol import Catalogue, with_arena
from tests.stored import check_stored

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]

ROOT = Path(__file__).parents[2]

RICH = (
    "reference: [{measure: success, value: 0.75, interval: [0.6, 0.85], n_animals: 12, curve: [0.5, 0.75], "
    'where: session == 1, species: Mus <b>, source: "PMC1234567, 10.1000/abc_d-1 | x", status: "read_off *figure* 2"}]'
)


def test_a_card_tells_where_the_number_comes_from(
    run: Run, here: Path, maze: str
) -> None:
    (here / "little.protocol.yaml").write_text(
        maze.replace(
            "reference: [{measure: success, value: 0.75, status: made up}]", RICH
        ),
        encoding="utf-8",
    )
    result = run("reference", "little")
    assert (result.code, result.err) == (0, "")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert lines[0] == "little: Little"
    for line in (
        "success = 0.75",
        "interval (95 %) 0.6 to 0.85",
        "animals 12",
        "species Mus <b>",
        "source PMC1234567, 10.1000/abc_d-1 | x",
        "curve by session 0.5 0.75",
        "compared where session == 1",
        "mapping read_off *figure* 2",
        "pass rate over all trials",
    ):
        assert line in lines


def test_markdown_escapes_and_links(run: Run, here: Path, maze: str) -> None:
    (here / "little.protocol.yaml").write_text(
        maze.replace(
            "reference: [{measure: success, value: 0.75, status: made up}]", RICH
        ),
        encoding="utf-8",
    )
    out = run("reference", "little", "--format", "markdown").out
    assert (
        "| `little` | success | 0.75 | 0.1 | 0.6 to 0.85 | 12 | Mus &lt;b&gt; | measured |"
        in out
    )
    assert "read_off \\*figure\\* 2" in out
    assert (
        "[PMC1234567](https://pmc.ncbi.nlm.nih.gov/articles/PMC1234567/), "
        "[10.1000/abc_d-1](https://doi.org/10.1000/abc_d-1) \\| x" in out
    )


def test_a_number_without_interval_is_declared(run: Run) -> None:
    out = run("reference", "little").out
    assert "none, declared" in out
    assert "not stated" in out


def test_no_label_touches_what_is_said_of_it(run: Run, here: Path, maze: str) -> None:
    keys = "measure: latency, value: 12, sd: 4, n_animals: 20, better: lower, margin: 4, range: [0, 99], status: x"
    spread = f"reference: [{{{keys}}}]"
    text = maze.replace(
        "reference: [{measure: success, value: 0.75, status: made up}]", spread
    )
    (here / "little.protocol.yaml").write_text(text, encoding="utf-8")
    lines = run("reference", "little").out.splitlines()
    assert "    sd between animals  4" in lines
    assert "    verdict about it    lower is better, margin 4" in lines


def test_an_edition_with_its_parent_s_numbers_refers_to_them(
    run: Run, here: Path
) -> None:
    (here / "child.protocol.yaml").write_text(
        "extends: little\nparadigm: little\nedition: other\nversion: 1\n",
        encoding="utf-8",
    )
    out = run("reference", "little", "child.protocol.yaml").out
    assert out.count("success = 0.75") == 1
    assert "as for little" in " ".join(out.split())


def test_a_protocol_without_reference_says_so(run: Run, here: Path, maze: str) -> None:
    text = maze.replace(
        "reference: [{measure: success, value: 0.75, status: made up}]\n", ""
    )
    (here / "little.protocol.yaml").write_text(text, encoding="utf-8")
    assert "no verdict is possible" in run("reference", "little").out


@pytest.mark.parametrize(
    ("estimand", "said"),
    [
        ("{last: 1}", "the last trial"),
        ("{last: 2}", "the last 2 trials"),
        ("{block: one}", "the block one"),
        (
            "{block: [one, two], where: trial > 2}",
            "the blocks one, two where trial > 2",
        ),
        ("{where: trial > 2}", "all trials where trial > 2"),
    ],
)
def test_the_judged_trials_are_told(
    estimand: str, said: str, run: Run, here: Path, maze: str
) -> None:
    text = re.sub(
        "^schedule:.*",
        "schedule: {one: {trials: 9}, two: {trials: 9}}",
        maze,
        flags=re.M,
    )
    text += f"estimand: {estimand}\n"
    (here / "little.protocol.yaml").write_text(text, encoding="utf-8")
    lines = run("reference", "little").out.splitlines()
    assert [line.split(None, 3)[3] for line in lines if "pass rate over" in line] == [
        said
    ]


def test_unknown_names_are_told(run: Run) -> None:
    result = run("reference", "litle")
    assert result.code == 2
    assert "There is no protocol 'litle'" in result.err


def test_the_page_of_the_documentation_is_up_to_date(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reference", "--format", "markdown"]) == 0
    page = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out, (
        "cheesebench reference --format markdown --output docs/references.md"
    )


def test_the_classics_are_on_the_page(run: Run) -> None:
    catalogue = Catalogue([ROOT / "protocols"])
    classics = [
        catalogue.load(path)
        for path in sorted(catalogue.folders["classics"].glob("*.protocol.yaml"))
    ]
    titles = run("reference").out.splitlines()
    assert [
        one.name
        for one in classics
        if f"{one.name}: {with_arena(one).title}" not in titles
    ] == []


def test_species_are_those_of_the_animals(run: Run) -> None:
    """The task may be known from other animals than the number is from."""
    y_maze = run("reference", "y_maze").out
    assert "C57BL/6" not in y_maze
    assert "littermates of Ts65Dn" in y_maze
    table = run("reference", "star_maze", "--format", "markdown").out
    assert "| none measured (C57BL/6 mouse in the paper) |" in table
    assert "species             mouse" in run("reference", "go_no_go").out


DECLARED = "reference: [{measure: success, value: 0.75, status: made up}]"
#: References of protocols, by name.
REFERENCES = {
    "spread": """
  - {measure: success, value: 0.75, sd: 0.2, n_animals: 12, curve: [0.5, 0.75], curve_sd: [0.1, 0.2], over: [2],
     dose: {before: 30, judged: 12}, species: "Mus musculus; none measured", source: "PMC1234567 & 10.1000/a_b(3)c",
     status: 'Read off. It "is so. Really" so. And more <here>.'}
  - {measure: latency, value: 1.5, sd: 0.25, n_animals: 1, status: only reported}""",
    "alone": """
  - {measure: success, value: 0.75, sd: 0.2, n_animals: 2, kind: analogy, status: two animals}""",
    "exact": """
  - {measure: success, value: 0.875, interval: [0.8, 0.9], where: session == 1, kind: invented, status: x}""",
    "lower": """
  - {measure: latency, value: 1.5, better: lower, margin: 0.5, range: [0, 4], sd: 0.25, n_animals: 9, status: y}""",
    "exactly_lower": """
  - {measure: latency, value: 1.5, better: lower, margin: 0.5, range: [0, 4], status: y}""",
    "higher": """
  - {measure: latency, value: 3.9, better: higher, margin: 0.25, range: [0, 4], sd: 0.5, n_animals: 9, status: y}""",
    "alike": """
  - {measure: latency, value: 1.5, better: alike, margin: 0.5, range: [0, 4], sd: 0.25, n_animals: 9, status: y}""",
    "none": " []",
}


def test_cards_and_pages_are_compared_with_what_is_stored(
    run: Run, here: Path, maze: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    names = []
    for name, references in REFERENCES.items():
        text = maze.replace("little", name).replace(DECLARED, f"reference:{references}")
        names.append(f"{name}.protocol.yaml")
        (here / names[-1]).write_text(text, encoding="utf-8")
    more = "\nextends: spread\nedition: long\nestimand: {last: 1}\nspecies: mouse\nmargin: 0.2\n"
    (here / "spread.long.protocol.yaml").write_text(
        f"version: 1\nparadigm: spread{more}cite: {{doi: 10.1000/x}}\n",
        encoding="utf-8",
    )
    (here / "none.block.protocol.yaml").write_text(
        "version: 1\nparadigm: none\nextends: none\nedition: block\nestimand: {block: main}\n",
        encoding="utf-8",
    )
    names += ["spread.long.protocol.yaml", "none.block.protocol.yaml"]
    shown = [run("reference", *names), run("reference", *names, "--format", "markdown")]
    assert [one.code for one in shown] == [0, 0], shown[0].err
    check_stored("references.txt", "\n".join(one.out for one in shown))


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("One. Two", "One. Two."),
        ("One", "One."),
        ("a. b. " + "word " * 38 + "end. More", "a. b. " + "word " * 38 + "end."),
        ("One. " + "W " * 38 + "e. More.", "One. " + "W " * 38 + "e."),
        ("One. " + "W " * 39 + "e. More.", "One."),
        ('He said "a. B" twice. ' + "W " * 60 + "x.", 'He said "a. B" twice.'),
        ("W " * 50 + "x. Then more.", "W " * 50 + "x."),
    ],
)
def test_the_beginning_of_a_text_is_whole_sentences(text: str, beginning: str) -> None:
    assert _beginning(text) == beginning
