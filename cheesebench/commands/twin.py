"""``cheesebench twin``: makes a held-out variant of a protocol. For a subject that has
read neither file, both are the same task.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from cheesebench.commands import common
from cheesebench.commands.new import write_files
from cheesebench.errors import OptionError
from cheesebench.protocol import SUFFIX, with_arena
from cheesebench.protocol.twins import twin

#: Minimum length of a secret in characters. All shorter secrets could be tried.
LEAST_SECRET = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.describe(
        parser,
        "Exchanges what the protocol's key 'twins' declares as equal: glyphs, texts, or the orientation of the map. "
        "Publish the printed hash now, and the file later. A run over both reports how much easier the published file is.",
        "t_maze --seed 'a long secret' --output held_out",
    )
    parser.add_argument("protocol", metavar="PROTOCOL", help=common.PROTOCOL)
    parser.add_argument(
        "--seed",
        metavar="SECRET",
        required=True,
        help=f"a secret text of at least {LEAST_SECRET} characters; the same text makes the same twin",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        default=".",
        help="folder of the new file (default: this folder)",
    )


def run(options: argparse.Namespace) -> int:
    if len(options.seed) < LEAST_SECRET:
        raise OptionError(
            f"--seed has {common.counted(len(options.seed), 'character')}. Give at least {LEAST_SECRET}."
        )
    specification = with_arena(common.load_protocol(options.protocol))
    edition, text = twin(specification, options.seed)
    name = f"{specification.paradigm}.{edition}{SUFFIX}"
    write_files(Path(options.output), {name: text})
    path = Path(options.output) / name
    common.installed_catalogue().load(path)
    print(f"{path}\nsha256 {hashlib.sha256(text.encode()).hexdigest()}")
    print(f"Check it with: cheesebench test {path} && cheesebench audit {path}")
    return 0
