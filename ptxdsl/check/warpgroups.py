"""Instructions of a warpgroup: wgmma with its fence, commit and wait, and setmaxnreg.

Four warps, the first of them of a number that 4 divides, execute each together. Nothing is known of what others did
because they came. Warps that one agent has whole come of themselves; the parts that several agents have must all come,
to the same instruction and as often.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", ``setmaxnreg``.
"""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.blame import fault
from ptxdsl.check.context import Context
from ptxdsl.check.groups import WGMMA
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import END, WAIT, Step
from ptxdsl.check.states import State
from ptxdsl.check.threads import Mask, range_text, whole_warpgroups
from ptxdsl.effects import Kind
from ptxdsl.protocol.model import Op


def is_of_warpgroup(op: Op) -> bool:
    what = op.what
    fences = what.kind is Kind.FENCE and op.name.startswith("wgmma")
    return fences or what.kind is Kind.REGISTERS or what.completes_on == WGMMA


class WarpgroupSync(Step):
    """Comes before what threads execute that are not whole warpgroups.

    groups: of each warpgroup of theirs all of its threads, and those that are here.
    """

    led_on = True

    def __init__(self, op: Op, mask: Mask) -> None:
        super().__init__(op.span)
        self.op = op
        self.acting = mask
        self.groups = [(group, group & mask) for group in whole_warpgroups(mask) if group & ~mask]
        self._met_by_others: dict[Mask, bool] = {}

    def run(self, context: Context, state: State, agent: Agent) -> int:
        me = agent.number
        if ("warpgroups", me) in state.meetings:
            return WAIT
        for needed, own in self.groups:
            if needed & ~context.every or not self._others(context, agent, needed & ~own):
                raise in_part(context, state, self)
        state.meetings["warpgroups", me] = len(self.groups)
        for needed, own in self.groups:
            key = "warpgroup", agent.cta, needed, id(self.op)
            come, waiting = state.meetings.pop(key, (0, ()))
            come, waiting = come | own, (*waiting, (me, self.number))
            if come != needed:
                state.meetings[key] = come, waiting
                continue
            for number, place in waiting:
                left = state.meetings.pop(("warpgroups", number)) - 1
                if left:
                    state.meetings["warpgroups", number] = left
                else:
                    state.places[number] = place + 1
        return WAIT if ("warpgroups", me) in state.meetings else self.number + 1

    def _others(self, context: Context, agent: Agent, threads: Mask) -> bool:
        """Whether all these threads have the instruction in their programs."""
        found = self._met_by_others.get(threads)
        if found is None:
            left = threads
            for other in context.agents:
                if other.cta == agent.cta and other is not agent:
                    for step in other.steps:
                        if isinstance(step, WarpgroupSync) and step.op is self.op:
                            left &= ~step.acting
            found = self._met_by_others[threads] = not left
        return found


def left_alone(context: Context, state: State, waiting: dict[int, Agent]) -> Exception | None:
    """The fault of some who wait at an instruction of their warpgroup while nobody of it waits for anything else."""
    for agent in waiting.values():
        step = agent.steps[state.places[agent.number]]
        if not isinstance(step, WarpgroupSync):
            continue
        threads = sum(group for group, _ in step.groups)
        places = [(a, state.places[a.number]) for a in context.agents if a.cta == agent.cta and a.mask & threads]
        if all(place == END or isinstance(a.steps[place], WarpgroupSync) for a, place in places):
            return in_part(context, state, step)
    return None


def in_part(context: Context, state: State, step: WarpgroupSync) -> Exception:
    group = step.groups[-1][0]
    whole, there = range_text(group), range_text(step.acting)
    size = f", in blocks of at least {group.bit_length()} threads" if group & ~context.every else ""
    return fault(
        state, classes.DIVERGENT,
        f"`{step.op.called}` takes whole warpgroups, but {there} "
        f"come{'s' if there.startswith(('warp ', 'thread ')) else ''} to it alone", step.span,
        help="a warpgroup is four warps, the first of them of a number that 4 divides: let all of "
        f"{whole} come here together{size}",
    )  # fmt: skip
