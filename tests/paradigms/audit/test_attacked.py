"""Manual attacks beat the first drafts of the nine protocols without the measured
ability. The planner must find these attacks.

``python -m website.attacks`` does the same in one command, and stores the figures for
the page on lesions.
"""

from __future__ import annotations

import json

import pytest

from website.attacks import FOUND, KEPT, attack, attacks

#: Attacks that the planner finds less often than we did by hand, because ours used the
#: subject's number, which no adversary knows (see test_sensing).
LESS = {("star_maze", "blind")}
KNOWN = {
    (one["protocol"], one["lesion"]): one
    for one in json.loads(KEPT.read_text(encoding="utf-8"))
}


def test_the_page_shows_every_attack() -> None:
    assert list(KNOWN) == [(name, lesion) for name, lesion, _ in FOUND]
    assert [one["by_hand"] for one in KNOWN.values()] == [
        by_hand for _, _, by_hand in FOUND
    ]
    assert len(attacks().splitlines()) == len(FOUND) + 2
    assert {key for key, one in KNOWN.items() if one["found"] < one["by_hand"]} == LESS


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lesion", "by_hand"), FOUND)
def test_what_was_won_by_hand_is_found(name: str, lesion: str, by_hand: float) -> None:
    found = round(attack(name, lesion).found.value, 2)
    assert found == pytest.approx(KNOWN[name, lesion]["found"], abs=0.15)
    assert found >= by_hand or (name, lesion) in LESS
