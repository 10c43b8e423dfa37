"""Arguments: how a call's values meet a declaration's arguments and parameters."""

from __future__ import annotations

from ptxdsl.diagnostics import CompileError, counted
from ptxdsl.elaborate import types
from ptxdsl.elaborate.context import Exhausted
from ptxdsl.elaborate.control import names_in, overlap
from ptxdsl.elaborate.convert import items_of
from ptxdsl.elaborate.entities import (
    ArrayValue,
    Comptime,
    FunctionDecl,
    FunctionValue,
    GenericType,
    MemoryPlace,
    Place,
    TemporaryPlace,
    TupleValue,
    VariablePlace,
)
from ptxdsl.elaborate.matching import Bound, Given, Matching, Rest
from ptxdsl.elaborate.parameters import Binding, parameter_name
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, Type
from ptxdsl.elaborate.values import type_value
from ptxdsl.record import replace
from ptxdsl.source import Span
from ptxdsl.syntax import ast

VECTOR_ACCESS = ("unsafe_load", "unsafe_store", "load", "store")  # methods of pointers to numbers
BY_THEMSELVES: dict[Type, Type] = {types.INT_LITERAL: types.INT, types.FLOAT_LITERAL: types.FLOAT64}
BY_REFERENCE = ("mut", "ref", "out", "deinit")


class Arguments(Matching):
    """Binds the parameters and arguments of one declaration: infers, converts, refers to places."""

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
        declared = self.declared(decl, function)
        matched: dict[str, Given] = {}
        first = self.receiver_of(decl, function)
        if first is not None:
            matched[first.name] = Given(self, span, function.receiver)
            self._check_receiver(first, function, span, decl)
        self.match(declared, args, matched, what, decl, span)
        if binding.params:
            self._infer_all(binding, node.args, matched)
            try:
                self.complete(binding)
            except Exhausted:
                raise
            except CompileError:
                self._check_inferred(binding, node.args, matched)
                raise
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

    def _infer_all(self, binding: Binding, declared: tuple[ast.ArgDecl, ...], matched: dict[str, Given]) -> None:
        """Infers from every argument's type; literals and compile-time Ints last: they adapt to what others say."""
        late, lists, defaults = [], [], []
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
            if argument.kind == "pack":
                self._infer_pack(binding, argument.type, given)
                continue
            for one in given.items if isinstance(given, Rest) else (given,):
                if one.place is None:
                    if isinstance(one.node, ast.ListExpr):
                        self.infer_length(binding, argument.type, len(one.node.items))
                        lists.append((argument.type, one))
                elif one.adapts:
                    late.append((argument.type, one))
                else:
                    self.infer(binding, argument.type, self._given_type(one))
        for pattern, given in late:
            self.infer(binding, pattern, given.value.type)
        for pattern, given in lists:  # their elements adapt to a type that is known by now
            if any(p.name not in binding.values and p.default is None for p in binding.params):
                self.infer(binding, pattern, given.value.type)
        for pattern, default in defaults:
            if any(p.kind == "infer" and p.name not in binding.values for p in binding.params):
                with self.outside():
                    self.infer(binding, pattern, self.evaluate(default, binding.scope).type)

    def _check_inferred(self, binding: Binding, declared: tuple[ast.ArgDecl, ...], matched: dict[str, Given]) -> None:
        """E0301 for an argument of which nothing could be inferred, since it is of another type altogether."""
        missing = {p.name for p in binding.params if p.name not in binding.values and p.default is None}
        for argument in declared:
            given = matched.get(argument.name)
            if given is None or argument.type is None or not missing & set(names_in(argument.type)):
                continue
            if isinstance(given.node, ast.ListExpr) and argument.type.span.text.startswith("SIMD["):
                help = f"a vector of these is `SIMD[DType.float32, {len(given.node.items)}](…)`"
                raise self.fail("E0301", f"expected {argument.type.span.text}, found a list", given.span, help=help)
            if given.place is not None:
                text, found = argument.type.span.text, self._given_type(given)
                help = "pass a value of that form: the parameters are inferred from it"
                if isinstance(given.place, MemoryPlace) and text.startswith("Pointer["):
                    help = "pass the address: `p.unsafe_offset(i)` in place of `p[i]`"
                raise self.fail("E0301", f"expected {text}, found {found}", given.span, help=help)

    @staticmethod
    def _given_type(given: Given) -> Type:
        return given.place.type if isinstance(given.place, MemoryPlace | VariablePlace) else given.value.type

    def _infer_pack(self, binding: Binding, pattern: ast.Expr, given: Given) -> None:
        """``*args: *Ts``: Ts are the types of what is given."""
        assert isinstance(given, Rest)
        name = parameter_name(pattern)
        param = None if name is None else binding.unbound(name)
        if param is not None:
            each = (type_value(self.materialize(one.value, one.span).type) for one in given.items)
            self.set_param(binding, param, TupleValue(tuple(each)), given.span)

    def _bind_rest(self, bound: Bound, argument: ast.ArgDecl, given: Rest) -> None:
        """A variadic argument is an Array of its values, or a tuple where each has a type of its own."""
        count_given = len(given.items)
        if argument.kind == "pack" and argument.type is not None:
            with self.outside():
                pack = items_of(self.comptime_value(argument.type, bound.binding.scope)) or ()
            wanted = [self.as_type(t, argument.type.span) for t in pack]
        else:
            wanted = [self._argument_type(bound, argument, given.items[0] if given.items else None)] * count_given
        if len(wanted) != count_given:
            raise self.fail(
                "E0322",
                f"`{bound.decl.name}` has {counted(len(wanted), 'type')} for {counted(count_given, 'argument')}",
                bound.span, help="leave the types out: they are inferred",
            )  # fmt: skip
        values = []
        for one, t in zip(given.items, wanted, strict=True):
            value = one.wanted_as(t)
            bound.conversions += value.type != t and BY_THEMSELVES.get(value.type) != t
            values.append(self.convert(value, t, one.span))
        if argument.kind == "pack":
            bound.args[argument.name] = TupleValue(tuple(values))
        else:
            elem = wanted[0] if wanted else self._argument_type(bound, argument, None)
            bound.args[argument.name] = ArrayValue(ArrayType(elem, count_given), tuple(values))

    def _bind_argument(self, bound: Bound, argument: ast.ArgDecl, given: Given | None, dry: bool) -> None:
        scope = bound.binding.scope
        if isinstance(given, Rest):
            self._bind_rest(bound, argument, given)
            return
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
                "E0321", f"argument `{argument.name}` of `{bound.decl.name}` is changed there; this is not a variable",
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
