"""Errors of a backend never show the key, wherever it is hidden."""

from __future__ import annotations

import traceback

import pytest

from cheesebench.errors import CheeseBenchError, OptionError, PluginError
from cheesebench.experiment.language_models import backend_errors_explained

KEY = "sk-secret-abcdef1234567890"


class OwnError(OptionError):
    """A third-party error class whose text holds the key."""

    def __init__(self, kept: str) -> None:
        super().__init__("no")
        self.kept = kept

    def __str__(self) -> str:
        return f"refused {self.kept}"


def noted() -> CheeseBenchError:
    error = OptionError("refused")
    error.add_note(f"the key is {KEY}")
    return error


def caused() -> CheeseBenchError:
    error = OptionError("refused")
    error.__cause__ = ValueError(KEY)
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OptionError(f"refused {KEY}"), OptionError),
        (OptionError("refused", ((KEY,),)), OptionError),
        (OwnError(KEY), PluginError),
        (noted(), OptionError),
        (caused(), OptionError),
        (RuntimeError(KEY), PluginError),
        (SystemExit(KEY), PluginError),
    ],
    ids=["text", "nested", "own class", "note", "cause", "any error", "exit"],
)
def test_no_key_gets_out(
    error: BaseException, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", KEY)
    with (
        pytest.raises(CheeseBenchError) as caught,
        backend_errors_explained("mine", "connecting"),
    ):
        raise error
    assert type(caught.value) is kind
    shown = "".join(
        traceback.TracebackException.from_exception(caught.value).format(chain=True)
    )
    assert KEY not in shown + repr(caught.value.args)
