"""What somebody else's conftest.py does wrong is one line with its name, and no internal error."""

from __future__ import annotations

import pytest

from cheesebench.experiment.log import RunLog


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def cheesebench_views(): raise OSError('oh')", "cheesebench_views: OSError: oh. Fix it, or remove it."),
        ("def cheesebench_views(): raise SystemExit(3)", "cheesebench_views: SystemExit: 3. Fix it, or remove it."),
        ("def cheesebench_views(): return 'ascii'", "cheesebench_views: returned 'ascii'. Return a list of *"),
        ("def cheesebench_views(): return 5", "cheesebench_views: TypeError: *"),
        ("def cheesebench_backends(): return [dict]", "cheesebench_backends: returned <class 'dict'>. Return a list *"),
        ("def cheesebench_models(): return [None]", "cheesebench_models: returned None. Return a list *"),
        ("def cheesebench_protocols(): return ['lab']", "cheesebench_protocols: returned 'lab'. Return paths of *"),
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
                f"cheesebench_models: Price({said}): give dollars per million tokens, a number from 0.",
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
def test_a_hook_that_goes_wrong_is_one_line(project: pytest.Pytester, code: str, said: str) -> None:
    project.makeconftest(code)
    result = project.runpytest("--model", "openai/any", "--view", "ascii_2d", "--base-url", "http://127.0.0.1:1/v1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line]
    assert len(errors) == 1
    result.stderr.fnmatch_lines([f"ERROR: *{said.replace('[', '[[]')}"])


@pytest.mark.parametrize("code", ["0", "3", "'enough'"])
@pytest.mark.parametrize("folder", [".", "lab", "lab/deeper"])
def test_who_ends_the_program_is_named(project: pytest.Pytester, folder: str, code: str) -> None:
    deeper = project.path / "lab/deeper"
    deeper.mkdir()
    (project.path / "lab/west.protocol.yaml").rename(deeper / "west.protocol.yaml")
    (project.path / folder / "conftest.py").write_text(f"import sys\nsys.exit({code})\n", encoding="utf-8")
    result = project.runpytest_subprocess("--model", "random", "lab")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = f"conftest.py:2: ends the program while it is loaded (SystemExit: {code.strip(chr(39))}). Fix it, or *"
    result.stderr.fnmatch_lines([f"ERROR: *{said}"])
    assert len([line for line in result.errlines if "PytestRemovedIn" not in line and line.startswith("ERROR")]) == 1
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_one_observer_that_fails_is_named_and_others_go_on(project: pytest.Pytester) -> None:
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
    result = project.runpytest("--model", "walker", "lab/few.protocol.yaml", "--cheese-run-id", "one")
    result.stdout.fnmatch_lines(
        [
            "The observer '*lab*conftest.py' failed in cheesebench_trial_finished: SystemExit: 0; *",
            "The observer '*conftest.py' failed in cheesebench_run_finished: OSError: gone; *",
        ]
    )
    assert len((project.path / "trials.txt").read_text().splitlines()) == 12
    assert (project.path / "seen.txt").is_file()
    with RunLog.open_read_only(project.path / "results" / "one") as log:
        files = {what for name, what in log.manifest["plugins"].items() if name.startswith("pytest:")}
    assert files == {str(project.path / "conftest.py"), str(project.path / "lab" / "conftest.py")}


@pytest.mark.parametrize(
    ("drawing", "said"),
    [
        ("return None", "The view 'blank' has drawn None. Its render must return text."),
        ("return 1 // 0", "The view 'blank' fails: ZeroDivisionError: integer *. Please report this to its author."),
        ("raise SystemExit(3)", "The view 'blank' fails: SystemExit: 3. Please report this to its author."),
        ("raise KeyboardInterrupt", "stopped in trial 0: KeyboardInterrupt (conftest.py:*)"),
    ],
)
def test_a_view_that_fails_is_an_error_with_its_cause(project: pytest.Pytester, drawing: str, said: str) -> None:
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nclass Blank:\n"
            "    name, characters = 'blank', ''\n"
            f"    def render(self, scene, column, row, heading): {drawing}\n"
            "    def max_length(self, scene): return 9\n"
            "def cheesebench_views(): return [Blank()]\n"
        )
    result = project.runpytest("--model", "walker", "lab/few.protocol.yaml", "--view", "blank")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_an_executor_that_goes_wrong_is_shown_from_where_its_cell_waits(project: pytest.Pytester) -> None:
    with (project.path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nfrom cheesebench import ExecutorSpec\n"
            "class Odd:\n"
            "    capacity = 1\n"
            "    async def run(self, job, report): return {}['nobody']\n"
            "    async def close(self): pass\n"
            "def cheesebench_executors(): return [ExecutorSpec('odd', lambda context: Odd(), in_process=True)]\n"
        )
    result = project.runpytest("--model", "walker", "lab/few.protocol.yaml", "--executor", "odd")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*async def run(self, job, report): return*", "E *KeyError: 'nobody'"])
    assert "Cause: KeyError: 'nobody'" in " ".join(result.stdout.str().split())
    for before in ("/pluggy/", "/_pytest/"):  # pytest's own way to the cell is of no use to anybody
        result.stdout.no_fnmatch_line(f"*{before}*")
