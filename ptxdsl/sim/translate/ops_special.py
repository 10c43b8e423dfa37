"""Approximate functions: rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh, div.approx and div.full.

The ISA bounds the error of these and leaves the values to the card. Here each is computed in double, to about 2**-40,
by multiplications and additions alone, and rounded once: the same on every host, within every bound. sin and cos
multiply by 1/2pi as the card's code does (in float, cut), which is what they are off by for large angles.

Source: PTX ISA, "Floating Point Instructions" (the ``.approx`` forms), "Half Precision Floating Point Instructions"
(tanh, ex2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from ptxdsl.sim.translate.emitter import Unsupported
from ptxdsl.sim.translate.ops_float import ARITHMETIC, arithmetic
from ptxdsl.sim.translate.ops_float_common import (
    canonical,
    encode,
    flush,
    payload,
    round_to_float,
    widen_half,
)
from ptxdsl.sim.translate.ops_form import ROUNDINGS, Form, Operation
from ptxdsl.sim.translate.ops_value import Lanes

Function = Callable[[Lanes], Lanes]

_LN2 = math.log(2)
# 2**r for |r| <= 1/2, by its Taylor series: the rest is below 2**-46.
_EX2 = [_LN2**i / math.factorial(i) for i in range(12)]
# log2((1 + t) / (1 - t)) / t in t**2, for |t| <= 0.172: the rest is below 2**-50.
_LG2 = [2 / ((2 * i + 1) * _LN2) for i in range(9)]
# sin and cos of 2*pi*v for |v| <= 1/8, in v**2.
_TURN = 2 * math.pi
_SIN = [float((-1) ** i * _TURN ** (2 * i + 1) / math.factorial(2 * i + 1)) for i in range(8)]
_COS = [float((-1) ** i * _TURN ** (2 * i) / math.factorial(2 * i)) for i in range(9)]

# What ptxas multiplies an angle by: 1/2pi to the nearest float below.
_ONE_TURN = float(Fraction(0xA2F983, 1 << 26))


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """By Horner's rule, the constant coefficient first."""
    result = x.like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def exp2(x: Lanes) -> Lanes:
    """2**x of doubles, for results in the range of f32; 0 or infinity beyond it."""
    bounded = x.fcmp("olt", -1000.0).choose(-1000.0, x)
    bounded = bounded.fcmp("ogt", 1000.0).choose(1000.0, bounded)
    whole = bounded.intrinsic("rint")
    power = _truncated(whole) + 1023
    return polynomial(bounded - whole, _EX2) * power.shl(52).as_float()


def _truncated(whole: Lanes) -> Lanes:
    """A whole double as an i64; NaN gives 0."""
    return whole.intrinsic("fptosi.sat", result="i64")


def log2(x: Lanes) -> Lanes:
    """Of doubles that are normal, zero, infinite or NaN."""
    bits = x.as_bits()
    # The exponent such that the significand lies between sqrt(1/2) and sqrt(2).
    exponent = (bits - 0x3FE6_A09E_0000_0000).ashr(52)
    m = (bits - exponent.shl(52)).as_float()
    t = (m - 1.0) / (m + 1.0)
    result = polynomial(t * t, _LG2) * t + exponent.to_float("double", signed=True)
    result = x.fcmp("oeq", math.inf).choose(math.inf, result)
    result = x.fcmp("oeq", 0.0).choose(-math.inf, result)
    return x.fcmp("uge", 0.0).choose(x.is_nan().choose(x, result), math.nan)


def sin_turns(x: Lanes, quarter: int) -> Lanes:
    """sin(2*pi*x) of doubles, or cos with ``quarter`` 1."""
    fraction = x - x.intrinsic("rint")
    eighth = (fraction * 4.0).intrinsic("rint")
    v = fraction - eighth * 0.25
    square = v * v
    sin, cos = polynomial(square, _SIN) * v, polynomial(square, _COS)
    place = _truncated(eighth) + quarter
    result = (place & 1).icmp("ne", 0).choose(cos, sin)
    result = (place & 2).icmp("ne", 0).choose(-result, result)
    return result if quarter else x.fcmp("oeq", 0.0).choose(x, result)  # -0 stays


def tanh(x: Lanes) -> Lanes:
    bounded = x.fcmp("olt", -30.0).choose(-30.0, x)
    bounded = bounded.fcmp("ogt", 30.0).choose(30.0, bounded)
    power = exp2(bounded * (2 / _LN2))
    large = (power - 1.0) / (power + 1.0)
    small = x * (1.0 - x * x * (1 / 3))
    return x.abs().fcmp("olt", 2.0**-9).choose(small, large)


def _in_double(function: Function) -> Function:
    """A function of floats computed in double."""
    return lambda x: function(x.fpext()).fptrunc()


def _turns(x: Lanes) -> Lanes:
    return round_to_float(x.fpext() * _ONE_TURN, "rz").fpext()


APPROXIMATE: dict[str, Function] = {
    "ex2": _in_double(exp2),
    "lg2": _in_double(log2),
    "sin": lambda x: sin_turns(_turns(x), 0).fptrunc(),
    "cos": lambda x: sin_turns(_turns(x), 1).fptrunc(),
    "tanh": _in_double(tanh),
    "rcp": lambda x: 1.0 / x,
    "sqrt": lambda x: x.intrinsic("sqrt"),
    "rsqrt": _in_double(lambda x: 1.0 / x.intrinsic("sqrt")),
}


def approximate(name: str) -> Operation:
    """``<name>.approx{.ftz}`` of f32, f16 and bf16."""
    function = APPROXIMATE[name]

    def emit(form: Form) -> None:
        form.needs("approx")
        ftz = form.has("ftz")

        def of_floats(x: Lanes) -> Lanes:
            result = function(flush(x) if ftz else x)
            return flush(result) if ftz else result

        def of_halves(a: Lanes) -> Lanes:
            kind = form.type.removesuffix("x2")
            halves = [a] if a.element == "i16" else [a.trunc("i16"), a.lshr(16).trunc("i16")]
            codes = [encode(of_floats(widen_half(half, kind)), kind) for half in halves]
            return codes[0].trunc("i16") if len(codes) == 1 else codes[0] | codes[1].shl(16)

        (a,) = form.sources(1)
        form.result(form.apart((lambda x: canonical(of_floats(x))) if form.type == "f32" else of_halves, a))

    return emit


def rounded_or_approximate(name: str) -> Operation:
    """rcp and sqrt: correctly rounded, approximate, and rcp.approx.ftz.f64."""
    exact = arithmetic(name)

    def emit(form: Form) -> None:
        if any(part in ROUNDINGS for part in form.instruction.parts):
            exact(form)
        elif form.type == "f64":
            form.needs("approx")
            if not form.has("ftz"):
                raise Unsupported(".approx of f64 without .ftz")
            (a,) = form.sources(1)
            form.result(form.apart(lambda y: _gross(y, lambda x: 1.0 / x), a))
        else:
            approximate(name)(form)

    return emit


def _gross(a: Lanes, function: Callable[[Lanes], Lanes]) -> Lanes:
    """rcp and rsqrt.approx.ftz.f64: of the upper word of the operand the upper word, subnormals as zeros."""
    upper = a.as_bits() & 0xFFFF_FFFF_0000_0000
    x = _flushed(upper).as_float()
    result = function(x)
    bits = result.as_bits()
    bits = (bits + 0x7FFF_FFFF + (bits.lshr(32) & 1)) & 0xFFFF_FFFF_0000_0000
    return result.is_nan().choose(bits.like(0x7FFF_FFFF_0000_0000), _flushed(bits)).as_float()


def _flushed(bits: Lanes) -> Lanes:
    return (bits & 0x7FF0_0000_0000_0000).icmp("eq", 0).choose(bits & (1 << 63), bits)


def rsqrt(form: Form) -> None:
    if form.type != "f64":
        approximate("rsqrt")(form)
        return
    form.needs("approx")
    (a,) = form.sources(1)
    if form.has("ftz"):
        form.result(form.apart(lambda y: _gross(y, lambda x: 1.0 / x.intrinsic("sqrt")), a))
    else:
        form.result(payload(1.0 / a.intrinsic("sqrt"), a))


_HUGE = 2.0**126


def divide(form: Form) -> None:
    """Correctly rounded, ``.full`` (within 2 ulp, all divisors) and ``.approx`` (divisors up to 2**126)."""
    kind = form.one_of("approx", "full")
    if kind is None:
        arithmetic("div")(form)
        return
    a, b = form.sources(2)
    ftz = form.has("ftz")
    if ftz:
        a, b = flush(a), flush(b)
    result = ARITHMETIC["div"].nearest(a, b)
    if kind == "approx":
        # The reciprocal of a divisor beyond that is flushed to zero.
        huge = b.abs().fcmp("ogt", _HUGE) & b.abs().fcmp("one", math.inf)
        zero = b.like(0.0).intrinsic("copysign", b)
        result = huge.choose(a * zero, result)
    form.result(canonical(flush(result) if ftz else result))


_HALVES = "f16 f16x2 bf16 bf16x2"

SPECIAL: dict[str, dict[str, Operation]] = {
    "div": {"f32 f64": divide},
    "rcp": {"f32 f64": rounded_or_approximate("rcp")},
    "sqrt": {"f32 f64": rounded_or_approximate("sqrt")},
    "rsqrt": {"f32 f64": rsqrt},
    "ex2": {f"f32 {_HALVES}": approximate("ex2")},
    "lg2": {"f32": approximate("lg2")},
    "sin": {"f32": approximate("sin")},
    "cos": {"f32": approximate("cos")},
    "tanh": {f"f32 {_HALVES}": approximate("tanh")},
}
