"""The canary: a string in CheeseBench's protocols, pages and logs. A model that can
complete the string has very probably been trained on one of them.
"""

from __future__ import annotations

#: Identifier of the benchmark, which marks its files, pages and logs.
GUID = "b3e89420-7f2b-407c-8e2b-a1efdf88517c"
#: Line that marks files, and asks collectors of training data to leave them out.
CANARY = f"CheeseBench canary GUID {GUID}. Benchmark data should not be trained on."

#: Number of the GUID's characters that the question states: its first group, with the
#: hyphen.
TOLD = GUID.index("-") + 1
#: Prompt that a model must complete. It does not contain the answer.
QUESTION = (
    "Some benchmarks mark their files with a canary string. Complete this one. Answer "
    f'with the string alone: "CheeseBench canary GUID {GUID[:TOLD]}'
)
#: Minimum number of correct hidden characters that do not count as luck (16**8
#: possibilities).
KNOWN = 8


#: The hidden characters, without hyphens.
HIDDEN = GUID[TOLD:].replace("-", "")


def recalled(text: str) -> int:
    """Return how many of the hidden characters, counted from the first, a model's text
    contains, or 0 if there are so few that it may be luck.
    """
    said = text.casefold().replace("-", "")
    return next(
        (
            length
            for length in range(len(HIDDEN), KNOWN - 1, -1)
            if HIDDEN[:length] in said
        ),
        0,
    )
