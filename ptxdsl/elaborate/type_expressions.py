"""Type expressions: struct instances, their members, and the builtin generic types."""

from __future__ import annotations

from ptxdsl.diagnostics import CompileError, counted
from ptxdsl.elaborate import types
from ptxdsl.elaborate.context import CALL_STEPS
from ptxdsl.elaborate.entities import (
    Comptime,
    ComptimeAlias,
    GenericType,
    Poison,
    RValue,
    StructDecl,
    StructInstance,
    StructType,
    TupleValue,
)
from ptxdsl.elaborate.parameters import BUILTIN_PARAMS, Binding, ParamArgs, Parameters, is_hole
from ptxdsl.elaborate.role_pipeline import PARAMETER_RULES
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, TupleType, Type
from ptxdsl.elaborate.values import key_of, type_value
from ptxdsl.source import Span
from ptxdsl.syntax import ast

MAX_ARRAY = 2048  # elements: an index known only at run time stores and loads every one of them

# What to write where a builtin generic type stands without its parameters.
EXAMPLES = {
    "SIMD": "SIMD[DType.float32, 4]", "Scalar": "Scalar[DType.float32]", "Pointer": "Pointer[Float32, MutAnyOrigin]",
    "MutPointer": "MutPointer[Float32, MutAnyOrigin]", "ImmutPointer": "ImmutPointer[Float32, ImmutAnyOrigin]",
    "Array": "Array[Float32, 4]",
}  # fmt: skip


class TypeExpressions(Parameters):
    """From an expression to a type."""

    def type_of(self, node: ast.Expr, scope: Scope) -> Type:
        """Evaluates a type expression. A generic type without parameters is an error here."""
        with self.comptime():
            value = self.evaluate(node, scope)
        return self.as_type(value, node.span)

    def as_type(self, value: RValue, span: Span) -> Type:
        if isinstance(value, Comptime):
            if isinstance(value.value, Type):
                return value.value
            if value.value is None:
                return types.NONE
            if isinstance(value.value, GenericType):
                return self.instantiate(value.value, span)
        if isinstance(value, TupleValue) and value.items:
            return TupleType(tuple(self.as_type(item, span) for item in value.items))
        if isinstance(value, Poison):
            raise CompileError(())
        help = None
        if isinstance(value, Comptime) and isinstance(value.value, ComptimeAlias):
            return self.as_type(self.subscript_alias(value.value, (), span), span)  # all its parameters have defaults
        if isinstance(value, Comptime) and value.type == types.DTYPE:
            help = f"write `Scalar[{value.value}]`: a DType is the type of an element, not of a value"
        raise self.fail("E0311", f"expected a type, found a value of type {value.type}", span, help=help)

    def struct_value(self, decl: StructDecl, span: Span) -> RValue:
        if decl.node.params:
            return type_value(GenericType(decl))
        known = decl.instances.get(())
        if known is not None:
            return type_value(known.type)
        return type_value(self.instantiate(GenericType(decl), span))

    def subscript_type(self, generic: GenericType, args: ParamArgs, span: Span) -> RValue:
        """``SIMD[DType.float32, 4]``, ``RolePipeline[3, True]``; with holes it stays generic."""
        merged = self._fill_holes(generic.params, args)
        candidate = GenericType(generic.decl, merged)
        still_open = any(is_hole(a) for a, _ in merged)
        if isinstance(generic.decl, StructDecl):
            needed = sum(p.default is None and p.kind == "pos" for p in generic.decl.node.params)
            still_open |= len(merged) < needed and all(a.name is None for a, _ in merged)
        elif generic.decl == "SIMD":
            still_open |= len(merged) < 2
        return type_value(candidate if still_open else self.instantiate(candidate, span))

    def _fill_holes(self, old: ParamArgs, new: ParamArgs) -> ParamArgs:
        if not old:
            return new
        fresh = [a for a in new if a[0].name is None]
        named = [a for a in new if a[0].name is not None]
        result = []
        for argument in old:
            result.append(fresh.pop(0) if fresh and is_hole(argument[0]) else argument)
        return (*result, *fresh, *named)

    def instantiate(self, generic: GenericType, span: Span) -> Type:
        """The type itself, defaults filled in; E0310 where a parameter is missing."""
        if isinstance(generic.decl, str):
            return self._builtin_type(generic.decl, generic.params, span)
        binding = self.struct_binding(generic, span)
        self.complete(binding)
        return self.struct_type(generic.decl, binding)

    def struct_binding(self, generic: GenericType, span: Span) -> Binding:
        decl = generic.decl
        assert isinstance(decl, StructDecl)
        binding = Binding(decl.node.params, Scope(decl.scope), f"`{decl.name}`", span)
        self.give(binding, generic.params)
        return binding

    def struct_type(self, decl: StructDecl, binding: Binding) -> StructType:
        """The instance for complete parameters; checked once against the struct's own rules."""
        ordered = {p.name: binding.values[p.name] for p in decl.node.params}
        if any(isinstance(v, Poison) for v in ordered.values()):
            raise CompileError(())
        keys = tuple(key_of(v) for v in ordered.values())
        found = decl.instances.get(keys)
        if found is not None:
            return found.type
        scope = Scope(decl.scope)
        instance = StructInstance(StructType(decl, keys), ordered, scope)
        for name, value in ordered.items():
            scope.declare(name, value)
        scope.declare("Self", type_value(instance.type))
        decl.instances[keys] = instance  # now: what is checked may name Self
        try:
            self._check_instance(instance.type, scope, ordered, binding.span)
        except CompileError:
            del decl.instances[keys]
            raise
        return instance.type

    def _check_instance(self, t: StructType, scope: Scope, ordered: dict[str, RValue], span: Span) -> None:
        decl = t.decl
        with self.deeper(span):
            self.check_where(decl.node.where, scope, span)
            self.check_heading(t)
        rule = PARAMETER_RULES.get(decl.name) if decl.node.span.source.library else None
        if rule is not None:
            numbers = {name: self.comptime_int(value, span) for name, value in ordered.items()}
            for code, message, help in rule(numbers):
                raise self.fail(code, message, span, help=help)

    def check_heading(self, t: StructType) -> None:
        """What stands above a struct's members: decorators and traits."""
        raise NotImplementedError  # implemented above, in traits.py

    def member_scope(self, t: StructType, written: Scope) -> Scope:
        """The scope of a struct's members; of those that a trait gave it, ``written`` is the trait's own."""
        instance = self.instance(t)
        if written is t.decl.scope:
            return Scope(instance.scope)
        scope = Scope(written)
        scope.names.update(instance.scope.names)
        return scope

    def instance(self, t: StructType) -> StructInstance:
        return t.decl.instances[t.keys]

    def fields_of(self, t: StructType) -> tuple[tuple[str, Type], ...]:
        instance = self.instance(t)
        if instance.field_types is None:
            instance.field_types = ()  # a struct that holds itself has no size
            with self.outside():
                found = tuple((f.name, self.type_of(f.type, instance.scope)) for f in t.decl.fields)
            for declared, (name, field_type) in zip(t.decl.fields, found, strict=True):
                if self.contains(field_type, t):
                    raise self.fail("E0312", f"`{t.decl.name}` contains itself", declared.span, help="hold a Pointer")
                if field_type in (types.NONE, types.FUNCTION, types.MODULE, types.RANGE):
                    raise self.fail(
                        "E0313", f"field `{name}` cannot be of type {field_type}", declared.type.span,
                        help="a field is a number, a vector, a pointer, an Array, a tuple or a struct",
                    )  # fmt: skip
            instance.field_types = found
        return instance.field_types

    def contains(self, outer: Type, inner: StructType) -> bool:
        if outer == inner:
            return True
        match outer:
            case StructType():
                return any(self.contains(t, inner) for _, t in self.fields_of(outer))
            case ArrayType():
                return self.contains(outer.elem, inner)
            case TupleType():
                return any(self.contains(t, inner) for t in outer.items)
        return False

    def struct_alias(self, t: StructType, name: str, span: Span) -> RValue | None:
        """A ``comptime`` member of a struct, evaluated once an instance."""
        node = t.decl.aliases.get(name)
        if node is None:
            return None
        instance = self.instance(t)
        known = instance.aliases.get(name)
        if known is None:
            if name in instance.busy:
                raise self.fail(
                    "E0402", f"`{name}` is defined in terms of itself", span, (node.name_span, "its definition"),
                    help="break the cycle",
                )  # fmt: skip
            instance.busy.add(name)
            try:
                with self.outside(), self.comptime():
                    known = self.typed_alias(node, self.member_scope(t, t.decl.inherited.get(name, t.decl.scope)))
            finally:
                instance.busy.discard(name)
            instance.aliases[name] = known
        return known

    def subscript_alias(self, alias: ComptimeAlias, args: ParamArgs, span: Span) -> RValue:
        """``comptime NAME[n: Int] = …`` with its parameters given."""
        binding = Binding(alias.node.params, Scope(alias.scope), f"`{alias.node.name}`", span)
        self.give(binding, args)
        self.complete(binding)
        self.count_step(span, CALL_STEPS)
        with self.outside(), self.deeper(span):
            try:
                return self.typed_alias(alias.node, binding.scope)
            except CompileError as problem:
                if alias.node.span.source.library or self.site is not None:
                    raise
                raise problem.noted(span, f"in this use of `{alias.node.name}`") from None

    def _builtin_type(self, name: str, params: ParamArgs, span: Span) -> Type:
        if name == "Tuple":
            return TupleType(tuple(self.type_of(a.value, s) for a, s in params))
        names = BUILTIN_PARAMS[name]
        given: dict[str, tuple[ast.Expr, Scope]] = {}
        for i, (argument, scope) in enumerate(params):
            key = argument.name or (names[i] if i < len(names) else None)
            if key == "T" and name.endswith("Pointer"):
                key = "type"
            if key not in names:
                shown = f"no parameter `{key}`" if key else f"{counted(len(names), 'parameter')}, more are given"
                help = f"write `{EXAMPLES[name]}`"
                if name == "Array" and key == "address_space":
                    shared = "unsafe_stack_allocation[n, T, address_space=.SHARED]()"
                    help = f"an Array is in registers; shared memory is `{shared}`"
                raise self.fail("E0307", f"`{name}` has {shown}", argument.span, help=help)
            given[key] = (argument.value, scope)
        missing = next((n for n in names if n not in given and n not in ("origin", "address_space")), None)
        if missing is not None:
            raise self.fail(
                "E0310", f"`{name}` needs a value for its parameter `{missing}`", span, help=f"write `{EXAMPLES[name]}`"
            )
        if name in ("SIMD", "Scalar"):
            return self._simd_type(given)
        if name == "Array":
            elem = self.type_of(*given["ElementType"])
            node, scope = given["size"]
            size = self.comptime_int(self.comptime_value(node, scope, types.INT), node.span)
            if not 0 <= size <= MAX_ARRAY:
                raise self.fail(
                    "E0314",
                    f"an Array holds 0 to {MAX_ARRAY} elements, not {size}",
                    node.span,
                    help="allocate memory for more: unsafe_stack_allocation[n, T, address_space=…]()",
                )
            return ArrayType(elem, size)
        return self._pointer_type(name, given)

    def _simd_type(self, given: dict[str, tuple[ast.Expr, Scope]]) -> SimdType:
        node, scope = given["dtype"]
        dtype = self.comptime_value(node, scope, types.DTYPE)
        if not isinstance(dtype, Comptime) or dtype.type != types.DTYPE:
            raise self.mismatch(dtype.type, types.DTYPE, node.span, dtype)
        width = 1
        if "size" in given:
            node, scope = given["size"]
            width = self.comptime_int(self.comptime_value(node, scope, types.INT), node.span)
        if not (1 <= width <= 256 and width & (width - 1) == 0):
            raise self.fail(
                "E0315",
                f"a SIMD width is a power of two up to 256, not {width}",
                node.span,
                help="give 1, 2, 4, 8, …, or use an Array",
            )
        return SimdType(dtype.value, width)

    def _pointer_type(self, name: str, given: dict[str, tuple[ast.Expr, Scope]]) -> PointerType:
        elem = self.type_of(*given["type"])
        mutable = name != "ImmutPointer"
        if "origin" in given:
            node, scope = given["origin"]
            origin = self.comptime_value(node, scope, types.ORIGIN)
            if not isinstance(origin, Comptime) or origin.type != types.ORIGIN:
                raise self.fail(
                    "E0316",
                    f"expected an origin such as MutAnyOrigin, found {origin.type}",
                    node.span,
                    help="write `MutAnyOrigin`, or leave it out",
                )
            mutable = bool(origin.value) and mutable
        space = "generic"
        if "address_space" in given:
            node, scope = given["address_space"]
            value = self.comptime_value(node, scope, types.SPACE)
            if not isinstance(value, Comptime) or value.type != types.SPACE:
                raise self.mismatch(value.type, types.SPACE, node.span)
            space = value.value
        return PointerType(elem, space, mutable)
