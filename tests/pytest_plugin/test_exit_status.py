"""Why a session ends with its exit status, and the remedy, in every combination."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cheesebench.pytest_session.exit_status import (
    Broken,
    Findings,
    badge,
    filled,
    how_to_act,
    interrupted,
    reason,
    remedy,
)
from cheesebench.records import CellPlan, ReferenceValue, Variant
from cheesebench.statistics import CellResult, Verdict
from cheesebench.statistics.comparison import (
    CellCounts,
    CountedRun,
    RunComparison,
    compare_runs,
)
from cheesebench.statistics.sample import SubjectScore
from cheesebench.statistics.wording import NEVER_ACTED
from tests.stored import check_stored


def cell(protocol: str, verdict: Verdict, why: str = "", **changes: Any) -> CellResult:
    plan = CellPlan(
        model=changes.pop("model", "m"), protocol=protocol, view="v", title="", dimension="", species="", sha256="0",
        design="cohort", subjects=10, trials=20, memory="life", reference=ReferenceValue(value=0.5),
        variant=Variant(control=changes.pop("control", "")),
    )  # fmt: skip
    return CellResult(plan=plan, verdict=verdict, reason=why, n_text="", **changes)


def counts(passed: list[int], protocol: str = "maze", **changes: Any) -> CellCounts:
    missing = changes.pop("missing", 0)
    subjects = {
        number: SubjectScore(count, 20 - missing, missing, f"{number}-{count}")
        for number, count in enumerate(passed)
    }
    named = {
        "model": "m", "view": "v", "variant": "", "title": "Maze", "sha256": "0", "design": "cohort", "trials": 20,
        "estimand": "all", "agent": "llm",
    }  # fmt: skip
    return CellCounts(protocol=protocol, subjects=subjects, **(named | changes))  # type: ignore[arg-type]


def compared(
    *cells: tuple[list[int], list[int]], only: str = "", **settings: Any
) -> RunComparison:
    first = [counts(a, f"maze{n}", settings=settings) for n, (a, _) in enumerate(cells)]
    second = [counts(b, f"maze{n}") for n, (_, b) in enumerate(cells)]
    if only:
        second.append(counts([10] * 20, only))
    return compare_runs(
        CountedRun(name="this run", seed=0, cells=tuple(first)),
        CountedRun(name="main", seed=0, cells=tuple(second)),
    )


EVEN = [10] * 20
SAME, WORSE = compared((EVEN, EVEN)), compared((EVEN, EVEN), ([2] * 20, EVEN))
OPEN = compared(([4, 16] * 3, EVEN[:6]))
OTHER = compared((EVEN, EVEN), only="away", history="1", prompt="cot")
SILENT = replace(
    WORSE,
    models=tuple(
        replace(model, cells=tuple(replace(one, silent=((1204, 2408), (3, 2500))) for one in model.cells))
        for model in WORSE.models
    ),
)  # fmt: skip
PASS, FAIL = cell("a", Verdict.PASS), cell("b", Verdict.FAIL)
UNDECIDED = cell("c", Verdict.INCONCLUSIVE)
LOST = cell(
    "d", Verdict.ERROR, missing=3, causes=("stopped in trial 3: the line is dead.", "no power", "no power")
)  # fmt: skip
REFUSED = replace(LOST, causes=("content filter: no",))
ANEW = replace(LOST, causes=(), outcomes={"run anew": 1})
MUTE = cell("e", Verdict.ERROR, f"{NEVER_ACTED}.", missing=9, causes=("x",))
CUT_OFF = replace(
    MUTE,
    plan=replace(MUTE.plan, protocol="maze1", settings={"max_tokens": 48}),
    agent_counts={"calls": 40, "truncated": 36, "unparsed": 40},
)
CUT_OFTEN = replace(CUT_OFF, verdict=Verdict.FAIL)
CONTROL = cell("a", Verdict.FAIL, control="yoked:r", missing=5)
VIEWS = replace(FAIL, plan=replace(FAIL.plan, view="w"))
BROKEN = Broken(
    "torn",
    "lab/torn.protocol.yaml",
    "lab/torn.protocol.yaml:3:9: error E101: no. Mend it.\nmore",
)
UNSUITED = Broken("wide", "lab/wide.protocol.yaml", "It has no arena.\nAt all.")
NOTHING = Findings(
    run_id="r1", cells=(PASS,), unmeasured=0, stopped=0, broken=(), other_failures=0, exit_zero=False,
    inconclusive_fails=False, compared=None, gates=False, fails_comparison=False, budgets="", interrupted="",
    unfinished=(), baseline="", in_ci=False,
)  # fmt: skip
GATE: dict[str, Any] = {"gates": True, "compared": SAME}
#: Findings by what is the matter, with the exit status.
FOUND: dict[str, tuple[int, dict[str, Any]]] = {
    "all passes": (0, {}),
    "inconclusive": (0, {"cells": (PASS, UNDECIDED)}),
    "a green gate": (0, GATE),
    "a green gate, inconclusive": (0, {**GATE, "cells": (UNDECIDED, LOST)}),
    "compared without a gate": (0, {"compared": WORSE}),
    "not the same settings": (0, {**GATE, "compared": OTHER}),
    "trials are gone": (0, {"cells": (PASS, LOST, CONTROL)}),
    "forgiven": (0, {"cells": (PASS, FAIL), "exit_zero": True}),
    "forgiven, several views": (0, {"cells": (FAIL, VIEWS, PASS), "exit_zero": True}),
    "a protocol fails": (1, {"cells": (PASS, FAIL), "other_failures": 0}),
    "cells fail": (1, {"cells": (FAIL, VIEWS, CONTROL)}),
    "inconclusive fails": (1, {"cells": (UNDECIDED, PASS), "inconclusive_fails": True, "other_failures": 1}),
    "another test": (1, {"cells": (FAIL,), "other_failures": 1}),
    "only another test": (1, {"other_failures": 1, "exit_zero": True}),
    "broken": (1, {"broken": (BROKEN, UNSUITED), "other_failures": 2}),
    "unsuited": (1, {"broken": (UNSUITED,), "other_failures": 1, "cells": (FAIL,)}),
    "unmeasured": (1, {"cells": (PASS, LOST), "unmeasured": 1, "other_failures": 1}),
    "unmeasured, gate": (1, {**GATE, "cells": (LOST,), "unmeasured": 1, "other_failures": 1}),
    "run anew": (1, {**GATE, "cells": (ANEW,), "unmeasured": 1, "other_failures": 1}),
    "budget": (1, {**GATE, "cells": (LOST,), "unmeasured": 1, "budgets": "--max-cost 9"}),
    "budget in CI": (1, {**GATE, "cells": (LOST,), "unmeasured": 1, "budgets": "--max-cost 9", "in_ci": True}),
    "mute": (1, {"cells": (MUTE, LOST), "unmeasured": 2}),
    "mute, to be run": (1, {"cells": (MUTE,), "unmeasured": 1, "unfinished": (MUTE.plan,)}),
    "mute, of a baseline": (1, {"cells": (MUTE,), "unmeasured": 1, "baseline": "main", "in_ci": True}),
    "mute, other settings": (1, {**GATE, "compared": OTHER, "cells": (MUTE,), "unmeasured": 1, "baseline": "main"}),
    "stopped by a plugin": (1, {"cells": (PASS,), "stopped": 1, "other_failures": 1}),
    "worse": (1, {**GATE, "compared": WORSE, "fails_comparison": True, "cells": (PASS, FAIL), "exit_zero": True}),
    "worse in CI": (1, {**GATE, "compared": WORSE, "fails_comparison": True, "in_ci": True}),
    "worse, not a gate": (1, {"compared": WORSE, "cells": (FAIL,)}),
    "worse, nothing asked": (1, {**GATE, "compared": WORSE, "fails_comparison": True, "replies": 1880, "earlier": 1880}),
    "worse, half asked": (1, {**GATE, "compared": WORSE, "fails_comparison": True, "replies": 1880, "earlier": 80}),
    "green, nothing asked": (0, {**GATE, "replies": 80, "earlier": 80}),
    "silent": (1, {**GATE, "compared": SILENT, "fails_comparison": True}),
    "mute, cut off": (1, {"cells": (CUT_OFF,), "unmeasured": 1, "baseline": "main", "in_ci": True}),
    "silent, cut off": (1, {**GATE, "compared": SILENT, "fails_comparison": True, "cells": (CUT_OFTEN,)}),
    "silent in CI": (1, {**GATE, "compared": SILENT, "fails_comparison": True, "in_ci": True}),
    "refused": (1, {**GATE, "cells": (REFUSED,), "unmeasured": 1, "may_retry": True}),
    "undecided": (1, {**GATE, "compared": OPEN, "fails_comparison": True}),
    "interrupted": (2, {"interrupted": "SIGTERM", "unfinished": (PASS.plan,), "cells": (PASS, FAIL)}),
    "interrupted twice": (2, {"interrupted": "no reason", "unfinished": (PASS.plan, FAIL.plan), "cells": (PASS, FAIL)}),
    "interrupted at the end": (2, {"interrupted": "SIGINT"}),
    "interrupted and worse": (2, {**GATE, "compared": WORSE, "interrupted": "SIGINT", "unfinished": (PASS.plan,)}),
    "a usage error": (4, GATE),
    "no test": (5, GATE),
}  # fmt: skip


def test_every_end_has_its_reason_its_remedy_and_its_badge() -> None:
    lines = []
    for name, (status, changes) in FOUND.items():
        found = replace(NOTHING, **changes)
        lines += [
            f"{name}:",
            f"  {reason(status, found)}",
            f"  {remedy(status, found)}",
            f"  {badge(status, found)}",
        ]
    check_stored("exit_statuses.txt", "\n".join(line.rstrip() for line in lines) + "\n")


def test_an_error_has_its_place_and_line_or_its_protocol() -> None:
    place = "lab/torn.protocol.yaml:3:9: error E101"
    assert BROKEN.error == (place, "no. Mend it.")
    assert BROKEN.line == 3
    assert UNSUITED.error == ("wide", "It has no arena.")
    assert UNSUITED.line == 1


def test_counts_leave_out_controls_and_broken_protocols() -> None:
    found = replace(
        NOTHING, cells=(PASS, FAIL, CONTROL, UNDECIDED), compared=OTHER, broken=(Broken("away", "", ""),)
    )  # fmt: skip
    assert (found.failed, found.undecided) == (1, 1)
    assert found.not_run == []
    assert replace(found, broken=()).not_run == ["away (v)"]
    assert replace(found, compared=None).not_run == []
    assert found.forgiven == []
    one = replace(NOTHING, cells=(PASS, FAIL), exit_zero=True)
    assert one.forgiven == [
        "1 protocol failed against the animals, which --exit-zero ignores"
    ]


def test_causes_of_two_protocols_that_differ_in_counts_are_one() -> None:
    first, second = (
        replace(LOST, causes=(f"stopped in trial {n}: connection: http://a:1 cannot be reached, tried {n} times",))
        for n in (18, 19)
    )  # fmt: skip
    found = replace(NOTHING, cells=(first, second))
    assert found.cause == " (connection: http://a:1 cannot be reached, tried 18 times)"
    assert len(replace(found, cells=(first, LOST)).faults) == 3
    told = (
        "content filter at call 1 of trial {} of subject 0 (m on {}), as recorded: no"
    )
    first, second = (
        replace(LOST, causes=(told.format(*place),)) for place in ((3, "a"), (7, "b"))
    )
    found = replace(found, cells=(first, second))
    assert found.faults == ["content filter, as recorded: no"]
    assert found.cause == " (content filter, as recorded: no)"


@pytest.mark.parametrize(
    ("cause", "mend"),
    [
        ("malformed: The server sends an empty reply (0 tokens)", "Mend what has changed in the model or its server (template,"),
        ("malformed: The answer is not JSON", "Mend what answers in the server's place"),
        ("malformed: The answer is a web page instead of JSON: Sign in", "Mend what answers in the server's place"),
        ("malformed: The answer breaks off in the middle of its JSON, after 9 characters", "Mend what ends the server's answers"),
        ("context too long: http://a:1 answers 400: too long", "Give the model a longer context"),
        ("context too long at call 2 of trial 9 of subject 0 (m on t), as recorded: a", "Give the model a longer context"),
        ("content filter: no", "Use a server whose filter lets these prompts pass,"),
        ("bad request: http://a:1 answers 400: no", "Change what the server refuses,"),
        ("10 empty replies in a row: broken", "Mend what has changed in the model or its server (template,"),
        ("connection: http://a:1 dropped it", "See to it that the server runs"),
        ("quota: no money", "Raise the limit"),
        ("server: http://a:1 answers 500: malformed: a", "Mend the server (its own log says more),"),
        ("timeout: no reply within 300 s, tried 8 times", "See to it that the server answers in time, or"),
        ("timeout: http://a:1 has not answered within 0.5 s", "See to it that the server answers in time, or"),
        ("timeout: the gateway gave up", "See to it that the server runs"),
        ("rate limit: http://a:1 answers 429: slowly", "Wait until the server takes calls again,"),
        ("authentication: http://a:1 answers 401: no", "See to it that the server accepts the key,"),
        ("unknown model: http://a:1 answers 404: no", "See to it that the server has the model"),
        ("the calls of one trial took more than 60 s (--trial-timeout)", "Make the server faster, or raise --trial-timeout,"),
        ("the run has cost $9; --max-cost 9 is reached while the server did not answer (server: no)", "Mend the server"),
        ("the run has cost $9; --max-cost 9 is reached while the server did not answer (connection: no [...]", "See to it that"),
        ("ValueError: no (agent.py:7)", "Remove the cause,"),
    ],
)  # fmt: skip
def test_the_remedy_fits_the_first_cause(cause: str, mend: str) -> None:
    lost = replace(LOST, causes=(f"stopped in trial 3: {cause}", "quota: none"))
    found = replace(NOTHING, **GATE, cells=(lost,), unmeasured=1)
    assert remedy(1, found).startswith(mend)
    kept = re.search("in a row|too long|filter|bad request", cause)
    again = "start a new run" if kept else "continue the run with `--resume r1`"
    assert f", then {again}" in remedy(1, found)
    # A cause that a continued run keeps comes before one that it does not.
    later = replace(LOST, causes=("server: no", f"stopped in trial 3: {cause}"))
    both = replace(found, cells=(later,))
    assert ("start a new run" in remedy(1, both)) == bool(kept)
    # Outside of CI, refused calls can be asked again, if they are not too many.
    retried = remedy(1, replace(found, may_retry=True))
    refused = bool(kept) and "in a row" not in cause
    assert ("`--resume r1 --retry-errors`" in retried) == refused
    assert "--retry" not in remedy(1, replace(found, may_retry=True, in_ci=True))


def test_a_session_whose_minutes_are_over_is_continued() -> None:
    over = "the run has taken 9 minutes; --max-minutes 9 is reached."
    lost = replace(LOST, verdict=Verdict.INCONCLUSIVE, causes=(over,))
    found = replace(NOTHING, **GATE, cells=(lost,), unmeasured=1, in_ci=True)
    assert remedy(1, found) == (
        "Run the job again: that continues the run (`--resume r1`). It then has its minutes once more."
    )


def test_replies_that_were_lost_are_said_of_a_success() -> None:
    remark = "The cell was begun anew{}: none of {} earlier replies named an action, and they do not count."
    once, twice = (
        replace(PASS, remarks=(remark.format(*how),))
        for how in (("", "31"), (" 2 times", "1,200"))
    )
    found = replace(NOTHING, **GATE, cells=(once, UNDECIDED))
    assert (
        "; 1 protocol begun anew, because none of 31 earlier replies named an action."
        in reason(0, found)
    )
    both = replace(found, cells=(once, replace(twice, plan=FAIL.plan)))
    assert "; 2 protocols begun anew, because none of 1,231 earlier replies" in reason(
        0, both
    )
    assert "begun anew" not in reason(0, replace(found, cells=(PASS,)))


def test_causes_are_said_once_and_those_of_a_mute_cell_first() -> None:
    found = replace(NOTHING, cells=(LOST, MUTE))
    assert found.cause == " (no reply named an action, and 2 other causes)"
    assert (
        replace(found, cells=(LOST,)).cause == " (the line is dead, and 1 other cause)"
    )
    assert replace(found, cells=(replace(LOST, missing=0), PASS)).cause == ""


@pytest.mark.parametrize(
    ("by", "said"),
    [("SIGHUP", "interrupted by SIGHUP"), ("a fire", "interrupted (a fire)")],
)
def test_what_interrupts_is_a_signal_or_a_reason(by: str, said: str) -> None:
    assert interrupted(by) == said


def test_a_remedy_for_a_mute_model_depends_on_baseline_and_ci() -> None:
    act: Callable[..., str] = how_to_act
    said = {
        (baseline, in_ci, changed): act(
            "r", "p", baseline, in_ci=in_ci, changed=changed
        )
        for baseline in ("", "main")
        for in_ci in (False, True)
        for changed in (False, True)
    }
    assert len(set(said.values())) == 6
    assert said["", True, True] == said["", True, False]
    assert said["main", False, True].startswith(
        "Take the settings of main again, and start a new run (in CI:"
    )
    assert "then continue the run with `--resume r`" in said["main", False, False]
    assert "then run the job again: it asks anew" in said["main", True, False]
    assert "mend it, then run the job again: it asks anew" in said["", True, False]


def test_a_sentence_is_wrapped_for_a_terminal() -> None:
    lines = filled("a-b " * 50).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line.startswith("  a-b") for line in lines[1:])
