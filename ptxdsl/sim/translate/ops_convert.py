"""cvt between integers and floating-point numbers of 16 bits and more; the smaller formats are elsewhere.

Source: PTX ISA, "Data Movement and Conversion Instructions: cvt". NaN, to f32: the canonical one from f16, from f32
with a rounding, and with ``.ftz``; from f64 its sign and the top of its payload; from bf16 the bits as they are. To
integers: 0; from f64 or to 64 bits the number whose highest bit alone is set.
"""

from __future__ import annotations

from ptxdsl.sim.numbers import FORMATS
from ptxdsl.sim.translate.emitter import ELEMENTS, Unsupported
from ptxdsl.sim.translate.ops_convert_small import SMALL_TYPES, convert_small
from ptxdsl.sim.translate.ops_float_common import (
    QUIET_F64,
    canonical,
    encode,
    flush,
    round_to_float,
    saturate,
    saturate_half,
    sum_to_odd,
    widen_half,
)
from ptxdsl.sim.translate.ops_form import INTEGERS, Form, Operation, is_signed, width
from ptxdsl.sim.translate.ops_value import Lanes

FLOATS = ("f16", "bf16", "f32", "f64")
TO_WHOLE = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
ROUNDINGS = ("rn", "rna", "rz", "rm", "rp", "rs")


def convert(form: Form) -> None:
    if form.has("pack"):
        pack(form)
        return
    if len(form.types) != 2:
        raise Unsupported("two types are wanted")
    target, source = form.types
    if target in SMALL_TYPES or source in SMALL_TYPES:
        convert_small(form)
    elif target in INTEGERS and source in INTEGERS:
        _integer_to_integer(form, target, source)
    elif target in INTEGERS and source in FLOATS:
        _float_to_integer(form, target, source)
    elif target in FLOATS and source in INTEGERS:
        _integer_to_float(form, target, source)
    elif target in FLOATS and source in FLOATS:
        _float_to_float(form, target, source)
    elif source == "f32" and target in ("f16x2", "bf16x2"):
        _pair(form, target)
    elif source == "f32" and target == "tf32":
        _tf32(form)
    else:
        raise Unsupported(f"from .{source} to .{target}")


# integers


def _integer_to_integer(form: Form, target: str, source: str) -> None:
    form.count(1)
    a = form.source(0)
    element = ELEMENTS[target]
    if form.has("sat"):
        a = clamped(a, is_signed(source), target)
    form.result(a.resize(element, is_signed(source)), target)


def clamped(a: Lanes, signed: bool, target: str) -> Lanes:
    """Integers within the range of another type, where that is no wider."""
    bits = width(target)
    low = -(1 << (bits - 1)) if is_signed(target) else 0
    high = (1 << (bits - 1)) - 1 if is_signed(target) else (1 << bits) - 1
    if signed:
        if low > -(1 << (a.bits - 1)):
            a = a.smax(low)
        return a.smin(high) if high < (1 << (a.bits - 1)) - 1 else a
    return a.umin(high) if high < (1 << a.bits) - 1 else a


def pack(form: Form) -> None:
    """cvt.pack.sat: a and b clamped, b in the low bits; bits of c above them."""
    if not form.has("sat"):
        raise Unsupported("cvt.pack without .sat")
    # The types of 2 and 4 bits are no types of registers: they stand among the modifiers.
    small = form.one_of("u2", "s2", "u4", "s4")
    target = small or form.types[0]
    bits = width(target)
    if bits > 16:
        raise Unsupported(f"cvt.pack to .{target}")
    form.count(2 if bits == 16 else 3)
    fields = [clamped(form.source(i, "s32"), True, target) & ((1 << bits) - 1) for i in range(2)]
    result = fields[1] | fields[0].shl(bits)
    if bits < 16:
        result = result | form.source(2, "b32").shl(2 * bits)
    form.result(result, "b32")


# floats to integers


def as_floats(a: Lanes, type: str) -> Lanes:
    """Values of a floating-point type as floats or doubles."""
    return widen_half(a, type) if type in ("f16", "bf16") else a


def _float_to_integer(form: Form, target: str, source: str) -> None:
    form.count(1)
    rounding = TO_WHOLE[form.needs(*TO_WHOLE)]
    form.has("sat")  # always done
    ftz = form.has("ftz")

    def compute(a: Lanes) -> Lanes:
        x = as_floats(a, source)
        whole = (flush(x) if ftz else x).intrinsic(rounding)
        conversion = "fptosi.sat" if is_signed(target) else "fptoui.sat"
        result = whole.intrinsic(conversion, result=ELEMENTS[target])
        if source == "f64" or width(target) == 64:
            result = x.is_nan().choose(result.pattern(1 << (width(target) - 1)), result)
        return result

    form.result(form.apart(compute, form.source(0)), target)


# integers to floats


def halves_of_double(a: Lanes, signed: bool) -> tuple[Lanes, Lanes]:
    """A 64-bit integer as the sum of two doubles, both exact."""
    upper = a.ashr(32) if signed else a.lshr(32)
    high = upper.to_float("double", signed=True) * 2.0**32
    return high, (a & 0xFFFF_FFFF).to_float("double", signed=True)


def exact_double(a: Lanes, signed: bool) -> Lanes:
    """An integer of at most 64 bits as a double, rounded to odd where it does not fit."""
    return sum_to_odd(*halves_of_double(a, signed)) if a.bits == 64 else a.to_float("double", signed)


def _integer_to_float(form: Form, target: str, source: str) -> None:
    form.count(1)
    rounding = form.needs("rn", "rz", "rm", "rp")
    form.has("ftz")  # there are no subnormal numbers here
    signed, sat = is_signed(source), form.has("sat")

    def compute(a: Lanes) -> Lanes:
        if target in ("f16", "bf16"):
            codes = encode(exact_double(a, signed), target, rounding).trunc("i16")
            return saturate_half(codes, target) if sat else codes
        if target == "f64":
            rounded = rounding != "rn" and a.bits == 64
            result = _cut_to_double(a, signed, rounding) if rounded else a.to_float("double", signed)
        elif rounding == "rn" and a.bits < 64:
            result = a.to_float("float", signed)
        else:
            result = round_to_float(exact_double(a, signed), rounding)
        return saturate(result) if sat else result

    a = form.source(0)
    short = rounding == "rn" and target in ("f32", "f64")
    form.result(compute(a) if short else form.apart(compute, a), target)


def _cut_to_double(a: Lanes, signed: bool, rounding: str) -> Lanes:
    """A 64-bit integer as a double, rounded otherwise than to nearest: the nearest one, and what the two differ by."""
    high, low = halves_of_double(a, signed)
    total = high + low
    error = low - (total - high)  # exact: |high| >= |low|, or high is 0
    bits = total.as_bits()
    negative = bits.icmp("slt", 0)
    above, below = error.fcmp("ogt", 0.0), error.fcmp("olt", 0.0)  # the integer lies above or below the double
    if rounding == "rz":
        return negative.choose(above, below).choose(bits - 1, bits).as_float()
    if rounding == "rm":
        return below.choose(negative.choose(bits + 1, bits - 1), bits).as_float()
    return above.choose(negative.choose(bits - 1, bits + 1), bits).as_float()


# floats to floats


def _float_to_float(form: Form, target: str, source: str) -> None:
    form.count(1)
    whole = form.one_of(*TO_WHOLE)
    rounding = form.one_of(*ROUNDINGS)
    ftz, sat = form.has("ftz"), form.has("sat")
    if target == source:
        if rounding is not None:
            raise Unsupported(f".{rounding} within a format")
        _same_format(form, target, whole, ftz, sat)
        return
    if whole is not None:
        raise Unsupported(f".{whole} between two formats")
    nearest = rounding or "rn"
    if target in ("f16", "bf16"):
        relu, finite = form.has("relu"), form.has("satfinite")

        def compute(a: Lanes) -> Lanes:
            x = as_floats(a, source)
            if ftz and source == "f32":
                x = flush(x)
            codes = encode(x, target, nearest, saturating=finite, relu=relu).trunc("i16")
            if source == "f64":
                codes = x.is_nan().choose(_cut_payload(x, target), codes)
            return saturate_half(codes, target) if sat else codes
    else:

        def compute(a: Lanes) -> Lanes:
            x = as_floats(a, source)
            result = _to_f32(x, source, nearest, ftz) if target == "f32" else _to_f64(x, ftz)
            return saturate(result) if sat else result

    form.result(form.apart(compute, form.source(0)), target)


def _to_f32(x: Lanes, source: str, rounding: str, ftz: bool) -> Lanes:
    if source != "f64":
        result = canonical(x) if source == "f16" or ftz else x
        return flush(result) if ftz else result
    result = x.is_nan().choose(_cut_payload(x, "f32").as_float(), round_to_float(x, rounding))
    return _flush_tiny(x, result, rounding) if ftz else result


def _to_f64(x: Lanes, ftz: bool) -> Lanes:
    """Of floats. A NaN keeps its sign and payload and becomes quiet."""
    if ftz:
        x = canonical(flush(x))
    bits = x.as_bits().zext("i64")
    nan = (bits & 0x007F_FFFF).shl(29) | (bits & 0x8000_0000).shl(32) | (0x7FF0_0000_0000_0000 | QUIET_F64)
    return x.is_nan().choose(nan, x.fpext().as_bits()).as_float()


def _cut_payload(x: Lanes, target: str) -> Lanes:
    """The codes of a NaN of f64 in a narrower format: its sign and the upper bits of its payload."""
    form = FORMATS[target]
    element = ELEMENTS[target] if target != "f32" else "i32"
    bits = x.as_bits()
    payload = bits.lshr(52 - form.mantissa_bits).trunc(element) & ((1 << form.mantissa_bits) - 1)
    sign = bits.lshr(63 - form.exponent_bits - form.mantissa_bits).trunc(element) & form.sign
    return sign | payload | ((form.infinity or 0) | 1 << (form.mantissa_bits - 1))


def _flush_tiny(a: Lanes, result: Lanes, rounding: str) -> Lanes:
    """f64 to f32: the card flushes what is subnormal before gradual underflow, though it be rounded up to a normal."""
    unbounded = round_to_float(a * 2.0**24, rounding)
    tiny = unbounded.abs().fcmp("olt", 2.0 ** (24 - 126))
    return tiny.choose(result.as_bits() & 0x8000_0000, result.as_bits()).as_float()


def _same_format(form: Form, type: str, whole: str | None, ftz: bool, sat: bool) -> None:
    """Rounding to a whole number, saturation, flushing, or nothing."""

    def of_halves(codes: Lanes) -> Lanes:
        if whole is not None:
            codes = encode(widen_half(codes, type).intrinsic(TO_WHOLE[whole]), type).trunc("i16")
        return saturate_half(codes, type) if sat else codes

    def of_floats(raw: Lanes) -> Lanes:
        a = flush(raw) if ftz else raw
        if whole is not None:
            a = a.intrinsic(TO_WHOLE[whole])
            if type == "f64":
                a = raw.is_nan().choose(raw.as_bits() | QUIET_F64, a.as_bits()).as_float()
        if type == "f32" and (whole is not None or ftz):
            a = canonical(a)
        return saturate(a) if sat else a

    raw = form.source(0, type)
    form.result(form.apart(of_halves, raw) if type in ("f16", "bf16") else of_floats(raw), type)


def _pair(form: Form, target: str) -> None:
    """Two floats to a pair, the first in the upper half; with ``.rs`` random bits in a third operand."""
    kind = target.removesuffix("x2")
    rounding = form.needs(*ROUNDINGS)
    relu, finite = form.has("relu"), form.has("satfinite")
    random_bits = {"f16": 13, "bf16": 16}[kind]

    def compute(high: Lanes, low: Lanes, word: Lanes | None = None) -> Lanes:
        randoms: list[Lanes | None] = [None, None]
        if word is not None:
            randoms = [part & ((1 << random_bits) - 1) for part in (word.lshr(16), word)]
        codes = [
            encode(x, kind, rounding, saturating=finite, relu=relu, random=random, random_bits=random_bits)
            for x, random in zip((high, low), randoms, strict=True)
        ]
        upper, lower = (code.resize("i32", signed=False) for code in codes)
        return upper.shl(16) | lower

    form.count(3 if rounding == "rs" else 2)
    values = [form.source(0), form.source(1)]
    if rounding == "rs":
        values.append(form.source(2, "b32"))
    form.result(form.apart(compute, *values), target)


def _tf32(form: Form) -> None:
    form.count(1)
    rounding = form.needs("rna", "rn", "rz")
    relu, finite = form.has("relu"), form.has("satfinite")
    a = form.source(0)
    codes = encode(a, "tf32", rounding, saturating=finite, relu=relu)
    if rounding == "rna" and not finite:
        # As the card computes it: NaN is cut like a number.
        codes = a.is_nan().choose(a.as_bits() & 0xFFFF_E000, codes)
    form.result(codes, "tf32")


CONVERT: dict[str, Operation] = {"cvt": convert}
