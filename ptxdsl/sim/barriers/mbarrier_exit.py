"""What is asked of a CTA's mbarriers when its last thread has exited, and the fence that makes them known to copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxdsl.diagnostics import counted
from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.barriers.mbarrier import Barrier, Barriers, barriers_of
from ptxdsl.sim.host import EXIT_WARNINGS, Fault, Group, handles

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine

_FENCE = "fence.mbarrier_init"


@handles(_FENCE, "fence.proxy.async")
def fence(group: Group) -> None:
    """Orders the initialisations of the threads that execute it, and of no others."""
    instruction = group.instruction
    group.machine.event("fence", instruction.opcode, instruction.line)
    table = barriers_of(group.machine, group.cta)
    for barrier in table.live.values():
        if not barrier.fenced and barrier.initialiser is not None:
            warp, lane = barrier.initialiser
            if warp is group.warp and group.mask >> lane & 1:
                barrier.fenced = True
                warp.unfenced -= 1
    if instruction.opcode.startswith(_FENCE):
        table.fences.setdefault(group.cta, instruction)


def _warnings(machine: Machine, cta: Cta) -> Iterator[tuple[Fault, Instruction]]:
    table: Barriers | None = cta.cluster.states.get(Barriers)
    if table is None:
        return
    for barrier in table.live.values():
        if barrier.rank != cta.rank:
            continue
        if barrier.cell[0] != barrier.word:
            yield _overwritten(barrier), barrier.origin
        elif barrier.tx < 0:
            yield _unexpected(barrier), barrier.origin
        if not barrier.fenced and barrier.initialiser is not None and cta in table.fences:
            yield _not_fenced(barrier, table.fences[cta]), barrier.origin


def _overwritten(barrier: Barrier) -> Fault:
    return Fault(
        "W1194",
        f"the memory of the mbarrier {barrier.place} has been written over, and its life was not ended by "
        "mbarrier.inval",
        "execute mbarrier.inval, by one thread, before the barrier's memory is used otherwise",
    )


def _unexpected(barrier: Barrier) -> Fault:
    """Who waited for the bytes has passed too early, or never."""
    size = -barrier.tx
    return Fault(
        "W1192",
        f"the mbarrier {barrier.place} is left with {counted(size, 'byte')} that came and that nobody "
        f"expected, in phase {barrier.phase}",
        "let expect_tx announce as many bytes as the copies to this barrier bring, no fewer",
        barrier.history(with_phase_before=True),
    )


def _not_fenced(barrier: Barrier, fence: Instruction) -> Fault:
    warp, lane = barrier.initialiser or (None, 0)
    by = f"lane {lane} of warp {warp.index}" if warp is not None else "a thread"
    return Fault(
        "W1193",
        f"the mbarrier {barrier.place} is initialised here by {by}, and {_FENCE} is executed by another thread",
        "let the thread that initialises the barriers execute the fence, before the block's or the cluster's barrier",
        [(fence, "this fence orders the initialisations of its own thread alone")],
    )


EXIT_WARNINGS.append(_warnings)
