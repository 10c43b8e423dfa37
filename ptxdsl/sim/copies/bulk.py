"""Bulk copies: ``cp.async.bulk`` in all directions, ``cp.reduce.async.bulk``, and the bulk groups of threads.

Source: PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "cp.async.bulk.prefetch", "cp.async.bulk.commit_group",
"cp.async.bulk.wait_group". Every active lane starts a copy of its own. Cache hints change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Address, Immediate, Instruction, Operand
from ptxdsl.record import dataclass
from ptxdsl.sim.barriers.mbarrier import Barriers, barriers_of, shared_address
from ptxdsl.sim.copies.reductions import OPERATIONS, STORAGE, reduce
from ptxdsl.sim.copies.transfer import BULK, Transfer, groups_of, wait_for
from ptxdsl.sim.host import Group, Wait, handles
from ptxdsl.sim.layout import RANK_SHIFT
from ptxdsl.sim.machine.timeline import copy_cycles
from ptxdsl.sim.machine.warp import lane_numbers
from ptxdsl.sim.watch import How

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta

Bytes = npt.NDArray[np.uint8]

_OFFSET = (1 << RANK_SHIFT) - 1
MULTICAST = "multicast::cluster"


@dataclass(frozen=True, slots=True)
class Form:
    """name: for messages. destination, source: state spaces. operation, type: of a reduction."""

    name: str
    destination: str
    source: str
    multicast: bool
    masked: bool
    hint: bool
    operation: str | None
    type: str


@lru_cache(256)
def form(opcode: str) -> Form:
    parts = opcode.split(".")
    spaces = [part for part in parts if part == "global" or part.startswith("shared")]
    reducing = parts[1] == "reduce"
    operation = next((part for part in parts[4:] if part in OPERATIONS), None) if reducing else None
    return Form(
        "cp.reduce.async.bulk" if reducing else "cp.async.bulk",
        spaces[0],
        spaces[-1],
        MULTICAST in parts,
        "cp_mask" in parts,
        "L2::cache_hint" in parts,
        operation,
        parts[-1],
    )


_WAYS = frozenset((
    ("shared::cluster", "global"), ("shared::cta", "global"), ("shared::cluster", "shared::cta"),
    ("global", "shared::cta"),
))  # fmt: skip


def unsupported(instruction: Instruction) -> str | None:
    parts = instruction.parts
    spaces = tuple(part for part in parts if part == "global" or part.startswith("shared"))
    if spaces not in _WAYS:
        return "there is no such way from one memory to another"
    made = form(instruction.opcode)
    into = made.destination != "global"
    completion = "mbarrier::complete_tx::bytes" if into else "bulk_group"
    if completion not in parts:
        return f"a copy to .{made.destination} is completed by .{completion}"
    if parts[1] == "reduce" and (made.operation is None or made.type not in STORAGE):
        return "the reduction's operation or type"
    wanted = 3 + into + made.multicast + made.masked + made.hint
    if len(instruction.operands) != wanted or (into and not isinstance(instruction.operands[3], Address)):
        return f"it has {wanted} operands" + (", the fourth the address of the mbarrier" if into else "")
    return None


@handles("cp.async.bulk", "cp.reduce.async.bulk", check=unsupported)
def copy(group: Group) -> None:
    made = form(group.instruction.opcode)
    to, source, size, *rest = group.instruction.operands
    lanes = lane_numbers(group.mask)
    columns = [group.values(operand, type) for operand, type in ((to, "u64"), (source, "u64"), (size, "u32"))]
    if made.destination == "global":
        masks = group.values(rest[-1], "u16") if made.masked else [0xFFFF] * len(lanes)
        for lane, target, start, count, mask in zip(lanes, *columns, masks, strict=True):
            group.only(1 << lane)
            _out(group, made, lane, target, start, count, mask)
        return
    barriers = group.values(rest[0], "u64")
    masks = group.values(rest[1], "u16") if made.multicast else [0] * len(lanes)
    for lane, target, start, count, barrier, mask in zip(lanes, *columns, barriers, masks, strict=True):
        group.only(1 << lane)
        _into(group, made, target, start, count, barrier, mask)


def _out(group: Group, made: Form, lane: int, target: int, start: int, size: int, mask: int) -> None:
    """shared::cta -> global, counted in the lane's bulk groups."""
    view, cta = group.machine.memory.view, group.cta
    check_bulk(group, made.name, target, start, size)
    view(cta, made.source, start, size, write=False)
    view(cta, made.destination, target, size, write=True)
    taken: list[Bytes] = []

    def read() -> None:
        taken.append(view(cta, made.source, start, size, write=False).copy())
        group.machine.accesses(cta, made.source, start, size, "read")

    def write(time: int) -> None:
        there, data = view(cta, made.destination, target, size, write=True), taken[0]
        if mask == 0xFFFF:
            how: How = "reduce" if made.operation is not None else "write"
            group.machine.accesses(cta, made.destination, target, size, how)
        else:
            places = np.flatnonzero(np.tile(mask >> np.arange(16) & 1, size // 16))
            group.machine.accesses(cta, made.destination, target + places, 1, "write")
        if made.operation is not None:
            there[...] = reduced(made.operation, made.type, there, data)
        elif mask == 0xFFFF:
            there[...] = data
        else:
            wanted = (mask >> np.arange(16) & 1).astype(bool)
            there.reshape(-1, 16)[:, wanted] = data.reshape(-1, 16)[:, wanted]

    transfer = Transfer("tma", group, read, write, copy_cycles(size), f"{size} bytes to global memory", leaves=True)
    groups_of(group, BULK).add(1 << lane, transfer)
    group.machine.start(transfer)


def _into(group: Group, made: Form, target: int, start: int, size: int, barrier: int, mask: int) -> None:
    """global or shared::cta -> shared memory of one CTA or, multicast, of several."""
    view, cta = group.machine.memory.view, group.cta
    check_bulk(group, made.name, target, start, size)
    view(cta, made.source, start, size, write=False)
    target, barrier = shared_address(made.destination, target), shared_address(made.destination, barrier)
    places = destinations(group, made.name, made.destination, target, barrier, mask if made.multicast else None)
    for there, _ in places:
        view(cta, made.destination, there, size, write=True)
    taken: list[Bytes] = []

    def read() -> None:
        taken.append(view(cta, made.source, start, size, write=False).copy())
        group.machine.accesses(cta, made.source, start, size, "read")

    def fill(there: Bytes) -> None:
        if made.operation is None:
            there[...] = taken[0]
        else:
            there[...] = reduced(made.operation, made.type, there, taken[0])

    how: How = "reduce" if made.operation is not None else "write"
    start_into(group, "tma", made.name, made.destination, places, size, size, read, fill, how, made.source != "global")


def start_into(
    group: Group,
    unit: str,
    name: str,
    space: str,
    places: Sequence[tuple[int, int]],
    size: int,
    told: int,
    read: Callable[[], None],
    fill: Callable[[Bytes], None],
    how: How = "write",
    own_source: bool = False,
) -> None:
    """Starts a copy into shared memory. places: (shared address, address of the mbarrier that is told of it). size:
    bytes there; told: bytes that the mbarriers are told. fill: writes them, once for each place. own_source: it reads
    shared memory of the CTA that starts it."""
    machine, cta = group.machine, group.cta
    table = barriers_of(machine, cta)
    for _, barrier in places:
        live = table.live.get(barrier)
        if live is not None:
            group.touch(live)

    def write(time: int) -> None:
        for target, barrier in places:
            table.spare(target, size, name)
            fill(machine.memory.view(cta, space, target, size, write=True))
            machine.accesses(cta, space, target, size, how)
            signal(table, cta, barrier, told, name, time)

    elsewhere = not own_source and is_elsewhere(cta, [address for place in places for address in place])
    cycles, what = copy_cycles(size * len(places)), f"{told} bytes"
    machine.start(Transfer(unit, group, read, write, cycles, what, elsewhere=elsewhere))


def is_elsewhere(cta: Cta, addresses: Iterable[int]) -> bool:
    """Whether none of these shared addresses is in a CTA's own memory."""
    return all(address >> RANK_SHIFT != cta.rank for address in addresses)


def signal(table: Barriers, cta: Cta, address: int, size: int, name: str, time: int) -> None:
    """complete_tx on the barrier at a shared address, at the end of asynchronous work."""
    table.find(cta, address, f"completion of {name}").complete_tx(size, time)


def destinations(
    group: Group, name: str, space: str, target: int, barrier: int, mask: int | None, pair: bool = False
) -> list[tuple[int, int]]:
    """(shared address, mbarrier address) of each copy. mask: the CTAs of a multicast. pair: ``.cta_group::2``, where
    the mbarrier may be in the other CTA of the pair: in the one of even or odd rank, as ``barrier`` is."""
    if mask is None:
        wanted, given = target >> RANK_SHIFT, barrier >> RANK_SHIFT
        if wanted != given and not (pair and wanted ^ 1 == given):
            raise group.fault(
                "E1152",
                f"{name} to shared memory of the CTA of rank {wanted} with an mbarrier in that of rank {given}",
                "the mbarrier must be in the CTA that gets the data"
                + (", or in the other one of its pair" if pair else ""),
            )
        return [(target, barrier)]
    count = len(group.cta.cluster.ctas)
    if not mask or mask >> count:
        raise group.fault(
            "E1152",
            f"{name} with the multicast mask {mask:#x}, in a cluster of {count} CTA{'' if count == 1 else 's'}",
        )
    places = []
    for rank in range(count):
        if mask >> rank & 1:
            told = (rank & ~1 | barrier >> RANK_SHIFT & 1) if pair else rank
            places.append((rank << RANK_SHIFT | target & _OFFSET, told << RANK_SHIFT | barrier & _OFFSET))
    return places


def reduced(operation: str, type: str, old: Bytes, new: Bytes) -> Bytes:
    """The bytes after a reduction of two arrays of elements."""
    storage = STORAGE[type]
    return reduce(operation, type, old.view(storage), new.view(storage)).view(np.uint8)


def check_bulk(group: Group, name: str, target: int, source: int, size: int) -> None:
    """The alignment and size that bulk copies want."""
    for what, number in (("destination address", target), ("source address", source)):
        if number % 16:
            raise group.fault("E1150", f"{name}: the {what} {number:#x} is not a multiple of 16 ({size} bytes)")
    if size % 16:
        raise group.fault("E1150", f"{name} of {size} bytes; the size must be a multiple of 16")


@handles("cp.async.bulk.prefetch")
def prefetch(group: Group) -> None:
    """No effect, but a prefetch of what is not there is an error all the same."""
    source, size, *_ = group.instruction.operands
    for start, count in zip(group.values(source, "u64"), group.values(size, "u32"), strict=True):
        check_bulk(group, "cp.async.bulk.prefetch", 0, start, count)
        group.machine.memory.view(group.cta, "global", start, count, write=False)


@handles("cp.async.bulk.commit_group")
def commit_group(group: Group) -> None:
    groups_of(group, BULK).commit(group.mask)


@handles("cp.async.bulk.wait_group")
def wait_group(group: Group) -> Wait | None:
    reads = group.instruction.opcode.endswith(".read")
    return wait_for(group, BULK, kept(group.instruction), reads=reads)


def kept(instruction: Instruction) -> int:
    """N of ``wait_group N``."""
    operand: Operand = instruction.operands[0]
    assert isinstance(operand, Immediate)
    return operand.value
