"""``wmma``: matrices loaded from memory to fragments, multiplied, and stored.

How a fragment holds its matrix is left open by the ISA, but for the number of its registers. Here A, and B transposed,
lie as in ``mma``'s A; accumulators as in ``mma``'s, so that f16 and f32 have the same element at the same place of a
fragment. A fragment with more room than its matrix has elements holds it several times; the first copy counts.

Source: PTX ISA, "Matrix multiply-accumulate operation using wmma instructions".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction
from ptxdsl.record import dataclass
from ptxdsl.sim import numbers
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.machine.memory import AccessFault
from ptxdsl.sim.matrix import arithmetic as matrix_arithmetic
from ptxdsl.sim.matrix import fragments as matrix_layout
from ptxdsl.sim.matrix.fragments import LANES, Fragment
from ptxdsl.sim.matrix.mma import multiply, registers_of, require_all_lanes
from ptxdsl.sim.matrix.mma_form import Mma
from ptxdsl.sim.matrix.types import TYPES, ElementType

Array = npt.NDArray[Any]
Shape = tuple[int, int, int]

_LARGE = ((16, 16, 16), (8, 32, 16), (32, 8, 16))

# Type of A and B -> shapes, types of C and D.
FAMILIES: dict[str, tuple[tuple[Shape, ...], tuple[str, ...]]] = {
    "f16": (_LARGE, ("f16", "f32")),
    "bf16": (_LARGE, ("f32",)),
    "s8": (_LARGE, ("s32",)),
    "u8": (_LARGE, ("s32",)),
    "tf32": (((16, 16, 8),), ("f32",)),
    "f64": (((8, 8, 4),), ("f64",)),
    "s4": (((8, 8, 32),), ("s32",)),
    "u4": (((8, 8, 32),), ("s32",)),
    "b1": (((8, 8, 128),), ("s32",)),
}
ACCUMULATOR_BITS = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}
F16_REGISTERS = 8  # of A and B, whatever their shape


@dataclass(frozen=True, eq=False)
class Transfer:
    """A ``wmma.load`` or ``wmma.store`` of rows x columns elements of so many bits. by_row: in row-major memory."""

    rows: int
    columns: int
    bits: int
    fragment: Fragment
    by_row: bool
    space: str

    @property
    def word(self) -> str:
        return "b64" if self.bits == 64 else "b32"

    @property
    def line(self) -> int:
        """Elements that follow each other in memory."""
        return self.columns if self.by_row else self.rows

    @property
    def lines(self) -> int:
        return self.rows if self.by_row else self.columns


@lru_cache(None)
def _multiplicand(operand: str, shape: Shape, type: str) -> Fragment:
    m, n, k = shape
    each = TYPES[type].per_register
    fragment = matrix_layout.multiplicand_a(m if operand == "a" else n, k, each)
    rows, columns = fragment.rows, fragment.columns
    if type == "f16":
        copies = F16_REGISTERS // fragment.registers
        rows, columns = np.tile(rows, (copies, 1, 1)), np.tile(columns, (copies, 1, 1))
    return (
        matrix_layout.fragment(rows, columns, (m, k))
        if operand == "a"
        else matrix_layout.fragment(columns, rows, (k, n))
    )


def _accumulator(shape: Shape, type: str) -> Fragment:
    return matrix_layout.accumulator(shape[0], shape[1], 2 if type == "f16" else 1)


def _shape(parts: list[str]) -> Shape | None:
    for part in parts:
        match = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", part)
        if match:
            return int(match[1]), int(match[2]), int(match[3])
    return None


@lru_cache(1024)
def parse_transfer(opcode: str) -> Transfer | str:
    """The meaning of a ``wmma.load`` or ``wmma.store`` opcode, or what of it is not supported."""
    parts = opcode.split(".")
    operand, type = parts[2], parts[-1]
    shape = _shape(parts)
    layouts = [part for part in parts if part in ("row", "col")]
    if shape is None or len(layouts) != 1 or operand not in ("a", "b", "c", "d"):
        return "this form of wmma"
    m, n, k = shape
    if operand in "ab":
        exists = type in FAMILIES and shape in FAMILIES[type][0]
    else:
        exists = any(shape in shapes and type in results for shapes, results in FAMILIES.values())
    if not exists:
        return f"wmma of {type} in the shape m{m}n{n}k{k} for {operand.upper()}"
    if operand in "ab":
        rows, columns, bits = (m, k, TYPES[type].bits) if operand == "a" else (k, n, TYPES[type].bits)
        fragment = _multiplicand(operand, shape, type)
    else:
        rows, columns, bits = m, n, ACCUMULATOR_BITS[type]
        fragment = _accumulator(shape, type)
    if bits < 8 and layouts[0] != {"a": "row", "b": "col"}[operand]:
        return f"wmma of {type} with the layout {layouts[0]} for {operand.upper()}"
    space = next((part for part in parts if part.startswith(("global", "shared"))), "generic")
    return Transfer(rows, columns, bits, fragment, layouts[0] == "row", space)


@lru_cache(1024)
def parse_mma(opcode: str) -> Mma | str:
    """The meaning of a ``wmma.mma`` opcode, or what of it is not supported."""
    parts = opcode.split(".")[2:]
    shape = _shape(parts)
    operation = "xor" if "xor" in parts else "and" if "and" in parts else "dot"
    known = ("sync", "aligned", "row", "col", "xor", "and", "popc", "satfinite", "rn", "rz", "rm", "rp")
    types = [part for part in parts if part not in known and not part.startswith("m")]
    if len(types) == 2:  # of D and C; those of A and B are f16
        types = [types[0], "f16", "f16", types[1]]
    if shape is None or len(types) != 4:
        return "this form of wmma.mma"
    d_type, a_name, b_name, c_type = types
    shapes, results = FAMILIES.get(a_name, ((), ()))
    if a_name != b_name or shape not in shapes or d_type not in results or c_type not in results:
        return f"wmma.mma of {a_name} and {b_name} with {c_type} and {d_type}"
    a_type: ElementType = TYPES[a_name]
    a, b = _multiplicand("a", shape, a_name), _multiplicand("b", shape, a_name)
    return Mma(
        shape,
        a_type,
        a_type,
        c_type,
        d_type,
        a,
        b,
        _accumulator(shape, c_type),
        _accumulator(shape, d_type),
        b_after_a=b.to_matrix + a.from_matrix.size,
        operation=operation,
        saturate="satfinite" in parts,
        rounding=next((part for part in parts if part in ("rz", "rm", "rp")), "rn"),
    )


def load(transfer: Transfer, lines: Array) -> Array:
    """Registers (registers, lanes) from a matrix's lines (lines, bytes)."""
    bits = transfer.bits
    if bits == 4:
        elements = numbers.unpack_nibbles(lines)
    elif bits == 1:
        elements = np.unpackbits(lines, axis=1, bitorder="little")
    else:
        elements = np.ascontiguousarray(lines).view(f"u{bits // 8}")
    matrix = elements if transfer.by_row else elements.T
    flat = matrix.reshape(-1).take(transfer.fragment.from_matrix)
    if bits == 4:
        flat = numbers.pack_nibbles(flat)
    elif bits == 1:
        flat = np.packbits(flat, bitorder="little")
    return flat.view(np.uint64 if bits == 64 else np.uint32).reshape(-1, LANES)


def store(transfer: Transfer, registers: Array) -> Array:
    """A matrix's lines (lines, bytes) from registers (registers, lanes)."""
    elements = np.ascontiguousarray(registers).reshape(-1).view(f"u{transfer.bits // 8}")
    matrix = elements.take(transfer.fragment.to_matrix)
    lines: Array = np.ascontiguousarray(matrix if transfer.by_row else matrix.T)
    return lines.view(np.uint8)


def unsupported_transfer(instruction: Instruction) -> str | None:
    transfer = parse_transfer(instruction.opcode)
    if isinstance(transfer, str):
        return f"{transfer} is not supported"
    given = len(registers_of(instruction.operands[0 if instruction.parts[1] == "load" else 1]))
    wanted = transfer.fragment.registers
    return None if given == wanted else f"this form has {wanted} registers, not {given}"


def unsupported_mma(instruction: Instruction) -> str | None:
    mma = parse_mma(instruction.opcode)
    if isinstance(mma, str):
        return f"{mma} is not supported"
    wanted = (mma.d.registers, mma.a.registers, mma.b.registers, mma.c.registers)
    given = tuple(len(registers_of(operand)) for operand in instruction.operands)
    return None if given == wanted else f"this wmma.mma takes {wanted} registers for D, A, B, C; it has {given}"


def _memory(group: Group, transfer: Transfer, write: bool) -> Array:
    """The lines of the matrix in memory, (lines, bytes), in place."""
    instruction = group.instruction
    address = group.uniform(instruction.operands[1 if instruction.parts[1] == "load" else 0], "u64")
    length = transfer.line * transfer.bits // 8
    stride = length
    if len(instruction.operands) > 2:
        stride = group.uniform(instruction.operands[2], "u32") * transfer.bits // 8
    view = group.machine.memory.view
    align = max(transfer.bits // 8, 4)  # as the narrowest access of a lane
    try:
        octets = view(
            group.cta, transfer.space, address, (transfer.lines - 1) * stride + length, write=write, align=align
        )
    except AccessFault:
        for line in range(transfer.lines):  # the first line that is at fault is to be named
            view(group.cta, transfer.space, address + line * stride, length, write=write, align=align)
        raise
    if group.machine.watch is not None:
        starts = address + stride * np.arange(transfer.lines)
        group.machine.accesses(group.cta, transfer.space, starts, length, "write" if write else "read")
    return np.ndarray((transfer.lines, length), np.uint8, octets, strides=(stride, 1))


@handles("wmma.load", check=unsupported_transfer)
def execute_load(group: Group) -> None:
    require_all_lanes(group)
    transfer = parse_transfer(group.instruction.opcode)
    assert isinstance(transfer, Transfer)
    words = load(transfer, _memory(group, transfer, write=False))
    group.write_many(registers_of(group.instruction.operands[0]), words, transfer.word)


@handles("wmma.store", check=unsupported_transfer)
def execute_store(group: Group) -> None:
    require_all_lanes(group)
    transfer = parse_transfer(group.instruction.opcode)
    assert isinstance(transfer, Transfer)
    words = group.read_many(registers_of(group.instruction.operands[1]), transfer.word)
    _memory(group, transfer, write=True)[:] = store(transfer, words)


@handles("wmma.mma", check=unsupported_mma)
def execute_mma(group: Group) -> None:
    require_all_lanes(group)
    mma = parse_mma(group.instruction.opcode)
    assert isinstance(mma, Mma)
    d, a, b, c = (registers_of(operand) for operand in group.instruction.operands)
    words = group.read_many((*a, *b, *c), mma.word)
    with matrix_arithmetic.quiet():
        result = multiply(mma, words)
    group.write_many(d, result, mma.word)
