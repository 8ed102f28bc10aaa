"""Findings for a protocol's author: one line each, with position, sentence and
remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from cheesebench.errors import CheeseBenchError, PluginError
from cheesebench.redaction import quoted

#: Maximum number of errors reported for one protocol, and also of warnings and notes
#: together. More of them usually repeat one mistake.
MAX_FINDINGS = 100

#: Code of an unknown key. It is reported first, because it often causes other errors.
UNKNOWN_KEY = 121

#: Maximum number of names listed in one remedy.
MAX_LISTED = 30

#: Matches a word that is cut because it has more than 255 characters, which is the most
#: that a file name can have.
_LONG_WORD = re.compile(r"(\S{80})\S{176,}")

Severity = Literal["error", "warning", "info"]

#: First letter of a code by severity, as in ``E121``.
LETTERS = {"error": "E", "warning": "W", "info": "I"}


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file; ``line`` and ``column`` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding."""

    position: Position
    severity: Severity
    code: int
    sentence: str
    remedy: str = ""

    @property
    def label(self) -> str:
        """The code with the letter of the severity, such as ``E121``."""
        return f"{LETTERS[self.severity]}{self.code}"

    def __str__(self) -> str:
        text = f"{self.position}: {self.severity} {self.label}: {self.sentence}"
        if self.remedy:
            text = f"{text} {self.remedy}"
        text = _LONG_WORD.sub(lambda found: f"{found[1]}...", text)
        # The text may quote the file; escape control characters before they reach a
        # terminal.
        return "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
        )


class EnoughFindingsError(CheeseBenchError):
    """Ends a pass that has too many findings. It is no error in the family's code."""


class Diagnostics:
    """Collects the findings of one pass over one protocol. Raises EnoughFindingsError
    beyond MAX_FINDINGS.
    """

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}

    def error(
        self, code: int, position: Position, sentence: str, remedy: str = ""
    ) -> None:
        """Add a finding that prevents the protocol from being compiled."""
        self._add(Diagnostic(position, "error", code, sentence, remedy))

    def warning(
        self, code: int, position: Position, sentence: str, remedy: str = ""
    ) -> None:
        """Add a probable mistake."""
        self._add(Diagnostic(position, "warning", code, sentence, remedy))

    def info(
        self, code: int, position: Position, sentence: str, remedy: str = ""
    ) -> None:
        """Add a note."""
        self._add(Diagnostic(position, "info", code, sentence, remedy))

    def _add(self, diagnostic: Diagnostic) -> None:
        if not isinstance(diagnostic.position, Position):
            # A plugin's family may have left the position out.
            raise PluginError(
                f"diagnostics.{diagnostic.severity}: the position is {quoted(repr(diagnostic.position), 60)}. "
                "Give the code, the position of a node, a sentence and a remedy."
            )
        self._found[diagnostic] = None
        kind = [
            d
            for d in self._found
            if (d.severity == "error") == (diagnostic.severity == "error")
        ]
        if len(kind) > MAX_FINDINGS:
            del self._found[diagnostic]
            if diagnostic.severity == "error":
                sentence = f"There are more than {MAX_FINDINGS} errors."
                self._found[
                    Diagnostic(
                        diagnostic.position,
                        "error",
                        199,
                        sentence,
                        "Fix the ones above first.",
                    )
                ] = None
            raise EnoughFindingsError

    @staticmethod
    def labels() -> list[str]:
        """All codes, each with the letter of its severity."""
        return [
            f"{LETTERS[severity]}{code}" for code, (severity, _) in MEANINGS.items()
        ]

    def drop(self, label: str) -> bool:
        """Remove the warnings and notes with this code. Return whether there were
        any.
        """
        dropped = [d for d in self._found if d.label == label and d.severity != "error"]
        for one in dropped:
            del self._found[one]
        return bool(dropped)

    @property
    def found(self) -> list[Diagnostic]:
        """All findings without duplicates, in the order in which they were found."""
        return list(self._found)

    @property
    def errors(self) -> list[Diagnostic]:
        """The findings that are errors."""
        return [d for d in self.found if d.severity == "error"]


def listed(names: Iterable[str]) -> str:
    """Return the first MAX_LISTED names as text for a remedy."""
    names = list(names)
    more = len(names) - MAX_LISTED
    return (
        ", ".join(names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
        or "none"
    )


def in_file_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings sorted by position. Unknown keys come first, because they may
    cause other errors.
    """
    return sorted(diagnostics, key=lambda d: (d.code != UNKNOWN_KEY, d.position))


#: Groups of codes: lowest, highest, and subject.
GROUPS = (
    (101, 119, "The file"),
    (120, 129, "Keys and values"),
    (130, 139, "Expressions"),
    (140, 149, "The arena"),
    (150, 199, "Parents, and too many errors to continue"),
    (200, 229, "Names and rules"),
    (230, 249, "Dialogues"),
    (300, 399, "Warnings: probably mistakes"),
    (400, 499, "Notes: worth knowing"),
)

_ERRORS = {
    101: "The file cannot be read.",
    102: "The file is not UTF-8, or holds a character that is not text.",
    103: "The file or text is too large.",
    104: "The file is not valid YAML.",
    105: "A key of a mapping appears twice, or is not a plain word.",
    106: "A YAML tag; tags are not allowed.",
    107: "A YAML anchor or alias; repeat the value instead.",
    108: "Values are nested too deep.",
    109: "The file holds more than one YAML document.",
    110: "The file is not a mapping of keys.",
    111: "A number is out of range.",
    112: "YAML reads rows of a map as comments, because its first row begins with blanks.",
    113: "A number has a decimal comma, which YAML reads as the end of a key or an entry.",
    120: "The version of the language is unknown; a newer CheeseBench may support it.",
    121: "There is no such key here.",
    122: "A key is missing.",
    123: "A value does not fit its key.",
    124: "A key is of the wrong kind (a name, a node or one character is needed).",
    130: "An expression cannot be read.",
    131: "An expression uses an unknown name.",
    132: "`it` is used where no rule has fired.",
    133: "A condition, a number, a name or a set is needed, but this is something else, or two sides can never be equal.",
    134: "An unknown function, or a wrong argument.",
    140: "The arena has no map or generator, or more than one.",
    141: "A generator cannot draw an arena with these options.",
    142: "A generator has a legend, which only a map can have.",
    143: "The map is empty, too large, only one line, or without floor.",
    144: "A character of the map has no legend entry.",
    145: "A name is both floor (a zone or door) and a solid.",
    146: "A group is empty, or has the name of a zone or a solid.",
    147: "A landmark is on floor or a solid, too far away, not in a compass direction, or in the place of another one.",
    150: "`extends` names no known protocol, or the chain of parents is circular or too long.",
    199: "There are too many errors; the rest are not listed.",
    201: "An unknown name (of a zone, state, variable, group, condition, scene, ...).",
    202: "A name is already taken, or is a reserved word.",
    203: "A set or column mixes numbers and names, or columns differ in length.",
    204: "A variable does not hold a zone where one is needed.",
    205: "`enter` or `place` names something solid, or `press` names floor.",
    206: "A draw contradicts itself, or makes too many rows.",
    207: "This is not a heading, or the arena does not have this heading.",
    208: "An initial state gives a reward on entry, but only steps give rewards.",
    209: "`trial: start` names no state, or may select none.",
    210: "A variable is shown that can hold something other than a glyph.",
    211: "`close` or `open` names something that is not a door.",
    212: "A variable is set that is not declared, or cannot be set, or `add` or `remove` changes one that is not a set.",
    213: "A rule has no trigger, or more than one.",
    214: "A rule (or an entry of `finish`) has both `go` and `end`.",
    215: "A watch rule has `go`, `end` or `after`.",
    216: "A condition can never hold: an `until` whose `count` is larger than `of`, or a `where` in the judged blocks.",
    217: "A reference's rate is outside 0 to 1, its spread is larger than is possible, or its interval is reversed.",
    218: "A number is impossible: a reward that divides by 0 or is infinite, a probability above 1, ...",
    219: "An end is called `timeout`, which is reserved for trials cut off by the limit.",
    220: "A reference is on `success`, which is not declared, or a construct has no verdict that a lesion could abolish.",
    221: "A class of a measure comes after one that always holds.",
    222: "A lesion is unknown, removes nothing, or would hide a variable.",
    223: "A lesion appears twice in a construct.",
    224: "The schedule has more trials than a subject can have.",
    225: "A CSV file (of animals, or of a draw) cannot be read or is not in the protocol's folder, or a row is missing or wrong.",
    226: "A reference contradicts itself, gives no value, or asks for a verdict without everything that a verdict needs.",
    227: "A brace in `say` is neither doubled nor one of a pair, or there is no name in braces.",
    228: "`by` of a measure names the measure itself, or a name twice.",
    229: "A dialogue is asked for something that only an arena has, such as a picture.",
    230: "The graph has no such node.",
    231: "A node has no name in a vocabulary.",
    232: "Two nodes have the same name, or a name cannot be read in an answer.",
    233: "An edit removes an edge that does not exist.",
    234: "An edit adds an edge that already exists.",
    235: "There is no path from the start to a reward, or to the goal, or the start is the goal.",
    236: "An answer is right both before and after an edit.",
    237: "The probabilities of leaving a node do not add up to 1.",
    238: "A condition contradicts itself, lacks `pairs`, or comes after itself or after too many others.",
    239: "No two nodes are that far apart.",
    240: "A sentence has braces that are no placeholder, or a placeholder that nothing fills.",
    241: "An edge appears twice or leads from a node to itself, or there are too many nodes.",
    242: "Too many answers would be right.",
}
_WARNINGS = {
    301: "A legend entry whose character is not on the map.",
    302: "A state that no rule leads to.",
    303: "A rule or entry of `finish` that never fires: an earlier one covers every case, or its clock is too long.",
    304: "A frozen state that lasts until the limit.",
    305: "Nothing gives a positive reward.",
    306: "A zone that cannot be reached, even with all doors open.",
    307: "No end of the trial can be reached, or none within the limit.",
    308: "A variable, draw, symbol, zone or solid that nothing uses.",
    310: "A glyph that looks like something else in a view.",
    311: "A rewarded place looks like no other square: the goal is visible.",
    312: "`success` is a number, not a condition.",
    313: "`finish` reads a clock, but is tested only when a rule fires.",
    314: "`say` shows the name of a variable, not its value: braces are missing.",
    315: "`until`, or `trials` of `repeat`, can never end a block or its repetitions early.",
    316: "`null` has nothing to delete.",
    317: "`estimand: {last: K}` asks for more trials than a subject has that count.",
    318: "CheeseBench, a plugin or the parent already has a protocol with this name.",
    319: "`split` has nothing to split, because there is no `success`.",
    320: "`open` names a door that the state does not close.",
    321: "`add` or `remove` is given a group, but takes the group's name instead of its members.",
    325: "The animals' value covers other sessions than the trials that count, or differs from the animals' curve there.",
    326: "The animals lack a session whose trials count, or their curve is longer than the schedule.",
    327: "`trial` or `session` is compared with a number that the schedule never reaches.",
    328: "A row of a map does not line up: the first begins with fewer blanks than all others, or one is a little shorter.",
    329: "A subject with a lesion could pass, because `at_most` is above the animals' value less the margin: not validated.",
    330: "A construct lacks the lesion that defines its kind, such as an amnesia for `memory`: not validated.",
    331: "A subject that sees no landmarks could pass: a rule allows too many errors for a maze that is turned.",
    332: "The animals do not match what is judged: drop-outs, other sessions, groups, sums, slips, two spellings of a name.",
    333: "How animals differ is unknown (one animal, equal ones, or `n_animals` without `sd`): their value is used as if exact.",
    334: "The animals' mean is too uncertain for the margin: no number of subjects lets an equally good model PASS.",
    335: "The animals' values seem to be in percent where the measure is a share, or the other way round.",
    336: "`estimand: {last: K}` counts only a part of a block, and the audit of a construct judges whole blocks.",
    337: "A test expects `success`, but the protocol (an edition that deletes it, say) has none.",
    338: "A subject that does nothing has the best value of the measure that the verdict is about, and passes.",
    339: "The variable that a verdict is about begins outside the range of the verdict.",
    340: "A drawn name is compared with a name that is spelt a little differently: they are never equal.",
    341: "The animals' curve goes the other way than the verdict's `better`.",
    342: "A wall of the map has a hole, beside which there is nothing: a subject stops there as at an edge.",
    343: "A code is `acknowledged`, but there is no such warning or note (any more).",
}
_NOTES = {
    401: "Two rules can fire on the same step; the first one wins.",
    402: "No reference is on `success`, or on a measure with `better`, so there will be no verdict.",
    405: "A row can be predicted from the subject's number: use `balanced` instead of `by_subject`.",
    406: "A second reference on `success`: reports name it only among the sources.",
    407: "The animals' curve by session is not known from session 1, so only their mean is drawn.",
    408: "An edition changes `trial` and `construct`, and inherits the animals of its parent, which had another task.",
}

#: Severity and meaning of each code, in order of the codes.
MEANINGS: Mapping[int, tuple[Severity, str]] = {
    **{code: ("error", meaning) for code, meaning in _ERRORS.items()},
    **{code: ("warning", meaning) for code, meaning in _WARNINGS.items()},
    **{code: ("info", meaning) for code, meaning in _NOTES.items()},
}
