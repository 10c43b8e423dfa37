"""Tensor memory: a CTA's 128 lanes of 512 columns of 32 bits, who has which columns, and what is under way in them.

An address is ``lane << 16 | column``. Every instruction that touches tensor memory says which lanes and columns (a
``Region``); it may touch allocated columns alone. ``tcgen05.ld`` and ``.st`` are asynchronous until ``tcgen05.wait``,
the others until a ``tcgen05.commit`` arrives that their thread has issued after them. The simulator moves the registers
of ``ld`` and ``st`` at once (a register that ``ld`` writes may be read without the wait) and remembers the region until
the wait: whatever touches it in between is a race, found at the instruction that comes second.

Source: PTX ISA, "Tensor Memory", "Tensor Memory Allocation", "Access restrictions", "Memory Consistency Model for 5th
generation of TensorCore operations".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass
from ptxdsl.sim.host import Fault

if TYPE_CHECKING:
    from ptxdsl.ptx.module import Instruction
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

Words = npt.NDArray[np.uint32]

LANES, COLUMNS, UNIT = 128, 512, 32
LANES_OF_WARP = 32
# What columns hold before the first write: NaN in every floating-point format, and as a scale factor.
UNWRITTEN = 0xFFFF_FFFF

BAD_ALLOCATION, BAD_ADDRESS, BAD_LANES, RACE, NOT_RELEASED = "E1160", "E1161", "E1162", "E1165", "E1166"


@dataclass(frozen=True, slots=True)
class Region:
    """lanes: a mask of 128 bits. columns [first, end)."""

    lanes: int
    first: int
    end: int

    def overlaps(self, other: Region) -> bool:
        return self.first < other.end and other.first < self.end and bool(self.lanes & other.lanes)


def lanes_mask(first: int, count: int) -> int:
    return (1 << count) - 1 << first


@dataclass(frozen=True, slots=True)
class Access:
    """One thing that an instruction does to a region. warp: of ``ld`` and ``st`` the warp that must wait for it, None
    of the instructions that are carried out in order."""

    region: Region
    writes: bool
    instruction: Instruction
    warp: Warp | None = None

    @property
    def name(self) -> str:
        return ".".join(self.instruction.parts[:2])


@dataclass(frozen=True, slots=True)
class Allocation:
    first: int
    columns: int
    origin: Instruction


class TensorMemory:
    """One CTA's. words[lane, column]. moving: ``ld`` and ``st`` not waited for; incomplete: work that no commit
    has told the end of."""

    def __init__(self) -> None:
        self.words: Words = np.full((LANES, COLUMNS), UNWRITTEN, np.uint32)
        self.allocations: list[Allocation] = []
        self.allocated = 0  # a mask of columns
        self.largest_next = COLUMNS  # "should not increase between any two allocations"
        self.relinquished: Instruction | None = None
        self.moving: list[Access] = []
        self.incomplete: list[Access] = []

    # Allocation

    def find(self, columns: int) -> int | None:
        """The first column of the lowest free range of that size, None if there is none."""
        return find_free(self.allocated, columns)

    def may_allocate(self, columns: int) -> None:
        """Raises Fault where an allocation is wrong whether there is room or not."""
        check_size(columns, "tcgen05.alloc")
        if self.relinquished is not None:
            raise Fault(
                BAD_ALLOCATION,
                f"tcgen05.alloc after the tcgen05.relinquish_alloc_permit of PTX line {self.relinquished.line}",
                "a CTA that has given up the right to allocate does not get it back",
            )
        if columns > self.largest_next:
            raise Fault(
                BAD_ALLOCATION,
                f"tcgen05.alloc of {columns} columns after one of {self.largest_next}",
                "the number of columns must not increase from one allocation of a CTA to the next",
            )

    def reserve(self, first: int, columns: int, origin: Instruction) -> None:
        self.allocations.append(Allocation(first, columns, origin))
        self.allocated |= lanes_mask(first, columns)
        self.largest_next = columns
        self.words[:, first : first + columns] = UNWRITTEN

    def may_release(self, address: int, columns: int, origin: Instruction) -> Allocation:
        """The allocation that ``tcgen05.dealloc`` names. Raises Fault.

        A ``ld`` that is not waited for is no obstacle: whoever uses its registers has waited (PTX ISA, "Register
        dependencies, same thread"), and programs leave ``wait::ld`` out where nothing but the end follows. It is still
        held against what writes these columns after another allocation.
        """
        check_size(columns, "tcgen05.dealloc")
        found = next((a for a in self.allocations if (a.first, a.columns) == (address, columns)), None)
        if found is None:
            raise Fault(
                BAD_ALLOCATION,
                f"tcgen05.dealloc of {columns} columns at {address:#x}, not given by tcgen05.alloc; {self.owned()}",
            )
        whole = Access(Region(lanes_mask(0, LANES), found.first, found.first + columns), True, origin)
        self.check(whole, [a for a in self.moving if a.writes] + self.incomplete)
        return found

    def release(self, allocation: Allocation) -> None:
        self.allocations.remove(allocation)
        self.allocated &= ~lanes_mask(allocation.first, allocation.columns)

    def owned(self) -> str:
        """What is allocated, in words."""
        if not self.allocations:
            return "nothing is allocated"
        ranges = ", ".join(
            f"{a.first}-{a.first + a.columns - 1}" for a in sorted(self.allocations, key=lambda a: a.first)
        )
        return f"allocated are the columns {ranges}"

    # Access

    def require(self, region: Region, what: str) -> None:
        """Raises Fault where a region is not in tensor memory, or not allocated."""
        if region.end > COLUMNS or region.lanes >> LANES:
            over = "columns" if region.end > COLUMNS else "lanes"
            raise Fault(
                BAD_ADDRESS,
                f"{what}: {_region_text(region)} go beyond tensor memory's {LANES} lanes and {COLUMNS} columns",
                f"look at the {over} of the address, which are its {'low' if over == 'columns' else 'high'} 16 bits",
            )
        missing = lanes_mask(region.first, region.end - region.first) & ~self.allocated
        if missing:
            first = (missing & -missing).bit_length() - 1
            raise Fault(
                BAD_ADDRESS,
                f"{what}: column {first} of {_region_text(region)} is not allocated; {self.owned()}",
            )

    def move(self, accesses: Sequence[Access]) -> None:
        """One ``ld`` or ``st``: checked against what is not waited for or not complete, and remembered. Raises
        Fault."""
        for access in accesses:
            self.check(access, self.moving + self.incomplete)
        self.moving += accesses

    def queue(self, access: Access) -> None:
        """Work that is carried out later, in order with its like: checked against ``ld`` and ``st`` not waited for."""
        self.check(access, self.moving)
        self.incomplete.append(access)

    def waited(self, warp: Warp, writes: bool) -> None:
        """``tcgen05.wait::st`` (writes) or ``wait::ld`` of a warp."""
        self.moving = [a for a in self.moving if a.warp is not warp or a.writes != writes]

    def check(self, access: Access, others: list[Access]) -> None:
        for other in others:
            if (access.writes or other.writes) and access.region.overlaps(other.region):
                raise _race(access, other)


def find_free(allocated: int, columns: int) -> int | None:
    wanted = lanes_mask(0, columns)
    return next((at for at in range(0, COLUMNS - columns + 1, UNIT) if not allocated >> at & wanted), None)


def check_size(columns: int, what: str) -> None:
    if not UNIT <= columns <= COLUMNS or columns & (columns - 1):
        raise Fault(
            BAD_ALLOCATION,
            f"{what} of {columns} columns",
            f"the number of columns is a power of two from {UNIT} to {COLUMNS}",
        )


def lane_of(address: int) -> int:
    return address >> 16


def column_of(address: int) -> int:
    return address & 0xFFFF


def require_lanes_of_warp(warp: int, lane: int, step: int, what: str) -> None:
    """Whether a warp may begin at this lane; step: what lanes an access of the shape begins at. Raises Fault."""
    mine = LANES_OF_WARP * (warp % 4)
    if lane % step or not mine <= lane < mine + LANES_OF_WARP:
        allowed = " or ".join(map(str, range(mine, mine + LANES_OF_WARP, step)))
        raise Fault(
            BAD_LANES,
            f"{what} at lane {lane} in warp {warp}",
            f"warp {warp} reaches the lanes {mine} to {mine + LANES_OF_WARP - 1}, by its number in the group of four; "
            f"here the address's lane, its high 16 bits, must be {allowed}",
        )


def _race(second: Access, first: Access) -> Fault:
    shared = _region_text(_common(first.region, second.region))
    doing = "writes" if second.writes else "reads"
    if first.warp is not None:
        operation = "st" if first.writes else "ld"
        wait = f"the warp has not executed tcgen05.wait::{operation} since"
        help = f"tcgen05.wait::{operation} must come between, and a barrier after it where other threads go on"
    else:
        wait = "no tcgen05.commit that came after it in the same thread has arrived"
        help = "wait on the mbarrier of such a tcgen05.commit, then comes tcgen05.fence::after_thread_sync"
    did = "writes" if first.writes else "reads"
    return Fault(
        RACE,
        f"{second.name} {doing} {shared} of tensor memory that the {first.name} of PTX line "
        f"{first.instruction.line} {did}: {wait}",
        help,
    )


def _common(a: Region, b: Region) -> Region:
    return Region(a.lanes & b.lanes, max(a.first, b.first), min(a.end, b.end))


def _region_text(region: Region) -> str:
    first = (region.lanes & -region.lanes).bit_length() - 1
    last = region.lanes.bit_length() - 1
    columns = f"columns {region.first}-{region.end - 1}" if region.end - region.first > 1 else f"column {region.first}"
    return f"lanes {first}-{last}, {columns}"


def tensor_memory(machine: Machine, cta: Cta) -> TensorMemory:
    return machine.state(cta, TensorMemory, TensorMemory)
