"""Tensor copies: ``cp.async.bulk.tensor`` and its reducing and prefetching forms, in tile mode.

Source: PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch.tensor". The tensor map
is read when the instruction is executed; what it must be like is checked then, as are all addresses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction, Operand, TensorAddress
from ptxdsl.record import dataclass, replace
from ptxdsl.sim.barriers.mbarrier import shared_address
from ptxdsl.sim.copies.bulk import MULTICAST, destinations, start_into
from ptxdsl.sim.copies.reductions import OPERATIONS, STORAGE, reduce
from ptxdsl.sim.copies.tensor_description import Description
from ptxdsl.sim.copies.tensor_map_bytes import TENSOR_MAP_BYTES, decode
from ptxdsl.sim.copies.tile import (
    SHARED_ALIGNMENT,
    Reduce,
    block_at,
    check_start,
    load,
    put,
    runs,
    store,
    take,
    tile_of,
)
from ptxdsl.sim.copies.transfer import BULK, Transfer, groups_of
from ptxdsl.sim.host import Fault, Group, handles
from ptxdsl.sim.machine.timeline import copy_cycles
from ptxdsl.sim.machine.warp import lane_numbers
from ptxdsl.sim.watch import How

Bytes = npt.NDArray[np.uint8]

GATHER, SCATTER = "tile::gather4", "tile::scatter4"
_MAP_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Form:
    """name: for messages. rank: that the instruction says. four: gather4 or scatter4. pair: ``.cta_group::2``."""

    name: str
    rank: int
    destination: str
    multicast: bool
    four: bool
    pair: bool
    operation: str | None


@lru_cache(256)
def form(opcode: str) -> Form:
    parts = opcode.split(".")
    start = parts.index("tensor")
    spaces = [part for part in parts[start:] if part == "global" or part.startswith("shared")]
    return Form(
        ".".join(parts[: start + 1]),
        next(int(part[0]) for part in parts[start:] if part in ("1d", "2d", "3d", "4d", "5d")),
        spaces[0] if spaces else "",
        MULTICAST in parts,
        GATHER in parts or SCATTER in parts,
        "cta_group::2" in parts,
        next((part for part in parts[start:] if part in OPERATIONS), None) if parts[1] == "reduce" else None,
    )


def _unsupported(instruction: Instruction) -> str | None:
    if any(part.startswith("im2col") for part in instruction.parts):
        return f"{instruction.opcode}: tensor copies in im2col mode are not simulated, tile mode is"
    return None


@handles("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", check=_unsupported)
def copy(group: Group) -> None:
    made = form(group.instruction.opcode)
    if made.destination == "global":
        tensor, source, *_ = group.instruction.operands
        starts = group.values(source, "u64")
        for lane, (said, at), start in zip(
            lane_numbers(group.mask), _tensors(group, made, tensor), starts, strict=True
        ):
            group.only(1 << lane)
            _out(group, made, lane, said, at, start)
        return
    target, tensor, barrier, *rest = group.instruction.operands
    masks = group.values(rest[0], "u16") if made.multicast else [0] * group.mask.bit_count()
    starts, barriers = group.values(target, "u64"), group.values(barrier, "u64")
    columns = zip(lane_numbers(group.mask), _tensors(group, made, tensor), starts, barriers, masks, strict=True)
    for lane, (said, at), start, told, mask in columns:
        group.only(1 << lane)
        _into(group, made, said, at, start, told, mask)


@handles("cp.async.bulk.prefetch.tensor", check=_unsupported)
def prefetch(group: Group) -> None:
    """No effect; map and coordinates must be right all the same."""
    made = form(group.instruction.opcode)
    for said, at in _tensors(group, made, group.instruction.operands[0]):
        for part, place in _parts(made, said, at):
            _reach(group, part, place, write=False)


def _into(group: Group, made: Form, said: Description, at: list[int], target: int, barrier: int, mask: int) -> None:
    """global -> shared memory."""
    parts = _parts(made, said, at)
    for part, place in parts:
        _reach(group, part, place, write=False)
    target, barrier = shared_address(made.destination, target), shared_address(made.destination, barrier)
    _check_aligned(group, made, target)
    places = destinations(
        group, made.name, made.destination, target, barrier, mask if made.multicast else None, made.pair
    )
    whole = _whole(made, said)
    size = tile_of(whole).size
    memory, cta = group.machine.memory, group.cta
    for there, _ in places:
        memory.view(cta, made.destination, there, size, write=True)
    taken: list[Bytes] = []

    def look(address: int, count: int) -> Bytes:
        return memory.view(cta, "global", address, count, write=False)

    def read() -> None:
        rows = [load(part, place, look) for part, place in parts]
        _tell(group, parts, "read")
        taken.append(rows[0] if len(rows) == 1 else np.concatenate(rows))

    def fill(there: Bytes) -> None:
        put(whole, there, target, taken[0])

    start_into(group, "tma", made.name, made.destination, places, size, tile_of(whole).transferred, read, fill)


def _out(group: Group, made: Form, lane: int, said: Description, at: list[int], start: int) -> None:
    """shared::cta -> global, counted in the lane's bulk groups."""
    parts = _parts(made, said, at)
    for part, place in parts:
        _reach(group, part, place, write=True)
    start = shared_address("shared::cta", start)
    _check_aligned(group, made, start)
    whole = _whole(made, said)
    tile = tile_of(whole)
    memory, cta = group.machine.memory, group.cta
    memory.view(cta, "shared::cta", start, tile.size, write=False)
    reducing = _reduction(made.operation, said) if made.operation is not None else None
    taken: list[Bytes] = []

    def change(address: int, count: int) -> Bytes:
        return memory.view(cta, "global", address, count, write=True)

    def read() -> None:
        taken.append(take(whole, memory.view(cta, "shared::cta", start, tile.size, write=False), start))
        group.machine.accesses(cta, "shared::cta", start, tile.size, "read")

    def write(time: int) -> None:
        rows = len(taken[0]) // len(parts)
        _tell(group, parts, "write" if reducing is None else "reduce")
        for number, (part, place) in enumerate(parts):
            store(part, place, taken[0][number * rows : (number + 1) * rows], change, reducing)

    what = f"{tile.transferred} bytes to global memory"
    transfer = Transfer("tma", group, read, write, copy_cycles(tile.size), what, leaves=True)
    groups_of(group, BULK).add(1 << lane, transfer)
    group.machine.start(transfer)


def _tell(group: Group, parts: list[tuple[Description, list[int]]], how: How) -> None:
    """Tells the watch of the global memory that a copy moves."""
    if group.machine.watch is None:
        return
    for part, place in parts:
        starts, size = runs(part, place, how != "read")
        if size:
            group.machine.accesses(group.cta, "global", starts, size, how)


def _check_aligned(group: Group, made: Form, address: int) -> None:
    if address % SHARED_ALIGNMENT:
        raise group.fault(
            "E1154",
            f"{made.name}: the tile's shared address {address:#x} is not a multiple of {SHARED_ALIGNMENT}",
            f"declare the shared memory with an alignment of {SHARED_ALIGNMENT}, of 1024 for swizzled tiles",
        )


def _reach(group: Group, said: Description, at: list[int], write: bool) -> None:
    """Whether the tile's place in the tensor is global memory of the program's."""
    check_start(said, at, write)
    block = block_at(said, at, write)
    if block is not None:
        group.machine.memory.view(group.cta, "global", block.start, block.size, write=write)


def _parts(made: Form, said: Description, at: list[int]) -> list[tuple[Description, list[int]]]:
    """The boxes of a copy and their coordinates: one, or the four rows of gather4 and scatter4."""
    return [(said, [at[0], row]) for row in at[1:]] if made.four else [(said, at)]


def _whole(made: Form, said: Description) -> Description:
    """The tile in shared memory."""
    return replace(said, box=(said.box[0], 4)) if made.four else said


def _reduction(operation: str, said: Description) -> Reduce:
    """Raises Fault where the element type has no such reduction."""
    name = said.element.name.removesuffix(".ftz")
    type = "f32" if name == "tf32" else name
    known = {
        "add": ("u32", "s32", "u64", "f16", "bf16", "f32"),
        "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        "inc": ("u32",),
        "dec": ("u32",),
    }.get(operation, tuple(name for name, storage in STORAGE.items() if storage.itemsize in (4, 8)))
    if type not in known:
        raise Fault(
            "E1153",
            f"a reduction '{operation}' of a tensor of {said.element.name}",
            f"'{operation}' has elements of " + ", ".join(known),
        )
    storage = STORAGE[type]
    return lambda old, new: reduce(operation, type, old.view(storage), new.view(storage)).view(np.uint8)


# Operands


def _tensors(group: Group, made: Form, operand: Operand) -> list[tuple[Description, list[int]]]:
    """The map and the coordinates of each active lane."""
    assert isinstance(operand, TensorAddress)
    wanted = 5 if made.four else made.rank
    if len(operand.coordinates) != wanted:
        raise group.fault("E1153", f"{made.name} of {made.rank} dimensions with {len(operand.coordinates)} coordinates")
    maps = [tensor_map(group, address, made) for address in group.values(operand.map, "u64")]
    columns = [group.values(coordinate, "s32") for coordinate in operand.coordinates]
    return [(said, list(at)) for said, at in zip(maps, zip(*columns, strict=True), strict=True)]


def tensor_map(group: Group, address: int, made: Form) -> Description:
    """What the tensor map at an address says, fit for the instruction."""
    memory = group.machine.memory
    data = memory.view(group.cta, "generic", address, TENSOR_MAP_BYTES, write=False, align=_MAP_ALIGNMENT)
    said = described(data.tobytes())
    if said is None:
        raise group.fault(
            "E1153",
            f"{made.name}: the {TENSOR_MAP_BYTES} bytes at address {address:#x} are not a tensor map",
            "give the kernel a TensorMap as a parameter, or its address in global memory",
        )
    if said.rank != made.rank:
        raise group.fault("E1153", f"{made.name} of {made.rank} dimensions with a tensor map of {said.rank}")
    if made.four and (said.rank != 2 or said.box[1] != 1 or said.interleave != "none"):
        raise group.fault(
            "E1153",
            f"{made.name} of four rows needs a tensor map of 2 dimensions with a box of one row and no interleave; "
            f"this one has a box of {' x '.join(map(str, said.box))} and interleave {said.interleave}",
        )
    return said


@lru_cache(256)
def described(data: bytes) -> Description | None:
    """None: the bytes cannot be a tensor map that the card takes."""
    try:
        said = decode(data)
        usable: Any = said.box[0] * said.element.bits % 128 == 0 and said.swizzle != "96B"
    except ValueError:
        return None
    return said if usable else None
