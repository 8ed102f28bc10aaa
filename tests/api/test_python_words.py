"""No text that reaches a Python user names an option of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench import BackendSpec, ChatReply, Usage
from cheesebench.arguments import report_in_python
from cheesebench.cli import main
from tests.pytest_plugin.conftest import corridor

#: An option, and a command that names one. ``cheesebench report RUN --verify`` is for a
#: person to type: it has no function.
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+[^\n]{0,40}")
TO_TYPE = re.compile(r"cheesebench report RUN --verify")
#: What a reader of a page does not see.
HIDDEN = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


def options_in(text: str) -> list[str]:
    if "srcdoc=" in text:
        text = unescape(text)
    if "<html" in text:
        text = HIDDEN.sub(" ", text)
    return OPTION.findall(TO_TYPE.sub("", text))


def shown(found: Any) -> Iterator[str]:
    """Yield what a notebook and ``print`` show of a result, and its tables."""
    yield repr(found)
    yield str(found)
    for name in ("_repr_html_", "_repr_markdown_"):
        if hasattr(found, name):
            yield getattr(found, name)()
    for name in ("frame", "verdicts", "journal"):
        if hasattr(found, name):
            yield getattr(found, name)().to_csv()
    yield from inside(found)


def inside(found: Any, depth: int = 6) -> Iterator[str]:
    """Yield all texts in the fields of a result."""
    if isinstance(found, str):
        yield found
    elif depth and is_dataclass(found):
        for one in fields(found):
            yield from inside(getattr(found, one.name), depth - 1)
    elif depth and isinstance(found, list | tuple):
        for part in found:
            yield from inside(part, depth - 1)


def reports(run: cheesebench.Run) -> Iterator[str]:
    for name in ("text", "markdown", "html", "matrix", "figures", "comment"):
        yield run.report(name)
    yield run.html().read_text(encoding="utf-8")
    yield (run.directory / "report.md").read_text(encoding="utf-8")
    yield from inside(run.summary)
    yield repr(run.summary)
    with suppress(cheesebench.OptionError):
        yield from shown(run.trial("east"))


def answers(text: str) -> BackendSpec:
    name = text.split()[0].strip(":").lower()
    usage = Usage(prompt=100, completion=5)
    return BackendSpec.of(name, lambda messages: ChatReply(text=text, usage=usage))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("east", "west"):
        path = tmp_path / f"{name}.protocol.yaml"
        path.write_text(corridor(name, trials=4), encoding="utf-8")
    return tmp_path


def test_what_python_shows_names_arguments(lab: Path) -> None:
    told = list[str]()

    def run(models: Any, name: str, **options: Any) -> cheesebench.Run:
        given: dict[str, Any] = {"subjects": 6, "seed": 1, "view": "ascii_2d"}
        return cheesebench.run(
            models, lab, run_id=name, progress=told.append, plugins=plugins, **given | options
        )  # fmt: skip

    plugins = [answers("Actions: FORWARD"), answers("Hm")]
    runs = [
        run(["random", "tabular-ql"], "plain"),
        run("random", "corrected", familywise=True),
        run("tabular-ql", "controlled", control="memoryless"),
        run("actions/a", "stopped", max_tokens=2000),
        run("hm/a", "mute"),
    ]
    for one in runs:
        told += [*shown(one), *reports(one)]
    board = cheesebench.report(["corrected", "controlled"])
    told += [*shown(board), board.html().read_text(encoding="utf-8")]
    graded = [0.3, 0.4, 0.7, 0.6, 0.2, 0.5], [0.2, 0.4, 0.5, 0.3, 0.1, 0.4]
    both = ("random", "tabular-ql")
    for found in (
        cheesebench.compare("plain", "controlled", models=both, tell=told.append),
        cheesebench.compare("plain"),
        cheesebench.verdict("plain"),
        cheesebench.verdict(*graded),
        cheesebench.verdict(*graded, only_seen=True),
        cheesebench.plan("gpt-5.4-mini", lab, subjects=2),
        cheesebench.lint(lab),
        cheesebench.catalogue("backends"),
        cheesebench.catalogue("agents"),
    ):
        told += shown(found)
    assert len("".join(told)) > 100_000
    assert [one for text in told for one in options_in(text)] == []


def test_a_notebook_says_that_a_design_gives_no_verdict(lab: Path) -> None:
    run = cheesebench.run("random", lab, design="smoke", progress=False)
    said = "Design 'smoke' never gives a PASS or a FAIL"
    assert repr(run).endswith(f"; {said}>")
    assert run._repr_markdown_().endswith(f"{said}.\n")


MISTAKES: dict[str, Callable[[], object]] = {
    "a run with its id": lambda: cheesebench.run("random", run_id="plain", subjects=0),
    "an option of models": lambda: cheesebench.run("random", history=3),
    "no such run": lambda: cheesebench.run(resume="nope"),
    "no such model": lambda: cheesebench.plan("randon"),
    "a negative budget": lambda: cheesebench.plan("gpt-5.4-mini", max_cost=-1),
    "scores beyond the range": lambda: cheesebench.verdict([1, 2, 3], value=0.5),
    "one model": lambda: cheesebench.verdict([1, 0, 1], value=0.5, only_seen=True),
    "nothing to compare with": lambda: cheesebench.verdict([1, 0, 1]),
    "a format": lambda: cheesebench.figures("nope", formats="gif"),
}


@pytest.mark.parametrize("call", MISTAKES.values(), ids=MISTAKES)
def test_an_error_in_python_names_arguments(
    call: Callable[[], object], lab: Path
) -> None:
    with pytest.raises(cheesebench.CheeseBenchError) as caught:
        call()
    assert options_in(str(caught.value)) == []


def test_a_changed_log_is_told_in_arguments(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = cheesebench.run("random", lab, subjects=2, progress=False)

    def verify(log: object) -> None:
        raise cheesebench.RunLogError("Changed. Start with --run-id NEW.")

    monkeypatch.setattr("cheesebench.experiment.log.RunLog.verify", verify)
    with pytest.raises(cheesebench.RunLogError, match="Start with run_id=NEW"):
        _ = cheesebench.open_run(run).summary


def test_commands_name_options(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands call the same functions."""
    Path("a.csv").write_text("item,score\n1,0.3\n2,0.4\n3,0.7\n", encoding="utf-8")
    Path("b.csv").write_text("item,score\n1,0.2\n2,0.2\n3,0.6\n", encoding="utf-8")
    assert main(["verdict", "a.csv", "b.csv"]) == 0
    assert "without it (--only-seen), p = " in capsys.readouterr().out
    assert main(["verdict", "a.csv", "--value", "0.5", "--only-seen"]) == 2
    assert "--only-seen is about two models" in capsys.readouterr().err
    with pytest.raises(cheesebench.OptionError, match="only_seen=True is about two"):
        cheesebench.verdict("a.csv", value=0.5, only_seen=True)


def test_only_the_sentences_of_a_page_are_changed() -> None:
    page = (
        "<style>:root { --model: #fff; }</style><p title='--seed 3'>less with <b>--familywise</b>.\n"
        "Use --design smoke.</p><pre>--seed 3</pre><script>said = '--seed 3'</script><p>--seed 4</p>"
    )
    changed = (
        page.replace("--familywise", "familywise=True")
        .replace("--design smoke", "design='smoke'")
        .replace("--seed 4", "seed=4")
    )
    assert report_in_python(page, ".html") == changed
    for suffix in (".txt", ".md"):
        assert report_in_python("--seed 3", suffix) == "seed=3"
    for suffix in (".json", ".svg", ".csv"):
        assert report_in_python("--seed 3", suffix) == "--seed 3"
