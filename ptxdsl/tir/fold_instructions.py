"""Instructions on constants: those of the library whose results the PTX ISA gives to the bit.

Integers are taken and given without a sign, of as many bits as the instruction's name says.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def _reversed(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 or math.isnan(value) else math.nan


def _reciprocal(value: float) -> float:
    return 1 / value if value else math.copysign(math.inf, value)


def _whole(rule: Callable[[float], int], value: float) -> float:
    """A number rounded to a whole one, which keeps the sign of a zero."""
    return math.copysign(float(rule(value)), value) if math.isfinite(value) else value


BITS: dict[str, Callable[..., int]] = {
    f"{name}_b{bits}": lambda *values, of=of, bits=bits: of(*values, bits)
    for bits in (32, 64)
    for name, of in (
        ("popc", lambda value, bits: value.bit_count()),
        ("clz", lambda value, bits: bits - value.bit_length()),
        ("brev", _reversed),
        ("bswap", lambda value, bits: int.from_bytes(value.to_bytes(bits // 8, "little"), "big")),
    )
} | {f"mulhi_u{bits}": lambda a, b, bits=bits: a * b >> bits for bits in (32, 64)}

# A float32 is computed as a Float64 and rounded again, which is the same as rounding once for a root and a quotient
# (Figueroa, "When is double rounding innocuous?", 1995).
FLOATS: dict[str, Callable[[float], float]] = {
    f"{name}_f{bits}": of
    for bits in (32, 64)
    for name, of in (
        ("sqrt_rn", _sqrt),
        ("rcp_rn", _reciprocal),
        ("floor", lambda value: _whole(math.floor, value)),
        ("ceil", lambda value: _whole(math.ceil, value)),
        ("trunc", lambda value: _whole(math.trunc, value)),
        ("rint", lambda value: _whole(round, value)),
    )
}
