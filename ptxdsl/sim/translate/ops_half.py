"""f16 and bf16 arithmetic, scalar and packed in pairs. Each result is the exact one, rounded once.

Source: PTX ISA, "Half Precision Floating Point Instructions". NaN results are 0x7fff.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.numbers import FORMATS
from ptxdsl.sim.translate.emitter import Unsupported
from ptxdsl.sim.translate.ops_float_common import encode, half_is_nan, saturate_half, sum_to_odd, widen_half
from ptxdsl.sim.translate.ops_form import Form, Operation
from ptxdsl.sim.translate.ops_value import Lanes

CANONICAL_NAN = 0x7FFF


def halves(value: Lanes) -> Lanes:
    """i16 lanes of scalars, or twice as many of pairs."""
    return value.split("i16")


def put(form: Form, codes: Lanes) -> None:
    form.result(codes.split("i32") if form.type.endswith("x2") else codes)


def kind_of(form: Form) -> str:
    return form.type.removesuffix("x2")


# What a result is flushed below: the smallest normal number, less half of what an 11-bit number there is exact to. The
# card rounds before it looks, as if exponents had no end.
LEAST_F16 = 2.0**-14 * (1 - 2.0**-12)


def flush_half(bits: Lanes, kind: str) -> Lanes:
    small = (bits & 0x7FFF).icmp("ult", 1 << FORMATS[kind].mantissa_bits)
    return small.choose(bits & 0x8000, bits)


# On floats, which have more than twice the bits of either format, rounding the nearest float again is innocuous (S. A.
# Figueroa, 1995), unless the float is subnormal: bf16 products are computed in double. A product of f16 numbers is an
# exact float, far from subnormal; the sum of a product and a number is rounded to odd.
def _add(a: Lanes, b: Lanes, kind: str) -> Lanes:
    return a + b


def _sub(a: Lanes, b: Lanes, kind: str) -> Lanes:
    return a - b


def _mul(a: Lanes, b: Lanes, kind: str) -> Lanes:
    return a * b if kind == "f16" else a.fpext() * b.fpext()


def _fma(a: Lanes, b: Lanes, c: Lanes, kind: str) -> Lanes:
    return sum_to_odd(a * b, c) if kind == "f16" else sum_to_odd(a.fpext() * b.fpext(), c.fpext())


def arithmetic(function: Callable[..., Lanes], arity: int) -> Operation:
    def emit(form: Form) -> None:
        form.has("rn")
        kind = kind_of(form)
        ftz, sat, relu = form.has("ftz"), form.has("sat"), form.has("relu")

        def compute(*values: Lanes) -> Lanes:
            if ftz:
                values = tuple(flush_half(value, kind) for value in values)
            result = function(*(widen_half(value, kind) for value in values), kind)
            codes = encode(result, kind, relu=relu).trunc("i16")
            if ftz:
                tiny = result.abs().fcmp("olt", LEAST_F16)
                codes = tiny.choose(codes & 0x8000, codes)
            return saturate_half(codes, kind) if sat else codes

        put(form, form.apart(compute, *(halves(value) for value in form.sources(arity))))

    return emit


def ordered(codes: Lanes) -> Lanes:
    """Signed integers in the order of the numbers, -0 below +0."""
    return codes.icmp("slt", 0).choose(codes ^ 0x7FFF, codes)


def extreme(smaller: bool) -> Operation:
    """min or max, -0 below +0; of a number and a NaN the number, or with .NaN a NaN."""

    def emit(form: Form) -> None:
        kind = kind_of(form)
        values = [halves(value) for value in form.sources(2)]
        ftz, nan, xorsign, absolute = (form.has(m) for m in ("ftz", "NaN", "xorsign", "abs"))
        if ftz:
            values = [flush_half(value, kind) for value in values]
        sign = values[0] ^ values[1]
        if absolute:
            values = [value & 0x7FFF for value in values]
        result = extreme_of_two(values[0], values[1], kind, smaller, nan)
        if xorsign:
            result = half_is_nan(result, kind).choose(result, result | (sign & 0x8000))
        put(form, result)

    return emit


def extreme_of_two(a: Lanes, b: Lanes, kind: str, smaller: bool, nan: bool) -> Lanes:
    """min or max of codes (i16)."""
    a_nan, b_nan = half_is_nan(a, kind), half_is_nan(b, kind)
    first = ordered(a).icmp("slt" if smaller else "sgt", ordered(b))
    if nan:
        return (a_nan | b_nan).choose(CANONICAL_NAN, first.choose(a, b))
    picked = (b_nan | (first & ~a_nan)).choose(a, b)
    return (a_nan & b_nan).choose(CANONICAL_NAN, picked)


def sign_changed(change: Callable[[Lanes], Lanes]) -> Operation:
    """abs and neg: the card does them by an addition, which makes NaNs canonical."""

    def emit(form: Form) -> None:
        kind = kind_of(form)
        (a,) = (halves(value) for value in form.sources(1))
        if form.has("ftz"):
            if kind != "f16":
                raise Unsupported(".ftz of bf16")
            a = flush_half(a, kind)
        put(form, half_is_nan(a, kind).choose(CANONICAL_NAN, change(a)))

    return emit


_TYPES = "f16 bf16 f16x2 bf16x2"

HALF: dict[str, dict[str, Operation]] = {
    "add": {_TYPES: arithmetic(_add, 2)},
    "sub": {_TYPES: arithmetic(_sub, 2)},
    "mul": {_TYPES: arithmetic(_mul, 2)},
    "fma": {_TYPES: arithmetic(_fma, 3)},
    "min": {_TYPES: extreme(True)},
    "max": {_TYPES: extreme(False)},
    "abs": {_TYPES: sign_changed(lambda a: a & 0x7FFF)},
    "neg": {_TYPES: sign_changed(lambda a: a ^ 0x8000)},
}
