"""Conversions to the floating-point formats of PTX with every way of rounding: what ``cvt`` must give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.numbers import FORMATS, UE8M0_LARGEST, UE8M0_NAN, Format

Codes = npt.NDArray[Any]  # unsigned integers
Values = npt.NDArray[Any]  # float32 or float64

# Beyond this many discarded bits a number of 24 bits is zero whatever 16 random bits are added to it.
_NOTHING_LEFT = 40


def encode(
    values: npt.ArrayLike,
    name: str,
    rounding: str = "rn",
    *,
    saturate: bool = False,
    relu: bool = False,
    random: npt.ArrayLike | None = None,
    random_bits: int = 16,
) -> Codes:
    """The codes of float32 or float64 values, rounded once.

    rounding: ``rn``, ``rna`` (ties away from zero), ``rz``, ``rm``, ``rp``, or ``rs``: the carry of adding ``random``
    (that many bits) to the top of the discarded bits; float32 values only. saturate: ``.satfinite``, what is beyond the
    largest number becomes it. A format without infinities always saturates. relu: negative values, -0 among them, give
    +0; NaN stays NaN.
    """
    array = np.ascontiguousarray(values)
    if array.dtype != np.float64:
        array = array.astype(np.float32)
    if name == "ue8m0":
        return _encode_exponent(array, rounding, saturate)
    form = FORMATS[name]
    if name == "f64":
        with np.errstate(invalid="ignore"):
            array = array.astype(np.float64)
    source = FORMATS["f64" if array.dtype == np.float64 else "f32"]
    bits = array.view(source.storage)
    sign = (bits & source.storage(source.sign)) != 0
    magnitude = (bits & source.storage(source.sign - 1)).astype(np.uint64)
    if form is source:
        code = magnitude
    else:
        code = _round(magnitude, sign, source, form, rounding, random, random_bits)
    limit = form.largest if saturate or form.infinity is None else form.infinity
    infinite = magnitude == source.infinity
    overflow = code > form.largest
    if rounding == "rz":
        code = np.where(overflow & ~infinite, form.largest, code)
    elif rounding in ("rm", "rp"):
        code = np.where(overflow & ~infinite & (sign == (rounding == "rp")), form.largest, code)
    code = np.where((overflow & (code > form.largest)) | infinite, np.uint64(limit), code)
    code = np.where(sign, np.uint64(0) if relu else code | np.uint64(form.sign), code)
    code = np.where(np.isnan(array), np.uint64(form.nan), code)
    return (code << np.uint64(form.zeros)).astype(form.storage)


def _round(
    magnitude: Codes,
    negative: npt.NDArray[np.bool_],
    source: Format,
    form: Format,
    rounding: str,
    random: npt.ArrayLike | None,
    random_bits: int,
) -> Codes:
    """The code of a finite magnitude, beyond ``form.largest`` where it overflows."""
    exponent = magnitude >> np.uint64(source.mantissa_bits)
    fraction = magnitude & np.uint64((1 << source.mantissa_bits) - 1)
    significand = fraction + np.where(exponent > 0, np.uint64(1 << source.mantissa_bits), np.uint64(0))
    rebased = np.maximum(exponent, 1).astype(np.int64) + (form.bias - source.bias)  # 1 and up: a normal number
    dropped = source.mantissa_bits - form.mantissa_bits
    most = _NOTHING_LEFT if rounding == "rs" else source.mantissa_bits + 3
    shift = np.minimum(dropped + np.maximum(1 - rebased, 0), most).astype(np.uint64)
    one = np.uint64(1)
    if rounding == "rn":
        addend = (one << (shift - one)) - one + ((significand >> shift) & one)
    elif rounding == "rna":
        addend = one << (shift - one)
    elif rounding == "rs":
        assert source.name == "f32" and random is not None
        addend = np.asarray(random).astype(np.uint64) << (shift - np.uint64(random_bits))
    elif rounding == "rz":
        addend = np.zeros_like(shift)
    else:
        away = negative if rounding == "rm" else ~negative
        addend = np.where(away, (one << shift) - one, np.uint64(0))
    # The significand's leading bit, where it has one, adds 1 to the exponent field.
    field = np.maximum(rebased - 1, 0).astype(np.uint64) << np.uint64(form.mantissa_bits)
    rounded: Codes = ((significand + addend) >> shift) + field
    return rounded


def _encode_exponent(values: Values, rounding: str, saturate: bool) -> Codes:
    """To ue8m0: the exponent of the magnitude, rounded down (``rz``) or up (``rp``); at least -127."""
    assert rounding in ("rz", "rp"), rounding
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(np.abs(values.astype(np.float64)))
    power = exponent - 1 + 127 + np.where((rounding == "rp") & (mantissa > 0.5), 1, 0)
    over = (power > UE8M0_LARGEST) | np.isinf(values)
    power = np.where(over, UE8M0_LARGEST if saturate else UE8M0_NAN, np.maximum(power, 0))
    power = np.where(values == 0, 0, power)
    return np.where(np.isnan(values), UE8M0_NAN, power).astype(np.uint8)
