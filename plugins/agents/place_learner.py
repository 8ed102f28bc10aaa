"""Place-learner: remembers the outcomes of places in the landmarks' frame, and navigates to the best by a map.

It reads top-down maps, as ``bfs-oracle`` does, and knows nothing else about the apparatus. A trial is to it a series of
*moments*, each with its picture and text; a moment ends with an event: the subject is carried, picture or text change,
or the trial ends. In each it chooses a place and goes there, on the shortest way that touches no other place that
stands out; what comes of it is remembered for the place, and for what the place looked like and had been in the trial.
"""

from __future__ import annotations

import random
from collections import Counter

from cheesebench import ACTIONS, FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY, AgentContext
from cheesebench.plugins.agents.grid import ARROWS, WALLS, Grid, usual_ground
from cheesebench.plugins.agents.place_frame import UNKNOWN, Frame, Situation
from cheesebench.plugins.agents.place_memory import (
    FRESH,
    IN_VAIN,
    LOOKS,
    REWARDED,
    Choice,
    Moment,
    Signature,
    Trial,
    Worth,
)
from cheesebench.plugins.agents.place_ways import Ways

#: Steps for which it stays at a place that was rewarded in this trial although nothing happens.
PATIENCE = 8
#: What a step costs, what it costs to walk over places that stand out, and what these are worth for being tried first.
STEP_COST, TRESPASS, CURIOSITY = 0.002, 0.25, 0.05
#: If no place is worth more, it rests for a while.
REST = 0.6
#: A reward is a success however small it is; the rest is its size, compared with the greatest.
SUCCESS = 0.6
#: Means and kinds of moments that are kept; with more of them, the memory is begun anew.
MOST = 50_000
_NOT_GROUND = frozenset(WALLS + ARROWS + UNKNOWN)


def _redrawn(before: str, after: str) -> bool:
    """Whether the picture has changed where neither of the two hides a cell."""
    if len(before) != len(after):
        return True
    return any(a != b and UNKNOWN not in (a, b) for a, b in zip(before, after, strict=True))


class PlaceLearner:
    """Goes to the place with the highest expected outcome: rewarded places, places it was led to, or else new ones."""

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        self._forget()

    def _forget(self) -> None:
        self._frame = Frame()
        self._worth = Worth()
        self._moments: dict[Signature, Moment] = {}
        #: What was last seen on each cell; where trials began; where something happened to who entered.
        self._beneath: dict[int, str] = {}
        self._starts: set[int] = set()
        self._eventful: set[int] = set()
        #: Glyphs that were entered, and glyphs into which FORWARD did not lead.
        self._walked: set[str] = set()
        self._bumped: set[str] = set()
        #: The greatest reward or punishment so far; eighths per rotation.
        self._greatest = 0.0
        self._turn = 1
        #: Steps of this moment; steps for which it still stays where it is.
        self._steps: int = 0
        self._patience: int = 0
        self._here: Situation | None = None
        self._asked = False

    def begin_trial(self, observation: str) -> None:
        """Start a trial: choose the orientation, and empty the working memory."""
        if len(self._worth) + len(self._moments) > MOST:
            self._forget()
        self._trial = Trial()
        self._frame.begin_trial(observation)
        self._here, self._asked = self._frame.look(observation), False
        if self._here is not None:
            self._starts.add(self._here.cell)
            self._begin_moment(self._here, carried=False)

    def act(self, observation: str) -> tuple[int]:
        """Return one action."""
        if self._here is None:
            return (self._random.randrange(len(ACTIONS)),)
        self._asked = True
        if self._moment.brief and self._steps < self._moment.longest:
            return (STAY,)
        if not self._plan and not self._patience:
            self._choose(self._here)
        if self._plan:
            return (self._plan.pop(),)
        self._patience = max(0, self._patience - 1)
        return (STAY,)

    def observe(self, action: int, reward: float, observation: str, ended: bool) -> None:
        """Record the result of one step (also of a frozen step)."""
        before, after = self._here, self._frame.look(observation)
        self._here, asked, self._asked = after, self._asked, False
        if before is None or after is None:
            if after is not None:
                self._begin_moment(after, carried=False)
            return
        self._steps += 1
        self._greatest = max(self._greatest, abs(reward))
        self._held |= not asked
        tried = action == FORWARD and asked
        at = self._grid.in_front(before.cell << 3 | before.heading) if tried else before.cell
        carried = after.cell not in (before.cell, at)
        changed = carried or after.text != before.text or _redrawn(before.picture, after.picture)
        if not carried and action in (ROTATE_LEFT, ROTATE_RIGHT):
            self._learn_to_turn(action, before.heading, after.heading)
        if reward or changed or ended:
            # Reward that comes with being carried belongs to the place it is carried to, unless it was held.
            entered = tried and not self._moment.regular
            place = after.cell if carried and not entered and asked else at
            if changed or ended:
                self._over(reward, tried=tried, ended=ended)
            self._event(place, reward, entered=entered)
        elif tried:
            self._nothing_happened(before, after, at)
        if ended:
            self._end_trial(after, reward)
            self._here = None  # the picture in which it stood is not looked at
        elif changed:
            self._begin_moment(after, carried=carried)
        else:
            expected = self._grid.step(before.cell << 3 | before.heading, action, self._turn)
            if expected != after.cell << 3 | after.heading:
                self._plan.clear()
            self._look_around(after)

    def _learn_to_turn(self, action: int, before: int, after: int) -> None:
        turned = (after - before if action == ROTATE_RIGHT else before - after) & 7
        if turned in (1, 2):
            self._turn = turned

    def _over(self, reward: float, *, tried: bool, ended: bool) -> None:
        """Note how the moment ended."""
        moment = self._moment
        was_timed = moment.timed
        moment.count += 1
        moment.shortest, moment.longest = min(moment.shortest, self._steps), max(moment.longest, self._steps)
        moment.unprompted |= not tried
        moment.felt |= reward != 0 and ended
        if moment.timed and not was_timed:
            # What seemed to follow from the subject's choice followed from time.
            self._worth.forget_looks(self._signature)

    def _event(self, place: int, reward: float, *, entered: bool) -> None:
        """Record the choice that led to an event."""
        timed, trial = self._moment.timed, self._trial
        if entered or reward or timed:
            size = reward / self._greatest if reward else 0.0
            trial.choices.append((self._choice(place), SUCCESS + (1 - SUCCESS) * size if reward > 0 else size))
        if entered and not timed:
            self._eventful.add(place)
        if reward > 0:
            trial.been[place] = REWARDED
        elif entered:
            trial.been.setdefault(place, IN_VAIN)
        if entered:
            self._plan.clear()

    def _nothing_happened(self, before: Situation, after: Situation, at: int) -> None:
        """A place that was entered has no consequences; one that was not entered is solid."""
        choice = self._choice(at)
        if choice.been != REWARDED:
            self._worth.nothing(choice)
        if after.cell == before.cell:
            self._barred.add(before.cell << 3 | before.heading)
            if not before.heading & 1:
                self._solid.add(at)
                self._bumped.add(choice.glyph)
            self._plan.clear()
        else:
            self._walked.add(choice.glyph)

    def _end_trial(self, after: Situation, reward: float) -> None:
        """Learn from the trial; the place to which it was led in the end is worth going to."""
        self._trial.learn(self._worth)
        if self._carried and self._held and not reward:
            self._worth.shown = after.cell

    def _begin_moment(self, here: Situation, *, carried: bool) -> None:
        self._look_around(here)
        counts = Counter(self._picture)
        out = sorted((glyph, n) for glyph, n in counts.items() if glyph != self._ground and glyph not in _NOT_GROUND)
        self._signature = (here.text, tuple(out))
        self._moment = self._moments.setdefault(self._signature, Moment())
        self._carried, self._began_at = carried, here.cell
        self._grid = Grid(self._picture, here.stride)
        self._steps = 0
        self._patience = 0
        self._rested = False
        #: Whether steps passed for which no action was asked.
        self._held = False
        #: Cells, and poses facing them, into which FORWARD did not lead.
        self._solid: set[int] = set()
        self._barred: set[int] = set()
        self._plan: list[int] = []

    def _look_around(self, here: Situation) -> None:
        """Store the picture; the subject's cell keeps what was last seen there."""
        self._beneath |= {cell: glyph for cell, glyph in enumerate(here.picture) if glyph != UNKNOWN}
        self._ground = usual_ground(here.picture.replace(UNKNOWN, ""))
        self._picture = here.picture.replace(UNKNOWN, self._beneath.get(here.cell, self._ground))

    def _choice(self, place: int) -> Choice:
        glyph = self._picture[place] if 0 <= place < len(self._picture) else WALLS[0]
        been = self._trial.been.get(place, FRESH)
        return Choice(self._signature, place, been, glyph, place != self._began_at)

    def _choose(self, here: Situation) -> None:
        """Plan the path to the place with the highest expected outcome, or stay there."""
        text = "".join(WALLS[0] if cell in self._solid else g for cell, g in enumerate(self._picture))
        grid = Grid(text, here.stride)
        start = here.cell << 3 | here.heading
        ways = Ways(grid, start, self._turn, self._barred, self._plain)
        far = Ways(grid, start, self._turn, self._barred, self._may_cross)
        timed = self._moment.timed
        idle = self._moment.regular and not timed
        best, target = float("-inf"), here.cell
        for cell, distance in far.distance.items():
            choice = self._choice(cell)
            if idle:
                # It passes, and nothing was ever to be had: there is no reason to go, but to what has paid just now.
                value = float(choice.been == REWARDED) if cell != here.cell else 0.5
            elif timed:
                if cell != here.cell and cell not in self._starts:
                    continue
                value = self._worth.of_looks(choice)
            elif cell == here.cell and choice.been != REWARDED:
                continue
            else:
                value = self._worth.of_place(choice) + LOOKS * self._worth.of_looks(choice)
                value += CURIOSITY * (self._picture[cell] != self._ground)
            if cell in ways.distance:
                value -= STEP_COST * ways.distance[cell]
            else:
                value -= STEP_COST * distance + TRESPASS
            value += STEP_COST * self._random.random() / 2
            if value > best:
                best, target = value, cell
        if target == here.cell or (best < REST and not self._rested and not timed and not idle):
            self._patience, self._rested = PATIENCE, True
        else:
            self._plan = (ways if target in ways.distance else far).way_to(target)

    def _plain(self, cell: int) -> bool:
        return cell not in self._eventful and self._picture[cell] == self._ground

    def _may_cross(self, cell: int) -> bool:
        return self._picture[cell] not in self._bumped or self._picture[cell] in self._walked
