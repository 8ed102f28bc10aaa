"""A choice of two whose cue is visible from the start: its chance level is the rate
without the cue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cheesebench.interfaces import AuditFinding, AuditPart, AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.plugin_manager import installed_plugins

Plant = Callable[..., ArenaParadigm]
CHECKS = "checks: [{at: choice, hidden: side, chance: 0.5}]\n"
VISIBLE = (
    ("start: cue", "start: choice"),
    ("    choice:\n", '    choice:\n      show: {side: "*"}\n'),
    (
        '    cue: {freeze: true, show: {side: "*"}, rules: [{after: 3, go: choice}]}\n',
        "",
    ),
)


def construct(*lesions: str) -> tuple[str, str]:
    return (
        CHECKS,
        f"construct: {{name: attention, kind: strategy, abolished_by: [{', '.join(lesions)}]}}\n",
    )


def finding(
    paradigm: ArenaParadigm, settings: AuditSettings, part: AuditPart, rule: str
) -> AuditFinding:
    views = [installed_plugins().view("ascii_2d")]
    (found,) = [
        one
        for one in paradigm.audit(views, replace(settings, parts=(part,)))
        if one.rule == rule
    ]
    return found


@pytest.mark.parametrize(
    ("last", "verdict", "why"),
    [
        ((CHECKS, ""), "FAIL", "ceiling .25 (the default ceiling)"),
        (
            construct("{lesion: {hide: arm}, at_most: 0.5}"),
            "ok",
            "ceiling .50 (what 'hide=arm' leaves, in `construct`)",
        ),
        # Both lesions affect the blind, so the lower limit counts; nothing is stated
        # about the blind without reward.
        (
            construct(
                "{lesion: {hide: arm}, at_most: 0.5}", "{lesion: blind, at_most: 0.3}"
            ),
            "FAIL",
            "ceiling .30 (what 'blind' leaves, in `construct`)",
        ),
        (
            construct("{lesion: anhedonia, at_most: 0.5}"),
            "FAIL",
            "ceiling .25 (the default ceiling)",
        ),
    ],
)
def test_the_ceiling_of_the_blind(
    plant: Plant, settings: AuditSettings, last: tuple[str, str], verdict: str, why: str
) -> None:
    found = finding(plant(*VISIBLE, last), settings, "blind", "blind ceiling")
    assert why in found.text
    assert found.verdict == verdict


def test_it_fails_as_a_leak_if_it_is_called_hidden(
    plant: Plant, settings: AuditSettings
) -> None:
    assert (
        finding(
            plant(*VISIBLE), settings, "leaks", "leak: side at choice, ascii_2d"
        ).verdict
        == "FAIL"
    )
