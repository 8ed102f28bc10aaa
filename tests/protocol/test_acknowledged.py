"""An author says why a warning is meant: lint drops it, and reports give the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cheesebench.diagnostics import Diagnostics
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from cheesebench.testing import audit_protocol
from tests.protocol.short import Check, Examine, Findings

#: Two warnings, of a goal that can be seen (W311) and of a variable that nothing reads
#: (W308), and no other finding.
ODD = """arena: {map: "S..Z", legend: {S: box, Z: {zone: goal, glyph: P}}}
vars: {idle: 0}
"""
LIGHT = "acknowledged: {W311: the light is the cue}\n"


def codes(found: list[str]) -> list[str]:
    return sorted(one.split()[0] for one in found)


def test_what_is_acknowledged_is_not_repeated(
    examine: Examine, complete: Callable[[str], str], findings: Findings
) -> None:
    assert codes(findings(ODD)) == ["W308", "W311"]
    assert codes(findings(ODD + LIGHT)) == ["W308"]
    plain, _ = examine(complete(ODD))
    meant, _ = examine(complete(ODD + LIGHT))
    assert plain is not None
    assert meant is not None
    # The fact stays, and so does the digest.
    assert meant.goal_visible
    assert meant.sha256 == plain.sha256
    assert (plain.acknowledged, meant.acknowledged) == (
        {},
        {"W311": "the light is the cue"},
    )


@given(given=st.sets(st.sampled_from(["W308", "W311", "W310", "W999", "E121", "I401"])))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_code_is_dropped_or_told(given: set[str], findings: Findings) -> None:
    reasons = ", ".join(f"{code}: why" for code in sorted(given))
    found = codes(findings(f"{ODD}acknowledged: {{{reasons}}}\n"))
    assert found == sorted(
        [*({"W308", "W311"} - given), *["W343"] * len(given - {"W308", "W311"})]
    )


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("W310", "Remove it."),
        ("W3111", "Did you mean 'W311'?"),
        ("visible", "Remove it."),
    ],
)
def test_a_code_without_a_finding_is_told(
    code: str, remedy: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    _, found = examine(complete(f"{ODD}acknowledged: {{{code}: why}}\n"))
    [told] = [one for one in found if one.code == 343]
    assert told.sentence == f"'{code}' is acknowledged, but there is no such finding."
    assert told.remedy.startswith(remedy)


def test_a_reason_must_be_given(check_error: Check, findings: Findings) -> None:
    check_error("E123", ODD + "acknowledged: {«W311: ' '}\n")
    assert codes(findings(ODD + "acknowledged: {W311: [why]}\n")) == ["E123"]
    # An error hides warnings, so nothing is said of codes without one.
    assert codes(findings(ODD + LIGHT + "success: nowhere\n")) == ["E131"]


def test_an_edition_without_the_cause_is_told(tmp_path: Path) -> None:
    parent = tmp_path / "odd.protocol.yaml"
    parent.write_text(
        "version: 1\nparadigm: odd\nstart: {at: box}\nschedule: {day: {trials: 1}}\n"
        "trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}\n"
        'arena: {map: "#####\\n#S.Z#\\n#####", legend: {S: box, Z: {zone: goal, glyph: P}}}\n'
        + LIGHT,
        encoding="utf-8",
    )
    plain = tmp_path / "odd.plain.protocol.yaml"
    text = (
        "version: 1\nextends: odd\nparadigm: odd\nedition: plain\n"
        "arena: {legend: {Z: {glyph: null}}}\n"
    )
    plain.write_text(text, encoding="utf-8")
    catalogue = Catalogue()
    assert catalogue.inspect(parent)[1] == []
    [told] = catalogue.inspect(plain)[1]
    assert (told.code, told.position.file) == (343, str(parent))
    remedy = "acknowledged: {W311: null}"
    assert told.remedy == f"Write '{remedy}' in odd.plain.protocol.yaml."
    plain.write_text(f"{text}{remedy}\n", encoding="utf-8")
    assert catalogue.inspect(plain)[1] == []
    note = next(
        one
        for one in audit_protocol(parent, trials=4, parts=["cues"]).findings
        if one.rule == "goal visible"
    )
    assert note.text.endswith("; acknowledged: the light is the cue")


def test_a_dialogue_acknowledges_too() -> None:
    path = installed_plugins().protocol_directories[0] / "cogeval"
    text = next(path.glob("*.protocol.yaml")).read_text(encoding="utf-8")
    plain, _ = Catalogue().inspect_text(text)
    meant, found = Catalogue().inspect_text(f"{text}\nacknowledged: {{W310: why}}\n")
    assert plain is not None
    assert meant is not None
    assert meant.acknowledged == {"W310": "why"}
    assert meant.sha256 == plain.sha256
    assert [one.code for one in found if one.severity != "info"] == [343]


def test_errors_are_never_dropped() -> None:
    diagnostics = Diagnostics()
    place = Catalogue().inspect_text("version: 2")[1][0].position
    diagnostics.error(121, place, "odd")
    diagnostics.warning(311, place, "seen")
    assert not diagnostics.drop("E121")
    assert diagnostics.drop("W311")
    assert [one.code for one in diagnostics.found] == [121]
