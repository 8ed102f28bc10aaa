"""Campaign of lives under slightly changed protocols. A life must be the same for the
same seed, in any view.
"""

from __future__ import annotations

import json
import math
import random

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import RUNNING, TERMINATED, TRUNCATED, TrialResult, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification
from fuzz.protocols import Protocols, case_of, of_case

#: Maximum number of steps, and of trials, of a life.
STEPS, TRIALS = 400, 12
#: The results of a life: everything except observations; the observations; and the
#: author's mistake that ended the life (empty without one).
Life = tuple[list[object], list[str], str]


class Lives:
    """Cases are protocols, with a seed for the subject and its actions."""

    name = "life"

    def __init__(self) -> None:
        self._protocols = Protocols()
        plugins = installed_plugins()
        self._views = [
            plugins.view(name) for name in ("ascii_2d", "ascii_2d_fpv", "ascii_3d")
        ]
        for text in self._protocols.texts:
            # One case is run before anything is timed, because some objects are built
            # on first use.
            self.check(case_of(0, text))

    def draw(self, chance: random.Random) -> bytes:
        """Return a protocol that the loader accepts in most cases."""
        return case_of(chance.randrange(1000), self._protocols.draw(chance))

    def check(self, case: bytes) -> None:
        """Live the life twice in one view, and once in another. Only the observations
        may differ between views.
        """
        seed, text = of_case(case)
        specification = self._protocols.load(text)
        if specification is None:
            return
        first, *others = self._views
        paradigm = ArenaParadigm(specification)
        what, seen, mistake = live(paradigm, specification, first, seed)
        assert live(ArenaParadigm(specification), specification, first, seed) == (
            what,
            seen,
            mistake,
        ), "not the same"
        other, _, told = live(paradigm, specification, others[seed % len(others)], seed)
        assert (other, told) == (what, mistake), "a view has changed a life"


def live(
    paradigm: ArenaParadigm, specification: Specification, view: View, seed: int
) -> Life:
    """Live for some trials. Nothing may end the life early, except a mistake of the
    protocol's author that is reported in a sentence.
    """
    chance, what, seen = random.Random(seed), list[object](), list[str]()
    forward = chance.random()
    try:
        life = paradigm.environment(view, seed, seed % 7)
        for _ in range(TRIALS):
            observation = life.begin_trial()
            if observation is None:
                break
            seen.append(observation)
            while len(seen) < STEPS:
                observation, reward, status = life.step(
                    0 if chance.random() < forward else chance.randrange(4)
                )
                assert isinstance(observation, str), observation
                assert math.isfinite(reward), reward
                assert status in (RUNNING, TERMINATED, TRUNCATED), status
                what.append((reward, status))
                seen.append(observation)
                if status != RUNNING:
                    what.append(_checked(life.result(), specification))
                    break
            else:
                break
    except ProtocolError as error:
        text = str(error)
        assert text.endswith("."), f"no sentence: {text}"
        assert "\n" not in text, text
        return what, seen, text
    return what, seen, ""


def _checked(result: TrialResult, specification: Specification) -> str:
    """Check the names in a result against the protocol. Return the result as text."""
    assert result.outcome in (*specification.outcomes, "timeout"), result.outcome
    assert set(result.counters) == set(specification.counters), result.counters
    assert set(result.measures) == set(specification.measures), result.measures
    assert (result.success is None) == (specification.success is None), result.success
    numbers = {
        "measures": dict(result.measures),
        "variables": dict(result.variables),
        "counters": dict(result.counters),
    }
    text = json.dumps(numbers, sort_keys=True, allow_nan=False)
    return f"{result.block} {result.session} {result.outcome} {result.success} {result.compared} {text}"
