from __future__ import annotations

import json
import math
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from cheesebench.strict_json import strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_what_json_knows_is_written_as_it_is(value: object) -> None:
    assert json.loads(strict_json(value)) == value


def test_what_is_not_finite_is_null() -> None:
    value = MappingProxyType({"a": [math.nan, 1.5, (math.inf,)], "b": -math.inf})
    assert strict_json(value) == '{"a": [null, 1.5, [null]], "b": null}'
