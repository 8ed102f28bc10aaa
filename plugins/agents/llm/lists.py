"""Reads one line as a list of actions. All functions are pure, and take time
proportional to the line's length.

An item is the name of an action, with an optional count ("x3") and an optional
explanation, which is ignored. An item that is not an action ends the list, because the
items after it were planned on the assumption that it would be carried out. In a line
that must be nothing but a list, it means that there is no list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cheesebench import (
    ACTION_LETTERS,
    ACTIONS,
    FORWARD,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    STAY,
)
from cheesebench.plugins.agents.llm.prompts import descriptions


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: A larger count is read as this number.
MAX_COUNT = 99

_TURNS = ("rotate", "turn", "spin", "pivot", "rotating", "turning")
_WALKS = ("move", "go", "step", "walk", "moving", "going")
_ARTICLES = _set("a the to your my")


def _plain(text: str) -> str:
    """Return the letters of a name in lower case, without its articles."""
    words = re.findall(r"[^\W\d_]+", text.casefold())
    return "".join(word for word in words if word not in _ARTICLES)


#: Full names, as ``_plain`` writes them.
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
    # The system prompt's descriptions of the actions.
    **{
        _plain(words): ACTIONS.index(action) for action, words in descriptions().items()
    },
}
#: Names that count only in a list with a label.
SHORT = {
    **dict.fromkeys(("f", "fwd", "ahead", "straight", "moveonecell"), FORWARD),
    **dict.fromkeys(("l", "left"), ROTATE_LEFT),
    **dict.fromkeys(("r", "right"), ROTATE_RIGHT),
    **dict.fromkeys(("s", "wait", "nop"), STAY),
}
_LISTED = FULL | SHORT
#: Matches the length of a step in a name. It is ignored, because all steps are equally
#: long.
_ONE_STEP = re.compile("one(?:cell|step)")
#: Names of moves that no prompt offers. (A step to the side is not a turn.)
_NOT_OFFERED = {
    f"{verb}{way}"
    for verb in (*_WALKS, "strafe", "slide")
    for way in ("left", "right", "back", "backward", "backwards", "up", "down")
}
#: Maximum number of words and hyphens in a name ("turn to your left without moving").
#: Other words count as an unknown item only if they are no more than this.
_MOST_TOKENS = 6
#: Characters that mean nothing at the beginning or end of a line.
BLANKS = " \t\n*_`"
#: Words allowed between items, and before the first one.
_CONNECTORS = _set("and then next finally first now again lastly also afterwards boxed")
#: Words allowed before the items of a labelled line, and of a sentence that announces
#: actions. Such a sentence needs one of ``_WILL`` before its first item.
_SPEAKER = _set(
    "i im we me the best so think therefore thus just my next action actions move choice have must answer it that"
)
_WILL = _set("will ill id lets let choose decide going should would is are be")
_SEEMS = _set("seems looks sounds feels may might could can was has")
#: Words that deny the action after them, or leave it open.
OPEN = _set(
    "not no never nor neither without avoid rather instead cannot cant dont doesnt wont shouldnt wouldnt or either if "
    "otherwise else unless whether possible available allowed valid options option could can might may when"
)
#: Words of a heading before a list: "Your answer:", "Next action:", "My final move:".
HEADING = _set(
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
#: Words that may follow a count.
_UNITS = _set(
    "x times time cell cells step steps moment moments space spaces square squares unit units once"
)
_TIMES = _set("x × *")
_SEPARATORS = _set(", ; . ! | + & > → ➡ ⇒ -> => 、 ，")
_DECORATION = _set("* _ ` \" ' [ ] { } “ ” ‘ ’ ~ <")
_BULLETS = _set("- * • + –")
_DASHES = _set("- – —")
#: Matches a word, a number, an arrow, or any other single character.
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|->|=>|[^\s]")


class Item(NamedTuple):
    """One item of a list: its actions, the name as written, and whether an explanation
    follows.
    """

    actions: tuple[int, ...]
    name: str
    explained: bool = False


class Line(NamedTuple):
    """The list in a line.

    If ``choice``, the line leaves a choice or denies an action, and so lists nothing.
    If ``cut``, an item that is not an action ended the list. ``unknown`` is 1 for such
    an item, unless it is a sentence, and otherwise 0.
    """

    items: tuple[Item, ...] = ()
    choice: bool = False
    cut: bool = False
    unknown: int = 0


def labelled_line(line: str) -> Line:
    """Read the text after a label. Words such as "I will" may come before its items."""
    return _Reader(line, _LISTED, announced=True).read()


def listed_line(line: str) -> Line:
    """Read a line below a label. If it has no bullet, it must be nothing but a list."""
    return _Reader(line, _LISTED, whole=not is_bulleted(line)).read()


def bare_line(line: str) -> Line:
    """Read a line without a label, if it is nothing but a list of full names."""
    return _Reader(line, FULL, whole=True).read()


def announcement(sentence: str) -> Line:
    """Read a sentence that announces actions, such as "I will STAY"."""
    return _Reader(sentence, FULL, announced=True, must=True).read()


class _Reader:
    """Reads a line from separator to separator.

    If ``whole``, the line must be nothing but a list. If ``announced``, words such as
    "I will" may stand before an item. If ``must``, they are required before the first
    item. If the first item is in capital letters, so are all items after an explanation
    without brackets.
    """

    def __init__(
        self,
        line: str,
        names: Mapping[str, int],
        *,
        whole: bool = False,
        announced: bool = False,
        must: bool = False,
    ) -> None:
        self._tokens = tokens(line)
        self._names, self._whole, self._must = names, whole, must
        self._lists = names is _LISTED and not whole
        self._before = _SPEAKER | _WILL if announced else frozenset[str]()
        self._position = self._bulleted = after_bullet(self._tokens)
        self._found: list[Item] = []
        self._loose = False

    def read(self) -> Line:
        while self._position < len(self._tokens):
            ended = self._segment()
            if ended is not None:
                return ended
        return Line(tuple(self._found))

    def _segment(self) -> Line | None:
        """Read up to the next separator. Return the line's result if it is settled (the
        list ends, or the line is not a list), else None.
        """
        taken = self._take_items()
        rest = self._position
        written = self._other_words()
        if not written:
            return None
        refused = self._refusal([word(token) for token in written])
        if refused is not None:
            return refused
        explains = taken and self._tokens[rest - 1].casefold() not in _CONNECTORS
        if explains:
            self._found[-1] = self._found[-1]._replace(explained=True)
        if self._lists and self._is_no_action(written, explains):
            said = sum(token.isalpha() for token in written)
            return Line(tuple(self._found), cut=True, unknown=int(said <= _MOST_TOKENS))
        self._loose = bool(self._found)
        return None

    def _other_words(self) -> Sequence[str]:
        """Consume and return the words before the next separator."""
        begin = self._position
        while self._position < len(self._tokens) and (
            self._tokens[self._position] not in _SEPARATORS
        ):
            self._position = max(
                self._position + 1, _bracketed(self._tokens, self._position)[0]
            )
        self._position += 1
        return self._tokens[begin : self._position - 1]

    def _take_items(self) -> bool:
        """Read the items that begin here, and return whether there are any."""
        begin = self._position
        self._position = _skipped(self._tokens, begin, self._before)
        said = {word(token) for token in self._tokens[begin : self._position]}
        if self._must and not self._found and said.isdisjoint(_WILL):
            return False
        before = len(self._found)
        while read := _item(self._tokens, self._position, self._names):
            item, end = read
            if self._loose and self._found[0].name.isupper() > item.name.isupper():
                break
            end, explained = _bracketed(self._tokens, end)
            self._loose = False
            self._found.append(item._replace(explained=explained))
            self._position = _skipped(self._tokens, end)
        return len(self._found) > before

    def _refusal(self, words: Sequence[str]) -> Line | None:
        """Return the result if these words, which are not an item, show that the line
        is not a list. Otherwise return None.
        """
        follows = bool(self._found) and not self._loose
        if follows and words[0] in ("or", "/", "?") and words[1:2] != ["/"]:
            return Line(choice=True)
        if follows and words[0] == ":" and self._is_told(words):
            return Line()
        if self._must:
            return Line() if self._is_spoken_of(words) else None
        if self._whole:
            return None if self._explains(words) else Line()
        return None if self._found or OPEN.isdisjoint(words) else Line(choice=True)

    def _is_spoken_of(self, words: Sequence[str]) -> bool:
        """Return whether the sentence only mentions an action: "Let's move forward with
        this.", "Going FORWARD would be unwise."
        """
        return bool(self._found) and (
            not self._found[-1].name.isupper() or words[0] in _WILL | _SEEMS
        )

    def _explains(self, words: Sequence[str]) -> bool:
        return self._loose or (bool(self._found) and words[0] in _DASHES)

    def _is_told(self, words: Sequence[str]) -> bool:
        """Return whether a colon after an item is copied from the prompt or an
        observation ("STAY: reward 0"). Otherwise it begins an explanation.
        """
        return not self._bulleted or words[1:2] == ["reward"]

    def _is_no_action(self, written: Sequence[str], explains: bool) -> bool:
        """Return whether these words are an item of the list that is not an action."""
        if explains or self._loose:
            # Within an explanation, only words in capital letters count, and only if
            # the first item is in capital letters.
            name = "".join(token for token in written if token not in ("_", "-"))
            like = name.isalpha() and name.isupper() and len(name) > 2
            return like and self._found[0].name.isupper()
        return written[0] != "(" and any(map(str.isalpha, written))


def ends_in_name(text: str) -> bool:
    """Return whether the last words of a text are the full name of an action. A word of
    three letters of actions counts, too, because no other word begins so.
    """
    last = tokens(text.rpartition("\n")[2])[-_MOST_TOKENS:]
    if any(_named(last[at:], FULL)[0] for at in range(len(last))):
        return True
    return bool(last) and len(_letters(last[-1])) >= 3


def tokens(line: str) -> list[str]:
    return _TOKEN.findall(line.replace("\\", ""))


def word(token: str) -> str:
    return token.replace("'", "").replace("’", "").casefold()


def is_bulleted(line: str) -> bool:
    """Return whether a line begins with a bullet or a number that is not in bold."""
    return not line.lstrip().startswith("**") and after_bullet(tokens(line)) > 0


def after_bullet(tokens: Sequence[str]) -> int:
    """Return how many tokens the bullet or number of a line has (``-``, ``2.``,
    ``(3)``, ``Step 4:``).
    """
    begin = int(bool(tokens) and tokens[0] in _BULLETS)
    named = begin + (
        len(tokens) > begin and word(tokens[begin]) in ("step", "action", "move")
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
    """Return the position of the first token that is neither decoration, nor a bullet
    or number, nor a connector or one of ``words``, or that begins the name of a move
    that no prompt offers.
    """
    while position < len(tokens):
        token = tokens[position]
        if (
            number := after_bullet(tokens[position : position + 4])
            if token not in _BULLETS
            else 0
        ):
            position += number
            continue
        if _is_not_offered(tokens, position) or not (
            token in _DECORATION
            or (token == "(" and position == 0)
            or word(token) in _CONNECTORS | words
        ):
            break
        position += 1
    return position


def _is_not_offered(tokens: Sequence[str], position: int) -> bool:
    piece = [token for token in tokens[position : position + 4] if token not in "_-"]
    return any(_plain(" ".join(piece[:size])) in _NOT_OFFERED for size in (2, 3))


def _item(
    tokens: Sequence[str], position: int, names: Mapping[str, int]
) -> tuple[Item, int] | None:
    """Return the item that begins here, and its end, or None. A count may stand before
    or after the name.
    """
    before = 0
    if (
        position + 2 < len(tokens)
        and word(tokens[position + 1]) in _TIMES
        and (before := _number(tokens[position]))
    ):
        position += 2
    for end in range(min(len(tokens), position + _MOST_TOKENS), position, -1):
        actions, written = _named(tokens[position:end], names)
        if actions:
            after, end = (0, end) if before else _count(tokens, end)
            return Item(actions * min(before or after or 1, MAX_COUNT), written), end
    return None


def _named(
    piece: Sequence[str], names: Mapping[str, int]
) -> tuple[tuple[int, ...], str]:
    """Return the actions that all these tokens together name, and the name as written.
    Both are empty if the tokens name no action.
    """
    words = [token for token in piece if token not in ("_", "-")]
    if not (
        piece[0].isalpha() and all(map(str.isalpha, words)) and piece[-1] == words[-1]
    ):
        return (), ""
    if not {word(words[0]), word(words[-1])}.isdisjoint(_ARTICLES):
        return (), ""
    name, written = _plain(" ".join(words)), "".join(words)
    action = names.get(name, names.get(_ONE_STEP.sub("", name)))
    if action is not None:
        return (action,), written
    letters = _letters(written) if names is _LISTED and len(words) == 1 else ()
    return letters, written * bool(letters)


def _letters(written: str) -> tuple[int, ...]:
    """Return the actions of a word that consists only of the letters of actions, such
    as FFL. For any other word, return none.
    """
    if not (written.isupper() and set(written) <= set(ACTION_LETTERS)):
        return ()
    return tuple(map(ACTION_LETTERS.index, written))


def _number(token: str) -> int:
    return (
        int(token)
        if token.isdecimal() and len(token) < 7
        else _NUMBERS.get(word(token), 0)
    )


def _count(tokens: Sequence[str], position: int) -> tuple[int, int]:
    """Return the count that begins here (0: none), and its end. It may be ``x3``,
    ``×3``, ``(x3)``, ``3 times``, ``for 3 steps``, ``twice``, or a number that ends the
    item.
    """
    while (
        position + 1 < len(tokens)
        and tokens[position] in _DECORATION
        and not tokens[position + 1].isdigit()
    ):
        position += 1
    rest = [word(token) for token in tokens[position : position + 6]] + [","] * 6
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
