"""Constant folding: what every pure TIR operation computes, on Python numbers.

This is the language's arithmetic in one place: nothing is undefined (see ``tir``). Compile-time evaluation runs on
it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.tir import Const, Ty, Value

if TYPE_CHECKING:
    from fractions import Fraction

# The precision (with the hidden bit), least exponent of a normal number, and largest finite value of each format.
_FORMATS = {
    "f64": (53, -1022, None), "f32": (24, -126, None), "f16": (11, -14, 65504.0), "bf16": (8, -126, None),
    "f8e4m3": (4, -6, 448.0), "f8e5m2": (3, -14, 57344.0),
}  # fmt: skip


def wrap(value: int, bits: int) -> int:
    """Two's complement, signed; an i1 is 0 or 1."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def round_float(value: float | Fraction, ty: Ty) -> float:
    """The nearest value of a float type, ties to even. Overflow gives infinity; fp8 saturates, infinity too."""
    from fractions import Fraction  # where there are floats

    precision, least, largest = _FORMATS[ty.name]
    if isinstance(value, float):
        if ty.name == "f64" or math.isnan(value) or value == 0:
            return value
        if math.isinf(value):
            return math.copysign(largest, value) if ty.name.startswith("f8") and largest else value
        exact = Fraction(value)
    else:
        exact = value
        if exact == 0:
            return 0.0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    ulp = Fraction(2) ** (max(exponent, least) - precision + 1)
    rounded = round(magnitude / ulp) * ulp
    if largest is not None and rounded > Fraction(largest):
        result = largest if ty.name.startswith("f8") else math.inf
    else:
        limit = {"f64": 1024, "f32": 128, "bf16": 128}.get(ty.name, 2000)
        result = math.inf if rounded >= Fraction(2) ** limit else float(rounded)
    return result if exact > 0 else -result


def _floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _mod(a: int, b: int) -> int:
    return a % b if b else 0


def _truncdiv(a: int, b: int) -> int:
    if b == 0:
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _fdiv(a: float, b: float) -> float:
    if b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    try:
        return a / b
    except OverflowError:
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _floored(name: str, a: float, b: float, ty: Ty) -> float:
    """``ffloordiv`` and ``fmod``: the quotient is rounded before its floor is taken, ``a - floor * b`` once."""
    quotient = round_float(_fdiv(a, b), ty)
    floor = math.copysign(math.floor(quotient), quotient) if math.isfinite(quotient) else quotient
    return floor if name == "ffloordiv" else round_float(_fma(-floor, b, a), ty)


def _order(value: float) -> tuple[float, float]:
    """-0.0 is below 0.0, as in PTX's min and max."""
    return value, math.copysign(1.0, value)


def _fmin(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else min(a, b, key=_order)


def _fmax(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b, key=_order)


def _fma(a: float, b: float, c: float) -> float | Fraction:
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    from fractions import Fraction  # where there are floats

    # A zero has a sign, which fractions have not; where the sum is exact, so is that of floats.
    return Fraction(a) * Fraction(b) + Fraction(c) or a * b + c


# Each takes signed operands; ".u" forms are given unsigned ones.
_INTEGER: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div.s": _truncdiv, "div.u": _floordiv, "floordiv.s": _floordiv, "floordiv.u": _floordiv,
    "mod.s": _mod, "mod.u": _mod, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "min.s": min, "min.u": min, "max.s": max, "max.u": max, "abs.s": abs, "not": lambda a: ~a,
}  # fmt: skip
_FLOAT: dict[str, Callable[..., float | Fraction]] = {
    "fadd": lambda a, b: a + b, "fsub": lambda a, b: a - b, "fmul": lambda a, b: a * b, "fdiv": _fdiv,
    "fneg": lambda a: -a, "fmin": _fmin, "fmax": _fmax, "fabs": abs, "fma": _fma,
}  # fmt: skip
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def _shift(name: str, a: int, b: int, bits: int) -> int:
    amount = unsigned(b, bits)
    if name == "shl":
        return 0 if amount >= bits else a << amount
    if name == "shr.u":
        return 0 if amount >= bits else unsigned(a, bits) >> amount
    return a >> min(amount, bits - 1)


def _to_int(value: float, bits: int, signed: bool) -> int:
    if math.isnan(value):
        return 0
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, math.trunc(value)))


_PACK = {"f64": "d", "f32": "f", "f16": "e", "i64": "q", "i32": "i", "i16": "h", "i8": "b"}


def _bitcast(value: Any, source: Ty, target: Ty) -> Any:
    if source.name == "bf16":
        data = struct.pack("<f", value)[2:]
    elif source.name in _PACK:
        data = struct.pack("<" + _PACK[source.name], value)
    else:
        return None
    if target.name == "bf16":
        return struct.unpack("<f", b"\0\0" + data)[0]
    return struct.unpack("<" + _PACK[target.name], data)[0] if target.name in _PACK else None


def _scalar(name: str, args: Sequence[Any], source: Ty, target: Ty) -> Any:
    """The result of one lane, or None where it is not folded."""
    base, _, suffix = name.partition(".")
    bits = source.bits
    if name in _INTEGER:
        values = [unsigned(a, bits) for a in args] if suffix == "u" else list(args)
        return wrap(_INTEGER[name](*values), target.bits)
    if name in ("shl", "shr.s", "shr.u"):
        return wrap(_shift(name, args[0], args[1], bits), bits)
    if name in ("ffloordiv", "fmod"):
        return _floored(name, args[0], args[1], target)
    if name in _FLOAT:
        try:
            return round_float(_FLOAT[name](*args), target)
        except OverflowError:
            return None
    if base in _COMPARE and source.is_int:
        values = [unsigned(a, bits) for a in args] if suffix == "u" else list(args)
        return int(_COMPARE[base](*values))
    if base[0] == "f" and base[1:] in _COMPARE:
        return int(_COMPARE[base[1:]](*args))
    if name == "ext.u":
        return wrap(unsigned(args[0], bits), target.bits)
    if name in ("ext.s", "trunc"):
        return wrap(args[0], target.bits)
    if base == "itof":
        from fractions import Fraction  # where there are floats

        return round_float(Fraction(unsigned(args[0], bits) if suffix == "u" else args[0]), target)
    if base == "ftoi":
        return wrap(_to_int(args[0], target.bits, suffix == "s"), target.bits)
    if name == "fcast":
        return round_float(args[0], target)
    if name == "bitcast":
        return _bitcast(args[0], source, target)
    from ptxdsl.tir.fold_instructions import BITS, FLOATS  # few constants come here

    if name in BITS:
        return wrap(BITS[name](*(unsigned(a, bits) for a in args)), target.bits)
    return round_float(FLOATS[name](args[0]), target) if name in FLOATS else None


def fold(name: str, operands: list[Value], attrs: dict[str, Any], result_types: list[Ty]) -> list[Const] | None:
    """The results of a pure operation on constants, or None if it is not foldable."""
    if not operands or not all(isinstance(v, Const) for v in operands):
        return None
    if len(result_types) != 1 and name != "pipe.step":
        return None
    args = [v.value for v in operands if isinstance(v, Const)]
    source = operands[0].ty
    if name == "pipe.step":
        return _step(args, attrs["stages"], source)
    if name == "select":
        return _select(operands, args)
    target = result_types[0]
    if name == "vec.splat":
        return [Const(target, (args[0],) * target.lanes)]
    if name == "vec.build":
        return [Const(target, tuple(args))]
    if name == "vec.extract":
        return [Const(target, args[0][args[1]])] if 0 <= args[1] < source.lanes else None
    if name == "vec.insert":
        lanes = list(args[0])
        if not 0 <= args[2] < len(lanes):
            return None
        lanes[args[2]] = args[1]
        return [Const(target, tuple(lanes))]
    if name.startswith(("vec.", "ptr.", "int.")):
        return None
    if source.lanes != target.lanes:
        return None
    if target.lanes == 1:
        value = _scalar(name, args, source, target)
        return None if value is None else [Const(target, value)]
    rows = [_scalar(name, row, source.scalar, target.scalar) for row in zip(*args, strict=True)]
    return None if None in rows else [Const(target, tuple(rows))]


def _select(operands: list[Value], args: list[Any]) -> list[Const] | None:
    if operands[0].ty.lanes == 1:
        chosen = operands[1] if args[0] else operands[2]
        assert isinstance(chosen, Const)
        return [chosen]
    lanes = tuple(a if c else b for c, a, b in zip(*args, strict=True))
    return [Const(operands[1].ty, lanes)]


def _step(args: list[Any], stages: int, ty: Ty) -> list[Const]:
    """PipelineState.step: ``elaborate/role_pipeline.py`` has the rule in words."""
    index, phase, count = args
    if stages == 1:
        return [Const(ty, index), Const(ty, phase ^ 1), Const(ty, wrap(count + 1, 32))]
    index = wrap(index + 1, 32)
    wrapped = index == stages
    return [Const(ty, 0 if wrapped else index), Const(ty, phase ^ wrapped), Const(ty, wrap(count + 1, 32))]
