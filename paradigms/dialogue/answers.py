"""Reads the answer in a free text (a path, one node, a number, edges), and scores it.

The functions are pure, and linear in the length of the text. The last nonempty
``Answer:`` is parsed or, if there is none, an emphasised answer or the last line that
could be one. (If edges are asked for, everything after the last ``Answer:``, or else
the whole reply, is parsed.) Names are read in order. An added explanation ("...,
because room 3 ...") is ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, filterfalse, pairwise

from cheesebench.interfaces import Value
from cheesebench.paradigms.dialogue import specification as spec

_NUMBERS = {
    word: number
    for number, word in enumerate(
        (
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        )
    )
}


def numbers_in(words: Iterable[str]) -> list[int]:
    """Return the numbers among words, in order. Numbers above a million are capped."""
    return [n for n in map(_number, words) if n is not None]


def _number(word: str) -> int | None:
    if word.isdecimal():
        return int(word) if len(word) <= 6 else 10**6
    return _NUMBERS.get(word)


#: Beginnings of words for groups.
_GROUPS = ("cluster", "group", "communit", "clique", "circle", "component")


def counted(words: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of groups that the words state: "5 clusters", but not "cluster
    5".
    """
    for position, word in enumerate(words):
        number = _number(word)
        if number is not None and any(
            after.startswith(_GROUPS) for after in words[position + 1 : position + 6]
        ):
            yield number


# Letters and digits are separate tokens, so that "room7" reads as "room 7". Every other
# sign is a token, except emphasis and double quotation marks. An arrow must begin at
# the start of a run of dashes: trying each dash of a long run without a head would take
# quadratic time.
_TOKEN = re.compile(
    r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+|(?<![-=–—])[-=–—]+>|[→⇒]|\n|[^\w\s*`_~\"“”]"
)
_ARTICLES = frozenset({"the", "a", "an"})


def words_of(text: str) -> list[str]:
    """Return the case-folded words and the signs of a text. Comparisons use these
    instead of the text. The time is linear in the length of the text.
    """
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


@dataclass(frozen=True, slots=True)
class Token:
    """A word or sign of an answer. ``node`` is the node that it names, alone or with
    adjacent words.
    """

    text: str
    node: str | None = None


def _common_words(names: Collection[str]) -> set[str]:
    """Return the words that occur in more than half of the names, and in at least
    three.
    """
    counts = Counter[str]()
    for name in names:
        counts.update(set(words_of(name)))
    return {word for word, times in counts.items() if times > max(2, len(names) / 2)}


class Lexicon:
    """Finds the nodes that a text names.

    ``names`` gives the name of every node in this vocabulary. ``nouns`` are scene words
    such as ``room``. An answer may omit these, and words that most names share: "room
    7" is also found as "7", unless two names would then be equal.
    """

    def __init__(self, names: Mapping[str, str], nouns: Iterable[str] = ()) -> None:
        self.names = dict(names)
        optional = _ARTICLES | _common_words(self.names.values())
        optional |= set(chain.from_iterable(map(words_of, nouns)))
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
        """Yield the tokens of a text. The words of a name form one token, and the
        longest possible name counts.
        """
        words = words_of(text)
        position = 0
        while position < len(words):
            node, length = self._match(words, position)
            yield Token(
                words[position]
                if length == 1
                else " ".join(words[position : position + length]),
                node,
            )
            position += length

    def _match(self, words: list[str], position: int) -> tuple[str | None, int]:
        if words[position] in self._first:
            for length in range(min(self._longest, len(words) - position), 0, -1):
                node = self._nodes.get(tuple(words[position : position + length]))
                if node is not None:
                    return node, length
        # A final "s" does not matter: "roses", "Wim's".
        word = words[position]
        return (
            self._nodes.get((word[:-1].rstrip("'’"),)) if word.endswith("s") else None
        ), 1


#: Maximum number of characters read at the end of a reply, where the answer is. Few
#: replies are longer.
MAX_READ = 200_000

#: Marks the user's next turn, with which a reply may continue. The text after it does
#: not answer *this* question.
_NEXT_TURN = re.compile(r"^[ \t]*(?:user|human)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_MARKER = re.compile(
    r"\banswer\b[ \t*_]{0,4}(?:is\b)?[ \t*_]{0,4}:[ \t*_`]{0,8}", re.IGNORECASE
)
#: Words before "answer:" that show that no answer follows: "how I arrived at the
#: answer:", "the pattern of the answer:".
_MENTIONS = re.compile(
    r"\b(?:at|to|for|of|behind)[ \t]+(?:the|my|this|your|our)[ \t]+(?:final[ \t]+)?$",
    re.IGNORECASE,
)
#: Matches a template that a reply copied from the question instead of filling it in:
#: ``[names]``, ``<node>``.
_PATTERN = re.compile(
    r"\[\^?(?:[a-z]-|\\|0-9)|\\s|\)\*|\[names?\]|<[^>]{0,40}>", re.IGNORECASE
)
#: Beginning of a list item.
ITEM = re.compile(r"^[ \t]*(?:\d{1,3}[.)]|[-*•+])[ \t]+")
#: ``_BOLD`` matches bold text, ``_BOLD_LINE`` a line that is bold as a whole.
_BOLD = re.compile(r"\*\*([^*\n]{1,400})\*\*")
_BOLD_LINE = re.compile(r"^[ \t]*\*\*[^*\n]{1,400}\*\*[ \t.]*$")
_GOES_ON = (",", "->", "→", "=>", ";")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OR = frozenset({"or", "either"})
_COPULA = frozenset({"is", "are", "be", "was", "follows", ":", "="})
#: Words that begin an explanation, a comparison or a sum if they follow a name.
_CUES = _words(
    "who which that whose because since where so therefore thus hence while for giving yielding reward rewards "
    "total than instead rather over not although but if when in leading as"
)
#: Words that may follow "with" in an explanation: "with a total of 60" is one,
#: "connects you with Wim" is not.
_SUMS = _words("a an the all no only total reward rewards")
#: Verbs for a place or person that has or gives something.
_HAS = _words("is has are have donates gives offers holds")
_STOPS = frozenset({".", "!", "?", "\n"})
_SEPARATORS = _words(", ; | / then and to via through finally next followed by → ⇒ -")
#: Words that may stand alone between separators although they are not names.
_SMALL = _words(
    "start goal end go goes move take choose path begin starting from at of this order as you should i on into again "
    "first second third last directly also only just done answer final"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of an answer.

    ``nodes`` are in the order of the answer. None stands for a name that is not in the
    vocabulary. ``several`` says whether there is more than one answer ("Wim or Reza").
    ``number`` is the number that the answer states, or None.
    """

    nodes: tuple[str | None, ...] = ()
    several: bool = False
    number: int | None = None

    @property
    def empty(self) -> bool:
        """Whether the reply contains no possible answer."""
        return not self.nodes and self.number is None and not self.several


def read_answer(reply: str, lexicon: Lexicon, form: spec.Form) -> Answer:
    """Return the answer in a whole reply. Any text is allowed, but only the last
    ``MAX_READ`` characters are read.
    """
    reply = reply[-MAX_READ:]
    if form == "number":
        statement, marked = final_statement(
            reply, lambda line: bool(numbers_in(words_of(line))), _counts_groups
        )
        return _count(statement, lexicon, marked)
    plain = partial(_is_plain, lexicon=lexicon, nodes=1 if form == "first_step" else 2)
    statement, marked = final_statement(
        reply, lambda line: any(token.node for token in _tokens(line, lexicon)), plain
    )
    return _named(_tokens(statement, lexicon), lexicon, form, marked)


def _tokens(text: str, lexicon: Lexicon) -> list[Token]:
    """Return the tokens of a text. An amount such as "50 (free) hydrangea flowers"
    names nothing.
    """
    tokens = list(lexicon.tokens(text))
    for number, (token, after) in enumerate(pairwise(tokens)):
        if (
            token.node
            and after.text in lexicon.nouns
            and _is_counted(tokens[max(0, number - 2) : number])
        ):
            tokens[number] = Token(token.text)
    return tokens


def _is_counted(before: Sequence[Token]) -> bool:
    """Return whether an amount precedes a name, with at most one other word in
    between.
    """
    *first, last = before or [Token("")]
    return _is_amount(last) or (
        last.text.isalpha() and last.node is None and any(map(_is_amount, first))
    )


def _is_amount(token: Token) -> bool:
    return token.node is None and token.text.isdecimal()


def _is_plain(text: str, lead: str = "", *, lexicon: Lexicon, nodes: int) -> bool:
    """Return whether a text, or the part after its colon or "is", is a list of at least
    ``nodes`` names and nothing else.

    ``lead`` is the text before it in the same line, which must be empty or announce an
    answer.
    """
    before = words_of(lead)
    if before and before[-1] not in _COPULA:
        return False
    tokens = _without_lead(_tokens(text, lexicon))
    named = sum(token.node is not None for token in tokens)
    silent = (*_SEPARATORS, *_SMALL, *_STOPS, *lexicon.nouns, "(", ")", "[", "]")
    return named >= nodes and all(
        t.node or t.text in silent or t.text.endswith(">") for t in tokens
    )


def _without_lead(tokens: list[Token]) -> list[Token]:
    """Return the tokens after the last "is" or colon that precedes the last name."""
    named = False
    for position in range(len(tokens) - 1, -1, -1):
        if named and tokens[position].node is None and tokens[position].text in _COPULA:
            return tokens[position + 1 :]
        named = named or tokens[position].node is not None
    return tokens


def _counts_groups(text: str, lead: str = "") -> bool:
    """Return whether a text states a number of groups, whatever precedes it."""
    words = words_of(text)
    return next(counted(words), None) is not None


def _emphasised(lines: Sequence[str], is_answer: Callable[[str, str], bool]) -> str:
    """Return the last fenced or bold text that is an answer, or "" if there is none, or
    if a later line is an answer, too. One bold word within a line does not count.
    """
    fenced, found = False, ""
    for line in filterfalse(_is_row, lines):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif (fenced or _BOLD_LINE.match(line)) and is_answer(line, ""):
            found = line
        elif (bold := _last_bold(line, is_answer)) is not None:
            found = bold if len(words_of(bold)) > 1 else found
        elif found and is_answer(line, ""):
            found = ""
    return found


def _last_bold(line: str, is_answer: Callable[[str, str], bool]) -> str | None:
    """Return the last bold text of a line that is an answer, or None."""
    bold = [
        part[1]
        for part in _BOLD.finditer(line)
        if is_answer(part[1], line[: part.start()])
    ]
    return bold[-1] if bold else None


def final_statement(
    reply: str,
    could_be: Callable[[str], bool],
    is_answer: Callable[[str, str], bool] = lambda text, lead: False,
) -> tuple[str, bool]:
    """Return the text that holds the answer ("" if there is none), and whether an
    ``Answer:`` marks it.

    Without a mark, ``could_be`` decides whether a line may be an answer, and
    ``is_answer`` whether an emphasised text (with the text before it in its line) is
    one.
    """
    reply = _before_next_turn(reply)
    if statement := _marked_statement(reply):
        return statement, True
    lines = [line for line in reply.splitlines() if line.strip()]
    if emphasised := _emphasised(lines, is_answer):
        return emphasised, False
    lines = list(_statements(lines, is_answer))
    rows = [line for line in lines if not _is_row(line)]
    if any(map(could_be, rows)):
        lines = rows
    for last in range(len(lines) - 1, -1, -1):
        if could_be(lines[last]):
            first = _first_of_list(lines, last, is_answer)
            return _joined(lines[first : last + 1]), False
    return "", False


def _marked_statement(reply: str) -> str:
    """Return the text after the last ``Answer:`` that an answer follows, or ""."""
    end = len(reply)
    for marker in reversed(_markers(reply)):
        if statement := _marked(reply[marker.end() : end]):
            return statement
        end = marker.start()
    return ""


def _statements(
    lines: Iterable[str], is_answer: Callable[[str, str], bool]
) -> Iterator[str]:
    """Yield the lines without questions and fences. An announcement becomes a colon."""
    for line in lines:
        told = line if is_answer(line, "") else _told(line)
        if told and not told.lstrip().startswith("```"):
            yield told


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _first_of_list(
    lines: Sequence[str], last: int, is_answer: Callable[[str, str], bool]
) -> int:
    """Return the number of the first line of the list that ends with line ``last``, or
    ``last`` if this line alone holds a whole answer.
    """
    if _concludes(lines[last], is_answer):
        return last
    first = last
    while first and ITEM.match(lines[first]) and ITEM.match(lines[first - 1]):
        first -= 1
    return first


def _before_next_turn(reply: str) -> str:
    next_turn = _NEXT_TURN.search(reply)
    return reply[: next_turn.start()] if next_turn else reply


def _markers(reply: str) -> list[re.Match[str]]:
    return [
        m
        for m in _MARKER.finditer(reply)
        if not _MENTIONS.search(reply, max(0, m.start() - 40), m.start())
    ]


def own_part(reply: str) -> str:
    """Return everything after the last ``Answer:`` that words follow, or the whole
    reply if there is none. The reply ends where the user's next turn begins.
    """
    reply = _before_next_turn(reply)
    end = len(reply)
    for marker in reversed(_markers(reply)):
        if words_of(reply[marker.end() : end]):
            return reply[marker.end() : end]
        end = marker.start()
    return reply


def _told(line: str) -> str:
    """Return a line without the questions at its end. A line that only announces the
    next line becomes a colon.
    """
    kept = line.rstrip(" \t*_")
    if kept.endswith("?"):
        kept = kept[: max(map(kept.rfind, ".!")) + 1]
    return ":" if kept.endswith(":") else kept


def _concludes(line: str, is_answer: Callable[[str, str], bool]) -> bool:
    """Return whether a list item is a sentence that contains a whole answer: "3. The
    shortest path is A, B, C".
    """
    return bool(_COPULA.intersection(words_of(ITEM.sub("", line)))) and is_answer(
        ITEM.sub("", line), ""
    )


def _marked(text: str) -> str:
    """Return the text after an ``Answer:``: the first line with words, and the lines
    that continue it or its list. Return "" if no line has words, or that line is a
    copied template.
    """
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if _says(line)), None)
    if first is None or _PATTERN.search(lines[first]):
        return ""
    taken = [lines[first]]
    for line in lines[first + 1 :]:
        is_list = ITEM.match(taken[-1]) and ITEM.match(line)
        if not (taken[-1].rstrip(" *`").endswith(_GOES_ON) or is_list):
            break
        taken.append(line)
    return _joined(taken)


def _says(line: str) -> bool:
    """Return whether a line has words and does not open a fence."""
    return bool(words_of(line)) and not line.lstrip().startswith("```")


def _joined(lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return lines[0]
    return " , ".join(ITEM.sub("", line).rstrip(" ,;") for line in lines)


def _sentences(tokens: Iterable[Token]) -> list[list[Token]]:
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.node is None and token.text in _STOPS:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _named(
    tokens: list[Token], lexicon: Lexicon, form: spec.Form, marked: bool
) -> Answer:
    sentences = list(filter(_names_a_node, _sentences(tokens)))
    if not sentences:
        # Without names, the words after an ``Answer:`` may be unknown names. Other
        # prose names nothing.
        spoken = next(filter(None, _sentences(tokens)), [])
        return Answer(_items(spoken, lexicon)) if marked else Answer()
    sentence = sentences[0] if marked else _last_claim(sentences)
    nodes = _items(_claim(sentence), lexicon)
    following = sentences[1:2] if marked else []
    if _offers_several(sentence, following):
        return Answer(nodes, several=True)
    if form == "first_step":
        nodes = tuple(dict.fromkeys(nodes))
    return Answer(nodes)


def _names_a_node(sentence: Iterable[Token]) -> bool:
    return any(token.node for token in sentence)


def _offers_several(
    sentence: list[Token], following: Iterable[Sequence[Token]]
) -> bool:
    """Return whether the answer offers an alternative: "Wim or Reza", "Wim (or Reza)",
    "Wim. Or Reza."
    """
    return (
        _offers_two(_claim(sentence))
        or _offers_two_in_brackets(sentence)
        or any(map(_begins_with_or, following))
    )


def _last_claim(sentences: Sequence[list[Token]]) -> list[Token]:
    """Return the last sentence that states more than an amount, or else the last one.
    In "... with Wim. Wim is giving 50 books", the first sentence is returned.
    """
    return next(
        (sentence for sentence in reversed(sentences) if not _states_amount(sentence)),
        sentences[-1],
    )


def _states_amount(sentence: Sequence[Token]) -> bool:
    """Return whether a sentence begins with a name and states an amount for it: "Jing
    is donating 50 books".
    """
    name = next((position for position, token in enumerate(sentence) if token.node), 0)
    says = sentence[name + 1 : name + 2]
    return (
        name <= 2
        and bool(says)
        and says[0].text in _HAS
        and any(map(_is_amount, sentence[name + 2 : name + 4]))
    )


def _offers_two(tokens: Iterable[Token]) -> bool:
    return any(token.text in _OR and token.node is None for token in tokens)


def _offers_two_in_brackets(sentence: Iterable[Token]) -> bool:
    """Return whether brackets contain an "or" before a name."""
    depth, alternative = 0, False
    for token in sentence:
        if token.text in ("(", "["):
            depth += 1
        elif token.text in (")", "]"):
            depth, alternative = max(0, depth - 1), False
        elif depth and token.node is None and token.text in _OR:
            alternative = True
        elif depth and alternative and token.node is not None:
            return True
    return False


def _begins_with_or(sentence: Sequence[Token]) -> bool:
    return (
        bool(sentence)
        and sentence[0].node is None
        and sentence[0].text in (*_OR, "alternatively")
    )


def _claim(sentence: list[Token]) -> list[Token]:
    """Return the part of a sentence that answers: the part after "is" or a colon,
    without brackets and explanations.
    """
    return _without_question(_without_lead(_outside_brackets(sentence)))


def _outside_brackets(sentence: Iterable[Token]) -> list[Token]:
    """Drop the brackets after the first name, and everything from an explanation on."""
    kept: list[Token] = []
    named, depth = False, 0
    for token in sentence:
        if token.text in ("(", "[", "{"):
            depth += named or depth > 0
        elif token.text in (")", "]", "}"):
            depth = max(0, depth - 1)
        elif depth == 0:
            if named and token.node is None and _explains(token, kept):
                break
            named = named or token.node is not None
            kept.append(token)
    return kept


def _explains(token: Token, before: Sequence[Token]) -> bool:
    """Return whether an explanation begins at a token: "because", "with a total of"."""
    with_sum = bool(before) and before[-1].text == "with" and token.text in _SUMS
    return token.text in _CUES or with_sum


def _without_question(tokens: list[Token]) -> list[Token]:
    """Drop "from X to Y" if the path itself, starting with X, follows."""
    named = [position for position, token in enumerate(tokens) if token.node]
    if len(named) < 4 or named[0] == 0:
        return tokens
    first, second, third = named[:3]
    repeated = tokens[first].node == tokens[third].node
    if (
        tokens[first - 1].text == "from"
        and any(t.text == "to" for t in tokens[first + 1 : second])
        and repeated
    ):
        return tokens[third:]
    return tokens


def _items(tokens: list[Token], lexicon: Lexicon) -> tuple[str | None, ...]:
    """Return the nodes that the tokens name. None stands for a list item that looks
    like a name but is not one.
    """
    found: list[str | None] = []
    item: list[Token] = []
    for token in [*tokens, Token(",")]:
        if token.node is None and (
            token.text in _SEPARATORS or token.text.endswith(">")
        ):
            nodes = [part.node for part in item if part.node]
            found.extend(nodes or ([None] if _is_a_name(item, lexicon) else []))
            item = []
        else:
            item.append(token)
    return tuple(found)


def _is_a_name(item: list[Token], lexicon: Lexicon) -> bool:
    words = [
        token.text
        for token in item
        if token.text not in lexicon.nouns and any(c.isalnum() for c in token.text)
    ]
    return 0 < len(words) <= 2 and not any(
        word in _SMALL or word in _CUES or word in _COPULA for word in words
    )


def _count(statement: str, lexicon: Lexicon, marked: bool) -> Answer:
    """Return the number of groups that a statement gives, or an empty answer if it
    gives none. Alternatives ("4 or 5 groups") count as several answers.
    """
    words = _words_with_number(statement, marked)
    counts = list(counted(words))
    numbers = list(dict.fromkeys(counts or numbers_in(words)))
    if not numbers:
        return Answer()
    if len(numbers) > 1 and (not counts or set(words) & {"or", "to", "-"}):
        return Answer(several=True)
    return Answer(number=numbers[0])


def _words_with_number(statement: str, marked: bool) -> list[str]:
    """Return the sentence that states the number. In a marked answer this is the first
    sentence with a number. Otherwise it is the last one, preferably one that counts
    groups.
    """
    sentences = (
        [token.text for token in sentence]
        for sentence in _sentences([Token(word) for word in words_of(statement)])
    )
    with_numbers = list(filter(numbers_in, sentences))
    if marked:
        return next(iter(with_numbers), [])
    counting = list(filter(_counts, with_numbers))
    return next(reversed(counting or with_numbers), [])


def _counts(words: Sequence[str]) -> bool:
    return next(counted(words), None) is not None


_BRACKETS = re.compile(r"[(\[{]([^()\[\]{}]+)[)\]}]")
_PARTS = re.compile(r"[\n;]")


def read_reply(reply: str, lexicon: Lexicon, form: spec.Form) -> Answer:
    return (
        read_edges(reply, lexicon)
        if form == "edges"
        else read_answer(reply, lexicon, form)
    )


def read_edges(reply: str, lexicon: Lexicon) -> Answer:
    """Return the pairs in a reply (after its last ``Answer:``, if there is one) as a
    flat list with two nodes for each pair. None stands for an unknown node.

    A part with one name, or with more than two, becomes a pair with None.
    """
    text = own_part(reply[-MAX_READ:])
    nodes: list[str | None] = []
    for part in _parts(text, lexicon):
        named = [token.node for token in lexicon.tokens(part) if token.node]
        if named:
            nodes += named if len(named) == 2 else [named[0], None]
    return Answer(tuple(nodes))


def _parts(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Yield the texts of possible pairs, split at semicolons: the contents of brackets
    with several names or, if there are none, the lines, also split at commas if they
    have more than two names.
    """
    bracketed = [part for part in _BRACKETS.findall(text) if _names(part, lexicon) > 1]
    if bracketed:
        yield from (part for several in bracketed for part in _PARTS.split(several))
        return
    for line in _PARTS.split(text):
        part = ITEM.sub("", line)
        yield from part.split(",") if _names(part, lexicon) > 2 else [part]


def _names(text: str, lexicon: Lexicon) -> int:
    return sum(token.node is not None for token in lexicon.tokens(text))


def score_edges(
    answer: Answer, world: spec.World, directed: bool
) -> tuple[bool, dict[str, Value]]:
    """Return whether a list has all edges and no others, and the flags of the answer.
    An edge may occur twice.
    """
    pairs = list(zip(answer.nodes[::2], answer.nodes[1::2], strict=True))
    complete = [(a, b) for a, b in pairs if a is not None and b is not None]
    listed, every = (
        list(dict.fromkeys(spec.as_told(complete, directed))),
        set(spec.edges_of(world, directed)),
    )
    invented = sum(pair not in every for pair in listed)
    flags: dict[str, Value] = {
        "no_answer": int(answer.empty),
        "unknown_nodes": len(pairs) - len(complete),
        "hallucinated_edges": invented,
        "hallucinated_fraction": invented / len(listed) if listed else None,
        "missing_edges": len(every.difference(listed)),
    }
    right = bool(pairs) and not (
        flags["unknown_nodes"] or invented or flags["missing_edges"]
    )
    return right, flags


#: The possible outcomes of an answer. If several apply, the first one counts. If a
#: number is asked for, the first three are possible, and "wrong number".
OUTCOMES = (
    "correct",
    "no answer",
    "several answers",
    "wrong form",
    "unknown node",
    "wrong start",
    "hallucinated edge",
    "loop",
    "wrong goal",
    "too long",
    "missing edge",
    "wrong path",
)


@dataclass(frozen=True, slots=True)
class Score:
    """The score of an answer. ``path`` is the answered path with its start.
    ``measures`` are flags (0 or 1), counts and shares. They are None where they do not
    apply.
    """

    success: bool
    outcome: str
    path: tuple[str | None, ...] = ()
    measures: Mapping[str, Value] = field(default_factory=dict)


def score(
    answer: Answer, condition: spec.ConditionSpec, item: spec.Item, first: spec.World
) -> Score:
    """Score an answer. ``first`` is the world before all edits. An edge that the edits
    removed counts as blocked.
    """
    if condition.form == "number":
        return _score_number(answer, item)
    if condition.form == "edges":
        listed, found = score_edges(answer, condition.world, condition.directed)
        return Score(listed, "correct" if listed else _outcome(found), (), found)
    path, wrong_form = _path(answer, condition, item)
    success = not (answer.several or wrong_form) and _is_right(path, condition, item)
    flags = _flags(answer, path, condition, item, first)
    flags["wrong_form"] = int(wrong_form)
    return Score(success, "correct" if success else _outcome(flags), path, flags)


def _is_right(
    path: tuple[str | None, ...], condition: spec.ConditionSpec, item: spec.Item
) -> bool:
    complete = tuple(node for node in path if node is not None)
    return bool(path) and len(complete) == len(path) and condition.right(item, complete)


def _score_number(answer: Answer, item: spec.Item) -> Score:
    success = answer.number is not None and answer.number == item.number
    flags: dict[str, Value] = {
        "no_answer": int(answer.empty),
        "several_answers": int(answer.several),
        "error": None
        if answer.number is None or item.number is None
        else answer.number - item.number,
    }
    outcome = (
        "correct"
        if success
        else _first(
            flags, {"no_answer": "no answer", "several_answers": "several answers"}
        )
    )
    return Score(success, outcome or "wrong number", (), flags)


def _path(
    answer: Answer, condition: spec.ConditionSpec, item: spec.Item
) -> tuple[tuple[str | None, ...], bool]:
    """Return the path that the answer means, with its start, and whether the answer has
    the wrong form.
    """
    nodes = answer.nodes
    if condition.form == "first_step":
        onward = nodes[1:] if len(nodes) > 1 and nodes[0] == item.start else nodes
        # The question asks for one node, so a whole path, or two nodes, is not a first
        # step.
        return ((item.start, *onward) if onward else ()), len(onward) > 1
    if nodes and nodes[0] != item.start and not condition.include_start:
        return (item.start, *nodes), False
    return nodes, False


def _flags(
    answer: Answer,
    path: tuple[str | None, ...],
    condition: spec.ConditionSpec,
    item: spec.Item,
    first: spec.World,
) -> dict[str, Value]:
    whole = condition.form == "path" and bool(path)
    recognised = [node for node in path if node is not None]
    shortest = min((len(key) for key in item.keys), default=0)
    reaches = whole and path[-1] in item.goals
    return {
        "no_answer": int(answer.empty),
        "several_answers": int(answer.several),
        "unknown_nodes": sum(node is None for node in path),
        "wrong_start": int(whole and path[0] != item.start),
        "wrong_goal": int(whole and not reaches),
        **_step_flags(path, set(condition.world.arcs), set(first.arcs)),
        "loop": int(len(set(recognised)) < len(recognised)),
        "excess_length": max(0, len(path) - shortest) if reaches else None,
    }


def _step_flags(
    path: tuple[str | None, ...], arcs: Set[object], arcs_before: Set[object]
) -> dict[str, Value]:
    """Return the flags of the steps: how many are not arcs and which share, the number
    of the first of these, and whether any step was an arc only before the edits.
    """
    steps = list(pairwise(path))
    illegal = [number for number, step in enumerate(steps, start=1) if step not in arcs]
    blocked = arcs_before - arcs
    return {
        "hallucinated_edges": len(illegal),
        "hallucinated_fraction": len(illegal) / len(steps) if steps else None,
        "first_illegal_step": illegal[0] if illegal else None,
        "blocked_edge": int(any(step in blocked for step in steps)),
    }


def _outcome(flags: Mapping[str, Value]) -> str:
    words = {
        "no_answer": "no answer",
        "several_answers": "several answers",
        "wrong_form": "wrong form",
        "unknown_nodes": "unknown node",
        "wrong_start": "wrong start",
        "hallucinated_edges": "hallucinated edge",
        "loop": "loop",
        "wrong_goal": "wrong goal",
        "excess_length": "too long",
        "missing_edges": "missing edge",
    }
    return _first(flags, words) or "wrong path"


def _first(flags: Mapping[str, Value], words: Mapping[str, str]) -> str:
    return next((word for flag, word in words.items() if flags.get(flag)), "")
