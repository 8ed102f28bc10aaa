"""Mistakes in another plugin's conftest.py are one line with its name, not an internal
error.
"""

from __future__ import annotations

import pytest

from cheesebench.experiment.log import RunLog


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "def cheesebench_views(): raise OSError('oh')",
            "cheesebench_views: OSError: oh (conftest.py:1). Fix or remove *",
        ),
        (
            "def cheesebench_views(): raise SystemExit(3)",
            "cheesebench_views: SystemExit: 3 (conftest.py:1). Fix *",
        ),
        (
            "def cheesebench_views(): return 5",
            "cheesebench_views: returned 5, an int. Return a list of View objects.",
        ),
        (
            "from cheesebench import Price\n"
            "def cheesebench_models(): return [Price(prompt=1, completion=1, on='2026-10-21')]",
            "The plugin '*conftest.py', cheesebench_models: Price(on='2026-10-21'): give a datetime.date, such as *",
        ),
        *(
            (
                "from datetime import date\nfrom cheesebench import Price\n"
                "def cheesebench_models():\n"
                f"    return [Price(**{{'prompt': 1, 'completion': 1, {given}}}, on=date.today())]",
                f"cheesebench_models: Price({said}): give dollars per million tokens, a number of at least 0.",
            )
            for given, said in (
                ("'prompt': '1.0'", "prompt='1.0'"),
                ("'completion': None", "completion=None"),
                ("'cached': float('nan')", "cached=nan"),
                ("'written': -1", "written=-1"),
            )
        ),
    ],
)
def test_a_hook_that_goes_wrong_is_one_line(
    project: pytest.Pytester, code: str, said: str
) -> None:
    project.makeconftest(code)
    result = project.runpytest(
        "--model",
        "openai/any",
        "--view",
        "ascii_2d",
        "--base-url",
        "http://127.0.0.1:1/v1",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [
        line for line in result.errlines if line and not line.startswith("Exit code 4")
    ]
    assert len(errors) == 1
    result.stderr.fnmatch_lines([f"ERROR: *{said.replace('[', '[[]')}"])


@pytest.mark.parametrize("code", ["0", "3", "'enough'"])
@pytest.mark.parametrize("folder", [".", "lab", "lab/deeper"])
def test_who_ends_the_program_is_named(
    project: pytest.Pytester, folder: str, code: str
) -> None:
    deeper = project.path / "lab/deeper"
    deeper.mkdir()
    (project.path / "lab/west.protocol.yaml").rename(deeper / "west.protocol.yaml")
    (project.path / folder / "conftest.py").write_text(
        f"import sys\nsys.exit({code})\n", encoding="utf-8"
    )
    result = project.runpytest_subprocess("--model", "random", "lab")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = f"conftest.py:2: this file ends the program while it is loaded (SystemExit: {code.strip(chr(39))}). Fix it, or *"
    result.stderr.fnmatch_lines([f"ERROR: *{said}"])
    assert (
        len(
            [
                line
                for line in result.errlines
                if "PytestRemovedIn" not in line and line.startswith("ERROR")
            ]
        )
        == 1
    )
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_one_observer_that_fails_is_named_and_others_go_on(
    project: pytest.Pytester,
) -> None:
    (project.path / "lab" / "conftest.py").write_text(
        "def cheesebench_trial_finished(record): raise SystemExit(0)\n"
        "def cheesebench_run_finished(summary): print('seen', file=open('seen.txt', 'w'))\n",
        encoding="utf-8",
    )
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\ndef cheesebench_trial_finished(record): print(record.trial, file=open('trials.txt', 'a'))\n"
            "def cheesebench_run_finished(summary): raise OSError('gone')\n"
        )
    result = project.runpytest(
        "--model", "walker", "lab/few.protocol.yaml", "--cheese-run-id", "one"
    )
    result.stdout.fnmatch_lines(
        [
            "The observer '*lab*conftest.py' failed in cheesebench_trial_finished: SystemExit: 0; *",
            "The observer '*conftest.py' failed in cheesebench_run_finished: OSError: gone; *",
        ]
    )
    assert len((project.path / "trials.txt").read_text().splitlines()) == 12
    assert (project.path / "seen.txt").is_file()
    with RunLog.open_read_only(project.path / "results" / "one") as log:
        files = {
            what
            for name, what in log.manifest["plugins"].items()
            if name.startswith("pytest:")
        }
    assert files == {
        str(project.path / "conftest.py"),
        str(project.path / "lab" / "conftest.py"),
    }


@pytest.mark.parametrize(
    ("drawing", "said"),
    [
        (
            "return None",
            "The view 'blank': render returned None. Return a string.",
        ),
        (
            "return scene.texts",
            "The view 'blank': render raises AttributeError: 'Scene' object has no attribute *",
        ),
        (
            "raise SystemExit(3)",
            "The view 'blank': render raises SystemExit: 3 (conftest.py:*). Fix or remove *",
        ),
        (
            "raise KeyboardInterrupt",
            "stopped in trial 1: KeyboardInterrupt (conftest.py:*)",
        ),
    ],
)
def test_a_view_that_fails_is_an_error_with_its_cause(
    project: pytest.Pytester, drawing: str, said: str
) -> None:
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nclass Blank:\n"
            "    name, characters = 'blank', ''\n"
            f"    def render(self, scene, column, row, heading): {drawing}\n"
            "    def max_length(self, scene): return 9\n"
            "def cheesebench_views(): return [Blank()]\n"
        )
    result = project.runpytest(
        "--model", "walker", "lab/few.protocol.yaml", "--view", "blank"
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_an_executor_that_goes_wrong_is_shown_from_where_its_cell_waits(
    project: pytest.Pytester,
) -> None:
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nfrom cheesebench import ExecutorSpec\n"
            "class Odd:\n"
            "    capacity = 1\n"
            "    async def run(self, job, report): return {}['nobody']\n"
            "    async def close(self): pass\n"
            "def cheesebench_executors(): return [ExecutorSpec('odd', lambda context: Odd(), in_process=True)]\n"
        )
    result = project.runpytest(
        "--model", "walker", "lab/few.protocol.yaml", "--executor", "odd"
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*async def run(self, job, report): return*", "E *KeyError: 'nobody'"]
    )
    assert "Cause: KeyError: 'nobody'" in " ".join(result.stdout.str().split())
    for before in (
        "/pluggy/",
        "/_pytest/",
    ):
        # pytest's own frames are of no use to anybody.
        result.stdout.no_fnmatch_line(f"*{before}*")


FAMILY = """
from cheesebench import CellPlan, DocumentModel, StepwiseFamily

class Document(DocumentModel):
    version: int

class Levers(StepwiseFamily):
    name, plural, document = "levers", "levers", Document
    def matches(self, tree): return tree.child("levers") is not None
    def load(self, tree, path, ancestors, diagnostics): LOAD
    def compile(self, specification): return None
    def listing(self, specification): return None
    def CELLS(self, specification, request): return None

def cheesebench_families(): return [Levers()]
"""
LEVERS = "version: 1\nparadigm: levers\nlevers: 3\n"


@pytest.mark.parametrize(
    ("cells", "load", "said"),
    [
        (
            "cell",
            "return None",
            "The plugin '*conftest.py', cheesebench_families: TypeError: *abstract class Levers *cells*",
        ),
        (
            "cells",
            "return None",
            "levers.protocol.yaml: the family 'levers': load returned None without an error. *",
        ),
        (
            "cells",
            "return 3",
            "levers.protocol.yaml: the family 'levers': load returned 3, an int. Return a Base*",
        ),
        (
            "cells",
            "return {}['x']",
            "levers.protocol.yaml: the family 'levers': load raises KeyError: 'x' (conftest.*",
        ),
    ],
)
def test_an_incomplete_family_is_one_line(
    project: pytest.Pytester, cells: str, load: str, said: str
) -> None:
    (project.path / "levers.protocol.yaml").write_text(LEVERS, encoding="utf-8")
    project.makeconftest(FAMILY.replace("CELLS", cells).replace("LOAD", load))
    result = project.runpytest(
        "--model", "random", "--protocols", "levers.protocol.yaml"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        len(
            [
                line
                for line in result.errlines
                if line and not line.startswith("Exit code 4")
            ]
        )
        == 1
    )
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("return 3", "cells returned 3, an int. Return a list of CellPlan objects."),
        (
            "return [3]",
            "cells returned a list with 3, an int. Return a list of CellPlan objects.",
        ),
        (
            "yield {}['x']",
            "cells raises KeyError: 'x' (conftest.py:*). Fix or remove the plugin.",
        ),
    ],
)
def test_cells_that_go_wrong_are_an_error_of_their_protocol(
    project: pytest.Pytester, wrong: str, said: str
) -> None:
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nfrom cheesebench import installed_plugins\n"
            "class Odd(type(installed_plugins().families['arena'])):\n"
            "    name = 'odd'\n"
            "    def matches(self, tree): return 'few' in str(tree.position)\n"
            "    def load(self, *given):\n"
            "        import dataclasses\n"
            "        return dataclasses.replace(super().load(*given), family='odd')\n"
            f"    def cells(self, specification, request): {wrong}\n"
            "def cheesebench_families(): return [Odd()]\n"
        )
    result = project.runpytest(
        "--model",
        "walker",
        "lab/few.protocol.yaml",
        "lab/east.protocol.yaml",
        "--subjects=6",
    )
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([f"*The family 'odd': {said.replace('[', '[[]')}*"])


AGENT = """
from cheesebench import AgentSpec

class Mouse:
    def __init__(self, context): pass
    def begin_trial(self, observation): pass
    def act(self, observation): return [0]
    OBSERVE

def cheesebench_agents(): return [AgentSpec("mouse", CREATE)]
"""


@pytest.mark.parametrize(
    ("observe", "create", "said"),
    [
        (
            "",
            "Mouse",
            "*create returned a Mouse, which has no 'observe'. Add 'def observe(self, action, *",
        ),
        (
            "def observe(self, action): pass",
            "Mouse",
            "*a Mouse, whose 'observe' takes (action). Write 'def observe(*",
        ),
        (
            "",
            "lambda context: Mouse",
            "*The agent 'mouse': create returned the class Mouse. Return an object of this class*",
        ),
    ],
)
def test_an_incomplete_agent_is_one_line(
    project: pytest.Pytester, observe: str, create: str, said: str
) -> None:
    project.makeconftest(
        AGENT.replace("OBSERVE", observe or "pass").replace("CREATE", create)
    )
    result = project.runpytest(
        "--model", "mouse", "lab/east.protocol.yaml", "--subjects=2"
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    for line in ("*Traceback*", "*INTERNALERROR*", "*TypeError*"):
        result.stdout.no_fnmatch_line(line)


ASKER = """
from cheesebench import Message, ModelAgentSpec

class Asker:
    def __init__(self, context): pass
    def begin_trial(self, observation): pass
    def prompt(self): PROMPT
    def read(self, reply): READ
    def observe(self, action, reward, observation, ended): pass
    def tally(self): return {}

def cheesebench_model_agents(): return [ModelAgentSpec(name="asker", create=Asker)]
"""
MESSAGES = 'return (Message("user", ("go",)),)'


@pytest.mark.parametrize(
    ("prompt", "read", "said"),
    [
        (
            "return 'go'",
            "return [0]",
            "The agent 'asker': prompt returned 'go', a str. Return a list of Message objects.",
        ),
        (
            "return None",
            "return [0]",
            "The agent 'asker': prompt returned None. Return a list of Message objects.",
        ),
        (
            MESSAGES,
            "return 0",
            "The agent 'asker': read returned 0, an int. Return a list of actions such as [[]0].",
        ),
    ],
)
def test_an_agent_that_asks_wrongly_is_one_line(
    project: pytest.Pytester, prompt: str, read: str, said: str
) -> None:
    project.makeconftest(ASKER.replace("PROMPT", prompt).replace("READ", read))
    (project.path / "replies.yaml").write_text(
        "replies: [{say: 'ACTIONS: STAY'}]\n", encoding="utf-8"
    )
    given = (
        "--model",
        "scripted:replies.yaml",
        "--agent",
        "asker",
        "lab/east.protocol.yaml",
        "--subjects=2",
    )
    result = project.runpytest(*given)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*could not be run: stopped in trial 1: {said}"])
    result.stdout.no_fnmatch_line("*Traceback*")


HEADING_ONLY = """
import cheesebench
class Blank:
    "Shows the heading, and nothing of the maze."
    name, characters = "blank", "NESW"
    def render(self, scene, column, row, heading): return cheesebench.HEADINGS[heading]
    def max_length(self, scene): return 1
def cheesebench_views(): return [Blank()]
"""


def test_a_view_that_hides_a_cue_takes_no_other_cell_with_it(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(HEADING_ONLY)
    result = project.runpytest(
        *("--model", "random", "--protocols", "t_maze,dnms@paper"),
        *("--view", "ascii_2d,blank", "--subjects", "2"),
    )
    # ``dnms@paper`` names no ability, so it is refused in no view.
    assert result.parseoutcomes() == {"inconclusive": 3, "errors": 1}
    result.stdout.fnmatch_lines(
        ["'t_maze' cannot be judged in the view 'blank', which does not show: *"]
    )
