"""The documents and the kernel have every entry in the table of the language."""

from __future__ import annotations

import dataclasses

from cheesebench.paradigms.arena import program
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol.documents import Effects, Rule, State
from cheesebench.protocol.expressions import (
    ARITHMETIC,
    BUILT_INS,
    EFFECTS,
    FUNCTIONS,
    HISTORY,
    TRIGGERS,
)
from cheesebench.protocol.specification import EffectsSpec


def test_documents_and_kernel_have_what_the_table_has() -> None:
    assert (
        set(Effects.model_fields)
        == set(EFFECTS)
        == {field.name for field in dataclasses.fields(EffectsSpec)}
    )
    assert set(EFFECTS) < set(State.model_fields)
    others = {"if_", "p", "go", "end"}
    assert set(Rule.model_fields) - set(EFFECTS) - others == set(TRIGGERS)
    assert set(program._ONE) | set(program._SEVERAL) == set(ARITHMETIC)
    known = set(dir(ArenaSubject)) | {
        "where",
        "size",
        *ArenaSubject.__init__.__code__.co_names,
    }
    missing = (set(FUNCTIONS) | set(BUILT_INS) | set(HISTORY)) - known
    assert missing == set(), "write methods of these names in paradigms/arena/life.py"
