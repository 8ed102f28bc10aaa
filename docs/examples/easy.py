"""Two tasks that a table learns within seconds: ``easy/TMaze-v1`` and
``easy/ShuttleBox-v1``, made by importing this.

Their protocols, beside this file, are for trying learners out. They are not validated
and give no verdict.
"""

from __future__ import annotations

from pathlib import Path

import gymnasium

import cheesebench  # noqa: F401  # registers cheesebench/Protocol-v1

#: The protocol of each environment.
PROTOCOLS = {
    "easy/TMaze-v1": Path(__file__).with_name("easy_t_maze.protocol.yaml"),
    "easy/ShuttleBox-v1": Path(__file__).with_name("easy_shuttle_box.protocol.yaml"),
}

any_protocol = gymnasium.spec("cheesebench/Protocol-v1")
for name, path in PROTOCOLS.items():
    gymnasium.register(
        id=name,
        entry_point=any_protocol.entry_point,
        kwargs={"protocol": str(path)},
    )
