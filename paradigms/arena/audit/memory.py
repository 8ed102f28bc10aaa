"""How much memory a PASS needs: the best subjects with little of it that are found, and
whether they could pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cheesebench.interfaces import AuditFinding, AuditSettings, AuditVerdict
from cheesebench.paradigms.arena.audit import aims, automata, runs
from cheesebench.paradigms.arena.audit.chances import APART
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.protocol.validation import FORBIDDEN, MEMORY

#: Trials whose beginnings are kept, and steps of the search of all classes, for an
#: effort of 1 and trials of a full audit.
KEPT, STEPS, FULL = 400, 3_000_000, 2000
#: The share of these that the first class has before the others: it walks, and what has
#: been walked is only looked up by them.
FIRST = 0.4


def audit_memory(
    paradigm: ArenaParadigm, settings: AuditSettings
) -> Iterator[AuditFinding]:
    """Yield, for classes of subjects with little memory, the best rule that is found,
    and what it reaches in fresh lives.
    """
    about = paradigm.specification.judged
    if about is not None and about.better == "lower":
        text = "the verdict asks for a low measure, which is not searched for"
        yield AuditFinding("memory", "note", text, {})
        return
    bar = paradigm.specification.bar
    share = settings.effort * min(1.0, settings.trials / FULL)
    world = automata.Experience(paradigm, settings.seed + 15 * APART, KEPT)
    found: list[tuple[float, automata.Automaton]] = []
    spent, every = 0.0, classes(world)
    for number, memory in enumerate(every, 1):
        allowed = STEPS * share * (FIRST + (1 - FIRST) * number / len(every))
        begun, begin = world.spent, _smaller(found, memory)
        search = automata.Search(world, memory, settings.seed, allowed - spent, begin)
        score, automaton = search.find()
        spent += world.spent - begun
        found.append((score, automaton))
        used: Counter[automata.Situation] = Counter()
        fresh = automata.confirmed(world, automaton, settings.seed + 16 * APART, used)
        finding = _finding(world, automaton, fresh, bar, used, search.tried)
        if settings.progress:
            settings.progress(f"{finding.rule}: {runs.shown(fresh.value)}")
        yield finding


def classes(world: automata.Experience) -> list[automata.Memory]:
    """Return the classes that are searched; those within a trial where it takes more
    than one decision.
    """
    places = max((len(one) for _, one in world.places.groups), default=0)
    found = [
        automata.Memory("nothing"),
        automata.Memory("outcome", 2),
        automata.Memory("place", 2),
    ]
    found += [automata.Memory("any", 2)]
    found += [automata.Memory("place", 4)] if places > 2 else []
    if any(
        edge.next is not None
        for roots in world.lives[:20]
        for root in roots[:1]
        if isinstance(root, aims.Moment)
        for edge in (world.edge(root, number) for number in _first(world, root))
    ):
        found += [
            automata.Memory("any", 2, "trial"),
            automata.Memory("any", 4, "trial"),
        ]
        found += [automata.Memory("nothing", within=True)]
    return [*found, automata.Memory("any", 4)]


def _first(world: automata.Experience, root: aims.Moment) -> range:
    kind = world.number.get(root.kind)
    return range(1 if kind is None else len(world.aims[kind]))


def _smaller(
    found: Sequence[tuple[float, automata.Automaton]], memory: automata.Memory
) -> list[automata.Automaton]:
    """Return automata that one of this class may begin with, the best one last."""

    def fits(one: automata.Memory) -> bool:
        same = one.states == memory.states or memory.name == "any"
        return (one.name == "nothing" or (one.clock == memory.clock and same)) and (
            one.states <= memory.states and one.within <= memory.within
        )

    ranked = sorted(found, key=lambda entry: entry[0])
    return [automaton for _, automaton in ranked if fits(automaton.memory)]


def name_of(memory: automata.Memory) -> str:
    bits = memory.states.bit_length() - 1
    name = "nothing" if memory.name == "nothing" else f"{memory.name}, {bits} bit"
    name += "s" if bits > 1 else ""
    name += ", within the trial" if memory.clock == "trial" else ""
    return name + (", all of the trial" if memory.within else "")


def _finding(
    world: automata.Experience,
    automaton: automata.Automaton,
    fresh: automata.Fresh,
    bar: float | None,
    used: Counter[automata.Situation],
    tried: int,
) -> AuditFinding:
    memory = automaton.memory
    interval = f"[{runs.shown(fresh.low)}, {runs.shown(fresh.high)}]"
    text = f"found {runs.shown(fresh.value)} {interval} in {fresh.trials} fresh trials"
    verdict: AuditVerdict = "note"
    passes = bar is not None and fresh.value > bar
    if bar is not None:
        text += f"; PASS from {runs.shown(bar)}: {'PASS' if passes else 'no PASS'}"
    if memory.name in FORBIDDEN and not memory.within and fresh.low > (bar or 1):
        construct = world.specification.construct
        is_allowed = construct is not None and memory.name in construct.allows
        verdict = "note" if is_allowed else "FAIL"
        text += ", though it remembers neither a place nor what it did"
        text += "; the file allows it" if is_allowed else ""
    rule = words(world, automaton, used)
    text += f". It {rule}. The best of {tried} rules that were tried: no proof that none is better"
    numbers: dict[str, object] = {
        "rate": fresh.value, "low": fresh.low, "high": fresh.high, "trials": fresh.trials, "bar": bar,
        "class": memory.name, "states": memory.states, "clock": memory.clock, "within": memory.within,
        "passes": passes, "tried": tried, "rule": rule,
    }  # fmt: skip
    return AuditFinding(f"{MEMORY}{name_of(memory)}", verdict, text, numbers)


# -- the rule in words


def words(
    world: automata.Experience,
    automaton: automata.Automaton,
    used: Counter[automata.Situation],
) -> str:
    """Return what the subject does, and when it changes its state."""
    states = range(automaton.memory.states)
    does = [_does(world, automaton, state) for state in states]
    if len(does) == 1:
        return does[0]
    text = "; ".join(f"in state {state + 1} {one}" for state, one in enumerate(does))
    return f"{text}. Next state: {_next(world, automaton, used)}"


def _does(world: automata.Experience, automaton: automata.Automaton, state: int) -> str:
    """Return what it does in a state; pictures at which it does the same are named
    together.
    """
    pictures: dict[str, list[str]] = {}
    for kind, number in world.number.items():
        aim = world.aims[number][automaton.aims[number][state]]
        name = world.places.groups[aim.group][0] if aim.group >= 0 else ""
        pictures.setdefault(aim.words(name), []).append(_looks(kind))
    if len(pictures) == 1:
        return next(iter(pictures))
    return ", ".join(f"{does} at {' and '.join(at)}" for does, at in pictures.items())


def _looks(kind: aims.Kind) -> str:
    closed, shown_here, text = kind
    parts = [f"{closed} shut"] if closed else []
    parts += [f"{glyph} x{number}" for glyph, number in shown_here]
    parts += [f"'{line}'" for line in text]
    return f"[{', '.join(parts) or 'plain'}]"


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
