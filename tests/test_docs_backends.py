"""The page on backends: its lists, scripts and plugins work as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from cheesebench.chat import FaultKind
from cheesebench.models import load_models
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.backends.script import read_script

PAGE = (Path(__file__).parents[1] / "docs" / "backends.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_list_of_models(tmp_path: Path) -> None:
    models, _ = blocks("yaml")
    path = tmp_path / "my_models.yaml"
    path.write_text(models, encoding="utf-8")
    [entry] = load_models(path)
    assert entry.name == "my-mouse"
    assert entry.options.keys() <= PluginManager().backend("openai").options.keys()


def test_the_script(tmp_path: Path) -> None:
    _, script = blocks("yaml")
    path = tmp_path / "replies.yaml"
    path.write_text(script, encoding="utf-8")
    assert len(read_script(path).lines) == 3


def test_every_option_and_every_fault_is_named() -> None:
    for name in PluginManager().backend("openai").options:
        assert f"| `{name}` |" in PAGE
    table = PAGE.partition("| kind of fault |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == set(get_args(FaultKind))


def play(pytester: pytest.Pytester, model: str) -> str:
    result = pytester.runpytest_subprocess("--model", model, "--protocols", "t_maze", "--design", "smoke")
    # Smoke claims nothing, so nothing passes or fails: what counts is that nothing breaks.
    assert result.ret in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), result.stderr.str()
    result.assert_outcomes(errors=0)
    output: str = result.stdout.str()
    return output


def test_the_backend_of_one_s_own(pytester: pytest.Pytester) -> None:
    plugin, _ = blocks("python")
    pytester.makeconftest(plugin)
    assert re.search(r"Calls: \d+ calls", play(pytester, "parrot/any"))


def test_the_script_plays(pytester: pytest.Pytester) -> None:
    _, script = blocks("yaml")
    pytester.path.joinpath("replies.yaml").write_text(
        script.replace("latency: [0.1, 0.3]", "latency: [0, 0.001]"), encoding="utf-8"
    )
    assert re.search(r"Calls: \d+ calls", play(pytester, "scripted:replies.yaml"))


def test_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    _, server = blocks("python")
    exec(compile(server, "docs/backends.md", "exec"), {})
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1\n", capsys.readouterr().out)
