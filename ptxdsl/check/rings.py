"""Rings with their variables: those by which the same barriers are come to, or that one step looks at."""

from __future__ import annotations

from ptxdsl.check.alike import Trial
from ptxdsl.check.barriers import OnBarrier
from ptxdsl.check.turns import Ring
from ptxdsl.hints import Any


def rings(trial: Trial) -> list[Ring]:
    """All rings of a kernel, alike or not."""
    context = trial.context
    parent: dict[Any, Any] = {}

    def find(item: Any) -> Any:
        parent.setdefault(item, item)
        while parent[item] is not item:
            item = parent[item]
        return item

    for agent in context.agents:
        variables = trial.variables[agent.number]
        items = {v: (agent.number, kin) for v, kin in variables.kin.items()}
        items = {v: find(item) and item for v, item in items.items()}
        for v, other in variables.partner.items():
            parent[find(items[v])] = find(items[other])
        for step in trial.steps(agent):
            used = [items[v] for v in step.uses if v in items]
            if not used or not isinstance(step, OnBarrier):
                continue
            if not step.met and all(v in items or v in variables.constants for v in step.uses):
                trial.answer(step, agent, {v: variables.constants.get(v, 0) for v in step.uses})
            for barrier in step.met:
                parent[find(barrier.followed)] = find(used[0])
    looks = {
        bit: [(touch.agent, kin[v]) for v in touch.site.uses if v in kin]
        for bit, touch in context.touches.items()
        for kin in (trial.variables[touch.agent].kin,)
    }
    for bit, touch in context.touches.items():
        rest = touch.conflicts if looks[bit] else 0
        while rest:
            other = rest & -rest
            rest ^= other
            theirs = looks[context.touch_of(other).bit]
            if theirs:
                parent[find(theirs[0])] = find(looks[bit][0])
    rings: dict[Any, Ring] = {}
    for agent in context.agents:
        variables = trial.variables[agent.number]
        for v, kin in sorted(variables.kin.items()):
            ring = rings.setdefault(find((agent.number, kin)), Ring())
            ring.variables.append((agent.number, v))
            ring.order = max(ring.order, variables.order([v]))
    return list(rings.values())
