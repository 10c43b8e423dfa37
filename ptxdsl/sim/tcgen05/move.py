"""``tcgen05.ld``, ``.st``, ``.cp`` and ``.shift``: data into, out of and within tensor memory.

``ld`` and ``st`` are executed by a warp, for its own quarter of the lanes; ``cp`` and ``shift`` by a thread, and
carried out in the order of the CTA's pipe. With ``.cta_group::2`` each CTA of the pair copies from its own shared
memory, at the same offset.

Source: PTX ISA, "tcgen05.ld", "tcgen05.st", "tcgen05.cp", "tcgen05.shift", "Packing and Unpacking", "Data Movement
Shape", "Optional Decompression". The ISA does not say in words where the four rows of ``.4x256b`` go: CUTLASS has one
to each partition, to the address's lane and those 32, 64 and 96 beyond. Nor which way is down: towards lane 0, as
``.ashift`` does (seen on the card), so that the last lane of a partition is what ``.4x256b`` renews.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Immediate, Instruction, Operand, Vector
from ptxdsl.record import dataclass
from ptxdsl.sim.host import Fault, Group, handles
from ptxdsl.sim.layout import RANK_SHIFT
from ptxdsl.sim.machine.timeline import COPY_BYTES_PER_CYCLE
from ptxdsl.sim.matrix.wgmma_descriptor import CHUNK, elements
from ptxdsl.sim.tcgen05.descriptor import BAD_SHARED, decode_shared
from ptxdsl.sim.tcgen05.form import misformed
from ptxdsl.sim.tcgen05.layout import (
    CONTAINER_SHIFT,
    LANES_OF_WARP,
    MOST_REGISTERS,
    MOVEMENTS,
    REPETITIONS,
    movement,
    tile,
    unpack_shared,
)
from ptxdsl.sim.tcgen05.mma import shift_down
from ptxdsl.sim.tcgen05.sync import Work, ctas_of, whole_warp
from ptxdsl.sim.tcgen05.tensor_memory import (
    BAD_ADDRESS,
    BAD_LANES,
    LANES,
    Access,
    Region,
    column_of,
    lane_of,
    lanes_mask,
    require_lanes_of_warp,
    tensor_memory,
)
from ptxdsl.sim.watch import How

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.matrix.wgmma_descriptor import Tile

Array = npt.NDArray[Any]


# ld, st


@dataclass(frozen=True)
class Form:
    """What an opcode of ``ld`` or ``st`` says. packed: two columns a register. reduce: of ``ld.red``."""

    shape: str
    repeats: int
    packed: bool
    reduce: str = ""
    type: str = "b32"
    absolute: bool = False
    nan: bool = False

    @property
    def registers(self) -> int:
        return MOVEMENTS[self.shape].registers * self.repeats

    @property
    def columns(self) -> int:
        return MOVEMENTS[self.shape].columns * self.repeats * (2 if self.packed else 1)


@lru_cache(1024)
def parse(opcode: str) -> Form | str:
    """The meaning of an opcode, or what of it is not supported."""
    parts = opcode.split(".")
    name, rest = ".".join(parts[:2]), parts[2:]
    shape = next((part for part in rest if part in MOVEMENTS), "")
    repeats = next((REPETITIONS[part] for part in rest if part in REPETITIONS), 0)
    if not shape or not repeats or MOVEMENTS[shape].registers * repeats > MOST_REGISTERS:
        return f"this form of {name}"
    pack = "pack::16b" if name == "tcgen05.ld" else "unpack::16b"
    reduce = next((part for part in rest if part in ("min", "max")), "")
    types = ("f32", "u32", "s32") if reduce else ("b32",)
    type = next((part for part in rest if part in types), "")
    known = {"sync", "aligned", shape, f"x{repeats}", type}
    if "red" in rest:
        known |= {"red", reduce, *(("abs", "NaN") if type == "f32" else ())}
    else:
        known.add(pack)
    other = next((part for part in rest if part not in known), None)
    if (
        other
        or not type
        or ("red" in rest) != bool(reduce)
        or (reduce and (repeats < 2 or shape not in ("32x32b", "16x32bx2")))
    ):
        return f"{name} with .{other}" if other else f"this form of {name}"
    return Form(shape, repeats, pack in rest, reduce, type, "abs" in rest, "NaN" in rest)


def unsupported(instruction: Instruction) -> str | None:
    form = parse(instruction.opcode)
    if isinstance(form, str):
        return form
    wrong = misformed(instruction)
    if wrong is not None:
        return wrong
    vector = instruction.operands[0 if instruction.parts[1] == "ld" else -1]
    count = len(_registers(vector))
    return f"{count} registers, not {form.registers}" if count != form.registers else None


def _registers(operand: Operand) -> Sequence[Operand]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def load(words: Array, form: Form, lane: int, column: int, split: int) -> Array:
    """(registers, 32) words that ``ld`` gives from tensor memory."""
    lanes, columns = movement(form.shape, form.repeats, form.packed, split)
    values: Array = words[lanes + lane, columns + column]
    if form.packed:
        values = values & np.uint32(0xFFFF) | words[lanes + lane, columns + column + 1] << np.uint32(16)
    return values


def store(words: Array, form: Form, lane: int, column: int, split: int, values: Array) -> None:
    """Puts the (registers, 32) words of ``st`` into tensor memory. Unpacked halves have zeros above them."""
    lanes, columns = movement(form.shape, form.repeats, form.packed, split)
    if form.packed:
        words[lanes + lane, columns + column] = values & np.uint32(0xFFFF)
        words[lanes + lane, columns + column + 1] = values >> np.uint32(16)
    else:
        words[lanes + lane, columns + column] = values


def reduction(form: Form, values: Array) -> Array:
    """What ``ld.red`` gives each thread beside its registers: (32,) words."""
    typed: Array = values.view({"f32": np.float32, "u32": np.uint32, "s32": np.int32}[form.type])
    if form.type != "f32":
        found: Array = typed.min(axis=0) if form.reduce == "min" else typed.max(axis=0)
        return found.view(np.uint32)
    if form.absolute:
        typed = np.abs(typed)
    # fmin and fmax pass NaN by, as min and max of PTX do.
    with np.errstate(invalid="ignore"):
        found = np.fmin.reduce(typed, axis=0) if form.reduce == "min" else np.fmax.reduce(typed, axis=0)
    missing = np.isnan(typed).any(axis=0) if form.nan else np.isnan(found)
    return np.where(missing, np.uint32(0x7FFF_FFFF), found.view(np.uint32))


def _regions(form: Form, lane: int, column: int, split: int) -> list[Region]:
    lanes = lanes_mask(lane, MOVEMENTS[form.shape].lanes)
    starts = (column, column + split) if form.shape == "16x32bx2" else (column,)
    return [Region(lanes, start, start + form.columns) for start in starts]


def _place(group: Group, form: Form, address: Operand, split: int, writes: bool) -> tuple[int, int]:
    """Lane and column of an access by a warp, checked and remembered until the wait."""
    where = group.uniform(address, "u32")
    lane, column = lane_of(where), column_of(where)
    require_lanes_of_warp(group.warp.index, lane, MOVEMENTS[form.shape].lanes, group.instruction.opcode)
    memory = tensor_memory(group.machine, group.cta)
    accesses = [Access(r, writes, group.instruction, group.warp) for r in _regions(form, lane, column, split)]
    for access in accesses:
        memory.require(access.region, group.instruction.opcode)
    memory.move(accesses)
    if group.machine.watch is not None:
        how: How = "write" if writes else "read"
        for region in (access.region for access in accesses):
            group.machine.watch.tensor(group.cta, region.lanes, region.first, region.end, how)
    return lane, column


def _split(operands: Sequence[Operand]) -> int:
    return operands[0].value if operands and isinstance(operands[0], Immediate) else 0


@handles("tcgen05.ld", check=unsupported)
def execute_load(group: Group) -> None:
    whole_warp(group)
    form = parse(group.instruction.opcode)
    assert isinstance(form, Form)
    destination, *operands = group.instruction.operands
    reduced = operands.pop(0) if form.reduce else None
    address, *rest = operands
    split = _split(rest)
    lane, column = _place(group, form, address, split, writes=False)
    values = load(tensor_memory(group.machine, group.cta).words, form, lane, column, split)
    group.write_many(_registers(destination), values, "b32")
    if reduced is not None:
        group.write(reduced, reduction(form, values), "b32")


@handles("tcgen05.st", check=unsupported)
def execute_store(group: Group) -> None:
    whole_warp(group)
    form = parse(group.instruction.opcode)
    assert isinstance(form, Form)
    address, *rest, source = group.instruction.operands
    split = _split(rest)
    values = group.read_many(_registers(source), "b32")
    lane, column = _place(group, form, address, split, writes=True)
    store(tensor_memory(group.machine, group.cta).words, form, lane, column, split, values)


# cp


@dataclass(frozen=True)
class CopyShape:
    """rows, octets: of the source in shared memory. lanes: of each row, the lanes after the address's that get it."""

    rows: int
    octets: int
    lanes: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> int:
        return self.octets // 4


def _spread(rows: int, *starts: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(start + row for start in starts) for row in range(rows))


COPY_SHAPES: dict[str, CopyShape] = {
    "128x256b": CopyShape(128, 32, _spread(128, 0)),
    "128x128b": CopyShape(128, 16, _spread(128, 0)),
    "4x256b": CopyShape(4, 32, tuple((LANES_OF_WARP * row,) for row in range(4))),
    # Warps 0 and 2 get the first half of the rows, 1 and 3 the second.
    "64x128b.warpx2::02_13": CopyShape(64, 16, _spread(64, 0, 64)),
    # Warps 0 and 1 get the first half, 2 and 3 the second.
    "64x128b.warpx2::01_23": CopyShape(64, 16, _spread(32, 0, 32) + _spread(32, 64, 96)),
    "32x128b.warpx4": CopyShape(32, 16, _spread(32, 0, 32, 64, 96)),
}
# .dst_fmt.src_fmt -> bits of an element in shared memory
COPY_FORMATS = {"": 0, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}


@lru_cache(1024)
def parse_copy(opcode: str) -> tuple[CopyShape, int] | str:
    """Shape and source bits (0: as it is) of a ``tcgen05.cp``, or what of it is not supported."""
    parts = [part for part in opcode.split(".")[2:] if not part.startswith("cta_group::")]
    formats = ".".join(part for part in parts if part.startswith("b"))
    shape = ".".join(sorted(part for part in parts if not part.startswith("b")))
    if shape not in COPY_SHAPES or formats not in COPY_FORMATS:
        return f"this form of tcgen05.cp (.{'.'.join(parts)})"
    return COPY_SHAPES[shape], COPY_FORMATS[formats]


def copy_unsupported(instruction: Instruction) -> str | None:
    found = parse_copy(instruction.opcode)
    return found if isinstance(found, str) else misformed(instruction)


def copied_words(memory: Array, place: Tile, bits: int) -> Array:
    """(rows, columns) words of ``cp`` from the bytes of its tile. bits: 4 or 6, elements that become bytes, or 0."""
    octets = elements(place, memory)
    octets = octets.reshape(octets.shape[0], -1)
    if bits:
        octets = unpack_shared(octets, bits) << np.uint8(CONTAINER_SHIFT[bits])
    return np.ascontiguousarray(octets).view(np.uint32)


class Copy(Work):
    """One ``tcgen05.cp``."""

    def __init__(
        self, group: Group, ctas: tuple[Cta, ...], address: int, descriptor: int, shape: CopyShape, bits: int
    ) -> None:
        super().__init__(group, shape.rows * shape.octets // COPY_BYTES_PER_CYCLE)
        self.ctas = ctas
        self.shape = shape
        self.bits = bits
        self.source = decode_shared(descriptor, "the source")
        if self.source.absolute:
            help = "matrices of products with K = 96 alone have one"
            raise Fault(BAD_SHARED, "the source's leading dimension is an absolute address (bit 52)", help)
        lane, self.column = lane_of(address), column_of(address)
        self.lanes = np.array(shape.lanes) + lane
        last = int(self.lanes.max())
        if last >= LANES:
            raise Fault(
                BAD_ADDRESS,
                f"{self.origin.opcode} at lane {lane} reaches lane {last}",
                f"this shape begins at lane {'0 to 31' if shape.rows == 4 else '0'}",
            )
        mask = sum(1 << int(at) for at in self.lanes.reshape(-1))
        for cta in ctas:
            region = Region(mask, self.column, self.column + shape.columns)
            self.touches(cta, Access(region, True, self.origin))

    def carry_out(self) -> None:
        place = tile(self.source, self.shape.rows, self.shape.octets, 8)
        for cta in self.ctas:
            address = (cta.rank << RANK_SHIFT) + self.source.address + place.offset
            memory = self.machine.memory.view(cta, "shared::cta", address, place.size, write=False)
            self.machine.accesses(cta, "shared::cta", address + CHUNK * place.chunks.reshape(-1), CHUNK, "read")
            words = copied_words(memory, place, self.bits)
            target = tensor_memory(self.machine, cta).words[:, self.column : self.column + self.shape.columns]
            for copy in range(self.lanes.shape[1]):
                target[self.lanes[:, copy]] = words


@handles("tcgen05.cp", check=copy_unsupported)
def execute_copy(group: Group) -> None:
    found = parse_copy(group.instruction.opcode)
    assert not isinstance(found, str)
    ctas = ctas_of(group)
    place, source = group.instruction.operands
    for address, descriptor in zip(group.values(place, "u32"), group.values(source, "b64"), strict=True):
        Copy(group, ctas, address, descriptor, *found).issue()


# shift


def _shift_unsupported(instruction: Instruction) -> str | None:
    known = {"tcgen05", "shift", "down", "cta_group::1", "cta_group::2"}
    return misformed(instruction) if known.issuperset(instruction.parts) else "this form of tcgen05.shift"


class Shift(Work):
    """One ``tcgen05.shift.down``: 8 columns of one partition of 32 lanes."""

    COLUMNS = 8

    def __init__(self, group: Group, ctas: tuple[Cta, ...], address: int) -> None:
        super().__init__(group, LANES_OF_WARP * self.COLUMNS * 4 // COPY_BYTES_PER_CYCLE)
        self.ctas = ctas
        self.lane, self.column = lane_of(address), column_of(address)
        if self.lane % LANES_OF_WARP or self.lane >= LANES:
            raise Fault(BAD_LANES, f"tcgen05.shift at lane {self.lane}", "the lane must be 0, 32, 64 or 96")
        region = Region(lanes_mask(self.lane, LANES_OF_WARP), self.column, self.column + self.COLUMNS)
        for cta in ctas:
            self.touches(cta, Access(region, True, self.origin))

    def carry_out(self) -> None:
        for cta in self.ctas:
            words = tensor_memory(self.machine, cta).words
            shift_down(words, self.lane, LANES_OF_WARP, self.column, self.COLUMNS)


@handles("tcgen05.shift", check=_shift_unsupported)
def execute_shift(group: Group) -> None:
    ctas = ctas_of(group)
    for address in group.values(group.instruction.operands[0], "u32"):
        Shift(group, ctas, address).issue()
