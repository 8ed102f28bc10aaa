"""What every code of a finding means; the sentences themselves stand where the findings are made.

A test holds this list against the code: every code that is used is here, with its severity, and no other.
"""

from __future__ import annotations

from collections.abc import Mapping

from cheesebench.protocol.diagnostics import Severity

#: Groups of codes: the lowest, the highest, and what they are about.
GROUPS = (
    (101, 119, "The file"),
    (120, 129, "Keys and values"),
    (130, 139, "Expressions"),
    (140, 149, "The arena"),
    (150, 199, "Parents; and too many errors to go on"),
    (200, 229, "Names and rules"),
    (230, 249, "Dialogues"),
    (300, 399, "Warnings: probably mistakes"),
    (400, 499, "Notes: worth knowing"),
)

_ERRORS = {
    101: "The file cannot be read.",
    102: "The file is not UTF-8, or holds a character that is not text.",
    103: "The file or text is too large.",
    104: "It is not valid YAML.",
    105: "A key stands twice in a mapping.",
    106: "A YAML tag: values have no types of their own here.",
    107: "A YAML anchor or alias: values are written where they stand.",
    108: "Values are nested too deep.",
    109: "The file holds more than one YAML document.",
    110: "The file is no mapping of keys.",
    111: "A number is out of range.",
    120: "The version of the language is not known; a newer CheeseBench may know it.",
    121: "There is no such key here.",
    122: "A key is missing.",
    123: "A value does not fit its key.",
    124: "This cannot be a key here.",
    130: "An expression cannot be read.",
    131: "An expression uses a name that is not known.",
    132: "`it` is used where nothing has fired.",
    133: "Kinds do not fit: a condition, a number or a name is needed, or both sides can never be equal.",
    134: "There is no such function, or it takes something else.",
    140: "The arena has none, or several, of map and generators.",
    141: "A generator cannot draw an arena with these options.",
    142: "A legend beside a generator: it belongs to a map.",
    143: "The map is empty, too large, one line, or has no floor.",
    144: "A character of the map has no legend entry.",
    145: "A name is both floor (a zone or door) and a solid.",
    146: "A group is empty, or has the name of a zone.",
    147: "A landmark stands on the floor, too far away, in no compass direction, or where another one stands.",
    150: "`extends` names no protocol that is known, or leads in a circle.",
    199: "There are very many errors; the rest is not listed.",
    201: "A name is not known: of a zone, state, variable, group, condition, scene, ...",
    202: "A name is taken already, or a word of the language.",
    203: "A set or column mixes numbers and names, or columns differ in length.",
    204: "A variable holds no zone where one is needed.",
    205: "Something solid is entered or stood on, or floor is pressed.",
    206: "A draw contradicts itself: `pick`, `copies`, `max_run`, `order`.",
    207: "A heading is none, or none of this arena.",
    208: "An initial state gives a reward on entry, which a reset cannot return.",
    209: "`trial: start` names no state, or may leave none.",
    210: "A variable is shown that can hold no glyph.",
    211: "Something is closed that is no door.",
    212: "A variable is set that is not declared, or cannot be set.",
    213: "A rule has no trigger, or several.",
    214: "A rule has both `go` and `end`.",
    215: "A watch rule has an exit or a clock.",
    216: "`until` can never hold: `count` is larger than `of`.",
    217: "A reference's rate is outside 0 to 1, or its interval runs backwards.",
    218: "A number is impossible: a reward that divides by 0 or is infinite, a probability above 1, ...",
    219: "An end is called `timeout`, which is the name of trials that the limit cuts off.",
    220: "The reference is about `success`, which is not declared.",
    221: "A class of a measure comes after one that always holds.",
    229: "A dialogue is asked for what only an arena has: a picture, a walk.",
    230: "The graph has no such node.",
    231: "A node has no name in a vocabulary.",
    232: "A name of a node stands twice, or cannot be read in an answer.",
    233: "An edit removes an edge that is not there.",
    234: "An edit adds an edge that is there.",
    235: "No way leads from the start to a reward, or to the goal.",
    236: "An edit changes nothing: what was best before it is best after it.",
    237: "Chances of leaving a node do not add up to 1.",
    238: "Conditions contradict themselves, or come before themselves.",
    239: "No two nodes are that far apart.",
    240: "A sentence has braces with nothing to put for them.",
    241: "An edge stands twice, or leads from a node to itself; or there are too many nodes.",
    242: "Too many answers would be right.",
}
_WARNINGS = {
    301: "A legend entry whose character is not on the map.",
    302: "A state that nothing leads to.",
    303: "A rule that never fires: another takes every case, or its clock outlasts the trial.",
    304: "A frozen state that nothing ends: a trap.",
    305: "No rule gives a positive reward.",
    306: "A zone that cannot be walked to, even with all doors open.",
    307: "No end can be reached, or not within the limit.",
    308: "A variable, draw, symbol or zone that nothing uses.",
    309: "An outcome that no trial ends with.",
    310: "A glyph that looks like something else in a view.",
    311: "A rewarded place can be told from the picture: the goal is visible.",
    312: "`success` is a number, not a condition.",
    313: "`finish` reads a clock, but is tested only when a rule fires.",
    314: "`say` shows the name of a variable, not what it holds.",
    315: "`until` needs more trials than there are.",
    316: "`null` has nothing to delete.",
    317: "`estimand: {last: K}` asks for more trials than a life has.",
    318: "The id is that of a protocol that comes with CheeseBench or a plugin.",
}
_NOTES = {
    401: "Two triggers can fall on the same step; which one wins.",
    402: "The animals' numbers are not on `success`: there will be no verdict.",
}

#: Code -> its severity and what it means, one sentence, in the order of the codes.
MEANINGS: Mapping[int, tuple[Severity, str]] = {
    **{code: ("error", meaning) for code, meaning in _ERRORS.items()},
    **{code: ("warning", meaning) for code, meaning in _WARNINGS.items()},
    **{code: ("info", meaning) for code, meaning in _NOTES.items()},
}
