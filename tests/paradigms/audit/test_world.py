"""Lesions of a world that changes: landmarks shown in another way, sets that grow smaller, `finish` that goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.exact import upper_bound
from cheesebench.paradigms.arena.audit.lesions.living import Adversary

Plant = Callable[..., ArenaParadigm]
#: A landmark is the lamp, not the side itself.
BEACON = (
    ("  groups: {arm: [left, right]}\n", '  groups: {arm: [left, right]}\n  landmarks: {W: "1", E: "2"}\n'),
    ("{side: [left, right]}", "{side: [left, right], lamp: [W, E]}"),
    ('show: {side: "*"}', 'show: {lamp: "*"}'),
)
#: Every action counts, and after three it goes on, wherever the subject then is.
COUNTED = (
    ("cue: {freeze: true,", "cue: {close: [],"),
    ("rules: [{after: 3, go: choice}]", "rules: [{act: any, count: waits}]"),
    ("    choice:\n", "    choice:\n      place: box\n"),
    ("schedule:", "  finish: [{if: waits == 3, go: choice}]\nschedule:"),
)
#: The right arm is the one that has not been taken out of the set.
LEFT_OVER = (
    ("start: {at", "vars: {free: [left, right]}\nstart: {at"),
    ("{side: [left, right]}", "{side: [left, right], other: [right, left]}"),
    ("    choice:\n", "    choice:\n      remove: {free: other}\n"),
    ("{enter: side, reward", "{enter: arm, if: it in free, reward"),
)


@pytest.mark.parametrize(
    ("changes", "lesion", "ceiling"),
    [
        (BEACON, "intact", 1.0),
        (BEACON, "hide=landmarks", 0.5),
        (BEACON, "hide=W+hide=E", 0.5),
        (BEACON, "hide=W", 1.0),  # the other one is lit, or not
        (BEACON, "amnesia=choice", 0.5),
        (COUNTED, "intact", 1.0),
        (COUNTED, "amnesia=choice", 0.5),
        (LEFT_OVER, "intact", 1.0),
        (LEFT_OVER, "amnesia=choice", 0.5),
        (LEFT_OVER, "hide=arm", 0.5),
    ],
)
def test_what_a_lesion_leaves(plant: Plant, changes: tuple[tuple[str, str], ...], lesion: str, ceiling: float) -> None:
    adversary = Adversary(plant(*changes), Lesion.parse(lesion), 1.0)
    assert upper_bound(adversary) == pytest.approx(ceiling)
