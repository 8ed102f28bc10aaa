"""Finds the memory that a PASS needs: it searches for the best subjects with little
memory, and says whether they pass.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cheesebench.interfaces import AuditFinding, AuditSettings, AuditVerdict
from cheesebench.paradigms.arena.audit import aims, automata, climbing, runs
from cheesebench.paradigms.arena.audit.chances import APART
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.protocol.validation import FORBIDDEN, MEMORY

#: ``KEPT``: number of trials whose beginnings are stored. ``STEPS``: steps of the
#: search over all classes, at an effort of 1. An audit with fewer than ``FULL`` trials
#: takes proportionally fewer steps.
KEPT, STEPS, FULL = 400, 24_000_000, 2000
#: Share of the steps for the first class. It is large, because the first class walks,
#: and later classes mostly look up its walks.
FIRST = 0.4
#: Number of lives whose first trial is searched for a second decision (see
#: ``classes``).
LOOKED = 20


def audit_memory(
    paradigm: ArenaParadigm, settings: AuditSettings
) -> Iterator[AuditFinding]:
    """Yield, for each class of subjects with little memory, the best rule found and its
    rate in fresh lives. If the verdict asks for a low measure, or there is nothing to
    decide, yield only a note.
    """
    about = paradigm.specification.judged
    if about is not None and about.better == "lower":
        text = (
            "the verdict asks for a low measure, but the search is for high values only"
        )
        yield AuditFinding("memory", "note", text, {})
        return
    bar = paradigm.specification.bar
    share = settings.effort * min(1.0, settings.trials / FULL)
    world = automata.Experience(paradigm, settings.seed + 15 * APART, KEPT)
    if not world.kind_of:
        text = "no subject has a decision to make in any trial, so memory cannot help"
        yield AuditFinding("memory", "note", text, {})
        return
    found: list[Found] = []
    every = classes(world)
    for number, memory in enumerate(every):
        part = (1 - FIRST) / (len(every) - 1) if number else FIRST
        effort = STEPS * share * part
        best, tried = _best(world, memory, settings.seed, effort, found)
        known = [one for one in found if one.automaton is best[1]]
        if known:
            fresh, used = known[0].fresh, known[0].used
        else:
            used = Counter()
            seed = settings.seed + 16 * APART
            fresh = climbing.confirmed(world, best[1], seed, min(1, share), used, bar)
        found.append(_or_smaller(Found(*best, fresh, used), memory, found))
        finding = _finding(world, memory, found[-1], bar, tried, settings.effort)
        if settings.progress:
            settings.progress(f"{finding.rule}: {runs.shown(fresh.value)}")
        yield finding


class Found(NamedTuple):
    """The best automaton of a class, its score, its result in fresh lives, and the
    situations that it met there.
    """

    score: float
    automaton: automata.Automaton
    fresh: climbing.Fresh
    used: Counter[automata.Situation]


def _or_smaller(own: Found, memory: automata.Memory, found: Sequence[Found]) -> Found:
    """Return the best subject found in a class or in smaller classes, because the class
    contains their rules, too.
    """
    smaller = [one for one in found if memory.holds(one.automaton.memory)]
    return max(own, *smaller, key=lambda one: one.fresh.value) if smaller else own


def _best(
    world: automata.Experience,
    memory: automata.Memory,
    seed: int,
    effort: float,
    found: Sequence[Found],
) -> tuple[tuple[float, automata.Automaton], int]:
    """Search a class. Return its best automaton, possibly one of a smaller class, and
    the number of rules tried.
    """
    smaller = [one for one in found if memory.holds(one.automaton.memory)]
    smaller.sort(key=lambda one: one.score)
    if smaller and smaller[-1].score >= 1:
        return (smaller[-1].score, smaller[-1].automaton), 0
    begin = [one.automaton for one in smaller]
    search = climbing.Search(world, memory, seed, effort, begin)
    best = search.find()
    if smaller and smaller[-1].score > best[0] - 1e-12:
        best = smaller[-1].score, smaller[-1].automaton
    return best, search.tried


def classes(world: automata.Experience) -> list[automata.Memory]:
    """Return the classes to search. Classes with memory within a trial are included if
    a trial has several decisions, or tells something before the first decision.
    """
    places = max((len(one) for _, one in world.places.groups), default=0)
    found = [automata.Memory("nothing"), automata.Memory("outcome", 2)]
    if any(
        root.begun or _goes_on(world, root, number)
        for number, roots in enumerate(world.lives[:LOOKED])
        for root in roots[:1]
        if isinstance(root, aims.Moment)
    ):
        found += [automata.Memory("any", states, "trial") for states in (2, 4)]
        found += [automata.Memory("nothing", within=True)]
    found += [automata.Memory("place", 2), automata.Memory("any", 2)]
    found += [automata.Memory("place", 4)] if places > 2 else []
    return [*found, automata.Memory("any", 4)]


def _goes_on(world: automata.Experience, root: aims.Moment, number: int) -> bool:
    """Return whether there may be another decision in the trial. Different aims are
    tried in different lives.
    """
    own = world.aims[world.kind_of[world.sight(root)]]
    some = range(number, len(own), LOOKED)
    return any(world.edge(root, aim).next is not None for aim in some)


def name_of(memory: automata.Memory) -> str:
    bits = memory.states.bit_length() - 1
    name = "nothing" if memory.name == "nothing" else f"{memory.name}, {bits} bit"
    name += "s" if bits > 1 else ""
    name += ", within the trial" if memory.clock == "trial" else ""
    return name + (", all of the trial" if memory.within else "")


def _finding(
    world: automata.Experience,
    memory: automata.Memory,
    found: Found,
    bar: float | None,
    tried: int,
    effort: float,
) -> AuditFinding:
    fresh = found.fresh
    interval = f"[{runs.shown(fresh.low)}, {runs.shown(fresh.high)}]"
    text = f"found {runs.shown(fresh.value)} {interval} in {fresh.trials} fresh trials"
    verdict: AuditVerdict = "note"
    passes = False if bar is None else fresh.passes(bar)
    if bar is not None:
        none = f"none that passes was found at effort {effort:g}"
        said = {True: "PASS", False: none, None: "not settled"}
        text += f"; PASS from {runs.shown(bar)}: {said[passes]}"
    if memory.name in FORBIDDEN and not memory.within and fresh.low > (bar or 1):
        construct = world.specification.construct
        is_allowed = construct is not None and memory.name in construct.allows
        verdict = "note" if is_allowed else "FAIL"
        text += ", though the subject remembers neither a place nor what it did"
        text += "; the file allows it" if is_allowed else f"; {_to_do(memory.name)}"
    rule = words(world, found.automaton, found.used)
    text += f". The subject {rule}. {_how_many(tried, effort)}"
    numbers: dict[str, object] = {
        "rate": fresh.value, "low": fresh.low, "high": fresh.high, "trials": fresh.trials, "bar": bar,
        "class": memory.name, "states": memory.states, "clock": memory.clock, "within": memory.within,
        "passes": passes, "tried": tried, "rule": rule,
    }  # fmt: skip
    return AuditFinding(f"{MEMORY}{name_of(memory)}", verdict, text, numbers)


def _to_do(name: str) -> str:
    return (
        "let success depend on either, or, if such a subject has what is measured, write"
        f" 'allows: {name}' in 'construct'"
    )


def _how_many(tried: int, effort: float) -> str:
    if not tried:
        return "No other rule was tried, because this one succeeded in every trial of the search"
    return f"This is the best of {tried} rules that were tried, not an upper bound: --effort {3 * effort:g} tries more"


# -- the rule in words


def words(
    world: automata.Experience,
    automaton: automata.Automaton,
    used: Counter[automata.Situation],
) -> str:
    """Return the subject's behaviour in words, with its changes of state."""
    states = range(automaton.memory.states)
    does = [_does(world, automaton, state) for state in states]
    if len(does) == 1:
        return does[0]
    text = "; ".join(f"in state {state + 1} {one}" for state, one in enumerate(does))
    return f"{text}. Next state: {_next(world, automaton, used)}"


def _does(world: automata.Experience, automaton: automata.Automaton, state: int) -> str:
    """Return the behaviour in a state, in words. Pictures with equal behaviour are
    listed together, with positions only if these matter.
    """
    pictures: dict[str, list[str]] = {}
    names = [name for name, _ in world.places.groups]
    for kind, number in world.number.items():
        chosen = {n: automaton.aims[n][state] for n in world.of_kind[number]}
        alike = len({*chosen.values()}) == 1
        for sight, aim in chosen.items():
            at = _looks(kind if alike else world.met[sight])
            looks = pictures.setdefault(world.aims[number][aim].words(names), [])
            looks += [] if at in looks else [at]
    if len(pictures) == 1:
        return next(iter(pictures))
    return ", ".join(f"{does} at {' and '.join(at)}" for does, at in pictures.items())


def _looks(sight: tuple[Any, ...]) -> str:
    """Return a kind or a sight in words: the closed doors, the glyphs and the text. For
    a sight, also say where the glyphs and the subject are.
    """
    if isinstance(sight[0], int):
        closed, often, text = sight
        parts = [f"{closed} shut"] if closed else []
        parts += [f"{glyph} x{number}" for glyph, number in often]
    else:
        (_, _, text), shut, shown, *here = sight
        parts = [f"{name} shut" for name in shut]
        parts += [f"{glyph} at {name.removeprefix('@')}" for name, glyph in shown]
        parts += [f"in {name}" for name in itertools.chain(*here)]
    return f"[{', '.join([*parts, *map(repr, text)]) or 'plain'}]"


def _next(
    world: automata.Experience,
    automaton: automata.Automaton,
    used: Counter[automata.Situation],
) -> str:
    told = {code: what for what, code in world.codes.items()}
    name, zero = automaton.memory.name, world.zeros[automaton.zero]
    ways: dict[tuple[str, str, int], list[str]] = {}
    for state, code, rank in sorted(used):
        what, said = told[code]
        outcome = " ".join([what, *said]) if name != "place" else ""
        before = f"from {state + 1}" if name == "any" else ""
        following = automaton.table.get((state, code, rank), state) + 1
        place = "nowhere" if rank == automata.NOWHERE else str(rank + 1)
        places = ways.setdefault((before, outcome, following), [])
        if name != "outcome" and place not in places:
            places.append(place)
    texts = []
    for (before, outcome, following), places in ways.items():
        at = f"at {' '.join(places)}" if places else ""
        texts.append(" ".join(filter(None, [before, outcome, at])) + f" -> {following}")
    counted = f" (places clockwise from {zero})" if name != "outcome" else ""
    return ", ".join(texts) + counted
