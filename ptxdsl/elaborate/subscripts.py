"""Brackets behind a value: elements and what pointers point to, and the parameters of types and functions."""

from __future__ import annotations

from ptxdsl.elaborate import types
from ptxdsl.elaborate.calls import param_args
from ptxdsl.elaborate.conditions import Conditions
from ptxdsl.elaborate.entities import (
    Comptime,
    ComptimeAlias,
    FunctionValue,
    GenericType,
    LanePlace,
    MemoryPlace,
    Place,
    Poison,
    Runtime,
    RValue,
    StructType,
    TemporaryPlace,
    Variadic,
)
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, TupleType, Type
from ptxdsl.syntax import ast


class Subscripts(Conditions):
    def subscript_of(self, place: Place, node: ast.Subscript, scope: Scope) -> Place:
        """``place[…]``; the node's own base is not looked at again."""
        if isinstance(place, TemporaryPlace):
            value = place.value
            if isinstance(value, Poison):
                return place
            if isinstance(value, Comptime) and value.type == types.ANY_TYPE:
                return TemporaryPlace(self._parametrize(value, node, scope))
            if isinstance(value, FunctionValue):
                params = (*value.params, *param_args(node.args, scope))
                return TemporaryPlace(
                    FunctionValue(value.name, value.overloads, value.owner, value.receiver, params)
                )  # fmt: skip
            if isinstance(value, Variadic):
                return TemporaryPlace(Variadic(value.name, (*value.params, *param_args(node.args, scope))))
        t = place.type
        if isinstance(t, PointerType):
            return self._pointee(node, self.read(place, node.value.span), scope)
        if isinstance(t, StructType):
            getter = self.method(t, "__getitem__", place)
            if getter is None:
                methods = [f"`{name}`" for name in t.decl.methods if not name.startswith("_")]
                help = f"it has {', '.join(methods)}" if methods else "define `__getitem__`"
                raise self.fail("E0331", f"{t} cannot be indexed", node.span, help=help)
            return TemporaryPlace(self.call_function(getter, self.given(node.args, scope), node.span))
        return self.element_place(node, place, t, scope)

    def _parametrize(self, value: Comptime, node: ast.Subscript, scope: Scope) -> RValue:
        args = param_args(node.args, scope)
        if isinstance(value.value, GenericType):
            return self.subscript_type(value.value, args, node.span)
        if isinstance(value.value, ComptimeAlias):
            return self.subscript_alias(value.value, args, node.span)
        raise self.fail("E0306", f"{value.value} takes no parameters", node.span, help="leave the brackets out")

    def _pointee(self, node: ast.Subscript, pointer: RValue, scope: Scope) -> Place:
        """``p[]``, ``p[unsafe_offset=i]`` and the short ``p[i]``."""
        assert isinstance(pointer, Runtime) and isinstance(pointer.type, PointerType)
        if not node.args:
            return self.pointee(pointer, node.span)
        argument = node.args[0]
        if len(node.args) > 1 or argument.name not in (None, "unsafe_offset", "offset"):
            raise self.fail("E0604", "a pointer takes one index", node.span, help="write `p[unsafe_offset=i]`")
        self.index_depth += 1
        try:
            index = self.evaluate(argument.value, scope)
        finally:
            self.index_depth -= 1
        if isinstance(index, Poison):
            return TemporaryPlace(index)
        size, _ = self.layout(pointer.type.elem, node.span)
        return self.pointee(self.offset(pointer, index, size, argument.value.span), node.span)

    def element_place(self, node: ast.Subscript, place: Place, t: Type, scope: Scope) -> Place:
        """An element of a vector, array or tuple."""
        if len(node.args) != 1 or node.args[0].name is not None or isinstance(node.args[0].value, ast.Slice):
            raise self.fail(
                "E0331",
                f"{t} takes one index",
                node.span,
                help="several lanes are `v.slice[width, offset=i]()`"
                if isinstance(t, SimdType)
                else "index the element again: `a[i][j]`",
            )
        index_node = node.args[0].value
        index = self.materialize(self.evaluate(index_node, scope), index_node.span)
        if isinstance(index, Poison):
            return TemporaryPlace(index)
        kind = index.type
        scalar = isinstance(kind, SimdType) and kind.width == 1 and kind.dtype.is_integer
        if not (isinstance(index, Runtime) and scalar):
            raise self.fail(
                "E0331", f"an index must be an integer, not {index.type}", index_node.span, help="convert it: `Int(…)`"
            )
        match t:
            case SimdType():
                self.known_index(index, t.width, index_node.span)
                return LanePlace(place, t.scalar, index)
            case ArrayType() | TupleType():
                size = t.size if isinstance(t, ArrayType) else len(t.items)
                number = self.known_index(index, size, index_node.span)
                if number is not None and (index.comptime or isinstance(t, ArrayType)):
                    return self.part_place(
                        place, number, t.elem if isinstance(t, ArrayType) else t.items[number], node.span
                    )
                if isinstance(t, ArrayType):
                    if isinstance(place, MemoryPlace):
                        return self.memory_element(place, t.elem, index, node.span)
                    return LanePlace(place, t.elem, index)
                raise self.fail(
                    "E0401",
                    "a tuple's element is chosen at compile time",
                    index_node.span,
                    help="index it by a literal or a `comptime` value, or use an Array",
                )
        raise self.fail(
            "E0331",
            f"{t} cannot be indexed",
            node.span,
            help="Arrays, tuples, vectors, pointers and structs with `__getitem__` can",
        )
