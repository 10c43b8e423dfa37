"""Non-bulk asynchronous copies: ``cp.async``, its groups, and arrivals on mbarriers that follow it.

Source: PTX ISA, "cp.async", "cp.async.commit_group", "cp.async.wait_group", "cp.async.mbarrier.arrive".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Immediate, Instruction, Not, Operand, Register
from ptxdsl.sim.barriers.mbarrier import Barrier
from ptxdsl.sim.barriers.mbarrier_instructions import find, form, own
from ptxdsl.sim.copies.bulk import kept
from ptxdsl.sim.copies.transfer import CP_ASYNC, After, Transfer, groups_of, wait_for
from ptxdsl.sim.host import Group, Wait, handles
from ptxdsl.sim.machine.memory import AccessFault
from ptxdsl.sim.machine.timeline import copy_cycles
from ptxdsl.sim.machine.warp import lane_numbers

Array = npt.NDArray[Any]

_WORDS: dict[int, Any] = {4: np.dtype("u4"), 8: np.dtype("u8"), 16: np.dtype("u8")}


def unsupported(instruction: Instruction) -> str | None:
    size = instruction.operands[2]
    sizes = (16,) if ".cg" in instruction.opcode else (4, 8, 16)
    if not isinstance(size, Immediate) or size.value not in sizes:
        return f"a copy is of {' or '.join(map(str, sizes))} bytes"
    return None


@handles("cp.async", check=unsupported)
def copy(group: Group) -> None:
    """Copies of all lanes at once. A lane reads ``src-size`` bytes and writes zeros behind them."""
    to, source, size_operand, *rest = group.instruction.operands
    assert isinstance(size_operand, Immediate)
    size = size_operand.value
    if "L2::cache_hint" in group.instruction.parts:
        rest = rest[:-1]
    lanes = group.lanes
    targets, sources = group.read(to, "u64")[lanes], group.read(source, "u64")[lanes]
    counts = _source_sizes(group, rest[0], size) if rest else None
    destination = _Rows(group, "shared" if ".shared" in group.instruction.opcode else "generic", targets, size, True)
    origin: _Rows | None
    if counts is None or (counts == size).all():
        origin = _Rows(group, "global" if ".global" in group.instruction.opcode else "generic", sources, size, False)
        some = None
    else:
        some = [(row, int(count)) for row, count in enumerate(counts) if count]
        origin = None
    taken: list[Array] = []
    machine, cta = group.machine, group.cta
    view = machine.memory.view

    def part(row: int, count: int) -> npt.NDArray[np.uint8]:
        return view(cta, "global", int(sources[row]), count, write=False)

    if some is not None:
        for row, count in some:
            part(row, count)  # is it there

    def read() -> None:
        if origin is not None:
            taken.append(origin.get())
            machine.accesses(cta, origin.space, sources, size, "read")
            return
        rows = np.zeros((len(targets), size), np.uint8)
        for row, count in some or ():
            rows[row, :count] = part(row, count)
            machine.accesses(cta, "global", int(sources[row]), count, "read")
        taken.append(rows.view(_WORDS[size]))

    def write(time: int) -> None:
        destination.put(taken[0])
        machine.accesses(cta, destination.space, targets, size, "write")

    transfer = Transfer("cp.async", group, read, write, copy_cycles(size * len(targets)), f"{size} bytes a lane")
    groups_of(group, CP_ASYNC).add(group.mask, transfer)
    group.machine.start(transfer)


def _source_sizes(group: Group, operand: Operand, size: int) -> Array:
    """``src-size``, or of ``ignore-src`` nothing where it is true."""
    register = operand.operand if isinstance(operand, Not) else operand
    if isinstance(register, Register) and _is_predicate(group, register):
        return np.where(group.read(operand, "pred")[group.lanes], 0, size)
    counts: Array = group.read(operand, "u32")[group.lanes]
    if (counts > size).any():
        raise group.fault("E1151", f"cp.async of {size} bytes with a source size of {int(counts.max())}")
    return counts


def _is_predicate(group: Group, register: Register) -> bool:
    return group.machine.program.registers.get(register.name) == "pred"


class _Rows:
    """The memory at one address a lane, ``size`` bytes each. Checks it when it is made, and gets it anew when used."""

    def __init__(self, group: Group, space: str, addresses: Array, size: int, write: bool) -> None:
        self.view, self.cta = group.machine.memory.view, group.cta
        self.space, self.size, self.write = space, size, write
        self.addresses = addresses
        self.first = int(addresses.min())
        self.span = int(addresses.max()) - self.first + size
        self.numbers: Array | None = None
        if self.first % size == 0 and not (addresses & np.uint64(size - 1)).any() and self.span < 1 << 24:
            self.numbers = ((addresses - np.uint64(self.first)) // np.uint64(size)).astype(np.int64)
            try:
                self._all()
            except AccessFault:  # a gap between two lanes' memory, or an error: one by one tells
                self.numbers = None
        if self.numbers is None:
            for address in addresses:
                self._one(int(address))

    def _all(self) -> npt.NDArray[np.uint8]:
        return self.view(self.cta, self.space, self.first, self.span, write=self.write)

    def _one(self, address: int) -> npt.NDArray[np.uint8]:
        return self.view(self.cta, self.space, address, self.size, write=self.write, align=self.size)

    def get(self) -> Array:
        """(rows, words)."""
        word = _WORDS[self.size]
        if self.numbers is None:
            return np.stack([self._one(int(address)) for address in self.addresses]).view(word)
        rows: Array = self._all().view(word).reshape(-1, self.size // word.itemsize)
        return rows[self.numbers]

    def put(self, rows: Array) -> None:
        if self.numbers is None:
            for address, row in zip(self.addresses, rows.view(np.uint8), strict=True):
                self._one(int(address))[...] = row
        else:
            words = self._all().view(rows.dtype).reshape(-1, rows.shape[1])
            words[self.numbers] = rows


@handles("cp.async.commit_group")
def commit_group(group: Group) -> None:
    groups_of(group, CP_ASYNC).commit(group.mask)


@handles("cp.async.wait_group")
def wait_group(group: Group) -> Wait | None:
    return wait_for(group, CP_ASYNC, kept(group.instruction))


@handles("cp.async.wait_all")
def wait_all(group: Group) -> Wait | None:
    groups_of(group, CP_ASYNC).commit(group.mask)
    return wait_for(group, CP_ASYNC, 0)


@handles("cp.async.mbarrier.arrive")
def mbarrier_arrive(group: Group) -> None:
    """An arrival of each lane once all its copies so far are done."""
    made = form("mbarrier.arrive." + group.instruction.opcode.removeprefix("cp.async.mbarrier.arrive."))
    increment = "noinc" not in group.instruction.parts
    address_operand = group.instruction.operands[0]
    address = group.common(address_operand, "u64")
    if address is not None:
        _follow(group, find(group, made, own(group, made, address)), group.mask, increment)
        return
    for lane, address in zip(lane_numbers(group.mask), group.values(address_operand, "u64"), strict=True):
        _follow(group, find(group, made, own(group, made, address)), 1 << lane, increment)


def _follow(group: Group, barrier: Barrier, mask: int, increment: bool) -> None:
    group.touch(barrier)
    if increment:
        barrier.add_pending(mask.bit_count())
    for part, transfers in groups_of(group, CP_ASYNC).prior(mask):
        lanes = part.bit_count()
        group.only(part)

        def arrive(time: int, lanes: int = lanes) -> None:
            barrier.table.find(group.cta, barrier.address, "cp.async.mbarrier.arrive").arrive(lanes, 1, time=time)

        group.machine.start(After("cp.async", group, transfers, arrive))
