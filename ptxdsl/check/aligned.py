"""Barriers of threads are executed by whole warps: all lanes that have not ended come to the same instruction.

A warp counts as a whole there (PTX ISA, ``barrier``: ``.aligned``, which ``bar.sync`` is).
"""

from __future__ import annotations

from ptxdsl.check.blame_meetings import collectives_differ, diverges
from ptxdsl.check.context import Context
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import END
from ptxdsl.check.states import State
from ptxdsl.check.threads import Mask, whole_warps
from ptxdsl.hints import Any
from ptxdsl.protocol.model import Op


def is_aligned(op: Op) -> bool:
    """Whether a warp executes it as one; PTX has a form that it does not."""
    return "." not in op.name or op.name.startswith("bar.") or ".aligned" in op.name


def check_lanes(context: Context, state: State, waiting: tuple[tuple[int, int], ...], gone: Mask) -> None:
    """Raises Fault where lanes of one warp meet at different instructions, or without others.

    waiting: who has come, and to which step, inverted where it does not wait. gone: threads that have ended and are
    counted with the rest of their warps.
    """
    came: dict[int, tuple[Mask, Agent, Any]] = {}
    for number, place in waiting:
        agent = context.agents[number]
        step: Any = agent.steps[place if place >= 0 else ~place]
        if is_aligned(step.op):
            came[id(step.op)] = came.get(id(step.op), (0,))[0] | step.acting, agent, step
    for mask, agent, step in came.values():
        rest = whole_warps(mask, context.every) & ~mask
        for others, other, there in came.values():
            if rest & others:
                raise collectives_differ(state, agent, step.op, other, there.op)
        if rest & ~gone:
            raise diverges(context, state, agent, step, step.op.called)


def check_cluster_lanes(context: Context, state: State, agent: Agent, step: Any) -> None:
    """The same of the cluster's barrier, by who has passed it at a step. Raises Fault."""
    if step.whole is None:
        step.whole = not is_aligned(step.op) or not _others(context, agent, step)
    if step.whole:
        return
    rest = _others(context, agent, step)
    for other in context.agents:
        if other.cta == agent.cta and other.mask & rest and state.places[other.number] != END:
            raise diverges(context, state, agent, step, step.op.called)


def _others(context: Context, agent: Agent, step: Any) -> Mask:
    """Threads of the warps that come to a step which nowhere come to it."""
    rest: Mask = whole_warps(step.mask, context.every) & ~step.mask
    for other in context.agents if rest else ():
        if other.cta == agent.cta:
            for there in other.steps:
                if there.op is step.op:
                    rest &= ~there.mask
    return rest
