"""Compile-time parameters: given, inferred from arguments, defaulted; and the types that they make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptxdsl import types
from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate.convert import Convert, accepts_types
from ptxdsl.elaborate.entities import (
    Comptime,
    ComptimeAlias,
    FunctionValue,
    GenericType,
    Literal,
    Poison,
    RValue,
    StructDecl,
    StructInstance,
    TupleValue,
    const,
    is_comptime,
    key_of,
    type_value,
)
from ptxdsl.elaborate.names import closest
from ptxdsl.elaborate.scope import Scope
from ptxdsl.record import dataclass, field
from ptxdsl.role_pipeline import PARAMETER_RULES
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.types import ArrayType, PointerType, SimdType, StructType, TupleType, Type

ParamArgs = tuple[tuple[ast.Argument, Scope], ...]

# The parameters of the builtin generic types: name, whether a default exists.
BUILTIN_PARAMS = {
    "SIMD": ("dtype", "size"), "Scalar": ("dtype",), "Pointer": ("type", "origin", "address_space"),
    "MutPointer": ("type", "origin", "address_space"), "ImmutPointer": ("type", "origin", "address_space"),
    "Array": ("ElementType", "size"),
}  # fmt: skip


@dataclass
class Binding:
    """The parameters of one use of a generic: values found so far, in a scope where they can be read."""

    params: tuple[ast.Param, ...]
    scope: Scope
    what: str
    span: Span
    values: dict[str, RValue] = field(default_factory=dict)

    def unbound(self, name: str) -> ast.Param | None:
        if name in self.values:
            return None
        return next((p for p in self.params if p.name == name), None)


class Parameters(Convert):
    """Binding of parameters, inference, and type expressions."""

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Inside: no function, loop or region of the current place is seen."""
        saved = self.function, self.loop, self.index_depth
        self.function, self.loop, self.index_depth = None, None, 0
        try:
            yield
        finally:
            self.function, self.loop, self.index_depth = saved

    # ----------------------------------------------------------------------------------------------------- binding

    def give(self, binding: Binding, args: ParamArgs) -> None:
        """Binds the parameters given in brackets: positional, then by name; ``_`` leaves one open."""
        positional = [p for p in binding.params if p.kind == "pos"]
        position = 0
        for argument, scope in args:
            if argument.name is None:
                if position >= len(positional):
                    raise self.fail(
                        "E0306", f"{binding.what} takes {count(len(positional), 'parameter')}, more are given",
                        argument.span,
                        help=None if positional else "leave the brackets out",
                    )  # fmt: skip
                param = positional[position]
                position += 1
            else:
                found = next((p for p in binding.params if p.name == argument.name and p.kind != "infer"), None)
                if found is None:
                    near = closest(argument.name, (p.name for p in binding.params))
                    raise self.fail(
                        "E0307", f"{binding.what} has no parameter `{argument.name}`", argument.span,
                        help=f"did you mean `{near}`?" if near else None,
                    )  # fmt: skip
                param = found
            if isinstance(argument.value, ast.Name) and argument.value.id == "_":
                continue
            if param.name in binding.values:
                raise self.fail("E0308", f"parameter `{param.name}` is given twice", argument.span)
            self.bind_param(binding, param, argument.value, scope)

    def bind_param(self, binding: Binding, param: ast.Param, node: ast.Expr, scope: Scope) -> None:
        wanted = self.param_type(binding, param)
        value = self.comptime_value(node, scope, wanted)
        self.set_param(binding, param, value, node.span, wanted)

    def param_type(self, binding: Binding, param: ast.Param) -> Type | None:
        if param.type is None:
            return None
        try:
            with self.outside(), self.comptime():
                value = self.evaluate(param.type, binding.scope)
        except CompileError:
            if any(p.name not in binding.values for p in binding.params if p is not param):
                return None  # depends on a parameter that is still to be inferred
            raise
        return value.value if isinstance(value, Comptime) and isinstance(value.value, Type) else None

    def set_param(
        self, binding: Binding, param: ast.Param, value: RValue, span: Span, wanted: Type | None = None
    ) -> None:
        if wanted is None:
            wanted = self.param_type(binding, param)
        if wanted is not None:
            if accepts_types(wanted):
                if not isinstance(value, FunctionValue | Comptime):
                    raise self.fail("E0309", f"parameter `{param.name}` takes a type, not a value", span)
            elif wanted == types.FUNCTION:
                pass
            else:
                value = self.convert(value, wanted, span)
        binding.values[param.name] = value
        binding.scope.declare(param.name, value)

    def comptime_value(self, node: ast.Expr, scope: Scope, expected: Type | None = None) -> RValue:
        """Evaluates an expression that must be known at compile time."""
        with self.comptime():
            value = self.evaluate(node, scope, expected)
        if not is_comptime(value):
            raise self.fail(
                "E0401", "a run-time value where a compile-time value is needed", node.span,
                help="parameters and compile-time conditions take literals, `comptime` names and other parameters",
            )  # fmt: skip
        return value

    def complete(self, binding: Binding) -> None:
        """Fills in defaults; E0310 for a parameter that nothing gives."""
        for param in binding.params:
            if param.name in binding.values:
                continue
            if param.default is None:
                raise self.fail(
                    "E0310", f"{binding.what} needs a value for its parameter `{param.name}`", binding.span,
                    (param.span, "declared here"),
                    help=f"write `{binding.what.split()[-1].strip('`')}[{param.name}=…]`",
                )  # fmt: skip
            with self.outside():
                self.bind_param(binding, param, param.default, binding.scope)

    # --------------------------------------------------------------------------------------------------- inference

    def infer(self, binding: Binding, pattern: ast.Expr, actual: Type | GenericType) -> None:
        """Matches an argument's declared type against the type it has, binding parameters on the way."""
        name = parameter_name(pattern)
        if name is not None:
            param = binding.unbound(name)
            if param is not None and isinstance(actual, Type):
                if actual == types.INT_LITERAL:
                    actual = types.INT
                elif actual == types.FLOAT_LITERAL:
                    actual = types.FLOAT64
                self.set_param(binding, param, type_value(actual), pattern.span)
            return
        if not isinstance(pattern, ast.Subscript):
            return
        if actual == types.INT_LITERAL:
            actual = types.INT
        elif actual == types.FLOAT_LITERAL:
            actual = types.FLOAT64
        base = self._generic_base(pattern.value, binding)
        if base is None or not isinstance(actual, Type):
            return
        given = self.type_params(base, actual)
        if given is None:
            return
        names = list(given)
        position = 0
        for argument in pattern.args:
            if argument.name is None:
                if position >= len(names):
                    return
                name = names[position]
                position += 1
            else:
                name = argument.name
            if name in given:
                self._infer_value(binding, argument.value, given[name])

    def _generic_base(self, node: ast.Expr, binding: Binding) -> StructDecl | str | None:
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        try:
            with self.outside(), self.comptime():
                value = self.evaluate(node, binding.scope)
        except CompileError:
            return None
        if isinstance(value, Comptime) and isinstance(value.value, GenericType):
            return value.value.decl
        return None

    def _infer_value(self, binding: Binding, pattern: ast.Expr, value: RValue) -> None:
        name = parameter_name(pattern)
        if name is not None:
            param = binding.unbound(name)
            if param is not None:
                self.set_param(binding, param, value, pattern.span)
        elif isinstance(pattern, ast.Subscript) and isinstance(value, Comptime) and isinstance(value.value, Type):
            self.infer(binding, pattern, value.value)

    def type_params(self, base: StructDecl | str, actual: Type) -> dict[str, RValue] | None:
        """The parameters of a type by name, if it is an instance of the base."""
        match actual:
            case SimdType() if base == "SIMD":
                return {"dtype": Comptime(types.DTYPE, actual.dtype), "size": const(types.INT, actual.width)}
            case SimdType(width=1) if base == "Scalar":
                return {"dtype": Comptime(types.DTYPE, actual.dtype)}
            case PointerType() if base in ("Pointer", "MutPointer", "ImmutPointer"):
                return {
                    "type": type_value(actual.elem),
                    "origin": Comptime(types.ORIGIN, actual.mutable),
                    "address_space": Comptime(types.SPACE, actual.space),
                }
            case ArrayType() if base == "Array":
                return {"ElementType": type_value(actual.elem), "size": const(types.INT, actual.size)}
            case StructType() if actual.decl is base:
                return dict(self.instance(actual).params)
        return None

    # ------------------------------------------------------------------------------------------------------- types

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
        raise self.fail("E0311", f"expected a type, found a value of type {value.type}", span)

    def struct_value(self, decl: StructDecl, span: Span) -> RValue:
        if decl.node.params:
            return type_value(GenericType(decl))
        return type_value(self.instantiate(GenericType(decl), span))

    def subscript_type(self, generic: GenericType, args: ParamArgs, span: Span) -> RValue:
        """``SIMD[DType.float32, 4]``, ``RolePipeline[3, True]``; with holes it stays generic."""
        merged = self._fill_holes(generic.params, args, span)
        if any(isinstance(a.value, ast.Name) and a.value.id == "_" for a, _ in merged):
            return type_value(GenericType(generic.decl, merged))
        candidate = GenericType(generic.decl, merged)
        if isinstance(generic.decl, StructDecl):
            needed = [p for p in generic.decl.node.params if p.default is None and p.kind != "kw"]
            if len([a for a, _ in merged if a.name is None]) < len([p for p in needed if p.kind == "pos"]) and not any(
                a.name for a, _ in merged
            ):
                return type_value(candidate)
        elif generic.decl in ("SIMD",) and len(merged) < 2:
            return type_value(candidate)
        return type_value(self.instantiate(candidate, span))

    def _fill_holes(self, old: ParamArgs, new: ParamArgs, span: Span) -> ParamArgs:
        if not old:
            return new
        fresh = [a for a in new if a[0].name is None]
        named = [a for a in new if a[0].name is not None]
        result = []
        for argument in old:
            hole = isinstance(argument[0].value, ast.Name) and argument[0].value.id == "_"
            result.append(fresh.pop(0) if hole and fresh else argument)
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
        params = tuple(
            (a, s)
            for a, s in generic.params
            if a.name is None or not (isinstance(a.value, ast.Name) and a.value.id == "_")
        )
        self.give(binding, params)
        return binding

    def struct_type(self, decl: StructDecl, binding: Binding) -> StructType:
        """The instance for complete parameters; checked once against the struct's own rules."""
        ordered = {p.name: binding.values[p.name] for p in decl.node.params}
        keys = tuple(key_of(v) for v in ordered.values())
        found = decl.instances.get(keys)
        if found is not None:
            return found.type
        scope = Scope(decl.scope)
        instance = StructInstance(StructType(decl, keys), ordered, scope)
        for name, value in ordered.items():
            scope.declare(name, value)
        scope.declare("Self", type_value(instance.type))
        self.check_where(decl.node.where, scope, binding.span)
        self._check_heading(decl, scope)
        rule = PARAMETER_RULES.get(decl.name) if decl.node.span.source.library else None
        if rule is not None:
            numbers = {name: self.comptime_int(value, binding.span) for name, value in ordered.items()}
            for code, message, help in rule(numbers):
                raise self.fail(code, message, binding.span, help=help)
        decl.instances[keys] = instance
        return instance.type

    def check_decorators(self, decorators: tuple[ast.Decorator, ...]) -> None:
        """E0218 for a decorator that does not exist."""
        raise NotImplementedError

    def _check_heading(self, decl: StructDecl, scope: Scope) -> None:
        """Decorators and traits; traits change nothing here, but a struct can only name those that exist."""
        if decl.node.span.source.library:
            return
        self.check_decorators(decl.node.decorators)
        for node in decl.node.traits:
            value = self.comptime_value(node, scope)
            if not (isinstance(value, Comptime) and isinstance(value.value, Type) and accepts_types(value.value)):
                raise self.fail("E0311", f"expected a trait, found {value.type}", node.span)

    def check_where(self, conditions: tuple[ast.Expr, ...], scope: Scope, span: Span) -> None:
        for condition in conditions:
            value = self.condition(self.comptime_value(condition, scope), condition.span)
            if not self.comptime_int(value, condition.span):
                raise self.fail(
                    "E0405", f"the constraint `{condition.span.text}` does not hold", span,
                    (condition.span, "required here"),
                )  # fmt: skip

    def instance(self, t: StructType) -> StructInstance:
        return t.decl.instances[t.keys]

    def fields_of(self, t: StructType) -> tuple[tuple[str, Type], ...]:
        instance = self.instance(t)
        if instance.field_types is None:
            instance.field_types = ()  # a struct that holds itself has no size
            with self.outside():
                found = tuple((f.name, self.type_of(f.type, instance.scope)) for f in t.decl.fields)
            for declared, (name, field_type) in zip(t.decl.fields, found, strict=True):
                if isinstance(field_type, StructType) and self.contains(field_type, t):
                    raise self.fail("E0312", f"`{t.decl.name}` contains itself", declared.span, help="hold a Pointer")
                if field_type in (types.NONE, types.FUNCTION, types.MODULE, types.RANGE):
                    raise self.fail("E0313", f"field `{name}` cannot be of type {field_type}", declared.type.span)
            instance.field_types = found
        return instance.field_types

    def contains(self, outer: StructType, inner: StructType) -> bool:
        return outer == inner or any(
            isinstance(t, StructType) and self.contains(t, inner) for _, t in self.instance(outer).field_types or ()
        )

    def struct_alias(self, t: StructType, name: str, span: Span) -> RValue | None:
        """A ``comptime`` member of a struct, evaluated once an instance."""
        node = t.decl.aliases.get(name)
        if node is None:
            return None
        instance = self.instance(t)
        known = instance.aliases.get(name)
        if known is None:
            instance.aliases[name] = Poison()
            with self.outside(), self.comptime():
                known = self.typed_alias(node, instance.scope)
            instance.aliases[name] = known
        return known

    def typed_alias(self, node: ast.ComptimeDecl, scope: Scope) -> RValue:
        wanted = None if node.type is None else self.type_of(node.type, scope)
        if wanted is not None and accepts_types(wanted):
            wanted = None
        value = self.comptime_value(node.value, scope, wanted)
        return value if wanted is None else self.convert(value, wanted, node.value.span)

    def subscript_alias(self, alias: ComptimeAlias, args: ParamArgs, span: Span) -> RValue:
        """``comptime NAME[n: Int] = …`` with its parameters given."""
        binding = Binding(alias.node.params, Scope(alias.scope), f"`{alias.node.name}`", span)
        self.give(binding, args)
        self.complete(binding)
        self.count_step(span)
        with self.outside(), self.deeper(span):
            return self.typed_alias(alias.node, binding.scope)

    @contextmanager
    def deeper(self, span: Span) -> Iterator[None]:
        """One call deeper; E0406 where a recursion does not end."""
        from ptxdsl.elaborate.context import MAX_DEPTH

        if self.call_depth >= MAX_DEPTH:
            raise self.fail(
                "E0406", f"more than {MAX_DEPTH} calls inside one another", span,
                help="calls are expanded at compile time: a recursion must end on compile-time parameters",
            )  # fmt: skip
        self.call_depth += 1
        try:
            yield
        finally:
            self.call_depth -= 1

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
                shown = f"no parameter `{key}`" if key else f"{count(len(names), 'parameter')}, more are given"
                raise self.fail("E0307", f"`{name}` has {shown}", argument.span)
            given[key] = (argument.value, scope)
        missing = next((n for n in names if n not in given and n not in ("origin", "address_space")), None)
        if missing is not None:
            raise self.fail("E0310", f"`{name}` needs a value for its parameter `{missing}`", span)
        if name in ("SIMD", "Scalar"):
            return self._simd_type(given)
        if name == "Array":
            elem = self.type_of(*given["ElementType"])
            node, scope = given["size"]
            size = self.comptime_int(self.comptime_value(node, scope, types.INT), node.span)
            if not 0 <= size <= 4096:
                raise self.fail("E0314", f"an Array holds 0 to 4096 elements, not {size}", node.span)
            return ArrayType(elem, size)
        return self._pointer_type(name, given)

    def _simd_type(self, given: dict[str, tuple[ast.Expr, Scope]]) -> SimdType:
        node, scope = given["dtype"]
        dtype = self.comptime_value(node, scope, types.DTYPE)
        if not isinstance(dtype, Comptime) or dtype.type != types.DTYPE:
            raise self.mismatch(dtype.type, types.DTYPE, node.span)
        width = 1
        if "size" in given:
            node, scope = given["size"]
            width = self.comptime_int(self.comptime_value(node, scope, types.INT), node.span)
        if not (1 <= width <= 256 and width & (width - 1) == 0):
            raise self.fail("E0315", f"a SIMD width is a power of two up to 256, not {width}", node.span)
        return SimdType(dtype.value, width)

    def _pointer_type(self, name: str, given: dict[str, tuple[ast.Expr, Scope]]) -> PointerType:
        elem = self.type_of(*given["type"])
        mutable = name != "ImmutPointer"
        if "origin" in given:
            node, scope = given["origin"]
            origin = self.comptime_value(node, scope, types.ORIGIN)
            if not isinstance(origin, Comptime) or origin.type != types.ORIGIN:
                raise self.fail("E0316", f"expected an origin such as MutAnyOrigin, found {origin.type}", node.span)
            mutable = bool(origin.value) and mutable
        space = "generic"
        if "address_space" in given:
            node, scope = given["address_space"]
            value = self.comptime_value(node, scope, types.SPACE)
            if not isinstance(value, Comptime) or value.type != types.SPACE:
                raise self.mismatch(value.type, types.SPACE, node.span)
            space = value.value
        return PointerType(elem, space, mutable)

    def literal_default(self, value: RValue, span: Span) -> RValue:
        return self.materialize(value, span) if isinstance(value, Literal) else value


def parameter_name(pattern: ast.Expr) -> str | None:
    """The parameter that a pattern may be: ``T`` or ``Self.T``."""
    if isinstance(pattern, ast.Name):
        return pattern.id
    if isinstance(pattern, ast.Attribute) and isinstance(pattern.value, ast.Name) and pattern.value.id == "Self":
        return pattern.name
    return None


def count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
