"""Steps that floating-point instructions are made of: flushing, NaN, saturation, widening, rounding to any format.

Results other than the nearest float or double are made in two steps: a double that is the exact result, or, where that
does not fit, the exact result *rounded to odd* (cut, with the last bit set if anything was cut off); then one rounding
to the wanted format. Rounding to odd keeps whatever decides the second rounding as long as the double has two bits more
than the format. (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
to odd", 2008.)
"""

from __future__ import annotations

from ptxdsl.sim.numbers import FORMATS, Format
from ptxdsl.sim.translate.ops_value import Lanes

CANONICAL_NAN = 0x7FFF_FFFF
QUIET_F64, INVALID_F64 = 0x0008_0000_0000_0000, 0xFFF8_0000_0000_0000


def flush(x: Lanes) -> Lanes:
    """``.ftz``: subnormal floats become zeros of their sign."""
    bits = x.as_bits()
    return (bits & 0x7F80_0000).icmp("eq", 0).choose(bits & 0x8000_0000, bits).as_float()


def canonical(x: Lanes) -> Lanes:
    """Floats whose NaN is the one that the card's arithmetic gives, whatever the host gave."""
    return x.is_nan().choose(x.pattern(CANONICAL_NAN), x)


def payload(result: Lanes, *operands: Lanes) -> Lanes:
    """Doubles whose NaN is the last of the operands that is NaN, made quiet, or the one of an invalid operation."""
    bits = result.is_nan().choose(result.as_bits().pattern(INVALID_F64), result.as_bits())
    for operand in operands:
        bits = operand.is_nan().choose(operand.as_bits() | QUIET_F64, bits)
    return bits.as_float()


def saturate(x: Lanes) -> Lanes:
    """``.sat``: to 0 … 1; NaN and -0 give +0."""
    positive = x.fcmp("ogt", 0.0).choose(x, 0.0)
    return positive.fcmp("ogt", 1.0).choose(1.0, positive)


def half_is_nan(codes: Lanes, kind: str) -> Lanes:
    """Of f16 or bf16 codes (i16)."""
    return (codes & 0x7FFF).icmp("ugt", FORMATS[kind].infinity or 0)


def saturate_half(codes: Lanes, kind: str) -> Lanes:
    """``.sat`` of f16 or bf16 codes (i16)."""
    one = FORMATS[kind].bias << FORMATS[kind].mantissa_bits
    bounded = codes.icmp("slt", 0).choose(0, codes.umin(one))
    return half_is_nan(codes, kind).choose(0, bounded)


def widen_half(bits: Lanes, type: str, ftz: bool = False) -> Lanes:
    """The floats that f16 or bf16 bits (i16) stand for, exact; NaN stays some NaN. ftz: f16 subnormals become zeros."""
    word = bits.zext("i32")
    if type.startswith("bf16"):
        return word.shl(16).as_float()
    sign = (word & 0x8000).shl(16)
    magnitude = word & 0x7FFF
    shifted = magnitude.shl(13)
    number = shifted + ((127 - 15) << 23)
    small = 0 if ftz else (magnitude.to_float("float", signed=True) * 2.0**-24).as_bits()
    number = magnitude.icmp("ult", 0x0400).choose(small, number)
    number = magnitude.icmp("uge", 0x7C00).choose(shifted | 0x7F80_0000, number)
    return (number | sign).as_float()


def sum_to_odd(a: Lanes, b: Lanes) -> Lanes:
    """The sum of doubles, or of floats, rounded to odd. No overflow may happen."""
    total = a + b
    of_b = total - a
    error = (a - (total - of_b)) + (b - of_b)  # exact (Knuth's TwoSum); NaN where the sum is infinite
    bits, error_bits = total.as_bits(), error.as_bits()
    even_and_inexact = (bits & 1).icmp("eq", 0) & error.fcmp("one", 0.0)
    towards_zero = (bits ^ error_bits).icmp("slt", 0)
    odd = towards_zero.choose(bits - 1, bits + 1)
    return even_and_inexact.choose(odd, bits).as_float()


def round_to_float(x: Lanes, rounding: str) -> Lanes:
    """Doubles as floats; a NaN's payload is unspecified."""
    nearest = x.fptrunc()
    if rounding == "rn":
        return nearest
    back, bits = nearest.fpext(), nearest.as_bits()
    if rounding == "rz":
        beyond = back.abs().fcmp("ogt", x.abs())
        return beyond.choose(bits - 1, bits).as_float()
    # A step down of a positive float is -1 on its bits, of a negative one +1.
    if rounding == "rm":
        wrong, step = back.fcmp("ogt", x), -1
    else:
        wrong, step = back.fcmp("olt", x), 1
    # The sign is the exact value's; the nearest float may be a zero, whose neighbour on that side is wanted.
    negative = x.as_bits().icmp("slt", 0)
    stepped = negative.choose(bits - step, bits + step)
    return wrong.choose(stepped, bits).as_float()


def cancelled(result: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """Rounding down, a sum of doubles that is exactly zero is -0, unless both are +0."""
    differ = (a.as_bits() ^ b.as_bits()).icmp("slt", 0)
    return ((a + b).fcmp("oeq", 0.0) & differ).choose(result.like(-0.0), result)


def encode(
    x: Lanes,
    format: str,
    rounding: str = "rn",
    *,
    saturating: bool = False,
    relu: bool = False,
    random: Lanes | None = None,
    random_bits: int = 16,
) -> Lanes:
    """The codes of floats or doubles in a narrower format, rounded once; as wide as x.

    rounding: ``rn``, ``rna`` (ties away from zero), ``rz``, ``rm``, ``rp``, or ``rs``: the carry of adding ``random``
    (that many bits) to the top of the discarded bits. relu: negative values, -0 among them, give +0; NaN stays NaN.
    """
    form = FORMATS[format]
    source = FORMATS["f64" if x.element == "double" else "f32"]
    bits = x.as_bits()
    negative = bits.icmp("slt", 0)
    magnitude = bits & (source.sign - 1)
    if random is not None:
        magnitude, random = magnitude.zext("i64"), random.zext("i64")
    infinite = magnitude.icmp("eq", source.infinity or 0)
    code = _rounded(magnitude, negative, source, form, rounding, random, random_bits)
    limit = form.largest if saturating or form.infinity is None else form.infinity
    if limit == form.largest or rounding == "rz":
        finite_limit: Lanes | int = form.largest
    elif rounding in ("rm", "rp"):
        upward = negative if rounding == "rm" else ~negative
        finite_limit = upward.choose(code.like(limit), form.largest)
    else:
        finite_limit = limit
    code = code.icmp("ugt", form.largest).choose(finite_limit, code)
    code = infinite.choose(limit, code)
    code = negative.choose(0 if relu else code | form.sign, code)
    code = x.is_nan().choose(form.nan, code)
    return code.shl(form.zeros) if form.zeros else code


def _rounded(
    magnitude: Lanes,
    negative: Lanes,
    source: Format,
    form: Format,
    rounding: str,
    random: Lanes | None,
    random_bits: int,
) -> Lanes:
    """The code of a finite magnitude, beyond ``form.largest`` where it overflows."""
    dropped = source.mantissa_bits - form.mantissa_bits
    shift: Lanes
    if form.bias == source.bias:
        # The same exponents: the whole word is rounded as one number.
        word, shift, field = magnitude, magnitude.like(dropped), None
    else:
        exponent = magnitude.lshr(source.mantissa_bits)
        fraction = magnitude & ((1 << source.mantissa_bits) - 1)
        word = exponent.icmp("ne", 0).choose(fraction | (1 << source.mantissa_bits), fraction)
        rebased = exponent.umax(1) - (source.bias - form.bias)
        most = 40 if rounding == "rs" else source.mantissa_bits + 3
        shift = ((1 - rebased).smax(0) + dropped).smin(most)
        field = (rebased - 1).smax(0).shl(form.mantissa_bits)
    one = magnitude.like(1)
    if rounding == "rn":
        word = word + (one.shl(shift - 1) - 1 + (word.lshr(shift) & 1))
    elif rounding == "rna":
        word = word + one.shl(shift - 1)
    elif rounding == "rs":
        assert random is not None
        word = word + random.shl(shift - random_bits)
    elif rounding != "rz":
        away = negative if rounding == "rm" else ~negative
        word = word + away.choose(one.shl(shift) - 1, 0)
    code = word.lshr(shift)
    return code if field is None else code + field
