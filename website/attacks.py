"""Compares the audit with attacks that were found by hand on the first nine protocols.

``python -m website.attacks`` runs the audit's planner on the old files, which are
fixtures. It prints protocol, lesion, the rate found by hand, the rate found by the
audit, and the seconds that the audit took. The figures are stored for the page on
lesions. If names of protocols are given, only these are tried, and nothing is stored.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from cheesebench.interfaces import AuditSettings
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions import Ceiling, Order, measure
from cheesebench.protocol import Catalogue, Specification, with_arena
from website.markup import code, table

OLD = Path(__file__).parents[1] / "tests" / "fixtures" / "old_nine"
#: The stored results.
KEPT = Path(__file__).with_suffix(".json")
#: Protocol, lesion, and the pass rate over judged trials that the audit must find at
#: least: the rate found by hand, or slightly less.
FOUND = (
    ("t_maze", "blind", 1.0),
    ("dnms", "pose-only", 0.90),
    ("operant_chamber", "blind", 1.0),
    ("operant_chamber.rodent", "anhedonia", 1.0),
    ("shuttle_box", "anhedonia", 1.0),
    ("place_preference", "anhedonia", 0.50),
    ("place_preference", "intact", 1.0),
    ("morris_water_maze", "blind", 0.90),
    ("morris_water_maze.rodent", "pose-only", 1.0),
    ("star_maze", "blind", 0.97),
    ("star_maze.rodent", "anhedonia", 0.94),
    ("barnes_maze", "blind", 0.45),
    ("radial_arm_maze", "memoryless", 0.93),
    ("radial_arm_maze", "blind", 0.80),
)


def load(name: str) -> Specification:
    """Return an old protocol."""
    specification: Specification = with_arena(
        Catalogue([OLD]).load(OLD / f"{name}.protocol.yaml")
    )
    return specification


def attack(name: str, lesion: str) -> Ceiling:
    """Return the best result of an adversary with this lesion on an old protocol, at
    the default effort.
    """
    settings = AuditSettings()
    return measure(
        ArenaParadigm(load(name)),
        Order(Lesion.parse(lesion), settings.effort, settings.seed),
    )


def rows(names: Sequence[str] = ()) -> Iterator[tuple[str, str, float, Ceiling, float]]:
    """Yield protocol, lesion, result by hand, result of the audit, and the seconds of
    processor time.
    """
    for name, lesion, least in FOUND:
        if not names or name in names:
            begun = time.process_time()
            yield name, lesion, least, attack(name, lesion), time.process_time() - begun


def attacks() -> str:
    """Return the table of the audit's results on the attacks by hand."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    cells = []
    for one in kept:
        name = one["protocol"].replace(".", "@")
        cells.append(
            [
                code(name),
                code(one["lesion"]),
                f"{one['by_hand']:.2f}",
                f"{one['found']:.2f}",
            ]
        )
    return table(
        ["old protocol", "lesion", "by hand (about)", "found by the audit"], cells
    )


def main(names: Sequence[str]) -> None:
    """Print the table. Store it if all attacks were tried."""
    kept = []
    for name, lesion, by_hand, ceiling, seconds in rows(names):
        print(
            f"{name:26} {lesion:11} by hand {by_hand:.2f}  found {ceiling.found}  {seconds:.0f} s",
            flush=True,
        )
        kept.append(
            {
                "protocol": name,
                "lesion": lesion,
                "by_hand": by_hand,
                "found": round(ceiling.found.value, 2),
            }
        )
    if not names:
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
