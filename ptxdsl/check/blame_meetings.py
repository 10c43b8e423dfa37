"""What to say of barriers of threads and warp collectives to which not all come as they should."""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.blame import fault
from ptxdsl.check.context import Context
from ptxdsl.check.parts import Agent, Meeting
from ptxdsl.check.program import Step
from ptxdsl.check.states import State
from ptxdsl.check.threads import range_text
from ptxdsl.protocol.model import Op


def _named(meeting: Meeting) -> str:
    number = meeting.key[1]
    return f"named barrier {number}" if number else "`barrier()` (named barrier 0)"


def no_such_barrier(context: Context, state: State, agent: Agent, step: Step, number: int) -> Exception:
    return fault(
        state, classes.DIVERGENT, f"there is no named barrier {number}: a block has 0 to 15", step.span,
        help="0 is that of `barrier()`; use 1 to 15",
    )  # fmt: skip


def counts_differ(
    context: Context,
    state: State,
    agent: Agent,
    step: Step,
    meeting: Meeting,
    expected: int,
    needed: int,
    waiting: tuple[tuple[int, int], ...],
) -> Exception:
    others = [
        (context.agents[a].steps[place].span, f"{context.agents[a].does('waits')} here, for {expected} threads")
        for a, place in waiting
        if place >= 0
    ]
    return fault(
        state,
        classes.DIVERGENT,
        f"{_named(meeting)} is used for {needed} threads here, and for {expected} by others at the same time",
        step.span,
        *others,
        help="give each group of warps a barrier number of its own, and one number of threads wherever they use it",
    )


def too_many_at(
    context: Context, state: State, agent: Agent, step: Step, meeting: Meeting, arrived: int, needed: int
) -> Exception:
    return fault(
        state, classes.DIVERGENT,
        f"{arrived} threads come to {_named(meeting)}, which is for {needed}", step.span,
        help="the number of threads counts all that arrive or wait, in whole warps",
    )  # fmt: skip


def may_come_early(context: Context, state: State, agent: Agent, step: Step, meeting: Meeting) -> Exception:
    return fault(
        state, classes.DIVERGENT,
        f"{agent.name} may come to {_named(meeting)} while its last use is not over, and be counted in that", step.span,
        help="use another number, or wait for the others in between",
    )  # fmt: skip


def cluster_order(context: Context, state: State, agent: Agent, step: Step, what: str) -> Exception:
    return fault(
        state, classes.DIVERGENT, f"{agent.name} {what} at the barrier of the cluster", step.span,
        help="each thread arrives once and waits once, in turns: `cluster_sync()` does both",
    )  # fmt: skip


def diverges(context: Context, state: State, agent: Agent, step: Step, name: str) -> Exception:
    return fault(
        state, classes.DIVERGENT, f"`{name}` wants all lanes of a warp, but is executed by {range_text(step.mask)}",
        step.span, help="call it where the whole warp goes, or name the lanes that take part",
    )  # fmt: skip


def collectives_differ(state: State, agent: Agent, op: Op, other: Agent, there: Op) -> Exception:
    """Of lanes of one warp at instructions that do not wait for one another."""
    which = "another one" if there.called == op.called else f"`{there.called}`"
    return fault(
        state, classes.DIVERGENT,
        f"{agent.does('comes')} to `{op.called}`, for which all lanes must come, and {other.name} to {which}", op.span,
        (there.span, f"{other.does('waits')} here"),
        help="let all lanes come to one instruction, and choose by lanes what each of them gives",
    )  # fmt: skip
