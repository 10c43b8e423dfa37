"""Compile-time parameters: given, inferred from arguments, defaulted; and the types that they make."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.diagnostics import CompileError, counted
from ptxdsl.elaborate import types
from ptxdsl.elaborate.context import Exhausted
from ptxdsl.elaborate.convert import Convert, accepts_types, items_of
from ptxdsl.elaborate.entities import (
    ArrayValue,
    Comptime,
    FunctionValue,
    GenericType,
    Poison,
    RValue,
    StructDecl,
    StructInstance,
    StructType,
    TraitType,
    TupleValue,
)
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.suggestions import meant
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, TupleType, Type
from ptxdsl.elaborate.values import const, is_comptime, type_value
from ptxdsl.record import dataclass, field
from ptxdsl.source import Span
from ptxdsl.syntax import ast

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

    def instance(self, t: StructType) -> StructInstance:
        raise NotImplementedError  # implemented above, in type_expressions.py

    def type_of(self, node: ast.Expr, scope: Scope) -> Type:
        raise NotImplementedError  # likewise

    def give(self, binding: Binding, args: ParamArgs) -> None:
        """Binds the parameters given in brackets: positional, then by name; ``_`` leaves one open."""
        if not args:
            return
        positional = [p for p in binding.params if p.kind == "pos"]
        variadic = [p for p in binding.params if p.kind == "many"]
        starred = [argument for argument, _ in args if argument.star]
        position = 0
        if starred:
            args = tuple(self._spread(args))
        if variadic:
            unnamed = tuple(a for a in args if a[0].name is None)
            self._give_rest(binding, variadic[0], unnamed[len(positional) :])
            args = (*unnamed[: len(positional)], *(a for a in args if a[0].name is not None))
        for argument, scope in args:
            if argument.name is None:
                if position >= len(positional):
                    raise self.fail(
                        "E0306", f"{binding.what} takes {counted(len(positional), 'parameter')}, more are given",
                        argument.span,
                        help=_named(binding) or (None if positional else "leave the brackets out"),
                    )  # fmt: skip
                param = positional[position]
                position += 1
            else:
                found = next((p for p in binding.params if p.name == argument.name and p.kind != "infer"), None)
                if found is None:
                    raise self.fail(
                        "E0307", f"{binding.what} has no parameter `{argument.name}`", argument.span,
                        help=meant(argument.name, (p.name for p in binding.params)) or _named(binding),
                    )  # fmt: skip
                param = found
            if is_hole(argument):
                continue
            if param.name in binding.values:
                raise self.fail(
                    "E0308", f"parameter `{param.name}` is given twice", argument.span, help="leave one of them out"
                )
            self.bind_param(binding, param, argument.value, scope)

    def _spread(self, args: ParamArgs) -> Iterator[tuple[ast.Argument, Scope]]:
        """``*values`` as one parameter for each of them."""
        for argument, scope in args:
            if not argument.star:
                yield argument, scope
                continue
            values = items_of(self.comptime_value(argument.value, scope))
            if values is None:
                help = "a variadic parameter, an Array or a tuple can be given so"
                raise self.fail("E0328", "`*` before a single value", argument.span, help=help)
            for value in values:
                inner = Scope(scope)
                inner.declare("item", value)
                yield ast.Argument(argument.span, None, ast.Name(argument.span, "item")), inner

    def _give_rest(self, binding: Binding, param: ast.Param, args: ParamArgs) -> None:
        """The values of a variadic parameter. Where none is given, they may be inferred."""
        if args:
            wanted = self.param_type(binding, param)
            values = [self.checked(param, self.comptime_value(a.value, s, wanted), a.span, wanted) for a, s in args]
            self.set_param(binding, param, TupleValue(tuple(values)), binding.span, wanted)

    def bind_param(self, binding: Binding, param: ast.Param, node: ast.Expr, scope: Scope) -> None:
        wanted = self.param_type(binding, param)
        value = self.comptime_value(node, scope, wanted)
        if wanted is None and param.type is not None:
            self.infer(binding, param.type, value.type)
        self.set_param(binding, param, value, node.span, wanted)

    def param_type(self, binding: Binding, param: ast.Param) -> Type | None:
        if param.type is None:
            return None
        if isinstance(param.type, ast.Name):  # mostly a type's name, as it stands
            entity = binding.scope.lookup(param.type.id)
            if isinstance(entity, Comptime) and isinstance(entity.value, Type):
                return entity.value
        try:
            with self.outside(), self.comptime():
                value = self.evaluate(param.type, binding.scope)
        except Exhausted:
            raise
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
        if param.kind == "many":
            value = self._variadic(param, value, span, wanted)
        else:
            value = self.checked(param, value, span, wanted)
        binding.values[param.name] = value
        binding.scope.declare(param.name, value)

    def _variadic(self, param: ast.Param, value: RValue, span: Span, wanted: Type | None) -> RValue:
        """What a variadic parameter stands for: an Array of its values, a tuple of its types."""
        items = tuple(self.checked(param, v, span, wanted) for v in items_of(value) or ())
        if wanted is None or accepts_types(wanted):
            return TupleValue(items)
        return ArrayValue(ArrayType(wanted, len(items)), items)

    def checked(
        self, param: ast.Param | ast.ComptimeRequirement, value: RValue, span: Span, wanted: Type | None
    ) -> RValue:
        """A value as the parameter's declaration wants it."""
        if wanted is None or wanted == types.FUNCTION:
            return value
        if not accepts_types(wanted):
            return self.convert(value, wanted, span)
        if not isinstance(value, FunctionValue | Poison) and value.type not in (types.ANY_TYPE, types.NONE):
            dtype = isinstance(value, Comptime) and value.type == types.DTYPE
            raise self.fail(
                "E0309", f"parameter `{param.name}` takes a type, not a value", span,
                help=f"write `Scalar[{value.value}]`" if isinstance(value, Comptime) and dtype else None,
            )  # fmt: skip
        if isinstance(wanted, TraitType) and isinstance(value, Comptime) and not self.conforms(value.value, wanted):
            help = f"a struct says so: `struct {value.value}({wanted})`"
            if not isinstance(value.value, StructType):
                help = f"hold it in a struct that names the trait: `struct Wrapped({wanted})`"
            notes = ((trait.node.name_span, "declared here") for trait in wanted.traits)
            raise self.fail("E0350", f"{value.value} does not conform to `{wanted}`", span, *notes, help=help)
        return value

    def conforms(self, t: object, trait: TraitType) -> bool:
        """Whether a type is a struct that names these traits."""
        raise NotImplementedError  # implemented above, in traits.py

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
            if param.kind == "many":
                self.set_param(binding, param, TupleValue(()), binding.span)
                continue
            if param.default is None:
                raise self.fail(
                    "E0310", f"{binding.what} needs a value for its parameter `{param.name}`", binding.span,
                    *(((param.span, "declared here"),) if param.span != binding.span else ()),
                    help=f"write `{binding.what.split()[-1].strip('`')}[{param.name}=…]`",
                )  # fmt: skip
            with self.outside():
                self.bind_param(binding, param, param.default, binding.scope)

    def infer(self, binding: Binding, pattern: ast.Expr, actual: Type | GenericType) -> None:
        """Matches an argument's declared type against the type it has, binding parameters on the way."""
        if actual == types.INT_LITERAL:
            actual = types.INT
        elif actual == types.FLOAT_LITERAL:
            actual = types.FLOAT64
        name = parameter_name(pattern)
        if name is not None:
            param = binding.unbound(name)
            if param is not None and isinstance(actual, Type):
                self.set_param(binding, param, type_value(actual), binding.span)
            return
        if not isinstance(pattern, ast.Subscript):
            return
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

    def infer_length(self, binding: Binding, pattern: ast.Expr, length: int) -> None:
        """Binds the size of an ``Array[Int32, n]`` that a list is given for; the elements adapt to their type."""
        if isinstance(pattern, ast.Subscript) and self._generic_base(pattern.value, binding) == "Array":
            sizes = [a.value for i, a in enumerate(pattern.args) if a.name == "size" or (a.name is None and i == 1)]
            for size in sizes:
                self._infer_value(binding, size, const(types.INT, length))

    def _generic_base(self, node: ast.Expr, binding: Binding) -> StructDecl | str | None:
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        try:
            with self.outside(), self.comptime():
                value = self.evaluate(node, binding.scope)
        except Exhausted:
            raise
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
            case TupleType() if base == "Tuple":
                return {"element_types": TupleValue(tuple(type_value(t) for t in actual.items))}
            case ArrayType() if base == "Array":
                return {"ElementType": type_value(actual.elem), "size": const(types.INT, actual.size)}
            case StructType() if actual.decl is base:
                return dict(self.instance(actual).params)
        return None

    def check_decorators(self, decorators: tuple[ast.Decorator, ...]) -> None:
        """E0218 for a decorator that does not exist."""
        raise NotImplementedError

    def check_where(self, conditions: tuple[ast.Expr, ...], scope: Scope, span: Span) -> None:
        for condition in conditions:
            value = self.condition(self.comptime_value(condition, scope), condition.span)
            if not self.comptime_int(value, condition.span):
                raise self.fail(
                    "E0405", f"the constraint `{condition.span.text}` does not hold", span,
                    (condition.span, "required here"), help="choose parameters for which it does"
                )  # fmt: skip

    def typed_alias(self, node: ast.ComptimeDecl, scope: Scope) -> RValue:
        wanted = None if node.type is None else self.type_of(node.type, scope)
        if wanted is not None and accepts_types(wanted):
            wanted = None
        value = self.comptime_value(node.value, scope, wanted)
        return value if wanted is None else self.convert(value, wanted, node.value.span)


def parameter_name(pattern: ast.Expr) -> str | None:
    """The parameter that a pattern may be: ``T`` or ``Self.T``."""
    if isinstance(pattern, ast.Name):
        return pattern.id
    if isinstance(pattern, ast.Attribute) and isinstance(pattern.value, ast.Name) and pattern.value.id == "Self":
        return pattern.name
    return None


def _named(binding: Binding) -> str | None:
    """Which parameters can be given by name alone."""
    names = [f"`{p.name}=`" for p in binding.params if p.kind == "kw"]
    return f"by name it takes {', '.join(names)}" if names else None


def is_hole(argument: ast.Argument) -> bool:
    """``_``: the parameter is left open."""
    return isinstance(argument.value, ast.Name) and argument.value.id == "_"
