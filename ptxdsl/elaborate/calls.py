"""Calls: overload resolution, binding of arguments, and the expansion of the callee's body in place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ptxdsl import tir, types
from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate.control import FunctionFrame, ReturnSignal
from ptxdsl.elaborate.entities import (
    NONE_VALUE,
    Comptime,
    FunctionDecl,
    FunctionValue,
    GenericType,
    LanePlace,
    Literal,
    MemoryPlace,
    Place,
    PlaceAlias,
    RValue,
    StructDecl,
    StructValue,
    TemporaryPlace,
    Uninit,
    Variable,
    VariablePlace,
    type_value,
    with_comptime,
)
from ptxdsl.elaborate.names import closest, methods_name
from ptxdsl.elaborate.operators import Operators
from ptxdsl.elaborate.parameters import Binding, ParamArgs, count
from ptxdsl.elaborate.scope import Scope
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.types import ArrayType, PointerType, SimdType, StructType, Type

BY_REFERENCE = ("mut", "ref", "out", "deinit")


class Given:
    """One argument of a call, evaluated as a place; read at most once. ``.NAME`` waits for the type it is wanted in."""

    def __init__(
        self,
        calls: Calls,
        name: str | None,
        span: Span,
        place: Place | None,
        node: ast.Expr | None,
        scope: Scope | None,
    ) -> None:
        self.calls, self.name, self.span, self.place, self.node, self.scope = calls, name, span, place, node, scope
        self.kept: RValue | None = None

    @property
    def value(self) -> RValue:
        if self.kept is None:
            if isinstance(self.node, ast.ListExpr) and self.scope is not None:
                self.kept = self.calls.evaluate(self.node, self.scope)
                return self.kept
            if self.place is None:
                raise self.calls.fail("E0318", "`.NAME` needs a parameter whose type is known", self.span)
            self.kept = self.calls.read(self.place, self.span)
        return self.kept

    def wanted_as(self, t: Type) -> RValue:
        if self.place is None and self.node is not None and self.scope is not None:
            return self.calls.evaluate(self.node, self.scope, t)
        return self.value

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


class Calls(Operators):
    """Functions and methods."""

    def call_builtin(self, bound: Bound) -> RValue:
        raise NotImplementedError

    def construct(self, t: Type | GenericType, args: list[Given], span: Span) -> RValue:
        raise NotImplementedError

    # --------------------------------------------------------------------------------------------------- resolution

    def call_function(self, function: FunctionValue, args: list[Given], span: Span) -> RValue:
        """Calls the overload that fits best."""
        self.count_step(span)
        return self.invoke(self.resolve(function, args, span))

    def resolve(self, function: FunctionValue, args: list[Given], span: Span) -> Bound:
        if len(function.overloads) == 1:
            return self.bind(function.overloads[0], function, args, span)
        fitting: list[Bound] = []
        problems: list[CompileError] = []
        for decl in function.overloads:
            mark, before, values = len(self.ops), self.op_count, [a.kept for a in args]
            try:
                fitting.append(self.bind(decl, function, args, span, dry=True))
            except CompileError as problem:
                problems.append(problem)
            del self.ops[mark:]
            self.op_count = before
            for argument, value in zip(args, values, strict=True):
                argument.kept = value  # what a trial has loaded is gone with its operations
        if not fitting:
            raise self.no_overload(function, args, problems, span)
        best = min(b.conversions for b in fitting)
        chosen = [b for b in fitting if b.conversions == best]
        if len(chosen) > 1:
            chosen = self._most_specific(chosen)
        if len(chosen) > 1:
            raise self.fail(
                "E0320", f"the call of `{function.name}` is ambiguous", span,
                *((b.decl.node.name_span, "this overload fits") for b in chosen[:3]), help="convert an argument",
            )  # fmt: skip
        return self.bind(chosen[0].decl, function, args, span)

    @staticmethod
    def _most_specific(candidates: list[Bound]) -> list[Bound]:
        """Fewer parameters to infer is more specific."""
        least = min(len(b.decl.node.params) for b in candidates)
        return [b for b in candidates if len(b.decl.node.params) == least]

    def no_overload(
        self, function: FunctionValue, args: list[Given], problems: list[CompileError], span: Span
    ) -> CompileError:
        if len(problems) == 1 or all(p.diagnostics[:1] == problems[0].diagnostics[:1] for p in problems):
            return problems[0]
        arity = [
            p
            for p, d in zip(problems, function.overloads, strict=True)
            if len(d.node.args) - self._implicit(d) == len(args)
        ]
        if len(arity) == 1:
            return arity[0]
        shown = ", ".join(str(a.value.type) if a.place is not None else "…" for a in args)
        notes = []
        for problem, decl in list(zip(problems, function.overloads, strict=True))[:4]:
            reason = problem.diagnostics[0].message if problem.diagnostics else "does not fit"
            notes.append((decl.node.name_span, f"not this one: {reason}"))
        return self.fail("E0319", f"no overload of `{function.name}` takes ({shown})", span, *notes)

    @staticmethod
    def _implicit(decl: FunctionDecl) -> int:
        return 1 if decl.struct is not None and not decl.is_static else 0

    # ------------------------------------------------------------------------------------------------------ binding

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
        node = decl.node
        what = f"`{decl.name}`"
        owner = function.owner
        open_params = self._open_struct_params(decl, owner)
        binding = Binding((*open_params, *node.params), self.owner_scope(decl, owner), what, span)
        self.give(binding, function.params)
        declared = list(node.args)
        matched: dict[str, Given] = {}
        if decl.struct is not None and not decl.is_static and declared:
            first = declared.pop(0)
            if first.convention == "out":
                pass  # __init__: the new value
            elif function.receiver is not None:
                matched[first.name] = Given(self, None, span, function.receiver, None, None)
                self._check_receiver(first, function, span, decl)
            else:
                declared.insert(0, first)
        declared = [a for a in declared if a.convention != "out"]
        self._match(declared, args, matched, what, decl, span)
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
        return bound

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
        for i, given in enumerate(a for a in args if a.name is None):
            if i >= len(positional):
                number = sum(a.name is None for a in args)
                raise self.fail(
                    "E0322", f"{what} takes {count(len(positional), 'argument')}, {number} are given", given.span, here,
                )  # fmt: skip
            matched[positional[i].name] = given
        for given in args:
            if given.name is None:
                continue
            found = next((a for a in declared if a.name == given.name and a.kind != "posonly"), None)
            if found is None:
                near = closest(given.name, (a.name for a in declared))
                raise self.fail(
                    "E0323", f"{what} has no argument `{given.name}`", given.span, here,
                    help=f"did you mean `{near}`?" if near else None,
                )  # fmt: skip
            if found.name in matched:
                raise self.fail("E0324", f"argument `{given.name}` is given twice", given.span)
            matched[found.name] = given
        missing = [a.name for a in declared if a.name not in matched and a.default is None]
        if missing:
            names = ", ".join(f"`{m}`" for m in missing)
            raise self.fail("E0325", f"{what} lacks {count(len(missing), 'argument').split()[1]} {names}", span, here)

    def _infer_all(self, binding: Binding, declared: tuple[ast.ArgDecl, ...], matched: dict[str, Given]) -> None:
        """Infers from every argument's type; literals last, since they adapt to what the others say."""
        late, defaults = [], []
        for argument in declared:
            given = matched.get(argument.name)
            if argument.type is None or all(p.name in binding.values for p in binding.params):
                continue
            if given is None:
                if argument.default is not None:
                    defaults.append((argument.type, argument.default))
                continue
            if given.place is None:
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
            bound.conversions += 1
            if dry and not self.converts(value, wanted, given.span):
                raise self.mismatch(value.type, wanted, given.span)
            value = self.convert(value, wanted, given.span)
        bound.args[argument.name] = value

    def _reference(self, bound: Bound, argument: ast.ArgDecl, given: Given, wanted: Type) -> Place:
        place = given.place
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
            raise self.fail("E0326", f"argument `{argument.name}` has no type", argument.span)
        with self.outside(), self.comptime():
            value = self.evaluate(argument.type, bound.binding.scope)
        if isinstance(value, Comptime) and isinstance(value.value, GenericType) and given is not None:
            actual = self._given_type(given)
            if self.type_params(value.value.decl, actual) is not None:
                return actual
            raise self.fail("E0301", f"expected {value.value}, found {actual}", given.span)
        return self.as_type(value, argument.type.span)

    # ----------------------------------------------------------------------------------------------------- expansion

    def invoke(self, bound: Bound) -> RValue:
        """Expands the callee's body here."""
        if bound.decl.is_builtin:
            return self.call_builtin(bound)
        library = bound.decl.node.span.source.library
        if not library:
            self.check_decorators(bound.decl.node.decorators)
        site = self.site
        self.site = self.at(bound.span) if library else None
        try:
            with self.deeper(bound.span):
                return self._expand(bound)
        except CompileError as problem:
            raise self._called_from(problem, bound, library, site) from None
        except RecursionError:
            raise self.fail("E0406", "the expansion is nested too deeply", bound.span) from None
        finally:
            self.site = site

    @staticmethod
    def _called_from(problem: CompileError, bound: Bound, library: bool, site: Span | None) -> CompileError:
        """Adds "in this call" to what went wrong in a function of the user's."""
        if library or site is not None:
            return problem
        return CompileError(
            d if d.span is None or d.span == bound.span or len(d.notes) >= 4
            else replace(d, notes=(*d.notes, (bound.span, f"in this call of `{bound.decl.name}`")))
            for d in problem.diagnostics
        )  # fmt: skip

    def result_type(self, decl: FunctionDecl, scope: Scope) -> Type:
        return types.NONE if decl.node.returns is None else self.type_of(decl.node.returns, scope)

    def _expand(self, bound: Bound) -> RValue:
        node = bound.decl.node
        scope = Scope(bound.binding.scope)
        span = bound.span
        out: Variable | None = None
        with self.outside():
            for argument in node.args:
                if argument.convention == "out":
                    out = self._out_variable(argument, bound)
                    scope.declare(argument.name, PlaceAlias(VariablePlace(out, out.type), True))
                else:
                    self._declare_argument(scope, argument, bound)
            result = out.type if out is not None else self.result_type(bound.decl, bound.binding.scope)
            op = tir.Op("scope", [], [], {}, self.at(span))
            self.function = FunctionFrame(op, None if result == types.NONE else result, bound.decl.name, out=out)
            if self.comptime_depth:
                value = self._run_now(bound, scope)
            else:
                value = self._run_later(bound, scope, op)
        return value

    def _out_variable(self, argument: ast.ArgDecl, bound: Bound) -> Variable:
        if argument.name == "self" and bound.owner is not None:
            t = bound.owner
        else:
            assert argument.type is not None
            t = self.type_of(argument.type, bound.binding.scope)
        return Variable(argument.name, t, True, argument.span)

    def _blank(self, t: Type) -> RValue:
        """The result before anything is assigned; a struct without fields is complete as it is."""
        if isinstance(t, StructType) and not self.fields_of(t):
            return StructValue(t, ())
        return Uninit(t)

    def _declare_argument(self, scope: Scope, argument: ast.ArgDecl, bound: Bound) -> None:
        given = bound.args[argument.name]
        if isinstance(given, VariablePlace | MemoryPlace | TemporaryPlace) or hasattr(given, "base"):
            scope.declare(argument.name, PlaceAlias(given, argument.convention != "read"))  # type: ignore[arg-type]
            return
        value: RValue = given
        if not self.comptime_depth:
            value = with_comptime(value, False)
        if argument.convention == "var":
            variable = Variable(argument.name, bound.arg_types[argument.name], True, argument.span)
            self.state[variable] = value
            scope.declare(argument.name, variable)
        else:
            scope.declare(argument.name, value)

    def _run_now(self, bound: Bound, scope: Scope) -> RValue:
        """At compile time: statements are executed one after the other."""
        frame = self.function
        assert frame is not None
        if frame.out is not None:
            self.state[frame.out] = self._blank(frame.out.type)
        try:
            self.execute(bound.decl.node.body, scope)
        except ReturnSignal as signal:
            if signal.value is not None:
                return signal.value
        else:
            if frame.result is not None and frame.out is None:
                raise self.missing_return(bound)
        return self._out_value(frame, bound) if frame.out is not None else NONE_VALUE

    def _out_value(self, frame: FunctionFrame, bound: Bound) -> RValue:
        assert frame.out is not None
        value = self.state[frame.out]
        missing = uninitialised(value)
        if missing is not None:
            name = self._part_name(frame.out.type, missing)
            raise self.fail(
                "E0210", f"`{frame.name}` leaves {name} without a value", bound.span,
                (bound.decl.node.name_span, "in this constructor"),
            )  # fmt: skip
        return value

    def _part_name(self, t: Type, path: tuple[int, ...]) -> str:
        if path and isinstance(t, StructType):
            return f"field `{self.fields_of(t)[path[0]][0]}`"
        return "its result"

    def missing_return(self, bound: Bound) -> CompileError:
        return self.fail(
            "E0327", f"`{bound.decl.name}` can end without a `return`", bound.decl.node.name_span,
            help="return a value on every path",
        )  # fmt: skip

    def _run_later(self, bound: Bound, scope: Scope, op: tir.Op) -> RValue:
        """At run time: the body becomes a scope; with a single way out it is part of the caller's block."""
        frame = self.function
        assert frame is not None
        before = self.state
        self.state = dict(before)
        if frame.out is not None:
            self.state[frame.out] = self._blank(frame.out.type)
        with self.block() as block:
            self.execute(bound.decl.node.body, scope)
            if not self.terminated:
                if frame.result is not None and frame.out is None:
                    raise self.missing_return(bound)
                value = self._out_value(frame, bound) if frame.out is not None else NONE_VALUE
                frame.returns.append(self.end_block("leave", op, bound.span, value))
        exits = frame.returns
        if len(exits) == 1 and exits[0].ops is block.ops:
            block.ops.pop()
            self.ops.extend(block.ops)
            self.state = {v: exits[0].state[v] for v in before}
            return exits[0].value or NONE_VALUE
        op.blocks = [block]
        self.append(op)
        return self.merge(exits, before, op, bound.span) or NONE_VALUE

    # ------------------------------------------------------------------------------------------------------ methods

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

    def call_method(self, receiver: RValue, name: str, args: list[RValue], span: Span) -> RValue | None:
        function = self.method(receiver.type, name, TemporaryPlace(receiver))
        if function is None:
            return None
        return self.call_function(
            function, [Given(self, None, span, TemporaryPlace(a), None, None) for a in args], span
        )

    def implicit_construct(self, value: RValue, to: StructType, span: Span) -> RValue | None:
        candidates = [d for d in to.decl.methods.get("__init__", ()) if d.decorator("implicit")]
        if not candidates or isinstance(value, StructValue):
            return None
        function = FunctionValue(to.decl.name, tuple(candidates), to)
        return self.call_function(function, [Given(self, None, span, TemporaryPlace(value), None, None)], span)


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


def param_args(args: tuple[ast.Argument, ...], scope: Scope) -> ParamArgs:
    return tuple((a, scope) for a in args)
