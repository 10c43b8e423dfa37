"""Functions and methods marked ``@builtin``: an instruction's row, or a few lines here that need the compiler."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl import tir
from ptxdsl.effects import Effect, Kind
from ptxdsl.elaborate import types
from ptxdsl.elaborate.construct import Construct
from ptxdsl.elaborate.entities import (
    NONE_VALUE,
    ArrayValue,
    Comptime,
    LanePlace,
    MemoryPlace,
    Place,
    Poison,
    Runtime,
    RValue,
    StructType,
    StructValue,
    TemporaryPlace,
    TupleValue,
    VariablePlace,
)
from ptxdsl.elaborate.matching import Bound
from ptxdsl.elaborate.types import DType, PointerType, SimdType, Type
from ptxdsl.elaborate.values import const, is_comptime, leaves, with_comptime
from ptxdsl.hints import Any
from ptxdsl.intrinsics import ROWS
from ptxdsl.intrinsics.alignment import ALIGNED, MBARRIER
from ptxdsl.source import Span

Handler = Callable[["Builtins", Bound], RValue]

NAMED_BARRIERS = 16
MAX_ARRIVALS = (1 << 20) - 1  # PTX ISA, mbarrier: the range of pending arrivals and of transaction bytes
STATIC_SHARED = 48 * 1024  # bytes a CTA: what PTX allows to be allocated statically
LOCAL = 512 * 1024  # bytes a thread


class Builtins(Construct):
    """Dispatch, and what handlers need to read their arguments."""

    def call_builtin(self, bound: Bound) -> RValue:
        decl = bound.decl
        key = decl.name if decl.struct is None else f"{decl.struct.name}.{decl.name}"
        handler = HANDLERS.get(key)
        if handler is not None:
            return handler(self, bound)
        if key in ROWS:
            return self._instruction(key, bound)
        raise self.fail(
            "E0343",
            f"`{key}` is marked @builtin, and the compiler does not know it",
            decl.node.name_span,
            help="leave the decorator out, and give the function a body",
        )

    def _instruction(self, name: str, bound: Bound) -> RValue:
        """One instruction: a row of ``intrinsics/``."""
        self.require(ROWS[name].feature, bound.span, f"`{self.entered or name}`")
        operands: list[tir.Value] = []
        comptime = True
        for argument in bound.decl.node.args:
            value = self.convert(self.argument(bound, argument.name), bound.arg_types[argument.name], bound.span)
            operands.extend(leaves(value))
            comptime = comptime and is_comptime(value)
        self._check_constants(ROWS[name].effect, operands, bound)
        attrs = {k: self._attribute_value(v) for k, v in bound.binding.values.items()}
        if "rank" in attrs:  # a tensor copy
            self.map_needs.rank(self.number(bound, "map").value, attrs["rank"])
        if attrs.get("space") == "" and operands[0].ty.space in ("global", "shared"):
            attrs["space"] = f".{operands[0].ty.space}"  # a generic pointer that is known to be narrower
        self._want_aligned(name, operands, attrs, bound)
        t = self.result_of(bound)
        wanted = self._machine_types(t, bound.span)
        result = self._assemble_result(t, iter(self.emit(name, operands, wanted, bound.span, **attrs)))
        return with_comptime(result, True) if comptime and operands else result

    def _want_aligned(self, name: str, operands: list[tir.Value], attrs: dict[str, Any], bound: Bound) -> None:
        for position, bytes in ALIGNED.get(name, ()):
            number = bytes if isinstance(bytes, int) else attrs[bytes]
            self.want_aligned(operands[position], number, f"`{self.entered or name}`", bound.span)
        barrier = ROWS[name].effect.barrier
        if barrier is not None and operands[barrier].ty.is_pointer:  # others are numbers of named barriers
            self.want_aligned(operands[barrier], MBARRIER, "an mbarrier", bound.span)

    def _check_constants(self, effect: Effect, operands: list[tir.Value], bound: Bound) -> None:
        """Barrier ids, arrival counts and byte counts that are known now must be what the instruction takes."""

        def known(position: int | None) -> int | None:
            value = operands[position] if position is not None and position < len(operands) else None
            return value.value if isinstance(value, tir.Const) else None

        if effect.kind in (Kind.NAMED_SYNC, Kind.NAMED_ARRIVE):
            barrier = known(effect.barrier)
            if barrier is not None and not 0 <= barrier < NAMED_BARRIERS:
                raise self.fail(
                    "E0614",
                    f"there is no named barrier {barrier}",
                    bound.span,
                    help=f"a CTA has barriers 0 to {NAMED_BARRIERS - 1}",
                )
        count = known(effect.count) if effect.kind in (Kind.BAR_INIT, Kind.BAR_ARRIVE) else None
        if count is not None and not 1 <= count <= MAX_ARRIVALS:
            raise self.fail(
                "E0615",
                f"an mbarrier counts 1 to {MAX_ARRIVALS:,} arrivals, not {count:,}",
                bound.span,
                help="give the number of arrivals that complete a phase",
            )
        size = known(effect.bytes)
        if size is not None and effect.kind is Kind.ASYNC_COPY and effect.proxy == "async" and size % 16:
            raise self.fail(
                "E0616", f"a bulk copy of {size} bytes", bound.span, help="bulk copies take multiples of 16"
            )
        if size is not None and effect.kind is Kind.BAR_EXPECT and not 0 <= size <= MAX_ARRIVALS:
            raise self.fail(
                "E0615",
                f"an mbarrier counts up to {MAX_ARRIVALS:,} bytes, not {size:,}",
                bound.span,
                help="expect the bytes of one stage, not of all",
            )

    def _attribute_value(self, value: RValue) -> Any:
        if isinstance(value, Comptime):
            return value.value
        assert isinstance(value, Runtime) and isinstance(value.value, tir.Const)
        number = value.value.value
        t = value.type
        if isinstance(t, SimdType) and t.dtype.kind == "uint" and isinstance(number, int):
            return number & ((1 << t.dtype.bits) - 1)
        return bool(number) if t == types.BOOL else number

    def _machine_types(self, t: Type, span: Span) -> list[tir.Ty]:
        match t:
            case SimdType() | PointerType():
                return [t.ty]
            case types.TENSOR_MAP:
                return [tir.ptr("generic")]
            case StructType():
                return [ty for _, f in self.fields_of(t) for ty in self._machine_types(f, span)]
            case types.TupleType():
                return [ty for i in t.items for ty in self._machine_types(i, span)]
            case types.ArrayType():
                return self._machine_types(t.elem, span) * t.size
        return []

    def _assemble_result(self, t: Type, values: Any) -> RValue:
        match t:
            case SimdType() | PointerType() | types.TENSOR_MAP:
                return Runtime(t, next(values))
            case StructType():
                return StructValue(t, tuple(self._assemble_result(f, values) for _, f in self.fields_of(t)))
            case types.TupleType():
                return TupleValue(tuple(self._assemble_result(i, values) for i in t.items))
            case types.ArrayType():
                return ArrayValue(t, tuple(self._assemble_result(t.elem, values) for _ in range(t.size)))
        return NONE_VALUE

    # -------------------------------------------------------------------------------------------- for the handlers

    def argument(self, bound: Bound, name: str) -> RValue:
        given = bound.args[name]
        if isinstance(given, VariablePlace | MemoryPlace | LanePlace | TemporaryPlace):
            return self.read(given, bound.span)
        return given

    def number(self, bound: Bound, name: str) -> Runtime:
        """A run-time argument that is a scalar, vector or pointer."""
        return self.runtime(self.argument(bound, name), bound.span)

    def runtime(self, value: RValue, span: Span) -> Runtime:
        if not isinstance(value, Runtime):
            raise self.fail(
                "E0209",
                "a value that is not fully initialised is used",
                span,
                help="give every part of it a value first",
            )
        return value

    def struct_argument(self, bound: Bound, name: str) -> StructValue:
        value = self.argument(bound, name)
        if not isinstance(value, StructValue):
            raise self.fail(
                "E0209",
                "a value that is not fully initialised is used",
                bound.span,
                help="give every part of it a value first",
            )
        return value

    def write_argument(self, bound: Bound, name: str, value: RValue) -> None:
        place = bound.args[name]
        assert isinstance(place, VariablePlace | MemoryPlace | LanePlace | TemporaryPlace)
        self.write(place, value if self.comptime_depth else with_comptime(value, False), bound.span)

    def param(self, bound: Bound, name: str) -> RValue:
        return bound.binding.values[name]

    def param_int(self, bound: Bound, name: str) -> int:
        return self.comptime_int(self.param(bound, name), bound.span)

    def param_value(self, bound: Bound, name: str) -> Any:
        value = self.param(bound, name)
        if not isinstance(value, Comptime):
            raise self.fail(
                "E0309", f"parameter `{name}` takes a type, not a value", bound.span, help="write a type: `Float32`"
            )
        return value.value

    def receiver_name(self, bound: Bound) -> str:
        """What the user calls the value that a method is called on."""
        given = bound.given.get("self")
        place: Place | None = given.place if given is not None else None
        while isinstance(place, LanePlace):
            place = place.base
        return place.variable.name if isinstance(place, VariablePlace) else "pipeline"


# ------------------------------------------------------------------------------------------------------- functions


def _allocation(e: Builtins, bound: Bound) -> RValue:
    """Static shared memory, or memory of the thread's own."""
    t = e.result_of(bound)
    assert isinstance(t, PointerType)
    count = e.param_int(bound, "count")
    size, align = e.layout(t.elem, bound.span)
    if count < 0:
        raise e.fail("E0607", f"an allocation of {count} elements", bound.span, help="give 0 or more")
    alignment = _alignment(e, bound, e.param_int(bound, "alignment") or align)
    if t.space not in ("shared", "generic", "local"):
        raise e.fail("E0609", f"nothing is allocated in {t.space} memory", bound.span, help="use `.SHARED` or `.LOCAL`")
    limit = STATIC_SHARED if t.space == "shared" else LOCAL
    if count * size > limit:
        more = "; for more use external_memory[…]() and the launch's smem=" if t.space == "shared" else ""
        raise e.fail(
            "E0610", f"an allocation of {count * size:,} bytes", bound.span, help=f"the limit is {limit:,}{more}"
        )
    attrs = {"bytes": count * size, "align": max(alignment, align)}
    if t.space == "shared":
        name = e.naming or "shared"
        value = e.emit1("shared.alloc", [], tir.ptr("shared"), bound.span, **attrs, name=name, element=size)
    else:
        attrs["bytes"] = max(1, count * size)
        value = e.emit1("alloca", [], tir.ptr("local"), bound.span, **attrs)
        if t.space == "generic":
            value = e.emit1("ptr.cast", [value], t.ty, bound.span)
    return Runtime(t, value)


def _alignment(e: Builtins, bound: Bound, alignment: int) -> int:
    """An alignment that memory can have."""
    if alignment < 1 or alignment & (alignment - 1) or alignment > 1024:
        message = f"an alignment is a power of two up to 1024, not {alignment}"
        raise e.fail("E0608", message, bound.span, help="give 1, 2, 4, 8, … 1024")
    return alignment


def _external(e: Builtins, bound: Bound) -> RValue:
    t = e.result_of(bound)
    assert isinstance(t, PointerType)
    if t.space != "shared":
        raise e.fail("E0609", "dynamic memory is shared memory", bound.span, help="address_space=AddressSpace.SHARED")
    alignment = _alignment(e, bound, e.param_int(bound, "alignment"))
    e.uses_dynamic_shared = True
    return Runtime(t, e.emit1("shared.dynamic", [], t.ty, bound.span, align=alignment))


def _use_dynamic_shared(e: Builtins, bound: Bound) -> RValue:
    number = e.param_int(bound, "bytes")
    if e.dynamic_shared is None or e.dynamic_shared[0] < number:
        e.dynamic_shared = number, e.at(bound.span)
    return NONE_VALUE


def _minmax(name: str) -> Handler:
    def handler(e: Builtins, bound: Bound) -> RValue:
        a, b = e.number(bound, "a"), e.number(bound, "b")
        assert isinstance(a.type, SimdType)
        kind = a.type.dtype.kind
        op = f"f{name}" if kind == "float" else f"{name}.s" if kind == "int" else f"{name}.u"
        return Runtime(a.type, e.emit1(op, [a.value, b.value], a.type.ty, bound.span), a.comptime and b.comptime)

    return handler


def _abs(e: Builtins, bound: Bound) -> RValue:
    x = e.number(bound, "x")
    assert isinstance(x.type, SimdType)
    if x.type.dtype.kind in ("uint", "bool"):
        return x
    op = "fabs" if x.type.dtype.kind == "float" else "abs.s"
    return Runtime(x.type, e.emit1(op, [x.value], x.type.ty, bound.span), x.comptime)


def _fma(e: Builtins, bound: Bound) -> RValue:
    a, b, c = (e.number(bound, n) for n in "abc")
    assert isinstance(a.type, SimdType)
    if a.type.dtype.kind != "float":
        return e.binary("+", e.binary("*", a, b, bound.span), c, bound.span)
    value = e.emit1("fma", [a.value, b.value, c.value], a.type.ty, bound.span)
    return Runtime(a.type, value, a.comptime and b.comptime and c.comptime)


def _bitcast(e: Builtins, bound: Bound) -> RValue:
    value = e.number(bound, "value")
    to = e.result_of(bound)
    have = value.type
    assert isinstance(have, SimdType) and isinstance(to, SimdType)
    if have.ty.bits * have.width != to.ty.bits * to.width or "bool" in (have.dtype.kind, to.dtype.kind):
        raise e.fail("E0301", f"{have} and {to} differ in size", bound.span, help="bitcast keeps the number of bits")
    return Runtime(to, e.emit1("bitcast", [value.value], to.ty, bound.span), value.comptime)


def _layout(index: int) -> Handler:
    def handler(e: Builtins, bound: Bound) -> RValue:
        return const(types.INT, e.layout(e.param_value(bound, "type"), bound.span)[index])

    return handler


def _bit_width(e: Builtins, bound: Bound) -> RValue:
    return const(types.INT, 8 * e.layout(e.param_value(bound, "type"), bound.span)[0])


def _rebind(e: Builtins, bound: Bound) -> RValue:
    return e.argument(bound, "value")


def _debug_assert(e: Builtins, bound: Bound) -> RValue:
    message = e.argument(bound, "message")
    assert isinstance(message, Comptime)
    e.emit("assert", [e.number(bound, "condition").value], [], bound.span, message=message.value)
    return NONE_VALUE


# ------------------------------------------------------------------------------------------------------------ DType


def _dtype(test: Callable[[DType], bool]) -> Handler:
    def handler(e: Builtins, bound: Bound) -> RValue:
        value = e.argument(bound, "self")
        return const(types.BOOL, int(test(value.value))) if isinstance(value, Comptime) else Poison()

    return handler


def _dtype_size(scale: int) -> Handler:
    def handler(e: Builtins, bound: Bound) -> RValue:
        value = e.argument(bound, "self")
        return const(types.INT, value.value.bytes * scale) if isinstance(value, Comptime) else Poison()

    return handler


HANDLERS: dict[str, Handler] = {
    "unsafe_stack_allocation": _allocation,
    "stack_allocation": _allocation,
    "external_memory": _external,
    "use_dynamic_shared": _use_dynamic_shared,
    "min": _minmax("min"),
    "max": _minmax("max"),
    "abs": _abs,
    "fma": _fma,
    "bitcast": _bitcast,
    "size_of": _layout(0),
    "align_of": _layout(1),
    "bit_width_of": _bit_width,
    "rebind": _rebind,
    "debug_assert": _debug_assert,
    "DType.is_floating_point": _dtype(lambda d: d.kind == "float"),
    "DType.is_integral": _dtype(lambda d: d.is_integer),
    "DType.is_signed": _dtype(lambda d: d.kind in ("int", "float")),
    "DType.is_unsigned": _dtype(lambda d: d.kind == "uint"),
    "DType.is_float8": _dtype(lambda d: d.name.startswith("float8")),
    "DType.is_half_float": _dtype(lambda d: d.kind == "float" and d.bits == 16),
    "DType.size_of": _dtype_size(1),
    "DType.bit_width": _dtype_size(8),
}
