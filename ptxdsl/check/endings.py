"""What must be over when a CTA ends: its shared memory goes to the next one."""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.blame import fault
from ptxdsl.check.context import Context
from ptxdsl.check.states import State


def check(context: Context, state: State) -> None:
    """Raises Fault for asynchronous work that nobody has waited for when all have ended."""
    for agent in context.agents:
        known = 0
        for other in context.agents:
            if other.cta == agent.cta:
                known |= state.known[other.number]
        for mechanism, groups in state.groups[agent.number].items():
            for group in groups:
                pending = group & ~known
                if pending:
                    touch = context.touches[pending & -pending]
                    raise fault(
                        state,
                        classes.EXIT_IN_FLIGHT,
                        f"the block may end while the asynchronous work started here is under way ({mechanism})",
                        touch.site.span,
                        help="wait for its group before the thread ends: `cp_async_bulk_wait_group[0]()`",
                    )
    known = 0
    for agent in context.agents:
        known |= state.known[agent.number]
    for bit, touch in context.touches.items():
        if touch.asynchronous and touch.writes and bit & state.live and not bit & known:
            raise fault(
                state,
                classes.EXIT_IN_FLIGHT,
                "the block may end while this copy into its shared memory is under way: nobody waits for it",
                touch.site.span,
                help="wait for the barrier that it completes on, as often as copies are started",
            )
