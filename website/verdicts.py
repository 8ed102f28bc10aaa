"""Documents verdicts. Names and meanings come from the types, thresholds from the code,
and examples from the real rule.
"""

from __future__ import annotations

import functools

import griffe

from cheesebench.amounts import percent, points
from cheesebench.experiment.cells import DESIGNS
from cheesebench.protocol.documents import ProtocolDocument
from cheesebench.records import CellPlan, ReferenceValue, TrialRecord
from cheesebench.statistics import CellResult, judge
from cheesebench.statistics.summary import TAXONOMY
from website.markup import code, escape, sections, sentence, table

#: Constants that determine a verdict, by module and name.
_THRESHOLDS = (
    (
        "statistics.betting",
        ("STAKES", "LIMIT", "LEAST_SUBJECTS", "STALE_FROM", "DOUBLED"),
    ),
    ("records", ("GOAL", "MOST_SUBJECTS", "FIRST_SETS")),
    ("statistics.question", ("PASS_TAIL", "FAIL_TAIL")),
    (
        "statistics.comparison",
        ("ALPHA", "LOSS", "LOSS_IN_MARGINS"),
    ),
    ("statistics.judgement", ("CONTRADICTING_ICC", "CONTRADICTING_P")),
    ("planning.simulation", ("ICC_FLOOR",)),
    ("statistics.sample", ("CURVE_PARTS",)),
)
#: Shares of right trials, and numbers of subjects, in the examples.
_SHARES = (1.0, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5)
_SUBJECTS = (1, 10, 30)
_TRIALS = 20
_REFERENCE = 0.8


@functools.cache
def _module(name: str) -> griffe.Module:
    loaded = griffe.load(
        f"cheesebench.{name}", extensions=griffe.load_extensions("griffe_sphinx")
    )
    assert isinstance(loaded, griffe.Module)
    return loaded


def _described(module: str, owner: str) -> list[tuple[str, str]]:
    """Return the attributes of a class with their docstrings."""
    members = _module(module)[owner].members.values()
    return [
        (one.name, one.docstring.value)
        for one in members
        if one.is_attribute and one.docstring
    ]


def verdicts() -> str:
    """Return the verdicts and their meanings."""
    return table(
        ["verdict", "meaning"],
        [
            [code(name), sentence(text)]
            for name, text in _described("statistics.summary", "Verdict")
        ],
    )


def flags() -> str:
    """Return the remarks beside a verdict, with their meanings."""
    return table(
        ["flag", "meaning"],
        [
            [code(name), sentence(text)]
            for name, text in _described("statistics.summary", "Flags")
        ],
    )


def outcomes() -> str:
    """Return the possible outcomes of a trial, with their meanings."""
    about = _module("statistics.summary")["TAXONOMY"].docstring.value
    return sections([f"{', '.join(map(code, TAXONOMY))}.", sentence(about)])


def thresholds() -> str:
    """Return the numbers on which a verdict depends."""
    rows = []
    for module, names in _THRESHOLDS:
        for name in names:
            constant = _module(module)[name]
            rows.append(
                [code(name), code(constant.value), sentence(constant.docstring.value)]
            )
    margin = ProtocolDocument.model_fields["margin"]
    rows.append(
        [
            code("margin"),
            code(margin.default),
            sentence(f"{margin.description} A protocol may set another."),
        ]
    )
    return table(["name", "value", "meaning"], rows)


def examples() -> str:
    """Return the verdicts on made-up runs, by share of right trials and number of
    subjects.
    """
    shown = []
    for share in _SHARES:
        cells = [_judged(share, subjects) for subjects in _SUBJECTS]
        shown.append([percent(share), *(_in_short(cell) for cell in cells)])
    headers = [
        "right",
        *(
            f"{number} subject{'s' * (number > 1)} x {_TRIALS} trials"
            for number in _SUBJECTS
        ),
    ]
    sentences = [
        f"* {percent(share)} right, {subjects} subjects: **{cell.verdict}**. {escape(cell.reason)}"
        for share, subjects in ((0.9, 10), (0.75, 10), (0.5, 10))
        for cell in [_judged(share, subjects)]
    ]
    return sections([table(headers, shown), "In words:", "\n".join(sentences)])


def _in_short(cell: CellResult) -> str:
    assert cell.difference_low is not None
    assert cell.difference_high is not None
    return f"**{cell.verdict}**<br>{points(cell.difference_low)} to {points(cell.difference_high)}"


@functools.cache
def _judged(share: float, subjects: int) -> CellResult:
    """Return the verdict on subjects that differ a little, and that have this share of
    right trials together.
    """
    plan = CellPlan(
        model="a model",
        protocol="a_maze",
        view="ascii_2d",
        title="",
        dimension="",
        species="the animals",
        sha256="",
        design=next(iter(DESIGNS)),
        subjects=subjects,
        trials=_TRIALS,
        memory="life",
        reference=ReferenceValue(value=_REFERENCE),
    )
    records = []
    for subject in range(subjects):
        # Subjects are alternately one trial better and one trial worse. If their number
        # is odd, the last one is neither.
        odd = 0 if subject == subjects - 1 and subjects % 2 else 1 - 2 * (subject % 2)
        right = round(share * _TRIALS) + (odd if 0 < share < 1 else 0)
        for trial in range(_TRIALS):
            # The actions differ between subjects, because subjects with equal actions
            # would be copies.
            actions = "F" * (subject + 1)
            success = trial < right
            record = TrialRecord(
                model=plan.model,
                protocol=plan.protocol,
                view=plan.view,
                subject=subject,
                trial=trial,
                session=1,
                outcome="right" if success else "wrong",
                success=success,
                actions=actions,
            )
            records.append(record)
    return judge(plan, records)
