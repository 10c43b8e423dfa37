"""Scopes of waits: what a wait of a block's own scope does not learn from other blocks.

An arrival at another block's barrier tells of what threads have written, if its scope is the cluster; a wait learns of
it, if its own scope is (PTX ISA, "Morally strong operations"; ``mbarrier.try_wait`` is of the block's scope where it
says nothing). What threads have read, and what copies and tensor cores have done, it learns with either scope.
"""

from __future__ import annotations

from ptxdsl.check.context import Context
from ptxdsl.check.parts import Barrier
from ptxdsl.check.program import Step
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import ARRAY_SHIFT


def is_waited_for_narrowly(context: Context, barrier: Barrier) -> bool:
    """Whether somebody may wait for a barrier with the scope of his own block, so that arrivals from others tell him
    nothing of stores."""
    found = context.narrow.get(barrier.address)
    if found is None:
        waits = [step for agent in context.agents for step in agent.steps if step.waits]
        found = any(_may_wait(context, step, barrier) for step in waits)
        context.narrow[barrier.address] = found
    return found


def _may_wait(context: Context, step: Step, barrier: Barrier) -> bool:
    wait: Any = step
    if wait.op.what.scope != "cta":
        return False
    if not (wait.variables or wait.lanes):
        return bool(wait.root == barrier.address)
    place, table = barrier.place, context.stage_of(wait.root)
    if place is not None and table is not None:
        return place[0].full == table[0].full and place[1] == table[1]
    return bool(wait.root >> ARRAY_SHIFT == barrier.address >> ARRAY_SHIFT)
