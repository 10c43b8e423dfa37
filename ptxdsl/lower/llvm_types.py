"""Types and constants of the typed IR as LLVM text."""

from __future__ import annotations

import functools
import math
import struct

from ptxdsl.hints import Any
from ptxdsl.tir import Ty

# Local pointers are generic for LLVM, which finds ``.local`` by itself; a parameter's address is taken generically.
ADDRESS_SPACES = {"generic": 0, "global": 1, "shared": 3, "const": 4, "local": 0, "param": 0, "cluster": 7}

SCALARS = {
    "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "f16": "half", "bf16": "bfloat", "f32": "float",
    "f64": "double", "f8e4m3": "i8", "f8e5m2": "i8",
}  # fmt: skip

DATA_LAYOUT = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
TRIPLE = "nvptx64-nvidia-cuda"


def quoted(text: str | bytes) -> str:
    """The inside of an LLVM string constant."""
    if isinstance(text, str) and text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)


@functools.cache
def scalar_type(ty: Ty) -> str:
    if ty.is_pointer:
        space = ADDRESS_SPACES[ty.space]
        return f"ptr addrspace({space})" if space else "ptr"
    return SCALARS[ty.name]


@functools.cache
def llvm_type(ty: Ty) -> str:
    return scalar_type(ty) if ty.lanes == 1 else f"<{ty.lanes} x {scalar_type(ty)}>"


def memory_type(ty: Ty) -> str:
    """As ``llvm_type``, but a bool is a byte."""
    return llvm_type(Ty("i8", ty.lanes)) if ty.name == "i1" else llvm_type(ty)


def int_type(bits: int, lanes: int = 1) -> str:
    return f"i{bits}" if lanes == 1 else f"<{lanes} x i{bits}>"


def constant(ty: Ty, value: Any) -> str:
    """The operand text of a constant. A scalar value of a vector type is that value in every lane."""
    if ty.lanes == 1:
        return str(value) if value.__class__ is int and ty.is_int and ty.bits > 1 else scalar_constant(ty, value)
    values = value if isinstance(value, tuple | list) else (value,) * ty.lanes
    lane = scalar_type(ty.scalar)
    return "<" + ", ".join(f"{lane} {scalar_constant(ty.scalar, v)}" for v in values) + ">"


def scalar_constant(ty: Ty, value: Any) -> str:
    if ty.is_pointer:
        return "null" if value == 0 else f"inttoptr (i{ty.bits} {value} to {scalar_type(ty)})"
    if ty.name == "i1":
        return "true" if value else "false"
    if ty.is_int:
        return str(int(value))
    return FLOATS[ty.name](float(value))


def _f64(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _f32(value: float) -> str:
    # LLVM writes a float as the double of the same value.
    try:
        return _f64(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return _f64(math.copysign(math.inf, value))


def _f16(value: float) -> str:
    return f"0xH{encode(value, 5, 10):04X}"


def _bf16(value: float) -> str:
    return f"0xR{encode(value, 8, 7):04X}"


def _f8e4m3(value: float) -> str:
    return str(_signed_byte(encode_e4m3(value)))


def _f8e5m2(value: float) -> str:
    return str(_signed_byte(encode(value, 5, 2)))


FLOATS = {"f64": _f64, "f32": _f32, "f16": _f16, "bf16": _bf16, "f8e4m3": _f8e4m3, "f8e5m2": _f8e5m2}


def _signed_byte(bits: int) -> int:
    return bits - 256 if bits > 127 else bits


def encode(value: float, exponent_bits: int, mantissa_bits: int) -> int:
    """The bits of an IEEE-like format: round to nearest even once, from the exact double value."""
    bias = (1 << (exponent_bits - 1)) - 1
    sign = int(math.copysign(1.0, value) < 0) << (exponent_bits + mantissa_bits)
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    if math.isnan(value):
        return sign | infinity | 1 << (mantissa_bits - 1)
    if math.isinf(value):
        return sign | infinity
    if value == 0:
        return sign
    from fractions import Fraction  # where there is such a constant

    exponent = max(math.frexp(abs(value))[1] - 1, 1 - bias)
    units = round(Fraction(abs(value)) / Fraction(2) ** (exponent - mantissa_bits))
    # A carry out of the mantissa runs into the exponent, which is what rounding up means.
    bits = ((exponent + bias - 1) << mantissa_bits) + units
    return sign | min(bits, infinity)


def encode_e4m3(value: float) -> int:
    """The bits of e4m3fn, which has no infinities: what is beyond 448 becomes 448, as in ``cvt.satfinite``."""
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    if math.isnan(value):
        return sign | 0x7F
    if math.isinf(value) or abs(value) > 448:
        return sign | 0x7E
    from fractions import Fraction  # where there is such a constant

    exponent = max(math.frexp(abs(value))[1] - 1, -6) if value else -6
    units = round(Fraction(abs(value)) / Fraction(2) ** (exponent - 3))
    return sign | (((exponent + 6) << 3) + units)
