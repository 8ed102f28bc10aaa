"""Every public function takes any integer and any path, and names an argument of the
wrong type.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cheesebench
from cheesebench import arguments, options
from tests.pytest_plugin.conftest import corridor

#: Functions are called as a stranger to types would.
API: Any = cheesebench


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "east.protocol.yaml").write_text(corridor("east", trials=4), "utf-8")
    return folder


@pytest.fixture(scope="module")
def made(lab: Path) -> Any:
    return API.run(
        np.array(["random"]),
        lab / "east.protocol.yaml",
        subjects=np.int64(2),
        seed=np.uint8(3),
        view=["ascii_2d"],
        processes=np.int32(1),
        results=lab / "results",
        run_id="taken",
        progress=np.bool_(False),
    )


def test_integers_of_numpy_are_integers(made: Any) -> None:
    assert made.summary.manifest["options"]["seed"] == 3
    assert made.summary.cells[0].plan.subjects == 2
    row = made.trials().iloc[-1]
    assert isinstance(row.subject, np.integer)
    trial = made.trial(subject=row.subject, trial=row.trial)
    assert (trial.record.subject, trial.record.trial) == (1, 4)
    assert API.plan("random", "t_maze", subjects=np.int16(6)).cells


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "models": (lambda run: API.run(5, "t_maze"), "models=5: expected a name, or a list of names."),
    "nothing found": (lambda run: API.run("random", []), "protocols=[]: expected a name, or a list of at least"),
    "an empty tuple": (lambda run: API.run("random", tuple(n for n in "" if n)), "protocols=(): expected"),
    "no view": (lambda run: API.plan("random", "t_maze", view=[]), "view=[]: expected"),
    "bytes": (lambda run: API.run(b"random"), "models=b'random': expected a name"),
    "no list of names": (lambda run: API.plan(["random", 5]), "models=['random', 5]: expected"),
    "plan": (lambda run: API.plan(12), "models=12: expected"),
    "text for a number": (lambda run: API.run("random", subjects="6"), "subjects='6': expected a whole number."),
    "a truth value": (lambda run: API.run("random", seed=True), "seed=True: expected a whole number."),
    "half a subject": (lambda run: API.run("random", subjects=2.5), "subjects=2.5: expected a whole"),
    "two numbers": (lambda run: API.run("random", subjects=np.array([2, 3])), "expected a whole number."),
    "a number for text": (lambda run: API.run("random", design=5), "design=5: expected text."),
    "text for a flag": (lambda run: API.run("random", familywise="no"), "familywise='no': expected True or False."),
    "plugins": (lambda run: API.run("random", plugins=5), "plugins=5: expected a list of objects"),
    "progress": (lambda run: API.run("random", progress="yes"), "progress='yes': expected True, False or a"),
    "figures": (lambda run: API.figures(3), "runs=3: expected a run, or a list"),
    "no figures": (lambda run: API.figures([]), "runs=[]: expected a run, or a list of at least one."),
    "dpi": (lambda run: API.figures(run, dpi="high"), "dpi='high': expected a whole number."),
    "save": (lambda run: API.Figures().save(3), "directory=3: expected a path"),
    "lint": (lambda run: API.lint(3), "files=3: expected a name, file or directory"),
    "open_run": (lambda run: API.open_run(7), "run=7: expected a run, or its id, directory or file."),
    "a path": (lambda run: API.open_run("/nowhere/run.sqlite"), "There is no run at /nowhere/run.sqlite."),
    "compare": (lambda run: API.compare(run, 3), "second=3: expected a run"),
    "one argument": (lambda run: API.compare(), "compare(): missing a required argument: 'first'"),
    "one model alone": (lambda run: API.compare(run), "of its models (random) two are needed, not 1."),
    "one model": (lambda run: API.compare(run, run, models="random"), "models='random': expected two names"),
    "verdict": (lambda run: API.verdict(3), "first=3: expected a run"),
    "value": (lambda run: API.verdict(run, value="high"), "value='high': expected a number."),
    "limits": (lambda run: API.verdict("x.csv", limits=3), "limits=3: expected two numbers"),
    "audit": (lambda run: API.audit(3), "protocol=3: expected a name, a file or a specification."),
    "another name": (lambda run: API.audit("t_maze", effrt=3), "'effrt'. Did you mean 'effort'?"),
    "load_models": (lambda run: API.load_models(), "load_models(): missing a required argument: 'path'"),
    "catalogue": (lambda run: API.catalogue("model"), "Did you mean 'models'?"),
    "report": (lambda run: run.report(5), "format=5: expected text."),
    "table": (lambda run: run.table(5), "name=5: expected text."),
    "subject": (lambda run: run.trial(subject="0"), "subject='0': expected a whole number."),
    "html": (lambda run: run.html("/nowhere/x/report.html"), "/nowhere/x/report.html cannot be written: No such"),
    "run_async": (lambda run: asyncio.run(API.run_async(5)), "models=5: expected a name"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_type_is_named(
    made: Any, lab: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(lab)
    mistake, said = WRONG[name]
    with pytest.raises(cheesebench.CheeseBenchError) as caught:
        mistake(made)
    assert said in str(caught.value)
    assert {path.name for path in (lab / "results").iterdir()} == {"taken"}


def test_the_catalogue_has_what_can_be_named(lab: Path) -> None:
    found = cheesebench.catalogue()
    names: dict[object, set[object]] = {}
    for row in found.rows():
        names.setdefault(row["kind"], set()).add(row["name"])
    assert "t_maze" in names["protocols"]
    assert {"random", "place-learner"} <= names["agents"]
    assert names["models"] == set(cheesebench.installed_plugins().models)
    assert "ascii_2d" in names["views"]
    assert {row["name"] for row in cheesebench.catalogue("agents")} == names["agents"]


def test_ipython_shows_the_line_of_the_user_and_the_message() -> None:
    code = compile("1 + 1\ncheesebench.run(5)", __file__, "exec")
    with pytest.raises(cheesebench.OptionError) as caught:
        exec(code, {"cheesebench": API})
    line, said = caught.value._render_traceback_()
    assert line.startswith("----> 2 ")
    assert said == "OptionError: models=5: expected a name, or a list of names."


def test_every_option_is_read_by_what_it_takes() -> None:
    taken = {key: arguments.kind_of(one) for key, one in options.BY_KEY.items()}
    assert taken["subjects"] is arguments.WHOLE
    assert taken["history"].read(np.int64(3)) == "3"
    assert taken["max_tokens"].read(1e6) == 1_000_000
    assert taken["max_cost"].read(np.float32(0.5)) == 0.5
