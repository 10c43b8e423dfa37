"""Bit-exact conversions between the floating-point formats of PTX, as NumPy functions.

A *code* is the bit pattern of a value of a format, in the low bits of an unsigned integer. ``decode`` gives the values
of codes, exactly; ``encode`` rounds values once, to the nearest. NaN payloads are those that the card gives:
conversions to a format of at most 32 bits give the format's canonical NaN, whose sign is clear.

Source: PTX ISA, "Data Movement and Conversion Instructions: cvt", "Alternate Floating-Point Data Formats"; OCP
Microscaling Formats (e2m3, e3m2, e2m1, ue8m0).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass

Codes = npt.NDArray[Any]  # unsigned integers
Values = npt.NDArray[Any]  # float32 or float64


@dataclass(frozen=True)
class Format:
    """A binary floating-point format. largest: code of the largest finite number; nan: what conversions of NaN give.

    infinity None: the format has no infinities. A format without NaN has its largest number as ``nan``, which is what
    conversions give. zeros: low bits of a code that are always zero (tf32 lies in a 32-bit word as f32 does).
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    largest: int
    infinity: int | None
    nan: int
    storage: type[np.unsignedinteger[Any]]
    zeros: int = 0

    @property
    def bias(self) -> int:
        return int((1 << (self.exponent_bits - 1)) - 1)

    @property
    def sign(self) -> int:
        """The code of -0."""
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def has_nan(self) -> bool:
        return self.nan != self.largest


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("f64", 11, 52, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF, np.uint64),
        Format("f32", 8, 23, 0x7F7F_FFFF, 0x7F80_0000, 0x7FFF_FFFF, np.uint32),
        Format("tf32", 8, 10, 0x7F7F_E000 >> 13, 0x7F80_0000 >> 13, 0x7FFF_E000 >> 13, np.uint32, zeros=13),
        Format("f16", 5, 10, 0x7BFF, 0x7C00, 0x7FFF, np.uint16),
        Format("bf16", 8, 7, 0x7F7F, 0x7F80, 0x7FFF, np.uint16),
        Format("e5m2", 5, 2, 0x7B, 0x7C, 0x7F, np.uint8),
        Format("e4m3", 4, 3, 0x7E, None, 0x7F, np.uint8),
        Format("e3m2", 3, 2, 0x1F, None, 0x1F, np.uint8),
        Format("e2m3", 2, 3, 0x1F, None, 0x1F, np.uint8),
        Format("e2m1", 2, 1, 0x07, None, 0x07, np.uint8),
    )
}

UE8M0_NAN, UE8M0_LARGEST = 0xFF, 0xFE
_INVALID_F64 = np.uint64(0xFFF8_0000_0000_0000)  # what the card gives for infinity - infinity


def decode(codes: npt.ArrayLike, name: str) -> Values:
    """The values of codes, exact: float64 for ``f64``, else float32. Bits above a small format are ignored."""
    if name == "ue8m0":
        return _table(name)[np.asarray(codes).astype(np.uint8)]
    form = FORMATS[name]
    bits = np.ascontiguousarray(codes)
    if bits.dtype != form.storage:
        bits = bits.astype(form.storage)
    if name == "f64":
        return bits.view(np.float64)
    if name == "f32":
        return bits.view(np.float32)
    if name == "tf32":
        return (bits & np.uint32(0xFFFF_E000)).view(np.float32)
    if name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if name == "f16":
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes quiet
            return bits.view(np.float16).astype(np.float32)
    values: Values = _table(name)[bits & np.uint8(2 * form.sign - 1)]
    return values


@functools.cache
def _table(name: str) -> Values:
    """The values of all codes of a format of at most 8 bits."""
    codes = np.arange(256, dtype=np.int32)
    if name == "ue8m0":
        values = np.ldexp(np.float64(1), codes - 127)
        values[UE8M0_NAN] = np.nan
        powers: Values = values.astype(np.float32)
        return powers
    form = FORMATS[name]
    magnitude = codes & (form.sign - 1)
    exponent = magnitude >> form.mantissa_bits
    significand = (magnitude & ((1 << form.mantissa_bits) - 1)) + np.where(exponent > 0, 1 << form.mantissa_bits, 0)
    values = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - form.bias - form.mantissa_bits)
    values[magnitude > form.largest] = np.nan
    if form.infinity is not None:
        values[magnitude == form.infinity] = np.inf
    signed: Values = np.where(codes & form.sign, -values, values).astype(np.float32)
    return signed


def encode(values: npt.ArrayLike, name: str) -> Codes:
    """The codes of float32 or float64 values, rounded once, to the nearest, ties to even.

    What is beyond the largest number becomes infinity; in a format that has none, the largest number.
    """
    array = np.ascontiguousarray(values)
    if array.dtype != np.float64:
        array = array.astype(np.float32)
    form, source = FORMATS[name], FORMATS["f64" if array.dtype == np.float64 else "f32"]
    bits = array.view(source.storage)
    magnitude = (bits & source.storage(source.sign - 1)).astype(np.uint64)
    code = magnitude if form is source else _round(magnitude, source, form)
    code = np.where(code > form.largest, np.uint64(form.largest if form.infinity is None else form.infinity), code)
    code = np.where(bits & source.storage(source.sign), code | np.uint64(form.sign), code)
    code = np.where(np.isnan(array), np.uint64(form.nan), code)
    return (code << np.uint64(form.zeros)).astype(form.storage)


def _round(magnitude: Codes, source: Format, form: Format) -> Codes:
    """The code of a magnitude, beyond ``form.largest`` where it overflows."""
    one = np.uint64(1)
    exponent = magnitude >> np.uint64(source.mantissa_bits)
    fraction = magnitude & np.uint64((1 << source.mantissa_bits) - 1)
    significand = fraction + np.where(exponent > 0, np.uint64(1 << source.mantissa_bits), np.uint64(0))
    rebased = np.maximum(exponent, 1).astype(np.int64) + (form.bias - source.bias)  # 1 and up: a normal number
    dropped = source.mantissa_bits - form.mantissa_bits
    shift = np.minimum(dropped + np.maximum(1 - rebased, 0), source.mantissa_bits + 3).astype(np.uint64)
    addend = (one << (shift - one)) - one + ((significand >> shift) & one)
    # The significand's leading bit, where it has one, adds 1 to the exponent field.
    field = np.maximum(rebased - 1, 0).astype(np.uint64) << np.uint64(form.mantissa_bits)
    rounded: Codes = ((significand + addend) >> shift) + field
    return rounded


def unpack_nibbles(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The 4-bit codes in bytes, along the last axis, the low half of a byte first."""
    return np.stack([data & np.uint8(15), data >> np.uint8(4)], axis=-1).reshape(*data.shape[:-1], -1)


def pack_nibbles(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The inverse of ``unpack_nibbles``; the last axis has an even length."""
    pairs = codes.reshape(*codes.shape[:-1], -1, 2)
    return (pairs[..., 0] | (pairs[..., 1] << np.uint8(4))).astype(np.uint8)


def unpack_six_bits(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The 6-bit codes in bytes without gaps, along the last axis, from the lowest bit on: four in three bytes."""
    groups = data.reshape(*data.shape[:-1], -1, 3).astype(np.uint32)
    word = groups[..., 0] | (groups[..., 1] << 8) | (groups[..., 2] << 16)
    codes = np.stack([(word >> shift) & 63 for shift in (0, 6, 12, 18)], axis=-1)
    return codes.reshape(*data.shape[:-1], -1).astype(np.uint8)


def add(a: npt.ArrayLike, b: npt.ArrayLike, name: str) -> Codes:
    """The codes of the sums, rounded to nearest, as reductions in memory (``cp.reduce``) have them: of f64 a NaN stays
    as it is, the one of ``b`` first."""
    with np.errstate(all="ignore"):
        left, right = decode(a, name), decode(b, name)
        # Exact enough: float32 has more than twice the bits of f16 and bf16, so rounding its sum again is innocuous.
        total = left + right
        if name != "f64":
            return encode(total, name)
    bits = np.where(np.isnan(total), _INVALID_F64, total.view(np.uint64))
    bits = np.where(np.isnan(left), left.view(np.uint64), bits)
    return np.where(np.isnan(right), right.view(np.uint64), bits)


def minimum(a: npt.ArrayLike, b: npt.ArrayLike, name: str) -> Codes:
    """The codes of the smaller values, -0 below +0; of a number and a NaN the number."""
    return _extreme(a, b, name, smaller=True)


def maximum(a: npt.ArrayLike, b: npt.ArrayLike, name: str) -> Codes:
    """As ``minimum``, of the larger values."""
    return _extreme(a, b, name, smaller=False)


def _extreme(a: npt.ArrayLike, b: npt.ArrayLike, name: str, smaller: bool) -> Codes:
    form = FORMATS[name]
    left, right = np.asarray(a).astype(form.storage), np.asarray(b).astype(form.storage)
    x, y = decode(left, name), decode(right, name)
    with np.errstate(invalid="ignore"):
        first = np.where(x == y, np.signbit(x), x < y) == smaller
    result = np.where(np.isnan(y) | (first & ~np.isnan(x)), left, right)
    return np.where(np.isnan(x) & np.isnan(y), form.storage(form.nan), result).astype(form.storage)
