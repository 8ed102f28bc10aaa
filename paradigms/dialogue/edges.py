"""Lists of edges: the probe of what a model knows of the graph, read and scored. Pure functions, linear in the answer.

An answer is a list of pairs of names, in brackets or one a line; words between two names ("(room 1, door, room 3)", the
paper's triples of state, action and state) do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cheesebench.interfaces import Value
from cheesebench.paradigms.dialogue.answers import ITEM, MAX_READ, Answer, own_part, read_answer
from cheesebench.paradigms.dialogue.language.specification import Form
from cheesebench.paradigms.dialogue.language.worlds import World, as_told, edges_of
from cheesebench.paradigms.dialogue.lexicon import Lexicon

_BRACKETS = re.compile(r"[(\[{]([^()\[\]{}]+)[)\]}]")
_PARTS = re.compile(r"[\n;]")


def read_reply(reply: str, lexicon: Lexicon, form: Form) -> Answer:
    """Return the answer in a whole reply, in whatever form it was asked for."""
    return read_edges(reply, lexicon) if form == "edges" else read_answer(reply, lexicon, form)


def read_edges(reply: str, lexicon: Lexicon) -> Answer:
    """Return the pairs in a whole reply, two nodes for each, one after the other; None for what is no node.

    A part with one name, or with more than two, is a pair with None.
    """
    text = own_part(reply[-MAX_READ:])
    nodes: list[str | None] = []
    for part in _parts(text, lexicon):
        named = [token.node for token in lexicon.tokens(part) if token.node]
        if named:
            nodes += named if len(named) == 2 else [named[0], None]
    return Answer(tuple(nodes))


def _parts(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Yield what may be a pair each: what stands in brackets, or else lines and what semicolons and commas part."""
    bracketed = [part for part in _BRACKETS.findall(text) if _names(part, lexicon) > 1]
    if bracketed:
        yield from (part for several in bracketed for part in _PARTS.split(several))
        return
    for line in _PARTS.split(text):
        part = ITEM.sub("", line)
        yield from part.split(",") if _names(part, lexicon) > 2 else [part]


def _names(text: str, lexicon: Lexicon) -> int:
    return sum(token.node is not None for token in lexicon.tokens(text))


def score_edges(answer: Answer, world: World, directed: bool) -> tuple[bool, dict[str, Value]]:
    """Return whether a list is that of all edges and of nothing else, and its flags; an edge may stand in it twice."""
    pairs = list(zip(answer.nodes[::2], answer.nodes[1::2], strict=True))
    complete = [(a, b) for a, b in pairs if a is not None and b is not None]
    listed, every = list(dict.fromkeys(as_told(complete, directed))), set(edges_of(world, directed))
    invented = sum(pair not in every for pair in listed)
    flags: dict[str, Value] = {
        "no_answer": int(answer.empty),
        "unknown_nodes": len(pairs) - len(complete),
        "hallucinated_edges": invented,
        "hallucinated_fraction": invented / len(listed) if listed else None,
        "missing_edges": len(every.difference(listed)),
    }
    right = bool(pairs) and not (flags["unknown_nodes"] or invented or flags["missing_edges"])
    return right, flags
