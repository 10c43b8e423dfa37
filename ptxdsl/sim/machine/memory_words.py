"""Words for accesses that memory does not allow: what lies near a bad address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.diagnostics import counted
from ptxdsl.sim.layout import LOCAL_WINDOW, RANK_SHIFT, SHARED_START, SHARED_WINDOW
from ptxdsl.sim.program.symbols import GRANULE

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.memory import Memory

_WINDOW = 1 << 32  # bytes that a generic address of shared or local memory can be of


def bad_address(memory: Memory, address: int, size: int) -> str:
    """Which memory a bad global or generic address is near to."""
    what, s = f"{bytes_text(size)} at address {address:#x}", "s" if size == 1 else ""
    for start, where in ((SHARED_WINDOW, "shared"), (LOCAL_WINDOW, "local")):
        if start <= address < start + _WINDOW:
            return f"{what}: this is {where} memory, not global"
    if 0 <= address < GRANULE:
        return f"{what}: a null pointer" + (f" plus {address}" if address else "")
    region, after = memory.region(address), memory.region(address + GRANULE)
    if region is not None:
        end = f"the end of {region.name} ({bytes_text(region.end - region.start)}, starts at {region.start:#x})"
        if address < region.end:
            return f"{what} run{s} over {end}"
    past = address - region.end if region is not None else GRANULE
    before = after.start - address if after is not None and after is not region else GRANULE
    if region is not None and past < GRANULE and past <= before:
        return f"{what} {'lies' if s else 'lie'} {'just past' if past == 0 else f'{bytes_text(past)} past'} {end}"
    if after is not None and before < GRANULE:
        near = f"{bytes_text(before)} before {after.name} (starts at {after.start:#x})"
        return f"{what} {'lies' if s else 'lie'} {near}"
    if address < 1 << 32 and memory.symbols.dynamic_start > SHARED_START:
        return f"{what}: nothing lies there (perhaps a shared address, used as a global or generic one)"
    return f"{what}: nothing lies there"


def bad_shared_address(cta: Cta, address: int, size: int) -> str:
    """What is wrong with a shared address, in the window of a CTA."""
    rank, offset = address >> RANK_SHIFT, address & ((1 << RANK_SHIFT) - 1)
    what = f"{bytes_text(size)} at shared address {address:#x}"
    if not 0 <= rank < len(cta.cluster.ctas):
        return f"{what}: the cluster has no CTA of rank {rank}"
    if offset < SHARED_START:
        return f"{what}: shared memory starts at {SHARED_START:#x}"
    return f"{what}: the CTA's shared memory ends at {(cta.rank << RANK_SHIFT) | len(cta.window):#x}"


def bytes_text(size: int) -> str:
    return counted(size, "byte")


def address_text(space: str, address: int) -> str:
    """With the state space, where that has addresses of its own."""
    return f"{address:#x}" + (f" ({space})" if space.startswith(("shared", "local")) else "")
