"""Subjects with a few states of memory, and their success in stored trials.

An automaton has one aim for each state and each sight. Its next state may depend on the
reward and text of a trial (``outcome``), on the place where the trial ended
(``place``), on all of this and the present state (``any``), or on nothing.

Rules are scored on stored beginnings of trials. From each beginning, each aim is
carried out at most once. If trials depend on actions in earlier trials, each beginning
to which such actions lead is stored, too.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.lesions import INTACT, Lesion
from cheesebench.paradigms.arena.audit import aims, runs
from cheesebench.paradigms.arena.audit.relevance import Relevance
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject

#: Maximum numbers. ``SAMPLE``: moments of a kind in which aims are compared (per life
#: at most two judged moments and one other). ``TRIED``: sampled moments in which aims
#: are carried out. ``MOST_AIMS``: aims that are kept for a kind. ``MOST_KINDS``: kinds
#: that are kept. ``MOST_SIGHTS``: sights that are told apart (the most detailed way
#: that gives no more is chosen).
SAMPLE, TRIED, MOST_AIMS, MOST_KINDS, MOST_SIGHTS = 60, 40, 260, 12, 12
#: Longer aims are tried in ``PROBED`` moments. A family of them is searched (at most
#: ``LONGER`` aims of it) if one of its first ``PROBES`` aims does something new in one
#: of ``PROBING`` moments. At most ``MOST_LONGER`` aims are kept.
PROBED, PROBING, PROBES, LONGER, MOST_LONGER = 10, 3, 300, 1200, 100
#: ``STEMS``: maximum number of aims that longer aims are made from. ``LEGS``: number of
#: these (the simplest) that may be appended to another aim.
STEMS, LEGS = 24, 10
#: ``LIVES``: minimum number of lives. ``JUDGED``: number of judged trials after which a
#: life is not continued. ``TWICE``: number of lives that are run twice, to see whether
#: trials depend on earlier actions.
LIVES, JUDGED, TWICE = 36, 10, 4
#: A reward whose absolute value is at most this counts as no reward.
WIN = 0.05
#: Small addition to a trial's score for each of its decisions, and for its reward (on a
#: scale from -1 to 1). With it, the search finds the first of two decisions that must
#: both be right.
PROGRESS = 1e-4
#: Effort in steps of a life: ``COPY`` for copying a life, ``BEGIN`` for beginning a
#: trial, and ``LOOK_UP`` for looking up a stored trial.
COPY, BEGIN, LOOK_UP = 10.0, 40.0, 1.0
#: ``TRIAL``: effort of a trial that is really run, besides its steps. ``WATCHED``:
#: effort that each rule of ``watch`` adds to a step.
TRIAL, WATCHED = 15.0, 2.0
#: Maximum number of behaviours in a repertoire.
BEHAVIOURS = 12
#: Words for a reward and for a punishment: up to half of the largest one met in a part
#: of a trial, up to half of the largest one met in a whole trial, and above that. If
#: the two halves are equal, the first two words suffice.
PAID = ("paid", "well paid", "best paid")
COST = ("cost", "punished", "most punished")
NOWHERE = -1
#: What the next state depends on: state, code of reward and text, and rank of the place
#: where the trial ended.
Situation = tuple[int, int, int]
Root = aims.Moment | aims.Edge
#: One aim for each sight.
Row = tuple[int, ...]


class Memory(NamedTuple):
    """A class of automata, by the kind of memory that it has."""

    name: Literal["nothing", "outcome", "place", "any"]
    states: int = 1
    """Number of states that the memory can be in."""
    clock: Literal["life", "trial"] = "life"
    """``trial``: the state changes within the trial, and is reset at its end. ``life``:
    it changes between trials.
    """
    within: bool = False
    """Whether the subject also knows which members it has visited in this trial."""

    def holds(self, smaller: Memory) -> bool:
        """Return whether every subject of the class ``smaller`` also belongs to this
        class.
        """
        clocks = smaller.states == 1 or smaller.clock == self.clock
        named = smaller.name in ("nothing", self.name) or self.name == "any"
        return (
            clocks
            and named
            and smaller.states <= self.states
            and smaller.within <= self.within
        )


@dataclass(slots=True)
class Automaton:
    """One subject. ``aims[sight][state]`` is the number of an aim. ``rules`` give the
    next state for situations as this class of memory distinguishes them. ``table``
    gives it for complete situations; without an entry, the state stays.
    """

    memory: Memory
    aims: list[list[int]]
    zero: int = 0
    """Number of the zero from which ranks of places are counted."""
    rules: dict[Situation, int] = field(default_factory=dict)
    table: dict[Situation, int] = field(default_factory=dict)

    def copy(self) -> Automaton:
        rows = [list(row) for row in self.aims]
        return replace(self, aims=rows, rules=dict(self.rules), table={})

    def of_state(self) -> list[Row]:
        return [
            tuple(row[one] for row in self.aims) for one in range(self.memory.states)
        ]


@dataclass(slots=True)
class Extremes:
    """The largest reward and the largest punishment (negative) met so far, or 0."""

    best: float = 0.0
    worst: float = 0.0

    def see(self, reward: float) -> None:
        self.best, self.worst = max(self.best, reward), min(self.worst, reward)


class Experience:
    """Stored beginnings of trials in many lives, and the results of the aims that were
    carried out from there.
    """

    def __init__(
        self,
        paradigm: ArenaParadigm,
        seed: int,
        trials: int,
        lesion: Lesion = INTACT,
        *,
        counts: bool = True,
    ) -> None:
        """``counts`` says whether aims may count steps and repetitions, which needs
        memory.
        """
        self.paradigm, self.specification = paradigm, paradigm.specification
        self.places = aims.Places(paradigm, lesion)
        about = self.specification.judged
        measured = about is not None and about.better is not None
        self.measure = about.measure if about is not None and measured else None
        #: ``spent`` is the effort so far. ``step`` is the effort of a step, including
        #: the check of each rule of ``watch``.
        self.spent, self.step = 0.0, 1.0 + WATCHED * len(paradigm.program.watch)
        self._chance = random.Random(f"{seed}|memory")
        self._seed, self._trials, self._counts = seed, trials, counts
        self.lives: list[list[Root]] = []
        self._without_choice: dict[int, aims.Passed] = {}
        self._coded: dict[tuple[float, tuple[str, ...]], int] = {}
        self.samples: dict[aims.Kind, list[aims.Moment]] = {}
        self.codes: dict[tuple[str, tuple[str, ...]], int] = {}
        self._sights: list[Counter[tuple[object, ...]]] = [Counter(), Counter()]
        #: The extreme rewards between two decisions, and of whole trials.
        self._parts, self._wholes = Extremes(), Extremes()
        #: Whether every trial is independent of actions in earlier trials.
        self.is_independent = True
        self._collect()
        self._number_sights()
        self.zeros = self.places.zeros()
        self.aims = [self._aims(self.samples[kind]) for kind in self.number]
        for edge in self._tried():
            self._parts.see(edge.reward)
            self._wholes.see(edge.reward)
        relevance = Relevance(paradigm.program, lesion)
        # An action that is rare in random lives may matter, so the sampled lives cannot
        # show independence if the program reads behaviour.
        self.is_independent = not relevance.behaviour and self._is_independent()
        #: (Life and number of the trial, what the rest of the trial depends on, and the
        #: visited members) -> the moment.
        self._met: dict[object, aims.Moment] = {}
        reads_path = relevance.trace or relevance.timed_places
        #: Whether all paths to a moment may share one record, because nothing reads the
        #: path, and no measure is judged.
        self._merges = not reads_path and self.measure is None
        #: (Life, number of the trial, and what the rest of the life depends on) -> the
        #: beginning of the trial.
        self._begun: dict[object, Root | None] = {}
        #: Behaviour without memory -> its scores in the trials of a quarter of the
        #: lives.
        self._known: dict[Row, tuple[float, ...]] = {}

    # -- collecting

    def _seeds(self) -> list[tuple[int, int, int]]:
        """Return seed, subject and number of trials of each life. The subjects form
        whole balanced groups, because a habit may be right for some subjects and wrong
        for others.
        """
        most = max(self._trials, LIVES * self.specification.planned_trials)
        return list(runs.lives_for(self.specification, most, self._seed))

    def _collect(self) -> None:
        taken: Counter[tuple[aims.Kind, int, bool]] = Counter()
        for number, (seed, subject, _) in enumerate(self._seeds()):
            self.lives.append(list(self._lead(seed, subject, number, taken)))
        # The lives are interleaved, so that the first quarter has lives from every row
        # of a balanced draw.
        self.lives = [one for first in range(4) for one in self.lives[first::4]]
        for number, roots in enumerate(self.lives):
            for trial, root in enumerate(roots):
                if isinstance(root, aims.Moment):
                    root.at = number, trial

    def _lead(
        self,
        seed: int,
        subject: int,
        number: int,
        taken: Counter[tuple[aims.Kind, int, bool]],
    ) -> Iterator[Root]:
        """Lead a life of random aims, and yield the beginnings of its trials."""
        life = ArenaSubject(self.paradigm.program, runs.DARKNESS, seed, subject)
        judged = 0
        while judged < JUDGED and (found := self.begin(life)) is not None:
            yield self._kept(found) if isinstance(found, aims.Moment) else found
            total = 0.0
            if isinstance(found, aims.Moment) and found.begun is not None:
                total = found.begun[0]
            while isinstance(found, aims.Moment):
                self._take(found, number, taken)
                edge = self._wander(found, life)
                found, total = edge.next or edge, total + edge.reward
                self._parts.see(edge.reward)
            self._wholes.see(total)
            judged += found.score is not None

    def _take(
        self,
        moment: aims.Moment,
        number: int,
        taken: Counter[tuple[aims.Kind, int, bool]],
    ) -> None:
        self.places.glyphs(moment.life)
        for often, sight in zip(self._sights, moment.sight, strict=True):
            often[sight] += 1
        key = moment.kind, number, moment.judged
        taken[key] += 1
        sample = self.samples.setdefault(moment.kind, [])
        # Per life and kind, up to two judged moments are kept but only one other,
        # because judged trials show best what an aim is worth.
        if len(sample) < SAMPLE and taken[key] <= 1 + moment.judged:
            sample.append(self._kept(moment))

    def _kept(self, moment: aims.Moment) -> aims.Moment:
        kept = aims.Moment(self.places, moment.life.heir(), moment.visited)
        kept.begun = moment.begun
        return kept

    def _wander(self, moment: aims.Moment, life: ArenaSubject) -> aims.Edge:
        group = self._chance.choice(self.places.of_state[life.state] or [0])
        names = moment.reachable(group) if self.places.groups else []
        order = self._chance.sample(names, len(names))
        goes = self._chance.random() < 0.8
        stops = tuple(aims.Stop(name, 0) for name in order)
        return self.walk(moment, stops if goes else (), life)

    def _number_sights(self) -> None:
        """Keep the commonest kinds, and sights in as much detail as their maximum
        number allows.
        """
        kept = sorted(self.samples, key=lambda kind: -len(self.samples[kind]))
        kinds = [one for one in self.samples if one in kept[:MOST_KINDS]]
        #: Kind -> its number, which is also the index of its aims.
        self.number = {kind: number for number, kind in enumerate(kinds)}
        few = (n for n in (1, 0) if len(self._sights[n]) <= MOST_SIGHTS)
        self._near = next(few, None)
        own = [(one, kind) for kind in kinds for one in self._sights_of(kind)]
        #: ``met``: the known sights. ``sights``: sight -> its number in an automaton.
        self.met = [sight for sight, _ in own]
        self.sights = {sight: number for number, sight in enumerate(self.met)}
        #: ``kind_of``: number of a sight -> number of its kind. ``of_kind``: number of
        #: a kind -> numbers of its sights.
        self.kind_of = [self.number[kind] for _, kind in own]
        self.of_kind: list[list[int]] = [[] for _ in kinds]
        for number, kind in enumerate(self.kind_of):
            self.of_kind[kind].append(number)

    def _sights_of(self, kind: aims.Kind) -> list[tuple[object, ...]]:
        if self._near is None:
            return [kind]
        return [one for one in self._sights[self._near] if one[0] == kind]

    def sight(self, moment: aims.Moment) -> int:
        """Return the number of the sight at a moment. An unknown sight counts as the
        first known one of its kind, or else of a kind with the same text, or else of
        the first kind.
        """
        seen = moment.kind if self._near is None else moment.sight[self._near]
        found = self.sights.get(seen)
        if found is not None:
            return found
        kind = self.number.get(moment.kind)
        if kind is None:
            texts = [n for one, n in self.number.items() if one[2] == moment.kind[2]]
            kind = texts[0] if texts else 0
        found = self.sights[seen] = self.of_kind[kind][0]
        return found

    # -- aims

    def _aims(self, sample: Sequence[aims.Moment]) -> list[aims.Aim]:
        """Return the aims to try. They have different effects in these moments. If aims
        may count steps, longer ones are among them.
        """
        known: dict[object, aims.Aim] = {}
        for aim in self._options(sample):
            known.setdefault(tuple(one.stops(aim) for one in sample), aim)
        different: dict[object, aims.Aim] = {}
        for aim in known.values():
            different.setdefault(
                tuple(self._effect(one, aim) for one in sample[:TRIED]), aim
            )
        found = self._chosen(list(different.values()), sample)
        if not self._counts:
            return found
        return [*found, *self._longer(sample, found, list(known.values()))]

    def _chosen(
        self, found: list[aims.Aim], sample: Sequence[aims.Moment]
    ) -> list[aims.Aim]:
        """Return the aims to keep, up to their maximum number: the best ones in these
        moments, the simplest ones, and a sample of the others.
        """
        if len(found) <= MOST_AIMS:
            return found
        promise = dict(zip(found, self._promises(found, sample[:TRIED]), strict=True))
        best = sorted(found, key=lambda aim: -promise[aim])[: MOST_AIMS // 2]
        simple = sorted(found, key=simplicity)[: MOST_AIMS // 4]
        kept = dict.fromkeys([found[0], *best, *simple])
        rest = [aim for aim in found if aim not in kept]
        return [*kept, *self._chance.sample(rest, MOST_AIMS - len(kept))]

    def _effect(self, moment: aims.Moment, aim: aims.Aim) -> object:
        edge = self.walked(moment, aim)
        pose = None if edge.next is None else edge.next.life.pose
        return edge.reward, edge.ended, edge.score, pose

    def _options(self, sample: Sequence[aims.Moment]) -> Iterator[aims.Aim]:
        yield aims.Aim()
        groups = {g for one in sample for g in self.places.of_state[one.life.state]}
        pasts = ("", "new", "old") if any(one.visited for one in sample) else ("",)
        for group, past in itertools.product(sorted(groups), pasts):
            yield from self._of_group(sample, group, past)

    def _of_group(
        self, sample: Sequence[aims.Moment], group: int, past: str
    ) -> Iterator[aims.Aim]:
        members = range(len(self.places.groups[group][1]))
        for lit, zero in itertools.product(self._lit(sample, group), self.zeros):
            near = zero.startswith(aims.NEAR)
            manners = [aims.WAITS] if near else aims.manners(len(members))
            for then, first in itertools.product(manners, members):
                yield aims.Aim(group, zero, first, then, lit, past)

    def _lit(self, sample: Sequence[aims.Moment], group: int) -> list[str]:
        """Return glyphs that some members of a group show and others do not, then an
        empty string (any member).
        """
        places = self.places
        members = places.groups[group][1]

        def tells(moment: aims.Moment, glyph: str) -> bool:
            squares = places.glyphs(moment.life).get(glyph, frozenset())
            return (
                0
                < sum(bool(places.squares[m] & squares) for m in members)
                < len(members)
            )

        return [g for g in places.seen if any(tells(m, g) for m in sample[:8])] + [""]

    def _longer(
        self,
        sample: Sequence[aims.Moment],
        plain: Sequence[aims.Aim],
        parts: Sequence[aims.Aim],
    ) -> list[aims.Aim]:
        """Return longer aims that reach a result that no plain aim reaches. They wait,
        repeat a plain aim, or append another one.
        """
        some = self._chance.sample(sample, min(PROBED, len(sample)))
        known = [{self._end(one, aim) for aim in plain} for one in some]
        kept: dict[object, aims.Aim] = {}

        def new(aim: aims.Aim, moments: int = PROBED) -> bool:
            pairs = zip(some[:moments], known, strict=False)
            return any(self._end(one, aim) not in before for one, before in pairs)

        for family in self._families(parts):
            tried = self._chance.sample(family, min(LONGER, len(family)))
            if not any(new(aim, PROBING) for aim in tried[:PROBES]):
                continue
            for aim in filter(new, tried):
                ends = tuple(self._end(one, aim) for one in some)
                key = ends, aim.before, aim.stay, aim.rounds
                kept[key] = min(kept.get(key, aim), aim, key=simplicity)
        found = list(kept.values())
        if len(found) > MOST_LONGER:
            found = self._chance.sample(found, MOST_LONGER)
        return found

    def _families(self, parts: Sequence[aims.Aim]) -> Iterator[list[aims.Aim]]:
        stems = self._mixed([aim for aim in parts if aim.group >= 0], STEMS)
        again = [stem._replace(rounds=n) for stem in stems for n in aims.ROUNDS]
        stays = [stem._replace(stay=n) for stem in stems for n in aims.DELAYS]
        yield [stem._replace(before=n) for stem in stems for n in aims.DELAYS]
        yield again
        yield stays
        legs = sorted(stems, key=simplicity)[:LEGS]
        for firsts in (legs, again, stays):
            yield _joined(firsts, legs)

    def _mixed(self, found: Sequence[aims.Aim], number: int) -> list[aims.Aim]:
        """Return a sample of these aims, half of them the simplest."""
        ranked = sorted(found, key=simplicity)
        first, rest = ranked[: number // 2], ranked[number // 2 :]
        return first + self._chance.sample(rest, min(number - len(first), len(rest)))

    def _end(self, moment: aims.Moment, aim: aims.Aim) -> object:
        """Return a rough key of the result of an aim."""
        edge = self.walked(moment, aim)
        seen = None if edge.next is None else edge.next.sight[1]
        return edge.outcome, edge.score, edge.said, round(2 * edge.reward), seen

    def _tried(self) -> Iterator[aims.Edge]:
        for kind, number in self.number.items():
            for moment in self.samples[kind][:20]:
                for aim in self.aims[number][:TRIED]:
                    yield self.walked(moment, aim)

    def promise(self, kind: int) -> list[float]:
        """Return how well each aim of a kind did in the first moments of the sample."""
        (name,) = [one for one, number in self.number.items() if number == kind]
        return self._promises(self.aims[kind], self.samples[name][:PROBED])

    def _promises(
        self, found: Sequence[aims.Aim], sample: Sequence[aims.Moment]
    ) -> list[float]:
        every = ([self.walked(moment, aim) for moment in sample] for aim in found)
        return [
            sum((one.score or 0.0) + _paid(one.reward) for one in edges)
            for edges in every
        ]

    def _is_independent(self) -> bool:
        """Lead some lives twice, with different actions. Return whether their trials
        begin and continue alike.
        """
        chance, again = self._chance, random.Random(f"{self._seed}|again")
        seeds = self._seeds()[:TWICE]
        one: list[list[Root]] = []
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

    def _alike(self, one: Root, other: Root) -> bool:
        if isinstance(one, aims.Edge) or isinstance(other, aims.Edge):
            return isinstance(one, aims.Edge) and isinstance(other, aims.Edge)
        first, second = one.life, other.life
        if (first.pose, first.look.key, first.block) != (
            second.pose,
            second.look.key,
            second.block,
        ):
            return False
        known = self.aims[self.kind_of[self.sight(one)]]
        some = self._chance.sample(known, min(4, len(known)))
        return all(self._course(one, aim) == self._course(other, aim) for aim in some)

    def _course(self, moment: aims.Moment, aim: aims.Aim) -> list[object]:
        """Return the results of carrying out one aim and then, until the trial ends, of
        going to the first member of the first group.
        """
        done: list[object] = []
        reached: aims.Moment | None = moment
        while reached is not None:
            edge = self.walked(reached, aim)
            done.append((edge.reward, edge.said, edge.ended, edge.outcome, edge.score))
            reached, aim = edge.next, aims.Aim(0)
        return done

    # -- moving

    def _copy(self, moment: aims.Moment) -> ArenaSubject:
        self.spent += COPY
        return moment.life.twin() if self.is_independent else moment.life.heir()

    def begin(self, life: ArenaSubject) -> Root | None:
        """Begin a trial, and wait until the subject has a decision to make. Return this
        moment, or the end of the trial if there is no decision, or None if no judged
        trial is left.
        """
        if (
            life.begin_trial() is None
            or life.block in self.specification.blocks_after_judged
        ):
            return None
        moment = aims.Moment(self.places, life, frozenset(self.places.here(life)))
        if not life.waiting:
            return moment
        edge = self.walk(moment, (), life)
        if edge.next is not None:
            edge.next.begun = edge.reward, edge.said
        return edge.next or edge

    def following(self, edge: aims.Edge, at: tuple[int, int]) -> Root | None:
        """Return the stored beginning of the trial that follows this end, or None if
        there is none.
        """
        if not self.is_independent:
            return edge.following
        life, trial = at
        roots = self.lives[life]
        return roots[trial + 1] if trial + 1 < len(roots) else None

    def _next_of(self, life: ArenaSubject, at: tuple[int, int]) -> Root | None:
        """Begin the trial that follows an ended one, and return its beginning. Return
        None if no trial follows.
        """
        number, trial = at[0], at[1] + 1
        if trial >= len(self.lives[number]):
            return None
        self.spent += BEGIN
        found = self.begin(life)
        key = number, trial, life.carried()
        if key not in self._begun:
            if isinstance(found, aims.Moment):
                found.at = number, trial
            elif found is not None:
                found = found._replace(following=self._next_of(life, (number, trial)))
            self._begun[key] = found
        return self._begun[key]

    def walk(
        self, moment: aims.Moment, stops: Sequence[aims.Stop], life: ArenaSubject
    ) -> aims.Edge:
        """Go to places in order, then wait, up to the next moment or the end."""
        return Walk(self, moment, life).go(stops)

    def walked(self, moment: aims.Moment, aim: aims.Aim) -> aims.Edge:
        """Return where an aim leads from a copy of the moment.

        Aims with the same stops up to the first event lead to the same moment, so they
        are walked once.
        """
        stops = moment.stops(aim)
        for number in range(1, len(stops) + 1):
            if (known := moment.happened.get(stops[:number])) is not None:
                return known
        if (known := moment.waited.get(stops)) is not None:
            return known
        life = self._copy(moment)
        course = Walk(self, moment, life)
        edge = course.go(stops)
        if edge.next is None and not self.is_independent and moment.at is not None:
            edge = edge._replace(following=self._next_of(life, moment.at))
        edge = self._merged(edge)
        if course.followed is None:
            moment.waited[stops] = edge
        else:
            moment.happened[stops[: course.followed]] = edge
        return edge

    def _merged(self, edge: aims.Edge) -> aims.Edge:
        """Return the edge. If another path has reached an equal moment, the edge leads
        to that moment.
        """
        following = edge.next
        if following is None or following.at is None or not self._merges:
            return edge
        key = following.at, following.life.course(), following.visited
        return edge._replace(next=self._met.setdefault(key, following))

    def score(self, life: ArenaSubject) -> float | None:
        """Return the score of the ended trial, or None if it is not judged, or has no
        value of the judged measure.
        """
        if self.measure is None:
            success = runs.is_judged(life.result(), self.specification)
            return None if success is None else float(success)
        result = life.result()
        value = result.measures.get(self.measure)
        counts = result.compared and result.block in self.specification.judged_blocks
        return float(value) if counts and isinstance(value, int | float) else None

    # -- codes of rewards and texts

    def code(self, reward: float, said: tuple[str, ...]) -> int:
        """Return a number for the reward and the text of a trial, or of a part of a
        trial.
        """
        known = self._coded.get((reward, said))
        if known is None:
            known = self._coded[reward, said] = self._code(reward, said)
        return known

    def _code(self, reward: float, said: tuple[str, ...]) -> int:
        # A trial of several parts may pay much more than each of them, so what is much
        # for a part and what is much for a trial are told apart.
        scales = self._parts, self._wholes
        if reward > WIN:
            halves = {one.best / 2 for one in scales}
            what = PAID[sum(reward > half + 1e-9 for half in halves)]
        elif reward < -WIN:
            halves = {one.worst / 2 for one in scales}
            what = COST[sum(reward <= half for half in halves)]
        else:
            what = "unpaid"
        return self.codes.setdefault((what, said), len(self.codes))

    def edge(self, moment: aims.Moment, number: int) -> aims.Edge:
        found = moment.edges.get(number)
        if found is None:
            found = moment.edges[number] = self.walked(moment, self.aim(moment, number))
        return found

    def aim(self, moment: aims.Moment, number: int) -> aims.Aim:
        return self.aims[self.kind_of[self.sight(moment)]][number]

    def choice(self, moment: aims.Moment, row: Row) -> int:
        return row[self.sight(moment)]

    @property
    def ranks_of_nowhere(self) -> tuple[int, ...]:
        return (NOWHERE,) * len(self.zeros)

    def ranks(
        self, moment: aims.Moment, ended: tuple[int, str] | None
    ) -> tuple[int, ...]:
        """Return the ranks of the place where the trial ended, one counted from each
        zero.
        """
        if ended is None:
            return self.ranks_of_nowhere
        found = moment.told.get(ended)
        if found is None:
            group, name = ended
            found = tuple(moment.ranks(group, zero)[name] for zero in self.zeros)
            moment.told[ended] = found
        return found

    # -- scoring

    def trial(self, root: aims.Moment, row: Row) -> aims.Passed:
        """Return the result of a trial in which the state stays the same throughout."""
        found = root.memo.get(row)
        if found is None:
            total, ended, depth = root.begun[0] if root.begun else 0.0, None, 0
            moment: aims.Moment | None = root
            while moment is not None:
                edge = self.edge(moment, self.choice(moment, row))
                total, depth = total + edge.reward, depth + 1
                ended, moment = edge.ended or ended, edge.next
            ranks = self.ranks(root, ended)
            code = self.code(total, edge.said)
            following = self.following(edge, root.at) if root.at else None
            far = depth + _paid(total)
            found = aims.Passed(edge.score, code, ranks, far, following)
            root.memo[row] = found
        return found

    def play(self, automaton: Automaton) -> Iterator[list[float]]:
        """Yield, for each life, the scores of its judged trials. They are looked up in
        the stored trials.
        """
        lead = self._trials_of if automaton.memory.clock == "trial" else self._life_of
        for roots in self.lives:
            self.spent += LOOK_UP * len(roots)
            yield list(lead(automaton, roots[0])) if roots else []

    def _life_of(self, automaton: Automaton, root: Root | None) -> Iterator[float]:
        state, rows, zero = 0, automaton.of_state(), automaton.zero
        following = automaton.table.get
        while root is not None:
            if isinstance(root, aims.Edge):
                passed = self._untouched(root)
            else:
                passed = root.memo.get(rows[state]) or self.trial(root, rows[state])
            if passed.score is not None:
                yield passed.score + PROGRESS * passed.depth
            state = following((state, passed.code, passed.ranks[zero]), state)
            root = passed.following

    def _untouched(self, root: aims.Edge) -> aims.Passed:
        """Return the result of a trial without any decision."""
        found = self._without_choice.get(id(root))
        if found is None:
            code = self.code(root.reward, root.said)
            # In the collected lives, ``following`` is not set: the next trial is the
            # next entry of the life.
            following = root.following or self._after(root)
            found = aims.Passed(root.score, code, self.ranks_of_nowhere, 0, following)
            self._without_choice[id(root)] = found
        return found

    def _after(self, root: aims.Edge) -> Root | None:
        for roots in self.lives:
            for number, one in enumerate(roots[:-1]):
                if one is root:
                    return roots[number + 1]
        return None

    def _trials_of(self, automaton: Automaton, root: Root | None) -> Iterator[float]:
        rows = automaton.of_state()
        while root is not None:
            if isinstance(root, aims.Edge):
                passed = self._untouched(root)
                score, depth, root = passed.score, 0.0, passed.following
            else:
                edge, depth = self._trial_of(automaton, rows, root)
                score, at = edge.score, root.at
                root = self.following(edge, at) if at else None
            if score is not None:
                yield score + PROGRESS * depth

    def _trial_of(
        self, automaton: Automaton, rows: Sequence[Row], root: aims.Moment
    ) -> tuple[aims.Edge, float]:
        """Return the end of a trial in which the state changes, and how far it got: the
        number of its decisions plus its last reward (on a scale from -1 to 1).
        """
        state, depth = self.first_state(automaton, root), 0.0
        moment: aims.Moment | None = root
        while moment is not None:
            choice = self.choice(moment, rows[state])
            known = moment.steps.get(choice)
            if known is None:
                edge = self.edge(moment, choice)
                code = self.code(edge.reward, edge.said)
                ranks = self.ranks(moment, edge.ended)
                known = moment.steps[choice] = edge.next, code, ranks, edge
            moment, code, ranks, edge = known
            at = state, code, ranks[automaton.zero]
            state, depth = automaton.table.get(at, state), depth + 1
        return edge, depth + _paid(edge.reward)

    def first_state(self, automaton: Automaton, root: aims.Moment) -> int:
        """Return the state after the reward and text that came before the first
        decision.
        """
        if root.begun is None:
            return 0
        return automaton.table.get((0, self.code(*root.begun), NOWHERE), 0)

    # -- behaviours without memory

    def note(self, row: Row, trials: Sequence[float]) -> None:
        """Store a behaviour's scores in the trials of a quarter of the lives."""
        self._known[row] = tuple(trials)

    def best(self, number: int) -> list[Row]:
        """Return the ``number`` behaviours that did best."""
        return sorted(self._known, key=lambda row: -sum(self._known[row]))[:number]

    def repertoire(self, *, fine: bool) -> list[Row]:
        """Return behaviours. Each of them does well in trials where the earlier ones
        fail. Unless ``fine``, each acts alike at all sights of a kind.
        """
        rows = [row for row in self._known if fine or self._is_coarse(row)]
        if not rows:
            return []
        width = max(len(self._known[row]) for row in rows)
        counts = np.zeros((len(rows), width))
        for number, row in enumerate(rows):
            counts[number, : len(self._known[row])] = self._known[row]
        best, found = np.zeros(width), list[Row]()
        while len(found) < BEHAVIOURS:
            gains = np.maximum(counts, best).sum(axis=1)
            first = int(gains.argmax())
            if gains[first] <= best.sum() + 0.5:
                break
            best = np.maximum(best, counts[first])
            found.append(rows[first])
        return found

    def _is_coarse(self, row: Row) -> bool:
        return all(len({row[n] for n in own}) == 1 for own in self.of_kind)

    # -- real lives

    def live(
        self, automaton: Automaton, seed: int, subject: int, used: Counter[Situation]
    ) -> tuple[float, int]:
        """Lead a real life, step by step. Return the sum of its scores, and the number
        of its trials with a score. ``used`` counts the situations in it.
        """
        life = ArenaSubject(self.paradigm.program, runs.DARKNESS, seed, subject)
        self.spent += TRIAL * self.specification.planned_trials
        scores = [
            score for score in self.lived(automaton, life, used) if score is not None
        ]
        return sum(scores), len(scores)

    def lived(
        self, automaton: Automaton, life: ArenaSubject, used: Counter[Situation]
    ) -> Iterator[float | None]:
        """Lead a life, and yield the score of each trial when it has ended, or None if
        it has no score. The life ends after the last judged block.
        """
        state = 0
        while (found := self.begin(life)) is not None:
            state, score = self._live_trial(automaton, life, found, state, used)
            yield score

    def _live_trial(
        self,
        automaton: Automaton,
        life: ArenaSubject,
        found: Root,
        state: int,
        used: Counter[Situation],
    ) -> tuple[int, float | None]:
        within, rows = automaton.memory.clock == "trial", automaton.of_state()
        total, ended = 0.0, None
        ranks = self._zeroed(found, automaton)
        if isinstance(found, aims.Edge):
            total = found.reward
        elif found.begun is not None:
            total = found.begun[0]
        if within and isinstance(found, aims.Moment):
            state = self.first_state(automaton, found)
        while isinstance(found, aims.Moment):
            now = self._zeroed(found, automaton)
            aim = self.aim(found, self.choice(found, rows[state]))
            edge = self.walk(found, found.stops(aim), life)
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

    def _zeroed(self, found: Root, automaton: Automaton) -> list[dict[str, int]]:
        """Return the ranks of each group's members as seen at this moment, counted from
        the automaton's zero, or an empty list if the trial is already over.
        """
        if isinstance(found, aims.Edge):
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


def _joined(firsts: Sequence[aims.Aim], legs: Sequence[aims.Aim]) -> list[aims.Aim]:
    """Return the aims made by appending each leg to each of ``firsts`` whose own stem
    is a leg.
    """
    some = [one for one in firsts if one._replace(rounds=1, stay=0) in legs]
    return [one._replace(onward=leg) for one in some for leg in legs]


def simplicity(aim: aims.Aim) -> tuple[bool, ...]:
    is_plain, is_arc = aim.then == aims.WAITS, aim.then.isdigit()
    own = bool(aim.past), bool(aim.lit), aim.zero != aims.NORTH, is_arc, not is_plain
    return own if aim.onward is None else max(own, simplicity(aim.onward))


def _paid(reward: float) -> float:
    """Return a reward as a number between -1 and 1."""
    return reward / (1 + abs(reward))


class Walk:
    """One aim carried out in a life, up to the next moment of decision."""

    def __init__(
        self, world: Experience, moment: aims.Moment, life: ArenaSubject
    ) -> None:
        self._world, self._places, self._life = world, world.places, life
        self._state, self._status, self._begun = life.state, RUNNING, life.steps
        self._visited, self._at = set(moment.visited), moment.at
        self._total, self._reached = 0.0, ""
        #: Number of stops up to the one at which an event happened. None means that
        #: there was no event.
        self.followed: int | None = None

    @property
    def _goes_on(self) -> bool:
        return self._status == RUNNING and self._life.state == self._state

    def _step(self, action: int) -> None:
        _, gain, self._status = self._life.step(action)
        self._total += gain

    def go(self, stops: Sequence[aims.Stop]) -> aims.Edge:
        life, places = self._life, self._places
        for number, (name, steps) in enumerate(stops, 1):
            if name:
                self._go_to(name)
            self._stay(steps)
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
        self._world.spent += self._world.step * (life.steps - self._begun)
        group = self._group_of(stops)
        if self._status == RUNNING:
            after = aims.Moment(places, life, frozenset(self._visited), self._at)
            return aims.Edge(after, self._total, said, self._ended(group, set()), None)
        ended = self._ended(group, places.here(life))
        score = self._world.score(life)
        return aims.Edge(None, self._total, said, ended, score, life.outcome or "")

    def _group_of(self, stops: Sequence[aims.Stop]) -> int:
        """Return the group of the place that was reached, or else of the first
        destination. Return 0 if this place is in no group.
        """
        name = self._reached or next((name for name, _ in stops if name), "")
        groups = enumerate(self._places.groups)
        return next((n for n, (_, members) in groups if name in members), 0)

    def _stay(self, steps: int) -> None:
        for _ in range(steps):
            if not self._goes_on:
                return
            self._step(STAY)

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
