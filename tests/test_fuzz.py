"""Every case that ever broke something, and the first cases of each campaign: none breaks anything."""

from __future__ import annotations

import random
import signal
from functools import cache

import pytest

from fuzz.__main__ import CAMPAIGNS
from fuzz.campaign import CORPUS, Campaign, attempt, corpus

#: Cases of each campaign; ``python -m fuzz`` tries as many as there is time for.
CASES = 60

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")


@cache
def campaign(name: str) -> Campaign:
    return CAMPAIGNS[name]()


@pytest.mark.parametrize("name", sorted(CAMPAIGNS))
def test_first_cases(name: str) -> None:
    for number in range(CASES):
        case = campaign(name).draw(random.Random(f"{name} 0 {number}"))
        error = attempt(campaign(name), case)
        assert error is None, case


@pytest.mark.parametrize(("name", "file"), [(name, path.name) for name in sorted(CAMPAIGNS) for path in corpus(name)])
def test_corpus(name: str, file: str) -> None:
    assert attempt(campaign(name), (CORPUS / name / file).read_bytes()) is None
