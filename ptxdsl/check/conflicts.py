"""Which accesses are in each other's way."""

from __future__ import annotations

from ptxdsl.check.cluster import same_everywhere
from ptxdsl.check.intervals import overlap, threads_meet
from ptxdsl.check.parts import Touch
from ptxdsl.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxdsl.check.context import Context


def relate(context: Context, a: Touch, b: Touch) -> None:
    """Notes of two touches of the same memory whether one must be ordered with the other."""
    if not (a.writes or b.writes) or (a.atomic and b.atomic):
        return
    blocks = context.blocks
    there = blocks.place(b.cta, a.cta)  # where those are whose b is in the same memory as this block's a
    if not (a.elsewhere or b.elsewhere):
        if not overlap(a.intervals, b.intervals):
            return
    elif not same_everywhere(blocks, a, b, there, lambda a, b: overlap(a.intervals, b.intervals)):
        return
    if a.says is not None and a.says == b.says and not there and _say_the_same(context, a, b):
        return
    here = blocks.back(there)
    if a.writes != b.writes:
        if a.writes:
            a.readers |= b.bytes
            b.writers |= a.bit << here
        else:
            b.readers |= a.bytes
            a.writers |= b.bit << there
    own = a.agent == b.agent and not there
    if a.pipe and b.pipe and own:
        return
    if own and (a.grouped or not a.asynchronous) and (b.grouped or not b.asynchronous):
        within, across = same_everywhere(blocks, a, b, 0, lambda a, b: threads_meet(a.form, b.form))
        if within:
            a.within |= b.bit
            b.within |= a.bit
        if across:
            a.across |= b.bit
            b.across |= a.bit
        if not a.grouped and not b.grouped:
            return
    elif own and a.together != b.together:
        a.across |= b.bit
        b.across |= a.bit
    a.conflicts |= b.bit << there
    b.conflicts |= a.bit << here
    a.needers |= context.seat(b.agent, there)
    b.needers |= context.seat(a.agent, here)
    context.related += 1


def _say_the_same(context: Context, a: Touch, b: Touch) -> bool:
    """Whether two roles of a block write the same always, by one statement or as constants, to the same bytes."""
    assert a.says is not None
    one, other = context.agents[a.agent], context.agents[b.agent]
    if one is other or one.cta != other.cta or a.says.told_by() != ():
        return False
    return bool(same_everywhere(context.blocks, a, b, 0, _coincide))


def _coincide(a: Touch, b: Touch) -> bool:
    """Whether what two threads write either has no byte in common or is the same bytes."""
    if len(a.places) != 1 or len(b.places) != 1:
        return False
    width = a.places[0][2]
    starts = [at + lane for lanes, at, _ in (*a.places, *b.places) for lane in lanes or (0,)]
    return b.places[0][2] == width and len({start % width for start in starts}) == 1
