"""Infos of many environments as Gymnasium wants them: one array for each key, and a mask that says whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def gather(num_envs: int, infos: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the infos of some lanes (lane -> info, all with the same keys) as arrays of shape ``(num_envs,)``.

    ``key`` holds the values, bool, int64 or float64 where all of them are such numbers and object otherwise;
    ``_key`` is True for the lanes that have one. A mapping becomes such a dict itself.
    """
    if not infos:
        return {}
    lanes = list(infos)
    mask = np.zeros(num_envs, bool)
    mask[lanes] = True
    gathered: dict[str, Any] = {}
    for key, first in infos[lanes[0]].items():
        values = {lane: info[key] for lane, info in infos.items()}
        gathered[key] = gather(num_envs, values) if isinstance(first, Mapping) else _array(num_envs, values)
        gathered[f"_{key}"] = mask.copy()
    return gathered


def _array(num_envs: int, values: Mapping[int, Any]) -> NDArray[Any]:
    kinds = {type(value) for value in values.values()}
    if kinds <= {int, float} or kinds == {bool}:
        array = np.zeros(num_envs, bool if kinds == {bool} else int if kinds == {int} else float)
    else:
        array = np.full(num_envs, None, object)
    for lane, value in values.items():  # one by one, because a value can be a list
        array[lane] = value
    return array
