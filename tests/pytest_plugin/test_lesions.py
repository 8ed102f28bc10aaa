"""``--control LESION``: a separate cell beside the plain one, and a sentence if the
score does not fall.
"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

CONSTRUCT = "construct: {name: navigation by sight, kind: perception, abolished_by: [{lesion: blind, at_most: 0.25}]}\n"


@pytest.fixture
def seeing(project: pytest.Pytester) -> pytest.Pytester:
    """The project, with a construct that its walker does not need."""
    text = (
        (project.path / "lab" / "east.protocol.yaml")
        .read_text(encoding="utf-8")
        .replace("east", "seeing")
    )
    (project.path / "seeing.protocol.yaml").write_text(
        text + CONSTRUCT, encoding="utf-8"
    )
    return project


def test_who_succeeds_without_sight_is_said_to(seeing: pytest.Pytester) -> None:
    result = seeing.runpytest(
        "--model",
        "walker",
        "--control",
        "blind",
        "seeing.protocol.yaml",
        "--junitxml",
        "j.xml",
    )
    assert result.ret == pytest.ExitCode.OK
    said = " ".join(str(result.stdout).split())
    sentence = "100 % of trials succeed without sight, but at most 25 % should: this is not navigation by sight."
    assert said.count(sentence) >= 2
    assert "construct not measured; contradicted by a lesion" in said
    report = (seeing.path / "j.xml").read_text(encoding="utf-8")
    assert 'name="cheesebench.contradicted"' in report
    assert 'name="cheesebench.lesion" value="blind"' in report


def test_several_lesions_are_cells_of_their_own(seeing: pytest.Pytester) -> None:
    result = seeing.runpytest(
        "--model",
        "walker",
        "--control",
        "anhedonia,amnesia=run",
        "--control",
        "blind+anhedonia",
        "-v",
        "seeing.protocol.yaml",
    )
    assert result.ret == pytest.ExitCode.OK
    said = str(result.stdout)
    for name in ("control=anhedonia", "control=amnesia=run", "control=blind+anhedonia"):
        assert name in said


def test_a_control_is_no_open_verdict(seeing: pytest.Pytester) -> None:
    given = (
        "--model",
        "random",
        "--control",
        "blind",
        "--design",
        "smoke",
        "seeing.protocol.yaml",
    )
    found = seeing.runpytest_inprocess(*given, "--junitxml", "j.xml").parseoutcomes()
    assert (found.get("inconclusive"), found.get("controls")) == (1, 1)
    plain, control = (
        (
            {one.get("name"): one.get("value") for one in case.iter("property")},
            [one.get("message", "").partition(":")[0] for one in case.iter("skipped")],
        )
        for case in ElementTree.parse(seeing.path / "j.xml").iter("testcase")
    )
    assert (plain[0]["cheesebench.verdict"], plain[1]) == (
        "INCONCLUSIVE",
        ["INCONCLUSIVE"],
    )
    assert "cheesebench.control" not in plain[0]
    assert "cheesebench.verdict" not in control[0]
    assert (control[0]["cheesebench.control"], control[1]) == ("blind", ["CONTROL"])


@pytest.mark.parametrize(
    ("control", "complaint"),
    [
        (
            "hide=landmarks",
            "--control hide=landmarks: these protocols have nothing for it to remove",
        ),
        ("amnesia=nowhere", "--control amnesia=nowhere: these protocols have nothing"),
        ("blnd", "There is no control 'blnd'"),
    ],
)
def test_what_no_protocol_has_is_refused(
    seeing: pytest.Pytester, control: str, complaint: str
) -> None:
    result = seeing.runpytest(
        "--model", "walker", "--control", control, "seeing.protocol.yaml"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert complaint in " ".join(f"{result.stdout} {result.stderr}".split())
