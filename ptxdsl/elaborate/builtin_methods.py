"""The methods of SIMD and Pointer that are the compiler's own."""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.elaborate.builtins import HANDLERS, Builtins, Handler
from ptxdsl.elaborate.entities import NONE_VALUE, MemoryPlace, Runtime, RValue
from ptxdsl.elaborate.matching import Bound
from ptxdsl.elaborate.types import PointerType, SimdType

# ------------------------------------------------------------------------------------------------------------ SIMD


def _cast(e: Builtins, bound: Bound) -> RValue:
    return e.cast(e.number(bound, "self"), e.param_value(bound, "target"), bound.span)


def _compare(name: str) -> Handler:
    def handler(e: Builtins, bound: Bound) -> RValue:
        a, b = e.number(bound, "self"), e.number(bound, "other")
        assert isinstance(a.type, SimdType)
        return e.lanes_compare(name, a, b, a.type, bound.span)

    return handler


def _select(e: Builtins, bound: Bound) -> RValue:
    test, a, b = (e.number(bound, n) for n in ("self", "true_case", "false_case"))
    assert isinstance(test.type, SimdType) and isinstance(a.type, SimdType)
    if test.type.dtype.kind != "bool":
        raise e.fail(
            "E0301",
            f"`select` is a method of Bool vectors, not {test.type}",
            bound.span,
            help="compare first: `a.lt(b).select(x, y)`",
        )
    value = e.emit1("select", [test.value, a.value, b.value], a.type.ty, bound.span)
    return Runtime(a.type, value, test.comptime and a.comptime and b.comptime)


def _shuffled(e: Builtins, bound: Bound, lanes: list[int], a: Runtime, b: Runtime | None) -> RValue:
    """The chosen lanes of one or two vectors."""
    assert isinstance(a.type, SimdType)
    t = SimdType(a.type.dtype, len(lanes))
    width = a.type.width
    picked = []
    for lane in lanes:
        source = a if lane < width or b is None else b
        at = tir.Const(tir.I32, lane % width)
        scalar = width == 1
        picked.append(source.value if scalar else e.emit1("vec.extract", [source.value, at], t.scalar.ty, bound.span))
    if len(picked) == 1:
        return Runtime(t, picked[0], a.comptime)
    if all(isinstance(p, tir.Const) for p in picked) or width == 1:
        return Runtime(t, e.emit1("vec.build", picked, t.ty, bound.span), a.comptime)
    other = b if b is not None else a
    return Runtime(t, e.emit1("vec.shuffle", [a.value, other.value], t.ty, bound.span, mask=tuple(lanes)))


def _slice(e: Builtins, bound: Bound) -> RValue:
    value = e.number(bound, "self")
    assert isinstance(value.type, SimdType)
    width, offset = e.param_int(bound, "width"), e.param_int(bound, "offset")
    if offset < 0 or width < 1 or offset + width > value.type.width:
        raise e.fail(
            "E0603",
            f"lanes {offset} to {offset + width - 1} of a vector of {value.type.width}",
            bound.span,
            help=f"its lanes are 0 to {value.type.width - 1}; a slice has one or more",
        )
    return _shuffled(e, bound, list(range(offset, offset + width)), value, None)


def _join(e: Builtins, bound: Bound) -> RValue:
    a, b = e.number(bound, "self"), e.number(bound, "other")
    assert isinstance(a.type, SimdType)
    return _shuffled(e, bound, list(range(2 * a.type.width)), a, b)


# --------------------------------------------------------------------------------------------------------- Pointer


def _pointer(e: Builtins, bound: Bound) -> tuple[Runtime, PointerType]:
    pointer = e.number(bound, "self")
    assert isinstance(pointer.type, PointerType)
    return pointer, pointer.type


def _unsafe_offset(e: Builtins, bound: Bound) -> RValue:
    pointer, t = _pointer(e, bound)
    return e.offset(pointer, e.argument(bound, "offset"), e.layout(t.elem, bound.span)[0], bound.span)


def _element_place(e: Builtins, bound: Bound, vector: SimdType) -> MemoryPlace:
    """Where a vector load or store goes, with its alignment checked."""
    pointer, t = _pointer(e, bound)
    size, natural = e.layout(t.elem, bound.span)
    if "offset" in bound.args:
        pointer = e.offset(pointer, e.argument(bound, "offset"), size, bound.span)
    alignment = e.param_int(bound, "alignment") or natural
    if alignment < 1 or alignment & (alignment - 1):
        raise e.fail("E0608", f"an alignment is a power of two, not {alignment}", bound.span, help="give 1, 2, 4, 8, …")
    if alignment > natural:
        e.want_aligned(pointer.value, alignment, f"`{e.entered or bound.decl.name}`", bound.span)
    volatile = bool(e.param_int(bound, "volatile"))
    return MemoryPlace(pointer, vector, max(alignment, natural), volatile)


def _load(e: Builtins, bound: Bound) -> RValue:
    t = e.result_of(bound)
    assert isinstance(t, SimdType)
    return e.read(_element_place(e, bound, t), bound.span)


def _store(e: Builtins, bound: Bound) -> RValue:
    value = e.number(bound, "value")
    assert isinstance(value.type, SimdType)
    e.write(_element_place(e, bound, value.type), value, bound.span)
    return NONE_VALUE


def _retyped(e: Builtins, bound: Bound) -> RValue:
    """Another element type or origin: the same address."""
    pointer, t = _pointer(e, bound)
    to = e.result_of(bound)
    assert isinstance(to, PointerType)
    e.retyped = e.retyped or to.elem != t.elem
    return Runtime(PointerType(to.elem, t.space, to.mutable), pointer.value, pointer.comptime)


def _mut_cast(e: Builtins, bound: Bound) -> RValue:
    pointer, t = _pointer(e, bound)
    return Runtime(PointerType(t.elem, t.space, bool(e.param_int(bound, "target_mut"))), pointer.value)


def _space_cast(e: Builtins, bound: Bound) -> RValue:
    pointer, t = _pointer(e, bound)
    space = e.param_value(bound, "target_address_space")
    to = PointerType(t.elem, space, t.mutable)
    if pointer.value.ty == to.ty:
        return Runtime(to, pointer.value)
    if "generic" not in (t.space, space) and pointer.value.ty.space != "generic":
        raise e.fail(
            "E0612", f"an address of {t.space} memory cannot become one of {space} memory", bound.span,
            help="they are different memories; only a generic address can be one or the other",
        )  # fmt: skip
    return Runtime(to, e.emit1("ptr.cast", [pointer.value], to.ty, bound.span))


HANDLERS.update({
    "SIMD.cast": _cast, "SIMD.select": _select, "SIMD.slice": _slice, "SIMD.join": _join,
    **{f"SIMD.{name}": _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "Pointer.unsafe_offset": _unsafe_offset, "Pointer.unsafe_load": _load, "Pointer.unsafe_store": _store,
    "Pointer.load": _load, "Pointer.store": _store, "Pointer.unsafe_origin_cast": _retyped,
    "Pointer.bitcast": _retyped, "Pointer.unsafe_bitcast": _retyped, "Pointer.unsafe_mut_cast": _mut_cast,
    "Pointer.address_space_cast": _space_cast,
})  # fmt: skip
