"""Finds the end of a model's turn in its reply. All functions are pure, and take time
proportional to the reply's length.

A model that does not stop at its end-of-turn token goes on: it invents the other side's
words, and its own next answer. That text is not read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BAR = r"[|｜]"
_OTHERS = "user|human|system|tool|ipython|environment|observation|developer|prompter"
_OWN = "assistant|model|ai|bot|chatbot|gpt"
_ROLE_TOKEN = (
    rf"(?:<{_BAR}(?:im_start|start_header_id|start_of_role|turn){_BAR}?>|<start_of_turn>"
    rf"|<{_BAR}START_OF_TURN_TOKEN{_BAR}>)"
)
#: Matches a token or heading that opens the model's own turn. At the beginning of a
#: reply it is skipped.
_OPENS_OWN = re.compile(
    rf"\s*(?:<s>|<bos>|<{_BAR}begin[_▁]of[_▁](?:text|sentence){_BAR}>"
    rf"|{_ROLE_TOKEN}\s*(?:<{_BAR}CHATBOT_TOKEN{_BAR}>|(?:{_OWN})\b)"
    rf"(?:<{_BAR}(?:end_header_id|end_of_role){_BAR}>)?"
    rf"|<{_BAR}(?:im_)?(?:{_OWN}){_BAR}>|\[\|assistant\|\]"
    rf"|(?:{_OWN})[ \t]*(?:\n|\Z)|(?:#{{1,4}}[ \t]*)?(?:assistant|response|ai)[ \t]*:)",
    re.IGNORECASE,
)
#: Matches a token that ends a turn, or opens another one. Harmony and Solar end a
#: *message* with ``<|end|>``, and the turn goes on if the next message is also from the
#: assistant.
_ENDS = re.compile(
    rf"<{_BAR}(?:im_end|eot_id|eom_id|eot|eos|eom|return|call|endofprompt"
    rf"|end[_▁]?of[_▁]?(?:turn|text|sentence|utterance|message|document)"
    rf"|END_OF_TURN_TOKEN|(?:im_)?(?:{_OTHERS}|{_OWN})|USER_TOKEN|SYSTEM_TOKEN"
    rf"|CHATBOT_TOKEN|begin[_▁]of[_▁](?:text|sentence)){_BAR}>"
    rf"|<{_BAR}end{_BAR}>(?!\s*<{_BAR}(?:start|begin){_BAR}>\s*assistant)"
    rf"|</?s>|<(?:eos|bos|eot|eoa|eod|end_of_turn|end_of_utterance|turn\|)>"
    rf"|{_ROLE_TOKEN}|</?<?SYS>>|\[/?INST\]|\[/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS)\]"
    rf"|\[\|(?:endofturn|user|system|assistant)\|\]|<seed:eos>"
    # A server that removes such tokens leaves only the role.
    rf"|(?<=[^\s\W])(?:user|assistant)(?=\n\n)",
    re.IGNORECASE,
)
#: Matches a line that opens the other side's turn with its role.
_OTHER_SIDE = re.compile(
    r"^[ \t*_>]*(?:#{1,4}[ \t]*(?:instructions?|input|user|human|system|question|exercise)\b.*"
    r"|(?:user|human|system)(?:[ \t*_]*[:：]|[ \t]*$)|(?:用户|人类|问题)[ \t]*[:：]).*$",
    re.IGNORECASE | re.MULTILINE,
)


class Turn(NamedTuple):
    """The text of a model's turn. ``ran_on`` says whether the reply went on after the
    end of the turn.
    """

    text: str
    ran_on: bool


def until_token(text: str) -> Turn:
    """Cut a reply at the first token that ends a turn. What opens the model's own turn
    is removed from its beginning.
    """
    start = 0
    while opening := _OPENS_OWN.match(text, start):
        start = opening.end()
    return _cut(text, start, _ENDS)


def until_role(text: str) -> Turn:
    """Cut a reply (without its reasoning) at the first line that opens the other side's
    turn.
    """
    return _cut(text, 0, _OTHER_SIDE)


def _cut(text: str, start: int, border: re.Pattern[str]) -> Turn:
    end = border.search(text, start)
    if end is None:
        return Turn(text[start:], False)
    return Turn(
        text[start : end.start()], bool(border.sub("", text[end.start() :]).strip())
    )
