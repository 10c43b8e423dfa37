"""Which step an operation on an mbarrier is."""

from __future__ import annotations

from ptxdsl.check.barriers import Arrive, Commit, Initialise, Invalidate, Wait
from ptxdsl.check.context import Context
from ptxdsl.check.copies import Copy
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import Cannot, Step
from ptxdsl.check.threads import Mask
from ptxdsl.effects import Kind
from ptxdsl.protocol.model import ONE_RUN, Op


def barrier_step(op: Op, mask: Mask, expressions: Expressions, context: Context, agent: Agent) -> Step | None:
    """The step of an operation on an mbarrier; None of another."""
    if op.barrier is None:
        return None
    if op.barrier.address is None:
        why = f"which barrier `{op.called}` works on is not known"
        return Cannot(op.span, why, "name it by an array of barriers and an index")
    kind = op.kind
    if kind is Kind.BAR_WAIT:
        return Wait(op, mask, expressions)
    if kind is Kind.BAR_INIT:
        return Initialise(op, mask, expressions)
    if kind is Kind.BAR_INVAL:
        return Invalidate(op, mask, expressions)
    if kind in (Kind.BAR_ARRIVE, Kind.BAR_EXPECT):
        return Arrive(op, mask, expressions)
    if kind is Kind.COMMIT:
        return Commit(op, mask, expressions)
    if kind is Kind.ASYNC_COPY:
        return Copy(op, mask, expressions, context)
    return Cannot(op.span, f"`{op.called}` is not modelled", ONE_RUN)
