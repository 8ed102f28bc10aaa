"""Every case that ever broke something, and the first cases of each campaign, must
pass.
"""

from __future__ import annotations

import random
import signal
from functools import cache

import pytest

from cheesebench.protocol.expressions import CALLED
from fuzz import loader, protocols
from fuzz.__main__ import CAMPAIGNS
from fuzz.campaign import CORPUS, Campaign, attempt, corpus
from fuzz.protocols import EVERYTHING

#: Number of cases of each campaign; ``python -m fuzz``, which CI runs, tries as many as
#: there is time for.
CASES = 6

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="no timers here"
)


@cache
def campaign(name: str) -> Campaign:
    return CAMPAIGNS[name]()


@pytest.mark.parametrize("name", sorted(CAMPAIGNS))
def test_first_cases(name: str) -> None:
    for number in range(CASES):
        case = campaign(name).draw(random.Random(f"{name} 0 {number}"))
        error = attempt(campaign(name), case)
        assert error is None, case


@pytest.mark.parametrize(
    ("name", "file"),
    [(name, path.name) for name in sorted(CAMPAIGNS) for path in corpus(name)],
)
def test_corpus(name: str, file: str) -> None:
    assert attempt(campaign(name), (CORPUS / name / file).read_bytes()) is None


def test_every_function_of_the_language_is_drawn() -> None:
    chance = random.Random(0)
    text = EVERYTHING.read_text(encoding="utf-8")
    drawn = {
        "expressions": " ".join(
            campaign("expressions").draw(chance).decode() for _ in range(3000)
        ),
        "loader": " ".join(loader.changed(text, chance) for _ in range(3000)),
        "lives": " ".join(protocols.changed(text, chance) for _ in range(3000)),
    }
    for name, texts in drawn.items():
        assert [function for function in CALLED if f"{function}(" not in texts] == [], (
            name
        )
