"""A variant and its text: the log keeps the text, and it reads back as the same
variant.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.records import Variant

LEVELS = st.tuples(
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(
        lambda name: name != "control"
    ),
    st.from_regex(r"[\w. -]{0,8}", fullmatch=True),
)


@given(
    st.lists(LEVELS, max_size=3),
    st.sampled_from(["", "cue-off", "yoked:a,b=c"]),
    st.sampled_from(["", "rooms-value-t0.5"]),
)
def test_a_text_reads_back(
    levels: list[tuple[str, str]], control: str, condition: str
) -> None:
    variant = Variant(tuple(levels), control, condition)
    assert Variant.parse(str(variant)) == variant
    assert bool(variant) == bool(str(variant))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "history=1",
        "history=1,prompt=a,b",
        "control=cue-off",
        "history=1,control=yoked:r",
        "rooms-value",
    ],
)
def test_texts_of_runs_stay(text: str) -> None:
    assert str(Variant.parse(text)) == text
