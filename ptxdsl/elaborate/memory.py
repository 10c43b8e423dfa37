"""Places and memory: reading and writing variables and their parts, pointers and what they point at, layouts."""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.elaborate import types
from ptxdsl.elaborate.entities import (
    ArrayValue,
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
    Uninit,
    VariablePlace,
)
from ptxdsl.elaborate.traits import Traits
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, TupleType, Type
from ptxdsl.source import Span

IN_MEMORY = "memory holds numbers, vectors, pointers, Arrays, tuples and structs"


class Memory(Traits):
    """Everything that loads and stores."""

    # ----------------------------------------------------------------------------------------------------- layouts

    def layout(self, t: Type, span: Span) -> tuple[int, int]:
        """Size and alignment in bytes. Structs are laid out as in C; a vector is aligned to its size."""
        match t:
            case SimdType():
                size = t.dtype.bytes * t.width
                return size, size
            case PointerType():
                return t.ty.bytes, t.ty.bytes
            case ArrayType():
                size, align = self.layout(t.elem, span)
                return size * t.size, align
            case StructType() | TupleType():
                size, align = 0, 1
                for part in self.part_types(t):
                    part_size, part_align = self.layout(part, span)
                    size = -(-size // part_align) * part_align + part_size
                    align = max(align, part_align)
                return -(-size // align) * align, align
        raise self.fail(
            "E0601", f"{t} has no layout in memory", span,
            help=IN_MEMORY,
        )  # fmt: skip

    def part_types(self, t: StructType | TupleType) -> tuple[Type, ...]:
        return t.items if isinstance(t, TupleType) else tuple(f for _, f in self.fields_of(t))

    def part_offset(self, t: StructType | TupleType, index: int, span: Span) -> int:
        offset = 0
        for i, part in enumerate(self.part_types(t)):
            size, align = self.layout(part, span)
            offset = -(-offset // align) * align
            if i == index:
                return offset
            offset += size
        raise AssertionError(index)

    # ------------------------------------------------------------------------------------------------------ reading

    def read(self, place: Place, span: Span) -> RValue:
        match place:
            case TemporaryPlace():
                return place.value
            case VariablePlace():
                value = self.variable_value(place.variable, span) if not place.path else self._part(place)
                return self.initialised(value, place.variable, span)
            case MemoryPlace():
                return self.load(place, place.type, place.pointer, place.align, span)
            case LanePlace():
                return self.element(self.read(place.base, span), place.index, span)

    def _part(self, place: VariablePlace) -> RValue:
        value = self.state[place.variable]
        for step in place.path:
            if isinstance(value, Uninit):
                return value
            value = parts(value)[step]
        return value

    def load(self, place: MemoryPlace, t: Type, pointer: Runtime, align: int, span: Span) -> RValue:
        """Loads a value of any type leaf by leaf."""
        match t:
            case SimdType() | PointerType():
                value = self.emit1("load", [pointer.value], t.ty, span, align=align, volatile=place.volatile)
                return Runtime(t, value)
            case StructType():
                return StructValue(t, self._load_parts(place, t, pointer, align, span))
            case TupleType():
                return TupleValue(self._load_parts(place, t, pointer, align, span))
            case ArrayType():
                size, _ = self.layout(t.elem, span)
                return ArrayValue(t, tuple(
                    self.load(place, t.elem, self.advance(pointer, i * size, span), known_align(align, i * size), span)
                    for i in range(t.size)
                ))  # fmt: skip
        raise self.fail("E0601", f"{t} cannot be loaded from memory", span, help=IN_MEMORY)

    def _load_parts(
        self, place: MemoryPlace, t: StructType | TupleType, pointer: Runtime, align: int, span: Span
    ) -> tuple[RValue, ...]:
        result = []
        for i, part in enumerate(self.part_types(t)):
            offset = self.part_offset(t, i, span)
            at = self.advance(pointer, offset, span)
            result.append(self.load(place, part, at, known_align(align, offset), span))
        return tuple(result)

    # ------------------------------------------------------------------------------------------------------ writing

    def write(self, place: Place, value: RValue, span: Span) -> None:
        """Stores a value that already has the place's type; one in error leaves what was there."""
        if isinstance(value, Poison):
            if isinstance(place, VariablePlace):
                self.in_error.add(place.variable)
            return
        match place:
            case TemporaryPlace():
                raise self.fail(
                    "E0317", "this is a temporary value: it cannot be assigned", span, help="give it to a `var` first"
                )
            case VariablePlace():
                variable = place.variable
                if self.comptime_depth and not variable.comptime:
                    raise self.fail(
                        "E0401", f"`{variable.name}` is a run-time variable: it cannot change at compile time", span,
                        (variable.span, "declared here"), help="pass it as an argument, or declare it inside"
                    )  # fmt: skip
                old = self.state[place.variable]
                self.state[place.variable] = self._replaced(old, place.variable.type, place.path, value)
            case MemoryPlace():
                if isinstance(place.pointer.type, PointerType) and not place.pointer.type.mutable:
                    raise self.fail(
                        "E0602", "a write through a read-only pointer", span,
                        help="declare it as Pointer[T, MutAnyOrigin]",
                    )  # fmt: skip
                self.store(place, value, place.pointer, place.align, span)
            case LanePlace():
                base = self.read(place.base, span)
                self.write(place.base, self.with_element(base, place.index, value, span), span)

    def _replaced(self, old: RValue, t: Type, path: tuple[int, ...], value: RValue) -> RValue:
        """The old value with the part at a path replaced."""
        if not path:
            return value
        if isinstance(old, Uninit):
            old = self.uninitialised_parts(t)
        items = list(parts(old))
        part_type = items[path[0]].type
        items[path[0]] = self._replaced(items[path[0]], part_type, path[1:], value)
        return with_parts(old, tuple(items))

    def uninitialised_parts(self, t: Type) -> RValue:
        """A value of a struct, tuple or array type whose parts are all still to be given."""
        match t:
            case StructType():
                return StructValue(t, tuple(Uninit(f) for _, f in self.fields_of(t)))
            case TupleType():
                return TupleValue(tuple(Uninit(i) for i in t.items))
            case ArrayType():
                return ArrayValue(t, (Uninit(t.elem),) * t.size)
        raise AssertionError(t)

    def store(self, place: MemoryPlace, value: RValue, pointer: Runtime, align: int, span: Span) -> None:
        match value:
            case Runtime():
                self.emit("store", [pointer.value, value.value], [], span, align=align, volatile=place.volatile)
                return
            case StructValue() | TupleValue():
                t = value.type
                assert isinstance(t, StructType | TupleType)
                for i, part in enumerate(parts(value)):
                    offset = self.part_offset(t, i, span)
                    self.store(place, part, self.advance(pointer, offset, span), known_align(align, offset), span)
                return
            case ArrayValue():
                size, _ = self.layout(value.type.elem, span)
                for i, part in enumerate(value.items):
                    at = self.advance(pointer, i * size, span)
                    self.store(place, part, at, known_align(align, i * size), span)
                return
            case Uninit():
                raise self.fail(
                    "E0209",
                    "a value that is not fully initialised is stored",
                    span,
                    help="give every part of it a value first",
                )
        raise self.fail("E0601", f"{value.type} cannot be stored in memory", span, help=IN_MEMORY)

    # ------------------------------------------------------------------------------------------------------- parts

    def part_place(self, place: Place, index: int, part_type: Type, span: Span) -> Place:
        """A field of a struct, or an element (known at compile time) of an array or tuple, in a place."""
        match place:
            case VariablePlace():
                return VariablePlace(place.variable, part_type, (*place.path, index))
            case MemoryPlace():
                t = place.type
                if isinstance(t, ArrayType):
                    offset = index * self.layout(t.elem, span)[0]
                else:
                    assert isinstance(t, StructType | TupleType)
                    offset = self.part_offset(t, index, span)
                pointer = self.advance(place.pointer, offset, span)
                return MemoryPlace(pointer, part_type, known_align(place.align, offset), place.volatile)
            case TemporaryPlace():
                value = place.value
                if isinstance(value, Uninit):
                    value = self.uninitialised_parts(value.type)
                return TemporaryPlace(parts(value)[index])
            case LanePlace():
                return LanePlace(place, part_type, index)

    def element(self, value: RValue, index: Runtime | int, span: Span) -> RValue:
        """One element of a vector or array; a run-time index into an array goes through local memory."""
        if isinstance(value, Poison):
            return value
        if isinstance(index, int):
            return parts(value)[index]
        if isinstance(value, Runtime) and isinstance(value.type, SimdType):
            t = value.type.scalar
            at = self.lane_index(index, value.type.width, span)
            lane = self.emit1("vec.extract", [value.value, at], t.ty, span) if value.type.width > 1 else value.value
            return Runtime(t, lane, value.comptime and index.comptime)
        items = parts(value)
        known = self.known_index(index, len(items), span)
        if known is not None:
            return items[known]
        if not isinstance(value, ArrayValue):
            raise self.fail(
                "E0401",
                "a tuple's element is chosen at compile time",
                span,
                help="index it by a literal or a `comptime` value, or use an Array",
            )
        memory = self.spill(value, span)
        return self.read(self.memory_element(memory, value.type.elem, index, span), span)

    def with_element(self, value: RValue, index: Runtime | int, new: RValue, span: Span) -> RValue:
        """A vector or array with one element replaced."""
        if isinstance(value, Poison):
            return value
        if isinstance(index, int):
            return with_parts(value, (*parts(value)[:index], new, *parts(value)[index + 1 :]))
        if isinstance(value, Runtime) and isinstance(value.type, SimdType) and isinstance(new, Runtime):
            if value.type.width == 1:
                return new
            at = self.lane_index(index, value.type.width, span)
            result = self.emit1("vec.insert", [value.value, new.value, at], value.type.ty, span)
            return Runtime(value.type, result, value.comptime and new.comptime)
        items = list(parts(value))
        known = self.known_index(index, len(items), span)
        if known is not None:
            items[known] = new
            return with_parts(value, tuple(items))
        assert isinstance(value, ArrayValue)
        memory = self.spill(value, span)
        self.write(self.memory_element(memory, value.type.elem, index, span), new, span)
        return self.read(memory, span)

    def known_index(self, index: Runtime, size: int, span: Span) -> int | None:
        """The number of an element that is chosen at compile time, else None; E0603 where there is no such element.

        A variable that happens to be constant is no reason for an error: the code may be on a path never taken.
        """
        if not isinstance(index.value, tir.Const):
            return None
        number: int = index.value.value
        if 0 <= number < size:
            return number
        if not index.comptime:
            return None
        raise self.fail(
            "E0603", f"index {number} is out of range for {size} element{'s' * (size != 1)}", span,
            help=f"the elements are 0 to {size - 1}" if size else None,
        )  # fmt: skip

    def lane_index(self, index: Runtime, width: int, span: Span) -> tir.Value:
        known = self.known_index(index, width, span)
        return self.cast(index, types.INT32.dtype, span).value if known is None else tir.Const(tir.I32, known)

    def spill(self, value: ArrayValue, span: Span) -> MemoryPlace:
        """An array's elements in local memory."""
        size, align = self.layout(value.type, span)
        t = PointerType(value.type, "local")
        pointer = Runtime(t, self.emit1("alloca", [], t.ty, span, bytes=max(size, 1), align=align))
        place = MemoryPlace(pointer, value.type, align)
        self.store(place, value, pointer, align, span)
        return place

    def memory_element(self, place: MemoryPlace, t: Type, index: Runtime, span: Span) -> MemoryPlace:
        size, align = self.layout(t, span)
        return MemoryPlace(self.offset(place.pointer, index, size, span), t, min(align, place.align), place.volatile)

    # ---------------------------------------------------------------------------------------------------- pointers

    def advance(self, pointer: Runtime, offset: int, span: Span) -> Runtime:
        """A pointer moved by bytes that are known now."""
        if offset == 0:
            return pointer
        base, before = self.known_offsets.get(pointer.value, (pointer.value, 0))
        if before + offset == 0:
            return Runtime(pointer.type, base)
        zero = tir.Const(tir.I32, 0)
        value = self.emit1("ptr.add", [base, zero], base.ty, span, scale=1, offset=before + offset, unsigned=False)
        self.known_offsets[value] = (base, before + offset)
        return Runtime(pointer.type, value)

    def offset(self, pointer: Runtime, index: RValue, scale: int, span: Span) -> Runtime:
        """A pointer moved by ``index`` elements of ``scale`` bytes; the index is any integer."""
        if not isinstance(index, Runtime):
            index_value = self.materialize(index, span)
        else:
            index_value = index
        t = index_value.type
        if not (isinstance(index_value, Runtime) and isinstance(t, SimdType) and t.dtype.is_integer and t.width == 1):
            raise self.fail(
                "E0604", f"a pointer index must be an integer, not {index.type}", span, help="convert it: `Int(…)`"
            )
        if isinstance(index_value.value, tir.Const):
            return self.advance(pointer, self.comptime_int(index_value, span) * scale, span)
        operands = [pointer.value, index_value.value]
        unsigned = t.dtype.kind == "uint"
        value = self.emit1("ptr.add", operands, pointer.value.ty, span, scale=scale, offset=0, unsigned=unsigned)
        return Runtime(pointer.type, value)

    def pointee(self, pointer: Runtime, span: Span) -> MemoryPlace:
        t = pointer.type
        assert isinstance(t, PointerType)
        return MemoryPlace(pointer, t.elem, self.layout(t.elem, span)[1])

    def address_of(self, place: Place, span: Span) -> Runtime:
        """``Pointer(to=place)``: only what is in memory has an address."""
        if isinstance(place, MemoryPlace):
            t = place.pointer.type
            assert isinstance(t, PointerType)
            return Runtime(PointerType(place.type, t.space, t.mutable), place.pointer.value)
        raise self.fail(
            "E0605", "a variable lives in registers and has no address", span,
            help="allocate memory: unsafe_stack_allocation[n, T, address_space=…]()",
        )  # fmt: skip


def parts(value: RValue) -> tuple[RValue, ...]:
    if isinstance(value, StructValue):
        return value.fields
    assert isinstance(value, ArrayValue | TupleValue), value
    return value.items


def with_parts(value: RValue, items: tuple[RValue, ...]) -> RValue:
    if isinstance(value, StructValue):
        return StructValue(value.type, items)
    return ArrayValue(value.type, items) if isinstance(value, ArrayValue) else TupleValue(items)


def known_align(align: int, offset: int) -> int:
    """The alignment of an address ``offset`` bytes after one aligned to ``align``."""
    return min(align, offset & -offset) if offset else align
