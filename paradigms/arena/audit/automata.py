"""Searches subjects with a few states of memory: how well does the best one do?

An automaton has one aim for each state and each kind of picture. Its next state may
depend on what a trial paid and said (``outcome``), on where it ended (``place``), on
all of this and its present state (``any``), or on nothing. Rules are scored on trials
whose beginnings are kept: from each, each aim is walked once. What is reported is the
rate of other lives, led step by step.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.paradigms.arena.audit import runs
from cheesebench.paradigms.arena.audit.aims import (
    Aim,
    Edge,
    Kind,
    Moment,
    Passed,
    Places,
    manners,
)
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import expressions as ex

#: Moments of each kind in which aims are compared (at most two of a life), and in which
#: they are carried out; numbers of aims and of kinds that are kept.
SAMPLE, TRIED, MOST_AIMS, MOST_KINDS = 60, 40, 260, 8
#: Minimum numbers of lives, and of judged trials of each; lives that are run twice.
LIVES, JUDGED, TWICE = 36, 10, 4
#: Rewards nearer to 0 are none.
WIN = 0.05
#: A trial that gets farther counts a little more: where two decisions must be right,
#: the first one is found so.
PROGRESS = 1e-4
#: A rule that is so much behind on a quarter of the lives is given up; and options of
#: one change.
FAR, OPTIONS = 0.06, 50
#: Attempts without gain after which a rule without memory is taken as the best.
IN_VAIN = 8
#: Costs in steps of a life: of a copy of a life, and of looking a trial up.
COPY, LOOK_UP = 4.0, 0.1
#: Trials of fresh lives, the steps for them, and the fewest balanced groups.
FRESH, CONFIRMED, FEWEST = 4000, 450_000, 4
#: Cost of a trial that is really run, beside its steps.
TRIAL = 15.0
NOWHERE = -1
#: What the next state depends on: state, code of what was told, rank of the place.
Situation = tuple[int, int, int]


class Memory(NamedTuple):
    """What a subject may remember: a class of automata."""

    name: Literal["nothing", "outcome", "place", "any"]
    states: int = 1
    clock: Literal["life", "trial"] = "life"
    """``trial``: the state changes within the trial, and is lost at its end."""
    within: bool = False
    """Whether it also knows which members it has visited in this trial."""


@dataclass(slots=True)
class Automaton:
    """One subject: ``aims[kind][state]`` are numbers of aims; ``rules`` give the next
    state by what its class knows, and ``table`` spells them out.
    """

    memory: Memory
    aims: list[list[int]]
    zero: int = 0
    rules: dict[Situation, int] = field(default_factory=dict)
    table: dict[Situation, int] = field(default_factory=dict)

    def copy(self) -> Automaton:
        rows = [list(row) for row in self.aims]
        return replace(self, aims=rows, rules=dict(self.rules), table={})

    def of_state(self) -> list[tuple[int, ...]]:
        return [
            tuple(row[one] for row in self.aims) for one in range(self.memory.states)
        ]


class Experience:
    """Beginnings of trials of many lives, kept as copies, and where aims lead from
    there.
    """

    def __init__(self, paradigm: ArenaParadigm, seed: int, trials: int) -> None:
        self.paradigm, self.specification = paradigm, paradigm.specification
        self.places = Places(paradigm)
        about = self.specification.judged
        measured = about is not None and about.better is not None
        self.measure = about.measure if about is not None and measured else None
        #: Whether success reads how earlier trials ended, and nothing else of them.
        self.reads_outcomes = _reads_outcomes(self.specification.success)
        self.spent = 0.0
        self._chance = random.Random(f"{seed}|memory")
        self._seed, self._trials = seed, trials
        self.lives: list[list[Moment | Edge]] = []
        self._without_choice: dict[int, Passed] = {}
        self._coded: dict[tuple[float, tuple[str, ...]], int] = {}
        self.samples: dict[Kind, list[Moment]] = {}
        self.codes: dict[tuple[str, tuple[str, ...]], int] = {}
        self._collect()
        by_number = sorted(self.samples, key=lambda kind: -len(self.samples[kind]))
        kept = by_number[:MOST_KINDS]
        self.number = {
            kind: number
            for number, kind in enumerate(one for one in self.samples if one in kept)
        }
        self.zeros = self.places.zeros()
        self.aims = [self._aims(self.samples[kind]) for kind in self.number]
        rewards = [edge.reward for edge in self._tried()]
        self._best, self._worst = max([0.0, *rewards]), min([0.0, *rewards])
        #: Whether no trial depends on what was done in earlier ones.
        self.is_independent = self._is_independent()

    # -- collecting

    def _seeds(self) -> list[tuple[int, int, int]]:
        """Return whole balanced groups of subjects: a habit is right with some subjects
        and not with others.
        """
        most = max(self._trials, LIVES * self.specification.planned_trials)
        return list(runs.lives_for(self.specification, most, self._seed))

    def _collect(self) -> None:
        taken: Counter[tuple[Kind, int]] = Counter()
        for number, (seed, subject, _) in enumerate(self._seeds()):
            roots = list(self._lead(seed, subject, number, taken))
            self.lives.append(roots)
        # A quarter of the lives is one of each row of a balanced draw.
        self.lives = [one for first in range(4) for one in self.lives[first::4]]

    def _lead(
        self, seed: int, subject: int, number: int, taken: Counter[tuple[Kind, int]]
    ) -> Iterator[Moment | Edge]:
        """Lead a life at random; yield how its trials begin."""
        life = ArenaSubject(self.paradigm.program, runs.DARKNESS, seed, subject)
        judged = 0
        while judged < JUDGED and (found := self.begin(life)) is not None:
            yield self._kept(found) if isinstance(found, Moment) else found
            while isinstance(found, Moment):
                self._take(found, number, taken)
                edge = self._wander(found, life)
                found = edge.next or edge
            judged += found.score is not None

    def _take(
        self, moment: Moment, number: int, taken: Counter[tuple[Kind, int]]
    ) -> None:
        self.places.glyphs(moment.life)
        taken[moment.kind, number] += 1
        sample = self.samples.setdefault(moment.kind, [])
        if len(sample) < SAMPLE and taken[moment.kind, number] <= 2:
            sample.append(self._kept(moment))

    def _kept(self, moment: Moment) -> Moment:
        return Moment(self.places, moment.life.twin(), moment.visited)

    def _wander(self, moment: Moment, life: ArenaSubject) -> Edge:
        group = self._chance.choice(self.places.of_state[life.state] or [0])
        names = moment.reachable(group) if self.places.groups else []
        order = self._chance.sample(names, len(names))
        goes = self._chance.random() < 0.8
        return self.walk(moment, tuple(order) if goes else (), life)

    def _aims(self, sample: Sequence[Moment]) -> list[Aim]:
        """Return aims that differ in these moments: in the places, then in effects."""
        known: dict[object, Aim] = {}
        for aim in self._options(sample):
            known.setdefault(tuple(one.targets(aim) for one in sample), aim)
        different: dict[object, Aim] = {}
        for aim in known.values():
            different.setdefault(
                tuple(self._effect(one, aim) for one in sample[:TRIED]), aim
            )
        found = list(different.values())
        if len(found) > MOST_AIMS:
            found = found[:1] + self._chance.sample(found[1:], MOST_AIMS - 1)
        return found

    def _effect(self, moment: Moment, aim: Aim) -> object:
        edge = self.walked(moment, aim)
        pose = None if edge.next is None else edge.next.life.pose
        return edge.reward, edge.ended, edge.score, pose

    def _options(self, sample: Sequence[Moment]) -> Iterator[Aim]:
        yield Aim()
        groups = {g for one in sample for g in self.places.of_state[one.life.state]}
        pasts = ("", "new", "old") if any(one.visited for one in sample) else ("",)
        for group in sorted(groups):
            members = len(self.places.groups[group][1])
            for past in pasts:
                for lit in self._lit(sample, group):
                    for then in manners(members):
                        for zero in self.zeros:
                            for first in range(members):
                                yield Aim(group, zero, first, then, lit, past)

    def _lit(self, sample: Sequence[Moment], group: int) -> list[str]:
        """Return glyphs that some members of a group show and others do not."""
        places = self.places
        members = places.groups[group][1]

        def tells(moment: Moment, glyph: str) -> bool:
            squares = places.glyphs(moment.life).get(glyph, frozenset())
            return (
                0
                < sum(bool(places.squares[m] & squares) for m in members)
                < len(members)
            )

        return [g for g in places.seen if any(tells(m, g) for m in sample[:8])] + [""]

    def _tried(self) -> Iterator[Edge]:
        for kind, number in self.number.items():
            for moment in self.samples[kind][:20]:
                for aim in self.aims[number][:TRIED]:
                    yield self.walked(moment, aim)

    def _is_independent(self) -> bool:
        """Return whether trials of lives that were led otherwise begin, and go on, as
        they did.
        """
        chance, again = self._chance, random.Random(f"{self._seed}|again")
        seeds = self._seeds()[:TWICE]
        one: list[list[Moment | Edge]] = []
        for stream in (chance, again):
            self._chance = stream
            one.append(
                [
                    root
                    for number, (seed, subject, _) in enumerate(seeds)
                    for root in self._lead(seed, subject, number, Counter())
                ]
            )
        self._chance = chance
        first, second = one
        if len(first) != len(second) and self.specification.where is None:
            return False
        pairs = zip(first, second, strict=False)
        return all(self._alike(root, other) for root, other in pairs)

    def _alike(self, one: Moment | Edge, other: Moment | Edge) -> bool:
        if isinstance(one, Edge) or isinstance(other, Edge):
            return isinstance(one, Edge) and isinstance(other, Edge)
        first, second = one.life, other.life
        if (first.pose, first.look.key, first.block) != (
            second.pose,
            second.look.key,
            second.block,
        ):
            return False
        known = self.aims[self.number[one.kind]] if one.kind in self.number else [Aim()]
        some = self._chance.sample(known, min(4, len(known)))
        return all(self._course(one, aim) == self._course(other, aim) for aim in some)

    def _course(self, moment: Moment, aim: Aim) -> list[object]:
        """Return what follows if one aim is followed by the first member, each time."""
        done: list[object] = []
        reached: Moment | None = moment
        while reached is not None:
            edge = self.walked(reached, aim)
            score = None if self.reads_outcomes else edge.score
            done.append((edge.reward, edge.said, edge.ended, edge.outcome, score))
            reached, aim = edge.next, Aim(0)
        return done

    # -- moving

    def _twin(self, moment: Moment) -> ArenaSubject:
        self.spent += COPY
        return moment.life.twin()

    def begin(self, life: ArenaSubject) -> Moment | Edge | None:
        """Begin a trial and wait until there is something to decide; None: the judged
        part of the schedule is over.
        """
        if (
            life.begin_trial() is None
            or life.block in self.specification.blocks_after_judged
        ):
            return None
        moment = Moment(self.places, life, frozenset(self.places.here(life)))
        if not life.waiting:
            return moment
        edge = self.walk(moment, (), life)
        return edge.next or edge

    def walk(
        self, moment: Moment, targets: tuple[str, ...], life: ArenaSubject
    ) -> Edge:
        """Go to places in order, then wait, up to the next moment or the end."""
        return Walk(self, moment, life).go(targets)

    def walked(self, moment: Moment, aim: Aim) -> Edge:
        """Return where an aim leads from a copy of the moment.

        Aims that begin with the same places, up to where something happens, lead to the
        same: that is walked once.
        """
        targets = moment.targets(aim)
        for number in range(1, len(targets) + 1):
            if (known := moment.happened.get(targets[:number])) is not None:
                return known
        if (known := moment.waited.get(targets)) is not None:
            return known
        course = Walk(self, moment, self._twin(moment))
        edge = course.go(targets)
        if course.followed is None:
            moment.waited[targets] = edge
        else:
            moment.happened[targets[: course.followed]] = edge
        return edge

    def score(self, life: ArenaSubject) -> float | None:
        """Return what the trial that has ended counts; None: it is not judged."""
        if self.measure is None:
            success = runs.is_judged(life.result(), self.specification)
            return None if success is None else float(success)
        result = life.result()
        value = result.measures.get(self.measure)
        counts = result.compared and result.block in self.specification.judged_blocks
        return float(value) if counts and isinstance(value, int | float) else None

    # -- what is told

    def code(self, reward: float, said: tuple[str, ...]) -> int:
        """Return a number for what a trial, or a part of one, paid and said."""
        known = self._coded.get((reward, said))
        if known is None:
            known = self._coded[reward, said] = self._code(reward, said)
        return known

    def _code(self, reward: float, said: tuple[str, ...]) -> int:
        if reward > WIN:
            is_best = reward > self._best / 2 + 1e-9 or self._best <= WIN
            what = "well paid" if is_best else "paid"
        elif reward < -WIN:
            what = "punished" if reward <= self._worst / 2 else "cost"
        else:
            what = "unpaid"
        return self.codes.setdefault((what, said), len(self.codes))

    def edge(self, moment: Moment, number: int) -> Edge:
        found = moment.edges.get(number)
        if found is None:
            found = moment.edges[number] = self.walked(moment, self.aim(moment, number))
        return found

    def aim(self, moment: Moment, number: int) -> Aim:
        kind = self.number.get(moment.kind)
        return Aim() if kind is None else self.aims[kind][number]

    def choice(self, moment: Moment, aims: Sequence[int]) -> int:
        kind = self.number.get(moment.kind)
        return 0 if kind is None else aims[kind]

    @property
    def ranks_of_nowhere(self) -> tuple[int, ...]:
        return (NOWHERE,) * len(self.zeros)

    def ranks(self, moment: Moment, ended: tuple[int, str] | None) -> tuple[int, ...]:
        """Return where it ended, from each zero."""
        if ended is None:
            return self.ranks_of_nowhere
        found = moment.told.get(ended)
        if found is None:
            group, name = ended
            found = tuple(moment.ranks(group, zero)[name] for zero in self.zeros)
            moment.told[ended] = found
        return found

    # -- scoring

    def trial(self, root: Moment, aims: tuple[int, ...]) -> Passed:
        """Return a trial in which the aims are those of one state."""
        found = root.memo.get(aims)
        if found is None:
            total, ended, depth = 0.0, None, 0
            moment: Moment | None = root
            while moment is not None:
                edge = self.edge(moment, self.choice(moment, aims))
                total, depth = total + edge.reward, depth + 1
                ended, moment = edge.ended or ended, edge.next
            ranks = self.ranks(root, ended)
            code = self.code(total, edge.said)
            found = Passed(edge.score, code, ranks, depth, edge.outcome)
            root.memo[aims] = found
        return found

    def play(self, automaton: Automaton) -> Iterator[tuple[float, int]]:
        """Yield score and number of the judged trials of each life, by look-ups."""
        lives = self._trials_of if automaton.memory.clock == "trial" else self._life_of
        for roots in self.lives:
            self.spent += LOOK_UP * len(roots)
            yield lives(automaton, roots)

    def _life_of(
        self, automaton: Automaton, roots: Sequence[Moment | Edge]
    ) -> tuple[float, int]:
        state, aims, zero = 0, automaton.of_state(), automaton.zero
        following, earlier = automaton.table.get, Outcomes()
        total, judged = 0.0, 0
        for root in roots:
            if isinstance(root, Edge):
                passed = self._untouched(root)
            else:
                passed = root.memo.get(aims[state]) or self.trial(root, aims[state])
            score = passed.score
            if self.reads_outcomes:
                score = self._with(earlier, passed.outcome, score)
            if score is not None:
                total += score + PROGRESS * passed.depth
                judged += 1
            state = following((state, passed.code, passed.ranks[zero]), state)
        return total, judged

    def _untouched(self, root: Edge) -> Passed:
        """Return a trial in which there is nothing to decide."""
        found = self._without_choice.get(id(root))
        if found is None:
            code = self.code(root.reward, root.said)
            found = Passed(root.score, code, self.ranks_of_nowhere, 0, root.outcome)
            self._without_choice[id(root)] = found
        return found

    def _with(
        self, earlier: Outcomes, outcome: str, score: float | None
    ) -> float | None:
        """Return the score of a trial that follows these."""
        earlier.add(outcome)
        success = self.paradigm.program.success
        return None if score is None or success is None else float(success(earlier))

    def _trials_of(
        self, automaton: Automaton, roots: Sequence[Moment | Edge]
    ) -> tuple[float, int]:
        aims, earlier = automaton.of_state(), Outcomes()
        total, judged = 0.0, 0
        for root in roots:
            if isinstance(root, Moment) and not (root.judged or self.reads_outcomes):
                continue
            edge, depth = self._trial_of(automaton, aims, root)
            score = edge.score
            if self.reads_outcomes:
                score = self._with(earlier, edge.outcome, score)
            if score is not None:
                total += score + PROGRESS * depth
                judged += 1
        return total, judged

    def _trial_of(
        self,
        automaton: Automaton,
        aims: Sequence[tuple[int, ...]],
        root: Moment | Edge,
    ) -> tuple[Edge, int]:
        """Return how a trial ends in which the state changes, and how many decisions it
        took.
        """
        state, depth = 0, 0
        if isinstance(root, Edge):
            return root, depth
        moment: Moment | None = root
        while moment is not None:
            choice = self.choice(moment, aims[state])
            known = moment.steps.get(choice)
            if known is None:
                edge = self.edge(moment, choice)
                code = self.code(edge.reward, edge.said)
                ranks = self.ranks(moment, edge.ended)
                known = moment.steps[choice] = edge.next, code, ranks, edge
            moment, code, ranks, edge = known
            at = state, code, ranks[automaton.zero]
            state, depth = automaton.table.get(at, state), depth + 1
        return edge, depth

    # -- real lives

    def live(
        self, automaton: Automaton, seed: int, subject: int, used: Counter[Situation]
    ) -> tuple[float, int]:
        """Lead a real life, step by step; return score and number of judged trials."""
        life = ArenaSubject(self.paradigm.program, runs.DARKNESS, seed, subject)
        state, scores = 0, list[float]()
        self.spent += TRIAL * self.specification.planned_trials
        while (found := self.begin(life)) is not None:
            state, score = self._live_trial(automaton, life, found, state, used)
            scores += [] if score is None else [score]
        return sum(scores), len(scores)

    def _live_trial(
        self,
        automaton: Automaton,
        life: ArenaSubject,
        found: Moment | Edge,
        state: int,
        used: Counter[Situation],
    ) -> tuple[int, float | None]:
        within, aims = automaton.memory.clock == "trial", automaton.of_state()
        state = 0 if within else state
        total = found.reward if isinstance(found, Edge) else 0.0
        ended: tuple[int, str] | None = None
        ranks = self._zeroed(found, automaton)
        while isinstance(found, Moment):
            now = self._zeroed(found, automaton)
            aim = self.aim(found, self.choice(found, aims[state]))
            edge = self.walk(found, found.targets(aim), life)
            total, ended = total + edge.reward, edge.ended or ended
            if within:
                at = self._situation(state, edge.reward, edge.said, edge.ended, now)
                used[at] += 1
                state = automaton.table.get(at, state)
            found = edge.next or edge
        if not within:
            at = self._situation(state, total, found.said, ended, ranks)
            used[at] += 1
            state = automaton.table.get(at, state)
        return state, found.score

    def _zeroed(
        self, found: Moment | Edge, automaton: Automaton
    ) -> list[dict[str, int]]:
        """Return the ranks in each group from the automaton's zero, as it stands."""
        if isinstance(found, Edge):
            return []
        zero = self.zeros[automaton.zero]
        return [found.ranks(group, zero) for group in range(len(self.places.groups))]

    def _situation(
        self,
        state: int,
        reward: float,
        said: tuple[str, ...],
        ended: tuple[int, str] | None,
        ranks: Sequence[dict[str, int]],
    ) -> Situation:
        rank = NOWHERE if ended is None or not ranks else ranks[ended[0]][ended[1]]
        return state, self.code(reward, said), rank


class Outcomes:
    """Endings of the trials so far, as ``success`` reads them."""

    def __init__(self) -> None:
        self._ended: list[str] = []
        self.last = ""

    def add(self, outcome: str) -> None:
        self.last = outcome
        self._ended.append(outcome)

    def recent(self, what: ex.Recent) -> int:
        return self._ended[-what.trials :].count(what.outcome or "")


def _reads_outcomes(success: ex.Expression | None) -> bool:
    nodes = list(ex.walk(success))
    plain = all(
        isinstance(one, ex.Recent | ex.Binary | ex.Unary | ex.Number | ex.Constant)
        or one == ex.BuiltIn("last")
        for one in nodes
    )
    return plain and any(isinstance(one, ex.Recent) for one in nodes)


class Walk:
    """One aim carried out in a life, up to the next moment of decision."""

    def __init__(self, world: Experience, moment: Moment, life: ArenaSubject) -> None:
        self._world, self._places, self._life = world, world.places, life
        self._state, self._status, self._begun = life.state, RUNNING, life.steps
        self._visited = set(moment.visited)
        self._total, self._reached = 0.0, ""
        #: Number of places visited before something happened; None: all, in vain.
        self.followed: int | None = None

    @property
    def _goes_on(self) -> bool:
        return self._status == RUNNING and self._life.state == self._state

    def _step(self, action: int) -> None:
        _, gain, self._status = self._life.step(action)
        self._total += gain

    def go(self, targets: tuple[str, ...]) -> Edge:
        life, places = self._life, self._places
        for number, name in enumerate(targets, 1):
            self._go_to(name)
            if not self._goes_on:
                self.followed = number
                break
        while self._goes_on and not life.waiting:
            self._step(STAY)
        said = life.look.key[3]
        while self._status == RUNNING and life.waiting:
            self._visited |= places.here(life)
            said = life.look.key[3]
            self._step(STAY)
        self._world.spent += life.steps - self._begun
        group = next(
            (
                n
                for n, (_, m) in enumerate(places.groups)
                if targets and targets[0] in m
            ),
            0,
        )
        if self._status == RUNNING:
            after = Moment(places, life, frozenset(self._visited))
            return Edge(after, self._total, said, self._ended(group, set()), None)
        ended = self._ended(group, places.here(life))
        score = self._world.score(life)
        return Edge(None, self._total, said, ended, score, life.outcome or "")

    def _go_to(self, name: str) -> None:
        life, places = self._life, self._places
        listen = places.states[self._state].listen
        while self._goes_on:
            way = places.ways.to(life.tables, listen, name)
            near = life.pose >> 2
            if way.actions[near] == runs.NO_WAY:
                return
            self._step(way.actions[near])
            if way.last[near]:
                self._reached = name
                self._visited.add(name)
                return

    def _ended(self, group: int, here: set[str]) -> tuple[int, str] | None:
        if not self._places.groups:
            return None
        members = self._places.groups[group][1]
        at = next((name for name in members if name in here), self._reached)
        return (group, at) if at in members else None


class Search:
    """Coordinate ascent with restarts over the automata of one class."""

    def __init__(
        self,
        world: Experience,
        memory: Memory,
        seed: int,
        effort: float,
        begin: Sequence[Automaton] = (),
    ) -> None:
        self._world, self._memory, self._begin = world, memory, begin
        self._most = world.spent + effort
        self._chance = random.Random(f"{seed}|{memory}")
        #: Aims that may be chosen: to tell visited members takes memory.
        self._options = [
            [n for n, aim in enumerate(aims) if memory.within or not aim.past]
            for aims in world.aims
        ]
        members = [len(members) for _, members in world.places.groups]
        self._ranks = [*range(NOWHERE, max(members, default=0))]
        self._lives = [
            (seed, subject)
            for seed, subject, _ in runs.lives_for(
                world.specification, JUDGED * LIVES, seed, judged=True
            )
        ][:24]
        #: Rules tried, and the score of the last one on a quarter of the lives.
        self.tried, self._quarter = 0, -1.0

    def find(self) -> tuple[float, Automaton]:
        """Return the best automaton that is found with this effort, and its score."""
        best = self._climbed(self._start(is_first=True))
        vain = 0
        while not self._is_over and best[0] < 1 and vain < IN_VAIN:
            found = self._climbed(self._start(is_first=False))
            vain += self._memory.states == 1
            if found[0] > best[0] + 1e-12:
                best, vain = found, 0
        self._spell_out(best[1])
        return best

    @property
    def _is_over(self) -> bool:
        return self._world.spent > self._most

    # -- scoring

    def _keys(self) -> list[Situation]:
        """Return what the next state may depend on; 0 stands for what it may not."""
        codes, ranks = [*range(len(self._world.codes))], self._ranks
        if self._memory.states == 1:
            return []
        match self._memory.name:
            case "outcome":
                return [(0, code, 0) for code in codes]
            case "place":
                return [(0, 0, rank) for rank in ranks]
        states = range(self._memory.states)
        return [(s, code, rank) for s in states for code in codes for rank in ranks]

    def _spell_out(self, automaton: Automaton) -> None:
        """Fill the table. What a rule of the outcome or the place does not name leads
        to the first state: to keep the state would be memory of it.
        """
        name, rules, table = self._memory.name, automaton.rules, automaton.table
        if self._memory.states == 1:
            return
        if name == "any":
            automaton.table = rules
            return
        for state in range(self._memory.states):
            for code in range(len(self._world.codes) + 6):
                for rank in self._ranks:
                    key = (0, code, 0) if name == "outcome" else (0, 0, rank)
                    table[state, code, rank] = rules.get(key, 0)

    def _score(self, automaton: Automaton, rival: float = -1.0) -> float:
        """Return the mean over judged trials; -1 where it is far behind a rival on a
        quarter of the lives.
        """
        self._spell_out(automaton)
        self.tried += 1
        world = self._world
        if not world.is_independent:
            counts = [
                world.live(automaton, *one, Counter[Situation]()) for one in self._lives
            ]
            return _share(counts)
        counts = []
        for life in world.play(automaton):
            counts.append(life)
            if len(counts) == len(world.lives) // 4:
                self._quarter = _share(counts)
                if self._quarter < rival - FAR:
                    return -1.0
        return _share(counts)

    # -- beginnings

    def _start(self, *, is_first: bool) -> Automaton:
        chance, states = self._chance, self._memory.states
        if is_first and states == 1:
            return Automaton(self._memory, [[0] for _ in self._world.aims])
        if self._begin and (is_first or chance.random() < 0.3):
            return self._grown(
                self._begin[-1] if is_first else chance.choice(self._begin)
            )
        aims = [[chance.choice(own) for _ in range(states)] for own in self._options]
        zero = chance.randrange(len(self._world.zeros))
        automaton = Automaton(self._memory, aims, zero)
        if self._begin and chance.random() < 0.5:
            automaton.zero = self._begin[-1].zero
        automaton.rules = self._partition()
        return automaton

    def _grown(self, smaller: Automaton) -> Automaton:
        """Return an automaton of this class that does what a smaller one does."""
        states, had = self._memory.states, smaller.memory.states
        aims = [[row[s % had] for s in range(states)] for row in smaller.aims]
        automaton = Automaton(self._memory, aims, smaller.zero)
        for key in self._keys():
            state, code, rank = key
            following = smaller.table.get((state % had, code, rank))
            if following is not None:
                automaton.rules[key] = following
            elif had == 1 and self._chance.random() < 0.5:
                automaton.rules[key] = self._chance.randrange(states)
        return automaton

    def _partition(self) -> dict[Situation, int]:
        """Return rules that make sense: neighbouring places are alike; after a failure
        it stays, or changes.
        """
        chance, states = self._chance, self._memory.states
        count = max(self._ranks) + 1
        turn, is_arc = chance.randrange(max(1, count)), chance.random() < 0.5
        part = {
            rank: (rank + turn) % count * states // count
            if is_arc
            else chance.randrange(states)
            for rank in range(count)
        }
        by_place = self._memory.clock == "trial" and chance.random() < 0.5
        after = "place" if by_place else chance.choice(("stay", "next", "place"))
        pays = {
            code: what == "well paid"
            if chance.random() < 0.8
            else chance.random() < 0.5
            for (what, _), code in self._world.codes.items()
        }
        rules: dict[Situation, int] = {}
        for state, code, rank in self._keys():
            if self._memory.name == "outcome":
                following = chance.randrange(states)
            elif self._memory.name == "place" or pays.get(code) or after == "place":
                following = part.get(rank, state)
            else:
                following = state if after == "stay" else (state + 1) % states
            rules[state, code, rank] = following
        return rules

    # -- climbing

    def _climbed(self, automaton: Automaton) -> tuple[float, Automaton]:
        """Improve one part at a time, in random order, until nothing helps."""
        score, vain = self._score(automaton), 0
        rival = self._quarter
        while vain < 2 and score < 1:
            vain += 1
            parts = self._parts()
            self._chance.shuffle(parts)
            for part in parts:
                if self._is_over:
                    return score, automaton
                for other in self._changed(automaton, part):
                    there = self._score(other, rival)
                    if there > score + 1e-12:
                        automaton, score, vain, rival = other, there, 0, self._quarter
        return score, automaton

    def _parts(self) -> list[tuple[int, int] | Situation | None]:
        """Return what can be changed: aims (kind, state), rules, the zero (None)."""
        states = range(self._memory.states)
        parts: list[tuple[int, int] | Situation | None] = [
            (kind, state) for kind in range(len(self._options)) for state in states
        ]
        if self._memory.states > 1:
            parts += self._keys()
            parts += [None] if self._memory.name != "outcome" else []
        return parts

    def _changed(
        self, automaton: Automaton, part: tuple[int, int] | Situation | None
    ) -> Iterator[Automaton]:
        match part:
            case None:
                for zero in range(len(self._world.zeros)):
                    yield replace(automaton.copy(), zero=zero)
            case (kind, state):
                options = self._options[kind]
                if len(options) > OPTIONS:
                    options = self._chance.sample(options, OPTIONS)
                for aim in options:
                    if aim != automaton.aims[kind][state]:
                        other = automaton.copy()
                        other.aims[kind][state] = aim
                        yield other
            case _:
                for following in range(self._memory.states):
                    if following != automaton.rules.get(part):
                        other = automaton.copy()
                        other.rules[part] = following
                        yield other


def _share(counts: Sequence[tuple[float, int]]) -> float:
    return sum(p for p, _ in counts) / max(1, sum(n for _, n in counts))


@dataclass(frozen=True, slots=True)
class Fresh:
    """What an automaton reached in lives on which it was not selected: the mean over
    judged trials, and a 99 % interval.
    """

    value: float
    low: float
    high: float
    trials: int


def confirmed(
    world: Experience, automaton: Automaton, seed: int, used: Counter[Situation]
) -> Fresh:
    """Lead fresh lives. A balanced group of subjects is one observation: a habit
    differs most between its subjects.
    """
    groups: dict[int, list[tuple[float, int]]] = {}
    most = world.spent + CONFIRMED
    for own, subject, _ in runs.lives_for(
        world.specification, FRESH, seed, judged=True
    ):
        if own not in groups and world.spent > most and len(groups) >= FEWEST:
            break
        groups.setdefault(own, []).append(world.live(automaton, own, subject, used))
    counts = [
        (sum(p for p, _ in one), sum(n for _, n in one)) for one in groups.values()
    ]
    value, trials = _share(counts), sum(n for _, n in counts)
    if world.measure is None:
        there = runs.rate([(round(p), n) for p, n in counts], runs.Z99)
        return Fresh(value, there.low, there.high, trials)
    means = [p / n for p, n in counts if n]
    error = (
        runs.Z99 * statistics.stdev(means) / len(means) ** 0.5
        if len(means) > 1
        else 1e9
    )
    return Fresh(value, value - error, value + error, trials)
