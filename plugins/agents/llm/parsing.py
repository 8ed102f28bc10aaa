"""Reads the actions and the learnings of a reply. All functions are pure, and take time
proportional to the reply's length.

Precision comes first: a word counts as an action only if it is clearly one. The rules
are in ``docs/prompts.md``, whose table is also a test. In short:

1. Only the text before the end of the turn is read. The turn ends at an end-of-turn
   token, at a line that opens the other side's turn, and, after the first action, at a
   line that only the environment writes.
2. The list of actions follows the first ``ACTIONS:``, or the last words of the request.
   A later list counts only if the reply takes the first one back.
3. Without the label, a reply (or its last paragraph) counts only if it is nothing but a
   list of full names, or if its last sentence announces an action ("I'll STAY.").
4. Lines of the prompt that a reply repeats name no action, unless the reply may answer
   with them.
5. What a reply that was cut off left unfinished counts only if it is clear: the last
   word only if it ends the full name of an action after a label, the last line without
   a label only if a sentence ends there.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

from pydantic_core import from_json

from cheesebench import ACTIONS
from cheesebench.plugins.agents.llm import lists
from cheesebench.plugins.agents.llm.prompts import form_words, messages
from cheesebench.plugins.agents.llm.turns import until_role, until_token

#: Maximum number of characters of a reply that are read. The last ones are read,
#: because the actions are at the end.
MAX_READ = 200_000

#: Matches a tag such as ``</s>`` or ``<answer>``. The tag means nothing unless it names
#: a label.
_MARKUP = re.compile(
    r"<(?!forward|rotate|stay)/?\|?([a-z][\w :|.\"=-]{0,60})>", re.IGNORECASE
)
#: Matches a label at the beginning of a line, with any decoration. As a heading it
#: needs no colon.
_LABEL = re.compile(
    r"^(?:[\W_](?<!\n))*(?:(?:my|your|next|final)[ \t]+)?(actions?|learnings?|reasoning)"
    r"(?:(?:[\W_](?<![\n(])){0,6}?(?:[:=：]|\][:=：]?)|(?:[\W_](?<![\n(]))*$"
    r"|(?-i:(?<=ACTIONS)[ \t]+(?:[-–—][ \t]*)?(?=[A-Z]{2}))"
    r"|(?-i:(?<=Actions)[ \t]+[-–—][ \t]*(?=[A-Z]{2})))",
    re.IGNORECASE | re.MULTILINE | re.ASCII,
)
#: Matches a label within a line, in capital letters or as a key.
_LATE_LABEL = re.compile(
    r"(?<![\w\"'“])(?:[a-z]+final)?(ACTIONS?|LEARNINGS?)[*_`\"' \t]{0,4}[:：]"
    r"|[\"']((?i:actions?|learnings?))[\"'][ \t]*:|(?<=[(, ])(actions?|learnings?)=(?=[\[\"'])",
    re.ASCII,
)
_THINKS = (
    "think|thinking(?:_process)?|thoughts?|plan|draft|deliberat(?:e|ion)|reasoning"
    "|scratchpad|analysis|reflection|inner_monologue"
)
#: Matches a tag of reasoning: ``<seed:think>``, ``<|START_THINKING|>``,
#: ``<|end_of_thought|>``, ``[THINK]``, ``◁think▷``, a channel, Gemma's tag
#: (``<unused94>thought``), Solar's (``<|content|>``), or the sentence that Granite and
#: Apriel write instead.
_TAG = re.compile(
    rf"(?P<open>[<\[◁])(?P<end>/?)\|?(?:(?P<edge>START_|END_|begin_of_|end_of_)|\w{{1,20}}[:_])?(?:{_THINKS})\|?[>\]▷]"
    r"|(?:<unused94>|<\|channel>)thoughts?\b|\A\s*Here(?:(?:'s| is) my thought process| are my reasoning steps):"
    r"|(?P<ends><unused95>|<channel\|>|(?:<\|(?:end|begin)\|>(?:assistant)?)*<\|content\|>|\[BEGIN FINAL RESPONSE\]"
    r"|^Here(?:'s| is) my response:)"
    r"|(?:<\|(?:end|start)\|>(?:assistant)?)*<\|channel\|>\s*(?P<channel>\w+)[^<\n]{0,80}(?:<\|constrain\|>\w*\s*)?<\|message\|>",
    re.IGNORECASE | re.ASCII | re.MULTILINE,
)
#: Matches words that take back what was said before them.
_TAKES_BACK = re.compile(
    r"\b(?:actually|second thoughts?|reconsider\w*|correct(?:ion|ed|ing)|instead|rather|revis\w+"
    r"|final\w*|better|sorry|mistaken?|oops|scratch that|chang\w+|updat\w+|hmm+|wrong)\b"
    r"|(?:^|[.!?][ \t]+)(?:wait|no)\b",
    re.IGNORECASE | re.MULTILINE,
)

#: ``_SPEAKS_OF`` matches words before a label that is only mentioned: "If I could, I'd
#: ...". ``_SPOKEN_OF`` matches words after it: "ACTIONS: FORWARD would hurt".
_SPEAKS_OF = re.compile(
    r"\b(?:if|would|could|i['’]d|unable|comply|refus\w+|decline\w*"
    r"|i (?:can(?:not|['’]t)|won['’]t|will not|do not|don['’]t|must not))\b[^.!?\n]*\Z",
    re.IGNORECASE,
)
_SPOKEN_OF = re.compile(
    r"[*_`\"'“ \t]*[A-Z_]+(?:[ \t]*,[ \t]*[A-Z_]+)*[\"'”]?[ \t]+"
    r"(?:is|was|has|had|would|could|might|should|because|gave|means|did)\b"
)


@lru_cache(maxsize=1)
def _request() -> re.Pattern[str]:
    """Return a pattern for the last words of a request, which may serve as a label.
    They may begin a line (also as "My answer"), or stand complete within a line.
    """
    text = {name: template.template for name, template in messages().items()}
    answer = text["answer"]
    brackets = [
        re.escape(text[name].partition(answer)[2]).replace(r"\$actions", r"\d+")
        for name in ("request", "request_one", "request_notes")
    ]
    own = re.sub(r"^\w+", "my", answer)
    return re.compile(
        rf"(?P<line>^(?:[\W_](?<!\n))*(?:{re.escape(answer)}|{own})\b"
        r"[ \t]*(?:\([^)\n]{0,80}\))?[*_`\"' \t]*[:：])"
        rf"|(?-i:{re.escape(answer)}(?:{'|'.join(brackets)}))",
        re.IGNORECASE | re.MULTILINE | re.ASCII,
    )


@lru_cache(maxsize=1)
def _world() -> re.Pattern[str]:
    """Return a pattern for lines that only the environment writes (or a model that
    imagines its next turn): heads of messages, results of steps, rows of a map, roles.
    """
    text = {name: re.escape(one.template) for name, one in messages().items()}
    heads = "|".join(text[name] for name in ("new_trial", "your_turn", "trial_ended"))
    steps = "|".join((*ACTIONS, text["waited"]))
    return re.compile(
        rf"^[ \t*>]*(?:(?P<told>(?:{heads})(?:,.*)?[ \t*]*$|(?:{steps})(?: x\d+)?: reward .*)"
        r"|#(?!\S*[^\W\d_]{3})\S+#[ \t]*$"
        r"|(?:assistant|model)[ \t]*$"
        r"|(?:\#{1,4}[ \t]*)?(?:Assistant|ASSISTANT|AI|Response)[ \t*]*:)"
        r"|(?<=[ \t])(?:USER|User|Human|ASSISTANT|Assistant):[ \t]",
        re.MULTILINE,
    )


#: Matches the last word of a torn reply, which may be half of one, or a last number,
#: which is a count or begins the next item (``2.``).
_LAST_WORD = re.compile(r"(?:(?<![^\W_])[^\W_]+|(?<=\s)\d+[.):]\s*)\Z")
#: The characters of words and of labels that a torn note may end with.
_WRITTEN = string.ascii_letters + string.digits + string.punctuation


class Spoken(NamedTuple):
    """A reply's text and its reasoning. ``cut_off`` says whether the reply ends within
    the reasoning, and ``ran_on`` whether it went on after the end of its turn. What
    came after is left out.
    """

    text: str
    reasoning: str
    cut_off: bool
    ran_on: bool = False


class Parsed(NamedTuple):
    """The content of a reply.

    ``actions`` has at most as many actions as are allowed, and ``dropped`` is the
    number of further ones. ``learnings`` are new learnings (None: the reply has none).
    ``unknown`` is the number of items that ended a list because they were not actions.
    ``ran_on`` says whether the reply went on after the end of its turn.
    """

    actions: tuple[int, ...]
    dropped: int
    learnings: str | None
    unknown: int = 0
    ran_on: bool = False


class _Section(NamedTuple):
    """A label with the text after it, which begins at ``start``. ``kind`` is
    ``actions``, ``learnings`` or ``reasoning``, or empty before the first label.
    """

    kind: str
    label: str
    text: str
    begins_line: bool
    start: int


class _Listed(NamedTuple):
    """The actions of a list, and the number of its items that are not actions."""

    actions: tuple[int, ...] = ()
    unknown: int = 0


def canonical(actions: Iterable[int]) -> str:
    """Return actions as a line in the standard form: ``ACTIONS: FORWARD, STAY``."""
    return "ACTIONS: " + ", ".join(ACTIONS[action] for action in actions)


def separate_reasoning(text: str, torn: bool = False) -> Spoken:
    """Separate the reasoning from the reply: the contents of tags and channels, and a
    section ``REASONING:``. ``torn`` says whether the reply was cut off.

    A reply may begin within its reasoning, if the prompt had the opening tag. Then all
    text before the closing tag is reasoning. Text after the end of the turn is left
    out.
    """
    text, ran_past_token = until_token(text)
    said, thought, inside = _by_tags(text, torn)
    sections = _sections(said)
    thought += [section.text for section in sections if section.kind == "reasoning"]
    rest = "".join(
        section.label + section.text
        for section in sections
        if section.kind != "reasoning"
    )
    turn = until_role(rest.strip())
    return Spoken(
        turn.text.strip(),
        "\n".join(map(str.strip, thought)).strip(),
        inside,
        ran_past_token or turn.ran_on,
    )


def _by_tags(text: str, torn: bool) -> tuple[str, list[str], bool]:
    """Return the spoken text, the reasoning, and whether the text ends within the
    reasoning.
    """
    spoken: list[str] = []
    thought: list[str] = []
    start, inside, tagged = 0, False, False
    for tag in _TAG.finditer(text):
        if tag["open"] == "[" and _is_heading(tag, torn):
            continue
        closes = _closes(tag)
        if inside and not closes:
            continue  # The reasoning only mentions this tag.
        begins_inside = closes and not tagged and not tag["channel"]
        (thought if inside or begins_inside else spoken).append(
            text[start : tag.start()]
        )
        start, inside, tagged = tag.end(), not closes, True
    (thought if inside else spoken).append(text[start:])
    said = "".join(spoken)
    if said.startswith("analysis") and "assistantfinal" in said:
        # The server has removed the tokens of the channels, and left only their names.
        before, said = said.split("assistantfinal", 1)
        thought.append(before.removeprefix("analysis"))
    return said, thought, inside


def _is_heading(tag: re.Match[str], torn: bool) -> bool:
    """Return whether a tag in brackets serves as a heading, because no tag closes it. A
    reply that was cut off may not have reached the end of ``[THINK]``.
    """
    is_closed = tag["end"] or f"[/{tag[0][1:]}" in tag.string
    return not (is_closed or (torn and tag[0].upper() == "[THINK]"))


def _closes(tag: re.Match[str]) -> bool:
    if tag["channel"]:
        # Only `analysis` is reasoning: `commentary` calls a tool or addresses the user.
        return tag["channel"].lower() != "analysis"
    return bool(tag["end"] or tag["ends"]) or (tag["edge"] or "").lower().startswith(
        "end_"
    )


def parse(
    text: str, most: int, learnings: int, told: str = "", torn: bool = False
) -> Parsed:
    """Read a reply without its reasoning.

    ``most`` limits the number of actions, and ``learnings`` the number of characters of
    learnings. ``told`` is the text of the prompt, which a reply may merely repeat.
    ``torn`` says whether the reply was cut off. Only the last ``MAX_READ`` characters
    of the turn are read.
    """
    text, ran_past_token = until_token(text)
    text = text[-MAX_READ:].replace("\r\n", "\n").replace("\r", "\n")
    text, ran_past_role = until_role(_MARKUP.sub(_label_of_tag, text))
    answer = _json_answer(text)
    found, notes, ran_on = answer or _read(text, told)
    if torn and not (answer or ran_past_token or ran_past_role or ran_on):
        found, notes = _surely_named(found, text, told), _surely_noted(notes, text)
    return Parsed(
        found.actions[:most],
        max(0, len(found.actions) - most),
        notes[:learnings].rstrip() or None,
        found.unknown,
        ran_past_token or ran_past_role or ran_on,
    )


def _surely_named(found: _Listed, text: str, told: str) -> _Listed:
    """Return the actions in a torn reply that do not hang on what it left unfinished:
    R may become ROTATE_LEFT, FORWARD x1 FORWARD x12, and "I'll STAY" may go on.

    A full name at the end of a labelled list is clear.
    """
    is_labelled = any(map(_answers, _sections(text)))
    if is_labelled and lists.ends_in_name(text):
        return found
    if is_labelled:
        finished = _LAST_WORD.sub("", text)
    else:
        said = text.rstrip()
        finished = said if said.endswith((".", "!")) else said.rpartition("\n")[0]
    shorter, _, _ = _read(finished, told)
    pairs = zip(found.actions, shorter.actions, strict=False)
    same = takewhile(lambda pair: pair[0] == pair[1], pairs)
    return found._replace(actions=tuple(action for action, _ in same))


def _surely_noted(learnings: str, text: str) -> str:
    """Return a torn reply's learnings without an unfinished last line, or the last word
    of a single line: it may be half a label. Half a note of JSON is no note.
    """
    if text.lstrip("`jsonJSON \t\n").startswith("{"):
        return ""
    if not text.rstrip(lists.BLANKS).endswith(learnings):
        return learnings
    above, newline, line = learnings.rpartition("\n")
    return above if newline else line.rstrip(_WRITTEN)


def _read(text: str, told: str) -> tuple[_Listed, str, bool]:
    """Return the list, the learnings, and whether the reply goes on after the end of
    its turn.
    """
    own = _own_lines(text, told)
    turn = _until_the_world(own)
    found, chosen, repeats = _actions_in(_sections(turn))
    whole = _sections(_until_the_world(text) if told else turn)
    return found, _learnings_in(whole, chosen), repeats or len(turn) < len(own.rstrip())


def _until_the_world(text: str) -> str:
    """Cut a reply at the first line after its actions that only the environment writes.
    Without such a line, return the whole reply.
    """
    spoke = next(filter(_answers, _sections(text)), None)
    line = _world().search(text)
    if line and (spoke is None or line.start() < spoke.start):
        # Before that line, the reply may have answered without the label.
        if _unlabelled(text[: line.start()], listed=True):
            return text[: line.start()]
        line = _world().search(text, spoke.start) if spoke else None
    return text if line is None else text[: line.start()]


def _label_of_tag(tag: re.Match[str]) -> str:
    label = _kind(tag[1])
    return (
        f"\n{label.upper()}: "
        if label in ("actions", "learnings") and tag[0][1] != "/"
        else " "
    )


def _own_lines(text: str, told: str) -> str:
    """Return the reply without the lines that it repeats from the prompt.

    The last words of the request stay, and so does a list of actions, unless it repeats
    an example of the prompt. At the beginning of a reply a list always stays, because
    it is an answer.
    """
    if not told:
        return text
    theirs = {line.strip() for line in told.split("\n")}
    pairs = f"\n{told}\n"
    own: list[str] = []
    before, above = "", 0
    for line in text.split("\n"):
        said = line.strip()
        repeated = said in theirs and _label_of(line) != "actions"
        if said in theirs and not repeated and any(_labelled_in(line)):
            repeated = above > 1 and f"\n{before}\n{said}\n" in pairs
        own.append("" if repeated else line)
        before, above = said, above + bool(said)
    return "\n".join(own)


def _labelled_in(line: str) -> tuple[int, ...]:
    return _actions_in(_sections(line))[0].actions


def _label_of(line: str) -> str:
    if _request().match(line):
        return "actions"
    label = _LABEL.match(line)
    return _kind(label[1]) if label else ""


def _kind(label: str) -> str:
    label = label.lower()
    return label if label == "reasoning" else label.rstrip("s") + "s"


def _sections(text: str) -> list[_Section]:
    """Split the text at its labels. After the label ``REASONING:``, only labels at the
    beginning of a line count.
    """
    kept: list[tuple[int, int, str, bool]] = [(0, 0, "", True)]
    for mark in sorted(_marks(text)):
        if mark[0] >= kept[-1][1] and (mark[3] or kept[-1][2] != "reasoning"):
            kept.append(mark)
    ends = [start for start, *_ in kept[1:]] + [len(text)]
    return [
        _Section(kind, text[start:end], text[end:following], first, end)
        for (start, end, kind, first), following in zip(kept, ends, strict=True)
    ]


def _marks(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yield the labels, each with its beginning, its end, its kind, and whether it
    begins a line.
    """
    starts = set()
    for label in _LABEL.finditer(text):
        starts.add(label.end())
        yield label.start(), label.end(), _kind(label[1]), True
    for asked in _request().finditer(text):
        notes = "learnings" in asked[0].lower() and "action" not in asked[0].lower()
        kind = "learnings" if notes else "actions"
        yield asked.start(), asked.end(), kind, asked["line"] is not None
    for late in _LATE_LABEL.finditer(text):
        if late.end() not in starts and not _is_spoken_of(text, late):
            kind = _kind(late[late.lastindex or 1])
            yield late.start(), late.end(), kind, False


def _is_spoken_of(text: str, label: re.Match[str]) -> bool:
    """Return whether the sentence only mentions this label."""
    before = text[max(0, label.start() - 200) : label.start()]
    return bool(_SPEAKS_OF.search(before) or _SPOKEN_OF.match(text, label.end()))


def _answers(section: _Section) -> bool:
    """Return whether a section is an answer, even one without an action, and does not
    merely repeat the prompt's form.
    """
    if section.kind != "actions":
        return False
    if section.begins_line:
        line = section.text.partition("\n")[0].strip(lists.BLANKS)
        if line and not line.lower().startswith(_form()):
            return True
    return bool(_labelled(section.text).actions)


@lru_cache(maxsize=1)
def _form() -> tuple[str, ...]:
    return tuple(words.lower() for words in form_words())


def _actions_in(sections: Sequence[_Section]) -> tuple[_Listed, int, bool]:
    """Return the list that counts, the index of its section, and whether a later list
    is ignored.
    """
    chosen = -1
    for number, section in enumerate(sections):
        if not _answers(section):
            continue
        if chosen < 0 or _replaces(sections, chosen, number):
            chosen = number
        elif section.begins_line:
            return _labelled(sections[chosen].text), chosen, True
    if chosen >= 0:
        return _labelled(sections[chosen].text), chosen, False
    last = sections[-1]
    if last.kind == "learnings":
        before, paragraph = _last_paragraph(last.text)
        listed = _unlabelled(paragraph, listed=True) if before.strip() else ()
    else:
        listed = _unlabelled(last.text) if last.kind == "" else ()
    return _Listed(listed), len(sections) - 1, False


def _replaces(sections: Sequence[_Section], chosen: int, number: int) -> bool:
    """Return whether a later list counts instead of the chosen one, because the chosen
    one was only mentioned within a line, or words between the two take it back.
    """
    between = sections[chosen + 1 : number]
    if not sections[chosen].begins_line:
        return sections[number].begins_line or not between
    said = [section.text for section in between if section.kind != "learnings"]
    rest = sections[chosen].text.lstrip(lists.BLANKS).partition("\n")[2]
    words = "\n".join((rest, *said, sections[number].label))
    return sections[number].begins_line and bool(_TAKES_BACK.search(words))


def _learnings_in(sections: Sequence[_Section], chosen: int) -> str:
    """Return the last learnings before the list that counts, or else the first ones
    after it, or "" if there are none.
    """
    notes = [
        (number <= chosen, section.text)
        for number, section in enumerate(sections)
        if section.kind == "learnings"
    ]
    if not notes:
        return ""
    text = next((one for before, one in reversed(notes) if before), notes[0][1])
    if not any(section.kind == "actions" for section in sections):
        # There is no label for actions, so a last paragraph of nothing but actions is
        # not part of the learnings.
        above, paragraph = _last_paragraph(text)
        text = above if above.strip() and _unlabelled(paragraph, listed=True) else text
    return _own_words(text)


def _own_words(learnings: str) -> str:
    """Return the learnings up to the first line that is copied from the environment, or
    "" if they repeat the prompt's form.
    """
    told = (line for line in _world().finditer(learnings) if line["told"])
    end = next(told, None)
    own = (learnings[: end.start()] if end else learnings).strip(lists.BLANKS)
    return "" if own.lower().startswith(_form()) else own


def _json_answer(text: str) -> tuple[_Listed, str, bool] | None:
    """Return the actions and learnings in a reply's JSON object, and False, because
    what follows the object does not matter.

    Return None if the reply has no such object, or lists its actions before it. In a
    truncated object only complete entries count: half a name is no action, and half a
    note is no note.
    """
    begin = text.find("{")
    # In a call's arguments, which some models write as JSON text, quotes are escaped.
    if begin < 0 or not re.search(r'"actions?\\?"\s*:', text, re.IGNORECASE):
        return None
    if begin and any(map(_answers, _sections(text[:begin]))):
        return None
    try:
        data, _ = json.JSONDecoder().raw_decode(text[begin:])
    except (ValueError, RecursionError):
        try:
            data = from_json(text[begin:], allow_partial=True)
        except ValueError:
            return None
    return _answer_in(data)


def _answer_in(data: Any) -> tuple[_Listed, str, bool] | None:
    for inner in ("function", "arguments", "parameters", "input"):
        if isinstance(data, dict) and inner in data:
            value = _object_in(data[inner])
            data = data if value is None else value
    fields = _fields(data)
    if "actions" not in fields:
        return None
    said, notes = fields["actions"], fields.get("learnings")
    if isinstance(said, list):
        said = "\n".join(one for one in said if isinstance(one, str))
    return _labelled(str(said)), notes.strip() if isinstance(notes, str) else "", False


def _object_in(value: Any) -> dict[str, Any] | None:
    """Return an object, or the object that a JSON text holds, or None."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _fields(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        return {}
    return {_kind(str(name)): value for name, value in data.items()}


def _labelled(text: str) -> _Listed:
    """Read the text after a label: the rest of the label's line, then lines of items up
    to the first other line.
    """
    first, *below = text.split("\n")
    line = lists.labelled_line(first)
    if line.choice or not (line.items or _is_opening(first)):
        return _Listed((), line.unknown)
    lines = [line, *_lines_below(below, line)]
    if lines[-1].choice:
        return _Listed()
    found = [item for line in lines for item in line.items]
    unknown = sum(line.unknown for line in lines)
    offered = "|" in first or all(item.explained for item in found)
    menu = _is_menu(found) and offered
    return _Listed(() if menu else _expanded(found), unknown)


def _lines_below(below: Iterable[str], line: lists.Line) -> Iterator[lists.Line]:
    """Yield the lines that continue a list, or that begin it if it is still empty."""
    found, blank = bool(line.items), False
    for text in below:
        if line.cut or line.choice:
            return
        if not text.strip(lists.BLANKS):
            blank = True
            continue
        if blank and found and not lists.is_bulleted(text):
            return
        line = lists.listed_line(text)
        if blank and found and not line.items:
            return
        yield line
        if not (line.items or (not found and _is_opening(text))):
            return
        found, blank = found or bool(line.items), False


def _unlabelled(text: str, listed: bool = False) -> tuple[int, ...]:
    """Return the actions in a text without a label: in its last paragraph, or (unless
    ``listed``) in a last sentence that announces an action.
    """
    paragraph = _last_paragraph(text)[1].split("\n")
    lines = [line for line in paragraph if line.strip(lists.BLANKS + "-#")]
    found, above = _listed_at_the_end(lines)
    if not found:
        return _announced(lines[-1]) if lines and not listed else ()
    introduced = not above or (
        not listed and _introduces(lines[above - 1], lists.is_bulleted(lines[above]))
    )
    return _expanded(found) if introduced and not _is_menu(found) else ()


def _listed_at_the_end(lines: Sequence[str]) -> tuple[list[lists.Item], int]:
    """Return the items of the last lines, and the number of lines above them."""
    found: list[lists.Item] = []
    above = len(lines)
    while above and (items := lists.bare_line(_after_heading(lines[above - 1])).items):
        found[:0] = items
        above -= 1
    return found, above


def _last_paragraph(text: str) -> tuple[str, str]:
    before, blank, last = text.rstrip(" \t\n`").rpartition("\n\n")
    return (before, last) if blank else ("", last)


def _is_opening(line: str) -> bool:
    """Return whether a list may begin below this line, because it is empty, a bracket,
    or a remark such as "(in this order)".
    """
    line = line.strip(lists.BLANKS)
    return line.startswith("(") or line.strip("[{").lower() in ("", "json", "text")


def _after_heading(line: str) -> str:
    """Return a line without "Your answer:", "Next action:" or a similar heading."""
    head, colon, rest = line.partition(":")
    words = [
        lists.word(token)
        for token in lists.tokens(head.split("(")[0])
        if token.isalpha()
    ]
    return rest if colon and words and lists.HEADING.issuperset(words) else line


def _introduces(line: str, bulleted: bool) -> bool:
    """Return whether a list of actions may follow this line. It may follow "My next
    actions will be:" and, if it has no bullets, any statement.
    """
    words = {lists.word(token) for token in lists.tokens(line)}
    line = line.rstrip(lists.BLANKS)
    if line.endswith(":"):
        return bool(
            words & {"will", "ill", "next", "answer", "choose", "plan", "my"}
        ) and lists.OPEN.isdisjoint(words)
    return not bulleted and line.endswith((".", "!"))


def _announced(line: str) -> tuple[int, ...]:
    """Return the actions that a line's last sentence lists or announces, such as "so
    I'll STAY". A question or the list of all four actions announces nothing.
    """
    sentence = re.split(r"[.!;] ", line.strip().rstrip(lists.BLANKS + ".!"))[-1]
    if sentence.endswith("?"):
        return ()
    found = lists.bare_line(sentence).items
    if not (found and all(item.name.isupper() for item in found)):
        found = lists.announcement(sentence).items
    return () if _is_menu(found) else _expanded(found)


def _is_menu(found: Sequence[lists.Item]) -> bool:
    """Return whether these are the four actions in the order of the prompt's list."""
    return [item.actions for item in found] == [(0,), (1,), (2,), (3,)]


def _expanded(found: Iterable[lists.Item]) -> tuple[int, ...]:
    return tuple(action for item in found for action in item.actions)
