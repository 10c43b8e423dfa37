"""``mma.sync``: matrix products of one warp, from registers to registers.

Every dense form is here, block scaling too. Sparse forms (``mma.sp``) are reported as not supported.

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions", "Block Scaling for mma.sync".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction, Operand, Vector
from ptxdsl.record import dataclass
from ptxdsl.sim import matrix_arithmetic, matrix_layout
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.matrix_layout import Fragment
from ptxdsl.sim.matrix_types import (
    CONTAINED,
    TYPES,
    UE4M3,
    UE8M0,
    ElementType,
    accumulator_values,
    accumulator_words,
)

Array = npt.NDArray[Any]
Shape = tuple[int, int, int]

_F8, _F6_F4 = ("e4m3", "e5m2"), ("e3m2", "e2m3", "e2m1")

# (kind, types of A and B) -> the shapes that exist.
SHAPES: dict[tuple[str, tuple[str, ...]], tuple[Shape, ...]] = {
    ("", ("f16",)): ((8, 8, 4), (16, 8, 8), (16, 8, 16)),
    ("", ("bf16",)): ((16, 8, 8), (16, 8, 16)),
    ("", ("tf32",)): ((16, 8, 4), (16, 8, 8)),
    ("", ("f64",)): ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)),
    ("", _F8): ((16, 8, 16), (16, 8, 32)),
    ("", ("s8", "u8")): ((8, 8, 16), (16, 8, 16), (16, 8, 32)),
    ("", ("s4", "u4")): ((8, 8, 32), (16, 8, 32), (16, 8, 64)),
    ("", ("b1",)): ((8, 8, 128), (16, 8, 128), (16, 8, 256)),
    ("f8f6f4", (*_F8, *_F6_F4)): ((16, 8, 32),),
    ("mxf8f6f4", (*_F8, *_F6_F4)): ((16, 8, 32),),
    ("mxf4", ("e2m1",)): ((16, 8, 64),),
    ("mxf4nvf4", ("e2m1",)): ((16, 8, 64),),
}
ACCUMULATORS = {"f16": ("f16", "f32"), "f64": ("f64",), "bf16": ("f32",), "tf32": ("f32",)}
DEFAULT_SCALES = {"mxf8f6f4": 1, "mxf4": 2}
ALL_LANES = (1 << matrix_layout.LANES) - 1
SCALE_TYPES = {"ue8m0": UE8M0, "ue4m3": UE4M3}


@dataclass(frozen=True, eq=False)
class Mma:
    """What an opcode says. c, d: the accumulators' types and fragments. scales: scale factors a row, 0 without.

    operation: ``dot``, ``and`` or ``xor`` (of bits). products: 4 for ``m8n8k4`` with f16, else 1.
    """

    shape: Shape
    a_type: ElementType
    b_type: ElementType
    c_type: str
    d_type: str
    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    b_after_a: Array  # b.to_matrix for an array that holds A before B
    operation: str = "dot"
    saturate: bool = False
    rounding: str = "rn"
    scales: int = 0
    scale_type: str = ""
    products: int = 1

    @property
    def word(self) -> str:
        """The PTX type of a register of all four operands."""
        return "b64" if self.d_type == "f64" else "b32"


@lru_cache(None)
def parse(opcode: str) -> Mma | str:
    """The meaning of an ``mma`` opcode, or what of it is not supported."""
    parts = opcode.split(".")
    if parts[1:3] != ["sync", "aligned"]:
        return "sparse mma" if parts[1].startswith("sp") else "mma without .sync.aligned"
    match = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", parts[3])
    if match is None or len(parts) < 10:
        return "this form of mma"
    shape = (int(match[1]), int(match[2]), int(match[3]))
    layouts, rest = parts[4:6], parts[6:]
    saturate = "satfinite" in rest
    kind = next((p.removeprefix("kind::") for p in rest if p.startswith("kind::")), "")
    scales = next((int(p[11]) for p in rest if p.startswith("scale_vec::")), DEFAULT_SCALES.get(kind, 0))
    types = [p for p in rest if "::" not in p and p not in ("satfinite", "block_scale")]
    if len(types) < 4:
        return "this form of mma"
    d_type, a_name, b_name, c_type, *last = types
    shapes = next((s for (k, names), s in SHAPES.items() if k == kind and a_name in names and b_name in names), None)
    if shapes is None:
        return f"mma of {a_name} and {b_name}" + (f" with kind::{kind}" if kind else "")
    if shape not in shapes:
        return f"mma of {a_name} and {b_name} in the shape {parts[3]}"
    family = "f16" if a_name in _F8 + _F6_F4 else a_name
    accumulators = ACCUMULATORS.get(family, ("s32",))
    if c_type not in accumulators or d_type not in accumulators:
        return f"mma of {a_name} and {b_name} with accumulators of {c_type} and {d_type}"
    # Only kinds with scales have the scale's type last; they pack 4-bit elements without padding where all are e2m1.
    types_table = CONTAINED if kind in ("f8f6f4", "mxf8f6f4") else TYPES
    a_type, b_type = types_table[a_name], types_table[b_name]
    scale_type = last[0] if scales and last else ""
    if scales and scale_type not in SCALE_TYPES:
        return f"mma with scales of {scale_type or 'no type'}"
    operation = last[0] if a_name == "b1" and last else "dot"
    if a_name == "b1" and (operation not in ("xor", "and") or last[1:] != ["popc"]):
        return "this form of mma of single bits"
    m, n, k = shape
    c_packed, d_packed = (2 if t == "f16" else 1 for t in (c_type, d_type))
    if shape == (8, 8, 4) and a_name == "f16":
        fragments = (
            matrix_layout.quad_pairs("a", layouts[0]),
            matrix_layout.quad_pairs("b", layouts[1]),
            matrix_layout.quad_pairs("c16" if c_type == "f16" else "c32", ""),
            matrix_layout.quad_pairs("c16" if d_type == "f16" else "c32", ""),
        )
    elif layouts != ["row", "col"]:
        return f"mma in the layouts {layouts[0]} and {layouts[1]}"
    else:
        fragments = (
            matrix_layout.multiplicand_a(m, k, a_type.per_register),
            matrix_layout.multiplicand_b(k, n, b_type.per_register),
            matrix_layout.accumulator(m, n, c_packed),
            matrix_layout.accumulator(m, n, d_packed),
        )
    return Mma(
        shape,
        a_type,
        b_type,
        c_type,
        d_type,
        *fragments,
        b_after_a=fragments[1].to_matrix + fragments[0].from_matrix.size,
        operation=operation,
        saturate=saturate,
        rounding=last[0] if a_name == "f64" and last else "rn",
        scales=scales,
        scale_type=scale_type,
        products=4 if fragments[0].to_matrix.shape[0] == 32 else 1,
    )


def multiply(mma: Mma, words: Array, scale_a: Array | None = None, scale_b: Array | None = None) -> Array:
    """Registers of D from registers of A, B and C (one after the other): arrays (registers, 32) of uint32, f64: uint64.

    scale_a (m, scales), scale_b (scales, n): factors of the blocks of K.
    """
    b_at = mma.a.registers
    c_at = b_at + mma.b.registers
    if mma.a_type is mma.b_type:
        both = mma.a_type.values(words[:c_at])
        left, right = both.take(mma.a.to_matrix), both.take(mma.b_after_a)
    else:
        left = mma.a_type.values(words[:b_at]).take(mma.a.to_matrix)
        right = mma.b_type.values(words[b_at:c_at]).take(mma.b.to_matrix)
    addend = accumulator_values(words[c_at:], mma.c_type).take(mma.c.to_matrix)
    if scale_a is not None and scale_b is not None:
        block = mma.shape[2] // mma.scales
        left = left * np.repeat(scale_a.astype(np.float64), block, axis=1)
        right = right * np.repeat(scale_b.astype(np.float64), block, axis=0)
    if mma.products > 1:
        m, n, k = mma.shape
        left, right, addend = left.reshape(4, m, k), right.reshape(4, k, n), addend.reshape(4, m, n)
    if mma.d_type == "f64":
        result = matrix_arithmetic.multiply_accumulate_f64(left, right, addend, mma.rounding)
    elif mma.operation == "xor":
        result = matrix_arithmetic.exclusive_or_popcount(left, right, addend)
    else:
        result = matrix_arithmetic.multiply_accumulate(left, right, addend)
    values = result.reshape(-1).take(mma.d.from_matrix)
    return accumulator_words(values, mma.d_type, mma.saturate).reshape(-1, matrix_layout.LANES)


def scales_of_a(mma: Mma, data: Array, byte: int, thread: int) -> Array:
    """(16, scales) factors. data: the 32 lanes' words; of each four lanes, a pair chosen by thread has two rows."""
    pairs = _octets_by_four(data)[:, 2 * thread : 2 * thread + 2, byte : byte + mma.scales]
    return SCALE_TYPES[mma.scale_type].take(pairs.transpose(1, 0, 2).reshape(16, mma.scales))


def scales_of_b(mma: Mma, data: Array, byte: int, thread: int) -> Array:
    """(scales, 8) factors: of each four lanes, the one chosen by thread has a column's."""
    return SCALE_TYPES[mma.scale_type].take(_octets_by_four(data)[:, thread, byte : byte + mma.scales].T)


def _octets_by_four(data: Array) -> Array:
    return np.ascontiguousarray(data, np.uint32).view(np.uint8).reshape(8, 4, 4)


def require_all_lanes(group: Group) -> None:
    """A matrix lies in the registers of 32 lanes: none may be elsewhere, and none may have exited."""
    group.require_whole_warp()
    if group.mask != ALL_LANES:
        name = group.instruction.parts[0]
        missing = ALL_LANES.bit_count() - group.mask.bit_count()
        raise group.fault(
            "E1146",
            f"{name} in a warp of which {missing} lane{' does' if missing == 1 else 's do'} not exist or have exited",
            f"all 32 lanes of a warp execute {name} together: launch whole warps, and let no lane return before it",
        )


def registers_of(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def unsupported(instruction: Instruction) -> str | None:
    mma = parse(instruction.opcode)
    if isinstance(mma, str):
        return f"{mma} is not supported"
    wanted = (mma.d.registers, mma.a.registers, mma.b.registers, mma.c.registers)
    given = tuple(len(registers_of(operand)) for operand in instruction.operands[:4])
    if given != wanted or len(instruction.operands) != (8 if mma.scales else 4):
        return f"mma of this shape takes {', '.join(map(str, wanted))} registers for D, A, B, C; it has {given}"
    return None


@handles("mma", check=unsupported)
def execute(group: Group) -> None:
    require_all_lanes(group)
    instruction = group.instruction
    mma = parse(instruction.opcode)
    assert isinstance(mma, Mma)
    d, a, b, c = (registers_of(operand) for operand in instruction.operands[:4])
    words = group.read_many((*a, *b, *c), mma.word)
    scale_a, scale_b = _read_scales(group, mma) if mma.scales else (None, None)
    with matrix_arithmetic.quiet():
        result = multiply(mma, words, scale_a, scale_b)
    group.write_many(d, result, mma.word)


def _read_scales(group: Group, mma: Mma) -> tuple[Array, Array]:
    data_a, select_a, data_b, select_b = group.instruction.operands[4:8]
    selectors = []
    for name, operand, threads in (("A", select_a, 2), ("B", select_b, 4)):
        byte, thread = (group.uniform(item, "u16") for item in registers_of(operand))
        if byte % mma.scales or byte >= 4 or thread >= threads:
            raise group.fault(
                "E1145",
                f"scale selector {{{byte}, {thread}}} of {name} does not exist",
                f"with {mma.scales} scale factors a row the byte is a multiple of {mma.scales} below 4, and the thread "
                f"is below {threads}",
            )
        selectors.append((byte, thread))
    return (
        scales_of_a(mma, group.read(data_a, "b32"), *selectors[0]),
        scales_of_b(mma, group.read(data_b, "b32"), *selectors[1]),
    )
