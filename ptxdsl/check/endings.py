"""What must be over when a CTA ends: its shared memory goes to the next one."""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.barriers import Commit
from ptxdsl.check.blame import fault, makers, wrong_bytes
from ptxdsl.check.blame_groups import completion, remedy
from ptxdsl.check.context import Context
from ptxdsl.check.parts import Touch
from ptxdsl.check.states import State
from ptxdsl.check.tensor import kept
from ptxdsl.diagnostics import Trip

_MEET = "let all blocks of the cluster meet before they end: `cluster_sync()`"


def check(context: Context, state: State) -> None:
    """Raises Fault for work in a CTA's shared memory that none of its threads knows to be over when all have ended."""
    for agent in context.agents:
        state.fill.end(context, state, agent)
    known = _known(context, state)
    for agent in context.agents:
        started = state.live & agent.products
        for groups in state.groups[agent.number].values():
            for group in groups:
                started |= group
        pending = started & ~known[agent.cta]
        if pending:
            raise _not_waited_for(context, state, context.touches[pending & -pending])
    for bit, touch in context.touches.items():
        remote = touch.cta != context.agents[touch.agent].cta
        if bit & state.live and (touch.asynchronous or remote) and not bit & known[touch.cta]:
            raise _under_way(context, state, touch, remote)
    still = kept(context, state)
    if still is not None:
        raise still
    for bit, (barrier, step) in context.incoming.items():
        if bit & state.live and not bit & known[barrier.cta]:
            name = context.barrier_text(barrier)
            if isinstance(step, Commit):
                message = f"the block may have ended when this commit arrives at {name}: nobody waits for it"
                help = "wait for the last commits before the block ends, as for all others"
            else:
                message = f"the block of {name} may have ended when this arrival comes from another block"
                help = _MEET
            raise fault(state, classes.EXIT_IN_FLIGHT, message, step.span, help=help)


def _known(context: Context, state: State) -> list[int]:
    """What each CTA's threads know together; of events as the agents' own blocks see them."""
    known = [0] * context.ctas
    for agent in context.agents:
        known[agent.cta] |= state.known[agent.number]
    blocks = context.blocks
    for place in range(1, blocks.count):  # the block there knows the same, as it sees it
        known[place] = blocks.seen_from(blocks.back(place), known[0])
    return known


def _not_waited_for(context: Context, state: State, touch: Touch) -> Exception:
    found = completion(state, touch)
    assert found is not None
    return fault(
        state,
        classes.EXIT_IN_FLIGHT,
        f"the block may end while the {found[0].work} started here is under way",
        touch.span,
        help=remedy(state, touch, "before the thread ends"),
        trips=_trips(context, state, touch),
    )


def _under_way(context: Context, state: State, touch: Touch, remote: bool) -> Exception:
    from ptxdsl.check.blame_slots import surplus  # where there is a fault

    more = surplus(context, state, touch)
    if more is not None:
        maker = context.agents[touch.agent]
        return wrong_bytes(context, state, maker, more, touch.site, state.phases[more.number].bytes)
    does = ("copy into" if touch.writes else "asynchronous read of") if touch.asynchronous else "access to"
    if remote:
        message = f"the block may have ended when this {does} its shared memory comes from another one"
        help = _MEET
    else:
        message = f"the block may end while this {does} its shared memory is under way: nobody waits for it"
        help = "wait for the barrier that it completes on, as often as copies are started"
    return fault(state, classes.EXIT_IN_FLIGHT, message, touch.span, help=help, trips=_trips(context, state, touch))


def _trips(context: Context, state: State, touch: Touch) -> tuple[Trip, ...]:
    from ptxdsl.check.trips import of_access  # where there is a fault

    return of_access(context, state, touch, makers(context, touch), touch.span)
