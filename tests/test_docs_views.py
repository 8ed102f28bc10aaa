"""The page about views: its generated parts are up to date, and the example works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops

from cheesebench.auditing import audit_specification
from cheesebench.cli import main
from cheesebench.commands.gallery import gallery, kept, plates
from cheesebench.interfaces import AuditSettings
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, with_arena

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
#: The protocols on the page.
GALLERY = ("t_maze", "operant_chamber")
#: The shipped views, without others that are installed here.
SHIPPED = list(PluginManager(entry_points=False).views)


def test_the_gallery_is_up_to_date(tmp_path: Path) -> None:
    catalogue = Catalogue([ROOT / "protocols"])
    shown = [with_arena(catalogue.find(name)) for name in GALLERY]
    plugins = PluginManager()
    views = [plugins.view(name) for name in SHIPPED]
    text, pictures = gallery(plates(shown, views, 0), 0, "views")
    assert kept(PAGE) + text == PAGE, (
        f"cheesebench gallery {' '.join(GALLERY)} --output docs/views.md"
    )
    assert len(pictures) == len(shown)
    assert {path.name for path in (ROOT / "docs" / "views").iterdir()} == {
        Path(name).name for name in pictures
    }
    for name, picture in pictures.items():
        (tmp_path / "now.png").write_bytes(picture.png)
        # Compressors may differ from machine to machine, but pixels do not.
        now, then = (
            Image.open(path).convert("RGB")
            for path in (tmp_path / "now.png", ROOT / "docs" / name)
        )
        assert ImageChops.difference(now, then).getbbox() is None, (
            f"{name} is not what is drawn now"
        )


def test_the_example_of_a_view_works() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    (view,) = names["cheesebench_views"]()
    plugins = PluginManager()
    specification = with_arena(
        Catalogue().load(
            ROOT / "tests" / "fixtures" / "old_nine" / "star_maze.protocol.yaml"
        )
    )
    still = plugins.compile(specification).still(view, 0, 0)
    observation = view.render(still.scene, still.column, still.row, still.heading)
    assert len(observation) <= view.max_length(still.scene)

    class Plugin:
        @staticmethod
        @names["cheesebench"].hookimpl  # type: ignore[untyped-decorator]
        def cheesebench_views() -> Any:
            return [view]

    plugins.register(Plugin())
    report = audit_specification(
        specification, AuditSettings(trials=60, parts=("cues",)), [view.name], plugins
    )
    (failure,) = report.failures
    assert failure.rule == "cues, beneath"
    assert (
        "cues that do not change the picture: landmark SE, landmark SW. If a subject hides"
        in failure.text
    )


def test_every_shipped_view_is_described() -> None:
    words = kept(PAGE)
    for name in SHIPPED:
        assert f"| `{name}` |" in words, "give it a row in the table of docs/views.md"
        assert f"**`{name}`**" in words, "say in docs/views.md how it is read"


def test_a_page_that_ends_in_html_is_one_file_of_all_protocols_and_views(
    tmp_path: Path,
) -> None:
    page = tmp_path / "gallery.html"
    assert main(["gallery", "--edition", "paper", "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["gallery.html"]
    assert len(re.findall(r"<h2 ", text)) == 9
    assert len(re.findall(r'<img src="data:image/png;base64,', text)) == 9
    assert len(re.findall("<pre>", text)) == 27
    assert "<script" not in text
