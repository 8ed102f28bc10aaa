"""The command ``python -m fuzz``, which the docstring of the package explains."""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from fuzz.campaign import Campaign, attempt, corpus
from fuzz.expressions import Expressions
from fuzz.life import Lives
from fuzz.loader import Loader
from fuzz.log import Log
from fuzz.replies import Replies
from fuzz.verdicts import Verdicts

CAMPAIGNS: Mapping[str, Callable[[], Campaign]] = {
    one.name: one for one in (Expressions, Lives, Loader, Log, Replies, Verdicts)
}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns, each for its share of the time. Return exit code 1 if anything
    was found.
    """
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(CAMPAIGNS), action="append")
    parser.add_argument(
        "--found",
        type=Path,
        default=Path("fuzz-found"),
        help="directory for cases that broke something",
    )
    given = parser.parse_args(arguments)
    names = given.only or sorted(CAMPAIGNS)
    seconds = (given.hours * 3600 + given.minutes * 60 or 60) / len(names)
    found = sum(
        [
            campaign_found(CAMPAIGNS[name](), seconds, given.seed, given.found)
            for name in names
        ]
    )
    return 1 if found else 0


def campaign_found(
    campaign: Campaign, seconds: float, seed: int, directory: Path
) -> int:
    """Try the corpus, then new cases until the time is up. Return the number of places
    in which something broke.
    """
    known = [path.read_bytes() for path in corpus(campaign.name)]
    end, tried, broken, places = time.monotonic() + seconds, 0, 0, set[str]()
    while tried < len(known) or time.monotonic() < end:
        case = (
            known[tried]
            if tried < len(known)
            else campaign.draw(random.Random(f"{campaign.name} {seed} {tried}"))
        )
        tried += 1
        error = attempt(campaign, case)
        if error is None:
            continue
        broken += 1
        frames = traceback.extract_tb(error.__traceback__)
        place = (
            f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}"
            if frames
            else str(error)
        )
        if place in places:
            continue
        places.add(place)
        directory.mkdir(exist_ok=True)
        path = directory / f"{campaign.name}-{hashlib.sha256(case).hexdigest()[:12]}"
        path.write_bytes(case)
        print(
            f"{path}: {place}\n{''.join(traceback.format_exception(error, limit=-4))}",
            flush=True,
        )
    print(
        f"{campaign.name}: {tried} cases, {broken} broke something, in {len(places)} places",
        flush=True,
    )
    return len(places)


if __name__ == "__main__":
    sys.exit(main())
