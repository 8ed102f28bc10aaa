"""Profiles as arguments: which file, which options, and what goes before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.profiles import expanded, find_file, read_profile

PROFILE = """
[tool.cheesebench.profiles.nightly]
model = ["statue", "walker"]
subjects = 17
exit-zero = true
retry-errors = false
"""


def write(directory: Path, text: str = PROFILE) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_profile_is_typed_out_and_what_is_typed_goes_before_it(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, PROFILE)
    added, names = expanded(["--profile", "nightly"], path)
    assert names == ["nightly"]
    assert added == [
        "--cheese-model=statue",
        "--cheese-model=walker",
        "--cheese-subjects=17",
        "--cheese-exit-zero",
    ]
    for typed in ("--model=walker", "--cheese-model"):
        arguments = [typed, "--cheese-profile=nightly"]
        assert expanded(arguments, path)[0] == added[2:]
    assert expanded(["--subjects=3", "nightly"], path) == ([], [])


def test_a_command_takes_the_options_that_it_knows_by_their_short_spelling(
    tmp_path: Path,
) -> None:
    known = {"--profile", "--model", "--subjects"}
    arguments = ["plan", "--profile=nightly", "--subjects", "3"]
    added, _ = expanded(arguments, write(tmp_path), known)
    assert added == ["--model=statue", "--model=walker"]


def test_a_flag_that_is_off_adds_nothing_and_no_name_is_no_profile(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, PROFILE.replace("exit-zero = true", "exit-zero = false"))
    assert "--cheese-exit-zero" not in expanded(["--profile=nightly"], path)[0]
    with pytest.raises(UnknownNameError, match="no profile ''"):
        expanded(["--profile"], path)
    with pytest.raises(OptionError, match=r"no pyproject\.toml here or above has"):
        expanded(["--profile=nightly"], None)


def test_the_last_of_two_profiles_counts(tmp_path: Path) -> None:
    path = write(tmp_path, f"{PROFILE}[tool.cheesebench.profiles.short]\nsubjects = 2")
    arguments = ["--profile=nightly", "--profile", "short"]
    assert expanded(arguments, path) == (
        ["--cheese-subjects=2"],
        ["nightly", "short"],
    )


def test_the_nearest_file_with_profiles_is_read(tmp_path: Path) -> None:
    above = write(tmp_path)
    below = tmp_path / "a" / "b"
    write(below.parent, "[project]\nname = 'x'\n")
    below.mkdir()
    assert find_file(below) == above
    nearer = write(below)
    assert find_file(below) == nearer
    assert read_profile("nightly", nearer)["subjects"] == 17


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("subjects = true", r"subjects = True: write a whole number\."),
        ("subjects = 2.5", r"subjects = 2.5: write a whole number\."),
        ("subjects = [1, 2]", r"subjects: give one value, not a list\."),
        ("model = [1]", r"model = 1: write text in quotes\."),
        ("timeout = 'x'", r"timeout = 'x': write a number\."),
        ("profile = 'other'", "profile is not a CheeseBench run option"),
    ],
)
def test_a_value_of_the_wrong_kind_is_shown(
    key: str, said: str, tmp_path: Path
) -> None:
    path = write(tmp_path, f"[tool.cheesebench.profiles.nightly]\n{key}\n")
    with pytest.raises(OptionError, match=said):
        read_profile("nightly", path)


def test_a_large_file_is_refused_instead_of_cut(tmp_path: Path) -> None:
    path = write(tmp_path, "#\n" * 2**19 + "[tool.cheesebench.profiles.nightly]\n")
    with pytest.raises(OptionError, match="it has more than 1024 KB"):
        read_profile("nightly", path)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[tool.cheesebench]\nprofiles = 3", "profiles must be a table"),
        (
            "[tool.cheesebench.profiles]\nnightly = 3",
            r"profiles\.nightly must be a table",
        ),
        ("[tool", "cannot be read"),
    ],
)
def test_what_is_no_table_is_named(text: str, wrong: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(OptionError, match=wrong):
        find_file(tmp_path)
    with pytest.raises(OptionError, match=wrong):
        read_profile("nightly", path)
