"""Expressions: each designates a place, and its value is what is read there."""

from __future__ import annotations

from ptxdsl.diagnostics import CompileError, counted
from ptxdsl.elaborate import types
from ptxdsl.elaborate.control import contains_call
from ptxdsl.elaborate.convert import LARGEST_FLOATS
from ptxdsl.elaborate.entities import (
    ArrayValue,
    Comptime,
    ComptimeAlias,
    FunctionValue,
    GenericType,
    Literal,
    Place,
    PlaceAlias,
    Poison,
    RValue,
    StructType,
    StructValue,
    TemporaryPlace,
    TupleValue,
    Variable,
    VariablePlace,
    Variadic,
)
from ptxdsl.elaborate.matching import Given
from ptxdsl.elaborate.names import entity_span
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.subscripts import Subscripts
from ptxdsl.elaborate.suggestions import MEMBERS, POINTER_METHODS, closest, elsewhere, meant, of_module
from ptxdsl.elaborate.type_expressions import MAX_ARRAY
from ptxdsl.elaborate.types import DTYPES, SPACES, ArrayType, PointerType, SimdType, TupleType, Type
from ptxdsl.elaborate.values import const, type_value
from ptxdsl.source import Span
from ptxdsl.syntax import ast

# What may designate something that can be assigned; every other kind of expression gives a value alone.
_PLACES = (ast.Attribute, ast.Subscript, ast.Transfer)


class Expressions(Subscripts):
    """One method a kind of node."""

    def evaluate(self, node: ast.Expr, scope: Scope, expected: Type | None = None) -> RValue:
        kind = node.__class__
        if kind is ast.Name:
            assert isinstance(node, ast.Name)
            return self.entity_value(self.lookup(node, scope), node)
        if kind in _PLACES:
            return self.read(self.designate(node, scope, expected), node.span)
        return self._value(node, scope, expected)

    def evaluate_both(self, first: ast.Expr, second: ast.Expr, scope: Scope) -> tuple[RValue, RValue]:
        """The values of two operands. What the first one designates is read after the calls of the second."""
        if (first.__class__ is ast.Name or first.__class__ in _PLACES) and contains_call(second):
            place = self.designate(first, scope)
            right = self.evaluate(second, scope)
            return self.read(place, first.span), right
        return self.evaluate(first, scope), self.evaluate(second, scope)

    def evaluate_items(
        self, nodes: tuple[ast.Expr, ...], scope: Scope, wanted: tuple[Type | None, ...] | None
    ) -> list[RValue]:
        """The values of the items of a tuple or list: what they designate is read when all have been evaluated."""
        places = [self.designate(n, scope, wanted[i] if wanted else None) for i, n in enumerate(nodes)]
        return [self.read(place, n.span) for place, n in zip(places, nodes, strict=True)]

    def evaluate_place(self, node: ast.Expr, scope: Scope) -> Place:
        return self.designate(node, scope, None)

    def designate(self, node: ast.Expr, scope: Scope, expected: Type | None = None) -> Place:
        match node:
            case ast.Name():
                return self._name(node, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.Transfer():
                return TemporaryPlace(self.evaluate(node.value, scope, expected))
        return TemporaryPlace(self._value(node, scope, expected))

    def _value(self, node: ast.Expr, scope: Scope, expected: Type | None) -> RValue:
        match node:
            case ast.Call():
                return self._call(node, scope, expected)
            case ast.IntLiteral():
                return Literal(node.value)
            case ast.Binary():
                left, right = self.evaluate_both(node.left, node.right, scope)
                return self.binary(node.op, left, right, node.span)
            case ast.Compare():
                return self._compare(node, scope)
            case ast.BoolLiteral():
                return const(types.BOOL, int(node.value))
            case ast.FloatLiteral():
                return self._float(node)
            case ast.Unary():
                value = self.evaluate(node.operand, scope)
                if node.op == "not":
                    return self.negate(self.condition(value, node.operand.span), node.span)
                return self.unary(node.op, value, node.span)
            case ast.BoolOp():
                return self._bool_op(node, scope)
            case ast.Conditional():
                return self._conditional(node, scope, expected)
            case ast.StringLiteral():
                return Comptime(types.STRING, node.value)
            case ast.NoneLiteral():
                return Comptime(types.NONE, None)
            case ast.TupleExpr():
                return self._tuple(node, scope, expected)
            case ast.ListExpr():
                return self._list(node, scope, expected)
            case ast.DotName():
                return self._dot_name(node, expected)
            case ast.FunctionType():
                return type_value(types.FUNCTION)
            case ast.EllipsisLiteral():
                raise self.fail(
                    "E0328", "`...` has no value", node.span, help="write a value; a body without statements is `pass`"
                )
            case ast.Slice():
                help = "lanes of a vector: `v.slice[4, offset=i]()`; neighbours in memory: `p.unsafe_load[width=4](i)`"
                raise self.fail("E0328", "slices are not in the subset", node.span, help=help)
        raise AssertionError(node)

    def _float(self, node: ast.FloatLiteral) -> Literal:
        text = node.text.replace("_", "")
        mantissa, _, exponent = text.lower().partition("e")
        if (exponent and abs(int(exponent)) > 5000) or len(mantissa) > 2000:
            raise self.fail(
                "E0303", "this float literal is out of range", node.span, help="Float64 holds up to 1.8e308"
            )
        from fractions import Fraction  # as in float_literals.py

        return Literal(Fraction(text))

    def _tuple(self, node: ast.TupleExpr, scope: Scope, expected: Type | None) -> RValue:
        wanted = expected.items if isinstance(expected, TupleType) and len(expected.items) == len(node.items) else None
        items = self.evaluate_items(node.items, scope, wanted)
        if wanted:
            items = [
                self.convert(v, t, n.span) if isinstance(v, Literal) else v
                for v, t, n in zip(items, wanted, node.items, strict=True)
            ]
        if not self.comptime_depth:
            items = [self.materialize(v, n.span) for v, n in zip(items, node.items, strict=True)]
        return TupleValue(tuple(items))

    def _list(self, node: ast.ListExpr, scope: Scope, expected: Type | None) -> RValue:
        if len(node.items) > MAX_ARRAY:
            raise self.fail(
                "E0314",
                f"an Array holds 0 to {MAX_ARRAY} elements, not {len(node.items)}",
                node.span,
                help="allocate memory for more: unsafe_stack_allocation[n, T, address_space=…]()",
            )
        items = self.evaluate_items(node.items, scope, None)
        size = None
        if isinstance(expected, ArrayType):
            size = expected.size
        elif isinstance(expected, SimdType) and expected.width > 1:
            size = expected.width
        if size is not None and len(items) != size:
            raise self.fail(
                "E0329",
                f"{counted(len(items), 'element')} for {expected}",
                node.span,
                help=f"write {counted(size, 'element')}",
            )
        if size is not None and isinstance(expected, SimdType):
            lanes = [Given(self, n.span, TemporaryPlace(v)) for n, v in zip(node.items, items, strict=True)]
            return self.construct(expected, lanes, node.span)
        if isinstance(expected, ArrayType):
            elem: Type = expected.elem
        elif items:
            elem = self.materialize(items[0], node.span).type
        else:
            raise self.fail(
                "E0329",
                "the element type of an empty list is not known",
                node.span,
                help="write the type: `Array[Float32, 0]()`",
            )
        converted = (self.convert(v, elem, n.span) for v, n in zip(items, node.items, strict=True))
        return ArrayValue(ArrayType(elem, len(items)), tuple(converted))

    def _dot_name(self, node: ast.DotName, expected: Type | None) -> RValue:
        if expected is None:
            raise self.fail(
                "E0318", f"`.{node.name}` needs a context that says which type it belongs to", node.span,
                help="write the type: `AddressSpace.SHARED`",
            )  # fmt: skip
        found = self.type_member(expected, node.name, node.span)
        if found is None:
            near = closest(node.name, self.type_members(expected))
            raise self.fail(
                "E0330",
                f"{expected} has no `{node.name}`",
                node.span,
                help=f"did you mean `.{near}`?" if near else None,
            )
        return found

    def _name(self, node: ast.Name, scope: Scope) -> Place:
        entity = self.lookup(node, scope)
        if isinstance(entity, Variable):
            if entity not in self.state:
                self.variable_value(entity, node.span)
            return VariablePlace(entity, entity.type)
        if isinstance(entity, PlaceAlias):
            return entity.place
        return TemporaryPlace(self.entity_value(entity, node))

    def call_variadic(self, function: Variadic, args: list[Given], span: Span) -> RValue:
        raise NotImplementedError

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Place:
        try:
            place = self.designate(node.value, scope)
        except CompileError:
            if isinstance(node.value, ast.Name) and scope.lookup(node.value.id) is None:
                written = f"{node.value.id}.{node.name}"
                help = of_module(node.value.id, node.name)
                if help is not None:
                    raise self.fail("E0201", f"`{written}` is not a name here", node.span, help=help) from None
            raise
        if isinstance(place, TemporaryPlace):
            value = place.value
            if isinstance(value, Poison):
                return place
            if isinstance(value, Comptime) and value.type == types.ANY_TYPE:
                return TemporaryPlace(self._static_member(value, node))
            if isinstance(value, Comptime) and value.type == types.MODULE:
                if value.value.names.get(node.name) is None:
                    raise self.fail(
                        "E0204", f"the module has no `{node.name}`", node.name_span,
                        help=elsewhere(node.name) or meant(node.name, value.value.names),
                    )  # fmt: skip
                return self._name(ast.Name(node.name_span, node.name), value.value)
        t = place.type
        if isinstance(t, StructType):
            for i, (name, field_type) in enumerate(self.fields_of(t)):
                if name == node.name:
                    return self.part_place(place, i, field_type, node.span)
        method = self.method(t, node.name, place)
        if method is not None:
            return TemporaryPlace(method)
        if isinstance(t, StructType):
            alias = self.struct_alias(t, node.name, node.span)
            if alias is not None:
                return TemporaryPlace(alias)
            getter = self.method(t, "__getattr__", place)
            if getter is not None:
                return TemporaryPlace(self._get_attribute(getter, node))
        param = self.param_member(t, node.name)
        if param is not None:
            return TemporaryPlace(param)
        parts = self.fields_of(t) if isinstance(t, StructType) else []
        holder = next((name for name, part in parts if node.name in self.members(part)), None)
        if isinstance(t, PointerType) and node.name in self.members(t.elem):
            holder = "[]"
        raise self._no_member(str(t), self.members(t), node, holder)

    def _get_attribute(self, getter: FunctionValue, node: ast.Attribute) -> RValue:
        """``value.name`` as ``value.__getattr__["name"]()``."""
        name = ast.Argument(node.name_span, None, ast.StringLiteral(node.name_span, node.name))
        function = FunctionValue(getter.name, getter.overloads, getter.owner, getter.receiver, ((name, Scope()),))
        return self.call_function(function, [], node.span)

    def _no_member(self, what: str, names: list[str], node: ast.Attribute, holder: str | None = None) -> Exception:
        """E0330 of a type with these members. holder: its field that has what is asked for."""
        near = closest(node.name, names)
        help = f"did you mean `{near}`?" if near else None
        if node.name in names:  # a field, asked of the type
            help = "take it from a value: only values have fields"
        elif node.name in POINTER_METHODS and "unsafe_offset" in names:
            help = POINTER_METHODS[node.name]
        elif node.name in MEMBERS:
            help = MEMBERS[node.name]
        elif holder is not None and holder.startswith("_"):  # Pending
            help = "only the wait for the operation returns what has it, such as `wgmma_wait_group_sync(…)`"
        elif holder == "[]":
            help = f"what it points to has it: write `p[].{node.name}`"
        elif holder is not None:
            help = f"`{holder}` has it: write `.{holder}.{node.name}`"
        elif near is None and self.prelude_scope().names.get(node.name) is not None:
            help = f"it is a function: `{node.name}(…)`"
        elif near is None and 0 < len(shown := [n for n in names if not n.startswith("_")]) <= 8:
            help = "it has " + ", ".join(f"`{n}`" for n in shown)
        message = f"{what} has no `{node.name}`"
        if self.site is not None and node.name_span.source.library:
            message = f"`{self.entered}` does not take this: {message}"
        return self.fail("E0330", message, node.name_span, help=help)

    def members(self, t: Type) -> list[str]:
        decl = self.methods_of(t)
        names = [] if decl is None else [*decl.methods, *decl.aliases]
        return names + ([n for n, _ in self.fields_of(t)] if isinstance(t, StructType) else [])

    def _static_member(self, value: Comptime, node: ast.Attribute) -> RValue:
        t = value.value
        if isinstance(t, GenericType) and not isinstance(t.decl, str):
            static = t.decl.methods.get(node.name)
            if static is None or t.params:
                t = self.as_type(value, node.value.span)
            else:
                return FunctionValue(node.name, tuple(static), None)
        if isinstance(t, GenericType | ComptimeAlias):
            t = self.as_type(value, node.value.span)
        found = self.type_member(t, node.name, node.span)
        if found is None:
            raise self._no_member(f"type {t}", self.type_members(t), node)
        return found

    def type_members(self, t: Type) -> list[str]:
        return list(SPACES) if t == types.SPACE else list(DTYPES) if t == types.DTYPE else self.members(t)

    def type_member(self, t: Type, name: str, span: Span) -> RValue | None:
        """``DType.float32``, ``AddressSpace.SHARED``, a struct's comptime member or method, ``Float32.dtype``."""
        if t == types.SPACE:
            return Comptime(types.SPACE, SPACES[name]) if name in SPACES else None
        if t == types.DTYPE:
            return Comptime(types.DTYPE, DTYPES[name]) if name in DTYPES else None
        if isinstance(t, StructType):
            alias = self.struct_alias(t, name, span)
            if alias is not None:
                return alias
        param = self.param_member(t, name)
        if param is not None:
            return param
        if isinstance(t, SimdType) and name in ("MAX", "MIN", "MAX_FINITE", "MIN_FINITE"):
            return self._limit(t, name)
        return self.method(t, name, None)

    def param_member(self, t: Type, name: str) -> RValue | None:
        """A parameter of a type, as a member of the type or of a value: ``vector.size``, ``Float32.dtype``."""
        if isinstance(t, StructType):
            return self.instance(t).params.get(name)
        decl = self.methods_of(t)
        given = self.type_params(decl.name, t) if decl is not None else None
        return None if given is None else given.get(name)

    def _limit(self, t: SimdType, name: str) -> RValue | None:
        if t.dtype.is_integer:
            low, high = t.dtype.limits
            number = high if name.startswith("MAX") else low
            return const(t, number - (1 << t.dtype.bits) if number >= 1 << (t.dtype.bits - 1) else number)
        if t.dtype.kind == "float" and (name.endswith("FINITE") or t.dtype.name == "float8_e4m3fn"):  # has no infinity
            largest = LARGEST_FLOATS[t.dtype.name]
            return const(t, largest if name.startswith("MAX") else -largest)
        return const(t, float("inf") if name == "MAX" else -float("inf")) if t.dtype.kind == "float" else None

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Place:
        return self.subscript_of(self.designate(node.value, scope), node, scope)

    def _call(self, node: ast.Call, scope: Scope, expected: Type | None) -> RValue:
        if isinstance(node.func, ast.DotName):
            function = self._dot_name(node.func, expected)
        else:
            function = self.evaluate(node.func, scope)
        args = self.given(node.args, scope)
        if isinstance(function, Poison) or any(argument.is_poison for argument in args):
            return Poison()
        if isinstance(function, FunctionValue):
            return self.call_function(function, args, node.span)
        if isinstance(function, Comptime) and isinstance(function.value, Type | GenericType):
            return self.construct(function.value, args, node.span)
        if isinstance(function, Comptime) and isinstance(function.value, ComptimeAlias):
            return self.construct(self.as_type(function, node.func.span), args, node.span)
        if isinstance(function, Variadic):
            return self.call_variadic(function, args, node.span)
        if isinstance(function, StructValue):
            method = self.method(function.type, "__call__", TemporaryPlace(function))
            if method is not None:
                return self.call_function(method, args, node.span)
        raise self._not_callable(node.func, function, scope)

    def _not_callable(self, node: ast.Expr, value: RValue, scope: Scope) -> CompileError:
        notes: tuple[tuple[Span, str], ...] = ()
        help = "define `__call__`" if isinstance(value, StructValue) else None
        if isinstance(node, ast.Name):
            declared = entity_span(scope.lookup(node.id))
            notes = () if declared is None else ((declared, "declared here"),)
            if self.prelude_scope().lookup(node.id) is not None:
                help = f"it hides the library's `{node.id}`: give the variable another name"
        return self.fail("E0332", f"a value of type {value.type} cannot be called", node.span, *notes, help=help)
