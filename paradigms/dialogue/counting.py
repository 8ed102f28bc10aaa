"""Numbers in words and digits, and those that say how many groups there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

_NUMBERS = {
    word: number
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}


def numbers_in(words: Iterable[str]) -> list[int]:
    """Return the numbers among words, in their order; beyond a million they are all the same."""
    return [n for n in map(_number, words) if n is not None]


def _number(word: str) -> int | None:
    if word.isdecimal():
        return int(word) if len(word) <= 6 else 10**6
    return _NUMBERS.get(word)


#: What can be counted; what a scene calls its groups is added.
_GROUPS = ("cluster", "group", "communit", "clique", "circle", "component")


def counted(words: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of groups that words speak of: "5 clusters", not "cluster 5"."""
    for position, word in enumerate(words):
        number = _number(word)
        if number is not None and any(after.startswith(_GROUPS) for after in words[position + 1 : position + 6]):
            yield number
