"""The files of a run in formats for sharing it, whole."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench import __version__
from cheesebench.chat import (
    BackendContext,
    BackendSpec,
    ChatReply,
    ChatRequest,
    ModelEntry,
    Usage,
)
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.exporting import Source
from cheesebench.interop.inspect_log import write_inspect
from cheesebench.interop.shared import (
    _name,
    write_every_eval_ever,
    write_hugging_face,
    write_psych_ds,
)
from cheesebench.plugin_manager import PluginManager
from tests.reports.html.conftest import make_log, maze
from tests.stored import check_stored


class Walks:
    """A model server in this process: it goes on, at some prompts it wonders."""

    def __init__(self, context: BackendContext) -> None:
        pass

    async def complete(self, request: ChatRequest) -> ChatReply:
        number = sum(map(ord, "".join(message.text for message in request.messages)))
        walks = "I go on.\nACTIONS: F, F, F, F"
        return ChatReply(
            text=walks if number % 4 else "I wonder.",
            reasoning="The goal lies east." if number % 2 else "",
            finish="length" if number % 7 == 3 else "stop",
            usage=Usage(prompt=100, completion=20, cached=60, reasoning=7, written=5),
            model="walks-1",
        )

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def asked(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunLog, PluginManager]]:
    """Two subjects of a language model in a little maze."""
    directory, plugins = tmp_path_factory.mktemp("asked"), PluginManager()
    backend = BackendSpec(name="walks", connect=Walks)
    plugins.register(
        SimpleNamespace(cheesebench_backends=lambda: [backend]), name="walking"
    )
    entry = ModelEntry(name="lab/walks", backend="walks", id="w")
    model = language_model(plugins, entry, settings={"actions": 4, "history": 1})
    little = maze(directory)
    plan = plan_cell(
        little,
        "lab/walks",
        "ascii_2d",
        find_design("cohort", 2),
        agent=model.agent.name,
        settings=model.settings,
    )
    options = {"seed": 3, "design": "cohort"}
    log = RunLog.create(directory, "run-asked", [(plan, little)], options=options)
    language = LanguageModels(log, {"lab/walks": model})
    with RunSession(
        log, plugins, [(plan, little)], seed=3, processes=0, language=language
    ) as session:
        session.finish()
    yield log, plugins
    log.close()


@pytest.fixture(scope="module")
def walked(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunLog, PluginManager]]:
    directory = tmp_path_factory.mktemp("walked")
    log, plugins = make_log(directory, [maze(directory), maze(directory, "pool")])
    yield log, plugins
    log.close()


#: Numbers and names that each run, day, version or machine has of its own.
OWN = (
    (r'"(seconds|total_time|working_time|working_start|time)": [\d.e-]+', r'"\1": 0'),
    (r"\d{4}-\d\d-\d\d(T[\d:.]+(\+00:00|Z)?)?", "DATE"),
    (r'"(\w+_timestamp)": "\d+"', r'"\1": "0"'),
    (r'"packages": \{[^}]*\}', '"packages": {}'),
    (r'"revision": \{[^}]*\}', '"revision": {}'),
    (r'"dirty": \w+', '"dirty": false'),
    (re.escape(f'"version": "{__version__}"'), '"version": "0"'),
)


def calm(text: str) -> str:
    for own, instead in OWN:
        text = re.sub(own, instead, text)
    return text


def film(directory: Path) -> str:
    """Return the first 100 lines of each file; of a list of trials, three."""
    parts = []
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        lines = path.read_text("utf-8").splitlines()
        shown = lines[: 3 if path.suffix == ".jsonl" else 100]
        name = path.relative_to(directory).as_posix()
        parts += [f"== {name}: {len(lines)} lines", *shown]
    return calm("\n".join(parts)) + "\n"


Run = tuple[RunLog, PluginManager]
Write = Callable[[Path, Run], object]
FORMATS: dict[str, Write] = {
    "every_eval_ever": lambda to, run: list(write_every_eval_ever(to, run[0])),
    "hugging_face": lambda to, run: list(write_hugging_face(to, run[0], "lab/set")),
    "psych_ds": lambda to, run: write_psych_ds(to, Source(*run)),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", ["walked", "asked"])
def test_the_files_of_a_run(
    name: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    FORMATS[name](tmp_path / "to", request.getfixturevalue(kind))
    check_stored(f"{name}.{kind}.txt", film(tmp_path / "to"))


@pytest.mark.parametrize("kind", ["walked", "asked"])
def test_a_log_for_inspect(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    log, _ = request.getfixturevalue(kind)
    plan, path = log.plans()[0], tmp_path / "log.eval"
    number = write_inspect(path, log, plan)
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        assert len([one for one in names if one.startswith("samples/")]) == number
        shown: dict[str, Any] = {
            one: json.loads(file.read(one))
            for one in names
            if not one.startswith("samples/") or "trial-0002" in one
        }
    parts = [
        f"== {name}\n{json.dumps(content, indent=1)}" for name, content in shown.items()
    ]
    check_stored(f"inspect.{kind}.txt", calm("\n".join(parts)) + "\n")


def test_a_name_of_a_file_has_no_other_characters() -> None:
    named = [_name(one) for one in ("a/b c", ".hidden.", "---", "Ä_1-x.y")]
    assert named == ["a-b-c", "hidden", "none", "_1-x.y"]
