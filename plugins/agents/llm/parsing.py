"""Parses a reply into its actions and learnings. Pure functions, in time proportional to the reply's length.

Replies are free text written by models, so reading them is tolerant; but no action is ever made up. Actions are
looked for in this order, until some are found:

1. after the last ``ACTIONS:``, in its line and in the list that may follow below it,
2. in lines that are nothing but actions,
3. in the sentences of the rest; but what is learnt and what is reasoned say nothing about what to do.

Where other words stand beside them, only unmistakable names are actions (FORWARD, ROTATE_LEFT, "turn right", STAY,
but neither "left" nor "R"), and none is where the words deny or leave a choice ("do not go FORWARD", "FORWARD or
STAY"). Digits are no actions: they number lists.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise, takewhile
from typing import NamedTuple

from cheesebench import ACTIONS, FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY

#: Characters parsed at the end of a reply, where the actions are; longer than any model's reply.
MAX_READ = 2_000_000


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: What means an action in any text, without the blanks, hyphens and underscores in it.
UNMISTAKABLE = {
    "forward": FORWARD,
    "forwards": FORWARD,
    **{f"{verb}left": ROTATE_LEFT for verb in ("rotate", "turn", "spin", "rotating", "turning")},
    **{f"{verb}right": ROTATE_RIGHT for verb in ("rotate", "turn", "spin", "rotating", "turning")},
    "stay": STAY,
    "noop": STAY,
    "donothing": STAY,
}
#: What means an action where nothing but actions stands.
SHORT = UNMISTAKABLE | {
    "f": FORWARD,
    "fwd": FORWARD,
    "ahead": FORWARD,
    "straight": FORWARD,
    "l": ROTATE_LEFT,
    "left": ROTATE_LEFT,
    "r": ROTATE_RIGHT,
    "right": ROTATE_RIGHT,
    "s": STAY,
    "wait": STAY,
    "nop": STAY,
}
#: Words that may stand between actions without meaning anything.
FILLERS = _words_of("action actions and then next finally go move step walk still put")
#: Left out before anything is compared ("turn to the left").
ARTICLES = _words_of("to the your my")
#: Words that deny the actions beside them.
DENIALS = _words_of(
    "not no never nor neither without avoid avoiding instead rather cannot cant dont doesnt didnt isnt wont shouldnt "
    "wouldnt couldnt mustnt neednt"
)
#: Words of a sentence that leaves open what to do.
CHOICES = _words_of("or either whether possible available allowed valid options")

_TAG = re.compile(r"[<\[◁](/?)(?:think|thinking|thought|reasoning)[>\]▷]", re.IGNORECASE)
#: A label that begins its line, whatever decorates it or numbers it; a heading needs no colon.
_LABEL = re.compile(
    r"^(?:(?!\n)[\W\d_])*(?:(?P<actions>actions?)|(?P<learnings>learnings?)|(?P<reasoning>reasoning))"
    r"(?:(?:(?!\n)[\W_]){0,6}?[:=：]|(?:(?!\n)[\W_])*$)",
    re.IGNORECASE | re.MULTILINE | re.ASCII,
)
#: A label in the middle of a line, for replies that are one line.
_LATE_LABEL = re.compile(
    r"(?<![^\W\d_])(?:(?P<actions>actions?)|(?P<learnings>learnings?))[*_`\"' \t]{0,4}[:=：]", re.IGNORECASE | re.ASCII
)
#: "Possible actions: ..." lists options, not choices.
_OFFER = re.compile(r"(?:possible|available|allowed|valid|four)[*_`\"' \t]{0,4}\Z", re.IGNORECASE | re.ASCII)
_WORD = re.compile(r"[^\W\d_]+(?:['’_-][^\W\d_]+)*")
_JOINT = re.compile(r"['’_-]")
_SENTENCE_END = re.compile(r"[.!?;\n]+")
_CLAUSE_END = re.compile(r"[,|/()\[\]→]+|->|=>")
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,4}[.):])\s*")
#: What may decorate the beginning and the end of learnings.
_DECORATION = " \t\n*_`"


class Spoken(NamedTuple):
    """A reply apart from its reasoning; ``cut_off``: it ends within the reasoning."""

    text: str
    reasoning: str
    cut_off: bool


class Parsed(NamedTuple):
    """1 to k actions or none; how many more there were; new learnings (None: none were given)."""

    actions: tuple[int, ...]
    dropped: int
    learnings: str | None


class _Section(NamedTuple):
    """A label (``kind`` says which) and what stands below it; ``kind`` is empty before the first label."""

    kind: str
    label: str
    text: str


def separate_reasoning(text: str) -> Spoken:
    """Part the reasoning from the reply: ``<think>`` blocks (and the like), and a section ``REASONING:``.

    A reply that begins within its reasoning (the opening tag was the server's) is reasoning up to the closing tag;
    one that never leaves it is reasoning to its end.
    """
    spoken: list[str] = []
    thought: list[str] = []
    start, inside, tagged = 0, False, False
    for tag in _TAG.finditer(text):
        closes = bool(tag[1])
        if inside and not closes:
            continue  # the reasoning speaks of a tag
        begins_inside = closes and not tagged
        (thought if inside or begins_inside else spoken).append(text[start : tag.start()])
        start, inside, tagged = tag.end(), not closes, True
    (thought if inside else spoken).append(text[start:])
    sections = _sections(_with_plain_line_ends("".join(spoken)))
    thought += [section.text for section in sections if section.kind == "reasoning"]
    rest = "".join(section.label + section.text for section in sections if section.kind != "reasoning")
    return Spoken(rest.strip(), "\n".join(map(str.strip, thought)).strip(), inside)


def parse(text: str, most: int, learnings: int) -> Parsed:
    """Read a reply without its reasoning: at most ``most`` actions, and learnings of at most so many characters.

    The last ``MAX_READ`` characters count.
    """
    sections = _sections(_with_plain_line_ends(text[-MAX_READ:]))
    found = _find_actions(sections)
    notes = _find_learnings(sections)
    return Parsed(tuple(found[:most]), max(0, len(found) - most), notes[:learnings].rstrip() or None)


def canonical(actions: Iterable[int]) -> str:
    """Return the line that says these actions: ``ACTIONS: FORWARD, STAY``."""
    return "ACTIONS: " + ", ".join(ACTIONS[action] for action in actions)


def _with_plain_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _sections(text: str) -> list[_Section]:
    """Cut the text at its labels.

    A label within a line counts only where no line begins with one of its kind, and never in a section of reasoning
    (one that is cut off may speak of actions).
    """
    labels = [(0, 0, ""), *((match.start(), match.end(), match.lastgroup or "") for match in _LABEL.finditer(text))]
    starts, kinds = [start for start, _, _ in labels], {kind for _, _, kind in labels}
    late = []
    for match in _LATE_LABEL.finditer(text):
        kind, before = match.lastgroup or "", text[max(0, match.start() - 20) : match.start()]
        _, _, around = labels[bisect_right(starts, match.start()) - 1]
        if kind not in kinds and around != "reasoning" and not _OFFER.search(before):
            late.append((match.start(), match.end(), kind))
    labels = [*sorted([*labels, *late]), (len(text), len(text), "")]
    return [
        _Section(kind, text[start:end], text[end:following])
        for (start, end, kind), (following, _, _) in pairwise(labels)
    ]


def _find_actions(sections: list[_Section]) -> list[int]:
    listed = [section.text for section in sections if section.kind == "actions"]
    found = _list(listed[-1]) if listed else []
    lines = [line for section in sections if section.kind != "reasoning" for line in _loose_lines(section)]
    prose = "\n".join(section.text for section in sections if section.kind in ("", "actions"))
    return found or list(chain.from_iterable(map(_bare, lines))) or list(_read(prose, by_clause=False))


def _find_learnings(sections: list[_Section]) -> str:
    notes = [section for section in sections if section.kind == "learnings"]
    if not notes:
        return ""
    text = notes[-1].text
    if not any(section.kind == "actions" for section in sections):
        # The label is missing; actions in lines of their own are no learnings.
        first, *lines = text.split("\n")
        kept = list(takewhile(lambda line: not _bare(line), lines))
        text = "\n".join([first, *kept])
    return text.strip(_DECORATION)


def _loose_lines(section: _Section) -> list[str]:
    """Return the lines that can be actions by themselves: the one that a label begins belongs to the label."""
    lines = section.text.split("\n")
    return lines[1:] if section.kind == "learnings" else lines


def _list(text: str) -> list[int]:
    """Read what follows the label: its own line, then lines of actions or list items that begin with an action."""
    line, *below = text.split("\n")
    found = list(_read(line, by_clause=True))
    for line in below:
        actions = _bare(line) or _item(line)
        found += actions
        if line.strip() and not actions:
            break
    return found


def _item(line: str) -> list[int]:
    """Return the action that a list item begins with, whatever it says about it."""
    mark = _ITEM.match(line)
    words = _words(line[mark.end() :][:80]) if mark else []
    for length in (2, 1):
        if len(words) >= length and (name := "".join(words[:length])) in SHORT:
            return [SHORT[name]]
    return []


def _bare(line: str) -> list[int]:
    """Return the actions of a text that is nothing but actions, else none."""
    actions, others = _name(_words(line), SHORT)
    return [] if others else actions


def _read(text: str, *, by_clause: bool) -> Iterator[int]:
    """Yield the actions of all sentences (``by_clause``: of all their clauses) that affirm something."""
    for sentence in _SENTENCE_END.split(text):
        if by_clause and CHOICES.isdisjoint(_words(sentence)):
            for clause in _CLAUSE_END.split(sentence):
                yield from _bare(clause) or _affirmed(clause)
        elif not by_clause:
            yield from _affirmed(sentence)


def _affirmed(text: str) -> list[int]:
    actions, others = _name(_words(text), UNMISTAKABLE)
    return actions if (DENIALS | CHOICES).isdisjoint(others) else []


def _words(text: str) -> list[str]:
    words = (_JOINT.sub("", word) for word in _WORD.findall(text.replace("\\", "").casefold()))
    return [word for word in words if word not in ARTICLES]


def _name(words: list[str], names: Mapping[str, int]) -> tuple[list[int], list[str]]:
    """Part the words into the actions that one or two of them name, and the others without the fillers."""
    actions, others = [], []
    position = 0
    while position < len(words):
        for length in (2, 1):
            name = "".join(words[position : position + length])
            if name in names:
                actions.append(names[name])
                break
        else:
            if name not in FILLERS:
                others.append(name)
        position += length
    return actions, others
