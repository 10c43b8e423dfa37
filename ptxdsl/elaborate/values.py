"""What is asked of a value, whatever it is made of: is it known at compile time, its key, its machine values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_

from ptxdsl import tir
from ptxdsl.elaborate import types
from ptxdsl.elaborate.entities import (
    ArrayValue,
    Comptime,
    FunctionValue,
    GenericType,
    Literal,
    RangeValue,
    Runtime,
    RValue,
    StructValue,
    TupleValue,
    Uninit,
)
from ptxdsl.elaborate.types import SimdType, Type
from ptxdsl.hints import Any


def type_value(t: Type | GenericType) -> Comptime:
    return Comptime(types.ANY_TYPE, t)


def const(t: SimdType, value: int | float, comptime: bool = True) -> Runtime:
    """A constant scalar, or the same in every lane."""
    return Runtime(t, tir.Const(t.ty, value if t.width == 1 else (value,) * t.width), comptime)


def is_comptime(value: RValue) -> bool:
    """Whether a value is known at compile time by right, not by luck of folding."""
    match value:
        case Runtime():
            return value.comptime and isinstance(value.value, tir.Const)
        case StructValue():
            return all(map(is_comptime, value.fields))
        case ArrayValue() | TupleValue():
            return all(map(is_comptime, value.items))
        case RangeValue():
            return all(map(is_comptime, (value.start, value.stop, value.step)))
        case Uninit():
            return False
    return True


def with_comptime(value: RValue, comptime: bool) -> RValue:
    """The value as a variable holds it (False), or as a compile-time name does (True)."""
    match value:
        case Runtime():
            return value if value.comptime == comptime else Runtime(value.type, value.value, comptime)
        case StructValue():
            fields = _all_with_comptime(value.fields, comptime)
            return value if fields is value.fields else StructValue(value.type, fields)
        case ArrayValue():
            items = _all_with_comptime(value.items, comptime)
            return value if items is value.items else ArrayValue(value.type, items)
        case TupleValue():
            items = _all_with_comptime(value.items, comptime)
            return value if items is value.items else TupleValue(items)
    return value


def _all_with_comptime(values: tuple[RValue, ...], comptime: bool) -> tuple[RValue, ...]:
    """``with_comptime`` of each; the same tuple where nothing changes."""
    new = tuple([with_comptime(v, comptime) for v in values])
    return values if all(map(is_, new, values)) else new


def key_of(value: RValue) -> Any:
    """A hashable key of a compile-time value; equal keys mean equal parameters."""
    match value:
        case Literal():
            return ("IntLiteral" if isinstance(value.value, int) else "FloatLiteral", value.value)
        case Runtime():
            constant = value.value
            assert isinstance(constant, tir.Const)
            number = constant.value
            return (value.type, bool(number) if value.type == types.BOOL else number)
        case Comptime():
            return (value.type, value.value)
        case StructValue():
            return (value.type, tuple(map(key_of, value.fields)))
        case ArrayValue() | TupleValue():
            return (value.type, tuple(map(key_of, value.items)))
        case FunctionValue():
            return (value.name, value.overloads, value.owner)
    raise AssertionError(value)


def leaves(value: RValue) -> Iterator[tir.Value]:
    """The machine values of a run-time value, in order."""
    match value:
        case Runtime():
            yield value.value
        case StructValue():
            for f in value.fields:
                yield from leaves(f)
        case ArrayValue() | TupleValue():
            for f in value.items:
                yield from leaves(f)


def rebuild(value: RValue, replace: Callable[[tir.Value], tir.Value]) -> RValue:
    """The same value with each machine value replaced; nothing in it is a compile-time value any more."""
    match value:
        case Runtime():
            return Runtime(value.type, replace(value.value))
        case StructValue():
            return StructValue(value.type, tuple(rebuild(f, replace) for f in value.fields))
        case ArrayValue():
            return ArrayValue(value.type, tuple(rebuild(f, replace) for f in value.items))
        case TupleValue():
            return TupleValue(tuple(rebuild(f, replace) for f in value.items))
    return value


def same(a: tir.Value, b: tir.Value) -> bool:
    return a is b or (isinstance(a, tir.Const) and isinstance(b, tir.Const) and a.ty == b.ty and a.value == b.value)


def uninitialised(value: RValue) -> tuple[int, ...] | None:
    """The path to a part without a value, if there is one."""
    if isinstance(value, Uninit):
        return ()
    items = value.fields if isinstance(value, StructValue) else getattr(value, "items", ())
    for i, item in enumerate(items):
        path = uninitialised(item)
        if path is not None:
            return (i, *path)
    return None
