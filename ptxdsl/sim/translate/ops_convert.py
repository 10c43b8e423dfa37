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


def as_floats(form: Form, index: int, type: str) -> Lanes:
    """A source of a floating-point type as floats or doubles."""
    a = form.source(index, type)
    return widen_half(a, type) if type in ("f16", "bf16") else a


def _float_to_integer(form: Form, target: str, source: str) -> None:
    form.count(1)
    rounding = TO_WHOLE[form.needs(*TO_WHOLE)]
    form.has("sat")  # always done
    a = as_floats(form, 0, source)
    if form.has("ftz"):
        a = flush(a)
    whole = a.intrinsic(rounding)
    signed = is_signed(target)
    result = whole.intrinsic("fptosi.sat" if signed else "fptoui.sat", result=ELEMENTS[target])
    if source == "f64" or width(target) == 64:
        result = a.is_nan().choose(result.pattern(1 << (width(target) - 1)), result)
    form.result(result, target)


# integers to floats


def exact_double(a: Lanes, signed: bool) -> Lanes:
    """An integer of at most 64 bits as a double, rounded to odd where it does not fit."""
    if a.bits < 64:
        return a.to_float("double", signed)
    upper = a.ashr(32) if signed else a.lshr(32)
    high = upper.to_float("double", signed=True) * 2.0**32
    low = (a & 0xFFFF_FFFF).to_float("double", signed=True)
    return sum_to_odd(high, low)


def _integer_to_float(form: Form, target: str, source: str) -> None:
    form.count(1)
    rounding = form.needs("rn", "rz", "rm", "rp")
    form.has("ftz")  # there are no subnormal numbers here
    a = form.source(0)
    signed = is_signed(source)
    sat = form.has("sat")
    if target == "f64":
        result = a.to_float("double", signed)
        if rounding != "rn" and a.bits == 64:
            result = _cut_to_double(a, signed, rounding)
        form.result(saturate(result) if sat else result, target)
        return
    if target == "f32":
        if rounding == "rn" and a.bits < 64:
            result = a.to_float("float", signed)
        else:
            result = round_to_float(exact_double(a, signed), rounding)
        form.result(saturate(result) if sat else result, target)
        return
    codes = encode(exact_double(a, signed), target, rounding)
    form.result(_saturated_half(codes.trunc("i16"), target) if sat else codes.trunc("i16"), target)


def _cut_to_double(a: Lanes, signed: bool, rounding: str) -> Lanes:
    """A 64-bit integer as a double, rounded otherwise than to nearest: the nearest one, and what the two differ by."""
    upper = a.ashr(32) if signed else a.lshr(32)
    high = upper.to_float("double", signed=True) * 2.0**32
    low = (a & 0xFFFF_FFFF).to_float("double", signed=True)
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


def _saturated_half(codes: Lanes, type: str) -> Lanes:
    one, infinity = {"f16": (0x3C00, 0x7C00), "bf16": (0x3F80, 0x7F80)}[type]
    low = codes.icmp("slt", 0).choose(0, codes.umin(one))
    return (codes & 0x7FFF).icmp("ugt", infinity).choose(0, low)


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
    a = as_floats(form, 0, source)
    if ftz and source == "f32":
        a = flush(a)
    if target in ("f16", "bf16"):
        form.result(_to_half(form, a, source, target, rounding or "rn", sat), target)
        return
    if target == "f32":
        result = round_to_float(a, rounding or "rn") if source == "f64" else a
        if source == "f64":
            result = a.is_nan().choose(_cut_payload(a), result)
        elif source == "f16" or ftz:
            result = canonical(result)
        if ftz:
            result = flush(result) if source != "f64" else _flush_tiny(a, result, rounding or "rn")
        form.result(saturate(result) if sat else result, target)
        return
    if source == "f32" and ftz:
        a = canonical(a)
    # A NaN keeps its sign and payload and becomes quiet.
    result = a.is_nan().choose(_widened_nan(a), a.fpext().as_bits()).as_float()
    form.result(saturate(result) if sat else result, target)


def _to_half(form: Form, a: Lanes, source: str, target: str, rounding: str, sat: bool) -> Lanes:
    relu, finite = form.has("relu"), form.has("satfinite")
    codes = encode(a, target, rounding, saturating=finite, relu=relu).trunc("i16")
    if source == "f64":
        # Its sign and the upper bits of its payload.
        mantissa = FORMATS[target].mantissa_bits
        bits = a.as_bits()
        cut = bits.lshr(52 - mantissa).trunc("i16") | ((FORMATS[target].infinity or 0) | 1 << (mantissa - 1))
        nan = (cut & 0x7FFF) | bits.lshr(48).trunc("i16") & 0x8000
        codes = a.is_nan().choose(nan, codes)
    return _saturated_half(codes, target) if sat else codes


def _cut_payload(a: Lanes) -> Lanes:
    """A NaN of f64 as one of f32."""
    bits = a.as_bits()
    payload = bits.lshr(29).trunc("i32") & 0x003F_FFFF
    return (bits.lshr(32).trunc("i32") & 0x8000_0000 | payload | 0x7FC0_0000).as_float()


def _widened_nan(a: Lanes) -> Lanes:
    """The bits of a double for a NaN of f32, or of a smaller format widened."""
    bits = a.as_bits().zext("i64")
    return (bits & 0x007F_FFFF).shl(29) | (bits & 0x8000_0000).shl(32) | (0x7FF0_0000_0000_0000 | QUIET_F64)


def _flush_tiny(a: Lanes, result: Lanes, rounding: str) -> Lanes:
    """f64 to f32: the card flushes what is subnormal before gradual underflow, though it be rounded up to a normal."""
    unbounded = round_to_float(a * 2.0**24, rounding)
    tiny = unbounded.abs().fcmp("olt", 2.0 ** (24 - 126))
    return tiny.choose(result.as_bits() & 0x8000_0000, result.as_bits()).as_float()


def _same_format(form: Form, type: str, whole: str | None, ftz: bool, sat: bool) -> None:
    """Rounding to a whole number, saturation, flushing, or nothing."""
    raw = form.source(0, type)
    if type in ("f16", "bf16"):
        codes = raw
        if whole is not None:
            codes = encode(widen_half(raw, type).intrinsic(TO_WHOLE[whole]), type).trunc("i16")
        form.result(_saturated_half(codes, type) if sat else codes, type)
        return
    a = flush(raw) if ftz else raw
    if whole is not None:
        a = a.intrinsic(TO_WHOLE[whole])
        if type == "f64":
            a = raw.is_nan().choose(raw.as_bits() | QUIET_F64, a.as_bits()).as_float()
    if type == "f32" and (whole is not None or ftz):
        a = canonical(a)
    form.result(saturate(a) if sat else a, type)


def _pair(form: Form, target: str) -> None:
    """Two floats to a pair, the first in the upper half; with ``.rs`` random bits in a third operand."""
    kind = target.removesuffix("x2")
    rounding = form.needs(*ROUNDINGS)
    relu, finite = form.has("relu"), form.has("satfinite")
    form.count(3 if rounding == "rs" else 2)
    randoms: list[Lanes | None] = [None, None]
    random_bits = {"f16": 13, "bf16": 16}[kind]
    if rounding == "rs":
        word = form.source(2, "b32")
        mask = (1 << random_bits) - 1
        randoms = [word.lshr(16) & mask, word & mask]
    high, low = (
        encode(
            form.source(i), kind, rounding, saturating=finite, relu=relu, random=randoms[i], random_bits=random_bits
        ).resize("i32", signed=False)
        for i in range(2)
    )
    form.result(high.shl(16) | low, target)


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
