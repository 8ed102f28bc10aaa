"""How animals that follow a reference exactly fare under the rule that judges models,
simulated as a page is built.
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
    """Return what becomes of the declared animals of the protocols that run by
    default.
    """
    rows = []
    for name in CATALOGUE.names():
        (found,) = audit_animal(with_arena(CATALOGUE.find(name)), AuditSettings())
        numbers = found.numbers
        if "fails" not in numbers:
            continue  # there is no reference
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
