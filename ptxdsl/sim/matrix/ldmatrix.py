"""``ldmatrix``, ``stmatrix`` and ``movmatrix``: small matrices between shared memory and the registers of a warp.

Rows of 16 bytes lie anywhere in shared memory, their addresses in the lanes; a warp's registers hold them as the
fragments of ``mma``. All is a permutation of bytes, so each form is one index table.

Source: PTX ISA, "Warp-level matrix load instruction: ldmatrix", "… store instruction: stmatrix", "… transpose
instruction: movmatrix", "Optional Decompression".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction
from ptxdsl.record import dataclass
from ptxdsl.sim import numbers
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.matrix.fragments import LANES
from ptxdsl.sim.matrix.mma import registers_of, require_all_lanes
from ptxdsl.sim.matrix.shared_rows import ROW_BYTES, read_rows, write_rows

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Form:
    """What an opcode says. rows: the lanes whose addresses count (the first ones). registers: of each lane.

    bytes: of each byte of the registers (register, lane, byte) its place in the rows laid end to end. unpack: bits of
    the packed elements that become bytes, or 0.
    """

    rows: int
    registers: int
    bytes: Array
    unpack: int = 0


def _byte_axes(registers: int) -> tuple[Array, Array, Array, Array]:
    lane = np.arange(LANES)[None, :, None]
    return np.arange(registers)[:, None, None], lane >> 2, lane & 3, np.arange(4)[None, None, :]


def _form(rows: int, registers: int, row: Array, column: Array, unpack: int = 0) -> Form:
    places = np.broadcast_to(row * ROW_BYTES + column, (registers, LANES, 4))
    return Form(rows, registers, places.reshape(-1).astype(np.intp), unpack)


@lru_cache(1024)
def parse(opcode: str) -> Form | str:
    """The meaning of an ``ldmatrix`` or ``stmatrix`` opcode, or what of it is not supported."""
    parts = opcode.split(".")
    store = parts[0] == "stmatrix"
    shape = next((p for p in parts if p in ("m8n8", "m16n16", "m8n16", "m16n8")), "")
    count = next((int(p[1:]) for p in parts if p in ("x1", "x2", "x4")), 0)
    transposed = "trans" in parts
    if parts[1:3] != ["sync", "aligned"] or not shape or not count:
        return f"this form of {parts[0]}"
    if shape == "m8n8" and parts[-1] == "b16":
        matrix, g, t, byte = _byte_axes(count)
        if transposed:  # a lane's two elements are below each other
            return _form(8 * count, count, 8 * matrix + 2 * t + byte // 2, 2 * g + byte % 2)
        return _form(8 * count, count, 8 * matrix + g, 4 * t + byte)
    if shape == "m16n8" and store and transposed and parts[-1] == "b8":
        # A 16x8 matrix of bytes by columns: a row in memory is one of its 8 columns.
        matrix, g, t, byte = _byte_axes(count)
        return _form(8 * count, count, 8 * matrix + 2 * t + byte % 2, g + 8 * (byte // 2))
    unpack = {"b8": 0, "b6x16_p32": 6, "b4x16_p64": 4}.get(parts[-1])
    if store or unpack is None or (unpack and "b8x16" not in parts):
        return f"{parts[0]} of {shape} with {parts[-1]}"
    if shape == "m16n16" and transposed and count <= 2:
        # Two registers a matrix: the lane's column, and the column 8 further.
        register, g, t, byte = _byte_axes(2 * count)
        return _form(16 * count, 2 * count, 16 * (register // 2) + 4 * t + byte, g + 8 * (register % 2), unpack)
    if shape == "m8n16" and not transposed and unpack:
        matrix, g, t, byte = _byte_axes(count)
        return _form(8 * count, count, 8 * matrix + g, 4 * t + byte, unpack)
    return f"{parts[0]} of {shape} with x{count}{' and .trans' if transposed else ''}"


def load(form: Form, rows: Array) -> Array:
    """Registers (registers, lanes) of uint32 from rows (rows, 16) of bytes."""
    if form.unpack:
        rows = unpack_rows(rows, form.unpack)
    octets: Array = rows.reshape(-1).take(form.bytes)
    return octets.view(np.uint32).reshape(form.registers, LANES)


def store(form: Form, registers: Array) -> Array:
    """Rows (rows, 16) of bytes from registers (registers, lanes) of uint32."""
    rows = np.empty(form.rows * ROW_BYTES, np.uint8)
    rows[form.bytes] = np.ascontiguousarray(registers, np.uint32).reshape(-1).view(np.uint8)
    return rows.reshape(form.rows, ROW_BYTES)


def unpack_rows(rows: Array, bits: int) -> Array:
    """16 elements of 4 or 6 bits, packed from the first byte of each row on, to 16 bytes, as ``mma`` takes them.

    Elements of 6 bits lie in the low bits of their byte, those of 4 bits in the middle.
    """
    if bits == 4:
        return numbers.unpack_nibbles(rows[:, :8]) << np.uint8(2)
    return numbers.unpack_six_bits(rows[:, :12])


# movmatrix: halfword h of lane l comes from the lane that holds the transposed element.
_LANE, _HALF = np.arange(LANES)[:, None], np.arange(2)[None, :]
TRANSPOSE = (2 * ((2 * (_LANE & 3) + _HALF) * 4 + (_LANE >> 3)) + ((_LANE >> 2) & 1)).reshape(-1)


def transpose(word: Array) -> Array:
    """The 8x8 matrix of 16-bit elements in one register of each lane, transposed."""
    halves: Array = np.ascontiguousarray(word, np.uint32).view(np.uint16).take(TRANSPOSE)
    return halves.view(np.uint32)


def unsupported(instruction: Instruction) -> str | None:
    form = parse(instruction.opcode)
    if isinstance(form, str):
        return f"{form} is not supported"
    registers = instruction.operands[0 if instruction.opcode.startswith("ld") else 1]
    given = len(registers_of(registers))
    return None if given == form.registers else f"this form has {form.registers} registers, not {given}"


@handles("ldmatrix", check=unsupported)
def execute_load(group: Group) -> None:
    require_all_lanes(group)
    destination, address = group.instruction.operands
    form = parse(group.instruction.opcode)
    assert isinstance(form, Form)
    rows = read_rows(group, group.read(address, "u64")[: form.rows])
    group.write_many(registers_of(destination), load(form, rows), "b32")


@handles("stmatrix", check=unsupported)
def execute_store(group: Group) -> None:
    require_all_lanes(group)
    address, source = group.instruction.operands
    form = parse(group.instruction.opcode)
    assert isinstance(form, Form)
    rows = store(form, group.read_many(registers_of(source), "b32"))
    write_rows(group, group.read(address, "u64")[: form.rows], rows)


@handles("movmatrix")
def execute_transpose(group: Group) -> None:
    require_all_lanes(group)
    destination, source = group.instruction.operands
    group.write(destination, transpose(group.read(source, "b32")), "b32")
