"""Free text -> the answer in it: a path, one node, or a number. Pure functions, linear in the length of the text.

The last nonempty ``Answer:`` is parsed; without one, the last line that could be an answer. In it,
names count in the order in which they stand; what an explanation adds ("..., because room 3 ...") does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from cheesebench.paradigms.dialogue.counting import counted, numbers_in
from cheesebench.paradigms.dialogue.language.specification import Form
from cheesebench.paradigms.dialogue.lexicon import Lexicon, Token, words_of

#: Characters parsed at the end of a reply, where the answer is; longer than any model's reply.
MAX_READ = 200_000

#: A reply that continues with the user's next turn: nothing after that answers *this* question.
_NEXT_TURN = re.compile(r"^[ \t]*(?:user|human)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_MARKER = re.compile(r"\banswer\b[ \t*_]{0,4}(?:is\b)?[ \t*_]{0,4}:[ \t*_`]{0,8}", re.IGNORECASE)
#: What makes it a mention: "how I arrived at the answer:", "the pattern of the answer:".
_MENTIONS = re.compile(r"\b(?:at|to|for|of|behind)[ \t]+(?:the|my|this|your|our)[ \t]+(?:final[ \t]+)?$", re.IGNORECASE)
#: A copy of the requested pattern instead of an answer.
_PATTERN = re.compile(r"\[\^?(?:[a-z]-|\\|0-9)|\\s|\)\*|\[names?\]|<[^>]{0,40}>", re.IGNORECASE)
#: What stands before an item of a list.
ITEM = re.compile(r"^[ \t]*(?:\d{1,3}[.)]|[-*•+])[ \t]+")
#: What stands in bold letters; a line of nothing else.
_BOLD = re.compile(r"\*\*([^*\n]{1,400})\*\*")
_BOLD_LINE = re.compile(r"^[ \t]*\*\*[^*\n]{1,400}\*\*[ \t.]*$")
_GOES_ON = (",", "->", "→", "=>", ";")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OR = frozenset({"or", "either"})
_COPULA = frozenset({"is", "are", "be", "was", "follows", ":", "="})
#: What begins an explanation, a comparison or a sum, once something was named.
_CUES = _words(
    "who which that whose because since where so therefore thus hence while for giving yielding reward rewards "
    "total than instead rather over not although but if when in leading as"
)
#: "with a total of 60" is an explanation, "connects you with Wim" is none.
_SUMS = _words("a an the all no only total reward rewards")
#: What is said of a place or person who gives something.
_HAS = _words("is has are have donates gives offers holds")
_STOPS = frozenset({".", "!", "?", "\n"})
_SEPARATORS = _words(", ; | / then and to via through finally next followed by → ⇒ -")
#: Words that may stand alone between separators without being the name of anything.
_SMALL = _words(
    "start goal end go goes move take choose path begin starting from at of this order as you should i on into again "
    "first second third last directly also only just done answer final"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer says. ``nodes`` in the order named; None stands for a name that is not in the vocabulary.

    ``several``: it offers more than one answer ("Wim or Reza"). ``number`` is what was counted.
    """

    nodes: tuple[str | None, ...] = ()
    several: bool = False
    number: int | None = None

    @property
    def empty(self) -> bool:
        """Whether the reply contains no possible answer."""
        return not self.nodes and self.number is None and not self.several


def read_answer(reply: str, lexicon: Lexicon, form: Form) -> Answer:
    """Return the answer in a whole reply; any text is allowed, and its last ``MAX_READ`` characters count."""
    reply = reply[-MAX_READ:]
    if form == "number":
        statement, marked = final_statement(reply, lambda line: bool(numbers_in(words_of(line))), _counts_groups)
        return _count(statement, lexicon, marked)
    plain = partial(_is_plain, lexicon=lexicon, nodes=1 if form == "first_step" else 2)
    statement, marked = final_statement(reply, lambda line: any(token.node for token in _tokens(line, lexicon)), plain)
    return _named(_tokens(statement, lexicon), lexicon, form, marked)


def _tokens(text: str, lexicon: Lexicon) -> list[Token]:
    """Return the tokens of a text; "50 (free) hydrangea flowers" is an amount, and names nothing."""
    tokens = list(lexicon.tokens(text))
    for number, (token, after) in enumerate(pairwise(tokens)):
        if token.node and after.text in lexicon.nouns and _is_counted(tokens[max(0, number - 2) : number]):
            tokens[number] = Token(token.text)
    return tokens


def _is_counted(before: Sequence[Token]) -> bool:
    """Whether the one or two tokens before a name are an amount, and one word at most."""
    *first, last = before or [Token("")]
    return _is_amount(last) or (last.text.isalpha() and last.node is None and any(map(_is_amount, first)))


def _is_amount(token: Token) -> bool:
    return token.node is None and token.text.isdecimal()


def _is_plain(text: str, lead: str = "", *, lexicon: Lexicon, nodes: int) -> bool:
    """Whether a text, or what stands behind its colon or "is", is a list of names and nothing else.

    ``lead`` is what stands before it in its line: nothing, or what announces an answer.
    """
    before = words_of(lead)
    if before and before[-1] not in _COPULA:
        return False
    tokens = _without_lead(_tokens(text, lexicon))
    named = sum(token.node is not None for token in tokens)
    silent = (*_SEPARATORS, *_SMALL, *_STOPS, *lexicon.nouns, "(", ")", "[", "]")
    return named >= nodes and all(t.node or t.text in silent or t.text.endswith(">") for t in tokens)


def _without_lead(tokens: list[Token]) -> list[Token]:
    """Return what stands behind the last "is" or colon before the last name."""
    named = False
    for position in range(len(tokens) - 1, -1, -1):
        if named and tokens[position].node is None and tokens[position].text in _COPULA:
            return tokens[position + 1 :]
        named = named or tokens[position].node is not None
    return tokens


def _counts_groups(text: str, lead: str = "") -> bool:
    """Whether a text says how many groups there are, whatever stands before it."""
    words = words_of(text)
    return next(counted(words), None) is not None


def _emphasised(lines: Sequence[str], is_answer: Callable[[str, str], bool]) -> str:
    """Return what is fenced, or stands in bold letters, and is an answer; of several the last.

    Empty where there is none, or where a line behind it is an answer, too.
    """
    fenced, found = False, ""
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif line.lstrip().startswith("|"):
            continue
        elif (fenced or _BOLD_LINE.match(line)) and is_answer(line, ""):
            found = line
        elif bold := [part[1] for part in _BOLD.finditer(line) if is_answer(part[1], line[: part.start()])]:
            found = bold[-1] if len(words_of(bold[-1])) > 1 else found
        elif found and is_answer(line, ""):
            found = ""
    return found


def final_statement(
    reply: str, could_be: Callable[[str], bool], is_answer: Callable[[str, str], bool] = lambda text, lead: False
) -> tuple[str, bool]:
    """Return the text that holds the answer, and whether an ``Answer:`` marks it.

    ``could_be`` says of a line whether it may be an answer, and ``is_answer`` of a text that stands out (and of what
    stands before it in its line) whether it is one; both matter where nothing is marked.
    """
    reply = _before_next_turn(reply)
    markers = _markers(reply)
    end = len(reply)
    for marker in reversed(markers):
        if statement := _marked(reply[marker.end() : end]):
            return statement, True
        end = marker.start()
    lines = [line for line in reply.splitlines() if line.strip()]
    if emphasised := _emphasised(lines, is_answer):
        return emphasised, False
    lines = [told for line in lines if (told := line if is_answer(line, "") else _told(line))]
    lines = [line for line in lines if not line.lstrip().startswith("```")]
    if any(could_be(line) for line in lines if not line.lstrip().startswith("|")):
        lines = [line for line in lines if not line.lstrip().startswith("|")]
    for last in range(len(lines) - 1, -1, -1):
        if could_be(lines[last]):
            first = last
            while (
                first
                and not _concludes(lines[last], is_answer)
                and ITEM.match(lines[first])
                and ITEM.match(lines[first - 1])
            ):
                first -= 1
            return _joined(lines[first : last + 1]), False
    return "", False


def _before_next_turn(reply: str) -> str:
    next_turn = _NEXT_TURN.search(reply)
    return reply[: next_turn.start()] if next_turn else reply


def _markers(reply: str) -> list[re.Match[str]]:
    return [m for m in _MARKER.finditer(reply) if not _MENTIONS.search(reply, max(0, m.start() - 40), m.start())]


def own_part(reply: str) -> str:
    """Return what follows the last ``Answer:`` that is followed by words, all of it; without one, the whole reply."""
    reply = _before_next_turn(reply)
    end = len(reply)
    for marker in reversed(_markers(reply)):
        if words_of(reply[marker.end() : end]):
            return reply[marker.end() : end]
        end = marker.start()
    return reply


def _told(line: str) -> str:
    """Return a line without the questions at its end, and a mere colon for one that announces what comes after it."""
    kept = line.rstrip(" \t*_")
    if kept.endswith("?"):
        kept = kept[: max(map(kept.rfind, ".!")) + 1]
    return ":" if kept.endswith(":") else kept


def _concludes(line: str, is_answer: Callable[[str, str], bool]) -> bool:
    """Whether an item of a list is a sentence with a whole answer in it: "3. The shortest path is A, B, C"."""
    return bool(_COPULA.intersection(words_of(ITEM.sub("", line)))) and is_answer(ITEM.sub("", line), "")


def _marked(text: str) -> str:
    """Return what follows an ``Answer:``: the rest of its line, or else the next paragraph."""
    lines = text.splitlines()
    says = [bool(words_of(line)) and not line.lstrip().startswith("```") for line in lines]
    first = next((number for number, something in enumerate(says) if something), None)
    if first is None or _PATTERN.search(lines[first]):
        return ""
    taken = [lines[first]]
    for line in lines[first + 1 :]:
        is_list = ITEM.match(taken[-1]) and ITEM.match(line)
        if not (taken[-1].rstrip(" *`").endswith(_GOES_ON) or is_list):
            break
        taken.append(line)
    return _joined(taken)


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


def _named(tokens: list[Token], lexicon: Lexicon, form: Form, marked: bool) -> Answer:
    sentences = [sentence for sentence in _sentences(tokens) if any(token.node for token in sentence)]
    if not sentences:
        # Names of something else in the place of an answer; prose is not a name.
        spoken = next(filter(None, _sentences(tokens)), [])
        return Answer(_items(spoken, lexicon)) if marked else Answer()
    sentence = sentences[0] if marked else _last_claim(sentences)
    claim = _claim(sentence)
    # "Wim or Reza", "Wim (or Reza)", "Wim. Or Reza."
    others = sentences[1:2] if marked else []
    if _offers_two(claim) or _offers_two_in_brackets(sentence) or any(map(_begins_with_or, others)):
        return Answer(_items(claim, lexicon), several=True)
    nodes = _items(claim, lexicon)
    if form == "first_step":
        nodes = tuple(dict.fromkeys(nodes))
    return Answer(nodes)


def _last_claim(sentences: Sequence[list[Token]]) -> list[Token]:
    """Return the last sentence that does more than say how much there is: "... with Wim. Wim is giving 50 books"."""
    return next((sentence for sentence in reversed(sentences) if not _states_amount(sentence)), sentences[-1])


def _states_amount(sentence: Sequence[Token]) -> bool:
    """Whether a sentence begins with a name, of which it says a number: "Jing is donating 50 books"."""
    name = next((position for position, token in enumerate(sentence) if token.node), 0)
    says = sentence[name + 1 : name + 2]
    return name <= 2 and bool(says) and says[0].text in _HAS and any(map(_is_amount, sentence[name + 2 : name + 4]))


def _offers_two(tokens: Iterable[Token]) -> bool:
    return any(token.text in _OR and token.node is None for token in tokens)


def _offers_two_in_brackets(sentence: Iterable[Token]) -> bool:
    """Whether a bracket holds an "or" with a name after it."""
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
    return bool(sentence) and sentence[0].node is None and sentence[0].text in (*_OR, "alternatively")


def _claim(sentence: list[Token]) -> list[Token]:
    """Return the part of a sentence that answers: without brackets and explanations, behind "is" or a colon."""
    kept: list[Token] = []
    named, depth = False, 0
    for token in sentence:
        if token.text in ("(", "[", "{"):
            depth += named or depth > 0
        elif token.text in (")", "]", "}"):
            depth = max(0, depth - 1)
        elif depth == 0:
            explains = token.text in _CUES or (bool(kept) and kept[-1].text == "with" and token.text in _SUMS)
            if named and token.node is None and explains:
                break
            named = named or token.node is not None
            kept.append(token)
    named = False
    for position in range(len(kept) - 1, -1, -1):
        if named and kept[position].node is None and kept[position].text in _COPULA:
            kept = kept[position + 1 :]
            break
        named = named or kept[position].node is not None
    return _without_question(kept)


def _without_question(tokens: list[Token]) -> list[Token]:
    """Leave out "from X to Y" where the path itself, from X on, comes after it."""
    named = [position for position, token in enumerate(tokens) if token.node]
    if len(named) < 4 or named[0] == 0:
        return tokens
    first, second, third = named[:3]
    repeated = tokens[first].node == tokens[third].node
    if tokens[first - 1].text == "from" and any(t.text == "to" for t in tokens[first + 1 : second]) and repeated:
        return tokens[third:]
    return tokens


def _items(tokens: list[Token], lexicon: Lexicon) -> tuple[str | None, ...]:
    """Return the nodes named, and None for list items that look like names but are not."""
    found: list[str | None] = []
    item: list[Token] = []
    for token in [*tokens, Token(",")]:
        if token.node is None and (token.text in _SEPARATORS or token.text.endswith(">")):
            nodes = [part.node for part in item if part.node]
            found.extend(nodes or ([None] if _is_a_name(item, lexicon) else []))
            item = []
        else:
            item.append(token)
    return tuple(found)


def _is_a_name(item: list[Token], lexicon: Lexicon) -> bool:
    words = [token.text for token in item if token.text not in lexicon.nouns and any(c.isalnum() for c in token.text)]
    return 0 < len(words) <= 2 and not any(word in _SMALL or word in _CUES or word in _COPULA for word in words)


def _count(statement: str, lexicon: Lexicon, marked: bool) -> Answer:
    """Return the stated number of groups; two different numbers are not an answer."""
    sentences = [[token.text for token in sentence] for sentence in _sentences([Token(w) for w in words_of(statement)])]
    with_numbers = [words for words in sentences if numbers_in(words)]
    if not with_numbers:
        return Answer()
    saying = [words for words in with_numbers if next(counted(words), None) is not None]
    words = with_numbers[0] if marked else (saying or with_numbers)[-1]
    counts = list(counted(words))
    numbers = list(dict.fromkeys(counts or numbers_in(words)))
    between = set(words) & {"or", "to", "-"} if len(numbers) > 1 else set()
    if len(numbers) > 1 and (between or not counts):
        return Answer(several=True)
    return Answer(number=numbers[0])
