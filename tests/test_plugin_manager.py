"""Loaded plugins, and the reasons why others are not; ``cheesebench plugins`` lists
both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench import AgentSpec, CommandSpec, hookimpl
from cheesebench.cli import main
from cheesebench.errors import PluginError, UnknownNameError
from cheesebench.hookspecs import API_VERSION
from cheesebench.interfaces import Paradigm
from cheesebench.plugin_manager import BUILT_INS, PluginManager, installed_plugins

VIEW = """
class Blank:
    name = "{name}"
    characters = ""
    def render(self, scene, column, row, heading): return ""
    def max_length(self, scene): return 0
def cheesebench_views(): return [Blank()]
"""
#: A hook that supplies items, and one that only listens.
LISTENS = """
from cheesebench import CommandSpec
def cheesebench_commands(): return [CommandSpec("hear", "x", "y")]
def cheesebench_run_finished(summary): pass
"""

#: A function that is like no hook.
OTHER = f"cheesebench_{'q' * 60}"


def install(directory: Path, module: str, code: str) -> None:
    """Write a module and the metadata of a distribution that registers it."""
    (directory / f"{module}.py").write_text(code, encoding="utf-8")
    information = directory / f"{module}-2.5.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {module}\nVersion: 2.5\n", encoding="utf-8"
    )
    (information / "entry_points.txt").write_text(
        f"[cheesebench]\n{module} = {module}\n", encoding="utf-8"
    )


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    installed_plugins.cache_clear()
    yield tmp_path
    installed_plugins.cache_clear()


def test_a_plugin_for_newer_hooks_is_refused_with_a_clear_line(site: Path) -> None:
    install(
        site,
        "kit_future",
        f"cheesebench_api = {API_VERSION + 1}\n" + VIEW.format(name="future"),
    )
    install(
        site,
        "kit_present",
        f"cheesebench_api = {API_VERSION}\n" + VIEW.format(name="present"),
    )
    plugins = PluginManager()
    assert plugins.failures["kit_future"] == (
        f"The plugin 'kit_future' is written for version {API_VERSION + 1} of the hooks; this CheeseBench supports "
        f"version {API_VERSION}. Upgrade pytest-cheesebench."
    )
    assert "future" not in plugins.views
    assert "present" in plugins.views
    assert "kit_present" not in plugins.failures


QUIT = "import sys\nsys.exit(0)\n"


@pytest.mark.parametrize(
    "code",
    [
        QUIT,
        "def cheesebench_commands(): raise SystemExit(0)\n",
        f"def __getattr__(name):\n    {QUIT.splitlines()[0]}\n    {QUIT.splitlines()[1]}\n",
    ],
)
def test_a_plugin_that_ends_the_program_silences_nothing(
    site: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    install(site, "kit_quitter", code)
    for command in (["list"], ["plugins"], []):
        assert main(command) == 0
        assert len(capsys.readouterr().out.splitlines()) > 5


def test_why_a_plugin_does_not_load_is_told_without_the_key(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "4u-0123456789")
    install(
        site,
        "kit_broken",
        "import os\nraise RuntimeError(os.environ['ACME_API_KEY'] + '\\nis no key')\n",
    )
    assert (
        PluginManager().failures["kit_broken"]
        == "RuntimeError: [redacted] is no key (kit_broken.py:2)"
    )


@pytest.mark.parametrize(
    ("kind", "text"), [("ValueError", "no luck"), ("SystemExit", "0")]
)
def test_a_view_that_fails_is_named(
    site: Path, capsys: pytest.CaptureFixture[str], kind: str, text: str
) -> None:
    install(
        site,
        f"kit_{kind}",
        VIEW.format(name="eyes").replace('return ""', f"raise {kind}('{text}')"),
    )
    for command in (
        "render y_maze",
        "audit y_maze --trials 1",
        "plan --model openai/tiny --protocols y_maze",
    ):
        assert main([*command.split(), "--view", "eyes"]) == 2
        said = f"The view 'eyes': render raises {kind}: {text} (kit_{kind}.py:5). Fix or remove the plugin.\n"
        # Findings so far are printed as they come, each in a line of its own.
        before, found, after = capsys.readouterr().err.partition(f"cheesebench: {said}")
        assert (found, after) == (f"cheesebench: {said}", "")
        assert all(re.match(r"y_maze[: ]", line) for line in before.splitlines())
        assert not before or command.startswith("audit")


@pytest.mark.parametrize(
    ("version", "said"),
    [(0, "Upgrade the plugin"), ("1", "Set it to"), (True, "Set it to")],
)
def test_other_versions_that_are_none_of_ours(version: object, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        PluginManager().register(SimpleNamespace(cheesebench_api=version), name="odd")


def test_a_conftest_for_newer_hooks_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        f"cheesebench_api = {API_VERSION + 1}\ndef cheesebench_views(): return []\n"
    )
    result = pytester.runpytest_subprocess(
        "--model", "random", "--protocols", "t_maze", "--design", "smoke"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*is written for version {API_VERSION + 1} of the hooks*"]
    )


def test_plugins_are_listed_with_where_they_come_from(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # no cell is wrapped
    install(site, "kit_eyes", VIEW.format(name="eyes"))
    install(site, "kit_nose", VIEW.format(name="nose") + LISTENS)
    install(site, "kit_other", VIEW.format(name="ascii_2d"))
    install(site, "kit_broken", "raise ValueError('no \\x1b[31m luck')")
    install(site, "kit_raising", "def cheesebench_views(): return 1 / 0")
    command = "from cheesebench import CommandSpec\ndef cheesebench_commands(): return [CommandSpec('list', 'x', 'y')]"
    install(site, "kit_command", command)
    install(site, "kit_typo", "def cheesebench_vievs(): return []")
    assert main(["plugins"]) == 0
    out = capsys.readouterr().out
    lines = {
        line.split()[0]: " ".join(line.split())
        for line in out.splitlines()
        if line.startswith(("kit", "cheese"))
    }
    assert lines["kit_eyes"] == "kit_eyes kit_eyes 2.5 views: eyes"
    assert lines["kit_nose"].endswith(
        " 2.5 commands: hear; cheesebench_run_finished; views: nose"
    )
    assert lines["kit_broken"].startswith(
        "kit_broken kit_broken 2.5 ValueError: no \\x1b[31m luck"
    )
    assert lines["kit_raising"].endswith(
        "views: fails: ZeroDivisionError: division by zero (kit_raising.py:1). Fix or remove the plugin."
    )
    assert (
        "there is no hook 'cheesebench_vievs'. Did you mean 'cheesebench_views'?"
        in lines["kit_typo"]
    )
    assert (
        "The view 'ascii_2d' of kit_other is used, not the one of cheesebench.plugins.views."
        in out
    )
    assert (
        "The command 'list' of kit_command is not used: a built-in command has this name. Rename the plugin's command."
        in out
    )
    assert set(BUILT_INS) <= set(lines)
    assert "\x1b" not in out


def test_of_two_entry_points_of_one_name_the_first_is_used_and_the_other_named(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("kit_first", "kit_second"):
        install(site, module, VIEW.format(name=module))
        points = site / f"{module}-2.5.dist-info" / "entry_points.txt"
        points.write_text(f"[cheesebench]\nkit_same = {module}\n", encoding="utf-8")
    assert main(["plugins", "--json"]) == 0
    same = [
        one
        for one in json.loads(capsys.readouterr().out)["plugins"]
        if one["name"] == "kit_same"
    ]
    [used] = [one for one in same if not one["failure"]]
    [other] = [one for one in same if one["failure"]]
    assert {used["module"], other["module"]} == {"kit_first", "kit_second"}
    assert used["hooks"] == {"cheesebench_views": [used["module"]]}
    said = f"Another plugin has the same name, and is used instead: {used['module']}. Uninstall one of them."
    assert (other["failure"], other["hooks"]) == (said, {})
    assert PluginManager().strangers()["kit_same"] == f"{used['module']} 2.5", (
        "not of the one that is not used"
    )


def test_plugins_for_programs(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(
        site,
        "kit_ears",
        f"cheesebench_api = {API_VERSION}\n" + VIEW.format(name="ears") + LISTENS,
    )
    assert main(["plugins", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [ears] = [one for one in found["plugins"] if one["name"] == "kit_ears"]
    assert ears["hooks"] == {
        "cheesebench_commands": ["hear"],
        "cheesebench_run_finished": [],
        "cheesebench_views": ["ears"],
    }
    assert (ears["distribution"], ears["version"], ears["api"], ears["failure"]) == (
        "kit_ears",
        "2.5",
        API_VERSION,
        "",
    )
    assert found["api"] == API_VERSION


def test_an_agent_with_a_memory_that_there_is_not_is_refused() -> None:
    class Lab:
        @hookimpl
        def cheesebench_agents(self) -> list[AgentSpec]:
            memory: Any = "session"
            return [
                AgentSpec(
                    "lab-rat", lambda context: pytest.fail("created"), memory=memory
                )
            ]

    plugins = PluginManager()
    plugins.register(Lab())
    with pytest.raises(
        PluginError,
        match=r"the AgentSpec 'lab-rat', whose 'memory' is 'session', a str. Make it 'none' or",
    ):
        plugins.agent("random")


@pytest.mark.parametrize(
    "command", [["render", "mazed"], ["render", "t_maze", "--view", "eyes"], ["mazed"]]
)
def test_what_a_broken_plugin_may_have_supplied_is_said(
    site: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    install(site, "kit_broken", "import kit_that_is_not_there")
    assert main(command) == 2
    error = capsys.readouterr().err
    said = "The plugin 'kit_broken' was not loaded: ModuleNotFoundError: No module named 'kit_that_is_not_there' (kit_"
    assert said in " ".join(error.split())


def manager(**hooks: Any) -> PluginManager:
    """Return a manager with one plugin, whose hooks supply these items."""
    plugins = PluginManager(entry_points=False, built_ins=())
    lab = {
        f"cheesebench_{name}": lambda items=items: items
        for name, items in hooks.items()
    }
    plugins.register(SimpleNamespace(**lab), name="lab")
    return plugins


def test_a_manager_without_plugins_has_all_hooks_and_reloads_nothing() -> None:
    plugins = manager()
    plugins.set_blocked("not wanted")
    assert plugins.hook.cheesebench_run_finished.get_hookimpls() == []
    assert (plugins.views, plugins.reloadable, plugins.strangers()) == (
        {},
        set(),
        {"lab": "no file"},
    )


def test_a_worker_reloads_what_is_built_in_or_installed(site: Path) -> None:
    install(site, "kit_eyes", VIEW.format(name="eyes"))
    install(site, "kit_broken", f"raise ValueError({'x' * 2000!r})")
    plugins = PluginManager(built_ins=["cheesebench.plugins.views"])
    plugins.register(SimpleNamespace(), name="conftest")
    assert plugins.reloadable >= {"cheesebench.plugins.views", "kit_eyes"}
    assert not plugins.reloadable & {"kit_broken", "conftest"}
    # A long reason is cut.
    assert len(plugins.failures["kit_broken"]) == 1000


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("agent", "random"),
        ("model_agent", "llm"),
        ("respondent", "greedy-reward"),
        ("backend", "openai"),
        ("executor", "threads"),
        ("view", "ascii_2d"),
        ("reporter", "text"),
    ],
)
def test_what_plugins_supply_is_found_by_its_name(kind: str, name: str) -> None:
    plugins = PluginManager(entry_points=False)
    known = getattr(plugins, f"{kind}s")
    assert getattr(plugins, kind)(name) is not None
    assert {one.name: type(one) for one in known.values()} == {
        key: type(one) for key, one in known.items()
    }
    with pytest.raises(UnknownNameError, match=f"'{name}'"):
        getattr(plugins, kind)(f"{name}x")
    assert all(name == entry.name for name, entry in plugins.models.items())


def test_a_hook_needs_no_marker() -> None:
    class Marked:
        @hookimpl
        def cheesebench_views(self) -> list[Any]:
            return []

    plugins, name = manager(), "cheesebench_views"
    plain = SimpleNamespace(
        cheesebench_views=list,
        cheesebench_note="no function",
        **{OTHER: list},
    )
    options = plugins.parse_hookimpl_opts(plain, name)
    assert options == plugins.parse_hookimpl_opts(Marked(), name)
    assert options is not None
    assert plugins.parse_hookimpl_opts(plain, "cheesebench_note") is None
    assert plugins.parse_hookimpl_opts(plain, OTHER) is None


def test_agents_of_other_kinds_are_told_apart() -> None:
    rat, swimmer = (
        SimpleNamespace(name="rat", kind="agent", create=len, memory="none"),
        SimpleNamespace(name="swimmer", kind="swimmer"),
    )
    plugins = manager(agents=[rat, swimmer])
    with pytest.raises(PluginError, match="the SimpleNamespace 'rat', which has no"):
        plugins.supplied_agents("agent")
    rat = cast(Any, AgentSpec("rat", cast(Any, len)))
    plugins = manager(agents=[rat, swimmer])
    assert plugins.agents == {"rat": rat}
    assert plugins.supplied_agents("swimmer") == {"swimmer": swimmer}
    assert plugins.agent("rat", "t_maze@paper") is rat
    own = AgentSpec("rat@paper", cast(Any, len))
    plugins = manager(agents=[rat, own])
    assert plugins.agent("rat", "t_maze@paper") is own
    assert plugins.agent("rat", "t_maze@standard") is rat


def test_protocols_come_from_a_list_of_directories(tmp_path: Path) -> None:
    assert manager(protocols=[tmp_path]).protocol_directories == [tmp_path]
    with pytest.raises(PluginError, match=r"Return a list of paths of directories\."):
        _ = manager(protocols=tmp_path).protocol_directories


def test_a_command_of_a_plugin_that_fails_hides_no_other() -> None:
    hear = CommandSpec("hear", "listen", "ears")
    plugins = manager(commands=[hear])
    broken = SimpleNamespace(cheesebench_commands=lambda: 1 / 0)
    plugins.register(broken, name="broken")
    assert plugins.commands == {"hear": hear}


def test_a_reporter_is_given_the_log_only_if_it_asks_for_it() -> None:
    brief = SimpleNamespace(name="brief", suffix=".txt", render=lambda summary: summary)
    full = SimpleNamespace(
        name="full",
        suffix=".txt",
        render=lambda summary: pytest.fail("it has render_run"),
        render_run=lambda summary, log, plugins: (summary, log, plugins),
    )
    plugins = manager(reporters=[brief, full])
    summary, log = cast(Any, "summary"), cast(Any, "log")
    assert plugins.report("brief", summary, log) == "summary"
    assert cast(Any, plugins.report("full", summary, log)) == (summary, log, plugins)
    with pytest.raises(UnknownNameError, match=r"report format 'ful'.*'full'"):
        plugins.report("ful", summary, log)


def test_a_protocol_goes_to_its_family_and_faults_are_the_family_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [arena] = (
        family
        for family in PluginManager(entry_points=False).families.values()
        if family.name == "arena"
    )
    plugins = manager(families=[arena])
    mine = cast(Any, SimpleNamespace(family="arena", path="mine.yaml"))
    assert plugins.family(mine) is arena
    compiled = Paradigm()
    monkeypatch.setattr(arena, "compile", lambda specification: compiled)
    assert plugins.compile(mine) is compiled
    monkeypatch.setattr(arena, "compile", lambda specification: None)
    with pytest.raises(
        PluginError,
        match=r"The family 'arena': compile returned None. Return a Paradigm.",
    ):
        plugins.compile(mine)
    monkeypatch.setattr(arena, "compile", lambda specification: 1 / 0)
    with pytest.raises(
        PluginError, match="The family 'arena': compile raises ZeroDivisionError"
    ):
        plugins.compile(mine)
    other = cast(Any, SimpleNamespace(family="levers", path="mine.yaml"))
    with pytest.raises(PluginError) as found:
        plugins.family(other)
    assert str(found.value) == (
        "mine.yaml: no plugin handles protocols of the family 'levers' (known: arena). "
        "Install the plugin that does."
    )
