"""Every public function takes any integer and any path, and names an argument of the
wrong type.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import cheesebench
from cheesebench import AgentSpec, OptionError, arguments, options
from cheesebench.arguments import in_python, named, on_command_line
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


#: A function where ``connect`` should be.
MINE: Any = cheesebench.BackendSpec(name="mine", connect=lambda context: "hm")  # type: ignore[arg-type,return-value]

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
    "a model": (lambda run: API.run(len), "If len replies to messages as a language model does, give plugins="),
    "a function": (lambda run: API.run("random", plugins=len), "backends (BackendSpec). If len replies to messages"),
    "functions": (lambda run: API.run("random", plugins=[lambda: 3]), "supplies nothing. If FUNCTION replies to messages"),
    "no backend": (lambda run: API.run("mine/x"), "your function? plugins=BackendSpec.of('NAME', FUNCTION) adds it."),
    "a backend": (lambda run: API.run(MINE), "BackendSpec('mine', ...): expected a name, or a list of"),
    "a reply": (lambda run: API.run("mine/x", plugins=MINE), "returned 'hm', a reply. A function that replies becomes"),
    "progress": (lambda run: API.run("random", progress="yes"), "progress='yes': expected True, False or a"),
    "a frame of figures": (lambda run: API.figures(run.verdicts()), "runs=<DataFrame>: expected a run"),
    "figures": (lambda run: API.figures(3), "runs=3: expected a run, or a list"),
    "no figures": (lambda run: API.figures([]), "runs=[]: expected a run, or a list of at least one."),
    "dpi": (lambda run: API.figures(run, dpi="high"), "dpi='high': expected a whole number."),
    "save": (lambda run: API.Figures().save(3), "directory=3: expected a path"),
    "lint": (lambda run: API.lint(3), "files=3: expected a name, file or directory"),
    "open_run": (lambda run: API.open_run(7), "run=7: expected a run, or its id, directory or file."),
    "a path": (lambda run: API.open_run("/nowhere/run.sqlite"), "There is no run at /nowhere/run.sqlite."),
    "compare": (lambda run: API.compare(run, 3), "second=3: expected a run"),
    "one argument": (lambda run: API.compare(), "compare(): missing a required argument: 'first'"),
    "a run to continue": (lambda run: API.run(resume="x"), "There is no run 'x' in"),
    "one model alone": (lambda run: API.compare(run), "Within one run, two models are needed, or one with a control: "),
    "one model": (lambda run: API.compare(run, run, models="random"), "models='random': expected two names"),
    "verdict": (lambda run: API.verdict(3), "first=3: expected a run"),
    "value": (lambda run: API.verdict(run, value="high"), "value='high': expected a number."),
    "a list of runs": (lambda run: API.verdict([run, "taken"]), "runs. Compare two: verdict('taken', 'taken')."),
    "a list of a run": (lambda run: API.verdict(["taken"]), "verdict('taken'). For the verdicts of several: report("),
    "verdicts": (lambda run: API.verdict(run.verdicts(), score="rate"), "This is a table of verdicts: each row is a"),
    "a summary": (lambda run: API.verdict(run.summary.frame(), score="rate"), "rows = run.trials(); verdict("),
    "trials": (lambda run: API.run("random", trials=8), "The design sets the trials: design='smoke' has few."),
    "a page": (lambda run: API.run("random", html="x"), "html= is only for pytest. Call run.html(PATH) afterwards."),
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
    assert {"cohort", "sequential"} <= names["designs"]
    assert {"blind", "cue-off", "amnesia=trial"} <= names["controls"]
    assert all(
        row["about"]
        for row in found.rows()
        if row["kind"] in ("views", "report_formats", "designs", "controls")
    )


def test_ipython_shows_the_line_of_the_user_and_the_message() -> None:
    code = compile("1 + 1\ncheesebench.run(5)", __file__, "exec")
    with pytest.raises(cheesebench.OptionError) as caught:
        exec(code, {"cheesebench": API})
    line, said = caught.value._render_traceback_()
    assert line.startswith("----> 2 ")
    assert said == "OptionError: models=5: expected a name, or a list of names."


def test_an_interrupted_function_shows_the_line_of_the_user() -> None:
    @arguments.checked()
    def stopped(seed: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        stopped(3)
    shown: Any = caught.value
    line, said = shown._render_traceback_()
    assert "stopped(3)" in line
    assert said == "KeyboardInterrupt: "


def test_every_option_is_read_by_what_it_takes() -> None:
    taken = {key: arguments.kind_of(one) for key, one in options.BY_KEY.items()}
    assert taken["subjects"] is arguments.WHOLE
    assert taken["history"].read(np.int64(3)) == "3"
    assert taken["max_tokens"].read(1e6) == 1_000_000
    assert taken["max_cost"].read(np.float32(0.5)) == 0.5


@pytest.mark.parametrize(
    ("said", "python"),
    [
        ("--subjects 0: too few", "subjects=0: too few"),
        ("add --subjects", "add subjects="),
        ("--subjects and --seed", "subjects= and seed="),
        ("--design cohort", "design='cohort'"),
        ("--design smoke, or", "design='smoke', or"),
        ("--history 3-7.", "history='3-7'."),
        ("--max-cost 1.5", "max_cost=1.5"),
        ("--max-cost 1e-3", "max_cost=1e-3"),
        ("--model NAME", "models=NAME"),
        ("--models FILE", "models_file=FILE"),
        ("--first-model a and --second-model b", "models='a' and models='b'"),
        ("give --first-model and --second-model", "give models=(FIRST, SECOND)"),
        ("--exit-zero ignores", "exit_zero=True ignores"),
        ("--ask is", "ask=True is"),
        ("--agent-option seed=1", "agent_option={'seed': 1}"),
        ("--agent-option a=b", "agent_option={'a': 'b'}"),
        ("--agent-option nothing", "agent_option='nothing'"),
        ("--cheese-seed 4", "seed=4"),
        ("--run-id 7", "run_id='7'"),
        ("--view [a", "view=[a"),
        ("--format=csv", "formats='csv'"),
        ("--part cues", "parts='cues'"),
        ("--base-url http://a:1/v1: no", "base_url='http://a:1/v1': no"),
        ("(--only-seen)", "(only_seen=True)"),
        ("--max-tokens\n  2000 is", "max_tokens=2000 is"),
        ("--max-tokens\n\n2000 is", "max_tokens=\n\n2000 is"),
        ("less with\n--familywise\nthan", "less with\nfamilywise=True\nthan"),
        ("cheesebench plan says", "cheesebench.plan(...) says"),
        (
            "The environment variable A_KEY has no key. Export it, or give --base-url for",
            "The environment variable A_KEY has no key. Set it (os.environ['A_KEY'] = KEY), or give base_url= for",
        ),
        ("(cheesebench lint has it)", "(cheesebench.lint(...) has it)"),
        ("'cheesebench audit' prints them", "cheesebench.audit(...) has them"),
        (
            "cheesebench show r\n--protocol p --unparsed",
            "column unparsed of run.calls()",
        ),
        ("with `cheesebench show RUN`.", "with run.calls()."),
        ("cheesebench report r\n--verify", "cheesebench report r\n--verify"),
        ("--unknown x", "--unknown x"),
        ("pytest --model a --seed 3, then", "pytest --model a --seed 3, then"),
        ("--run-id cannot be combined", "run_id= cannot be combined"),
        ("pytest --resume r-1.", "cheesebench.run(resume='r-1')."),
        ("'cheesebench models' has it", "cheesebench.catalogue('models') has it"),
        ("x--seed 3", "x--seed 3"),
    ],
)
def test_messages_have_arguments_in_place_of_options(said: str, python: str) -> None:
    assert in_python(said) == python


def test_an_error_names_arguments_once_and_options_in_a_command() -> None:
    for text, python in (("--seed -1: no", "seed=-1: no"), ("plain", "plain")):
        with pytest.raises(OptionError) as caught, named(), named():
            raise OptionError(text)
        assert str(caught.value) == python
        with pytest.raises(OptionError) as typed, on_command_line(), named():
            raise OptionError(text)
        assert str(typed.value) == text
    assert in_python("--seed 1") == "seed=1", "the command has ended"


MADE: Any = None
SPEC = AgentSpec("mine", MADE)


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (arguments.TEXT, "a", "a"), (arguments.TEXT, Path("a"), "a"), (arguments.TEXT, b"a", None), (arguments.TEXT, 3, None),
        (arguments.PATH, Path("a"), Path("a")), (arguments.NAMES, "a", "a"), (arguments.NAMES, ("a", "b"), ["a", "b"]),
        (arguments.NAMES, [3], None), (arguments.NAMES, [], []), (arguments.SOME, [], None), (arguments.SOME, "a", "a"),
        (arguments.WHOLE, 3, 3), (arguments.WHOLE, 1e6, 10**6), (arguments.WHOLE, 1.5, None), (arguments.WHOLE, True, None),
        (arguments.WHOLE, "3", None), (arguments.NUMBER, 3, 3.0), (arguments.NUMBER, "3", None), (arguments.NUMBER, False, None),
        (arguments.WORD, "3-7", "3-7"), (arguments.WORD, 3, "3"), (arguments.WORD, 3.5, None), (arguments.TRUTH, 1, True),
        (arguments.TRUTH, 2, None), (arguments.TRUTH, False, False), (arguments.MODELS, ("a", None), ("a", None)),
        (arguments.MODELS, (None, "b"), (None, "b")), (arguments.MODELS, "ab", None), (arguments.MODELS, ("a",), None),
        (arguments.SCORES, "a", "a"), (arguments.SCORES, [1.0], [1.0]), (arguments.SCORES, b"a", None),
        (arguments.SCORES, {}, None),
        (arguments.SCORES, 3, None), (arguments.LIMITS, (0, 1), (0.0, 1.0)), (arguments.LIMITS, "01", None),
        (arguments.OBJECTS, SPEC, (SPEC,)), (arguments.OBJECTS, [SPEC], (SPEC,)), (arguments.OBJECTS, "a", None),
        (arguments.OBJECTS, {}, None), (arguments.CALLED, print, print), (arguments.CALLED, 3, None),
        (arguments.PROGRESS, print, print), (arguments.PROGRESS, True, True), (arguments.PROGRESS, "x", None),
    ],
)  # fmt: skip
def test_a_kind_takes_some_values_and_no_others(
    kind: arguments.Kind, value: Any, found: Any
) -> None:
    if found is not None:
        read = arguments.read("x", kind, value)
        assert (read, type(read)) == (found, type(found))
        return
    with pytest.raises(OptionError) as caught:
        arguments.read("x", kind, value)
    assert str(caught.value) == f"x={value!r}: expected {kind.wanted}."


def test_a_wrong_value_is_named_in_brief() -> None:
    class Table:
        rows: ClassVar[list[int]] = []

    for value, said in (
        (
            SPEC,
            "x=AgentSpec('mine', ...): expected text. Give its name, 'mine', and plugins=[SPEC].",
        ),
        (np.zeros(3), "x=<ndarray>: expected text."),
        (
            Table(),
            "x=<Table>: expected text. This is a table: its frame() returns a data frame.",
        ),
    ):
        with pytest.raises(OptionError) as caught:
            arguments.read("x", arguments.TEXT, value)
        assert str(caught.value) == said


def test_a_function_reads_its_arguments_by_name() -> None:
    @arguments.checked(odd=arguments.WHOLE)
    def function(odd: Any, seed: Any = None, models: Any = (), **options: Any) -> Any:
        return odd, seed, models, options

    called: Any = function
    assert function(3.0, models=("a",), more="x") == (3, None, ["a"], {"more": "x"})
    assert function(odd=2) == (2, None, (), {})
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: called("x"), "odd='x': expected a whole number."),
        (lambda: called(1, seed="x"), "seed='x': expected a whole number."),
        (
            lambda: called(),
            "missing a required argument: 'odd'. See help(cheesebench.",
        ),
        (lambda: called(1, 2, 3, 4), "too many positional arguments. See help("),
    ]
    for call, said in calls:
        with pytest.raises(OptionError) as caught:
            call()
        assert said in str(caught.value)

    @arguments.checked()
    def strict(models: Any, protocols: Any = ()) -> Any:
        return models, protocols

    for given, said in (
        ({"model": "a"}, "Give models= instead."),
        ({"modls": "a"}, "Did you mean 'models'?"),
        ({"first_model": "a"}, "Give models=(FIRST, SECOND) instead."),
        ({"models": "a", "part": "x"}, "See help(cheesebench."),
    ):
        with pytest.raises(OptionError) as caught:
            strict(**given)
        assert said in str(caught.value)
    with pytest.raises(OptionError, match=r"protocols=\(\): expected a name"):
        strict("a", ())
