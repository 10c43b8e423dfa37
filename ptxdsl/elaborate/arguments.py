"""Arguments: how a call's values meet a declaration's arguments and parameters."""

from __future__ import annotations

from ptxdsl.elaborate import types
from ptxdsl.elaborate.control import overlap
from ptxdsl.elaborate.entities import (
    Comptime,
    FunctionDecl,
    FunctionValue,
    GenericType,
    LanePlace,
    Literal,
    MemoryPlace,
    Place,
    Poison,
    RValue,
    StructDecl,
    StructType,
    TemporaryPlace,
    VariablePlace,
)
from ptxdsl.elaborate.names import closest, methods_name
from ptxdsl.elaborate.operators import Operators
from ptxdsl.elaborate.parameters import Binding, count
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, Type
from ptxdsl.elaborate.values import type_value
from ptxdsl.record import dataclass, field, replace
from ptxdsl.source import Span
from ptxdsl.syntax import ast

VECTOR_ACCESS = ("unsafe_load", "unsafe_store", "load", "store")  # methods of pointers to numbers
BY_THEMSELVES: dict[Type, Type] = {types.INT_LITERAL: types.INT, types.FLOAT_LITERAL: types.FLOAT64}
BY_REFERENCE = ("mut", "ref", "out", "deinit")


class Given:
    """One argument of a call, evaluated as a place; read at most once. ``.NAME`` waits for the type it is wanted in."""

    def __init__(
        self,
        calls: Arguments,
        name: str | None,
        span: Span,
        place: Place | None,
        node: ast.Expr | None,
        scope: Scope | None,
        name_span: Span | None = None,
    ) -> None:
        self.name_span = name_span or span  # where the name of a keyword argument stands
        self.calls, self.name, self.span, self.place, self.node, self.scope = calls, name, span, place, node, scope
        self.kept: RValue | None = None

    @property
    def value(self) -> RValue:
        if self.kept is None:
            if isinstance(self.node, ast.ListExpr) and self.scope is not None:
                self.kept = self.calls.evaluate(self.node, self.scope)
                return self.kept
            if self.place is None:
                raise self.calls.fail(
                    "E0318",
                    "`.NAME` needs a parameter whose type is known",
                    self.span,
                    help="write the type it is a member of: `AddressSpace.SHARED`",
                )
            self.kept = self.calls.read(self.place, self.span)
        return self.kept

    def wanted_as(self, t: Type) -> RValue:
        if self.place is None and self.kept is None and self.node is not None and self.scope is not None:
            return self.calls.evaluate(self.node, self.scope, t)
        return self.value

    @property
    def is_poison(self) -> bool:
        """Whether an error in it has been reported: nothing more is to be said of a call with it."""
        return isinstance(self.place, TemporaryPlace) and isinstance(self.place.value, Poison)

    @property
    def is_literal(self) -> bool:
        return self.place is not None and isinstance(self.place, TemporaryPlace) and isinstance(self.value, Literal)


@dataclass
class Bound:
    """A call ready to be made: the chosen declaration, its parameters, and each argument's value or place."""

    decl: FunctionDecl
    binding: Binding
    args: dict[str, RValue | Place]
    arg_types: dict[str, Type]
    span: Span
    owner: Type | None
    conversions: int = 0
    given: dict[str, Given] = field(default_factory=dict)


class Arguments(Operators):
    """Evaluates arguments, and binds the parameters and arguments of one declaration."""

    def given(self, args: tuple[ast.Argument, ...], scope: Scope) -> list[Given]:
        result = []
        for argument in args:
            if argument.star:
                raise self.fail(
                    "E0328", "`*` arguments are not in the subset", argument.span, help="give the values one by one"
                )
            at = argument.span
            name_span = Span(at.source, at.start, at.start + len(argument.name)) if argument.name else None
            if isinstance(argument.value, ast.DotName | ast.ListExpr) or (
                isinstance(argument.value, ast.Call) and isinstance(argument.value.func, ast.DotName)
            ):
                result.append(Given(self, argument.name, argument.value.span, None, argument.value, scope, name_span))
                continue
            place = self.evaluate_place(argument.value, scope)
            result.append(Given(self, argument.name, argument.value.span, place, argument.value, scope, name_span))
        return result

    @staticmethod
    def _implicit(decl: FunctionDecl) -> int:
        return 1 if decl.struct is not None and not decl.is_static else 0

    def owner_scope(self, decl: FunctionDecl, owner: Type | None) -> Scope:
        """The scope a method's signature is read in: the struct's parameters and ``Self``."""
        if decl.struct is None or owner is None:
            return Scope(decl.scope)
        if isinstance(owner, StructType):
            return Scope(self.instance(owner).scope)
        scope = Scope(decl.scope)
        given = self.type_params(decl.struct.name, owner) or {}
        for name, param in zip((p.name for p in decl.struct.node.params), given.values(), strict=False):
            scope.declare(name, param)
        scope.declare("Self", type_value(owner))
        return scope

    def bind(
        self, decl: FunctionDecl, function: FunctionValue, args: list[Given], span: Span, dry: bool = False
    ) -> Bound:
        """Binds parameters and arguments of one declaration, or raises why it does not fit."""
        site = self.site
        if decl.node.span.source.library:
            self.site = self.at(span)  # what does not fit is shown at the call
        try:
            return self._bind(decl, function, args, span, dry)
        finally:
            self.site = site

    def _bind(self, decl: FunctionDecl, function: FunctionValue, args: list[Given], span: Span, dry: bool) -> Bound:
        node = decl.node
        if not node.span.source.library:
            self.check_distinct(node)
        what = f"`{decl.name}`"
        owner = function.owner
        if isinstance(owner, PointerType) and decl.name in VECTOR_ACCESS and not isinstance(owner.elem, SimdType):
            raise self.fail(
                "E0611", f"vector access through a pointer to {owner.elem}", span, help="use `p[unsafe_offset=i]`"
            )
        open_params = self._open_struct_params(decl, owner)
        binding = Binding((*open_params, *node.params), self.owner_scope(decl, owner), what, span)
        self.give(binding, function.params)
        declared = self._declared(decl, function)
        matched: dict[str, Given] = {}
        first = self._receiver(decl, function)
        if first is not None:
            matched[first.name] = Given(self, None, span, function.receiver, None, None)
            self._check_receiver(first, function, span, decl)
        self._match(declared, args, matched, what, decl, span)
        if binding.params:
            self._infer_all(binding, node.args, matched)
            self.complete(binding)
        if open_params and decl.struct is not None:
            owner = self.struct_type(decl.struct, binding)
            binding.scope.declare("Self", type_value(owner))
        self.check_where(node.where, binding.scope, span)
        bound = Bound(decl, binding, {}, {}, span, owner, given=matched)
        for argument in node.args:
            if argument.convention == "out":
                continue
            self._bind_argument(bound, argument, matched.get(argument.name), dry)
        self._check_exclusive(bound)
        return bound

    def _check_exclusive(self, bound: Bound) -> None:
        """What an argument changes is not within reach of another one. Memory behind pointers is not looked at."""
        referring = [a for a in bound.decl.node.args if a.convention in BY_REFERENCE and a.name in bound.given]
        for i, second in enumerate(referring[1:], 1):
            for first in referring[:i]:
                one, other = (bound.given[a.name] for a in (first, second))
                if "mut" in (first.convention, second.convention) and overlap(one.place, other.place):
                    changed = first if first.convention == "mut" else second
                    raise self.fail(
                        "E0348", f"this may be changed as argument `{changed.name}` of `{bound.decl.name}` too",
                        other.span, (one.span, "passed here as well"), help="pass a copy of it: `var other = …`",
                    )  # fmt: skip

    @staticmethod
    def _receiver(decl: FunctionDecl, function: FunctionValue) -> ast.ArgDecl | None:
        """The argument that is the value which a method was taken from."""
        args = decl.node.args
        if function.receiver is None or decl.struct is None or decl.is_static or not args:
            return None
        return None if args[0].convention == "out" else args[0]  # out: an __init__, which makes the value

    def _declared(self, decl: FunctionDecl, function: FunctionValue) -> list[ast.ArgDecl]:
        """What a call gives in its parentheses: all but the receiver and the result."""
        receiver = self._receiver(decl, function)
        return [a for a in decl.node.args if a is not receiver and a.convention != "out"]

    def takes(self, decl: FunctionDecl, function: FunctionValue, args: list[Given]) -> bool:
        """Whether a declaration has arguments of these names and number, whatever their types."""
        declared = self._declared(decl, function)
        named = {a.name for a in args if a.name is not None}
        unnamed = len(args) - len(named)
        positional = [a.name for a in declared if a.kind != "kw"]
        if unnamed > len(positional):
            return False
        taken = set(positional[:unnamed])
        return all(a.name in taken or a.name in named or a.default is not None for a in declared)

    @staticmethod
    def _open_struct_params(decl: FunctionDecl, owner: Type | None) -> tuple[ast.Param, ...]:
        """``Atomic.fetch_add(p, 1)``: the struct's parameters are inferred as the function's own are."""
        if decl.struct is None or owner is not None:
            return ()
        return tuple(replace(p, kind="infer") for p in decl.struct.node.params)

    def _check_receiver(self, first: ast.ArgDecl, function: FunctionValue, span: Span, decl: FunctionDecl) -> None:
        if first.convention == "mut" and not self.is_mutable(function.receiver):
            raise self.fail(
                "E0321", f"`{decl.name}` changes its value, which is read-only here", span,
                help="call it on a `var`, or take the argument as `mut`",
            )  # fmt: skip

    @staticmethod
    def is_mutable(place: Place | None) -> bool:
        while isinstance(place, LanePlace):
            place = place.base
        if isinstance(place, VariablePlace):
            return place.variable.mutable
        if isinstance(place, MemoryPlace):
            return isinstance(place.pointer.type, PointerType) and place.pointer.type.mutable
        return False

    def _match(
        self, declared: list[ast.ArgDecl], args: list[Given], matched: dict[str, Given], what: str,
        decl: FunctionDecl, span: Span,
    ) -> None:  # fmt: skip
        """Positional arguments in order, then those by name."""
        positional = [a for a in declared if a.kind != "kw"]
        here = (decl.node.name_span, "declared here")
        unnamed = [a for a in args if a.name is None]
        if len(unnamed) > len(positional):
            raise self.fail(
                "E0322", f"{what} takes {count(len(positional), 'argument')}, {len(unnamed)} are given",
                unnamed[len(positional)].span, here, help=_listed(declared)
            )  # fmt: skip
        for to, given in zip(positional, unnamed, strict=False):
            matched[to.name] = given
        for given in args:
            if given.name is None:
                continue
            found = next((a for a in declared if a.name == given.name and a.kind != "posonly"), None)
            if found is None:
                if any(a.name == given.name for a in declared):
                    raise self.fail(
                        "E0323", f"argument `{given.name}` of {what} is given by position alone", given.name_span, here,
                        help=f"leave `{given.name}=` out",
                    )  # fmt: skip
                near = closest(given.name, (a.name for a in declared))
                raise self.fail(
                    "E0323", f"{what} has no argument `{given.name}`", given.name_span, here,
                    help=f"did you mean `{near}`?" if near else None,
                )  # fmt: skip
            if found.name in matched:
                raise self.fail(
                    "E0324",
                    f"argument `{given.name}` is given twice",
                    given.name_span,
                    here,
                    help="leave one of them out",
                )
            matched[found.name] = given
        missing = [a.name for a in declared if a.name not in matched and a.default is None]
        if missing:
            names = ", ".join(f"`{m}`" for m in missing)
            raise self.fail(
                "E0325",
                f"{what} lacks {count(len(missing), 'argument').split()[1]} {names}",
                span,
                here,
                help=_listed(declared),
            )

    def _infer_all(self, binding: Binding, declared: tuple[ast.ArgDecl, ...], matched: dict[str, Given]) -> None:
        """Infers from every argument's type; literals last, since they adapt to what the others say."""
        late, defaults = [], []
        for argument in declared:
            given = matched.get(argument.name)
            if argument.type is None:
                continue
            if all(p.name in binding.values for p in binding.params):
                break
            if given is None:
                if argument.default is not None:
                    defaults.append((argument.type, argument.default))
                continue
            if given.place is None:
                if isinstance(given.node, ast.ListExpr):
                    self.infer_length(binding, argument.type, len(given.node.items))
                continue
            if given.is_literal:
                late.append((argument.type, given))
            else:
                self.infer(binding, argument.type, self._given_type(given))
        for pattern, given in late:
            self.infer(binding, pattern, given.value.type)
        for pattern, default in defaults:
            if any(p.kind == "infer" and p.name not in binding.values for p in binding.params):
                with self.outside():
                    self.infer(binding, pattern, self.evaluate(default, binding.scope).type)

    @staticmethod
    def _given_type(given: Given) -> Type:
        return given.place.type if isinstance(given.place, MemoryPlace | VariablePlace) else given.value.type

    def _bind_argument(self, bound: Bound, argument: ast.ArgDecl, given: Given | None, dry: bool) -> None:
        scope = bound.binding.scope
        wanted = self._argument_type(bound, argument, given)
        bound.arg_types[argument.name] = wanted
        if given is None:
            assert argument.default is not None
            with self.outside():
                value = self.evaluate(argument.default, scope, wanted)
            bound.args[argument.name] = self.convert(value, wanted, argument.default.span)
            return
        if argument.convention in BY_REFERENCE:
            bound.args[argument.name] = self._reference(bound, argument, given, wanted)
            return
        value = given.wanted_as(wanted)
        if value.type != wanted:
            bound.conversions += BY_THEMSELVES.get(value.type) != wanted
            if dry and not self.converts(value, wanted, given.span):
                raise self.mismatch(value.type, wanted, given.span)
            value = self.convert(value, wanted, given.span)
        bound.args[argument.name] = value

    def _reference(self, bound: Bound, argument: ast.ArgDecl, given: Given, wanted: Type) -> Place:
        place = given.place
        if argument.convention == "mut" and isinstance(place, TemporaryPlace | None):
            raise self.fail(
                "E0321", f"argument `{argument.name}` of `{bound.decl.name}` is changed there; this is no variable",
                given.span, (argument.span, "declared `mut` here"), help="pass a `var`",
            )  # fmt: skip
        if place is None or place.type != wanted:
            raise self.mismatch(given.value.type, wanted, given.span)
        if argument.convention == "mut" and not self.is_mutable(place):
            raise self.fail(
                "E0321", f"argument `{argument.name}` of `{bound.decl.name}` is changed there; this value is read-only",
                given.span, (argument.span, "declared `mut` here"), help="pass a `var`",
            )  # fmt: skip
        return place

    def _argument_type(self, bound: Bound, argument: ast.ArgDecl, given: Given | None) -> Type:
        """The declared type; a bare generic name takes any instance; ``self`` is the owner."""
        if argument.type is None:
            if bound.owner is not None:
                return bound.owner
            raise self.fail(
                "E0326", f"argument `{argument.name}` has no type", argument.span,
                help=f"write its type: `{argument.name}: Int32`",
            )  # fmt: skip
        # Without parameters the type is the same at every call.
        known = None if bound.binding.params else bound.decl.types
        key = (argument.type, bound.owner)
        if known is not None and key in known:
            return known[key]
        with self.outside(), self.comptime():
            value = self.evaluate(argument.type, bound.binding.scope)
        if isinstance(value, Comptime) and isinstance(value.value, GenericType) and given is not None:
            actual = self._given_type(given)
            if self.type_params(value.value.decl, actual) is not None:
                return actual
            raise self.fail(
                "E0301", f"expected {value.value}, found {actual}", given.span, help=f"pass a {value.value}"
            )
        t = self.as_type(value, argument.type.span)
        if known is not None:
            known[key] = t
        return t

    def methods_of(self, t: Type) -> StructDecl | None:
        """The declaration that has a type's methods."""
        if isinstance(t, StructType):
            return t.decl
        name, module = None, None
        if isinstance(t, SimdType):
            name, module = "SIMD", "simd"
        elif isinstance(t, PointerType):
            name, module = "Pointer", "pointer"
        elif isinstance(t, ArrayType):
            name, module = "Array", "array"
        elif t == types.DTYPE:
            name, module = "DType", "simd"
        if name is None or module is None:
            return None
        found = self.module_scope(self.loader.stdlib(module)).names.get(methods_name(name))
        return found if isinstance(found, StructDecl) else None

    def method(self, t: Type, name: str, receiver: Place | None) -> FunctionValue | None:
        decl = self.methods_of(t)
        overloads = decl.methods.get(name) if decl is not None else None
        return FunctionValue(name, tuple(overloads), t, receiver) if overloads else None


def _listed(declared: list[ast.ArgDecl]) -> str:
    return "its arguments are " + ", ".join(f"`{a.name}`" for a in declared) if declared else "it takes none"
