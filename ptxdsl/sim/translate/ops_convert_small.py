"""cvt to and from formats of 8, 6 and 4 bits, which lie packed in pairs and fours.

Source: PTX ISA, "Data Movement and Conversion Instructions: cvt". How the random bits of ``.rs`` are dealt out to four
values is not in the text; it is as a B200 was found to do it.
"""

from __future__ import annotations

from ptxdsl.ptx.module import Vector
from ptxdsl.sim.numbers import FORMATS, UE8M0_LARGEST, UE8M0_NAN
from ptxdsl.sim.translate.emitter import ELEMENTS, Unsupported
from ptxdsl.sim.translate.ops_float_common import encode, widen_half
from ptxdsl.sim.translate.ops_form import Form
from ptxdsl.sim.translate.ops_value import Lanes

FIELD = {"e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 4, "ue8m0": 8, "s2f6": 8}
SMALL_TYPES = {f"{name}x{count}" for name in FIELD for count in (2, 4)}


def convert_small(form: Form) -> None:
    target, source = form.types
    if source in SMALL_TYPES:
        _from_pair(form, target, source.removesuffix("x2"))
    elif target.endswith("x4"):
        _to_four(form, target.removesuffix("x4"))
    else:
        _to_pair(form, target.removesuffix("x2"), source)


# to small formats


def _to_pair(form: Form, name: str, source: str) -> None:
    relu, finite = form.has("relu"), form.has("satfinite")
    if name == "ue8m0":
        rounding = form.needs("rz", "rp")
        if relu:
            raise Unsupported(".relu of .ue8m0, which has no sign")
    else:
        rounding = form.needs("rn")
        if not finite:
            raise Unsupported(f".{name} without .satfinite")
    if source not in ("f32", "f16x2", "bf16x2"):
        raise Unsupported(f"from .{source}")
    count = 2 if source == "f32" else 1
    values = [form.source(i) for i in range(count)]
    scaled = _scaled(form, count)
    if scaled:
        values.append(form.source(count, "b16"))

    def compute(*words: Lanes) -> Lanes:
        if source == "f32":
            floats = list(words[:2])
        else:
            floats = [widen_half(half.trunc("i16"), source) for half in (words[0].lshr(16), words[0])]
        scales = _two_scales(words[-1]) if scaled else [None, None]
        if name == "ue8m0":
            codes = [_exponent(x, rounding, finite) for x in floats]
        elif name == "s2f6":
            codes = [_fixed(x, scale, relu) for x, scale in zip(floats, scales, strict=True)]
        else:
            codes = [encode(x, name, rounding, saturating=True, relu=relu) for x in floats]
        return (codes[0].shl(FIELD[name]) | codes[1]).trunc(ELEMENTS.get(f"{name}x2", "i16"))

    if scaled and name != "s2f6":
        raise Unsupported(f".scaled to .{name}x2")
    form.result(form.apart(compute, *values), register_type(f"{name}x2"))


def register_type(type: str) -> str:
    """The type of a register that holds small numbers."""
    return type if type in ELEMENTS else "b16"


def _scaled(form: Form, operands: int) -> bool:
    """Whether a last operand has two ue8m0 factors, for the upper and the lower value."""
    found = form.has("scaled::n2::ue8m0")
    form.count(operands + found)
    return found


def _two_scales(word: Lanes) -> list[Lanes | None]:
    return [word.lshr(8) & 0xFF, word & 0xFF]


def _power(code: Lanes) -> Lanes:
    """The double that a ue8m0 code (i16) stands for: 2**(code - 127)."""
    power = (code.zext("i64") + (1023 - 127)).shl(52)
    return code.icmp("eq", UE8M0_NAN).choose(power.like(0x7FF8 << 48), power).as_float()


def _exponent(x: Lanes, rounding: str, finite: bool) -> Lanes:
    """Floats to ue8m0: the exponent of the magnitude, rounded down or up. As i32."""
    bits = x.fpext().as_bits() & ((1 << 63) - 1)
    if rounding == "rp":
        bits = bits + ((1 << 52) - 1)
    exponent = (bits.lshr(52).trunc("i32") - (1023 - 127)).smax(0)
    limit = UE8M0_LARGEST if finite else UE8M0_NAN
    exponent = exponent.icmp("sgt", UE8M0_LARGEST).choose(limit, exponent)
    return x.is_nan().choose(UE8M0_NAN, exponent)


def _fixed(x: Lanes, scale: Lanes | None, relu: bool) -> Lanes:
    """Floats, divided by a scale, to 64ths in 8 bits, signed: s2f6."""
    value = x.fpext()
    if scale is not None:
        value = value / _power(scale)
    whole = (value * 64.0).intrinsic("rint").intrinsic("fptosi.sat", result="i8")
    if relu:
        whole = whole.smax(0)
    whole = value.is_nan().choose(127, whole)
    return whole.zext("i32")


def _to_four(form: Form, name: str) -> None:
    """``cvt.rs.satfinite.<name>x4.f32 d, {a, b, e, f}, rbits``: a in the highest bits."""
    form.needs("rs")
    relu = form.has("relu")
    if not form.has("satfinite"):
        raise Unsupported(f".{name}x4 without .satfinite")
    form.count(2)
    vector = form.operands[1]
    if not isinstance(vector, Vector) or len(vector.items) != 4:
        raise Unsupported("a vector of four is wanted")
    values = [Lanes(form.e, "float", form.e.read(item, "f32")) for item in vector.items]
    target = f"{name}x4"

    def compute(a: Lanes, b: Lanes, e: Lanes, f: Lanes, word: Lanes) -> Lanes:
        packed = word.like(0)
        for x, random in zip((a, b, e, f), _dealt(word, name), strict=True):
            code = encode(x, name, "rs", saturating=True, relu=relu, random=random).trunc("i32")
            packed = packed.shl(FIELD[name]) | code
        return packed.resize(ELEMENTS[target], signed=False)

    form.result(form.apart(compute, *values, form.source(1, "b32")), target)


def _dealt(word: Lanes, name: str) -> list[Lanes]:
    """The 16 random bits of each of four values: two share 16 bits, which the first reads in reversed order."""
    if FIELD[name] == 8:
        pairs = [word.lshr(16), word & 0xFFFF]
    else:
        pairs = [(word.lshr(8) & 0xFF) | (word.lshr(24) & 0xFF).shl(8), (word & 0xFF) | (word.lshr(16) & 0xFF).shl(8)]
    result = []
    for pair in pairs:
        result += [pair.intrinsic("bitreverse").lshr(16), pair]
    return result


# from small formats


def _from_pair(form: Form, target: str, name: str) -> None:
    kind = target.removesuffix("x2")
    if kind not in ("f16", "bf16") or not target.endswith("x2"):
        raise Unsupported(f"from .{name}x2 to .{target}")
    form.has("rn")
    relu, finite = form.has("relu"), form.has("satfinite")
    scaled = _scaled(form, 1)
    values = [form.source(0, register_type(f"{name}x2"))]
    if scaled:
        values.append(form.source(1, "b16"))
    bits = FIELD[name]
    mask = (1 << (bits if name in ("ue8m0", "s2f6") else _code_bits(name))) - 1

    def compute(pair: Lanes, factors: Lanes | None = None) -> Lanes:
        word = pair.zext("i32")
        scales = [None, None] if factors is None else _two_scales(factors)
        halves = []
        for code, scale in zip((word.lshr(bits) & mask, word & mask), scales, strict=True):
            value = _decoded(code, name)
            if scale is not None:
                value = value * _power(scale)
            halves.append(encode(value, kind, saturating=finite, relu=relu).trunc("i32"))
        return halves[0].shl(16) | halves[1]

    form.result(form.apart(compute, *values), target)


def _code_bits(name: str) -> int:
    return FORMATS[name].sign.bit_length()


def _decoded(code: Lanes, name: str) -> Lanes:
    """The doubles that codes (i32) stand for."""
    if name == "ue8m0":
        return _power(code.trunc("i16"))
    if name == "s2f6":
        return code.trunc("i8").to_float("double", signed=True) * (1 / 64)
    form = FORMATS[name]
    magnitude = code & (form.sign - 1)
    exponent = magnitude.lshr(form.mantissa_bits)
    normal = magnitude.zext("i64").shl(52 - form.mantissa_bits) + ((1023 - form.bias) << 52)
    least = 2.0 ** (1 - form.bias - form.mantissa_bits)
    small = (magnitude.to_float("double", signed=True) * least).as_bits()
    bits = exponent.icmp("eq", 0).choose(small, normal)
    if form.infinity is not None:
        bits = magnitude.icmp("eq", form.infinity).choose(0x7FF0 << 48, bits)
    if form.has_nan:
        top = form.largest if form.infinity is None else form.infinity
        bits = magnitude.icmp("ugt", top).choose(0x7FF8 << 48, bits)
    sign = (code & form.sign).icmp("ne", 0).choose(bits.like(1 << 63), 0)
    return (bits | sign).as_float()
