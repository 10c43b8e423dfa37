"""Matrix products of the simulator: what is computed exactly, and where it is rounded.

Products of all types up to 32 bits are exact in float64, and so is their sum, with the accumulator, unless it needs
more than 53 bits; the result is rounded once, to the accumulator's type. The ISA leaves the order of accumulation and
its rounding open and asks for at least the precision of f32 (of f16, where that is the accumulator's type), so this
is one of the results it permits, the most exact one; tensor cores keep fewer bits. Integer sums are exact, then wrap
or saturate. f64 is a chain of fused multiply-adds, k ascending, each rounded as the instruction says.

Source: PTX ISA, "Precision and rounding" of ``mma``, ``wmma.mma`` and ``wgmma.mma_async``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def quiet() -> np.errstate:
    """Overflow and invalid operations are results like others: to be put around what an instruction computes."""
    return np.errstate(over="ignore", invalid="ignore")


def multiply_accumulate(a: Array, b: Array, c: Array | None) -> Array:
    """a (…, m, k) · b (…, k, n) + c in float64, of float32 multiplicands; c None: no accumulator."""
    product: Array = np.matmul(a.astype(np.float64), b.astype(np.float64))
    if c is not None:
        product += c
    return product


def exclusive_or_popcount(a: Array, b: Array, c: Array | None) -> Array:
    """Of rows of A and columns of B (elements 0.0 and 1.0) the number of places where they differ, plus c."""
    ones = a.sum(axis=-1, dtype=np.float64)[:, None] + b.sum(axis=-2, dtype=np.float64)[None, :]
    differing: Array = ones - 2 * multiply_accumulate(a, b, None)
    if c is not None:
        differing += c
    return differing


def multiply_accumulate_f64(a: Array, b: Array, c: Array, rounding: str) -> Array:
    """a (m, k) · b (k, n) + c as fused multiply-adds. rounding: ``rn``, ``rz``, ``rm`` (down) or ``rp`` (up)."""
    for k in range(a.shape[1]):
        c = fused_multiply_add(a[:, k, None], b[None, k, :], c, rounding)
    return c


def fused_multiply_add(a: Array, b: Array, c: Array, rounding: str = "rn") -> Array:
    """a · b + c of float64 arrays, rounded once.

    To nearest, by the algorithm of Boldo and Melquiond ("Emulation of FMA and correctly rounded sums: proved algorithms
    using rounding to odd", 2008); where that could overflow or underflow, and for the other roundings, by rationals.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        high, low = _two_product(a, b)
        sum_high, sum_low = _two_sum(c, low)
        v_high, v_low = _two_sum(high, sum_high)
        result = v_high + _add_to_odd(sum_low, v_low)
        plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)
        # Exponents for which neither the splitting nor the low parts leave the range of float64.
        product = np.abs(a * b)
        easy = (np.abs(a) < 1e290) & (np.abs(b) < 1e290) & (product < 1e290) & (np.abs(c) < 1e290)
        easy &= (product > 1e-260) & ((np.abs(c) > 1e-260) | (c == 0))
        special = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c) | (a == 0) | (b == 0)
    result = np.where(special, plain, result)
    hard = ~special if rounding != "rn" else ~(special | easy)
    for place in np.argwhere(hard):
        index = tuple(place)
        result[index] = _round(Fraction(float(a[index])) * Fraction(float(b[index])), float(c[index]), rounding)
    if rounding != "rn":
        result = _directed_zero(result, a, b, c, rounding)
    return result


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    product = x * y
    return product, x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)


def _split(x: Array) -> tuple[Array, Array]:
    scaled = x * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _add_to_odd(x: Array, y: Array) -> Array:
    """x + y, an inexact sum rounded to the neighbour whose last bit is 1."""
    total, error = _two_sum(x, y)
    bits = total.view(np.int64)
    inexact_and_even = (error != 0) & ((bits & 1) == 0)
    away = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact_and_even, bits + away, bits).view(np.float64)


def _round(product: Fraction, c: float, rounding: str) -> float:
    exact = product + Fraction(c)
    if exact == 0:
        return 0.0 if rounding != "rm" else -0.0
    try:
        nearest = float(exact)  # Python divides integers to nearest even, subnormal results too
    except OverflowError:
        nearest = np.inf if exact > 0 else -np.inf
    if rounding == "rn" or (np.isfinite(nearest) and Fraction(nearest) == exact):
        return nearest
    above = nearest == np.inf or (np.isfinite(nearest) and Fraction(nearest) > exact)
    lower = float(np.nextafter(nearest, -np.inf)) if above else nearest
    upper = nearest if above else float(np.nextafter(nearest, np.inf))
    towards_zero = lower if exact > 0 else upper
    return {"rz": towards_zero, "rm": lower, "rp": upper}[rounding]


def _directed_zero(result: Array, a: Array, b: Array, c: Array, rounding: str) -> Array:
    """A zero product of one sign and a zero c of the other add to -0 where the rounding is downwards."""
    opposite = ((a == 0) | (b == 0)) & (c == 0) & ((np.signbit(a) ^ np.signbit(b)) != np.signbit(c))
    return np.where(opposite & (rounding == "rm"), -0.0, result)
