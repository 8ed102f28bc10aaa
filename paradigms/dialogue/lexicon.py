"""The names of a vocabulary in free text: which words mean which node."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

# Letters and digits apart, so that "room7" reads as "room 7"; of signs, whatever can part or order names. An arrow is
# looked for at the beginning of a run of dashes only: from each dash on, a long run without its head would take
# quadratic time.
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+|(?<![-=–—])[-=–—]+>|[→⇒]|\n|[^\w\s*`_~\"“”]")
_ARTICLES = frozenset({"the", "a", "an"})


def words_of(text: str) -> list[str]:
    """Return the words and signs of a text, folded: what names and answers are compared by. Linear in the text."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


@dataclass(frozen=True, slots=True)
class Token:
    """A word or sign of an answer; ``node`` is the node that it (or the words that it stands for) names."""

    text: str
    node: str | None = None


class Lexicon:
    """Finds the nodes that a text names.

    ``names`` gives the name of every node in this vocabulary; ``nouns`` are scene words such as ``room``, which an
    answer may leave out, as it may what most of the names have in common: "room 7" is found as "7" too, unless two
    names would then be the same.
    """

    def __init__(self, names: Mapping[str, str], nouns: Iterable[str] = ()) -> None:
        self.names = dict(names)
        in_names = Counter(word for name in self.names.values() for word in dict.fromkeys(words_of(name)))
        common = {word for word, times in in_names.items() if times > max(2, len(self.names) / 2)}
        optional = _ARTICLES | common | {word for noun in nouns for word in words_of(noun)}
        short: dict[tuple[str, ...], list[str]] = {}
        self._nodes: dict[tuple[str, ...], str] = {}
        for node, name in self.names.items():
            words = tuple(words_of(name))
            core = tuple(word for word in words if word not in optional) or words
            self._nodes[words] = node
            short.setdefault(core, []).append(node)
        for core, nodes in short.items():
            if len(nodes) == 1:
                self._nodes.setdefault(core, nodes[0])
        self.nouns = optional | {f"{word}s" for word in optional}
        self._longest = max(map(len, self._nodes), default=0)
        self._first = {words[0] for words in self._nodes if words}

    def tokens(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text, several words that are one name as one token; the longest name is meant."""
        words = words_of(text)
        position = 0
        while position < len(words):
            node, length = self._match(words, position)
            yield Token(words[position] if length == 1 else " ".join(words[position : position + length]), node)
            position += length

    def _match(self, words: list[str], position: int) -> tuple[str | None, int]:
        if words[position] in self._first:
            for length in range(min(self._longest, len(words) - position), 0, -1):
                node = self._nodes.get(tuple(words[position : position + length]))
                if node is not None:
                    return node, length
        # "roses", "Wim's": said of one thing, whatever the ending.
        word = words[position]
        return (self._nodes.get((word[:-1].rstrip("'’"),)) if word.endswith("s") else None), 1
