"""What the translation of one lane-wise instruction sees: operands in, LLVM IR text and results out.

A value is the text of an LLVM IR operand (``%v12``, ``splat (i32 3)``, ``zeroinitializer``) whose type follows from the
PTX type that it was read with (``vector``). One vector holds ``WIDTH`` lanes of the warp; a part runs the same code
for all chunks of the warp.

What an ``Emit`` must keep to:

* Lanes that are not active compute too, on whatever their registers hold. So nothing may be undefined for any input:
  divisors are made non-zero with a ``select`` before the division, shift amounts are clamped before the shift, float to
  integer goes through ``llvm.fptosi.sat``, and no ``nsw``/``nuw``/``exact``/fast-math flags or ``afn`` are used.
* ``write`` masks: a guarded instruction, or one in a divergent group, changes the active lanes alone.
* No instruction that becomes a call of a compiler runtime library on some host (``half`` arithmetic and conversions,
  ``frem``, ``i128`` division, ``llvm.sin`` …); ``llvm.fma``, ``llvm.sqrt``, ``llvm.ctpop``, ``llvm.fshl`` are fine.
* No branches: an instruction is straight-line code. What needs a loop or is long is a function of its own (``define``).
* What is not supported raises ``Unsupported`` with a clause that completes "<opcode>: "; all such are reported at once,
  before execution.

The table is ``ops_table.LANE_OPS: dict[str, Emit]``, by the first part of an opcode (``add``). ``mov`` (its packing
and unpacking is what ``read`` and ``write`` of a Vector do), memory, control flow and cross-lane instructions are
``part``'s own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ptxdsl.ptx.module import Instruction, Operand
from ptxdsl.sim.layout import CHUNK

WIDTH = CHUNK  # lanes a vector

# LLVM's element type of a PTX type. Floats of 16 bits and less and packed ones are their bits.
ELEMENTS = {
    "pred": "i1",
    "b8": "i8", "u8": "i8", "s8": "i8",
    "b16": "i16", "u16": "i16", "s16": "i16", "f16": "i16", "bf16": "i16",
    "b32": "i32", "u32": "i32", "s32": "i32", "f32": "float",
    "b64": "i64", "u64": "i64", "s64": "i64", "f64": "double",
    "tf32": "i32", "f16x2": "i32", "bf16x2": "i32", "u16x2": "i32", "s16x2": "i32", "f32x2": "i64",
    "u8x4": "i32", "s8x4": "i32",
    "e4m3": "i8", "e5m2": "i8", "e4m3x2": "i16", "e5m2x2": "i16", "e4m3x4": "i32", "e5m2x4": "i32",
    "e2m3x2": "i16", "e3m2x2": "i16", "e2m3x4": "i32", "e3m2x4": "i32", "e2m1x2": "i8", "e2m1x4": "i16",
    "ue8m0x2": "i16",
}  # fmt: skip


FLOATS = {"float": 32, "double": 64}  # LLVM's floating-point types, and their bits


def element_bits(element: str) -> int:
    """Bits of an element type of LLVM."""
    return FLOATS.get(element) or int(element[1:])


def vector(element: str) -> str:
    """``<8 x i32>`` of ``i32``."""
    return f"<{WIDTH} x {element}>"


class Unsupported(Exception):
    """An instruction that the simulator does not have, or whose operands do not fit it."""


class Emitter(Protocol):
    """Text of one instruction's IR is appended in order; names are made here."""

    def read(self, operand: Operand, type: str) -> str:
        """The operand's lanes as a vector of ``ELEMENTS[type]``.

        Register (special ones too; a wider register gives its low bits), Immediate (also a float one for an integer
        type: its bits), Symbol (its address), Not, and Vector (its items packed, the first lowest).
        """
        ...

    def write(self, operand: Operand, value: str, type: str) -> None:
        """Sets a Register (a wider one: extended by its sign for ``s8``/``s16``/``s32``, else by zeros), or a Vector's
        items (unpacked). A Sink takes anything."""
        ...

    def read128(self, operand: Operand) -> tuple[str, str]:
        """Low and high ``b64`` of a ``b128`` register or of a Vector of two 64-bit items."""
        ...

    def write128(self, operand: Operand, low: str, high: str) -> None: ...

    def do(self, text: str) -> str:
        """Appends ``%name = text`` and returns the name: ``e.do(f"add <8 x i32> {a}, {b}")``."""
        ...

    def call(self, result: str, function: str, *arguments: str) -> str:
        """A call of a function or intrinsic, declared as needed: ``e.call("<8 x float>", "llvm.fma.v8f32",
        f"<8 x float> {a}", …)``. A result of ``void`` gives an empty text."""
        ...

    def define(self, name: str, text: str) -> None:
        """Adds a definition to the LLVM module once: ``@table = private constant …``, or a function."""
        ...


Emit = Callable[[Emitter, Instruction], None]


def constant(element: str, bits: int) -> str:
    """The text of a constant with these bits, without its type."""
    bits &= (1 << element_bits(element)) - 1
    if element in FLOATS:
        return f"bitcast (i{FLOATS[element]} {bits} to {element})"
    if element == "i1":
        return "true" if bits else "false"
    return str(bits)


def splat(element: str, bits: int) -> str:
    """A constant vector."""
    return f"splat ({element} {constant(element, bits)})"
