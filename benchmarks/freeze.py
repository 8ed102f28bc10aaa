"""Freeze the default protocols as a set: ``python benchmarks/freeze.py 2026.1``.

It copies their files to ``protocols/sets/NAME`` and writes their hashes, views and
settings beside it. A released set is never frozen again; a changed protocol goes into
the next set.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.frozen import FILE, fingerprint
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, Specification, with_arena

PROTOCOLS = Path(__file__).resolve().parents[1] / "protocols"
#: ``VIEW`` is the view in which the set is run, ``AGENTS`` the agents that may ask a
#: language model.
VIEW, AGENTS = "ascii_2d", ("llm", "llm-tools")
#: Settings that a model's entry may override, because a model's replies must be as long
#: as it needs.
OPEN = ("max_tokens",)


def parts(specification: Specification) -> Iterator[Path]:
    """Yield the files that a protocol consists of."""
    path = Path(specification.path)
    yield path
    for reference in yaml.safe_load(path.read_bytes())["reference"]:
        if isinstance(named := reference.get("animals"), str):
            yield path.parent / named


def defaults() -> list[Specification]:
    """Return the protocols that run if none are given."""
    found = Catalogue([PROTOCOLS]).select()
    return [with_arena(one) for one in found if one.edition == "default"]


def prompts() -> str:
    """Return a hash of the texts that language models are given."""
    folder = PROTOCOLS.parent / "plugins" / "agents" / "llm"
    texts = [path.read_bytes() for path in sorted(folder.glob("*.yaml"))]
    return hashlib.sha256(b"".join(texts)).hexdigest()


def freeze(
    name: str, folder: Path, specifications: Sequence[Specification]
) -> dict[str, Any]:
    """Write the set of these protocols, which must be in one folder, and return its
    description.
    """
    plugins = PluginManager()
    shutil.rmtree(folder, ignore_errors=True)
    sources = {path for one in specifications for path in parts(one)}
    home = min((path.parent for path in sources), key=lambda path: len(path.parts))
    for path in sorted({*sources, *home.glob("*.audit.json")}):
        copy = folder / path.relative_to(home)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    settings = plugins.model_agent(AGENTS[0]).settings
    told = {
        "set": name,
        "views": [VIEW],
        "agents": list(AGENTS),
        "settings": {
            key: value for key, value in sorted(settings.items()) if key not in OPEN
        },
        "prompts": prompts(),
        "protocols": {
            one.name: fingerprint(
                plan_cell(one, "random", VIEW, find_design("cohort", None), "none")
            )
            for one in specifications
        },
        "files": {
            path.relative_to(folder).as_posix(): hashlib.sha256(
                path.read_bytes()
            ).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        },
    }
    (folder / FILE).write_text(
        json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return told


def main() -> None:
    """Freeze the set, and report it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="of the set: year.number")
    name = parser.parse_args().name
    told = freeze(name, PROTOCOLS / "sets" / name, defaults())
    for protocol, kept in told["protocols"].items():
        print(f"{protocol}: {kept['sha256'][:12]}")


if __name__ == "__main__":
    main()
