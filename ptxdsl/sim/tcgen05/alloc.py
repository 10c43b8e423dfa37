"""``tcgen05.alloc``, ``.dealloc``, ``.relinquish_alloc_permit``: which columns of tensor memory a CTA has.

With ``.cta_group::2`` a warp of each CTA of the pair does the same together: both get the same columns, and both wait
until the other has come. (The card may also let the first one go on in ``dealloc``; a program must not rely on that.)
Whoever deallocates need not be the warp that allocated.

Source: PTX ISA, "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit", "Issue Granularity".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.host import EXIT_CHECKS, Fault, Group, Wait, WaitsFor, handles
from ptxdsl.sim.tcgen05.form import misformed
from ptxdsl.sim.tcgen05.sync import ctas_of, whole_warp
from ptxdsl.sim.tcgen05.tensor_memory import (
    BAD_ALLOCATION,
    NOT_RELEASED,
    TensorMemory,
    column_of,
    find_free,
    lane_of,
    tensor_memory,
)

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

_ALL_LANES = (1 << 128) - 1


def left_behind(machine: Machine, cta: Cta) -> tuple[Fault, Instruction] | None:
    """Everything must have been deallocated when a CTA's threads have exited."""
    memory: TensorMemory | None = cta.states.get(TensorMemory)
    if memory is None or not memory.allocations:
        return None
    left = memory.allocations[0]
    fault = Fault(
        NOT_RELEASED,
        f"the threads of the CTA have exited, and {left.columns} columns of tensor memory are still allocated",
        "tcgen05.dealloc must come before the exit; the next CTA on the same SM waits for these columns",
    )
    return fault, left.origin


EXIT_CHECKS.append(left_behind)


class Request:
    """What one warp of a pair asks for. done: both have it."""

    def __init__(self, group: Group, columns: int, act: Callable[[int], None]) -> None:
        self.warp: Warp = group.warp
        self.origin: Instruction = group.instruction
        self.columns = columns
        self.act = act
        self.done = False


@handles("tcgen05.alloc", check=misformed)
def alloc(group: Group) -> Wait | None:
    whole_warp(group)
    destination, size = group.instruction.operands
    columns = group.uniform(size, "u32")
    address = group.uniform(destination, "u64")
    space = "shared::cta" if "shared::cta" in group.instruction.parts else "generic"
    ctas = ctas_of(group)
    memory = tensor_memory(group.machine, group.cta)

    def give(first: int) -> None:
        memory.reserve(first, columns, group.instruction)
        word = group.machine.memory.view(group.cta, space, address, 4, write=True, align=4)
        word.view(np.uint32)[0] = first
        group.machine.accesses(group.cta, space, address, 4, "write")

    memory.may_allocate(columns)
    if len(ctas) == 2:
        return _together(group, ctas, columns, give)
    first = memory.find(columns)
    if first is None:
        return Wait(lambda: memory.find(columns) is not None, partial(_describe, memory, columns))
    give(first)
    return None


def _describe(memory: TensorMemory, columns: int) -> WaitsFor:
    return WaitsFor("tensor memory", f"({columns} columns)", memory.owned())


@handles("tcgen05.dealloc", check=misformed)
def dealloc(group: Group) -> Wait | None:
    whole_warp(group)
    place, size = group.instruction.operands
    address, columns = group.uniform(place, "u32"), group.uniform(size, "u32")
    ctas = ctas_of(group)
    memory = tensor_memory(group.machine, group.cta)
    if lane_of(address):
        raise Fault(BAD_ALLOCATION, f"tcgen05.dealloc at lane {lane_of(address)}", "an allocation begins at lane 0")
    allocation = memory.may_release(column_of(address), columns, group.instruction)
    if group.machine.watch is not None:  # what others still do there comes too late
        first = column_of(address)
        group.machine.watch.tensor(group.cta, _ALL_LANES, first, first + columns, "write")
    if len(ctas) == 1:
        memory.release(allocation)
        return None
    return _together(group, ctas, columns, lambda first: memory.release(allocation))


@handles("tcgen05.relinquish_alloc_permit", check=misformed)
def relinquish(group: Group) -> None:
    whole_warp(group)
    ctas_of(group, alive=False)
    memory = tensor_memory(group.machine, group.cta)
    if memory.relinquished is None:
        memory.relinquished = group.instruction


# Pairs


def _requests(group: Group) -> dict[int, Request]:
    """Of the pair, by rank: who has come and waits for the other."""
    pair = group.cta.rank >> 1
    return group.machine.state(group.cta.cluster, ("tcgen05 pair", pair), dict[int, Request])


def _together(group: Group, ctas: tuple[Cta, ...], columns: int, act: Callable[[int], None]) -> Wait | None:
    """Does both CTAs' parts once both have come and, for an allocation, there is room in both."""
    requests = _requests(group)
    rank, name = group.cta.rank, ".".join(group.instruction.parts[:2])
    other = requests.get(rank)
    if other is not None:
        raise Fault(
            BAD_ALLOCATION,
            f"{name} in warp {group.warp.index} while warp {other.warp.index} of the same CTA waits in "
            f"{'.'.join(other.origin.parts[:2])}",
            "one warp of each CTA of the pair allocates and deallocates",
        )
    mine = requests[rank] = Request(group, columns, act)
    memories = [tensor_memory(group.machine, cta) for cta in ctas]
    if rank ^ 1 in requests:
        _must_agree(name, mine, requests[rank ^ 1])

    def place() -> int | None:
        """The columns that both can have, if both have come."""
        if rank ^ 1 not in requests:
            return None
        if name != "tcgen05.alloc":
            return 0
        return find_free(memories[0].allocated | memories[1].allocated, columns)

    def attempt(_: Group) -> Wait | None:
        if mine.done:
            return None
        first = place()
        if first is None:
            return Wait(lambda: mine.done or place() is not None, describe, then=attempt)
        for request in (mine, requests[rank ^ 1]):
            request.act(first)
            request.done = True
        requests.clear()
        return None

    def describe() -> WaitsFor:
        if rank ^ 1 not in requests:
            peer = next(cta for cta in ctas if cta.rank != rank)
            state = f"no warp of the CTA of rank {peer.rank} executes it"
            return WaitsFor("the other CTA of the pair", f"in {name}", state, by=tuple(peer.warps))
        state = "; ".join(f"rank {cta.rank}: {m.owned()}" for cta, m in zip(ctas, memories, strict=True))
        return WaitsFor("tensor memory", f"({columns} columns in both CTAs of a pair)", state)

    return attempt(group)


def _must_agree(name: str, mine: Request, theirs: Request) -> None:
    other = ".".join(theirs.origin.parts[:2])
    if (name, mine.columns) != (other, theirs.columns):
        raise Fault(
            BAD_ALLOCATION,
            f"{name} of {mine.columns} columns in one CTA of a pair, {other} of {theirs.columns} columns in the other "
            f"(PTX line {theirs.origin.line})",
            "the two CTAs of a pair allocate and deallocate the same columns together",
        )
