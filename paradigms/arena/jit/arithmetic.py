"""The arithmetic of the language beyond ``+ - * /``: the scalar kernel calls it, numba compiles it.

Plain functions of floats that call none of each other. What is undefined is NaN, nothing raises, and there is no -0.0.
"""

from __future__ import annotations

import math

from cheesebench.paradigms.arena.jit.layout import EXACT

#: Above it, ``exp`` is larger than any float.
LARGEST_EXPONENT = 709.78


def modulo(left: float, right: float) -> float:
    """Return the rest of a division, with the sign of the divisor (as in Python); NaN for a division by 0."""
    return math.nan if right == 0.0 or math.isinf(left) else left % right + 0.0


def floor(number: float) -> float:
    """Return the largest whole number that is not larger."""
    if not abs(number) < EXACT:
        return number  # whole anyway, infinite, or undefined
    return float(math.floor(number))


def nearest(number: float) -> float:
    """Return the nearest whole number; of two, the even one."""
    if not abs(number) < EXACT:
        return number
    below = float(math.floor(number))
    rest = number - below
    return below + 1.0 if rest > 0.5 or (rest == 0.5 and below % 2.0 != 0.0) else below


def exponential(number: float) -> float:
    """Return e to the power of a number; infinity where that is too large for a float."""
    return math.inf if number > LARGEST_EXPONENT else math.exp(number)


def logarithm(number: float) -> float:
    """Return the natural logarithm; NaN for 0 and below."""
    return math.log(number) if number > 0.0 else math.nan
