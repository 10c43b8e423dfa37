"""What a ``wgmma.mma_async`` says, and its arithmetic: pure functions of bytes and registers.

Source: PTX ISA, "Asynchronous Multiply-and-Accumulate Instruction: wgmma.mma_async" and the fragments before it.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Any

import numpy.typing as npt

from ptxdsl.ptx.module import Immediate, Instruction, Vector
from ptxdsl.sim.matrix import arithmetic as matrix_arithmetic
from ptxdsl.sim.matrix import fragments as matrix_layout
from ptxdsl.sim.matrix.mma import registers_of
from ptxdsl.sim.matrix.sparse import Sparsity
from ptxdsl.sim.matrix.types import TYPES, ElementType, accumulator_values, accumulator_words

Array = npt.NDArray[Any]

M = 64
WARP_ROWS = 16

# Types of A and B -> K (256 bits of it; twice that where A is sparse), types of D.
FAMILIES: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {
    ("f16",): (16, ("f16", "f32")),
    ("bf16",): (16, ("f32",)),
    ("tf32",): (8, ("f32",)),
    ("e4m3", "e5m2"): (32, ("f16", "f32")),
    ("s8", "u8"): (32, ("s32",)),
    ("b1",): (256, ("s32",)),
}
INTEGERS = ("s8", "u8", "b1")
TRANSPOSABLE = ("f16", "bf16")


class Form:
    """One shape and combination of types. a_mn, b_mn: whether A and B lie MN-major in shared memory.

    sparse: whether A is; k then is B's, and A has half as many columns.
    """

    def __init__(
        self,
        n: int,
        k: int,
        a: ElementType,
        b: ElementType,
        d_type: str,
        saturate: bool,
        sparse: bool,
        a_mn: bool = False,
        b_mn: bool = False,
    ) -> None:
        self.n, self.k = n, k
        self.a_k = k // 2 if sparse else k
        self.a, self.b, self.d_type = a, b, d_type
        self.saturate = saturate
        self.sparse = Sparsity(k, a.bits) if sparse else None
        self.a_mn, self.b_mn = a_mn, b_mn
        self.integer = a.name in INTEGERS
        self.accumulator = matrix_layout.accumulator(WARP_ROWS, n, 2 if d_type == "f16" else 1)

    @cached_property
    def a_fragment(self) -> matrix_layout.Fragment:
        return matrix_layout.multiplicand_a(WARP_ROWS, self.a_k, self.a.per_register)

    @property
    def scale_d(self) -> int:
        """The number of the operand scale-d, behind those of the metadata; imm-scale and imm-trans follow it."""
        return 5 if self.sparse else 3

    def transposed(self, instruction: Instruction) -> Form:
        """This form with the majorness that the instruction's last operands say."""
        last = instruction.operands[self.scale_d + 3 :]
        flags = [bool(item.value) for item in last if isinstance(item, Immediate)]
        if not any(flags):
            return self
        a_mn, b_mn = flags if len(flags) == 2 else (False, flags[0])
        return _form(
            self.n, self.k, self.a.name, self.b.name, self.d_type, self.saturate, self.sparse is not None, a_mn, b_mn
        )

    def a_in_registers(self, instruction: Instruction) -> bool:
        return isinstance(instruction.operands[1], Vector)

    def extent(self, operand: str) -> tuple[int, int, int, bool]:
        """Rows (of M or N), K, bits and majorness of A or B in shared memory: what ``wgmma_descriptor.tile`` takes."""
        if operand == "a":
            return M, self.a_k, self.a.bits, self.a_mn
        return self.n, self.k, self.b.bits, self.b_mn

    def a_of_registers(self, words: Array) -> Array:
        """A (64, a_k) from registers (warps, registers, lanes)."""
        values = self.a.values(words).reshape(len(words), -1)
        return values.take(self.a_fragment.to_matrix, axis=1).reshape(M, self.a_k)

    def a_of_memory(self, octets: Array) -> Array:
        """A (64, a_k) from the bytes of its chunks."""
        return _rows(self.a, octets, M, self.a_k, self.a_mn)

    def b_of_memory(self, octets: Array) -> Array:
        """B (k, n) from the bytes of its chunks."""
        return _rows(self.b, octets, self.n, self.k, self.b_mn).T

    def multiply(self, a: Array, b: Array, d: Array | None, negate: bool = False) -> Array:
        """D's registers (warps, registers, lanes) of uint32 after the operation. d: those before it, None: D = A·B."""
        if negate:
            a = -a
        shape = (len(a) // WARP_ROWS, WARP_ROWS * self.n)
        product = matrix_arithmetic.multiply_accumulate(a, b, None).reshape(shape)
        values = product.take(self.accumulator.from_matrix, axis=1)
        if d is not None:
            values += accumulator_values(d, self.d_type).reshape(values.shape)
        words = accumulator_words(values, self.d_type, self.saturate)
        return words.reshape(shape[0], -1, matrix_layout.LANES)


def _rows(type: ElementType, octets: Array, rows: int, k: int, mn_major: bool) -> Array:
    values = type.values(octets)
    return values.reshape(k, -1)[:, :rows].T if mn_major else values.reshape(rows, k)


@lru_cache(None)
def _form(
    n: int, k: int, a: str, b: str, d_type: str, saturate: bool, sparse: bool, a_mn: bool = False, b_mn: bool = False
) -> Form:
    return Form(n, k, TYPES[a], TYPES[b], d_type, saturate, sparse, a_mn, b_mn)


@lru_cache(1024)
def parse(opcode: str) -> Form | str:
    """The meaning of a ``wgmma.mma_async`` opcode (both matrices K-major), or what of it is not supported."""
    parts = opcode.split(".")
    sparse = parts[2] == "sp"
    if sparse:
        del parts[2]
    if parts[2:4] != ["sync", "aligned"] or len(parts) < 8:
        return "this form of wgmma.mma_async"
    match = re.fullmatch(r"m64n(\d+)k(\d+)", parts[4])
    saturate = "satfinite" in parts
    types = [part for part in parts[5:] if part != "satfinite"]
    if match is None or len(types) < 3:
        return "this form of wgmma.mma_async"
    n, k = int(match[1]), int(match[2])
    d_type, a, b, *operation = types
    family = next((f for f in FAMILIES if a in f and b in f), None)
    if family is None or (sparse and a == "b1"):
        return f"{'sparse ' if sparse else ''}wgmma.mma_async of {a} and {b}"
    if operation != (["and", "popc"] if a == "b1" else []):
        return f"wgmma.mma_async with .{'.'.join(operation)}"
    depth, results = FAMILIES[family]
    if k != depth * (2 if sparse else 1) or not 8 <= n <= 256 or n % 8 or (a in INTEGERS and n > 32 and n % 16):
        return f"wgmma.mma_async of {a} and {b} in the shape {parts[4]}"
    if d_type not in results:
        return f"wgmma.mma_async of {a} and {b} with a result of {d_type}"
    return _form(n, k, a, b, d_type, saturate, sparse)


def unsupported(instruction: Instruction) -> str | None:
    form = parse(instruction.opcode)
    if isinstance(form, str):
        return f"{form} is not supported"
    operands = instruction.operands
    in_registers = form.a_in_registers(instruction)
    transposes = (1 if in_registers else 2) if form.a.name in TRANSPOSABLE else 0
    wanted = form.scale_d + 1 + (0 if form.integer else 2 + transposes)
    if len(operands) != wanted:
        return f"this wgmma.mma_async has {wanted} operands, not {len(operands)}"
    given = len(registers_of(operands[0]))
    if given != form.accumulator.registers:
        return f"this wgmma.mma_async has {form.accumulator.registers} registers for D, not {given}"
    if in_registers and len(registers_of(operands[1])) != form.a_fragment.registers:
        return f"this wgmma.mma_async has {form.a_fragment.registers} registers for A"
    flags = [item.value if isinstance(item, Immediate) else None for item in operands[form.scale_d + 1 :]]
    if any(flag not in (-1, 1) for flag in flags[:2]) or any(flag not in (0, 1) for flag in flags[2:]):
        return "wgmma.mma_async with imm-scale other than 1 and -1, or imm-trans other than 0 and 1, is not supported"
    return None
