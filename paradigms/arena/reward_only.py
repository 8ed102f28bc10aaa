"""Reward-only events: a bump that costs a little changes nothing else, so a batch need not treat it as an event.

Which events these are follows from the rules alone. The kernel (``life.ArenaSubject``) records every rule that
fires, so it treats them as any other event; a batch keeps no records.
"""

from __future__ import annotations

from cheesebench.paradigms.arena.program import Program, Rule, State


def reward_only_step(program: Program, state: State, bits: int) -> float | None:
    """Return the reward of a step with these events if it is fixed and their only effect; else None.

    The order is that of clauses 10, 11 and 16. No timer is due, and no condition of ``finish`` holds (14).
    """
    if bits & program.where_mask or state.busy:
        return None
    fired = [rule for rule in program.watch if bits & rule.mask]
    fired += [rule for rule in state.rules if bits & rule.mask][:1]  # a plain rule is the first that fires, if any
    if not all(map(_only_pays, fired)):
        return None
    reward = 0.0
    for rule in fired:  # as the kernel adds them: floats depend on the order, and sum() adds in another way
        reward += rule.effects.constant or 0.0
    return reward + state.pay


def _only_pays(rule: Rule) -> bool:
    """Return whether a rule always fires on its event and then only pays."""
    unconditional = not rule.varies and rule.guard is None and rule.p is None
    return unconditional and rule.effects.only_constant_reward and rule.go is None and rule.end is None
