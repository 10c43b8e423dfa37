"""Registers that warpgroups take over from one another (``setmaxnreg``): who asks for more waits until they are free.

A block has as many as its warps got at the launch. Where each warp moves once, whatever the launch, what all have in
the end may not be more than that. If it is not, all who ask for more get it, provided that who gives some back need not
wait for anybody before: then no order of the warps is in the way.

Source: PTX ISA, ``setmaxnreg``.
"""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.collectives import ClusterWait, Meet
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Finding, Unproved
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import Step
from ptxdsl.check.states import State
from ptxdsl.check.supposed import FREE
from ptxdsl.check.threads import WARP, Mask, range_text, warps
from ptxdsl.protocol.model import Op
from ptxdsl.registers import given


class RegisterMove(Step):
    """setmaxnreg.inc or .dec: from here on a thread has ``count`` registers."""

    fills = False

    def __init__(self, op: Op, mask: Mask, count: int) -> None:
        super().__init__(op.span)
        self.op, self.mask, self.count = op, mask, count
        self.raises = "inc" in op.name

    def run(self, context: Context, state: State, agent: Agent) -> int:
        return self.number + 1


def check(context: Context) -> Finding | None:
    """What warps wait for in vain. Notes what is taken for granted; raises Unproved for what has no meaning."""
    at_launch = context.kernel.registers
    found = [(agent, step) for agent in context.agents for step in agent.steps if isinstance(step, RegisterMove)]
    if at_launch is None or not found:
        return None
    if not all(_always(*one) for one in found) or not _one_a_warp(found):
        _suppose(context, found)
        return None
    at_launch = given(at_launch, [step.count for _, step in found])
    for _, step in found:
        _check_direction(step, at_launch)
    moved = {warp: step.count for agent, step in found if agent.cta == 0 for warp in warps(step.mask)}
    count = len(warps(context.every))
    there, wanted = count * at_launch, sum(moved.values()) + (count - len(moved)) * at_launch
    if wanted > there:
        return _too_many(found, there, wanted, at_launch)
    if not all(_at_once(step, agent, found) for agent, step in found if not step.raises):
        _suppose(context, found)
    return None


def _suppose(context: Context, found: list[tuple[Agent, RegisterMove]]) -> None:
    for _, step in found:
        if step.raises:
            context.supposed.note(FREE, step.span)


def _one_a_warp(found: list[tuple[Agent, RegisterMove]]) -> bool:
    """Whether no warp moves registers twice: what its threads come to in different roles is one instruction."""
    ops = {(agent.cta, warp): step.op for agent, step in found for warp in warps(step.mask)}
    several = len({agent.number for agent, _ in found}) < len(found)
    return not several and all(ops[agent.cta, warp] is step.op for agent, step in found for warp in warps(step.mask))


def _always(agent: Agent, step: Step) -> bool:
    """Whether an agent comes to a step in any launch, once."""
    at = step.number
    return not step.nesting and all(s.successors and max(s.successors) <= at for s in agent.steps[:at])


def _check_direction(move: RegisterMove, at_launch: int) -> None:
    assert move.span is not None
    if move.count < at_launch if move.raises else move.count > at_launch:
        raise Unproved(
            move.span,
            f"`{move.op.called}` {'raises' if move.raises else 'lowers'} the registers of a thread to {move.count}, "
            f"but from the launch on it has {at_launch}",
            "ask for more where a role raises their number, for fewer where it lowers it",
        )


def _too_many(found: list[tuple[Agent, RegisterMove]], there: int, wanted: int, at_launch: int) -> Finding:
    raising = [step for _, step in found if step.raises]
    asked = raising[-1]
    assert asked.span is not None
    mask = sum({step.mask for _, step in found if step.op is asked.op})
    others = {
        step.span: f"{'raised' if step.raises else 'lowered'} to {step.count} here"
        for _, step in found
        if step.span is not None and step.op is not asked.op
    }
    return Finding(
        classes.CYCLIC_WAIT,
        f"deadlock: {range_text(mask)} wait for registers forever: the warps of a block want {wanted * WARP} together, "
        f"and have {there * WARP} ({at_launch} a thread at the launch)",
        asked.span,
        tuple(others.items()),
        "let the numbers of all warps add up to no more than they have at the launch",
    )


def _at_once(move: RegisterMove, agent: Agent, found: list[tuple[Agent, RegisterMove]]) -> bool:
    """Whether who gives registers back waits for nobody who may be waiting for them: for the whole block at most,
    before anybody asks for more."""
    before = _meetings(agent, move)
    if before is None or not any(before):
        return before is not None
    asking = [_meetings(other, step) for other, step in found if step.raises]
    return all(come is not None and all(a >= b for a, b in zip(come, before, strict=True)) for come in asking)


def _meetings(agent: Agent, move: RegisterMove) -> tuple[int, int] | None:
    """How many barriers of the whole block and of the cluster come before it; None where it may wait for more."""
    steps = agent.steps[: move.number]
    if any(step.waits for step in steps):
        return None
    of_cluster = [step for step in steps if isinstance(step, ClusterWait)]
    of_block = [step for step in steps if isinstance(step, Meet) and step.syncs]
    whole = all(step.count is None and step.id is None for step in of_block)
    whole = whole and all(_always(agent, step) for step in (*of_block, *of_cluster))
    return (len(of_block), len(of_cluster)) if whole else None
