"""Every command, YAML block and script of the documentation is executed, page by page,
as a reader would.

A page is read from top to bottom in an empty directory of its own. Shell blocks are run
by bash with ``pytest`` and ``cheesebench`` on the PATH (designs are ``smoke`` unless a
command says otherwise), YAML is loaded by the program that reads such files, Python is
run, SQL queries the last run. A block in a language that no test runs is a failure.
Instructions for the test are comments before the block, which the reader does not see:

``<!-- test: skip: REASON -->``
    It cannot run here. Its options are parsed, its models and extras looked up.
``<!-- test: file: NAME -->``
    The block is this file (YAML may say so in its first line: ``# NAME``).
``<!-- test: fragment: FILE -->``
    The block replaces these keys of the protocol FILE, and the whole is checked.
``<!-- test: exit: N -->``
    The last command of the block ends with N.
``<!-- test: output -->``
    The last block of commands printed this (``...`` stands for anything).
``<!-- test: setup: COMMANDS -->``
    Run at this place of the page.
``<!-- test: server -->``
    The page has a server that speaks the OpenAI protocol: every
    ``http://127.0.0.1:PORT/v1`` is its address, and it answers the model ``NAME``.
``<!-- test: addopts: OPTIONS -->``
    Options of all the page's pytest commands, instead of
    ``--design smoke --cheese-exit-zero``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from cheesebench.cli import build_parser
from cheesebench.commands import COMMANDS
from cheesebench.experiment.cells import find_study
from cheesebench.models import load_models, resolve_model
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends.scripted import read_script
from cheesebench.protocol import Catalogue
from cheesebench.testing.fake_server import FakeServer

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]["optional-dependencies"]
MARK = re.compile(r"<!-- test: (\w+)(?::\s(.*?))?\s*-->", re.DOTALL)
OF_PAGES, OF_BLOCKS = (
    {"server", "addopts"},
    {"skip", "file", "fragment", "exit", "output"},
)
SHELL = {"console", "bash", "sh"}
#: First line of a YAML block that is a file.
HEADING = re.compile(r"# ([\w./-]+\.ya?ml)\b")
#: Names of models that are only examples.
EXAMPLE = re.compile(r"\$?[A-Z][A-Z-]*(/.*)?")
#: Each command must succeed; commands after the last ``trap`` may fail.
STRICT = "set -uo pipefail; trap 'echo \"ended with $?: $BASH_COMMAND\"; exit 99' ERR\n"
MODELS = """
models:
  NAME:
    backend: openai
    id: tiny
    images: true
    options: {{base_url: "{url}"}}
    price: {{prompt: 1, cached: 0.1, completion: 4, on: 2026-01-01}}
"""
#: Hypothesis and anyio are irrelevant to a reader, and take longer than everything
#: else; so do more processes.
QUICK = "-p no:hypothesispytest -p no:anyio --cheese-processes=1 --cheese-seed=0"
REPLY = "LEARNINGS: none yet.\nACTIONS: FORWARD, FORWARD, ROTATE_LEFT, FORWARD"


#: A variable of a repository that is not set, with its default.
DEFAULT = r"\$\{\{ vars\.\w+ \|\| '(.*)' \}\}"


@dataclass(frozen=True)
class Block:
    """A fence of a page with the marks before it; also a hidden set-up, as commands."""

    line: int
    language: str
    code: str
    marks: dict[str, str]


@dataclass
class Page:
    """The contents of a page: blocks in order, marks of the page, and commands within
    the prose.
    """

    blocks: list[Block] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    inline: list[str] = field(default_factory=list)


def read_page(text: str) -> Page:
    """Return the blocks of a page; raises ValueError for a mark that is unknown or in
    the wrong place.
    """
    page, waiting = Page(), dict[str, str]()
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            page.blocks.append(
                Block(line, token.info.partition(" ")[0], token.content, waiting)
            )
            waiting = {}
        elif token.type == "html_block":
            if token.content.count("<!-- test") != len(MARK.findall(token.content)):
                raise ValueError(
                    f"line {line}: this mark cannot be read: {token.content}"
                )
            for name, argument in MARK.findall(token.content):
                if name == "setup":
                    page.blocks.append(Block(line, "bash", argument, {}))
                elif name in OF_PAGES | OF_BLOCKS:
                    (page.marks if name in OF_PAGES else waiting)[name] = argument
                else:
                    raise ValueError(f"line {line}: unknown mark {name!r}")
        elif waiting:
            raise ValueError(
                f"line {line}: no block follows the mark {sorted(waiting)}"
            )
        elif token.type == "code_block":
            raise ValueError(
                f"line {line}: a block by indentation has no language; use a fence"
            )
        elif token.children:
            page.inline += [
                child.content for child in token.children if child.type == "code_inline"
            ]
    return page


def commands(script: str) -> list[str]:
    """Return the lines of a shell block, without prompts; a backslash at the end
    continues a line.
    """
    lines = script.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        strange = [line for line in lines if line and not line.startswith(("$ ", "#"))]
        assert not strange, f"output belongs in its own block: {strange}"
        lines = [line.removeprefix("$ ") for line in lines]
    return lines


def ours(line: str) -> Iterator[list[str]]:
    """Yield the words of each of our commands in a line, and of pip's."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list[str]()
    for word in [*lexer, ";"]:
        if set(word) <= set(";&|()<>"):
            if words and Path(words[0]).name in ("pytest", "cheesebench", "pip"):
                yield words
            words = []
        elif words or not re.match(r"\w+=", word):
            words.append(word)


class Reader:
    """A reader who follows a page in an empty directory."""

    def __init__(
        self, here: Path, page: Page, pytester: pytest.Pytester, url: str
    ) -> None:
        self.here, self.pytester, self.url, self.output = here, pytester, url, ""
        addopts = page.marks.get("addopts", "--design smoke --cheese-exit-zero")
        self.environment = {
            "PATH": os.pathsep.join(
                [str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(here)]),
            "PYTEST_ADDOPTS": f"{QUICK} -p no:cacheprovider --tb=short {addopts}",
            "HOME": str(here.parent),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "80",
        }
        if url:
            models = here.parent / "models.yaml"
            models.write_text(MODELS.format(url=url), encoding="utf-8")
            self.environment["CHEESEBENCH_MODELS"] = str(models)

    def do(self, block: Block) -> None:
        """Follow a block, or fail."""
        marks = block.marks
        if "skip" in marks:
            assert marks["skip"], "say why it is skipped"
            assert block.language in SHELL, "only commands can be skipped"
            for line in commands(block.code):
                self.check(line)
        elif "output" in marks:
            self.compare(block.code)
        elif name := self.name(block):
            path = self.here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.served(block.code), encoding="utf-8")
            if block.language == "yaml":
                self.load(path, int(marks.get("exit", 0)))
        elif "fragment" in marks:
            self.complete(block.code, marks["fragment"])
        elif block.language in SHELL:
            self.run(commands(block.code), int(marks.get("exit", 0)))
        elif block.language == "python":
            (self.here / ".block.py").write_text(block.code, encoding="utf-8")
            self.run(["python .block.py"])
        elif block.language == "sql":
            newest = max(
                self.here.glob("results/*/run.sqlite"),
                key=lambda path: path.stat().st_mtime,
            )
            with contextlib.closing(sqlite3.connect(newest)) as connection:
                connection.execute(block.code).fetchall()
        else:
            assert block.language == "text", (
                f"nobody runs a block of {block.language or 'no language'}"
            )

    def served(self, text: str) -> str:
        """Return the text with the address of the page's server, if it has one."""
        return (
            re.sub(r"http://127\.0\.0\.1:\d+/v1", self.url, text) if self.url else text
        )

    def name(self, block: Block) -> str:
        """Return the file name of a block; empty if it is not a file."""
        heading = HEADING.match(block.code) if block.language == "yaml" else None
        return block.marks.get("file", heading[1] if heading else "")

    def run(self, lines: list[str], code: int = 0, **variables: str) -> None:
        """Run a shell block. Only the last command may fail, with this code."""
        for line in lines:
            if "pip install" in line:
                self.check(line)
        lines = [line for line in lines if line.strip() and "pip install" not in line]
        if code:
            lines[-1] = f"trap - ERR\n{lines[-1]}"
        done = subprocess.run(
            ["bash", "-c", STRICT + self.served("\n".join(lines))],
            cwd=self.here,
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=1200,
            check=False,
        )
        self.output = done.stdout.decode(errors="replace")
        assert done.returncode == code, self.output

    def check(self, line: str, spoken: bool = False) -> None:
        """Check the options, models and extras of a command that is not run, or is only
        mentioned.
        """
        if spoken and not (
            re.match(r"(pytest|cheesebench|pip) \S", line) and " -" in line
        ):
            return  # `cheesebench report` is only mentioned, without arguments
        for program, *words in ours(line):
            if Path(program).name == "cheesebench":
                if words[-1:] == ["--help"]:
                    assert words[0] in ("--help", "COMMAND", *COMMANDS), line
                    continue
                options = build_parser().parse_args(words)
                for name in getattr(options, "model", None) or ():
                    self.look_up(name, spoken)
            elif Path(program).name == "pytest":
                config = self.pytester.parseconfig("-p", "no:hypothesispytest", *words)
                for name in config.getoption("cheesebench_model") or ():
                    self.look_up(name, spoken)
            else:
                extras = re.findall(r"(?:cheesebench|\.)\[([\w,]+)\]", line)
                assert {
                    extra for found in extras for extra in found.split(",")
                } <= EXTRAS.keys(), line

    def look_up(self, name: str, spoken: bool) -> None:
        """Look up a model, unless its name is an example or an agent."""
        plugins = installed_plugins()
        if not (
            spoken
            or EXAMPLE.fullmatch(name)
            or name in plugins.agents | plugins.respondents
        ):
            resolve_model(plugins, name)

    def compare(self, shown: str) -> None:
        """Search for the shown text in the last output."""
        printed, at = " ".join(self.output.split()), 0
        for part in (" ".join(part.split()) for part in shown.split("...")):
            at = printed.find(part, at)
            assert at >= 0, f"this is shown:\n{shown}\nthis was printed:\n{self.output}"
            at += len(part)

    def load(self, path: Path, code: int = 0) -> None:
        """Load a YAML file with the loader for files of its name; ``code`` is the exit
        code of a workflow's comparison.
        """
        if path.name.endswith(".protocol.yaml"):
            self.prove(path.read_text(encoding="utf-8"), path)
        elif path.name.endswith(".study.yaml"):
            find_study(path.name, path.parent)
        elif path.name.endswith("models.yaml"):
            for entry in load_models(path):
                assert (
                    entry.options.keys()
                    <= installed_plugins().backend(entry.backend).options.keys()
                )
        elif path.name == "balancer.yaml":
            # tests/pytest_plugin/test_balancer.py runs it.
            listed = yaml.safe_load(path.read_text(encoding="utf-8"))["model_list"]
            assert {one["model_name"] for one in listed} == {"my-model"}
        elif path.name == "replies.yaml":
            assert read_script(path).replies
        elif path.name == ".gitlab-ci.yml":
            # The commands are those of the workflow above, which is run.
            for job in yaml.safe_load(path.read_text(encoding="utf-8")).values():
                for line in job["script"]:
                    for name, value in job["variables"].items():
                        line = line.replace(f"${name}", value)
                    self.check(line)
        elif path.name == "indexed-job.yml":
            for container in yaml.safe_load(path.read_text(encoding="utf-8"))["spec"][
                "template"
            ]["spec"]["containers"]:
                for line in commands(container["args"][0]):
                    self.check(line)
        else:
            assert path.parent.name == "workflows", f"nobody loads {path.name}"
            for job in yaml.safe_load(path.read_text(encoding="utf-8"))[
                "jobs"
            ].values():
                matrix = job.get("strategy", {}).get("matrix", {})
                for chosen in product(*matrix.values()):
                    values = dict(
                        zip(
                            (f"${{{{ matrix.{name} }}}}" for name in matrix),
                            map(str, chosen),
                            strict=True,
                        )
                    )
                    own = {
                        name: values.get(text, text)
                        for name, text in job.get("env", {}).items()
                        if text in values or name.endswith("_URL")
                    }
                    for name, text in job.get("env", {}).items():
                        if usual := re.fullmatch(DEFAULT, text):
                            own[name] = usual[1]
                    for step in job["steps"]:
                        # A step that ends no job must still be right.
                        lines = commands(step.get("run", "").removesuffix(" || true"))
                        compares = any("--compare" in line for line in lines)
                        self.run(
                            lines,
                            code if compares else 0,
                            **{"MODEL": "NAME", "RUN": path.stem, **own},
                        )

    def complete(self, code: str, name: str) -> None:
        """Insert a fragment into a protocol: one of the page's, or one of the
        repository's.
        """
        path = self.here / name if (self.here / name).exists() else ROOT / name
        keys = re.compile(r"^(\w+):.*?(?=^\w|\Z)", re.MULTILINE | re.DOTALL)
        parts = {
            match[1]: match[0]
            for match in keys.finditer(path.read_text(encoding="utf-8"))
        }
        new = {match[1]: match[0].rstrip("\n") + "\n" for match in keys.finditer(code)}
        assert new, "a fragment consists of whole keys of a protocol"
        self.prove("".join((parts | new).values()), path)

    def prove(self, text: str, path: Path) -> None:
        """Check that a protocol has no error."""
        found: list[Any] = Catalogue(
            [path.parent, *installed_plugins().protocol_directories]
        ).inspect_text(text, str(path))[1]
        assert not [str(one) for one in found if one.severity == "error"]


@pytest.mark.parametrize(
    "path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_a_reader_can_do_what_the_page_says(
    path: Path, tmp_path: Path, pytester: pytest.Pytester
) -> None:
    page = read_page(path.read_text(encoding="utf-8"))
    here = tmp_path / "here"
    here.mkdir()
    with (
        FakeServer(REPLY)
        if "server" in page.marks
        else contextlib.nullcontext() as server
    ):
        reader = Reader(here, page, pytester, server.base_url if server else "")
        for block in page.blocks:
            try:
                reader.do(block)
            except (AssertionError, Exception, SystemExit) as problem:
                pytest.fail(
                    f"{path}:{block.line}: {problem}",
                    pytrace=not isinstance(problem, AssertionError),
                )
        for line in page.inline:
            reader.check(line, spoken=True)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- test: skipp: a slip -->\n```console\ntrue\n```\n",
        "<!-- test:skip -->\n```console\ntrue\n```\n",
        "<!-- test: exit: 1 -->\nwords\n",
        "words\n\n    cheesebench list\n",
    ],
)
def test_mistakes_in_marks_are_found(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        read_page(text)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (Block(1, "console", "true\nfalse\ntrue", {}), "ended with 1: false"),
        (
            Block(1, "console", "cheesebench lint nothing.protocol.yaml", {}),
            "nothing.protocol.yaml",
        ),
        (
            Block(1, "console", "cheesebench lint x --nonsense", {"skip": "to see"}),
            "--nonsense",
        ),
        (
            Block(1, "console", "pytest --no-such-option", {"skip": "to see"}),
            "--no-such-option",
        ),
        (
            Block(1, "console", "pytest --model no-such-model", {"skip": "to see"}),
            "no-such-model",
        ),
        (
            Block(1, "console", "pip install 'pytest-cheesebench[nothing]'", {}),
            "nothing",
        ),
        (Block(1, "text", "nobody said this", {"output": ""}), "nobody said this"),
        (Block(1, "yaml", "version: 1", {"file": "my.protocol.yaml"}), "E1"),
        (Block(1, "yaml", "version: 1", {}), "yaml"),
        (Block(1, "rust", "fn main() {}", {}), "rust"),
        (Block(1, "", "cheesebench list", {}), "no language"),
    ],
)
def test_mistakes_in_blocks_are_found(
    block: Block, message: str, tmp_path: Path, pytester: pytest.Pytester
) -> None:
    with pytest.raises(
        (AssertionError, Exception, SystemExit), match=re.escape(message)
    ):
        Reader(tmp_path, Page(), pytester, "").do(block)


def test_pages_have_one_spelling_of_an_option() -> None:
    # The short spelling; except for two options, whose short one belongs to another
    # plugin in many projects.
    written = {
        name
        for path in PAGES
        for name in re.findall(r"--cheese-[\w-]+", path.read_text(encoding="utf-8"))
    }
    assert written == {"--cheese-NAME", "--cheese-html", "--cheese-timeout"}
