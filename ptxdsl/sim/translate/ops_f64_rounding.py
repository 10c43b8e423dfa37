"""f64 arithmetic rounded otherwise than to nearest: the fused product and sum in wide integers, quotients and roots by
the sign of what the nearest ones leave over. One lane at a time, since these are rare."""

from __future__ import annotations

from ptxdsl.sim.translate.ops_value import Lanes, lane_by_lane

_EXPONENT, _FRACTION, _IMPLICIT = 0x7FF, (1 << 52) - 1, 1 << 52
_INFINITY, _LARGEST = 0x7FF0_0000_0000_0000, 0x7FEF_FFFF_FFFF_FFFF

# Layout of the 256-bit sum: the product's lowest bit stands at 64, so that an addend down to 2**-64 of that is exact.
# One that is smaller still only has to be there. An addend far above the product moves it down likewise.
_LOW, _APART = 64, 130


def fma_f64(rounding: str, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """``a * b + c`` of doubles, rounded once."""
    return lane_by_lane(f"ptx.sum_{rounding}.f64", lambda *values: _fma(rounding, *values), a, b, c)


def _fma(rounding: str, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    bits = [value.as_bits() for value in (a, b, c)]
    finite = _finite(a) & _finite(b) & _finite(c)
    sign, exponents, significands = zip(*(_parts(word) for word in bits), strict=True)
    product = significands[0].zext("i256") * significands[1].zext("i256")
    negative = sign[0] ^ sign[1]
    exponent = exponents[0] + exponents[1]  # of the product's lowest bit
    above = exponents[2] - exponent
    far = above.icmp("sgt", _APART)
    up = above.smax(0).smin(_APART)
    down = (0 - above).smax(0).smin(_LOW)
    addend = significands[2].zext("i256").shl((up + _LOW - down).zext("i256"))
    weight = far.choose(exponents[2] - (_APART + _LOW), exponent - _LOW)  # of bit 0
    product = product.shl(_LOW)
    same = (negative ^ sign[2]).icmp("sge", 0)
    difference = product - addend
    flipped = difference.icmp("slt", 0)
    total = same.choose(product + addend, flipped.choose(0 - difference, difference))
    negative = same.choose(negative, flipped.choose(sign[2], negative))
    zero = total.icmp("eq", 0)
    # An exact zero is positive, or negative rounding down, but where the summands' signs agree.
    zero_sign = same.choose(negative, negative.like(-1 if rounding == "rm" else 0))
    result = _round(rounding, zero.choose(1, total), weight, negative)
    magnitude = zero.choose(0, result)
    sign_bit = zero.choose(zero_sign, negative) & (1 << 63)
    # With an infinity or a NaN there is nothing to round.
    return finite.choose(magnitude | sign_bit, a.fma(b, c).as_bits()).as_float()


def _parts(word: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Sign (as the sign of an i64), exponent of the lowest bit, significand of a finite double."""
    field = word.lshr(52) & _EXPONENT
    fraction = word & _FRACTION
    significand = field.icmp("ne", 0).choose(fraction | _IMPLICIT, fraction)
    return word, field.umax(1) - 1075, significand


def _round(rounding: str, total: Lanes, weight: Lanes, negative: Lanes) -> Lanes:
    """The magnitude's bits of ``total * 2**weight``."""
    top = 255 - total.leading_zeros().trunc("i64")
    lowest = (top + weight - 52).smax(-1074)  # the exponent of the result's lowest bit
    shift = (lowest - weight).smin(252)
    drop = shift.smax(0).zext("i256")
    grow = (0 - shift).smax(0).zext("i256")
    one = total.like(1)
    if rounding == "rz":
        addend = total.like(0)
    elif rounding == "rn":
        half = shift.icmp("sgt", 0).choose(one.shl((shift - 1).smax(0).zext("i256")) - 1, 0)
        addend = half + shift.icmp("sgt", 0).choose(total.lshr(drop) & 1, 0)
    else:
        away = negative.icmp("slt", 0) if rounding == "rm" else negative.icmp("sge", 0)
        addend = away.choose(one.shl(drop) - 1, 0)
    significand = (total + addend).lshr(drop).shl(grow).trunc("i64")
    bits = significand + (lowest + 1074).shl(52)
    if rounding == "rz":
        limit: Lanes = bits.like(_LARGEST)
    elif rounding == "rn":
        limit = bits.like(_INFINITY)
    else:
        limit = away.choose(bits.like(_INFINITY), _LARGEST)
    return bits.icmp("ugt", _LARGEST).choose(limit, bits)


def _stepped(rounding: str, nearest: Lanes, remainder: Lanes) -> Lanes:
    """The neighbour of a nearest result where that lies on the wrong side. remainder: of the sign of exact - nearest.

    A remainder of +0 says that the result is exact, one of -0 that it is too large by what underflowed.
    """
    bits = nearest.as_bits()
    low = remainder.fcmp("ogt", 0.0)
    high = remainder.as_bits().icmp("slt", 0) & ~remainder.is_nan()
    negative = bits.icmp("slt", 0)
    if rounding == "rz":
        return (negative.choose(low, high)).choose(bits - 1, bits).as_float()
    if rounding == "rm":
        return high.choose(negative.choose(bits + 1, bits - 1), bits).as_float()
    return low.choose(negative.choose(bits - 1, bits + 1), bits).as_float()


def _finite(x: Lanes) -> Lanes:
    return (x.as_bits() & _INFINITY).icmp("ne", _INFINITY)


def quotient_f64(rounding: str, a: Lanes, b: Lanes) -> Lanes:
    """``a / b`` of doubles, rounded."""
    nearest = a / b
    # The sign of exact - nearest is that of a - nearest * b over b; the divisor is made positive.
    turned = (a.as_bits() ^ (b.as_bits() & (1 << 63))).as_float()
    left = fma_f64("rp", -nearest, b.abs(), turned)
    # An overflow of finite numbers lies beyond every double.
    overflow = _finite(a) & _finite(b) & b.fcmp("one", 0.0) & nearest.abs().fcmp("oeq", nearest.like(float("inf")))
    towards = nearest.as_bits().icmp("slt", 0).choose(nearest.like(1.0), nearest.like(-1.0))
    stepped = _stepped(rounding, nearest, overflow.choose(towards, left))
    plain = ~(_finite(a) & _finite(b)) | b.fcmp("oeq", 0.0) | a.fcmp("oeq", 0.0)
    return plain.choose(nearest, stepped)


def root_f64(rounding: str, a: Lanes) -> Lanes:
    """The square root of doubles, rounded."""
    nearest = a.intrinsic("sqrt")
    left = fma_f64("rp", -nearest, nearest, a)
    usual = _finite(a) & a.fcmp("ogt", 0.0)
    return usual.choose(_stepped(rounding, nearest, left), nearest)
