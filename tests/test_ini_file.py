"""The settings of pytest's ini file and of the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cheesebench.errors import OptionError
from cheesebench.ini_file import misspelt_variables, usual_protocols

INI = "[pytest]\n# cheese_protocols_old = x\n'cheese_protocols' = lab\ncheese_protocls = lab\n"


@pytest.fixture
def ini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHEESEBENCH_PROTOCOLS", raising=False)
    (tmp_path / "sub" / "lab").mkdir(parents=True)
    path = tmp_path / "sub" / "pytest.ini"
    path.write_text(INI, encoding="utf-8")
    return path


def test_protocols_are_relative_to_the_file_that_names_them(ini: Path) -> None:
    found, where = usual_protocols(["lab", "t_maze"], ini)
    assert found == [str(ini.parent / "lab"), "t_maze"]
    assert where == f"sub{os.sep}pytest.ini:3: cheese_protocols"
    assert usual_protocols(["sub"], None) == (["sub"], "-o: cheese_protocols")


def test_the_environment_names_them_if_the_file_does_not(
    ini: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert usual_protocols((), ini) == ([], "CHEESEBENCH_PROTOCOLS")
    monkeypatch.setenv("CHEESEBENCH_PROTOCOLS", os.pathsep.join(["a", "", "b"]))
    assert usual_protocols() == (["a", "b"], "CHEESEBENCH_PROTOCOLS")
    assert usual_protocols(["t_maze"])[0] == ["t_maze"]


OPTION = "is an option: write it into addopts, or into a profile."


@pytest.mark.parametrize(
    ("key", "place", "hint"),
    [
        ("cheese_protocls", "pytest.ini:4", "Did you mean 'cheese_protocols'?"),
        ("cheesebench_subjects", "-o", f"--subjects {OPTION}"),
        ("chese_base-url", "-o", f"--base-url {OPTION}"),
    ],
)
def test_a_setting_like_ours_is_a_mistake(
    ini: Path, key: str, place: str, hint: str
) -> None:
    with pytest.raises(OptionError) as caught:
        usual_protocols((), ini, ["other", key, "cheese_protocols"])
    said = f"{place}: There is no setting '{key}'. {hint}"
    assert str(caught.value).removeprefix(f"sub{os.sep}") == said


def test_an_unknown_setting_is_one_only_if_no_plugin_may_have_it(ini: Path) -> None:
    assert usual_protocols((), ini, ["cheese_wheel"])[0] == []
    with pytest.raises(OptionError) as caught:
        usual_protocols((), ini, ["cheese_wheel"], plugins_known=True)
    said = "-o: There is no setting 'cheese_wheel'. Known: cheese_"
    assert str(caught.value).startswith(said)
    assert usual_protocols((), ini, ["wheel"], plugins_known=True)[0] == []


def test_variables_like_ours_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CHEESEBENCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CHEESEBENCH_MODELS", "x")
    monkeypatch.setenv("CHEESEBENCH_WHEEL", "x")
    assert misspelt_variables() == []
    monkeypatch.setenv("CHEESEBENCH_PROTOCOL", "x")
    monkeypatch.setenv("CHEESEBENCH_MODEL", "x")
    monkeypatch.setenv("OTHER_MODEL", "x")
    assert [said.partition("'")[2] for said in misspelt_variables()] == [
        f"CHEESEBENCH_{name}'. Did you mean 'CHEESEBENCH_{name}S'?"
        for name in ("MODEL", "PROTOCOL")
    ]
