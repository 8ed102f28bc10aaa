"""Formats numbers for people, with one way of rounding everywhere.

Halves are rounded away from zero. Digits after the twelfth are ignored, because they
only come from floating-point errors. So the same rate reads the same in the terminal,
in reports and on pages (``server/static/stream.js`` and ``reports/static/charts.js``
round in the same way).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

#: Number of reliable digits in a sum or a mean of floats.
_TRUSTED = 12
#: Matches a number in a text, unless it is a sample size or part of a word.
_NUMBER = re.compile(r"(?<![\w.,])(?<!n = )(\d+)(?:\.(\d+))?(?![\w.,]*\w)")
_STARTS = re.compile(r"[+\-±]?\d[\d.]*(?![\w.,]*\w)|[^\w\s] \d")


def rounded(value: float, decimals: int) -> str:
    """Return a number rounded to ``decimals`` places. Halves are rounded away from
    zero: with one place, 44.75 becomes ``44.8``.
    """
    scaled = float(f"{abs(value) * 10**decimals:.{_TRUSTED}g}")
    if not math.isfinite(scaled):
        return str(value)
    whole = math.floor(scaled + 0.5)
    sign = "-" if value < 0 and whole else ""
    left, right = divmod(whole, 10**decimals)
    return f"{sign}{left}.{right:0{decimals}}" if decimals else f"{sign}{left}"


def per_hundred(proportion: float) -> str:
    """Return a proportion times 100 with one decimal, dropped if it is 0: ``44.8``,
    ``82``.
    """
    return rounded(100 * proportion, 1).removesuffix(".0")


def percent(proportion: float) -> str:
    """Return a proportion in percent, like ``per_hundred``: ``44.8 %``, ``82 %``."""
    return f"{per_hundred(proportion)} %"


def points(difference: float) -> str:
    """Return a difference of proportions in percentage points, with its sign:
    ``-4.2``.
    """
    return _with_sign(per_hundred(difference))


def number(value: float) -> str:
    """Return a number with at most three significant digits, and all digits before the
    point: ``4.25``, ``1310``.
    """
    size = abs(value)
    if not size or not math.isfinite(size):
        return "0" if not size else str(value)
    above = math.floor(math.log10(float(f"{size:.3g}")))
    if above < -4:
        return f"{value:.3g}"
    shown = rounded(value, max(0, 2 - above))
    return shown.rstrip("0").removesuffix(".") if "." in shown else shown


def signed(difference: float) -> str:
    """Return a measure's difference with its sign: ``+1.5``, ``-12``, ``0``."""
    return _with_sign(number(difference))


def _with_sign(shown: str) -> str:
    return shown if shown == "0" or shown.startswith("-") else f"+{shown}"


def dollars(amount: float) -> str:
    """Return an amount in dollars, to the cent (``$1,310.25``) or, below ten cents,
    with two significant digits (``$0.00042``).
    """
    if 0 < amount < 0.095:
        places = 1 - math.floor(math.log10(amount))
        return f"${rounded(amount, min(places, _TRUSTED))}"
    whole, _, cents = rounded(amount, 2).partition(".")
    return f"${int(whole):,}.{cents}"


def duration(seconds: float) -> str:
    """Return a duration in the unit that suits it: ``0.25 s``, ``40 s``, ``12 min``,
    ``2.5 h``.
    """
    if seconds < 100:
        return f"{number(seconds) if seconds < 10 else rounded(seconds, 0)} s"
    if seconds < 6000:
        return f"{rounded(seconds / 60, 0)} min"
    return f"{rounded(seconds / 3600, 1)} h"


def level(column: Iterable[str], kinds: Iterable[str] | None = None) -> list[str]:
    """Return the texts of a column, with the same number of decimals in all numbers of
    one kind: ``5.0 %`` above ``76.6 %``.

    ``kinds`` has the kind of each text, such as the measure that its number belongs to
    (None: all are of one kind). Percentages are always a kind of their own. Only texts
    that begin with a number, or with a mark and a number, change.
    """
    texts = list(column)
    of = [
        (kind, "%" in text) if _STARTS.match(text) else None
        for text, kind in zip(texts, kinds or [""] * len(texts), strict=True)
    ]
    alike: dict[tuple[str, bool], list[str]] = {}
    for text, kind in zip(texts, of, strict=True):
        if kind is not None:
            alike.setdefault(kind, []).append(text)
    decimals = {kind: _decimals(own) for kind, own in alike.items()}
    return [
        text if kind is None else _padded(text, decimals[kind])
        for text, kind in zip(texts, of, strict=True)
    ]


def _decimals(texts: Iterable[str]) -> int:
    """Return the decimals of numbers of one kind: the most that one of them has, but no
    more than one beyond three digits of the largest.
    """
    found = [one for text in texts for one in _NUMBER.finditer(text)]
    largest = max((float(one[0]) for one in found), default=0.0)
    most = max((len(one[2] or "") for one in found), default=0)
    return min(most, max(1, 4 - len(str(int(largest)))) if largest >= 1 else most)


def _padded(text: str, decimals: int) -> str:
    def fill(found: re.Match[str]) -> str:
        if len(found[2] or "") > decimals:
            return rounded(float(found[0]), decimals)
        return f"{found[1]}.{(found[2] or '').ljust(decimals, '0')}"

    return _NUMBER.sub(fill, text) if decimals else text
