from __future__ import annotations

import re

import pytest

from cheesebench.redaction import REDACTED, inert, redact


def test_values_of_secret_variables_and_what_looks_like_a_key_are_taken_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "correct horse battery")
    monkeypatch.setenv("SHORT_TOKEN", "maze")
    text = "401: correct horse battery; Authorization: Bearer abcdefgh12345; sk-proj-0123456789abcdef in the maze"
    assert (
        redact(text)
        == f"401: {REDACTED}; Authorization: Bearer {REDACTED}; {REDACTED} in the maze"
    )


@pytest.mark.parametrize(
    "name",
    [
        "VENN_AUTH",
        "DB_PASS",
        "VENN_PAT",
        "PAT",
        "VENN_LICENCE",
        "VENN_LICENSE",
        "My_Access",
    ],
)
def test_names_that_end_in_a_word_for_a_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "correct horse battery")
    assert redact("401: correct horse battery") == f"401: {REDACTED}"


@pytest.mark.parametrize(
    "name", ["VENN_PATH", "SSH_AUTH_SOCK", "VENN_COMPASS", "PATTERN", "AUTHOR"]
)
def test_names_that_only_look_like_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "correct horse battery")
    assert redact("the correct horse battery") == "the correct horse battery"


def test_a_number_of_tokens_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_TOKENS", "100000000")
    monkeypatch.setenv("ITS_TOKEN", "200000000")
    monkeypatch.setenv("ITS_TOKENS", "horse, battery")
    assert (
        redact("100000000 200000000 horse, battery")
        == f"100000000 {REDACTED} {REDACTED}"
    )


KEY = "sk-proj-Xy7Qw2Lm9Zr4Tb6Nv8Kc1"


@pytest.mark.parametrize(
    "echo",
    [
        KEY[3:11],
        KEY[12:25],
        "\n".join(KEY),
        "\x1b[31m".join((KEY[:9], KEY[9:13], KEY[13:])),
        "\u200b".join(KEY[6:20]),
        f"{KEY[:14]}\r\n   {KEY[14:]}",
        f"{KEY}{KEY[::-1]}{KEY[8:18]}",
    ],
)
def test_no_piece_of_a_key_stays_however_it_is_split(
    echo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOUSE_KEY", KEY)
    for text in (f"before {echo} after", f"{'#..#' * 99}\n{echo} {'#' * 400}"):
        bare = re.sub(r"\x1b\[31m|[\s\u200b]", "", redact(text))
        assert REDACTED in bare
        assert not any(KEY[at : at + 8] in bare for at in range(len(KEY) - 7))
    assert redact(f"before {echo} after").startswith("before ")
    assert redact(f"before {echo} after").endswith(" after")


def test_paths_and_words_in_secret_variables_have_no_secret_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "GOOGLE_APPLICATION_CREDENTIALS", "/home/mouse/projects/key-2026.json"
    )
    monkeypatch.setenv("DB_PASSWORD", "password4everyone")
    text = "/home/mouse/projects/results: the password is wrong"
    assert redact(text) == text


@pytest.mark.parametrize(
    "text", ["", "an ordinary task-list", "risk-averse-subjects-of-the-maze", "sk-1"]
)
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text


def test_no_ci_finds_a_command_in_a_text() -> None:
    for text in (
        "::error file=a::x",
        "a ::warning::b",
        "##[error]x",
        "##vso[task.setvariable]x",
    ):
        assert inert(text) != text
        assert not re.search(r"(^|\s)::|##\[|##vso", inert(text))
    for text in ("lab/east.protocol.yaml::east", "a :: b", "## Title", "http://x"):
        assert inert(text) == text
