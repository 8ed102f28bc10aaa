"""Infos of vector environments in Gymnasium's format: an array and a mask for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def gather(num_envs: int, infos: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the infos of some lanes (by lane, all with the same keys) as arrays of shape ``(num_envs,)``.

    ``key`` holds the values, bool, int64 or float64 where all of them are such numbers and object otherwise;
    ``_key`` is True for the lanes that have a value. Mappings are converted recursively.
    """
    if not infos:
        return {}
    lanes = np.array(list(infos))
    mask = np.zeros(num_envs, bool)
    mask[lanes] = True
    return _gathered(lanes, list(infos.values()), mask)


def _gathered(lanes: NDArray[np.intp], infos: Sequence[Mapping[str, Any]], mask: NDArray[np.bool_]) -> dict[str, Any]:
    gathered: dict[str, Any] = {}
    for key, first in infos[0].items():
        values = [info[key] for info in infos]
        nested = isinstance(first, dict)
        gathered[key] = _gathered(lanes, values, mask) if nested else _array(len(mask), lanes, values)
        gathered[f"_{key}"] = mask.copy()
    return gathered


def _array(num_envs: int, lanes: NDArray[np.intp], values: list[Any]) -> NDArray[Any]:
    kinds = set(map(type, values))
    if kinds <= {int, float} or kinds == {bool}:
        array = np.zeros(num_envs, bool if kinds == {bool} else int if kinds == {int} else float)
        array[lanes] = values
        return array
    array = np.full(num_envs, None, object)
    for lane, value in zip(lanes.tolist(), values, strict=True):  # one by one, because a value can be a list
        array[lane] = value
    return array
