"""Tables of barriers: who waits for whom."""

from __future__ import annotations

from ptxdsl.hints import TYPE_CHECKING
from ptxdsl.protocol.expressions import ARRAY_SHIFT

if TYPE_CHECKING:
    from ptxdsl.check.context import Context
    from ptxdsl.check.parts import Agent
    from ptxdsl.check.program import Step


def gates(context: Context, first: Agent, then: Agent) -> bool:
    """Whether one agent somewhere waits for a barrier at which the other one arrives."""
    arrives = {step.root for step in first.steps if step.arrives}
    return not arrives.isdisjoint(step.root for step in then.steps if step.waits)


def arrives_at(agent: Agent, table: int) -> bool:
    """Whether an agent arrives somewhere at a barrier of a table (by the address of its first one)."""
    return table in {step.table for step in agent.steps if step.arrives}


def join(context: Context) -> None:
    """Takes barriers of an array at constant addresses for one table where the same agents wait for them and the same
    arrive: an unrolled ring."""
    steps: dict[int, list[Step]] = {}
    sides: dict[int, tuple[set[int], set[int]]] = {}
    for agent in context.agents:
        for step in agent.steps:
            if step.waits or step.arrives:
                steps.setdefault(step.root, []).append(step)
                sides.setdefault(step.root, (set(), set()))[step.arrives].add(agent.number)
    alike: dict[tuple[object, ...], list[int]] = {}
    for root, (waiting, arriving) in sides.items():
        if waiting and arriving and all(step.is_fixed for step in steps[root]):
            key = root >> ARRAY_SHIFT, frozenset(waiting), frozenset(arriving)
            alike.setdefault(key, []).append(root)
    for roots in alike.values():
        if len(roots) > 1:
            table = min(roots)
            context.joined.add(table)
            for root in roots:
                for step in steps[root]:
                    step.table = table
