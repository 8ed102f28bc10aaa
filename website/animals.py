"""Simulates animals that follow a reference exactly, and judges them by the rule for
models. This happens while a page is built.
"""

from __future__ import annotations

from cheesebench.amounts import percent
from cheesebench.auditing import audit_animal
from cheesebench.interfaces import AuditSettings
from cheesebench.planning.simulation import COHORTS, MOST
from cheesebench.protocol import with_arena
from website.installed import CATALOGUE
from website.markup import code, table


def animals() -> str:
    """Return the verdicts on the declared animals of the default protocols."""
    rows = []
    for name in CATALOGUE.names():
        (found,) = audit_animal(with_arena(CATALOGUE.find(name)), AuditSettings())
        numbers = found.numbers
        if "fails" not in numbers:
            continue  # The protocol has no reference.
        fails, mean, passes = numbers["fails"], numbers["mean"], numbers["passes"]
        assert isinstance(fails, dict)
        assert isinstance(mean, float)
        assert isinstance(passes, float)
        rows.append(
            [
                code(name),
                percent(mean),
                *(percent(fails[str(n)]) for n in COHORTS),
                percent(passes),
            ]
        )
    fail = [f"FAIL, {subjects} subjects" for subjects in COHORTS]
    return table(
        ["protocol", "animals succeed in", *fail, f"PASS, {MOST} subjects"], rows
    )
