"""What an ``mma`` opcode says: shape, types, fragments. The tables are the ISA's.

Source: PTX ISA, "Multiply-and-Accumulate Instruction: mma", "… mma.sp", "Block Scaling for mma.sync".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy.typing as npt

from ptxdsl.record import dataclass
from ptxdsl.sim.matrix import fragments as matrix_layout
from ptxdsl.sim.matrix.fragments import Fragment
from ptxdsl.sim.matrix.sparse import Sparsity
from ptxdsl.sim.matrix.types import CONTAINED, TYPES, ElementType

Array = npt.NDArray[Any]
Shape = tuple[int, int, int]
Shapes = dict[tuple[str, tuple[str, ...]], tuple[Shape, ...]]

_F8, _F6_F4 = ("e4m3", "e5m2"), ("e3m2", "e2m3", "e2m1")

# (kind, types of A and B) -> the shapes that exist.
SHAPES: Shapes = {
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
SPARSE_SHAPES: Shapes = {
    ("", ("f16",)): ((16, 8, 16), (16, 8, 32)),
    ("", ("bf16",)): ((16, 8, 16), (16, 8, 32)),
    ("", ("tf32",)): ((16, 8, 8), (16, 8, 16)),
    ("", _F8): ((16, 8, 64),),
    ("", ("s8", "u8")): ((16, 8, 32), (16, 8, 64)),
    ("", ("s4", "u4")): ((16, 8, 64), (16, 8, 128)),
    ("f8f6f4", (*_F8, *_F6_F4)): ((16, 8, 64),),
    ("mxf8f6f4", (*_F8, *_F6_F4)): ((16, 8, 64),),
    ("mxf4", ("e2m1",)): ((16, 8, 128),),
    ("mxf4nvf4", ("e2m1",)): ((16, 8, 128),),
}
ACCUMULATORS = {
    "f64": ("f64",), "bf16": ("f32",), "tf32": ("f32",),
    **dict.fromkeys(("f16", *_F8, *_F6_F4), ("f16", "f32")),
    **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), ("s32",)),
}  # fmt: skip
# kind -> (scale factors a row, type of scales); the first is meant where the opcode does not say the number.
SCALES: dict[str, tuple[tuple[int, str], ...]] = {
    "mxf8f6f4": ((1, "ue8m0"),),
    "mxf4": ((2, "ue8m0"),),
    "mxf4nvf4": ((2, "ue8m0"), (4, "ue8m0"), (4, "ue4m3")),
}
ROUNDINGS = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True, eq=False)
class Mma:
    """What an opcode says. c, d: the accumulators' types and fragments. scales: scale factors a row, 0 without.

    operation: ``dot``, ``and`` or ``xor`` (of bits). products: 4 for ``m8n8k4`` with f16, else 1. sparse: of A, whose
    fragment then has k / 2 columns.
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
    sparse: Sparsity | None = None

    @property
    def word(self) -> str:
        """The PTX type of a register of all four operands."""
        return "b64" if self.d_type == "f64" else "b32"

    @property
    def operands(self) -> int:
        return 4 + (2 if self.sparse else 0) + (4 if self.scales else 0)


@lru_cache(1024)
def parse(opcode: str) -> Mma | str:
    """The meaning of an ``mma`` opcode, or what of it is not supported."""
    _, *parts = opcode.split(".")
    sparse = parts[0] in ("sp", "sp::ordered_metadata")
    if sparse:
        del parts[0]
    match = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", parts[2]) if len(parts) > 8 else None
    if match is None or parts[:2] != ["sync", "aligned"]:
        return "this form of mma"
    shape = (int(match[1]), int(match[2]), int(match[3]))
    layouts, rest = parts[3:5], parts[5:]
    kind = next((p.removeprefix("kind::") for p in rest if p.startswith("kind::")), "")
    types = [p for p in rest if "::" not in p and p not in ("satfinite", "block_scale")]
    if len(types) < 4:
        return "this form of mma"
    d_type, a_name, b_name, c_type, *last = types
    what = f"{'sparse ' if sparse else ''}mma of {a_name} and {b_name}" + (f" with kind::{kind}" if kind else "")
    table = SPARSE_SHAPES if sparse else SHAPES
    shapes = next((s for (k, names), s in table.items() if k == kind and a_name in names and b_name in names), None)
    if shapes is None:
        return what
    if shape not in shapes:
        return f"{what} in the shape {parts[2]}"
    if c_type not in ACCUMULATORS[a_name] or d_type not in ACCUMULATORS[a_name]:
        return f"{what} with accumulators of {c_type} and {d_type}"
    # Elements of 6 and 4 bits lie in bytes, but for those that have a kind of their own.
    element_types = CONTAINED if kind in ("f8f6f4", "mxf8f6f4") else TYPES
    a_type, b_type = element_types[a_name], element_types[b_name]
    scales, scale_type, operation, rounding = 0, "", "dot", "rn"
    if kind in SCALES:
        said = next((int(p[11]) for p in rest if p.startswith("scale_vec::")), SCALES[kind][0][0])
        if len(last) != 1 or (said, last[0]) not in SCALES[kind]:
            return f"{what} with {said} scale factors of {' '.join(last) or 'no type'}"
        scales, scale_type = said, last[0]
    elif a_name == "b1":
        if last not in (["xor", "popc"], ["and", "popc"]):
            return "this form of mma of single bits"
        operation = last[0]
    elif last:
        if a_name != "f64" or len(last) > 1 or last[0] not in ROUNDINGS:
            return f"{what} with .{'.'.join(last)}"
        rounding = last[0]
    fragments = _fragments(shape, a_type, b_type, c_type, d_type, layouts, sparse)
    if isinstance(fragments, str):
        return fragments
    return Mma(
        shape,
        a_type,
        b_type,
        c_type,
        d_type,
        *fragments,
        b_after_a=fragments[1].to_matrix + fragments[0].from_matrix.size,
        operation=operation,
        saturate="satfinite" in rest,
        rounding=rounding,
        scales=scales,
        scale_type=scale_type,
        products=4 if fragments[0].to_matrix.shape[0] == 32 else 1,
        sparse=Sparsity(shape[2], a_type.bits) if sparse else None,
    )


def _fragments(
    shape: Shape, a: ElementType, b: ElementType, c: str, d: str, layouts: list[str], sparse: bool
) -> tuple[Fragment, Fragment, Fragment, Fragment] | str:
    """Those of A, B, C and D."""
    m, n, k = shape
    if shape == (8, 8, 4) and a.name == "f16":
        return (
            matrix_layout.quad_pairs("a", layouts[0]),
            matrix_layout.quad_pairs("b", layouts[1]),
            matrix_layout.quad_pairs("c16" if c == "f16" else "c32", ""),
            matrix_layout.quad_pairs("c16" if d == "f16" else "c32", ""),
        )
    if layouts != ["row", "col"]:
        return f"mma in the layouts {layouts[0]} and {layouts[1]}"
    return (
        matrix_layout.multiplicand_a(m, k // 2 if sparse else k, a.per_register),
        matrix_layout.multiplicand_b(k, n, b.per_register),
        matrix_layout.accumulator(m, n, 2 if c == "f16" else 1),
        matrix_layout.accumulator(m, n, 2 if d == "f16" else 1),
    )
