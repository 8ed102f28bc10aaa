from __future__ import annotations

import json
import math
from types import MappingProxyType

from cheesebench.files import strict_json


def test_what_json_knows_is_written_as_it_is() -> None:
    value = {"a": [None, True, -1, 0.1, 1e308, "NaN", "\u2028é"], "": {"1": []}}
    assert json.loads(strict_json(value)) == value


def test_what_is_not_finite_is_null() -> None:
    value = MappingProxyType({"a": [math.nan, 1.5, (math.inf,)], "b": -math.inf})
    assert strict_json(value) == '{"a": [null, 1.5, [null]], "b": null}'
