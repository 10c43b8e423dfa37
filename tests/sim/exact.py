"""Floating-point numbers by their definition, in rational arithmetic: what results of the simulator must be."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from ptxdsl.sim.numbers import FORMATS

NAN = "nan"
INTEGER_BITS = {"f64": np.uint64, "f32": np.uint32, "f16": np.uint16, "bf16": np.uint16}


def power_of_two(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


@cache  # tests take their operands from a hundred codes
def value(code: int, name: str) -> Fraction | float | None:
    """Of a code: a Fraction, an infinity, or None for NaN."""
    form = FORMATS[name]
    code >>= form.zeros
    magnitude = code & (form.sign - 1)
    if magnitude > form.largest:
        return math.copysign(math.inf, -1 if code & form.sign else 1) if magnitude == form.infinity else None
    exponent, fraction = magnitude >> form.mantissa_bits, magnitude & ((1 << form.mantissa_bits) - 1)
    significand = fraction + ((1 << form.mantissa_bits) if exponent else 0)
    found = significand * power_of_two(max(exponent, 1) - form.bias - form.mantissa_bits)
    return -found if code & form.sign else found


def magnitude_rounded(x: Fraction, name: str, mode: str) -> int:
    """The code of a magnitude, by its place between two representable neighbours; overflow unbounded.

    mode: nearest (ties to even), away (nearest, ties away from zero), down, up.
    """
    form = FORMATS[name]
    exponent = 1 - form.bias  # of the least normal number, and of all subnormal ones
    if x:
        guess = x.numerator.bit_length() - x.denominator.bit_length()
        exponent = max(exponent, guess if power_of_two(guess) <= x else guess - 1)
    places = form.mantissa_bits - exponent
    whole = x.denominator << max(-places, 0)
    low, rest = divmod(x.numerator << max(places, 0), whole)
    up = {
        "down": False,
        "up": rest > 0,
        "away": 2 * rest >= whole,
        "nearest": 2 * rest > whole or (2 * rest == whole and low % 2 == 1),
    }[mode]
    # The leading bit of a normal number's significand adds 1 to the exponent field below it.
    return low + up + ((exponent + form.bias - 1) << form.mantissa_bits)


def rounded(x: Fraction, name: str, rounding: str, negative: bool, saturate: bool = False) -> int:
    """The code of a finite value whose magnitude is x."""
    form = FORMATS[name]
    mode = {"rn": "nearest", "rna": "away", "rz": "down"}.get(rounding)
    if mode is None:
        mode = "up" if negative == (rounding == "rm") else "down"
    code = magnitude_rounded(x, name, mode)
    if code > form.largest:
        code = form.largest if saturate or form.infinity is None or mode == "down" else form.infinity
    return (code | (form.sign if negative else 0)) << form.zeros


def root(x: Fraction) -> Fraction:
    """A number that rounds as the square root does in every mode and to any format: cut, with a bit for the rest."""
    places = 700  # the root of the least number, 2**-1074, and its last place are above 2**-600
    scaled = (x.numerator << (2 * places)) // x.denominator
    whole = math.isqrt(scaled)
    inexact = whole * whole != scaled or (x.numerator << (2 * places)) % x.denominator != 0
    return Fraction(2 * whole + inexact, 1 << (places + 1))


OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
    "sqrt": root,
}
HOST = {**OPERATIONS, "rcp": lambda a: np.divide(a.dtype.type(1), a), "sqrt": np.sqrt}


def computed(operation: str, codes: list[int], name: str, rounding: str) -> int | None:
    """The code of an operation's result; None: NaN. Infinities and divisions by zero are the host's, on doubles."""
    form = FORMATS[name]
    values = [value(code, name) for code in codes]
    if None in values:
        return None
    by_zero = operation in ("div", "rcp") and values[-1] == 0
    if by_zero or any(isinstance(v, float) for v in values) or (operation == "sqrt" and codes[0] & form.sign):
        with np.errstate(all="ignore"):
            # Exact where an operand is infinite or a divisor zero. The finite ones count by their sign alone.
            doubles = [np.float64(_stand_in(v, c & form.sign)) for v, c in zip(values, codes, strict=True)]
            result = float(HOST[operation](*doubles))
        if math.isnan(result):
            return None
        sign = form.sign if math.copysign(1, result) < 0 else 0
        assert math.isinf(result) or result == 0, (operation, doubles, result)
        return sign | (form.infinity if math.isinf(result) else 0)
    exact = OPERATIONS[operation](*values)
    if exact == 0:
        return form.sign if _zero_is_negative(operation, codes, values, form.sign, rounding) else 0
    return rounded(abs(exact), name, rounding, exact < 0)


def _stand_in(v: Fraction | float, sign: int) -> float:
    if isinstance(v, float):
        return v
    return math.copysign(0.0 if v == 0 else 1.0, -1 if sign else 1)


def _zero_is_negative(operation: str, codes: list[int], values: list, sign: int, rounding: str) -> bool:
    signs = [bool(code & sign) for code in codes]
    if operation in ("mul", "div"):
        return signs[0] != signs[1]
    if operation in ("rcp", "sqrt"):
        return signs[0]
    summands = {"add": signs, "sub": [signs[0], not signs[-1]], "fma": [signs[0] != signs[1], signs[-1]]}[operation]
    return summands[0] if summands[0] == summands[1] else rounding == "rm"


def interesting(name: str, rng: np.random.Generator, count: int = 20) -> np.ndarray:
    """Codes of a format: zeros, ends of the ranges, ones, infinities, NaNs, and random ones near and far from 1."""
    form = FORMATS[name]
    least_normal = 1 << form.mantissa_bits
    one = form.bias << form.mantissa_bits
    positive = [0, 1, 2, least_normal - 1, least_normal, least_normal + 1, one - 1, one, one + 1, form.largest - 1]
    positive += [form.largest, form.infinity, form.nan, form.infinity + 1, one + (least_normal >> 1)]
    positive += [int(c) for c in rng.integers(0, form.infinity, count, dtype=np.uint64)]
    spread = 3 * least_normal
    positive += [int(c) for c in rng.integers(one - spread, one + spread, count, dtype=np.int64)]
    dtype = INTEGER_BITS[name]
    codes = np.array(positive, np.uint64)
    return np.concatenate([codes, codes | np.uint64(form.sign)]).astype(dtype)


def tuples(codes: np.ndarray, arity: int, rng: np.random.Generator, limit: int = 1500) -> list[np.ndarray]:
    """Operands: all pairs of a sample first, then random combinations."""
    if arity == 1:
        return [codes]
    picks = rng.integers(0, len(codes), (arity, limit))
    sample = codes[rng.permutation(len(codes))[:20]]
    grid = np.meshgrid(*([sample] * 2), indexing="ij")
    operands = [codes[pick] for pick in picks]
    for i in range(2):
        operands[i][: grid[i].size] = grid[i].reshape(-1)
    return operands
