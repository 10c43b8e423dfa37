"""Conversions between types, and vectors, as LLVM instructions.

Float to integer saturates and NaN gives 0, whatever the widths; a vector's lane index is never outside of it.
"""

from __future__ import annotations

from ptxdsl.lower.arith import Handler
from ptxdsl.lower.builder import Builder, from_lanes, lanes_of
from ptxdsl.lower.llvm_types import constant, llvm_type, scalar_type
from ptxdsl.targets import target
from ptxdsl.tir import F32, Const, Op, Ty, Value


def _convert(b: Builder, instruction: str, value: Value, to: Ty) -> str:
    return b.emit(f"{instruction} {b.typed(value)} to {llvm_type(to)}")


def _resize(b: Builder, op: Op) -> None:
    (x,) = op.operands
    to = op.result.ty
    if to.bits == x.ty.bits:
        return b.set(op.result, b.ref(x))
    b.set(op.result, _convert(b, {"ext.s": "sext", "ext.u": "zext", "trunc": "trunc"}[op.name], x, to))


def _itof(b: Builder, op: Op) -> None:
    to = op.result.ty
    if to.name.startswith("f8"):
        # Every integer that a float8 can tell from the next one is exact in float32; the rest saturates.
        wide = Value(Ty("f32", to.lanes))
        b.set(wide, _convert(b, "sitofp" if op.name == "itof.s" else "uitofp", op.operands[0], wide.ty))
        return b.set(op.result, _cast_lanes(b, wide, to))
    (x,) = op.operands
    if to.name.startswith("bf16") and x.ty.bits > 24 and target(b.options.arch).capability < _INTEGER_TO_BF16:
        signed = op.name == "itof.s"
        lanes = [_to_bfloat(b, x.ty.scalar, lane, signed) for lane in lanes_of(b, x)]
        return b.set(op.result, from_lanes(b, to, lanes))
    b.set(op.result, _convert(b, "sitofp" if op.name == "itof.s" else "uitofp", x, to))


_INTEGER_TO_BF16 = 90  # from this compute capability on there is an instruction; LLVM rounds twice below it


def _to_bfloat(b: Builder, source: Ty, text: str, signed: bool) -> str:
    """An integer of 32 or 64 bits as a bfloat, rounded once: towards zero to float32, and the rest is not forgotten."""
    integer, name = f"i{source.bits}", ("" if signed else "u") + {32: "i", 64: "ll"}[source.bits]
    wide = b.call("float", f"llvm.nvvm.{name}2f.rz", [f"{integer} {text}"])
    back = b.emit(f"{'fptosi' if signed else 'fptoui'} float {wide} to {integer}")  # it fits: it is nearer to zero
    odd = _with_rest(b, wide, b.emit(f"icmp ne {integer} {back}, {text}"))
    return b.emit(f"fptrunc float {odd} to bfloat")


def _with_rest(b: Builder, single: str, inexact: str) -> str:
    """A float32 that was rounded towards zero, with its last bit set where that lost something: a format of fewer bits
    is rounded to from it as from what it was."""
    bits = b.emit(f"bitcast float {single} to i32")
    last = b.emit(f"zext i1 {inexact} to i32")
    return b.emit(f"bitcast i32 {b.emit(f'or i32 {bits}, {last}')} to float")


# (source, bits, signed) -> the conversion that rounds to zero and saturates in hardware and in LLVM's own folding
FLOAT_TO_INT = {
    ("f32", 32, True): "f2i", ("f32", 32, False): "f2ui", ("f32", 64, True): "f2ll", ("f32", 64, False): "f2ull",
    ("f64", 32, True): "d2i", ("f64", 32, False): "d2ui", ("f64", 64, True): "d2ll", ("f64", 64, False): "d2ull",
}  # fmt: skip


def _ftoi(b: Builder, op: Op) -> None:
    (x,) = op.operands
    to = op.result.ty
    signed = op.name == "ftoi.s"
    source = x.ty.scalar
    lanes = lanes_of(b, x)
    if source.name not in ("f32", "f64"):
        lanes = [_float_cast(b, source, lane, F32) for lane in lanes]
        source = F32
    b.set(op.result, from_lanes(b, to, [_float_to_int(b, source, lane, to.scalar, signed) for lane in lanes]))


def _float_to_int(b: Builder, source: Ty, text: str, to: Ty, signed: bool) -> str:
    bits = 64 if to.bits == 64 else 32
    float_type, wide = scalar_type(source), f"i{bits}"
    name = FLOAT_TO_INT[source.name, bits, signed]
    result = b.call(wide, f"llvm.nvvm.{name}.rz", [f"{float_type} {text}"])
    if source.name == "f64" or bits == 64:
        # here the hardware does not give 0 for NaN
        number = b.emit(f"fcmp ord {float_type} {text}, {text}")
        result = b.emit(f"select i1 {number}, {wide} {result}, {wide} 0")
    if to.bits < 32:
        low, high = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if signed else (0, (1 << to.bits) - 1)
        minimum, maximum = ("smin", "smax") if signed else ("umin", "umax")
        result = b.call("i32", f"llvm.{minimum}.i32", [f"i32 {result}", f"i32 {high}"])
        if signed:
            result = b.call("i32", f"llvm.{maximum}.i32", [f"i32 {result}", f"i32 {low}"])
        result = b.emit(f"trunc i32 {result} to i{to.bits}")
    return result


def _fcast(b: Builder, op: Op) -> None:
    (x,) = op.operands
    to = op.result.ty
    if x.ty == to:
        return b.set(op.result, b.ref(x))
    if not (x.ty.name.startswith("f8") or to.name.startswith("f8")):
        return b.set(op.result, _float_cast(b, x.ty, b.ref(x), to))
    b.set(op.result, _cast_lanes(b, x, to))


def _cast_lanes(b: Builder, x: Value, to: Ty) -> str:
    """Between a float8 and another type, lane by lane."""
    return from_lanes(b, to, [_float_cast(b, x.ty.scalar, lane, to.scalar) for lane in lanes_of(b, x)])


def _float_cast(b: Builder, source: Ty, text: str, to: Ty) -> str:
    if source.name == to.name:
        return text
    if source.name.startswith("f8"):
        half = _from_float8(b, source, text)
        return half if to.name == "f16" else _float_cast(b, Ty("f16"), half, to)
    if to.name.startswith("f8"):
        if source.name == "f64":
            single = b.call("float", "llvm.nvvm.d2f.rz", [f"double {text}"])
            back = b.emit(f"fpext float {single} to double")
            return _to_float8(b, _with_rest(b, single, b.emit(f"fcmp one double {back}, {text}")), to)
        return _to_float8(b, _float_cast(b, source, text, F32), to)
    instruction = "fpext" if to.bits > source.bits else "fptrunc"
    if to.bits == source.bits:  # between f16 and bf16: through the type that has both
        wide = Ty("f32", source.lanes)
        return _float_cast(b, wide, _float_cast(b, source, text, wide), to)
    return b.emit(f"{instruction} {llvm_type(source)} {text} to {llvm_type(to)}")


def _to_float8(b: Builder, single: str, to: Ty) -> str:
    """float32 to float8: the conversion takes a pair, saturates and rounds to nearest even."""
    kind = to.name.removeprefix("f8")
    pair = b.call("i16", f"llvm.nvvm.ff.to.{kind}x2.rn", [f"float {constant(F32, 0.0)}", f"float {single}"])
    return b.emit(f"trunc i16 {pair} to i8")


def _from_float8(b: Builder, source: Ty, text: str) -> str:
    kind = source.name.removeprefix("f8")
    wide = b.emit(f"zext i8 {text} to i16")
    pair = b.call("<2 x half>", f"llvm.nvvm.{kind}x2.to.f16x2.rn", [f"i16 {wide}"])
    return b.emit(f"extractelement <2 x half> {pair}, i32 0")


def _bitcast(b: Builder, op: Op) -> None:
    (x,) = op.operands
    source, to = llvm_type(x.ty), llvm_type(op.result.ty)
    if source == to:
        return b.set(op.result, b.ref(x))
    b.set(op.result, b.emit(f"bitcast {b.typed(x)} to {to}"))


# vectors


def _vec_splat(b: Builder, op: Op) -> None:
    (x,) = op.operands
    ty = op.result.ty
    if isinstance(x, Const):
        return b.set(op.result, constant(ty, x.value))
    one = b.emit(f"insertelement {llvm_type(ty)} poison, {b.typed(x)}, i32 0")
    zeros = f"<{ty.lanes} x i32> zeroinitializer"
    b.set(op.result, b.emit(f"shufflevector {llvm_type(ty)} {one}, {llvm_type(ty)} poison, {zeros}"))


def _vec_build(b: Builder, op: Op) -> None:
    b.set(op.result, from_lanes(b, op.result.ty, [b.ref(operand) for operand in op.operands]))


def _lane_index(b: Builder, index: Value, lanes: int) -> str:
    """An index inside the vector, whatever the program computes."""
    if isinstance(index, Const):
        return f"i32 {index.value % lanes}"
    if lanes & (lanes - 1) == 0:
        return f"i32 {b.emit(f'and {b.typed(index)}, {lanes - 1}')}"
    return f"i32 {b.call('i32', 'llvm.umin.i32', [b.typed(index), f'i32 {lanes - 1}'])}"


def _vec_extract(b: Builder, op: Op) -> None:
    vector, index = op.operands
    if vector.ty.lanes == 1:
        return b.set(op.result, b.ref(vector))
    b.set(op.result, b.emit(f"extractelement {b.typed(vector)}, {_lane_index(b, index, vector.ty.lanes)}"))


def _vec_insert(b: Builder, op: Op) -> None:
    vector, element, index = op.operands
    if vector.ty.lanes == 1:
        return b.set(op.result, b.ref(element))
    where = _lane_index(b, index, vector.ty.lanes)
    b.set(op.result, b.emit(f"insertelement {b.typed(vector)}, {b.typed(element)}, {where}"))


def _vec_shuffle(b: Builder, op: Op) -> None:
    x, *rest = op.operands
    y = rest[0] if rest else x
    mask = list(op.attrs["mask"])
    both = lanes_of(b, x) + lanes_of(b, y)
    if x.ty.lanes == 1 or op.result.ty.lanes == 1:
        return b.set(op.result, from_lanes(b, op.result.ty, [both[lane] for lane in mask]))
    text = ", ".join(f"i32 {lane}" for lane in mask)
    b.set(op.result, b.emit(f"shufflevector {b.typed(x)}, {b.typed(y)}, <{len(mask)} x i32> <{text}>"))


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("ext.s", "ext.u", "trunc"), _resize),
    **dict.fromkeys(("itof.s", "itof.u"), _itof),
    **dict.fromkeys(("ftoi.s", "ftoi.u"), _ftoi),
    "fcast": _fcast,
    "bitcast": _bitcast,
    "vec.splat": _vec_splat,
    "vec.build": _vec_build,
    "vec.extract": _vec_extract,
    "vec.insert": _vec_insert,
    "vec.shuffle": _vec_shuffle,
}
