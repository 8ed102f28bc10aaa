"""Reads a reply: its actions and its learnings. Pure functions, in time proportional to
the reply's length.

Precision comes first: what is not clearly an action is none. The rules are in
``docs/prompts.md``, whose table is the test. In short:

1. After the last ``ACTIONS:`` stands a list of items. An item is the name of an action,
   a count ("x3") and an explanation, which is never read.
2. Without the label, only a reply (or its last paragraph) that is nothing but such a
   list of full names, or whose last sentence announces one ("I'll STAY.").
3. Lines of the prompt that a reply repeats are never read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json

from cheesebench import (
    ACTION_LETTERS,
    ACTIONS,
    FORWARD,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    STAY,
)

#: Characters read at the end of a reply, where the actions are; longer than any model's
#: reply.
MAX_READ = 200_000
#: A count beyond it is no plan.
MAX_COUNT = 99

_TURNS = ("rotate", "turn", "spin", "pivot", "rotating", "turning")
_WALKS = ("move", "go", "step", "walk", "moving", "going")
#: Full names, without the blanks, hyphens, underscores and articles in them.
FULL = {
    "forward": FORWARD,
    "forwards": FORWARD,
    **{
        f"{verb}{way}": FORWARD
        for verb in _WALKS
        for way in ("forward", "forwards", "ahead", "straight")
    },
    "gostraightahead": FORWARD,
    "movestraightahead": FORWARD,
    **{f"{verb}left": ROTATE_LEFT for verb in _TURNS},
    **{f"{verb}right": ROTATE_RIGHT for verb in _TURNS},
    **dict.fromkeys(
        ("leftturn", "rotatecounterclockwise", "rotateanticlockwise"), ROTATE_LEFT
    ),
    **dict.fromkeys(("rightturn", "rotateclockwise"), ROTATE_RIGHT),
    **dict.fromkeys(
        ("stay", "staystill", "stayput", "standstill", "noop", "donothing"), STAY
    ),
}
#: Names that count only in a list below the label.
SHORT = {
    **dict.fromkeys(("f", "fwd", "ahead", "straight"), FORWARD),
    **dict.fromkeys(("l", "left"), ROTATE_LEFT),
    **dict.fromkeys(("r", "right"), ROTATE_RIGHT),
    **dict.fromkeys(("s", "wait", "nop"), STAY),
}
_LISTED = FULL | SHORT
#: Words and joints of the longest name ("turn to the left").
_MOST_TOKENS = 5
#: What may stand around a line and means nothing.
_BLANKS = " \t\n*_`"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ARTICLES = _set("to the your my")
#: What may stand between items, and before the first one.
_CONNECTORS = _set("and then next finally first now again lastly also afterwards boxed")
#: What may stand before the first item of a sentence that announces actions, and what
#: must be among it.
_SPEAKER = _set(
    "i im we me the best so think therefore thus just my next action actions move choice have must answer it that"
)
_WILL = _set("will ill id lets let choose decide going should would is are be")
#: Words that deny what follows, or leave it open.
_OPEN = _set(
    "not no never nor neither without avoid rather instead cannot cant dont doesnt wont shouldnt wouldnt or either if "
    "otherwise else unless whether possible available allowed valid options option could can might may when"
)
#: Words of a heading before a list: "Your answer:", "Next action:", "My final move:".
_HEADING = _set(
    "your my the next final best chosen answer action actions move moves step steps plan choice response"
)
_NUMBERS = {
    **{
        word: count
        for count, word in enumerate(
            ("one", "two", "three", "four", "five", "six", "seven", "eight"), 1
        )
    },
    "twice": 2,
    "thrice": 3,
}
#: What a number may count.
_UNITS = _set(
    "x times time cell cells step steps moment moments space spaces square squares unit units once"
)
_TIMES = _set("x × *")
_SEPARATORS = _set(", ; . ! | + & > → ➡ ⇒ -> => 、 ，")
_DECORATION = _set("* _ ` \" ' [ ] { } “ ” ‘ ’ ~ <")
_BULLETS = _set("- * • + –")
_DASHES = _set("- – —")
_COLONS = _set(": ： =")

#: Tags such as ``</s>`` and ``<answer>``, which mean nothing; but for those of a label.
_MARKUP = re.compile(
    r"<(?!forward|rotate|stay)/?\|?([a-z][\w :|.\"=-]{0,60})>", re.IGNORECASE
)
#: Words, numbers, arrows, and every other character by itself.
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|->|=>|[^\s]")
#: A label that begins its line, whatever decorates it; a heading needs no colon.
_LABEL = re.compile(
    r"^(?:[\W_](?<!\n))*(?:(?:my|next|final)[ \t]+)?(actions?|learnings?|reasoning)"
    r"(?:(?:[\W_](?<![\n(])){0,6}?(?:[:=：]|\][:=：]?)|(?:[\W_](?<![\n(]))*$"
    r"|(?-i:(?<=ACTIONS)[ \t]+(?:[-–—][ \t]*)?(?=[A-Z]{2})))",
    re.IGNORECASE | re.MULTILINE | re.ASCII,
)
#: A label within a line: in capital letters, or as a key.
_LATE_LABEL = re.compile(
    r"(?<![\w\"'“])(?:[a-z]+final)?(ACTIONS?|LEARNINGS?)[*_`\"' \t]{0,4}[:：]"
    r"|[\"']((?i:actions?|learnings?))[\"'][ \t]*:|(?<=[(, ])(actions?|learnings?)=(?=[\[\"'])",
    re.ASCII,
)
_THINKS = "think|thinking(?:_process)?|thoughts?|reasoning|scratchpad|analysis|reflection|inner_monologue"
#: Tags of thoughts: ``<seed:think>``, ``<|START_THINKING|>``, ``<|end_of_thought|>``,
#: ``[THINK]``, ``◁think▷``; channels; Gemma's (``<unused94>thought``), Solar's
#: (``<|content|>``), and the sentences of Granite and Apriel.
_TAG = re.compile(
    rf"(?P<open>[<\[◁])(?P<end>/?)\|?(?:(?P<edge>START_|END_|begin_of_|end_of_)|\w{{1,20}}[:_])?(?:{_THINKS})\|?[>\]▷]"
    r"|(?:<unused94>|<\|channel>)thoughts?\b|\A\s*Here(?:(?:'s| is) my thought process| are my reasoning steps):"
    r"|(?P<ends><unused95>|<channel\|>|(?:<\|(?:end|begin)\|>(?:assistant)?)*<\|content\|>|\[BEGIN FINAL RESPONSE\]"
    r"|^Here(?:'s| is) my response:)"
    r"|(?:<\|(?:end|start)\|>(?:assistant)?)*<\|channel\|>\s*(?P<channel>\w+)[^<\n]{0,80}(?:<\|constrain\|>\w*\s*)?<\|message\|>",
    re.IGNORECASE | re.ASCII | re.MULTILINE,
)


class Spoken(NamedTuple):
    """A reply apart from its reasoning; ``cut_off``: it ends within the reasoning."""

    text: str
    reasoning: str
    cut_off: bool


class Parsed(NamedTuple):
    """1 to k actions or none; how many more there were; new learnings (None: none were
    given).
    """

    actions: tuple[int, ...]
    dropped: int
    learnings: str | None


class _Section(NamedTuple):
    """A label (``kind``: actions, learnings, reasoning, or empty before the first) and
    what stands below it.
    """

    kind: str
    label: str
    text: str
    begins_line: bool


def canonical(actions: Iterable[int]) -> str:
    """Return the line that says these actions: ``ACTIONS: FORWARD, STAY``."""
    return "ACTIONS: " + ", ".join(ACTIONS[action] for action in actions)


def separate_reasoning(text: str) -> Spoken:
    """Part the reasoning from the reply: what stands in its tags or channels, and a
    section ``REASONING:``.

    A reply that begins within its reasoning (the opening tag was the server's) is
    reasoning up to the closing tag; one that never leaves it is reasoning to its end.
    """
    spoken: list[str] = []
    thought: list[str] = []
    start, inside, tagged = 0, False, False
    for tag in _TAG.finditer(text):
        if tag["open"] == "[" and not (tag["end"] or f"[/{tag[0][1:]}" in text):
            continue  # a heading
        closes = _closes(tag)
        if inside and not closes:
            continue  # the reasoning speaks of a tag
        begins_inside = closes and not tagged and not tag["channel"]
        (thought if inside or begins_inside else spoken).append(
            text[start : tag.start()]
        )
        start, inside, tagged = tag.end(), not closes, True
    (thought if inside else spoken).append(text[start:])
    said = "".join(spoken)
    if (
        said.startswith("analysis") and "assistantfinal" in said
    ):  # channels whose tokens the server left out
        before, said = said.split("assistantfinal", 1)
        thought.append(before.removeprefix("analysis"))
    sections = _sections(said)
    thought += [section.text for section in sections if section.kind == "reasoning"]
    rest = "".join(
        section.label + section.text
        for section in sections
        if section.kind != "reasoning"
    )
    return Spoken(rest.strip(), "\n".join(map(str.strip, thought)).strip(), inside)


def _closes(tag: re.Match[str]) -> bool:
    if tag["channel"]:
        return (
            tag["channel"].lower() != "analysis"
        )  # a commentary calls a tool, or speaks to the user
    return bool(tag["end"] or tag["ends"]) or (tag["edge"] or "").lower().startswith(
        "end_"
    )


def parse(text: str, most: int, learnings: int, told: str = "") -> Parsed:
    """Read a reply without its reasoning: at most ``most`` actions, and learnings of at
    most so many characters.

    ``told`` is the text of the prompt: its lines are no answer. The last ``MAX_READ``
    characters count.
    """
    text = _MARKUP.sub(
        _label_of_tag, text[-MAX_READ:].replace("\r\n", "\n").replace("\r", "\n")
    )
    answer = _json_answer(text)
    if answer is not None:
        found, notes = answer
    else:
        sections = _sections(_own_lines(text, told))
        found = _actions_in(sections)
        notes = _learnings_in(sections if not told else _sections(text))
    return Parsed(
        tuple(found[:most]),
        max(0, len(found) - most),
        notes[:learnings].rstrip() or None,
    )


def _label_of_tag(tag: re.Match[str]) -> str:
    label = _kind(tag[1])
    return (
        f"\n{label.upper()}: "
        if label in ("actions", "learnings") and tag[0][1] != "/"
        else " "
    )


def _own_lines(text: str, told: str) -> str:
    """Return the reply without lines of the prompt, but for a list of actions that is
    not the prompt's example.
    """
    if not told:
        return text
    theirs = {line.strip() for line in told.split("\n")}
    pairs = f"\n{told}\n"
    lines = text.split("\n")
    own: list[str] = []
    for number, line in enumerate(lines):
        repeated = bool(line.strip()) and line.strip() in theirs
        if repeated and _label_of(line) == "actions" and _actions_in(_sections(line)):
            repeated = (
                number > 0
                and f"\n{lines[number - 1].strip()}\n{line.strip()}\n" in pairs
            )
        own.append("" if repeated else line)
    return "\n".join(own)


def _label_of(line: str) -> str:
    label = _LABEL.match(line)
    return _kind(label[1]) if label else ""


def _kind(word: str) -> str:
    word = word.lower()
    return word if word == "reasoning" else word.rstrip("s") + "s"


def _sections(text: str) -> list[_Section]:
    """Cut the text at its labels. Labels within a line are none inside the
    reasoning.
    """
    marks = [
        (match.start(), match.end(), _kind(match[1]), True)
        for match in _LABEL.finditer(text)
    ]
    starts = {start for _, start, *_ in marks}
    late = [
        (match.start(), match.end(), _kind(match[match.lastindex or 1]), False)
        for match in _LATE_LABEL.finditer(text)
        if match.end() not in starts
    ]
    kept: list[tuple[int, int, str, bool]] = [(0, 0, "", True)]
    for mark in sorted([*marks, *late]):
        if mark[0] >= kept[-1][1] and (mark[3] or kept[-1][2] != "reasoning"):
            kept.append(mark)
    ends = [start for start, *_ in kept[1:]] + [len(text)]
    return [
        _Section(kind, text[start:end], text[end:following], first)
        for (start, end, kind, first), following in zip(kept, ends, strict=True)
    ]


def _actions_in(sections: Sequence[_Section]) -> list[int]:
    for section in reversed(sections):
        if section.kind == "actions":
            found = _labelled(section.text)
            if found or section.begins_line:
                return found
    last = sections[-1]
    if last.kind == "learnings":
        before, paragraph = _last_paragraph(last.text)
        return _unlabelled(paragraph, listed=True) if before.strip() else []
    return _unlabelled(last.text) if last.kind == "" else []


def _learnings_in(sections: Sequence[_Section]) -> str:
    notes = [section for section in sections if section.kind == "learnings"]
    if not notes:
        return ""
    text = notes[-1].text
    if not any(section.kind == "actions" for section in sections):
        # The label is missing: a last paragraph that is nothing but actions is no
        # learnings.
        before, paragraph = _last_paragraph(text)
        text = (
            before if before.strip() and _unlabelled(paragraph, listed=True) else text
        )
    return text.strip(_BLANKS)


def _json_answer(text: str) -> tuple[list[int], str] | None:
    """Return the actions and learnings of a reply that holds them as a JSON object,
    else None.

    Of an object that was cut off, only what is complete counts: half a name is no
    action, half a note is none.
    """
    begin = text.find("{")
    if begin < 0 or not re.search(r'"actions?"\s*:', text, re.IGNORECASE):
        return None
    try:
        data, _ = json.JSONDecoder().raw_decode(text[begin:])
    except (ValueError, RecursionError):
        try:
            data = from_json(text[begin:], allow_partial=True)
        except ValueError:
            return None
    return answer_in(data)


def answer_in(data: Any) -> tuple[list[int], str] | None:
    """Return the actions and learnings in the decoded arguments of a call of ``act``;
    None if it has no actions.
    """
    for inner in ("arguments", "parameters", "input"):
        if isinstance(data, dict) and isinstance(data.get(inner), dict):
            data = data[inner]
    fields = (
        {_kind(str(name)): value for name, value in data.items()}
        if isinstance(data, dict)
        else {}
    )
    if "actions" not in fields:
        return None
    said, notes = fields["actions"], fields.get("learnings")
    listed = (
        "\n".join(one for one in said if isinstance(one, str))
        if isinstance(said, list)
        else str(said)
    )
    return _labelled(listed), notes.strip() if isinstance(notes, str) else ""


def _labelled(text: str) -> list[int]:
    """Read what stands below the label: its own line, then lines of items up to the
    first other one.
    """
    first, *below = text.split("\n")
    found = _items(first, _LISTED, announced=True)
    if found is None or not (found or _is_opening(first)):
        return []
    blank = False
    for line in below:
        if not line.strip(_BLANKS):
            blank = True
            continue
        bulleted = _after_bullet(_tokens(line)) > 0
        items = (
            _items(line, _LISTED, whole=not bulleted)
            if bulleted or not (blank and found)
            else []
        )
        if items is None:
            return []
        if not (items or (not found and _is_opening(line))):
            break
        found, blank = found + items, False
    return (
        []
        if _is_menu(found) and all(item.explained for item in found)
        else _expanded(found)
    )


def _unlabelled(text: str, listed: bool = False) -> list[int]:
    """Read a text without the label: its last paragraph, or (unless ``listed``) a last
    sentence that announces.
    """
    lines = [
        line
        for line in _last_paragraph(text)[1].split("\n")
        if line.strip(_BLANKS + "-#")
    ]
    found: list[_Item] = []
    above = len(lines)
    while above and (
        items := _items(_after_heading(lines[above - 1]), FULL, whole=True)
    ):
        found[:0] = items
        above -= 1
    if not found:
        return _announced(lines[-1]) if lines and not listed else []
    introduced = not above or (
        not listed
        and _introduces(lines[above - 1], _after_bullet(_tokens(lines[above])) > 0)
    )
    return _expanded(found) if introduced and not _is_menu(found) else []


def _last_paragraph(text: str) -> tuple[str, str]:
    before, blank, last = text.rstrip(" \t\n`").rpartition("\n\n")
    return (before, last) if blank else ("", last)


def _is_opening(line: str) -> bool:
    """Whether a list may begin below this: there is nothing yet, or a bracket, or "(in
    this order)".
    """
    line = line.strip(_BLANKS)
    return line.startswith("(") or line.strip("[{").lower() in ("", "json", "text")


def _after_heading(line: str) -> str:
    """Return what stands after "Your answer:", "Next action:" and their like."""
    head, colon, rest = line.partition(":")
    words = [_word(token) for token in _tokens(head.split("(")[0]) if token.isalpha()]
    return rest if colon and words and _HEADING.issuperset(words) else line


def _introduces(line: str, bulleted: bool) -> bool:
    """Whether a list of actions may follow this line: "My next actions will be:", or,
    without bullets, a sentence.
    """
    words = {_word(token) for token in _tokens(line)}
    line = line.rstrip(_BLANKS)
    if line.endswith(":"):
        return bool(
            words & {"will", "ill", "next", "answer", "choose", "plan", "my"}
        ) and _OPEN.isdisjoint(words)
    return not bulleted and line.endswith((".", "!"))


def _announced(line: str) -> list[int]:
    """Read the last sentence if it says what the speaker does now: "I don't know, so
    I'll STAY.".
    """
    sentence = re.split(r"[.!;] ", line.strip().rstrip(_BLANKS + ".!"))[-1]
    if sentence.endswith("?"):
        return []
    found = _items(sentence, FULL, whole=True)
    if not (found and all(item.name.isupper() for item in found)):
        found = _items(sentence, FULL, announced=True, must=True)
    return _expanded(found or [])


def _is_menu(found: Sequence[_Item]) -> bool:
    """Whether these are the four actions as the prompt lists them."""
    return [item.actions for item in found] == [(0,), (1,), (2,), (3,)]


def _expanded(found: Iterable[_Item]) -> list[int]:
    return [action for item in found for action in item.actions]


class _Item(NamedTuple):
    """One item of a list: its actions, the name as it was written, whether an
    explanation follows it.
    """

    actions: tuple[int, ...]
    name: str
    explained: bool = False


def _items(
    line: str,
    names: Mapping[str, int],
    *,
    whole: bool = False,
    announced: bool = False,
    must: bool = False,
) -> list[_Item] | None:
    """Return the items of a line; none if it is no list, None if it leaves a choice.

    ``whole``: all of it must be a list. ``announced``: words such as "I will" may stand
    before an item; ``must``: they have to stand before the first. After an explanation
    that no bracket closes, only names in capital letters are items if the first one
    was.
    """
    tokens = _tokens(line)
    position = bulleted = _after_bullet(tokens)
    found: list[_Item] = []
    loose = False
    while position < len(tokens):
        begin, position = (
            position,
            _skipped(tokens, position, _SPEAKER | _WILL if announced else frozenset()),
        )
        said = {_word(token) for token in tokens[begin:position]}
        fits = not must or bool(found) or bool(said & _WILL)
        while fits and (read := _item(tokens, position, names)):
            item, end = read
            if loose and found[0].name.isupper() and not item.name.isupper():
                break
            end, explained = _bracketed(tokens, end)
            loose = False
            found.append(item._replace(explained=explained))
            position = _skipped(tokens, end)
        rest = position
        while position < len(tokens) and tokens[position] not in _SEPARATORS:
            position = max(position + 1, _bracketed(tokens, position)[0])
        words = [_word(token) for token in tokens[rest:position]]
        position += 1
        if not words:
            continue
        if found and not loose and words[0] == "or":
            return None
        if (
            found
            and not loose
            and words[0] == ":"
            and (not bulleted or words[1:2] == ["reward"])
        ):
            return []
        if must and found and (not found[-1].name.isupper() or words[0] in _WILL):
            # "Let's move forward with this.", "Going FORWARD would be unwise."
            return []
        if not (found or whole or must or _OPEN.isdisjoint(words)):
            return None
        if whole and not (loose or (found and words[0] in _DASHES)):
            return []
        if found and not loose and rest > begin and tokens[rest - 1] not in _SEPARATORS:
            found[-1] = found[-1]._replace(explained=True)
        loose = bool(found)
    return found


def _tokens(line: str) -> list[str]:
    return _TOKEN.findall(line.replace("\\", ""))


def _word(token: str) -> str:
    return token.replace("'", "").replace("’", "").casefold()


def _after_bullet(tokens: Sequence[str]) -> int:
    """Return how many tokens the bullet or number of a line has (``-``, ``2.``,
    ``(3)``).
    """
    begin = int(bool(tokens) and tokens[0] in _BULLETS)
    named = begin + (
        len(tokens) > begin and _word(tokens[begin]) in ("step", "action", "move")
    )
    number = named + (tokens[named : named + 1] == ["("])
    is_number = (
        len(tokens) > number + 1
        and tokens[number].isdigit()
        and tokens[number + 1] in (".", ")", ":")
    )
    return number + 2 if is_number else begin


def _skipped(
    tokens: Sequence[str], position: int, words: frozenset[str] = frozenset()
) -> int:
    """Return where something begins that is neither decoration nor one of these words,
    nor a tag.
    """
    while position < len(tokens):
        token = tokens[position]
        if (
            number := _after_bullet(tokens[position : position + 4])
            if token not in _BULLETS
            else 0
        ):
            position += number
            continue
        if not (
            token in _DECORATION
            or (token == "(" and position == 0)
            or _word(token) in _CONNECTORS | words
        ):
            break
        position += 1
    return position


def _item(
    tokens: Sequence[str], position: int, names: Mapping[str, int]
) -> tuple[_Item, int] | None:
    """Return the item that begins here, and where it ends: a count, a name, a count."""
    before = 0
    if (
        position + 2 < len(tokens)
        and _word(tokens[position + 1]) in _TIMES
        and (before := _number(tokens[position]))
    ):
        position += 2
    for end in range(min(len(tokens), position + _MOST_TOKENS), position, -1):
        piece = [token for token in tokens[position:end] if token not in ("_", "-")]
        if not (
            piece
            and tokens[position].isalpha()
            and tokens[end - 1].isalpha()
            and {_word(piece[0]), _word(piece[-1])}.isdisjoint(_ARTICLES)
        ):
            continue
        name = "".join(word for word in map(_word, piece) if word not in _ARTICLES)
        written = "".join(piece)
        actions: tuple[int, ...]
        if name in names:
            actions = (names[name],)
        elif (
            names is _LISTED
            and len(piece) == 1
            and written.isupper()
            and set(written) <= set(ACTION_LETTERS)
        ):
            actions = tuple(map(ACTION_LETTERS.index, written))
        else:
            continue
        after, end = (0, end) if before else _count(tokens, end)
        return _Item(actions * min(before or after or 1, MAX_COUNT), written), end
    return None


def _number(token: str) -> int:
    return (
        int(token)
        if token.isdecimal() and len(token) < 7
        else _NUMBERS.get(_word(token), 0)
    )


def _count(tokens: Sequence[str], position: int) -> tuple[int, int]:
    """Read ``x3``, ``×3``, ``(x3)``, ``3 times``, ``for 3 steps``, ``twice``, or a
    number that ends the item.
    """
    while (
        position + 1 < len(tokens)
        and tokens[position] in _DECORATION
        and not tokens[position + 1].isdigit()
    ):
        position += 1
    rest = [_word(token) for token in tokens[position : position + 6]] + [","] * 6
    at = bracket = int(rest[0] == "(")
    at += rest[at] in ("for", "by")
    crossed = rest[at] in _TIMES
    at += crossed
    number = _number(rest[at])
    clear = crossed or rest[at] in ("twice", "thrice") or rest[at + 1] in _UNITS
    at += 1 + (rest[at + 1] in _UNITS)
    if not number or (bracket and rest[at] != ")"):
        return 0, position
    ends = (
        bracket or rest[at] in _SEPARATORS - {"."} or position + at >= len(tokens) - 1
    )
    return (
        (number, min(position + at + bracket, len(tokens)))
        if clear or ends
        else (0, position)
    )


def _bracketed(tokens: Sequence[str], position: int) -> tuple[int, bool]:
    """Return the end of the brackets that begin here, and whether there are any."""
    while position < len(tokens) and tokens[position] in _DECORATION:
        position += 1
    if position >= len(tokens) or tokens[position] != "(":
        return position, False
    depth = 0
    for end in range(position, len(tokens)):
        depth += (tokens[end] == "(") - (tokens[end] == ")")
        if not depth:
            return end + 1, True
    return len(tokens), True
