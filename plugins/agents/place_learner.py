"""Place-learner: remembers what happened at each place, relative to the landmarks, and
goes to the best place by a map.

The agent reads top-down maps, as ``bfs-oracle`` does, and knows nothing else about the
apparatus. It treats a trial as a series of *moments*, each with its picture and text.
An event ends a moment: the subject is moved, the picture or the text changes, or the
trial ends. In each moment the agent chooses a place and takes the shortest path, if
possible one that touches no other conspicuous place. It remembers the outcome for the
place and for the place's looks, each together with the place's role in the trial
(whether it was already visited or rewarded).
"""

from __future__ import annotations

import cmath
import math
import random
from collections import Counter
from collections.abc import Callable, Container, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from cheesebench import ACTIONS, FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY, AgentContext
from cheesebench.plugins.agents.grid import ARROWS, WALLS, Grid, read, usual_ground

#: Marks the subject's cell, whose content is hidden.
UNKNOWN = "\0"
_HIDE_SUBJECT = str.maketrans(dict.fromkeys(ARROWS, UNKNOWN))


class Situation(NamedTuple):
    """A parsed observation.

    In ``picture``, the subject is ``UNKNOWN``. ``cell`` is the index of its character,
    line ends included, and ``stride`` the distance between rows. ``heading`` is in
    eighths of a circle clockwise from up. ``text`` is the text beneath the picture.
    """

    picture: str
    stride: int
    cell: int
    heading: int
    text: str


def look(observation: str) -> Situation | None:
    """Return the situation, or None if the observation is not a map with the subject in
    it.
    """
    sight = read(observation)
    if sight is None:
        return None
    picture = sight.map.removesuffix("\n").translate(_HIDE_SUBJECT) + "\n"
    return Situation(
        picture, sight.stride, sight.cell, sight.heading, sight.rest.strip()
    )


#: Maximum difference, in degrees, between a landmark's rotation and the room's. There
#: are differences because landmarks stand on squares of a grid, where there is space.
TOLERANCE = 20
#: Maximum distance, in cells, of a conspicuous place from its expected position if the
#: room is rotated in another way.
NEAR = 1.5


class Frame:
    """The room's frame of reference, in which places are remembered. Pictures are
    rotated until the landmarks match.

    Landmarks are glyphs that occur once. The room counts as rotated if all known
    landmarks in the picture, at least two, have moved around the centre by about the
    same angle.
    """

    def __init__(self) -> None:
        self._marks: dict[str, complex] = {}
        #: Rotation in degrees.
        self.turn = 0
        self._known: list[tuple[complex, bool, int]] = []
        self._numbers: dict[tuple[int, int, str], int] = {}

    def orient(self, here: Situation) -> None:
        """Find out by how much the picture is rotated. With fewer than two known
        landmarks in it, the last rotation stays.
        """
        marks = _landmarks(here)
        moved = [
            at / self._marks[glyph]
            for glyph, at in marks.items()
            if glyph in self._marks
        ]
        self._marks = marks | self._marks
        if len(moved) < 2:
            return
        mean = sum(one / abs(one) for one in moved)
        agree = abs(mean) > 0.1 and all(
            abs(_degrees(one / mean)) <= TOLERANCE for one in moved
        )
        self.turn = round(_degrees(mean)) % 360 if agree else 0

    def place(self, here: Situation, cell: int, glyph: str, ground: str) -> int:
        """Return the number under which the place at this cell is remembered. A place
        that is not known yet gets the next number.
        """
        key = self.turn, cell, glyph
        if key not in self._numbers:
            at, out = (
                _about_middle(here, cell) * cmath.rect(1, -math.radians(self.turn)),
                glyph != ground,
            )
            # In another rotation, a conspicuous place may be up to ``NEAR`` cells from
            # where it was. Otherwise only the same position counts.
            likely = [
                (abs(one - at), number)
                for number, (one, marked, turn) in enumerate(self._known)
                if marked == out
                and abs(one - at) <= (NEAR if out and turn != self.turn else 0.5)
            ]
            number = min(likely, default=(0.0, len(self._known)))[1]
            if number == len(self._known):
                self._known.append((at, out, self.turn))
            self._numbers[key] = number
        return self._numbers[key]


def _landmarks(here: Situation) -> dict[str, complex]:
    """Return the positions of the landmarks relative to the centre. A glyph at the
    centre is no landmark.
    """
    counts = Counter(here.picture)
    found = (
        (glyph, _about_middle(here, cell)) for cell, glyph in enumerate(here.picture)
    )
    return {
        glyph: at
        for glyph, at in found
        if counts[glyph] == 1 and glyph not in _NOT_GROUND and at
    }


def _degrees(one: complex) -> float:
    return math.degrees(cmath.phase(one))


def _about_middle(here: Situation, cell: int) -> complex:
    y, x = divmod(cell, here.stride)
    return complex(
        x - (here.stride - 2) / 2, y - (len(here.picture) // here.stride - 1) / 2
    )


_ACTIONS = (FORWARD, ROTATE_RIGHT, ROTATE_LEFT)


class Ways:
    """The shortest paths from ``start``, by breadth-first search over poses (``cell * 8
    + heading``).

    ``crossed`` says whether a path may continue from a cell other than the first.
    ``barred`` holds the poses from which FORWARD is known to fail. ``turn`` is the
    number of eighths of a circle per rotation.
    """

    def __init__(
        self,
        grid: Grid,
        start: int,
        turn: int,
        barred: Container[int],
        crossed: Callable[[int], bool],
    ) -> None:
        self._came: dict[int, tuple[int, int]] = {}
        self._pose = {start >> 3: start}
        #: Number of steps to each reachable cell.
        self.distance = {start >> 3: 0}
        depth = {start: 0}
        queue = [start]
        for pose in queue:  # The loop appends to ``queue``.
            cell = pose >> 3
            if cell != start >> 3 and not crossed(cell):
                continue
            for action in _ACTIONS:
                following = grid.step(pose, action, turn)
                if following in depth or (action == FORWARD and pose in barred):
                    continue
                depth[following] = depth[pose] + 1
                self._came[following] = pose, action
                queue.append(following)
                if following >> 3 not in self._pose:
                    self._pose[following >> 3] = following
                    self.distance[following >> 3] = depth[following]

    def way_to(self, cell: int) -> list[int]:
        """Return the actions that lead to the cell, in reverse order."""
        actions, pose = [], self._pose[cell]
        while pose in self._came:
            pose, action = self._came[pose]
            actions.append(action)
        return actions


#: Possible roles of a place in this trial: not yet visited, visited without reward, and
#: rewarded.
FRESH, IN_VAIN, REWARDED = 0, 1, 2
#: ``GUESS``: assumed outcome of a place without experience, for each role. ``SHOWN``:
#: assumed outcome of a place to which the subject was led.
GUESS = (0.5, 0.4, 0.7)
SHOWN = 2.0
#: Weight of an entry without consequences as evidence about places that look the same.
HINT = 0.1
#: Share of the next choice's outcome that is credited to a choice without an outcome of
#: its own.
FADING = 0.9
#: Weight of a place's looks, relative to the place itself.
LOOKS = 2.0
#: A moment with at most this many steps leaves no time to go anywhere.
SHORT = 4
#: If this many moments have the same number of steps, it is no coincidence.
NO_ACCIDENT = 3

#: Looks of a moment: its text, and how often each conspicuous glyph occurs.
Signature = tuple[str, tuple[tuple[str, int], ...]]


class Choice(NamedTuple):
    """A choice to which an outcome is credited."""

    moment: Signature
    place: int
    #: What happened at the place in this trial so far (``FRESH``, ``IN_VAIN`` or
    #: ``REWARDED``).
    been: int
    glyph: str
    #: Whether the moment began at another place.
    elsewhere: bool


class Worth:
    """Mean outcomes of kinds of places and of single places. Each mean includes a prior
    that counts as one outcome: the mean of the more general kind, or else ``GUESS`` or
    ``SHOWN``.
    """

    def __init__(self) -> None:
        self._sums: dict[Hashable, tuple[float, float]] = {}
        #: The place to which the subject was led.
        self.shown: int | None = None

    def __len__(self) -> int:
        return len(self._sums)

    def _add(self, key: Hashable, outcome: float, weight: float = 1.0) -> None:
        total, count = self._sums.get(key, (0.0, 0.0))
        self._sums[key] = total + weight * outcome, count + weight

    def nothing(self, choice: Choice) -> None:
        moment, place, been, glyph, elsewhere = choice
        self._add((place, been), 0.0)
        self._add((moment, place, been), 0.0)
        self._add((moment, glyph, been, elsewhere), 0.0, HINT)

    def credit(self, choice: Choice, outcome: float) -> None:
        """Record the outcome (-1 to 1) of a choice: for the place, for the place in
        this kind of moment, and for the place's looks in this kind of moment.
        """
        moment, place, been, glyph, elsewhere = choice
        self._add((place, been), outcome)
        self._add((moment, place, been), outcome)
        self._add((moment, glyph, been, elsewhere), outcome)

    def of_place(self, choice: Choice) -> float:
        guess = (
            SHOWN
            if choice.place == self.shown and choice.been == FRESH
            else GUESS[choice.been]
        )
        guess = self._mean((choice.place, choice.been), guess)
        return self._mean((choice.moment, choice.place, choice.been), guess)

    def of_looks(self, choice: Choice) -> float:
        """Return the worth of a place by its looks and its role in this trial."""
        key = (choice.moment, choice.glyph, choice.been, choice.elsewhere)
        return self._mean(key, GUESS[choice.been])

    def forget_looks(self, moment: Signature) -> None:
        """Forget the outcomes that were credited to looks in moments with this
        signature.
        """
        for key in [
            key
            for key in self._sums
            if isinstance(key, tuple) and len(key) == 4 and key[0] == moment
        ]:
            del self._sums[key]

    def _mean(self, key: Hashable, guess: float) -> float:
        total, count = self._sums.get(key, (0.0, 0.0))
        return (total + guess) / (count + 1)


@dataclass
class Moment:
    """Statistics of moments that look alike."""

    #: In this order: the number of moments, their shortest and longest duration in
    #: steps, whether one ended with a step that was no attempt to go forward, and
    #: whether a trial ended in one with reward or punishment.
    count: int = 0
    shortest: int = 1 << 30
    longest: int = 0
    unprompted: bool = False
    felt: bool = False

    @property
    def brief(self) -> bool:
        """Whether there were several such moments, all equally short, so that the
        subject cannot get anywhere in them.
        """
        return self.count > 1 and self.shortest == self.longest <= SHORT

    @property
    def regular(self) -> bool:
        """Whether there were at least ``NO_ACCIDENT`` such moments, all equally long
        and none short, and one ended without an attempt to go forward. The subject's
        actions then cannot have ended them.
        """
        return (
            self.unprompted
            and self.count >= NO_ACCIDENT
            and self.shortest == self.longest > SHORT
        )

    @property
    def timed(self) -> bool:
        """Whether such moments are regular, and the subject's position at their end has
        consequences.
        """
        return self.felt and self.regular


class Step(NamedTuple):
    """One step.

    ``asked`` says whether the subject chose the action, ``carried`` whether it was
    moved, and ``changed`` whether the moment has ended. ``at`` is the cell that the
    subject tried to enter if ``tried``, otherwise the cell where it was.
    """

    before: Situation
    after: Situation
    asked: bool
    tried: bool
    at: int
    carried: bool
    changed: bool


@dataclass
class Trial:
    """The working memory, which is empty when a trial begins."""

    #: Roles of places in this trial, unless ``FRESH``.
    been: dict[int, int] = field(default_factory=dict)
    #: Choices, each with its own outcome.
    choices: list[tuple[Choice, float]] = field(default_factory=list)

    def learn(self, worth: Worth) -> None:
        """Credit the choices in reverse order."""
        following = 0.0
        for choice, own in reversed(self.choices):
            following = own or FADING * following
            worth.credit(choice, following)
        self.choices.clear()


#: Number of steps that the learner waits if it chooses to stay where it is.
WAIT = 8
#: ``STEP_COST``: cost of a step. ``TRESPASS``: cost of a path across conspicuous
#: places. ``CURIOSITY``: bonus for going to a conspicuous place.
STEP_COST, TRESPASS, CURIOSITY = 0.002, 0.25, 0.05
#: If no place is worth this much, the learner stays where it is for a while.
REST = 0.6
#: Share of a reward's worth that does not depend on its size. The rest is proportional
#: to its size, relative to the largest.
SUCCESS = 0.6
#: Maximum number of means and kinds of moments. Beyond it, the memory is reset.
MAX_MEMORY = 50_000
_NOT_GROUND = frozenset(WALLS + ARROWS + UNKNOWN)


def _redrawn(before: str, after: str) -> bool:
    """Return whether the picture has changed, except in cells that the subject
    hides.
    """
    if len(before) != len(after):
        return True
    return any(
        a != b and UNKNOWN not in (a, b) for a, b in zip(before, after, strict=True)
    )


class PlaceLearner:
    """An agent that goes to the place with the highest expected outcome. It may be a
    rewarded place, a place to which the agent was led, or a new one.
    """

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        self._forget()

    def _forget(self) -> None:
        self._frame = Frame()
        self._worth = Worth()
        self._moments: dict[Signature, Moment] = {}
        #: In this order: the content last seen on each cell, the cells where trials
        #: began, and the cells that had an effect when they were entered.
        self._beneath: dict[int, str] = {}
        self._starts: set[int] = set()
        self._eventful: set[int] = set()
        #: In this order: the glyphs that were entered, and the glyphs that FORWARD
        #: could not enter.
        self._walked: set[str] = set()
        self._bumped: set[str] = set()
        #: In this order: the absolute value of the largest reward or punishment so far,
        #: and the number of eighths of a circle per rotation.
        self._greatest = 0.0
        self._turn = 1
        #: In this order: the number of steps in this moment so far, and the number of
        #: steps still to wait.
        self._steps: int = 0
        self._wait: int = 0
        self._here: Situation | None = None
        #: The situation whose picture is stored.
        self._seen: Situation | None = None
        self._asked = False

    def begin_trial(self, observation: str) -> None:
        """Start a trial: find out the rotation, and empty the working memory."""
        if len(self._worth) + len(self._moments) > MAX_MEMORY:
            self._forget()
        self._trial = Trial()
        self._here, self._asked = look(observation), False
        if self._here is not None:
            self._starts.add(self._here.cell)
            self._begin_moment(self._here, carried=False)

    def act(self, observation: str) -> tuple[int]:
        if self._here is None:
            return (self._random.randrange(len(ACTIONS)),)
        self._asked = True
        if self._moment.brief and self._steps < self._moment.longest:
            return (STAY,)
        if not self._plan and not self._wait:
            self._choose(self._here)
        if self._plan:
            return (self._plan.pop(),)
        self._wait = max(0, self._wait - 1)
        return (STAY,)

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Record the result of one step, including one in which the subject was
        frozen.
        """
        before, after = self._here, look(observation)
        self._here, asked, self._asked = after, self._asked, False
        if before is None or after is None:
            if after is not None:
                self._begin_moment(after, carried=False)
            return
        self._steps += 1
        self._greatest = max(self._greatest, abs(reward))
        self._held |= not asked
        step = self._compared(before, after, action, asked=asked)
        if not step.carried and action in (ROTATE_LEFT, ROTATE_RIGHT):
            self._learn_to_turn(action, before.heading, after.heading)
        self._credit(step, reward, ended=ended)
        if ended:
            self._end_trial(after, reward)
            self._here = None  # The next picture is not compared with this one.
        elif step.changed:
            self._begin_moment(after, carried=step.carried)
        else:
            expected = self._grid.step(
                before.cell << 3 | before.heading, action, self._turn
            )
            if expected != after.cell << 3 | after.heading:
                self._plan.clear()
            self._look_around(after)

    def _compared(
        self, before: Situation, after: Situation, action: int, *, asked: bool
    ) -> Step:
        tried, at = action == FORWARD and asked, before.cell
        if tried:
            at = self._grid.in_front(before.cell << 3 | before.heading)
        carried = after.cell not in (before.cell, at)
        changed = (
            carried
            or after.text != before.text
            or _redrawn(before.picture, after.picture)
        )
        return Step(before, after, asked, tried, at, carried, changed)

    def _credit(self, step: Step, reward: float, *, ended: bool) -> None:
        """Record the outcome of a step for the place that it concerns."""
        over = step.changed or ended
        if reward or over:
            # If a step that enters nothing moves the subject, its reward belongs to the
            # new place, unless the subject was held.
            entered = step.tried and not self._moment.regular
            led = step.carried and not entered and step.asked
            if over:
                self._over(reward, tried=step.tried, ended=ended)
            place = step.after.cell if led else step.at
            self._event(place, reward, entered=entered)
        elif step.tried:
            self._nothing_happened(step.before, step.after, step.at)

    def _learn_to_turn(self, action: int, before: int, after: int) -> None:
        turned = (after - before if action == ROTATE_RIGHT else before - after) & 7
        if turned in (1, 2):
            self._turn = turned

    def _over(self, reward: float, *, tried: bool, ended: bool) -> None:
        moment = self._moment
        was_timed = moment.timed
        moment.count += 1
        moment.shortest, moment.longest = (
            min(moment.shortest, self._steps),
            max(moment.longest, self._steps),
        )
        moment.unprompted |= not tried
        moment.felt |= reward != 0 and ended
        if moment.timed and not was_timed:
            # The passing of time ended these moments, not a choice, so outcomes
            # credited to looks mean nothing.
            self._worth.forget_looks(self._signature)

    def _event(self, place: int, reward: float, *, entered: bool) -> None:
        timed, trial = self._moment.timed, self._trial
        if entered or reward or timed:
            trial.choices.append((self._choice(place), self._outcome(reward)))
        if entered and not timed:
            self._eventful.add(place)
        if reward > 0:
            trial.been[self._number(place)] = REWARDED
        elif entered:
            trial.been.setdefault(self._number(place), IN_VAIN)
        if entered:
            self._plan.clear()

    def _outcome(self, reward: float) -> float:
        """Return the outcome that a reward means, from -1 to 1."""
        size = reward / self._greatest if reward else 0.0
        return SUCCESS + (1 - SUCCESS) * size if reward > 0 else size

    def _nothing_happened(self, before: Situation, after: Situation, at: int) -> None:
        """Record that entering a place had no consequences or, if the subject did not
        move, that the cell cannot be entered.
        """
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
        """Learn from the trial. If the subject was moved at the beginning of the last
        moment, and held in it, and the last step had no reward, the place where the
        trial ended counts as worth visiting.
        """
        self._trial.learn(self._worth)
        if self._carried and self._held and not reward:
            self._worth.shown = self._number(after.cell)

    def _begin_moment(self, here: Situation, *, carried: bool) -> None:
        before = self._frame.turn
        self._frame.orient(here)
        if self._frame.turn != before:
            self._beneath.clear()
        self._look_around(here)
        counts = Counter(self._picture)
        out = sorted(
            (glyph, n)
            for glyph, n in counts.items()
            if glyph != self._ground and glyph not in _NOT_GROUND
        )
        self._signature = (here.text, tuple(out))
        self._moment = self._moments.setdefault(self._signature, Moment())
        self._carried, self._began_at = carried, here.cell
        self._grid = Grid(self._picture, here.stride)
        self._steps = 0
        self._wait = 0
        self._rested = False
        #: Whether frozen steps have passed in this moment.
        self._held = False
        #: ``_solid``: the cells that FORWARD could not enter, except diagonally.
        #: ``_barred``: the poses from which FORWARD failed.
        self._solid: set[int] = set()
        self._barred: set[int] = set()
        self._plan: list[int] = []

    def _look_around(self, here: Situation) -> None:
        """Store the picture. The cell that the subject hides keeps its last visible
        content.
        """
        self._seen = here
        self._beneath |= {
            cell: glyph for cell, glyph in enumerate(here.picture) if glyph != UNKNOWN
        }
        self._ground = usual_ground(here.picture.replace(UNKNOWN, ""))
        self._picture = here.picture.replace(
            UNKNOWN, self._beneath.get(here.cell, self._ground)
        )

    def _choice(self, place: int) -> Choice:
        glyph = self._picture[place] if 0 <= place < len(self._picture) else WALLS[0]
        number = self._number(place)
        return Choice(
            self._signature,
            number,
            self._trial.been.get(number, FRESH),
            glyph,
            place != self._began_at,
        )

    def _number(self, place: int) -> int:
        assert self._seen is not None
        glyph = self._picture[place] if 0 <= place < len(self._picture) else WALLS[0]
        return self._frame.place(self._seen, place, glyph, self._ground)

    def _choose(self, here: Situation) -> None:
        """Plan the path to the place with the highest expected outcome. Plan to wait if
        the subject is there already or, at most once in a moment that is not regular,
        if no outcome is good enough.
        """
        grid = self._grid_seen(here)
        start = here.cell << 3 | here.heading
        ways = Ways(grid, start, self._turn, self._barred, self._plain)
        far = Ways(grid, start, self._turn, self._barred, self._may_cross)
        best, target = float("-inf"), here.cell
        worth_of = self._worth_function()
        for cell, distance in far.distance.items():
            value = worth_of(self._choice(cell), cell, here)
            if value is None:
                continue
            if cell in ways.distance:
                value -= STEP_COST * ways.distance[cell]
            else:
                value -= STEP_COST * distance + TRESPASS
            value += STEP_COST * self._random.random() / 2
            if value > best:
                best, target = value, cell
        may_rest = not (self._rested or self._moment.regular)
        if target == here.cell or (best < REST and may_rest):
            self._wait, self._rested = WAIT, True
        else:
            self._plan = (ways if target in ways.distance else far).way_to(target)

    def _grid_seen(self, here: Situation) -> Grid:
        """Return the grid with a wall for each cell that FORWARD could not enter."""
        text = "".join(
            WALLS[0] if cell in self._solid else glyph
            for cell, glyph in enumerate(self._picture)
        )
        return Grid(text, here.stride)

    def _worth_function(self) -> Callable[[Choice, int, Situation], float | None]:
        """Return a function that returns the worth of going to a cell in this moment,
        or None for a cell that is ruled out.
        """
        if self._moment.timed:
            return self._worth_at_the_end
        return self._worth_of_idling if self._moment.regular else self._worth_of_going

    def _worth_at_the_end(
        self, choice: Choice, cell: int, here: Situation
    ) -> float | None:
        if cell != here.cell and cell not in self._starts:
            return None
        return self._worth.of_looks(choice)

    def _worth_of_idling(
        self, choice: Choice, cell: int, here: Situation
    ) -> float | None:
        # Such moments pass by themselves, and no trial ended in one with reward or
        # punishment, so only a place rewarded in this trial is a reason to go.
        if cell == here.cell:
            return 0.5
        return float(choice.been == REWARDED)

    def _worth_of_going(
        self, choice: Choice, cell: int, here: Situation
    ) -> float | None:
        if cell == here.cell and choice.been != REWARDED:
            return None
        value = self._worth.of_place(choice) + LOOKS * self._worth.of_looks(choice)
        return value + CURIOSITY * (self._picture[cell] != self._ground)

    def _plain(self, cell: int) -> bool:
        return cell not in self._eventful and self._picture[cell] == self._ground

    def _may_cross(self, cell: int) -> bool:
        return (
            self._picture[cell] not in self._bumped
            or self._picture[cell] in self._walked
        )
